/* test_entmax.c -- rows of entmax against their definition. */

#include "attn/ops/ops.h"
#include "check.h"
#include "core/rng.h"

#define MOST 40

static Entmax form_of(double alpha, bool bisect)
{
    Entmax e = { .form = ENTMAX_BISECT, .alpha = alpha, .iterations = 60, .divide = true };

    if (alpha == 1)
        e.form = ENTMAX_SOFTMAX;
    else if (alpha == 2 && !bisect)
        e.form = ENTMAX_SPARSEMAX;
    else if (alpha == 1.5 && !bisect)
        e.form = ENTMAX_SQUARE;
    return e;
}

static void weights_of(const Entmax *e, const double *z, int64_t count, double *w)
{
    double    work[MOST];
    EntmaxRow row = entmax_row(e, z, count, work, NULL, 0);

    for (int64_t j = 0; j < count; j++)
        w[j] = entmax_weight(e, row, z[j]);
}

/* Optimality: w^(alpha-1) - (alpha-1) z is one number on the support and at most that
 * outside, and the row sums to 1. */
static void check_optimal(double alpha, bool bisect, double size, int64_t count, uint64_t seed)
{
    Entmax e = form_of(alpha, bisect);
    Rng    rng = { .seed = seed };
    double z[MOST] = { 0 }, w[MOST], sum = 0, level = 0;

    for (int64_t j = 0; j < count; j++)
        z[j] = size * rng_normal(&rng) + 100;
    weights_of(&e, z, count, w);
    for (int64_t j = 0; j < count; j++) {
        assert_true(w[j] >= 0);
        sum += w[j];
        if (w[j] > 1e-3) /* far from 0, where the power is ill-conditioned */
            level = (alpha - 1) * z[j] - pow(w[j], alpha - 1);
    }
    CHECK_NEAR(sum, 1, 1e-9);
    for (int64_t j = 0; j < count && alpha > 1; j++) {
        double x = (alpha - 1) * z[j] - level;

        if (w[j] > 1e-3)
            CHECK_NEAR(pow(w[j], alpha - 1), x, 1e-8);
        else
            assert_true(x <= pow(1e-3, alpha - 1) + 1e-8);
    }
}

TEST(every_form_is_optimal)
{
    static const double alphas[] = { 1, 1.1, 1.5, 1.75, 2, 3 }, sizes[] = { 0.01, 1, 30 };

    for (size_t a = 0; a < sizeof(alphas) / sizeof(*alphas); a++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
            for (int64_t count = 1; count <= MOST; count += 13)
                for (int bisect = 0; bisect < 2; bisect++)
                    check_optimal(alphas[a], bisect, sizes[s], count, a * 100 + s * 10);
}

TEST(sorting_and_bisection_agree)
{
    static const double alphas[] = { 1.5, 2 };

    for (uint64_t seed = 0; seed < 100; seed++) {
        Rng    rng = { .seed = seed };
        Entmax a = form_of(alphas[seed % 2], false), b = form_of(alphas[seed % 2], true);
        double z[MOST], x[MOST], y[MOST];

        for (int64_t j = 0; j < MOST; j++)
            z[j] = seed % 3 ? 2 * rng_normal(&rng) : (double)rng_below(&rng, 3); /* ties too */
        weights_of(&a, z, MOST, x);
        weights_of(&b, z, MOST, y);
        for (int64_t j = 0; j < MOST; j++)
            CHECK_NEAR(x[j], y[j], 1e-12);
    }
}

TEST(constant_rows_are_uniform)
{
    static const double alphas[] = { 1, 1.2, 1.5, 2, 4, 50 };

    for (size_t a = 0; a < sizeof(alphas) / sizeof(*alphas); a++)
        for (int bisect = 0; bisect < 2; bisect++)
            for (int64_t count = 1; count <= MOST; count += 3) {
                Entmax e = form_of(alphas[a], bisect);
                double z[MOST] = { 0 }, w[MOST];

                for (int64_t j = 0; j < count; j++)
                    z[j] = 3;
                weights_of(&e, z, count, w);
                for (int64_t j = 0; j < count; j++)
                    CHECK_NEAR(w[j], 1 / (double)count, 1e-12);
            }
}

/* Three steps on z = (3/4, 1/4) with alpha 2, by hand: the interval is [-1/4, 1/4]; the
 * threshold 0 sums to exactly 1 and is kept, 1/8 and 1/16 fall short. */
TEST(a_bisection_can_be_watched)
{
    Entmax    e = { .form = ENTMAX_BISECT, .alpha = 2, .iterations = 3 };
    double    z[2] = { 0.75, 0.25 }, work[2], trace[3];
    EntmaxRow row = entmax_row(&e, z, 2, work, trace, 3);

    assert_true(trace[0] == 0);
    assert_true(trace[1] == 0.125);
    assert_true(trace[2] == 0.0625);
    assert_true(row.tau == 0.0625 && row.total == 1);
    e.divide = true;
    row = entmax_row(&e, z, 2, work, trace, 1);
    assert_true(entmax_weight(&e, row, 0.75) + entmax_weight(&e, row, 0.25) == 1);
}

TEST(absent_entries_do_not_count)
{
    Entmax    e = form_of(1, false);
    double    z[3] = { -HUGE_VAL, 1, -HUGE_VAL }, work[3];
    EntmaxRow row = entmax_row(&e, z, 3, work, NULL, 0);

    assert_true(row.tau == 1);
    assert_true(entmax_weight(&e, row, z[0]) == 0);
    row = entmax_row(&e, z, 1, work, NULL, 0); /* nothing at all */
    assert_true(row.tau == 0 && entmax_weight(&e, row, z[0]) == 0);
    assert_true(entmax_flops(&e, 0) == 0);
}

SUITE(NULL, NULL)
