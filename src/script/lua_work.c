/* lua_work.c -- see lua_work.h. */
#include "script/lua_work.h"

#include <poll.h>
#include <unistd.h>

#include "script/lua_console.h"

#define WORK "attnscope.awaited"
#define GLANCE 0.01 /* seconds between looks from the explorer */

typedef struct Work {
    Job          *job; /* NULL: it was done at once */
    Session      *session;
    lua_KFunction then;
    bool          ok;
    Error         err;
} Work;

/* ---- waiting ----------------------------------------------------------------- */

bool job_goes_on(const Job *job)
{
    JobState state = job ? job_state(job) : JOB_DONE;

    return state == JOB_WAITING || state == JOB_RUNNING;
}

void job_await(lua_State *L, Session *s, Job *job, double seconds)
{
    Script       *script = script_of(L);
    struct pollfd wake = { .fd = session_wake_fd(s), .events = POLLIN };
    double        end = console_seconds() + seconds, left;
    int           depth = script_release(script);
    char          bytes[64];

    while (job_goes_on(job) && (left = 1000 * (end - console_seconds())) > 0) {
        poll(&wake, 1, left < 1 ? 1 : left < 100 ? (int)left : 100);
        while (read(wake.fd, bytes, sizeof(bytes)) > 0)
            continue;
        if (script_interrupted())
            job_cancel(job);
    }
    script_resume(script, depth);
}

/* ---- the object ---------------------------------------------------------------- */

/* It is left early: nobody waits for the end here. */
static int work_close(lua_State *L)
{
    Work *work = luaL_checkudata(L, 1, WORK);

    if (work->job)
        job_cancel(work->job);
    return 0;
}

static int work_free(lua_State *L)
{
    Work *work = luaL_checkudata(L, 1, WORK);

    job_free(work->job);
    work->job = NULL;
    return 0;
}

/* Closed, with the context at the top as its own.  [-0, +1, m] */
static Work *push_work(lua_State *L)
{
    static const luaL_Reg meta[] = { { "__gc", work_free }, { "__close", work_close },
                                     { NULL, NULL } };
    Work *work = lua_newuserdatauv(L, sizeof(*work), 1);

    *work = (Work){ .err = ERROR_INIT };
    if (luaL_newmetatable(L, WORK))
        luaL_setfuncs(L, meta, 0);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -2);
    lua_setiuservalue(L, -2, 1);
    return work;
}

/* ---- the wait as a function ------------------------------------------------------ */

static int await_more(lua_State *L, int status, lua_KContext at)
{
    Work *work = lua_touserdata(L, (int)at);

    (void)status;
    while (job_goes_on(work->job)) {
        if (console_can_wait(L))
            return console_wait(L, TASK_SLEEPS, console_seconds() + GLANCE, at, await_more);
        job_await(L, work->session, work->job, 3600);
    }
    lua_settop(L, (int)at);
    return work->then(L, LUA_OK, at);
}

int work_await(lua_State *L, Session *s, JobWork run, lua_KFunction then)
{
    void       *context = lua_touserdata(L, -1);
    atomic_bool never = false;
    Work       *work = push_work(L);

    work->session = s;
    work->then = then;
    lua_toclose(L, -1);
    if (script_of(L)->run) { /* a mechanism of the script has the worker */
        work->ok = run(context, &never, &work->err);
    } else {
        work->job = session_submit_work(s, run, context, &work->err);
        work->ok = work->job != NULL;
    }
    return await_more(L, LUA_OK, lua_gettop(L));
}

bool work_ended(lua_State *L, lua_KContext at, Error *err)
{
    Work *work = lua_touserdata(L, (int)at);

    if (work->job && job_state(work->job) != JOB_DONE) {
        work->ok = false;
        work->err = *job_error(work->job);
        if (work->err.code == ERR_NONE)
            error_set(&work->err, ERR_CANCELLED, "interrupted");
    }
    *err = work->err;
    return work->ok;
}

void *work_context(lua_State *L, lua_KContext at)
{
    return lua_touserdata(L, (int)at - 1);
}
