// join.cu -- panels whose keys were cut are put together; see panel_call.h.
//
//     top = max_s top_s,  sum = sum_s e^(top_s - top) sum_s,  out = sum_s e^(top_s - top) part_s / sum
//
// A warp has a row; its lanes have the columns.  Slots are added in order.
#include "attn/cuda/kernels/panels.cuh"

#define WARPS 8 // rows of a block
#define MOST_JOINS 65535

static __device__ double share_of(double top, double all)
{
    return top == -INFINITY ? 1 : exp(top - all); // of nothing, or of NaN
}

static __global__ void __launch_bounds__(32 * WARPS) join_panels(JoinCall a)
{
    for (int64_t which = blockIdx.x; which < a.work.joins; which += gridDim.x) {
        PanelJoin j = a.work.join[which];
        int       row = (int)blockIdx.y * WARPS + (int)threadIdx.x / 32;
        double    top = -INFINITY, sum = 0;
        int64_t   place;

        if (row >= j.rows)
            continue;
        for (int64_t s = 0; s < j.count; s++)
            top = fmax(top, a.work.top[(j.slot + s) * PANEL_ROWS + row]);
        for (int64_t s = 0; s < j.count; s++) {
            int64_t at = (j.slot + s) * PANEL_ROWS + row;

            sum += share_of(a.work.top[at], top) * a.work.sum[at];
        }
        place = place_of(a.to, j.head, j.first + row);
        if (threadIdx.x % 32 == 0)
            put_lse(a.to, j.head, place, top, sum);
        for (int64_t col = threadIdx.x % 32; col < a.work.width; col += 32) {
            double value = 0;

            for (int64_t s = 0; s < j.count; s++) {
                int64_t at = (j.slot + s) * PANEL_ROWS + row;

                value += share_of(a.work.top[at], top) *
                         (double)a.work.part[at * a.work.width + col];
            }
            put_value(a.to, j.head, place, col, sum == 0 ? 0.0f : (float)(value / sum));
        }
    }
}

extern "C" int call_join(const JoinCall *a)
{
    int64_t blocks = a->work.joins < MOST_JOINS ? a->work.joins : MOST_JOINS;

    return LAUNCH(join_panels, dim3((unsigned)blocks, PANEL_ROWS / WARPS), 32 * WARPS, 0, *a);
}
