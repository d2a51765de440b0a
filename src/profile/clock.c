/* clock.c -- the two clocks of the profiler; see measure.h.
 *
 * Wall time is the monotonic clock: never set back, about 20 ns to read.  CPU
 * time is that of the whole process, so it counts every worker of a pool; it
 * is a system call and therefore read once per run, never per stage.
 */
#include "profile/measure.h"

#include <sys/resource.h>
#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec t = { 0 };

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_wall(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double clock_cpu(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_switches(void)
{
    struct rusage usage = { 0 };

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}
