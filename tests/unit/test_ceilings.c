/* test_ceilings.c -- the machine's ceilings, and the roof they make. */
#include "profile_fixture.h"
#include "core/threads.h"

static void the_roof_bends_where_memory_meets_arithmetic(void **state)
{
    Ceilings c = { .peak = 100, .gemm = 90, .stream = 10 };

    (void)state;
    CHECK_NEAR(ceilings_roof(&c, 1), 10, 0);
    CHECK_NEAR(ceilings_roof(&c, 10), 100, 0);
    CHECK_NEAR(ceilings_roof(&c, 1000), 100, 0);
}

static void ceilings_are_measured(void **state)
{
    Threads *threads = threads_new(2);
    Ceilings c;
    Error    err = ERROR_INIT;

    (void)state;
    if (!ops_cpu()->ceilings(ops_cpu(), threads, &c, &err))
        fail_msg("%s", err.text);
    assert_true(c.gemm > 0 && c.stream > 0);
    assert_true(isnan(c.peak) || c.peak > 0);
    threads_free(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_roof_bends_where_memory_meets_arithmetic),
        cmocka_unit_test(ceilings_are_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
