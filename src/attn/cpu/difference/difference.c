/* difference.c -- pairs of heads, the difference of their softmaxes; see attn/ops/difference.h.
 *
 * Where scores are products, rows are computed in float first (difference_near.c).  What follows
 * is for those that float does not make exact enough, and for all others.
 *
 * Keys and values of a pair are widened once, in strips of LANES.  An item of work is a few
 * queries: a worker holds their scores against all keys in both heads, turns them into W, and
 * multiplies W with the values of both heads, some keys at a time.
 *
 * One query a head, a step of decoding, widens each number as it reads it.  The keys are cut into
 * slices of a fixed size, each with its own softmax; slices are joined in order, so the number of
 * threads changes no bit.
 */
#include "attn/cpu/difference/difference.h"

#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define SCORES (1 << 17) /* of one head that a worker holds, unless a group has more */
#define MOST_ROWS 64
#define GROUP 8          /* rows that the kernels multiply together */
#define DEPTH 1024       /* keys whose values are mixed at a time */
#define SLICE_KEYS 4096  /* of one query */

typedef struct Worker {
    double *z[2]; /* [rows][wide] scores of the first and the second head; the first becomes W */
    double *q;    /* [rows][d] */
    double *raw;  /* [rows][cols] */
    double *part; /* [rows][cols] what DEPTH keys add to raw */
} Worker;

typedef struct Job {
    Run                    *run;
    const Kernel           *kernel;
    const DifferenceAttend *in;
    DifferenceResult       *out;
    int64_t                 h, n, m, d, e, pair, rows;
    int64_t                 wide, cols; /* m and 2e, padded */
    bool                    plain;   /* scores are products, but for a cap and a distance */
    double                 *keys[2]; /* [wide / LANES][d][LANES] */
    double                 *values;  /* [cols / LANES][m][LANES] */
    Worker                 *workers;
    const uint8_t          *doubt;   /* [n] rows to compute; NULL: all */
} Job;

/* Keys of one strip. */
static void widen_keys(const Job *job, int64_t strip, int t)
{
    const Tensor *k = &job->in->in.k;
    int64_t       head = difference_head(job->in, job->h, job->pair, t);
    double       *to = job->keys[t] + strip * job->d * LANES;

    for (int64_t c = 0; c < job->d; c++)
        for (int64_t j = strip * LANES; j < (strip + 1) * LANES; j++)
            *to++ = j < job->m ? (double)tensor_row_f32(k, head, job->h, j)[c] : 0;
}

/* Both values of key j. */
static void widen_values(const Job *job, int64_t j)
{
    const Tensor *v = &job->in->in.v;

    for (int64_t c = 0; c < job->cols; c++) {
        double *to = job->values + (c / LANES * job->m + j) * LANES + c % LANES;
        int64_t head = difference_value(job->in, job->h, job->pair, c >= job->e);

        *to = c < 2 * job->e ? (double)tensor_row_f32(v, head, v->shape[0], j)[c % job->e] : 0;
    }
}

static void widen_item(void *context, int64_t strip, int worker)
{
    const Job *job = context;

    (void)worker;
    for (int t = 0; t < 2; t++)
        widen_keys(job, strip, t);
    for (int64_t j = strip * LANES; j < min_i64(job->m, (strip + 1) * LANES); j++)
        widen_values(job, j);
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
    for (int64_t at = 0; at < keys; at += LANES)
        job->kernel->fused64(w->q, job->d, rows, job->d, job->keys[t] + at * job->d, w->z[t] + at,
                             job->wide);
}

/* raw = W times the values. */
static void mix(const Job *job, Worker *w, int64_t rows, int64_t keys)
{
    memset(w->raw, 0, (size_t)(rows * job->cols) * sizeof(double));
    for (int64_t at = 0; at < keys; at += DEPTH) {
        int64_t depth = min_i64(DEPTH, keys - at);

        for (int64_t c = 0; c < job->cols; c += LANES)
            job->kernel->fused64(w->z[0] + at, job->wide, rows, depth,
                                 job->values + (c / LANES * job->m + at) * LANES, w->part + c,
                                 job->cols);
        for (int64_t x = 0; x < rows * job->cols; x++)
            w->raw[x] += w->part[x];
    }
}

/* The finished scores of row i for keys [first, first + count), from products where these are
 * enough. */
static void finish_scores(const Job *job, int64_t head, int64_t i, int64_t first, int64_t count,
                          double *z)
{
    const AttendInput *in = &job->in->in;
    const float *distance = tensor_given(&in->distance) ? tensor_head(&in->distance, head, job->h)
                                                        : NULL;

    if (job->plain && !distance && !(in->softcap > 0)) {
        job->kernel->scale64(z, count, in->scale);
        return;
    }
    for (int64_t j = 0; j < count && !job->plain; j++)
        z[j] = attend_score(in, job->h, head, i, first + j);
    for (int64_t j = 0; j < count && job->plain; j++) {
        double bias = distance ? (double)distance[i - first - j + job->m - 1] : 0;
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
    double  top = count > 0 ? job->kernel->largest64(z, count) : 0;
    double  sum = job->kernel->soften64(z, count, top);

    tensor_f64(&job->out->top)[at] = top;
    tensor_f64(&job->out->sum)[at] = count > 0 ? sum : 1;
    return count > 0 ? sum : 1;
}

/* Row i of W in the place of the first head's scores, with zeros up to `keys`. */
static void subtract(const Job *job, Worker *w, int64_t row, int64_t i, int64_t keys)
{
    int64_t count = difference_keys(job->in, i), negative;
    double *first = w->z[0] + row * job->wide, *second = w->z[1] + row * job->wide, sum[2];

    for (int t = 0; t < 2; t++) {
        int64_t head = difference_head(job->in, job->h, job->pair, t);
        double *z = t ? second : first;

        finish_scores(job, head, i, 0, count, z);
        sum[t] = soften(job, head, i, count, z);
    }
    negative = job->kernel->subtract64(first, count, 1 / sum[0], second,
                                       job->in->lambda[job->pair] / sum[1]);
    for (int64_t j = count; j < keys; j++)
        first[j] = 0;
    ((int64_t *)job->out->negative.data)[job->pair * job->n + i] = negative;
}

/* What a position adds to the values of each distance, of keys [first, first + count). */
static void add_distances(const Job *job, const double *weight, int64_t i, int64_t first,
                          int64_t count, double *raw)
{
    const DistanceTerm *value = &job->in->in.value;

    for (int t = 0; t < 2 && tensor_given(&value->table); t++) {
        int64_t head = difference_head(job->in, job->h, job->pair, t);

        for (int64_t j = 0; j < count; j++) {
            const float *row = tensor_row_f32(&value->table, head, job->h,
                                              value->index[i - first - j + job->m - 1]);

            for (int64_t c = 0; c < job->e; c++)
                raw[t * job->e + c] += weight[j] * (double)row[c];
        }
    }
}

static double norm_of(const DifferenceAttend *in, const double *raw)
{
    int64_t width = 2 * in->in.v.shape[2];
    double  squares = 0, root;

    for (int64_t c = 0; c < width; c++)
        squares += raw[c] * raw[c];
    root = sqrt(squares / (double)width + in->eps);
    return root > 0 ? in->factor / root : 0;
}

void difference_normed(const DifferenceAttend *in, const double *raw, double *y)
{
    double scale = in->norm ? norm_of(in, raw) : 1;

    for (int64_t c = 0; c < 2 * in->in.v.shape[2]; c++)
        y[c] = raw[c] * scale * (in->norm && in->gain ? in->gain[c] : 1);
}

void difference_write(const DifferenceAttend *in, DifferenceResult *out, int64_t heads,
                      int64_t pair, int64_t i, const double *raw)
{
    double  scale = in->norm ? norm_of(in, raw) : 1;
    int64_t n = in->in.q.shape[1], e = in->in.v.shape[2];

    for (int64_t c = 0; c < 2 * e; c++) {
        int64_t head = difference_head(in, heads, pair, c >= e), at = (head * n + i) * e + c % e;
        double  gain = in->norm && in->gain ? in->gain[c] : 1;

        tensor_f32(&out->out)[at] = (float)(raw[c] * scale * gain);
        if (tensor_given(&out->raw))
            tensor_f32(&out->raw)[at] = (float)raw[c];
    }
}

static void difference_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    Worker    *w = &job->workers[worker];
    int64_t    first = item * job->rows, rows = min_i64(job->rows, job->n - first);
    int64_t    keys = difference_keys(job->in, first + rows - 1);

    if (cpu_cancelled(job->run) || (job->doubt && !memchr(job->doubt + first, 1, (size_t)rows)))
        return;
    for (int t = 0; t < 2 && job->plain; t++)
        multiply(job, w, t, first, rows, keys);
    for (int64_t x = 0; x < rows; x++)
        subtract(job, w, x, first + x, keys);
    mix(job, w, rows, keys);
    for (int64_t x = 0; x < rows; x++) {
        int64_t seen = difference_keys(job->in, first + x);

        add_distances(job, w->z[0] + x * job->wide, first + x, 0, seen, w->raw + x * job->cols);
        difference_write(job->in, job->out, job->h, job->pair, first + x,
                         w->raw + x * job->cols);
        run_ahead(job->run, 4.0 * (double)seen * (double)(job->d + job->e));
    }
}

/* ---- one query a head ----------------------------------------------------------------- */

typedef struct Slice {
    double  top[2], sum[2]; /* of the first and the second head */
    double *raw;            /* [2e] */
    int64_t negative;
} Slice;

typedef struct OneRow {
    const Job *job;
    int64_t    keys, slices;
    double    *q[2]; /* [d] */
    double    *z[2]; /* [keys] scores, then exp(score - top of the slice); the first becomes W */
    double     top[2], sum[2];
    Slice     *slice;
} OneRow;

static void score_slice(void *context, int64_t at, int worker)
{
    OneRow             *o = context;
    const Job          *job = o->job;
    const AttendInput  *in = &job->in->in;
    int64_t             first = at * SLICE_KEYS, count = min_i64(SLICE_KEYS, o->keys - first);

    (void)worker;
    for (int t = 0; t < 2 && !cpu_cancelled(job->run); t++) {
        int64_t      head = difference_head(job->in, job->h, job->pair, t);
        const float *k = tensor_row_f32(&in->k, head, job->h, first);
        double      *z = o->z[t] + first, top;

        if (job->plain)
            job->kernel->dots_wide(o->q[t], k, in->k.stride[1], count, job->d, z);
        finish_scores(job, head, 0, first, count, z);
        top = job->kernel->largest64(z, count);
        o->slice[at].top[t] = top;
        o->slice[at].sum[t] = job->kernel->soften64(z, count, top > -HUGE_VAL ? top : 0);
    }
}

/* What the exponentials of a slice are multiplied by; one that holds only NaN passes it on. */
static double weight_of(const OneRow *o, const Slice *slice, int t)
{
    return slice->top[t] > -HUGE_VAL ? exp(slice->top[t] - o->top[t]) : 1;
}

static void join_scores(OneRow *o, int t)
{
    int64_t at = difference_head(o->job->in, o->job->h, o->job->pair, t);

    o->top[t] = o->slices ? -HUGE_VAL : 0;
    o->sum[t] = o->slices ? 0 : 1;
    for (int64_t x = 0; x < o->slices; x++)
        o->top[t] = fmax(o->top[t], o->slice[x].top[t]);
    for (int64_t x = 0; x < o->slices; x++)
        o->sum[t] += weight_of(o, &o->slice[x], t) * o->slice[x].sum[t];
    tensor_f64(&o->job->out->top)[at] = o->top[t];
    tensor_f64(&o->job->out->sum)[at] = o->sum[t];
}

static void mix_slice(void *context, int64_t at, int worker)
{
    OneRow       *o = context;
    const Job    *job = o->job;
    const Tensor *v = &job->in->in.v;
    Slice        *slice = &o->slice[at];
    int64_t       first = at * SLICE_KEYS, count = min_i64(SLICE_KEYS, o->keys - first);
    double       *w = o->z[0] + first;

    (void)worker;
    slice->negative = job->kernel->subtract64(
        w, count, weight_of(o, slice, 0) / o->sum[0], o->z[1] + first,
        job->in->lambda[job->pair] * weight_of(o, slice, 1) / o->sum[1]);
    for (int t = 0; t < 2 && !cpu_cancelled(job->run); t++) {
        int64_t      head = difference_value(job->in, job->h, job->pair, t);
        const float *rows = tensor_row_f32(v, head, v->shape[0], first);

        job->kernel->mix_wide(w, rows, v->stride[1], count, job->e, slice->raw + t * job->e);
    }
    add_distances(job, w, 0, first, count, slice->raw);
    run_ahead(job->run, 4.0 * (double)count * (double)(job->d + job->e));
}

static void join_slices(const OneRow *o)
{
    const Job *job = o->job;
    int64_t    negative = 0;

    for (int64_t x = 0; x < o->slices; x++)
        negative += o->slice[x].negative;
    for (int64_t x = 1; x < o->slices; x++)
        for (int64_t c = 0; c < 2 * job->e; c++)
            o->slice->raw[c] += o->slice[x].raw[c];
    ((int64_t *)job->out->negative.data)[job->pair] = negative;
    difference_write(job->in, job->out, job->h, job->pair, 0, o->slice->raw);
}

static bool one_row_init(OneRow *o)
{
    Arena  *arena = o->job->run->arena;
    int64_t each = (int64_t)sizeof(double), slices = max_i64(1, o->slices), width = 2 * o->job->e;
    double *raw = arena_alloc(arena, slices * width, each);

    o->slice = arena_zalloc(arena, slices, sizeof(*o->slice));
    for (int t = 0; t < 2; t++) {
        o->q[t] = arena_alloc(arena, o->job->d, each);
        o->z[t] = arena_alloc(arena, max_i64(1, o->keys), each);
    }
    for (int64_t x = 0; raw && o->slice && x < slices; x++)
        o->slice[x].raw = raw + x * width;
    return raw && o->slice && o->q[0] && o->q[1] && o->z[0] && o->z[1];
}

static void begin_pair(OneRow *o)
{
    const Job *job = o->job;

    memset(o->slice->raw, 0, (size_t)(max_i64(1, o->slices) * 2 * job->e) * sizeof(double));
    for (int t = 0; t < 2; t++)
        for (int64_t c = 0; c < job->d; c++)
            o->q[t][c] = (double)tensor_row_f32(
                &job->in->in.q, difference_head(job->in, job->h, job->pair, t), job->h, 0)[c];
}

/* False: no memory. */
static bool one_row(Job *job)
{
    Threads *threads = job->run->threads;
    OneRow   o = { .job = job, .keys = difference_keys(job->in, 0) };

    o.slices = ceil_div(o.keys, SLICE_KEYS);
    if (!one_row_init(&o))
        return false;
    for (job->pair = 0; job->pair < job->h / 2 && !run_failed(job->run); job->pair++) {
        begin_pair(&o);
        threads_run(threads, o.slices, score_slice, &o);
        join_scores(&o, 0);
        join_scores(&o, 1);
        threads_run(threads, o.slices, mix_slice, &o);
        join_slices(&o);
    }
    return true;
}

/* ---- memory, and the whole --------------------------------------------------------------- */

static bool take_memory(Job *job, int count)
{
    Arena  *arena = job->run->arena;
    int64_t each = (int64_t)sizeof(double), cells = job->rows * job->wide;
    bool    taken = true;

    job->values = arena_alloc(arena, job->m * job->cols, each);
    job->workers = arena_zalloc(arena, count, sizeof(Worker));
    for (int t = 0; t < 2; t++)
        job->keys[t] = arena_alloc(arena, job->wide * job->d, each);
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->z[0] = arena_alloc(arena, cells, each);
        w->z[1] = arena_alloc(arena, cells, each);
        w->q = arena_alloc(arena, job->rows * job->d, each);
        w->raw = arena_alloc(arena, job->rows * job->cols, each);
        w->part = arena_alloc(arena, job->rows * job->cols, each);
        taken &= w->z[0] && w->z[1] && w->q && w->raw && w->part;
    }
    return taken && job->workers && job->values && job->keys[0] && job->keys[1];
}

/* The rows of a pair, in double.  False: no memory. */
static bool pair_rows(Job *job)
{
    Run *r = job->run;

    if (!job->workers && !take_memory(job, threads_count(r->threads)))
        return false;
    threads_run(r->threads, job->wide / LANES, widen_item, job);
    threads_run(r->threads, ceil_div(job->n, job->rows), difference_item, job);
    return true;
}

/* False: no memory. */
static bool many_rows(Job *job)
{
    NearDifference *near = NULL;
    Run            *r = job->run;
    uint8_t        *doubt = arena_zalloc(r->arena, job->n, 1);
    bool            pays = near_difference_pays(job->in);

    if (pays)
        near = near_difference_new(r, job->in, job->out);
    if (!doubt || (pays && !near))
        return false;
    job->doubt = near ? doubt : NULL;
    for (job->pair = 0; job->pair < job->h / 2 && !run_failed(r); job->pair++)
        if ((!near || near_difference_pair(near, job->pair, doubt)) && !pair_rows(job))
            return false;
    return true;
}

void cpu_difference_attend(Run *r, const DifferenceAttend *in, DifferenceResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .kernel = kernel_at(0), .in = in, .out = out, .h = r->h,
                      .n = in->in.q.shape[1], .m = in->in.k.shape[1], .d = in->in.q.shape[2],
                      .e = in->in.v.shape[2] };

    job.plain = !tensor_given(&in->in.row.table) && !tensor_given(&in->in.col.table) &&
                !in->in.cell_term;
    job.wide = round_up_to(job.m, LANES) + LANES; /* rows a power of two apart conflict */
    job.cols = round_up_to(2 * job.e, LANES);
    job.rows = max_i64(GROUP, min_i64(MOST_ROWS, SCORES / job.wide / GROUP * GROUP));
    if (!(job.n == 1 ? one_row(&job) : many_rows(&job)))
        run_fail(r, ERR_NOMEM, "not enough memory for rows of %lld scores in two heads; use fewer "
                 "threads or a higher limit", (long long)job.m);
    arena_release(r->arena, mark);
}
