/* mixed_precision.c -- attention as 16-bit arithmetic would compute it.
 *
 * R rounds to the format (attn/ops/rows.h).  With the scale first:
 *
 *     Qh = R(R(Q) scale),  Kh = R(K),  Vh = R(V)
 *     S  = R(Qh Kh^T)                  or R(R(R(Q) Kh^T) scale), scaled afterwards
 *     P  = R(softmax(S))               softmax=float32
 *     z  = R(S - max), w = R(exp z),  P = R(w / sum w)     softmax=half
 *     O  = R(P Vh)
 *
 * accumulate=half rounds every product and every running sum, in index order;
 * float32 sums are taken in double and rounded once.  All is emulated, so a
 * cell is the same on every machine.  (Micikevicius et al. 2018, section 3.)
 */
#include "attn/mech/lab/arithmetic.h"
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

enum { IN_FLOAT32, IN_HALF };
static const char *const places[] = { "float32", "half", NULL };

typedef struct Params {
    int    format, accumulate, softmax;
    bool   scale_first;
    double scale;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, format, PRECISION_BF16, precision_names, "of Q, K, V, scores, weights and "
               "output"),
    PARAM_ENUM(Params, accumulate, IN_FLOAT32, places, "sums of products: wide and rounded once, "
               "or rounded at each step"),
    PARAM_ENUM(Params, softmax, IN_FLOAT32, places, "of the stored scores: wide and rounded once, "
               "or rounded at each step"),
    PARAM_BOOL(Params, scale_first, true, "scale Q before the product; else the stored scores "
               "(they overflow earlier)"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

typedef struct Mixed {
    const Params    *p;
    const Precision *format;
    RoundedAttend    attend;
    Run        *run;
    double      scale;
    int64_t     h, n, d, e;
    WideAttend  exact;
    int64_t    *underflows; /* [h*n] weights lost to zero */
} Mixed;

#define PIECE 64
#define HALF_COST 20 /* a rounded multiply-add, in plain ones */

static Mixed *mixed_new(Run *r, const Params *p);
static void precise_attend(Mixed *s);
static Tensor rounded(Mixed *s, Tensor x, double factor);
static void precise_show(Run *r, Mixed *s, const Pattern *cells);
static void weights_run(const void *context, int64_t head, int64_t i, int64_t start,
                        int64_t count, int64_t step, double *out);
static double score_of(const Mixed *s, int64_t head, int64_t i, int64_t j);
static void underflow_item(void *context, int64_t row, int worker);
static void read_ulps(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out);
static void read_scores(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out);
static void show_spacing(Run *r, const Mixed *s);
static void trace_errors(Run *r, const Mixed *s);

static void mixed_precision_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Mixed        *s = mixed_new(r, p);

    if (run_failed(r))
        return;
    run_stage(r, "round");
    s->attend.q = rounded(s, r->q, p->scale_first ? s->scale : 0);
    s->attend.k = rounded(s, r->k, 0);
    s->attend.v = rounded(s, r->v, 0);
    run_stage(r, "attend");
    precise_attend(s);
    if (run_wants_views(r))
        precise_show(r, s, run_allowed_cells(r));
}

/* ---- the stages ------------------------------------------------------------------- */

static Mixed *mixed_new(Run *r, const Params *p)
{
    Mixed *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */

    if (!s)
        return NULL;
    *s = (Mixed){ .p = p, .format = precision_of((PrecisionFormat)p->format), .run = r,
                  .scale = run_scale(r, p->scale), .h = r->h, .n = r->n, .d = r->d,
                  .e = r->e };
    s->attend = (RoundedAttend){ .format = (PrecisionFormat)p->format, .causal = r->causal,
                                 .offset = r->q_offset, .scale = p->scale_first ? 0 : s->scale,
                                 .half_sums = p->accumulate == IN_HALF,
                                 .half_softmax = p->softmax == IN_HALF };
    s->attend.top = run_tensor2(r, DT_F64, r->h, r->n);
    s->attend.total = run_tensor2(r, DT_F64, r->h, r->n);
    s->attend.weights = run_tensor2(r, DT_F64, r->h, r->n);
    s->attend.overflows = run_tensor2(r, DT_I32, r->h, r->n);
    s->attend.out = run_tensor3(r, DT_F64, r->h, r->n, r->e);
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    return s;
}

/* Roundings are not counted: the format's own hardware does them for nothing. */
static void precise_attend(Mixed *s)
{
    Run   *r = s->run;
    double cells = wide_cells(r);

    op_rounded_attend(r, &s->attend);
    op_entries(r, s->attend.out, ENTRY_CAST, 0, r->out);
    op_charge(r, FLOP_SCORE, 2 * cells * (double)s->d);
    op_charge(r, FLOP_MIX, 2 * cells * (double)s->e);
    op_charge(r, FLOP_OVERHEAD, FLOPS_SOFTMAX * cells);
}

static Tensor rounded(Mixed *s, Tensor x, double factor)
{
    Run   *r = s->run;
    Tensor y = dense_wide(r, x);

    op_entries(r, y, ENTRY_ROUND, (double)s->p->format, y);
    if (factor > 0) {
        op_entries(r, y, ENTRY_SCALE, factor, y);
        op_entries(r, y, ENTRY_ROUND, (double)s->p->format, y);
    }
    op_charge(s->run, FLOP_OVERHEAD, (factor > 0 ? 2 : 1) * (double)tensor_count(&y));
    return y;
}

static void precise_show(Run *r, Mixed *s, const Pattern *cells)
{
    WideSource got = { weights_run, s, HALF_COST * (double)s->d };
    View      *ulps;

    run_stage(r, "exact");
    s->exact = (WideAttend){ .q = r->q, .k = r->k, .v = r->v, .scale = s->scale };
    wide_attend(r, &s->exact, false);
    s->underflows = run_alloc(r, r->h * r->n, sizeof(*s->underflows));
    if (run_failed(r))
        return;
    memset(s->underflows, 0, (size_t)(r->h * r->n) * sizeof(*s->underflows));
    threads_run(r->threads, s->h * s->n, underflow_item, s);
    implicit_connectivity(r, cells);
    wide_compare(r, cells, got, wide_weights(&s->exact));
    view_tensor(r, "reference", VIEW_VECTORS, s->exact.out, "query", "value");
    ulps = view_reader(r, "weights_error_ulps", VIEW_SIGNED, DT_F32, read_ulps, s, cells);
    if (ulps)
        ulps->cost = got.cost;
    view_reader(r, "scores", VIEW_SIGNED, DT_F32, read_scores, s, cells);
    show_spacing(r, s);
    trace_errors(r, s);
}

static void weights_run(const void *context, int64_t head, int64_t i, int64_t start,
                        int64_t count, int64_t step, double *out)
{
    const Mixed *s = context;
    double       top = ((const double *)s->attend.top.data)[head * s->n + i];
    double       total = ((const double *)s->attend.total.data)[head * s->n + i];

    for (int64_t c = 0; c < count; c++) {
        double score = score_of(s, head, i, start + c * step);

        out[c] = precision_round(s->format, rounded_exponential(&s->attend, score, top) / total);
    }
}

/* ---- the arithmetic ------------------------------------------------------------- */

/* The score of a cell, rounded as it is stored. */
static double score_of(const Mixed *s, int64_t head, int64_t i, int64_t j)
{
    return rounded_scaled(&s->attend, rounded_raw_score(&s->attend, s->h, head, i, j));
}

static void underflow_item(void *context, int64_t row, int worker)
{
    const Mixed *s = context;
    WideSource   exact = wide_weights(&s->exact);
    int64_t      keys = wide_keys(s->run, row % s->n);
    double       got[PIECE], want[PIECE];

    (void)worker;
    for (int64_t j = 0; j < keys && !run_failed(s->run); j += PIECE) {
        int64_t count = keys - j < PIECE ? keys - j : PIECE;

        weights_run(s, row / s->n, row % s->n, j, count, 1, got);
        exact.read(exact.context, row / s->n, row % s->n, j, count, 1, want);
        for (int64_t c = 0; c < count; c++)
            s->underflows[row] += want[c] > 0 && fabs(got[c]) <= 0;
    }
}

/* The error of a weight, in units in the last place (ulp) of the exact weight. */
static void read_ulps(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Mixed *s = view->context;
    WideSource   exact = wide_weights(&s->exact);
    double       got[PIECE], want[PIECE];

    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t some = count - at < PIECE ? count - at : PIECE;

        weights_run(s, head, i, start + at * step, some, step, got);
        exact.read(exact.context, head, i, start + at * step, some, step, want);
        for (int64_t c = 0; c < some; c++)
            out[at + c] = (float)((got[c] - want[c]) / precision_ulp(s->format, want[c]));
    }
}

static void read_scores(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Mixed *s = view->context;

    for (int64_t c = 0; c < count; c++)
        out[c] = (float)score_of(s, head, i, start + c * step);
}

/* The line of numbers: how far apart they are at 2^-40 .. 2^20, as powers of two. */
static void show_spacing(Run *r, const Mixed *s)
{
    int64_t least = -40, most = s->format->emax > 20 ? 20 : s->format->emax - 1;
    Tensor  at = run_tensor1(r, DT_F64, most - least + 1);
    Tensor  spacing = run_tensor1(r, DT_F64, most - least + 1);

    for (int64_t e = least; e <= most && !run_failed(r); e++) {
        ((double *)at.data)[e - least] = (double)e;
        ((double *)spacing.data)[e - least] =
            log2(precision_ulp(s->format, ldexp(1, (int)e)));
    }
    view_tensor(r, "magnitude", VIEW_TENSOR, at, "log2 of the magnitude", "step");
    view_tensor(r, "spacing", VIEW_TENSOR, spacing, "log2 of the spacing", "magnitude");
}

static void trace_errors(Run *r, const Mixed *s)
{
    int64_t over = 0, under = 0;
    double  worst = 0, cells = wide_cells(r);
    int64_t numbers = tensor_count(&r->q) + tensor_count(&r->k) + tensor_count(&r->v) +
                      tensor_count(&r->out);

    for (int64_t row = 0; row < s->h * s->n && !run_failed(r); row++) {
        bool   empty = wide_keys(r, row % s->n) == 0;
        double off = empty ? 0 : fabs(((double *)s->attend.weights.data)[row] - 1);

        over += tensor_i32(&s->attend.overflows)[row];
        under += s->underflows[row];
        worst = isnan(worst) || isnan(off) ? (double)NAN : fmax(worst, off);
    }
    run_figure(r, "max_abs_error", wide_max_error(r, s->attend.out, s->exact.out));
    run_figure(r, "relative_error", wide_relative_error(r, s->attend.out, s->exact.out));
    run_figure(r, "row_sum_error", worst);
    run_figure(r, "underflow_fraction",
               cells > 0 ? (double)under / cells : 0);
    run_figure_int(r, "score_overflows", over);
    run_figure_int(r, "bytes", numbers * s->format->bytes);
    run_trace(r, "largest output error", wide_max_error(r, s->attend.out, s->exact.out));
    if (over > 0)
        run_warn(r, "mixed-precision: %lld scores are infinite in %s, so some weights may not be "
                 "numbers (scale_first=true, or bf16, has more room)", (long long)over,
                 s->format->name);
}

static Flops mixed_precision_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        numbers = (double)r->h * ((double)(r->n + r->m) * (double)r->d +
                                     (double)r->m * (double)r->e);
    Flops         flops = run_pattern_flops(r, wide_cells(r));

    flops.overhead += numbers;
    if (p->scale_first)
        flops.overhead += (double)r->h * (double)r->n * (double)r->d;
    return flops;
}

static DecodeCost mixed_precision_decode(const Run *r, const void *opaque)
{
    return decode_kept(r, opaque, decode_token(r));
}

static const StageNote notes[] = {
    { "round", "Queries, keys and values become numbers of the format: the nearest ones, ties to "
               "even." },
    { "attend", "Scores, weights and output are rounded to the format whenever they would be "
                "stored; with accumulate=half and softmax=half after every single operation." },
    { "exact", "The same attention of the unrounded tensors in double, to see what the format "
               "costs." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("weights", VIEW_WEIGHTS, "as stored in the format; a row adds up to about 1"),
    VIEW("weights_reference", VIEW_WEIGHTS, "exact weights"),
    VIEW("weights_error", VIEW_SIGNED, "stored less exact"),
    VIEW("weights_error_ulps", VIEW_SIGNED, "the same in units of the last place"),
    VIEW("scores", VIEW_SIGNED, "as stored in the format"),
    VIEW("reference", VIEW_VECTORS, "exact output"),
    VIEW("spacing", VIEW_TENSOR, "log2 of the distance of neighbouring numbers, against magnitude"),
    VIEW("magnitude", VIEW_TENSOR, "log2 of the magnitudes of spacing"),
    VIEW("connectivity", VIEW_PATTERN, "allowed cells"),
    VIEW_PROMISE_END
};

const Mechanism mech_mixed_precision = {
    .id = "mixed-precision",
    .title = "Mixed precision",
    .authors = "Micikevicius, Narang, Alben, Diamos, Elsen, Garcia, Ginsburg, Houston, Kuchaiev, "
               "Venkatesh, Wu",
    .year = 2018,
    .arxiv = "1710.03740",
    .source = "paper, section 3",
    .formula = "S = R(R(R(Q) scale) R(K)^T), P = R(softmax(S)), O = R(P R(V))\n"
               "R: to the nearest number of the format, ties to even",
    .problem = "Numbers of 32 bits take twice the memory and time of those of 16.",
    .idea = "Products are taken in 16 bits, and sums may be kept in 32.",
    .price = "Rounding is coarser, and fp16 overflows above 65504.",
    .teaches = "bf16 is coarse but has the range of float32, so it overflows only where float32 "
               "nearly does; fp16 is finer, overflows above 65504 and turns weights below 2^-25 "
               "into zero.  Sums kept wide lose one rounding, sums in the format one at each step.",
    .picture = "weights_error_ulps",
    .classes = CLASS_LAB,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2), half of the bytes",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .values_error = 0x1p-7, /* of bf16: half a unit of 8 bits, in V and in the output */
    .causal = true,
    .cross = true,
    .views = views,
    .notes = notes,
    .kept_stage = "round",
    .params = params,
    .params_size = sizeof(Params),
    .run = mixed_precision_run,
    .flops = mixed_precision_flops,
    .decode = mixed_precision_decode,
};
