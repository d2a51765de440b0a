/* attn/cuda/kernel_call.h -- attention through features; part of device.h. */
#ifndef ATTN_CUDA_KERNEL_CALL_H
#define ATTN_CUDA_KERNEL_CALL_H

/* As FeatureKind of attn/ops/ops.h, and its numbers. */
typedef enum FeaturesOf {
    FEATURES_POSITIVE, FEATURES_HYPERBOLIC, FEATURES_TRIG, FEATURES_RELU, FEATURES_ELU,
    FEATURES_RECTIFIED, FEATURES_EXP, FEATURES_SOFTMAX, FEATURES_COLUMN_SOFTMAX,
    FEATURES_SIN_COS, FEATURES_ARC_COS,
} FeaturesOf;

/* y [heads][n][f]: with `projected` its first m columns hold W x' already. */
typedef struct FeaturesCall {
    int64_t      heads, n, m, f;
    DeviceTensor x;      /* f32 */
    void        *y;
    bool         wide;   /* f64, else f32 */
    int32_t      kind;   /* FeaturesOf */
    bool         projected, unit, stabilise;
    bool         head_top;  /* what is subtracted is one number of a head */
    double       scale;     /* of x */
    double       eps, norm_eps, alpha, amplitude;
    double      *half, *top; /* [heads][n] work: |x'|^2 / 2, and the largest of a row */
    double      *head;       /* [heads] work */
} FeaturesCall;

#define COLUMN_ROWS 256 /* of a slice of a column softmax */
/* y = softmax over the rows of x, for each column; f32 */
typedef struct ColumnSoftmaxCall {
    DeviceTensor x, y;   /* y of all heads */
    double      *top, *sum; /* [heads][slices][cols] work; slice 0 becomes the whole */
} ColumnSoftmaxCall;

/* sums [heads][pieces][cols] = sums over the rows of each piece of x, f32 or f64. */
typedef struct RowSumsCall {
    int64_t      heads, pieces, rows; /* rows: of a piece; the last has what is left */
    DeviceTensor x;
    double      *sums;
} RowSumsCall;

/* Each piece of parts [heads][pieces][size] becomes the sum of carry and of the pieces before
 * it; carry [heads][size] becomes the sum of all. */
typedef struct ScanCall {
    int64_t heads, pieces, size;
    void   *parts;
    bool    wide;  /* parts are f64, else f32 */
    double *carry;
} ScanCall;

/* sums[head * pitch + i] = fq_i . z of its piece, z [heads][pieces][f]. */
typedef struct ReadCall {
    int64_t       heads, pieces, rows; /* rows: of a piece */
    DeviceTensor  fq;
    const double *z;
    double       *sums;
    int64_t       pitch;
} ReadCall;

/* a [heads][pieces][rows][cols]: with `causal` 0 where col > row + shift; sums [head * pitch +
 * piece * rows + row], or these increased, are the sums of the rows. */
typedef struct MaskCall {
    int64_t heads, pieces, rows, cols, all_rows; /* all_rows: of all pieces */
    void   *a;
    bool    wide, causal, add;
    int64_t shift;
    double *sums;
    int64_t pitch;
} MaskCall;

#define RECUR_COLUMNS 32 /* of the values, for one block */
#define RECUR_ROWS 4096   /* features of a call, at most: the lanes of a column hold them */
/* Token by token: S <- g S + (1 - g) fk^T v (g absent: S + fk^T v), sums_i = fq_i S; and with
 * ones for v, z_i = fq_i sum of fk, in double.  More features are taken in slices, each adding
 * to the sums and z of the ones before. */
typedef struct RecurCall {
    int64_t       heads;
    DeviceTensor  fq, fk, v;
    int64_t       features, first; /* of all slices; of this one */
    DeviceTensor  gates;  /* f64 [h,1,n] or absent */
    void         *sums;   /* [heads][n][e], f64 where the features are, else f32 */
    double       *z;      /* [heads][n] */
    float        *memory; /* [heads][f][e] */
} RecurCall;

/* As DenominatorForm of attn/ops/ops.h, and its numbers. */
typedef enum DivisorOf {
    DIVISOR_GUARD, DIVISOR_ADD, DIVISOR_ADD_FEATURES, DIVISOR_NONE, DIVISOR_FLOOR,
} DivisorOf;

/* Row i of out = sums / divisor(z). */
typedef struct FinishCall {
    DeviceTensor  fq;
    int64_t       heads, n, e;
    const void   *sums;   /* f64 with f64 features, else f32 and may be out */
    const double *z;      /* [heads][n] */
    int32_t       form;   /* DivisorOf */
    double        eps;
    void         *out;           /* [heads][n][e] */
    bool          wide_out;      /* f64, else f32 */
    float        *denominator;   /* [heads][n] */
    double       *divisor;       /* [heads][n] */
} FinishCall;

#endif
