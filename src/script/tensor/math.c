/* math.c -- arithmetic and products of tensors in Lua, by the operations of mechanisms.
 *
 * Elementwise results are f64 if an operand is f64 or a whole number type, else
 * f32 (u8 counts as f32).  An axis of 1 is repeated along the other's, and so are
 * leading axes that one of them lacks; a number stands for a tensor of that number.
 */
#include <math.h>
#include <string.h>

#include "script/tensor/tensor.h"

/* ---- elementwise ------------------------------------------------------------ */

/* The tensor at arg, or NULL and the number there. */
static const Tensor *check_operand(lua_State *L, int arg, double *number)
{
    if (lua_type(L, arg) != LUA_TNUMBER)
        return tensor_check(L, arg);
    *number = lua_tonumber(L, arg);
    return NULL;
}

/* b as it is walked beside a result of this shape: an axis of 1 is repeated. */
static Tensor spread(lua_State *L, const Tensor *t, int rank, const int64_t *shape,
                     const Tensor *a, const Tensor *b)
{
    Tensor out = *t;
    char   text[2][80];

    for (int i = 0; i < rank; i++) {
        if (t->shape[i] == shape[i])
            continue;
        if (t->shape[i] != 1)
            luaL_error(L, "the shapes %s and %s differ",
                       tensor_shape_text(a, text[0], sizeof(text[0])),
                       tensor_shape_text(b, text[1], sizeof(text[1])));
        out.shape[i] = shape[i];
        out.stride[i] = 0;
    }
    return out;
}

/* With leading axes of 1. */
static Tensor lifted(Tensor t, int rank)
{
    for (; t.rank < rank; t.rank++) {
        for (int i = t.rank; i > 0; i--) {
            t.shape[i] = t.shape[i - 1];
            t.stride[i] = t.stride[i - 1];
        }
        t.shape[0] = 1;
        t.stride[0] = 0;
    }
    return t;
}

/* Entries [first, first + count) along an axis; what is one number there stays. */
static Tensor part_of(Tensor t, int axis, int64_t first, int64_t count)
{
    if (!t.data || t.rank <= axis || t.shape[axis] == 1)
        return t;
    t.data = (char *)t.data + first * t.stride[axis] * dtype_size(t.dtype);
    t.shape[axis] = count;
    return t;
}

static Tensor without_first_axis(Tensor t)
{
    for (int i = 0; i + 1 < t.rank; i++) {
        t.shape[i] = t.shape[i + 1];
        t.stride[i] = t.stride[i + 1];
    }
    t.rank--;
    return t;
}

static void compute_piece(TensorWork *w, Tensor a, Tensor b, Tensor out)
{
    ArenaMark mark = arena_mark(w->r->arena);

    a = tensor_work_operand(w, a);
    b = tensor_work_operand(w, b);
    switch (w->op) {
    case '+': op_entries_of(w->r, a, b, ENTRY_SUM, 1, out); break;
    case '-': op_entries_of(w->r, a, b, ENTRY_SUM, -1, out); break;
    case '*': op_entries_of(w->r, a, b, ENTRY_PRODUCT, 1, out); break;
    default: op_entries_of(w->r, a, b, ENTRY_QUOTIENT, 1, out);
    }
    arena_release(w->r->arena, mark);
}

/* Halves until a piece is small enough and has three axes. */
static void compute_entries(TensorWork *w, Tensor a, Tensor b, Tensor out)
{
    int axis = 0;

    if (atomic_load(w->cancel) || run_failed(w->r) || tensor_count(&out) == 0)
        return;
    if (out.rank > 3 && out.shape[0] == 1) {
        compute_entries(w, a.rank > 3 ? without_first_axis(a) : a,
                        b.rank > 3 ? without_first_axis(b) : b, without_first_axis(out));
        return;
    }
    if (out.rank <= 3 && tensor_count(&out) <= TENSOR_PIECE) {
        compute_piece(w, a, b, out);
        return;
    }
    while (out.shape[axis] == 1)
        axis++;
    for (int64_t half = out.shape[axis] / 2, first = 0; first <= half; first += half) {
        int64_t count = first ? out.shape[axis] - half : half;

        compute_entries(w, part_of(a, axis, first, count), part_of(b, axis, first, count),
                        part_of(out, axis, first, count));
    }
}

static void run_elementwise(TensorWork *w)
{
    const int64_t one[1] = { 1 };

    compute_entries(w, w->a.data ? w->a : tensor_of(DT_F64, 1, one, &w->x),
                    w->b.data ? w->b : tensor_of(DT_F64, 1, one, &w->y), w->out);
}

/* [-0, +1, v] */
static int elementwise(lua_State *L, char op)
{
    double        x = 0, y = 0;
    const Tensor *a = check_operand(L, 1, &x), *b = check_operand(L, 2, &y);
    int           rank = a && (!b || a->rank > b->rank) ? a->rank : b->rank;
    Tensor        la = lifted(a ? *a : *b, rank), lb = lifted(b ? *b : *a, rank), out, ta, tb;
    TensorWork   *w;
    int64_t       shape[TENSOR_MAX_RANK] = { 1, 1, 1, 1 };

    for (int i = 0; i < rank; i++)
        shape[i] = la.shape[i] == 1 ? lb.shape[i] : la.shape[i];
    ta = spread(L, &la, rank, shape, a ? a : b, b ? b : a);
    tb = spread(L, &lb, rank, shape, a ? a : b, b ? b : a);
    lua_settop(L, 2);
    out = *tensor_push(L, tensor_result_dtype(a, b), rank, shape);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_elementwise, .x = x, .y = y, .out = out, .first = 3, .count = 1,
                       .op = op, .err = ERROR_INIT };
    w->a = a ? ta : (Tensor){ 0 };
    w->b = b ? tb : (Tensor){ 0 };
    script_charge(L, (double)tensor_count(&out));
    return tensor_work_run(L, (double)tensor_count(&out), "arithmetic of tensors");
}

FUNCTION_WITH(tensor_add, elementwise, '+')
FUNCTION_WITH(tensor_sub, elementwise, '-')
FUNCTION_WITH(tensor_mul, elementwise, '*')
FUNCTION_WITH(tensor_div, elementwise, '/')

/* Lua calls it with the operand twice.  [-0, +1, v] */
int tensor_negate(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushinteger(L, -1);
    return elementwise(L, '*');
}

static double square(double x)
{
    return x * x;
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static const struct {
    const char *name;
    double    (*f)(double);
} functions[] = {
    { "exp", exp }, { "log", log }, { "sqrt", sqrt }, { "abs", fabs }, { "square", square },
    { "sign", sign },
};

static double (*named_function(lua_State *L, const char *name))(double)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (!strcmp(name, functions[i].name))
            return functions[i].f;
    luaL_argerror(L, 2, lua_pushfstring(L, "'%s': expected exp, log, sqrt, abs, square, sign or a "
                                        "function", name));
    return NULL;
}

/* A function of the script, number by number; it may wait, and the explorer's turn may end. */
typedef struct Mapping {
    Tensor  from, to;
    Walk    walk;
    int64_t done, count;
} Mapping;

/* The tensor at 1, the function at 2, the result at 3, the Mapping at 4. */
static int map_more(lua_State *L, int status, lua_KContext unused)
{
    Mapping *m = lua_touserdata(L, 4);
    int      is_number;

    (void)unused;
    while (m->done < m->count) {
        if (status == LUA_OK) {
            tensor_check(L, 1);
            lua_settop(L, 4);
            lua_pushvalue(L, 2);
            lua_pushnumber(L, tensor_element(&m->from, m->walk.at));
            lua_callk(L, 1, 1, 0, map_more);
        }
        status = LUA_OK;
        element_set(&m->to, m->done++, lua_tonumberx(L, -1, &is_number));
        if (!is_number)
            luaL_error(L, "map: the function must return a number, got %s", luaL_typename(L, -1));
        walk_next(&m->walk);
    }
    lua_settop(L, 3);
    return 1;
}

static int map_by_script(lua_State *L, const Tensor *t, const Tensor *out)
{
    Mapping *m = lua_newuserdatauv(L, sizeof(*m), 0);

    *m = (Mapping){ .from = *t, .to = *out, .count = tensor_count(t) };
    m->walk = walk_begin(&m->from);
    return map_more(L, LUA_OK, 0);
}

static void run_map(TensorWork *w)
{
    Walk walk = walk_begin(&w->a);

    for (int64_t i = 0, count = tensor_count(&w->a); i < count && !tensor_work_over(w, i); i++) {
        element_set(&w->out, i, w->f(tensor_element(&w->a, walk.at)));
        walk_next(&walk);
    }
}

/* [-0, +1, e] */
int tensor_map(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1), *out;
    double      (*f)(double) = NULL;
    TensorWork   *w;

    lua_settop(L, 2);
    if (lua_type(L, 2) == LUA_TSTRING)
        f = named_function(L, lua_tostring(L, 2));
    else
        luaL_checktype(L, 2, LUA_TFUNCTION);
    out = tensor_push(L, tensor_result_dtype(t, NULL), t->rank, t->shape);
    script_charge(L, (double)tensor_count(t));
    if (!f)
        return map_by_script(L, t, out);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_map, .a = *t, .out = *out, .first = 3, .count = 1, .f = f,
                       .err = ERROR_INIT };
    return tensor_work_run(L, 10 * (double)tensor_count(t), "map of a tensor");
}

/* ---- comparison ------------------------------------------------------------- */

static void run_allclose(TensorWork *w)
{
    Walk   wa = walk_begin(&w->a), wb = walk_begin(&w->b);
    double worst = 0;

    for (int64_t i = 0, count = w->yes ? tensor_count(&w->a) : 0;
         i < count && !tensor_work_over(w, i); i++) {
        double x = tensor_element(&w->a, wa.at), y = tensor_element(&w->b, wb.at);
        double diff = x == y ? 0 : fabs(x - y);

        if (!(diff <= w->y + w->x * fabs(y)))
            w->yes = false;
        if (!(diff <= worst))
            worst = isnan(worst) ? worst : diff;
        walk_next(&wa);
        walk_next(&wb);
    }
    w->number[0] = tensor_same_shape(&w->a, &w->b) ? worst : (double)NAN;
}

static int push_allclose(lua_State *L, const TensorWork *w)
{
    lua_pushboolean(L, w->yes);
    lua_pushnumber(L, w->number[0]);
    return 2;
}

/* [-0, +2, v] */
int tensor_allclose(lua_State *L)
{
    const Tensor *a = tensor_check(L, 1), *b = tensor_check(L, 2);
    double        rtol = luaL_optnumber(L, 3, 1e-5), atol = luaL_optnumber(L, 4, 1e-8);
    TensorWork   *w = tensor_work_push(L);

    *w = (TensorWork){ .run = run_allclose, .push = push_allclose, .a = *a, .b = *b, .x = rtol,
                       .y = atol, .yes = tensor_same_shape(a, b), .err = ERROR_INIT };
    return tensor_work_run(L, (double)tensor_count(a), "comparing tensors");
}

/* ---- products --------------------------------------------------------------- */

#define MOST_SUMS  (1 << 23) /* in double at a time */
#define PIECE_ROWS 256       /* at least */
#define SPEED      8         /* steps of the product in the time of one of other loops */

/* A factor [h,rows,cols] as op_gemm takes it: rows or columns are contiguous, else it is copied. */
static Tensor factor_of(const TensorWork *w, const Tensor *t, bool *is_turned)
{
    Tensor x = *t, wide;

    if (x.rank == 2) {
        x.rank = 3;
        for (int i = 2; i > 0; i--) {
            x.shape[i] = t->shape[i - 1];
            x.stride[i] = t->stride[i - 1];
        }
        x.shape[0] = 1;
        x.stride[0] = 0;
    }
    *is_turned = x.stride[2] != 1 && x.stride[1] == 1;
    if (*is_turned)
        x = tensor_turned(x);
    if (dtype_is_float(x.dtype) && x.stride[2] == 1 && x.stride[1] >= x.shape[2])
        return x;
    wide = run_tensor(w->r, DT_F64, 3, x.shape);
    if (!run_failed(w->r))
        tensor_work_copy(w, &x, &wide);
    return wide;
}

/* Rows [i, i + rows) of the head's result, summed up in double. */
static void multiply_rows(TensorWork *w, Tensor a, bool ta, Tensor b, bool tb, Tensor out)
{
    ArenaMark mark = arena_mark(w->r->arena);
    Tensor    sums = out.dtype == DT_F64 ? out : run_tensor(w->r, DT_F64, 3, out.shape);

    op_entries(w->r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, sums);
    op_gemm(w->r, a, ta, b, tb, 1, 1, sums, FLOP_NONE);
    if (out.dtype != DT_F64)
        op_entries(w->r, sums, ENTRY_CAST, 0, out);
    arena_release(w->r->arena, mark);
}

static void run_matmul(TensorWork *w)
{
    bool    ta, tb;
    Tensor  a = factor_of(w, &w->a, &ta), b = factor_of(w, &w->b, &tb), out = w->out;
    int64_t heads = out.rank == 3 ? out.shape[0] : 1;
    int64_t n = out.shape[out.rank - 2], m = out.shape[out.rank - 1];
    int64_t rows = m > 0 ? MOST_SUMS / m / PIECE_ROWS * PIECE_ROWS : 0;

    rows = rows > PIECE_ROWS ? rows : PIECE_ROWS;
    for (int64_t head = 0; m > 0 && head < heads; head++)
        for (int64_t i = 0; i < n && !run_failed(w->r); i += rows) {
            int64_t count = n - i < rows ? n - i : rows, shape[3] = { 1, count, m };
            Tensor  part = tensor_of(out.dtype, 3, shape, (char *)out.data +
                                     (head * n + i) * m * dtype_size(out.dtype));

            multiply_rows(w, part_of(part_of(a, 0, head, 1), ta ? 2 : 1, i, count), ta,
                          part_of(b, 0, head, 1), tb, part);
        }
}

/* [-0, +1, v] */
int tensor_matmul(lua_State *L)
{
    const Tensor *a = tensor_check(L, 1), *b = tensor_check(L, 2), *out;
    int           rank = a->rank;
    char          text[2][80];
    int64_t       shape[3];
    TensorWork   *w;
    double        steps;

    if ((rank != 2 && rank != 3) || b->rank != rank || a->shape[rank - 1] != b->shape[rank - 2] ||
        (rank == 3 && a->shape[0] != b->shape[0]))
        luaL_error(L, "matmul: expected [n,k] and [k,m] or [h,n,k] and [h,k,m], got %s and %s",
                   tensor_shape_text(a, text[0], sizeof(text[0])),
                   tensor_shape_text(b, text[1], sizeof(text[1])));
    memcpy(shape, a->shape, sizeof(shape[0]) * (size_t)rank);
    shape[rank - 1] = b->shape[rank - 1];
    lua_settop(L, 2);
    out = tensor_push(L, tensor_result_dtype(a, b), rank, shape);
    steps = (double)tensor_count(out) * (double)a->shape[rank - 1];
    script_charge(L, 2 * steps);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_matmul, .a = *a, .b = *b, .out = *out, .first = 3, .count = 1,
                       .err = ERROR_INIT };
    return tensor_work_run(L, steps / SPEED, "a product of tensors");
}
