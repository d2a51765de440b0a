/* lua_tensor_rows.c -- tensors in Lua: softmax, running sums, order, other shapes. */
#include <math.h>
#include <stdlib.h>

#include "script/tensor/lua_tensor_work.h"

/* Of the first `seen` of `count` numbers, in double; the others become 0. */
static void softmax_row(const Tensor *t, int64_t at, int64_t count, int64_t seen, int64_t step,
                        float *out)
{
    double largest = (double)-INFINITY, total = 0;

    for (int64_t j = 0; j < seen; j++)
        largest = fmax(largest, element_number(t, at + j * step));
    for (int64_t j = 0; j < seen && largest > (double)-INFINITY; j++)
        total += exp(element_number(t, at + j * step) - largest);
    for (int64_t j = 0; j < count; j++)
        out[j] = j < seen && total > 0
                     ? (float)(exp(element_number(t, at + j * step) - largest) / total)
                     : 0;
}

/* How many columns row i of `rows` sees. */
static int64_t seen_columns(const TensorWork *w, int64_t i, int64_t rows, int64_t count)
{
    int64_t seen = w->yes ? i % rows + w->ahead + 1 : count;

    return seen < 0 ? 0 : seen < count ? seen : count;
}

static void run_softmax(TensorWork *w)
{
    Tensor  outer = w->a;
    int64_t count = w->a.shape[w->a.rank - 1], rows;
    Walk    walk;

    outer.rank--;
    rows = outer.rank ? outer.shape[outer.rank - 1] : 1;
    walk = walk_begin(&outer);
    for (int64_t i = 0, lines = tensor_count(&outer); i < lines && !atomic_load(w->cancel);
         i++, walk_next(&walk))
        softmax_row(&w->a, walk.at, count, seen_columns(w, i, rows, count),
                    w->a.stride[w->a.rank - 1], (float *)w->out.data + i * count);
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
    luaL_argcheck(L, ahead > -(1ll << 40) && ahead < 1ll << 40, 2, "out of range");
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
            luaL_argerror(L, 2, "out of range");
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

int tensor_copy_to(lua_State *L, const Tensor *from, const Tensor *to)
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
