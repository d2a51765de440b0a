/* gpu_stream.c -- what is under way on the device, and who waits for it; see gpu.h.
 *
 * Launches are counted, and so are those that a wait has seen the end of: work is under way while
 * the two differ.  So no wait of one thread hides what another has begun meanwhile.
 */
#include "attn/cuda/host/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD "ahead"

GpuAhead gpu_ahead_of(const Device *d)
{
    const char *given = getenv(way_variable(WAY_GRAPHS));

    if (!d->info.managed || !device_way_taken(d, WAY_GRAPHS))
        return AHEAD_NOT;
    return given && !strcmp(given, AHEAD) ? AHEAD_WORK : AHEAD_GRAPHS;
}

static GraphMode mode_of(const Device *d)
{
    return (GraphMode)atomic_load(&d->graph_mode);
}

bool gpu_is_busy(const Device *d)
{
    return mode_of(d) != GRAPH_NONE || atomic_load(&d->launched) != atomic_load(&d->finished);
}

void gpu_graph_begin(Device *d, GraphMode mode)
{
    if (mode != GRAPH_NONE) {
        d->graph_first = atomic_load(&d->launched);
        d->graph_lost = NULL;
    } else if (mode_of(d) == GRAPH_CAPTURE) {
        atomic_store(&d->finished, atomic_load(&d->launched)); /* it never ran */
    }
    atomic_store(&d->graph_mode, (int)mode);
}

void gpu_graph_lose(Device *d, const char *why)
{
    if (!d->graph_lost)
        d->graph_lost = why;
}

/* The device's code; also one that a wait without a run had. */
static int wait_for(Device *d)
{
    int64_t launched = atomic_load(&d->launched), finished = atomic_load(&d->finished);
    int     code = d->api->finish(), late = atomic_exchange(&d->late, 0);

    while (finished < launched && !atomic_compare_exchange_weak(&d->finished, &finished, launched))
        ;
    return late ? late : code;
}

void gpu_settle(Device *d)
{
    int code = 0;

    if (mode_of(d) != GRAPH_NONE)
        gpu_graph_lose(d, "its operations' scratch memory is too large to keep");
    if (mode_of(d) != GRAPH_CAPTURE)
        code = wait_for(d);
    if (code)
        atomic_store(&d->late, code);
}

bool gpu_ready(Run *r)
{
    if (!run_failed(r) && r->spec.cancel && atomic_load(r->spec.cancel))
        run_fail(r, ERR_CANCELLED, "%s: interrupted", r->mechanism->id);
    return !run_failed(r);
}

/* CUDA's errors after which it says that a process must be begun anew (driver_types.h): kernels
 * that ran wild or too long, and a GPU or server that went away.  Others between them, such as a
 * launch with too few resources (701), are of one call. */
static bool is_lasting(int code)
{
    static const int codes[] = { 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911 };

    for (size_t x = 0; x < sizeof(codes) / sizeof(*codes); x++)
        if (code == codes[x])
            return true;
    return false;
}

int gpu_note(Device *d, int code)
{
    if (is_lasting(code))
        atomic_store(&d->lost, code);
    return code;
}

#define LOST "this process has lost the GPU: start anew, or go on by --device cpu"

const char *gpu_broken(void *device)
{
    return atomic_load(&((Device *)device)->lost) ? "an error before this run; " LOST : NULL;
}

static void tell(Run *r, const char *what, int code)
{
    if (gpu_note(gpu_kind(r)->device, code) && !run_failed(r))
        run_fail(r, ERR_UNSUPPORTED, "%s on the GPU: %s: %s%s", r->mechanism->id, what,
                 gpu_api(r)->text(code), is_lasting(code) ? "; " LOST : "");
}

bool gpu_began(Run *r, const char *what, int code)
{
    Device *d = gpu_kind(r)->device;

    tell(r, what, code);
    atomic_fetch_add(&d->launched, 1);
    atomic_store(&d->begun, what);
    /* Else the host, which goes on with the op's lists, would touch memory of a GPU at work: there
     * that ends the program. */
    if (!d->info.managed)
        tell(r, what, wait_for(d));
    return !run_failed(r);
}

/* What a wait says that failed: the newest of several launches is only known to be there. */
static void tell_late(Run *r, int code, int64_t launches)
{
    const char *what = atomic_load(&gpu_kind(r)->device->begun);
    char        text[128];

    snprintf(text, sizeof(text), launches > 1 ? "%s, or what was begun before it" : "%s",
             what ? what : "waiting");
    tell(r, text, code);
}

void gpu_wait(Run *r, const char *reads)
{
    Device *d = gpu_kind(r)->device;
    int64_t launches = atomic_load(&d->launched) - atomic_load(&d->finished);

    if (reads && mode_of(d) != GRAPH_NONE && atomic_load(&d->launched) > d->graph_first)
        gpu_graph_lose(d, reads);
    if (mode_of(d) == GRAPH_CAPTURE) {
        if (d->graph_lost && !run_failed(r))
            run_fail(r, ERR_CANCELLED, "%s: the host reads in a capture: %s", r->mechanism->id,
                     d->graph_lost);
        return;
    }
    if (launches || atomic_load(&d->late))
        tell_late(r, wait_for(d), launches);
}

void gpu_toward(Run *r, const void *data, int64_t bytes)
{
    if (!run_failed(r) && data && bytes > 0 && mode_of(gpu_kind(r)->device) != GRAPH_CAPTURE)
        tell(r, "moving memory", gpu_api(r)->toward(data, bytes, true));
}

void gpu_brought(Run *r, const void *data, int64_t bytes)
{
    if (!data || !arena_holds(r->arena, data))
        return;
    gpu_toward(r, data, bytes);
    gpu_finish(r, "moving memory");
}

/* Views read what operations made as soon as it is made, so a run with views waits. */
static bool goes_ahead(const Run *r)
{
    return gpu_kind(r)->device->ahead != AHEAD_NOT && !r->spec.views && !run_failed(r);
}

void gpu_finish(Run *r, const char *what)
{
    Device *d = gpu_kind(r)->device;

    if (goes_ahead(r) || mode_of(d) == GRAPH_CAPTURE)
        return;
    atomic_store(&d->begun, what);
    tell(r, what, wait_for(d));
}

void gpu_done(Run *r, const char *what, int code)
{
    gpu_began(r, what, code);
    if (!code)
        gpu_finish(r, what);
}
