/* test_app.c -- calls, requests, the worker. */
#include <time.h>

#include "app/call.h"
#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/figure/plan.h"
#include "app/session/internal.h"
#include "attn/run/position.h"
#include "session_fixture.h"

TEST(options_are_read_in_every_spelling)
{
    const char *words[] = { "compare", "-n4", "full", "--seed=7", "-p", "window=3", "-p=global=2",
                            "--causal", "--", "-n" };
    Call        call;
    Error       err = ERROR_INIT;

    CHECK(call_parse(&call, words, 10, &err), "%s", err.text);
    assert_string_equal(call.values[OPT_N], "4");
    assert_string_equal(call.values[OPT_SEED], "7");
    assert_string_equal(call.values[OPT_CAUSAL], "");
    assert_int_equal(call.param_count, 2);
    assert_string_equal(call.params[1], "global=2");
    assert_int_equal(call.word_count, 2);
    assert_string_equal(call.words[1], "-n");
}

static const struct {
    const char *word, *mechanism, *view;
    int         head;
    const char *minus, *minus_view;
} panel_words[] = {
    { "full", "full", "", -1, NULL, "" },
    { "full:weights", "full", "weights", -1, NULL, "" },
    { "full@3", "full", "", 3, NULL, "" },
    { "bigbird(random_blocks=@a:b.npy):weights@2", "bigbird(random_blocks=@a:b.npy)", "weights", 2,
      NULL, "" },
    { "pattern(window(5) - self):connectivity", "pattern(window(5) - self)", "connectivity", -1,
      NULL, "" },
    { "bigbird:weights@1 - full(scale=1):weights", "bigbird", "weights", 1, "full(scale=1)",
      "weights" },
    { "bigbird - full", "bigbird", "", -1, "full", "" },
    { "pattern(expr=\"a) - b\"):w - full", "pattern(expr=\"a) - b\")", "w", -1, "full", "" },
};

TEST(a_panel_is_one_word)
{
    static const char *const bad[] = { "", ":weights", "full:", "full@", "full@x", "full@-1",
                                       "full - bigbird@1", "a - b - c", "full - ",
                                       "full:weights-bigbird:weights", "full:weights:output",
                                       "full@0@1" };

    for (size_t i = 0; i < sizeof(panel_words) / sizeof(*panel_words); i++) {
        PanelWord word;
        Error     err = ERROR_INIT;

        CHECK(panel_word_parse(panel_words[i].word, &word, &err), "%s", err.text);
        assert_string_equal(word.mechanism, panel_words[i].mechanism);
        assert_string_equal(word.spec.view, panel_words[i].view);
        assert_int_equal(word.spec.head, panel_words[i].head);
        assert_int_equal(word.minus != NULL, panel_words[i].minus != NULL);
        if (word.minus) {
            assert_string_equal(word.minus, panel_words[i].minus);
            assert_string_equal(word.spec.minus_view, panel_words[i].minus_view);
        }
        panel_word_free(&word);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        PanelWord word;
        Error     err = ERROR_INIT;

        CHECK(!panel_word_parse(bad[i], &word, &err), "'%s' was taken", bad[i]);
        assert_int_equal(err.code, ERR_USAGE);
    }
}

static const struct {
    const char *line, *says;
} slips[] = {
    { "rnu full", "nearest is 'run'" }, { "list full", "takes 0 words" },
    { "run full --sede 3", "did you mean --seed" },
    { "run full --seed", "needs a value" }, { "run full --causal=1", "takes no value" },
    { "run full -z", "no option '-z'" }, { "figure full --dump x", "no option '--dump'" },
    { "run 'full", "quote is not closed" },
};

TEST(slips_are_told)
{
    for (size_t i = 0; i < sizeof(slips) / sizeof(*slips); i++) {
        const char *words[CALL_MAX_WORDS];
        Text        storage = { 0 };
        Error       err = ERROR_INIT;
        Call        call;
        int         count;

        assert_false(call_split(slips[i].line, words, CALL_MAX_WORDS, &count, &storage, &err) &&
                     call_parse(&call, words, count, &err));
        assert_int_equal(err.code, ERR_USAGE);
        CHECK(strstr(err.text, slips[i].says), "'%s' says: %s", slips[i].line, err.text);
        text_free(&storage);
    }
}

TEST(lines_split_like_a_shell)
{
    const char *words[8];
    Text        storage = { 0 };
    Error       err = ERROR_INIT;
    int         count;

    assert_true(call_split("  a 'b c'  \"d 'e'\" f\\ g ''", words, 8, &count, &storage, &err));
    assert_int_equal(count, 5);
    assert_string_equal(words[1], "b c");
    assert_string_equal(words[2], "d 'e'");
    assert_string_equal(words[3], "f g");
    assert_string_equal(words[4], "");
    text_free(&storage);
}

TEST(requests_survive_the_way_to_text_and_back)
{
    static const char *const texts[] = {
        "full", "bigbird(window=5,global=2)", "pattern(expr=\"tile(2,window(3))\")",
    };
    Session *s = session_on("synthetic:normal(n=8,d=4)");

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        Request r = REQUEST_INIT;
        Error   err = ERROR_INIT;
        Text    text = { 0 };

        CHECK(request_parse(s, &r, texts[i], &err), "%s", err.text);
        request_text(&r, &text);
        assert_string_equal(text_str(&text), texts[i]);
        text_free(&text);
        request_free(&r);
    }
    session_free(s);
}

TEST(a_bare_expression_is_the_text_parameter)
{
    Session *s = session_on("synthetic:normal(n=8,d=4)");
    Request  r = REQUEST_INIT;
    Error    err = ERROR_INIT;

    CHECK(request_parse(s, &r, "pattern(window(w=5)+global(2))", &err), "%s", err.text);
    assert_string_equal(assignments_find(&r.given, "expr")->text, "window(w=5)+global(2)");
    request_free(&r);
    session_free(s);
}

/* R timed runs: the width of the interval asks for more only where --within does. */
TEST(repeat_is_the_number_of_timed_runs)
{
    Session *s = session_on("synthetic:normal(n=16)");
    Request  request = REQUEST_INIT;
    Result  *result;

    request.measure = true;
    request.repeat = 3;
    setenv("ATTNSCOPE_TIMED_SECONDS", "0", 1);
    result = result_as(s, request, "full");
    unsetenv("ATTNSCOPE_TIMED_SECONDS");
    assert_int_equal(result->record.time.count, 3);
    result_release(result);
    session_free(s);
}

TEST(a_repeat_of_one_is_as_none)
{
    static const double ms[] = { 1, 1000 };

    for (int i = 0; i < 2; i++) {
        Request     one = REQUEST_INIT, none = REQUEST_INIT;
        MeasurePlan a, b;

        one.repeat = 1;
        a = request_plan(&one, ms[i]);
        b = request_plan(&none, ms[i]);
        assert_int_equal(a.repeats, b.repeats);
        assert_int_equal(a.most, b.most);
        CHECK_NEAR(a.min_seconds, b.min_seconds, 0);
    }
    assert_int_equal(request_plan(&(Request){ .repeat = 1 }, 1000).repeats, 0);
    assert_true(request_plan(&(Request){ .repeat = 1 }, 1000).max_seconds > 2); /* room for it */
    CHECK_NEAR(request_plan(&(Request){ .repeat = 9, .width = 0.5 }, 1).width, 0.5, 0);
}

TEST(the_command_repeats_the_request)
{
    Session *s = session_on("synthetic:normal(n=8,d=4)");
    Request  r = REQUEST_INIT;
    Error    err = ERROR_INIT;
    Text     text = { 0 };

    assert_true(request_parse(s, &r, "bigbird(window=5)", &err));
    r.causal = 1;
    r.seed = 3;
    request_command(s, &r, "run", &text);
    assert_string_equal(text_str(&text), "attnscope run 'bigbird(window=5)' --input "
                        "'synthetic:normal(n=8,d=4)' --causal --seed 3");
    text_free(&text);
    request_free(&r);
    session_free(s);
}

/* Draws a command line on the session's input; `made` keeps the call. */
static void draw(Session *s, const char *line, PresetCall *made, FigureRun *drawing)
{
    Error err = ERROR_INIT;

    CHECK(preset_expand(line, made, &err), "%s: %s", line, err.text);
    CHECK(figure_run_make(s, &made->call, false, drawing, &err), "%s: %s", line, err.text);
}

TEST(a_position_is_shown_by_what_it_does)
{
    Session *s = session_on("synthetic:normal(n=24,d=8,heads=2)");

    for (size_t k = 0; position_at(k); k++) {
        Text       line = { 0 };
        PresetCall made;
        FigureRun   *d = calloc(1, sizeof(*d));

        text_addf(&line, "figure full bigbird --position %s --position-effect", position_at(k)->id);
        draw(s, text_str(&line), &made, d);
        assert_true(d->count >= 8 && d->count % 2 == 0);
        for (int row = 0; row < 2; row++) {
            const PanelChoice *p = &d->panels[row * d->count / 2];

            assert_ptr_equal(p[0].result->run->spec.position, NULL);
            assert_ptr_equal(p[1].result->run->spec.position, position_at(k));
            assert_ptr_equal(p[2].result, p[1].result); /* run once */
            assert_ptr_equal(p[2].minus, p[0].result);
            assert_ptr_equal(p[3].result, p[1].result);
            assert_string_equal(p[3].spec.view, "position_bias");
            assert_non_null(strstr(p[3].title, position_at(k)->name));
        }
        figure_run_free(d);
        free(d);
        preset_call_free(&made);
        text_free(&line);
    }
    session_free(s);
}

TEST(the_effect_drops_what_is_of_the_position)
{
    Session   *s = session_on("synthetic:normal(n=24,d=8,heads=2)");
    FigureRun   *d = calloc(1, sizeof(*d));
    PresetCall made;

    draw(s, "figure 'full(position=t5,pos_buckets=8,pos_max_distance=16)' --position-effect", &made,
         d);
    assert_int_equal(d->count, 5);
    assert_int_equal(d->results[0]->request.given.count, 0);
    assert_int_equal(d->results[1]->request.given.count, 2);
    assert_string_equal(d->panels[4].spec.view, "position_buckets");
    figure_run_free(d);
    free(d);
    preset_call_free(&made);
    session_free(s);
}

TEST(a_preset_is_a_command_that_can_be_changed)
{
    static const struct {
        const char *line, *holds, *lacks;
    } changes[] = {
        { "figure --preset slides-alibi -o x.png", "-n 12", "--preset" },
        { "figure --preset=slides-alibi -n 30", "-n 30", "-n 12" },
        { "figure --preset slides-alibi --no-causal --title Mine", "--title Mine", "--causal" },
        { "attnscope figure --theme dark --preset slides-alibi", "--theme dark", "attnscope" },
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        const char *line = changes[i].line + (strncmp(changes[i].line, "attnscope ", 10) ? 0 : 10);
        PresetCall  made;
        Error       err = ERROR_INIT;

        CHECK(preset_expand(line, &made, &err), "%s", err.text);
        assert_int_equal(made.call.word_count, 4);
        CHECK(strstr(made.call.line, changes[i].holds), "%s", made.call.line);
        CHECK(!strstr(made.call.line, changes[i].lacks) || !strcmp(changes[i].lacks, "--causal"),
              "%s", made.call.line);
        assert_true(!made.call.values[OPT_CAUSAL] || !made.call.values[OPT_NOCAUSAL]);
        preset_call_free(&made);
    }
}

TEST(jobs_give_what_runs_give)
{
    Session *s = session_on("synthetic:normal(n=64,d=8,heads=2)");
    Request  r = REQUEST_INIT;
    Error    err = ERROR_INIT;
    Result  *now, *later;
    Job     *job;

    assert_true(request_parse(s, &r, "bigbird", &err));
    now = session_run(s, &r, &err);
    job = session_submit(s, &r, &err);
    job_wait(job);
    assert_int_equal(job_state(job), JOB_DONE);
    later = job_result(job);
    job_free(job);
    assert_memory_equal(now->run->out.data, later->run->out.data, tensor_bytes(&now->run->out));
    result_release(now);
    result_release(later);
    request_free(&r);
    session_free(s);
}

TEST(a_result_outlives_its_input)
{
    Session *s = session_on("synthetic:normal(n=32,d=8)");
    Request  r = REQUEST_INIT;
    Error    err = ERROR_INIT;
    Result  *result;
    float    row[32];

    assert_true(request_parse(s, &r, "full", &err));
    result = session_run(s, &r, &err);
    assert_true(session_load(s, "synthetic:normal(n=16,d=8)", NULL, &err));
    view_read(run_view(result->run, "weights"), 0, 31, 0, 32, 1, row);
    assert_int_equal(result->input->n, 32);
    result_release(result);
    request_free(&r);
    session_free(s);
}

static bool wait_for_cancel(void *context, const atomic_bool *cancel, Error *err)
{
    struct timespec nap = { .tv_nsec = 1000000 };

    (void)context;
    while (!atomic_load(cancel))
        nanosleep(&nap, NULL);
    return error_set(err, ERR_CANCELLED, "interrupted");
}

TEST(jobs_can_be_cancelled_waiting_or_running)
{
    Session *s = session_on("synthetic:normal(n=2048,d=64)");
    Request  r = REQUEST_INIT;
    Error    err = ERROR_INIT;
    Job     *work = session_submit_work(s, wait_for_cancel, NULL, &err), *run;

    assert_true(request_parse(s, &r, "full", &err));
    run = session_submit(s, &r, &err);
    assert_true(session_busy(s));
    job_free(run); /* waiting behind the work */
    job_cancel(work);
    job_wait(work);
    assert_int_equal(job_state(work), JOB_CANCELLED);
    job_free(work);
    run = session_submit(s, &r, &err);
    job_free(run); /* perhaps running: the worker lets it go */
    request_free(&r);
    session_free(s);
}

/* Short inputs run with the parameters given there, long ones without. */
TEST(a_sketch_is_for_few_tokens)
{
    static const char *const inputs[] = { "synthetic:normal(n=96,d=16)",
                                          "synthetic:normal(n=300,d=16)" };
    int                      sketches = 0;

    for (int few = 1; few >= 0; few--) {
        Session         *s = session_on(inputs[!few]);
        const Mechanism *m;

        for (size_t i = 0; (m = mechanism_at(i)); i++) {
            Request request = REQUEST_INIT;
            Error   err = ERROR_INIT;
            Result *result;

            if (!m->sketch)
                continue;
            sketches++;
            CHECK(request_first_look(s, &request, m, &err), "%s: %s", m->id, err.text);
            assert_int_equal(request.given.count > 0, few || m->example);
            result = session_run(s, &request, &err);
            CHECK(result && result->run->err.code == ERR_NONE, "%s does not run", m->id);
            result_release(result);
            request_free(&request);
        }
        session_free(s);
    }
    assert_true(sketches >= 2);
}

SUITE(NULL, NULL)
