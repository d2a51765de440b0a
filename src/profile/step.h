/* profile/step.h -- what one token more costs a decoder: --decode.
 *
 * The costs are the closed forms of a causal run (attn/run/decode.h).  The time of a step is
 * measured in one of two ways, or not at all:
 *
 *   last query      the last query of the run alone against all its keys.  What a decoder would
 *                   keep (compressed keys, bounds of pages) is made again and is in the counted
 *                   FLOPs.  Where a stage of its own makes it (Mechanism.kept_stage), it is not in
 *                   the time
 *   recurrent form  all n tokens one after the other by form=recurrent, divided by n
 */
#ifndef PROFILE_STEP_H
#define PROFILE_STEP_H

#include <stdbool.h>

#include "attn/run.h"
#include "core/error.h"
#include "core/text.h"
#include "profile/device_profile.h"

typedef enum StepWay { STEP_NONE, STEP_LAST_QUERY, STEP_RECURRENT } StepWay;

#define STEP_FIRST 64 /* tokens, and twice as many each time, of `held` */
#define STEP_LENGTHS 15

typedef struct StepRecord {
    bool    asked;
    Number  state_bytes, kv_bytes_per_token, step_bytes, decode_flops; /* as in DecodeCost */
    int64_t number_bytes;       /* of a cached number; 0: none is, only sums of a state */
    Number  held[STEP_LENGTHS]; /* bytes after STEP_FIRST, 2 STEP_FIRST, ... tokens */
    StepWay way;
    Number  median, low, high; /* ms of a step, and the 95 % interval of the median */
    Number  kept;              /* ms of the stage that is not in the time; none: there is none */
    Number  counted;           /* FLOPs of the measured step */
    char    lacks[512];        /* why the costs are not known, or "" */
    char    time_lacks[512];   /* why the time is not measured, or "" */
} StepRecord;

/* Costs of the run and, where `timed`, the time of a step, measured in runs of their own; *out is
 * filled whatever lacks.  False: no memory, or cancelled. */
bool step_measure(const Run *run, const RunSpec *spec, bool timed, StepRecord *out, Error *err);

/* The costs alone, by closed form: nothing runs. */
void step_costs(const Run *run, StepRecord *out);

void step_json(const StepRecord *step, Json *out); /* null: not asked for */
/* Whether the time holds what a decoder would keep from the steps before. */
bool step_makes_again(const StepRecord *step);
/* Whether it has fewer FLOPs than the closed form: a decoder would read more keys than the last row
 * of the run has, or weights of 0 are left out. */
bool step_does_less(const StepRecord *step);
/* "last query", "recurrent form"; NULL: not measured. */
const char *step_way_name(StepWay way);

#endif
