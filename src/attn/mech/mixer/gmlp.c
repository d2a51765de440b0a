/* gmlp.c -- a gate for every token, made by one learned matrix over tokens.
 *
 *     y   = LN(x);  Z = gelu(y w_in + b_in) = [Z1, Z2]      halves of the channels
 *     V   = LN(Z2)
 *     G   = W V + b                                         W [n,n], b one number a row
 *     out = (Z1 * G) w_out + b_out + x
 *
 * Causal: the lower triangle of W.  aMLP adds the output of a small one-head attention of y to G.
 * W starts near 0 and b at 1, so G starts at 1 and the unit passes Z1 unchanged.  (Liu et al. 2021,
 * section 2 and appendix.)
 */
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { PART_BLOCK, PART_SGU };
static const char *const parts[] = { "block", "sgu", NULL };

typedef struct Params {
    int     part, gelu;
    int64_t d_ff;
    bool    norm, gate_norm, residual, tiny_attention;
    double  ln_eps;
    Tensor  w_in, b_in, w_out, b_out, w_spatial, b_spatial;
    Tensor  ln1_gamma, ln1_beta, ln2_gamma, ln2_beta;
    Tensor  w_qkv, b_qkv, w_att_out, b_att_out;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, part, PART_BLOCK, parts, "the whole block, or the gating unit alone (x is "
               "its activation)"),
    PARAM_INT(Params, d_ff, PARAM_AUTO, 2, INT32_MAX, "width before the split, even; auto: of "
              "w_in, else 6 dm"),
    PARAM_BOOL(Params, norm, true, "layer normalisation of x"),
    PARAM_BOOL(Params, gate_norm, true, "layer normalisation of the gated half"),
    PARAM_BOOL(Params, residual, true, "add x at the end"),
    PARAM_ENUM(Params, gelu, GELU_ERF, gelu_names, "form of GELU"),
    PARAM_POSITIVE(Params, ln_eps, 1e-5, "added to the variance of a layer normalisation"),
    PARAM_BOOL(Params, tiny_attention, false, "aMLP: add a small one-head attention to the gate "
               "(part=sgu: of x itself)"),
    PARAM_TENSOR(Params, w_in, "[dm,d_ff]", "N(0, 1/dm)", "first projection"),
    PARAM_TENSOR(Params, b_in, "[d_ff]", "0", "its bias"),
    PARAM_TENSOR(Params, w_out, "[d_ff/2,dm]", "N(0, 2/d_ff)", "last projection"),
    PARAM_TENSOR(Params, b_out, "[dm]", "0", "its bias"),
    PARAM_TENSOR(Params, w_spatial, "[n,n]", "uniform +-0.001/n", "matrix over tokens, row = "
                 "output position"),
    PARAM_TENSOR(Params, b_spatial, "[n]", "1", "its bias, one number a row"),
    PARAM_TENSOR(Params, ln1_gamma, "[dm]", "1", "gain of the first normalisation"),
    PARAM_TENSOR(Params, ln1_beta, "[dm]", "0", "its bias"),
    PARAM_TENSOR(Params, ln2_gamma, "[d_ff/2]", "1", "gain of the gated half's"),
    PARAM_TENSOR(Params, ln2_beta, "[d_ff/2]", "0", "its bias"),
    PARAM_TENSOR(Params, w_qkv, "[dm,3a]", "N(0, 1/dm), a = 64", "aMLP: queries, keys and values"),
    PARAM_TENSOR(Params, b_qkv, "[3a]", "0", "their bias"),
    PARAM_TENSOR(Params, w_att_out, "[a,d_ff/2]", "N(0, 1/a)", "aMLP: to the gate's channels"),
    PARAM_TENSOR(Params, b_att_out, "[d_ff/2]", "0", "its bias"),
    PARAM_END
};

#define TINY 64   /* width of the small attention when no file gives it */
#define BLOCK 256 /* rows of the triangle at a time */

typedef struct Sizes {
    int64_t half, tiny; /* d_ff / 2, a */
} Sizes;

typedef struct Tiny {
    LogitAttend in;
    Tensor      lse; /* f64 [1,n] */
} Tiny;

#define CELLS 256 /* cells computed at once */

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }

static Sizes gmlp_sizes(Run *r, const Params *p);
static int64_t gmlp_width_of(Run *r, const Params *p);
static Tensor project_in(Run *r, const Params *p, Sizes s, Tensor *y);
static Tensor half_of(Run *r, Tensor z, bool second);
static Tensor gate_of(Run *r, const Params *p, Sizes s, Tensor y, Tensor v);
static Tensor spatial(Run *r, Tensor w, Tensor b, Tensor v);
static void add_triangle(Run *r, Tensor w, Tensor v, Tensor gate);
static Tensor gmlp_triangle(Run *r, int64_t size);
static Tensor gmlp_piece(Tensor t, int64_t first, int64_t count, int64_t at, int64_t cols);
static void show_spatial(Run *r, Tensor w, const Pattern *cells);
static void gmlp_show_matrix(Run *r, const char *name, ViewReadRun read, const float *numbers,
                             const Pattern *cells);
static void read_spatial(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out);
static void show_diagonals(Run *r, const float *w, const Pattern *cells);
static void read_stripes(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out);
static Tensor add_tiny(Run *r, const Params *p, Sizes s, Tensor y, const Pattern *cells,
                       Tensor gate);
static Tensor third(Run *r, Tensor qkv, int64_t first, double factor, DType dtype);
static void read_tiny(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out);
static Tensor gmlp_values_of(Run *r, const Params *p, Sizes s, Tensor z);
static void gmlp_check_length(Run *r, const char *name, Tensor given);

static void gmlp_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = gmlp_sizes(r, p);
    int64_t       dm = r->dm;
    Tensor        x = tensor_with_rank(r->x, 3), y = x, z = x, out, gate, w, b;

    run_stage(r, "weights");
    if (run_failed(r))
        return;
    if (p->part == PART_BLOCK)
        z = project_in(r, p, s, &y);
    run_stage(r, "values");
    out = half_of(r, z, false);
    gate = gate_of(r, p, s, y, gmlp_values_of(r, p, s, z));
    run_stage(r, "multiply");
    op_entries_of(r, out, gate, ENTRY_PRODUCT, 1, out);
    op_charge(r, FLOP_OVERHEAD, (double)tensor_count(&out));
    if (p->part == PART_BLOCK) {
        w = layer_weight(r, "w_out", p->w_out, 2, (int64_t[]){ s.half, dm }, layer_by_fan(s.half));
        b = layer_given(r, "b_out", p->b_out, 1, (int64_t[]){ dm });
        out = dense_layer(r, out, w, b, p->residual ? x : (Tensor){ .rank = 0 }, FLOP_OVERHEAD);
    }
    r->out = dense_rounded(r, out);
}

static Sizes gmlp_sizes(Run *r, const Params *p)
{
    int64_t d_ff = gmlp_width_of(r, p);
    Sizes   s = { .half = d_ff / 2, .tiny = TINY };

    if (d_ff % 2)
        run_fail(r, ERR_PARAM, "gmlp: %s %lld is odd; the channels are split in two halves, so an "
                 "even number is needed", p->part == PART_SGU ? "the width of x," : "d_ff =",
                 (long long)d_ff);
    if (p->w_qkv.data && p->w_qkv.rank == 2)
        s.tiny = p->w_qkv.shape[1] / 3;
    else if (p->w_att_out.data && p->w_att_out.rank == 2)
        s.tiny = p->w_att_out.shape[0];
    if (p->tiny_attention && p->w_qkv.data && (s.tiny < 1 || p->w_qkv.shape[1] % 3))
        run_fail(r, ERR_PARAM, "gmlp: parameter w_qkv has %lld columns; queries, keys and values "
                 "need the same number each", (long long)p->w_qkv.shape[1]);
    return s;
}

static int64_t gmlp_width_of(Run *r, const Params *p)
{
    SizeFrom from[] = { { "w_in", p->w_in, 2, 1, 1 }, { "b_in", p->b_in, 1, 0, 1 },
                        { "w_out", p->w_out, 2, 0, 2 }, { "ln2_gamma", p->ln2_gamma, 1, 0, 2 },
                        { "ln2_beta", p->ln2_beta, 1, 0, 2 }, { .name = NULL } };

    if (p->part == PART_BLOCK)
        return layer_size(r, "d_ff", p->d_ff, 6 * r->dm, from);
    if (run_is_given(r, "d_ff") && p->d_ff != r->dm)
        run_fail(r, ERR_PARAM, "gmlp: part=sgu reads the activation itself, whose width is %lld, "
                 "but d_ff=%lld; leave d_ff out", (long long)r->dm, (long long)p->d_ff);
    return r->dm;
}

/* Replaces *y, which is x, by LN(x) where `norm` is set; returns Z [1,n,2 half]. */
static Tensor project_in(Run *r, const Params *p, Sizes s, Tensor *y)
{
    int64_t dm = r->dm, ff = 2 * s.half;
    Tensor  gain = layer_given(r, "ln1_gamma", p->ln1_gamma, 1, (int64_t[]){ dm });
    Tensor  bias = layer_given(r, "ln1_beta", p->ln1_beta, 1, (int64_t[]){ dm });
    Tensor  w = layer_weight(r, "w_in", p->w_in, 2, (int64_t[]){ dm, ff }, layer_by_fan(dm));
    Tensor  b = layer_given(r, "b_in", p->b_in, 1, (int64_t[]){ ff });

    run_stage(r, "project");
    *y = p->norm ? dense_norm(r, *y, gain, bias, p->ln_eps, FLOP_OVERHEAD) : *y;
    return dense_gelu(r, dense_layer(r, *y, w, b, (Tensor){ .rank = 0 }, FLOP_OVERHEAD),
                      (GeluForm)p->gelu);
}

/* f64 [1,n,half]: one half of z [1,n,2 half]. */
static Tensor half_of(Run *r, Tensor z, bool second)
{
    int64_t half = z.shape[2] / 2;
    Tensor  t = run_tensor3(r, DT_F64, 1, r->n, half);

    op_entries(r, tensor_columns(z, second ? half : 0, half), ENTRY_CAST, 0, t);
    return t;
}

static Tensor gate_of(Run *r, const Params *p, Sizes s, Tensor y, Tensor v)
{
    PatternShape shape = { .heads = 1, .n = r->n, .m = r->n };
    Tensor       w, b, gate;
    Pattern     *cells;
    View        *view;

    run_stage(r, "gate");
    w = layer_weight(r, "w_spatial", p->w_spatial, 2, (int64_t[]){ r->n, r->n },
                     (Init){ INIT_UNIFORM, 1e-3 / (double)r->n });
    b = layer_given(r, "b_spatial", p->b_spatial, 1, (int64_t[]){ r->n });
    cells = pattern_finish(r->arena, shape, pattern_full(r->arena, shape, COMPONENT_OTHER),
                           r->causal);
    gate = spatial(r, w, b, v);
    show_spatial(r, w, cells);
    if (p->tiny_attention) {
        run_stage(r, "tiny attention");
        gate = add_tiny(r, p, s, y, cells, gate);
    }
    view = implicit_factor(r, "gate", VIEW_SIGNED, tensor_with_rank(gate, 2), "token", "channel");
    if (view)
        view->centre = 1; /* a gate of 1 changes nothing */
    return gate;
}

/* G, f64 [1,n,half]: W v + b, with one number of b per row. */
static Tensor spatial(Run *r, Tensor w, Tensor b, Tensor v)
{
    int64_t half = v.shape[2];
    Tensor  gate = run_tensor3(r, DT_F64, 1, r->n, half);

    if (b.data)
        op_entries(r, tensor_of(DT_F32, 3, (int64_t[]){ 1, r->n, 1 }, b.data), ENTRY_CAST, 0, gate);
    else
        op_entries(r, b, ENTRY_FILL, 1, gate);
    if (r->causal)
        add_triangle(r, w, v, gate);
    else
        op_gemm(r, tensor_with_rank(w, 3), false, v, false, 1, 1, gate, FLOP_MIX);
    return gate;
}

/* gate += (lower triangle of w) v.  Blocks left of the diagonal are used as they are; a block on
 * the diagonal is copied with 0 above the diagonal. */
static void add_triangle(Run *r, Tensor w, Tensor v, Tensor gate)
{
    int64_t n = r->n;
    int64_t size = n < BLOCK ? n : BLOCK;
    Tensor  corner = run_tensor3(r, DT_F32, 1, size, size), lower = gmlp_triangle(r, size);

    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, corner);
    for (int64_t i = 0; i < n && !run_failed(r); i += BLOCK) {
        int64_t rows = n - i < BLOCK ? n - i : BLOCK;
        Tensor  to = tensor_rows(gate, i, rows);

        if (i)
            op_gemm(r, gmlp_piece(w, i, rows, 0, i), false, tensor_rows(v, 0, i), false, 1, 1, to,
                    FLOP_APART);
        op_entries_of(r, gmlp_piece(w, i, rows, i, rows),
                      tensor_columns(tensor_rows(lower, 0, rows), 0, rows), ENTRY_WHERE, 0,
                      tensor_columns(tensor_rows(corner, 0, rows), 0, rows));
        op_gemm(r, gmlp_piece(corner, 0, rows, 0, rows), false, tensor_rows(v, i, rows), false, 1,
                1, to, FLOP_APART);
    }
    op_charge(r, FLOP_MIX, (double)n * (double)(n + 1) * (double)v.shape[2]);
}

/* 1 up to the diagonal, 0 above. */
static Tensor gmlp_triangle(Run *r, int64_t size)
{
    Tensor t = run_tensor3(r, DT_F32, 1, size, size);

    run_prepare(r, true);
    for (int64_t x = 0; x < size * size && !run_failed(r); x++)
        tensor_f32(&t)[x] = x % size <= x / size;
    op_toward(r, t.data, tensor_bytes(&t));
    run_prepare(r, false);
    return t;
}

/* Rows [first, first+count) and columns [at, at+cols) of t [n,n] as [1,count,cols]. */
static Tensor gmlp_piece(Tensor t, int64_t first, int64_t count, int64_t at, int64_t cols)
{
    Tensor out = tensor_with_rank(t, 3);

    out.data = tensor_f32(&t) + first * t.shape[1] + at;
    out.shape[1] = count;
    out.shape[2] = cols;
    return out;
}

/* ---- what is seen ----------------------------------------------------------- */

static void show_spatial(Run *r, Tensor w, const Pattern *cells)
{
    if (!run_wants_views(r))
        return;
    gmlp_show_matrix(r, "weights", read_spatial, w.data, cells);
    view_cells(r, "connectivity", cells);
    show_diagonals(r, w.data, cells);
}

static void gmlp_show_matrix(Run *r, const char *name, ViewReadRun read, const float *numbers,
                             const Pattern *cells)
{
    View *view = view_add(r, name, VIEW_SIGNED, DT_F32, 3, (int64_t[]){ 1, r->n, r->n });

    if (!view)
        return;
    view->read = read;
    view->context = numbers;
    view->support = cells;
    view->rows = "gated token";
    view->cols = "token";
}

static void read_spatial(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const float *w = view->context;

    (void)plane;
    for (int64_t x = 0; x < count; x++)
        out[x] = w[i * view->shape[2] + start + x * step];
}

/* Mean of each diagonal, and the share of the squares that the means explain. */
static void show_diagonals(Run *r, const float *w, const Pattern *cells)
{
    int64_t n = r->n;
    double *sum = run_alloc(r, 2 * n - 1, sizeof(*sum)), squares = 0, explained = 0;
    Tensor  mean = run_tensor1(r, DT_F32, 2 * n - 1);

    if (run_failed(r))
        return;
    memset(sum, 0, (size_t)(2 * n - 1) * sizeof(*sum));
    for (int64_t i = 0; i < n && !run_failed(r); i++)
        for (int64_t j = 0; j < (r->causal ? i + 1 : n); j++) {
            double value = (double)w[i * n + j];

            sum[j - i + n - 1] += value;
            squares += value * value;
        }
    for (int64_t k = 1 - n; k < n; k++) {
        double length = (double)(n - (k < 0 ? -k : k)), m = sum[k + n - 1] / length;

        tensor_f32(&mean)[k + n - 1] = (float)m;
        explained += length * m * m;
    }
    view_tensor(r, "toeplitz", VIEW_SIGNED, mean, "mean of w_spatial", "j - i");
    gmlp_show_matrix(r, "weights_toeplitz", read_stripes, mean.data, cells);
    run_figure(r, "toeplitz_fraction", squares > 0 ? explained / squares : 1);
}

/* The Toeplitz matrix nearest to W: each cell is the mean of its diagonal. */
static void read_stripes(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const float *mean = view->context;

    (void)plane;
    for (int64_t x = 0; x < count; x++)
        out[x] = mean[start + x * step - i + view->shape[1] - 1];
}

/* Returns gate + the small attention of y, projected to the gate's channels. */
static Tensor add_tiny(Run *r, const Params *p, Sizes s, Tensor y, const Pattern *cells,
                       Tensor gate)
{
    int64_t      dm = r->dm, a = s.tiny;
    Tensor w = layer_weight(r, "w_qkv", p->w_qkv, 2, (int64_t[]){ dm, 3 * a }, layer_by_fan(dm));
    Tensor       b = layer_given(r, "b_qkv", p->b_qkv, 1, (int64_t[]){ 3 * a });
    Tensor       w_out = layer_weight(r, "w_att_out", p->w_att_out, 2, (int64_t[]){ a, s.half },
                                      layer_by_fan(a));
    Tensor       b_out = layer_given(r, "b_att_out", p->b_att_out, 1, (int64_t[]){ s.half });
    Tensor       qkv = dense_layer(r, y, w, b, (Tensor){ .rank = 0 }, FLOP_OVERHEAD);
    LogitAttend  in = { .kind = LOGITS_PRODUCT, .turned = true, .n = r->n, .causal = r->causal };
    LogitResult  found;
    Tiny        *kept = run_wants_views(r) ? run_alloc(r, 1, sizeof(*kept)) : NULL;
    View        *view;

    in.left = third(r, qkv, 0, 1 / sqrt((double)a), DT_F64);
    in.right = third(r, qkv, a, 1, DT_F64);
    in.v = third(r, qkv, 2 * a, 1, DT_F32);
    found = op_logit_attend(r, &in);
    view = kept ? view_add(r, "weights_tiny", VIEW_WEIGHTS, DT_F32, 2, (int64_t[]){ r->n, r->n })
                : NULL;
    if (view) {
        *kept = (Tiny){ .in = in, .lse = found.lse };
        view->read = read_tiny;
        view->context = kept;
        view->support = cells;
        view->cost = (double)a;
    }
    return dense_layer(r, found.out, w_out, b_out, gate, FLOP_OVERHEAD);
}

/* [1,n,a]: columns [first, first+a) of f64 [1,n,3a], times factor. */
static Tensor third(Run *r, Tensor qkv, int64_t first, double factor, DType dtype)
{
    int64_t a = qkv.shape[2] / 3;
    Tensor  t = run_tensor3(r, dtype, 1, r->n, a);

    op_entries(r, tensor_columns(qkv, first, a), ENTRY_SCALE, factor, t);
    return t;
}

static void read_tiny(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Tiny *s = view->context;
    double      lse = ((const double *)s->lse.data)[i], logits[CELLS];

    (void)plane;
    for (int64_t done = 0; done < count; done += CELLS) {
        int64_t cells = count - done < CELLS ? count - done : CELLS;

        logit_run(&s->in, 1, 0, i, start + done * step, cells, step, logits);
        for (int64_t c = 0; c < cells; c++)
            out[done + c] = (float)exp(logits[c] - lse);
    }
}

static Tensor gmlp_values_of(Run *r, const Params *p, Sizes s, Tensor z)
{
    Tensor gain = layer_given(r, "ln2_gamma", p->ln2_gamma, 1, (int64_t[]){ s.half });
    Tensor bias = layer_given(r, "ln2_beta", p->ln2_beta, 1, (int64_t[]){ s.half });
    Tensor v = half_of(r, z, true);

    if (p->gate_norm)
        v = dense_norm(r, v, gain, bias, p->ln_eps, FLOP_OVERHEAD);
    implicit_factor(r, "values", VIEW_VECTORS, tensor_with_rank(v, 2), "token", "channel");
    return v;
}

static void gmlp_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    gmlp_check_length(r, "w_spatial", p->w_spatial);
    gmlp_check_length(r, "b_spatial", p->b_spatial);
    gmlp_sizes(r, p);
}

static void gmlp_check_length(Run *r, const char *name, Tensor given)
{
    for (int axis = 0; axis < given.rank && given.data; axis++)
        if (given.shape[axis] != r->n)
            run_fail(r, ERR_PARAM, "gmlp: parameter %s was made for %lld tokens and the input has "
                     "%lld; a matrix over tokens holds for one length only", name,
                     (long long)given.shape[axis], (long long)r->n);
}

static Flops gmlp_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = gmlp_sizes(r, p);
    double        n = (double)r->n, dm = (double)r->dm, half = (double)s.half;
    double        a = (double)s.tiny, cells = r->causal ? n * (n + 1) / 2 : n * n;
    Flops         sum = { .mix = 2 * cells * half, .overhead = n * half };

    if (p->gate_norm)
        sum.overhead += DENSE_NORM_FLOPS * n * half;
    if (p->part == PART_BLOCK)
        sum.overhead += 6 * n * dm * half + DENSE_GELU_FLOPS * n * 2 * half +
                        (p->norm ? DENSE_NORM_FLOPS * n * dm : 0);
    if (!p->tiny_attention)
        return sum;
    sum.score += 2 * cells * a;
    sum.mix += 2 * cells * a;
    sum.overhead += FLOPS_ROW_SOFTMAX * cells + 6 * n * dm * a + 2 * n * a * half;
    return sum;
}

/* The gated half of every token stays, since the matrix over tokens mixes it into later rows, and
 * with tiny_attention its keys and values. */
static DecodeCost gmlp_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Run           sized = *r;
    Sizes         s = gmlp_sizes(&sized, p);

    return decode_kept(r, p, (double)(s.half + (p->tiny_attention ? 2 * s.tiny : 0)));
}

static const StageNote notes[] = {
    { "weights", "The matrices are taken from files or drawn; the one over tokens fixes the "
                 "length." },
    { "project", "Each token is normalised, widened and bent by GELU." },
    { "values", "The channels are split: the first half passes on, the second, normalised, is "
                "what tokens pass to each other." },
    { "gate", "One learned matrix over tokens, the same for every input and channel, makes a gate "
              "of the values.  At its start it is nearly 0 and the bias 1, so the gate is 1." },
    { "tiny attention", "A small attention adds to the gate what depends on the input." },
    { "multiply", "The first half is multiplied by its gate and brought back to the input's "
                  "width." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("weights", VIEW_SIGNED, "the matrix over tokens: gate = weights @ values + b, not output "
         "= weights @ V"),
    VIEW("values", VIEW_VECTORS, "the second half, normalised"),
    VIEW("gate", VIEW_SIGNED, "what the first half is multiplied by; 1 lets it through"),
    VIEW("weights_tiny", VIEW_WEIGHTS, "weights of the small attention (tiny_attention)",
         .maybe = true),
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("toeplitz", VIEW_SIGNED, "mean of each diagonal of the matrix: the filter, if it is one"),
    VIEW("weights_toeplitz", VIEW_SIGNED, "the matrix with these means in the place of its cells: "
         "its stripes"),
    DRAWN("w_in"), DRAWN("w_out"), DRAWN("w_spatial"), DRAWN("w_qkv"), DRAWN("w_att_out"),
    VIEW_PROMISE_END
};

const Mechanism mech_gmlp = {
    .id = "gmlp",
    .title = "gMLP, spatial gating unit",
    .authors = "Liu, Dai, So, Le",
    .year = 2021,
    .arxiv = "2105.08050",
    .source = "paper, section 2 and appendix (pseudo-code)",
    .formula = "[Z1, Z2] = gelu(LN(x) w_in + b_in),  V = LN(Z2)\n"
               "G = W V + b   (causal: lower triangle of W)\n"
               "out = (Z1 * G) w_out + b_out + x",
    .problem = "It is not clear that attention is needed to mix tokens.",
    .idea = "One half of the channels is mixed over positions by a fixed matrix and gates the "
            "other half.",
    .price = "The length is fixed, and the matrix is the same for every input.",
    .teaches = "One fixed, signed matrix over tokens makes a gate that multiplies each channel.  "
               "At initialisation the gate is 1 everywhere; trained matrices show stripes along "
               "the diagonals, like convolutions (`weights_toeplitz`).",
    .picture = "weights",
    .classes = CLASS_MX,
    .claim_time = "O(n^2 d_ff)",
    .claim_memory = "O(n d_ff + n^2)",
    .claim_decode = "yes, up to the fixed n",
    .claim_exponent = 2,
    .causal = true,
    .needs_x = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = gmlp_check,
    .run = gmlp_run,
    .flops = gmlp_flops,
    .decode = gmlp_decode,
};
