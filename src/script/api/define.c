/* define.c -- see define.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "app/scripting.h"
#include "app/scripts.h"
#include "script/api/define.h"

#define SLOT       128  /* bytes of a bound parameter: the largest is a Tensor */
#define LOOK_EVERY 1000 /* instructions between checks of the cancel flag */

_Static_assert(sizeof(Tensor) <= SLOT, "a parameter fits its slot");

/* ---- calls from a run ------------------------------------------------------- */

Callback *define_callback(lua_State *L)
{
    return lua_touserdata(L, 1);
}

static void look_hook(lua_State *L, lua_Debug *unused)
{
    const Script *script = script_of(L);

    (void)unused;
    if (script->run && (script->closing || run_failed(script->run)))
        luaL_error(L, "interrupted");
    script_hand_over(script_of(L));
}

static void call_in(Script *script, Run *r, lua_State *L, Callback *callback, lua_CFunction body)
{
    bool gave_way = script->gives_way;

    script->run = script->computing = r;
    script->gives_way = false; /* the run waits for it */
    script->charge = FLOP_OVERHEAD;
    script->uncharged = false;
    lua_sethook(L, look_hook, LUA_MASKCOUNT, LOOK_EVERY);
    lua_settop(L, 0);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, callback);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        run_fail(r, ERR_SCRIPT, "%s: %.400s", r->mechanism->id,
                 lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "the script failed");
    lua_settop(L, 0);
    script->gives_way = gave_way;
    script->run = script->computing = NULL;
}

/* The Lua thread for callbacks was created before: creating it here may raise an error that nothing
 * catches. */
void define_call(Callback *callback, lua_CFunction body)
{
    Script    *script = callback->defined->script;
    Run       *r = callback->run;
    lua_State *L;

    if (run_failed(r))
        return;
    if (!script_enter_run(script, r))
        return;
    L = script->caller;
    if (!L || script->run || script->closing)
        run_fail(r, ERR_UNSUPPORTED, "%s: %s", r->mechanism->id,
                 L && !script->closing ? "another mechanism of the script is running"
                                       : "its script has ended");
    else
        call_in(script, r, L, callback, body);
    script_leave(script);
}

static void push_tensor_copy(lua_State *L, const Tensor *t)
{
    if (t->data)
        tensor_push_copy(L, t, t->dtype);
    else
        lua_pushnil(L);
}

void define_push_params(lua_State *L, const Callback *callback)
{
    const char *values = callback->params;

    lua_newtable(L);
    for (const Param *p = callback->defined->m.params; p && p->name; p++) {
        const void *value = values + p->offset;

        switch (p->type) {
        case PARAM_TYPE_INT: lua_pushinteger(L, *(const int64_t *)value); break;
        case PARAM_TYPE_FLOAT: lua_pushnumber(L, *(const double *)value); break;
        case PARAM_TYPE_BOOL: lua_pushboolean(L, *(const bool *)value); break;
        case PARAM_TYPE_ENUM: lua_pushstring(L, p->choices[*(const int *)value]); break;
        case PARAM_TYPE_TEXT: lua_pushstring(L, *(const char *const *)value); break;
        default: push_tensor_copy(L, value); break;
        }
        lua_setfield(L, -2, p->name);
    }
}

/* ---- the descriptor --------------------------------------------------------- */

void *define_memory(lua_State *L, void *memory)
{
    if (!memory)
        luaL_error(L, "not enough memory for a mechanism, or a pattern");
    return memory;
}

/* Copies text `key` of the table at absolute index t into the definition's arena. */
static const char *kept_text(lua_State *L, Defined *d, int t, const char *key, const char *fallback)
{
    const char *text = option_string(L, t, key, fallback);

    return text ? define_memory(L, arena_strdup(d->arena, text)) : NULL;
}

static bool is_name(const char *text)
{
    size_t length =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return length > 0 && length < 40 && !text[length];
}

/* List `key` of the table at t: its length, with it at the top.  [-0, +1, v] */
static int open_list(lua_State *L, int t, const char *key)
{
    int type = lua_getfield(L, t, key);

    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, "%s: expected a list of tables, got %s", key, luaL_typename(L, -1));
    if (type == LUA_TNIL)
        return 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING) /* it would be no part of the list */
            luaL_error(L, "%s: expected a list, got the key '%s' (params = { { name = \"w\", "
                       "default = 3 } }, values = { \"a\", \"b\" })", key, lua_tostring(L, -2));
    return (int)lua_rawlen(L, -1);
}

static const char *const *read_choices(lua_State *L, Defined *d, int t)
{
    int          count = open_list(L, t, "values");
    const char **choices = define_memory(L, arena_zalloc(d->arena, count + 1, sizeof(*choices)));

    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, -1, i + 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "values: expected a list of texts");
        choices[i] = define_memory(L, arena_strdup(d->arena, lua_tostring(L, -1)));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (!count)
        luaL_error(L, "an enum needs its values: values = { \"a\", \"b\" }");
    return choices;
}

static double default_choice(lua_State *L, int t, const Param *p)
{
    const char *name = option_string(L, t, "default", p->choices[0]);

    for (int i = 0; p->choices[i]; i++)
        if (!strcmp(p->choices[i], name))
            return i;
    return luaL_error(L, "parameter %s: its default '%s' is none of its values", p->name, name);
}

static ParamType read_type(lua_State *L, int t)
{
    static const struct {
        const char *name;
        ParamType   type;
    } types[] = {
        { "int", PARAM_TYPE_INT },   { "float", PARAM_TYPE_FLOAT },
        { "bool", PARAM_TYPE_BOOL }, { "enum", PARAM_TYPE_ENUM },
        { "text", PARAM_TYPE_TEXT }, { "tensor", PARAM_TYPE_TENSOR },
    };
    const char *name = option_string(L, t, "type", "int");

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (!strcmp(types[i].name, name))
            return types[i].type;
    luaL_error(L, "type '%s': expected int, float, bool, enum, text or tensor", name);
    return PARAM_TYPE_INT;
}

static void read_default(lua_State *L, Defined *d, int t, Param *p)
{
    switch (p->type) {
    case PARAM_TYPE_INT:
        p->lo = (double)option_integer(L, t, "min", -(1ll << 52), -(1ll << 52), 1ll << 52);
        p->hi = (double)option_integer(L, t, "max", 1ll << 52, -(1ll << 52), 1ll << 52);
        p->fallback = (double)option_integer(L, t, "default", (int64_t)(p->lo > 0 ? p->lo : 0),
                                             (int64_t)p->lo, (int64_t)p->hi);
        break;
    case PARAM_TYPE_FLOAT:
        p->lo = option_number(L, t, "min", -1e30);
        p->hi = option_number(L, t, "max", 1e30);
        p->fallback = option_number(L, t, "default", p->lo > 0 ? p->lo : 0);
        if (!(p->fallback >= p->lo && p->fallback <= p->hi))
            luaL_error(L, "parameter %s: its default is outside its range", p->name);
        break;
    case PARAM_TYPE_BOOL:
        p->hi = 1;
        p->fallback = option_bool(L, t, "default", false);
        break;
    case PARAM_TYPE_ENUM:
        p->choices = read_choices(L, d, t);
        p->fallback = default_choice(L, t, p);
        break;
    case PARAM_TYPE_TEXT:
        p->optional = true;
        p->word = kept_text(L, d, t, "default", NULL);
        break;
    default: p->shape = kept_text(L, d, t, "shape", "any"); break;
    }
}

/* Reads one parameter from the table at the top.  [-0, +0, v] */
static void read_param(lua_State *L, Defined *d, Param *p, int index)
{
    int t = lua_gettop(L);

    options_check(L, t, &class_param_options);
    p->name = kept_text(L, d, t, "name", "");
    if (!is_name(p->name))
        luaL_error(L, "parameter %d: name '%s': expected letters, digits, _ and -", index + 1,
                   p->name);
    if (class_has(&class_run_options, p->name))
        luaL_error(L, "parameter %s: every run has an option of that name", p->name);
    p->type = read_type(L, t);
    p->offset = (size_t)index * SLOT;
    p->help = kept_text(L, d, t, "help", "");
    read_default(L, d, t, p);
}

static void read_params(lua_State *L, Defined *d)
{
    int    count = open_list(L, 1, "params");
    Param *params = define_memory(L, arena_zalloc(d->arena, count + 1, sizeof(*params)));

    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, -1, i + 1);
        read_param(L, d, &params[i], i);
        if (params_find(params, params[i].name) != &params[i])
            luaL_error(L, "parameter %s is there twice", params[i].name);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    d->m.params = params;
    d->m.params_size = (size_t)(count ? count : 1) * SLOT;
}

/* The class whose name these characters are. */
static unsigned one_class(lua_State *L, const char *name, size_t length)
{
    for (unsigned bit = CLASS_FP; bit <= CLASS_LAB; bit <<= 1)
        if (strlen(class_name(bit)) == length && !strncmp(class_name(bit), name, length))
            return bit;
    lua_pushlstring(L, name, length);
    return (unsigned)luaL_error(L,
                                "class: unknown '%s'; expected some of the surveys' like FP, LP, "
                                "LR, KR, or LAB, as in FP+KR",
                                lua_tostring(L, -1));
}

/* "FP+KR", as cards show it. */
static unsigned read_classes(lua_State *L, const char *text)
{
    unsigned classes = 0;
    size_t   length;

    for (;; text += length + 1) {
        length = strcspn(text, "+");
        classes |= one_class(L, text, length);
        if (!text[length])
            return classes;
    }
}

/* What the stages do: a table of the stages' names and sentences. */
static const StageNote *read_notes(lua_State *L, Defined *d)
{
    int        type = lua_getfield(L, 1, "notes"), count = 0;
    StageNote *notes;

    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, "notes: expected a table { STAGE = \"what it does\" }, got %s",
                   luaL_typename(L, -1));
    for (lua_pushnil(L); type == LUA_TTABLE && lua_next(L, -2); lua_pop(L, 1), count++)
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "notes: expected { STAGE = \"what it does\" }, texts both");
    notes = count ? define_memory(L, arena_zalloc(d->arena, count + 1, sizeof(*notes))) : NULL;
    count = 0;
    for (lua_pushnil(L); notes && lua_next(L, -2); lua_pop(L, 1), count++) {
        notes[count].stage = define_memory(L, arena_strdup(d->arena, lua_tostring(L, -2)));
        notes[count].note = define_memory(L, arena_strdup(d->arena, lua_tostring(L, -1)));
    }
    lua_pop(L, 1);
    return notes;
}

static void read_texts(lua_State *L, Defined *d)
{
    Mechanism *m = &d->m;

    m->id = kept_text(L, d, 1, "id", "");
    if (!is_name(m->id))
        luaL_error(L, "id '%s': expected letters, digits, _ and -, 39 at most", m->id);
    m->title = kept_text(L, d, 1, "title", m->id);
    m->authors = kept_text(L, d, 1, "authors", "you");
    m->year = (int)option_integer(L, 1, "year", 0, 0, 9999);
    m->arxiv = kept_text(L, d, 1, "arxiv", NULL);
    m->source = kept_text(L, d, 1, "source", "a script");
    m->formula = kept_text(L, d, 1, "formula", "as its script computes it");
    m->problem = kept_text(L, d, 1, "problem", NULL);
    m->idea = kept_text(L, d, 1, "idea", NULL);
    m->price = kept_text(L, d, 1, "price", NULL);
    if ((m->problem || m->idea || m->price) && !(m->problem && m->idea && m->price))
        luaL_error(L, "problem, idea and price stand on a card together: %s is missing",
                   !m->problem ? "problem" : !m->idea ? "idea" : "price");
    m->teaches = kept_text(L, d, 1, "teaches", "");
    m->example = kept_text(L, d, 1, "example", NULL);
    m->claim_time = kept_text(L, d, 1, "claim_time", "not stated");
    m->claim_memory = kept_text(L, d, 1, "claim_memory", "not stated");
    m->claim_decode = "not stated";
    m->claim_exponent = option_number(L, 1, "claim_exponent", 0);
    m->causal = option_bool(L, 1, "causal", true);
    m->no_causal = m->causal ? NULL : "its script says so";
    m->cross = option_bool(L, 1, "cross", false);
}

Defined *define_read(lua_State *L, const Class *class)
{
    Arena     *arena;
    Defined   *d;
    LuaTensor *holder;

    luaL_checktype(L, 1, LUA_TTABLE);
    options_check(L, 1, class);
    lua_settop(L, 1);
    holder = tensor_push_closed(L); /* frees the arena when an error is raised */
    arena = define_memory(L, arena_new());
    holder->keep = keep_new(arena, drop_arena, NULL);
    define_memory(L, holder->keep);
    d = define_memory(L, arena_zalloc(arena, 1, sizeof(*d)));
    d->arena = arena;
    d->script = script_of(L);
    d->m.script = d->script->source;
    d->function = d->flops = d->weights = LUA_NOREF;
    read_texts(L, d);
    d->m.notes = read_notes(L, d);
    read_params(L, d);
    d->m.classes = read_classes(L, option_string(L, 1, "class", "LAB"));
    return d;
}

int define_function(lua_State *L, const char *key, bool needed)
{
    int type = lua_getfield(L, 1, key);

    if (type != LUA_TFUNCTION && (needed || type != LUA_TNIL))
        luaL_error(L, "%s: expected a function, got %s", key, luaL_typename(L, -1));
    if (type == LUA_TFUNCTION)
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return LUA_NOREF;
}

static void open_caller(lua_State *L, Script *script)
{
    if (script->caller)
        return;
    script->caller = lua_newthread(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script->caller);
    if (!lua_checkstack(script->caller, LUA_MINSTACK))
        luaL_error(L, "not enough memory for a mechanism");
}

int define_add(lua_State *L, Defined *d)
{
    Script    *script = d->script;
    LuaTensor *holder = class_check(L, 2, &class_tensor);
    Error      err = ERROR_INIT;

    open_caller(L, script);
    lua_pushstring(L, d->m.id);
    if (!mechanism_add(&d->m, &err))
        return failure(L, &err);
    d->next = script->defined;
    script->defined = d;
    keep_retain(holder->keep); /* released with the script */
    d->keep = holder->keep;
    return 1;
}

void script_forget(Script *script)
{
    Defined *next;

    mechanism_forget();
    for (Defined *d = script->defined; d; d = next) {
        next = d->next;
        keep_release(d->keep);
    }
    script->defined = NULL;
    scripts_forget();
    arena_free(script->names);
    script->names = NULL;
}

static const Member param_members[] = {
    FIELD("name", "string", "as it is given: window"),
    FIELD("type", "string", "int (default), float, bool, enum, text or tensor"),
    FIELD("default", "any", "value when it is not given"),
    FIELD("min", "number", "smallest value"),
    FIELD("max", "number", "largest value"),
    FIELD("values", "string[]", "of an enum"),
    FIELD("shape", "string", "of a tensor, for readers"),
    FIELD("help", "string", "one line"),
    MEMBER_END,
};
const Class class_param_options = { .name = "Param",
                                    .help = "A parameter of a mechanism.",
                                    .members = param_members };

/* attn.reload: a script's file runs again, and its definitions replace the earlier ones. */

/* A newer definition has the same id. */
static bool is_replaced(const Defined *newest, const Defined *d)
{
    for (; newest != d; newest = newest->next)
        if (!strcmp(newest->m.id, d->m.id))
            return true;
    return false;
}

/* A list of the ids that were defined after `before`, oldest first.  In the explorer they are
 * drawn anew.  [-0, +1, v] */
static void push_defined_since(lua_State *L, const Defined *before)
{
    const Script *script = script_of(L);
    lua_Integer   at = 0;

    for (const Defined *d = script->defined; d != before; d = d->next)
        at += !is_replaced(script->defined, d);
    lua_createtable(L, (int)at, 0);
    for (const Defined *d = script->defined; d != before; d = d->next) {
        if (is_replaced(script->defined, d))
            continue;
        lua_pushstring(L, d->m.id);
        lua_rawseti(L, -2, at--);
        if (script->control)
            script->control->redefined(script->control->ui, d->m.id);
    }
}

/* Continues after the file has run or raised an error.  [-0, +1 or 3, v] */
static int reloaded(lua_State *L, int status, lua_KContext before)
{
    Error err = ERROR_INIT;

    if (status == LUA_OK || status == LUA_YIELD) {
        push_defined_since(L, (const Defined *)before);
        return 1;
    }
    error_set(&err, ERR_SCRIPT, "%.400s",
              lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "the script failed");
    return failure(L, &err);
}

/* [-0, +1 or 3, v] */
int attn_reload(lua_State *L)
{
    const char  *name = check_text(L, 1);
    lua_KContext before = (lua_KContext)script_of(L)->defined;
    Error        err = ERROR_INIT;

    if (script_of(L)->run)
        return luaL_error(L, "a mechanism cannot reload scripts while it runs");
    lua_settop(L, 1);
    script_push_file(L, name);
    if (!*lua_tostring(L, -1)) {
        error_set(&err, ERR_FILE, "%s: no such script, neither here nor among the user's and the "
                  "shipped ones", name);
        return failure(L, &err);
    }
    if (access(lua_tostring(L, -1), R_OK) != 0) {
        error_set(&err, ERR_FILE, "%s: cannot be opened: %s", name, strerror(errno));
        return failure(L, &err);
    }
    script_take_file(L, lua_tostring(L, -1));
    if (luaL_loadfilex(L, lua_tostring(L, -1), "t") != LUA_OK) {
        error_set(&err, ERR_SCRIPT, "%.400s", lua_tostring(L, -1));
        return failure(L, &err);
    }
    return reloaded(L, lua_pcallk(L, 0, 0, 0, before, reloaded), before);
}
