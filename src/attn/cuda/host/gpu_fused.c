/* gpu_fused.c -- full and causal attention by cuDNN, the host's side; see gpu_matrix.h.
 *
 * Taken where the pattern is one of these two, numbers are of 16 bits, sizes are multiples of 8
 * and no term is added.  ATTNSCOPE_CUDNN=0 switches it off, to compare; a path names the library.
 * What it does not take goes to our own kernels, and so does what it computes otherwise than
 * they do (gpu_rival.c).
 */
#include "attn/cuda/host/gpu_matrix.h"

#include <stdlib.h>
#include <string.h>

static bool is_wanted(void)
{
    const char *given = getenv("ATTNSCOPE_CUDNN");

    return !given || strcmp(given, "0") != 0;
}

static bool fits(const Run *r, const AttendInput *in, TileShape shape)
{
    Arithmetic how = gpu_kind(r)->arithmetic;
    int64_t    d = in->q.shape[2], e = in->v.shape[2], n = in->q.shape[1], m = in->k.shape[1];

    return (how == ARITHMETIC_BF16 || how == ARITHMETIC_F16) && d % 8 == 0 && e % 8 == 0 &&
           d <= 256 && e <= 256 && !tensor_given(&in->distance) && !in->cell_term &&
           in->q.shape[0] == r->h && in->k.shape[0] == in->v.shape[0] &&
           (shape == TILES_FULL || (shape == TILES_CAUSAL && n == m));
}

#define NEAR 3e-2 /* of the largest output: cuDNN rounds weights and outputs to 8 bits too */

/* The whole, and widened. */
static int begin(Run *r, const void *context)
{
    int code = gpu_api(r)->fused(context);

    return code ? code : gpu_api(r)->unpack(context);
}

/* A plan, and trust in it: before the clock runs. */
static bool is_ready(Run *r, const MatrixAttendCall *call, const FusedCall *fused)
{
    const RivalWay way = { RIVAL_CUDNN, "cuDNN", NEAR, begin, fused };
    bool           ready;

    run_prepare(r, true);
    ready = !gpu_api(r)->fused_plan(fused) && gpu_rival_trusted(r, call, &way);
    run_prepare(r, false);
    return ready;
}

bool gpu_attend_fused(Run *r, const AttendInput *in, const MatrixAttendCall *call)
{
    FusedCall fused = {
        .heads = r->h, .n = call->n, .m = call->m, .d = in->q.shape[2], .e = in->v.shape[2],
        .causal = call->tiles.shape == TILES_CAUSAL,
        .arithmetic = (int32_t)gpu_kind(r)->arithmetic, .scale = in->scale,
        .q = call->q, .k = call->k, .v = call->v, .narrow = call->q,
        .out = call->out, .lse = call->lse,
    };
    int code;

    if (run_failed(r) || !is_wanted() || !fits(r, in, (TileShape)call->tiles.shape))
        return false;
    fused.narrow.data = gpu_scratch(r, call->q.heads * call->q.rows * call->size,
                                    (int64_t)sizeof(uint16_t));
    if (run_failed(r) || !is_ready(r, call, &fused))
        return false;
    code = gpu_api(r)->fused(&fused);
    if (code == FUSED_DECLINED)
        return false;
    gpu_began(r, "cuDNN", code ? code : gpu_api(r)->unpack(&fused));
    r->computed |= COMPUTED_CUDNN;
    return true;
}
