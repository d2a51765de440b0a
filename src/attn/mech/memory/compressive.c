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
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { BY_MEAN, BY_MAX, BY_CONV, BY_DILATED, BY_USE };
static const char *const ways[] = { "mean", "max", "conv", "dilated-conv", "most-used", NULL };

typedef struct Params {
    int64_t segment, mem_len, cmem_len, ratio, heads;
    int     compress;
    double  scale;
    Tensor  conv_weight, conv_bias, wq, wk, wv;
} Params;

static const Param params[] = {
    PARAM_INT(Params, segment, 64, 1, INT32_MAX, "tokens read at once"),
    PARAM_INT(Params, mem_len, 64, 0, INT32_MAX, "tokens kept as they were"),
    PARAM_INT(Params, cmem_len, 64, 0, INT32_MAX, "compressed slots; 0: transformer-xl"),
    PARAM_INT(Params, ratio, 4, 1, INT32_MAX, "tokens made into one slot"),
    PARAM_ENUM(Params, compress, BY_MEAN, ways, "how"),
    PARAM_TENSOR(Params, conv_weight, "[ratio], or with x [ratio,dm,dm]",
                 "taps 1/ratio + N(0, (0.1/ratio)^2); full uniform +-1/sqrt(ratio dm)",
                 "conv, dilated-conv: a number for each row; conv of x: a matrix"),
    PARAM_TENSOR(Params, conv_bias, "[dm]", "0", "of the full convolution"),
    PARAM_INT(Params, heads, 1, 1, INT32_MAX, "with x: heads made of it"),
    PARAM_TENSOR(Params, wq, "[dm,heads d]", "Glorot uniform", "with x: queries, head by head"),
    PARAM_TENSOR(Params, wk, "[dm,heads d]", "Glorot uniform", "with x: keys"),
    PARAM_TENSOR(Params, wv, "[dm,heads e]", "Glorot uniform", "with x: values"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

/* ---- q, k, v or x --------------------------------------------------------------- */

/* Where both are there, what only x has a use for decides. */
static bool from_x(const Run *r, const Params *p)
{
    bool asks = run_is_given(r, "heads") || p->wq.data || p->wk.data || p->wv.data ||
                (p->compress == BY_CONV && p->conv_weight.rank == 3);

    return r->x.data && (asks || !r->q.data || !r->k.data || !r->v.data);
}

/* One matrix of the model for each of the ratio rows. */
static bool is_full(const Run *r, const Params *p)
{
    return p->compress == BY_CONV && from_x(r, p) &&
           (!p->conv_weight.data || p->conv_weight.rank == 3);
}

static void compressive_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          x = from_x(r, p), taps = p->compress == BY_CONV || p->compress == BY_DILATED;

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
static Tensor projection(Run *r, const char *name, Tensor given, int64_t w)
{
    int64_t cols = r->h * w;
    Tensor  t = layer_weight(r, name, given, 2, (int64_t[]){ r->dm, cols },
                             (Init){ INIT_GLOROT, (double)(r->dm + cols) });

    return (Tensor){ .dtype = DT_F32, .rank = 3, .shape = { r->h, r->dm, w },
                     .stride = { w, cols, 1 }, .data = t.data };
}

typedef struct Model {
    const Params     *p;
    CompressedMemory *memory;
    AttendInput       in;          /* of all tokens */
    Tensor            x, wk, wv;   /* x [1,n,dm]; data NULL: k and v are compressed */
    Tensor            slot_k, slot_v, slot_x; /* [h',slots,.] */
    double           *taps;
    Tensor            full, bias;  /* [1,ratio dm,dm], [dm] */
    Tensor            lse;         /* [h,n] */
    Tensor            loss;        /* f32 [segments,h]; views only */
    CompressedViews  *views;
    bool              linear;      /* a slot is a mixture with known shares */
} Model;

static void project(Run *r, Model *m)
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
    wq = projection(r, "wq", p->wq, d);
    m->wk = projection(r, "wk", p->wk, d);
    m->wv = projection(r, "wv", p->wv, e);
    r->q = run_tensor3(r, DT_F32, r->h, r->n, d);
    r->k = run_tensor3(r, DT_F32, r->h, r->n, d);
    r->v = run_tensor3(r, DT_F32, r->h, r->n, e);
    op_gemm(r, m->x, false, wq, false, 1, 0, r->q, FLOP_NONE);
    op_gemm(r, m->x, false, m->wk, false, 1, 0, r->k, FLOP_NONE);
    op_gemm(r, m->x, false, m->wv, false, 1, 0, r->v, FLOP_NONE);
    m->in = run_attend_input(r, p->scale);
}

/* ---- the convolution's weights ------------------------------------------------------ */

static double *taps_of(Run *r, const Params *p)
{
    int64_t count = p->conv_weight.data || p->ratio < r->n ? p->ratio : r->n; /* no row has more */
    Tensor  t = { .rank = 0 };
    Rng     rng = run_rng(r, "conv_weight");
    double *taps;

    if (p->conv_weight.data) {
        t = layer_given(r, "conv_weight", p->conv_weight, 1, &count);
    } else {
        t = run_tensor1(r, DT_F32, count);
        run_draw(r, &rng, (Init){ INIT_NORMAL, 0.1 / (double)p->ratio }, t);
        for (int64_t u = 0; u < count && !run_failed(r); u++)
            tensor_f32(&t)[u] += (float)(1 / (double)p->ratio);
        if (!run_failed(r))
            view_drawn(r, "conv_weight", t);
    }
    taps = run_alloc(r, count, sizeof(*taps));
    for (int64_t u = 0; u < count && !run_failed(r); u++)
        taps[u] = (double)tensor_f32(&t)[u];
    return taps;
}

static void take_weights(Run *r, Model *m)
{
    const Params *p = m->p;
    int64_t       dm = r->dm;

    if (is_full(r, p)) {
        m->full = layer_weight(r, "conv_weight", p->conv_weight, 3, (int64_t[]){ p->ratio, dm, dm },
                               (Init){ INIT_UNIFORM, 1 / sqrt((double)p->ratio * (double)dm) });
        m->full = tensor_of(DT_F32, 3, (int64_t[]){ 1, p->ratio * dm, dm }, m->full.data);
        m->bias = layer_given(r, "conv_bias", p->conv_bias, 1, &dm);
    } else if (p->compress == BY_CONV || p->compress == BY_DILATED) {
        m->taps = taps_of(r, p);
    }
}

/* ---- compression -------------------------------------------------------------------- */

/* Column `c` of the slot: rows are `ld` apart, `count` of them are in its group and `after`
 * from its first to the batch's end. */
static double squeeze(const Model *m, const float *row, int64_t ld, int64_t count, int64_t after)
{
    double sum = m->p->compress == BY_MAX ? (double)row[0] : 0;

    switch (m->p->compress) {
    case BY_MAX:
        for (int64_t u = 1; u < count; u++)
            sum = fmax(sum, (double)row[u * ld]);
        return sum;
    case BY_CONV:
        for (int64_t u = 0; u < count; u++)
            sum += m->taps[u] * (double)row[u * ld];
        return sum;
    case BY_DILATED:
        for (int64_t u = 0; u < m->p->ratio && 2 * u < after; u++)
            sum += m->taps[u] * (double)row[2 * u * ld];
        return sum;
    case BY_USE: return (double)row[0];
    default:
        for (int64_t u = 0; u < count; u++)
            sum += (double)row[u * ld];
        return sum / (double)count;
    }
}

/* Slots of segment t's batch, from the rows of `from` [h',n,w] to `to` [h',slots,w]. */
static void squeeze_batch(Run *r, const Model *m, int64_t t, Tensor from, Tensor to)
{
    const CompressedMemory *c = m->memory;
    int64_t                 first, end, w = from.shape[2];

    compressed_memory_batch(c, t, &first, &end);
    for (int64_t head = 0; head < from.shape[0]; head++)
        for (int64_t s = c->made[t]; s < c->made[t + 1]; s++) {
            const float *row = tensor_f32(&from) + head * from.stride[0] +
                               c->first[s] * from.stride[1];
            float       *slot = tensor_f32(&to) + head * to.stride[0] + s * w;

            if (run_failed(r))
                return;
            for (int64_t x = 0; x < w; x++)
                slot[x] = (float)squeeze(m, row + x, from.stride[1], c->end[s] - c->first[s],
                                         end - c->first[s]);
        }
}

/* ratio rows beside each other are one row; the last may have fewer of them. */
static void convolve_batch(Run *r, const Model *m, int64_t t)
{
    const CompressedMemory *c = m->memory;
    int64_t                 first, end, dm = r->dm, wide = m->p->ratio * dm, whole, left;
    Tensor                  rows, matrix = m->full, to = m->slot_x;

    compressed_memory_batch(c, t, &first, &end);
    whole = (end - first) / m->p->ratio;
    left = (end - first) % m->p->ratio;
    rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, whole, wide },
                     run_failed(r) ? NULL : tensor_f32(&m->x) + first * dm);
    if (run_failed(r))
        return;
    if (whole)
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t], whole), FLOP_NONE);
    matrix.shape[1] = left * dm;
    rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, 1, left * dm }, tensor_f32(&rows) + whole * wide);
    if (left)
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t] + whole, 1),
                FLOP_NONE);
    for (int64_t x = c->made[t] * dm; x < c->made[t + 1] * dm && m->bias.data; x++)
        tensor_f32(&to)[x] += tensor_f32(&m->bias)[x % dm];
}

/* The slots that most attention goes to; of equals the older. */
static void choose_used(Run *r, const Model *m, int64_t t, const AttendInput *part)
{
    CompressedMemory *c = m->memory;
    Tensor            usage, best;
    int64_t           first, end, oldest, slots = compressed_memory_seen(c, t, &oldest);

    compressed_memory_batch(c, t, &first, &end);
    usage = op_key_usage(r, part->q, part->k, part->scale, r->causal);
    if (run_failed(r))
        return;
    usage = tensor_of(DT_F64, 3, (int64_t[]){ 1, end - first, 1 }, (double *)usage.data + slots);
    best = op_top_k(r, usage, c->made[t + 1] - c->made[t]);
    for (int64_t s = c->made[t]; s < c->made[t + 1] && !run_failed(r); s++)
        compressed_memory_choose(c, s, first + tensor_i32(&best)[s - c->made[t]]);
}

/* FLOPs of compressing E rows of all heads. */
static double squeeze_flops(const Run *r, const Params *p, int64_t rows)
{
    bool   x = from_x(r, p);
    double width = x ? (double)r->dm : (double)r->h * (double)(r->d + r->e), e = (double)rows;

    if (p->compress == BY_USE)
        return e * log2(e);
    if (is_full(r, p))
        return 2 * e * (double)r->dm * (double)r->dm;
    return (p->compress == BY_CONV || p->compress == BY_DILATED ? 2 : 1) * e * width;
}

static void compress(Run *r, const Model *m, int64_t t, const AttendInput *part)
{
    CompressedMemory *c = m->memory;
    int64_t           first, end, made = c->made[t + 1] - c->made[t];

    compressed_memory_batch(c, t, &first, &end);
    if (c->cover == COVER_ONE)
        choose_used(r, m, t, part);
    op_charge(r, FLOP_OVERHEAD, squeeze_flops(r, m->p, end - first));
    if (!m->x.data) {
        squeeze_batch(r, m, t, m->in.k, m->slot_k);
        squeeze_batch(r, m, t, m->in.v, m->slot_v);
    } else {
        if (m->full.data)
            convolve_batch(r, m, t);
        else
            squeeze_batch(r, m, t, m->x, m->slot_x);
        op_gemm(r, tensor_rows(m->slot_x, c->made[t], made), false, m->wk, false, 1, 0,
                tensor_rows(m->slot_k, c->made[t], made), FLOP_NONE);
        op_gemm(r, tensor_rows(m->slot_x, c->made[t], made), false, m->wv, false, 1, 0,
                tensor_rows(m->slot_v, c->made[t], made), FLOP_NONE);
    }
    run_trace(r, "tokens squeezed", (double)(end - first));
    run_trace(r, "slots made", (double)made);
}

/* ---- what was lost ------------------------------------------------------------------- */

/* f64 [h,queries,e]: attention of a segment to some rows alone; only views ask. */
static Tensor attend_alone(Run *r, const Model *m, Tensor q, Tensor k, Tensor v)
{
    int64_t keys = k.shape[1];
    Tensor  p = run_tensor3(r, DT_F64, r->h, q.shape[1], keys);
    Tensor  out = run_tensor3(r, DT_F64, r->h, q.shape[1], r->e);

    op_gemm(r, q, false, k, true, m->in.scale, 0, p, FLOP_NONE);
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

/* The attention-reconstruction loss of the paper, of one segment. */
static void reconstruct(Run *r, const Model *m, int64_t t, Tensor q)
{
    const CompressedMemory *c = m->memory;
    ArenaMark               mark = arena_mark(r->arena);
    int64_t                 first, end, made = c->made[t + 1] - c->made[t];
    int64_t                 size = q.shape[1] * r->e;
    Tensor                  before, after;
    double                  mean = 0;

    compressed_memory_batch(c, t, &first, &end);
    before = attend_alone(r, m, q, tensor_rows(m->in.k, first, end - first),
                          tensor_rows(m->in.v, first, end - first));
    after = attend_alone(r, m, q, tensor_rows(m->slot_k, c->made[t], made),
                         tensor_rows(m->slot_v, c->made[t], made));
    for (int64_t head = 0; head < r->h && !run_failed(r); head++) {
        double sum = 0;

        for (int64_t x = head * size; x < (head + 1) * size; x++) {
            double lost = ((double *)before.data)[x] - ((double *)after.data)[x];

            sum += lost * lost;
        }
        tensor_f32(&m->loss)[t * r->h + head] = (float)sqrt(sum);
        mean += sqrt(sum) / (double)r->h;
    }
    arena_release(r->arena, mark);
    run_trace(r, "attention lost", mean);
}

/* ---- segments ------------------------------------------------------------------------ */

/* [h', slots + tokens, w]: the slots first, then tokens [from, to). */
static Tensor joined(Run *r, Tensor slots, int64_t first, int64_t count, Tensor tokens,
                     int64_t from, int64_t to)
{
    int64_t w = tokens.shape[2], rows = count + to - from;
    Tensor  y = run_tensor3(r, DT_F32, tokens.shape[0], rows, w);

    for (int64_t head = 0; head < tokens.shape[0] && !run_failed(r); head++) {
        float *at = tensor_f32(&y) + head * rows * w;

        memcpy(at, tensor_f32(&slots) + head * slots.stride[0] + first * w,
               (size_t)(count * w) * sizeof(float));
        memcpy(at + count * w, tensor_f32(&tokens) + head * tokens.stride[0] + from * w,
               (size_t)((to - from) * w) * sizeof(float));
    }
    return y;
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
        part.k = joined(r, m->slot_k, first, slots, m->in.k, a, end);
        part.v = joined(r, m->slot_v, first, slots, m->in.v, a, end);
    }
    return part;
}

static Pattern *segment_cells(Run *r, const AttendInput *part)
{
    PatternShape s = { .heads = r->h, .n = part->q.shape[1], .m = part->k.shape[1] };

    return pattern_band(r->arena, s, -s.n, r->causal ? s.m - s.n : s.m, 1, COMPONENT_BLOCK);
}

static void read_segment(Run *r, const Model *m, int64_t t, int64_t *batches)
{
    ArenaMark   mark = arena_mark(r->arena);
    bool        shown = recurrence_shows(r, t); /* its keys are kept */
    int64_t     b = recurrence_start(&m->memory->recurrence, t), first, end;
    AttendInput part;

    run_iteration(r, "segment", t);
    run_trace(r, "slots", (double)compressed_memory_seen(m->memory, t, &first));
    run_trace(r, "tokens remembered", (double)(b - recurrence_memory(&m->memory->recurrence, t)));
    part = segment_input(r, m, t);
    recurrence_attend(r, &part, segment_cells(r, &part), b, r->out, m->lse);
    if (shown)
        recurrence_show_segment(r, &part, m->lse, b, part.k.shape[1] - part.q.shape[1],
                                segment_cells(r, &part));
    if (compressed_memory_batch(m->memory, t, &first, &end)) {
        run_iteration(r, "compress", (*batches)++);
        compress(r, m, t, &part);
        if (run_wants_views(r))
            reconstruct(r, m, t, part.q);
        if (shown)
            compressed_memory_show_squeezed(r, m->views, m->linear, m->memory->made[t + 1]);
    }
    if (!shown)
        arena_release(r->arena, mark);
}

/* ---- the mechanism ------------------------------------------------------------------- */

/* What the readers keep, and what only views want. */
static void prepare_views(Run *r, Model *m)
{
    const Params *p = m->p;

    if (!run_wants_views(r))
        return;
    m->linear = p->compress != BY_MAX && !m->full.data;
    m->loss = run_tensor2(r, DT_F32, m->memory->recurrence.count, r->h);
    m->views = run_alloc(r, 1, sizeof(*m->views));
    if (!m->views)
        return;
    memset(m->loss.data, 0, (size_t)tensor_bytes(&m->loss));
    *m->views = (CompressedViews){ .memory = m->memory, .tokens = m->in, .slots = m->in,
                                   .lse = m->lse, .taps = m->taps, .cmem_len = p->cmem_len,
                                   .mem_len = p->mem_len, .segment = p->segment, .heads = r->h };
    m->views->slots.k = m->slot_k;
}

static void show(Run *r, const Model *m)
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
    view_stage(r, NULL, -1);
}

static Model *model_new(Run *r, const Params *p)
{
    Model *m = run_alloc(r, 1, sizeof(*m));
    SlotCover cover = p->compress == BY_USE ? COVER_ONE : p->compress == BY_DILATED ? COVER_SPREAD
                                                                                   : COVER_GROUP;
    int64_t slots;

    if (!m)
        return NULL;
    *m = (Model){ .p = p };
    if (from_x(r, p))
        project(r, m);
    else
        m->in = run_attend_input(r, p->scale);
    m->in.softmax_flops = FLOPS_ROW_SOFTMAX;
    take_weights(r, m);
    m->memory = compressed_memory_new(r, recurrence_of(r, p->segment, p->mem_len), cover,
                                      p->cmem_len, p->ratio);
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
        read_segment(r, m, t, &batches);
    if (run_failed(r))
        return;
    show(r, m);
    run_figure_int(r, "cache_floats",
                   (m->memory->recurrence.mem_len + p->cmem_len) * (r->d + r->e));
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
            sum.overhead += squeeze_flops(r, p, end - first);
    }
    sum.score = 2 * h * cells * (double)r->d;
    sum.mix = 2 * h * cells * (double)r->e;
    sum.overhead += FLOPS_ROW_SOFTMAX * h * cells;
    return sum;
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

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }
static const ViewPromise views[] = {
    { .name = "connectivity",
      .kind = VIEW_PATTERN,
      .help = "tokens that a query sees, in whatever "
              "slot" },
    { .name = "components",
      .kind = VIEW_COMPONENTS,
      .help = "where it sees them: compressed, in "
              "memory, in its segment" },
    { .name = "weights",
      .kind = VIEW_WEIGHTS,
      .maybe = true,
      .help = "weights on tokens (not for max and the full convolution)" },
    { .name = "slot_weights", .kind = VIEW_WEIGHTS, .help = "weights on slots, memory, segment" },
    { .name = "memory",
      .kind = VIEW_TENSOR,
      .maybe = true,
      .help = "tokens of every slot as each segment begins (where there is a slot)" },
    { .name = "bands",
      .kind = VIEW_COMPONENTS,
      .help = "what each segment has: slots, memory, "
              "itself" },
    { .name = "squeezed",
      .kind = VIEW_WEIGHTS,
      .maybe = true,
      .help = "share of each token in each slot ever made" },
    { .name = "reconstruction", .kind = VIEW_TENSOR, .help = "what attention lost by compression" },
    { .name = "segment_weights",
      .kind = VIEW_WEIGHTS,
      .help = "weights of one segment on all it "
              "sees" },
    { .name = "reach_tokens",
      .kind = VIEW_COUNT,
      .help = "tokens back that a query is reached from "
              "after so many layers" },
    { .name = "reach_segments", .kind = VIEW_COUNT, .help = "the same in segments" },
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
    .or_x = true,
    .positions = POSITION_INPUT,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = compressive_check,
    .run = compressive_run,
    .flops = compressive_flops,
};
