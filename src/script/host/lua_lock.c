/* lua_lock.c -- one thread at a time in the Lua state.
 *
 * The script's thread holds the lock but for the time it waits for a run.  A
 * mechanism written in Lua runs on the session's worker: it takes the lock for
 * its callback, so Lua never runs twice at once, and nothing waits for ever: a
 * cancelled run gives up.  A callback that takes long hands the lock over now and
 * then, so that the script can look how far it is, and the screen lives.
 */
#include "script/host/binding.h"

#include <time.h>

#include "attn/run.h"

#define LOOK_NS 20000000 /* between looks at the cancel flag */
#define GIVE_NS 200000   /* that whoever waits has to take the lock */

/* How deep this thread is in the state. */
static _Thread_local int depth;
static _Thread_local Script *inside; /* of depth > 0 */
/* What this thread computes for, while it has released the state: others do not work for it. */
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
    pthread_mutex_lock(&script->lock); /* nobody hands over to one who has handed over */
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
