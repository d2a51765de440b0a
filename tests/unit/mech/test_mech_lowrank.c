/* test_mech_lowrank.c -- low-rank attention and the synthesizers: equal to exact attention
 * where nothing is lost, and their own promises. */
#include "mech_fixture.h"

static const int64_t lengths[] = { 1, 2, 13, 16 };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

static void give(Fixture *f, int at, const char *name, Tensor t)
{
    f->names[at] = name;
    f->values[at] = t;
}

static Tensor tensor(Fixture *f, int rank, int64_t a, int64_t b, int64_t c)
{
    Tensor t = tensor_new(f->arena, DT_F32, rank, (int64_t[]){ a, b, c });
    Rng    rng = rng_named(11, "tensor");

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), 1);
    return t;
}

static void check_equals_full(Fixture *f, const char *id, const char *params)
{
    Fixture plain = fixture_new(f->n);

    fixture_run(&plain, "full", "", false);
    fixture_run(f, id, params, false);
    check_near(tensor_f32(&f->run->out), tensor_f32(&plain.run->out), tensor_count(&f->run->out),
               1e-5);
    check_weights(f);
    check_flops(f);
    fixture_free(&plain);
}

/* ---- linformer -------------------------------------------------------------- */

TEST(identity_projections_are_exact_attention)
{
    for (size_t x = 0; x < LENGTHS; x++) {
        Fixture f = fixture_new(lengths[x]);
        Tensor  one = tensor(&f, 2, f.n, f.n + 2, 0); /* two columns are cut */

        for (int64_t i = 0; i < tensor_count(&one); i++)
            tensor_f32(&one)[i] = i / (f.n + 2) == i % (f.n + 2);
        give(&f, 0, "e_proj", one);
        check_equals_full(&f, "linformer", "sharing=kv");
        give(&f, 1, "f_proj", one);
        check_equals_full(&f, "linformer", "");
        fixture_free(&f);
    }
}

TEST(projections_are_checked)
{
    Fixture f = fixture_new(7);

    give(&f, 0, "e_proj", tensor(&f, 2, 3, 7, 0));
    check_fails(&f, "linformer", "sharing=none", false, "[h,k,m]");
    give(&f, 0, "e_proj", tensor(&f, 3, HEADS, 3, 7));
    check_fails(&f, "linformer", "sharing=layer", false, "[k,m]");
    fixture_run(&f, "linformer", "sharing=none", false);
    give(&f, 0, "e_proj", tensor(&f, 2, 3, 6, 0));
    check_fails(&f, "linformer", "", false, "[1,3,7]");
    fixture_free(&f);
}

TEST(shapes_of_linformer)
{
    static const char *const params[] = {
        "", "k=3", "k=3,sharing=none,projection=gaussian", "k=5,sharing=kv", "projection=mean-pool",
        "k=4,projection=mean-pool,sharing=none", "k=1,scale=2,sharing=layer",
    };

    for (size_t x = 0; x < sizeof(params) / sizeof(*params) * LENGTHS; x++) {
        Fixture f = fixture_new(lengths[x % LENGTHS]);

        fixture_run(&f, "linformer", params[x / LENGTHS], false);
        check_weights(&f);
        check_flops(&f);
        fixture_free(&f);
    }
}

/* ---- nystrom ---------------------------------------------------------------- */

TEST(every_token_a_landmark_is_exact_attention)
{
    for (size_t x = 0; x < LENGTHS; x++) {
        Fixture f = fixture_new(lengths[x]);

        check_equals_full(&f, "nystrom", "");
        check_equals_full(&f, "nystrom", "exact_when_full=false,pinv=exact,rcond=0");
        check_equals_full(&f, "nystrom", "exact_when_full=false,pinv_iterations=60");
        fixture_free(&f);
    }
}

TEST(iterations_approach_the_inverse)
{
    Fixture f = fixture_new(16);
    double  few, many;
    Tensor  residuals;

    fixture_run(&f, "nystrom", "n_landmarks=6,pinv_iterations=2", false);
    few = figure_of(f.run, "residual");
    assert_non_null(strstr(text_str(&f.run->warnings), "pinv_iterations"));
    fixture_run(&f, "nystrom", "n_landmarks=6,pinv_iterations=20", false);
    many = figure_of(f.run, "residual");
    assert_true(many < 1e-9 && few > 1e-3);
    residuals = fixture_view(&f, "residuals");
    assert_int_equal(residuals.shape[1], 21);
    for (int64_t t = 1; t < 21; t++)
        assert_true(tensor_f32(&residuals)[t] <= tensor_f32(&residuals)[t - 1] + 1e-12f);
    fixture_free(&f);
}

TEST(convolution_is_a_band)
{
    for (size_t x = 0; x < LENGTHS; x++) {
        Fixture f = fixture_new(lengths[x]);

        give(&f, 0, "conv_weight", tensor(&f, 1, 5, 0, 0));
        fixture_run(&f, "nystrom", "n_landmarks=3", false);
        check_weights(&f);
        check_flops(&f);
        give(&f, 0, "conv_weight", tensor(&f, 2, HEADS, 33, 0));
        fixture_run(&f, "nystrom", "pinv_init=global", false);
        check_weights(&f);
        give(&f, 0, "conv_weight", tensor(&f, 1, 4, 0, 0));
        check_fails(&f, "nystrom", "", false, "odd");
        fixture_free(&f);
    }
}

/* ---- synthesizers ----------------------------------------------------------- */

static Fixture with_x(int64_t n)
{
    Fixture f = fixture_new(n);

    f.x = tensor(&f, 2, n, 6, 0);
    return f;
}

static const char *const synthesizers[] = {
    "synthesizer-dense", "synthesizer-random", "synthesizer-factorized-dense",
    "synthesizer-factorized-random",
};

TEST(synthesizers_hold_their_promises)
{
    for (size_t x = 0; x < 4 * LENGTHS * 4; x++) {
        const char *id = synthesizers[x % 4];
        Fixture     f = x / 16 % 2 ? with_x(lengths[x / 4 % 4]) : fixture_new(lengths[x / 4 % 4]);

        fixture_run(&f, id, "", x / 32);
        check_weights(&f);
        check_flops(&f);
        if (x / 32 && f.n > 4 && !f.x.data)
            check_causal(&f, id, "", 3);
        fixture_free(&f);
    }
}

/* Only a product of factors is made in pieces, of 512 keys; what is folded or tiled is whole. */
TEST(a_long_row_of_logits_is_one)
{
    for (size_t x = 0; x < 4; x++) {
        Fixture f = fixture_new(530);

        fixture_run(&f, synthesizers[x], "", x % 2);
        check_weights(&f);
        fixture_free(&f);
    }
}

/* Another token's vector does not move a row; its own does. */
TEST(rows_look_at_their_own_token)
{
    for (int which = 0; which < 3; which++) {
        Fixture     f = with_x(13);
        const char *id = which ? "synthesizer-factorized-dense" : "synthesizer-dense";
        Tensor      before, after;

        if (which == 2)
            f.x = (Tensor){ 0 }; /* the first layer's result is q */
        fixture_run(&f, id, "", false);
        before = fixture_view(&f, "logits");
        if (f.x.data)
            tensor_f32(&f.x)[5 * 6 + 2] += 3;
        else
            tensor_f32(&f.q)[5 * KEY_SIZE + 2] += 3;
        fixture_run(&f, id, "", false);
        after = fixture_view(&f, "logits");
        check_near(tensor_f32(&after), tensor_f32(&before), 5 * 13, 0);
        check_near(tensor_f32(&after) + 6 * 13, tensor_f32(&before) + 6 * 13, 7 * 13, 0);
        assert_true(memcmp(tensor_f32(&after) + 5 * 13, tensor_f32(&before) + 5 * 13,
                           13 * sizeof(float)) != 0);
        fixture_free(&f);
    }
}

TEST(a_fixed_matrix_is_drawn_again_and_the_same)
{
    Fixture f = fixture_new(101);
    float  *kept;
    Tensor  drawn, logits;

    fixture_run(&f, "synthesizer-random", "", true);
    kept = fixture_output(&f);
    drawn = fixture_view(&f, "logits"); /* r itself ends with its run */
    fixture_run(&f, "synthesizer-random", "trainable=false", true);
    check_near(tensor_f32(&f.run->out), kept, tensor_count(&f.run->out), 0);
    logits = fixture_view(&f, "logits");
    check_near(tensor_f32(&logits), tensor_f32(&drawn), tensor_count(&drawn), 0);
    free(kept);
    fixture_free(&f);
}

TEST(a_matrix_product_of_tiles_has_rank_one)
{
    Fixture f = with_x(13);
    Tensor  l;

    fixture_run(&f, "synthesizer-factorized-dense", "compose=matmul", false);
    check_weights(&f);
    check_flops(&f);
    l = fixture_view(&f, "logits");
    for (int64_t i = 1; i < 13; i++)
        for (int64_t j = 1; j < 13; j++) {
            const float *x = tensor_f32(&l);
            double       a = (double)x[0] * (double)x[i * 13 + j];
            double       b = (double)x[i * 13] * (double)x[j];

            assert_true(fabs(a - b) <= 1e-5 * fmax(1, fabs(a)));
        }
    fixture_free(&f);
}

TEST(synthesizers_say_what_is_missing)
{
    Fixture f = fixture_new(7);

    check_fails(&f, "synthesizer-factorized-dense", "factor_a=2,factor_b=3", false, "less than");
    give(&f, 0, "w2", tensor(&f, 2, KEY_SIZE, 6, 0));
    check_fails(&f, "synthesizer-dense", "", false, "[2,5,7]");
    f.names[0] = NULL;
    f.q = f.k = (Tensor){ 0 };
    check_fails(&f, "synthesizer-dense", "", false, "holds neither");
    fixture_run(&f, "synthesizer-random", "", false);
    f.x = tensor(&f, 2, 6, 4, 0);
    check_fails(&f, "synthesizer-dense", "", false, "6 tokens of x");
    fixture_free(&f);
}

TEST(failed_allocations_are_ordinary_errors)
{
    for (int which = 0; which < 4; which++) {
        Fixture f = with_x(13);

        check_out_of_memory(&f, synthesizers[which], which == 1 ? "trainable=false" : "");
        check_out_of_memory(&f, "linformer", "k=3,sharing=none");
        check_out_of_memory(&f, "nystrom", "n_landmarks=3");
        check_out_of_memory(&f, "nystrom", "n_landmarks=3,pinv=exact");
        fixture_free(&f);
    }
}

SUITE(NULL, NULL)
