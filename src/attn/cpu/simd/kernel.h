/* attn/cpu/simd/kernel.h -- the inner loops of attention, one table per instruction set.
 *
 * Scores live in tiles of TILE_ROWS queries by TILE_KEYS keys, in base-2
 * logarithms (queries are scaled by scale * log2 e), so that softmax needs
 * only 2^x.  Keys come transposed in panels [d][TILE_KEYS] (kernel.c); values
 * are read where they lie.  All sizes are general; padded lanes hold nothing
 * that can reach a result.
 *
 * The loops are written once in kernel_body.h; kernel_avx512.c, kernel_avx2.c
 * and kernel_generic.c give them vectors.
 */
#ifndef ATTN_CPU_KERNEL_H
#define ATTN_CPU_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#define TILE_ROWS 6
#define TILE_KEYS 64
#define TURN_ROWS 8
#define CODE_BITS 64
#define PASS_ROWS 8
#define RECUR_TOKENS 2 /* of a recurrence at a time */
#define LANES 16 /* floats kept per row for a running maximum; padding of e */

/* c = alpha a b, or with `add` c += alpha a b, of small matrices whose factors are in the caches.
 *
 * Rows of a may belong to tokens, rows_each of them to one.  What lies above the diagonal of tokens
 * may then be left out, up to a tile: of a row of a, inner_each numbers of each later token, which
 * are 0; of c, cols_each columns of each later token.  0: all are taken. */
typedef struct SmallProduct {
    const float *a, *b;
    int64_t      lda, step; /* a[r][t] = a[r lda + t step] */
    int64_t      ldb, rows, cols, inner;
    float        alpha;
    bool         add;
    float       *c;
    int64_t      ldc;
    int64_t      rows_each, inner_each, cols_each;
} SmallProduct;

/* `rows` queries, scaled, take the same keys: max, sum and acc of each advance as by softmax and
 * mix_row. */
typedef struct KeyPass {
    int            rows; /* 1 .. PASS_ROWS */
    const float   *q;    /* row r at q + r ldq */
    const float   *k, *v;
    const int32_t *keys; /* [count] rows of k and v; NULL: the first `count` */
    int64_t        ldq, ldk, ldv, count, d, e;
    float         *max, *sum; /* of row r at r ldm */
    float         *acc;       /* of row r at r lda */
    int64_t        ldm, lda;
} KeyPass;

#define TIMES_DIGITS 63

/* Rows and TILE_KEYS keys in some lists: they meet in a list where their tags are equal and the
 * key's place is at most `before` before the row's and `after` after it. */
typedef struct Meeting {
    int64_t         lists, rows;
    const int32_t  *tag, *place;         /* [lists][ldk] of the keys; tag NULL: all alike */
    const int32_t  *own_tag, *own_place; /* [lists][ldr] of the rows */
    int64_t         ldk, ldr, before, after;
    int64_t         ring; /* number of places in a ring; 0: they are in a row */
    const uint64_t *keep; /* [rows] the keys that are looked at */
} Meeting;

typedef struct Kernel {
    const char *name; /* "avx512", "avx2", "generic" */
    /* s[r][0..64) = q[r] . key; cells whose bit in keep[r] is 0 become -inf (keep
     * NULL: all stay); top[r][LANES] is raised to the lanewise maximum.  Only the columns
     * from `from` (a multiple of LANES) to `to` are needed; the others are scores or -inf. */
    void (*score)(const float *q, int64_t ldq, const float *panel, int64_t d,
                  const uint64_t *keep, int from, int to, float *s, int64_t lds, float *top);
    /* As score, with about a third of its rounding error, and a tenth slower. */
    void (*score_fine)(const float *q, int64_t ldq, const float *panel, int64_t d,
                       const uint64_t *keep, int from, int to, float *s, int64_t lds, float *top);
    /* One step of the online softmax over `count` (a multiple of LANES) scores of
     * each row: s becomes 2^(s - max), max and sum advance, factor scales the earlier
     * results of the row.  top NULL: found from s. */
    void (*softmax)(float *s, int64_t lds, int rows, int64_t count, const float *top, float *max,
                    float *sum, float *factor);
    /* The whole softmax of `rows` rows of `keys` <= TILE_KEYS scores: s becomes 2^(s - max) / sum,
     * up to the next multiple of LANES.  Cells whose bit in keep[r] (NULL: all stay) is 0 become
     * 0; a row without any is 0, with max -inf and sum 0. */
    void (*shares)(float *s, int64_t lds, int64_t rows, int keys, const uint64_t *keep, float *max,
                   float *sum);
    /* y[i] = ln 2^max[i] sum[i], rounded once from double; -inf where max is -inf and sum 0, no
     * key; where max is -inf and sum NaN, NaN. */
    void (*log_sums)(const float *max, const float *sum, int64_t count, float *y);
    /* Joins with softmaxes of log-sum-exp lse[i], whose rows are out, those of other keys, whose
     * unscaled rows are acc: kept[i] out + added[i] acc is the row of all keys, lse[i] theirs.  No
     * other key: max -inf and sum 0. */
    void (*join)(const float *max, const float *sum, int64_t count, float *lse, float *kept,
                 float *added);
    /* acc[r][0..e) = factor[r] * acc[r] + sum_j w[r][j] v[j] for TILE_ROWS rows. */
    void (*mix)(const float *w, int64_t ldw, const float *v, int64_t ldv, int64_t keys, int64_t e,
                const float *factor, float *acc, int64_t lda);
    /* As mix, with w[j][r] in rows of TILE_KEYS: weights made by `columns`. */
    void (*mix_turned)(const float *w, const float *v, int64_t ldv, int64_t keys, int64_t e,
                       const float *factor, float *acc, int64_t lda);
    /* One step of the online softmax down the first columns (a multiple of LANES) of `rows`
     * rows s[j][TILE_KEYS]: as softmax, but sum holds only the sum of this step. */
    void (*columns)(float *s, int64_t rows, int columns, float *max, float *sum, float *factor);
    /* s[x] = q . k[keys[x]] */
    void (*dots)(const float *q, const float *k, int64_t ldk, const int32_t *keys, int64_t count,
                 int64_t d, float *s);
    /* acc = factor * acc + sum_x w[x] v[keys[x]] */
    void (*mix_row)(const float *w, const float *v, int64_t ldv, const int32_t *keys,
                    int64_t count, int64_t e, float factor, float *acc);
    /* Tokens of a recurrence, e a multiple of LANES: for each in turn state[f][e] += fk v, then
     * out = fq state.  v and out [tokens][e]. */
    void (*recur)(const float *const fq[], const float *const fk[], const float *v, int64_t tokens,
                  int64_t f, int64_t e, float *state, float *out);
    /* One token in double, for any e: state <- keep state + take fk v. */
    void (*recur64)(const double *fq, const double *fk, const double *v, double keep, double take,
                    int64_t f, int64_t e, double *state, double *out);
    /* x[i] = 2^(scale x[i] - shift); exactly 0 far below. */
    void (*exp2)(float *x, int64_t count, float scale, float shift);
    /* x[i] = 1 / (1 + 2^-(x[i] + shift)), count a multiple of LANES; returns the sum. */
    float (*logistic)(float *x, int64_t count, float shift);
    /* y[i] = max(x, 0) + alpha e^min(x, 0) + 1 - alpha, which needs no branch */
    void (*elu)(const float *x, int64_t count, float alpha, float *y);
    void (*scale)(const float *x, int64_t count, float factor, float *y);
    /* x <- top tanh(x / top), top above 0, to about 2e-7 of |x|; -inf stays. */
    void (*cap)(float *x, int64_t count, float top);
    /* x <- factor x + shift */
    void (*line)(float *x, int64_t count, float factor, float shift);
    /* s[r][j] += factor x[r - j], j < count: what depends on the distance of a row and a column. */
    void (*add_turned)(float *s, int64_t lds, int64_t rows, int64_t count, const float *x,
                       float factor);
    /* w = a x - b y, without a fused product: 0 where both are equal; returns how many are below
     * 0, and adds to *squares those of a x and of b y. */
    int64_t (*subtract)(const float *x, int64_t count, float a, const float *y, float b, float *w,
                        double *squares);
    /* The largest of sign x[i], NaN ignored; -inf for none. */
    float (*largest)(const float *x, int64_t count, float sign);
    /* The sum of squares, in double. */
    double (*squares)(const float *x, int64_t count);
    /* The sum of squares in float, for bounds. */
    float (*squares_near)(const float *x, int64_t count);
    /* to[r]: that of row r. */
    void (*rows_squares_near)(const float *x, int64_t ldx, int64_t rows, int64_t d, float *to);
    /* The largest of those of `rows` rows; NaN stays. */
    float (*most_squares)(const float *x, int64_t ldx, int64_t rows, int64_t d);
    /* sum += x, and the sum of x z, in double */
    void (*fold)(const float *x, int64_t count, double *sum);
    void (*fold_scaled)(const float *x, int64_t count, double factor, double *sum);
    /* x <- factor x, x <- x / divisor, and sum += factor max(x, 0), in double */
    void (*scale64)(double *x, int64_t count, double factor);
    void (*over64)(double *x, int64_t count, double divisor);
    void (*fold_positive64)(const double *x, int64_t count, double factor, double *sum);
    /* x <- x y, in double: x in double, and x in float rounded once */
    void (*times64)(double *x, const double *y, int64_t count);
    void (*fade)(float *x, const double *y, int64_t count);
    /* The largest of x (NaN ignored; -inf for none); x <- e^(x - shift), which returns the sum; and
     * x <- a x - b y, which returns how many are below 0. */
    double (*largest64)(const double *x, int64_t count);
    double (*soften64)(double *x, int64_t count, double shift);
    int64_t (*subtract64)(double *x, int64_t count, double a, const double *y, double b);
    /* The first place in [at, count) whose x is not at most `limit` (NaN is not); count: none. */
    int64_t (*next_above64)(const double *x, int64_t at, int64_t count, double limit);
    double (*dot_wide)(const float *x, const double *z, int64_t count);
    /* Of neighbouring rows of floats, in double: s[x] = q . k[x], and acc += sum_x w[x] v[x]. */
    void (*dots_wide)(const double *q, const float *k, int64_t ldk, int64_t count, int64_t d,
                      double *s);
    void (*mix_wide)(const double *w, const float *v, int64_t ldv, int64_t count, int64_t e,
                     double *acc);
    double (*dot_double)(const double *x, const double *z, int64_t count);
    /* y = factor (more + the sum of `rows` rows) - own, in double; more and own may be NULL.
     * next: a row to prefetch. */
    void (*mean_rows)(const float *const *row, int64_t rows, const double *more, double factor,
                      const float *own, const float *next, int64_t count, float *y);
    /* The sums of x - shift and of its square, and y = (x - shift) factor, in double. */
    void (*moments)(const float *x, int64_t count, double shift, double *sum, double *squares);
    void (*centre)(const float *x, int64_t count, double shift, double factor, float *y);
    /* Bit j of bits[r]: x[j] == own[r], x[j] <= own[r]; TILE_KEYS entries. */
    void (*equal)(const int32_t *x, const int32_t *own, int64_t rows, uint64_t *bits);
    void (*at_most)(const int32_t *x, const int32_t *own, int64_t rows, uint64_t *bits);
    /* Adds to how often rows meet keys: bit j of times[r][x] is digit x of row r's number for key
     * j, in binary. */
    void (*meet)(const Meeting *m, uint64_t times[][TIMES_DIGITS]);
    /* Bit j: s[j] >= limit[j]; TILE_KEYS entries. */
    uint64_t (*at_least)(const float *s, const float *limit);
    /* Bit j of bits[r]: s[r][j] >= limit[r], of rows of TILE_KEYS entries. */
    void (*rows_reach)(const float *s, int64_t rows, const float *limit, uint64_t *bits);
    /* How many entries are at least `limit`; count a multiple of LANES. */
    int64_t (*reach)(const float *x, int64_t count, float limit);
    /* A number that at least `takes` <= LANES entries reach: the least of the largest of so many
     * classes of them.  count a multiple of LANES, no NaN. */
    float (*class_bound)(const float *x, int64_t count, int64_t takes);
    /* limit[c]: a number that at least `takes` <= rows entries of column c of s [rows][TILE_KEYS]
     * reach, and hardly more after some steps of bisection.  Finite entries. */
    void (*column_bounds)(const float *s, int64_t rows, int64_t takes, int steps, float *limit);
    /* sum[0..TILE_KEYS) = sum over r of factor[r] max(0, s[r][0..TILE_KEYS)). */
    void (*fold_heads)(const float *s, int64_t rows, const float *factor, float *sum);
    /* at[r]: the place of the largest entry of row r of s where no other is at most margin[r] below
     * it; else, and where margin[r] is NaN, -1.  top [rows][LANES]: lanewise largest entries, as
     * score leaves them; NULL: sizes |s| are compared.  count a multiple of TILE_KEYS, no NaN. */
    void (*peaks)(const float *s, int64_t lds, int64_t rows, int64_t count, const float *top,
                  const float *margin, int32_t *at);
    /* index[i]: the centre that differs from codes[i] in the fewest bits; ties: the lowest. */
    void (*nearest_codes)(const int64_t *codes, int64_t count, const int64_t *centres,
                          int64_t of, int32_t *index);
    /* ones[cluster[i]][t] += bit t of codes[i]; ones [.][CODE_BITS]. */
    void (*bit_sums)(const int64_t *codes, const int32_t *cluster, int64_t count, int32_t *ones);
    /* y[r][0..cols) = sum_t x[r][t] w[t], t in order, in double; cols a multiple of
     * LANES.  w lies in strips of LANES columns, [cols / LANES][d][LANES]: rows a power
     * of two apart would conflict in the cache.  Products of floats are exact in double,
     * so every kernel and every row gives the same bits. */
    void (*dots64)(const float *x, int64_t ldx, int64_t rows, int64_t d, const double *w,
                   int64_t cols, double *y, int64_t ldy);
    /* As dots64, with x in double, each sum beginning with start[column] (NULL: 0). */
    void (*product64)(const double *x, int64_t ldx, int64_t rows, int64_t d, const double *start,
                      const double *w, int64_t cols, double *y, int64_t ldy);
    /* As product64 of one strip of w, but a product may be added unrounded: the same bits where the
     * products are exact, as those of floats are. */
    void (*fused64)(const double *x, int64_t ldx, int64_t rows, int64_t d, const double *w,
                    double *y, int64_t ldy);
    /* sums[j] = q . column j of a panel, t in order, in double: the same bits as fused64.  The
     * first `columns` of them; others may be overwritten. */
    void (*panel64)(const float *q, const float *panel, int64_t d, int64_t columns, double *sums);
    /* x <- GELU(x + bias), its tanh form; bias NULL: none. */
    void (*gelu)(float *x, const float *bias, int64_t count);
    /* y = (x - mean) / sqrt(variance + eps) * gain + bias; gain and bias may be NULL. */
    void (*standardise)(const float *x, int64_t count, double eps, const float *gain,
                        const float *bias, float *y);
    /* x <- e^x, in double, to two units in the last place. */
    void (*exp64)(double *x, int64_t count);
    /* x <- 1 / (1 + e^-x); x <- max(x, 0) + ln(1 + e^-|beta x|) / beta: in double, to some units in
     * the last place. */
    void (*sigmoid64)(double *x, int64_t count);
    void (*softplus64)(double *x, int64_t count, double beta);
    /* x <- e^x / divisor, computed in double and rounded once. */
    void (*exp_over)(float *x, int64_t count, double divisor);
    /* ln of the sum of e^x, without entries 700 below the largest; none: -inf. */
    double (*log_sum_exp64)(const double *x, int64_t count);
    /* The sum of p ln(p / q) where p is above 0; infinite where q is 0.  Neither is negative. */
    double (*divergence)(const float *p, const float *q, int64_t count);
    /* size times sin and cos of y (sines or cosines may be y), in double, to two units in the
     * last place. */
    void (*waves)(const double *y, int64_t count, double size, double *sines, double *cosines);
    /* As waves of factor y, in float, to about 1e-7 of size. */
    void (*float_waves)(const float *y, int64_t count, float factor, float size, float *sines,
                        float *cosines);
    void (*pass)(const KeyPass *p);
    /* s[x] = q . k[x] of neighbouring keys; returns the largest sum of squares of up to four of
     * them, NaN if any is (then not all of s). */
    float (*dots_squares)(const float *q, const float *k, int64_t ldk, int64_t count, int64_t d,
                          float *s);
    /* A token's gates of channels: product <- product gate in double, near = q product and
     * far = k / product, both by the product rounded to float. */
    void (*gate_rows)(const double *gate, int64_t count, double *product, const float *q,
                      float *near, const float *k, float *far);
    /* Columns 0..TURN_ROWS of a panel from so many rows, in whole vectors; returns how many of the
     * d numbers of a row it took.  NULL: rows are turned four at a time. */
    int64_t (*turn)(const float *const row[TURN_ROWS], int64_t d, float *panel);
    void (*product)(const SmallProduct *p);
} Kernel;

/* Kernels this CPU can run, best first; NULL past the end.  ATTNSCOPE_ISA=avx2 or generic leaves
 * out the better ones, to measure these. */
const Kernel *kernel_at(int index);
/* The value of ATTNSCOPE_ISA if no kernel has this name; else NULL. */
const char *kernel_unknown(void);

/* How this processor reads rows that lie one below the other soonest (docs/performance-log.md).
 * Found by the first kernel_at; results are the same. */
typedef struct Fetching {
    bool runs; /* long runs of dots and mix_row are fetched, too */
    bool near; /* with AVX-512: the line that is read is prefetched, none beyond it */
} Fetching;
extern Fetching kernel_fetching;

extern const Kernel kernel_generic;
#if defined(__x86_64__)
extern const Kernel kernel_avx2, kernel_avx512;
/* Kernel.turn of both. */
int64_t kernel_avx2_turn(const float *const row[TURN_ROWS], int64_t d, float *panel);
#endif

/* Panels [d][TILE_KEYS] hold up to TILE_KEYS rows of a [.,d] matrix as columns; missing rows
 * are zero. */

/* count <= TILE_KEYS rows at k, k + ld, ... */
void pack_panel(const float *k, int64_t ld, int64_t count, int64_t d, float *panel);
/* Rows index[0..count) of k. */
void pack_rows(const float *k, int64_t ld, const int32_t *index, int64_t count, int64_t d,
               float *panel);

/* UNROLL stands before a loop with a constant bound, so that arrays of vectors become
 * registers; gcc and clang have different pragmas. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* Scores this far below the row's maximum have weight 0: 2^-125 is the last
 * power whose product with 2^f is always a normal number. */
#define EXP2_LOWEST (-125.0f)

#endif
