/* nsa.c -- native sparse attention: compressed, selected and sliding keys, each with a softmax and
 * a gate of its own.
 *
 *     K^c[c], V^c[c] = what `compress` makes of the tokens c s .. c s + l - 1; only whole blocks
 *     P^c_i          = softmax over the blocks that ended of q_i . K^c / sqrt(d)
 *     I_i[b]         = sum over heads of the group and c of overlap(c, b) P^c_i[c]
 *     S_i            = the first blocks, the last ones, and those with the largest I_i
 *     output_i       = g0 P^c_i V^c + g1 attention to S_i + g2 attention to the window
 *
 * overlap(c, b) counts the cells of s tokens that lie in both.  The heads of a group share S_i.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mech/chosen/nsa.h"
#include "attn/ops/dense.h"
#include "attn/pattern/node.h"
#include "attn/run.h"
#include "core/rng.h"

enum { COMPRESS_MEAN, COMPRESS_LINEAR };

typedef struct Params {
    int64_t cmp_block, cmp_stride, sel_block, topk, first, last, window;
    int     compress;
    Tensor  cmp_k, cmp_v, cmp_pos_k, cmp_pos_v, gates;
    double  scale, softcap;
} Params;

static const char *const ways[] = { "mean", "linear", NULL };

static const Param params[] = {
    PARAM_INT(Params, cmp_block, 8, 1, INT32_MAX, "tokens of a compressed block"),
    PARAM_INT(Params, cmp_stride, 4, 1, INT32_MAX,
              "tokens from one compressed block to the next; divides cmp_block and sel_block"),
    PARAM_INT(Params, sel_block, 8, 1, INT32_MAX, "tokens of a block that is selected"),
    PARAM_INT(Params, topk, 4, 0, PARAM_COUNT_MAX, "selected blocks, the fixed ones included"),
    PARAM_INT(Params, first, 1, 0, PARAM_COUNT_MAX, "fixed blocks at the beginning"),
    PARAM_INT(Params, last, 2, 0, PARAM_COUNT_MAX,
              "fixed blocks that end with the query's own"),
    PARAM_INT(Params, window, 8, 1, PARAM_COUNT_MAX, "sliding tokens, the query's own included"),
    PARAM_ENUM(Params, compress, COMPRESS_MEAN, ways, "how a block is made into one key and value"),
    PARAM_TENSOR(Params, cmp_k, "[g,cmp_block d,d]", "N(0, 1/(cmp_block d))",
                 "linear: a block's keys end to end times this"),
    PARAM_TENSOR(Params, cmp_v, "[g,cmp_block e,e]", "N(0, 1/(cmp_block e))",
                 "linear: a block's values end to end times this"),
    PARAM_TENSOR(Params, cmp_pos_k, "[cmp_block,d]", "0", "linear: added to a block's keys first"),
    PARAM_TENSOR(Params, cmp_pos_v, "[cmp_block,e]", "0",
                 "linear: added to a block's values first"),
    PARAM_TENSOR(Params, gates, "[h,n,3], [h,3] or [3]", "sigmoid of N(0, 1), [h,n,3]",
                 "factors of the compressed, the selected and the sliding part"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static void check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          block = p->cmp_block % p->cmp_stride != 0;

    if (block || p->sel_block % p->cmp_stride)
        run_fail(r, ERR_PARAM, "nsa: cmp_stride=%lld does not divide %s=%lld; give a divisor of "
                 "cmp_block and sel_block", (long long)p->cmp_stride,
                 block ? "cmp_block" : "sel_block",
                 (long long)(block ? p->cmp_block : p->sel_block));
}

static Nsa nsa_of(const Run *r, const Params *p)
{
    int64_t l = p->cmp_block, s = p->cmp_stride;

    return (Nsa){ .h = r->h, .g = r->k.shape[0], .n = r->n, .m = r->m,
                  .at = r->q_offset, .page = p->sel_block,
                  .nb = r->m / p->sel_block + (r->m % p->sel_block != 0), .topk = p->topk,
                  .first = p->first, .last = p->last, .causal = r->causal,
                  .slots = { .n = r->m, .ranges = r->m < l ? 0 : (r->m - l) / s + 1, .per = 1,
                             .stride = s, .size = l } };
}

/* ---- compression ------------------------------------------------------------------ */

/* Keys or values. */
typedef struct Side {
    const char *name, *pos_name;
    Tensor      x, weight, pos; /* weight, pos: as given */
} Side;

static Tensor means_of(Run *r, const Slots *s, Tensor x)
{
    Tensor   y = run_tensor3(r, DT_F64, x.shape[0], s->ranges, x.shape[2]);
    int32_t *first = run_alloc(r, 2 * s->ranges, sizeof(*first));

    for (int64_t c = 0; c < s->ranges && !run_failed(r); c++) {
        first[c] = (int32_t)(c * s->stride);
        first[s->ranges + c] = (int32_t)(c * s->stride + s->size);
    }
    op_pool_windows(r, &(PoolWindows){ .x = x, .first = first, .kind = WINDOW_MEAN,
                                       .end = run_failed(r) ? NULL : first + s->ranges }, y);
    return y;
}

/* f64 [ranges,l,w]: the rows of each block of one head, with their in-block position. */
static Tensor rows_of_blocks(Run *r, const Slots *s, Tensor x, int64_t head, Tensor pos)
{
    int64_t w = x.shape[2], shape[3] = { s->ranges, s->size, w };
    Tensor  rows = run_tensor(r, DT_F64, 3, shape), from;

    if (run_failed(r))
        return rows;
    from = tensor_of(DT_F32, 3, shape, tensor_f32(&x) + head * x.stride[0]);
    from.stride[0] = s->stride * x.stride[1];
    from.stride[1] = x.stride[1];
    if (pos.data)
        op_entries_of(r, from, pos, ENTRY_SUM, 1, rows);
    else
        op_entries(r, from, ENTRY_CAST, 0, rows);
    return rows;
}

/* Sums are in double and in index order: they decide what is selected. */
static Tensor products_of(Run *r, const Slots *s, const Side *side)
{
    int64_t g = side->x.shape[0], w = side->x.shape[2], wide = s->size * w;
    Tensor  y = run_tensor3(r, DT_F64, g, s->ranges, w);
    Tensor  weight = run_param(r, side->name, side->weight, DT_F32, 3, (int64_t[]){ g, wide, w },
                               (Init){ INIT_NORMAL, 1 / sqrt((double)wide) });
    Tensor  pos = run_param_given(r, side->pos_name, side->pos, DT_F32, 3,
                                  (int64_t[]){ 1, s->size, w });

    for (int64_t t = 0; t < g && !run_failed(r); t++) {
        ArenaMark mark = arena_mark(r->arena);
        Tensor    rows = rows_of_blocks(r, s, side->x, t, pos);
        Tensor    by = run_tensor3(r, DT_F64, 1, wide, w);

        if (!run_failed(r)) {
            float *head = (float *)weight.data + (weight.shape[0] == 1 ? 0 : t * wide * w);

            op_entries(r, tensor_of(DT_F32, 3, (int64_t[]){ 1, wide, w }, head), ENTRY_CAST, 0,
                       by);
            rows = tensor_of(DT_F64, 3, (int64_t[]){ 1, s->ranges, wide }, rows.data);
            op_product64(r, rows, by, NULL,
                         tensor_of(DT_F64, 3, (int64_t[]){ 1, s->ranges, w },
                                   (double *)y.data + t * s->ranges * w));
            op_wait(r, NULL);
        }
        arena_release(r->arena, mark);
    }
    return y;
}

static Tensor compressed(Run *r, const Params *p, const Slots *s, const Side *side)
{
    return p->compress == COMPRESS_MEAN ? means_of(r, s, side->x) : products_of(r, s, side);
}

/* FLOPs of one more compressed block. */
static double block_flops(const Run *r, const Params *p)
{
    double d = (double)r->d, e = (double)r->e, l = (double)p->cmp_block;
    double k = d * (double)r->k.shape[0], v = e * (double)r->v.shape[0];

    return p->compress == COMPRESS_MEAN ? l * (k + v) : 2 * l * (k * d + v * e);
}

/* The input of the compressed part. */
static AttendInput compress(Run *r, const Params *p, Nsa *a)
{
    Side        k = { "cmp_k", "cmp_pos_k", a->in.k, p->cmp_k, p->cmp_pos_k };
    Side        v = { "cmp_v", "cmp_pos_v", a->in.v, p->cmp_v, p->cmp_pos_v };
    AttendInput in = a->in;
    Tensor      keys;

    if (!a->slots.ranges)
        return in;
    keys = compressed(r, p, &a->slots, &k);
    in.k = dense_rounded(r, keys);
    in.v = dense_rounded(r, compressed(r, p, &a->slots, &v));
    op_charge(r, FLOP_OVERHEAD, (double)a->slots.ranges * block_flops(r, p));
    op_wait(r, "the host selects blocks by the compressed keys");
    a->keys = soft_rows_of(r, &keys, a->in.scale, a->in.softcap);
    return in;
}

/* ---- cells --------------------------------------------------------------------------- */

static PatternShape shape_of(const Nsa *a, int64_t keys)
{
    return (PatternShape){ .heads = a->h, .n = a->n, .m = keys };
}

/* Tokens of the blocks that a group selects. */
static Pattern *tokens_of(Run *r, const Nsa *a, int64_t group)
{
    int64_t    *offset = run_alloc(r, a->n + 1, sizeof(*offset)), used = 0;
    int64_t     first = a->start[group * a->n], end = a->start[(group + 1) * a->n];
    PatternRun *runs = run_alloc(r, max_i64(1, end - first), sizeof(*runs));

    for (int64_t i = 0; i < a->n && !run_failed(r); i++) {
        int64_t keys = a->causal ? a->at + i + 1 : a->m, at = group * a->n + i;

        offset[i] = used;
        for (int64_t x = a->start[at]; x < a->start[at + 1]; x++) {
            int64_t from = a->block[x].start * a->page, count = min_i64(a->page, keys - from);
            bool    joins = used > offset[i] && runs[used - 1].start + runs[used - 1].count == from;

            if (joins)
                runs[used - 1].count += count;
            else
                runs[used++] = (PatternRun){ from, count, 1, COMPONENT_BLOCK };
        }
        offset[i + 1] = used;
    }
    return run_failed(r) ? NULL : pattern_stored(r->arena, shape_of(a, a->m), offset, runs, false);
}

static Pattern *selected_cells(Run *r, const Nsa *a)
{
    Pattern **of = run_alloc(r, a->h, sizeof(Pattern *));
    int64_t   each = a->h / a->g;

    for (int64_t head = 0; head < a->h && !run_failed(r); head++)
        of[head] = head % each ? of[head - 1] : tokens_of(r, a, head / each);
    return run_failed(r) ? NULL : pattern_by_head(r->arena, shape_of(a, a->m), of, a->h);
}

static Pattern *sliding_cells(Run *r, const Nsa *a, const Params *p)
{
    int64_t reach = min_i64(p->window, a->m) - 1;

    return pattern_band(r->arena, shape_of(a, a->m), a->at - reach, a->at + (a->causal ? 0 : reach),
                        1, COMPONENT_WINDOW);
}

/* Compressed blocks that ended, of each query. */
static Pattern *ended_blocks(Run *r, const Nsa *a)
{
    PatternShape all = { .heads = a->h, .n = a->m, .m = a->slots.ranges };

    return pattern_last_rows(r->arena, shape_of(a, a->slots.ranges),
                             slots_near(r->arena, all, &a->slots, a->m, a->causal));
}

static Pattern *finished(Run *r, const Nsa *a, Pattern *cells)
{
    Pattern *p = cells ? pattern_finish(r->arena, shape_of(a, pattern_keys(cells)), cells, false)
                       : NULL;

    if (!p)
        run_fail(r, ERR_NOMEM, "nsa: not enough memory for the cells");
    return p;
}

/* ---- gates ---------------------------------------------------------------------------- */

static Tensor gates_of(Run *r, const Params *p)
{
    Tensor all = run_tensor3(r, DT_F32, r->h, r->n, 3), t;
    Rng    rng = run_rng(r, "gates");
    int    rank = p->gates.rank == 3 ? 3 : 2;

    if (!p->gates.data) { /* each position has its own, whether it has a query or not */
        t = r->m > r->n ? run_tensor3(r, DT_F32, r->h, r->m, 3) : all;
        run_draw(r, &rng, (Init){ INIT_NORMAL, 1 }, t);
        op_entries(r, tensor_rows(t, r->m - r->n, r->n), ENTRY_SIGMOID, 0, all);
        view_drawn(r, "gates", all);
        return all;
    }
    t = run_param_given(r, "gates", p->gates, DT_F32, rank,
                        rank == 3 ? (int64_t[]){ r->h, r->n, 3 } : (int64_t[]){ r->h, 3 });
    if (run_failed(r))
        return all;
    if (rank == 2)
        t = tensor_of(DT_F32, 3, (int64_t[]){ t.shape[0], 1, 3 }, t.data);
    op_entries(r, t, ENTRY_CAST, 0, all);
    view_tensor(r, "gates", VIEW_TENSOR, all, "query", "branch");
    return all;
}

/* ---- views ------------------------------------------------------------------------------ */

#define SCORES 256 /* weights computed at once */

/* Of keys of one part. */
static void weights_of(const Nsa *a, int part, int64_t head, int64_t i, PatternRun keys,
                       float *out)
{
    const KeyPart  *of = &a->part[part];
    const WeightRow row = { &of->in, &of->lse, &of->sums, a->h, head, i, i, 0 };

    attend_weights_run(&row, keys.start, keys.count, keys.step, out);
}

static void add_tokens(const Nsa *a, int part, int64_t head, int64_t i, PatternRun asked,
                       float *out)
{
    double     gate = (double)tensor_f32(&a->gates)[(head * a->n + i) * 3 + part];
    PatternRow row = { 0 };
    float      weight[SCORES];

    pattern_row(a->part[part].seen, head, i, &row);
    for (int64_t x = 0; x < row.count && !row.failed; x++) {
        PatternRun keys = runs_common(row.runs[x], asked);

        for (int64_t done = 0; done < keys.count; done += SCORES) {
            int64_t count = min_i64(SCORES, keys.count - done);
            int64_t from = keys.start + done * keys.step;

            weights_of(a, part, head, i, (PatternRun){ from, count, keys.step, 0 }, weight);
            for (int64_t c = 0; c < count; c++)
                out[(from + c * keys.step - asked.start) / asked.step] +=
                    (float)(gate * (double)weight[c]);
        }
    }
    pattern_row_free(&row);
}

/* `share` of a block's weight for each of its tokens that is asked for. */
static void add_block(const Slots *s, int64_t c, double share, PatternRun asked, float *out)
{
    int64_t first = max_i64(0, c * s->stride - asked.start);
    int64_t end = min_i64(asked.count * asked.step, c * s->stride + s->size - asked.start);

    for (int64_t x = (first + asked.step - 1) / asked.step; x * asked.step < end; x++)
        out[x] += (float)share;
}

/* Each compressed block gives its tokens equal shares of its weight. */
static void add_compressed(const Nsa *a, int64_t head, int64_t i, PatternRun asked, float *out)
{
    int64_t stride = a->slots.stride, size = a->slots.size;
    int64_t last = asked.start + (asked.count - 1) * asked.step;
    int64_t end = min_i64(nsa_seen(a, i), last / stride + 1);
    double  gate = (double)tensor_f32(&a->gates)[(head * a->n + i) * 3] / (double)size;
    float   weight[SCORES];

    for (int64_t c = max_i64(0, (asked.start - size) / stride); c < end; c += SCORES) {
        int64_t count = min_i64(SCORES, end - c);

        weights_of(a, 0, head, i, (PatternRun){ c, count, 1, 0 }, weight);
        for (int64_t x = 0; x < count; x++)
            add_block(&a->slots, c + x, gate * (double)weight[x], asked, out);
    }
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Nsa *a = view->context;
    PatternRun asked = { start, count, step, 0 };

    memset(out, 0, (size_t)count * sizeof(*out));
    add_compressed(a, head, i, asked, out);
    add_tokens(a, 1, head, i, asked, out);
    add_tokens(a, 2, head, i, asked, out);
}

/* The share that each token of a compressed block has of the weights. */
static void read_shares(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Nsa *a = view->context;
    double     gate = (double)tensor_f32(&a->gates)[(head * a->n + i) * 3];

    weights_of(a, 0, head, i, (PatternRun){ start, count, step, 0 }, out);
    for (int64_t x = 0; x < count; x++)
        out[x] = (float)(gate / (double)a->slots.size * (double)out[x]);
}

static void read_tokens(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    memset(out, 0, (size_t)count * sizeof(*out));
    for (int part = 1; part < 3; part++)
        add_tokens(view->context, part, head, i, (PatternRun){ start, count, step, 0 }, out);
}

/* The weights as shares of compressed blocks, and as those of tokens that are read. */
static void spread_weights(Run *r, const Nsa *a, View *weights, const Pattern *read,
                           const Pattern *seen)
{
    View       *part = weights && seen ? run_alloc(r, 2, sizeof(*part)) : NULL;
    ViewSpread *spread = part ? run_alloc(r, 1, sizeof(*spread)) : NULL;

    if (!spread)
        return;
    part[0] = (View){ .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 3, .read = read_shares,
                      .shape = { a->h, a->n, a->slots.ranges }, .context = a, .support = seen };
    part[1] = (View){ .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 3, .read = read_tokens,
                      .shape = { a->h, a->n, a->m }, .context = a, .support = read };
    *spread = (ViewSpread){ &part[0], &part[1], a->slots.stride, a->slots.size };
    weights->spread = spread;
}

static void read_importance(const View *view, int64_t group, int64_t i, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    const Nsa *a = view->context;
    double    *sum = malloc((size_t)(a->nb + nsa_room(a, 1)) * sizeof(*sum));

    if (sum)
        nsa_importance(a, group, i, 1, sum + a->nb, sum);
    for (int64_t x = 0; x < count; x++)
        out[x] = sum ? (float)sum[start + x * step] : (float)NAN;
    free(sum);
}

static void read_selected(const View *view, int64_t group, int64_t i, int64_t start, int64_t count,
                          int64_t step, float *out)
{
    const Nsa *a = view->context;

    (void)group;
    for (int64_t x = 0; x < count; x++)
        out[x] = nsa_fixed(a, i, start + x * step) ? 2 : 1;
}

static const char *const whys[8] = { "by importance", "fixed block" };
static const char *const kinds[8] = { [0] = "sliding window", [4] = "selected blocks",
                                      [5] = "behind compressed blocks" };

static View *group_view(Run *r, const Nsa *a, const char *name, ViewKind kind, DType dtype,
                        ViewReadRun read)
{
    View *view = view_add(r, name, kind, dtype, 3, (int64_t[]){ a->g, a->n, a->nb });

    if (!view)
        return NULL;
    view->read = read;
    view->context = a;
    view->cols = "selection block";
    view->headless = a->g != a->h;
    view->round = a->g != a->h ? "kv head" : NULL;
    return view;
}

static void show_blocks(Run *r, const Nsa *a)
{
    PatternShape s = { .heads = a->g, .n = a->n, .m = a->nb };
    View        *selected;

    group_view(r, a, "importance", VIEW_TENSOR, DT_F32, read_importance);
    selected = group_view(r, a, "selected", VIEW_COMPONENTS, DT_U8, read_selected);
    if (!selected)
        return;
    selected->support = pattern_stored(r->arena, s, a->start, a->block, true);
    selected->components = whys;
    if (!selected->support)
        run_fail(r, ERR_NOMEM, "nsa: not enough memory for a view");
}

static void show(Run *r, const Params *p, const Nsa *a, Pattern *read, Pattern *seen)
{
    Pattern *all = read;
    KeyPart  few = a->part[0];

    if (!run_wants_views(r) || run_failed(r))
        return;
    if (seen)
        all = finished(r, a, pattern_union(
            r->arena, pattern_operand(read),
            slots_behind(r->arena, shape_of(a, a->m), &a->slots, seen, COMPONENT_OTHER)));
    show_blocks(r, a);
    if (run_failed(r))
        return;
    view_pattern(r, all, false);
    view_reader(r, "components", VIEW_COMPONENTS, DT_U8, NULL, NULL, all);
    view_meanings(r, all, kinds);
    if (p->compress == COMPRESS_MEAN)
        spread_weights(r, a, view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, a, all),
                       read, seen);
    view_position_bias(r, all, &a->in);
    few.seen = seen ? seen : finished(r, a, pattern_none(r->arena, shape_of(a, 0)));
    view_part(r, &few, "connectivity_cmp", "weights_cmp", "compressed block");
    view_part(r, &a->part[1], "connectivity_slc", "weights_slc", "key");
    view_part(r, &a->part[2], "connectivity_win", "weights_win", "key");
}

/* ---- the run ------------------------------------------------------------------------------ */

/* r->out += gate of the part times what it gives. */
static void add_part(Run *r, Nsa *a, int part, const AttendInput *in, const Pattern *cells)
{
    AttendResult result = op_attend(r, in, cells);

    if (run_failed(r))
        return;
    a->part[part] = (KeyPart){ .in = *in, .lse = result.lse, .seen = cells,
                               .sums = row_sums_of(r, r->h, 1, cells) };
    op_entries_of(r, result.out, tensor_columns(a->gates, part, 1), ENTRY_PRODUCT, 1, result.out);
    if (r->out.data)
        op_entries_of(r, r->out, result.out, ENTRY_SUM, 1, r->out);
    else
        r->out = result.out;
}

/* Cells of the last row in all three softmaxes: what its step computes. */
static void count_last_row(Run *r, const Nsa *a, const Pattern *read)
{
    int64_t    cells = 0, last = a->n - 1;
    PatternRow row = { 0 };

    run_last_row(r, read);
    for (int64_t head = 0; head < a->h && r->last.known; head++) {
        cells += nsa_seen(a, last);
        for (int part = 1; part < 3; part++) {
            pattern_row(a->part[part].seen, head, last, &row);
            cells += pattern_row_cells(&row);
        }
    }
    r->last.known &= !row.failed;
    r->last.cells = (double)cells;
    pattern_row_free(&row);
}

static void nsa_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Nsa          *a = run_alloc(r, 1, sizeof(*a)); /* views read it later */
    AttendInput   few;
    Pattern      *seen = NULL, *selected, *sliding, *read;

    if (!a)
        return;
    *a = nsa_of(r, p);
    a->in = run_attend_input(r, p->scale);
    run_stage(r, "compress");
    a->gates = gates_of(r, p);
    few = compress(r, p, a);
    run_stage(r, "compressed");
    if (a->slots.ranges) {
        seen = finished(r, a, ended_blocks(r, a));
        add_part(r, a, 0, &few, seen);
    }
    run_stage(r, "select");
    nsa_select(r, a);
    if (run_failed(r))
        return;
    selected = finished(r, a, selected_cells(r, a));
    sliding = finished(r, a, sliding_cells(r, a, p));
    run_stage(r, "selected");
    add_part(r, a, 1, &a->in, selected);
    run_stage(r, "sliding");
    add_part(r, a, 2, &a->in, sliding);
    op_charge(r, FLOP_OVERHEAD, 6 * (double)r->h * (double)r->n * (double)r->e);
    if (run_failed(r))
        return;
    read = finished(r, a, pattern_union(r->arena, pattern_operand(selected),
                                        pattern_operand(sliding)));
    show(r, p, a, read, seen);
    replay_offer_attend(r, &a->in, read);
    replay_offer_part(r, selected, "The selected blocks");
    run_masses(r, &a->in, read);
    count_last_row(r, a, read);
}

/* ---- closed forms --------------------------------------------------------------------------- */

/* Tokens that a group selects in row i; *bound: at most, as the data decide whether a block that
 * is shorter than the others is among them. */
static double tokens_selected(const Nsa *a, int64_t i, bool *bound)
{
    int64_t all = nsa_candidates(a, i), more = nsa_more(a, i), fixed = nsa_fixed_count(a, i);
    int64_t keys = a->causal ? a->at + i + 1 : a->m, lacks = all * a->page - keys;

    if (nsa_fixed(a, i, all - 1) || (more && fixed + more == all))
        return (double)((fixed + more) * a->page - lacks);
    *bound |= more && lacks;
    return (double)((fixed + more) * a->page);
}

static double sliding_tokens(const Nsa *a, const Params *p, int64_t i)
{
    int64_t before = min_i64(a->at + i, p->window - 1);
    int64_t after = min_i64(a->n - 1 - i, p->window - 1);

    return (double)(1 + before + (a->causal ? 0 : after));
}

static Flops nsa_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Nsa           a = nsa_of(r, p);
    double        cells = 0;
    bool          bound = false;
    Flops         f;

    for (int64_t i = 0; i < r->n; i++)
        cells += (double)nsa_seen(&a, i) + tokens_selected(&a, i, &bound) +
                 sliding_tokens(&a, p, i);
    r->inner_bound |= bound;
    f = run_pattern_flops(r, (double)r->h * cells);
    f.overhead += (double)a.slots.ranges * block_flops(r, p) +
                  6 * (double)r->h * (double)r->n * (double)r->e;
    return f;
}

/* All is held, and the compressed blocks; a step reads those, the selected tokens and the window,
 * and may complete a block. */
static DecodeCost nsa_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Nsa           a = nsa_of(r, p);
    DecodeCost    cost = decode_dense(r);
    double        token = (double)r->cache_bytes * decode_token(r);
    bool          completes = r->m >= p->cmp_block && (r->m - p->cmp_block) % p->cmp_stride == 0;

    cost.state_bytes += token * (double)a.slots.ranges;
    cost.kv_bytes_per_token += token / (double)p->cmp_stride;
    cost.step_bytes = decode_read(r) + token * (double)nsa_seen(&a, r->n - 1);
    cost.decode_flops = decode_row(r) + 6 * (double)(r->h * r->e) +
                        (completes ? block_flops(r, p) : 0);
    return cost;
}

static const ViewPromise views[] = {
    VIEW("importance", VIEW_TENSOR, "weight that compressed blocks give to a block"),
    VIEW("selected", VIEW_COMPONENTS, "blocks that a group of heads reads"),
    VIEW("connectivity", VIEW_PATTERN, "allowed cells"),
    VIEW("components", VIEW_COMPONENTS, "what allows a cell"),
    VIEW("weights", VIEW_WEIGHTS, "the three parts on tokens (not with compress=linear)",
         .maybe = true),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEW("weights_cmp", VIEW_WEIGHTS, "weights on compressed blocks"),
    VIEW("connectivity_cmp", VIEW_PATTERN, "compressed blocks that a query sees"),
    VIEW("weights_slc", VIEW_WEIGHTS, "weights on the selected tokens"),
    VIEW("connectivity_slc", VIEW_PATTERN, "tokens of the selected blocks"),
    VIEW("weights_win", VIEW_WEIGHTS, "weights in the window"),
    VIEW("connectivity_win", VIEW_PATTERN, "the sliding window"),
    VIEW("gates", VIEW_TENSOR, "factors of the three parts"),
    VIEW("cmp_k", VIEW_TENSOR, "parameter, when drawn", .maybe = true),
    VIEW("cmp_v", VIEW_TENSOR, "parameter, when drawn", .maybe = true),
    VIEWS_OF_MASSES,
    VIEW_PROMISE_END
};

static const StageNote notes[] = {
    { "compress", "Each block of tokens becomes one key and one value." },
    { "compressed", "Every query attends to the compressed blocks that ended before it." },
    { "select", "The weights on compressed blocks, added up over a group's heads, say which blocks "
                "matter.  The group reads the first blocks, the last ones, and those with most." },
    { "selected", "One softmax over all tokens of the selected blocks." },
    { "sliding", "One softmax over the newest tokens.  The three results are multiplied by their "
                 "gates and added." },
    { NULL, NULL }
};

const Mechanism mech_nsa = {
    .id = "nsa",
    .title = "Native sparse attention (NSA)",
    .authors = "Yuan et al.",
    .year = 2025,
    .arxiv = "2502.11089",
    .source = "paper, section 3, eq. 9 with indices from 1; fla-org/native-sparse-attention "
              "ops/naive.py.  One k and v for all three parts; without causal order: ours",
    .formula = "P_i = softmax over compressed blocks c of q_i . K^c / sqrt(d)\n"
               "I_i[b] = sum over the group's heads and c of overlap(c,b) P_i[c]\n"
               "S_i = the first and last blocks and those with the largest I_i\n"
               "output_i = g0 P_i V^c + g1 attention to S_i + g2 attention to the window",
    .problem = "A model that was trained to read all keys loses what a sparse pattern leaves out "
               "afterwards, and reading single keys is slow on a GPU.",
    .idea = "A blurred view of everything says which blocks are worth reading exactly.  It costs "
            "little, as its weights are needed anyway, and heads that share keys share the choice.",
    .price = "Three softmaxes for each query, and compressed keys beside the cache, which is held "
             "whole.  The compressed part still grows with n^2/s.",
    .teaches = "A blurred staircase, squares chosen per group, and a band.  Every block chosen by "
               "importance is at least as important as every block left out.",
    .picture = "components",
    .classes = CLASS_LP | CLASS_M,
    .claim_time = "O(n (n/s + k B + w))",
    .claim_memory = "O(n)",
    .claim_decode = "yes: reads n/s compressed, k B + w tokens",
    .claim_exponent = 2,
    .causal = true,
    .at_end = AT_END_OWN,
    .positions = POSITION_INPUT,
    .views = views,
    .lesson = "top-k",
    .notes = notes,
    .kept_stage = "compress",
    .size = "topk",
    .size_reads = true,
    .params = params,
    .params_size = sizeof(Params),
    .check = check,
    .run = nsa_run,
    .flops = nsa_flops,
    .decode = nsa_decode,
};
