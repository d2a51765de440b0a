/* reduce.c -- sums, extremes and counts of tensors in Lua.
 *
 * Sums are taken in double.  Along an axis the result is f64 (i64 for argmax)
 * without that axis.  A NaN makes an extreme NaN; argmax passes over it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "script/tensor/tensor.h"

typedef enum Reduction { REDUCE_SUM, REDUCE_MEAN, REDUCE_MIN, REDUCE_MAX, REDUCE_ARGMAX } Reduction;

/* The elements from offset `at` along one line of `count` with this step. */
static double reduce_line(const TensorWork *w, int64_t at, int64_t count, int64_t step,
                          Reduction reduction)
{
    const Tensor *t = &w->a;
    double  result = reduction <= REDUCE_MEAN ? 0 : (double)NAN;
    int64_t best = -1;

    for (int64_t i = 0; i < count && !tensor_work_over(w, i); i++, at += step) {
        double x = tensor_element(t, at);

        if (reduction <= REDUCE_MEAN) {
            result += x;
        } else if (isnan(x)) {
            if (reduction != REDUCE_ARGMAX)
                return x;
        } else if (best < 0 || (reduction == REDUCE_MIN ? x < result : x > result)) {
            result = x;
            best = i;
        }
    }
    if (reduction == REDUCE_ARGMAX)
        return (double)(best < 0 ? 0 : best);
    return reduction == REDUCE_MEAN ? result / (double)count : result;
}

/* The last axis is walked as a line of its own, so any strides do. */
static double reduce_all(const TensorWork *w, Reduction reduction)
{
    const Tensor *t = &w->a;
    Tensor  outer = *t;
    int64_t count = t->rank ? t->shape[t->rank - 1] : 1, lines;
    int64_t step = t->rank ? t->stride[t->rank - 1] : 1;
    double  result = 0;
    Walk    walk;

    outer.rank = t->rank ? t->rank - 1 : 0;
    lines = tensor_count(&outer);
    walk = walk_begin(&outer);
    for (int64_t i = 0; i < lines; i++, walk_next(&walk)) {
        double x = reduce_line(w, walk.at, count, step,
                               reduction == REDUCE_MEAN ? REDUCE_SUM : reduction);

        if (reduction <= REDUCE_MEAN)
            result += x;
        else if (isnan(x))
            return x;
        else if (i == 0 || (reduction == REDUCE_MIN ? x < result : x > result))
            result = x;
    }
    return reduction == REDUCE_MEAN ? result / (double)tensor_count(t) : result;
}

static Tensor without_axis(const Tensor *t, int axis)
{
    Tensor out = *t;

    for (int i = axis; i + 1 < t->rank; i++) {
        out.shape[i] = t->shape[i + 1];
        out.stride[i] = t->stride[i + 1];
    }
    out.rank = t->rank - 1;
    return out;
}

static void run_axis(TensorWork *w)
{
    Tensor outer = without_axis(&w->a, w->axis);
    Walk   walk = walk_begin(&outer);

    for (int64_t i = 0, count = tensor_count(&outer); i < count && !atomic_load(w->cancel);
         i++, walk_next(&walk)) {
        double x = reduce_line(w, walk.at, w->a.shape[w->axis], w->a.stride[w->axis],
                               (Reduction)w->op);

        if (w->op == REDUCE_ARGMAX)
            ((int64_t *)w->out.data)[i] = (int64_t)x;
        else
            element_set(&w->out, i, x);
    }
}

/* With the tensor at 1.  [-0, +1, v] */
static int reduce_axis(lua_State *L, const Tensor *t, int axis, Reduction reduction)
{
    Tensor      outer = without_axis(t, axis), out;
    TensorWork *w;

    lua_settop(L, 1);
    out = *tensor_push(L, reduction == REDUCE_ARGMAX ? DT_I64 : DT_F64, outer.rank, outer.shape);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_axis, .a = *t, .out = out, .first = 2, .count = 1,
                       .op = (int)reduction, .axis = axis, .err = ERROR_INIT };
    return tensor_work_run(L, (double)tensor_count(t), "a sum over a tensor");
}

static void check_elements(lua_State *L, const Tensor *t, int axis, Reduction reduction)
{
    int64_t count = axis < 0 ? tensor_count(t) : t->shape[axis];

    if (reduction != REDUCE_SUM && count == 0)
        luaL_error(L, "there are no elements to choose from");
}

static void run_reduce(TensorWork *w)
{
    w->number[0] = reduce_all(w, (Reduction)w->op);
}

/* A whole number, unless a sum is beyond those of Lua. */
static int push_reduced(lua_State *L, const TensorWork *w)
{
    lua_Integer whole;

    if (!dtype_is_float(w->a.dtype) && w->op != REDUCE_MEAN &&
        lua_numbertointeger(w->number[0], &whole))
        lua_pushinteger(L, whole);
    else
        lua_pushnumber(L, w->number[0]);
    return 1;
}

/* [-0, +1, v] */
static int reduce(lua_State *L, Reduction reduction)
{
    const Tensor *t = tensor_check(L, 1);
    int           axis = check_axis(L, 2, t);
    TensorWork   *w;

    check_elements(L, t, axis, reduction);
    script_charge(L, (double)tensor_count(t));
    if (axis >= 0)
        return reduce_axis(L, t, axis, reduction);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_reduce, .push = push_reduced, .a = *t, .op = (int)reduction,
                       .err = ERROR_INIT };
    return tensor_work_run(L, (double)tensor_count(t), "a sum over a tensor");
}

FUNCTION_WITH(tensor_sum, reduce, REDUCE_SUM)
FUNCTION_WITH(tensor_mean, reduce, REDUCE_MEAN)
FUNCTION_WITH(tensor_min, reduce, REDUCE_MIN)
FUNCTION_WITH(tensor_max, reduce, REDUCE_MAX)

static void run_argmax(TensorWork *w)
{
    Walk   walk = walk_begin(&w->a), best = walk;
    double largest = (double)NAN;

    for (int64_t i = 0, count = tensor_count(&w->a); i < count && !tensor_work_over(w, i);
         i++, walk_next(&walk)) {
        double x = tensor_element(&w->a, walk.at);

        if (x > largest || (isnan(largest) && !isnan(x))) {
            largest = x;
            best = walk;
        }
    }
    for (int i = 0; i < w->a.rank; i++)
        w->number[i] = (double)best.index[i];
}

static int push_indices(lua_State *L, const TensorWork *w)
{
    for (int i = 0; i < w->a.rank; i++)
        lua_pushinteger(L, (lua_Integer)w->number[i]);
    return w->a.rank;
}

/* [-0, +rank or 1, v] */
int tensor_argmax(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    int           axis = check_axis(L, 2, t);
    TensorWork   *w;

    check_elements(L, t, axis, REDUCE_ARGMAX);
    if (axis >= 0)
        return reduce_axis(L, t, axis, REDUCE_ARGMAX);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_argmax, .push = push_indices, .a = *t, .err = ERROR_INIT };
    return tensor_work_run(L, (double)tensor_count(t), "looking for the largest number");
}

static void run_nnz(TensorWork *w)
{
    Walk    walk = walk_begin(&w->a);
    int64_t found = 0;

    for (int64_t i = 0, count = tensor_count(&w->a); i < count && !tensor_work_over(w, i);
         i++, walk_next(&walk))
        found += tensor_element(&w->a, walk.at) != 0;
    w->number[0] = (double)found;
}

static int push_count(lua_State *L, const TensorWork *w)
{
    lua_pushinteger(L, (lua_Integer)w->number[0]);
    return 1;
}

/* [-0, +1, v] */
int tensor_nnz(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    TensorWork   *w = tensor_work_push(L);

    *w = (TensorWork){ .run = run_nnz, .push = push_count, .a = *t, .err = ERROR_INIT };
    return tensor_work_run(L, (double)tensor_count(t), "counting numbers");
}

/* Tensors in Lua: softmax, running sums, order, other shapes. */

/* How many columns row i of `rows` sees. */
static int64_t seen_columns(const TensorWork *w, int64_t i, int64_t rows, int64_t count)
{
    int64_t seen = w->yes ? i % rows + w->ahead + 1 : count;

    return seen < 0 ? 0 : seen < count ? seen : count;
}

/* Rows without a finite sum are 0: all their scores are -inf, or one is NaN or inf. */
static void clear_rows(Tensor x, const Tensor *lse)
{
    int64_t cols = x.shape[2];

    for (int64_t i = 0; i < x.shape[1]; i++)
        if (!isfinite(((const double *)lse->data)[i]))
            memset((double *)x.data + i * cols, 0, (size_t)cols * sizeof(double));
}

/* `rows` rows from row i on of the head at `at`. */
static Tensor rows_of(const Tensor *t, int64_t at, int64_t i, int64_t rows)
{
    int64_t step = t->rank > 1 ? t->stride[t->rank - 2] : 0, shape[2] = { rows, 0 };
    Tensor  out;

    shape[1] = t->shape[t->rank - 1];
    out = tensor_of(t->dtype, 2, shape, (char *)t->data + (at + i * step) * dtype_size(t->dtype));
    out.stride[0] = step;
    out.stride[1] = t->stride[t->rank - 1];
    return out;
}

/* Rows from row i of a head on, in double and rounded at the end. */
static void soften_rows(TensorWork *w, Tensor a, int64_t i, float *out)
{
    ArenaMark     mark = arena_mark(w->r->arena);
    const int64_t shape[3] = { 1, a.shape[0], a.shape[1] };
    SoftmaxRows   in = { .x = run_tensor(w->r, DT_F64, 3, shape),
                         .lse = run_tensor2(w->r, DT_F64, 1, a.shape[0]),
                         .causal = w->yes, .offset = w->ahead + i };

    if (!run_failed(w->r)) {
        tensor_work_copy(w, &a, &in.x);
        op_softmax_rows(w->r, &in);
        clear_rows(in.x, &in.lse);
        op_entries(w->r, in.x, ENTRY_CAST, 0, tensor_of(DT_F32, 3, shape, out));
    }
    arena_release(w->r->arena, mark);
}

static void run_softmax(TensorWork *w)
{
    Tensor  heads = w->a;
    int64_t cols = w->a.shape[w->a.rank - 1], n = w->a.rank > 1 ? w->a.shape[w->a.rank - 2] : 1;
    int64_t most = cols > 0 && cols < TENSOR_PIECE ? TENSOR_PIECE / cols : 1;
    Walk    walk;

    heads.rank = w->a.rank > 2 ? w->a.rank - 2 : 0;
    walk = walk_begin(&heads);
    for (int64_t head = 0, count = tensor_count(&heads); cols > 0 && head < count;
         head++, walk_next(&walk))
        for (int64_t i = 0; i < n && !run_failed(w->r); i += most)
            soften_rows(w, rows_of(&w->a, walk.at, i, n - i < most ? n - i : most), i,
                        tensor_f32(&w->out) + (head * n + i) * cols);
}

/* Cells that are seen, for the FLOPs. */
static double softmax_cells(const TensorWork *w)
{
    int64_t count = w->a.shape[w->a.rank - 1];
    int64_t rows = w->a.rank > 1 ? w->a.shape[w->a.rank - 2] : 1, cells = 0;

    for (int64_t i = 0; i < rows; i++)
        cells += seen_columns(w, i, rows, count);
    return rows && count ? (double)cells * (double)(tensor_count(&w->a) / rows / count) : 0;
}

/* [-0, +1, v] */
int tensor_softmax(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1), *out;
    bool          causal = lua_toboolean(L, 2);
    int64_t       ahead = lua_isinteger(L, 2) ? lua_tointeger(L, 2) : 0;
    TensorWork   *w;

    luaL_argcheck(L, t->rank >= (causal ? 2 : 1), 1, "too few axes");
    luaL_argexpected(L, lua_isnoneornil(L, 2) || lua_isboolean(L, 2) || lua_isinteger(L, 2), 2,
                     "boolean or whole number");
    luaL_argcheck(L, ahead > -(1ll << 40) && ahead < 1ll << 40, 2,
                  "expected a number of columns within 2^40");
    lua_settop(L, 1);
    out = tensor_push(L, DT_F32, t->rank, t->shape);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_softmax, .a = *t, .out = *out, .first = 2, .count = 1,
                       .yes = causal, .ahead = ahead, .err = ERROR_INIT };
    script_charge(L, FLOPS_ROW_SOFTMAX * softmax_cells(w));
    return tensor_work_run(L, 20 * (double)tensor_count(t), "softmax of a tensor");
}

static void run_cumsum(TensorWork *w)
{
    double *x = w->out.data;
    int64_t step = w->out.stride[w->axis], block = step * w->out.shape[w->axis];

    tensor_work_copy(w, &w->a, &w->out);
    for (int64_t i = 0, total = tensor_count(&w->out); i < total && !tensor_work_over(w, i); i++)
        if (i % block >= step)
            x[i] += x[i - step];
}

/* [-0, +1, v] */
int tensor_cumsum(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1), *out;
    int           axis = (int)check_index(L, 2, t->rank, "axis");
    TensorWork   *w;

    lua_settop(L, 1);
    out = tensor_push(L, DT_F64, t->rank, t->shape);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_cumsum, .a = *t, .out = *out, .first = 2, .count = 1,
                       .axis = axis, .err = ERROR_INIT };
    script_charge(L, (double)tensor_count(t));
    return tensor_work_run(L, 2 * (double)tensor_count(t), "running sums of a tensor");
}

/* ---- order ------------------------------------------------------------------ */

typedef struct Place {
    double  value;
    int32_t index;
} Place;

static int compare_places(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    bool         x_nan = isnan(x->value), y_nan = isnan(y->value);

    if (x_nan != y_nan)
        return x_nan ? 1 : -1;
    if (!x_nan && x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static void run_sort(TensorWork *w)
{
    int64_t count = w->a.shape[w->a.rank - 1];
    Place  *row = calloc((size_t)count + 1, sizeof(*row));

    if (!row) {
        error_set(&w->err, ERR_NOMEM, "sort_desc: not enough memory");
        return;
    }
    tensor_work_copy(w, &w->a, &w->out);
    for (int64_t at = 0, total = tensor_count(&w->out); at < total && !atomic_load(w->cancel);
         at += count) {
        double  *value = (double *)w->out.data + at;
        int32_t *index = (int32_t *)w->more.data + at;

        for (int64_t j = 0; j < count; j++)
            row[j] = (Place){ value[j], (int32_t)j };
        qsort(row, (size_t)count, sizeof(*row), compare_places);
        for (int64_t j = 0; j < count; j++) {
            value[j] = row[j].value;
            index[j] = row[j].index;
        }
    }
    free(row);
}

/* The part at the leading indices from argument 2 on, of fewer axes.  [-0, +0, v] */
static Tensor check_part(lua_State *L, const Tensor *t)
{
    Tensor part = *t;
    int    count = lua_gettop(L) - 1;

    luaL_argcheck(L, t->rank >= 1, 1, "too few axes");
    luaL_argcheck(L, count < t->rank, t->rank + 1, "there are fewer axes before the last");
    for (int i = 0; i < count; i++)
        part.data = (char *)part.data + check_index(L, 2 + i, t->shape[i], "index") *
                                            t->stride[i] * dtype_size(t->dtype);
    part.rank -= count;
    for (int i = 0; i < TENSOR_MAX_RANK; i++) {
        part.shape[i] = i < part.rank ? t->shape[i + count] : 1;
        part.stride[i] = i < part.rank ? t->stride[i + count] : 1;
    }
    return part;
}

/* [-0, +2, v] */
int tensor_sort_desc(lua_State *L)
{
    const Tensor  part = check_part(L, tensor_check(L, 1)), *t = &part, *values, *indices;
    TensorWork   *w;

    luaL_argcheck(L, t->shape[t->rank - 1] <= INT32_MAX, 1, "the last axis is too long");
    lua_settop(L, 1);
    values = tensor_push(L, DT_F64, t->rank, t->shape);
    indices = tensor_push(L, DT_I32, t->rank, t->shape);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_sort, .a = *t, .out = *values, .more = *indices, .first = 2,
                       .count = 2, .err = ERROR_INIT };
    return tensor_work_run(L, 30 * (double)tensor_count(t), "sorting a tensor");
}

static int tensor_copy_to(lua_State *L, const Tensor *from, const Tensor *to);

/* ---- shapes ----------------------------------------------------------------- */

/* [-0, +1, v] */
int tensor_reshape(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    int64_t       shape[TENSOR_MAX_RANK], count = 1;
    int           rank = (int)(luaL_checktype(L, 2, LUA_TTABLE), lua_rawlen(L, 2));
    Tensor        out;

    luaL_argcheck(L, rank >= 1 && rank <= TENSOR_MAX_RANK, 2, "expected a shape of 1 to 4 axes");
    for (int i = 0; i < rank; i++) {
        lua_rawgeti(L, 2, i + 1);
        shape[i] = luaL_checkinteger(L, -1);
        lua_pop(L, 1);
        if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
            luaL_argerror(L, 2, "expected extents from 0 whose product fits 63 bits");
    }
    if (count != tensor_count(t))
        luaL_error(L, "reshape: the tensor has %I numbers, the shape %I",
                   (lua_Integer)tensor_count(t), (lua_Integer)count);
    out = *tensor_push(L, t->dtype, rank, shape);
    out = tensor_of(t->dtype, t->rank, t->shape, out.data);
    return tensor_copy_to(L, t, &out);
}

static void run_copy(TensorWork *w)
{
    tensor_work_copy(w, &w->a, &w->out);
}

/* Into the tensor at the top, which shows the bytes of `to`.  [-0, +?, v] */
static int tensor_copy_to(lua_State *L, const Tensor *from, const Tensor *to)
{
    int         at = lua_gettop(L);
    TensorWork *w = tensor_work_push(L);

    *w = (TensorWork){ .run = run_copy, .a = *from, .out = *to, .first = at, .count = 1,
                       .err = ERROR_INIT };
    return tensor_work_run(L, (double)tensor_count(from), "copying a tensor");
}

/* [-0, +1, v] */
int tensor_copy(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    Tensor        out = *tensor_push(L, t->dtype, t->rank, t->shape);

    return tensor_copy_to(L, t, &out);
}
