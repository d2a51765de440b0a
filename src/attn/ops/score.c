/* score.c -- scores of single cells and short runs of cells, for readers of views.
 *
 *     S[i,j] = scale (q_i . k_j + row term + column term) + distance[i - j + m - 1]
 *
 * attend_score accumulates in double and is what tests compare with;
 * attend_scores_run is for pictures and comparisons of thousands of cells: 16 partial
 * sums in f32, four keys at once, in vectors that every compiler knows.
 */
#include "attn/ops/ops.h"

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

/* The sums of four times PARTS numbers, added in the same order in each: the second half to the
 * first, and what that leaves one after the other. */
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

/* q against four keys, `apart` numbers from one to the next. */
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

static const float *row_at(const Tensor *t, int64_t head, int64_t heads, int64_t row)
{
    return (const float *)tensor_head(t, head, heads) + row * t->stride[1];
}

static double term64(const DistanceTerm *term, int64_t head, int64_t heads, int64_t side,
                     int64_t entry, int64_t d)
{
    if (!tensor_given(&term->table))
        return 0;
    return dot64(row_at(&term->side, head, heads, side),
                 row_at(&term->table, head, heads, term->index[entry]), d);
}

double attend_score(const AttendInput *in, int64_t heads, int64_t head, int64_t i, int64_t j)
{
    int64_t d = in->q.shape[2], entry = i - j + in->k.shape[1] - 1;
    double  sum = dot64(row_at(&in->q, head, heads, i), row_at(&in->k, head, heads, j), d);

    sum += term64(&in->row, head, heads, i, entry, d);
    sum += term64(&in->col, head, heads, j, entry, d);
    sum *= in->scale;
    if (tensor_given(&in->distance))
        sum += (double)((const float *)tensor_head(&in->distance, head, heads))[entry];
    if (in->cell_term)
        sum += in->cell_term(in->cell_context, head, i, j);
    return sum;
}

static float term32(const DistanceTerm *term, int64_t head, int64_t heads, int64_t side,
                    int64_t entry, int64_t d)
{
    float of[AT_ONCE];

    if (!tensor_given(&term->table))
        return 0;
    dots_of_four(row_at(&term->side, head, heads, side),
                 row_at(&term->table, head, heads, term->index[entry]), 0, d, of);
    return of[0];
}

/* q against `count` keys; each sum is the same whichever keys are beside it. */
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

/* The same sums to the last bit (nothing is contracted), in longer vectors. */
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

/* What a cell's position and its own term add to its product. */
static float more_of(const AttendInput *in, int64_t heads, int64_t head, int64_t i, int64_t j,
                     float dot)
{
    const float *distance = tensor_given(&in->distance)
                                ? tensor_head(&in->distance, head, heads) : NULL;
    int64_t      d = in->q.shape[2], entry = i - j + in->k.shape[1] - 1;

    dot += term32(&in->row, head, heads, i, entry, d) + term32(&in->col, head, heads, j, entry, d);
    dot = (float)in->scale * dot + (distance ? distance[entry] : 0.0f);
    return in->cell_term ? dot + (float)in->cell_term(in->cell_context, head, i, j) : dot;
}

void attend_scores_run(const AttendInput *in, int64_t heads, int64_t head, int64_t i,
                       int64_t start, int64_t count, int64_t step, float *out)
{
    const float *k = tensor_head(&in->k, head, heads);
    bool         plain = !tensor_given(&in->row.table) && !tensor_given(&in->col.table) &&
                 !tensor_given(&in->distance) && !in->cell_term;
    float        scale = (float)in->scale;

    dots_of_cpu(row_at(&in->q, head, heads, i), k + start * in->k.stride[1],
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
    /* Entry x of the part is the distance that entry x + move of the whole has. */
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
