/* profile/device_sums.h -- a trace's records and ranges' counters, summed up by stage. */
#ifndef PROFILE_DEVICE_SUMS_H
#define PROFILE_DEVICE_SUMS_H

#include "profile/device_profile.h"

/* Kernels, copies, allocations of the whole run and of each stage; false: no memory.
 * first[i]: the first stage of the name of stage i, whose rows of kernels it shares. */
bool device_sum_trace(const DeviceTrace *trace, const int *first, DeviceProfile *out);
/* stage_of[i]: the stage range i lies in, -1 before the first. */
void device_sum_counts(const DeviceRange *ranges, const int *stage_of, int count, int passes,
                       DeviceProfile *out);

#endif
