/* journal_lua.c -- entries of the journal as a Lua script; see journal.h.
 *
 * A run that several steps show is made once.  Every step ends in a figure, printed as
 * text; what was exported is written again under its name.
 */
#include "ui/state/journal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Made {
    const char *input, *run; /* borrowed from the entries */
    int         number;
} Made;

typedef struct Writer {
    Text *out;
    Made *inputs, *runs; /* as many as there may be */
    int   input_count, run_count, step;
} Writer;

void journal_quote(Text *out, const char *text)
{
    text_add(out, "\"");
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            text_addf(out, "\\%c", *text);
        else if ((unsigned char)*text < 32)
            text_addf(out, "\\%03d", *text);
        else
            text_add_bytes(out, text, 1);
    text_add(out, "\"");
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* ---- inputs and runs -------------------------------------------------------- */

/* Its number, 1 and up; loaded where it is new. */
static int input_of(Writer *w, const char *input)
{
    for (int i = 0; i < w->input_count; i++)
        if (!strcmp(w->inputs[i].input, input))
            return w->inputs[i].number;
    w->inputs[w->input_count] = (Made){ .input = input, .number = w->input_count + 1 };
    text_addf(w->out, "input[%d] = assert(attn.load(%s))\n", w->input_count + 1, input);
    return ++w->input_count;
}

/* "run.sparse_strided_3" */
static void name_run(Text *out, const char *mechanism, int number)
{
    text_add(out, "run.");
    for (const char *c = mechanism; *c; c++)
        text_addf(out, "%c", isalnum((unsigned char)*c) ? *c : '_');
    text_addf(out, "_%d", number);
}

static int run_of(Writer *w, const char *input, const char *mechanism, const char *run)
{
    int number = input_of(w, input);

    for (int i = 0; i < w->run_count; i++)
        if (!strcmp(w->runs[i].run, run) && !strcmp(w->runs[i].input, input))
            return w->runs[i].number;
    w->runs[w->run_count] = (Made){ .input = input, .run = run, .number = w->run_count + 1 };
    name_run(w->out, mechanism, ++w->run_count);
    text_addf(w->out, " = assert(attn.run(%sinput = input[%d] }))\n", run, number);
    return w->run_count;
}

/* ---- steps ------------------------------------------------------------------ */

static void write_panels(Writer *w, const JournalEntry *e, const int *runs, const int *minus)
{
    text_add(w->out, "attn.figure {\n    panels = {\n");
    for (int i = 0; i < e->count; i++) {
        const JournalPanel *p = &e->panels[i];

        text_add(w->out, "        { result = ");
        name_run(w->out, text_of(p->name), runs[i]);
        text_add(w->out, text_of(p->looks));
        if (p->minus) {
            text_add(w->out, ", minus = ");
            name_run(w->out, text_of(p->minus_name), minus[i]);
        }
        text_add(w->out, " },\n");
    }
    text_add(w->out, "    },\n}");
}

/* The runs first, then the figure of them. */
static void write_figure(Writer *w, const JournalEntry *e, const char *before, const char *after)
{
    int runs[PANES_MOST + 1] = { 0 }, minus[PANES_MOST + 1] = { 0 };

    for (int i = 0; i < e->count; i++) {
        const JournalPanel *p = &e->panels[i];

        runs[i] = run_of(w, text_of(e->input), text_of(p->name), text_of(p->run));
        if (p->minus)
            minus[i] = run_of(w, text_of(e->input), text_of(p->minus_name), p->minus);
    }
    text_add(w->out, before);
    write_panels(w, e, runs, minus);
    text_add(w->out, after);
}

static void write_seen(Writer *w, const JournalEntry *e)
{
    Text before = { 0 }, words = { 0 };

    for (int i = 0; i < e->count; i++)
        text_addf(&words, "%s%s", i ? " | " : "", text_of(e->panels[i].words));
    text_addf(&before, "step(%d, ", ++w->step);
    journal_quote(&before, text_str(&words));
    text_add(&before, ", ");
    write_figure(w, e, text_str(&before), ")\n");
    text_free(&before);
    text_free(&words);
}

static void write_exported(Writer *w, const JournalEntry *e)
{
    Text after = { 0 };

    text_add(&after, ", ");
    journal_quote(&after, text_of(e->path));
    text_add(&after, ")\n");
    text_add(w->out, "export(attn.figure { command = ");
    journal_quote(w->out, text_of(e->command));
    text_addf(w->out, " }%s", text_str(&after));
    text_free(&after);
}

static void write_measured(Writer *w, const JournalEntry *e)
{
    for (int i = 0; i < e->count; i++) {
        int number = input_of(w, text_of(e->input));

        text_addf(w->out, "measure(%sinput = input[%d] })\n", text_of(e->panels[i].run), number);
    }
}

static void write_entry(Writer *w, const JournalEntry *e)
{
    char      when[32] = "";
    struct tm parts;

    if (localtime_r(&e->when, &parts))
        strftime(when, sizeof(when), "%H:%M:%S", &parts);
    text_addf(w->out, "\n-- %s\n", when);
    switch (e->kind) {
    case JOURNAL_SEEN: write_seen(w, e); break;
    case JOURNAL_EXPORTED: write_exported(w, e); break;
    case JOURNAL_MEASURED: write_measured(w, e); break;
    case JOURNAL_COMMAND: text_addf(w->out, "--   attnscope %s\n", text_of(e->command)); break;
    }
}

/* ---- the script ------------------------------------------------------------- */

static bool any_of(const JournalEntry *entries, int count, JournalKind kind)
{
    for (int i = 0; i < count; i++)
        if (entries[i].kind == kind)
            return true;
    return false;
}

/* Only what the steps below call. */
static void write_helpers(const JournalEntry *entries, int count, Text *out)
{
    if (any_of(entries, count, JOURNAL_SEEN))
        text_add(out, "\nif folder then\n"
                      "    local quoted = folder:gsub(\"'\", \"'\\\\''\")\n"
                      "    os.execute(\"mkdir -p -- '\" .. quoted .. \"'\")\n"
                      "end\n"
                      "\nlocal function step(number, words, figure)\n"
                      "    print((\"%d  %s\"):format(number, words))\n"
                      "    print((assert(figure:text { width = 100 })))\n"
                      "    if folder then\n"
                      "        assert(figure:save((\"%s/step-%02d.png\"):format(folder, number)))\n"
                      "    end\n"
                      "end\n");
    if (any_of(entries, count, JOURNAL_EXPORTED))
        text_add(out, "\nlocal function export(figure, path)\n"
                      "    assert(assert(figure):save(path))\n"
                      "    print(\"written: \" .. path)\n"
                      "end\n");
    if (any_of(entries, count, JOURNAL_MEASURED))
        text_add(out, "\nlocal function measure(mechanism, options)\n"
                      "    local record = assert(attn.profile(mechanism, options))\n"
                      "    print((\"%s  %.3g ms  %.4g FLOPs\"):format(mechanism,\n"
                      "        record.time_ms.median, record.flops.counted))\n"
                      "end\n");
}

static void write_head(const JournalEntry *entries, int count, Text *out)
{
    char      here[4096] = ".", day[32] = "";
    time_t    now = time(NULL);
    struct tm parts;

    if (localtime_r(&now, &parts))
        strftime(day, sizeof(day), "%Y-%m-%d", &parts);
    text_addf(out,
              "-- What was done in attnscope " ATTNSCOPE_VERSION " on %s, to be done again:\n--\n"
              "--   attnscope lua THIS.lua           prints each step, writes what was exported\n"
              "--   attnscope lua THIS.lua FOLDER    each step as FOLDER/step-01.png, ... too\n--\n"
              "-- Paths are as they were given in %s\n\n"
              "local attn = require \"attnscope\"\n"
              "local folder = attn.args[1]\n"
              "local input, run = {}, {}\n",
              day, getcwd(here, sizeof(here)) ? here : ".");
    write_helpers(entries, count, out);
}

void journal_script(const JournalEntry *entries, int count, Text *out)
{
    size_t most = (size_t)count * 2 * (PANES_MOST + 1) + 1;
    Writer w = { .out = out, .inputs = calloc(most, sizeof(Made)),
                 .runs = calloc(most, sizeof(Made)) };

    out->failed |= !w.inputs || !w.runs;
    if (!out->failed) {
        write_head(entries, count, out);
        for (int i = 0; i < count; i++)
            write_entry(&w, &entries[i]);
    }
    free(w.inputs);
    free(w.runs);
}
