/* test_row_weights.c -- rows of weights against each other, by their definitions: of every length
 * around the sums' chains, and the rows that have no divergence. */

#include "attn/cpu/simd/kernel.h"
#include "attn/study/row.h"
#include "check.h"

#define MOST 40

/* Row x of some numbers: every third 0 where `gaps`, and the sum is 1. */
static void fill(float *w, int m, int seed, bool gaps)
{
    double sum = 0;

    for (int j = 0; j < m; j++) {
        w[j] = gaps && j % 3 == 1 ? 0 : (float)(1 + (j * 7 + seed * 5) % 11);
        sum += (double)w[j];
    }
    for (int j = 0; j < m; j++)
        w[j] /= (float)sum;
}

TEST(are_what_they_say)
{
    for (int m = 1; m <= MOST; m++) {
        float       p[MOST], q[MOST], kept[MOST];
        double      sum = 0, mass = 0, distance = 0, kl = 0;
        const char *lacks = NULL;
        bool        left = false, left_out = false;

        fill(p, m, 1, true);
        fill(q, m, 2, false);
        fill(kept, m, 3, m % 2 == 0);
        for (int j = 0; j < m; j++) {
            sum += (double)q[j];
            mass += kept[j] > 0 ? (double)q[j] : 0;
            left |= !(kept[j] > 0);
            distance += fabs((double)p[j] - 0.5 * (double)q[j]);
            kl += p[j] > 0 ? (double)p[j] * log((double)p[j] / (double)q[j]) : 0;
        }
        CHECK_NEAR(row_sum(q, m), sum, 1e-14);
        CHECK_NEAR(kept_mass(q, kept, m, &left_out), mass, 1e-14);
        assert_int_equal(left_out, left);
        CHECK_NEAR(row_distance(p, q, 0.5, m), distance, 1e-14);
        /* sums of 1 in float: their own error, as a share of the divergence */
        CHECK_NEAR(row_divergence(p, row_sum(p, m), q, sum, m, &lacks), kl, 1e-6);
        assert_null(lacks);
    }
}

/* A kept cell of weight 0 counts as kept, and a missing cell as missing. */
TEST(left_out_needs_weight)
{
    float w[MOST] = { 0 }, kept[MOST] = { 0 };
    bool  left = true;

    CHECK_NEAR(kept_mass(w, kept, MOST, &left), 0, 0);
    assert_false(left);
    w[3] = kept[3] = w[37] = 1;
    CHECK_NEAR(kept_mass(w, kept, 37, &left), 1, 0);
    assert_false(left);
    CHECK_NEAR(kept_mass(w, kept, MOST, &left), 1, 0);
    assert_true(left);
}

static double divergence(const float *p, const float *q, int m, const char **lacks)
{
    *lacks = NULL;
    return row_divergence(p, row_sum(p, m), q, row_sum(q, m), m, lacks);
}

TEST(divergence_of_rows)
{
    const float p[] = { 0.5F, 0.5F, 0 }, q[] = { 0.25F, 0.25F, 0.5F }, none[3] = { 0 };
    const float half[] = { 0.5F, 0, 0 }, below[] = { 1.5F, -0.5F, 0 }, unknown[] = { NAN, 1, 0 };
    const char *lacks;

    CHECK_NEAR(divergence(p, q, 3, &lacks), log(2), 1e-12);
    CHECK_NEAR(divergence(p, p, 3, &lacks), 0, 0);
    assert_true(isnan(divergence(none, none, 3, &lacks)) && !lacks);
    assert_true(isnan(divergence(q, p, 3, &lacks)));
    assert_non_null(strstr(lacks, "infinite"));
    assert_true(isnan(divergence(half, q, 3, &lacks)) && lacks);
    assert_true(isnan(divergence(p, below, 3, &lacks)) && lacks);
    assert_true(isnan(divergence(none, q, 3, &lacks)) && lacks);
    assert_true(isnan(divergence(p, unknown, 3, &lacks)) && lacks);
}

/* The logarithms of every kernel are the library's: weights from the least float to 1. */
TEST(logarithms_are_the_librarys)
{
    float p[64], q[64];

    for (int x = 0; kernel_at(x); x++)
        for (int from = -149; from <= 0; from++) {
            double wanted = 0, scale = 0;

            for (int j = 0; j < 61; j++) {
                p[j] = (float)ldexp(1 + j / 61.0, from);
                q[j] = (float)ldexp(1 + (j * 37 % 61) / 61.0, -j * 149 / 61);
                wanted += (double)p[j] * log((double)p[j] / (double)q[j]);
                scale += fabs((double)p[j] * log((double)p[j] / (double)q[j]));
            }
            CHECK_NEAR(kernel_at(x)->divergence(p, q, 61), wanted, 1e-14 * scale);
        }
}

/* The same where rows are read in chains: one key of forty. */
TEST(divergence_of_long_rows)
{
    float       p[MOST], q[MOST];
    const char *lacks;

    for (int at = 0; at < MOST; at++) {
        fill(p, MOST, 1, false);
        fill(q, MOST, 1, false);
        q[at] = 0;
        assert_true(isnan(row_divergence(p, 1, q, 1, MOST, &lacks)));
        assert_non_null(strstr(lacks, "infinite"));
        q[at] = -1e-6f;
        assert_true(isnan(row_divergence(p, 1, q, 1, MOST, &lacks)));
        assert_non_null(strstr(lacks, "negative"));
        memset(p, 0, sizeof(p));
        fill(q, MOST, 1, false);
        p[at] = 1;
        CHECK_NEAR(divergence(p, q, MOST, &lacks), -log((double)q[at]), 1e-6);
    }
}

SUITE(NULL, NULL)
