/* logits.c -- attention over logits that come as factors, or as they are.
 *
 *     out_i = sum_j exp(L[i,j] - max_j L[i,j]) v_j / sum_j exp(L[i,j] - max_j L[i,j])
 *
 * over all j, or j <= i + offset.  Logits are in double (a factor of the weights is an
 * exponential of them), exponentials and values in float.  A worker holds the
 * logits of ROWS rows; the blocks are fixed, so threads change no bit.
 */
#include "attn/cpu/cpu.h"

#include <math.h>
#include <string.h>

#define ROWS 32
#define TILED_KEYS 128 /* columns of a tiled product at once */

typedef struct Job {
    Run               *run;
    const LogitAttend *in;
    LogitResult       *out;
    int64_t            h, n, m, e, blocks, inner; /* inner: length of a product */
    double            *right;     /* [h'][.][.] LOGITS_PRODUCT: the factor widened */
    double            *work;      /* [workers][work_size]: logits [ROWS][m], then factors */
    float             *weights;   /* [workers][ROWS][m] */
    int64_t            work_size;
} Job;

static double entry(const Tensor *t, int64_t heads, int64_t head, int64_t i, int64_t c)
{
    const void *slice = tensor_head(t, head, heads);
    int64_t     at = i * t->stride[1] + c;

    return t->dtype == DT_F64 ? ((const double *)slice)[at] : (double)((const float *)slice)[at];
}

/* ---- the logits of a block of rows ------------------------------------------ */

static void fill_given(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                       double *x)
{
    const Tensor *left = &job->in->left;

    for (int64_t i = 0; i < rows; i++) {
        const float *row = (const float *)tensor_head(left, head, job->h) +
                           (first + i) * left->stride[1];

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

static void fill_product(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                         double *x)
{
    const LogitAttend *in = job->in;
    int64_t            ld = in->right.shape[2], slice = head * in->right.shape[0] / job->h;
    WideMatrix         right = { job->right + slice * in->right.shape[1] * ld, ld, in->turned };
    double            *left = x + ROWS * job->m;

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t t = 0; t < job->inner; t++)
            left[i * job->inner + t] = entry(&in->left, job->h, head, first + i, t);
        for (int64_t j = 0; j < keys; j++)
            x[i * job->m + j] = in->bias.data ? entry(&in->bias, job->h, head, 0, j) : 0;
    }
    cpu_dgemm((WideMatrix){ left, job->inner, false }, right, rows, keys, job->inner, 1, 1, x,
              job->m);
}

static void fill_folded(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                        double *x)
{
    const LogitAttend *in = job->in;
    int64_t            a = in->left.shape[2];

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j += a) {
            double        tooth = entry(&in->right, job->h, head, first + i, j / a);
            const double *comb = (const double *)tensor_head(&in->left, head, job->h) +
                                 (first + i) * in->left.stride[1];
            int64_t       count = min_i64(a, keys - j);

            for (int64_t c = 0; c < count; c++)
                x[i * job->m + j + c] = tooth * comb[c];
        }
}

/* The two maps written out, as the formula has it: tile of `left`, repeat of `right`. */
static void fill_tiled(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                       double *x)
{
    const LogitAttend *in = job->in;
    int64_t            a = in->left.shape[2], ab = job->inner;
    double            *tile = x + ROWS * job->m, *repeat = tile + ROWS * ab;

    for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < ab; t++)
            tile[i * ab + t] = entry(&in->left, job->h, head, first + i, t % a);
    for (int64_t j = 0; j < keys && !cpu_cancelled(job->run); j += TILED_KEYS) {
        int64_t count = min_i64(TILED_KEYS, keys - j);

        for (int64_t y = 0; y < count; y++)
            for (int64_t t = 0; t < ab; t++)
                repeat[y * ab + t] = entry(&in->right, job->h, head, j + y, t / a);
        cpu_dgemm((WideMatrix){ tile, ab, false }, (WideMatrix){ repeat, ab, true }, rows, count,
                  ab, 1, 0, x + j, job->m);
    }
}

static void fill(const Job *job, int64_t head, int64_t first, int64_t rows, int64_t keys,
                 double *x, float *scratch)
{
    switch (job->in->kind) {
    case LOGITS_GIVEN: fill_given(job, head, first, rows, keys, x); break;
    case LOGITS_UNIFORM: fill_uniform(job, head, first, rows, keys, x, scratch); break;
    case LOGITS_PRODUCT: fill_product(job, head, first, rows, keys, x); break;
    case LOGITS_FOLDED: fill_folded(job, head, first, rows, keys, x); break;
    case LOGITS_TILED: fill_tiled(job, head, first, rows, keys, x); break;
    }
}

/* ---- their softmax and the values ------------------------------------------- */

#define PARTS 8 /* independent chains: an addition need not wait for the one before */

static double largest(const double *x, int64_t count)
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

/* w = exp(x - max x) over `seen` logits, 0 after them; returns the sum. */
static double exponentials(const double *x, int64_t seen, int64_t keys, float *w, double *lse)
{
    double top = largest(x, seen), sum;

    for (int64_t j = 0; j < seen; j++)
        w[j] = (float)(x[j] - top);
    kernel_at(0)->exp2(w, seen, (float)LOG2_E, 0);
    sum = total(w, seen);
    memset(w + seen, 0, (size_t)(keys - seen) * sizeof(*w));
    *lse = top + log(sum);
    return sum;
}

static void block_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t    rows = min_i64(ROWS, job->n - first);
    int64_t    seen = first + job->in->offset + 1; /* columns of the first row */
    int64_t    keys = job->in->causal ? seen + rows - 1 : job->m;
    double    *x = job->work + worker * job->work_size, sums[ROWS];
    float     *w = job->weights + worker * ROWS * job->m;
    float     *out = (float *)job->out->out.data + (head * job->n + first) * job->e;
    double    *lse = (double *)job->out->lse.data + head * job->n + first;
    Matrix     v = { tensor_head(&job->in->v, head, job->h), job->in->v.stride[1], false };

    if (cpu_cancelled(job->run))
        return;
    fill(job, head, first, rows, keys, x, w);
    for (int64_t i = 0; i < rows; i++)
        sums[i] = exponentials(x + i * job->m, job->in->causal ? seen + i : keys, keys,
                               w + i * job->m, &lse[i]);
    cpu_sgemm((Matrix){ w, job->m, false }, v, rows, job->e, keys, 1, 0, out, job->e);
    for (int64_t i = 0; i < rows; i++)
        kernel_at(0)->scale(out + i * job->e, job->e, (float)(1 / sums[i]), out + i * job->e);
}

/* Numbers of a worker besides its logits, and the widened right factor. */
static int64_t prepare(Job *job)
{
    const LogitAttend *in = job->in;
    const Tensor      *right = &in->right;
    int64_t            rows = right->shape[1], cols = right->shape[2];

    if (in->kind == LOGITS_TILED) {
        job->inner = in->left.shape[2] * in->right.shape[2];
        return (ROWS + TILED_KEYS) * job->inner;
    }
    if (in->kind != LOGITS_PRODUCT)
        return 0;
    job->inner = in->left.shape[2];
    job->right = cpu_scratch(job->run, right->shape[0] * rows, cols * (int64_t)sizeof(double));
    for (int64_t i = 0; job->right && i < right->shape[0] * rows; i++)
        for (int64_t c = 0; c < cols; c++)
            job->right[i * cols + c] = entry(right, right->shape[0], i / rows, i % rows, c);
    return ROWS * job->inner;
}

void cpu_logit_attend(Run *r, const LogitAttend *in, LogitResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .in = in, .out = out, .h = out->out.shape[0],
                      .n = in->n, .m = in->v.shape[1], .e = in->v.shape[2] };
    int64_t   workers = threads_count(r->threads);

    job.blocks = ceil_div(job.n, ROWS);
    job.work_size = round_up_to(ROWS * job.m + prepare(&job), LANES);
    job.work = cpu_scratch(r, workers, job.work_size * (int64_t)sizeof(*job.work));
    job.weights = cpu_scratch(r, workers * ROWS, job.m * (int64_t)sizeof(*job.weights));
    cpu_single_blas();
    if (job.work && job.weights && (job.right || in->kind != LOGITS_PRODUCT))
        threads_run(r->threads, job.h * job.blocks, block_item, &job);
    arena_release(r->arena, mark);
}
