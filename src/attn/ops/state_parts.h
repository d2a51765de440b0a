/* attn/ops/state_parts.h -- what state.c gives to state_show.c. */
#ifndef ATTN_OPS_STATE_PARTS_H
#define ATTN_OPS_STATE_PARTS_H

#include "attn/ops/state.h"

#define STATE_SKIP 64 /* tokens of a block whose gates are multiplied beforehand */

/* y [d] of row i at its own token; at token j, after it has gone back through j + 1 .. i. */
void   state_query(const StateMatrix *m, int64_t head, int64_t i, double *y);
double state_cell(const StateMatrix *m, int64_t head, int64_t i, int64_t j, const double *y);
/* From token j to the one before. */
void   state_back(const StateMatrix *m, int64_t head, int64_t j, double *y);
/* y <- y diag(gate); width 1: one gate for all of d. */
void   state_fade(const double *gate, int64_t width, int64_t d, double *y);
/* Fills m->skip where the rule allows it. */
void   state_skips(Run *r, StateMatrix *m);

#endif
