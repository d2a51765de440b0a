/* test_distributions.c -- draws and summaries against distributions that are known.
 *
 * Seeds are fixed, so nothing here fails by chance; limits are five standard errors of what is
 * estimated, which a right program would pass under nearly any other seed, too.
 */

#include "profile/statistics.h"
#include "profile_fixture.h"

#define DRAWS 200000
#define FEW   2000

static double uniform_draws[DRAWS], normal_draws[DRAWS];

static int draw_all(void **state)
{
    Rng uniform = rng_named(11, "uniform"), normal = rng_named(11, "normal");

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        uniform_draws[i] = rng_uniform(&uniform);
        normal_draws[i] = rng_normal(&normal);
    }
    return 0;
}

/* The q-quantile of many draws deviates by sqrt(q (1 - q) / count) / density. */
static void check_quantile(const double *draws, double q, double expected, double density)
{
    double error = sqrt(q * (1 - q) / DRAWS) / density;

    CHECK_WITHIN(stats_quantile(draws, DRAWS, q), expected, 5 * error);
}

TEST(quantiles_of_uniform_draws)
{
    static const double at[] = { 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99 };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
        check_quantile(uniform_draws, at[i], at[i], 1);
    assert_true(stats_quantile(uniform_draws, DRAWS, 0) >= 0);
    assert_true(stats_quantile(uniform_draws, DRAWS, 1) < 1);
}

TEST(quantiles_of_normal_draws)
{
    static const double known[][2] = {
        { 0.025, -1.959963984540054 }, { 0.05, -1.6448536269514722 }, { 0.25, -0.6744897501960817 },
        { 0.5, 0 },                    { 0.75, 0.6744897501960817 },  { 0.975, 1.959963984540054 },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        double z = known[i][1];

        check_quantile(normal_draws, known[i][0], z, exp(-z * z / 2) / sqrt(2 * M_PI));
    }
}

/* Mean 0, variance 1, no skew, and a fourth moment of 3; their variances are 1, 2, 15 and 96. */
TEST(moments_of_normal_draws)
{
    static const double expected[] = { 0, 1, 0, 3 }, variance[] = { 1, 2, 15, 96 };

    for (int power = 1; power <= 4; power++) {
        double sum = 0;

        for (int i = 0; i < DRAWS; i++)
            sum += pow(normal_draws[i], power);
        CHECK_WITHIN(sum / DRAWS, expected[power - 1], 5 * sqrt(variance[power - 1] / DRAWS));
    }
}

/* Pearson's sum over `bound` boxes has a mean of bound - 1 and twice that as variance. */
TEST(each_number_below_a_bound_is_as_likely)
{
    static const int bounds[] = { 2, 3, 7, 64, 100 };

    for (size_t b = 0; b < sizeof(bounds) / sizeof(*bounds); b++) {
        Rng    rng = rng_named(12, "below");
        int    bound = bounds[b], seen[100] = { 0 };
        double sum = 0;

        for (int i = 0; i < DRAWS; i++)
            seen[rng_below(&rng, (uint64_t)bound)]++;
        for (int x = 0; x < bound; x++)
            sum += pow(seen[x] - (double)DRAWS / bound, 2) / ((double)DRAWS / bound);
        CHECK_WITHIN(sum, bound - 1, 5 * sqrt(2 * (bound - 1.0)));
    }
}

/* Of a normal's draws one in 430000 lies beyond q3 + 3 (q3 - q1) = 4.7, of an exponential's, of
 * which q1 is log 4/3 and q3 log 4, one in 4 * 27. */
TEST(outliers_are_as_many_as_the_tail_has)
{
    static double exponential[DRAWS];
    Timing        normal = { .samples = normal_draws, .count = DRAWS };
    Timing        tail = { .samples = exponential, .count = DRAWS };
    double        share = 1 / 108.0;

    for (int i = 0; i < DRAWS; i++)
        exponential[i] = -log(1 - uniform_draws[i]);
    timing_summarise(&normal);
    timing_summarise(&tail);
    assert_true(normal.outliers <= 5);
    CHECK_WITHIN((double)tail.outliers / DRAWS, share, 6 * sqrt(share / DRAWS));
}

/* The interval holds the true median at least as often as it says: of skewed samples, too. */
static void check_median_interval(int count, bool skewed)
{
    double truth = skewed ? 1 : 0;
    int    held = 0;

    for (int sample = 0; sample < FEW; sample++) {
        double values[100];
        Timing t = { .samples = values, .count = count };

        for (int i = 0; i < count; i++) {
            double z = normal_draws[(sample * count + i) % DRAWS];

            values[i] = skewed ? exp(z) : z;
        }
        timing_summarise(&t);
        assert_true(t.low.valid && t.high.valid);
        held += t.low.value <= truth && truth <= t.high.value;
    }
    CHECK((double)held / FEW >= 0.95 - 5 * sqrt(0.95 * 0.05 / FEW),
          "%d samples: %d of %d intervals hold the median", count, held, FEW);
    CHECK(held < FEW, "%d samples: an interval that always holds it is too wide", count);
}

TEST(the_medians_interval_holds_it)
{
    for (int skewed = 0; skewed < 2; skewed++) {
        check_median_interval(9, skewed);
        check_median_interval(20, skewed);
        check_median_interval(99, skewed);
    }
}

/* Under noise that is normal in the logarithm, Student's interval is exact: 95 of 100. */
TEST(the_slopes_interval_holds_it)
{
    int held = 0;

    for (int sample = 0; sample < FEW; sample++) {
        double  x[6], y[6];
        FitPlan plan = FIT_PLAN;
        Fit     fit;
        Error   err = ERROR_INIT;

        for (int i = 0; i < 6; i++) {
            x[i] = 128 << i;
            y[i] = 3 * pow(x[i], 1.5) * exp(0.1 * normal_draws[sample * 6 + i]);
        }
        CHECK(fit_power(x, y, 6, &plan, &fit, &err), "%s", err.text);
        assert_true(fit.lo.valid && fit.hi.valid);
        held += fit.lo.value <= 1.5 && 1.5 <= fit.hi.value;
    }
    CHECK_WITHIN((double)held / FEW, 0.95, 5 * sqrt(0.95 * 0.05 / FEW));
}

SUITE(draw_all, NULL)
