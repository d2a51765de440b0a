/* attn/study/replay.h -- one fused stage, computed again in small steps.
 *
 * The kernels do not show intermediate states.  A replay computes the same from the same
 * queries, keys and values, by the same recurrences, in double, and keeps the state after
 * each step:
 *
 *     tile      full or sparse attention, keys by the tile: running maximum and sum
 *     token     causal attention, query by query: the keys a decoder must hold
 *     state     causal linear attention, token by token: the state it holds instead
 *     features  random features, more and more of them: the softmax they approach
 *
 * It is a Run of its own with stages, views and traces, made on demand: it adds nothing to the
 * time, memory and FLOPs of the run that it repeats.
 */
#ifndef ATTN_STUDY_REPLAY_H
#define ATTN_STUDY_REPLAY_H

#include "attn/run.h"

#define REPLAY_QUERIES 8192 /* longer runs are not replayed */
#define REPLAY_TILES   8    /* at most */
#define REPLAY_TOKENS  32   /* steps of a decoding; longer ones take several tokens a step */

/* Whether the run would have a decoding if it were causal. */
bool replay_wants_causal(const Run *run);
/* Constructed and executed; borrows from `run`, which outlives it.  run_free frees it.  NULL: no
 * replay, or no memory. */
Run *replay_new(const Run *run);

/* The kinds of replay; private to the replay files. */

/* Each adds its stages to r, or none where the source does not offer it. */
void replay_tokens(Run *r, const ReplaySource *s);
void replay_state(Run *r, const ReplaySource *s);

/* Decoding steps: how many for n tokens, and the last token of each. */
int64_t replay_steps(int64_t n);
int64_t replay_last(int64_t n, int64_t step);

#endif
