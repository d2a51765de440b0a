/* roofs.c -- names of the ceilings of a roofline; see sheet.h.
 *
 * Points may fill the field on both sides of a level ceiling, and two ceilings may lie on one
 * another: so its name stands behind its right end, outside the field. The name of the slanted one
 * stands along it. Both are placed before the words of points, which keep off them.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/page/sheet.h"

#define ROOFS_MOST 8
#define ENDS_MOST  0.35 /* of a column, for names behind the field: wider ones stand inside */
#define END_GAP    0.9  /* from the field to a name behind it, in font sizes: room for a line */
#define END_LINE   1.15 /* distance of the two lines of a name */
#define END_APART  0.35 /* between two names */

/* ---- behind the right end ----------------------------------------------------- */

/* "multiply-add 104 GFLOP/s" has its number in a line of its own. */
typedef struct EndName {
    char line[2][PLOT_NAME];
    int  lines;
} EndName;

static EndName end_name(const char *name)
{
    const char *at = name;
    EndName     out = { .lines = 1 };

    while (*at && !(at > name && *at == ' ' && isdigit((unsigned char)at[1])))
        at++;
    snprintf(out.line[0], sizeof(out.line[0]), "%.*s", (int)(at - name), name);
    if (*at)
        snprintf(out.line[out.lines++], sizeof(out.line[1]), "%s", at + 1);
    return out;
}

static bool is_level_roof(const PlotSeries *s)
{
    return s->roof && s->count > 1 && *s->name && !(s->y[0] < s->y[s->count - 1]) &&
           !(s->y[0] > s->y[s->count - 1]);
}

int sheet_roofs_extent(const Sheet *sheet, const Plot *plot)
{
    double font = sheet->style.tick, widest = 0;

    for (int k = 0; k < plot->count; k++) {
        EndName name = end_name(plot->series[k].name);

        for (int i = 0; is_level_roof(&plot->series[k]) && i < name.lines; i++)
            widest = fmax(widest, canvas_text_width(sheet->canvas, name.line[i], FONT_SANS, font));
    }
    widest += widest > 0 ? END_GAP * font : 0;
    return widest > ENDS_MOST * sheet->width / sheet->cols ? 0 : (int)ceil(widest);
}

typedef struct RoofEnd {
    const PlotSeries *roof;
    EndName           name;
    double            at, middle, high; /* of the line; of its name */
} RoofEnd;

/* All of them from the top down. */
static int collect_ends(const Pens *p, RoofEnd *out)
{
    int count = 0;

    for (int k = 0; k < p->plot->count && count < ROOFS_MOST; k++) {
        const PlotSeries *s = &p->plot->series[k];
        RoofEnd           own = { .roof = s };
        int               at = count;

        if (!is_level_roof(s))
            continue;
        own.name = end_name(s->name);
        own.at = own.middle = pens_y(p, s->y[0]);
        own.high = (END_LINE * own.name.lines + END_APART) * p->s->tick;
        for (; at > 0 && out[at - 1].at > own.at; at--)
            out[at] = out[at - 1];
        out[at] = own;
        count++;
    }
    return count;
}

#define SPREADS 40 /* half of an overlap goes at each step */

/* Moves names that overlap apart, as little as it can, and all into the height of the field. */
static void spread_ends(const Pens *p, RoofEnd *ends, int count)
{
    for (int step = 0; step < SPREADS; step++) {
        for (int k = 0; k + 1 < count; k++) {
            RoofEnd *a = &ends[k], *b = &ends[k + 1];
            double   over = (a->high + b->high) / 2 - (b->middle - a->middle);

            a->middle -= fmax(0, over / 2);
            b->middle += fmax(0, over / 2);
        }
        for (int k = 0; k < count; k++) {
            double half = ends[k].high / 2, top = p->box.y + half - p->s->tick;

            ends[k].middle = fmin(fmax(ends[k].middle, top), p->box.y + p->box.h - half);
        }
    }
}

static void write_end(const Pens *p, const RoofEnd *end)
{
    double font = p->s->tick, right = p->box.x + p->box.w;
    double first = end->middle - (end->name.lines - 1) * END_LINE * font / 2 + 0.36 * font;

    pens_line(p, right, end->at, right + 0.75 * END_GAP * font, end->middle, p->s->hair,
              pens_colour(p, end->roof->hue), 1);
    for (int k = 0; k < end->name.lines; k++)
        pens_text(p, right + END_GAP * font, first + k * END_LINE * font, end->name.line[k],
                  pens_colour(p, end->roof->hue));
}

static void name_ends(const Pens *p)
{
    RoofEnd ends[ROOFS_MOST];
    int     count = collect_ends(p, ends);

    spread_ends(p, ends, count);
    for (int k = 0; k < count; k++)
        write_end(p, &ends[k]);
}

/* ---- along a slanted one -------------------------------------------------------- */

#define ALONG_STEPS 24
#define ALONG_OFF   0.45 /* from the line to the words, in font sizes */
#define CAPITAL     0.72 /* height of letters, in font sizes */
#define BELOW_OFF   (ALONG_OFF + CAPITAL)

typedef struct Along {
    double x, y, over, down; /* its beginning, and the direction of reading */
    double wide;
} Along;

/* Middle of a part of the words, from 0 to 1, and the box around it. */
static LabelBox along_box(const Along *a, double font, double share, double part)
{
    double x = a->x + a->over * share * a->wide + a->down * CAPITAL / 2 * font;
    double y = a->y + a->down * share * a->wide - a->over * CAPITAL / 2 * font;
    double w = fabs(a->over) * part + fabs(a->down) * 1.1 * font;
    double h = fabs(a->down) * part + fabs(a->over) * 1.1 * font;

    return (LabelBox){ x - w / 2, y - h / 2, w, h };
}

static bool meets_level(const Pens *p, const LabelBox *box)
{
    for (int k = 0; k < p->plot->count; k++) {
        const PlotSeries *s = &p->plot->series[k];
        double            y = is_level_roof(s) ? pens_y(p, s->y[0]) : -1;

        if (is_level_roof(s) && y > box->y && y < box->y + box->h &&
            pens_x(p, s->x[0]) < box->x + box->w)
            return true;
    }
    return false;
}

static int along_parts(const Along *a, double font)
{
    return (int)fmax(1, ceil(a->wide / font));
}

/* Nothing stands where the words would stand. */
static bool along_is_free(const Pens *p, const Along *a)
{
    int parts = along_parts(a, p->s->tick);

    for (int k = 0; k < parts; k++) {
        LabelBox box = along_box(a, p->s->tick, (k + 0.5) / parts, a->wide / parts);

        if (!label_is_free(&p->places, &box) || meets_level(p, &box))
            return false;
    }
    return true;
}

static void write_along(Pens *p, const PlotSeries *s, const Along *a)
{
    double font = p->s->tick, in = CAPITAL / 2 * font;
    int    parts = along_parts(a, font);
    double x = a->x + a->down * in, y = a->y - a->over * in;

    canvas_clear_line(p->sheet->canvas, x, y, x + a->over * a->wide, y + a->down * a->wide,
                      1.1 * font);
    canvas_text(p->sheet->canvas, a->x, a->y, s->name,
                (CanvasText){ .size = font, .rgb = pens_colour(p, s->hue),
                              .turn = atan2(-a->down, a->over) * 180 / M_PI });
    for (int k = 0; k < parts; k++)
        label_take(&p->places, along_box(a, font, (k + 0.5) / parts, a->wide / parts));
}

/* Above the line, from its middle to both ends, then below it. */
static bool name_along(Pens *p, const PlotSeries *s)
{
    int64_t last = s->count - 1;
    double  x0 = pens_x(p, s->x[0]), x1 = pens_x(p, s->x[last]);
    double  y0 = pens_y(p, s->y[0]), y1 = pens_y(p, s->y[last]);
    double  length = hypot(x1 - x0, y1 - y0), font = p->s->tick;
    Along   a = { .over = (x1 - x0) / length, .down = (y1 - y0) / length,
                  .wide = pens_width(p, s->name) };
    double  spare = length - a.wide;

    for (int k = 0; spare > 0 && k < 2 * ALONG_STEPS; k++) {
        int    step = k % ALONG_STEPS, away = (step + 1) / 2 * (step % 2 ? 1 : -1);
        double t = spare * (0.5 + (double)away / ALONG_STEPS) / length;
        double off = k < ALONG_STEPS ? -ALONG_OFF * font : BELOW_OFF * font;

        a.x = x0 + t * (x1 - x0) - a.down * off;
        a.y = y0 + t * (y1 - y0) + a.over * off;
        if (along_is_free(p, &a)) {
            write_along(p, s, &a);
            return true;
        }
    }
    return false;
}

void pens_name_roofs(Pens *p)
{
    p->ends = sheet_roofs_extent(p->sheet, p->plot) > 0;
    if (p->ends)
        name_ends(p);
    for (int k = 0; k < p->plot->count; k++) {
        const PlotSeries *s = &p->plot->series[k];

        if (s->roof && s->count > 1 && *s->name && !is_level_roof(s) && !name_along(p, s))
            pens_name_slanted(p, s);
    }
}
