/* lua_console_lib.c -- what scripts find in the explorer's console: print, streams and os.exit
 * that do nothing to the terminal, and functions of the module that let the screen live while
 * they wait.
 */
#include "script/console/lua_console.h"

#include <string.h>

#include "script/host/lua_command.h"

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
    "  local all = { reps = 7 }\n"
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
