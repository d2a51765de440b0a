/* turn.c -- see turn.h. */
#include "script/host/turn.h"

#include <stdarg.h>
#include <stdio.h>

#include "attn/run.h"
#include "profile/measure.h"
#include "script/host/state.h"

#define TURN_SECONDS 0.02
#define MOST_SECONDS 5.0 /* of a turn that cannot be left */
#define LONG_WAIT    0.5 /* seconds after which the explorer shows what a script waits for */

/* Seconds that the present turn has taken; 0: there is none. */
static double spent_by(const Script *script)
{
    const Console *c = script->console;

    return c && c->now ? clock_wall() - c->began : 0;
}

void turn_hook(lua_State *L, lua_Debug *unused)
{
    double spent = spent_by(script_of(L));

    (void)unused;
    if (spent < TURN_SECONDS)
        return;
    if (coroutine_gives_way(L))
        coroutine_give_way(L, 0, NULL);
    else if (spent > MOST_SECONDS)
        luaL_error(L, "this takes too long where a script cannot be interrupted");
}

bool turn_is_over(lua_State *L)
{
    const Script *script = script_of(L);
    double        spent = spent_by(script);

    coroutine_stop_here(L);
    if (script->run && (script->closing || run_failed(script->run)))
        luaL_error(L, "interrupted");
    if (spent < TURN_SECONDS)
        return false;
    if (!coroutine_gives_way(L) && spent > MOST_SECONDS)
        luaL_error(L, "this takes too long where a script cannot be interrupted");
    return coroutine_gives_way(L);
}

int turn_wait(lua_State *L, TaskWait wait, double due, lua_KContext context, lua_KFunction then)
{
    Console *c = script_of(L)->console;

    if (!turn_can_wait(L))
        return luaL_error(L, "a script can wait here only outside of comparisons and metamethods");
    c->now->wait = wait;
    c->now->due = due;
    return coroutine_give_way(L, context, then);
}

int turn_end_script(lua_State *L)
{
    if (!coroutine_gives_way(L))
        return luaL_error(L, "a script that --lua loads ends at its first sweep, which it cannot "
                          "from within a module or a comparison: sweep in the script itself");
    return coroutine_give_way(L, 0, NULL);
}

bool turn_can_wait(lua_State *L)
{
    const Console *c = script_of(L)->console;

    return c && c->now && coroutine_gives_way(L);
}

void turn_report(lua_State *L, double began, const char *fmt, ...)
{
    Console *c = script_of(L)->console;
    va_list  args;

    if (!c || !c->now || clock_wall() - began < LONG_WAIT)
        return;
    va_start(args, fmt);
    vsnprintf(c->now->doing, sizeof(c->now->doing), fmt, args);
    va_end(args);
}
