/* score.c -- scores of single cells and short runs of cells, for readers of views.
 *
 *     S[i,j] = scale (q_i . k_j + row term + column term) + distance[i - j + m - 1]
 *
 * attend_score accumulates in double and is what tests compare with;
 * attend_scores_run is for pictures of thousands of cells: 16 partial sums in
 * f32, which any compiler turns into vectors.
 */
#include "attn/ops.h"

#define PARTS 16

static double dot64(const float *a, const float *b, int64_t d)
{
    double sum = 0;

    for (int64_t t = 0; t < d; t++)
        sum += (double)a[t] * (double)b[t];
    return sum;
}

static inline __attribute__((always_inline)) float dot32(const float *a, const float *b, int64_t d)
{
    float   part[PARTS] = { 0 }, sum = 0;
    int64_t t = 0;

    for (; t + PARTS <= d; t += PARTS)
        for (int x = 0; x < PARTS; x++)
            part[x] += a[t + x] * b[t + x];
    for (int x = 0; x < PARTS / 2; x++)
        part[x] += part[x + PARTS / 2];
    for (int x = 0; x < PARTS / 2; x++)
        sum += part[x];
    for (; t < d; t++)
        sum += a[t] * b[t];
    return sum;
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
    if (!tensor_given(&term->table))
        return 0;
    return dot32(row_at(&term->side, head, heads, side),
                 row_at(&term->table, head, heads, term->index[entry]), d);
}

/* q against `count` keys, `apart` numbers from one to the next. */
static inline __attribute__((always_inline)) void dots(const float *q, const float *k,
                                                       int64_t apart, int64_t d, int64_t count,
                                                       float *out)
{
    for (int64_t x = 0; x < count; x++)
        out[x] = dot32(q, k + x * apart, d);
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

void attend_scores_run(const AttendInput *in, int64_t heads, int64_t head, int64_t i,
                       int64_t start, int64_t count, int64_t step, float *out)
{
    int64_t      d = in->q.shape[2], m = in->k.shape[1];
    const float *q = row_at(&in->q, head, heads, i);
    const float *k = tensor_head(&in->k, head, heads);
    const float *distance = tensor_given(&in->distance)
                                ? tensor_head(&in->distance, head, heads) : NULL;
    bool         terms = tensor_given(&in->row.table) || tensor_given(&in->col.table);
    float        scale = (float)in->scale;

    dots_of_cpu(q, k + start * in->k.stride[1], step * in->k.stride[1], d, count, out);
    for (int64_t x = 0; x < count; x++) {
        int64_t j = start + x * step, entry = i - j + m - 1;
        float   sum = out[x];

        if (terms)
            sum += term32(&in->row, head, heads, i, entry, d) +
                   term32(&in->col, head, heads, j, entry, d);
        out[x] = scale * sum + (distance ? distance[entry] : 0.0f);
        if (in->cell_term)
            out[x] += (float)in->cell_term(in->cell_context, head, i, j);
    }
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
