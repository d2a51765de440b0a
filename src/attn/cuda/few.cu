// few.cu -- a few queries that read all keys: panels of keys, and no rules.
#include "attn/cuda/panel_scores.cuh"

struct NoRules {
    __device__ void begin(const RowPanel &, PanelMemory *) {}
    __device__ void keys(const RowPanel &, PanelMemory *) {}
    __device__ void cells(const RowPanel &, PanelMemory *, float[OWN][OWN]) {}
};

template <int WIDE>
static __global__ void __launch_bounds__(THREADS) few_attend(FewCall a)
{
    __shared__ PanelMemory memory;
    NoRules                none;

    attend_panel<WIDE>(a.in, &memory, none);
}

extern "C" int call_few(const FewCall *a)
{
    return a->in.work.width > PANEL_ROWS
               ? LAUNCH(few_attend<2>, panel_grid(&a->in.work, 2), THREADS, 0, *a)
               : LAUNCH(few_attend<1>, panel_grid(&a->in.work, 1), THREADS, 0, *a);
}
