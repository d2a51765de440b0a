/* sparse_ffn.c -- see sparse_ffn.h. */
#include <math.h>
#include <string.h>

#include "attn/mech/routing/sparse_ffn.h"
#include "attn/ops/dense.h"
#include "attn/run.h"

#define TILE (1 << 21) /* controller logits held at a time */
#define LANES 8

typedef struct Units {
    SparseFfn layer;
    int64_t   n, dm, rank, units, block, blocks;
    float    *turned;  /* [units,dm] w1 transposed */
    const float *x;
    double   *low;     /* [n,rank] x C1, for the readers; or NULL */
    int32_t  *on;      /* [n,blocks] active unit of each block, numbered within the block */
    float    *hidden;  /* [n,blocks] its value */
    double   *share;   /* [n,blocks] its probability; or NULL */
} Units;

/* ---- controller ------------------------------------------------------------- */

/* Copies all entries of x, as dtype, to `to`. */
static void sparse_keep(Run *r, Tensor x, DType dtype, void *to)
{
    op_entries(r, tensor_with_rank(x, 3), ENTRY_CAST, 0,
               tensor_of(dtype, 3, tensor_with_rank(x, 3).shape, to));
}

/* f64 [1,rows,1]: the largest probability of each row, which is that of the active unit. */
static Tensor shares(Run *r, Tensor logits)
{
    op_softmax_rows(r, &(SoftmaxRows){ .x = logits });
    return op_best_columns(r, &(BestColumns){ .x = logits, .k = 1 }).value;
}

/* Tokens [first, first+count). */
static void control(Run *r, Units *s, int64_t first, int64_t count)
{
    Tensor x = tensor_of(DT_F32, 3, (int64_t[]){ 1, count, s->dm },
                         tensor_f32(&r->x) + first * s->dm);
    Tensor low = op_dots64(r, x, tensor_with_rank(s->layer.c1, 3)), logits, on;

    logits = dense_linear(r, low, tensor_with_rank(s->layer.c2, 3),
                          tensor_with_rank(s->layer.cb, 2), s->units);
    logits = tensor_of(DT_F64, 3, (int64_t[]){ 1, count * s->blocks, s->block }, logits.data);
    on = op_argmax(r, logits, false);
    if (run_failed(r))
        return;
    sparse_keep(r, on, DT_I32, s->on + first * s->blocks);
    if (s->low)
        sparse_keep(r, low, DT_F64, s->low + first * s->rank);
    if (s->share)
        sparse_keep(r, shares(r, logits), DT_F64, s->share + first * s->blocks);
}

static void controller(Run *r, Units *s)
{
    int64_t places = s->n * s->blocks, tile = TILE / s->units + 1;

    run_stage(r, "controller");
    s->on = run_alloc(r, places, sizeof(*s->on));
    if (run_wants_views(r))
        s->low = run_alloc(r, s->n * s->rank, sizeof(*s->low));
    if (s->layer.multiply) {
        s->share = run_alloc(r, places, sizeof(*s->share));
        op_charge(r, FLOP_OVERHEAD, FLOPS_SOFTMAX * (double)s->n * (double)s->units);
    }
    for (int64_t first = 0; first < s->n && !run_failed(r); first += tile) {
        ArenaMark mark = arena_mark(r->arena);

        control(r, s, first, s->n - first < tile ? s->n - first : tile);
        arena_release(r->arena, mark);
    }
}

/* x . w in LANES partial sums, which are added at the end. */
static float sparse_dot(const float *x, const float *w, int64_t count)
{
    float   lane[LANES] = { 0 }, sum = 0;
    int64_t c = 0;

    for (; c + LANES <= count; c += LANES)
        for (int t = 0; t < LANES; t++)
            lane[t] += x[c + t] * w[c + t];
    for (; c < count; c++)
        sum += x[c] * w[c];
    for (int t = 0; t < LANES; t++)
        sum += lane[t];
    return sum;
}

static float relu(float x)
{
    return x < 0 ? 0 : x;
}

/* i32 [1,n,blocks]: the active units, numbered over all blocks. */
static Tensor units_on(Run *r, const Units *s)
{
    Tensor index = run_tensor3(r, DT_I32, 1, s->n, s->blocks);
    Tensor first = run_tensor3(r, DT_I32, 1, 1, s->blocks);

    for (int64_t b = 0; b < s->blocks && !run_failed(r); b++)
        tensor_i32(&first)[b] = (int32_t)(b * s->block);
    op_entries_of(r, tensor_of(DT_I32, 3, index.shape, s->on), first, ENTRY_SUM, 1, index);
    return index;
}

static void sparse_compute(Run *r, Units *s)
{
    Tensor   index = units_on(r, s), value;
    SumLists in = { .x = tensor_with_rank(s->layer.w2, 3),
                    .start = sum_lists_even(r, s->n, s->blocks), .entry = index.data,
                    .heads = 1, .n = s->n };

    value = op_pair_dots(r, tensor_with_rank(r->x, 3),
                         tensor_of(DT_F32, 3, (int64_t[]){ 1, s->units, s->dm }, s->turned), index);
    op_entries(r, value, ENTRY_RELU, 0, value);
    if (s->share)
        op_entries_of(r, value, tensor_of(DT_F64, 3, value.shape, s->share), ENTRY_PRODUCT, 1,
                      value);
    in.weight = s->hidden = value.data;
    r->out = op_sum_lists(r, &in);
    op_entries_of(r, r->out, s->layer.b2, ENTRY_SUM, 1, r->out);
}

/* ---- views ------------------------------------------------------------- */

static void read_active(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Units *s = view->context;
    bool       ones = view->kind == VIEW_ROUTING;

    (void)head;
    for (int64_t c = 0; c < count; c++) {
        int64_t unit = start + c * step, at = i * s->blocks + unit / s->block;

        out[c] = s->on[at] != unit % s->block ? 0 : ones ? 1 : s->hidden[at];
    }
}

static double logit_of(const Units *s, int64_t i, int64_t unit)
{
    double sum = (double)tensor_f32(&s->layer.cb)[unit];

    for (int64_t t = 0; t < s->rank; t++)
        sum += s->low[i * s->rank + t] * (double)tensor_f32(&s->layer.c2)[t * s->units + unit];
    return sum;
}

static void read_controller(const View *view, int64_t head, int64_t i, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    const Units *s = view->context;
    int64_t    block = -1;
    double     most = 0, sum = 0;

    (void)head;
    for (int64_t c = 0; c < count; c++) {
        int64_t unit = start + c * step, first = unit / s->block * s->block;

        if (block != unit / s->block) {
            block = unit / s->block;
            most = logit_of(s, i, first + s->on[i * s->blocks + block]);
            sum = 0;
            for (int64_t t = 0; t < s->block; t++)
                sum += exp(logit_of(s, i, first + t) - most);
        }
        out[c] = (float)(exp(logit_of(s, i, unit) - most) / sum);
    }
}

static void read_dense(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    const Units *s = view->context;

    (void)head;
    for (int64_t c = 0; c < count; c++)
        out[c] = relu(sparse_dot(s->x + i * s->dm, s->turned + (start + c * step) * s->dm, s->dm));
}

/* How often each unit was active. */
static const ViewLoad *unit_load(Run *r, const Units *s)
{
    ViewLoad *load = run_alloc(r, 1, sizeof(*load));
    int64_t   dead = 0;

    if (!load)
        return NULL;
    *load = (ViewLoad){ .used_name = "tokens" };
    load->used = run_tensor1(r, DT_I32, s->units);
    if (run_failed(r))
        return NULL;
    memset(load->used.data, 0, (size_t)tensor_bytes(&load->used));
    for (int64_t x = 0; x < s->n * s->blocks; x++)
        tensor_i32(&load->used)[x % s->blocks * s->block + s->on[x]]++;
    for (int64_t c = 0; c < s->units; c++)
        dead += tensor_i32(&load->used)[c] == 0;
    run_figure_int(r, "units", s->units);
    run_figure_int(r, "units_never_active", dead);
    return load;
}

static Pattern *active_cells(Run *r, const Units *s)
{
    Tensor table = run_tensor2(r, DT_I32, s->n, s->blocks);

    for (int64_t x = 0; x < s->n * s->blocks && !run_failed(r); x++)
        tensor_i32(&table)[x] = (int32_t)(x % s->blocks * s->block) + s->on[x];
    if (run_failed(r))
        return NULL;
    return pattern_table(r->arena, (PatternShape){ .heads = 1, .n = s->n, .m = s->units }, &table,
                         COMPONENT_OTHER);
}

static View *show_units(Run *r, const Units *s, const char *name, ViewKind kind, ViewReadRun read,
                        const Pattern *support)
{
    View *view = view_add(r, name, kind, DT_F32, 2, (int64_t[]){ s->n, s->units });

    if (!view)
        return NULL;
    view->read = read;
    view->context = s;
    view->support = support;
    view->rows = "token";
    view->cols = "unit";
    return view;
}

static void show_routing(Run *r, const Units *s)
{
    Pattern *active;
    View    *view;

    if (!run_wants_views(r))
        return;
    active = active_cells(r, s);
    view = show_units(r, s, "routing", VIEW_ROUTING, read_active, active);
    if (view)
        view->load = unit_load(r, s);
    show_units(r, s, "controller", VIEW_FEATURES, read_controller, NULL);
    view_tensor(r, "blocks", VIEW_BUCKETS,
                tensor_of(DT_I32, 2, (int64_t[]){ s->n, s->blocks }, s->on), "token", "block");
    if (!active)
        run_fail(r, ERR_NOMEM, "scaling: not enough memory for a view");
}

/* The values of the active units, under the bars of `routing`. */
static void show_hidden(Run *r, const Units *s)
{
    const View *routing = run_view(r, "routing");
    View       *view = show_units(r, s, "hidden", VIEW_FEATURES, read_active,
                                  routing ? routing->support : NULL);

    if (view && routing)
        view->load = routing->load;
}

static void sparse_turn(Run *r, Units *s)
{
    s->turned = dense_turned(r, tensor_with_rank(s->layer.w1, 3)).data;
}

void sparse_ffn(Run *r, const SparseFfn *layer)
{
    Units *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */

    if (!s)
        return;
    *s = (Units){ .layer = *layer, .n = r->n, .dm = r->dm, .rank = layer->c1.shape[1],
                  .units = layer->w1.shape[1], .block = layer->block, .x = r->x.data };
    s->blocks = s->units / s->block;
    controller(r, s);
    show_routing(r, s);
    run_stage(r, "units");
    sparse_turn(r, s);
    sparse_compute(r, s);
    op_charge(r, FLOP_OVERHEAD, 4 * (double)s->n * (double)s->dm * (double)s->blocks);
    show_hidden(r, s);
    show_units(r, s, "dense_hidden", VIEW_FEATURES, read_dense, NULL);
}

/* Sets each row of t [1,n,modules*size] to b (of all modules, or of one, repeated), or to 0. */
static void sparse_fill_rows(Run *r, Tensor t, Tensor b, int64_t size)
{
    int64_t shape[3] = { t.shape[1], t.shape[2] / size, size };

    if (b.data)
        op_entries(r, tensor_with_rank(b, 1), ENTRY_CAST, 0, tensor_of(DT_F32, 3, shape, t.data));
    else
        op_entries(r, b, ENTRY_FILL, 0, t);
}

Tensor factored_dense(Run *r, Tensor x, Tensor d, Tensor e, Tensor b)
{
    int64_t   n = x.shape[1], dm = x.shape[2], modules = d.shape[0], size = e.shape[1];
    Tensor    out = run_tensor3(r, DT_F32, 1, n, modules * size);
    ArenaMark mark = arena_mark(r->arena);
    Tensor    scaled = run_tensor3(r, DT_F32, 1, n, dm);

    e = tensor_with_rank(e, 3);
    sparse_fill_rows(r, out, b, modules * size);
    for (int64_t s = 0; s < modules && !run_failed(r); s++) {
        Tensor factor = tensor_of(DT_F32, 1, &dm, tensor_f32(&d) + s * dm);

        op_entries_of(r, x, factor, ENTRY_PRODUCT, 1, scaled);
        op_gemm(r, scaled, false, e, false, 1, 1, tensor_columns(out, s * size, size),
                FLOP_OVERHEAD);
    }
    op_charge(r, FLOP_OVERHEAD, (double)n * (double)modules * (double)dm);
    arena_release(r->arena, mark);
    return out;
}

/* z with L - 1 rows of 0 before it and `side` modules of 0 on either side. */
static Tensor padded(Run *r, Tensor z, int64_t size, int64_t before, int64_t side)
{
    int64_t n = z.shape[1], wide = z.shape[2] + 2 * side * size;
    Tensor  out = run_tensor3(r, DT_F32, 1, n + before, wide);

    if (run_failed(r))
        return out;
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, out);
    op_entries(r, z, ENTRY_CAST, 0,
               tensor_columns(tensor_rows(out, before, n), side * size, z.shape[2]));
    return out;
}

Tensor factored_conv(Run *r, Tensor z, Tensor kernel, Tensor b)
{
    int64_t   n = z.shape[1], length = kernel.shape[0], width = kernel.shape[1];
    int64_t   size = kernel.shape[2], modules = z.shape[2] / size;
    Tensor    out = run_tensor3(r, DT_F32, 1, n, z.shape[2]);
    ArenaMark mark = arena_mark(r->arena);
    Tensor    wide = padded(r, z, size, length - 1, (width - 1) / 2);

    sparse_fill_rows(r, out, b, size);
    for (int64_t t = 0; t < length * width * modules && !run_failed(r); t++) {
        int64_t a = t / modules / width, c = t / modules % width, s = t % modules;
        Tensor  from = tensor_columns(wide, (s + c) * size, size);
        Tensor  k = tensor_of(DT_F32, 3, (int64_t[]){ 1, size, size },
                              tensor_f32(&kernel) + (a * width + c) * size * size);

        from.shape[1] = n;
        from.data = tensor_f32(&from) + a * wide.shape[2];
        op_gemm(r, from, false, k, false, 1, 1, tensor_columns(out, s * size, size),
                FLOP_OVERHEAD);
    }
    arena_release(r->arena, mark);
    return out;
}
