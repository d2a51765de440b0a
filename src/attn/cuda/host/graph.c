/* graph.c -- see graph.h.
 *
 * First a rehearsal: an ordinary run that releases no memory, so that the arena then has all the
 * memory of the capture; it records the first read by the host.  Then the stream captures the
 * same run from the end of its first preparation on; its inputs are copied and packed before.
 * Both runs must allocate the same sizes in the same order, so that the addresses are equal.
 */
#include "attn/cuda/host/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/host/gpu.h"

struct RunGraph {
    Device *device;
    void   *graph; /* the device's */
    Run    *run;   /* the captured run; a replay reads its lists */
};

/* The rehearsal or the capture. */
typedef struct Attempt {
    Device   *device;
    GraphMode mode;
    int       preparing; /* ended preparations */
    int       code;      /* of capture_begin */
    uint64_t  sequence;  /* hash of all allocations and releases */
} Attempt;

bool device_goes_ahead(const Device *d)
{
    return d->ahead != AHEAD_NOT;
}

bool device_wants_graphs(const Device *d)
{
    return d->ahead == AHEAD_GRAPHS;
}

/* ---- one run ------------------------------------------------------------------------- */

static void prepared(void *context, bool begins)
{
    Attempt *a = context;

    if (begins || a->preparing++)
        return;
    if (a->mode == GRAPH_CAPTURE)
        a->code = a->device->api->capture_begin();
    if (!a->code)
        gpu_graph_begin(a->device, a->mode);
}

static void mix(Attempt *a, int64_t number)
{
    a->sequence = (a->sequence ^ (uint64_t)number) * UINT64_C(1099511628211);
}

static void allocated(void *context, int64_t bytes, int64_t used)
{
    mix(context, bytes);
    mix(context, used);
}

static Run *attempt(Attempt *a, const RunSpec *spec, Arena *arena)
{
    RunSpec own = *spec;
    Run    *run;

    own.views = false;
    own.observer = NULL;
    own.progress = NULL;
    own.preparing = prepared;
    own.observer_context = a;
    arena_watch(arena, allocated, a);
    run = run_new_in(&own, arena);
    run_execute(run);
    arena_watch(arena, NULL, NULL);
    return run;
}

static bool refuse(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

static bool is_good(const Run *run, char *why, size_t size)
{
    if (!run)
        return refuse(why, size, "not enough memory for the run");
    return run->err.code == ERR_NONE || refuse(why, size, run->err.text);
}

/* ---- the rehearsal ------------------------------------------------------------------- */

static bool is_fit(const Device *d, const Run *run, char *why, size_t size)
{
    if (!is_good(run, why, size))
        return false;
    if (d->graph_lost)
        return refuse(why, size, d->graph_lost);
    if (atomic_load(&d->launched) == d->graph_first)
        return refuse(why, size, "nothing of it runs on the GPU");
    if (!run->out.data || !tensor_contiguous(&run->out))
        return refuse(why, size, "it has no output to compare replays by");
    return true;
}

/* A copy of the run's output, owned by the caller; NULL: `why` gives the reason. */
static void *rehearse(Attempt *a, const RunSpec *spec, Arena *arena, char *why, size_t size)
{
    Run  *run = attempt(a, spec, arena);
    void *out = NULL;

    if (is_fit(a->device, run, why, size)) {
        out = malloc((size_t)tensor_bytes(&run->out) + 1);
        if (out)
            memcpy(out, run->out.data, (size_t)tensor_bytes(&run->out));
        else
            refuse(why, size, "not enough memory to keep the output");
    }
    gpu_graph_begin(a->device, GRAPH_NONE);
    run_free(run);
    return out;
}

/* ---- the capture --------------------------------------------------------------------- */

static bool capture(RunGraph *g, Attempt *a, const RunSpec *spec, Arena *arena, char *why,
                    size_t size)
{
    const Device *d = a->device;
    int           code = 0;

    g->run = attempt(a, spec, arena);
    if (a->preparing && !a->code)
        code = d->api->capture_end(&g->graph);
    gpu_graph_begin(a->device, GRAPH_NONE);
    if (d->graph_lost)
        return refuse(why, size, d->graph_lost);
    if (a->code || code) {
        snprintf(why, size, "the capture failed: %s", d->api->text(a->code ? a->code : code));
        return false;
    }
    return is_good(g->run, why, size) &&
           (g->graph || refuse(why, size, "the capture gave no graph"));
}

static bool replay_equals(RunGraph *g, const void *expected)
{
    size_t bytes = (size_t)tensor_bytes(&g->run->out);

    memset(g->run->out.data, 0xff, bytes);
    return run_graph_replay(g) && memcmp(g->run->out.data, expected, bytes) == 0;
}

static bool make_graph(RunGraph *g, const RunSpec *spec, Arena *arena, char *why, size_t size)
{
    Attempt first = { .device = g->device, .mode = GRAPH_REHEARSAL };
    Attempt second = { .device = g->device, .mode = GRAPH_CAPTURE };
    void   *expected = rehearse(&first, spec, arena, why, size);
    bool    ok = expected && capture(g, &second, spec, arena, why, size);

    if (ok && first.sequence != second.sequence)
        ok = refuse(why, size, "it did not allocate the same twice");
    for (int round = 0; round < 2 && ok; round++)
        ok = replay_equals(g, expected) ||
             refuse(why, size, "a replay gave other numbers than the run");
    free(expected);
    return ok;
}

RunGraph *run_graph_new(const RunSpec *spec, Arena *arena, char *why, size_t size)
{
    RunGraph *g = calloc(1, sizeof(*g));

    if (!g) {
        refuse(why, size, "not enough memory for a graph");
        return NULL;
    }
    g->device = device_of(spec->ops);
    if (make_graph(g, spec, arena, why, size))
        return g;
    run_graph_free(g);
    return NULL;
}

bool run_graph_replay(RunGraph *g)
{
    const DeviceApi *api = g->device->api;
    int              code = api->replay(g->graph);

    return !code && !api->finish();
}

const Tensor *run_graph_output(const RunGraph *g)
{
    return &g->run->out;
}

void run_graph_free(RunGraph *g)
{
    if (!g)
        return;
    g->device->api->graph_free(g->graph);
    run_free(g->run);
    free(g);
}
