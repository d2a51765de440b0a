/* model_swaps.c -- see model_swaps.h. */
#include "script/api/model_swaps.h"

#include <string.h>

#include "app/study/study.h"
#include "app/study/swap_axis.h"
#include "app/study/swap_file.h"

/* Moves the value on top into the table `keep`, whose values live as long as it.  [-1, +0] */
static void keep_top(lua_State *L, int keep)
{
    lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
}

/* ---- a swap ------------------------------------------------------------------------ */

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
    keep_top(L, keep);
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
    keep_top(L, keep);
    return *given;
}

/* A swap as table t says; what it points to is kept in the table `keep`.  [-0, +0, v] */
static Swap read_swap(lua_State *L, int t, int keep, const Model *m)
{
    Swap s = { .mechanism = option_string(L, t, "swap", NULL) };

    lua_getfield(L, t, "swap"); /* its text stays with it */
    keep_top(L, keep);
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
    options_check(L, lua_gettop(L), &class_model_swap);
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
static void read_swaps(lua_State *L, int list, int keep, const Model *m, GivenSwaps *out)
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
    keep_top(L, keep);
    for (int64_t i = 0; i < count; i++) {
        int64_t parts;
        Swap   *last = &all[i];

        lua_rawgeti(L, list, i + 1);
        parts = parts_of(L);
        for (int64_t x = 0; x < parts; x++) {
            Swap *own = x ? &all[at++] : last;

            lua_rawgeti(L, -1, x + 1);
            *own = take_part(L, keep, m);
            if (own->also)
                luaL_error(L, "swaps: %s is a mixture and cannot be a part of one", own->name);
            if (x)
                last->also = own;
            last = own;
        }
        if (parts)
            lua_pop(L, 1);
        else
            all[i] = take_part(L, keep, m);
    }
    out->swaps = all;
    out->count = count;
    out->listed = true;
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
        keep_top(L, keep);
        lua_pop(L, 1);
        values[at] = (SwapValue){ given, varies ? axis->values[at] : NULL };
    }
    return varies ? axis->count : 1;
}

/* Puts the swaps at each value of vary in the place of the swaps.  [-0, +0, v] */
static void vary_swaps(lua_State *L, int t, int keep, GivenSwaps *out)
{
    const char *range = option_string(L, t, "vary", NULL);
    Axis       *axis;
    Error       err = ERROR_INIT;
    int64_t     count = 0, at = 0, varied = 0;
    Swap       *all;
    SwapValue  *values;

    if (!range)
        return;
    luaL_argcheck(L, out->count > 0, 3, "vary needs swap or swaps");
    axis = box_push(L, sizeof(*axis), 0, "attnscope.axis", axis_gc, NULL);
    *axis = (Axis){ 0 };
    if (!axis_parse(range, axis, &err))
        luaL_error(L, "vary: %s", err.text);
    keep_top(L, keep);
    for (int64_t i = 0; i < out->count; i++) {
        if (out->swaps[i].also || out->swaps[i].name) /* listed, or of a file */
            luaL_error(L, "vary: swap %I is a mixture; list its parts at each value instead",
                       (lua_Integer)i + 1);
        varied += swap_varies(out->swaps[i].mechanism, axis->name);
        count += vary_swap(L, keep, axis, &out->swaps[i], i, NULL, NULL);
    }
    if (!varied)
        luaL_error(L, "vary: %s is no parameter of %s and no value in it", axis->name,
                   out->swaps[0].mechanism);
    all = lua_newuserdatauv(L, (size_t)count * sizeof(*all), 0);
    keep_top(L, keep);
    values = lua_newuserdatauv(L, (size_t)count * sizeof(*values), 0);
    keep_top(L, keep);
    for (int64_t i = 0; i < out->count; i++)
        at += vary_swap(L, keep, axis, &out->swaps[i], i, all + at, values + at);
    out->swaps = all;
    out->values = values;
    out->count = count;
    out->listed = true;
}

/* ---- options ------------------------------------------------------------------------ */

GivenSwaps swap_push(lua_State *L, int t, const Model *m)
{
    Swap *one;
    int   keep;

    lua_newtable(L);
    keep = lua_gettop(L);
    one = lua_newuserdatauv(L, sizeof(*one), 0);
    keep_top(L, keep);
    *one = read_swap(L, t, keep, m);
    return (GivenSwaps){ .swaps = one, .count = one->mechanism != NULL };
}

GivenSwaps swaps_push(lua_State *L, int t, const Model *m)
{
    GivenSwaps out = { 0 };
    bool       listed = lua_getfield(L, t, "swaps") == LUA_TTABLE;
    int        list = lua_gettop(L);

    if (listed) {
        lua_newtable(L);
        read_swaps(L, list, list + 1, m, &out);
    } else {
        out = swap_push(L, t, m);
    }
    lua_remove(L, list);
    vary_swaps(L, t, list, &out);
    return out;
}

#define SWAP_FIELDS                                                                               \
    FIELD("swap", "string", "a mechanism in place of exact attention: \"window(window=33)\"; or " \
          "a mixture from a CSV file, as advise_model.lua writes it: \"@advice.csv\""),           \
    FIELD("layers", "integer[]", "layers of the swap (default: all)"),                            \
    FIELD("heads", "integer[]", "heads of the swap (default: all)")
#define SWAP_SEED "of parameters the mechanism would have learned"

static const Member model_swap_members[] = {
    SWAP_FIELDS,
    FIELD("seed", "integer", SWAP_SEED),
    MEMBER_END,
};
const Class class_model_swap = { .name = "ModelSwap", .help = "A swap, one of several.",
                                 .members = model_swap_members };

static const Member model_option_members[] = {
    SWAP_FIELDS,
    FIELD("seed", "integer", SWAP_SEED),
    FIELD("swaps", "table[]", "many of swap, layers, heads and seed in one pass; one that is a "
          "list of such tables is a mixture: the first that names a head has it"),
    FIELD("vary", "string", "every swap at each value of a name, \"window=9:129:x2\": of its "
          "parameter, or of a word in it, as w in \"pattern(window(w)+cols(4))\""),
    MEMBER_END,
};
const Class class_model_options = { .name = "ModelOptions", .help = "What a model runs with.",
                                    .members = model_option_members };

static const Member generate_option_members[] = {
    SWAP_FIELDS,
    FIELD("seed", "integer", SWAP_SEED ", and of the draws"),
    FIELD("temperature", "number", "0 (default) takes the most probable token, larger draws more "
          "freely"),
    FIELD("top_k", "integer", "draws among so many tokens (default: all)"),
    MEMBER_END,
};
const Class class_generate_options = { .name = "GenerateOptions",
                                       .help = "What a model writes with.",
                                       .members = generate_option_members };
