/* app/figure/origins.h -- in words, where the tensors behind a picture are from: drawn, fitted, given. */
#ifndef APP_FIGURE_ORIGINS_H
#define APP_FIGURE_ORIGINS_H

#include "attn/run.h"
#include "core/text.h"

/* Appends "w1, w2: random seed 7; b1: file", at most so many names of an origin ("w1 and 3 more:
 * random seed 7"); nothing for runs that have none.  Of several mechanisms: "performer
 * (projection), rfa (projection): random seed 0". */
void origins_of_runs(const Run *const *runs, int count, int most, Text *out);

#endif
