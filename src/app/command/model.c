/* model.c -- model: what a model is, its loss on texts, and other mechanisms under its heads. */
#include "app/command/model.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/session/internal.h"
#include "profile/measure.h"

/* ---- what a model is --------------------------------------------------------- */

static void describe_types(const Model *m, Text *out)
{
    int count = 0;

    for (int t = 0; t < WEIGHT_TYPES; t++)
        if (m->type_count[t])
            text_addf(out, "%s%lld %s", count++ ? ", " : "", (long long)m->type_count[t],
                      t == WEIGHT_NONE ? "of numbers that are no weights"
                                       : weight_type_name((WeightType)t));
}

static void describe_attention(const ModelConfig *c, Text *out)
{
    text_addf(out, "heads      %lld", (long long)c->heads);
    if (c->kv_heads != c->heads)
        text_addf(out, " on %lld key and value heads", (long long)c->kv_heads);
    text_addf(out, ", %lld channels each, scale %.6g, %s\n", (long long)c->head_dim, c->scale,
              c->causal ? "causal" : "every token sees all");
    if (c->window)
        text_addf(out, "window     %lld keys, with the query's own\n", (long long)c->window);
    if (c->rotary)
        text_addf(out, "positions  RoPE on %lld channels%s\n", (long long)c->rotary,
                  c->rotary_scale > 1 || c->rotary_scale < 1 ? ", YaRN" : "");
    else
        text_add(out, "positions  a table\n");
}

static const char *head_of(const Model *m)
{
    if (m->head.type == WEIGHT_NONE)
        return "none: an encoder of sentences";
    if (!m->config.causal)
        return "of masked tokens";
    return m->config.tied ? "the embedding" : "its own";
}

void model_describe(const Model *m, Text *out)
{
    const ModelConfig *c = &m->config;
    char               bytes[32];

    text_addf(out, "%s: %s, %s, %s\n", m->name, c->arch, m->format,
              format_bytes(m->file_bytes, bytes, sizeof(bytes)));
    text_addf(out, "layers     %lld", (long long)c->layers);
    if (c->groups != c->layers)
        text_addf(out, ", which share the weights of %lld", (long long)c->groups);
    text_addf(out, "\nwidth      %lld, inner %lld%s\n", (long long)c->width, (long long)c->inner,
              c->gated ? ", gated" : "");
    describe_attention(c, out);
    text_addf(out, "context    %lld tokens\nvocabulary %lld\ntokenizer  ", (long long)c->context,
              (long long)c->vocab);
    if (m->tokenizer)
        text_addf(out, "%s, %lld tokens\n", tokenizer_kind(m->tokenizer),
                  (long long)tokenizer_size(m->tokenizer));
    else
        text_addf(out, "cannot be read: %s\n", m->tokenizer_why);
    text_addf(out, "head       %s\n", head_of(m));
    if (c->pooling)
        text_addf(out, "sentence   %s\n", c->pooling == 1 ? "the mean of its tokens"
                                                          : "its first token");
    text_add(out, "tensors    ");
    describe_types(m, out);
    text_add(out, "\n");
    text_add(out, m->notes);
    if (m->tokenizer)
        text_add(out, tokenizer_notes(m->tokenizer));
    if (out->length && out->data[out->length - 1] != '\n')
        text_add(out, "\n");
}

/* ---- the texts --------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_text(ModelRun *r, const char *name, Error *err)
{
    ModelTextRun *texts = realloc(r->texts, (size_t)(r->text_count + 1) * sizeof(*texts));
    ModelText     text;

    if (texts)
        r->texts = texts;
    if (!texts || !name)
        return error_set(err, ERR_NOMEM, "not enough memory for the texts");
    if (!call_model_text(r->call, &text, err))
        return false;
    if (!text.ids)
        text.text = name;
    texts[r->text_count++] = (ModelTextRun){ .name = name, .text = text };
    return true;
}

/* The files of a folder, in the order of their names. */
static bool add_folder(ModelRun *r, const char *folder, Error *err)
{
    struct dirent **found = NULL;
    int             count = scandir(folder, &found, NULL, by_name), before = r->text_count;
    bool            ok = true;

    if (count < 0)
        return error_set(err, ERR_FILE, "%.200s: cannot be read: %s", folder, strerror(errno));

    for (int i = 0; i < count; i++) {
        char        path[4096];
        struct stat what;

        snprintf(path, sizeof(path), "%s/%s", folder, found[i]->d_name);
        if (ok && *found[i]->d_name != '.' && stat(path, &what) == 0 && S_ISREG(what.st_mode))
            ok = add_text(r, call_keep_word(path), err);
        free(found[i]);
    }
    free(found);
    return ok && (r->text_count > before ||
                  error_set(err, ERR_DATA, "%.200s: the folder holds no file to read", folder));
}

static bool take_texts(ModelRun *r, Error *err)
{
    const Call *call = r->call;
    bool        ok = true;

    for (int i = 0; ok && i < call->text_count; i++) {
        struct stat what;

        ok = stat(call->texts[i], &what) == 0 && S_ISDIR(what.st_mode)
                 ? add_folder(r, call->texts[i], err)
                 : add_text(r, call->texts[i], err);
    }
    if (ok && !call->text_count && call->values[OPT_IDS])
        ok = add_text(r, call->values[OPT_IDS], err);
    for (int i = 0; ok && i < r->text_count; i++)
        ok = model_read_text(r->session, r->m, &r->texts[i].text, &r->texts[i].reading, err);
    return ok;
}

/* ---- running --------------------------------------------------------------------- */

/* On a terminal always, elsewhere as a line now and then. */
static void say_progress(ModelRun *r, const char *what, const char *times)
{
    char text[64] = "";

    if (r->text_count > 1)
        snprintf(text, sizeof(text), "text %d of %d: ", r->doing + 1, r->text_count);
    session_progress(r->session, "%s%s; %s", text, what, times);
    if (model_progress_speaks(&r->progress, clock_wall()))
        session_line(r->session, "model: %s%s; %s", text, what, times);
}

/* Tokens that pass the layers before this one, in all variants that are their own there. */
static double rows_before(const ModelRun *r, int64_t tokens, int64_t layer)
{
    double rows = 0;

    for (int64_t v = 0; v <= r->swap_count; v++) {
        int64_t first = 0;

        while (v && first < layer && !r->layer_sets[v - 1][first])
            first++;
        rows += (double)(layer - first) * (double)tokens;
    }
    return rows;
}

static void begin_progress(ModelRun *r)
{
    r->progress.began = r->progress.spoke = clock_wall();
    for (int i = 0; i < r->text_count; i++)
        r->progress.all += rows_before(r, r->texts[i].reading.tokens.count, r->m->config.layers);
}

static void show_layer(void *context, int64_t layer, int64_t layers)
{
    ModelRun *r = context;
    char      what[64], times[80];

    r->progress.done = rows_before(r, r->texts[r->doing].reading.tokens.count, layer);
    for (int i = 0; i < r->doing; i++)
        r->progress.done += rows_before(r, r->texts[i].reading.tokens.count, layers);
    model_progress_times(&r->progress, clock_wall(), times, sizeof(times));
    snprintf(what, sizeof(what), "layer %lld of %lld", (long long)layer, (long long)layers);
    say_progress(r, what, times);
}

static bool run_text(ModelRun *r, ModelTextRun *t, int threads, Error *err)
{
    ForwardOptions options = { .swaps = r->swaps, .swap_count = r->swap_count, .last_layer = -1,
                               .threads = threads, .cancel = r->session->stop,
                               .on_progress = show_layer, .context = r };

    return forward_run(r->m, t->reading.tokens.ids, t->reading.tokens.count, &options, &t->result,
                       err) ||
           error_prefix(err, "%.200s", t->name);
}

static bool show_token(void *context, int64_t at, int32_t id, double p)
{
    ModelRun *r = context;
    char      what[64], times[32];

    (void)id;
    (void)p;
    snprintf(what, sizeof(what), "token %lld written", (long long)at + 1);
    format_seconds(clock_wall() - r->progress.began, times, sizeof(times));
    say_progress(r, what, times);
    return true;
}

static bool call_real(const Call *call, int id, double *out, Error *err)
{
    const char *text = call->values[id];
    char       *end;

    if (!text)
        return true;
    *out = strtod(text, &end);
    return (end != text && !*end && *out >= 0 && *out < 1e6) ||
           error_set(err, ERR_USAGE, "--%s: expected a number from 0, got '%.40s'",
                     option_at(id)->flag, text);
}

/* What is written with variant v: 0 is the model as it is. */
static GenerateOptions generate_options(ModelRun *r, int64_t v, int threads)
{
    GenerateOptions options = r->generate;

    options.threads = threads;
    options.cancel = r->session->stop;
    options.on_token = show_token;
    options.context = r;
    options.swap = v ? &r->swaps[v - 1] : NULL;
    return options;
}

static bool generate_failed(const ModelRun *r, int64_t v, Error *err)
{
    return error_prefix(err, "--generate%s%.120s", v ? " with " : "",
                        v ? r->origins[v - 1].text : "");
}

static bool write_on(ModelRun *r, ModelTextRun *t, int threads, Error *err)
{
    if (!r->generate.count)
        return true;
    t->written = calloc((size_t)r->swap_count + 1, sizeof(*t->written));
    if (!t->written)
        return error_set(err, ERR_NOMEM, "not enough memory to write on");
    for (int64_t v = 0; v <= r->swap_count; v++) {
        GenerateOptions options = generate_options(r, v, threads);

        if (!generate_run(r->m, t->reading.tokens.ids, t->reading.tokens.count, &options,
                          &t->written[v], err))
            return generate_failed(r, v, err);
    }
    return true;
}

/* A pass over a text may take minutes: what cannot be written on is refused before it. */
static bool check_writing(ModelRun *r, const ModelTextRun *t, Error *err)
{
    for (int64_t v = 0; r->generate.count && v <= r->swap_count; v++) {
        GenerateOptions options = generate_options(r, v, 0);

        if (!generate_check(r->m, t->reading.tokens.ids, t->reading.tokens.count, &options, err))
            return generate_failed(r, v, err);
    }
    return true;
}

static bool run_texts(ModelRun *r, Error *err)
{
    int64_t threads = 0;
    bool    ok = call_int(r->call, OPT_THREADS, 1, 4096, &threads, err);

    session_heeds_stop(r->session, true);
    begin_progress(r);
    for (int i = 0; ok && i < r->text_count; i++)
        ok = check_writing(r, &r->texts[i], err);
    for (r->doing = 0; ok && r->doing < r->text_count; r->doing++)
        ok = run_text(r, &r->texts[r->doing], (int)threads, err) &&
             write_on(r, &r->texts[r->doing], (int)threads, err);
    session_heeds_stop(r->session, false);
    if (ok && session_stopped(r->session))
        ok = error_set(err, ERR_CANCELLED, "interrupted");
    return ok;
}

/* ---- what was measured ------------------------------------------------------------ */

double model_last_residual(const ModelRun *r, const ForwardMeasure *m)
{
    return m->residual ? m->residual[r->m->config.layers] : (double)NAN;
}

static ModelSpread spread_of(const double *values, int count)
{
    static const double t975[] = { 12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                   2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                                   2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                                   2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423 };
    const int known = (int)(sizeof(t975) / sizeof(*t975));
    ModelSpread out = { 0, (double)NAN };
    double    squares = 0;

    for (int i = 0; i < count; i++)
        out.mean += values[i] / count;
    for (int i = 0; i < count; i++)
        squares += (values[i] - out.mean) * (values[i] - out.mean);
    if (count > 1) /* 1.96 (1 + 1/df) is above the quantile from 31 on, by less than 0.02 */
        out.half = (count - 2 < known ? t975[count - 2] : 1.96 * (1 + 1.0 / (count - 1))) *
                   sqrt(squares / (count - 1) / count);
    return out;
}

static const char *const measured_names[] = { "loss", "delta", "kl", "agreement", "cosine",
                                              "residual" };

const char *model_measure_name(ModelMeasure measure)
{
    return measured_names[measure];
}

static double measured(const ModelRun *r, int text, int64_t variant, ModelMeasure which)
{
    const ForwardMeasure *m = &r->texts[text].result.measure[variant];

    switch (which) {
    case MODEL_LOSS: return m->loss;
    case MODEL_DELTA: return m->delta;
    case MODEL_KL: return m->kl;
    case MODEL_AGREEMENT: return m->agreement;
    case MODEL_COSINE: return m->cosine;
    default: return model_last_residual(r, m);
    }
}

ModelSpread model_spread(const ModelRun *r, int64_t variant, ModelMeasure which)
{
    double     *values = malloc((size_t)r->text_count * sizeof(*values));
    ModelSpread out = { (double)NAN, (double)NAN };

    for (int i = 0; values && i < r->text_count; i++)
        values[i] = measured(r, i, variant, which);
    if (values)
        out = spread_of(values, r->text_count);
    free(values);
    return out;
}

double model_share_of(const ForwardMeasure *m)
{
    return m->flops_exact > 0 ? m->flops / m->flops_exact : (double)NAN;
}

double model_share(const ModelRun *r, int64_t variant)
{
    double sum = 0;

    for (int i = 0; i < r->text_count; i++)
        sum += model_share_of(&r->texts[i].result.measure[variant]);
    return sum / r->text_count;
}

/* ---- --dump ---------------------------------------------------------------------- */

typedef struct Dumping {
    ModelRun    *r;
    Arena       *arena;
    const bool  *layers;
    NamedTensor *items;
    int64_t      count;
    Tensor       logits; /* [n, V]; data NULL: the model has no head */
    bool         failed;
} Dumping;

static void keep_tensor(Dumping *d, int64_t layer, char role, const Tensor *from)
{
    Tensor copy = tensor_new(d->arena, DT_F32, from->rank, from->shape);
    char   name[40];

    snprintf(name, sizeof(name), "layers.%lld.%c", (long long)layer, role);
    d->items[d->count].name = arena_strdup(d->arena, name);
    if (!copy.data || !d->items[d->count].name) {
        d->failed = true;
        return;
    }
    memcpy(copy.data, from->data, (size_t)tensor_bytes(from));
    d->items[d->count++].tensor = copy;
}

static bool keep_layer(void *context, const LayerView *view)
{
    Dumping *d = context;

    if (d->layers[view->layer]) {
        keep_tensor(d, view->layer, 'x', &view->x);
        keep_tensor(d, view->layer, 'q', &view->q);
        keep_tensor(d, view->layer, 'k', &view->k);
        keep_tensor(d, view->layer, 'v', &view->v);
    }
    return !d->failed;
}

/* Rows as they come, of the model as it is. */
static void keep_logits(void *context, int64_t variant, int64_t first, int64_t rows,
                        const float *logits)
{
    const Dumping *d = context;
    int64_t        vocab = d->logits.shape[1];

    (void)variant;
    memcpy((float *)d->logits.data + first * vocab, logits, (size_t)(rows * vocab) * sizeof(float));
}

static void add_pieces(const Model *m, const TokenList *tokens, Text *out)
{
    Json j = jsonw_to(out);

    jsonw_open(&j, '[');
    for (int64_t i = 0; i < tokens->count; i++) {
        if (m->tokenizer)
            jsonw_string(&j, tokenizer_piece(m->tokenizer, tokens->ids[i]));
        else
            jsonw_int(&j, tokens->ids[i]);
    }
    jsonw_close(&j, ']');
}

static bool write_layers(const Dumping *d, const char *folder, Error *err)
{
    const Model *m = d->r->m;
    Text         path = { 0 }, tokens = { 0 };
    char         scale[40], window[24];
    bool         ok;

    add_pieces(m, &d->r->texts[0].reading.tokens, &tokens);
    text_addf(&path, "%s/layers.safetensors", folder);
    snprintf(scale, sizeof(scale), "%.17g", m->config.scale);
    snprintf(window, sizeof(window), "%lld", (long long)m->config.window);
    ok = (text_ok(&path) && text_ok(&tokens)) || error_set(err, ERR_NOMEM, "not enough memory");
    ok = ok && call_spares(d->r->call, text_str(&path), err) && input_write_safetensors(
                   text_str(&path), d->items, d->count,
                   (const char *const[]){ "layout", "h,n,d", "causal", m->config.causal ? "1" : "0",
                                          "scale", scale, "window", window,
                                          "model", path_name(m->name), "tokens",
                                          text_str(&tokens), NULL },
                   err);
    text_clear(&path);
    text_addf(&path, "%s/logits.npy", folder);
    if (ok && d->logits.data)
        ok = text_ok(&path) ? call_spares(d->r->call, text_str(&path), err) &&
                                  input_write_npy(text_str(&path), &d->logits, err)
                            : error_set(err, ERR_NOMEM, "not enough memory");
    text_free(&path);
    text_free(&tokens);
    return ok;
}

static bool dump_pass(Dumping *d, Error *err)
{
    const Model     *m = d->r->m;
    const TokenList *tokens = &d->r->texts[0].reading.tokens;
    int64_t          shape[2] = { tokens->count, m->head.rows };
    ForwardResult    result;
    ForwardOptions   options = { .last_layer = m->config.layers - 1, .cancel = d->r->session->stop,
                                 .on_layer = keep_layer, .context = d };
    bool             ok;

    if (m->head.type != WEIGHT_NONE) {
        d->logits = tensor_new(d->arena, DT_F32, 2, shape);
        if (!d->logits.data)
            return error_set(err, ERR_NOMEM, "--dump: not enough memory for logits of %lld x %lld; "
                             "--max-tokens cuts the text", (long long)shape[0],
                             (long long)shape[1]);
        options.last_layer = -1;
        options.on_logits = keep_logits;
    }
    ok = forward_run(m, tokens->ids, tokens->count, &options, &result, err);
    forward_result_free(&result);
    if (d->failed)
        ok = error_set(err, ERR_NOMEM, "--dump: not enough memory; --layers names fewer");
    return ok;
}

/* Layers' inputs and q, k, v of the first text, as one file that --input reads again, and its
 * logits. */
static bool dump_layers(ModelRun *r, Error *err)
{
    const char    *folder = r->call->values[OPT_DUMP];
    int64_t        layers = r->m->config.layers;
    bool          *set = folder ? malloc((size_t)layers) : NULL;
    Dumping        d = { .r = r, .arena = folder ? arena_new() : NULL, .layers = set };
    bool           ok;

    if (!folder)
        return true;
    d.items = calloc((size_t)layers * 4, sizeof(*d.items));
    ok = (set && d.arena && d.items) || error_set(err, ERR_NOMEM, "not enough memory for --dump");
    if (ok)
        memset(set, true, (size_t)layers);
    if (ok && r->call->values[OPT_SWAPLAYERS])
        ok = model_parse_set("--layers", r->call->values[OPT_SWAPLAYERS], "layer", layers, set,
                             err);
    if (ok && mkdir(folder, 0777) != 0 && errno != EEXIST)
        ok = error_set(err, ERR_FILE, "%.200s: cannot be made: %s", folder, strerror(errno));
    ok = ok && dump_pass(&d, err) && write_layers(&d, folder, err);
    free(set);
    free(d.items);
    arena_free(d.arena);
    return ok;
}

/* ---- the command ------------------------------------------------------------------ */

void model_run_free(ModelRun *r)
{
    for (int i = 0; i < r->text_count; i++) {
        ModelTextRun *t = &r->texts[i];

        model_reading_free(&t->reading);
        forward_result_free(&t->result);
        for (int64_t v = 0; t->written && v <= r->swap_count; v++)
            generate_result_free(&t->written[v]);
        free(t->written);
    }
    model_swaps_free(r);
    axis_free(&r->axis);
    free(r->texts);
    model_close(r->m);
}

bool model_run_open(ModelRun *r, Error *err)
{
    ModelSpec parts;
    double    start = clock_wall();

    if (!model_spec_parse(r->call->words[0], &parts, err))
        return false;
    r->m = model_spec_open(r->session, &parts, err);
    model_spec_free(&parts);
    r->load_seconds = clock_wall() - start;
    return r->m != NULL;
}

static bool take_generate(ModelRun *r, Error *err)
{
    static const OptionId of_generate[] = { OPT_TOPK, OPT_TEMPERATURE };
    const Call           *call = r->call;
    GenerateOptions      *o = &r->generate;
    int64_t               seed = 0;

    for (size_t i = 0; i < sizeof(of_generate) / sizeof(*of_generate); i++)
        if (call->values[of_generate[i]] && !call->values[OPT_GENERATE])
            return error_set(err, ERR_USAGE, "--%s is of tokens that are written: it needs "
                             "--generate N", option_at(of_generate[i])->flag);
    if (!call_int(call, OPT_GENERATE, 1, 1 << 20, &o->count, err) ||
        !call_int(call, OPT_TOPK, 1, INT32_MAX, &o->top_k, err) ||
        !call_int(call, OPT_SEED, 0, INT64_MAX, &seed, err) ||
        !call_real(call, OPT_TEMPERATURE, &o->temperature, err))
        return false;
    o->seed = (uint64_t)seed;
    return true;
}

/* Options that ask for a text, without one. */
static bool check_options(ModelRun *r, Error *err)
{
    static const OptionId of_texts[] = { OPT_SWAP, OPT_EACH, OPT_SWAPVARY, OPT_SWAPPLOT,
                                         OPT_GENERATE, OPT_DUMP, OPT_OUTPUT };
    static const OptionId of_swaps[] = { OPT_EACH, OPT_SWAPVARY, OPT_SWAPPLOT, OPT_OUTPUT };
    const Call           *call = r->call;

    for (size_t i = 0; i < sizeof(of_texts) / sizeof(*of_texts); i++)
        if (call->values[of_texts[i]] && !call->text_count && !call->values[OPT_IDS])
            return error_set(err, ERR_USAGE, "--%s needs a text: --text FILE, or --text "
                             MODEL_USUAL_TEXT, option_at(of_texts[i])->flag);
    for (size_t i = 0; i < sizeof(of_swaps) / sizeof(*of_swaps); i++)
        if (call->values[of_swaps[i]] && !call->swap_count)
            return error_set(err, ERR_USAGE, "--%s needs a mechanism: --swap 'window(window=33)'",
                             option_at(of_swaps[i])->flag);
    if (call->values[OPT_EACH] && call->values[OPT_SWAPVARY])
        return error_set(err, ERR_USAGE, "--each has a row for each layer, --vary for each value: "
                         "choose one");
    if (call->values[OPT_IDS] && call->text_count)
        return error_set(err, ERR_USAGE, "choose one of --text and --ids");
    if (call->values[OPT_DUMP] && call->swap_layers_count > 1)
        return error_set(err, ERR_USAGE, "--dump: give --layers once");
    return take_generate(r, err) && model_swaps_check(call, err) && model_figure_check(call, err);
}

bool model_run_texts(ModelRun *r, Error *err)
{
    return model_take_swaps(r, err) && take_texts(r, err) && run_texts(r, err);
}

bool command_model(Session *s, const Call *call, Text *out, Error *err)
{
    ModelRun r = { .session = s, .call = call };
    bool     ok;

    if (!call->word_count)
        return error_set(err, ERR_USAGE, "model needs a model: a .gguf file, or a folder with "
                         "config.json; " MODEL_INCLUDED " comes with the program");
    ok = check_options(&r, err) && model_run_open(&r, err) && model_run_texts(&r, err) &&
         dump_layers(&r, err);
    if (ok && call->file_count)
        ok = model_figure(&r, out, err);
    else if (ok && call->values[OPT_JSON])
        model_report_json(&r, out);
    else if (ok && !r.text_count)
        model_describe(r.m, out);
    else if (ok)
        model_report(&r, out);
    if (ok && call->values[OPT_SWAPPLOT] && !call->file_count)
        ok = model_figure(&r, out, err);
    model_run_free(&r);
    return ok;
}
