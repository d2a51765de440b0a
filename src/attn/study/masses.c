/* masses.c -- how much of exact attention a choice of cells holds.
 *
 *     kept_i = sum over the chosen keys of exp(S_ij) / sum over the allowed keys of exp(S_ij)
 *     best_i = the same of the |A_i| keys with the largest scores
 *
 * so kept_i <= best_i: no choice of as many keys holds more.  Scores are those of the run: the same
 * scale, cap, positions and order.  The figures need every score once; above FIGURES_MOST scores
 * they are absent, and the views read their rows when they are asked for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/run.h"
#include "core/threads.h"

#define DOUBLE_MOST (INT64_C(1) << 28)  /* multiply-adds for scores in double; more: in float */
#define FIGURES_MOST (INT64_C(1) << 26) /* scores for the figures: a plain run stays linear */

typedef struct Masses {
    AttendInput    in;
    const Pattern *cells;
    int64_t        h, n, m, q_offset;
    bool           causal, wide;
    float         *kept, *best; /* [h,n]; NULL: rows are read when they are asked for */
} Masses;

/* Room for one row. */
typedef struct Scratch {
    double    *score; /* [m] */
    double    *held;  /* [m] */
    float     *near;  /* [m] */
    PatternRow row;
} Scratch;

static bool scratch_new(Scratch *s, int64_t m)
{
    *s = (Scratch){ .score = malloc((size_t)m * sizeof(double)),
                    .held = malloc((size_t)m * sizeof(double)),
                    .near = malloc((size_t)m * sizeof(float)) };
    return s->score && s->held && s->near;
}

static void scratch_free(Scratch *s)
{
    free(s->score);
    free(s->held);
    free(s->near);
    pattern_row_free(&s->row);
}

static int64_t allowed_keys(const Masses *s, int64_t i)
{
    return s->causal ? max_i64(0, min_i64(s->m, i + s->q_offset + 1)) : s->m;
}

static void score_row(const Masses *s, int64_t head, int64_t i, int64_t keys, Scratch *w)
{
    if (s->wide) {
        for (int64_t j = 0; j < keys; j++)
            w->score[j] = attend_score(&s->in, s->h, head, i, j);
        return;
    }
    attend_scores_run(&s->in, s->h, head, i, 0, keys, 1, w->near);
    for (int64_t j = 0; j < keys; j++)
        w->score[j] = (double)w->near[j];
}

static void swap_at(double *x, int64_t a, int64_t b)
{
    double held = x[a];

    x[a] = x[b];
    x[b] = held;
}

/* Brings the `wanted` largest of x[count] to the front, in any order (quickselect). */
static void largest_first(double *x, int64_t count, int64_t wanted)
{
    int64_t lo = 0, hi = count - 1;

    while (lo < hi) {
        double  pivot = x[lo + (hi - lo) / 2];
        int64_t a = lo, b = hi;

        while (a <= b) {
            while (x[a] > pivot)
                a++;
            while (x[b] < pivot)
                b--;
            if (a <= b)
                swap_at(x, a++, b--);
        }
        if (wanted <= b + 1)
            hi = b;
        else if (wanted > a)
            lo = a;
        else
            return;
    }
}

static double sum_of(const double *x, int64_t count)
{
    double sum = 0;

    for (int64_t j = 0; j < count; j++)
        sum += x[j];
    return sum;
}

#define MORE 64 /* numbers held beyond twice those wanted, before the smaller ones are dropped */

/* The sum of the `wanted` largest of x[count], of which the others are passed over many at once;
 * held: room for count. */
static double sum_of_largest(const double *x, int64_t count, int64_t wanted, double *held)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       have = 0, most = 2 * wanted + MORE;
    double        limit = (double)NAN;

    for (int64_t j = 0; j < count; j++) {
        if (!isnan(limit))
            j = kernel->next_above64(x, j, count, limit);
        if (j < count)
            held[have++] = x[j];
        if (have == most) {
            largest_first(held, have, wanted);
            have = wanted;
            limit = held[0];
            for (int64_t c = 1; c < have; c++)
                limit = held[c] < limit ? held[c] : limit;
        }
    }
    largest_first(held, have, wanted);
    return sum_of(held, wanted);
}

/* The sum of the chosen keys; *count: how many there are. */
static double sum_chosen(const PatternRow *row, const double *x, int64_t keys, int64_t *count)
{
    double sum = 0;

    *count = 0;
    for (int64_t r = 0; r < row->count; r++)
        for (int64_t c = 0; c < row->runs[r].count; c++) {
            int64_t j = row->runs[r].start + c * row->runs[r].step;

            if (j < keys) {
                sum += x[j];
                ++*count;
            }
        }
    return sum;
}

static void mass_row(const Masses *s, int64_t head, int64_t i, Scratch *w, float *kept,
                     float *best)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       keys = allowed_keys(s, i), count;
    double        all, chosen;

    *kept = *best = 0;
    score_row(s, head, i, keys, w);
    all = kernel->soften64(w->score, keys, kernel->largest64(w->score, keys));
    pattern_row(s->cells, head, i, &w->row);
    chosen = sum_chosen(&w->row, w->score, keys, &count);
    if (!count || w->row.failed)
        return;
    *best = (float)((count < keys ? sum_of_largest(w->score, keys, count, w->held) : all) / all);
    *kept = fminf((float)(chosen / all), *best);
}

/* ---- all rows at once ------------------------------------------------------------ */

#define ROWS_OF_ITEM 16

static void mass_item(void *context, int64_t item, int worker)
{
    const Masses *s = context;
    int64_t       end = min_i64((item + 1) * ROWS_OF_ITEM, s->h * s->n);
    Scratch       w;

    (void)worker;
    if (!scratch_new(&w, s->m))
        end = 0; /* the rows stay NaN */
    for (int64_t at = item * ROWS_OF_ITEM; at < end; at++)
        mass_row(s, at / s->n, at % s->n, &w, s->kept + at, s->best + at);
    scratch_free(&w);
}

static double mean_of(const float *x, int64_t count)
{
    double sum = 0;

    for (int64_t at = 0; at < count; at++)
        sum += (double)x[at];
    return sum / (double)count;
}

static void masses_take(Run *r, Masses *s)
{
    int64_t rows = s->h * s->n;

    s->kept = run_alloc(r, rows, sizeof(*s->kept));
    s->best = run_alloc(r, rows, sizeof(*s->best));
    if (run_failed(r))
        return;
    for (int64_t at = 0; at < rows; at++)
        s->kept[at] = s->best[at] = (float)NAN;
    threads_run(r->threads, (rows + ROWS_OF_ITEM - 1) / ROWS_OF_ITEM, mass_item, s);
    run_figure(r, "mass", mean_of(s->kept, rows));
    run_figure(r, "best_mass", mean_of(s->best, rows));
}

static bool wants_figures(const Run *r)
{
    return run_wants_views(r) && !r->spec.pairs_only && !r->spec.views_only &&
           (double)r->h * (double)r->n * (double)r->m <= (double)FIGURES_MOST;
}

void run_relative_error(Run *r, const AttendInput *in)
{
    AttendResult full;
    double       moved = 0, size = 0;

    if (!wants_figures(r))
        return;
    r->again = true; /* a comparison is no part of the mechanism: it charges nothing */
    full = op_attend(r, in, run_allowed_cells(r));
    r->again = false;
    op_wait(r, "the host compares the output with exact attention");
    for (int64_t x = 0; !run_failed(r) && x < tensor_count(&r->out); x++) {
        double exact = (double)tensor_f32(&full.out)[x];
        double apart = (double)tensor_f32(&r->out)[x] - exact;

        moved += apart * apart;
        size += exact * exact;
    }
    /* not known where either is not finite, or exact attention is 0 and the output is not */
    run_figure(r, "relative_error", moved == 0 && size == 0 ? 0 : sqrt(moved / size));
}

/* ---- views ------------------------------------------------------------------------ */

/* A row of the view is a head, its columns are queries. */
static void read_masses(const View *view, int64_t head, int64_t start, int64_t count, int64_t step,
                        bool kept, float *out)
{
    const Masses *s = view->context;
    Scratch       w;
    bool          ok = scratch_new(&w, s->m);

    for (int64_t c = 0; c < count; c++) {
        float of[2] = { (float)NAN, (float)NAN };

        if (ok)
            mass_row(s, head, start + c * step, &w, &of[0], &of[1]);
        out[c] = of[kept ? 0 : 1];
    }
    scratch_free(&w);
}

static void read_kept(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    (void)plane;
    read_masses(view, i, start, count, step, true, out);
}

static void read_best(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    (void)plane;
    read_masses(view, i, start, count, step, false, out);
}

static void mass_view(Run *r, const char *name, const Masses *s, float *values, ViewReadRun read)
{
    int64_t shape[2] = { s->h, s->n };
    View   *view = view_add(r, name, VIEW_TENSOR, DT_F32, 2, shape);

    if (!view)
        return;
    view->rows = "head";
    view->cols = "query";
    if (values)
        view->tensor = tensor_of(DT_F32, 2, shape, values);
    else
        view->read = read;
    view->context = s;
}

void run_masses(Run *r, const AttendInput *in, const Pattern *cells)
{
    Masses *s = run_wants_views(r) && cells ? run_alloc(r, 1, sizeof(*s)) : NULL;
    double  scores = (double)r->h * (double)r->n * (double)r->m;

    if (!s)
        return;
    *s = (Masses){ .in = *in, .cells = cells, .h = r->h, .n = r->n, .m = r->m,
                   .q_offset = r->q_offset, .causal = r->causal,
                   .wide = scores * (double)r->d <= (double)DOUBLE_MOST };
    op_wait(r, "the host weighs the chosen cells");
    run_figure(r, "mean_keys", (double)pattern_count(cells) / (double)(r->h * r->n));
    if (wants_figures(r)) {
        masses_take(r, s);
        run_relative_error(r, &s->in);
    }
    mass_view(r, "kept_mass", s, s->kept, read_kept);
    mass_view(r, "best_mass", s, s->best, read_best);
}
