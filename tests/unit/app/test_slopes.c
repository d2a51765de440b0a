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

TEST(full_attention_grows_with_2)
{
    CHECK_WITHIN(slope("full", 2048, "", 8192, ""), 2, 0.005);
}

TEST(a_window_grows_with_1)
{
    CHECK_WITHIN(slope("window", 16384, "window=65", 65536, "window=65"), 1, 0.005);
}

/* s = sqrt(n), as the paper sets it. */
TEST(strided_attention_grows_with_one_and_a_half)
{
    CHECK_WITHIN(slope("sparse-strided", 65536, "stride=256", 262144, "stride=512"), 1.5, 0.005);
}

SUITE(NULL, NULL)
