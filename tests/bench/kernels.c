/* kernels.c -- the kernels against this machine's ceilings, as ratios.
 *
 * Absolute rates drift by several percent within an hour, so everything is
 * measured in turn, round after round, and goals are ratios of one round:
 * the fused attention to the peak of fused multiply-adds and to OpenBLAS's
 * sgemm, a window and linear attention to themselves at another length.
 * Rates count the allowed cells only, 2 (d + e) flops each.
 *
 *     build/tests/bench/kernels [rounds]
 */
#include "attn/cpu/cpu.h"
#include "core/rng.h"
#include "core/threads.h"
#include "profile/record.h"
#include "rounds.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEADS 8
#define SIZE 64
#define MOST_ROUNDS 64
#define SGEMM_SIZE 2048

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what is measured ------------------------------------------------------- */

typedef struct Problem {
    Run         *run;
    int64_t      n;
    AttendInput  in;
    AttendResult out;
    LinearAttend linear;
    LinearResult linear_out;
    Pattern     *pattern;
    double       tensors; /* bytes of q, k, v and out */
} Problem;

static Problem problem_new(int64_t heads, int64_t n, Threads *threads)
{
    Problem p = { .run = calloc(1, sizeof(Run)), .n = n };
    Rng     rng = rng_named(1, "bench");
    int64_t rows[2] = { heads, n };

    p.run->arena = arena_new();
    p.run->threads = threads;
    p.in.q = bench_normal(p.run->arena, &rng, heads, n, SIZE);
    p.in.k = bench_normal(p.run->arena, &rng, heads, n, SIZE);
    p.in.v = bench_normal(p.run->arena, &rng, heads, n, SIZE);
    p.in.scale = 1 / sqrt((double)SIZE);
    p.out.out = bench_normal(p.run->arena, NULL, heads, n, SIZE);
    p.out.lse = tensor_new(p.run->arena, DT_F32, 2, rows);
    p.tensors = 4 * (double)tensor_bytes(&p.out.out);
    p.linear = (LinearAttend){ .fq = p.in.q, .fk = p.in.k, .v = p.in.v, .eps = 1e-6,
                               .denominator = DENOMINATOR_ADD };
    return p;
}

static PatternShape shape_of(const Problem *p)
{
    return (PatternShape){ .heads = p->in.q.shape[0], .n = p->n, .m = p->n };
}

static void problem_free(Problem *p)
{
    arena_free(p->run->arena);
    free(p->run);
}

static bool sound(const Problem *p)
{
    if (p->run->err.code == ERR_NONE && p->out.lse.data)
        return true;
    fprintf(stderr, "bench: %s\n", p->run->err.code ? p->run->err.text : "not enough memory");
    return false;
}

/* Seconds of one attention; *flops as the kernel counted them. */
static double time_attend(Problem *p, Threads *threads, double *flops)
{
    double cells = 0, start = now();

    p->run->threads = threads;
    ops_cpu()->attend(p->run, &p->in, p->pattern, &p->out, &cells);
    *flops = 4 * cells * SIZE;
    return now() - start;
}

/* Features as their owner would make them are not part of this. */
static double time_linear(Problem *p, Threads *threads)
{
    double start;

    if (!p->linear_out.memory.data) {
        int64_t rows[2] = { p->in.q.shape[0], p->n };

        p->linear_out.out = p->out.out;
        p->linear_out.memory = bench_normal(p->run->arena, NULL, rows[0], SIZE, SIZE);
        p->linear_out.denominator = tensor_new(p->run->arena, DT_F32, 2, rows);
        p->linear_out.divisor = tensor_new(p->run->arena, DT_F32, 2, rows);
    }
    p->run->threads = threads;
    start = now();
    ops_cpu()->linear_attend(p->run, &p->linear, &p->linear_out);
    return now() - start;
}

static double rate_sgemm(const float *a, const float *b, float *c, int threads)
{
    int    n = SGEMM_SIZE;
    double start;

    openblas_set_num_threads(threads);
    start = now();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
    start = now() - start;
    openblas_set_num_threads(1);
    return 2.0 * n * n * n / start;
}

/* ---- the report ------------------------------------------------------------- */

enum {
    PEAK, SGEMM, FULL, CAUSAL, FULL_512, WINDOW_4K, WINDOW_16K, LINEAR_4K, LINEAR_16K, FIGURES
};

typedef struct Samples {
    double value[FIGURES][MOST_ROUNDS]; /* flop/s, or seconds from WINDOW_4K on */
} Samples;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median with least and most of value[a] / value[b], round by round. */
static void print_ratio(const Samples *s, int rounds, const char *text, int a, int b)
{
    double ratio[MOST_ROUNDS];

    for (int x = 0; x < rounds; x++)
        ratio[x] = s->value[a][x] / s->value[b][x];
    qsort(ratio, (size_t)rounds, sizeof(*ratio), compare);
    printf("  %-44s %6.3f  (%.3f .. %.3f)\n", text, ratio[rounds / 2], ratio[0],
           ratio[rounds - 1]);
}

static double median(const double *value, int rounds)
{
    double sorted[MOST_ROUNDS];

    memcpy(sorted, value, (size_t)rounds * sizeof(*sorted));
    qsort(sorted, (size_t)rounds, sizeof(*sorted), compare);
    return sorted[rounds / 2];
}

static void print_samples(const Samples *s, int rounds, int threads)
{
    static const char *const names[FIGURES] = {
        "multiply-add peak", "OpenBLAS sgemm 2048^3", "full n=4096", "full causal n=4096",
        "full n=512", "window(257) n=4096", "window(257) n=16384", "linear n=4096",
        "linear n=16384",
    };

    printf("\n%d thread%s, h=%d d=%d f32, median of %d rounds\n", threads,
           threads == 1 ? "" : "s", HEADS, SIZE, rounds);
    for (int x = 0; x < FIGURES; x++) {
        double m = median(s->value[x], rounds);

        if (x < WINDOW_4K)
            printf("  %-44s %6.1f GFLOP/s\n", names[x], m * 1e-9);
        else
            printf("  %-44s %6.2f ms\n", names[x], m * 1e3);
    }
    print_ratio(s, rounds, "full / peak                (goal 0.75)", FULL, PEAK);
    print_ratio(s, rounds, "full / sgemm               (goal 0.80)", FULL, SGEMM);
    print_ratio(s, rounds, "causal / peak              (goal 0.70)", CAUSAL, PEAK);
    print_ratio(s, rounds, "full n=512 / peak          (goal 0.55)", FULL_512, PEAK);
    print_ratio(s, rounds, "window t(16384) / t(4096)  (goal < 4.3)", WINDOW_16K, WINDOW_4K);
    print_ratio(s, rounds, "linear t(16384) / t(4096)  (goal < 4.4)", LINEAR_16K, LINEAR_4K);
}

/* The best of a few repetitions: small times suffer from every interruption. */
static double best_attend(Problem *p, Threads *threads, int repeat, double *flops)
{
    double best = time_attend(p, threads, flops);

    for (int x = 1; x < repeat; x++)
        best = fmin(best, time_attend(p, threads, flops));
    return best;
}

static double rate_attend(Problem *p, Threads *threads, int repeat)
{
    double flops, seconds = best_attend(p, threads, repeat, &flops);

    return flops / seconds;
}

static double best_linear(Problem *p, Threads *threads, int repeat)
{
    double best = time_linear(p, threads);

    for (int x = 1; x < repeat; x++)
        best = fmin(best, time_linear(p, threads));
    return best;
}

typedef struct Bench {
    Problem full, causal, small, window_4k, window_16k;
    float  *a, *b, *c;
} Bench;

static void take_round(Bench *b, Threads *threads, Samples *s, int x)
{
    int    count = threads_count(threads);
    double flops;

    s->value[PEAK][x] = cpu_peak(threads);
    s->value[SGEMM][x] = rate_sgemm(b->a, b->b, b->c, count);
    s->value[FULL][x] = rate_attend(&b->full, threads, 2);
    s->value[CAUSAL][x] = rate_attend(&b->causal, threads, 2);
    s->value[FULL_512][x] = rate_attend(&b->small, threads, 20);
    s->value[WINDOW_4K][x] = best_attend(&b->window_4k, threads, 5, &flops);
    s->value[WINDOW_16K][x] = best_attend(&b->window_16k, threads, 3, &flops);
    s->value[LINEAR_4K][x] = best_linear(&b->window_4k, threads, 5);
    s->value[LINEAR_16K][x] = best_linear(&b->window_16k, threads, 3);
}

static bool bench_init(Bench *b)
{
    size_t count = (size_t)SGEMM_SIZE * SGEMM_SIZE;

    *b = (Bench){ .full = problem_new(HEADS, 4096, NULL), .causal = problem_new(HEADS, 4096, NULL),
                  .small = problem_new(HEADS, 512, NULL),
                  .window_4k = problem_new(HEADS, 4096, NULL),
                  .window_16k = problem_new(HEADS, 16384, NULL),
                  .a = malloc(count * sizeof(float)), .b = malloc(count * sizeof(float)),
                  .c = malloc(count * sizeof(float)) };
    if (!b->a || !b->b || !b->c || !sound(&b->full) || !sound(&b->causal) || !sound(&b->small) ||
        !sound(&b->window_4k) || !sound(&b->window_16k))
        return false;
    for (size_t x = 0; x < count; x++)
        b->a[x] = b->b[x] = (float)(x % 97) * 0.01f;
    b->full.pattern = pattern_full(b->full.run->arena, shape_of(&b->full), COMPONENT_OTHER);
    b->causal.pattern = pattern_causal(b->causal.run->arena, shape_of(&b->causal));
    b->small.pattern = pattern_full(b->small.run->arena, shape_of(&b->small), COMPONENT_OTHER);
    b->window_4k.pattern = pattern_band(b->window_4k.run->arena, shape_of(&b->window_4k), -128,
                                        128, 1, COMPONENT_WINDOW);
    b->window_16k.pattern = pattern_band(b->window_16k.run->arena, shape_of(&b->window_16k), -128,
                                         128, 1, COMPONENT_WINDOW);
    return true;
}

static void bench_free(Bench *b)
{
    problem_free(&b->full);
    problem_free(&b->causal);
    problem_free(&b->small);
    problem_free(&b->window_4k);
    problem_free(&b->window_16k);
    free(b->a);
    free(b->b);
    free(b->c);
}

/* One head of 65536 tokens, window(513) and four global tokens: working memory. */
static void measure_memory(Threads *threads)
{
    Problem      p = problem_new(1, 65536, threads);
    PatternShape s = shape_of(&p);
    Arena       *a = p.run->arena;
    uint8_t     *flags = calloc((size_t)p.n, 1);
    double       flops, seconds;

    memset(flags, 1, 4);
    p.pattern = pattern_union(a, pattern_band(a, s, -256, 256, 1, COMPONENT_WINDOW),
                              pattern_union(a, pattern_rows(a, s, flags),
                                            pattern_cols(a, s, flags)));
    seconds = sound(&p) ? time_attend(&p, threads, &flops) : 0;
    if (sound(&p))
        printf("\nn=65536 h=1 d=64 window(513) + global(4): %.1f ms, arena peak %.2f of "
               "q + k + v + out (goal < 3)\n", seconds * 1e3, (double)arena_peak(a) / p.tensors);
    free(flags);
    problem_free(&p);
}

static void warn_of_slow_blas(void)
{
    const char *warning = environment_blas_warning();

    printf("kernel %s, OpenBLAS core %s\n", kernel_at(0)->name, openblas_get_corename());
    if (warning)
        printf("WARNING: %s\n", warning);
}

int main(int argc, char **argv)
{
    int     rounds = bench_rounds(argc, argv, 5, MOST_ROUNDS);
    Bench   bench;
    Samples samples;

    warn_of_slow_blas();
    if (!bench_init(&bench))
        return 1;
    for (int count = 1; count <= 2 && count <= threads_hardware(); count++) {
        Threads *threads = threads_new(count);

        take_round(&bench, threads, &samples, 0); /* first touch is not work */
        for (int x = 0; x < rounds; x++)
            take_round(&bench, threads, &samples, x);
        print_samples(&samples, rounds, count);
        if (count == 2 || threads_hardware() == 1)
            measure_memory(threads);
        threads_free(threads);
    }
    bench_free(&bench);
    return 0;
}
