/* test_precision.c -- rounding to narrower formats against its definition. */
#include <float.h>
#include <stdbool.h>

#include "attn/ops/rows.h"
#include "check.h"
#include "core/rng.h"

/* The definition, word for word. */
static double by_definition(const Precision *p, double a)
{
    int    e = 0;
    double ulp, y;

    if (a == 0 || !isfinite(a))
        return a;
    frexp(fabs(a), &e);
    e = e - 1 > p->emin ? e - 1 : p->emin;
    ulp = ldexp(1, e - (p->bits - 1));
    y = rint(a / ulp) * ulp;
    return fabs(y) >= p->limit ? copysign((double)INFINITY, a) : y;
}

static bool same_bits(double a, double b)
{
    return !memcmp(&a, &b, sizeof(a)) || (isnan(a) && isnan(b));
}

static void check_number(const Precision *p, double a)
{
    double y = precision_round(p, a);

    assert_true(same_bits(y, by_definition(p, a)));
    assert_true(same_bits(precision_round(p, y), y));
    if (isfinite(y))
        assert_true(fabs(y - a) <= precision_ulp(p, a) / 2);
}

TEST(test_definition)
{
    Rng rng = { .seed = 5 };

    for (int f = 0; f < PRECISION_FLOAT64; f++) {
        const Precision *p = precision_of((PrecisionFormat)f);

        for (int t = 0; t < 20000; t++) {
            double a = ldexp(rng_uniform(&rng) + 1,
                             p->emin - 30 + (int)(rng_uniform(&rng) * (p->emax - p->emin + 34)));
            double tie = precision_round(p, a);

            check_number(p, t % 2 ? a : -a);
            if (isfinite(tie)) /* exactly between two numbers of the format */
                check_number(p, tie + precision_ulp(p, tie) / 2);
        }
        check_number(p, p->limit);
        check_number(p, nextafter(p->least, 0));
        check_number(p, -0.0);
        assert_true(isnan(precision_round(p, (double)NAN)));
        assert_true(precision_round(p, -(double)INFINITY) == -(double)INFINITY);
    }
}

TEST(test_known_numbers)
{
    const Precision *half = precision_of(PRECISION_FP16), *brain = precision_of(PRECISION_BF16);

    assert_true(precision_round(half, 65519.996) == 65504);
    assert_true(precision_round(half, 65520) == (double)INFINITY);
    assert_true(precision_round(half, 0x1p-25) == 0); /* the tie goes to 0, which is even */
    assert_true(precision_round(half, 0x1.8p-24) == 0x1p-23);
    assert_true(precision_round(half, 2049) == 2048 && precision_round(half, 2051) == 2052);
    assert_true(precision_round(brain, 1 + 0x1p-8) == 1);
    assert_true(precision_round(brain, 1 + 0x3p-8) == 1 + 0x1p-6);
    assert_true(precision_round(brain, 1e38) < 1.1e38);
    assert_true(precision_ulp(half, 1) == 0x1p-10 && precision_ulp(half, 0) == 0x1p-24);
    assert_true(precision_round(precision_of(PRECISION_FLOAT64), DBL_TRUE_MIN) == DBL_TRUE_MIN);
}

/* The machine's own single precision is the format float32. */
TEST(test_float32)
{
    const Precision *p = precision_of(PRECISION_FLOAT32);
    Rng    rng = { .seed = 6 };
    double x[100], y[100];
    float  sum = 0, plain = 0;

    for (int t = 0; t < 100; t++) {
        double wild = rng_normal(&rng) * ldexp(1, (int)(rng_uniform(&rng) * 300) - 160);

        assert_true(same_bits(precision_round(p, wild), (double)(float)wild));
        x[t] = precision_round(p, rng_normal(&rng));
        y[t] = precision_round(p, rng_normal(&rng));
        sum += (float)x[t] * (float)y[t];
        plain += (float)x[t];
    }
    assert_true(same_bits(precision_dot(p, 100, x, 1, y, 1), (double)sum));
    assert_true(same_bits(precision_sum(p, 100, x), (double)plain));
    for (int t = 0; t < 100; t++) {
        double once = precision_round(precision_of(PRECISION_BF16), x[t]);

        assert_true(same_bits(precision_round(precision_of(PRECISION_BF16), once), once));
    }
}

TEST(test_half_accumulation)
{
    const Precision *half = precision_of(PRECISION_FP16);
    double x[6] = { 2048, 1, 1, 1, 1, 0 }, steps[12], one = 1;

    assert_true(precision_sum(half, 5, x) == 2048); /* each 1 is lost in turn */
    assert_true(precision_dot(half, 5, x, 1, &one, 0) == 2048);
    for (int t = 0; t < 12; t++)
        steps[t] = t % 2 ? -1e9 : x[t / 2];
    assert_true(precision_dot(half, 6, steps, 2, &one, 0) == 2048);
}

SUITE(NULL, NULL)
