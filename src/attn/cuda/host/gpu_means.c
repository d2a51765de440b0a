/* gpu_means.c -- means of a pattern's rows on the device, and the rows as runs. */
#include "attn/cuda/host/gpu.h"

#include <string.h>

/* Room for one row more; the old runs move when there is not enough. */
static KeyRun *with_room(Run *r, KeyRun *runs, int64_t used, int64_t more, int64_t *room)
{
    KeyRun *larger;

    if (used + more <= *room)
        return runs;
    *room = 2 * (used + more);
    larger = gpu_list(r, *room, sizeof(*larger));
    if (larger && used)
        memcpy(larger, runs, (size_t)used * sizeof(*runs));
    return larger;
}

RowRuns gpu_row_runs(Run *r, const Pattern *pattern, double *cells)
{
    int64_t    n = pattern_queries(pattern), lines = pattern_per_head(pattern) ? r->h * n : n;
    int64_t    used = 0, room = 0, found = 0;
    int64_t   *start = gpu_list(r, lines + 1, sizeof(*start));
    KeyRun    *runs = NULL;
    PatternRow row = { 0 };

    run_prepare(r, true);
    for (int64_t i = 0; i < lines && !run_failed(r); i++) {
        start[i] = used;
        pattern_row(pattern, i / n, i % n, &row);
        runs = with_room(r, runs, used, row.count, &room);
        if (row.failed)
            run_fail(r, ERR_NOMEM, "%s: no memory for the pattern's rows", r->mechanism->id);
        for (int64_t x = 0; x < row.count && !run_failed(r); x++) {
            PatternRun from = row.runs[x];

            runs[used++] = (KeyRun){ (int32_t)from.start, (int32_t)from.count, (int32_t)from.step };
            found += from.count;
        }
    }
    if (!run_failed(r))
        start[lines] = used;
    gpu_toward(r, start, (lines + 1) * (int64_t)sizeof(*start));
    gpu_toward(r, runs, used * (int64_t)sizeof(*runs));
    pattern_row_free(&row);
    run_prepare(r, false);
    *cells = (double)found * (pattern_per_head(pattern) ? 1 : (double)r->h);
    return (RowRuns){ .rows = n, .per_head = pattern_per_head(pattern), .start = start,
                      .runs = runs };
}

void gpu_pattern_means(Run *r, const PatternMeans *in, const Pattern *pattern, Tensor *y,
                       double *cells)
{
    ArenaMark mark = arena_mark(r->arena);
    MeansCall call = { .heads = y->shape[0], .x = gpu_tensor(r, &in->x), .y = gpu_tensor(r, y),
                       .cells = gpu_row_runs(r, pattern, cells), .divisor = in->divisor,
                       .less_own = in->less_own };

    if (gpu_ready(r))
        gpu_done(r, "means of rows", gpu_api(r)->means(&call));
    arena_release(r->arena, mark);
}
