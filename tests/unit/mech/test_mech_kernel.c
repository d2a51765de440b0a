/* test_mech_kernel.c -- linear and rfa: forms agree, gates fade, nothing leaks. */
#include "mech_fixture.h"

static void give(Fixture *f, int at, const char *name, int rank, int64_t a, int64_t b, int64_t c,
                 double deviation)
{
    Tensor t = tensor_new(f->arena, DT_F32, rank, (int64_t[]){ a, b, c });
    Rng    rng = rng_named(11, name);

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), deviation);
    f->names[at] = name;
    f->values[at] = t;
}

TEST(all_forms_are_one_result)
{
    static const char *const maps[] = { "linear feature_map=elu",     "linear feature_map=relu",
                                        "linear feature_map=exp",     "linear feature_map=softmax",
                                        "linear feature_map=efficient", "linear alpha=0.3",
                                        "rfa kernel=gaussian",        "rfa kernel=arccos,tau=2",
                                        "linear feature_map=taylor2",
                                        "linear feature_map=taylor2,scale=2",
                                        "linear feature_map=hedgehog",
                                        "linear feature_map=hedgehog,hedgehog_norm=split",
                                        "linear feature_map=hedgehog,hedgehog_norm=exp",
                                        "linear feature_map=t2r",
                                        "linear feature_map=dpfp,nu=3",
                                        "linear feature_map=identity,normalize=false,scale=0.3" };
    static const char *const forms[] = { "matrix", "recurrent", "chunked,chunk=3" };

    for (size_t x = 0; x < 16 * 3 * 2; x++) {
        Fixture     f = fixture_new(13);
        const char *map = strchr(maps[x / 6], ' ') + 1;
        const char *id = *maps[x / 6] == 'l' ? "linear" : "rfa";
        char        params[100];
        float      *plain;

        fixture_run(&f, id, map, x % 2);
        check_weights(&f);
        check_flops(&f);
        plain = fixture_output(&f);
        snprintf(params, sizeof(params), "%s,form=%s", map, forms[x / 2 % 3]);
        fixture_run(&f, id, params, x % 2);
        check_near(tensor_f32(&f.run->out), plain, tensor_count(&f.run->out), 1e-5);
        check_flops(&f);
        check_causal(&f, id, params, 4);
        free(plain);
        fixture_free(&f);
    }
}

/* Entry `at` of a view is of this size. */
static void check_entry(Fixture *f, const char *view, int64_t at, double value)
{
    Tensor t = fixture_view(f, view);

    assert_true(fabs((double)tensor_f32(&t)[at] - value) < 1e-6);
}

TEST(maps_are_in_the_published_order)
{
    Fixture f = fixture_new(2);
    float  *x = tensor_f32(&f.q);

    for (int t = 0; t < KEY_SIZE; t++)
        x[t] = (float)(t - 1); /* -1 0 1 2 3 */
    fixture_run(&f, "linear", "feature_map=taylor2,scale=4", false); /* -2 0 2 4 6 */
    check_entry(&f, "features_q", 0, 1);
    check_entry(&f, "features_q", 5, 6);
    check_entry(&f, "features_q", 6, 4 / sqrt(2));
    check_entry(&f, "features_q", 10, 36 / sqrt(2));
    check_entry(&f, "features_q", 12, -4);  /* channels 0 and 2, behind 0 and 1 */
    check_entry(&f, "features_q", 15, 0);   /* 1 and 2 */
    check_entry(&f, "features_q", 20, 24);  /* 3 and 4 */
    fixture_run(&f, "linear", "feature_map=dpfp,nu=9", false); /* 0 0 1 2 3 1 0 0 0 0 */
    check_entry(&f, "features_q", 3, 2);    /* r_3 r_2 */
    check_entry(&f, "features_q", 5, 3);    /* r_5 r_4 */
    check_entry(&f, "features_q", 14, 3);   /* r_4 r_2 */
    check_entry(&f, "features_q", 82, 2);   /* block 9: r_2 r_(2-9 mod 10) = r_2 r_3 */
    fixture_run(&f, "linear", "feature_map=hedgehog,hedgehog_norm=exp", false);
    check_entry(&f, "features_q", 0, exp(-1));
    check_entry(&f, "features_q", 5, exp(1));
    fixture_free(&f);
}

TEST(maps_refuse_what_they_lack)
{
    Fixture f = fixture_new(4);

    assert_non_null(strstr(fixture_run_at(&f, "linear", "scale=0.5", false, true, 0)->err.text,
                           "feature_map=elu has no scale"));
    assert_non_null(strstr(fixture_run_at(&f, "linear", "feature_map=dpfp,nu=10", false, true,
                                          0)->err.text, "nu=10 is beyond 2d - 1 = 9"));
    fixture_draw(&f, "fm_weight_q", 1, 7, KEY_SIZE);
    assert_non_null(strstr(fixture_run_at(&f, "linear", "feature_map=t2r", false, true,
                                          0)->err.text, "the queries' map has 7 features"));
    fixture_draw(&f, "fm_weight_k", 1, 7, KEY_SIZE);
    fixture_run(&f, "linear", "feature_map=t2r", false);
    fixture_draw(&f, "fm_bias_q", HEADS, 1, 6);
    assert_non_null(strstr(fixture_run_at(&f, "linear", "feature_map=t2r", false, true,
                                          0)->err.text, "parameter fm_bias_q: expected shape"));
    fixture_free(&f);
}

/* Rows of relu features may be all zero: then the output is 0, and no NaN. */
TEST(no_feature_at_all_is_no_output)
{
    Fixture f = fixture_new(5);

    for (int64_t i = 0; i < KEY_SIZE; i++)
        tensor_f32(&f.q)[2 * KEY_SIZE + i] = -1;
    fixture_run(&f, "linear", "feature_map=relu", false);
    for (int64_t p = 0; p < VALUE_SIZE; p++)
        assert_true(tensor_f32(&f.run->out)[2 * VALUE_SIZE + p] == 0);
    fixture_free(&f);
}

/* Without a guard, a row whose features meet no key equals one without keys. */
TEST(a_denominator_of_0_is_no_output)
{
    static const char *const cases[] = { "linear feature_map=relu,eps=0",
                                         "performer kernel=relu,eps=0",
                                         "performer kernel=relu,eps=0,denominator_form=add",
                                         "rfa kernel=arccos,min_denominator=0" };

    for (int x = 0; x < 4 * 2; x++) {
        Fixture f = fixture_new(5);
        char    id[16];
        Tensor  w;

        for (int64_t i = 0; i < KEY_SIZE; i++)
            tensor_f32(&f.q)[2 * KEY_SIZE + i] = x / 2 == 3 ? 0 : -1;
        snprintf(id, sizeof(id), "%.*s", (int)strcspn(cases[x / 2], " "), cases[x / 2]);
        fixture_run(&f, id, strchr(cases[x / 2], ' ') + 1, x % 2);
        w = fixture_view(&f, "weights");
        for (int64_t p = 0; p < VALUE_SIZE; p++)
            assert_true(tensor_f32(&f.run->out)[2 * VALUE_SIZE + p] == 0);
        for (int64_t j = 0; j < 5; j++)
            assert_true(tensor_f32(&w)[2 * 5 + j] == 0);
        fixture_free(&f);
    }
}

TEST(rows_of_efficient_attention_sum_to_one)
{
    Fixture f = fixture_new(13);
    Tensor  w;

    fixture_run(&f, "linear", "feature_map=efficient,eps=0", false);
    w = fixture_view(&f, "weights");
    for (int64_t row = 0; row < HEADS * 13; row++) {
        double sum = 0;

        for (int64_t j = 0; j < 13; j++)
            sum += (double)tensor_f32(&w)[row * 13 + j];
        assert_true(fabs(sum - 1) < 1e-6);
    }
    fixture_free(&f);
}

TEST(gated_weights_are_the_fading_state)
{
    for (int64_t n = 1; n < 20; n += 6) {
        Fixture f = fixture_new(n);

        fixture_run(&f, "rfa", "gate=true,gate_bias=0.5,min_denominator=1e-6", true);
        check_weights(&f);
        check_flops(&f);
        check_causal(&f, "rfa", "gate=true", n / 2);
        give(&f, 0, "gate_weight", 2, HEADS, KEY_SIZE, 0, 1);
        give(&f, 1, "gate_bias", 1, HEADS, 0, 0, 1);
        fixture_run(&f, "rfa", "gate=true,form=recurrent", true);
        check_weights(&f);
        fixture_free(&f);
    }
}

/* A gate of 0 forgets everything before its token; one of 1 does not read it. */
TEST(closed_gates_forget)
{
    Fixture f = fixture_new(9);
    Tensor  w;

    give(&f, 0, "gates", 1, 9, 0, 0, 0);
    for (int64_t i = 0; i < 9; i++)
        tensor_f32(&f.values[0])[i] = i == 4 ? 0 : i == 6 ? 1 : 0.5f;
    fixture_run(&f, "rfa", "gate=true", true);
    check_weights(&f);
    check_flops(&f);
    w = fixture_view(&f, "weights");
    for (int64_t i = 4; i < 9; i++)
        for (int64_t j = 0; j < 4; j++)
            assert_true(tensor_f32(&w)[i * 9 + j] == 0);
    for (int64_t i = 6; i < 9; i++)
        assert_true(tensor_f32(&w)[i * 9 + 6] == 0);
    tensor_f32(&f.values[0])[3] = 1.5f;
    assert_non_null(strstr(fixture_run_at(&f, "rfa", "gate=true", true, true, 0)->err.text,
                           "token 3 is 1.5"));
    fixture_free(&f);
}

TEST(clamped_rows_are_told)
{
    Fixture f = fixture_new(13);
    Tensor  clamped, z;
    int64_t count = 0;

    fixture_run(&f, "rfa", "tau=0.1,features=4,min_denominator=0.5", true);
    clamped = fixture_view(&f, "clamped");
    z = fixture_view(&f, "denominator");
    for (int64_t i = 0; i < HEADS * 13; i++) {
        assert_int_equal(tensor_u8(&clamped)[i], tensor_f32(&z)[i] <= 0.5f);
        count += tensor_u8(&clamped)[i];
    }
    assert_true(count > 0 && (double)count == figure_of(f.run, "clamped_rows"));
    assert_non_null(strstr(text_str(&f.run->warnings), "min_denominator"));
    fixture_free(&f);
}

TEST(slips_are_refused)
{
    Fixture f = fixture_new(5);

    assert_non_null(strstr(fixture_run_at(&f, "rfa", "gate=true", false, true, 0)->err.text,
                           "--causal"));
    assert_non_null(strstr(fixture_run_at(&f, "rfa", "gate=true,form=matrix", true, true, 0)
                               ->err.text, "no gated form"));
    assert_non_null(strstr(fixture_run_at(&f, "linear", "alpha=2", true, true, 0)->err.text,
                           "alpha"));
    assert_non_null(strstr(fixture_run_at(&f, "rfa", "gate_bias=high", true, true, 0)->err.text,
                           "or as a number"));
    fixture_free(&f);
}

TEST(empty_tensors_are_refused)
{
    Fixture f = fixture_new(5);

    give(&f, 0, "projection", 2, 0, KEY_SIZE, 1, 1);
    assert_non_null(strstr(fixture_run_at(&f, "rfa", "", false, true, 0)->err.text,
                           "rfa: parameter projection has shape [0,5]: it is empty"));
    assert_int_equal(f.run->err.code, ERR_PARAM);
    assert_non_null(strstr(fixture_run_at(&f, "performer", "", false, true, 0)->err.text,
                           "it is empty"));
    fixture_free(&f);
    f = fixture_new(5);
    f.x = tensor_new(f.arena, DT_F32, 2, (int64_t[]){ 5, FEATURES });
    memset(f.x.data, 0, (size_t)tensor_bytes(&f.x));
    give(&f, 0, "w1", 2, FEATURES, 0, 1, 1); /* divided by its columns once */
    assert_non_null(strstr(fixture_run_at(&f, "tokenlearner", "", false, true, 0)->err.text,
                           "parameter w1 has shape [6,0]: it is empty"));
    fixture_free(&f);
}

TEST(failed_allocations_are_ordinary_errors)
{
    Fixture f = fixture_new(13);

    check_out_of_memory(&f, "linear", "");
    check_out_of_memory(&f, "linear", "feature_map=exp,form=matrix");
    check_out_of_memory(&f, "rfa", "");
    fixture_free(&f);
}

SUITE(NULL, NULL)
