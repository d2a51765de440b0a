/* pattern_same.c -- tokens that carry the same number see each other.
 *
 *     (i, j) is in  <=>  t[i] = t[j]
 *
 * t names the document, segment or sentence of each token: packed sequences and
 * segments.  The positions of each number are kept once, as arithmetic runs, so
 * a document that is not torn apart is one run and the whole table is O(n).
 */
#include "attn/pattern/pattern_node.h"

#include <stdlib.h>

typedef struct SameRun {
    int32_t start, count, step;
} SameRun;

typedef struct SameTable {
    int32_t *group; /* [planes * n] of each token; numbered through all planes */
    int64_t *first; /* [groups + 1] first run of each group */
    SameRun *runs;  /* at most one a token */
    int64_t  groups, run_count;
} SameTable;

typedef struct Numbered {
    int64_t number;
    int32_t token;
} Numbered;

static int by_number(const void *a, const void *b)
{
    const Numbered *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static void row_same(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const SameTable *t = p->table;
    int64_t          plane = p->per_head ? head : 0;
    int32_t          group = t->group[plane * p->shape.n + i];

    for (int64_t r = t->first[group]; r < t->first[group + 1]; r++)
        runs_push(row, t->runs[r].start, t->runs[r].count, t->runs[r].step, p->bits);
}

/* How many of the increasing tokens at `at` stand at one distance. */
static int64_t progression(const Numbered *at, int64_t count)
{
    int64_t length = count < 2 ? count : 2;

    while (length < count && at[length].token - at[length - 1].token == at[1].token - at[0].token)
        length++;
    return length;
}

/* The runs of one group's tokens.  Two tokens far apart are better two runs: the
 * second may begin a longer one. */
static void add_group(SameTable *t, const Numbered *at, int64_t count)
{
    for (int64_t c = 0, length; c < count; c += length) {
        int32_t step = 1;

        length = progression(at + c, count - c);
        if (length > 1)
            step = at[c + 1].token - at[c].token;
        if (length == 2 && step > 1)
            length = step = 1;
        t->runs[t->run_count++] = (SameRun){ at[c].token, (int32_t)length, step };
    }
    t->first[++t->groups] = t->run_count;
}

static void add_plane(SameTable *t, int64_t plane, int64_t n, const int64_t *numbers,
                      Numbered *sorted)
{
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (Numbered){ numbers[i], (int32_t)i };
    qsort(sorted, (size_t)n, sizeof(*sorted), by_number);
    for (int64_t c = 0, end; c < n; c = end) {
        for (end = c; end < n && sorted[end].number == sorted[c].number; end++)
            t->group[plane * n + sorted[end].token] = (int32_t)t->groups;
        add_group(t, sorted + c, end - c);
    }
}

static SameTable *table_new(Arena *a, int64_t planes, int64_t n, const int64_t *numbers)
{
    SameTable *t = arena_zalloc(a, 1, sizeof(*t));
    Numbered  *sorted;
    ArenaMark  mark;

    if (!t)
        return NULL;
    t->group = arena_alloc(a, planes * n, sizeof(*t->group));
    t->first = arena_zalloc(a, planes * n + 1, sizeof(*t->first));
    t->runs = arena_alloc(a, planes * n, sizeof(*t->runs));
    mark = arena_mark(a);
    sorted = arena_alloc(a, n, sizeof(*sorted));
    if (!t->group || !t->first || !t->runs || !sorted)
        return NULL;
    for (int64_t plane = 0; plane < planes; plane++)
        add_plane(t, plane, n, numbers + plane * n, sorted);
    arena_release(a, mark);
    return t;
}

Pattern *pattern_same(Arena *a, PatternShape s, const Tensor *numbers)
{
    Pattern *p = numbers->data ? pattern_node(a, s, row_same, 0) : NULL;
    int64_t  planes = numbers->rank == 2 ? numbers->shape[0] : 1;

    if (!p)
        return NULL;
    p->table = table_new(a, planes, s.n, numbers->data);
    p->per_head = planes > 1;
    return p->table ? p : NULL;
}
