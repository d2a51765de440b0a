/* attn/mech/lowrank/latents.h -- attention through a small set of latents: Luna, Set
 * Transformer, Perceiver; Linformer and Nystromformer read their summaries so, too.
 *
 *     pack     A_in  = softmax(scale P K^T)        [l,m]   the latents read the tokens
 *     unpack   A_out = softmax(scale Q Y^T)        [n,l]   the tokens read the latents
 *
 * Logits are in double where a bound on them says that float would show; nothing n x m is
 * made.
 */
#ifndef ATTN_MECH_LOWRANK_LATENTS_H
#define ATTN_MECH_LOWRANK_LATENTS_H

#include "attn/ops/ops.h"

typedef struct Run Run;

/* One softmax attention and what a picture of its weights needs. */
typedef struct LatentRead {
    Tensor      out, more; /* [h,rows,e], [h,rows,f] */
    Tensor      lse;       /* f64 [h,rows], and how to find logits: where views are wanted */
    LogitAttend in;
    double      key_length, value_length; /* of latents_read_float: the longest rows of k and v */
} LatentRead;

/* Whether logits may be so large that their rounding in float shows in softmax(scale q k^T) v:
 * all f32.  The reads below ask it themselves. */
bool latents_steep(Run *r, Tensor q, Tensor k, Tensor v, double scale);
/* softmax(scale q k^T) v.  causal: row i sees keys up to i + offset. */
LatentRead latents_read(Run *r, Tensor q, Tensor k, Tensor v, double scale, bool causal,
                        int64_t offset);
/* As above; caller already called latents_steep: all keys, in float, or in double (then k may be
 * f64). */
LatentRead latents_read_float(Run *r, Tensor q, Tensor k, Tensor v, double scale);
LatentRead latents_read_exact(Run *r, Tensor q, Tensor k, Tensor v, double scale);
/* FLOPs that the calls above charge, for `cells` allowed cells of each head. */
Flops latents_read_flops(const Run *r, double cells, double d, double e);
/* Its weights f32 [h,rows,keys]; for views only. */
Tensor latents_weights(Run *r, const LatentRead *read);

/* Pack and unpack in one: Luna without order, and the bare induced attention of the Set
 * Transformer.  Sets the run's output and shows both strips, memory, connectivity and weights. */
typedef struct Nested {
    Tensor      latents, keys; /* [h',l,d] P and its keys [h',m,d] */
    bool        with_keys;     /* queries attend to packed keys; else to packed values */
    double      scale;
    const char *pack, *unpack; /* stages; static */
    const char *latent;        /* what one is called: "slot"; static */
} Nested;
void  latents_nested(Run *r, const Nested *s);
Flops latents_nested_flops(const Run *r, int64_t latents, bool with_keys);

#endif
