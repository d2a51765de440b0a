/* load_draw.c -- the loads of a pane's view on the screen (View.load, View.row_load): what each
 * column or row holds, as numbers where they fit, else as bars, and what found no place.
 *
 * Below the columns stands a line for what is used and one for what is over; where there is
 * room a block of bars stands above them, with the limit as a line.  Rows have a bar each.
 */
#include <stdio.h>

#include "ui/screen/compare.h"

#define ROW_BARS 7   /* columns of the bars of rows, with the blank before them */
#define WIDE_FROM 30 /* columns of the matrix's room, from which rows have bars */
#define BARS 4       /* lines of the block of bars */
#define TALL_FROM 26 /* lines of the matrix's room, from which there is one */
#define LOW_MOST 8   /* of fewer lines nothing is taken */

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
        room.h = 1 + (cols->over.data != NULL) + (canvas.h >= TALL_FROM ? BARS : 0);
    if (panel->view->row_load && canvas.w >= WIDE_FROM)
        room.w = ROW_BARS;
    return room;
}

/* ---- numbers ---------------------------------------------------------------- */

/* The larger of what the entries of one character hold. */
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

/* Entries [*first, *last) of the character at a pixel; false: none begins there. */
static bool entries_at(const Loads *b, int pixel, int64_t *first, int64_t *last)
{
    int64_t next;

    *first = lens_entry(b->axis, pixel);
    next = lens_entry(b->axis, pixel + b->per);
    if (*first < 0)
        return false;
    *last = next < 0 ? b->axis->last : next > *first ? next : *first + 1;
    return true;
}

/* ---- drawing ---------------------------------------------------------------- */

static Style style_of(bool over)
{
    Rgb rgb = over ? colour_lost() : colour_load();

    return (Style){ .fg = ink_of(rgb, colour_nearest_256(rgb)) };
}

/* So many eighths of the character, filled from below. */
static void draw_part(const Loads *b, int y, int x, int64_t part, Style style)
{
    static const char ascii[] = " .:-=+*#%";

    if (part > 0)
        term_char(b->ui->term, y, x,
                  b->ui->term->utf8 ? 0x2580u + (uint32_t)part : (uint32_t)ascii[part], style);
}

/* Eighths of `lines` characters; something that is not 0 shows. */
static int64_t eighths(const Loads *b, int64_t value, int lines)
{
    int64_t length = value * 8 * lines / b->most;

    return length || !value ? length : 1;
}

/* What is over stands upon what is used. */
static void draw_column(const Loads *b, int bottom, int x, int64_t used, int64_t over)
{
    int64_t low = eighths(b, used, BARS), high = eighths(b, used + over, BARS);
    int64_t limit = b->load->limit ? eighths(b, b->load->limit, BARS) : -1;

    for (int c = 0; c < BARS; c++) {
        int64_t from = 8 * (int64_t)c, part = low - from, whole = high - from;
        Style   style = style_of(part <= 0);

        if (part > 0 && part < 8 && whole > part)
            style.bg = style_of(true).fg;
        part = part > 0 ? part : whole;
        if (part > 0)
            draw_part(b, bottom - c, x, part < 8 ? part : 8, style);
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

static void draw_line(const Loads *b, const Pane *pane, int y, int used_width, GlyphSize glyph,
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
        if (entries_at(b, x / glyph.columns * glyph.across, &first, &last)) {
            int64_t value = held(b, first, last, &lost);

            draw_part(b, y, pane->canvas.x + x, eighths(b, over ? lost : value, 1),
                      style_of(over));
        }
}

static void draw_cols(Loads *b, const Pane *pane, int y, int used_width, GlyphSize glyph)
{
    int lines = 1 + (b->load->over.data != NULL);

    find_most(b);
    for (int x = 0; pane->loads.h >= BARS + lines && x < used_width; x++) {
        int64_t first, last, over, used;

        if (!entries_at(b, x / glyph.columns * glyph.across, &first, &last))
            continue;
        used = held(b, first, last, &over);
        draw_column(b, y + BARS - 1, pane->canvas.x + x, used, over);
    }
    y += pane->loads.h >= BARS + lines ? BARS : 0;
    draw_line(b, pane, y, used_width, glyph, false);
    if (b->load->over.data)
        draw_line(b, pane, y + 1, used_width, glyph, true);
}

/* "▆▆▆ 12" while there is room: the number stands behind the bar. */
static void draw_rows(Loads *b, const Pane *pane, int used_width, int lines)
{
    int x = pane->canvas.x + used_width + 1, width = pane->loads.w - 1;

    find_most(b);
    for (int y = 0; y < lines && y < pane->canvas.h; y++) {
        int64_t first, last, over, used;
        bool    own;

        if (!entries_at(b, y * b->per, &first, &last))
            continue;
        used = held(b, first, last, &over);
        own = b->axis->cells == b->axis->last - b->axis->first &&
              lens_pixel(b->axis, first) / b->per == y;
        for (int c = 0; c < width && 8 * c < eighths(b, used, width); c++)
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
    int         lines = (int)(v.row.cells * v.row.size + glyph.down - 1) / glyph.down;
    int         width = (int)(v.col.cells * v.col.size + glyph.across - 1) / glyph.across;
    Loads       b = { .ui = ui, .plane = panel->plane };

    width = width * glyph.columns < pane->canvas.w ? width * glyph.columns : pane->canvas.w;
    lines = lines < pane->canvas.h ? lines : pane->canvas.h;
    if (pane->loads.h) {
        b.load = view->load;
        b.axis = &v.col;
        b.order = panel->col_order;
        b.per = glyph.across;
        draw_cols(&b, pane, pane->canvas.y + lines, width, glyph);
    }
    if (pane->loads.w) {
        b.load = view->row_load;
        b.axis = &v.row;
        b.order = panel->row_order;
        b.per = glyph.down;
        draw_rows(&b, pane, width, lines);
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
