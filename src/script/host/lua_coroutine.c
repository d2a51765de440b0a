/* lua_coroutine.c -- coroutines of scripts, and how Ctrl-C and the explorer's turns reach into
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
#include "script/host/binding.h"

#include <lualib.h>
#include <signal.h>
#include <string.h>

#include "script/host/lua_coroutine.h"

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

/* The interrupt reached co too late, or ended it: it goes on in whoever resumed it. */
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

/* Whatever looks at the script's time looks at its coroutines'. */
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

/* The coroutine is over, its variables are closed, and its error is the caller's. */
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
