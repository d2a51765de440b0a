/* attn/mech/pattern/extra_tokens.h -- tokens put in front of a sequence: relays, global memory.
 *
 * g extra tokens with vectors of their own make the sequence [extra, tokens]
 * of N = g + n.  Cells, weights and scores are then over N x N with the extra
 * tokens first; the output is cut back to the n tokens, and what the extra
 * ones became is a view of its own.
 */
#ifndef ATTN_MECH_PATTERN_EXTRA_TOKENS_H
#define ATTN_MECH_PATTERN_EXTRA_TOKENS_H

#include <stdint.h>

#include "attn/ops/ops.h"

/* [extra, tokens] of every head: [h,g+n,w] from [h',g,w] and [h'',n,w]; fewer
 * heads than the run's are shared. */
Tensor extra_tokens_stack(Run *r, Tensor extra, Tensor tokens);
/* Rows [from, from + count) of every head of all [h,N,w]. */
Tensor extra_tokens_rows(Run *r, Tensor all, int64_t from, int64_t count);

/* Fails where a bias kind of position is set, whose distances the extra tokens
 * do not have.  `form` says when a mechanism has them: "variant=etc". */
void extra_tokens_check(Run *r, const char *form);
/* Puts q, k [h',g,d] and v [h',g,e] in front of in's, to which a position has
 * been applied: it never acts on the extra tokens. */
void extra_tokens_prepend(Run *r, AttendInput *in, Tensor q, Tensor k, Tensor v);
/* The extra tokens see, and are seen by, all N; tokens see each other as the
 * n x n `tokens` says.  Lacks pattern_finish. */
Pattern *extra_tokens_cells(Run *r, int64_t g, Pattern *tokens);
/* Of all [h,g+n,e]: the tokens become the run's output, the extra ones `view`,
 * whose rows are called `rows` (static). */
void extra_tokens_split(Run *r, Tensor all, int64_t g, const char *view, const char *rows);

#endif
