/* app/origins.h -- in words, where the tensors behind a picture are from: drawn, fitted, given. */
#ifndef APP_ORIGINS_H
#define APP_ORIGINS_H

#include "attn/run.h"
#include "core/text.h"

/* Appends "w1, w2: random seed 7; b1: file", at most so many names of an origin ("w1 and 3 more:
 * random seed 7"); nothing for a run that has none. */
void origins_of_run(const Run *run, int most, Text *out);
/* Of several runs, by origin: "performer (projection), rfa (projection): random seed 0"; the
 * mechanism goes without saying where it is one. */
void origins_of_runs(const Run *const *runs, int count, int most, Text *out);

#endif
