/* scaling.c -- Scaling Transformers: sparse feed-forward and factored Q, K, V.
 *
 * part=ffn: the hidden units stand in blocks of N and a small controller picks
 * one of each block, so only d_ff / N units are computed:
 *
 *     logits = (x C1) C2 + cb;   on(b) = argmax of the logits of block b
 *     y = sum over blocks of max(x . W1[:,on(b)], 0) W2[on(b),:] + b2
 *
 * part=qkv: Q, K and V come from layers of dm^2 / S + S dm parameters, or from
 * one such layer and convolutions, then softmax attention.
 *
 * (Jaszczur et al., section 3; trax layers/research/sparsity.py; the steps are
 * in attn/mech/routing/sparse_ffn.h.)
 */
#include "attn/mech/routing/sparse_ffn.h"
#include "attn/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PART_FFN, PART_QKV };
enum { MODE_MULT, MODE_MULTCONV };
static const char *const parts[] = { "ffn", "qkv", NULL };
static const char *const modes[] = { "mult", "multconv", NULL };

typedef struct Params {
    int64_t d_ff, ff_block, d_lowrank, sparsity, heads;
    int     part, qkv_mode;
    bool    multiply_by_controller, output_layer;
    double  scale;
    Tensor  c1, c2, cb, w1, w2, b2;
    Tensor  d_q, d_k, d_v, d_o, e_q, e_k, e_v, e_o, b_q, b_k, b_v, b_o;
    Tensor  d_shared, e_shared, b_shared, conv_q, conv_k, conv_v, convb_q, convb_k, convb_v;
} Params;

#define DRAWN_D "N(0, 0.5^2)"
#define GLOROT "Glorot uniform"
static const Param params[] = {
    PARAM_ENUM(Params, part, PART_FFN, parts, "which layer: feed-forward, or attention"),
    PARAM_INT(Params, d_ff, PARAM_AUTO, 1, INT32_MAX, "ffn: hidden units; auto: 4 dm"),
    PARAM_INT(Params, ff_block, 32, 1, INT32_MAX, "ffn: units of a block, one of them active"),
    PARAM_INT(Params, d_lowrank, 64, 1, INT32_MAX, "ffn: width of the controller"),
    PARAM_BOOL(Params, multiply_by_controller, false, "ffn: multiply an active unit by its "
               "softmax probability in the block"),
    PARAM_TENSOR(Params, c1, "[dm,lr]", GLOROT, "controller, first layer"),
    PARAM_TENSOR(Params, c2, "[lr,d_ff]", GLOROT, "controller, second layer"),
    PARAM_TENSOR(Params, cb, "[d_ff]", "N(0, 1e-6)", "its bias"),
    PARAM_TENSOR(Params, w1, "[dm,d_ff]", GLOROT, "first layer; no bias"),
    PARAM_TENSOR(Params, w2, "[d_ff,dm]", GLOROT, "second layer"),
    PARAM_TENSOR(Params, b2, "[dm]", "N(0, 1e-6)", "its bias"),
    PARAM_INT(Params, sparsity, 4, 1, INT32_MAX, "qkv: modules S; divides dm"),
    PARAM_INT(Params, heads, 0, 0, INT32_MAX, "qkv: heads, divide dm; 0: S"),
    PARAM_ENUM(Params, qkv_mode, MODE_MULT, modes, "qkv: three multiplicative layers, or one and "
               "convolutions"),
    PARAM_BOOL(Params, output_layer, true, "qkv: multiplicative layer after the heads; left out: "
               "for mult only"),
    PARAM_TENSOR(Params, d_q, "[S,dm]", DRAWN_D, "gating vectors of Q"),
    PARAM_TENSOR(Params, d_k, "[S,dm]", DRAWN_D, "of K"),
    PARAM_TENSOR(Params, d_v, "[S,dm]", DRAWN_D, "of V"),
    PARAM_TENSOR(Params, d_o, "[S,dm]", DRAWN_D, "of the output layer"),
    PARAM_TENSOR(Params, e_q, "[dm,dm/S]", GLOROT, "projection of Q"),
    PARAM_TENSOR(Params, e_k, "[dm,dm/S]", GLOROT, "of K"),
    PARAM_TENSOR(Params, e_v, "[dm,dm/S]", GLOROT, "of V"),
    PARAM_TENSOR(Params, e_o, "[dm,dm/S]", GLOROT, "of the output layer"),
    PARAM_TENSOR(Params, b_q, "[dm]", "0", "bias of Q"),
    PARAM_TENSOR(Params, b_k, "[dm]", "0", "of K"),
    PARAM_TENSOR(Params, b_v, "[dm]", "0", "of V"),
    PARAM_TENSOR(Params, b_o, "[dm]", "0", "of the output layer"),
    PARAM_TENSOR(Params, d_shared, "[S,dm]", DRAWN_D, "multconv: gating of the shared layer"),
    PARAM_TENSOR(Params, e_shared, "[dm,dm/S]", GLOROT, "multconv: its projection"),
    PARAM_TENSOR(Params, b_shared, "[dm]", "0", "multconv: its bias"),
    PARAM_TENSOR(Params, conv_q, "[L,W,M,M], M = dm/S, W odd", GLOROT ", L = W = 3",
                 "multconv: kernel of Q: length, module, in, out"),
    PARAM_TENSOR(Params, conv_k, "[L,W,M,M]", GLOROT ", L = W = 3", "of K"),
    PARAM_TENSOR(Params, conv_v, "[L,W,M,M]", GLOROT ", L = 3, W = 1", "of V"),
    PARAM_TENSOR(Params, convb_q, "[M]", "0", "multconv: bias of Q's kernel"),
    PARAM_TENSOR(Params, convb_k, "[M]", "0", "of K's"),
    PARAM_TENSOR(Params, convb_v, "[M]", "0", "of V's"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "qkv: factor of the scores; 0: 1/sqrt(dm/heads)"),
    PARAM_END
};

typedef struct FfnShape {
    int64_t rank, units;
} FfnShape;

typedef struct Heads {
    const Params *p;
    int64_t modules, size, heads; /* S, M, heads */
    bool    conv, output;
} Heads;

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }

static void qkv_run(Run *r, const Params *p);
static Heads heads_shape(Run *r, const Params *p);
static Tensor conv(Run *r, const Heads *s, const char *const names[2], const Tensor given[2],
                   int64_t width, Tensor z);
static int64_t extent(const Tensor *kernel, int axis, int64_t fallback);
static Init glorot(int64_t in, int64_t out);
static void must_divide(Run *r, const char *what, int64_t part, const char *of, int64_t whole);
static void list_divisors(int64_t n, char *text, size_t size);
static void scaling_project(Run *r, const Heads *s, Tensor x, Tensor qkv[3]);
static Tensor mult(Run *r, const Heads *s, const char *const names[3], const Tensor given[3],
                   Tensor x);
static void show_projected(Run *r, const Tensor qkv[3]);
static void show_modules(Run *r, const Heads *s);
static void show_parameters(Run *r, const Heads *s);
static int count_parameters(const Run *r, const Heads *s, double own[5]);
static const char *layer_names(const Heads *s);
static Tensor regroup(Run *r, Tensor from, int64_t heads, bool back);
static void show_none_dropped(Run *r);
static void ffn_run(Run *r, const Params *p);
static FfnShape ffn_shape(Run *r, const Params *p);
static Flops qkv_flops(Run *r, const Params *p);
static Flops ffn_flops(Run *r, const Params *p);

static void scaling_run(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->part == PART_QKV) {
        qkv_run(r, p);
        return;
    }
    ffn_run(r, p);
    show_none_dropped(r);
}

static void qkv_run(Run *r, const Params *p)
{
    static const char *const last[3] = { "d_o", "e_o", "b_o" };
    Heads        s = heads_shape(r, p);
    PatternShape shape = { .heads = s.heads, .n = r->n, .m = r->n };
    int64_t      d = r->dm / s.heads;
    AttendInput  in = { .scale = p->scale > 0 ? p->scale : 1 / sqrt((double)d) };
    Tensor       x = tensor_with_rank(r->x, 3), qkv[3];
    AttendResult result;
    Pattern     *cells;

    if (run_failed(r))
        return;
    run_heads(r, s.heads, d, d);
    scaling_project(r, &s, x, qkv);
    show_projected(r, qkv);
    show_modules(r, &s);
    show_parameters(r, &s);
    in.q = in.raw_q = regroup(r, qkv[0], s.heads, false);
    in.k = in.raw_k = regroup(r, qkv[1], s.heads, false);
    in.v = regroup(r, qkv[2], s.heads, false);
    cells = pattern_finish(r->arena, shape, pattern_full(r->arena, shape, COMPONENT_OTHER),
                           r->causal);
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    view_pattern(r, cells, false);
    view_attention(r, cells, &in, result.lse);
    run_stage(r, "output");
    r->out = regroup(r, result.out, s.heads, true);
    if (s.output)
        r->out = mult(r, &s, last, (Tensor[]){ p->d_o, p->e_o, p->b_o }, r->out);
    show_none_dropped(r);
}

static Heads heads_shape(Run *r, const Params *p)
{
    Heads s = { .p = p, .conv = p->qkv_mode == MODE_MULTCONV };

    s.modules = layer_size(r, "sparsity", p->sparsity, p->sparsity,
                           (const SizeFrom[]){ { "d_q", p->d_q, 2, 0, 1 },
                                               { "d_k", p->d_k, 2, 0, 1 },
                                               { "d_v", p->d_v, 2, 0, 1 },
                                               { "d_shared", p->d_shared, 2, 0, 1 },
                                               { "d_o", p->d_o, 2, 0, 1 },
                                               { .name = NULL } });
    must_divide(r, "sparsity", s.modules, "dm", r->dm);
    s.size = r->dm / s.modules;
    s.heads = p->heads > 0 ? p->heads : s.modules;
    must_divide(r, "heads", s.heads, "dm", r->dm);
    s.output = run_is_given(r, "output_layer") ? p->output_layer : !s.conv;
    return s;
}

static Tensor conv(Run *r, const Heads *s, const char *const names[2], const Tensor given[2],
                   int64_t width, Tensor z)
{
    int64_t m = s->size, length = extent(&given[0], 0, 3), wide = extent(&given[0], 1, width);
    Tensor  kernel = layer_weight(r, names[0], given[0], 4, (int64_t[]){ length, wide, m, m },
                                  glorot(length * wide * m, length * wide * m));
    Tensor  b = layer_given(r, names[1], given[1], 1, (int64_t[]){ m });

    if (wide % 2 == 0 || length < 1)
        run_fail(r, ERR_PARAM, "scaling: parameter %s is a kernel of %lld positions and %lld "
                 "modules; it needs one position at least and an odd number of modules, to be "
                 "centred", names[0], (long long)length, (long long)wide);
    return run_failed(r) ? z : factored_conv(r, z, kernel, b);
}

static int64_t extent(const Tensor *kernel, int axis, int64_t fallback)
{
    return kernel->data && kernel->rank == 4 ? kernel->shape[axis] : fallback;
}

static Init glorot(int64_t in, int64_t out)
{
    return (Init){ INIT_GLOROT, (double)in + (double)out };
}

static void must_divide(Run *r, const char *what, int64_t part, const char *of, int64_t whole)
{
    char divisors[160];

    if (whole % part == 0)
        return;
    list_divisors(whole, divisors, sizeof(divisors));
    run_fail(r, ERR_PARAM, "scaling: %s=%lld does not divide %s=%lld; its divisors are %s", what,
             (long long)part, of, (long long)whole, divisors);
}

/* The divisors of n as text: "1, 2, 4, 8".  Those above the root are n by those below it. */
static void list_divisors(int64_t n, char *text, size_t size)
{
    int64_t c = 1;
    size_t  used = 0;

    *text = '\0';
    for (; c <= n / c && used + 16 < size; c++)
        if (n % c == 0)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", used ? ", " : "",
                                     (long long)c);
    while (--c > 0 && used + 16 < size)
        if (n % c == 0 && n / c > c)
            used += (size_t)snprintf(text + used, size - used, ", %lld", (long long)(n / c));
}

/* q, k and v, each [1,n,dm]. */
static void scaling_project(Run *r, const Heads *s, Tensor x, Tensor qkv[3])
{
    static const char *const mults[3][3] = { { "d_q", "e_q", "b_q" }, { "d_k", "e_k", "b_k" },
                                             { "d_v", "e_v", "b_v" } };
    static const char *const shared[3] = { "d_shared", "e_shared", "b_shared" };
    static const char *const convs[3][2] = { { "conv_q", "convb_q" }, { "conv_k", "convb_k" },
                                             { "conv_v", "convb_v" } };
    const Params *p = s->p;
    const Tensor  d[3] = { p->d_q, p->d_k, p->d_v }, e[3] = { p->e_q, p->e_k, p->e_v };
    const Tensor  b[3] = { p->b_q, p->b_k, p->b_v }, kernel[3] = { p->conv_q, p->conv_k,
                                                                   p->conv_v };
    const Tensor  bias[3] = { p->convb_q, p->convb_k, p->convb_v };
    Tensor        z = { .rank = 0 };

    run_stage(r, "project");
    if (s->conv)
        z = mult(r, s, shared, (Tensor[]){ p->d_shared, p->e_shared, p->b_shared }, x);
    for (int t = 0; t < 3; t++)
        qkv[t] = s->conv ? conv(r, s, convs[t], (Tensor[]){ kernel[t], bias[t] }, t < 2 ? 3 : 1, z)
                         : mult(r, s, mults[t], (Tensor[]){ d[t], e[t], b[t] }, x);
}

/* One multiplicative layer of the parameters d, e and b. */
static Tensor mult(Run *r, const Heads *s, const char *const names[3], const Tensor given[3],
                   Tensor x)
{
    int64_t dm = r->dm;
    Tensor  d = layer_weight(r, names[0], given[0], 2, (int64_t[]){ s->modules, dm },
                             (Init){ INIT_NORMAL, 0.5 });
    Tensor  e = layer_weight(r, names[1], given[1], 2, (int64_t[]){ dm, s->size },
                             glorot(dm, s->size));
    Tensor  b = layer_given(r, names[2], given[2], 1, (int64_t[]){ dm });

    return factored_dense(r, x, d, e, b);
}

static void show_projected(Run *r, const Tensor qkv[3])
{
    static const char *const names[3] = { "q", "k", "v" };

    for (int t = 0; t < 3 && run_wants_views(r); t++)
        view_tensor(r, names[t], VIEW_VECTORS, tensor_with_rank(qkv[t], 2), "token", "feature");
}

/* f32 [n,S]: every module works on every token. */
static void show_modules(Run *r, const Heads *s)
{
    Tensor ones = { .rank = 0 };

    if (!run_wants_views(r))
        return;
    ones = run_tensor2(r, DT_F32, r->n, s->modules);
    for (int64_t c = 0; c < r->n * s->modules && !run_failed(r); c++)
        tensor_f32(&ones)[c] = 1;
    view_tensor(r, "routing", VIEW_ROUTING, ones, "token", "module");
}

/* Bars of each layer's parameters against the dm^2 of a dense layer. */
static void show_parameters(Run *r, const Heads *s)
{
    double    own[5], sum = 0, dense = (double)r->dm * (double)r->dm;
    int       count = count_parameters(r, s, own);
    View     *view = dense < INT32_MAX ? view_add(r, "parameters", VIEW_COUNT, DT_I32, 2,
                                                  (int64_t[]){ 1, count })
                                       : NULL;
    ViewLoad *load = view ? run_alloc(r, 1, sizeof(*load)) : NULL;
    Tensor    used = load ? run_tensor2(r, DT_I32, 1, count) : (Tensor){ .rank = 0 };

    for (int t = 0; t < count; t++) {
        sum += own[t];
        if (used.data)
            tensor_i32(&used)[t] = (int32_t)own[t];
    }
    run_figure(r, "parameters", sum);
    run_figure(r, "parameters_dense", (s->output ? 4 : 3) * dense);
    if (!used.data)
        return;
    *load = (ViewLoad){ .used = used, .limit = (int64_t)dense, .used_name = "parameters",
                        .limit_name = "dense layer" };
    view->tensor = used;
    view->rows = "parameters";
    view->cols = layer_names(s);
    view->load = load;
}

/* Numbers of each layer of the projections in turn; returns how many layers. */
static int count_parameters(const Run *r, const Heads *s, double own[5])
{
    const Tensor *kernel[3] = { &s->p->conv_q, &s->p->conv_k, &s->p->conv_v };
    double        dm = (double)r->dm, mult_size = (double)s->modules * dm + dm * (double)s->size;
    int           count = 0;

    own[count++] = mult_size;
    for (int t = 0; t < 3 && s->conv; t++)
        own[count++] = (double)(extent(kernel[t], 0, 3) * extent(kernel[t], 1, t < 2 ? 3 : 1)) *
                       (double)s->size * (double)s->size;
    for (int t = 0; t < 2 && !s->conv; t++)
        own[count++] = mult_size;
    if (s->output)
        own[count++] = mult_size;
    return count;
}

static const char *layer_names(const Heads *s)
{
    if (s->conv)
        return s->output ? "shared, conv q, k, v, out" : "shared, conv q, k, v";
    return s->output ? "q, k, v, out" : "q, k, v";
}

/* [1,n,dm] to [heads,n,dm/heads], or back. */
static Tensor regroup(Run *r, Tensor from, int64_t heads, bool back)
{
    int64_t n = r->n, d = r->dm / heads;
    Tensor  to = back ? run_tensor3(r, DT_F32, 1, n, r->dm) : run_tensor3(r, DT_F32, heads, n, d);

    if (back)
        op_entries(r, from, ENTRY_CAST, 0, tensor_split(to, heads));
    else
        op_entries(r, tensor_split(from, heads), ENTRY_CAST, 0, to);
    return to;
}

/* u8 zeros: nothing is ever dropped. */
static void show_none_dropped(Run *r)
{
    Tensor dropped = { .rank = 0 };

    if (!run_wants_views(r))
        return;
    dropped = run_tensor1(r, DT_U8, r->n);
    if (!run_failed(r))
        memset(dropped.data, 0, (size_t)tensor_bytes(&dropped));
    view_tensor(r, "dropped", VIEW_COUNT, dropped, "", "token");
}

static void ffn_run(Run *r, const Params *p)
{
    FfnShape  s = ffn_shape(r, p);
    SparseFfn layer = { .block = p->ff_block, .multiply = p->multiply_by_controller };
    int64_t   dm = r->dm, lr = s.rank, ff = s.units;

    run_stage(r, "weights");
    layer.c1 = layer_weight(r, "c1", p->c1, 2, (int64_t[]){ dm, lr }, glorot(dm, lr));
    layer.c2 = layer_weight(r, "c2", p->c2, 2, (int64_t[]){ lr, ff }, glorot(lr, ff));
    layer.cb = layer_weight(r, "cb", p->cb, 1, (int64_t[]){ ff }, (Init){ INIT_NORMAL, 1e-6 });
    layer.w1 = layer_weight(r, "w1", p->w1, 2, (int64_t[]){ dm, ff }, glorot(dm, ff));
    layer.w2 = layer_weight(r, "w2", p->w2, 2, (int64_t[]){ ff, dm }, glorot(ff, dm));
    layer.b2 = layer_weight(r, "b2", p->b2, 1, (int64_t[]){ dm }, (Init){ INIT_NORMAL, 1e-6 });
    sparse_ffn(r, &layer);
}

static FfnShape ffn_shape(Run *r, const Params *p)
{
    FfnShape s;

    s.rank = layer_size(r, "d_lowrank", p->d_lowrank, p->d_lowrank,
                        (const SizeFrom[]){ { "c1", p->c1, 2, 1, 1 }, { "c2", p->c2, 2, 0, 1 },
                                            { .name = NULL } });
    s.units = layer_size(r, "d_ff", p->d_ff, 4 * r->dm,
                         (const SizeFrom[]){ { "c2", p->c2, 2, 1, 1 }, { "cb", p->cb, 1, 0, 1 },
                                             { "w1", p->w1, 2, 1, 1 }, { "w2", p->w2, 2, 0, 1 },
                                             { .name = NULL } });
    must_divide(r, "ff_block", p->ff_block, "d_ff", s.units);
    return s;
}

static Flops scaling_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;

    return p->part == PART_QKV ? qkv_flops(r, p) : ffn_flops(r, p);
}

/* Keys and values, and of a convolution over tokens those before the last that its kernel reads. */
static DecodeCost scaling_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Run           sized = *r;
    Heads         s = heads_shape(&sized, p);
    const Tensor *kernel[3] = { &p->conv_q, &p->conv_k, &p->conv_v };
    double        row = (double)r->cache_bytes * (double)r->dm, longest = 0;
    DecodeCost    cost;

    if (p->part != PART_QKV)
        return decode_tokenless(r, p);
    cost = decode_kept(r, p, 2 * (double)r->dm);
    for (int t = 0; t < 3 && s.conv; t++)
        longest = fmax(longest, (double)extent(kernel[t], 0, 3) - 1);
    cost.state_bytes += row * fmin(longest, (double)r->n);
    cost.step_bytes += row * fmin(longest, (double)r->n);
    return cost;
}

static Flops qkv_flops(Run *r, const Params *p)
{
    Heads         s = heads_shape(r, p);
    const Tensor *kernel[3] = { &p->conv_q, &p->conv_k, &p->conv_v };
    double        n = (double)r->n, dm = (double)r->dm, m = (double)s.size;
    double        cells = (double)s.heads * (r->causal ? n * (n + 1) / 2 : n * n);
    double        layers = (s.conv ? 1 : 3) + (s.output ? 1 : 0);
    Flops         flops = run_pattern_flops(r, cells);

    flops.overhead += layers * n * dm * (2 * dm + (double)s.modules);
    for (int t = 0; t < 3 && s.conv; t++)
        flops.overhead += 2 * n * (double)s.modules * m * m *
                          (double)(extent(kernel[t], 0, 3) * extent(kernel[t], 1, t < 2 ? 3 : 1));
    return flops;
}

static Flops ffn_flops(Run *r, const Params *p)
{
    FfnShape s = ffn_shape(r, p);
    double   n = (double)r->n, lr = (double)s.rank, ff = (double)s.units, dm = (double)r->dm;

    return (Flops){ .overhead = 2 * n * lr * (dm + ff) + 4 * n * dm * ff / (double)p->ff_block +
                                (p->multiply_by_controller ? FLOPS_SOFTMAX * n * ff : 0) };
}

static const StageNote notes[] = {
    { "weights", "The matrices are taken from files or drawn." },
    { "controller", "A small network scores the units of every block for every token." },
    { "units",
      "One unit of each block is kept for a token, so only that share of the matrices is read." },
    { "project", "Queries, keys and values come from a product of small factors." },
    { "attend", "Plain attention on what was projected." },
    { "output", "The heads are joined and projected back." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("routing", VIEW_ROUTING, "1 where a unit (qkv: module) works on a token"),
    VIEW("blocks", VIEW_BUCKETS, "ffn: the active unit of each block",
         .quantity = "unit", .maybe = true),
    VIEW("controller", VIEW_FEATURES, "ffn: softmax of the controller in each block",
         .maybe = true),
    VIEW("hidden", VIEW_FEATURES, "ffn: values of the units", .maybe = true),
    VIEW("dense_hidden", VIEW_FEATURES, "ffn: values a dense layer would compute", .maybe = true),
    VIEW("dropped", VIEW_COUNT, "zeros: nothing is ever dropped"),
    VIEW("weights", VIEW_WEIGHTS, "qkv: attention weights", .maybe = true),
    VIEW("connectivity", VIEW_PATTERN, "qkv: allowed cells", .maybe = true),
    VIEW("q", VIEW_VECTORS, "qkv: queries, head by head", .maybe = true),
    VIEW("k", VIEW_VECTORS, "qkv: keys", .maybe = true),
    VIEW("v", VIEW_VECTORS, "qkv: values", .maybe = true),
    VIEW("parameters", VIEW_COUNT, "qkv: numbers of each layer, against a dense one",
         .maybe = true),
    DRAWN("c1"), DRAWN("c2"), DRAWN("cb"), DRAWN("w1"), DRAWN("w2"), DRAWN("b2"),
    DRAWN("d_q"), DRAWN("d_k"), DRAWN("d_v"), DRAWN("d_o"), DRAWN("e_q"), DRAWN("e_k"),
    DRAWN("e_v"), DRAWN("e_o"), DRAWN("d_shared"), DRAWN("e_shared"), DRAWN("conv_q"),
    DRAWN("conv_k"), DRAWN("conv_v"),
    VIEW_PROMISE_END
};

const Mechanism mech_scaling = {
    .id = "scaling",
    .title = "Scaling Transformers",
    .authors = "Jaszczur, Chowdhery, Mohiuddin, Kaiser, Gajewski, Michalewski, Kanerva",
    .year = 2021,
    .arxiv = "2111.12763",
    .source = "paper, section 3; trax layers/research/sparsity.py",
    .formula = "ffn: on(b) = argmax over block b of (x C1) C2 + cb\n"
               "     y = sum over blocks of max(x . W1[:,on(b)], 0) W2[on(b),:] + b2\n"
               "qkv: Mult(x)[s M + m] = sum_d x_d D[s,d] E[d,m],  then softmax attention",
    .problem = "Decoding one token is slow, because all weights are read for it.",
    .idea = "Only one unit of each block of the feed-forward layer is computed, and projections "
            "are factored.",
    .price = "The choice of units needs a controller of its own, and little is saved when many "
             "tokens run at once.",
    .teaches = "ffn: exactly one unit lights up in every block, which one depends on the token; "
               "the rest of the layer is not computed.  qkv: Mult saves parameters and memory "
               "traffic, not multiplications.",
    .picture = "hidden",
    .example = "ff_block=4",
    .classes = CLASS_SP,
    .claim_time = "O(n^2), the attention around it; ffn O(n dm d_ff / N)",
    .claim_memory = "O(n^2), the attention around it",
    .claim_decode = "yes",
    .causal = true,
    .needs_x = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = scaling_run,
    .flops = scaling_flops,
    .decode = scaling_decode,
};
