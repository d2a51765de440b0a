/* perceiver.c -- a few latents read the sequence, think among themselves, and may be read.
 *
 *     Z = latents                                               [N,d]
 *     repeat `blocks` times:
 *         C = softmax(scale Z K^T),  Z <- C V (+ Z)              cross-attend
 *         repeat `latent_layers` times:
 *             S = softmax(scale Z Z^T),  Z <- S Z (+ Z)
 *     output = Z, or with decode=query  softmax(scale Q Z^T) Z
 *
 * Causal (Perceiver AR): Z starts as the last N queries, and row r, the position
 * p = n - N + r, sees keys up to p and latents up to its own.
 * (Jaegle et al. 2021, section 3; Perceiver IO 2107.14795; Hawthorne et al. 2022, 2202.07765.)
 */
#include "attn/mech/lowrank/latents.h"
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <string.h>

enum { DECODE_NONE, DECODE_QUERY };
static const char *const decodes[] = { "none", "query", NULL };

typedef struct Params {
    int64_t n_latents, blocks, latent_layers;
    bool    residual;
    int     decode;
    double  scale;
    Tensor  latents;
} Params;

static const Param params[] = {
    PARAM_INT(Params, n_latents, 64, 1, INT32_MAX, "latents N (the paper: 512); a given `latents` "
              "has its own; causal: how many last positions"),
    PARAM_TENSOR(Params, latents, "[h,N,d] or [N,d]", "N(0, 0.02^2)", "the latents' queries"),
    PARAM_INT(Params, blocks, 1, 1, 4096, "cross-attentions, each followed by latent layers"),
    PARAM_INT(Params, latent_layers, 0, 0, 4096, "self-attentions of the latents in a block"),
    PARAM_BOOL(Params, residual, false, "add what a step began with; then there are no weights"),
    PARAM_ENUM(Params, decode, DECODE_NONE, decodes, "query: every query reads the latents"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

typedef struct Sight {
    Tensor cross; /* last C [h,N,m] */
    Tensor chain; /* f32 [h,N,m]: what the latents hold, as weights on the values */
} Sight;

static Tensor first_latents(Run *r, const Params *p);
static int64_t latent_count(const Run *r, const Params *p);
static Tensor cross_attend(Run *r, const Params *p, Tensor z, int64_t block, Sight *sight);
static void add_back(Run *r, Tensor x, Tensor z);
static Tensor think(Run *r, const Params *p, Tensor z, int64_t layer, Sight *sight);
static void perceiver_follow(Run *r, const LatentRead *self, Sight *sight);
static void perceiver_show(Run *r, const Params *p, const Sight *sight, Tensor z,
                           const LatentRead *decode);
static Pattern *latent_cells(Run *r, int64_t count);
static bool read_again(const Params *p);

static void perceiver_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sight         sight = { .cross = { .rank = 0 } };
    LatentRead    decode;
    Tensor        z;

    run_stage(r, "latents");
    z = first_latents(r, p);
    for (int64_t b = 0; b < p->blocks && !run_failed(r); b++) {
        z = cross_attend(r, p, z, b, &sight);
        for (int64_t l = 0; l < p->latent_layers && !run_failed(r); l++)
            z = think(r, p, z, b * p->latent_layers + l, &sight);
    }
    if (run_failed(r))
        return;
    r->out = z;
    if (p->decode == DECODE_QUERY) {
        run_stage(r, "decode");
        decode = latents_read(r, r->q, z, z, run_scale(r, p->scale), false, 0);
        r->out = decode.out;
    }
    perceiver_show(r, p, &sight, z, p->decode == DECODE_QUERY ? &decode : NULL);
}

static Tensor first_latents(Run *r, const Params *p)
{
    int64_t count = latent_count(r, p);

    if (r->causal)
        return tensor_rows(r->q, r->n - count, count);
    return run_param(r, "latents", p->latents, DT_F32, 3, (int64_t[]){ r->h, count, r->d },
                     (Init){ INIT_NORMAL, 0.02 });
}

static int64_t latent_count(const Run *r, const Params *p)
{
    int64_t count = p->latents.data && p->latents.rank >= 2
                        ? p->latents.shape[p->latents.rank - 2] : p->n_latents;

    if (!r->causal)
        return count;
    return p->n_latents < r->n ? p->n_latents : r->n;
}

static Tensor cross_attend(Run *r, const Params *p, Tensor z, int64_t block, Sight *sight)
{
    LatentRead read;

    run_iteration(r, "cross-attend", block);
    read = latents_read(r, z, r->k, r->v, run_scale(r, p->scale), r->causal,
                        r->n - z.shape[1]);
    if (p->residual)
        add_back(r, read.out, z);
    if (run_wants_views(r) && !run_failed(r))
        sight->cross = sight->chain = latents_weights(r, &read);
    return read.out;
}

/* x += what z was */
static void add_back(Run *r, Tensor x, Tensor z)
{
    op_entries_of(r, x, z, ENTRY_SUM, 1, x);
}

static Tensor think(Run *r, const Params *p, Tensor z, int64_t layer, Sight *sight)
{
    LatentRead read;

    run_iteration(r, "latent layer", layer);
    read = latents_read(r, z, z, z, run_scale(r, p->scale), r->causal, 0);
    if (p->residual)
        add_back(r, read.out, z);
    if (!run_failed(r))
        perceiver_follow(r, &read, sight);
    return read.out;
}

/* ---- views -------------------------------------------------------------------- */

/* chain <- S chain */
static void perceiver_follow(Run *r, const LatentRead *self, Sight *sight)
{
    Tensor s, next;

    if (!run_wants_views(r))
        return;
    s = latents_weights(r, self);
    next = run_tensor3(r, DT_F32, r->h, sight->chain.shape[1], sight->chain.shape[2]);
    op_gemm(r, s, false, sight->chain, false, 1, 0, next, FLOP_NONE);
    sight->chain = next;
}

static void perceiver_show(Run *r, const Params *p, const Sight *sight, Tensor z,
                           const LatentRead *decode)
{
    Pattern *cells;
    Tensor   left;

    if (!run_wants_views(r))
        return;
    cells = decode ? run_allowed_cells(r) : latent_cells(r, z.shape[1]);
    implicit_factor(r, "factor_right", VIEW_WEIGHTS, sight->cross, "latent", "key");
    view_tensor(r, "memory", VIEW_VECTORS, z, "latent", "component");
    implicit_connectivity(r, cells);
    if (decode) {
        left = latents_weights(r, decode);
        implicit_factor(r, "factor_left", VIEW_WEIGHTS, left, "query", "latent");
        if (!p->residual)
            implicit_weights(r, (Implicit){ .left = left,
                                            .right = dense_turned(r, sight->chain) },
                             VIEW_WEIGHTS, cells);
    } else if (!p->residual) {
        implicit_factor(r, "weights", VIEW_WEIGHTS, sight->chain, "latent", "key");
    }
}

/* Row r of the N last positions sees keys up to its own. */
static Pattern *latent_cells(Run *r, int64_t count)
{
    PatternShape shape = { .heads = r->h, .n = count, .m = r->m };
    Pattern     *cells;

    cells = r->causal ? pattern_band(r->arena, shape, -r->m, r->m - count, 1, COMPONENT_OTHER)
                      : pattern_full(r->arena, shape, COMPONENT_OTHER);
    cells = cells ? pattern_finish(r->arena, shape, cells, false) : NULL;
    if (!cells)
        run_fail(r, ERR_NOMEM, "perceiver: not enough memory for the pattern");
    return cells;
}

static void perceiver_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (r->d != r->e && read_again(p))
        run_fail(r, ERR_PARAM,
                 "perceiver: what the latents hold has the values' size e=%lld and is "
                 "scored against size d=%lld; sizes may differ only with blocks=1, "
                 "latent_layers=0, residual=false and decode=none",
                 (long long)r->e, (long long)r->d);
    if (r->causal && r->m != r->n)
        run_fail(r, ERR_DATA, "perceiver: causal needs as many keys as queries: the input has "
                 "n=%lld queries and m=%lld keys", (long long)r->n, (long long)r->m);
    if (r->causal && p->blocks != 1)
        run_fail(r, ERR_USAGE, "perceiver: blocks=%lld has no causal form; use blocks=1",
                 (long long)p->blocks);
    if (r->causal && p->decode == DECODE_QUERY)
        run_fail(r, ERR_USAGE, "perceiver: decode=query has no causal form (a latent has read all "
                 "keys before its own position); use decode=none");
}

/* True if a later step reads Z as rows of the keys' size d. */
static bool read_again(const Params *p)
{
    return p->blocks > 1 || p->latent_layers || p->residual || p->decode == DECODE_QUERY;
}

static Flops perceiver_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double N = (double)latent_count(r, p), n = (double)r->n, m = (double)r->m, d = (double)r->d;
    double e = (double)r->e, seen = r->causal ? n - N + (N + 1) / 2 : m;
    double own = r->causal ? (N + 1) / 2 : N;
    Flops  sum = { 0 };

    for (int64_t b = 0; b < p->blocks; b++) {
        sum = flops_sum(sum, latents_read_flops(r, N * seen, d, e));
        for (int64_t l = 0; l < p->latent_layers; l++)
            sum = flops_sum(sum, latents_read_flops(r, N * own, d, e));
    }
    return p->decode == DECODE_QUERY ? flops_sum(sum, latents_read_flops(r, n * N, d, e)) : sum;
}

/* Of Perceiver AR: all keys and values are held, and what the last N positions read of them, which
 * the latent layer reads.  A second one would read what the first makes of other N positions at
 * every step. */
static DecodeCost perceiver_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    DecodeCost    cost = decode_dense(r);
    double        h = (double)r->h, e = (double)r->e, layers = (double)p->latent_layers;
    double        latents = layers * h * (double)latent_count(r, p);

    if (p->latent_layers > 1)
        return decode_unknown("every token moves the latents, so the layers above the first begin "
                              "again");
    cost.state_bytes += (double)r->cache_bytes * latents * e;
    cost.step_bytes += (double)r->cache_bytes * latents * e;
    cost.decode_flops += (4 * e + FLOPS_ROW_SOFTMAX) * latents +
                         (FLOPS_ROW_SOFTMAX - FLOPS_SOFTMAX) * h * (double)r->m;
    return cost;
}

static const StageNote notes[] = {
    { "latents", "N queries that are learned, not computed from the input: as many however long it "
                 "is. Causal: the last N positions' own queries." },
    { "cross-attend", "Every latent attends to all tokens; this is the only step whose cost grows "
                      "with the length." },
    { "latent layer", "The latents attend to each other: N x N, however long the input was." },
    { "decode", "Every query attends to the N latents and takes what they hold." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "cells of latents (or decoding queries) and keys"),
    { .name = "weights",
      .kind = VIEW_WEIGHTS,
      .maybe = true,
      .help =
          "weight of each key in each row of the output, through all layers; not with residual" },
    VIEW("factor_right", VIEW_WEIGHTS, "the last cross-attention: latents by keys"),
    VIEW("factor_left", VIEW_WEIGHTS, "decoding queries by latents (decode=query)", .maybe = true),
    VIEW("memory", VIEW_VECTORS, "what the latents hold at the end"),
    VIEW("latents", VIEW_TENSOR, "the latents, when drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_perceiver = {
    .id = "perceiver",
    .title = "Perceiver",
    .authors = "Jaegle, Gimeno, Brock, Zisserman, Vinyals, Carreira",
    .year = 2021,
    .arxiv = "2103.03206",
    .source = "paper, section 3; decoding of Perceiver IO; causal form of Perceiver AR",
    .formula = "Z <- softmax(scale Z K^T) V\n"
               "Z <- softmax(scale Z Z^T) Z, latent_layers times\n"
               "output = Z, or softmax(scale Q Z^T) Z",
    .problem = "Inputs such as pixels and sound are far too long for attention between all of "
               "them.",
    .idea = "A small set of latent vectors asks the whole input, and deep layers work on the "
            "latents only.",
    .price = "Everything must fit into the latents, and there is a row for each latent, not for "
             "each token.",
    .lesson = "low-rank",
    .teaches =
        "N wide rows over the whole input, one for each latent; latent layers blend the same "
        "rows.  What comes out has N rows, unless queries read the latents back.",
    .picture = "factor_right",
    .example = "n_latents=8",
    .classes = CLASS_M | CLASS_DS,
    .claim_time = "O(N n)",
    .claim_memory = "O(N n)",
    .claim_decode = "only as Perceiver AR (--causal)",
    .claim_exponent = 1,
    .causal = true,
    .cross = true,
    .own_rows = true,
    .views = views,
    .notes = notes,
    .size = "n_latents",
    .params = params,
    .params_size = sizeof(Params),
    .check = perceiver_check,
    .run = perceiver_run,
    .flops = perceiver_flops,
    .decode = perceiver_decode,
};
