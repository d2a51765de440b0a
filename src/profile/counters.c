/* counters.c -- see counters.h. */
#include "profile/counters.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <linux/perf_event.h>

typedef enum Counted { COUNT_CYCLES, COUNT_INSTRUCTIONS, COUNT_MISSES, COUNT_FLOPS } Counted;

typedef struct Event {
    Counted  counted;
    uint32_t type;
    uint64_t config;
    int      times; /* operations that one count stands for */
} Event;

static const Event everywhere[] = {
    { COUNT_CYCLES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1 },
    { COUNT_INSTRUCTIONS, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1 },
    { COUNT_MISSES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1 },
};

/* FP_ARITH_INST_RETIRED: a fused multiply-add counts twice by itself, so a count stands
 * for the lanes. */
static const Event intel[] = {
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x01c7, 1 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x02c7, 1 },
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x04c7, 2 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x08c7, 4 },
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x10c7, 4 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x20c7, 8 },
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x40c7, 8 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x80c7, 16 },
};

/* PMCx003, add, multiply, divide and multiply-add (as two): operations, not instructions. */
static const Event amd_zen[] = { { COUNT_FLOPS, PERF_TYPE_RAW, 0x0f03, 1 } };

typedef struct Opened {
    int     fd;
    Counted counted;
    int     times;
} Opened;

struct Counters {
    Opened *opened;
    int     count, capacity;
};

/* ---- opening ---------------------------------------------------------------------- */

static int vendor_events(const Event **events)
{
    char vendor[13] = "";

    *events = NULL;
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;

    if (__get_cpuid(0, &a, &b, &c, &d)) {
        memcpy(vendor, &b, 4);
        memcpy(vendor + 4, &d, 4);
        memcpy(vendor + 8, &c, 4);
    }
#endif
    if (!strcmp(vendor, "GenuineIntel")) {
        *events = intel;
        return sizeof(intel) / sizeof(*intel);
    }
    if (!strcmp(vendor, "AuthenticAMD")) {
        *events = amd_zen;
        return sizeof(amd_zen) / sizeof(*amd_zen);
    }
    return 0;
}

static int open_event(const Event *event, pid_t thread)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = event->type,
        .config = event->config,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };

    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool keep(Counters *c, int fd, const Event *event)
{
    if (c->count == c->capacity) {
        int     capacity = c->capacity ? 2 * c->capacity : 32;
        Opened *grown = realloc(c->opened, (size_t)capacity * sizeof(*grown));

        if (!grown)
            return false;
        c->opened = grown;
        c->capacity = capacity;
    }
    c->opened[c->count++] = (Opened){ .fd = fd, .counted = event->counted, .times = event->times };
    return true;
}

/* Events that this processor lacks are left out; the last reason is kept. */
static void open_all(Counters *c, const Event *events, int count, pid_t thread, int *reason)
{
    for (int i = 0; i < count; i++) {
        int fd = open_event(&events[i], thread);

        if (fd < 0)
            *reason = errno;
        else if (!keep(c, fd, &events[i]))
            close(fd);
    }
}

static void open_threads(Counters *c, int *reason)
{
    const Event   *vendor;
    int            count = vendor_events(&vendor);
    DIR           *tasks = opendir("/proc/self/task");
    struct dirent *task;

    while (tasks && (task = readdir(tasks))) {
        pid_t thread = (pid_t)atoi(task->d_name);

        if (thread <= 0)
            continue;
        open_all(c, everywhere, sizeof(everywhere) / sizeof(*everywhere), thread, reason);
        open_all(c, vendor, count, thread, reason);
    }
    if (tasks)
        closedir(tasks);
}

static void explain(int reason, char *why, size_t size)
{
    if (reason == ENOENT || reason == ENODEV || reason == EOPNOTSUPP)
        snprintf(why, size, "this machine shows no hardware counters (a virtual machine?)");
    else if (reason == EACCES || reason == EPERM)
        snprintf(why, size, "not allowed: see kernel.perf_event_paranoid, or the container's "
                 "rules for perf_event_open");
    else if (reason == ENOSYS)
        snprintf(why, size, "this kernel has no perf events");
    else
        snprintf(why, size, "perf_event_open: %s", strerror(reason));
}

Counters *counters_open(char *why, size_t size)
{
    Counters *c = calloc(1, sizeof(*c));
    int       reason = ENOMEM;

    if (c)
        open_threads(c, &reason);
    if (c && c->count)
        return c;
    free(c);
    explain(reason, why, size);
    return NULL;
}

void counters_close(Counters *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->count; i++)
        close(c->opened[i].fd);
    free(c->opened);
    free(c);
}

/* ---- counting --------------------------------------------------------------------- */

void counters_start(Counters *c)
{
    for (int i = 0; i < c->count; i++) {
        ioctl(c->opened[i].fd, PERF_EVENT_IOC_RESET, 0);
        ioctl(c->opened[i].fd, PERF_EVENT_IOC_ENABLE, 0);
    }
}

Number counter_scaled(const uint64_t reading[3])
{
    if (!reading[2])
        return reading[1] ? NUMBER_NONE : number_of(0); /* never scheduled, or never needed */
    return number_of((double)reading[0] * ((double)reading[1] / (double)reading[2]));
}

/* One part that is not known leaves the sum unknown. */
static void add(Number *sum, bool *missing, const Opened *opened)
{
    uint64_t reading[3];
    Number   value = NUMBER_NONE;

    if (read(opened->fd, reading, sizeof(reading)) == (ssize_t)sizeof(reading))
        value = counter_scaled(reading);
    *missing |= !value.valid;
    *sum = *missing ? NUMBER_NONE : number_of(sum->value + opened->times * value.value);
}

void counters_stop(Counters *c, HardwareCounts *out)
{
    Number *sums[] = {
        [COUNT_CYCLES] = &out->cycles,
        [COUNT_INSTRUCTIONS] = &out->instructions,
        [COUNT_MISSES] = &out->cache_misses,
        [COUNT_FLOPS] = &out->flops,
    };
    bool missing[COUNT_FLOPS + 1] = { false };

    for (int i = 0; i < c->count; i++)
        ioctl(c->opened[i].fd, PERF_EVENT_IOC_DISABLE, 0);
    *out = (HardwareCounts){ 0 };
    for (int i = 0; i < c->count; i++)
        add(sums[c->opened[i].counted], &missing[c->opened[i].counted], &c->opened[i]);
}
