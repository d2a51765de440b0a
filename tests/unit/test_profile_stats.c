/* test_profile_stats.c -- quantiles, outliers, clocks. */
#include "profile_fixture.h"

static void quantiles_are_linear_between_neighbours(void **state)
{
    static const double values[] = { 40, 10, 30, 20 };
    double              copy[4];

    (void)state;
    memcpy(copy, values, sizeof(copy));
    CHECK_NEAR(stats_quantile(values, 4, 0), 10, 0);
    CHECK_NEAR(stats_quantile(values, 4, 1), 40, 0);
    CHECK_NEAR(stats_quantile(values, 4, 0.5), 25, 1e-12);
    CHECK_NEAR(stats_quantile(values, 4, 0.25), 17.5, 1e-12);
    CHECK_NEAR(stats_quantile(values, 4, 0.75), 32.5, 1e-12);
    assert_memory_equal(values, copy, sizeof(copy));
    CHECK_NEAR(stats_quantile(values, 1, 0.9), 40, 0);
}

static void quantiles_of_nothing_or_nonsense_are_nan(void **state)
{
    double one = 1;

    (void)state;
    assert_true(isnan(stats_quantile(NULL, 0, 0.5)));
    assert_true(isnan(stats_quantile(&one, 1, -0.1)));
    assert_true(isnan(stats_quantile(&one, 1, 1.1)));
    assert_true(isnan(stats_quantile(&one, 1, (double)NAN)));
}

static void summaries_count_the_upper_tail_only(void **state)
{
    double samples[] = { 10, 11, 12, 13, 14, 1, 100 };
    Timing t = { .samples = samples, .count = 7 };

    (void)state;
    timing_summarise(&t);
    CHECK_NEAR(t.min.value, 1, 0);
    CHECK_NEAR(t.median.value, 12, 0);
    CHECK_NEAR(t.q1.value, 10.5, 1e-12);
    CHECK_NEAR(t.q3.value, 13.5, 1e-12);
    assert_int_equal(t.outliers, 1);
    CHECK_NEAR(samples[6], 100, 0);
}

/* The ranks of tables for the sign test; five samples cannot be that sure. */
static void the_medians_interval_has_the_known_ranks(void **state)
{
    static const int known[][3] = { { 6, 1, 6 }, { 10, 2, 9 }, { 20, 6, 15 }, { 100, 40, 61 } };
    int              low, high;

    (void)state;
    assert_false(stats_median_ranks(5, &low, &high));
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        assert_true(stats_median_ranks(known[i][0], &low, &high));
        assert_int_equal(low, known[i][1]);
        assert_int_equal(high, known[i][2]);
    }
    assert_true(stats_median_ranks(5000, &low, &high));
    assert_true(low > 2400 && high < 2600 && low + high == 5001);
}

static void a_slowing_machine_drifts(void **state)
{
    double samples[] = { 10, 10, 10, 11, 11, 11, 12, 12, 12 };
    Timing t = { .samples = samples, .count = 9 };

    (void)state;
    timing_summarise(&t);
    CHECK_NEAR(t.drift.value, 0.2, 1e-12);
    CHECK_NEAR(t.low.value, 10, 0);
    CHECK_NEAR(t.high.value, 12, 0);
    t.count = 5;
    timing_summarise(&t);
    assert_false(t.drift.valid);
    assert_false(t.low.valid);
}

static void a_summary_of_no_sample_is_not_valid(void **state)
{
    Timing t = { .median = number_of(3) };

    (void)state;
    timing_summarise(&t);
    assert_false(t.median.valid);
    assert_false(t.min.valid);
    assert_int_equal(t.outliers, 0);
}

static void clocks_go_forward(void **state)
{
    double          wall = clock_wall(), cpu = clock_cpu();
    volatile double x = 1;

    (void)state;
    while (clock_wall() - wall < 0.02)
        x = x * 1.0000001;
    assert_true(clock_cpu() > cpu);
    assert_true(clock_cpu() - cpu < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_linear_between_neighbours),
        cmocka_unit_test(quantiles_of_nothing_or_nonsense_are_nan),
        cmocka_unit_test(summaries_count_the_upper_tail_only),
        cmocka_unit_test(the_medians_interval_has_the_known_ranks),
        cmocka_unit_test(a_slowing_machine_drifts),
        cmocka_unit_test(a_summary_of_no_sample_is_not_valid),
        cmocka_unit_test(clocks_go_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
