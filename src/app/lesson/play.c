/* play.c -- a step's runs, answers, and the check of a lesson; see lesson.h. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/lesson/lesson.h"
#include "profile/measure.h"

bool lesson_plan(Session *s, const LessonCall *made, FigurePlan *plan, Error *err)
{
    if (!call_load_input(s, &made->call, err) || !figure_plan_make(s, &made->call, plan, err))
        return false;
    if (plan->count > LESSON_PANES_MOST)
        return error_set(err, ERR_USAGE, "more than %d panes", LESSON_PANES_MOST);
    for (int i = 0; i < plan->count; i++) {
        plan->panels[i].request.quality = session_input(s)->n <= LESSON_QUALITY_TO;
        plan->panels[i].spec.sorted |= made->call.values[OPT_SORTED] != NULL;
    }
    return true;
}

bool lesson_cursor_fits(const View *view, int64_t query, int64_t key, Error *err)
{
    if (query >= 0 && query < view_rows(view) && key >= 0 && key < view_cols(view))
        return true;
    return error_set(err, ERR_USAGE, "cursor: query %lld, key %lld is outside; the view %s has "
                     "%lld x %lld cells, counted from 0", (long long)query, (long long)key,
                     view->name, (long long)view_rows(view), (long long)view_cols(view));
}

/* Puts the cursor where the explorer does: at the lesson's cell, else in the middle. */
static bool play_cursor(const LessonWords *words, LessonFact *fact, Error *err)
{
    bool        plain = *fact->view && !strpbrk(fact->view, "#*("); /* not a plot or "name#3" */
    const View *view = result_view(fact->result, fact->view, err);

    fact->query = fact->key = -1;
    if (!view && plain)
        return false;
    *err = ERROR_INIT;
    if (!view)
        return true;
    fact->query = words->query >= 0 ? words->query : view_rows(view) / 2;
    fact->key = words->query >= 0 ? words->key : view_cols(view) / 2;
    return lesson_cursor_fits(view, fact->query, fact->key, err);
}

static bool play_pane(Session *s, const PlannedPanel *panel, int64_t head,
                      const LessonWords *words, LessonPlay *out, Error *err)
{
    LessonFact *fact = &out->facts.items[out->facts.count];
    char       *view = out->views[out->facts.count];
    Result     *result = session_run_ok(s, &panel->request, err);

    if (!result)
        return false;
    snprintf(view, sizeof(out->views[0]), "%s", panel->spec.view);
    *fact = (LessonFact){ .result = result,
                          .measured = panel->request.measure ? &result->record : NULL,
                          .view = view, .head = panel->spec.head > 0 ? panel->spec.head : head,
                          .sorted = panel->spec.sorted };
    out->facts.count++;
    return play_cursor(words, fact, err);
}

static bool play_panes(Session *s, const Lesson *lesson, const LessonWords *words, LessonPlay *out,
                       Error *err)
{
    LessonCall made;
    FigurePlan plan = { 0 };
    int64_t    head = 0;
    bool       ok = lesson_call(s, lesson, words, &made, err) &&
              lesson_plan(s, &made, &plan, err) &&
              call_int(&made.call, OPT_HEAD, 0, 1 << 20, &head, err);

    for (int i = 0; ok && i < plan.count; i++)
        ok = play_pane(s, &plan.panels[i], head, words, out, err);
    figure_plan_free(&plan);
    lesson_call_free(&made);
    return ok;
}

static bool play_loss(Session *s, const Lesson *lesson, const LessonRun *of, LessonPlay *out,
                      Error *err)
{
    LessonLoss *loss = &out->losses[out->loss_count];

    if (!lesson_run_loss(s, lesson, of, loss, err))
        return false;
    out->loss_count++;
    out->facts.items[out->facts.count++] = (LessonFact){ .name = of->name, .loss = loss,
                                                         .query = -1, .key = -1 };
    return true;
}

static bool play_run(Session *s, const Lesson *lesson, const LessonRun *of, LessonPlay *out,
                     Error *err)
{
    Request request = REQUEST_INIT;
    Result *result = NULL;

    if (lesson_run_request(s, lesson, of, &request, err))
        result = session_run_ok(s, &request, err);
    request_free(&request);
    if (!result)
        return error_prefix(err, "runs.%s", of->name);
    out->facts.items[out->facts.count++] = (LessonFact){
        .name = of->name, .result = result, .measured = of->measure ? &result->record : NULL,
        .query = -1, .key = -1,
    };
    return true;
}

bool lesson_play(Session *s, const Lesson *lesson, int step, const LessonWords *words,
                 LessonPlay *out, Error *err)
{
    const LessonStep *of = &lesson->steps[step];
    bool              ok = true;

    *out = (LessonPlay){ .facts = { .count = 0 } };
    if (!words)
        words = lesson_shows(lesson, step);
    if (words && !play_panes(s, lesson, words, out, err))
        ok = error_prefix(err, words == &of->solution ? "solution" : "show");
    for (int i = 0; ok && i < of->run_count; i++)
        ok = of->runs[i].model ? play_loss(s, lesson, &of->runs[i], out, err)
                               : play_run(s, lesson, &of->runs[i], out, err);
    return ok || error_prefix(err, "%s: step %d", lesson->id, step + 1);
}

void lesson_play_free(LessonPlay *play)
{
    for (int i = 0; i < play->facts.count; i++)
        result_release(play->facts.items[i].result);
    *play = (LessonPlay){ .facts = { .count = 0 } };
}

/* ---- words and answers --------------------------------------------------- */

bool lesson_facts_ready(const LessonFacts *facts)
{
    for (int i = 0; i < facts->count; i++)
        if (!facts->items[i].result && !facts->items[i].loss)
            return false;
    return true;
}

/* The error names lesson, step and field. */
static bool call(const Lesson *lesson, int step, const char *field, int function,
                 const LessonFacts *facts, LessonValue *out, Error *err)
{
    *out = (LessonValue){ .kind = LESSON_NIL };
    if (lesson->reader->call(lesson, function, facts, out, err))
        return true;
    return error_prefix(err, "%s: step %d: %s", lesson->id, step + 1, field);
}

static bool wrong_kind(const Lesson *lesson, int step, const char *field, const char *wanted,
                       Error *err)
{
    return error_set(err, ERR_DATA, "%s: step %d: %s: the function must return %s", lesson->id,
                     step + 1, field, wanted);
}

/* Name of the text's field, for messages. */
static const char *field_of(const Lesson *lesson, const LessonText *text, int *step)
{
    for (*step = 0; *step < lesson->count; ++*step) {
        const LessonStep *s = &lesson->steps[*step];

        if (text == &s->text)
            return "text";
        if (text == &s->now)
            return "now";
        if (text == &s->hint)
            return "hint";
        if (text == &s->explain)
            return "explain";
    }
    *step = 0;
    return "text";
}

bool lesson_text(const Lesson *lesson, const LessonText *text, const LessonFacts *facts, Text *out,
                 Error *err)
{
    int         step;
    const char *field = field_of(lesson, text, &step);
    LessonValue value;
    bool        ok = true;

    if (text->fixed)
        text_add(out, text->fixed);
    if (!text->make)
        return true;
    if (!lesson_facts_ready(facts)) {
        text_add(out, "\xe2\x80\xa6");
        return true;
    }
    if (!call(lesson, step, field, text->make, facts, &value, err))
        return false;
    if (value.kind == LESSON_STRING)
        text_add(out, text_str(&value.text));
    else if (value.kind != LESSON_NIL)
        ok = wrong_kind(lesson, step, field, "a text", err);
    text_free(&value.text);
    return ok;
}

bool lesson_task_done(const Lesson *lesson, int step, const LessonFacts *facts, bool *done,
                      Error *err)
{
    LessonValue value;

    *done = false;
    if (!lesson->steps[step].done || !lesson_facts_ready(facts))
        return true;
    if (!call(lesson, step, "done", lesson->steps[step].done, facts, &value, err))
        return false;
    text_free(&value.text);
    *done = value.kind == LESSON_TRUTH && value.truth;
    return value.kind == LESSON_TRUTH || value.kind == LESSON_NIL ||
           wrong_kind(lesson, step, "done", "true or false", err);
}

bool lesson_answer(const Lesson *lesson, int step, const LessonFacts *facts, double *out,
                   Error *err)
{
    const LessonStep *s = &lesson->steps[step];
    LessonValue       value;

    *out = s->answer;
    if (!s->answer_of)
        return true;
    if (!lesson_facts_ready(facts))
        return error_set(err, ERR_DATA, "the runs of this step are not finished");
    if (!call(lesson, step, "answer", s->answer_of, facts, &value, err))
        return false;
    text_free(&value.text);
    *out = value.number;
    if (value.kind != LESSON_NUMBER || !isfinite(value.number))
        return wrong_kind(lesson, step, "answer", "a number", err);
    if (s->ask == LESSON_ASKS_CHOICE && (*out != floor(*out) || !(*out >= 1) ||
                                         !(*out <= s->choice_count)))
        return wrong_kind(lesson, step, "answer", "the number of a choice", err);
    return true;
}

const char *lesson_right_text(const LessonStep *step, double right, char *out, size_t size)
{
    bool whole = fabs(right) >= 999.5 || fabs(right - round(right)) <= 1e-9 * fabs(right);

    snprintf(out, size, whole ? "%.0f%s%s" : "%.3g%s%s", right, step->unit ? " " : "",
             step->unit ? step->unit : "");
    return out;
}

bool lesson_accepts(const LessonStep *step, double right, double given)
{
    double room;

    if (step->ask == LESSON_ASKS_CHOICE)
        return given == right;
    room = step->within * (right != 0 ? fabs(right) : 1);
    return fabs(given - right) <= room + 1e-9 * fabs(right);
}

/* ---- the check ----------------------------------------------------------- */

typedef struct Check {
    Session      *session;
    Lesson       *lesson;
    int           step;
    Text         *out;
    int           wrong;
    size_t        begun; /* start of the step's complaints in out */
} Check;

__attribute__((format(printf, 2, 3))) static void complain(Check *c, const char *fmt, ...)
{
    char    text[600];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text_addf(c->out, "%s: step %d: %s\n", c->lesson->id, c->step + 1, text);
    c->wrong++;
}

/* A message of the lesson itself names lesson and step.  A page is made several times, so the same
 * message counts once. */
static void complain_of(Check *c, const Error *err)
{
    if (lines_hold(text_str(c->out) + c->begun, err->text))
        return;
    text_addf(c->out, "%s\n", err->text);
    c->wrong++;
}

/* The texts can be made, and the page fits the smallest screen before an answer. */
static void check_page(Check *c, const LessonFacts *facts, const LessonSight *sight, bool fits)
{
    LessonPage page;
    Error      err = ERROR_INIT;

    if (!lesson_page(c->lesson, c->step, facts, sight, LESSON_PAGE_WIDTH, &page, &err))
        complain_of(c, &err);
    else if (fits && page.count > LESSON_PAGE_LINES)
        complain(c, "the words take %d lines of %d columns, %d fit beside the panes at 80x24: "
                 "shorten them or make two steps", page.count, LESSON_PAGE_WIDTH,
                 LESSON_PAGE_LINES);
    lesson_page_free(&page);
}

static void check_pages(Check *c, const LessonFacts *facts)
{
    check_page(c, facts, &(LessonSight){ .chosen = -1 }, true);
    check_page(c, facts, &(LessonSight){ .chosen = -1, .hint = true }, false);
    check_page(c, facts, &(LessonSight){ .chosen = -1, .done = true, .answered = true }, false);
}

/* The right number is accepted as it is shown; one twice as far off as allowed is refused. */
static void check_number(Check *c, const LessonStep *step, double right)
{
    double off = (step->within > 0 ? 2 * step->within : 0.01) * (right != 0 ? fabs(right) : 1);
    char   typed[64];
    double given;
    Error  err = ERROR_INIT;

    snprintf(typed, sizeof(typed), "%.9g", right);
    if (!lesson_number(typed, step->unit, &given, &err) || !lesson_accepts(step, right, given))
        complain(c, "answer: the right number, %s, is not accepted", typed);
    if (lesson_accepts(step, right, right + off) || lesson_accepts(step, right, right - off))
        complain(c, "answer: %g is accepted for %g: within is too wide", right + off, right);
}

/* A reply that stands behind a right and a wrong choice says nothing about either. */
static void check_replies(Check *c, const LessonStep *step, int right)
{
    const char *why = step->choices[right].why;

    for (int i = 0; i < step->choice_count; i++)
        if (i != right && why && step->choices[i].why && !strcmp(why, step->choices[i].why))
            complain(c, "choices: the right one has the same reply as '%s'", step->choices[i].text);
}

static void check_answer(Check *c, const LessonFacts *facts)
{
    const LessonStep *step = &c->lesson->steps[c->step];
    double            right;
    Error             err = ERROR_INIT;
    int               accepted = 0;

    if (step->ask == LESSON_ASKS_NOTHING)
        return;
    if (!lesson_answer(c->lesson, c->step, facts, &right, &err)) {
        complain_of(c, &err);
        return;
    }
    if (step->ask == LESSON_ASKS_NUMBER) {
        check_number(c, step, right);
        return;
    }
    for (int i = 1; i <= step->choice_count; i++)
        accepted += lesson_accepts(step, right, i);
    check_replies(c, step, (int)right - 1);
    if (accepted != 1)
        complain(c, "answer: %d choices are accepted", accepted);
}

static bool key_is(const LessonKey *key, const char *name)
{
    return key->length == strlen(name) && !memcmp(key->name, name, key->length);
}

/* Where the keys behind this one are pressed. */
static unsigned places_after(unsigned places, const LessonKey *key)
{
    if (key_is(key, "Tab"))
        return places & LESSON_IN_WORDS ? LESSON_IN_PANES : LESSON_IN_WORDS;
    return key_is(key, "p") ? places | LESSON_IN_FORM : places;
}

static void check_keys(Check *c, const char *field, const char *words)
{
    const LessonReader *reader = c->lesson->reader;
    LessonKey           keys[LESSON_KEYS_MOST];
    int                 count = words && reader->knows_key ? lesson_keys(words, keys) : 0;
    unsigned            places = LESSON_IN_WORDS;

    for (int i = 0; i < count; i++) {
        int length = (int)keys[i].length;

        if (!reader->knows_key(keys[i].name, keys[i].length, 0))
            complain(c, "%s: there is no key '%.*s'; attnscope docs keys lists them", field,
                     length, keys[i].name);
        else if (!reader->knows_key(keys[i].name, keys[i].length, places))
            complain(c, "%s: the key '%.*s' does not work there%s", field, length, keys[i].name,
                     places & LESSON_IN_WORDS ? ": say to press Tab, then it" : "");
        places = places_after(places, &keys[i]);
    }
}

/* "-0.00": a number that was rounded to nothing. */
static bool has_minus_zero(const char *words)
{
    for (const char *at = strstr(words, "-0"); at; at = strstr(at + 1, "-0")) {
        const char *end = at + 2;

        end += *end == '.' ? 1 + strspn(end + 1, "0") : 0;
        if ((at == words || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)*end))
            return true;
    }
    return false;
}

/* All keys named exist and work there, also those in made texts. */
static void check_words(Check *c, const LessonFacts *facts)
{
    const LessonStep *step = &c->lesson->steps[c->step];
    const struct {
        const char       *field;
        const LessonText *text;
    } made[] = { { "text", &step->text }, { "now", &step->now }, { "hint", &step->hint },
                 { "explain", &step->explain } };

    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
        Text  words = { 0 };
        Error err = ERROR_INIT; /* the page reported it */

        if (lesson_text(c->lesson, made[i].text, facts, &words, &err))
            check_keys(c, made[i].field, text_str(&words));
        if (has_minus_zero(text_str(&words)))
            complain(c, "%s: a number reads -0; write 0", made[i].field);
        text_free(&words);
    }
    check_keys(c, "ask", step->question);
    check_keys(c, "task", step->task);
    if (step->opens_form && !lesson_task_names_any(step, facts))
        complain(c, "task: it says to press p, but names no parameter of the panes: the form opens "
                 "on the one that is named");
}

/* Adds what the learner would read, which often shows the cause. */
static void complain_of_solution(Check *c, const LessonFacts *facts)
{
    Text  now = { 0 };
    Error err = ERROR_INIT;

    lesson_text(c->lesson, &c->lesson->steps[c->step].now, facts, &now, &err);
    complain(c, "solution: the task is not done by it%s%s%s", now.length ? "; now: \"" : "",
             text_str(&now), now.length ? "\"" : "");
    text_free(&now);
}

/* A task that opens the form stays in sight above it. */
static void check_task_room(Check *c, const LessonFacts *facts)
{
    LessonPage page;
    int        lines = 0;
    Error      err = ERROR_INIT; /* the page reported it */

    if (!c->lesson->steps[c->step].opens_form)
        return;
    if (lesson_brief(c->lesson, c->step, facts, &(LessonSight){ .chosen = -1, .lenient = true },
                     LESSON_TASK_WIDTH, &page, &err))
        for (int i = 0; i < page.count; i++)
            lines += page.lines[i].kind == LESSON_LINE_TASK;
    if (lines > LESSON_TASK_LINES)
        complain(c, "task: it takes %d lines of %d columns, %d fit above the form at 60x16: "
                 "shorten it", lines, LESSON_TASK_WIDTH, LESSON_TASK_LINES);
    lesson_page_free(&page);
}

/* The task is open at first, and the solution does it. */
static void check_task(Check *c, const LessonFacts *facts)
{
    const LessonStep *step = &c->lesson->steps[c->step];
    LessonPlay        play;
    bool              done = true;
    double            begun = clock_wall();
    Error             err = ERROR_INIT;

    if (!step->done)
        return;
    if (!lesson_task_done(c->lesson, c->step, facts, &done, &err)) {
        complain_of(c, &err);
        return;
    }
    if (done)
        complain(c, "done: the task is done before the learner does anything");
    if (!lesson_play(c->session, c->lesson, c->step, &step->solution, &play, &err) ||
        !lesson_task_done(c->lesson, c->step, &play.facts, &done, &err))
        complain_of(c, &err);
    else if (!done)
        complain_of_solution(c, &play.facts);
    c->lesson->effort.waited += clock_wall() - begun;
    lesson_play_free(&play);
}

static void check_step(Check *c)
{
    LessonPlay play;
    double     begun = clock_wall();
    Error      err = ERROR_INIT;

    c->begun = c->out->length;
    if (lesson_play(c->session, c->lesson, c->step, NULL, &play, &err)) {
        c->lesson->effort.waited += clock_wall() - begun;
        check_pages(c, &play.facts);
        check_answer(c, &play.facts);
        check_task(c, &play.facts);
        check_task_room(c, &play.facts);
        check_words(c, &play.facts);
        lesson_add_effort(c->lesson, c->step, &play.facts, &err); /* reported already */
    } else {
        complain_of(c, &err);
    }
    lesson_play_free(&play);
}

static void check_minutes(Check *c)
{
    const LessonEffort *effort = &c->lesson->effort;
    double              takes = lesson_minutes(c->lesson);

    if (takes <= c->lesson->minutes + LESSON_MINUTES_ROOM)
        return;
    text_addf(c->out, "%s: minutes: it says %d, but %d words, %d keys and %d things to find out "
              "take about %.1f: shorten it, or say so\n", c->lesson->id, c->lesson->minutes,
              effort->words, effort->keys, effort->questions, takes);
    c->wrong++;
}

int lesson_check(Session *s, Lesson *lesson, Text *out)
{
    Check c = { .session = s, .lesson = lesson, .out = out };

    lesson->effort = (LessonEffort){ .words = 0 };
    for (; c.step < lesson->count; c.step++) {
        session_progress(s, "%s: step %d of %d", lesson->id, c.step + 1, lesson->count);
        check_step(&c);
    }
    check_minutes(&c);
    return c.wrong;
}
