/* content.c -- positions by content and distance: xl, disentangled. */
#include <math.h>

#include "attn/position/terms.h"
#include "attn/run/position.h"

/* Relative terms of Transformer-XL.
 *
 *     S[i,j] = s [ (q_i + u) . k_j + (q_i + v) . r_{p_i - j} ],  r_t = R_t W_h
 *
 * which is the paper's four terms: (a) q.k, (b) q.r, (c) u.k, (d) v.r.  R_t is
 * the sinusoid of the signed distance (all sines first, as the authors' code
 * has it); for keys ahead the distance is negative and the sines change sign.
 * r has one row per distance that a cell needs, which an index finds: there is no n x n x d tensor.
 * A window of w keys has w distances, where all cells have n + m - 1.  Views show masked cells too,
 * so a run with views makes the rows of all distances; it charges those that are needed.
 */

#define DEVIATION 0.02

typedef struct XlParams {
    Tensor pos_u, pos_v, pos_proj, pos_rel;
    double pos_base;
    int    pos_layout;
} XlParams;

enum { LAYOUT_CONCAT, LAYOUT_INTERLEAVED };
static const char *const layouts[] = { "concat", "interleaved", NULL };

static const Param xl_params[] = {
    PARAM_TENSOR(XlParams, pos_u, "[h,d]", "N(0, 0.02^2)", "added to queries that meet keys"),
    PARAM_TENSOR(XlParams, pos_v, "[h,d]", "N(0, 0.02^2)", "added to queries that meet distances"),
    PARAM_TENSOR(XlParams, pos_proj, "[h,D,d]", "N(0, 0.02^2), D = h d",
                 "projection of the sinusoids of width D"),
    PARAM_TENSOR(XlParams, pos_rel, "[h,n+m-1,d]", NULL,
                 "ready vectors of the distances, row i - j + m - 1; replaces pos_proj"),
    PARAM_POSITIVE(XlParams, pos_base, 10000, "wavelengths grow from 2 pi to 2 pi times this"),
    PARAM_ENUM(XlParams, pos_layout, LAYOUT_CONCAT, layouts,
               "all sines first, or sines and cosines in turn"),
    PARAM_END,
};

/* Row of a distance in a table that has one row per distance. */
static int64_t content_row_of(const void *first, int64_t distance)
{
    return distance - *(const int64_t *)first;
}

/* q [h,n,d] plus one vector [h,d] per head. */
static Tensor shifted(Run *r, Tensor q, const char *name, Tensor given)
{
    int64_t shape[] = { q.shape[0], q.shape[2] };
    Tensor  by = run_param(r, name, given, DT_F32, 2, shape,
                           (Init){ .kind = INIT_NORMAL, .a = DEVIATION });

    return position_added(r, q, tensor_of(DT_F32, 3, (int64_t[]){ by.shape[0], 1, by.shape[1] },
                                          by.data));
}

/* 2 h D d FLOPs for each distance that is needed, whatever else a view shows. */
static void charge_projection(Run *r, Tensor proj, int64_t distances)
{
    double width = (double)proj.shape[1], d = (double)proj.shape[2], count = (double)distances;
    double heads = (double)proj.shape[0];

    op_charge(r, FLOP_POSITION, 2 * heads * width * d * count);
    op_traffic(r, 4 * (count * width + (double)tensor_count(&proj)), 4 * heads * count * d);
}

/* r [h,distances,d]: sinusoids of the distances times the projection; *index: row of each entry. */
static Tensor projected(Run *r, const XlParams *p, const AttendInput *in, int32_t **index)
{
    int64_t   h = in->q.shape[0], d = in->q.shape[2], entries = position_entries(in);
    bool      all = run_wants_views(r);
    Distances needed = position_distances(r, in);
    int64_t   rows = all ? entries : needed.count, first = position_distance(r, in, 0);
    Tensor    given = p->pos_proj, proj, sines, table;
    int64_t   width = tensor_given(&given) && given.rank >= 2 ? given.shape[given.rank - 2] : h * d;

    proj = run_param(r, "pos_proj", given, DT_F32, 3, (int64_t[]){ h, width, d },
                     (Init){ .kind = INIT_NORMAL, .a = DEVIATION });
    sines = position_sinusoids(r, &(Sinusoids){ .rows = rows, .width = width, .first = first,
                                                .at = all ? NULL : needed.entry,
                                                .base = p->pos_base, .amplitude = 1,
                                                .concat = p->pos_layout == LAYOUT_CONCAT });
    table = run_tensor3(r, DT_F32, proj.shape[0], rows, d);
    op_gemm(r, sines, false, proj, false, 1, 0, table, FLOP_NONE);
    charge_projection(r, proj, needed.none ? 0 : needed.count);
    *index = all ? position_index(r, in, content_row_of, &first) : needed.row;
    return table;
}

/* Views of the paper's four terms; q: queries without u or v. */
static void xl_show_terms(Run *r, const AttendInput *in, Tensor q)
{
    AttendInput plain = { .q = q, .k = in->k, .scale = in->scale }, rel = plain, other = plain;

    if (run_failed(r))
        return;
    position_show_term(r, "position_qk", &plain, NULL);
    rel.row = in->row;
    rel.row.side = q;
    position_show_term(r, "position_qr", &rel, &plain);
    other.q = in->q;
    position_show_term(r, "position_uk", &other, &plain);
    other = plain;
    other.row = in->row;
    position_show_term(r, "position_vr", &other, &rel);
}

static void xl_apply(Run *r, const void *opaque, AttendInput *in)
{
    const XlParams *p = opaque;
    int64_t         h = in->q.shape[0], d = in->q.shape[2], entries = position_entries(in);
    int64_t         first = position_distance(r, in, 0);
    int32_t        *index;
    Tensor          q = in->q;

    in->q = shifted(r, q, "pos_u", p->pos_u);
    in->row.side = shifted(r, q, "pos_v", p->pos_v);
    if (tensor_given(&p->pos_rel)) {
        index = position_index(r, in, content_row_of, &first);
        in->row.table = run_param_given(r, "pos_rel", p->pos_rel, DT_F32, 3,
                                        (int64_t[]){ h, entries, d });
    } else {
        in->row.table = projected(r, p, in, &index);
    }
    in->row.index = index;
    in->cell_flops = 2 * (double)d;
    xl_show_terms(r, in, q);
}

const Position position_xl = {
    .id = "xl",
    .name = "Transformer-XL terms",
    .title = "Transformer-XL relative terms",
    .source = "Dai et al. 2019, arXiv:1901.02860, section 3.3; mem_transformer.py of the authors",
    .help = "scores gain a product with the distance and two learned vectors",
    .views = "position_qk, position_qr, position_uk, position_vr: the terms of the scores",
    .class_ = POSITION_BIAS,
    .params = xl_params,
    .params_size = sizeof(XlParams),
    .apply = xl_apply,
};

/* DeBERTa's content-to-position and position-to-content terms.
 *
 *     delta(a,b) = clamp(a - b + k, 0, 2k-1)
 *     S = s [ q_i . k_j
 *             + q_i . Kr[delta(p_i,j)]                       c2p
 *             + k_j . Qr[delta(j,p_i)]                       p2c
 *             + Qr[delta(j,p_i)] . Kr[delta(p_i,j)] ]        p2p
 *
 * with only the listed terms, and 1/sqrt(d (1 + terms)) as the default scale.
 * The paper reads the p2c table at delta(j,p_i); the released code at
 * delta(p_i,j): pos_p2c_index.  pos_max_distance > 0 makes distances
 * logarithmic beyond k/2, as versions 2 and 3 of the model do.
 */

#define K_MAX 1000000000 /* 2k must fit an int32 index */

typedef struct DisentangledParams {
    int64_t  pos_k, pos_max_distance;
    Tensor   pos_key, pos_query;
    unsigned pos_terms;
    int      pos_p2c_index;
} DisentangledParams;

enum { TERM_C2P = 1, TERM_P2C = 2, TERM_P2P = 4 };
enum { INDEX_PAPER, INDEX_CODE };
static const char *const terms[] = { "c2p", "p2c", "p2p", NULL };
static const char *const indices[] = { "paper", "code", NULL };

static const Param disentangled_params[] = {
    PARAM_INT(DisentangledParams, pos_k, 0, 0, K_MAX,
              "maximum relative distance; 0: the sequence's length"),
    PARAM_TENSOR(DisentangledParams, pos_key, "[h,2k,d] or [2k,d]", "N(0, 0.02^2)",
                 "projected keys of the relative distances"),
    PARAM_TENSOR(DisentangledParams, pos_query, "[h,2k,d] or [2k,d]", "N(0, 0.02^2)",
                 "projected queries of the relative distances"),
    PARAM_FLAGS(DisentangledParams, pos_terms, TERM_C2P | TERM_P2C, terms,
              "which terms the score gains"),
    PARAM_ENUM(DisentangledParams, pos_p2c_index, INDEX_PAPER, indices,
               "row of pos_query: the paper's, or the released code's"),
    PARAM_INT(DisentangledParams, pos_max_distance, 0, 0, PARAM_COUNT_MAX,
              "logarithmic distances up to this one; 0: off"),
    PARAM_END,
};

static int term_count(unsigned listed)
{
    return __builtin_popcount(listed);
}

static double disentangled_scale(const void *opaque, int64_t d)
{
    const DisentangledParams *p = opaque;

    return 1 / sqrt((double)d * (1 + term_count(p->pos_terms)));
}

/* Logarithmic beyond c = floor(k/2); max = pos_max_distance. */
static int64_t squeezed(int64_t distance, int64_t k, int64_t max)
{
    int64_t x = distance < 0 ? -distance : distance, c = k / 2;

    x = x < max - 1 ? x : max - 1;
    if (x > c)
        x = c + (int64_t)ceil(log((double)x / (double)c) / log((double)(max - 1) / (double)c) *
                              (double)(c - 1) - 1e-9);
    return distance < 0 ? -x : x;
}

/* The row of a table of 2k: delta(p_i, j), or delta(j, p_i). */
typedef struct Delta {
    int64_t k, far; /* far 0: not logarithmic */
    bool    reversed;
} Delta;

static int64_t delta(const void *context, int64_t distance)
{
    const Delta *c = context;
    int64_t      signed_distance = c->reversed ? -distance : distance;
    int64_t      at = c->k + (c->far ? squeezed(signed_distance, c->k, c->far) : signed_distance);

    return at < 0 ? 0 : at > 2 * c->k - 1 ? 2 * c->k - 1 : at;
}

static void content_check(Run *r, const DisentangledParams *p, int64_t k)
{
    if (p->pos_max_distance && (k < 2 || p->pos_max_distance - 1 <= k / 2))
        run_fail(r, ERR_PARAM, "position disentangled: logarithmic distances need pos_k >= 2 and "
                 "pos_max_distance > pos_k/2 + 1, got pos_k=%lld, pos_max_distance=%lld",
                 (long long)k, (long long)p->pos_max_distance);
}

/* An unused table is not drawn, but its shape is checked when it is given. */
static Tensor table(Run *r, const char *name, Tensor given, bool used, const int64_t shape[3])
{
    if (!used && !tensor_given(&given))
        return (Tensor){ 0 };
    return run_param(r, name, given, DT_F32, 3, shape,
                     (Init){ .kind = INIT_NORMAL, .a = DEVIATION });
}

/* k of a given table [h,2k,d] or [2k,d]; 0: no table is given. */
static int64_t content_rows_of(const Tensor *given)
{
    return tensor_given(given) && given->rank >= 2 ? given->shape[given->rank - 2] / 2 : 0;
}

/* k: pos_k; else that of a given table where it equals n or m; else the larger of n and m, so that
 * rows decoded alone use the same k as the whole run. */
static int64_t reach_of(const DisentangledParams *p, int64_t n, int64_t m)
{
    int64_t given = content_rows_of(tensor_given(&p->pos_key) ? &p->pos_key : &p->pos_query);
    int64_t longer = n > m ? n : m;

    return p->pos_k ? p->pos_k : given == n || given == m ? given : longer;
}

/* i32 [heads,entries,1]: the list once for each head. */
static Tensor repeated(Run *r, const int32_t *index, int64_t heads, int64_t entries)
{
    Tensor list = run_tensor3(r, DT_I32, heads, entries, 1);

    op_entries(r, tensor_of(DT_I32, 3, (int64_t[]){ 1, entries, 1 }, (void *)(uintptr_t)index),
               ENTRY_CAST, 0, list);
    return list;
}

/* The p2p term depends on the distance alone. */
static void add_p2p(Run *r, AttendInput *in, Tensor kr, const int32_t *at_key, Tensor qr,
                    const int32_t *at_query)
{
    int64_t entries = position_entries(in);
    int64_t heads = kr.shape[0] > qr.shape[0] ? kr.shape[0] : qr.shape[0];
    Tensor  query = repeated(r, at_query, heads, entries), dots;

    query = tensor_of(DT_I32, 2, query.shape, query.data);
    dots = op_pair_dots(r, op_gather(r, qr, query), kr, repeated(r, at_key, heads, entries));
    in->distance = tensor_of(DT_F32, 2, (int64_t[]){ heads, entries }, dots.data);
    in->distance_capped = true;
    op_entries(r, in->distance, ENTRY_SCALE, in->scale, in->distance);
}

/* The terms of the sum one by one, as the paper's figure has them. */
static void disentangled_show_terms(Run *r, const AttendInput *in)
{
    AttendInput plain = { .q = in->q, .k = in->k, .scale = in->scale }, with = plain;

    if (run_failed(r))
        return;
    position_show_term(r, "position_c2c", &plain, NULL);
    with.row = in->row;
    if (tensor_given(&in->row.table))
        position_show_term(r, "position_c2p", &with, &plain);
    with = plain;
    with.col = in->col;
    if (tensor_given(&in->col.table))
        position_show_term(r, "position_p2c", &with, &plain);
    with = plain;
    with.distance = in->distance;
    if (tensor_given(&in->distance))
        position_show_term(r, "position_p2p", &with, &plain);
}

static void disentangled_apply(Run *r, const void *opaque, AttendInput *in)
{
    const DisentangledParams *p = opaque;
    int64_t       h = in->q.shape[0], n = in->q.shape[1], m = in->k.shape[1], d = in->q.shape[2];
    int64_t       k = reach_of(p, n, m);
    int64_t       shape[] = { h, 2 * k, d };
    unsigned      listed = p->pos_terms;
    Tensor        kr, qr;
    int32_t      *forward, *back;

    content_check(r, p, k);
    kr = table(r, "pos_key", p->pos_key, listed & (TERM_C2P | TERM_P2P), shape);
    qr = table(r, "pos_query", p->pos_query, listed & (TERM_P2C | TERM_P2P), shape);
    forward = position_index(r, in, delta, &(Delta){ k, p->pos_max_distance, false });
    back = position_index(r, in, delta, &(Delta){ k, p->pos_max_distance, true });
    if (listed & TERM_C2P)
        in->row = (DistanceTerm){ .side = in->q, .table = kr, .index = forward };
    if (listed & TERM_P2C)
        in->col = (DistanceTerm){ .side = in->k, .table = qr,
                                  .index = p->pos_p2c_index == INDEX_CODE ? forward : back };
    if ((listed & TERM_P2P) && !run_failed(r))
        add_p2p(r, in, kr, forward, qr, back);
    in->cell_flops = term_count(listed);
    disentangled_show_terms(r, in);
    op_charge(r, FLOP_POSITION, 4 * (double)d * (double)h * (double)k *
              ((listed & TERM_C2P ? (double)n : 0) + (listed & TERM_P2C ? (double)m : 0)));
}

const Position position_disentangled = {
    .id = "disentangled",
    .name = "disentangled",
    .title = "Disentangled attention",
    .source = "He et al. 2020 (DeBERTa), arXiv:2006.03654, section 3.1",
    .help = "scores gain products of contents with relative positions",
    .note = "Distances beyond the table count as its ends, as in the authors' current code. "
            "Releases that do not clamp differ there.",
    .views = "position_c2c, position_c2p, position_p2c, position_p2p: the terms of the scores",
    .class_ = POSITION_BIAS,
    .params = disentangled_params,
    .params_size = sizeof(DisentangledParams),
    .apply = disentangled_apply,
    .default_scale = disentangled_scale,
};
