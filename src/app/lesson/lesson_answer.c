/* lesson_answer.c -- a lesson's words and answers, where they are made of runs. */
#include <math.h>

#include "app/lesson/lesson.h"

bool lesson_facts_ready(const LessonFacts *facts)
{
    for (int i = 0; i < facts->count; i++)
        if (!facts->items[i].result)
            return false;
    return true;
}

/* The error names the lesson, the step and the field. */
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

/* Which of the lesson's texts it is, for messages. */
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

bool lesson_accepts(const LessonStep *step, double right, double given)
{
    double room;

    if (step->ask == LESSON_ASKS_CHOICE)
        return given == right;
    room = step->within * (right != 0 ? fabs(right) : 1);
    return fabs(given - right) <= room + 1e-9 * fabs(right);
}
