/* lesson_draw.c -- the dock of a lesson that runs, and the list of all. */
#include <stdio.h>
#include <string.h>

#include "ui/shell/explorer.h"

#define DOCK_NARROW 44
#define DOCK_WIDE   60
#define DOCK_WIDE_FROM 140
#define BOTH_FROM   76 /* columns from which words and panes stand side by side */

int lesson_width(const Ui *ui)
{
    int cols = ui->term->cols;

    if (cols < BOTH_FROM)
        return ui->lessons.focused ? cols : 0;
    return cols < DOCK_WIDE_FROM ? DOCK_NARROW : DOCK_WIDE;
}

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

static void draw_line(Ui *ui, const LessonPage *page, int index, int y, Area inside)
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

/* Where the reader wants to be: the end where something was just said. */
static void bound_scroll(Lessons *l, int lines, int room)
{
    int most = lines > room ? lines - room : 0;

    l->scroll = l->scroll > most ? most : l->scroll;
    l->scroll = l->scroll < 0 ? 0 : l->scroll;
}

static void draw_foot(Ui *ui, Area area, int below)
{
    Lessons    *l = &ui->lessons;
    const char *text = ui->compare.count < l->opened ? "r brings the panes back"
                       : !lesson_step_is_done(ui)   ? ""
                       : l->step + 1 < l->running->count ? "Enter or . goes on"
                                                         : "Enter or . ends the lesson";
    int x = area.x + area.w - 2 - term_width(text);

    if (below > 0)
        term_textf(ui->term, area.y + area.h - 1, area.x + 2, 20, ui_style(ui, ROLE_DIM),
                   " %d more: PgDn ", below);
    if (*text)
        term_textf(ui->term, area.y + area.h - 1, x - 1, term_width(text) + 2,
                   ui_style(ui, ROLE_GOOD), " %s ", text);
}

static void draw_words(Ui *ui, Area area, const LessonPage *page)
{
    Lessons *l = &ui->lessons;
    Area     inside = { area.y + 1, area.x + 2, area.h - 2, area.w - 4 };
    int      from;

    bound_scroll(l, page->count, inside.h);
    from = l->scroll;
    for (int i = 0; i < inside.h && from + i < page->count; i++)
        draw_line(ui, page, from + i, inside.y + i, inside);
    draw_foot(ui, area, page->count - from - inside.h);
}

/* What the step was to show does not run. */
static void draw_trouble(Ui *ui, Area area, const char *text)
{
    Area in = { area.y + 2, area.x + 2, area.h - 4, area.w - 4 };
    int  used = term_paragraph(ui->term, in, text, ui_style(ui, ROLE_ERROR));

    in.y += used + 1;
    in.h -= used + 1;
    term_paragraph(ui->term, in, "r brings the panes back as the step showed them.",
                   ui_style(ui, ROLE_TEXT));
}

void lesson_draw(Ui *ui, Area area)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    LessonPage        page;
    Error             err = ERROR_INIT;
    char              title[160];

    snprintf(title, sizeof(title), "%d/%d %.140s", l->step + 1, l->running->count, step->title);
    term_fill(ui->term, area, ' ', (Style){ 0 });
    term_frame(ui->term, area, title, lessons_focused(ui),
               ui_style(ui, lessons_focused(ui) ? ROLE_FOCUS : ROLE_FRAME),
               ui_style(ui, ROLE_TITLE));
    lesson_facts(ui, &facts);
    if (l->problem[0])
        draw_trouble(ui, area, l->problem);
    else if (lesson_page(l->running, l->step, &facts, &l->sight, area.w - 4, &page, &err))
        draw_words(ui, area, &page);
    else
        draw_trouble(ui, area, err.text);
    if (!l->problem[0])
        lesson_page_free(&page);
}

bool lesson_line_now(Ui *ui, int y)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    Text              now = { 0 };
    Error             err = ERROR_INIT;
    int               x = 1;

    if (!step->task && !step->now.make && !step->now.fixed)
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

/* ---- the list -------------------------------------------------------------------------------- */

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

    term_frame(ui->term, area, item->lesson ? item->lesson->title : item->id, false,
               ui_style(ui, ROLE_FRAME), ui_style(ui, ROLE_TITLE));
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

void lessons_draw(Ui *ui, Area area)
{
    Lessons *l = &ui->lessons;
    int      width = area.w < DOCK_WIDE_FROM ? area.w * 5 / 8 : area.w / 2, room = area.h - 2;
    Area     list = { area.y, area.x, area.h, width };

    if (!l->items) /* a saved session may begin here */
        lessons_read(ui);
    term_frame(ui->term, list, "Lessons", true, ui_style(ui, ROLE_FOCUS),
               ui_style(ui, ROLE_TITLE));
    l->top = l->cursor < l->top ? l->cursor : l->cursor >= l->top + room ? l->cursor - room + 1
                                                                        : l->top;
    for (int i = 0; i < room && l->top + i < l->count; i++)
        draw_item(ui, l->top + i, list.y + 1 + i, list);
    if (l->count)
        draw_card(ui, (Area){ area.y, area.x + width, area.h, area.w - width });
    else
        term_text(ui->term, area.y + 2, area.x + 3, width - 6, "there is no lesson",
                  ui_style(ui, ROLE_DIM));
}
