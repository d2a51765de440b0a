/* test_reach.c -- reach against boolean powers, and what the papers promise. */

#include "attn/study/reach.h"
#include "check.h"
#include "core/threads.h"

#define MOST 90
#define LAYERS 4

static uint8_t cells[LAYERS][MOST][MOST], power[MOST][MOST], wanted[MOST][MOST];

/* Heads united, cell by cell. */
static void read_cells(const Pattern *p, int layer, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            bool any = false;

            for (int64_t h = 0; h < pattern_heads(p) && !any; h++)
                pattern_cell(p, h, i, j, &any);
            cells[layer][i][j] = any;
        }
}

/* power = layer x power, boolean, with the residual connection if asked for. */
static void multiply(int layer, int64_t n, bool residual)
{
    static uint8_t product[MOST][MOST];

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            product[i][j] = residual && power[i][j];
            for (int64_t k = 0; k < n && !product[i][j]; k++)
                product[i][j] = cells[layer][i][k] && power[k][j];
        }
    memcpy(power, product, sizeof(power));
}

/* Fills `wanted`, and checks the summary's numbers on the way. */
static void brute(const ReachStack *s, int64_t n, const ReachSummary *sum)
{
    memset(power, 0, sizeof(power));
    memset(wanted, REACH_NONE, sizeof(wanted));
    for (int64_t i = 0; i < n; i++)
        power[i][i] = 1;
    for (int depth = 0; depth <= s->depth; depth++) {
        int64_t pairs = 0, least = n, most = 0;

        if (depth)
            multiply((depth - 1) % s->count, n, s->residual);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = 0;

            for (int64_t j = 0; j < n; j++) {
                row += power[i][j];
                if (s->residual && power[i][j] && wanted[i][j] == REACH_NONE)
                    wanted[i][j] = (uint8_t)depth;
                if (!s->residual && depth == s->depth && power[i][j])
                    wanted[i][j] = (uint8_t)depth;
            }
            pairs += row;
            least = row < least ? row : least;
            most = row > most ? row : most;
        }
        CHECK(sum->at[depth].pairs == pairs, "depth %d: %d pairs, not %d", depth,
              (int)sum->at[depth].pairs, (int)pairs);
        assert_int_equal(sum->at[depth].least, least);
        assert_int_equal(sum->at[depth].most, most);
    }
}

/* A path begins and ends at its tokens, and every step is a cell or stays. */
static void check_way(const ReachStack *s, int64_t i, int64_t j)
{
    int64_t path[REACH_MOST + 1];
    int     hops = reach_path(s, i, j, path);

    if (wanted[i][j] == REACH_NONE) {
        assert_int_equal(hops, -1);
        return;
    }
    assert_int_equal(hops, wanted[i][j]);
    assert_int_equal(path[0], i);
    assert_int_equal(path[hops], j);
    for (int t = 0; t < hops; t++)
        assert_true(cells[(hops - t - 1) % s->count][path[t]][path[t + 1]] ||
                    (s->residual && path[t] == path[t + 1]));
}

static void check_stack(const char *what, const ReachStack *s, bool causal)
{
    int64_t      n = reach_layer_tokens(s->layers[0]), stride = reach_row_bytes(n);
    Error        err = ERROR_INIT;
    ReachBlock  *block = reach_block_new(n, &err);
    uint8_t     *rows = malloc((size_t)(reach_block_rows(n) * stride));
    Threads     *threads = threads_new(2);
    ReachSummary sum;

    CHECK(reach_summary(s, causal, threads, NULL, &sum, &err), "%s: %s", what, err.text);
    brute(s, n, &sum);
    assert_true(reach_rows(s, block, 0, rows, NULL));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            CHECK(rows[i * stride + j] == wanted[i][j],
                  "%s n=%d depth %d residual %d (%d,%d): %d, not %d", what, (int)n, s->depth,
                  s->residual, (int)i, (int)j, rows[i * stride + j], wanted[i][j]);
            if ((i * 31 + j) % 11 == 0)
                check_way(s, i, j);
        }
    threads_free(threads);
    reach_block_free(block);
    free(rows);
}

static ReachLayer *layer_of(const char *expr, int64_t heads, int64_t n, bool causal, int number)
{
    Arena        *a = arena_new();
    Error         err = ERROR_INIT;
    PatternShape  s = { .heads = heads, .n = n, .m = n, .causal = causal };
    PatternSource source = { .seed = (uint64_t)number };
    Pattern      *p = pattern_finish(a, s, pattern_parse(a, s, expr, &source, &err), causal);
    ReachLayer   *layer;

    CHECK(p, "%s: %s", expr, err.text);
    layer = reach_layer_new(p, NULL, &err);
    CHECK(layer, "%s: %s", expr, err.text);
    if (n <= MOST)
        read_cells(p, number, n);
    arena_free(a);
    return layer;
}

static const char *const exprs[] = {
    "window(5)", "window(3)+global(1)", "stride(7)", "log", "log(2,9)", "none", "self", "full",
    "!self", "ring + band(1,1)", "random(2)", "block(8)+summary(8)", "tile(5,random(2)+self)",
    "band(1,2)", "window(9,d=3)+cols([0,40:45,-1])", "shift(4,1)", "!window(31)",
    "stride(4)-block(16)",
    "window(9)+stride(6)", "stride(5)+window(4)+global(2)", "stride(4)+stride(6)+block(7)",
    "window(7,d=2)+window(5)+log(1,11)",
    /* Scattered keys, which are also found from the keys' side: all, some never seen, rows that
     * see nothing, two halves, and rows that are alike among them. */
    "random(24)", "random(40)", "random(36) & !cols([0:30])", "random(36) & rows([0:50])",
    "tile(40,random(22))",
    "(random(40) - rows([0:20]) - cols([0:60:9])) + (cols([0:60:9]) & rows([0:20]))",
};

TEST(hops_are_those_of_boolean_powers)
{
    static const int64_t sizes[] = { 1, 2, 7, 64, 83 };

    for (size_t e = 0; e < sizeof(exprs) / sizeof(*exprs); e++)
        for (size_t z = 0; z < sizeof(sizes) / sizeof(*sizes); z++)
            for (int variant = 0; variant < 4; variant++) {
                bool              causal = variant & 1;
                ReachLayer       *layer = layer_of(exprs[e], 1, sizes[z], causal, 0);
                const ReachLayer *layers[] = { layer };
                ReachStack        s = { layers, 1, 6, variant & 2 };

                check_stack(exprs[e], &s, causal);
                reach_layer_free(layer);
            }
}

TEST(heads_are_united)
{
    static const char *const each[] = { "band(1,1);stride(9)", "random(1)",
                                        "window(3);cols([5]);band(-7,-5)" };

    for (size_t e = 0; e < 3; e++)
        for (int variant = 0; variant < 4; variant++) {
            ReachLayer       *layer = layer_of(each[e], 3, 71, variant & 1, 0);
            const ReachLayer *layers[] = { layer };
            ReachStack        s = { layers, 1, 5, variant & 2 };

            check_stack(each[e], &s, variant & 1);
            reach_layer_free(layer);
        }
}

/* A row keeps few runs: those of two heads that overlap are one. */
TEST(a_row_of_several_heads_takes_no_more_room)
{
    ReachLayer *two = layer_of("band(0,9);band(-9,0)", 2, 71, false, 0);
    ReachLayer *one = layer_of("band(-9,9)", 1, 71, false, 0);

    assert_int_equal(reach_layer_bytes(two), reach_layer_bytes(one));
    reach_layer_free(two);
    reach_layer_free(one);
}

TEST(layers_may_differ)
{
    static const char *const stacks[][LAYERS] = {
        { "window(3)", "stride(6)" },
        { "band(-1,-1)", "band(-2,-2)", "band(-4,-4)", "band(-8,-8)" },
        { "random(1)", "random(1)", "random(1)" },
        { "block(6)", "shift(5,1)", "none" },
        { "none", "full" },
        { "cols([2])", "rows([9])", "self" },
    };

    for (size_t e = 0; e < sizeof(stacks) / sizeof(*stacks); e++)
        for (int variant = 0; variant < 4; variant++) {
            const ReachLayer *layers[LAYERS];
            ReachLayer       *owned[LAYERS];
            ReachStack        s = { layers, 0, 7, variant & 2 };

            for (; s.count < LAYERS && stacks[e][s.count]; s.count++)
                layers[s.count] = owned[s.count] =
                    layer_of(stacks[e][s.count], 1, 67, variant & 1, s.count);
            check_stack(stacks[e][0], &s, variant & 1);
            for (int l = 0; l < s.count; l++)
                reach_layer_free(owned[l]);
        }
}

static ReachSummary summary_of(const char *expr, int64_t n, int depth, bool causal)
{
    ReachLayer       *layer = layer_of(expr, 1, n, causal, 0);
    const ReachLayer *layers[] = { layer };
    ReachStack        s = { layers, 1, depth, true };
    Error             err = ERROR_INIT;
    ReachSummary      sum;

    CHECK(reach_summary(&s, causal, NULL, NULL, &sum, &err), "%s: %s", expr, err.text);
    reach_layer_free(layer);
    return sum;
}

TEST(known_depths)
{
    /* a window of w reaches w / 2 further with every layer */
    for (int64_t n = 2; n < 80; n += 7)
        for (int64_t w = 3; w < 12; w += 2) {
            char expr[32];
            int  depth = (int)((n - 1 + w / 2 - 1) / (w / 2));

            snprintf(expr, sizeof(expr), "window(%d)", (int)w);
            assert_int_equal(summary_of(expr, n, 100, false).full, depth);
            assert_int_equal(summary_of(expr, n, 100, true).full, depth);
        }
    /* every two tokens meet in a global one */
    assert_int_equal(summary_of("window(3)+global(1)", 1000, 12, false).full, 2);
    assert_int_equal(summary_of("window(3)+ring+global([7])", 1000, 12, false).full, 2); /* star */
    assert_int_equal(
        summary_of("tile(16,window(3)+global(2)+random(3))", 1024, 12, false).full, 2);
    /* distances are sums of powers of two: as many layers as a distance has ones */
    for (int64_t n = 2; n <= 1024; n *= 2)
        assert_int_equal(summary_of("log", n, 12, true).full, __builtin_ctzll((uint64_t)n));
    assert_int_equal(summary_of("full", 500, 3, false).full, 1);
    assert_int_equal(summary_of("full", 1, 3, false).full, 0);
}

TEST(never_and_not_yet_are_told_apart)
{
    ReachSummary apart = summary_of("block(8)", 64, 12, false);
    ReachSummary slow = summary_of("window(3)", 64, 12, false);
    ReachSummary swaps;
    ReachLayer  *layer = layer_of("ring", 1, 2, false, 0); /* 0 and 1 change places for ever */
    const ReachLayer *layers[] = { layer };
    ReachStack   s = { layers, 1, 9, false };
    Error        err = ERROR_INIT;

    assert_int_equal(apart.full, -1);
    assert_int_equal(apart.fixed, 1);
    assert_int_equal(apart.at[12].pairs, 8 * 64);
    CHECK_NEAR(apart.mean, 1, 1e-12);
    assert_int_equal(slow.full, -1);
    assert_int_equal(slow.fixed, -1);
    assert_true(reach_summary(&s, false, NULL, NULL, &swaps, &err));
    assert_int_equal(swaps.full, -1);
    assert_int_equal(swaps.fixed, -1);
    reach_layer_free(layer);
}

/* The sizes of the papers: memory stays far below n x n, and numbers are exact. */
TEST(a_long_sequence_is_exact_and_small)
{
    enum { N = 16384 };
    static const char *const long_ones[] = { "window(513)", "window(513)+global(4)", "log",
                                             "tile(64,window(3)+global(2)+random(3))",
                                             "stride(128)+block(128)" };
    static const int full[] = { -1, 2, 8, 2, 2 };

    for (size_t e = 0; e < 5; e++) {
        ReachLayer       *layer = layer_of(long_ones[e], 1, N, false, 0);
        const ReachLayer *layers[] = { layer };
        ReachStack        s = { layers, 1, 12, true };
        Threads          *threads = threads_new(2);
        Error             err = ERROR_INIT;
        ReachSummary      sum;

        assert_true(reach_layer_bytes(layer) < 4 << 20);
        assert_true(reach_summary(&s, false, threads, NULL, &sum, &err));
        CHECK(sum.full == full[e], "%s: %d", long_ones[e], sum.full);
        for (int d = 0; e == 0 && d <= 12; d++) /* 2 d 256 + 1 keys, fewer at the ends */
            assert_int_equal(sum.at[d].pairs, (2 * 256 * d + 1) * INT64_C(16384) -
                                                  (256 * d) * (256 * d + INT64_C(1)));
        threads_free(threads);
        reach_layer_free(layer);
    }
}

/* One layer repeated is searched from the keys' side as well, the same as two equal ones never
 * are.  In the second pattern rows 699 and 650 come to the first keys through a row that is not
 * among those kept of them. */
TEST(both_sides_agree)
{
    static const char *const scattered[] = {
        "random(310)",
        "(random(300) & rows([0:640])) - cols([0:10]) + (cols([0:10]) & rows([0:300]))"
        " + (cols([0:10]) & rows([650])) + (cols([650]) & rows([699]))",
        "random(90) & !cols([0:300])",
    };
    Threads *threads = threads_new(2);

    for (size_t e = 0; e < 3; e++)
        for (int causal = 0; causal < 2; causal++) {
            ReachLayer       *layer = layer_of(scattered[e], 1, 700, causal, 0);
            const ReachLayer *layers[] = { layer, layer };
            ReachStack        one = { layers, 1, 6, true }, two = { layers, 2, 6, true };
            ReachSummary      a, b;
            Error             err = ERROR_INIT;

            assert_true(reach_summary(&one, causal, threads, NULL, &a, &err));
            assert_true(reach_summary(&two, causal, threads, NULL, &b, &err));
            for (int d = 0; d <= 6; d++) {
                CHECK(a.at[d].pairs == b.at[d].pairs, "%s, depth %d: %d pairs, not %d",
                      scattered[e], d, (int)a.at[d].pairs, (int)b.at[d].pairs);
                assert_int_equal(a.at[d].least, b.at[d].least);
                assert_int_equal(a.at[d].most, b.at[d].most);
            }
            reach_layer_free(layer);
        }
    threads_free(threads);
}

/* Blocks of the last rows, and sequences that need narrow words. */
TEST(blocks_fit_any_length)
{
    static const int64_t sizes[] = { 255, 256, 257, 513, 65536, 65537 };

    for (size_t z = 0; z < 6; z++) {
        int64_t           n = sizes[z], rows = reach_block_rows(n), stride = reach_row_bytes(n);
        int64_t           first = (n - 1) / rows * rows;
        ReachLayer       *layer = layer_of("window(21)", 1, n, false, 0);
        const ReachLayer *layers[] = { layer };
        ReachStack        s = { layers, 1, 9, true };
        Error             err = ERROR_INIT;
        ReachBlock       *block = reach_block_new(n, &err);
        uint8_t          *out = malloc((size_t)(rows * stride));

        assert_true(reach_rows(&s, block, first, out, NULL));
        for (int64_t i = first; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                int64_t hops = (llabs(i - j) + 9) / 10;

                CHECK(out[(i - first) * stride + j] == (hops <= 9 ? hops : REACH_NONE),
                      "n=%d (%d,%d): %d", (int)n, (int)i, (int)j, out[(i - first) * stride + j]);
            }
        free(out);
        reach_block_free(block);
        reach_layer_free(layer);
    }
}

TEST(a_search_can_be_cancelled)
{
    ReachLayer       *layer = layer_of("window(3)", 1, 4096, false, 0);
    const ReachLayer *layers[] = { layer };
    ReachStack        s = { layers, 1, 200, true };
    Error             err = ERROR_INIT;
    atomic_bool       cancel = true;
    ReachBlock       *block = reach_block_new(4096, &err);
    uint8_t *out = malloc((size_t)(reach_block_rows(4096) * reach_row_bytes(4096)));
    ReachSummary      sum;
    Arena            *a = arena_new();
    Pattern *p = pattern_full(a, (PatternShape){ .heads = 1, .n = 9, .m = 9 }, 1);

    assert_false(reach_rows(&s, block, 0, out, &cancel));
    assert_false(reach_summary(&s, false, NULL, &cancel, &sum, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    err = ERROR_INIT;
    assert_null(reach_layer_new(p, &cancel, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    /* data left by one search does not affect the next */
    assert_true(reach_rows(&s, block, 256, out, NULL));
    assert_int_equal(out[0], 200 >= 256 ? 0 : REACH_NONE);
    assert_int_equal(out[256 - 77], 77);
    free(out);
    reach_block_free(block);
    reach_layer_free(layer);
    arena_free(a);
}

SUITE(NULL, NULL)
