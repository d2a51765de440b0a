/* attn/cuda/calls.h -- the arguments of the device's calls; see device.h. */
#ifndef ATTN_CUDA_CALLS_H
#define ATTN_CUDA_CALLS_H

#include "attn/cuda/attend_calls.h"

/* Work that measures the device's peak rates. */

typedef enum CeilingKind {
    CEILING_FMA,    /* fused multiply-adds in float32, in registers */
    CEILING_WORDS,  /* mma.sync in `arithmetic`, in registers */
    CEILING_TRIAD,  /* a = b + s c over `count` floats */
    CEILING_GROUPS, /* wgmma in BF16 or F16, on a Hopper; else WARPGROUP_DECLINED */
} CeilingKind;

typedef struct CeilingCall {
    int32_t kind;       /* CeilingKind */
    int32_t arithmetic; /* Arithmetic, not f32; of CEILING_WORDS and _GROUPS */
    int64_t blocks;     /* of the launch; not used by the triad */
    int64_t rounds;     /* repetitions; of the triad 1 */
    int64_t count;
    float  *a, *b, *c;  /* [count] arrays of the triad */
} CeilingCall;

#define CEILING_THREADS 256
#define CEILING_FMA_FLOPS (2.0 * 8 * 64 * CEILING_THREADS) /* per block and round */
#define CEILING_WORDS_STEPS 32                             /* per warp and round */
#define CEILING_GROUPS_STEPS 16                            /* per warpgroup and round */
#define CEILING_GROUPS_FLOPS (2.0 * 64 * 128 * 16 * CEILING_GROUPS_STEPS * CEILING_THREADS / 128)

/* Convolutions, best columns, products with listed rows, attention of narrow formats; see
 * attn/ops/rows.h. */

typedef struct TapSumsCall {
    int64_t      heads;
    DeviceTensor x, taps, y; /* f32 or f64 each; taps of one row: for all rows */
    int64_t      groups, first, step, apart;
    const float *bias;       /* [w], or NULL */
    bool         add;
} TapSumsCall;

/* Of rows of x f64 [heads,n,c], or of sums x_p + y_r with y f64 [heads,n,e]. */
typedef struct BestColumnsCall {
    DeviceTensor x, y;
    int64_t      k;
    DeviceTensor x_name, y_name; /* i32 numbers of the columns, or absent */
    int64_t      names;
    double      *value; /* [heads,n,k] */
    int32_t     *index;
} BestColumnsCall;

/* dots [heads,n,k] of row i of x and rows index[i,.] of y; f32. */
typedef struct PairDotsCall {
    int64_t        heads, n, k;
    DeviceTensor   x, y;
    const int32_t *index;
    float         *dots;
} PairDotsCall;

#define ROUNDED_BLOCKS 1024 /* at most; each has a row of scores */

/* As RoundedAttend; all f64. */
typedef struct RoundedAttendCall {
    int64_t      heads, n, m, blocks;
    DeviceTensor q, k, v;
    int32_t      bits; /* of the format: Precision */
    double       least, limit, scale;
    bool         half_sums, half_softmax, causal;
    int64_t      offset;
    double      *scores;                      /* [blocks][m] */
    double      *out, *top, *total, *weights; /* [heads,n,e], [heads,n] */
    int32_t     *overflows;
} RoundedAttendCall;

/* Entry by entry, and rows in double. */

/* Three axes with strides in elements; stride 0 repeats an extent of 1.  Groups share heads. */
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
    int32_t     bits;          /* of the format to round to: Precision */
    double      least, limit;
} EntriesCall;

/* As TurnPairs of attn/ops/rows.h. */
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
    int64_t      gain_step, bias_step;  /* elements between lines; 0: shared by all */
    double       eps;
    int64_t      splits; /* pieces of a row with partial sums; 1: the row is not cut */
    double      *sums;   /* [2][rows][splits]; splits 1: not used */
} Standardise64Call;

/* Products of matrices. */

/* c = alpha op(a) op(b) + beta c for every head and piece.
 *
 * Pieces are slices of a long inner axis, or chunks of a sequence: step_a, step_b and step_c
 * elements lie between them.  The last piece of a cut axis (all_* not 0) may be shorter. */
typedef struct GemmCall {
    int64_t      heads, pieces;
    int64_t      rows, cols, inner;             /* of one piece */
    int64_t      all_rows, all_cols, all_inner; /* of all pieces; 0: the axis is not cut */
    int64_t      step_a, step_b, step_c;        /* elements between pieces */
    DeviceTensor a, b, c;  /* a f32 or f64, b likewise; c f32, or f64 */
    bool         ta, tb;
    double       alpha, beta; /* beta 0: c is not read */
    int32_t      arithmetic;  /* Arithmetic; used if all three are f32 */
    bool         folded; /* c f64, a and b f32: sums of some hundred products in float, the
                            sum of these in double */
    bool         in_order; /* c f64: each product rounded, then added, in index order */
    const float *start;    /* [cols] with in_order: initial values of sums; NULL: 0 */
} GemmCall;

/* c = alpha times the sum over the pieces of `parts` [heads][pieces][rows][cols], + beta c. */
typedef struct GemmSumCall {
    int64_t      heads, pieces;
    const void  *parts; /* f64 where `wide`, else f32; added in double */
    bool         wide;
    DeviceTensor c;     /* f32 or f64 */
    double       alpha, beta;
} GemmSumCall;

/* Attention by panels of rows, for scores of any kind.
 *
 * A panel is at most PANEL_ROWS rows (queries) of one head with some keys; one block computes it.
 * Long lists of keys are cut into pieces, so that few rows with very many keys occupy the whole
 * device.  Pieces leave partial results in slots; a join combines them in order.
 */

#define PANEL_ROWS 64

typedef struct RowPanel {
    int64_t first, first_key; /* of the head's rows and keys, or of its lists of them */
    int64_t keys;
    int64_t slot;             /* -1: all keys are in this panel, its results are final */
    int32_t head, rows;
    int32_t group;            /* chosen by the caller */
} RowPanel;

/* Rows first .. first + rows of a head are those of slots slot .. slot + count. */
typedef struct PanelJoin {
    int64_t first, slot, count;
    int32_t head, rows;
} PanelJoin;

typedef struct PanelWork {
    int64_t          count, joins;
    const RowPanel  *panels;
    const PanelJoin *join;
    int64_t          width; /* columns of a slot's rows */
    double          *top;   /* [slots][PANEL_ROWS] the largest score */
    double          *sum;   /* [slots][PANEL_ROWS] of exp(score - top) */
    float           *part;  /* [slots][PANEL_ROWS][width] sums of exp(score - top) times values */
} PanelWork;

/* Row x of a head's results goes to row place[x], or x. */
typedef struct PanelOut {
    int64_t      heads;
    DeviceTensor out, more; /* f32 [h,n,e], [h,n,f]; columns of `more` follow those of out */
    DeviceTensor lse;       /* f32 or f64 [h,1,n]; or absent */
    DeviceTensor place;     /* i32 [h',1,n]; or absent */
} PanelOut;

typedef struct JoinCall {
    PanelWork work;
    PanelOut  to;
} JoinCall;

/* Attention inside groups, and of few queries. */

/* Panels list entries of query_index and key_index; index absent: entry x is row x. */
typedef struct PanelInput {
    int64_t      heads;
    DeviceTensor q, k, v, more; /* f32; more: further values for the same weights, or absent */
    double       scale;
    DeviceTensor query_index, key_index; /* i32 [h',1,entries] */
    PanelWork    work;
    PanelOut     to;
} PanelInput;

/* As Visits of attn/ops/ops.h; chunk absent: no visits. */
typedef struct VisitCall {
    DeviceTensor tag, chunk; /* i32 [h,lists,positions] */
    int64_t      before, after, ring;
    bool         cross;
} VisitCall;

/* As GroupAttend of attn/ops/ops.h; a panel's group is RowPanel.group. */
typedef struct GroupCall {
    PanelInput   in;
    DeviceTensor key_start;           /* i32 [h',1,groups+1] */
    DeviceTensor query_tag, key_tag;  /* i32 [h',1,rows] */
    DeviceTensor query_at, key_at;
    bool         causal, self_last;
    double       self_penalty;
    VisitCall    visits;
    DeviceTensor skip;                /* i32 [h',rows of q,s] */
} GroupCall;

/* Attention through features. */

/* The same numbers as FeatureKind of attn/ops/ops.h. */
typedef enum FeaturesOf {
    FEATURES_POSITIVE, FEATURES_HYPERBOLIC, FEATURES_TRIG, FEATURES_RELU, FEATURES_ELU,
    FEATURES_RECTIFIED, FEATURES_EXP, FEATURES_SOFTMAX, FEATURES_COLUMN_SOFTMAX,
    FEATURES_SIN_COS, FEATURES_ARC_COS,
} FeaturesOf;

/* y [heads][n][f]; with `projected` its first m columns already hold W x'. */
typedef struct FeaturesCall {
    int64_t      heads, n, m, f;
    DeviceTensor x;      /* f32 */
    void        *y;
    bool         wide;   /* f64, else f32 */
    int32_t      kind;   /* FeaturesOf */
    bool         projected, unit, stabilise;
    bool         head_top;  /* the subtracted maximum is one number for each head */
    double       scale;     /* of x */
    double       eps, norm_eps, alpha, amplitude;
    double      *half, *top; /* [heads][n] work: |x'|^2 / 2, and the largest of a row */
    double      *head;       /* [heads] work */
} FeaturesCall;

#define COLUMN_ROWS 256 /* rows of a slice of a column softmax */
/* y = softmax over the rows of x, for each column; f32 */
typedef struct ColumnSoftmaxCall {
    DeviceTensor x, y;   /* y of all heads */
    double      *top, *sum; /* [heads][slices][cols] work; slice 0 becomes the whole */
} ColumnSoftmaxCall;

/* sums [heads][pieces][cols] = sums over the rows of each piece of x, f32 or f64. */
typedef struct RowSumsCall {
    int64_t      heads, pieces, rows; /* rows: of a piece; the last may be shorter */
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

/* a [heads][pieces][rows][cols]; with `causal`, entries with col > row + shift become 0.  Stores
 * (add: adds) the sums of rows in sums [head * pitch + piece * rows + row]. */
typedef struct MaskCall {
    int64_t heads, pieces, rows, cols, all_rows; /* all_rows: of all pieces */
    void   *a;
    bool    wide, causal, add;
    int64_t shift;
    double *sums;
    int64_t pitch;
} MaskCall;

#define RECUR_COLUMNS 32 /* columns of the values in one block */
#define RECUR_ROWS 4096   /* features of a call, at most: the lanes of a column hold them */
/* Token by token: S <- g S + (1 - g) fk^T v (g absent: S + fk^T v), sums_i = fq_i S; and with
 * v = 1, z_i = fq_i sum of fk, in double.  More features are computed in slices, each adding to
 * the sums and z of earlier slices. */
typedef struct RecurCall {
    int64_t       heads;
    DeviceTensor  fq, fk, v;
    int64_t       features, first; /* of all slices; of this one */
    DeviceTensor  gates;  /* f64 [h,1,n] or absent */
    void         *sums;   /* [heads][n][e], f64 where the features are, else f32 */
    double       *z;      /* [heads][n] */
    float        *memory; /* [heads][f][e] */
} RecurCall;

/* The same numbers as DenominatorForm of attn/ops/ops.h. */
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

/* The same numbers as StateRule of attn/ops/state.h. */
typedef enum StatesOf { STATES_ADD, STATES_DELTA, STATES_REPLACE } StatesOf;

/* Attention by a state that forgets; see attn/ops/state.h. */
typedef struct StateCall {
    int64_t      heads, n, d, e;
    int32_t      rule;          /* StatesOf */
    bool         channel_gates; /* a gate for each of d, else for each token */
    bool         levels;        /* several states of a head, read by weights */
    int64_t      states;        /* of a head */
    DeviceTensor q, k, v;       /* f32 */
    DeviceTensor gates, beta, weights; /* f64 [heads,n,.], or absent; weights of levels */
    DeviceTensor removal, erase;       /* f32, or absent */
    double       scale;
    double      *state;         /* [heads][e][states][d] */
    void        *out;           /* [heads][n][e] */
    bool         wide;          /* f64, else f32 */
} StateCall;

/* Rows by lists of indices.  See attn/ops/ops.h. */

/* y[t,x] = x[t,index[t,x]], or, scatter, y[t,index[t,x]] = x[t,x]; 4-byte elements. */
typedef struct MoveCall {
    int64_t      heads;
    DeviceTensor x, index, y; /* index i32 [h',1,rows] */
    bool         scatter;
} MoveCall;

typedef struct MergeCall {
    int64_t      heads, lists;
    DeviceTensor rows, lse, index, out, z; /* lse, index [h,1,lists*rows]; z [h,1,n] */
} MergeCall;

typedef struct SumsCall {
    int64_t        heads;
    DeviceTensor   x, y;
    const int64_t *start;
    const int32_t *entry;
    const float   *weight, *share; /* NULL: 1 */
} SumsCall;

typedef struct WindowsCall {
    int64_t        heads;
    DeviceTensor   x, y; /* f32 or f64 each; y [h,windows,w] */
    const int32_t *first, *end;
    int32_t        kind; /* WindowKind: 0 the sum, 1 the mean, 2 the largest, 3 the least */
} WindowsCall;

/* Means over the rows of a pattern. */

/* `count` keys start, start + step, ... */
typedef struct KeyRun {
    int32_t start, count, step;
} KeyRun;

/* Row i has runs start[i] .. start[i + 1]; per_head: head t has the rows from t * rows on. */
typedef struct RowRuns {
    int64_t        rows;
    bool           per_head;
    const int64_t *start; /* [(heads *) rows + 1] */
    const KeyRun  *runs;
} RowRuns;

typedef struct MeansCall {
    int64_t      heads;
    DeviceTensor x, y;
    RowRuns      cells;
    double       divisor; /* 0: the number of the row's cells */
    bool         less_own;
} MeansCall;

/* Lambdas.  Letters as in attn/ops/lambdas.h. */

typedef struct LambdaContentCall {
    int64_t      heads, m, k, u, e, contexts; /* heads of keys */
    DeviceTensor key, v;                      /* f32 [heads,m,k u], [heads,m,e u] */
    double      *lse;                         /* [heads,contexts,k u] */
    float       *content;                     /* [heads,contexts,k,e] */
} LambdaContentCall;

/* The place of the position's vector E[i,j] [k,u] in its table. */
typedef struct LambdaEntry {
    int64_t width, up, side;
    bool    absolute;
} LambdaEntry;

#define LAMBDA_GROUP_BYTES 2048 /* of shared memory for each head that shares a key head */

typedef struct LambdaApplyCall {
    int64_t        heads, group, n, m, k, u, e, contexts; /* heads of keys; of queries to each */
    bool           joined;
    DeviceTensor   v;
    const float   *q, *content, *table; /* q [heads group,n,k] */
    RowRuns        reach;               /* the positions within reach; one head */
    LambdaEntry    entry;
    float         *out;
} LambdaApplyCall;

/* Attention over logits that are no product of queries and keys. */

/* As LogitAttend of attn/ops/ops.h; kind: its LogitKind. */
typedef struct LogitsCall {
    int64_t      heads;
    int32_t      kind;
    DeviceTensor left, right; /* f32 or f64 */
    DeviceTensor bias;        /* f32 [h',1,>=m] */
    bool         turned;
    uint64_t     seed, stream;
    double       bound;
    int64_t      n, m;
    DeviceTensor v;           /* f32 [h',m,e] */
    bool         causal;
    int64_t      offset;
    PanelWork    work;
    PanelOut     to;
} LogitsCall;

/* Rows of scores in double: attention with a normaliser for each head, and the usage of keys. */

/* Rows first .. first + rows of heads first_head .. first_head + heads. */
typedef struct ScoreRows {
    int64_t      all_heads, first_head, heads, first, rows;
    DeviceTensor q, k;   /* f32 [h',n,d], [h',m,d] */
    double       scale;
    bool         causal; /* keys j <= i + offset */
    int64_t      offset;
    double      *z;      /* [heads][rows][pitch] scores, then weights */
    int64_t      pitch;
} ScoreRows;

/* As Entmax of attn/ops/ops.h; form: its EntmaxForm. */
typedef struct RowForm {
    int32_t form;
    double  alpha;
    int64_t iterations;
    bool    divide;
} RowForm;

/* As RowMask of attn/ops/ops.h. */
typedef struct RowMaskCall {
    bool         on;
    int64_t      n, m;
    DeviceTensor distance;            /* f64 [h',1,distances] */
    DeviceTensor logits, plus, minus; /* f32 [h',n,m] */
    bool         symmetric, hard, borders, no_diagonal, multiply;
    double       tau, penalty;
} RowMaskCall;

/* Replaces z by the weights, in double but rounded to float; 0 for keys that a row does not see. */
typedef struct RowWeightsCall {
    ScoreRows      at;
    const RowForm *form;    /* [h] */
    RowMaskCall    mask;
    double         negligible;
    double        *tau, *total; /* [h,n] */
    int32_t       *support;
    double        *trace;   /* [h,n,steps] or NULL */
    int64_t        steps;
} RowWeightsCall;

/* The weights times v, for panels of these rows. */
typedef struct RowMixCall {
    ScoreRows    at;
    DeviceTensor v;         /* f32 [h',m,e] */
    PanelWork    work;
    PanelOut     to;
} RowMixCall;

/* Adds the rows' softmaxes to their head's sums, in order of rows. */
typedef struct UsageCall {
    ScoreRows at;           /* all heads */
    double   *total;        /* [heads][rows] */
    double   *sums;         /* [heads][m] */
} UsageCall;

typedef struct UsageMeanCall {
    int64_t       heads, n, m;
    const double *sums;
    double       *usage;    /* [m] */
} UsageMeanCall;

/* Operations on single rows. */

/* x [heads][rows][cols], in place */
typedef struct SoftmaxCall {
    void   *x;
    bool    wide; /* f64 */
    int64_t heads, rows, cols, pitch; /* pitch: of a head */
    bool    causal;                   /* row i: entries up to i + offset; others become 0 */
    int64_t offset;
    double *lse; /* NULL: not wanted */
    int64_t lse_pitch;
} SoftmaxCall;

typedef enum RowLength { LENGTH_ONE, LENGTH_ROOT_MEAN, LENGTH_NORM } RowLength;

/* y = (x - mean) / length * gain + bias, in double and rounded at the end */
typedef struct NormaliseCall {
    int64_t      heads;
    DeviceTensor x, y;   /* f32 */
    bool         centre; /* mean 0 without it */
    int32_t      length; /* RowLength: sqrt(mean of squares + eps), or max(norm, eps) */
    double       eps;
    const float *gain, *bias; /* [cols], or NULL */
} NormaliseCall;

#define NORM_BLOCKS 512
/* found[b]: the largest sum of squares of the rows b, b + NORM_BLOCKS, ...; NaN stays */
typedef struct NormsCall {
    DeviceTensor x; /* f32 */
    double      *found;
} NormsCall;

/* x = GELU(x + bias), in its tanh form */
typedef struct GeluCall {
    float       *x;
    const float *bias; /* [width], or NULL */
    int64_t      count, width;
} GeluCall;

/* y [h,L,L] = the pseudo-inverse of a [h,L,L], both f64; work [h][2][L][L] */
typedef struct PinvCall {
    DeviceTensor a;
    double       rcond;
    double      *y, *work;
} PinvCall;

/* Subtracts from each row, or column, of log_p f64 [heads][b][b] its log-sum-exp, in place. */
typedef struct SinkhornCall {
    int64_t        heads, b;
    double        *log_p;
    const uint8_t *allowed; /* [b][b], or NULL */
    bool           columns;
} SinkhornCall;

/* Choices: sorts, nearest vectors, best rows, codes.
 *
 * Products that decide a choice are summed in double, in index order, each product rounded before
 * it is added, so that device and CPU choose the same.
 */

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

/* key [heads now][columns now][n]: integers in the order of the products x_i . y_c, for columns
 * first_column, ... of heads first_head, ... of `heads`; see order_key in exact.cuh. */
typedef struct ProductKeysCall {
    int64_t      heads, first_head, heads_now, first_column, columns_now;
    DeviceTensor x, y; /* f32 or f64 */
    int64_t     *key;
} ProductKeysCall;

/* Likewise for the columns of x f64 [n, columns]. */
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

/* count i32 [heads, size]: occurrences of each index in index i32 [heads, n]. */
typedef struct TallyCall {
    int64_t        heads, n, size;
    const int32_t *index;
    int32_t       *count;
} TallyCall;

/* sum f64 [heads, clusters, d] of a cluster's rows of x f32 or f64; with factor, of rows of f32
 * scaled to length 1. */
typedef struct MemberSumsCall {
    int64_t        heads, clusters;
    DeviceTensor   x;
    const int32_t *index, *order; /* [heads, n]; order: index sorted stably */
    double        *factor;        /* [heads, n] of 1 / |x_i|; NULL: rows are not scaled */
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
