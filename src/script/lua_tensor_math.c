/* lua_tensor_math.c -- arithmetic on tensors in Lua.
 *
 * Elementwise results are f64 if an operand is f64 or a whole number type, else
 * f32 (u8 counts as f32).  An axis of 1 is repeated along the other's; a number
 * stands for a tensor of that number.
 */
#include "script/lua_walk.h"

#include <math.h>
#include <string.h>

static DType result_dtype(const Tensor *a, const Tensor *b)
{
    bool narrow = (!a || a->dtype == DT_F32 || a->dtype == DT_U8) &&
                  (!b || b->dtype == DT_F32 || b->dtype == DT_U8);

    return narrow ? DT_F32 : DT_F64;
}

/* ---- elementwise ------------------------------------------------------------ */

/* The tensor at arg, or NULL and the number there. */
static const Tensor *check_operand(lua_State *L, int arg, double *number)
{
    if (lua_type(L, arg) != LUA_TNUMBER)
        return tensor_check(L, arg);
    *number = lua_tonumber(L, arg);
    return NULL;
}

static double apply(char op, double a, double b)
{
    switch (op) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    default: return a / b;
    }
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

/* [-0, +1, v] */
static int elementwise(lua_State *L, char op)
{
    double        x = 0, y = 0;
    const Tensor *a = check_operand(L, 1, &x), *b = check_operand(L, 2, &y);
    const Tensor *like = a ? a : b;
    Tensor       *out, ta, tb;
    Walk          wa, wb;
    int64_t       shape[TENSOR_MAX_RANK] = { 1, 1, 1, 1 };
    char          text[2][80];

    if (a && b && a->rank != b->rank)
        luaL_error(L, "the shapes %s and %s differ", tensor_shape_text(a, text[0], sizeof(text[0])),
                   tensor_shape_text(b, text[1], sizeof(text[1])));
    for (int i = 0; i < like->rank; i++)
        shape[i] = a && b && a->shape[i] == 1 ? b->shape[i] : like->shape[i];
    ta = spread(L, a ? a : b, like->rank, shape, a ? a : b, b ? b : a);
    tb = spread(L, b ? b : a, like->rank, shape, a ? a : b, b ? b : a);
    out = tensor_push(L, result_dtype(a, b), like->rank, shape);
    wa = walk_begin(&ta);
    wb = walk_begin(&tb);
    script_charge(L, (double)tensor_count(out));
    for (int64_t i = 0, count = tensor_count(out); i < count; i++) {
        element_set(out, i, apply(op, a ? element_number(a, wa.at) : x,
                                  b ? element_number(b, wb.at) : y));
        walk_next(&wa);
        walk_next(&wb);
    }
    return 1;
}

int tensor_add(lua_State *L)
{
    return elementwise(L, '+');
}

int tensor_sub(lua_State *L)
{
    return elementwise(L, '-');
}

int tensor_mul(lua_State *L)
{
    return elementwise(L, '*');
}

int tensor_div(lua_State *L)
{
    return elementwise(L, '/');
}

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

static double call_function(lua_State *L, double x)
{
    int    is_number;
    double y;

    lua_pushvalue(L, 2);
    lua_pushnumber(L, x);
    lua_call(L, 1, 1);
    y = lua_tonumberx(L, -1, &is_number);
    if (!is_number)
        luaL_error(L, "map: the function must return a number, got %s", luaL_typename(L, -1));
    lua_pop(L, 1);
    return y;
}

/* [-0, +1, e] */
int tensor_map(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    double      (*f)(double) = NULL;
    Tensor       *out;
    Walk          walk = walk_begin(t);

    if (lua_type(L, 2) == LUA_TSTRING)
        f = named_function(L, lua_tostring(L, 2));
    else
        luaL_checktype(L, 2, LUA_TFUNCTION);
    out = tensor_push(L, result_dtype(t, NULL), t->rank, t->shape);
    script_charge(L, (double)tensor_count(t));
    for (int64_t i = 0, count = tensor_count(t); i < count; i++, walk_next(&walk)) {
        double x = element_number(tensor_check(L, 1), walk.at);

        x = f ? f(x) : call_function(L, x);
        element_set(out, i, x);
    }
    return 1;
}

/* ---- products and comparison ------------------------------------------------ */

static void multiply(const Tensor *a, const Tensor *b, Tensor *out, int64_t head)
{
    int     row = a->rank - 2, col = a->rank - 1;
    int64_t n = a->shape[row], inner = a->shape[col], m = b->shape[col];
    int64_t a0 = row ? head * a->stride[0] : 0, b0 = row ? head * b->stride[0] : 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            double sum = 0;

            for (int64_t k = 0; k < inner; k++)
                sum += element_number(a, a0 + i * a->stride[row] + k * a->stride[col]) *
                       element_number(b, b0 + k * b->stride[row] + j * b->stride[col]);
            element_set(out, (head * n + i) * m + j, sum);
        }
}

/* [-0, +1, v] */
int tensor_matmul(lua_State *L)
{
    const Tensor *a = tensor_check(L, 1), *b = tensor_check(L, 2);
    int           rank = a->rank;
    char          text[2][80];
    int64_t       shape[3], heads = rank == 3 ? a->shape[0] : 1;
    Tensor       *out;

    if ((rank != 2 && rank != 3) || b->rank != rank || a->shape[rank - 1] != b->shape[rank - 2] ||
        (rank == 3 && a->shape[0] != b->shape[0]))
        luaL_error(L, "matmul: expected [n,k] and [k,m] or [h,n,k] and [h,k,m], got %s and %s",
                   tensor_shape_text(a, text[0], sizeof(text[0])),
                   tensor_shape_text(b, text[1], sizeof(text[1])));
    memcpy(shape, a->shape, sizeof(shape));
    shape[rank - 1] = b->shape[rank - 1];
    out = tensor_push(L, result_dtype(a, b), rank, shape);
    script_charge(L, 2.0 * (double)tensor_count(out) * (double)a->shape[rank - 1]);
    for (int64_t head = 0; head < heads; head++)
        multiply(a, b, out, head);
    return 1;
}

/* [-0, +2, v] */
int tensor_allclose(lua_State *L)
{
    const Tensor *a = tensor_check(L, 1), *b = tensor_check(L, 2);
    double        rtol = luaL_optnumber(L, 3, 1e-5), atol = luaL_optnumber(L, 4, 1e-8), worst = 0;
    bool          close = tensor_same_shape(a, b);
    Walk          wa = walk_begin(a), wb = walk_begin(b);

    for (int64_t i = 0, count = close ? tensor_count(a) : 0; i < count; i++) {
        double x = element_number(a, wa.at), y = element_number(b, wb.at);
        double diff = x == y ? 0 : fabs(x - y);

        if (!(diff <= atol + rtol * fabs(y)))
            close = false;
        if (!(diff <= worst))
            worst = isnan(worst) ? worst : diff;
        walk_next(&wa);
        walk_next(&wb);
    }
    lua_pushboolean(L, close);
    lua_pushnumber(L, tensor_same_shape(a, b) ? worst : (double)NAN);
    return 2;
}
