/* plot_cells_key.c -- names for which a small plot has no place among its points: they have a
 * number there, and stand with it in a key below. */
#include <stdio.h>
#include <string.h>

#include "draw/text/field.h"

/* Those of the same series, then of the same point, come first. */
static bool is_before(const NameKey *key, int at, int series, int64_t point)
{
    return key->items[at].series < series ||
           (key->items[at].series == series && key->items[at].point < point);
}

int cells_key_number(const Field *f, const PlotSeries *s, int64_t point)
{
    int series = (int)(s - f->plot->series);

    for (int k = 0; f->key && k < f->key->count; k++)
        if (f->key->items[k].series == series && f->key->items[k].point == point)
            return k + 1;
    return 0;
}

bool cells_key_take(Field *f, const PlotSeries *s, int64_t point)
{
    NameKey *key = f->key;

    if (!key || key->full || key->wanted + key->count >= NAMES_MOST)
        return false;
    key->want[key->wanted].series = (int)(s - f->plot->series);
    key->want[key->wanted++].point = point;
    return true;
}

bool cells_key_grow(NameKey *key)
{
    bool grew = key->wanted > 0;

    for (int k = 0; k < key->wanted; k++) {
        int at = key->count;

        for (; at > 0 && !is_before(key, at - 1, key->want[k].series, key->want[k].point); at--)
            key->items[at] = key->items[at - 1];
        key->items[at] = key->want[k];
        key->count++;
    }
    key->wanted = 0;
    return grew;
}

/* "o1 attend"; a line, which has no letter: "2 sgemm 24 GFLOP/s". */
static int put_item(const Field *f, int at, int y, int x, bool draw)
{
    const PlotSeries *s = &f->plot->series[f->key->items[at].series];
    int64_t           point = f->key->items[at].point;
    const char       *name = point < 0 ? s->name : s->labels[point];
    char              number[16];
    int               length, letter = point < 0 ? 0 : 1;

    snprintf(number, sizeof(number), "%d ", at + 1);
    length = (int)strlen(number);
    if (draw && letter)
        cells_put(f->out, y, x, (uint32_t)plot_letter(s->hue), s->hue);
    if (draw) {
        cells_text(f->out, y, x + letter, length, number, s->hue < 0 ? PLOT_INK_TEXT : s->hue,
                   f->utf8);
        cells_cut(f->out, y, x + letter + length, f->out->width - x - letter - length, name,
                  PLOT_INK_TEXT, f->utf8);
    }
    return letter + length + cells_width(name);
}

int cells_key(const Field *f, int top, bool draw)
{
    int x = 0, line = 0;

    for (int k = 0; k < f->key->count; k++) {
        int width = put_item(f, k, 0, 0, false);

        if (x && x + width > f->out->width) {
            x = 0;
            line++;
        }
        put_item(f, k, top + line, x, draw);
        x += width + 2;
    }
    return f->key->count ? line + 1 : 0;
}
