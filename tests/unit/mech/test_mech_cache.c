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

/* Many rows after a prompt read its kept keys side by side: weights, which are of the cells where
 * they lie, give the same output.  Of 200 rows at least 64 follow each
 * prompt. */
TEST(rows_after_a_prompt_read_the_kept_keys)
{
    static const char *const params[] = {
        "prompt=90,observation=3,keep=9,kernel=3,per=head", "prompt=136,observation=1,keep=1",
        "prompt=135,observation=8,keep=127,kernel=1", "prompt=1,observation=1", "prompt=60,keep=0",
    };

    for (size_t x = 0; x < sizeof(params) / sizeof(*params); x++) {
        Fixture f = fixture_new(200);

        fixture_run(&f, "snapkv", params[x], true);
        check_weights(&f);
        check_flops(&f);
        fixture_free(&f);
    }
}

/* A head of keys that two heads of queries share is two equal ones. */
TEST(kept_keys_of_a_shared_head)
{
    const char *params = "prompt=90,observation=3,keep=9,per=head";
    Fixture     shared = fixture_new(200), twice = fixture_new(200);

    memcpy(tensor_f32(&twice.k) + twice.k.stride[0], twice.k.data,
           (size_t)twice.k.stride[0] * sizeof(float));
    memcpy(tensor_f32(&twice.v) + twice.v.stride[0], twice.v.data,
           (size_t)twice.v.stride[0] * sizeof(float));
    shared.k.shape[0] = shared.v.shape[0] = 1;
    fixture_run(&shared, "snapkv", params, true);
    fixture_run(&twice, "snapkv", params, true);
    CHECK(apart_of(shared.run, twice.run) <= 1e-6, "%g", apart_of(shared.run, twice.run));
    fixture_free(&shared);
    fixture_free(&twice);
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

/* -1 is no early query: pictures leave out keys that never left, and ranks that no key has. */
TEST(positions_that_are_none_are_not_shown)
{
    static const char *const of[][2] = { { "h2o", "evicted_at" }, { "h2o", "eviction_order" },
                                         { "dsa", "selected" } };

    for (int k = 0; k < 3; k++) {
        Fixture     f = fixture_new(48);
        const View *view = run_view(fixture_run(&f, of[k][0], "", true), of[k][1]);
        Tensor      values = fixture_view(&f, of[k][1]);
        int64_t     cols = values.shape[1], none = 0;

        assert_true(view && view->shown && values.rank == 2);
        for (int64_t x = 0; x < tensor_count(&values); x++) {
            bool there = tensor_i32(&values)[x] >= 0, shown;

            none += !there;
            pattern_cell(view->shown, 0, x / cols, x % cols, &shown);
            assert_true(shown == there);
        }
        assert_true(none > 0 && none < tensor_count(&values));
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

/* ---- the learned sink -------------------------------------------------------------- */

/* One row of softmax over the allowed keys and z, in double: out = weights, [j = n] of z. */
static void row_with_sink(const Fixture *f, const uint8_t *allowed, int64_t row, double z,
                          double *weights)
{
    const float *q = tensor_f32(&f->q) + row * KEY_SIZE;
    int64_t      first = row / f->n * f->n;
    double       most = z, sum = 0;

    for (int64_t j = 0; j < f->n; j++) {
        weights[j] = -INFINITY;
        if (allowed[j]) {
            weights[j] = 0;
            for (int64_t c = 0; c < KEY_SIZE; c++)
                weights[j] += (double)q[c] *
                              (double)tensor_f32(&f->k)[(first + j) * KEY_SIZE + c];
            weights[j] /= sqrt(KEY_SIZE);
        }
        most = fmax(most, weights[j]);
    }
    weights[f->n] = z;
    for (int64_t j = 0; j <= f->n; j++)
        sum += weights[j] = exp(weights[j] - most);
    for (int64_t j = 0; j <= f->n; j++)
        weights[j] /= sum;
}

/* Weights, shares and output of each row; z: a logit of each head.  4e-6: log-sum-exps up to 32 are
 * floats, which round by 2e-6. */
static void check_sink(const Fixture *f, const float *z)
{
    Tensor weights = fixture_view(f, "weights"), cells = fixture_view(f, "connectivity");
    Tensor of_sinks = fixture_view(f, "sink_mass"), of_logit = fixture_view(f, "logit_mass");
    double want[N + 1];

    for (int64_t row = 0; row < HEADS * f->n; row++) {
        double sinks = 0;

        row_with_sink(f, tensor_u8(&cells) + row % f->n * f->n, row, (double)z[row / f->n], want);
        for (int64_t j = 0; j < f->n; j++) {
            CHECK_NEAR((double)tensor_f32(&weights)[row * f->n + j], want[j], 4e-6);
            sinks += j < 2 ? want[j] : 0;
        }
        CHECK_NEAR((double)tensor_f32(&of_logit)[row], want[f->n], 4e-6);
        CHECK_NEAR((double)tensor_f32(&of_sinks)[row], sinks, 4e-6);
    }
    check_weights(f);
    check_flops(f);
}

TEST(a_learned_sink_is_a_logit_without_a_value)
{
    for (int causal = 0; causal < 2; causal++)
        for (int large = 0; large < 2; large++) {
            Fixture f = fixture_new(N);
            Tensor  z = tensor_new(f.arena, DT_F32, 1, (int64_t[]){ HEADS });

            for (int64_t x = 0; large && x < tensor_count(&f.q); x++)
                tensor_f32(&f.q)[x] *= 40;
            tensor_f32(&z)[0] = large ? 2000 : 1.5f;
            tensor_f32(&z)[1] = -2;
            fixture_give(&f, "sink_logits", z);
            fixture_run(&f, "streaming-llm", "sinks=2,window=5", causal);
            check_sink(&f, tensor_f32(&z));
            fixture_free(&f);
        }
}

TEST(logits_of_a_sink_are_one_of_each_head)
{
    static const float one[] = { 0.5f, 0.5f };
    Fixture            f = fixture_new(N);
    int64_t            shape[2] = { HEADS + 1, 2 };
    double             step;

    fixture_run(&f, "streaming-llm", "sinks=2,window=5", true);
    step = figure_of(f.run, "decode_flops");
    fixture_fill(&f, "sink_logits", 1, shape, 0.5f);
    check_fails(&f, "streaming-llm", "sinks=2,window=5", true, "expected shape [2]");
    f.tensor_count = 0;
    fixture_fill(&f, "sink_logits", 2, shape, 0.5f);
    check_fails(&f, "streaming-llm", "sinks=2,window=5", true, "found [3,2]");
    f.tensor_count = 0;
    fixture_fill(&f, "sink_logits", 0, shape, 0.5f); /* of all heads */
    fixture_run(&f, "streaming-llm", "sinks=2,window=5", true);
    check_sink(&f, one);
    CHECK_NEAR(figure_of(f.run, "decode_flops"), step + 5 * HEADS, 0);
    fixture_free(&f);
}

SUITE(NULL, NULL)
