/* topk.c -- every query keeps its k largest scores, or the fewest keys that hold a share.
 *
 *     S[i,j]   = q_i . k_j / sqrt(d)
 *     r        = min(k, keys); with mass p the fewest t whose t largest exp(S - max) sum to
 *                p times the sum over all keys, when that is less
 *     A_i      = the r keys with the largest scores, of equal ones the first
 *     output_i = softmax over A_i of S[i,:], times V
 *
 * normalize=all keeps the weights of the full softmax and drops the others: the output is that of
 * A_i times the share that A_i holds.  Every score is computed once to choose; those of the chosen
 * keys are computed again to attend, and count once.
 */
#include "attn/mech/chosen/chosen.h"
#include "attn/run.h"

enum { NORMALIZE_KEPT, NORMALIZE_ALL };

static const char *const normalizes[] = { "kept", "all", NULL };

#define DEFAULT_K 8

typedef struct Params {
    int64_t k;
    double  mass, scale, softcap;
    int     normalize;
} Params;

static const Param params[] = {
    PARAM_INT(Params, k, 0, 0, PARAM_COUNT_MAX,
              "keys of a query; 0: 8, or with mass as many as it takes"),
    PARAM_FLOAT(Params, mass, 0, 0, 1,
                "keep the fewest keys that hold this share of the softmax; 0: off"),
    PARAM_ENUM(Params, normalize, NORMALIZE_KEPT, normalizes,
               "softmax over the kept keys, or over all with the others dropped"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params),
    PARAM_END
};

static int64_t most_keys(const Params *p)
{
    return p->k || p->mass > 0 ? p->k : DEFAULT_K;
}

/* Every exponential of a row is needed, not only those of the kept keys. */
static bool weighs_all(const Params *p)
{
    return p->mass > 0 || p->normalize == NORMALIZE_ALL;
}

static ChosenKeys choose(Run *r, const Params *p, const AttendInput *in)
{
    ChosenKeys chosen;
    double     others;

    run_stage(r, "choose");
    chosen = op_choose(r, &(ChooseKeys){ .kind = CHOOSE_SCORES, .in = *in, .most = most_keys(p),
                                         .mass = p->mass, .causal = r->causal,
                                         .sums = p->normalize == NORMALIZE_ALL });
    others = chosen.seen - chosen.taken;
    op_charge(r, FLOP_SCORE, 2 * (double)r->d * others);
    op_charge(r, FLOP_POSITION, in->cell_flops * others);
    if (weighs_all(p))
        op_charge(r, FLOP_OVERHEAD, decode_cell(r) * others);
    return chosen;
}

static void show_kept(Run *r, const ChosenKeys *chosen)
{
    Tensor kept = run_tensor2(r, DT_I32, r->h, r->n);

    for (int64_t at = 0; !run_failed(r) && at < r->h * r->n; at++)
        tensor_i32(&kept)[at] = (int32_t)(chosen->start[at + 1] - chosen->start[at]);
    view_tensor(r, "kept", VIEW_COUNT, kept, "head", "query");
    view_tensor(r, "threshold", VIEW_SIGNED, chosen->least, "head", "query");
    if (!run_failed(r))
        run_say(r, "Of %.0f pairs %.0f are kept.", chosen->seen, chosen->taken);
}

/* Weights of the kept keys, times the share that they hold. */
typedef struct ScaledWeights {
    View    kept;
    Tensor  share; /* f64 [h,n] */
    int64_t n;
} ScaledWeights;

static void read_scaled(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const ScaledWeights *s = view->context;
    double               share = tensor_f64(&s->share)[head * s->n + i];

    s->kept.read(&s->kept, head, i, start, count, step, out);
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)((double)out[c] * share);
}

static void scale_weights(Run *r, Tensor share)
{
    for (int x = 0; run_wants_views(r) && x < r->view_count; x++) {
        View          *view = &r->views[x];
        ScaledWeights *s = view->kind == VIEW_WEIGHTS ? run_alloc(r, 1, sizeof(*s)) : NULL;

        if (!s)
            continue;
        *s = (ScaledWeights){ .kept = *view, .share = share, .n = r->n };
        view->read = read_scaled;
        view->context = s;
    }
}

static void topk_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    AttendInput   in = run_attend_input_allowed(r, p->scale);
    ChosenKeys    chosen = choose(r, p, &in);
    Pattern      *cells = chosen_cells(r, &chosen);
    AttendResult  result;

    if (run_wants_views(r))
        show_kept(r, &chosen);
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    view_pattern(r, cells, false);
    view_meaning(r, cells, NULL, "chosen key");
    view_attention(r, cells, &in, result.lse);
    if (p->normalize == NORMALIZE_ALL) {
        Tensor share = tensor_with_rank(chosen.share, 3);

        share.shape[0] = r->h;
        share.shape[1] = r->n;
        share.shape[2] = 1;
        share.stride[0] = r->n;
        share.stride[1] = share.stride[2] = 1;
        op_entries_of(r, r->out, share, ENTRY_PRODUCT, 1, r->out);
        scale_weights(r, chosen.share);
    }
    run_last_row(r, cells);
    run_masses(r, &in, cells);
    replay_offer_attend(r, &in, cells);
}

static Flops topk_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        pairs = (double)r->h * chosen_count(r, 0);
    double        kept = (double)r->h * chosen_count(r, most_keys(p));
    double        softmax = decode_cell(r) * (weighs_all(p) ? pairs : kept);

    r->inner_bound |= p->mass > 0;
    return (Flops){ .score = 2 * (double)r->d * pairs, .mix = 2 * (double)r->e * kept,
                    .overhead = softmax };
}

/* Every key is read for its score, and the values of the kept ones. */
static DecodeCost topk_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    DecodeCost    cost = decode_dense(r);
    double        keys = (double)(r->k.shape[0] * r->m), pairs = (double)(r->h * r->m);

    cost.step_bytes = (double)r->cache_bytes * ((double)r->d * keys +
                                                (double)r->e * r->last.values);
    cost.decode_flops = 2 * (double)r->d * pairs + 2 * (double)r->e * r->last.cells +
                        decode_cell(r) * (weighs_all(p) ? pairs : r->last.cells);
    return cost;
}

static const ViewPromise views[] = {
    VIEW("kept", VIEW_COUNT, "keys that a query keeps",
         .curve = { .x = "query", .y = "keys kept", .by_rows = true, .mark = CURVE_STEPS }),
    VIEW("threshold", VIEW_SIGNED, "score of the last key that a query keeps",
         .curve = { .x = "query", .y = "score", .by_rows = true }),
    VIEW("connectivity", VIEW_PATTERN, "kept cells"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights"),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEWS_OF_MASSES,
    VIEW_PROMISE_END
};

static const StageNote notes[] = {
    { "choose", "Every query computes its score with every key and keeps the largest.  This costs "
                "as many products as full attention." },
    { "attend", "A softmax over the kept scores, and the sum of their values: only here there is "
                "less to do." },
    { NULL, NULL }
};

const Mechanism mech_topk = {
    .id = "topk",
    .title = "Top-k attention",
    .authors = "Gupta, Dar, Goodman, Ciprut, Berant",
    .year = 2021,
    .arxiv = "2106.06899",
    .source = "paper, section 2; the share of the softmax instead of a number: Twilight, "
              "arXiv 2502.02770; transformers TopKLogitsWarper and TopPLogitsWarper, on rows of "
              "scores",
    .formula = "A_i = the k largest of S[i,:] = q_i . k_j / sqrt(d), or the fewest that hold the "
               "share mass\noutput_i = softmax over A_i of S[i,:], times V",
    .problem = "Most of a row's softmax lies on few keys, and values of the others hardly count.",
    .idea = "Each query keeps the keys with the largest scores and forgets the others.",
    .price = "All scores must be computed to know the largest: only the values are saved.",
    .teaches = "Dots on the peaks of each row.  No choice of k keys holds more of the softmax: it "
               "is the line that every method reading k keys is measured against.  With mass, flat "
               "rows need many keys and peaked rows one.",
    .picture = "weights",
    .classes = CLASS_LP,
    .claim_time = "O(n^2 d + n k d)",
    .claim_memory = "O(n k)",
    .claim_decode = "yes: reads all keys, k values",
    .claim_exponent = 2,
    .causal = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .kind_of_layer = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .lesson = "top-k",
    .notes = notes,
    .size = "k",
    .size_reads = true,
    .size_usual = DEFAULT_K,
    .size_instead = "mass",
    .params = params,
    .params_size = sizeof(Params),
    .run = topk_run,
    .flops = topk_flops,
    .decode = topk_decode,
};
