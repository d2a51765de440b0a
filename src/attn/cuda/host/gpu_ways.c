/* gpu_ways.c -- see ways.h. */
#include "attn/cuda/host/ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/host/gpu.h"

#define TRIES "auto"

static const struct {
    const char *name, *variable, *where;
} table[DEVICE_WAYS] = {
    [WAY_WARPGROUP] = { "wgmma", "ATTNSCOPE_WGMMA",
                        "in bf16 and f16, for up to 128 columns and nothing added to scores" },
    [WAY_GRAPHS] = { "graphs", "ATTNSCOPE_GRAPHS", "for timed runs where the host reads nothing" },
};

const char *way_name(DeviceWay way)
{
    return table[way].name;
}

const char *way_variable(DeviceWay way)
{
    return table[way].variable;
}

bool way_named(const char *name, DeviceWay *out)
{
    for (int way = 0; way < DEVICE_WAYS; way++)
        if (!strcmp(name, table[way].name)) {
            *out = (DeviceWay)way;
            return true;
        }
    return false;
}

/* What the variable says; NULL: nothing. */
static const char *said(DeviceWay way)
{
    const char *given = getenv(table[way].variable);

    return given && *given ? given : NULL;
}

static bool tries(const Device *d, DeviceWay way)
{
    return said(way) ? !strcmp(said(way), TRIES) : strcmp(d->api->name, DEVICE_REAL) == 0;
}

/* Why not; NULL: it is there. */
static const char *absent(const Device *d, DeviceWay way)
{
    WarpgroupCall nothing = { .arithmetic = ARITHMETIC_BF16 };

    if (way == WAY_WARPGROUP)
        return d->api->attend_warpgroup(&nothing) ? d->api->text(WARPGROUP_DECLINED) : NULL;
    return d->info.managed ? NULL
                           : "no: the host may not touch this GPU's memory while it works";
}

WayState device_way(const Device *d, DeviceWay way)
{
    int verdict = atomic_load(&d->ways[way].verdict);

    if (absent(d, way))
        return WAY_ABSENT;
    if (!tries(d, way))
        return WAY_DECIDED;
    return verdict ? verdict > 0 ? WAY_TRUSTED : WAY_REFUSED : WAY_UNTRIED;
}

bool device_way_taken(const Device *d, DeviceWay way)
{
    if (tries(d, way))
        return atomic_load(&d->ways[way].verdict) > 0;
    return said(way) && strcmp(said(way), "0") != 0;
}

void device_way_settle(Device *d, DeviceWay way, bool good, const char *what)
{
    snprintf(d->ways[way].what, sizeof(d->ways[way].what), "%s", what);
    atomic_store(&d->ways[way].verdict, good ? 1 : -1);
    if (way == WAY_GRAPHS)
        d->ahead = gpu_ahead_of(d);
}

const char *device_way_text(Device *d, DeviceWay way)
{
    const char *variable = table[way].variable, *where = table[way].where, *why = absent(d, way);
    char       *text = d->ways[way].text;
    size_t      size = sizeof(d->ways[way].text);
    char        what[sizeof(d->ways[way].what)];

    if (why)
        return why;
    memcpy(what, d->ways[way].what, sizeof(what));
    switch (device_way(d, way)) {
    case WAY_TRUSTED:
        snprintf(text, size, "used %s: %s", where, what);
        break;
    case WAY_REFUSED:
        snprintf(text, size, "not used: %s; %s=1 takes it, 'attnscope trial' tries it again",
                 what, variable);
        break;
    case WAY_UNTRIED:
        snprintf(text, size, "not used: not tried on this GPU yet; 'attnscope trial' does that, "
                 "%s=1 takes it untried", variable);
        break;
    default:
        if (device_way_taken(d, way))
            snprintf(text, size, "used %s: %s=%s", where, variable, said(way));
        else
            snprintf(text, size, "not used: %s%s; %s=1 takes it", said(way) ? variable : "the "
                     "device is emulated", said(way) ? "=0" : "", variable);
    }
    return text;
}
