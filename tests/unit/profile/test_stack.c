/* test_stack.c -- what stacks of layers hold and read while they generate. */
#include "profile/stack.h"
#include "profile_fixture.h"

#include <string.h>

static StackCost cost_of(const char *layers, StackShape shape, int64_t n)
{
    Stack *stack = calloc(1, sizeof(*stack));
    Error  err = ERROR_INIT;

    assert_non_null(stack);
    if (!stack_parse(layers, stack, &err) || !stack_shape_check(&shape, &err))
        fail_msg("%s", err.text);
    StackCost cost = stack_cost(stack, &shape, n);
    free(stack);
    return cost;
}

/* Layers, heads, kv heads and head dim are those of each model's config.json (num_hidden_layers,
 * num_attention_heads, num_key_value_heads, head_dim or hidden_size / heads; kv_lora_rank and
 * qk_rope_head_dim; sliding_window and layer_types); the bytes are worked out by hand, in bf16. */
static const struct {
    const char *model, *layers;
    StackShape  shape;
    int64_t     n;
    double      token, cache;
} models[] = {
    { "DeepSeek-V3", "fullx61", { 128, 128, 128, 512, 64, 16, 0, 0 }, 131072, 70272, 9210691584 },
    { "Qwen2.5-72B", "fullx80", { 64, 8, 128, 0, 0, 16, 0, 0 }, 32768, 327680, 10737418240 },
    { "Llama 3.1 405B", "fullx126", { 128, 8, 128, 0, 0, 16, 0, 0 }, 131072, 516096, 67645734912 },
    { "Llama 3 8B", "fullx32", { 32, 8, 128, 0, 0, 16, 0, 0 }, 8192, 131072, 1073741824 },
    { "Mistral 7B", "window(4096)x32", { 32, 8, 128, 0, 0, 16, 0, 0 }, 32768, 0, 536870912 },
    { "Gemma 2 9B", "(window(4096),full)x21", { 16, 8, 256, 0, 0, 16, 0, 0 }, 8192, 172032,
      2113929216 },
    { "Gemma 3 27B", "(window(1024)x5,full)x10,window(1024)x2", { 32, 16, 128, 0, 0, 16, 0, 0 },
      131072, 81920, 11173625856 },
    { "gpt-oss-120b", "(window(128),full)x18", { 64, 8, 64, 0, 0, 16, 0, 0 }, 131072, 36864,
      4836556800 },
    { "Qwen3-Next-80B-A3B", "(state(32,128,128)x3,full)x12", { 16, 2, 256, 0, 0, 16, 0, 0 },
      262144, 24576, 6517948416 },
};

TEST(caches_of_real_models)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        StackCost cost = cost_of(models[i].layers, models[i].shape, models[i].n);

        if (cost.token_bytes != models[i].token || cost.cache_bytes != models[i].cache)
            fail_msg("%s: %.0f bytes a token, %.0f held", models[i].model, cost.token_bytes,
                     cost.cache_bytes);
    }
}

static const StackShape small = { 4, 2, 8, 0, 0, 16, 0, 0 };

TEST(a_window_holds_its_keys_and_no_more)
{
    CHECK_WITHIN(cost_of("window(10)", small, 9).cache_bytes, 9 * 64, 0);
    CHECK_WITHIN(cost_of("window(10)", small, 9).token_bytes, 64, 0);
    CHECK_WITHIN(cost_of("window(10)", small, 10).token_bytes, 0, 0);
    CHECK_WITHIN(cost_of("window(10)", small, 99).read_bytes, 10 * 64, 0);
    CHECK_WITHIN(cost_of("window(10,sinks=4)", small, 99).read_bytes, 14 * 64, 0);
    CHECK_WITHIN(cost_of("window(10,sinks=4)", small, 13).token_bytes, 64, 0);
}

TEST(quantised_numbers_carry_their_scales)
{
    StackShape s = small;

    s.dim = 16; /* rows of 32 numbers */
    s.bits = 4, s.group = 32, s.scale_bits = 16;
    CHECK_WITHIN(cost_of("full", s, 1).token_bytes, 64 * 4.5 / 8, 0);
    s.bits = 8, s.group = 0;
    CHECK_WITHIN(cost_of("full", s, 1).token_bytes, 64, 0);
}

TEST(latent_keys_are_read_once_and_compared_by_every_head)
{
    StackShape s = small;

    CHECK_WITHIN(cost_of("full", s, 5).step_flops, 5 * 4 * (16 + 16 + 5), 0);
    s.rank = 12, s.rope = 3;
    CHECK_WITHIN(cost_of("full", s, 5).step_flops, 5 * 4 * (30 + 24 + 5), 0);
    CHECK_WITHIN(cost_of("full", s, 5).read_bytes, 5 * 30, 0);
    assert_true(isnan(cost_of("full,state(1,2,3)", s, 5).step_flops));
}

/* What the spec says of a token in recurrent form, with gates of the head's own query. */
TEST(a_state_of_a_mechanism_costs_what_its_step_costs)
{
    const StackShape s = small;
    const double     h = 3, d = 8, e = 6;

    CHECK_WITHIN(cost_of("retnet(3,8,6)", s, 5).step_flops, h * 5 * d * e, 0);
    CHECK_WITHIN(cost_of("gla(3,8,6)", s, 5).step_flops,
                 h * (5 * d * e + d * (2 * d + 4)), 0);
    CHECK_WITHIN(cost_of("gated-deltanet(3,8,6)x2", s, 9).step_flops,
                 2 * h * (7 * d * e + 2 * e + 6 * d + 6 + 2 * (2 * d + 4)), 0);
    CHECK_WITHIN(cost_of("retnet(3,8,6)", s, 5).state_bytes, 4 * h * d * e, 0);
    CHECK_WITHIN(cost_of("retnet(3,8,6)", s, 5).token_bytes, 0, 0);
    CHECK_WITHIN(cost_of("linear(3,8,6)", s, 5).state_bytes, 4 * h * d * (e + 1), 0);
}

TEST(a_short_convolution_is_part_of_a_state)
{
    StackShape s = small;
    double     plain = cost_of("retnet(3,8,6)", s, 5).step_flops;

    CHECK_WITHIN(cost_of("retnet(3,8,6)+conv(100,4)", s, 5).state_bytes, 576 + 100 * 3 * 2, 0);
    CHECK_WITHIN(cost_of("retnet(3,8,6)+conv(100,4)", s, 5).read_bytes, 576 + 100 * 3 * 2, 0);
    CHECK_WITHIN(cost_of("retnet(3,8,6)+conv(100,4)", s, 5).step_flops, plain + 2 * 100 * 4, 0);
    s.bits = 32;
    CHECK_WITHIN(cost_of("state(3,8,6)+conv(100,4)", s, 5).state_bytes, 576 + 100 * 3 * 4, 0);
    s.bits = 4, s.group = 32, s.scale_bits = 16;
    CHECK_WITHIN(cost_of("state(3,8,6)+conv(100,4)", s, 5).state_bytes, 576 + 100 * 3 * 2, 0);
}

/* A sum in float32 for each key of both heads is held besides. */
TEST(a_mechanism_that_evicts_keeps_its_keys)
{
    StackShape s = small;
    StackCost  few = cost_of("h2o(heavy=4,recent=5)", s, 3), full;

    CHECK_WITHIN(few.cache_bytes, 3 * (64 + 8), 0);
    CHECK_WITHIN(few.token_bytes, 64 + 8, 0);
    full = cost_of("(h2o(heavy=4,recent=5)x2,full)x3", s, 100);
    CHECK_WITHIN(full.cache_bytes, 6 * 9 * (64 + 8) + 3 * 100 * 64, 0);
    CHECK_WITHIN(full.token_bytes, 3 * 64, 0);
    CHECK_WITHIN(full.state_bytes, 0, 0);
    assert_true(isnan(full.read_bytes) && isnan(full.step_flops));
    s.bits = 4, s.group = 16, s.scale_bits = 16;
    CHECK_WITHIN(cost_of("h2o(heavy=4,recent=5)", s, 100).cache_bytes, 9 * (2 * 10 + 8), 0);
}

/* What the closed form of its run says that is held, by the layer of its parameters. */
static void layer_is_as_its_run(const Mechanism *m, int64_t n)
{
    Fixture    f = fixture_new(4, n, 8, 1);
    StackShape s = { 4, 4, 8, 0, 0, 16, 0, 0 };
    Run       *run;
    double     said = (double)NAN;

    f.spec.mechanism = m;
    f.spec.causal = true;
    run = run_new(&f.spec);
    run_execute(run);
    CHECK(run && !run_failed(run), "%s", m->id);
    for (int i = 0; i < run->figure_count; i++)
        if (!strcmp(run->figures[i].name, "state_bytes"))
            said = run->figures[i].value;
    CHECK_WITHIN(cost_of(m->id, s, n).cache_bytes, said, 0);
    run_free(run);
    fixture_free(&f);
}

TEST(a_kind_of_layer_costs_what_its_run_costs)
{
    int count = 0;

    for (size_t i = 0; mechanism_at(i); i++)
        for (int64_t n = 1; mechanism_at(i)->kind_of_layer && n < 200; n = 3 * n + 1) {
            layer_is_as_its_run(mechanism_at(i), n);
            count++;
        }
    assert_true(count >= 6 * 5);
}

TEST(a_mechanism_without_a_state_is_no_layer)
{
    static const char *const wrong[] = { "nsa(1,8,8)", "log-linear(1,8,8)", "mla(1,8,8)",
                                         "transformer-xl(1,8,8)" };
    Stack *stack = calloc(1, sizeof(*stack));

    assert_non_null(stack);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        Error err = ERROR_INIT;

        assert_false(stack_parse(wrong[i], stack, &err));
        assert_non_null(strstr(err.text, "holds no state of one size; a pattern that keeps keys"));
    }
    free(stack);
}

/* The stack that the text gives, repeated to the depth, as text again. */
static void check_text(const char *layers, int64_t depth, const char *expected)
{
    Stack *stack = calloc(1, sizeof(*stack));
    Text   text = { 0 };
    Error  err = ERROR_INIT;

    assert_non_null(stack);
    assert_true(stack_parse(layers, stack, &err));
    assert_true(stack_repeat(stack, depth ? depth : stack->count, &err));
    stack_text(stack, &text);
    assert_string_equal(text_str(&text), expected);
    text_free(&text);
    free(stack);
}

TEST(a_stack_is_written_as_it_is_read)
{
    check_text("full", 0, "full");
    check_text("full,full,full", 0, "fullx3");
    check_text("window(1024)x5,full", 62, "(window(1024)x5,full)x10,window(1024)x2");
    check_text("window(8),full", 7, "(window(8),full)x3,window(8)");
    check_text("full,window(8)x2", 0, "full,window(8)x2");
    check_text("window(keys=8)", 0, "window(8)");
    check_text("window(window=33)", 0, "window(17)");
    check_text("window(8,sinks=4)x2,window(8)", 0, "window(8,sinks=4)x2,window(8)");
    check_text("streaming-llm(sinks=2,window=60),streaming-llm", 0,
               "window(60,sinks=2),window(8,sinks=4)");
    check_text("h2o(heavy=4,recent=5)x2,h2o(heavy=5),quest", 0,
               "h2o(heavy=4,recent=5)x2,h2o(heavy=5),quest");
    check_text("state(2,3,4),full", 4, "(state(2,3,4),full)x2");
    check_text("retnet(9,3,4),retnet(10,3,4)", 2, "retnet(9,3,4),retnet(10,3,4)");
    check_text("retnet(2,3,4)+conv(5,4),retnet(2,3,4)", 4,
               "(retnet(2,3,4)+conv(5,4),retnet(2,3,4))x2");
}

TEST(a_stack_has_no_more_layers_than_its_depth)
{
    Stack *stack = calloc(1, sizeof(*stack));
    Error  err = ERROR_INIT;

    assert_non_null(stack);
    assert_true(stack_parse("full,window(8),full", stack, &err));
    assert_false(stack_repeat(stack, 2, &err));
    assert_non_null(strstr(err.text, "3 layers are given, but the depth is 2"));
    assert_false(stack_repeat(stack, 1025, &err));
    assert_non_null(strstr(err.text, "at most 1024"));
    assert_int_equal(stack->count, 3);
    free(stack);
}

/* Kinds stand in the order in which they come, and their costs add up to the stack's. */
TEST(kinds_of_layers_add_up)
{
    Stack    *stack = calloc(1, sizeof(*stack));
    StackKind kinds[STACK_LAYERS];
    StackCost all, sum = { 0 };
    Error     err = ERROR_INIT;

    assert_non_null(stack);
    assert_true(stack_parse("(window(7)x2,full,window(9))x3", stack, &err));
    assert_int_equal(stack_kinds(stack, kinds), 3);
    assert_int_equal(kinds[0].count, 6);
    assert_int_equal(kinds[1].layer.kind, LAYER_FULL);
    assert_int_equal(kinds[2].layer.window, 9);
    all = stack_cost(stack, &small, 8);
    for (int i = 0; i < 3; i++) {
        StackCost one = stack_kind_cost(&kinds[i], &small, 8);

        sum.token_bytes += one.token_bytes;
        sum.cache_bytes += one.cache_bytes;
        sum.step_flops += one.step_flops;
    }
    CHECK_WITHIN(all.token_bytes, 6 * 64, 0);
    CHECK_WITHIN(sum.token_bytes, all.token_bytes, 0);
    CHECK_WITHIN(sum.cache_bytes, all.cache_bytes, 0);
    CHECK_WITHIN(sum.step_flops, all.step_flops, 0);
    free(stack);
}

TEST(states_are_counted_apart)
{
    StackCost cost = cost_of("state(2,3,4)x2,full", small, 10);

    CHECK_WITHIN(cost.state_bytes, 2 * 4 * 24, 0);
    CHECK_WITHIN(cost.cache_bytes, 2 * 4 * 24 + 10 * 64, 0);
    CHECK_WITHIN(cost.token_bytes, 64, 0);
    assert_true(isnan(cost.step_flops));
}

/* The bytes of 32 numbers are those of a block of the GGUF type. */
TEST(types_of_cached_numbers)
{
    static const struct {
        const char *name;
        double      bytes;
    } blocks[] = { { "bf16", 64 }, { "f16", 64 }, { "f32", 128 }, { "f8", 32 },
                   { "q8", 34 },   { "q5", 22 },  { "q4", 18 } };
    StackShape s = small;
    Error      err = ERROR_INIT;

    s.dim = 16; /* rows of 32 numbers, of keys and of values */
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
        assert_true(stack_dtype_parse(blocks[i].name, &s, &err));
        CHECK_WITHIN(cost_of("full", s, 1).token_bytes, 2 * blocks[i].bytes, 0);
    }
    assert_null(stack_dtype_name(sizeof(blocks) / sizeof(*blocks)));
    assert_false(stack_dtype_parse("q3", &s, &err));
    assert_non_null(strstr(err.text, "'q3' is no type of cached numbers; there are bf16"));
}

/* A block is whole: 48 numbers take two of 18 bytes.  A row is of all heads. */
TEST(groups_of_cached_numbers_are_whole)
{
    static const struct {
        int64_t heads, dim, rank;
        double  bytes;
        int64_t rest;
        bool    cuts;
    } rows[] = { { 1, 64, 0, 72, 0, false }, { 1, 48, 0, 72, 16, true }, { 2, 48, 0, 108, 0, true },
                 { 3, 40, 0, 144, 8, true }, { 2, 48, 576, 324, 0, false },
                 { 1, 48, 40, 36, 24, false } };
    Error err = ERROR_INIT;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        StackShape s = small;

        s.heads = s.kv_heads = rows[i].heads;
        s.dim = rows[i].dim;
        s.rank = rows[i].rank;
        assert_true(stack_dtype_parse("q4", &s, &err));
        CHECK_WITHIN(cost_of("full", s, 1).token_bytes, rows[i].bytes, 0);
        assert_int_equal(stack_group_rest(&s), rows[i].rest);
        assert_int_equal(stack_group_cuts_heads(&s), rows[i].cuts);
    }
}

TEST(layers_repeat)
{
    Stack *stack = calloc(1, sizeof(*stack));
    Error  err = ERROR_INIT;

    assert_non_null(stack);
    assert_true(stack_parse(" ( window(7) x 2 , full )x3, full", stack, &err));
    assert_int_equal(stack->count, 10);
    assert_int_equal(stack->layers[7].kind, LAYER_WINDOW);
    assert_int_equal(stack->layers[8].kind, LAYER_FULL);
    free(stack);
}

TEST(wrong_layers_name_their_place)
{
    static const char *const wrong[][2] = {
        { "", "character 1" },          { "full,", "character 6" },
        { "full x0", "character 7" },   { "window(0)", "character 8" },
        { "window", "character 7" },    { "(full", "character 6" },
        { "full)", "character 5" },     { "fullx1025", "1024 layers" },
        { "window(9,6)", "expected sinks=KEYS" },
        { "streaming-llm(9)", "expected sinks=KEYS or window=KEYS, as in streaming-llm(sinks=" },
        { "mla(512,64)", "the sizes of a state, NAME(HEADS,KEYS,VALUES); a pattern" },
        { "mla(512,64)", "latent attention is full with --rank R --rope R" },
        { "retnet(8)", "by parameters there are " },
        { "full,h2o(1024)", "character 9: its parameters have names, as in h2o(heavy=8)" },
        { "quest(16,1024)", "as in quest(budget=8)" },
        { "h2o(heavy=-1)", "character 4: parameter heavy: must be at least 0" },
        { "h2o(heavy=9", "expected ')'" },
        { "h2o(cache_bytes=4)", "leave cache_bytes out" },
        { "state(1,2)", "character 10" }, { "((((((((((((((((((", "16 brackets" },
        { "fullx99999999999999999999", "too large" },
    };
    Stack *stack = calloc(1, sizeof(*stack));

    assert_non_null(stack);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        Error err = ERROR_INIT;

        assert_false(stack_parse(wrong[i][0], stack, &err));
        if (!strstr(err.text, wrong[i][1]))
            fail_msg("'%s': %s", wrong[i][0], err.text);
    }
    free(stack);
}

static bool allowed(StackShape s)
{
    Error err = ERROR_INIT;
    bool  ok = stack_shape_check(&s, &err);

    assert_int_equal(err.code, ok ? ERR_NONE : ERR_PARAM);
    return ok;
}

/* Each number at its least, and one below it. */
TEST(shapes_have_edges)
{
    StackShape least = { .heads = 1, .kv_heads = 1, .dim = 1, .bits = 1 }, s;

    assert_true(allowed(least));
    s = least, s.heads = 0;
    assert_false(allowed(s));
    s = least, s.kv_heads = 0;
    assert_false(allowed(s));
    s = least, s.dim = 0;
    assert_false(allowed(s));
    s = least, s.rank = -1;
    assert_false(allowed(s));
    s = least, s.rope = 1;
    assert_false(allowed(s));
    s = least, s.rank = 1, s.rope = 1;
    assert_true(allowed(s));
    s = least, s.rank = 1, s.rope = -1;
    assert_false(allowed(s));
    s = least, s.heads = 2, s.kv_heads = 2;
    assert_true(allowed(s));
    s = least, s.heads = 3, s.kv_heads = 2;
    assert_false(allowed(s));
    s = least, s.bits = 64;
    assert_true(allowed(s));
    s = least, s.bits = 65;
    assert_false(allowed(s));
    s = least, s.bits = 0;
    assert_false(allowed(s));
    s = least, s.group = -1;
    assert_false(allowed(s));
    s = least, s.group = 1;
    assert_false(allowed(s));
    s = least, s.group = 1, s.scale_bits = 64;
    assert_true(allowed(s));
    s = least, s.group = 1, s.scale_bits = 65;
    assert_false(allowed(s));
}

SUITE(NULL, NULL)
