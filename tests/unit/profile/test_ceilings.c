/* test_ceilings.c -- the machine's ceilings, and the roof they make. */
#include "core/threads.h"
#include "profile_fixture.h"

TEST(the_roof_bends_where_memory_meets_arithmetic)
{
    Ceilings c = { .peak = 100, .gemm = 90, .stream = 10 };

    CHECK_WITHIN(ceilings_roof(&c, 1), 10, 0);
    CHECK_WITHIN(ceilings_roof(&c, 10), 100, 0);
    CHECK_WITHIN(ceilings_roof(&c, 1000), 100, 0);
}

TEST(ceilings_are_measured)
{
    Threads *threads = threads_new(2);
    Ceilings c;
    Error    err = ERROR_INIT;

    if (!ops_cpu()->ceilings(ops_cpu(), threads, &c, &err))
        fail_msg("%s", err.text);
    assert_true(c.gemm > 0 && c.stream > 0);
    assert_true(isnan(c.peak) || c.peak > 0);
    threads_free(threads);
}

SUITE(NULL, NULL)
