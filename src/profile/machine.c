/* machine.c -- what the machine leaves to this process, and the work of others; see machine.h. */
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/groups.h"
#include "core/threads.h"
#include "profile/machine.h"
#include "profile/measure.h"
#include "profile/memory.h"

/* ---- limits -------------------------------------------------------------------- */

int64_t machine_memory(void)
{
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    return (int64_t)fmin(machine, groups_memory(GROUPS_OF_PROCESS, GROUPS_MOUNTED));
}

/* Left to what no arena counts: results, libraries, stacks of threads. */
#define RESERVE ((int64_t)64 << 20)
#define LEAST ((int64_t)1 << 20)

int64_t machine_share_of(int64_t memory, int64_t held)
{
    int64_t left = memory - held - RESERVE, share = memory / 2 < left ? memory / 2 : left;

    return share > LEAST ? share : LEAST;
}

int64_t machine_share(void)
{
    int64_t held = rss_anonymous();

    return machine_share_of(machine_memory(), held > 0 ? held : 0);
}

double machine_processors(void)
{
    return fmin((double)threads_hardware(), groups_processors(GROUPS_OF_PROCESS, GROUPS_MOUNTED));
}

/* ---- other processes -------------------------------------------------------------- */

#define SHORTEST 0.1 /* seconds: ten ticks of the usual clock */
#define NO_MATTER 0.4 /* of a processor: two loops on one take half of it each */

/* "cpu7 user nice system idle iowait irq softirq steal": ticks of work. */
static double busy_ticks(const char *line, const cpu_set_t *allowed)
{
    unsigned long long t[8] = { 0 };
    int                cpu;

    if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2],
               &t[3], &t[4], &t[5], &t[6], &t[7]) < 5 ||
        cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, allowed))
        return 0;
    return (double)(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]);
}

static double busy_seconds(void)
{
    FILE     *file = fopen("/proc/stat", "re");
    char     *line = NULL;
    size_t    capacity = 0;
    double    ticks = 0;
    cpu_set_t allowed;

    if (!file)
        return -1;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        CPU_ZERO(&allowed);
    while (getline(&line, &capacity, file) > 0)
        ticks += busy_ticks(line, &allowed);
    free(line);
    fclose(file);
    return ticks > 0 ? ticks / (double)sysconf(_SC_CLK_TCK) : -1;
}

Load load_now(void)
{
    return (Load){ .at = clock_wall(), .busy = busy_seconds(), .own = clock_cpu() };
}

double load_of_others(const Load *from, const Load *to)
{
    double seconds = to->at - from->at;

    if (!(seconds >= SHORTEST) || from->busy < 0 || to->busy < 0)
        return 0;
    return fmax(to->busy - from->busy - (to->own - from->own), 0) / seconds;
}

bool load_is_over(int threads, double free_processors)
{
    return !((double)threads <= free_processors + NO_MATTER);
}
