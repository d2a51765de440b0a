/* key.c -- the legend and the colour bars.
 *
 * A bar has exactly the colours of the cells. Its labels are round numbers inside the range, on a
 * logarithmic bar whole decades below its top.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/page/sheet.h"

typedef struct KeyItem {
    char text[48];
    bool swatch;
    bool dot; /* in the swatch */
    Rgb  rgb;
} KeyItem;

#define KEY_MOST (SHEET_ITEMS + 4)

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
                                  .rgb = sheet->items[count].rgb };
        if (items[count].dot)
            items[count].rgb = sheet->style.rule;
        memcpy(items[count].text, sheet->items[count].text, sizeof(items[count].text));
    }
    if (!sheet->figure->legend || !sheet->scene.count || !scene_shows_cover(&sheet->scene))
        return count;
    items[count++] = (KeyItem){ .text = "share of a cell:" };
    for (int k = 0; k < 3; k++) {
        items[count] = (KeyItem){ .swatch = true };
        items[count].rgb = colour_shade(component_colour_in(sheet->style.hues, COMPONENT_OTHER),
                                        shades[k].strength, sheet->style.dark);
        snprintf(items[count++].text, sizeof(items->text), "%s", shades[k].text);
    }
    return count;
}

static double item_width(Sheet *sheet, const KeyItem *item)
{
    const SheetStyle *s = &sheet->style;

    return canvas_text_width(sheet->canvas, item->text, FONT_SANS, s->legend) +
           (item->swatch ? 0.85 * s->legend + 1.5 * s->space : 0) + 3.5 * s->space;
}

static void draw_item(Sheet *sheet, const KeyItem *item, double x, double y)
{
    const SheetStyle *s = &sheet->style;
    double            side = round(0.85 * s->legend), dot = round(side / 3);
    char              text[sizeof(item->text) + 4];

    if (item->swatch) {
        canvas_rect(sheet->canvas, round(x), round(y + 0.2 * s->legend), side, side, item->rgb);
        if (item->dot)
            canvas_rect(sheet->canvas, round(x) + dot, round(y + 0.2 * s->legend) + dot, dot, dot,
                        s->ink);
        x += side + 1.5 * s->space;
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
                (split && !items[next].swatch && next >= sheet->item_count))
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

/* ---- colour bars ------------------------------------------------------------ */

/* Values on both sides: logarithmic from each end to the least size, zero in the middle. */
static int signed_ticks(const Panel *panel, int most, double *places, char (*texts)[16])
{
    double peak = fmax(fabs(panel->lo), fabs(panel->hi));
    int    count = 0, step = most > 4 ? 1 : 2; /* half of the decades, or all */

    for (int k = -2; k <= 2; k += step, count++) {
        places[count] = 0.5 + 0.25 * k;
        snprintf(texts[count], sizeof(*texts), "%.2g",
                 k ? copysign(peak * pow(10, (abs(k) / 2.0 - 1) * SCALE_DECADES), k) : 0.0);
    }
    return count;
}

/* Powers of ten in the decades below the top. */
static int decade_ticks(const Panel *panel, int most, double *places, char (*texts)[16])
{
    double highest = log10(panel->hi);
    int    count = 0, each = most > 4 ? 1 : most > 2 ? 2 : 3;

    for (int power = (int)floor(highest + 1e-9); power >= highest - SCALE_DECADES - 1e-9;
         power -= each, count++) {
        places[count] = fmax(1 + (power - highest) / SCALE_DECADES, 0);
        snprintf(texts[count], sizeof(*texts), "%.3g", pow(10, power));
        if (power < -3 || power > 4)
            sheet_powers(texts[count], sizeof(*texts));
    }
    return count;
}

/* Number of multiples of the step from lo to hi. */
static double rounds_within(const Panel *panel, double step)
{
    return floor(panel->hi / step + 1e-9) - ceil(panel->lo / step - 1e-9) + 1;
}

void sheet_minus(char *text, size_t size)
{
    for (char *at = strchr(text, '-'); at && strlen(text) + 3 <= size; at = strchr(at, '-')) {
        memmove(at + 3, at + 1, strlen(at + 1) + 1);
        memcpy(at, "\xE2\x88\x92", 3);
    }
}

static int bar_ticks(const Panel *panel, int most, double *places, char (*texts)[16])
{
    double range = panel->hi - panel->lo, step, first;
    int    count = 0;
    bool   close = range_digits(panel->lo, panel->hi) > 3; /* the ends, to each other */

    if (panel->pool == POOL_COVER) { /* a fixed scale in decades */
        static const char *const shares[] = { "1e-4", "0.001", "0.01", "0.1", "1" };
        int                      each = most < 5 ? 4 : 1;

        for (int k = 0; k < 5; k += each, count++) {
            places[count] = k / 4.0;
            snprintf(texts[count], sizeof(*texts), "%s", shares[k]);
        }
        return count;
    }
    if (panel->scale == SCALE_ROW) {
        places[0] = 0;
        places[1] = 1;
        snprintf(texts[0], sizeof(*texts), "0");
        snprintf(texts[1], sizeof(*texts), "row max");
        return 2;
    }
    if (panel->scale == SCALE_LOG && panel->lo < 0 && most > 2)
        return signed_ticks(panel, most, places, texts);
    if (panel->scale == SCALE_LOG && panel->lo >= 0)
        return decade_ticks(panel, most, places, texts);
    if (most <= 2) { /* too short for round numbers */
        places[0] = 0;
        places[1] = 1;
        snprintf(texts[0], sizeof(*texts), close ? "%.5g" : "%.2g", panel->lo);
        snprintf(texts[1], sizeof(*texts), close ? "%.5g" : "%.2g", panel->hi);
        return 2;
    }
    step = plot_round_step(range, most);
    if (rounds_within(panel, step) < 2) { /* one number gives no scale */
        most = 5;
        step = plot_round_step(range, most);
    }
    first = ceil(panel->lo / step - 1e-9);
    /* Rounding may leave the top just below a round number. */
    for (double k = first; k * step <= panel->hi + 1e-5 * range && count <= most; k++, count++) {
        places[count] = fmin((k * step - panel->lo) / range, 1);
        snprintf(texts[count], sizeof(*texts), close ? "%.9g" : "%.5g", k * step + 0.0);
    }
    return count;
}

int sheet_bar_ticks(const Panel *panel, int most, double *places, char (*texts)[16])
{
    int count = bar_ticks(panel, most, places, texts);

    for (int k = 0; k < count; k++)
        sheet_minus(texts[k], sizeof(*texts));
    return count;
}

bool sheet_bar_shared(const Sheet *sheet, int panel)
{
    bool shared = false;

    for (int k = 0; k < sheet->figure->count; k++)
        shared = shared || (k != panel && figure_shares(sheet->figure, panel, k));
    return shared && !sheet->figure->panels[panel].bare; /* of bare ones there is but one bar */
}

const char *sheet_bar_note(const Sheet *sheet, int panel)
{
    bool shared = sheet_bar_shared(sheet, panel);
    bool log = sheet->scene.count && panel_is_log(&sheet->scene.panels[panel]);

    return log ? shared ? "log, shared" : "log" : shared ? "shared" : "";
}

void sheet_bar_name(const Sheet *sheet, int panel, char *text, size_t size)
{
    snprintf(text, size, "%s%s", panel_quantity(&sheet->figure->panels[panel]),
             *sheet_bar_note(sheet, panel) ? "," : "");
}

void sheet_powers(char *text, size_t size)
{
    static const char *const raised[] = { "\u2070", "\u00B9", "\u00B2", "\u00B3", "\u2074",
                                          "\u2075", "\u2076", "\u2077", "\u2078", "\u2079" };
    double value = strtod(text, NULL);
    int    power = value > 0 ? (int)floor(log10(value) + 1e-9) : 0, count;
    double front = value / pow(10, power);
    char   digits[16];

    if (!(value > 0))
        return;
    count = fabs(front - 1) < 1e-6 ? snprintf(text, size, "10")
                                   : snprintf(text, size, "%.3g\u00B7" "10", front);
    snprintf(digits, sizeof(digits), "%d", abs(power));
    if (power < 0)
        count += snprintf(text + count, size - (size_t)count, "\u207B");
    for (int k = 0; digits[k]; k++)
        count += snprintf(text + count, size - (size_t)count, "%s", raised[digits[k] - '0']);
}

/* The name ends at `bottom`; its note is a line of its own: bars have little room beside them. */
static void draw_bar_name(Sheet *sheet, int panel, double x, double bottom)
{
    CanvasText  look = { .size = sheet->style.tick, .rgb = sheet->style.ink };
    const char *note = sheet_bar_note(sheet, panel);
    char        name[80];

    sheet_bar_name(sheet, panel, name, sizeof(name));
    canvas_text(sheet->canvas, x, bottom - (*note ? 1.2 * look.size : 0), name, look);
    if (*note)
        canvas_text(sheet->canvas, x, bottom, note, look);
}

/* One row of pixels per colour, drawn as one image. */
static void draw_gradient(Sheet *sheet, const Panel *panel, int x, int y, int width, int height)
{
    ColourMap map = panel->minus ? MAP_DIVERGING : panel->map;
    Rgb      *rows = malloc((size_t)(height > 0 ? height : 1) * sizeof(*rows));

    for (int k = 0; rows && k < height; k++) {
        double t = height > 1 ? 1 - (double)k / (height - 1) : 1;

        rows[k] = panel_lets_through(panel, t) ? PICTURE_GREY : colour_of_value(map, t);
    }
    if (rows && height > 0)
        canvas_image(sheet->canvas, x, y, rows, NULL, 1, height, width, height);
    free(rows);
}

/* ---- hatches: negative differences, which a grey print shows as positive ones ---- */

#define HATCH_MOST  128 /* cells per side; smaller ones are no areas */
#define HATCH_ALPHA 0.5 /* the shade stays visible */
#define HATCH_LEAST 0.04 /* of the largest difference; nearer to zero the sign says nothing */

/* Strokes from the lower left to the upper right inside the box, on lines that all boxes share. */
static void hatch_box(Sheet *sheet, Box box, Rgb rgb)
{
    double each = sheet_points(&sheet->style, 4), width = sheet->style.hair;
    double low = box.x + box.y, high = low + box.w + box.h; /* x + y is the same on a line */

    for (double sum = ceil(low / each) * each; sum < high; sum += each) {
        double left = fmax(box.x, sum - box.y - box.h), right = fmin(box.x + box.w, sum - box.y);

        if (right > left)
            canvas_line(sheet->canvas, left, sum - left, right, sum - right, width, rgb,
                        HATCH_ALPHA);
    }
}

static bool is_hatched(const Sheet *sheet, int panel)
{
    const Panel *p = &sheet->scene.panels[panel];

    return sheet->style.hues == HUES_PRINT && panel_style(p) == STYLE_VALUE &&
           (p->minus || p->map == MAP_DIVERGING);
}

void sheet_hatch(Sheet *sheet, int panel)
{
    const Panel      *p = &sheet->scene.panels[panel];
    const Grid       *g = &sheet->scene.grids[panel];
    const PanelBoxes *b = &sheet->layout.panels[panel];
    double            middle = p->minus ? 0 : p->view->centre;

    if (!is_hatched(sheet, panel) || g->rows > HATCH_MOST || g->cols > HATCH_MOST)
        return;
    for (int64_t at = 0; at < g->rows * g->cols; at++) {
        Paint paint = panel_paint(p, g, at / g->cols, at % g->cols, PAGE_LEVELS, false);
        double value = grid_value(g, at / g->cols, at % g->cols, p->pool);

        if (!paint.background && middle - value > HATCH_LEAST * (p->hi - p->lo) / 2)
            hatch_box(sheet, layout_box(b, at), colour_ink_on(paint.rgb));
    }
}

#define PARTS 6 /* of a bar's lower half: strokes are black or white, as is read on the part */

void sheet_hatch_bar(Sheet *sheet, int panel, Box bar)
{
    const Panel *p = &sheet->scene.panels[panel];
    double       zero = ((p->minus ? 0 : p->view->centre) - p->lo) / (p->hi - p->lo);

    for (int k = 0; is_hatched(sheet, panel) && zero > 0 && k < PARTS; k++) {
        int top = bar.y + (int)lround((1 - zero + zero * k / PARTS) * bar.h);
        int end = bar.y + (int)lround((1 - zero + zero * (k + 1) / PARTS) * bar.h);
        Rgb rgb = colour_of_value(MAP_DIVERGING, zero * (1 - (k + 0.5) / PARTS));

        hatch_box(sheet, (Box){ bar.x, top, bar.w, end - top }, colour_ink_on(rgb));
    }
}

void sheet_bar(Sheet *sheet, int k)
{
    const SheetStyle *s = &sheet->style;
    const Panel      *panel = &sheet->scene.panels[k];
    Box               box = sheet->layout.panels[k].bar;
    int    x = box.x + 2 * s->space, w = (int)sheet_points(s, 5), count;
    double places[SHEET_TICKS], most = box.h / (2.4 * s->tick);
    char   texts[SHEET_TICKS][16];

    draw_gradient(sheet, panel, x, box.y, w, box.h);
    sheet_hatch_bar(sheet, k, (Box){ x, box.y, w, box.h });
    draw_bar_name(sheet, k, x, box.y - s->tick_length - s->space / 2.0 - 0.25 * s->tick);
    count = sheet_bar_ticks(panel, most < 2 ? 2 : most > 6 ? 6 : (int)most, places, texts);
    for (int t = 0; t < count; t++) {
        double y = box.y + (1 - places[t]) * (box.h - 1) + 0.5;

        canvas_line(sheet->canvas, x + w, y, x + w + s->tick_length, y, s->frame, s->ink, 1);
        canvas_text(sheet->canvas, x + w + s->tick_length + s->space / 2.0, y + 0.36 * s->tick,
                    texts[t], (CanvasText){ .size = s->tick, .rgb = s->ink });
    }
}
