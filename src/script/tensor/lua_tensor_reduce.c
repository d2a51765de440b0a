/* lua_tensor_reduce.c -- sums, extremes and counts of tensors in Lua.
 *
 * Sums are taken in double.  Along an axis the result is f64 (i64 for argmax)
 * without that axis.  A NaN makes an extreme NaN; argmax passes over it.
 */
#include "script/tensor/lua_tensor_work.h"

#include <math.h>

typedef enum Reduction { REDUCE_SUM, REDUCE_MEAN, REDUCE_MIN, REDUCE_MAX, REDUCE_ARGMAX } Reduction;

/* The elements from offset `at` along one line of `count` with this step. */
static double reduce_line(const TensorWork *w, int64_t at, int64_t count, int64_t step,
                          Reduction reduction)
{
    const Tensor *t = &w->a;
    double  result = reduction <= REDUCE_MEAN ? 0 : (double)NAN;
    int64_t best = -1;

    for (int64_t i = 0; i < count && !tensor_work_over(w, i); i++, at += step) {
        double x = element_number(t, at);

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

static int push_reduced(lua_State *L, const TensorWork *w)
{
    if (!dtype_is_float(w->a.dtype) && w->op != REDUCE_MEAN)
        lua_pushinteger(L, (lua_Integer)w->number[0]);
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

int tensor_sum(lua_State *L)
{
    return reduce(L, REDUCE_SUM);
}

int tensor_mean(lua_State *L)
{
    return reduce(L, REDUCE_MEAN);
}

int tensor_min(lua_State *L)
{
    return reduce(L, REDUCE_MIN);
}

int tensor_max(lua_State *L)
{
    return reduce(L, REDUCE_MAX);
}

static void run_argmax(TensorWork *w)
{
    Walk   walk = walk_begin(&w->a), best = walk;
    double largest = (double)NAN;

    for (int64_t i = 0, count = tensor_count(&w->a); i < count && !tensor_work_over(w, i);
         i++, walk_next(&walk)) {
        double x = element_number(&w->a, walk.at);

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
        found += element_number(&w->a, walk.at) != 0;
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
