/* test_model_write.c -- writing token by token against the forward pass, on small models in memory;
 * products by blocks against the blocks' values. */
#include "model_fixture.h"

#include "model/dot.h"
#include "model/forward.h"
#include "model/generate.h"
#include "model/swap.h"

/* ---- writing ------------------------------------------------------------- */

/* What was written is what the pass finds most probable at each place, by the same probability. */
static void check_writes(Made *made, const char *mechanism, int threads)
{
    Swap            swap = { .mechanism = mechanism };
    GenerateOptions o = { .count = 12, .threads = threads, .swap = mechanism ? &swap : NULL };
    ForwardOptions  f = { .swaps = &swap, .swap_count = mechanism ? 1 : 0, .last_layer = -1,
                          .threads = 1 };
    GenerateResult  r;
    ForwardResult   pass;
    Error           err = ERROR_INIT;
    int32_t         ids[TOKENS + 12];

    make_ids(ids);
    CHECK(generate_run(&made->m, ids, TOKENS, &o, &r, &err), "%s", err.text);
    assert_int_equal(r.count, 12);
    memcpy(ids + TOKENS, r.ids, 12 * sizeof(*ids));
    CHECK(forward_run(&made->m, ids, TOKENS + 12, &f, &pass, &err), "%s", err.text);
    for (int t = 0; t < 12; t++) {
        const NextToken *next = &pass.measure[mechanism ? 1 : 0]
                                     .next[(TOKENS - 1 + t) * FORWARD_NEXT];

        assert_int_equal(next->id, r.ids[t]);
        CHECK_NEAR(r.p[t], next->p, 1e-5);
    }
    forward_result_free(&pass);
    generate_result_free(&r);
}

static void test_writes(void **state)
{
    Made *made[] = { make_llama(false, false, 0, MODEL_SILU), make_llama(true, true, 5, MODEL_SILU),
                     make_llama(false, false, 0, MODEL_GELU_TANH), make_older(false) };

    (void)state;
    for (int x = 0; x < 4; x++) {
        check_writes(made[x], NULL, 1);
        check_writes(made[x], NULL, 3);
        check_writes(made[x], "pattern(window(9)+cols(2))", 2);
        made_free(made[x]);
    }
}

/* A mixture writes what its pass finds most probable: a part for one head of a layer, another for
 * the rest of it; other layers stay exact. */
static void test_writes_with_a_mixture(void **state)
{
    Made           *made = make_llama(false, false, 0, MODEL_SILU);
    bool            layers[8] = { false, true }, heads[8] = { true };
    Swap            rest = { .mechanism = "pattern(window(9)+cols(2))", .layers = layers };
    Swap            swap = { .mechanism = "window(window=3)", .layers = layers, .heads = heads,
                             .also = &rest };
    GenerateOptions o = { .count = 6, .threads = 2, .swap = &swap };
    ForwardOptions  f = { .swaps = &swap, .swap_count = 1, .last_layer = -1, .threads = 1 };
    GenerateResult  r;
    ForwardResult   pass;
    Error           err = ERROR_INIT;
    int32_t         ids[TOKENS + 6];

    (void)state;
    make_ids(ids);
    CHECK(generate_run(&made->m, ids, TOKENS, &o, &r, &err), "%s", err.text);
    memcpy(ids + TOKENS, r.ids, 6 * sizeof(*ids));
    CHECK(forward_run(&made->m, ids, TOKENS + 6, &f, &pass, &err), "%s", err.text);
    for (int t = 0; t < 6; t++)
        CHECK_NEAR(r.p[t], pass.measure[1].next[(TOKENS - 1 + t) * FORWARD_NEXT].p, 1e-5);
    CHECK(pass.measure[1].kl > 1e-6, "%g", pass.measure[1].kl);
    forward_result_free(&pass);
    generate_result_free(&r);
    made_free(made);
}

static void test_draws(void **state)
{
    Made           *made = make_llama(false, false, 0, MODEL_SILU);
    GenerateOptions o = { .count = 20, .temperature = 1.5, .top_k = 4, .seed = 9, .threads = 1 };
    GenerateResult  a, b, c;
    Error           err = ERROR_INIT;
    int32_t         ids[TOKENS];

    (void)state;
    make_ids(ids);
    assert_true(generate_run(&made->m, ids, TOKENS, &o, &a, &err));
    assert_true(generate_run(&made->m, ids, TOKENS, &o, &b, &err));
    assert_memory_equal(a.ids, b.ids, 20 * sizeof(*a.ids));
    o.seed = 10;
    assert_true(generate_run(&made->m, ids, TOKENS, &o, &c, &err));
    assert_true(memcmp(a.ids, c.ids, 20 * sizeof(*a.ids)) != 0);
    generate_result_free(&a);
    generate_result_free(&b);
    generate_result_free(&c);
    assert_true(generate_check(&made->m, ids, TOKENS, &o, &err));
    o.swap = &(Swap){ .mechanism = "window" };
    assert_true(generate_check(&made->m, ids, TOKENS, &o, &err));
    o.swap = &(Swap){ .mechanism = "performer" };
    assert_false(generate_check(&made->m, ids, TOKENS, &o, &err));
    CHECK(strstr(err.text, "token by token"), "%s", err.text);
    assert_false(generate_run(&made->m, ids, TOKENS, &o, &a, &err));
    CHECK(strstr(err.text, "token by token"), "%s", err.text);
    made_free(made);
}

/* ---- products by blocks -------------------------------------------------- */

/* A row of random bytes whose factors (binary16) are small and finite. */
static void random_row(Rng *rng, WeightType type, uint8_t *row, int64_t blocks)
{
    static const int factors[WEIGHT_TYPES][2] = {
        [WEIGHT_Q4_0] = { 0, 0 },   [WEIGHT_Q4_1] = { 0, 2 },     [WEIGHT_Q5_0] = { 0, 0 },
        [WEIGHT_Q5_1] = { 0, 2 },   [WEIGHT_Q8_0] = { 0, 0 },     [WEIGHT_Q2_K] = { 80, 82 },
        [WEIGHT_Q3_K] = { 108, 108 }, [WEIGHT_Q4_K] = { 0, 2 },   [WEIGHT_Q5_K] = { 0, 2 },
        [WEIGHT_Q6_K] = { 208, 208 },
    };
    int64_t bytes = weight_block_bytes(type);

    for (int64_t x = 0; x < blocks * bytes; x++)
        row[x] = (uint8_t)rng_below(rng, 256);
    for (int64_t b = 0; b < blocks && type >= WEIGHT_Q4_0; b++)
        for (int x = 0; x < 2; x++)
            row[b * bytes + factors[type][x] + 1] = (uint8_t)(0x20 + rng_below(rng, 8));
    for (int64_t x = 0; x < blocks && type < WEIGHT_Q4_0; x++) {
        float  value = (float)rng_normal(rng);
        double wide = (double)value;

        if (type == WEIGHT_F32)
            memcpy(row + 4 * x, &value, 4);
        else if (type == WEIGHT_F64)
            memcpy(row + 8 * x, &wide, 8);
        else
            row[2 * x + 1] = (uint8_t)(0x38 + rng_below(rng, 4)); /* near 1 in both types */
    }
}

static void check_dot(const DotKernel *kernel, WeightType type)
{
    enum { COLS = 768 };
    static uint8_t row[COLS * 8];
    static float   x[COLS], w[COLS], sums[COLS / DOT_SUM];
    int64_t        per = weight_block_values(type), cols = per == 1 ? COLS - 5 : COLS;
    Rng            rng = { .seed = (uint64_t)type };
    Weight         weight = { .type = type, .data = row, .rows = 1, .cols = cols };
    double         sum = 0, size = 0;

    random_row(&rng, type, row, cols / per);
    rng_fill_normal(&rng, x, cols, 1);
    dot_sums(x, cols, sums);
    weight_read(&weight, 0, 1, w);
    for (int64_t c = 0; c < cols; c++) {
        sum += (double)w[c] * (double)x[c];
        size += fabs((double)w[c] * (double)x[c]);
    }
    /* a sum in double is rounded once, to float */
    CHECK(fabs((double)kernel->dot[type](row, x, sums, cols) - sum) <=
              (type == WEIGHT_F64 ? 6e-8 * fabs(sum) : 2e-6 * size),
          "%s %s: %.9g, expected %.9g", kernel->name, weight_type_name(type),
          (double)kernel->dot[type](row, x, sums, cols), sum);
}

static void test_dots(void **state)
{
    const DotKernel *kernel;

    (void)state;
    for (int x = 0; (kernel = dot_kernel_at(x)); x++)
        for (int type = WEIGHT_F32; type < WEIGHT_TYPES; type++)
            check_dot(kernel, (WeightType)type);
}

/* One at least, on every processor; outside the list is none. */
static void test_kernels_end(void **state)
{
    int count = 0;

    (void)state;
    while (dot_kernel_at(count))
        count++;
    assert_in_range(count, 1, 3);
    assert_null(dot_kernel_at(-1));
    for (int beyond = count; beyond < count + 20; beyond++)
        assert_null(dot_kernel_at(beyond));
}

/* Rows are the same where each run of each row is, from the first to the last. */
static void test_rows_are_compared(void **state)
{
    static const int64_t    offset[] = { 0, 1, 2, 3 };
    static const PatternRun runs[] = { { 0, 1, 1, COMPONENT_OTHER }, { 0, 2, 1, COMPONENT_OTHER },
                                       { 1, 2, 1, COMPONENT_OTHER } };
    PatternShape shape = { .heads = 1, .n = 3, .m = 3 };
    Arena       *arena = arena_new();
    Pattern     *whole = pattern_stored(arena, shape, offset, runs, false);
    bool         failed;

    (void)state;
    assert_true(pattern_rows_same(whole, whole, 3, &failed));
    assert_false(failed);
    for (int row = 0; row < 3; row++) {
        PatternRun changed[3];

        memcpy(changed, runs, sizeof(runs));
        changed[row].start = 2 - changed[row].start;
        changed[row].count = 1;
        assert_false(pattern_rows_same(whole, pattern_stored(arena, shape, offset, changed, false),
                                       3, &failed));
        assert_false(failed);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_writes_with_a_mixture),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_dots),
        cmocka_unit_test(test_kernels_end),
        cmocka_unit_test(test_rows_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
