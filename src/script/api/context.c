/* context.c -- what the function of a script's mechanism is given: its input as tensors, and
 * the functions by which it reports stages, views, FLOPs and progress.
 */
#include <string.h>

#include "core/rng.h"
#include "script/api/define.h"
#include "script/tensor/tensor.h"

/* ---- what the function is given --------------------------------------------- */

static LuaContext *check_context(lua_State *L)
{
    LuaContext *context = class_check(L, 1, &class_context);

    if (!context->run)
        luaL_error(L, "a context is there only while its function runs");
    return context;
}

/* A copy, made once: the script may hold it longer than the run holds its own tensor. */
static int input_tensor(lua_State *L, const char *key, const Tensor *t)
{
    lua_getiuservalue(L, 1, 1);
    if (lua_getfield(L, -1, key) != LUA_TNIL || !t->data)
        return 1;
    tensor_push_copy(L, t, t->dtype);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, key);
    return 1;
}

static int context_q(lua_State *L)
{
    return input_tensor(L, "q", &check_context(L)->run->q);
}

static int context_x(lua_State *L)
{
    return input_tensor(L, "x", &check_context(L)->run->x);
}

/* k or v with one head for each head of q, where heads share keys and values. */
static int shared_tensor(lua_State *L, const char *key, Tensor t)
{
    const Run *r = check_context(L)->run;
    int64_t    times = t.data ? r->h / t.shape[0] : 1;
    Tensor     spread = t;

    if (times > 1) { /* heads in groups: an axis of stride 0 and back */
        spread.rank = 4;
        spread.shape[1] = times;
        spread.stride[1] = 0;
        for (int i = 1; i < 3; i++) {
            spread.shape[i + 1] = t.shape[i];
            spread.stride[i + 1] = t.stride[i];
        }
    }
    input_tensor(L, key, &spread);
    if (times > 1 && lua_isuserdata(L, -1)) {
        Tensor *out = tensor_check(L, -1);

        *out = tensor_of(t.dtype, 3, (int64_t[]){ r->h, t.shape[1], t.shape[2] }, out->data);
    }
    return 1;
}

static int context_k(lua_State *L)
{
    return shared_tensor(L, "k", check_context(L)->run->k);
}

static int context_v(lua_State *L)
{
    return shared_tensor(L, "v", check_context(L)->run->v);
}

FIELD_GETTER(context_n, lua_pushinteger, check_context(L)->run->n)
FIELD_GETTER(context_m, lua_pushinteger, check_context(L)->run->m)
FIELD_GETTER(context_d, lua_pushinteger, check_context(L)->run->d)
FIELD_GETTER(context_e, lua_pushinteger, check_context(L)->run->e)
FIELD_GETTER(context_h, lua_pushinteger, check_context(L)->run->h)
FIELD_GETTER(context_seed, lua_pushinteger, (int64_t)check_context(L)->run->seed)
FIELD_GETTER(context_causal, lua_pushboolean, check_context(L)->run->causal)
FIELD_GETTER(context_scale, lua_pushnumber, run_scale(check_context(L)->run, 0))

static int context_params(lua_State *L)
{
    check_context(L);
    lua_getiuservalue(L, 1, 1);
    lua_getfield(L, -1, "params");
    return 1;
}

/* Stage names are read after the run has ended, so the script's memory holds copies. */
static const char *kept_name(lua_State *L, Script *script, const char *name)
{
    const char *kept;

    if (!script->names)
        script->names = arena_new();
    lua_getfield(L, LUA_REGISTRYINDEX, "attnscope.stages");
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, LUA_REGISTRYINDEX, "attnscope.stages");
    }
    lua_getfield(L, -1, name);
    kept = lua_touserdata(L, -1);
    if (!kept && script->names) {
        char *own = arena_strdup(script->names, name);

        lua_pushlightuserdata(L, own);
        lua_setfield(L, -3, name);
        kept = own;
    }
    lua_pop(L, 2);
    if (!kept)
        luaL_error(L, "not enough memory for a stage");
    return kept;
}

static FlopClass check_charge(lua_State *L, int arg)
{
    static const char *const names[] = { "score", "mixing", "overhead", NULL };

    return (FlopClass)luaL_checkoption(L, arg, "overhead", names);
}

/* [-0, +0, v] */
static int context_stage(lua_State *L)
{
    LuaContext *context = check_context(L);
    const char *name = kept_name(L, script_of(L), check_text(L, 2));
    FlopClass   charge = check_charge(L, 3);

    run_stage(context->run, name);
    script_of(L)->charge = charge;
    return 0;
}

/* [-0, +0, v] */
static int context_charge(lua_State *L)
{
    LuaContext *context = check_context(L);
    double      flops = luaL_checknumber(L, 2);

    luaL_argcheck(L, flops >= 0 && flops < 1e300, 2, "expected a number that is not negative");
    if (script_of(L)->uncharged)
        return 0;
    op_charge(context->run, lua_isnoneornil(L, 3) ? script_of(L)->charge : check_charge(L, 3),
              flops);
    return 0;
}

/* [-0, +0, v] */
static int context_warn(lua_State *L)
{
    run_warn(check_context(L)->run, "%.300s", check_text(L, 2));
    return 0;
}

/* [-0, +0, v] */
static int context_progress(lua_State *L)
{
    const LuaContext *context = check_context(L);
    double            share = luaL_checknumber(L, 2);

    luaL_argcheck(L, share >= 0 && share <= 1, 2, "expected a share from 0 to 1");
    run_report(context->run, share);
    script_hand_over(script_of(L));
    return run_failed(context->run) ? luaL_error(L, "interrupted") : 0;
}

Tensor context_kept(Run *r, const Tensor *t)
{
    Tensor out = tensor_of(t->dtype, t->rank, t->shape, NULL);

    out.data = run_alloc(r, tensor_bytes(t) ? tensor_bytes(t) : 1, 1);
    if (out.data)
        memcpy(out.data, t->data, (size_t)tensor_bytes(t));
    return out;
}

static const ViewPromise *check_promise(lua_State *L, const Defined *d, const char *name)
{
    Meant nearest = { name, NULL, ANY_SLIPS };

    for (const ViewPromise *v = d->m.views; v->name; v++) {
        if (!strcmp(v->name, name))
            return v;
        meant_offer(&nearest, v->name);
    }
    luaL_error(L, "view '%s' is not among the mechanism's views; %s%s", name,
               nearest.name ? "did you mean " : "it has none", nearest.name ? nearest.name : "");
    return NULL;
}

/* [-0, +0, v] */
int context_view(lua_State *L)
{
    LuaContext        *context = check_context(L);
    Run               *r = context->run;
    const ViewPromise *promise = check_promise(L, context->defined, check_text(L, 2));
    const Tensor      *t = tensor_check(L, 3);
    bool               cells;

    if (!run_wants_views(r))
        return 0;
    luaL_argcheck(L, t->rank >= 1, 3, "a view has one axis at least");
    t = tensor_push_copy(L, t, t->dtype == DT_F64 ? DT_F32 : t->dtype);
    cells = t->rank >= 2 && t->shape[t->rank - 2] == r->n && t->shape[t->rank - 1] == r->m;
    if (promise->kind == VIEW_WEIGHTS &&
        (t->rank != 3 || !cells || t->shape[0] != r->h || t->dtype != DT_F32))
        luaL_error(L, "view %s: weights have the shape [h,n,m] in f32", promise->name);
    view_tensor(r, promise->name, promise->kind, context_kept(r, t), cells ? "query" : "row",
                cells ? "key" : "column");
    return 0;
}

/* ctx.rng:normal(shape) is a draw without a name.  [-0, +1, v] */
static int context_rng(lua_State *L)
{
    check_context(L);
    lua_pushvalue(L, 1);
    return 1;
}

/* The shape at 2 moves to 3, behind the name "draw 1", "draw 2", ...  [-0, +1, v] */
static void name_draw(lua_State *L, LuaContext *context)
{
    lua_pushfstring(L, "draw %d", ++context->draws);
    lua_insert(L, 2);
}

/* [-0, +1, v] */
static int context_normal(lua_State *L)
{
    LuaContext *context = check_context(L);
    const char *name = (lua_istable(L, 2) ? name_draw(L, context) : (void)0, check_text(L, 2));
    double      deviation = luaL_optnumber(L, 4, 1);
    int64_t     shape[TENSOR_MAX_RANK];
    int         rank = (int)(luaL_checktype(L, 3, LUA_TTABLE), lua_rawlen(L, 3));
    Rng         rng = run_rng(context->run, name);
    Tensor     *out;

    luaL_argcheck(L, rank >= 1 && rank <= TENSOR_MAX_RANK, 3, "expected a shape of 1 to 4 axes");
    for (int i = 0; i < rank; i++) {
        lua_rawgeti(L, 3, i + 1);
        shape[i] = luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    out = tensor_push(L, DT_F32, rank, shape);
    run_prepare(context->run, true);
    run_draw(context->run, &rng, (Init){ .kind = INIT_NORMAL, .a = deviation }, *out);
    run_prepare(context->run, false);
    run_origin(context->run, kept_name(L, script_of(L), name), ORIGIN_DRAWN);
    return 1;
}

static int context_close(lua_State *L)
{
    ((LuaContext *)class_check(L, 1, &class_context))->run = NULL;
    return 0;
}

/* [-0, +1, m] */
static int context_describe(lua_State *L)
{
    const LuaContext *context = class_check(L, 1, &class_context);

    if (context->run)
        lua_pushfstring(L, "Context of %s n=%I", context->run->mechanism->id,
                        (lua_Integer)context->run->n);
    else
        lua_pushliteral(L, "Context (closed)");
    return 1;
}

static const luaL_Reg context_meta[] = {
    { "__gc", context_close }, { "__close", context_close }, { "__tostring", context_describe },
    { "__len", context_n }, { NULL, NULL },
};

#define TENSOR_TYPE "attnscope.Tensor"

static const Member context_members[] = {
    { "q", context_q, NULL, TENSOR_TYPE, "queries [h,n,d]" },
    { "k", context_k, NULL, TENSOR_TYPE, "keys [h,m,d]" },
    { "v", context_v, NULL, TENSOR_TYPE, "values [h,m,e]" },
    { "x", context_x, NULL, TENSOR_TYPE "?", "the layer's input, where there is one" },
    { "n", context_n, NULL, "integer", "queries" },
    { "m", context_m, NULL, "integer", "keys" },
    { "d", context_d, NULL, "integer", "size of a query" },
    { "e", context_e, NULL, "integer", "size of a value" },
    { "heads", context_h, NULL, "integer", "heads" },
    { "causal", context_causal, NULL, "boolean", "queries must see no later key" },
    { "scale", context_scale, NULL, "number", "of scores: the input's, else 1/sqrt(d)" },
    { "seed", context_seed, NULL, "integer", "seed of random draws" },
    { "params", context_params, NULL, "table", "every parameter as it was bound" },
    { "rng", context_rng, NULL, "attnscope.Context", "for ctx.rng:normal(shape)" },
    { "stage", context_stage, "name: string, charge?: string", "",
      "Begins a step; what is computed from here on is charged as score, mixing or overhead (the "
      "default)." },
    { "charge", context_charge, "flops: number, charge?: string", "",
      "FLOPs of what was computed without tensors." },
    { "view", context_view, "name: string, tensor: attnscope.Tensor", "",
      "Shows one of the mechanism's views; costs nothing when none is wanted." },
    { "normal", context_normal, "name: string, shape: integer[], deviation?: number", TENSOR_TYPE,
      "Normal numbers of the run's seed, from a stream of this name.  ctx.rng:normal(shape, "
      "deviation) does without a name: other numbers each time it is called in a run." },
    { "progress", context_progress, "share: number", "",
      "How much is done, from 0 to 1: what the explorer, the command line and job:progress show.  "
      "Raises once the run is cancelled." },
    { "warn", context_warn, "text: string", "", "A warning with the result." },
    MEMBER_END,
};
const Class class_context = { .name = "Context",
                              .help = "One run of a mechanism of one's own.",
                              .members = context_members,
                              .meta = context_meta,
                              .operators = "---@operator len: integer\n",
                              .instead = "ctx:view(name, tensor) shows a tensor, what `run` "
                                         "returns is the output" };
