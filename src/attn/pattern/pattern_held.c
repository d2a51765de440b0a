/* pattern_held.c -- the keys a decoder has in memory at each query, and why. */
#include <stdlib.h>
#include <string.h>

#include "attn/pattern/pattern_node.h"

enum { READ = 1, KEPT = 2, OWN = 4 };

/* why[j] of the keys up to i. */
static bool reasons(const Pattern *p, int64_t head, int64_t i, uint8_t *why)
{
    const int32_t *last = tensor_head(&p->tensor, head, p->shape.heads);
    PatternRow     read = { 0 };
    bool           ok;

    for (int64_t j = 0; j <= i; j++)
        why[j] = last[j] >= i ? KEPT : 0;
    pattern_row(p->x, head, i, &read);
    for (int64_t x = 0; x < read.count; x++)
        for (int64_t c = 0; c < read.runs[x].count; c++) {
            int64_t j = read.runs[x].start + c * read.runs[x].step;

            if (j < i)
                why[j] = READ;
        }
    why[i] = OWN;
    ok = !read.failed;
    pattern_row_free(&read);
    return ok;
}

static void row_held(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    uint8_t *why = i < p->a ? malloc((size_t)i + 1) : NULL;

    if (i >= p->a)
        return;
    if (!why || !reasons(p, head, i, why)) {
        row->failed = true;
        free(why);
        return;
    }
    for (int64_t j = 0, end; j <= i; j = end) {
        for (end = j + 1; end <= i && why[end] == why[j]; end++)
            ;
        if (why[j])
            runs_push(row, j, end - j, 1, why[j]);
    }
    free(why);
}

Pattern *pattern_held(Arena *a, PatternShape s, const Pattern *reads, const Tensor *last,
                      int64_t rows)
{
    Pattern *p = reads ? pattern_node(a, s, row_held, 0) : NULL;

    if (p) {
        p->x = reads;
        p->tensor = *last;
        p->per_head = pattern_per_head(reads);
        p->a = rows;
    }
    return p;
}
