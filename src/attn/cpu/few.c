/* few.c -- attention of a few queries that read all keys.
 *
 *     out_i = sum_j 2^(s_ij - max_j s_ij) v_j / sum_j 2^(s_ij - max_j s_ij)
 *
 * Queries and keys swap their roles in the kernels: up to TILE_KEYS queries are the packed
 * panel, and keys are the rows, each read once and not copied.  A row of scores then belongs
 * to a key, and the online softmax runs down the columns.  The keys of a head are cut into
 * slices of a fixed size, each with its own softmax; the slices are joined in order at the
 * end, so the number of threads changes no bit.
 */
#include "attn/cpu/cpu.h"

#include "attn/cpu/simd/kernel.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define STEP_KEYS 252       /* keys scored before their weights are used: whole tiles */
#define SLICE_KEYS 4032     /* least keys of a slice: whole steps */
#define SLICES 8            /* most slices of a head */
#define PART_FLOATS (1 << 22) /* of all slices' results: fewer slices where they are large */

typedef struct Job {
    Run             *run;
    const Kernel    *kernel;
    const FewAttend *in;
    FewResult       *out;
    int64_t          h, l, m, d, e, f; /* f: width of `more` */
    int64_t          panels, slices, slice_keys;
    int64_t          rows, lda;   /* of a panel's sums: padded queries, e and f side by side */
    float           *packed;      /* [h][panels][d][TILE_KEYS] queries */
    float           *sums;        /* [h][slices][panels][rows][lda] */
    float           *max;         /* [h][slices][panels][TILE_KEYS] */
    double          *total;       /* the same */
    double          *squares;     /* [h][slices][2] of the longest key, the longest value */
    float           *work;        /* [workers][work_size] */
    int64_t          work_size;
} Job;

/* A worker's memory. */
typedef struct Work {
    float *s, *last;     /* [STEP_KEYS][TILE_KEYS]; [TILE_ROWS][d] keys of a short tile */
    float *top;          /* [TILE_ROWS][LANES], not read */
    float *step, *factor; /* [TILE_KEYS] sums of this step; factors of earlier sums */
} Work;

static int64_t columns_of(const Job *job, int64_t panel)
{
    return min_i64(TILE_KEYS, round_up_to(job->l - panel * TILE_KEYS, LANES));
}

static void pack_queries_item(void *context, int64_t item, int worker)
{
    Job         *job = context;
    int64_t      head = item / job->panels, panel = item % job->panels;
    int64_t      count = min_i64(TILE_KEYS, job->l - panel * TILE_KEYS);
    float       *packed = job->packed + item * job->d * TILE_KEYS;
    const float *q = tensor_row_f32(&job->in->q, head, job->h, panel * TILE_KEYS);

    (void)worker;
    pack_panel(q, job->in->q.stride[1], count, job->d, packed);
    job->kernel->scale(packed, job->d * TILE_KEYS, (float)(job->in->scale * LOG2_E), packed);
}

/* Scores of keys [j, j + keys), at most STEP_KEYS, against a panel of queries. */
static void score_keys(const Job *job, const Work *w, int64_t head, int64_t panel, int64_t j,
                       int64_t keys)
{
    const float *packed = job->packed + (head * job->panels + panel) * job->d * TILE_KEYS;
    int64_t      ldk = job->in->k.stride[1];

    for (int64_t x = 0; x < keys; x += TILE_ROWS) {
        const float *k = tensor_row_f32(&job->in->k, head, job->h, j + x);
        bool         whole = keys - x >= TILE_ROWS;

        for (int64_t r = 0; r < keys - x && !whole; r++)
            memcpy(w->last + r * job->d, k + r * ldk, (size_t)job->d * sizeof(float));
        job->kernel->score(whole ? k : w->last, whole ? ldk : job->d, packed, job->d, NULL,
                           0, (int)columns_of(job, panel), w->s + x * TILE_KEYS, TILE_KEYS, w->top);
    }
}

/* The largest of `most` and the sums of squares of rows [j, j + keys); NaN stays. */
static double longest(const Job *job, const Tensor *t, int64_t head, int64_t j, int64_t keys,
                      double most)
{
    const float *rows = tensor_row_f32(t, head, job->h, j);

    return larger_or_nan(most, (double)job->kernel->most_squares(rows, t->stride[1], keys,
                                                                 t->shape[2]));
}

/* The panel's softmax and sums take in keys [j, j + keys). */
static void take_keys(const Job *job, const Work *w, int64_t head, int64_t part, int64_t panel,
                      int64_t j, int64_t keys)
{
    int64_t at = part * job->panels + panel, columns = columns_of(job, panel);
    float  *sums = job->sums + at * job->rows * job->lda;

    score_keys(job, w, head, panel, j, keys);
    job->kernel->columns(w->s, keys, (int)columns, job->max + at * TILE_KEYS, w->step, w->factor);
    for (int64_t c = 0; c < columns; c++) {
        double *total = &job->total[at * TILE_KEYS + c];

        *total = *total * (double)w->factor[c] + (double)w->step[c];
    }
    for (int64_t r = 0; r < min_i64(job->l - panel * TILE_KEYS, TILE_KEYS); r += TILE_ROWS) {
        job->kernel->mix_turned(w->s + r, tensor_row_f32(&job->in->v, head, job->h, j),
                                job->in->v.stride[1], keys, job->e, w->factor + r,
                                sums + r * job->lda, job->lda);
        if (job->f > 0)
            job->kernel->mix_turned(w->s + r, tensor_row_f32(&job->in->more, head, job->h, j),
                                    job->in->more.stride[1], keys, job->f, w->factor + r,
                                    sums + r * job->lda + round_up_to(job->e, LANES), job->lda);
    }
}

static Work work_of(const Job *job, int worker)
{
    Work w = { .s = job->work + worker * job->work_size };

    w.last = w.s + STEP_KEYS * TILE_KEYS + LANES;
    w.top = w.last + TILE_ROWS * job->d;
    w.step = w.top + TILE_ROWS * LANES;
    w.factor = w.step + TILE_KEYS;
    return w;
}

static void slice_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    Work       w = work_of(job, worker);
    int64_t    head = item / job->slices, first = item % job->slices * job->slice_keys;
    int64_t    end = min_i64(job->m, first + job->slice_keys), queries = job->panels * TILE_KEYS;
    double    *squares = job->squares + 2 * item;

    memset(job->sums + item * job->panels * job->rows * job->lda, 0,
           (size_t)(job->panels * job->rows * job->lda) * sizeof(float));
    for (int64_t c = item * queries; c < (item + 1) * queries; c++) {
        job->max[c] = -INFINITY;
        job->total[c] = 0;
    }
    /* And all memory behind it: the last rows of a tile may belong to no key. */
    memset(w.last, 0, (size_t)(job->work_size - (w.last - w.s)) * sizeof(float));
    squares[0] = squares[1] = 0;
    for (int64_t j = first; j < end && !cpu_cancelled(job->run); j += STEP_KEYS) {
        int64_t keys = min_i64(STEP_KEYS, end - j);

        for (int64_t panel = 0; panel < job->panels; panel++)
            take_keys(job, &w, head, item, panel, j, keys);
        squares[0] = longest(job, &job->in->k, head, j, keys, squares[0]);
        squares[1] = longest(job, &job->in->v, head, j, keys, squares[1]);
    }
}

/* to [width] = the slices' sums, from column `at`, each times its weight. */
static void join(const Job *job, const double *weight, const float *sums, int64_t width,
                 float *to)
{
    int64_t step = job->panels * job->rows * job->lda;

    for (int64_t c = 0; c < width; c++) {
        double sum = 0;

        for (int64_t s = 0; s < job->slices; s++)
            sum += weight[s] * (double)sums[s * step + c];
        to[c] = (float)sum;
    }
}

static void join_item(void *context, int64_t item, int worker)
{
    const Job   *job = context;
    int64_t      head = item / job->l, i = item % job->l, panel = i / TILE_KEYS;
    int64_t      first = head * job->slices * job->panels + panel;
    const float *sums = job->sums + first * job->rows * job->lda + i % TILE_KEYS * job->lda;
    double       top = -(double)INFINITY, total = 0, weight[SLICES];

    (void)worker;
    for (int64_t s = 0; s < job->slices; s++)
        top = fmax(top, (double)job->max[(first + s * job->panels) * TILE_KEYS + i % TILE_KEYS]);
    top = top > -(double)INFINITY ? top : 0; /* nothing but NaN */
    for (int64_t s = 0; s < job->slices; s++) {
        int64_t at = (first + s * job->panels) * TILE_KEYS + i % TILE_KEYS;

        weight[s] = exp2((double)job->max[at] - top);
        weight[s] = job->max[at] > -INFINITY ? weight[s] : 1;
        total += weight[s] * job->total[at];
    }
    for (int64_t s = 0; s < job->slices; s++)
        weight[s] /= total;
    join(job, weight, sums, job->e, tensor_f32(&job->out->out) + item * job->e);
    if (job->f > 0)
        join(job, weight, sums + round_up_to(job->e, LANES), job->f,
             tensor_f32(&job->out->more) + item * job->f);
    tensor_f64(&job->out->lse)[item] = (top + log2(total)) * LN_2;
}

/* The longest key, 0, or value, 1. */
static double longest_of_all(const Job *job, int which)
{
    double most = 0;

    for (int64_t x = 0; x < job->h * job->slices; x++)
        most = larger_or_nan(most, job->squares[2 * x + which]);
    return sqrt(most);
}

static void plan(Job *job)
{
    int64_t floats, most;

    job->panels = ceil_div(job->l, TILE_KEYS);
    job->rows = round_up_to(min_i64(job->l, TILE_KEYS), TILE_ROWS);
    job->lda = round_up_to(job->e, LANES) + round_up_to(job->f, LANES);
    floats = job->h * job->panels * job->rows * job->lda;
    most = max_i64(1, min_i64(SLICES, PART_FLOATS / max_i64(1, floats)));
    job->slice_keys = max_i64(SLICE_KEYS, round_up_to(ceil_div(job->m, most), STEP_KEYS));
    job->slices = ceil_div(job->m, job->slice_keys);
    job->work_size = round_up_to(STEP_KEYS * TILE_KEYS + LANES + TILE_ROWS * (job->d + LANES) +
                                     2 * TILE_KEYS + TILE_ROWS, LANES);
}

static bool take_memory(Job *job)
{
    Run    *r = job->run;
    int64_t parts = job->h * job->slices * job->panels, size = (int64_t)sizeof(float);

    job->packed = cpu_scratch(r, job->h * job->panels, job->d * TILE_KEYS * size);
    job->sums = cpu_scratch(r, parts, job->rows * job->lda * size);
    job->max = cpu_scratch(r, parts, TILE_KEYS * size);
    job->total = cpu_scratch(r, parts, TILE_KEYS * (int64_t)sizeof(double));
    job->work = cpu_scratch(r, threads_count(r->threads), job->work_size * size);
    job->squares = cpu_scratch(r, job->h * job->slices, 2 * (int64_t)sizeof(double));
    return job->packed && job->sums && job->max && job->total && job->work && job->squares;
}

void cpu_few_attend(Run *r, const FewAttend *in, FewResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .kernel = kernel_at(0), .in = in, .out = out,
                      .h = out->out.shape[0], .l = in->q.shape[1], .m = in->k.shape[1],
                      .d = in->q.shape[2], .e = in->v.shape[2],
                      .f = in->more.data ? in->more.shape[2] : 0 };

    plan(&job);
    if (take_memory(&job)) {
        threads_run(r->threads, job.h * job.panels, pack_queries_item, &job);
        threads_run(r->threads, job.h * job.slices, slice_item, &job);
        threads_run(r->threads, job.h * job.l, join_item, &job);
        out->key_length = longest_of_all(&job, 0);
        out->value_length = longest_of_all(&job, 1);
    }
    arena_release(r->arena, mark);
}
