/* lesson_dock.c -- the words of the lesson that runs, beside the panes or above the form of
 * parameters.
 */
#include <stdio.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/state/panes.h"

/* ---- a step ------------------------------------------------------------------------------- */

static Role role_of(LessonLineKind kind)
{
    switch (kind) {
    case LESSON_LINE_TASK: return ROLE_TITLE;
    case LESSON_LINE_DONE:
    case LESSON_LINE_RIGHT: return ROLE_GOOD;
    case LESSON_LINE_NOW: return ROLE_KEY;
    case LESSON_LINE_QUESTION: return ROLE_TITLE;
    case LESSON_LINE_CHOSEN: return ROLE_SELECT;
    case LESSON_LINE_WRONG: return ROLE_WARN;
    case LESSON_LINE_HINT: return ROLE_DIM;
    default: return ROLE_TEXT;
    }
}

static void draw_page_line(Ui *ui, const LessonPage *page, int index, int y, Area inside)
{
    const LessonLine *line = &page->lines[index];
    Style             style = ui_style(ui, role_of(line->kind));

    if (line->kind == LESSON_LINE_FIELD) {
        const LessonStep *step = &ui->lessons.running->steps[ui->lessons.step];
        int               x = inside.x + 2;

        x += term_text(ui->term, y, x, 8, "answer", ui_style(ui, ROLE_DIM)) + 1;
        if (ui->lessons.sight.answered && !ui->lessons.field.length) {
            term_text(ui->term, y, x, 16, "given before", ui_style(ui, ROLE_DIM));
            return;
        }
        field_draw(&ui->lessons.field, ui->term, y, x, 16, ui_style(ui, ROLE_FIELD));
        if (step->unit)
            term_text(ui->term, y, x + 17, 12, step->unit, ui_style(ui, ROLE_DIM));
        return;
    }
    if (line->kind == LESSON_LINE_CHOSEN)
        term_fill(ui->term, (Area){ y, inside.x, 1, inside.w }, ' ', style);
    term_text(ui->term, y, inside.x, inside.w, lesson_line(page, index), style);
}

/* ---- what stays in sight ----------------------------------------------------------------- */

#define WORDS_LEAST 3 /* lines of words above the rule */

static int first_of(const LessonPage *page, LessonLineKind kind)
{
    int i = 0;

    while (i < page->count && page->lines[i].kind != kind)
        i++;
    return i;
}

int lesson_held(const LessonPage *page, bool asks, int room)
{
    int task = first_of(page, LESSON_LINE_TASK);
    int question = asks ? first_of(page, LESSON_LINE_QUESTION) : page->count;
    int first = task < question ? task : question;

    if (page->count - first + 1 + WORDS_LEAST <= room || question == page->count)
        return first;
    return question;
}

LessonSplit lesson_split(const LessonPage *page, int held, int room, int scroll)
{
    int most = page->count > room ? page->count - room : 0;
    int kept = page->count - held;

    kept = kept > room - 1 - WORDS_LEAST ? room - 1 - WORDS_LEAST : kept;
    scroll = scroll > most ? most : scroll < 0 ? 0 : scroll;
    if (page->count <= room || kept <= 0 || scroll + room >= held + kept)
        return (LessonSplit){ .from = scroll, .words = page->count < room ? page->count : room };
    return (LessonSplit){ .from = scroll, .words = room - 1 - kept, .kept = kept };
}

static const char *foot_words(const Ui *ui)
{
    const Lessons *l = &ui->lessons;

    if (l->over)
        return lessons_following(l) ? "Enter: next lesson" : "Enter: list";
    if (ui->compare.count < l->opened || lesson_instead(ui))
        return "r brings the panes back";
    return lesson_step_is_done(ui) ? "Enter or . goes on" : "";
}

static void draw_dock_foot(Ui *ui, Area area, int below)
{
    const char *text = foot_words(ui);
    int x = area.x + area.w - 2 - term_width(text);

    if (below > 0)
        term_textf(ui->term, area.y + area.h - 1, area.x + 2, 20, ui_style(ui, ROLE_DIM),
                   " %d more: PgDn ", below);
    if (*text)
        term_textf(ui->term, area.y + area.h - 1, x - 1, term_width(text) + 2,
                   ui_style(ui, ROLE_GOOD), " %s ", text);
}

/* Between words that go on and the question, which stays. */
static void draw_rule(Ui *ui, Area inside, int y, int below)
{
    Style dim = ui_style(ui, ROLE_DIM);

    for (int x = 0; x < inside.w; x++)
        term_text(ui->term, y, inside.x + x, 1, "\xe2\x94\x80", dim);
    term_textf(ui->term, y, inside.x + 2, inside.w - 2, dim, " %d more: PgDn ", below);
}

/* Lines from `held` on, an open task or question, stay in sight while the words before them scroll.
 */
static void draw_lesson_page(Ui *ui, Area area, const LessonPage *page, int held)
{
    Lessons    *l = &ui->lessons;
    Area        inside = { area.y + 1, area.x + 2, area.h - 2, area.w - 4 };
    LessonSplit split = lesson_split(page, held, inside.h, l->scroll);
    int         below = page->count - split.from - split.words;

    for (int i = 0; i < split.words; i++)
        draw_page_line(ui, page, split.from + i, inside.y + i, inside);
    for (int i = 0; i < split.kept; i++)
        draw_page_line(ui, page, held + i, inside.y + split.words + 1 + i, inside);
    if (split.kept)
        draw_rule(ui, inside, inside.y + split.words, below - split.kept - 1);
    draw_dock_foot(ui, area, split.kept ? 0 : below);
    l->scroll = split.from;
    l->rows = split.words;
    l->whole = split.kept ? held + split.kept == page->count : below == 0;
}

/* The step's panes cannot be opened. */
static void draw_trouble(Ui *ui, Area area, const char *text)
{
    Area in = { area.y + 2, area.x + 2, area.h - 4, area.w - 4 };
    int  used = term_paragraph(ui->term, in, text, ui_style(ui, ROLE_ERROR));

    in.y += used + 1;
    in.h -= used + 1;
    term_paragraph(ui->term, in, "r brings the panes back as the step showed them.",
                   ui_style(ui, ROLE_TEXT));
}

/* ---- the task above the form of parameters ------------------------------------------------ */

#define FORM_LEAST 9  /* lines of the form, with two parameters in sight */
#define FORM_USUAL 11 /* with four */

static bool brief_page(Ui *ui, int width, LessonPage *page)
{
    Lessons    *l = &ui->lessons;
    LessonFacts facts;
    Error       err = ERROR_INIT;

    lesson_facts(ui, &facts);
    return lesson_brief(l->running, l->step, &facts, &l->sight, width, page, &err);
}

/* Lines of the words above the form: all in a frame, or, where that has no room, the task. */
static int brief_height(Area dock, const LessonPage *page, bool *framed)
{
    int most = dock.h - FORM_LEAST, lines = 1;

    *framed = page->count + 2 <= dock.h - FORM_USUAL;
    if (*framed)
        return page->count + 2;
    while (lines < page->count && lines < most && page->lines[lines].kind == page->lines[0].kind)
        lines++;
    return lines;
}

Area lesson_form_area(Ui *ui, Area dock)
{
    LessonPage page;
    bool       framed;
    int        above = 0;

    if (brief_page(ui, dock.w - 4, &page) && page.count)
        above = brief_height(dock, &page, &framed);
    lesson_page_free(&page);
    return (Area){ dock.y + above, dock.x, dock.h - above, dock.w };
}

static void draw_brief(Ui *ui, Area dock, const char *title)
{
    LessonPage page;
    bool       framed = false;
    int        height = 0;
    Area       above = dock;

    term_fill(ui->term, dock, ' ', (Style){ 0 });
    if (brief_page(ui, dock.w - 4, &page) && page.count)
        height = brief_height(dock, &page, &framed);
    above.h = height;
    if (framed)
        ui_frame(ui, above, title, false);
    for (int i = 0; i < page.count && i < height - 2 * framed; i++)
        draw_page_line(ui, &page, i, dock.y + framed + i,
                       (Area){ dock.y, dock.x + 2, height, dock.w - 4 });
    lesson_page_free(&page);
}

static void draw_closing(Ui *ui, Area area)
{
    Lessons          *l = &ui->lessons;
    const LessonItem *next = lessons_following(l);
    LessonPage        page;
    Error             err = ERROR_INIT;

    term_fill(ui->term, area, ' ', (Style){ 0 });
    ui_frame(ui, area, l->running->title, lessons_focused(ui));
    if (lesson_closing(l->running, l->done, next ? next->lesson->title : NULL, area.w - 4, &page,
                       &err))
        draw_lesson_page(ui, area, &page, page.count);
    else
        draw_trouble(ui, area, err.text);
    lesson_page_free(&page);
}

/* ---- what the panes have to do with the words ----------------------------------------------- */

/* The answer of an open question is a function of the panes, and a pane has another head than the
 * step's, which no word of the step said to choose. */
static const Pane *other_head(const Ui *ui, int64_t *opened)
{
    const Lessons    *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    if (!step->answer_of || step->done || l->sight.answered || lesson_instead(ui) ||
        lesson_step_names_key(step, "[", 1) || lesson_step_names_key(step, "]", 1))
        return NULL;
    for (int i = 0; i < l->opened && i < ui->compare.count; i++) {
        *opened = l->heads[i];
        if (ui->compare.panes[i].spec.head != *opened)
            return &ui->compare.panes[i];
    }
    return NULL;
}

/* Fills what the words say about the panes, as they are now. */
static void lesson_see(Ui *ui)
{
    Lessons    *l = &ui->lessons;
    int64_t     opened = 0;
    const Pane *pane = other_head(ui, &opened);

    l->sight.instead = lesson_instead(ui);
    l->sight.untouched = lesson_untouched(ui);
    l->sight.fault = l->fault[0] ? l->fault : NULL;
    l->sight.moved = NULL;
    if (!pane)
        return;
    snprintf(l->moved, sizeof(l->moved), "The pane shows head %lld, and the step opened head %lld: "
             "the right answer may be another now. Here, r brings back the step's.",
             (long long)pane->spec.head, (long long)opened);
    l->sight.moved = l->moved;
}

/* The open task says to press the action's key. */
static bool lesson_needs(Ui *ui, const Action *action)
{
    const Lessons *l = &ui->lessons;
    size_t         length = strcspn(action->keys, " ");

    return !l->over && !l->sight.done &&
           lesson_task_names_key(&l->running->steps[l->step], action->keys, length);
}

static void lesson_draw(Ui *ui, Area area)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    LessonPage        page = { .count = 0 };
    Error             err = ERROR_INIT;
    char              title[160];

    if (l->over) {
        draw_closing(ui, area);
        return;
    }
    snprintf(title, sizeof(title), "%d/%d %.140s", l->step + 1, l->running->count, step->title);
    term_fill(ui->term, area, ' ', (Style){ 0 });
    ui_frame(ui, area, title, lessons_focused(ui));
    lesson_facts(ui, &facts);
    lesson_see(ui);
    if (l->problem[0])
        draw_trouble(ui, area, l->problem);
    else if (ui_has(ui, SCREEN_PARAMS) && params_area(ui).x < area.w)
        draw_brief(ui, area, title);
    else if (lesson_page(l->running, l->step, &facts, &l->sight, area.w - 4, &page, &err))
        draw_lesson_page(ui, area, &page, lesson_held(&page, !l->sight.answered, area.h - 2));
    else
        draw_trouble(ui, area, err.text);
    lesson_page_free(&page);
}

/* The words above the form have no room for all. */
static bool brief_is_cut(Ui *ui)
{
    Area       all = ui_area(ui);
    LessonPage page = { .count = 0 };
    bool       framed = true;

    if (params_area(ui).x < all.x && brief_page(ui, all.x - 4, &page))
        brief_height(all, &page, &framed);
    lesson_page_free(&page);
    return !framed;
}

/* While a form leaves no room for it above, the message line shows the present state. */
static bool draw_task(Ui *ui, int y)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    Text              now = { 0 };
    Error             err = ERROR_INIT;
    int               x = 1;

    if ((!step->task && !step->now.make && !step->now.fixed) || !brief_is_cut(ui))
        return false;
    lesson_facts(ui, &facts);
    lesson_text(l->running, &step->now, &facts, &now, &err);
    if (l->sight.done)
        x += term_text(ui->term, y, x, 6, "done", ui_style(ui, ROLE_GOOD)) + 2;
    for (char *at = now.data; at && (at = strchr(at, '\n'));)
        *at = ' ';
    x += term_text(ui->term, y, x, ui->term->cols - x - 1, text_str(&now),
                   ui_style(ui, ROLE_KEY)) + 2;
    if (step->task && !l->sight.done && x + 10 < ui->term->cols)
        term_text(ui->term, y, x, ui->term->cols - x - 1, step->task, ui_style(ui, ROLE_TITLE));
    text_free(&now);
    return true;
}

const Screen screen_lesson = {
    .mode = "LESSON",
    .scope = IN_LESSON,
    .draw = lesson_draw,
    .key = lesson_key,
    .hint = lesson_hint,
    .needs = lesson_needs,
    .close = lessons_close,
    .line = draw_task,
    .poll = lesson_poll,
    .wake_fd = lesson_wake_fd,
};
