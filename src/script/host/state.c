/* state.c -- one Lua state per script: memory, search path.
 *
 * The state's allocator counts bytes and refuses beyond a limit, so a runaway
 * table is an error of the script instead of the machine's trouble.
 */
#include <limits.h>
#include <lualib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/scripts.h"
#include "attn/run.h"
#include "core/threads.h"
#include "script/host/binding.h"
#include "script/host/state.h"

/* ---- memory ----------------------------------------------------------------- */

static void *allocate(void *opaque, void *old, size_t old_size, size_t size)
{
    Script *script = opaque;
    int64_t change = (int64_t)size - (old ? (int64_t)old_size : 0);
    void   *new;

    if (size == 0) {
        free(old);
        script->bytes += change;
        return NULL;
    }
    if (change > 0 && script->bytes + change > script->limit)
        return NULL;
    new = realloc(old, size);
    if (!new)
        return NULL;
    script->bytes += change;
    if (script->bytes > script->peak)
        script->peak = script->bytes;
    return new;
}

/* Registry key of the Script.  A state of another program may hold older coroutines, so the extra
 * space of a thread would not do. */
static const char script_key;

Script *script_of(lua_State *L)
{
    Script *script;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &script_key);
    script = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return script;
}

void script_set_state(lua_State *L, Script *script)
{
    lua_pushlightuserdata(L, script);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script_key);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    script->state = lua_tothread(L, -1);
    lua_pop(L, 1);
}

static int protected_set(lua_State *L)
{
    script_set_state(L, lua_touserdata(L, 1));
    return 0;
}

lua_State *script_state_new(Script *script)
{
    lua_State *L = lua_newstate(allocate, script);

    if (!L)
        return NULL;
    lua_pushcfunction(L, protected_set);
    lua_pushlightuserdata(L, script);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK)
        return L;
    lua_close(L);
    return NULL;
}

/* ---- files ------------------------------------------------------------------ */

/* The shipped scripts stand in lua of an installation, in scripts/lua of the source tree and of
 * what is unpacked where neither is there.  NULL: not there. */
static const char *shipped(lua_State *L, const char *name)
{
    Session    *s = script_of(L)->session->thing;
    const char *path = session_find_shipped(s, "lua", name);

    return path ? path : session_find_shipped(s, "scripts/lua", name);
}

/* $XDG_DATA_HOME/attnscope/lua/NAME, or "" without a home.  [-0, +1, m] */
static void push_user_file(lua_State *L, const char *name)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

    if (data && *data == '/')
        lua_pushfstring(L, "%s/attnscope/lua/%s", data, name);
    else if (home && *home == '/')
        lua_pushfstring(L, "%s/.local/share/attnscope/lua/%s", home, name);
    else
        lua_pushliteral(L, "");
}

/* The folder of a file as an absolute pattern; a folder whose name would be
 * read as a pattern is left out.  [-0, +1, m] */
static void push_folder_pattern(lua_State *L, const char *file)
{
    char  path[PATH_MAX];
    char *slash = realpath(file, path) ? strrchr(path, '/') : NULL;

    if (slash)
        *slash = '\0';
    if (!slash || strpbrk(path, "?;"))
        lua_pushliteral(L, "");
    else
        lua_pushfstring(L, "%s/?.lua", path);
}

static void add_pattern(lua_State *L, luaL_Buffer *path)
{
    if (*lua_tostring(L, -1)) {
        luaL_addvalue(path);
        luaL_addchar(path, ';');
    } else {
        lua_pop(L, 1);
    }
}

void script_set_path(lua_State *L, const char *file)
{
    luaL_Buffer path;
    const char *prelude = shipped(L, "prelude.lua");

    lua_getglobal(L, "package");
    luaL_buffinit(L, &path);
    if (file) {
        push_folder_pattern(L, file);
        add_pattern(L, &path);
    }
    push_user_file(L, "?.lua");
    add_pattern(L, &path);
    if (prelude) {
        push_folder_pattern(L, prelude);
        add_pattern(L, &path);
    }
    luaL_pushresult(&path);
    lua_setfield(L, -2, "path");
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "cpath");
    lua_pop(L, 1);
}

/* [-0, +1, m] */
static void push_if_there(lua_State *L, const char *path)
{
    lua_pushstring(L, path && *path && access(path, F_OK) == 0 ? path : "");
}

void script_push_file(lua_State *L, const char *name)
{
    int base = lua_gettop(L);

    push_if_there(L, name);
    if (!*lua_tostring(L, -1) && !strchr(name, '/')) {
        push_user_file(L, name);
        push_if_there(L, lua_tostring(L, -1));
        if (!*lua_tostring(L, -1))
            push_if_there(L, shipped(L, name));
    }
    lua_copy(L, -1, base + 1);
    lua_settop(L, base + 1);
}

void script_take_file(lua_State *L, const char *path)
{
    Error err = ERROR_INIT;

    script_of(L)->source = scripts_add_file(path, script_of(L)->everywhere, &err);
    check_ok(L, script_of(L)->source != NULL, &err);
}

void script_take_code(lua_State *L, const char *name)
{
    Error err = ERROR_INIT;

    script_of(L)->source = scripts_add_code(name, &err);
    check_ok(L, script_of(L)->source != NULL, &err);
}

/* One thread at a time in the Lua state.
 *
 * The script's thread holds the lock but for the time it waits for a run.  A
 * mechanism written in Lua runs on the session's worker: it takes the lock for
 * its callback, so Lua never runs twice at once.  Nothing waits for ever: a
 * cancelled run gives up.  A long callback hands the lock over now and then, so
 * that the script can read its progress and the screen stays live.
 */

#define LOOK_NS 20000000 /* between looks at the cancel flag */
#define GIVE_NS 200000   /* for a waiting thread to take the lock */

/* How often this thread has entered the state. */
static _Thread_local int depth;
static _Thread_local Script *inside; /* of depth > 0 */
/* The run that this thread computes for while it has released the state. */
static _Thread_local struct Run *put_off;
static _Thread_local FlopClass   put_off_charge;

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* False: it was not free for that long. */
static bool lock_within(Script *script, long ns)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_mutex_timedlock(&script->lock, &until) == 0;
}

void script_enter(Script *script)
{
    if (depth == 0) {
        atomic_fetch_add(&script->waiting, 1);
        pthread_mutex_lock(&script->lock);
        atomic_fetch_sub(&script->waiting, 1);
    }
    depth++;
    inside = script;
}

/* The one whose callback handed the lock over comes first. */
bool script_enter_run(Script *script, Run *r)
{
    while (depth == 0) {
        if (lock_within(script, LOOK_NS)) {
            if (!script->computing)
                break;
            pthread_mutex_unlock(&script->lock);
            pause_ns(LOOK_NS);
        }
        if (run_failed(r))
            return false;
    }
    depth++;
    inside = script;
    return true;
}

void script_leave(Script *script)
{
    if (--depth == 0)
        pthread_mutex_unlock(&script->lock);
}

int script_release(Script *script)
{
    int held = depth;

    depth = 0;
    if (held) {
        put_off = script->run;
        put_off_charge = script->charge;
        script->run = NULL;
        pthread_mutex_unlock(&script->lock);
    }
    return held;
}

/* With the lock: as it was before script_release. */
static void take_up(Script *script, int held)
{
    script->run = put_off;
    script->charge = put_off_charge;
    depth = held;
    inside = script;
}

void script_resume(Script *script, int held)
{
    if (!held)
        return;
    atomic_fetch_add(&script->waiting, 1);
    pthread_mutex_lock(&script->lock);
    atomic_fetch_sub(&script->waiting, 1);
    take_up(script, held);
}

Script *script_step_aside(int *held)
{
    Script *script = depth ? inside : NULL;

    *held = script ? script_release(script) : 0;
    return script;
}

void script_hand_over(Script *script)
{
    int held;

    if (depth != 1 || !atomic_load(&script->waiting))
        return;
    held = script_release(script);
    pause_ns(GIVE_NS);
    pthread_mutex_lock(&script->lock); /* only one thread hands over at a time */
    take_up(script, held);
    script->gives_way = false;
}

void script_end_callbacks(Script *script)
{
    script_enter(script);
    script->closing = true;
    while (script->computing) {
        int held = script_release(script);

        pause_ns(GIVE_NS);
        script_resume(script, held);
    }
    script_leave(script);
}

void script_charge(lua_State *L, double flops)
{
    Script *script = script_of(L);

    if (script->run && !script->uncharged)
        op_charge(script->run, script->charge, flops);
}

/* Coroutines of scripts, and how Ctrl-C and the explorer's turns reach into
 * them.
 *
 * No hook runs normally (a permanent one costs half the speed): the handler of SIGINT sets one,
 * which raises at the next instruction.  A second SIGINT ends the program.  A hook belongs to one
 * coroutine, so resume and wrap are our own: they keep account of which one runs.
 *
 * In the explorer a script is a coroutine that must give way, by a hook or where it waits, also
 * from within coroutines of its own: such a yield is none of the script's and is passed on
 * upwards; when the turn comes again, all go on where they were.
 */

/* ---- interrupt -------------------------------------------------------------- */

#define ALL_EVENTS (LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT)

/* Signal flags, the one exception to "no global state": the coroutine that runs in the script's
 * thread, and the one that was interrupted last. */
static lua_State *volatile running;
static lua_State *volatile stopped;
static atomic_bool interrupts;

static void stop_hook(lua_State *L, lua_Debug *unused)
{
    (void)unused;
    lua_sethook(L, NULL, 0, 0);
    stopped = L;
    luaL_error(L, "interrupted");
}

void coroutine_stop_here(lua_State *L)
{
    if (lua_gethook(L) == stop_hook)
        stop_hook(L, NULL);
}

/* lua_sethook may be called from a signal handler. */
static void on_interrupt(int number)
{
    if (threads_pass_signal(number))
        return;
    signal(number, SIG_DFL);
    atomic_store(&interrupts, true);
    if (running)
        lua_sethook(running, stop_hook, ALL_EVENTS, 1);
}

bool script_interrupted(void)
{
    return atomic_load(&interrupts);
}

const atomic_bool *script_interrupt_flag(void)
{
    return &interrupts;
}

void script_catch_interrupt(lua_State *L)
{
    struct sigaction action = { .sa_handler = L ? on_interrupt : SIG_DFL };

    running = L;
    stopped = NULL;
    if (L)
        atomic_store(&interrupts, false);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

/* The interrupt reached co too late, or ended it: the coroutine that resumed co gets it. */
static void pass_interrupt(lua_State *L, lua_State *co, bool failed)
{
    bool late = lua_gethook(co) == stop_hook;
    const char *why = failed ? lua_tostring(co, -1) : NULL;

    if (late)
        lua_sethook(co, NULL, 0, 0);
    if (late || (stopped == co && why && strstr(why, "interrupted")))
        lua_sethook(L, stop_hook, ALL_EVENTS, 1);
}

/* ---- one turn of a coroutine ------------------------------------------------- */

bool coroutine_gives_way(lua_State *L)
{
    const Script *script = script_of(L);

    return script->gives_way && lua_isyieldable(L);
}

int coroutine_give_way(lua_State *L, lua_KContext context, lua_KFunction then)
{
    script_of(L)->turn_over = true;
    return lua_yieldk(L, 0, context, then);
}

/* A coroutine gets the hook of the coroutine that resumes it. */
static void hand_hook(lua_State *L, lua_State *co)
{
    if (lua_gethook(L) && lua_gethook(L) != lua_gethook(co))
        lua_sethook(co, lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L));
}

static int resume_one(lua_State *L, lua_State *co, int arguments, int *results)
{
    Script *script = script_of(L);
    bool    here = running == L, gave_way = script->gives_way;
    int     status;

    hand_hook(L, co);
    script->gives_way = gave_way && lua_isyieldable(L);
    if (here)
        running = co;
    status = lua_resume(co, L, arguments, results);
    script->gives_way = gave_way;
    if (here) {
        running = L;
        pass_interrupt(L, co, status != LUA_OK && status != LUA_YIELD);
    }
    return status;
}

/* Values of `from` to L's top, or one message in their place.  [-0, +count or 1, -] */
static bool move_values(lua_State *L, lua_State *from, int count, const char *what)
{
    if (lua_checkstack(L, count + 1)) {
        lua_xmove(from, L, count);
        return true;
    }
    lua_pop(from, count);
    lua_pushfstring(L, "too many %s", what);
    return false;
}

/* With the values above `base`; those that co gave, or its error, lie there in the end.
 * False: an error.  Comes back only when the turn is not over. */
static bool take_turn(lua_State *L, lua_State *co, int base, lua_KFunction again)
{
    Script *script = script_of(L);
    int     given = lua_gettop(L) - base, results = 0, status;

    if (!lua_checkstack(co, given)) {
        lua_settop(L, base);
        lua_pushliteral(L, "too many arguments to resume");
        return false;
    }
    lua_xmove(L, co, given);
    status = resume_one(L, co, given, &results);
    if (status == LUA_YIELD && script->turn_over) {
        lua_pop(co, results);
        lua_yieldk(L, 0, 0, again);
    }
    if (status == LUA_OK || status == LUA_YIELD)
        return move_values(L, co, results, "results to resume");
    lua_xmove(co, L, 1);
    return false;
}

/* ---- what scripts call --------------------------------------------------------- */

static int resume_again(lua_State *L, int status, lua_KContext context)
{
    lua_State *co = lua_tothread(L, 1);
    bool       ok;

    (void)status;
    (void)context;
    ok = take_turn(L, co, 1, resume_again);
    lua_pushboolean(L, ok);
    lua_replace(L, 1);
    return lua_gettop(L);
}

/* [-n, +1 and more, v] */
static int co_resume(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTHREAD);
    return resume_again(L, LUA_OK, 0);
}

/* Closes the coroutine's variables and raises its error in the caller. */
static int raise_from(lua_State *L, lua_State *co)
{
    int status = lua_status(co);

    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(L, co, 1);
        lua_resetthread(co);
        lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int wrapped_again(lua_State *L, int status, lua_KContext context)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));

    (void)status;
    (void)context;
    if (!take_turn(L, co, 0, wrapped_again))
        return raise_from(L, co);
    return lua_gettop(L);
}

static int wrapped(lua_State *L)
{
    return wrapped_again(L, LUA_OK, 0);
}

/* [-1, +1, v] */
static int co_wrap(lua_State *L)
{
    lua_State *co;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, wrapped, 1);
    return 1;
}

void coroutine_install(lua_State *L)
{
    static const luaL_Reg own[] = { { "resume", co_resume }, { "wrap", co_wrap }, { NULL, NULL } };

    lua_getglobal(L, LUA_COLIBNAME);
    luaL_setfuncs(L, own, 0);
    lua_pop(L, 1);
}
