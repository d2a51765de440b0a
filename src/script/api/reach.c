/* reach.c -- the receptive field of a result over depth, in Lua. */
#include "script/host/work.h"

#define HOPS_LIMIT (8ll << 30) /* bytes of all hop counts, unless the run had a limit */

ReachOptions reach_options(lua_State *L, int t)
{
    return (ReachOptions){ .layers = (int)option_integer(L, t, "layers", 0, 1, REACH_MOST),
                           .strict = !option_bool(L, t, "residual", true) };
}

/* ---- numbers ------------------------------------------------------------------------ */

/* depths[1] is that of no layer.  [-0, +0, m] */
static void set_depths(lua_State *L, const ReachSummary *r)
{
    lua_createtable(L, r->depth + 1, 0);
    for (int depth = 0; depth <= r->depth; depth++) {
        const ReachDepth *at = &r->at[depth];

        lua_createtable(L, 0, 6);
        field_integer(L, "layers", depth);
        field_integer(L, "pairs", at->pairs);
        field_number(L, "share", (double)at->pairs / (double)r->possible);
        field_integer(L, "least", at->least);
        field_number(L, "mean", (double)at->pairs / (double)r->tokens);
        field_integer(L, "most", at->most);
        lua_rawseti(L, -2, depth + 1);
    }
    lua_setfield(L, -2, "depths");
}

static void push_summary(lua_State *L, const Result *result, const ReachOptions *options,
                         const ReachSummary *r)
{
    lua_createtable(L, 0, 10);
    field_integer(L, "n", r->tokens);
    field_integer(L, "layers", r->depth);
    field_integer(L, "possible", r->possible);
    field_bool(L, "residual", !options->strict);
    field_bool(L, "by_content", result_reach_by_content(result));
    if (r->full >= 0)
        field_integer(L, "full", r->full);
    if (r->fixed >= 0)
        field_integer(L, "fixed", r->fixed);
    if (!options->strict)
        field_number(L, "mean_hops", r->mean);
    set_depths(L, r);
}

/* ---- methods -------------------------------------------------------------------------- */

typedef struct Following {
    const Result *result;
    ReachOptions  options;
    ReachSummary  summary;
    Arena        *arena; /* of hops, owned by: NULL: they are not asked for */
    LuaTensor    *owner; /* on the stack */
    Tensor        hops;
} Following;

/* Numbers, and all hop counts where they are asked for. */
static bool follow(void *context, const atomic_bool *cancel, Error *err)
{
    Following  *f = context;
    int64_t     limit = f->result->request.memory_limit;
    const View *view;

    if (!result_reach_summary(f->result, &f->options, NULL, cancel, &f->summary, err))
        return false;
    if (!f->arena)
        return true;
    view = result_reach(f->result, &f->options, err);
    return view && view_materialise(view, f->arena, limit ? limit : HOPS_LIMIT, &f->hops, err);
}

static int push_reach(lua_State *L, int status, lua_KContext at)
{
    Following *f = work_context(L, at);

    (void)status;
    push_summary(L, f->result, &f->options, &f->summary);
    if (!f->arena)
        return 1;
    f->owner->t = f->hops;
    account(L, tensor_bytes(&f->hops));
    lua_pushvalue(L, 3);
    lua_setfield(L, -2, "hops");
    return 1;
}

/* [-0, +1 or 3, v] */
int result_reach_method(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    bool             hops;
    Following       *f;
    LuaTensor       *owner;

    lua_settop(L, 2);
    options_check(L, 2, &class_reach_options);
    hops = option_bool(L, 2, "hops", false);
    owner = tensor_push_closed(L);
    f = lua_newuserdatauv(L, sizeof(*f), 0);
    *f = (Following){ .result = result->result, .options = reach_options(L, 2), .owner = owner };
    if (hops) {
        f->arena = arena_new();
        if (!f->arena)
            return luaL_error(L, "not enough memory");
        tensor_adopt(L, owner, (Tensor){ .rank = 0 }, f->arena);
    }
    return work_await(L, result->session, "following reach", follow, push_reach);
}

/* ---- a way ----------------------------------------------------------------------------- */

typedef struct Way {
    const Result *result;
    ReachOptions  options;
    int64_t       q, k, path[REACH_MOST + 1];
    int           hops;
} Way;

static bool find_way(void *context, const atomic_bool *cancel, Error *err)
{
    Way        *w = context;
    const View *view = result_reach(w->result, &w->options, err);
    float       first;

    (void)cancel;
    if (!view)
        return false;
    view_read(view, 0, w->q, w->k, 1, 1, &first); /* the layers are known from then on */
    w->hops = reach_view_path(view, w->q, w->k, w->path);
    return w->hops != -2 || error_set(err, ERR_NOMEM, "not enough memory for a way");
}

static int push_way(lua_State *L, int status, lua_KContext at)
{
    const Way *w = work_context(L, at);

    (void)status;
    lua_pushnil(L);
    if (w->hops < 0)
        return 1;
    lua_createtable(L, w->hops + 1, 0);
    for (int t = 0; t <= w->hops; t++) {
        lua_pushinteger(L, (lua_Integer)w->path[t]);
        lua_rawseti(L, -2, t + 1);
    }
    return 1;
}

/* A shortest way {q, ..., k}; nil: there is none.  [-0, +1 or 3, v] */
int result_reach_path(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    int64_t          n = result->result->run->n;
    int64_t          q = check_index(L, 2, n, "query"), k = check_index(L, 3, n, "key");
    Way             *w;

    lua_settop(L, 4);
    options_check(L, 4, &class_reach_options);
    w = lua_newuserdatauv(L, sizeof(*w), 0);
    *w = (Way){ .result = result->result, .options = reach_options(L, 4), .q = q, .k = k };
    return work_await(L, result->session, "looking for a path", find_way, push_way);
}

static const Member reach_members[] = {
    FIELD("layers", "integer", "1 to 254; default 12, or one for each layer of a stack"),
    FIELD("residual", "boolean", "default true; false: walks of exactly so many layers"),
    FIELD("hops", "boolean", "also the matrix of hop counts, as the tensor `hops`"),
    MEMBER_END,
};
const Class class_reach_options = { .name = "ReachOptions",
                                    .help = "How deep to follow what reaches what.",
                                    .members = reach_members };

/* Which of the strongest keys were missed, in Lua. */

static void set_share(lua_State *L, const char *key, double value)
{
    if (!(value >= 0))
        return; /* nothing to find */
    field_number(L, key, value);
}

/* [-0, +0, m] */
static void set_rounds(lua_State *L, const Missed *o)
{
    lua_createtable(L, o->rounds, 0);
    for (int r = 0; r < o->rounds; r++) {
        lua_createtable(L, 0, 2);
        set_share(L, "alone", o->alone[o->h * o->rounds + r]);
        set_share(L, "together", o->together[o->h * o->rounds + r]);
        lua_rawseti(L, -2, r + 1);
    }
    lua_setfield(L, -2, "rounds");
}

/* [-0, +0, m] */
static void set_heads(lua_State *L, const Missed *o)
{
    lua_createtable(L, (int)o->h, 0);
    for (int64_t head = 0; head < o->h; head++) {
        lua_createtable(L, 0, 2);
        set_share(L, "found", o->found[head]);
        set_share(L, "mass", o->mass[head]);
        lua_rawseti(L, -2, (lua_Integer)head + 1);
    }
    lua_setfield(L, -2, "heads");
}

/* The share of each query, as a tensor.  [-0, +0, m] */
static void set_queries(lua_State *L, const Missed *o)
{
    Tensor *t = tensor_push(L, DT_F64, 2, (int64_t[]){ o->h, o->n });

    for (int64_t x = 0; x < o->h * o->n; x++)
        ((double *)t->data)[x] = o->query[x];
    lua_setfield(L, -2, "queries");
}

typedef struct Search {
    Result       *result;
    int64_t       keys;
    const Missed *missed;
} Search;

static bool search(void *context, const atomic_bool *cancel, Error *err)
{
    Search *s = context;

    s->missed = result_missed(s->result, s->keys, NULL, cancel, err);
    return s->missed != NULL;
}

static int push_missed(lua_State *L, int status, lua_KContext at)
{
    const Missed *missed = ((Search *)work_context(L, at))->missed;

    (void)status;
    lua_createtable(L, 0, 8);
    field_integer(L, "keys", missed->keys);
    field_bool(L, "ranked", missed->ranked);
    set_share(L, "found", missed->found[missed->h]);
    set_share(L, "mass", missed->mass[missed->h]);
    set_rounds(L, missed);
    set_heads(L, missed);
    set_queries(L, missed);
    return 1;
}

/* [-0, +1 or 3, v] */
int result_missed_method(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    Search          *s;

    lua_settop(L, 2);
    options_check(L, 2, &class_missed_options);
    s = lua_newuserdatauv(L, sizeof(*s), 0);
    *s = (Search){ .result = result->result };
    s->keys = option_integer(L, 2, "keys", result->result->request.keys, 1, MISSED_MOST);
    return work_await(L, result->session, "looking for missed keys", search, push_missed);
}

static const Member missed_members[] = {
    FIELD("keys", "integer", "strongest keys looked for; default 8"),
    MEMBER_END,
};
const Class class_missed_options = { .name = "MissedOptions",
                                     .help = "How many keys to look for.",
                                     .members = missed_members };
