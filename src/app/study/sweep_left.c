/* sweep_left.c -- how long the points of a sweep that are left will take.
 *
 * The work of a point is n^a d^(3-a): a is the exponent that its source claims, so full attention
 * has n^2 d and a linear one n d^2.  The time t of a run grows as the last two lengths of its
 * series did; with one length, or none, in proportion to the work.  A process repeats the run until
 * it knows the median, within limits; so short runs take about the same, long ones a few times t.
 * What the processes really took, against this, corrects the sum: quality and decoding are in it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/study/sweep.h"
#include "profile/measure.h"

#define BESIDE 2        /* runs besides the timed ones: the first call, the warm-up */
#define WORK_USUAL 2.0  /* exponent where no source claims one */

typedef struct Left {
    const SweepSpec *spec;
    const SweepPlan *plan;
    const Results   *rows;
    const int       *row_of;
    double           floor; /* the shortest process, seconds */
    double           rate;  /* seconds of a run for a unit of work */
    double           scale; /* what processes took, of what is computed for them */
} Left;

double sweep_work(const SweepSpec *spec, const SweepPoint *point)
{
    char             id[64];
    const Mechanism *m;
    double           n = point->n > 0 ? (double)point->n : 1;
    double           d = spec->d > 0 ? (double)spec->d : 1, a;

    snprintf(id, sizeof(id), "%.*s", (int)strcspn(point->mechanism, "("), point->mechanism);
    m = mechanism_find(id);
    a = m && m->claim_exponent > 0 ? m->claim_exponent : WORK_USUAL;
    return pow(n, a) * pow(d, 3 - a);
}

static const ResultRow *row_at(const Left *l, int point)
{
    return point >= 0 && l->row_of[point] >= 0 ? &l->rows->rows[l->row_of[point]] : NULL;
}

/* Seconds of one run, measured. */
static Number run_seconds(const Left *l, int point)
{
    const ResultRow *row = row_at(l, point);
    Number           ms = row && row->ok ? row_number(row, "time_ms.median") : NUMBER_NONE;

    return ms.valid ? number_of(ms.value / 1e3) : ms;
}

/* A process that runs t seconds again and again. */
static double process_seconds(const Left *l, double t)
{
    const MeasurePlan usual = MEASURE_DEFAULT;
    double            runs = BESIDE + (l->spec->repeat ? l->spec->repeat : usual.repeats);

    return l->floor + fmin(runs * t, fmax(usual.max_seconds, BESIDE * t));
}

/* Seconds of one run of a point that is left. */
static double run_expected(const Left *l, int at)
{
    int64_t n[2];
    double  y[2], work = sweep_work(l->spec, &l->plan->points[at]);
    int     found[2], count = 0;

    for (int i = l->plan->points[at].shorter; i >= 0 && count < 2; i = l->plan->points[i].shorter)
        if (run_seconds(l, i).valid)
            found[count++] = i;
    if (!count)
        return l->rate * work;
    if (count == 1)
        return run_seconds(l, *found).value * work / sweep_work(l->spec, &l->plan->points[*found]);
    for (int i = 0; i < 2; i++) {
        n[i] = l->plan->points[found[1 - i]].n;
        y[i] = run_seconds(l, found[1 - i]).value;
    }
    return forecast_growth(n, y, 2, l->plan->points[at].n).value.value;
}

/* What the measured points say; false: none was measured. */
static bool learn(Left *l)
{
    double work = 0, runs = 0, took = 0, computed = 0;

    l->floor = (double)INFINITY;
    for (int i = 0; i < l->plan->count; i++) {
        Number run = run_seconds(l, i);
        Number whole = run.valid ? row_number(row_at(l, i), "process.seconds") : NUMBER_NONE;

        if (!whole.valid)
            continue;
        l->floor = fmin(l->floor, whole.value);
        work += sweep_work(l->spec, &l->plan->points[i]);
        runs += run.value;
        took += whole.value;
    }
    if (!(work > 0))
        return false;
    l->rate = runs / work;
    for (int i = 0; i < l->plan->count; i++) {
        Number run = run_seconds(l, i);

        if (run.valid && row_number(row_at(l, i), "process.seconds").valid)
            computed += process_seconds(l, run.value);
    }
    l->scale = computed > 0 ? took / computed : 1;
    return true;
}

double sweep_left(const SweepSpec *spec, const SweepPlan *plan, const Results *rows,
                  const int *row_of, int next)
{
    Left   l = { .spec = spec, .plan = plan, .rows = rows, .row_of = row_of };
    double seconds = 0;

    if (!learn(&l))
        return -1;
    for (int i = next; i < plan->count; i++)
        if (row_of[i] < 0 && !*plan->points[i].refused)
            seconds += l.scale * process_seconds(&l, run_expected(&l, i));
    return seconds;
}
