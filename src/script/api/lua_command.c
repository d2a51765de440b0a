/* lua_command.c -- commands of the program, run for a script.
 *
 * In the explorer a command goes to the worker with a session of its own, on the input that is
 * on the screen, so that the screen lives and Ctrl-C ends it.
 */
#include "script/host/lua_command.h"

#include <stdlib.h>
#include <string.h>

#include "app/scripting.h"
#include "script/console/lua_console.h"

#define WORK "attnscope.command"

/* ---- here and now ----------------------------------------------------------- */

/* The words as texts; they stay on the stack.  [-0, +1, v] */
static const char **push_words(lua_State *L, int count)
{
    const char **words = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof(*words), 0);

    for (int i = 0; i < count; i++)
        words[i] = check_word(L, i + 1);
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
    words = push_words(L, count);
    text = text_box(L);
    if (!load_given(script, s, &err) ||
        !command_run(s, words, count, false, 0, text, &err))
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
         command_run(s, w->words, w->count, false, 0, &w->out, err);
    session_free(s);
    return ok;
}

/* A mechanism of the script that the command would run gives up when it is cancelled. */
static int work_close(lua_State *L)
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
    const char *spec;
    Work       *w;
    Error       err = ERROR_INIT;

    check_word(L, 1);
    if (script->run)
        return luaL_error(L, "a mechanism cannot start commands while it runs");
    push_words(L, count);
    w = lua_newuserdatauv(L, sizeof(*w), 2);
    *w = (Work){ .words = lua_touserdata(L, -2), .count = count,
                 .began = console_seconds() };
    if (luaL_newmetatable(L, WORK)) {
        lua_pushcfunction(L, work_close);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, work_close);
        lua_setfield(L, -2, "__close");
    }
    lua_setmetatable(L, -2);
    lua_createtable(L, count + 1, 0); /* what the words point to */
    for (int i = 1; i <= count + 1; i++) {
        lua_pushvalue(L, i);
        lua_rawseti(L, -2, i);
    }
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

    console_tell(L, w->began, "attn.command(%s)", w->words[0]);
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
