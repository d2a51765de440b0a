/* console.c -- see console.h.
 *
 * Scripts find print, streams and os.exit that do nothing to the terminal, and functions of the
 * module that let the screen live while they wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/measure.h"
#include "script/console/console.h"
#include "script/host/state.h"
#include "script/host/work.h"
#include "script/script.h"

#define OUTPUT_MOST 200000 /* bytes; then the older half goes */

/* ---- output ----------------------------------------------------------------- */

static void trim(Text *output)
{
    const char *half, *line;
    size_t      kept;

    if (output->length < OUTPUT_MOST || !output->data)
        return;
    half = output->data + output->length / 2;
    line = strchr(half, '\n');
    kept = line ? output->length - (size_t)(line + 1 - output->data) : 0;
    memmove(output->data, output->data + output->length - kept, kept);
    output->data[kept] = '\0';
    output->length = kept;
}

static void console_add(Console *c, const char *text)
{
    text_add_shown(&c->output, text, strlen(text), false);
    trim(&c->output);
}

static int console_print(lua_State *L)
{
    Console *c = script_of(L)->console;
    int      count = lua_gettop(L);

    for (int i = 1; i <= count; i++) {
        console_add(c, luaL_tolstring(L, i, NULL));
        console_add(c, i < count ? "\t" : "\n");
        lua_pop(L, 1);
    }
    if (!count)
        console_add(c, "\n");
    return 0;
}

/* io.write and file:write of the standard streams.  [-n, +1, v] */
static int console_write(lua_State *L)
{
    Console *c = script_of(L)->console;

    for (int i = lua_istable(L, 1) ? 2 : 1; i <= lua_gettop(L); i++)
        console_add(c, luaL_checkstring(L, i));
    lua_settop(L, 1);
    return 1;
}

static int do_nothing(lua_State *L)
{
    (void)L;
    return 0;
}

static int leave_explorer(lua_State *L)
{
    const Control *control = script_of(L)->control;

    control->leave(control->ui);
    return luaL_error(L, "left");
}

/* ---- what scripts see ------------------------------------------------------- */

/* Waits let the screen live; standard streams write to the console. */
static const char waiting[] =
    "local attn, write, nothing, begin, done, finish = ...\n"
    "local run, start, profile, command = attn.run, attn.start, attn.profile, attn.command\n"
    "function attn.run(mechanism, options)\n"
    "  if not attn.has_ui then return run(mechanism, options) end\n"
    "  local job, message, code = start(mechanism, options)\n"
    "  if not job then return nil, message, code end\n"
    "  return job:wait()\n"
    "end\n"
    "function attn.profile(mechanism, options, plan)\n"
    "  if not attn.has_ui then return profile(mechanism, options, plan) end\n"
    "  local all = { [\"repeat\"] = 7 }\n"
    "  for key, value in pairs(options or {}) do all[key] = value end\n"
    "  for key, value in pairs(plan or {}) do all[key] = value end\n"
    "  local result, message, code, record = attn.run(mechanism, all)\n"
    "  if not result then return nil, message, code, record end\n"
    "  local record, stats = result.record, result.stats\n"
    "  record.nnz, record.density = stats.nnz, stats.density\n"
    "  return record\n"
    "end\n"
    "function attn.command(...)\n"
    "  if not attn.has_ui then return command(...) end\n"
    "  local work <close>, message, code = begin(...)\n"
    "  if not work then return nil, message, code end\n"
    "  while not done(work) and pcall(ui.sleep, 0.02) do end\n"
    "  return finish(work)\n"
    "end\n"
    "if io then\n"
    "  local stream = { write = write, flush = nothing, setvbuf = nothing, close = nothing }\n"
    "  io.stdout, io.stderr, io.write = stream, stream, write\n"
    "end\n";

static int protected_install(lua_State *L)
{
    lua_pushcfunction(L, console_print);
    lua_setglobal(L, "print");
    lua_getglobal(L, "os");
    lua_pushcfunction(L, leave_explorer);
    lua_setfield(L, -2, "exit");
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "attnscope");
    field_bool(L, "has_ui", true);
    if (luaL_loadbufferx(L, waiting, sizeof(waiting) - 1, "=" OWN_CHUNK, "t") != LUA_OK)
        lua_error(L);
    lua_pushvalue(L, -2);
    lua_pushcfunction(L, console_write);
    lua_pushcfunction(L, do_nothing);
    lua_pushcfunction(L, command_begin);
    lua_pushcfunction(L, command_done);
    lua_pushcfunction(L, command_finish);
    lua_call(L, 6, 0);
    caller_names(L, lua_gettop(L), script_of(L)->classes[0]);
    return 0;
}

/* ---- tasks ------------------------------------------------------------------ */

static Task *new_task(Console *c)
{
    for (int i = 0; i < TASKS_MOST; i++)
        if (!c->tasks[i].thread)
            return &c->tasks[i];
    return NULL;
}

/* The function at the top as a task.  [-1, +0, v] */
static Task *begin_task(lua_State *L, Console *c)
{
    Task *task = new_task(c);

    if (!task)
        luaL_error(L, "%d scripts run already: Ctrl-C stops them", TASKS_MOST);
    task->thread = lua_newthread(L);
    task->anchor = luaL_ref(L, LUA_REGISTRYINDEX);
    task->wait = TASK_READY;
    task->given = 0;
    lua_xmove(L, task->thread, 1);
    return task;
}

static void end_task(lua_State *L, Task *task)
{
    lua_State *thread = task->thread;
    int        anchor = task->anchor;

    *task = (Task){ 0 };
    lua_sethook(thread, NULL, 0, 0);
    lua_resetthread(thread);
    luaL_unref(L, LUA_REGISTRYINDEX, anchor);
}

static bool is_due(const Console *c, const Task *task)
{
    switch (task->wait) {
    case TASK_READY: return true;
    case TASK_SLEEPS: return clock_wall() >= task->due;
    case TASK_SETTLES: return !c->control->busy(c->control->ui);
    default: return false;
    }
}

static void show_values(lua_State *L, Task *task, int count)
{
    if (!count)
        return;
    lua_pushcfunction(L, console_print);
    lua_xmove(task->thread, L, count);
    lua_call(L, count, 0);
}

static void show_error(lua_State *L, Console *c, Task *task)
{
    const char *message = luaL_tolstring(task->thread, -1, NULL);

    if (!strcmp(message, "left"))
        return;
    luaL_traceback(L, task->thread, message, 0);
    console_add(c, lua_tostring(L, -1));
    console_add(c, "\n");
    lua_pop(L, 1);
    c->control->say(c->control->ui, message);
}

/* A turn of a task.  [-0, +0, v] */
static void give_turn(lua_State *L, Console *c, Task *task)
{
    int given = task->given, count = 0, status;

    task->wait = TASK_READY;
    task->given = 0;
    task->doing[0] = '\0';
    c->now = task;
    c->began = clock_wall();
    lua_sethook(task->thread, turn_hook, LUA_MASKCOUNT, TURN_HOOK_EVERY);
    script_of(L)->gives_way = true;
    script_of(L)->turn_over = false;
    status = lua_resume(task->thread, L, given, &count);
    script_of(L)->gives_way = script_of(L)->turn_over = false;
    c->now = NULL;
    if (status == LUA_YIELD) {
        lua_pop(task->thread, count);
        return;
    }
    if (status == LUA_OK)
        show_values(L, task, count);
    else
        show_error(L, c, task);
    end_task(L, task);
}

/* ---- under pcall ------------------------------------------------------------ */

typedef struct Ask {
    Console    *console;
    const char *text;     /* code, path, answer, an event's lines, the rest of a command */
    const char *event;
    int         function; /* of a key or command */
    TypedState  state;
    bool        done;
} Ask;

static int protected_tick(lua_State *L)
{
    Ask     *ask = lua_touserdata(L, 1);
    Console *c = ask->console;

    for (int i = 0; i < TASKS_MOST; i++)
        if (c->tasks[i].thread && is_due(c, &c->tasks[i])) {
            ask->done = true;
            give_turn(L, c, &c->tasks[i]);
        }
    return 0;
}

static int protected_type(lua_State *L)
{
    Ask *ask = lua_touserdata(L, 1);
    int  status = statement_load(L, ask->text);

    ask->state = TYPED_UNFINISHED;
    if (statement_unfinished(L, status))
        return 0;
    ask->state = TYPED_REFUSED;
    console_add(ask->console, "> ");
    console_add(ask->console, ask->text);
    console_add(ask->console, "\n");
    if (status != LUA_OK)
        return lua_error(L);
    script_take_code(L, "typed code");
    begin_task(L, ask->console);
    ask->state = TYPED_DONE;
    return 0;
}

static int protected_file(lua_State *L)
{
    Ask *ask = lua_touserdata(L, 1);

    script_push_file(L, ask->text);
    if (!*lua_tostring(L, -1))
        return luaL_error(L, "%s: no such script, neither here nor among the user's and the "
                          "shipped ones", ask->text);
    script_set_path(L, lua_tostring(L, -1));
    script_take_file(L, lua_tostring(L, -1));
    if (luaL_loadfilex(L, lua_tostring(L, -1), "t") != LUA_OK)
        return lua_error(L);
    begin_task(L, ask->console);
    return 0;
}

static int protected_call(lua_State *L)
{
    Ask  *ask = lua_touserdata(L, 1);
    Task *task;

    lua_rawgeti(L, LUA_REGISTRYINDEX, ask->function);
    task = begin_task(L, ask->console);
    if (ask->text) {
        lua_pushstring(L, ask->text);
        lua_xmove(L, task->thread, 1);
        task->given = 1;
    }
    return 0;
}

/* Number of an event's handlers.  [-0, +0, e] */
static int handlers_of(lua_State *L, const char *event)
{
    int count;

    lua_getfield(L, LUA_REGISTRYINDEX, EVENT_HANDLERS);
    lua_getfield(L, -1, event);
    count = (int)lua_rawlen(L, -1);
    lua_pop(L, 2);
    return count;
}

/* The handlers run as a task of their own, so they may wait. */
static int protected_event(lua_State *L)
{
    Ask  *ask = lua_touserdata(L, 1);
    Task *task;

    if (!handlers_of(L, ask->event))
        return 0;
    lua_getfield(L, LUA_REGISTRYINDEX, EVENT_TELL);
    task = begin_task(L, ask->console);
    lua_pushstring(L, ask->event);
    push_lines(L, ask->text);
    lua_xmove(L, task->thread, 2);
    task->given = 2;
    return 0;
}

static int protected_listens(lua_State *L)
{
    Ask *ask = lua_touserdata(L, 1);

    ask->done = handlers_of(L, "run") || handlers_of(L, "figure") || handlers_of(L, "compare") ||
                handlers_of(L, "point");
    return 0;
}

static int protected_answer(lua_State *L)
{
    Ask *ask = lua_touserdata(L, 1);

    for (int i = 0; i < TASKS_MOST; i++) {
        Task *task = &ask->console->tasks[i];

        if (!task->thread || task->wait != TASK_ASKS)
            continue;
        lua_pushstring(L, ask->text); /* NULL: nil */
        lua_xmove(L, task->thread, 1);
        task->given = 1;
        task->wait = TASK_READY;
    }
    return 0;
}

/* False: it raised; the console shows the message, and *err (or NULL) gets it. */
static bool protect(Console *c, lua_CFunction body, Ask *ask, Error *err)
{
    Script    *script = &c->start->script;
    lua_State *L = script->state;
    bool       ok;

    ask->console = c;
    script_enter(script);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, ask);
    ok = lua_pcall(L, 1, 0, 0) == LUA_OK;
    if (!ok) {
        const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "it failed";

        console_add(c, message);
        console_add(c, "\n");
        if (err)
            error_set(err, ERR_SCRIPT, "%.400s", message);
    }
    lua_settop(L, 0);
    script_leave(script);
    return ok;
}

/* ---- the interpreter -------------------------------------------------------- */

static bool console_open(void *host, const Control *control, Error *err)
{
    Console *c = host;
    Ask      ask = { 0 };

    if (!start_open(c->start, err))
        return false;
    c->control = c->start->script.control = control;
    c->start->script.console = c;
    if (protect(c, protected_install, &ask, err))
        return true;
    c->control = c->start->script.control = NULL;
    return false;
}

static bool console_stop(void *host)
{
    Console *c = host;
    bool     any = false;

    script_enter(&c->start->script);
    for (int i = 0; i < TASKS_MOST; i++)
        if (c->tasks[i].thread && &c->tasks[i] != c->now) {
            end_task(c->start->script.state, &c->tasks[i]);
            any = true;
        }
    script_leave(&c->start->script);
    if (any)
        console_add(c, "stopped\n");
    return any;
}

static void console_close(void *host)
{
    Console *c = host;

    console_stop(c);
    c->control = c->start->script.control = NULL;
}

static TypedState console_type(void *host, const char *code)
{
    Ask ask = { .text = code };

    protect(host, protected_type, &ask, NULL);
    return ask.state;
}

static bool console_file(void *host, const char *path, Error *err)
{
    Ask ask = { .text = path };

    return protect(host, protected_file, &ask, err);
}

static bool console_tick(void *host)
{
    Ask ask = { 0 };

    protect(host, protected_tick, &ask, NULL);
    return ask.done;
}

static double console_deadline(void *host)
{
    Console *c = host;
    double   soonest = -1;

    for (int i = 0; i < TASKS_MOST; i++) {
        Task  *task = &c->tasks[i];
        double left = task->wait == TASK_SLEEPS    ? task->due - clock_wall()
                      : task->wait == TASK_SETTLES ? 0.02
                                                   : 0;

        if (task->thread && task->wait != TASK_ASKS && (soonest < 0 || left < soonest))
            soonest = left > 0 ? left : 0;
    }
    return soonest;
}

static const char *console_doing(void *host)
{
    const Console *c = host;

    for (int i = 0; i < TASKS_MOST; i++)
        if (c->tasks[i].thread && c->tasks[i].doing[0])
            return c->tasks[i].doing;
    return NULL;
}

static void console_call(void *host, int function, const char *text)
{
    Ask ask = { .function = function, .text = text };

    protect(host, protected_call, &ask, NULL);
}

static void console_event(void *host, const char *event, const char *lines)
{
    Ask ask = { .event = event, .text = lines };

    protect(host, protected_event, &ask, NULL);
}

static bool console_listens(void *host)
{
    Console *c = host;
    Ask      ask = { 0 };

    return c->start->opened && protect(host, protected_listens, &ask, NULL) && ask.done;
}

static void console_answer(void *host, const char *text)
{
    Ask ask = { .text = text };

    protect(host, protected_answer, &ask, NULL);
}

static void console_complete(void *host, const char *word,
                             void (*add)(void *context, const char *name), void *context)
{
    Console *c = host;

    script_enter(&c->start->script);
    complete_names(c->start->script.state, word, add, context);
    script_leave(&c->start->script);
}

static const Text *console_output(void *host)
{
    return &((Console *)host)->output;
}

void console_interpreter(Console *c, Start *start, Interpreter *interpreter)
{
    c->start = start;
    *interpreter = (Interpreter){
        .host = c,
        .open = console_open,
        .close = console_close,
        .type = console_type,
        .file = console_file,
        .tick = console_tick,
        .deadline = console_deadline,
        .stop = console_stop,
        .doing = console_doing,
        .call = console_call,
        .event = console_event,
        .tell = commands_tell,
        .listens = console_listens,
        .answer = console_answer,
        .complete = console_complete,
        .output = console_output,
    };
}

void console_drop(Console *c)
{
    text_free(&c->output);
}
