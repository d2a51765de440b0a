/* lua_tensor_make.c -- tensors from shapes, nested lists and files. */
#include "script/tensor/lua_tensor_work.h"

#include <math.h>
#include <string.h>

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
    Error           err;

    (void)status;
    if (!work_ended(L, at, &err))
        return failure(L, &err);
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
