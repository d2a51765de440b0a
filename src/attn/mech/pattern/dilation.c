/* dilation.c -- see dilation.h. */
#include "attn/mech/pattern/dilation.h"

#include "attn/run.h"

static int64_t dilation_of(IndexList dilation, int64_t head)
{
    if (!dilation.is_list)
        return dilation.count;
    return dilation.items[dilation.count == 1 ? 0 : head];
}

void dilation_check(Run *r, IndexList dilation)
{
    const char *id = r->mechanism->id;

    if (dilation.is_list && dilation.count != 1 && dilation.count != r->h)
        run_fail(r, ERR_PARAM,
                 "%s: dilation lists %lld values for %lld heads; give one, or one per head", id,
                 (long long)dilation.count, (long long)r->h);
    for (int64_t t = 0; dilation.is_list && t < dilation.count; t++)
        if (dilation.items[t] < 1)
            run_fail(r, ERR_PARAM, "%s: dilation must be at least 1, got %lld", id,
                     (long long)dilation.items[t]);
}

/* Distances are compared with the sequence first, so that no product overflows. */
static int64_t reach_of(const Run *r, int64_t window, int64_t dilation)
{
    int64_t most = (r->n - 1) / dilation, k = window / 2;

    return k < most ? k : most;
}

static Pattern *band_of(Run *r, PatternShape s, int64_t window, int64_t dilation)
{
    int64_t reach = reach_of(r, window, dilation) * dilation;

    return pattern_band(r->arena, s, -reach, reach, dilation,
                        dilation > 1 ? COMPONENT_STRIDED : COMPONENT_WINDOW);
}

Pattern *dilated_window(Run *r, int64_t window, IndexList dilation)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->n };
    int64_t      kinds = dilation.is_list && dilation.count > 1 ? r->h : 1;
    Pattern    **bands = run_alloc(r, kinds, sizeof(*bands));

    if (run_failed(r))
        return NULL;
    for (int64_t head = 0; head < kinds; head++)
        bands[head] = band_of(r, s, window, dilation_of(dilation, head));
    return pattern_by_head(r->arena, s, bands, kinds);
}

double dilated_window_cells(const Run *r, int64_t window, IndexList dilation)
{
    double cells = 0, n = (double)r->n;

    for (int64_t head = 0; head < r->h; head++) {
        int64_t delta = dilation_of(dilation, head);
        double  k = (double)reach_of(r, window, delta);
        double  side = k * n - (double)delta * k * (k + 1) / 2;

        cells += n + (r->causal ? 1 : 2) * side;
    }
    return cells;
}
