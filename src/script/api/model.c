/* model.c -- transformers in Lua: a model, its tokens, its pass with and without a swap, its heads,
 * a layer as an input. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/model_input.h"
#include "app/study/study.h"
#include "model/forward.h"
#include "model/generate.h"
#include "model/heads.h"
#include "script/api/model_swaps.h"
#include "script/host/work.h"

typedef struct LuaModel {
    Keep        *keep; /* NULL: closed */
    const Model *model;
} LuaModel;

static LuaModel *check_model(lua_State *L)
{
    LuaModel *m = class_check(L, 1, &class_model);

    if (!m->keep)
        luaL_argerror(L, 1, "the model is closed");
    return m;
}

CLOSE_OBJECT(close_model, LuaModel, class_model)
KEEP_OBJECT(keep_model, LuaModel)

static int describe(lua_State *L)
{
    const LuaModel *m = class_check(L, 1, &class_model);

    if (!m->keep)
        lua_pushliteral(L, "Model (closed)");
    else
        lua_pushfstring(L, "Model %s, %I layers of %I heads", m->model->config.arch,
                        (lua_Integer)m->model->config.layers, (lua_Integer)m->model->config.heads);
    return 1;
}

/* ---- opening ---------------------------------------------------------------------- */

typedef struct Opening {
    LuaModel   *out;  /* on the stack */
    const char *path; /* likewise */
    Session    *session;
} Opening;

static void drop_model(void *model)
{
    model_close(model);
}

static bool open_model(void *context, const atomic_bool *cancel, Error *err)
{
    Opening *o = context;
    Model   *m = model_path_open(o->session, o->path, err);

    (void)cancel; /* no matrix is read */
    if (!m)
        return false;
    o->out->model = m;
    o->out->keep = keep_new(m, drop_model, NULL);
    return o->out->keep || error_set(err, ERR_NOMEM, "not enough memory for a model");
}

static int push_opened(lua_State *L, int status, lua_KContext at)
{
    (void)status;
    lua_pushvalue(L, (int)at - 2);
    return 1;
}

/* [-0, +1 or 3, v] */
int attn_model(lua_State *L)
{
    Opening     *o;
    const char  *path = check_text(L, 1);
    LuaModel    *m;

    lua_settop(L, 1);
    m = class_push(L, &class_model, sizeof(*m), 0);
    o = lua_newuserdatauv(L, sizeof(*o), 0);
    *o = (Opening){ .out = m, .path = path, .session = script_of(L)->session->thing };
    return work_await(L, o->session, "a model", open_model, push_opened);
}

/* ---- tokens ------------------------------------------------------------------------ */

static int tokens_gc(lua_State *L)
{
    token_list_free(lua_touserdata(L, 1));
    return 0;
}

/* [-0, +1, v] */
static void push_id_list(lua_State *L, const TokenList *list)
{
    lua_createtable(L, (int)list->count, 0);
    for (int64_t i = 0; i < list->count; i++) {
        lua_pushinteger(L, list->ids[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* [-0, +1 or 3, v] */
static int encode(lua_State *L)
{
    const Model *m = check_model(L)->model;
    size_t       length;
    const char  *text = luaL_checklstring(L, 2, &length);
    bool         special = lua_isnoneornil(L, 3) || lua_toboolean(L, 3);
    TokenList    list = { 0 };
    Error        err = ERROR_INIT;
    TokenList   *box = box_push(L, sizeof(*box), 0, "attnscope.tokens", tokens_gc, NULL);

    if (!m->tokenizer) {
        error_set(&err, ERR_MODEL, "%.200s: its tokenizer cannot be read: %.200s", m->name,
                  m->tokenizer_why);
        return failure(L, &err);
    }
    if (!tokenizer_encode(m->tokenizer, text, (int64_t)length, special, &list, &err))
        return failure(L, &err);
    *box = list;
    push_id_list(L, box);
    return 1;
}

static int reading_gc(lua_State *L)
{
    model_reading_free(lua_touserdata(L, 1));
    return 0;
}

/* [-0, +1 or 3, v] */
static int read_ids(lua_State *L)
{
    const Model  *m = check_model(L)->model;
    ModelText     text = { .text = check_text(L, 2), .most = luaL_optinteger(L, 3, 0) };
    ModelReading *box = box_push(L, sizeof(*box), 0, "attnscope.reading", reading_gc, NULL);
    Error         err = ERROR_INIT;

    luaL_argcheck(L, text.most >= 0, 3, "expected a number of tokens from 1");
    *box = (ModelReading){ 0 };
    if (!model_read_text(script_of(L)->session->thing, m, &text, box, &err))
        return failure(L, &err);
    push_id_list(L, &box->tokens);
    return 1;
}

/* [-0, +1, v] */
static int token(lua_State *L)
{
    const Model *m = check_model(L)->model;
    int32_t      id = (int32_t)check_index(L, 2, m->config.vocab, "token");
    Text        *bytes = text_box(L);

    if (m->tokenizer)
        tokenizer_add_bytes(m->tokenizer, id, bytes);
    lua_pushlstring(L, text_str(bytes), bytes->length);
    return 1;
}

/* The list at `arg`; *count of them, on the stack.  [-0, +1, v] */
static int32_t *push_ids(lua_State *L, int arg, const Model *m, int64_t *count)
{
    int32_t *ids;

    luaL_checktype(L, arg, LUA_TTABLE);
    *count = (int64_t)lua_rawlen(L, arg);
    luaL_argcheck(L, *count > 0, arg, "expected a list with at least one token id");
    ids = lua_newuserdatauv(L, (size_t)*count * sizeof(*ids), 0);
    for (int64_t i = 0; i < *count; i++) {
        lua_Integer id;
        int         whole;

        lua_rawgeti(L, arg, i + 1);
        id = lua_tointegerx(L, -1, &whole);
        if (!whole || id < 0 || id >= m->config.vocab)
            luaL_error(L, "ids: item %I is no token: expected a whole number from 0 to %I",
                       (lua_Integer)i + 1, (lua_Integer)m->config.vocab - 1);
        ids[i] = (int32_t)id;
        lua_pop(L, 1);
    }
    return ids;
}

/* ---- the pass ------------------------------------------------------------------------ */

typedef struct Passing {
    const Model  *m;
    int32_t      *ids; /* on the stack, as is what `given` points to */
    int64_t       n, layer, near;
    GivenSwaps    given;
    ForwardResult result;
    HeadsResult   heads;
    GenerateOptions writing;
    GenerateResult  written;
    LuaInput     *input;
    Input        *made;
} Passing;

static int passing_gc(lua_State *L)
{
    Passing *p = lua_touserdata(L, 1);

    forward_result_free(&p->result);
    heads_result_free(&p->heads);
    generate_result_free(&p->written);
    input_free(p->made);
    *p = (Passing){ 0 };
    return 0;
}

static Passing *push_passing(lua_State *L, Passing all)
{
    Passing *p = box_push(L, sizeof(*p), 0, "attnscope.passing", passing_gc, NULL);

    *p = all;
    return p;
}

static bool work_pass(void *context, const atomic_bool *cancel, Error *err)
{
    Passing       *p = context;
    ForwardOptions options = { .last_layer = -1, .cancel = cancel, .swaps = p->given.swaps,
                               .swap_count = p->given.count };

    return forward_run(p->m, p->ids, p->n, &options, &p->result, err);
}

/* NaN is absent. */
static void field_measure(lua_State *L, const char *key, double value)
{
    if (!isnan(value))
        field_number(L, key, value);
}

static void field_list(lua_State *L, const char *key, const double *values, int64_t count)
{
    if (!values)
        return;
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
        lua_pushnumber(L, values[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, key);
}

/* After the last token. */
static void field_next(lua_State *L, const ForwardMeasure *f, int64_t n)
{
    if (!f->next)
        return;
    lua_createtable(L, FORWARD_NEXT, 0);
    for (int i = 0; i < FORWARD_NEXT; i++) {
        const NextToken *next = &f->next[(n - 1) * FORWARD_NEXT + i];

        lua_createtable(L, 0, 2);
        field_integer(L, "id", next->id);
        field_number(L, "p", next->p);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "next");
}

static void push_measure(lua_State *L, const Passing *p, const ForwardMeasure *f)
{
    int64_t layers = p->m->config.layers;

    lua_createtable(L, 0, 16);
    field_measure(L, "loss", f->loss);
    field_measure(L, "perplexity", f->perplexity);
    field_measure(L, "delta", f->delta);
    field_measure(L, "kl", f->kl);
    field_measure(L, "kl_max", f->kl_max);
    field_measure(L, "agreement", f->agreement);
    field_measure(L, "cosine", f->cosine);
    field_list(L, "nll", f->nll, p->n - 1);
    field_list(L, "residual", f->residual, layers + 1);
    field_list(L, "residual_norm", f->residual_norm, layers + 1);
    field_next(L, f, p->n);
}

/* Which swap it is, and its value as a number where it is one. */
static void field_value(lua_State *L, const SwapValue *value)
{
    field_integer(L, "given", value->given + 1);
    if (!value->text)
        return;
    if (!lua_stringtonumber(L, value->text))
        lua_pushstring(L, value->text);
    lua_setfield(L, -2, "value");
}

static const char *swap_name(const Swap *swap)
{
    return swap->name ? swap->name : swap->mechanism;
}

static void push_swapped(lua_State *L, const Passing *p, int64_t variant)
{
    const ForwardMeasure *f = &p->result.measure[variant];

    push_measure(L, p, f);
    if (!variant)
        return;
    field_string(L, "swap", swap_name(&p->given.swaps[variant - 1]));
    if (p->given.values)
        field_value(L, &p->given.values[variant - 1]);
    field_bool(L, "untrained", f->untrained);
    if (*f->note)
        field_string(L, "note", f->note);
    field_measure(L, "flops", f->flops);
    field_measure(L, "flops_exact", f->flops_exact);
}

/* The measures of the swap, with those of the model itself in `plain`; else the latter alone; of a
 * list of swaps a list. */
static int push_pass(lua_State *L, int status, lua_KContext at)
{
    const Passing *p = work_context(L, at);

    (void)status;
    if (p->given.listed) {
        lua_createtable(L, (int)p->given.count, 2);
        for (int64_t v = 1; v <= p->given.count; v++) {
            push_swapped(L, p, v);
            lua_rawseti(L, -2, v);
        }
    } else {
        push_swapped(L, p, p->given.count);
    }
    field_number(L, "seconds", p->result.seconds);
    if (p->given.listed || p->given.count) {
        push_measure(L, p, &p->result.measure[0]);
        lua_setfield(L, -2, "plain");
    }
    return 1;
}

/* [-0, +1 or 3, v] */
static int run_model(lua_State *L)
{
    Passing p = { .m = check_model(L)->model };

    lua_settop(L, 3);
    options_check(L, 3, &class_model_options);
    p.ids = push_ids(L, 2, p.m, &p.n);
    p.given = swaps_push(L, 3, p.m);
    push_passing(L, p);
    return work_await(L, script_of(L)->session->thing, "a forward pass", work_pass, push_pass);
}

/* ---- writing on ------------------------------------------------------------------------ */

static bool work_write(void *context, const atomic_bool *cancel, Error *err)
{
    Passing *p = context;

    p->writing.cancel = cancel;
    p->writing.swap = p->given.count ? p->given.swaps : NULL;
    return generate_run(p->m, p->ids, p->n, &p->writing, &p->written, err);
}

/* [-0, +0, v] */
static void field_text(lua_State *L, const Tokenizer *tokenizer, const GenerateResult *g)
{
    Text *text = text_box(L);

    for (int64_t i = 0; tokenizer && i < g->count; i++)
        tokenizer_add_bytes(tokenizer, g->ids[i], text);
    lua_pushlstring(L, text_str(text), text->length);
    lua_setfield(L, -3, "text");
    lua_pop(L, 1);
}

static int push_written(lua_State *L, int status, lua_KContext at)
{
    const Passing        *p = work_context(L, at);
    const GenerateResult *g = &p->written;

    (void)status;
    lua_createtable(L, 0, 8);
    push_id_list(L, &(TokenList){ .ids = g->ids, .count = g->count });
    lua_setfield(L, -2, "ids");
    field_text(L, p->m->tokenizer, g);
    field_list(L, "p", g->p, g->count);
    field_integer(L, "cache_bytes", g->cache_bytes);
    field_integer(L, "read_keys", g->read_keys);
    field_bool(L, "ended", g->ended);
    field_number(L, "seconds", g->seconds);
    if (p->given.count)
        field_string(L, "swap", swap_name(p->given.swaps));
    return 1;
}

/* [-0, +1 or 3, v] */
static int write_on(lua_State *L)
{
    Passing p = { .m = check_model(L)->model };

    lua_settop(L, 4);
    options_check(L, 4, &class_generate_options);
    p.ids = push_ids(L, 2, p.m, &p.n);
    p.writing.count = luaL_checkinteger(L, 3);
    luaL_argcheck(L, p.writing.count > 0 && p.writing.count <= 1 << 20, 3,
                  "expected a number of tokens from 1");
    p.writing.temperature = option_number(L, 4, "temperature", 0);
    luaL_argcheck(L, p.writing.temperature >= 0 && p.writing.temperature < 1e6, 4,
                  "temperature: expected a number from 0");
    p.writing.top_k = option_integer(L, 4, "top_k", 0, 0, INT32_MAX);
    p.writing.seed = (uint64_t)option_integer(L, 4, "seed", 0, 0, INT64_MAX);
    p.given = swap_push(L, 4, p.m);
    push_passing(L, p);
    return work_await(L, script_of(L)->session->thing, "writing on", work_write, push_written);
}

/* ---- heads ---------------------------------------------------------------------------- */

static bool work_heads(void *context, const atomic_bool *cancel, Error *err)
{
    Passing     *p = context;
    HeadsOptions options = { .layer = -1, .near = p->near, .cancel = cancel };

    return heads_run(p->m, p->ids, p->n, &options, &p->heads, err);
}

static void push_scores(lua_State *L, int64_t layer, int64_t head, const HeadScores *s)
{
    char words[HEAD_WORDS];

    lua_createtable(L, 0, 15);
    field_integer(L, "layer", layer);
    field_integer(L, "head", head);
    field_string(L, "label", s->label);
    field_string(L, "words", head_label_words(s, words, sizeof(words)));
    field_measure(L, "previous", s->previous);
    field_measure(L, "self", s->self);
    field_measure(L, "first", s->first);
    field_measure(L, "next", s->next);
    field_measure(L, "entropy", s->entropy);
    field_measure(L, "distance", s->distance);
    field_measure(L, "near", s->near);
    field_measure(L, "induction", s->induction);
    field_integer(L, "induction_rows", s->induction_rows);
    field_measure(L, "offset", s->offset);
    if (s->offset_tokens)
        field_integer(L, "offset_tokens", s->offset_tokens);
}

static int push_heads(lua_State *L, int status, lua_KContext at)
{
    const Passing *p = work_context(L, at);
    int64_t        heads = p->heads.heads, count = p->heads.layers * heads;

    (void)status;
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
        push_scores(L, i / heads, i % heads, &p->heads.score[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* [-0, +1 or 3, v] */
static int find_heads(lua_State *L)
{
    Passing p = { .m = check_model(L)->model };

    lua_settop(L, 3);
    p.near = luaL_optinteger(L, 3, HEAD_NEAR_KEYS);
    luaL_argcheck(L, p.near > 0 && p.near <= INT32_MAX, 3, "expected a number of keys from 1");
    p.ids = push_ids(L, 2, p.m, &p.n);
    push_passing(L, p);
    return work_await(L, script_of(L)->session->thing, "what heads do", work_heads, push_heads);
}

/* ---- a layer --------------------------------------------------------------------------- */

static bool take_layer(void *context, const LayerView *view)
{
    Passing     *p = context;
    const Model *m = p->m;
    const char **tokens = NULL;
    Error        err = ERROR_INIT;

    if (view->layer != p->layer || view->variant != 0)
        return true;
    if (m->tokenizer)
        tokens = malloc((size_t)p->n * sizeof(*tokens));
    for (int64_t i = 0; tokens && i < p->n; i++)
        tokens[i] = tokenizer_piece(m->tokenizer, p->ids[i]);
    p->made = input_from_tensors(&view->q, &view->k, &view->v, &view->x, tokens, &err);
    free(tokens);
    return p->made != NULL;
}

static bool work_layer(void *context, const atomic_bool *cancel, Error *err)
{
    Passing       *p = context;
    ForwardOptions options = { .last_layer = p->layer, .cancel = cancel, .on_layer = take_layer,
                               .context = p };
    Input         *made;
    char           name[320];

    if (!forward_run(p->m, p->ids, p->n, &options, &p->result, err))
        return false;
    made = p->made;
    p->made = NULL;
    if (!made)
        return error_set(err, ERR_NOMEM, "not enough memory for a layer");
    made->causal = p->m->config.causal;
    made->scale = p->m->config.scale;
    made->window = p->m->config.window;
    snprintf(name, sizeof(name), "layer %lld of %.260s", (long long)p->layer, p->m->name);
    made->name = arena_strdup(made->arena, name);
    if (!made->name) {
        input_free(made);
        return error_set(err, ERR_NOMEM, "not enough memory for a layer");
    }
    return session_set_input(p->input->session, made, name, err);
}

/* [-0, +1 or 3, v] */
static int layer_input(lua_State *L)
{
    Passing p = { .m = check_model(L)->model };

    lua_settop(L, 3);
    p.layer = check_index(L, 2, p.m->config.layers, "layer");
    p.ids = push_ids(L, 3, p.m, &p.n);
    p.input = input_push_empty(L);
    push_passing(L, p);
    return work_await_end(L, script_of(L)->session->thing, "a layer", work_layer,
                          input_push_worked);
}

/* ---- tables ------------------------------------------------------------------------------ */

#define CONFIG_INTEGER(field)                                                                     \
    FIELD_GETTER(model_##field, lua_pushinteger, check_model(L)->model->config.field)

CONFIG_INTEGER(layers)
CONFIG_INTEGER(heads)
CONFIG_INTEGER(kv_heads)
CONFIG_INTEGER(head_dim)
CONFIG_INTEGER(width)
CONFIG_INTEGER(vocab)
CONFIG_INTEGER(context)
FIELD_GETTER(model_arch, lua_pushstring, check_model(L)->model->config.arch)
FIELD_GETTER(model_causal, lua_pushboolean, check_model(L)->model->config.causal)

static const luaL_Reg model_meta[] = {
    { "__gc", close_model }, { "__close", close_model }, { "__tostring", describe },
    { NULL, NULL },
};

static const Member model_members[] = {
    { "arch", model_arch, NULL, "string", "family: llama, gpt2, bert, ..." },
    { "causal", model_causal, NULL, "boolean", "tokens see no later ones" },
    { "layers", model_layers, NULL, "integer", "layers" },
    { "head_count", model_heads, NULL, "integer", "heads of a layer" },
    { "kv_heads", model_kv_heads, NULL, "integer", "heads of k and v" },
    { "head_dim", model_head_dim, NULL, "integer", "width of a head" },
    { "width", model_width, NULL, "integer", "width of the residual stream" },
    { "vocab", model_vocab, NULL, "integer", "tokens there are" },
    { "context", model_context, NULL, "integer", "tokens of a text, at most, in training" },
    { "encode", encode, "text: string, special?: boolean", "integer[]?, string?, string?",
      "Ids of a text, with the tokens that the tokenizer puts around one unless special is "
      "false." },
    { "read", read_ids, "text: string, most?: integer", "integer[]?, string?, string?",
      "Ids of a text's file, or of sample:english.txt; of its first `most`." },
    { "token", token, "id: integer", "string", "The bytes a token stands for; \"\": none." },
    { "run", run_model, "ids: integer[], options?: attnscope.ModelOptions",
      "table?, string?, string?",
      "The forward pass: loss, perplexity, nll of each token from the second on, next (id, p) "
      "after the last one, residual_norm, seconds.  With a swap these are of the swapped model, "
      "with delta, kl, kl_max, agreement, cosine, residual, flops, flops_exact and untrained, note "
      "(how a parameter was read) where there is one, and plain holds those of the model as it "
      "is.  Of swaps, and with vary, a list of such tables, with one plain; vary adds value "
      "and given, the place of its swap in swaps." },
    { "generate", write_on, "ids: integer[], count: integer, options?: attnscope.GenerateOptions",
      "table?, string?, string?",
      "The model writes `count` tokens on, as it is or with a swap that is a pattern or a mixture "
      "of patterns: ids, text, p (of each token), cache_bytes, read_keys (of the last token, over "
      "layers and heads), ended (by itself), seconds, and swap." },
    { "heads", find_heads, "ids: integer[], near?: integer", "table[]?, string?, string?",
      "A table for each head: layer, head, label, words (the label as people read it), previous, "
      "self, first, next, entropy, distance, near (weight on the keys up to so many away; 8 "
      "unless given), offset (weight on the key offset_tokens before, the best of 2 to 16), "
      "induction, induction_rows." },
    { "layer", layer_input, "layer: integer, ids: integer[]", "attnscope.Input?, string?, string?",
      "q, k, v and x of a layer, as an input." },
    { "close", close_model, "", "", "Gives the memory back now." },
    MEMBER_END,
};
const Class class_model = {
    .name = "Model",
    .help = "A transformer read from a GGUF file or a folder with config.json.",
    .members = model_members,
    .meta = model_meta,
    .instead = "attn.model opens another",
    .keep = keep_model,
};
