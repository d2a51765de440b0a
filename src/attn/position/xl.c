/* xl.c -- relative terms of Transformer-XL.
 *
 *     S[i,j] = s [ (q_i + u) . k_j + (q_i + v) . r_{p_i - j} ],  r_t = R_t W_h
 *
 * which is the paper's four terms: (a) q.k, (b) q.r, (c) u.k, (d) v.r.  R_t is
 * the sinusoid of the signed distance (all sines first, as the authors' code
 * has it); for keys ahead the distance is negative and the sines change sign.
 * r has one row per distance, so the shift of rows is an index, no n x n x d
 * tensor exists.
 */
#include "attn/position/terms.h"

#define DEVIATION 0.02

typedef struct Params {
    Tensor pos_u, pos_v, pos_proj, pos_rel;
    double pos_base;
    int    pos_layout;
} Params;

enum { LAYOUT_CONCAT, LAYOUT_INTERLEAVED };
static const char *const layouts[] = { "concat", "interleaved", NULL };

static const Param params[] = {
    PARAM_TENSOR(Params, pos_u, "[h,d]", "N(0, 0.02^2)", "added to queries that meet keys"),
    PARAM_TENSOR(Params, pos_v, "[h,d]", "N(0, 0.02^2)", "added to queries that meet distances"),
    PARAM_TENSOR(Params, pos_proj, "[h,D,d]", "N(0, 0.02^2), D = h d",
                 "projection of the sinusoids of width D"),
    PARAM_TENSOR(Params, pos_rel, "[h,n+m-1,d]", NULL,
                 "ready vectors of the distances, row i - j + m - 1; replaces pos_proj"),
    PARAM_POSITIVE(Params, pos_base, 10000, "wavelengths grow from 2 pi to 2 pi times this"),
    PARAM_ENUM(Params, pos_layout, LAYOUT_CONCAT, layouts,
               "all sines first, or sines and cosines in turn"),
    PARAM_END,
};

/* q [h,n,d] plus one vector [h,d] per head. */
static Tensor shifted(Run *r, Tensor q, const char *name, Tensor given)
{
    int64_t shape[] = { q.shape[0], q.shape[2] };
    Tensor  by = run_param(r, name, given, DT_F32, 2, shape,
                           (Init){ .kind = INIT_NORMAL, .a = DEVIATION });

    return position_added(r, q, tensor_of(DT_F32, 3, (int64_t[]){ by.shape[0], 1, by.shape[1] },
                                          by.data));
}

/* r [h,n+m-1,d]: sinusoids of all distances times the projection. */
static Tensor projected(Run *r, const Params *p, const AttendInput *in)
{
    int64_t h = in->q.shape[0], d = in->q.shape[2], entries = position_entries(in);
    Tensor  given = p->pos_proj, proj, sines, table;
    int64_t width = tensor_given(&given) && given.rank >= 2 ? given.shape[given.rank - 2] : h * d;

    proj = run_param(r, "pos_proj", given, DT_F32, 3, (int64_t[]){ h, width, d },
                     (Init){ .kind = INIT_NORMAL, .a = DEVIATION });
    sines = position_sinusoids(r, &(Sinusoids){ .rows = entries, .width = width,
                                                .first = position_distance(r, in, 0),
                                                .base = p->pos_base, .amplitude = 1,
                                                .concat = p->pos_layout == LAYOUT_CONCAT });
    table = run_tensor3(r, DT_F32, proj.shape[0], entries, d);
    op_gemm(r, sines, false, proj, false, 1, 0, table, FLOP_POSITION);
    return table;
}

/* The paper's four terms; q is the query as it came. */
static void show_terms(Run *r, const AttendInput *in, Tensor q)
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

/* One row of the table a distance. */
static int64_t row_of(const void *first, int64_t distance)
{
    return distance - *(const int64_t *)first;
}

static void xl_apply(Run *r, const void *opaque, AttendInput *in)
{
    const Params *p = opaque;
    int64_t       h = in->q.shape[0], d = in->q.shape[2], entries = position_entries(in);
    int64_t       first = position_distance(r, in, 0);
    int32_t      *index = position_index(r, in, row_of, &first);
    Tensor        q = in->q;

    in->q = shifted(r, q, "pos_u", p->pos_u);
    in->row.side = shifted(r, q, "pos_v", p->pos_v);
    in->row.index = index;
    in->row.table = tensor_given(&p->pos_rel)
                        ? run_param_given(r, "pos_rel", p->pos_rel, DT_F32, 3,
                                          (int64_t[]){ h, entries, d })
                        : projected(r, p, in);
    in->cell_flops = 2 * (double)d;
    show_terms(r, in, q);
}

const Position position_xl = {
    .id = "xl",
    .title = "Transformer-XL relative terms",
    .source = "Dai et al. 2019, arXiv:1901.02860, section 3.3; mem_transformer.py of the authors",
    .help = "scores gain a product with the distance and two learned vectors",
    .views = "position_qk, position_qr, position_uk, position_vr: the terms of the scores",
    .class_ = POSITION_BIAS,
    .params = params,
    .params_size = sizeof(Params),
    .apply = xl_apply,
};
