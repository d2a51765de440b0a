/* profile/device_watch.h -- a run on a GPU under observation: marks, a trace, counters.
 *
 * It stands behind a Watch (watch.h) as the next observer, so that what it does at the border
 * of two stages is in neither's wall time.  Refusals end its tier and never the run.
 */
#ifndef PROFILE_DEVICE_WATCH_H
#define PROFILE_DEVICE_WATCH_H

#include "attn/run.h"
#include "core/arena.h"
#include "profile/device_profile.h"

typedef struct DeviceWatch DeviceWatch;

/* NULL: the ops are the CPU's, or the device has no profiler, or there is no memory.  It
 * passes stages on to next(context). */
DeviceWatch *device_watch_new(const Ops *ops, RunObserver next, void *context);
void         device_watch_free(DeviceWatch *watch);

/* ---- around a timed run: NULL is nothing to do ---------------------------------- */
void device_watch_begin(DeviceWatch *watch);
void device_watch_end(DeviceWatch *watch);
void device_watch_keep(DeviceWatch *watch); /* the last run is a sample */
/* Of the last run by its marks; NaN: not measured. */
double device_watch_stage_ms(const DeviceWatch *watch, int stage);
/* RunObserver and the preparing callback, both with the watch as context. */
void device_watch_stage(void *context, const Run *run, const Stage *stage);
void device_watch_preparing(void *context, bool begins);

/* ---- runs of their own ------------------------------------------------------------ */

/* Runs once more; false: the run failed. */
typedef bool DeviceRerun(void *context);
/* In an arena of its own, so that its allocations are seen; first: as device_sum_trace. */
void device_watch_trace(DeviceWatch *watch, DeviceRerun *rerun, void *context, const int *first,
                        DeviceProfile *out);
/* may_go_on: whether there is time for one run more. */
void device_watch_count(DeviceWatch *watch, DeviceRerun *rerun,
                        bool (*may_go_on)(const void *context), void *context,
                        DeviceProfile *out);
/* What the samples say; names the device. */
void device_watch_summarise(DeviceWatch *watch, DeviceProfile *out);

#endif
