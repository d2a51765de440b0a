/* logits.c -- single logits of attention without queries and keys (LogitAttend of ops.h), for
 * readers of views, and the weights that they make. */
#include <math.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/ops/ops.h"
#include "attn/run.h"
#include "core/rng.h"
#include "core/threads.h"

#define LOGIT_PIECE 256 /* entries of a factor's row, widened at once */
#define CELLS 256 /* logits read at once */

static double drawn(const LogitAttend *in, int64_t head, int64_t i, int64_t j)
{
    Rng     rng = { .seed = in->seed, .stream = in->stream,
                    .at = (uint64_t)((head * in->n + i) * in->v.shape[1] + j) };
    float   value;

    rng_fill_uniform(&rng, &value, 1, -in->bound, in->bound);
    return (double)value;
}

static void add_pieces(const LogitAttend *in, int64_t heads, int64_t head, int64_t start,
                       int64_t count, int64_t step, const double *left, int64_t from, int64_t depth,
                       double *out)
{
    const Kernel *kernel = kernel_at(0);
    const void   *right = tensor_head(&in->right, head, heads);
    bool          wide = in->right.dtype == DT_F64;

    for (int64_t c = 0; c < count && in->turned; c++) {
        int64_t at = (start + c * step) * in->right.stride[1] + from;

        out[c] += wide ? kernel->dot_double((const double *)right + at, left, depth)
                       : kernel->dot_wide((const float *)right + at, left, depth);
    }
    for (int64_t t = 0; t < depth && !in->turned; t++)
        for (int64_t c = 0; c < count; c++)
            out[c] += left[t] * tensor_float(&in->right, head, heads, from + t, start + c * step);
}

static void product_run(const LogitAttend *in, int64_t heads, int64_t head, int64_t i,
                        int64_t start, int64_t count, int64_t step, double *out)
{
    int64_t r = in->left.shape[2];
    double  left[LOGIT_PIECE];

    for (int64_t c = 0; c < count; c++)
        out[c] = in->bias.data ? tensor_float(&in->bias, head, heads, 0, start + c * step) : 0;
    for (int64_t from = 0; from < r; from += LOGIT_PIECE) {
        int64_t depth = r - from < LOGIT_PIECE ? r - from : LOGIT_PIECE;

        floats_widen(in->left.dtype, tensor_head(&in->left, head, heads),
                     i * in->left.stride[1] + from, depth, left);
        add_pieces(in, heads, head, start, count, step, left, from, depth, out);
    }
}

static double row_sum(const Tensor *t, int64_t heads, int64_t head, int64_t i)
{
    double sum = 0;

    for (int64_t c = 0; c < t->shape[2]; c++)
        sum += tensor_float(t, head, heads, i, c);
    return sum;
}

/* One logit that is no product over features. */
static double single(const LogitAttend *in, int64_t heads, int64_t head, int64_t i, int64_t j)
{
    int64_t a;

    switch (in->kind) {
    case LOGITS_GIVEN: return tensor_float(&in->left, head, heads, i, j);
    case LOGITS_UNIFORM: return drawn(in, head, i, j);
    case LOGITS_FOLDED:
        a = in->left.shape[2];
        return tensor_float(&in->left, head, heads, i, j % a) *
               tensor_float(&in->right, head, heads, i, j / a);
    default: break;
    }
    /* The sum over t of A[i, t mod a] B[j, floor(t/a)] falls apart into two sums. */
    return row_sum(&in->left, heads, head, i) * row_sum(&in->right, heads, head, j);
}

void logit_run(const LogitAttend *in, int64_t heads, int64_t head, int64_t i, int64_t start,
               int64_t count, int64_t step, double *out)
{
    if (in->kind == LOGITS_PRODUCT) {
        product_run(in, heads, head, i, start, count, step, out);
        return;
    }
    for (int64_t c = 0; c < count; c++)
        out[c] = single(in, heads, head, i, start + c * step);
}

typedef struct Weights {
    const LogitAttend *in;
    const double      *lse;
    float             *out;
    int64_t            heads, m;
} Weights;

static void weights_row(void *context, int64_t row, int worker)
{
    const Weights *w = context;
    int64_t        head = row / w->in->n, i = row % w->in->n;
    double         logits[CELLS];

    (void)worker;
    for (int64_t j = 0; j < w->m; j += CELLS) {
        int64_t count = w->m - j < CELLS ? w->m - j : CELLS;

        logit_run(w->in, w->heads, head, i, j, count, 1, logits);
        for (int64_t c = 0; c < count; c++)
            w->out[row * w->m + j + c] = w->in->causal && j + c > i + w->in->offset
                                             ? 0
                                             : (float)exp(logits[c] - w->lse[row]);
    }
}

Tensor logit_weights(Run *r, const LogitAttend *in, Tensor lse)
{
    Tensor  y = run_tensor3(r, DT_F32, r->h, in->n, in->v.shape[1]);
    Weights w = { .in = in, .lse = lse.data, .out = y.data, .heads = r->h, .m = in->v.shape[1] };

    if (!run_failed(r))
        threads_run(r->threads, r->h * in->n, weights_row, &w);
    return y;
}
