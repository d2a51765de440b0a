/* plot.c -- a plot's series, ranges, looks and ticks; see plot.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/plot/plot.h"

#define DECADES_MOST 9 /* that a logarithmic axis has at most */

Plot *plot_new(Error *err)
{
    Plot *plot = calloc(1, sizeof(*plot));

    if (!plot)
        error_set(err, ERR_NOMEM, "a plot: out of memory");
    return plot;
}

static void series_free(PlotSeries *s)
{
    free(s->x);
    free(s->y);
    free(s->low);
    free(s->high);
    free(s->labels);
    free(s->busy);
    *s = (PlotSeries){ .count = 0 };
}

void plot_free(Plot *plot)
{
    for (int k = 0; plot && k < plot->count; k++)
        series_free(&plot->series[k]);
    if (plot) {
        free(plot->x.names);
        free(plot->rows);
    }
    free(plot);
}

PlotSeries *plot_add(Plot *plot, const char *name, CurveMark mark, int64_t count, bool band)
{
    PlotSeries *s = &plot->series[plot->count];
    size_t      size = (size_t)(count > 0 ? count : 1);

    if (plot->count == PLOT_SERIES_MOST) {
        plot->left_out++;
        return NULL;
    }
    *s = (PlotSeries){ .mark = mark, .count = count, .x = calloc(size, sizeof(double)),
                       .y = calloc(size, sizeof(double)), .hue = plot->count };
    snprintf(s->name, sizeof(s->name), "%s", name);
    s->whiskers = band && mark == CURVE_POINTS; /* points have no band */
    if (band) {
        s->low = calloc(size, sizeof(double));
        s->high = calloc(size, sizeof(double));
    }
    if (!s->x || !s->y || (band && (!s->low || !s->high))) {
        series_free(s);
        return NULL;
    }
    plot->count++;
    return s;
}

void plot_guide(Plot *plot, const char *name, bool vertical, double at)
{
    PlotGuide *g = &plot->guides[plot->guide_count];

    if (plot->guide_count == PLOT_GUIDES_MOST || !isfinite(at))
        return;
    *g = (PlotGuide){ .vertical = vertical, .at = at };
    snprintf(g->name, sizeof(g->name), "%s", name);
    plot->guide_count++;
}

static bool is_number(const char *text)
{
    char *end;

    strtod(text, &end);
    return end != text && !*end;
}

bool plot_name_points(Plot *plot, const char *names)
{
    const PlotSeries *s = &plot->series[0];
    PlotAxis         *x = &plot->x;

    if (!plot->count || x->names)
        return true;
    x->names = calloc((size_t)(s->count > 0 ? s->count : 1), sizeof(*x->names));
    for (; x->names && x->name_count < s->count && *names; x->name_count++) {
        size_t    length = strcspn(names, "|");
        PlotName *name = &x->names[x->name_count];

        name->at = s->x[x->name_count];
        snprintf(name->text, sizeof(name->text), "%.*s", (int)length, names);
        x->words = x->words || !is_number(name->text);
        names += length + (names[length] == '|');
    }
    return x->names != NULL;
}

/* ---- ranges ----------------------------------------------------------------- */

typedef struct Range {
    double lo, hi, least_positive;
} Range;

static void range_add(Range *r, double value)
{
    if (!isfinite(value))
        return;
    r->lo = fmin(r->lo, value);
    r->hi = fmax(r->hi, value);
    if (value > 0)
        r->least_positive = fmin(r->least_positive, value);
}

static void range_series(const PlotSeries *s, Range *x, Range *y)
{
    for (int64_t i = 0; i < s->count; i++) {
        range_add(x, s->x[i]);
        range_add(y, s->y[i]);
        if (s->low)
            range_add(y, s->low[i]);
        if (s->high)
            range_add(y, s->high[i]);
    }
}

/* A logarithmic axis needs positive numbers; without any it becomes linear. */
static void settle_axis(PlotAxis *axis, Range r, bool from_zero)
{
    if (!(r.lo <= r.hi))
        r = (Range){ 0, 1, 1 };
    axis->log = axis->log && r.hi > 0 && r.least_positive <= r.hi;
    if (axis->log) {
        axis->hi = r.hi;
        axis->lo = fmax(r.least_positive, r.hi * pow(10, -DECADES_MOST));
        axis->cut = r.least_positive < axis->lo;
        if (!(axis->hi > axis->lo * 1.0001)) {
            axis->lo = axis->hi / 3;
            axis->hi *= 3;
        }
        return;
    }
    if (from_zero && r.lo > 0 && r.lo < 0.6 * r.hi)
        r.lo = 0;
    if (from_zero && r.hi < 0 && r.hi > 0.6 * r.lo)
        r.hi = 0;
    axis->lo = r.lo;
    axis->hi = r.hi;
    if (!(axis->hi > axis->lo) && !(axis->hi > 0 || axis->hi < 0)) {
        axis->hi = 1; /* all is 0 */
    } else if (!(axis->hi > axis->lo)) {
        axis->lo -= axis->lo > 0 ? 0.5 * axis->lo : 0.5;
        axis->hi += axis->hi > 0 ? 0.5 * axis->hi : 0.5;
    }
}

/* Half a step more on each side, so that the bars at the ends are whole. */
static void widen_for_bars(const Plot *plot, Range *x)
{
    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];
        double            step = s->count > 1 ? fabs(s->x[1] - s->x[0]) : 1;

        if (s->mark != CURVE_BARS || !s->count)
            continue;
        range_add(x, s->x[0] - step / 2);
        range_add(x, s->x[s->count - 1] + step / 2);
    }
}

/* Extends both ends by a share of the length. */
static void widen_axis(PlotAxis *axis, double share)
{
    double more = axis->log ? pow(axis->hi / axis->lo, share) : share * (axis->hi - axis->lo);

    axis->lo = axis->log ? axis->lo / more : axis->lo - more;
    axis->hi = axis->log ? axis->hi * more : axis->hi + more;
}

#define SHORT_LOG 10   /* a logarithmic axis that ends less than this factor above its beginning */
#define REACH     0.25 /* share of its length that its lower end moves at most */

/* The next number below that may be a tick: 1, 2 or 5 of a decade, a power of two of bytes. */
static double round_below(const PlotAxis *axis)
{
    double power = pow(10, floor(log10(axis->lo))), front = axis->lo / power;

    if (plot_in_bytes(axis))
        return exp2(floor(log2(axis->lo)));
    return power * (front >= 5 ? 5 : front >= 2 ? 2 : 1);
}

/* The lowest curve of a short logarithmic axis has a tick below it. */
static void reach_round(PlotAxis *axis)
{
    double below = round_below(axis);

    if (axis->hi / axis->lo < SHORT_LOG &&
        log(axis->lo / below) < REACH * log(axis->hi / axis->lo))
        axis->lo = below;
}

/* In a plot with rows values lie along x. */
static void settle_rows(Plot *plot)
{
    Range x = { HUGE_VAL, -HUGE_VAL, HUGE_VAL }, none = x;
    bool  bars = false;

    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        range_series(s, &x, &none);
        for (int64_t i = 0; s->low && i < s->count; i++) {
            range_add(&x, s->low[i]);
            range_add(&x, s->high[i]);
        }
        bars = bars || s->mark == CURVE_BARS;
    }
    for (int k = 0; k < plot->guide_count; k++)
        range_add(&x, plot->guides[k].at);
    if (bars)
        range_add(&x, 0);
    plot->x.log = plot->x.whole = false;
    settle_axis(&plot->x, x, bars);
    if (!bars) /* off the frame */
        plot->x.lo -= 0.04 * (plot->x.hi - plot->x.lo);
    plot->x.hi += 0.04 * (plot->x.hi - plot->x.lo);
    plot->y.lo = -0.5;
    plot->y.hi = plot->row_count - 0.5;
}

static bool is_power_of_two(double value)
{
    int power;

    return value >= 1 && frexp(value, &power) == 0.5;
}

#define TWOS_LEAST 3 /* powers of two in a row that are no chance */

/* The points of each curve begin and end at powers of two, with every one between. */
static bool has_powers_of_two(const Plot *plot)
{
    int curves = 0;

    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];
        double            next = s->count ? s->x[0] : 0;
        int               found = 0;

        if (s->guide)
            continue;
        for (int64_t i = 0; i < s->count && s->x[i] <= next; i++)
            if (is_power_of_two(s->x[i])) {
                next = 2 * s->x[i];
                found++;
            }
        if (found < TWOS_LEAST || s->x[s->count - 1] < next / 2 ||
            s->x[s->count - 1] > next / 2)
            return false;
        curves++;
    }
    return curves > 0;
}

/* Reference lines alone reach to the frame. */
static bool has_lines(const Plot *plot)
{
    for (int k = 0; k < plot->count; k++)
        if (!plot->series[k].guide && plot->series[k].mark != CURVE_POINTS)
            return true;
    return false;
}

static bool has_words(const Plot *plot)
{
    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].labels)
            return true;
    return false;
}

void plot_settle(Plot *plot)
{
    Range x = { HUGE_VAL, -HUGE_VAL, HUGE_VAL }, y = x;
    bool  bars = false, marks;

    if (plot->rows) {
        settle_rows(plot);
        return;
    }
    plot->x.whole = true;
    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        range_series(s, &x, &y);
        bars = bars || s->mark == CURVE_BARS;
        for (int64_t i = 0; i < s->count; i++)
            plot->x.whole = plot->x.whole && s->x[i] == floor(s->x[i]);
    }
    for (int k = 0; k < plot->guide_count; k++)
        range_add(plot->guides[k].vertical ? &x : &y, plot->guides[k].at);
    if (!plot->x.log)
        widen_for_bars(plot, &x);
    if (plot->x.words) { /* a word has room on both sides */
        range_add(&x, x.lo - 0.4);
        range_add(&x, x.hi + 0.4);
    }
    marks = (plot->x.names && !plot->x.words) || (plot->x.log && has_lines(plot));
    if (bars && y.lo > 0 && !plot->y.log)
        range_add(&y, 0);
    settle_axis(&plot->x, x, false);
    settle_axis(&plot->y, y, true);
    if (!plot->y.log && y.lo <= y.hi && !(y.lo < 0) && !(y.hi > 0)) { /* no number but 0 is there */
        plot->y.zero = true;
        plot->y.lo = -1;
    }
    plot->x.twos = plot->x.log && !plot_in_bytes(&plot->x) && has_powers_of_two(plot);
    if (!plot->y.log && !plot->y.zero && (plot->y.lo > 0 || plot->y.lo < 0)) /* off the frame */
        plot->y.lo -= 0.04 * (plot->y.hi - plot->y.lo);
    if (marks) /* those at the ends are whole */
        widen_axis(&plot->x, 0.03);
    if (plot->y.log) { /* no curve lies on the frame */
        widen_axis(&plot->y, 0.04);
        reach_round(&plot->y);
    } else if (!plot->y.zero) {
        plot->y.hi += 0.04 * (plot->y.hi - plot->y.lo);
    }
    if (has_words(plot) && plot->y.log) { /* names above the top line, points off the frame */
        double decades = plot->y.hi / plot->y.lo;

        plot->y.hi *= pow(decades, 0.05);
        plot->y.lo /= pow(decades, 0.05);
    }
}

double plot_place(const PlotAxis *axis, double value)
{
    double place;

    if (isnan(value) || (axis->log && !(value > 0)))
        return (double)NAN;
    place = axis->log ? log(value / axis->lo) / log(axis->hi / axis->lo)
                      : (value - axis->lo) / (axis->hi - axis->lo);
    return place < 0 ? 0 : place > 1 ? 1 : place;
}

/* ---- looks ------------------------------------------------------------------ */

static const Rgb colours[] = { { 0, 114, 178 },  { 213, 94, 0 },   { 0, 158, 115 },
                               { 204, 121, 167 }, { 86, 180, 233 }, { 230, 159, 0 } };
#define COLOURS ((int)(sizeof(colours) / sizeof(*colours)))

Rgb plot_colour(int series, bool dark)
{
    Rgb rgb = colours[series % COLOURS];

    if (dark && series % COLOURS == 0)
        return (Rgb){ 72, 126, 240 }; /* lighter, but not like the fifth */
    return rgb;
}

int plot_mark(int series)
{
    return series + series / COLOURS;
}

uint8_t plot_colour_256(int series)
{
    return colour_nearest_256(plot_colour(series, true));
}

char plot_letter(int series)
{
    static const char letters[] = "ox+*#@%&ABCDEFGHIJKLMNPQRSTUVWYZ"; /* O and X are like o, x */

    return letters[series % (int)(sizeof(letters) - 1)];
}

/* The least and the largest value of a series, with its name where it has neighbours. */
static size_t series_range(const Plot *plot, const PlotSeries *s, const char *gap, char *text,
                           size_t size)
{
    double lo = HUGE_VAL, hi = -HUGE_VAL;
    char   least[24], most[24];

    for (int64_t i = 0; i < s->count; i++)
        if (isfinite(s->y[i])) {
            lo = fmin(lo, s->y[i]);
            hi = fmax(hi, s->y[i]);
        }
    if (!(lo <= hi))
        return 0;
    plot_range_numbers(&plot->y, lo, hi, least, most, sizeof(least));
    plot_unit(&plot->y, least, sizeof(least));
    plot_unit(&plot->y, most, sizeof(most));
    return (size_t)snprintf(text, size, "%s%s%s%s%s%s", gap, plot->count > 1 ? s->name : "",
                            plot->count > 1 ? " " : "", least, strcmp(least, most) ? " to " : "",
                            strcmp(least, most) ? most : "");
}

static const char *before(size_t used)
{
    return used ? "; " : "";
}

static void caption_busy(const Plot *plot, bool characters, char *text, size_t size)
{
    size_t      used = strlen(text);
    const char *sign = plot->rows ? "busy" : characters ? "!" : "ringed";

    if (plot_any_busy(plot))
        snprintf(text + used, size - used, "%s%s: more threads than processors were free, so the "
                 "time is too long", before(used),
                 plot_has_busy_signs(plot) ? sign : "all points");
}

static void caption_twins(const Plot *plot, char *text, size_t size)
{
    size_t used = strlen(text);
    Text   words = { 0 };

    if (plot->y.zero)
        text_add(&words, "all values are 0");
    else
        plot_twins_words(plot, &words);
    if (words.length)
        snprintf(text + used, size - used, "%s%s", before(used), text_str(&words));
    text_free(&words);
}

static void caption_numbers(const Plot *plot, bool all, char *text, size_t size)
{
    size_t used = 0;
    bool   told = (all || plot->count == 1) && !plot->y.zero;

    *text = '\0';
    for (int k = 0; told && k < plot->count && k < 3 && used < size; k++)
        used += series_range(plot, &plot->series[k], used ? ", " : "", text + used, size - used);
    if (all && told && plot->count > 3 && used < size)
        used += (size_t)snprintf(text + used, size - used, ", \xE2\x80\xA6");
    if (plot->binned && used < size)
        used += (size_t)snprintf(text + used, size - used,
                                 "%sleast and largest of every %lld points", before(used),
                                 (long long)plot->binned);
    if (plot->y.cut && used < size)
        used += (size_t)snprintf(text + used, size - used,
                                 "%swhat is below %.0e lies on the edge", before(used),
                                 plot->y.lo);
    if (plot->left_out && used < size)
        snprintf(text + used, size - used, "%s%lld series more", before(used),
                 (long long)plot->left_out);
}

void plot_about(const Plot *plot, bool characters, char *text, size_t size)
{
    snprintf(text, size, "%s", plot->note);
    caption_twins(plot, text, size);
    caption_busy(plot, characters, text, size);
}

void plot_caption(const Plot *plot, bool all, char *text, size_t size)
{
    if (*plot->note) {
        plot_about(plot, all, text, size);
        return;
    }
    caption_numbers(plot, all, text, size);
    caption_twins(plot, text, size);
    caption_busy(plot, all, text, size);
}

/* ---- rows, words and lines ---------------------------------------------------- */

bool plot_label(PlotSeries *series)
{
    size_t count = (size_t)(series->count > 0 ? series->count : 1);

    series->labels = calloc(count, sizeof(*series->labels));
    return series->labels != NULL;
}

bool plot_busy(PlotSeries *series, int64_t point)
{
    if (!series->busy)
        series->busy = calloc((size_t)(series->count > 0 ? series->count : 1),
                              sizeof(*series->busy));
    if (series->busy && point < series->count)
        series->busy[point] = true;
    return series->busy != NULL;
}

/* Points with a number that are busy, or are not. */
static int64_t count_busy(const Plot *plot, bool busy)
{
    int64_t count = 0;

    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        for (int64_t i = 0; !s->guide && i < s->count; i++)
            count += isfinite(s->x[i]) && isfinite(s->y[i]) && (s->busy && s->busy[i]) == busy;
    }
    return count;
}

bool plot_any_busy(const Plot *plot)
{
    return count_busy(plot, true) > 0;
}

bool plot_has_busy_signs(const Plot *plot)
{
    return plot_any_busy(plot) && (plot->rows || count_busy(plot, false) > 0);
}

PlotSeries *plot_line(Plot *plot, const char *name, int hue, const double *x, const double *y,
                      int count)
{
    PlotSeries *s = plot_add(plot, name, CURVE_LINE, count, false);

    if (!s)
        return NULL;
    s->guide = true;
    s->hue = hue;
    memcpy(s->x, x, (size_t)count * sizeof(*x));
    memcpy(s->y, y, (size_t)count * sizeof(*y));
    return s;
}

bool plot_rows(Plot *plot, int count, Error *err)
{
    if (count < 1 || count > PLOT_ROWS_MOST)
        return error_set(err, ERR_USAGE, "a plot has 1 to %d rows, not %d", PLOT_ROWS_MOST, count);
    plot->rows = calloc((size_t)count, sizeof(*plot->rows));
    plot->row_count = count;
    return plot->rows || error_set(err, ERR_NOMEM, "a plot: out of memory");
}

int plot_named(const Plot *plot)
{
    int count = 0;

    for (int k = 0; k < plot->count; k++)
        count += !plot->series[k].guide;
    return count;
}

#define MARKED_POINTS 40 /* more points get a mark now and then */

int64_t plot_marks(const Plot *plot, int series, int64_t *first)
{
    const PlotSeries *s = &plot->series[series];
    bool              all = s->mark == CURVE_POINTS || s->count <= MARKED_POINTS;
    int64_t           every = all ? 1 : s->count / 8;

    *first = every > 1 ? series * every / plot->count : 0;
    if (every == 1 && plot->count > 1 && s->mark != CURVE_POINTS) { /* on one line: in turns */
        int at, twins = plot_twins(plot, series, &at);

        *first = at < s->count ? at : 0;
        every = twins;
    }
    return s->guide || s->mark == CURVE_BARS || !(all || plot_named(plot) > 1) ? 0 : every;
}

int plot_bars(const Plot *plot)
{
    int count = 0;

    for (int k = 0; k < plot->count; k++)
        count += plot->series[k].mark == CURVE_BARS;
    return count;
}

#define LEAST_BAR 0.1 /* share of the room that words leave to the bar beside them */

PlotAxis plot_rows_axis(const Plot *plot, double room, double gap,
                        double (*width)(const void *context, const char *text),
                        const void *context)
{
    PlotAxis axis = plot->x;

    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        for (int64_t i = 0; s->labels && i < s->count; i++) {
            double end = s->high && isfinite(s->high[i]) ? fmax(s->x[i], s->high[i]) : s->x[i];
            double left = room - width(context, s->labels[i]) - gap;

            if (isfinite(end) && left > LEAST_BAR * room)
                axis.hi = fmax(axis.hi, axis.lo + (end - axis.lo) * room / left);
        }
    }
    return axis;
}

/* ---- a copy ----------------------------------------------------------------- */

static bool copy_series(Plot *to, const PlotSeries *from)
{
    size_t      size = (size_t)from->count * sizeof(double);
    PlotSeries *s = plot_add(to, from->name, from->mark, from->count, from->low != NULL);

    if (!s || (from->labels && !plot_label(s)))
        return false;
    memcpy(s->x, from->x, size);
    memcpy(s->y, from->y, size);
    if (s->low) {
        memcpy(s->low, from->low, size);
        memcpy(s->high, from->high, size);
    }
    if (s->labels)
        memcpy(s->labels, from->labels, (size_t)from->count * sizeof(*s->labels));
    for (int64_t i = 0; from->busy && i < from->count; i++)
        if (from->busy[i] && !plot_busy(s, i))
            return false;
    s->whiskers = from->whiskers;
    s->guide = from->guide;
    s->roof = from->roof;
    s->hue = from->hue;
    return true;
}

/* The copied axis still points to the original's names. */
static bool copy_names(Plot *copy, Error *err)
{
    const PlotName *names = copy->x.names;
    size_t          size = (size_t)copy->x.name_count * sizeof(*names);

    if (!names)
        return true;
    copy->x.names = malloc(size ? size : 1);
    if (!copy->x.names)
        return error_set(err, ERR_NOMEM, "a plot: out of memory");
    memcpy(copy->x.names, names, size);
    return true;
}

Plot *plot_copy(const Plot *plot, Error *err)
{
    Plot *copy = plot_new(err);
    bool  ok = copy != NULL;

    if (!ok)
        return NULL;
    *copy = *plot;
    copy->count = 0;
    copy->rows = NULL;
    ok = copy_names(copy, err) && (!plot->rows || plot_rows(copy, plot->row_count, err));
    if (ok && plot->rows)
        memcpy(copy->rows, plot->rows, (size_t)plot->row_count * sizeof(*copy->rows));
    for (int k = 0; ok && k < plot->count; k++)
        ok = copy_series(copy, &plot->series[k]) ||
             error_set(err, ERR_NOMEM, "a plot: out of memory");
    if (ok)
        return copy;
    plot_free(copy);
    return NULL;
}
