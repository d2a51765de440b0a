/* plot_cells_parts.c -- characters, words and the lower axis of a plot; see
 * field.h. */
#include "draw/text/field.h"

#include <math.h>
#include <string.h>

#include "draw/text/utf8.h"

PlotCell *cells_at(PlotCells *c, int y, int x)
{
    return y >= 0 && x >= 0 && y < c->height && x < c->width ? &c->cells[y * c->width + x] : NULL;
}

void cells_put(PlotCells *c, int y, int x, uint32_t ch, int ink)
{
    PlotCell *cell = cells_at(c, y, x);

    if (cell)
        *cell = (PlotCell){ ch, ink };
}

int cells_text(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8)
{
    const unsigned char *s = (const unsigned char *)text;
    int                  used = 0;

    while (*s && used < room) {
        uint32_t ch = *s++;

        if (ch >= 0xC0) {
            int more = ch >= 0xE0 ? ch >= 0xF0 ? 3 : 2 : 1;

            for (ch &= 0x3Fu >> more; more > 0 && (*s & 0xC0) == 0x80; more--)
                ch = ch << 6 | (*s++ & 0x3F);
        }
        if (ch >= 128 && !utf8)
            ch = ch == 0xB7 || ch == 0x2212 ? '-' : '?';
        cells_put(c, y, x + used++, ch, ink);
    }
    return used;
}

int cells_width(const char *text)
{
    return utf8_columns(text);
}

void cells_cut(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8)
{
    cells_text(c, y, x, room, text, ink, utf8);
    if (cells_width(text) > room)
        cells_put(c, y, x + room - 1, utf8 ? 0x2026 : '~', ink);
}

/* Words have each the room there is, numbers are never cut. */
static int tick_width(const Field *f, const PlotTick *tick, int count)
{
    int room = f->w / (count > 0 ? count : 1) - 1, width = cells_width(tick->text);

    return !f->axis.words || width <= room || room < 3 ? width : room;
}

void cells_x_axis(Field *f)
{
    PlotCells *c = f->out;
    PlotTick   ticks[PLOT_TICKS_MOST];
    int        count = plot_ticks(&f->axis, f->w / 9, ticks), free_x = 0;

    for (int x = 0; x < f->w; x++)
        cells_put(c, f->y + f->h, f->x + x, f->utf8 ? 0x2500 : '-', PLOT_INK_AXIS);
    cells_put(c, f->y + f->h, f->x - 1, f->utf8 ? 0x2514 : '+', PLOT_INK_AXIS);
    for (int k = 0; k < count; k++) {
        int x = f->x + (int)lround(ticks[k].place * (f->w - 1));
        int width = tick_width(f, &ticks[k], count), left = x - width / 2;

        left = left + width > c->width ? c->width - width : left < 0 ? 0 : left;
        if (left < free_x)
            continue;
        cells_put(c, f->y + f->h, x, f->utf8 ? 0x252C : '+', PLOT_INK_AXIS);
        cells_cut(c, f->y + f->h + 1, left, width, ticks[k].text, PLOT_INK_TEXT, f->utf8);
        free_x = left + width + 1;
    }
}
