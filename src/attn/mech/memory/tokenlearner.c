/* tokenlearner.c -- S maps over the tokens, and as many learned tokens.
 *
 * With Z = LN(x):
 *
 *     v11:  A = softmax over tokens of (gelu(Z w1 + b1) w2 + b2)^T         (S x n)
 *     v10:  A = sigmoid of four 3 x 3 convolutions over the image, gelu after three
 *     tokens = A x                                                         (S x dm)
 *
 * TokenFuser brings what was done with the tokens back to n positions:
 *
 *     t = LN2(fuse_mix^T LN1(tokens) + fuse_bias)
 *     B = sigmoid(gelu(LN3(x) fuse_w1 + fuse_b1) fuse_w2 + fuse_b2)        (n x S)
 *     output = B t (+ x)
 *
 * The values are x itself.  (Ryoo et al. 2021; google-research/scenic
 * projects/token_learner/model.py, both versions.)
 */
#include <math.h>
#include <string.h>

#include "attn/ops/dense.h"
#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#define IMAGE_TAPS 9 /* of 3 x 3 */

typedef struct ImageGrid {
    int64_t height, width; /* of the image: tokens row by row */
} ImageGrid;

#define LAYER_EPS 1e-6
#define FLOAT_ENOUGH 128.0

enum { VARIANT_V11, VARIANT_V10 };
static const char *const variants[] = { "v11", "v10", NULL };
enum { POOL_SUM, POOL_MEAN };
static const char *const pools[] = { "sum", "mean", NULL };

typedef struct Params {
    int64_t n_tokens, bottleneck, grid_h, grid_w;
    int     variant, pool;
    bool    fuse, fuse_norm, fuse_residual;
    Tensor  ln_g, ln_b, w1, b1, w2, b2, conv1, conv2, conv3, conv4;
    Tensor  fuse_ln1_g, fuse_ln1_b, fuse_ln2_g, fuse_ln2_b, fuse_ln3_g, fuse_ln3_b;
    Tensor  fuse_mix, fuse_bias, fuse_w1, fuse_b1, fuse_w2, fuse_b2;
} Params;

typedef struct Sizes {
    int64_t tokens, hidden, fuse_hidden; /* S, widths of the networks */
} Sizes;

typedef struct Network {
    const char *w1_name, *b1_name, *w2_name, *b2_name;
    Tensor      w1, b1, w2, b2; /* as given, then as used */
    int64_t     hidden, out;
} Network;

static Sizes sizes_of(const Params *p);
static int64_t token_count(const Params *p);
static void fuse(Run *r, const Params *p, const Sizes *s, Tensor a, Tensor tokens);
static Tensor learner_mixed(Run *r, const Params *p, Tensor tokens, Tensor mix);
static Tensor normed(Run *r, const char *g_name, Tensor g, const char *b_name, Tensor b, Tensor x);
static Tensor fuse_maps(Run *r, const Params *p, const Sizes *s);
static void learner_load(Run *r, Network *net);
static Tensor network(Run *r, const Network *net, Tensor z);
static Tensor learner_product(Run *r, Tensor a, Tensor b);
static void show_fused(Run *r, Tensor left, Tensor a);
static Pattern *learner_all_cells(Run *r, int64_t rows);
static Tensor fused_left(Run *r, const Params *p, Tensor b, Tensor mix);
static bool any(Tensor t);
static int64_t learner_extent(const Tensor *t, int rank, int axis, int64_t otherwise);
static Tensor softmax_maps(Run *r, const Params *p, const Sizes *s);
static bool float_will_do(Run *r, const Network *net, double longest);
static double longest_standardised(Run *r, Tensor gain, Tensor bias);
static double longest_column(Run *r, Tensor w);
static Tensor quick_network(Run *r, const Network *net, const Standardised *z);
static Tensor convolved_maps(Run *r, const Params *p, const Sizes *s);
static Tensor convolutions(Run *r, const Params *p, Tensor z, int64_t tokens);
static Tensor image_convolved(Run *r, ImageGrid grid, const char *name, Tensor given, Tensor z,
                       int64_t out);
static void move_pixels(Run *r, ImageGrid grid, Tensor z, int64_t tap, Tensor to);
static Tensor pixels(ImageGrid grid, Tensor t, int64_t i, int64_t rows, int64_t j, int64_t width);
static int64_t learner_positive(int64_t x);
static Tensor learner_pooled(Run *r, const Params *p, Tensor a);
static void show_tokens(Run *r, const Params *p, Tensor a, Tensor tokens);
static void show_images(Run *r, const Params *p, Tensor a);

static const Param params[] = {
    PARAM_INT(Params, n_tokens, 8, 1, INT32_MAX, "learned tokens S when the maps are drawn"),
    PARAM_ENUM(Params, variant, VARIANT_V11, variants,
               "a network for each token and a softmax over tokens, or convolutions over the "
               "image and a sigmoid"),
    PARAM_TENSOR(Params, ln_g, "[dm]", "1", "norm of x: factor"),
    PARAM_TENSOR(Params, ln_b, "[dm]", "0", "norm of x: what is added"),
    PARAM_INT(Params, bottleneck, 64, 1, INT32_MAX, "hidden width of the networks when drawn"),
    PARAM_TENSOR(Params, w1, "[dm,hidden]", "glorot", "v11: first layer"),
    PARAM_TENSOR(Params, b1, "[hidden]", "0", "its bias"),
    PARAM_TENSOR(Params, w2, "[hidden,S]", "glorot", "v11: second layer, a column for each map"),
    PARAM_TENSOR(Params, b2, "[S]", "0", "its bias"),
    PARAM_INT(Params, grid_h, 0, 0, INT32_MAX, "rows of the image, needed by v10; 0: not known"),
    PARAM_INT(Params, grid_w, 0, 0, INT32_MAX, "columns of the image, needed by v10"),
    PARAM_TENSOR(Params, conv1, "[3,3,dm,S]", "glorot", "v10: first convolution"),
    PARAM_TENSOR(Params, conv2, "[3,3,S,S]", "glorot", "v10: second convolution"),
    PARAM_TENSOR(Params, conv3, "[3,3,S,S]", "glorot", "v10: third convolution"),
    PARAM_TENSOR(Params, conv4, "[3,3,S,S]", "glorot", "v10: last convolution, the maps"),
    PARAM_ENUM(Params, pool, POOL_SUM, pools, "v10: a token is the sum over the map, or its mean"),
    PARAM_BOOL(Params, fuse, false, "bring the tokens back to n positions (TokenFuser)"),
    PARAM_BOOL(Params, fuse_norm, true, "fuse: norms before and after the tokens are mixed"),
    PARAM_TENSOR(Params, fuse_ln1_g, "[dm]", "1", "fuse: norm before: factor"),
    PARAM_TENSOR(Params, fuse_ln1_b, "[dm]", "0", "fuse: norm before: what is added"),
    PARAM_TENSOR(Params, fuse_ln2_g, "[dm]", "1", "fuse: norm after: factor"),
    PARAM_TENSOR(Params, fuse_ln2_b, "[dm]", "0", "fuse: norm after: what is added"),
    PARAM_TENSOR(Params, fuse_mix, "[S,S]", "glorot", "fuse: how the tokens are mixed"),
    PARAM_TENSOR(Params, fuse_bias, "[S]", "0", "fuse: its bias"),
    PARAM_TENSOR(Params, fuse_ln3_g, "[dm]", "1", "fuse: norm of x: factor"),
    PARAM_TENSOR(Params, fuse_ln3_b, "[dm]", "0", "fuse: norm of x: what is added"),
    PARAM_TENSOR(Params, fuse_w1, "[dm,hidden]", "glorot", "fuse: first layer of its maps"),
    PARAM_TENSOR(Params, fuse_b1, "[hidden]", "0", "its bias"),
    PARAM_TENSOR(Params, fuse_w2, "[hidden,S]", "glorot", "fuse: second layer of its maps"),
    PARAM_TENSOR(Params, fuse_b2, "[S]", "0", "its bias"),
    PARAM_BOOL(Params, fuse_residual, true, "fuse: add x"),
    PARAM_END
};

static void tokenlearner_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = sizes_of(p);
    Tensor        a, tokens;

    run_stage(r, "maps");
    a = p->variant == VARIANT_V11 ? softmax_maps(r, p, &s) : convolved_maps(r, p, &s);
    run_stage(r, "pool");
    tokens = learner_pooled(r, p, a);
    show_tokens(r, p, a, tokens);
    if (p->fuse) {
        fuse(r, p, &s, a, tokens);
        return;
    }
    r->out = dense_rounded(r, tokens);
}

static Sizes sizes_of(const Params *p)
{
    return (Sizes){ .tokens = token_count(p),
                    .hidden = learner_extent(&p->w1, 2, 1,
                                             learner_extent(&p->w2, 2, 0, p->bottleneck)),
                    .fuse_hidden = learner_extent(&p->fuse_w1, 2, 1,
                                                  learner_extent(&p->fuse_w2, 2, 0,
                                                                 p->bottleneck)) };
}

/* S: what the given tensors say. */
static int64_t token_count(const Params *p)
{
    int64_t count = p->n_tokens;

    if (p->fuse)
        count = learner_extent(&p->fuse_mix, 2, 0, learner_extent(&p->fuse_w2, 2, 1, count));
    if (p->variant == VARIANT_V10)
        return learner_extent(&p->conv1, 4, 3, learner_extent(&p->conv4, 4, 3, count));
    return learner_extent(&p->w2, 2, 1, learner_extent(&p->b2, 1, 0, count));
}

static void fuse(Run *r, const Params *p, const Sizes *s, Tensor a, Tensor tokens)
{
    Tensor mix, t, b, out;

    run_stage(r, "mix tokens");
    mix = dense_matrix(r, "fuse_mix", p->fuse_mix, s->tokens, s->tokens, 0);
    t = learner_mixed(r, p, tokens, mix);
    run_stage(r, "fuse maps");
    b = fuse_maps(r, p, s);
    implicit_factor(r, "factor_left", VIEW_WEIGHTS, b, "position", "token");
    run_stage(r, "fuse");
    out = learner_product(r, b, t);
    if (p->fuse_residual)
        out = dense_add(r, out, tensor_with_rank(r->x, 3));
    r->out = dense_rounded(r, out);
    show_fused(r, fused_left(r, p, b, mix), a);
}

/* t f64 [1,S,dm] */
static Tensor learner_mixed(Run *r, const Params *p, Tensor tokens, Tensor mix)
{
    int64_t count = tokens.shape[1];
    Tensor  bias = dense_vector(r, "fuse_bias", p->fuse_bias, count);
    Tensor  t = run_tensor3(r, DT_F64, 1, count, r->dm);

    if (p->fuse_norm)
        tokens = normed(r, "fuse_ln1_g", p->fuse_ln1_g, "fuse_ln1_b", p->fuse_ln1_b, tokens);
    if (bias.data)
        op_entries(r, tensor_of(DT_F32, 3, (int64_t[]){ 1, count, 1 }, bias.data), ENTRY_CAST, 0,
                   t);
    op_gemm(r, mix, true, tokens, false, 1, bias.data ? 1 : 0, t, FLOP_OVERHEAD);
    return p->fuse_norm ? normed(r, "fuse_ln2_g", p->fuse_ln2_g, "fuse_ln2_b", p->fuse_ln2_b, t)
                        : t;
}

static Tensor normed(Run *r, const char *g_name, Tensor g, const char *b_name, Tensor b, Tensor x)
{
    return dense_norm(r, x, dense_vector(r, g_name, g, r->dm), dense_vector(r, b_name, b, r->dm),
                      LAYER_EPS, FLOP_APART);
}

/* B f64 [1,n,S] */
static Tensor fuse_maps(Run *r, const Params *p, const Sizes *s)
{
    Network net = { .w1_name = "fuse_w1", .b1_name = "fuse_b1", .w2_name = "fuse_w2",
                    .b2_name = "fuse_b2", .w1 = p->fuse_w1, .b1 = p->fuse_b1, .w2 = p->fuse_w2,
                    .b2 = p->fuse_b2, .hidden = s->fuse_hidden, .out = s->tokens };
    Tensor  z = normed(r, "fuse_ln3_g", p->fuse_ln3_g, "fuse_ln3_b", p->fuse_ln3_b,
                       tensor_with_rank(r->x, 3));

    learner_load(r, &net);
    return dense_activate(r, network(r, &net, z), ENTRY_SIGMOID);
}

static void learner_load(Run *r, Network *net)
{
    net->w1 = dense_matrix(r, net->w1_name, net->w1, r->dm, net->hidden, 0);
    net->b1 = dense_vector(r, net->b1_name, net->b1, net->hidden);
    net->w2 = dense_matrix(r, net->w2_name, net->w2, net->hidden, net->out, 0);
    net->b2 = dense_vector(r, net->b2_name, net->b2, net->out);
}

/* gelu(z w1 + b1) w2 + b2 */
static Tensor network(Run *r, const Network *net, Tensor z)
{
    const Tensor none = { .rank = 0 };
    Tensor       y = dense_layer(r, z, net->w1, net->b1, none, FLOP_OVERHEAD);

    y = dense_activate(r, y, ENTRY_GELU_TANH);
    return dense_layer(r, y, net->w2, net->b2, none, FLOP_OVERHEAD);
}

/* a b of every head, f64. */
static Tensor learner_product(Run *r, Tensor a, Tensor b)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], b.shape[2]);

    op_gemm(r, a, false, b, false, 1, 0, y, FLOP_MIX);
    return y;
}

static void show_fused(Run *r, Tensor left, Tensor a)
{
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    cells = learner_all_cells(r, r->n);
    implicit_connectivity(r, cells);
    if (left.data)
        implicit_weights(r, (Implicit){ .left = left, .right = dense_turned(r, a) }, VIEW_SIGNED,
                         cells);
}

static Pattern *learner_all_cells(Run *r, int64_t rows)
{
    PatternShape shape = { .heads = 1, .n = rows, .m = r->n };
    Pattern     *all = run_failed(r) ? NULL : pattern_full(r->arena, shape, COMPONENT_OTHER);

    all = all ? pattern_finish(r->arena, shape, all, false) : NULL;
    if (!all)
        run_fail(r, ERR_NOMEM, "tokenlearner: not enough memory for the pattern");
    return all;
}

/* B mix^T, f64 [1,n,S]: the left factor of the weights; data NULL: there are none. */
static Tensor fused_left(Run *r, const Params *p, Tensor b, Tensor mix)
{
    Tensor bias = dense_vector(r, "fuse_bias", p->fuse_bias, mix.shape[1]), left;

    if (!run_wants_views(r) || p->fuse_norm || p->fuse_residual || any(bias))
        return (Tensor){ .rank = 0 };
    left = run_tensor3(r, DT_F64, 1, b.shape[1], mix.shape[1]);
    op_gemm(r, b, false, mix, true, 1, 0, left, FLOP_NONE);
    return left;
}

static bool any(Tensor t)
{
    for (int64_t x = 0; t.data && x < tensor_count(&t); x++)
        if (!(tensor_f32(&t)[x] == 0))
            return true;
    return false;
}

static int64_t learner_extent(const Tensor *t, int rank, int axis, int64_t otherwise)
{
    return t->data && t->rank == rank ? t->shape[axis] : otherwise;
}

/* v11: A f64 [1,S,n], in float as far as that will do. */
static Tensor softmax_maps(Run *r, const Params *p, const Sizes *s)
{
    Network net = { .w1_name = "w1", .b1_name = "b1", .w2_name = "w2", .b2_name = "b2",
                    .w1 = p->w1, .b1 = p->b1, .w2 = p->w2, .b2 = p->b2, .hidden = s->hidden,
                    .out = s->tokens };
    Tensor  x = tensor_with_rank(r->x, 3), a;
    Tensor  gain = dense_vector(r, "ln_g", p->ln_g, r->dm);
    Tensor  bias = dense_vector(r, "ln_b", p->ln_b, r->dm);

    learner_load(r, &net);
    if (run_failed(r))
        return x;
    if (float_will_do(r, &net, longest_standardised(r, gain, bias)))
        a = quick_network(r, &net, &(Standardised){ x, LAYER_EPS, gain.data, bias.data });
    else
        a = dense_turned(r, network(r, &net, normed(r, "ln_g", p->ln_g, "ln_b", p->ln_b, x)));
    op_softmax(r, a);
    return a;
}

/* Whether 2^-24 of what is added up on the way to a logit stays below 1e-5 at the very worst. */
static bool float_will_do(Run *r, const Network *net, double longest)
{
    double inner = longest * longest_column(r, net->w1);

    for (int64_t c = 0; c < net->hidden && net->b1.data; c++)
        inner += fabs((double)tensor_f32(&net->b1)[c]);
    return inner * fmax(1, longest_column(r, net->w2)) <= FLOAT_ENOUGH;
}

/* No standardised row is longer: sqrt(dm), before gain and bias. */
static double longest_standardised(Run *r, Tensor gain, Tensor bias)
{
    double most = gain.data ? 0 : 1, squares = 0;

    for (int64_t c = 0; c < r->dm; c++) {
        most = gain.data ? fmax(most, fabs((double)tensor_f32(&gain)[c])) : most;
        squares += bias.data ? pow((double)tensor_f32(&bias)[c], 2) : 0;
    }
    return most * sqrt((double)r->dm) + sqrt(squares);
}

/* The longest column of w [1,rows,cols]. */
static double longest_column(Run *r, Tensor w)
{
    ArenaMark mark = arena_mark(r->arena);
    double    most = op_largest_norm(r, dense_turned(r, w));

    arena_release(r->arena, mark);
    return most;
}

/* The same in float; f64 [1,out,n], turned. */
static Tensor quick_network(Run *r, const Network *net, const Standardised *z)
{
    int64_t n = z->x.shape[1], out = net->out;
    Tensor  hidden = op_standardised_product(r, z, net->w1, FLOP_OVERHEAD);
    Tensor  y = run_tensor3(r, DT_F32, 1, n, out), turned = run_tensor3(r, DT_F64, 1, out, n);

    op_gelu(r, hidden, net->b1.data);
    op_gemm(r, hidden, false, net->w2, false, 1, 0, y, FLOP_OVERHEAD);
    if (net->b2.data)
        op_entries_of(r, tensor_turned(y), tensor_of(DT_F32, 3, (int64_t[]){ 1, out, 1 },
                                                     net->b2.data), ENTRY_SUM, 1, turned);
    else
        op_entries(r, tensor_turned(y), ENTRY_CAST, 0, turned);
    return turned;
}

/* v10: A f64 [1,S,n] */
static Tensor convolved_maps(Run *r, const Params *p, const Sizes *s)
{
    Tensor z = normed(r, "ln_g", p->ln_g, "ln_b", p->ln_b, tensor_with_rank(r->x, 3));
    Tensor a = dense_turned(r, convolutions(r, p, z, s->tokens));

    if (p->pool == POOL_MEAN)
        op_entries(r, a, ENTRY_DIVIDE, (double)r->n, a);
    return a;
}

static Tensor convolutions(Run *r, const Params *p, Tensor z, int64_t tokens)
{
    static const char *const names[] = { "conv1", "conv2", "conv3", "conv4" };
    const Tensor given[] = { p->conv1, p->conv2, p->conv3, p->conv4 };
    ImageGrid    grid = { .height = p->grid_h, .width = p->grid_w };

    for (int t = 0; t < 4; t++) {
        z = image_convolved(r, grid, names[t], given[t], z, tokens);
        z = dense_activate(r, z, t < 3 ? ENTRY_GELU_TANH : ENTRY_SIGMOID);
    }
    return z;
}

/* z f64 [1,n,cols] by the taps [3,3,cols,out], the parameter `name` as given or drawn: f64
 * [1,n,out]. */
static Tensor image_convolved(Run *r, ImageGrid grid, const char *name, Tensor given, Tensor z,
                       int64_t out)
{
    int64_t   cols = z.shape[2];
    Init      init = { INIT_GLOROT, IMAGE_TAPS * ((double)cols + (double)out) };
    Tensor    taps = layer_weight(r, name, given, 4, (int64_t[]){ 3, 3, cols, out }, init);
    Tensor    y = run_tensor3(r, DT_F64, 1, r->n, out), moved;
    ArenaMark mark = arena_mark(r->arena);

    moved = run_tensor3(r, DT_F64, 1, r->n, cols);
    for (int64_t tap = 0; tap < IMAGE_TAPS && !run_failed(r); tap++) {
        Tensor w = tensor_of(DT_F32, 3, (int64_t[]){ 1, cols, out },
                             tensor_f32(&taps) + tap * cols * out);

        move_pixels(r, grid, z, tap, moved);
        op_gemm(r, moved, false, w, false, 1, tap > 0, y, FLOP_OVERHEAD);
    }
    arena_release(r->arena, mark);
    return y;
}

/* to [1,n,cols] = z moved by a tap: pixel (i + tap/3 - 1, j + tap%3 - 1), 0 outside. */
static void move_pixels(Run *r, ImageGrid grid, Tensor z, int64_t tap, Tensor to)
{
    int64_t down = tap / 3 - 1, along = tap % 3 - 1;
    int64_t rows = grid.height - (down != 0), width = grid.width - (along != 0);

    if (down || along)
        op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, to);
    op_entries(r, pixels(grid, z, learner_positive(down), rows, learner_positive(along), width),
               ENTRY_CAST, 0,
               pixels(grid, to, learner_positive(-down), rows, learner_positive(-along), width));
}

/* A 3 x 3 convolution over tokens that are the pixels of an image.
 *
 * Nine products, one for each tap: the image is moved by the tap, with 0 from outside.
 */

/* Pixels [i,i+rows) x [j,j+width) of t [1,n,cols], an image. */
static Tensor pixels(ImageGrid grid, Tensor t, int64_t i, int64_t rows, int64_t j, int64_t width)
{
    int64_t cols = t.shape[2];
    Tensor  y = tensor_of(DT_F64, 3, (int64_t[]){ rows, width, cols },
                          (double *)t.data + (i * grid.width + j) * cols);

    y.stride[0] = grid.width * cols;
    return y;
}

static int64_t learner_positive(int64_t x)
{
    return x > 0 ? x : 0;
}

/* A x, f64 [1,S,dm]: maps that are weights of a softmax lose nothing by being rounded. */
static Tensor learner_pooled(Run *r, const Params *p, Tensor a)
{
    Tensor x = tensor_with_rank(r->x, 3), tokens;

    if (run_failed(r) || p->variant == VARIANT_V10)
        return learner_product(r, a, x);
    tokens = run_tensor3(r, DT_F64, 1, a.shape[1], r->dm);
    op_gemm_long(r, dense_rounded(r, a), x, 1, tokens, FLOP_MIX);
    return tokens;
}

static void show_tokens(Run *r, const Params *p, Tensor a, Tensor tokens)
{
    View *weights;

    if (!run_wants_views(r))
        return;
    view_stage(r, "maps", -1);
    implicit_factor(r, "factor_right", VIEW_WEIGHTS, a, "token", "position");
    show_images(r, p, a);
    view_stage(r, NULL, -1);
    implicit_factor(r, "memory", VIEW_VECTORS, tokens, "token", "value");
    if (p->fuse)
        return;
    weights = implicit_factor(r, "weights", VIEW_WEIGHTS, a, "token", "position");
    if (weights) {
        weights->support = learner_all_cells(r, a.shape[1]);
        implicit_connectivity(r, weights->support);
    }
}

/* The maps as images side by side, where the tokens are pixels of one. */
static void show_images(Run *r, const Params *p, Tensor a)
{
    int64_t width = p->grid_w ? p->grid_w : r->spec.width, count = a.shape[1], *first;
    int     before = r->view_count;
    Tensor  images;

    if (!run_wants_views(r) || width < 1 || r->n % width)
        return;
    images = run_tensor2(r, DT_F32, r->n / width, count * width);
    first = run_alloc(r, count, sizeof(*first));
    for (int64_t x = 0; x < count * r->n && !run_failed(r); x++) {
        int64_t token = x / r->n, i = x % r->n / width, j = x % r->n % width;

        first[token] = token * width;
        tensor_f32(&images)[(i * count + token) * width + j] = (float)((double *)a.data)[x];
    }
    view_tensor(r, "images", VIEW_WEIGHTS, images, "row", "column of each map");
    if (r->view_count > before) {
        r->views[before].col_groups = first;
        r->views[before].col_group_count = count;
    }
}

static void tokenlearner_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->variant == VARIANT_V10 && (!p->grid_h || !p->grid_w))
        run_fail(r, ERR_PARAM, "tokenlearner: variant=v10 convolves an image: give grid_h and "
                 "grid_w with grid_h * grid_w = n = %lld", (long long)r->n);
    if ((p->grid_h || p->grid_w) && p->grid_h * p->grid_w != r->n)
        run_fail(r, ERR_PARAM, "tokenlearner: grid_h=%lld times grid_w=%lld is %lld, but the input "
                 "has n=%lld tokens", (long long)p->grid_h, (long long)p->grid_w,
                 (long long)(p->grid_h * p->grid_w), (long long)r->n);
}

static Flops tokenlearner_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = sizes_of(p);
    double n = (double)r->n, dm = (double)r->dm, S = (double)s.tokens;
    double hidden = (double)s.hidden, fuse_hidden = (double)s.fuse_hidden;
    Flops  sum = { .mix = 2 * n * S * dm };

    sum.overhead = p->variant == VARIANT_V11
                       ? 2 * n * hidden * (dm + S) + FLOPS_ROW_SOFTMAX * n * S
                       : 2 * IMAGE_TAPS * n * S * (dm + 3 * S);
    if (p->fuse) {
        sum.mix += 2 * n * S * dm;
        sum.overhead += 2 * S * S * dm + 2 * n * fuse_hidden * (dm + S);
    }
    return sum;
}

static const StageNote notes[] = {
    { "maps",
      "A small network looks at every token by itself and writes S numbers: how much it belongs "
      "to each learned token." },
    { "pool", "Each learned token is the sum of all tokens, weighed by its map." },
    { "mix tokens",
      "The learned tokens are mixed with each other; in a model whole layers run here, on S tokens "
      "instead of n." },
    { "fuse maps",
      "A second network says, for every position, how much it takes of each learned token." },
    { "fuse", "The learned tokens return to the n positions." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells"),
    VIEW("weights", VIEW_WEIGHTS, "A, with x as values; fuse: only without norms, bias and "
         "residual, then with signs", .maybe = true),
    VIEW("factor_right", VIEW_WEIGHTS, "A: the map of each learned token"),
    VIEW("factor_left", VIEW_WEIGHTS, "fuse: what each position takes of each token",
         .maybe = true),
    VIEW("memory", VIEW_VECTORS, "the learned tokens"),
    VIEW("images", VIEW_WEIGHTS, "the maps side by side, where the tokens are pixels of an image",
         .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_tokenlearner = {
    .id = "tokenlearner",
    .title = "TokenLearner",
    .authors = "Ryoo, Piergiovanni, Arnab, Dehghani, Angelova",
    .year = 2021,
    .arxiv = "2106.11297",
    .source = "paper; google-research/scenic projects/token_learner/model.py",
    .formula = "A = softmax over tokens of (gelu(LN(x) w1) w2)^T,  tokens = A x\n"
               "fuse: output = B mix(tokens) + x,  B = sigmoid(gelu(LN(x) w1') w2')\n"
               "S learned tokens, k in the time; hidden: width of their small network",
    .problem = "Images and videos give more tokens than a model needs.",
    .idea = "A few learned heat maps each blend the input into one new token.",
    .price = "Details that no map picks out are gone for the layers that follow.",
    .teaches = "S heat strips over the input, one for each learned token: the layers that follow "
               "run on S tokens instead of n, and attention on S^2 pairs instead of n^2.",
    .picture = "factor_right",
    .example = "n_tokens=4",
    .classes = CLASS_DS,
    .claim_time = "O(k^2), for what follows on k learned tokens; the module itself O(n S hidden)",
    .claim_memory = "O(k^2), for what follows",
    .claim_decode = "no",
    .no_causal = "each learned token sums over all positions, later ones too",
    .needs_x = true,
    .own_rows = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = tokenlearner_check,
    .run = tokenlearner_run,
    .flops = tokenlearner_flops,
};
