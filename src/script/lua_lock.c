/* lua_lock.c -- one thread at a time in the Lua state.
 *
 * The script's thread holds the lock but for the time it waits for a run.  A
 * mechanism written in Lua runs on the session's worker: it takes the lock for
 * its callback, so Lua never runs twice at once, and nothing waits for ever: a
 * cancelled run gives up.
 */
#include "script/lua_binding.h"

#include <time.h>

#include "attn/run.h"

#define LOOK_NS 20000000 /* between looks at the cancel flag */

/* How deep this thread is in the state. */
static _Thread_local int depth;

bool script_enter(Script *script, Run *r)
{
    while (depth == 0) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_mutex_timedlock(&script->lock, &until) == 0)
            break;
        if (r && run_failed(r))
            return false;
    }
    depth++;
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
    if (held)
        pthread_mutex_unlock(&script->lock);
    return held;
}

void script_resume(Script *script, int held)
{
    if (held)
        pthread_mutex_lock(&script->lock);
    depth = held;
}

void script_charge(lua_State *L, double flops)
{
    Script *script = script_of(L);

    if (script->run)
        op_charge(script->run, script->charge, flops);
}
