/* attn/cpu/cpu.h -- what the CPU's ops share: scratch, cancellation, threads.
 *
 * Outputs are allocated before an op is called.  Scratch comes from the run's
 * arena between arena_mark and arena_release, all of it before threads start.
 */
#ifndef ATTN_CPU_CPU_H
#define ATTN_CPU_CPU_H

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/error.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "attn/cpu/simd/kernel.h"
#include "attn/run.h"

#define LOG2_E 1.4426950408889634074
#define LN_2 0.69314718055994530942
#define LINE 16 /* floats of a line of the caches */

/* For worker threads, between tiles and rows; run_failed() is for the thread of the run. */
static inline bool cpu_cancelled(const Run *r)
{
    return r->spec.cancel && atomic_load_explicit(r->spec.cancel, memory_order_relaxed);
}

static inline int64_t round_up_to(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

static inline int64_t ceil_div(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

/* The larger of both; NaN stays. */
static inline double larger_or_nan(double most, double x)
{
    return x <= most || isnan(most) ? most : x;
}

/* For a function that only prefetches: gcc leaves out calls of one that is not inline, since it has
 * no effect. */
#define PREFETCHES inline __attribute__((always_inline))

/* Prefetches x[0..count).  The hardware does not predict reads that alternate between several
 * streams, or that pause for arithmetic. */
static PREFETCHES void cpu_fetch(const float *x, int64_t count)
{
    for (int64_t c = 0; c < count; c += LANES)
        __builtin_prefetch(x + c);
}

/* Prefetches data that is read once, without evicting data that is read again. */
static PREFETCHES void cpu_fetch_once(const void *x, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += LANES * (int64_t)sizeof(float))
        __builtin_prefetch((const char *)x + at, 0, 0);
}

/* y = x, past the caches: y is not read again soon, so its lines need not be fetched. */
static inline void cpu_store_once(const float *x, int64_t count, float *y)
{
    int64_t at = 0;

#if defined(__SSE__)
    for (; (uintptr_t)y % 64 == 0 && at + LINE <= count; at += LINE)
        for (int64_t c = at; c < at + LINE; c += 4)
            _mm_stream_ps(y + c, _mm_loadu_ps(x + c));
#endif
    memcpy(y + at, x + at, (size_t)(count - at) * sizeof(*y));
}

/* After the last cpu_store_once, before other threads read. */
static inline void cpu_stores_done(void)
{
#if defined(__SSE__)
    _mm_sfence();
#endif
}

/* The threads for work on so many numbers; NULL (this thread alone) where the work is done before
 * other threads wake up. */
static inline Threads *cpu_threads_for(const Run *r, int64_t numbers)
{
    return numbers < 32768 ? NULL : r->threads;
}

/* count * size bytes of the arena, or NULL with the run failed. */
void *cpu_scratch(Run *r, int64_t count, int64_t size);

/* The entries of ops_cpu(). */
void cpu_attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                double *cells);
void cpu_pattern_means(Run *r, const PatternMeans *in, const Pattern *pattern, Tensor *y,
                       double *cells);
void cpu_few_attend(Run *r, const FewAttend *in, FewResult *out);
void cpu_group_attend(Run *r, const GroupAttend *g, GroupResult *out);
void cpu_row_attend(Run *r, const RowAttend *in, RowResult *out);
void cpu_gemm(Run *r, const Tensor *a, bool ta, const Tensor *b, bool tb, double alpha,
              double beta, Tensor *c);
void cpu_gemm_long(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c);
void cpu_softmax(Run *r, const SoftmaxRows *in);
/* x <- exp(x - max x); returns their sum. */
double cpu_exp_row(const Kernel *kernel, float *x, int64_t count);
void cpu_pinv(Run *r, const Tensor *a, double rcond, Tensor *y);
void cpu_logit_attend(Run *r, const LogitAttend *in, LogitResult *out);
void cpu_dots64(Run *r, const Tensor *x, const Tensor *w, Tensor *y);
void cpu_product64(Run *r, const Tensor *x, const Tensor *w, const float *bias, Tensor *y);
void cpu_standardised_product(Run *r, const Standardised *in, const Tensor *w, Tensor *y);
double cpu_largest_norm(Run *r, const Tensor *x);
void cpu_gelu(Run *r, Tensor *x, const float *bias);
void cpu_argmax(Run *r, const Tensor *x, bool with_negative, Tensor *index);
void cpu_top_k(Run *r, const Tensor *x, int64_t k, Tensor *index);
void cpu_nearest(Run *r, const Nearest *in, Tensor *index);
void cpu_best_rows(Run *r, const ChoiceRows *x, const Tensor *y, int64_t k, Tensor *index);
void cpu_codes(Run *r, const Tensor *x, const Tensor *planes, bool bias, Tensor *code);
void cpu_member_sums(Run *r, const Tensor *x, const Tensor *index, bool unit, Tensor *sum);
void cpu_nearest_codes(Run *r, const Tensor *codes, const Tensor *centres, Tensor *cluster);
void cpu_bit_sums(Run *r, const Tensor *codes, const Tensor *cluster, Tensor *ones);
/* Of x, or of [x ; -x]; ties: the lowest. */
int32_t cpu_argmax_row(const double *x, int64_t count, bool negative);
/* An integer that orders as x does: -0 equals 0, NaN lies beyond infinity. */
int64_t cpu_order_key(double x);
/* The number that has this key. */
double cpu_order_number(int64_t key);
/* The key at place k (0-based) in decreasing order; reorders keys. */
int64_t cpu_kth_largest(int64_t *keys, int64_t count, int64_t k);
/* The places of the k largest of keys[n], increasing, ties to the lower place; work [n]. */
void cpu_largest_places(const int64_t *keys, int64_t *work, int64_t n, int64_t k, int32_t *out);
/* The fewest of the largest of e[count] whose sum is at least `wanted`; order and work: room for
 * count. */
int64_t cpu_fewest(const double *e, int64_t count, double wanted, int64_t *order, double *work);
void cpu_key_usage(Run *r, const Tensor *q, const Tensor *k, double scale, bool causal,
                   Tensor *usage);
void cpu_sort(Run *r, const Tensor *key, Tensor *order);
void cpu_normalise(Run *r, const Tensor *x, int kind, double eps, Tensor *y);
void cpu_features(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                  Tensor *y);
void cpu_features_top(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map,
                      Tensor *top);
void cpu_linear_attend(Run *r, const LinearAttend *in, LinearResult *out);
/* Rows of features in float, made where they are read. */
#define FEATURE_ROWS 128 /* that are made at once */
typedef struct FeatureRows {
    const Kernel     *kernel;
    const Tensor     *x, *w;
    const FeatureMap *map;
    const double     *top; /* [h top_step]: c of head t at t top_step; NULL: of each row, or none */
    int64_t           top_step;
    int64_t           h, d, m, f; /* heads, numbers of a row, directions, features */
    float            *turned;     /* [1 or h][d][m] directions as columns, or NULL */
} FeatureRows;
/* Without `top`, which the caller may set.  False: the run has failed. */
bool cpu_features_begin(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map,
                        int64_t h, int64_t f, FeatureRows *rows);
/* y [rows][f] */
void cpu_features_make(const FeatureRows *f, int64_t head, int64_t first, int64_t rows, float *y);
/* The same in two steps, where c is not known before: u of some rows, and the largest of them
 * (+-u); then exp(u - s - c) M^-1/2, to which cpu_features_constant is to be added. */
double cpu_features_project(const FeatureRows *f, int64_t head, int64_t first, int64_t rows,
                            float *y);
void cpu_features_under(const FeatureRows *f, int64_t head, int64_t first, int64_t rows, double c,
                        float *y);
double cpu_features_constant(const FeatureRows *f);
/* A part of cpu_linear_attend: all in double. */
void cpu_linear_attend_wide(Run *r, const LinearAttend *in, LinearResult *out);
/* The divisor of a row; features_sum: of the query, for DENOMINATOR_ADD_FEATURES. */
double cpu_divisor(const LinearAttend *in, double z, double features_sum);
void cpu_sinkhorn(Run *r, Tensor *log_p, const Tensor *allowed, bool columns);
bool cpu_balance_powers(Run *r, Balancing *b);
void cpu_balance(Run *r, Balancing *b);
void cpu_balance_shares(Run *r, const Balancing *b, Tensor *p);
void cpu_mix_blocks(Run *r, const Tensor *perm, const Tensor *x, int64_t b, Tensor *y);
void cpu_entries(Run *r, const Entries *in);
void cpu_standardise64(Run *r, const Tensor *x, double eps, const Tensor *gain,
                       const Tensor *bias, Tensor *y);
void cpu_tap_sums(Run *r, const TapSums *in, Tensor *y);
void cpu_turn_pairs(Run *r, const TurnPairs *in, Tensor *y);
void cpu_best_columns(Run *r, const BestColumns *in, BestResult *out);
void cpu_pair_dots(Run *r, const Tensor *x, const Tensor *y, const Tensor *index, Tensor *dots);
void cpu_rounded_attend(Run *r, const RoundedAttend *in);
void cpu_tally(Run *r, const Tensor *index, Tensor *count);
void cpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y);
void cpu_unit_rows(Run *r, const Tensor *x, double eps, Tensor *y);
void cpu_gather(Run *r, const Tensor *x, const Tensor *index, Tensor *y);
void cpu_scatter(Run *r, const Tensor *x, const Tensor *index, Tensor *y);
void cpu_merge_rows(Run *r, const MergeRows *in);
void cpu_sum_lists(Run *r, const SumLists *in, Tensor *y);
void cpu_pool_windows(Run *r, const PoolWindows *in, Tensor *y);
void cpu_lambda_content(Run *r, const struct Lambdas *l);
void cpu_lambda_apply(Run *r, const struct Lambdas *l, Tensor *out);
void cpu_state_attend(Run *r, const struct StateAttend *in, Tensor *out);
/* Chunks of the other rules; of all rules in double. */
void cpu_state_delta(Run *r, const struct StateAttend *in, Tensor *out);
void cpu_state_delta_wide(Run *r, const struct StateAttend *in, Tensor *out);
/* Chunks of STATE_ADD with levels; _wide also token by token. */
void cpu_state_levels(Run *r, const struct StateAttend *in, Tensor *out);
void cpu_state_levels_wide(Run *r, const struct StateAttend *in, Tensor *out);
bool cpu_ceilings(const Ops *ops, Threads *threads, Ceilings *out, Error *err);
/* FLOPs a second of fused multiply-adds, measured once; NaN: no such kernel. */
double cpu_peak(Threads *threads);

/* cpu_attend and cpu_group_attend on a given kernel, for tests and benchmarks. */
void cpu_attend_on(const Kernel *kernel, Run *r, const AttendInput *in, const Pattern *pattern,
                   AttendResult *out, double *cells);
void cpu_group_attend_on(const Kernel *kernel, Run *r, const GroupAttend *g, GroupResult *out);
/* The same for groups of at most `most` queries without rules, penalty and visits; false: no
 * memory. */
bool cpu_group_turned(const Kernel *kernel, Run *r, const GroupAttend *g, GroupResult *out,
                      int64_t most);

typedef struct Matrix {
    const float *data;
    int64_t      ld;
    bool         turned; /* read transposed */
} Matrix;
/* Before threads_run with products: OpenBLAS starts no threads of its own, and has room for its
 * buffers (attn/cpu/blas.h).  False: the run has failed. */
bool cpu_blas(Run *r);
/* c = alpha a b + beta c on this thread, row-major; beta 0 does not read c. */
void cpu_sgemm(Matrix a, Matrix b, int64_t rows, int64_t cols, int64_t inner, float alpha,
               float beta, float *c, int64_t ldc);

/* p on this thread: by kernels, or by OpenBLAS where these are no faster.  Also what p leaves out
 * may then be read and written, so what lies above the diagonal of a is 0. */
void cpu_product(const SmallProduct *p);

typedef struct WideMatrix {
    const double *data;
    int64_t       ld;
    bool          turned;
} WideMatrix;
void cpu_dgemm(WideMatrix a, WideMatrix b, int64_t rows, int64_t cols, int64_t inner,
               double alpha, double beta, double *c, int64_t ldc);

/* Singular values and orthonormal bases by LAPACK, in double.
 *
 * Matrices lie by columns, one after the other, and are overwritten.  A failure is
 * out of memory, a value that is not finite, or an iteration that does not converge.
 */

/* The min(rows, cols) singular values of a, largest first (divide and conquer, each right
 * to about 1e-15 of the largest). */
bool svd_values(double *a, int64_t rows, int64_t cols, double *values, Error *err);
/* The columns of a (rows >= cols) become an orthonormal basis of their span. */
bool svd_orthonormal(double *a, int64_t rows, int64_t cols, Error *err);

#endif
