/* rwkv7.c -- a delta rule whose removal and writing are apart.
 *
 *     kk = k kk_scale / max(|k kk_scale|, 1e-12)     removal key
 *     k~ = k (1 + (a - 1) ka_scale)                  replacement key
 *     S <- diag(w_i) S - (a_i kk_i)^T (kk_i S) + k~_i^T v_i     kk_i S of the old S
 *     output_i = scale r_i S                          r: q
 *
 * with w the decay and a the in-context learning rate, both by channel.  With L_b, L_k the strict
 * triangles of kk_i . (a_j kk_j) and kk_i . k~_j, faded by the decays of tokens j+1 .. i-1, and
 * tril(..) faded by those of j+1 .. i,
 *
 *     A = scale (tril(R K~^T) - tril(R (a kk)^T) (I + L_b)^-1 L_k)
 *
 * Behind the norm, bonus adds (sum_c r_c k~_c bonus_c) v_i.
 * (Peng et al. 2025.)
 */
#include "attn/mech/recurrent/recurrent.h"

#include <math.h>

#include "attn/run.h"

#define LEAST_LENGTH 1e-12

typedef struct Params {
    Tensor          decay, decay_weight, decay_bias;
    Tensor          rate, rate_weight, rate_bias;
    Tensor          kk_scale, ka_scale, bonus;
    RecurrentParams common;
} Params;

static const Param params[] = {
    PARAM_TENSOR(Params, decay, "[n,d] or [h,n,d]", "computed from decay_weight",
                 "w, the factors by which channels fade, in [0,1]"),
    PARAM_TENSOR(Params, decay_weight, "[du,d] or [h,du,d]", "N(0, 1/(4 du))",
                 "w = exp(-e^(-1/2) sigmoid(u W + b)); u: x, or the head's own q"),
    PARAM_TENSOR(Params, decay_bias, "[d] or [h,d]", "fixed: from -8 to 3, rising with the channel",
                 "b of it"),
    PARAM_TENSOR(Params, rate, "[n,d] or [h,n,d]", "computed from rate_weight",
                 "a, the in-context learning rate of channels, in [0,1]"),
    PARAM_TENSOR(Params, rate_weight, "[du,d] or [h,du,d]", "N(0, 1/(4 du))",
                 "a = sigmoid(u W + b)"),
    PARAM_TENSOR(Params, rate_bias, "[d] or [h,d]", "fixed: from -0.7 to 0.3, rising with the "
                 "channel", "b of it"),
    PARAM_TENSOR(Params, kk_scale, "[d] or [h,d]", "1", "factors of the removal key, before its "
                 "length becomes 1"),
    PARAM_TENSOR(Params, ka_scale, "[d] or [h,d]", "1", "how much of the rate the written key "
                 "takes"),
    PARAM_TENSOR(Params, bonus, "[d] or [h,d]", "none", "weights by which a token reads its own "
                 "value, behind the norm"),
    RECURRENT_PARAMS(Params, common, "of r, which is q, also in the bonus; 0: 1"),
    PARAM_END
};

/* ---- biases as the model begins ------------------------------------------------------ */

/* Place of a channel among all of the model's, and in its head as a curve from -1 to 1. */
typedef struct Place {
    double model, curve;
} Place;

static Place place_of(const Run *r, int64_t head, int64_t channel)
{
    double all = (double)(r->h * r->d - 1), own = (double)(r->d - 1);
    double z = 2 * (own > 0 ? (double)channel / own : 0) - 1;

    return (Place){ .model = all > 0 ? (double)(head * r->d + channel) / all : 0,
                    .curve = z * fabs(z) };
}

static double decay_start(Place at)
{
    return -5.5 + 6 * at.model + 2.5 * at.curve;
}

static double rate_start(Place at)
{
    return -0.19 + 0.3 * at.curve + 0.4 * (at.model - 0.5);
}

/* f64 [h',1,d] */
static Tensor bias_of(Run *r, const char *name, Tensor given, double (*start)(Place at))
{
    Tensor t = recurrent_bias(r, name, given, r->d);

    if (t.data || run_failed(r))
        return t;
    t = run_tensor3(r, DT_F64, r->h, 1, r->d);
    run_prepare(r, true);
    for (int64_t x = 0; x < r->h * r->d && !run_failed(r); x++)
        tensor_f64(&t)[x] = start(place_of(r, x / r->d, x % r->d));
    op_toward(r, t.data, tensor_bytes(&t));
    run_prepare(r, false);
    return t;
}

/* ---- what a token brings --------------------------------------------------------------- */


static Tensor rwkv7_decay(Run *r, const Params *p, const RecurrentInput *in)
{
    const EntryStep steps[] = { { .kind = ENTRY_SIGMOID },
                                { .kind = ENTRY_SCALE, .by = -exp(-0.5) },
                                { .kind = ENTRY_EXP } };
    Tensor          w = recurrent_given(r, "decay", p->decay, r->d, GATE_SHARE);

    if (w.data || run_failed(r))
        return w;
    w = recurrent_logits(r, in, "decay_weight", p->decay_weight, r->d);
    recurrent_steps(r, w, bias_of(r, "decay_bias", p->decay_bias, decay_start), steps, 3);
    return w;
}

static Tensor rwkv7_rate(Run *r, const Params *p, const RecurrentInput *in)
{
    const EntryStep sigmoid = { .kind = ENTRY_SIGMOID };
    Tensor          a = recurrent_given(r, "rate", p->rate, r->d, GATE_SHARE);

    if (a.data || run_failed(r))
        return a;
    a = recurrent_logits(r, in, "rate_weight", p->rate_weight, r->d);
    recurrent_steps(r, a, bias_of(r, "rate_bias", p->rate_bias, rate_start), &sigmoid, 1);
    return a;
}

/* k~ [h,n,d] */
static Tensor replacement_keys(Run *r, const Params *p, Tensor k, Tensor rate, DType dtype)
{
    Tensor    scale = recurrent_bias(r, "ka_scale", p->ka_scale, r->d);
    Tensor    keys = run_tensor3(r, dtype, r->h, r->n, r->d);
    EntryStep steps[ENTRY_STEPS] = { { .kind = ENTRY_SHIFT, .by = -1 } };
    int       count = 1;

    if (scale.data)
        steps[count++] = (EntryStep){ ENTRY_PRODUCT, 1, scale };
    steps[count++] = (EntryStep){ .kind = ENTRY_SHIFT, .by = 1 };
    steps[count++] = (EntryStep){ ENTRY_PRODUCT, 1, k };
    op_entries_steps(r, rate, steps, count, keys);
    return keys;
}

/* kk and a kk, [h,n,d] */
static void removal_keys(Run *r, const Params *p, Tensor k, Tensor rate, DType dtype,
                         StateAttend *s)
{
    Tensor scale = recurrent_bias(r, "kk_scale", p->kk_scale, r->d);
    Tensor wide = run_tensor3(r, DT_F64, r->h, r->n, r->d);

    s->removal = run_tensor3(r, dtype, r->h, r->n, r->d);
    s->erase = run_tensor3(r, dtype, r->h, r->n, r->d);
    if (scale.data)
        op_entries_of(r, k, scale, ENTRY_PRODUCT, 1, wide);
    else
        op_entries(r, k, ENTRY_CAST, 0, wide);
    wide = op_normalise64(r, wide, NORMALISE_L2, LEAST_LENGTH);
    op_entries(r, wide, ENTRY_CAST, 0, s->removal);
    op_entries_of(r, wide, rate, ENTRY_PRODUCT, 1, s->erase);
}

/* f64 [h,n,1]: scale sum_c r_c k~_c bonus_c; data NULL: no bonus. */
static Tensor bonus_of(Run *r, const Params *p, const StateAttend *s)
{
    int64_t shape[2] = { r->h, r->d };
    Tensor  weight = run_param_given(r, "bonus", p->bonus, DT_F64, 2, shape), both, bonus;

    if (!weight.data || run_failed(r))
        return (Tensor){ .rank = 0 };
    weight = tensor_of(DT_F64, 3, (int64_t[]){ weight.shape[0], r->d, 1 }, weight.data);
    both = run_tensor3(r, DT_F64, r->h, r->n, r->d);
    bonus = run_tensor3(r, DT_F64, r->h, r->n, 1);
    op_entries_of(r, s->q, s->k, ENTRY_PRODUCT, s->scale, both);
    op_gemm(r, both, false, weight, false, 1, 0, bonus, FLOP_APART);
    return bonus;
}

static void add_bonus(Run *r, Tensor bonus, Tensor v)
{
    Tensor own = run_tensor3(r, DT_F64, r->h, r->n, r->e), y;

    run_stage(r, "bonus");
    y = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    op_entries_of(r, v, bonus, ENTRY_PRODUCT, 1, own);
    op_entries_of(r, r->out, own, ENTRY_SUM, 1, y);
    op_charge(r, FLOP_OVERHEAD, (double)(r->h * r->n) * (3 * (double)r->d + 2 * (double)r->e));
    r->out = y;
}

/* ---- run ------------------------------------------------------------------------------ */

static StateForm rwkv7_form(const Run *r, const Params *p)
{
    return recurrent_form(r, &p->common, STATE_REPLACE, STATE_CHANNEL_GATES);
}

/* Of all tokens and heads, beside the state's and the norm's own. */
static double rwkv7_overhead(const Run *r, const Params *p)
{
    double d = (double)r->d, token = 9 * d + 3;
    double computed = (p->decay.data ? 0 : 1) + (p->rate.data ? 0 : 1);

    if (p->bonus.data)
        token += 3 * d + 2 * (double)r->e;
    return (double)(r->h * r->n) * token + computed * recurrent_logit_flops(r, r->d);
}

static void rwkv7_show(Run *r, Tensor rate, const StateAttend *s)
{
    recurrent_show_gates(r, "decay", s->gates, r->d);
    recurrent_show_gates(r, "rate", rate, r->d);
    view_tensor(r, "removal", VIEW_FEATURES, s->removal, "token", "channel");
    view_tensor(r, "keys", VIEW_FEATURES, s->k, "token", "channel");
}

static void rwkv7_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RecurrentInput in = recurrent_input(r, p->common.scale, 1);
    StateAttend    s = { .form = rwkv7_form(r, p), .q = in.q, .v = in.v, .scale = in.scale,
                         .wide = recurrent_wide(&p->common) };
    StateShow      show = { .surprise = false };
    Tensor         rate, bonus, out;

    run_stage(r, RECURRENT_STAGE_GATES);
    s.gates = rwkv7_decay(r, p, &in);
    rate = rwkv7_rate(r, p, &in);
    s.k = replacement_keys(r, p, in.k, rate, DT_F32);
    removal_keys(r, p, in.k, rate, DT_F32, &s);
    bonus = bonus_of(r, p, &s);
    op_charge(r, FLOP_OVERHEAD, (double)(r->h * r->n) * (9 * (double)r->d + 3));
    rwkv7_show(r, rate, &s);
    run_stage(r, RECURRENT_STAGE_STATE);
    out = op_state_attend(r, &s);
    show.matrix.in = s;
    if (run_wants_views(r)) { /* the cosine of a small vector magnifies the rounding of keys */
        r->again = true;
        show.matrix.in.k = replacement_keys(r, p, in.k, rate, DT_F64);
        removal_keys(r, p, in.k, rate, DT_F64, &show.matrix.in);
        r->again = false;
    }
    if (p->common.norm != RECURRENT_NORM_GROUP) /* then the matrix is that before the norm */
        show.matrix.after = bonus;
    recurrent_finish(r, &p->common, out, &show);
    if (bonus.data)
        add_bonus(r, bonus, in.v);
}

static Flops rwkv7_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = rwkv7_form(r, p);
    Flops         sum = recurrent_flops(r, &p->common, &form);

    sum.overhead += rwkv7_overhead(r, p);
    return sum;
}

static DecodeCost rwkv7_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = rwkv7_form(r, p);

    return recurrent_decode(r, &p->common, &form, rwkv7_overhead(r, p) / (double)r->n);
}

static const StageNote notes[] = {
    { RECURRENT_STAGE_GATES,
      "Each token makes two keys: one along which the state is cleared, of unit length, and one "
      "that is written.  Decay and rate say, channel by channel, what fades and how much is "
      "cleared." },
    { RECURRENT_STAGE_STATE,
      "The state fades, loses what it returned for the removal key, and takes the new key and "
      "value." },
    RECURRENT_NOTE_NORM,
    { "bonus", "Behind the norm each token adds its own value once more, by a weight of its own." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("decay", VIEW_MASK, "factor by which each channel fades", .quantity = "factor"),
    VIEW("rate", VIEW_MASK, "in-context learning rate of each channel", .quantity = "rate"),
    VIEW("removal", VIEW_FEATURES, "keys along which the state is cleared"),
    VIEW("keys", VIEW_FEATURES, "keys that are written"),
    RECURRENT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_rwkv7 = {
    .id = "rwkv7",
    .title = "RWKV-7 \"Goose\"",
    .authors = "Peng et al.",
    .year = 2025,
    .arxiv = "2503.14456",
    .source = "paper, section 4; BlinkDL/RWKV-LM RWKV-v7 rwkv_v7_numpy.py time_mixing",
    .formula = "S_i = diag(w_i) S_{i-1} - (a_i kk_i)^T (kk_i S_{i-1}) + k~_i^T v_i\n"
               "output_i = scale r_i S_i",
    .problem = "A delta rule removes along the key that it writes, as strongly as it writes, and "
               "in all channels alike.",
    .idea = "What is removed, what is written, and how fast every channel fades or learns are "
            "vectors of their own.",
    .price = "Updating and reading its state costs half as much again as under a delta rule: it "
             "is read, faded, cleared and written.  Computing the decay and the rate of a token "
             "costs about half as much as that.",
    .lesson = "forgetting",
    .teaches = "Removal and written keys as two strips: where they differ the state is edited, not "
               "overwritten.  Channels with a decay near 1 are its long-term memory.",
    .picture = "weights",
    .classes = CLASS_RC | CLASS_KR,
    .claim_time = "O(n d e)",
    .claim_memory = "O(d e)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .always_causal = true,
    .no_at_end = RECURRENT_NO_AT_END,
    .positions = POSITION_INPUT,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = recurrent_check,
    .run = rwkv7_run,
    .flops = rwkv7_flops,
    .decode = rwkv7_decode,
};
