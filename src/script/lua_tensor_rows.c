/* lua_tensor_rows.c -- tensors in Lua: softmax, running sums, order, other shapes. */
#include <math.h>
#include <stdlib.h>

#include "script/lua_walk.h"

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

/* [-0, +1, v] */
int tensor_softmax(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    bool          causal = lua_toboolean(L, 2);
    int64_t       ahead = lua_isinteger(L, 2) ? lua_tointeger(L, 2) : 0, count, rows, cells = 0;
    Tensor        outer = *t, *out;
    Walk          walk;

    luaL_argcheck(L, t->rank >= (causal ? 2 : 1), 1, "too few axes");
    luaL_argcheck(L, ahead > -(1ll << 40) && ahead < 1ll << 40, 2, "out of range");
    count = t->shape[t->rank - 1];
    outer.rank--;
    rows = outer.rank ? outer.shape[outer.rank - 1] : 1;
    out = tensor_push(L, DT_F32, t->rank, t->shape);
    walk = walk_begin(&outer);
    for (int64_t i = 0, lines = tensor_count(&outer); i < lines; i++, walk_next(&walk)) {
        int64_t seen = causal ? i % rows + ahead + 1 : count;

        seen = seen < 0 ? 0 : seen < count ? seen : count;
        cells += seen;
        softmax_row(t, walk.at, count, seen, t->stride[t->rank - 1],
                    (float *)out->data + i * count);
    }
    script_charge(L, FLOPS_ROW_SOFTMAX * (double)cells);
    return 1;
}

/* [-0, +1, v] */
int tensor_cumsum(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    int           axis = (int)check_index(L, 2, t->rank, "axis");
    Tensor       *out = tensor_push_copy(L, t, DT_F64);
    double       *x = out->data;
    int64_t       step = out->stride[axis], block = step * out->shape[axis];

    for (int64_t i = 0, total = tensor_count(out); i < total; i++)
        if (i % block >= step)
            x[i] += x[i - step];
    script_charge(L, (double)tensor_count(out));
    return 1;
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

/* [-0, +2, v] */
int tensor_sort_desc(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    Tensor       *values, *indices;
    Place        *row;
    int64_t       count;

    luaL_argcheck(L, t->rank >= 1, 1, "too few axes");
    count = t->shape[t->rank - 1];
    luaL_argcheck(L, count <= INT32_MAX, 1, "the last axis is too long");
    row = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof(*row), 0);
    values = tensor_push_copy(L, t, DT_F64);
    indices = tensor_push(L, DT_I32, t->rank, t->shape);
    for (int64_t at = 0, total = tensor_count(values); at < total; at += count) {
        double  *value = (double *)values->data + at;
        int32_t *index = (int32_t *)indices->data + at;

        for (int64_t j = 0; j < count; j++)
            row[j] = (Place){ value[j], (int32_t)j };
        qsort(row, (size_t)count, sizeof(*row), compare_places);
        for (int64_t j = 0; j < count; j++) {
            value[j] = row[j].value;
            index[j] = row[j].index;
        }
    }
    return 2;
}

/* ---- shapes ----------------------------------------------------------------- */

/* [-0, +1, v] */
int tensor_reshape(lua_State *L)
{
    const Tensor *t = tensor_check(L, 1);
    int64_t       shape[TENSOR_MAX_RANK], count = 1;
    int           rank = (int)(luaL_checktype(L, 2, LUA_TTABLE), lua_rawlen(L, 2));
    Tensor       *out;

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
    out = tensor_push_copy(L, t, t->dtype);
    *out = tensor_of(t->dtype, rank, shape, out->data);
    return 1;
}
