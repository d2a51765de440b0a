/* lesson.c -- lessons as text: the list, a lesson to read, a lesson to check.  On a terminal the
 * explorer shows them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/lesson/lesson.h"

#define PRINT_WIDTH 78

/* ---- list --------------------------------------------------------------------------- */

typedef struct Listed {
    LessonFile    *file;
    Lesson        *lesson; /* NULL: it cannot be read */
    char           problem[512];
    LessonProgress progress;
} Listed;

static void lesson_row(const Listed *item, int number, Table *t)
{
    const Lesson *l = item->lesson;

    table_cell(t, "%d", number);
    table_cell(t, "%s", item->file->id);
    table_cell(t, "%s", l ? l->title : item->problem);
    if (!l) {
        table_cell(t, "-");
        table_cell(t, "cannot be read");
        return;
    }
    table_cell(t, "%d", l->minutes);
    if (progress_steps(&item->progress) >= l->count)
        table_cell(t, "done");
    else
        table_cell(t, "%d of %d", progress_steps(&item->progress), l->count);
}

static void lessons_json(const Listed *item, Json *json)
{
    const Lesson *l = item->lesson;

    jsonw_open(json, '{');
    jsonw_key_string(json, "id", item->file->id);
    jsonw_key_string(json, "title", l ? l->title : NULL);
    jsonw_key_string(json, "summary", l ? l->summary : NULL);
    jsonw_key_int(json, "minutes", l ? l->minutes : 0);
    jsonw_key_int(json, "steps", l ? l->count : 0);
    jsonw_key_int(json, "done", progress_steps(&item->progress));
    jsonw_key_int(json, "at", item->progress.at + 1);
    jsonw_key_string(json, "file", item->file->path);
    jsonw_key_string(json, "problem", l ? NULL : item->problem);
    jsonw_close(json, '}');
}

/* A damaged lesson is listed with what is wrong with it; false: memory is short. */
static bool open_listed(Session *s, const Progress *progress, LessonFile *file, Listed *out,
                        Error *err)
{
    Error why = ERROR_INIT;

    *out = (Listed){ .file = file };
    out->lesson = lesson_open(s, file, &why);
    out->progress = progress_of(progress, file->id);
    if (!out->lesson)
        snprintf(out->problem, sizeof(out->problem), "%s", why.text);
    return out->lesson || why.code != ERR_NOMEM || error_set(err, why.code, "%s", why.text);
}

static bool list(Session *s, bool as_json, Text *out, Error *err)
{
    LessonList lessons;
    Progress   progress;
    Table      t = { .cols = 5 };
    Json       json = jsonw_to(out);
    bool       ok = true;

    if (!lessons_find(&lessons, err))
        return false;
    progress_read(&progress);
    if (as_json)
        jsonw_open(&json, '[');
    else
        table_cell(&t, "number"), table_cell(&t, "lesson"), table_cell(&t, "title"),
            table_cell(&t, "minutes"), table_cell(&t, "steps done");
    for (int i = 0; ok && i < lessons.count; i++) {
        Listed item;

        ok = open_listed(s, &progress, &lessons.files[i], &item, err);
        if (as_json)
            lessons_json(&item, &json);
        else
            lesson_row(&item, i + 1, &t);
        lesson_free(item.lesson);
    }
    if (as_json) {
        jsonw_close(&json, ']');
        text_add(out, "\n");
    } else {
        table_write(&t, TABLE_TEXT, out);
    }
    if (progress.damaged && !as_json)
        text_add(out, "the list of what was done is damaged; what it still says is shown\n");
    table_free(&t);
    lessons_free(&lessons);
    return ok;
}

/* ---- a lesson to be read ------------------------------------------------------------- */

static void add_lines(const LessonPage *page, Text *out)
{
    for (int i = 0; i < page->count; i++)
        if (page->lines[i].kind != LESSON_LINE_FIELD)
            text_addf(out, "%s\n", lesson_line(page, i));
}

/* The right answer, worded as in the explorer. */
static bool print_answer(const Lesson *lesson, int at, const LessonFacts *facts, Text *out,
                         Error *err)
{
    const LessonStep *step = &lesson->steps[at];
    double            right;
    char              value[LESSON_RIGHT];

    if (step->ask == LESSON_ASKS_NOTHING)
        return true;
    if (!lesson_answer(lesson, at, facts, &right, err))
        return false;
    if (step->ask == LESSON_ASKS_CHOICE)
        text_addf(out, "\nanswer: %c)\n", 'a' + (int)right - 1);
    else
        text_addf(out, "\nanswer: %s\n", lesson_right_text(step, right, value, sizeof(value)));
    return true;
}

/* The solution of the task, as the command of its panes. */
static bool add_solution(Session *s, const Lesson *lesson, int at, Text *out, Error *err)
{
    const LessonWords *words = &lesson->steps[at].solution;
    LessonCall         made;
    bool               ok;

    if (!words->count)
        return true;
    ok = lesson_call(s, lesson, words, &made, err);
    if (ok)
        text_addf(out, "\nsolution: attnscope %s\n", text_str(&made.line));
    if (ok && words->query >= 0)
        text_addf(out, "with the cursor at query %lld, key %lld\n", (long long)words->query,
                  (long long)words->key);
    lesson_call_free(&made);
    return ok;
}

static bool add_step_picture(Session *s, const Call *call, const Lesson *lesson, int at, Text *out,
                             Error *err)
{
    LessonCall made;
    bool       ok;

    if (!lesson->steps[at].show.count)
        return true;
    ok = lesson_call(s, lesson, &lesson->steps[at].show, &made, err);
    if (ok) {
        made.call.tty = call->tty;
        made.call.columns = PRINT_WIDTH;
        made.call.values[OPT_COLOR] = call->values[OPT_COLOR];
        text_addf(out, "\n  attnscope %s\n\n", text_str(&made.line));
        ok = made.call.command->run(s, &made.call, out, err);
    }
    lesson_call_free(&made);
    return ok;
}

/* The state after the solution: the line that follows the panes. */
static bool add_now(const Lesson *lesson, int at, const LessonFacts *facts, Text *out, Error *err)
{
    LessonPage brief;
    bool       ok = lesson_brief(lesson, at, facts, &(LessonSight){ .chosen = -1, .done = true },
                                 PRINT_WIDTH, &brief, err);

    for (int i = 0, now = 0; ok && i < brief.count; i++) {
        now |= brief.lines[i].kind == LESSON_LINE_NOW;
        if (now)
            text_addf(out, "%s\n", lesson_line(&brief, i));
    }
    lesson_page_free(&brief);
    return ok;
}

/* Answer and explanation of facts as they are after the task: the lines that a finished page has
 * more than an open one. */
static bool add_end(const Lesson *lesson, int at, const LessonFacts *facts, Text *out, Error *err)
{
    LessonSight sight = { .chosen = -1, .done = true, .answered = true };
    LessonPage  open = { .count = 0 }, over = { .count = 0 };
    bool        ok;

    ok = print_answer(lesson, at, facts, out, err) &&
         lesson_page(lesson, at, facts, &(LessonSight){ .chosen = -1 }, PRINT_WIDTH, &open, err) &&
         lesson_page(lesson, at, facts, &sight, PRINT_WIDTH, &over, err);
    for (int i = open.count; ok && i < over.count; i++)
        text_addf(out, "%s\n", lesson_line(&over, i));
    lesson_page_free(&open);
    lesson_page_free(&over);
    return ok;
}

/* The task is done first, as a learner does it: the rest is true of the panes after it. */
static bool add_answers(Session *s, const Lesson *lesson, int at, const LessonFacts *shown,
                        Text *out, Error *err)
{
    const LessonWords *solution = &lesson->steps[at].solution;
    LessonPlay         after = { .facts = { .count = 0 } };
    bool               ok;

    if (!solution->count)
        return add_end(lesson, at, shown, out, err);
    ok = add_solution(s, lesson, at, out, err) &&
         lesson_play(s, lesson, at, solution, &after, err) &&
         add_now(lesson, at, &after.facts, out, err) &&
         add_end(lesson, at, &after.facts, out, err);
    lesson_play_free(&after);
    return ok;
}

/* What a learner may read before the answer, with the hint. */
static bool add_open(const Lesson *lesson, int at, const LessonFacts *facts, Text *out, Error *err)
{
    LessonSight sight = { .chosen = -1, .hint = true };
    LessonPage  page;
    bool        ok = lesson_page(lesson, at, facts, &sight, PRINT_WIDTH, &page, err);

    if (ok)
        add_lines(&page, out);
    lesson_page_free(&page);
    return ok;
}

static bool print_step(Session *s, const Call *call, const Lesson *lesson, int at, Text *out,
                       Error *err)
{
    bool       answers = !call->values[OPT_NO_ANSWERS];
    LessonPlay play = { .facts = { .count = 0 } };
    bool       ok;

    text_addf(out, "\n%d of %d  %s\n\n", at + 1, lesson->count, lesson->steps[at].title);
    ok = lesson_play(s, lesson, at, NULL, &play, err) &&
         add_open(lesson, at, &play.facts, out, err) &&
         add_step_picture(s, call, lesson, at, out, err) &&
         (!answers || add_answers(s, lesson, at, &play.facts, out, err));
    lesson_play_free(&play);
    return ok;
}

static bool print_lesson(Session *s, const Call *call, Text *out, Error *err)
{
    int64_t only = 0;
    Lesson *lesson;
    bool    ok;

    if (call->word_count != 1)
        return error_set(err, ERR_USAGE, "one lesson at a time: attnscope lesson lsh --print");
    lesson = lesson_open_named(s, call->words[0], err);
    ok = lesson && call_int(call, OPT_LESSON_STEP, 1, lesson->count, &only, err);
    if (ok)
        text_addf(out, "%s\n%s (%d minute%s)\n", lesson->title, lesson->summary, lesson->minutes,
                  lesson->minutes == 1 ? "" : "s");
    for (int i = 0; ok && i < lesson->count; i++)
        if (!only || only == i + 1)
            ok = print_step(s, call, lesson, i, out, err);
    lesson_free(lesson);
    return ok;
}

/* ---- checks --------------------------------------------------------------------------- */

static void add_verdict(const Lesson *lesson, int wrong, Text *out)
{
    const LessonEffort *effort = &lesson->effort;

    text_addf(out, "%s: %d step%s, %d wrong; %.1f minutes: %d words, %d keys, %d things to find "
              "out; %.1f s for runs\n", lesson->id, lesson->count, lesson->count == 1 ? "" : "s",
              wrong, lesson_minutes(lesson), effort->words, effort->keys, effort->questions,
              effort->waited);
}

static bool check_lessons(Session *s, const Call *call, Text *out, Error *err)
{
    int wrong = 0;

    if (!call->word_count)
        return error_set(err, ERR_USAGE, "which lesson? attnscope lesson --check FILE.lua");
    for (int i = 0; i < call->word_count; i++) {
        Lesson *lesson = lesson_open_named(s, call->words[i], err);
        int     found;

        if (!lesson)
            return false;
        found = lesson_check(s, lesson, out);
        add_verdict(lesson, found, out);
        wrong += found;
        lesson_free(lesson);
    }
    return !wrong || error_set(err, ERR_DIFFERENCE, "%d thing%s wrong, see above", wrong,
                               wrong == 1 ? " is" : "s are");
}

bool command_lesson(Session *s, const Call *call, Text *out, Error *err)
{
    bool listed = !call->word_count || !strcmp(call->words[0], "list");

    listed &= !call->values[OPT_JUDGE] && !call->values[OPT_PRINT] &&
              !call->values[OPT_LESSON_STEP];
    if (call->values[OPT_NO_ANSWERS] && !call->values[OPT_PRINT])
        return error_set(err, ERR_USAGE, "--no-answers is for --print: attnscope lesson lsh "
                         "--print --no-answers");
    if (listed && (call->values[OPT_DEVICE] || call->values[OPT_PRECISION]))
        return error_set(err, ERR_USAGE, "the list runs nothing, so it has no --device and no "
                         "--precision: attnscope lesson lsh --print --device cuda");
    if (!session_lessons_on(s, call->values[OPT_DEVICE], call->values[OPT_PRECISION], err))
        return false;
    if (call->values[OPT_JUDGE])
        return check_lessons(s, call, out, err);
    if (listed)
        return list(s, call->values[OPT_JSON] != NULL, out, err);
    if (call->values[OPT_JSON])
        return error_set(err, ERR_USAGE, "--json is for the list: attnscope lesson list --json");
    return print_lesson(s, call, out, err);
}
