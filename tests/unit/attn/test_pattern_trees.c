/* test_pattern_trees.c -- random expressions of patterns against booleans, cell by cell.
 *
 * Single primitives and single operators are the matter of test_pattern; here is what becomes of
 * many of them inside each other.  An expression that differs is made smaller, until none of its
 * parts and no smaller n differs, and printed.
 */

#include "attn/pattern/pattern.h"
#include "check.h"
#include "core/rng.h"

#define MOST  45
#define NODES 31
#define TREES 600

/* Operands come before their operators; the last node is the whole. */
typedef struct Node {
    char op; /* 0: a primitive */
    int  left, right;
    char primitive[32];
} Node;

typedef struct Tree {
    Node nodes[NODES];
    int  count;
} Tree;

typedef struct Cells {
    uint8_t at[MOST * MOST]; /* 0x80: allowed; and the bits */
} Cells;

static int64_t pick(Rng *rng, int64_t from, int64_t to)
{
    return from + (int64_t)rng_below(rng, (uint64_t)(to - from + 1));
}

static void random_primitive(Rng *rng, char *out)
{
    static const char *const forms[] = {
        "window(%d)", "window(%d,d=%d)", "stride(%d)", "block(%d)",    "log(%d)",
        "global(%d)", "band(-%d,%d)",    "chunk(%d)",  "local(%d,%d)", "causal",
        "self",       "full",            "none",       "summary(%d)",  "log(%d,%d)",
    };
    const char *form = forms[rng_below(rng, sizeof(forms) / sizeof(*forms))];
    int         a = (int)pick(rng, 1, 9), b = (int)pick(rng, 1, 5);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(out, 32, form, a, b);
#pragma GCC diagnostic pop
}

static int grow(Rng *rng, Tree *t, int depth)
{
    Node node = { 0 };

    if (depth == 0 || rng_below(rng, 4) == 0) {
        random_primitive(rng, node.primitive);
    } else {
        node.op = "+&-!"[rng_below(rng, 4)];
        node.left = grow(rng, t, depth - 1);
        node.right = node.op == '!' ? node.left : grow(rng, t, depth - 1);
    }
    t->nodes[t->count] = node;
    return t->count++;
}

static void write_node(const Tree *t, int at, char *out, size_t size)
{
    const Node *node = &t->nodes[at];
    char        left[1024], right[1024];

    if (!node->op) {
        snprintf(out, size, "%s", node->primitive);
        return;
    }
    write_node(t, node->left, left, sizeof(left));
    write_node(t, node->right, right, sizeof(right));
    if (node->op == '!')
        snprintf(out, size, "!(%.900s)", left);
    else
        snprintf(out, size, "(%.450s %c %.450s)", left, node->op, right);
}

/* Rows that are said to be alike are. */
static void check_alike(const Pattern *p, const char *expr, int64_t n, const Cells *cells)
{
    for (int64_t i = 0, end; i < n; i = end) {
        end = pattern_same_until(p, 0, i);
        CHECK(end > i && end <= n, "%s: row %d is alike until %d", expr, (int)i, (int)end);
        for (int64_t x = i + 1; x < end; x++)
            CHECK(!memcmp(cells->at + i * n, cells->at + x * n, (size_t)n),
                  "%s at n=%d: row %d is not as row %d", expr, (int)n, (int)x, (int)i);
    }
}

static void read_cells(const char *expr, int64_t n, Cells *cells)
{
    Arena     *arena = arena_new();
    Error      err = ERROR_INIT;
    Pattern   *p = pattern_parse(arena, (PatternShape){ .heads = 1, .n = n, .m = n }, expr, NULL,
                                 &err);
    PatternRow row = { 0 };

    CHECK(p, "%s at n=%d: %s", expr, (int)n, err.text);
    memset(cells->at, 0, sizeof(cells->at));
    for (int64_t i = 0; i < n; i++) {
        pattern_row(p, 0, i, &row);
        assert_false(row.failed);
        for (int64_t r = 0; r < row.count; r++)
            for (int64_t c = 0; c < row.runs[r].count; c++) {
                int64_t j = row.runs[r].start + c * row.runs[r].step;

                CHECK(j >= 0 && j < n, "%s: row %d has key %d", expr, (int)i, (int)j);
                CHECK(!cells->at[i * n + j], "%s: row %d has key %d twice", expr, (int)i, (int)j);
                cells->at[i * n + j] = 0x80 | row.runs[r].bits;
            }
    }
    check_alike(p, expr, n, cells);
    pattern_row_free(&row);
    arena_free(arena);
}

static uint8_t combined(char op, uint8_t x, uint8_t y)
{
    switch (op) {
    case '+': return x | y;
    case '&': return x && y ? x | y : 0;
    case '-': return y ? 0 : x;
    default: return x ? 0 : 0x80 | COMPONENT_OTHER;
    }
}

/* By booleans from the primitives up. */
static void dense_cells(const Tree *t, int at, int64_t n, Cells *cells)
{
    const Node *node = &t->nodes[at];
    Cells       right;

    if (!node->op) {
        read_cells(node->primitive, n, cells);
        return;
    }
    dense_cells(t, node->left, n, cells);
    dense_cells(t, node->right, n, &right);
    for (int64_t x = 0; x < n * n; x++)
        cells->at[x] = combined(node->op, cells->at[x], right.at[x]);
}

static bool agrees(const Tree *t, int at, int64_t n)
{
    char  expr[1024];
    Cells is, should;

    write_node(t, at, expr, sizeof(expr));
    read_cells(expr, n, &is);
    dense_cells(t, at, n, &should);
    return !memcmp(is.at, should.at, (size_t)(n * n));
}

/* The smallest part, then the smallest n, that still differs. */
static void tell_smallest(const Tree *t, int at, int64_t n)
{
    char expr[1024];
    bool smaller = true;

    while (smaller) {
        const Node *node = &t->nodes[at];
        int         part = !agrees(t, node->left, n) ? node->left : node->right;

        smaller = node->op && !agrees(t, part, n);
        at = smaller ? part : at;
    }
    for (int64_t less = 1; less < n; less++)
        n = agrees(t, at, less) ? n : less;
    write_node(t, at, expr, sizeof(expr));
    fail_msg("n=%d: %s is not what its parts say", (int)n, expr);
}

TEST(trees_of_operators_are_set_algebra)
{
    Rng rng = rng_named(1, "trees");

    for (int i = 0; i < TREES; i++) {
        Tree    t = { .count = 0 };
        int64_t n = pick(&rng, 1, MOST);
        int     all = grow(&rng, &t, 4);

        if (!agrees(&t, all, n))
            tell_smallest(&t, all, n);
    }
}

/* not (a or b) = not a and not b; a - b = a and not b: as sets, whatever bits say. */
TEST(laws_hold_between_expressions)
{
    static const char *const laws[][2] = {
        { "!(%s + %s)", "!(%s) & !(%s)" }, { "!(%s & %s)", "!(%s) + !(%s)" },
        { "%s - %s", "%s & !(%s)" },       { "%2$s + %1$s", "%s + %s" },
        { "%2$s & %1$s", "%s & %s" },
    };
    Rng rng = rng_named(2, "laws");

    for (int i = 0; i < 200; i++) {
        Tree    t = { .count = 0 };
        int64_t n = pick(&rng, 1, MOST);
        int     x = grow(&rng, &t, 2), y = grow(&rng, &t, 2);
        char    a[1024], b[1024], one[2200], other[2200];
        Cells   left, right;

        write_node(&t, x, a, sizeof(a));
        write_node(&t, y, b, sizeof(b));
        for (size_t law = 0; law < sizeof(laws) / sizeof(*laws); law++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(one, sizeof(one), laws[law][0], a, b);
            snprintf(other, sizeof(other), laws[law][1], a, b);
#pragma GCC diagnostic pop
            read_cells(one, n, &left);
            read_cells(other, n, &right);
            for (int64_t c = 0; c < n * n; c++)
                CHECK(!left.at[c] == !right.at[c], "n=%d: %s is not %s at cell %d", (int)n, one,
                      other, (int)c);
        }
    }
}

/* Blocks, and rows that are global, are known to be alike; with a band beside them none are. */
TEST(rows_of_blocks_are_alike)
{
    static const struct { const char *expr; int64_t from, until; } rows[] = {
        { "block(5)", 7, 10 },     { "tile(4, window(3)+global(1))", 5, 8 },
        { "full", 0, 33 },         { "tile(4, stride(2)) & block(6)", 13, 16 },
        { "cols([3,9])", 20, 33 }, { "!(block(8))", 16, 24 },
        { "rows([3,4])", 3, 5 },   { "block(5) + window(3)", 7, 8 },
        { "causal", 3, 4 },        { "summary(4)", 1, 33 },
    };

    for (size_t x = 0; x < sizeof(rows) / sizeof(*rows); x++) {
        Arena   *arena = arena_new();
        Error    err = ERROR_INIT;
        Cells    cells;
        Pattern *p = pattern_parse(arena, (PatternShape){ .heads = 1, .n = 33, .m = 33 },
                                   rows[x].expr, NULL, &err);

        CHECK(p, "%s: %s", rows[x].expr, err.text);
        assert_int_equal(pattern_same_until(p, 0, rows[x].from), rows[x].until);
        read_cells(rows[x].expr, 33, &cells);
        arena_free(arena);
    }
}

SUITE(NULL, NULL)
