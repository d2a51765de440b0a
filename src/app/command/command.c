/* command.c -- the table of commands, their help, completions and documents; see call.h. */
#include <string.h>

#include "app/call.h"
#include "app/command/command.h"
#include "app/figure/plots.h"
#include "app/glossary.h"
#include "attn/run/position.h"
#include "profile/record.h"

static const Command commands[] = {
#define COMMAND(name, arguments, words, help, run) { #name, arguments, help, words, run },
#include "app/command/commands.def"
#undef COMMAND
};

const Command *command_at(size_t index)
{
    return index < sizeof(commands) / sizeof(*commands) ? &commands[index] : NULL;
}

const Command *command_find(const char *name)
{
    for (size_t i = 0; command_at(i); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

/* Letters are outlines everywhere but in an SVG.  A file of no known kind is reported elsewhere. */
static bool check_letters(const Call *call, Error *err)
{
    const PngOptions kind = { .format = call->values[OPT_FORMAT] };
    FigureFormat     format;
    Error            ignored = ERROR_INIT;
    bool             svg = false;

    for (int i = 0; i < call->file_count; i++)
        svg = svg || (figure_format(call->files[i], &kind, &format, &ignored) &&
                      format == FORMAT_SVG_FILE);
    return svg || !call->values[OPT_LETTERS] || !call->file_count ||
           error_set(err, ERR_USAGE, "--letters is of an SVG: -o FILE.svg, not %s", call->files[0]);
}

/* words: of the call. */
static bool run_call(Session *s, Call *call, const char *const *words, int count, Text *out,
                     Error *err)
{
    Text line = { 0 };
    bool ok;

    if (call->values[OPT_HELP]) {
        command_help(call->command, out);
        return true;
    }
    if (!call->command->run)
        return error_set(err, ERR_USAGE, "'%s' is a process of its own: start it "
                         "from the shell, without --lua or another command around it", words[0]);
    /* Checked before a long run: a figure is lost where its folder does not exist. */
    for (int i = 0; command_draws(call->command) && i < call->file_count; i++)
        if (!file_place(call->files[i], err))
            return false;
    if (!check_letters(call, err) || !call_spares_all(call, err))
        return false;
    words_join(words, count, &line);
    call->line = text_str(&line);
    ok = call->command->run(s, call, out, err);
    text_free(&line);
    return ok;
}

bool command_run(Session *s, const char *const *words, int count, CommandReader reader,
                 int columns, Text *out, Error *err)
{
    Call call;

    if (!call_parse(&call, words, count, err) || !call_gives_once(&call, err))
        return false;
    call.tty = reader == READER_TERMINAL;
    call.paged = reader == READER_PAGER;
    call.columns = columns;
    return run_call(s, &call, words, count, out, err);
}

#define HELP_COLUMN   38
#define OPTION_COLUMN 28
#define HELP_WIDTH    79

/* Blanks up to a column of the line that began at `start`; none where memory is short. */
static void add_blanks(Text *out, size_t start, size_t column)
{
    while (text_ok(out) && out->length - start < column)
        text_add(out, " ");
}

/* Breaks the text at blanks; each line begins at column `indent`. */
static void add_wrapped(Text *out, const char *text, size_t indent)
{
    size_t column = indent;

    while (*text) {
        size_t word = strcspn(text, " ");

        if (column > indent && column + 1 + word > HELP_WIDTH) {
            text_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        text_addf(out, "%s%.*s", column || indent ? " " : "", (int)word, text);
        column += word + 1;
        text += word + strspn(text + word, " ");
    }
    text_add(out, "\n");
}

static void option_line(const Option *option, Text *out)
{
    size_t start = out->length;

    if (option->letter)
        text_addf(out, "  -%c, ", option->letter);
    else
        text_add(out, "      ");
    text_addf(out, "--%s%s%s", option->flag, option->value ? " " : "",
              option->value ? option->value : "");
    if (out->length - start > OPTION_COLUMN)
        text_addf(out, "\n%*s", OPTION_COLUMN, "");
    add_blanks(out, start, OPTION_COLUMN);
    add_wrapped(out, option->help, OPTION_COLUMN);
}

static const struct {
    const char *command, *line, *help;
} examples[] = {
#define EXAMPLE(command, line, help) { #command, line, help },
#include "app/command/examples.def"
#undef EXAMPLE
};
#define EXAMPLES (int)(sizeof(examples) / sizeof(*examples))

/* The k-th example of a command; -1: it has no more. */
static int example_of(const Command *command, int k)
{
    for (int i = 0; i < EXAMPLES; i++)
        if (!strcmp(examples[i].command, command->name) && k-- == 0)
            return i;
    return -1;
}

void command_help(const Command *command, Text *out)
{
    text_addf(out, "usage: attnscope %s %s [options]\n\n", command->name, command->arguments);
    add_wrapped(out, command->help, 0);
    text_add(out, "\noptions\n");
    for (int i = 0; i < OPT_COUNT; i++)
        if (command_takes(command, option_at(i)))
            option_line(option_at(i), out);
    for (int k = 0, at; (at = example_of(command, k)) >= 0; k++)
        text_addf(out, "%s  %s\n      %s\n", k ? "" : "\nexamples\n", examples[at].line,
                  examples[at].help);
}

void command_overview(Text *out, void (*explorer)(Text *out))
{
    text_add(out, "attnscope -- the same Q, K, V through every attention mechanism: what it "
                  "connects,\nwhat it loses, what it costs\n\nusage\n"
                  "  attnscope [INPUT]                    the explorer (a shipped sample when no "
                  "INPUT)\n");
    for (size_t i = 0; command_at(i); i++) {
        size_t start = out->length;

        text_addf(out, "  attnscope %s %s", commands[i].name, commands[i].arguments);
        if (out->length - start > HELP_COLUMN)
            text_addf(out, "\n%*s", HELP_COLUMN, "");
        add_blanks(out, start, HELP_COLUMN);
        add_wrapped(out, commands[i].help, HELP_COLUMN);
    }
    if (explorer)
        explorer(out);
    text_add(out, "\nmechanisms of your own\n"
                  "  --lua FILE, with any command or the explorer, runs a script first: what it\n"
                  "  defines by attn.pattern and attn.mechanism is in the catalogue then; so is\n"
                  "  what $XDG_CONFIG_HOME/attnscope/init.lua defines\n");
    text_add(out, "\nexamples\n"
                  "  attnscope                                    look around\n"
                  "  attnscope figure bigbird -n 48 -o bigbird.png\n"
                  "  attnscope compare full 'pattern(window(129))' performer -n 2048 -d 64\n"
                  "  attnscope run reformer --input samples/induction.safetensors --layer 1\n"
                  "\nattnscope COMMAND --help shows the options of a command; the manual is "
                  "attnscope(1).\n");
}

/* Documents made from the tables: Markdown, man page.
 * `make docs` writes them, `make check` compares them. */

/* ---- Markdown --------------------------------------------------------------- */

static void cell_escaped(Text *out, const char *s)
{
    for (; *s; s++)
        text_addf(out, *s == '|' ? "\\%c" : "%c", *s);
}

static void params_markdown(const Param *table, Text *out)
{
    if (!table || !table->name)
        return;
    text_add(out, "| parameter | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for (const Param *p = table; p->name; p++) {
        Text fallback = { 0 };

        params_print(p, NULL, &fallback);
        text_addf(out, "| `%s` | %s", p->name, param_type_name(p->type));
        for (int i = 0; p->choices && p->choices[i]; i++)
            text_addf(out, "%s%s", i ? ", " : ": ", p->choices[i]);
        if (p->shape)
            text_addf(out, " %s", p->shape);
        text_addf(out, " | %s | ",
                  p->type != PARAM_TYPE_TENSOR ? text_str(&fallback)
                  : p->drawn                   ? p->drawn
                                               : "-");
        cell_escaped(out, p->help);
        text_add(out, " |\n");
        text_free(&fallback);
    }
    text_add(out, "\n");
}

static void mechanism_markdown(const Mechanism *m, Text *out)
{
    char classes[32];

    text_addf(out, "## %s\n\n**%s**. %s %d", m->id, m->title, m->authors, m->year);
    if (m->arxiv)
        text_addf(out, ", arXiv %s", m->arxiv);
    text_addf(out, ". Class %s. Time %s, memory %s, decoding: %s. Causal: %s%s.\n\n",
              mechanism_classes(m, classes, sizeof(classes)), m->claim_time, m->claim_memory,
              m->claim_decode,
              m->always_causal ? "always"
              : m->causal      ? "yes"
              : m->no_causal   ? m->no_causal
                               : "no",
              m->at_end ? ", also with fewer queries than keys" : "");
    if (m->problem)
        text_addf(out, "- Problem: %s\n- Idea: %s\n- Price: %s\n\n", m->problem, m->idea,
                  m->price);
    text_add(out, "    ");
    for (const char *c = m->formula; *c; c++)
        text_addf(out, *c == '\n' ? "%c    " : "%c", *c);
    text_addf(out, "\n\n%s\n\nSource: %s.\n\n", m->teaches, m->source);
    params_markdown(m->params, out);
    text_add(out, "| view | kind | what it shows |\n| --- | --- | --- |\n");
    for (const ViewPromise *v = m->views; v && v->name; v++) {
        text_addf(out, "| `%s` | %s | ", v->name, view_kind_name(v->kind));
        cell_escaped(out, v->help);
        text_addf(out, "%s |\n", v->maybe ? " (not always there)" : "");
    }
    text_add(out, "\n");
}

static bool docs_mechanisms(Text *out)
{
    text_add(out, "# Mechanisms\n\nMade by `attnscope docs mechanisms`; do not edit.\n\n");
    for (size_t i = 0; mechanism_at(i); i++)
        mechanism_markdown(mechanism_at(i), out);
    text_add(out, "# Positions\n\nAny mechanism that takes one: `--position KIND`.\n\n");
    for (size_t i = 0; position_at(i); i++) {
        const Position *p = position_at(i);

        text_addf(out, "## %s\n\n**%s**: %s. %s%sSource: %s. ", p->id, p->title, p->help,
                  p->note ? p->note : "", p->note ? " " : "", p->source);
        text_addf(out, "Views: position_bias (or bias)%s%s.\n\n", p->views ? "; " : "",
                  p->views ? p->views : "");
        params_markdown(p->params, out);
    }
    return true;
}

static void presets_markdown(Text *out)
{
    text_add(out, "# Presets\n\nPublished pictures: `attnscope figure --preset NAME -o FILE.png`; "
                  "further options change them, `attnscope preset NAME` prints the command.\n\n"
                  "| preset | picture | from | what to see |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; preset_at(i); i++)
        text_addf(out, "| `%s` | %s | %s | %s |\n", preset_at(i)->id, preset_at(i)->title,
                  preset_at(i)->source, preset_at(i)->help);
    text_add(out, "\n");
}

static void plots_markdown(Text *out)
{
    text_add(out, "# Plots\n\nOf measured numbers: `attnscope compare ... --plot NAME,NAME`, "
                  "`attnscope figure 'MECH:plot(NAME)' ...`, key `v` of the explorer's profile.\n\n"
                  "| plot | what it shows |\n| --- | --- |\n");
    for (int k = 0; k < PLOT_KINDS; k++)
        text_addf(out, "| `%s` | %s |\n", plot_name((PlotKind)k), plot_help((PlotKind)k));
    text_add(out, "\n");
}

static bool docs_commands(Text *out)
{
    text_add(out, "# Commands\n\nMade by `attnscope docs commands`; do not edit.\n\n");
    for (size_t i = 0; command_at(i); i++) {
        const Command *c = command_at(i);

        text_addf(out, "## attnscope %s %s\n\n%s.\n\n", c->name, c->arguments, c->help);
        text_add(out, "| option | meaning |\n| --- | --- |\n");
        for (int id = 0; id < OPT_COUNT; id++) {
            const Option *o = option_at(id);

            if (!command_takes(c, o))
                continue;
            text_add(out, "| ");
            if (o->letter)
                text_addf(out, "`-%c`, ", o->letter);
            text_addf(out, "`--%s%s%s` | ", o->flag, o->value ? " " : "", o->value ? o->value : "");
            cell_escaped(out, o->help);
            text_add(out, " |\n");
        }
        text_add(out, "\n");
        for (int k = 0, at; (at = example_of(c, k)) >= 0; k++)
            text_addf(out, "Example: %s.\n\n    %s\n\n", examples[at].help, examples[at].line);
    }
    presets_markdown(out);
    plots_markdown(out);
    return true;
}

static bool docs_views(Text *out)
{
    text_add(out, "# Kinds of view\n\nMade by `attnscope docs views`; do not edit.\n\n"
                  "| kind | one cell is |\n| --- | --- |\n");
    for (int k = 0; k < VIEW_KIND_COUNT; k++)
        text_addf(out, "| %s | %s |\n", view_kind_name((ViewKind)k),
                  view_kind_meaning((ViewKind)k));
    return true;
}

/* ---- man page --------------------------------------------------------------- */

static void man_option(const Option *o, Text *out)
{
    text_add(out, ".TP\n.B ");
    if (o->letter)
        text_addf(out, "\\-%c, ", o->letter);
    text_add(out, "\\-\\-");
    text_add_roff(out, o->flag);
    if (o->value)
        text_addf(out, " \\fI%s\\fR", o->value);
    text_add(out, "\n");
    text_add_roff(out, o->help);
    text_add(out, "\n");
}

static void man_examples(Text *out)
{
    text_add(out, ".SH EXAMPLES\n");
    for (int i = 0; i < EXAMPLES; i++) {
        text_add(out, ".TP\n.B ");
        text_add_roff(out, examples[i].line);
        text_add(out, "\n");
        text_add_roff(out, examples[i].help);
        text_add(out, "\n");
    }
}

static void man_surroundings(Text *out)
{
    text_add(out,
             ".SH EXIT STATUS\n0 done, 1 the run failed, 2 usage, 3 a check found a difference, "
             "4 diff could judge the time of no point, 130 interrupted.\n.SH ENVIRONMENT\n.TP\n"
             ".B NO_COLOR\nno colours when not empty.\n"
             ".TP\n.B TERM, LC_ALL\nno sequences on a dumb terminal; plain ASCII on one whose "
             "locale is not UTF-8 (files and pipes have UTF-8 everywhere).\n"
             ".TP\n.B LINES, COLUMNS, TMPDIR, XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME, "
             "XDG_CACHE_HOME, XDG_DATA_DIRS\nas usual; see FILES.\n"
             ".TP\n.B ATTNSCOPE_TIMED_SECONDS\na measurement repeats a run for at least so many "
             "seconds, if these are fewer than usual (0.2, or 0.05 without \\-\\-repeat and "
             "\\-\\-within). For tests that read no times.\n"
             ".TP\n.B ATTNSCOPE_SILENT_SECONDS\nwhere standard error is no terminal, compare "
             "names each row that is done from so many seconds on (1), and a run tells how far it "
             "is (10). Everywhere a run that will take so long (60) says so before.\n"
             ".TP\n.B ATTNSCOPE_ISA\navx2 or generic: the loops of older processors, and "
             "OpenBLAS's kernels for them, to measure these (avx512: as when unset).\n"
             ".TP\n.B ATTNSCOPE_CUDNN, ATTNSCOPE_WGMMA, ATTNSCOPE_GRAPHS\nways of runs on a GPU: "
             "0 leaves one out, 1 takes it without a trial; see docs/gpu.md.\n"
             ".TP\n.B OPENBLAS_NUM_THREADS\n1 where the number of processes is limited: OpenBLAS "
             "starts threads that this program does not use.\n"
             ".SH FILES\nWithout the variable a folder is that of HOME in brackets.\n"
             ".TP\n.I $XDG_CONFIG_HOME/attnscope/init.lua (.config)\na Lua script that runs "
             "before every command and before the explorer.\n"
             ".TP\n.I $XDG_STATE_HOME/attnscope (.local/state)\nsessions, steps of lessons that "
             "are done, kept messages, lines of the Lua prompt, trials of a GPU.\n"
             ".TP\n.I $XDG_DATA_HOME/attnscope/lessons, lua (.local/share)\nlessons and scripts "
             "of a user; lessons for all users lie in attnscope/lessons of XDG_DATA_DIRS.\n"
             ".TP\n.I $XDG_CACHE_HOME/attnscope/shipped (.cache)\nsamples and scripts, where they "
             "are not beside the program; if it cannot be written, "
             "$TMPDIR/attnscope\\-UID.\n");
}

static bool docs_man(Text *out)
{
    text_addf(out,
              ".TH ATTNSCOPE 1 \"\" \"attnscope %s\"\n.SH NAME\nattnscope \\- see, compare and "
              "measure attention mechanisms\n.SH SYNOPSIS\n.B attnscope\n[\\fIINPUT\\fR]\n.br\n"
              ".B attnscope\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\nRuns the same "
              "queries, keys and values through many attention mechanisms and shows what each "
              "connects, what it loses and what it costs. Without a command the explorer opens.\n"
              ".SH COMMANDS\n",
              ATTNSCOPE_VERSION);
    for (size_t i = 0; command_at(i); i++) {
        text_addf(out, ".TP\n.B %s \\fI", command_at(i)->name);
        text_add_roff(out, command_at(i)->arguments);
        text_add(out, "\\fR\n");
        text_add_roff(out, command_at(i)->help);
        text_add(out, "\n");
    }
    text_add(out, ".SH OPTIONS\nEach command takes those that make sense for it; "
                  "\\fBattnscope COMMAND \\-\\-help\\fR lists them.\n");
    for (int id = 0; id < OPT_COUNT; id++)
        man_option(option_at(id), out);
    man_examples(out);
    text_add(out, ".SH PRESETS\nPublished pictures, for \\fBfigure \\-\\-preset\\fR.\n");
    for (size_t i = 0; preset_at(i); i++) {
        text_add(out, ".TP\n.B ");
        text_add_roff(out, preset_at(i)->id);
        text_add(out, "\n");
        text_add_roff(out, preset_at(i)->title);
        text_add(out, " (");
        text_add_roff(out, preset_at(i)->source);
        text_add(out, ")\n");
    }
    man_surroundings(out);
    return true;
}

static bool docs_systems(Text *out)
{
    text_add(out, "# The systems of the surveys\n\nMade by `attnscope docs systems`; do not edit. "
                  "`attnscope list --table` prints it. Where the surveys disagree on a "
                  "complexity, each claim stands with its source.\n\n");
    systems_list(TABLE_MARKDOWN, 0, out);
    return true;
}

static bool docs_conventions(Text *out)
{
    text_add(out, "# What the numbers mean\n\nMade by `attnscope docs conventions`; do not edit. "
                  "`attnscope info conventions` prints it.\n");
    for (size_t i = 0; convention_at(i); i++)
        text_addf(out, "\n**%s.** %s\n", convention_at(i)->number, convention_at(i)->text);
    return true;
}

static bool docs_glossary(Text *out)
{
    glossary_document(out);
    return true;
}

static const struct {
    const char *name;
    bool (*write)(Text *out);
} documents[] = {
    { "mechanisms", docs_mechanisms },
    { "commands", docs_commands },
    { "views", docs_views },
    { "systems", docs_systems },
    { "conventions", docs_conventions },
    { "glossary", docs_glossary },
    { "man", docs_man },
};

bool command_docs(Session *s, const Call *call, Text *out, Error *err)
{
    const char *kind = call->word_count ? call->words[0] : "";

    (void)s;
    for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++)
        if (!strcmp(documents[i].name, kind))
            return documents[i].write(out);
    return error_set(err, ERR_USAGE,
                     "docs: expected mechanisms, commands, views, systems, conventions, glossary, "
                     "keys, lua, luals or man, got '%s'",
                     kind);
}
