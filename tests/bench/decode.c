/* decode.c -- one step of decoding beside a plain reading of the bytes that it must read.
 *
 * The step is one query a head against KEYS keys.  What a decoder keeps from the steps before (the
 * latents of mla, the bounds of quest, the means of moba) is made again by a run of one query, in
 * stages of its own; the clock starts after them.  The bytes are those of the closed form
 * (DecodeCost.step_bytes) in float32.  The reading takes as many bytes by the same threads, in turn
 * with the step, round after round: one float of every cache line, no arithmetic but a sum.
 *
 * With one thread both are processor time, which other programs disturb little.
 *
 *     build/tests/bench/decode [rounds [threads [mechanism]]]
 *
 * In the environment, whatever the processor (kernel_fetching): FETCH=0 or 1, whether long runs of
 * dots and mix_row fetch rows; NEAR=0 or 1, whether AVX-512 fetches only the line that is read.
 */
#include "attn/cpu/simd/kernel.h"
#include "attn/run.h"
#include "core/rng.h"
#include "core/threads.h"
#include "profile/measure.h"
#include "profile/record.h"
#include "rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS 2
#define SIZE 64
#define KEYS (1 << 16)
#define MOST_ROUNDS 64
#define REPEAT 4 /* the better of so many: a neighbour's burst is not the step */
#define LINE 16  /* floats */
#define ITEM (1 << 16)

#define SHARED 4 /* query heads of a head of keys, where it is shared */

typedef struct Step {
    const char *name, *mechanism;
    bool        shared;
} Step;

static const Step steps[] = {
    { "full", "full", false },
    { "full, 4 to 1", "full", true },
    { "sigmoid", "sigmoid", false },
    { "mla", "mla", false },
    { "topk", "topk", false },
    { "differential", "differential", false },
    { "quest", "quest", false },
    { "moba", "moba", false },
};
#define STEPS (sizeof(steps) / sizeof(*steps))

typedef struct Bench {
    Arena   *arena, *runs; /* the runs share one, whose pages stay */
    Threads *threads;
    Tensor   q, k, v; /* q [SHARED HEADS,1,SIZE] */
    float   *bytes; /* 2 HEADS KEYS SIZE of them, to read */
} Bench;

static double (*now)(void) = clock_wall;

/* ---- the step ------------------------------------------------------------------- */

typedef struct Watch {
    bool   kept; /* the stage of Mechanism.kept_stage runs */
    double start;
} Watch;

static void look(void *context, const Run *run, const Stage *stage)
{
    Watch      *w = context;
    const char *kept = run->mechanism->kept_stage;

    if (w->kept)
        w->start = now();
    w->kept = kept && stage && !strcmp(stage->name, kept);
}

/* Seconds; NaN: it failed.  *bytes of the closed form, of float32. */
static double time_step(Bench *b, const Step *step, double *bytes)
{
    Watch   watch = { .start = now() };
    int64_t heads = step->shared ? SHARED * HEADS : HEADS;
    Tensor  q = tensor_of(DT_F32, 3, (int64_t[]){ heads, 1, SIZE }, b->q.data);
    RunSpec spec = { .mechanism = mechanism_find(step->mechanism), .q = q, .k = b->k, .v = b->v,
                     .causal = true, .threads = b->threads, .seed = 1, .observer = look,
                     .observer_context = &watch };
    Run    *run = run_new_in(&spec, b->runs);
    double  seconds;

    if (!run)
        return (double)NAN;
    watch.start = now();
    run_execute(run);
    seconds = now() - watch.start;
    if (run->err.code != ERR_NONE) {
        fprintf(stderr, "decode: %s: %s\n", step->name, run->err.text);
        seconds = (double)NAN;
    } else {
        *bytes = run->mechanism->decode(run, run->params).step_bytes * (double)sizeof(float) /
                 (double)run->cache_bytes;
    }
    run_free(run);
    return seconds;
}

/* ---- reading alone -------------------------------------------------------------- */

typedef struct Reading {
    const float  *bytes;
    int64_t       floats;
    _Atomic float sink;
} Reading;

static void read_item(void *context, int64_t item, int worker)
{
    Reading *x = context;
    int64_t  end = (item + 1) * ITEM < x->floats ? (item + 1) * ITEM : x->floats;
    float    sum[4] = { 0 };

    (void)worker;
    for (int64_t at = item * ITEM; at + 4 * LINE <= end; at += 4 * LINE)
        for (int s = 0; s < 4; s++)
            sum[s] += x->bytes[at + s * LINE];
    x->sink = sum[0] + sum[1] + sum[2] + sum[3]; /* so that it is read at all */
}

static double time_reading(const Bench *b, double bytes)
{
    Reading x = { .bytes = b->bytes, .floats = (int64_t)(bytes / (double)sizeof(float)) };
    double  start = now();

    threads_run(b->threads, (x.floats + ITEM - 1) / ITEM, read_item, &x);
    return now() - start;
}

/* ---- rounds --------------------------------------------------------------------- */

typedef struct Samples {
    double step[STEPS][MOST_ROUNDS], reading[STEPS][MOST_ROUNDS], ratio[STEPS][MOST_ROUNDS];
    double bytes[STEPS];
} Samples;

static void take(Bench *b, Samples *s, size_t at, int round)
{
    double step = (double)INFINITY, reading = (double)INFINITY;

    for (int x = 0; x < REPEAT; x++) {
        step = fmin(step, time_step(b, &steps[at], &s->bytes[at]));
        reading = fmin(reading, time_reading(b, s->bytes[at]));
    }
    s->step[at][round] = step;
    s->reading[at][round] = reading;
    s->ratio[at][round] = step / reading;
}

static void print(Samples *s, int rounds, int threads)
{
    printf("one query over %d keys, h=%d d=%d f32, %d threads, median of %d rounds\n", KEYS, HEADS,
           SIZE, threads, rounds);
    for (size_t x = 0; x < STEPS; x++) {
        if (!(s->bytes[x] > 0))
            continue;
        printf("  %-13s %6.2f MiB  step %7.3f ms, reading alone %7.3f ms, ratio %6.2f  (quartiles "
               "%.2f .. %.2f)\n", steps[x].name, s->bytes[x] / (1 << 20),
               1e3 * stats_quantile(s->step[x], rounds, 0.5),
               1e3 * stats_quantile(s->reading[x], rounds, 0.5),
               stats_quantile(s->ratio[x], rounds, 0.5), stats_quantile(s->ratio[x], rounds, 0.25),
               stats_quantile(s->ratio[x], rounds, 0.75));
    }
}

static bool bench_init(Bench *b, int threads)
{
    Rng     rng = rng_named(1, "bench");
    int64_t floats = (int64_t)2 * HEADS * KEYS * SIZE;

    *b = (Bench){ .arena = arena_new(), .runs = arena_new(), .threads = threads_new(threads) };
    if (!b->arena || !b->runs || !b->threads)
        return false;
    b->q = bench_normal(b->arena, &rng, SHARED * HEADS, 1, SIZE);
    b->k = bench_normal(b->arena, &rng, HEADS, KEYS, SIZE);
    b->v = bench_normal(b->arena, &rng, HEADS, KEYS, SIZE);
    b->bytes = arena_alloc(b->arena, floats, (int64_t)sizeof(float));
    for (int64_t x = 0; b->bytes && x < floats; x++)
        b->bytes[x] = (float)(x % 97);
    return b->q.data && b->k.data && b->v.data && b->bytes;
}

static void set_fetching(void)
{
    const char *runs = getenv("FETCH"), *near = getenv("NEAR");

    if (!kernel_at(0)) /* finds what the processor gains by */
        return;
    if (runs)
        kernel_fetching.runs = atoi(runs) != 0;
    if (near)
        kernel_fetching.near = atoi(near) != 0;
}

int main(int argc, char **argv)
{
    static Samples s;
    int            rounds = bench_rounds(argc, argv, 5, MOST_ROUNDS);
    int            threads = argc > 2 && atoi(argv[2]) == 1 ? 1 : 2;
    const char    *only = argc > 3 ? argv[3] : NULL;
    Bench          bench;

    set_fetching();
    now = threads == 1 ? clock_cpu : clock_wall;
    if (!bench_init(&bench, threads)) {
        fprintf(stderr, "decode: not enough memory for %d keys\n", KEYS);
        return 1;
    }
    for (int round = 0; round < rounds; round++)
        for (size_t x = 0; x < STEPS; x++)
            if (!only || !strcmp(only, steps[x].name))
                take(&bench, &s, x, round);
    print(&s, rounds, threads);
    threads_free(bench.threads);
    arena_free(bench.runs);
    arena_free(bench.arena);
    return 0;
}
