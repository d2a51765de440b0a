/* quantization.c -- attention of tensors kept as small integers.
 *
 *     c = the code of W (attn/mech/lab/arithmetic.h),  W' = (c - z) s,  |W - W'| <= s/2
 *     output = softmax(scale Q' K'^T) V'
 *
 * The same comes out of integer sums, sum (c_q - z_q)(c_k - z_k) s_q s_k, as
 * long as the steps factor out: those of rows of Q and K do; of V only those
 * of a tensor, a head or a column do, for the sum over keys runs over its rows.
 * As the survey prints it, scheme=survey, the zero point has the wrong sign: z
 * cancels, but the codes do not fit N bits.
 * (Jacob et al. 2018, section 2; Zafrir et al. 2019; the survey's eqs 10-11.)
 */
#include "attn/mech/lab/arithmetic.h"
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>

static const char *const schemes[] = { "affine", "survey", "symmetric", NULL };
static const char *const grains[] = { "tensor", "head", "row", "column", NULL };
static const char *const letters[] = { "q", "k", "v", NULL };

#define ALL_TARGETS 7
#define W 3 /* after q, k and v */

typedef struct Params {
    int64_t  bits;
    int      scheme, granularity;
    unsigned targets;
    bool     include_zero;
    double   scale;
    Tensor   w;
} Params;

static const Param params[] = {
    PARAM_INT(Params, bits, 8, 2, 16, "bits N of a code"),
    PARAM_ENUM(Params, scheme, QUANTISE_AFFINE, schemes, "how a code is made (survey: as printed, "
               "its codes do not fit N bits)"),
    PARAM_ENUM(Params, granularity, QUANTISE_TENSOR, grains, "what shares a step and a zero point"),
    PARAM_FLAGS(Params, targets, ALL_TARGETS, letters, "tensors that are quantised: qkv, qk, ..."),
    PARAM_BOOL(Params, include_zero, true, "affine: the range is widened to hold 0, so that 0 is "
               "exact"),
    PARAM_TENSOR(Params, w, "[a,b]", "none", "a weight matrix to be quantised beside them, rows "
                 "are inputs"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

typedef struct Quantised {
    const Params *p;
    Quantiser  rule;
    bool       is[4];
    Codes      of[4]; /* q, k, v, w */
    WideAttend got, exact;
} Quantised;

#define NAMES(x)                                                                                   \
    {                                                                                              \
        "codes_" x, "scale_" x, "zero_" x, "dequantized_" x, "error_" x, "histogram_" x,           \
            "staircase_" x, "bins_" x, "numbers_" x, "max_error_" x, "step_" x, "sqnr_db_" x,      \
            "codes_min_" x, "codes_max_" x, "distinct_" x, x                                       \
    }
enum { N_CODES, N_SCALE, N_ZERO, N_BACK, N_ERROR, N_HISTOGRAM, N_STAIRCASE, N_BINS, N_NUMBERS,
       N_MAX_ERROR, N_STEP,
       N_SQNR, N_LEAST, N_MOST, N_DISTINCT, N_NAME, N_COUNT };
static const char *const names[4][N_COUNT] = { NAMES("q"), NAMES("k"), NAMES("v"), NAMES("w") };

#define MOST_BINS (1 << 17) /* of a histogram; survey codes of many groups can spread wider */

#define STAIRS 256

#define PROMISES(x)                                                                            \
    { .name = "codes_" x, .kind = VIEW_TENSOR, .maybe = true, .help = "integers of " x },      \
    { .name = "scale_" x, .kind = VIEW_TENSOR, .maybe = true, .help = "step of each group" },  \
    { .name = "zero_" x, .kind = VIEW_TENSOR, .maybe = true, .help = "zero point of each group" }, \
    { .name = "dequantized_" x, .kind = VIEW_TENSOR, .maybe = true,                            \
      .help = "what the codes stand for" },                                                    \
    { .name = "error_" x, .kind = VIEW_SIGNED, .maybe = true,                                  \
      .help = "what was lost, in steps: within +-1/2" },                                       \
    { .name = "histogram_" x, .kind = VIEW_COUNT, .maybe = true,                               \
      .help = "how many entries have each code" },                                             \
    { .name = "bins_" x, .kind = VIEW_TENSOR, .maybe = true, .help = "codes of the histogram" }, \
    { .name = "numbers_" x, .kind = VIEW_TENSOR, .maybe = true,                                \
      .help = "numbers of the staircase" },                                                    \
    { .name = "staircase_" x, .kind = VIEW_TENSOR, .maybe = true,                              \
      .help = "numbers across the first group's range, and what they come back as" }

static Tensor weight_matrix(Run *r, const Params *p);
static void quant_show(Run *r, Quantised *s);
static void quant_show_codes(Run *r, const Quantised *s, int t);
static void quant_show_error(Run *r, const Quantised *s, const Codes *c, int t);
static void show_histogram(Run *r, const Codes *c, const char *name, const char *bins_name,
                           const CodesSummary *sum);
static void show_staircase(Run *r, const Quantised *s, const Codes *c, int t);
static void trace_codes(Run *r, const Quantised *s, int t, const CodesSummary *sum);

static void quantization_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Quantised    *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */
    Tensor        from[4] = { r->q, r->k, r->v };

    run_stage(r, "quantise");
    if (p->granularity != QUANTISE_ROW)
        run_looks_ahead(r, "tokens share a step (granularity=row gives each its own)");
    if (p->w.data)
        from[W] = weight_matrix(r, p);
    if (run_failed(r))
        return;
    *s = (Quantised){ .p = p, .rule = { .bits = p->bits, .scheme = (QuantiseScheme)p->scheme,
                                        .grain = (QuantiseGrain)p->granularity,
                                        .include_zero = p->include_zero } };
    for (int t = 0; t < 4; t++) {
        s->is[t] = t == W ? p->w.data != NULL : p->targets >> t & 1;
        if (s->is[t])
            s->of[t] = quantise(r, &s->rule, names[t][N_NAME], from[t]);
    }
    s->got = (WideAttend){ .q = s->is[0] ? s->of[0].back : r->q,
                           .k = s->is[1] ? s->of[1].back : r->k,
                           .v = s->is[2] ? s->of[2].back : r->v,
                           .scale = run_scale(r, p->scale) };
    run_stage(r, "attend");
    wide_attend(r, &s->got, true);
    r->out = dense_rounded(r, s->got.out);
    if (run_wants_views(r))
        quant_show(r, s);
}

static Tensor weight_matrix(Run *r, const Params *p)
{
    char shape[80];

    if (p->w.data && (p->w.rank != 2 || tensor_count(&p->w) < 1))
        run_fail(r, ERR_PARAM, "quantization: parameter w has shape %s; it is a matrix [inputs,"
                 "outputs]", tensor_shape_text(&p->w, shape, sizeof(shape)));
    return tensor_with_rank(layer_given(r, "w", p->w, 2, p->w.shape), 3);
}

/* ---- figures and views of a tensor --------------------------------------------------- */

static void quant_show(Run *r, Quantised *s)
{
    const Pattern *cells = run_allowed_cells(r);

    run_stage(r, "exact");
    s->exact = (WideAttend){ .q = r->q, .k = r->k, .v = r->v, .scale = s->got.scale };
    wide_attend(r, &s->exact, false);
    for (int t = 0; t < 4 && !run_failed(r); t++)
        if (s->is[t])
            quant_show_codes(r, s, t);
    if (!run_wants_views(r))
        return;
    implicit_connectivity(r, cells);
    wide_compare(r, cells, wide_weights(&s->got), wide_weights(&s->exact));
    view_tensor(r, "reference", VIEW_VECTORS, s->exact.out, "query", "value");
    run_figure(r, "output_max_error", wide_max_error(r, s->got.out, s->exact.out));
    run_figure(r, "output_relative_error", wide_relative_error(r, s->got.out, s->exact.out));
    run_figure(r, "compression", 32 / (double)s->p->bits);
    run_trace(r, "largest output error", wide_max_error(r, s->got.out, s->exact.out));
}

static void quant_show_codes(Run *r, const Quantised *s, int t)
{
    const Codes *c = &s->of[t];
    int          rank = t == W ? 2 : 3;
    const char  *rows = t == W ? "input" : "token";
    CodesSummary sum = codes_summary(r, c);

    view_stage(r, "quantise", -1);
    view_tensor(r, names[t][N_CODES], VIEW_TENSOR, tensor_with_rank(c->code, rank), rows,
                "component");
    view_tensor(r, names[t][N_SCALE], VIEW_TENSOR, c->step, rows, "component");
    view_tensor(r, names[t][N_ZERO], VIEW_TENSOR, c->zero, rows, "component");
    view_tensor(r, names[t][N_BACK], VIEW_TENSOR, tensor_with_rank(c->back, rank), rows,
                "component");
    quant_show_error(r, s, c, t);
    show_histogram(r, c, names[t][N_HISTOGRAM], names[t][N_BINS], &sum);
    show_staircase(r, s, c, t);
    view_stage(r, NULL, -1);
    trace_codes(r, s, t, &sum);
}

/* In steps: uniform within +-1/2 where codes are dense. */
static void quant_show_error(Run *r, const Quantised *s, const Codes *c, int t)
{
    Tensor error = run_tensor3(r, DT_F32, c->from.shape[0], c->from.shape[1], c->from.shape[2]);

    for (int64_t at = 0; at < tensor_count(&error) && !run_failed(r); at++) {
        double step = ((double *)c->step.data)[quantise_group(c, s->rule.grain, at)];

        tensor_f32(&error)[at] =
            (float)((((double *)c->back.data)[at] - (double)tensor_f32(&c->from)[at]) / step);
    }
    view_tensor(r, names[t][N_ERROR], VIEW_SIGNED, t == W ? tensor_with_rank(error, 2) : error,
                t == W ? "input" : "token", "component");
}

static void show_histogram(Run *r, const Codes *c, const char *name, const char *bins_name,
                           const CodesSummary *sum)
{
    int64_t bins = sum->most - sum->least + 1;
    Tensor  count, bin;

    if (bins > MOST_BINS || run_failed(r))
        return;
    count = run_tensor1(r, DT_I64, bins);
    bin = run_tensor1(r, DT_I32, bins);
    for (int64_t b = 0; b < bins && !run_failed(r); b++) {
        tensor_i32(&bin)[b] = (int32_t)(sum->least + b);
        ((int64_t *)count.data)[b] = 0;
    }
    for (int64_t at = 0; at < tensor_count(&c->code) && !run_failed(r); at++)
        ((int64_t *)count.data)[tensor_i32(&c->code)[at] - sum->least]++;
    view_tensor(r, bins_name, VIEW_TENSOR, bin, "code", "bin");
    view_tensor(r, name, VIEW_COUNT, count, "entries", "code");
}

/* Numbers across the range of the first group, and their dequantised values. */
static void show_staircase(Run *r, const Quantised *s, const Codes *c, int t)
{
    Tensor number = run_tensor1(r, DT_F64, STAIRS), back = run_tensor1(r, DT_F64, STAIRS);
    double lo = (double)INFINITY, hi = -(double)INFINITY;

    for (int64_t at = 0; at < tensor_count(&c->from) && !run_failed(r); at++)
        if (quantise_group(c, s->rule.grain, at) == 0) {
            lo = fmin(lo, (double)tensor_f32(&c->from)[at]);
            hi = fmax(hi, (double)tensor_f32(&c->from)[at]);
        }
    for (int64_t x = 0; x < STAIRS && !run_failed(r); x++) {
        double value = lo + (hi - lo) * (double)x / (STAIRS - 1);

        ((double *)number.data)[x] = value;
        ((double *)back.data)[x] = quantise_again(&s->rule, c, 0, value);
    }
    view_tensor(r, names[t][N_NUMBERS], VIEW_TENSOR, number, "number", "sample");
    view_tensor(r, names[t][N_STAIRCASE], VIEW_TENSOR, back, "dequantised", "number");
}

static void trace_codes(Run *r, const Quantised *s, int t, const CodesSummary *sum)
{
    int64_t top = (1LL << s->p->bits) - 1;

    run_figure(r, names[t][N_MAX_ERROR], sum->max_error);
    run_figure(r, names[t][N_STEP], sum->step);
    run_figure(r, names[t][N_SQNR], sum->sqnr_db);
    run_figure_int(r, names[t][N_LEAST], sum->least);
    run_figure_int(r, names[t][N_MOST], sum->most);
    run_figure_int(r, names[t][N_DISTINCT], sum->distinct);
    if (s->rule.scheme == QUANTISE_SURVEY)
        run_warn(r,
                 "quantization: codes of %s are %lld to %lld: they %s the %lld bits of 0 to %lld "
                 "(scheme=survey is as printed; affine has the sign right)",
                 names[t][N_NAME], (long long)sum->least, (long long)sum->most,
                 sum->least >= 0 && sum->most <= top ? "fit" : "do not fit", (long long)s->p->bits,
                 (long long)top);
}

static Flops quantization_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    const Tensor *from[4] = { &r->q, &r->k, &r->v, &p->w };
    Flops         flops = run_pattern_flops(r, wide_cells(r));

    for (int t = 0; t < 4; t++)
        if (t == W ? p->w.data != NULL : p->targets >> t & 1)
            flops.overhead += QUANTISE_FLOPS * (double)tensor_count(from[t]);
    return flops;
}

/* Rows have steps of their own; of larger groups a further token moves the step. */
static DecodeCost quantization_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->granularity != QUANTISE_ROW)
        return decode_unknown("a further token may change the step that earlier ones were rounded "
                              "by; granularity=row gives each token its own");
    return decode_kept(r, p, decode_token(r));
}

static const StageNote notes[] = {
    { "quantise", "Every group of numbers gets a step and a zero point from its least and its "
                  "largest number; each number becomes the nearest whole number of steps." },
    { "attend", "Attention of what the codes stand for.  An integer unit would sum products of "
                "codes and multiply by the steps afterwards; steps of single rows of V do not "
                "factor out of its sum over keys." },
    { "exact", "The same attention of the tensors as they were, in double, to see what the codes "
               "cost." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("weights", VIEW_WEIGHTS, "weights of the dequantised tensors"),
    VIEW("weights_reference", VIEW_WEIGHTS, "exact weights"),
    VIEW("weights_error", VIEW_SIGNED, "the first less the second"),
    VIEW("reference", VIEW_VECTORS, "exact output"),
    VIEW("connectivity", VIEW_PATTERN, "allowed cells"),
    PROMISES("q"), PROMISES("k"), PROMISES("v"), PROMISES("w"),
    VIEW_PROMISE_END
};

const Mechanism mech_quantization = {
    .id = "quantization",
    .title = "Quantization",
    .authors = "Jacob, Kligys, Chen, Zhu, Tang, Howard, Adam, Kalenichenko",
    .year = 2018,
    .arxiv = "1712.05877",
    .source = "paper, section 2; Q8BERT (1910.06188) for attention",
    .formula = "c = clamp(rint(W/s) + z), W' = (c - z) s, s = (max - min)/(2^N - 1)\n"
               "output = softmax(scale Q' K'^T) V'",
    .problem = "Weights and activations take much memory and time to move.",
    .idea = "Numbers are rounded to a few equal steps and kept as small whole numbers.",
    .price = "Rounding loses detail, and one large outlier makes all steps coarse.  The n x n "
             "weights are not quantised.",
    .teaches = "Rounding spreads an even error of at most half a step over the tensor; the step is "
               "set by the largest number, so one outlier row makes it coarse for all, unless "
               "every row has its own.",
    .picture = "weights_error",
    .example = "bits=4",
    .classes = CLASS_LAB,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2); q, k, v: N/32 of the bytes",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .values_error = 1.0 / 15, /* half a step of the example's 4 bits */
    .causal = true,
    .cross = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = quantization_run,
    .flops = quantization_flops,
    .decode = quantization_decode,
};
