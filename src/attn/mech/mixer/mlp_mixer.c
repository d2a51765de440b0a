/* mlp_mixer.c -- an MLP over tokens, the same for every channel.
 *
 *     Y   = LN(x)
 *     A   = Y^T w1 + b1                      [dm,t], row c = channel c
 *     U   = (gelu(A) w2 + b2)^T              [n,dm]
 *     out = x + U
 *     block: out + gelu(LN(out) w3 + b3) w4 + b4
 *
 * gelu(a) = a g(a), so for one input and one channel the map is a matrix:
 *
 *     U[i,c] = sum_j A_c[i,j] Y[j,c] + terms of b1 and b2
 *     A_c[i,j] = sum_t w1[j,t] g(a_ct) w2[t,i]
 *
 * With 1 in place of g, A is (w1 w2)^T, which no input changes; with gelu' it is the derivative
 * dU[i,c] / dY[j,c].  (Tolstikhin et al. 2021, section 2.)
 */
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { PART_TOKEN, PART_BLOCK };
static const char *const parts[] = { "token", "block", NULL };

typedef struct Params {
    int     part, gelu;
    int64_t tokens_hidden, channels_hidden, channel;
    bool    norm, residual;
    double  ln_eps;
    Tensor  w1, b1, w2, b2, w3, b3, w4, b4;
    Tensor  ln1_gamma, ln1_beta, ln2_gamma, ln2_beta;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, part, PART_TOKEN, parts, "the MLP over tokens alone, or the one over "
               "channels after it"),
    PARAM_INT(Params, tokens_hidden, PARAM_AUTO, 1, INT32_MAX, "width t of the token MLP; auto: "
              "of w1, else 2 n"),
    PARAM_INT(Params, channels_hidden, PARAM_AUTO, 1, INT32_MAX, "width of the channel MLP; auto: "
              "of w3, else 4 dm"),
    PARAM_BOOL(Params, norm, true, "layer normalisation before a branch"),
    PARAM_BOOL(Params, residual, true, "add what the branch read"),
    PARAM_ENUM(Params, gelu, GELU_TANH, gelu_names, "form of GELU; the official code uses tanh"),
    PARAM_POSITIVE(Params, ln_eps, 1e-6, "added to the variance of a layer normalisation"),
    PARAM_INT(Params, channel, -1, -1, INT32_MAX, "channel whose matrices are shown; -1: the mean "
              "over all"),
    PARAM_TENSOR(Params, w1, "[n,t]", "N(0, 1/n)", "token MLP, first layer"),
    PARAM_TENSOR(Params, b1, "[t]", "0", "its bias"),
    PARAM_TENSOR(Params, w2, "[t,n]", "N(0, 1/t)", "token MLP, second layer"),
    PARAM_TENSOR(Params, b2, "[n]", "0", "its bias"),
    PARAM_TENSOR(Params, w3, "[dm,c]", "N(0, 1/dm)", "block: channel MLP, first layer"),
    PARAM_TENSOR(Params, b3, "[c]", "0", "its bias"),
    PARAM_TENSOR(Params, w4, "[c,dm]", "N(0, 1/c)", "block: channel MLP, second layer"),
    PARAM_TENSOR(Params, b4, "[dm]", "0", "its bias"),
    PARAM_TENSOR(Params, ln1_gamma, "[dm]", "1", "gain of the first normalisation"),
    PARAM_TENSOR(Params, ln1_beta, "[dm]", "0", "its bias"),
    PARAM_TENSOR(Params, ln2_gamma, "[dm]", "1", "block: gain of the second"),
    PARAM_TENSOR(Params, ln2_beta, "[dm]", "0", "its bias"),
    PARAM_END
};

typedef struct Widths {
    int64_t tokens, channels;
} Widths;

/* Cell (i,j) = sum_t w1[j,t] gate[t] w2[t,i]; absolute: the mean over the channels of its absolute
 * value, each channel with its own gates. */
typedef struct Mixed {
    const float  *w1, *w2; /* [n,t], [t,n] */
    const double *gate;    /* [t]; [channels,t] when absolute; NULL: 1 */
    int64_t       n, t, channels;
    bool          absolute;
} Mixed;

#define CELLS 1024
#define UNITS 512

#define TILE_UNITS 128

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }

static Widths widths(Run *r, const Params *p);
static Tensor token_branch(Run *r, const Params *p, int64_t t, Tensor x);
static Tensor mixed_down(Run *r, Tensor features, Tensor w2, Tensor b2, Tensor base);
static void show_matrices(Run *r, const Params *p, Tensor w1, Tensor w2, Tensor a);
static void show_mixed(Run *r, const char *name, Mixed mixed, ViewKind kind);
static void read_mixed(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out);
static void mlp_mixer_read_cells(const Mixed *s, int64_t i, const int64_t at[2], int64_t cells,
                                 float *out);
static void mixed_cells(const Mixed *s, const double *gate, int64_t i, const int64_t at[2],
                        int64_t cells, double *sum);
static void add_units(const Mixed *s, const double *gate, int64_t i, int64_t first, int64_t count,
                      const int64_t at[2], int64_t cells, double *sum);
static void read_mixed_rows(const View *view, int64_t plane, const int64_t *rows,
                            int64_t row_count, int64_t start, int64_t count, float *out);
static void mlp_mixer_add_tile(const Mixed *s, const double *gate, const int64_t *rows,
                               int64_t row_count,
                               int64_t first, int64_t count, int64_t start, int64_t cells,
                               double sum[][VIEW_KEYS_MOST]);
static const double *gates_of(Run *r, const Params *p, Tensor a, bool slope, bool mean);
static Tensor channel_branch(Run *r, const Params *p, int64_t c, Tensor x);
static void check_length(Run *r, const char *name, Tensor given, int rank, int axis);

static void mlp_mixer_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Widths        w = widths(r, p);
    Tensor        out;

    run_stage(r, "weights");
    if (run_failed(r))
        return;
    out = token_branch(r, p, w.tokens, tensor_with_rank(r->x, 3));
    if (p->part == PART_BLOCK) {
        run_stage(r, "mix channels");
        out = channel_branch(r, p, w.channels, out);
    }
    r->out = dense_rounded(r, out);
}

static Widths widths(Run *r, const Params *p)
{
    Widths w;

    w.tokens = layer_size(r, "tokens_hidden", p->tokens_hidden, 2 * r->n,
                          (const SizeFrom[]){ { "w1", p->w1, 2, 1, 1 }, { "b1", p->b1, 1, 0, 1 },
                                              { "w2", p->w2, 2, 0, 1 }, { .name = NULL } });
    w.channels = layer_size(r, "channels_hidden", p->channels_hidden, 4 * r->dm,
                            (const SizeFrom[]){ { "w3", p->w3, 2, 1, 1 }, { "b3", p->b3, 1, 0, 1 },
                                                { "w4", p->w4, 2, 0, 1 }, { .name = NULL } });
    return w;
}

static Tensor token_branch(Run *r, const Params *p, int64_t t, Tensor x)
{
    int64_t n = r->n, dm = r->dm;
    Tensor  gain = layer_given(r, "ln1_gamma", p->ln1_gamma, 1, (int64_t[]){ dm });
    Tensor  bias = layer_given(r, "ln1_beta", p->ln1_beta, 1, (int64_t[]){ dm });
    Tensor  w1 = layer_weight(r, "w1", p->w1, 2, (int64_t[]){ n, t }, layer_by_fan(n));
    Tensor  b1 = layer_given(r, "b1", p->b1, 1, (int64_t[]){ t });
    Tensor  w2 = layer_weight(r, "w2", p->w2, 2, (int64_t[]){ t, n }, layer_by_fan(t));
    Tensor  b2 = layer_given(r, "b2", p->b2, 1, (int64_t[]){ n });
    Tensor  none = { .rank = 0 }, y, a, features, u;

    run_stage(r, "normalise");
    y = p->norm ? dense_norm(r, x, gain, bias, p->ln_eps, FLOP_OVERHEAD) : x;
    run_stage(r, "mix tokens");
    a = run_tensor3(r, DT_F64, 1, dm, t);
    if (b1.data)
        op_entries(r, b1, ENTRY_CAST, 0, a);
    op_gemm(r, y, true, tensor_with_rank(w1, 3), false, 1, b1.data ? 1 : 0, a, FLOP_MIX);
    features = dense_gelu(r, a, (GeluForm)p->gelu);
    implicit_factor(r, "features", VIEW_FEATURES, tensor_with_rank(features, 2), "channel",
                    "hidden token");
    run_stage(r, "back to tokens");
    u = mixed_down(r, features, w2, b2, p->residual ? x : none);
    show_matrices(r, p, w1, w2, a);
    return u;
}

/* U [n,dm] = w2^T features^T + b2 (a number for each row) + base */
static Tensor mixed_down(Run *r, Tensor features, Tensor w2, Tensor b2, Tensor base)
{
    int64_t n = r->n, dm = r->dm;
    Tensor  u = run_tensor3(r, DT_F64, 1, n, dm);

    if (base.data)
        op_entries(r, base, ENTRY_CAST, 0, u);
    else
        op_entries(r, base, ENTRY_FILL, 0, u);
    if (b2.data)
        op_entries_of(r, u, tensor_of(DT_F32, 3, (int64_t[]){ 1, n, 1 }, b2.data), ENTRY_SUM, 1, u);
    op_gemm(r, tensor_with_rank(w2, 3), true, features, true, 1, 1, u, FLOP_MIX);
    return u;
}

/* ---- the matrices of one input ---------------------------------------------- */

static void show_matrices(Run *r, const Params *p, Tensor w1, Tensor w2, Tensor a)
{
    PatternShape  shape = { .heads = 1, .n = r->n, .m = r->n };
    int64_t       t = a.shape[2];
    Mixed         s = { .w1 = w1.data, .w2 = w2.data, .n = r->n, .t = t, .channels = 1 };
    const double *gates, *slopes;

    if (!run_wants_views(r))
        return;
    view_cells(r, "connectivity", pattern_finish(r->arena, shape,
                                                 pattern_full(r->arena, shape, COMPONENT_OTHER),
                                                 false));
    show_mixed(r, "mixing", s, VIEW_SIGNED);
    if (p->channel >= 0) { /* the matrices of one channel, no mean */
        a.shape[1] = 1;
        a.data = (double *)a.data + p->channel * t;
    }
    gates = gates_of(r, p, a, false, true);
    slopes = gates_of(r, p, a, true, true);
    s.gate = gates;
    show_mixed(r, "gated", s, VIEW_SIGNED);
    s.gate = slopes;
    show_mixed(r, "jacobian", s, VIEW_SIGNED);
    s.gate = gates_of(r, p, a, true, false);
    s.channels = a.shape[1];
    s.absolute = true;
    show_mixed(r, "jacobian_abs", s, VIEW_WEIGHTS);
}

static void show_mixed(Run *r, const char *name, Mixed mixed, ViewKind kind)
{
    Mixed *s = run_wants_views(r) ? run_alloc(r, 1, sizeof(*s)) : NULL;
    View  *view = s ? view_add(r, name, kind, DT_F32, 2, (int64_t[]){ r->n, r->n }) : NULL;

    if (!view)
        return;
    *s = mixed;
    view->read = read_mixed;
    view->read_rows = read_mixed_rows;
    view->context = s;
    view->cost = IMPLICIT_WIDE_COST * (double)s->t * (double)s->channels;
    view->rows = "output token";
    view->cols = "input token";
}

static void read_mixed(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    (void)plane;
    for (int64_t done = 0; done < count; done += CELLS) {
        int64_t cells = count - done < CELLS ? count - done : CELLS;

        mlp_mixer_read_cells(view->context, i, (int64_t[]){ start + done * step, step }, cells,
                             out + done);
    }
}

/* Cells at[0], at[0] + at[1], ... of row i: their mean over the channels. */
static void mlp_mixer_read_cells(const Mixed *s, int64_t i, const int64_t at[2], int64_t cells,
                                 float *out)
{
    double sum[CELLS], mean[CELLS];

    for (int64_t x = 0; x < cells; x++)
        mean[x] = 0;
    for (int64_t c = 0; c < s->channels; c++) {
        mixed_cells(s, s->gate ? s->gate + c * s->t : NULL, i, at, cells, sum);
        for (int64_t x = 0; x < cells; x++)
            mean[x] += (s->absolute ? fabs(sum[x]) : sum[x]) / (double)s->channels;
    }
    for (int64_t x = 0; x < cells; x++)
        out[x] = (float)mean[x];
}

static void mixed_cells(const Mixed *s, const double *gate, int64_t i, const int64_t at[2],
                        int64_t cells, double *sum)
{
    for (int64_t x = 0; x < cells; x++)
        sum[x] = 0;
    for (int64_t u = 0; u < s->t; u += UNITS)
        add_units(s, gate, i, u, s->t - u < UNITS ? s->t - u : UNITS, at, cells, sum);
}

/* Adds the terms of units [first, first+count).  A column of w2 costs one cache miss per unit, so
 * the factors are computed once for all cells. */
static void add_units(const Mixed *s, const double *gate, int64_t i, int64_t first, int64_t count,
                      const int64_t at[2], int64_t cells, double *sum)
{
    double factor[UNITS];

    for (int64_t u = 0; u < count; u++)
        factor[u] = (double)s->w2[(first + u) * s->n + i] * (gate ? gate[first + u] : 1);
    for (int64_t x = 0; x < cells; x++)
        sum[x] += implicit_dot(s->w1 + (at[0] + x * at[1]) * s->t + first, factor, count);
}

static void read_mixed_rows(const View *view, int64_t plane, const int64_t *rows,
                            int64_t row_count, int64_t start, int64_t count, float *out)
{
    const Mixed *s = view->context;
    double       mean[VIEW_ROWS_MOST][VIEW_KEYS_MOST], sum[VIEW_ROWS_MOST][VIEW_KEYS_MOST];

    (void)plane;
    memset(mean, 0, sizeof(mean));
    for (int64_t c = 0; c < s->channels; c++) {
        const double *gate = s->gate ? s->gate + c * s->t : NULL;

        memset(sum, 0, sizeof(sum));
        for (int64_t u = 0; u < s->t; u += TILE_UNITS)
            mlp_mixer_add_tile(s, gate, rows, row_count, u,
                               s->t - u < TILE_UNITS ? s->t - u : TILE_UNITS,
                               start, count, sum);
        for (int64_t r = 0; r < row_count; r++)
            for (int64_t x = 0; x < count; x++)
                mean[r][x] += (s->absolute ? fabs(sum[r][x]) : sum[r][x]) / (double)s->channels;
    }
    for (int64_t r = 0; r < row_count; r++)
        for (int64_t x = 0; x < count; x++)
            out[r * count + x] = (float)mean[r][x];
}

/* Adds the terms of units [first, first+count) to a tile of rows and keys; w1 is read once for all
 * rows. */
static void mlp_mixer_add_tile(const Mixed *s, const double *gate, const int64_t *rows,
                               int64_t row_count,
                               int64_t first, int64_t count, int64_t start, int64_t cells,
                               double sum[][VIEW_KEYS_MOST])
{
    double factor[VIEW_ROWS_MOST][TILE_UNITS];

    for (int64_t u = 0; u < count; u++)
        for (int64_t r = 0; r < row_count; r++)
            factor[r][u] = (double)s->w2[(first + u) * s->n + rows[r]] *
                           (gate ? gate[first + u] : 1);
    for (int64_t x = 0; x < cells; x++)
        for (int64_t r = 0; r < row_count; r++)
            sum[r][x] += implicit_dot(s->w1 + (start + x) * s->t + first, factor[r], count);
}

/* g of a [dm,t], or gelu' (slope): [dm,t], or the mean over the channels [t]. */
static const double *gates_of(Run *r, const Params *p, Tensor a, bool slope, bool mean)
{
    int64_t dm = a.shape[1], t = a.shape[2], planes = mean ? 1 : dm;
    double *gate = run_alloc(r, planes * t, sizeof(*gate));

    for (int64_t x = 0; x < planes * t && !run_failed(r); x++)
        gate[x] = 0;
    for (int64_t x = 0; x < dm * t && !run_failed(r); x++) {
        double value = a.dtype == DT_F64 ? ((const double *)a.data)[x] : (double)tensor_f32(&a)[x];

        gate[mean ? x % t : x] += (slope ? gelu_slope(value, (GeluForm)p->gelu)
                                         : gelu_gate(value, (GeluForm)p->gelu)) /
                                  (mean ? (double)dm : 1);
    }
    return gate;
}

static Tensor channel_branch(Run *r, const Params *p, int64_t c, Tensor x)
{
    int64_t dm = r->dm;
    Tensor  gain = layer_given(r, "ln2_gamma", p->ln2_gamma, 1, (int64_t[]){ dm });
    Tensor  bias = layer_given(r, "ln2_beta", p->ln2_beta, 1, (int64_t[]){ dm });
    Tensor  w3 = layer_weight(r, "w3", p->w3, 2, (int64_t[]){ dm, c }, layer_by_fan(dm));
    Tensor  b3 = layer_given(r, "b3", p->b3, 1, (int64_t[]){ c });
    Tensor  w4 = layer_weight(r, "w4", p->w4, 2, (int64_t[]){ c, dm }, layer_by_fan(c));
    Tensor  b4 = layer_given(r, "b4", p->b4, 1, (int64_t[]){ dm });
    Tensor  none = { .rank = 0 }, z;

    z = p->norm ? dense_norm(r, x, gain, bias, p->ln_eps, FLOP_OVERHEAD) : x;
    z = dense_gelu(r, dense_layer(r, z, w3, b3, none, FLOP_OVERHEAD), (GeluForm)p->gelu);
    return dense_layer(r, z, w4, b4, p->residual ? x : none, FLOP_OVERHEAD);
}

static void mlp_mixer_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    check_length(r, "w1", p->w1, 2, 0);
    check_length(r, "w2", p->w2, 2, 1);
    check_length(r, "b2", p->b2, 1, 0);
    if (p->channel >= r->dm)
        run_fail(r, ERR_PARAM, "mlp-mixer: channel=%lld, but x has %lld channels, numbered from 0",
                 (long long)p->channel, (long long)r->dm);
}

/* The weights fix the length n, so another length has a message of its own. */
static void check_length(Run *r, const char *name, Tensor given, int rank, int axis)
{
    if (given.data && given.rank == rank && given.shape[axis] != r->n)
        run_fail(r, ERR_PARAM, "mlp-mixer: parameter %s was made for %lld tokens and the input has "
                 "%lld; an MLP over tokens holds for one length only", name,
                 (long long)given.shape[axis], (long long)r->n);
}

static Flops mlp_mixer_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Widths        w = widths(r, p);
    double        n = (double)r->n, dm = (double)r->dm, t = (double)w.tokens;
    double        c = (double)w.channels, norm = p->norm ? DENSE_NORM_FLOPS * n * dm : 0;
    Flops         sum = { .mix = 4 * n * t * dm, .overhead = norm + DENSE_GELU_FLOPS * dm * t };

    if (p->part == PART_BLOCK)
        sum.overhead += 4 * n * dm * c + norm + DENSE_GELU_FLOPS * n * c;
    return sum;
}

static const StageNote notes[] = {
    { "weights", "The matrices are taken from files or drawn; those over tokens fix the length." },
    { "normalise", "Each token is brought to mean 0 and variance 1 over its channels." },
    { "mix tokens", "Every channel, seen as a row of n tokens, goes through the same first layer; "
                    "GELU lets a share of each hidden unit pass." },
    { "back to tokens", "The second layer makes n tokens of the hidden units again: for this "
                        "input and channel the two layers are one n x n matrix, `gated`." },
    { "mix channels", "An ordinary feed-forward layer, token by token." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("mixing", VIEW_SIGNED, "(w1 w2)^T, the linear skeleton: the same for every input"),
    VIEW("gated", VIEW_SIGNED, "the exact matrix of this input, of `channel` or the mean over "
         "channels"),
    VIEW("jacobian", VIEW_SIGNED, "dU[i,c] / dY[j,c], of `channel` or the mean over channels"),
    VIEW("jacobian_abs", VIEW_WEIGHTS, "the mean of its absolute values"),
    VIEW("features", VIEW_FEATURES, "gelu(A), a row for each channel"),
    VIEW("connectivity", VIEW_PATTERN, "all cells"),
    DRAWN("w1"), DRAWN("w2"), DRAWN("w3"), DRAWN("w4"),
    VIEW_PROMISE_END
};

const Mechanism mech_mlp_mixer = {
    .id = "mlp-mixer",
    .title = "MLP-Mixer",
    .authors = "Tolstikhin et al.",
    .year = 2021,
    .arxiv = "2105.01601",
    .source = "paper, section 2; official Flax model",
    .formula = "U = (gelu(LN(x)^T w1 + b1) w2 + b2)^T,  out = x + U\n"
               "for one input: U[:,c] = A_c Y[:,c] + const,\n"
               "               A_c[i,j] = sum_t w1[j,t] g(a_ct) w2[t,i]\n"
               "gelu(a) = a g(a), t: hidden tokens",
    .problem = "It is not clear that attention is needed to mix tokens.",
    .idea = "A small network is applied along the tokens, the same for each channel, between "
            "networks along the channels.",
    .price = "The length is fixed, and the mixing hardly reacts to the content.",
    .teaches = "Tokens mix without being compared: `mixing` is the same whatever the input, "
               "`gated` is a copy of it that the input dims here and there.  Weights may be "
               "negative, and the sequence length is built into them.",
    .picture = "gated",
    .classes = CLASS_MX,
    .claim_time = "O(n t dm); t = 2 n: O(n^2 dm)",
    .claim_memory = "O(t dm)",
    .claim_decode = "no: every output reads every token, and n is fixed",
    .claim_exponent = 2,
    .no_causal = "its matrix over tokens is full",
    .needs_x = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = mlp_mixer_check,
    .run = mlp_mixer_run,
    .flops = mlp_mixer_flops,
};
