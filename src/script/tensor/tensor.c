/* tensor.c -- tensors in Lua: the object, its elements and slices.
 *
 * A tensor of its own owns its bytes; a slice, and a tensor of a run or an
 * input, shares those of its owner and keeps it alive.  What belongs to a run
 * or an input cannot be written.  Indices count from 0.
 */
#include <stdlib.h>
#include <string.h>

#include "script/tensor/tensor.h"

#define TENSOR_MAX_BYTES (64ll << 30)

/* ---- the object ------------------------------------------------------------- */

static LuaTensor *check_open(lua_State *L, int arg)
{
    LuaTensor *tensor = class_check(L, arg, &class_tensor);

    if (!tensor->keep)
        luaL_argerror(L, arg, "the tensor is closed");
    return tensor;
}

Tensor *tensor_check(lua_State *L, int arg)
{
    return &check_open(L, arg)->t;
}

LuaTensor *tensor_push_closed(lua_State *L)
{
    return class_push(L, &class_tensor, sizeof(LuaTensor), 0);
}

static int64_t checked_bytes(lua_State *L, DType dtype, int rank, const int64_t *shape)
{
    int64_t bytes = dtype_size(dtype);

    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes) ||
            bytes > TENSOR_MAX_BYTES)
            luaL_error(L, "a tensor of this shape is too large (axis %d has %I)", i,
                       (lua_Integer)shape[i]);
    return bytes;
}

Tensor *tensor_push(lua_State *L, DType dtype, int rank, const int64_t *shape)
{
    int64_t    bytes = checked_bytes(L, dtype, rank, shape);
    LuaTensor *tensor = tensor_push_closed(L);
    void      *data = calloc((size_t)(bytes ? bytes : 1), 1);

    if (data)
        tensor->keep = keep_new(data, free, NULL);
    if (!tensor->keep)
        luaL_error(L, "not enough memory for a tensor of %I bytes", (lua_Integer)bytes);
    tensor->t = tensor_of(dtype, rank, shape, data);
    account(L, bytes);
    return &tensor->t;
}

void tensor_push_shared(lua_State *L, Tensor t, Keep *keep, bool frozen)
{
    LuaTensor *tensor = tensor_push_closed(L);

    *tensor = (LuaTensor){ .t = t, .keep = keep_retain(keep), .frozen = frozen };
}

void drop_arena(void *arena)
{
    arena_free(arena);
}

void tensor_adopt(lua_State *L, LuaTensor *tensor, Tensor t, Arena *arena)
{
    tensor->t = t;
    tensor->keep = keep_new(arena, drop_arena, NULL);
    if (!tensor->keep)
        luaL_error(L, "not enough memory");
    account(L, tensor_bytes(&t));
}

/* To a contiguous tensor of the same dtype. */
static void copy_elements(const Tensor *from, Tensor *to)
{
    Walk    walk = walk_begin(from);
    int64_t count = tensor_count(from), size = dtype_size(from->dtype);

    for (int64_t i = 0; i < count; i++, walk_next(&walk))
        memcpy((char *)to->data + i * size, (const char *)from->data + walk.at * size,
               (size_t)size);
}

Tensor *tensor_push_copy(lua_State *L, const Tensor *t, DType dtype)
{
    Tensor *out = tensor_push(L, dtype, t->rank, t->shape);
    Walk    walk = walk_begin(t);
    int64_t count = tensor_count(t);

    if (t->dtype == dtype) {
        copy_elements(t, out);
        return out;
    }
    for (int64_t i = 0; i < count; i++, walk_next(&walk)) {
        lua_pushnumber(L, tensor_element(t, walk.at));
        element_store(L, out, i, lua_gettop(L));
        lua_pop(L, 1);
    }
    return out;
}

CLOSE_OBJECT(tensor_close, LuaTensor, class_tensor)

/* [-0, +1, m] */
static int tensor_describe(lua_State *L)
{
    const LuaTensor *tensor = class_check(L, 1, &class_tensor);
    char             shape[80];

    if (!tensor->keep)
        lua_pushliteral(L, "Tensor (closed)");
    else
        lua_pushfstring(L, "Tensor %s %s", dtype_name(tensor->t.dtype),
                        tensor_shape_text(&tensor->t, shape, sizeof(shape)));
    return 1;
}

/* [-0, +1, v] */
static int tensor_length(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);

    lua_pushinteger(L, t->rank ? t->shape[0] : 0);
    return 1;
}

/* ---- elements --------------------------------------------------------------- */

void element_push(lua_State *L, const Tensor *t, int64_t at)
{
    if (t->dtype == DT_I64)
        lua_pushinteger(L, ((const int64_t *)t->data)[at]);
    else if (dtype_is_float(t->dtype))
        lua_pushnumber(L, tensor_element(t, at));
    else
        lua_pushinteger(L, (lua_Integer)tensor_element(t, at));
}

static lua_Integer check_whole(lua_State *L, int value, lua_Integer lo, lua_Integer hi,
                               const char *dtype)
{
    int         whole;
    lua_Integer number = lua_tointegerx(L, value, &whole);

    if (!whole || number < lo || number > hi)
        luaL_error(L, "%s is not a whole number of an %s tensor", luaL_tolstring(L, value, NULL),
                   dtype);
    return number;
}

void element_store(lua_State *L, Tensor *t, int64_t at, int value)
{
    switch (t->dtype) {
    case DT_F32:
    case DT_F64: element_set(t, at, luaL_checknumber(L, value)); break;
    case DT_I32:
        tensor_i32(t)[at] = (int32_t)check_whole(L, value, INT32_MIN, INT32_MAX, "i32");
        break;
    case DT_I64:
        ((int64_t *)t->data)[at] = check_whole(L, value, INT64_MIN, INT64_MAX, "i64");
        break;
    case DT_U8: tensor_u8(t)[at] = (uint8_t)check_whole(L, value, 0, UINT8_MAX, "u8"); break;
    }
}

/* Offset of the element whose indices begin at argument 2. */
static int64_t check_element(lua_State *L, const Tensor *t, int values)
{
    int64_t at = 0;

    if (lua_gettop(L) != 1 + t->rank + values)
        luaL_error(L, "the tensor has %d axes, so %d arguments are expected, got %d", t->rank,
                   t->rank + values, lua_gettop(L) - 1);
    for (int i = 0; i < t->rank; i++)
        at += check_index(L, 2 + i, t->shape[i], "index") * t->stride[i];
    return at;
}

/* [-0, +1, v] */
static int tensor_get_element(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);

    element_push(L, t, check_element(L, t, 0));
    return 1;
}

/* [-0, +0, v] */
static int tensor_set_element(lua_State *L)
{
    LuaTensor *tensor = check_open(L, 1);
    int64_t    at = check_element(L, &tensor->t, 1);

    if (tensor->frozen)
        luaL_error(L, "this tensor belongs to a run or an input; change a copy (t:copy())");
    element_store(L, &tensor->t, at, lua_gettop(L));
    return 0;
}

/* ---- slices ----------------------------------------------------------------- */

static int64_t slice_field(lua_State *L, int field, int64_t fallback, int64_t lo, int64_t hi)
{
    static const char *const names[] = { "", "from", "to", "step" };
    int         whole = 1;
    lua_Integer value = fallback;
    const char *text;

    if (lua_rawgeti(L, -1, field) != LUA_TNIL)
        value = lua_tointegerx(L, -1, &whole);
    text = luaL_tolstring(L, -1, NULL);
    if (!whole || value < lo || value > hi)
        luaL_error(L, "slice: %s of {from, to, step}: expected a whole number from %I to %I, got "
                   "%s", names[field], (lua_Integer)lo, (lua_Integer)hi, text);
    lua_pop(L, 2);
    return value;
}

/* The value at the top says what to take of one axis. */
static void slice_axis(lua_State *L, const Tensor *t, int axis, Tensor *out)
{
    int64_t from = 0, to = t->shape[axis], step = 1;

    if (lua_isinteger(L, -1)) {
        from = lua_tointeger(L, -1);
        if (from < 0 || from >= to)
            luaL_error(L, "slice: index %I of axis %d is outside 0..%I", (lua_Integer)from, axis,
                       (lua_Integer)to - 1);
    } else if (lua_istable(L, -1)) {
        to = slice_field(L, 2, to, 0, t->shape[axis]);
        from = slice_field(L, 1, 0, 0, to);
        step = slice_field(L, 3, 1, 1, INT32_MAX);
    } else if (!lua_isnil(L, -1)) {
        luaL_error(L, "slice: axis %d: expected {from, to}, an index or nil, got %s", axis,
                   luaL_typename(L, -1));
    }
    out->data = (char *)out->data + from * t->stride[axis] * dtype_size(t->dtype);
    if (lua_isinteger(L, -1))
        return;
    out->shape[out->rank] = (to - from + step - 1) / step;
    out->stride[out->rank++] = t->stride[axis] * step;
}

/* [-0, +1, v] */
static int tensor_slice(lua_State *L)
{
    const LuaTensor *tensor = check_open(L, 1);
    const Tensor    *t = &tensor->t;
    Tensor           out = { .dtype = t->dtype, .data = t->data };

    luaL_checktype(L, 2, LUA_TTABLE);
    for (int i = 0; i < TENSOR_MAX_RANK; i++)
        out.shape[i] = out.stride[i] = 1;
    for (int i = 0; i < t->rank; i++) {
        lua_rawgeti(L, 2, i + 1);
        slice_axis(L, t, i, &out);
        lua_pop(L, 1);
    }
    tensor_push_shared(L, out, tensor->keep, tensor->frozen);
    return 1;
}

/* [-0, +1, v] */
static int tensor_transpose(lua_State *L)
{
    const LuaTensor *tensor = check_open(L, 1);
    const Tensor    *t = &tensor->t;
    Tensor           out = *t;
    int              last = t->rank - 1;

    if (t->rank < 2)
        luaL_error(L, "transpose: expected 2 axes or more, the tensor has %d", t->rank);
    out.shape[last] = t->shape[last - 1];
    out.shape[last - 1] = t->shape[last];
    out.stride[last] = t->stride[last - 1];
    out.stride[last - 1] = t->stride[last];
    tensor_push_shared(L, out, tensor->keep, tensor->frozen);
    return 1;
}

/* ---- fields and files ------------------------------------------------------- */

/* [-0, +1, v] */
static int tensor_shape(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);

    lua_createtable(L, t->rank, 0);
    for (int i = 0; i < t->rank; i++) {
        lua_pushinteger(L, t->shape[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

FIELD_GETTER(tensor_dtype, lua_pushstring, dtype_name(tensor_check(L, 1)->dtype))
FIELD_GETTER(tensor_size_bytes, lua_pushinteger, tensor_bytes(tensor_check(L, 1)))

static const luaL_Reg tensor_meta[] = {
    { "__gc", tensor_close }, { "__close", tensor_close }, { "__tostring", tensor_describe },
    { "__len", tensor_length }, { "__add", tensor_add }, { "__sub", tensor_sub },
    { "__mul", tensor_mul }, { "__div", tensor_div }, { "__unm", tensor_negate }, { NULL, NULL },
};

#define NUMBER_OR_TENSOR "number|attnscope.Tensor"

static const Member tensor_members[] = {
    { "shape", tensor_shape, NULL, "integer[]", "extents of the axes" },
    { "dtype", tensor_dtype, NULL, "string", "f32, f64, i32, i64 or u8" },
    { "get", tensor_get_element, "...: integer", "number", "The element at these indices." },
    { "set", tensor_set_element, "...: number", "",
      "Sets the element at the leading indices to the last argument." },
    { "slice", tensor_slice, "axes: (integer[]|integer|nil)[]", "attnscope.Tensor",
      "A view without a copy: per axis {from, to[, step]} (to is left out), an index, or nil." },
    { "transpose", tensor_transpose, "", "attnscope.Tensor",
      "A view with the last two axes exchanged." },
    { "copy", tensor_copy, "", "attnscope.Tensor", "A contiguous copy that may be written." },
    { "totable", tensor_totable, "", "table", "Nested Lua lists." },
    { "tostring", NULL, "format?: string, most?: integer", "string",
      "The numbers as text, at most `most` (default 12) of an axis." },
    { "write", tensor_write, "path: string", "true?, string?, string?", "Writes a .npy file." },
    { "bytes", tensor_size_bytes, "", "integer", "Size of the elements." },
    { "sum", tensor_sum, "axis?: integer", NUMBER_OR_TENSOR,
      "Of all elements, or along an axis (counted from 0)." },
    { "mean", tensor_mean, "axis?: integer", NUMBER_OR_TENSOR, "As sum." },
    { "min", tensor_min, "axis?: integer", NUMBER_OR_TENSOR, "As sum; NaN if there is a NaN." },
    { "max", tensor_max, "axis?: integer", NUMBER_OR_TENSOR, "As sum; NaN if there is a NaN." },
    { "argmax", tensor_argmax, "axis?: integer", "integer|attnscope.Tensor, ...integer",
      "Indices of the first largest element, one result per axis; or a tensor along an axis." },
    { "nnz", tensor_nnz, "", "integer", "How many elements are not 0." },
    { "map", tensor_map, "f: string|fun(x: number): number", "attnscope.Tensor",
      "exp, log, sqrt, abs, square, sign, or a function, applied to every element." },
    { "softmax", tensor_softmax, "causal?: boolean|integer", "attnscope.Tensor",
      "Softmax along the last axis; causal: columns after the row are left out (a number: columns "
      "after row + number)." },
    { "sort_desc", tensor_sort_desc, "...: integer", "attnscope.Tensor, attnscope.Tensor",
      "The numbers along the last axis from the largest on, of equals the first first and NaN "
      "last, as f64; and the index of each, as i32.  With indices of one row alone: "
      "t:sort_desc(row), or (head, row)." },
    { "cumsum", tensor_cumsum, "axis: integer", "attnscope.Tensor", "Running sums along an axis." },
    { "reshape", tensor_reshape, "shape: integer[]", "attnscope.Tensor",
      "A copy of the same numbers in another shape." },
    { "matmul", tensor_matmul, "other: attnscope.Tensor", "attnscope.Tensor",
      "Product of [n,k] and [k,m], or of [h,n,k] and [h,k,m]." },
    { "allclose", tensor_allclose, "other: attnscope.Tensor, rtol?: number, atol?: number",
      "boolean, number", "Whether all |a - b| <= atol + rtol |b|; and the largest |a - b|." },
    { "close", tensor_close, "", "", "Gives the memory back now." },
    MEMBER_END,
};

KEEP_OBJECT(tensor_keep, LuaTensor)

const Class class_tensor = {
    .name = "Tensor",
    .help = "Numbers in up to four axes, row major.  +, -, * and / work element by element, on two "
            "tensors or a tensor and a number, and - before one; an axis of 1 is repeated along "
            "the other's, and so are leading axes that one of them lacks: [h,n,m] + [n,m].",
    .members = tensor_members,
    .meta = tensor_meta,
    .operators = "---@operator add(attnscope.Tensor|number): attnscope.Tensor\n"
                 "---@operator sub(attnscope.Tensor|number): attnscope.Tensor\n"
                 "---@operator mul(attnscope.Tensor|number): attnscope.Tensor\n"
                 "---@operator div(attnscope.Tensor|number): attnscope.Tensor\n"
                 "---@operator unm: attnscope.Tensor\n"
                 "---@operator len: integer\n",
    .instead = "t:set(i, ..., value) writes a number, t:slice and attn.tensor make another",
    .keep = tensor_keep,
};

/* ---- work of operations: at once, or on the worker ------------------------ */

#define LONG_STEPS  2e7 /* some hundredths of a second */
#define SHORT_STEPS 1e5 /* so little that making a run would be much of it */

static bool work_body(void *context, const atomic_bool *cancel, Error *err)
{
    TensorWork *w = context;
    Run        *own = w->r ? NULL : run_bare();

    w->r = w->r ? w->r : own;
    w->cancel = cancel;
    if (w->r) {
        w->r->spec.cancel = cancel;
        w->run(w);
        if (w->err.code == ERR_NONE)
            w->err = w->r->err;
    } else {
        error_set(&w->err, ERR_NOMEM, "not enough memory for an operation on tensors");
    }
    run_free(own);
    if (w->err.code != ERR_NONE) {
        *err = w->err;
        return false;
    }
    return !atomic_load(cancel) || error_set(err, ERR_CANCELLED, "interrupted");
}

/* [-0, +?, m] */
static int give(lua_State *L, const TensorWork *w)
{
    if (w->push)
        return w->push(L, w);
    for (int i = 0; i < w->count; i++)
        lua_pushvalue(L, w->first + i);
    return w->count;
}

static int push_results(lua_State *L, int status, lua_KContext at)
{
    (void)status;
    return give(L, work_context(L, at));
}

TensorWork *tensor_work_push(lua_State *L)
{
    TensorWork *w = lua_newuserdatauv(L, sizeof(*w), 0);

    *w = (TensorWork){ .err = ERROR_INIT };
    return w;
}

static int free_kept(lua_State *L)
{
    Run **run = lua_touserdata(L, 1);

    run_free(*run);
    *run = NULL;
    return 0;
}

/* The run of this state's short operations, as new; NULL: no memory.  [-0, +0, m] */
static Run *kept_run(lua_State *L)
{
    static const char key;
    Run             **run;

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TNIL) {
        run = lua_newuserdatauv(L, sizeof(*run), 0);
        *run = NULL;
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, free_kept);
        lua_setfield(L, -2, "__gc");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
        lua_remove(L, -2);
    }
    run = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (!*run)
        *run = run_bare();
    if (*run) {
        (*run)->err = ERROR_INIT;
        arena_reset((*run)->arena);
    }
    return *run;
}

int tensor_work_run(lua_State *L, double steps, const char *doing)
{
    TensorWork *w = lua_touserdata(L, -1);
    atomic_bool never = false;
    Error       err = ERROR_INIT;

    if (steps >= LONG_STEPS)
        return work_await(L, script_of(L)->session->thing, doing, work_body, push_results);
    w->r = steps < SHORT_STEPS ? kept_run(L) : NULL;
    return work_body(w, &never, &err) ? give(L, w) : failure(L, &err);
}

Tensor tensor_work_operand(const TensorWork *w, Tensor t)
{
    Tensor wide;

    if (t.dtype == DT_F32 || t.dtype == DT_F64 || t.dtype == DT_I32)
        return t;
    wide = run_tensor(w->r, DT_F64, t.rank, t.shape);
    if (!run_failed(w->r))
        tensor_work_copy(w, &t, &wide);
    return wide;
}

void tensor_work_copy(const TensorWork *w, const Tensor *from, Tensor *to)
{
    Walk    walk = walk_begin(from);
    int64_t count = tensor_count(from), size = dtype_size(from->dtype);

    for (int64_t i = 0; i < count && !tensor_work_over(w, i); i++, walk_next(&walk))
        if (to->dtype == from->dtype)
            memcpy((char *)to->data + i * size, (const char *)from->data + walk.at * size,
                   (size_t)size);
        else
            element_set(to, i, tensor_element(from, walk.at));
}
