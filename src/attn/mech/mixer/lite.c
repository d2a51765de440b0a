/* lite.c -- Lite Transformer: attention on half of the channels, a convolution on the rest.
 *
 *     [a, t] = channels [0,da) and [da,dm) of x
 *     far    = multi-head attention of a
 *     near   = linear(conv(linear(t)))            linears and GLU optional
 *     conv:    y[i,c] = b_c + sum_s taps[g(c),s] t[i - left + s, c],  g(c) = c div (dc/G)
 *     taps   = softmax over the K taps of `kernel` (lightweight), or of
 *              t_i w_kernel + b_kernel (dynamic)
 *     out    = [far, near]
 *
 * left is K div 2 ((K-1) div 2 for even K), causal K - 1; what lies outside is
 * 0 and the taps are not renormalised.  (Wu et al. 2020, section 4;
 * mit-han-lab/lite-transformer.)
 */
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

enum { CONV_LIGHTWEIGHT, CONV_DYNAMIC };
static const char *const conv_types[] = { "lightweight", "dynamic", NULL };

typedef struct Params {
    int64_t attn_dim, heads, conv_heads, kernel_size;
    int     conv_type;
    bool    weight_softmax, conv_linear, glu;
    double  scale;
    Tensor  w_q, w_k, w_v, w_o, b_q, b_k, b_v, b_o;
    Tensor  w_conv_in, b_conv_in, w_conv_out, b_conv_out, b_conv, kernel, w_kernel, b_kernel;
} Params;

#define BY_DA "N(0, 1/da)"
#define BY_DC "N(0, 1/dc)"
static const Param params[] = {
    PARAM_INT(Params, attn_dim, PARAM_AUTO, 1, INT32_MAX, "da, channels that go to attention; "
              "auto: of the files, else dm div 2"),
    PARAM_INT(Params, heads, 1, 1, INT32_MAX, "heads of the attention; divide da"),
    PARAM_INT(Params, conv_heads, 1, 1, INT32_MAX, "kernels of the convolution; divide dc = dm - "
              "da"),
    PARAM_INT(Params, kernel_size, 3, 1, 1 << 20, "K, taps of a kernel"),
    PARAM_ENUM(Params, conv_type, CONV_LIGHTWEIGHT, conv_types, "fixed kernels, or kernels made "
               "from each token"),
    PARAM_BOOL(Params, weight_softmax, true, "softmax over the taps of a kernel"),
    PARAM_BOOL(Params, conv_linear, true, "linear layers before and after the convolution"),
    PARAM_BOOL(Params, glu, false, "with conv_linear: the first is twice as wide and its second "
               "half gates the first"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(da/heads)"),
    PARAM_TENSOR(Params, w_q, "[da,da]", BY_DA, "queries"),
    PARAM_TENSOR(Params, b_q, "[da]", "0", "their bias"),
    PARAM_TENSOR(Params, w_k, "[da,da]", BY_DA, "keys"),
    PARAM_TENSOR(Params, b_k, "[da]", "0", "their bias"),
    PARAM_TENSOR(Params, w_v, "[da,da]", BY_DA, "values"),
    PARAM_TENSOR(Params, b_v, "[da]", "0", "their bias"),
    PARAM_TENSOR(Params, w_o, "[da,da]", BY_DA, "output of the attention"),
    PARAM_TENSOR(Params, b_o, "[da]", "0", "its bias"),
    PARAM_TENSOR(Params, w_conv_in, "[dc,dc] or [dc,2dc]", BY_DC, "linear before the convolution"),
    PARAM_TENSOR(Params, b_conv_in, "[dc] or [2dc]", "0", "its bias"),
    PARAM_TENSOR(Params, w_conv_out, "[dc,dc]", BY_DC, "linear after it"),
    PARAM_TENSOR(Params, b_conv_out, "[dc]", "0", "its bias"),
    PARAM_TENSOR(Params, b_conv, "[dc]", "0", "bias of the convolution"),
    PARAM_TENSOR(Params, kernel, "[conv_heads,K]", "N(0, 1/K)", "lightweight: the taps"),
    PARAM_TENSOR(Params, w_kernel, "[dc,conv_heads K]", BY_DC, "dynamic: what makes the taps"),
    PARAM_TENSOR(Params, b_kernel, "[conv_heads K]", "0", "its bias"),
    PARAM_END
};

typedef struct Sizes {
    int64_t da, dc, heads, groups, taps, left;
    bool    glu, dynamic;
} Sizes;

typedef struct Conv {
    Sizes         s;
    const double *taps; /* [groups,K]; dynamic: [n,groups,K] */
} Conv;

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }

static Sizes lite_sizes(Run *r, const Params *p);
static void lite_must_divide(Run *r, const char *what, int64_t part, const char *of, int64_t whole);
static Tensor far_branch(Run *r, const Params *p, const Sizes *s);
static Tensor channels(Run *r, int64_t first, int64_t count);
static Tensor split(Run *r, Tensor y, int64_t heads);
static Tensor linear(Run *r, Tensor x, const char *const names[2], const Tensor given[2],
                     int64_t out);
static Tensor lite_join(Run *r, Tensor y);
static Tensor near_branch(Run *r, const Params *p, const Sizes *s);
static Tensor gated(Run *r, Tensor y);
static Tensor make_taps(Run *r, const Params *p, const Sizes *s, Tensor t);
static Tensor take_kernel(Run *r, const Params *p, const Sizes *s);
static void show_band(Run *r, const Conv *conv, const Tensor *taps, bool drawn);
static void read_band(const View *view, int64_t group, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out);
static const double *taps_of(const Conv *job, int64_t i, int64_t group);

static void lite_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = lite_sizes(r, p);
    Tensor        distant, local;

    run_stage(r, "split");
    if (run_failed(r))
        return;
    distant = far_branch(r, p, &s);
    local = near_branch(r, p, &s);
    run_stage(r, "join");
    r->out = run_tensor3(r, DT_F32, 1, r->n, r->dm);
    op_entries(r, distant, ENTRY_CAST, 0, tensor_columns(r->out, 0, s.da));
    op_entries(r, local, ENTRY_CAST, 0, tensor_columns(r->out, s.da, s.dc));
}

static Sizes lite_sizes(Run *r, const Params *p)
{
    bool   dynamic = p->conv_type == CONV_DYNAMIC;
    Tensor kernel = dynamic ? (Tensor){ .rank = 0 } : p->kernel;
    Sizes  s = { .dynamic = dynamic, .heads = p->heads, .glu = p->glu && p->conv_linear };

    s.da = layer_size(r, "attn_dim", p->attn_dim, r->dm / 2,
                      (const SizeFrom[]){ { "w_q", p->w_q, 2, 1, 1 }, { "w_k", p->w_k, 2, 1, 1 },
                                          { "w_v", p->w_v, 2, 1, 1 }, { "w_o", p->w_o, 2, 1, 1 },
                                          { .name = NULL } });
    s.dc = r->dm - s.da;
    if (!run_failed(r) && (s.da < 1 || s.dc < 1))
        run_fail(r, ERR_PARAM, "lite: attn_dim=%lld of %lld channels leaves the %s without any",
                 (long long)s.da, (long long)r->dm, s.da < 1 ? "attention" : "convolution");
    s.groups = layer_size(r, "conv_heads", p->conv_heads, p->conv_heads,
                          (const SizeFrom[]){ { "kernel", kernel, 2, 0, 1 }, { .name = NULL } });
    s.taps = layer_size(r, "kernel_size", p->kernel_size, p->kernel_size,
                        (const SizeFrom[]){ { "kernel", kernel, 2, 1, 1 }, { .name = NULL } });
    lite_must_divide(r, "heads", s.heads, "da", s.da);
    lite_must_divide(r, "conv_heads", s.groups, "dc", s.dc);
    s.left = r->causal ? s.taps - 1 : s.taps % 2 ? s.taps / 2 : (s.taps - 1) / 2;
    return s;
}

static void lite_must_divide(Run *r, const char *what, int64_t part, const char *of, int64_t whole)
{
    if (whole % part)
        run_fail(r, ERR_PARAM, "lite: %s=%lld does not divide %s=%lld", what, (long long)part, of,
                 (long long)whole);
}

static Tensor far_branch(Run *r, const Params *p, const Sizes *s)
{
    PatternShape shape = { .heads = s->heads, .n = r->n, .m = r->n };
    int64_t      d = s->da / s->heads;
    AttendInput  in = { .scale = p->scale > 0 ? p->scale : 1 / sqrt((double)d) };
    Tensor       a = channels(r, 0, s->da);
    AttendResult found;
    Pattern     *cells;

    run_stage(r, "attention branch");
    run_heads(r, s->heads, d, d);
    in.q = split(r, linear(r, a, (const char *[]){ "w_q", "b_q" }, (Tensor[]){ p->w_q, p->b_q },
                           s->da), s->heads);
    in.k = split(r, linear(r, a, (const char *[]){ "w_k", "b_k" }, (Tensor[]){ p->w_k, p->b_k },
                           s->da), s->heads);
    in.v = split(r, linear(r, a, (const char *[]){ "w_v", "b_v" }, (Tensor[]){ p->w_v, p->b_v },
                           s->da), s->heads);
    in.raw_q = in.q;
    in.raw_k = in.k;
    cells = pattern_finish(r->arena, shape, pattern_full(r->arena, shape, COMPONENT_OTHER),
                           r->causal);
    found = op_attend(r, &in, cells);
    view_attention(r, cells, &in, found.lse);
    return linear(r, lite_join(r, found.out), (const char *[]){ "w_o", "b_o" },
                  (Tensor[]){ p->w_o, p->b_o }, s->da);
}

/* f64 [1,n,count]: channels [first, first+count) of x. */
static Tensor channels(Run *r, int64_t first, int64_t count)
{
    Tensor t = run_tensor3(r, DT_F64, 1, r->n, count);

    op_entries(r, tensor_columns(tensor_with_rank(r->x, 3), first, count), ENTRY_CAST, 0, t);
    return t;
}

/* f32 [heads,n,d] of f64 [1,n,heads d]. */
static Tensor split(Run *r, Tensor y, int64_t heads)
{
    Tensor t = run_tensor3(r, DT_F32, heads, r->n, y.shape[2] / heads);

    op_entries(r, tensor_split(y, heads), ENTRY_CAST, 0, t);
    return t;
}

/* x w + b in f64; a bias that is not given is 0. */
static Tensor linear(Run *r, Tensor x, const char *const names[2], const Tensor given[2],
                     int64_t out)
{
    int64_t in = x.shape[2];
    Tensor  w = layer_weight(r, names[0], given[0], 2, (int64_t[]){ in, out }, layer_by_fan(in));
    Tensor  b = layer_given(r, names[1], given[1], 1, (int64_t[]){ out });

    return dense_layer(r, x, w, b, (Tensor){ .rank = 0 }, FLOP_OVERHEAD);
}

static Tensor lite_join(Run *r, Tensor y)
{
    Tensor t = run_tensor3(r, DT_F32, 1, r->n, y.shape[0] * y.shape[2]);

    op_entries(r, y, ENTRY_CAST, 0, tensor_split(t, y.shape[0]));
    return t;
}

/* ---- the branch that looks near --------------------------------------------- */

static Tensor near_branch(Run *r, const Params *p, const Sizes *s)
{
    int64_t shape[1] = { s->dc };
    Tensor  t = channels(r, s->da, s->dc), y, taps;
    Tensor  bias = layer_given(r, "b_conv", p->b_conv, 1, shape);
    TapSums sums;
    Conv    job;

    run_stage(r, "convolution branch");
    if (p->conv_linear)
        t = linear(r, t, (const char *[]){ "w_conv_in", "b_conv_in" },
                   (Tensor[]){ p->w_conv_in, p->b_conv_in }, s->dc * (s->glu ? 2 : 1));
    if (s->glu)
        t = gated(r, t);
    taps = make_taps(r, p, s, t);
    y = run_tensor3(r, DT_F64, 1, r->n, s->dc);
    if (run_failed(r))
        return y;
    sums = (TapSums){ .x = t, .groups = s->groups, .first = -s->left, .step = 1, .bias = bias,
                      .taps = tensor_of(DT_F64, 3,
                                        (int64_t[]){ 1, s->dynamic ? r->n : 1,
                                                     s->groups * s->taps }, taps.data) };
    op_tap_sums(r, &sums, y);
    op_charge(r, FLOP_MIX, 2 * (double)r->n * (double)s->taps * (double)s->dc);
    job = (Conv){ .s = *s, .taps = taps.data };
    show_band(r, &job, &taps, !s->dynamic && !p->kernel.data);
    if (!p->conv_linear)
        return y;
    return linear(r, y, (const char *[]){ "w_conv_out", "b_conv_out" },
                  (Tensor[]){ p->w_conv_out, p->b_conv_out }, s->dc);
}

/* First half times the logistic function of the second. */
static Tensor gated(Run *r, Tensor y)
{
    int64_t width = y.shape[2] / 2;
    Tensor  t = run_tensor3(r, DT_F64, 1, r->n, width);

    op_entries_of(r, tensor_columns(y, 0, width), tensor_columns(y, width, width), ENTRY_GATE, 0,
                  t);
    return t;
}

/* Taps, f64 [1,groups,K]; dynamic: [n,groups,K]. */
static Tensor make_taps(Run *r, const Params *p, const Sizes *s, Tensor t)
{
    Tensor taps, kernel;

    if (s->dynamic) {
        taps = linear(r, t, (const char *[]){ "w_kernel", "b_kernel" },
                      (Tensor[]){ p->w_kernel, p->b_kernel }, s->groups * s->taps);
        taps = tensor_of(DT_F64, 3, (int64_t[]){ r->n, s->groups, s->taps }, taps.data);
    } else {
        kernel = take_kernel(r, p, s);
        taps = run_tensor3(r, DT_F64, 1, s->groups, s->taps);
        op_entries(r, kernel, ENTRY_CAST, 0, tensor_with_rank(taps, 2));
    }
    if (p->weight_softmax)
        op_softmax(r, taps);
    return taps;
}

/* Draws the kernel without a view, because the view `kernel` shows the taps made from it. */
static Tensor take_kernel(Run *r, const Params *p, const Sizes *s)
{
    int64_t shape[2] = { s->groups, s->taps };
    Tensor  kernel = layer_given(r, "kernel", p->kernel, 2, shape);
    Rng     rng = run_rng(r, "kernel");

    if (p->kernel.data)
        return kernel;
    kernel = run_tensor2(r, DT_F32, s->groups, s->taps);
    if (!run_failed(r))
        run_draw(r, &rng, layer_by_fan(s->taps), kernel);
    run_origin(r, "kernel", ORIGIN_DRAWN);
    return kernel;
}

static void show_band(Run *r, const Conv *conv, const Tensor *taps, bool drawn)
{
    const Sizes *s = &conv->s;
    PatternShape shape = { .heads = s->heads + s->groups, .n = r->n, .m = r->n };
    Conv        *job = run_wants_views(r) ? run_alloc(r, 1, sizeof(*job)) : NULL;
    Pattern    **parts = job ? run_alloc(r, shape.heads, sizeof(Pattern *)) : NULL;
    Pattern     *all, *band;
    View        *view;

    if (!parts)
        return;
    *job = *conv;
    all = pattern_full(r->arena, shape, COMPONENT_OTHER);
    band = pattern_band(r->arena, shape, -s->left, s->taps - 1 - s->left, 1, COMPONENT_WINDOW);
    for (int64_t t = 0; t < shape.heads; t++)
        parts[t] = t < s->heads ? all : band;
    view = implicit_factor(r, "kernel", VIEW_SIGNED,
                           s->dynamic ? *taps : tensor_with_rank(*taps, 2), "kernel", "tap");
    if (view && drawn)
        view->origin = implicit_origin(r);
    view = view_add(r, "connectivity", VIEW_PATTERN, DT_U8, 3,
                    (int64_t[]){ shape.heads, r->n, r->n });
    if (view)
        view->support = pattern_finish(r->arena, shape,
                                       pattern_by_head(r->arena, shape, parts, shape.heads),
                                       r->causal);
    view = view_add(r, "components", VIEW_COMPONENTS, DT_U8, 2, (int64_t[]){ r->n, r->n });
    if (view)
        view->support = pattern_finish(r->arena, shape, pattern_union(r->arena, all, band),
                                       r->causal);
    view = view_add(r, "weights_conv", VIEW_SIGNED, DT_F32, 3,
                    (int64_t[]){ s->groups, r->n, r->n });
    if (view) {
        view->read = read_band;
        view->context = job;
        view->support = pattern_finish(r->arena, shape, band, r->causal);
    }
    for (int i = 0; i < r->view_count; i++) {
        r->views[i].window = "convolution";
        r->views[i].other = "attention";
        if (!r->views[i].tensor.data && !r->views[i].support)
            run_fail(r, ERR_NOMEM, "lite: not enough memory for the pattern");
    }
}

static void read_band(const View *view, int64_t group, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Conv   *job = view->context;
    const double *taps = taps_of(job, i, group);

    for (int64_t x = 0; x < count; x++)
        out[x] = (float)taps[start + x * step - i + job->s.left];
}

static const double *taps_of(const Conv *job, int64_t i, int64_t group)
{
    return job->taps + ((job->s.dynamic ? i : 0) * job->s.groups + group) * job->s.taps;
}

static void lite_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    lite_sizes(r, p);
    if (p->glu && !p->conv_linear)
        run_warn(r, "lite: glu gates the linear layer before the convolution; conv_linear=false "
                    "leaves both out");
}

static Flops lite_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = lite_sizes(r, p);
    double        n = (double)r->n, da = (double)s.da, dc = (double)s.dc;
    double        taps = (double)s.groups * (double)s.taps;
    double        cells = r->causal ? n * (n + 1) / 2 : n * n;
    Flops         sum = { .score = 2 * cells * da, .mix = 2 * cells * da };

    sum.overhead = FLOPS_SOFTMAX * cells * (double)s.heads + 8 * n * da * da;
    sum.mix += 2 * n * (double)s.taps * dc;
    if (p->conv_linear)
        sum.overhead += (s.glu ? 6 : 4) * n * dc * dc;
    if (s.dynamic)
        sum.overhead += 2 * n * dc * taps;
    if (p->weight_softmax)
        sum.overhead += FLOPS_ROW_SOFTMAX * taps * (s.dynamic ? n : 1);
    return sum;
}

/* Keys and values of the attention's channels, and the last K tokens of the convolution's. */
static DecodeCost lite_decode(const Run *r, const void *opaque)
{
    Run        sized = *r;
    Sizes      s = lite_sizes(&sized, opaque);
    DecodeCost cost = decode_kept(r, opaque, 2 * (double)s.da);
    double     near = (double)r->cache_bytes * (double)s.dc * fmin((double)r->n, (double)s.taps);

    cost.state_bytes += near;
    cost.step_bytes += near;
    return cost;
}

static const StageNote notes[] = {
    { "split", "The channels of each token are parted: the first half for attention, the rest for "
               "a convolution." },
    { "attention branch", "Plain attention on its channels: free to look far, and with half of "
                          "the channels a quarter of the projections' work." },
    { "convolution branch", "A short kernel slides over the tokens; channels of one kernel head "
                            "share it (dynamic: each token makes its own)." },
    { "join", "The channels are put side by side again." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("weights", VIEW_WEIGHTS, "attention weights, of its channels"),
    VIEW("weights_conv", VIEW_SIGNED, "the convolution as a band, a plane for each kernel head"),
    VIEW("kernel", VIEW_SIGNED, "taps, after the softmax if there is one"),
    VIEW("connectivity", VIEW_PATTERN, "cells of the attention heads, then of the kernel heads"),
    VIEW("components", VIEW_COMPONENTS, "attention everywhere, and where the convolution reaches"),
    DRAWN("w_q"), DRAWN("w_k"), DRAWN("w_v"), DRAWN("w_o"), DRAWN("w_conv_in"),
    DRAWN("w_conv_out"), DRAWN("w_kernel"),
    VIEW_PROMISE_END
};

const Mechanism mech_lite = {
    .id = "lite",
    .title = "Lite Transformer, long-short range attention",
    .authors = "Wu, Liu, Lin, Lin, Han",
    .year = 2020,
    .arxiv = "2004.11886",
    .source = "paper, section 4; mit-han-lab/lite-transformer fairseq/modules/multibranch.py, "
              "lightweight_convolution.py, dynamic_convolution.py",
    .formula = "out = [ attention(x[:, :da]),  conv(x[:, da:]) ]\n"
               "conv: y[i,c] = b_c + sum_s taps[g(c),s] t[i - left + s, c]",
    .problem = "On small devices attention must serve near and far tokens at once.",
    .idea = "Half of the channels use attention and the other half a convolution over near "
            "tokens.",
    .price = "The attention that is left is still quadratic.",
    .teaches = "Two halves of the channels side by side: a dense map that is free to look far, and "
               "a band that looks near, so that attention need not learn what a convolution does "
               "for less.",
    .picture = "components",
    .example = "kernel_size=7",
    .classes = CLASS_MX | CLASS_FP,
    .claim_time = "O(n^2 da + n K dc)",
    .claim_memory = "O(n^2), in the attention half",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .needs_x = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = lite_check,
    .run = lite_run,
    .flops = lite_flops,
    .decode = lite_decode,
};
