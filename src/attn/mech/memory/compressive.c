/* compressive.c -- segment recurrence with a second, compressed memory.
 *
 * A segment sees compressed slots, the tokens of the memory, and itself:
 *
 *     keys = cmem, mem, segment;   output_i = sum softmax(q_i . keys / sqrt(d)) values
 *
 * Then the tokens join the memory, and the E oldest that no longer fit leave it: every
 * `ratio` rows R of them become one slot, the last cmem_len of which are kept.
 *
 *     mean, max    of the rows that are there
 *     conv         sum_u w[u] R_{g ratio + u},   or sum_u R_{g ratio + u} W[u] + bias
 *     dilated-conv sum_u w[u] R_{g ratio + 2u}
 *     most-used    the ceil(E / ratio) rows with most attention from this segment
 *
 * Rows are keys and values, each by itself, or layer inputs x that are projected after.
 * Memories begin empty (the paper's begin as zeros).  (Rae et al., section 3.)
 */
#include <math.h>
#include <string.h>

#include "attn/mech/memory/recurrence.h"
#include "attn/run.h"
#include "attn/run/position.h"
#include "core/rng.h"

typedef enum SqueezeWay { SQUEEZE_MEAN, SQUEEZE_MAX, SQUEEZE_CONV, SQUEEZE_DILATED, SQUEEZE_USED }
    SqueezeWay;

typedef struct Squeeze {
    SqueezeWay        way;
    int64_t           ratio;
    double           *taps;       /* [ratio] of a convolution by numbers; else NULL */
    Tensor            full, bias; /* [1,ratio dm,dm], [dm]: by matrices; data NULL: it is not */
    CompressedMemory *memory;
} Squeeze;

/* By SqueezeWay. */
static const char *const ways[] = { "mean", "max", "conv", "dilated-conv", "most-used", NULL };

typedef struct Params {
    int64_t segment, mem_len, cmem_len, ratio, heads;
    int     compress;
    double  scale;
    Tensor  conv_weight, conv_bias, wq, wk, wv;
} Params;

typedef struct Model {
    const Params     *p;
    CompressedMemory *memory;
    AttendInput       in;          /* of all tokens */
    Tensor            x, wk, wv;   /* x [1,n,dm]; data NULL: k and v are compressed */
    Tensor            slot_k, slot_v, slot_x; /* [h',slots,.] */
    Squeeze           squeeze;
    Tensor            lse;         /* [h,n] */
    Tensor            loss;        /* f32 [segments,h]; views only */
    CompressedViews  *views;
    bool              linear;      /* a slot is a mixture with known shares */
} Model;

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }

static Model *model_new(Run *r, const Params *p);
static void compressive_compress(Run *r, const Model *m, int64_t t, const AttendInput *part);
static void squeeze_choose(Run *r, const Squeeze *s, int64_t t, const AttendInput *part);
static double compress_flops(const Run *r, const Params *p, int64_t rows);
static bool from_x(const Run *r, const Params *p);
static double squeeze_flops(SqueezeWay way, bool matrices, int64_t rows, double width);
static bool squeeze_convolves(SqueezeWay way);
static bool is_full(const Run *r, const Params *p);
static void squeeze_batch(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to);
static void convolve_batch(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to);
static void squeeze_rows(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to);
static void squeeze_taps(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to);
static void squeeze_windows(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to);
static void compressive_project(Run *r, Model *m);
static int64_t head_size(Run *r, const Params *p, const char *name, Tensor given);
static Tensor compressive_projection(Run *r, const char *name, Tensor given, int64_t w);
static void squeeze_weights(Run *r, Squeeze *s, bool matrices, Tensor weight, Tensor bias);
static double *compressive_taps_of(Run *r, int64_t ratio, Tensor given);
static SlotCover squeeze_cover(SqueezeWay way);
static void prepare_views(Run *r, Model *m);
static void compressive_read_segment(Run *r, const Model *m, int64_t t, int64_t *batches);
static AttendInput segment_input(Run *r, const Model *m, int64_t t);
static Tensor compressive_joined(Run *r, Tensor slots, int64_t first, int64_t count, Tensor tokens,
                                 int64_t from, int64_t to);
static Pattern *compressive_segment_cells(Run *r, const AttendInput *part);
static void squeeze_loss(Run *r, const Squeeze *s, int64_t t, const AttendInput *tokens,
                         Tensor slot_k, Tensor slot_v, Tensor q, Tensor loss);
static Tensor attend_alone(Run *r, Tensor q, Tensor k, Tensor v, double scale);
static void compressive_show(Run *r, const Model *m);

static const Param params[] = {
    PARAM_INT(Params, segment, 64, 1, INT32_MAX, "tokens read at once"),
    PARAM_INT(Params, mem_len, 64, 0, INT32_MAX, "tokens kept as they were"),
    PARAM_INT(Params, cmem_len, 64, 0, INT32_MAX, "compressed slots; 0: transformer-xl"),
    PARAM_INT(Params, ratio, 4, 1, INT32_MAX, "tokens made into one slot"),
    PARAM_ENUM(Params, compress, SQUEEZE_MEAN, ways, "how"),
    PARAM_TENSOR(Params, conv_weight, "[ratio], or with x [ratio,dm,dm]",
                 "taps 1/ratio + N(0, (0.1/ratio)^2); full uniform +-1/sqrt(ratio dm)",
                 "conv, dilated-conv: a number for each row; conv of x: a matrix"),
    PARAM_TENSOR(Params, conv_bias, "[dm]", "0", "of the full convolution"),
    PARAM_INT(Params, heads, 1, 1, INT32_MAX, "with x: heads made of it"),
    PARAM_TENSOR(Params, wq, "[dm,heads d]", "Glorot uniform", "with x: queries, head by head"),
    PARAM_TENSOR(Params, wk, "[dm,heads d]", "Glorot uniform", "with x: keys"),
    PARAM_TENSOR(Params, wv, "[dm,heads e]", "Glorot uniform", "with x: values"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

static void compressive_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Model        *m = model_new(r, p);
    int64_t       batches = 0;

    if (!r->causal)
        run_warn(r, "compressive: without --causal a segment sees itself in both directions; the "
                 "model does not");
    run_stage(r, "segments");
    for (int64_t t = 0; !run_failed(r) && t < m->memory->recurrence.count; t++)
        compressive_read_segment(r, m, t, &batches);
    if (run_failed(r))
        return;
    compressive_show(r, m);
    run_figure_int(r, "cache_floats",
                   (m->memory->recurrence.mem_len + p->cmem_len) * (r->d + r->e));
}

static Model *model_new(Run *r, const Params *p)
{
    Model  *m = run_alloc(r, 1, sizeof(*m));
    int64_t slots;

    if (!m)
        return NULL;
    *m = (Model){ .p = p, .squeeze = { .way = (SqueezeWay)p->compress, .ratio = p->ratio } };
    if (from_x(r, p))
        compressive_project(r, m);
    else
        m->in = run_attend_input(r, p->scale);
    m->in.softmax_flops = FLOPS_ROW_SOFTMAX;
    squeeze_weights(r, &m->squeeze, is_full(r, p), p->conv_weight, p->conv_bias);
    m->memory = compressed_memory_new(r, recurrence_of(r, p->segment, p->mem_len),
                                      squeeze_cover(m->squeeze.way), p->cmem_len, p->ratio);
    m->squeeze.memory = m->memory;
    if (!m->memory)
        return NULL;
    slots = m->memory->slots;
    m->slot_k = run_tensor3(r, DT_F32, m->in.k.shape[0], slots, r->d);
    m->slot_v = run_tensor3(r, DT_F32, m->in.v.shape[0], slots, r->e);
    if (m->x.data)
        m->slot_x = run_tensor3(r, DT_F32, 1, slots, r->dm);
    m->lse = run_tensor2(r, DT_F32, r->h, r->n);
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    prepare_views(r, m);
    return m;
}

static void compressive_compress(Run *r, const Model *m, int64_t t, const AttendInput *part)
{
    CompressedMemory *c = m->memory;
    int64_t           first, end, made = c->made[t + 1] - c->made[t];

    compressed_memory_batch(c, t, &first, &end);
    if (c->cover == COVER_ONE)
        squeeze_choose(r, &m->squeeze, t, part);
    op_charge(r, FLOP_OVERHEAD, compress_flops(r, m->p, end - first));
    if (!m->x.data) {
        squeeze_batch(r, &m->squeeze, t, m->in.k, m->slot_k);
        squeeze_batch(r, &m->squeeze, t, m->in.v, m->slot_v);
    } else {
        squeeze_batch(r, &m->squeeze, t, m->x, m->slot_x);
        op_gemm(r, tensor_rows(m->slot_x, c->made[t], made), false, m->wk, false, 1, 0,
                tensor_rows(m->slot_k, c->made[t], made), FLOP_APART);
        op_gemm(r, tensor_rows(m->slot_x, c->made[t], made), false, m->wv, false, 1, 0,
                tensor_rows(m->slot_v, c->made[t], made), FLOP_APART);
    }
    run_trace(r, "tokens squeezed", (double)(end - first));
    run_trace(r, "slots made", (double)made);
}

/* SQUEEZE_USED: chooses the tokens that segment t keeps as slots; among equals the older. */
static void squeeze_choose(Run *r, const Squeeze *s, int64_t t, const AttendInput *part)
{
    CompressedMemory *c = s->memory;
    Tensor            usage, best;
    int64_t           first, end, oldest, slots = compressed_memory_seen(c, t, &oldest);

    compressed_memory_batch(c, t, &first, &end);
    usage = op_key_usage(r, part->q, part->k, part->scale, r->causal);
    if (run_failed(r))
        return;
    usage = tensor_of(DT_F64, 3, (int64_t[]){ 1, end - first, 1 }, (double *)usage.data + slots);
    best = op_top_k(r, usage, c->made[t + 1] - c->made[t]);
    op_wait(r, "the host lists the slots that were chosen");
    for (int64_t g = c->made[t]; g < c->made[t + 1] && !run_failed(r); g++)
        compressed_memory_choose(c, g, first + tensor_i32(&best)[g - c->made[t]]);
}

/* FLOPs of compressing E rows of all heads. */
static double compress_flops(const Run *r, const Params *p, int64_t rows)
{
    double width = from_x(r, p) ? (double)r->dm : (double)r->h * (double)(r->d + r->e);

    return squeeze_flops((SqueezeWay)p->compress, is_full(r, p), rows, width);
}

/* With both x and q, k, v given, parameters that only x uses decide. */
static bool from_x(const Run *r, const Params *p)
{
    bool asks = run_is_given(r, "heads") || p->wq.data || p->wk.data || p->wv.data ||
                (p->compress == SQUEEZE_CONV && p->conv_weight.rank == 3);

    return r->x.data && (asks || !r->q.data || !r->k.data || !r->v.data);
}

/* FLOPs of `rows` rows of `width` numbers. */
static double squeeze_flops(SqueezeWay way, bool matrices, int64_t rows, double width)
{
    double e = (double)rows;

    if (way == SQUEEZE_USED)
        return e * log2(e);
    if (matrices)
        return 2 * e * width * width;
    return (squeeze_convolves(way) ? 2 : 1) * e * width;
}

/* A convolution has a number for each row, or a matrix. */
static bool squeeze_convolves(SqueezeWay way)
{
    return way == SQUEEZE_CONV || way == SQUEEZE_DILATED;
}

/* The convolution has a [dm,dm] matrix for each of the ratio rows. */
static bool is_full(const Run *r, const Params *p)
{
    return p->compress == SQUEEZE_CONV && from_x(r, p) &&
           (!p->conv_weight.data || p->conv_weight.rank == 3);
}

/* Slots of segment t's batch, from the rows of `from` [h',n,w] to `to` [h',slots,w]; by matrices
 * h' is 1. */
static void squeeze_batch(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    if (s->full.data)
        convolve_batch(r, s, t, from, to);
    else
        squeeze_rows(r, s, t, from, to);
}

/* `ratio` adjacent rows are read as one row of ratio dm; the last may hold fewer. */
static void convolve_batch(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    const CompressedMemory *c = s->memory;
    int64_t                 first, end, dm = r->dm, wide = s->ratio * dm, whole, left;
    Tensor                  rows, matrix = s->full;

    compressed_memory_batch(c, t, &first, &end);
    whole = (end - first) / s->ratio;
    left = (end - first) % s->ratio;
    rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, whole, wide },
                     run_failed(r) ? NULL : tensor_f32(&from) + first * dm);
    if (run_failed(r))
        return;
    if (whole)
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t], whole),
                FLOP_APART);
    matrix.shape[1] = left * dm;
    rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, 1, left * dm }, tensor_f32(&rows) + whole * wide);
    if (left)
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t] + whole, 1),
                FLOP_APART);
    rows = tensor_rows(to, c->made[t], c->made[t + 1] - c->made[t]);
    if (s->bias.data)
        op_entries_of(r, rows, s->bias, ENTRY_SUM, 1, rows);
}

static void squeeze_rows(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    ArenaMark mark = arena_mark(r->arena);

    if (!run_failed(r))
        (squeeze_convolves(s->way) ? squeeze_taps : squeeze_windows)(
            r, s, t, from,
            tensor_rows(to, s->memory->made[t], s->memory->made[t + 1] - s->memory->made[t]));
    arena_release(r->arena, mark);
}

/* A group starts every `ratio` rows; dilated, its tokens are two apart. */
static void squeeze_taps(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    int64_t first, end, count = s->ratio < r->n ? s->ratio : r->n;
    TapSums in = { .groups = 1, .step = s->ratio, .apart = s->way == SQUEEZE_DILATED ? 2 : 1,
                   .taps = tensor_of(DT_F64, 3, (int64_t[]){ 1, 1, count }, s->taps) };

    compressed_memory_batch(s->memory, t, &first, &end);
    in.x = tensor_rows(from, first, end - first);
    op_tap_sums(r, &in, to);
}

/* Mean, maximum or the one row of `from` [h',n,w] that each slot of the batch covers. */
static void squeeze_windows(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    const CompressedMemory *c = s->memory;
    int64_t                 slots = c->made[t + 1] - c->made[t];
    int32_t                *first = run_alloc(r, 2 * slots, sizeof(*first));
    PoolWindows             in = { .x = from, .first = first, .end = first ? first + slots : NULL };

    in.kind = s->way == SQUEEZE_MAX ? WINDOW_MAX : WINDOW_MEAN;
    for (int64_t g = 0; g < slots && !run_failed(r); g++) {
        first[g] = (int32_t)c->first[c->made[t] + g];
        first[slots + g] = s->way == SQUEEZE_USED ? first[g] + 1 : (int32_t)c->end[c->made[t] + g];
    }
    op_pool_windows(r, &in, to);
}

static void compressive_project(Run *r, Model *m)
{
    const Params *p = m->p;
    int64_t       d, e;
    Tensor        wq;

    m->x = tensor_with_rank(r->x, 3);
    r->m = r->n;
    r->q_offset = 0;
    d = head_size(r, p, p->wq.data || !p->wk.data ? "wq" : "wk", p->wq.data ? p->wq : p->wk);
    e = head_size(r, p, "wv", p->wv);
    run_heads(r, p->heads, d, e);
    run_stage(r, "project");
    wq = compressive_projection(r, "wq", p->wq, d);
    m->wk = compressive_projection(r, "wk", p->wk, d);
    m->wv = compressive_projection(r, "wv", p->wv, e);
    r->q = run_tensor3(r, DT_F32, r->h, r->n, d);
    r->k = run_tensor3(r, DT_F32, r->h, r->n, d);
    r->v = run_tensor3(r, DT_F32, r->h, r->n, e);
    op_gemm(r, m->x, false, wq, false, 1, 0, r->q, FLOP_APART);
    op_gemm(r, m->x, false, m->wk, false, 1, 0, r->k, FLOP_APART);
    op_gemm(r, m->x, false, m->wv, false, 1, 0, r->v, FLOP_APART);
    m->in = run_attend_input(r, p->scale);
}

/* Columns of a given projection over the heads; else dm over the heads. */
static int64_t head_size(Run *r, const Params *p, const char *name, Tensor given)
{
    int64_t columns = given.data && given.rank == 2 ? given.shape[1] : r->dm;

    if (columns > 0 && columns % p->heads == 0)
        return columns / p->heads;
    run_fail(r, ERR_PARAM, "compressive: heads=%lld does not divide the %lld columns of %s",
             (long long)p->heads, (long long)columns, name);
    return 1;
}

/* [dm, heads w] as a matrix for each head. */
static Tensor compressive_projection(Run *r, const char *name, Tensor given, int64_t w)
{
    int64_t cols = r->h * w;
    Tensor  t = layer_weight(r, name, given, 2, (int64_t[]){ r->dm, cols },
                             (Init){ INIT_GLOROT, (double)(r->dm + cols) });

    return (Tensor){ .dtype = DT_F32, .rank = 3, .shape = { r->h, r->dm, w },
                     .stride = { w, cols, 1 }, .data = t.data };
}

/* ---- the convolution's weights ------------------------------------------------------ */

/* The parameters conv_weight and conv_bias, given or drawn; nothing for other ways. */
static void squeeze_weights(Run *r, Squeeze *s, bool matrices, Tensor weight, Tensor bias)
{
    int64_t dm = r->dm;

    if (matrices) {
        s->full = layer_weight(r, "conv_weight", weight, 3, (int64_t[]){ s->ratio, dm, dm },
                               (Init){ INIT_UNIFORM, 1 / sqrt((double)s->ratio * (double)dm) });
        s->full = tensor_of(DT_F32, 3, (int64_t[]){ 1, s->ratio * dm, dm }, s->full.data);
        s->bias = layer_given(r, "conv_bias", bias, 1, &dm);
    } else if (squeeze_convolves(s->way)) {
        s->taps = compressive_taps_of(r, s->ratio, weight);
    }
}

static double *compressive_taps_of(Run *r, int64_t ratio, Tensor given)
{
    int64_t count = given.data || ratio < r->n ? ratio : r->n; /* no row has more */
    Tensor  t = { .rank = 0 };
    Rng     rng = run_rng(r, "conv_weight");
    double *taps;

    if (given.data) {
        t = layer_given(r, "conv_weight", given, 1, &count);
    } else {
        t = run_tensor1(r, DT_F32, count);
        run_draw(r, &rng, (Init){ INIT_NORMAL, 0.1 / (double)ratio }, t);
        for (int64_t u = 0; u < count && !run_failed(r); u++)
            tensor_f32(&t)[u] += (float)(1 / (double)ratio);
        if (!run_failed(r))
            view_drawn(r, "conv_weight", t);
    }
    taps = run_alloc(r, count, sizeof(*taps));
    for (int64_t u = 0; u < count && !run_failed(r); u++)
        taps[u] = (double)tensor_f32(&t)[u];
    return taps;
}

static SlotCover squeeze_cover(SqueezeWay way)
{
    return way == SQUEEZE_USED      ? COVER_ONE
           : way == SQUEEZE_DILATED ? COVER_SPREAD
                                    : COVER_GROUP;
}

/* Allocates what the views' readers need. */
static void prepare_views(Run *r, Model *m)
{
    const Params *p = m->p;

    if (!run_wants_views(r))
        return;
    m->linear = p->compress != SQUEEZE_MAX && !m->squeeze.full.data;
    m->loss = run_tensor2(r, DT_F32, m->memory->recurrence.count, r->h);
    m->views = run_alloc(r, 1, sizeof(*m->views));
    if (!m->views)
        return;
    memset(m->loss.data, 0, (size_t)tensor_bytes(&m->loss));
    *m->views = (CompressedViews){ .memory = m->memory, .tokens = m->in, .slots = m->in,
                                   .lse = m->lse, .taps = m->squeeze.taps, .cmem_len = p->cmem_len,
                                   .mem_len = p->mem_len, .segment = p->segment, .heads = r->h };
    m->views->slots.k = m->slot_k;
    m->views->sums = row_sums_of(r, r->h, 2, compressed_memory_tokens(r, m->memory));
    m->views->sums.own = &m->views->tokens;
    m->views->sums.other = &m->views->slots;
    m->views->sums.other_cells = compressed_memory_slots(r, m->memory);
}

/* ---- segments ------------------------------------------------------------------------ */

static void compressive_read_segment(Run *r, const Model *m, int64_t t, int64_t *batches)
{
    ArenaMark   mark = arena_mark(r->arena);
    bool        shown = recurrence_shows(r, t); /* its keys are kept */
    int64_t     b = recurrence_start(&m->memory->recurrence, t), first, end;
    AttendInput part;

    run_iteration(r, "segment", t);
    run_trace(r, "slots", (double)compressed_memory_seen(m->memory, t, &first));
    run_trace(r, "tokens remembered", (double)(b - recurrence_memory(&m->memory->recurrence, t)));
    part = segment_input(r, m, t);
    recurrence_attend(r, &part, compressive_segment_cells(r, &part), b, r->out, m->lse);
    if (shown)
        recurrence_show_segment(r, &part, m->lse, b, part.k.shape[1] - part.q.shape[1],
                                compressive_segment_cells(r, &part));
    if (compressed_memory_batch(m->memory, t, &first, &end)) {
        run_iteration(r, "compress", (*batches)++);
        compressive_compress(r, m, t, &part);
        if (run_wants_views(r))
            squeeze_loss(r, &m->squeeze, t, &m->in, m->slot_k, m->slot_v, part.q, m->loss);
        if (shown)
            compressed_memory_show_squeezed(r, m->views, m->linear, m->memory->made[t + 1]);
    }
    if (!shown)
        arena_release(r->arena, mark);
}

/* Queries of segment t, and all that it sees. */
static AttendInput segment_input(Run *r, const Model *m, int64_t t)
{
    const Recurrence *c = &m->memory->recurrence;
    int64_t           b = recurrence_start(c, t), a = recurrence_memory(c, t);
    int64_t           end = recurrence_end(c, t);
    int64_t           first, slots = compressed_memory_seen(m->memory, t, &first);
    AttendInput       part = attend_input_part(&m->in, b, end - b, a, end - a);

    if (slots > 0) {
        part.k = compressive_joined(r, m->slot_k, first, slots, m->in.k, a, end);
        part.v = compressive_joined(r, m->slot_v, first, slots, m->in.v, a, end);
    }
    return part;
}

/* [h', slots + tokens, w]: the slots first, then tokens [from, to). */
static Tensor compressive_joined(Run *r, Tensor slots, int64_t first, int64_t count, Tensor tokens,
                                 int64_t from, int64_t to)
{
    int64_t w = tokens.shape[2], rows = count + to - from;
    Tensor  y = run_tensor3(r, DT_F32, tokens.shape[0], rows, w);

    if (run_failed(r))
        return y;
    op_entries(r, tensor_rows(slots, first, count), ENTRY_CAST, 0, tensor_rows(y, 0, count));
    op_entries(r, tensor_rows(tokens, from, to - from), ENTRY_CAST, 0,
               tensor_rows(y, count, to - from));
    return y;
}

static Pattern *compressive_segment_cells(Run *r, const AttendInput *part)
{
    PatternShape s = { .heads = r->h, .n = part->q.shape[1], .m = part->k.shape[1] };

    return pattern_band(r->arena, s, -s.n, r->causal ? s.m - s.n : s.m, 1, COMPONENT_BLOCK);
}

/* The paper's attention-reconstruction loss for the queries q of segment t, into row t of `loss`
 * f32 [segments,h]: the distance of attention to the slots alone from attention to the tokens. */
static void squeeze_loss(Run *r, const Squeeze *s, int64_t t, const AttendInput *tokens,
                         Tensor slot_k, Tensor slot_v, Tensor q, Tensor loss)
{
    const CompressedMemory *c = s->memory;
    ArenaMark               mark = arena_mark(r->arena);
    int64_t                 first, end, made = c->made[t + 1] - c->made[t];
    int64_t                 size = q.shape[1] * r->e;
    Tensor                  before, after;
    double                  mean = 0;

    compressed_memory_batch(c, t, &first, &end);
    before = attend_alone(r, q, tensor_rows(tokens->k, first, end - first),
                          tensor_rows(tokens->v, first, end - first), tokens->scale);
    after = attend_alone(r, q, tensor_rows(slot_k, c->made[t], made),
                         tensor_rows(slot_v, c->made[t], made), tokens->scale);
    for (int64_t head = 0; head < r->h && !run_failed(r); head++) {
        double sum = 0;

        for (int64_t x = head * size; x < (head + 1) * size; x++) {
            double lost = ((double *)before.data)[x] - ((double *)after.data)[x];

            sum += lost * lost;
        }
        tensor_f32(&loss)[t * r->h + head] = (float)sqrt(sum);
        mean += sqrt(sum) / (double)r->h;
    }
    arena_release(r->arena, mark);
    run_trace(r, "attention lost", mean);
}

/* f64 [h,queries,e]: attention of a segment to some rows alone. */
static Tensor attend_alone(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    int64_t keys = k.shape[1];
    Tensor  p = run_tensor3(r, DT_F64, r->h, q.shape[1], keys);
    Tensor  out = run_tensor3(r, DT_F64, r->h, q.shape[1], r->e);

    op_gemm(r, q, false, k, true, scale, 0, p, FLOP_NONE);
    for (int64_t row = 0; row < r->h * q.shape[1] && !run_failed(r); row++) {
        double *w = (double *)p.data + row * keys, most = w[0], sum = 0;

        for (int64_t j = 1; j < keys; j++)
            most = fmax(most, w[j]);
        for (int64_t j = 0; j < keys; j++)
            sum += w[j] = exp(w[j] - most);
        for (int64_t j = 0; j < keys; j++)
            w[j] /= sum;
    }
    op_gemm(r, p, false, v, false, 1, 0, out, FLOP_NONE);
    return out;
}

static void compressive_show(Run *r, const Model *m)
{
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    cells = compressed_memory_cells(r, m->memory);
    view_tensor(r, "reconstruction", VIEW_TENSOR, m->loss, "segment", "head");
    compressed_memory_show_squeezed(r, m->views, m->linear, m->memory->slots);
    if (m->linear)
        compressed_memory_show_weights(r, m->views, cells);
    view_stage(r, "segments", -1);
    view_pattern(r, cells, true);
    view_meanings(r, cells, recurrence_components);
    compressed_memory_show(r, m->views);
    recurrence_show_reach(r, &m->memory->recurrence, cells);
    run_cache(r, &m->in, cells, COMPONENT_STRIDED);
    view_stage(r, NULL, -1);
}

static void compressive_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          x = from_x(r, p), taps = squeeze_convolves((SqueezeWay)p->compress);

    if (x && r->x.shape[0] != r->n)
        run_fail(r, ERR_DATA, "compressive: x has %lld rows but q has n=%lld",
                 (long long)r->x.shape[0], (long long)r->n);
    if (x && r->spec.position)
        run_fail(r, ERR_USAGE, "compressive: position=%s changes q and k, but here rows of x are "
                 "compressed and projected after; give q, k and v, or no position",
                 r->spec.position->id);
    if (!x && (run_is_given(r, "heads") || p->wq.data || p->wk.data || p->wv.data))
        run_fail(r, ERR_DATA, "compressive: heads, wq, wk and wv make heads of the layer input x, "
                 "which the input does not hold");
    if (taps && p->conv_weight.data && p->conv_weight.rank == 3 && !is_full(r, p))
        run_fail(r, ERR_PARAM,
                 "compressive: conv_weight of shape [ratio,dm,dm] needs compress=conv "
                 "and the layer input x; give [ratio] taps");
    if (p->conv_bias.data && !is_full(r, p))
        run_fail(r, ERR_PARAM, "compressive: conv_bias belongs to the full convolution "
                 "(compress=conv of x, conv_weight [ratio,dm,dm])");
    if (!taps && p->conv_weight.data)
        run_warn(r, "compressive: conv_weight plays no part with compress=%s", ways[p->compress]);
}

static Flops compressive_flops(Run *r, const void *opaque)
{
    const Params     *p = opaque;
    CompressedMemory *c = compressed_memory_new(r, recurrence_of(r, p->segment, p->mem_len),
                                                COVER_GROUP, p->cmem_len, p->ratio);
    Flops             sum = { .overhead = 0 };
    double            cells = 0, h = (double)r->h;

    for (int64_t t = 0; c && t < c->recurrence.count; t++) {
        int64_t b = recurrence_start(&c->recurrence, t), first, end;
        int64_t before = compressed_memory_seen(c, t, &first) + b -
                         recurrence_memory(&c->recurrence, t);
        double  s = (double)(recurrence_end(&c->recurrence, t) - b);

        cells += s * (double)before + (r->causal ? s * (s + 1) / 2 : s * s);
        if (compressed_memory_batch(c, t, &first, &end))
            sum.overhead += compress_flops(r, p, end - first);
    }
    sum.score = 2 * h * cells * (double)r->d;
    sum.mix = 2 * h * cells * (double)r->e;
    sum.overhead += FLOPS_ROW_SOFTMAX * h * cells;
    return sum;
}

/* Slots made before segment t, of whole segments, as compressed_memory_new places them. */
static int64_t slots_before_segment(const Recurrence *c, const Params *p, int64_t t)
{
    int64_t full = c->mem_len / c->segment; /* segments before tokens begin to leave */
    int64_t first = (full + 1) * c->segment - c->mem_len;

    if (!p->cmem_len || t <= full)
        return 0;
    return (first - 1) / p->ratio + 1 + (t - 1 - full) * ((c->segment - 1) / p->ratio + 1);
}

/* A segment and its memory are held until its last query was read; of x also its rows, which are
 * compressed, and of most-used what each token was attended. */
static DecodeCost compressive_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Recurrence    c = recurrence_of(r, p->segment, p->mem_len);
    int64_t       t = (r->n - 1) / c.segment, slots = slots_before_segment(&c, p, t);
    int64_t       memory = recurrence_memory(&c, t), left = r->n - c.mem_len - memory;
    double        b = (double)r->cache_bytes, token = b * decode_token(r), cell, seen;
    double        apart = (from_x(r, p) ? b * (double)r->dm : 0) +
                   (p->compress == SQUEEZE_USED ? 4 : 0);

    slots = min_i64(slots, p->cmem_len);
    seen = (double)(slots + r->n - memory);
    cell = 2 * (double)(r->d + r->e) + FLOPS_ROW_SOFTMAX;
    cell *= (double)r->h * seen;
    if (left > 0 && p->cmem_len > 0) /* what the newest of those that leave adds */
        cell += compress_flops(r, p, left) - (left > 1 ? compress_flops(r, p, left - 1) : 0);
    return (DecodeCost){ .state_bytes = token * (double)slots + (token + apart) *
                             (double)min_i64(r->n, c.segment + c.mem_len),
                         .step_bytes = token * seen, .decode_flops = cell };
}

static const StageNote notes[] = {
    { "project",
      "Queries, keys and values are made of the layer input x.  The memories hold rows of x, "
      "which are projected when they are read." },
    { "segments",
      "The sequence is cut into segments that are read one after another.  Behind each lie the "
      "memory, token by token, and before that the compressed memory, slot by slot." },
    { "segment",
      "The queries of this segment see, from the left, the compressed slots and the tokens in "
      "memory, and behind the line themselves.  No gradient flows into the memories." },
    { "compress",
      "The oldest tokens no longer fit the memory.  Every `ratio` of them are squeezed into one "
      "slot, and the oldest slots are forgotten.  `attention lost` is how far attention to the "
      "slots is from attention to the tokens." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "tokens that a query sees, in whatever slot"),
    VIEW("components", VIEW_COMPONENTS, "where it sees them: compressed, in memory, in its "
         "segment"),
    VIEW("weights", VIEW_WEIGHTS, "weights on tokens (not for max and the full convolution)",
         .maybe = true),
    VIEW("slot_weights", VIEW_WEIGHTS, "weights on slots, memory, segment"),
    VIEW("memory", VIEW_TENSOR, "tokens of every slot as each segment begins"),
    VIEW("bands", VIEW_COMPONENTS, "what each segment has: slots, memory, itself"),
    VIEW("squeezed", VIEW_WEIGHTS, "share of each token in each slot ever made", .maybe = true),
    VIEW("reconstruction", VIEW_TENSOR, "what attention lost by compression"),
    VIEW("segment_weights", VIEW_WEIGHTS, "weights of one segment on all it sees"),
    VIEW("reach_tokens", VIEW_COUNT, "tokens back that a query is reached from after so many "
         "layers"),
    VIEW("reach_segments", VIEW_COUNT, "the same in segments"),
    VIEWS_OF_CACHE,
    DRAWN("conv_weight"),
    DRAWN("wq"),
    DRAWN("wk"),
    DRAWN("wv"),
    VIEW_PROMISE_END
};

const Mechanism mech_compressive = {
    .id = "compressive",
    .title = "Compressive Transformer",
    .authors = "Rae, Potapenko, Jayakumar, Hillier, Lillicrap",
    .year = 2020,
    .arxiv = "1911.05507",
    .source =
        "paper, section 3; order and eviction as in lucidrains/compressive-transformer-pytorch",
    .formula = "keys = cmem, mem, segment;  output_i = softmax(q_i keys^T / sqrt(d)) values\n"
               "oldest tokens leave mem, every ratio of them become one slot of cmem",
    .problem = "A memory of past tokens is dropped once it is full.",
    .idea = "The oldest memories are compressed, several tokens into one slot, and kept longer.",
    .price = "Old tokens are blended and cannot be told apart any more.",
    .lesson = "recurrence",
    .teaches = "Three bands that slide right by a segment at a time: the segment, the memory token "
               "by token, and before it slots that stand for ratio tokens each: columns of equal "
               "weight.  The same cache reaches mem_len + ratio cmem_len tokens back.",
    .picture = "components",
    .example = "segment=8,mem_len=8,cmem_len=4",
    .classes = CLASS_RC,
    .claim_time = "O(n (segment + mem_len + cmem_len))",
    .claim_memory = "O(segment (segment + mem_len + cmem_len))",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .no_at_end = "it reads the sequence segment by segment, each with its queries",
    .or_x = true,
    .positions = POSITION_INPUT,
    .views = views,
    .notes = notes,
    .size = "mem_len",
    .params = params,
    .params_size = sizeof(Params),
    .check = compressive_check,
    .run = compressive_run,
    .flops = compressive_flops,
    .decode = compressive_decode,
};
