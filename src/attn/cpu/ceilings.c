/* ceilings.c -- the measured ceilings of this CPU; see attn/ops/ops.h.
 *
 * The peak is multiply-adds on the widest vectors that the kernels use (fused, but for plain C on
 * x86), in CHAINS independent sums, all in registers.  Every thread computes matrix products
 * of its own, as everywhere in the program.  The stream is the triad a = b + s c
 * over arrays larger than the caches; its traffic counts as three arrays, though a
 * write may cause a read first.
 */
#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define ROUNDS 3         /* the fastest counts: a ceiling is a maximum */
#define PEAK_ROUNDS 12   /* milliseconds each; new threads may share a CPU in the first rounds */
#define GEMM_SIZE 1024
#define STREAM_FLOATS (INT64_C(1) << 24) /* 64 MiB an array */
#define MOST_THREADS 256

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the peak --------------------------------------------------------------- */

#define PEAK_STEPS 2000000L
#define CHAINS 12 /* independent sums: enough to hide the latency */

typedef double (*PeakFn)(float *sink); /* flops done */

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double peak_avx512(float *sink)
{
    __m512 x[CHAINS], m = _mm512_set1_ps(0.9999999f), a = _mm512_set1_ps(1e-8f);

#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; c++)
        x[c] = _mm512_set1_ps(1.0f + (float)c * 1e-6f);
    for (long s = 0; s < PEAK_STEPS; s++) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            x[c] = _mm512_fmadd_ps(x[c], m, a);
        __asm__ volatile("" ::: "memory");
    }
#pragma GCC unroll 12
    for (int c = 1; c < CHAINS; c++)
        x[0] = _mm512_add_ps(x[0], x[c]);
    *sink += _mm512_reduce_add_ps(x[0]);
    return 2.0 * 16 * CHAINS * PEAK_STEPS;
}

__attribute__((target("avx2,fma"))) static double peak_avx2(float *sink)
{
    __m256 x[CHAINS], m = _mm256_set1_ps(0.9999999f), a = _mm256_set1_ps(1e-8f);
    float  out[8];

#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; c++)
        x[c] = _mm256_set1_ps(1.0f + (float)c * 1e-6f);
    for (long s = 0; s < PEAK_STEPS; s++) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            x[c] = _mm256_fmadd_ps(x[c], m, a);
        __asm__ volatile("" ::: "memory");
    }
#pragma GCC unroll 12
    for (int c = 1; c < CHAINS; c++)
        x[0] = _mm256_add_ps(x[0], x[c]);
    _mm256_storeu_ps(out, x[0]);
    *sink += out[0];
    return 2.0 * 8 * CHAINS * PEAK_STEPS;
}
#endif

typedef float Vec4 __attribute__((vector_size(16)));

/* Fused where every processor of the architecture does so: OpenBLAS relies on it, too. */
static inline Vec4 multiply_add(Vec4 x, Vec4 m, Vec4 a)
{
#if defined(__aarch64__)
    return (Vec4)vfmaq_f32((float32x4_t)a, (float32x4_t)x, (float32x4_t)m);
#else
    return x * m + a;
#endif
}

static double peak_generic(float *sink)
{
    Vec4 x[CHAINS], m = { 0.9999999f, 0.9999999f, 0.9999999f, 0.9999999f };
    Vec4 a = { 1e-8f, 1e-8f, 1e-8f, 1e-8f };

#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; c++)
        x[c] = m + (float)c * a;
    for (long s = 0; s < PEAK_STEPS; s++) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            x[c] = multiply_add(x[c], m, a);
        __asm__ volatile("" ::: "memory");
    }
#pragma GCC unroll 12
    for (int c = 1; c < CHAINS; c++)
        x[0] += x[c];
    *sink += x[0][0];
    return 2.0 * 4 * CHAINS * PEAK_STEPS;
}

static PeakFn peak_of_kernel(void)
{
    const char *name = kernel_at(0)->name;

#if defined(__x86_64__)
    if (strcmp(name, "avx512") == 0)
        return peak_avx512;
    if (strcmp(name, "avx2") == 0)
        return peak_avx2;
#endif
    return strcmp(name, "generic") == 0 ? peak_generic : NULL;
}

typedef struct PeakJob {
    PeakFn fn;
    double flops[MOST_THREADS];
} PeakJob;

static void peak_item(void *context, int64_t item, int worker)
{
    PeakJob *job = context;
    float    sink = 0;

    (void)worker;
    job->flops[item] = job->fn(&sink);
    if (isnan(sink)) /* never, but the compiler must keep the sums */
        job->flops[item] = 0;
}

/* One item a thread of the pool, at most MOST_THREADS. */
static int items_of(const Threads *threads)
{
    int count = threads_count(threads);

    return count < MOST_THREADS ? count : MOST_THREADS;
}

double cpu_peak(Threads *threads)
{
    PeakJob job = { .fn = peak_of_kernel() };
    double  start = now(), flops = 0;

    if (!job.fn)
        return (double)NAN;
    threads_run(threads, items_of(threads), peak_item, &job);
    start = now() - start;
    for (int x = 0; x < items_of(threads); x++)
        flops += job.flops[x];
    return flops / start;
}

/* ---- matrices and memory ------------------------------------------------------ */

typedef struct Work {
    float  *a, *b, *c;
    int64_t each; /* floats of each array for one thread */
} Work;

static void ceiling_item(void *context, int64_t item, int worker)
{
    const Work *w = context;
    int64_t     at = item * w->each;
    int         n = GEMM_SIZE;

    (void)worker;
    blas_enter();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, w->a + at, n, w->b + at, n,
                0, w->c + at, n);
    blas_leave();
}

static void triad_item(void *context, int64_t item, int worker)
{
    const Work *w = context;
    float      *a = w->a + item * w->each;
    const float *b = w->b + item * w->each, *c = w->c + item * w->each;

    (void)worker;
    for (int64_t i = 0; i < w->each; i++)
        a[i] = b[i] + 0.5f * c[i];
}

static double best_seconds(Threads *threads, ThreadsFn fn, Work *w)
{
    double best = (double)INFINITY;

    for (int round = 0; round <= ROUNDS; round++) { /* round 0 touches the memory */
        double start = now();

        threads_run(threads, items_of(threads), fn, w);
        start = now() - start;
        if (round && start < best)
            best = start;
    }
    return best;
}

static bool work_alloc(Work *w, int64_t each, int count)
{
    size_t bytes = (size_t)(each * count) * sizeof(float);

    *w = (Work){ .each = each, .a = malloc(bytes), .b = malloc(bytes), .c = malloc(bytes) };
    for (int64_t i = 0; w->a && w->b && w->c && i < each * count; i++)
        w->a[i] = w->b[i] = w->c[i] = 1.0f + (float)(i % 97) * 0.01f;
    return w->a && w->b && w->c;
}

static void work_free(Work *w)
{
    free(w->a);
    free(w->b);
    free(w->c);
}

static bool no_arrays(Error *err)
{
    return error_set(err, ERR_NOMEM, "not enough memory to measure this machine's ceilings");
}

bool cpu_ceilings(const Ops *ops, Threads *threads, Ceilings *out, Error *err)
{
    int    count = items_of(threads);
    double n = GEMM_SIZE;
    Work   w;
    bool   ok;

    (void)ops;
    *out = (Ceilings){ .tensor = (double)NAN };
    if (!blas_ready(count, err))
        return false;
    for (int round = 0; round < PEAK_ROUNDS; round++)
        out->peak = fmax(out->peak, cpu_peak(threads));
    ok = work_alloc(&w, (int64_t)GEMM_SIZE * GEMM_SIZE, count);
    if (ok)
        out->gemm = count * 2 * n * n * n / best_seconds(threads, ceiling_item, &w);
    work_free(&w);
    ok = ok && work_alloc(&w, STREAM_FLOATS / count, count);
    if (!ok)
        return no_arrays(err);
    out->stream = 3 * (double)(w.each * count) * sizeof(float) /
                  best_seconds(threads, triad_item, &w);
    work_free(&w);
    return true;
}
