/* test_app_curves.c -- spectra and traces as views of a result; several in one plot. */

#include "app/call.h"
#include "app/figure/picture.h"
#include "app/result/steps.h"
#include "app/result/views.h"
#include "session_fixture.h"

static const View *derived(Result *result, const char *name)
{
    Error       err = ERROR_INIT;
    const View *view = result_view(result, name, &err);

    CHECK(view, "%s: %s", name, err.text);
    CHECK(view_is_derived(result, view), "%s", name);
    assert_ptr_equal(view, result_view(result, name, &err));
    return view;
}

static float value_at(const View *view, int64_t plane, int64_t row, int64_t col)
{
    float value;

    view_read(view, plane, row, col, 1, 1, &value);
    return value;
}

/* All values of a small matrix are there, so the last share is 1. */
TEST(shares_are_of_the_squares)
{
    Session    *s = session_on("synthetic:normal(n=24,d=8,heads=2)");
    Result     *result = result_of(s, "full");
    const View *view = derived(result, "spectrum");

    for (int64_t plane = 0; plane < 2; plane++) {
        double all = 0, sum = 0;

        for (int64_t i = 0; i < view_rows(view); i++)
            all += pow((double)value_at(view, plane, i, 0), 2);
        for (int64_t i = 0; i < view_rows(view); i++) {
            sum += pow((double)value_at(view, plane, i, 0), 2);
            CHECK_NEAR((double)value_at(view, plane, i, 1), sum / all, 1e-6);
        }
        assert_true(value_at(view, plane, 0, 1) < 0.99f);
    }
    result_release(result);
    session_free(s);
}

TEST(ranks_show_in_spectra)
{
    static const struct {
        const char *text;
        int64_t     rank;
    } cases[] = {
        { "linformer(k=5)", 5 },
        { "performer(features=7)", 7 },
        { "nystrom(n_landmarks=6)", 6 },
        { "linear", 8 },
    };
    Session *s = session_on("synthetic:normal(n=24,d=8,heads=2)");

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Result     *result = result_of(s, cases[i].text);
        const View *view = derived(result, "spectrum");
        int64_t     rank = cases[i].rank;

        CHECK(view->guide_count == 1 && view->guides[0].at == (double)rank, "%s: rank %g",
              cases[i].text, view->guide_count ? view->guides[0].at : 0);
        for (int64_t h = 0; h < 2; h++) { /* beyond the rank: what floats make of 0 */
            CHECK(value_at(view, h, rank, 0) < 1e-5f * value_at(view, h, 0, 0), "%s: %g",
                  cases[i].text, (double)value_at(view, h, rank, 0));
            CHECK(value_at(view, h, rank - 1, 0) > 1e-5f * value_at(view, h, 0, 0), "%s",
                  cases[i].text);
            CHECK(fabs((double)value_at(view, h, 23, 1) - 1) < 1e-6, "%s: all squares",
                  cases[i].text);
        }
        result_release(result);
    }
    session_free(s);
}

TEST(large_spectra_are_randomised_and_say_so)
{
    Session *s = session_on("synthetic:normal(n=2100,d=4)");
    Result  *result = result_of(s, "window(window=3)");
    Panel    panel;
    Error    err = ERROR_INIT;

    CHECK(picture_panel(result, "spectrum", 0, &panel, &err), "%s", err.text);
    assert_true(panel.plot);
    assert_int_equal(view_rows(panel.view), 128);
    CHECK(strstr(panel.title, "randomised, rank 128, seed 0"), "%s", panel.title);
    /* rows sum to 1, so 1 is a singular value's lower bound for the largest */
    CHECK(value_at(panel.view, 0, 0, 0) >= 0.99f && value_at(panel.view, 0, 0, 0) < 1.5f, "%g",
          (double)value_at(panel.view, 0, 0, 0));
    result_release(result);
    session_free(s);
}

TEST(traces_are_curves)
{
    Session    *s = session_on("synthetic:normal(n=32,d=8)");
    Result     *result = result_of(s, "sinkhorn(block=4,sinkhorn_iters=6)");
    const View *both = derived(result, "trace"), *one = derived(result, "row_error");
    Step        step;
    Plot       *plot;

    assert_int_equal(view_rows(both), 6);
    assert_int_equal(view_cols(both), 2);
    assert_int_equal(view_cols(one), 1);
    CHECK(value_at(one, 0, 0, 0) == value_at(both, 0, 0, 0), "the same numbers");
    CHECK(value_at(one, 0, 5, 0) < value_at(one, 0, 0, 0), "it converges");
    for (int i = 0; i < result_steps(result); i++) {
        result_step(result, i, &step);
        plot = step_plot(&step);
        CHECK((plot != NULL) == (step.stage->iteration >= 1 && step.stage->iteration < 6),
              "step %d", i);
        CHECK(!plot || plot->series[0].count == step.stage->iteration + 1, "step %d", i);
        plot_free(plot);
    }
    result_release(result);
    session_free(s);
}

/* Numbers of one stage count its iterations; of several, the steps of the run. */
TEST(traces_of_several_stages_are_over_steps)
{
    Session *s = session_on("synthetic:normal(n=16,d=8)");
    Result  *one = result_of(s, "sinkhorn(block=4,sinkhorn_iters=3)");
    Result  *several = result_of(s, "reversible(layers=2)");

    assert_string_equal(derived(one, "trace")->rows, "iteration");
    assert_string_equal(derived(several, "trace")->rows, "step");
    result_release(one);
    result_release(several);
    session_free(s);
}

/* The figure of a command line. */
static bool text_of(Session *s, const char *const *words, int count, Text *out,
                    Error *err)
{
    return command_run(s, words, count, READER_FILE, 80, out, err);
}

TEST(words_join_curves)
{
    const char *words[] = { "figure", "linformer(k=5):spectrum + full:spectrum",
                            "linformer:spectrum", "--input", "synthetic:normal(n=24,d=8)" };
    const char *matrix[] = { "figure", "full + full:spectrum", "--input",
                             "synthetic:normal(n=24,d=8)" };
    Session *s = session_on("synthetic:normal(n=24,d=8)");
    Text     text = { 0 };
    Error    err = ERROR_INIT;

    CHECK(text_of(s, words, 5, &text, &err), "%s", err.text);
    CHECK(strstr(text_str(&text), "(b)") && !strstr(text_str(&text), "(c)"), "%s",
          text_str(&text));
    CHECK(strstr(text_str(&text), "rank 5 (k)") || strstr(text_str(&text), "full"), "%s",
          text_str(&text));
    assert_false(text_of(s, matrix, 4, &text, &err));
    CHECK(strstr(err.text, "only curves share a plot"), "%s", err.text);
    text_free(&text);
    session_free(s);
}

TEST(unknown_names_list_what_there_is)
{
    Session *s = session_on("synthetic:normal(n=12,d=4)");
    Result  *result = result_of(s, "full");
    Error    err = ERROR_INIT;

    assert_null(result_view(result, "nothing", &err));
    CHECK(strstr(err.text, "spectrum"), "%s", err.text);
    assert_null(result_view(result, "spectrum(nothing)", &err));
    CHECK(strstr(err.text, "no matrix 'nothing'"), "%s", err.text);
    assert_null(result_view(result, "trace", &err));
    derived(result, "spectrum(connectivity)");
    result_release(result);
    session_free(s);
}

SUITE(NULL, NULL)
