/* profile/strongest.h -- the keys that exact attention weighs most, for every query. */
#ifndef PROFILE_STRONGEST_H
#define PROFILE_STRONGEST_H

#include "attn/run.h"

/* Some rows are searched at a time by each thread, so memory is that of the result: O(h n k). */
typedef struct Strongest {
    int64_t  h, n, m, k;
    int32_t *key;    /* [h][n][k] strongest first, ties by the lower key; -1: no further key */
    float   *weight; /* [h][n][k] of exact attention; 0 where there is none */
} Strongest;

/* The k (at most m) strongest keys of each query of `weights` [h or shared, n, m]; keys that
 * weigh nothing are none.  threads and cancel may be NULL. */
bool strongest_of(const View *weights, int64_t h, int64_t k, Threads *threads,
                  const atomic_bool *cancel, Strongest *out, Error *err);
/* The strongest keys of exact attention on the run's own input. */
bool strongest_keys(const Run *run, int64_t k, Threads *threads, const atomic_bool *cancel,
                    Strongest *out, Error *err);
void strongest_free(Strongest *s);

#endif
