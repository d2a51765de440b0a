/* log_linear.c -- log-linear attention: a state for each run of a Fenwick tree.
 *
 *     A_ij = scale lambda[i, level(i,j)] (q_i . k_j) g_{j+1} ... g_i
 *     level(i,j) = number of binary digits of (i xor j);  0: the own token
 *     lambda = softplus(base (u W))
 *
 * The past of token i is cut into runs, one for each set bit of i, the newest the shortest; each
 * has a state of its own, and lambda weighs them when token i reads.
 * (Guo et al. 2025; fla-org/flash-linear-attention ops/log_linear_attn, whose layer multiplies v
 * by dt before and adds D after.)
 */
#include "attn/mech/recurrent/recurrent.h"

#include "attn/run.h"

typedef struct Params {
    Tensor          gates, level_scales, level_weight, level_base;
    RecurrentParams common;
} Params;

static const Param params[] = {
    PARAM_TENSOR(Params, gates, "[h,n] or [n]", "1", "factor in [0,1] by which a token fades all "
                 "states"),
    PARAM_TENSOR(Params, level_scales, "[h,n,L] or [n,L]", "computed",
                 "weight of each level when a token reads; more columns than L are cut"),
    PARAM_TENSOR(Params, level_weight, "[h,du,L] or [du,L]", "N(0, 0.5/sqrt(du))",
                 "weight that levels' weights are computed by, from x (du its width) or q"),
    { .name = "level_base", .type = PARAM_TYPE_TENSOR, .offset = offsetof(Params, level_base),
      .shape = "[h,L], [L] or [1]", .drawn = "1", .number = true,
      .help = "factor before the softplus" },
    RECURRENT_PARAMS(Params, common, "of q; 0: 1"),
    PARAM_END
};

/* f64 [h',n,1]; absent: 1 for all tokens. */
static Tensor level_gates(Run *r, const Params *p)
{
    Tensor gates = recurrent_given(r, "gates", p->gates, 0, GATE_SHARE);

    if (p->gates.data)
        return gates;
    gates = run_tensor3(r, DT_F64, 1, 1, 1);
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 1, gates);
    gates.shape[1] = r->n;
    gates.stride[1] = 0;
    return gates;
}

/* A given tensor f64 [h',rows,>= L]; too few columns are an error that names L. */
static Tensor given_levels(Run *r, const char *name, Tensor given, int64_t rows)
{
    int64_t levels = state_levels(r->n), columns = given.shape[given.rank - 1];
    Tensor  t;

    if (given.data && given.rank >= 1 && columns < levels)
        run_fail(r, ERR_PARAM, "log-linear: parameter %s has %lld columns; n=%lld tokens have "
                 "L=%lld levels", name, (long long)columns, (long long)r->n, (long long)levels);
    t = run_param_given(r, name, given, DT_F64, 3, (int64_t[]){ r->h, rows, columns });
    t.shape[2] = levels;
    return t;
}

/* f64 [h',1,L or 1]: base[1] is for all levels. */
static Tensor level_base(Run *r, const Params *p)
{
    int64_t levels = state_levels(r->n), columns = p->level_base.shape[p->level_base.rank - 1];
    Tensor  t = run_param_given(r, "level_base", p->level_base, DT_F64, 2,
                                (int64_t[]){ r->h, columns == 1 ? 1 : levels });

    return run_failed(r) ? t
                         : tensor_of(DT_F64, 3, (int64_t[]){ t.shape[0], 1, t.shape[1] }, t.data);
}

/* f64 [h',n,>= L], of which L columns count. */
static Tensor level_scales(Run *r, const Params *p, const RecurrentInput *in)
{
    Tensor y, weight = p->level_weight;

    if (p->level_scales.data)
        return given_levels(r, "level_scales", p->level_scales, r->n);
    if (weight.data) {
        Tensor cut = given_levels(r, "level_weight", weight, in->u.shape[2]);

        weight = run_tensor3(r, DT_F64, cut.shape[0], cut.shape[1], cut.shape[2]);
        op_entries(r, cut, ENTRY_CAST, 0, weight);
    }
    y = recurrent_logits(r, in, "level_weight", weight, state_levels(r->n));
    if (p->level_base.data)
        op_entries_of(r, y, level_base(r, p), ENTRY_PRODUCT, 1, y);
    op_entries(r, y, ENTRY_SOFTPLUS, 1, y);
    return y;
}

static double scale_flops(const Run *r, const Params *p)
{
    return p->level_scales.data ? 0 : recurrent_logit_flops(r, state_levels(r->n));
}

/* ---- views ------------------------------------------------------------------------ */

static void read_levels(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    (void)view;
    (void)head;
    for (int64_t c = 0; c < count; c++) {
        int64_t j = start + c * step;

        out[c] = j > i ? -1 : (float)state_bits(i ^ j);
    }
}

static void show_levels(Run *r, Tensor scales)
{
    View *view;

    recurrent_show_numbers(r, "level_scales", scales, state_levels(r->n));
    if (run_wants_views(r) && r->view_count > 0)
        r->views[r->view_count - 1].cols = "level";
    view = view_add(r, "levels", VIEW_BUCKETS, DT_I32, 2, (int64_t[]){ r->n, r->n });

    if (view)
        view->read = read_levels;
}

static StateForm level_form(const Run *r, const Params *p)
{
    StateForm form = recurrent_form(r, &p->common, STATE_ADD, STATE_TOKEN_GATES);

    form.levels = state_levels(r->n);
    return form;
}

static void log_linear_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RecurrentInput in = recurrent_input(r, p->common.scale, 1);
    StateAttend    s = { .form = level_form(r, p), .q = in.q, .k = in.k, .v = in.v,
                         .scale = in.scale, .wide = recurrent_wide(&p->common) };
    StateShow      show = { .surprise = false };
    Tensor         out;

    run_stage(r, RECURRENT_STAGE_GATES);
    s.gates = level_gates(r, p);
    s.levels = level_scales(r, p, &in);
    recurrent_show_gates(r, "gates", s.gates, 0);
    show_levels(r, s.levels);
    run_stage(r, RECURRENT_STAGE_STATE);
    out = op_state_attend(r, &s);
    show.matrix.in = s;
    recurrent_finish(r, &p->common, out, &show);
}

static void log_linear_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    recurrent_check(r, p);
    if (p->common.chunk & (p->common.chunk - 1))
        run_fail(r, ERR_PARAM, "log-linear: chunk=%lld: expected a power of two",
                 (long long)p->common.chunk);
}

static Flops log_linear_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = level_form(r, p);
    Flops         sum = recurrent_flops(r, &p->common, &form);

    sum.overhead += scale_flops(r, p);
    return sum;
}

static DecodeCost log_linear_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = level_form(r, p);

    return recurrent_decode(r, &p->common, &form, scale_flops(r, p) / (double)r->n);
}

static const StageNote notes[] = {
    { RECURRENT_STAGE_GATES,
      "Every token computes how much each level of the past counts when it reads: level 0 is the "
      "token itself, and each further level is a run twice as long." },
    { RECURRENT_STAGE_STATE,
      "Runs of tokens have a state each.  A new token joins runs as a binary counter carries, and "
      "reads one state for each set bit of its position." },
    RECURRENT_NOTE_NORM,
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("levels", VIEW_BUCKETS, "level of each pair; -1 above the diagonal"),
    VIEW("level_scales", VIEW_TENSOR, "weight of each level when a token reads"),
    VIEW("gates", VIEW_MASK, "factor of each token",
         .curve = { .x = "token", .y = "gate", .by_rows = true }),
    RECURRENT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_log_linear = {
    .id = "log-linear",
    .title = "Log-linear attention",
    .authors = "Guo, Yang, Goel, Xing, Dao, Kim",
    .year = 2025,
    .arxiv = "2506.04761",
    .source = "paper, section 3; fla-org/flash-linear-attention ops/log_linear_attn and "
              "layers/log_linear_mamba2.py",
    .formula = "A_ij = scale lambda[i, level(i,j)] (q_i . k_j) g_{j+1} ... g_i\n"
               "level(i,j) = binary digits of (i xor j)\n"
               "lambda = softplus(base (u W))",
    .problem = "One state of fixed size holds a long past as badly as a short one.",
    .idea = "The past is cut into runs of 1, 2, 4, ... tokens, as in a Fenwick tree, and each run "
            "has a state of its own: near tokens are kept finely, far ones coarsely.",
    .price = "Memory and each step grow by the logarithm of the length.",
    .lesson = "forgetting",
    .teaches = "Coloured by level the triangle falls into squares that double away from the "
               "diagonal.  Besides itself, a token reads one state for each set bit of its "
               "position.",
    .picture = "levels",
    .classes = CLASS_RC | CLASS_KR,
    .claim_time = "O(n log n)",
    .claim_memory = "O(log n)",
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
    .check = log_linear_check,
    .run = log_linear_run,
    .flops = log_linear_flops,
    .decode = log_linear_decode,
};
