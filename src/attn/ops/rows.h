/* attn/ops/rows.h -- operations on entries, on rows by themselves and on lists of rows; part of
 * ops.h.
 *
 * A mechanism never loops over the entries of a tensor itself, because a loop runs on the host
 * wherever the tensor is.  Unless stated otherwise these operations charge no FLOPs: callers do.
 */
#ifndef ATTN_OPS_ROWS_H
#define ATTN_OPS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"

/* Numbers of a narrower format, emulated in double.
 *
 * A format is (p, emin, emax): p significand bits with the hidden one, the smallest normal
 * exponent, and the exponent from which on a number is infinite.  Rounding is to nearest,
 * ties to even, at
 *
 *     ulp = 2^(max(e, emin) - (p - 1)),   2^e <= |a| < 2^(e+1)
 *
 * so subnormals are rounded at the spacing of the smallest normal numbers, and results of
 * magnitude >= 2^emax are infinite.  NaN stays NaN, zeros keep their sign.
 *
 * Why double suffices: a sum, product or quotient of two numbers of p bits, rounded to
 * 53 >= 2p + 2 bits first, rounds to p bits as the exact result does.
 */

typedef enum PrecisionFormat {
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISION_TF32,
    PRECISION_FLOAT32,
    PRECISION_FLOAT64,
    PRECISION_COUNT
} PrecisionFormat;

typedef struct Precision {
    const char *name;  /* "bf16" */
    int         bits;  /* of the significand, the hidden one included */
    int         emin;  /* exponent of the smallest normal number */
    int         emax;  /* 2^emax and above: infinite */
    double      least, limit; /* 2^emin, 2^emax */
    int         bytes; /* of a number in memory */
} Precision;

/* The names in the order of PrecisionFormat, NULL-terminated: choices of a parameter. */
extern const char *const precision_names[];

const Precision *precision_of(PrecisionFormat format);

double precision_round(const Precision *p, double a);

/* Distance to the next number of the format at magnitude |a|; of 0 and subnormals the
 * smallest subnormal. */
double precision_ulp(const Precision *p, double a);

/* Half accumulation: sum over ascending c of x[c x_step] y[c y_step], product and running
 * sum both rounded at each step, never fused. */
double precision_dot(const Precision *p, int64_t count, const double *x, int64_t x_step,
                     const double *y, int64_t y_step);
/* Half accumulation of a plain sum. */
double precision_sum(const Precision *p, int64_t count, const double *x);

typedef struct Run Run;

/* ---- entries -------------------------------------------------------------------- */

typedef enum EntryKind {
    ENTRY_CAST,
    ENTRY_EXP,
    ENTRY_DIVIDE,    /* x / by */
    ENTRY_SCALE,     /* by x */
    ENTRY_SHIFT,     /* x + by */
    ENTRY_FILL,      /* by, without an x */
    ENTRY_SUM,       /* x + by z */
    ENTRY_PRODUCT,   /* by x z */
    ENTRY_QUOTIENT,  /* x / z */
    ENTRY_GATE,      /* x / (1 + e^-z) */
    ENTRY_WHERE,     /* x where z is not 0; elsewhere y stays */
    ENTRY_LEAST,     /* min(x, by); NaN stays */
    ENTRY_MOST,      /* max(x, by); NaN stays */
    ENTRY_RINT,      /* to the nearest whole number, ties to even */
    ENTRY_RELU,      /* max(x, 0); NaN stays */
    ENTRY_GELU_TANH, /* in its tanh form */
    ENTRY_GELU_ERF,
    ENTRY_SIGMOID,
    ENTRY_ELU,       /* x + 1, or e^x where x <= 0 */
    ENTRY_SOFTPLUS,  /* ln(1 + e^(by x)) / by */
    ENTRY_ROUND,     /* to the nearest number of the PrecisionFormat `by` */
} EntryKind;
/* One step of several: as kind, by and z of Entries, of the result so far. */
typedef struct EntryStep {
    EntryKind kind;
    double    by;
    Tensor    z;
} EntryStep;
/* y of x and z, entry by entry, in double and rounded at the end; f32, f64 or i32 each, of rank
 * 3 at most and with any strides.  An axis of x or z with extent 1 repeats, and heads are shared
 * by groups.  y may be x or z, entry for entry. */
typedef struct Entries {
    Tensor    x, z;
    EntryKind kind;
    double    by;
    Tensor    y;
    const EntryStep *more; /* then these, of the result so far; only where Ops.joins_entries */
    int              more_count;
} Entries;
void op_entries(Run *r, Tensor x, EntryKind kind, double by, Tensor y);
void op_entries_of(Run *r, Tensor x, Tensor z, EntryKind kind, double by, Tensor y);
/* y of x by steps (not ENTRY_WHERE) one after the other, in double, rounded once at the end; one
 * pass where the back end can.  y f64 may be x, and no z. */
#define ENTRY_STEPS 5 /* at most */
void op_entries_steps(Run *r, Tensor x, const EntryStep *steps, int count, Tensor y);

/* ---- rows by themselves ----------------------------------------------------------- */

/* Softmax over the last axis of x f32 or f64, in place.  Overhead 4 per element. */
void op_softmax(Run *r, Tensor x);
typedef struct SoftmaxRows {
    Tensor  x;      /* f32 or f64 [h,n,m], in place; its heads may lie further apart */
    bool    causal; /* row i has entries up to i + offset; later ones become 0 */
    int64_t offset;
    Tensor  lse;    /* f64 [h,n], heads likewise: the rows' log-sum-exp; or absent */
} SoftmaxRows;
void op_softmax_rows(Run *r, const SoftmaxRows *in);

/* (x - mean) / sqrt(variance + eps) * gain + bias, in double: a row is [a,c] of x f32 or f64
 * [rows,a,c] with any strides; gain, bias f32 [c] or [a,c], or absent; y f32 or f64 of x's shape,
 * also with any strides, or x itself. */
void op_standardise64(Run *r, Tensor x, double eps, Tensor gain, Tensor bias, Tensor y);

typedef enum NormaliseKind {
    NORMALISE_NONE,
    NORMALISE_RMS,   /* x / sqrt(mean(x^2) + eps) */
    NORMALISE_L2,    /* x / max(|x|, eps) */
    NORMALISE_LAYER, /* (x - mean) / sqrt(var + eps), population variance */
} NormaliseKind;
/* Rows of the last axis; statistics in double.  Overhead 5 per element. */
Tensor op_normalise(Run *r, Tensor x, NormaliseKind kind, double eps);
/* f64 [h,n,d] of x f32 or f64 [h',n,d], h the run's or x's: as op_normalise, not rounded. */
Tensor op_normalise64(Run *r, Tensor x, NormaliseKind kind, double eps);
/* f32 [h,n,d] of x f32 [h',n,d]: x / sqrt(|x|^2 + eps), the length in double. */
Tensor op_unit_rows(Run *r, Tensor x, double eps);

typedef struct BestColumns {
    Tensor  x; /* f64 [h,n,c] */
    Tensor  y; /* f64 [h,n,e]: column p e + r of a row is x_p + y_r; or absent: x_p */
    int64_t k; /* at most the columns */
    /* i32 [h,n,c], [h,n,e] names of the columns, or absent; the index of column (p, r) is then
     * x_name_p names + y_name_r. */
    Tensor  x_name, y_name;
    int64_t names;
} BestColumns;
typedef struct BestResult {
    Tensor value; /* f64 [h,n,k] */
    Tensor index; /* i32 [h,n,k] */
} BestResult;
/* The k largest of every row, the best first; ties: the lower column. */
BestResult op_best_columns(Run *r, const BestColumns *in);

/* f32 [h,n,k] of x f32 [h,n,d], y f32 [h',m,d] and index i32 [h,n,k]: products of row i of x with
 * rows index[i,.] of y. */
Tensor op_pair_dots(Run *r, Tensor x, Tensor y, Tensor index);

/* A convolution whose taps may differ by channel and by row:
 *
 *     y[i,c] = sum over s of taps[i or 0, g(c), s] * x[first + i step + s apart, c]
 *
 * with g(c) = c div (w/G),
 *
 * in double; rows outside of x are 0. */
typedef struct TapSums {
    Tensor  x;    /* f32 or f64 [h',n,w] */
    Tensor  taps; /* f32 or f64 [h',rows or 1,G S], contiguous rows */
    int64_t groups;
    int64_t first, step, apart; /* apart 0: 1 */
    Tensor  bias; /* f32 [w], or absent */
    bool    add;  /* to y */
} TapSums;
void op_tap_sums(Run *r, const TapSums *in, Tensor y); /* y f32 or f64 [h,rows,w] */

/* ---- attention as a narrow format would compute it ----------------------------------- */

/* Every number is rounded to the format when it is stored: scores, then times scale, weights,
 * outputs; with half_sums after each product and each sum, with half_softmax after each
 * operation of the softmax.  q, k, v f64 hold numbers of the format. */
typedef struct RoundedAttend {
    Tensor          q, k, v; /* f64 [h',n,d], [h',m,d], [h',m,e] */
    PrecisionFormat format;
    double          scale;   /* 0: in q already */
    bool            half_sums, half_softmax, causal;
    int64_t         offset;  /* causal: keys up to i + offset */
    Tensor          out;     /* f64 [h,n,e] */
    Tensor          top, total; /* f64 [h,n] of the row's softmax */
    Tensor          weights;    /* f64 [h,n] sum of the row's weights */
    Tensor          overflows;  /* i32 [h,n] scores that are infinite */
} RoundedAttend;
void op_rounded_attend(Run *r, const RoundedAttend *in);
/* For readers, each rounded to the format: the sum of x[c] y[c step], a score before scaling, a
 * scaled score, and the exponential of a score. */
double rounded_dot(const RoundedAttend *in, int64_t count, const double *x, const double *y,
                   int64_t step);
double rounded_raw_score(const RoundedAttend *in, int64_t heads, int64_t head, int64_t i,
                         int64_t j);
double rounded_scaled(const RoundedAttend *in, double score);
double rounded_exponential(const RoundedAttend *in, double score, double top);

/* Rotates pairs of columns: pair t of row i is (x[t step], x[t step + gap]), and turns[i] holds the
 * cosine at 2 t and the sine behind it; the other columns stay. */
typedef struct TurnPairs {
    Tensor  x;     /* f32 [h',n,d] */
    Tensor  turns; /* f64 [1,n,2 pairs] */
    int64_t step, gap;
} TurnPairs;
Tensor op_turn_pairs(Run *r, const TurnPairs *in); /* f32 [h',n,d]; in double, rounded at the end */

/* ---- rows by lists ------------------------------------------------------------------ */

/* [h,rows,w]: row index[t,x] of x [h',n,w] f32 or i32, index i32 [h',rows]; h: the larger h'. */
Tensor op_gather(Run *r, Tensor x, Tensor index);
/* Row index[t,x] of y [h,n,w] becomes row x of x [h,rows,w]; an index stands in a list once. */
void op_scatter(Run *r, Tensor x, Tensor index, Tensor y);

/* Joins rows and the log-sum-exp of their softmax with out and z: one softmax over both.  A row
 * with lse -inf changes nothing. */
typedef struct MergeRows {
    Tensor  rows, lse;  /* f32 [h,lists*rows,e], [h,lists*rows] */
    Tensor  index;      /* i32 [h,lists*rows] row of out; in each list once */
    int64_t lists;      /* taken one after another */
    Tensor  out, z;     /* f32 [h,n,e], [h,n] */
} MergeRows;
void op_merge_rows(Run *r, const MergeRows *in);

/* y[t,i] = share[t,i] * sum of weight x[t, entry] over the entries of row t n + i. */
typedef struct SumLists {
    Tensor         x;     /* f32 [h',rows,w] */
    const int64_t *start; /* [h n + 1] into entry; run's arena, as are: */
    const int32_t *entry;
    const float   *weight; /* of each entry; NULL: 1 */
    const float   *share;  /* [h n]; NULL: 1 */
    int64_t        heads, n;
} SumLists;
Tensor op_sum_lists(Run *r, const SumLists *in); /* f32 [heads,n,w] */
/* SumLists.start of n lists of `each` entries, in the run's arena; counts as preparation. */
const int64_t *sum_lists_even(Run *r, int64_t n, int64_t each);

typedef enum WindowKind { WINDOW_SUM, WINDOW_MEAN, WINDOW_MAX, WINDOW_MIN } WindowKind;
/* Row u of y (f32 or f64 [h,windows,w], its heads and rows may lie further apart) is the sum, the
 * mean, the largest or the least of rows first[u] .. end[u] - 1 of x, in double, in row order.  NaN
 * stays. */
typedef struct PoolWindows {
    Tensor         x;           /* f32 or f64 [h',n,w] */
    const int32_t *first, *end; /* [windows]; run's arena */
    WindowKind     kind;
} PoolWindows;
void op_pool_windows(Run *r, const PoolWindows *in, Tensor y);
/* The same of one window, rows [first, end): y [h,1,w]. */
void op_pool_rows(Run *r, Tensor x, int64_t first, int64_t end, WindowKind kind, Tensor y);

/* Operations that choose among rows and columns, count members and sort; part
 * of ops.h.
 *
 * Choices are discrete: another rounding of a score would connect other tokens.  So they are made
 * in double, with sums in index order and ties to the lower index.
 */

/* index i32 [h,n] of the largest of the last axis of x f64 [h,n,R] (or of
 * [x ; -x] when with_negative); ties: lowest index.  Charges no FLOPs. */
Tensor op_argmax(Run *r, Tensor x, bool with_negative);

/* index i32 [h,R,k]: for each COLUMN of x f64 [h,n,R] the k rows with the
 * largest values, ties to the lower row, listed in increasing row order. */
Tensor op_top_k(Run *r, Tensor x, int64_t k);

/* Rows that choices are made on: `near` in float, and row i in double where float cannot decide. A
 * back end on another device takes `whole` instead, and calls the host only where it is absent. */
typedef struct ChoiceRows {
    Tensor        near; /* f32 [h',n,d]: the rows, rounded */
    void        (*exact)(const void *context, int64_t head, int64_t i, double *row);
    const void   *context; /* exact NULL: as near */
    Tensor        whole;   /* [h',n,d]: f64, the rows of `exact`; f32, before op_normalise64 */
    NormaliseKind kind;    /* of it, by these */
    double        eps;
} ChoiceRows;

typedef struct Nearest {
    ChoiceRows x;
    Tensor     y;      /* f32 or f64 [h',parts*C,d] */
    int64_t    parts;  /* of y's rows, each with an index of its own */
    bool       with_negative; /* of [x_i . y ; -x_i . y] */
    bool       cosine; /* products divided by max(|x_i|, 1e-12) max(|y_c|, 1e-12), at once */
} Nearest;

/* i32 [h,parts,n]: the row of each part of y that has the largest product with x_i, decided
 * in double, sums in index order; ties: the lowest.  Charges no FLOPs. */
Tensor op_nearest(Run *r, const Nearest *in);

/* i32 [h,C,k]: for each row of y (f32 or f64 [h',C,d]) the k rows of x with the largest
 * products, decided as by op_nearest, ties to the lower row, listed in increasing order.
 * Charges no FLOPs. */
Tensor op_best_rows(Run *r, const ChoiceRows *x, Tensor y, int64_t k);

/* i64 [h,n]: bit t is set iff x_i . p_t > bias_t, decided in double; planes f32
 * [h',bits,d+1] hold (p_t, bias_t), `bias` false: bias 0.  Charges no FLOPs. */
Tensor op_codes(Run *r, Tensor x, Tensor planes, bool bias);

/* Fills sum f64 [h,C,d] with the sums of the rows of x f32 or f64 [h',n,d] with that index (i32
 * [h,n]), or, unit and f32, of x_i / max(|x_i|, 1e-12), in row order.  Charges no FLOPs. */
void op_member_sums(Run *r, Tensor x, Tensor index, bool unit, Tensor sum);
/* i32 [h,C]: how often each index below C occurs in a row of index i32 [h,n]. */
Tensor op_tally(Run *r, Tensor index, int64_t count);

/* Fills cluster i32 [h,n] with the one of centres i64 [h,C] that differs from codes i64
 * [h,n] in the fewest bits; ties: the lowest.  Charges no FLOPs. */
void op_nearest_codes(Run *r, Tensor codes, Tensor centres, Tensor cluster);
/* i32 [h,clusters,64]: how many codes of a cluster have each bit.  Charges no FLOPs. */
Tensor op_bit_sums(Run *r, Tensor codes, Tensor cluster, int64_t clusters);

/* f64 [m]: how much each key of k [h',m,d] is used by the queries of q [h,n,d]: the mean over
 * heads and queries of softmax(scale q_i . k_j).  causal: the last queries see the last keys,
 * j <= i + m - n.  In double and the same way for every key, because choices are made on it.
 * Charges no FLOPs: these are the weights that op_attend has counted. */
Tensor op_key_usage(Run *r, Tensor q, Tensor k, double scale, bool causal);

/* order i32 [.,n]: positions of key i32 [.,n] sorted stably per row. */
Tensor op_sort(Run *r, Tensor key);

#endif
