/* lessons.c -- the list of lessons, the one that runs, and its keys; see lessons.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

/* ---- reading ---------------------------------------------------------------------------- */

/* Moves the cursor to the first unfinished lesson from `from` on, if there is one. */
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

/* Reads the list of lessons and what is done of each. */
static void lessons_read(Ui *ui)
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

const LessonItem *lessons_at(Ui *ui, int index)
{
    if (!ui->lessons.items)
        lessons_read(ui);
    return index < ui->lessons.count ? &ui->lessons.items[index] : NULL;
}

void lessons_topics(const LessonItem *item, Text *out)
{
    const Lesson *lesson = item->lesson;

    text_add(out, item->id);
    if (!lesson)
        return;
    text_addf(out, "\n%s\n%s\n%s", lesson->title, lesson->summary,
              lesson->recap ? lesson->recap : "");
    for (int i = 0; i < lesson->count; i++)
        text_addf(out, "\n%s", lesson->steps[i].title);
}

/* By name, or by the number in the list. */
static Lesson *listed(Ui *ui, const char *name)
{
    Lessons *l = &ui->lessons;
    int      at = lesson_ordinal(name, l->count) - 1;

    for (int i = 0; i < l->count && at < 0; i++)
        if (!strcmp(name, l->items[i].id))
            at = i;
    if (at < 0)
        return NULL;
    l->cursor = at;
    return l->items[at].lesson;
}

/* Puts a lesson that was read by a path, or again, into the list; the cursor goes to it.  False: no
 * memory, and it is closed. */
static bool list_lesson(Ui *ui, Lesson *lesson)
{
    Lessons    *l = &ui->lessons;
    const char *id = lesson->id;
    LessonItem *items;
    int         at = 0;

    while (at < l->count && strcmp(id, l->items[at].id) != 0)
        at++;
    if (at == l->count) {
        items = realloc(l->items, (size_t)(l->count + 1) * sizeof(*items));
        if (!items) {
            lesson_free(lesson);
            ui_say(ui, ROLE_ERROR, "not enough memory for the lessons");
            return false;
        }
        l->items = items;
        l->items[l->count++] = (LessonItem){ .lesson = NULL };
    }
    if (l->running && l->running == l->items[at].lesson)
        l->running = NULL;
    lesson_free(l->items[at].lesson);
    l->items[at] = (LessonItem){ .lesson = lesson };
    memcpy(l->items[at].id, id, sizeof(lesson->id));
    l->cursor = at;
    return true;
}

/* ---- one begins and ends ------------------------------------------------------------------ */

/* Saves the workspace, to restore it after the lesson. */
static void remember_workspace(Ui *ui)
{
    Lessons *l = &ui->lessons;
    Error    err = ERROR_INIT;

    if (l->before || !(l->before = calloc(1, sizeof(*l->before))))
        return;
    if (!workspace_take(ui, l->before, &err)) {
        ui_say(ui, ROLE_WARN, "%s: what is open now will not come back", err.text);
        workspace_free(l->before);
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
        if (!list_lesson(ui, lesson))
            return false;
    }
    if (step >= lesson->count) {
        ui_say(ui, ROLE_ERROR, "%s has %d steps, there is no step %d", lesson->id, lesson->count,
               step + 1);
        return false;
    }
    remember_workspace(ui);
    progress = progress_of(&l->progress, lesson->id);
    l->running = lesson;
    l->form_area = lesson_form_area;
    l->again = 0;
    l->done = progress.done;
    l->shown = NULL;
    l->at = NULL;
    lesson_show(ui, step >= 0 ? step : progress.at < lesson->count ? progress.at : 0);
    return true;
}

static bool all_done(const Lessons *l)
{
    uint32_t all = (uint32_t)((UINT64_C(1) << l->running->count) - 1);

    return (l->done & all) == all;
}

static void save_progress(Ui *ui)
{
    Lessons       *l = &ui->lessons;
    LessonProgress item = { .at = l->over && all_done(l) ? 0 : l->step, .done = l->done };
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
    save_progress(ui);
    l->running = NULL;
    l->shown = NULL;
    lesson_drop_runs(ui);
    if (l->before) {
        if (!workspace_show(ui, l->before, NULL, NULL, &err))
            ui_say(ui, ROLE_ERROR, "what was open before does not come back: %s", err.text);
        history_clear(ui);
        workspace_free(l->before);
        free(l->before);
        l->before = NULL;
    }
}

/* To what was open before the list. */
static void leave_list(Ui *ui)
{
    lessons_leave(ui);
    ui->screen = ui->compare.count ? (ScreenId)ui->lessons.behind : SCREEN_BROWSE;
}

static void to_list(Ui *ui)
{
    if (!ui->lessons.running && ui->screen != SCREEN_LESSONS)
        ui->lessons.behind = ui->screen;
    ui->screen = SCREEN_LESSONS;
}

void lessons_close(Ui *ui)
{
    lessons_leave(ui);
    to_list(ui);
    ui_say(ui, ROLE_DIM, "left; Enter goes on where you were");
}

static void lessons_end(Ui *ui)
{
    Lessons *l = &ui->lessons;

    lesson_drop_runs(ui);
    session_free(l->side);
    text_free(&l->requests);
    text_free(&l->explained);
    for (int i = 0; i < l->count; i++)
        lesson_free(l->items[i].lesson);
    free(l->items);
    if (l->before)
        workspace_free(l->before);
    free(l->before);
    *l = (Lessons){ .count = 0 };
}

/* ---- steps -------------------------------------------------------------------------------- */

/* A task that was done at an earlier visit stands open above new panes, and the step is done. */
bool lesson_step_is_done(const Ui *ui)
{
    const Lessons    *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    return l->done >> l->step & 1 ||
           ((!step->done || l->sight.done) && (!step->ask || l->sight.answered));
}

void lesson_finish(Ui *ui)
{
    Lessons *l = &ui->lessons;

    if (l->done >> l->step & 1 || !lesson_step_is_done(ui))
        return;
    l->done |= UINT32_C(1) << l->step;
    l->scroll = LESSON_END;
    save_progress(ui);
    ui->dirty = true;
}

const LessonItem *lessons_following(const Lessons *l)
{
    for (int i = 1; i < l->count && !l->running->file; i++) {
        const LessonItem *item = &l->items[(l->cursor + i) % l->count];
        LessonProgress    progress = progress_of(&l->progress, item->id);

        if (item->lesson && progress_steps(&progress) < item->lesson->count)
            return item;
    }
    return NULL;
}

/* The page behind the last step. */
static void close_lesson(Ui *ui)
{
    Lessons *l = &ui->lessons;

    l->over = true;
    l->focused = true;
    l->scroll = 0;
    save_progress(ui);
}

/* Begins the lesson after this one, or shows the list where there is none. */
static void lessons_next(Ui *ui)
{
    Lessons          *l = &ui->lessons;
    const LessonItem *next = lessons_following(l);
    bool              own = l->running->file != NULL;

    if (next && lessons_begin(ui, next->id, -1))
        return;
    lessons_leave(ui);
    to_list(ui);
    if (!own)
        to_open_lesson(l, l->cursor);
}

void action_lesson_next(Ui *ui)
{
    Lessons *l = &ui->lessons;

    if (l->over) {
        lessons_next(ui);
        return;
    }
    lesson_finish(ui);
    if (l->step + 1 == l->running->count) {
        close_lesson(ui);
        return;
    }
    lesson_show(ui, l->step + 1);
    save_progress(ui);
}

void action_lesson_skip(Ui *ui)
{
    action_lesson_next(ui);
}

void action_lesson_back(Ui *ui)
{
    if (ui->lessons.over) {
        ui->lessons.over = false;
        ui->lessons.scroll = 0;
        return;
    }
    if (ui->lessons.step == 0) {
        ui_say(ui, ROLE_DIM, "this is the first step");
        return;
    }
    lesson_show(ui, ui->lessons.step - 1);
    save_progress(ui);
}

void action_lesson_hint(Ui *ui)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    if (l->over || (!step->hint.fixed && !step->hint.make))
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

void action_lesson_panes(Ui *ui)
{
    lessons_passes(ui, 1);
}

/* ---- the list ------------------------------------------------------------------------------- */

void action_screen_lessons(Ui *ui)
{
    ui->overlay_count = 0;
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
    to_list(ui);
}

void action_lesson_list(Ui *ui)
{
    lessons_read(ui);
    ui->overlay_count = 0;
    to_list(ui);
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

/* Progress would be lost, so the key must be pressed twice. */
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
        save_progress(ui);
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

void lessons_choose(Ui *ui, int by)
{
    Lessons *l = &ui->lessons;

    l->again = 0;
    l->cursor += by;
    l->cursor = l->cursor >= l->count ? l->count - 1 : l->cursor;
    l->cursor = l->cursor < 0 ? 0 : l->cursor;
}

static bool item_has(const LessonItem *item, const char *words)
{
    Text topics = { 0 };
    bool has;

    lessons_topics(item, &topics);
    has = strcasestr(text_str(&topics), words) != NULL;
    text_free(&topics);
    return has;
}

void lessons_seek(Ui *ui, int way)
{
    Lessons *l = &ui->lessons;

    for (int i = 1; *l->sought && i <= l->count; i++) {
        int at = (int)ui_round(l->cursor, way * i, l->count);

        if (item_has(&l->items[at], l->sought)) {
            lessons_choose(ui, at - l->cursor);
            return;
        }
    }
    if (*l->sought)
        ui_say(ui, ROLE_WARN, "no lesson is about '%s'; Ctrl-P looks among everything", l->sought);
    else
        ui_say(ui, ROLE_DIM, "nothing is sought yet: / finds a lesson by a word of it");
}

static void lessons_search(Ui *ui, const char *text)
{
    if (*text)
        snprintf(ui->lessons.sought, sizeof(ui->lessons.sought), "%s", text);
    lessons_seek(ui, 1);
}

/* ---- the list, drawn ------------------------------------------------------------------------ */

#define WIDE_FROM 140 /* columns from which the list and the card share them evenly */

static void draw_item(Ui *ui, int index, int y, Area area)
{
    Lessons          *l = &ui->lessons;
    const LessonItem *item = &l->items[index];
    LessonProgress    progress = progress_of(&l->progress, item->id);
    Style             style = ui_style(ui, index == l->cursor ? ROLE_SELECT : ROLE_TEXT);
    char              state[32] = "unreadable";
    int               done = progress_steps(&progress), width;

    if (item->lesson && done >= item->lesson->count)
        snprintf(state, sizeof(state), "done");
    else if (item->lesson)
        snprintf(state, sizeof(state), "%d/%d", done, item->lesson->count);
    if (index == l->cursor)
        term_fill(ui->term, (Area){ y, area.x + 1, 1, area.w - 2 }, ' ', style);
    width = area.w - 9 - term_width(state);
    term_textf(ui->term, y, area.x + 2, 3, index == l->cursor ? style : ui_style(ui, ROLE_DIM),
               "%2d", index + 1);
    term_text(ui->term, y, area.x + 6, width, item->lesson ? item->lesson->title : item->id, style);
    term_text(ui->term, y, area.x + area.w - 2 - term_width(state), 12, state,
              index == l->cursor ? style
                                 : ui_style(ui, !strcmp(state, "done") ? ROLE_GOOD : ROLE_DIM));
}

static void draw_steps(Ui *ui, const Lesson *lesson, const LessonProgress *progress, Area area)
{
    for (int i = 0; i < lesson->count && i < area.h; i++) {
        bool done = progress->done >> i & 1;

        term_text(ui->term, area.y + i, area.x, 2, done ? "\xe2\x97\x8f" : "\xe2\x97\x8b",
                  ui_style(ui, done ? ROLE_GOOD : ROLE_DIM));
        term_textf(ui->term, area.y + i, area.x + 2, area.w - 2, ui_style(ui, ROLE_TEXT), "%d %s",
                   i + 1, lesson->steps[i].title);
    }
}

static void draw_card(Ui *ui, Area area)
{
    Lessons          *l = &ui->lessons;
    const LessonItem *item = &l->items[l->cursor];
    LessonProgress    progress = progress_of(&l->progress, item->id);
    Area              in = { area.y + 1, area.x + 2, area.h - 2, area.w - 4 };
    char              about[320];
    int               used;

    ui_frame(ui, area, item->lesson ? item->lesson->title : item->id, false);
    if (!item->lesson) {
        term_paragraph(ui->term, in, item->problem, ui_style(ui, ROLE_ERROR));
        return;
    }
    used = term_paragraph(ui->term, in, item->lesson->summary, ui_style(ui, ROLE_TEXT));
    snprintf(about, sizeof(about), "about %d minutes; %s", item->lesson->minutes,
             item->lesson->file ? item->lesson->file : "comes with the program");
    used += 2 + term_paragraph(ui->term, (Area){ in.y + used + 1, in.x, 3, in.w }, about,
                               ui_style(ui, ROLE_DIM));
    draw_steps(ui, item->lesson, &progress, (Area){ in.y + used, in.x, in.h - used, in.w });
}

static void lessons_draw(Ui *ui, Area area)
{
    Lessons *l = &ui->lessons;
    int      width = area.w < WIDE_FROM ? area.w * 5 / 8 : area.w / 2, room = area.h - 2;
    Area     list = { area.y, area.x, area.h, width };

    if (!l->items) /* a saved session may begin here */
        lessons_read(ui);
    ui_frame(ui, list, "Lessons", true);
    l->top = ui_scroll(l->top, l->cursor, room);
    for (int i = 0; i < room && l->top + i < l->count; i++)
        draw_item(ui, l->top + i, list.y + 1 + i, list);
    ui_more(ui, list.y + list.h - 1, list.x + 2, l->top, l->count - l->top - room);
    if (l->count)
        draw_card(ui, (Area){ area.y, area.x + width, area.h, area.w - width });
    else
        term_text(ui->term, area.y + 2, area.x + 3, width - 6, "there is no lesson",
                  ui_style(ui, ROLE_DIM));
}

const Screen screen_lessons = {
    .tab = "5 Lessons",
    .mode = "LESSONS",
    .scope = IN_LESSONS,
    .draw = lessons_draw,
    .find = lessons_search,
    .close = leave_list,
    .end = lessons_end,
};
