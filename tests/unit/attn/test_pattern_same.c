/* test_pattern_same.c -- same($t) against its rule, alone and with everything else. */

#include "attn/pattern/pattern.h"
#include "check.h"
#include "mech_fixture.h"

#define MOST 61

typedef struct Numbers {
    Tensor t, blocks;
} Numbers;

static Tensor lookup(void *context, const char *name)
{
    const Numbers *numbers = context;

    return !strcmp(name, "t") ? numbers->t : !strcmp(name, "b") ? numbers->blocks : (Tensor){ 0 };
}

static Pattern *parsed(Arena *a, PatternShape s, const char *text, Numbers *numbers, Error *err)
{
    PatternSource source = { .lookup = lookup, .context = numbers };

    return pattern_parse(a, s, text, &source, err);
}

/* Packed, scattered, periodic, single, equal, negative and huge numbers. */
static int64_t number_at(int kind, int64_t i)
{
    switch (kind) {
    case 0: return i / 7;
    case 1: return i % 3;
    case 2: return i * i % 11;
    case 3: return i;
    case 4: return -5;
    case 5: return (i / 4 % 2 ? INT64_MIN : INT64_MAX);
    default: return INT64_C(1) << (i % 5 * 12);
    }
}

#define KINDS 7

/* Facts about a cell: the numbers of its tokens are equal, those of its blocks are. */
typedef struct Cell {
    bool    same, block;
    int64_t i, j;
} Cell;

typedef bool (*Rule)(Cell c);

static bool alone(Cell c) { return c.same; }
static bool rest(Cell c) { return !c.same; }
static bool near(Cell c) { return c.same && llabs(c.i - c.j) <= 2; }
static bool others(Cell c) { return c.same && c.i != c.j; }
static bool minus(Cell c) { return (c.i - c.j) % 4 == 0 && !c.same; }
static bool tiled(Cell c) { return c.block; }
static bool both(Cell c) { return c.same || !c.block; }

static const struct {
    const char *expr;
    Rule        rule;
} rules[] = {
    { "same($t)", alone },
    { "!same($t)", rest },
    { "window(5) & same($t)", near },
    { "same($t) - self", others },
    { "stride(4) - same($t)", minus },
    { "tile(3, same($b))", tiled },
    { "same($t) + !tile(3, same($b))", both },
};

static void check_rule(size_t at, int kind, int64_t n)
{
    Arena       *a = arena_new();
    Error        err = ERROR_INIT;
    PatternShape s = { .heads = 1, .n = n, .m = n };
    int64_t      tokens[MOST], count = 0;
    int32_t      blocks[MOST];
    Numbers      numbers = { tensor_of(DT_I64, 1, &n, tokens),
                             tensor_of(DT_I32, 1, (int64_t[]){ (n + 2) / 3 }, blocks) };
    Pattern     *p;

    for (int64_t i = 0; i < n; i++) {
        tokens[i] = number_at(kind, i);
        blocks[i] = (int32_t)(i * i % 5);
    }
    p = parsed(a, s, rules[at].expr, &numbers, &err);
    CHECK(p, "%s: %s", rules[at].expr, err.text);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            Cell c = { tokens[i] == tokens[j], blocks[i / 3] == blocks[j / 3], i, j };
            bool in, want = rules[at].rule(c);

            pattern_cell(p, 0, i, j, &in);
            count += want;
            CHECK(in == want, "%s, numbers %d, n=%d (%d,%d): %d, rule says %d", rules[at].expr,
                  kind, (int)n, (int)i, (int)j, in, want);
        }
    assert_int_equal(pattern_count(p), count);
    arena_free(a);
}

TEST(tokens_with_one_number_see_each_other)
{
    static const int64_t sizes[] = { 1, 2, 3, 13, MOST };

    for (size_t at = 0; at < sizeof(rules) / sizeof(*rules); at++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
                check_rule(at, kind, sizes[s]);
}

TEST(a_mask_keeps_the_other_components)
{
    Arena       *a = arena_new();
    Error        err = ERROR_INIT;
    PatternShape s = { .heads = 1, .n = 9, .m = 9 };
    int32_t      tokens[9] = { 0, 0, 0, 1, 1, 1, 2, 2, 2 };
    Numbers      numbers = { .t = tensor_of(DT_I32, 1, &s.n, tokens) };
    Pattern     *near_global = parsed(a, s, "(window(3)+global(1)) & same($t)", &numbers, &err);
    Pattern     *only = pattern_finish(a, s, parsed(a, s, "same($t)", &numbers, &err), false);
    bool         in;

    assert_int_equal(pattern_cell(near_global, 0, 1, 2, &in), COMPONENT_WINDOW);
    assert_int_equal(pattern_cell(near_global, 0, 2, 0, &in), COMPONENT_GLOBAL);
    pattern_cell(near_global, 0, 2, 3, &in);
    assert_false(in);
    assert_int_equal(pattern_cell(only, 0, 4, 5, &in), COMPONENT_OTHER);
    arena_free(a);
}

TEST(heads_may_have_numbers_of_their_own)
{
    Arena       *a = arena_new();
    Error        err = ERROR_INIT;
    PatternShape s = { .heads = 3, .n = 20, .m = 20 };
    uint8_t      tokens[60];
    Numbers      numbers = { .t = tensor_of(DT_U8, 2, (int64_t[]){ 3, 20 }, tokens) };
    Pattern     *p;
    bool         in;

    for (int i = 0; i < 60; i++)
        tokens[i] = (uint8_t)(i % 20 / (1 + i / 20));
    p = parsed(a, s, "same($t)", &numbers, &err);
    assert_true(pattern_per_head(p));
    for (int64_t h = 0; h < 3; h++)
        for (int64_t i = 0; i < 20; i++)
            for (int64_t j = 0; j < 20; j++) {
                pattern_cell(p, h, i, j, &in);
                assert_int_equal(in, i / (1 + h) == j / (1 + h));
            }
    numbers.t = tensor_of(DT_U8, 2, (int64_t[]){ 1, 20 }, tokens);
    assert_false(pattern_per_head(parsed(a, s, "same($t)", &numbers, &err)));
    arena_free(a);
}

TEST(a_slip_is_told_with_what_and_where)
{
    static const struct {
        const char *expr, *says;
        DType       dtype;
        int         rank;
        int64_t     shape[3];
    } slips[] = {
        { "full & same($t)", "offset 12: same: $t: expected [8] or [2,8], it is [9]", DT_I32, 1,
          { 9 } },
        { "same($t)", "expected [8] or [2,8], it is [3,8]", DT_I64, 2, { 3, 8 } },
        { "same($t)", "it is [2,8,1]", DT_I64, 3, { 2, 8, 1 } },
        { "same($t)", "$t has dtype f32; expected whole numbers", DT_F32, 1, { 8 } },
        { "same($t)", "dtype f64", DT_F64, 1, { 8 } },
        { "tile(3, same($t))", "expected [3] or [2,3] (inside tile", DT_I32, 1, { 8 } },
        { "same(3)", "must be a tensor", DT_I32, 1, { 8 } },
        { "same($z)", "$z is not given", DT_I32, 1, { 8 } },
        { "same()", "needs its argument 't'", DT_I32, 1, { 8 } },
    };
    static double data[48];

    for (size_t i = 0; i < sizeof(slips) / sizeof(*slips); i++) {
        Arena       *a = arena_new();
        Error        err = ERROR_INIT;
        PatternShape s = { .heads = 2, .n = 8, .m = 8 };
        Numbers      numbers = { .t = tensor_of(slips[i].dtype, slips[i].rank, slips[i].shape,
                                                data) };

        assert_null(parsed(a, s, slips[i].expr, &numbers, &err));
        assert_int_equal(err.code, ERR_PARAM);
        CHECK(strstr(err.text, slips[i].says), "'%s' says: %s", slips[i].expr, err.text);
        arena_free(a);
    }
}

TEST(a_long_table_stays_linear)
{
    enum { LENGTH = 65536 };
    Arena       *a = arena_new();
    Error        err = ERROR_INIT;
    PatternShape s = { .heads = 8, .n = LENGTH, .m = LENGTH };
    int32_t     *tokens = arena_alloc(a, LENGTH, sizeof(*tokens));
    Numbers      numbers = { .t = tensor_of(DT_I32, 1, &s.n, tokens) };
    int64_t      before;

    for (int i = 0; i < LENGTH; i++)
        tokens[i] = i / 1000;
    before = arena_used(a);
    assert_int_equal(pattern_count(parsed(a, s, "same($t)", &numbers, &err)),
                     8 * (65 * INT64_C(1000000) + 536 * 536));
    assert_true(arena_used(a) - before <= 40 * LENGTH);
    arena_free(a);
}

/* A run with numbers from the input, by name or by -p; the counted cells are the cost. */
TEST(a_run_costs_its_cells)
{
    Fixture f = fixture_new(31);
    Error   err = ERROR_INIT;
    int64_t tokens[31];
    RunSpec spec = { .mechanism = mechanism_find("pattern"), .q = f.q, .k = f.k, .v = f.v,
                     .given = &f.given, .views = true,
                     .segments = tensor_of(DT_I64, 1, &f.n, tokens) };
    bool    bound;
    Flops   closed;

    for (int i = 0; i < 31; i++)
        tokens[i] = i < 10 ? 4 : i < 12 ? 9 : 0;
    assert_true(assignments_set(&f.given, "expr", "same($segments)", &err));
    f.run = run_new(&spec);
    run_execute(f.run);
    assert_int_equal(f.run->err.code, ERR_NONE);
    check_weights(&f);
    check_flops(&f);
    assert_true(run_closed_form(f.run, &closed, &bound));
    assert_true(!bound && closed.score == 2.0 * KEY_SIZE * HEADS * (100 + 4 + 19 * 19));
    run_free(f.run);
    for (int i = 0; i < 31; i++)
        tokens[i] = 1;
    assert_true(assignments_set_tensor(&f.given, "segments",
                                       tensor_of(DT_I64, 1, &f.n, (int64_t[31]){ 1 }), "@s.npy",
                                       &err)); /* what is given comes before the input's */
    f.run = run_new(&spec);
    run_execute(f.run);
    assert_true(run_flops(f.run).score == 2.0 * KEY_SIZE * HEADS * (1 + 30 * 30));
    fixture_free(&f);
}

SUITE(NULL, NULL)
