/* machine.c -- limits of control groups and the work of other processes; see machine.h. */
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/threads.h"
#include "profile/machine.h"
#include "profile/measure.h"

#define GROUPS "/proc/self/cgroup"
#define MOUNTED "/sys/fs/cgroup"
#define PATH_MOST 4096

/* ---- files of a group ------------------------------------------------------------- */

/* The first one or two numbers of a file, and how many there are; "max" is none. */
static int read_numbers(const char *folder, const char *name, double out[2])
{
    char  path[PATH_MOST + 64];
    FILE *file;
    int   count;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file)
        return 0;
    count = fscanf(file, "%lf %lf", &out[0], &out[1]);
    fclose(file);
    return count > 0 ? count : 0;
}

typedef double (*GroupLimit)(const char *folder);

static double memory_of(const char *folder)
{
    double value[2];

    if (read_numbers(folder, "memory.max", value) ||
        read_numbers(folder, "memory.limit_in_bytes", value))
        return value[0] > 0 ? value[0] : (double)INFINITY;
    return (double)INFINITY;
}

static double processors_of(const char *folder)
{
    double value[2], period[2];

    if (read_numbers(folder, "cpu.max", value) == 2 && value[1] > 0)
        return value[0] / value[1];
    if (read_numbers(folder, "cpu.cfs_quota_us", value) && value[0] > 0 &&
        read_numbers(folder, "cpu.cfs_period_us", period) && period[0] > 0)
        return value[0] / period[0];
    return (double)INFINITY;
}

/* The smallest limit from the group up to the root.  A container may see its group as the root, so
 * groups that are not there are passed over. */
static double along(const char *root, const char *group, GroupLimit limit)
{
    char   folder[PATH_MOST];
    size_t top = strlen(root);
    double least = (double)INFINITY;
    int    length = snprintf(folder, sizeof(folder), "%s%s", root, group);

    if (length < 0 || (size_t)length >= sizeof(folder))
        return limit(root);
    for (;;) {
        char *slash;

        least = fmin(least, limit(folder));
        slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top)
            return least;
        *slash = '\0';
    }
}

/* ---- the groups of a process ------------------------------------------------------ */

/* "cpu,cpuacct" holds "cpu". */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == length && !strncmp(at, word, length))
            return true;
    return false;
}

/* One line of the file: "0::/path" of version 2, "4:memory:/path" of version 1. */
static double limit_of_line(char *line, const char *root, const char *controller, GroupLimit limit)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    char  mount[PATH_MOST];

    if (!group)
        return (double)INFINITY;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (*++list && !has_word(list, controller))
        return (double)INFINITY;
    snprintf(mount, sizeof(mount), "%s/%s", root, *list ? controller : "unified");
    if (*list)
        return along(mount, group, limit);
    return fmin(along(root, group, limit), along(mount, group, limit));
}

static double groups_limit(const char *groups, const char *root, const char *controller,
                           GroupLimit limit)
{
    FILE  *file = fopen(groups, "re");
    char  *line = NULL;
    size_t capacity = 0;
    double least = (double)INFINITY;

    while (file && getline(&line, &capacity, file) > 0)
        least = fmin(least, limit_of_line(line, root, controller, limit));
    free(line);
    if (file)
        fclose(file);
    return least;
}

double groups_memory(const char *groups, const char *root)
{
    return groups_limit(groups, root, "memory", memory_of);
}

double groups_processors(const char *groups, const char *root)
{
    return groups_limit(groups, root, "cpu", processors_of);
}

int64_t machine_memory(void)
{
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    return (int64_t)fmin(machine, groups_memory(GROUPS, MOUNTED));
}

/* Resident memory without pages of files, which the system can take back; 0: not known. */
static int64_t held_memory(void)
{
    double numbers[3] = { 0 };
    FILE  *file = fopen("/proc/self/statm", "re");
    int    count = file ? fscanf(file, "%lf %lf %lf", &numbers[0], &numbers[1], &numbers[2]) : 0;

    if (file)
        fclose(file);
    return count == 3 ? (int64_t)((numbers[1] - numbers[2]) * (double)sysconf(_SC_PAGESIZE)) : 0;
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
    return machine_share_of(machine_memory(), held_memory());
}

double machine_processors(void)
{
    return fmin((double)threads_hardware(), groups_processors(GROUPS, MOUNTED));
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
