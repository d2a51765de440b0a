/* lua_tensor_math.c -- arithmetic on tensors in Lua.
 *
 * Elementwise results are f64 if an operand is f64 or a whole number type, else
 * f32 (u8 counts as f32).  An axis of 1 is repeated along the other's; a number
 * stands for a tensor of that number.
 */
#include "script/tensor/lua_tensor_work.h"

#include <math.h>
#include <string.h>

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

static void run_elementwise(TensorWork *w)
{
    Walk    wa = walk_begin(&w->a), wb = walk_begin(&w->b);
    bool    a = w->a.data != NULL, b = w->b.data != NULL;
    int64_t count = tensor_count(&w->out);

    for (int64_t i = 0; i < count && !tensor_work_over(w, i); i++) {
        element_set(&w->out, i, apply((char)w->op, a ? element_number(&w->a, wa.at) : w->x,
                                      b ? element_number(&w->b, wb.at) : w->y));
        walk_next(&wa);
        walk_next(&wb);
    }
}

/* [-0, +1, v] */
static int elementwise(lua_State *L, char op)
{
    double        x = 0, y = 0;
    const Tensor *a = check_operand(L, 1, &x), *b = check_operand(L, 2, &y);
    const Tensor *like = a ? a : b;
    Tensor        out, ta, tb;
    TensorWork   *w;
    int64_t       shape[TENSOR_MAX_RANK] = { 1, 1, 1, 1 };
    char          text[2][80];

    if (a && b && a->rank != b->rank)
        luaL_error(L, "the shapes %s and %s differ", tensor_shape_text(a, text[0], sizeof(text[0])),
                   tensor_shape_text(b, text[1], sizeof(text[1])));
    for (int i = 0; i < like->rank; i++)
        shape[i] = a && b && a->shape[i] == 1 ? b->shape[i] : like->shape[i];
    ta = spread(L, a ? a : b, like->rank, shape, a ? a : b, b ? b : a);
    tb = spread(L, b ? b : a, like->rank, shape, a ? a : b, b ? b : a);
    lua_settop(L, 2);
    out = *tensor_push(L, tensor_result_dtype(a, b), like->rank, shape);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_elementwise, .x = x, .y = y, .out = out, .first = 3, .count = 1,
                       .op = op, .err = ERROR_INIT };
    w->a = a ? ta : (Tensor){ 0 };
    w->b = b ? tb : (Tensor){ 0 };
    script_charge(L, (double)tensor_count(&out));
    return tensor_work_run(L, (double)tensor_count(&out), "arithmetic of tensors");
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
            lua_pushnumber(L, element_number(&m->from, m->walk.at));
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
        element_set(&w->out, i, w->f(element_number(&w->a, walk.at)));
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
        double x = element_number(&w->a, wa.at), y = element_number(&w->b, wb.at);
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
