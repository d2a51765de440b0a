/* difference.c -- pairs of heads, the difference of their softmaxes; see attn/ops/difference.h.
 *
 * Keys and values of a pair are widened once.  An item of work is a few queries: a worker holds
 * their scores against all keys in both heads, turns them into W, and multiplies W with the values
 * of both heads at once.
 */
#include "attn/ops/difference.h"

#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define SCORES (1 << 16) /* of one head that a worker holds, unless one row has more */
#define MOST_ROWS 64

typedef struct Worker {
    double *z[2]; /* [rows][m] scores of the first and the second head; the first becomes W */
    double *q;    /* [rows][d] */
    double *raw;  /* [rows][2e] */
} Worker;

typedef struct Job {
    Run                    *run;
    const Kernel           *kernel;
    const DifferenceAttend *in;
    DifferenceResult       *out;
    int64_t                 h, n, m, d, e, pair, rows;
    bool                    plain;   /* scores are products, but for a cap and a distance */
    double                 *keys[2]; /* [m][d] */
    double                 *values;  /* [m][2e] */
    Worker                 *workers;
} Job;

static void widen_item(void *context, int64_t j, int worker)
{
    const Job    *job = context;
    const Tensor *v = &job->in->in.v;

    (void)worker;
    for (int t = 0; t < 2; t++) {
        int64_t      head = difference_head(job->in, job->h, job->pair, t);
        int64_t      shared = difference_value(job->in, job->h, job->pair, t);
        const float *key = tensor_row_f32(&job->in->in.k, head, job->h, j);
        const float *value = tensor_row_f32(v, shared, v->shape[0], j);

        for (int64_t c = 0; c < job->d; c++)
            job->keys[t][j * job->d + c] = (double)key[c];
        for (int64_t c = 0; c < job->e; c++)
            job->values[(2 * j + t) * job->e + c] = (double)value[c];
    }
}

/* Products of queries and keys, without their scale. */
static void multiply(const Job *job, Worker *w, int t, int64_t first, int64_t rows, int64_t keys)
{
    int64_t head = difference_head(job->in, job->h, job->pair, t);

    for (int64_t x = 0; x < rows; x++) {
        const float *q = tensor_row_f32(&job->in->in.q, head, job->h, first + x);

        for (int64_t c = 0; c < job->d; c++)
            w->q[x * job->d + c] = (double)q[c];
    }
    cpu_dgemm((WideMatrix){ w->q, job->d, false }, (WideMatrix){ job->keys[t], job->d, true },
              rows, keys, job->d, 1, 0, w->z[t], job->m);
}

/* The finished scores of row i, from products where these are enough. */
static void finish_scores(const Job *job, int64_t head, int64_t i, int64_t count, double *z)
{
    const AttendInput *in = &job->in->in;
    const float *distance = tensor_given(&in->distance) ? tensor_head(&in->distance, head, job->h)
                                                        : NULL;

    for (int64_t j = 0; j < count && !job->plain; j++)
        z[j] = attend_score(in, job->h, head, i, j);
    for (int64_t j = 0; j < count && job->plain; j++) {
        double bias = distance ? (double)distance[i - j + job->m - 1] : 0;
        double x = z[j] * in->scale + (in->distance_capped ? bias : 0);

        if (in->softcap > 0)
            x = in->softcap * tanh(x / in->softcap);
        z[j] = in->distance_capped ? x : x + bias;
    }
}

/* Scores become exp(score - top); returns their sum. */
static double soften(const Job *job, int64_t head, int64_t i, int64_t count, double *z)
{
    int64_t at = head * job->n + i;
    double  top = count > 0 ? z[0] : 0, sum = 0;

    for (int64_t j = 1; j < count; j++)
        top = fmax(top, z[j]);
    for (int64_t j = 0; j < count; j++)
        z[j] -= top;
    job->kernel->exp64(z, count);
    for (int64_t j = 0; j < count; j++)
        sum += z[j];
    tensor_f64(&job->out->top)[at] = top;
    tensor_f64(&job->out->sum)[at] = count > 0 ? sum : 1;
    return count > 0 ? sum : 1;
}

/* Row i of W in the place of the first head's scores, with zeros up to `keys`. */
static void subtract(const Job *job, Worker *w, int64_t row, int64_t i, int64_t keys)
{
    int64_t count = difference_keys(job->in, i), negative = 0;
    double *first = w->z[0] + row * job->m, *second = w->z[1] + row * job->m, sum[2];
    double  lambda = job->in->lambda[job->pair];

    for (int t = 0; t < 2; t++) {
        int64_t head = difference_head(job->in, job->h, job->pair, t);
        double *z = t ? second : first;

        finish_scores(job, head, i, count, z);
        sum[t] = soften(job, head, i, count, z);
    }
    for (int64_t j = 0; j < count; j++) {
        first[j] = first[j] / sum[0] - lambda * (second[j] / sum[1]);
        negative += first[j] < 0;
    }
    for (int64_t j = count; j < keys; j++)
        first[j] = 0;
    ((int64_t *)job->out->negative.data)[job->pair * job->n + i] = negative;
}

/* What a position adds to the values of each distance. */
static void add_distances(const Job *job, const double *weight, int64_t i, double *raw)
{
    const DistanceTerm *value = &job->in->in.value;

    for (int t = 0; t < 2 && tensor_given(&value->table); t++) {
        int64_t head = difference_head(job->in, job->h, job->pair, t);

        for (int64_t j = 0; j < difference_keys(job->in, i); j++) {
            const float *row = tensor_row_f32(&value->table, head, job->h,
                                              value->index[i - j + job->m - 1]);

            for (int64_t c = 0; c < job->e; c++)
                raw[t * job->e + c] += weight[j] * (double)row[c];
        }
    }
}

static double norm_of(const Job *job, const double *raw)
{
    double squares = 0, root;

    for (int64_t c = 0; c < 2 * job->e; c++)
        squares += raw[c] * raw[c];
    root = sqrt(squares / (double)(2 * job->e) + job->in->eps);
    return root > 0 ? job->in->factor / root : 0;
}

static void write_row(const Job *job, int64_t i, const double *raw)
{
    double scale = job->in->norm ? norm_of(job, raw) : 1;

    for (int64_t c = 0; c < 2 * job->e; c++) {
        int64_t head = difference_head(job->in, job->h, job->pair, c >= job->e);
        int64_t at = (head * job->n + i) * job->e + c % job->e;
        double  gain = job->in->norm && job->in->gain ? job->in->gain[c] : 1;

        tensor_f32(&job->out->out)[at] = (float)(raw[c] * scale * gain);
        if (tensor_given(&job->out->raw))
            tensor_f32(&job->out->raw)[at] = (float)raw[c];
    }
}

static void difference_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    Worker    *w = &job->workers[worker];
    int64_t    first = item * job->rows, rows = min_i64(job->rows, job->n - first);
    int64_t    keys = difference_keys(job->in, first + rows - 1), wide = 2 * job->e;

    if (cpu_cancelled(job->run))
        return;
    for (int t = 0; t < 2 && job->plain; t++)
        multiply(job, w, t, first, rows, keys);
    for (int64_t x = 0; x < rows; x++)
        subtract(job, w, x, first + x, keys);
    memset(w->raw, 0, (size_t)(rows * wide) * sizeof(double));
    if (keys > 0)
        cpu_dgemm((WideMatrix){ w->z[0], job->m, false }, (WideMatrix){ job->values, wide, false },
                  rows, wide, keys, 1, 0, w->raw, wide);
    for (int64_t x = 0; x < rows; x++) {
        add_distances(job, w->z[0] + x * job->m, first + x, w->raw + x * wide);
        write_row(job, first + x, w->raw + x * wide);
        run_ahead(job->run, 4.0 * (double)difference_keys(job->in, first + x) *
                                (double)(job->d + job->e));
    }
}

static bool take_memory(Job *job, int count)
{
    Arena  *arena = job->run->arena;
    int64_t wide = (int64_t)sizeof(double);
    bool    taken = true;

    job->values = arena_alloc(arena, job->m * 2 * job->e, wide);
    job->workers = arena_zalloc(arena, count, sizeof(Worker));
    for (int t = 0; t < 2; t++)
        job->keys[t] = arena_alloc(arena, job->m * job->d, wide);
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->z[0] = arena_alloc(arena, job->rows * job->m, wide);
        w->z[1] = arena_alloc(arena, job->rows * job->m, wide);
        w->q = arena_alloc(arena, job->rows * job->d, wide);
        w->raw = arena_alloc(arena, job->rows * 2 * job->e, wide);
        taken &= w->z[0] && w->z[1] && w->q && w->raw;
    }
    return taken && job->workers && job->values && job->keys[0] && job->keys[1];
}

void cpu_difference_attend(Run *r, const DifferenceAttend *in, DifferenceResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .kernel = kernel_at(0), .in = in, .out = out, .h = r->h,
                      .n = in->in.q.shape[1], .m = in->in.k.shape[1], .d = in->in.q.shape[2],
                      .e = in->in.v.shape[2] };

    job.plain = !tensor_given(&in->in.row.table) && !tensor_given(&in->in.col.table) &&
                !in->in.cell_term;
    job.rows = max_i64(1, min_i64(MOST_ROWS, SCORES / job.m));
    if (!take_memory(&job, threads_count(r->threads)))
        run_fail(r, ERR_NOMEM, "not enough memory for rows of %lld scores in two heads; use fewer "
                 "threads or a higher limit", (long long)job.m);
    for (job.pair = 0; job.pair < job.h / 2 && cpu_blas(r); job.pair++) {
        threads_run(r->threads, job.m, widen_item, &job);
        threads_run(r->threads, ceil_div(job.n, job.rows), difference_item, &job);
    }
    arena_release(r->arena, mark);
}
