/* test_mech_performer.c -- random-feature attention: its forms agree, it nears
 * exact attention, and its directions have the distribution that the paper gives. */
#include "mech_fixture.h"

TEST(all_forms_are_one_result)
{
    static const char *const kernels[] = { "positive", "hyperbolic", "relu" };
    static const char *const forms[] = { "matrix", "recurrent", "chunked,chunk=3" };

    for (size_t x = 0; x < 3 * 3 * 2; x++) {
        Fixture f = fixture_new(13);
        char    params[100];
        float  *plain;

        snprintf(params, sizeof(params), "features=20,kernel=%s", kernels[x / 6]);
        fixture_run(&f, "performer", params, x % 2);
        check_weights(&f);
        check_flops(&f);
        plain = fixture_output(&f);
        snprintf(params, sizeof(params), "features=20,kernel=%s,form=%s", kernels[x / 6],
                 forms[x / 2 % 3]);
        fixture_run(&f, "performer", params, x % 2);
        check_near(tensor_f32(&f.run->out), plain, tensor_count(&f.run->out), 1e-5);
        check_flops(&f);
        free(plain);
        fixture_free(&f);
    }
}

static int64_t peak_of(const Run *r)
{
    int64_t peak = 0;

    for (int x = 0; x < r->stage_count; x++)
        peak = max_i64(peak, r->stages[x].arena_peak);
    return peak;
}

/* Without views features are made where they are read, a block at a time. */
static void check_made(const char *id, const char *params, bool causal, int64_t n)
{
    Fixture f = fixture_new(n);
    Run    *run = fixture_run(&f, id, params, causal);
    float  *kept = fixture_output(&f);
    double  flops = flops_total(run_flops(run)), made;
    int64_t peak = peak_of(run);

    run = fixture_run_at(&f, id, params, causal, false, 0);
    assert_int_equal(run->err.code, ERR_NONE);
    check_near(tensor_f32(&run->out), kept, tensor_count(&run->out), 1e-6);
    made = flops_total(run_flops(run));
    CHECK(made == flops, "%s(%s): %g FLOPs, not %g", id, params, made, flops);
    CHECK(peak_of(run) < peak, "%s(%s): %lld bytes, not below %lld", id, params,
          (long long)peak_of(run), (long long)peak);
    free(kept);
    fixture_free(&f);
}

TEST(features_that_no_view_needs_are_kept_nowhere)
{
    static const struct {
        const char *id, *params;
    } cases[] = {
        { "performer", "features=70" },
        { "performer", "features=70,kernel=hyperbolic" },
        { "performer", "features=70,kernel=relu" },
        { "performer", "features=70,kernel=relu,relu_features=projected" },
        { "performer", "features=70,form=chunked,chunk=50" },
        { "rfa", "features=40" },
        { "linear", "" },
        { "linear", "feature_map=relu" },
        { "linear", "feature_map=softmax" },
        { "linear", "feature_map=efficient" }, /* its keys' features are kept: over positions */
        { "linear", "form=chunked,chunk=130" },
    };

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++)
        for (int causal = 0; causal <= 1; causal++) {
            check_made(cases[x].id, cases[x].params, causal, 301);
            check_made(cases[x].id, cases[x].params, causal, 128);
        }
}

TEST(more_features_come_nearer)
{
    Fixture f = fixture_new(32);
    double  few, many;

    /* Without the constants: those added to features and denominators are separate errors. */
    fixture_run(&f, "performer", "features=8,eps=0,denominator_eps=0", false);
    few = figure_of(f.run, "total_variation");
    fixture_run(&f, "performer", "features=8192,eps=0,denominator_eps=0", false);
    many = figure_of(f.run, "total_variation");
    assert_true(many < 0.1 && many < few / 3);
    fixture_free(&f);
}

TEST(directions_are_orthogonal_in_blocks)
{
    Fixture f = fixture_new(4);
    Tensor  w;

    fixture_run(&f, "performer", "features=12,ortho_scaling=sqrt-d", false);
    w = fixture_view(&f, "projection");
    for (int64_t i = 0; i < 12; i++)
        for (int64_t j = i / KEY_SIZE * KEY_SIZE; j <= i; j++) {
            double sum = 0;

            for (int64_t t = 0; t < KEY_SIZE; t++)
                sum += (double)tensor_f32(&w)[i * KEY_SIZE + t] *
                       (double)tensor_f32(&w)[j * KEY_SIZE + t];
            assert_true(fabs(sum - (i == j ? KEY_SIZE : 0)) < 1e-5);
        }
    fixture_free(&f);
}

TEST(causal_without_common_maximum_leaks_nothing)
{
    Fixture f = fixture_new(13);

    check_causal(&f, "performer", "features=20,stabilize=false", 4);
    check_causal(&f, "performer", "features=20,kernel=relu,form=chunked,chunk=4", 7);
    fixture_run(&f, "performer", "features=20", true);
    assert_non_null(strstr(text_str(&f.run->warnings), "stabilize=false"));
    fixture_free(&f);
}

TEST(failed_allocations_are_ordinary_errors)
{
    Fixture f = fixture_new(13);

    check_out_of_memory(&f, "performer", "features=20");
    fixture_free(&f);
}

TEST(one_token_is_its_value)
{
    Fixture f = fixture_new(1);

    fixture_run(&f, "performer", "", true);
    check_near(tensor_f32(&f.run->out), tensor_f32(&f.v), HEADS * VALUE_SIZE, 1e-5);
    fixture_free(&f);
}

SUITE(NULL, NULL)
