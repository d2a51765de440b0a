/* test_mech_cache.c -- prompts so short that a choice of keys chooses nothing. */
#include "mech_fixture.h"

static double apart_of(const Run *a, const Run *b)
{
    double most = 0;

    for (int64_t x = 0; x < tensor_count(&a->out); x++) {
        double off = fabs((double)tensor_f32(&a->out)[x] - (double)tensor_f32(&b->out)[x]);

        most = off <= most ? most : off; /* NaN stays */
    }
    return most;
}

/* Fewer rows than are to vote: all rows do, no key is left to choose among, and nothing is lost. */
TEST(all_rows_of_a_short_prompt_vote)
{
    for (int64_t n = 1; n < 9; n++) {
        Fixture some = fixture_new(n), all = fixture_new(n);
        Run    *kept = fixture_run(&some, "snapkv", "observation=8", true);
        Run    *full = fixture_run(&all, "full", "", true);

        CHECK(apart_of(kept, full) <= 1e-6, "n=%d: %g", (int)n, apart_of(kept, full));
        fixture_free(&some);
        fixture_free(&all);
    }
}

SUITE(NULL, NULL)
