/* test_slopes.c -- counted FLOPs grow with the exponents of the papers.
 *
 * Between two large lengths, to two decimals, from counts only: no clock. */
#include "profile_fixture.h"

static double counted(const char *mechanism, const char *params, int64_t n)
{
    Fixture f = fixture_new(1, n, 2, 2);
    Run    *run;
    double  flops;

    fixture_choose(&f, mechanism, params);
    f.spec.views = false;
    run = run_new(&f.spec);
    run_execute(run);
    assert_non_null(run);
    if (run->err.code)
        fail_msg("%s, n = %lld: %s", mechanism, (long long)n, run->err.text);
    flops = flops_total(run_flops(run));
    run_free(run);
    fixture_free(&f);
    return flops;
}

static double slope(const char *mechanism, int64_t n, const char *params, int64_t more,
                    const char *more_params)
{
    return log(counted(mechanism, more_params, more) / counted(mechanism, params, n)) /
           log((double)more / (double)n);
}

static void full_attention_grows_with_2(void **state)
{
    (void)state;
    CHECK_NEAR(slope("full", 2048, "", 8192, ""), 2, 0.005);
}

static void a_window_grows_with_1(void **state)
{
    (void)state;
    CHECK_NEAR(slope("window", 16384, "window=65", 65536, "window=65"), 1, 0.005);
}

/* s = sqrt(n), as the paper sets it. */
static void strided_attention_grows_with_one_and_a_half(void **state)
{
    (void)state;
    CHECK_NEAR(slope("sparse-strided", 65536, "stride=256", 262144, "stride=512"), 1.5, 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_attention_grows_with_2),
        cmocka_unit_test(a_window_grows_with_1),
        cmocka_unit_test(strided_attention_grows_with_one_and_a_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
