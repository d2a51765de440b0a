/* math.c -- arithmetic on tensors in Lua.
 *
 * Elementwise results are f64 if an operand is f64 or a whole number type, else
 * f32 (u8 counts as f32).  An axis of 1 is repeated along the other's; a number
 * stands for a tensor of that number.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/ops/dense.h"
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

/* Products of tensors in Lua.
 *
 * Pieces of both sides are widened to double, whatever they hold and however they lie, and OpenBLAS
 * multiplies them; sums are kept in double and rounded at the end.  Between two pieces one looks
 * whether anybody still waits.
 */

#define ROWS 256 /* of a piece of the left side, and of the result */
#define COLS 512
#define INNER 256
#define SPEED 8 /* steps of the product in the time of one of other loops */

typedef struct Product {
    TensorWork *w;
    int64_t     heads, n, m, inner;
    double     *left, *right, *sums; /* pieces */
} Product;

/* Axes of one head: rows and columns are the last two. */
static int64_t stride_of(const Tensor *t, int axis)
{
    return t->stride[t->rank - 2 + axis];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows [i, i + rows), columns [j, j + cols) of the head. */
static void widen(const Tensor *t, int64_t head, int64_t i, int64_t rows, int64_t j, int64_t cols,
                  double *to)
{
    int64_t from = (t->rank > 2 ? head * t->stride[0] : 0) + i * stride_of(t, 0);

    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < cols; x++)
            *to++ = element_number(t, from + y * stride_of(t, 0) + (j + x) * stride_of(t, 1));
}

static void put(const Product *p, int64_t head, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < cols; x++)
            element_set(&p->w->out, (head * p->n + i + y) * p->m + j + x, p->sums[y * cols + x]);
}

/* Rows and columns of the result from (i, j) on. */
static void multiply_piece(const Product *p, int64_t head, int64_t i, int64_t j)
{
    int64_t rows = least(ROWS, p->n - i), cols = least(COLS, p->m - j);

    for (int64_t x = 0; x < rows * cols; x++)
        p->sums[x] = 0;
    for (int64_t k = 0; k < p->inner && !tensor_work_over(p->w, 0); k += INNER) {
        int64_t depth = least(INNER, p->inner - k);

        widen(&p->w->a, head, i, rows, k, depth, p->left);
        widen(&p->w->b, head, k, depth, j, cols, p->right);
        dense_add_product(rows, cols, depth, p->left, p->right, p->sums);
    }
    put(p, head, i, rows, j, cols);
}

static void run_matmul(TensorWork *w)
{
    int     row = w->a.rank - 2;
    Product p = { .w = w, .heads = row ? w->a.shape[0] : 1, .n = w->a.shape[row],
                  .m = w->b.shape[row + 1], .inner = w->a.shape[row + 1] };

    p.left = malloc((ROWS * INNER + INNER * COLS + ROWS * COLS) * sizeof(double));
    if (!p.left) {
        error_set(&w->err, ERR_NOMEM, "matmul: not enough memory");
        return;
    }
    p.right = p.left + ROWS * INNER;
    p.sums = p.right + INNER * COLS;
    for (int64_t head = 0; head < p.heads; head++)
        for (int64_t i = 0; i < p.n; i += ROWS)
            for (int64_t j = 0; j < p.m && !tensor_work_over(w, 0); j += COLS)
                multiply_piece(&p, head, i, j);
    free(p.left);
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
