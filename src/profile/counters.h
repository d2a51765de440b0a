/* profile/counters.h -- the processor's own counters, through perf events.
 *
 * What the hardware retired, against what the ops counted: floating point
 * operations where the processor counts them (Intel: FP_ARITH_INST_RETIRED by
 * width; AMD Zen: retired SSE/AVX FLOPs), cycles, instructions, last level misses.
 * User code only, every thread the process has when they are opened.  Many virtual
 * machines and containers show no counters: then the reason is text.
 */
#ifndef PROFILE_COUNTERS_H
#define PROFILE_COUNTERS_H

#include "profile/record.h"

typedef struct Counters Counters;

/* Stopped, at zero.  NULL: none can be had; `why` (not NULL) says why, in words. */
Counters *counters_open(char *why, size_t size);
void      counters_start(Counters *counters);
/* Counts since counters_start; what was not counted stays not valid.  Events that had
 * to share a counter are scaled by the time they had it. */
void counters_stop(Counters *counters, HardwareCounts *out);
void counters_close(Counters *counters);

/* For tests: one raw reading (value, enabled, running: perf_event_open(2)) scaled; not
 * valid when the event never ran. */
Number counter_scaled(const uint64_t reading[3]);

#endif
