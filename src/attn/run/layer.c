/* layer.c -- see layer.h. */
#include "attn/layer.h"

#include "attn/run.h"

#include <math.h>

static int64_t said(const SizeFrom *from)
{
    return from->tensor.shape[from->axis] * (from->factor ? from->factor : 1);
}

static bool tells(const SizeFrom *from)
{
    return from->tensor.data && from->tensor.rank == from->rank;
}

int64_t layer_size(Run *r, const char *name, int64_t value, int64_t fallback,
                   const SizeFrom *from)
{
    bool given = run_is_given(r, name);
    char shape[80];

    for (; from->name; from++) {
        if (!tells(from))
            continue;
        if (said(from) < 1)
            run_fail(r, ERR_PARAM, "%s: parameter %s has shape %s: it is empty", r->mechanism->id,
                     from->name, tensor_shape_text(&from->tensor, shape, sizeof(shape)));
        if (!given)
            return said(from) < 1 ? 1 : said(from);
        if (said(from) == value)
            continue;
        run_fail(r, ERR_PARAM, "%s: %s=%lld, but parameter %s has shape %s, which says %lld; leave "
                 "%s out or give another file", r->mechanism->id, name, (long long)value,
                 from->name, tensor_shape_text(&from->tensor, shape, sizeof(shape)),
                 (long long)said(from), name);
    }
    return given ? value : fallback;
}

static bool same_shape(const Tensor *t, int rank, const int64_t *shape)
{
    for (int i = 0; i < rank && t->rank == rank; i++)
        if (t->shape[i] != shape[i])
            return false;
    return t->rank == rank;
}

static void check_shape(Run *r, const char *name, Tensor given, int rank, const int64_t *shape)
{
    Tensor want = tensor_of(DT_F32, rank, shape, NULL);
    char   want_text[80], found_text[80];

    if (given.data && !same_shape(&given, rank, shape))
        run_fail(r, ERR_PARAM, "%s: parameter %s: expected shape %s, found %s", r->mechanism->id,
                 name, tensor_shape_text(&want, want_text, sizeof(want_text)),
                 tensor_shape_text(&given, found_text, sizeof(found_text)));
}

Init layer_by_fan(int64_t in)
{
    return (Init){ INIT_NORMAL, 1 / sqrt((double)in) };
}

Tensor layer_weight(Run *r, const char *name, Tensor given, int rank, const int64_t *shape,
                    Init init)
{
    check_shape(r, name, given, rank, shape);
    return run_param(r, name, given, DT_F32, rank, shape, init);
}

Tensor layer_given(Run *r, const char *name, Tensor given, int rank, const int64_t *shape)
{
    check_shape(r, name, given, rank, shape);
    return run_param_given(r, name, given, DT_F32, rank, shape);
}
