/* lua_missed.c -- who was missed of the strongest keys, in Lua. */
#include "script/host/lua_work.h"

static void set_share(lua_State *L, const char *key, double value)
{
    if (!(value >= 0))
        return; /* nothing to find */
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
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
    Error         err;

    (void)status;
    if (!work_ended(L, at, &err))
        return failure(L, &err);
    lua_createtable(L, 0, 8);
    lua_pushinteger(L, (lua_Integer)missed->keys);
    lua_setfield(L, -2, "keys");
    lua_pushboolean(L, missed->ranked);
    lua_setfield(L, -2, "ranked");
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
    { "keys", NULL, NULL, "integer", "strongest keys looked for; default 8" },
    MEMBER_END,
};
const Class class_missed_options = { .name = "MissedOptions",
                                     .help = "How many keys to look for.",
                                     .members = missed_members };
