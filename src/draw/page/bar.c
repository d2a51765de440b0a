/* bar.c -- the colour bars.
 *
 * A bar has exactly the colours of the cells. Its labels are round numbers inside the range, on a
 * logarithmic bar whole decades below its top. Counts of layers have a bar of steps, one a layer.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/page/sheet.h"

/* Values on both sides: logarithmic from each end to the least size, zero in the middle. */
static int signed_ticks(const Panel *panel, int most, double *places, char (*texts)[24])
{
    double peak = fmax(fabs(panel->lo), fabs(panel->hi));
    int    count = 0, step = most > 4 ? 1 : 2; /* the middles too, or only ends and zero */

    for (int k = -2; k <= 2; k += step, count++) {
        places[count] = 0.5 + 0.25 * k;
        snprintf(texts[count], sizeof(*texts), "%.2g",
                 k ? copysign(peak * pow(10, (abs(k) / 2.0 - 1) * SCALE_DECADES), k) : 0.0);
    }
    return count;
}

/* Powers of ten in the decades below the top: as such where one of them would be long. */
static int decade_ticks(const Panel *panel, int most, double *places, char (*texts)[24])
{
    double highest = log10(panel->hi), lowest = highest - SCALE_DECADES - 1e-9;
    int    count = 0, each = most > 4 ? 1 : most > 2 ? 2 : 3, top = (int)floor(highest + 1e-9);
    int    bottom = top - (int)floor((top - lowest) / each) * each;

    for (int power = top; power >= bottom; power -= each, count++) {
        places[count] = fmax(1 + (power - highest) / SCALE_DECADES, 0);
        snprintf(texts[count], sizeof(*texts), "%.3g", pow(10, power));
        if (power && (bottom < -3 || top > 4))
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

#define DEPTHS_APART 3 /* from this difference of counts on, a bar replaces the swatches */

int sheet_depths(const Sheet *sheet)
{
    double least = HUGE_VAL, most = 0;

    for (int k = 0; k < sheet->scene.count; k++)
        if (panel_style(&sheet->scene.panels[k]) == STYLE_HOPS) {
            most = fmax(most, sheet->scene.grids[k].value_max);
            least = fmin(least, fmax(1, sheet->scene.grids[k].value_min));
        }
    return most - least >= DEPTHS_APART ? (int)most : 0;
}

/* The middles of the steps 1..depths: every one, or the first and every second, fifth, ... */
static int depth_ticks(int depths, int most, double *places, char (*texts)[24])
{
    int step = (int)fmax(1, plot_round_step(depths, most)), count = 0;

    for (int at = 1; at <= depths && count < SHEET_TICKS; at += step - (at == 1 && step > 1)) {
        places[count] = (at - 0.5) / depths;
        snprintf(texts[count++], sizeof(*texts), "%d", at);
    }
    return count;
}

static int bar_ticks(const Panel *panel, int most, double *places, char (*texts)[24])
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

int sheet_bar_ticks(const Sheet *sheet, int panel, int most, double *places, char (*texts)[24])
{
    const Panel *own = &sheet->scene.panels[panel];
    int          count = panel_style(own) == STYLE_HOPS
                             ? depth_ticks(sheet_depths(sheet), most, places, texts)
                             : bar_ticks(own, most, places, texts);

    for (int k = 0; k < count; k++) {
        if (strpbrk(texts[k], "0123456789") && strchr(texts[k], 'e'))
            sheet_powers(texts[k], sizeof(*texts));
        sheet_minus(texts[k], sizeof(*texts));
    }
    return count;
}

/* The panels have one bar: a count of layers has the same colour everywhere. */
static bool have_one_bar(const Sheet *sheet, int a, int b)
{
    const Figure *f = sheet->figure;

    if (sheet->panels[a].apart || sheet->panels[b].apart)
        return false;
    return figure_shares(f, a, b) ||
           (panel_shows_hops(&f->panels[a]) && panel_shows_hops(&f->panels[b]) &&
            f->panels[a].map == f->panels[b].map);
}

bool sheet_has_bar(const Sheet *sheet, int panel)
{
    const Figure *f = sheet->figure;
    int           first = panel, row;

    while (first > 0 && f->panels[panel].bare) /* all have one */
        first--;
    for (int k = 0; k < first; k++)
        if (have_one_bar(sheet, panel, k))
            first = k;
    row = sheet->places[first].row;
    if (sheet->places[panel].row != row)
        return false;
    for (int k = panel + 1; k < f->count && sheet->places[k].row == row; k++)
        if (f->panels[panel].bare || have_one_bar(sheet, panel, k))
            return false;
    return panel_shows_hops(&f->panels[panel])
               ? !sheet->scene.count || sheet_depths(sheet) > 0
               : panel_style(&f->panels[panel]) == STYLE_VALUE;
}

bool sheet_bar_shared(const Sheet *sheet, int panel)
{
    bool shared = false;

    for (int k = 0; k < sheet->figure->count; k++)
        shared = shared || (k != panel && have_one_bar(sheet, panel, k));
    return shared && !sheet->figure->panels[panel].bare; /* of bare ones there is but one bar */
}

/* Other panels of its quantity share a bar, or have another one. */
static bool stands_beside_shared(const Sheet *sheet, int panel)
{
    const Panel *panels = sheet->figure->panels;
    const char  *quantity = panel_quantity(&panels[panel]);

    for (int k = 0; k < sheet->figure->count; k++)
        if (k != panel && panel_style(&panels[k]) == STYLE_VALUE &&
            !strcmp(panel_quantity(&panels[k]), quantity) &&
            (sheet->panels[k].apart || sheet_bar_shared(sheet, k)))
            return true;
    return false;
}

const char *sheet_bar_note(const Sheet *sheet, int panel)
{
    bool shared = sheet_bar_shared(sheet, panel);
    bool log = sheet->scene.count && panel_is_log(&sheet->scene.panels[panel]);

    if (sheet->panels[panel].apart || (!shared && stands_beside_shared(sheet, panel)))
        return log ? "log, own scale" : "own scale";
    return log ? shared ? "log, shared" : "log" : shared ? "shared" : "";
}

void sheet_bar_name(const Sheet *sheet, int panel, char *text, size_t size)
{
    snprintf(text, size, "%s%s", panel_quantity(&sheet->figure->panels[panel]),
             *sheet_bar_note(sheet, panel) ? "," : "");
}

/* Appends the power as raised digits. */
static void add_raised(int power, char *text, size_t size)
{
    static const char *const raised[] = { "\u2070", "\u00B9", "\u00B2", "\u00B3", "\u2074",
                                          "\u2075", "\u2076", "\u2077", "\u2078", "\u2079" };
    size_t used = strlen(text);
    char   digits[16];

    snprintf(digits, sizeof(digits), "%d", abs(power));
    if (power < 0)
        used += (size_t)snprintf(text + used, size - used, "\u207B");
    for (int k = 0; digits[k]; k++)
        used += (size_t)snprintf(text + used, size - used, "%s", raised[digits[k] - '0']);
}

void sheet_raise(char *text, size_t size)
{
    char *at = strchr(text, '^');
    int   power = at ? atoi(at + 1) : 0;

    if (!at)
        return;
    *at = '\0';
    add_raised(power, text, size);
}

static void write_power(double value, char *text, size_t size)
{
    int    power = (int)floor(log10(value) + 1e-9);
    double front = value / pow(10, power);

    if (fabs(front - 1) < 1e-6)
        snprintf(text, size, "10");
    else
        snprintf(text, size, "%.3g\u00B7" "10", front);
    add_raised(power, text, size);
}

void sheet_powers(char *text, size_t size)
{
    double value;

    if (*text == '-') {
        text++;
        size--;
    }
    value = strtod(text, NULL);
    if (value > 0)
        write_power(value, text, size);
}

/* Length of a number "1e-06" at `at`, whose exponent begins at *power; 0: there is none. */
static size_t power_at(const char *at, size_t *power)
{
    size_t front = strspn(at, "0123456789."), sign;

    if (!front || at[front] != 'e')
        return 0;
    sign = at[front + 1] == '-' || at[front + 1] == '+';
    *power = strspn(at + front + 1 + sign, "0123456789");
    return *power ? front + 1 + sign + *power : 0;
}

void sheet_write_powers(const char *text, char *out, size_t size)
{
    size_t used = 0;

    for (bool inner = false; *text && used + 1 < size; inner = !strchr(" (", *text++)) {
        size_t power, length = inner || used + 32 > size ? 0 : power_at(text, &power);

        if (length && length < 24 && strcspn(text + length, " ,;:)") == 0) {
            snprintf(out + used, 32, "%.*s", (int)length, text);
            sheet_powers(out + used, 32);
            used += strlen(out + used);
            text += length - 1;
        } else {
            out[used++] = *text;
        }
    }
    out[used] = '\0';
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
    int       depths = panel_style(panel) == STYLE_HOPS ? sheet_depths(sheet) : 0;
    Rgb      *rows = malloc((size_t)(height > 0 ? height : 1) * sizeof(*rows));

    for (int k = 0; rows && k < height; k++) {
        double t = height > 1 ? 1 - (double)k / (height - 1) : 1;

        if (depths) {
            Paint paint;

            hops_paint(&paint, panel->map, ceil((height - k - 0.5) * depths / height),
                       sheet->style.dark);
            rows[k] = paint.rgb;
            continue;
        }
        rows[k] = panel_lets_through(panel, t) ? picture_grey(panel->hues)
                                               : colour_of_value_in(panel->hues, map, t);
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

/* Strokes in the part of the bar that stands for negative differences. */
static void hatch_bar(Sheet *sheet, int panel, Box bar)
{
    const Panel *p = &sheet->scene.panels[panel];
    double       zero = ((p->minus ? 0 : p->view->centre) - p->lo) / (p->hi - p->lo);

    for (int k = 0; is_hatched(sheet, panel) && zero > 0 && k < PARTS; k++) {
        int top = bar.y + (int)lround((1 - zero + zero * k / PARTS) * bar.h);
        int end = bar.y + (int)lround((1 - zero + zero * (k + 1) / PARTS) * bar.h);
        Rgb rgb = colour_of_value_in(HUES_PRINT, MAP_DIVERGING, zero * (1 - (k + 0.5) / PARTS));

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
    char   texts[SHEET_TICKS][24];

    draw_gradient(sheet, panel, x, box.y, w, box.h);
    hatch_bar(sheet, k, (Box){ x, box.y, w, box.h });
    draw_bar_name(sheet, k, x, box.y - s->tick_length - s->space / 2.0 - 0.25 * s->tick);
    count = sheet_bar_ticks(sheet, k, most < 2 ? 2 : most > 6 ? 6 : (int)most, places, texts);
    for (int t = 0; t < count; t++) {
        double y = box.y + (1 - places[t]) * (box.h - 1) + 0.5;

        canvas_line(sheet->canvas, x + w, y, x + w + s->tick_length, y, s->frame, s->ink, 1);
        canvas_text(sheet->canvas, x + w + s->tick_length + s->space / 2.0, y + 0.36 * s->tick,
                    texts[t], (CanvasText){ .size = s->tick, .rgb = s->ink });
    }
}
