/* machines.c -- see machines.h. */
#include "app/figure/machines.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attn/cuda/library.h"

static void add(Machines *m, const char *gpu, int threads, int64_t when)
{
    m->when = when > m->when ? when : m->when;
    if (gpu)
        snprintf(m->gpu, sizeof(m->gpu), "%s", gpu);
    else
        m->cpu = true, m->threads = threads;
}

void machines_add(Machines *m, const Ops *ops, int threads, int64_t when)
{
    const Device *device = device_of(ops);

    add(m, device ? device_info(device)->name : NULL, threads, when);
}

void machines_add_record(Machines *m, const Record *r)
{
    if (r && r->when)
        add(m, r->gpu ? r->gpu->name : NULL, r->threads, r->when);
}

void machines_names(const Machines *m, char *text, size_t size)
{
    char cpu[80], with[112] = "";

    environment_cpu(cpu, sizeof(cpu));
    if (m->cpu)
        snprintf(with, sizeof(with), "%s, %d thread%s", cpu, m->threads,
                 m->threads == 1 ? "" : "s");
    snprintf(text, size, "%s%s%s", m->gpu, *m->gpu && *with ? " and " : "", with);
}

void machines_text(const Machines *m, char *text, size_t size)
{
    char      date[40], names[224];
    time_t    seconds = (time_t)m->when;
    struct tm utc;

    gmtime_r(&seconds, &utc);
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &utc);
    machines_names(m, names, sizeof(names));
    snprintf(text, size, "%.210s, %s", names, date);
}
