/* journal.c -- see journal.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/result/views.h"
#include "ui/shell/actions.h"
#include "ui/state/journal.h"

#define ENTRIES_MOST 500
#define STANDS       1.0 /* seconds until what the panes show is a step */

struct Journal {
    JournalEntry entries[ENTRIES_MOST];
    int          count;
    Text         seen;  /* what the panes show, as text; to detect a change */
    double       since; /* when it came */
    bool         noted;
    const Result *measured[PANES_MOST]; /* already noted; to compare with only */
    JournalEntry pending;  /* an export under way */
    char         path[512]; /* being recorded to; "": not recording */
    int          from;      /* its first entry */
};

static struct Journal *journal_of(Ui *ui)
{
    if (!ui->journal)
        ui->journal = calloc(1, sizeof(*ui->journal));
    return ui->journal;
}

static void entry_free(JournalEntry *e)
{
    for (int i = 0; i < e->count; i++) {
        LuaPanel *p = &e->panels[i];

        free(p->name);
        free(p->run);
        free(p->minus_name);
        free(p->minus);
        free(p->looks);
        free(p->words);
    }
    free(e->input);
    free(e->options);
    free(e->path);
    free(e->command);
    *e = (JournalEntry){ 0 };
}

/* ---- words of Lua ----------------------------------------------------------- */

/* `text` as a Lua string. */
static void journal_quote(Text *out, const char *text)
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

/* Moves the text into a string; NULL: out of memory. */
static char *taken(Text *text)
{
    char *data = text_ok(text) ? strdup(text_str(text)) : NULL;

    text_free(text);
    return data;
}

static char *lua_run(const Request *r)
{
    Text name = { 0 }, out = { 0 };

    request_text(r, &name);
    journal_quote(&out, text_str(&name));
    text_add(&out, ", { ");
    if (r->causal >= 0)
        text_addf(&out, "causal = %s, ", r->causal ? "true" : "false");
    if (strcmp(r->position, "none") != 0)
        text_addf(&out, "position = \"%s\", ", r->position);
    if (r->seed)
        text_addf(&out, "seed = %llu, ", (unsigned long long)r->seed);
    if (r->fit)
        text_add(&out, "fit = true, ");
    if (r->keys)
        text_addf(&out, "keys = %d, ", r->keys);
    if (r->ops)
        text_addf(&out, "device = \"%s\", precision = \"%s\", ", r->device, r->precision);
    text_free(&name);
    return taken(&out);
}

static char *input_words(const Ui *ui)
{
    const InputChoice *c = session_choice(ui->session);
    const char        *spec = session_input_spec(ui->session);
    Text               out = { 0 }, options = { 0 };

    journal_quote(&out, spec ? spec : "-");
    if (c->layer > 0)
        text_addf(&options, ", layer = %lld", (long long)c->layer);
    if (c->n)
        text_addf(&options, ", n = %lld", (long long)c->n);
    if (c->d)
        text_addf(&options, ", d = %lld", (long long)c->d);
    if (c->heads)
        text_addf(&options, ", heads = %lld", (long long)c->heads);
    if (c->seed)
        text_addf(&options, ", seed = %llu", (unsigned long long)c->seed);
    if (options.length)
        text_addf(&out, ", { %s }", text_str(&options) + 2);
    text_free(&options);
    return taken(&out);
}

/* The chosen settings; all others are defaults in the script as well. */
static char *look_words(const Pane *pane, const Panel *panel, const PanelChoice *choice)
{
    const View *view = panel->view;
    bool        sorted = panel->row_order || panel->col_order;
    Text        out = { 0 };

    text_add(&out, ", view = ");
    journal_quote(&out, choice->spec.view);
    if (pane->spec.head > 0 && pane_heads(pane) > 1)
        text_addf(&out, ", head = %lld", (long long)pane->spec.head);
    if (view->kind == VIEW_HOPS)
        text_addf(&out, ", layers = %d%s", reach_view_depth(view),
                  reach_view_strict(view) ? ", residual = false" : "");
    text_add(&out, sorted ? ", sorted = true" : "");
    if (pane->spec.pool >= 0)
        text_addf(&out, ", pool = \"%s\"", pool_name(panel->pool));
    if (pane->spec.scale >= 0)
        text_addf(&out, ", scale = \"%s\"", scale_name(panel->scale));
    if (pane->spec.map >= 0)
        text_addf(&out, ", cmap = \"%s\"", colour_map_name(panel->map));
    if (!panel->plot &&
        (panel->region.row0 > 0 || panel->region.row1 < view_rows(view) ||
         panel->region.col0 > 0 || panel->region.col1 < view_cols(view)))
        text_addf(&out, ", region = { %lld, %lld, %lld, %lld }", (long long)panel->region.row0,
                  (long long)panel->region.row1, (long long)panel->region.col0,
                  (long long)panel->region.col1);
    return taken(&out);
}

static char *panel_words(const Panel *panel, const PanelChoice *choice)
{
    Text out = { 0 };

    text_addf(&out, "%s \xc2\xb7 %s%s", choice->result->request.mechanism, panel->view->name,
              choice->minus ? " (difference)" : "");
    return taken(&out);
}

/* Which panels have one colour scale. */
static char *options_words(const PictureOptions *o)
{
    Text out = { 0 };

    if (o->sharing == SHARE_ALL || o->sharing == SHARE_NONE)
        text_addf(&out, "    shared_scale = %s,\n", o->sharing == SHARE_ALL ? "true" : "false");
    else if (o->sharing == SHARE_QUANTITIES)
        text_addf(&out, "    grid = \"%dx%d\",\n", o->rows, o->cols);
    return taken(&out);
}

/* shot NULL: the command alone describes the figure. */
static void take_shot(Ui *ui, const Shot *shot, JournalEntry *e)
{
    e->when = time(NULL);
    e->input = input_words(ui);
    e->options = shot ? options_words(&shot->options) : NULL;
    for (int i = 0; shot && i < shot->count; i++) {
        const PanelChoice *choice = &shot->choices[i];
        LuaPanel      *p = &e->panels[e->count++];

        p->name = strdup(choice->result->request.mechanism);
        p->run = lua_run(&choice->result->request);
        if (choice->minus) {
            p->minus_name = strdup(choice->minus->request.mechanism);
            p->minus = lua_run(&choice->minus->request);
        }
        p->looks = look_words(shot->panes[i], &shot->panels[i], choice);
        p->words = panel_words(&shot->panels[i], choice);
    }
}

/* ---- entries ---------------------------------------------------------------- */

static void journal_script(const JournalEntry *entries, int count, Text *out);

static void write_script(Ui *ui, const char *path, int from, Error *err)
{
    const struct Journal *j = ui->journal;
    Text                  text = { 0 };

    journal_script(j->entries + from, j->count - from, &text);
    if (text_ok(&text) || error_set(err, ERR_NOMEM, "%s: not enough memory", path))
        file_write(path, text.data, text.length, err);
    text_free(&text);
}

/* Rewrites the file after every step, so that a crash loses nothing. */
static void write_recording(Ui *ui)
{
    struct Journal *j = ui->journal;
    Error           err = ERROR_INIT;

    if (!j->path[0])
        return;
    write_script(ui, j->path, j->from, &err);
    if (err.code == ERR_NONE)
        return;
    j->path[0] = '\0';
    ui_say(ui, ROLE_ERROR, "recording stopped: %s", err.text);
}

static void add_entry(Ui *ui, JournalEntry *entry)
{
    struct Journal *j = ui->journal;

    if (j->count == ENTRIES_MOST) {
        entry_free(&j->entries[0]);
        memmove(j->entries, j->entries + 1, (ENTRIES_MOST - 1) * sizeof(*j->entries));
        j->count--;
        j->from -= j->from > 0;
    }
    j->entries[j->count++] = *entry;
    *entry = (JournalEntry){ 0 };
    write_recording(ui);
}

/* ---- what the panes show ---------------------------------------------------- */

/* All runs are finished and the panes show what was requested. */
static bool settled(const Ui *ui)
{
    const Compare *c = &ui->compare;

    if (ui->screen != SCREEN_COMPARE || ui->overlay_count || !c->count)
        return false;
    for (int i = 0; i < c->count; i++)
        if (c->panes[i].job || !c->panes[i].result || c->panes[i].problem[0])
            return false;
    return true;
}

static void panes_signature(const Ui *ui, Text *out)
{
    const Compare *c = &ui->compare;

    text_addf(out, "%s %d %d %d", session_input_spec(ui->session), c->now.difference, c->now.solo,
              c->look.own_scales);
    for (int i = 0; i < c->count; i++) {
        const Pane *p = &c->panes[i];
        const View *view = pane_view(p);

        if (!p->area.h)
            continue;
        text_add(out, "\n");
        request_text(&p->request, out);
        text_add(out, " ");
        request_place(&p->request, out);
        text_addf(out, " %s %d %llu %d %d: %s %lld %lld %d %d %d %d %d %d %d", p->request.position,
                  p->request.causal, (unsigned long long)p->request.seed, p->request.fit,
                  p->request.keys, view ? view->name : "", (long long)p->spec.head,
                  (long long)p->spec.round, p->spec.pool, p->spec.scale, p->spec.map,
                  p->spec.sorted, p->differs,
                  p->spec.reach.layers, p->spec.reach.strict);
    }
}

static void note_seen(Ui *ui)
{
    struct Journal *j = ui->journal;
    JournalEntry    entry = { .kind = JOURNAL_SEEN };
    Shot            shot;

    j->noted = true;
    shot_take(ui, NULL, &shot);
    if (!shot.count)
        return;
    take_shot(ui, &shot, &entry);
    add_entry(ui, &entry);
}

static void note_measured(Ui *ui)
{
    struct Journal *j = ui->journal;
    JournalEntry    entry = { .kind = JOURNAL_MEASURED, .when = time(NULL) };

    for (int i = 0; i < PANES_MOST; i++) {
        const Pane *pane = &ui->compare.panes[i];
        bool        there = i < ui->compare.count && pane->measured;

        if (there && pane->measured != j->measured[i]) {
            LuaPanel *p = &entry.panels[entry.count++];

            p->name = strdup(pane->request.mechanism);
            p->run = lua_run(&pane->measured->request);
        }
        j->measured[i] = there ? pane->measured : NULL;
    }
    if (!entry.count)
        return;
    entry.input = input_words(ui);
    add_entry(ui, &entry);
}

void journal_tick(Ui *ui)
{
    struct Journal *j = journal_of(ui);
    Text            now = { 0 };

    if (!j)
        return;
    note_measured(ui);
    if (!settled(ui))
        return;
    panes_signature(ui, &now);
    if (strcmp(text_str(&now), text_str(&j->seen)) != 0) {
        text_free(&j->seen);
        j->seen = now;
        j->since = ui_now();
        j->noted = false;
        return;
    }
    text_free(&now);
    if (!j->noted && ui_now() - j->since >= STANDS)
        note_seen(ui);
}

/* Records the current panes, however briefly they were shown. */
static void note_now(Ui *ui)
{
    struct Journal *j = journal_of(ui);

    journal_tick(ui);
    if (j && settled(ui) && !j->noted)
        note_seen(ui);
}

/* ---- exports and commands --------------------------------------------------- */

void journal_exporting(Ui *ui, const char *command, const char *path)
{
    struct Journal *j = journal_of(ui);

    if (!j)
        return;
    entry_free(&j->pending);
    take_shot(ui, NULL, &j->pending);
    j->pending.kind = JOURNAL_EXPORTED;
    j->pending.path = strdup(path);
    j->pending.command = strdup(command + strlen("figure "));
}

void journal_exported(Ui *ui, bool written)
{
    struct Journal *j = journal_of(ui);

    if (j && written && j->pending.path)
        add_entry(ui, &j->pending);
    else if (j)
        entry_free(&j->pending);
}

void journal_command(Ui *ui, const char *line)
{
    JournalEntry entry = { .kind = JOURNAL_COMMAND, .when = time(NULL) };

    if (!journal_of(ui))
        return;
    entry.command = strdup(line);
    add_entry(ui, &entry);
}

/* ---- recording -------------------------------------------------------------- */

bool journal_records(const Ui *ui)
{
    return ui->journal && ui->journal->path[0];
}

static void stop(Ui *ui)
{
    struct Journal *j = ui->journal;

    note_now(ui);
    if (!j->path[0])
        return; /* writing failed, and the message says so */
    ui_say(ui, ROLE_GOOD, "recorded: %s  %d steps  (attnscope lua %s)", j->path,
           j->count - j->from, j->path);
    j->path[0] = '\0';
}

#define USUAL_SCRIPT "session.lua" /* where no name is given */

static bool is_lua(Ui *ui, const char *path)
{
    size_t length = strlen(path);

    if (length > 4 && length < sizeof(ui->journal->path) && !strcmp(path + length - 4, ".lua"))
        return true;
    ui_say(ui, ROLE_ERROR, "'%.60s': give a name that ends in .lua", path);
    return false;
}

void journal_typed_record(Ui *ui, const char *rest)
{
    struct Journal *j = journal_of(ui);

    if (!j)
        return;
    if (!strcmp(rest, "stop") || (!*rest && j->path[0])) {
        if (j->path[0])
            stop(ui);
        else
            ui_say(ui, ROLE_DIM, "nothing is recorded; :record FILE.lua begins");
        return;
    }
    rest = *rest ? rest : USUAL_SCRIPT;
    if (!is_lua(ui, rest))
        return;
    if (j->path[0])
        stop(ui);
    j->from = j->count;
    j->noted = false; /* what is seen now is the first step */
    snprintf(j->path, sizeof(j->path), "%s", rest);
    write_recording(ui); /* reports now if the file cannot be written */
    if (j->path[0])
        ui_say(ui, ROLE_GOOD, "recording to %s; :record stop ends it", rest);
}

void journal_typed_history(Ui *ui, const char *path)
{
    Error err = ERROR_INIT;

    path = *path ? path : USUAL_SCRIPT;
    if (!journal_of(ui) || !is_lua(ui, path))
        return;
    note_now(ui);
    write_script(ui, path, 0, &err);
    if (err.code != ERR_NONE)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    else
        ui_say(ui, ROLE_GOOD, "written: %s  %d steps  (attnscope lua %s)", path,
               ui->journal->count, path);
}

/* With the word only, so that no name must be deleted first. */
static void ask_script(Ui *ui, const char *word)
{
    ui_prompt(ui, word);
    snprintf(ui->prompt.choices, sizeof(ui->prompt.choices), "Enter alone: %s", USUAL_SCRIPT);
}

void action_record(Ui *ui)
{
    if (journal_records(ui)) {
        stop(ui);
        return;
    }
    ask_script(ui, "record ");
}

void action_history(Ui *ui)
{
    ask_script(ui, "history ");
}

void journal_close(Ui *ui)
{
    struct Journal *j = ui->journal;

    if (!j)
        return;
    if (j->path[0])
        note_now(ui);
    for (int i = 0; i < j->count; i++)
        entry_free(&j->entries[i]);
    entry_free(&j->pending);
    text_free(&j->seen);
    free(j);
    ui->journal = NULL;
}

/* Entries of the journal as a Lua script; see journal.h.
 *
 * A run that several steps show is made once.  Every step ends in a figure, printed as
 * text; what was exported is written again under its name.
 */

typedef struct Made {
    const char *input, *run; /* borrowed from the entries */
    int         number;
} Made;

typedef struct Writer {
    Text *out;
    Made *inputs, *runs; /* as many as there may be */
    int   input_count, run_count, step;
} Writer;

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
        const LuaPanel *p = &e->panels[i];

        text_add(w->out, "        { result = ");
        name_run(w->out, text_of(p->name), runs[i]);
        text_add(w->out, text_of(p->looks));
        if (p->minus) {
            text_add(w->out, ", minus = ");
            name_run(w->out, text_of(p->minus_name), minus[i]);
        }
        text_add(w->out, " },\n");
    }
    text_addf(w->out, "    },\n%s}", text_of(e->options));
}

/* The runs first, then the figure of them. */
static void write_figure(Writer *w, const JournalEntry *e, const char *before, const char *after)
{
    int runs[PANES_MOST + 1] = { 0 }, minus[PANES_MOST + 1] = { 0 };

    for (int i = 0; i < e->count; i++) {
        const LuaPanel *p = &e->panels[i];

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

/* The script of entries, oldest first. */
static void journal_script(const JournalEntry *entries, int count, Text *out)
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
