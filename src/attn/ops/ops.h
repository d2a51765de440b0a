/* attn/ops/ops.h -- the operations mechanisms are written in.
 *
 * A back end is one constant Ops table.  Mechanisms call the op_* functions,
 * which check the run's sticky error and the shapes, charge FLOPs and bytes to
 * the current stage by the closed rules stated at each, and call the back end.
 * A fused kernel is a new op, never a new mechanism.
 *
 * FLOP conventions: multiply-add = 2; exp, compare, divide = 1 each.  score:
 * products of queries and keys; mix: weights times values; overhead: all else,
 * softmax included; position: what a positional modifier adds.
 *
 * Shapes are in the field's letters: h heads, n queries, m keys, d key size,
 * e value size.  A tensor with fewer heads than asked for is shared by groups
 * (tensor_head).  All float tensors are f32 unless said otherwise.
 */
#ifndef ATTN_OPS_OPS_H
#define ATTN_OPS_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/pattern/pattern.h"
#include "core/tensor.h"

/* What a back end can do at most on this machine, measured.
 *
 * The roofline of a stage with F FLOPs and B bytes of traffic is
 * min(peak, stream * F / B): no kernel passes it, wherever its data lies past
 * the caches (Williams, Waterman, Patterson 2009).
 */

typedef struct Ceilings {
    double peak;   /* flop/s, multiply-adds in registers, as matrix products are computed:
                      fused ones, or the tensor cores'; NaN: unknown */
    double tensor; /* flop/s, the tensor cores' in BF16, or as products are computed; NaN: none */
    double gemm;   /* flop/s, products of matrices; CPU: by the library, one a thread */
    double stream; /* bytes/s, triad past the caches */
    char   device[32]; /* device that was measured, as in records; "": unknown */
} Ceilings;

/* FLOPs a second at most, at so many FLOPs to a byte. */
static inline double ceilings_roof(const Ceilings *c, double intensity)
{
    double memory = c->stream * intensity;

    return memory < c->peak ? memory : c->peak;
}

/* From the scores of a row to weights, some of them exactly 0.
 *
 *     alpha = 1    softmax      w = exp(z - tau)                    tau = logsumexp z
 *     alpha = 2    sparsemax    w = max(z - tau, 0)
 *     alpha = 1.5               w = max(z/2 - tau, 0)^2
 *     any alpha    bisection    w = max((alpha-1) z - tau, 0)^(1/(alpha-1)) / total
 *
 * tau makes the weights of the row sum to 1; it is found exactly by sorting where
 * alpha has a closed form, else by bisection.  All in double.
 */

typedef enum EntmaxForm {
    ENTMAX_SOFTMAX,
    ENTMAX_SPARSEMAX,
    ENTMAX_SQUARE, /* alpha = 1.5 */
    ENTMAX_BISECT,
} EntmaxForm;

typedef struct Entmax {
    EntmaxForm form;
    double     alpha;
    int64_t    iterations; /* of the bisection */
    bool       divide;     /* its result by its sum */
} Entmax;

typedef struct EntmaxRow {
    double tau;   /* in the scale of its form; a row without entries: 0 */
    double total; /* what weights are divided by */
} EntmaxRow;

/* Of z [count]; an entry of -inf is absent.  `work` has room for count numbers.  The
 * first `traced` thresholds a bisection tries go to trace. */
EntmaxRow entmax_row(const Entmax *e, const double *z, int64_t count, double *work,
                     double *trace, int64_t traced);
double    entmax_weight(const Entmax *e, EntmaxRow row, double z);
/* What is charged for a row: softmax 5 per entry, a sort count log2 count comparisons,
 * a bisection one power per entry and step. */
double    entmax_flops(const Entmax *e, int64_t count);

typedef struct Run Run;
typedef struct Threads Threads;

typedef struct Flops {
    double score, mix, overhead, position;
} Flops;

typedef struct Bytes {
    double read, written; /* at least: what ops read and write counts once an op */
} Bytes;

/* FLOP_APART: the caller charges the FLOPs, by a formula of its own, or they are of a layer's own
 * projections, which are not attention (those that made q, k and v are not counted either); the
 * traffic counts.  FLOP_NONE: nothing counts: what only a view needs. */
typedef enum FlopClass {
    FLOP_SCORE, FLOP_MIX, FLOP_OVERHEAD, FLOP_POSITION, FLOP_APART, FLOP_NONE
} FlopClass;

static inline double flops_total(Flops f)
{
    return f.score + f.mix + f.overhead + f.position;
}

static inline Flops flops_sum(Flops a, Flops b)
{
    return (Flops){ a.score + b.score, a.mix + b.mix, a.overhead + b.overhead,
                    a.position + b.position };
}

#define FLOPS_SOFTMAX 5     /* per cell: scale, subtract max, exp, add, divide */
#define FLOPS_ROW_SOFTMAX 4 /* the same of finished scores: max, subtract and exp, add, divide */
#define FLOPS_SOFTCAP 3     /* per cell, more: divide, tanh, multiply */

/* A dot product that depends on the distance: scale * side . table[index]. */
typedef struct DistanceTerm {
    Tensor         side;  /* [h,n,d] for rows, [h,m,d] for columns; data NULL: absent */
    Tensor         table; /* [h' ,R,d] */
    const int32_t *index; /* [n+m-1], entry i - j + m - 1; run's arena */
} DistanceTerm;

/* Scores S[i,j] = cap(scale * (q_i . k_j + row term + column term)) + distance[..]. */
typedef struct AttendInput {
    Tensor q, k, v; /* [h,n,d], [h',m,d], [h',m,e] after the position's changes */
    double scale;
    double softcap;          /* cap(x) = softcap tanh(x / softcap); 0: cap(x) = x */
    Tensor distance;         /* f32 [h' ,n+m-1] added after scaling, entry i-j+m-1; or absent */
    bool   distance_capped;  /* it is added before the cap: a product, as row and col are */
    DistanceTerm row, col;
    DistanceTerm value;      /* output_i += sum_j W_ij table[index]; side unused */
    Tensor raw_q, raw_k;     /* the unmodified inputs, for position_bias */
    /* Added to the score of a cell last of all (BigBird's repeated keys: the log of how
     * often a cell counts).  NULL: off.  A back end on another device may decline it. */
    double (*cell_term)(const void *context, int64_t head, int64_t i, int64_t j);
    const void *cell_context;
    double cell_flops;       /* position FLOPs per allowed cell */
    double softmax_flops;    /* overhead per allowed cell, without the cap's; 0: FLOPS_SOFTMAX */
} AttendInput;

/* Overhead of an allowed cell. */
double attend_cell_overhead(const AttendInput *in);
/* Whether scores are more than scaled products. */
bool attend_has_terms(const AttendInput *in);

/* The part of it with `queries` queries from first_q and `keys` keys from first_k; borrows. A
 * cell_term gets indices of the part. */
AttendInput attend_input_part(const AttendInput *in, int64_t first_q, int64_t queries,
                              int64_t first_k, int64_t keys);

typedef struct AttendResult {
    Tensor out; /* [h,n,e] */
    Tensor lse; /* [h,n] log of the sum of exp of the row's allowed scores; -inf: no key */
} AttendResult;

/* How often the positions i and j of a query and a key meet in some lists:
 *
 *     N_ij = number of lists x with tag_xi == tag_xj and chunk_xi - before <= chunk_xj
 *            <= chunk_xi + after,        or of pairs of lists, x for i and y for j */
typedef struct Visits {
    Tensor  tag;           /* i32 [h,lists,positions]; data NULL: all alike */
    Tensor  chunk;         /* i32 [h,lists,positions] */
    int64_t before, after;
    int64_t ring;          /* number of chunks in a ring; 0: chunks are in a row */
    bool    cross;         /* pairs of lists; tags do not count */
} Visits;

/* One group attends to one list of keys (chunks, clusters, blocks).  All
 * index arrays are int32 in the run's arena.
 *
 * Group g of head t: queries query_index[query_start[t,g] .. query_start[t,g+1])
 * and keys key_index[key_start[t,g] .. key_start[t,g+1]) are ROWS of q and of
 * k, v.  Every such query attends to every such key except where a rule below
 * removes the cell. */
typedef struct GroupAttend {
    Tensor q, k, v;   /* [h,nq,d], [h,nk,d], [h,nk,e] */
    Tensor more_k, more_v; /* rows nk .. of k and v; only where op_group_takes_more, else absent */
    double scale;
    int64_t groups;   /* per head */
    Tensor query_start, key_start; /* i32 [h,groups+1] offsets into the lists below, per head */
    Tensor query_index, key_index; /* i32 [h,total] rows of q / of k and v */
    /* Optional rules; absent when the tensor's data is NULL. */
    Tensor query_tag, key_tag;     /* i32 [h,nq], [h,nk]: cell stays iff tags are equal */
    Tensor query_at, key_at;       /* i32 [h,nq], [h,nk]: original positions */
    bool   causal;                 /* cell stays iff key_at <= query_at; key_at < 0 always stays */
    bool   self_last;              /* cell with key_at == query_at only if nothing else stays */
    double self_penalty;           /* subtracted from the score when key_at == query_at; 0: off */
    const Visits *visits;          /* ln of how often they meet is subtracted; NULL: off */
    /* i32 [h,nq,s], increasing: the rows of k that a row of q leaves out.  They are in its
     * group's key list, and the key lists increase. */
    Tensor query_skip;
    /* Every row of q is in one group: its result is written to its own row of out and lse. */
    bool placed;
} GroupAttend;

typedef struct GroupResult {
    Tensor out; /* [h,total queries,e]: one row per entry of query_index */
    Tensor lse; /* [h,total queries]; -inf: no cell stayed, out row is 0 */
} GroupResult;

typedef struct Ops Ops;
const Ops *ops_cpu(void);

/* Before the host reads what an operation made, or writes what one may still read: operations
 * of another device may be under way.  A run with views waits after each of them by itself.
 * reads: what for, static, for records; NULL: only for a clock.  Fails the run when one of them
 * failed. */
void op_wait(Run *r, const char *reads);

/* In preparation: the host has written this, in the run's arena, and operations will read it.  A
 * device takes it as a whole, and not page by page under the first kernel. */
void op_toward(Run *r, const void *data, int64_t bytes);

/* Entries, rows, lists of rows, choices, counts and sorting. */
#include "attn/ops/rows.h"

/* Fused pattern attention with an online softmax; nothing n x n is stored.
 * Charges per allowed cell: score 2d, mix 2e, overhead 5 (or as in says), position by terms. */
AttendResult op_attend(Run *r, const AttendInput *in, const Pattern *pattern);

/* Equal shares of what a pattern allows: y_i = (sum of x_j) / divisor, less x_i when asked. */
typedef struct PatternMeans {
    Tensor x;       /* f32 or f64 [h',m,w] */
    double divisor; /* 0: as many as the row's cells; a row without any is 0 */
    bool   less_own;
} PatternMeans;
/* [h,n,w] of x's type, in double and rounded at the end.  Charges to mix w per cell, w per row,
 * and w more per row for less_own. */
Tensor op_pattern_means(Run *r, const PatternMeans *in, const Pattern *pattern);

/* Few queries that read all keys: pooling, latents, landmarks. */
typedef struct FewAttend {
    Tensor q, k, v; /* [h',l,d], [h',m,d], [h',m,e] */
    Tensor more;    /* [h',m,f] other values for the same weights; data NULL: none */
    double scale;
} FewAttend;
typedef struct FewResult {
    Tensor out, more; /* [h,l,e], [h,l,f] */
    Tensor lse;       /* f64 [h,l] */
    double key_length, value_length; /* the longest row of k, of v; NaN stays: for bounds on
                                        rounding, found as the rows pass by */
} FewResult;
/* The queries stay, the keys pass by once and are not packed; the keys are split among
 * threads.  Charges per cell 2d, 2(e + f) and 4. */
FewResult op_few_attend(Run *r, const FewAttend *in);

/* Attention inside groups.  Charges per (query entry, key entry) pair of a
 * group, masked or not, because that is what is computed: 2d, 2e, 5; keys that
 * query_skip leaves out are not mixed. */
GroupResult op_group_attend(Run *r, const GroupAttend *g);
/* Whether keys and values may lie in two tensors each, where no rule removes a cell. */
bool op_group_takes_more(const Run *r);

/* A learned mask M_ij over the cells of [n,m]: a number for each distance |i-j|, or made from a
 * logit x of the cell, 1 where x >= 0, or 1 / (1 + exp(-x / tau)). */
typedef struct RowMask {
    int64_t n, m;
    Tensor  distance;    /* f64 [h',>= n and m] M itself; data NULL: from logits */
    Tensor  logits;      /* f32 [h',n,m]; data NULL: a cell's logit is its score */
    Tensor  plus, minus; /* f32 as logits, noise added and subtracted; or data NULL */
    bool    symmetric;   /* cell (i,j) has the numbers of (j,i) where j < i; n = m */
    bool    hard;
    double  tau;
    bool    borders;     /* first and last row and column are 1 */
    bool    no_diagonal; /* then the diagonal is 0 */
    bool    multiply;    /* weights by M; else hard: cells of 0 are absent, */
    double  penalty;     /* soft: scores less penalty (1 - M) */
} RowMask;

/* M of a cell with that score, and what a logit makes of it. */
double row_mask(const RowMask *mask, int64_t heads, int64_t head, int64_t i, int64_t j,
                double score);
double row_mask_of(const RowMask *mask, double x);

/* Attention a row at a time, in double, by a normaliser of each head's own. */
typedef struct RowAttend {
    Tensor        q, k, v;  /* [h,n,d], [h',m,d], [h',m,e] */
    double        scale;
    bool          causal;   /* keys j <= i + r->q_offset; the others are absent */
    const Entmax *form;     /* [h] */
    const RowMask *mask;      /* NULL: none */
    double        negligible; /* smaller weights, and those equal, are not counted */
    Tensor        trace;      /* f64 [h,n,steps] thresholds bisections try; data NULL: off */
} RowAttend;

typedef struct RowResult {
    Tensor out;        /* [h,n,e] */
    Tensor tau, total; /* f64 [h,n] an EntmaxRow each */
    Tensor support;    /* i32 [h,n] present keys with a weight above negligible */
} RowResult;

/* Charges per allowed cell 2d and by entmax_flops; 2e per counted weight. */
RowResult op_row_attend(Run *r, const RowAttend *in);
/* Keys that row i is allowed. */
int64_t row_attend_keys(const Run *r, const RowAttend *in, int64_t i);

/* Attention without a denominator: W_ij = 1 / (1 + exp(-(S_ij + bias_i))). */
typedef struct SigmoidAttend {
    AttendInput   in;
    const double *bias;   /* [n] */
    bool          causal; /* keys j <= i + r->q_offset; the others have no weight */
} SigmoidAttend;

typedef struct SigmoidResult {
    Tensor out; /* [h,n,e] */
    Tensor sum; /* [h,n] of the row's weights */
} SigmoidResult;

/* On the host, whatever the device, with a warning where that is another one.  Charges per allowed
 * cell as op_attend does. */
SigmoidResult op_sigmoid_attend(Run *r, const SigmoidAttend *at);
/* What op_sigmoid_attend calls. */
void cpu_sigmoid_attend(Run *r, const SigmoidAttend *at, SigmoidResult *out);
/* Keys that row i is allowed. */
int64_t sigmoid_keys(const Run *r, const SigmoidAttend *at, int64_t i);
/* Of a score with its bias, by the exponential of a negative number. */
double sigmoid_weight(double x);

/* c = alpha * op(a) op(b) + beta * c, per head; a,b [h',.,.], c [h,.,.].  All are
 * f32, or c is f64 and a and b are either: then all of it is in double.  Charges
 * 2 * rows * cols * inner per head to `charge`. */
void op_gemm(Run *r, Tensor a, bool ta, Tensor b, bool tb, double alpha, double beta, Tensor c,
             FlopClass charge);

/* c f64 [h,rows,cols] = alpha a b, a f32 [h',rows,inner], b f32 [h',inner,cols], for a long
 * inner axis: some hundred products are summed in float, these sums in double.  c is contiguous. */
void op_gemm_long(Run *r, Tensor a, Tensor b, double alpha, Tensor c, FlopClass charge);

/* f64 [h,L,L]: the Moore-Penrose inverse of a f64 [h,L,L]; singular values up to
 * rcond times the largest count as 0.  Overhead 24 L^3 per head: what textbooks
 * count for a singular value decomposition, and one product. */
Tensor op_pinv(Run *r, Tensor a, double rcond);

/* Attention over logits that are no product of queries and keys, as
 * synthesizers have.  A block of rows exists at a time, never n x n. */
typedef enum LogitKind {
    LOGITS_GIVEN,    /* left [h',>=n,>=m] holds them */
    LOGITS_UNIFORM,  /* as LOGITS_GIVEN drawn uniformly, but drawn again where needed */
    LOGITS_PRODUCT,  /* left [h',n,r] right [h',r,>=m] + bias [h',>=m], or right turned */
    LOGITS_FOLDED,   /* left[i, j mod a] right[i, floor(j/a)] with [h,n,a], [h,n,b] */
    LOGITS_TILED,    /* sum over t < ab of left[i, t mod a] right[j, floor(t/a)] */
} LogitKind;
typedef struct LogitAttend {
    LogitKind kind;
    Tensor    left, right;       /* f32 or f64 (LOGITS_GIVEN f32, LOGITS_FOLDED f64);
                                    products and sums are in double */
    Tensor    bias;              /* f32; data NULL: none */
    bool      turned;            /* LOGITS_PRODUCT: right is [h',>=m,r] */
    uint64_t  seed, stream;      /* LOGITS_UNIFORM: entry (i,j) of head t is number */
    double    bound;             /* (t n + i) m + j of the stream, in +-bound */
    int64_t   n;                 /* rows */
    Tensor    v;                 /* [h',m,e] */
    bool      causal;           /* row i sees columns up to i + offset */
    int64_t   offset;
} LogitAttend;
typedef struct LogitResult {
    Tensor out; /* [h,n,e] */
    Tensor lse; /* f64 [h,n] log of the sum of exp of the row's allowed logits */
} LogitResult;
/* Charges per allowed cell what a logit costs (0, 0, 2r, 1, 2ab) to score, 2e to
 * mix and 4 to overhead. */
LogitResult op_logit_attend(Run *r, const LogitAttend *in);
/* Logits of row i at columns start, start + step, ...: for readers. */
void logit_run(const LogitAttend *in, int64_t heads, int64_t head, int64_t i, int64_t start,
               int64_t count, int64_t step, double *out);
/* f32 [h,n,m]: the weights themselves, for views; counted nowhere. */
Tensor logit_weights(Run *r, const LogitAttend *in, Tensor lse);

/* y f64 [h,n,R] = x f32 [h' ,n,d] w[h' ,d,R], w f32 or f64, accumulated in double in
 * index order, the same way for every row.  Charges 2 n d R per head to overhead.  Discrete
 * decisions are taken on these. */
Tensor op_dots64(Run *r, Tensor x, Tensor w);
/* y f64 [1,n,R] = x f64 [1,n,d] w f64 [1,d,R], each sum in index order and beginning with
 * bias[R] (NULL: 0).  Charges no FLOPs: callers tile. */
void op_product64(Run *r, Tensor x, Tensor w, const float *bias, Tensor y);
/* (x - mean) / sqrt(variance + eps) * gain + bias of every row of x f32 [1,n,c], in double and
 * rounded at the end; gain, bias f32 [c] or NULL. */
typedef struct Standardised {
    Tensor       x;
    double       eps;
    const float *gain, *bias;
} Standardised;
/* f32 [1,n,R]: these rows times w f32 [1,c,R]. */
Tensor op_standardised_product(Run *r, const Standardised *in, Tensor w, FlopClass charge);
/* The largest length of a row of x f32 [h',n,d]; NaN stays.  Charges no FLOPs: bounds on
 * rounding ask it. */
double op_largest_norm(Run *r, Tensor x);
/* x f32 [..,width], contiguous, in place: GELU(x + bias[width]) in its tanh form (bias NULL:
 * none).  Charges no FLOPs. */
void op_gelu(Run *r, Tensor x, const float *bias);

/* Feature maps of kernel attention; attn/cpu/features.c has their formulas. */
typedef enum FeatureKind {
    FEATURE_POSITIVE,
    FEATURE_HYPERBOLIC,
    FEATURE_TRIG,
    FEATURE_RELU,
    /* of the vectors themselves, f = d */
    FEATURE_ELU,            /* x + 1, or alpha (e^x - 1) + 1 below 0 */
    FEATURE_RECTIFIED,      /* max(x, 0) */
    FEATURE_EXP,            /* e^x */
    FEATURE_SOFTMAX,        /* over the d features of a row */
    FEATURE_COLUMN_SOFTMAX, /* over the n rows, for each feature */
    /* amplitude times, of projections; wide only */
    FEATURE_SIN_COS,        /* sin y_1 .. sin y_M, cos y_1 .. cos y_M */
    FEATURE_ARC_COS,        /* max(y, 0) */
} FeatureKind;
typedef struct FeatureMap {
    FeatureKind kind;
    double      input_scale; /* x is multiplied by it first */
    double      eps;
    bool        stabilise;   /* subtract the maxima */
    bool        project;     /* false: of x itself, f = d */
    double      alpha;       /* FEATURE_ELU */
    double      amplitude;   /* FEATURE_SIN_COS, FEATURE_ARC_COS */
    bool        unit;        /* the same: divide x by |x| + norm_eps */
    double      norm_eps;
    /* In double, w and the result f64: for features whose sums cancel or span many
     * magnitudes.  Not FEATURE_ELU, FEATURE_RECTIFIED and FEATURE_COLUMN_SOFTMAX. */
    bool        wide;
} FeatureMap;

/* Attention through features; attn/cpu/recurrent/linear.c has the formulas. */
typedef enum LinearForm { LINEAR_AUTO, LINEAR_MATRIX, LINEAR_RECURRENT, LINEAR_CHUNKED }
    LinearForm;
typedef enum DenominatorForm {
    DENOMINATOR_GUARD,        /* z + 2 eps [|z| <= eps] */
    DENOMINATOR_ADD,          /* z + eps */
    DENOMINATOR_ADD_FEATURES, /* z + eps * sum of the query's features */
    DENOMINATOR_NONE,         /* 1: no division at all */
    DENOMINATOR_FLOOR,        /* max(z, eps) */
} DenominatorForm;
/* Features that are made where they are read, and kept nowhere. */
typedef struct FeatureSource {
    Tensor     x, w;
    FeatureMap map;
    Tensor     top; /* f64 [h]: the maximum of a head's keys, where the map subtracts one */
} FeatureSource;
typedef struct LinearAttend {
    FeatureSource   from_q, from_k; /* of fq or fk, where it has no data */
    Tensor          fq, fk, v; /* [h,n,f], [h,m,f], [h',m,e]; features f32, or both f64 */
    bool            wide;      /* features in double, chunked: v may be f64, and out is */
    Tensor          gates;     /* f64 [h,n] or absent: S <- g_i S + (1 - g_i) fk_i^T v_i, and
                                  z alike; causal and with f64 features only */
    bool            causal;
    LinearForm      form;
    int64_t         chunk;
    DenominatorForm denominator;
    double          eps;
} LinearAttend;
typedef struct LinearResult {
    Tensor out;         /* [h,n,e] */
    Tensor memory;      /* [h,f,e] final state S = FK^T V */
    Tensor denominator; /* [h,n] z before the guard */
    Tensor divisor;     /* f64 [h,n] what was divided by */
} LinearResult;
/* The CPU's linear_attend makes the features of keys and finds the maximum that is subtracted: all
 * keys are summed before a query is read.  So it does where views have the features in fk, too, for
 * the same bits. */
bool linear_finds_top(const LinearAttend *in);
/* Sets in->fq, or with `keys` in->fk: features [h,n,f] from x [h',n,d] and w [h',M,d]; of keys with
 * one maximum per head instead of one per row.  Overhead per head 2 n M d where projected, and n f
 * times 5; 3 of the vectors themselves, 4 of FEATURE_SIN_COS and FEATURE_ARC_COS.  Or, where no
 * view needs them and the back end can, their shape and source.  Then op_linear_attend charges
 * them, but for the projection of keys whose maximum must be known before. */
void op_linear_features(Run *r, LinearAttend *in, Tensor x, Tensor w, FeatureMap map, bool keys);
LinearResult op_linear_attend(Run *r, const LinearAttend *in);
/* The closed form of it with f features, added to `sum`; n, m and e are the run's.
 * Gates are not in it. */
Flops linear_attend_flops(const Run *r, int64_t f, bool causal, LinearForm form, int64_t chunk,
                          Flops sum);

/* One balancing step in place on log_p f64 [h,b,b]: rows (columns = false) or
 * columns have their log-sum-exp over allowed (u8 [b,b], data NULL: all)
 * entries subtracted; lines without an allowed entry are skipped.  Overhead 4
 * per entry. */
void op_sinkhorn(Run *r, Tensor log_p, Tensor allowed, bool columns);

/* Steps of both, rows and then columns, from L = log_p on.  Where every entry is allowed and they
 * lie near enough to each other, the first step makes powers of log_p, and steps make factors of
 * its rows and columns alone: P = e^L is then row_u e^(L_uv - max) column_v. */
typedef struct Balancing {
    Tensor log_p, allowed; /* as of op_sinkhorn; log_p is overwritten */
    Tensor row, column;    /* f64 [h,b] */
    bool   begun, powers;
} Balancing;

Balancing op_balance_begin(Run *r, Tensor log_p, Tensor allowed);
/* Overhead 8 per entry. */
void op_balance(Run *r, Balancing *b);
/* p f64 [h,b,b] = P, also log_p itself, which then ends the steps.  Charges nothing. */
void op_balance_shares(Run *r, const Balancing *b, Tensor p);

/* Fills y [h,rows*b,w], whose heads may lie further apart, with blocks of b tokens that are
 * mixed from those of x f32 [h',n,w]: block u is the sum over v of perm[u,v] (f64 [h,>=rows,nb])
 * times block v; behind the last token stands 0.  Overhead 2 rows nb b w per head. */
void op_mix_blocks(Run *r, Tensor perm, Tensor x, int64_t b, Tensor y);

/* Lambdas (attn/ops/lambdas.h), in double; the caller charges and counts traffic.  The first fills
 * lse and content, the second out f32 [h,n,e] or [1,n,h e]. */
struct Lambdas;
void op_lambda_content(Run *r, const struct Lambdas *l);
void op_lambda_apply(Run *r, const struct Lambdas *l, Tensor out);

/* Attention by a state that forgets (attn/ops/state.h). */
struct StateAttend;

/* What each back end provides.  Every function computes only; charging is done
 * by op_*.  They report failure through run_fail.  An entry that is NULL is not offered: a run
 * that asks for it fails as unsupported. */
struct Ops {
    const char *name; /* "cpu" */
    bool        joins_entries; /* entries takes steps */
    bool        joins_keys;    /* group_attend takes more_k and more_v */
    const ArenaSource *memory; /* what runs take their arenas from; NULL: the system */
    void (*prepare)(Run *r);   /* once the run's inputs are in that memory; not timed; or NULL */
    void (*wait)(Run *r, const char *reads); /* op_wait; NULL: operations are synchronous */
    void (*toward)(Run *r, const void *data, int64_t bytes); /* op_toward; NULL: it is there */
    /* op_balance takes steps of factors; or NULL, all three.  Powers of log_p, and columns of 1;
     * false: entries lie too far apart, and nothing is changed. */
    bool (*balance_powers)(Run *r, Balancing *b);
    void (*balance)(Run *r, Balancing *b);
    void (*balance_shares)(Run *r, const Balancing *b, Tensor *p);
    /* Each of those that follow is needed by some mechanism. */
    void (*attend)(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                   double *cells);
    void (*pattern_means)(Run *r, const PatternMeans *in, const Pattern *pattern, Tensor *y,
                          double *cells);
    void (*few_attend)(Run *r, const FewAttend *in, FewResult *out);
    void (*group_attend)(Run *r, const GroupAttend *g, GroupResult *out);
    void (*row_attend)(Run *r, const RowAttend *in, RowResult *out);
    void (*gemm)(Run *r, const Tensor *a, bool ta, const Tensor *b, bool tb, double alpha,
                 double beta, Tensor *c);
    void (*gemm_long)(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c);
    void (*softmax)(Run *r, const SoftmaxRows *in);
    void (*pinv)(Run *r, const Tensor *a, double rcond, Tensor *y);
    void (*logit_attend)(Run *r, const LogitAttend *in, LogitResult *out);
    void (*dots64)(Run *r, const Tensor *x, const Tensor *w, Tensor *y);
    void (*product64)(Run *r, const Tensor *x, const Tensor *w, const float *bias, Tensor *y);
    void (*standardised_product)(Run *r, const Standardised *in, const Tensor *w, Tensor *y);
    double (*largest_norm)(Run *r, const Tensor *x);
    void (*gelu)(Run *r, Tensor *x, const float *bias);
    void (*argmax)(Run *r, const Tensor *x, bool with_negative, Tensor *index);
    void (*top_k)(Run *r, const Tensor *x, int64_t k, Tensor *index);
    void (*nearest)(Run *r, const Nearest *in, Tensor *index);
    void (*best_rows)(Run *r, const ChoiceRows *x, const Tensor *y, int64_t k, Tensor *index);
    void (*codes)(Run *r, const Tensor *x, const Tensor *planes, bool bias, Tensor *code);
    void (*member_sums)(Run *r, const Tensor *x, const Tensor *index, bool unit, Tensor *sum);
    void (*nearest_codes)(Run *r, const Tensor *codes, const Tensor *centres, Tensor *cluster);
    void (*bit_sums)(Run *r, const Tensor *codes, const Tensor *cluster, Tensor *ones);
    void (*key_usage)(Run *r, const Tensor *q, const Tensor *k, double scale, bool causal,
                      Tensor *usage);
    void (*sort)(Run *r, const Tensor *key, Tensor *order);
    void (*normalise)(Run *r, const Tensor *x, int kind, double eps, Tensor *y);
    void (*features)(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map,
                     bool keys, Tensor *y);
    /* linear_attend makes features, with these maxima f64 [h] of projected keys; or NULL */
    void (*features_top)(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map,
                         Tensor *top);
    void (*linear_attend)(Run *r, const LinearAttend *in, LinearResult *out);
    void (*sinkhorn)(Run *r, Tensor *log_p, const Tensor *allowed, bool columns);
    void (*mix_blocks)(Run *r, const Tensor *perm, const Tensor *x, int64_t b, Tensor *y);
    void (*entries)(Run *r, const Entries *in);
    void (*standardise64)(Run *r, const Tensor *x, double eps, const Tensor *gain,
                          const Tensor *bias, Tensor *y);
    void (*tap_sums)(Run *r, const TapSums *in, Tensor *y);
    void (*turn_pairs)(Run *r, const TurnPairs *in, Tensor *y);
    void (*best_columns)(Run *r, const BestColumns *in, BestResult *out);
    void (*pair_dots)(Run *r, const Tensor *x, const Tensor *y, const Tensor *index,
                      Tensor *dots);
    void (*rounded_attend)(Run *r, const RoundedAttend *in);
    void (*tally)(Run *r, const Tensor *index, Tensor *count);
    void (*normalise64)(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y);
    void (*unit_rows)(Run *r, const Tensor *x, double eps, Tensor *y);
    void (*gather)(Run *r, const Tensor *x, const Tensor *index, Tensor *y);
    void (*scatter)(Run *r, const Tensor *x, const Tensor *index, Tensor *y);
    void (*merge_rows)(Run *r, const MergeRows *in);
    void (*sum_lists)(Run *r, const SumLists *in, Tensor *y);
    void (*pool_windows)(Run *r, const PoolWindows *in, Tensor *y);
    void (*lambda_content)(Run *r, const struct Lambdas *l);
    void (*lambda_apply)(Run *r, const struct Lambdas *l, Tensor *out);
    void (*state_attend)(Run *r, const struct StateAttend *in, Tensor *out);
    /* Takes about a second; nothing else should run meanwhile.  ops: this table. */
    bool (*ceilings)(const Ops *ops, Threads *threads, Ceilings *out, Error *err);
};

/* Adds to the current stage; for work a mechanism does in its own loops. */
void op_charge(Run *r, FlopClass charge, double flops);
void op_traffic(Run *r, double bytes_read, double bytes_written);

/* Score of one cell, in double accumulation: for readers and tests. */
double attend_score(const AttendInput *in, int64_t heads, int64_t head, int64_t i, int64_t j);
/* Row i of scores: x[j] of keys j < keys.  query: room for d numbers. */
void attend_scores(const AttendInput *in, int64_t heads, int64_t head, int64_t i, int64_t keys,
                   double *query, double *x);
/* x_j <- e^(x_j - the largest): weights before they are divided by their sum, which is returned. */
double attend_soften(double *x, int64_t count);
/* Scores of the cells (i, start), (i, start + step), ... in f32: for pictures. */
void attend_scores_run(const AttendInput *in, int64_t heads, int64_t head, int64_t i,
                       int64_t start, int64_t count, int64_t step, float *out);

#endif
