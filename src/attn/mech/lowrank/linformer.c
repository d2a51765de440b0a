/* linformer.c -- keys and values projected along the sequence to a fixed length.
 *
 * With E, F [k,m] that mix positions, not features:
 *
 *     K' = E K,  V' = F V                      (k x d, k x e)
 *     P = softmax(scale Q K'^T)                (n x k)
 *     output = P V' = (P F) V
 *
 * so the n x m matrix P F has rank at most k.  It exists only where somebody
 * looks.  Each projected row mixes all positions: there is no causal form.
 * (Wang et al. 2020, section 4.)
 */
#include "attn/mech/lowrank/latents.h"
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

enum { SHARING_HEADWISE, SHARING_NONE, SHARING_KV, SHARING_LAYER };
static const char *const sharings[] = { "headwise", "none", "kv", "layer", NULL };
enum { PROJECTION_LEARNED, PROJECTION_GAUSSIAN, PROJECTION_MEAN_POOL };
static const char *const projections[] = { "learned", "gaussian", "mean-pool", NULL };

typedef struct Params {
    int64_t k;
    int     sharing, projection;
    double  scale;
    Tensor  e_proj, f_proj;
} Params;

typedef struct Linformer {
    Tensor e, f; /* [1 or h,k,m] */
    bool   e_drawn, f_drawn;
} Linformer;

static void linformer_project(Run *r, const Params *p, Linformer *l);
static Tensor linformer_projection(Run *r, const Params *p, const char *name, Tensor given,
                                   Rng *rng);
static int64_t projected_length(const Run *r, const Params *p);
static bool one_tensor(const Params *p);
static void fill_means(Tensor t);
static LatentRead read_projected(Run *r, const Linformer *l, double scale, Tensor *k, Tensor *v);
static void linformer_show_projected(Run *r, Tensor k, Tensor v);
static void linformer_show(Run *r, const Linformer *l, const LatentRead *read);
static void show_projections(Run *r, const Linformer *l);
static void read_projection(const View *view, int64_t plane, int64_t i, int64_t start,
                            int64_t count, int64_t step, float *out);
static void read_right(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out);
static void check_rank(Run *r, const Params *p, const char *name, const Tensor *t);

static const Param params[] = {
    PARAM_INT(Params, k, 256, 1, INT32_MAX, "length keys and values are projected to; a given "
              "e_proj has its own"),
    PARAM_ENUM(Params, sharing, SHARING_HEADWISE, sharings, "one E and F for all heads, E and F "
               "per head, or one tensor as both (layer: the same in every layer too)"),
    PARAM_ENUM(Params, projection, PROJECTION_LEARNED, projections, "what stands in for a tensor "
               "that is not given: the trained layer's start, a random matrix, or means of runs"),
    PARAM_TENSOR(Params, e_proj, "[k,>=m], or [h,k,>=m] with sharing=none", "by projection",
                 "E, the keys' projection"),
    PARAM_TENSOR(Params, f_proj, "[k,>=m], or [h,k,>=m] with sharing=none", "by projection",
                 "F, the values' projection; not read with sharing=kv or layer, or mean-pool"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

static void linformer_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Linformer    *l = run_alloc(r, 1, sizeof(*l)); /* views read it later */
    Tensor        k, v;
    LatentRead    read;

    if (!l)
        return;
    run_stage(r, "projections");
    linformer_project(r, p, l);
    run_stage(r, "project keys and values");
    read = read_projected(r, l, run_scale(r, p->scale), &k, &v);
    if (run_failed(r))
        return;
    view_stage(r, "project keys and values", -1);
    linformer_show_projected(r, k, v);
    view_stage(r, NULL, -1);
    r->out = read.out;
    linformer_show(r, l, &read);
}

static void linformer_project(Run *r, const Params *p, Linformer *l)
{
    Rng rng = run_rng(r, "projection");

    l->e = linformer_projection(r, p, "e_proj", p->e_proj, &rng);
    l->f = one_tensor(p) ? l->e : linformer_projection(r, p, "f_proj", p->f_proj, &rng);
    l->e_drawn = !p->e_proj.data && p->projection != PROJECTION_MEAN_POOL;
    l->f_drawn = one_tensor(p) ? l->e_drawn : !p->f_proj.data;
    run_size(r, "k", projected_length(r, p));
    if (l->e.shape[1] > r->m)
        run_warn(r, "linformer: k=%lld is more than the m=%lld keys: nothing is gained",
                 (long long)l->e.shape[1], (long long)r->m);
}

/* The given tensor, or one made as `projection` says; E comes before F in the stream. */
static Tensor linformer_projection(Run *r, const Params *p, const char *name, Tensor given,
                                   Rng *rng)
{
    int64_t heads = p->sharing == SHARING_NONE ? r->h : 1;
    int64_t shape[3] = { heads, projected_length(r, p), r->m };
    double  k = (double)shape[1];
    Init    learned = { INIT_GLOROT, 2 * (k + (double)r->m) }; /* gain 1/sqrt(2) */
    Init    gaussian = { INIT_NORMAL, 1 / sqrt(k) };
    Tensor  t;

    if (given.data)
        return run_param_cut(r, name, given, 3, shape, 4, NULL);
    t = run_tensor3(r, DT_F32, heads, shape[1], r->m);
    if (!t.data)
        return t;
    if (p->projection == PROJECTION_MEAN_POOL) {
        fill_means(t);
    } else {
        run_draw(r, rng, p->projection == PROJECTION_GAUSSIAN ? gaussian : learned, t);
        run_origin(r, name, ORIGIN_DRAWN);
    }
    return t;
}

static int64_t projected_length(const Run *r, const Params *p)
{
    const Tensor *given = p->e_proj.data ? &p->e_proj
                          : p->f_proj.data && !one_tensor(p) ? &p->f_proj : NULL;

    if (given && given->rank >= 2)
        return given->shape[given->rank - 2];
    return p->projection == PROJECTION_MEAN_POOL && p->k > r->m ? r->m : p->k;
}

static bool one_tensor(const Params *p)
{
    return p->sharing == SHARING_KV || p->sharing == SHARING_LAYER ||
           p->projection == PROJECTION_MEAN_POOL;
}

/* Row i averages run i of the positions. */
static void fill_means(Tensor t)
{
    int64_t k = t.shape[1], m = t.shape[2];

    memset(t.data, 0, (size_t)tensor_bytes(&t));
    for (int64_t row = 0; row < t.shape[0] * k; row++) {
        int64_t first = segment_start(m, k, row % k), end = segment_start(m, k, row % k + 1);

        for (int64_t j = first; j < end; j++)
            tensor_f32(&t)[row * m + j] = (float)(1 / (double)(end - first));
    }
}

/* Reads the projected keys and values, [h,k,.], sums over all positions.  Float pieces are
 * enough for these unless the softmax is steep: then they are made once more, in double. */
static LatentRead read_projected(Run *r, const Linformer *l, double scale, Tensor *k, Tensor *v)
{
    Tensor wide_k = run_tensor3(r, DT_F64, r->h, l->e.shape[1], r->d);
    Tensor wide_v = run_tensor3(r, DT_F64, r->h, l->f.shape[1], r->e);

    op_gemm_long(r, l->e, r->k, 1, wide_k, FLOP_OVERHEAD);
    op_gemm_long(r, l->f, r->v, 1, wide_v, FLOP_OVERHEAD);
    *k = run_failed(r) ? wide_k : dense_rounded(r, wide_k);
    *v = run_failed(r) ? wide_v : dense_rounded(r, wide_v);
    if (run_failed(r))
        return (LatentRead){ .lse = { .rank = 0 } };
    if (!latents_steep(r, r->q, *k, *v, scale)) {
        run_stage(r, "scores, softmax, mix");
        return latents_read_float(r, r->q, *k, *v, scale);
    }
    op_gemm(r, l->e, false, r->k, false, 1, 0, wide_k, FLOP_APART);
    op_gemm(r, l->f, false, r->v, false, 1, 0, wide_v, FLOP_APART);
    *v = dense_rounded(r, wide_v);
    run_stage(r, "scores, softmax, mix");
    return latents_read_exact(r, r->q, wide_k, *v, scale);
}

static void linformer_show_projected(Run *r, Tensor k, Tensor v)
{
    if (!run_wants_views(r) || run_failed(r))
        return;
    view_tensor(r, "projected_keys", VIEW_VECTORS, k, "slot", "feature");
    view_tensor(r, "projected_values", VIEW_VECTORS, v, "slot", "feature");
}

/* ---- views ------------------------------------------------------------------ */

static void linformer_show(Run *r, const Linformer *l, const LatentRead *read)
{
    Pattern *cells;
    Tensor   p;
    View    *left, *weights;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    p = latents_weights(r, read);
    left = implicit_factor(r, "factor_left", VIEW_WEIGHTS, p, "query", "slot");
    view_stage(r, "projections", -1);
    show_projections(r, l);
    view_stage(r, NULL, -1);
    implicit_connectivity(r, cells);
    weights = implicit_weights(r, (Implicit){ .left = p, .right = dense_turned(r, l->f) },
                               VIEW_SIGNED, cells);
    if (left && l->e_drawn)
        left->origin = implicit_origin(r);
    if (weights && (l->e_drawn || l->f_drawn))
        weights->origin = implicit_origin(r);
    run_rank(r, l->e.shape[1], "k");
    run_figure_int(r, "rank_bound", l->e.shape[1] < r->m ? l->e.shape[1] : r->m);
}

static void show_projections(Run *r, const Linformer *l)
{
    int64_t k = l->e.shape[1];
    View   *both = view_add(r, "projection", VIEW_SIGNED, DT_F32, 4,
                            (int64_t[]){ r->h, 2, k, r->m });
    View   *right = view_add(r, "factor_right", VIEW_SIGNED, DT_F32, 3,
                             (int64_t[]){ r->h, k, r->m });

    if (!both || !right)
        return;
    both->read = read_projection;
    right->read = read_right;
    both->context = right->context = l;
    both->rows = right->rows = "slot";
    both->origin = l->e_drawn || l->f_drawn ? implicit_origin(r) : NULL;
    right->origin = l->f_drawn ? both->origin : NULL;
}

static void read_projection(const View *view, int64_t plane, int64_t i, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    const Linformer *l = view->context;
    const Tensor    *t = plane % 2 ? &l->f : &l->e;
    const float     *row = (const float *)tensor_head(t, plane / 2, view->shape[0]) +
                       i * t->stride[1];

    for (int64_t c = 0; c < count; c++)
        out[c] = row[start + c * step];
}

static void read_right(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    read_projection(view, 2 * head + 1, i, start, count, step, out);
}

static void linformer_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    check_rank(r, p, "e_proj", &p->e_proj);
    if (!one_tensor(p))
        check_rank(r, p, "f_proj", &p->f_proj);
}

static void check_rank(Run *r, const Params *p, const char *name, const Tensor *t)
{
    int  want = p->sharing == SHARING_NONE ? 3 : 2;
    char shape[80];

    if (t->data && (t->rank != want || (want == 3 && t->shape[0] != r->h)))
        run_fail(r, ERR_PARAM, "linformer: parameter %s has shape %s; sharing=%s needs %s", name,
                 tensor_shape_text(t, shape, sizeof(shape)), sharings[p->sharing],
                 want == 3 ? "[h,k,m], a projection for each head"
                           : "[k,m], one projection for all heads (sharing=none: one for each)");
}

static Flops linformer_flops(Run *r, const void *opaque)
{
    double h = (double)r->h, n = (double)r->n, m = (double)r->m, d = (double)r->d;
    double e = (double)r->e, k = (double)projected_length(r, opaque);

    return (Flops){ .score = 2 * h * n * k * d, .mix = 2 * h * n * k * e,
                    .overhead = h * (2 * k * m * (d + e) + FLOPS_ROW_SOFTMAX * n * k) };
}

static const StageNote notes[] = {
    { "projections",
      "Two matrices that know positions only: each row mixes all tokens of the sequence." },
    { "project keys and values",
      "n keys and n values become k of each: a summary of the sequence of fixed length." },
    { "scores, softmax, mix", "Every query attends to the k summaries." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells"),
    VIEW("weights", VIEW_SIGNED, "P F: of rank k at most, some entries negative, rows do not sum "
         "to 1"),
    VIEW("factor_left", VIEW_WEIGHTS, "P: each query over the k slots keys are projected to"),
    VIEW("factor_right", VIEW_SIGNED, "F: each slot's values over positions"),
    VIEW("projection", VIEW_SIGNED, "E, then F, of each head"),
    VIEW("projected_keys", VIEW_VECTORS, "E K"),
    VIEW("projected_values", VIEW_VECTORS, "F V"),
    VIEW_PROMISE_END
};

const Mechanism mech_linformer = {
    .id = "linformer",
    .title = "Linformer",
    .authors = "Wang, Li, Khabsa, Fang, Ma",
    .year = 2020,
    .arxiv = "2006.04768",
    .source = "paper, section 4; initialisation of fairseq's linformer example",
    .formula = "P = softmax(scale Q (E K)^T)\n"
               "output = P (F V),  E and F [k,m]",
    .problem = "Keys and values grow with the text, though few singular values hold most of many "
               "attention maps.",
    .idea = "Learned matrices project the n keys and values to k slots, and the queries compare "
            "with the slots.",
    .price = "The length is fixed by the projections.  The paper gives no causal form: each slot "
             "mixes later tokens.",
    .lesson = "low-rank",
    .teaches = "A thin strip P times a flat strip F is the whole map: its rank is at most k "
               "however long the sequence is.  F mixes positions with signs, so weights can be "
               "negative and rows need not sum to 1.",
    .example = "k=8",
    .classes = CLASS_LR,
    .claim_time = "O(n k)",
    .claim_memory = "O(n k)",
    .claim_decode = "no (projections mix all positions)",
    .claim_exponent = 1,
    .no_causal = "every projected key mixes all positions, later ones too",
    .cross = true,
    .views = views,
    .notes = notes,
    .size = "k",
    .params = params,
    .params_size = sizeof(Params),
    .check = linformer_check,
    .run = linformer_run,
    .flops = linformer_flops,
};
