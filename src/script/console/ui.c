/* ui.c -- the table ui and its panes: what a script does with the explorer.
 *
 * Names and values are those of a saved session, so what a session file can say, a
 * script can set.
 */
#include <string.h>

#include "profile/measure.h"
#include "script/host/turn.h"

#define PAIRS_MOST 64

static const Control *control_of(lua_State *L)
{
    const Control *control = script_of(L)->control;

    if (!control)
        luaL_error(L, "ui needs the interactive program: attnscope --script FILE, or ; in it "
                   "(attn.has_ui says so)");
    return control;
}

/* true, or what it refused.  [-0, +1 or 3, v] */
static int outcome(lua_State *L, bool ok, const Error *err)
{
    if (!ok)
        return failure(L, err);
    lua_pushboolean(L, true);
    return 1;
}

/* The value at `at` as a saved session writes it.  [-0, +1, v] */
static const char *push_setting(lua_State *L, int at, const char *name)
{
    switch (lua_type(L, at)) {
    case LUA_TBOOLEAN: return lua_pushstring(L, lua_toboolean(L, at) ? "yes" : "no");
    case LUA_TNUMBER:
        if (lua_isinteger(L, at))
            return lua_pushfstring(L, "%I", lua_tointeger(L, at));
        return lua_pushfstring(L, "%f", lua_tonumber(L, at));
    case LUA_TSTRING: lua_pushvalue(L, at); return lua_tostring(L, -1);
    default:
        luaL_error(L, "%s: expected a number, text or boolean, got %s", name,
                   luaL_typename(L, at));
        return NULL;
    }
}

/* "12", "yes", "weights" as number, boolean and string.  [-0, +1, m] */
static void push_parsed(lua_State *L, const char *text, size_t length)
{
    lua_pushlstring(L, text, length);
    if (lua_stringtonumber(L, lua_tostring(L, -1)))
        lua_remove(L, -2);
    else if ((length == 3 && !strncmp(text, "yes", 3)) || (length == 2 && !strncmp(text, "no", 2)))
        lua_pushboolean(L, length == 3), lua_remove(L, -2);
}

void push_lines(lua_State *L, const char *lines)
{
    lua_newtable(L);
    for (const char *at = lines; *at;) {
        size_t length = strcspn(at, "\n"), name = strcspn(at, " \n");

        lua_pushlstring(L, at, name);
        push_parsed(L, at + name + (name < length), length - name - (name < length));
        lua_rawset(L, -3);
        at += length + (at[length] == '\n');
    }
}

/* ---- panes ------------------------------------------------------------------ */

typedef struct LuaPane {
    int number;
} LuaPane;

static int push_pane(lua_State *L, int number)
{
    LuaPane *pane = class_push(L, &class_pane, sizeof(*pane), 0);

    pane->number = number;
    return 1;
}

static int pane_of(lua_State *L)
{
    return ((LuaPane *)class_check(L, 1, &class_pane))->number;
}

/* [-0, +1, v] */
static int pane_describe(lua_State *L)
{
    lua_pushfstring(L, "Pane %d", pane_of(L));
    return 1;
}

FIELD_GETTER(pane_number, lua_pushinteger, pane_of(L))

/* [-0, +1 or 3, v] */
static int pane_set(lua_State *L)
{
    const Control *control = control_of(L);
    const char  *names[PAIRS_MOST], *values[PAIRS_MOST];
    Error        err = ERROR_INIT;
    int          number = pane_of(L), count = 0;

    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checkstack(L, 2 * PAIRS_MOST + 8, "settings");
    lua_settop(L, 2);
    for (lua_pushnil(L); lua_next(L, 2);) {
        if (lua_type(L, -2) != LUA_TSTRING)
            return luaL_error(L, "settings are named, like window=5, but a key is a %s",
                              luaL_typename(L, -2));
        luaL_argcheck(L, count < PAIRS_MOST, 2, "too many settings");
        names[count] = lua_tostring(L, -2);
        values[count] = push_setting(L, -1, names[count]);
        count++;
        lua_replace(L, -2); /* the text stays below the next key */
        lua_insert(L, -2);
    }
    return outcome(L, control->pane_set(control->ui, number, names, values, count, &err), &err);
}

/* [-0, +1 or 3, v] */
static int pane_state(lua_State *L)
{
    const Control *control = control_of(L);
    Text          *text = text_box(L);
    Error          err = ERROR_INIT;

    if (!control->pane_get(control->ui, pane_of(L), text, &err))
        return failure(L, &err);
    push_lines(L, text_str(text));
    return 1;
}

/* [-0, +1 or 3, v] */
static int pane_zoom(lua_State *L)
{
    const Control *control = control_of(L);
    Region       region;
    Error        err = ERROR_INIT;
    bool         all = lua_isnoneornil(L, 2);

    if (!all)
        region = check_region(L, 2, INT64_C(1) << 40, INT64_C(1) << 40);
    return outcome(L, control->pane_zoom(control->ui, pane_of(L), all ? NULL : &region, &err),
                   &err);
}

/* [-0, +1 or 3, v] */
static int pane_cursor(lua_State *L)
{
    static const char *const names[] = { "query", "key" };
    const Control *control = control_of(L);
    const char  *values[2];
    Error        err = ERROR_INIT;

    luaL_checkinteger(L, 2);
    luaL_checkinteger(L, 3);
    values[0] = push_setting(L, 2, "query");
    values[1] = push_setting(L, 3, "key");
    return outcome(L, control->pane_set(control->ui, pane_of(L), names, values, 2, &err), &err);
}

/* [-0, +1 or 3, v] */
static int pane_shut(lua_State *L)
{
    const Control *control = control_of(L);
    Error          err = ERROR_INIT;

    return outcome(L, control->pane_close(control->ui, pane_of(L), &err), &err);
}

/* ---- ui --------------------------------------------------------------------- */

/* [-0, +1 or 3, v] */
static int ui_open(lua_State *L)
{
    const Control *control = control_of(L);
    Error          err = ERROR_INIT;
    int          number = control->pane_open(control->ui, check_text(L, 1), &err);

    return number ? push_pane(L, number) : failure(L, &err);
}

/* [-0, +1, v] */
static int ui_pane(lua_State *L)
{
    const Control *control = control_of(L);
    int            focus, count = control->panes(control->ui, &focus);
    lua_Integer  number = luaL_optinteger(L, 1, focus);

    if (number < 1 || number > count)
        return luaL_error(L, "there is no pane %I: %d are open", number, count);
    return push_pane(L, (int)number);
}

/* [-0, +1, v] */
static int ui_panes(lua_State *L)
{
    const Control *control = control_of(L);
    int            focus, count = control->panes(control->ui, &focus);

    lua_createtable(L, count, 0);
    for (int i = 1; i <= count; i++) {
        push_pane(L, i);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

/* Calls a function of the explorer with the text at 1.  [-0, +1 or 3, v] */
static int with_text(lua_State *L, bool (*call)(void *ui, const char *text, Error *err))
{
    Error err = ERROR_INIT;

    return outcome(L, call(control_of(L)->ui, check_text(L, 1), &err), &err);
}

static FUNCTION_WITH(ui_action, with_text, control_of(L)->act)
static FUNCTION_WITH(ui_enter, with_text, control_of(L)->enter)
static FUNCTION_WITH(ui_keys, with_text, control_of(L)->press)
static FUNCTION_WITH(ui_export, with_text, control_of(L)->write)

/* [-0, +0, v] */
static int ui_message(lua_State *L)
{
    const Control *control = control_of(L);

    control->say(control->ui, luaL_tolstring(L, 1, NULL));
    return 0;
}

/* [-0, +0, v] */
static int ui_sleep(lua_State *L)
{
    double seconds = luaL_checknumber(L, 1);

    control_of(L);
    luaL_argcheck(L, seconds >= 0 && seconds <= 86400, 1, "expected seconds from 0 to 86400");
    return turn_wait(L, TASK_SLEEPS, clock_wall() + seconds, 0, NULL);
}

/* [-0, +0, v] */
static int ui_wait(lua_State *L)
{
    control_of(L);
    return turn_wait(L, TASK_SETTLES, 0, 0, NULL);
}

/* The answer becomes the result of the wait.  [-0, +1, v] */
static int ui_ask(lua_State *L)
{
    const Control *control = control_of(L);
    Error          err = ERROR_INIT;

    if (!control->ask(control->ui, check_text(L, 1), &err))
        return failure(L, &err);
    return turn_wait(L, TASK_ASKS, 0, 0, NULL);
}

/* A function as a reference that stays. */
static int keep_function(lua_State *L, int at)
{
    luaL_checktype(L, at, LUA_TFUNCTION);
    lua_pushvalue(L, at);
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

/* As outcome; a function (0: none) that the explorer refused is let go.  [-0, +1 or 3, v] */
static int kept_or_not(lua_State *L, bool ok, int function, const Error *err)
{
    if (!ok && function)
        luaL_unref(L, LUA_REGISTRYINDEX, function);
    return outcome(L, ok, err);
}

/* [-0, +1 or 3, v] */
static int ui_map(lua_State *L)
{
    const Control *control = control_of(L);
    const char  *where, *key, *action = NULL;
    Error        err = ERROR_INIT;
    int          function = 0;

    if (lua_gettop(L) == 2) { /* as neovim has it: a key and a function */
        lua_pushliteral(L, "all");
        lua_insert(L, 1);
    }
    where = check_text(L, 1);
    key = check_text(L, 2);
    if (lua_type(L, 3) == LUA_TSTRING)
        action = lua_tostring(L, 3);
    else
        function = keep_function(L, 3);
    return kept_or_not(L, control->map(control->ui, where, key, action, function, &err), function,
                       &err);
}

/* [-0, +1 or 3, v] */
static int ui_command(lua_State *L)
{
    const Control *control = control_of(L);
    const char    *name = check_text(L, 1), *help = luaL_optstring(L, 3, "");
    Error          err = ERROR_INIT;
    int            function = keep_function(L, 2);

    return kept_or_not(L, control->command(control->ui, name, help, function, &err), function,
                       &err);
}

/* [-0, +1 or 3, v] */
static int ui_set(lua_State *L)
{
    const Control *control = control_of(L);
    Error          err = ERROR_INIT;
    bool         ok = true;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    for (lua_pushnil(L); ok && lua_next(L, 1); lua_pop(L, 2)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            return luaL_error(L, "settings are named, like linked=true, but a key is a %s",
                              luaL_typename(L, -2));
        push_setting(L, -1, lua_tostring(L, -2));
        ok = control->set(control->ui, lua_tostring(L, -3), lua_tostring(L, -1), &err);
    }
    return outcome(L, ok, &err);
}

/* [-0, +1 or 3, v] */
static int ui_state(lua_State *L)
{
    const Control *control = control_of(L);
    Text          *text = text_box(L);
    Error          err = ERROR_INIT;

    if (!control->get(control->ui, text, &err))
        return failure(L, &err);
    push_lines(L, text_str(text));
    return 1;
}

/* [-0, +1 or 3, v] */
static int ui_mark(lua_State *L)
{
    const Control *control = control_of(L);
    int64_t      queries[PAIRS_MOST];
    lua_Integer  count;
    Error        err = ERROR_INIT;

    luaL_checktype(L, 1, LUA_TTABLE);
    count = luaL_len(L, 1);
    luaL_argcheck(L, count <= PAIRS_MOST, 1, "too many queries");
    for (lua_Integer i = 0; i < count; i++) {
        lua_geti(L, 1, i + 1);
        queries[i] = luaL_checkinteger(L, -1);
        luaL_argcheck(L, queries[i] >= 0, 1, "queries count from 0");
        lua_pop(L, 1);
    }
    return outcome(L, control->mark(control->ui, queries, (int)count, &err), &err);
}

/* [-0, +0, v] */
static int ui_leave(lua_State *L)
{
    const Control *control = control_of(L);

    control->leave(control->ui);
    return 0;
}

/* ---- tables ----------------------------------------------------------------- */

#define TRUE_OR_FAILURE "true?, string?, string?"

static const luaL_Reg pane_meta[] = { { "__tostring", pane_describe }, { NULL, NULL } };

static const Member pane_members[] = {
    { "number", pane_number, NULL, "integer", "as on the screen, from 1" },
    { "set", pane_set, "settings: table<string, any>", TRUE_OR_FAILURE,
      "Parameters and settings, at once: pane:set{ window = 5, view = \"weights\", head = 1 }.  "
      "Names are those of a saved session (view, head, round, pool, scale, colours, sorted, "
      "position, seed, causal, query, key, ...), mechanism, and the mechanism's "
      "parameters, which may also stand in a table params." },
    { "state", pane_state, "", "table" "?, string?, string?",
      "What it shows, by the same names: mechanism, view, head, query, key, running, problem; "
      "what is as usual is absent." },
    { "zoom", pane_zoom, "region?: table", TRUE_OR_FAILURE,
      "Brings a region into sight: { q = { 0, 64 }, k = { 0, 64 } }; nothing: all of it." },
    { "cursor", pane_cursor, "query: integer, key: integer", TRUE_OR_FAILURE,
      "Puts the cursor there; linked panes follow." },
    { "highlight", NULL, "note?: { q?: integer, k?: integer, text?: string }", TRUE_OR_FAILURE,
      "Marks a cell, or without one of them a whole column or row, with a few words: "
      "pane:highlight{ q = 5, k = 3, text = \"near itself\" }.  Eight at most; nothing takes all "
      "of them away.  Files that are written, saved sessions and undo have them too." },
    { "close", pane_shut, "", TRUE_OR_FAILURE, "Closes it; those after it move up." },
    MEMBER_END,
};
const Class class_pane = { .name = "Pane", .help = "A pane of the explorer, by its number.",
                           .members = pane_members, .meta = pane_meta,
                           .instead = "pane:set{ NAME = ... } changes what it shows" };

static const Member ui_members[] = {
    { "open", ui_open, "text: string", "attnscope.Pane" "?, string?, string?",
      "A pane more: \"bigbird(window=5):weights@1\"." },
    { "pane", ui_pane, "number?: integer", "attnscope.Pane", "Default: the focused one." },
    { "panes", ui_panes, "", "attnscope.Pane[]", "All that are open." },
    { "set", ui_set, "settings: table<string, any>", TRUE_OR_FAILURE,
      "Settings of the screen: screen (browse, compare, step, profile), linked, alone, difference, "
      "labels, strips, own-scales, theme, glyphs, focus, step (a stage from 0), playing, pace "
      "(seconds a stage), layout (panes as ROWSxCOLS where there is room; \"\": as their matrices "
      "are largest)." },
    { "play", NULL, "on?: boolean|number", TRUE_OR_FAILURE,
      "Goes to the step screen and on from stage to stage, so many a second if it is a number; "
      "false or 0 stops." },
    { "lesson", NULL, "name: string", TRUE_OR_FAILURE,
      "Opens a lesson: one of attn.lessons(), or a file (docs/lessons.md)." },
    { "session", NULL, "path: string", TRUE_OR_FAILURE,
      "Saves the session; ui.enter \"restore PATH\" brings it back." },
    { "state", ui_state, "", "table" "?, string?, string?", "The same as they are now." },
    { "action", ui_action, "id: string", TRUE_OR_FAILURE,
      "What a key does, by its name: ui.action \"difference\"; docs/keys.md lists them." },
    { "keys", ui_keys, "keys: string", TRUE_OR_FAILURE,
      "Keys as if pressed: ui.keys \"j j S-Right\"." },
    { "enter", ui_enter, "line: string", TRUE_OR_FAILURE,
      "A line as typed after a colon: ui.enter \"restore figure-3\"." },
    { "export", ui_export, "path: string", TRUE_OR_FAILURE,
      "Begins to write what is on the screen, one file at a time; ui.wait waits for it.  Refused "
      "at once: another ending, a folder that cannot be written." },
    { "mark", ui_mark, "queries: integer[]", TRUE_OR_FAILURE,
      "Marks these queries and no others; {} marks none." },
    { "message", ui_message, "text: any", "", "A line at the bottom." },
    { "ask", ui_ask, "question: string, choices?: string[]", "string?",
      "Waits for a typed answer; nil: Esc.  Of choices it is one, of which the beginning was "
      "typed; until then the question comes again." },
    { "sleep", ui_sleep, "seconds: number", "", "Waits; the explorer lives on." },
    { "wait", ui_wait, "", "", "Until all runs are done and drawn." },
    { "animate", NULL, "rate: number, frame: fun(i: integer): boolean?", "integer",
      "Calls frame(0), frame(1), ... so many times a second, each when the one before is drawn, "
      "until it gives false; the number of frames." },
    { "map", ui_map, "where: string, key: string, action: string|function", TRUE_OR_FAILURE,
      "A key in all, browse, compare, step or profile: an action's name or a function; "
      "ui.map(\"F5\", f) is in all." },
    { "command", ui_command, "name: string, f: fun(rest: string), help?: string", TRUE_OR_FAILURE,
      "A command of your own, typed as :name WORDS; f gets the words as one text.  Tab completes "
      "its name, and messages show the help.  Names of the explorer's own are refused." },
    { "leave", ui_leave, "", "", "Leaves the explorer." },
    MEMBER_END,
};
const Class class_ui = {
    .name = "ui",
    .help = "The explorer, for scripts in it; elsewhere every function raises (attn.has_ui).",
    .members = ui_members,
};
