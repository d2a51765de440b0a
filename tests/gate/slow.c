/* slow.c -- a doctored build: every run takes a share longer.  Linked with --wrap=run_execute, so
 * that the program's own sources stay as they are.
 */
#include <time.h>

#include "attn/run.h"

#define SLOWER 0.05

void __real_run_execute(Run *r);
void __wrap_run_execute(Run *r);

/* Of this thread: what a neighbour takes is not the program's to multiply. */
static double thread_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void __wrap_run_execute(Run *r)
{
    double began = thread_seconds(), ended;

    __real_run_execute(r);
    ended = thread_seconds();
    while (thread_seconds() < ended + SLOWER * (ended - began))
        continue;
}
