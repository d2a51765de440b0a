/* app/result/step_strip.h -- the tokens of a step in their own order and sorted.
 *
 * Both lines hold the same tokens: the categories of the step's round (the first
 * where it is of none) by position, and in the mechanism's order once that is known,
 * with the borders of its chunks.
 */
#ifndef APP_RESULT_STEP_STRIP_H
#define APP_RESULT_STEP_STRIP_H

#include "app/result/steps.h"

typedef struct Strip {
    int64_t  n;
    int32_t *original; /* [n] category of each position; owned */
    int32_t *sorted;   /* [n] category of each slot; NULL: no order yet */
    int32_t *chunk;    /* [n] chunk of each slot; NULL: not cut */
} Strip;

/* False: no categories are known at this step (or no memory). */
bool strip_read(const Step *step, int64_t head, Strip *out);
void strip_free(Strip *strip);
/* A-Z, a-z, 0-9, then '+'; '.' below 0. */
char strip_letter(int32_t category);
/* Character of the line of chunks at a slot: '[', '-', ']' or '|' (a chunk of one). */
char strip_border(const Strip *strip, int64_t slot);

#endif
