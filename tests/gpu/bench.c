/* bench.c -- attention on a GPU against cuDNN's and against itself, as ratios of one run.
 *
 * For each n: cuDNN called bare (its graph, over and over, one wait at the end), the op that
 * runs use (cuDNN inside, outputs widened to float32, a wait each), and the op with cuDNN
 * switched off: by our kernel for all GPUs, and by that for Hopper's warpgroups.  Then blocks of
 * which one in eight is there, at the longest n, by both, over exact attention by the fastest and
 * by the same kernel.  Preparation is not in the times: packing the inputs, tiles, plans.
 *
 *     build/bench-gpu [rounds]        77: there is no GPU to measure
 */
#include "attn/cuda/host/gpu.h"
#include "core/rng.h"
#include "core/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEADS 16
#define SIZE 128
#define SHORTEST 1024
#define LONGEST 32768
#define BLOCK 64
#define EIGHTH 8
#define ROUNDS 9
#define MOST_ROUNDS 99
#define SKIPPED 77

typedef struct Problem {
    Run         *run;
    int64_t      n;
    AttendInput  in;
    AttendResult out;
    Pattern     *pattern;
    double       since, prepared; /* of run_prepare */
    double       cells;
} Problem;

static const Mechanism bench = { .id = "bench" };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void preparing(void *context, bool begins)
{
    Problem *p = context;

    if (begins)
        p->since = now();
    else
        p->prepared += now() - p->since;
}

static Tensor tensor3(Run *r, int64_t h, int64_t n, int64_t d, Rng *rng)
{
    int64_t shape[3] = { h, n, d };
    Tensor  t = tensor_new(r->arena, DT_F32, 3, shape);

    if (t.data && rng)
        rng_fill_normal(rng, t.data, tensor_count(&t), 1);
    return t;
}

/* A run of its own, with the inputs where the device has them. */
static void problem_init(Problem *p, const Ops *ops, Threads *threads, int64_t n)
{
    Rng  rng = rng_named(1, "bench");
    Run *r = calloc(1, sizeof(*r));

    *p = (Problem){ .run = r, .n = n };
    r->mechanism = &bench;
    r->ops = ops;
    r->threads = threads;
    r->arena = arena_new_from(ops->memory);
    r->h = HEADS;
    r->n = r->m = n;
    r->d = r->e = SIZE;
    r->spec.preparing = preparing;
    r->spec.observer_context = p;
    p->in.q = r->q = tensor3(r, HEADS, n, SIZE, &rng);
    p->in.k = r->k = tensor3(r, HEADS, n, SIZE, &rng);
    p->in.v = r->v = tensor3(r, HEADS, n, SIZE, &rng);
    p->in.scale = 1 / sqrt(SIZE);
    p->out.out = tensor3(r, HEADS, n, SIZE, NULL);
    p->out.lse = tensor_with_rank(tensor3(r, 1, HEADS, n, NULL), 2);
    ops->prepare(r);
}

static void problem_free(Problem *p)
{
    text_free(&p->run->warnings);
    arena_free(p->run->arena);
    free(p->run);
}

static PatternShape shape_of(const Problem *p)
{
    return (PatternShape){ .heads = HEADS, .n = p->n, .m = p->n };
}

/* One block of keys in eight for each block of queries, drawn. */
static Pattern *eighth(const Problem *p)
{
    Arena       *a = p->run->arena;
    int64_t      blocks = p->n / BLOCK;
    PatternShape few = { .heads = 1, .n = blocks, .m = blocks };
    Tensor       table = pattern_draw_random(a, few, blocks / EIGHTH, 1, "bench", NULL, NULL);

    return pattern_tile(a, shape_of(p), BLOCK, pattern_table(a, few, &table, COMPONENT_BLOCK));
}

static double attend_once(Problem *p)
{
    double start = now();

    p->prepared = 0;
    p->run->ops->attend(p->run, &p->in, p->pattern, &p->out, &p->cells);
    return now() - start - p->prepared;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of(Problem *p, int rounds)
{
    double times[MOST_ROUNDS];

    attend_once(p);
    for (int x = 0; x < rounds; x++)
        times[x] = attend_once(p);
    qsort(times, (size_t)rounds, sizeof(*times), by_size);
    return times[rounds / 2];
}

/* Seconds of a call of cuDNN's alone; 0: it does not take it. */
static double bare(Problem *p, int rounds)
{
    Run             *r = p->run;
    const DeviceApi *api = gpu_api(r);
    ArenaMark        mark = arena_mark(r->arena);
    FusedCall        call = {
        .heads = HEADS, .n = p->n, .m = p->n, .d = SIZE, .e = SIZE,
        .arithmetic = (int32_t)gpu_kind(r)->arithmetic, .scale = p->in.scale,
        .q = gpu_packed(r, &p->in.q, SIZE), .k = gpu_packed(r, &p->in.k, SIZE),
        .v = gpu_packed(r, &p->in.v, SIZE),
        .out = gpu_result(r, &p->out.out), .lse = gpu_lines(gpu_result(r, &p->out.lse)),
    };
    double start;
    int    code;

    call.narrow = call.q;
    call.narrow.data = gpu_scratch(r, HEADS * call.q.rows * SIZE, sizeof(uint16_t));
    code = api->fused_plan(&call);
    for (int x = 0; x < 3 && !code; x++)
        code = api->fused(&call);
    api->finish();
    start = now();
    for (int x = 0; x < rounds && !code; x++)
        code = api->fused(&call);
    code = api->finish() || code;
    if (code)
        printf("cuDNN: %s\n", api->text(FUSED_DECLINED));
    start = now() - start;
    arena_release(r->arena, mark);
    return code ? 0 : start / rounds;
}

/* Seconds by our kernel for all GPUs or, with `groups`, for warpgroups; 0: that is not there. */
static double own_of(Problem *p, bool groups, int rounds)
{
    double time;

    setenv("ATTNSCOPE_CUDNN", "0", 1);
    setenv("ATTNSCOPE_WGMMA", groups ? "1" : "0", 1);
    p->run->computed = 0;
    time = median_of(p, rounds);
    if (groups && !(p->run->computed & COMPUTED_WARPGROUP)) {
        printf("wgmma: %s\n", p->run->warnings.data ? p->run->warnings.data
                                                   : device_way_text(gpu_kind(p->run)->device,
                                                                     WAY_WARPGROUP));
        time = 0;
    }
    unsetenv("ATTNSCOPE_CUDNN");
    unsetenv("ATTNSCOPE_WGMMA");
    return time;
}

/* Exact attention: cuDNN bare, the op, our two kernels; 0: it is not there. */
typedef struct Times {
    double library, op, own, groups;
} Times;

static void ratio(double a, double b)
{
    if (a > 0 && b > 0)
        printf(" %5.2f", a / b);
    else
        printf(" %5s", "-");
}

static void time_of(double seconds, double flops)
{
    if (seconds > 0)
        printf("  %9.3f ms %6.0f", 1e3 * seconds, flops / seconds / 1e12);
    else
        printf("  %12s %6s", "-", "-");
}

static void line(int64_t n, Times t)
{
    double flops = 4.0 * HEADS * (double)n * (double)n * SIZE;

    printf("%7lld", (long long)n);
    time_of(t.library, flops);
    printf("  %9.3f ms", 1e3 * t.op);
    ratio(t.library, t.op);
    time_of(t.own, flops);
    ratio(t.library, t.own);
    time_of(t.groups, flops);
    ratio(t.library, t.groups);
    ratio(t.own, t.groups);
    printf("\n");
}

static Times exact(const Ops *ops, Threads *threads, int64_t n, int rounds)
{
    Problem p;
    Times   t;

    problem_init(&p, ops, threads, n);
    p.pattern = pattern_full(p.run->arena, shape_of(&p), 0);
    unsetenv("ATTNSCOPE_CUDNN");
    t.library = bare(&p, rounds);
    t.op = median_of(&p, rounds);
    t.own = own_of(&p, false, rounds);
    t.groups = own_of(&p, true, rounds);
    if (p.run->err.code)
        printf("%lld: %s\n", (long long)n, p.run->err.text);
    else
        line(n, t);
    problem_free(&p);
    return t;
}

static double faster(double a, double b)
{
    return a > 0 && (a < b || !(b > 0)) ? a : b;
}

static void blocks(const Ops *ops, Threads *threads, Times exact_times, int rounds)
{
    double  fastest = faster(exact_times.groups, faster(exact_times.op, exact_times.own));
    Problem p;

    problem_init(&p, ops, threads, LONGEST);
    p.pattern = eighth(&p);
    for (int groups = 0; groups < 2; groups++) {
        double time = own_of(&p, groups, rounds);
        double same = groups ? exact_times.groups : exact_times.own;

        if (p.run->err.code)
            printf("blocks: %s\n", p.run->err.text);
        else if (time > 0)
            printf("%s%s: blocks of %d, %.4f of the cells, n=%d: %.3f ms, %.0f TFLOP/s; %.1f times "
                   "as fast as exact attention by the fastest, %.1f times by itself\n",
                   groups ? "" : "\n", groups ? "wgmma" : "own kernel", BLOCK,
                   p.cells / HEADS / LONGEST / LONGEST, LONGEST, 1e3 * time,
                   4 * SIZE * p.cells / time / 1e12, fastest / time, same / time);
    }
    problem_free(&p);
}

int main(int argc, char **argv)
{
    int       rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    Error     err = { 0 };
    Device   *device = device_open(&err);
    Threads  *threads = threads_new(threads_hardware());
    Times     times = { 0 };

    if (!device) {
        printf("bench-gpu: skipped: %s\n", err.text);
        return SKIPPED;
    }
    if (!(rounds >= 1 && rounds <= MOST_ROUNDS))
        rounds = ROUNDS;
    printf("%s, exact attention in bf16, %d heads of %d; median of %d; share: of bare cuDNN; over: "
           "the own kernel\n\n%7s  %12s %6s  %12s %5s  %12s %6s %5s  %12s %6s %5s %5s\n",
           device_info(device)->name, HEADS, SIZE, rounds, "n", "cuDNN bare", "TFLOP/s", "op",
           "share", "own kernel", "TFLOP/s", "share", "wgmma", "TFLOP/s", "share", "over");
    for (int64_t n = SHORTEST; n <= LONGEST; n *= 2)
        times = exact(device_ops(device, ARITHMETIC_BF16), threads, n, rounds);
    blocks(device_ops(device, ARITHMETIC_BF16), threads, times, rounds);
    printf("\nwgmma is meant for a share of 0.60 at n=%d and for blocks 5 times as fast as exact "
           "attention.\n", LONGEST);
    threads_free(threads);
    device_release(device);
    return 0;
}
