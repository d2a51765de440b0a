/* attn/mech/memory/mab.h -- the multihead attention block of set transformers.
 *
 * With Q = Xq wq + bq, K = Xkv wk + bk, V = Xkv wv + bv cut into heads a of dim/heads columns:
 *
 *     A_a = softmax(scale Q_a K_a^T),  M = A_1 V_1 beside A_2 V_2 ...
 *     official:  O = Q + M;   [norm 0];  O = O + relu(O wo + bo);   [norm 1]
 *     paper:     O = norm 0 of Xq + M wo + bo;  O = O + relu(O wf + bf);  norm 1
 */
#ifndef ATTN_MECH_MEMORY_MAB_H
#define ATTN_MECH_MEMORY_MAB_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef struct MabTensors {
    Tensor wq, bq, wk, bk, wv, bv, wo, bo; /* as given; data NULL: not */
    Tensor wf, bf;                         /* feed-forward of the paper's */
    Tensor ln0_g, ln0_b, ln1_g, ln1_b;
} MabTensors;

typedef struct Mab {
    MabTensors  given;
    const char *suffix; /* of the parameters' names: "_0" */
    bool        paper, norm, ff;
    int64_t     heads, dim;
    double      scale;
} Mab;

typedef struct MabResult {
    Tensor out;     /* f64 [1,rows,dim] */
    Tensor weights; /* f64 [heads,rows,keys] */
} MabResult;

/* xq and xkv f32 or f64 [1,.,.].  Charges scores, softmax and mix as attention does and the
 * layers' products to overhead. */
MabResult mab_apply(Run *r, const Mab *m, Tensor xq, Tensor xkv);
/* The closed form of it, added to `sum`. */
Flops mab_flops(const Mab *m, int64_t rows, int64_t width, int64_t keys, int64_t key_width,
                Flops sum);

#endif
