/* gpu_entries.c -- entries and rows in double on the device; see op_entries. */
#include "attn/cuda/gpu.h"

void gpu_entries(Run *r, const Tensor *x, EntryKind kind, double by, Tensor *y)
{
    ArenaMark   mark = arena_mark(r->arena);
    EntriesCall call = { .x = gpu_tensor(r, x), .y = gpu_tensor(r, y), .kind = (int32_t)kind,
                         .by = by };

    if (gpu_ready(r))
        gpu_done(r, "entries", gpu_api(r)->entries(&call));
    arena_release(r->arena, mark);
}

void gpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y)
{
    ArenaMark       mark = arena_mark(r->arena);
    Normalise64Call call = { .x = gpu_tensor(r, x), .y = gpu_tensor(r, y), .kind = (int32_t)kind,
                             .eps = eps };

    if (gpu_ready(r))
        gpu_done(r, "normalise", gpu_api(r)->normalise64(&call));
    arena_release(r->arena, mark);
}
