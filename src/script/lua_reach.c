/* lua_reach.c -- the receptive field of a result over depth, in Lua. */
#include "script/lua_binding.h"

#define HOPS_LIMIT (8ll << 30) /* bytes of all hop counts, unless the run had a limit */

ReachOptions reach_options(lua_State *L, int t)
{
    return (ReachOptions){ .layers = (int)option_integer(L, t, "layers", 0, 1, REACH_MOST),
                           .strict = !option_bool(L, t, "residual", true) };
}

/* ---- numbers ------------------------------------------------------------------------ */

static void set_integer(lua_State *L, const char *key, int64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static void set_bool(lua_State *L, const char *key, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

/* depths[1] is that of no layer.  [-0, +0, m] */
static void set_depths(lua_State *L, const ReachSummary *r)
{
    lua_createtable(L, r->depth + 1, 0);
    for (int depth = 0; depth <= r->depth; depth++) {
        const ReachDepth *at = &r->at[depth];

        lua_createtable(L, 0, 6);
        set_integer(L, "layers", depth);
        set_integer(L, "pairs", at->pairs);
        set_number(L, "share", (double)at->pairs / (double)r->possible);
        set_integer(L, "least", at->least);
        set_number(L, "mean", (double)at->pairs / (double)r->tokens);
        set_integer(L, "most", at->most);
        lua_rawseti(L, -2, depth + 1);
    }
    lua_setfield(L, -2, "depths");
}

static void push_summary(lua_State *L, const Result *result, const ReachOptions *options,
                         const ReachSummary *r)
{
    lua_createtable(L, 0, 10);
    set_integer(L, "n", r->tokens);
    set_integer(L, "layers", r->depth);
    set_integer(L, "possible", r->possible);
    set_bool(L, "residual", !options->strict);
    set_bool(L, "by_content", result_reach_by_content(result));
    if (r->full >= 0)
        set_integer(L, "full", r->full);
    if (r->fixed >= 0)
        set_integer(L, "fixed", r->fixed);
    if (!options->strict)
        set_number(L, "mean_hops", r->mean);
    set_depths(L, r);
}

/* ---- the matrix ----------------------------------------------------------------------- */

/* All hop counts into the table at the top; else a failure's values.  [-0, +0 or 3, v] */
static int set_hops(lua_State *L, const Result *result, const View *view)
{
    int64_t    limit = result->request.memory_limit;
    LuaTensor *tensor = tensor_push_closed(L);
    Arena     *arena = arena_new();
    Tensor     t;
    Error      err = ERROR_INIT;

    if (!arena)
        return luaL_error(L, "not enough memory");
    if (!view_materialise(view, arena, limit ? limit : HOPS_LIMIT, &t, &err)) {
        arena_free(arena);
        return failure(L, &err);
    }
    tensor_adopt(L, tensor, t, arena);
    lua_setfield(L, -2, "hops");
    return 0;
}

/* ---- methods -------------------------------------------------------------------------- */

/* What the run has no pattern for is refused like a run that cannot be. */
static int reach_failure(lua_State *L, Error err)
{
    if (err.code == ERR_USAGE)
        return luaL_error(L, "%s", err.text);
    return failure(L, &err);
}

/* [-0, +1 or 3, v] */
int result_reach_method(lua_State *L)
{
    const Result *result = result_check(L, 1)->result;
    ReachOptions  options;
    ReachSummary *summary;
    Error         err = ERROR_INIT;
    int           count;

    lua_settop(L, 2);
    options_check(L, 2, &class_reach_options);
    options = reach_options(L, 2);
    summary = lua_newuserdatauv(L, sizeof(*summary), 0);
    if (!result_reach_summary(result, &options, NULL, NULL, summary, &err))
        return reach_failure(L, err);
    push_summary(L, result, &options, summary);
    if (!option_bool(L, 2, "hops", false))
        return 1;
    count = set_hops(L, result, result_reach(result, &options, &err));
    return count ? count : 1;
}

/* A shortest way {q, ..., k}; nil: there is none.  [-0, +1 or 3, v] */
int result_reach_path(lua_State *L)
{
    const Result *result = result_check(L, 1)->result;
    int64_t       n = result->run->n, path[REACH_MOST + 1];
    int64_t       q = check_index(L, 2, n, "query"), k = check_index(L, 3, n, "key");
    ReachOptions  options;
    const View   *view;
    Error         err = ERROR_INIT;
    float         first;
    int           hops;

    lua_settop(L, 4);
    options_check(L, 4, &class_reach_options);
    options = reach_options(L, 4);
    view = result_reach(result, &options, &err);
    if (!view)
        return reach_failure(L, err);
    view_read(view, 0, q, k, 1, 1, &first); /* the layers are known from then on */
    hops = reach_view_path(view, q, k, path);
    if (hops == -2)
        return luaL_error(L, "not enough memory");
    lua_pushnil(L);
    if (hops < 0)
        return 1;
    lua_createtable(L, hops + 1, 0);
    for (int t = 0; t <= hops; t++) {
        lua_pushinteger(L, (lua_Integer)path[t]);
        lua_rawseti(L, -2, t + 1);
    }
    return 1;
}

static const Member reach_members[] = {
    { "layers", NULL, NULL, "integer", "1 to 254; default 12, or one for each layer of a stack" },
    { "residual", NULL, NULL, "boolean",
      "default true; false: walks of exactly so many layers" },
    { "hops", NULL, NULL, "boolean", "also the matrix of hop counts, as the tensor `hops`" },
    MEMBER_END,
};
const Class class_reach_options = { .name = "ReachOptions",
                                    .help = "How deep to follow what reaches what.",
                                    .members = reach_members };
