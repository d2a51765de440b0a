/* replay.c -- see replay.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/study/replay.h"
#include "attn/ops/weights.h"

/* ---- what a run offers ------------------------------------------------------ */

void replay_offer_attend(Run *r, const AttendInput *in, const Pattern *cells)
{
    if (!run_wants_views(r) || !cells || pattern_queries(cells) != r->n ||
        pattern_keys(cells) != r->m || in->q.shape[1] != r->n || in->k.shape[1] != r->m)
        return;
    r->replay.attend = *in;
    r->replay.cells = cells;
}

void replay_offer_part(Run *r, const Pattern *part, const char *name)
{
    if (!run_wants_views(r) || !r->replay.cells)
        return;
    r->replay.part = part;
    r->replay.part_name = name;
}

void replay_offer_state(Run *r, const LinearAttend *in)
{
    if (!run_wants_views(r) || in->gates.data)
        return;
    r->replay.fq = in->fq;
    r->replay.fk = in->fk;
    r->replay.v = in->v;
    r->replay.denominator = in->denominator;
    r->replay.eps = in->eps;
}

void replay_offer_features(Run *r, int64_t directions, int waves, bool negative, double scale)
{
    r->replay.directions = directions;
    r->replay.waves = waves;
    r->replay.negative = negative;
    r->replay.scale = scale;
}

/* Whether the run can be replayed. */
static bool replay_is_offered(const Run *run)
{
    const ReplaySource *s = &run->replay;

    return run->err.code == ERR_NONE && run->n <= REPLAY_QUERIES && run->m <= REPLAY_QUERIES &&
           (s->cells || (s->fk.data && (run->causal || s->directions)));
}

bool replay_wants_causal(const Run *run)
{
    const ReplaySource *s = &run->replay;

    return (s->cells || s->fk.data) && run->mechanism->causal && !run->causal &&
           run->n == run->m && run->n <= REPLAY_QUERIES;
}

/* ---- the run ---------------------------------------------------------------- */

int64_t replay_steps(int64_t n)
{
    return n < REPLAY_TOKENS ? n : REPLAY_TOKENS;
}

int64_t replay_last(int64_t n, int64_t step)
{
    return (step + 1) * n / replay_steps(n) - 1;
}

static const StageNote notes[] = {
    { "tile",
      "The keys come a tile at a time.  Of its scores a row keeps the largest so far, the sum of "
      "exp(score - largest) and the output; a larger one first scales both down." },
    { "token",
      "Decoding, query by query: a key and its value are held until the last query that reads "
      "them." },
    { "state",
      "Decoding: a token adds features times value to the state and is forgotten; the state does "
      "not grow." },
    { "growing",
      "The same random directions, only the first few: few give a coarse and noisy picture of "
      "the softmax, more a better one." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    { .name = "running_max", .kind = VIEW_SIGNED, .quantity = "score",
      .help = "largest score of a row after each tile" },
    { .name = "running_sum", .kind = VIEW_TENSOR, .help = "sum of exp(score - largest) so far" },
    { .name = "rescaled", .kind = VIEW_TENSOR, .help = "what the sum so far was multiplied by" },
    { .name = "output_off", .kind = VIEW_TENSOR, .help = "distance to the output at the end" },
    { .name = "held_bytes", .kind = VIEW_COUNT, .help = "keys and values held at each token",
      .curve = { .x = "token", .y = "memory (bytes)", .series = "held|all so far" } },
    VIEW_PROMISE_END
};

/* Not in the catalogue: it has no public name. */
static const Mechanism replay = { .id = "replay", .title = "Replay", .notes = notes,
                                  .views = views };

static void replay_tiles(Run *r, const ReplaySource *s);
static void replay_features(Run *r, const ReplaySource *s);

Run *replay_new(const Run *run)
{
    Run *r = replay_is_offered(run) ? calloc(1, sizeof(*r)) : NULL;

    if (!r)
        return NULL;
    *r = (Run){ .mechanism = &replay, .q = run->q, .k = run->k, .v = run->v, .h = run->h,
                .n = run->n, .m = run->m, .d = run->d, .e = run->e, .causal = run->causal,
                .keys_ahead = run->keys_ahead, .q_offset = run->q_offset, .seed = run->seed,
                .ops = run->ops, .view_step = -1, .owns_arena = true };
    r->spec.views = true;
    r->arena = arena_new_from(run->ops->memory);
    if (!r->arena) {
        free(r);
        return NULL;
    }
    replay_tiles(r, &run->replay);
    replay_tokens(r, &run->replay);
    replay_features(r, &run->replay);
    replay_state(r, &run->replay);
    view_join_curves(r);
    if (run_failed(r) || !r->stage_count) {
        run_free(r);
        return NULL;
    }
    return r;
}

/* The online softmax of the fused kernels, tile by tile.
 *
 *     M = max(m, max s),   l <- l exp(m - M) + sum exp(s - M),   o likewise,   m <- M
 *
 * over the scores s of one tile of keys; output_i = o / l after the last one.  The states of
 * a row are computed in double when they are first read, and kept.
 */

enum { UNKNOWN, TAKEN, KNOWN };

typedef struct Online {
    AttendInput    in;
    const Pattern *cells;
    int64_t        heads, n, m, width, tiles;
    const char    *part;      /* what the cells are of; NULL: all attention */
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

/* From the kept states; the first reader of a row computes and keeps them. */
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

/* Weights after a tile: later tiles make them smaller. */
static void replay_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                int64_t count, int64_t step, float *out)
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
    view->iteration = -1; /* of all tiles */
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
    run_say(r, "%s%sKeys %lld to %lld: %lld x %lld scores in memory, never %lld x %lld.",
            o->part ? o->part : "", o->part ? ".  " : "", (long long)from, (long long)end - 1,
            (long long)o->n, (long long)(end - from), (long long)o->n, (long long)o->m);
    cells = cells_until(r, o, end);
    if (!at || run_failed(r))
        return;
    *at = (TileView){ o, tile };
    view = view_reader(r, "weights_so_far", VIEW_WEIGHTS, DT_F32, replay_read_weights, at, cells);
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
    *o = (Online){ .in = s->attend, .cells = s->part ? s->part : s->cells, .part = s->part_name,
                   .heads = r->h, .n = r->n, .m = r->m, .width = 1 };
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

static void replay_tiles(Run *r, const ReplaySource *s)
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

/* The softmax that the first 1, 2, 4, ... random directions make.
 *
 *     W[i,j] = phi(q_i) . phi(k_j) / sum over j',  phi: the features of those directions only
 *
 * Directions are drawn independently (or in orthogonal blocks) one after the other, so a run
 * with fewer would use the first of them; common factors cancel in the ratio.
 * Errors are means over some rows, spread evenly, against exact attention in double.
 */

#define LEVELS 16
#define WORK   (1 << 26) /* multiply-adds for the errors at most */
#define COPIED (1 << 24) /* numbers of features at most */

typedef struct Growth {
    const ReplaySource *source;
    int64_t             level[LEVELS]; /* directions */
    int                 levels;
    int64_t             rows;          /* that errors are taken of */
    double             *exact;         /* [rows,m] weights */
    double             *output;        /* [rows,e] */
} Growth;

/* The row (head, query) of sample x. */
static int64_t sampled(const Run *r, const Growth *g, int64_t x)
{
    return (int64_t)((double)x * (double)(r->h * r->n) / (double)g->rows);
}

static int64_t keys_of(const Run *r, int64_t i)
{
    return r->causal ? i + 1 : r->m;
}

/* ---- the exact rows --------------------------------------------------------- */

static void replay_mix(const Run *r, const Growth *g, int64_t head, int64_t keys, const double *w,
                       double *out)
{
    const Tensor *v = &g->source->v;

    memset(out, 0, (size_t)r->e * sizeof(*out));
    for (int64_t j = 0; j < keys; j++) {
        const float *row = tensor_row_f32(v, head, r->h, j);

        for (int64_t x = 0; x < r->e; x++)
            out[x] += w[j] * (double)row[x];
    }
}

static void make_exact(const Run *r, const Growth *g, int64_t x)
{
    AttendInput in = { .q = r->q, .k = r->k, .v = r->v, .scale = g->source->scale };
    int64_t     head = sampled(r, g, x) / r->n, i = sampled(r, g, x) % r->n;
    int64_t     keys = keys_of(r, i);
    double     *w = g->exact + x * r->m, top = -HUGE_VAL, sum = 0;

    for (int64_t j = 0; j < keys; j++)
        top = fmax(top, w[j] = attend_score(&in, r->h, head, i, j));
    for (int64_t j = 0; j < keys; j++)
        sum += w[j] = exp(w[j] - top);
    for (int64_t j = 0; j < keys; j++)
        w[j] /= sum;
    replay_mix(r, g, head, keys, w, g->output + x * r->e);
}

/* ---- fewer features --------------------------------------------------------- */

/* [h',n,waves count] of the first directions. */
static Tensor first_features(Run *r, const ReplaySource *s, const Tensor *from, int64_t count)
{
    Tensor  y = run_tensor3(r, from->dtype, from->shape[0], from->shape[1], count * s->waves);
    int64_t rows = from->shape[0] * from->shape[1], f = from->shape[2];
    size_t  size = (size_t)dtype_size(from->dtype);

    for (int64_t x = 0; y.data && x < rows; x++)
        for (int64_t wave = 0; wave < s->waves; wave++)
            memcpy((char *)y.data + (size_t)((x * s->waves + wave) * count) * size,
                   (const char *)from->data + (size_t)(x * f + wave * s->directions) * size,
                   (size_t)count * size);
    return y;
}

/* The divisor of a row's products z.  Features of fewer directions are larger by sqrt(grown), so
 * that eps acts as in a run with that many directions. */
static double replay_guarded(const ReplaySource *s, double z, double features, double grown)
{
    double whole = z * grown;

    switch (s->denominator) {
    case DENOMINATOR_GUARD: whole += fabs(whole) <= s->eps ? 2 * s->eps : 0; break;
    case DENOMINATOR_ADD: whole += s->eps; break;
    case DENOMINATOR_ADD_FEATURES: whole += s->eps * features * sqrt(grown); break;
    case DENOMINATOR_FLOOR: whole = fmax(whole, s->eps); break;
    default: break;
    }
    return whole / grown;
}

/* f64 [h,n]: the divisor of each row. */
static Tensor row_sums(Run *r, const ReplaySource *s, const Tensor *fq, const Tensor *fk)
{
    Tensor  y = run_tensor2(r, DT_F64, r->h, r->n);
    int64_t f = fq->shape[2], keys = fk->shape[1];
    double *sum = run_alloc(r, f, sizeof(*sum));

    for (int64_t head = 0; y.data && sum && head < r->h; head++) {
        int64_t q = head * fq->shape[0] / r->h, k = head * fk->shape[0] / r->h, done = 0;

        memset(sum, 0, (size_t)f * sizeof(*sum));
        for (int64_t i = 0; i < r->n; i++) {
            double z = 0, features = 0;

            for (; done < keys_of(r, i); done++)
                for (int64_t c = 0; c < f; c++)
                    sum[c] += float_at(fk->dtype, fk->data, (k * keys + done) * f + c);
            for (int64_t c = 0; c < f; c++) {
                z += float_at(fq->dtype, fq->data, (q * r->n + i) * f + c) * sum[c];
                features += float_at(fq->dtype, fq->data, (q * r->n + i) * f + c);
            }
            tensor_f64(&y)[head * r->n + i] =
                replay_guarded(s, z, features, (double)(s->directions * s->waves) / (double)f);
        }
    }
    return y;
}

/* Mean distance of the sampled rows from exact attention. */
static void replay_measure(Run *r, const Growth *g, const Implicit *w, double *variation,
                           double *off)
{
    double *row = run_alloc(r, r->m, sizeof(*row)), *out = run_alloc(r, r->e, sizeof(*out));
    double  wrong = 0, size = 0;

    *variation = *off = 0;
    for (int64_t x = 0; row && out && x < g->rows; x++) {
        int64_t head = sampled(r, g, x) / r->n, i = sampled(r, g, x) % r->n;
        int64_t keys = keys_of(r, i);

        for (int64_t j = 0; j < keys; j++) {
            row[j] = implicit_cell(w, head, i, j);
            *variation += fabs(row[j] - g->exact[x * r->m + j]) / 2 / (double)g->rows;
        }
        replay_mix(r, g, head, keys, row, out);
        for (int64_t c = 0; c < r->e; c++) {
            double exact = g->output[x * r->e + c];

            wrong += (out[c] - exact) * (out[c] - exact);
            size += exact * exact;
        }
    }
    *off = size > 0 ? sqrt(wrong / size) : 0;
}

/* ---- steps ------------------------------------------------------------------ */

static void show_level(Run *r, const Growth *g, int at, const Pattern *cells)
{
    const ReplaySource *s = g->source;
    Implicit            w = { .heads = r->h };
    double              variation, off;

    run_iteration(r, "growing", at);
    run_mark(r, "random directions", (double)g->level[at]);
    w.left = first_features(r, s, &s->fq, g->level[at]);
    w.right = first_features(r, s, &s->fk, g->level[at]);
    w.divisor = row_sums(r, s, &w.left, &w.right);
    if (run_failed(r))
        return;
    implicit_product(r, "approximation", w, s->negative ? VIEW_SIGNED : VIEW_WEIGHTS, cells);
    replay_measure(r, g, &w, &variation, &off);
    run_trace(r, "weights off", variation);
    run_trace(r, "output off", off);
    run_say(r, "With %lld of %lld directions %.1f %% of a row's weight lies elsewhere than in "
            "exact attention; outputs are off by %.1f %% (%lld of %lld rows).",
            (long long)g->level[at], (long long)s->directions, 100 * variation, 100 * off,
            (long long)g->rows, (long long)(r->h * r->n));
}

/* Powers of two, and all of them at last. */
static void choose_levels(Growth *g, int64_t directions)
{
    for (int64_t m = 1; m < directions && g->levels < LEVELS - 1; m *= 2)
        g->level[g->levels++] = m;
    g->level[g->levels++] = directions;
}

static void replay_features(Run *r, const ReplaySource *s)
{
    int64_t  f = s->directions * s->waves;
    double   row = (double)r->m * (double)(r->d + 2 * f + LEVELS * r->e);
    Growth   g = { .source = s };
    Pattern *cells;

    if (!s->directions || !s->fk.data || s->fk.shape[2] != f ||
        r->h * (r->n + r->m) * f > COPIED || row > WORK)
        return;
    choose_levels(&g, s->directions);
    g.rows = (int64_t)(WORK / row);
    g.rows = g.rows < r->h * r->n ? g.rows : r->h * r->n;
    g.exact = run_alloc(r, g.rows * r->m, sizeof(*g.exact));
    g.output = run_alloc(r, g.rows * r->e, sizeof(*g.output));
    cells = run_allowed_cells(r);
    for (int64_t x = 0; !run_failed(r) && x < g.rows; x++)
        make_exact(r, &g, x);
    for (int k = 0; k < g.levels && !run_failed(r); k++)
        show_level(r, &g, k, cells);
}
