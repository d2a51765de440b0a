/* check.h -- a unit-test program: cmocka, the assertions our tests need, and their registration.
 *
 * TEST(what_holds) { ... } defines a test and registers it; SUITE(setup, teardown) at the end of
 * the file runs all in the order of their lines.  A test has one argument, `state`, as the setup
 * left it.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Fails with the given message when the condition does not hold. */
#define CHECK(condition, ...)                                                                  \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, __VA_ARGS__);                                                      \
            fprintf(stderr, "\n");                                                             \
            fail_msg("%s", #condition);                                                        \
        }                                                                                      \
    } while (0)

/* |a - b| <= tol * max(1, |b|); written so that NaN fails. */
#define CHECK_NEAR(a, b, tol)                                                                  \
    do {                                                                                       \
        double check_a = (a), check_b = (b);                                                   \
        double check_size = check_b < 0 ? -check_b : check_b;                                  \
        double check_diff = check_a - check_b;                                                 \
        if (check_diff < 0)                                                                    \
            check_diff = -check_diff;                                                          \
        if (!(check_diff <= (tol) * (check_size > 1 ? check_size : 1)))                        \
            fail_msg("%s = %.9g, expected %s = %.9g (tolerance %g)", #a, check_a, #b, check_b, \
                     (double)(tol));                                                           \
    } while (0)

#define SUITE_MAX 100

static struct CMUnitTest suite_tests[SUITE_MAX];
static int               suite_lines[SUITE_MAX];
static size_t            suite_count;

static inline void suite_add(struct CMUnitTest test, int line)
{
    size_t at = suite_count++;

    if (at == SUITE_MAX)
        abort();
    for (; at && suite_lines[at - 1] > line; at--) {
        suite_lines[at] = suite_lines[at - 1];
        suite_tests[at] = suite_tests[at - 1];
    }
    suite_lines[at] = line;
    suite_tests[at] = test;
}

#define TEST(what) TEST_AFTER(what, NULL)
/* The same with a setup of its own. */
#define TEST_AFTER(what, setup)                                                              \
    static void what(void **state);                                                          \
    __attribute__((constructor)) static void add_##what(void)                                \
    {                                                                                        \
        suite_add((struct CMUnitTest){ #what, what, setup, NULL, NULL }, __LINE__);          \
    }                                                                                        \
    static void what(void **state __attribute__((unused)))

/* TEST_ORDER=SEED: another order, the same for a seed, to find tests that need one another. */
static inline void suite_shuffle(void)
{
    const char *seed = getenv("TEST_ORDER");
    uint64_t    x = seed ? strtoull(seed, NULL, 10) * 2 + 1 : 0;

    for (size_t i = suite_count; seed && i > 1; i--) {
        struct CMUnitTest last = suite_tests[i - 1];
        size_t            at;

        x = x * 6364136223846793005u + 1442695040888963407u;
        at = (size_t)(x >> 33) % i;
        suite_tests[i - 1] = suite_tests[at];
        suite_tests[at] = last;
    }
}

static inline int suite_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    suite_shuffle();
    return _cmocka_run_group_tests("tests", suite_tests, suite_count, setup, teardown);
}

#define SUITE(setup, teardown)             \
    int main(void)                         \
    {                                      \
        return suite_run(setup, teardown); \
    }

#endif
