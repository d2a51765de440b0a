/* profile.c -- what measuring costs.
 *
 * The same run bare and under the profiler's observer, in turn, round after
 * round, for runs of about 0.3, 1 and 10 ms; the hooks of the malloc family
 * against the C library alone, and what their share of such a run is; comparisons
 * with exact attention against exact attention itself.
 *
 *     build/tests/bench/profile [rounds]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/rng.h"
#include "core/threads.h"
#include "profile/measure.h"
#include "profile/record.h"
#include "profile/watch.h"
#include "rounds.h"

#define MOST_ROUNDS 400
#define PAIRS 2000000
#define QUALITY_ROUNDS 5

void *__libc_malloc(size_t size);
void  __libc_free(void *block);

/* Behind volatile pointers no pair is folded away. */
static void *(*volatile hooked_take)(size_t) = malloc;
static void (*volatile hooked_give)(void *) = free;
static void *(*volatile bare_take)(size_t) = __libc_malloc;
static void (*volatile bare_give)(void *) = __libc_free;

static double pair_ns(void *(*volatile *take)(size_t), void (*volatile *give)(void *))
{
    double best = 1e9;

    for (int round = 0; round < 5; round++) {
        double start = clock_wall();

        for (int i = 0; i < PAIRS; i++)
            (*give)((*take)(64));
        start = 1e9 * (clock_wall() - start) / PAIRS;
        best = start < best ? start : best;
    }
    return best;
}

typedef struct Problem {
    Arena      *arena;
    RunSpec     spec;
    Assignments given;
    Watch       watch;
    MemoryTrace trace;
} Problem;

static Tensor normal(Arena *arena, const char *name, int64_t n)
{
    int64_t shape[3] = { 8, n, 64 };
    Tensor  t = tensor_new(arena, DT_F32, 3, shape);
    Rng     rng = rng_named(3, name);

    if (t.data)
        rng_fill_normal(&rng, t.data, tensor_count(&t), 1);
    return t;
}

static Problem problem_new(const char *mechanism, int64_t n, Threads *threads)
{
    Problem p = { .arena = arena_new() };

    p.spec.mechanism = mechanism_find(mechanism);
    p.spec.threads = threads;
    p.spec.q = normal(p.arena, "q", n);
    p.spec.k = normal(p.arena, "k", n);
    p.spec.v = normal(p.arena, "v", n);
    return p;
}

/* Seconds of one run in a warm arena. */
static double bare(Problem *p, Arena *arena)
{
    double start = clock_wall();
    Run   *run = run_new_in(&p->spec, arena);

    run_execute(run);
    start = clock_wall() - start;
    run_free(run);
    return start;
}

static double observed(Problem *p, Arena *arena, bool memory)
{
    RunSpec spec = p->spec;
    double  start;
    Run    *run;

    spec.observer = watch_stage;
    spec.observer_context = &p->watch;
    p->watch.memory = memory;
    p->watch.trace = memory ? &p->trace : NULL;
    start = clock_wall();
    run = watch_run(&p->watch, &spec, arena);
    start = clock_wall() - start;
    run_free(run);
    return start;
}

static void report(const char *name, int64_t n, Problem *p, int rounds, double hook_ns)
{
    double plain[MOST_ROUNDS], timed[MOST_ROUNDS], traced[MOST_ROUNDS], ratio[MOST_ROUNDS];
    Arena *arena = arena_new();
    double base, memory;

    bare(p, arena);
    observed(p, arena, true);
    for (int i = 0; i < rounds; i++) {
        plain[i] = bare(p, arena);
        timed[i] = observed(p, arena, false);
        traced[i] = observed(p, arena, true);
        ratio[i] = timed[i] / plain[i];
    }
    base = stats_quantile(plain, rounds, 0.5);
    memory = stats_quantile(traced, rounds, 0.5);
    printf("  %-10s n=%-5lld %7.3f ms bare; timed %+.2f %% (quartiles %+.2f .. %+.2f); memory "
           "followed %+.2f %%; %lld allocations, hooks %.4f %%\n",
           name, (long long)n, 1e3 * base, 100 * (stats_quantile(timed, rounds, 0.5) / base - 1),
           100 * (stats_quantile(ratio, rounds, 0.25) - 1),
           100 * (stats_quantile(ratio, rounds, 0.75) - 1), 100 * (memory / base - 1),
           (long long)p->watch.calls, 100e-9 * hook_ns * (double)p->watch.calls / base);
    arena_free(arena);
}

/* quality_measure runs exact attention and reads every weight of it and of the run. */
static void report_quality(const char *name, int64_t n, Threads *threads)
{
    Problem p = problem_new(name, n, threads), exact = problem_new("full", n, threads);
    double  ratio[QUALITY_ROUNDS], cell_ns[QUALITY_ROUNDS];
    Arena  *arena = arena_new();
    Quality quality;
    Error   err = ERROR_INIT;
    Run    *run;

    p.spec.views = true;
    run = run_new(&p.spec);
    run_execute(run);
    bare(&exact, arena);
    for (int i = 0; i < QUALITY_ROUNDS; i++) {
        double base = bare(&exact, arena), start = clock_wall();

        if (!quality_measure(run, 0, &quality, NULL, &err))
            printf("  %s: %s\n", name, err.text);
        start = clock_wall() - start;
        ratio[i] = start / base;
        cell_ns[i] = 1e9 * start / (8.0 * (double)n * (double)n);
    }
    printf("  %-10s n=%-5lld %5.1f (least %.1f), %.1f ns a cell\n", name, (long long)n,
           stats_quantile(ratio, QUALITY_ROUNDS, 0.5), stats_quantile(ratio, QUALITY_ROUNDS, 0),
           stats_quantile(cell_ns, QUALITY_ROUNDS, 0.5));
    run_free(run);
    arena_free(arena);
    arena_free(p.arena);
    arena_free(exact.arena);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *mechanism;
        int64_t     n;
    } runs[] = { { "window", 1024 }, { "reformer", 256 }, { "full", 512 }, { "full", 1536 } };
    static const char *const compared[] = { "window", "longformer", "reformer", "full",
                                            "nystrom", "performer" };
    int         rounds = bench_rounds(argc, argv, 101, MOST_ROUNDS);
    const char *why;
    Threads    *threads = threads_new(2);
    double      bare_ns = pair_ns(&bare_take, &bare_give);
    double      hooked_ns = pair_ns(&hooked_take, &hooked_give);

    if (!heap_hooks_active(&why))
        printf("heap hooks: off: %s\n", why);
    printf("malloc and free, one pair: %.1f ns with the hooks, %.1f ns without\n", hooked_ns,
           bare_ns);
    printf("a run under the profiler against the bare call, median of %d pairs (goal below 1 %% "
           "at 10 ms)\n", rounds);
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        Problem p = problem_new(runs[i].mechanism, runs[i].n, threads);

        report(runs[i].mechanism, runs[i].n, &p, rounds, hooked_ns - bare_ns);
        arena_free(p.arena);
    }
    printf("quality against exact attention, in times of exact attention itself, median of %d\n",
           QUALITY_ROUNDS);
    for (size_t i = 0; i < sizeof(compared) / sizeof(*compared); i++)
        report_quality(compared[i], 2048, threads);
    threads_free(threads);
    return 0;
}
