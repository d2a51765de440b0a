/* attn/study/replay_parts.h -- the kinds of replay; private to the replay files. */
#ifndef ATTN_STUDY_REPLAY_PARTS_H
#define ATTN_STUDY_REPLAY_PARTS_H

#include "attn/run.h"

/* Each adds its stages to r, or none where it has nothing to say. */
void replay_tiles(Run *r, const ReplaySource *s);
void replay_tokens(Run *r, const ReplaySource *s);
void replay_state(Run *r, const ReplaySource *s);
void replay_features(Run *r, const ReplaySource *s);

/* Decoding steps: how many for n tokens, and the last token of each. */
int64_t replay_steps(int64_t n);
int64_t replay_last(int64_t n, int64_t step);

#endif
