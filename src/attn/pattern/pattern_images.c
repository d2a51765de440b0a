/* pattern_images.c -- patterns of sequences read as images: row = floor(i/width),
 * column = i mod width, the last row may be short. */
#include "attn/pattern/pattern_node.h"

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t at_most(int64_t x, PatternShape s)
{
    return least(x, s.n > s.m ? s.n : s.m);
}

/* All of the rows above the query's block row; in it, what is left of the block, and
 * of the block the pixels before. */
static void row_order(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t width = p->a, y = i / width, x = i % width, begin = row->count;
    int64_t top = y / p->b * p->b, left = x / p->c * p->c, right = least(left + p->c, width);

    (void)head;
    runs_push_range(row, 0, top * width, p->shape.m, p->bits);
    for (int64_t line = top; line < top + p->b && line * width < p->shape.m; line++)
        runs_push_range(row, line * width,
                        line * width + (line < y    ? right
                                        : line == y ? x + 1
                                                    : left),
                        p->shape.m, p->bits);
    runs_tidy(row, begin);
}

Pattern *pattern_image_order(Arena *a, PatternShape s, int64_t width, int64_t hq, int64_t wq)
{
    Pattern *p = pattern_node(a, s, row_order, 0);

    if (p) {
        p->a = width;
        p->b = at_most(hq, s);
        p->c = at_most(wq, s);
    }
    return p;
}

static void row_product(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t width = p->a, m = p->shape.m, last = (m - 1) / width * width, begin = row->count;
    int64_t x = i % width, most = p->c ? x + 1 : width;

    (void)head;
    if (!p->b && i >= last) /* the corner is in the query's own, short row */
        most = least(most, m - last);
    for (int64_t line = 0; line < m && (!p->c || line <= i); line += width)
        if (!p->b || line + x < m) /* the corner is in the key's row */
            runs_push_range(row, line, line + most, m, p->bits);
    runs_tidy(row, begin);
}

Pattern *pattern_image_product(Arena *a, PatternShape s, int64_t width, bool corner_row,
                               bool causal)
{
    Pattern *p = pattern_node(a, s, row_product, COMPONENT_OTHER);

    if (p) {
        p->a = width;
        p->b = corner_row;
        p->c = causal;
    }
    return p;
}

static void row_grid(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t width = p->a, m = p->shape.m, y = i / width, x = i % width, begin = row->count;
    int64_t left = x > p->c ? x - p->c : 0, right = least(x + p->c + 1, width);

    (void)head;
    for (int64_t line = y > p->b ? y - p->b : 0; line <= y + p->b && line * width < m; line++)
        runs_push_range(row, line * width + left, line * width + right, m, p->bits);
    runs_tidy(row, begin);
}

Pattern *pattern_grid(Arena *a, PatternShape s, int64_t width, int64_t rows, int64_t cols,
                      uint8_t bits)
{
    Pattern *p = pattern_node(a, s, row_grid, bits);

    if (p) {
        p->a = width;
        p->b = at_most(rows, s);
        p->c = at_most(cols, s);
    }
    return p;
}
