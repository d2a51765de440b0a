/* lua_tensor_work.c -- see lua_tensor_work.h. */
#include "script/tensor/lua_tensor_work.h"

#include <string.h>

#define LONG_STEPS 2e7 /* some hundredths of a second */

static bool work_body(void *context, const atomic_bool *cancel, Error *err)
{
    TensorWork *w = context;

    w->cancel = cancel;
    w->run(w);
    if (w->err.code != ERR_NONE) {
        *err = w->err;
        return false;
    }
    return !atomic_load(cancel) || error_set(err, ERR_CANCELLED, "interrupted");
}

/* [-0, +?, m] */
static int give(lua_State *L, const TensorWork *w)
{
    if (w->push)
        return w->push(L, w);
    for (int i = 0; i < w->count; i++)
        lua_pushvalue(L, w->first + i);
    return w->count;
}

static int push_results(lua_State *L, int status, lua_KContext at)
{
    Error err;

    (void)status;
    return work_ended(L, at, &err) ? give(L, work_context(L, at)) : failure(L, &err);
}

TensorWork *tensor_work_push(lua_State *L)
{
    TensorWork *w = lua_newuserdatauv(L, sizeof(*w), 0);

    *w = (TensorWork){ .err = ERROR_INIT };
    return w;
}

int tensor_work_run(lua_State *L, double steps, const char *doing)
{
    TensorWork *w = lua_touserdata(L, -1);
    atomic_bool never = false;
    Error       err = ERROR_INIT;

    if (steps >= LONG_STEPS)
        return work_await(L, script_of(L)->session->thing, doing, work_body, push_results);
    return work_body(w, &never, &err) ? give(L, w) : failure(L, &err);
}

void tensor_work_copy(const TensorWork *w, const Tensor *from, Tensor *to)
{
    Walk    walk = walk_begin(from);
    int64_t count = tensor_count(from), size = dtype_size(from->dtype);

    for (int64_t i = 0; i < count && !tensor_work_over(w, i); i++, walk_next(&walk))
        if (to->dtype == from->dtype)
            memcpy((char *)to->data + i * size, (const char *)from->data + walk.at * size,
                   (size_t)size);
        else
            element_set(to, i, element_number(from, walk.at));
}
