/* make.c -- tensors from shapes, nested lists and files. */
#include <math.h>
#include <string.h>

#include "script/host/turn.h"
#include "script/host/state.h"
#include "script/host/work.h"
#include "script/tensor/tensor.h"

static const DType dtypes[] = { DT_F32, DT_F64, DT_I32, DT_I64, DT_U8 };

/* [-0, +0, v] */
static DType check_dtype(lua_State *L, int arg)
{
    const char *name = luaL_optstring(L, arg, "f32");

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++)
        if (!strcmp(name, dtype_name(dtypes[i])))
            return dtypes[i];
    luaL_argerror(L, arg, lua_pushfstring(L, "dtype '%s': expected f32, f64, i32, i64 or u8",
                                          name));
    return DT_F32;
}

/* The shape of nested lists, from their first elements. */
static int nested_shape(lua_State *L, int64_t *shape)
{
    int rank = 0, top = lua_gettop(L);

    for (lua_pushvalue(L, 1); lua_istable(L, -1); lua_rawgeti(L, -1, 1)) {
        if (rank == TENSOR_MAX_RANK)
            luaL_argerror(L, 1, "a tensor has at most 4 axes");
        shape[rank++] = (int64_t)lua_rawlen(L, -1);
        luaL_checkstack(L, 2, "nested lists");
    }
    lua_settop(L, top);
    return rank;
}

static int tensor_of_lists(lua_State *L, DType dtype, int rank, const int64_t *shape);

static int push_nested_values(lua_State *L, DType dtype)
{
    int64_t shape[TENSOR_MAX_RANK];
    int     rank = nested_shape(L, shape);

    return tensor_of_lists(L, dtype, rank, shape);
}

/* A flat list is a shape, because a vector of values has a function of its own.
 * [-0, +1, v] */
int attn_tensor(lua_State *L)
{
    DType   dtype = check_dtype(L, 2);
    int64_t shape[TENSOR_MAX_RANK];
    int     rank;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_rawgeti(L, 1, 1);
    if (lua_istable(L, -1))
        return push_nested_values(L, dtype);
    rank = (int)lua_rawlen(L, 1);
    luaL_argcheck(L, rank >= 1 && rank <= TENSOR_MAX_RANK, 1,
                  "expected a shape of 1 to 4 axes, or nested lists of numbers");
    for (int i = 0; i < rank; i++) {
        int whole;

        lua_rawgeti(L, 1, i + 1);
        shape[i] = lua_tointegerx(L, -1, &whole);
        luaL_argcheck(L, whole && shape[i] >= 0, 1,
                      "a shape holds whole numbers; for a vector of values see attn.vector");
    }
    tensor_push(L, dtype, rank, shape);
    return 1;
}

/* [-0, +1, v] */
int attn_vector(lua_State *L)
{
    DType dtype = check_dtype(L, 2);

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_rawgeti(L, 1, 1);
    luaL_argcheck(L, !lua_istable(L, -1), 1,
                  "expected a flat list of numbers; for nested lists see attn.tensor");
    lua_pop(L, 1);
    return push_nested_values(L, dtype);
}

/* ---- files ------------------------------------------------------------------ */

#define LONG_BYTES (4 << 20) /* that a file is written in no time */

static void run_write(TensorWork *w)
{
    if (w->out.data)
        tensor_work_copy(w, &w->a, &w->out);
    input_write_npy(w->path, w->out.data ? &w->out : &w->a, &w->err);
}

static int push_true(lua_State *L, const TensorWork *w)
{
    (void)w;
    lua_pushboolean(L, true);
    return 1;
}

/* [-0, +1 or 3, v] */
int tensor_write(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    const char   *path = check_text(L, 2);
    Tensor        copy = { 0 };
    TensorWork   *w;

    if (!tensor_contiguous(t))
        copy = *tensor_push(L, t->dtype, t->rank, t->shape);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_write, .push = push_true, .a = *t, .out = copy, .path = path,
                       .err = ERROR_INIT };
    return tensor_work_run(L, tensor_bytes(t) < LONG_BYTES ? 0 : (double)INFINITY,
                           "writing a tensor");
}

typedef struct ReadWork {
    const char *path, *name; /* on the stack */
    Arena      *arena;       /* of the tensor below */
    Tensor      t;
} ReadWork;

static bool read_body(void *context, const atomic_bool *cancel, Error *err)
{
    ReadWork *r = context;

    (void)cancel;
    return input_read_array(r->path, r->name, r->arena, &r->t, err);
}

static int push_read(lua_State *L, int status, lua_KContext at)
{
    const ReadWork *r = work_context(L, at);
    LuaTensor      *tensor = class_check(L, (int)at - 2, &class_tensor);

    (void)status;
    tensor->t = r->t;
    account(L, tensor_bytes(&r->t));
    lua_pushvalue(L, (int)at - 2);
    return 1;
}

/* [-0, +1 or 3, v] */
int attn_read(lua_State *L)
{
    const char *path = check_text(L, 1), *name = lua_isnoneornil(L, 2) ? NULL : check_text(L, 2);
    LuaTensor  *tensor;
    Arena      *arena;
    ReadWork   *r;
    Error       err = ERROR_INIT;

    lua_settop(L, 2);
    tensor = tensor_push_closed(L);
    arena = arena_new();
    if (!arena) {
        error_set(&err, ERR_NOMEM, "%s: not enough memory", path);
        return failure(L, &err);
    }
    tensor_adopt(L, tensor, (Tensor){ .rank = 0 }, arena);
    r = lua_newuserdatauv(L, sizeof(*r), 0);
    *r = (ReadWork){ .path = path, .name = name, .arena = arena };
    return work_await(L, script_of(L)->session->thing, "reading a tensor", read_body, push_read);
}

/* Tensors as nested lists, and nested lists as tensors.
 *
 * Only the script's thread may touch Lua's lists.  It converts large ones in pieces, and between
 * pieces obeys Ctrl-C and ends its turn in the explorer.
 */

#define PIECE 4096 /* elements between looks around */

/* The state of a conversion, at 2 on the stack; the tensor is at 1, the open lists from 3 on, one
 * for each axis. */
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
    return turn_is_over(L);
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

static void push_nested_list(lua_State *L, const Nest *nest)
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
static void leave_list(lua_State *L, Nest *nest)
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
        push_nested_list(L, nest);
}

static int continue_nest(lua_State *L, int status, lua_KContext unused)
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
            leave_list(L, nest);
        } else {
            lua_pushvalue(L, nest->storing ? 1 : 3);
            return 1;
        }
    }
    return coroutine_give_way(L, 0, continue_nest);
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
    push_nested_list(L, nest);
    return continue_nest(L, LUA_OK, 0);
}

/* The nested lists at 1 as a tensor of this shape; to be returned from a C function.
 * [-0, +1, v] */
static int tensor_of_lists(lua_State *L, DType dtype, int rank, const int64_t *shape)
{
    Tensor t;
    Nest  *nest;

    lua_settop(L, 1);
    t = *tensor_push(L, dtype, rank, shape);
    lua_insert(L, 1);
    nest = push_nest(L, &t, true);
    lua_insert(L, 2);
    check_list(L, nest);
    return continue_nest(L, LUA_OK, 0);
}

/* Tensors by name as one .npz file, for numpy. */

/* The names in order, so that the same tensors make the same file.  [-0, +1, v] */
static int64_t push_names(lua_State *L)
{
    int64_t count = 0;

    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "tensors are named, like weights=..., but a key is a %s",
                       luaL_typename(L, -2));
        luaL_argcheck(L, class_test(L, -1, &class_tensor) != NULL, 2, "a value is no Tensor");
        lua_pushvalue(L, -2);
        lua_rawseti(L, -4, ++count);
    }
    lua_getglobal(L, "table");
    lua_getfield(L, -1, "sort");
    lua_pushvalue(L, -3);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
    return count;
}

/* Its pointers are kept by the stack. */
typedef struct NpzWork {
    const char        *path;
    const NamedTensor *items;
    int64_t            count;
} NpzWork;

static bool write_items(void *context, const atomic_bool *cancel, Error *err)
{
    const NpzWork *w = context;

    (void)cancel;
    return input_write_npz(w->path, w->items, w->count, err);
}

/* [-0, +1 or 3, v] */
int attn_write_npz(lua_State *L)
{
    const char  *path = check_text(L, 1);
    NamedTensor *items;
    int64_t      count;
    int          names;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    count = push_names(L);
    names = lua_gettop(L);
    luaL_argcheck(L, count > 0 && count < 100000, 2, "expected tensors by name");
    luaL_checkstack(L, (int)count * 2 + 8, "too many tensors");
    items = lua_newuserdatauv(L, (size_t)count * sizeof(*items), 0);
    for (int64_t i = 0; i < count; i++) {
        const Tensor *t;

        lua_rawgeti(L, names, i + 1);
        items[i].name = lua_tostring(L, -1);
        lua_pushvalue(L, -1);
        lua_rawget(L, 2);
        t = tensor_check(L, -1);
        items[i].tensor = tensor_contiguous(t) ? *t : *tensor_push_copy(L, t, t->dtype);
    }
    lua_newuserdatauv(L, sizeof(NpzWork), 0);
    *(NpzWork *)lua_touserdata(L, -1) = (NpzWork){ path, items, count };
    return work_await(L, script_of(L)->session->thing, "writing tensors", write_items,
                      work_push_true);
}
