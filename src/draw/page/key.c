/* key.c -- the legend, with the key that all plots of a page share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/page/sheet.h"

typedef struct KeyItem {
    char text[PLOT_NAME];
    bool swatch;
    bool dot; /* in the swatch */
    LegendMark mark;
    Rgb  rgb;
    PlotKeyEntry of; /* series NULL: none; else its sign is drawn */
} KeyItem;

#define KEY_MOST (SHEET_ITEMS + 4 + PLOT_SERIES_MOST)

/* The series of the key that all plots share. */
static int series_items(const Sheet *sheet, KeyItem *items)
{
    PlotKeyEntry entries[PLOT_SERIES_MOST];
    int          count = sheet_shared_key(sheet, entries);

    for (int k = 0; k < count; k++) {
        items[k] = (KeyItem){ .of = entries[k] };
        snprintf(items[k].text, sizeof(items->text), "%s", entries[k].series->name);
    }
    return count;
}

/* Of no cause. */
static Rgb shade_of(const SheetStyle *style, double strength)
{
    Rgb grey = style->hues == HUES_PRINT ? component_colour_in(HUES_PRINT, COMPONENT_OTHER)
                                         : (Rgb){ 0x99, 0x99, 0x99 };

    return colour_shade(grey, strength, style->dark);
}

/* The legend's items, then the shades that show the share of a cell. */
static int key_items(const Sheet *sheet, KeyItem *items)
{
    static const struct {
        const char *text;
        double      strength;
    } shades[] = { { "\xE2\x89\xA4 0.01 %", 0 }, { "1 %", 0.5 }, { "100 %", 1 } };
    int count = 0;

    for (; count < sheet->item_count; count++) {
        items[count] = (KeyItem){ .swatch = !sheet->items[count].words,
                                  .dot = sheet->items[count].dot,
                                  .mark = sheet->items[count].mark,
                                  .rgb = sheet->items[count].rgb };
        if (items[count].dot)
            items[count].rgb = sheet->style.rule;
        snprintf(items[count].text, sizeof(items->text), "%s", sheet->items[count].text);
    }
    count += series_items(sheet, items + count);
    if (!sheet->figure->legend || !sheet->scene.count || !scene_shows_cover(&sheet->scene))
        return count;
    items[count++] = (KeyItem){ .text = "share of a cell:" };
    for (int k = 0; k < 3; k++) {
        items[count] = (KeyItem){ .swatch = true };
        items[count].rgb = shade_of(&sheet->style, shades[k].strength);
        snprintf(items[count++].text, sizeof(items->text), "%s", shades[k].text);
    }
    return count;
}

static double item_width(Sheet *sheet, const KeyItem *item)
{
    const SheetStyle *s = &sheet->style;

    return canvas_text_width(sheet->canvas, item->text, FONT_SANS, s->legend) +
           (item->swatch ? 0.85 * s->legend + 1.5 * s->space : 0) +
           (item->of.series ? sheet_sign_width(sheet) : 0) + 3.5 * s->space;
}

/* As the cells look that the entry stands for. */
static void draw_swatch(Sheet *sheet, const KeyItem *item, double x, double y, double side)
{
    double dot = round(side / 3);

    if (item->mark == MARK_RING) {
        sheet_ring(sheet, x, y, side, side, fmax(1, round(side / 6)));
        return;
    }
    canvas_rect(sheet->canvas, x, y, side, side, item->rgb);
    if (item->dot)
        canvas_rect(sheet->canvas, x + dot, y + dot, dot, dot, sheet->style.ink);
    if (item->mark == MARK_CROSS && sheet_has_crosses(sheet))
        sheet_cross(sheet, x, y, side, side, fmax(1, side / 8));
}

static void draw_item(Sheet *sheet, const KeyItem *item, double x, double y)
{
    const SheetStyle *s = &sheet->style;
    double            side = round(0.85 * s->legend);
    char              text[sizeof(item->text) + 4];

    if (item->swatch) {
        draw_swatch(sheet, item, round(x), round(y + 0.2 * s->legend), side);
        x += side + 1.5 * s->space;
    }
    if (item->of.series) {
        sheet_sign(sheet, &item->of, x, y + 0.64 * s->legend);
        x += sheet_sign_width(sheet);
    }
    sheet_fit(sheet->canvas, item->text, s->legend, sheet->width - x, text, sizeof(text));
    canvas_text(sheet->canvas, x, y + s->legend, text,
                (CanvasText){ .size = s->legend, .rgb = s->ink });
}

int sheet_legend(Sheet *sheet, int x, int y, int width, bool draw)
{
    const SheetStyle *s = &sheet->style;
    KeyItem           items[KEY_MOST];
    int               count = key_items(sheet, items), lines = 0;
    double            line_height = s->legend * 1.5, all = 0;

    for (int k = 0; k < count; k++)
        all += item_width(sheet, &items[k]);
    for (int first = 0, next; first < count; first = next, lines++) {
        double used = item_width(sheet, &items[first]), at;
        bool   split = all > width + 3.5 * s->space; /* shades stay on one line */

        for (next = first + 1; next < count; next++) {
            double more = item_width(sheet, &items[next]);

            if (used + more > width + 3.5 * s->space ||
                (split && !items[next].swatch && !items[next].of.series &&
                 next >= sheet->item_count))
                break;
            used += more;
        }
        at = x + fmax(0, (width - used + 3.5 * s->space) / 2);
        for (int k = first; draw && k < next; k++) {
            draw_item(sheet, &items[k], at, y + s->space + lines * line_height);
            at += item_width(sheet, &items[k]);
        }
    }
    return lines ? (int)ceil(lines * line_height) + 2 * s->space : 0;
}
