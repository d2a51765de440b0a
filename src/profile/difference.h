/* profile/difference.h -- how far two runs are from each other. */
#ifndef PROFILE_DIFFERENCE_H
#define PROFILE_DIFFERENCE_H

#include "attn/run.h"
#include "profile/number.h"

typedef struct Difference {
    double max_abs, mean_abs; /* of the outputs */
    double rel_l2;            /* norm of the difference, relative to b's */
    Number total_variation;   /* of the weights, mean over rows */
    Number kl;                /* mean over rows of KL(a's weights || b's), in nats */
    const char *kl_lacks;     /* why there is none, static; NULL: there is */
} Difference;

/* False: outputs of different shapes (ERR_USAGE), no memory, or cancelled.  Against exact
 * attention total_variation and kl are those of quality_measure. */
bool runs_differ(const Run *a, const Run *b, const atomic_bool *cancel, Difference *out,
                 Error *err);

#endif
