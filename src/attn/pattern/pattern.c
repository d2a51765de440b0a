/* pattern.c -- pattern nodes and their combination; see pattern.h.
 *
 * Each node evaluates one row by pushing runs on the row's stack (node.h).
 * Patterns without operands are in shapes.c, tables.c, lines.c, lasting.c and neighbours.c.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/pattern/node.h"

Pattern *pattern_node(Arena *a, PatternShape s, PatternRowFn row, uint8_t bits)
{
    Pattern *p = arena_zalloc(a, 1, sizeof(*p));

    if (p) {
        p->shape = s;
        p->row = row;
        p->bits = bits;
    }
    return p;
}

int64_t pattern_queries(const Pattern *p)
{
    return p->shape.n;
}

int64_t pattern_keys(const Pattern *p)
{
    return p->shape.m;
}

int64_t pattern_heads(const Pattern *p)
{
    return p->shape.heads;
}

bool pattern_per_head(const Pattern *p)
{
    return p->per_head;
}

Pattern *pattern_operand(const Pattern *p)
{
    Pattern *plain;

    memcpy(&plain, &p, sizeof(plain));
    return plain;
}

void pattern_row(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    row->count = 0;
    p->row(p, head, i, row);
    runs_tidy(row, 0);
}

#define FLAGS_AHEAD 128 /* rows that are looked at */

/* Operands are asked in turn: most patterns have one whose rows all differ. */
int64_t pattern_same_until(const Pattern *p, int64_t head, int64_t i)
{
    int64_t        end = i + 1, n = p->shape.n;
    const uint8_t *flags = p->table;

    switch (p->repeats) {
    case REPEATS_ALL: return n;
    case REPEATS_BLOCK: return min_i64(n, (i / p->a + 1) * p->a);
    case REPEATS_TILE: return min_i64(n, pattern_same_until(p->x, head, i / p->a) * p->a);
    case REPEATS_BY_HEAD: return pattern_same_until(p->parts[head % p->part_count], head, i);
    case REPEATS_FLAGS:
        while (end < min_i64(n, i + FLAGS_AHEAD) && flags[end] == flags[i])
            end++;
        return end;
    case REPEATS_OPERANDS:
        end = pattern_same_until(p->x, head, i);
        return end > i + 1 && p->y && p->y != p->x
                   ? min_i64(end, pattern_same_until(p->y, head, i)) : end;
    default: return end;
    }
}

uint8_t pattern_cell(const Pattern *p, int64_t head, int64_t i, int64_t j, bool *allowed)
{
    PatternRow row = { 0 };
    PatternRun cell = { .start = j, .count = 1, .step = 1 };
    uint8_t    bits = 0;

    *allowed = false;
    pattern_row(p, head, i, &row);
    for (int64_t r = 0; r < row.count && !row.failed && !*allowed; r++)
        if (runs_common(row.runs[r], cell).count) {
            *allowed = true;
            bits = row.runs[r].bits;
        }
    pattern_row_free(&row);
    return bits;
}

int64_t pattern_row_cells(const PatternRow *row)
{
    int64_t cells = 0;

    for (int64_t x = 0; x < row->count; x++)
        cells += row->runs[x].count;
    return cells;
}

int64_t pattern_count_before(const Pattern *p, int64_t end)
{
    PatternRow row = { 0 };
    int64_t    heads = p->per_head ? p->shape.heads : 1, total = 0;

    for (int64_t h = 0; h < heads && !row.failed; h++)
        for (int64_t i = 0; i < end && !row.failed; i++) {
            pattern_row(p, h, i, &row);
            total += pattern_row_cells(&row);
        }
    if (row.failed)
        total = -1;
    pattern_row_free(&row);
    return total < 0 || p->per_head ? total : total * p->shape.heads;
}

int64_t pattern_count(const Pattern *p)
{
    return pattern_count_before(p, p->shape.n);
}

/* ---- combination ----------------------------------------------------------- */

/* A node of shape s whose rows are made from those of x; NULL when x is. */
static Pattern *node_over(Arena *arena, PatternShape s, const Pattern *x, PatternRowFn row,
                          int64_t a, int64_t b)
{
    Pattern *p = x ? pattern_node(arena, s, row, 0) : NULL;

    if (p) {
        p->x = x;
        p->a = a;
        p->b = b;
        p->per_head = x->per_head;
    }
    return p;
}

Pattern *pattern_ruled(Pattern *p, uint8_t rule)
{
    if (p)
        p->rule = rule;
    return p;
}

Pattern *pattern_repeats(Pattern *p, uint8_t repeats)
{
    if (p)
        p->repeats = repeats;
    return p;
}

static Pattern *combine(Arena *a, Pattern *x, Pattern *y, PatternRowFn row, uint8_t rule)
{
    Pattern *p = x && y ? node_over(a, x->shape, x, row, 0, 0) : NULL;

    if (p) {
        p->rule = rule;
        p->repeats = REPEATS_OPERANDS;
        p->y = y;
        p->per_head = x->per_head || y->per_head;
    }
    return p;
}

static int64_t operands(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t middle;

    p->x->row(p->x, head, i, row);
    middle = row->count;
    p->y->row(p->y, head, i, row);
    return middle;
}

static void row_union(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t x = row->count;

    runs_union(row, x, operands(p, head, i, row));
}

/* The union of x and y - x, which are disjoint. */
static void row_beside(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    operands(p, head, i, row);
}

static void row_intersect(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t x = row->count;

    runs_intersect(row, x, operands(p, head, i, row));
}

static void row_difference(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t x = row->count;

    runs_difference(row, x, operands(p, head, i, row));
}

Pattern *pattern_union(Arena *a, Pattern *x, Pattern *y)
{
    bool     beside = x && y && y->row == row_difference && y->y == x;

    return combine(a, x, y, beside ? row_beside : row_union, RULE_UNION);
}

Pattern *pattern_intersect(Arena *a, Pattern *x, Pattern *y)
{
    return combine(a, x, y, row_intersect, RULE_INTERSECT);
}

static void row_complement(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t x = row->count;

    runs_push_range(row, 0, p->shape.m, p->shape.m, COMPONENT_OTHER);
    p->x->row(p->x, head, i, row);
    runs_difference(row, x, x + 1);
}

Pattern *pattern_complement(Arena *a, Pattern *x)
{
    return combine(a, x, x, row_complement, RULE_COMPLEMENT);
}

Pattern *pattern_difference(Arena *a, Pattern *x, Pattern *y)
{
    return combine(a, x, y, row_difference, RULE_DIFFERENCE);
}

static void row_marked(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t x = row->count;

    p->x->row(p->x, head, i, row);
    for (int64_t r = x; r < row->count && !row->failed; r++)
        row->runs[r].bits = p->bits;
}

Pattern *pattern_marked(Arena *a, Pattern *x, uint8_t bits)
{
    Pattern *p = combine(a, x, x, row_marked, RULE_SAME);

    if (p)
        p->bits = bits;
    return p;
}

/* ---- whole patterns --------------------------------------------------------- */

/* A block run covers b keys for each of its blocks; neighbouring blocks are one interval. */
static void push_blocks(PatternRow *row, PatternRun blocks, int64_t b, int64_t m)
{
    if (blocks.step == 1) {
        runs_push_range(row, blocks.start * b, (blocks.start + blocks.count) * b, m,
                        blocks.bits);
        return;
    }
    for (int64_t t = 0; t < blocks.count; t++) {
        int64_t at = (blocks.start + t * blocks.step) * b;

        runs_push_range(row, at, at + b, m, blocks.bits);
    }
}

static void row_tile(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t b = p->a, x = row->count, end;

    p->x->row(p->x, head, i / b, row);
    end = row->count;
    for (int64_t r = x; r < end && !row->failed; r++)
        push_blocks(row, row->runs[r], b, p->shape.m);
    runs_drop(row, x, end);
    runs_tidy(row, x);
}

Pattern *pattern_tile(Arena *a, PatternShape s, int64_t b, Pattern *x)
{
    return pattern_repeats(pattern_ruled(node_over(a, s, x, row_tile, b, 0), RULE_TILE),
                           REPEATS_TILE);
}

static void row_offset(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t x = row->count, at = i - p->a;

    if (at < 0 || at >= p->x->shape.n)
        return;
    p->x->row(p->x, head, at, row);
    for (int64_t r = x; r < row->count && !row->failed; r++)
        row->runs[r].start += p->b;
}

Pattern *pattern_offset(Arena *a, PatternShape s, int64_t rows, int64_t cols, Pattern *x)
{
    return node_over(a, s, x, row_offset, rows, cols);
}

Pattern *pattern_last_rows(Arena *a, PatternShape s, Pattern *x)
{
    return x ? pattern_ruled(pattern_offset(a, s, s.n - x->shape.n, 0, x), RULE_SAME) : NULL;
}

static void row_by_head(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Pattern *x = p->parts[head % p->part_count];

    x->row(x, head, i, row);
}

Pattern *pattern_by_head(Arena *a, PatternShape s, Pattern *const *xs, int64_t count)
{
    Pattern  *p = pattern_node(a, s, row_by_head, 0);
    Pattern **parts = arena_alloc(a, count, sizeof(*parts));

    if (!p || !parts)
        return NULL;
    for (int64_t t = 0; t < count; t++) {
        if (!xs[t])
            return NULL;
        parts[t] = xs[t];
        p->per_head |= xs[t]->per_head;
    }
    p->parts = parts;
    p->part_count = count;
    p->per_head |= count > 1 && s.heads > 1;
    return pattern_repeats(pattern_ruled(p, RULE_BY_HEAD), REPEATS_BY_HEAD);
}

static void row_finish(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t x = row->count;

    p->x->row(p->x, head, i, row);
    if (p->a) {
        int64_t y = row->count;

        runs_push_range(row, 0, i + p->shape.q_offset + 1, p->shape.m, 0);
        runs_intersect(row, x, y);
    }
    for (int64_t r = x; r < row->count && !row->failed; r++)
        if (!row->runs[r].bits)
            row->runs[r].bits = COMPONENT_OTHER;
}

Pattern *pattern_finish(Arena *a, PatternShape s, Pattern *x, bool causal)
{
    return pattern_repeats(pattern_ruled(node_over(a, s, x, row_finish, causal, 0), RULE_SAME),
                           causal ? REPEATS_NOT : REPEATS_OPERANDS);
}

/* ---- keys that a decoder holds at each query, and why -------------------------- */

enum { READ = 1, KEPT = 2, OWN = 4 };

/* Sets why[j] of the keys up to i; 0: not held. */
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
    Pattern *p = node_over(a, s, reads, row_held, rows, 0);

    if (p)
        p->tensor = *last;
    return p;
}

/* Tokens that carry the same number see each other.
 *
 *     (i, j) is in  <=>  t[i] = t[j]
 *
 * t names the document, segment or sentence of each token: packed sequences and
 * segments.  The positions of each number are stored once, as arithmetic runs, so
 * a contiguous document is one run, and the table is O(n).
 */

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

static int pattern_by_number(const void *a, const void *b)
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

/* How many of the increasing tokens at `at` are an arithmetic progression. */
static int64_t progression(const Numbered *at, int64_t count)
{
    int64_t length = count < 2 ? count : 2;

    while (length < count && at[length].token - at[length - 1].token == at[1].token - at[0].token)
        length++;
    return length;
}

/* The runs of the tokens of a group.  Two tokens that are not neighbours become two runs, since
 * the second may begin a longer one. */
static void pattern_add_group(SameTable *t, const Numbered *at, int64_t count)
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
    qsort(sorted, (size_t)n, sizeof(*sorted), pattern_by_number);
    for (int64_t c = 0, end; c < n; c = end) {
        for (end = c; end < n && sorted[end].number == sorted[c].number; end++)
            t->group[plane * n + sorted[end].token] = (int32_t)t->groups;
        pattern_add_group(t, sorted + c, end - c);
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
