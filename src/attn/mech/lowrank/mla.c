/* mla.c -- multi-head latent attention: one short vector of each token holds all keys and values.
 *
 *     k = c w_uk,   v = c w_uv                      c [n,dc], one for all heads
 *     x_ij = scale (qn_i . k_j + qr_i . r_j)        q = [qn, qr]; r [n,dr], one for all heads
 *     output = softmax(x) v
 *
 * A decoder keeps c and r only.  absorbed: the up-projections move to the query and to the result,
 * so that no key and no value is ever made,
 *
 *     qn_i . (c_j w_uk) = (qn_i w_uk^T) . c_j,   sum_j w_ij (c_j w_uv) = (sum_j w_ij c_j) w_uv
 *
 * plain: keys and values are made first.  A position turns qr and r, which the latent is no part
 * of, because a turn that depends on j could not move to the query.
 *
 * Where no latent is given it is the best one of its size.  With all keys and values of a token
 * side by side in M [n, h' (d + e)] = U S V^T, it is c = U S, cut after dc columns, and the
 * up-projections are the columns of V^T that belong to a head.  The cut sees all tokens, as
 * training does; the attention over it keeps its order.
 */
#include <math.h>

#include "attn/ops/dense.h"
#include "attn/run.h"
#include "attn/run/position.h"

enum { FORM_ABSORBED, FORM_PLAIN };
static const char *const forms[] = { "absorbed", "plain", NULL };

typedef struct Params {
    Tensor  latent, k_rope, w_uk, w_uv;
    int64_t rank;
    int     form;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_TENSOR(Params, latent, "[n,dc]", "made", "the latent of each token"),
    PARAM_TENSOR(Params, k_rope, "[n,dr]", "absent",
                 "keys of the last dr numbers of q, which a position turns; with latent only"),
    PARAM_TENSOR(Params, w_uk, "[h,dc,d-dr]", "made", "makes keys of latents; with latent only"),
    PARAM_TENSOR(Params, w_uv, "[h,dc,e]", "made", "makes values of latents; with latent only"),
    PARAM_INT(Params, rank, 0, 0, PARAM_COUNT_MAX,
              "dc where no latent is given; 0: a quarter of the keys and values of a token"),
    PARAM_ENUM(Params, form, FORM_ABSORBED, forms,
               "projections move to query and result, or keys and values are made; same result"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

/* What a token leaves in the cache, and what it is read by. */
typedef struct Latent {
    int64_t rank, rope;    /* dc, dr */
    Tensor  c, r;          /* f32 [1,n,dc]; [1,n,dr] turned, or absent */
    Tensor  w_uk, w_uv;    /* f32 [h',dc,d-dr], [h',dc,e] */
    Tensor  q, q_rope;     /* f32 [h,n,d-dr]; [h,n,dr] turned, or absent */
    Tensor  values;        /* f64 singular values; data NULL: the latent is given */
} Latent;

/* Numbers of a token's keys and values. */
static int64_t token_width(const Run *r)
{
    return r->k.shape[0] * r->d + r->v.shape[0] * r->e;
}

static int64_t rank_of(const Run *r, const Params *p)
{
    int64_t most = min_i64(r->m, token_width(r)), quarter = max_i64(1, token_width(r) / 4);

    if (p->latent.data)
        return p->latent.shape[p->latent.rank - 1];
    return min_i64(p->rank ? p->rank : quarter, most);
}

/* What rank=0 took. */
static void note_rank(Run *r, const Params *p, int64_t rank)
{
    int64_t width = token_width(r);

    if (p->latent.data || p->rank)
        return;
    if (rank < width / 4)
        run_note(r, "rank=%lld, one for each token: nothing is lost", (long long)rank);
    else
        run_note(r, "rank=%lld, a quarter of a token's %lld numbers of %lld head%s",
                 (long long)rank, (long long)width, (long long)r->k.shape[0],
                 r->k.shape[0] == 1 ? "" : "s");
}

static int64_t rope_of(const Params *p)
{
    return p->k_rope.data ? p->k_rope.shape[p->k_rope.rank - 1] : 0;
}

/* ---- the latent -------------------------------------------------------------------- */

/* The matrix x [1,rows,heads width + ..] from column `first` on as heads [heads,rows,width]. */
static Tensor heads_of(Tensor x, int64_t first, int64_t heads, int64_t width)
{
    Tensor y = tensor_columns(x, first, width);

    y.shape[0] = heads;
    y.stride[0] = width;
    return y;
}

static void turn(Run *r, Latent *l)
{
    AttendInput turned;

    if (!l->rope || !r->spec.position)
        return;
    turned = run_attend_input_of(r, l->q_rope, l->r, r->v, 0, NULL);
    l->q_rope = turned.q;
    l->r = turned.k;
}

static void take(Run *r, const Params *p, Latent *l)
{
    int64_t width = r->d - l->rope;

    l->c = layer_given(r, "latent", p->latent, 2, (int64_t[]){ r->m, l->rank });
    l->c = tensor_with_rank(l->c, 3);
    l->w_uk = run_param_given(r, "w_uk", p->w_uk, DT_F32, 3, (int64_t[]){ r->h, l->rank, width });
    l->w_uv = run_param_given(r, "w_uv", p->w_uv, DT_F32, 3, (int64_t[]){ r->h, l->rank, r->e });
    if (!l->rope)
        return;
    l->r = layer_given(r, "k_rope", p->k_rope, 2, (int64_t[]){ r->m, l->rope });
    l->r = tensor_with_rank(l->r, 3);
    l->q_rope = dense_columns(r, r->q, width, l->rope);
    l->q = dense_columns(r, r->q, 0, width);
    turn(r, l);
}

/* Its making stands for training: it is no part of the mechanism's work. */
static void make(Run *r, Latent *l)
{
    int64_t  keys = r->k.shape[0], values = r->v.shape[0], at = keys * r->d;
    Tensor   all = run_tensor3(r, DT_F64, 1, r->m, token_width(r));
    DenseSvd svd;
    Tensor   right;

    l->c = run_tensor3(r, DT_F32, 1, r->m, l->rank);
    l->w_uk = run_tensor3(r, DT_F32, keys, l->rank, r->d);
    l->w_uv = run_tensor3(r, DT_F32, values, l->rank, r->e);
    run_stage(r, "compress");
    run_prepare(r, true);
    op_entries(r, r->k, ENTRY_CAST, 0, heads_of(all, 0, keys, r->d));
    op_entries(r, r->v, ENTRY_CAST, 0, heads_of(all, at, values, r->e));
    svd = dense_svd(r, all, l->rank);
    l->values = svd.values;
    right = tensor_rows(svd.right, 0, l->rank);
    op_entries(r, tensor_columns(svd.turned, 0, l->rank), ENTRY_CAST, 0, l->c);
    op_entries(r, heads_of(right, 0, keys, r->d), ENTRY_CAST, 0, l->w_uk);
    op_entries(r, heads_of(right, at, values, r->e), ENTRY_CAST, 0, l->w_uv);
    run_prepare(r, false);
}

static Latent latent_of(Run *r, const Params *p)
{
    Latent l = { .rank = rank_of(r, p), .rope = rope_of(p), .q = r->q };

    note_rank(r, p, l.rank);
    if (p->latent.data)
        take(r, p, &l);
    else
        make(r, &l);
    if (r->spec.position && !l.rope)
        run_warn(r, "position=%s turns k_rope and what meets it in q; without k_rope, nothing",
                 r->spec.position->id);
    return l;
}

/* ---- both forms -------------------------------------------------------------------- */

/* f32 [h,.,.] of a b, in double and rounded at the end; turned: of a b^T. */
static Tensor product(Run *r, Tensor a, Tensor b, bool turned, FlopClass charge)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, a.shape[1], b.shape[turned ? 1 : 2]);

    op_gemm(r, a, false, b, turned, 1, 0, y, charge);
    return dense_rounded(r, y);
}

/* a and b side by side, or a where b is absent. */
static Tensor beside(Run *r, Tensor a, Tensor b)
{
    int64_t width = a.shape[2];
    Tensor  y;

    if (!b.data)
        return a;
    y = run_tensor3(r, DT_F32, max_i64(a.shape[0], b.shape[0]), a.shape[1], width + b.shape[2]);
    op_entries(r, a, ENTRY_CAST, 0, tensor_columns(y, 0, width));
    op_entries(r, b, ENTRY_CAST, 0, tensor_columns(y, width, b.shape[2]));
    return y;
}

/* Keys and values as every head has them. */
static AttendInput plain(Run *r, const Params *p, const Latent *l, Tensor up, FlopClass charge)
{
    return (AttendInput){ .q = beside(r, l->q, l->q_rope), .k = beside(r, up, l->r),
                          .v = product(r, l->c, l->w_uv, false, charge),
                          .scale = run_scale(r, p->scale), .softcap = r->softcap };
}

/* Queries that meet latents themselves. */
static AttendInput absorbed(Run *r, const Params *p, const Latent *l)
{
    Tensor q = product(r, l->q, l->w_uk, true, FLOP_OVERHEAD);

    return (AttendInput){ .q = beside(r, q, l->q_rope), .k = beside(r, l->c, l->r), .v = l->c,
                          .scale = run_scale(r, p->scale), .softcap = r->softcap };
}

/* ---- views and figures ----------------------------------------------------------------- */

/* weights @ c, which only the absorbed form has made. */
static Tensor mixed_latents(Run *r, const Latent *l, AttendInput in, const Pattern *cells)
{
    AttendResult found;

    in.v = l->c;
    r->again = true; /* what only a view needs counts nothing */
    found = op_attend(r, &in, cells);
    r->again = false;
    return found.out;
}

static void show_values(Run *r, const Latent *l)
{
    Tensor shown = tensor_with_rank(l->values, 3);

    view_stage(r, "compress", -1);
    shown = tensor_with_rank(dense_rounded(r, shown), 1);
    view_tensor(r, "singular_values", VIEW_TENSOR, shown, "", "number");
    view_guide(r, "singular_values", true, (double)l->rank, "latent");
    view_stage(r, NULL, -1);
}

static void figures(Run *r, const Latent *l)
{
    double width = (double)token_width(r), all = 0, lost = 0;

    run_figure_int(r, "latent", l->rank);
    run_figure_int(r, "kv_bytes_full", r->cache_bytes * token_width(r));
    run_figure(r, "kv_ratio", (double)(l->rank + l->rope) / width);
    for (int64_t t = 0; l->values.data && !run_failed(r) && t < l->values.shape[0]; t++) {
        double s = tensor_f64(&l->values)[t];

        all += s * s;
        lost += t < l->rank ? 0 : s * s;
    }
    if (l->values.data)
        run_figure(r, "rank_error", all > 0 ? sqrt(lost / all) : 0);
}

/* mixed: weights @ c, or absent. */
static void show(Run *r, const Params *p, const Latent *l, const Pattern *cells,
                 const AttendInput *in, Tensor mixed)
{
    AttendInput shown = *in;
    Tensor      up;

    if (!run_wants_views(r))
        return;
    up = product(r, l->c, l->w_uk, false, FLOP_NONE);
    if (p->form == FORM_ABSORBED)
        shown = plain(r, p, l, up, FLOP_NONE);
    else if (p->latent.data)
        mixed = mixed_latents(r, l, shown, cells);
    view_tensor(r, "k_up", VIEW_VECTORS, up, "key", "feature");
    view_tensor(r, "v_up", VIEW_VECTORS, shown.v, "key", "feature");
    if (p->latent.data)
        view_tensor(r, "latent_output", VIEW_VECTORS, mixed, "query", "latent feature");
    else
        show_values(r, l);
    replay_offer_attend(r, &shown, cells);
}

/* ---- the run --------------------------------------------------------------------------- */

static void mla_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Latent        l = latent_of(r, p);
    Pattern      *cells = run_allowed_cells(r);
    AttendInput   in;
    AttendResult  result;

    if (!p->latent.data)
        run_looks_ahead(r, "without a latent= the latents are fitted to all keys and values");
    run_stage(r, p->form == FORM_PLAIN ? "make keys and values" : "absorb");
    if (p->form == FORM_PLAIN)
        in = plain(r, p, &l, product(r, l.c, l.w_uk, false, FLOP_OVERHEAD), FLOP_OVERHEAD);
    else
        in = absorbed(r, p, &l);
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    view_pattern(r, cells, false);
    view_attention(r, cells, &in, result.lse);
    r->out = result.out;
    if (p->form == FORM_ABSORBED) {
        run_stage(r, "make outputs");
        r->out = product(r, result.out, l.w_uv, false, FLOP_OVERHEAD);
    }
    show(r, p, &l, cells, &in, result.out);
    figures(r, &l);
    if (!p->latent.data)
        run_relative_error(r, &(AttendInput){ .q = r->q, .k = r->k, .v = r->v, .scale = in.scale,
                                              .softcap = r->softcap });
}

static void check_widths(Run *r, const Params *p)
{
    int64_t rank = rank_of(r, p), rope = rope_of(p), keys = p->w_uk.shape[p->w_uk.rank - 1];

    if (p->rank && p->rank != rank)
        run_fail(r, ERR_PARAM, "mla: rank is %lld, but latent has %lld numbers for each token: "
                 "leave rank out", (long long)p->rank, (long long)rank);
    else if (keys + rope != r->d)
        run_fail(r, ERR_PARAM, "mla: w_uk makes %lld numbers of a key and k_rope holds %lld, but q "
                 "has head size %lld: their sum must be that", (long long)keys, (long long)rope,
                 (long long)r->d);
}

static void mla_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int           given = !!p->latent.data + !!p->w_uk.data + !!p->w_uv.data;

    if (given && given < 3)
        run_fail(r, ERR_PARAM, "mla: %s%s%smissing; give latent, w_uk and w_uv together, or none "
                 "of them", p->latent.data ? "" : "latent ", p->w_uk.data ? "" : "w_uk ",
                 p->w_uv.data ? "" : "w_uv ");
    else if (p->k_rope.data && !given)
        run_fail(r, ERR_PARAM, "mla: k_rope needs latent, w_uk and w_uv: a latent that is made "
                 "here holds whole keys");
    else if (given)
        check_widths(r, p);
}

/* Keys, and values, that a cell of the form multiplies. */
static void widths_of(const Run *r, const Params *p, double *score, double *mix)
{
    double rank = (double)rank_of(r, p);

    *score = p->form == FORM_PLAIN ? (double)r->d : rank + (double)rope_of(p);
    *mix = p->form == FORM_PLAIN ? (double)r->e : rank;
}

/* Of keys and values of so many tokens, or of their queries and results. */
static double projecting(const Run *r, const Params *p, double tokens)
{
    return 2 * (double)r->h * tokens * (double)rank_of(r, p) *
           (double)(r->d - rope_of(p) + r->e);
}

static Flops mla_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        n = (double)r->n, m = (double)r->m, score, mix;
    double        cells = (double)r->h * (r->causal ? n * m - n * (n - 1) / 2 : n * m);

    widths_of(r, p, &score, &mix);
    return (Flops){ .score = 2 * score * cells, .mix = 2 * mix * cells,
                    .overhead = decode_cell(r) * cells +
                                projecting(r, p, p->form == FORM_PLAIN ? m : n) };
}

/* The plain form makes the keys and values of every token again. */
static DecodeCost mla_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        token = (double)(r->cache_bytes * (rank_of(r, p) + rope_of(p)));
    double        n = (double)r->m, score, mix;

    widths_of(r, p, &score, &mix);
    return (DecodeCost){ .state_bytes = token * n, .kv_bytes_per_token = token,
                         .step_bytes = token * n,
                         .decode_flops = (double)r->h * n * (2 * (score + mix) + decode_cell(r)) +
                                         projecting(r, p, p->form == FORM_PLAIN ? n : 1) };
}

static const StageNote notes[] = {
    { "compress",
      "All keys and values of a token, side by side, become one short vector: the best of its "
      "size, by singular values.  It stands for what training would find." },
    { "absorb",
      "Each head's query is multiplied by what would have made its keys, so that it can meet the "
      "latents themselves." },
    { "make keys and values",
      "Every head makes its keys and values of all latents." },
    { "attend",
      "Each query weighs the tokens as exact attention does: the keys are there, in one form or "
      "the other." },
    { "make outputs",
      "The latents are mixed already; each head turns the mixture of a query into its output." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights, which act on v_up"),
    VIEW("k_up", VIEW_VECTORS, "the keys that latents stand for"),
    VIEW("v_up", VIEW_VECTORS, "the values that latents stand for"),
    VIEW("latent_output", VIEW_VECTORS, "the latents mixed by the weights, with a given latent",
         .maybe = true),
    VIEW("singular_values", VIEW_TENSOR, "of all keys and values side by side, without a given "
         "latent", .maybe = true,
         .curve = { .x = "number", .y = "singular value", .first = 1 }),
    VIEW_PROMISE_END
};

const Mechanism mech_mla = {
    .id = "mla",
    .title = "Multi-head latent attention",
    .authors = "DeepSeek-AI",
    .year = 2024,
    .arxiv = "2405.04434",
    .source = "DeepSeek-V2, section 2.1; V3: 2412.19437.  A latent that is made here is not "
              "theirs: they train it",
    .formula = "k = c w_uk,  v = c w_uv          c: one latent of each token for all heads\n"
               "S[i,j] = (qn_i . k_j + qr_i . r_j) / sqrt(d),  output = softmax(S) v",
    .problem = "A decoder keeps the keys and values of all heads of every token, and reading them "
               "is what a step costs.",
    .idea = "The keys and values of all heads are made of one short latent vector for each token, "
            "and only that is kept; a small key beside it carries the position.",
    .price = "Keys and values have the rank of the latent, and every step projects queries and "
             "results of each head.",
    .lesson = "not-softmax",
    .teaches = "One narrow strip feeds all heads.  The singular values of the tokens' keys and "
               "values show what the cut leaves out, and kv_ratio what it saves.",
    .classes = CLASS_LR,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n (dc + dr)) cache",
    .claim_decode = "yes: keeps dc + dr numbers for each token",
    .claim_exponent = 2,
    .causal = true,
    .at_end = AT_END_OWN,
    .positions = POSITION_TURN,
    .views = views,
    .values = "v_up",
    .notes = notes,
    .kept_stage = "compress",
    .size = "rank",
    .params = params,
    .params_size = sizeof(Params),
    .check = mla_check,
    .run = mla_run,
    .flops = mla_flops,
    .decode = mla_decode,
};
