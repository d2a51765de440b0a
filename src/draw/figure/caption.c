/* caption.c -- what stands under a panel and beside its colour bar; see figure.h.
 *
 * A caption says what cannot be seen: how many entries there are and how many
 * of them one cell stands for.  A matrix drawn entry by entry needs no word on
 * cells, and the number of pairs says nothing of a full matrix of values.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/figure/scene.h"

#define EXACT_MOST 1e5 /* counts below are written out */

static int64_t height_of(const Grid *grid)
{
    return grid->region.row1 - grid->region.row0;
}

static int64_t width_of(const Grid *grid)
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
    double width = (double)width_of(grid);

    return clipped_sum(start + (double)height_of(grid), width) - clipped_sum(start, width);
}

/* Values everywhere, or everywhere a causal run may have some. */
static bool is_plain(const Panel *panel, const Grid *grid)
{
    double  area = (double)height_of(grid) * (double)width_of(grid);
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

/* The next part of a caption. */
static const char *comma(const Text *out)
{
    return out->length ? ", " : "";
}

static void caption_count(const Panel *panel, const Grid *grid, Text *out)
{
    double area = (double)height_of(grid) * (double)width_of(grid);
    char   count[32];

    if (area < EXACT_MOST)
        text_addf(out, "%.0f of %.0f", grid->count, area);
    else
        text_add(out, format_count(grid->count, count, sizeof(count)));
    text_addf(out, " %s%s (%.3g %%)", entries_name(panel->view),
              panel->view->kind == VIEW_HOPS && !panel->minus ? " reached" : "",
              area > 0 ? 100 * grid->count / area : 0);
}

static void caption_entries(const Panel *panel, const Grid *grid, Text *out)
{
    if (!shows_values(panel) || panel->view->kind == VIEW_HOPS || !is_plain(panel, grid))
        caption_count(panel, grid, out);
}

/* "buckets 0 to 5"; "forward, backward: 12 of 90 entries (13.3 %)", as not every entry has one. */
static void caption_categories(const Panel *panel, const Grid *grid, Text *out)
{
    size_t begun = out->length;

    categories_text(panel, grid, out);
    if (!panel->view->categories)
        return;
    if (out->length > begun)
        text_add(out, ": ");
    caption_count(panel, grid, out);
}

/* Cells differ by at most one entry each way; the larger size is named. */
static void caption_cell(const Panel *panel, const Grid *grid, bool categories, Text *out)
{
    int64_t rows = (height_of(grid) + grid->rows - 1) / grid->rows;
    int64_t cols = (width_of(grid) + grid->cols - 1) / grid->cols;
    bool    shade = panel->pool == POOL_COVER && !categories;

    if (rows == 1 && cols == 1)
        return;
    text_addf(out, "%s%s %s %lld x %lld", comma(out),
              categories ? "majority" : shade ? "one cell" : pool_name(panel->pool),
              shade ? "=" : "of", (long long)rows, (long long)cols);
    if (shade)
        text_addf(out, ", shade = %s", pool_name(POOL_COVER));
}

/* "query at row 5, column 7 sees 12 of 256 pixels (4.69 %)" */
static void caption_picture(const Panel *panel, const Grid *grid, Text *out)
{
    text_addf(out, "query at row %lld, column %lld sees %.0f of %lld pixels (%.3g %%)",
              (long long)panel->mark_row, (long long)panel->mark_col, grid->count,
              (long long)panel->pixel_count, 100 * grid->count / (double)panel->pixel_count);
}

/* "micro-batches 0 to 3, 42.9 % idle": a value is twice the number, and one more going back. */
static void caption_schedule(const Grid *grid, Text *out)
{
    double first = floor(grid->value_min / 2), last = floor(grid->value_max / 2);
    double cells = (double)height_of(grid) * (double)width_of(grid);

    if (first < last)
        text_addf(out, "micro-batches %.0f to %.0f", first, last);
    else
        text_addf(out, "micro-batch %.0f", last);
    text_addf(out, ", %.3g %% idle", 100 * (1 - grid->count / cells));
}

void panel_caption(const Panel *panel, const Grid *grid, char *text, size_t size)
{
    Text out = { 0 };
    bool schedule = panel_shows_schedule(panel);
    bool categories = (panel->view->kind == VIEW_BUCKETS && !panel->minus) || schedule;

    if (panel->picture)
        caption_picture(panel, grid, &out);
    else if (schedule)
        caption_schedule(grid, &out);
    else if (categories)
        caption_categories(panel, grid, &out);
    else
        caption_entries(panel, grid, &out);
    caption_cell(panel, grid, categories, &out);
    if (panel_style(panel) == STYLE_VALUE && panel->scale != SCALE_LINEAR)
        text_addf(&out, "%s%s scale", comma(&out), scale_name(panel->scale));
    if (panel->view->summary && !panel->minus && panel->plane < view_planes(panel->view))
        text_addf(&out, "%s%s", comma(&out), panel->view->summary[panel->plane]);
    if (panel->view->found && !isnan(panel->view->found->share[panel->plane]))
        text_addf(&out, "%s%.1f %% found", comma(&out),
                  100 * panel->view->found->share[panel->plane]);
    if (panel->view->origin) /* drawn numbers show as noise: say so */
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
    snprintf(text, size, "%s", text_str(&out));
    text_free(&out);
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
    for (int k = 0; view->kind == VIEW_SIGNED && k < 4; k++) /* the name tells */
        if (strstr(view->name, signs[k][0]))
            return signs[k][1];
    return view->kind < VIEW_KIND_COUNT && names[view->kind] ? names[view->kind] : QUANTITY_ANY;
}
