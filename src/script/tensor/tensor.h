/* script/tensor/tensor.h -- visiting the elements of a strided tensor in row-major
 * order; shared by the tensor bindings. */
#ifndef SCRIPT_TENSOR_TENSOR_H
#define SCRIPT_TENSOR_TENSOR_H

#include "script/host/binding.h"
#include "script/host/work.h"

typedef struct Walk {
    const Tensor *t;
    int64_t       index[TENSOR_MAX_RANK];
    int64_t       at; /* offset of the element, in elements */
} Walk;

static inline Walk walk_begin(const Tensor *t)
{
    return (Walk){ .t = t };
}

static inline void walk_next(Walk *w)
{
    const Tensor *t = w->t;

    for (int i = t->rank - 1; i >= 0; i--) {
        w->at += t->stride[i];
        if (++w->index[i] < t->shape[i])
            return;
        w->at -= t->shape[i] * t->stride[i];
        w->index[i] = 0;
    }
}

/* Of the floating types only. */
static inline void element_set(Tensor *t, int64_t at, double value)
{
    if (t->dtype == DT_F32)
        ((float *)t->data)[at] = (float)value;
    else
        ((double *)t->data)[at] = value;
}

/* Type of an operation's result on a and b; NULL: a number. */
static inline DType tensor_result_dtype(const Tensor *a, const Tensor *b)
{
    bool narrow = (!a || a->dtype == DT_F32 || a->dtype == DT_U8) &&
                  (!b || b->dtype == DT_F32 || b->dtype == DT_U8);

    return narrow ? DT_F32 : DT_F64;
}

static inline bool dtype_is_float(DType dtype)
{
    return dtype == DT_F32 || dtype == DT_F64;
}

/* An axis argument, counted from 0; -1 when absent.  [-0, +0, v] */
static inline int check_axis(lua_State *L, int arg, const Tensor *t)
{
    return lua_isnoneornil(L, arg) ? -1 : (int)check_index(L, arg, t->rank, "axis");
}

/* A Lua value as an element: whole numbers in range for the integer types.
 * [-0, +0, v] */
void element_store(lua_State *L, Tensor *t, int64_t at, int value);
/* [-0, +1, m] */
void element_push(lua_State *L, const Tensor *t, int64_t at);

/* Operators and methods of math.c, make.c and others. */
int tensor_totable(lua_State *L);
int tensor_add(lua_State *L);
int tensor_sub(lua_State *L);
int tensor_mul(lua_State *L);
int tensor_div(lua_State *L);
int tensor_negate(lua_State *L);
int tensor_map(lua_State *L);
int tensor_matmul(lua_State *L);
int tensor_allclose(lua_State *L);
int tensor_softmax(lua_State *L);
int tensor_reshape(lua_State *L);
int tensor_copy(lua_State *L);
int tensor_write(lua_State *L);
int tensor_cumsum(lua_State *L);
int tensor_sort_desc(lua_State *L);
int tensor_sum(lua_State *L);
int tensor_mean(lua_State *L);
int tensor_min(lua_State *L);
int tensor_max(lua_State *L);
int tensor_argmax(lua_State *L);
int tensor_nnz(lua_State *L);

/* What tensors compute: at once, or by the worker where it takes long.
 *
 * A body reads copies of its operands, whose bytes nobody can free meanwhile, writes tensors that
 * no script has yet, and knows no Lua.
 */

typedef struct TensorWork TensorWork;
struct TensorWork {
    void        (*run)(TensorWork *w);
    int         (*push)(lua_State *L, const TensorWork *w); /* the results, if no tensors are */
    Tensor        a, b;      /* no data: the number x or y instead, or none */
    double        x, y;
    Tensor        out, more; /* results */
    int           first, count; /* where they are on the stack */
    int           op, axis;
    int64_t       ahead;
    double      (*f)(double);
    double        number[TENSOR_MAX_RANK];
    bool          yes;
    const char   *path;
    Error         err;       /* of a file, of memory */
    Run          *r;         /* for operations on tensors: it belongs to no mechanism */
    const atomic_bool *cancel;
};

/* Zeroed, at the top.  [-0, +1, m] */
TensorWork *tensor_work_push(lua_State *L);
/* Runs the body that is at the top: by the worker where it takes so many steps that the explorer
 * would stand still.  To be returned from a C function.  [-0, +?, v] */
int tensor_work_run(lua_State *L, double steps, const char *doing);
#define TENSOR_PIECE (1 << 20) /* numbers of an operation between looks at the cancel flag */
/* Numbers as operations take them: the tensor itself, or (whole numbers of 1 or 8 bytes) a copy in
 * the run's arena. */
Tensor tensor_work_operand(const TensorWork *w, Tensor t);
/* In a body's loop: the work was cancelled. */
static inline bool tensor_work_over(const TensorWork *w, int64_t i)
{
    return !(i & 0xffff) && atomic_load(w->cancel);
}

/* The numbers of `from` into a contiguous tensor of its shape, of its dtype or a floating one. */
void tensor_work_copy(const TensorWork *w, const Tensor *from, Tensor *to);

#endif
