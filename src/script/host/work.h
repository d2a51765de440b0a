/* script/host/work.h -- what takes long goes to a worker, and the script waits for it.
 *
 * In the explorer the wait ends the script's turn, so the screen lives; elsewhere, and where a
 * turn cannot end, it blocks.  Ctrl-C cancels the work in both.
 */
#ifndef SCRIPT_HOST_WORK_H
#define SCRIPT_HOST_WORK_H

#include "script/host/binding.h"

/* Runs run(context) on the session's worker; context is the userdata at the top.  All that lies on
 * the stack is kept meanwhile: closing it, or stopping the script, does not free it before the work
 * has ended.  After success then(L, LUA_OK, at) goes on with the stack as it is now and one value
 * more, which is to be closed and must stay; a failure gives its values.  doing: what the explorer
 * shows meanwhile (static, or a string on the stack); NULL: the work is short and done at once.  To
 * be returned from a C function.  [-0, +?, v] */
int work_await(lua_State *L, Session *s, const char *doing, JobWork run, lua_KFunction then);
/* As work_await, but `then` also runs after a failure; it asks work_ended first. */
int work_await_end(lua_State *L, Session *s, const char *doing, JobWork run, lua_KFunction then);
/* How it ended. */
bool work_ended(lua_State *L, lua_KContext at, Error *err);
/* The context, of which the userdata lies below `at`. */
void *work_context(lua_State *L, lua_KContext at);
/* A `then` that gives true.  [-0, +1, v] */
int work_push_true(lua_State *L, int status, lua_KContext at);

/* Until the job ends, the lock released; an interrupt cancels it. */
void job_await(lua_State *L, Session *s, Job *job, double seconds);
bool job_goes_on(const Job *job);

/* The stack's `count` texts as words of a command; the table at the top keeps the words and their
 * texts alive.  [-0, +2, v] */
const char **push_words(lua_State *L, int count);

/* Commands that the worker runs while a script of the explorer waits. */

/* Words of a command -> the work, which is to be closed.  [-0, +1 or 3, v] */
int command_begin(lua_State *L);
int command_done(lua_State *L); /* [-0, +1, v] */
/* Waits for what is not done; what attn.command gives.  [-0, +1 or 3, v] */
int command_finish(lua_State *L);

/* A sweep on the worker that leaves questions, as a table of functions: begin(words...), turn(s,
 * seconds) -> "row", line | "progress", line, done, total, left? | "nothing" | "end",
 * answer(s, line?), stop(s), finish(s) as command_finish.  [-0, +1, m] */
void sweep_push_functions(lua_State *L);

#endif
