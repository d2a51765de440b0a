/* label.c -- a search for free places; see label.h. */
#include "draw/plot/label.h"

#include <math.h>
#include <stddef.h>

#define RINGS      3
#define RINGS_MOST 6  /* further out is better than across a curve */
#define LINE_PARTS 24 /* boxes along a slanted line, at most */
#define FRAME_PARTS 64 /* each as long as this part of the frame */
#define LINES_MOST 96 /* points up to which each line of a curve is taken */
#define STRETCHES  48 /* boxes along a curve of more points */

static bool overlap(const LabelBox *a, const LabelBox *b)
{
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

static bool is_free(const LabelPlaces *p, int first, const LabelBox *box)
{
    const LabelBox *f = &p->frame;

    if (box->x < f->x || box->y < f->y || box->x + box->w > f->x + f->w ||
        box->y + box->h > f->y + f->h)
        return false;
    for (int i = first; i < p->count; i++)
        if (overlap(&p->taken[i], box))
            return false;
    for (int i = 0; p->off_bands && i < p->band_count; i++)
        if (p->bands[i].series != p->own && overlap(&p->bands[i].box, box))
            return false;
    return true;
}

bool label_is_free(const LabelPlaces *p, const LabelBox *box)
{
    return is_free(p, p->lines, box);
}

void label_take(LabelPlaces *p, LabelBox box)
{
    if (p->count < LABEL_PLACES_MOST)
        p->taken[p->count++] = box;
}

void label_take_line(LabelPlaces *p, double x0, double y0, double x1, double y1)
{
    bool   level = fabs(x1 - x0) < 1e-9 || fabs(y1 - y0) < 1e-9;
    double part = fmax(p->frame.w, p->frame.h) / FRAME_PARTS;
    double wanted = part > 0 ? ceil(fmax(fabs(x1 - x0), fabs(y1 - y0)) / part) : LINE_PARTS;
    int    parts = level ? 1 : (int)fmax(1, fmin(wanted, LINE_PARTS));

    for (int i = 0; i < parts; i++) {
        double ax = x0 + (x1 - x0) * i / parts, bx = x0 + (x1 - x0) * (i + 1) / parts;
        double ay = y0 + (y1 - y0) * i / parts, by = y0 + (y1 - y0) * (i + 1) / parts;

        label_take(p, (LabelBox){ fmin(ax, bx), fmin(ay, by), fabs(bx - ax), fabs(by - ay) });
    }
    p->lines = p->count;
}

void label_take_guide(LabelPlaces *p, double x0, double y0, double x1, double y1)
{
    label_take_line(p, x0, y0, x1, y1);
    p->guides = p->count;
}

static bool take_free(LabelPlaces *p, int first, LabelBox box)
{
    if (!is_free(p, first, &box))
        return false;
    label_take(p, box);
    return true;
}

bool label_fits(LabelPlaces *p, LabelBox box, bool clear)
{
    return take_free(p, clear ? p->guides : p->lines, box);
}

bool label_fits_alone(LabelPlaces *p, LabelBox box)
{
    return take_free(p, 0, box);
}

bool label_beside(LabelPlaces *p, LabelBox right, LabelBox left, double step, int steps,
                  LabelBox *out)
{
    for (int k = 0; k < 2 * steps; k++)
        for (int side = 0; side < 2; side++) {
            *out = side ? left : right;
            out->y += step * (k % steps);
            if (label_fits(p, *out, k < steps))
                return true;
        }
    return false;
}

/* ---- what is drawn ---------------------------------------------------------- */

static bool device_point(const LabelDevice *d, const PlotSeries *s, int64_t i, double *x, double *y)
{
    return d->point(d->context, s->x[i], s->y[i], x, y);
}

/* Boxes around stretches of a curve. */
static void take_stretches(const LabelDevice *d, const PlotSeries *s)
{
    for (int64_t k = 0; k < STRETCHES; k++) {
        double x0 = HUGE_VAL, x1 = -HUGE_VAL, y0 = HUGE_VAL, y1 = -HUGE_VAL, x, y;

        for (int64_t i = k * (s->count - 1) / STRETCHES;
             i <= ((k + 1) * (s->count - 1) + STRETCHES - 1) / STRETCHES && i < s->count; i++)
            if (device_point(d, s, i, &x, &y)) {
                x0 = fmin(x0, x);
                x1 = fmax(x1, x);
                y0 = fmin(y0, y);
                y1 = fmax(y1, y);
            }
        if (x1 >= x0)
            label_take(d->places, (LabelBox){ x0, y0, x1 - x0, y1 - y0 });
    }
    d->places->lines = d->places->count;
}

/* Takes the marks on a curve as its lines are taken; a character has none. */
static void take_marks(const LabelDevice *d, int series)
{
    const PlotSeries *s = &d->plot->series[series];
    int64_t           first, every = plot_marks(d->plot, series, &first);
    double            x, y, half = d->mark / 2;

    for (int64_t i = first; d->mark > 0 && every && i < s->count; i += every)
        if (device_point(d, s, i, &x, &y))
            label_take(d->places, (LabelBox){ x - half, y - half, d->mark, d->mark });
    d->places->lines = d->places->count;
}

/* Takes the lines of a series; steps of one height are one line. */
static void take_series(const LabelDevice *d, const PlotSeries *s)
{
    double x0, y0, x1, y1;

    if (s->mark == CURVE_BARS || s->mark == CURVE_POINTS)
        return;
    if (s->mark == CURVE_LINE && s->count > LINES_MOST) {
        take_stretches(d, s);
        return;
    }
    for (int64_t i = 0, next; i + 1 < s->count; i = next) {
        for (next = i + 1; s->mark == CURVE_STEPS && next + 1 < s->count &&
                           !(s->y[next] > s->y[i] || s->y[next] < s->y[i]); next++)
            ;
        if (!device_point(d, s, i, &x0, &y0) || !device_point(d, s, next, &x1, &y1))
            continue;
        if (s->mark == CURVE_STEPS) {
            label_take_line(d->places, x0, y0, x1, y0);
            label_take_line(d->places, x1, y0, x1, y1);
        } else {
            label_take_line(d->places, x0, y0, x1, y1);
        }
    }
}

static void take_guide(const LabelDevice *d, const PlotGuide *g)
{
    const LabelBox *f = &d->places->frame;
    double          at;

    if (!d->guide(d->context, g, &at))
        return;
    if (g->vertical)
        label_take_guide(d->places, at, f->y, at, f->y + f->h);
    else
        label_take_guide(d->places, f->x, at, f->x + f->w, at);
}

static void take_points(const LabelDevice *d, const PlotSeries *s)
{
    double x, y, half = d->mark / 2;

    for (int64_t i = 0; s->labels && i < s->count; i++)
        if (device_point(d, s, i, &x, &y))
            label_take(d->places, d->mark > 0
                                      ? (LabelBox){ x - half, y - half, d->mark, d->mark }
                                      : (LabelBox){ floor(x), floor(y), 1, 1 });
}

/* Takes `parts` boxes around the band between points i and j. */
static void take_band_part(const LabelDevice *d, int series, int64_t i, int64_t j, int parts)
{
    const PlotSeries *s = &d->plot->series[series];
    LabelPlaces      *p = d->places;
    double            x[2], low[2], high[2];

    if (!d->point(d->context, s->x[i], s->low[i], &x[0], &low[0]) ||
        !d->point(d->context, s->x[i], s->high[i], &x[0], &high[0]) ||
        !d->point(d->context, s->x[j], s->low[j], &x[1], &low[1]) ||
        !d->point(d->context, s->x[j], s->high[j], &x[1], &high[1]))
        return;
    for (int k = 0; k < parts && p->band_count < LABEL_BANDS_MOST; k++) {
        double a = (double)k / parts, b = (double)(k + 1) / parts;
        double top = fmin(high[0] + a * (high[1] - high[0]), high[0] + b * (high[1] - high[0]));
        double end = fmax(low[0] + a * (low[1] - low[0]), low[0] + b * (low[1] - low[0]));

        p->bands[p->band_count++] = (LabelBand){
            { x[0] + a * (x[1] - x[0]), top, (x[1] - x[0]) / parts, end - top }, series
        };
    }
}

#define BAND_BOXES 32 /* along one band, about */

static void take_band(const LabelDevice *d, int series)
{
    const PlotSeries *s = &d->plot->series[series];
    int64_t           each = (s->count + BAND_BOXES - 1) / BAND_BOXES;

    for (int64_t i = 0; s->low && !s->whiskers && i + 1 < s->count; i += each) {
        int64_t j = i + each < s->count ? i + each : s->count - 1;

        take_band_part(d, series, i, j, (int)fmax(1, fmin(BAND_BOXES / (double)s->count, 8)));
    }
}

void label_take_plot(const LabelDevice *d)
{
    for (int k = 0; k < d->plot->count; k++)
        if (d->plot->series[k].mark == CURVE_LINE)
            take_band(d, k);
    for (int k = 0; k < d->plot->guide_count; k++)
        take_guide(d, &d->plot->guides[k]);
    for (int k = 0; k < d->plot->count; k++)
        take_series(d, &d->plot->series[k]);
    for (int k = 0; k < d->plot->count; k++)
        take_marks(d, k);
    for (int k = 0; k < d->plot->count; k++)
        take_points(d, &d->plot->series[k]);
}

/* ---- names of lines --------------------------------------------------------- */

static bool is_named(const PlotSeries *s)
{
    return s->guide && s->count > 1 && *s->name;
}

void label_name_lines(const LabelDevice *d)
{
    const Plot *plot = d->plot;
    double      above = -HUGE_VAL, next = 0, at;

    while (next < HUGE_VAL) {
        next = HUGE_VAL;
        for (int k = 0; k < plot->count; k++)
            if (d->level(d->context, &plot->series[k], &at) && at > above)
                next = fmin(next, at);
        for (int k = 0; k < plot->count; k++)
            if (is_named(&plot->series[k]) && d->level(d->context, &plot->series[k], &at) &&
                !(at < next || at > next))
                d->name(d->context, &plot->series[k]);
        above = next;
    }
    for (int k = 0; k < plot->count; k++)
        if (is_named(&plot->series[k]) && !d->level(d->context, &plot->series[k], &at))
            d->name(d->context, &plot->series[k]);
}

bool label_is_own(const LabelDevice *d, double middle, double own)
{
    double at;

    for (int k = 0; k < d->plot->count; k++)
        if (d->level(d->context, &d->plot->series[k], &at) &&
            fabs(middle - at) < fabs(middle - own))
            return false;
    return true;
}

/* ---- words beside points ---------------------------------------------------- */

static bool place(LabelPlaces *p, int first, int rings, double x, double y, double gap_x,
                  double gap_y, double w, double h, LabelBox *out)
{
    static const double sides[][2] = { { 1, 0 },  { -1, 0 }, { 0, -1 }, { 0, 1 },
                                       { 1, -1 }, { 1, 1 },  { -1, -1 }, { -1, 1 } };

    for (int ring = 0; ring < rings; ring++)
        for (size_t k = 0; k < sizeof(sides) / sizeof(*sides); k++) {
            double   across = sides[k][0], down = sides[k][1];
            LabelBox box = { x + across * (gap_x + w / 2) - w / 2,
                             y + down * (gap_y + h / 2 + ring * h) - h / 2, w, h };

            if (!(ring && !(down > 0 || down < 0)) && take_free(p, first, box)) {
                *out = box;
                return true;
            }
        }
    return false;
}

bool label_place_clear(LabelPlaces *p, double x, double y, double gap_x, double gap_y, double w,
                       double h, LabelBox *out)
{
    return place(p, 0, RINGS, x, y, gap_x, gap_y, w, h, out) ||
           (p->lines && place(p, p->guides, RINGS_MOST, x, y, gap_x, gap_y, w, h, out));
}

bool label_place(LabelPlaces *p, double x, double y, double gap_x, double gap_y, double w,
                 double h, LabelBox *out)
{
    return label_place_clear(p, x, y, gap_x, gap_y, w, h, out) ||
           (p->lines && place(p, p->lines, RINGS, x, y, gap_x, gap_y, w, h, out));
}
