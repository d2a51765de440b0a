/* attn/latents.h -- attention through a small set of latents: Luna, Set Transformer, Perceiver.
 *
 *     pack     A_in  = softmax(scale P K^T)        [l,m]   the latents read the tokens
 *     unpack   A_out = softmax(scale Q Y^T)        [n,l]   the tokens read the latents
 *
 * Logits are in double, weights in float.  Nothing n x m is made.
 */
#ifndef ATTN_LATENTS_H
#define ATTN_LATENTS_H

#include "attn/ops.h"

typedef struct Run Run;

/* One softmax attention and what a picture of its weights needs. */
typedef struct LatentRead {
    LogitAttend in;
    LogitResult result; /* out [h,rows,e] */
} LatentRead;

/* softmax(scale q k^T) v.  The side with fewer rows takes the factor: a copy of it in double
 * is made.  causal: row i sees keys up to i + offset. */
LatentRead latents_read(Run *r, Tensor q, Tensor k, Tensor v, double scale, bool causal,
                        int64_t offset);
/* What that charges for so many allowed cells of each head. */
Flops latents_read_flops(const Run *r, double cells, double d, double e);
/* Its weights f32 [h,rows,keys]; for views only. */
Tensor latents_weights(Run *r, const LatentRead *read);

/* Pack and unpack in one: Luna without order, and the bare induced attention of the Set
 * Transformer.  Sets the run's output and shows both strips, memory, connectivity and weights. */
typedef struct Nested {
    Tensor      latents, keys; /* [h',l,d] P, [h',m,d] what it meets */
    bool        with_keys;     /* queries meet packed keys; else packed values */
    double      scale;
    const char *pack, *unpack; /* stages; static */
    const char *latent;        /* what one is called: "slot"; static */
} Nested;
void  latents_nested(Run *r, const Nested *s);
Flops latents_nested_flops(const Run *r, int64_t latents, bool with_keys);

/* Values and keys side by side, [h',m,e+d]: packed in one pass. */
Tensor latents_beside(Run *r, Tensor v, Tensor k);
/* Columns first .. first + count of x [h,rows,width], contiguous. */
Tensor latents_columns(Run *r, Tensor x, int64_t first, int64_t count);
/* x [h,a,b] with its last axes turned. */
Tensor latents_turned(Run *r, Tensor x);

#endif
