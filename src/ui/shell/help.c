/* help.c -- what works here, or everything by name: a list to filter and run (choices.h). */
#include <stdio.h>
#include <string.h>

#include "ui/screen/browse.h"
#include "ui/shell/choices.h"
#include "ui/state/panes.h"

#define ROOMY 90 /* columns from which the longest name of a mechanism fits beside words */

/* The line, or the next one in that direction that is no heading. */
static int settled(const Choices *list, int line, int by)
{
    line = line >= list->count ? list->count - 1 : line;
    line = line < 0 ? 0 : line;
    if (line < list->count && list->items[line].heading)
        line += by < 0 && line > 0 ? -1 : 1;
    return line;
}

#define WHOLE_LINES 2 /* at the bottom of the window: all of the chosen line's text */
#define ROOMY_ROWS  16 /* of a window that has a row to spare below the filter */

static Area help_area(const Ui *ui)
{
    int width = ui->term->cols - 4 < 100 ? ui->term->cols - 4 : 100, high = ui_whole(ui).h;
    int spare = high < ROOMY_ROWS + 2 ? 0 : 1; /* the frame below is seen where there is room */

    return (Area){ 1 + spare, (ui->term->cols - width) / 2, high - 2 * spare, width };
}

/* An empty one above the chosen line's whole text. */
static int spare_row(Area area)
{
    return area.h >= ROOMY_ROWS;
}

/* Rows of the window, from its top. */
typedef struct HelpRows {
    int first; /* line of the list */
    int room;  /* lines that the list has even above the chosen line's whole text */
    int all;   /* and without that text */
} HelpRows;

static HelpRows help_rows(Area area)
{
    int first = area.h < ROOMY_ROWS ? 2 : 3, all = area.h - 1 - first;

    return (HelpRows){ first, all - WHOLE_LINES - spare_row(area), all };
}

static int keys_width(const Ui *ui, const Choices *list, Area area)
{
    return !ui->help.palette && !list->elsewhere ? 14 : area.w >= ROOMY ? 30 : 20;
}

/* Lines of the chosen line's whole text, where the list cuts it off. */
static int whole_lines(Ui *ui, const Choices *list, Area area, Term *term)
{
    char keys[128], text[512];
    Area box = { 0, area.x + 2, WHOLE_LINES, area.w - 4 };

    if (!list->count)
        return 0;
    choice_text(ui, &list->items[ui->help.line], keys, sizeof(keys), text, sizeof(text));
    if (term_width(text) <= area.w - keys_width(ui, list, area) - 5)
        return 0;
    box.h = term_paragraph(NULL, box, text, (Style){ 0 });
    box.y = area.y + area.h - 1 - box.h;
    return term ? term_paragraph(term, box, text, ui_style(ui, ROLE_DIM)) : box.h;
}

/* Rows of the list: all, or those above the whole text. */
static int list_rows(Ui *ui, const Choices *list, Area area)
{
    int whole = whole_lines(ui, list, area, NULL);

    return help_rows(area).all - (whole ? whole + spare_row(area) : 0);
}

static void draw_choice(Ui *ui, const Choices *list, int line, Area area, int y)
{
    Term *term = ui->term;
    bool  here = line == ui->help.line;
    Style style = ui_style(ui, here ? ROLE_SELECT : ROLE_TEXT);
    int   left = keys_width(ui, list, area);
    char  keys[128], text[512];

    choice_text(ui, &list->items[line], keys, sizeof(keys), text, sizeof(text));
    if (list->items[line].heading) {
        term_text(term, y, area.x + 2, area.w - 4, text, ui_style(ui, ROLE_TITLE));
        return;
    }
    if (here)
        term_fill(term, (Area){ y, area.x + 1, 1, area.w - 2 }, ' ', style);
    term_text(term, y, area.x + 2, left, keys, here ? style : ui_style(ui, ROLE_KEY));
    term_text(term, y, area.x + 3 + left, area.w - left - 5, text, style);
}

/* "What works here  1-15/63" over the filter; shown: rows of the list. */
static void draw_help_head(Ui *ui, const Choices *list, Area area, int shown)
{
    const Help *h = &ui->help;
    int         last = h->top + shown;
    char        title[96];

    snprintf(title, sizeof(title), "%s  %d-%d/%d",
             !list->count         ? "Nothing found"
             : ui->compare.adding ? "Add a pane"
             : h->palette         ? "Everything"
             : list->elsewhere    ? "No key for it here, but"
                                  : "What works here",
             list->count ? h->top + 1 : 0, last < list->count ? last : list->count, list->count);
    ui_window(ui, area, title);
    term_text(ui->term, area.y + 1, area.x + 2, 8, "filter", ui_style(ui, ROLE_DIM));
    field_draw(&h->filter, ui->term, area.y + 1, area.x + 9, area.w - 12,
               ui_style(ui, ROLE_FIELD));
}

static void help_draw(Ui *ui, Area all)
{
    Help    *h = &ui->help;
    Choices  list;
    Area     area = help_area(ui);
    HelpRows rows = help_rows(area);
    int      shown;

    (void)all;
    choices_make(ui, &list);
    h->line = settled(&list, h->line, 1);
    h->top = ui_scroll(h->top, h->line, rows.room);
    if (h->top == h->line && h->top > 0 && list.items[h->top - 1].heading)
        h->top--; /* its heading with it */
    shown = list_rows(ui, &list, area);
    draw_help_head(ui, &list, area, shown);
    whole_lines(ui, &list, area, ui->term);
    if (!list.count)
        term_text(ui->term, area.y + rows.first, area.x + 2, area.w - 4,
                  "nothing is called so or does that; Esc closes, then : runs commands",
                  ui_style(ui, ROLE_DIM));
    for (int i = 0; i < shown && h->top + i < list.count; i++)
        draw_choice(ui, &list, h->top + i, area, area.y + rows.first + i);
}

static bool help_key(Ui *ui, uint32_t key)
{
    if (!ui->help.filter.length && key == '?') {
        action_close(ui);
        return true;
    }
    if (key == K_ARROW_LEFT || key == K_ARROW_RIGHT || !field_key(&ui->help.filter, key))
        return false;
    ui->help.line = ui->help.top = 0;
    return true;
}

/* The first click chooses a line, the second does it, as in the list of mechanisms. */
static void help_press(Ui *ui, const Event *event)
{
    Choices  list;
    Area     area = help_area(ui);
    HelpRows rows = help_rows(area);
    int      row = event->y - area.y - rows.first, line = ui->help.top + row;

    choices_make(ui, &list);
    if (row < 0 || row >= list_rows(ui, &list, area) || event->x <= area.x ||
        event->x >= area.x + area.w - 1)
        return;
    if (line == ui->help.line)
        action_choice_run(ui);
    else
        ui->help.line = line;
}

static void help_leave(Ui *ui)
{
    ui->compare.adding = false;
}

const Screen screen_list = {
    .mode = "HELP",
    .scope = IN_LIST,
    .draw = help_draw,
    .key = help_key,
    .close = help_leave,
    .press = help_press,
};

void help_open(Ui *ui, int palette)
{
    ui->help = (Help){ .palette = palette };
    ui_push(ui, SCREEN_LIST);
}

bool help_about(Ui *ui, const char *words)
{
    Help    before = ui->help;
    Choices list;

    ui->help = (Help){ .palette = true };
    field_set(&ui->help.filter, words);
    choices_make(ui, &list);
    if (list.count)
        ui_push(ui, SCREEN_LIST);
    else
        ui->help = before;
    return list.count > 0;
}

void choice_move(Ui *ui, int by)
{
    Choices list;

    choices_make(ui, &list);
    ui->help.line = settled(&list, ui->help.line + by, by);
}

void choice_page(Ui *ui, int by)
{
    choice_move(ui, by * help_rows(help_area(ui)).room);
}

static void open_card(Ui *ui, const Mechanism *m)
{
    Text text = { 0 };

    card_text(m, &text);
    pager_open_prose(ui, m->id, text_str(&text));
    text_free(&text);
}

/* As the key does where the list was opened. */
static void run_own(Ui *ui, const Choice *c)
{
    if (c->own)
        command_enter(ui, console_command_name(ui, c->mapped - 1));
    else
        console_run_mapped(ui, c->mapped - 1);
}

/* position: its id, or NULL. */
static void open_mechanism(Ui *ui, const Mechanism *m, const char *position, bool adding)
{
    Pane *pane;

    history_note(ui);
    if (!adding)
        panes_clear(ui);
    pane = panes_pick(ui, m);
    if (!pane)
        return;
    if (position)
        snprintf(pane->request.position, sizeof(pane->request.position), "%s", position);
    ui->screen = SCREEN_COMPARE;
    panes_ask(ui);
}

void action_choice_run(Ui *ui)
{
    Choices list;
    Choice  choice;
    bool    adding = ui->compare.adding;
    char    line[256] = "";

    choices_make(ui, &list);
    ui->help.line = settled(&list, ui->help.line, 1);
    if (ui->help.line >= list.count)
        return;
    choice = list.items[ui->help.line];
    if (choice_argument(ui, &choice))
        snprintf(line, sizeof(line), "%s %s", choice.typed.word,
                 choice_argument(ui, &choice));
    action_close(ui);
    if (choice.mapped)
        run_own(ui, &choice);
    else if (choice.action)
        action_run(ui, choice.action);
    else if (*line)
        command_enter(ui, line);
    else if (choice.mechanism && choice.way == 'i')
        open_card(ui, choice.mechanism);
    else if (choice.mechanism)
        open_mechanism(ui, choice.mechanism, NULL, choice.way != 's' &&
                       (adding || ui->screen == SCREEN_COMPARE));
    else if (choice.position)
        open_mechanism(ui, mechanism_find("full"), choice.position->id,
                       ui->screen == SCREEN_COMPARE);
    else if (choice.lesson)
        lessons_typed(ui, choice.lesson->id);
    else if (choice.preset)
        panes_open_preset(ui, choice.preset->id);
    else if (choice.gloss)
        pager_open_prose(ui, choice.gloss->word, choice.gloss->text);
    else {
        ui_prompt(ui, choice.typed.word ? choice.typed.word : choice.command->name);
        field_insert(&ui->prompt.field, " ");
    }
    if (choice.way == 's' && ui->compare.count)
        ui->screen = SCREEN_STEP;
}
