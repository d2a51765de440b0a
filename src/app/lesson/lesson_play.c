/* lesson_play.c -- see lesson_play.h. */
#include "app/lesson/lesson_play.h"

#include <stdio.h>
#include <string.h>

#include "app/command/command_parts.h"

/* Retained; NULL where it failed. */
static Result *run(Session *s, const Request *request, Error *err)
{
    Result *result = session_run(s, request, err);

    if (!result || result->run->err.code == ERR_NONE)
        return result;
    *err = result->run->err;
    result_release(result);
    return NULL;
}

bool lesson_plan(Session *s, const LessonCall *made, FigurePlan *plan, Error *err)
{
    if (!call_load_input(s, &made->call, err) || !figure_plan_make(s, &made->call, plan, err))
        return false;
    if (plan->count > LESSON_PANES_MOST)
        return error_set(err, ERR_USAGE, "more than %d panes", LESSON_PANES_MOST);
    for (int i = 0; i < plan->count; i++) {
        plan->panels[i].request.quality = session_input(s)->n <= LESSON_QUALITY_TO;
        plan->panels[i].sorted |= made->call.values[OPT_SORTED] != NULL;
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

/* Where the explorer puts the cursor: where the lesson says, else in the middle. */
static bool play_cursor(const LessonWords *words, LessonFact *fact, Error *err)
{
    Error       none = ERROR_INIT; /* a pane with a plot has no cursor */
    const View *view = result_view(fact->result, fact->view, &none);

    fact->query = fact->key = -1;
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
    Result     *result = run(s, &panel->request, err);

    if (!result)
        return false;
    snprintf(view, sizeof(out->views[0]), "%s", panel->view);
    *fact = (LessonFact){ .result = result,
                          .measured = panel->request.measure ? &result->record : NULL,
                          .view = view, .head = panel->head > 0 ? panel->head : head,
                          .sorted = panel->sorted };
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

static bool play_run(Session *s, const Lesson *lesson, const LessonRun *of, LessonPlay *out,
                     Error *err)
{
    Request request = REQUEST_INIT;
    Result *result = NULL;

    if (lesson_run_request(s, lesson, of, &request, err))
        result = run(s, &request, err);
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
        ok = play_run(s, lesson, &of->runs[i], out, err);
    return ok || error_prefix(err, "%s: step %d", lesson->id, step + 1);
}

void lesson_play_free(LessonPlay *play)
{
    for (int i = 0; i < play->facts.count; i++)
        result_release(play->facts.items[i].result);
    *play = (LessonPlay){ .facts = { .count = 0 } };
}
