/* command_line.c -- what a typed line does, and what it completes to.
 *
 * A line is a command of the program (command_work.c runs it), an action of the screen, or a
 * mechanism to open.
 */
#include <stdio.h>
#include <string.h>

#include "app/call.h"
#include "app/command/command.h"
#include "app/complete.h"
#include "app/lesson/lesson.h"
#include "attn/run/mechanism.h"
#include "ui/shell/actions.h"
#include "ui/shell/pane_study.h"
#include "ui/shell/shell.h"
#include "ui/state/journal.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

/* ---- what a word may become ---------------------------------------------------- */

typedef struct Found {
    const char *stem; /* what is there of the word; not ended */
    size_t      stem_length;
    char        common[64]; /* beginning of all that fit */
    Text        all;
    int         count;
} Found;

/* Adds the word if it completes the stem; a callback whose context is a Found. */
static void found_add(void *found, const char *word)
{
    Found *f = found;
    size_t same = 0;

    if (strncmp(word, f->stem, f->stem_length) != 0)
        return;
    if (f->count++ == 0) {
        snprintf(f->common, sizeof(f->common), "%s", word);
    } else {
        while (f->common[same] && f->common[same] == word[same])
            same++;
        f->common[same] = '\0';
    }
    text_addf(&f->all, "%s%s", f->all.length ? "  " : "", word);
}

static const Mechanism *mechanism_of(const char *text, size_t length)
{
    char id[64];

    if (length >= sizeof(id))
        return NULL;
    snprintf(id, sizeof(id), "%.*s", (int)length, text);
    return mechanism_find(id);
}

/* "window=", and after the sign what it may be. */
static void add_parameters(Found *f, const Mechanism *m)
{
    for (const Param *p = m->params; p && p->name; p++) {
        char word[96];

        snprintf(word, sizeof(word), "%s=", p->name);
        if (strncmp(word, f->stem, strlen(word)) != 0 || f->stem_length < strlen(word)) {
            found_add(f, word);
            continue;
        }
        for (int i = 0; p->choices && p->choices[i]; i++) {
            snprintf(word, sizeof(word), "%s=%s", p->name, p->choices[i]);
            found_add(f, word);
        }
        for (int i = 0; p->type == PARAM_TYPE_BOOL && i < 2; i++) {
            snprintf(word, sizeof(word), "%s=%s", p->name, i ? "true" : "false");
            found_add(f, word);
        }
    }
}

/* Parameters and their values inside the parentheses of the stem, "bigbird(win"; false: it
 * has none.  The stem becomes what stands after the last of them. */
static bool found_in_layer(Found *f)
{
    const char      *end = f->stem + f->stem_length, *open = memchr(f->stem, '(', f->stem_length);
    const Mechanism *m = open ? mechanism_of(f->stem, (size_t)(open - f->stem)) : NULL;
    const char      *at = end;

    if (!m || memchr(open, ')', (size_t)(end - open)))
        return false;
    while (at > open + 1 && at[-1] != ',')
        at--;
    f->stem = at;
    f->stem_length = (size_t)(end - at);
    add_parameters(f, m);
    return true;
}

static void take_word(void *found, const char *word, const char *help)
{
    (void)help;
    found_add(found, word);
}

/* What the shells complete too; false: nothing fits. */
static bool found_in_call(Found *f, const char *line)
{
    const char *words[CALL_MAX_WORDS];
    char        before[512], last[256];
    Text        storage = { 0 };
    Error       ignored = ERROR_INIT;
    int         count;

    snprintf(before, sizeof(before), "%.*s", (int)(f->stem - line), line);
    snprintf(last, sizeof(last), "%.*s", (int)f->stem_length, f->stem);
    if (call_split(before, words, CALL_MAX_WORDS - 1, &count, &storage, &ignored)) {
        words[count] = last;
        complete_words(NULL, words, count + 1, take_word, f);
    }
    text_free(&storage);
    return f->count > 0;
}

/* `:preset NAME` opens the preset in panes; `:preset` alone is the command. */
#define PRESET_WORD "preset"

/* ---- completions of the explorer's own words ---------------------------------- */

/* What the focused pane's mechanism can be varied by. */
static void consider_params(Ui *ui, Found *f)
{
    const Pane      *pane = panes_focus(ui);
    const Mechanism *m = pane ? mechanism_find(pane->request.mechanism) : NULL;
    char             name[72];

    for (const Param *p = m ? m->params : NULL; p && p->name; p++) {
        snprintf(name, sizeof(name), "%s=", p->name);
        if (p->type != PARAM_TYPE_TENSOR)
            found_add(f, name);
    }
}

/* The views that the key v steps through. */
static void consider_views(Ui *ui, Found *f)
{
    const Pane *pane = panes_focus(ui);

    for (int at = 0; pane && pane_offers(pane, at); at++)
        if (*pane_offers(pane, at))
            found_add(f, pane_offers(pane, at));
}

static void consider_presets(Ui *ui, Found *f)
{
    (void)ui;
    for (size_t i = 0; preset_at(i); i++)
        if (!preset_at(i)->model)
            found_add(f, preset_at(i)->id);
}

static void consider_sessions(Ui *ui, Found *f)
{
    (void)ui;
    saving_names(found_add, f);
}

static void consider_lessons(Ui *ui, Found *f)
{
    (void)ui;
    lessons_names(found_add, f);
}

static void consider_stop(Ui *ui, Found *f)
{
    (void)ui;
    found_add(f, "stop");
}

static void consider_keep(Ui *ui, Found *f)
{
    (void)ui;
    found_add(f, "keep");
    found_add(f, "drop");
}

static void consider_themes(Ui *ui, Found *f)
{
    (void)ui;
    for (int i = 0; i < THEME_COUNT; i++)
        found_add(f, theme_name((Theme)i));
}

static void consider_glyphs(Ui *ui, Found *f)
{
    (void)ui;
    for (int i = 0; i < GLYPHS_COUNT; i++)
        found_add(f, glyphs_name((Glyphs)i));
}

static void consider_scales(Ui *ui, Found *f)
{
    (void)ui;
    found_add(f, "shared");
    found_add(f, "own");
    for (int i = 0; i < SCALE_COUNT; i++)
        found_add(f, scale_name((Scale)i));
}

static void consider_causal(Ui *ui, Found *f)
{
    (void)ui;
    found_add(f, "on");
    found_add(f, "off");
    found_add(f, "input");
}

static void consider_inputs(Ui *ui, Found *f)
{
    (void)ui;
    for (size_t i = 0; session_sample(i); i++) {
        char word[64];

        snprintf(word, sizeof(word), "sample:%s", session_sample(i));
        found_add(f, word);
    }
    for (const InputGenerator *g = input_generators(); g->name; g++) {
        char word[64];

        snprintf(word, sizeof(word), "synthetic:%s", g->name);
        found_add(f, word);
    }
}

/* What a line may be: mechanisms, and as its first word all else that runs. */
static void each_word(bool first_word, void (*each)(void *context, const char *word),
                      void *context)
{
    const Command   *command;
    const Mechanism *mechanism;
    const Action    *action;

    for (size_t i = 0; first_word && (command = command_at(i)); i++)
        if (command->run)
            each(context, command->name);
    for (size_t i = 0; (mechanism = mechanism_at(i)); i++)
        each(context, mechanism->id);
    for (size_t i = 0; first_word && command_typed(i).word; i++)
        each(context, command_typed(i).word);
    for (size_t i = 0; first_word && (action = action_at(i)); i++)
        if (action->scope & IN_SCREENS && !command_find(action->id))
            each(context, action->id);
}

static void consider_all(Found *f, bool first_word)
{
    each_word(first_word, found_add, f);
}

/* A mechanism with its parameters, for the layers of a model. */
static void consider_swap(Ui *ui, Found *f)
{
    (void)ui;
    if (!found_in_layer(f))
        consider_all(f, false);
}

/* ---- the explorer's own words ------------------------------------------------- */

static void theme_typed(Ui *ui, const char *name)
{
    Error err = ERROR_INIT;

    if (theme_parse(name, &ui->theme, &err))
        ui_say(ui, ROLE_DIM, "theme: %s", theme_name(ui->theme));
    else
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

static void glyphs_typed(Ui *ui, const char *name)
{
    Error err = ERROR_INIT;

    if (glyphs_parse(name, &ui->glyphs, &err))
        say_glyphs(ui);
    else
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

static void budget_typed(Ui *ui, const char *text)
{
    Budget budget;
    Error  err = ERROR_INIT;
    char   line[160];

    snprintf(line, sizeof(line), "budget %.140s", text);
    if (!*text)
        ui_say(ui, ROLE_DIM, "of exact attention's price, as in :budget pairs=5%% or "
                             ":budget flops=5%%");
    else if (budget_parse(text, &budget, &err))
        command_study(ui, line, STUDY_BUDGET, &budget, 0);
    else
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

/* rest: "", or another length of the panes' input. */
static void study_typed(Ui *ui, const char *word, const char *rest, StudyKind kind)
{
    char    line[80];
    int64_t n = 0;

    snprintf(line, sizeof(line), "%s%s%.40s", word, *rest ? " " : "", rest);
    if (*rest && !(text_whole(rest, &n) && n >= 1))
        ui_say(ui, ROLE_ERROR, "%s: '%.40s' is no length; %s alone is of the panes' input, :%s 4k "
               "of its first 4000 tokens", word, rest, word, word);
    else
        command_study(ui, line, kind, NULL, n);
}

static void quality_typed(Ui *ui, const char *rest)
{
    study_typed(ui, "quality", rest, STUDY_QUALITY);
}

static void decode_typed(Ui *ui, const char *rest)
{
    study_typed(ui, "decode", rest, STUDY_DECODE);
}

/* "12" goes where "/q:12" does. */
static void query_typed(Ui *ui, const char *rest)
{
    bool    shown = ui->screen == SCREEN_COMPARE || ui->screen == SCREEN_STEP;
    int64_t query;
    char    line[48];

    if (!text_whole(rest, &query) || query < 0) {
        ui_say(ui, ROLE_ERROR, "query: '%.40s' is not a whole number from 0", rest);
    } else if (!shown || !panes_focus(ui)) {
        ui_say(ui, ROLE_WARN, "query: no queries are shown here; 2 shows the panes");
    } else {
        snprintf(line, sizeof(line), "q:%lld", (long long)query);
        ui->screens[ui->screen]->find(ui, line);
    }
}

static void consider_budgets(Ui *ui, Found *f)
{
    (void)ui;
    found_add(f, "pairs=5%");
    found_add(f, "flops=5%");
}

/* Words of the explorer that take an argument. */
typedef struct Typed {
    const char *word;
    bool        alone; /* also without an argument; otherwise that is the command or action */
    void (*run)(Ui *ui, const char *rest);
    void (*complete)(Ui *ui, Found *found); /* NULL: nothing to complete */
    const char *help;  /* NULL: an action of that name has it */
    const char *takes; /* what follows the word, where it has a help */
} Typed;

static void quit_typed(Ui *ui, const char *rest)
{
    if (*rest)
        ui_say(ui, ROLE_ERROR, "quit takes nothing after it, not '%.40s'", rest);
    else
        ui_ask_to_quit(ui);
}

static const Typed typed[] = {
    { "q", true, quit_typed, NULL, NULL, "" },
    { "quit", true, quit_typed, NULL, "leave the program, from any screen", "" },
    { PRESET_WORD, false, panes_open_preset, consider_presets, NULL, "" },
    { "view", true, compare_typed_view, consider_views, NULL, "" },
    { "vary", false, vary_enter, consider_params, NULL, "" },
    { "smallest", false, vary_enter_goal, consider_params, NULL, "" },
    { "save", true, saving_typed_save, consider_sessions, NULL, "" },
    { "restore", true, saving_typed_restore, consider_sessions, NULL, "" },
    { "lesson", true, lessons_typed, consider_lessons, NULL, "" },
    { "record", true, journal_typed_record, consider_stop, NULL, "" },
    { "history", false, journal_typed_history, NULL, NULL, "" },
    { "messages", false, messages_typed, consider_keep, NULL, "" },
    { "warnings", true, warnings_typed, NULL, "what the runs of the panes warn of, whole", "" },
    { "script", false, console_typed_script, NULL, NULL, "" },
    { "theme", false, theme_typed, consider_themes, NULL, "" },
    { "glyphs", false, glyphs_typed, consider_glyphs, NULL, "" },
    { "scale", true, scale_typed, consider_scales,
      "colours of the panes: shared or own; of what one shows: linear, log or row", "WORD" },
    { "open", false, input_typed_open, consider_inputs,
      "another input for all panes: FILE, MODEL TEXT, synthetic:NAME or sample:NAME", "INPUT" },
    { "layer", false, input_typed_layer, NULL, "the input's layer, from 0", "N" },
    { "head", false, input_typed_head, NULL, "the head that is shown, from 0", "N" },
    { "query", false, query_typed, NULL,
      "the cursor to a query, from 0 (/12:5 goes to a cell)", "N" },
    { "n", false, input_typed_n, NULL,
      "number of tokens: the first of a file, or generated; 32k is 32000, 32Ki is 32768",
      "N" },
    { "d", false, input_typed_d, NULL, "head size of generated q, k, v", "N" },
    { "heads", false, input_typed_heads, NULL, "number of heads of generated q, k, v", "N" },
    { "seed", false, input_typed_seed, NULL, "seed of the input and of all panes", "N" },
    { "budget", true, budget_typed, consider_budgets,
      "sizes of all panes that take this share of exact attention's pairs=5% or flops=5%",
      "SHARE" },
    { "quality", true, quality_typed, NULL,
      "each head of each pane against exact attention: mass, output error; N: of so many tokens",
      "[N]" },
    { "decode", true, decode_typed, NULL,
      "what one token more costs each pane: cache, bytes and FLOPs of a step, its time; N: after "
      "so many tokens", "[N]" },
    { "causal", true, input_typed_causal, consider_causal,
      "on, off, or input: whether a token sees those after it", "WORD" },
    { "model", false, model_typed, NULL, "a model and a text: PATH TEXTFILE", "PATH TEXT" },
    { "swap", true, swap_typed, consider_swap,
      "a mechanism in the model: MECH [LAYERS], or @FILE", "MECH" },
};
#define TYPED_COUNT (sizeof(typed) / sizeof(*typed))

TypedHelp command_typed(size_t index)
{
    for (size_t i = 0; i < TYPED_COUNT; i++)
        if (typed[i].help && index-- == 0)
            return (TypedHelp){ typed[i].word, typed[i].help, typed[i].takes };
    return (TypedHelp){ 0 };
}

TypedHelp command_typed_named(const char *word)
{
    TypedHelp named;

    for (size_t i = 0; (named = command_typed(i)).word; i++)
        if (!strcmp(named.word, word))
            return named;
    return (TypedHelp){ 0 };
}

static const Typed *typed_find(const char *word, size_t length)
{
    for (size_t i = 0; i < TYPED_COUNT; i++)
        if (strlen(typed[i].word) == length && !strncmp(typed[i].word, word, length))
            return &typed[i];
    return NULL;
}

bool command_line_knows(const char *word)
{
    return typed_find(word, strlen(word)) || command_find(word) || action_find(word) ||
           mechanism_find(word);
}

/* False: the line is for something else. */
static bool run_typed(Ui *ui, const char *line)
{
    const Typed *t = typed_find(line, strcspn(line, " "));
    char         rest[512];

    if (!t)
        return false;
    line += strcspn(line, " ");
    if ((!*line && !t->alone) || (command_find(t->word) && strstr(line, " --")))
        return false; /* with options it is the command */
    snprintf(rest, sizeof(rest), "%s", line + strspn(line, " "));
    for (size_t end = strlen(rest); end && rest[end - 1] == ' ';)
        rest[--end] = '\0';
    t->run(ui, rest);
    return true;
}

static void offer_word(void *nearest, const char *word)
{
    meant_offer(nearest, word);
}

static void say_unknown(Ui *ui, const char *word)
{
    Meant nearest = { word, NULL, 2 + (int)strlen(word) / 4 };

    each_word(true, offer_word, &nearest);
    ui_say(ui, ROLE_ERROR, "'%s' is no command, action or mechanism%s%s%s; Ctrl-P lists "
           "everything", word, nearest.name ? "; nearest is '" : "",
           nearest.name ? nearest.name : "", nearest.name ? "'" : "");
}

bool command_enter(Ui *ui, const char *line)
{
    size_t         length = strcspn(line, " (:@");
    char           word[64];
    const Command *command;
    const Action  *action;

    if (run_typed(ui, line) || console_own_command(ui, line))
        return true;
    snprintf(word, sizeof(word), "%.*s", (int)(length < 60 ? length : 60), line);
    command = command_find(word);
    action = action_find(word);
    if (command && line[length] != '(') {
        if (command->run)
            command_start(ui, line);
        else
            ui_say(ui, ROLE_WARN, "%s runs from the shell only%s", word,
                   strcmp(word, "lua") ? "" : "; here :script FILE does, and ; is a console");
    } else if (action) {
        action_run(ui, action);
    } else if (mechanism_find(word)) {
        history_note(ui);
        if (ui->screen != SCREEN_COMPARE)
            panes_clear(ui);
        if ((line[length] ? panes_open(ui, line) : panes_pick(ui, mechanism_find(word))) &&
            !ui_take(ui, panes_focus(ui))) {
            ui->screen = SCREEN_COMPARE;
            panes_ask(ui);
        }
    } else if (lesson_place(word)) {
        ui_say(ui, ROLE_WARN, "'%s' is a lesson: :lesson %s opens it", word, word);
    } else {
        say_unknown(ui, word);
        return false;
    }
    return true;
}

/* ---- completing a line ------------------------------------------------------ */

/* The word of the explorer's own that the stem belongs to, or a --preset before it. */
static const Typed *typed_of(const char *text, const char *stem)
{
    size_t length = strlen(PRESET_WORD);

    if (stem == text)
        return NULL;
    while (stem > text && stem[-1] == ' ')
        stem--;
    if ((size_t)(stem - text) >= length && !strncmp(stem - length, PRESET_WORD, length))
        return typed_find(PRESET_WORD, length);
    return typed_find(text, strcspn(text, " "));
}

static void complete_usual(const Ui *ui, Found *f, const char *line)
{
    char           word[64];
    const Command *command;

    snprintf(word, sizeof(word), "%.*s", (int)(strcspn(line, " ") % sizeof(word)), line);
    command = f->stem > line ? command_find(word) : NULL;
    if (!found_in_layer(f) && !(command && found_in_call(f, line)))
        consider_all(f, f->stem == line);
    for (int i = 0; f->stem == line && console_command_name(ui, i); i++)
        found_add(f, console_command_name(ui, i));
}

void command_complete(Ui *ui, Field *field, char *choices, size_t size)
{
    const char *stem = field->text + field->cursor;
    Found       f = { 0 };
    const Typed *own;
    bool         inside; /* inside parentheses a comma follows, no blank */

    while (stem > field->text && stem[-1] != ' ')
        stem--;
    f.stem = stem;
    f.stem_length = (size_t)(field->text + field->cursor - stem);
    own = typed_of(field->text, stem);
    if (own && own->complete)
        own->complete(ui, &f);
    else if (!own)
        complete_usual(ui, &f, field->text);
    inside = f.stem != stem;
    choices[0] = '\0';
    if (f.count > 0) {
        char rest[64];

        snprintf(rest, sizeof(rest), "%s", f.common + f.stem_length);
        field_insert(field, rest);
        if (f.count == 1 && f.common[strlen(f.common) - 1] != '=' && !inside)
            field_insert(field, " ");
        if (f.count > 1)
            snprintf(choices, size, "%.500s", text_str(&f.all));
    }
    text_free(&f.all);
}
