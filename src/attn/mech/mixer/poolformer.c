/* poolformer.c -- the average of the neighbours in place of attention.
 *
 *     P[i,j] = 1 / |N(i)|  for j in N(i): at most floor(p/2) away (grid: in rows
 *              and in columns)
 *     M      = P - I       the block adds x back, so M subtracts it
 *     out    = M x
 *     block: x + ls1 * M GN1(x), then x + ls2 * (gelu(GN2(x) w1 + b1) w2 + b2)
 *
 * GN normalises over all tokens and channels at once.  The mixer has no
 * parameters at all.  (Yu et al. 2022, section 3; sail-sg/poolformer.)
 */
#include "attn/ops/dense.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { PART_MIXER, PART_BLOCK };
static const char *const parts[] = { "mixer", "block", NULL };

typedef struct Params {
    int     part;
    int64_t pool_size, grid_h, grid_w;
    bool    subtract_input, count_include_pad;
    double  norm_eps;
    Tensor  gn1_gamma, gn1_beta, gn2_gamma, gn2_beta, layer_scale_1, layer_scale_2;
    Tensor  w1, b1, w2, b2;
} Params;

static const Param params[] = {
    PARAM_INT(Params, pool_size, 3, 1, INT32_MAX, "p: width of the window, odd; of a grid in both "
              "directions"),
    PARAM_INT(Params, grid_h, 0, 0, INT32_MAX, "rows of the grid; 0: a sequence"),
    PARAM_INT(Params, grid_w, 0, 0, INT32_MAX, "columns of the grid; grid_h grid_w = n"),
    PARAM_BOOL(Params, subtract_input, true, "take the input off, because the block adds it back"),
    PARAM_BOOL(Params, count_include_pad, false, "divide by p (grid: p^2) even where neighbours "
               "are missing"),
    PARAM_ENUM(Params, part, PART_MIXER, parts, "the pooling alone, or the block around it"),
    PARAM_POSITIVE(Params, norm_eps, 1e-5, "block: added to the variance"),
    PARAM_TENSOR(Params, gn1_gamma, "[dm]", "1", "block: gain of the first normalisation"),
    PARAM_TENSOR(Params, gn1_beta, "[dm]", "0", "its bias"),
    PARAM_TENSOR(Params, gn2_gamma, "[dm]", "1", "block: gain of the second"),
    PARAM_TENSOR(Params, gn2_beta, "[dm]", "0", "its bias"),
    PARAM_TENSOR(Params, layer_scale_1, "[dm]", "1", "block: factor of the pooling branch"),
    PARAM_TENSOR(Params, layer_scale_2, "[dm]", "1", "block: factor of the MLP branch"),
    PARAM_TENSOR(Params, w1, "[dm,c]", "N(0, 1/dm), c = 4 dm", "block: channel MLP, first layer"),
    PARAM_TENSOR(Params, b1, "[c]", "0", "its bias"),
    PARAM_TENSOR(Params, w2, "[c,dm]", "N(0, 1/c)", "block: channel MLP, second layer"),
    PARAM_TENSOR(Params, b2, "[dm]", "0", "its bias"),
    PARAM_END
};

typedef struct Window {
    int64_t n, width, reach; /* width: columns of the grid, n for a sequence */
    double  padded;          /* divisor p or p^2; 0: the neighbours that exist */
    bool    causal, subtract;
} Window;

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }

static Window window_of(const Run *r, const Params *p);
static Tensor block(Run *r, const Params *p, const Window *w, Tensor x);
static Tensor group_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps);
static Tensor added(Run *r, Tensor x, Tensor scale, Tensor branch);
static Tensor pooled(Run *r, const Window *w, Tensor x);
static Pattern *pool_window_cells(Run *r, const Window *w);
static void show_window(Run *r, const Window *window);
static void show_matrix(Run *r, const char *name, ViewKind kind, int rank, const Window *w,
                        const Pattern *cells);
static void read_window(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out);
static double pool_share(const Window *w, int64_t i);
static int64_t neighbours(const Window *w, int64_t i);
static int64_t first_line(const Window *w, int64_t i);
static int64_t last_line(const Window *w, int64_t i);
static void pool_line_of(const Window *w, int64_t i, int64_t y, int64_t *from, int64_t *to);
static Tensor channel_mlp(Run *r, const Params *p, Tensor x);
static int64_t hidden_width(const Run *r, const Params *p);
static double all_neighbours(const Window *w);

static void poolformer_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Window        w = window_of(r, p);

    if (p->part == PART_BLOCK) {
        r->out = dense_rounded(r, block(r, p, &w, tensor_with_rank(r->x, 3)));
        return;
    }
    run_stage(r, "pool");
    r->out = pooled(r, &w, tensor_with_rank(r->x, 3));
    show_window(r, &w);
}

static Window window_of(const Run *r, const Params *p)
{
    double side = (double)p->pool_size;

    return (Window){ .n = r->n, .width = p->grid_w > 0 ? p->grid_w : r->n,
                     .reach = p->pool_size / 2, .causal = r->causal,
                     .subtract = p->subtract_input,
                     .padded = !p->count_include_pad ? 0 : p->grid_w > 0 ? side * side : side };
}

static Tensor block(Run *r, const Params *p, const Window *w, Tensor x)
{
    int64_t shape[1] = { r->dm };
    Tensor  gain1 = layer_given(r, "gn1_gamma", p->gn1_gamma, 1, shape);
    Tensor  bias1 = layer_given(r, "gn1_beta", p->gn1_beta, 1, shape);
    Tensor  gain2 = layer_given(r, "gn2_gamma", p->gn2_gamma, 1, shape);
    Tensor  bias2 = layer_given(r, "gn2_beta", p->gn2_beta, 1, shape);
    Tensor  scale1 = layer_given(r, "layer_scale_1", p->layer_scale_1, 1, shape);
    Tensor  scale2 = layer_given(r, "layer_scale_2", p->layer_scale_2, 1, shape);
    Tensor  y;

    run_stage(r, "normalise");
    y = group_norm(r, x, gain1, bias1, p->norm_eps);
    run_stage(r, "pool");
    x = added(r, x, scale1, pooled(r, w, y));
    show_window(r, w);
    run_stage(r, "channel mlp");
    return added(r, x, scale2,
                 channel_mlp(r, p, group_norm(r, x, gain2, bias2, p->norm_eps)));
}

/* Normalises over all tokens and channels: one group. */
static Tensor group_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps)
{
    Tensor y = run_tensor3(r, DT_F64, 1, x.shape[1], x.shape[2]);

    op_standardise64(r, x, eps, gain, bias, y);
    op_charge(r, FLOP_OVERHEAD, DENSE_NORM_FLOPS * (double)tensor_count(&y));
    return y;
}

/* x + scale * branch; scale [dm] or absent. */
static Tensor added(Run *r, Tensor x, Tensor scale, Tensor branch)
{
    Tensor y = run_tensor3(r, DT_F64, 1, r->n, r->dm);

    if (scale.data)
        op_entries_of(r, branch, scale, ENTRY_PRODUCT, 1, branch);
    op_entries_of(r, x, branch, ENTRY_SUM, 1, y);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)tensor_count(&y));
    return y;
}

/* ---- pooling ---------------------------------------------------------------- */

/* Pools x [1,n,dm], f32 or f64. */
static Tensor pooled(Run *r, const Window *w, Tensor x)
{
    PatternMeans in = { .x = x, .divisor = w->padded, .less_own = w->subtract };

    return op_pattern_means(r, &in, pool_window_cells(r, w));
}

static Pattern *pool_window_cells(Run *r, const Window *w)
{
    PatternShape s = { .heads = 1, .n = r->n, .m = r->n };
    Pattern     *cells;

    cells = w->width < r->n
                ? pattern_grid(r->arena, s, w->width, w->reach, w->reach, COMPONENT_WINDOW)
                : pattern_band(r->arena, s, -w->reach, w->reach, 1, COMPONENT_WINDOW);
    return pattern_finish(r->arena, s, cells, r->causal);
}

/* ---- what is seen ----------------------------------------------------------- */

static void show_window(Run *r, const Window *window)
{
    Window  *w = run_wants_views(r) ? run_alloc(r, 1, sizeof(*w)) : NULL;
    Pattern *cells;

    if (!w)
        return;
    *w = *window;
    cells = pool_window_cells(r, w);
    if (!cells)
        run_fail(r, ERR_NOMEM, "poolformer: not enough memory for the pattern");
    show_matrix(r, "weights", VIEW_SIGNED, 3, w, cells);
    show_matrix(r, "pool", VIEW_WEIGHTS, 2, w, cells);
    view_cells(r, "connectivity", cells);
}

static void show_matrix(Run *r, const char *name, ViewKind kind, int rank, const Window *w,
                        const Pattern *cells)
{
    int64_t shape[3] = { 1, r->n, r->n };
    View   *view = view_add(r, name, kind, DT_F32, rank, shape + 3 - rank);

    if (!view)
        return;
    view->read = read_window;
    view->context = w;
    view->support = cells;
    view->rows = "output token";
    view->cols = "input token";
}

static void read_window(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Window *w = view->context;
    double        cell = pool_share(w, i);
    bool          less = view->kind == VIEW_SIGNED && w->subtract; /* not `pool` */

    (void)plane;
    for (int64_t x = 0; x < count; x++)
        out[x] = (float)(cell - (less && start + x * step == i ? 1 : 0));
}

static double pool_share(const Window *w, int64_t i)
{
    return 1 / (w->padded > 0 ? w->padded : (double)neighbours(w, i));
}

static int64_t neighbours(const Window *w, int64_t i)
{
    int64_t count = 0, from, to;

    for (int64_t y = first_line(w, i); y <= last_line(w, i); y++) {
        pool_line_of(w, i, y, &from, &to);
        count += max_i64(to - from, 0);
    }
    return count;
}

static int64_t first_line(const Window *w, int64_t i)
{
    return max_i64(i / w->width - w->reach, 0);
}

static int64_t last_line(const Window *w, int64_t i)
{
    return min_i64(i / w->width + w->reach, (w->causal ? i : w->n - 1) / w->width);
}

/* Neighbours of i in line y of the grid: [*from, *to). */
static void pool_line_of(const Window *w, int64_t i, int64_t y, int64_t *from, int64_t *to)
{
    int64_t x = i % w->width;

    *from = y * w->width + max_i64(x - w->reach, 0);
    *to = y * w->width + min_i64(x + w->reach + 1, w->width);
    if (w->causal)
        *to = min_i64(*to, i + 1);
}

static Tensor channel_mlp(Run *r, const Params *p, Tensor x)
{
    int64_t dm = r->dm, c = hidden_width(r, p);
    Tensor  w1 = layer_weight(r, "w1", p->w1, 2, (int64_t[]){ dm, c },
                              (Init){ INIT_NORMAL, 1 / sqrt((double)dm) });
    Tensor  b1 = layer_given(r, "b1", p->b1, 1, (int64_t[]){ c });
    Tensor  w2 = layer_weight(r, "w2", p->w2, 2, (int64_t[]){ c, dm },
                              (Init){ INIT_NORMAL, 1 / sqrt((double)c) });
    Tensor  b2 = layer_given(r, "b2", p->b2, 1, (int64_t[]){ dm });
    Tensor  none = { .rank = 0 };

    x = dense_gelu(r, dense_layer(r, x, w1, b1, none, FLOP_OVERHEAD), GELU_ERF);
    return dense_layer(r, x, w2, b2, none, FLOP_OVERHEAD);
}

static int64_t hidden_width(const Run *r, const Params *p)
{
    if (p->w1.data && p->w1.rank == 2)
        return p->w1.shape[1];
    return p->w2.data && p->w2.rank == 2 ? p->w2.shape[0] : 4 * r->dm;
}

static void poolformer_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->pool_size % 2 == 0)
        run_fail(r, ERR_PARAM, "poolformer: pool_size=%lld is even; a window around a token needs "
                 "an odd one", (long long)p->pool_size);
    if ((p->grid_h > 0 || p->grid_w > 0) &&
        (p->grid_h < 1 || p->grid_w < 1 || p->grid_h * p->grid_w != r->n))
        run_fail(r, ERR_PARAM, "poolformer: grid_h=%lld times grid_w=%lld is not n=%lld",
                 (long long)p->grid_h, (long long)p->grid_w, (long long)r->n);
    if (p->part == PART_BLOCK && r->causal)
        run_fail(r, ERR_USAGE, "poolformer: part=block normalises over all tokens at once, so no "
                 "window makes it causal; use part=mixer or run it without --causal");
}

static Flops poolformer_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Window        w = window_of(r, p);
    double        n = (double)r->n, dm = (double)r->dm, c;
    Flops         sum = { .mix = dm * (all_neighbours(&w) + n * (p->subtract_input ? 2 : 1)) };

    if (p->part == PART_MIXER)
        return sum;
    c = (double)hidden_width(r, p);
    sum.overhead = 2 * (DENSE_NORM_FLOPS + 2) * n * dm + 4 * n * dm * c + DENSE_GELU_FLOPS * n * c;
    return sum;
}

/* The rows of x from the oldest that a later window holds; on a grid those of `reach` lines. */
static DecodeCost poolformer_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Window        w = window_of(r, p);
    double        token = (double)r->cache_bytes * (double)r->dm;
    double        held = (double)w.reach * (p->grid_w > 0 ? (double)w.width + 1 : 1) + 1;

    if (p->part == PART_BLOCK)
        return decode_unknown("the block normalises over all tokens at once");
    return (DecodeCost){ .state_bytes = token * fmin(held, (double)r->n),
                         .step_bytes = token * (double)neighbours(&w, r->n - 1),
                         .decode_flops = decode_gain(r, p) };
}

static double all_neighbours(const Window *w)
{
    double sum = 0;

    for (int64_t i = 0; i < w->n; i++)
        sum += (double)neighbours(w, i);
    return sum;
}

static const StageNote notes[] = {
    { "normalise", "All tokens and channels together are brought to mean 0 and variance 1." },
    { "pool", "Each token becomes the mean of its neighbours, less itself: nothing is compared and "
              "nothing is learned." },
    { "channel mlp", "An ordinary feed-forward layer, token by token." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("weights", VIEW_SIGNED, "M: mixer's output = weights @ x; negative where a token takes "
         "itself off"),
    VIEW("pool", VIEW_WEIGHTS, "P: equal shares of the neighbours"),
    VIEW("connectivity", VIEW_PATTERN, "neighbours"),
    DRAWN("w1"), DRAWN("w2"),
    VIEW_PROMISE_END
};

const Mechanism mech_poolformer = {
    .id = "poolformer",
    .title = "PoolFormer, pooling as token mixer",
    .authors = "Yu, Luo, Zhou, Si, Zhou, Wang, Feng, Yan",
    .year = 2022,
    .arxiv = "2111.11418",
    .source = "paper, section 3; sail-sg/poolformer models/poolformer.py",
    .formula = "P[i,j] = 1/|N(i)| for j in N(i), the neighbours within floor(p/2)\n"
               "out = (P - I) x",
    .problem = "It is not clear how much of a model's success comes from attention itself.",
    .idea = "Tokens are mixed by the average of their neighbours, without any parameter.",
    .price = "Far tokens are reached only over many layers, and no weight reacts to the content.",
    .teaches = "A band of equal cells and a negative diagonal: an average is enough to mix "
               "tokens.  Border rows are brighter, because fewer neighbours share the mean; on a "
               "grid the band is a band of bands.",
    .picture = "weights",
    .example = "pool_size=7",
    .classes = CLASS_MX,
    .claim_time = "O(n p dm); grid: O(n p^2 dm)",
    .claim_memory = "O(n dm)",
    .claim_decode = "yes, cut to the past (ours)",
    .claim_exponent = 1,
    .causal = true,
    .needs_x = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = poolformer_check,
    .run = poolformer_run,
    .flops = poolformer_flops,
    .decode = poolformer_decode,
};
