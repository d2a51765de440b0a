/* differential.c -- Differential Transformer: one softmax less a share of another.
 *
 *     W_p      = softmax(S of the pair's first head) - lambda_p softmax(S of its second head)
 *     output   = rms([W_p V_first ; W_p V_second]) * gain * (1 - lambda_init)
 *     lambda   = exp(q1 . k1) - exp(q2 . k2) + lambda_init
 *     lambda_init = 0.8 - 0.6 exp(-0.3 depth)
 *
 * Heads come in pairs, of q as of k and v.  The two value heads side by side are the paper's one
 * head of twice the width; the first half of what the norm makes of it is the output of the pair's
 * first head.  Without the vectors of lambda it is lambda_init.
 */
#include <math.h>

#include "attn/ops/difference.h"
#include "attn/run.h"

enum { PAIRING_ADJACENT, PAIRING_HALVES };

static const char *const pairings[] = { "adjacent", "halves", NULL };

#define VECTORS 4 /* q1, k1, q2, k2 of lambda */

typedef struct Params {
    int     pairing;
    int64_t depth;
    Tensor  lambda_init, lambda_q1, lambda_k1, lambda_q2, lambda_k2, lambda, norm_gain;
    bool    norm;
    double  norm_eps, scale, softcap;
} Params;

#define PARAM_VECTOR(field, text) PARAM_TENSOR(Params, field, "[d]", "lambda_init alone", text)

static const Param params[] = {
    PARAM_ENUM(Params, pairing, PAIRING_ADJACENT, pairings,
               "heads of pair p: 2p and 2p + 1, or p and p + h/2"),
    PARAM_INT(Params, depth, 0, 0, PARAM_COUNT_MAX,
              "index of the layer: lambda_init = 0.8 - 0.6 exp(-0.3 depth)"),
    { .name = "lambda_init", .type = PARAM_TYPE_TENSOR, .offset = offsetof(Params, lambda_init),
      .shape = "[1], or one number", .drawn = "by depth", .number = true,
      .help = "lambda before anything was learned" },
    PARAM_VECTOR(lambda_q1, "lambda = exp(q1 . k1) - exp(q2 . k2) + lambda_init"),
    PARAM_VECTOR(lambda_k1, "see lambda_q1"),
    PARAM_VECTOR(lambda_q2, "see lambda_q1"),
    PARAM_VECTOR(lambda_k2, "see lambda_q1"),
    { .name = "lambda", .type = PARAM_TYPE_TENSOR, .offset = offsetof(Params, lambda),
      .shape = "[h/2], or one number", .drawn = "by the vectors and lambda_init", .number = true,
      .help = "lambda itself, of each pair" },
    PARAM_BOOL(Params, norm, true,
               "divide a pair's outputs by their root mean square, times gain (1 - lambda_init)"),
    PARAM_TENSOR(Params, norm_gain, "[2e]", "1", "gain of the norm"),
    PARAM_FLOAT(Params, norm_eps, 1e-5, 0, 1e30, "added to the mean square"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params),
    PARAM_END
};

/* What readers of the views need. */
typedef struct Maps {
    DifferenceAttend in;
    DifferenceResult result;
    int64_t          h;
} Maps;

static double init_of(Run *r, const Params *p);
static const double *lambdas_of(Run *r, const Params *p);
static void show_lambda(Run *r, const double *lambda);
static void show_maps(Run *r, Maps *maps, const Pattern *cells);
static void count_negative(Run *r, const Maps *maps);
static const double *gains_of(Run *r, const Params *p);

static void differential_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Maps         *maps = run_alloc(r, 1, sizeof(*maps));
    Pattern      *cells;

    if (!maps)
        return;
    run_stage(r, "lambda");
    *maps = (Maps){ .h = r->h,
                    .in = { .in = run_attend_input_allowed(r, p->scale),
                            .halves = p->pairing == PAIRING_HALVES, .lambda = lambdas_of(r, p),
                            .causal = r->causal, .offset = r->q_offset, .norm = p->norm,
                            .gain = gains_of(r, p), .eps = p->norm_eps,
                            .factor = 1 - init_of(r, p) } };
    show_lambda(r, maps->in.lambda);
    run_stage(r, "attend");
    maps->result = op_difference_attend(r, &maps->in, run_wants_views(r));
    r->out = maps->result.out;
    cells = run_wants_views(r) ? run_allowed_cells(r) : NULL;
    if (cells)
        show_maps(r, maps, cells);
    count_negative(r, maps);
}

/* ---- lambda ------------------------------------------------------------------------- */

/* A vector of numbers that a file or the user gave; NULL: none. */
static const double *numbers_of(Run *r, const char *name, Tensor given, int64_t count)
{
    Tensor t = run_param_given(r, name, given, DT_F64, 1, (int64_t[]){ count });

    for (int64_t x = 0; t.data && !run_failed(r) && x < tensor_count(&t); x++)
        if (!isfinite(tensor_f64(&t)[x]))
            run_fail(r, ERR_PARAM, "differential: parameter %s: entry %lld is %g, not a number",
                     name, (long long)x, tensor_f64(&t)[x]);
    return t.data && !run_failed(r) ? tensor_f64(&t) : NULL;
}

/* As numbers_of, of exactly this many: one number does not stand for all. */
static const double *vector_of(Run *r, const char *name, Tensor given, int64_t count)
{
    if (given.data && tensor_count(&given) != count)
        run_fail(r, ERR_PARAM, "differential: parameter %s has %lld numbers: give %lld", name,
                 (long long)tensor_count(&given), (long long)count);
    return numbers_of(r, name, given, count);
}

static double init_of(Run *r, const Params *p)
{
    const double *given = numbers_of(r, "lambda_init", p->lambda_init, 1);

    return given ? given[0] : 0.8 - 0.6 * exp(-0.3 * (double)p->depth);
}

static double product_of(const double *a, const double *b, int64_t count)
{
    double sum = 0;

    for (int64_t c = 0; c < count; c++)
        sum += a[c] * b[c];
    return sum;
}

/* lambda of every pair, where it is not given. */
static double learned_lambda(Run *r, const Params *p)
{
    const Tensor *given[VECTORS] = { &p->lambda_q1, &p->lambda_k1, &p->lambda_q2, &p->lambda_k2 };
    static const char *const names[] = { "lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2" };
    const double *v[VECTORS];
    double        lambda = init_of(r, p);

    for (int x = 0; x < VECTORS; x++)
        v[x] = vector_of(r, names[x], *given[x], r->d);
    if (run_failed(r) || !v[0])
        return lambda;
    lambda += exp(product_of(v[0], v[1], r->d)) - exp(product_of(v[2], v[3], r->d));
    if (!isfinite(lambda))
        run_fail(r, ERR_PARAM, "differential: lambda = exp(%g) - exp(%g) + %g is not a number; "
                 "give smaller vectors lambda_q1, lambda_k1, lambda_q2 and lambda_k2",
                 product_of(v[0], v[1], r->d), product_of(v[2], v[3], r->d), init_of(r, p));
    return lambda;
}

static const double *lambdas_of(Run *r, const Params *p)
{
    int64_t pairs = r->h / 2, count = p->lambda.data ? tensor_count(&p->lambda) : 0;
    double *lambda = run_alloc(r, pairs, sizeof(*lambda)), learned = learned_lambda(r, p);
    const double *given = numbers_of(r, "lambda", p->lambda, pairs);

    for (int64_t x = 0; x < pairs && !run_failed(r); x++)
        lambda[x] = !given ? learned : given[count == 1 ? 0 : x];
    return lambda;
}

static const double *gains_of(Run *r, const Params *p)
{
    return vector_of(r, "norm_gain", p->norm_gain, 2 * r->e);
}

static void show_lambda(Run *r, const double *lambda)
{
    Tensor t = run_tensor1(r, DT_F32, r->h / 2);

    for (int64_t x = 0; x < r->h / 2 && !run_failed(r); x++)
        tensor_f32(&t)[x] = (float)lambda[x];
    view_tensor(r, "lambda", VIEW_TENSOR, t, "lambda", "pair");
}

/* ---- the maps ------------------------------------------------------------------------- */

static double softmax_weight(const Maps *maps, int64_t pair, int which, int64_t i, int64_t j)
{
    int64_t head = difference_head(&maps->in, maps->h, pair, which);
    int64_t at = head * maps->in.in.q.shape[1] + i;
    double  top = tensor_f64(&maps->result.top)[at], sum = tensor_f64(&maps->result.sum)[at];

    return exp(attend_score(&maps->in.in, maps->h, head, i, j) - top) / sum;
}

static void read_first(const View *view, int64_t pair, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)softmax_weight(view->context, pair, 0, i, start + c * step);
}

static void read_second(const View *view, int64_t pair, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)softmax_weight(view->context, pair, 1, i, start + c * step);
}

/* Both heads of a pair carry the difference. */
static void read_difference(const View *view, int64_t head, int64_t i, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    const Maps *maps = view->context;
    int64_t     pair = maps->in.halves ? head % (maps->h / 2) : head / 2;

    for (int64_t c = 0; c < count; c++) {
        int64_t j = start + c * step;

        out[c] = (float)(softmax_weight(maps, pair, 0, i, j) -
                         maps->in.lambda[pair] * softmax_weight(maps, pair, 1, i, j));
    }
}

/* The views of one softmax attention, whose weights are the difference here. */
static void show_difference(Run *r, const Maps *maps, const Pattern *cells)
{
    Tensor unused = run_tensor2(r, DT_F32, r->h, r->n);
    int    first = r->view_count;

    view_attention(r, cells, &maps->in.in, unused);
    for (int x = first; x < r->view_count; x++) {
        View *view = &r->views[x];

        if (view->kind != VIEW_WEIGHTS)
            continue;
        view->kind = VIEW_SIGNED;
        view->read = read_difference;
        view->context = maps;
        view->cost = 2 * (double)r->d;
    }
}

static void show_map(Run *r, const Maps *maps, const Pattern *cells, const char *name,
                     ViewReadRun read)
{
    View *view = view_reader(r, name, VIEW_WEIGHTS, DT_F32, read, maps, cells);

    if (!view)
        return;
    view->shape[0] = r->h / 2;
    view->cost = (double)r->d;
    view->headless = true;
    view->round = "pair";
}

static void show_maps(Run *r, Maps *maps, const Pattern *cells)
{
    view_pattern(r, cells, false);
    view_meaning(r, cells, NULL, "every pair");
    show_map(r, maps, cells, "weights_first", read_first);
    show_map(r, maps, cells, "weights_second", read_second);
    show_difference(r, maps, cells);
    view_tensor(r, "output_raw", VIEW_VECTORS, maps->result.raw, "query", "value");
}

static double pairs_of(const Run *r)
{
    DifferenceAttend in = { .in.k = r->k, .causal = r->causal, .offset = r->q_offset };
    double           cells = 0;

    for (int64_t i = 0; i < r->n; i++)
        cells += (double)difference_keys(&in, i);
    return cells;
}

static void count_negative(Run *r, const Maps *maps)
{
    double  negative = 0, cells = (double)(r->h / 2) * pairs_of(r);
    int64_t rows = r->h / 2 * r->n;

    op_wait(r, "the host counts the weights below zero");
    if (run_failed(r))
        return;
    for (int64_t x = 0; x < rows; x++)
        negative += (double)((const int64_t *)maps->result.negative.data)[x];
    run_figure(r, "negative_share", cells > 0 ? negative / cells : 0);
    run_say(r, "%.3g %% of the differences are negative.",
            cells > 0 ? 100 * negative / cells : 0);
}

/* ---- what is refused, and what it costs ------------------------------------------------ */

static void check_pairs(Run *r, const char *name, int64_t heads)
{
    if (heads % 2)
        run_fail(r, ERR_DATA, "differential: heads come in pairs, but %s has h=%lld: give an even "
                 "number of heads, like --heads 2", name, (long long)heads);
}

static void differential_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    const Tensor *given[VECTORS] = { &p->lambda_q1, &p->lambda_k1, &p->lambda_q2, &p->lambda_k2 };
    int           found = 0;

    check_pairs(r, "q", r->h);
    check_pairs(r, "k", r->k.shape[0]);
    check_pairs(r, "v", r->v.shape[0]);
    for (int x = 0; x < VECTORS; x++)
        found += given[x]->data != NULL;
    if (found % VECTORS)
        run_fail(r, ERR_PARAM, "differential: %d of lambda_q1, lambda_k1, lambda_q2 and lambda_k2 "
                 "are given: give all four, or none", found);
    if (run_failed(r))
        return;
    lambdas_of(r, p);
    gains_of(r, p);
}

static Flops differential_flops(Run *r, const void *opaque)
{
    Flops flops = run_pattern_flops(r, (double)r->h * pairs_of(r));

    (void)opaque;
    flops.overhead += (double)r->h * pairs_of(r);
    return flops;
}

static DecodeCost differential_decode(const Run *r, const void *opaque)
{
    DecodeCost cost = decode_dense(r);

    (void)opaque;
    cost.decode_flops += (double)(r->h * r->m);
    return cost;
}

static const ViewPromise views[] = {
    VIEW("lambda", VIEW_TENSOR, "what each pair multiplies its second softmax by",
         .curve = { .x = "pair", .y = "lambda", .mark = CURVE_BARS }),
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights_first", VIEW_WEIGHTS, "softmax of each pair's first head"),
    VIEW("weights_second", VIEW_WEIGHTS, "softmax of each pair's second head"),
    VIEW("weights", VIEW_SIGNED, "their difference W, in both heads of the pair; output_raw = W "
         "times the head's values"),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEW("output_raw", VIEW_VECTORS, "output before the norm"),
    VIEW_PROMISE_END
};

static const StageNote notes[] = {
    { "lambda", "One number for each pair says how much of the second softmax is taken away." },
    { "attend", "Both heads of a pair compute a softmax over the same keys.  What both have in "
                "common goes; the difference weighs the values of both heads." },
    { NULL, NULL }
};

const Mechanism mech_differential = {
    .id = "differential",
    .title = "Differential Transformer",
    .authors = "Ye, Dong, Xia, Sun, Zhu, Huang, Wei",
    .year = 2024,
    .arxiv = "2410.05258",
    .source = "paper, section 2; microsoft/unilm Diff-Transformer multihead_diffattn.py "
              "(adjacent), transformers diffllama (halves)",
    .formula = "W = softmax(Q1 K1^T / sqrt(d)) - lambda softmax(Q2 K2^T / sqrt(d))\n"
               "output = rms(W [V1 ; V2]) * gain * (1 - lambda_init)",
    .problem = "A softmax gives every key some weight, and over a long context what it gives to "
               "keys that do not matter adds up.",
    .idea = "Two heads each compute a softmax, and a share of the second is subtracted from the "
            "first: noise that both have in common cancels.",
    .price = "Half as many maps for the same number of heads; weights may be negative, and a row "
             "sums to 1 - lambda.",
    .lesson = "not-softmax",
    .teaches = "Two maps and their difference: what both maps share fades, and the peaks of the "
               "first stay.  With lambda = 0 it is plain attention.",
    .row_sum = "the second softmax is subtracted: 1 - lambda",
    .picture = "weights",
    .classes = CLASS_SP,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2), O(n) tiled",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .pairs_heads = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = differential_check,
    .run = differential_run,
    .flops = differential_flops,
    .decode = differential_decode,
};
