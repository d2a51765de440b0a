/* sparse_ffn.c -- see sparse_ffn.h. */
#include "attn/sparse_ffn.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

#define TILE (1 << 21) /* controller logits held at a time */
#define ROWS 16        /* tokens of one item of work */
#define LANES 8

typedef struct Units {
    SparseFfn layer;
    int64_t   n, dm, rank, units, block, blocks;
    float    *turned;  /* [units,dm] w1 by units */
    const float *x;
    double   *low;     /* [n,rank] x C1, for the readers; or NULL */
    int32_t  *on;      /* [n,blocks] active unit of each block, counted in the block */
    float    *hidden;  /* [n,blocks] its value */
    double   *share;   /* [n,blocks] its probability; or NULL */
    float    *out;
} Units;

/* ---- controller ------------------------------------------------------------- */

/* Probability of unit `unit` among the logits of its block. */
static double share_of(const double *logits, int64_t count, int64_t unit)
{
    double most = logits[0], sum = 0;

    for (int64_t c = 1; c < count; c++)
        most = fmax(most, logits[c]);
    for (int64_t c = 0; c < count; c++)
        sum += exp(logits[c] - most);
    return exp(logits[unit] - most) / sum;
}

/* Tokens [first, first+count). */
static void control(Run *r, Units *s, int64_t first, int64_t count)
{
    Tensor x = tensor_of(DT_F32, 3, (int64_t[]){ 1, count, s->dm },
                         tensor_f32(&r->x) + first * s->dm);
    Tensor low = op_dots64(r, x, tensor_with_rank(s->layer.c1, 3)), logits, on;

    logits = exact_linear(r, low, tensor_with_rank(s->layer.c2, 3),
                          tensor_with_rank(s->layer.cb, 2), s->units);
    logits = tensor_of(DT_F64, 3, (int64_t[]){ 1, count * s->blocks, s->block }, logits.data);
    on = op_argmax(r, logits, false);
    if (run_failed(r))
        return;
    memcpy(s->on + first * s->blocks, on.data, (size_t)tensor_bytes(&on));
    if (s->low)
        memcpy(s->low + first * s->rank, low.data, (size_t)tensor_bytes(&low));
    for (int64_t b = 0; s->share && b < count * s->blocks; b++)
        s->share[first * s->blocks + b] = share_of((double *)logits.data + b * s->block, s->block,
                                                   tensor_i32(&on)[b]);
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

/* x . w in several lanes, added up at the end. */
static float dot(const float *x, const float *w, int64_t count)
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

static void unit_token(const Units *s, int64_t i)
{
    const float *x = s->x + i * s->dm;
    float       *out = s->out + i * s->dm;

    memcpy(out, s->layer.b2.data, (size_t)s->dm * sizeof(*out));
    for (int64_t b = 0; b < s->blocks; b++) {
        int64_t      at = i * s->blocks + b, unit = b * s->block + s->on[at];
        float        value = relu(dot(x, s->turned + unit * s->dm, s->dm));
        const float *w2 = tensor_f32(&s->layer.w2) + unit * s->dm;

        if (s->share)
            value = (float)((double)value * s->share[at]);
        s->hidden[at] = value;
        for (int64_t c = 0; c < s->dm; c++)
            out[c] += value * w2[c];
    }
}

static void unit_item(void *context, int64_t item, int worker)
{
    const Units *s = context;

    (void)worker;
    for (int64_t i = item * ROWS; i < s->n && i < (item + 1) * ROWS; i++)
        unit_token(s, i);
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
        out[c] = relu(dot(s->x + i * s->dm, s->turned + (start + c * step) * s->dm, s->dm));
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

static void turn(Run *r, Units *s)
{
    int64_t count = s->units * s->dm;

    s->turned = run_alloc(r, count, sizeof(*s->turned));
    for (int64_t c = 0; c < count && !run_failed(r); c++)
        s->turned[c] = tensor_f32(&s->layer.w1)[c % s->dm * s->units + c / s->dm];
}

void sparse_ffn(Run *r, const SparseFfn *layer)
{
    Units *s = run_alloc(r, 1, sizeof(*s)); /* the readers keep it */

    if (!s)
        return;
    *s = (Units){ .layer = *layer, .n = r->n, .dm = r->dm, .rank = layer->c1.shape[1],
                  .units = layer->w1.shape[1], .block = layer->block, .x = r->x.data };
    s->blocks = s->units / s->block;
    controller(r, s);
    show_routing(r, s);
    run_stage(r, "units");
    turn(r, s);
    r->out = run_tensor3(r, DT_F32, 1, s->n, s->dm);
    s->hidden = run_alloc(r, s->n * s->blocks, sizeof(*s->hidden));
    if (run_failed(r))
        return;
    s->out = r->out.data;
    threads_run(r->threads, (s->n + ROWS - 1) / ROWS, unit_item, s);
    op_charge(r, FLOP_OVERHEAD, 4 * (double)s->n * (double)s->dm * (double)s->blocks);
    show_hidden(r, s);
    show_units(r, s, "dense_hidden", VIEW_FEATURES, read_dense, NULL);
}
