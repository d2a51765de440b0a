/* test_mech_mixers.c -- token mixers and adaptive spans: the matrices they show must be the
 * ones they ran, and their promises for special cases must hold. */
#include "mech_fixture.h"

#define WIDTH FEATURES

static const int64_t lengths[] = { 1, 2, 13, 70 };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        fail_msg("%.9g, want %.9g", got, want);
}

/* Column `to` of the output is the matrix times column `from` of x. */
static void assert_mixes(const Fixture *f, Tensor matrix, int64_t from, int64_t to)
{
    int64_t n = f->n;

    for (int64_t i = 0; i < n; i++) {
        double sum = 0;

        for (int64_t j = 0; j < n; j++)
            sum += (double)tensor_f32(&matrix)[i * n + j] *
                   (double)tensor_f32(&f->x)[j * WIDTH + from];
        assert_near((double)tensor_f32(&f->run->out)[i * f->run->out.shape[2] + to], sum, 1e-5);
    }
}

/* Rows up to t do not move when those of x behind them do. */
static void check_causal_x(Fixture *f, const char *id, const char *params, int64_t t)
{
    float  *before;
    int64_t width;

    fixture_run(f, id, params, true);
    check_flops(f);
    width = f->run->out.shape[2];
    before = fixture_output(f);
    for (int64_t x = (t + 1) * WIDTH; x < f->n * WIDTH; x++)
        tensor_f32(&f->x)[x] += 2 + (float)(x % 5);
    fixture_run(f, id, params, true);
    check_near(tensor_f32(&f->run->out), before, (t + 1) * width, 0);
    free(before);
}

static void assert_shape(const Fixture *f, const char *name, int rank, const int64_t *shape)
{
    const View *view = run_view(f->run, name);

    assert_non_null(view);
    if (view->rank != rank || memcmp(view->shape, shape, (size_t)rank * sizeof(*shape)))
        fail_msg("%s of %s has another shape", name, f->run->mechanism->id);
}

/* ---- mlp-mixer -------------------------------------------------------------- */

TEST(the_gated_matrix_is_what_a_channel_went_through)
{
    static const char *const forms[] = { "gelu=tanh", "gelu=erf" };
    char                     params[96];

    for (size_t x = 0; x < LENGTHS * 2 * WIDTH; x++) {
        Fixture f = fixture_new_x(lengths[x / 2 / WIDTH]);

        snprintf(params, sizeof(params), "norm=false,residual=false,channel=%d,%s",
                 (int)(x % WIDTH), forms[x / WIDTH % 2]);
        fixture_run(&f, "mlp-mixer", params, false);
        assert_mixes(&f, fixture_view(&f, "gated"), (int64_t)(x % WIDTH), (int64_t)(x % WIDTH));
        check_flops(&f);
        fixture_free(&f);
    }
}

/* Sums are split at other places: 1e-6 of the largest. */
TEST(rows_read_together_are_those_read_alone)
{
    static const char *const names[] = { "mixing", "gated", "jacobian", "jacobian_abs" };
    const int64_t            rows[] = { 0, 69, 7 };
    Fixture                  f = fixture_new_x(70);
    float                    together[3 * 50], alone[50];

    fixture_run(&f, "mlp-mixer", "", false);
    for (int x = 0; x < 4; x++) {
        const View *view = run_view(f.run, names[x]);

        view->read_rows(view, 0, rows, 3, 11, 50, together);
        for (int r = 0; r < 3; r++) {
            view_read(view, 0, rows[r], 11, 50, 1, alone);
            for (int j = 0; j < 50; j++)
                assert_near((double)together[r * 50 + j], (double)alone[j], 1e-6);
        }
    }
    fixture_free(&f);
}

/* 2e-3: the outputs are rounded to float32, and their difference is divided by 0.002. */
TEST(the_jacobian_is_the_derivative)
{
    const char *params = "norm=false,residual=false,channel=2";
    const float h = 1e-3f;

    for (int64_t j = 0; j < 13; j += 4) {
        Fixture f = fixture_new_x(13);
        Tensor  jacobian, absolute;
        float  *above;

        fixture_run(&f, "mlp-mixer", params, false);
        jacobian = fixture_view(&f, "jacobian");
        absolute = fixture_view(&f, "jacobian_abs");
        tensor_f32(&f.x)[j * WIDTH + 2] += h;
        fixture_run(&f, "mlp-mixer", params, false);
        above = fixture_output(&f);
        tensor_f32(&f.x)[j * WIDTH + 2] -= 2 * h;
        fixture_run(&f, "mlp-mixer", params, false);
        for (int64_t i = 0; i < 13; i++) {
            double slope = ((double)above[i * WIDTH + 2] -
                            (double)tensor_f32(&f.run->out)[i * WIDTH + 2]) / (2 * (double)h);
            double want = (double)tensor_f32(&jacobian)[i * 13 + j];

            assert_near(slope, want, 2e-3);
            assert_near((double)tensor_f32(&absolute)[i * 13 + j], fabs(want), 1e-6);
        }
        free(above);
        fixture_free(&f);
    }
}

TEST(the_skeleton_does_not_depend_on_the_input)
{
    Fixture f = fixture_new_x(13);
    Tensor  before, after;

    fixture_run(&f, "mlp-mixer", "part=block", false);
    check_flops(&f);
    assert_shape(&f, "features", 2, (int64_t[]){ WIDTH, 26 });
    before = fixture_view(&f, "mixing");
    tensor_f32(&f.x)[7] += 1;
    fixture_run(&f, "mlp-mixer", "part=block", false);
    after = fixture_view(&f, "mixing");
    check_near(tensor_f32(&before), tensor_f32(&after), 13 * 13, 0);
    fixture_free(&f);
}

/* ---- gmlp ------------------------------------------------------------------- */

TEST(the_gate_starts_at_one)
{
    Fixture f = fixture_new_x(13);
    Tensor  gate;

    fixture_run(&f, "gmlp", "", false);
    check_flops(&f);
    assert_shape(&f, "gate", 2, (int64_t[]){ 13, 3 * WIDTH });
    assert_shape(&f, "values", 2, (int64_t[]){ 13, 3 * WIDTH });
    assert_shape(&f, "weights", 3, (int64_t[]){ 1, 13, 13 });
    gate = fixture_view(&f, "gate");
    for (int64_t i = 0; i < tensor_count(&gate); i++)
        assert_near((double)tensor_f32(&gate)[i], 1, 0.01);
    fixture_free(&f);
}

/* gate = weights @ values + b, also beyond one block of the triangle. */
TEST(the_gate_is_the_matrix_times_the_values)
{
    for (int causal = 0; causal < 2; causal++) {
        Fixture f = fixture_new_x(300);
        Tensor  w, values, gate;

        w = fixture_fill(&f, "w_spatial", 2, (int64_t[]){ 300, 300 }, 0);
        for (int64_t i = 0; i < 300 * 300; i++)
            tensor_f32(&w)[i] = (float)(i * 7919 % 101 - 50) / 500;
        fixture_run(&f, "gmlp", "d_ff=8", causal);
        check_flops(&f);
        w = fixture_view(&f, "weights");
        values = fixture_view(&f, "values");
        gate = fixture_view(&f, "gate");
        for (int64_t x = 0; x < 300 * 4; x += 7) {
            double sum = 1;

            for (int64_t j = 0; j < 300; j++)
                sum += (double)tensor_f32(&w)[x / 4 * 300 + j] *
                       (double)tensor_f32(&values)[j * 4 + x % 4];
            assert_near((double)tensor_f32(&gate)[x], sum, 1e-5);
        }
        for (int64_t i = 0; causal && i < 299; i++)
            assert_true(tensor_f32(&w)[i * 300 + i + 1] == 0);
        fixture_free(&f);
    }
}

TEST(a_convolution_is_all_toeplitz)
{
    Fixture f = fixture_new_x(13);
    Tensor  w = fixture_fill(&f, "w_spatial", 2, (int64_t[]){ 13, 13 }, 0), mean, part;

    fixture_run(&f, "gmlp", "", false);
    assert_near(figure_of(f.run, "toeplitz_fraction"), 1, 0); /* nothing to explain */
    for (int64_t x = 0; x < 169; x++)
        tensor_f32(&w)[x] = (float)(x % 13 - x / 13) / 4;
    fixture_run(&f, "gmlp", "", false);
    assert_near(figure_of(f.run, "toeplitz_fraction"), 1, 1e-12);
    assert_shape(&f, "toeplitz", 1, (int64_t[]){ 25 });
    mean = fixture_view(&f, "toeplitz");
    for (int64_t k = -12; k < 13; k++)
        assert_near((double)tensor_f32(&mean)[k + 12], (double)k / 4, 1e-6);
    tensor_f32(&w)[5] += 3;
    fixture_run(&f, "gmlp", "", false);
    assert_true(figure_of(f.run, "toeplitz_fraction") < 0.999);
    part = fixture_view(&f, "weights_toeplitz");
    assert_near((double)tensor_f32(&part)[13 + 6], 1.25 + 3.0 / 8, 1e-6); /* diagonal 5 of 8 */
    fixture_free(&f);
}

TEST(gmlp_is_causal)
{
    Fixture f = fixture_new_x(13);

    check_causal_x(&f, "gmlp", "tiny_attention=true", 6);
    check_causal_x(&f, "gmlp", "part=sgu", 6);
    fixture_free(&f);
}

/* ---- poolformer ------------------------------------------------------------- */

TEST(pooling_is_the_matrix_it_shows)
{
    static const char *const params[] = {
        "", "pool_size=5,subtract_input=false", "pool_size=7,count_include_pad=true",
        "pool_size=999", "pool_size=3,grid_h=7,grid_w=10", "pool_size=5,grid_h=10,grid_w=7",
        "pool_size=3,grid_h=35,grid_w=2,count_include_pad=true", "pool_size=9,grid_h=1,grid_w=70",
        "pool_size=3,grid_h=70,grid_w=1",
    };

    for (size_t x = 0; x < sizeof(params) / sizeof(*params) * 2; x++) {
        Fixture f = fixture_new_x(70);

        fixture_run(&f, "poolformer", params[x / 2], x % 2);
        for (int64_t c = 0; c < WIDTH; c++)
            assert_mixes(&f, fixture_view(&f, "weights"), c, c);
        check_flops(&f);
        fixture_free(&f);
    }
}

TEST(one_token_less_itself_is_nothing)
{
    Fixture f = fixture_new_x(1);

    fixture_run(&f, "poolformer", "", false);
    for (int64_t c = 0; c < WIDTH; c++)
        assert_true(tensor_f32(&f.run->out)[c] == 0);
    fixture_run(&f, "poolformer", "part=block", false);
    check_flops(&f);
    fixture_free(&f);
}

/* ---- lambda ----------------------------------------------------------------- */

TEST(lambdas_are_the_matrix_they_show)
{
    static const char *const params[] = { "", "scope=5", "position=absolute", "position=none",
                                          "scope=101" };

    for (size_t x = 0; x < sizeof(params) / sizeof(*params) * LENGTHS * 2; x++) {
        Fixture f = fixture_new(lengths[x / 2 % LENGTHS]);
        Tensor  all, content, position;

        fixture_run(&f, "lambda", params[x / 2 / LENGTHS], x % 2);
        check_weights(&f);
        check_flops(&f);
        all = fixture_view(&f, "weights");
        content = fixture_view(&f, "weights_content");
        position = fixture_view(&f, "weights_position");
        for (int64_t t = 0; t < tensor_count(&all); t++)
            assert_near((double)tensor_f32(&all)[t],
                        (double)tensor_f32(&content)[t] + (double)tensor_f32(&position)[t], 1e-5);
        fixture_free(&f);
    }
}

/* y = q (content + position), with the small matrices as they are shown. */
TEST(small_matrices_give_the_output)
{
    for (int causal = 0; causal < 2; causal++) {
        Fixture f = fixture_new(12);
        Tensor  content, position;
        int64_t size = KEY_SIZE * VALUE_SIZE;

        fixture_run(&f, "lambda", "grid_h=3,grid_w=4,scope=3", causal);
        check_weights(&f);
        assert_shape(&f, "content_lambda", 4,
                     (int64_t[]){ HEADS, causal ? 12 : 1, KEY_SIZE, VALUE_SIZE });
        assert_shape(&f, "position_lambda", 4, (int64_t[]){ HEADS, 12, KEY_SIZE, VALUE_SIZE });
        content = fixture_view(&f, "content_lambda");
        position = fixture_view(&f, "position_lambda");
        for (int64_t row = 0; row < HEADS * 12; row++)
            for (int64_t c = 0; c < VALUE_SIZE; c++) {
                double sum = 0;

                for (int64_t k = 0; k < KEY_SIZE; k++)
                    sum += (double)tensor_f32(&f.q)[row * KEY_SIZE + k] *
                           ((double)tensor_f32(&content)[(causal ? row : row / 12) * size +
                                                         k * VALUE_SIZE + c] +
                            (double)tensor_f32(&position)[row * size + k * VALUE_SIZE + c]);
                assert_near((double)tensor_f32(&f.run->out)[row * VALUE_SIZE + c], sum, 1e-5);
            }
        fixture_free(&f);
    }
}

TEST(lambda_is_causal)
{
    Fixture f = fixture_new(13);

    check_causal(&f, "lambda", "", 6);
    check_causal(&f, "lambda", "position=absolute", 0);
    fixture_free(&f);
    f = fixture_new_x(13);
    check_causal_x(&f, "lambda", "heads=2", 6);
    assert_int_equal(f.run->out.shape[2], WIDTH);
    fixture_free(&f);
}

/* Two depths of equal values are one depth with the shares of both. */
TEST(depths_share_a_lambda)
{
    Fixture f = fixture_new(6);
    Tensor  k = tensor_new(f.arena, DT_F32, 3, (int64_t[]){ HEADS, 6, 2 * KEY_SIZE });
    Tensor  v = tensor_new(f.arena, DT_F32, 3, (int64_t[]){ HEADS, 6, 2 * VALUE_SIZE });
    float  *one;

    fixture_run(&f, "lambda", "position=none", true);
    one = fixture_output(&f);
    for (int64_t x = 0; x < tensor_count(&k); x++)
        tensor_f32(&k)[x] = tensor_f32(&f.k)[x / 2];
    for (int64_t x = 0; x < tensor_count(&v); x++)
        tensor_f32(&v)[x] = tensor_f32(&f.v)[x / 2];
    f.k = k;
    f.v = v;
    fixture_run(&f, "lambda", "position=none,depth_u=2", true);
    check_flops(&f);
    assert_shape(&f, "weights_u", 4, (int64_t[]){ HEADS, 6, 6, 2 });
    for (int64_t x = 0; x < HEADS * 6 * VALUE_SIZE; x++)
        assert_near((double)tensor_f32(&f.run->out)[x], 2 * (double)one[x], 1e-5);
    free(one);
    fixture_free(&f);
}

/* ---- lite ------------------------------------------------------------------- */

TEST(the_band_is_the_convolution)
{
    static const char *const params[] = {
        "conv_linear=false", "conv_linear=false,kernel_size=4,weight_softmax=false",
        "conv_linear=false,kernel_size=99", "conv_linear=false,conv_type=dynamic,kernel_size=5",
    };

    for (size_t x = 0; x < sizeof(params) / sizeof(*params) * LENGTHS * 2; x++) {
        Fixture f = fixture_new_x(lengths[x / 2 % LENGTHS]);
        Tensor  band;

        fixture_run(&f, "lite", params[x / 2 / LENGTHS], x % 2);
        check_flops(&f);
        band = fixture_view(&f, "weights_conv");
        for (int64_t c = WIDTH / 2; c < WIDTH; c++)
            assert_mixes(&f, band, c, c);
        fixture_free(&f);
    }
}

/* With identity projections the first half is attention of the first half. */
TEST(the_first_half_is_attention)
{
    static const char *const names[] = { "w_q", "w_k", "w_v", "w_o" };
    Fixture                  f = fixture_new_x(13);
    Tensor                   weights, taps;

    for (int t = 0; t < 4; t++) {
        Tensor w = fixture_fill(&f, names[t], 2, (int64_t[]){ 4, 4 }, 0);

        for (int64_t c = 0; c < 4; c++)
            tensor_f32(&w)[5 * c] = 1;
    }
    fixture_run(&f, "lite", "heads=2,conv_heads=2,glu=true", false);
    check_flops(&f);
    assert_shape(&f, "weights", 3, (int64_t[]){ 2, 13, 13 });
    assert_shape(&f, "connectivity", 3, (int64_t[]){ 4, 13, 13 });
    assert_shape(&f, "kernel", 2, (int64_t[]){ 2, 3 });
    weights = fixture_view(&f, "weights");
    for (int64_t c = 0; c < 4; c++) {
        Tensor plane = tensor_of(DT_F32, 2, (int64_t[]){ 13, 13 },
                                 tensor_f32(&weights) + c / 2 * 169);

        assert_mixes(&f, plane, c, c);
    }
    taps = fixture_view(&f, "kernel"); /* after the softmax, also of a drawn kernel */
    for (int64_t g = 0; g < 2; g++)
        assert_near((double)tensor_f32(&taps)[3 * g] + (double)tensor_f32(&taps)[3 * g + 1] +
                        (double)tensor_f32(&taps)[3 * g + 2], 1, 1e-6);
    fixture_run(&f, "lite", "conv_heads=2,conv_type=dynamic", false);
    assert_shape(&f, "kernel", 3, (int64_t[]){ 13, 2, 3 });
    fixture_free(&f);
}

TEST(lite_is_causal)
{
    Fixture f = fixture_new_x(13);

    check_causal_x(&f, "lite", "kernel_size=5", 6);
    check_causal_x(&f, "lite", "conv_type=dynamic,kernel_size=20", 6);
    fixture_free(&f);
}

/* ---- adaptive-span ---------------------------------------------------------- */

TEST(a_huge_span_is_full_attention)
{
    for (size_t x = 0; x < LENGTHS * 2; x++) {
        Fixture f = fixture_new(lengths[x / 2]);
        float  *exact;

        fixture_run(&f, "full", "", x % 2);
        exact = fixture_output(&f);
        fixture_run(&f, "adaptive-span", "z=1e9", x % 2);
        check_near(tensor_f32(&f.run->out), exact, tensor_count(&f.run->out), 1e-5);
        free(exact);
        fixture_free(&f);
    }
}

TEST(spans_keep_their_promises)
{
    static const char *const params[] = {
        "", "ramp=3,z=2.5", "ramp=4,z=3,offset=1,include_self=false", "ramp=0.5",
        "max_span=4,z=9,ramp=2", "mode=dynamic,ramp=5", 
        "mode=dynamic,max_span=6,include_self=false",
    };

    for (size_t x = 0; x < sizeof(params) / sizeof(*params) * LENGTHS * 2; x++) {
        Fixture f = fixture_new_x(lengths[x / 2 % LENGTHS]);
        Tensor  mask, cells;
        int64_t present = 0;

        fixture_run(&f, "adaptive-span", params[x / 2 / LENGTHS], x % 2);
        check_weights(&f);
        check_flops(&f);
        mask = fixture_view(&f, "mask");
        cells = fixture_view(&f, "connectivity"); /* one plane where the heads agree */
        for (int64_t t = 0; t < tensor_count(&mask); t++) {
            uint8_t cell = tensor_u8(&cells)[t % tensor_count(&cells)];

            assert_int_equal(cell, tensor_f32(&mask)[t] > 0);
            present += cell;
        }
        assert_near(figure_of(f.run, "cells"), (double)present, 0);
        fixture_free(&f);
    }
}

TEST(without_itself_the_first_token_sees_nothing)
{
    Fixture f = fixture_new(13);

    fixture_run(&f, "adaptive-span", "include_self=false,ramp=2", true);
    for (int64_t c = 0; c < HEADS * VALUE_SIZE; c++)
        assert_true(tensor_f32(&f.run->out)[c / VALUE_SIZE * 13 * VALUE_SIZE + c % VALUE_SIZE] ==
                    0);
    check_causal(&f, "adaptive-span", "z=3,ramp=4", 6);
    fixture_free(&f);
}

TEST(the_ramp_is_linear)
{
    Fixture f = fixture_new(13);
    Tensor  mask;

    fixture_run(&f, "adaptive-span", "z=3,ramp=4", false);
    mask = fixture_view(&f, "mask");
    for (int64_t j = 0; j < 13; j++)
        assert_near((double)tensor_f32(&mask)[j], j < 3 ? 1 : j < 7 ? (double)(7 - j) / 4 : 0, 0);
    assert_near(figure_of(f.run, "max_span"), 7, 0);
    fixture_free(&f);
}

/* Products of small layers have no room of large tiles beside them: it was 3 MiB. */
TEST(a_small_layer_takes_little_memory)
{
    Fixture f = fixture_new_x(13);

    fixture_run(&f, "mlp-mixer", "", false);
    assert_true(arena_peak(f.run->arena) < 256 * 1024);
    fixture_free(&f);
}

SUITE(NULL, NULL)
