/* scattered.c -- attention over keys that lie anywhere, beside the bare reading of them.
 *
 * Keys drawn at random touch a cache line that nothing else has fetched, so what a row costs
 * grows with n as the tensors leave one cache after another, however few FLOPs there are.  How
 * much of the growth is the machine's is measured here: the same rows of k, then of v, by the
 * same lists and threads, one float of every cache line, no arithmetic but a sum; over all keys
 * at once or a stretch of them at a time, whichever is faster.  Both in turn, round after round.
 *
 *     build/tests/bench/scattered [rounds]
 */
#include "attn/cpu/cpu.h"
#include "core/rng.h"
#include "core/threads.h"
#include "profile/measure.h"
#include "profile/record.h"
#include "rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADS 8
#define SIZE 64
#define KEYS 64
#define MOST_ROUNDS 64
#define LINE 16 /* floats */
#define ITEM_ROWS 256
#define STRETCH (8 << 20) /* bytes of k, or of v */

/* ---- the problem -------------------------------------------------------------- */

typedef struct Problem {
    Run         *run;
    int64_t      n;
    AttendInput  in;
    AttendResult out;
    Pattern     *pattern;
    Tensor       keys; /* i32 [n,KEYS], increasing in each row */
} Problem;

/* One key of each of KEYS equal ranges: distinct and in order, and anywhere. */
static Tensor draw_keys(Run *r, int64_t n, Rng *rng)
{
    Tensor t = tensor_new(r->arena, DT_I32, 2, (int64_t[]){ n, KEYS });

    for (int64_t x = 0; t.data && x < n * KEYS; x++)
        tensor_i32(&t)[x] = (int32_t)((x % KEYS) * (n / KEYS) +
                                      (int64_t)(rng_uniform(rng) * (double)(n / KEYS)));
    return t;
}

static bool problem_new(Problem *p, int64_t n, Threads *threads)
{
    Rng          rng = rng_named(1, "bench");
    PatternShape shape = { .heads = HEADS, .n = n, .m = n };

    *p = (Problem){ .run = calloc(1, sizeof(Run)), .n = n };
    if (!p->run || !(p->run->arena = arena_new()))
        return false;
    p->run->threads = threads;
    p->in = (AttendInput){ .q = bench_normal(p->run->arena, &rng, HEADS, n, SIZE),
                           .k = bench_normal(p->run->arena, &rng, HEADS, n, SIZE),
                           .v = bench_normal(p->run->arena, &rng, HEADS, n, SIZE),
                           .scale = 1 / sqrt((double)SIZE) };
    p->out.out = bench_normal(p->run->arena, NULL, HEADS, n, SIZE);
    p->out.lse = tensor_new(p->run->arena, DT_F32, 2, (int64_t[]){ HEADS, n });
    p->keys = draw_keys(p->run, n, &rng);
    p->pattern = p->keys.data
                     ? pattern_table(p->run->arena, shape, &p->keys, COMPONENT_RANDOM)
                     : NULL;
    return p->pattern && p->out.lse.data && p->out.out.data && p->in.v.data;
}

static void problem_free(Problem *p)
{
    if (p->run)
        arena_free(p->run->arena);
    free(p->run);
}

static double time_attend(Problem *p)
{
    double cells = 0, start = clock_wall();

    ops_cpu()->attend(p->run, &p->in, p->pattern, &p->out, &cells);
    return clock_wall() - start;
}

/* ---- reading alone ------------------------------------------------------------- */

typedef struct Reading {
    const Problem *p;
    const float   *rows; /* [n,SIZE] of a head */
    int64_t        low, high;
    _Atomic float  sink;
} Reading;

static float read_row(const Reading *x, const int32_t *keys)
{
    float sum = 0;

    for (int64_t c = 0; c < KEYS; c++) {
        const float *row = x->rows + keys[c] * SIZE;

        if (keys[c] >= x->low && keys[c] < x->high)
            for (int64_t f = 0; f < SIZE; f += LINE)
                sum += row[f];
    }
    return sum;
}

static void read_item(void *context, int64_t item, int worker)
{
    Reading *x = context;
    int64_t  end = (item + 1) * ITEM_ROWS < x->p->n ? (item + 1) * ITEM_ROWS : x->p->n;
    float    sum = 0;

    (void)worker;
    for (int64_t i = item * ITEM_ROWS; i < end; i++)
        sum += read_row(x, tensor_i32(&x->p->keys) + i * KEYS);
    x->sink = sum; /* so that it is read at all */
}

static void read_sweep(const Problem *p, Tensor t, int64_t head, int64_t stretch)
{
    Reading x = { .p = p, .rows = tensor_head(&t, head, HEADS) };

    for (x.low = 0; x.low < p->n; x.low += stretch) {
        x.high = x.low + stretch;
        threads_run(p->run->threads, (p->n + ITEM_ROWS - 1) / ITEM_ROWS, read_item, &x);
    }
}

static double time_reading(const Problem *p, int64_t stretch)
{
    double start = clock_wall();

    for (int64_t head = 0; head < HEADS; head++) {
        read_sweep(p, p->in.k, head, stretch);
        read_sweep(p, p->in.v, head, stretch);
    }
    return clock_wall() - start;
}

/* ---- rounds --------------------------------------------------------------------- */

static const int64_t lengths[] = { 4096, 16384, 65536 };
#define LENGTHS 3

typedef struct Samples {
    double attend[LENGTHS][MOST_ROUNDS], reading[LENGTHS][MOST_ROUNDS];
    double grown[MOST_ROUNDS], grown_reading[MOST_ROUNDS]; /* exponents of the round */
} Samples;

static double exponent(double (*seconds)[MOST_ROUNDS], int round)
{
    return log(seconds[LENGTHS - 1][round] / seconds[0][round]) /
           log((double)lengths[LENGTHS - 1] / (double)lengths[0]);
}

/* The better of a few: a neighbour's burst is not the growth. */
static void take(Problem *p, double *attend, double *reading)
{
    int64_t rows = STRETCH / (SIZE * (int64_t)sizeof(float));
    int     repeat = p->n < 10000 ? 8 : p->n < 30000 ? 4 : 2;

    *attend = *reading = INFINITY;
    for (int x = 0; x < repeat; x++) {
        *attend = fmin(*attend, time_attend(p));
        *reading = fmin(*reading, time_reading(p, p->n));
        if (rows < p->n)
            *reading = fmin(*reading, time_reading(p, rows));
    }
}

static void print(Samples *s, int rounds)
{
    printf("%d random keys a query, h=%d d=%d f32, 2 threads, median of %d rounds\n", KEYS, HEADS,
           SIZE, rounds);
    for (int x = 0; x < LENGTHS; x++) {
        double bytes = 2.0 * HEADS * (double)lengths[x] * KEYS * SIZE * sizeof(float);
        double attend = stats_quantile(s->attend[x], rounds, 0.5);
        double reading = stats_quantile(s->reading[x], rounds, 0.5);

        printf("  n=%-6lld attention %7.2f ms, %5.1f GB/s of keys and values; reading alone %7.2f "
               "ms, %5.1f GB/s\n", (long long)lengths[x], 1e3 * attend, 1e-9 * bytes / attend,
               1e3 * reading, 1e-9 * bytes / reading);
    }
    printf("  exponent of attention       %.3f  (quartiles %.3f .. %.3f; claimed 1, goal 1.10)\n",
           stats_quantile(s->grown, rounds, 0.5), stats_quantile(s->grown, rounds, 0.25),
           stats_quantile(s->grown, rounds, 0.75));
    printf("  exponent of reading alone   %.3f  (quartiles %.3f .. %.3f)\n",
           stats_quantile(s->grown_reading, rounds, 0.5),
           stats_quantile(s->grown_reading, rounds, 0.25),
           stats_quantile(s->grown_reading, rounds, 0.75));
}

int main(int argc, char **argv)
{
    static Samples s;
    int            rounds = bench_rounds(argc, argv, 5, MOST_ROUNDS);
    Threads       *threads = threads_new(2);
    Problem        problems[LENGTHS];

    for (int x = 0; x < LENGTHS; x++)
        if (!problem_new(&problems[x], lengths[x], threads)) {
            fprintf(stderr, "scattered: not enough memory for n = %lld\n",
                    (long long)lengths[x]);
            return 1;
        }
    for (int round = 0; round < rounds; round++) {
        for (int x = 0; x < LENGTHS; x++)
            take(&problems[x], &s.attend[x][round], &s.reading[x][round]);
        s.grown[round] = exponent(s.attend, round);
        s.grown_reading[round] = exponent(s.reading, round);
    }
    print(&s, rounds);
    for (int x = 0; x < LENGTHS; x++)
        problem_free(&problems[x]);
    threads_free(threads);
    return 0;
}
