/* model/forward.h -- the forward pass of a Model, plain and with other mechanisms in it.
 *
 * One pass carries several variants side by side: variant 0 is the model as it is; each other has
 * a mechanism in place of exact attention in the layers and heads that its Swap names.  A layer is
 * dequantised once and serves all variants.  Between layers the caller is asked whether to go on.
 * Residual, loss, KL and the rest: see ForwardMeasure.  float32; sums of norms and measures are in
 * double.
 */
#ifndef MODEL_FORWARD_H
#define MODEL_FORWARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/tensor.h"
#include "model/model.h"

typedef struct Swap {
    const char *mechanism; /* "window(window=33)", "pattern(window(33)+cols(4))" */
    const bool *layers;    /* [config.layers]; NULL: all */
    const bool *heads;     /* [config.heads]; NULL: all */
    uint64_t    seed;      /* of parameters the mechanism would have learned */
    const struct Swap *also; /* a mixture: has the heads that are left; NULL: none */
    const char *name;      /* of a mixture, in its first part: "@adv.csv"; NULL: the mechanism */
} Swap;

/* A layer's tensors while the pass is there; they are gone when the callback returns. */
typedef struct LayerView {
    int64_t layer, variant;
    Tensor  x;       /* [n, D] input of the layer's attention */
    Tensor  q, k, v; /* [H,n,d], [K,n,d], [K,n,d], after norms and RoPE */
    Tensor  o;       /* [H,n,d] before the output projection */
} LayerView;

typedef struct ForwardOptions {
    const Swap *swaps;
    int64_t     swap_count;
    int64_t     last_layer; /* the pass ends after its attention; -1: whole, with the head */
    int         threads;    /* 0: all */
    const atomic_bool *cancel;
    bool (*on_layer)(void *context, const LayerView *view); /* false: stop; NULL */
    void (*on_progress)(void *context, int64_t layer, int64_t layers);
    /* logits [rows, V] of `variant` from position `first` on, on the way; NULL */
    void (*on_logits)(void *context, int64_t variant, int64_t first, int64_t rows,
                      const float *logits);
    void *context;
} ForwardOptions;

typedef struct NextToken {
    int32_t id;
    double  p;
} NextToken;
#define FORWARD_NEXT 5

#define SWAP_NOTE 120 /* characters of a swap's note */

/* Of one variant; NaN: does not apply. */
typedef struct ForwardMeasure {
    double   loss, perplexity;      /* nats a token; causal models, n >= 2 */
    double  *nll;                   /* [n-1]: of token t+1; NULL */
    NextToken *next;                /* [n, FORWARD_NEXT] after each position; NULL without a head */
    double   delta, kl, kl_max, agreement, cosine; /* against variant 0; NaN for it */
    double  *residual;              /* [layers+1]; NULL for variant 0 */
    double  *residual_norm;         /* [layers+1] Frobenius norm of the residual stream */
    float   *final;                 /* [D] mean over positions of the final states */
    double   flops, flops_exact;    /* score and mixing, of the swapped layers and heads */
    bool     untrained;             /* has parameters drawn from the seed */
    char     note[SWAP_NOTE];       /* how a parameter was read in the first swapped layer, or "" */
    double   seconds;               /* of its attention */
} ForwardMeasure;

typedef struct ForwardResult {
    int64_t         variants;       /* 1 + swap_count */
    ForwardMeasure *measure;        /* [variants] */
    double          seconds, seconds_head;
    double         *layer_seconds;  /* [layers] */
} ForwardResult;

bool forward_run(const Model *m, const int32_t *ids, int64_t n, const ForwardOptions *options,
                 ForwardResult *out, Error *err);
void forward_result_free(ForwardResult *r);

#endif
