/* work.c -- see work.h. */
#include "script/host/work.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile/measure.h"
#include "script/host/turn.h"

#define WORK "attnscope.awaited"
#define LEFT "attnscope.left" /* works abandoned before their end, as keys */
#define GLANCE 0.01 /* seconds between looks from the explorer */

typedef struct Work {
    Job          *job; /* NULL: it was done at once */
    Session      *session;
    lua_KFunction then;
    const char   *doing;
    double        began;
    Keep        **pins;  /* of what the work reads; owned, and held */
    int           pin_count;
    bool          looks; /* `then` asks for the outcome itself */
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
    double        end = clock_wall() + seconds, left;
    int           depth = script_release(script);
    char          bytes[64];

    while (job_goes_on(job) && (left = 1000 * (end - clock_wall())) > 0) {
        poll(&wake, 1, left < 1 ? 1 : left < 100 ? (int)left : 100);
        while (read(wake.fd, bytes, sizeof(bytes)) > 0)
            continue;
        if (script_interrupted())
            job_cancel(job);
    }
    script_resume(script, depth);
}

/* ---- the object ---------------------------------------------------------------- */

/* Works that have ended are dropped.  [-0, +1 the table of the others, m] */
static void push_left(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LEFT);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        const Work *work = lua_touserdata(L, -2);

        if (job_goes_on(work->job))
            continue;
        lua_pushvalue(L, -2);
        lua_pushnil(L);
        lua_rawset(L, -5);
    }
}

static void release_pins(Work *work)
{
    while (work->pin_count > 0)
        keep_release(work->pins[--work->pin_count]);
    free(work->pins);
    work->pins = NULL;
}

/* Left early: does not wait for the end; what the worker reads stays alive until then. */
static int work_close(lua_State *L)
{
    Work *work = luaL_checkudata(L, 1, WORK);

    if (!job_goes_on(work->job)) { /* what is closed now gives its memory back now */
        release_pins(work);
        lua_pushnil(L);
        lua_setiuservalue(L, 1, 1);
        return 0;
    }
    job_cancel(work->job);
    push_left(L);
    lua_pushvalue(L, 1);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    return 0;
}

static int work_free(lua_State *L)
{
    Work *work = luaL_checkudata(L, 1, WORK);

    job_free(work->job);
    work->job = NULL;
    release_pins(work);
    return 0;
}

/* The object at `at` may be closed by another script meanwhile: its content stays. */
static void pin(lua_State *L, Work *work, int at)
{
    const Class *class = class_of(L, at);
    Keep        *keep = class && class->keep ? class->keep(lua_touserdata(L, at)) : NULL;

    if (keep)
        work->pins[work->pin_count++] = keep_retain(keep);
}

/* Closed, with all of the stack as its own.  [-0, +1, m] */
static Work *push_work(lua_State *L)
{
    int   count = lua_gettop(L);
    Work *work;

    push_left(L);
    lua_pop(L, 1);
    work = box_push(L, sizeof(*work), 1, WORK, work_free, work_close);
    work->pins = calloc((size_t)count + 1, sizeof(*work->pins));
    if (!work->pins)
        luaL_error(L, "not enough memory");
    luaL_checkstack(L, 4, "too many values");
    lua_createtable(L, count, 0);
    for (int i = 1; i <= count; i++) {
        pin(L, work, i);
        lua_pushvalue(L, i);
        lua_rawseti(L, -2, i);
    }
    lua_setiuservalue(L, -2, 1);
    return work;
}

/* ---- the wait as a function ------------------------------------------------------ */

static int await_more(lua_State *L, int status, lua_KContext at)
{
    Work *work = lua_touserdata(L, (int)at);
    Error err;

    (void)status;
    while (job_goes_on(work->job)) {
        turn_report(L, work->began, "%s", work->doing);
        if (turn_can_wait(L))
            return turn_wait(L, TASK_SLEEPS, clock_wall() + GLANCE, at, await_more);
        job_await(L, work->session, work->job, 3600);
    }
    lua_settop(L, (int)at);
    if (!work->looks && !work_ended(L, at, &err))
        return failure(L, &err);
    return work->then(L, LUA_OK, at);
}

/* [-0, +0, -] */
static void begin_work(lua_State *L, Work *work, Session *s, JobWork run, void *context)
{
    atomic_bool never = false;

    if (script_of(L)->run || !work->doing) { /* a mechanism of the script has the worker */
        work->ok = run(context, &never, &work->err);
        return;
    }
    work->job = session_submit_work(s, run, context, &work->err);
    work->ok = work->job != NULL;
}

static int await(lua_State *L, Session *s, const char *doing, JobWork run, lua_KFunction then,
                 bool looks)
{
    void *context = lua_touserdata(L, -1);
    Work *work = push_work(L);

    work->session = s;
    work->then = then;
    work->looks = looks;
    work->doing = doing;
    work->began = clock_wall();
    lua_toclose(L, -1);
    begin_work(L, work, s, run, context);
    return await_more(L, LUA_OK, lua_gettop(L));
}

int work_await(lua_State *L, Session *s, const char *doing, JobWork run, lua_KFunction then)
{
    return await(L, s, doing, run, then, false);
}

int work_await_end(lua_State *L, Session *s, const char *doing, JobWork run, lua_KFunction then)
{
    return await(L, s, doing, run, then, true);
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

int work_push_true(lua_State *L, int status, lua_KContext unused)
{
    (void)status;
    (void)unused;
    lua_pushboolean(L, true);
    return 1;
}
