/* bench_small.c -- what waits cost a run of small n on a GPU, as ratios.
 *
 * For each mechanism and n: a run that waits for each operation, one that waits only where the
 * host reads (ATTNSCOPE_GRAPHS=ahead), and replays of it as a graph, where there can be one.
 * Preparation is not in the times; a replay has none of the host's loops either.
 *
 *     build/bench-gpu-small [rounds]        77: there is no GPU to measure
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "attn/cuda/host/gpu.h"
#include "attn/cuda/host/graph.h"
#include "core/rng.h"

#define HEADS 4
#define SIZE 64
#define ROUNDS 51
#define MOST_ROUNDS 999
#define WARM 3
#define SKIPPED 77

static const char *const mechanisms[] = { "full", "window", "bigbird", "linear", "performer",
                                          "synthesizer-random", "gmlp", "funnel", "nystrom",
                                          "switch" };

typedef struct Clock {
    double since, prepared; /* of run_prepare */
} Clock;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void preparing(void *context, bool begins)
{
    Clock *c = context;

    if (begins)
        c->since = now();
    else
        c->prepared += now() - c->since;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof(*seconds), by_value);
    return seconds[count / 2];
}

/* Seconds of a run; 0: it failed, and that is printed. */
static double run_seconds(RunSpec spec, Arena *arena, int rounds)
{
    double seconds[MOST_ROUNDS];
    bool   ok = true;

    for (int x = -WARM; x < rounds && ok; x++) {
        Clock  clock = { 0 };
        double start = now(), end;
        Run   *run;

        spec.preparing = preparing;
        spec.observer_context = &clock;
        run = run_new_in(&spec, arena);
        run_execute(run);
        end = now();
        ok = run && run->err.code == ERR_NONE;
        if (!ok)
            printf("%s: %s\n", spec.mechanism->id, run ? run->err.text : "no memory");
        if (x >= 0)
            seconds[x] = end - start - clock.prepared;
        run_free(run);
    }
    return ok ? median(seconds, rounds) : 0;
}

/* Seconds of a replay; 0: there is no graph, and why says why. */
static double replay_seconds(const RunSpec *spec, Arena *arena, int rounds, char *why, size_t size)
{
    RunGraph *graph = run_graph_new(spec, arena, why, size);
    double    seconds[MOST_ROUNDS];
    bool      ok = graph != NULL;

    for (int x = -WARM; x < rounds && ok; x++) {
        double start = now();

        ok = run_graph_replay(graph);
        if (x >= 0)
            seconds[x] = now() - start;
    }
    run_graph_free(graph);
    return ok ? median(seconds, rounds) : 0;
}

static void line(RunSpec *spec, Device *device, int64_t n, int rounds)
{
    Arena *arena = arena_new_from(spec->ops->memory);
    double waiting, ahead, replay;
    char   why[256] = "a replay failed";

    if (!arena)
        return;
    device->ahead = AHEAD_NOT;
    waiting = run_seconds(*spec, arena, rounds);
    device->ahead = AHEAD_GRAPHS;
    ahead = waiting > 0 ? run_seconds(*spec, arena, rounds) : 0;
    replay = ahead > 0 ? replay_seconds(spec, arena, rounds, why, sizeof(why)) : 0;
    if (ahead > 0)
        printf("%-20s %6lld %9.1f us %8.2f", spec->mechanism->id, (long long)n, 1e6 * waiting,
               ahead / waiting);
    if (replay > 0)
        printf(" %8.2f\n", replay / waiting);
    else if (ahead > 0)
        printf("        -  %s\n", why);
    arena_free(arena);
}

static void problem(const char *id, Device *device, int64_t n, int rounds)
{
    Arena  *arena = arena_new();
    RunSpec spec = { .mechanism = mechanism_find(id), .seed = 1,
                     .ops = device_ops(device, ARITHMETIC_F32) };
    Tensor *inputs[] = { &spec.q, &spec.k, &spec.v, &spec.x };
    Rng     rng = rng_named(1, "bench");
    bool    ok = arena && spec.mechanism;

    for (int x = 0; x < 4 && ok; x++) {
        *inputs[x] = x < 3 ? tensor_new(arena, DT_F32, 3, (int64_t[]){ HEADS, n, SIZE })
                           : tensor_new(arena, DT_F32, 2, (int64_t[]){ n, HEADS * SIZE });
        ok = inputs[x]->data != NULL;
        if (ok)
            rng_fill_normal(&rng, inputs[x]->data, tensor_count(inputs[x]), 1);
    }
    if (ok)
        line(&spec, device, n, rounds);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    int     rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    Error   err = { 0 };
    Device *device = device_open(&err);

    if (!device) {
        printf("bench-gpu-small: skipped: %s\n", err.text);
        return SKIPPED;
    }
    if (!(rounds >= 1 && rounds <= MOST_ROUNDS))
        rounds = ROUNDS;
    printf("\n%s, %d heads of %d in f32; median of %d; without waits and as a graph: shares of "
           "the first\n\n%-20s %6s %12s %8s %8s\n", device_info(device)->name, HEADS, SIZE, rounds,
           "mechanism", "n", "with waits", "without", "graph");
    for (size_t i = 0; i < sizeof(mechanisms) / sizeof(*mechanisms); i++)
        for (int64_t n = 64; n <= 1024; n *= 4)
            problem(mechanisms[i], device, n, rounds);
    device_release(device);
    return 0;
}
