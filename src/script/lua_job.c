/* lua_job.c -- runs that go on while the script does: attn.start.
 *
 * A job is one of its input's session.  Lua waits only in poll and wait; a
 * mechanism of the script itself runs on then, and only then.
 */
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "script/lua_binding.h"

typedef struct LuaJob {
    Job   *job;  /* NULL: closed, or its result was fetched */
    Keep  *keep; /* of the input's session */
    double start;
} LuaJob;
enum { JOB_INPUT = 1, JOB_RESULT, JOB_VALUES = JOB_RESULT };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int job_close(lua_State *L)
{
    LuaJob *job = class_check(L, 1, &class_job);
    Keep   *keep = job->keep;

    job_free(job->job);
    *job = (LuaJob){ 0 };
    keep_release(keep);
    return 0;
}

static bool going(const LuaJob *job)
{
    JobState state = job->job ? job_state(job->job) : JOB_DONE;

    return state == JOB_WAITING || state == JOB_RUNNING;
}

/* Until the job ends or so many seconds have passed; Ctrl-C cancels it. */
static void wait_until(lua_State *L, LuaJob *lua, Session *s, double seconds)
{
    Script       *script = script_of(L);
    struct pollfd wake = { .fd = session_wake_fd(s), .events = POLLIN };
    double        end = now() + seconds;
    int           depth = script_release(script);
    char          bytes[64];

    while (going(lua) && now() < end) {
        double left = 1000 * (end - now());

        poll(&wake, 1, left < 1 ? 1 : left < 100 ? (int)left : 100);
        while (read(wake.fd, bytes, sizeof(bytes)) > 0)
            continue;
        if (script_interrupted())
            job_cancel(lua->job);
    }
    script_resume(script, depth);
}

static LuaJob *check_job(lua_State *L)
{
    LuaJob *job = class_check(L, 1, &class_job);

    if (!job->keep)
        luaL_argerror(L, 1, "the job is closed");
    if (script_of(L)->run)
        luaL_error(L, "a mechanism cannot look after jobs while it runs");
    return job;
}

/* [-0, +1, v] */
static int job_describe(lua_State *L)
{
    const LuaJob *job = class_check(L, 1, &class_job);

    lua_pushstring(L, !job->keep ? "Job (closed)" : going(job) ? "Job (running)" : "Job (done)");
    return 1;
}

/* [-0, +1, v] */
static int job_poll(lua_State *L)
{
    LuaJob *job = check_job(L);
    double  seconds = luaL_optnumber(L, 2, 0.001);

    luaL_argcheck(L, seconds >= 0 && seconds <= 1e9, 2, "expected seconds");
    if (going(job))
        wait_until(L, job, job->keep->thing, seconds);
    lua_pushboolean(L, !going(job));
    return 1;
}

/* [-0, +2, v] */
static int job_progress(lua_State *L)
{
    const LuaJob *job = check_job(L);

    lua_pushstring(L, job->job ? job_stage(job->job) : "");
    lua_pushnumber(L, now() - job->start);
    return 2;
}

/* [-0, +0, v] */
static int job_cancel_method(lua_State *L)
{
    LuaJob *job = check_job(L);

    if (job->job)
        job_cancel(job->job);
    return 0;
}

/* The outcome, kept so that it can be asked for again.  [-0, +1, 3 or 4, v] */
static int fetch(lua_State *L, LuaJob *job)
{
    LuaResult *out = (lua_getiuservalue(L, 1, JOB_INPUT), result_push_closed(L));
    Error      err = *job_error(job->job);
    Result    *result = job_result(job->job);
    int        count, top = lua_gettop(L) - 2;

    if (!result && job_state(job->job) == JOB_CANCELLED)
        error_set(&err, ERR_CANCELLED, "interrupted");
    job_free(job->job);
    job->job = NULL;
    count = result_fill(L, out, top + 1, result, &err);
    lua_createtable(L, count, 1);
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, -1 - count + i - 1);
        lua_rawseti(L, -2, i);
    }
    lua_pushinteger(L, count);
    lua_setfield(L, -2, "n");
    lua_setiuservalue(L, 1, JOB_RESULT);
    return count;
}

/* [-0, +1, 3 or 4, v] */
static int job_wait_method(lua_State *L)
{
    LuaJob *job = check_job(L);
    int     count;

    lua_settop(L, 1);
    while (going(job))
        wait_until(L, job, job->keep->thing, 3600);
    if (job->job)
        return fetch(L, job);
    lua_getiuservalue(L, 1, JOB_RESULT);
    if (!lua_istable(L, 2)) /* fetching it raised */
        return luaL_error(L, "the job has no outcome");
    lua_getfield(L, 2, "n");
    count = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    for (int i = 1; i <= count; i++)
        lua_rawgeti(L, 2, i);
    return count;
}

/* [-0, +1 or 3, v] */
int attn_start(lua_State *L)
{
    Request  *request;
    LuaInput *input;
    LuaJob   *job;
    Error     err = ERROR_INIT;
    int       count, at;

    run_check_arguments(L);
    if (script_of(L)->run)
        return luaL_error(L, "a mechanism cannot start runs while it runs");
    count = request_prepare(L, &request);
    at = lua_gettop(L) - 1;
    if (count != 1)
        return count;
    input = input_check(L, at);
    job = class_push(L, &class_job, sizeof(*job), JOB_VALUES);
    job->start = now();
    job->job = session_submit(input->session, request, &err);
    if (!job->job)
        return failure(L, &err);
    job->keep = keep_retain(input->keep);
    lua_pushvalue(L, at);
    lua_setiuservalue(L, -2, JOB_INPUT);
    return 1;
}

static const luaL_Reg job_meta[] = {
    { "__gc", job_close }, { "__close", job_close }, { "__tostring", job_describe },
    { NULL, NULL },
};

static const Member job_members[] = {
    { "poll", job_poll, "seconds?: number", "boolean",
      "Waits so long (default 1 ms) and tells whether it is done." },
    { "progress", job_progress, "", "string, number",
      "The stage it is in, and the seconds since its start." },
    { "on_progress", NULL, "f: fun(stage: string, seconds: number): boolean?", "attnscope.Job",
      "poll and wait call f now and then while the job runs; when it gives false, the job is "
      "cancelled.  The job itself, so that attn.start(...):on_progress(f):wait() can be said." },
    { "wait", job_wait_method, "", "attnscope.Result?, string?, string?, attnscope.Record?",
      "What attn.run gives; the same again when asked again." },
    { "cancel", job_cancel_method, "", "", "Ends it; wait gives nil, message, \"CANCELLED\"." },
    { "close", job_close, "", "", "Cancels it, and gives its memory back." },
    MEMBER_END,
};
const Class class_job = { .name = "Job", .help = "A run that goes on while the script does.",
                          .members = job_members, .meta = job_meta };
