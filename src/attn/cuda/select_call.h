/* attn/cuda/select_call.h -- choices: sorts, nearest vectors, best rows, codes; part of device.h.
 *
 * Every product that a choice is made on is a sum in double, in index order, each product
 * rounded before it is added, so that the choice is the CPU's.
 */
#ifndef ATTN_CUDA_SELECT_CALL_H
#define ATTN_CUDA_SELECT_CALL_H

/* index [lines] of the largest of x f64 [lines, count], or of [x ; -x]; ties: the lowest. */
typedef struct ArgmaxCall {
    const double *x;
    int64_t       lines, count;
    bool          negative;
    int32_t      *index;
} ArgmaxCall;

/* index i32 [heads, parts, n]; y has parts * count rows. */
typedef struct NearestCall {
    int64_t      heads, parts, count;
    DeviceTensor x, y; /* f32 or f64 */
    bool         negative, cosine;
    int32_t     *index;
} NearestCall;

/* key [heads now][columns now][n]: what orders as the products x_i . y_c do, for columns
 * first_column, ... of heads first_head, ... of `heads`; see order_key in exact.cuh. */
typedef struct ProductKeysCall {
    int64_t      heads, first_head, heads_now, first_column, columns_now;
    DeviceTensor x, y; /* f32 or f64 */
    int64_t     *key;
} ProductKeysCall;

/* The same of the columns of x f64 [n, columns] themselves. */
typedef struct ColumnKeysCall {
    const double *x;
    int64_t       n, columns;
    int64_t      *key; /* [columns][n] */
} ColumnKeysCall;

/* index [lines][k]: the k largest of each line, ties to the lower place, in order of place. */
typedef struct SelectCall {
    const int64_t *key; /* [lines][n] */
    int64_t        lines, n, k;
    int32_t       *index;
} SelectCall;

/* code i64 [heads, n]; planes f32 [h', bits, d+1], the last column the bias. */
typedef struct CodesCall {
    int64_t      heads;
    DeviceTensor x, planes;
    bool         bias;
    int64_t     *code;
} CodesCall;

#define SORT_TILE 2048 /* keys of a block */
#define SORT_DIGITS 256

/* order [lines][n]: places of the keys, sorted stably. */
typedef struct SortCall {
    const int32_t *key;
    int64_t        lines, n;
    int32_t       *order;
    int32_t       *work;  /* [lines][n] */
    int32_t       *start; /* [lines][SORT_DIGITS][tiles of n] */
    uint32_t      *mask;  /* [1] */
} SortCall;

/* count i32 [heads, size]: how often each index stands in index i32 [heads, n]. */
typedef struct TallyCall {
    int64_t        heads, n, size;
    const int32_t *index;
    int32_t       *count;
} TallyCall;

/* sum f64 [heads, clusters, d] of the rows of x f32 or f64 in a cluster, or, f32, of those of
 * length 1. */
typedef struct MemberSumsCall {
    int64_t        heads, clusters;
    DeviceTensor   x;
    const int32_t *index, *order; /* [heads, n]; order: index sorted stably */
    double        *factor;        /* [heads, n] for x_i / |x_i|; NULL: the rows themselves */
    double        *sum;
} MemberSumsCall;

typedef struct NearestCodesCall {
    int64_t        heads, n, count;
    const int64_t *code, *centre; /* [heads, n], [heads, count] */
    int32_t       *cluster;
} NearestCodesCall;

/* ones i32 [heads, clusters, 64] */
typedef struct BitSumsCall {
    int64_t        heads, n, clusters;
    const int64_t *code;
    const int32_t *cluster;
    int32_t       *ones;
} BitSumsCall;

#endif
