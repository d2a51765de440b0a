/* budget.c -- attn.budget: the size of a mechanism for a share of what exact attention takes. */
#include "app/study/budget.h"

#include <stdio.h>

#include "app/study/swap_axis.h"
#include "script/host/work.h"

/* What the worker searches; its requests lie on the stack. */
typedef struct Sizing {
    Session       *session;
    Budget         budget;
    Request       *request, *exact;
    const char    *given; /* the mechanism's text, on the stack */
    Text           note;
} Sizing;

static int sizing_gc(lua_State *L)
{
    Sizing *z = lua_touserdata(L, 1);

    text_free(&z->note);
    return 0;
}

static bool work_size(void *context, const atomic_bool *cancel, Error *err)
{
    Sizing *z = context;
    Result *exact = session_run(z->session, z->exact, err);
    bool    ok = exact && budget_choose(z->session, &z->budget, exact, z->request, &z->note, err);

    (void)cancel;
    result_release(exact);
    return ok;
}

/* The text with the size that was chosen, and what is to be said of it.  [-0, +2, v] */
static int push_sized(lua_State *L, int status, lua_KContext at)
{
    Sizing           *z = work_context(L, at);
    const Mechanism  *m = mechanism_find(z->request->mechanism);
    const Assignment *size = m && m->size ? assignments_find(&z->request->given, m->size) : NULL;
    Text             *text = text_box(L);

    (void)status;
    if (size && size->text)
        swap_at(z->given, m->size, size->text, text);
    else
        text_add(text, z->given);
    text_box_push(L, text);
    lua_pushstring(L, text_str(&z->note));
    return 2;
}

/* Mechanism, options, budget and the input on the stack.  [-0, +2 or 3, v] */
static int budget_loaded(lua_State *L, int status, lua_KContext unused)
{
    Session *s = input_check(L, lua_gettop(L))->session;
    Sizing  *z;
    Request *request, *exact;
    Budget   budget;
    Error    err = ERROR_INIT;
    int      count;

    (void)status;
    (void)unused;
    check_ok(L, budget_parse(lua_tostring(L, 3), &budget, &err), &err);
    count = request_prepare(L, &request);
    if (count != 1)
        return count;
    if (request->above)
        return luaL_error(L, "%s: a stack of layers has no one size", lua_tostring(L, 1));
    exact = request_push(L);
    request_set_options(L, 2, exact);
    exact->measure = exact->quality = exact->per_head = false;
    exact->repeat = exact->seeds = 0;
    if (!request_parse(s, exact, mechanism_at(0)->id, &err) ||
        !request_set_place(L, 2, s, exact, &err))
        return failure(L, &err);
    z = box_push(L, sizeof(*z), 0, "attnscope.sizing", sizing_gc, NULL);
    *z = (Sizing){ .session = s, .budget = budget, .request = request, .exact = exact,
                   .given = lua_tostring(L, 1) };
    return work_await(L, s, "choosing a size", work_size, push_sized);
}

/* [-0, +2 or 3, v] */
int attn_budget(lua_State *L)
{
    Budget budget;
    Error  err = ERROR_INIT;

    lua_settop(L, 3);
    check_text(L, 1);
    if (!budget_parse(check_text(L, 2), &budget, &err))
        return luaL_argerror(L, 2, err.text);
    if (lua_isnil(L, 3)) {
        lua_newtable(L);
        lua_replace(L, 3);
    }
    options_check(L, 3, &class_run_options);
    lua_insert(L, 2); /* where options of a run stand */
    if (script_of(L)->run)
        return luaL_error(L, "a mechanism cannot start runs while it runs");
    return input_await(L, 2, budget_loaded);
}
