/* score.c -- scores of single cells and short runs of cells, for readers of views.
 *
 *     S[i,j] = cap(scale (q_i . k_j + row term + column term)) + distance[i - j + m - 1]
 *
 * attend_score accumulates in double; tests compare with it.  attend_scores_run is for pictures
 * and comparisons of thousands of cells: 16 partial sums in f32, four keys at once, in vector
 * types of gcc and clang.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/ops/dense.h"
#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#define PARTS 16

static double dot64(const float *a, const float *b, int64_t d)
{
    double sum = 0;

    for (int64_t t = 0; t < d; t++)
        sum += (double)a[t] * (double)b[t];
    return sum;
}

/* The partial sums of a key, and the sums of four. */
typedef float Parts __attribute__((vector_size(PARTS * sizeof(float)), aligned(sizeof(float)),
                                   may_alias));
typedef float Four __attribute__((vector_size(PARTS / 4 * sizeof(float)), aligned(sizeof(float)),
                                  may_alias));

#define INLINE static inline __attribute__((always_inline))
#define PICK __builtin_shufflevector
#define AT_ONCE 4 /* keys */

/* The sums of four vectors, each added in the same order: the second half to the first, then the
 * eight results one after the other. */
INLINE Four sums_of(Parts a, Parts b, Parts c, Parts d)
{
    Parts ab = PICK(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               PICK(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    Parts cd = PICK(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               PICK(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    Four  sum = PICK(ab, cd, 0, 8, 16, 24);

    sum += PICK(ab, cd, 1, 9, 17, 25);
    sum += PICK(ab, cd, 2, 10, 18, 26);
    sum += PICK(ab, cd, 3, 11, 19, 27);
    sum += PICK(ab, cd, 4, 12, 20, 28);
    sum += PICK(ab, cd, 5, 13, 21, 29);
    sum += PICK(ab, cd, 6, 14, 22, 30);
    return sum + PICK(ab, cd, 7, 15, 23, 31);
}

/* Products of q with four keys, `apart` numbers from one to the next. */
INLINE void dots_of_four(const float *q, const float *k, int64_t apart, int64_t d, float *out)
{
    Parts   a = { 0 }, b = { 0 }, c = { 0 }, e = { 0 };
    int64_t t = 0;

    for (; t + PARTS <= d; t += PARTS) {
        Parts x = *(const Parts *)(q + t);

        a += x * *(const Parts *)(k + t);
        b += x * *(const Parts *)(k + apart + t);
        c += x * *(const Parts *)(k + 2 * apart + t);
        e += x * *(const Parts *)(k + 3 * apart + t);
    }
    *(Four *)out = sums_of(a, b, c, e);
    for (; t < d; t++)
        for (int x = 0; x < AT_ONCE; x++)
            out[x] += q[t] * k[x * apart + t];
}

static double term64(const DistanceTerm *term, int64_t head, int64_t heads, int64_t side,
                     int64_t entry, int64_t d)
{
    if (!tensor_given(&term->table))
        return 0;
    return dot64(tensor_row_f32(&term->side, head, heads, side),
                 tensor_row_f32(&term->table, head, heads, term->index[entry]), d);
}

/* cap(x): x itself where there is no cap. */
static double capped(const AttendInput *in, double x)
{
    return in->softcap > 0 ? in->softcap * tanh(x / in->softcap) : x;
}

double attend_score(const AttendInput *in, int64_t heads, int64_t head, int64_t i, int64_t j)
{
    int64_t d = in->q.shape[2], entry = i - j + in->k.shape[1] - 1;
    double  distance = 0;
    double  sum = dot64(tensor_row_f32(&in->q, head, heads, i),
                        tensor_row_f32(&in->k, head, heads, j), d);

    sum += term64(&in->row, head, heads, i, entry, d);
    sum += term64(&in->col, head, heads, j, entry, d);
    sum *= in->scale;
    if (tensor_given(&in->distance))
        distance = (double)((const float *)tensor_head(&in->distance, head, heads))[entry];
    sum = in->distance_capped ? capped(in, sum + distance) : capped(in, sum) + distance;
    if (in->cell_term)
        sum += in->cell_term(in->cell_context, head, i, j);
    return sum;
}

void attend_scores(const AttendInput *in, int64_t heads, int64_t head, int64_t i, int64_t keys,
                   double *query, double *x)
{
    const float *q = tensor_row_f32(&in->q, head, heads, i);

    if (attend_has_terms(in)) {
        for (int64_t j = 0; j < keys; j++)
            x[j] = attend_score(in, heads, head, i, j);
        return;
    }
    for (int64_t t = 0; t < in->q.shape[2]; t++)
        query[t] = in->scale * (double)q[t];
    kernel_at(0)->dots_wide(query, tensor_row_f32(&in->k, head, heads, 0), in->k.stride[1], keys,
                            in->q.shape[2], x);
}

double attend_soften(double *x, int64_t count)
{
    return kernel_at(0)->soften64(x, count, kernel_at(0)->largest64(x, count));
}

static float term32(const DistanceTerm *term, int64_t head, int64_t heads, int64_t side,
                    int64_t entry, int64_t d)
{
    float of[AT_ONCE];

    if (!tensor_given(&term->table))
        return 0;
    dots_of_four(tensor_row_f32(&term->side, head, heads, side),
                 tensor_row_f32(&term->table, head, heads, term->index[entry]), 0, d, of);
    return of[0];
}

/* Products of q with `count` keys; each sum does not depend on the keys beside it. */
INLINE void dots(const float *q, const float *k, int64_t apart, int64_t d, int64_t count,
                 float *out)
{
    int64_t x = 0;

    for (; x + AT_ONCE <= count; x += AT_ONCE)
        dots_of_four(q, k + x * apart, apart, d, out + x);
    for (; x < count; x++) {
        float of[AT_ONCE];

        dots_of_four(q, k + x * apart, 0, d, of);
        out[x] = of[0];
    }
}

static void dots_plain(const float *q, const float *k, int64_t apart, int64_t d, int64_t count,
                       float *out)
{
    dots(q, k, apart, d, count, out);
}

/* The same bits as dots_plain (nothing is contracted), in longer vectors. */
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void dots_avx512(const float *q, const float *k,
                                                           int64_t apart, int64_t d,
                                                           int64_t count, float *out)
{
    dots(q, k, apart, d, count, out);
}

__attribute__((target("avx2"))) static void dots_avx2(const float *q, const float *k,
                                                      int64_t apart, int64_t d, int64_t count,
                                                      float *out)
{
    dots(q, k, apart, d, count, out);
}
#endif

static void dots_of_cpu(const float *q, const float *k, int64_t apart, int64_t d, int64_t count,
                        float *out)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        dots_avx512(q, k, apart, d, count, out);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        dots_avx2(q, k, apart, d, count, out);
        return;
    }
#endif
    dots_plain(q, k, apart, d, count, out);
}

/* The score of a cell: its product, scaled, with the terms of position and cell. */
static float more_of(const AttendInput *in, int64_t heads, int64_t head, int64_t i, int64_t j,
                     float dot)
{
    const float *distance = tensor_given(&in->distance)
                                ? tensor_head(&in->distance, head, heads) : NULL;
    int64_t      d = in->q.shape[2], entry = i - j + in->k.shape[1] - 1;
    float        more = distance ? distance[entry] : 0.0f;

    dot += term32(&in->row, head, heads, i, entry, d) + term32(&in->col, head, heads, j, entry, d);
    dot *= (float)in->scale;
    if (in->softcap > 0)
        dot = in->distance_capped ? (float)capped(in, (double)(dot + more))
                                  : (float)capped(in, (double)dot) + more;
    else
        dot += more;
    return in->cell_term ? dot + (float)in->cell_term(in->cell_context, head, i, j) : dot;
}

void attend_scores_run(const AttendInput *in, int64_t heads, int64_t head, int64_t i,
                       int64_t start, int64_t count, int64_t step, float *out)
{
    const float *k = tensor_head(&in->k, head, heads);
    bool         plain = !attend_has_terms(in);
    float        scale = (float)in->scale;

    dots_of_cpu(tensor_row_f32(&in->q, head, heads, i), k + start * in->k.stride[1],
                step * in->k.stride[1], in->q.shape[2], count, out);
    for (int64_t x = 0; plain && x < count; x++)
        out[x] *= scale;
    for (int64_t x = 0; !plain && x < count; x++)
        out[x] = more_of(in, heads, head, i, start + x * step, out[x]);
}

AttendInput attend_input_part(const AttendInput *in, int64_t first_q, int64_t queries,
                              int64_t first_k, int64_t keys)
{
    AttendInput part = *in;
    /* Entry x of the part has the distance of entry x + move of the whole. */
    int64_t move = first_q + (in->k.shape[1] - first_k - keys);

    part.q = tensor_rows(in->q, first_q, queries);
    part.k = tensor_rows(in->k, first_k, keys);
    part.v = tensor_rows(in->v, first_k, keys);
    part.raw_q = tensor_rows(in->raw_q, first_q, queries);
    part.raw_k = tensor_rows(in->raw_k, first_k, keys);
    if (tensor_given(&in->distance)) {
        part.distance.data = tensor_f32(&in->distance) + move;
        part.distance.shape[1] = queries + keys - 1;
    }
    if (tensor_given(&in->row.table)) {
        part.row.side = tensor_rows(in->row.side, first_q, queries);
        part.row.index += move;
    }
    if (tensor_given(&in->col.table)) {
        part.col.side = tensor_rows(in->col.side, first_k, keys);
        part.col.index += move;
    }
    if (tensor_given(&in->value.table))
        part.value.index += move;
    return part;
}

/* Cells of a learned mask; see attn/ops/ops.h, RowMask. */

/* 0 where the tensor is absent. */
static double score_number(const Tensor *t, int64_t heads, int64_t head, int64_t i, int64_t j)
{
    return t->data ? tensor_float(t, head, heads, i, j) : 0;
}

double row_mask_of(const RowMask *mask, double x)
{
    if (mask->hard)
        return x >= 0;
    return 1 / (1 + exp(-x / mask->tau));
}

double row_mask(const RowMask *mask, int64_t heads, int64_t head, int64_t i, int64_t j,
                double score)
{
    int64_t apart = i < j ? j - i : i - j;
    bool    swap = mask->symmetric && j < i;
    int64_t row = swap ? j : i, col = swap ? i : j;

    if (mask->no_diagonal && i == j)
        return 0;
    if (mask->borders && (i == 0 || i == mask->n - 1 || j == 0 || j == mask->m - 1))
        return 1;
    if (mask->distance.data)
        return ((const double *)tensor_head(&mask->distance, head, heads))[apart];
    if (mask->logits.data)
        score = score_number(&mask->logits, heads, head, row, col);
    return row_mask_of(mask, score + (score_number(&mask->plus, heads, head, row, col) -
                                      score_number(&mask->minus, heads, head, row, col)));
}

/* An lse up to this is exact to 1e-6.  That of usual scores over a million keys is smaller, so
 * pictures of these do not sum rows. */
#define FINE 16
/* Scores whose bound (scale times the lengths of q and the longest k) is up to this are exact to
 * about 1e-6 even where their sum cancels.  The bound of usual queries and keys is sqrt(d), so
 * their rows are not summed either. */
#define SHORT 32
#define SUM_PIECE 256
#define ROUNDING 1e-6 /* relative, of scores and lse */

/* Weights are exp(score - base) / sum; sum 0: not known yet.  known[] holds the bits of both. */
typedef struct Softmax {
    float base, sum;
} Softmax;

static bool all_zero(Run *r, void *list, int64_t count, int64_t size)
{
    void *data = run_alloc(r, count, size);

    if (data)
        memset(data, 0, (size_t)(count * size));
    *(void **)list = data;
    return data != NULL;
}

RowSums row_sums_of(Run *r, int64_t heads, int inputs, const Pattern *cells)
{
    RowSums sums = { .cells = cells };

    if (cells && run_wants_views(r) && !run_failed(r) &&
        all_zero(r, &sums.longest, inputs * heads, sizeof(*sums.longest)))
        all_zero(r, &sums.known, heads * pattern_queries(cells), sizeof(*sums.known));
    return sums;
}

static float lse_of(const WeightRow *w)
{
    return tensor_f32(w->lse)[w->head * w->lse->stride[0] + w->i];
}

/* ---- bounds of scores --------------------------------------------------------- */

static double length_of(const float *x, int64_t d)
{
    double squares = 0;

    for (int64_t t = 0; t < d; t++)
        squares += (double)x[t] * (double)x[t];
    return sqrt(squares);
}

/* The length of the longest key of an input, never 0, which means not known yet.  Two threads may
 * both compute it, with the same result. */
static double longest_key(const WeightRow *w, const AttendInput *in, int input)
{
    _Atomic(float) *known = &w->sums->longest[input * w->heads + w->head];
    const float    *k = tensor_head(&in->k, w->head, w->heads);
    float           most = atomic_load_explicit(known, memory_order_relaxed);

    if (most > 0)
        return (double)most;
    most = FLT_MIN;
    for (int64_t j = 0; j < in->k.shape[1]; j++)
        most = fmaxf(most, (float)length_of(k + j * in->k.stride[1], in->k.shape[2]));
    atomic_store_explicit(known, most, memory_order_relaxed);
    return (double)most;
}

/* A bound of |score| over the row, and of all partial sums of a score. */
static double score_bound(const WeightRow *w)
{
    const AttendInput *in = w->in;
    const float       *q = tensor_row_f32(&in->q, w->head, w->heads, w->i);
    double             key = w->sums->own ? longest_key(w, w->sums->own, 0)
                                          : longest_key(w, in, w->input);

    if (w->sums->other)
        key = fmax(key, longest_key(w, w->sums->other, 1));
    return fabs(in->scale) * length_of(q, in->q.shape[2]) * key;
}

/* ---- sums --------------------------------------------------------------------- */

static void join_run(const WeightRow *w, const AttendInput *in, PatternRun cells, LogSum *own)
{
    float piece[SUM_PIECE];

    for (int64_t done = 0; done < cells.count; done += SUM_PIECE) {
        int64_t count = cells.count - done < SUM_PIECE ? cells.count - done : SUM_PIECE;

        attend_scores_run(in, w->heads, w->head, w->i, cells.start + done * cells.step, count,
                          cells.step, piece);
        for (int64_t c = 0; c < count; c++)
            log_sum_add(own, (double)piece[c]);
    }
}

static void join_cells(const WeightRow *w, const AttendInput *in, const Pattern *cells, LogSum *own)
{
    PatternRow row = { 0 };

    pattern_row(cells, pattern_per_head(cells) ? w->head : 0, w->at, &row);
    for (int64_t x = 0; !row.failed && x < row.count; x++)
        join_run(w, in, row.runs[x], own);
    pattern_row_free(&row);
}

/* lse itself where the cells cannot be summed, or where their sum differs from it by more than the
 * rounding of numbers of magnitude `size`: then the softmax was over more than these cells. */
static Softmax softmax_of_row(const WeightRow *w, float lse, double size)
{
    const RowSums *s = w->sums;
    LogSum         own = log_sum_new();

    join_cells(w, s->own ? s->own : w->in, s->cells, &own);
    if (s->other)
        join_cells(w, s->other, s->other_cells, &own);
    return fabs(log_sum_of(&own) - (double)lse) <= ROUNDING * size
               ? (Softmax){ (float)own.top, (float)own.sum }
               : (Softmax){ lse, 1 };
}

static Softmax softmax_known(const WeightRow *w, float lse)
{
    Softmax            found = { lse, 1 };
    _Atomic(uint64_t) *known;
    uint64_t           bits;

    if (!w->sums->known || !isfinite(lse))
        return found;
    known = &w->sums->known[w->head * pattern_queries(w->sums->cells) + w->at];
    bits = atomic_load_explicit(known, memory_order_relaxed);
    if (bits == 0) { /* two threads may both sum it, with the same result */
        double size = fabs((double)lse), far = score_bound(w);

        if (size > FINE || far > SHORT)
            found = softmax_of_row(w, lse, fmax(size, far));
        memcpy(&bits, &found, sizeof(bits));
        atomic_store_explicit(known, bits, memory_order_relaxed);
    }
    memcpy(&found, &bits, sizeof(found));
    return found;
}

/* Scores whose difference is below the resolution of lse (a float) have the same weight. */
void attend_weights_run(const WeightRow *w, int64_t start, int64_t count, int64_t step, float *out)
{
    Softmax of = softmax_known(w, lse_of(w));

    attend_scores_run(w->in, w->heads, w->head, w->i, start, count, step, out);
    kernel_at(0)->line(out, count, 1, -of.base);
    kernel_at(0)->exp_over(out, count, (double)of.sum);
}
