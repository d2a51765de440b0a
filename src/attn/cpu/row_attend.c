/* row_attend.c -- attention a row at a time, in double, by a normaliser of choice.
 *
 * Keys are widened once per head, in panels [d][PANEL].  An item of work is a few
 * queries: a worker holds their scores against all keys, turns them into weights and
 * mixes the values of non-zero weights in float.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define PANEL 64
#define LINES (1 << 17) /* scores a worker holds, unless one row has more */
#define MOST_ROWS 64

typedef struct Worker {
    double  *z;    /* [rows][keys] scores of an item */
    double  *work; /* [keys] */
    double  *gain; /* [keys] */
    float   *w;    /* [keys] non-zero weights */
    int32_t *key;  /* [keys] their keys */
    float   *acc;  /* [e] padded */
} Worker;

typedef struct Job {
    Run             *run;
    const Kernel    *kernel;
    const RowAttend *in;
    RowResult       *out;
    int64_t          head, n, m, d, e, keys, rows; /* keys: m in whole panels */
    double          *k;                            /* [keys / LANES][d][LANES] of the head */
    Worker          *workers;
} Job;

static void widen_keys(const Job *job)
{
    const Tensor *k = &job->in->k;
    const float  *from = tensor_head(k, job->head, job->run->h);

    for (int64_t j = 0; j < job->keys; j++)
        for (int64_t t = 0; t < job->d; t++)
            job->k[(j / LANES * job->d + t) * LANES + j % LANES] =
                j < job->m ? (double)from[j * k->stride[1] + t] : 0;
}

static void score_rows(const Job *job, Worker *w, int64_t first, int64_t rows)
{
    const Tensor *q = &job->in->q;
    const float  *from = tensor_row_f32(q, job->head, job->run->h, first);
    int64_t       most = row_attend_keys(job->run, job->in, first + rows - 1);

    for (int64_t at = 0; at < most; at += PANEL)
        job->kernel->dots64(from, q->stride[1], rows, job->d, job->k + at * job->d, PANEL,
                            w->z + at, job->keys);
}

static void apply_mask(const RowMask *mask, int64_t heads, int64_t head, int64_t i,
                       int64_t count, double *z, double *gain)
{
    for (int64_t j = 0; j < count; j++) {
        double m = row_mask(mask, heads, head, i, j, z[j]);

        if (mask->multiply)
            gain[j] = m;
        else if (mask->hard)
            z[j] = m > 0 ? z[j] : -HUGE_VAL;
        else
            z[j] -= mask->penalty * (1 - m);
    }
}

/* Entries at most this have weight 0, and none else where it is finite; NaN: unknown. */
static double zero_up_to(const Entmax *form, EntmaxRow row)
{
    return form->form == ENTMAX_SPARSEMAX ? row.tau
           : form->form == ENTMAX_SQUARE ? 2 * row.tau
                                         : (double)NAN;
}

/* Weights of one row of scores; returns how many are not 0. */
static int64_t weigh(const Job *job, Worker *w, int64_t i, double *z, int64_t count,
                     int32_t *support)
{
    const RowAttend *in = job->in;
    const Entmax    *form = &in->form[job->head];
    int64_t          at = job->head * job->n + i, traced = in->trace.data ? in->trace.shape[2] : 0;
    double          *trace = traced ? tensor_f64(&in->trace) + at * traced : NULL;
    EntmaxRow        row;
    int64_t          found = 0;
    double           limit;

    job->kernel->scale64(z, count, in->scale);
    for (int64_t j = 0; j < count && in->mask; j++)
        w->gain[j] = 1;
    if (in->mask)
        apply_mask(in->mask, job->run->h, job->head, i, count, z, w->gain);
    row = entmax_row(form, z, count, w->work, trace, traced);
    limit = in->negligible >= 0 ? zero_up_to(form, row) : (double)NAN;
    *support = 0;
    for (int64_t j = 0; j < count; j++) {
        double p;

        if (!isnan(limit))
            j = job->kernel->next_above64(z, j, count, limit);
        if (j == count)
            break;
        p = z[j] > -HUGE_VAL ? entmax_weight(form, row, z[j]) : 0;
        p *= in->mask ? w->gain[j] : 1;
        *support += z[j] > -HUGE_VAL && p > in->negligible;
        if (p > 0) {
            w->w[found] = (float)p;
            w->key[found++] = (int32_t)j;
        }
    }
    tensor_f64(&job->out->tau)[at] = row.tau;
    tensor_f64(&job->out->total)[at] = row.total;
    return found;
}

static void attend_row_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    Worker    *w = &job->workers[worker];
    int64_t    first = item * job->rows, rows = min_i64(job->rows, job->n - first);
    const Tensor *v = &job->in->v;

    if (cpu_cancelled(job->run))
        return;
    score_rows(job, w, first, rows);
    for (int64_t i = first; i < first + rows; i++) {
        int64_t at = job->head * job->n + i;
        int64_t count = row_attend_keys(job->run, job->in, i);
        int64_t found = weigh(job, w, i, w->z + (i - first) * job->keys, count,
                              tensor_i32(&job->out->support) + at);

        memset(w->acc, 0, (size_t)round_up_to(job->e, LANES) * sizeof(float));
        job->kernel->mix_row(w->w, tensor_head(v, job->head, job->run->h), v->stride[1], w->key,
                             found, job->e, 1, w->acc);
        memcpy(tensor_f32(&job->out->out) + at * job->e, w->acc, (size_t)job->e * sizeof(float));
        run_ahead(job->run, 2.0 * (double)(count * job->d + found * job->e));
    }
}

static bool row_workers_init(Job *job, int count)
{
    Arena  *arena = job->run->arena;
    int64_t wide = (int64_t)sizeof(double), keys = job->keys;

    job->k = arena_alloc(arena, keys * job->d, wide);
    job->workers = arena_zalloc(arena, count, sizeof(Worker));
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->z = arena_alloc(arena, keys * job->rows, wide);
        w->work = arena_alloc(arena, keys, wide);
        w->gain = arena_alloc(arena, keys, wide);
        w->w = arena_alloc(arena, keys, sizeof(float));
        w->key = arena_alloc(arena, keys, sizeof(int32_t));
        w->acc = arena_alloc(arena, round_up_to(job->e, LANES), sizeof(float));
        if (!w->z || !w->work || !w->gain || !w->w || !w->key || !w->acc)
            return false;
    }
    return job->workers && job->k;
}

void cpu_row_attend(Run *r, const RowAttend *in, RowResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .kernel = kernel_at(0), .in = in, .out = out,
                      .n = in->q.shape[1], .m = in->k.shape[1], .d = in->q.shape[2],
                      .e = in->v.shape[2], .keys = round_up_to(in->k.shape[1], PANEL) };

    job.rows = max_i64(1, min_i64(MOST_ROWS, LINES / job.keys));
    if (!row_workers_init(&job, threads_count(r->threads)))
        run_fail(r, ERR_NOMEM, "not enough memory for rows of %lld scores; use fewer threads or a "
                 "higher limit", (long long)job.m);
    for (job.head = 0; job.head < r->h && !run_failed(r); job.head++) {
        widen_keys(&job);
        threads_run(r->threads, ceil_div(job.n, job.rows), attend_row_item, &job);
    }
    arena_release(r->arena, mark);
}

/* How much each key is used; see op_key_usage.
 *
 * An item of work is a head.  The sums of the heads are added in order, so the result does not
 * depend on the threads.
 */

#define ROWS 16 /* scores kept at once */

typedef struct Usage {
    Run          *run;
    const Tensor *q, *k;
    double        scale;
    bool          causal;
    int64_t       h, n, m, d, cols; /* cols: m, padded */
    double       *keys;             /* [h][cols / LANES][d][LANES], for Kernel.dots64 */
    double       *scores;           /* [h][ROWS][cols] */
    double       *sums;             /* [h][m] */
} Usage;

static void turn_keys(const Usage *u, int64_t head, double *keys)
{
    const float *k = tensor_head(u->k, head, u->h);

    memset(keys, 0, (size_t)(u->d * u->cols) * sizeof(*keys));
    for (int64_t j = 0; j < u->m; j++)
        for (int64_t t = 0; t < u->d; t++)
            keys[(j / LANES * u->d + t) * LANES + j % LANES] = (double)k[j * u->k->stride[1] + t];
}

static void add_row(const Usage *u, int64_t i, double *score, double *sums)
{
    int64_t seen = u->causal ? i + u->m - u->n + 1 : u->m;
    double  most = -(double)INFINITY, total = 0;

    for (int64_t j = 0; j < seen; j++)
        most = fmax(most, u->scale * score[j]);
    for (int64_t j = 0; j < seen; j++) {
        score[j] = exp(u->scale * score[j] - most);
        total += score[j];
    }
    for (int64_t j = 0; j < seen; j++)
        sums[j] += score[j] / total;
}

static void usage_item(void *context, int64_t head, int worker)
{
    const Usage *u = context;
    double      *keys = u->keys + head * u->d * u->cols;
    double      *scores = u->scores + head * ROWS * u->cols, *sums = u->sums + head * u->m;
    const float *q = tensor_head(u->q, head, u->h);
    int64_t      ldq = u->q->stride[1];

    (void)worker;
    turn_keys(u, head, keys);
    memset(sums, 0, (size_t)u->m * sizeof(*sums));
    for (int64_t first = 0; first < u->n; first += ROWS) {
        int64_t rows = min_i64(ROWS, u->n - first);

        if (cpu_cancelled(u->run))
            return;
        kernel_at(0)->dots64(q + first * ldq, ldq, rows, u->d, keys, u->cols, scores, u->cols);
        for (int64_t i = 0; i < rows; i++)
            add_row(u, first + i, scores + i * u->cols, sums);
    }
}

void cpu_key_usage(Run *r, const Tensor *q, const Tensor *k, double scale, bool causal,
                   Tensor *usage)
{
    ArenaMark mark = arena_mark(r->arena);
    double   *out = usage->data;
    Usage     u = { .run = r, .q = q, .k = k, .scale = scale, .causal = causal, .h = q->shape[0],
                    .n = q->shape[1], .m = k->shape[1], .d = q->shape[2],
                    .cols = round_up_to(k->shape[1], LANES) };

    u.keys = cpu_scratch(r, u.h * u.d, u.cols * (int64_t)sizeof(double));
    u.scores = cpu_scratch(r, u.h * ROWS, u.cols * (int64_t)sizeof(double));
    u.sums = cpu_scratch(r, u.h, u.m * (int64_t)sizeof(double));
    if (u.keys && u.scores && u.sums) {
        threads_run(r->threads, u.h, usage_item, &u);
        for (int64_t j = 0; j < u.m; j++) {
            out[j] = 0;
            for (int64_t head = 0; head < u.h; head++)
                out[j] += u.sums[head * u.m + j];
            out[j] /= (double)(u.h * u.n);
        }
    }
    arena_release(r->arena, mark);
}
