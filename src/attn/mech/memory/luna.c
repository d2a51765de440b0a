/* luna.c -- nested attention: a few extra tokens read the sequence, and it reads them.
 *
 *     A_in  = softmax(scale P K^T)          Y_V = A_in V,  Y_K = A_in K       (pack, l rows)
 *     A_out = softmax(scale Q Y_K^T)        output = A_out Y_V                (unpack)
 *
 * so W = A_out A_in has rank l and rows that sum to 1.  Causal, with g_j = act(scale P k_j)
 * unnormalised and t = i + 1:
 *
 *     a_i = softmax_l(scale q_i (sum_(j<=i) g_j^T k_j)^T / t)
 *     output_i = a_i (sum_(j<=i) g_j^T v_j) / t,      W_ij = a_i . g_j / t
 *
 * (Ma et al. 2021, sections 3.1 and 3.3; luna_attention.py of fairseq-apollo.)
 */
#include "attn/mech/lowrank/latents.h"
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

#define CHUNK 256 /* tokens whose sums are made at once: fixed, so threads change no bit */

enum { UNPACK_K, UNPACK_V };
static const char *const unpacks[] = { "packed_k", "packed_v", NULL };
enum { ACTIVATION_ELU, ACTIVATION_SOFTPLUS };
static const char *const activations[] = { "elu", "softplus", NULL };

typedef struct Params {
    int64_t n_p;
    int     unpack_keys, activation;
    double  softplus_beta, scale;
    Tensor  p, k_pack;
} Params;

static const Param params[] = {
    PARAM_INT(Params, n_p, 16, 1, INT32_MAX, "packed tokens l; a given p has its own"),
    PARAM_TENSOR(Params, p, "[h,l,d] or [l,d]", "N(0, 1/d)", "P, the queries that pack"),
    PARAM_TENSOR(Params, k_pack, "[h,m,d] or [m,d]", "the keys",
                 "keys that P meets, if they have a projection of their own"),
    PARAM_ENUM(Params, unpack_keys, UNPACK_K, unpacks,
               "what the queries meet: packed keys, or packed values (needs e = d)"),
    PARAM_ENUM(Params, activation, ACTIVATION_ELU, activations,
               "of the causal pack: elu(x) + 1, or log(1 + e^(beta x)) / beta"),
    PARAM_POSITIVE(Params, softplus_beta, 0.6931471805599453, "beta of softplus"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

/* Of one way: everything in double, chunk by chunk (op_linear_attend). */
typedef struct Causal {
    Tensor g, a;   /* f64 [h,n,l] activations of the pack, weights of the unpack */
    Tensor age;    /* f64 [1,n,1]: i + 1 */
    Tensor memory; /* f32 [h,l,e]: sum of g_j^T v_j over all tokens */
} Causal;

static Tensor pack_queries(Run *r, const Params *p);
static int64_t packed_count(const Params *p);
static Tensor pack_keys(Run *r, const Params *p);
static void one_way(Run *r, const Params *p, Tensor queries, Tensor keys);
static Tensor ages(Run *r);
static Tensor luna_packed(Run *r, const Params *p, Tensor queries, Tensor keys);
static void charge_causal(Run *r, int64_t l, bool sums);
static Tensor unpacked(Run *r, const Params *p, const Causal *c);
static LinearResult running(Run *r, const Causal *c, Tensor x, Tensor y, Tensor v);
static void show_causal(Run *r, const Causal *c);

static void luna_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Nested        s = { .scale = run_scale(r, p->scale), .with_keys = p->unpack_keys == UNPACK_K,
                        .pack = "pack", .unpack = "unpack", .latent = "slot" };

    run_stage(r, "pack queries");
    s.latents = pack_queries(r, p);
    s.keys = pack_keys(r, p);
    if (run_failed(r))
        return;
    if (r->causal)
        one_way(r, p, s.latents, s.keys);
    else
        latents_nested(r, &s);
}

static Tensor pack_queries(Run *r, const Params *p)
{
    int64_t shape[3] = { r->h, packed_count(p), r->d };

    return run_param(r, "p", p->p, DT_F32, 3, shape,
                     (Init){ INIT_NORMAL, 1 / sqrt((double)r->d) });
}

static int64_t packed_count(const Params *p)
{
    return p->p.data && p->p.rank >= 2 ? p->p.shape[p->p.rank - 2] : p->n_p;
}

static Tensor pack_keys(Run *r, const Params *p)
{
    int64_t shape[3] = { r->h, r->m, r->d };
    Tensor  given = run_param_given(r, "k_pack", p->k_pack, DT_F32, 3, shape);

    return given.data ? given : r->k;
}

/* ---- causal ------------------------------------------------------------------- */

/* The sums are those of linear attention; they are counted as the paper does. */
static void one_way(Run *r, const Params *p, Tensor queries, Tensor keys)
{
    Causal       c = { .age = ages(r) };
    LinearResult found;

    run_stage(r, "pack");
    r->again = true;
    c.g = luna_packed(r, p, queries, keys);
    r->again = false;
    charge_causal(r, queries.shape[1], true);
    run_stage(r, "unpack");
    r->again = true;
    c.a = unpacked(r, p, &c);
    found = running(r, &c, c.a, c.g, r->v);
    c.memory = found.memory;
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    op_entries(r, found.out, ENTRY_CAST, 0, r->out);
    r->again = false;
    charge_causal(r, queries.shape[1], false);
    show_causal(r, &c);
}

static Tensor ages(Run *r)
{
    Tensor age = run_tensor3(r, DT_F64, 1, r->n, 1);

    run_prepare(r, true);
    for (int64_t i = 0; i < r->n && !run_failed(r); i++)
        ((double *)age.data)[i] = (double)(i + 1);
    op_toward(r, age.data, tensor_bytes(&age));
    run_prepare(r, false);
    return age;
}

/* g_j = activation of scale P k_j */
static Tensor luna_packed(Run *r, const Params *p, Tensor queries, Tensor keys)
{
    Tensor g = run_tensor3(r, DT_F64, r->h, r->n, queries.shape[1]);
    bool   elu = p->activation == ACTIVATION_ELU;

    op_gemm(r, keys, false, queries, true, run_scale(r, p->scale), 0, g, FLOP_APART);
    op_entries(r, g, elu ? ENTRY_ELU : ENTRY_SOFTPLUS, elu ? 0 : p->softplus_beta, g);
    return g;
}

static void charge_causal(Run *r, int64_t l, bool sums)
{
    double tokens = (double)(r->h * r->n), slots = (double)l, d = (double)r->d, e = (double)r->e;

    if (sums) {
        op_charge(r, FLOP_SCORE, tokens * 2 * slots * d);
        op_charge(r, FLOP_OVERHEAD, tokens * (4 * slots + 2 * slots * (d + e)));
    } else {
        op_charge(r, FLOP_SCORE, tokens * 2 * slots * d);
        op_charge(r, FLOP_MIX, tokens * 2 * slots * e);
    }
}

/* a_i: softmax of scale q_i CK_i / (i + 1), CK the sums of keys, or values, by activations. */
static Tensor unpacked(Run *r, const Params *p, const Causal *c)
{
    Tensor       keys = p->unpack_keys == UNPACK_K ? r->k : r->v;
    LinearResult found = running(r, c, dense_wide(r, r->q), dense_wide(r, keys), c->g);

    op_entries(r, found.out, ENTRY_SCALE, run_scale(r, p->scale), found.out);
    op_softmax_rows(r, &(SoftmaxRows){ .x = found.out });
    return found.out;
}

/* Row i: x_i sum over j <= i of y_j^T v_j, divided by its age. */
static LinearResult running(Run *r, const Causal *c, Tensor x, Tensor y, Tensor v)
{
    LinearAttend in = { .fq = x, .fk = y, .v = v, .wide = true, .causal = true,
                        .form = LINEAR_CHUNKED, .chunk = CHUNK,
                        .denominator = DENOMINATOR_NONE };
    LinearResult found = op_linear_attend(r, &in);

    op_entries_of(r, found.out, c->age, ENTRY_QUOTIENT, 0, found.out);
    return found;
}

static void show_causal(Run *r, const Causal *c)
{
    Pattern *cells;
    Tensor   age, a, g;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    age = run_tensor2(r, DT_F64, r->h, r->n);
    op_entries(r, tensor_turned(c->age), ENTRY_CAST, 0, age);
    a = dense_rounded(r, c->a);
    g = dense_rounded(r, c->g);
    op_entries(r, c->memory, ENTRY_DIVIDE, (double)r->n, c->memory);
    implicit_factor(r, "factor_left", VIEW_WEIGHTS, a, "query", "slot");
    implicit_factor(r, "factor_right", VIEW_WEIGHTS, dense_turned(r, g), "slot", "key");
    view_tensor(r, "memory", VIEW_VECTORS, c->memory, "slot", "component");
    implicit_connectivity(r, cells);
    implicit_weights(r, (Implicit){ .left = a, .right = g, .divisor = age }, VIEW_WEIGHTS, cells);
}

static void luna_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->unpack_keys == UNPACK_V && r->d != r->e)
        run_fail(r, ERR_PARAM, "luna: unpack_keys=packed_v scores queries of size d=%lld against "
                 "packed values of size e=%lld, which must be equal",
                 (long long)r->d, (long long)r->e);
    if (r->causal && r->m != r->n)
        run_fail(r, ERR_DATA, "luna: causal needs as many keys as queries: the input has n=%lld "
                 "queries and m=%lld keys", (long long)r->n, (long long)r->m);
}

static Flops luna_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double l = (double)packed_count(p), n = (double)r->n, d = (double)r->d, e = (double)r->e;
    double h = (double)r->h;

    if (r->causal)
        return (Flops){ .score = h * n * 4 * l * d, .mix = h * n * 2 * l * e,
                        .overhead = h * n * (4 * l + 2 * l * (d + e)) };
    return latents_nested_flops(r, packed_count(p), p->unpack_keys == UNPACK_K);
}

/* Running sums of l keys and l values; no token is held. */
static DecodeCost luna_decode(const Run *r, const void *opaque)
{
    double l = (double)packed_count(opaque), h = (double)r->h, d = (double)r->d, e = (double)r->e;
    double bytes = 4 * h * l * (d + e);

    return (DecodeCost){ .state_bytes = bytes, .step_bytes = bytes,
                         .decode_flops = h * (4 * l * d + 2 * l * e + 4 * l + 2 * l * (d + e)) };
}

static const StageNote notes[] = {
    { "pack queries", "P: a few extra queries, learned, as many however long the sequence is." },
    { "pack", "Every packed token attends to all tokens: keys and values become l of each. Causal: "
              "running sums of unnormalised activations take the place of this softmax." },
    { "unpack", "Every query attends to the l packed tokens. The product of both maps is the "
                "attention matrix, of rank l." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells; causal: j <= i"),
    VIEW("weights", VIEW_WEIGHTS, "A_out A_in; causal: a_i . g_j / (i + 1), whose rows do not sum "
         "to 1"),
    VIEW("factor_left", VIEW_WEIGHTS, "A_out: each query over the slots"),
    VIEW("factor_right", VIEW_WEIGHTS, "A_in: each slot over the keys; causal: the activations g"),
    VIEW("memory", VIEW_VECTORS, "the packed values"),
    VIEW("p", VIEW_TENSOR, "the pack queries, when drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_luna = {
    .id = "luna",
    .title = "Luna (linear unified nested attention)",
    .authors = "Ma, Kong, Wang, Zhou, May, Ma, Zettlemoyer",
    .year = 2021,
    .arxiv = "2106.01540",
    .source = "paper, sections 3.1 and 3.3; fairseq-apollo luna_attention.py",
    .formula = "Y = softmax(scale P K^T) [K V]\n"
               "output = softmax(scale Q Y_K^T) Y_V,  P [l,d]",
    .problem = "Attention between all tokens is too expensive, though few singular values hold "
               "most of many maps.",
    .idea = "A few extra vectors first collect from the sequence, and the tokens then read from "
            "them.",
    .price = "What the few slots do not hold is lost.",
    .lesson = "low-rank",
    .teaches = "A wide strip packs the sequence into a few slots, a tall strip unpacks them: the "
               "whole map has the rank of the slots.  In causal runs rows need not sum to 1; the "
               "first rows can be farthest from it.",
    .example = "n_p=8",
    .classes = CLASS_M,
    .claim_time = "O(l n)",
    .claim_memory = "O(l n)",
    .claim_decode = "yes (running sums)",
    .claim_exponent = 1,
    .causal = true,
    .cross = true,
    .views = views,
    .notes = notes,
    .size = "n_p",
    .params = params,
    .params_size = sizeof(Params),
    .check = luna_check,
    .run = luna_run,
    .flops = luna_flops,
    .decode = luna_decode,
};
