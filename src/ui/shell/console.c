/* console.c -- scripts in the explorer: the docked prompt, keys of their own, their turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/shell/shell.h"

#define KEYS_MOST     64
#define COMMANDS_MOST 64
#define LONG_SCRIPT 0.5 /* seconds after which a running script is reported */

typedef struct MappedKey {
    unsigned      scope;
    uint32_t      key;
    const Action *action; /* NULL: a function of the script */
    int           function;
} MappedKey;

typedef struct OwnCommand {
    char name[40], help[120];
    int  function;
} OwnCommand;

struct Console {
    Interpreter *interpreter;
    Control      control;
    bool         opened; /* the interpreter is; that takes a while, so only when it is needed */
    Field        field;
    Text         code;   /* lines typed before, of a statement that goes on */
    Past         past;
    int          back;   /* lines above the last one */
    char         choices[512];
    MappedKey    keys[KEYS_MOST];
    int          key_count;
    OwnCommand   commands[COMMANDS_MOST];
    int          command_count;
    double       since; /* scripts have run from then on; 0: none does */
};

/* False with a message. */
static bool open_interpreter(Ui *ui)
{
    Console *c = ui->console;
    Error    err = ERROR_INIT;

    if (!c)
        error_set(&err, ERR_NOMEM, "not enough memory for scripts");
    else if (!c->opened)
        c->opened = c->interpreter->open(c->interpreter->host, &c->control, &err);
    if (err.code)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    return err.code == ERR_NONE;
}

/* Ui.on_event. */
static void console_event(Ui *ui, const char *event, const char *lines)
{
    Console *c = ui->console;

    if (!c->opened && c->interpreter->listens(c->interpreter->host))
        open_interpreter(ui);
    if (c->opened)
        c->interpreter->event(c->interpreter->host, event, lines);
}

void console_begin(Ui *ui, Interpreter *interpreter)
{
    ui->console = interpreter ? calloc(1, sizeof(*ui->console)) : NULL;
    if (!ui->console)
        return;
    ui->console->interpreter = interpreter;
    control_fill(ui, &ui->console->control);
    ui->on_event = console_event;
}

/* Before anything else is closed. */
static void console_end(Ui *ui)
{
    Console *c = ui->console;

    if (!c)
        return;
    if (c->opened)
        c->interpreter->close(c->interpreter->host);
    text_free(&c->code);
    free(c);
    ui->console = NULL;
    ui->on_event = NULL;
}

bool console_file(Ui *ui, const char *path)
{
    Error err = ERROR_INIT;

    if (!open_interpreter(ui))
        return false;
    if (ui->console->interpreter->file(ui->console->interpreter->host, path, &err))
        return true;
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    return false;
}

void console_typed_script(Ui *ui, const char *path)
{
    if (console_file(ui, path))
        ui_say(ui, ROLE_DIM, "script: %s; Ctrl-C stops it, ; shows what it prints", path);
}

bool console_tick(Ui *ui)
{
    Console *c = ui->console;
    bool     done = c && c->opened && c->interpreter->tick(c->interpreter->host);

    if (c && console_deadline(ui) < 0)
        c->since = 0;
    else if (c && c->since == 0)
        c->since = ui_now();
    return done;
}

/* A script has run for LONG_SCRIPT or more. */
static bool console_runs(const Ui *ui)
{
    const Console *c = ui->console;

    return c && c->since > 0 && ui_now() - c->since > LONG_SCRIPT;
}

/* What a script waits for, or that it still runs. */
static bool console_progress(const Ui *ui, char *text, size_t size)
{
    const Console *c = ui->console;
    const char    *doing = c && c->opened ? c->interpreter->doing(c->interpreter->host) : NULL;

    if (!doing && !(ui_has(ui, SCREEN_CONSOLE) && console_runs(ui)))
        return false;
    snprintf(text, size, "a script runs%s%s   Ctrl-C stops it", doing ? ": " : "",
             doing ? doing : "");
    return true;
}

double console_deadline(const Ui *ui)
{
    const Console *c = ui->console;

    return c && c->opened ? c->interpreter->deadline(c->interpreter->host) : -1;
}

bool console_stop(Ui *ui)
{
    Console *c = ui->console;

    return c && c->opened && c->interpreter->stop(c->interpreter->host);
}

void console_answer(Ui *ui, const char *text)
{
    Console *c = ui->console;

    if (c && c->opened)
        c->interpreter->answer(c->interpreter->host, text);
}

/* ---- keys of scripts -------------------------------------------------------- */

static unsigned scope_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned    scope;
    } places[] = {
        { "all", IN_SCREENS | IN_INSPECT }, { "browse", IN_BROWSE },   { "compare", IN_MATRIX },
        { "step", IN_STEP },                { "profile", IN_PROFILE },
    };

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (!strcmp(places[i].name, name))
            return places[i].scope;
    return 0;
}

bool console_map(Ui *ui, const char *where, const char *key, const char *action, int function,
                 Error *err)
{
    Console  *c = ui->console;
    MappedKey mapped = { .scope = scope_named(where), .key = key_parse(key, strlen(key)),
                         .action = action ? action_find(action) : NULL, .function = function };

    if (!mapped.scope)
        return error_set(err, ERR_USAGE, "map: '%.40s' is none of all, browse, compare, step, "
                         "profile", where);
    if (!mapped.key)
        return error_set(err, ERR_USAGE, "map: '%.40s' is no key; like j, F1, C-p, S-Tab", key);
    if (action && !mapped.action)
        return error_set(err, ERR_USAGE, "there is no action '%.60s'; Ctrl-P lists them", action);
    for (int i = 0; i < c->key_count; i++)
        if (c->keys[i].key == mapped.key && c->keys[i].scope == mapped.scope) {
            c->keys[i] = mapped;
            return true;
        }
    if (c->key_count == KEYS_MOST)
        return error_set(err, ERR_UNSUPPORTED, "map: at most %d keys", KEYS_MOST);
    c->keys[c->key_count++] = mapped;
    return true;
}

static OwnCommand *own_command(const Ui *ui, const char *line)
{
    Console *c = ui->console;
    size_t   length = strcspn(line, " ");

    for (int i = 0; c && i < c->command_count; i++)
        if (strlen(c->commands[i].name) == length && !strncmp(c->commands[i].name, line, length))
            return &c->commands[i];
    return NULL;
}

bool console_command(Ui *ui, const char *name, const char *help, int function, Error *err)
{
    Console    *c = ui->console;
    OwnCommand *own = own_command(ui, name);

    if (!*name || strlen(name) >= sizeof(own->name) ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")])
        return error_set(err, ERR_USAGE, "command: '%.40s' is no name: letters, digits, _ and -, "
                         "at most %d", name, (int)sizeof(own->name) - 1);
    if (command_line_knows(name))
        return error_set(err, ERR_USAGE, "command: '%s' is a word of the explorer's own", name);
    if (!own && c->command_count == COMMANDS_MOST)
        return error_set(err, ERR_UNSUPPORTED, "command: at most %d commands", COMMANDS_MOST);
    if (!own)
        own = &c->commands[c->command_count++];
    snprintf(own->name, sizeof(own->name), "%s", name);
    snprintf(own->help, sizeof(own->help), "%s", help);
    own->function = function;
    return true;
}

bool console_own_command(Ui *ui, const char *line)
{
    OwnCommand *own = own_command(ui, line);
    const char *rest = line + strcspn(line, " ");

    if (own)
        ui->console->interpreter->call(ui->console->interpreter->host, own->function,
                                       rest + strspn(rest, " "));
    if (own && *own->help)
        ui_hint(ui, "%s: %s", own->name, own->help);
    return own != NULL;
}

const char *console_command_name(const Ui *ui, int index)
{
    return ui->console && index < ui->console->command_count ? ui->console->commands[index].name
                                                             : NULL;
}

const char *console_command_help(const Ui *ui, int index)
{
    return ui->console->commands[index].help;
}

bool console_mapped(const Ui *ui, int index, char *key, size_t size, unsigned *scope,
                    const Action **action)
{
    const Console *c = ui->console;

    if (!c || index >= c->key_count)
        return false;
    key_label(c->keys[index].key, key, size);
    *scope = c->keys[index].scope;
    *action = c->keys[index].action;
    return true;
}

void console_run_mapped(Ui *ui, int index)
{
    const MappedKey *mapped = &ui->console->keys[index];

    if (mapped->action)
        action_run(ui, mapped->action);
    else
        ui->console->interpreter->call(ui->console->interpreter->host, mapped->function, NULL);
}

bool console_key(Ui *ui, uint32_t key)
{
    Console *c = ui->console;

    for (int i = c ? c->key_count - 1 : -1; i >= 0; i--)
        if (c->keys[i].key == key && c->keys[i].scope & ui_scope(ui)) {
            console_run_mapped(ui, i);
            return true;
        }
    return false;
}

/* ---- the docked prompt ------------------------------------------------------ */

/* The line `back` lines before the end of the text; *end: where it ends. */
static const char *line_before(const char *text, const char **end, int back)
{
    const char *at = text + strlen(text);

    if (at > text && at[-1] == '\n')
        at--;
    for (*end = at;; back--) {
        while (at > text && at[-1] != '\n')
            at--;
        if (back == 0)
            return at;
        if (at == text)
            return NULL;
        *end = --at;
    }
}

static void draw_output(Ui *ui, Area area)
{
    Console    *c = ui->console;
    const char *text = text_str(c->interpreter->output(c->interpreter->host));

    for (int i = 0; i < area.h && *text; i++) {
        const char *end, *line = line_before(text, &end, c->back + i);
        char        copy[512];

        if (!line)
            break;
        snprintf(copy, sizeof(copy), "%.*s", (int)(end - line < 500 ? end - line : 500), line);
        for (char *tab = copy; (tab = strchr(tab, '\t'));)
            *tab = ' ';
        term_text(ui->term, area.y + area.h - 1 - i, area.x, area.w, copy,
                  ui_style(ui, ROLE_TEXT));
    }
}

#define SCREEN_LEAST 8 /* rows in which the screen above still shows something */

bool console_hides(const Ui *ui)
{
    return ui_has(ui, SCREEN_CONSOLE) && ui_area(ui).h < SCREEN_LEAST;
}

static int shown_height(const Ui *ui)
{
    return console_hides(ui) ? ui_whole(ui).h : console_height(ui);
}

static void console_draw(Ui *ui, Area screen)
{
    Console *c = ui->console;
    Term    *term = ui->term;
    int      height = shown_height(ui);
    Area     area = { term->rows - 2 - height, 0, height, term->cols };

    (void)screen;
    term_fill(term, area, ' ', (Style){ 0 });
    term_fill(term, (Area){ area.y, 0, 1, area.w }, term->utf8 ? 0x2500 : '-',
              ui_style(ui, ROLE_DIM));
    term_text(term, area.y, 2, area.w - 4, c->back ? " Lua, earlier lines " : " Lua ",
              ui_style(ui, ROLE_TITLE));
    draw_output(ui, (Area){ area.y + 1, 1, height - 2, area.w - 2 });
    term_text(term, area.y + height - 1, 1, 3, c->code.length ? ">>" : ">",
              ui_style(ui, ROLE_KEY));
    field_draw(&c->field, term, area.y + height - 1, 4, area.w - 6, ui_style(ui, ROLE_FIELD));
    if (c->choices[0]) {
        term_fill(term, (Area){ area.y + height - 2, 0, 1, area.w }, ' ', (Style){ 0 });
        term_text(term, area.y + height - 2, 1, area.w - 2, c->choices, ui_style(ui, ROLE_DIM));
    }
}

static bool console_typed(Ui *ui, uint32_t key)
{
    if (!field_key(&ui->console->field, key))
        return false;
    ui->console->choices[0] = '\0';
    return true;
}

const Screen screen_console = {
    .mode = "LUA",
    .scope = IN_CONSOLE,
    .draw = console_draw,
    .key = console_typed,
    .progress = console_progress,
    .end = console_end,
};

void action_console(Ui *ui)
{
    if (!open_interpreter(ui))
        return;
    ui->console->choices[0] = '\0';
    ui_push(ui, SCREEN_CONSOLE);
}

void action_console_run(Ui *ui)
{
    Console *c = ui->console;

    c->choices[0] = '\0';
    c->back = 0;
    if (c->field.length)
        past_add(&c->past, c->field.text);
    else if (!c->code.length)
        return;
    text_addf(&c->code, "%s%s", c->code.length ? "\n" : "", c->field.text);
    field_set(&c->field, "");
    if (c->interpreter->type(c->interpreter->host, text_str(&c->code)) != TYPED_UNFINISHED)
        text_clear(&c->code);
}

void console_recall(Ui *ui, int by)
{
    past_recall(&ui->console->past, by, &ui->console->field);
}

void console_page(Ui *ui, int by)
{
    Console    *c = ui->console;
    const char *text = text_str(c->interpreter->output(c->interpreter->host));
    int         lines = 0;

    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    c->back += by * (shown_height(ui) - 3);
    c->back = c->back > lines - 1 ? lines - 1 : c->back;
    c->back = c->back < 0 ? 0 : c->back;
}

/* ---- completing a name ------------------------------------------------------ */

typedef struct NamesFound {
    char  common[256]; /* what all begin with */
    char *list;
    size_t room;
    int   count;
} NamesFound;

static void add_name(void *context, const char *name)
{
    NamesFound *f = context;
    size_t      same = 0, used = strlen(f->list);
    const char *last = strrchr(name, '.');

    if (!f->count++)
        snprintf(f->common, sizeof(f->common), "%s", name);
    while (f->common[same] && f->common[same] == name[same])
        same++;
    f->common[same] = '\0';
    snprintf(f->list + used, f->room - used, "%s ", last ? last + 1 : name);
}

void action_console_complete(Ui *ui)
{
    Console    *c = ui->console;
    NamesFound  f = { .list = c->choices, .room = sizeof(c->choices) };
    const char *word = c->field.text + c->field.cursor;
    char        stem[256];

    while (word > c->field.text && !strchr(" \t\"'=;,+-*/%^~#{}()[]|&<>", word[-1]))
        word--;
    snprintf(stem, sizeof(stem), "%.*s", (int)(c->field.text + c->field.cursor - word), word);
    c->choices[0] = '\0';
    c->interpreter->complete(c->interpreter->host, stem, add_name, &f);
    if (f.count && strlen(f.common) >= strlen(stem))
        field_insert(&c->field, f.common + strlen(stem));
    if (f.count < 2)
        c->choices[0] = '\0';
}
