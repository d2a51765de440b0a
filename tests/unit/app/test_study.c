/* test_study.c -- one parameter at several values: points, plots, what reaches a goal. */

#include "app/study/study.h"
#include "session_fixture.h"

static void add(Session *s, Study *study, const char *text, int seeds)
{
    Request request = REQUEST_INIT;
    Error   err = ERROR_INIT;

    CHECK(request_parse(s, &request, text, &err), "%s", err.text);
    request.seeds = seeds;
    CHECK(study_add(study, &request, &err), "%s", err.text);
    request_free(&request);
}

static void run(Session *s, Study *study, const char *range, const char *a, const char *b,
                int seeds)
{
    Request exact = REQUEST_INIT;
    Error   err = ERROR_INIT;

    CHECK(study_open(study, range, &exact, &err), "%s", err.text);
    add(s, study, a, seeds);
    if (b)
        add(s, study, b, seeds);
    CHECK(study_run(study, s, &err), "%s", err.text);
}

static double value(const Study *study, int line, int point, StudyQuantity q)
{
    const StudyPoint *p = study_at(study, line, point);

    CHECK(!p->problem[0], "%s", p->problem);
    return p->value[q].valid ? p->value[q].value : (double)NAN;
}

/* A stop flag that is set while the second line's first point is run. */
static void stop_at_reformer(void *stop, const char *text)
{
    if (strstr(text, "reformer"))
        atomic_store((atomic_bool *)stop, true);
}

TEST(a_stopped_study_ends_with_an_error)
{
    Session    *s = session_on("synthetic:normal(n=48,d=8,seed=3)");
    atomic_bool stop = false;
    Request     exact = REQUEST_INIT;
    Error       err = ERROR_INIT, again = ERROR_INIT;
    Study       study;

    assert_true(study_open(&study, "rounds=1,2,3", &exact, &err));
    add(s, &study, "reformer", 0);
    session_on_stop(s, &stop, NULL);
    session_on_progress(s, stop_at_reformer, &stop);
    assert_false(study_run(&study, s, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    assert_true(request_parse(s, &exact, "full", &again));
    assert_null(session_run(s, &exact, &again));
    assert_int_equal(again.code, ERR_CANCELLED);
    request_free(&exact);
    study_free(&study);
    session_free(s);
}

TEST(points_have_their_numbers)
{
    Session *s = session_on("synthetic:normal(n=48,d=8,seed=3)");
    Study    study;
    int      all, order[AXIS_MOST];

    run(s, &study, "window=33,1,9", "window", "linformer(k=8)", 0);
    assert_int_equal(study.count, 3); /* exact attention is the first line */
    assert_true(study.lines[0].baseline && study.lines[2].fixed && !study.lines[1].fixed);
    assert_int_equal(study_done(&study, &all), 1 + 3 + 1);
    assert_int_equal(all, 1 + 3 + 1);
    study_order(&study, order);
    assert_true(order[0] == 1 && order[1] == 2 && order[2] == 0);
    for (int i = 0; i < 2; i++) {
        assert_true(value(&study, 1, order[i], STUDY_ERROR) >
                    value(&study, 1, order[i + 1], STUDY_ERROR));
        assert_true(value(&study, 1, order[i], STUDY_MASS) <
                    value(&study, 1, order[i + 1], STUDY_MASS));
        assert_true(value(&study, 1, order[i], STUDY_FLOPS) <
                    value(&study, 1, order[i + 1], STUDY_FLOPS));
    }
    assert_true(isnan(value(&study, 1, 0, STUDY_TIME))); /* nothing was measured */
    assert_true(isnan(value(&study, 0, 0, STUDY_ERROR)));
    assert_true(value(&study, 2, 0, STUDY_ERROR) > 0);
    study_free(&study);
    session_free(s);
}

TEST(goals_are_reached_or_not)
{
    static const struct {
        const char *goal, *answer;
        int         at;
    } cases[] = {
        { "100%", "window=95 is the smallest of 4 that keeps 100 % of the mass", 0 },
        { "0.2", "window=33 is the smallest of 4 that keeps 20 % of the mass (", 3 },
        { "error=1e-5", "window=95 is the smallest of 4 that has an error of at most 1e-05", 0 },
        { "error=0.0001%", "none of 4 values", -2 },
    };
    Session *s = session_on("synthetic:normal(n=48,d=8,seed=3)");
    Study    study;

    run(s, &study, "window=95,1,9,33", "window", NULL, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        StudyGoal goal;
        Error     err = ERROR_INIT;
        Text      text = { 0 };

        CHECK(goal_parse(cases[i].goal, &goal, &err), "%s", err.text);
        study_answer(&study, 1, &goal, &text);
        if (cases[i].at >= -1) {
            CHECK(strstr(text_str(&text), cases[i].answer), "%s", text_str(&text));
            assert_int_equal(study_smallest(&study, 1, &goal), cases[i].at);
        }
        text_free(&text);
    }
    study_free(&study);
    session_free(s);
}

TEST(values_between_close_in)
{
    Session  *s = session_on("synthetic:normal(n=48,d=8,seed=3)");
    StudyGoal goal = { STUDY_MASS, 0.5 };
    Study     study;
    Error     err = ERROR_INIT;
    int       at, runs = 0;

    run(s, &study, "window=1,95", "window", NULL, 0);
    for (; study_refine(&study, 1, &goal, &err); runs++)
        CHECK(study_run(&study, s, &err), "%s", err.text);
    CHECK(err.code == ERR_NONE && runs >= 5 && runs <= 8, "%d: %s", runs, err.text);
    at = study_smallest(&study, 1, &goal);
    assert_true(value(&study, 1, at, STUDY_MASS) >= 0.5);
    for (int i = 0; i < study.axis.count; i++) /* the one below does not reach it */
        if (study_x(&study, i) == study_x(&study, at) - 1)
            assert_true(value(&study, 1, i, STUDY_MASS) < 0.5);
    CHECK(strstr(study.range, "window=1,95,48,"), "%s", study.range);
    study_free(&study);
    session_free(s);
}

TEST(bad_goals_and_quantities_are_told)
{
    static const char *const goals[] = { "", "most", "0", "101%", "error=", "error=-1", "95%x" };
    static const char *const lists[] = { "", "speed", "error,", "error,error" };

    for (size_t i = 0; i < sizeof(goals) / sizeof(*goals); i++) {
        StudyGoal goal;
        Error     err = ERROR_INIT;

        CHECK(!goal_parse(goals[i], &goal, &err), "'%s'", goals[i]);
        assert_int_equal(err.code, ERR_USAGE);
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        StudyQuantity list[STUDY_QUANTITIES];
        Error         err = ERROR_INIT;
        int           count;

        CHECK(!quantities_parse(lists[i], list, &count, &err), "'%s'", lists[i]);
        assert_int_equal(err.code, ERR_USAGE);
    }
}

TEST(a_picture_has_what_was_found)
{
    Session      *s = session_on("synthetic:normal(n=24,d=8,seed=3)");
    StudyLook     look = { .quantities = { STUDY_ERROR, STUDY_FLOPS }, .count = 2, .now = 16,
                              .cursor = 2 };
    StudyPicture  picture;
    Study         study;
    Error         err = ERROR_INIT;
    Plot         *plot;
    Text          command = { 0 };

    run(s, &study, "features=8:32:x2", "performer", "nystrom(n_landmarks=8)", 3);
    CHECK(study_picture(&study, &look, &picture, &err), "%s", err.text);
    plot = panel_plot(&picture.figure->panels[0], &err);
    assert_int_equal(plot->count, 2);
    assert_true(plot->x.log && !plot->x.words);
    assert_int_equal(plot->x.name_count, 3);
    assert_true(plot->series[0].x[2] == 32);
    assert_true(plot->series[0].low[0] <= plot->series[0].y[0] &&
                plot->series[0].y[0] <= plot->series[0].high[0]);
    assert_true(isnan(plot->series[1].low[0])); /* nothing is drawn there */
    plot_free(plot);
    plot = panel_plot(&picture.figure->panels[1], &err);
    assert_int_equal(plot->guide_count, 3); /* exact attention, the present value, the cursor */
    assert_string_equal(plot->guides[0].name, "Full attention");
    plot_free(plot);
    CHECK(strstr(picture.figure->caption, "of 3 seeds"), "%s", picture.figure->caption);
    study_command(&study, s, &look, &command);
    CHECK(strstr(text_str(&command), "--vary features=8:32:x2 --plot error,flops --seeds 3"), "%s",
          text_str(&command));
    text_free(&command);
    study_picture_free(&picture);
    look = (StudyLook){ .quantities = { STUDY_MASS }, .count = 1, .now = (double)NAN,
                          .cursor = -1 };
    assert_false(study_picture(&study, &look, &picture, &err));
    CHECK(strstr(err.text, "no mass kept"), "%s", err.text);
    study_free(&study);
    session_free(s);
}

TEST(what_fails_is_left_out)
{
    Session     *s = session_on("synthetic:normal(n=24,d=8,seed=3)");
    StudyLook    look = { .quantities = { STUDY_ERROR }, .count = 1, .now = (double)NAN,
                          .cursor = -1 };
    StudyPicture picture;
    Study        study;
    Error        err = ERROR_INIT;
    Plot        *plot;

    run(s, &study, "kernel=relu,cosine,trig", "performer", NULL, 0);
    assert_true(study.words && study_at(&study, 1, 1)->problem[0]);
    CHECK(study_picture(&study, &look, &picture, &err), "%s", err.text);
    plot = panel_plot(&picture.figure->panels[0], &err);
    assert_true(plot->x.words && isnan(plot->series[0].y[1]) && plot->series[0].y[2] > 0);
    assert_string_equal(plot->x.names[1].text, "cosine");
    plot_free(plot);
    CHECK(strstr(picture.figure->caption, "left out: Performer at cosine ("), "%s",
          picture.figure->caption);
    study_picture_free(&picture);
    study_free(&study);
    session_free(s);
}

/* A mechanism that a plot lacks keeps its colour in the others, and a note says so. */
TEST(plots_of_a_study_agree_in_colours)
{
    Session     *s = session_on("synthetic:normal(n=24,d=8,seed=3)");
    StudyLook    look = { .quantities = { STUDY_ERROR, STUDY_MASS, STUDY_TIME }, .count = 3,
                          .now = (double)NAN, .cursor = -1 };
    StudyPicture picture;
    Study        study;
    Error        err = ERROR_INIT;
    Plot        *plot;

    run(s, &study, "window=3,9", "linear", "window", 0);
    CHECK(study_picture(&study, &look, &picture, &err), "%s", err.text);
    assert_int_equal(picture.figure->count, 2);
    plot = panel_plot(&picture.figure->panels[1], &err);
    assert_int_equal(plot->count, 1);
    assert_int_equal(plot->series[0].hue, 1);
    plot_free(plot);
    assert_string_equal(picture.figure->panels[1].caption,
                        "no curve: Linear Transformer (nothing is left out by choice)");
    CHECK(strstr(picture.figure->caption, "no plot of time (ms): not measured"), "%s",
          picture.figure->caption);
    study_picture_free(&picture);
    study_free(&study);
    session_free(s);
}

TEST(warnings_of_runs_are_signed)
{
    Session     *s = session_on("synthetic:normal(n=24,d=8,seed=3)");
    StudyLook    look = { .quantities = { STUDY_ERROR }, .count = 1, .now = (double)NAN,
                          .cursor = -1, .caption = "Mine" };
    StudyPicture picture;
    Study        study;
    Error        err = ERROR_INIT;
    Plot        *plot;

    run(s, &study, "k=32,48,64", "linformer", "linear", 0);
    CHECK(study_picture(&study, &look, &picture, &err), "%s", err.text);
    plot = panel_plot(&picture.figure->panels[0], &err);
    assert_string_equal(plot->series[0].name, "\xe2\x80\xa0 Linformer");
    assert_string_equal(plot->series[1].name, "Linear Transformer (fixed)");
    plot_free(plot);
    CHECK(strstr(picture.figure->caption, "Mine; \xe2\x80\xa0 Linformer: k = N is more than"), "%s",
          picture.figure->caption);
    study_picture_free(&picture);
    look.unsigned_names = true;
    CHECK(study_picture(&study, &look, &picture, &err), "%s", err.text);
    assert_string_equal(picture.figure->caption, "Mine");
    study_picture_free(&picture);
    study_free(&study);
    session_free(s);
}

TEST(nobody_has_the_parameter)
{
    Session *s = session_on("synthetic:normal(n=8,d=4)");
    Request  exact = REQUEST_INIT;
    Study    study;
    Error    err = ERROR_INIT;

    assert_true(study_open(&study, "features=1:2", &exact, &err));
    add(s, &study, "linear", 0);
    assert_false(study_run(&study, s, &err));
    assert_int_equal(err.code, ERR_PARAM);
    study_free(&study);
    session_free(s);
}

SUITE(NULL, NULL)
