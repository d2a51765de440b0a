/* parameter_sharing.c -- what a model weighs when layers use the same weights.
 *
 *     attention of a layer   4 p + 2 dm,  p = dm^2 + dm   (3 p when W_Q = W_K)
 *     feed-forward           2 dm f + f + dm + 2 dm
 *     tables                 (vocab + positions + types) E + 2 E  (+ E dm + dm when E != dm)
 *     layer l uses set floor(l G / L) of what is shared, its own of the rest
 *
 * Given x and weights of a stack the shared stack runs as well: set s is layer s's weights.
 *
 * (Lan et al. section 3; Dehghani et al.; Kitaev et al. for W_Q = W_K; Wang et al. section 4
 * for the projections; attn/mech/lab/stack.h is the stack.)
 */
#include "attn/mech/lab/stack.h"
#include "attn/run.h"

#include <string.h>

enum { SHARE_NONE, SHARE_ATTENTION, SHARE_FFN, SHARE_ALL };
static const char *const shares[] = { "none", "attention", "ffn", "all", NULL };
enum { LINFORMER_NONE, LINFORMER_HEADWISE, LINFORMER_KV, LINFORMER_LAYER };
static const char *const linformer_shares[] = { "none", "headwise", "kv", "layer", NULL };

typedef struct Params {
    StackParams stack;
    int64_t     d_model, vocab, positions, types, embedding_dim, groups;
    int64_t     linformer_k, linformer_n;
    int         share, linformer_share;
    bool        share_qk, tie_embeddings, bias;
} Params;

static const Param params[] = {
    PARAM_INT(StackParams, layers, 12, 1, 4096, "layers L; taken from weights when given"),
    PARAM_INT(Params, d_model, 768, 1, INT32_MAX, "width dm; taken from weights when given"),
    PARAM_INT(StackParams, heads, 12, 1, INT32_MAX, "heads of a layer"),
    PARAM_INT(StackParams, d_ff, 0, 0, INT32_MAX, "hidden units f; 0: 4 dm"),
    PARAM_INT(Params, vocab, 30522, 0, INT32_MAX, "rows of the token table"),
    PARAM_INT(Params, positions, 512, 0, INT32_MAX, "rows of the position table"),
    PARAM_INT(Params, types, 2, 0, INT32_MAX, "rows of the segment table"),
    PARAM_INT(Params, embedding_dim, 0, 0, INT32_MAX,
              "width E of the tables, then a projection to dm; 0: dm"),
    PARAM_ENUM(Params, share, SHARE_NONE, shares,
               "sub-layers that are shared, with their layer norms"),
    PARAM_INT(Params, groups, 1, 1, 4096, "sets G of what is shared, at most L"),
    PARAM_BOOL(Params, share_qk, false, "W_Q = W_K"),
    PARAM_BOOL(Params, tie_embeddings, true, "the output table is the input table"),
    PARAM_BOOL(Params, bias, true, "linear layers have biases"),
    PARAM_INT(Params, linformer_k, 0, 0, INT32_MAX, "rows of Linformer's projections; 0: none"),
    PARAM_INT(Params, linformer_n, 0, 0, INT32_MAX, "their columns: the sequence length"),
    PARAM_ENUM(Params, linformer_share, LINFORMER_NONE, linformer_shares,
               "headwise: 2 of a layer; kv: one of a layer; layer: one of the model"),
    STACK_FORM,
    STACK_TENSORS,
    PARAM_END
};

typedef struct Model {
    int64_t layers, dm, sets[2]; /* sets of attention, of feed-forward */
    double  attention, ffn;      /* numbers of one layer */
    double  tables, output, projections;
    double  parameters, applied, unshared;
} Model;

static Model model_of(Run *r, const Params *p);
static int64_t sharing_width_of(Run *r, const Params *p);
static bool runs(const Run *r, const Params *p);
static bool any_weights(const StackParams *s);
static double attention_of(const Params *p, double dm, bool share_qk);
static double tables_of(const Params *p, double dm, double width);
static double projections_of(const Params *p, int64_t layers, int share);
static void sharing_add_up(const Params *p, Model *m);
static void sharing_show(Run *r, const Params *p, const Model *m);
static int64_t set_of(const Model *m, int kind, int64_t l);
static void run_shared(Run *r, const Params *p, const Model *m);

static void parameter_sharing_run(Run *r, const void *params_)
{
    const Params *p = params_;
    Model         m;

    run_stage(r, "count");
    m = model_of(r, p);
    if ((p->linformer_k > 0) != (p->linformer_n > 0))
        run_warn(r, "parameter-sharing: Linformer's projections have linformer_k x linformer_n "
                 "numbers, and one of the two is 0: none are counted");
    sharing_show(r, p, &m);
    if (run_failed(r))
        return;
    if (runs(r, p))
        run_shared(r, p, &m);
    else
        r->out = run_tensor3(r, DT_F32, 1, r->n, 0);
}

static Model model_of(Run *r, const Params *p)
{
    Model      m = { .dm = sharing_width_of(r, p) };
    StackShape s = stack_shape(r, &p->stack, m.dm);
    double     dm = (double)m.dm, f = (double)s.d_ff;
    double     width = p->embedding_dim > 0 ? (double)p->embedding_dim : dm;

    m.layers = s.layers;
    if (p->share != SHARE_NONE && p->groups > m.layers)
        run_fail(r, ERR_PARAM, "parameter-sharing: groups=%lld, but there are only %lld layers to "
                 "share among", (long long)p->groups, (long long)m.layers);
    m.sets[0] = p->share & SHARE_ATTENTION ? p->groups : m.layers;
    m.sets[1] = p->share & SHARE_FFN ? p->groups : m.layers;
    m.attention = attention_of(p, dm, p->share_qk);
    m.ffn = 2 * dm * f + (p->bias ? f + dm : 0) + 2 * dm;
    m.tables = tables_of(p, dm, width);
    m.output = p->tie_embeddings ? 0 : (double)p->vocab * width;
    m.projections = projections_of(p, m.layers, p->linformer_share);
    sharing_add_up(p, &m);
    if (!((m.unshared + m.applied) * (double)p->stack.element_bytes < PARAM_COUNT_MAX))
        run_fail(r, ERR_PARAM, "parameter-sharing: a model of %.3g numbers is beyond what is "
                 "counted exactly; give smaller sizes", m.unshared);
    return m;
}

static int64_t sharing_width_of(Run *r, const Params *p)
{
    const StackParams *s = &p->stack;

    return layer_size(r, "d_model", p->d_model, runs(r, p) ? r->dm : p->d_model,
                      (const SizeFrom[]){ { "wq", s->wq, 3, 1, 1 }, { "wk", s->wk, 3, 1, 1 },
                                          { "wv", s->wv, 3, 1, 1 }, { "wo", s->wo, 3, 1, 1 },
                                          { "w1", s->w1, 3, 1, 1 }, { "w2", s->w2, 3, 2, 1 },
                                          { "b2", s->b2, 2, 1, 1 }, { .name = NULL } });
}

/* The stack runs as well. */
static bool runs(const Run *r, const Params *p)
{
    return r->x.data && any_weights(&p->stack);
}

static bool any_weights(const StackParams *s)
{
    return s->wq.data || s->wk.data || s->wv.data || s->wo.data || s->w1.data || s->b1.data ||
           s->w2.data || s->b2.data || s->ln1_gamma.data || s->ln1_beta.data ||
           s->ln2_gamma.data || s->ln2_beta.data;
}

static double attention_of(const Params *p, double dm, bool share_qk)
{
    return (share_qk ? 3 : 4) * (dm * dm + (p->bias ? dm : 0)) + 2 * dm;
}

static double tables_of(const Params *p, double dm, double width)
{
    double rows = (double)p->vocab + (double)p->positions + (double)p->types;
    double turn = width < dm || width > dm ? width * dm + (p->bias ? dm : 0) : 0;

    return rows * width + 2 * width + turn;
}

static double projections_of(const Params *p, int64_t layers, int share)
{
    double each = (double)p->linformer_k * (double)p->linformer_n;

    switch (share) {
    case LINFORMER_NONE: return 2 * (double)layers * (double)p->stack.heads * each;
    case LINFORMER_HEADWISE: return 2 * (double)layers * each;
    case LINFORMER_KV: return (double)layers * each;
    default: return each;
    }
}

static void sharing_add_up(const Params *p, Model *m)
{
    double dm = (double)m->dm, layers = (double)m->layers;
    double whole = attention_of(p, dm, false), all = projections_of(p, m->layers, LINFORMER_NONE);

    m->parameters = m->tables + m->output + (double)m->sets[0] * m->attention +
                    (double)m->sets[1] * m->ffn + m->projections;
    m->applied = m->tables + m->output + layers * (whole + m->ffn) + all;
    m->unshared = tables_of(p, dm, dm) + (double)p->vocab * dm + layers * (whole + m->ffn) + all;
}

static void sharing_show(Run *r, const Params *p, const Model *m)
{
    const double counts[5] = { m->tables, m->output, (double)m->sets[0] * m->attention,
                               (double)m->sets[1] * m->ffn, m->projections };
    const double totals[3] = { m->parameters, m->applied, m->unshared };
    Tensor map, count, total;

    if (!run_wants_views(r))
        return;
    map = run_tensor2(r, DT_I32, m->layers, 2);
    count = run_tensor1(r, DT_I64, 5);
    total = run_tensor1(r, DT_I64, 3);
    for (int64_t t = 0; t < 2 * m->layers && !run_failed(r); t++)
        tensor_i32(&map)[t] = (int32_t)set_of(m, (int)(t % 2), t / 2);
    for (int t = 0; t < 5 && !run_failed(r); t++)
        ((int64_t *)count.data)[t] = (int64_t)counts[t];
    for (int t = 0; t < 3 && !run_failed(r); t++)
        ((int64_t *)total.data)[t] = (int64_t)totals[t];
    view_tensor(r, "map", VIEW_BUCKETS, map, "layer", "branch");
    view_tensor(r, "counts", VIEW_COUNT, count, "numbers",
                "tables, output table, attention, feed-forward, Linformer");
    view_tensor(r, "totals", VIEW_COUNT, total, "numbers", "stored, applied, unshared");
    run_figure_int(r, "parameters", (int64_t)m->parameters);
    run_figure_int(r, "unshared_parameters", (int64_t)m->unshared);
    run_figure(r, "ratio", m->parameters / m->unshared);
    run_figure_int(r, "applied_parameters", (int64_t)m->applied);
    run_figure_int(r, "bytes", (int64_t)m->parameters * p->stack.element_bytes);
}

/* The set that layer l uses of sub-layer kind (0 attention, 1 feed-forward). */
static int64_t set_of(const Model *m, int kind, int64_t l)
{
    return l * m->sets[kind] / m->layers;
}

/* ---- the shared stack ------------------------------------------------------- */

static void run_shared(Run *r, const Params *p, const Model *m)
{
    Stack  s;
    Tensor x, y;

    r->n = r->m = r->x.shape[0];
    run_stage(r, "weights");
    if (m->dm != r->dm)
        run_fail(r, ERR_PARAM, "parameter-sharing: the model has d_model=%lld, but the input x has "
                 "dm=%lld", (long long)m->dm, (long long)r->dm);
    s = stack_open(r, &p->stack, r->dm);
    if (p->share_qk)
        s.wk = s.wq;
    if (run_failed(r))
        return;
    x = stack_input(r, &s);
    y = stack_tokens(r, &s);
    for (int64_t l = 0; l < m->layers && !run_failed(r); l++) {
        run_iteration(r, "layer", l);
        stack_attend(r, &s, set_of(m, 0, l), x, y);
        stack_add(r, &s, x, y);
        stack_ffn(r, &s, set_of(m, 1, l), x, y);
        stack_add(r, &s, x, y);
    }
    stack_out(r, x);
}

static void parameter_sharing_check(Run *r, const void *params_)
{
    const Params *p = params_;

    inner_find(r, "attention", p->stack.attention);
}

static Flops parameter_sharing_flops(Run *r, const void *params_)
{
    const Params *p = params_;
    Flops         f = r->inner_flops;
    StackShape    s;

    if (!runs(r, p))
        return f;
    s = stack_shape(r, &p->stack, r->dm);
    f.overhead += (double)s.layers * (stack_attend_flops(&s) + stack_ffn_flops(&s));
    return f;
}

static DecodeCost parameter_sharing_decode(const Run *r, const void *params_unused)
{
    (void)r;
    (void)params_unused;
    return decode_unknown("it counts parameters and computes nothing of tokens");
}

static const StageNote notes[] = {
    { "count", "The model's numbers are counted once as stored, once as if every use had its own "
               "copy, and once with nothing shared, nothing tied and tables as wide as the "
               "model." },
    { "weights", "The sets of weights are taken from the stack's tensors; what is not given is "
                 "drawn." },
    { "layer", "One layer runs, with the sets that the map gives it.  It costs what a layer of "
               "its own would cost: sharing saves memory, not work." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("map", VIEW_BUCKETS, "set of weights that each layer uses for attention (0) and "
         "feed-forward (1)", .quantity = "weight set"),
    { .name = "counts", .kind = VIEW_COUNT,
      .help = "numbers stored in tables, output table, attention, feed-forward, Linformer",
      .curve = { .x = "", .y = "numbers", .points = "tables|output|att|ffn|Linformer",
                 .mark = CURVE_BARS } },
    { .name = "totals", .kind = VIEW_COUNT,
      .help = "numbers stored, applied (every use its own), and with nothing shared",
      .curve = { .x = "", .y = "numbers", .points = "stored|applied|unshared",
                 .mark = CURVE_BARS } },
    STACK_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_parameter_sharing = {
    .id = "parameter-sharing",
    .title = "Parameter sharing",
    .authors = "Lan, Chen, Goodman, Gimpel, Sharma, Soricut",
    .year = 2020,
    .arxiv = "1909.11942",
    .source = "ALBERT section 3; Universal Transformers 1807.03819; Reformer 2001.04451; "
              "Linformer 2006.04768 section 4",
    .formula = "layer l uses set floor(l G / L)\n"
               "stored = tables + G (4 p + 2 dm) + G (2 dm f + ...),  p = dm^2 + dm",
    .problem = "Deep models have more parameters than small devices can store.",
    .idea = "Several layers use the same weights.",
    .price = "As much is computed as before, and shared layers can do less.",
    .teaches = "Layers of one colour use one set of weights.  What is stored shrinks, what is "
               "computed does not: ALBERT has a tenth of BERT's numbers and all of its FLOPs.",
    .picture = "map",
    .example = "share=all",
    .classes = CLASS_LAB,
    .claim_time = "unchanged",
    .claim_memory = "G sets of weights instead of L",
    .claim_decode = "yes",
    .causal = true,
    .cross = true,
    .needs_none = true,
    .inner = "attention",
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = parameter_sharing_check,
    .run = parameter_sharing_run,
    .flops = parameter_sharing_flops,
    .decode = parameter_sharing_decode,
};
