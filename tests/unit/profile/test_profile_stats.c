/* test_profile_stats.c -- quantiles, outliers, clocks. */
#include "profile_fixture.h"

TEST(quantiles_are_linear_between_neighbours)
{
    static const double values[] = { 40, 10, 30, 20 };
    double              copy[4];

    memcpy(copy, values, sizeof(copy));
    CHECK_WITHIN(stats_quantile(values, 4, 0), 10, 0);
    CHECK_WITHIN(stats_quantile(values, 4, 1), 40, 0);
    CHECK_WITHIN(stats_quantile(values, 4, 0.5), 25, 1e-12);
    CHECK_WITHIN(stats_quantile(values, 4, 0.25), 17.5, 1e-12);
    CHECK_WITHIN(stats_quantile(values, 4, 0.75), 32.5, 1e-12);
    assert_memory_equal(values, copy, sizeof(copy));
    CHECK_WITHIN(stats_quantile(values, 1, 0.9), 40, 0);
}

TEST(quantiles_of_nothing_or_nonsense_are_nan)
{
    double one = 1;

    assert_true(isnan(stats_quantile(NULL, 0, 0.5)));
    assert_true(isnan(stats_quantile(&one, 1, -0.1)));
    assert_true(isnan(stats_quantile(&one, 1, 1.1)));
    assert_true(isnan(stats_quantile(&one, 1, (double)NAN)));
}

TEST(summaries_count_the_upper_tail_only)
{
    double samples[] = { 10, 11, 12, 13, 14, 1, 100 };
    Timing t = { .samples = samples, .count = 7 };

    timing_summarise(&t);
    CHECK_WITHIN(t.min.value, 1, 0);
    CHECK_WITHIN(t.median.value, 12, 0);
    CHECK_WITHIN(t.q1.value, 10.5, 1e-12);
    CHECK_WITHIN(t.q3.value, 13.5, 1e-12);
    assert_int_equal(t.outliers, 1);
    CHECK_WITHIN(samples[6], 100, 0);
}

/* q3 is 6 and the quartiles are 4 apart: the limit is 18, and 12 is far from it. */
TEST(an_outlier_is_three_ranges_beyond)
{
    static const struct {
        double largest;
        int    outliers;
    } known[] = { { 13, 0 }, { 17.9, 0 }, { 18, 0 }, { 18.1, 1 } };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        double samples[] = { 0, 1, 2, 3, 4, 5, 6, 7, known[i].largest };
        Timing t = { .samples = samples, .count = 9 };

        timing_summarise(&t);
        CHECK_WITHIN(t.q1.value, 2, 0);
        CHECK_WITHIN(t.q3.value, 6, 0);
        assert_int_equal(t.outliers, known[i].outliers);
    }
}

/* The ranks of tables for the sign test; five samples cannot be that sure. */
TEST(the_medians_interval_has_the_known_ranks)
{
    static const int known[][3] = { { 6, 1, 6 }, { 10, 2, 9 }, { 20, 6, 15 }, { 100, 40, 61 } };
    int              low, high;

    assert_false(stats_median_ranks(5, &low, &high));
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        assert_true(stats_median_ranks(known[i][0], &low, &high));
        assert_int_equal(low, known[i][1]);
        assert_int_equal(high, known[i][2]);
    }
    assert_true(stats_median_ranks(5000, &low, &high));
    assert_true(low > 2400 && high < 2600 && low + high == 5001);
}

TEST(a_slowing_machine_drifts)
{
    double samples[] = { 10, 10, 10, 11, 11, 11, 12, 12, 12 };
    Timing t = { .samples = samples, .count = 9 };

    timing_summarise(&t);
    CHECK_WITHIN(t.drift.value, 0.2, 1e-12);
    CHECK_WITHIN(t.low.value, 10, 0);
    CHECK_WITHIN(t.high.value, 12, 0);
    t.count = 8; /* thirds of two samples say nothing */
    timing_summarise(&t);
    assert_false(t.drift.valid);
    t.count = 5;
    timing_summarise(&t);
    assert_false(t.drift.valid);
    assert_false(t.low.valid);
}

TEST(a_summary_of_no_sample_is_not_valid)
{
    Timing t = { .median = number_of(3) };

    timing_summarise(&t);
    assert_false(t.median.valid);
    assert_false(t.min.valid);
    assert_int_equal(t.outliers, 0);
}

TEST(clocks_go_forward)
{
    double          wall = clock_wall(), cpu = clock_cpu();
    volatile double x = 1;

    while (clock_wall() - wall < 0.02)
        x = x * 1.0000001;
    assert_true(clock_cpu() > cpu);
    assert_true(clock_cpu() - cpu < 60);
}

SUITE(NULL, NULL)
