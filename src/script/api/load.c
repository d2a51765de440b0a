/* load.c -- inputs by name in Lua: read from a file or generated, by a worker.
 *
 * Inputs that a run requests are cached while something holds them.
 */
#include <stdio.h>
#include <string.h>

#include "app/scripting.h"
#include "app/session/model_input.h"
#include "script/host/work.h"

static const Member options_members[] = {
    FIELD("layer", "integer", "layer of the file; else the first it holds"),
    FIELD("n", "integer", "length: cuts a file, sizes a generator"),
    FIELD("d", "integer", "head size of generated q, k, v"),
    FIELD("heads", "integer", "heads of generated q, k, v"),
    FIELD("seed", "integer", "of generated q, k, v"),
    FIELD("q", "string", "name of the file's array that is q, where it is another"),
    FIELD("k", "string", "of k"),
    FIELD("v", "string", "of v"),
    FIELD("x", "string", "of x"),
    FIELD("attn", "string", "of finished weights"),
    FIELD("tokens", "string", "of the tokens' labels"),
    FIELD("segments", "string", "of the positions' documents"),
    FIELD("text", "string", "of a model: the file that it reads, or sample:NAME"),
    FIELD("ids", "string", "of a model: a file of token ids instead"),
    FIELD("max_tokens", "integer", "of a model: at most this many tokens"),
    FIELD("special", "boolean", "of a model: with the tokens around a text (default true)"),
    MEMBER_END,
};
const Class class_input_options = { .name = "InputOptions", .help = "What to take of a source.",
                                    .members = options_members };

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
    const char   *spec;  /* NULL: load by `choice`, as the command line does */
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
    return work_await_end(L, script_of(L)->session->thing, l->doing, read_input, loaded);
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

/* The spec at 1 with the text that the table at 2 gives: model:PATH[text=FILE].
 * [-0, +0 or 1, v] */
static const char *push_model(lua_State *L, const char *spec)
{
    ModelText text = { .text = option_string(L, 2, "text", NULL),
                       .ids = option_string(L, 2, "ids", NULL),
                       .most = option_integer(L, 2, "max_tokens", 0, 1, INT64_C(1) << 40),
                       .bare = !option_bool(L, 2, "special", true) };
    Text      whole = { 0 };
    Error     err = ERROR_INIT;

    if (!text.text && !text.ids && !text.most && !text.bare)
        return spec;
    if (!model_spec_is(spec))
        luaL_error(L, "text, ids, max_tokens and special are of a model: 'model:PATH', not '%s'",
                   spec);
    if (text.text && text.ids)
        luaL_error(L, "choose one of text and ids");
    if (model_spec_write(spec, &text, &whole, &err))
        lua_pushstring(L, text_str(&whole));
    else
        lua_pushstring(L, err.text);
    text_free(&whole);
    return err.code == ERR_NONE ? lua_tostring(L, -1) : (lua_error(L), NULL);
}

/* [-0, +1 or 3, v] */
int attn_load(lua_State *L)
{
    const char *spec = check_text(L, 1);
    InputChoice choice;

    lua_settop(L, 2);
    options_check(L, 2, &class_input_options);
    choice = choice_of(L, 2);
    spec = push_model(L, push_named(L, spec));
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
    lua_pushvalue(L, (int)at - 2); /* the values below are still to be closed */
    return then(L, LUA_OK, 0);
}

/* The explorer's input, where no other is requested; kept by the stack.  [-0, +1, m] */
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
