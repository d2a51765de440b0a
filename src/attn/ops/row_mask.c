/* row_mask.c -- cells of a learned mask; see attn/ops/ops.h, RowMask. */
#include "attn/ops/ops.h"

#include <math.h>

static double number(const Tensor *t, int64_t heads, int64_t head, int64_t i, int64_t j)
{
    if (!t->data)
        return 0;
    return (double)((const float *)tensor_head(t, head, heads))[i * t->stride[1] + j];
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
        score = number(&mask->logits, heads, head, row, col);
    return row_mask_of(mask, score + (number(&mask->plus, heads, head, row, col) -
                                      number(&mask->minus, heads, head, row, col)));
}
