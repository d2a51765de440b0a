/* lua_sweep_run.c -- a sweep that asks the script as it goes: attn.sweep's row and progress.
 *
 * The command runs on the worker.  At each record it stops and leaves a question; the script's
 * thread finds it in `turn`, calls the function, and leaves the answer.  So Lua runs where it
 * always does, and in the explorer between questions the screen lives.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/scripting.h"
#include "script/console/lua_console.h"
#include "script/host/lua_command.h"
#include "script/host/lua_work.h"

#define SWEEPING "attnscope.sweeping"
#define LOOK_NS  50000000 /* between looks at the cancel flag */

typedef enum Question { ASKS_NOTHING, ASKS_ROW, ASKS_PROGRESS } Question;

typedef struct Sweeping {
    Job            *job;     /* NULL: closed */
    Session        *session; /* owned: its worker waits for answers, the script's is free */
    const char    **words;   /* kept by the user value, as is all that they point to */
    int             count;
    InputChoice     choice;
    char           *spec;    /* of the explorer's input; owned; NULL: none */
    const Call     *options; /* before FILE; NULL: in the explorer */
    Text            out;
    double          began;
    const atomic_bool *cancel;
    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t  changed;
    Question        question;
    Text            line;
    int             done, total;
    double          left;
} Sweeping;

/* ---- on the worker ------------------------------------------------------------- */

/* Until the script has answered; false: it was cancelled. */
static bool ask(Sweeping *s, Question question, const char *line, size_t length, Error *err)
{
    bool ok;

    pthread_mutex_lock(&s->lock);
    text_clear(&s->line);
    text_addf(&s->line, "%.*s", (int)length, line);
    s->question = question;
    while (s->question != ASKS_NOTHING && !atomic_load(s->cancel)) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    ok = s->question == ASKS_NOTHING || error_set(err, ERR_CANCELLED, "stopped");
    s->question = ASKS_NOTHING;
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static bool ask_row(void *context, Text *line, Error *err)
{
    Sweeping *s = context;

    if (!ask(s, ASKS_ROW, text_str(line), line->length, err))
        return false;
    text_clear(line);
    text_add(line, text_str(&s->line));
    return text_ok(line) || error_set(err, ERR_NOMEM, "not enough memory for a record");
}

static void ask_progress(void *context, int done, int total, const char *line, double left)
{
    Sweeping *s = context;
    Error     ignored = ERROR_INIT;

    s->done = done;
    s->total = total;
    s->left = left;
    ask(s, ASKS_PROGRESS, line, strlen(line), &ignored); /* the sweep looks at the flag itself */
}

static bool load_input(Sweeping *s, Session *session, Error *err)
{
    const char *const *given = s->options ? s->options->values : NULL;

    if (s->spec)
        return session_load(session, s->spec, &s->choice, err);
    return !given || !(given[OPT_INPUT] || given[OPT_N] || given[OPT_D] || given[OPT_HEADS] ||
                       given[OPT_LAYER]) ||
           call_load_input(session, s->options, err);
}

static bool run_sweep(void *context, const atomic_bool *cancel, Error *err)
{
    Sweeping    *s = context;
    SessionSweep hooks = { .context = s, .record = ask_row, .progress = ask_progress };
    Session     *session = session_new(err);
    bool         ok = session != NULL;

    s->cancel = cancel;
    if (ok) {
        session_on_stop(session, cancel, NULL);
        session_on_sweep(session, &hooks);
    }
    ok = ok && load_input(s, session, err) &&
         command_run(session, s->words, s->count, false, 0, &s->out, err);
    session_free(session);
    return ok;
}

/* ---- the object ------------------------------------------------------------------ */

static Sweeping *check_sweeping(lua_State *L)
{
    Sweeping *s = luaL_checkudata(L, 1, SWEEPING);

    if (!s->job)
        luaL_argerror(L, 1, "the sweep is closed");
    return s;
}

static int sweeping_close(lua_State *L)
{
    Sweeping *s = luaL_checkudata(L, 1, SWEEPING);

    if (s->job)
        job_cancel(s->job);
    return 0;
}

static int sweeping_free(lua_State *L)
{
    Sweeping *s = luaL_checkudata(L, 1, SWEEPING);

    if (!s->session)
        return 0;
    job_free(s->job); /* waits: the worker answers a cancelled question itself */
    s->job = NULL;
    session_free(s->session);
    s->session = NULL;
    text_free(&s->out);
    text_free(&s->line);
    free(s->spec);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    return 0;
}

/* Of the words 1..count, which it keeps.  [-0, +1, v] */
static Sweeping *push_sweeping(lua_State *L, int count)
{
    static const luaL_Reg meta[] = { { "__gc", sweeping_free }, { "__close", sweeping_close },
                                     { NULL, NULL } };
    const char **words = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof(*words), 0);
    Error        err = ERROR_INIT;
    Sweeping    *s;

    for (int i = 0; i < count; i++)
        words[i] = check_word(L, i + 1);
    lua_createtable(L, count + 1, 0); /* what the words point to */
    for (int i = 1; i <= count + 1; i++) {
        lua_pushvalue(L, i);
        lua_rawseti(L, -2, i);
    }
    s = lua_newuserdatauv(L, sizeof(*s), 1);
    *s = (Sweeping){ .words = words, .count = count };
    if (luaL_newmetatable(L, SWEEPING))
        luaL_setfuncs(L, meta, 0);
    lua_setmetatable(L, -2);
    s->session = session_new(&err);
    if (!s->session)
        luaL_error(L, "%s", err.text);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    return s;
}

static int sweep_begin(lua_State *L)
{
    Script     *script = script_of(L);
    int         count = lua_gettop(L);
    const char *spec = NULL;
    Sweeping   *s;
    Error       err = ERROR_INIT;

    check_word(L, 1);
    if (script->run)
        return luaL_error(L, "a mechanism cannot start commands while it runs");
    s = push_sweeping(L, count);
    if (script->control)
        spec = script->control->input(script->control->ui, &s->choice);
    s->spec = spec ? strdup(spec) : NULL;
    s->options = script->control ? NULL : &script->options;
    s->began = console_seconds();
    s->job = session_submit_work(s->session, run_sweep, s, &err);
    return s->job ? 1 : failure(L, &err);
}

/* ---- questions and answers --------------------------------------------------------- */

/* [-0, +1 to 5, m] */
static int push_question(lua_State *L, Sweeping *s)
{
    lua_pushstring(L, s->question == ASKS_ROW ? "row" : "progress");
    lua_pushlstring(L, text_str(&s->line), s->line.length);
    if (s->question == ASKS_ROW)
        return 2;
    lua_pushinteger(L, s->done);
    lua_pushinteger(L, s->total);
    if (s->left >= 0)
        lua_pushnumber(L, s->left);
    else
        lua_pushnil(L);
    return 5;
}

static int sweep_turn(lua_State *L)
{
    Sweeping *s = check_sweeping(L);
    double    seconds = luaL_checknumber(L, 2);
    Question  question;
    int       done, total;

    pthread_mutex_lock(&s->lock);
    question = s->question;
    done = s->done;
    total = s->total;
    pthread_mutex_unlock(&s->lock);
    if (question != ASKS_NOTHING) /* the worker waits, and leaves all as it is */
        return push_question(L, s);
    if (total)
        console_tell(L, s->began, "a sweep, %d of %d records", done, total);
    else
        console_tell(L, s->began, "a sweep");
    if (seconds > 0 && job_goes_on(s->job))
        job_await(L, s->session, s->job, seconds);
    lua_pushstring(L, job_goes_on(s->job) ? "nothing" : "end");
    return 1;
}

static int sweep_answer(lua_State *L)
{
    Sweeping   *s = check_sweeping(L);
    const char *line = luaL_optstring(L, 2, NULL);

    pthread_mutex_lock(&s->lock);
    if (line && s->question == ASKS_ROW) {
        text_clear(&s->line);
        text_add(&s->line, line);
    }
    s->question = ASKS_NOTHING;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int sweep_stop(lua_State *L)
{
    job_cancel(check_sweeping(L)->job);
    return 0;
}

static int sweep_finish(lua_State *L)
{
    Sweeping *s = check_sweeping(L);
    Error     err;

    while (job_goes_on(s->job))
        job_await(L, s->session, s->job, 3600);
    if (job_state(s->job) == JOB_DONE) {
        text_box_push(L, &s->out);
        return 1;
    }
    err = *job_error(s->job);
    if (err.code == ERR_NONE)
        error_set(&err, ERR_CANCELLED, "interrupted");
    return failure(L, &err);
}

/* The option that was meant.  [-0, +1, v] */
static int sweep_nearest(lua_State *L)
{
    lua_pushstring(L, class_nearest(&class_sweep_options, luaL_checkstring(L, 1)));
    return 1;
}

void sweep_push_functions(lua_State *L)
{
    static const luaL_Reg functions[] = {
        { "begin", sweep_begin }, { "turn", sweep_turn }, { "answer", sweep_answer },
        { "stop", sweep_stop }, { "finish", sweep_finish }, { "named", names_of_record },
        { "nearest", sweep_nearest },
        { NULL, NULL },
    };

    luaL_newlib(L, functions);
}
