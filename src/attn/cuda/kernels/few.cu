// few.cu -- panels of keys without rules: a few queries that read all keys, groups that see all.
#include "attn/cuda/kernels/panel_scores.cuh"

struct NoRules {
    __device__ void begin(const RowPanel &, PanelMemory *) {}
    __device__ void keys(const RowPanel &, PanelMemory *) {}
    __device__ void cells(const RowPanel &, PanelMemory *, float[OWN][OWN]) {}
};

template <int WIDE>
static __global__ void __launch_bounds__(THREADS) panels_attend(PanelInput a)
{
    SHARED_VALUE(PanelMemory, memory);
    NoRules                none;

    attend_panel<WIDE>(a, &memory, none);
}

int attend_panels(const PanelInput *a)
{
    return a->work.width > PANEL_ROWS
               ? LAUNCH(panels_attend<2>, panel_grid(&a->work, 2), THREADS, 0, *a)
               : LAUNCH(panels_attend<1>, panel_grid(&a->work, 1), THREADS, 0, *a);
}

extern "C" int call_few(const FewCall *a)
{
    return attend_panels(&a->in);
}
