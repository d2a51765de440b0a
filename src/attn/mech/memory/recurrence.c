/* recurrence.c -- see recurrence.h. */
#include "attn/mech/memory/recurrence.h"

#include <math.h>

#include "attn/run.h"

const char *const recurrence_components[8] = { [0] = "memory", [3] = "compressed",
                                               [4] = "own segment" };

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

Recurrence recurrence_of(const Run *r, int64_t segment, int64_t mem_len)
{
    Recurrence c = { .n = r->n, .segment = min64(segment, r->n), .mem_len = min64(mem_len, r->n),
                     .causal = r->causal };

    c.count = (c.n + c.segment - 1) / c.segment;
    return c;
}

int64_t recurrence_start(const Recurrence *c, int64_t t)
{
    return t * c->segment;
}

int64_t recurrence_end(const Recurrence *c, int64_t t)
{
    return min64(c->n, (t + 1) * c->segment);
}

int64_t recurrence_memory(const Recurrence *c, int64_t t)
{
    int64_t start = recurrence_start(c, t);

    return start > c->mem_len ? start - c->mem_len : 0;
}

void recurrence_attend(Run *r, const AttendInput *segment, const Pattern *cells, int64_t first,
                       Tensor out, Tensor lse)
{
    ArenaMark    mark = arena_mark(r->arena);
    AttendResult result = op_attend(r, segment, cells);
    int64_t      rows = segment->q.shape[1], n = out.shape[1];
    Tensor       own, all; /* log-sum-exps */

    if (!run_failed(r)) {
        op_entries(r, result.out, ENTRY_CAST, 0, tensor_rows(out, first, rows));
        own = tensor_of(DT_F32, 3, (int64_t[]){ r->h, rows, 1 }, result.lse.data);
        all = tensor_of(DT_F32, 3, (int64_t[]){ r->h, n, 1 }, lse.data);
        op_entries(r, own, ENTRY_CAST, 0, tensor_rows(all, first, rows));
    }
    arena_release(r->arena, mark);
}

/* ---- one segment to look at ---------------------------------------------------- */

typedef struct SegmentView {
    AttendInput in;
    Tensor      lse; /* of the segment's rows */
    int64_t     heads;
    RowSums     sums;
} SegmentView;

bool recurrence_shows(const Run *r, int64_t t)
{
    return t < RECURRENCE_SNAPSHOTS && run_wants_views(r);
}

static void read_segment(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const SegmentView *s = view->context;
    const WeightRow    row = { &s->in, &s->lse, &s->sums, s->heads, head, i, i, 0 };

    attend_weights_run(&row, start, count, step, out);
}

void recurrence_show_segment(Run *r, const AttendInput *segment, Tensor lse, int64_t first,
                             int64_t own, const Pattern *cells)
{
    SegmentView *kept = run_wants_views(r) ? run_alloc(r, 1, sizeof(*kept)) : NULL;
    int64_t     *group = kept ? run_alloc(r, 2, sizeof(*group)) : NULL;
    View        *view;

    if (!cells)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
    if (!group || run_failed(r))
        return;
    *kept = (SegmentView){ .in = *segment, .heads = r->h,
                           .sums = row_sums_of(r, r->h, 1, cells),
                           .lse = tensor_rows(lse, first, segment->q.shape[1]) };
    view = view_reader(r, "segment_weights", VIEW_WEIGHTS, DT_F32, read_segment, kept, cells);
    group[0] = 0;
    group[1] = own;
    if (!view)
        return;
    view->cols = "remembered, then own key";
    view->col_groups = group;
    view->col_group_count = own > 0 ? 2 : 1;
}

/* ---- reach over depth ---------------------------------------------------------- */

#define DEPTH 12 /* layers looked at: as reach does when nobody says */

/* The first key of every row; false: no memory. */
static bool first_keys(const Pattern *cells, int64_t n, int64_t *first)
{
    PatternRow row = { 0 };
    bool       ok = true;

    for (int64_t i = 0; i < n && ok; i++) {
        pattern_row(cells, 0, i, &row);
        ok = !row.failed;
        first[i] = ok && row.count && row.runs[0].start < i ? row.runs[0].start : i;
    }
    pattern_row_free(&row);
    return ok;
}

/* One layer more: windows only move on, so the token furthest back is that of the first key.
 * False: no query reaches further than before. */
static bool deepen(const int64_t *first, int64_t n, int64_t *oldest)
{
    bool changed = false;

    for (int64_t i = n - 1; i >= 0; i--) { /* first[i] <= i: those needed are still as they were */
        int64_t now = oldest[first[i]];

        changed = changed || now < oldest[i];
        oldest[i] = now;
    }
    return changed;
}

/* Tokens, or segments, from each query back to its oldest token. */
static void write_depth(const Recurrence *c, const int64_t *oldest, bool segments, int32_t *row)
{
    for (int64_t i = 0; i < c->n; i++)
        row[i] = (int32_t)(segments ? i / c->segment - oldest[i] / c->segment : i - oldest[i]);
}

static void show_depths(Run *r, const char *name, Tensor reach, int64_t depth)
{
    reach.shape[0] = depth;
    view_tensor(r, name, VIEW_COUNT, reach, "layers", "query");
}

void recurrence_show_reach(Run *r, const Recurrence *c, const Pattern *cells)
{
    int64_t *first = run_wants_views(r) ? run_alloc(r, c->n, sizeof(*first)) : NULL;
    int64_t *oldest = first ? run_alloc(r, c->n, sizeof(*oldest)) : NULL, depth = 0;
    Tensor   reach[2];

    if (!oldest)
        return;
    for (int x = 0; x < 2; x++)
        reach[x] = run_tensor2(r, DT_I32, DEPTH + 1, c->n);
    if (!cells || run_failed(r) || !first_keys(cells, c->n, first)) {
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
        return;
    }
    for (int64_t i = 0; i < c->n; i++)
        oldest[i] = i;
    do {
        for (int x = 0; x < 2; x++)
            write_depth(c, oldest, x == 1, tensor_i32(&reach[x]) + depth * c->n);
        depth++;
    } while (depth <= DEPTH && deepen(first, c->n, oldest));
    show_depths(r, "reach_tokens", reach[0], depth);
    show_depths(r, "reach_segments", reach[1], depth);
}
