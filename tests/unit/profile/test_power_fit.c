/* test_power_fit.c -- exponents, their intervals, shapes. */

#include "check.h"
#include "core/rng.h"
#include "profile/measure.h"
#include "profile/statistics.h"

#define POINTS 8

static void lengths(double *x, int count)
{
    for (int i = 0; i < count; i++)
        x[i] = 256.0 * pow(2, i);
}

static Fit fit_of(const double *x, const double *y, int count, FitPlan plan)
{
    Fit   fit;
    Error err = ERROR_INIT;

    CHECK(fit_power(x, y, count, &plan, &fit, &err), "%s", err.text);
    return fit;
}

static const struct {
    FitModel    model;
    const char *name;
    double      power;
    int         logs;
} shapes[] = {
    { FIT_CONSTANT, "1", 0, 0 },    { FIT_LOG, "log n", 0, 1 },   { FIT_LINEAR, "n", 1, 0 },
    { FIT_NLOGN, "n log n", 1, 1 }, { FIT_N15, "n^1.5", 1.5, 0 }, { FIT_SQUARE, "n^2", 2, 0 },
};

TEST(every_shape_is_found)
{
    for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++) {
        double x[POINTS], y[POINTS];
        Fit    fit;

        lengths(x, POINTS);
        for (int i = 0; i < POINTS; i++)
            y[i] = 3 * pow(x[i], shapes[s].power) * (shapes[s].logs ? log(x[i]) : 1);
        fit = fit_of(x, y, POINTS, FIT_PLAN);
        assert_int_equal(fit.best, shapes[s].model);
        assert_string_equal(fit_model_name(fit.best), shapes[s].name);
        CHECK_NEAR(fit.rms[fit.best].value, 0, 1e-9);
        CHECK_NEAR(fit.factor[fit.best].value, 3, 1e-9);
        if (shapes[s].logs)
            continue;
        CHECK_NEAR(fit.alpha.value, shapes[s].power, 1e-9);
        CHECK_NEAR(fit.lo.value, shapes[s].power, 1e-9);
        CHECK_NEAR(fit.hi.value, shapes[s].power, 1e-9);
    }
}

/* log2 y is 0, 1, 3 at log2 x = 0, 1, 2: slope 3/2, squares left 1/6, over (3 - 2) * 2. */
TEST(the_deviation_is_that_of_least_squares)
{
    double x[] = { 1, 2, 4, 4 }, y[] = { 1, 2, 8, 8 };
    Fit    fit = fit_of(x, y, 3, FIT_PLAN);

    CHECK_NEAR(fit.alpha.value, 1.5, 1e-12);
    assert_true(fit.deviation.valid);
    CHECK_NEAR(fit.deviation.value, sqrt(1 / 12.0), 1e-12);
    assert_false(fit_of(x, y, 2, FIT_PLAN).deviation.valid);
}

TEST(a_claimed_log_is_divided_out)
{
    double  x[POINTS], y[POINTS];
    FitPlan plan = FIT_PLAN;

    lengths(x, POINTS);
    for (int i = 0; i < POINTS; i++)
        y[i] = x[i] * log(x[i]);
    assert_true(fit_of(x, y, POINTS, plan).alpha.value > 1.1);
    plan.over_log = true;
    CHECK_NEAR(fit_of(x, y, POINTS, plan).alpha.value, 1, 1e-9);
}

/* With noise of known size the interval covers the truth, is not empty, and is the same
 * every time. */
TEST(intervals_cover)
{
    static const double noise[POINTS] = { 1.05, 0.96, 1.02, 0.93, 1.07, 0.99, 0.95, 1.04 };
    double x[POINTS], y[POINTS];
    Fit    a, b;

    lengths(x, POINTS);
    for (int i = 0; i < POINTS; i++)
        y[i] = 0.01 * pow(x[i], 1.5) * noise[i];
    a = fit_of(x, y, POINTS, FIT_PLAN);
    b = fit_of(x, y, POINTS, FIT_PLAN);
    assert_true(a.lo.value < a.alpha.value && a.alpha.value < a.hi.value);
    assert_true(a.lo.value <= 1.5 && 1.5 <= a.hi.value);
    assert_true(a.hi.value - a.lo.value < 0.2);
    assert_true(a.lo.value == b.lo.value && a.hi.value == b.hi.value);
    assert_true(a.r2.value > 0.99 && a.r2.value < 1);
}

/* Values of every table of Student's distribution, P = .975 one-sided. */
TEST(students_factor_is_that_of_the_tables)
{
    static const struct {
        int    freedom;
        double t;
    } known[] = { { 1, 12.706 }, { 2, 4.303 }, { 3, 3.182 }, { 4, 2.776 }, { 5, 2.571 },
                  { 10, 2.228 }, { 29, 2.045 }, { 120, 1.980 } };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        CHECK(fabs(stats_student_95(known[i].freedom) - known[i].t) < 5e-4, "freedom %d: %.4f",
              known[i].freedom, stats_student_95(known[i].freedom));
}

/* How many of `runs` simulated sweeps with noise of 10 % have an interval, and one that holds the
 * exponent. */
static void simulate(int count, int runs, Rng *rng, int *known, int *held)
{
    *known = *held = 0;
    for (int r = 0; r < runs; r++) {
        double x[12], y[12];
        Fit    fit;

        lengths(x, count);
        for (int i = 0; i < count; i++)
            y[i] = pow(x[i], 1.5) * exp(0.1 * rng_normal(rng));
        fit = fit_of(x, y, count, FIT_PLAN);
        *known += fit.lo.valid && fit.hi.valid;
        *held += fit.lo.value <= 1.5 && 1.5 <= fit.hi.value;
    }
}

/* Of 10,000 simulated sweeps 95 % of the intervals hold the exponent: within 0.8 %, 3.5 standard
 * errors of that share. */
TEST(intervals_cover_as_often_as_they_say)
{
    static const int counts[] = { 4, 5, 8, 12 };
    const int        runs = 10000;
    Rng              rng = rng_named(1, "coverage");
    int              known, held;

    simulate(3, 100, &rng, &known, &held);
    assert_int_equal(known, 0); /* none below FIT_INTERVAL_LENGTHS */
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        simulate(counts[i], runs, &rng, &known, &held);
        print_message("%d lengths: %.1f %% of the intervals hold the exponent\n", counts[i],
                      100.0 * held / runs);
        assert_int_equal(known, runs);
        CHECK(fabs(held / (double)runs - 0.95) < 0.008, "%d lengths: %d of %d intervals hold it",
              counts[i], held, runs);
    }
}

/* What bends a slope at one length bends it for every seed there. */
TEST(seeds_of_one_length_are_no_more_lengths)
{
    static const double bend[] = { 1.2, 0.9, 0.8, 1.1 };
    double              x[12], y[12], once[4], length[4];
    Fit                 seeds, one;

    lengths(length, 4);
    for (int i = 0; i < 12; i++) {
        x[i] = length[i % 4];
        y[i] = once[i % 4] = x[i] * bend[i % 4];
    }
    seeds = fit_of(x, y, 12, FIT_PLAN);
    one = fit_of(length, once, 4, FIT_PLAN);
    CHECK_NEAR(seeds.alpha.value, one.alpha.value, 1e-9);
    CHECK_NEAR(seeds.deviation.value, one.deviation.value, 1e-9);
    CHECK_NEAR(seeds.lo.value, one.lo.value, 1e-9);
    CHECK_NEAR(seeds.hi.value, one.hi.value, 1e-9);
}

/* Slopes that bend: the local ones say where, and --drop leaves the bend out. */
TEST(bends_are_local)
{
    double  x[POINTS], y[POINTS];
    FitPlan plan = FIT_PLAN;
    Fit     fit;

    lengths(x, POINTS);
    for (int i = 0; i < POINTS; i++)
        y[i] = i < 3 ? 7 : 7 * pow(x[i] / x[2], 2);
    fit = fit_of(x, y, POINTS, plan);
    assert_int_equal(fit.locals, POINTS - 1);
    CHECK_NEAR(fit.local[0], 0, 1e-12);
    CHECK_NEAR(fit.local[POINTS - 2], 2, 1e-12);
    CHECK_NEAR(fit.local_x[POINTS - 2], x[POINTS - 1], 1e-12);
    assert_true(fit.lo.value < 1.9);
    plan.drop = 2;
    fit = fit_of(x, y, POINTS, plan);
    assert_int_equal(fit.count, POINTS - 2);
    CHECK_NEAR(fit.alpha.value, 2, 1e-9);
    assert_int_equal(fit.best, FIT_SQUARE);
}

TEST(too_few_points_are_no_fit)
{
    static const double x[] = { 256, 256, 512, 1024, 2048 }, y[] = { 1, 3, 4, 8, 17 };
    FitPlan             all = FIT_PLAN, none = { .drop = 9 };

    assert_false(fit_of(x, y, 0, all).alpha.valid);
    assert_false(fit_of(x, y, 2, all).alpha.valid); /* one n */
    assert_true(fit_of(x, y, 3, all).alpha.valid && !fit_of(x, y, 3, all).lo.valid);
    assert_false(fit_of(x, y, 3, all).deviation.valid); /* two n */
    assert_true(fit_of(x, y, 4, all).deviation.valid && !fit_of(x, y, 4, all).lo.valid);
    assert_true(fit_of(x, y, 5, all).lo.valid);
    assert_false(fit_of(x, y, 4, none).alpha.valid);
}

/* Values without a logarithm are left out, never taken for 0. */
TEST(unusable_points_are_left_out)
{
    const double x[] = { 64, 0, 128, 256, 512, -8 };
    const double y[] = { 64, 9, (double)NAN, 256, (double)INFINITY, 1 };
    Fit          fit = fit_of(x, y, 6, FIT_PLAN);

    assert_int_equal(fit.count, 2);
    CHECK_NEAR(fit.alpha.value, 1, 1e-12);
}

TEST(too_many_points_are_refused)
{
    static double x[FIT_MOST + 1];
    FitPlan       plan = FIT_PLAN;
    Fit           fit;
    Error         err = ERROR_INIT;

    for (int i = 0; i <= FIT_MOST; i++)
        x[i] = i + 1;
    assert_false(fit_power(x, x, FIT_MOST + 1, &plan, &fit, &err));
    assert_int_equal(err.code, ERR_DATA);
}

SUITE(NULL, NULL)
