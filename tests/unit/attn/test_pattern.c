/* test_pattern.c -- patterns against the rules of the language, cell by cell.
 *
 * Each primitive is compared with its rule evaluated as written; each operator
 * with the same operator on booleans; for every n up to where all edge cases
 * have occurred.
 */

#include <pthread.h>

#include "attn/pattern/node.h"
#include "attn/pattern/pattern.h"
#include "check.h"
#include "core/rng.h"

#define MOST 41

typedef bool (*Rule)(int64_t i, int64_t j, int64_t n);

static int64_t dist(int64_t i, int64_t j)
{
    return i > j ? i - j : j - i;
}

static int64_t mod(int64_t a, int64_t b)
{
    return ((a % b) + b) % b;
}

static bool window5(int64_t i, int64_t j, int64_t n) { (void)n; return dist(i, j) <= 2; }
static bool window4(int64_t i, int64_t j, int64_t n) { (void)n; return dist(i, j) <= 2; }
static bool window0(int64_t i, int64_t j, int64_t n) { (void)n; return i == j; }
static bool dilated(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return mod(i - j, 3) == 0 && dist(i, j) <= 6;
}
static bool band(int64_t i, int64_t j, int64_t n) { (void)n; return j - i >= -4 && j - i <= -1; }
static bool block4(int64_t i, int64_t j, int64_t n) { (void)n; return i / 4 == j / 4; }
static bool chunk(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return i / 3 - 1 <= j / 3 && j / 3 <= i / 3 + 2;
}
static bool local(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return i / 5 * 5 - 2 <= j && j < i / 5 * 5 + 5 + 1;
}
static bool shifted(int64_t i, int64_t j, int64_t n) { return mod(i * 3 / n - 1, 3) == j * 3 / n; }
static bool stride(int64_t i, int64_t j, int64_t n) { (void)n; return mod(i - j, 4) == 0; }
static bool summary(int64_t i, int64_t j, int64_t n)
{
    (void)n, (void)i;
    return 7 - 2 * 2 <= j % 7 && j % 7 < 7 - 2;
}
static bool power(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }
static bool logs(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return dist(i, j) < 2 || power(dist(i, j) - 1);
}
static bool restarted(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    for (int64_t x = 0; x <= 6; x++)
        if ((x < 1 || power(x)) && dist(i, j) >= x && (dist(i, j) - x) % 6 == 0)
            return true;
    return false;
}
static bool repeats(int64_t i, int64_t j, int64_t n, int64_t local, int64_t period)
{
    for (int64_t x = 0; x <= period && x < n; x++)
        if ((x < local || power(x - local + 1)) && dist(i, j) >= x &&
            (dist(i, j) - x) % period == 0)
            return true;
    return false;
}
static bool wide(int64_t i, int64_t j, int64_t n) { return repeats(i, j, n, 5, 11); }
static bool all_local(int64_t i, int64_t j, int64_t n) { return repeats(i, j, n, 8, 4); }
static bool no_room(int64_t i, int64_t j, int64_t n) { return repeats(i, j, n, 3, 60); }
static bool global3(int64_t i, int64_t j, int64_t n) { (void)n; return i < 3 || j < 3; }
static bool ends(int64_t i, int64_t j, int64_t n)
{
    return i == 0 || j == 0 || i == n - 1 || j == n - 1;
}
static bool slices(int64_t i, int64_t j, int64_t n)
{
    (void)n, (void)i;
    return j >= 1 && j < 9 && (j - 1) % 3 == 0;
}
static bool image(int64_t i, int64_t j, int64_t n)
{
    int64_t r = i / 6 / 2 * 2, c = i % 6 / 3 * 3, y = j / 6, x = j % 6;

    (void)n;
    return r - 1 <= y && y < r + 2 + 1 && c - 1 <= x && x < c + 3 + 1;
}
static bool ring(int64_t i, int64_t j, int64_t n)
{
    return n - 1 > 1 && ((i == 1 && j == n - 1) || (j == 1 && i == n - 1));
}
static bool everything(int64_t i, int64_t j, int64_t n) { (void)i, (void)j, (void)n; return true; }
static bool nothing(int64_t i, int64_t j, int64_t n) { (void)i, (void)j, (void)n; return false; }
static bool diagonal(int64_t i, int64_t j, int64_t n) { (void)n; return i == j; }
static bool past(int64_t i, int64_t j, int64_t n) { (void)n; return j <= i; }
static bool tiles(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return dist(i / 3, j / 3) <= 1 || (i / 3 - j / 3) % 4 == 0;
}

static const struct {
    const char *expr;
    Rule        rule;
    uint8_t     bits;
} primitives[] = {
    { "full", everything, 32 }, { "none", nothing, 0 }, { "self", diagonal, 32 },
    { "causal", past, 0 }, { "window(5)", window5, 1 }, { "window(w=4)", window4, 1 },
    { "window(0)", window0, 1 }, { "window(5, d=3)", dilated, 8 }, { "band(-4,-1)", band, 1 },
    { "block(4)", block4, 16 }, { "row(4)", block4, 16 }, { "chunk(3,1,2)", chunk, 16 },
    { "local(5,2,1)", local, 16 }, { "shift(3,-1)", shifted, 16 }, { "stride(4)", stride, 8 },
    { "col(width=4)", stride, 8 }, { "summary(7,2,1)", summary, 8 }, { "log(2)", logs, 8 },
    { "log(1, 6)", restarted, 8 }, { "log(5, 11)", wide, 8 }, { "log(8, 4)", all_local, 8 },
    { "log(3, 60)", no_room, 8 }, { "global(3)", global3, 2 }, { "global([0,-1])", ends, 2 },
    { "cols([1:9:3])", slices, 2 }, { "image(6,2,3,1,1,below=1)", image, 16 },
    { "ring(first=1)", ring, 32 }, { "tile(3, window(3)+stride(4))", tiles, 0 },
};
#define PRIMITIVES (sizeof(primitives) / sizeof(*primitives))

static PatternShape shape_of(int64_t n)
{
    return (PatternShape){ .heads = 1, .n = n, .m = n };
}

static Pattern *parsed(Arena *a, int64_t n, const char *expr)
{
    Error    err = ERROR_INIT;
    Pattern *p = pattern_parse(a, shape_of(n), expr, NULL, &err);

    CHECK(p, "%s at n=%d: %s", expr, (int)n, err.text);
    return p;
}

/* The row as bits per cell (0x80: allowed); fails when a cell comes twice. */
static void row_cells(const Pattern *p, int64_t i, uint8_t *cells)
{
    PatternRow row = { 0 };

    memset(cells, 0, (size_t)pattern_keys(p));
    pattern_row(p, 0, i, &row);
    for (int64_t r = 0; r < row.count; r++)
        for (int64_t c = 0; c < row.runs[r].count; c++) {
            int64_t j = row.runs[r].start + c * row.runs[r].step;

            CHECK(j >= 0 && j < pattern_keys(p), "row %d: key %d", (int)i, (int)j);
            CHECK(!cells[j], "row %d: key %d comes twice", (int)i, (int)j);
            cells[j] = 0x80 | row.runs[r].bits;
        }
    assert_false(row.failed);
    pattern_row_free(&row);
}

TEST(primitives_follow_their_rules)
{
    uint8_t cells[MOST];

    for (size_t p = 0; p < PRIMITIVES; p++)
        for (int64_t n = 3; n < MOST; n++) {
            Arena   *a = arena_new();
            Pattern *x = parsed(a, n, primitives[p].expr);
            int64_t  count = 0;

            for (int64_t i = 0; i < n; i++) {
                row_cells(x, i, cells);
                for (int64_t j = 0; j < n; j++) {
                    bool in = primitives[p].rule(i, j, n);

                    count += in;
                    CHECK((cells[j] & 0x80) == (in ? 0x80 : 0), "%s n=%d (%d,%d): %d, rule says %d",
                          primitives[p].expr, (int)n, (int)i, (int)j, cells[j] >> 7, in);
                    CHECK(!in || !primitives[p].bits || (cells[j] & 0x3f) == primitives[p].bits,
                          "%s n=%d (%d,%d): bits %d", primitives[p].expr, (int)n, (int)i, (int)j,
                          cells[j] & 0x3f);
                }
            }
            assert_int_equal(pattern_count(x), count);
            arena_free(a);
        }
}

/* Keys of distances from the query stay so where there are more queries than keys, or fewer. */
TEST(distances_hold_where_queries_and_keys_differ)
{
    static const struct {
        const char *expr;
        Rule        rule;
    } by[] = { { "window(5)", window5 }, { "window(w=4)", window4 }, { "window(5, d=3)", dilated },
               { "band(-4,-1)", band },  { "stride(4)", stride },    { "log(2)", logs },
               { "log(1, 6)", restarted }, { "log(5, 11)", wide },   { "log(8, 4)", all_local },
               { "log(3, 60)", no_room } };
    uint8_t cells[MOST];

    for (size_t p = 0; p < sizeof(by) / sizeof(*by); p++)
        for (int64_t shape = 0; shape < 64; shape++) {
            Arena   *a = arena_new();
            int64_t  n = 3 + shape / 8 * 5, m = 3 + shape % 8 * 5;
            Pattern *x = pattern_parse(a, (PatternShape){ .heads = 1, .n = n, .m = m }, by[p].expr,
                                       NULL, NULL);

            assert_non_null(x);
            for (int64_t i = 0; i < n; i++) {
                row_cells(x, i, cells);
                for (int64_t j = 0; j < m; j++)
                    CHECK(!!cells[j] == by[p].rule(i, j, n > m ? n : m), "%s n=%d m=%d (%d,%d)",
                          by[p].expr, (int)n, (int)m, (int)i, (int)j);
            }
            arena_free(a);
        }
}

/* The result of an operator for two cells, bits included. */
static uint8_t combined(char op, uint8_t x, uint8_t y)
{
    switch (op) {
    case '+': return x | y;
    case '&': return x && y ? x | y : 0;
    default: return y ? 0 : x;
    }
}

static void check_operator(int64_t n, const char *x, char op, const char *y)
{
    Arena   *a = arena_new();
    char     expr[128];
    Pattern *px = parsed(a, n, x), *py = parsed(a, n, y), *both;
    uint8_t  cx[MOST], cy[MOST], cells[MOST];

    snprintf(expr, sizeof(expr), "%s %c %s", x, op, y);
    both = parsed(a, n, expr);
    for (int64_t i = 0; i < n; i++) {
        row_cells(px, i, cx);
        row_cells(py, i, cy);
        row_cells(both, i, cells);
        for (int64_t j = 0; j < n; j++)
            CHECK(cells[j] == combined(op, cx[j], cy[j]), "%s n=%d (%d,%d): %02x, expected %02x",
                  expr, (int)n, (int)i, (int)j, cells[j], combined(op, cx[j], cy[j]));
    }
    arena_free(a);
}

TEST(operators_are_set_operations)
{
    for (size_t x = 0; x < PRIMITIVES; x++)
        for (size_t y = 0; y < PRIMITIVES; y++)
            for (const char *op = "+&-"; *op; op++)
                check_operator(37, primitives[x].expr, *op, primitives[y].expr);
}

/* x united with its complement: disjoint by construction, not compared again. */
TEST(what_is_outside_goes_beside)
{
    uint8_t cx[MOST], cy[MOST], cells[MOST];

    for (size_t k = 0; k < PRIMITIVES * PRIMITIVES; k++) {
        Arena   *a = arena_new();
        Pattern *x = parsed(a, 37, primitives[k / PRIMITIVES].expr);
        Pattern *y = parsed(a, 37, primitives[k % PRIMITIVES].expr);
        Pattern *all = pattern_union(a, x, pattern_difference(a, y, x));

        for (int64_t i = 0; i < 37; i++) {
            row_cells(x, i, cx);
            row_cells(y, i, cy);
            row_cells(all, i, cells);
            for (int64_t j = 0; j < 37; j++)
                assert_int_equal(cells[j], cx[j] ? cx[j] : cy[j]);
        }
        arena_free(a);
    }
}

TEST(complement_is_the_rest)
{
    uint8_t in[MOST], out[MOST];

    for (size_t p = 0; p < PRIMITIVES; p++) {
        Arena   *a = arena_new();
        char     expr[128];
        Pattern *x = parsed(a, 29, primitives[p].expr), *rest;

        snprintf(expr, sizeof(expr), "!%s", primitives[p].expr);
        rest = parsed(a, 29, expr);
        for (int64_t i = 0; i < 29; i++) {
            row_cells(x, i, in);
            row_cells(rest, i, out);
            for (int64_t j = 0; j < 29; j++)
                assert_int_equal(out[j], in[j] ? 0 : 0x80 | 32);
        }
        arena_free(a);
    }
}

TEST(finished_cells_have_a_bit_and_no_future)
{
    Arena   *a = arena_new();
    Pattern *p = pattern_finish(a, shape_of(20), parsed(a, 20, "causal + window(9)"), true);
    uint8_t  cells[MOST];

    for (int64_t i = 0; i < 20; i++) {
        row_cells(p, i, cells);
        for (int64_t j = 0; j < 20; j++)
            assert_int_equal(cells[j], j > i ? 0 : 0x80 | (i - j <= 4 ? 1 : 32));
    }
    arena_free(a);
}

TEST(heads_take_turns)
{
    Arena       *a = arena_new();
    Error        err = ERROR_INIT;
    PatternShape s = { .heads = 3, .n = 9, .m = 9 };
    Pattern     *p = pattern_parse(a, s, "self;full", NULL, &err);
    bool         in;

    assert_true(pattern_per_head(p));
    pattern_cell(p, 0, 1, 2, &in);
    assert_false(in);
    pattern_cell(p, 1, 1, 2, &in);
    assert_true(in);
    pattern_cell(p, 2, 1, 2, &in);
    assert_false(in);
    assert_int_equal(pattern_count(p), 9 + 81 + 9);
    arena_free(a);
}

static const struct {
    const char *expr, *says;
} mistakes[] = {
    { "", "offset 0" }, { "window", "needs its argument 'w'" }, { "window(5", "offset 8" },
    { "windw(5)", "nearest is 'window'" },
    { "window(5,1,2)", "one argument too many, it is window(w, d)" },
    { "global(0,1)", "it is global(g); several numbers for one are a list, [0,1]" },
    { "window(w=5,w=3)", "given twice" }, { "window(w=5,3)", "positional argument after" },
    { "window(-1)", "at least 0" }, { "block(0)", "at least 1" }, { "full;", "offset 5" },
    { "full full", "offset 5" }, { "full+", "offset 5" }, { "(full", "expected ')'" },
    { "global([99])", "outside the 10 positions" }, { "global(-1)", "at least 0" },
    { "global([1:5:0])", "step" }, { "random($t)", "$t is not given" },
    { "random($expr)", "belongs to a parameter" }, { "mask(3)", "must be a tensor" },
    { "summary(3,2,1)", "must not exceed the stride" }, { "tile(0,full)", "at least 1" },
    { "window(99999999999)", "too large" }, { "window(x)", "no argument 'x'" }, { "!", "offset 1" },
};

TEST(mistakes_are_told_with_their_place)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
        Arena *a = arena_new();
        Error  err = ERROR_INIT;

        assert_null(pattern_parse(a, shape_of(10), mistakes[i].expr, NULL, &err));
        assert_int_equal(err.code, ERR_PARAM);
        CHECK(strstr(err.text, mistakes[i].says) && strstr(err.text, "offset"), "'%s' says: %s",
              mistakes[i].expr, err.text);
        arena_free(a);
    }
}

TEST(deep_nesting_is_refused_not_fatal)
{
    Arena *a = arena_new();
    Error  err = ERROR_INIT;
    char   text[5001];

    memset(text, '(', 5000);
    text[5000] = '\0';
    assert_null(pattern_parse(a, shape_of(10), text, NULL, &err));
    memset(text, '!', 5000);
    assert_null(pattern_parse(a, shape_of(10), text, NULL, &err));
    arena_free(a);
}

static bool odd_only(void *context, int64_t i, int64_t j)
{
    (void)context, (void)i;
    return j >= 0 && j % 2 == 0;
}

TEST(random_tables_are_distinct_and_allowed)
{
    Arena       *a = arena_new();
    PatternShape s = { .heads = 2, .n = 30, .m = 30, .causal = true };
    Tensor       t = pattern_draw_random(a, s, 4, 9, "t", odd_only, NULL);

    for (int64_t row = 0; row < 60; row++) {
        const int32_t *keys = tensor_i32(&t) + row * 4;
        int64_t        candidates = (row % 30 + 1) / 2;

        for (int64_t c = 0; c < 4; c++) {
            assert_int_equal(keys[c] >= 0, c < candidates);
            if (keys[c] < 0)
                continue;
            assert_true(keys[c] <= row % 30 && keys[c] % 2 == 1);
            for (int64_t b = 0; b < c; b++)
                assert_int_not_equal(keys[b], keys[c]);
        }
    }
    arena_free(a);
}

/* The bound of the design: 64k x 64k without n x n storage. */
TEST(a_long_pattern_stays_small)
{
    Arena   *a = arena_new();
    Pattern *p = parsed(a, 65536, "window(513)+global(4)+stride(256)");

    assert_true(arena_used(a) < 1 << 20);
    assert_true(pattern_count(p) > INT64_C(33000000));
    arena_free(a);
}

/* A table of distances with rows and columns that are always in, against the rule. */
TEST(distances_follow_their_table)
{
    enum { N = 70 };
    Arena       *arena = arena_new();
    PatternShape s = { .heads = 2, .n = N, .m = N };
    uint8_t      on[2 * N], always[N] = { [0] = 1, [N - 1] = 1, [33] = 1 };
    Tensor       table = tensor_of(DT_U8, 2, (int64_t[]){ 2, N }, on);
    Rng          rng = rng_named(1, "distances");

    for (int x = 0; x < 2 * N; x++)
        on[x] = rng_below(&rng, 2) != 0;
    for (int way = 0; way < 2; way++) {
        Pattern *p = pattern_distances(arena, s, &table, way ? always : NULL);

        p = pattern_finish(arena, s, p, false);
        assert_true(pattern_per_head(p));
        for (int64_t x = 0; x < 2 * N * N; x++) {
            int64_t i = x / N % N, j = x % N, head = x / N / N;
            bool    in, want = on[head * N + (i < j ? j - i : i - j)];

            pattern_cell(p, head, i, j, &in);
            assert_int_equal(in, want || (way && (always[i] || always[j])));
        }
    }
    arena_free(arena);
}

/* Columns and distances of each head against the rule; neighbours that both allow are apart. */
TEST(lines_are_columns_and_distances)
{
    enum { N = 40, COUNT = 6 };
    Arena       *arena = arena_new();
    PatternShape s = { .heads = 2, .n = N, .m = N };
    int32_t      cols[2 * COUNT] = { 0, 1, 2, 9, 20, 39, 3, 4, 11, 12, 13, 30 };
    int32_t      offs[2 * COUNT] = { 0, 1, 5, 6, 7, 39, 0, 2, 3, 10, 11, 12 };
    Tensor       columns = tensor_of(DT_I32, 2, (int64_t[]){ 2, COUNT }, cols);
    Tensor       offsets = tensor_of(DT_I32, 2, (int64_t[]){ 2, COUNT }, offs);
    Pattern     *p = pattern_lines(arena, s, &columns, &offsets);

    for (int64_t x = 0; x < 2 * N * N; x++) {
        int64_t i = x / N % N, j = x % N, head = x / N / N;
        uint8_t want = 0;
        bool    in;
        uint8_t bits = pattern_cell(p, head, i, j, &in);

        for (int64_t c = head * COUNT; c < (head + 1) * COUNT && j <= i; c++) {
            want |= cols[c] == j ? COMPONENT_GLOBAL : 0;
            want |= offs[c] == i - j ? COMPONENT_STRIDED : 0;
        }
        assert_int_equal(in, want != 0);
        assert_int_equal(bits, want);
    }
    arena_free(arena);
}

/* A prompt, then each head's columns and what is near the prompt's end; against the rule. */
TEST(rows_after_a_prompt_see_columns_and_what_is_near)
{
    enum { N = 40, COUNT = 5, PROMPT = 20, NEAR = 17 };
    Arena       *arena = arena_new();
    PatternShape s = { .heads = 4, .n = N, .m = N };
    int32_t      cols[2 * COUNT] = { 0, 1, 2, 9, 16, 3, 5, 6, 11, 15 };
    Tensor       columns = tensor_of(DT_I32, 2, (int64_t[]){ 2, COUNT }, cols);
    Pattern     *p = pattern_prompt(arena, s, PROMPT, &columns, NEAR);

    assert_true(pattern_per_head(p));
    for (int64_t x = 0; x < 4 * N * N; x++) {
        int64_t i = x / N % N, j = x % N, head = x / N / N;
        uint8_t want = j > i ? 0 : i < PROMPT ? COMPONENT_BLOCK : j >= NEAR ? COMPONENT_WINDOW : 0;
        bool    in;
        uint8_t bits = pattern_cell(p, head, i, j, &in);

        for (int64_t c = head / 2 * COUNT; c < (head / 2 + 1) * COUNT && i >= PROMPT; c++)
            want |= cols[c] == j ? COMPONENT_OTHER : 0;
        assert_int_equal(in, want != 0);
        assert_int_equal(bits, want);
    }
    arena_free(arena);
}

/* Keys that stay to a query of their own, past places where the runs are stored; against the
 * rule. */
TEST(lasting_keys_stay_to_their_last_query)
{
    enum { N = 300, NEAR = 5 };
    Arena       *arena = arena_new();
    PatternShape s = { .heads = 4, .n = N, .m = N };
    int32_t      last[2 * N];
    Tensor       table = tensor_of(DT_I32, 2, (int64_t[]){ 2, N }, last);
    Rng          rng = rng_named(1, "lasting");
    Pattern     *p;

    for (int x = 0; x < 2 * N; x++)
        last[x] = x % 3 ? x % N - 1 + (int32_t)rng_below(&rng, x % 7 ? 9 : N) : N - 1;
    p = pattern_lasting(arena, s, &table, NEAR, COMPONENT_OTHER);
    assert_true(pattern_per_head(p));
    for (int64_t x = 0; x < 4 * N * N; x++) {
        int64_t i = x / N % N, j = x % N, head = x / N / N;
        bool    in;
        uint8_t bits = pattern_cell(p, head, i, j, &in);

        assert_int_equal(in, j <= i && i <= last[head / 2 * N + j]);
        assert_int_equal(bits, !in ? 0 : i - j < NEAR ? COMPONENT_WINDOW : COMPONENT_OTHER);
    }
    arena_free(arena);
}

/* What a cache does with a key at each step, of runs with gaps, against the rule;
 * cells of a band are slots, and the queries stand at the end. */
TEST(a_cache_has_new_keys_and_keys_that_leave)
{
    enum { N = 60, M = 75 };
    Arena       *arena = arena_new();
    PatternShape s = { .heads = 1, .n = N, .m = M, .q_offset = M - N };
    uint8_t      mask[N * M];
    Tensor       table = tensor_of(DT_U8, 2, (int64_t[]){ N, M }, mask);
    Rng          rng = rng_named(1, "cached");
    Pattern     *held, *p, *band = pattern_band(arena, s, -20, M, 1, COMPONENT_WINDOW);

    for (int x = 0; x < N * M; x++)
        mask[x] = rng_below(&rng, 3) > 0;
    held = pattern_intersect(arena, pattern_mask(arena, s, &table), band);
    held = pattern_union(arena, held, pattern_difference(arena, pattern_mask(arena, s, &table),
                         pattern_operand(band)));
    held = pattern_finish(arena, s, held, true);
    p = pattern_cached(arena, s, held, COMPONENT_WINDOW);
    for (int64_t x = 0; x < N * M; x++) {
        int64_t i = x / M, j = x % M, own = i + M - N;
        bool    in, now, then = true;
        uint8_t what = pattern_cell(held, 0, i, j, &now);
        uint8_t bits = pattern_cell(p, 0, i, j, &in), want;

        if (i + 1 < N)
            pattern_cell(held, 0, i + 1, j, &then);
        want = !now ? 0 : j == own ? CACHE_NEW : !then ? CACHE_LEAVES
               : what & COMPONENT_WINDOW ? CACHE_SLOT : CACHE_HELD;
        assert_int_equal(in, now);
        assert_int_equal(bits, want);
    }
    arena_free(arena);
}

static char succeeded;

/* Every second key cuts a run as long as the row. */
static void *cut_into_pieces(void *unused)
{
    enum { KEYS = 10000 };
    PatternRow row = { 0 }, both = { 0 };
    bool       good;

    (void)unused;
    runs_push(&row, 0, KEYS, 1, COMPONENT_WINDOW);
    for (int64_t j = 0; j < KEYS; j += 2) {
        runs_push(&row, j, 1, 1, COMPONENT_GLOBAL);
        runs_push(&both, j, 1, 1, COMPONENT_GLOBAL);
    }
    runs_difference(&row, 0, 1);
    runs_push(&both, 0, KEYS, 1, COMPONENT_WINDOW);
    runs_union(&both, 0, KEYS / 2);
    runs_tidy(&both, 0);
    good = pattern_row_cells(&row) == KEYS / 2 && pattern_row_cells(&both) == KEYS &&
           both.count == KEYS;
    pattern_row_free(&row);
    pattern_row_free(&both);
    return good ? &succeeded : NULL;
}

/* Too many pieces to call a function for each: the stack is the least that the program asks for. */
TEST(a_run_is_cut_into_very_many_pieces)
{
    pthread_attr_t little;
    pthread_t      thread;
    void          *good;

    assert_int_equal(pthread_attr_init(&little), 0);
    assert_int_equal(pthread_attr_setstacksize(&little, 256 << 10), 0);
    assert_int_equal(pthread_create(&thread, &little, cut_into_pieces, NULL), 0);
    assert_int_equal(pthread_join(thread, &good), 0);
    assert_non_null(good);
    pthread_attr_destroy(&little);
}

/* `count` keys of a row in any order, some twice, some unused. */
static void check_row_of_table(Rng *rng, int64_t count, int64_t most)
{
    Arena       *arena = arena_new();
    PatternShape shape = { .heads = 1, .n = 1, .m = most };
    Tensor       table = tensor_new(arena, DT_I32, 2, (int64_t[]){ 1, count });
    PatternRow   row = { 0 };
    bool        *in = arena_zalloc(arena, most, sizeof(*in));
    int64_t      distinct = 0, before = -1;

    for (int64_t c = 0; c < count; c++) {
        int32_t key = (int32_t)rng_below(rng, (uint64_t)(most + most / 50)) - (int32_t)(most / 50);

        tensor_i32(&table)[c] = key < 0 ? -1 : key;
        distinct += key >= 0 && !in[key];
        if (key >= 0)
            in[key] = true;
    }
    pattern_row(pattern_table(arena, shape, &table, COMPONENT_RANDOM), 0, 0, &row);
    assert_int_equal(pattern_row_cells(&row), distinct);
    for (int64_t r = 0; r < row.count; r++)
        for (int64_t j = row.runs[r].start; j < row.runs[r].start + row.runs[r].count; j++) {
            assert_true(in[j] && j > before);
            before = j;
        }
    pattern_row_free(&row);
    arena_free(arena);
}

TEST(a_row_of_a_table_is_its_set_of_keys)
{
    Rng rng = rng_named(3, "keys");

    check_row_of_table(&rng, 3000, 5000);
    for (int64_t count = 1; count <= 40; count++) { /* the fewest are sorted in another way */
        check_row_of_table(&rng, count, 50);
        check_row_of_table(&rng, count, 100000);
    }
}

SUITE(NULL, NULL)
