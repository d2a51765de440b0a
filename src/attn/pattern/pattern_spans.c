/* pattern_spans.c -- each query sees as far as its own span: one or two runs a row. */
#include "attn/pattern/pattern_node.h"

static void row_spans(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const int32_t *reach = tensor_head(&p->tensor, head, p->shape.heads);
    int64_t        m = p->shape.m, far = reach[p->tensor.shape[1] > 1 ? i : 0], least = p->a;

    if (far < least)
        return;
    if (least == 0) {
        runs_push_range(row, i - far, i + far + 1, m, p->bits);
        return;
    }
    runs_push_range(row, i - far, i - least + 1, m, p->bits);
    runs_push_range(row, i + least, i + far + 1, m, p->bits);
}

Pattern *pattern_spans(Arena *a, PatternShape s, const Tensor *reach, int64_t least, uint8_t bits)
{
    Pattern *p = pattern_node(a, s, row_spans, bits);

    if (p) {
        p->tensor = *reach;
        p->per_head = reach->shape[0] > 1;
        p->a = least;
    }
    return p;
}
