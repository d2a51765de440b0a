/* test_lesson.c -- lessons: reading, refusals, answers; stored progress and damage to it. */
#include <sys/stat.h>
#include <unistd.h>

#include "app/lesson/lesson.h"
#include "check.h"
#include "profile/measure.h"
#include "script/script.h"
#include "ui/shell/ui.h"

static Session     *session;
static LessonReader reader; /* as main makes it */

static int open_session(void **state)
{
    Error err = ERROR_INIT;

    (void)state;
    setenv("XDG_DATA_HOME", "/nowhere", 1); /* the program's own lessons only */
    setenv("XDG_DATA_DIRS", "/nowhere", 1);
    session = session_new(&err);
    reader = script_lessons;
    reader.knows_key = ui_knows_key;
    if (session)
        session_on_lessons(session, &reader);
    return session ? 0 : 1;
}

static int close_session(void **state)
{
    (void)state;
    session_free(session);
    return 0;
}

static Lesson *read_text(const char *text, Error *err)
{
    LessonFile file = { .id = "try", .bytes = (const unsigned char *)text, .size = strlen(text) };

    return lesson_open(session, &file, err);
}

/* ---- reading --------------------------------------------------------------- */

#define HEAD "return { title = 't', summary = 's', steps = { { title = 'a', text = 'x', "
#define SHOW "show = { 'full:weights', n = 8, d = 4 }, "
#define TASK                                                                                   \
    "show = { 'window:weights', n = 8, d = 4 }, "                                              \
    "done = function(s) return s[1].params.window == 5 end, "                                  \
    "solution = { 'window(window=5):weights', n = 8, d = 4 }, "
#define TAIL "} } }"

TEST(what_is_wrong_is_said_with_its_place)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "return 3", "must end with" },
        { "return {", "try:1:" },
        { "local x = nil + 1", "try:1:" },
        { "return { title = 't' }", "summary: it is missing" },
        { "return { title = 't', summary = 's', steps = {} }", "steps: there is none" },
        { HEAD TAIL, "step 1: show: the first step must show" },
        { HEAD "show = { n = 8 }" TAIL, "step 1: show: it names no mechanism" },
        { HEAD "show = { '--n=8' }" TAIL, "step 1: show: '--n=8': an option is written as" },
        { HEAD "show = { 'full', output = 'x.png' }" TAIL, "output: a lesson has no such" },
        { HEAD SHOW "hnt = 'x'" TAIL, "no field 'hnt'; did you mean 'hint'" },
        { HEAD SHOW "task = 'do'" TAIL, "step 1: done: a task and the function" },
        { HEAD SHOW "task = 'do', done = function() end" TAIL, "step 1: solution: it is missing" },
        { HEAD SHOW "ask = { 'q', answer = 4 }" TAIL, "answer: a number comes from a run" },
        { HEAD SHOW "ask = { 'q', choices = { 'a' }, answer = 1 }" TAIL, "at least two" },
        { HEAD SHOW "ask = { 'q', choices = { 'a', 5 }, answer = 1 }" TAIL, "each is a text" },
        { HEAD SHOW "ask = { 'q', choices = { 'a', { 5 } }, answer = 1 }" TAIL, "each is a text" },
        { HEAD SHOW "ask = { 'q', choices = { 'a', 'b' }, answer = 3 }" TAIL, "1 to 2" },
        { HEAD SHOW "ask = { choices = { 'a', 'b' }, answer = 1 }" TAIL, "the question comes" },
        { HEAD SHOW "now = 3" TAIL, "step 1: now: expected a text" },
        { HEAD SHOW "runs = { 'full' }" TAIL, "step 1: runs: each has a short name" },
        { "while true do end", "endless loop" },
        { "bytes(1e300)", "too many bytes" },
        { HEAD "show = { 'full', cursor = { 4e116, 0 } }" TAIL, "no view has a place 4e+116" },
        { "local s = 'x' while true do s = s .. s end", "not enough memory" },
        { "os.exit(1)", "global 'os'" },
        { "io.open('x')", "global 'io'" },
        { "load('return 1')()", "global 'load'" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Error   err = ERROR_INIT;
        Lesson *lesson = read_text(cases[i].text, &err);

        CHECK(!lesson, "it was read: %s", cases[i].text);
        CHECK(strstr(err.text, cases[i].says) && !strncmp(err.text, "try", 3),
              "'%s' does not say '%s'", err.text, cases[i].says);
        lesson_free(lesson);
    }
}

TEST(words_are_those_of_the_command)
{
    Error       err = ERROR_INIT;
    Lesson     *lesson = read_text(HEAD "show = { 'full:weights', 'window(window=3)', seed = 2, "
                                        "n = 8, causal = true, no_residual = true, "
                                        "cursor = { 3, 1 } }" TAIL, &err);
    static const char *const words[] = { "figure", "full:weights", "window(window=3)", "--causal",
                                         "--n=8", "--no-residual", "--seed=2" };

    CHECK(lesson, "%s", err.text);
    assert_int_equal(lesson->steps[0].show.count, 7);
    for (int i = 0; i < 7; i++)
        assert_string_equal(lesson->steps[0].show.items[i], words[i]);
    assert_int_equal(lesson->steps[0].show.query, 3);
    assert_int_equal(lesson->steps[0].show.key, 1);
    lesson_free(lesson);
}

/* ---- facts and answers ----------------------------------------------------- */

TEST(functions_see_the_runs)
{
    Error      err = ERROR_INIT;
    LessonPlay play = { .facts = { .count = 0 } };
    Lesson    *lesson = read_text(
        HEAD SHOW "runs = { long = { 'full', n = 16, d = 4 } }, "
                  "ask = { 'q', answer = function(s) return s.long.flops / s[1].flops end }, "
                  "now = function(s) return ('%d %d %.0f %.3f %s %s'):format(s[1].n, s.long.n, "
                  "s[1].pairs, s[1].mass, s[1].params.scale, count(12000)) end, "
                  "task = 'do', solution = { 'window(window=3)', n = 8, d = 4 }, "
                  "done = function(s) local sum = 0 for _, w in ipairs(s[1].row('weights', 2)) do "
                  "sum = sum + w end assert(math.abs(sum - 1) < 1e-5 and "
                  "s[1].value('weights', 2, 7) <= 1 and select(2, s[1].size('weights')) == 8) "
                  "return s[1].mechanism == 'window' end" TAIL, &err);
    double value = 0;
    bool   done = true;
    Text   text = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_play(session, lesson, 0, NULL, &play, &err), "%s", err.text);
    CHECK(lesson_answer(lesson, 0, &play.facts, &value, &err), "%s", err.text);
    assert_true(value > 3.9 && value < 4.1);
    CHECK(lesson_text(lesson, &lesson->steps[0].now, &play.facts, &text, &err), "%s", err.text);
    assert_string_equal(text_str(&text), "8 16 64 1.000 0 12.0 k");
    CHECK(lesson_task_done(lesson, 0, &play.facts, &done, &err), "%s", err.text);
    assert_false(done);
    lesson_play_free(&play);
    CHECK(lesson_play(session, lesson, 0, &lesson->steps[0].solution, &play, &err), "%s", err.text);
    CHECK(lesson_task_done(lesson, 0, &play.facts, &done, &err), "%s", err.text);
    assert_true(done);
    lesson_play_free(&play);
    text_free(&text);
    lesson_free(lesson);
}

TEST(the_mass_of_a_head_is_one_of_those_that_mass_is_the_mean_of)
{
    Error      err = ERROR_INIT;
    LessonPlay play = { .facts = { .count = 0 } };
    Lesson    *lesson = read_text(
        HEAD "show = { 'window(window=3)', n = 16, d = 4, heads = 2 }, "
             "runs = { rank = { 'linformer(k=4)', n = 16, d = 4 } }, "
             "now = function(s) local a, b = s[1].kept(0), s[1].kept(1) "
             "return ('%s %s %s %s'):format(a ~= b, math.abs(a + b - 2 * s[1].mass) < 1e-6, "
             "s.rank.mass, s.rank.kept(0)) end, "
             "task = 'do', solution = { 'window(window=5)', n = 16, d = 4, heads = 2 }, "
             "done = function(s) return s[1].kept(2) > 0 end" TAIL, &err);
    bool       done;
    Text       text = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_play(session, lesson, 0, NULL, &play, &err), "%s", err.text);
    CHECK(lesson_text(lesson, &lesson->steps[0].now, &play.facts, &text, &err), "%s", err.text);
    assert_string_equal(text_str(&text), "true true nil nil");
    assert_false(lesson_task_done(lesson, 0, &play.facts, &done, &err));
    assert_non_null(strstr(err.text, "head"));
    lesson_play_free(&play);
    text_free(&text);
    lesson_free(lesson);
}

TEST(a_task_that_is_never_judged_is_an_error)
{
    Error      err = ERROR_INIT;
    LessonPlay play = { .facts = { .count = 0 } };
    Lesson    *lesson = read_text(
        HEAD SHOW "task = 'do', solution = { 'window(window=3)', n = 8, d = 4 }, "
                  "done = function(s) while s[1].mechanism == 'full' do end return true end" TAIL,
        &err);
    bool       done = false;

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_play(session, lesson, 0, NULL, &play, &err), "%s", err.text);
    assert_false(lesson_task_done(lesson, 0, &play.facts, &done, &err));
    CHECK(!strncmp(err.text, "try: step 1: done: ", 19), "'%s'", err.text);
    assert_non_null(strstr(err.text, "is there an endless loop?"));
    lesson_play_free(&play);
    err = ERROR_INIT;
    CHECK(lesson_play(session, lesson, 0, &lesson->steps[0].solution, &play, &err), "%s", err.text);
    CHECK(lesson_task_done(lesson, 0, &play.facts, &done, &err), "%s", err.text);
    assert_true(done); /* the loop before left nothing */
    lesson_play_free(&play);
    lesson_free(lesson);
}

TEST(a_run_is_looked_into_during_the_call_only)
{
    Error      err = ERROR_INIT;
    LessonPlay play = { .facts = { .count = 0 } };
    Lesson    *lesson = read_text("local kept " HEAD SHOW
                                  "now = function(s) kept = kept or s[1].value "
                                  "return tostring(kept('weights', 0, 0)) end" TAIL, &err);
    Text       text = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_play(session, lesson, 0, NULL, &play, &err), "%s", err.text);
    CHECK(lesson_text(lesson, &lesson->steps[0].now, &play.facts, &text, &err), "%s", err.text);
    assert_false(lesson_text(lesson, &lesson->steps[0].now, &play.facts, &text, &err));
    CHECK(strstr(err.text, "try: step 1"), "'%s' does not say where", err.text);
    CHECK(strstr(err.text, "only while"), "'%s' does not say why", err.text);
    lesson_play_free(&play);
    text_free(&text);
    lesson_free(lesson);
}

TEST(numbers_are_read_as_people_write_them)
{
    static const struct {
        const char *typed;
        double      value;
        const char *unit;
    } good[] = { { "12", 12, NULL },        { "1.5k", 1500, NULL },  { "2 M", 2e6, NULL },
                 { "12 %", 12, "%" },       { "12", 12, "%" },       { "4 x", 4, NULL },
                 { "1 KiB", 1024, NULL },   { "-3", -3, NULL },      { "1e3", 1000, NULL },
                 { "1 234", 1234, NULL },   { "4,096", 4096, NULL }, { "1,234,567", 1234567, NULL },
                 { "1,5", 1.5, NULL },      { "0,125", 0.125, NULL }, { "-0,125", -0.125, NULL },
                 { "12 ms", 12, "ms" },     { "256", 256, "KiB" },   { "256 KiB", 256, "KiB" },
                 { "256k", 256, "KiB" },    { "0.25M", 256, "KiB" }, { "0.25 MiB", 256, "KiB" },
                 { "2M", 2, "M" },          { "64*64", 4096, NULL }, { "64 x 64", 4096, NULL },
                 { "4x", 4, NULL },         { "2^10", 1024, NULL },  { "1/64", 1 / 64., NULL },
                 { "1 - 1/4", 0.75, NULL }, { "4*(2+3)", 20, NULL }, { "-2^2", -4, NULL },
                 { "2^-2", 0.25, NULL },    { "4*1.5k", 6000, NULL }, { "1,024*2", 2048, NULL },
                 { "64*4 KiB", 256, "KiB" }, { "1e-3*2", 0.002, NULL }, { ".5", 0.5, NULL },
                 { "3/4 - .25", 0.5, NULL } };
    static const char *const bad[] = { "",    "k",   "12 apples", "nan",
                                       "inf", "--1", "1,5,5",     "12 ms",
                                       "64*", "*64", "(2",        "2)",
                                       "1/0", "2**3", ".",
                                       "4T", /* T is a key of lessons */
                                       /* too long to be read whole */
                                       "1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+"
                                       "1+1+1+1+1+1" };
    Error  err = ERROR_INIT;
    double value;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        CHECK(lesson_number(good[i].typed, good[i].unit, &value, &err), "%s", err.text);
        CHECK(value == good[i].value, "%s: %g", good[i].typed, value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!lesson_number(bad[i], NULL, &value, &err), "'%s' was taken", bad[i]);
}

/* While an answer is typed its keys have no other meaning; all other keys keep theirs. */
TEST(a_number_is_known_as_it_is_typed)
{
    static const char *const good[] = { "-", "1", "1.", "1,5", "1 2", "12 k", "12%", "1.5M",
                                        "64*", "64*64", "64x", "64x6", "1/", "(", "(1+2)*3", "1-",
                                        "2^10", "2k*3", ".", ".5", "3/.5", "(-", "(-2", "-(-(3" };
    static const char *const bad[] = { "..", ",",  "i",    "12i", "1.5.", "12v", "12m", "*",
                                       "2**", "2)", "64*i", "()",  "/",    "x",   "(--2" };

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK(lesson_number_begins(good[i], NULL), "'%s' was refused", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!lesson_number_begins(bad[i], NULL), "'%s' was taken", bad[i]);
    assert_true(lesson_number_begins("1e", NULL) && lesson_number_begins("2.5e-", NULL) &&
                lesson_number_begins("1e-3*2", NULL) && !lesson_number_begins("1ex", NULL));
    assert_true(lesson_number_begins("12m", "ms") && lesson_number_begins("12 ms", "ms"));
    assert_true(lesson_number_begins("256 Ki", "KiB") && !lesson_number_begins("256i", "KiB"));
}

TEST(an_answer_may_be_so_far_off)
{
    LessonStep step = { .ask = LESSON_ASKS_NUMBER, .within = 0.05 };

    assert_true(lesson_accepts(&step, 100, 104.9) && lesson_accepts(&step, -100, -95.1));
    assert_false(lesson_accepts(&step, 100, 105.1) || lesson_accepts(&step, 100, -100));
    assert_true(lesson_accepts(&step, 0, 0.04));
    assert_false(lesson_accepts(&step, 0, 0.06));
    step.within = 0;
    assert_true(lesson_accepts(&step, 4096, 4096));
    assert_false(lesson_accepts(&step, 4096, 4097));
    step.ask = LESSON_ASKS_CHOICE;
    assert_true(lesson_accepts(&step, 2, 2));
    assert_false(lesson_accepts(&step, 2, 1));
}

/* ---- the check ------------------------------------------------------------- */

TEST(what_does_not_hold_is_found)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { HEAD "show = { 'fulll', n = 8 }" TAIL, "step 1: show:" },
        { HEAD "show = { 'full', nn = 8 }" TAIL, "no option '--nn=8'" },
        { HEAD SHOW "runs = { a = { 'window(window=-1)', n = 8 } }" TAIL, "runs.a:" },
        { HEAD SHOW "now = function(s) return s.there.n end" TAIL, "step 1: now: " },
        { HEAD SHOW "now = function(s) return {} end" TAIL, "returned a table" },
        { HEAD SHOW "ask = { 'q', answer = function(s) return 0/0 end }" TAIL, "return a number" },
        { HEAD SHOW "ask = { 'q', choices = { 'a', 'b' }, answer = function(s) return 3 end }" TAIL,
          "the number of a choice" },
        { HEAD SHOW "ask = { 'q', answer = function(s) return 4 end, within = 1 }" TAIL, "" },
        { HEAD SHOW "task = 'd', done = function(s) return true end, solution = { 'full', n = 8 }"
          TAIL, "done before the learner" },
        { HEAD SHOW "task = 'd', done = function(s) return false end, solution = { 'full', n = 8 }"
          TAIL, "not done by it" },
        { HEAD SHOW "now = ('word '):rep(200)" TAIL, "the words take" },
        { HEAD SHOW "now = function(s) return tostring(s[1].masss) end" TAIL,
          "no field 'masss'; did you mean 'mass'?" },
        { HEAD SHOW "now = function(s) return tostring(s[1].time) end" TAIL, "" },
        { HEAD SHOW "now = function(s) return s[1]:value('weights', 0, 0) end" TAIL, "with a dot" },
        { HEAD "show = { 'full:weights', n = 8, d = 4, cursor = { 8, 0 } }" TAIL,
          "show: cursor: query 8, key 0 is outside" },
        { HEAD SHOW "now = function(s) return s[1].query .. ' ' .. s[1].key end, task = 'd', "
          "done = function(s) return s[1].query ~= 4 or s[1].key ~= 4 end, "
          "solution = { 'full:weights', n = 8, d = 4, cursor = { 0, 0 } }" TAIL, "" },
        { HEAD TASK "task = 'press p and make it wider'" TAIL, "names no parameter of the panes" },
        { HEAD TASK "task = 'press p, then Return'" TAIL, "task: there is no key 'Return'" },
        { HEAD TASK "task = 'press p and set window to 5, press Enter or Ctrl-P'" TAIL, "" },
        { HEAD TASK "task = 'press p and set causal'" TAIL, "" },
        { HEAD SHOW "text = 'Press F13 or any key.'" TAIL, "text: there is no key 'F13'" },
        { HEAD SHOW "hint = 'Press ] until it is there. Press Tab, then S-Right.'" TAIL, "" },
        { HEAD SHOW "hint = 'Press A.'" TAIL, "hint: the key 'A' does not work there: say to press "
          "Tab, then it" },
        { HEAD SHOW "explain = 'Press Tab, then A.'" TAIL, "" },
        { HEAD SHOW "hint = 'Press Down.'" TAIL, "" },
        { HEAD SHOW "ask = { 'q', choices = { { 'a', 'r' }, { 'b', 'r' } }, answer = 1 }" TAIL,
          "choices: the right one has the same reply as 'b'" },
        { HEAD SHOW "now = function(s) return ('%+.2f nats'):format(-0.001) end" TAIL,
          "now: a number reads -0" },
        { HEAD SHOW "now = '1-0.00, -0.001, x-0'" TAIL, "" },
        { HEAD SHOW "now = function(s) return 'Press \xc3\xb6.' end" TAIL, "now: there is no key" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Error   err = ERROR_INIT;
        Lesson *lesson = read_text(cases[i].text, &err);
        Text    out = { 0 };
        int     wrong;

        CHECK(lesson, "%s", err.text);
        wrong = lesson_check(session, lesson, &out);
        CHECK((wrong > 0) == (*cases[i].says != '\0'), "%d wrong: %s", wrong, text_str(&out));
        CHECK(strstr(text_str(&out), cases[i].says), "'%s' does not say '%s'", text_str(&out),
              cases[i].says);
        text_free(&out);
        lesson_free(lesson);
    }
}

/* The texts of a step exist in three forms: open, with the hint, with the answer. */
TEST(a_complaint_is_told_once)
{
    Error      err = ERROR_INIT;
    Lesson    *lesson = read_text(HEAD SHOW "now = function(s) return s.there.n end" TAIL, &err);
    Text       out = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_check(session, lesson, &out) == 1, "%s", text_str(&out));
    text_free(&out);
    lesson_free(lesson);
}

TEST(a_task_that_opens_the_form_stays_in_sight)
{
    Text    out = { 0 };
    Error   err = ERROR_INIT;
    Lesson *lesson = read_text(
        "return { title = 'T', summary = 'S', steps = { { title = 'A', text = 'B', "
        "show = { 'full' }, task = 'press p and set seed to any number that you like, larger than "
        "the one that is there now, but not by very much', done = function(s) return false end, "
        "solution = { 'full' } } } }", &err);

    CHECK(lesson, "%s", err.text);
    lesson_check(session, lesson, &out);
    CHECK(strstr(text_str(&out), "4 fit above the form"), "%s", text_str(&out));
    text_free(&out);
    lesson_free(lesson);
}

TEST(every_shipped_lesson_holds)
{
    LessonList list;
    Error      err = ERROR_INIT;

    CHECK(lessons_find(&list, &err), "%s", err.text);
    assert_true(list.count >= 2);
    for (int i = 0; i < list.count; i++) {
        Lesson *lesson = lesson_open(session, &list.files[i], &err);
        Text    out = { 0 };
        double  begun = clock_wall();

        CHECK(lesson, "%s", err.text);
        CHECK(lesson_check(session, lesson, &out) == 0, "%s", text_str(&out));
        assert_true(lesson->effort.waited > 0 && lesson->effort.waited <= clock_wall() - begun);
        CHECK(lesson->recap, "%s: it has no closing words", lesson->id);
        assert_true(lesson->minutes <= 5); /* and the check holds it to what it says */
        text_free(&out);
        lesson_free(lesson);
    }
    lessons_free(&list);
}

/* ---- pages ----------------------------------------------------------------- */

TEST(a_page_keeps_its_width)
{
    Error       err = ERROR_INIT;
    Lesson     *lesson = read_text(HEAD SHOW "task = 'some words to be done by the learner', "
                                   "done = function(s) return false end, solution = { 'full' }, "
                                   "ask = { 'q', choices = { 'one', 'two' }, answer = 2 }, "
                                   "hint = [[\n  first line\n    goes on\n\n  - item\n  - other\n]]"
                                   TAIL, &err);
    LessonFacts facts = { .count = 0 };
    LessonPage  page;
    Text        all = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_page(lesson, 0, &facts, &(LessonSight){ .chosen = 1, .hint = true }, 24, &page,
                      &err), "%s", err.text);
    for (int i = 0; i < page.count; i++) {
        CHECK(strlen(lesson_line(&page, i)) <= 24, "too long: %s", lesson_line(&page, i));
        text_addf(&all, "%s\n", lesson_line(&page, i));
    }
    assert_non_null(strstr(text_str(&all), "first line goes"));
    assert_non_null(strstr(text_str(&all), "- item\n"));
    assert_non_null(strstr(text_str(&all), "  b) two\n"));
    text_free(&all);
    lesson_page_free(&page);
    lesson_free(lesson);
}

/* All lines of the page of the first step, at 40 columns. */
static void first_page(const Lesson *lesson, bool lenient, Text *out)
{
    Error      err = ERROR_INIT;
    LessonPlay play = { .facts = { .count = 0 } };
    LessonPage page;

    CHECK(lesson_play(session, lesson, 0, NULL, &play, &err), "%s", err.text);
    if (lesson_page(lesson, 0, &play.facts, &(LessonSight){ .chosen = -1, .lenient = lenient }, 40,
                    &page, &err))
        for (int i = 0; i < page.count; i++)
            text_addf(out, "%s\n", lesson_line(&page, i));
    else
        text_add(out, err.text);
    lesson_page_free(&page);
    lesson_play_free(&play);
}

TEST(a_pane_of_another_mechanism_is_told)
{
    Error       err = ERROR_INIT;
    Lesson     *lesson = read_text(HEAD SHOW "now = 'the number'" TAIL, &err);
    LessonFacts facts = { .count = 0 };
    LessonSight sight = { .chosen = -1, .instead = "bigbird" };
    LessonPage  page;
    Text        all = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_page(lesson, 0, &facts, &sight, 200, &page, &err), "%s", err.text);
    for (int i = 0; i < page.count; i++)
        text_addf(&all, "%s\n", lesson_line(&page, i));
    assert_non_null(strstr(text_str(&all), "The pane shows bigbird"));
    assert_null(strstr(text_str(&all), "the number"));
    text_free(&all);
    lesson_page_free(&page);
    lesson_free(lesson);
}

TEST(a_lesson_opens_by_its_number)
{
    Error   err = ERROR_INIT;
    Lesson *lesson = lesson_open_named(session, "5", &err);

    CHECK(lesson, "%s", err.text);
    assert_string_equal(lesson->id, "lsh");
    lesson_free(lesson);
    assert_null(lesson_open_named(session, "0", &err));
    assert_null(lesson_open_named(session, "99", &err));
    CHECK(strstr(err.text, "a number from 1 to"), "'%s'", err.text);
}

/* Panes that nobody changed are no reason: the lesson's error is said. */
TEST(an_error_over_the_panes_of_the_step_is_the_lessons)
{
    Error      err = ERROR_INIT;
    LessonPlay play = { .facts = { .count = 0 } };
    Lesson    *lesson = read_text(HEAD TASK "task = 'do', now = function() while true do end end"
                                  TAIL, &err);
    LessonSight sight = { .chosen = -1, .lenient = true, .untouched = true, .fault = "it broke",
                          .moved = "another head" };
    LessonPage page;
    Text       all = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_play(session, lesson, 0, NULL, &play, &err), "%s", err.text);
    CHECK(lesson_page(lesson, 0, &play.facts, &sight, 200, &page, &err), "%s", err.text);
    for (int i = 0; i < page.count; i++)
        text_addf(&all, "%s\n", lesson_line(&page, i));
    assert_non_null(strstr(text_str(&all), "is there an endless loop?"));
    assert_non_null(strstr(text_str(&all), "it broke"));
    assert_non_null(strstr(text_str(&all), "another head"));
    assert_null(strstr(text_str(&all), "something else"));
    text_free(&all);
    lesson_page_free(&page);
    lesson_play_free(&play);
    lesson_free(lesson);
}

TEST(numbers_of_percent_are_told_apart)
{
    Error   err = ERROR_INIT;
    Lesson *lesson = read_text(
        HEAD SHOW "now = function(s) return ('%s;%s;%s;%s;%s;%s;%s;%s'):format(percent(0), "
                  "percent(1), percent(0.9), percent(0.123456), percent(0.99985), "
                  "percent(0.9999999999), percent(4.4), percent(-12345)) end" TAIL, &err);
    LessonPlay play = { .facts = { .count = 0 } };
    Text       text = { 0 };

    CHECK(lesson, "%s", err.text);
    CHECK(lesson_play(session, lesson, 0, NULL, &play, &err), "%s", err.text);
    CHECK(lesson_text(lesson, &lesson->steps[0].now, &play.facts, &text, &err), "%s", err.text);
    assert_string_equal(text_str(&text), "0 %;100 %;90.0 %;12.3 %;99.98 %;100 %;440 %;-1234500 %");
    text_free(&text);
    lesson_play_free(&play);
    lesson_free(lesson);
}

TEST(a_number_keeps_its_unit)
{
    Error   err = ERROR_INIT;
    Lesson *lesson = read_text("return { title = 't', summary = 's', steps = { { title = 'a', " SHOW
                               "text = 'these words fill up a line until 41.8 k FLOP, and some of "
                               "another one, 12 % of it' } } }", &err);
    Text    all = { 0 };

    CHECK(lesson, "%s", err.text);
    first_page(lesson, false, &all);
    assert_string_equal(text_str(&all), "these words fill up a line until 41.8 k\n"
                                        "FLOP, and some of another one, 12 % of\nit\n");
    text_free(&all);
    lesson_free(lesson);
}

/* The learner may change the panes; the other texts stay. */
TEST(words_that_do_not_fit_the_panes_say_so)
{
    Error   err = ERROR_INIT;
    Lesson *lesson = read_text(HEAD SHOW "now = function(s) return percent(s[1].params.window) end"
                               TAIL, &err);
    Text    all = { 0 }, raw = { 0 };

    CHECK(lesson, "%s", err.text);
    first_page(lesson, true, &all);
    assert_non_null(strstr(text_str(&all), "x\n"));
    assert_non_null(strstr(text_str(&all), "now  the panes show something else"));
    assert_null(strstr(text_str(&all), "number expected"));
    first_page(lesson, false, &raw);
    assert_non_null(strstr(text_str(&raw), "step 1: now: "));
    text_free(&raw);
    text_free(&all);
    lesson_free(lesson);
}

/* ---- progress -------------------------------------------------------------- */

TEST(progress_is_written_and_read)
{
    Progress progress, again;
    Text     text = { 0 };

    progress_parse("attnscope lessons 1\n# a comment\nlsh 3 1 2\nn-squared 32 32\n", &progress);
    assert_int_equal(progress.damaged, 0);
    assert_int_equal(progress.count, 2);
    assert_int_equal(progress.items[0].at, 2);
    assert_int_equal(progress.items[0].done, 3);
    assert_true(progress.items[1].done == UINT32_C(1) << 31);
    progress_write(&progress, &text);
    progress_parse(text_str(&text), &again);
    assert_memory_equal(&progress, &again, sizeof(progress));
    text_free(&text);
}

TEST(damaged_lines_cost_themselves_only)
{
    Progress progress;

    progress_parse("attnscope lessons 1\nlsh x\n\nlsh 0\n 3\nlsh 3 99\ngood 2 1\nlsh 4 1\n"
                   "cut 3 1 2 \xff", &progress);
    assert_int_equal(progress.damaged, 5);
    assert_int_equal(progress.count, 2);
    assert_string_equal(progress.items[0].id, "good");
    assert_int_equal(progress_of(&progress, "lsh").at, 3);
    assert_int_equal(progress_of(&progress, "none").done, 0);
    progress_put(&progress, &(LessonProgress){ .id = "lsh", .at = 1, .done = 5 });
    assert_int_equal(progress.count, 2);
    assert_int_equal(progress_of(&progress, "lsh").done, 5);
    progress_parse("PK\x03\x04", &progress);
    assert_int_equal(progress.damaged, -1);
    progress_parse("attnscope lessons 12\nlsh 3\n", &progress);
    assert_int_equal(progress.damaged, -1);
}

/* A file that is no progress file is renamed, not overwritten. */
TEST(progress_is_saved_whatever_was_there)
{
    char           folder[] = "/tmp/attnscope-lesson-XXXXXX", path[96], aside[112];
    LessonProgress item = { .id = "lsh", .at = 2, .done = 5 }, other = { .id = "b", .done = 1 };
    Progress       progress;
    Error          err = ERROR_INIT;
    FILE          *file;

    assert_non_null(mkdtemp(folder));
    setenv("XDG_STATE_HOME", folder, 1);
    CHECK(progress_save(&item, &err), "%s", err.text);
    CHECK(progress_save(&other, &err), "%s", err.text);
    progress_read(&progress);
    assert_int_equal(progress.count, 2);
    assert_int_equal(progress_of(&progress, "lsh").done, 5);
    snprintf(path, sizeof(path), "%s/attnscope/lessons", folder);
    snprintf(aside, sizeof(aside), "%s.damaged", path);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("something else", file);
    fclose(file);
    CHECK(progress_save(&item, &err), "%s", err.text);
    assert_int_equal(access(aside, R_OK), 0);
    progress_read(&progress);
    assert_int_equal(progress.count, 1);
    remove(aside);
    remove(path);
    snprintf(path, sizeof(path), "%s/attnscope", folder);
    rmdir(path);
    rmdir(folder);
    unsetenv("XDG_STATE_HOME");
}

SUITE(open_session, close_session)
