/* strips.c -- the strips of a pane on the screen: bars right of its matrix for the rows,
 * above it for the columns; the cursor's own numbers stand in their place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/state/panes.h"

#define NARROW 7  /* columns of the bars of rows, with the blank before them */
#define WIDE 11
#define STRIPS_WIDE_FROM 60 /* columns of the matrix's room */
#define STRIPS_TALL_FROM 20 /* its lines, from which the bars of columns have two */

/* ---- what is asked for ---------------------------------------------------------- */

static const View *view_for(Ui *ui, const Pane *pane, Error *err)
{
    const View *view = pane_differs(ui, pane) ? pane_numbers(pane) : pane_view(pane);

    if (ui->compare.look.strips == MARGIN_NONE || !view || pane->pinned)
        return NULL;
    return margin_view(pane->result->run, view, ui->compare.look.strips, err);
}

Area strips_room(Ui *ui, Pane *pane, Area area)
{
    Error err = ERROR_INIT;
    int   lines = area.h >= STRIPS_TALL_FROM ? 2 : 1;

    if (!view_for(ui, pane, &err) || area.h < 4 || area.w < 3 * NARROW)
        return (Area){ 0 };
    return (Area){ .w = area.w >= STRIPS_WIDE_FROM ? WIDE : NARROW,
                   .h = ui->compare.look.strips == MARGIN_SUMS ? lines : 0 };
}

/* The view of pane 1 that is subtracted, where this pane shows a difference. */
static const View *minus_for(Ui *ui, const Pane *pane)
{
    const Pane *first = &ui->compare.panes[0];
    Error       err = ERROR_INIT;

    if (!pane_differs(ui, pane) || ui->compare.look.strips == MARGIN_KEPT)
        return NULL;
    return margin_view(first->result->run, pane_numbers(first), ui->compare.look.strips, &err);
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
        .kind = ui->compare.look.strips,
        .run = pane->result->run,
        .view = view,
        .minus = minus,
        .plane = pane_plane(pane, view),
        .minus_plane = minus ? pane_plane(pane, minus) : 0,
        .head = pane->spec.head < pane->result->run->h ? pane->spec.head : 0,
        .excluded = pane_excludes(pane) ? pane->spec.excluded : -1,
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

/* Entries [*first, *last) of the character at a pixel, which has `per` pixels; false: none. */
static bool entries_at(const LensAxis *axis, int per, int pixel, int64_t *first, int64_t *last)
{
    int64_t next = lens_entry(axis, pixel + per);

    *first = lens_entry(axis, pixel);
    *last = next < 0 ? axis->last : next > *first ? next : *first + 1;
    return *first >= 0;
}

static double value_at(const Bars *b, int pixel)
{
    const double *values = b->rows ? b->margin->row : b->margin->col;
    int64_t       first, last;

    return entries_at(b->axis, b->per, pixel, &first, &last)
               ? margin_mean(values, b->order, first, last)
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

/* As many digits as fit; ~ marks a number that is not of this entry alone. */
static void number_fit(double value, bool about, int width, char *text, size_t size)
{
    text[0] = '\0';
    for (int digits = 4; !isnan(value) && digits > 0; digits--) {
        snprintf(text, size, "%s%.*g", about ? "~" : "", digits, value);
        if (term_width(text) <= width)
            return;
    }
    if (!isnan(value)) /* "-8e-10" in five columns: never a part of it */
        snprintf(text, size, "%s", fabs(value) < 1 ? "~0" : "\xe2\x80\xa6");
}

/* The number of the cursor's row or column, else the mean of the cell that shows it. */
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

static void scale_bars(Bars *b, int characters)
{
    int64_t seen = b->axis->last - b->axis->first;
    int64_t each = characters > 0 ? (seen + characters - 1) / characters : seen;

    b->most = margin_most(b->margin, b->rows, b->order, b->axis->first, b->axis->last,
                         each > 0 ? each : 1);
}

static void draw_row_strip(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                      GlyphSize glyph, int used)
{
    Area canvas = pane->canvas;
    Bars b = { .ui = ui, .margin = &pane->side.margin, .rows = true, .order = panel->row_order,
               .axis = &v->row, .per = glyph.down, .excluded = -1 };
    int  x = canvas.x + used + 1, width = pane->beside.w - 1, cursor;
    int  lines = (v->row.span + glyph.down - 1) / glyph.down;
    char text[32];

    scale_bars(&b, lines);
    cursor = lens_middle(&v->row, pane->lens.q);
    cursor = cursor < 0 ? -1 : cursor / glyph.down;
    term_text(ui->term, canvas.y - 1, x, width, margin_unit(b.margin), ui_style(ui, ROLE_DIM));
    for (int y = 0; y < lines && y < canvas.h; y++)
        if (y != cursor)
            draw_row_bar(&b, canvas.y + y, x, width, value_at(&b, y * glyph.down));
    if (cursor < 0)
        return;
    cursor_number(&b, pane->lens.q, width, text, sizeof(text));
    term_text(ui->term, canvas.y + cursor, x, width, text, ui_style(ui, ROLE_KEY));
}

static void draw_col_strip(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                      GlyphSize glyph, int used)
{
    Area canvas = pane->canvas;
    Bars b = { .ui = ui, .margin = &pane->side.margin, .order = panel->col_order, .axis = &v->col,
               .per = glyph.across, .excluded = pane->side.wanted.excluded };
    int  bottom = canvas.y - 2, gutter = canvas.x - pane->area.x - 2;
    char text[32];

    scale_bars(&b, used / glyph.columns);
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
    used = (v.col.span + glyph.across - 1) / glyph.across * glyph.columns;
    used = used < pane->canvas.w ? used : pane->canvas.w;
    draw_row_strip(ui, pane, &panel, &v, glyph, used);
    if (margin->col && pane->beside.h)
        draw_col_strip(ui, pane, &panel, &v, glyph, used);
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

    if (ui->compare.look.strips == MARGIN_NONE)
        return;
    text_addf(out, " \xe2\x94\x82 %s%s", pane->beside.w && !*side->problem ? "" : "no ",
              margin_name(ui->compare.look.strips));
    if (side->margin.queries)
        text_add(out, " (marked)");
    if (side->margin.kind != MARGIN_NONE && side->margin.share < 1)
        text_addf(out, ", %.2g%% of the rows", 100 * side->margin.share);
}

void strips_next(Ui *ui)
{
    Pane *pane = panes_focus(ui);
    Error err = ERROR_INIT;

    ui->compare.look.strips = (MarginKind)((ui->compare.look.strips + 1) % MARGIN_KINDS);
    if (pane && pane_view(pane) && ui->compare.look.strips != MARGIN_NONE &&
        !view_for(ui, pane, &err))
        ui_say(ui, ROLE_DIM, "no %s here: %s", margin_name(ui->compare.look.strips), err.text);
    else
        ui_say(ui, ROLE_DIM, "%s", words[ui->compare.look.strips]);
}

/* The loads of a pane's view on the screen (View.load, View.row_load): what each
 * column or row holds, as numbers where they fit, else as bars, and what found no place.
 *
 * Below the columns stands a line for what is used and one for what is over; where there is
 * room a block of bars stands above them, with the limit as a line.  Rows have a bar each.
 */

#define ROW_BARS 7   /* columns of the bars of rows, with the blank before them */
#define LOADS_WIDE_FROM 30 /* columns of the matrix's room, from which rows have bars */
#define BARS 4       /* lines of the block of bars */
#define LOADS_TALL_FROM 26 /* lines of the matrix's room, from which there is one */
#define LOW_MOST 8   /* shorter rooms give up no line */

typedef struct Loads {
    Ui             *ui;
    const ViewLoad *load;
    const LensAxis *axis;
    const int32_t  *order;
    int64_t         plane, most; /* the largest bar, the limit included */
    int             per;         /* pixels of a character */
} Loads;

/* ---- rooms ------------------------------------------------------------------ */

static bool has_loads(const Pane *pane, const Panel *panel)
{
    return (panel->view->load || panel->view->row_load) && !panel->minus && !panel->plot &&
           !pane->beside.w;
}

Area loads_room(const Pane *pane, const Panel *panel, Area canvas)
{
    const ViewLoad *cols = panel->view->load;
    Area            room = { 0 };

    if (!has_loads(pane, panel) || canvas.h < LOW_MOST)
        return room;
    if (cols)
        room.h = 1 + (cols->over.data != NULL) + (canvas.h >= LOADS_TALL_FROM ? BARS : 0);
    if (panel->view->row_load && canvas.w >= LOADS_WIDE_FROM)
        room.w = ROW_BARS;
    return room;
}

/* ---- numbers ---------------------------------------------------------------- */

/* The largest load of the entries of one character; *over: the largest overflow. */
static int64_t held(const Loads *b, int64_t first, int64_t last, int64_t *over)
{
    int64_t most = 0, lost = 0;

    for (int64_t e = first; e < last; e++) {
        int64_t more = 0, used = view_load(b->load, b->plane, b->order ? b->order[e] : e, &more);

        most = used > most ? used : most;
        lost = more > lost ? more : lost;
    }
    *over = lost;
    return most;
}

static void find_most(Loads *b)
{
    b->most = b->load->limit > 1 ? b->load->limit : 1;
    for (int64_t e = b->axis->first; e < b->axis->last; e++) {
        int64_t over, used = held(b, e, e + 1, &over);

        b->most = used + over > b->most ? used + over : b->most;
    }
}

/* ---- drawing ---------------------------------------------------------------- */

static Style style_of(bool over)
{
    Rgb rgb = over ? colour_lost() : colour_load();

    return (Style){ .fg = ink_of(rgb, colour_nearest_256(rgb)) };
}

/* A character filled from below to so many eighths. */
static void draw_load(const Loads *b, int y, int x, int64_t part, Style style)
{
    static const char ascii[] = " .:-=+*#%";

    if (part > 0)
        term_char(b->ui->term, y, x,
                  b->ui->term->utf8 ? 0x2580u + (uint32_t)part : (uint32_t)ascii[part], style);
}

/* Eighths of `lines` characters; something that is not 0 shows. */
static int64_t load_eighths(const Loads *b, int64_t value, int lines)
{
    int64_t length = value * 8 * lines / b->most;

    return length || !value ? length : 1;
}

/* The overflow is drawn above the used part. */
static void draw_column(const Loads *b, int bottom, int x, int64_t used, int64_t over)
{
    int64_t low = load_eighths(b, used, BARS), high = load_eighths(b, used + over, BARS);
    int64_t limit = b->load->limit ? load_eighths(b, b->load->limit, BARS) : -1;

    for (int c = 0; c < BARS; c++) {
        int64_t from = 8 * (int64_t)c, part = low - from, whole = high - from;
        Style   style = style_of(part <= 0);

        if (part > 0 && part < 8 && whole > part)
            style.bg = style_of(true).fg;
        part = part > 0 ? part : whole;
        if (part > 0)
            draw_load(b, bottom - c, x, part < 8 ? part : 8, style);
        else if (limit > from && limit <= from + 8)
            term_char(b->ui->term, bottom - c, x, b->ui->term->utf8 ? 0x2508 : '-',
                      ui_style(b->ui, ROLE_DIM));
    }
}

/* Each column has room for its number and a blank. */
static bool numbers_fit(const Loads *b, int columns)
{
    char text[24];

    return b->axis->cells == b->axis->last - b->axis->first &&
           snprintf(text, sizeof(text), "%lld", (long long)b->most) < columns;
}

static void draw_load_line(const Loads *b, const Pane *pane, int y, int used_width, GlyphSize glyph,
                           bool over)
{
    int columns = b->axis->size / glyph.across * glyph.columns;
    int gutter = pane->canvas.x - pane->area.x - 2;
    int64_t first, last, lost;

    term_text(b->ui->term, y, pane->area.x + 1, gutter,
              over ? b->load->over_name : b->load->used_name, style_of(over));
    if (numbers_fit(b, columns)) {
        for (int64_t e = b->axis->first; e < b->axis->last; e++) {
            int     x = lens_pixel(b->axis, e) / glyph.across * glyph.columns;
            int64_t value = held(b, e, e + 1, &lost);

            term_textf(b->ui->term, y, pane->canvas.x + x, columns, style_of(over), "%lld",
                       (long long)(over ? lost : value));
        }
        return;
    }
    for (int x = 0; x < used_width && pane->loads.h < BARS; x++)
        if (entries_at(b->axis, b->per, x / glyph.columns * glyph.across, &first, &last)) {
            int64_t value = held(b, first, last, &lost);

            draw_load(b, y, pane->canvas.x + x, load_eighths(b, over ? lost : value, 1),
                      style_of(over));
        }
}

static void draw_col_loads(Loads *b, const Pane *pane, int y, int used_width, GlyphSize glyph)
{
    int lines = 1 + (b->load->over.data != NULL);

    find_most(b);
    for (int x = 0; pane->loads.h >= BARS + lines && x < used_width; x++) {
        int64_t first, last, over, used;

        if (!entries_at(b->axis, b->per, x / glyph.columns * glyph.across, &first, &last))
            continue;
        used = held(b, first, last, &over);
        draw_column(b, y + BARS - 1, pane->canvas.x + x, used, over);
    }
    y += pane->loads.h >= BARS + lines ? BARS : 0;
    draw_load_line(b, pane, y, used_width, glyph, false);
    if (b->load->over.data)
        draw_load_line(b, pane, y + 1, used_width, glyph, true);
}

/* "▆▆▆ 12" while there is room: the number stands behind the bar. */
static void draw_row_loads(Loads *b, const Pane *pane, int used_width, int lines)
{
    int x = pane->canvas.x + used_width + 1, width = pane->loads.w - 1;

    find_most(b);
    for (int y = 0; y < lines && y < pane->canvas.h; y++) {
        int64_t first, last, over, used;
        bool    own;

        if (!entries_at(b->axis, b->per, y * b->per, &first, &last))
            continue;
        used = held(b, first, last, &over);
        own = b->axis->cells == b->axis->last - b->axis->first &&
              lens_pixel(b->axis, first) / b->per == y;
        for (int c = 0; c < width && 8 * c < load_eighths(b, used, width); c++)
            term_char(b->ui->term, pane->canvas.y + y, x + c, b->ui->term->utf8 ? 0x2584 : '=',
                      style_of(false));
        if (own)
            term_textf(b->ui->term, pane->canvas.y + y, x, width, ui_style(b->ui, ROLE_TEXT),
                       "%lld", (long long)used);
    }
}

void loads_draw(Ui *ui, const Pane *pane, const Panel *panel)
{
    const View *view = panel->view;
    Lens        lens = pane->lens;
    LensView    v = lens_view(&lens, &pane->shape);
    GlyphSize   glyph = glyphs_size(glyphs_for(ui->term, ui->glyphs, panel));
    int         lines = (v.row.span + glyph.down - 1) / glyph.down;
    int         width = (v.col.span + glyph.across - 1) / glyph.across;
    Loads       b = { .ui = ui, .plane = panel->plane };

    width = width * glyph.columns < pane->canvas.w ? width * glyph.columns : pane->canvas.w;
    lines = lines < pane->canvas.h ? lines : pane->canvas.h;
    if (pane->loads.h) {
        b.load = view->load;
        b.axis = &v.col;
        b.order = panel->col_order;
        b.per = glyph.across;
        draw_col_loads(&b, pane, pane->canvas.y + lines, width, glyph);
    }
    if (pane->loads.w) {
        b.load = view->row_load;
        b.axis = &v.row;
        b.order = panel->row_order;
        b.per = glyph.down;
        draw_row_loads(&b, pane, width, lines);
    }
}

/* ---- legend ----------------------------------------------------------------- */

static int legend_item(Ui *ui, int y, int x, const char *text, bool over, char letter)
{
    bool letters = !ui->term->utf8 || ui->term->colours == TERM_MONO;

    if (x + term_width(text) + 3 >= ui->term->cols)
        return x;
    term_char(ui->term, y, x, letters ? (uint32_t)letter : 0x25A0, style_of(over));
    return x + 4 + term_text(ui->term, y, x + 2, 40, text, ui_style(ui, ROLE_TEXT));
}

static int legend_load(Ui *ui, const ViewLoad *load, int y, int x)
{
    char text[64];

    snprintf(text, sizeof(text), load->limit ? "%s (%s %lld)" : "%s", load->used_name,
             load->limit_name, (long long)load->limit);
    return legend_item(ui, y, x, text, false, '=');
}

int legend_loads(Ui *ui, int y, int x)
{
    const ViewLoad  *loads = NULL, *rows = NULL;
    const ViewMarks *marks = NULL;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane       *pane = &ui->compare.panes[i];
        const Grid *grid = &pane->drawing.grid;
        Panel       panel;

        if (!pane->area.h || !grid->cells || !pane_panel(ui, pane, &panel))
            continue;
        loads = !loads && pane->loads.h ? panel.view->load : loads;
        rows = !rows && pane->loads.w ? panel.view->row_load : rows;
        for (int64_t c = 0; panel.view->marks && !marks && c < grid->rows * grid->cols; c++)
            marks = grid->cells[c].marked ? panel.view->marks : NULL;
    }
    if (marks)
        x = legend_item(ui, y, x, marks->name, true, marks->chosen ? 'o' : 'x');
    if (loads && loads->over.data && !(marks && !marks->chosen))
        x = legend_item(ui, y, x, loads->over_name, true, 'x');
    if (loads)
        x = legend_load(ui, loads, y, x);
    return rows ? legend_load(ui, rows, y, x) : x;
}
