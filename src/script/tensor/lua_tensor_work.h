/* script/tensor/lua_tensor_work.h -- what tensors compute: at once, or by the worker where it takes long.
 *
 * A body reads copies of its operands, whose bytes nobody can free meanwhile, writes tensors that
 * no script has yet, and knows no Lua.
 */
#ifndef SCRIPT_TENSOR_LUA_TENSOR_WORK_H
#define SCRIPT_TENSOR_LUA_TENSOR_WORK_H

#include "script/host/lua_work.h"
#include "script/tensor/lua_walk.h"

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
    Error         err;       /* of a file */
    const atomic_bool *cancel;
};

/* Zeroed, at the top.  [-0, +1, m] */
TensorWork *tensor_work_push(lua_State *L);
/* Runs the body that is at the top: by the worker where it takes so many steps that the explorer
 * would stand still.  To be returned from a C function.  [-0, +?, v] */
int tensor_work_run(lua_State *L, double steps, const char *doing);
/* In a body's loop: nobody waits for it any more. */
static inline bool tensor_work_over(const TensorWork *w, int64_t i)
{
    return !(i & 0xffff) && atomic_load(w->cancel);
}

/* Into the tensor at the top, which shows the bytes of `to`.  [-0, +?, v] */
int tensor_copy_to(lua_State *L, const Tensor *from, const Tensor *to);
/* The numbers of `from` into a contiguous tensor of its shape, of its dtype or a floating one. */
void tensor_work_copy(const TensorWork *w, const Tensor *from, Tensor *to);

#endif
