/* check.h -- cmocka with the assertions our tests need. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

#endif
