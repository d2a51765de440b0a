/* lines.c -- columns of each head's own, with diagonals or beside a prompt; see pattern.h.
 *
 * A row of lines is the merge of two increasing lists of keys: the columns, and the query less the
 * offsets, which are read from the largest down.
 */
#include "attn/pattern/node.h"

/* The run that the next key may join. */
typedef struct Open {
    int64_t start, count;
    uint8_t bits;
} Open;

static void close_run(PatternRow *row, Open *open)
{
    runs_push(row, open->start, open->count, 1, open->bits);
    open->count = 0;
}

static void add_key(PatternRow *row, Open *open, int64_t key, uint8_t bits)
{
    if (open->count && (open->bits != bits || key != open->start + open->count))
        close_run(row, open);
    if (!open->count)
        *open = (Open){ .start = key, .bits = bits };
    open->count++;
}

/* How many of the increasing numbers are at most `most`. */
static int64_t count_up_to(const int32_t *x, int64_t count, int64_t most)
{
    int64_t lo = 0, hi = count;

    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;

        if (x[middle] <= most)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static void row_lines(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Tensor  *offsets = p->table;
    const int32_t *col = tensor_head(&p->tensor, head, p->shape.heads);
    const int32_t *off = tensor_head(offsets, head, p->shape.heads);
    int64_t        cols = count_up_to(col, p->tensor.shape[1], i), c = 0;
    int64_t        left = count_up_to(off, offsets->shape[1], i);
    Open           open = { 0 };

    while (c < cols || left > 0) {
        int64_t column = c < cols ? col[c] : p->shape.m, diagonal = p->shape.m;
        uint8_t bits = 0;

        if (left > 0)
            diagonal = i - off[left - 1];
        if (column <= diagonal) {
            bits |= COMPONENT_GLOBAL;
            c++;
        }
        if (diagonal <= column) {
            bits |= COMPONENT_STRIDED;
            left--;
        }
        add_key(row, &open, min_i64(column, diagonal), bits);
    }
    close_run(row, &open);
}

Pattern *pattern_lines(Arena *a, PatternShape s, const Tensor *columns, const Tensor *offsets)
{
    bool     there = tensor_given(columns) && tensor_given(offsets);
    Tensor  *kept = there ? arena_alloc(a, 1, sizeof(*kept)) : NULL;
    Pattern *p = kept ? pattern_node(a, s, row_lines, 0) : NULL;

    if (!p)
        return NULL;
    *kept = *offsets;
    p->tensor = *columns;
    p->table = kept;
    p->per_head = columns->shape[0] > 1 || offsets->shape[0] > 1;
    return p;
}

/* After the prompt a row is the columns, then the keys from `near` on, which are later. */
static void row_prompt(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const int32_t *col = tensor_head(&p->tensor, head, p->shape.heads);
    int64_t        prompt = p->a, near = p->b;
    Open           open = { 0 };

    if (i < prompt) {
        runs_push(row, 0, i + 1, 1, COMPONENT_BLOCK);
        return;
    }
    for (int64_t c = 0; c < p->tensor.shape[1]; c++)
        add_key(row, &open, col[c], COMPONENT_OTHER);
    close_run(row, &open);
    runs_push(row, near, i + 1 - near, 1, COMPONENT_WINDOW);
}

Pattern *pattern_prompt(Arena *a, PatternShape s, int64_t prompt, const Tensor *columns,
                        int64_t near)
{
    Pattern *p = tensor_given(columns) ? pattern_node(a, s, row_prompt, 0) : NULL;

    if (!p)
        return NULL;
    p->a = prompt;
    p->b = near;
    p->tensor = *columns;
    p->per_head = columns->shape[0] > 1;
    return p;
}
