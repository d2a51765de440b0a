/* model_work.c -- the long work of the screen Model: opening, passes, a layer; see model.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/labels.h"
#include "model/swap.h"
#include "ui/screen/model.h"

/* ---- opening ---------------------------------------------------------------- */

int64_t model_token_label(const Model *m, int32_t id, bool first, char *text, size_t size)
{
    const Tokenizer *t = m->tokenizer;
    bool             words = t && !strcmp(tokenizer_kind(t), "WordPiece");
    const char      *piece = t ? tokenizer_piece(t, id) : "";
    int64_t          length = t && !words ? tokenizer_bytes(t, id, text, (int64_t)size) : 0;

    if (length <= 0)
        length = snprintf(text, size, "%s%.200s", words && !first && *piece != '#' ? " " : "",
                          piece);
    if (length <= 0)
        length = snprintf(text, size, " %d", id);
    return length < (int64_t)size ? length : (int64_t)size - 1;
}

static bool label_tokens(ModelOpened *o, Error *err)
{
    int64_t n = o->reading.tokens.count;
    char    bytes[1024];

    o->arena = arena_new();
    o->label = o->arena ? arena_alloc(o->arena, n, sizeof(*o->label)) : NULL;
    for (int64_t i = 0; o->label && i < n; i++) {
        int64_t size = model_token_label(o->model, o->reading.tokens.ids[i], !i, bytes,
                                         sizeof(bytes));

        o->label[i] = labels_copy(o->arena, (const uint8_t *)bytes, size);
        if (!o->label[i])
            o->label = NULL;
    }
    return o->label || error_set(err, ERR_NOMEM, "not enough memory for %lld tokens",
                                 (long long)n);
}

static bool open_model(void *context, const atomic_bool *cancel, Error *err)
{
    Modelling   *m = context;
    ModelOpened *o = &m->opened;
    ModelSpec    parts;
    Session     *s;
    bool         ok;

    if (!model_spec_parse(m->spec, &parts, err))
        return false;
    s = session_new(err); /* the side session belongs to the screen's thread */
    o->model = s ? model_spec_open(s, &parts, err) : NULL;
    ok = o->model && !atomic_load(cancel) &&
         model_read_text(s, o->model, &parts.text, &o->reading, err) && label_tokens(o, err);
    session_free(s);
    model_spec_free(&parts);
    if (!ok)
        return false;
    o->scores = calloc((size_t)(o->model->config.layers * o->model->config.heads),
                       sizeof(*o->scores));
    return o->scores || error_set(err, ERR_NOMEM, "not enough memory for the scores of heads");
}

static void take_opened(Modelling *m)
{
    m->model = m->opened.model;
    m->reading = m->opened.reading;
    m->arena = m->opened.arena;
    m->label = m->opened.label;
    m->scores = m->opened.scores;
    m->opened = (ModelOpened){ 0 };
}

static void free_opened(ModelOpened *o)
{
    model_reading_free(&o->reading);
    model_close(o->model);
    arena_free(o->arena);
    free(o->scores);
}

static void take_plain(Modelling *m)
{
    forward_result_free(&m->plain);
    m->plain = m->pass;
    m->pass = (ForwardResult){ 0 };
}

/* ---- passes ------------------------------------------------------------------ */

static bool take_heads(void *context, int64_t layer, const HeadScores *scores)
{
    Modelling *m = context;
    int64_t    heads = m->model->config.heads;

    memcpy(m->scores + layer * heads, scores, (size_t)heads * sizeof(*scores));
    atomic_store(&m->rows, (int)layer + 1);
    return true;
}

static bool find_heads(void *context, const atomic_bool *cancel, Error *err)
{
    Modelling   *m = context;
    HeadsResult  result = { 0 };
    HeadsOptions options = { .layer = -1, .cancel = cancel, .on_layer = take_heads,
                             .context = m };
    bool         ok = heads_run(m->model, m->reading.tokens.ids, m->reading.tokens.count, &options,
                                &result, err);

    heads_result_free(&result);
    return ok;
}

static void count_plain(void *context, int64_t layer, int64_t layers)
{
    (void)layers;
    atomic_store(&((Modelling *)context)->at[MODEL_PLAIN], (int)layer);
}

static void count_swap(void *context, int64_t layer, int64_t layers)
{
    (void)layers;
    atomic_store(&((Modelling *)context)->at[MODEL_SWAP], (int)layer);
}

static bool run_plain(void *context, const atomic_bool *cancel, Error *err)
{
    Modelling     *m = context;
    ForwardOptions options = { .last_layer = -1, .cancel = cancel, .on_progress = count_plain,
                               .context = m };

    return forward_run(m->model, m->reading.tokens.ids, m->reading.tokens.count, &options,
                       &m->pass, err);
}

static bool run_swap(void *context, const atomic_bool *cancel, Error *err)
{
    Modelling     *m = context;
    Swap           swap = { .mechanism = m->mechanism, .layers = m->layers.on };
    const Swap    *all = m->mixture ? m->mixture->parts : &swap;
    ForwardOptions options = { .swaps = all, .swap_count = 1, .last_layer = -1, .cancel = cancel,
                               .on_progress = count_swap, .context = m };

    return forward_run(m->model, m->reading.tokens.ids, m->reading.tokens.count, &options,
                       &m->fresh, err);
}

/* ---- a layer for the panes --------------------------------------------------- */

static bool read_layer(void *context, const atomic_bool *cancel, Error *err)
{
    Modelling  *m = context;
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    Session    *s = session_new(err);

    choice.layer = m->wanted;
    choice.cancel = cancel;
    m->input = s ? session_read_input(s, m->spec, &choice, err) : NULL;
    session_free(s);
    return m->input != NULL;
}

/* ---- tasks -------------------------------------------------------------------- */

static void submit(Ui *ui, ModelTask task)
{
    static const JobWork work[] = { open_model, find_heads, run_plain, run_swap, read_layer,
                                    model_write_work };
    Modelling           *m = ui->modelling;
    Error                err = ERROR_INIT;

    atomic_store(&m->at[task], 0);
    m->job[task] = session_submit_work(m->side, work[task], m, &err);
    if (!m->job[task])
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

/* Waits until the worker has left it: for a layer at most. */
static void stop(Modelling *m, ModelTask task)
{
    job_free(m->job[task]);
    m->job[task] = NULL;
}

bool model_task_ended(Ui *ui, ModelTask task, JobState *state)
{
    Modelling *m = ui->modelling;

    if (!m || !m->job[task])
        return false;
    *state = job_state(m->job[task]);
    if (*state == JOB_WAITING || *state == JOB_RUNNING)
        return false;
    if (*state == JOB_FAILED) {
        if (task == MODEL_OPENING)
            snprintf(m->problem, sizeof(m->problem), "%s", job_error(m->job[task])->text);
        ui_say(ui, ROLE_ERROR, "%s", job_error(m->job[task])->text);
    }
    if (*state == JOB_DONE && task == MODEL_OPENING)
        take_opened(m);
    if (*state == JOB_DONE && task == MODEL_PLAIN)
        take_plain(m);
    stop(m, task);
    return true;
}

bool model_runs(const Modelling *m)
{
    for (int i = 0; m && i < MODEL_TASKS; i++)
        if (m->job[i])
            return true;
    return false;
}

bool model_cancel(Modelling *m)
{
    for (int i = 0; m && i < MODEL_TASKS; i++)
        if (m->job[i])
            job_cancel(m->job[i]);
    return model_runs(m);
}

void model_drop_swap(Modelling *m)
{
    forward_result_free(&m->swapped);
    m->swapped = (ForwardResult){ 0 };
    free(m->shown_layers.on);
    m->shown_layers = (ModelLayers){ 0 };
    m->shown_mixture = NULL;
}

/* Frees those that neither a swap nor what is written reads any more. */
static void drop_mixtures(Modelling *m)
{
    for (SwapMixture **at = &m->mixtures; *at;) {
        SwapMixture *x = *at;

        if (x == m->mixture || x == m->shown_mixture || x == m->write_mixture) {
            at = &x->next;
        } else {
            *at = x->next;
            swap_mixture_free(x);
        }
    }
}

void model_free(Modelling *m)
{
    if (!m)
        return;
    model_cancel(m);
    for (int i = 0; i < MODEL_TASKS; i++)
        stop(m, (ModelTask)i);
    model_drop_swap(m);
    free_opened(&m->opened);
    forward_result_free(&m->pass);
    forward_result_free(&m->plain);
    forward_result_free(&m->fresh);
    m->mixture = m->write_mixture = NULL;
    drop_mixtures(m);
    free(m->layers.on);
    free(m->write_layers);
    input_free(m->input);
    model_reading_free(&m->reading);
    model_close(m->model);
    arena_free(m->arena);
    session_free(m->side);
    free(m->scores);
    free(m->spec);
    free(m);
}

/* Nothing is open yet; NULL: no memory at all. */
static Modelling *begin_new(Ui *ui, const char *spec, Error *err)
{
    Modelling *m = calloc(1, sizeof(*m));

    model_free(ui->modelling);
    ui->modelling = m;
    if (!m)
        return NULL;
    m->spec = strdup(spec);
    m->side = m->spec ? session_new(err) : NULL;
    if (!m->side)
        snprintf(m->problem, sizeof(m->problem), "%s",
                 *err->text ? err->text : "not enough memory for a model");
    return m;
}

void model_begin(Ui *ui, const char *spec)
{
    Error            err = ERROR_INIT;
    const Modelling *m = begin_new(ui, spec, &err);

    if (m && m->side)
        submit(ui, MODEL_OPENING);
}

bool model_begin_open(Ui *ui, const char *spec, Error *err)
{
    Modelling  *m = begin_new(ui, spec, err);
    atomic_bool never = false;

    if (!m || !m->side)
        return error_set(err, ERR_NOMEM, "not enough memory for a model");
    if (!open_model(m, &never, err))
        return false;
    take_opened(m);
    return true;
}

void model_measure(Ui *ui)
{
    Modelling *m = ui->modelling;

    for (int i = 0; i < MODEL_TASKS; i++)
        if (m->job[i] && i != MODEL_LAYER)
            job_cancel(m->job[i]);
    stop(m, MODEL_HEADS);
    stop(m, MODEL_PLAIN);
    forward_result_free(&m->pass);
    forward_result_free(&m->plain);
    m->pass = m->plain = (ForwardResult){ 0 };
    atomic_store(&m->rows, 0);
    submit(ui, MODEL_HEADS);
    submit(ui, MODEL_PLAIN);
}

void model_fetch_layer(Ui *ui)
{
    Modelling *m = ui->modelling;

    stop(m, MODEL_LAYER);
    input_free(m->input);
    m->input = NULL;
    m->wanted = m->layer;
    submit(ui, MODEL_LAYER);
}

void model_write(Ui *ui)
{
    Modelling *m = ui->modelling;

    if (m->job[MODEL_WRITE])
        job_cancel(m->job[MODEL_WRITE]);
    stop(m, MODEL_WRITE);
    m->writing = true;
    if (model_write_take(m))
        submit(ui, MODEL_WRITE);
    else
        ui_say(ui, ROLE_ERROR, "not enough memory to write on");
}

void model_stop_writing(Modelling *m)
{
    if (m->job[MODEL_WRITE])
        job_cancel(m->job[MODEL_WRITE]);
    m->writing = false;
}

/* ---- a swap -------------------------------------------------------------------- */

/* "10-19,22", "all", or nothing. */
static bool parse_layers(const char *words, int64_t layers, ModelLayers *out, Error *err)
{

    *out = (ModelLayers){ 0 };
    snprintf(out->words, sizeof(out->words), "%.60s", *words ? words : "all");
    if (!*words || !strcmp(words, "all"))
        return true;
    out->on = calloc((size_t)layers, sizeof(*out->on));
    if (!out->on)
        return error_set(err, ERR_NOMEM, "not enough memory for a list of layers");
    if (model_parse_set("layers", words, "layer", layers, out->on, err))
        return true;
    free(out->on);
    out->on = NULL;
    return false;
}

/* The mechanism ends at the blank behind its last parenthesis, if it has any. */
static size_t mechanism_length(const char *words)
{
    int    depth = 0;
    size_t at = 0;

    for (; words[at] && (depth > 0 || words[at] != ' '); at++)
        depth += (words[at] == '(') - (words[at] == ')');
    return at;
}

/* Runs the model with it; takes the layers. */
static void start_swap(Ui *ui, const char *mechanism, ModelLayers layers,
                       const SwapMixture *mixture)
{
    Modelling *m = ui->modelling;

    stop(m, MODEL_SWAP);
    free(m->layers.on);
    m->layers = layers;
    m->mixture = mixture;
    drop_mixtures(m);
    snprintf(m->mechanism, sizeof(m->mechanism), "%s", mechanism);
    forward_result_free(&m->fresh);
    m->fresh = (ForwardResult){ 0 };
    submit(ui, MODEL_SWAP);
}

/* "@advice.csv", which has its own layers. */
static void swap_file(Ui *ui, const char *file, const char *layers, Error *err)
{
    Modelling   *m = ui->modelling;
    SwapMixture *mixture = NULL;
    ModelLayers  own = { 0 };
    Text         words = { 0 };

    if (*layers)
        error_set(err, ERR_USAGE, "swap %.200s: the file says the layers", file);
    else
        mixture = swap_mixture_read(file, &m->model->config, 0, err);
    if (!mixture)
        return;
    mixture->next = m->mixtures;
    m->mixtures = mixture;
    model_set_text(mixture->layers, m->model->config.layers, &words);
    snprintf(own.words, sizeof(own.words), "%.60s", text_str(&words));
    text_free(&words);
    start_swap(ui, file, own, mixture);
}

void model_swap(Ui *ui, const char *words)
{
    size_t        length = mechanism_length(words);
    MechanismSpec spec;
    ModelLayers   layers;
    char          mechanism[256];
    Error         err = ERROR_INIT;

    snprintf(mechanism, sizeof(mechanism), "%.*s", (int)length, words);
    words += length + strspn(words + length, " ");
    if (length >= sizeof(mechanism)) {
        error_set(&err, ERR_USAGE, "the mechanism is longer than %zu characters",
                  sizeof(mechanism) - 1);
    } else if (swap_is_file(mechanism)) {
        swap_file(ui, mechanism, words, &err);
    } else if (mechanism_spec_parse(mechanism, &spec, &err)) {
        mechanism_spec_free(&spec);
        if (parse_layers(words, ui->modelling->model->config.layers, &layers, &err))
            start_swap(ui, mechanism, layers, NULL);
    }
    if (err.code)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}
