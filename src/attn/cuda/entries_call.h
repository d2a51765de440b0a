/* attn/cuda/entries_call.h -- entry by entry, and rows in double; part of device.h. */
#ifndef ATTN_CUDA_ENTRIES_CALL_H
#define ATTN_CUDA_ENTRIES_CALL_H

/* Three axes with strides in elements; 0 where an extent of 1 repeats.  Heads are shared by
 * groups. */
typedef struct EntryTensor {
    void   *data;
    int32_t dtype; /* f32, f64, i32 */
    int64_t heads, stride[3];
} EntryTensor;

typedef struct EntriesCall {
    EntryTensor x, z, y;
    int64_t     shape[3]; /* of y */
    int32_t     kind;     /* EntryKind */
    double      by;
    int32_t     bits;          /* of the format that is rounded to: Precision */
    double      least, limit;
} EntriesCall;

/* As TurnPairs of attn/ops_rows.h. */
typedef struct TurnPairsCall {
    DeviceTensor  x, y; /* f32 */
    const double *turns;
    int64_t       pairs, step, gap;
} TurnPairsCall;

typedef struct Normalise64Call {
    DeviceTensor x, y;  /* f32 or f64, f64 */
    int32_t      kind;  /* NormaliseKind */
    double       eps;
} Normalise64Call;

/* A row is [shape[1], shape[2]] together. */
typedef struct Standardise64Call {
    EntryTensor  x, y;
    int64_t      shape[3];
    const float *gain, *bias;           /* NULL: none; entries of a line */
    int64_t      gain_step, bias_step;  /* from one line's to the next's; 0: the same for all */
    double       eps;
    int64_t      splits; /* pieces of a row, each with sums of its own; 1: a row is short */
    double      *sums;   /* [2][rows][splits]; splits 1: not used */
} Standardise64Call;

#endif
