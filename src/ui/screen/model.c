/* model.c -- the screen of a model: its heads by label, its text by loss, and swaps.
 *
 * The keys and what becomes of finished work; see model.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/call.h"
#include "app/command/model.h"
#include "ui/screen/model.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"

/* Open, and nothing replaces it. */
static Modelling *open_now(Ui *ui)
{
    Modelling *m = ui->modelling;

    return m && m->model && !m->job[MODEL_OPENING] && !*m->problem ? m : NULL;
}

static void say_none(Ui *ui)
{
    ui_say(ui, ROLE_DIM, "no model is open: :model PATH TEXT opens one");
}

/* ---- opening ------------------------------------------------------------------- */

/* An input that is a model's is what the screen shows, too. */
static void adopt_input(Ui *ui)
{
    const char *spec = session_input_spec(ui->session);

    if (ui->modelling || ui->screen != SCREEN_MODEL || !spec ||
        strncmp(spec, MODEL_PREFIX, strlen(MODEL_PREFIX)) != 0)
        return;
    model_begin(ui, spec);
    if (ui->modelling && session_input(ui->session)->layer > 0)
        ui->modelling->layer = session_input(ui->session)->layer;
}

void model_typed(Ui *ui, const char *rest)
{
    const char *words[CALL_MAX_WORDS];
    int         count = 0;
    Text        storage = { 0 }, spec = { 0 };
    Error       err = ERROR_INIT;

    if (call_split(rest, words, CALL_MAX_WORDS, &count, &storage, &err) && count > 2)
        error_set(&err, ERR_USAGE, "model: expected PATH and a text's file, got %d words", count);
    if (!err.code && count > 0 &&
        model_spec_write(words[0], &(ModelText){ .text = count > 1 ? words[1] : NULL }, &spec,
                         &err)) {
        ui->screen = SCREEN_MODEL;
        model_begin(ui, text_str(&spec));
    }
    if (err.code)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    text_free(&storage);
    text_free(&spec);
}

void swap_typed(Ui *ui, const char *rest)
{
    if (!open_now(ui))
        say_none(ui);
    else if (*rest)
        model_swap(ui, rest);
    else
        ui_say(ui, ROLE_DIM, "swap: a mechanism, then layers or nothing: swap window(window=33) "
                             "0-9; or the file of a mixture: swap @advice.csv");
}

/* ---- what is finished ------------------------------------------------------------- */

static void take_swap(Modelling *m)
{
    model_drop_swap(m);
    m->swapped = m->fresh;
    m->fresh = (ForwardResult){ 0 };
    m->shown_layers = m->layers;
    m->shown_mixture = m->mixture;
    m->layers = (ModelLayers){ 0 };
    snprintf(m->shown, sizeof(m->shown), "%s", m->mechanism);
}

/* What the swap took without being given it. */
static void say_defaults(Ui *ui)
{
    Text line = { 0 };

    if (!ui->modelling->shown_mixture)
        model_defaults_text(&(Swap){ .mechanism = ui->modelling->shown }, &line);
    if (line.length)
        ui_say(ui, ROLE_DIM, "not given, so the default: %s", text_str(&line));
    text_free(&line);
}

/* The row of the chosen token, at itself: every row may see that key. */
static void look_at_token(const Modelling *m, Pane *pane)
{
    pane->spec.head = m->head;
    pane->lens.q = pane->lens.k = m->token;
}

/* The panes run on the layer; without any, one opens with the weights as they are. */
static void show_head(Ui *ui)
{
    Modelling *m = ui->modelling;
    Compare   *c = &ui->compare;

    for (int i = 0; i < c->count; i++)
        pane_run(ui, &c->panes[i]);
    if (!c->count)
        panes_open(ui, "full:weights");
    for (int i = 0; i < c->count; i++)
        look_at_token(m, &c->panes[i]);
    m->entered |= ui->screen == SCREEN_MODEL;
    if (ui->screen == SCREEN_MODEL)
        ui->screen = SCREEN_COMPARE;
    ui_say(ui, ROLE_DIM, "layer %lld, head %lld; q goes back", (long long)m->wanted,
           (long long)m->head);
}

static void take_layer(Ui *ui)
{
    Modelling  *m = ui->modelling;
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    Error       err = ERROR_INIT;
    Input      *input = m->input;

    choice.layer = m->wanted;
    m->input = NULL;
    if (m->arriving) {
        m->arriving = false;
        if (!session_take_input(ui->session, input, m->spec, &choice, &err))
            ui_say(ui, ROLE_ERROR, "%s", err.text);
        for (int i = 0; i < ui->compare.count; i++)
            pane_run(ui, &ui->compare.panes[i]);
        return;
    }
    history_note(ui);
    if (session_take_input(ui->session, input, m->spec, &choice, &err)) {
        show_head(ui);
        return;
    }
    history_drop(ui);
    ui_say(ui, ROLE_ERROR, "%s", err.text);
}

static void begin_passes(Ui *ui)
{
    Modelling *m = ui->modelling;

    m->layer = m->layer < m->model->config.layers ? m->layer : 0;
    if (m->reading.whole > m->reading.tokens.count)
        ui_say(ui, ROLE_WARN, "the text has %lld tokens; the first %lld are read",
               (long long)m->reading.whole, (long long)m->reading.tokens.count);
    else if (*m->model->notes)
        ui_say(ui, ROLE_DIM, "%.*s", (int)strcspn(m->model->notes, "\n"), m->model->notes);
    if (m->arriving)
        model_fetch_layer(ui);
    model_measure(ui);
}

bool model_start(Ui *ui, const char *spec, int64_t layer, Error *err)
{
    if (!model_begin_open(ui, spec, err))
        return false;
    if (layer >= ui->modelling->model->config.layers)
        return error_set(err, ERR_DATA, "layer %lld is not there; the model has %lld, from 0",
                         (long long)layer, (long long)ui->modelling->model->config.layers);
    ui->modelling->layer = layer > 0 ? layer : 0;
    ui->modelling->arriving = true;
    ui->screen = SCREEN_MODEL;
    begin_passes(ui);
    return true;
}

static void take_task(Ui *ui, ModelTask task, bool done)
{
    Modelling *m = ui->modelling;

    if (task == MODEL_OPENING && done)
        begin_passes(ui);
    else if (task == MODEL_OPENING && !*m->problem)
        snprintf(m->problem, sizeof(m->problem), "opening was cancelled");
    if (task == MODEL_SWAP && done) {
        take_swap(m);
        say_defaults(ui);
    }
    if (task == MODEL_LAYER && done)
        take_layer(ui);
}

static bool model_poll(Ui *ui)
{
    bool     changed = false;
    JobState state;

    adopt_input(ui);
    if (ui->modelling && ui->screen != SCREEN_COMPARE)
        ui->modelling->entered = false;
    for (int i = 0; i < MODEL_TASKS; i++)
        if (model_task_ended(ui, (ModelTask)i, &state)) {
            take_task(ui, (ModelTask)i, state == JOB_DONE);
            changed = true;
        }
    return changed || (ui->screen == SCREEN_MODEL && model_runs(ui->modelling));
}

/* ---- keys ----------------------------------------------------------------------------- */

static int64_t clamp(int64_t at, int64_t count)
{
    return at < 0 ? 0 : at >= count ? count - 1 : at;
}

/* Where there is none further that way, says so. */
static int64_t moved(Ui *ui, int64_t at, int by, int64_t count, const char *what)
{
    int64_t to = clamp(at + by, count);

    if (to == at && count == 1)
        ui_hint(ui, "there is one %s", what);
    else if (to == at)
        ui_hint(ui, "this is the %s %s", by < 0 ? "first" : "last", what);
    return to;
}

static void move_layer(Ui *ui, int by)
{
    Modelling *m = open_now(ui);

    if (m)
        m->layer = moved(ui, m->layer, by, m->model->config.layers, "layer");
}

static void move_head(Ui *ui, int by)
{
    Modelling *m = open_now(ui);

    if (m)
        m->head = moved(ui, m->head, by, m->model->config.heads, "head");
}

static void move_token(Ui *ui, int by)
{
    Modelling *m = open_now(ui);

    if (m)
        m->token = moved(ui, m->token, by, m->reading.tokens.count, "token");
}

static void move_line(Ui *ui, int by)
{
    Modelling *m = open_now(ui);

    if (m)
        move_token(ui, by * (int)m->line_tokens);
}

/* To the next hardest token: by its loss, or by what the swap adds to it.  way -1: back in that
 * order.  From the first token, which has no loss: to the hardest. */
static void move_hardest(Ui *ui, int way)
{
    Modelling *m = open_now(ui);
    double     nats = 0;
    int64_t    token = m ? model_hardest(m, way < 0, &nats) : -1;

    if (!m)
        say_none(ui);
    else if (token < 0)
        ui_say(ui, ROLE_DIM, "no %s token: g goes to the first, then n to the hardest",
               way < 0 ? "harder" : "easier");
    else if (m->swapped.measure)
        ui_say(ui, ROLE_DIM, "token %lld: the swap adds %+.3f nats to its loss; n the next hardest",
               (long long)token, nats);
    else
        ui_say(ui, ROLE_DIM, "token %lld: its loss is %.3f nats; n the next hardest",
               (long long)token, nats);
    if (token >= 0)
        m->token = token;
}

static void ask_swap(Ui *ui)
{
    Modelling *m = open_now(ui);
    char       line[400];

    if (!m) {
        say_none(ui);
        return;
    }
    snprintf(line, sizeof(line), "swap %s%s%s", m->shown, *m->shown ? " " : "",
             *m->shown && m->shown_layers.on ? m->shown_layers.words : "");
    ui_prompt(ui, line);
}

static void drop_swap(Ui *ui)
{
    Modelling *m = open_now(ui);

    if (m && m->swapped.measure)
        model_drop_swap(m);
    else
        ui_say(ui, ROLE_DIM, "nothing is swapped; s swaps");
}

/* Where none is open or opening, the included model is opened. */
static void open_head(Ui *ui)
{
    Modelling   *m = open_now(ui);
    const Input *input = session_input(ui->session);
    const char  *spec = session_input_spec(ui->session);

    if (!m) {
        if (!ui->modelling || !ui->modelling->job[MODEL_OPENING])
            model_typed(ui, MODEL_INCLUDED);
        return;
    }
    m->wanted = m->layer;
    if (spec && !strcmp(spec, m->spec) && input->layer == m->layer &&
        !session_choice(ui->session)->n)
        show_head(ui);
    else
        model_fetch_layer(ui);
}

static void open_other(Ui *ui)
{
    ui_prompt(ui, "model ");
}

/* The text comes back by the same key. */
static void write_on(Ui *ui)
{
    Modelling *m = open_now(ui);

    if (!m)
        say_none(ui);
    else if (!m->model->config.causal)
        ui_say(ui, ROLE_DIM, "%s is an encoder and writes no text", m->model->config.arch);
    else if (!m->writing)
        model_write(ui);
    else
        model_stop_writing(m);
}

static void again(Ui *ui)
{
    if (open_now(ui))
        model_measure(ui);
    else
        say_none(ui);
}

/* ---- what other rooms ask ------------------------------------------------------------- */

bool model_takes_back(Ui *ui)
{
    Modelling *m = ui->modelling;

    if (!m || !m->entered || ui->screen != SCREEN_COMPARE)
        return false;
    m->entered = false;
    ui->screen = SCREEN_MODEL;
    return true;
}

/* The last part of a path, without its ending unless `whole`. */
static void add_file(const char *path, bool whole, Text *out)
{
    const char *name = path_name(path), *dot = strrchr(name, '.');

    name += !strncmp(name, "sample:", 7) ? 7 : 0;
    text_add_bytes(out, name, !whole && dot > name ? (size_t)(dot - name) : strlen(name));
}

bool model_subject(Ui *ui, int room, Text *out)
{
    const Modelling *m = ui->screen == SCREEN_MODEL ? open_now(ui) : NULL;
    ModelSpec        parts;
    Error            ignored = ERROR_INIT;

    if (!m || !model_spec_parse(m->spec, &parts, &ignored))
        return false;
    for (int less = 0; less < 4 && (!less || term_width(text_str(out)) > room); less++) {
        text_clear(out);
        if (less < 3)
            add_file(parts.path, less < 1, out);
        if (less < 2 && !parts.text.ids) {
            text_add(out, "  ");
            add_file(parts.text.text ? parts.text.text : MODEL_USUAL_TEXT, less < 1, out);
        }
        text_addf(out, "%sn=%lld", out->length ? " " : "", (long long)m->reading.tokens.count);
    }
    if (term_width(text_str(out)) > room)
        text_clear(out);
    model_spec_free(&parts);
    return true;
}

/* ---- the screen ------------------------------------------------------------------------ */

static bool any_runs(const Ui *ui)
{
    return model_runs(ui->modelling);
}

static bool cancel(Ui *ui)
{
    return model_cancel(ui->modelling);
}

static void clear(Ui *ui)
{
    if (model_cancel(ui->modelling))
        ui_say(ui, ROLE_WARN, "cancelling\xe2\x80\xa6");
}

static double deadline(Ui *ui)
{
    return ui->screen == SCREEN_MODEL && model_runs(ui->modelling) ? 0.1 : -1;
}

static int wake_fd(const Ui *ui)
{
    return ui->modelling && ui->modelling->side ? session_wake_fd(ui->modelling->side) : -1;
}

static bool progress(const Ui *ui, char *text, size_t size)
{
    static const char *const words[] = { "opening the model", "what heads do", "forward pass",
                                         "forward pass with the swap", "the layer's q, k, v",
                                         "writing on" };
    const Modelling         *m = ui->modelling;

    for (int i = 0; m && i < MODEL_TASKS; i++) {
        int at;

        if (!m->job[i] || job_state(m->job[i]) != JOB_RUNNING)
            continue;
        at = i == MODEL_HEADS ? atomic_load(&m->rows) : atomic_load(&m->at[i]);
        if (m->model && at > 0)
            snprintf(text, size, "%s: layer %d of %lld   Ctrl-C cancels", words[i], at,
                     (long long)m->model->config.layers);
        else
            snprintf(text, size, "%s   Ctrl-C cancels", words[i]);
        return true;
    }
    return false;
}

static bool line(Ui *ui, int y)
{
    char text[512];

    if (!open_now(ui) || !model_status(ui->modelling, ui->term->cols - 2, text, sizeof(text)))
        return false;
    term_text(ui->term, y, 1, ui->term->cols - 2, text, ui_style(ui, ROLE_TITLE));
    return true;
}

/* Without a model one can only open one. */
static bool hint(Ui *ui, const Action *action)
{
    return open_now(ui) || strncmp(action->id, "model_", 6) != 0 ||
           !strcmp(action->id, "model_open");
}

static void end(Ui *ui)
{
    model_free(ui->modelling);
    ui->modelling = NULL;
}

static const Action own[] = {
    { "model_head", "Enter", IN_MODEL, "head",
      "the head's matrix in the panes; where no model is open: the included one",
      .run = open_head },
    { "model_swap", "s", IN_MODEL, "swap",
      "another mechanism in the model's layers, and what it does to the loss", .run = ask_swap },
    { "model_write", "w", IN_MODEL, "write",
      "the model writes on, and beside it the swapped one; again: the text", .run = write_on },
    { "model_hardest_next", "n", IN_MODEL, "=n N hardest",
      "the next hardest token: by its loss, or by what the swap adds to it",
      .run_with = move_hardest, .value = 1 },
    { "model_hardest_before", "N", IN_MODEL, "", "back in that order",
      .run_with = move_hardest, .value = -1 },
    { "model_plain", "x", IN_MODEL, "", "the model as it is again", .run = drop_swap },
    { "model_layer_before", "[", IN_MODEL, "=[ ] layer", "layer before",
      .run_with = move_layer, .value = -1 },
    { "model_layer_next", "]", IN_MODEL, "", "next layer", .run_with = move_layer, .value = 1 },
    { "model_head_before", "{", IN_MODEL, "={ } head", "head before",
      .run_with = move_head, .value = -1 },
    { "model_head_next", "}", IN_MODEL, "", "next head", .run_with = move_head, .value = 1 },
    { "model_token_before", "h Left", IN_MODEL, "=arrows token", "token before",
      .run_with = move_token, .value = -1 },
    { "model_token_next", "l Right", IN_MODEL, "", "next token", .run_with = move_token,
      .value = 1 },
    { "model_line_up", "k Up", IN_MODEL, "", "a line of the text up", .run_with = move_line,
      .value = -1 },
    { "model_line_down", "j Down", IN_MODEL, "", "a line of the text down",
      .run_with = move_line, .value = 1 },
    { "model_page_up", "PgUp C-u", IN_MODEL, "", "eight lines of the text up",
      .run_with = move_line, .value = -8 },
    { "model_page_down", "PgDn C-d", IN_MODEL, "", "eight lines of the text down",
      .run_with = move_line, .value = 8 },
    { "model_first", "g Home", IN_MODEL, "", "first token", .run_with = move_token,
      .value = TO_FIRST },
    { "model_last", "G End", IN_MODEL, "", "last token", .run_with = move_token,
      .value = TO_LAST },
    { "model_open", "o", IN_MODEL, "open", "open a model: :model PATH TEXT", .run = open_other },
    { "model_again", "r", IN_MODEL, "", "make the passes again", .run = again },
};

const Screen screen_model = {
    .tab = "6 Model",
    .mode = "MODEL",
    .scope = IN_MODEL,
    .draw = model_draw,
    .hint = hint,
    .clear = clear,
    .line = line,
    .poll = model_poll,
    .deadline = deadline,
    .wake_fd = wake_fd,
    .runs = any_runs,
    .cancel = cancel,
    .progress = progress,
    .end = end,
    SCREEN_ACTIONS(own),
};
