/* figure.c -- defaults and arrangement of panels, and their captions; see figure.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure/figure.h"
#include "draw/figure/scene.h"

Figure *figure_new(int panels, Error *err)
{
    Figure *figure = calloc(1, sizeof(*figure));

    if (figure)
        figure->panels = calloc((size_t)(panels > 0 ? panels : 1), sizeof(*figure->panels));
    if (!figure || !figure->panels) {
        free(figure);
        error_set(err, ERR_NOMEM, "a figure of %d panels: out of memory", panels);
        return NULL;
    }
    figure->count = panels;
    figure->legend = true;
    return figure;
}

void figure_free(Figure *figure)
{
    if (!figure)
        return;
    for (int k = 0; figure->panels && k < figure->count; k++) {
        plot_free(figure->panels[k].made);
        if (figure->panels[k].margin)
            margin_free(figure->panels[k].margin);
        free(figure->panels[k].margin);
    }
    free(figure->panels);
    free(figure->numbers);
    free(figure);
}

#define SIGNS_LOOKED_AT 1000000 /* entries; every drawing checks again */

/* A small tensor without negative values (indices, codes, norms) has one side. In whole numbers -1
 * means none. */
static bool is_one_sided(const View *view)
{
    Tensor  flat;
    int64_t count = tensor_count(&view->tensor);
    double  least = view->dtype == DT_I32 || view->dtype == DT_I64 ? -1 : 0;

    if (!view->tensor.data || !tensor_contiguous(&view->tensor) || count > SIGNS_LOOKED_AT)
        return false;
    flat = tensor_of(view->tensor.dtype, 1, (int64_t[]){ count }, view->tensor.data);
    for (int64_t i = 0; i < count; i++)
        if (!(tensor_get(&flat, &i) >= least))
            return false;
    return true;
}

static ColourMap map_default(const View *view)
{
    switch (view->kind) {
    case VIEW_VECTORS:
    case VIEW_TENSOR:
        return is_one_sided(view) ? MAP_VIRIDIS : MAP_DIVERGING;
    case VIEW_SIGNED:
        return MAP_DIVERGING;
    default:
        return MAP_VIRIDIS;
    }
}

void panel_init(Panel *panel, const View *view, const Pattern *components, int64_t plane,
                const char *title)
{
    ViewCurve curve;
    bool causes = view->kind == VIEW_PATTERN || view->kind == VIEW_COMPONENTS;

    *panel = (Panel){
        .view = view,
        .components = causes ? components : NULL,
        .plane = plane,
        .plot = view_curve(view, &curve),
        .pool = pool_default(view->kind),
        .map = map_default(view),
        .hi = view->kind == VIEW_PERMUTATION || view->kind == VIEW_MASK ? 1 : 0,
    };
    snprintf(panel->title, sizeof(panel->title), "%s", title ? title : view->name);
}

/* The view of a panel whose numbers no view holds. */
static const View no_view = { .name = "plot", .kind = VIEW_TENSOR, .iteration = -1, .step = -1,
                              .dtype = DT_F64, .rank = 1, .shape = { 1 }, .stage = "",
                              .rows = "", .cols = "" };

void panel_init_plot(Panel *panel, Plot *plot, const char *title)
{
    *panel = (Panel){ .view = &no_view, .plot = true, .made = plot };
    snprintf(panel->title, sizeof(panel->title), "%s", title);
}

/* "window(5) + cols(2)" begins with code. */
static bool is_call(const char *text)
{
    while (isalnum((unsigned char)*text) || *text == '-' || *text == '_')
        text++;
    return *text == '(';
}

void title_capital(char *title)
{
    while ((unsigned char)*title >= 0x80 || *title == ' ') /* a sign */
        title++;
    if (is_call(title))
        return;
    if (islower((unsigned char)title[0]) && (islower((unsigned char)title[1]) || title[1] == '-'))
        *title = (char)toupper((unsigned char)*title);
}

/* The prefix of a name: "linformer ". */
static void prefix_of(const char *name, char *text, size_t size)
{
    snprintf(text, size, "%s%s", name, *name ? " \xc2\xb7 " : "");
}

/* Drops the words after a middle dot that all series share: the axis has them. */
static void drop_common_end(Plot *plot)
{
    const char *dot = NULL, *next = plot->count ? plot->series[0].name : NULL;
    char        end[sizeof(plot->series->name)] = "";

    while (next && (next = strstr(next, " \xc2\xb7 ")))
        dot = next++;
    if (dot)
        snprintf(end, sizeof(end), "%s", dot);
    for (int k = 0; k < plot->count; k++) {
        size_t whole = strlen(plot->series[k].name), length = strlen(end);

        if (!length || whole <= length || strcmp(plot->series[k].name + whole - length, end) != 0)
            return;
    }
    for (int k = 0; k < plot->count; k++)
        plot->series[k].name[strlen(plot->series[k].name) - strlen(end)] = '\0';
}

Plot *panel_plot(const Panel *panel, Error *err)
{
    Plot *plot = panel->made ? plot_copy(panel->made, err) : plot_new(err);
    char  prefix[112];
    bool  ok;

    if (!plot || panel->made)
        return plot;
    prefix_of(panel->overlay_count ? panel->name : "", prefix, sizeof(prefix));
    ok = plot_add_view(plot, panel->view, panel->minus, panel->plane, panel->head,
                       prefix, err);
    for (int k = 0; ok && k < panel->overlay_count; k++) {
        const Overlay *o = &panel->overlays[k];

        prefix_of(o->name, prefix, sizeof(prefix));
        ok = plot_add_view(plot, o->view, NULL, o->plane, o->head, prefix, err);
    }
    if (!ok) {
        plot_free(plot);
        return NULL;
    }
    if (panel->overlay_count)
        drop_common_end(plot);
    plot_settle(plot);
    return plot;
}

void panel_letter(int k, char *text, size_t size)
{
    if (k < 26)
        snprintf(text, size, "%c", 'a' + k);
    else
        snprintf(text, size, "%c%c", 'a' + (k / 26 - 1) % 26, 'a' + k % 26);
}

Region panel_region(const Panel *panel)
{
    Region region = panel->region;

    if (region.row1 == 0 && region.col1 == 0)
        region = (Region){ 0, view_rows(panel->view), 0, view_cols(panel->view) };
    return region;
}

void figure_arrange(const Figure *figure, int *rows, int *cols)
{
    static const int usual[] = { 1, 1, 2, 3, 2, 3, 3, 4, 4, 3, 4, 4, 4 };
    int              count = figure->count > 0 ? figure->count : 1;

    *cols = figure->cols;
    *rows = figure->rows;
    if (*cols <= 0 && *rows > 0)
        *cols = (count + *rows - 1) / *rows;
    if (*cols <= 0)
        *cols = count < (int)(sizeof(usual) / sizeof(*usual)) ? usual[count] : 4;
    if (*rows * *cols < count)
        *rows = (count + *cols - 1) / *cols;
}

/* Captions.
 *
 * A caption says what cannot be seen: how many entries there are and how many of them one cell
 * covers. A matrix drawn entry by entry needs no word about cells, and the number of pairs says
 * nothing of a full matrix of values.
 */

#define EXACT_MOST 1e5 /* smaller counts are written out */

static int64_t rows_of(const Grid *grid)
{
    return grid->region.row1 - grid->region.row0;
}

static int64_t cols_of(const Grid *grid)
{
    return grid->region.col1 - grid->region.col0;
}

/* Sum of min(max(t, 0), width) over all t < end. */
static double clipped_sum(double end, double width)
{
    if (end <= 0)
        return 0;
    if (end <= width)
        return end * (end - 1) / 2;
    return width * (width - 1) / 2 + (end - width) * width;
}

/* Entries with j <= i + offset in the region. */
static double triangle(const Grid *grid, int64_t offset)
{
    double start = (double)(grid->region.row0 + offset + 1 - grid->region.col0);
    double width = (double)cols_of(grid);

    return clipped_sum(start + (double)rows_of(grid), width) - clipped_sum(start, width);
}

/* There are values everywhere, or everywhere a causal run may have some. */
static bool is_plain(const Panel *panel, const Grid *grid)
{
    double  area = (double)rows_of(grid) * (double)cols_of(grid);
    int64_t later = view_cols(panel->view) - view_rows(panel->view);

    return grid->count >= area || grid->count == triangle(grid, 0) ||
           grid->count == triangle(grid, later);
}

static bool shows_values(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    return panel->minus ||
           (kind != VIEW_PATTERN && kind != VIEW_COMPONENTS && kind != VIEW_MEMBERSHIP);
}

static const char *entries_name(const View *view)
{
    bool pairs = view->rows && view->cols && strcmp(view->rows, "query") == 0 &&
                 strcmp(view->cols, "key") == 0;

    return pairs ? "pairs" : "entries";
}

/* The separator before the next part of a caption. */
static const char *comma(const Text *out)
{
    return out->length ? ", " : "";
}

double panel_whole(const Panel *panel, const Grid *grid, bool *causal)
{
    bool sorted = panel->row_order || panel->col_order; /* a part of it is no part of a triangle */
    bool whole = rows_of(grid) == view_rows(panel->view) && cols_of(grid) == view_cols(panel->view);

    *causal = panel->causal && !strcmp(entries_name(panel->view), "pairs") &&
              (whole || !sorted) && triangle(grid, 0) >= grid->count;
    return *causal ? triangle(grid, 0) : (double)rows_of(grid) * (double)cols_of(grid);
}

static void caption_count(const Panel *panel, const Grid *grid, Text *out)
{
    bool   causal;
    double area = panel_whole(panel, grid, &causal);
    char   count[32];

    if (area < EXACT_MOST)
        text_addf(out, "%.0f of %.0f", grid->count, area);
    else
        text_add(out, format_count(grid->count, count, sizeof(count)));
    text_addf(out, " %s%s%s (", causal ? "causal " : "", entries_name(panel->view),
              panel->view->kind == VIEW_HOPS && !panel->minus ? " reached" : "");
    text_addf(out, "%s)", format_percent(area > 0 ? grid->count / area : 0, count, sizeof(count)));
}

/* "740 strongest keys marked, at most 8 a query": cells of a view of missed keys are no pairs that
 * a mechanism allows. */
static void caption_marked(const Panel *panel, const Grid *grid, Text *out)
{
    int64_t keys = panel->view->found->keys;
    bool    fewer = grid->count < (double)keys * (double)rows_of(grid);
    char    count[32];

    if (grid->count < EXACT_MOST)
        text_addf(out, "%.0f", grid->count);
    else
        text_add(out, format_count(grid->count, count, sizeof(count)));
    text_addf(out, " strongest key%s marked, %s%lld a query", grid->count == 1 ? "" : "s",
              fewer ? "at most " : "", (long long)keys);
}

/* "57 missed by design: the query itself", of all queries alone. */
static void caption_itself(const Panel *panel, const Grid *grid, Text *out)
{
    const int64_t *itself = panel->view->found->itself;
    bool           whole = rows_of(grid) == view_rows(panel->view) &&
                           cols_of(grid) == view_cols(panel->view);

    if (itself && itself[panel->plane] && whole)
        text_addf(out, "%s%lld missed by design: the query itself", comma(out),
                  (long long)itself[panel->plane]);
}

static void caption_entries(const Panel *panel, const Grid *grid, Text *out)
{
    if (panel->view->found && !panel->minus)
        caption_marked(panel, grid, out);
    else if (!shows_values(panel) || panel->view->kind == VIEW_HOPS || !is_plain(panel, grid))
        caption_count(panel, grid, out);
}

/* "buckets 0 to 5"; "buckets 0 to 15, 12 colours repeat"; "forward, backward: 12 of 90 entries
 * (13.3 %)" where some entries have none. */
static void caption_categories(const Panel *panel, const Grid *grid, bool letters, Text *out)
{
    size_t begun = out->length;

    categories_text(panel, grid, out);
    if (categories_repeat(panel, grid, letters))
        text_addf(out, ", %d %s repeat", category_kinds(letters), letters ? "letters" : "colours");
    if (!panel->view->categories)
        return;
    if (out->length > begun)
        text_add(out, ": ");
    caption_count(panel, grid, out);
}

/* Cells differ by at most one entry each way; the larger size is named. */
static void caption_cell(const Panel *panel, const Grid *grid, bool categories, Text *out)
{
    int64_t rows = (rows_of(grid) + grid->rows - 1) / grid->rows;
    int64_t cols = (cols_of(grid) + grid->cols - 1) / grid->cols;
    bool    shade = panel->pool == POOL_COVER && !categories;

    if (rows == 1 && cols == 1)
        return;
    text_addf(out, "%s%s %s %lld x %lld", comma(out),
              categories ? "majority" : shade ? "one cell" : pool_name(panel->pool),
              shade ? "=" : "of", (long long)rows, (long long)cols);
    if (shade)
        text_addf(out, ", shade = %s", pool_name(POOL_COVER));
}

int64_t panel_first(const Panel *panel, bool rows)
{
    const char *axis = rows ? panel->view->rows : panel->view->cols;

    return axis && !strcmp(axis, "round");
}

/* "queries 10 to 31"; "sorted keys 0 to 7" where these are places in an order, not tokens. */
static void caption_range(const char *axis, bool ordered, int64_t first, int64_t end, Text *out)
{
    size_t length = strlen(axis);
    bool   y = length && axis[length - 1] == 'y' && strcmp(axis, "key") != 0;

    text_add(out, ordered ? "sorted " : "");
    if (end - first == 1)
        text_addf(out, "%s %lld", axis, (long long)first);
    else
        text_addf(out, "%.*s%s %lld to %lld", (int)(length - y), axis, y ? "ies" : "s",
                  (long long)first, (long long)end - 1);
}

/* "queries 10 to 31, keys 0 to 39 of 64": the part of the matrix that is drawn. */
static void caption_region(const Panel *panel, const Grid *grid, Text *out)
{
    const View *view = panel->view;
    Region      r = grid->region;
    int64_t     rows = view_rows(view), cols = view_cols(view);

    if (panel->picture || (rows_of(grid) == rows && cols_of(grid) == cols))
        return;
    text_add(out, comma(out));
    caption_range(view->rows && *view->rows ? view->rows : "row", panel->row_order != NULL,
                  r.row0 + panel_first(panel, true), r.row1 + panel_first(panel, true), out);
    if (rows != cols)
        text_addf(out, " of %lld", (long long)rows);
    text_add(out, ", ");
    caption_range(view->cols && *view->cols ? view->cols : "column", panel->col_order != NULL,
                  r.col0 + panel_first(panel, false), r.col1 + panel_first(panel, false), out);
    text_addf(out, " of %lld", (long long)cols);
}

/* "query at row 5, column 7 sees 12 of 256 pixels (4.69 %)" */
static void caption_picture(const Panel *panel, const Grid *grid, Text *out)
{
    text_addf(out, "query at row %lld, column %lld sees %.0f of %lld pixels (%.3g %%)",
              (long long)panel->mark_row, (long long)panel->mark_col, grid->count,
              (long long)panel->pixel_count, 100 * grid->count / (double)panel->pixel_count);
}

/* "micro-batches 0 to 3, 42.9 % idle"; categories are 2j forward, 2j + 1 backward. */
static void caption_schedule(const Grid *grid, Text *out)
{
    double first = floor(grid->value_min / 2), last = floor(grid->value_max / 2);
    double cells = (double)rows_of(grid) * (double)cols_of(grid);

    if (first < last)
        text_addf(out, "micro-batches %.0f to %.0f", first, last);
    else
        text_addf(out, "micro-batch %.0f", last);
    text_addf(out, ", %.3g %% idle", 100 * (1 - grid->count / cells));
}

/* "values −0.0336 to 0.0309, 1.1 % of the scale": the colours do not show it. */
static void caption_faint(const Panel *panel, const Grid *grid, Text *out)
{
    double lo = grid->pool_lo[panel->pool], hi = grid->pool_hi[panel->pool];
    Panel  own = *panel;
    char   texts[2][32], percent[32];

    own.lo = own.hi = 0;
    panel_settle(&own, grid);
    number_text(fabs(lo), 3, texts[0], sizeof(texts[0]));
    number_text(fabs(hi), 3, texts[1], sizeof(texts[1]));
    text_addf(out, "%svalues %s%s to %s%s, %s of the scale", comma(out),
              lo < 0 ? "\u2212" : "", texts[0], hi < 0 ? "\u2212" : "", texts[1],
              format_percent((own.hi - own.lo) / (panel->hi - panel->lo), percent,
                             sizeof(percent)));
}

/* As a bar writes it: a small one as a power of ten. */
static void caption_least(double least, Text *out)
{
    int power = least > 0 ? (int)floor(log10(least) + 1e-9) : 0;

    if (power < -2)
        text_addf(out, " down to %.2ge%03d", least / pow(10, power), power);
    else
        text_addf(out, " down to %.2g", least);
}

static void caption_panel(const Panel *panel, const Grid *grid, bool letters, char *text,
                          size_t size)
{
    Text   out = { 0 };
    double share, below;
    char   percent[32];
    bool   schedule = panel_shows_schedule(panel);
    bool   categories = (panel->view->kind == VIEW_BUCKETS && !panel->minus) || schedule;

    if (panel->picture)
        caption_picture(panel, grid, &out);
    else if (schedule)
        caption_schedule(grid, &out);
    else if (categories)
        caption_categories(panel, grid, letters, &out);
    else
        caption_entries(panel, grid, &out);
    caption_region(panel, grid, &out);
    caption_cell(panel, grid, categories, &out);
    if (*panel->sorted)
        text_addf(&out, "%s%s", comma(&out), panel->sorted);
    if (panel_style(panel) == STYLE_VALUE && panel->scale != SCALE_LINEAR)
        text_addf(&out, "%s%s scale", comma(&out), scale_name(panel->scale));
    if (panel_style(panel) == STYLE_VALUE && panel_is_log(panel) && panel->hi > panel->lo)
        caption_least(panel_least(panel->lo, panel->hi), &out);
    if (panel_is_mostly_dark(panel, grid, &share, &below))
        text_addf(&out, "%s%s of cells below %.1g", comma(&out),
                  format_percent(share, percent, sizeof(percent)), below);
    if (panel_is_faint(panel, grid))
        caption_faint(panel, grid, &out);
    if (panel->view->summary && !panel->minus && panel->plane < view_planes(panel->view))
        text_addf(&out, "%s%s", comma(&out), panel->view->summary[panel->plane]);
    if (panel->view->found && !isnan(panel->view->found->share[panel->plane]))
        text_addf(&out, "%s%.1f %% found", comma(&out),
                  100 * panel->view->found->share[panel->plane]);
    if (panel->view->found && !panel->minus)
        caption_itself(panel, grid, &out);
    if (panel->view->origin) /* random values look like noise: the caption names them */
        text_addf(&out, "%s%s", comma(&out), panel->view->origin);
    if (grid->sampled)
        text_addf(&out, "%ssampled %.2g %%", comma(&out), 100 * grid->sampled_share);
    if (panel->excludes && panel_style(panel) == STYLE_VALUE)
        text_addf(&out, "%s%s %lld excluded", comma(&out), panel->view->cols,
                  (long long)panel->excluded);
    if (panel->margin && panel->margin->share < 1)
        text_addf(&out, "%sbars of %.2g %% of the rows", comma(&out), 100 * panel->margin->share);
    if (grid->odd_count > 0)
        text_addf(&out, "%s%lld NaN or infinite", comma(&out), (long long)grid->odd_count);
    snprintf(text, size, "%s%s%s", panel->sizes, *panel->sizes && out.length ? "; " : "",
             text_str(&out));
    text_free(&out);
}

void panel_caption(const Panel *panel, const Grid *grid, char *text, size_t size)
{
    caption_panel(panel, grid, false, text, size);
}

void panel_caption_letters(const Panel *panel, const Grid *grid, char *text, size_t size)
{
    caption_panel(panel, grid, true, text, size);
}

const char *panel_quantity(const Panel *panel)
{
    static const char *const names[VIEW_KIND_COUNT] = {
        [VIEW_WEIGHTS] = "weight",  [VIEW_COUNT] = "count",     [VIEW_ORDER] = "position",
        [VIEW_BUCKETS] = "bucket",  [VIEW_FEATURES] = "feature", [VIEW_PERMUTATION] = "share",
        [VIEW_HOPS] = "layers",     [VIEW_SCHEDULE] = "micro-batch",
        [VIEW_MASK] = "mask",       [VIEW_FLOW] = "flow",
    };
    static const char *const signs[][2] = { { "bias", "bias" },       { "logit", "logit" },
                                            { "weight", "weight" }, { "position_", "score" } };
    const View *view = panel->view;

    if (panel->pool == POOL_COVER)
        return "share";
    if (panel->pool == POOL_PAIRS)
        return entries_name(view);
    if (panel->minus)
        return "difference";
    if (view->quantity)
        return view->quantity;
    for (int k = 0; view->kind == VIEW_SIGNED && k < 4; k++) /* the view's name contains it */
        if (strstr(view->name, signs[k][0]))
            return signs[k][1];
    return view->kind < VIEW_KIND_COUNT && names[view->kind] ? names[view->kind] : QUANTITY_ANY;
}
