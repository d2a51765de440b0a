/* machine.c -- the processor, what is left of it, and the work of others; see machine.h. */
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

/* ---- the processor --------------------------------------------------------------- */

static const struct {
    unsigned    maker, part;
    const char *name;
} cores[] = {
#define CORE(maker, part, name) { maker, part, name },
#include "profile/arm_cores.def"
#undef CORE
};

static void name_core(unsigned maker, unsigned part, char *name, size_t size)
{
    for (size_t i = 0; i < sizeof(cores) / sizeof(*cores); i++)
        if (cores[i].maker == maker && cores[i].part == part) {
            snprintf(name, size, "%s", cores[i].name);
            return;
        }
    snprintf(name, size, "ARM core 0x%03x of implementer 0x%02x", part, maker);
}

/* Whether a text of names between " + " has this one. */
static bool has_core(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = text; at; at = strstr(at, " + ")) {
        at += at == text ? 0 : 3;
        if (!strncmp(at, name, length) && (!at[length] || !strncmp(at + length, " + ", 3)))
            return true;
    }
    return false;
}

/* The names of a machine with cores of several kinds stand beside each other, each once. */
static void add_core(const char *name, char *text, size_t size)
{
    size_t length = strlen(text);

    if (!has_core(text, name))
        snprintf(text + length, size - length, "%s%s", length ? " + " : "", name);
}

/* What follows "KEY : " on a line of /proc/cpuinfo; NULL: another key's. */
static const char *value_of(const char *line, const char *key)
{
    size_t      length = strlen(key);
    const char *colon = strncmp(line, key, length) ? NULL : line + length;

    colon = colon ? colon + strspn(colon, " \t") : NULL;
    return colon && *colon == ':' ? colon + 1 + strspn(colon + 1, " \t") : NULL;
}

void machine_cpu(FILE *cpuinfo, char *text, size_t size)
{
    char        line[512], name[80];
    const char *value;
    unsigned    maker = 0;

    *text = '\0';
    while (fgets(line, sizeof(line), cpuinfo)) {
        line[strcspn(line, "\n")] = '\0';
        if ((value = value_of(line, "model name")) && *value) {
            snprintf(text, size, "%s", value);
            return;
        }
        if ((value = value_of(line, "CPU implementer")))
            maker = (unsigned)strtoul(value, NULL, 0);
        if ((value = value_of(line, "CPU part"))) {
            name_core(maker, (unsigned)strtoul(value, NULL, 0), name, sizeof(name));
            add_core(name, text, size);
        }
    }
}

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
