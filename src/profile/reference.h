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

#endif
