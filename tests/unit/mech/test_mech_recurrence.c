/* test_mech_recurrence.c -- segments with a memory: equal to their references, what is kept
 * and forgotten, and how far back layers reach. */
#include "attn/run/position.h"
#include "mech_fixture.h"

static const int64_t lengths[] = { 1, 2, 13, 16, 31 };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

/* Outputs of two mechanisms on the same input; tolerance 0: the same bits. */
static void check_equal(int64_t n, const char *a, const char *in_a, const char *b,
                        const char *in_b, bool causal, double tolerance)
{
    Fixture f = fixture_new(n), g = fixture_new(n);

    fixture_run(&f, a, in_a, causal);
    fixture_run(&g, b, in_b, causal);
    check_near(tensor_f32(&f.run->out), tensor_f32(&g.run->out), tensor_count(&f.run->out),
               tolerance);
    check_weights(&f);
    check_flops(&f);
    fixture_free(&f);
    fixture_free(&g);
}

/* ---- transformer-xl ---------------------------------------------------------- */

TEST(a_memory_of_everything_is_causal_attention)
{
    for (size_t x = 0; x < LENGTHS; x++)
        check_equal(lengths[x], "transformer-xl", "segment=4,mem_len=40", "full", "", true, 1e-6);
}

TEST(no_memory_is_attention_in_blocks)
{
    for (size_t x = 0; x < LENGTHS; x++)
        for (int causal = 0; causal < 2; causal++)
            check_equal(lengths[x], "transformer-xl", "segment=4,mem_len=0", "pattern",
                        "expr='chunk(4,0,0)'", causal, 1e-6);
}

TEST(the_same_length_is_a_window_cut_by_segments)
{
    for (size_t x = 0; x < LENGTHS; x++) {
        check_equal(lengths[x], "transformer-xl", "segment=4,mem_len=7,same_length=true", "pattern",
                    "expr='band(-6,0)&local(4,7,0)'", true, 1e-6);
        check_equal(lengths[x], "transformer-xl", "segment=4,mem_len=0,same_length=true", "pattern",
                    "expr='self'", true, 1e-6);
    }
}

/* Segments are pieces of one run: a position must not notice the cut. */
TEST(every_position_is_that_of_the_whole)
{
    for (size_t p = 0; position_at(p); p++)
        for (int causal = 0; causal < 2; causal++) {
            Fixture f = fixture_new(19), g = fixture_new(19);

            f.position = g.position = position_at(p);
            if (!strcmp(f.position->id, "rope")) { /* needs an even size */
                f.q = fixture_normal(&f, "q", 6);
                f.k = fixture_normal(&f, "k", 6);
                g.q = fixture_normal(&g, "q", 6);
                g.k = fixture_normal(&g, "k", 6);
            }
            fixture_run(&f, "transformer-xl", "segment=4,mem_len=6", causal);
            fixture_run(&g, "pattern", "expr='local(4,6,0)'", causal);
            check_near(tensor_f32(&f.run->out), tensor_f32(&g.run->out),
                       tensor_count(&f.run->out), 2e-6);
            fixture_free(&f);
            fixture_free(&g);
        }
}

TEST(layers_reach_one_memory_further_each)
{
    Fixture f = fixture_new(40);
    Tensor  tokens, segments;

    fixture_run(&f, "transformer-xl", "segment=4,mem_len=8", true);
    tokens = fixture_view(&f, "reach_tokens");
    segments = fixture_view(&f, "reach_segments");
    assert_int_equal(tokens.shape[0], 6);
    for (int64_t depth = 0; depth < tokens.shape[0]; depth++)
        for (int64_t i = 0; i < f.n; i++) {
            int64_t first = depth ? i / 4 * 4 - 8 * depth : i;

            first = first < 0 ? 0 : first;
            assert_int_equal(tensor_i32(&tokens)[depth * f.n + i], i - first);
            assert_int_equal(tensor_i32(&segments)[depth * f.n + i], i / 4 - first / 4);
        }
    fixture_free(&f);
}

TEST(a_segment_is_seen_by_itself)
{
    Fixture f = fixture_new(23);
    Tensor  weights, last;

    fixture_run(&f, "transformer-xl", "segment=5,mem_len=3", true);
    weights = fixture_view(&f, "weights");
    last = fixture_view(&f, "segment_weights");
    assert_int_equal(last.shape[1], 3);
    assert_int_equal(last.shape[2], 6);
    for (int64_t head = 0; head < HEADS; head++)
        for (int64_t i = 0; i < 3; i++)
            check_near(tensor_f32(&last) + (head * 3 + i) * 6,
                       tensor_f32(&weights) + (head * 23 + 20 + i) * 23 + 17, 6, 1e-6);
    fixture_free(&f);
}

/* ---- compressive --------------------------------------------------------------- */

TEST(without_slots_it_is_transformer_xl)
{
    for (size_t x = 0; x < LENGTHS; x++)
        for (int causal = 0; causal < 2; causal++) {
            check_equal(lengths[x], "compressive", "segment=4,mem_len=6,cmem_len=0",
                        "transformer-xl", "segment=4,mem_len=6", causal, 0);
            check_equal(lengths[x], "compressive", "segment=4,mem_len=40,cmem_len=3",
                        "transformer-xl", "segment=4,mem_len=40", causal, 0);
        }
}

TEST(slots_of_one_token_lose_nothing)
{
    static const char *const ways[] = { "mean", "most-used" };

    for (size_t x = 0; x < LENGTHS; x++)
        for (size_t w = 0; w < 2; w++) {
            char params[80];

            snprintf(params, sizeof(params), "segment=4,mem_len=3,cmem_len=40,ratio=1,compress=%s",
                     ways[w]);
            check_equal(lengths[x], "compressive", params, "full", "", true, 1e-6);
        }
}

/* weights @ V, and closed forms, for all ways that have weights. */
TEST(weights_on_tokens_give_the_output)
{
    static const char *const ways[] = { "mean", "conv", "dilated-conv", "most-used" };
    static const char *const shapes[] = { "segment=4,mem_len=3,cmem_len=2,ratio=2",
                                          "segment=5,mem_len=4,cmem_len=3,ratio=3",
                                          "segment=7,mem_len=0,cmem_len=1,ratio=4",
                                          "segment=1,mem_len=2,cmem_len=9,ratio=5" };

    for (size_t x = 0; x < LENGTHS; x++)
        for (size_t w = 0; w < 4; w++)
            for (size_t s = 0; s < 4; s++) {
                Fixture f = fixture_new(lengths[x]);
                char    params[80];

                snprintf(params, sizeof(params), "%s,compress=%s", shapes[s], ways[w]);
                fixture_run(&f, "compressive", params, true);
                check_weights(&f);
                check_flops(&f);
                fixture_run(&f, "compressive", params, false);
                check_weights(&f);
                check_causal(&f, "compressive", params, f.n / 2);
                fixture_free(&f);
            }
}

TEST(of_equal_use_the_older_tokens_stay)
{
    Fixture f = fixture_new(12);
    Tensor  memory;

    memset(f.k.data, 0, (size_t)tensor_bytes(&f.k));
    fixture_run(&f, "compressive", "segment=4,mem_len=4,cmem_len=4,ratio=2,compress=most-used",
                true);
    memory = fixture_view(&f, "memory");
    /* Third segment: slots 2 and 3 are the tokens 0 and 1 of those that left after the second. */
    assert_int_equal(tensor_i32(&memory)[(2 * 8 + 1) * 2], -1);
    assert_int_equal(tensor_i32(&memory)[(2 * 8 + 2) * 2], 0);
    assert_int_equal(tensor_i32(&memory)[(2 * 8 + 3) * 2], 1);
    assert_int_equal(tensor_i32(&memory)[(2 * 8 + 4) * 2], 4);
    fixture_free(&f);
}

/* Dilated taps of an even ratio never meet every other token. */
TEST(what_no_tap_meets_is_not_reached)
{
    Fixture f = fixture_new(16);
    Tensor  cells;

    fixture_run(&f, "compressive",
                "segment=8,mem_len=0,cmem_len=4,ratio=2,compress=dilated-conv", true);
    cells = fixture_view(&f, "connectivity");
    for (int64_t j = 0; j < 8; j++)
        assert_int_equal(tensor_u8(&cells)[15 * 16 + j], j % 2 == 0);
    fixture_free(&f);
}

/* The view `memory` gives a slot the tokens from its first to its last one, those between its taps
 * included; a later group of the batch may begin inside. */
TEST(dilated_slots_span_their_tokens)
{
    static const int32_t expected[][2] = { { 0, 7 }, { 4, 7 }, { 8, 15 }, { 12, 15 } };
    Fixture f = fixture_new(32);
    Tensor  memory;

    fixture_run(&f, "compressive",
                "segment=8,mem_len=8,cmem_len=4,ratio=4,compress=dilated-conv", true);
    memory = fixture_view(&f, "memory"); /* of the last segment: four slots, then the memory */
    for (int64_t s = 0; s < 4; s++) {
        const int32_t *slot = tensor_i32(&memory) + (3 * 12 + s) * 2;

        CHECK(slot[0] == expected[s][0] && slot[1] == expected[s][1], "slot %lld: [%d, %d)",
              (long long)s, slot[0], slot[1]);
    }
    assert_int_equal(tensor_i32(&memory)[(3 * 12 + 4) * 2], 16);
    fixture_free(&f);
}

/* Projected from x, attention is that of the projected q, k, v, as long as nothing is
 * squeezed by other than its mean: projections are linear. */
TEST(means_of_x_are_means_of_its_keys)
{
    Fixture f = fixture_new(21), g;
    float  *out;

    f.x = tensor_with_rank(fixture_normal(&f, "x", 4), 2);
    f.x = tensor_of(DT_F32, 2, (int64_t[]){ 21, 8 }, f.x.data);
    fixture_run(&f, "compressive", "segment=4,mem_len=3,cmem_len=3,ratio=2,heads=2", true);
    check_flops(&f);
    assert_int_equal(f.run->h, 2);
    assert_int_equal(f.run->d, 4);
    g = f;
    g.arena = arena_new();
    g.run = NULL;
    g.given = (Assignments){ 0 };
    g.x = (Tensor){ .rank = 0 };
    g.q = f.run->q;
    g.k = f.run->k;
    g.v = f.run->v;
    fixture_run(&g, "compressive", "segment=4,mem_len=3,cmem_len=3,ratio=2", true);
    out = fixture_output(&f);
    check_near(out, tensor_f32(&g.run->out), tensor_count(&g.run->out), 1e-5);
    free(out);
    fixture_free(&g);
    fixture_free(&f);
}

TEST(the_full_convolution_needs_x)
{
    Fixture f = fixture_new(9);
    Tensor  x = fixture_normal(&f, "x", 4);

    check_fails(&f, "compressive", "heads=2", true, "layer input x");
    fixture_draw(&f, "conv_weight", 4, 4, 4);
    check_fails(&f, "compressive", "compress=conv", true, "give [ratio] taps");
    f.x = tensor_of(DT_F32, 2, (int64_t[]){ 9, 4 }, x.data);
    fixture_run(&f, "compressive", "compress=conv,segment=3,mem_len=2,cmem_len=4", true);
    assert_null(run_view(f.run, "weights"));
    check_flops(&f);
    check_fails(&f, "compressive", "compress=dilated-conv", true, "give [ratio] taps");
    check_fails(&f, "compressive", "compress=conv,heads=3", true, "does not divide");
    check_fails(&f, "compressive", "compress=conv,ratio=3", true, "conv_weight");
    f.position = position_find("rope");
    check_fails(&f, "compressive", "compress=conv", true, "position=rope");
    fixture_free(&f);
}

TEST(failed_allocations_are_ordinary_errors)
{
    Fixture f = fixture_new(9);

    check_out_of_memory(&f, "compressive",
                        "segment=2,mem_len=1,cmem_len=2,ratio=2,compress=most-used");
    check_out_of_memory(&f, "compressive",
                        "segment=2,mem_len=1,cmem_len=2,ratio=2,compress=dilated-conv");
    fixture_free(&f);
}

SUITE(NULL, NULL)
