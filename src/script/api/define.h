/* script/api/define.h -- mechanisms that a script defines: the descriptor made from
 * a table, and the protected call of the script's functions.
 *
 * A descriptor lives until the script's session has ended, since results refer to
 * it; defining an id again puts a new one in its place.
 */
#ifndef SCRIPT_API_DEFINE_H
#define SCRIPT_API_DEFINE_H

#include "attn/run.h"
#include "script/host/binding.h"

typedef struct Defined {
    Mechanism       m; /* first: a run's descriptor is a Defined */
    Script         *script;
    Arena          *arena; /* of this and all it points to */
    int             function, flops, weights; /* in the registry; LUA_NOREF: none */
    bool            per_head;
    bool            by_cells; /* the function is asked for every pair */
    const char    **components; /* what the bits of a pattern mean, [8]; NULL: as usual */
    Keep           *keep; /* of the arena */
    struct Defined *next;
} Defined;

/* Arguments and results of a callback. */
typedef struct Callback {
    Defined    *defined;
    Run        *run;
    const void *params;
    void       *out;
} Callback;

/* What a mechanism's function is called with. */
typedef struct LuaContext {
    Run     *run; /* NULL: the run has ended, but the script still holds the context */
    Defined *defined;
    int      draws; /* without a name */
} LuaContext;

/* ctx:view(name, tensor).  [-0, +0, v] */
int context_view(lua_State *L);
/* A copy of the tensor in memory of the run. */
Tensor context_kept(Run *r, const Tensor *t);

/* Calls body(callback) in the state; a script's error fails the run. */
void define_call(Callback *callback, lua_CFunction body);
/* The callback that a body was called with. */
Callback *define_callback(lua_State *L);
/* Pushes the table of the bound parameters.  [-0, +1, v] */
void define_push_params(lua_State *L, const Callback *callback);
/* Reads the table at 1, of this class, into a descriptor that is not in the catalogue yet.
 * [-0, +1 (keeps it alive), v] */
Defined *define_read(lua_State *L, const Class *class);
/* The function `key` of the table at 1 as a reference.  [-0, +0, v] */
int define_function(lua_State *L, const char *key, bool needed);
/* Adds it to the catalogue; the result is its id.  [-0, +1 or 3, v] */
int define_add(lua_State *L, Defined *defined);

/* Returns `memory`; raises an error when it is NULL.  [-0, +0, v] */
void *define_memory(lua_State *L, void *memory);

#endif
