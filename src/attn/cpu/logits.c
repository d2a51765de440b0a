/* logits.c -- attention over logits given as factors, or whole.
 *
 *     out_i = sum_j exp(L[i,j] - max_j L[i,j]) v_j / sum_j exp(L[i,j] - max_j L[i,j])
 *
 * over all j, or j <= i + offset.  Logits are in double (their errors become factors of the
 * weights), exponentials and values in float.  A worker holds the logits of some rows: for
 * products a tile of keys at a time, with an online softmax, so that they stay in the cache;
 * for other kinds whole rows.  The blocks are fixed, so the number of threads changes no bit.
 */
#include "attn/cpu/cpu.h"
#include "core/rng.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define ROWS 32
#define PRODUCT_ROWS 64
#define PRODUCT_KEYS 512
#define TILED_KEYS 128 /* columns of a tiled product at once */

typedef struct Job {
    Run               *run;
    const LogitAttend *in;
    LogitResult       *out;
    int64_t            h, n, m, e, blocks, inner; /* inner: length of a product */
    int64_t            rows, tile; /* of a block; keys whose logits are held at once */
    double            *work;      /* [workers][work_size]: logits [rows][tile], then factors */
    float             *weights;   /* [workers][rows][tile] */
    int64_t            work_size;
} Job;

/* ---- the logits of a block of rows ------------------------------------------ */

static void fill_given(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                       double *x)
{
    const Tensor *left = &job->in->left;

    for (int64_t i = 0; i < rows; i++) {
        const float *row = tensor_row_f32(left, head, job->h, first + i);

        for (int64_t j = 0; j < keys; j++)
            x[i * job->m + j] = (double)row[j];
    }
}

static void fill_uniform(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                         double *x, float *drawn)
{
    const LogitAttend *in = job->in;

    for (int64_t i = 0; i < rows; i++) {
        Rng rng = { .seed = in->seed, .stream = in->stream,
                    .at = (uint64_t)((head * job->n + first + i) * job->m) };

        rng_fill_uniform(&rng, drawn, keys, -in->bound, in->bound);
        for (int64_t j = 0; j < keys; j++)
            x[i * job->m + j] = (double)drawn[j];
    }
}

/* Row i of the slice, its entries [from, from + count), in double. */
static void widen(const Tensor *t, int64_t heads, int64_t head, int64_t i, int64_t from,
                  int64_t count, double *to)
{
    floats_widen(t->dtype, tensor_head(t, head, heads), i * t->stride[1] + from, count, to);
}

/* Keys [from, from + keys). */
static void fill_product(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t from,
                         int64_t keys, double *x)
{
    const LogitAttend *in = job->in;
    int64_t            inner = job->inner, deep = in->turned ? keys : inner;
    int64_t            wide = in->turned ? inner : keys;
    double            *left = x + job->rows * job->tile, *right = left + job->rows * inner;

    for (int64_t i = 0; i < rows; i++) {
        widen(&in->left, job->h, head, first + i, 0, inner, left + i * inner);
        if (in->bias.data)
            widen(&in->bias, job->h, head, 0, from, keys, x + i * job->tile);
    }
    for (int64_t y = 0; y < deep; y++)
        widen(&in->right, job->h, head, in->turned ? from + y : y, in->turned ? 0 : from, wide,
              right + y * wide);
    cpu_dgemm((WideMatrix){ left, inner, false }, (WideMatrix){ right, wide, in->turned }, rows,
              keys, inner, 1, in->bias.data ? 1 : 0, x, job->tile);
}

static void fill_folded(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                        double *x)
{
    const LogitAttend *in = job->in;
    int64_t            a = in->left.shape[2];

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j += a) {
            double        right = tensor_float(&in->right, head, job->h, first + i, j / a);
            const double *left = tensor_row_f64(&in->left, head, job->h, first + i);
            int64_t       count = min_i64(a, keys - j);

            for (int64_t c = 0; c < count; c++)
                x[i * job->m + j + c] = right * left[c];
        }
}

/* Writes out both maps of the formula: `left` tiled, `right` repeated. */
static void fill_tiled(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                       double *x)
{
    const LogitAttend *in = job->in;
    int64_t            a = in->left.shape[2], ab = job->inner;
    double            *tile = x + ROWS * job->m, *repeat = tile + ROWS * ab;

    for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < ab; t++)
            tile[i * ab + t] = tensor_float(&in->left, head, job->h, first + i, t % a);
    for (int64_t j = 0; j < keys && !cpu_cancelled(job->run); j += TILED_KEYS) {
        int64_t count = min_i64(TILED_KEYS, keys - j);

        for (int64_t y = 0; y < count; y++)
            for (int64_t t = 0; t < ab; t++)
                repeat[y * ab + t] = tensor_float(&in->right, head, job->h, j + y, t / a);
        cpu_dgemm((WideMatrix){ tile, ab, false }, (WideMatrix){ repeat, ab, true }, rows, count,
                  ab, 1, 0, x + j, job->m);
    }
}

/* Logits of keys [from, from + keys); from > 0 only for products. */
static void fill_logits(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t from,
                        int64_t keys, double *x, float *scratch)
{
    switch (job->in->kind) {
    case LOGITS_GIVEN: fill_given(job, head, first, rows, keys, x); break;
    case LOGITS_UNIFORM: fill_uniform(job, head, first, rows, keys, x, scratch); break;
    case LOGITS_PRODUCT: fill_product(job, head, first, rows, from, keys, x); break;
    case LOGITS_FOLDED: fill_folded(job, head, first, rows, keys, x); break;
    case LOGITS_TILED: fill_tiled(job, head, first, rows, keys, x); break;
    }
}

/* ---- softmax and values ------------------------------------------------------ */

#define PARTS 8 /* independent sums: an addition need not wait for the one before */

static double largest_logit(const double *x, int64_t count)
{
    double part[PARTS], top = x[0];

    for (int p = 0; p < PARTS; p++)
        part[p] = x[0];
    for (int64_t j = 0; j + PARTS <= count; j += PARTS)
        for (int p = 0; p < PARTS; p++)
            part[p] = x[j + p] > part[p] ? x[j + p] : part[p];
    for (int64_t j = count - count % PARTS; j < count; j++)
        top = x[j] > top ? x[j] : top;
    for (int p = 0; p < PARTS; p++)
        top = part[p] > top ? part[p] : top;
    return top;
}

static double total(const float *x, int64_t count)
{
    double part[PARTS] = { 0 }, sum = 0;

    for (int64_t j = 0; j + PARTS <= count; j += PARTS)
        for (int p = 0; p < PARTS; p++)
            part[p] += (double)x[j + p];
    for (int64_t j = count - count % PARTS; j < count; j++)
        sum += (double)x[j];
    for (int p = 0; p < PARTS; p++)
        sum += part[p];
    return sum;
}

/* The softmax of a row so far: its largest logit, and the sum of exponentials below it. */
typedef struct Softmax {
    double top, sum;
} Softmax;

/* w = exp(x - top) over the first `seen` logits of the tile, 0 behind them; returns the factor for
 * the results of earlier tiles. */
static float advance(Softmax *s, const double *x, int64_t seen, int64_t keys, float *w)
{
    double before = s->top, here = seen > 0 ? largest_logit(x, seen) : before, kept;

    s->top = s->sum == 0 || here > before ? here : before;
    for (int64_t j = 0; j < seen; j++)
        w[j] = (float)(x[j] - s->top);
    kernel_at(0)->exp2(w, seen, (float)LOG2_E, 0);
    memset(w + seen, 0, (size_t)(keys - seen) * sizeof(*w));
    kept = s->sum == 0 || before == s->top ? 1 : exp(before - s->top);
    s->sum = s->sum * kept + total(w, seen);
    return (float)kept;
}

/* Adds the tile of keys [from, from + keys) to the block's softmaxes and results. */
static void take_logits(const Job *job, int worker, int64_t head, int64_t first, int64_t rows,
                        int64_t from, int64_t keys, Softmax *softmax)
{
    const LogitAttend *in = job->in;
    double *x = job->work + worker * job->work_size;
    float  *w = job->weights + worker * job->rows * job->tile;
    float  *out = tensor_f32(&job->out->out) + (head * job->n + first) * job->e;
    Matrix  v = { tensor_row_f32(&in->v, head, job->h, from), in->v.stride[1], false };

    fill_logits(job, head, first, rows, from, keys, x, w);
    for (int64_t i = 0; i < rows; i++) {
        int64_t limit = in->causal ? first + i + in->offset + 1 - from : keys;
        int64_t seen = min_i64(keys, max_i64(limit, 0));
        float   kept = advance(&softmax[i], x + i * job->tile, seen, keys, w + i * job->tile);

        if (from > 0 && kept != 1)
            kernel_at(0)->scale(out + i * job->e, job->e, kept, out + i * job->e);
    }
    cpu_sgemm((Matrix){ w, job->tile, false }, v, rows, job->e, keys, 1, from > 0, out, job->e);
}

static void logits_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * job->rows;
    int64_t    rows = min_i64(job->rows, job->n - first);
    int64_t    keys = job->in->causal ? first + rows + job->in->offset : job->m;
    float     *out = tensor_f32(&job->out->out) + (head * job->n + first) * job->e;
    double    *lse = tensor_f64(&job->out->lse) + head * job->n + first;
    Softmax    softmax[PRODUCT_ROWS] = { { 0, 0 } };

    for (int64_t from = 0; from < keys && !cpu_cancelled(job->run); from += job->tile)
        take_logits(job, worker, head, first, rows, from, min_i64(job->tile, keys - from), softmax);
    for (int64_t i = 0; i < rows; i++) {
        kernel_at(0)->scale(out + i * job->e, job->e, (float)(1 / softmax[i].sum),
                            out + i * job->e);
        lse[i] = softmax[i].top + log(softmax[i].sum);
    }
}

/* Chooses rows and tile; returns how many doubles the factors of a product take in a worker. */
static int64_t prepare(Job *job)
{
    const LogitAttend *in = job->in;

    job->rows = in->kind == LOGITS_PRODUCT ? PRODUCT_ROWS : ROWS;
    job->tile = in->kind == LOGITS_PRODUCT ? min_i64(PRODUCT_KEYS, job->m) : job->m;
    if (in->kind == LOGITS_TILED) {
        job->inner = in->left.shape[2] * in->right.shape[2];
        return (ROWS + TILED_KEYS) * job->inner;
    }
    if (in->kind != LOGITS_PRODUCT)
        return 0;
    job->inner = in->left.shape[2];
    return (job->rows + job->tile) * job->inner;
}

void cpu_logit_attend(Run *r, const LogitAttend *in, LogitResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .in = in, .out = out, .h = out->out.shape[0],
                      .n = in->n, .m = in->v.shape[1], .e = in->v.shape[2] };
    int64_t   workers = threads_count(r->threads);
    int64_t   factors = prepare(&job);

    job.blocks = ceil_div(job.n, job.rows);
    job.work_size = round_up_to(job.rows * job.tile + factors, LANES);
    job.work = cpu_scratch(r, workers, job.work_size * (int64_t)sizeof(*job.work));
    job.weights = cpu_scratch(r, workers * job.rows, job.tile * (int64_t)sizeof(*job.weights));
    if (job.work && job.weights && cpu_blas(r))
        threads_run(r->threads, job.h * job.blocks, logits_item, &job);
    arena_release(r->arena, mark);
}
