/* sigmoid.c -- every key is weighed by its own score alone: no softmax, no sum of a row.
 *
 *     S[i,j]   = q_i . k_j / sqrt(d)
 *     W[i,j]   = 1 / (1 + exp(-(S[i,j] + b)))   over the allowed j, else 0
 *     output_i = sum_j W[i,j] v_j
 *
 * b = -ln m, so that a row of scores around 0 sums to about 1, as a softmax does; bias_rule=visible
 * takes the keys that the row may see, so that early causal rows are no smaller than late ones.  A
 * decoder's m grows with every token, and so would b: there the parameter bias fixes it.
 */
#include <math.h>

#include "attn/run.h"

enum { RULE_LENGTH, RULE_VISIBLE };

static const char *const rules[] = { "length", "visible", NULL };

typedef struct Params {
    double bias, scale, softcap;
    int    bias_rule;
} Params;

static const Param params[] = {
    PARAM_FLOAT(Params, bias, PARAM_AUTO, -1e9, 1e9,
                "b, added to every score; auto: by bias_rule"),
    PARAM_ENUM(Params, bias_rule, RULE_LENGTH, rules,
               "b = -ln of the number of keys, or of those that the row may see"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

/* What the reader of weights keeps. */
typedef struct Weights {
    AttendInput   in;
    const double *bias; /* [n] */
    int64_t       heads;
} Weights;

/* f64 [n], in the run's arena. */
static const double *biases_of(Run *r, const Params *p, const SigmoidAttend *at)
{
    double *bias = run_alloc(r, r->n, sizeof(*bias));

    for (int64_t i = 0; i < r->n && !run_failed(r); i++) {
        int64_t keys = p->bias_rule == RULE_VISIBLE ? sigmoid_keys(r, at, i) : r->m;

        bias[i] = p->bias > PARAM_AUTO ? p->bias : -log((double)max_i64(1, keys));
    }
    return bias;
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Weights *w = view->context;

    attend_scores_run(&w->in, w->heads, head, i, start, count, step, out);
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)sigmoid_weight((double)out[c] + w->bias[i]);
}

static const char *const *sums_in_words(Run *r, const Tensor *sum)
{
    const char **words = run_alloc(r, r->h, sizeof(*words));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const float *row = tensor_f32(sum) + t * r->n;
        float        low = row[0], high = row[0];

        for (int64_t i = 1; i < r->n; i++) {
            low = fminf(low, row[i]);
            high = fmaxf(high, row[i]);
        }
        words[t] = arena_printf(r->arena, "rows sum to %.3g..%.3g", (double)low, (double)high);
        if (!words[t])
            run_fail(r, ERR_NOMEM, "sigmoid: not enough memory for a view");
    }
    return words;
}

static void show(Run *r, const SigmoidAttend *at, Tensor sum)
{
    Pattern *cells = run_allowed_cells(r);
    Weights *w = run_alloc(r, 1, sizeof(*w));
    View    *weights;

    if (!cells || !w)
        return;
    view_pattern(r, cells, false);
    view_meaning(r, cells, NULL, "every pair");
    *w = (Weights){ .in = at->in, .bias = at->bias, .heads = r->h };
    weights = view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, w, cells);
    if (weights)
        weights->summary = sums_in_words(r, &sum);
    view_position_bias(r, cells, &at->in);
    view_tensor(r, "row_sum", VIEW_TENSOR, sum, "head", "query");
    view_guide(r, "row_sum", false, 1, "softmax");
}

static double mean_of(const Tensor *t)
{
    double sum = 0;

    for (int64_t x = 0; x < tensor_count(t); x++)
        sum += (double)tensor_f32(t)[x];
    return sum / (double)tensor_count(t);
}

static void sigmoid_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    SigmoidAttend at = { .in = run_attend_input_allowed(r, p->scale), .causal = r->causal };
    SigmoidResult result;

    at.bias = biases_of(r, p, &at);
    run_stage(r, "attend");
    result = op_sigmoid_attend(r, &at);
    r->out = result.out;
    if (run_failed(r))
        return;
    run_figure(r, "mean_row_sum", mean_of(&result.sum));
    if (run_wants_views(r))
        show(r, &at, result.sum);
}

/* A cell costs as much as one of a softmax. */
static Flops sigmoid_flops(Run *r, const void *opaque)
{
    SigmoidAttend at = { .in = { .k = r->k }, .causal = r->causal };
    double        cells = 0;

    (void)opaque;
    for (int64_t i = 0; i < r->n; i++)
        cells += (double)sigmoid_keys(r, &at, i);
    return run_pattern_flops(r, (double)r->h * cells);
}

static DecodeCost sigmoid_decode(const Run *r, const void *opaque)
{
    (void)opaque;
    return decode_dense(r);
}

static const StageNote notes[] = {
    { "attend",
      "Every score, with the bias added, goes through the logistic function and is a weight at "
      "once.  No row is divided by its sum." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights, each between 0 and 1 by itself"),
    VIEW("row_sum", VIEW_TENSOR, "sum of a row's weights; a softmax has 1",
         .curve = { .x = "query", .y = "sum of weights", .by_rows = true }),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_sigmoid = {
    .id = "sigmoid",
    .title = "Sigmoid attention",
    .authors = "Ramapuram et al.",
    .year = 2024,
    .arxiv = "2409.04431",
    .source = "paper, equation 3 and section 4 (b = -ln n); bias_rule=visible is ours",
    .formula = "S[i,j] = q_i . k_j / sqrt(d),  b = -ln m\n"
               "W[i,j] = 1 / (1 + exp(-(S[i,j] + b)))\n"
               "output = W V",
    .picture = "weights",
    .problem = "In a softmax the keys of a row compete: one weight can only grow at the cost of "
               "the others, and every row must be summed before it can be used.",
    .idea = "Each weight is the logistic function of its own score.  A bias of -ln m makes a row "
            "of scores near 0 sum to about 1.",
    .price = "All pairs are still computed.  Nothing holds the sums at 1: they follow the scores, "
             "and with b = -ln m early causal rows sum to far less.",
    .lesson = "not-softmax",
    .teaches = "No competition: a row may be all dark or all light, and its sum is not the "
               "constant 1 of softmax.  With bias_rule=visible the early rows of a causal run "
               "rise to the others.",
    .row_sum = "no softmax, so no sum is set",
    .classes = CLASS_KR,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2), O(n) tiled",
    .claim_decode = "yes, with a given bias",
    .claim_exponent = 2,
    .causal = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = sigmoid_run,
    .flops = sigmoid_flops,
    .decode = sigmoid_decode,
};
