/* lua_load.c -- inputs by name: read from a file or generated, by a worker.
 *
 * Those that a run asks for are remembered as long as somebody holds them.
 */
#include "script/host/lua_work.h"

#include <stdio.h>
#include <string.h>

#include "app/scripting.h"

static InputChoice choice_of(lua_State *L, int t)
{
    return (InputChoice){
        .layer = option_integer(L, t, "layer", -1, 0, 100000),
        .n = option_integer(L, t, "n", 0, 1, INT64_C(1) << 40),
        .d = option_integer(L, t, "d", 0, 1, 65536),
        .heads = option_integer(L, t, "heads", 0, 1, 65536),
        .seed = (uint64_t)option_integer(L, t, "seed", (int64_t)script_of(L)->seed, 0, INT64_MAX),
    };
}

/* ---- one that nobody else has yet ----------------------------------------------- */

typedef struct Loading {
    LuaInput     *input; /* below it on the stack, as the spec is */
    const char   *spec;  /* NULL: as the shell would load it, by: */
    const Call   *options;
    InputChoice   choice;
    lua_KFunction then;
    int           top;   /* of the stack before */
    char          doing[80];
} Loading;

static bool read_input(void *context, const atomic_bool *cancel, Error *err)
{
    Loading *l = context;
    Session *s = l->input->session;

    l->choice.cancel = cancel;
    return l->spec ? session_load(s, l->spec, &l->choice, err)
                   : call_load_input(s, l->options, err);
}

/* The spec is at the top or NULL.  [-0, +?, v] */
static int load(lua_State *L, const char *spec, const InputChoice *choice, int top,
                lua_KFunction then, lua_KFunction loaded)
{
    LuaInput *input = input_push_empty(L);
    Loading  *l = lua_newuserdatauv(L, sizeof(*l), 0);

    *l = (Loading){ .input = input, .spec = spec, .options = &script_of(L)->options,
                    .choice = *choice, .then = then, .top = top };
    snprintf(l->doing, sizeof(l->doing), "loading %.60s", spec ? spec : "the input");
    return work_await(L, script_of(L)->session->thing, l->doing, read_input, loaded);
}

/* The spec at 1 with the names of arrays that the table at 2 gives: FILE[q=query,k=key].
 * [-0, +0 or 1, v] */
static const char *push_named(lua_State *L, const char *spec)
{
    static const char *const roles[] = { "q", "k", "v", "x", "attn", "tokens", "segments", NULL };
    const char              *whole = spec;

    for (int i = 0; roles[i]; i++) {
        const char *name = option_string(L, 2, roles[i], NULL);

        if (!name)
            continue;
        if (!*name || strpbrk(name, ",]"))
            luaL_error(L, "%s: '%s' cannot be the name of an array here; attn.read and attn.input "
                       "take any", roles[i], name);
        whole = lua_pushfstring(L, "%s%s%s=%s", whole, whole == spec ? "[" : ",", roles[i], name);
    }
    return whole == spec ? spec : lua_pushfstring(L, "%s]", whole);
}

/* [-0, +1 or 3, v] */
int attn_load(lua_State *L)
{
    const char *spec = check_text(L, 1);
    InputChoice choice;

    lua_settop(L, 2);
    options_check(L, 2, &class_input_options);
    choice = choice_of(L, 2);
    spec = push_named(L, spec);
    return load(L, spec, &choice, 2, NULL, input_push_worked);
}

/* ---- those of runs ------------------------------------------------------------- */

/* The table of inputs by name; its values are weak.  [-0, +1, m] */
static void push_known(lua_State *L)
{
    if (luaL_getsubtable(L, LUA_REGISTRYINDEX, "attnscope.inputs"))
        return;
    lua_newtable(L);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
}

/* A known one that was closed meanwhile is loaded again. */
static bool is_open(lua_State *L)
{
    const LuaInput *input = class_test(L, -1, &class_input);

    return input && input->keep;
}

/* The key of what was loaded lies above the old top, the input below the Loading. */
static int go_on_loaded(lua_State *L, int status, lua_KContext at)
{
    Loading      *l = work_context(L, at);
    lua_KFunction then = l->then;
    int           top = l->top;

    if (input_push_worked(L, status, at) != 1)
        return 3;
    push_known(L);
    lua_pushvalue(L, top + 1);
    lua_pushvalue(L, (int)at - 2);
    lua_rawset(L, -3);
    lua_pushvalue(L, (int)at - 2); /* below lies what is still to be closed */
    return then(L, LUA_OK, 0);
}

/* What the explorer shows, where nothing else is asked for; it lies on the stack.  [-0, +1, m] */
static const char *push_spec(lua_State *L, const char *spec, InputChoice *choice)
{
    const Control *control = script_of(L)->control;
    bool           chosen = choice->n || choice->d || choice->heads || choice->layer >= 0;
    InputChoice    shown;

    if (control && !spec && !chosen) {
        spec = control->input(control->ui, &shown);
        *choice = spec ? shown : *choice;
    }
    return lua_pushstring(L, spec);
}

static int await_named(lua_State *L, const char *spec, InputChoice choice, lua_KFunction then)
{
    const char *given = script_of(L)->options.values[OPT_INPUT];
    int         top = lua_gettop(L);

    spec = push_spec(L, spec, &choice);
    lua_pushfstring(L, "%s|%I|%I|%I|%I|%I", spec ? spec : "", (lua_Integer)choice.layer,
                    (lua_Integer)choice.n, (lua_Integer)choice.d, (lua_Integer)choice.heads,
                    (lua_Integer)choice.seed);
    lua_insert(L, top + 1);
    push_known(L);
    lua_pushvalue(L, top + 1);
    lua_rawget(L, -2);
    if (is_open(L)) {
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return then(L, LUA_OK, 0);
    }
    if (!spec && (choice.n || choice.d || choice.heads || choice.layer >= 0))
        spec = given ? given : "synthetic:normal";
    return load(L, spec, &choice, top, then, go_on_loaded);
}

int input_await(lua_State *L, int t, lua_KFunction then)
{
    InputChoice choice = choice_of(L, t);

    if (lua_getfield(L, t, "input") == LUA_TUSERDATA) {
        if (!class_test(L, -1, &class_input))
            luaL_error(L, "input: expected an Input or its name, got %s", luaL_typename(L, -1));
        if (choice.n || choice.d || choice.heads || choice.layer >= 0)
            luaL_error(L, "n, d, heads and layer choose while loading; the input here is loaded");
        if (!is_open(L))
            luaL_error(L, "input: it is closed");
        return then(L, LUA_OK, 0);
    }
    lua_pop(L, 1);
    return await_named(L, option_string(L, t, "input", NULL), choice, then);
}
