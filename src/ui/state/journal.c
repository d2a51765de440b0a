/* journal.c -- see journal.h. */
#include "ui/state/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/result/views.h"
#include "ui/shell/actions.h"

#define ENTRIES_MOST 500
#define STANDS       1.0 /* seconds until what the panes show is a step */

struct Journal {
    JournalEntry entries[ENTRIES_MOST];
    int          count;
    Text         seen;  /* what the panes show, in words; to tell a change by */
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
        JournalPanel *p = &e->panels[i];

        free(p->name);
        free(p->run);
        free(p->minus_name);
        free(p->minus);
        free(p->looks);
        free(p->words);
    }
    free(e->input);
    free(e->path);
    free(e->command);
    *e = (JournalEntry){ 0 };
}

/* ---- words of Lua ----------------------------------------------------------- */

/* The text becomes the owner's; never NULL unless there is no memory. */
static char *taken(Text *text)
{
    char *data = text_ok(text) ? strdup(text_str(text)) : NULL;

    text_free(text);
    return data;
}

static char *run_words(const Request *r)
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

/* What was chosen; the rest is the kind's own here and there. */
static char *look_words(const Pane *pane, const Panel *panel, const PanelChoice *choice)
{
    const View *view = panel->view;
    bool        sorted = panel->row_order || panel->col_order;
    Text        out = { 0 };

    text_add(&out, ", view = ");
    journal_quote(&out, choice->view);
    if (pane->head > 0 && pane_heads(pane) > 1)
        text_addf(&out, ", head = %lld", (long long)pane->head);
    if (view->kind == VIEW_HOPS)
        text_addf(&out, ", layers = %d%s", reach_view_depth(view),
                  reach_view_strict(view) ? ", residual = false" : "");
    text_add(&out, sorted ? ", sorted = true" : "");
    if (pane->pool >= 0)
        text_addf(&out, ", pool = \"%s\"", pool_name(panel->pool));
    if (pane->scale >= 0)
        text_addf(&out, ", scale = \"%s\"", scale_name(panel->scale));
    if (pane->map >= 0)
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

/* shot NULL: the command says it all. */
static void take_shot(Ui *ui, const Shot *shot, JournalEntry *e)
{
    e->when = time(NULL);
    e->input = input_words(ui);
    for (int i = 0; shot && i < shot->count; i++) {
        const PanelChoice *choice = &shot->choices[i];
        JournalPanel      *p = &e->panels[e->count++];

        p->name = strdup(choice->result->request.mechanism);
        p->run = run_words(&choice->result->request);
        if (choice->minus) {
            p->minus_name = strdup(choice->minus->request.mechanism);
            p->minus = run_words(&choice->minus->request);
        }
        p->looks = look_words(shot->panes[i], &shot->panels[i], choice);
        p->words = panel_words(&shot->panels[i], choice);
    }
}

/* ---- entries ---------------------------------------------------------------- */

static void write_script(Ui *ui, const char *path, int from, Error *err)
{
    const struct Journal *j = ui->journal;
    Text                  text = { 0 };

    journal_script(j->entries + from, j->count - from, &text);
    if (text_ok(&text) || error_set(err, ERR_NOMEM, "%s: not enough memory", path))
        file_write(path, text.data, text.length, err);
    text_free(&text);
}

/* The file is whole after every step, so nothing is lost however the program ends. */
static void follow(Ui *ui)
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

static void add(Ui *ui, JournalEntry *entry)
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
    follow(ui);
}

/* ---- what the panes show ---------------------------------------------------- */

/* Nothing is under way, and what is seen is what was asked for. */
static bool settled(const Ui *ui)
{
    const Compare *c = &ui->compare;

    if (ui->screen != SCREEN_COMPARE || ui->layer_count || !c->count)
        return false;
    for (int i = 0; i < c->count; i++)
        if (c->panes[i].job || !c->panes[i].result || c->panes[i].problem[0])
            return false;
    return true;
}

static void describe(const Ui *ui, Text *out)
{
    const Compare *c = &ui->compare;

    text_addf(out, "%s %d %d", session_input_spec(ui->session), c->difference, c->solo);
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
                  p->request.keys, view ? view->name : "", (long long)p->head,
                  (long long)p->round, p->pool, p->scale, p->map, p->sorted, p->differs,
                  p->reach.layers, p->reach.strict);
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
    add(ui, &entry);
}

static void note_measured(Ui *ui)
{
    struct Journal *j = ui->journal;
    JournalEntry    entry = { .kind = JOURNAL_MEASURED, .when = time(NULL) };

    for (int i = 0; i < PANES_MOST; i++) {
        const Pane *pane = &ui->compare.panes[i];
        bool        there = i < ui->compare.count && pane->measured;

        if (there && pane->measured != j->measured[i]) {
            JournalPanel *p = &entry.panels[entry.count++];

            p->name = strdup(pane->request.mechanism);
            p->run = run_words(&pane->measured->request);
        }
        j->measured[i] = there ? pane->measured : NULL;
    }
    if (!entry.count)
        return;
    entry.input = input_words(ui);
    add(ui, &entry);
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
    describe(ui, &now);
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

/* What is seen now counts, however short. */
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
        add(ui, &j->pending);
    else if (j)
        entry_free(&j->pending);
}

void journal_command(Ui *ui, const char *line)
{
    JournalEntry entry = { .kind = JOURNAL_COMMAND, .when = time(NULL) };

    if (!journal_of(ui))
        return;
    entry.command = strdup(line);
    add(ui, &entry);
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
        return; /* it could not be written, and that was said */
    ui_say(ui, ROLE_GOOD, "recorded: %s  %d steps  (attnscope lua %s)", j->path,
           j->count - j->from, j->path);
    j->path[0] = '\0';
}

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
    if (!*rest || !strcmp(rest, "stop")) {
        if (j->path[0])
            stop(ui);
        else
            ui_say(ui, ROLE_DIM, "nothing is recorded; :record FILE.lua begins");
        return;
    }
    if (!is_lua(ui, rest))
        return;
    if (j->path[0])
        stop(ui);
    j->from = j->count;
    j->noted = false; /* what is seen now is the first step */
    snprintf(j->path, sizeof(j->path), "%s", rest);
    follow(ui); /* whether it can be written is to be known now */
    if (j->path[0])
        ui_say(ui, ROLE_GOOD, "recording to %s; :record stop ends it", rest);
}

void journal_typed_history(Ui *ui, const char *path)
{
    Error err = ERROR_INIT;

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

void action_record(Ui *ui)
{
    if (journal_records(ui)) {
        stop(ui);
        return;
    }
    prompt_open(ui, PROMPT_COMMAND);
    field_set(&ui->prompt.field, "record session.lua");
}

void action_history(Ui *ui)
{
    prompt_open(ui, PROMPT_COMMAND);
    field_set(&ui->prompt.field, "history session.lua");
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
