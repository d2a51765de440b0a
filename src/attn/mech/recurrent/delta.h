/* attn/mech/recurrent/delta.h -- what the mechanisms with a delta rule share: keys of unit length
 * and the strength of a write.
 *
 *     k = k / sqrt(|k|^2 + 1e-6), q alike
 *     beta = sigmoid(u . w + b), times 2 with negative_eigenvalues
 */
#ifndef ATTN_MECH_RECURRENT_DELTA_H
#define ATTN_MECH_RECURRENT_DELTA_H

#include "attn/mech/recurrent/recurrent.h"

extern const char *const delta_key_norms[];

typedef struct DeltaParams {
    Tensor beta, beta_weight, beta_bias;
    bool   negative_eigenvalues;
    int    qk_norm;
} DeltaParams;

/* The rows of a table of S, whose member `member` is a DeltaParams. */
#define DELTA_PARAMS(S, member)                                                                \
    RECURRENT_PARAM(S, member, beta, PARAM_TYPE_TENSOR, .shape = "[n] or [h,n]",               \
                    .drawn = "computed from beta_weight",                                      \
                    .help = "strength of each write, in [0,2]; 1: overwrites"),                \
    RECURRENT_PARAM(S, member, beta_weight, PARAM_TYPE_TENSOR, .shape = "[du] or [h,du]",      \
                    .drawn = "N(0, 1/(4 du))",                                                 \
                    .help = "beta = sigmoid(u . w + b); u: x, or the head's own q"),           \
    RECURRENT_PARAM(S, member, beta_bias, PARAM_TYPE_TENSOR, .shape = "[h]", .drawn = "0",     \
                    .help = "b of it"),                                                        \
    RECURRENT_PARAM(S, member, negative_eigenvalues, PARAM_TYPE_BOOL, .hi = 1,                 \
                    .help = "doubles a beta that is computed: up to 2, which mirrors"),        \
    RECURRENT_PARAM(S, member, qk_norm, PARAM_TYPE_ENUM, .choices = delta_key_norms,           \
                    .help = "of queries and keys, before scale")

/* Fills q, k, v, beta, scale and wide of s; norm: an output norm follows. */
void   delta_inputs(Run *r, const DeltaParams *p, const RecurrentInput *in, bool norm,
                    StateAttend *s);
/* Of all tokens and heads: what delta_inputs charges to overhead. */
double delta_flops(const Run *r, const DeltaParams *p);
/* The views `beta` and `keys`. */
void   delta_show(Run *r, const StateAttend *s);

#define DELTA_VIEWS                                                                            \
    VIEW("beta", VIEW_TENSOR, "strength of each write"),                                       \
    VIEW("keys", VIEW_FEATURES, "keys as they are written"),                                   \
    VIEW("surprise", VIEW_COUNT, "|v - k S|: how far the state was from the value it is given", \
         .curve = { .x = "token", .y = "error before the write", .by_rows = true })

#endif
