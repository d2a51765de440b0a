/* attn/extra_tokens.h -- tokens that stand in front of a sequence (globals, a relay).
 *
 * The extended sequence is [extra tokens, tokens], N = g + n; all shapes [h,.,w] f32.
 */
#ifndef ATTN_EXTRA_TOKENS_H
#define ATTN_EXTRA_TOKENS_H

#include <stdint.h>

#include "core/tensor.h"

typedef struct Run Run;

/* [h,g+n,w] of extra [h',g,w] and tokens [h',n,w]; fewer heads are shared by groups. */
Tensor tokens_behind(Run *r, Tensor extra, Tensor tokens);
/* Rows [from, from + count) of every head: [h,count,w] of all [h,N,w]. */
Tensor tokens_rows(Run *r, Tensor all, int64_t from, int64_t count);
/* [h,1,w]: the mean of the tokens [h',n,w]; charges h n w to overhead. */
Tensor tokens_mean(Run *r, Tensor tokens);

#endif
