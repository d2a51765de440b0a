/* cache.c -- cache: what stacks of layers hold and read while they generate, over the number of
 * tokens.
 *
 * A stack is a model's, by its configuration, or the layers of a --layers with the sizes of the
 * options or of the one model that is named.  Each type of --dtype makes a stack of its own.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/cache.h"
#include "app/command/command.h"
#include "app/figure/plots.h"
#include "app/session/model_input.h"
#include "app/study/sweep.h"
#include "core/text.h"
#include "profile/stack.h"

#define STACKS_MOST (PLOT_SERIES_MOST - 1) /* with their total, if they are kinds of one */
#define SIZE_MOST   (1 << 20)
#define N_MOST      ((int64_t)1 << 40)
#define USUAL_N     "1024:131072:x2"
#define USUAL_DIM   128
#define SMOOTH      4 /* points of a curve between a length and twice of it */
#define POINTS_MOST 512

typedef struct CacheStack {
    Text       name;
    StackShape shape;
    int64_t    context; /* of its model; 0: none, or not said */
    char       dtype[8];
    Stack      stack;
    StackKind  kinds[STACK_LAYERS];
    int        kind_count;
} CacheStack;

typedef struct CacheRun {
    Session    *session;
    const Call *call;
    CacheStack *stacks[STACKS_MOST]; /* owned */
    int         count;
    WordList    lengths, dtypes;
    Text        notes;
} CacheRun;

/* ---- options ------------------------------------------------------------------ */

static bool take_lengths(CacheRun *r, Error *err)
{
    const char *given = r->call->values[OPT_CACHEN];

    if (!words_expand("-n", given ? given : USUAL_N, &r->lengths, err))
        return false;
    for (int i = 0; i < r->lengths.count; i++) {
        int64_t n;

        if (!text_whole(r->lengths.items[i], &n) || n < 1 || n > N_MOST)
            return error_set(err, ERR_USAGE, "-n: expected whole numbers from 1 to 2^40, got '%s'"
                             WHOLE_FORMS, r->lengths.items[i]);
    }
    words_sort_numbers(&r->lengths);
    return true;
}

static int64_t length_at(const CacheRun *r, int i)
{
    return strtoll(r->lengths.items[i], NULL, 10);
}

static bool take_dtypes(CacheRun *r, Error *err)
{
    const char *given = r->call->values[OPT_DTYPE];
    StackShape  ignored;

    if (!words_expand("--dtype", given ? given : stack_dtype_name(0), &r->dtypes, err))
        return false;
    for (int i = 0; i < r->dtypes.count; i++)
        if (!stack_dtype_parse(r->dtypes.items[i], &ignored, err))
            return error_prefix(err, "--dtype");
    return true;
}

/* The options change the sizes of the model, or the default ones. */
static bool take_sizes(const Call *call, StackShape *shape, Error *err)
{
    if (!call_int(call, OPT_CACHEHEADS, 1, SIZE_MOST, &shape->heads, err) ||
        !call_int(call, OPT_KVHEADS, 1, SIZE_MOST, &shape->kv_heads, err) ||
        !call_int(call, OPT_HEADSIZE, 1, SIZE_MOST, &shape->dim, err) ||
        !call_int(call, OPT_RANK, 0, SIZE_MOST, &shape->rank, err) ||
        !call_int(call, OPT_LATENTROPE, 0, SIZE_MOST, &shape->rope, err))
        return false;
    if (!shape->kv_heads)
        shape->kv_heads = shape->heads;
    return true;
}

static bool check_options(const Call *call, Error *err)
{
    PngOptions png;
    bool       table = call->values[OPT_JSON] || call->values[OPT_CSV] || call->values[OPT_MD];

    if (!call->word_count && !call->stack_count)
        return error_set(err, ERR_USAGE,
                         "cache needs layers or a model: attnscope cache --layers "
                         "'window(4096)x3,full' --heads 32 --kv-heads 8 -d 128, or attnscope cache "
                         MODEL_INCLUDED);
    if (call->word_count > 1 && call->stack_count)
        return error_set(err, ERR_USAGE, "--layers takes the sizes of one model, but %d are given",
                         call->word_count);
    if (call->values[OPT_DEPTH] && !call->stack_count)
        return error_set(err, ERR_USAGE, "--depth is of --layers: a model has its own");
    if (call->file_count && table)
        return error_set(err, ERR_USAGE, "a figure or a table: leave out --json, --csv and --md, "
                         "or -o");
    if (!call->file_count && call->values[OPT_FORMAT])
        return error_set(err, ERR_USAGE, "--format is of a figure: add -o FILE.png");
    return call_png_options(call, &png, err);
}

/* ---- stacks --------------------------------------------------------------------- */

static bool add_typed(CacheRun *r, const char *name, const char *dtype, const Stack *layers,
                      const StackShape *shape, Error *err)
{
    CacheStack *s;

    if (r->count == STACKS_MOST)
        return error_set(err, ERR_USAGE, "more than %d stacks", STACKS_MOST);
    s = calloc(1, sizeof(*s));
    if (!s)
        return error_set(err, ERR_NOMEM, "not enough memory for a stack");
    r->stacks[r->count++] = s;
    s->stack = *layers;
    s->shape = *shape;
    s->kind_count = stack_kinds(&s->stack, s->kinds);
    snprintf(s->dtype, sizeof(s->dtype), "%s", dtype);
    text_addf(&s->name, "%s%s%s", name, r->dtypes.count > 1 ? " " : "",
              r->dtypes.count > 1 ? dtype : "");
    return stack_dtype_parse(dtype, &s->shape, err) && stack_check(&s->stack, &s->shape, err) &&
           (text_ok(&s->name) || error_set(err, ERR_NOMEM, "not enough memory for a stack"));
}

/* Of each type; name NULL: as the layers are written. */
static bool add_stack(CacheRun *r, const char *name, const Stack *layers, StackShape shape,
                      int64_t context, Error *err)
{
    Text own = { 0 };
    int  first = r->count;
    bool ok = take_sizes(r->call, &shape, err);

    if (!name)
        stack_text(layers, &own);
    for (int i = 0; ok && i < r->dtypes.count; i++)
        ok = add_typed(r, name ? name : text_str(&own), r->dtypes.items[i], layers, &shape, err);
    for (int i = first; i < r->count; i++)
        r->stacks[i]->context = context;
    text_free(&own);
    return ok;
}

bool cache_of_model(Session *s, const char *word, ModelCache *out, Error *err)
{
    ModelSpec parts = { 0 };
    Text      path = { 0 };
    bool      ok;

    *out = (ModelCache){ 0 };
    ok = model_spec_parse(word, &parts, err) &&
         session_input_path(s, parts.path, &path, err) &&
         model_cache_read(text_str(&path), out, err);
    text_free(&path);
    model_spec_free(&parts);
    return ok;
}

static bool add_given(CacheRun *r, const ModelCache *model, StackShape shape, Stack *layers,
                      Error *err)
{
    bool ok = true;

    for (int i = 0; ok && i < r->call->stack_count; i++) {
        int64_t depth = model ? model->depth : 0;

        ok = stack_parse(r->call->stacks[i], layers, err) &&
             call_int(r->call, OPT_DEPTH, 1, STACK_LAYERS, &depth, err) &&
             stack_repeat(layers, depth ? depth : layers->count, err) &&
             add_stack(r, NULL, layers, shape, model ? model->context : 0, err);
    }
    return ok;
}

/* Some of the given lengths are more than the model was made for. */
static void note_context(CacheRun *r, const char *word, int64_t context)
{
    int64_t longest = length_at(r, r->lengths.count - 1);

    if (context && longest > context && r->call->values[OPT_CACHEN])
        text_addf(&r->notes, "%s: its context is %lld tokens; n = %lld is beyond it\n", word,
                  (long long)context, (long long)longest);
}

static bool add_model(CacheRun *r, const char *word, Stack *layers, Error *err)
{
    ModelCache model;
    StackShape shape;
    bool       ok = cache_of_model(r->session, word, &model, err);

    if (ok && model.notes.length)
        text_addf(&r->notes, "%s: %s", word, text_str(&model.notes));
    if (ok)
        note_context(r, word, model.context);
    shape = (StackShape){ .heads = model.heads, .kv_heads = model.kv_heads, .dim = model.dim,
                          .rank = model.rank, .rope = model.rope };
    ok = ok && stack_parse(text_str(&model.layers), layers, err) &&
         add_stack(r, word, layers, shape, model.context, err) &&
         add_given(r, &model, shape, layers, err);
    model_cache_free(&model);
    return ok;
}

static bool add_stacks(CacheRun *r, Error *err)
{
    Stack *layers = calloc(1, sizeof(*layers));
    bool   ok = layers || error_set(err, ERR_NOMEM, "not enough memory for a stack");

    for (int i = 0; ok && i < r->call->word_count; i++)
        ok = add_model(r, r->call->words[i], layers, err);
    if (ok && !r->call->word_count)
        ok = add_given(r, NULL, (StackShape){ .heads = 1, .dim = USUAL_DIM }, layers, err);
    free(layers);
    return ok;
}

/* ---- as a table ------------------------------------------------------------------- */

static void heads_text(const CacheStack *s, Text *out)
{
    const StackShape *shape = &s->shape;

    text_add_count(out, shape->heads, "head");
    if (shape->rank)
        text_addf(out, ", one latent of %lld + %lld numbers", (long long)shape->rank,
                  (long long)shape->rope);
    else
        text_addf(out, ", %lld of keys and values, %lld numbers each", (long long)shape->kv_heads,
                  (long long)shape->dim);
}

static void shape_text(const CacheStack *s, Text *out)
{
    heads_text(s, out);
    text_addf(out, ", %s", s->dtype);
}

static void stack_line(const CacheStack *s, Text *out)
{
    Text layers = { 0 };

    stack_text(&s->stack, &layers);
    text_addf(out, "%s\n", text_str(&s->name));
    if (strncmp(text_str(&s->name), text_str(&layers), layers.length) != 0)
        text_addf(out, "  %s\n", text_str(&layers));
    text_add(out, "  ");
    text_add_count(out, s->stack.count, "layer");
    text_add(out, ", ");
    shape_text(s, out);
    text_add(out, "\n");
    text_free(&layers);
}

static void bytes_cell(Table *t, double bytes, bool exact)
{
    char text[32];

    if (isnan(bytes))
        table_cell(t, "n/a");
    else if (exact)
        table_cell(t, "%.15g", bytes);
    else
        table_cell(t, "%s", format_exact_bytes(round(bytes), text, sizeof(text)));
}

static void cost_cells(Table *t, const StackCost *cost, bool exact)
{
    char text[32];

    bytes_cell(t, cost->token_bytes, exact);
    bytes_cell(t, cost->cache_bytes, exact);
    bytes_cell(t, cost->state_bytes, exact);
    bytes_cell(t, cost->read_bytes, exact);
    if (isnan(cost->step_flops))
        table_cell(t, "n/a");
    else if (exact)
        table_cell(t, "%.15g", cost->step_flops);
    else
        table_cell(t, "%s", format_exact_count(cost->step_flops, text, sizeof(text)));
}

/* A row of each kind of layer, and of all where there are several. */
static void stack_rows(const CacheRun *r, const CacheStack *s, int at, bool kinds, bool exact,
                       Table *t)
{
    int64_t n = length_at(r, at);

    for (int k = 0; k <= s->kind_count; k++) {
        bool      all = k == s->kind_count;
        StackCost cost = all ? stack_cost(&s->stack, &s->shape, n)
                             : stack_kind_cost(&s->kinds[k], &s->shape, n);
        Text      layer = { 0 };

        if (all ? kinds && s->kind_count == 1 : !kinds)
            continue;
        table_cell(t, "%lld", (long long)n);
        if (r->count > 1 || exact)
            table_cell(t, "%s", text_str(&s->name));
        if (!all)
            stack_layer_text(&s->kinds[k].layer, &layer);
        if (kinds && all)
            table_cell(t, "all x%d", s->stack.count);
        else if (kinds)
            table_cell(t, "%s x%d", text_str(&layer), s->kinds[k].count);
        text_free(&layer);
        cost_cells(t, &cost, exact);
    }
}

static void cache_table(const CacheRun *r, TableStyle style, Text *out)
{
    static const char *const costs[][2] = { { "adds", "token_bytes" }, { "held", "cache_bytes" },
                                            { "states", "state_bytes" }, { "reads", "read_bytes" },
                                            { "FLOP", "step_flops" } };
    bool  exact = style == TABLE_CSV, kinds = r->count == 1 || style != TABLE_TEXT;
    bool  named = r->count > 1 || exact;
    Table t = { .cols = 6 + named + kinds, .keys = 1 + named + kinds, .room = call_room(r->call) };

    table_cell(&t, "n");
    if (named)
        table_cell(&t, "stack");
    if (kinds)
        table_cell(&t, "layers");
    for (int c = 0; c < 5; c++)
        table_cell(&t, "%s", costs[c][exact]);
    for (int at = 0; at < r->lengths.count; at++)
        for (int i = 0; i < r->count; i++)
            stack_rows(r, r->stacks[i], at, kinds, exact, &t);
    table_write(&t, style, out);
    table_free(&t);
}

static bool has_layer(const CacheRun *r, bool (*is)(const StackLayer *layer))
{
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < r->stacks[i]->kind_count; k++)
            if (is(&r->stacks[i]->kinds[k].layer))
                return true;
    return false;
}

static bool is_unknown_state(const StackLayer *layer)
{
    return isnan(layer->step_flops);
}

static bool is_kept(const StackLayer *layer)
{
    return layer->kind == LAYER_KEPT;
}

/* "q4 has groups of 32, which 48 numbers of a head are no multiple of"; nothing where they are. */
static void note_groups(const CacheStack *s, Text *out)
{
    const StackShape *shape = &s->shape;
    int64_t           rest = stack_group_rest(shape);

    if (!stack_group_cuts_heads(shape) && !rest)
        return;
    text_addf(out, "%s has groups of %lld, which %lld numbers of a %s are no multiple of", s->dtype,
              (long long)shape->group,
              (long long)(shape->rank ? shape->rank + shape->rope : shape->dim),
              shape->rank ? "token" : "head");
    if (rest)
        text_addf(out, ": %lld more fill the last group of a token's row", (long long)rest);
    else
        text_add(out, ": they run over the heads of a token's row");
    text_add(out, "; llama.cpp refuses that");
}

static void text_groups(const CacheRun *r, Text *out)
{
    for (int i = 0; i < r->count; i++) {
        Text note = { 0 };

        note_groups(r->stacks[i], &note);
        if (note.length)
            text_addf(out, "%s.\n", text_str(&note));
        text_free(&note);
    }
}

static void table_notes(const CacheRun *r, Text *out)
{
    text_add(out, "\nadds: bytes that one token more adds to a sequence of n.\n"
                  "held: bytes after n tokens; states do not grow with n.\n"
                  "reads: bytes that a step reads.\n"
                  "FLOP: of its scores, softmax and sums of values, or of its state.\n");
    if (has_layer(r, is_kept))
        text_add(out, "n/a: which keys a step of such a layer reads, its tokens decide;\n"
                      "run --decode says it for a run.\n");
    if (has_layer(r, is_unknown_state))
        text_add(out, "n/a: what a step of a state computes depends on its mechanism; name it,\n"
                      "as in retnet(HEADS,KEYS,VALUES).\n");
    if (r->count > 1)
        text_add(out, "--csv and --json have each kind of layer, too.\n");
    text_groups(r, out);
    text_add(out, text_str(&r->notes));
}

static void cache_text(const CacheRun *r, Text *out)
{
    for (int i = 0; i < r->count; i++)
        stack_line(r->stacks[i], out);
    text_add(out, "\n");
    cache_table(r, TABLE_TEXT, out);
    table_notes(r, out);
}

/* ---- JSON --------------------------------------------------------------------------- */

static void json_cost(Json *j, const StackCost *cost)
{
    jsonw_key_number(j, "token_bytes", cost->token_bytes);
    jsonw_key_number(j, "cache_bytes", cost->cache_bytes);
    jsonw_key_number(j, "state_bytes", cost->state_bytes);
    jsonw_key_number(j, "read_bytes", cost->read_bytes);
    jsonw_key_number(j, "step_flops", cost->step_flops);
}

static void json_kinds(Json *j, const CacheStack *s, int64_t n)
{
    jsonw_key_open(j, "kinds", '[');
    for (int k = 0; k < s->kind_count; k++) {
        StackCost cost = stack_kind_cost(&s->kinds[k], &s->shape, n);
        Text      layer = { 0 };

        stack_layer_text(&s->kinds[k].layer, &layer);
        jsonw_open(j, '{');
        jsonw_key_string(j, "layer", text_str(&layer));
        jsonw_key_int(j, "count", s->kinds[k].count);
        json_cost(j, &cost);
        jsonw_close(j, '}');
        text_free(&layer);
    }
    jsonw_close(j, ']');
}

static void json_shape(Json *j, const CacheStack *s)
{
    Text layers = { 0 };

    stack_text(&s->stack, &layers);
    jsonw_key_string(j, "stack", text_str(&s->name));
    jsonw_key_string(j, "layers", text_str(&layers));
    jsonw_key_int(j, "depth", s->stack.count);
    jsonw_key_int(j, "heads", s->shape.heads);
    jsonw_key_int(j, "kv_heads", s->shape.kv_heads);
    jsonw_key_int(j, "dim", s->shape.dim);
    jsonw_key_int(j, "rank", s->shape.rank);
    jsonw_key_int(j, "rope", s->shape.rope);
    jsonw_key_string(j, "dtype", s->dtype);
    jsonw_key_number(j, "context", s->context ? (double)s->context : (double)NAN);
    text_free(&layers);
}

static void json_note(Json *j, const CacheStack *s)
{
    Text note = { 0 };

    note_groups(s, &note);
    jsonw_key_string(j, "note", note.length ? text_str(&note) : NULL);
    text_free(&note);
}

static void cache_json(const CacheRun *r, Text *out)
{
    Json j = jsonw_to(out);

    jsonw_open(&j, '[');
    for (int i = 0; i < r->count; i++) {
        const CacheStack *s = r->stacks[i];

        jsonw_open(&j, '{');
        json_shape(&j, s);
        jsonw_key_open(&j, "points", '[');
        for (int at = 0; at < r->lengths.count; at++) {
            StackCost cost = stack_cost(&s->stack, &s->shape, length_at(r, at));

            jsonw_open(&j, '{');
            jsonw_key_int(&j, "n", length_at(r, at));
            json_cost(&j, &cost);
            json_kinds(&j, s, length_at(r, at));
            jsonw_close(&j, '}');
        }
        jsonw_close(&j, ']');
        json_note(&j, s);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    text_add(out, "\n");
}

/* ---- the figure ---------------------------------------------------------------------- */

/* The given lengths and some between them, so that the bend at a full window is seen. */
static int curve_lengths(const CacheRun *r, double *out)
{
    int count = 0;

    for (int at = 0; at < r->lengths.count && count < POINTS_MOST; at++) {
        double n = (double)length_at(r, at);
        double next = at + 1 < r->lengths.count ? (double)length_at(r, at + 1) : n;
        int    steps = (int)ceil(SMOOTH * log2(next / n));

        out[count++] = n;
        for (int i = 1; i < steps && count < POINTS_MOST; i++)
            out[count++] = round(n * pow(next / n, (double)i / steps));
    }
    return count;
}

/* "(window 4096 × 3, full) × 8" of "(window(4096)x3,full)x8". */
static void layers_words(const char *layers, Text *out)
{
    bool inside = false; /* the brackets of a size */

    for (const char *at = layers; *at; at++) {
        bool after = at > layers && (isalnum((unsigned char)at[-1]) || at[-1] == ')');

        if (*at == '(' && after)
            inside = true;
        if (*at == 'x' && after && isdigit((unsigned char)at[1]))
            text_add(out, " \xc3\x97 ");
        else if (*at == ',')
            text_add(out, ", ");
        else if (*at == '(' && after)
            text_add(out, " ");
        else if (!(*at == ')' && inside))
            text_add_bytes(out, at, 1);
        inside = inside && *at != ')';
    }
}

/* The name of a curve: the layers in words, or the file of the model. */
static void curve_name(const CacheStack *s, Text *out)
{
    const char *name = text_str(&s->name);
    Text        layers = { 0 };

    stack_text(&s->stack, &layers);
    if (!strncmp(name, text_str(&layers), layers.length)) {
        layers_words(text_str(&layers), out);
        text_add(out, name + layers.length);
    } else {
        text_add(out, path_name(name));
    }
    text_free(&layers);
}

/* kind -1: all layers. */
static bool add_curve(const CacheRun *r, const CacheStack *s, int kind, Plot *plot)
{
    double      lengths[POINTS_MOST];
    int         count = curve_lengths(r, lengths);
    Text        name = { 0 };
    PlotSeries *series;

    if (kind >= 0) {
        Text layer = { 0 };

        stack_layer_text(&s->kinds[kind].layer, &layer);
        layers_words(text_str(&layer), &name);
        text_addf(&name, " \xc3\x97 %d", s->kinds[kind].count);
        text_free(&layer);
    } else {
        curve_name(s, &name);
    }
    series = plot_add(plot, text_str(&name), count > 1 ? CURVE_LINE : CURVE_POINTS, count, false);
    for (int i = 0; series && i < count; i++) {
        int64_t   n = (int64_t)lengths[i];
        StackCost cost = kind < 0 ? stack_cost(&s->stack, &s->shape, n)
                                  : stack_kind_cost(&s->kinds[kind], &s->shape, n);

        series->x[i] = lengths[i];
        series->y[i] = cost.cache_bytes;
    }
    text_free(&name);
    return series != NULL;
}

/* The curves of all stacks; of one alone, those of its kinds of layers, too. */
static Plot *make_plot(const CacheRun *r, Error *err)
{
    Plot *plot = plot_new(err);
    int   kinds = r->count == 1 ? r->stacks[0]->kind_count : 1;
    bool  ok = plot != NULL;

    for (int i = 0; ok && i < r->count; i++)
        ok = add_curve(r, r->stacks[i], -1, plot);
    for (int k = 0; ok && kinds > 1 && kinds < PLOT_SERIES_MOST && k < kinds; k++)
        ok = add_curve(r, r->stacks[0], k, plot);
    if (plot && !ok) {
        error_set(err, ERR_NOMEM, "not enough memory for a plot");
        plot_free(plot);
        return NULL;
    }
    if (!plot)
        return NULL;
    plot->x.log = plot->y.log = true;
    snprintf(plot->x.name, sizeof(plot->x.name), "tokens");
    snprintf(plot->y.name, sizeof(plot->y.name), "cache (bytes)");
    snprintf(plot->note, sizeof(plot->note), " ");
    plot_settle(plot);
    return plot;
}

/* The heads where all stacks have the same, and the types of numbers. */
static void shapes_text(const CacheRun *r, Text *out)
{
    Text other = { 0 };
    bool same = true;

    heads_text(r->stacks[0], out);
    for (int i = 1; i < r->count; i++) {
        text_clear(&other);
        heads_text(r->stacks[i], &other);
        same = same && !strcmp(text_str(&other), text_str(out));
    }
    if (!same)
        text_clear(out);
    text_free(&other);
    for (int i = 0; i < r->dtypes.count; i++)
        text_addf(out, "%s%s", !i && out->length ? ", " : i ? " and " : "", r->dtypes.items[i]);
}

static void caption_figure(const CacheRun *r, Figure *figure)
{
    const char *given = r->call->values[OPT_CAPTION], *title = r->call->values[OPT_TITLE];
    Text        caption = { 0 };

    shapes_text(r, &caption);
    text_add(&caption, "; one sequence, by the closed form");
    snprintf(figure->caption, sizeof(figure->caption), "%s", given ? given : text_str(&caption));
    snprintf(figure->title, sizeof(figure->title), "%s", title ? title : "");
    text_free(&caption);
}

static bool cache_figure(const CacheRun *r, Text *out, Error *err)
{
    Plot   *plot = make_plot(r, err);
    Figure *figure = plot ? figure_new(1, err) : NULL;
    bool    ok = figure != NULL;

    if (!figure)
        plot_free(plot);
    if (ok) {
        panel_init_plot(&figure->panels[0], plot, plot_title(PLOT_CACHE));
        title_capital(figure->panels[0].title);
        snprintf(figure->panels[0].caption, sizeof(figure->panels[0].caption), " ");
        caption_figure(r, figure);
        ok = call_write_figure(r->call, figure, NULL, 0, out, err);
    }
    figure_free(figure);
    return ok;
}

/* ---- the command ---------------------------------------------------------------------- */

static bool report(const CacheRun *r, Text *out, Error *err)
{
    TableStyle style = call_style(r->call);

    if (r->call->file_count)
        return cache_figure(r, out, err);
    if (r->call->values[OPT_JSON])
        cache_json(r, out);
    else if (style != TABLE_TEXT)
        cache_table(r, style, out);
    else
        cache_text(r, out);
    return true;
}

bool command_cache(Session *s, const Call *call, Text *out, Error *err)
{
    CacheRun r = { .session = s, .call = call };
    bool     ok = check_options(call, err) && take_lengths(&r, err) && take_dtypes(&r, err) &&
              add_stacks(&r, err) && report(&r, out, err);

    for (int i = 0; i < r.count; i++) {
        text_free(&r.stacks[i]->name);
        free(r.stacks[i]);
    }
    words_free(&r.lengths);
    words_free(&r.dtypes);
    text_free(&r.notes);
    return ok;
}
