/* lua_mechanism.c -- mechanisms of a script: attn.mechanism, and the calls of its functions.
 *
 * The function computes on tensors of Lua; what they compute is charged to the
 * stage it named, so FLOPs are counted as for every other mechanism.
 */
#include <string.h>
#include <strings.h>

#include "script/api/define.h"
#include "script/tensor/lua_walk.h"

/* ---- running ---------------------------------------------------------------- */

static void push_context(lua_State *L, const Callback *callback)
{
    LuaContext *context = class_push(L, &class_context, sizeof(*context), 1);

    *context = (LuaContext){ .run = callback->run, .defined = callback->defined };
    lua_newtable(L);
    define_push_params(L, callback);
    lua_setfield(L, -2, "params");
    lua_setiuservalue(L, -2, 1);
}

/* The view of that name by a function of its own, which costs nothing where nobody looks: the
 * context is at 2.  [-0, +0, v] */
static void show_weights(lua_State *L, int function)
{
    LuaContext *context = lua_touserdata(L, 2);
    Run        *r = context->run;

    run_prepare(r, true); /* it is not the mechanism's work */
    script_of(L)->uncharged = true; /* until the next call of a run, if this raises */
    lua_pushcfunction(L, context_view);
    lua_pushvalue(L, 2);
    lua_pushliteral(L, "weights");
    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    lua_call(L, 3, 0);
    script_of(L)->uncharged = false;
    run_prepare(r, false);
}

/* Under define_call. */
static int compute(lua_State *L)
{
    Callback     *callback = define_callback(L);
    Run          *r = callback->run;
    const Tensor *t;
    char          text[80];

    push_context(L, callback);
    lua_rawgeti(L, LUA_REGISTRYINDEX, callback->defined->function);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    if (callback->defined->weights != LUA_NOREF && run_wants_views(r))
        show_weights(L, callback->defined->weights);
    ((LuaContext *)lua_touserdata(L, 2))->run = NULL;
    if (!class_test(L, -1, &class_tensor))
        return luaL_error(L, "run: the function must return a Tensor, got %s",
                          luaL_typename(L, -1));
    t = tensor_check(L, -1);
    if (t->rank != 3 || t->shape[0] != r->h || t->shape[1] != r->n || t->shape[2] != r->e)
        return luaL_error(L, "run: the output must be [%I,%I,%I], got %s", (lua_Integer)r->h,
                          (lua_Integer)r->n, (lua_Integer)r->e,
                          tensor_shape_text(t, text, sizeof(text)));
    r->out = context_kept(r, tensor_push_copy(L, t, DT_F32));
    return 0;
}

static void mechanism_run(Run *r, const void *params)
{
    Callback callback = { .defined = (Defined *)(uintptr_t)r->mechanism,
                          .run = r,
                          .params = params };

    run_stage(r, "run");
    define_call(&callback, compute);
}

static double flops_field(lua_State *L, const char *key)
{
    double value;

    lua_getfield(L, -1, key);
    value = luaL_optnumber(L, -1, 0);
    lua_pop(L, 1);
    return value;
}

/* Under define_call. */
static int closed_form(lua_State *L)
{
    Callback *callback = define_callback(L);
    Flops    *flops = callback->out;

    push_context(L, callback);
    lua_rawgeti(L, LUA_REGISTRYINDEX, callback->defined->flops);
    lua_pushvalue(L, 2);
    lua_getfield(L, 2, "params");
    lua_call(L, 2, 1);
    if (lua_type(L, -1) == LUA_TNUMBER) {
        *flops = (Flops){ .overhead = lua_tonumber(L, -1) };
        return 0;
    }
    if (!lua_istable(L, -1))
        return luaL_error(L, "flops: expected a number, or a table of score, mix and overhead, got "
                          "%s", luaL_typename(L, -1));
    *flops = (Flops){ .score = flops_field(L, "score"),
                      .mix = flops_field(L, "mix"),
                      .overhead = flops_field(L, "overhead") };
    return 0;
}

static Flops mechanism_flops(Run *r, const void *params)
{
    Flops    flops = { 0 };
    Callback callback = {
        .defined = (Defined *)(uintptr_t)r->mechanism, .run = r, .params = params, .out = &flops
    };

    define_call(&callback, closed_form);
    return flops;
}

/* ---- attn.mechanism --------------------------------------------------------- */

static ViewKind check_kind(lua_State *L, int t, const char *name)
{
    const char *kind = option_string(L, t, "kind", NULL);

    for (int i = 0; i < VIEW_KIND_COUNT; i++)
        if (!strcasecmp(view_kind_name((ViewKind)i), kind ? kind : name))
            return (ViewKind)i;
    if (kind)
        luaL_error(L, "view %s: unknown kind '%s'; see attn.info(\"bigbird\").views", name, kind);
    return VIEW_TENSOR;
}

static void *need(lua_State *L, void *memory)
{
    if (!memory)
        luaL_error(L, "not enough memory for a mechanism");
    return memory;
}

static void read_views(lua_State *L, Defined *d)
{
    int          count = lua_getfield(L, 1, "views") == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
    ViewPromise *views = need(L, arena_zalloc(d->arena, count + 2, sizeof(*views)));
    bool         weights = d->weights == LUA_NOREF;

    for (int i = 0; i < count; i++) {
        int t = lua_gettop(L) + 1;

        if (lua_rawgeti(L, -1, i + 1) == LUA_TSTRING) { /* a name alone */
            lua_createtable(L, 0, 1);
            lua_insert(L, t);
            lua_setfield(L, t, "name");
        }
        luaL_checktype(L, t, LUA_TTABLE);
        options_check(L, t, &class_view_options);
        views[i].name = need(L, arena_strdup(d->arena, option_string(L, t, "name", "view")));
        views[i].help = option_string(L, t, "help", option_string(L, t, "doc", ""));
        views[i].help = need(L, arena_strdup(d->arena, views[i].help));
        views[i].maybe = option_bool(L, t, "maybe", false);
        views[i].kind = check_kind(L, t, views[i].name);
        weights |= !strcmp(views[i].name, "weights");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (!weights)
        views[count] = (ViewPromise){ .name = "weights", .kind = VIEW_WEIGHTS,
                                      .help = "attention weights" };
    d->m.views = views;
}

/* [-1, +1 or 3, v] */
int attn_mechanism(lua_State *L)
{
    Defined *d = define_read(L, &class_mechanism_options);

    d->weights = define_function(L, "weights", false);
    read_views(L, d);
    if (d->m.views->name)
        d->m.picture = d->m.views->name;
    d->m.run = mechanism_run;
    d->function = define_function_of(L, "run", "forward");
    d->flops = define_function(L, "flops", false);
    if (d->flops != LUA_NOREF)
        d->m.flops = mechanism_flops;
    return define_add(L, d);
}

static const Member view_members[] = {
    { "name", NULL, NULL, "string", "weights: those that make the output of V" },
    { "kind", NULL, NULL, "string", "default: the kind of that name, else tensor" },
    { "help", NULL, NULL, "string", "one line" },
    { "doc", NULL, NULL, "string", "the same as help" },
    { "maybe", NULL, NULL, "boolean", "shown under some parameters only" },
    MEMBER_END,
};
const Class class_view_options = { .name = "ViewPromise",
                                   .help = "What a mechanism shows.",
                                   .members = view_members };

static const Member mechanism_members[] = {
    { "run", NULL, NULL, "fun(ctx: attnscope.Context): attnscope.Tensor",
      "computes the output [h,n,e]" },
    { "forward", NULL, NULL, "fun(ctx: attnscope.Context): attnscope.Tensor", "the same as run" },
    { "flops", NULL, NULL, "fun(ctx: attnscope.Context, params: table): table|number",
      "closed form: score, mix and overhead, or their sum; ctx has n, m, d, e and heads" },
    { "weights", NULL, NULL, "fun(ctx: attnscope.Context): attnscope.Tensor",
      "its weights [h,n,m], asked for after run where somebody wants to see them, which is not "
      "part of its time and FLOPs" },
    { "views", NULL, NULL, "(attnscope.ViewPromise|string)[]",
      "what it shows; the first is its picture" },
#include "script/api/card.def"
    MEMBER_END,
};
const Class class_mechanism_options = { .name = "MechanismOptions",
                                        .help = "A mechanism of one's own.",
                                        .members = mechanism_members };
