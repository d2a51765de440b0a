/* attn/mech/pattern/keys.h -- dilated windows, extra tokens and slots, for several patterns.
 *
 * Dilated window: token i of head h sees i + t delta_h for t = -k..k, k = floor(window / 2). The
 * dilation delta is one number for all heads, or a list with one for each.
 */
#ifndef ATTN_MECH_PATTERN_KEYS_H
#define ATTN_MECH_PATTERN_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/pattern/pattern.h"
#include "attn/run/param.h"
#include "attn/run/view.h"

typedef struct Run Run;

/* Fails the run unless the list holds one dilation, or one per head, all >= 1. */
void dilation_check(Run *r, IndexList dilation);
/* Notes that a window of even width is read as the next odd one; nothing of a default. */
void window_note_even(Run *r, int64_t window);
/* The caller calls pattern_finish.  COMPONENT_WINDOW where the dilation is 1, else
 * COMPONENT_STRIDED. */
Pattern *dilated_window(Run *r, int64_t window, IndexList dilation);
/* Keys from the farthest one behind a token up to its own, in the head that reaches farthest. */
int64_t dilated_window_span(const Run *r, int64_t window, IndexList dilation);
/* Number of its cells over all heads: per head n + 2 sum_t (n - t delta) over the t that fit; in a
 * causal run the sum counts once. */
double dilated_window_cells(const Run *r, int64_t window, IndexList dilation);

/* Tokens put in front of a sequence: relays, global memory.
 *
 * g extra tokens with vectors of their own make the sequence [extra, tokens]
 * of N = g + n.  Cells, weights and scores are then over N x N with the extra
 * tokens first; the output is cut back to the n tokens, and the outputs of the extra tokens are a
 * view.
 */

/* Projections of their own, for extra tokens or for rows that see all: the given tensor, of the
 * shape of `ordinary` with the run's heads; or `ordinary`. */
Tensor extra_tokens_given(Run *r, const char *name, Tensor given, Tensor ordinary);
/* [extra, tokens] of every head: [h,g+n,w] from [h',g,w] and [h'',n,w]; a tensor with fewer heads
 * than the run is shared. */
Tensor extra_tokens_stack(Run *r, Tensor extra, Tensor tokens);

/* Fails with a position of the bias kind: extra tokens have no distances.  `form` names the
 * parameters that add them: "variant=etc". */
void extra_tokens_check(Run *r, const char *form);
/* Puts q, k [h',g,d] and v [h',g,e] in front of in's, to which a position was applied already; it
 * never acts on the extra tokens. */
void extra_tokens_prepend(Run *r, AttendInput *in, Tensor q, Tensor k, Tensor v);
/* The extra tokens see, and are seen by, all N; tokens see each other as the
 * n x n `tokens` says.  The caller calls pattern_finish. */
Pattern *extra_tokens_cells(Run *r, int64_t g, Pattern *tokens);
/* Splits all [h,g+n,e]: rows of tokens are the run's output, those of extra tokens the view `view`,
 * whose axis of rows is named `rows` (static). */
void extra_tokens_split(Run *r, Tensor all, int64_t g, const char *view, const char *rows);

/* Keys that stand for ranges of tokens: pooled cells, compressed slots.
 *
 * Ranges lie on a fixed grid: range c holds the tokens c stride .. c stride + size - 1
 * that exist.  Each range has `per` slots, and before them come `lead` slots that
 * are the first tokens themselves:
 *
 *     slot s < lead:      token s
 *     slot lead + c per + t:  the t-th mixture of range c
 *
 * A mixture is linear in the tokens when it has a share for each: slot = sum of
 * share x token.  Then attention to slots is attention to tokens,
 *
 *     weights = weights on tokens + (weights on slots) @ shares
 *
 * and any piece of it can be read without an n x n matrix.
 */

typedef struct Slots {
    int64_t n; /* tokens */
    int64_t lead, ranges, per;
    int64_t stride, size;
} Slots;

int64_t slots_count(const Slots *s);
int64_t slots_start(const Slots *s, int64_t slot); /* its first token */
int64_t slots_end(const Slots *s, int64_t slot);   /* one past its last */
int64_t slots_tokens(const Slots *s); /* sum of the lengths of the ranges */

/* y f32 [h,ranges,w]: per range the sum of share f32 [h',ranges,size] times the
 * tokens x [h',n,w]; share data NULL: the largest token, element by element.  One slot a range, no
 * lead.  Charges no FLOPs; each caller counts its own. */
Tensor slots_pool(Run *r, const Slots *s, Tensor x, Tensor share);

/* ---- which slots a token sees: patterns of n x slots ------------------------- */

/* Ranges that overlap [i - reach, i + reach]; causal: whose last token is <= i. */
Pattern *slots_near(Arena *a, PatternShape shape, const Slots *s, int64_t reach, bool causal);
/* The lead, and the ranges whose `stride` tokens are all before i. */
Pattern *slots_before(Arena *a, PatternShape shape, const Slots *s);
/* Of n x n: the tokens behind the slots that `seen` allows. */
Pattern *slots_behind(Arena *a, PatternShape shape, const Slots *s, Pattern *seen, uint8_t bits);
/* Of slots x n: the tokens of each slot. */
Pattern *slots_members(Arena *a, PatternShape shape, const Slots *s);

/* ---- views ------------------------------------------------------------------- */

/* Weights on keys first, first + 1, ... of one softmax. */
typedef struct KeyPart {
    AttendInput    in;
    Tensor         lse; /* [h,n] */
    int64_t        first;
    RowSums        sums; /* of the whole softmax */
    const Pattern *seen; /* n x keys of the part; NULL: there is no such part */
} KeyPart;

typedef struct SlotAttention {
    Slots   slots;
    KeyPart on_tokens, on_slots;
    Tensor  share;  /* f32 [h',slots - lead,size]; data NULL: not linear */
    int64_t heads;
} SlotAttention;

/* The views of a part: its cells and its weights.  cols names a key. */
void view_part(Run *r, const KeyPart *part, const char *cells, const char *weights,
               const char *cols);
/* The shares as a matrix, slots x tokens: one plane (rank 2) or one per head.  rows
 * names a slot; static. */
void view_shares(Run *r, const SlotAttention *a, const char *name, int rank, const char *rows);
/* weights [h,n,n] of both parts, over `cells`; a is kept. */
void view_slot_weights(Run *r, const SlotAttention *a, const Pattern *cells);

#endif
