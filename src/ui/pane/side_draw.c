/* side_draw.c -- the strips of a pane on the screen: bars right of its matrix for the rows,
 * above it for the columns; the cursor's own numbers stand in their place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/screen/compare.h"
#include "ui/shell/actions.h"

#define NARROW 7  /* columns of the bars of rows, with the blank before them */
#define WIDE 11
#define WIDE_FROM 60 /* columns of the matrix's room */
#define TALL_FROM 20 /* its lines, from which the bars of columns have two */

/* ---- what is asked for ---------------------------------------------------------- */

static const View *view_for(Ui *ui, const Pane *pane, Error *err)
{
    const View *view = pane_differs(ui, pane) ? pane_numbers(pane) : pane_view(pane);

    if (ui->compare.strips == MARGIN_NONE || !view || pane->pinned)
        return NULL;
    return margin_view(pane->result->run, view, ui->compare.strips, err);
}

Area strips_room(Ui *ui, Pane *pane, Area area)
{
    Error err = ERROR_INIT;
    int   lines = area.h >= TALL_FROM ? 2 : 1;

    if (!view_for(ui, pane, &err) || area.h < 4 || area.w < 3 * NARROW)
        return (Area){ 0 };
    return (Area){ .w = area.w >= WIDE_FROM ? WIDE : NARROW,
                   .h = ui->compare.strips == MARGIN_SUMS ? lines : 0 };
}

/* The same of pane 1, where this one shows the difference to it. */
static const View *minus_for(Ui *ui, const Pane *pane)
{
    const Pane *first = &ui->compare.panes[0];
    Error       err = ERROR_INIT;

    if (!pane_differs(ui, pane) || ui->compare.strips == MARGIN_KEPT)
        return NULL;
    return margin_view(first->result->run, pane_numbers(first), ui->compare.strips, &err);
}

void strips_want(Ui *ui, Pane *pane)
{
    Pane        *first = &ui->compare.panes[0];
    Error        err = ERROR_INIT;
    const View  *view = view_for(ui, pane, &err), *minus = view ? minus_for(ui, pane) : NULL;
    MarginRequest request;
    LensView     sight;
    Panel        panel;

    if (!view || !pane->beside.w || !pane_panel(ui, pane, &panel)) {
        side_refuse(&ui->draughtsman, &pane->side, err.text);
        return;
    }
    sight = lens_view(&pane->lens, &pane->shape);
    request = (MarginRequest){
        .kind = ui->compare.strips,
        .run = pane->result->run,
        .view = view,
        .minus = minus,
        .plane = pane_plane(pane, view),
        .minus_plane = minus ? pane_plane(pane, minus) : 0,
        .head = pane->head < pane->result->run->h ? pane->head : 0,
        .excluded = pane_excludes(pane) ? pane->excluded : -1,
        .row0 = sight.row.first,
        .row1 = sight.row.last,
        .row_order = panel.row_order,
    };
    if (request.kind == MARGIN_SUMS)
        request.query_count = pane_marked(ui, pane, request.queries);
    side_want(&ui->draughtsman, &pane->side, &request, pane->result,
              minus ? first->result : NULL);
}

/* ---- bars ------------------------------------------------------------------------ */

typedef struct Bars {
    Ui            *ui;
    const Margin   *margin;
    bool           rows;
    const int32_t *order;
    const LensAxis *axis;
    int            per;    /* pixels of a character along the axis */
    double         most;
    int64_t        excluded; /* entry that does not count; -1: none */
} Bars;

/* Entries of the pixels from `pixel` on; false: there are none. */
static bool entries_at(const Bars *b, int pixel, int64_t *first, int64_t *last)
{
    int64_t next = lens_entry(b->axis, pixel + b->per);

    *first = lens_entry(b->axis, pixel);
    if (*first < 0)
        return false;
    *last = next < 0 ? b->axis->last : next > *first ? next : *first + 1;
    return true;
}

static double value_at(const Bars *b, int pixel)
{
    const double *values = b->rows ? b->margin->row : b->margin->col;
    int64_t       first, last;

    return entries_at(b, pixel, &first, &last) ? margin_mean(values, b->order, first, last)
                                               : (double)NAN;
}

/* Eighths of a bar of so many characters; something that is not 0 shows. */
static int eighths(double value, double most, int characters)
{
    int length = (int)lround(fmin(fabs(value) / most, 1) * 8 * characters);

    return length == 0 && fabs(value) > 0 ? 1 : length;
}

static Style bar_style(const Bars *b, double value)
{
    return ui_style(b->ui, value < 0 ? ROLE_WARN : ROLE_METER);
}

static void draw_row_bar(const Bars *b, int y, int x, int width, double value)
{
    int length = isnan(value) ? 0 : eighths(value, b->most, width);

    for (int c = 0; c < width && length > 8 * c; c++) {
        int part = length - 8 * c > 8 ? 8 : length - 8 * c;

        if (!b->ui->term->utf8 && part < 4 && c > 0)
            break;
        term_char(b->ui->term, y, x + c,
                  b->ui->term->utf8 ? 0x2590u - (uint32_t)part : '=', bar_style(b, value));
    }
}

static void draw_col_bar(const Bars *b, int bottom, int x, int height, double value)
{
    static const char ascii[] = " .:-=+*#%";
    int               length = isnan(value) ? 0 : eighths(value, b->most, height);

    for (int c = 0; c < height && length > 8 * c; c++) {
        int part = length - 8 * c > 8 ? 8 : length - 8 * c;

        term_char(b->ui->term, bottom - c, x,
                  b->ui->term->utf8 ? 0x2580u + (uint32_t)part : (uint32_t)ascii[part],
                  bar_style(b, value));
    }
}

/* As many digits as fit; a ~ before what was not read of this entry alone. */
static void number_fit(double value, bool about, int width, char *text, size_t size)
{
    text[0] = '\0';
    for (int digits = 4; !isnan(value) && digits > 0; digits--) {
        snprintf(text, size, "%s%.*g", about ? "~" : "", digits, value);
        if (term_width(text) <= width)
            return;
    }
}

/* The number of the cursor's row or column: its own, else of what it is shown with. */
static void cursor_number(const Bars *b, int64_t at, int width, char *text, size_t size)
{
    const double *values = b->rows ? b->margin->row : b->margin->col;
    double        own = values[b->order ? b->order[at] : at];
    int           pixel = lens_pixel(b->axis, at);
    bool          about = isnan(own) || (!b->rows && b->margin->share < 1 && !b->margin->queries);

    if (!b->rows && (b->order ? b->order[at] : at) == b->excluded) {
        snprintf(text, size, "\xc3\x97");
        return;
    }
    if (isnan(own) && pixel >= 0)
        own = value_at(b, pixel / b->per * b->per);
    number_fit(own, about, width, text, size);
}

static void settle(Bars *b, int characters)
{
    int64_t seen = b->axis->last - b->axis->first;
    int64_t each = characters > 0 ? (seen + characters - 1) / characters : seen;

    b->most = margin_most(b->margin, b->rows, b->order, b->axis->first, b->axis->last,
                         each > 0 ? each : 1);
}

static void draw_rows(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                      GlyphSize glyph, int used)
{
    Area canvas = pane->canvas;
    Bars b = { .ui = ui, .margin = &pane->side.margin, .rows = true, .order = panel->row_order,
               .axis = &v->row, .per = glyph.down, .excluded = -1 };
    int  x = canvas.x + used + 1, width = pane->beside.w - 1, cursor;
    int  lines = (int)(v->row.cells * v->row.size + glyph.down - 1) / glyph.down;
    char text[32];

    settle(&b, lines);
    cursor = lens_pixel(&v->row, pane->lens.q);
    cursor = cursor < 0 ? -1 : (cursor + v->row.size / 2) / glyph.down;
    term_text(ui->term, canvas.y - 1, x, width, margin_unit(b.margin), ui_style(ui, ROLE_DIM));
    for (int y = 0; y < lines && y < canvas.h; y++)
        if (y != cursor)
            draw_row_bar(&b, canvas.y + y, x, width, value_at(&b, y * glyph.down));
    if (cursor < 0)
        return;
    cursor_number(&b, pane->lens.q, width, text, sizeof(text));
    term_text(ui->term, canvas.y + cursor, x, width, text, ui_style(ui, ROLE_KEY));
}

static void draw_cols(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                      GlyphSize glyph, int used)
{
    Area canvas = pane->canvas;
    Bars b = { .ui = ui, .margin = &pane->side.margin, .order = panel->col_order, .axis = &v->col,
               .per = glyph.across, .excluded = pane->side.wanted.excluded };
    int  bottom = canvas.y - 2, gutter = canvas.x - pane->area.x - 2;
    char text[32];

    settle(&b, used / glyph.columns);
    for (int x = 0; x < used; x++)
        draw_col_bar(&b, bottom, canvas.x + x, pane->beside.h,
                     value_at(&b, x / glyph.columns * glyph.across));
    cursor_number(&b, pane->lens.k, gutter, text, sizeof(text));
    term_text(ui->term, bottom, canvas.x - 1 - term_width(text), gutter, text,
              ui_style(ui, ROLE_KEY));
}

void strips_draw(Ui *ui, Pane *pane)
{
    const Margin *margin = &pane->side.margin;
    Panel        panel;
    LensView     v;
    GlyphSize    glyph;
    int          used;

    if (!pane->beside.w || !pane_panel(ui, pane, &panel))
        return;
    if (margin->kind == MARGIN_NONE || margin->rows != view_rows(panel.view) ||
        margin->cols != view_cols(panel.view)) {
        term_text(ui->term, pane->canvas.y - 1, pane->canvas.x + pane->canvas.w + 1,
                  pane->beside.w - 1, *pane->side.problem ? "!" : "\xe2\x80\xa6",
                  ui_style(ui, ROLE_DIM));
        return;
    }
    v = lens_view(&pane->lens, &pane->shape);
    glyph = glyphs_size(glyphs_for(ui->term, ui->glyphs, &panel));
    used = (int)(v.col.cells * v.col.size + glyph.across - 1) / glyph.across * glyph.columns;
    used = used < pane->canvas.w ? used : pane->canvas.w;
    draw_rows(ui, pane, &panel, &v, glyph, used);
    if (margin->col && pane->beside.h)
        draw_cols(ui, pane, &panel, &v, glyph, used);
}

/* ---- words ------------------------------------------------------------------------ */

static const char *const words[MARGIN_KINDS] = {
    [MARGIN_NONE] = "no strips",
    [MARGIN_SUMS] = "strips: sums of rows and columns",
    [MARGIN_ENTROPY] = "strips: entropy of each row, in nats",
    [MARGIN_KEPT] = "strips: share of each query's exact attention on allowed pairs",
};

void strips_describe(Ui *ui, const Pane *pane, Text *out)
{
    const Side *side = &pane->side;

    if (ui->compare.strips == MARGIN_NONE)
        return;
    text_addf(out, " \xe2\x94\x82 %s%s", pane->beside.w && !*side->problem ? "" : "no ",
              margin_name(ui->compare.strips));
    if (side->margin.queries)
        text_add(out, " (marked)");
    if (side->margin.kind != MARGIN_NONE && side->margin.share < 1)
        text_addf(out, ", %.2g%% of the rows", 100 * side->margin.share);
}

void action_strips_next(Ui *ui)
{
    Pane *pane = compare_focus(ui);
    Error err = ERROR_INIT;

    ui->compare.strips = (MarginKind)((ui->compare.strips + 1) % MARGIN_KINDS);
    if (pane && pane_view(pane) && ui->compare.strips != MARGIN_NONE && !view_for(ui, pane, &err))
        ui_say(ui, ROLE_DIM, "no %s here: %s", margin_name(ui->compare.strips), err.text);
    else
        ui_say(ui, ROLE_DIM, "%s", words[ui->compare.strips]);
    for (int i = 0; i < ui->compare.count; i++)
        if (ui->compare.panes[i].area.h)
            pane_lay_out(ui, &ui->compare.panes[i], ui->compare.panes[i].area);
}
