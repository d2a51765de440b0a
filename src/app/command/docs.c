/* docs.c -- documents made from the tables: Markdown, man page.
 * `make docs` writes them, `make check` compares them. */
#include "app/command/command.h"
#include "app/figure/plots.h"
#include "attn/run/position.h"
#include "profile/record.h"

#include <string.h>

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
        text_addf(out, " | %s | ", p->type == PARAM_TYPE_TENSOR ? p->drawn : text_str(&fallback));
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
    text_addf(out, ". Class %s. Time %s, memory %s, decoding: %s. Causal: %s.\n\n    ",
              mechanism_classes(m, classes, sizeof(classes)), m->claim_time, m->claim_memory,
              m->claim_decode,
              m->causal      ? "yes"
              : m->no_causal ? m->no_causal
                             : "no");
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

        text_addf(out, "## %s\n\n**%s**. %s Source: %s. Views: position_bias (or bias)%s%s.\n\n",
                  p->id, p->title, p->help, p->source, p->views ? "; " : "",
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

static void roff(Text *out, const char *s)
{
    for (bool start = true; *s; start = *s++ == '\n') {
        if (start && (*s == '.' || *s == '\''))
            text_add(out, "\\&");
        text_addf(out, *s == '-' || *s == '\\' ? "\\%c" : "%c", *s);
    }
}

static void man_option(const Option *o, Text *out)
{
    text_add(out, ".TP\n.B ");
    if (o->letter)
        text_addf(out, "\\-%c, ", o->letter);
    text_add(out, "\\-\\-");
    roff(out, o->flag);
    if (o->value)
        text_addf(out, " \\fI%s\\fR", o->value);
    text_add(out, "\n");
    roff(out, o->help);
    text_add(out, "\n");
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
        roff(out, command_at(i)->arguments);
        text_add(out, "\\fR\n");
        roff(out, command_at(i)->help);
        text_add(out, "\n");
    }
    text_add(out, ".SH OPTIONS\nEach command takes those that make sense for it; "
                  "\\fBattnscope COMMAND \\-\\-help\\fR lists them.\n");
    for (int id = 0; id < OPT_COUNT; id++)
        man_option(option_at(id), out);
    text_add(out, ".SH PRESETS\nPublished pictures, for \\fBfigure \\-\\-preset\\fR.\n");
    for (size_t i = 0; preset_at(i); i++) {
        text_add(out, ".TP\n.B ");
        roff(out, preset_at(i)->id);
        text_add(out, "\n");
        roff(out, preset_at(i)->title);
        text_add(out, " (");
        roff(out, preset_at(i)->source);
        text_add(out, ")\n");
    }
    text_add(out,
             ".SH EXIT STATUS\n0 done, 1 the run failed, 2 usage, 3 a check found a difference, "
             "130 interrupted.\n.SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colours when not empty.\n"
             ".TP\n.B TERM, LC_ALL\nno sequences on a dumb terminal; plain ASCII on one whose "
             "locale is not UTF-8 (files and pipes have UTF-8 everywhere).\n"
             ".TP\n.B LINES, COLUMNS, XDG_DATA_HOME\nas usual.\n"
             ".TP\n.B ATTNSCOPE_CUDNN, ATTNSCOPE_WGMMA, ATTNSCOPE_GRAPHS\nways of runs on a GPU: "
             "0 leaves one out, 1 takes it without a trial; see docs/gpu.md.\n");
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

static const struct {
    const char *name;
    bool (*write)(Text *out);
} documents[] = {
    { "mechanisms", docs_mechanisms },
    { "commands", docs_commands },
    { "views", docs_views },
    { "systems", docs_systems },
    { "conventions", docs_conventions },
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
                     "docs: expected mechanisms, commands, views, systems, conventions, keys, lua, "
                     "luals or man, got '%s'",
                     kind);
}
