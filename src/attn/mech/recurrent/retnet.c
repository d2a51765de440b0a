/* retnet.c -- retention: a state that fades by a fixed factor per head.
 *
 *     S_i = gamma S_{i-1} + k_i^T v_i,   output_i = scale q_i S_i
 *     A_ij = scale gamma^(i-j) q_i . k_j
 *
 * gamma_t of head t, from 0:
 *     retnet       1 - 2^(-5-t)
 *     lightning    exp(-2^(-8(t+1)/h) (1 - layer/(layers-1+1e-5) + 1e-5))
 *     transnormer  exp(-8 t/h (1 - layer/layers))
 *     none         1
 *
 * The official layer ends in a per-head RMS norm without weights (norm=rms).
 * (Sun et al. 2023; lightning: Qin et al. 2024, arXiv 2401.04658, with the slopes of MiniMax-01;
 * transnormer: Qin et al. 2023, arXiv 2307.14995.)
 */
#include "attn/mech/recurrent/recurrent.h"

#include <math.h>

#include "attn/run.h"

enum { DECAY_RETNET, DECAY_LIGHTNING, DECAY_TRANSNORMER, DECAY_NONE };
static const char *const decays[] = { "retnet", "lightning", "transnormer", "none", NULL };

typedef struct Params {
    int             decay;
    Tensor          gamma;
    int64_t         layer, layers;
    RecurrentParams common;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, decay, DECAY_RETNET, decays, "how fast each head forgets; lightning: as "
               "MiniMax-01; none: not at all"),
    { .name = "gamma", .type = PARAM_TYPE_TENSOR, .offset = offsetof(Params, gamma),
      .shape = "[h]", .drawn = "by decay", .number = true,
      .help = "the factors themselves, in [0,1]" },
    PARAM_INT(Params, layer, 0, 0, INT32_MAX, "depth of the layer (lightning, transnormer)"),
    PARAM_INT(Params, layers, 24, 1, INT32_MAX, "layers of the model (lightning, transnormer)"),
    RECURRENT_PARAMS(Params, common, "of q; 0: 1/sqrt(d)"),
    PARAM_END
};

static double decay_of(const Params *p, int64_t head, int64_t heads)
{
    double t = (double)head, h = (double)heads, layer = (double)p->layer;
    double layers = (double)p->layers;

    switch (p->decay) {
    case DECAY_RETNET: return 1 - exp2(-5 - t);
    case DECAY_LIGHTNING:
        return exp(-exp2(-8 * (t + 1) / h) * (1 - layer / (layers - 1 + 1e-5) + 1e-5));
    case DECAY_TRANSNORMER: return exp(-8 * t / h * (1 - layer / layers));
    default: return 1;
    }
}

/* f64 [h,n,1]: one number for all tokens of a head. */
static Tensor retnet_gates(Run *r, const Params *p)
{
    Tensor given = recurrent_bias(r, "gamma", p->gamma, 0);
    Tensor gates = run_tensor3(r, DT_F64, r->h, 1, 1), shown = run_tensor1(r, DT_F32, r->h);

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        double gamma = given.data ? *(double *)tensor_head(&given, t, r->h)
                                  : decay_of(p, t, r->h);

        if (!(gamma >= 0 && gamma <= 1))
            run_fail(r, ERR_PARAM, "retnet: parameter gamma: entry [%lld] is %g; expected 0 to 1",
                     (long long)t, gamma);
        tensor_f64(&gates)[t] = gamma;
        tensor_f32(&shown)[t] = (float)gamma;
    }
    view_tensor(r, "decay", VIEW_MASK, shown, "head", "head");
    gates.shape[1] = r->n;
    gates.stride[1] = 0;
    return gates;
}

static StateForm retnet_form(const Run *r, const Params *p)
{
    return recurrent_form(r, &p->common, STATE_ADD, STATE_TOKEN_GATES);
}

static void retnet_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RecurrentInput in = recurrent_input(r, p->common.scale, 0);
    StateAttend    s = { .form = retnet_form(r, p), .q = in.q, .k = in.k, .v = in.v,
                         .scale = in.scale, .wide = recurrent_wide(&p->common) };
    StateShow      show = { .surprise = false };
    Tensor         out;

    run_stage(r, RECURRENT_STAGE_GATES);
    s.gates = retnet_gates(r, p);
    run_stage(r, RECURRENT_STAGE_STATE);
    out = op_state_attend(r, &s);
    show.matrix.in = s;
    recurrent_finish(r, &p->common, out, &show);
}

static void retnet_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    recurrent_check(r, p);
    if (p->layer >= p->layers)
        run_fail(r, ERR_PARAM, "retnet: layer=%lld is not below layers=%lld",
                 (long long)p->layer, (long long)p->layers);
}

static Flops retnet_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = retnet_form(r, p);

    return recurrent_flops(r, &p->common, &form);
}

static DecodeCost retnet_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = retnet_form(r, p);

    return recurrent_decode(r, &p->common, &form, 0);
}

static const StageNote notes[] = {
    { RECURRENT_STAGE_GATES,
      "Every head has one fixed factor by which it forgets at each token, whatever the text is." },
    { RECURRENT_STAGE_STATE,
      "Each token fades the state, adds its key and value to it, and reads it with its query.  "
      "The matrix of weights is never built: the picture computes the cells it shows." },
    RECURRENT_NOTE_NORM,
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("decay", VIEW_MASK, "gamma of each head"),
    RECURRENT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_retnet = {
    .id = "retnet",
    .title = "RetNet",
    .authors = "Sun, Dong, Huang, Ma, Xia, Xue, Wang, Wei",
    .year = 2023,
    .arxiv = "2307.08621",
    .source = "paper, section 2; microsoft/torchscale multiscale_retention; MiniMax lightning "
              "attention for decay=lightning",
    .formula = "S_i = gamma S_{i-1} + k_i^T v_i\n"
               "output_i = scale q_i S_i\n"
               "A_ij = scale gamma^(i-j) q_i . k_j",
    .problem = "Linear attention adds every token to one sum, so old tokens crowd out new ones.",
    .idea = "Each head multiplies its state by a fixed factor below 1 at every token: near tokens "
            "count more, and a few heads remember long.",
    .price = "How long a head remembers is fixed before any text is read.",
    .teaches = "A triangle per head whose band along the diagonal widens from head to head.  The "
               "span line is nearly straight: the head decides it, not the data.  The paper also "
               "rotates q and k (xPos); --position rope is the plain rotation.",
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
    .lesson = "forgetting",
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = retnet_check,
    .run = retnet_run,
    .flops = retnet_flops,
    .decode = retnet_decode,
};
