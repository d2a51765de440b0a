/* prompt.c -- the line at the bottom where commands and searches are typed. */
#include <stdio.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/shell/shell.h"

static void prompt_draw(Ui *ui, Area area)
{
    Prompt *p = &ui->prompt;
    int     y = ui->term->rows - 2;

    (void)area;
    term_fill(ui->term, (Area){ y, 0, 1, ui->term->cols }, ' ', (Style){ 0 });
    term_char(ui->term, y, 1, p->kind == PROMPT_SEARCH ? '/' : p->kind == PROMPT_ASK ? '?' : ':',
              ui_style(ui, ROLE_KEY));
    field_draw(&p->field, ui->term, y, 2, ui->term->cols - 4, ui_style(ui, ROLE_TEXT));
    if (p->choices[0]) {
        term_fill(ui->term, (Area){ y - 1, 0, 1, ui->term->cols }, ' ', (Style){ 0 });
        term_text(ui->term, y - 1, 1, ui->term->cols - 2, p->choices, ui_style(ui, ROLE_DIM));
    }
}

static bool prompt_key(Ui *ui, uint32_t key)
{
    if (!field_key(&ui->prompt.field, key))
        return false;
    if (ui->prompt.kind != PROMPT_ASK)
        ui->prompt.choices[0] = '\0';
    return true;
}

static void ask_leave(Ui *ui)
{
    console_answer(ui, NULL);
}

static void clear_prompt(Ui *ui, PromptKind kind)
{
    Prompt *p = &ui->prompt;

    p->kind = kind;
    field_set(&p->field, "");
    p->choices[0] = '\0';
    p->past.at = p->past.count;
    ui->message[0] = '\0';
}

static bool open_command(Ui *ui)
{
    clear_prompt(ui, PROMPT_COMMAND);
    return true;
}

static bool open_search(Ui *ui)
{
    clear_prompt(ui, PROMPT_SEARCH);
    return true;
}

static bool open_ask(Ui *ui)
{
    clear_prompt(ui, PROMPT_ASK);
    return true;
}

const Screen screen_prompt = {
    .mode = "COMMAND",
    .scope = IN_PROMPT,
    .draw = prompt_draw,
    .key = prompt_key,
    .open = open_command,
    .poll = command_poll,
    .runs = command_runs,
    .progress = command_progress,
    .cancel = command_cancel,
    .end = command_end,
};

const Screen screen_search = {
    .mode = "FIND",
    .scope = IN_SEARCH,
    .draw = prompt_draw,
    .key = prompt_key,
    .open = open_search,
};

const Screen screen_ask = {
    .mode = "ASKED",
    .scope = IN_SEARCH,
    .draw = prompt_draw,
    .key = prompt_key,
    .open = open_ask,
    .close = ask_leave,
    .escape = "no answer",
};

void action_command(Ui *ui)
{
    ui_open(ui, SCREEN_PROMPT);
}

void action_search(Ui *ui)
{
    const Screen *screen = ui->screens[ui->screen];

    if (ui_has(ui, SCREEN_TEXT) || !screen->filter)
        ui_open(ui, SCREEN_SEARCH);
    else
        screen->filter(ui);
}

void action_prompt_run(Ui *ui)
{
    Prompt *p = &ui->prompt;
    char    line[512];

    snprintf(line, sizeof(line), "%s", p->field.text);
    ui_pop(ui);
    if (p->kind == PROMPT_SEARCH) {
        ui->screens[ui_has(ui, SCREEN_TEXT) ? SCREEN_TEXT : ui->screen]->find(ui, line);
        return;
    }
    if (p->kind == PROMPT_ASK) {
        console_answer(ui, line);
        return;
    }
    if (!line[0])
        return;
    past_add(&p->past, line);
    if (!command_enter(ui, line) && help_about(ui, line))
        ui_say(ui, ROLE_WARN, "'%.60s' is no command, action or mechanism; these are about it",
               line);
}

void prompt_recall(Ui *ui, int by)
{
    if (ui->prompt.kind == PROMPT_COMMAND)
        past_recall(&ui->prompt.past, by, &ui->prompt.field);
}

void action_prompt_complete(Ui *ui)
{
    Prompt *p = &ui->prompt;

    if (p->kind == PROMPT_COMMAND)
        command_complete(ui, &p->field, p->choices, sizeof(p->choices));
}
