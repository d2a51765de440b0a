/* help.c -- what works here, or everything by name: a list to filter and run. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/command/command.h"
#include "app/glossary.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"

#define CHOICES_MOST 512
#define ROOMY        90 /* columns from which the longest name of a mechanism fits beside words */

typedef struct Choice {
    const Action    *action; /* or */
    const Mechanism *mechanism;
    const Command   *command;
    const Preset    *preset;
    const Gloss     *gloss;
    TypedHelp        typed; /* a word with an argument */
} Choice;

typedef struct Choices {
    Choice items[CHOICES_MOST];
    int    count;
    bool   elsewhere; /* no key matches: lists what can be opened or run by name */
} Choices;

/* The IN_ bits of what lies below the list. */
static unsigned scope_below(const Ui *ui)
{
    return ui->overlay_count > 1 ? ui->screens[ui->overlays[ui->overlay_count - 2]]->scope
                                 : ui_screen_scope(ui);
}

static void choice_text(const Choice *c, char *keys, size_t keys_size, char *text, size_t size)
{
    keys[0] = '\0';
    if (c->action) {
        action_keys(c->action, keys, keys_size);
        snprintf(text, size, "%s", c->action->help);
    } else if (c->mechanism) {
        snprintf(keys, keys_size, "%s", c->mechanism->id);
        snprintf(text, size, "open %s", c->mechanism->title);
    } else if (c->preset) {
        snprintf(keys, keys_size, "%s", c->preset->id);
        snprintf(text, size, "open %s (%s)", c->preset->title, c->preset->source);
    } else if (c->gloss) {
        snprintf(keys, keys_size, "%s", c->gloss->word);
        snprintf(text, size, "%s", c->gloss->text);
    } else if (c->typed.word) {
        snprintf(keys, keys_size, ":%s", c->typed.word);
        snprintf(text, size, "%s", c->typed.help);
    } else {
        snprintf(keys, keys_size, ":%s", c->command->name);
        snprintf(text, size, "%s", c->command->help);
    }
}

static void add_choice(const Ui *ui, Choices *list, Choice choice)
{
    const char *wanted = ui->help.filter.text;
    char        keys[128], text[512];

    choice_text(&choice, keys, sizeof(keys), text, sizeof(text));
    if (list->count == CHOICES_MOST ||
        (*wanted && !strcasestr(text, wanted) && !strcasestr(keys, wanted) &&
         !(choice.action && strcasestr(choice.action->id, wanted))))
        return;
    list->items[list->count++] = choice;
}

static void add_mechanisms(const Ui *ui, Choices *list)
{
    const Mechanism *mechanism;

    for (size_t i = 0; (mechanism = mechanism_at(i)); i++)
        add_choice(ui, list, (Choice){ .mechanism = mechanism });
}

static void add_others(const Ui *ui, Choices *list)
{
    const Command *command;

    for (size_t i = 0; preset_at(i); i++)
        add_choice(ui, list, (Choice){ .preset = preset_at(i) });
    for (size_t i = 0; (command = command_at(i)); i++)
        if (command->run)
            add_choice(ui, list, (Choice){ .command = command });
}

/* Words of the glossary, as soon as something is looked for; the one called so goes first. */
static void add_glossary(const Ui *ui, Choices *list)
{
    const Gloss *called = gloss_find(ui->help.filter.text), *gloss;

    if (!*ui->help.filter.text || ui->compare.adding)
        return;
    if (called && list->count < CHOICES_MOST)
        list->items[list->count++] = (Choice){ .gloss = called };
    for (size_t i = 0; (gloss = gloss_at(i)); i++)
        if (gloss != called)
            add_choice(ui, list, (Choice){ .gloss = gloss });
}

static void add_typed(const Ui *ui, Choices *list)
{
    for (size_t i = 0; command_typed(i).word; i++)
        add_choice(ui, list, (Choice){ .typed = command_typed(i) });
}

static void make_choices(const Ui *ui, Choices *list)
{
    const Action *action;
    unsigned      scope = scope_below(ui);

    *list = (Choices){ 0 };
    if (ui->help.palette)
        add_mechanisms(ui, list);
    for (size_t i = 0; !ui->compare.adding && (action = action_at(i)); i++)
        if (action->scope & scope)
            add_choice(ui, list, (Choice){ .action = action });
    if (!ui->compare.adding && scope & IN_SCREENS && (ui->help.palette || *ui->help.filter.text))
        add_typed(ui, list);
    if (ui->help.palette && !ui->compare.adding)
        add_others(ui, list);
    if (!ui->help.palette && !list->count) {
        list->elsewhere = true;
        add_mechanisms(ui, list);
        add_others(ui, list);
    }
    add_glossary(ui, list);
}

static Area help_area(const Ui *ui)
{
    int width = ui->term->cols - 4 < 100 ? ui->term->cols - 4 : 100;

    return (Area){ 2, (ui->term->cols - width) / 2, ui_whole(ui).h - 2, width };
}

/* Shows the complete text below the list if its line cuts it off. */
static void draw_whole(Ui *ui, const char *text, int room)
{
    Area below = { ui->term->rows - 3, 1, 2, ui->term->cols - 2 };

    if (term_width(text) <= room || ui->message[0])
        return;
    term_fill(ui->term, (Area){ below.y, 0, below.h, ui->term->cols }, ' ', (Style){ 0 });
    term_paragraph(ui->term, below, text, ui_style(ui, ROLE_TEXT));
}

static void help_draw(Ui *ui, Area all)
{
    Help   *h = &ui->help;
    Term   *term = ui->term;
    Choices list;
    Area    area = help_area(ui);
    int     keys_width;
    int     room = area.h - 4;
    char    title[96];

    (void)all;
    make_choices(ui, &list);
    keys_width = !h->palette && !list.elsewhere ? 14 : area.w >= ROOMY ? 30 : 20;
    h->line = h->line >= list.count ? list.count - 1 : h->line;
    h->line = h->line < 0 ? 0 : h->line;
    h->top = ui_scroll(h->top, h->line, room);
    snprintf(title, sizeof(title), "%s  %d-%d/%d",
             ui->compare.adding ? "Add a pane"
             : h->palette       ? "Everything"
             : list.elsewhere   ? "No key for it here, but"
                                : "What works here",
             list.count ? h->top + 1 : 0, h->top + room < list.count ? h->top + room : list.count,
             list.count);
    ui_window(ui, area, title);
    term_text(term, area.y + 1, area.x + 2, 8, "filter", ui_style(ui, ROLE_DIM));
    field_draw(&h->filter, term, area.y + 1, area.x + 9, area.w - 12, ui_style(ui, ROLE_FIELD));
    if (!list.count)
        term_text(term, area.y + 3, area.x + 2, area.w - 4,
                  "nothing is called so or does that; : runs commands", ui_style(ui, ROLE_DIM));
    for (int i = 0; i < room && h->top + i < list.count; i++) {
        bool  here = h->top + i == h->line;
        Style style = ui_style(ui, here ? ROLE_SELECT : ROLE_TEXT);
        char  keys[128], text[512];
        int   y = area.y + 3 + i;

        choice_text(&list.items[h->top + i], keys, sizeof(keys), text, sizeof(text));
        if (here)
            term_fill(term, (Area){ y, area.x + 1, 1, area.w - 2 }, ' ', style);
        term_text(term, y, area.x + 2, keys_width, keys, here ? style : ui_style(ui, ROLE_KEY));
        term_text(term, y, area.x + 3 + keys_width, area.w - keys_width - 5, text, style);
        if (here)
            draw_whole(ui, text, area.w - keys_width - 5);
    }
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
    Area area = help_area(ui);
    int  line = ui->help.top + event->y - area.y - 3;

    if (event->y < area.y + 3 || event->y >= area.y + area.h - 1 || event->x <= area.x ||
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

void choice_move(Ui *ui, int by)
{
    ui->help.line += by;
}

void choice_page(Ui *ui, int by)
{
    choice_move(ui, by * (ui->term->rows - 9));
}

static void open_mechanism(Ui *ui, const Mechanism *m, bool adding)
{
    history_note(ui);
    if (!adding)
        panes_clear(ui);
    if (panes_pick(ui, m)) {
        ui->screen = SCREEN_COMPARE;
        panes_ask(ui);
    }
}

void action_choice_run(Ui *ui)
{
    Choices list;
    Choice  choice;
    bool    adding = ui->compare.adding;

    make_choices(ui, &list);
    if (ui->help.line < 0 || ui->help.line >= list.count)
        return;
    choice = list.items[ui->help.line];
    action_close(ui);
    if (choice.action)
        action_run(ui, choice.action);
    else if (choice.mechanism)
        open_mechanism(ui, choice.mechanism, adding || ui->screen == SCREEN_COMPARE);
    else if (choice.preset)
        panes_open_preset(ui, choice.preset->id);
    else if (choice.gloss)
        pager_open(ui, choice.gloss->word, choice.gloss->text, false);
    else {
        ui_prompt(ui, choice.typed.word ? choice.typed.word : choice.command->name);
        field_insert(&ui->prompt.field, " ");
    }
}
