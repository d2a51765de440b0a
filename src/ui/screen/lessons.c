/* lessons.c -- the list of lessons, the one that runs, and its keys; see lessons.h. */
#include "ui/screen/lessons.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/state/saved.h"
#include "ui/term/keys.h"

/* ---- reading ---------------------------------------------------------------------------- */

/* The cursor goes to the first lesson from there that is not done, if there is one. */
static void to_open_lesson(Lessons *l, int from)
{
    for (int i = 0; i < l->count; i++) {
        const LessonItem *item = &l->items[(from + i) % l->count];
        LessonProgress    progress = progress_of(&l->progress, item->id);

        if (item->lesson && progress_steps(&progress) < item->lesson->count) {
            l->cursor = (from + i) % l->count;
            return;
        }
    }
}

void lessons_read(Ui *ui)
{
    Lessons   *l = &ui->lessons;
    LessonList list;
    Error      err = ERROR_INIT;

    if (!l->unsaved)
        progress_read(&l->progress);
    if (l->items)
        return;
    if (!lessons_find(&list, &err) || !(l->items = calloc((size_t)list.count + 1,
                                                          sizeof(*l->items)))) {
        ui_say(ui, ROLE_ERROR, "%s", err.code ? err.text : "not enough memory for the lessons");
        lessons_free(&list);
        return;
    }
    for (int i = 0; i < list.count; i++) {
        LessonItem *item = &l->items[l->count++];

        memcpy(item->id, list.files[i].id, sizeof(item->id));
        item->lesson = lesson_open(ui->session, &list.files[i], &err);
        if (!item->lesson)
            snprintf(item->problem, sizeof(item->problem), "%s", err.text);
    }
    lessons_free(&list);
    to_open_lesson(l, 0);
    if (l->progress.damaged)
        ui_say(ui, ROLE_WARN, "the file of what was done is damaged; what it still says counts");
}

static Lesson *listed(Ui *ui, const char *name)
{
    Lessons *l = &ui->lessons;

    for (int i = 0; i < l->count; i++)
        if (!strcmp(name, l->items[i].id)) {
            l->cursor = i;
            return l->items[i].lesson;
        }
    return NULL;
}

/* ---- one begins and ends ------------------------------------------------------------------ */

bool lessons_docked(const Ui *ui)
{
    return ui->lessons.running && ui->screen != SCREEN_BROWSE && ui->screen != SCREEN_LESSONS;
}

bool lessons_focused(const Ui *ui)
{
    return lessons_docked(ui) && (ui->lessons.focused || !ui->compare.count);
}

/* What is open, for coming back. */
static void remember(Ui *ui)
{
    Lessons *l = &ui->lessons;
    Error    err = ERROR_INIT;

    if (l->before || !(l->before = calloc(1, sizeof(*l->before))))
        return;
    if (!saved_take(ui, l->before, &err)) {
        ui_say(ui, ROLE_WARN, "%s: what is open now will not come back", err.text);
        saved_free(l->before);
        free(l->before);
        l->before = NULL;
    }
}

bool lessons_begin(Ui *ui, const char *name, int step)
{
    Lessons       *l = &ui->lessons;
    Lesson        *lesson;
    LessonProgress progress;
    Error          err = ERROR_INIT;

    lessons_read(ui);
    lesson = listed(ui, name);
    if (!lesson) {
        lesson = lesson_open_named(ui->session, name, &err);
        if (!lesson) {
            ui_say(ui, ROLE_ERROR, "%s", err.text);
            return false;
        }
        if (l->running == l->named)
            l->running = NULL;
        lesson_free(l->named);
        l->named = lesson;
    }
    if (step >= lesson->count) {
        ui_say(ui, ROLE_ERROR, "%s has %d steps, there is no step %d", lesson->id, lesson->count,
               step + 1);
        return false;
    }
    remember(ui);
    progress = progress_of(&l->progress, lesson->id);
    l->running = lesson;
    l->again = 0;
    l->done = progress.done;
    l->shown = NULL;
    lesson_show(ui, step >= 0 ? step : progress.at < lesson->count ? progress.at : 0);
    return true;
}

static void keep(Ui *ui)
{
    Lessons       *l = &ui->lessons;
    LessonProgress item = { .at = l->step, .done = l->done };
    Error          err = ERROR_INIT;

    memcpy(item.id, l->running->id, sizeof(item.id));
    if (progress_save(&item, &err)) {
        l->unsaved = false;
        progress_read(&l->progress);
        return;
    }
    if (!l->unsaved)
        ui_say(ui, ROLE_WARN, "progress lasts only until you quit: %s", err.text);
    l->unsaved = true;
    progress_put(&l->progress, &item);
}

void lessons_leave(Ui *ui)
{
    Lessons *l = &ui->lessons;
    Error    err = ERROR_INIT;

    if (!l->running)
        return;
    keep(ui);
    l->running = NULL;
    l->shown = NULL;
    lesson_drop_runs(ui);
    if (l->before) {
        if (!saved_show(ui, l->before, NULL, NULL, &err))
            ui_say(ui, ROLE_ERROR, "what was open before does not come back: %s", err.text);
        history_clear(ui);
        saved_free(l->before);
        free(l->before);
        l->before = NULL;
    }
}

void lessons_leave_said(Ui *ui)
{
    lessons_leave(ui);
    ui->screen = SCREEN_LESSONS;
    ui_say(ui, ROLE_DIM, "left; Enter goes on where you were");
}

void lessons_close(Ui *ui)
{
    Lessons *l = &ui->lessons;

    lesson_drop_runs(ui);
    session_free(l->side);
    for (int i = 0; i < l->count; i++)
        lesson_free(l->items[i].lesson);
    free(l->items);
    lesson_free(l->named);
    if (l->before)
        saved_free(l->before);
    free(l->before);
    *l = (Lessons){ .count = 0 };
}

/* ---- steps -------------------------------------------------------------------------------- */

bool lesson_step_is_done(const Ui *ui)
{
    const Lessons    *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    return (!step->done || l->sight.done) && (!step->ask || l->sight.answered);
}

void lesson_finish(Ui *ui)
{
    Lessons *l = &ui->lessons;

    if (!lesson_step_is_done(ui) || l->done >> l->step & 1)
        return;
    l->done |= UINT32_C(1) << l->step;
    l->scroll = LESSON_END;
    keep(ui);
    ui->dirty = true;
}

/* All steps are behind: back to the list, on the next lesson that is not done. */
static void end(Ui *ui)
{
    Lessons *l = &ui->lessons;
    Lesson  *lesson = l->running;
    int      done = 0;

    for (int i = 0; i < lesson->count; i++)
        done += l->done >> i & 1;
    l->step = done == lesson->count ? 0 : l->step;
    lessons_leave(ui);
    ui->screen = SCREEN_LESSONS;
    if (done == lesson->count && lesson != l->named)
        to_open_lesson(l, l->cursor);
    ui_say(ui, done == lesson->count ? ROLE_GOOD : ROLE_DIM, done == lesson->count
           ? "%s: all %d steps done" : "%s: %d of %d steps done", lesson->title, done,
           lesson->count);
}

void action_lesson_next(Ui *ui)
{
    Lessons *l = &ui->lessons;

    lesson_finish(ui);
    if (l->step + 1 == l->running->count)
        end(ui);
    else
        lesson_show(ui, l->step + 1);
    if (l->running)
        keep(ui);
}

void action_lesson_back(Ui *ui)
{
    if (ui->lessons.step == 0) {
        ui_say(ui, ROLE_DIM, "this is the first step");
        return;
    }
    lesson_show(ui, ui->lessons.step - 1);
    keep(ui);
}

void action_lesson_hint(Ui *ui)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    if (!step->hint.fixed && !step->hint.make)
        ui_say(ui, ROLE_DIM, "there is no hint for this step");
    else
        l->sight.hint = !l->sight.hint;
    l->scroll = LESSON_END;
}

void action_lesson_reset(Ui *ui)
{
    ui->lessons.shown = NULL;
    lesson_show(ui, ui->lessons.step);
    ui_say(ui, ROLE_DIM, "the panes are as the step showed them");
}

bool lessons_passes(Ui *ui, int direction)
{
    Lessons *l = &ui->lessons;
    Compare *c = &ui->compare;
    int      last = direction > 0 ? c->count - 1 : 0;

    if (l->focused) {
        l->focused = false;
        c->focus = direction > 0 || !c->count ? 0 : c->count - 1;
        return true;
    }
    l->focused = c->focus == last || !c->count;
    return l->focused;
}

void action_lesson_panes(Ui *ui)
{
    lessons_passes(ui, 1);
}

/* ---- the list ------------------------------------------------------------------------------- */

void action_screen_lessons(Ui *ui)
{
    ui->layer_count = 0;
    if (ui->lessons.running && ui->screen == SCREEN_LESSONS) {
        ui->screen = SCREEN_COMPARE; /* back to the one that runs */
        ui->lessons.shown = NULL;
        lesson_show(ui, ui->lessons.step);
        return;
    }
    if (lessons_docked(ui) && !ui->lessons.focused) {
        ui->lessons.focused = true;
        return;
    }
    lessons_read(ui);
    ui->screen = SCREEN_LESSONS;
}

void action_lesson_list(Ui *ui)
{
    lessons_read(ui);
    ui->layer_count = 0;
    ui->screen = SCREEN_LESSONS;
}

void action_lesson_open(Ui *ui)
{
    Lessons *l = &ui->lessons;

    if (l->cursor >= l->count)
        return;
    if (l->items[l->cursor].lesson)
        lessons_begin(ui, l->items[l->cursor].id, -1);
    else
        ui_say(ui, ROLE_ERROR, "%s", l->items[l->cursor].problem);
}

/* What was done would be lost: asked for twice. */
void action_lesson_again(Ui *ui)
{
    Lessons       *l = &ui->lessons;
    LessonProgress progress;

    if (l->cursor >= l->count || !l->items[l->cursor].lesson)
        return;
    progress = progress_of(&l->progress, l->items[l->cursor].id);
    if (progress.done && l->again != l->cursor + 1) {
        l->again = l->cursor + 1;
        ui_say(ui, ROLE_WARN, "r once more forgets what was done of it (%d of %d steps)",
               progress_steps(&progress), l->items[l->cursor].lesson->count);
        return;
    }
    if (lessons_begin(ui, l->items[l->cursor].id, 0)) {
        l->done = 0;
        lesson_show(ui, 0);
        keep(ui);
    }
}

void lessons_typed(Ui *ui, const char *name)
{
    if (*name)
        lessons_begin(ui, name, -1);
    else
        action_lesson_list(ui);
}

void lessons_names(void (*each)(void *context, const char *name), void *context)
{
    LessonList list;

    if (!lessons_find(&list, NULL))
        return;
    for (int i = 0; i < list.count; i++)
        each(context, list.files[i].id);
    lessons_free(&list);
}

static void choose(Ui *ui, int by)
{
    Lessons *l = &ui->lessons;

    l->again = 0;
    l->cursor += by;
    l->cursor = l->cursor >= l->count ? l->count - 1 : l->cursor;
    l->cursor = l->cursor < 0 ? 0 : l->cursor;
}

void action_lessons_up(Ui *ui)
{
    choose(ui, -1);
}
void action_lessons_down(Ui *ui)
{
    choose(ui, 1);
}
void action_lessons_first(Ui *ui)
{
    choose(ui, -ui->lessons.count);
}
void action_lessons_last(Ui *ui)
{
    choose(ui, ui->lessons.count);
}
