/* ui.c -- options of the explorer, its beginning and its end; see ui.h. */
#include "ui/shell/ui.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/program.h"
#include "app/session/model_input.h"
#include "app/session/session.h"
#include "core/text.h"
#include "ui/screen/home.h"
#include "ui/screen/model.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/journal.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"
#include "ui/term/term.h"

typedef struct Start {
    TermOptions term;
    InputChoice choice;
    const char *input; /* NULL: the shipped sample */
    ModelText   text;  /* that a model reads */
    Request     defaults;
    const char *device, *precision; /* NULL: not given */
    const char *session; /* saved; NULL: none */
    const char *script;  /* run when all is open; NULL: none */
    Call        step; /* `attnscope step MECH` or lesson; without a command: not that */
    int         theme, glyphs; /* -1: as usual, or as saved */
    bool        keep_messages;
    bool        help;
    const LessonReader *lessons;
} Start;

static const char usage[] =
    "usage: attnscope [INPUT] [options]\n"
    "\n"
    "Opens the explorer on INPUT: npy, npz, safetensors, csv, json, txt or png file,\n"
    "synthetic:NAME(args), sample:NAME (attnscope info inputs) or a model, model:PATH.\n"
    "Without INPUT it opens a short English text; E goes on to a trained model's heads.\n"
    "? lists the keys.\n"
    "\n";

static const char usage_options[] =
    "  -i, --input INPUT    the same as INPUT alone\n"
    "      --session NAME   open a saved session (last: what was open when you last\n"
    "                       left); with INPUT, the same panes on that input\n"
    "  -n N                 sequence length: shortens a file, sizes generated input\n"
    "  -d D                 head size of generated q, k, v\n"
    "      --heads H        number of heads of generated q, k, v\n"
    "      --layer L        layer of the file (default: the first one in it)\n"
    "      --text FILE      of a model: the text it reads; - is standard input\n"
    "      --ids FILE       of a model: token ids instead of a text\n"
    "      --max-tokens N   of a model: at most this many tokens\n"
    "      --no-special     of a model: without the tokens around a text\n"
    "      --seed S         seed of every random draw (default 0)\n"
    "      --causal         queries see no later key (default: as the input says)\n"
    "      --threads T      threads (default: all CPUs)\n"
    "      --device D       cpu, cuda, or auto: a GPU if one can be used (D\n"
    "                       switches)\n"
    "      --precision P    format of matrix products on a GPU: f32, tf32, bf16, f16\n"
    "      --color C        auto, truecolor, 256, 16, 8 or none (NO_COLOR is\n"
    "                       honoured)\n"
    "      --theme T        default, light, high contrast or mono (W switches)\n"
    "      --glyphs G       half, quadrants, braille, full or ascii (b switches)\n"
    "      --utf8           use UTF-8, whatever the locale says\n"
    "      --ascii          use only ASCII\n"
    "      --lua FILE       run a script first; it may define mechanisms\n"
    "      --script FILE    run a script in the explorer (; opens its console)\n"
    "      --no-mouse       leave the mouse to the terminal (M switches)\n"
    "      --keep-messages  on leaving, add messages to a file in\n"
    "                       $XDG_STATE_HOME/attnscope\n"
    "  -h, --help           print this help\n";

enum {
    ARG_SESSION = 256,
    ARG_LAYER,
    ARG_HEADS,
    ARG_SEED,
    ARG_CAUSAL,
    ARG_THREADS,
    ARG_DEVICE,
    ARG_PRECISION,
    ARG_COLOUR,
    ARG_THEME,
    ARG_GLYPHS,
    ARG_KEEP_MESSAGES,
    ARG_UTF8,
    ARG_ASCII,
    ARG_NO_MOUSE,
    ARG_SCRIPT,
    ARG_TEXT,
    ARG_IDS,
    ARG_MOST_TOKENS,
    ARG_NO_SPECIAL
};

static const struct option options[] = {
    { "n", required_argument, NULL, 'n' },
    { "d", required_argument, NULL, 'd' },
    { "heads", required_argument, NULL, ARG_HEADS },
    { "layer", required_argument, NULL, ARG_LAYER },
    { "text", required_argument, NULL, ARG_TEXT },
    { "ids", required_argument, NULL, ARG_IDS },
    { "max-tokens", required_argument, NULL, ARG_MOST_TOKENS },
    { "no-special", no_argument, NULL, ARG_NO_SPECIAL },
    { "session", required_argument, NULL, ARG_SESSION },
    { "i", required_argument, NULL, 'i' },
    { "input", required_argument, NULL, 'i' },
    { "seed", required_argument, NULL, ARG_SEED },
    { "causal", no_argument, NULL, ARG_CAUSAL },
    { "threads", required_argument, NULL, ARG_THREADS },
    { "device", required_argument, NULL, ARG_DEVICE },
    { "precision", required_argument, NULL, ARG_PRECISION },
    { "color", required_argument, NULL, ARG_COLOUR },
    { "colour", required_argument, NULL, ARG_COLOUR },
    { "theme", required_argument, NULL, ARG_THEME },
    { "glyphs", required_argument, NULL, ARG_GLYPHS },
    { "keep-messages", no_argument, NULL, ARG_KEEP_MESSAGES },
    { "utf8", no_argument, NULL, ARG_UTF8 },
    { "ascii", no_argument, NULL, ARG_ASCII },
    { "no-mouse", no_argument, NULL, ARG_NO_MOUSE },
    { "script", required_argument, NULL, ARG_SCRIPT },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static bool whole_number(const char *name, const char *text, int64_t least, int64_t *out,
                         Error *err)
{
    if (!text_whole(text, out) || *out < least)
        return error_set(err, ERR_USAGE, "%s: '%.40s' is not a whole number from %lld", name, text,
                         (long long)least);
    return true;
}

static bool take_look(Start *start, int option, const char *value, Error *err)
{
    Theme  theme;
    Glyphs glyphs;
    bool   ok = option == ARG_THEME ? theme_parse(value, &theme, err)
                                    : glyphs_parse(value, &glyphs, err);

    if (ok && option == ARG_THEME)
        start->theme = (int)theme;
    else if (ok)
        start->glyphs = (int)glyphs;
    return ok;
}

static bool take_input(Start *start, const char *value, Error *err)
{
    if (start->input && mechanism_find(value))
        return error_set(err, ERR_USAGE, "%s is a mechanism: attnscope %s --input %s opens it on "
                         "that input", value, value, start->input);
    if (start->input && command_find(start->input) && access(start->input, F_OK) != 0)
        return error_set(err, ERR_USAGE, "%s is a command, and no option stands before it: "
                         "attnscope %s %.60s", start->input, start->input, value);
    if (start->input)
        return error_set(err, ERR_USAGE, "one input at a time: '%.60s' is one too many", value);
    start->input = value;
    return true;
}

static bool unknown_option(const char *word, Error *err)
{
    Text names = { 0 };

    for (const struct option *o = options; o->name; o++)
        text_addf(&names, " %s%s", o->name[1] ? "--" : "-", o->name);
    error_set(err, ERR_USAGE, "the explorer has no option '%.60s' (it has:%s)", word,
              text_str(&names));
    text_free(&names);
    return false;
}

static bool take_option(Start *start, int option, const char *value, Error *err)
{
    int64_t number = 0;
    bool    ok;

    switch (option) {
    case 'n': return whole_number("-n", value, 1, &start->choice.n, err);
    case 'd': return whole_number("-d", value, 1, &start->choice.d, err);
    case ARG_HEADS: return whole_number("--heads", value, 1, &start->choice.heads, err);
    case ARG_TEXT: start->text.text = value; return true;
    case ARG_IDS: start->text.ids = value; return true;
    case ARG_MOST_TOKENS: return whole_number("--max-tokens", value, 1, &start->text.most, err);
    case ARG_NO_SPECIAL: start->text.bare = true; return true;
    case ARG_SESSION: start->session = value; return true;
    case 'i': return take_input(start, value, err);
    case ARG_LAYER: return whole_number("--layer", value, 0, &start->choice.layer, err);
    case ARG_SEED:
        ok = whole_number("--seed", value, 0, &number, err);
        start->choice.seed = start->defaults.seed = (uint64_t)number;
        return ok;
    case ARG_CAUSAL: start->defaults.causal = 1; return true;
    case ARG_THREADS:
        ok = whole_number("--threads", value, 1, &number, err);
        start->defaults.threads = (int)(number < 4096 ? number : 4096);
        return ok;
    case ARG_DEVICE: start->device = value; return device_word(value, err);
    case ARG_PRECISION: start->precision = value; return precision_word(value, err);
    case ARG_COLOUR: return capability_parse(value, &start->term.colours, err);
    case ARG_THEME:
    case ARG_GLYPHS: return take_look(start, option, value, err);
    case ARG_KEEP_MESSAGES: start->keep_messages = true; return true;
    case ARG_UTF8: start->term.utf8 = 1; return true;
    case ARG_ASCII: start->term.utf8 = 0; return true;
    case ARG_NO_MOUSE: start->term.mouse = false; return true;
    case ARG_SCRIPT: start->script = value; return true;
    case 'h': start->help = true; return true;
    case ':': return error_set(err, ERR_USAGE, "%.60s needs a value", value);
    default:
        return unknown_option(value, err);
    }
}

void ui_options(Text *out)
{
    text_addf(out, "\nthe explorer, attnscope [INPUT]\n%s", usage_options);
}

void ui_man(Text *out)
{
    text_add(out, ".SH EXPLORER\nOptions of \\fBattnscope\\fR [\\fIINPUT\\fR]:\n.nf\n");
    for (const char *c = usage_options; *c; c++)
        text_addf(out, *c == '-' ? "\\%c" : "%c", *c);
    text_add(out, ".fi\n");
}

/* The name of a model's input holds the text it reads. */
static bool join_text(Start *start, Error *err)
{
    const ModelText *text = &start->text;
    Text             spec = { 0 };
    bool             ok;

    if (!text->text && !text->ids && !text->most && !text->bare)
        return true;
    if (!start->input || !model_spec_is(start->input))
        return error_set(err, ERR_USAGE, "--text, --ids, --max-tokens and --no-special are for a "
                         "model: attnscope model:PATH --text FILE");
    if (text->text && text->ids)
        return error_set(err, ERR_USAGE, "choose one of --text and --ids");
    ok = model_spec_write(start->input, text, &spec, err);
    start->input = ok ? call_keep_word(text_str(&spec)) : NULL;
    text_free(&spec);
    return ok && (start->input || error_set(err, ERR_NOMEM, "not enough memory"));
}

static bool parse(Start *start, int argc, char **argv, Error *err)
{
    int option;

    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":i:n:d:h", options, NULL)) != -1)
        if (!take_option(start, option, option == '?' || option == ':' ? argv[optind - 1] : optarg,
                         err))
            return false;
    while (optind < argc)
        if (!take_input(start, argv[optind++], err))
            return false;
    return join_text(start, err);
}

/* The command's own words, without the program's name. */
static bool parse_step(Start *start, int argc, char **argv, Error *err)
{
    if (!call_parse(&start->step, (const char *const *)argv + 1, argc - 1, err))
        return false;
    start->device = start->step.values[OPT_DEVICE];
    start->precision = start->step.values[OPT_PRECISION];
    return true;
}

/* `model PATH --text FILE` and no option that changes the table. */
static bool takes_model(const Call *call)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (call->values[i] && i != OPT_TEXT && i != OPT_IDS && i != OPT_MOSTTOKENS &&
            i != OPT_NOSPECIAL)
            return false;
    return call->word_count == 1 && call->text_count <= 1 && model_spec_is(call->words[0]) &&
           (call->values[OPT_TEXT] || call->values[OPT_IDS]);
}

static bool is_model(const char *command)
{
    return !strcmp(command, "model");
}

/* The explorer's screen of the model, as if it was the input. */
static bool parse_model(Start *start, int argc, char **argv, Error *err)
{
    if (!parse_step(start, argc, argv, err) || !call_model_text(&start->step, &start->text, err))
        return false;
    start->input = start->step.words[0];
    start->step = (Call){ 0 };
    return join_text(start, err);
}

static bool is_lesson(const char *command)
{
    return !strcmp(command, "lesson");
}

bool ui_takes(int argc, char **argv)
{
    static const OptionId as_text[] = { OPT_HELP,  OPT_OUTPUT, OPT_JSON, OPT_AT,
                                        OPT_COLOR, OPT_PRINT,  OPT_JUDGE, OPT_NO_ANSWERS };
    Start start = { 0 };
    Error err = ERROR_INIT;

    if (argc < 2 || !(is_lesson(argv[1]) || is_model(argv[1]) || !strcmp(argv[1], "step")) ||
        !parse_step(&start, argc, argv, &err))
        return false;
    for (size_t i = 0; i < sizeof(as_text) / sizeof(*as_text); i++)
        if (start.step.values[as_text[i]])
            return false;
    if (is_model(argv[1]))
        return takes_model(&start.step);
    return is_lesson(argv[1]) ? start.step.word_count == 0 ||
                                    (start.step.word_count == 1 &&
                                     strcmp(start.step.words[0], "list") != 0)
                              : start.step.word_count == 1;
}

/* Without INPUT a text, because no token of it is hidden from another; a layer was asked for:
 * the sample that has layers. */
static bool open_sample(Ui *ui, const Start *start, Error *err)
{
    InputChoice choice = start->choice;
    const char *spec = start->input;

    if (!spec && choice.layer < 0)
        spec = samples_first(&choice);
    else if (!spec)
        spec = session_default_sample(ui->session, err);
    return spec && session_load(ui->session, spec, &choice, err);
}

static bool begins_with_model(const Start *start)
{
    const InputChoice *c = &start->choice;

    return start->input && !start->step.command && !start->session && !c->n && !c->d && !c->heads &&
           model_spec_is(start->input);
}

/* A sample is the input until the model's layer is there. */
static bool open_model(Ui *ui, const Start *start, Error *err)
{
    const char *spec = session_default_sample(ui->session, err);

    return spec && session_load(ui->session, spec, NULL, err) &&
           model_start(ui, start->input, start->choice.layer, err);
}

static bool load_input(Ui *ui, const Start *start, Error *err)
{
    const char *spec = start->input;

    if (start->step.command && is_lesson(start->step.command->name))
        return open_sample(ui, start, err);
    if (start->step.command)
        return call_check_params(&start->step, err) && call_load_input(ui->session, &start->step,
                                                                       err);
    if (begins_with_model(start))
        return open_model(ui, start, err);
    if (start->session)
        return saving_restore(ui, start->session, spec, &start->choice, err);
    return open_sample(ui, start, err);
}

static void say_start(Ui *ui)
{
    const Input *input = session_input(ui->session);
    bool         weights = input->attn.data && !input->q.data && !input->x.data && !input->v.data;

    if (ui->modelling)
        return; /* the input is not the model's yet */
    if (weights)
        browse_find_weights(ui);
    if (session_warning(ui->session))
        ui_say(ui, ROLE_WARN, "%s", session_warning(ui->session));
    else if (input->warning && !ui->message[0])
        ui_say(ui, ROLE_WARN, "%s", input->warning);
    else if (*saving_behind(ui) && !ui->message[0])
        ui_say(ui, ROLE_DIM, "as it was left%s", saving_behind(ui));
    else if (weights && !ui->message[0])
        ui_say(ui, ROLE_DIM, "the input holds finished weights: Enter shows them");
    else if (sample_words(session_input_spec(ui->session)) && !ui->message[0])
        ui_say(ui, ROLE_DIM, "%s", sample_words(session_input_spec(ui->session)));
    else if (input->note && !ui->message[0]) /* messages of the session come first */
        ui_say(ui, ROLE_DIM, "%s", input->note);
}

/* The lesson that was asked for, or the list. */
static bool open_lesson(Ui *ui, const Call *call, Error *err)
{
    int64_t step = 0;

    if (!call_int(call, OPT_LESSON_STEP, 1, LESSON_STEPS_MOST, &step, err))
        return false;
    action_lesson_list(ui);
    if (!call->word_count || lessons_begin(ui, call->words[0], (int)step - 1))
        return true;
    return error_set(err, ERR_USAGE, "%s", ui->message);
}

/* A bare id opens as it does from the list. */
static bool step_request(Ui *ui, const Call *call, Request *request, Error *err)
{
    const Mechanism *m = mechanism_find(call->words[0]);

    if (!call_request(ui->session, call, call->words[0], request, err))
        return false;
    if (!m || request->given.count || request_first_look(ui->session, request, m, err))
        return true;
    request_free(request);
    return false;
}

/* The mechanism whose stages were asked for, and the screen that shows them. */
static bool open_step(Ui *ui, const Start *start, Error *err)
{
    Request request;

    if (!start->step.command)
        return true;
    if (is_lesson(start->step.command->name))
        return open_lesson(ui, &start->step, err);
    if (!step_request(ui, &start->step, &request, err))
        return false;
    panes_open_request(ui, &request);
    ui->screen = SCREEN_STEP;
    return true;
}

/* Before there is anything else to show. */
static void say_early(void *context, const char *text)
{
    Ui *ui = context;

    term_clear(ui->term, (Style){ 0 });
    term_textf(ui->term, 0, 1, ui->term->cols - 2, theme_style(THEME_DEFAULT, ROLE_TITLE),
               "attnscope  %s\xe2\x80\xa6", text);
    term_flush(ui->term);
}

static void say_loading(Ui *ui, const Start *start)
{
    char text[256];

    snprintf(text, sizeof(text), "loading %s",
             start->input ? start->input : start->session ? start->session : "the sample");
    say_early(ui, text);
}

/* A new GPU is tested before the first run; one selected later uses stored results. */
static bool open_device(Ui *ui, const Start *start, Error *err)
{
    bool ok;

    session_on_progress(ui->session, say_early, ui);
    trials_allow();
    ok = request_device(ui->session, &ui->defaults, start->device, start->precision, err);
    trials_forbid();
    session_on_progress(ui->session, NULL, NULL);
    if (ok)
        say_loading(ui, start);
    return ok;
}

/* The screen first, then what may take time to load. */
static bool open_all(Ui *ui, const Start *start, Error *err)
{
    ui->term = term_open(&start->term, err);
    if (!ui->term)
        return false;
    say_loading(ui, start);
    ui->defaults = start->defaults;
    ui->theme = theme_of_background(getenv("COLORFGBG"));
    ui->compare.now.linked = true;
    ui->compare.drag_y = -1;
    ui->browse.cursor = 1;
    ui->stepping.speed = 1;
    ui->session = session_new(err);
    if (ui->session)
        session_on_lessons(ui->session, start->lessons);
    if (!ui->session ||
        !open_device(ui, start, err) || !draughtsman_open(&ui->draughtsman, err) ||
        !load_input(ui, start, err))
        return false;
    history_clear(ui); /* there is nothing to undo */
    if (start->input && model_spec_is(start->input))
        ui->screen = SCREEN_MODEL;
    ui->theme = start->theme >= 0 ? (Theme)start->theme : ui->theme;
    ui->glyphs = start->glyphs >= 0 ? (Glyphs)start->glyphs : ui->glyphs;
    ui->keep_messages = start->keep_messages;
    say_start(ui);
    if (!start->input && !start->session && !start->step.command && !start->script)
        home_greet(ui);
    return open_step(ui, start, err);
}

/* The terminal comes back at once, and the shell soon, whatever the worker is still doing. */
static void close_all(Ui *ui, int ended)
{
    term_close(ui->term);
    ui->term = NULL;
    signals_end_soon(ended);
    for (int i = SCREEN_COUNT - 1; i >= 0; i--)
        if (ui->screens[i]->end)
            ui->screens[i]->end(ui);
    history_clear(ui);
    if (ui->draughtsman.session)
        draughtsman_close(&ui->draughtsman);
    session_free(ui->session);
    text_free(&ui->log);
}

int ui_main(int argc, char **argv, Interpreter *interpreter, const LessonReader *lessons)
{
    Start start = { .term = { .colours = -1, .utf8 = -1, .mouse = true },
                    .choice = INPUT_CHOICE_DEFAULT,
                    .theme = -1,
                    .glyphs = -1,
                    .lessons = lessons,
                    .defaults = REQUEST_INIT };
    Error err = ERROR_INIT;
    Ui   *ui;
    int   ended;
    bool  opened, kept;

    if (!(!ui_takes(argc, argv) ? parse(&start, argc, argv, &err)
          : is_model(argv[1])   ? parse_model(&start, argc, argv, &err)
                                : parse_step(&start, argc, argv, &err)))
        return program_fail(&err);
    if (start.help) {
        fputs(usage, stdout);
        fputs(usage_options, stdout);
        return 0;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        error_set(&err, ERR_USAGE, "the explorer needs a terminal; in a pipe or a script use a "
                  "command (attnscope --help)");
        return program_fail(&err);
    }
    ui = calloc(1, sizeof(*ui));
    if (!ui) {
        error_set(&err, ERR_NOMEM, "not enough memory for the explorer");
        return program_fail(&err);
    }
    ui->screens = screens;
    console_begin(ui, interpreter);
    opened = open_all(ui, &start, &err);
    if (opened && start.script)
        console_file(ui, start.script);
    if (opened)
        explorer_loop(ui);
    lessons_leave(ui); /* saves the workspace from before the lesson */
    ended = ui->signal ? ui->signal : signals_ending();
    kept = !opened || saving_keep(ui, &err);
    kept = (!opened || messages_keep(ui, &err)) && kept;
    journal_close(ui);
    close_all(ui, ended);
    alarm(0);
    free(ui);
    if (!opened)
        return program_fail(&err);
    if (!kept)
        program_message((error_prefix(&err, "not kept"), err.text));
    if (ended)
        signals_raise(ended);
    return 0;
}
