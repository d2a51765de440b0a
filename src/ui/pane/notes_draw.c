/* notes_draw.c -- marked cells of a pane and their words, over its matrix. */
#include <string.h>

#include "draw/text/unicode.h"
#include "ui/screen/compare.h"

/* Character at a pixel of the canvas. */
typedef struct Spot {
    int y, x, h, w;
} Spot;

static Spot spot_of(const Pane *pane, const LensView *v, GlyphSize glyph, Region r)
{
    int top = lens_pixel(&v->row, r.row0), left = lens_pixel(&v->col, r.col0);
    int low = lens_pixel(&v->row, r.row1 - 1), right = lens_pixel(&v->col, r.col1 - 1);
    Spot s = { .y = pane->canvas.y + top / glyph.down,
               .x = pane->canvas.x + left / glyph.across * glyph.columns };

    s.h = pane->canvas.y + (low + v->row.size - 1) / glyph.down + 1 - s.y;
    s.w = pane->canvas.x + ((right + v->col.size - 1) / glyph.across + 1) * glyph.columns - s.x;
    s.h = s.y + s.h > pane->canvas.y + pane->canvas.h ? pane->canvas.y + pane->canvas.h - s.y : s.h;
    s.w = s.x + s.w > pane->canvas.x + pane->canvas.w ? pane->canvas.x + pane->canvas.w - s.x : s.w;
    return top >= 0 && left >= 0 && low >= 0 && right >= 0 ? s : (Spot){ .h = 0 };
}

/* Brackets at both ends of each line of it; one character becomes a diamond. */
static void draw_spot(Ui *ui, Spot s)
{
    Style    style = ui_style(ui, ROLE_WARN);
    uint32_t one = ui->term->utf8 ? 0x25C6 : '*';

    style.attr |= ATTR_REVERSE | ATTR_BOLD;
    for (int y = s.y; y < s.y + s.h; y++) {
        bool edge = y == s.y || y == s.y + s.h - 1;

        if (s.w == 1 && edge)
            term_char(ui->term, y, s.x, s.h > 1 ? (ui->term->utf8 ? 0x2502 : '|') : one, style);
        if (s.w > 1) {
            term_char(ui->term, y, s.x, '[', style);
            term_char(ui->term, y, s.x + s.w - 1, ']', style);
        }
    }
}

/* Beside the spot on the side that has room; a row's at its beginning, a column's at its top. */
static void draw_words(Ui *ui, const Pane *pane, Spot s, const char *text)
{
    Area  c = pane->canvas;
    int   wide = utf8_columns(text) + 2, y = s.y + s.h / 2, x = s.x + s.w + 1;
    Style style = ui_style(ui, ROLE_WARN);

    style.attr |= ATTR_REVERSE;
    if (s.h >= c.h - 1)
        y = c.y;
    if (x + wide > c.x + c.w)
        x = s.x - 1 - wide;
    if (x < c.x)
        x = s.w >= c.w - 2 ? c.x + 1 : c.x;
    if (wide > c.w)
        wide = c.w;
    term_textf(ui->term, y, x, wide, style, " %s ", text);
}

void notes_draw(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v, GlyphSize glyph)
{
    Region sight = lens_region(v);

    for (int i = 0; i < panel->note_count; i++) {
        Region r;
        Spot   s;

        if (!note_region(&panel->notes[i], panel->row_order, panel->col_order, sight, &r))
            continue;
        s = spot_of(pane, v, glyph, r);
        if (s.h <= 0 || s.w <= 0)
            continue;
        draw_spot(ui, s);
        if (*panel->notes[i].text)
            draw_words(ui, pane, s, panel->notes[i].text);
    }
}
