/* nsa_select.c -- see nsa.h.
 *
 * Importances decide in double.  They are first computed in float, with a bound of their error:
 * where the last block selected and the first one left out differ by more, that is the choice, and
 * only the other rows are computed again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mech/chosen/nsa.h"
#include "attn/run.h"
#include "core/threads.h"

#define ROWS SOFT_ROWS_NEAR /* of an item */
#define TINY 1e-30f /* weights far below are 0 in float */

int64_t nsa_seen(const Nsa *a, int64_t i)
{
    const Slots *s = &a->slots;

    if (!a->causal)
        return s->ranges;
    i += a->at;
    return i + 1 < s->size ? 0 : min_i64((i + 1 - s->size) / s->stride + 1, s->ranges);
}

/* ---- importance -------------------------------------------------------------------- */

/* Adds what one head's weights on the blocks seen give to each selection block. */
static void add_importance(const Nsa *a, const double *w, int64_t seen, double *sum)
{
    int64_t each = a->page / a->slots.stride, size = a->slots.size / a->slots.stride;

    for (int64_t b = 0; b < a->nb && b * each < seen + size - 1; b++) {
        int64_t lo = b * each, hi = lo + each;
        double  of = 0;

        for (int64_t c = max_i64(0, lo - size + 1); c < min_i64(seen, hi); c++)
            of += (double)(min_i64(c + size, hi) - max_i64(c, lo)) * w[c];
        sum[b] += of;
    }
}

int64_t nsa_room(const Nsa *a, int64_t rows)
{
    return rows * (a->keys.d + a->keys.padded);
}

void nsa_importance(const Nsa *a, int64_t group, int64_t i, int64_t rows, double *room,
                    double *sum)
{
    int64_t each = a->h / a->g, seen[ROWS];
    double *w = room + rows * a->keys.d;

    memset(sum, 0, (size_t)(rows * a->nb) * sizeof(*sum));
    for (int64_t x = 0; x < rows; x++)
        seen[x] = nsa_seen(a, i + x);
    for (int64_t head = group * each; head < (group + 1) * each && seen[rows - 1]; head++) {
        soft_rows_weigh(&a->keys, group, tensor_row_f32(&a->in.q, head, a->h, i),
                        a->in.q.stride[1], rows, seen, room, w);
        for (int64_t x = 0; x < rows; x++)
            add_importance(a, w + x * a->keys.padded, seen[x], sum + x * a->nb);
    }
}

/* ---- selection ---------------------------------------------------------------------- */

int64_t nsa_candidates(const Nsa *a, int64_t i)
{
    return a->causal ? (a->at + i) / a->page + 1 : a->nb;
}

bool nsa_fixed(const Nsa *a, int64_t i, int64_t b)
{
    int64_t own = (a->at + i) / a->page;

    return b < a->first || (own - a->last < b && b <= own);
}

int64_t nsa_fixed_count(const Nsa *a, int64_t i)
{
    int64_t own = (a->at + i) / a->page, front = min_i64(a->first, nsa_candidates(a, i));

    return front + max_i64(0, own + 1 - max_i64(front, own - a->last + 1));
}

int64_t nsa_more(const Nsa *a, int64_t i)
{
    int64_t fixed = nsa_fixed_count(a, i);

    return min_i64(max_i64(0, a->topk - fixed), nsa_candidates(a, i) - fixed);
}

/* Room of a worker. */
typedef struct Scratch {
    double  *room, *sum; /* sum [ROWS][nb] */
    int64_t *best;
    uint8_t *taken; /* [nb] component bits; 0: not */
} Scratch;

/* Puts block b among the `count` best so far, at most `most`, the most important first and of equal
 * ones the lowest; returns how many there are.  Blocks come in increasing order. */
static int64_t insert_block(const double *sum, int64_t b, int64_t *best, int64_t count,
                            int64_t most)
{
    int64_t at = count < most ? count : most - 1;

    if (count == most && !(sum[b] > sum[best[at]]))
        return count;
    for (; at > 0 && sum[b] > sum[best[at - 1]]; at--)
        best[at] = best[at - 1];
    best[at] = b;
    return min_i64(count + 1, most);
}

static void select_row(const Nsa *a, int64_t i, const double *sum, const Scratch *s)
{
    int64_t all = nsa_candidates(a, i), more = nsa_more(a, i), count = 0;

    memset(s->taken, 0, (size_t)a->nb);
    for (int64_t b = 0; b < all; b++) {
        if (nsa_fixed(a, i, b))
            s->taken[b] = COMPONENT_GLOBAL;
        else if (more)
            count = insert_block(sum, b, s->best, count, more);
    }
    for (int64_t x = 0; x < count; x++)
        s->taken[s->best[x]] = COMPONENT_WINDOW;
}

/* ---- selection by float --------------------------------------------------------------- */

/* Room of a worker.  near: weights [ROWS + 1][ld], of which a row begins at `left`, with zeros
 * before it. */
typedef struct Near {
    float   *q, *w, *sum; /* sum [ROWS][nb] */
    float   *tap;         /* [taps] cells that a compressed block shares with a selection block */
    int64_t  ld, left, taps;
    int64_t *best;        /* [topk + 1] */
    double   error[ROWS];
} Near;

static void near_new(Run *r, const Nsa *a, Near *s)
{
    int64_t each = a->page / a->slots.stride, size = a->slots.size / a->slots.stride;

    *s = (Near){ .taps = each + size - 1, .left = size - 1 };
    s->ld = s->left + a->slots.ranges + 64 + size + 2 * each;
    s->q = run_alloc(r, max_i64(1, ROWS * a->keys.d), sizeof(float));
    s->w = run_alloc(r, (ROWS + 1) * s->ld, sizeof(float));
    s->sum = run_alloc(r, ROWS * a->nb, sizeof(float));
    s->tap = run_alloc(r, s->taps, sizeof(float));
    s->best = run_alloc(r, a->nb + 1, sizeof(int64_t));
    if (!run_failed(r))
        memset(s->w, 0, (size_t)((ROWS + 1) * s->ld) * sizeof(float));
    for (int64_t t = 0; t < s->taps && !run_failed(r); t++) {
        int64_t c = t - (size - 1); /* first cell, counted from the selection block's */

        s->tap[t] = (float)(min_i64(c + size, each) - max_i64(c, 0));
    }
}

/* Adds what one head's weights w on the blocks seen give to each selection block. */
static void add_near(const Nsa *a, const Near *s, const float *w, int64_t seen, float *sum)
{
    int64_t each = a->page / a->slots.stride, end = min_i64(a->nb, (seen + s->left) / each + 1);

    if (!seen)
        return;
    w -= s->left;
    for (int64_t b = 0; b < end; b++, w += each) {
        float of = 0;

        for (int64_t t = 0; t < s->taps; t++)
            of += s->tap[t] * w[t];
        sum[b] += of;
    }
}

/* Importances of `rows` rows in float, and bounds of their relative errors. */
static void near_importance(const Nsa *a, int64_t group, int64_t i, int64_t rows, Near *s)
{
    int64_t each = a->h / a->g, seen[ROWS];
    double  error[ROWS];

    memset(s->sum, 0, (size_t)(rows * a->nb) * sizeof(*s->sum));
    for (int64_t x = 0; x < rows; x++) {
        seen[x] = nsa_seen(a, i + x);
        s->error[x] = (double)(s->taps + each) * 0x1p-23;
    }
    for (int64_t head = group * each; head < (group + 1) * each && seen[rows - 1]; head++) {
        soft_rows_near(&a->keys, group, tensor_row_f32(&a->in.q, head, a->h, i),
                       a->in.q.stride[1], rows, seen, s->q, s->w + s->left, s->ld, error);
        for (int64_t x = 0; x < rows; x++) {
            add_near(a, s, s->w + x * s->ld + s->left, seen[x], s->sum + x * a->nb);
            s->error[x] = fmax(s->error[x], error[x] + (double)(s->taps + each) * 0x1p-23);
        }
    }
}

/* As insert_block, of numbers in float. */
static int64_t insert_near(const float *sum, int64_t b, int64_t *best, int64_t count, int64_t most)
{
    int64_t at = count < most ? count : most - 1;

    for (; at > 0 && sum[b] > sum[best[at - 1]]; at--)
        best[at] = best[at - 1];
    best[at] = b;
    return min_i64(count + 1, most);
}

static PatternRun *put_fixed(PatternRun *to, int64_t from, int64_t end)
{
    for (int64_t b = from; b < end; b++)
        *to++ = (PatternRun){ b, 1, 1, COMPONENT_GLOBAL };
    return to;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Blocks [from, end) of row x among the best so far, of `most`. */
static int64_t scan_near(const Near *s, const float *sum, int64_t from, int64_t end, int64_t count,
                         int64_t most)
{
    for (int64_t b = from; b < end; b++)
        if (count < most || sum[b] > sum[s->best[most - 1]])
            count = insert_near(sum, b, s->best, count, most);
    return count;
}

/* Puts the blocks of row i, x-th of the item, into `to`; false: float does not decide. */
static bool select_near(const Nsa *a, int64_t i, int64_t x, const Near *s, PatternRun *to)
{
    const float *sum = s->sum + x * a->nb;
    int64_t      all = nsa_candidates(a, i), more = nsa_more(a, i), count = 0, at = 0;
    int64_t      front = min_i64(a->first, all), end = (a->at + i) / a->page + 1;
    int64_t      from = min_i64(end, max_i64(front, end - a->last));

    if (more)
        count = scan_near(s, sum, front, from, 0, more + 1);
    if (more)
        count = scan_near(s, sum, max_i64(front, end), all, count, more + 1);
    if (count > more && !((double)sum[s->best[more - 1]] * (1 - s->error[x]) >
                          (double)sum[s->best[more]] * (1 + s->error[x]) + (double)TINY))
        return false;
    count = min_i64(count, more);
    qsort(s->best, (size_t)count, sizeof(*s->best), by_number);
    to = put_fixed(to, 0, front);
    for (; at < count && s->best[at] < from; at++)
        *to++ = (PatternRun){ s->best[at], 1, 1, COMPONENT_WINDOW };
    to = put_fixed(to, from, end);
    for (; at < count; at++)
        *to++ = (PatternRun){ s->best[at], 1, 1, COMPONENT_WINDOW };
    return true;
}

/* As select_near, in double. */
static void select_exactly(const Nsa *a, int64_t group, int64_t i, const Scratch *s, PatternRun *to)
{
    nsa_importance(a, group, i, 1, s->room, s->sum);
    select_row(a, i, s->sum, s);
    for (int64_t b = 0; b < a->nb; b++)
        if (s->taken[b])
            *to++ = (PatternRun){ b, 1, 1, s->taken[b] };
}

typedef struct Select {
    const Nsa *a;
    int64_t    items; /* of a group */
    Scratch   *scratch; /* of each worker */
    Near      *near;    /* of each worker */
} Select;

static void select_item(void *context, int64_t item, int worker)
{
    const Select  *job = context;
    const Nsa     *a = job->a;
    const Scratch *s = &job->scratch[worker];
    int64_t        group = item / job->items, first = item % job->items * ROWS;
    int64_t        rows = min_i64(ROWS, a->n - first);
    Near          *near = &job->near[worker];

    near_importance(a, group, first, rows, near);
    for (int64_t x = 0; x < rows; x++) {
        PatternRun *to = a->block + a->start[group * a->n + first + x];

        if (!select_near(a, first + x, x, near, to))
            select_exactly(a, group, first + x, s, to);
    }
}

void nsa_select(Run *r, Nsa *a)
{
    int     workers = threads_count(r->threads);
    int64_t rows = a->g * a->n, used = 0;
    Select  job = { .a = a, .items = (a->n + ROWS - 1) / ROWS,
                    .scratch = run_alloc(r, workers, sizeof(*job.scratch)),
                    .near = run_alloc(r, workers, sizeof(*job.near)) };

    a->start = run_alloc(r, rows + 1, sizeof(*a->start));
    for (int64_t at = 0; at < rows && !run_failed(r); at++) {
        a->start[at] = used;
        used += nsa_fixed_count(a, at % a->n) + nsa_more(a, at % a->n);
    }
    a->block = run_alloc(r, max_i64(1, used), sizeof(*a->block));
    for (int x = 0; x < workers && !run_failed(r); x++)
        job.scratch[x] = (Scratch){ .room = run_alloc(r, max_i64(1, nsa_room(a, 1)),
                                                      sizeof(double)),
                                    .sum = run_alloc(r, a->nb, sizeof(double)),
                                    .best = run_alloc(r, a->nb, sizeof(int64_t)),
                                    .taken = run_alloc(r, a->nb, 1) };
    for (int x = 0; x < workers && !run_failed(r); x++)
        near_new(r, a, &job.near[x]);
    if (run_failed(r))
        return;
    a->start[rows] = used;
    threads_run(r->threads, a->g * job.items, select_item, &job);
    op_traffic(r, (double)tensor_bytes(&a->in.q) + 8 * (double)(a->g * a->slots.ranges * r->d),
               (double)used * (double)sizeof(*a->block));
}
