/* gpu_rows.c -- softmax, normalisation, lengths, inverses, balancing on the device; see
 * attn/ops.h. */
#include "attn/cuda/host/gpu_dense.h"

#include <math.h>

/* x as rows of its last axis, which follow one another. */
static Tensor as_rows(const Tensor *x)
{
    int64_t cols = x->shape[x->rank - 1];
    int64_t shape[2] = { cols > 0 ? tensor_count(x) / cols : 0, cols };

    return tensor_of(x->dtype, 2, shape, x->data);
}

void gpu_softmax(Run *r, const SoftmaxRows *in)
{
    Tensor      rows = in->x.rank == 3 ? in->x : as_rows(&in->x);
    int         last = rows.rank - 1;
    SoftmaxCall call = { .x = gpu_result(r, &rows).data, .wide = rows.dtype == DT_F64,
                         .heads = last == 2 ? rows.shape[0] : 1, .rows = rows.shape[last - 1],
                         .cols = rows.shape[last], .pitch = last == 2 ? rows.stride[0] : 0,
                         .causal = in->causal, .offset = in->offset };

    if (in->lse.data) {
        call.lse = gpu_result(r, &in->lse).data;
        call.lse_pitch = in->lse.stride[0];
    }
    if (gpu_ready(r))
        gpu_done(r, "softmax", gpu_api(r)->softmax(&call));
}

static void normalise(Run *r, const Tensor *x, NormaliseCall call, const float *gain,
                      const float *bias, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);

    call.heads = y->shape[0];
    call.x = gpu_tensor(r, x);
    call.y = gpu_result(r, y);
    call.gain = gpu_floats(r, gain, y->shape[2]);
    call.bias = gpu_floats(r, bias, y->shape[2]);
    if (gpu_ready(r))
        gpu_done(r, "normalise", gpu_api(r)->normalise(&call));
    arena_release(r->arena, mark);
}

void gpu_standardise(Run *r, const Tensor *x, double eps, const float *gain, const float *bias,
                     Tensor *y)
{
    normalise(r, x, (NormaliseCall){ .centre = true, .length = LENGTH_ROOT_MEAN, .eps = eps },
              gain, bias, y);
}

void gpu_normalise(Run *r, const Tensor *x, int kind, double eps, Tensor *y)
{
    NormaliseCall call = { .eps = eps, .centre = kind == NORMALISE_LAYER };

    call.length = kind == NORMALISE_L2     ? LENGTH_NORM
                  : kind == NORMALISE_NONE ? LENGTH_ONE
                                           : LENGTH_ROOT_MEAN;
    normalise(r, x, call, NULL, NULL, y);
}

double gpu_largest_norm(Run *r, const Tensor *x)
{
    ArenaMark mark = arena_mark(r->arena);
    NormsCall call = { .x = gpu_tensor(r, x),
                       .found = gpu_scratch(r, NORM_BLOCKS, (int64_t)sizeof(double)) };
    double    most = 0;

    if (gpu_ready(r))
        gpu_done(r, "norms", gpu_api(r)->norms(&call));
    gpu_wait(r, "the host looks for the longest row");
    for (int b = 0; b < NORM_BLOCKS && !run_failed(r); b++)
        most = call.found[b] <= most || isnan(most) ? most : call.found[b];
    arena_release(r->arena, mark);
    return sqrt(most);
}

void gpu_gelu(Run *r, Tensor *x, const float *bias)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    rows = as_rows(x);
    GeluCall  call = { .x = gpu_result(r, &rows).data, .count = tensor_count(x),
                       .width = rows.shape[1], .bias = gpu_floats(r, bias, rows.shape[1]) };

    if (gpu_ready(r))
        gpu_done(r, "gelu", gpu_api(r)->gelu(&call));
    arena_release(r->arena, mark);
}

void gpu_pinv(Run *r, const Tensor *a, double rcond, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   size = a->shape[1] * a->shape[1];
    PinvCall  call = { .a = gpu_tensor(r, a), .rcond = rcond, .y = gpu_result(r, y).data,
                       .work = gpu_scratch(r, a->shape[0] * size, 2 * (int64_t)sizeof(double)) };

    if (gpu_ready(r))
        gpu_done(r, "pinv", gpu_api(r)->pinv(&call));
    arena_release(r->arena, mark);
}

void gpu_sinkhorn(Run *r, Tensor *log_p, const Tensor *allowed, bool columns)
{
    ArenaMark    mark = arena_mark(r->arena);
    SinkhornCall call = { .heads = log_p->shape[0], .b = log_p->shape[1],
                          .log_p = gpu_result(r, log_p).data,
                          .allowed = gpu_tensor(r, allowed).data, .columns = columns };

    if (gpu_ready(r))
        gpu_done(r, "sinkhorn", gpu_api(r)->sinkhorn(&call));
    arena_release(r->arena, mark);
}
