/* workspace.c -- between the screen and the workspace as a value, its fields by name; see
 * workspace.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "ui/state/explorer.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

void workspace_init(Workspace *saved)
{
    *saved = (Workspace){ .choice = INPUT_CHOICE_DEFAULT, .defaults = REQUEST_INIT };
}

void workspace_free(Workspace *saved)
{
    for (int i = 0; i < saved->count; i++)
        request_free(&saved->panes[i].request);
    request_free(&saved->defaults);
    free(saved->spec);
    workspace_init(saved);
}

/* ---- one pane ------------------------------------------------------------------ */

bool pane_take(const Pane *pane, PaneState *out, Error *err)
{
    *out = (PaneState){ .spec = pane->spec, .differs = pane->differs, .lens = pane->lens };
    out->spec.region = (Region){ 0 }; /* not part of the state */
    return request_copy(&out->request, &pane->request, err);
}

/* All but the request. */
void pane_look(Pane *pane, const PaneState *state)
{
    Region wish = pane->spec.region;

    pane->spec = state->spec;
    pane->spec.region = wish;
    pane->differs = state->differs;
    pane->lens = state->lens;
}

/* Moves the state's request into the pane and runs it. */
void pane_rerun(Ui *ui, Pane *pane, PaneState *state)
{
    request_free(&pane->request);
    pane->request = state->request;
    state->request = REQUEST_INIT;
    pane_run(ui, pane);
}

/* ---- from the screen -------------------------------------------------------- */

static void take_screen(const Ui *ui, Workspace *out)
{
    const Compare *c = &ui->compare;

    out->screen = (int)ui->screen;
    out->theme = (int)ui->theme;
    out->glyphs = (int)ui->glyphs;
    out->order = ui->browse.order;
    memcpy(out->filter, ui->browse.filter.text, sizeof(out->filter));
    memcpy(out->marked, ui->browse.marked, sizeof(out->marked));
    out->arrangement = c->now;
    out->look = c->look;
    out->marks = c->marks;
}

bool workspace_take(const Ui *ui, Workspace *out, Error *err)
{
    const char  *spec = session_input_spec(ui->session);
    const Input *input = session_input(ui->session);

    workspace_init(out);
    take_screen(ui, out);
    out->choice = *session_choice(ui->session);
    if (spec && !(out->spec = strdup(spec)))
        return error_set(err, ERR_NOMEM, "not enough memory to save the session");
    if (input)
        memcpy(out->sha256, input->sha256, sizeof(out->sha256));
    if (!request_copy(&out->defaults, &ui->defaults, err))
        return false;
    for (int i = 0; i < ui->compare.count; i++, out->count++)
        if (!pane_take(&ui->compare.panes[i], &out->panes[i], err))
            return false;
    return true;
}

/* ---- back to the screen ----------------------------------------------------- */

/* That input is open, read as chosen. */
bool input_is_open(const Ui *ui, const char *spec, const InputChoice *choice)
{
    const char        *now = session_input_spec(ui->session);
    const InputChoice *chosen = session_choice(ui->session);

    return now && !strcmp(now, spec) && chosen->layer == choice->layer &&
           chosen->n == choice->n && chosen->d == choice->d && chosen->heads == choice->heads &&
           chosen->seed == choice->seed;
}

/* Loads the input unless it is open already. */
static bool open_input(Ui *ui, const char *spec, const InputChoice *choice, Error *err)
{
    return !spec || input_is_open(ui, spec, choice) ||
           session_load(ui->session, spec, choice, err);
}

void workspace_show_pane(Ui *ui, Pane *pane, PaneState *saved)
{
    bool same = request_same(&pane->request, &saved->request);

    pane_look(pane, saved);
    if (same)
        return;
    request_free(&pane->request);
    pane->request = saved->request;
    saved->request = REQUEST_INIT;
    pane->ask = false;
    panes_run(ui, pane);
}

static void show_pane(Ui *ui, PaneState *saved)
{
    Pane *pane = &ui->compare.panes[ui->compare.count++];

    *pane = pane_new();
    pane_look(pane, saved);
    saved->request.threads = ui->defaults.threads;
    saved->request.memory_limit = ui->defaults.memory_limit;
    pane_rerun(ui, pane, saved);
}

void workspace_show_screen(Ui *ui, const Workspace *saved)
{
    Compare *c = &ui->compare;

    ui->screen = (ScreenId)saved->screen;
    ui->theme = (Theme)saved->theme;
    ui->glyphs = (Glyphs)saved->glyphs;
    ui->browse.order = saved->order;
    field_set(&ui->browse.filter, saved->filter);
    memcpy(ui->browse.marked, saved->marked, sizeof(saved->marked));
    ui->defaults.causal = saved->defaults.causal;
    ui->defaults.seed = saved->defaults.seed;
    ui->defaults.ops = saved->defaults.ops;
    memcpy(ui->defaults.device, saved->defaults.device, sizeof(ui->defaults.device));
    memcpy(ui->defaults.precision, saved->defaults.precision, sizeof(ui->defaults.precision));
    c->now = saved->arrangement;
    c->look = saved->look;
    c->now.focus = c->now.focus < c->count ? c->now.focus : 0;
    c->now.solo = c->now.solo && c->count > 1;
    c->now.difference = c->now.difference && c->count > 1;
}

bool workspace_show(Ui *ui, Workspace *saved, const char *input, const InputChoice *choice,
                    Error *err)
{
    const Input *now;

    history_note(ui);
    if (!open_input(ui, input ? input : saved->spec, choice ? choice : &saved->choice, err)) {
        history_drop(ui);
        return false;
    }
    panes_clear(ui);
    for (int i = 0; i < saved->count; i++)
        show_pane(ui, &saved->panes[i]);
    ui->overlay_count = 0;
    workspace_show_screen(ui, saved);
    now = session_input(ui->session);
    if (!input && saved->sha256[0] && now && strcmp(now->sha256, saved->sha256) != 0)
        ui_say(ui, ROLE_WARN, "%s is no longer what it was when the session was saved",
               now->name);
    return true;
}

/* What a saved pane and the rest of a session have, by name; see workspace.h.
 *
 * One table serves both directions, files and scripts.
 */

typedef enum FieldKind {
    FIELD_WHOLE,  /* int64_t */
    FIELD_INT,    /* int */
    FIELD_ORDINAL, /* int; from 0 in the value, from 1 in the text */
    FIELD_ROUND,  /* int64_t; from 1 in the value, 0: the first; from 0 in the text */
    FIELD_SEED,   /* uint64_t */
    FIELD_YES,    /* bool */
    FIELD_CAUSAL, /* int: -1 input, 0 no, 1 yes */
    FIELD_CHOICE, /* int: index of a name; -1: left out */
    FIELD_TEXT,   /* char[most] */
    FIELD_NOTES,  /* the same, as draw/grid/annotation.h says */
    FIELD_LAYOUT, /* the same, ROWSxCOLS */
} FieldKind;

typedef struct FieldOf {
    const char *name;
    FieldKind   kind;
    size_t      offset;
    int64_t     least, most; /* numbers; most: size of a text, count of choices */
    int64_t     usual;       /* not written */
    const char *(*choice)(int index);
} FieldOf;

/* ---- names of choices ------------------------------------------------------- */

static const char *order_word(int i)
{
    static const char *const words[BROWSE_ORDERS] = { "class", "year", "cost" };

    return words[i];
}

/* The name of an enumerator, from its number. */
#define WORD_OF(word, name, Type)                                                                 \
    static const char *word(int i)                                                                \
    {                                                                                             \
        return name((Type)i);                                                                     \
    }

WORD_OF(tab_word, screen_word, ScreenId)
WORD_OF(theme_word, theme_name, Theme)
WORD_OF(glyphs_word, glyphs_name, Glyphs)
WORD_OF(pool_word, pool_name, Pool)
WORD_OF(scale_word, scale_name, Scale)
WORD_OF(strips_word, margin_name, MarginKind)
WORD_OF(map_word, colour_map_name, ColourMap)

/* ---- the tables ------------------------------------------------------------- */

#define FAR     (INT64_C(1) << 40)
enum { IS_EMPTY, IS_NONE, IS_CPU, IS_F32 }; /* usual, of a text */
static const char *const usual_texts[] = { "", "none", "cpu", "f32" };

#define OF(S, field) offsetof(S, field)
static const FieldOf of_session[] = {
    { "sha256", FIELD_TEXT, OF(Workspace, sha256), 0, 65, 0, NULL },
    { "layer", FIELD_WHOLE, OF(Workspace, choice.layer), 0, FAR, -1, NULL },
    { "n", FIELD_WHOLE, OF(Workspace, choice.n), 0, FAR, 0, NULL },
    { "d", FIELD_WHOLE, OF(Workspace, choice.d), 0, FAR, 0, NULL },
    { "heads", FIELD_WHOLE, OF(Workspace, choice.heads), 0, FAR, 0, NULL },
    { "input-seed", FIELD_SEED, OF(Workspace, choice.seed), 0, 0, 0, NULL },
    { "causal", FIELD_CAUSAL, OF(Workspace, defaults.causal), 0, 0, -1, NULL },
    { "seed", FIELD_SEED, OF(Workspace, defaults.seed), 0, 0, 0, NULL },
    { "device", FIELD_TEXT, OF(Workspace, defaults.device), 0, sizeof(((Request *)0)->device),
      IS_CPU, NULL },
    { "precision", FIELD_TEXT, OF(Workspace, defaults.precision), 0,
      sizeof(((Request *)0)->precision), IS_F32, NULL },
    { "screen", FIELD_CHOICE, OF(Workspace, screen), 0, SCREEN_TABS, -2, tab_word },
    { "theme", FIELD_CHOICE, OF(Workspace, theme), 0, THEME_COUNT, -2, theme_word },
    { "glyphs", FIELD_CHOICE, OF(Workspace, glyphs), 0, GLYPHS_COUNT, -2, glyphs_word },
    { "order", FIELD_CHOICE, OF(Workspace, order), 0, BROWSE_ORDERS, -2, order_word },
    { "filter", FIELD_TEXT, OF(Workspace, filter), 0, sizeof(((Workspace *)0)->filter), 0, NULL },
    { "focus", FIELD_ORDINAL, OF(Workspace, arrangement.focus), 1, PANES_MOST, -2, NULL },
    { "linked", FIELD_YES, OF(Workspace, arrangement.linked), 0, 0, -2, NULL },
    { "alone", FIELD_YES, OF(Workspace, arrangement.solo), 0, 0, 0, NULL },
    { "difference", FIELD_YES, OF(Workspace, arrangement.difference), 0, 0, 0, NULL },
    { "labels", FIELD_YES, OF(Workspace, look.labels), 0, 0, 0, NULL },
    { "strips", FIELD_CHOICE, OF(Workspace, look.strips), 0, MARGIN_KINDS, MARGIN_NONE,
      strips_word },
    { "own-scales", FIELD_YES, OF(Workspace, look.own_scales), 0, 0, 0, NULL },
    { "effect", FIELD_YES, OF(Workspace, arrangement.effect), 0, 0, 0, NULL },
    { "layout", FIELD_LAYOUT, OF(Workspace, look.layout), 0, sizeof(((Workspace *)0)->look.layout),
      IS_EMPTY, NULL },
    { .name = NULL },
};

static const FieldOf of_pane[] = {
    { "position", FIELD_TEXT, OF(PaneState, request.position), 0,
      sizeof(((Request *)0)->position), IS_NONE, NULL },
    { "causal", FIELD_CAUSAL, OF(PaneState, request.causal), 0, 0, -1, NULL },
    { "seed", FIELD_SEED, OF(PaneState, request.seed), 0, 0, 0, NULL },
    { "fit", FIELD_YES, OF(PaneState, request.fit), 0, 0, 0, NULL },
    { "device", FIELD_TEXT, OF(PaneState, request.device), 0, sizeof(((Request *)0)->device),
      IS_CPU, NULL },
    { "precision", FIELD_TEXT, OF(PaneState, request.precision), 0,
      sizeof(((Request *)0)->precision), IS_F32, NULL },
    { "keys", FIELD_INT, OF(PaneState, request.keys), 0, MISSED_MOST, 0, NULL },
    { "view", FIELD_TEXT, OF(PaneState, spec.view), 0, sizeof(((PaneState *)0)->spec.view), 0,
      NULL },
    { "head", FIELD_WHOLE, OF(PaneState, spec.head), 0, FAR, 0, NULL },
    { "round", FIELD_ROUND, OF(PaneState, spec.round), 0, FAR, 0, NULL },
    { "pool", FIELD_CHOICE, OF(PaneState, spec.pool), 0, POOL_COUNT, -1, pool_word },
    { "scale", FIELD_CHOICE, OF(PaneState, spec.scale), 0, SCALE_COUNT, -1, scale_word },
    { "colours", FIELD_CHOICE, OF(PaneState, spec.map), 0, MAP_DIVERGING, -1, map_word },
    { "layers", FIELD_INT, OF(PaneState, spec.reach.layers), 0, REACH_MOST, 0, NULL },
    { "exactly", FIELD_YES, OF(PaneState, spec.reach.strict), 0, 0, 0, NULL },
    { "sorted", FIELD_YES, OF(PaneState, spec.sorted), 0, 0, 0, NULL },
    { "differs", FIELD_YES, OF(PaneState, differs), 0, 0, 0, NULL },
    { "excludes", FIELD_YES, OF(PaneState, spec.excludes), 0, 0, 0, NULL },
    { "excluded", FIELD_WHOLE, OF(PaneState, spec.excluded), 0, FAR, 0, NULL },
    { "notes", FIELD_NOTES, OF(PaneState, spec.notes), 0, sizeof(((PaneState *)0)->spec.notes),
      IS_EMPTY, NULL },
    { "zoom", FIELD_INT, OF(PaneState, lens.zoom), -FAR, FAR, 0, NULL },
    { "top", FIELD_WHOLE, OF(PaneState, lens.row0), 0, FAR, 0, NULL },
    { "left", FIELD_WHOLE, OF(PaneState, lens.col0), 0, FAR, 0, NULL },
    { "query", FIELD_WHOLE, OF(PaneState, lens.q), 0, FAR, 0, NULL },
    { "key", FIELD_WHOLE, OF(PaneState, lens.k), 0, FAR, 0, NULL },
    { .name = NULL },
};

/* ---- writing ---------------------------------------------------------------- */

static int64_t number_at(const FieldOf *f, const void *at)
{
    return f->kind == FIELD_WHOLE ? *(const int64_t *)at
           : f->kind == FIELD_ROUND ? *(const int64_t *)at - (*(const int64_t *)at > 0)
           : f->kind == FIELD_ORDINAL ? *(const int *)at + 1
           : f->kind == FIELD_YES ? *(const bool *)at
                                  : *(const int *)at;
}

static bool is_text(const FieldOf *f)
{
    return f->kind == FIELD_TEXT || f->kind == FIELD_NOTES || f->kind == FIELD_LAYOUT;
}

static bool is_usual(const FieldOf *f, const void *at)
{
    if (f->kind == FIELD_SEED)
        return *(const uint64_t *)at == 0;
    if (is_text(f))
        return !*(const char *)at || !strcmp(at, usual_texts[f->usual]);
    return number_at(f, at) == f->usual;
}

static void write_value(const FieldOf *f, const void *at, Text *out)
{
    if (f->kind == FIELD_SEED)
        text_addf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
    else if (is_text(f))
        text_add(out, at);
    else if (f->kind == FIELD_CHOICE)
        text_add(out, f->choice((int)number_at(f, at)));
    else if (f->kind == FIELD_YES || f->kind == FIELD_CAUSAL)
        text_add(out, number_at(f, at) ? "yes" : "no");
    else
        text_addf(out, "%lld", (long long)number_at(f, at));
}

static void write_field(const FieldOf *f, const void *base, const char *indent, Text *out)
{
    const char *at = (const char *)base + f->offset;

    if (is_usual(f, at))
        return;
    text_addf(out, "%s%s ", indent, f->name);
    write_value(f, at, out);
    text_add(out, "\n");
}

static void write_fields(const FieldOf *f, const void *base, const char *indent, Text *out)
{
    for (; f->name; f++)
        write_field(f, base, indent, out);
}

void workspace_write_pane(const PaneState *pane, const char *indent, Text *out)
{
    write_fields(of_pane, pane, indent, out);
}

/* The value in words: "its own" where nothing is chosen; of notes only whether there are any. */
static void write_seen(const FieldOf *f, const void *at, Text *out)
{
    bool usual = is_usual(f, at);

    if (f->kind == FIELD_NOTES)
        text_add(out, usual ? "none" : "some");
    else if (usual && is_text(f))
        text_add(out, f->usual == IS_EMPTY ? "its own" : usual_texts[f->usual]);
    else if (usual && (f->kind == FIELD_CHOICE || f->kind == FIELD_CAUSAL))
        text_add(out, "its own");
    else
        write_value(f, at, out);
}

/* Fields before the lens are what a pane is; those after it change with every step of a walk. */
static bool is_seen(const FieldOf *f)
{
    return f->offset < offsetof(PaneState, lens);
}

const Mechanism *workspace_marked(const uint8_t *marked, int place)
{
    for (size_t i = 0; i < MARKS_MOST && mechanism_at(i); i++)
        if (marked[i] == place)
            return mechanism_at(i);
    return NULL;
}

void workspace_add_change(const char *name, const char *before, const char *after, Text *out)
{
    if (strcmp(before, after) != 0)
        text_addf(out, "%s%s is %s again (was %s)", out->length ? ", " : "", name, after, before);
}

void workspace_pane_changes(const PaneState *from, const PaneState *to, Text *out)
{
    for (const FieldOf *f = of_pane; f->name; f++) {
        const void *a = (const char *)from + f->offset, *b = (const char *)to + f->offset;
        Text        before = { 0 }, after = { 0 };

        write_seen(f, a, &before);
        write_seen(f, b, &after);
        if (is_seen(f))
            workspace_add_change(f->name, text_str(&before), text_str(&after), out);
        text_free(&before);
        text_free(&after);
    }
    if (from->lens.zoom != to->lens.zoom)
        text_addf(out, "%sthe zoom is as before", out->length ? ", " : "");
}

void workspace_write_fields(const Workspace *saved, Text *out)
{
    write_fields(of_session, saved, "", out);
}

/* ---- reading ---------------------------------------------------------------- */

static bool read_number(const FieldOf *f, void *at, const char *value, Error *err)
{
    int64_t number;

    if (!text_whole(value, &number) || number < f->least || number > f->most)
        return error_set(err, ERR_PARAM, "%s: '%.40s' is not a whole number from %lld to %lld",
                         f->name, value, (long long)f->least, (long long)f->most);
    if (f->kind == FIELD_WHOLE || f->kind == FIELD_ROUND)
        *(int64_t *)at = number + (f->kind == FIELD_ROUND && number > 0);
    else
        *(int *)at = (int)(number > INT32_MAX ? INT32_MAX : number) - (f->kind == FIELD_ORDINAL);
    return true;
}

static bool read_seed(const FieldOf *f, void *at, const char *value, Error *err)
{
    char *end;

    errno = 0;
    *(uint64_t *)at = strtoull(value, &end, 10);
    return (!errno && !*end && end != value && *value != '-') ||
           error_set(err, ERR_PARAM, "%s: '%.40s' is not a whole number from 0", f->name, value);
}

static bool read_choice(const FieldOf *f, void *at, const char *value, Error *err)
{
    Text names = { 0 };

    for (int i = 0; i < f->most; i++) {
        text_addf(&names, "%s%s", i ? ", " : "", f->choice(i));
        if (!strcmp(f->choice(i), value)) {
            *(int *)at = i;
            text_free(&names);
            return true;
        }
    }
    error_set(err, ERR_PARAM, "%s: '%.40s' is none of %s", f->name, value, text_str(&names));
    text_free(&names);
    return false;
}

static bool read_yes(const FieldOf *f, void *at, const char *value, Error *err)
{
    bool yes = !strcmp(value, "yes");

    if (!yes && strcmp(value, "no") != 0)
        return error_set(err, ERR_PARAM, "%s: '%.40s' is not yes or no", f->name, value);
    if (f->kind == FIELD_YES)
        *(bool *)at = yes;
    else
        *(int *)at = yes;
    return true;
}

/* Checks a text by its own parser before storing it. */
static bool check_text(const FieldOf *f, const char *value, Error *err)
{
    PanelNote notes[PANEL_NOTES];
    int       rows, cols, end = 0;

    if (f->kind == FIELD_NOTES)
        return notes_parse(value, notes, &rows, err);
    if (f->kind != FIELD_LAYOUT || !*value)
        return true;
    return (sscanf(value, "%dx%d%n", &rows, &cols, &end) == 2 && !value[end] && rows >= 1 &&
            cols >= 1 && rows <= PANES_MOST && cols <= PANES_MOST) ||
           error_set(err, ERR_PARAM, "%s: expected ROWSxCOLS up to %d, as in 2x2, got '%.20s'",
                     f->name, PANES_MOST, value);
}

static bool read_field(const FieldOf *f, void *base, const char *value, Error *err)
{
    char *at = (char *)base + f->offset;

    switch (f->kind) {
    case FIELD_WHOLE:
    case FIELD_ROUND:
    case FIELD_ORDINAL:
    case FIELD_INT: return read_number(f, at, value, err);
    case FIELD_SEED: return read_seed(f, at, value, err);
    case FIELD_CHOICE: return read_choice(f, at, value, err);
    case FIELD_YES:
    case FIELD_CAUSAL: return read_yes(f, at, value, err);
    default:
        if ((int64_t)strlen(value) >= f->most)
            return error_set(err, ERR_PARAM, "%s: the text is too long", f->name);
        if (!check_text(f, value, err))
            return false;
        snprintf(at, (size_t)f->most, "%s", value);
        return true;
    }
}

static bool set(const FieldOf *f, void *base, const char *whose, const char *name,
                const char *value, Error *err)
{
    for (; f->name; f++)
        if (!strcmp(f->name, name))
            return read_field(f, base, value, err);
    return error_set(err, ERR_PARAM, "'%.40s' is nothing a %s has", name, whose);
}

bool workspace_set_pane(PaneState *pane, const char *name, const char *value, Error *err)
{
    return set(of_pane, pane, "pane", name, value, err);
}

bool workspace_set(Workspace *saved, const char *name, const char *value, Error *err)
{
    return set(of_session, saved, "session", name, value, err);
}

bool workspace_pane_has(const char *name)
{
    const FieldOf *f = of_pane;

    while (f->name && strcmp(f->name, name) != 0)
        f++;
    return f->name != NULL;
}
