/* gpu_warpgroup.c -- attention over tiles by warpgroups, the host's side; see gpu_matrix.h.
 *
 * Taken instead of our kernel for all GPUs where a trial has shown it to be right and faster
 * (ways.h); numbers are of 16 bits, packed to 64 or 128 columns, and nothing is added to scores.
 * What it computes otherwise than that kernel does is not used (gpu_rival.c).
 */
#include "attn/cuda/host/gpu_matrix.h"

/* Weights are rounded to 8 bits (bf16) against the largest score so far, and a part of a row begins
 * with another one. */
#define NEAR 1e-2

static bool fits(const Run *r, const MatrixAttendCall *call)
{
    Arithmetic how = gpu_kind(r)->arithmetic;

    return (how == ARITHMETIC_BF16 || how == ARITHMETIC_F16) && call->size <= 128 &&
           !call->distance.data && !call->tiles.extra && call->scale > 0;
}

/* All blocks, and what was made in parts joined. */
static int begin(Run *r, const void *context)
{
    const WarpgroupCall *call = context;
    int                  code = gpu_api(r)->attend_warpgroup(call);

    return !code && call->attend.join_count ? gpu_api(r)->attend_join(&call->attend) : code;
}

bool gpu_attend_warpgroup(Run *r, const MatrixAttendCall *call)
{
    WarpgroupCall  own = { *call, (int32_t)gpu_kind(r)->arithmetic };
    const RivalWay way = { RIVAL_WARPGROUP, "wgmma", NEAR, begin, &own };
    bool           trusted;
    int            code;

    if (!device_way_taken(gpu_kind(r)->device, WAY_WARPGROUP) || !fits(r, call) || !gpu_ready(r))
        return false;
    run_prepare(r, true);
    trusted = gpu_rival_trusted(r, call, &way);
    run_prepare(r, false);
    code = trusted ? begin(r, &own) : WARPGROUP_DECLINED;
    if (code == WARPGROUP_DECLINED)
        return false;
    gpu_began(r, "wgmma", code);
    r->computed |= COMPUTED_WARPGROUP;
    return true;
}
