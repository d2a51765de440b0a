/* app/command/trial_runs.h -- the runs of a trial (app/session/device.h), in this very process, which a way that
 * is wrong may take the GPU away from. */
#ifndef APP_COMMAND_TRIAL_RUNS_H
#define APP_COMMAND_TRIAL_RUNS_H

#include "app/session/device.h"
#include "app/session/session.h"

/* Sets variables of the environment, before the device is opened.  n: length of the runs; 0: as
 * usual.  False: no run could be made, and what came of it says nothing of the way (err). */
bool trial_here(Session *s, DeviceWay way, int64_t n, Verdict *out, Error *err);

#endif
