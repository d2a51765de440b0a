/* replay_tiles.c -- a softmax row by row of tiles, as the fused kernels make it.
 *
 *     M = max(m, max s),   l <- l exp(m - M) + sum exp(s - M),   o likewise,   m <- M
 *
 * over the scores s of one tile of keys; output_i = o / l after the last one.  The states of
 * a row are computed in double when somebody reads it first, and kept.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/study/replay_parts.h"

enum { UNKNOWN, TAKEN, KNOWN };

typedef struct Online {
    AttendInput    in;
    const Pattern *cells;
    int64_t        heads, n, m, width, tiles;
    double        *max, *sum; /* [h,n,tiles] */
    atomic_char   *state;     /* [h,n] of their rows */
} Online;

typedef struct TileView {
    const Online *online;
    int64_t       tile;
} TileView;

/* ---- one row ---------------------------------------------------------------- */

/* Scores of the allowed keys, -inf elsewhere; the caller frees them.  NULL: no memory. */
static double *row_scores(const Online *o, int64_t head, int64_t i)
{
    double    *s = malloc((size_t)o->m * sizeof(*s));
    PatternRow row = { 0 };

    for (int64_t j = 0; s && j < o->m; j++)
        s[j] = -HUGE_VAL;
    if (s)
        pattern_row(o->cells, head, i, &row);
    for (int64_t x = 0; s && x < row.count; x++)
        for (int64_t c = 0; c < row.runs[x].count; c++) {
            int64_t j = row.runs[x].start + c * row.runs[x].step;

            s[j] = attend_score(&o->in, o->heads, head, i, j);
        }
    pattern_row_free(&row);
    return s;
}

static int64_t tile_end(const Online *o, int64_t tile)
{
    return (tile + 1) * o->width < o->m ? (tile + 1) * o->width : o->m;
}

/* The state after each tile; values [tiles,e] NULL: not wanted. */
static void go_through(const Online *o, int64_t head, int64_t i, double *max, double *sum,
                       double *values)
{
    const float *v = tensor_head(&o->in.v, head, o->heads);
    int64_t      e = o->in.v.shape[2];
    double      *s = row_scores(o, head, i), m = -HUGE_VAL, l = 0;

    for (int64_t t = 0; t < o->tiles; t++) {
        int64_t from = t * o->width, to = tile_end(o, t);
        double  top = m, factor;

        for (int64_t j = from; s && j < to; j++)
            top = fmax(top, s[j]);
        factor = m > -HUGE_VAL ? exp(m - top) : 0;
        l *= factor;
        for (int64_t x = 0; values && x < e; x++)
            values[t * e + x] = t ? factor * values[(t - 1) * e + x] : 0;
        for (int64_t j = from; s && top > -HUGE_VAL && j < to; j++) {
            double w = exp(s[j] - top);

            l += w;
            for (int64_t x = 0; values && w > 0 && x < e; x++)
                values[t * e + x] += w * (double)v[j * o->in.v.stride[1] + x];
        }
        max[t] = m = top;
        sum[t] = l;
    }
    free(s);
}

/* From what is kept; the first reader of a row keeps it for the others. */
static void row_states(const Online *o, int64_t head, int64_t i, double *max, double *sum)
{
    int64_t      row = head * o->n + i;
    atomic_char *state = &o->state[row];
    char         unknown = UNKNOWN;
    size_t       bytes = (size_t)o->tiles * sizeof(double);

    if (atomic_load(state) != KNOWN) {
        go_through(o, head, i, max, sum, NULL);
        if (!atomic_compare_exchange_strong(state, &unknown, TAKEN))
            return;
        memcpy(o->max + row * o->tiles, max, bytes);
        memcpy(o->sum + row * o->tiles, sum, bytes);
        atomic_store(state, KNOWN);
        return;
    }
    memcpy(max, o->max + row * o->tiles, bytes);
    memcpy(sum, o->sum + row * o->tiles, bytes);
}

/* ---- views ------------------------------------------------------------------ */

/* Weights as they stand after a tile: later ones make them smaller. */
static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const TileView *at = view->context;
    double          max[REPLAY_TILES], sum[REPLAY_TILES];

    row_states(at->online, head, i, max, sum);
    attend_scores_run(&at->online->in, at->online->heads, head, i, start, count, step, out);
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)(exp((double)out[c] - max[at->tile]) / sum[at->tile]);
}

enum { MAX, SUM, RESCALED };

static void read_state(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    const TileView *at = view->context; /* its tile is what of the state is read */
    double          max[REPLAY_TILES], sum[REPLAY_TILES];

    row_states(at->online, head, i, max, sum);
    for (int64_t c = 0; c < count; c++) {
        int64_t t = start + c * step;
        double  before = t ? max[t - 1] : -HUGE_VAL;

        out[c] = (float)(at->tile == MAX ? (sum[t] > 0 ? max[t] : (double)NAN)
                         : at->tile == SUM ? sum[t]
                                           : (before > -HUGE_VAL ? exp(before - max[t]) : 1));
    }
}

/* |output so far - output| / |output| */
static void read_gap(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                     int64_t step, float *out)
{
    const Online *o = ((const TileView *)view->context)->online;
    int64_t       e = o->in.v.shape[2];
    double        max[REPLAY_TILES], sum[REPLAY_TILES];
    double       *values = malloc((size_t)(o->tiles * e) * sizeof(*values));
    const double *end = values ? values + (o->tiles - 1) * e : NULL;

    if (values)
        go_through(o, head, i, max, sum, values);
    for (int64_t c = 0; c < count; c++) {
        int64_t t = start + c * step;
        double  off = 0, size = 0;

        for (int64_t x = 0; values && x < e; x++) {
            double last = sum[o->tiles - 1] > 0 ? end[x] / sum[o->tiles - 1] : 0;
            double now = sum[t] > 0 ? values[t * e + x] / sum[t] : 0;

            off += (now - last) * (now - last);
            size += last * last;
        }
        out[c] = values && size > 0 ? (float)sqrt(off / size) : values ? 0 : (float)NAN;
    }
    free(values);
}

static void show_states(Run *r, const Online *o, const char *name, ViewKind kind, int what,
                        ViewReadRun read)
{
    TileView *at = run_alloc(r, 1, sizeof(*at));
    View     *view;

    if (!at)
        return;
    *at = (TileView){ o, what };
    view = view_reader(r, name, kind, DT_F32, read, at, NULL);
    if (!view)
        return;
    view->shape[2] = o->tiles;
    view->cols = "tile";
    view->watched = "tile";
    view->iteration = -1; /* it is of all of them */
    view->cost = (double)(o->m * (o->in.q.shape[2] + o->in.v.shape[2])) / (double)o->tiles;
}

/* Cells whose key is in a tile up to this one. */
static const Pattern *cells_until(Run *r, const Online *o, int64_t end)
{
    PatternShape s = { .heads = o->heads, .n = o->n, .m = o->m };
    uint8_t     *later = run_alloc(r, o->m, 1);
    Pattern     *p;

    if (end == o->m || !later)
        return o->cells;
    memset(later, 0, (size_t)end);
    memset(later + end, 1, (size_t)(o->m - end));
    p = pattern_difference(r->arena, pattern_operand(o->cells), pattern_cols(r->arena, s, later));
    if (!p)
        run_fail(r, ERR_NOMEM, "not enough memory for the cells of a tile");
    return p;
}

/* ---- steps ------------------------------------------------------------------ */

static void show_tile(Run *r, const Online *o, int64_t tile)
{
    TileView      *at = run_alloc(r, 1, sizeof(*at));
    int64_t        from = tile * o->width, end = tile_end(o, tile);
    const Pattern *cells;
    View          *view;

    run_iteration(r, "tile", tile);
    run_mark(r, "keys read", (double)end);
    run_say(r, "Keys %lld to %lld: %lld x %lld scores in memory, never %lld x %lld.",
            (long long)from, (long long)end - 1, (long long)o->n, (long long)(end - from),
            (long long)o->n, (long long)o->m);
    cells = cells_until(r, o, end);
    if (!at || run_failed(r))
        return;
    *at = (TileView){ o, tile };
    view = view_reader(r, "weights_so_far", VIEW_WEIGHTS, DT_F32, read_weights, at, cells);
    if (view)
        view->cost = 2 * (double)o->in.q.shape[2];
}

/* Up to REPLAY_TILES tiles of a power of two. */
static Online *online_new(Run *r, const ReplaySource *s)
{
    Online *o = run_alloc(r, 1, sizeof(*o));
    int64_t rows = r->h * r->n;

    if (!o)
        return NULL;
    *o = (Online){ .in = s->attend, .cells = s->cells, .heads = r->h, .n = r->n, .m = r->m,
                   .width = 1 };
    while (o->width * REPLAY_TILES < o->m)
        o->width *= 2;
    o->tiles = (o->m + o->width - 1) / o->width;
    o->max = run_alloc(r, rows * o->tiles, sizeof(*o->max));
    o->sum = run_alloc(r, rows * o->tiles, sizeof(*o->sum));
    o->state = run_alloc(r, rows, sizeof(*o->state));
    for (int64_t x = 0; !run_failed(r) && x < rows; x++)
        atomic_init(&o->state[x], UNKNOWN);
    return run_failed(r) ? NULL : o;
}

void replay_tiles(Run *r, const ReplaySource *s)
{
    Online *o = s->cells && r->m > 1 ? online_new(r, s) : NULL;

    for (int64_t t = 0; o && t < o->tiles && !run_failed(r); t++)
        show_tile(r, o, t);
    if (!o || run_failed(r))
        return;
    show_states(r, o, "running_max", VIEW_SIGNED, MAX, read_state);
    show_states(r, o, "running_sum", VIEW_TENSOR, SUM, read_state);
    show_states(r, o, "rescaled", VIEW_TENSOR, RESCALED, read_state);
    if (!tensor_given(&s->attend.value.table))
        show_states(r, o, "output_off", VIEW_TENSOR, 0, read_gap);
}
