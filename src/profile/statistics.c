/* statistics.c -- summaries of repeated measurements (measure.h), slopes and ratios (statistics.h).
 *
 * The q-quantile of x_0 <= ... <= x_(c-1) lies at t = q (c - 1), linear between
 * the neighbours of t.  An outlier is beyond q3 + 3 (q3 - q1): timings have a
 * long upper tail, so only that side is watched.
 *
 * The interval of the median needs no shape of the distribution: of c independent
 * samples, binomial(c, 1/2) lie below the true median, so x_(k) and x_(c+1-k)
 * enclose it with confidence 1 - 2 P(B < k).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/measure.h"
#include "profile/statistics.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double *sorted_copy(const double *values, int count)
{
    double *copy = count > 0 ? malloc((size_t)count * sizeof(*copy)) : NULL;

    if (!copy)
        return NULL;
    memcpy(copy, values, (size_t)count * sizeof(*copy));
    qsort(copy, (size_t)count, sizeof(*copy), by_value);
    return copy;
}

static double quantile_of_sorted(const double *sorted, int count, double q)
{
    double at = q * (count - 1);
    int    low = (int)at;

    if (low >= count - 1)
        return sorted[count - 1];
    return sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]);
}

double stats_quantile(const double *values, int count, double q)
{
    double *sorted = sorted_copy(values, count);
    double  value;

    if (!sorted || !(q >= 0) || !(q <= 1)) {
        free(sorted);
        return (double)NAN;
    }
    value = quantile_of_sorted(sorted, count, q);
    free(sorted);
    return value;
}

bool stats_median_ranks(int count, int *low, int *high)
{
    double term = -count * log(2), below = exp(term); /* log P(B = k), P(B <= k) */
    int    k = 0;

    while (below <= 0.025 && k < count / 2) {
        term += log((double)(count - k) / (k + 1));
        below += exp(term);
        k++;
    }
    if (!k)
        return false;
    *low = k;
    *high = count + 1 - k;
    return true;
}

static void median_interval(Timing *timing, const double *sorted)
{
    int low, high;

    timing->low = timing->high = NUMBER_NONE;
    if (!stats_median_ranks(timing->count, &low, &high))
        return;
    timing->low = number_of(sorted[low - 1]);
    timing->high = number_of(sorted[high - 1]);
}

/* A machine that slows down (or speeds up) while it is measured. */
static void drift(Timing *timing)
{
    int    third = timing->count / 3;
    double before, after;

    timing->drift = NUMBER_NONE;
    if (third < 3)
        return;
    before = stats_quantile(timing->samples, third, 0.5);
    after = stats_quantile(timing->samples + timing->count - third, third, 0.5);
    if (before > 0)
        timing->drift = number_of(after / before - 1);
}

void timing_summarise(Timing *timing)
{
    double *sorted = sorted_copy(timing->samples, timing->count);
    double  limit;

    timing->outliers = 0;
    timing->median = timing->q1 = timing->q3 = timing->min = NUMBER_NONE;
    timing->low = timing->high = timing->drift = NUMBER_NONE;
    if (!sorted)
        return;
    timing->q1 = number_of(quantile_of_sorted(sorted, timing->count, 0.25));
    timing->median = number_of(quantile_of_sorted(sorted, timing->count, 0.5));
    timing->q3 = number_of(quantile_of_sorted(sorted, timing->count, 0.75));
    timing->min = number_of(sorted[0]);
    limit = timing->q3.value + 3 * (timing->q3.value - timing->q1.value);
    for (int i = 0; i < timing->count; i++)
        timing->outliers += sorted[i] > limit;
    median_interval(timing, sorted);
    drift(timing);
    free(sorted);
}

/* Least squares of logarithms; see statistics.h. */

/* Logarithms, sorted by x. */
typedef struct Points {
    double x[FIT_MOST], y[FIT_MOST];
    int    count;
} Points;

typedef struct Line {
    double slope, mean_x, mean_y, sxx, residual, syy;
    bool   valid;
} Line;

static Line line_through(const double *x, const double *y, int count)
{
    Line   l = { .valid = false };
    double sxy = 0;

    for (int i = 0; i < count; i++) {
        l.mean_x += x[i] / count;
        l.mean_y += y[i] / count;
    }
    for (int i = 0; i < count; i++) {
        double dx = x[i] - l.mean_x, dy = y[i] - l.mean_y;

        l.sxx += dx * dx;
        l.syy += dy * dy;
        sxy += dx * dy;
    }
    if (!(l.sxx > 1e-12))
        return l;
    l.valid = true;
    l.slope = sxy / l.sxx;
    for (int i = 0; i < count; i++) { /* the difference of sums would leave their rounding */
        double left = y[i] - l.mean_y - l.slope * (x[i] - l.mean_x);

        l.residual += left * left;
    }
    return l;
}

/* ---- points ----------------------------------------------------------------- */

static void insert(Points *p, double x, double y)
{
    int at = p->count++;

    for (; at > 0 && p->x[at - 1] > x; at--) {
        p->x[at] = p->x[at - 1];
        p->y[at] = p->y[at - 1];
    }
    p->x[at] = x;
    p->y[at] = y;
}

static int run_end(const Points *p, int from)
{
    int end = from;

    while (end < p->count && p->x[end] == p->x[from])
        end++;
    return end;
}

static void drop_smallest(Points *p, int distinct)
{
    int from = 0;

    while (distinct-- > 0 && from < p->count)
        from = run_end(p, from);
    for (int i = from; i < p->count; i++) {
        p->x[i - from] = p->x[i];
        p->y[i - from] = p->y[i];
    }
    p->count -= from;
}

static bool take_points(const double *x, const double *y, int count, const FitPlan *plan,
                        Points *out, Error *err)
{
    out->count = 0;
    for (int i = 0; i < count; i++) {
        double by = plan->over_log ? log(x[i]) : 1;

        if (!(x[i] > 0) || !(y[i] > 0) || !(by > 0) || !isfinite(x[i]) || !isfinite(y[i]))
            continue;
        if (out->count == FIT_MOST)
            return error_set(err, ERR_DATA, "a fit takes at most %d points", FIT_MOST);
        insert(out, log(x[i]), log(y[i] / by));
    }
    drop_smallest(out, plan->drop);
    return true;
}

/* ---- slopes ----------------------------------------------------------------- */

static void local_slopes(const Points *p, Fit *out)
{
    double before_x = 0, before_y = 0;

    for (int i = 0, end; i < p->count; i = end) {
        double y = 0;

        end = run_end(p, i);
        for (int j = i; j < end; j++)
            y += p->y[j] / (end - i);
        if (i > 0) {
            out->local_x[out->locals] = exp(p->x[i]);
            out->local[out->locals++] = (y - before_y) / (p->x[i] - before_x);
        }
        before_x = p->x[i];
        before_y = y;
    }
}

/* P(|T| <= t) of Student's distribution (Abramowitz and Stegun 26.7.3 and 26.7.4). */
static double student_inside(double t, int freedom)
{
    double angle = atan(t / sqrt(freedom)), c = cos(angle), term = freedom % 2 ? c : 1, sum = 0;

    for (int k = freedom % 2 ? 1 : 0; k < freedom - 1; k += 2) {
        sum += term;
        term *= c * c * (k + 1) / (k + 2);
    }
    sum *= sin(angle);
    return freedom % 2 ? (angle + sum) / acos(0) : sum;
}

double stats_student_95(int freedom)
{
    double lo = 1.9, hi = 13; /* of 1: 12.71; of very many: 1.96 */

    for (int i = 0; i < 60; i++) {
        double t = (lo + hi) / 2;

        if (student_inside(t, freedom) < 0.95)
            lo = t;
        else
            hi = t;
    }
    return hi;
}

/* The squares that the line leaves of the means of equal x, each as often as it has points. */
static double residual_of_means(const Points *p, const Line *line)
{
    double squares = 0;

    for (int i = 0, end; i < p->count; i = end) {
        double left = -line->mean_y - line->slope * (p->x[i] - line->mean_x);

        end = run_end(p, i);
        for (int j = i; j < end; j++)
            left += p->y[j] / (end - i);
        squares += (end - i) * left * left;
    }
    return squares;
}

/* Student's interval, from four distinct x on: with three one degree of freedom is left, and a
 * factor of 13.  Points of one x (seeds, processes) share what bends a slope there, and a counted
 * cost is the same in all of them: only another x is another observation. */
static void slope_interval(const Points *p, const Line *line, Fit *out)
{
    int    freedom = out->locals + 1 - 2;
    double by;

    if (freedom < 1)
        return;
    out->deviation = number_of(sqrt(residual_of_means(p, line) / freedom / line->sxx));
    if (out->locals < FIT_INTERVAL_LENGTHS - 1)
        return;
    by = stats_student_95(freedom) * out->deviation.value;
    out->lo = number_of(line->slope - by);
    out->hi = number_of(line->slope + by);
}

/* ---- models ----------------------------------------------------------------- */

/* log of the model at log n = t; NaN where the model is not above 0. */
static double model_log(FitModel model, double t)
{
    switch (model) {
    case FIT_CONSTANT: return 0;
    case FIT_LOG: return log(t);
    case FIT_LINEAR: return t;
    case FIT_NLOGN: return t + log(t);
    case FIT_N15: return 1.5 * t;
    case FIT_SQUARE: return 2 * t;
    case FIT_MODELS: break;
    }
    return (double)NAN;
}

const char *fit_model_name(FitModel model)
{
    static const char *const names[FIT_MODELS] = { "1", "log n", "n", "n log n", "n^1.5", "n^2" };

    return names[model];
}

static void fit_model(const Points *p, FitModel model, Fit *out)
{
    double mean = 0, mean_y = 0, squares = 0, all = 0;

    for (int i = 0; i < p->count; i++) {
        mean += (p->y[i] - model_log(model, p->x[i])) / p->count;
        mean_y += p->y[i] / p->count;
    }
    for (int i = 0; i < p->count; i++) {
        double left = p->y[i] - model_log(model, p->x[i]) - mean;

        squares += left * left;
        all += (p->y[i] - mean_y) * (p->y[i] - mean_y);
    }
    if (!isfinite(squares))
        return;
    out->rms[model] = number_of(sqrt(squares / p->count));
    out->factor[model] = number_of(exp(mean));
    out->explained[model] = number_of(all > 0 ? 1 - squares / all : 1);
    if (!out->rms[out->best].valid || out->rms[model].value < out->rms[out->best].value)
        out->best = model;
}

bool fit_power(const double *x, const double *y, int count, const FitPlan *plan, Fit *out,
               Error *err)
{
    Points p;
    Line   line;

    *out = (Fit){ 0 };
    if (!take_points(x, y, count, plan, &p, err))
        return false;
    out->count = p.count;
    line = line_through(p.x, p.y, p.count);
    if (!line.valid)
        return true;
    out->alpha = number_of(line.slope);
    out->c = number_of(exp(line.mean_y - line.slope * line.mean_x));
    out->r2 = number_of(line.syy > 0 ? 1 - line.residual / line.syy : 1);
    local_slopes(&p, out);
    slope_interval(&p, &line, out);
    for (FitModel m = FIT_CONSTANT; m < FIT_MODELS; m++)
        fit_model(&p, m, out);
    return true;
}

/* ---- ratios ----------------------------------------------------------------- */

/* Pairs trimmed at either end: a quarter, but none of few, whose error needs all. */
static int trimmed(int count)
{
    return count < 10 ? 0 : count / 4;
}

/* P(T > t) of Student's distribution. */
static double student_above(double t, int freedom)
{
    double beyond = (1 - student_inside(fabs(t), freedom)) / 2;

    return t > 0 ? beyond : 1 - beyond;
}

/* The sum of squares of sorted x about its mean, with `cut` values at either end moved inwards. */
static double winsorised_squares(const double *x, int count, int cut)
{
    double mean = 0, squares = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            double v = x[i < cut ? cut : i >= count - cut ? count - 1 - cut : i];

            if (pass)
                squares += (v - mean) * (v - mean);
            else
                mean += v / count;
        }
    return squares;
}

/* Yuen's interval and test of the trimmed mean of sorted logarithms. */
static void judge_logs(const double *x, int count, double over, Ratio *out)
{
    int    cut = trimmed(count), kept = count - 2 * cut;
    double mean = 0, error, by, above;

    for (int i = cut; i < count - cut; i++)
        mean += x[i] / kept;
    out->value = number_of(exp(mean));
    if (count < RATIO_PAIRS_LEAST)
        return;
    error = sqrt(winsorised_squares(x, count, cut) / kept / (kept - 1));
    by = stats_student_95(kept - 1) * error;
    above = mean - log1p(over);
    out->lo = number_of(exp(mean - by));
    out->hi = number_of(exp(mean + by));
    out->p = number_of(error > 0 ? student_above(above / error, kept - 1) : above > 0 ? 0 : 1);
}

bool ratio_of_pairs(const double *a, const double *b, int pairs, double over, Ratio *out,
                    Error *err)
{
    double *logs = malloc(((size_t)pairs + 1) * sizeof(*logs));
    int     count = 0;

    *out = (Ratio){ .value = NUMBER_NONE };
    if (!logs)
        return error_set(err, ERR_NOMEM, "not enough memory for a ratio of %d pairs", pairs);
    for (int i = 0; i < pairs; i++)
        if (a[i] > 0 && b[i] > 0 && isfinite(a[i]) && isfinite(b[i]))
            logs[count++] = log(b[i] / a[i]);
    if (count) {
        qsort(logs, (size_t)count, sizeof(*logs), by_value);
        judge_logs(logs, count, over, out);
    }
    free(logs);
    return true;
}

typedef struct Hypothesis {
    double p;
    int    at;
} Hypothesis;

static int by_probability(const void *a, const void *b)
{
    const Hypothesis *x = a, *y = b;

    return (x->p > y->p) - (x->p < y->p);
}

bool stats_holm(double *p, int count, Error *err)
{
    Hypothesis *order = malloc(((size_t)count + 1) * sizeof(*order));
    double      least = 0;
    int         all = 0;

    if (!order)
        return error_set(err, ERR_NOMEM, "not enough memory for %d comparisons", count);
    for (int i = 0; i < count; i++)
        if (!isnan(p[i]))
            order[all++] = (Hypothesis){ p[i], i };
    qsort(order, (size_t)all, sizeof(*order), by_probability);
    for (int i = 0; i < all; i++) {
        least = fmin(1, fmax(least, order[i].p * (all - i)));
        p[order[i].at] = least;
    }
    free(order);
    return true;
}
