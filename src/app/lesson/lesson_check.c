/* lesson_check.c -- see lesson_check.h. */
#include "app/lesson/lesson_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/lesson/lesson_page.h"
#include "app/lesson/lesson_play.h"
#include "app/lesson/lesson_words.h"
#include "profile/measure.h"

typedef struct Check {
    Session      *session;
    const Lesson *lesson;
    int           step;
    Text         *out;
    LessonTime   *time;
    int           wrong;
    size_t        begun; /* where in out the step's complaints begin */
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

/* What was said by the lesson itself names lesson and step already.  A page is made several
 * times: what is said again is one complaint. */
static void complain_of(Check *c, const Error *err)
{
    if (strstr(text_str(c->out) + c->begun, err->text))
        return;
    text_addf(c->out, "%s\n", err->text);
    c->wrong++;
}

/* The words make sense, and before anything is answered they fit the smallest screen. */
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

/* Typed as it is shown it is taken, and twice as far off as allowed it is not. */
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
    if (accepted != 1)
        complain(c, "answer: %d choices are accepted", accepted);
}

static void check_keys(Check *c, const char *field, const char *words)
{
    LessonKey keys[LESSON_KEYS_MOST];
    int       count = words && c->lesson->reader->knows_key ? lesson_keys(words, keys) : 0;

    for (int i = 0; i < count; i++)
        if (!c->lesson->reader->knows_key(keys[i].name, keys[i].length))
            complain(c, "%s: there is no key '%.*s'; attnscope docs keys lists them", field,
                     (int)keys[i].length, keys[i].name);
}

/* Keys that the words name are there, also in words that a function makes. */
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
        Error err = ERROR_INIT; /* the page said it */

        if (lesson_text(c->lesson, made[i].text, facts, &words, &err))
            check_keys(c, made[i].field, text_str(&words));
        text_free(&words);
    }
    check_keys(c, "ask", step->question);
    check_keys(c, "task", step->task);
    if (step->task && lesson_task_opens_form(step) && !lesson_task_names_any(step, facts))
        complain(c, "task: it says to press p, but names no parameter of the panes: the form opens "
                 "on the one that is named");
}

/* With what the learner would read there, which often says what is amiss. */
static void complain_of_solution(Check *c, const LessonFacts *facts)
{
    Text  now = { 0 };
    Error err = ERROR_INIT;

    lesson_text(c->lesson, &c->lesson->steps[c->step].now, facts, &now, &err);
    complain(c, "solution: the task is not done by it%s%s%s", now.length ? "; now: \"" : "",
             text_str(&now), now.length ? "\"" : "");
    text_free(&now);
}

/* The task is open at first, and what is said to do it does. */
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
    c->time->waited += clock_wall() - begun;
    lesson_play_free(&play);
}

static void check_step(Check *c)
{
    LessonPlay play;
    double     begun = clock_wall();
    Error      err = ERROR_INIT;

    c->begun = c->out->length;
    if (lesson_play(c->session, c->lesson, c->step, NULL, &play, &err)) {
        c->time->waited += clock_wall() - begun;
        check_pages(c, &play.facts);
        check_answer(c, &play.facts);
        check_task(c, &play.facts);
        check_words(c, &play.facts);
        lesson_time_step(c->lesson, c->step, &play.facts, c->time, &err); /* said already */
    } else {
        complain_of(c, &err);
    }
    lesson_play_free(&play);
}

static void check_minutes(Check *c)
{
    double takes = lesson_minutes(c->time);

    if (takes <= c->lesson->minutes + LESSON_MINUTES_ROOM)
        return;
    text_addf(c->out, "%s: minutes: it says %d, but %d words, %d keys and %d things to find out "
              "take about %.1f: shorten it, or say so\n", c->lesson->id, c->lesson->minutes,
              c->time->words, c->time->keys, c->time->questions, takes);
    c->wrong++;
}

int lesson_check(Session *s, const Lesson *lesson, LessonTime *time, Text *out)
{
    Check c = { .session = s, .lesson = lesson, .time = time, .out = out };

    *time = (LessonTime){ .words = 0 };
    for (; c.step < lesson->count; c.step++) {
        session_progress(s, "%s: step %d of %d", lesson->id, c.step + 1, lesson->count);
        check_step(&c);
    }
    check_minutes(&c);
    return c.wrong;
}
