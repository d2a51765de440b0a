/* recurrent.c -- states that forget, by chunks, beside the products of the same chunks alone.
 *
 * A chunk of a state is a list of products of matrices (attn/cpu/recurrent).  They are made here
 * once more with nothing else: the same sizes, as often, by the same library, on numbers that stay
 * in the caches.  What is left of the stage is loading, fading by gates, solving row by row, and
 * storing.  In turn, round after round, one thread, in processor time, so that other programs
 * disturb little.  Shares of the peak count the FLOPs that the stage counts.
 *
 *     build/tests/bench/recurrent [rounds]
 */
#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
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
#define SIZE 64 /* of q, k, v, and of a chunk */
#define LENGTH 16384
#define MOST_ROUNDS 64
#define MOST_PRODUCTS 8
#define REPEAT 3 /* the better of so many */
#define STAGE "state"

/* c [rows,cols] = a [rows,inner] b [inner,cols], `times` in a chunk. */
typedef struct Product {
    int64_t rows, cols, inner, times;
    bool    a_turned, b_turned;
} Product;

#define WHOLE(t) { SIZE, SIZE, SIZE, t, false, false }, { SIZE, SIZE, SIZE, 1, true, false }
#define PAIR(rows, times) { rows, rows, SIZE, times, false, true }
#define SOLVED(inner) { 16, SIZE, inner, 1, false, false }
#define DELTA_PRODUCTS                                                                             \
    { { 2 * SIZE, SIZE, SIZE, 1, false, true }, WHOLE(3), SOLVED(16), SOLVED(32), SOLVED(48) }

typedef struct Form {
    const char *id;
    Product     products[MOST_PRODUCTS]; /* until one without rows */
} Form;

static const Form forms[] = {
    { "retnet", { PAIR(SIZE, 1), WHOLE(2) } },
    { "mamba2", { PAIR(SIZE, 1), WHOLE(2) } },
    { "gla", { PAIR(32, 1), PAIR(16, 2), PAIR(8, 4), PAIR(4, 8), WHOLE(2) } },
    { "deltanet", DELTA_PRODUCTS },
    { "gated-deltanet", DELTA_PRODUCTS },
};
#define FORMS (sizeof(forms) / sizeof(*forms))

typedef struct Bench {
    Arena   *arena, *runs; /* the runs share one, whose pages stay */
    Threads *threads;
    Tensor   q, k, v;
    float   *a, *b, *c;
} Bench;

/* ---- the stage -------------------------------------------------------------------- */

typedef struct Watch {
    double start, end;
} Watch;

static void look(void *context, const Run *run, const Stage *stage)
{
    Watch *w = context;

    (void)run;
    if (stage && !strcmp(stage->name, STAGE))
        w->start = clock_cpu();
    else if (!stage)
        w->end = clock_cpu();
}

static double flops_of(const Run *run)
{
    for (int x = 0; x < run->stage_count; x++)
        if (!strcmp(run->stages[x].name, STAGE))
            return flops_total(run->stages[x].flops);
    return (double)NAN;
}

/* Seconds; NaN: it failed. */
static double time_stage(Bench *b, const char *id, double *flops)
{
    Watch   watch = { 0 };
    RunSpec spec = { .mechanism = mechanism_find(id), .q = b->q, .k = b->k, .v = b->v,
                     .causal = true, .threads = b->threads, .seed = 1, .observer = look,
                     .observer_context = &watch };
    Run    *run = run_new_in(&spec, b->runs);
    double  seconds = (double)NAN;

    if (!run)
        return seconds;
    run_execute(run);
    if (run->err.code != ERR_NONE)
        fprintf(stderr, "recurrent: %s: %s\n", id, run->err.text);
    else
        seconds = watch.end - watch.start;
    *flops = flops_of(run);
    run_free(run);
    return seconds;
}

/* ---- the products alone ------------------------------------------------------------ */

static void take_product(const Bench *b, const Product *p)
{
    Matrix left = { b->a, p->a_turned ? p->rows : p->inner, p->a_turned };
    Matrix right = { b->b, p->b_turned ? p->inner : p->cols, p->b_turned };

    for (int64_t x = 0; x < p->times; x++)
        cpu_sgemm(left, right, p->rows, p->cols, p->inner, 1, 0, b->c, p->cols);
}

static double time_products(const Bench *b, const Form *form)
{
    double start = clock_cpu();

    for (int64_t chunk = 0; chunk < HEADS * LENGTH / SIZE; chunk++)
        for (const Product *p = form->products; p < form->products + MOST_PRODUCTS; p++)
            if (p->rows)
                take_product(b, p);
    return clock_cpu() - start;
}

/* FLOPs a second of processor time. */
static double peak_of(const Bench *b)
{
    double wall = clock_wall(), start = clock_cpu(), peak = cpu_peak(b->threads);

    return peak * (clock_wall() - wall) / (clock_cpu() - start);
}

/* ---- rounds ------------------------------------------------------------------------- */

typedef struct Samples {
    double stage[FORMS][MOST_ROUNDS], products[FORMS][MOST_ROUNDS]; /* shares of the peak */
    double part[FORMS][MOST_ROUNDS]; /* of the stage's time that the products take */
} Samples;

static void take(Bench *b, Samples *s, size_t at, int round)
{
    double stage = (double)INFINITY, products = (double)INFINITY, peak = 0, flops = 0;

    for (int x = 0; x < REPEAT; x++) {
        peak = fmax(peak, peak_of(b));
        stage = fmin(stage, time_stage(b, forms[at].id, &flops));
        products = fmin(products, time_products(b, &forms[at]));
    }
    s->stage[at][round] = flops / stage / peak;
    s->products[at][round] = flops / products / peak;
    s->part[at][round] = products / stage;
}

static void print(Samples *s, int rounds)
{
    printf("states by chunks of %d, n=%d h=%d d=%d f32, 1 thread, processor time, median of %d "
           "rounds: share of the peak\n", SIZE, LENGTH, HEADS, SIZE, rounds);
    for (size_t x = 0; x < FORMS; x++)
        printf("  %-14s stage %.2f, its products alone %.2f, which are %.2f of the stage's time\n",
               forms[x].id, stats_quantile(s->stage[x], rounds, 0.5),
               stats_quantile(s->products[x], rounds, 0.5),
               stats_quantile(s->part[x], rounds, 0.5));
}

static Tensor normal(Bench *b, Rng *rng)
{
    Tensor t = tensor_new(b->arena, DT_F32, 3, (int64_t[]){ HEADS, LENGTH, SIZE });

    if (t.data)
        rng_fill_normal(rng, t.data, tensor_count(&t), 1);
    return t;
}

static float *numbers(Bench *b, Rng *rng)
{
    float *x = arena_alloc(b->arena, (int64_t)2 * SIZE * SIZE, (int64_t)sizeof(*x));

    if (x)
        rng_fill_normal(rng, x, (int64_t)2 * SIZE * SIZE, 1);
    return x;
}

static bool bench_init(Bench *b)
{
    Rng   rng = rng_named(1, "bench");
    Error err = { 0 };

    *b = (Bench){ .arena = arena_new(), .runs = arena_new(), .threads = threads_new(1) };
    if (!b->arena || !b->runs || !b->threads || !blas_ready(1, &err))
        return false;
    b->q = normal(b, &rng);
    b->k = normal(b, &rng);
    b->v = normal(b, &rng);
    b->a = numbers(b, &rng);
    b->b = numbers(b, &rng);
    b->c = numbers(b, &rng);
    return b->q.data && b->k.data && b->v.data && b->a && b->b && b->c;
}

int main(int argc, char **argv)
{
    static Samples s;
    int            rounds = bench_rounds(argc, argv, 5, MOST_ROUNDS);
    Bench          bench;

    if (!bench_init(&bench)) {
        fprintf(stderr, "recurrent: not enough memory\n");
        return 1;
    }
    for (int round = 0; round < rounds; round++)
        for (size_t x = 0; x < FORMS; x++)
            take(&bench, &s, x, round);
    print(&s, rounds);
    threads_free(bench.threads);
    arena_free(bench.runs);
    arena_free(bench.arena);
    return 0;
}
