/* attn/cuda/host/gpu_panels.h -- lists of panels for the device; see panel_call.h. */
#ifndef ATTN_CUDA_HOST_GPU_PANELS_H
#define ATTN_CUDA_HOST_GPU_PANELS_H

#include "attn/cuda/host/gpu.h"

/* Rows of a head that all have the same keys. */
typedef struct PanelSpan {
    int64_t head, group, first, rows, first_key, keys;
} PanelSpan;

/* The panels of the spans, in the run's arena, longest first; `width` columns of results.  Keys
 * are cut so that every multiprocessor has some panels; spans without rows have none. */
PanelWork gpu_panels(Run *r, const PanelSpan *spans, int64_t count, int64_t width);
/* Puts the pieces together where keys were cut; does not wait. */
bool gpu_join(Run *r, const PanelWork *work, const PanelOut *to);

/* Whether there is something to start. */
static inline bool gpu_has_panels(Run *r, const PanelWork *work)
{
    return gpu_ready(r) && work->count > 0;
}

#endif
