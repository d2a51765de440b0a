/* command.c -- commands of the program, run for a script.
 *
 * In the explorer a command goes to the worker with a session of its own, on the input that is
 * on the screen, so that the screen lives and Ctrl-C ends it.
 */
#include <stdlib.h>
#include <string.h>

#include "app/scripting.h"
#include "script/console/console.h"
#include "script/host/work.h"

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

/* What scripts find in the explorer's console: print, streams and os.exit
 * that do nothing to the terminal, and functions of the module that let the screen live while
 * they wait.
 */

#define OUTPUT_MOST 200000 /* bytes; then the older half goes */

/* ---- output ----------------------------------------------------------------- */

static void trim(Text *output)
{
    const char *half, *line;
    size_t      kept;

    if (output->length < OUTPUT_MOST || !output->data)
        return;
    half = output->data + output->length / 2;
    line = strchr(half, '\n');
    kept = line ? output->length - (size_t)(line + 1 - output->data) : 0;
    memmove(output->data, output->data + output->length - kept, kept);
    output->data[kept] = '\0';
    output->length = kept;
}

void console_add(Console *c, const char *text)
{
    for (; *text; text++) /* nothing that would move the terminal's cursor */
        text_addf(&c->output, "%c",
                  ((unsigned char)*text < 32 && !strchr("\n\t", *text)) || *text == 127 ? '?'
                                                                                       : *text);
    trim(&c->output);
}

int console_print(lua_State *L)
{
    Console *c = script_of(L)->console;
    int      count = lua_gettop(L);

    for (int i = 1; i <= count; i++) {
        console_add(c, luaL_tolstring(L, i, NULL));
        console_add(c, i < count ? "\t" : "\n");
        lua_pop(L, 1);
    }
    if (!count)
        console_add(c, "\n");
    return 0;
}

/* io.write and file:write of the standard streams.  [-n, +1, v] */
static int console_write(lua_State *L)
{
    Console *c = script_of(L)->console;

    for (int i = lua_istable(L, 1) ? 2 : 1; i <= lua_gettop(L); i++)
        console_add(c, luaL_checkstring(L, i));
    lua_settop(L, 1);
    return 1;
}

static int do_nothing(lua_State *L)
{
    (void)L;
    return 0;
}

static int leave(lua_State *L)
{
    const Control *control = script_of(L)->control;

    control->leave(control->ui);
    return luaL_error(L, "left");
}

/* ---- what scripts find ------------------------------------------------------ */

/* What is waited for lets the screen live; a stream is the console. */
static const char waiting[] =
    "local attn, write, nothing, begin, done, finish = ...\n"
    "local run, start, profile, command = attn.run, attn.start, attn.profile, attn.command\n"
    "function attn.run(mechanism, options)\n"
    "  if not attn.has_ui then return run(mechanism, options) end\n"
    "  local job, message, code = start(mechanism, options)\n"
    "  if not job then return nil, message, code end\n"
    "  return job:wait()\n"
    "end\n"
    "function attn.profile(mechanism, options, plan)\n"
    "  if not attn.has_ui then return profile(mechanism, options, plan) end\n"
    "  local all = { [\"repeat\"] = 7 }\n"
    "  for key, value in pairs(options or {}) do all[key] = value end\n"
    "  for key, value in pairs(plan or {}) do all[key] = value end\n"
    "  local result, message, code, record = attn.run(mechanism, all)\n"
    "  if not result then return nil, message, code, record end\n"
    "  local record, stats = result.record, result.stats\n"
    "  record.nnz, record.density = stats.nnz, stats.density\n"
    "  return record\n"
    "end\n"
    "function attn.command(...)\n"
    "  if not attn.has_ui then return command(...) end\n"
    "  local work <close>, message, code = begin(...)\n"
    "  if not work then return nil, message, code end\n"
    "  while not done(work) and pcall(ui.sleep, 0.02) do end\n"
    "  return finish(work)\n"
    "end\n"
    "if io then\n"
    "  local stream = { write = write, flush = nothing, setvbuf = nothing, close = nothing }\n"
    "  io.stdout, io.stderr, io.write = stream, stream, write\n"
    "end\n";

void console_install(lua_State *L)
{
    lua_pushcfunction(L, console_print);
    lua_setglobal(L, "print");
    lua_getglobal(L, "os");
    lua_pushcfunction(L, leave);
    lua_setfield(L, -2, "exit");
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "attnscope");
    lua_pushboolean(L, true);
    lua_setfield(L, -2, "has_ui");
    if (luaL_loadbufferx(L, waiting, sizeof(waiting) - 1, "=" OWN_CHUNK, "t") != LUA_OK)
        lua_error(L);
    lua_pushvalue(L, -2);
    lua_pushcfunction(L, console_write);
    lua_pushcfunction(L, do_nothing);
    lua_pushcfunction(L, command_begin);
    lua_pushcfunction(L, command_done);
    lua_pushcfunction(L, command_finish);
    lua_call(L, 6, 0);
    caller_names(L, lua_gettop(L), &class_attn);
}
