/* app/session/device.h -- trials of a GPU's faster ways (attn/cuda/ways.h), and what came of them.
 *
 * A trial is a process of its own, `attnscope trial --here WAY`, because a way that is wrong may
 * take its process's GPU away, or not end.  What came of it is kept in the state folder, one line
 * for each way, GPU, driver and back end, so that it is tried once.
 */
#ifndef APP_SESSION_DEVICE_H
#define APP_SESSION_DEVICE_H

#include "attn/cuda/ways.h"
#include "core/error.h"
#include "core/text.h"

typedef struct Verdict {
    bool good;
    char what[256]; /* "agrees with ..., 1.6 times as fast", or what was wrong */
} Verdict;

typedef void (*TrialTell)(void *context, const char *text);

/* From here on a GPU that is opened is tried first where nothing is known of it and the outcome
 * can be kept.  It is forbidden at first, and again where nobody could be told or nobody wants to
 * wait. */
void trials_allow(void);
void trials_forbid(void);
bool trials_allowed(void);
/* Settles the ways of a device just opened by what is known, or tried; tell hears of each trial
 * before it begins.  Any thread. */
void trials_apply(Device *device, TrialTell tell, void *context);

/* Tries it, whatever is known; stopped (or NULL) is asked now and then.  False: it could not be
 * tried now, for a reason that is not the way's (no memory left on the GPU, say). */
bool trial_make(DeviceWay way, bool (*stopped)(void *context), void *context, Verdict *out,
                Error *err);
bool trial_keep(const Device *device, DeviceWay way, const Verdict *verdict, Error *err);
/* What is known of it; false: nothing. */
bool trial_recall(const Device *device, DeviceWay way, Verdict *out);
/* The file that keeps them; false: there is no place for it. */
bool trials_path(Text *out, Error *err);

#endif
