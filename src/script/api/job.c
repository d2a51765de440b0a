/* job.c -- runs and commands that go on while the script does: attn.start, attn.command.
 *
 * A job is one of its input's session.  Lua waits only in poll and wait; only then does a mechanism
 * of the script itself run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/scripting.h"
#include "profile/measure.h"
#include "script/host/turn.h"
#include "script/host/work.h"

typedef struct LuaJob {
    Job   *job;  /* NULL: closed, or its result was fetched */
    Keep  *keep; /* of the input's session */
    double start;
} LuaJob;
enum { JOB_INPUT = 1, JOB_RESULT, JOB_VALUES = JOB_RESULT };

static int job_close(lua_State *L)
{
    LuaJob *job = class_check(L, 1, &class_job);
    Keep   *keep = job->keep;

    job_free(job->job);
    *job = (LuaJob){ 0 };
    keep_release(keep);
    return 0;
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

    lua_pushstring(L, !job->keep                ? "Job (closed)"
                      : job_goes_on(job->job) ? "Job (running)"
                                              : "Job (done)");
    return 1;
}

/* The fraction done, and the phase; nil: unknown.  [-0, +2, m] */
static void push_share(lua_State *L, const LuaJob *job)
{
    Number share = job->job ? job_share(job->job) : number_of(1);

    if (share.valid)
        lua_pushnumber(L, share.value);
    else
        lua_pushnil(L);
    lua_pushstring(L, job->job ? job_stage(job->job) : "");
}

/* What the explorer shows while a script waits for the job. */
static void report_job(lua_State *L, const LuaJob *job)
{
    Number      share = job_share(job->job);
    const char *stage = job_stage(job->job);

    if (share.valid)
        turn_report(L, job->start, "a run, %s%s%.0f %%", stage, *stage ? ", " : "",
                     floor(100 * share.value));
    else
        turn_report(L, job->start, "a run%s%s", *stage ? ", " : "", stage);
}

/* [-0, +3, v] */
static int job_poll(lua_State *L)
{
    LuaJob *job = check_job(L);
    double  seconds = luaL_optnumber(L, 2, 0.001);

    luaL_argcheck(L, seconds >= 0 && seconds <= 1e9, 2, "expected seconds");
    if (job_goes_on(job->job))
        report_job(L, job);
    if (job_goes_on(job->job))
        job_await(L, job->keep->thing, job->job, seconds);
    lua_pushboolean(L, !job_goes_on(job->job));
    push_share(L, job);
    return 3;
}

/* [-0, +3, v] */
static int job_progress(lua_State *L)
{
    const LuaJob *job = check_job(L);

    push_share(L, job);
    lua_pushnumber(L, clock_wall() - job->start);
    return 3;
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
    count = result_fill(L, out, top + 1, job->keep, result, &err);
    lua_createtable(L, count, 1);
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, -1 - count + i - 1);
        lua_rawseti(L, -2, i);
    }
    field_integer(L, "n", count);
    lua_setiuservalue(L, 1, JOB_RESULT);
    return count;
}

/* [-0, +1, 3 or 4, v] */
static int job_wait_method(lua_State *L)
{
    LuaJob *job = check_job(L);
    int     count;

    lua_settop(L, 1);
    while (job_goes_on(job->job))
        job_await(L, job->keep->thing, job->job, 3600);
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

/* With the input at the top.  [-0, +1 or 3, v] */
static int start_loaded(lua_State *L, int status, lua_KContext unused)
{
    Request  *request;
    Keep     *below;
    LuaJob   *job;
    Error     err = ERROR_INIT;
    int       count, at;

    (void)status;
    (void)unused;
    count = request_prepare(L, &request);
    at = lua_gettop(L) - 1;
    if (count != 1)
        return count;
    below = ((LuaInput *)lua_touserdata(L, at - 1))->keep; /* of the pin */
    job = class_push(L, &class_job, sizeof(*job), JOB_VALUES);
    job->start = clock_wall();
    job->job = session_submit(below->thing, request, &err);
    if (!job->job)
        return failure(L, &err);
    job->keep = keep_retain(below);
    lua_pushvalue(L, at);
    lua_setiuservalue(L, -2, JOB_INPUT);
    return 1;
}

/* [-0, +1 or 3, v] */
int attn_start(lua_State *L)
{
    run_check_arguments(L);
    if (script_of(L)->run)
        return luaL_error(L, "a mechanism cannot start runs while it runs");
    return input_await(L, 2, start_loaded);
}

static const luaL_Reg job_meta[] = {
    { "__gc", job_close }, { "__close", job_close }, { "__tostring", job_describe },
    { NULL, NULL },
};

static const Member job_members[] = {
    { "poll", job_poll, "seconds?: number", "boolean, number?, string",
      "Waits so long (default 1 ms); whether it is done, and the first values of progress." },
    { "progress", job_progress, "", "number?, string, number",
      "How much is done, the phase it is in, and the seconds since its start.  The share (0 to 1) "
      "is that of the FLOPs of the run's closed form, or what a mechanism of one's own says by "
      "ctx:progress; in the phase seeds, of the seeds.  nil where nobody knows: the content "
      "decides what there is to do, another mechanism runs inside, it waits, or it is being "
      "measured or compared.  It grows within a phase: the stages of the run, then measuring, "
      "quality and seeds." },
    { "on_progress", NULL, "f: fun(share?: number, phase: string, seconds: number): boolean?",
      "attnscope.Job",
      "poll and wait call f now and then while the job runs; when it gives false, the job is "
      "cancelled.  The job itself, so that attn.start(...):on_progress(f):wait() can be said." },
    { "wait", job_wait_method, "", "attnscope.Result?, string?, string?, attnscope.Record?",
      "What attn.run gives; the same again when asked again." },
    { "cancel", job_cancel_method, "", "", "Ends it; wait gives nil, message, \"CANCELLED\"." },
    { "close", job_close, "", "", "Cancels it, and gives its memory back." },
    MEMBER_END,
};
const Class class_job = { .name = "Job", .help = "A run that goes on while the script does.",
                          .members = job_members, .meta = job_meta,
                          .instead = "job:wait, job:cancel and job:on_progress are what it takes" };

/* Commands of the program, run for a script.
 *
 * In the explorer a command goes to the worker with a session of its own, on the input that is
 * on the screen, so that the screen stays live and Ctrl-C cancels the command.
 */

#define WORK "attnscope.command"

/* ---- on the script's thread -------------------------------------------------- */

const char **push_words(lua_State *L, int count)
{
    const char **words = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof(*words), 0);

    for (int i = 0; i < count; i++)
        words[i] = check_word(L, i + 1);
    lua_createtable(L, count + 1, 0);
    for (int i = 1; i <= count + 1; i++) {
        lua_pushvalue(L, i);
        lua_rawseti(L, -2, i);
    }
    return words;
}

/* The script's own input, when the command names none.  */
static bool load_given(Script *script, Session *s, Error *err)
{
    const char *const *values = script->options.values;
    bool given = values[OPT_INPUT] || values[OPT_N] || values[OPT_D] || values[OPT_HEADS] ||
                 values[OPT_LAYER];

    return session_input(s) || !given || call_load_input(s, &script->options, err);
}

/* [-0, +1 or 3, v] */
int attn_command(lua_State *L)
{
    Script      *script = script_of(L);
    Session     *s = script->session->thing;
    int          count = lua_gettop(L);
    const char **words;
    Text        *text;
    Error        err = ERROR_INIT;

    check_word(L, 1);
    if (script->run)
        return luaL_error(L, "a mechanism cannot start commands while it runs");
    if (script->before_command && !strcmp(lua_tostring(L, 1), "sweep"))
        return turn_end_script(L);
    words = push_words(L, count);
    text = text_box(L);
    if (!load_given(script, s, &err) ||
        !command_run(s, words, count, READER_FILE, 0, text, &err))
        return failure(L, &err);
    text_box_push(L, text);
    return 1;
}

/* ---- on the worker ---------------------------------------------------------- */

typedef struct Work {
    Job         *job; /* NULL: closed */
    const char **words; /* kept by the user value */
    int          count;
    double       began;
    char        *spec; /* of the input; NULL: none */
    InputChoice  choice;
    Text         out;
} Work;

static bool run_on_worker(void *context, const atomic_bool *cancel, Error *err)
{
    Work    *w = context;
    Session *s = session_new(err);
    bool     ok = s != NULL;

    if (ok)
        session_on_stop(s, cancel, NULL);
    ok = ok && (!w->spec || session_load(s, w->spec, &w->choice, err)) &&
         command_run(s, w->words, w->count, READER_FILE, 0, &w->out, err);
    session_free(s);
    return ok;
}

/* Cancelling also ends a mechanism of the script that the command runs. */
static int command_close(lua_State *L)
{
    Work *w = luaL_checkudata(L, 1, WORK);

    job_free(w->job);
    w->job = NULL;
    text_free(&w->out);
    free(w->spec);
    w->spec = NULL;
    return 0;
}

int command_begin(lua_State *L)
{
    Script     *script = script_of(L);
    int         count = lua_gettop(L);
    const char *spec, **words;
    Work       *w;
    Error       err = ERROR_INIT;

    check_word(L, 1);
    if (script->run)
        return luaL_error(L, "a mechanism cannot start commands while it runs");
    words = push_words(L, count);
    w = box_push(L, sizeof(*w), 1, WORK, command_close, command_close);
    *w = (Work){ .words = words, .count = count, .began = clock_wall() };
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    spec = script->control->input(script->control->ui, &w->choice);
    w->spec = spec ? strdup(spec) : NULL;
    w->job = session_submit_work(script->session->thing, run_on_worker, w, &err);
    return w->job ? 1 : failure(L, &err);
}

int command_done(lua_State *L)
{
    const Work *w = luaL_checkudata(L, 1, WORK);
    JobState    state = w->job ? job_state(w->job) : JOB_DONE;

    turn_report(L, w->began, "attn.command(%s)", w->words[0]);
    lua_pushboolean(L, state != JOB_WAITING && state != JOB_RUNNING);
    return 1;
}

int command_finish(lua_State *L)
{
    Work   *w = luaL_checkudata(L, 1, WORK);
    Script *script = script_of(L);
    Error   err = ERROR_INIT;
    int     depth;

    if (!w->job)
        return luaL_argerror(L, 1, "the command is closed");
    depth = script_release(script);
    job_wait(w->job);
    script_resume(script, depth);
    if (job_state(w->job) == JOB_DONE) {
        text_box_push(L, &w->out);
        return 1;
    }
    err = *job_error(w->job);
    if (err.code == ERR_NONE)
        error_set(&err, ERR_CANCELLED, "interrupted");
    return failure(L, &err);
}
