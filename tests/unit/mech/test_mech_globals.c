/* test_mech_globals.c -- what longformer, etc, poolingformer, long-short and
 * memory-compressed promise beyond their reference cases. */
#include "attn/run/position.h"
#include "mech_fixture.h"

#define N 21

static void check_refused(Fixture *f, const char *id, const char *params, ErrorCode code,
                          const char *word)
{
    fixture_run_at(f, id, params, false, true, 0);
    assert_int_equal(f->run->err.code, code);
    if (!strstr(f->run->err.text, word))
        fail_msg("'%s' does not say '%s'", f->run->err.text, word);
}

static void check_variants(Fixture *f, const char *id, const char *const *params, int count)
{
    for (int x = 0; x < count; x++) {
        for (int causal = 0; causal <= mechanism_find(id)->causal; causal++) {
            fixture_run(f, id, params[x], causal);
            check_flops(f);
        }
        check_out_of_memory(f, id, params[x]);
    }
}

static int64_t outputs(const Fixture *f)
{
    return HEADS * f->n * VALUE_SIZE;
}

/* ---- longformer -------------------------------------------------------------- */

TEST(projections_equal_to_the_inputs_change_nothing)
{
    static const char *const kinds[] = { "rope", "alibi", "shaw", "t5", "xl", "disentangled" };
    Fixture f = fixture_new(N);
    float  *plain;

    for (int causal = 0; causal < 2; causal++)
        for (size_t x = 0; x < sizeof(kinds) / sizeof(*kinds); x++) {
            f.position = position_find(kinds[x]);
            f.tensor_count = 0;
            fixture_run(&f, "longformer", "window=5,global=[3,-1]", causal);
            plain = fixture_output(&f);
            fixture_give(&f, "q_global", f.q);
            fixture_give(&f, "v_global", f.v);
            fixture_run(&f, "longformer", "window=5,global=[3,-1]", causal);
            check_near(tensor_f32(&f.run->out), plain, outputs(&f), 1e-6);
            check_flops(&f);
            free(plain);
        }
    fixture_free(&f);
}

TEST(only_rows_of_globals_take_their_values)
{
    Fixture f = fixture_new(N);
    float  *plain;

    fixture_run(&f, "longformer", "window=5,global=[2]", false);
    plain = fixture_output(&f);
    fixture_draw(&f, "v_global", 1, N, VALUE_SIZE);
    fixture_run(&f, "longformer", "window=5,global=[2]", false);
    for (int64_t row = 0; row < HEADS * N; row++) {
        const float *now = tensor_f32(&f.run->out) + row * VALUE_SIZE;

        if (row % N != 2)
            check_near(now, plain + row * VALUE_SIZE, VALUE_SIZE, 1e-6);
        else
            assert_true(fabsf(now[0] - plain[row * VALUE_SIZE]) > 1e-3f);
    }
    free(plain);
    fixture_free(&f);
}

TEST(longformer_says_what_is_wrong)
{
    Fixture f = fixture_new(N);

    check_refused(&f, "longformer", "global=[21]", ERR_PARAM, "position 21");
    check_refused(&f, "longformer", "global=[-22]", ERR_PARAM, "position -22");
    check_refused(&f, "longformer", "dilation=[1,2,3]", ERR_PARAM, "one per head");
    check_refused(&f, "longformer", "dilation=[0]", ERR_PARAM, "at least 1");
    fixture_run(&f, "longformer", "global=1000", false); /* all of them */
    fixture_draw(&f, "q_global", HEADS, N - 1, KEY_SIZE);
    check_refused(&f, "longformer", "", ERR_PARAM, "q_global");
    f.tensor_count = 0;
    fixture_draw(&f, "k_global", HEADS, N, KEY_SIZE);
    check_variants(&f, "longformer", (const char *const[]){ "window=3,dilation=[1,3]" }, 1);
    check_causal(&f, "longformer", "global=[4,9]", 11);
    fixture_free(&f);
}

/* ---- etc --------------------------------------------------------------------- */

#define G 3

/* Row i of N + G: weights times [globals' values; tokens' values]. */
static double mixed(const float *w, Tensor globals, Tensor tokens, int64_t head, int64_t c)
{
    double sum = 0;

    for (int64_t j = 0; j < G; j++)
        sum += (double)w[j] * (double)tensor_f32(&globals)[(head * G + j) * VALUE_SIZE + c];
    for (int64_t j = 0; j < N; j++)
        sum += (double)w[G + j] * (double)tensor_f32(&tokens)[(head * N + j) * VALUE_SIZE + c];
    return sum;
}

TEST(rows_of_etc_have_values_of_their_own)
{
    Fixture f = fixture_new(N);
    Tensor  v_global = fixture_draw(&f, "v_global", HEADS, G, VALUE_SIZE);
    Tensor  v_l2g = fixture_draw(&f, "v_l2g", HEADS, G, VALUE_SIZE);
    Tensor  v_g2l = fixture_draw(&f, "v_g2l", HEADS, N, VALUE_SIZE), weights, global;

    fixture_draw(&f, "k_g2l", HEADS, N, KEY_SIZE);
    fixture_run(&f, "etc", "global=3,radius=2", false);
    weights = fixture_view(&f, "weights");
    global = fixture_view(&f, "output_global");
    for (int64_t row = 0; row < HEADS * (G + N); row++) {
        const float *w = tensor_f32(&weights) + row * (G + N);
        int64_t      head = row / (G + N), i = row % (G + N);

        for (int64_t c = 0; c < VALUE_SIZE; c++) {
            double want = i < G ? mixed(w, v_global, v_g2l, head, c)
                                : mixed(w, v_l2g, f.v, head, c);
            double got = (double)(i < G ? tensor_f32(&global)[(head * G + i) * VALUE_SIZE + c]
                                        : tensor_f32(&f.run->out)[(head * N + i - G) * VALUE_SIZE +
                                                                  c]);

            assert_true(fabs(got - want) <= 1e-5);
        }
    }
    fixture_free(&f);
}

TEST(a_position_acts_on_tokens_for_globals_too)
{
    Fixture f = fixture_new(N);
    Tensor  bias;
    float  *plain;

    f.position = position_find("rope");
    fixture_run(&f, "etc", "global=3", false);
    plain = fixture_output(&f);
    fixture_give(&f, "k_g2l", f.k);
    fixture_run(&f, "etc", "global=3", false);
    check_near(tensor_f32(&f.run->out), plain, outputs(&f), 0);
    check_flops(&f);
    bias = fixture_view(&f, "position_bias");
    for (int64_t row = 0; row < G; row++)
        assert_true(tensor_f32(&bias)[row * (G + N) + row] == 0); /* globals stand nowhere */
    assert_true(fabsf(tensor_f32(&bias)[G + 5]) > 0);
    f.position = position_find("alibi");
    check_refused(&f, "etc", "", ERR_USAGE, "position=alibi is not supported by etc");
    free(plain);
    fixture_free(&f);
}

TEST(without_globals_etc_is_a_window)
{
    Fixture f = fixture_new(N);
    float  *plain;

    fixture_run(&f, "window", "window=9", false);
    plain = fixture_output(&f);
    fixture_run(&f, "etc", "global=0,radius=4", false);
    check_near(tensor_f32(&f.run->out), plain, outputs(&f), 0);
    fixture_run(&f, "etc", "l2g=false,radius=4", false);
    check_near(tensor_f32(&f.run->out), plain, outputs(&f), 1e-6);
    fixture_run(&f, "etc", "l2g=false,l2l=false", false);
    memset(plain, 0, (size_t)outputs(&f) * sizeof(*plain));
    check_near(tensor_f32(&f.run->out), plain, outputs(&f), 0);
    free(plain);
    fixture_free(&f);
}

TEST(masks_of_etc_remove_cells)
{
    Fixture f = fixture_new(N);
    Tensor  mask = tensor_new(f.arena, DT_U8, 2, (int64_t[]){ G, N }), components;

    for (int64_t c = 0; c < G * N; c++) /* each global has a third of the tokens */
        tensor_u8(&mask)[c] = c / N == c % N / 7;
    fixture_give(&f, "mask_g2l", mask);
    fixture_run(&f, "etc", "global=3,radius=1", false);
    check_flops(&f);
    components = fixture_view(&f, "components");
    for (int64_t i = 0; i < G; i++)
        for (int64_t j = 0; j < N; j++)
            assert_int_equal(tensor_u8(&components)[i * (G + N) + G + j],
                             i == j / 7 ? COMPONENT_GLOBAL : 0);
    check_out_of_memory(&f, "etc", "global=3");
    check_refused(&f, "etc", "global=2", ERR_PARAM, "mask_g2l");
    fixture_free(&f);
}

/* ---- poolingformer ----------------------------------------------------------- */

TEST(each_level_is_a_softmax)
{
    Fixture f = fixture_new(N);
    Tensor  weights;

    fixture_run(&f, "poolingformer", "window=3,window2=9,kernel=4,stride=4", false);
    weights = fixture_view(&f, "weights");
    for (int64_t row = 0; row < HEADS * N; row++) {
        double sum = 0;

        for (int64_t j = 0; j < N; j++)
            sum += (double)tensor_f32(&weights)[row * N + j];
        assert_true(fabs(sum - 2) < 1e-5);
    }
    fixture_free(&f);
}

TEST(poolingformer_in_all_its_forms)
{
    static const char *const forms[] = { "pooling=max,kernel=3", "pooling=ldconv,stride=7",
                                         "level2=sequential", "pooling=ldconv,level2=sequential",
                                         "kernel=100,stride=100,window2=1000" };
    Fixture f = fixture_new(N);

    check_variants(&f, "poolingformer", forms, sizeof(forms) / sizeof(*forms));
    check_causal(&f, "poolingformer", "kernel=3,stride=2,pooling=max", 12);
    check_causal(&f, "poolingformer", "level2=sequential", 9);
    fixture_run(&f, "poolingformer", "pooling=max", false);
    assert_null(run_view(f.run, "weights"));
    assert_null(run_view(f.run, "pool"));
    fixture_run(&f, "poolingformer", "level2=sequential", false);
    assert_null(run_view(f.run, "weights"));
    assert_non_null(run_view(f.run, "w_v2"));
    fixture_draw(&f, "w_q2", 1, 1, HEADS * KEY_SIZE); /* one row is not shared by all */
    check_refused(&f, "poolingformer", "level2=sequential", ERR_PARAM, "w_q2");
    fixture_free(&f);
}

/* ---- long-short -------------------------------------------------------------- */

/* The layer input says how segments are weighed, where there is one; else the keys do. */
TEST(long_short_weighs_the_layer_input)
{
    for (int given = 0; given < 2; given++) {
        Fixture f = given ? fixture_new_x(13) : fixture_new(13);
        Tensor  moved = given ? f.x : f.k, before, after;
        int64_t width = given ? FEATURES : KEY_SIZE;

        fixture_run(&f, "long-short", "segment=4,rank=2,short=false", false);
        before = fixture_view(&f, "projection");
        tensor_f32(&moved)[5 * width + 1] += 2;
        fixture_run(&f, "long-short", "segment=4,rank=2,short=false", false);
        after = fixture_view(&f, "projection");
        assert_memory_not_equal(before.data, after.data, (size_t)tensor_bytes(&before));
        fixture_free(&f);
    }
}

TEST(long_short_in_all_its_forms)
{
    static const char *const forms[] = { "rank=1,segment=1", "short=false,chunk=4",
                                         "segment=100,chunk=100", "chunk=1,rank=3" };
    Fixture f = fixture_new(N);

    check_variants(&f, "long-short", forms, sizeof(forms) / sizeof(*forms));
    for (int64_t t = 2; t < N; t += 5)
        check_causal(&f, "long-short", "chunk=4,segment=3", t);
    fixture_free(&f);
}

TEST(a_bias_of_logits_cancels)
{
    Fixture f = fixture_new(N);
    float  *plain;

    fixture_draw(&f, "w_p", HEADS, KEY_SIZE, 6);
    fixture_run(&f, "long-short", "", false);
    assert_int_equal(fixture_view(&f, "projection").shape[1], 6); /* the tensor decides */
    plain = fixture_output(&f);
    fixture_draw(&f, "b_p", 1, HEADS, 6);
    f.tensors[1].tensor = tensor_with_rank(f.tensors[1].tensor, 2);
    fixture_run(&f, "long-short", "", false);
    check_near(tensor_f32(&f.run->out), plain, outputs(&f), 2e-6);
    free(plain);
    fixture_free(&f);
}

TEST(long_short_says_what_is_wrong)
{
    Fixture f = fixture_new(N);

    check_refused(&f, "long-short", "dual_ln=true", ERR_PARAM, "values of the keys' size");
    check_refused(&f, "long-short", "rank=0", ERR_PARAM, "rank: must be at least 1");
    check_refused(&f, "long-short", "segment=0", ERR_PARAM, "segment: must be at least 1");
    fixture_draw(&f, "p_logits", HEADS, N, 2);
    fixture_run(&f, "long-short", "", true);
    check_flops(&f);
    fixture_draw(&f, "w_p", HEADS, KEY_SIZE, 2);
    check_refused(&f, "long-short", "", ERR_PARAM, "p_logits");
    fixture_free(&f);
}

TEST(dual_norms)
{
    Fixture f = fixture_new(N);
    float  *after;

    f.v = f.k;
    fixture_run(&f, "long-short", "dual_ln=true", true);
    assert_null(run_view(f.run, "weights"));
    after = malloc((size_t)tensor_bytes(&f.run->out));
    memcpy(after, f.run->out.data, (size_t)tensor_bytes(&f.run->out));
    check_flops(&f);
    fixture_run(&f, "long-short", "dual_ln=true,ln_order=before", true);
    assert_true(memcmp(after, f.run->out.data, (size_t)tensor_bytes(&f.run->out)) != 0);
    check_out_of_memory(&f, "long-short", "dual_ln=true,ln_order=before");
    free(after);
    fixture_free(&f);
}

/* ---- memory-compressed ------------------------------------------------------- */

TEST(groups_of_one_are_full_attention)
{
    Fixture f = fixture_new(N);
    float  *plain;

    fixture_run(&f, "full", "", false);
    plain = fixture_output(&f);
    fixture_run(&f, "memory-compressed", "factor=1", false);
    check_near(tensor_f32(&f.run->out), plain, outputs(&f), 1e-6);
    free(plain);
    fixture_free(&f);
}

TEST(taps_of_the_mean_are_the_mean)
{
    Fixture f = fixture_new(N);
    Tensor  taps;
    float  *plain;

    fixture_run(&f, "memory-compressed", "factor=4", false);
    plain = fixture_output(&f);
    taps = tensor_new(f.arena, DT_F32, 4, (int64_t[]){ HEADS, 4, KEY_SIZE, KEY_SIZE });
    for (int64_t c = 0; c < tensor_count(&taps); c++)
        tensor_f32(&taps)[c] = c / KEY_SIZE % KEY_SIZE == c % KEY_SIZE ? 0.25f : 0;
    fixture_give(&f, "conv_k", taps);
    fixture_run(&f, "memory-compressed", "factor=4", false);
    check_near(tensor_f32(&f.run->out), plain, outputs(&f), 1e-6);
    check_flops(&f);
    free(plain);
    fixture_free(&f);
}

TEST(nothing_to_see_is_zero)
{
    Fixture f = fixture_new(N);

    fixture_run(&f, "memory-compressed", "factor=30,tail=drop", false);
    for (int64_t c = 0; c < outputs(&f); c++)
        assert_true(tensor_f32(&f.run->out)[c] == 0);
    assert_int_equal(fixture_view(&f, "weights_compressed").shape[2], 0);
    check_flops(&f);
    fixture_run(&f, "memory-compressed", "factor=4,add_first=false", true);
    for (int64_t c = 0; c < 4 * VALUE_SIZE; c++)
        assert_true(tensor_f32(&f.run->out)[c] == 0);
    fixture_free(&f);
}

TEST(memory_compressed_in_all_its_forms)
{
    static const char *const forms[] = { "conv_init=glorot", "conv_init=glorot,tail=drop,factor=4",
                                         "add_first=true,factor=50", "tail=drop,factor=2" };
    Fixture f = fixture_new(N);

    check_variants(&f, "memory-compressed", forms, sizeof(forms) / sizeof(*forms));
    fixture_run(&f, "memory-compressed", "conv_init=glorot", false);
    assert_non_null(run_view(f.run, "conv_k"));
    assert_null(run_view(f.run, "weights"));
    for (int64_t t = 1; t < N; t += 4)
        check_causal(&f, "memory-compressed", "factor=4,conv_init=glorot", t);
    fixture_free(&f);
}

SUITE(NULL, NULL)
