/* axial.c -- Axial Transformer: attention along the rows and the columns of an image.
 *
 * The row pass sees j in the query's image row, the column pass j in its column.
 *
 *     sequential   output = A_second (A_first V)        each A row-stochastic
 *     union        one softmax over row and column
 *     heads        the first half of the heads sees rows, the rest columns
 *     axis=row/col one pass only
 *
 * Causal, mode axis: each pass keeps j <= i; pixels up and to the right stay unseen.
 * Mode shift (the paper's decoder, as one product):
 *
 *     U = A_col(causal) A_row(whole rows);  output = A_row(causal) (I + up U) V
 *
 * where `up` takes a pixel to the one above it, and the first image row to nothing.
 */
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>

enum { AXIS_BOTH, AXIS_ROW, AXIS_COL };
enum { COMBINE_SEQUENTIAL, COMBINE_UNION, COMBINE_HEADS };
enum { ORDER_ROW_COL, ORDER_COL_ROW };
enum { MODE_AXIS, MODE_SHIFT };

static const char *const axes[] = { "both", "row", "col", NULL };
static const char *const combinations[] = { "sequential", "union", "heads", NULL };
static const char *const orders[] = { "row-col", "col-row", NULL };
static const char *const modes[] = { "axis", "shift", NULL };

typedef struct Params {
    int64_t width;
    int     axis, combine, order, causal_mode;
    Tensor  q2, k2;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, width, 0, 0, PARAM_COUNT_MAX,
              "columns of the image; 0: as the input says, else sqrt(n), rounded"),
    PARAM_ENUM(Params, axis, AXIS_BOTH, axes, "passes that are made"),
    PARAM_ENUM(Params, combine, COMBINE_SEQUENTIAL, combinations,
               "one pass after the other, one softmax over both, or a share of the heads each"),
    PARAM_ENUM(Params, order, ORDER_ROW_COL, orders, "which pass of sequential comes first"),
    PARAM_ENUM(Params, causal_mode, MODE_AXIS, modes,
               "axis: each pass is causal; shift: the paper's decoder, without a blind spot"),
    PARAM_TENSOR(Params, q2, "[h,n,d]", "the input's q", "queries of the column pass"),
    PARAM_TENSOR(Params, k2, "[h,n,d]", "the input's k", "keys of the column pass"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

/* One masked softmax along an axis; lives as long as the run, for the readers. */
typedef struct Pass {
    AttendInput    in;
    const Pattern *cells;
    Tensor         lse;
    RowSums        sums;
    bool           column, causal;
} Pass;

typedef struct Axial {
    int64_t n, h, width;
    Pass    row, col, inner; /* inner: the decoder's last one */
    bool    rows_first;
} Axial;

static bool both_passes(const Params *p);
static void run_product(Run *r, const Params *p, int64_t width);
static Pattern *cells_of_pass(Run *r, int64_t width, bool column, bool causal);
static bool own_columns(const Params *p);
static Pattern *row_projection(Run *r, const Params *p, int64_t width);
static AttendInput column_input(Run *r, const Params *p, const AttendInput *rows, int64_t width);
static bool axial_shifted(const Run *r, const Params *p);
static Pass pass_of(Run *r, const AttendInput *in, int64_t width, bool column, bool causal);
static PatternShape axial_shape_of(const Run *r);
static Pattern *axis_cells(Run *r, int64_t width, bool column);
static Tensor axial_run_pass(Run *r, Pass *pass, const char *stage, Tensor v);
static Tensor with_row_above(Run *r, Tensor v, Tensor u, int64_t width);
static void axial_show(Run *r, const Axial *a, bool shift);
static Pattern *reached(Run *r, const Axial *a, bool shift);
static void read_shifted(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out);
static double shifted_cell(const Axial *a, int64_t head, int64_t i, int64_t j);
static double weight(const Axial *a, const Pass *p, int64_t head, int64_t i, int64_t j);
static bool allowed(const Axial *a, const Pass *p, int64_t i, int64_t j);
static double product(const Axial *a, const Pass *second, const Pass *first, int64_t head,
                      int64_t i, int64_t j);
static void read_product(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out);
static void read_pass(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out);
static Pattern *single_cells(Run *r, const Params *p, int64_t width);
static double axis_count(const Run *r, int64_t width, bool column, bool causal);

static void axial_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       width = run_image_width(r, p->width);

    if (both_passes(p)) {
        run_product(r, p, width);
        return;
    }
    if (p->axis == AXIS_COL) {
        int64_t rows[3] = { r->h, r->q.shape[1], r->d }, keys[3] = { r->h, r->m, r->d };

        if (p->q2.data)
            r->q = run_for_each_head(r, run_param_given(r, "q2", p->q2, DT_F32, 3, rows));
        if (p->k2.data)
            r->k = run_param_given(r, "k2", p->k2, DT_F32, 3, keys);
    }
    run_pattern_attention(r, p->scale,
                          pattern_finish(r->arena, axial_shape_of(r), single_cells(r, p, width),
                                         r->causal));
}

static bool both_passes(const Params *p)
{
    return p->axis == AXIS_BOTH && p->combine == COMBINE_SEQUENTIAL;
}

static void run_product(Run *r, const Params *p, int64_t width)
{
    bool        shift = axial_shifted(r, p);
    AttendInput rows = run_attend_input_within(r, p->scale, row_projection(r, p, width));
    AttendInput columns = column_input(r, p, &rows, width);
    Axial      *a = run_alloc(r, 1, sizeof(*a)); /* views read it later */

    if (run_failed(r))
        return;
    *a = (Axial){ .n = r->n, .h = r->h, .width = width,
                  .rows_first = shift || p->order == ORDER_ROW_COL };
    a->row = pass_of(r, &rows, width, false, r->causal && !shift);
    a->col = pass_of(r, &columns, width, true, r->causal);
    if (shift) {
        Tensor u = axial_run_pass(r, &a->col, "columns",
                                  axial_run_pass(r, &a->row, "rows", rows.v));

        a->inner = pass_of(r, &rows, width, false, true);
        r->out = axial_run_pass(r, &a->inner, "own row and the one above",
                                with_row_above(r, rows.v, u, width));
    } else if (a->rows_first) {
        r->out = axial_run_pass(r, &a->col, "columns", axial_run_pass(r, &a->row, "rows", rows.v));
    } else {
        r->out = axial_run_pass(r, &a->row, "rows", axial_run_pass(r, &a->col, "columns", rows.v));
    }
    axial_show(r, a, shift);
}

static Pattern *cells_of_pass(Run *r, int64_t width, bool column, bool causal)
{
    return pattern_finish(r->arena, axial_shape_of(r), axis_cells(r, width, column), causal);
}

static bool own_columns(const Params *p)
{
    return p->q2.data || p->k2.data;
}

/* Cells that the rows' projection serves: the row passes, and the column pass unless it has its
 * own.  NULL, without memory: all. */
static Pattern *row_projection(Run *r, const Params *p, int64_t width)
{
    Pattern *row = cells_of_pass(r, width, false, r->causal && !axial_shifted(r, p));
    Pattern *column;

    if (own_columns(p))
        return row;
    column = cells_of_pass(r, width, true, r->causal);
    return row && column ? pattern_union(r->arena, row, column) : NULL;
}

/* Input of the column pass: its own projections q2, k2 where they are given. */
static AttendInput column_input(Run *r, const Params *p, const AttendInput *rows, int64_t width)
{
    int64_t     shape[3] = { r->h, r->n, r->d };
    Tensor      q = r->q, k = r->k;

    if (!own_columns(p))
        return *rows;
    if (p->q2.data)
        q = run_for_each_head(r, run_param_given(r, "q2", p->q2, DT_F32, 3, shape));
    if (p->k2.data)
        k = run_param_given(r, "k2", p->k2, DT_F32, 3, shape);
    return run_attend_input_of(r, q, k, rows->v, p->scale,
                               cells_of_pass(r, width, true, r->causal));
}

static bool axial_shifted(const Run *r, const Params *p)
{
    return r->causal && both_passes(p) && p->causal_mode == MODE_SHIFT;
}

static Pass pass_of(Run *r, const AttendInput *in, int64_t width, bool column, bool causal)
{
    return (Pass){ .in = *in, .column = column, .causal = causal,
                   .cells = cells_of_pass(r, width, column, causal) };
}

static PatternShape axial_shape_of(const Run *r)
{
    return (PatternShape){ .heads = r->h, .n = r->n, .m = r->n };
}

static Pattern *axis_cells(Run *r, int64_t width, bool column)
{
    return column ? pattern_stride(r->arena, axial_shape_of(r), width)
                  : pattern_chunk(r->arena, axial_shape_of(r), width, 0, 0);
}

static Tensor axial_run_pass(Run *r, Pass *pass, const char *stage, Tensor v)
{
    AttendResult result;

    run_stage(r, stage);
    pass->in.v = v;
    result = op_attend(r, &pass->in, pass->cells);
    pass->lse = result.lse;
    pass->sums = row_sums_of(r, r->h, 1, pass->cells);
    return result.out;
}

/* v + up u: row i of the image gets what the row above it carries. */
static Tensor with_row_above(Run *r, Tensor v, Tensor u, int64_t width)
{
    int64_t n = r->n;
    Tensor  out = run_tensor3(r, DT_F32, r->h, n, r->e), below;

    op_entries(r, v, ENTRY_CAST, 0, out);
    if (run_failed(r) || width >= n)
        return out;
    below = tensor_rows(out, width, n - width);
    op_entries_of(r, below, tensor_rows(u, 0, n - width), ENTRY_SUM, 1, below);
    return out;
}

/* ---- the product, for pictures ---------------------------------------------- */

static void axial_show(Run *r, const Axial *a, bool shift)
{
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    cells = reached(r, a, shift);
    view_pattern(r, cells, true);
    view_meaning(r, cells, NULL, "row and column");
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, shift ? read_shifted : read_product, a, cells);
    view_cells(r, "connectivity_row", a->row.cells);
    view_cells(r, "connectivity_col", a->col.cells);
    view_reader(r, "weights_row", VIEW_WEIGHTS, DT_F32, read_pass, &a->row, a->row.cells);
    view_reader(r, "weights_col", VIEW_WEIGHTS, DT_F32, read_pass, &a->col, a->col.cells);
    if (shift)
        view_reader(r, "weights_inner", VIEW_WEIGHTS, DT_F32, read_pass, &a->inner,
                    a->inner.cells);
}

/* Cells the product reaches, by what they need: the row pass, the column pass, both. */
static Pattern *reached(Run *r, const Axial *a, bool shift)
{
    PatternShape s = axial_shape_of(r);
    Pattern     *far = shift ? pattern_full(r->arena, s, COMPONENT_OTHER)
                             : pattern_image_product(r->arena, s, a->width, a->rows_first,
                                                     r->causal);
    Pattern     *own = pattern_union(r->arena, axis_cells(r, a->width, false),
                                     axis_cells(r, a->width, true));

    return pattern_finish(r->arena, s,
                          pattern_union(r->arena, own, pattern_difference(r->arena, far, own)),
                          r->causal);
}

static void read_shifted(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)shifted_cell(view->context, head, i, start + c * step);
}

static double shifted_cell(const Axial *a, int64_t head, int64_t i, int64_t j)
{
    double sum = weight(a, &a->inner, head, i, j);

    for (int64_t p = i / a->width * a->width; p <= i && p >= a->width; p++)
        sum += weight(a, &a->inner, head, i, p) *
               product(a, &a->col, &a->row, head, p - a->width, j);
    return sum;
}

static double weight(const Axial *a, const Pass *p, int64_t head, int64_t i, int64_t j)
{
    float w;

    if (!allowed(a, p, i, j))
        return 0;
    attend_weights_run(&(WeightRow){ &p->in, &p->lse, &p->sums, a->h, head, i, i, 0 }, j, 1, 1, &w);
    return (double)w;
}

static bool allowed(const Axial *a, const Pass *p, int64_t i, int64_t j)
{
    bool axis = p->column ? i % a->width == j % a->width : i / a->width == j / a->width;

    return axis && !(p->causal && j > i);
}

/* (A_second A_first)[i,j]: one term, at the pixel where the two axes cross. */
static double product(const Axial *a, const Pass *second, const Pass *first, int64_t head,
                      int64_t i, int64_t j)
{
    int64_t corner = first->column ? i / a->width * a->width + j % a->width
                                   : j / a->width * a->width + i % a->width;

    if (corner >= a->n)
        return 0;
    return weight(a, second, head, i, corner) * weight(a, first, head, corner, j);
}

static void read_product(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Axial *a = view->context;
    const Pass  *first = a->rows_first ? &a->row : &a->col;
    const Pass  *second = a->rows_first ? &a->col : &a->row;

    for (int64_t c = 0; c < count; c++)
        out[c] = (float)product(a, second, first, head, i, start + c * step);
}

static void read_pass(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Pass     *p = view->context;
    const WeightRow row = { &p->in, &p->lse, &p->sums, pattern_heads(view->support), head, i, i,
                            0 };

    attend_weights_run(&row, start, count, step, out);
}

static Pattern *single_cells(Run *r, const Params *p, int64_t width)
{
    Pattern *row = axis_cells(r, width, false), *col = axis_cells(r, width, true), **heads;

    if (p->axis != AXIS_BOTH)
        return p->axis == AXIS_ROW ? row : col;
    if (p->combine == COMBINE_UNION)
        return pattern_union(r->arena, row, col);
    heads = run_alloc(r, r->h, sizeof(*heads));
    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        heads[t] = t < (r->h + 1) / 2 ? row : col;
    return run_failed(r) ? NULL : pattern_by_head(r->arena, axial_shape_of(r), heads, r->h);
}

static void axial_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          sequential = both_passes(p);

    if (r->at_end && sequential)
        run_fail(r, ERR_USAGE, "axial: combine=sequential needs the query of every position, and "
                 "the input has the last %lld of %lld: the second pass reads what the first makes "
                 "of earlier ones; take combine=union, combine=heads or one axis",
                 (long long)r->at_end, (long long)r->m);
    if (p->causal_mode == MODE_SHIFT && !sequential)
        run_fail(r, ERR_PARAM, "axial: causal_mode=shift is a product of both passes; it needs "
                               "axis=both and combine=sequential");
    if ((p->q2.data || p->k2.data) && !sequential && p->axis != AXIS_COL)
        run_fail(r, ERR_PARAM, "axial: q2 and k2 belong to a column pass of its own: use "
                               "combine=sequential or axis=col");
}

static Flops axial_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       width = run_image_width(r, p->width);
    bool          shift = axial_shifted(r, p);
    double        row = axis_count(r, width, false, r->causal && !shift), cells;
    double        col = axis_count(r, width, true, r->causal), h = (double)r->h;
    double        first = (double)((r->h + 1) / 2);

    if (both_passes(p))
        cells = h * (row + col + (shift ? axis_count(r, width, false, true) : 0));
    else if (p->axis != AXIS_BOTH)
        cells = h * (p->axis == AXIS_ROW ? row : col);
    else if (p->combine == COMBINE_UNION)
        cells = h * (row + col - (double)r->n); /* a pixel is in its row and its column */
    else
        cells = first * row + (h - first) * col;
    return run_pattern_flops(r, cells);
}

/* Image rows: sum of len^2; columns likewise; causal: len (len + 1) / 2. */
static double axis_count(const Run *r, int64_t width, bool column, bool causal)
{
    int64_t full = r->n / width, rest = r->n % width;
    double  len = (double)(column ? full : width), lines = (double)(column ? width - rest : full);
    double  other = (double)(column ? full + 1 : rest), others = column ? (double)rest : rest > 0;

    if (causal)
        return lines * len * (len + 1) / 2 + others * other * (other + 1) / 2;
    return lines * len * len + others * other * other;
}

/* Both passes one after the other.  What the first makes of the values has a vector for each query
 * head.  The pass along the image row needs that row only; keys that both passes share are held
 * once. */
static DecodeCost product_decode(const Run *r, const Params *p)
{
    bool   rows_first = p->order == ORDER_ROW_COL;
    double bytes = (double)r->cache_bytes, d = (double)r->d, all = (double)r->n;
    double keys = (double)r->k.shape[0] * d, column_keys = p->k2.data ? (double)r->h * d : keys;
    double given = (double)(r->v.shape[0] * r->e), made = (double)(r->h * r->e);
    double row_values = rows_first ? given : made, column_values = rows_first ? made : given;
    double row = (double)((r->n - 1) % r->width + 1), column = (double)((r->n - 1) / r->width + 1);
    double own = p->k2.data ? keys + row_values : row_values;
    double token = bytes * (column_keys + column_values);

    return (DecodeCost){ .state_bytes = token * all + bytes * own * fmin(all, (double)r->width),
                         .kv_bytes_per_token = token,
                         .step_bytes = bytes * (keys + row_values) * row + token * column,
                         .decode_flops = (2 * (double)(r->d + r->e) + decode_cell(r)) *
                                         (double)r->h * (row + column) };
}

/* The shifted form makes whole image rows at once: no cost of one token. */
static DecodeCost axial_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (axial_shifted(r, p))
        return decode_unknown("it makes whole image rows at once");
    return both_passes(p) ? product_decode(r, p) : decode_cells(r, opaque);
}

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEW("connectivity_row", VIEW_PATTERN, "cells of the row pass (sequential)", .maybe = true),
    VIEW("connectivity_col", VIEW_PATTERN, "cells of the column pass (sequential)", .maybe = true),
    VIEW("weights_row", VIEW_WEIGHTS, "weights of the row pass (sequential)", .maybe = true),
    VIEW("weights_col", VIEW_WEIGHTS, "weights of the column pass (sequential)", .maybe = true),
    VIEW("weights_inner", VIEW_WEIGHTS, "weights of the decoder's last row pass "
         "(causal_mode=shift)", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_axial = {
    .id = "axial",
    .title = "Axial Transformer",
    .authors = "Ho, Kalchbrenner, Weissenborn, Salimans",
    .year = 2019,
    .arxiv = "1912.12180",
    .source = "paper, section 3; survey of Tay et al., section 3.2.5 and figure 5",
    .formula = "output = A_col (A_row V): attention along image rows, then along columns",
    .problem = "An image of side s has s^2 pixels and s^4 pairs.",
    .idea = "Attention runs along the rows and then along the columns, so two passes reach each "
            "pixel.",
    .price = "Two pixels in different rows and columns meet only through the pixel at the "
             "crossing.",
    .lesson = "patterns",
    .teaches = "One pass is a bar of the image, two passes are everything.  Causal passes leave a "
               "blind spot up and to the right; causal_mode=shift fills it.",
    .classes = CLASS_FP,
    .claim_time = "O(n sqrt(n))",
    .claim_memory = "O(n sqrt(n))",
    .claim_decode = "yes",
    .claim_exponent = 1.5,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .check = axial_check,
    .run = axial_run,
    .flops = axial_flops,
    .on_grid = true,
    .decode = axial_decode,
};
