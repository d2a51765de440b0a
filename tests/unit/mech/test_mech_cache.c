/* test_mech_cache.c -- prompts so short that a choice of keys chooses nothing, and what the keys
 * that a cache lost would have had. */
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

/* The inspector reads weights, the picture shows the pattern: a cause has one name in both. */
TEST(weights_have_the_names_of_their_pattern)
{
    static const char *const of[][2] = { { "moba", "chosen blocks" },
                                         { "h2o", "older, kept" } };

    for (int k = 0; k < 2; k++) {
        Fixture     f = fixture_new(24);
        const View *view = run_view(fixture_run(&f, of[k][0], "", true), "weights");

        assert_true(view && view->components);
        assert_string_equal(view->components[5], of[k][1]);
        fixture_free(&f);
    }
}

#define N 30

/* A row of a view; the view is there. */
static void row_of(const Run *r, const char *name, int64_t head, int64_t i, float *out)
{
    const View *view = run_view(r, name);

    CHECK(view, "%s has no view %s", r->mechanism->id, name);
    view_read(view, view_shared(view) ? 0 : head, i, 0, view_cols(view), 1, out);
}

/* Of keys outside the cache the weight of full attention, of others 0; their sum is the mass. */
static void check_evicted(const char *id, const char *params)
{
    Fixture some = fixture_new(N), all = fixture_new(N);
    Run    *kept = fixture_run(&some, id, params, true);
    Run    *full = fixture_run(&all, "full", "", true);
    float   held[N], weight[N], lost[N], mass[N];
    double  most = 0;

    for (int64_t x = 0; x < kept->h * N; x++) {
        double sum = 0;

        row_of(kept, "cache", x / N, x % N, held);
        row_of(full, "weights", x / N, x % N, weight);
        row_of(kept, "evicted", x / N, x % N, lost);
        row_of(kept, "evicted_mass", 0, x / N, mass);
        for (int64_t j = 0; j < N; j++) {
            double expected = held[j] > 0 ? 0 : (double)weight[j];

            CHECK(fabs((double)lost[j] - expected) <= 1e-6, "%s [%d,%d,%d]: %g, expected %g",
                  id, (int)(x / N), (int)(x % N), (int)j, (double)lost[j], expected);
            sum += expected;
        }
        CHECK_NEAR((double)mass[x % N], sum, 1e-5);
        most = fmax(most, sum);
    }
    CHECK(most > 0.01, "%s: nothing was lost", id);
    fixture_free(&some);
    fixture_free(&all);
}

TEST(lost_keys_have_their_exact_weights)
{
    check_evicted("snapkv", "observation=2,keep=3");
    check_evicted("streaming-llm", "window=6");
    check_evicted("h2o", "");
}

SUITE(NULL, NULL)
