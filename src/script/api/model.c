/* model.c -- transformers in Lua: a model, its tokens, its pass with and without a swap, its heads,
 * a layer as an input. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/model_input.h"
#include "app/study/study.h"
#include "app/study/swap_axis.h"
#include "app/study/swap_file.h"
#include "model/forward.h"
#include "model/generate.h"
#include "model/heads.h"
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
    char         bytes[1024];
    int64_t      size = m->tokenizer ? tokenizer_bytes(m->tokenizer, id, bytes, sizeof(bytes)) : 0;

    size = size < (int64_t)sizeof(bytes) ? size : (int64_t)sizeof(bytes) - 1;
    lua_pushlstring(L, bytes, size > 0 ? (size_t)size : 0);
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

/* A swap at a value of vary. */
typedef struct SwapValue {
    int64_t     given; /* which swap, from 0 */
    const char *text;  /* NULL: the swap does not depend on it */
} SwapValue;

typedef struct Passing {
    const Model  *m;
    int32_t      *ids; /* on the stack, as are the swaps with their words and layers */
    int64_t       n, layer, near;
    const Swap   *swaps;
    int64_t       swap_count;
    bool          listed; /* the swaps were given as a list */
    const SwapValue *values; /* [swap_count] of vary, on the stack; NULL: none */
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
    ForwardOptions options = { .last_layer = -1, .cancel = cancel, .swaps = p->swaps,
                               .swap_count = p->swap_count };

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
    field_string(L, "swap", swap_name(&p->swaps[variant - 1]));
    if (p->values)
        field_value(L, &p->values[variant - 1]);
    field_bool(L, "untrained", f->untrained);
    field_measure(L, "flops", f->flops);
    field_measure(L, "flops_exact", f->flops_exact);
}

/* The measures of the swap, with those of the model itself in `plain`; else the latter alone; of a
 * list of swaps a list. */
static int push_pass(lua_State *L, int status, lua_KContext at)
{
    const Passing *p = work_context(L, at);

    (void)status;
    if (p->listed) {
        lua_createtable(L, (int)p->swap_count, 2);
        for (int64_t v = 1; v <= p->swap_count; v++) {
            push_swapped(L, p, v);
            lua_rawseti(L, -2, v);
        }
    } else {
        push_swapped(L, p, p->swap_count);
    }
    field_number(L, "seconds", p->result.seconds);
    if (p->listed || p->swap_count) {
        push_measure(L, p, &p->result.measure[0]);
        lua_setfield(L, -2, "plain");
    }
    return 1;
}

/* The list in the option of table t as flags, kept in the table `keep`; NULL: all.
 * [-0, +0, v] */
static const bool *read_flags(lua_State *L, int t, int keep, const char *key, int64_t count)
{
    bool *on;
    int   list;

    if (lua_getfield(L, t, key) == LUA_TNIL) {
        lua_pop(L, 1);
        return NULL;
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    list = lua_gettop(L);
    on = lua_newuserdatauv(L, (size_t)count * sizeof(*on), 0);
    memset(on, 0, (size_t)count * sizeof(*on));
    for (int64_t i = 0; i < (int64_t)lua_rawlen(L, list); i++) {
        lua_rawgeti(L, list, i + 1);
        on[check_index(L, lua_gettop(L), count, key)] = true;
        lua_pop(L, 1);
    }
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
    lua_pop(L, 1);
    return on;
}

static int mixture_gc(lua_State *L)
{
    SwapMixture **box = lua_touserdata(L, 1);

    swap_mixture_free(*box);
    *box = NULL;
    return 0;
}

/* What the file of the swap says, kept in the table `keep`.  [-0, +0, v] */
static Swap read_mixture(lua_State *L, int keep, const Model *m, const Swap *given)
{
    SwapMixture **box = box_push(L, sizeof(SwapMixture *), 0, "attnscope.mixture", mixture_gc,
                                 NULL);
    Error         err = ERROR_INIT;

    *box = NULL;
    if (given->layers || given->heads)
        luaL_error(L, "swap %s: the file says the layers and heads", given->mechanism);
    *box = swap_mixture_read(given->mechanism, &m->config, given->seed, &err);
    if (!*box)
        luaL_error(L, "swap: %s", err.text);
    given = (*box)->parts;
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
    return *given;
}

/* A swap as table t says; what it points to is kept in the table `keep`.  [-0, +0, v] */
static Swap read_swap(lua_State *L, int t, int keep, const Model *m)
{
    Swap s = { .mechanism = option_string(L, t, "swap", NULL) };

    lua_getfield(L, t, "swap"); /* its text stays with it */
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
    s.layers = read_flags(L, t, keep, "layers", m->config.layers);
    s.heads = read_flags(L, t, keep, "heads", m->config.heads);
    s.seed = (uint64_t)option_integer(L, t, "seed", 0, 0, INT64_MAX);
    return s.mechanism && swap_is_file(s.mechanism) ? read_mixture(L, keep, m, &s) : s;
}

/* A part of a mixture, or a swap of its own: the table on top, which is taken off. */
static Swap take_part(lua_State *L, int keep, const Model *m)
{
    Swap s;

    luaL_checktype(L, -1, LUA_TTABLE);
    options_check(L, lua_gettop(L), &class_model_options);
    s = read_swap(L, lua_gettop(L), keep, m);
    if (!s.mechanism)
        luaL_error(L, "swaps: expected a table with swap, or a list of such tables");
    lua_pop(L, 1);
    return s;
}

/* How many parts the item on top has: 0: it is a swap, no list. */
static int64_t parts_of(lua_State *L)
{
    luaL_checktype(L, -1, LUA_TTABLE);
    return (int64_t)lua_rawlen(L, -1);
}

/* Heads of the chains first, then what hangs on them.  [-0, +0, v] */
static void read_swaps(lua_State *L, int list, int keep, Passing *p)
{
    int64_t count = (int64_t)lua_rawlen(L, list), more = 0, at = count;
    Swap   *all;

    for (int64_t i = 0; i < count; i++) {
        lua_rawgeti(L, list, i + 1);
        more += parts_of(L);
        lua_pop(L, 1);
    }
    luaL_argcheck(L, count > 0, 3, "swaps: expected a list with at least one swap");
    all = lua_newuserdatauv(L, (size_t)(count + more) * sizeof(*all), 0);
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t parts;
        Swap   *last = &all[i];

        lua_rawgeti(L, list, i + 1);
        parts = parts_of(L);
        for (int64_t x = 0; x < parts; x++) {
            Swap *own = x ? &all[at++] : last;

            lua_rawgeti(L, -1, x + 1);
            *own = take_part(L, keep, p->m);
            if (own->also)
                luaL_error(L, "swaps: %s is a mixture and cannot be a part of one", own->name);
            if (x)
                last->also = own;
            last = own;
        }
        if (parts)
            lua_pop(L, 1);
        else
            all[i] = take_part(L, keep, p->m);
    }
    p->swaps = all;
    p->swap_count = count;
    p->listed = true;
}

/* ---- vary --------------------------------------------------------------------------- */

static int axis_gc(lua_State *L)
{
    axis_free(lua_touserdata(L, 1));
    return 0;
}

/* A swap for each value, or itself; out NULL: only counts.  [-0, +0, v] */
static int64_t vary_swap(lua_State *L, int keep, const Axis *axis, const Swap *swap, int64_t given,
                         Swap *out, SwapValue *values)
{
    bool varies = swap_varies(swap->mechanism, axis->name);

    for (int at = 0; out && at < (varies ? axis->count : 1); at++) {
        Text *text = text_box(L);

        swap_at(swap->mechanism, axis->name, varies ? axis->values[at] : NULL, text);
        text_box_push(L, text);
        out[at] = *swap;
        out[at].mechanism = lua_tostring(L, -1);
        lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
        lua_pop(L, 1);
        values[at] = (SwapValue){ given, varies ? axis->values[at] : NULL };
    }
    return varies ? axis->count : 1;
}

/* Puts the swaps at each value of vary in the place of the swaps.  [-0, +0, v] */
static void vary_swaps(lua_State *L, int t, int keep, Passing *p)
{
    const char *range = option_string(L, t, "vary", NULL);
    Axis       *axis;
    Error       err = ERROR_INIT;
    int64_t     count = 0, at = 0, varied = 0;
    Swap       *all;
    SwapValue  *values;

    if (!range)
        return;
    luaL_argcheck(L, p->swap_count > 0, 3, "vary needs swap or swaps");
    axis = box_push(L, sizeof(*axis), 0, "attnscope.axis", axis_gc, NULL);
    *axis = (Axis){ 0 };
    if (!axis_parse(range, axis, &err))
        luaL_error(L, "vary: %s", err.text);
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
    for (int64_t i = 0; i < p->swap_count; i++) {
        if (p->swaps[i].also || p->swaps[i].name) /* listed, or of a file */
            luaL_error(L, "vary: swap %I is a mixture; list its parts at each value instead",
                       (lua_Integer)i + 1);
        varied += swap_varies(p->swaps[i].mechanism, axis->name);
        count += vary_swap(L, keep, axis, &p->swaps[i], i, NULL, NULL);
    }
    if (!varied)
        luaL_error(L, "vary: %s is no parameter of %s and no value in it", axis->name,
                   p->swaps[0].mechanism);
    all = lua_newuserdatauv(L, (size_t)count * sizeof(*all), 0);
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
    values = lua_newuserdatauv(L, (size_t)count * sizeof(*values), 0);
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
    for (int64_t i = 0; i < p->swap_count; i++)
        at += vary_swap(L, keep, axis, &p->swaps[i], i, all + at, values + at);
    p->swaps = all;
    p->values = values;
    p->swap_count = count;
    p->listed = true;
}

/* [-0, +1 or 3, v] */
static int run_model(lua_State *L)
{
    Passing p = { .m = check_model(L)->model };
    Swap   *one;
    int     keep;

    lua_settop(L, 3);
    options_check(L, 3, &class_model_options);
    p.ids = push_ids(L, 2, p.m, &p.n);
    lua_newtable(L); /* keeps what the swaps point to */
    keep = lua_gettop(L);
    if (lua_getfield(L, 3, "swaps") == LUA_TTABLE) {
        read_swaps(L, keep + 1, keep, &p);
    } else {
        one = lua_newuserdatauv(L, sizeof(*one), 0);
        *one = read_swap(L, 3, keep, p.m);
        p.swaps = one;
        p.swap_count = one->mechanism != NULL;
    }
    vary_swaps(L, 3, keep, &p);
    push_passing(L, p);
    return work_await(L, script_of(L)->session->thing, "a forward pass", work_pass, push_pass);
}

/* ---- writing on ------------------------------------------------------------------------ */

static bool work_write(void *context, const atomic_bool *cancel, Error *err)
{
    Passing *p = context;

    p->writing.cancel = cancel;
    p->writing.swap = p->swap_count ? p->swaps : NULL;
    return generate_run(p->m, p->ids, p->n, &p->writing, &p->written, err);
}

/* [-0, +0, v] */
static void field_text(lua_State *L, const Tokenizer *tokenizer, const GenerateResult *g)
{
    luaL_Buffer text;

    luaL_buffinit(L, &text);
    for (int64_t i = 0; tokenizer && i < g->count; i++) {
        char    bytes[1024];
        int64_t size = tokenizer_bytes(tokenizer, g->ids[i], bytes, sizeof(bytes));

        size = size < (int64_t)sizeof(bytes) ? size : (int64_t)sizeof(bytes) - 1;
        luaL_addlstring(&text, bytes, size > 0 ? (size_t)size : 0);
    }
    luaL_pushresult(&text);
    lua_setfield(L, -2, "text");
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
    if (p->swap_count)
        field_string(L, "swap", swap_name(p->swaps));
    return 1;
}

/* [-0, +1 or 3, v] */
static int write_on(lua_State *L)
{
    Passing p = { .m = check_model(L)->model };
    Swap   *one;

    lua_settop(L, 4);
    options_check(L, 4, &class_model_options);
    p.ids = push_ids(L, 2, p.m, &p.n);
    p.writing.count = luaL_checkinteger(L, 3);
    luaL_argcheck(L, p.writing.count > 0 && p.writing.count <= 1 << 20, 3,
                  "expected a number of tokens from 1");
    p.writing.temperature = option_number(L, 4, "temperature", 0);
    luaL_argcheck(L, p.writing.temperature >= 0 && p.writing.temperature < 1e6, 4,
                  "temperature: expected a number from 0");
    p.writing.top_k = option_integer(L, 4, "top_k", 0, 0, INT32_MAX);
    p.writing.seed = (uint64_t)option_integer(L, 4, "seed", 0, 0, INT64_MAX);
    luaL_argcheck(L, lua_getfield(L, 4, "swaps") == LUA_TNIL &&
                         lua_getfield(L, 4, "vary") == LUA_TNIL, 4, "it writes with one swap");
    lua_settop(L, 4);
    lua_newtable(L); /* keeps what the swap points to */
    one = lua_newuserdatauv(L, sizeof(*one), 0);
    *one = read_swap(L, 4, lua_gettop(L) - 1, p.m);
    p.swaps = one;
    p.swap_count = one->mechanism != NULL;
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
    lua_createtable(L, 0, 12);
    field_integer(L, "layer", layer);
    field_integer(L, "head", head);
    field_string(L, "label", s->label);
    field_measure(L, "previous", s->previous);
    field_measure(L, "self", s->self);
    field_measure(L, "first", s->first);
    field_measure(L, "next", s->next);
    field_measure(L, "entropy", s->entropy);
    field_measure(L, "distance", s->distance);
    field_measure(L, "near", s->near);
    field_measure(L, "induction", s->induction);
    field_integer(L, "induction_rows", s->induction_rows);
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
      "with delta, kl, kl_max, agreement, cosine, residual, flops, flops_exact and untrained, and "
      "plain holds those of the model as it is.  Of swaps, and with vary, a list of such tables, "
      "with one plain; vary adds value and given, the place of its swap in swaps." },
    { "generate", write_on, "ids: integer[], count: integer, options?: attnscope.ModelOptions",
      "table?, string?, string?",
      "The model writes `count` tokens on, as it is or with a swap that is a pattern or a mixture "
      "of patterns: ids, text, p (of each token), cache_bytes, read_keys (of the last token, over "
      "layers and heads), ended (by itself), seconds, and swap." },
    { "heads", find_heads, "ids: integer[], near?: integer", "table[]?, string?, string?",
      "A table for each head: layer, head, label, previous, self, first, next, entropy, distance, "
      "near (weight on the keys up to so many away; 8 unless given), induction, "
      "induction_rows." },
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

static const Member model_option_members[] = {
    FIELD("swap", "string", "a mechanism in place of exact attention: \"window(window=33)\"; or a "
          "mixture from a CSV file, as advise_model.lua writes it: \"@advice.csv\""),
    FIELD("layers", "integer[]", "layers of the swap (default: all)"),
    FIELD("heads", "integer[]", "heads of the swap (default: all)"),
    FIELD("seed", "integer", "of parameters the mechanism would have learned, and of what generate "
          "draws"),
    FIELD("temperature", "number", "of generate: 0 (default) takes the most probable token"),
    FIELD("top_k", "integer", "of generate: draws among so many tokens (default: all)"),
    FIELD("swaps", "table[]", "many of swap, layers, heads and seed in one pass; one that is a "
          "list of such tables is a mixture: the first that names a head has it"),
    FIELD("vary", "string", "every swap at each value of a name, \"window=9:129:x2\": of its "
          "parameter, or of a word in it, as w in \"pattern(window(w)+cols(4))\""),
    MEMBER_END,
};
const Class class_model_options = { .name = "ModelOptions", .help = "A swap.",
                                    .members = model_option_members };
