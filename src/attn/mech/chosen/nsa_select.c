/* nsa_select.c -- see nsa.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mech/chosen/nsa.h"
#include "attn/run.h"
#include "core/threads.h"

int64_t nsa_seen(const Nsa *a, int64_t i)
{
    const Slots *s = &a->slots;

    if (!a->causal)
        return s->ranges;
    i += a->at;
    return i + 1 < s->size ? 0 : min_i64((i + 1 - s->size) / s->stride + 1, s->ranges);
}

/* ---- importance -------------------------------------------------------------------- */

static void softmax_row(const Nsa *a, int64_t head, int64_t i, int64_t seen, double *w)
{
    const float  *q = tensor_row_f32(&a->in.q, head, a->h, i);
    int64_t       d = a->in.q.shape[2], count = a->slots.ranges;
    const double *keys = a->keys + head / (a->h / a->g) * d * count;
    double        most = -HUGE_VAL, sum = 0, cap = a->in.softcap;

    memset(w, 0, (size_t)seen * sizeof(*w));
    for (int64_t t = 0; t < d; t++)
        for (int64_t c = 0; c < seen; c++)
            w[c] += (double)q[t] * keys[t * count + c];
    for (int64_t c = 0; c < seen; c++) {
        w[c] *= a->in.scale;
        if (cap > 0)
            w[c] = cap * tanh(w[c] / cap);
        most = fmax(most, w[c]);
    }
    for (int64_t c = 0; c < seen; c++)
        sum += w[c] = exp(w[c] - most);
    for (int64_t c = 0; c < seen; c++)
        w[c] /= sum;
}

/* Adds what one head's weights on the blocks seen give to each selection block. */
static void add_importance(const Nsa *a, const double *w, int64_t seen, double *sum)
{
    int64_t each = a->page / a->slots.stride, size = a->slots.size / a->slots.stride;

    for (int64_t b = 0; b < a->nb; b++) {
        int64_t lo = b * each, hi = lo + each;
        double  of = 0;

        for (int64_t c = max_i64(0, lo - size + 1); c < min_i64(seen, hi); c++)
            of += (double)(min_i64(c + size, hi) - max_i64(c, lo)) * w[c];
        sum[b] += of;
    }
}

void nsa_importance(const Nsa *a, int64_t group, int64_t i, double *w, double *sum)
{
    int64_t seen = nsa_seen(a, i), each = a->h / a->g;

    memset(sum, 0, (size_t)a->nb * sizeof(*sum));
    for (int64_t head = group * each; head < (group + 1) * each && seen; head++) {
        softmax_row(a, head, i, seen, w);
        add_importance(a, w, seen, sum);
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

typedef struct Ranked {
    double  value;
    int64_t block;
} Ranked;

static int by_value(const void *x, const void *y)
{
    const Ranked *a = x, *b = y;

    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Room for one row. */
typedef struct Scratch {
    double  *weight, *sum;
    Ranked  *rank;
    uint8_t *taken; /* [nb] component bits; 0: not */
} Scratch;

static void select_row(const Nsa *a, int64_t group, int64_t i, const Scratch *s)
{
    int64_t all = nsa_candidates(a, i), more = nsa_more(a, i), rest = 0;

    memset(s->taken, 0, (size_t)a->nb);
    for (int64_t b = 0; b < all; b++) {
        if (nsa_fixed(a, i, b))
            s->taken[b] = COMPONENT_GLOBAL;
        else
            s->rank[rest++] = (Ranked){ .block = b };
    }
    if (more && more < rest) {
        nsa_importance(a, group, i, s->weight, s->sum);
        for (int64_t x = 0; x < rest; x++)
            s->rank[x].value = s->sum[s->rank[x].block];
        qsort(s->rank, (size_t)rest, sizeof(*s->rank), by_value);
    }
    for (int64_t x = 0; x < more; x++)
        s->taken[s->rank[x].block] = COMPONENT_WINDOW;
}

#define ROWS 16 /* of an item */

typedef struct Select {
    const Nsa *a;
    Scratch   *scratch; /* of each worker */
} Select;

static void select_item(void *context, int64_t item, int worker)
{
    const Select *job = context;
    const Nsa    *a = job->a;

    for (int64_t at = item * ROWS; at < min_i64((item + 1) * ROWS, a->g * a->n); at++) {
        PatternRun *to = a->block + a->start[at];

        select_row(a, at / a->n, at % a->n, &job->scratch[worker]);
        for (int64_t b = 0; b < a->nb; b++)
            if (job->scratch[worker].taken[b])
                *to++ = (PatternRun){ b, 1, 1, job->scratch[worker].taken[b] };
    }
}

void nsa_select(Run *r, Nsa *a)
{
    int     workers = threads_count(r->threads);
    int64_t rows = a->g * a->n, used = 0;
    Select  job = { .a = a, .scratch = run_alloc(r, workers, sizeof(*job.scratch)) };

    a->start = run_alloc(r, rows + 1, sizeof(*a->start));
    for (int64_t at = 0; at < rows && !run_failed(r); at++) {
        a->start[at] = used;
        used += nsa_fixed_count(a, at % a->n) + nsa_more(a, at % a->n);
    }
    a->block = run_alloc(r, max_i64(1, used), sizeof(*a->block));
    for (int x = 0; x < workers && !run_failed(r); x++)
        job.scratch[x] = (Scratch){ .weight = run_alloc(r, a->slots.ranges + 1, sizeof(double)),
                                    .sum = run_alloc(r, a->nb, sizeof(double)),
                                    .rank = run_alloc(r, a->nb, sizeof(Ranked)),
                                    .taken = run_alloc(r, a->nb, 1) };
    if (run_failed(r))
        return;
    a->start[rows] = used;
    threads_run(r->threads, (rows + ROWS - 1) / ROWS, select_item, &job);
    op_traffic(r, (double)tensor_bytes(&a->in.q) + 8 * (double)(a->g * a->slots.ranges * r->d),
               (double)used * (double)sizeof(*a->block));
}
