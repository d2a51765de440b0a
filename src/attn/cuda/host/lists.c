/* lists.c -- rows by lists and by patterns, convolutions, best columns and attention of narrow
 * formats on the device; see attn/ops/rows.h. */
#include <string.h>

#include "attn/cuda/host/gpu.h"

static void move(Run *r, const Tensor *x, const Tensor *index, Tensor *y, bool scatter)
{
    ArenaMark mark = arena_mark(r->arena);
    MoveCall  call = { .heads = y->shape[0], .x = gpu_tensor(r, x), .y = gpu_tensor(r, y),
                       .index = gpu_lines(gpu_tensor(r, index)), .scatter = scatter };

    if (gpu_ready(r))
        gpu_done(r, scatter ? "scatter" : "gather", gpu_api(r)->move(&call));
    arena_release(r->arena, mark);
}

void gpu_gather(Run *r, const Tensor *x, const Tensor *index, Tensor *y)
{
    move(r, x, index, y, false);
}

void gpu_scatter(Run *r, const Tensor *x, const Tensor *index, Tensor *y)
{
    move(r, x, index, y, true);
}

void gpu_merge_rows(Run *r, const MergeRows *in)
{
    ArenaMark mark = arena_mark(r->arena);
    MergeCall call = { .heads = in->out.shape[0], .lists = in->lists,
                       .rows = gpu_tensor(r, &in->rows),
                       .lse = gpu_lines(gpu_tensor(r, &in->lse)),
                       .index = gpu_lines(gpu_tensor(r, &in->index)),
                       .out = gpu_tensor(r, &in->out), .z = gpu_lines(gpu_tensor(r, &in->z)) };

    GPU_OP(r, mark, "merge", merge, &call);
}

/* The host makes the starts of rows, and often their entries. */
static void lists_toward(Run *r, const SumLists *in)
{
    int64_t rows = in->heads * in->n, entries = run_failed(r) ? 0 : in->start[rows];

    gpu_toward(r, in->start, (rows + 1) * (int64_t)sizeof(*in->start));
    gpu_toward(r, in->entry, entries * (int64_t)sizeof(*in->entry));
    gpu_toward(r, in->weight, entries * (int64_t)sizeof(*in->weight));
    gpu_toward(r, in->share, rows * (int64_t)sizeof(*in->share));
}

void gpu_sum_lists(Run *r, const SumLists *in, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    SumsCall  call = { .heads = y->shape[0], .x = gpu_tensor(r, &in->x), .y = gpu_tensor(r, y),
                       .start = in->start, .entry = in->entry, .weight = in->weight,
                       .share = in->share };

    lists_toward(r, in);
    GPU_OP(r, mark, "sums of lists", sum_lists, &call);
}

void gpu_pool_windows(Run *r, const PoolWindows *in, Tensor *y)
{
    ArenaMark   mark = arena_mark(r->arena);
    WindowsCall call = { .heads = y->shape[0], .x = gpu_tensor(r, &in->x), .y = gpu_tensor(r, y),
                         .first = in->first, .end = in->end, .kind = (int32_t)in->kind };

    GPU_OP(r, mark, "pooling", pool_windows, &call);
}

/* ---- rows of a pattern --------------------------------------------------------------- */

/* Makes room for `more` runs; moves the old ones if necessary. */
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

    GPU_OP(r, mark, "means of rows", means, &call);
}

/* ---- convolutions, best columns, listed rows, narrow formats --------------------------- */

void gpu_tap_sums(Run *r, const TapSums *in, Tensor *y)
{
    ArenaMark   mark = arena_mark(r->arena);
    TapSumsCall call = { .heads = y->shape[0], .x = gpu_tensor(r, &in->x),
                         .taps = gpu_tensor(r, &in->taps), .y = gpu_result(r, y),
                         .groups = in->groups, .first = in->first, .step = in->step,
                         .apart = max_i64(1, in->apart),
                         .bias = gpu_floats(r, in->bias.data, y->shape[2]), .add = in->add };

    GPU_OP(r, mark, "sums of taps", tap_sums, &call);
}

void gpu_best_columns(Run *r, const BestColumns *in, BestResult *out)
{
    ArenaMark       mark = arena_mark(r->arena);
    BestColumnsCall call = { .x = gpu_tensor(r, &in->x), .y = gpu_tensor(r, &in->y), .k = in->k,
                             .x_name = gpu_tensor(r, &in->x_name),
                             .y_name = gpu_tensor(r, &in->y_name), .names = in->names,
                             .value = gpu_result(r, &out->value).data,
                             .index = gpu_result(r, &out->index).data };

    GPU_OP(r, mark, "best columns", best_columns, &call);
}

void gpu_pair_dots(Run *r, const Tensor *x, const Tensor *y, const Tensor *index, Tensor *dots)
{
    ArenaMark    mark = arena_mark(r->arena);
    PairDotsCall call = { .heads = index->shape[0], .n = index->shape[1], .k = index->shape[2],
                          .x = gpu_tensor(r, x), .y = gpu_tensor(r, y),
                          .index = gpu_tensor(r, index).data, .dots = gpu_result(r, dots).data };

    GPU_OP(r, mark, "products with listed rows", pair_dots, &call);
}

void gpu_rounded_attend(Run *r, const RoundedAttend *in)
{
    ArenaMark         mark = arena_mark(r->arena);
    const Precision  *to = precision_of(in->format);
    int64_t           rows = in->out.shape[0] * in->q.shape[1];
    RoundedAttendCall call = { .heads = in->out.shape[0], .n = in->q.shape[1],
                               .m = in->k.shape[1], .blocks = min_i64(rows, ROUNDED_BLOCKS),
                               .q = gpu_tensor(r, &in->q), .k = gpu_tensor(r, &in->k),
                               .v = gpu_tensor(r, &in->v), .bits = to->bits,
                               .least = to->least, .limit = to->limit, .scale = in->scale,
                               .half_sums = in->half_sums, .half_softmax = in->half_softmax,
                               .causal = in->causal, .offset = in->offset,
                               .out = gpu_result(r, &in->out).data,
                               .top = gpu_result(r, &in->top).data,
                               .total = gpu_result(r, &in->total).data,
                               .weights = gpu_result(r, &in->weights).data,
                               .overflows = gpu_result(r, &in->overflows).data };

    call.scores = gpu_scratch(r, call.blocks * call.m, (int64_t)sizeof(double));
    if (gpu_ready(r))
        gpu_done(r, "rounded attention", gpu_api(r)->rounded_attend(&call));
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}
