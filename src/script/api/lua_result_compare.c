/* lua_result_compare.c -- two results against each other. */
#include "profile/difference.h"
#include "script/host/lua_work.h"

typedef struct Compared {
    const Run *a, *b;
    Difference difference;
} Compared;

static bool compare(void *context, const atomic_bool *cancel, Error *err)
{
    Compared *c = context;

    return runs_differ(c->a, c->b, cancel, &c->difference, err);
}

static void set_number(lua_State *L, const char *key, Number value)
{
    if (!value.valid)
        return;
    lua_pushnumber(L, value.value);
    lua_setfield(L, -2, key);
}

static int push_difference(lua_State *L, int status, lua_KContext at)
{
    const Difference *d = &((Compared *)work_context(L, at))->difference;
    Error             err;

    (void)status;
    if (!work_ended(L, at, &err))
        return err.code == ERR_USAGE ? luaL_argerror(L, 2, err.text) : failure(L, &err);
    lua_newtable(L);
    set_number(L, "max_abs", number_of(d->max_abs));
    set_number(L, "mean_abs", number_of(d->mean_abs));
    set_number(L, "rel_l2", number_of(d->rel_l2));
    set_number(L, "total_variation", d->total_variation);
    set_number(L, "kl", d->kl);
    lua_pushstring(L, d->kl_lacks);
    lua_setfield(L, -2, "kl_lacks");
    return 1;
}

/* [-0, +1 or 3, v] */
int result_compare(lua_State *L)
{
    const LuaResult *a = result_check(L, 1), *b = result_check(L, 2);
    Compared        *c;

    lua_settop(L, 2);
    c = lua_newuserdatauv(L, sizeof(*c), 0);
    *c = (Compared){ .a = a->result->run, .b = b->result->run };
    return work_await(L, a->session, "comparing two results", compare, push_difference);
}
