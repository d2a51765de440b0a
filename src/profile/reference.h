/* profile/reference.h -- exact attention on a run's own input, to compare it with. */
#ifndef PROFILE_REFERENCE_H
#define PROFILE_REFERENCE_H

#include "attn/run.h"

typedef struct Reference {
    Run        *run;   /* of the catalogue's baseline, with views */
    Assignments given; /* what it shares with the run: scale, the position's parameters */
} Reference;

/* Same q, k, v, causality, position and scale.  threads and cancel may be NULL.  Free with
 * reference_free also on failure. */
bool reference_new(const Run *run, Threads *threads, const atomic_bool *cancel, Reference *out,
                   Error *err);
void reference_free(Reference *reference);
/* Whether exact attention can run on the mechanism's input: queries, keys and values of the same
 * heads. */
bool reference_is_possible(const Run *run);

/* Rows of exact attention one at a time: nothing but what a row needs is computed, so a few
 * rows of a long input cost little. */
typedef struct ReferenceRows { /* stays where it was made */
    Reference      reference; /* of a baseline that was set up; run only by reference_rows_run */
    Ops            ops;
    AttendInput    in;
    const Pattern *cells;
} ReferenceRows;

/* As reference_new; free with reference_rows_free also on failure. */
bool reference_rows_new(const Run *run, Threads *threads, const atomic_bool *cancel,
                        ReferenceRows *out, Error *err);
/* As reference_rows_new, but exact attention is run: its views are there too. */
bool reference_rows_run(const Run *run, Threads *threads, const atomic_bool *cancel,
                        ReferenceRows *out, Error *err);
/* Weights of query i over the run's m keys, 0 where none is allowed; false: it has no key, or
 * there is no memory.  Any thread; `cells` is its own. */
bool reference_row(const ReferenceRows *rows, int64_t head, int64_t i, PatternRow *cells,
                   float *line);
/* The scores before that softmax; entries of `line` for keys that are not allowed stay unchanged.
 * False: no memory. */
bool reference_scores(const ReferenceRows *rows, int64_t head, int64_t i, PatternRow *cells,
                      float *line);
void reference_rows_free(ReferenceRows *rows);

#endif
