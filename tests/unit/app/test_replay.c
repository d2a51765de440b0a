/* test_replay.c -- replays show what the kernels did: tiles, decoding, states, features. */

#include "app/result/steps.h"
#include "app/result/views.h"
#include "attn/study/replay.h"
#include "session_fixture.h"
#include "unit/view_fixture.h"

#define N 40
#define HEADS 2

static Session *session;

static int open_session(void **state)
{
    *state = session = session_on("synthetic:normal(n=40,d=8,heads=2)");
    return 0;
}

static Result *run_of(const char *text, bool causal)
{
    Request request = REQUEST_INIT;

    request.causal = causal;
    return result_as(session, request, text);
}

/* The view of that name at the iteration of a stage; NULL: none. */
static const View *view_of(const Run *run, const char *stage, int64_t iteration, const char *name)
{
    for (int i = 0; i < run->view_count; i++)
        if (!strcmp(run->views[i].name, name) && !strcmp(run->views[i].stage, stage) &&
            run->views[i].iteration == iteration)
            return &run->views[i];
    return NULL;
}

static double trace_of(const Run *run, const char *stage, int64_t iteration, const char *name)
{
    for (int i = 0; i < run->trace_count; i++) {
        const Stage *s = &run->stages[run->traces[i].step];

        if (!strcmp(run->traces[i].name, name) && !strcmp(s->name, stage) &&
            s->iteration == iteration)
            return run->traces[i].value;
    }
    return (double)NAN;
}

static float cell(const View *view, int64_t head, int64_t i, int64_t j)
{
    float value;

    view_read(view, view_shared(view) ? 0 : head, i, j, 1, 1, &value);
    return value;
}

static double score(const Run *run, int64_t head, int64_t i, int64_t j)
{
    return attend_score(&run->replay.attend, run->h, head, i, j);
}

/* Weights after a tile are the softmax over the keys so far; the running numbers are its own. */
static void check_tiles_of(const char *text, bool causal, const char *shown, const char *weighed)
{
    Result     *result = run_of(text, causal);
    const Run  *run = result->run, *replay = result_replay(result);
    const View *cells = run_view(run, shown), *max, *sum, *off, *rescaled;

    assert_non_null(replay);
    max = run_view(replay, "running_max");
    sum = run_view(replay, "running_sum");
    off = run_view(replay, "output_off");
    rescaled = run_view(replay, "rescaled");
    for (int64_t t = 0; t < 5; t++) { /* 40 keys by 8 */
        const View *weights = view_of(replay, "tile", t, "weights_so_far");

        assert_non_null(weights);
        for (int64_t x = 0; x < HEADS * N; x++) {
            int64_t head = x / N, i = x % N;
            double  top = -HUGE_VAL, total = 0;

            for (int64_t j = 0; j < 8 * (t + 1); j++)
                if (cell(cells, head, i, j) > 0)
                    top = fmax(top, score(run, head, i, j));
            for (int64_t j = 0; j < 8 * (t + 1); j++)
                total += cell(cells, head, i, j) > 0 ? exp(score(run, head, i, j) - top) : 0;
            CHECK_NEAR((double)cell(sum, head, i, t), total, 1e-5 * (1 + total));
            if (total > 0)
                CHECK_NEAR((double)cell(max, head, i, t), top, 1e-5 * (1 + fabs(top)));
            for (int64_t j = 0; j < N; j++) {
                bool seen = j < 8 * (t + 1) && cell(cells, head, i, j) > 0;

                CHECK_NEAR((double)cell(weights, head, i, j),
                           seen ? exp(score(run, head, i, j) - top) / total : 0, 1e-5);
            }
            if (t && (double)cell(sum, head, i, t - 1) > 0)
                CHECK_NEAR((double)cell(rescaled, head, i, t),
                           exp((double)cell(max, head, i, t - 1) - (double)cell(max, head, i, t)),
                           1e-5);
        }
    }
    for (int64_t x = 0; x < HEADS * N; x++)
        CHECK_NEAR((double)cell(off, x / N, x % N, 4), 0, 1e-6);
    for (int64_t x = 0; x < HEADS * N; x++)
        for (int64_t j = 0; j < N; j++)
            CHECK_NEAR((double)cell(view_of(replay, "tile", 4, "weights_so_far"), x / N, x % N, j),
                       (double)cell(run_view(run, weighed), x / N, x % N, j), 1e-5);
    result_release(result);
}

static void check_tiles(const char *text, bool causal)
{
    check_tiles_of(text, causal, "connectivity", "weights");
}

TEST(tiles_are_an_online_softmax)
{
    check_tiles("full", false);
    check_tiles("full", true);
    check_tiles("window(window=9)", false);
    check_tiles("sparse-strided(stride=6)", true);
    check_tiles("pattern(expr='block(8) & !self')", true); /* row 0 sees nothing */
}

/* Of several softmaxes that are added, one is shown. */
TEST(tiles_are_of_one_of_several_softmaxes)
{
    check_tiles_of("nsa", true, "connectivity_slc", "weights_slc");
    check_tiles_of("nsa(topk=5,window=3)", false, "connectivity_slc", "weights_slc");
}

/* A key is held from its token to the last query that reads it, and no longer. */
static void check_held(const char *text)
{
    Result     *result = run_of(text, true);
    const Run  *replay = result_replay(result);
    const View *cells = run_view(result->run, "connectivity");

    assert_non_null(replay);
    for (int64_t step = 0; step < 32; step++) {
        const View *held = view_of(replay, "token", step, "held");
        int64_t     token = (step + 1) * N / 32 - 1;
        double      sum = 0, planes = view_shared(cells) ? 1 : HEADS;

        assert_non_null(held);
        for (int64_t head = 0; head < (int64_t)planes; head++)
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < N; j++) {
                    bool needed = false;
                    int  want;

                    for (int64_t later = i; later < N; later++)
                        needed = needed || cell(cells, head, later, j) > 0;
                    want = i > token || j > i             ? 0
                           : i == j                       ? 4
                           : cell(cells, head, i, j) > 0  ? 1
                           : needed                       ? 2
                                                          : 0;
                    CHECK((int)cell(held, head, i, j) == want, "%s: token %d, cell (%d, %d): %d, "
                          "wanted %d", text, (int)token, (int)i, (int)j,
                          (int)cell(held, head, i, j), want);
                    sum += i == token && j <= i && needed;
                }
        CHECK_NEAR(trace_of(replay, "token", step, "keys held"), sum / planes, 1e-12);
    }
    result_release(result);
}

TEST(what_is_held_is_what_is_read_again)
{
    check_held("full");
    check_held("window(window=9)");
    check_held("sparse-strided(stride=6)");
    check_held("logsparse");
    check_held("random(r=3)");
}

/* The state after the last token is the run's own memory. */
TEST(states_grow_into_the_memory)
{
    static const char *const words[] = { "linear", "linear(feature_map=efficient)",
                                         "performer(features=16)", "rfa(features=8)" };

    for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
        Result     *result = run_of(words[w], true);
        const Run  *replay = result_replay(result);
        const View *memory = run_view(result->run, "memory"), *last;

        assert_non_null(replay);
        last = view_of(replay, "state", 31, "state");
        assert_non_null(last);
        assert_null(view_of(replay, "state", 32, "state"));
        for (int64_t p = 0; p < HEADS; p++)
            for (int64_t i = 0; i < view_rows(memory); i++)
                for (int64_t j = 0; j < view_cols(memory); j++)
                    CHECK_NEAR((double)cell(last, p, i, j), (double)cell(memory, p, i, j),
                               1e-5 * (1 + fabs((double)cell(memory, p, i, j))));
        result_release(result);
    }
}

static double figure_of(const Run *run, const char *name)
{
    for (int i = 0; i < run->figure_count; i++)
        if (!strcmp(run->figures[i].name, name))
            return run->figures[i].value;
    return (double)NAN;
}

/* With all directions the approximation is the run's own, and so are its errors. */
static void check_growth(const char *text, bool causal)
{
    Result     *result = run_of(text, causal);
    const Run  *run = result->run, *replay = result_replay(result);
    const View *weights = run_view(run, "weights"), *last;
    double      first, end;

    assert_non_null(replay);
    last = view_of(replay, "growing", 7, "approximation"); /* 1, 2, 4, ... 64, 96 */
    assert_non_null(last);
    for (int64_t x = 0; x < HEADS * N; x++)
        for (int64_t j = 0; j < N; j++)
            CHECK_NEAR((double)cell(last, x / N, x % N, j), (double)cell(weights, x / N, x % N, j),
                       1e-5);
    /* the run's output is in float */
    CHECK_NEAR(trace_of(replay, "growing", 7, "output off"), figure_of(run, "output_error"), 1e-5);
    CHECK_NEAR(trace_of(replay, "growing", 7, "weights off"), figure_of(run, "total_variation"),
               1e-5);
    first = trace_of(replay, "growing", 0, "weights off");
    end = trace_of(replay, "growing", 7, "weights off");
    CHECK(end < first, "%s: %g with all directions, %g with one", text, end, first);
    result_release(result);
}

TEST(features_grow_into_the_run)
{
    check_growth("performer(features=96)", false);
    check_growth("performer(features=96)", true);
    check_growth("performer(features=96,kernel=hyperbolic)", false);
    check_growth("performer(features=96,kernel=trig)", false);
}

/* A kernel that worked otherwise has no replay. */
TEST(some_runs_have_no_replay)
{
    Result *result;
    Step    step;
    double  value;

    result = run_of("reformer(block=8)", false);
    assert_null(result_replay(result));
    result_release(result);
    result = run_of("linear", false); /* no decoding, and no random features */
    assert_null(result_replay(result));
    assert_true(replay_wants_causal(result->run));
    result_release(result);
    result = run_of("performer(kernel=relu)", false);
    assert_null(result_replay(result));
    result_release(result);
    result = run_of("full", false); /* tiles only */
    assert_int_equal(result_steps(result), 1 + 5);
    assert_true(result_step(result, 5, &step));
    assert_string_equal(step.stage->name, "tile");
    assert_int_equal(step.row, N - 1);
    assert_string_equal(step_watched(&step, 0, &value)->name, "running_max");
    assert_non_null(step.note);
    result_release(result);
}

/* The run, its record and its FLOPs know nothing of the replay; names find its views. */
TEST(a_replay_is_beside_the_run)
{
    Result     *result = run_of("full", true);
    Error       err = ERROR_INIT;
    int         stages = result->run->stage_count, views = result->run->view_count;
    double      flops = flops_total(run_flops(result->run));
    const View *view;

    assert_null(result->replay); /* nobody asked */
    assert_int_equal(result_steps(result), 1 + 5 + 32);
    assert_int_equal(result->run->stage_count, stages);
    assert_int_equal(result->run->view_count, views);
    assert_true(flops_total(run_flops(result->run)) == flops);
    view = result_derived(result, "running_sum", &err);
    assert_ptr_equal(view, run_view(result->replay, "running_sum"));
    assert_non_null(result_derived(result, "held_bytes", &err));
    assert_null(result_derived(result, "no_such_view", &err));
    result_release(result);
}

/* Of the running numbers the columns are the tiles; every view reads any piece of its rows. */
TEST(views_of_a_replay_are_read_in_pieces)
{
    static const char *const words[] = { "full", "linear", "performer(features=16)" };
    int                      tiles = 0;

    for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
        Result    *result = run_of(words[w], true);
        const Run *replay = result_replay(result);

        assert_non_null(replay);
        for (int v = 0; v < replay->view_count; v++) {
            const View *view = &replay->views[v];

            view_fixture_check(view);
            if (!strcmp(view->name, "running_max") || !strcmp(view->name, "running_sum")) {
                assert_string_equal(view->cols, "tile");
                tiles++;
            }
        }
        result_release(result);
    }
    assert_true(tiles >= 2);
}

SUITE(open_session, session_close)
