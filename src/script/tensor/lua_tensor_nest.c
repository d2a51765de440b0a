/* lua_tensor_nest.c -- tensors as nested lists, and nested lists as tensors.
 *
 * Lists are Lua's, so all of it is done by the script's thread.  What is large is done in pieces:
 * between them Ctrl-C is heeded, and in the explorer the script gives way when its turn is over.
 */
#include "script/console/lua_console.h"
#include "script/host/lua_coroutine.h"
#include "script/tensor/lua_walk.h"

#define PIECE 4096 /* elements between looks around */

/* Where it is, kept on the stack at 2; the tensor's bytes are at 1, the lists that are open from 3
 * on, an axis each. */
typedef struct Nest {
    Tensor  t;
    int     axis;                     /* of the list at the top */
    int64_t index[TENSOR_MAX_RANK];   /* of its next element */
    int64_t at[TENSOR_MAX_RANK];      /* offset of the list's first */
    int64_t done;                     /* elements since the last look */
    bool    storing;                  /* from lists; else to lists */
} Nest;

/* [-0, +1, m] */
static Nest *push_nest(lua_State *L, const Tensor *t, bool storing)
{
    Nest *nest = lua_newuserdatauv(L, sizeof(*nest), 0);

    *nest = (Nest){ .t = *t, .storing = storing };
    luaL_checkstack(L, TENSOR_MAX_RANK + 6, "nested lists");
    return nest;
}

/* Elements of the innermost list that are done before the next look. */
static int64_t piece_end(const Nest *nest)
{
    int64_t end = nest->index[nest->axis] + PIECE, count = nest->t.shape[nest->axis];

    return end < count ? end : count;
}

/* The next look is due, and the script is to give way. */
static bool turn_ends(lua_State *L, Nest *nest)
{
    if (nest->done < PIECE)
        return false;
    nest->done = 0;
    return console_look(L);
}

/* The list of the next axis, at the next index of this one, becomes the one at the top. */
static void enter(Nest *nest)
{
    int axis = nest->axis++;

    nest->at[axis + 1] = nest->at[axis] + nest->index[axis] * nest->t.stride[axis];
    nest->index[axis + 1] = 0;
    nest->done++;
}

/* ---- to lists ------------------------------------------------------------------- */

static void push_list(lua_State *L, const Nest *nest)
{
    int64_t count = nest->t.shape[nest->axis];

    lua_createtable(L, count < INT_MAX ? (int)count : 0, 0);
}

static void fill_list(lua_State *L, Nest *nest)
{
    int64_t end = piece_end(nest), *i = &nest->index[nest->axis];

    for (nest->done += end - *i; *i < end; ++*i) {
        element_push(L, &nest->t, nest->at[nest->axis] + *i * nest->t.stride[nest->axis]);
        lua_rawseti(L, -2, *i + 1);
    }
}

/* ---- from lists ------------------------------------------------------------------- */

static void check_list(lua_State *L, const Nest *nest)
{
    if (!lua_istable(L, -1) || (int64_t)lua_rawlen(L, -1) != nest->t.shape[nest->axis])
        luaL_error(L, "the lists of axis %d differ: expected %I elements each", nest->axis,
                   (lua_Integer)nest->t.shape[nest->axis]);
}

static void store_list(lua_State *L, Nest *nest)
{
    int64_t end = piece_end(nest), *i = &nest->index[nest->axis];

    for (nest->done += end - *i; *i < end; ++*i) {
        lua_rawgeti(L, -1, *i + 1);
        if (lua_type(L, -1) != LUA_TNUMBER)
            luaL_error(L, "expected a number, got %s", luaL_typename(L, -1));
        element_store(L, &nest->t, nest->at[nest->axis] + *i, lua_gettop(L));
        lua_pop(L, 1);
    }
}

/* ---- both ways --------------------------------------------------------------------- */

/* The list at the top is done; the one above goes on behind it. */
static void leave(lua_State *L, Nest *nest)
{
    int64_t *i = &nest->index[--nest->axis];

    ++*i;
    if (nest->storing)
        lua_pop(L, 1);
    else
        lua_rawseti(L, -2, *i);
}

static void enter_list(lua_State *L, Nest *nest)
{
    if (nest->storing)
        lua_rawgeti(L, -1, nest->index[nest->axis] + 1);
    enter(nest);
    if (nest->storing)
        check_list(L, nest);
    else
        push_list(L, nest);
}

static int go_on(lua_State *L, int status, lua_KContext unused)
{
    Nest *nest = lua_touserdata(L, 2);

    (void)status;
    (void)unused;
    while (!turn_ends(L, nest)) {
        if (nest->axis + 1 < nest->t.rank && nest->index[nest->axis] < nest->t.shape[nest->axis]) {
            enter_list(L, nest);
        } else if (nest->index[nest->axis] < nest->t.shape[nest->axis]) {
            (nest->storing ? store_list : fill_list)(L, nest);
        } else if (nest->axis > 0) {
            leave(L, nest);
        } else {
            lua_pushvalue(L, nest->storing ? 1 : 3);
            return 1;
        }
    }
    return coroutine_give_way(L, 0, go_on);
}

/* [-0, +1, v] */
int tensor_totable(lua_State *L)
{
    const LuaTensor *tensor = (tensor_check(L, 1), lua_touserdata(L, 1));
    const Tensor     t = tensor->t;
    Nest            *nest;

    lua_settop(L, 1);
    if (t.rank == 0) {
        element_push(L, &t, 0);
        return 1;
    }
    tensor_push_shared(L, t, tensor->keep, true); /* which nobody else can close */
    lua_replace(L, 1);
    nest = push_nest(L, &t, false);
    push_list(L, nest);
    return go_on(L, LUA_OK, 0);
}

int tensor_of_lists(lua_State *L, DType dtype, int rank, const int64_t *shape)
{
    Tensor t;
    Nest  *nest;

    lua_settop(L, 1);
    t = *tensor_push(L, dtype, rank, shape);
    lua_insert(L, 1);
    nest = push_nest(L, &t, true);
    lua_insert(L, 2);
    check_list(L, nest);
    return go_on(L, LUA_OK, 0);
}
