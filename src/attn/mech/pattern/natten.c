/* natten.c -- neighbourhood attention on a grid of one to three axes, and sliding tiles.
 *
 * Tokens lie on a grid, the last axis fastest.  Along an axis of length X the place x is member
 * y = floor(x / dilation) of the group x mod dilation, which has L members; with
 * u = floor(y / stride) stride a query takes the window of its leader:
 *
 *     around:  leader = min(u + floor(stride / 2), L - 1)
 *              y' in [c - left, c + right],  c = clamp(leader, left, L - 1 - right)
 *     causal:  leader = min(u + stride - 1, L - 1)
 *              y' <= y  and  leader - y' < kernel
 *
 * left = floor(kernel / 2), right = kernel - left - 1.  A key is seen when it is seen along every
 * axis.  At a border the window is moved inwards and not cut, so every query has the same number
 * of keys; only a causal axis cuts it.  With `tile` the places are whole tiles, and a query sees
 * all tokens of the tiles that its own tile sees.
 */
#include "attn/run.h"

typedef struct Params {
    IndexList grid, kernel, dilation, stride, causal_axes, tile;
    double    scale, softcap;
} Params;

#define KERNEL 3

static const Param params[] = {
    PARAM_LIST(Params, grid, 0, 0, PARAM_COUNT_MAX,
               "lengths of one to three axes, the last fastest: [8,8]; 0: one axis of all tokens"),
    PARAM_LIST(Params, kernel, KERNEL, 1, PARAM_COUNT_MAX,
               "neighbours along an axis, its own place included; one, or one per axis: [3,5]"),
    PARAM_LIST(Params, dilation, 1, 1, PARAM_COUNT_MAX,
               "distance between the neighbours; one, or one per axis"),
    PARAM_LIST(Params, stride, 1, 1, PARAM_COUNT_MAX,
               "queries along an axis that share one window; one, or one per axis"),
    PARAM_LIST(Params, causal_axes, 0, 0, 1,
               "1: no later place along the axis; one, or one per axis; --causal sets all"),
    PARAM_LIST(Params, tile, 1, 1, PARAM_COUNT_MAX,
               "above 1: tiles of so many places see `kernel` whole tiles; one, or one per axis"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

/* The grid as the parameters say. */
typedef struct Grid {
    GridAxis axes[GRID_AXES_MOST];
    int      count;
    uint8_t  bits;
} Grid;

static Grid grid_of(const Run *r, const Params *p);
static void attend_cells(Run *r, const Params *p, const Pattern *cells);
static void show_neighbours(Run *r, const Grid *g, const Pattern *cells);
static int64_t reach_of(const Grid *g);

static void natten_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    Grid          g = grid_of(r, p);
    Pattern      *cells = pattern_neighbours(r->arena, s, g.axes, g.count, g.bits);

    if (g.count > 1)
        run_image_width(r, g.axes[g.count - 1].length);
    cells = run_last_rows(r, pattern_finish(r->arena, s, cells, false));
    attend_cells(r, p, cells);
    show_neighbours(r, &g, cells);
    if (r->causal)
        run_figure_int(r, "reach", reach_of(&g));
}

static void attend_cells(Run *r, const Params *p, const Pattern *cells)
{
    AttendInput in = run_attend_input_within(r, p->scale, cells);

    run_stage(r, "attend");
    run_attend_cells(r, &in, cells, NULL);
    run_masses(r, &in, cells);
    run_last_row(r, cells);
}

static int64_t item_of(IndexList list, int axis)
{
    return list.is_list ? axis < list.count ? list.items[axis] : 1 : list.count;
}

static int axes_of(const Params *p)
{
    return p->grid.is_list && p->grid.count < GRID_AXES_MOST ? (int)p->grid.count
           : p->grid.is_list                                  ? GRID_AXES_MOST
                                                              : 1;
}

/* Where no kernel is given, a short axis has a smaller one. */
static int64_t kernel_of(const Run *r, const Params *p, int axis, int64_t length)
{
    return run_is_given(r, "kernel") ? item_of(p->kernel, axis) : min_i64(KERNEL, length);
}

static Grid grid_of(const Run *r, const Params *p)
{
    Grid g = { .count = axes_of(p), .bits = COMPONENT_WINDOW };
    bool tiles = false, spread = false;

    for (int t = 0; t < g.count; t++) {
        GridAxis *a = &g.axes[t];

        a->length = item_of(p->grid, t) ? item_of(p->grid, t) : r->m;
        a->kernel = kernel_of(r, p, t, a->length);
        a->dilation = item_of(p->dilation, t);
        a->stride = item_of(p->stride, t);
        a->tile = item_of(p->tile, t);
        a->causal = r->causal || item_of(p->causal_axes, t) > 0;
        tiles |= a->tile > 1;
        spread |= a->dilation > 1;
    }
    g.bits = tiles ? COMPONENT_BLOCK : spread ? COMPONENT_STRIDED : COMPONENT_WINDOW;
    return g;
}

/* How far back the farthest key lies, the query's own place included: along each axis apart. */
static int64_t reach_of(const Grid *g)
{
    int64_t reach = 0, place = 1;

    for (int t = g->count - 1; t >= 0; t--) {
        const GridAxis *a = &g->axes[t];
        int64_t         back = 0;

        for (int64_t x = 0; x < a->length; x++)
            back = max_i64(back, x - grid_axis_keys(a, x).start);
        reach += back * place;
        place *= a->length;
    }
    return reach + 1;
}

/* ---- the list of neighbours ---------------------------------------------------- */

static void read_neighbours(const View *view, int64_t head, int64_t i, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    PatternRow row = { 0 };
    int64_t    at = 0;

    (void)head;
    pattern_row(view->context, 0, i, &row);
    for (int64_t c = 0; c < count; c++)
        out[c] = -1;
    for (int64_t x = 0; x < row.count && !row.failed; at += row.runs[x++].count)
        for (int64_t t = 0; t < row.runs[x].count; t++) {
            int64_t c = at + t - start;

            if (c >= 0 && c % step == 0 && c / step < count)
                out[c / step] = (float)(row.runs[x].start + t * row.runs[x].step);
        }
    pattern_row_free(&row);
}

/* Keys of the query that has the most. */
static int64_t most_keys(const Grid *g)
{
    int64_t keys = 1;

    for (int t = 0; t < g->count; t++) {
        int64_t most = 0;

        for (int64_t x = 0; x < g->axes[t].length; x++)
            most = max_i64(most, grid_axis_keys(&g->axes[t], x).count);
        keys *= most;
    }
    return keys;
}

static void show_neighbours(Run *r, const Grid *g, const Pattern *cells)
{
    int64_t shape[2] = { r->n, most_keys(g) };
    View   *view = view_add(r, "neighbours", VIEW_TENSOR, DT_I32, 2, shape);

    if (!view)
        return;
    view->read = read_neighbours;
    view->context = cells;
    view->rows = "query";
    view->cols = "neighbour";
}

/* ---- what is refused ------------------------------------------------------------- */

static void check_grid(Run *r, const Params *p)
{
    int64_t places = 1;
    Text    lengths = { 0 };

    if (p->grid.is_list && (p->grid.count < 1 || p->grid.count > GRID_AXES_MOST))
        run_fail(r, ERR_PARAM, "natten: grid has %lld axes: give 1 to %d lengths, like [8,8]",
                 (long long)p->grid.count, GRID_AXES_MOST);
    for (int t = 0; t < axes_of(p) && !run_failed(r); t++) {
        int64_t length = item_of(p->grid, t);

        if (p->grid.is_list && length < 1)
            run_fail(r, ERR_PARAM, "natten: axis %d of grid is %lld: a length is at least 1", t,
                     (long long)length);
        length = length ? length : r->n;
        text_addf(&lengths, "%s%lld", t ? "x" : "", (long long)length);
        places = length > r->n ? r->n + 1 : places * length;
    }
    if (!run_failed(r) && places != r->n)
        run_fail(r, ERR_PARAM, "natten: a grid of %s does not have one place for each of the n = "
                 "%lld tokens: give lengths whose product is %lld", text_str(&lengths),
                 (long long)r->n, (long long)r->n);
    text_free(&lengths);
}

static void check_list(Run *r, const Params *p, const char *name, IndexList list, int64_t least,
                       int64_t most)
{
    if (list.is_list && list.count != axes_of(p))
        run_fail(r, ERR_PARAM, "natten: %s lists %lld values, but the grid has %d axes: give one "
                 "value, or one per axis", name, (long long)list.count, axes_of(p));
    for (int64_t t = 0; list.is_list && t < list.count && !run_failed(r); t++)
        if (list.items[t] < least || list.items[t] > most)
            run_fail(r, ERR_PARAM, "natten: %s of axis %lld is %lld: it must be %s", name,
                     (long long)t, (long long)list.items[t],
                     most == 1 ? "0 or 1" : "at least 1");
}

/* One axis, whose numbers are in their ranges. */
static void check_axis(Run *r, int axis, const GridAxis *a)
{
    int64_t tiles = (a->length - 1) / a->tile + 1;
    long long kernel = (long long)a->kernel, length = (long long)a->length;

    if (a->stride > a->kernel)
        run_fail(r, ERR_PARAM, "natten: on axis %d stride %lld is larger than kernel %lld: queries "
                 "that share a window must lie in it", axis, (long long)a->stride, kernel);
    else if (a->tile > 1 && a->kernel > tiles)
        run_fail(r, ERR_PARAM, "natten: on axis %d kernel %lld is larger than the %lld tiles of "
                 "%lld that cover %lld places", axis, kernel, (long long)tiles,
                 (long long)a->tile, length);
    else if (a->kernel > a->length / a->dilation)
        run_fail(r, ERR_PARAM, "natten: on axis %d kernel %lld times dilation %lld is more than "
                 "the %lld places there are", axis, kernel, (long long)a->dilation, length);
}

static void natten_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          tiles = false, spread = false;
    Grid          g;

    check_grid(r, p);
    check_list(r, p, "kernel", p->kernel, 1, INT64_MAX);
    check_list(r, p, "dilation", p->dilation, 1, INT64_MAX);
    check_list(r, p, "stride", p->stride, 1, INT64_MAX);
    check_list(r, p, "causal_axes", p->causal_axes, 0, 1);
    check_list(r, p, "tile", p->tile, 1, INT64_MAX);
    if (run_failed(r))
        return;
    g = grid_of(r, p);
    for (int t = 0; t < g.count; t++) {
        check_axis(r, t, &g.axes[t]);
        tiles |= g.axes[t].tile > 1;
        spread |= g.axes[t].dilation > 1 || g.axes[t].stride > 1;
    }
    if (tiles && spread)
        run_fail(r, ERR_PARAM, "natten: tile needs dilation = 1 and stride = 1: tiles lie side by "
                 "side and share one window already");
}

/* n kernel^axes when no axis is causal and tiles are whole; else the sum along each axis. */
static Flops natten_flops(Run *r, const void *opaque)
{
    Grid g = grid_of(r, opaque);

    return run_pattern_flops(r, (double)r->h *
                                    (double)grid_axes_cells_before(g.axes, g.count, r->n));
}

/* A key may be needed as long as it is in reach. */
static DecodeCost natten_decode(const Run *r, const void *opaque)
{
    Grid g = grid_of(r, opaque);

    return (DecodeCost){ .state_bytes = (double)r->cache_bytes * decode_token(r) *
                                        (double)reach_of(&g),
                         .step_bytes = decode_read(r), .decode_flops = decode_row(r) };
}

static const StageNote notes[] = {
    { "attend",
      "Each query compares itself with the keys of its neighbourhood on the grid.  At a border "
      "the neighbourhood stays inside and keeps its size." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEWS_OF_MASSES,
    VIEW("neighbours", VIEW_TENSOR, "the keys of each query, increasing; -1: there are fewer"),
    VIEW_PROMISE_END
};

const Mechanism mech_natten = {
    .id = "natten",
    .title = "Neighbourhood attention",
    .authors = "Hassani, Walton, Li, Li, Shi",
    .year = 2022,
    .arxiv = "2204.07143",
    .source = "paper; dilation 2209.15001, causal axes and 3-D 2403.04690, strides 2504.16922; "
              "tiles: sliding tile attention 2502.04507",
    .formula = "A = { j: along every axis j is one of the kernel places nearest to i }\n"
               "output = softmax over A of Q K^T / sqrt(d), times V",
    .problem = "A window that is cut at the border of an image leaves border tokens with fewer "
               "keys; fixed blocks leave them with keys on one side only.",
    .idea = "Each token sees the kernel places around it along every axis, and near a border "
            "the window moves inwards instead of being cut.",
    .price = "The context of one layer is a box of fixed size; a query at the border no longer "
             "stands in the middle of it.",
    .lesson = "patterns",
    .teaches = "Bands of bands: one box on the grid is many short runs in the sequence.  Every "
               "query has the same number of keys, also in a corner.  With tiles the box jumps, "
               "and all its blocks are whole.",
    .classes = CLASS_FP,
    .claim_time = "O(n k)",
    .claim_memory = "O(n k)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .size = "kernel",
    .params = params,
    .params_size = sizeof(Params),
    .check = natten_check,
    .run = natten_run,
    .flops = natten_flops,
    .decode = natten_decode,
};
