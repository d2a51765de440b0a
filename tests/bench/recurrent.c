/* recurrent.c -- states that forget, by chunks, beside the products of the same chunks alone.
 *
 * A chunk of a state is a list of products of matrices (attn/cpu/recurrent).  They are made here
 * once more with nothing else: the same sizes, as often, by the same library, on numbers that stay
 * in the caches.  What is left of the stage is loading, fading by gates, solving row by row, and
 * storing.  rwkv7 computes two gates of every channel from the tokens in a stage before: products
 * of TOKEN numbers, made alone likewise; what is left are exponentials and a few passes over gates
 * and keys, in double.  In turn, round after round, one thread, in processor time, so that other
 * programs disturb little.  Shares of the peak count the FLOPs that the stage counts; products in
 * double (log-linear) reach half of it at most.
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
#define MOST_PRODUCTS 12
#define REPEAT 3 /* the better of so many */
#define TOKEN 512 /* numbers of x */
#define ROWS 96 /* of a product of tokens */
#define BITS 8 /* of LENGTH / SIZE, of which a chunk's index has half on the average */

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
    const char *id, *stage;
    Product     products[MOST_PRODUCTS]; /* until one without rows */
    bool        wide;                    /* in double */
} Form;

static const Form forms[] = {
    { "retnet", "state", { PAIR(SIZE, 1), WHOLE(2) }, false },
    { "mamba2", "state", { PAIR(SIZE, 1), WHOLE(2) }, false },
    { "gla", "state", { PAIR(32, 1), PAIR(16, 2), PAIR(8, 4), PAIR(4, 8), WHOLE(2) }, false },
    { "deltanet", "state", DELTA_PRODUCTS, false },
    { "gated-deltanet", "state", DELTA_PRODUCTS, false },
    { "rwkv7", "state",
      { PAIR(SIZE, 1), PAIR(32, 2), PAIR(16, 4), PAIR(8, 8), SOLVED(32), SOLVED(64), SOLVED(96),
        { SIZE, SIZE, SIZE, 2, false, false }, { SIZE, SIZE, 2 * SIZE, 1, false, false },
        { SIZE, SIZE, 2 * SIZE, 1, true, false } }, false },
    { "rwkv7", "gates", { { ROWS, SIZE, TOKEN, 2, false, false } }, false },
    { "log-linear", "state", { PAIR(SIZE, 1), WHOLE(1 + BITS / 2) }, true },
};
#define FORMS (sizeof(forms) / sizeof(*forms))

typedef struct Bench {
    Arena   *arena, *runs; /* the runs share one, whose pages stay */
    Threads *threads;
    Tensor   q, k, v, x;
    float   *a, *b, *c;
    double  *wide_a, *wide_b, *wide_c;
} Bench;

/* ---- the stage -------------------------------------------------------------------- */

typedef struct Watch {
    const char *stage;
    double      start, seconds;
    bool        inside;
} Watch;

static void look(void *context, const Run *run, const Stage *stage)
{
    Watch *w = context;
    double now = clock_cpu();

    (void)run;
    if (w->inside)
        w->seconds += now - w->start;
    w->inside = stage && !strcmp(stage->name, w->stage);
    w->start = now;
}

static double flops_of(const Run *run, const char *stage)
{
    for (int x = 0; x < run->stage_count; x++)
        if (!strcmp(run->stages[x].name, stage))
            return flops_total(run->stages[x].flops);
    return (double)NAN;
}

/* Seconds; NaN: it failed. */
static double time_stage(Bench *b, const Form *form, double *flops)
{
    const char *id = form->id;
    Watch       watch = { .stage = form->stage };
    RunSpec     spec = { .mechanism = mechanism_find(id),
                         .q = b->q,
                         .k = b->k,
                         .v = b->v,
                         .x = b->x,
                         .causal = true,
                         .threads = b->threads,
                         .seed = 1,
                         .observer = look,
                         .observer_context = &watch };
    Run        *run = run_new_in(&spec, b->runs);
    double      seconds = (double)NAN;

    if (!run)
        return seconds;
    run_execute(run);
    if (run->err.code != ERR_NONE)
        fprintf(stderr, "recurrent: %s: %s\n", id, run->err.text);
    else
        seconds = watch.seconds;
    *flops = flops_of(run, form->stage);
    run_free(run);
    return seconds;
}

/* ---- the products alone ------------------------------------------------------------ */

static void take_product(const Bench *b, const Product *p, bool wide)
{
    int64_t    lda = p->a_turned ? p->rows : p->inner, ldb = p->b_turned ? p->inner : p->cols;
    Matrix     left = { b->a, lda, p->a_turned }, right = { b->b, ldb, p->b_turned };
    WideMatrix wide_left = { b->wide_a, lda, p->a_turned };
    WideMatrix wide_right = { b->wide_b, ldb, p->b_turned };

    for (int64_t x = 0; x < p->times; x++)
        if (wide)
            cpu_dgemm(wide_left, wide_right, p->rows, p->cols, p->inner, 1, 0, b->wide_c, p->cols);
        else
            cpu_sgemm(left, right, p->rows, p->cols, p->inner, 1, 0, b->c, p->cols);
}

static double time_products(const Bench *b, const Form *form)
{
    int64_t each = form->products->rows == ROWS ? ROWS : SIZE; /* tokens of a list of products */
    double  start = clock_cpu();

    for (int64_t chunk = 0; chunk < HEADS * LENGTH / each; chunk++)
        for (const Product *p = form->products; p < form->products + MOST_PRODUCTS; p++)
            if (p->rows)
                take_product(b, p, form->wide);
    return clock_cpu() - start;
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
        peak = fmax(peak, bench_peak(b->threads));
        stage = fmin(stage, time_stage(b, &forms[at], &flops));
        products = fmin(products, time_products(b, &forms[at]));
    }
    s->stage[at][round] = flops / stage / peak;
    s->products[at][round] = flops / products / peak;
    s->part[at][round] = products / stage;
}

static void print(Samples *s, int rounds)
{
    printf("states by chunks of %d, n=%d h=%d d=%d f32, 1 thread, processor time, median of %d "
           "rounds: share of the peak\n",
           SIZE, LENGTH, HEADS, SIZE, rounds);
    for (size_t x = 0; x < FORMS; x++)
        printf("  %-14s %s %.2f, its products alone %.2f, which are %.2f of the stage's time\n",
               forms[x].id, forms[x].stage, stats_quantile(s->stage[x], rounds, 0.5),
               stats_quantile(s->products[x], rounds, 0.5),
               stats_quantile(s->part[x], rounds, 0.5));
}

#define NUMBERS ((int64_t)ROWS * TOKEN)

/* The same in float and in double. */
static bool numbers(Bench *b, Rng *rng, float **x, double **wide)
{
    *x = arena_alloc(b->arena, NUMBERS, (int64_t)sizeof(**x));
    *wide = arena_alloc(b->arena, NUMBERS, (int64_t)sizeof(**wide));
    if (!*x || !*wide)
        return false;
    rng_fill_normal(rng, *x, NUMBERS, 1);
    floats_widen(DT_F32, *x, 0, NUMBERS, *wide);
    return true;
}

static bool bench_init(Bench *b)
{
    Rng   rng = rng_named(1, "bench");
    Error err = { 0 };

    *b = (Bench){ .arena = arena_new(), .runs = arena_new(), .threads = threads_new(1) };
    if (!b->arena || !b->runs || !b->threads || !blas_ready(1, &err))
        return false;
    b->q = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->k = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->v = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->x = tensor_with_rank(bench_normal(b->arena, &rng, 1, LENGTH, TOKEN), 2);
    return b->q.data && b->k.data && b->v.data && b->x.data &&
           numbers(b, &rng, &b->a, &b->wide_a) && numbers(b, &rng, &b->b, &b->wide_b) &&
           numbers(b, &rng, &b->c, &b->wide_c);
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
