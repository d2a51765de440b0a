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

static int64_t packed_count(const Params *p)
{
    return p->p.data && p->p.rank >= 2 ? p->p.shape[p->p.rank - 2] : p->n_p;
}

static void luna_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->unpack_keys == UNPACK_V && r->d != r->e)
        run_fail(r, ERR_PARAM, "luna: unpack_keys=packed_v scores queries of size d=%lld against "
                 "packed values of size e=%lld, which must be equal",
                 (long long)r->d, (long long)r->e);
}

static Tensor pack_queries(Run *r, const Params *p)
{
    int64_t shape[3] = { r->h, packed_count(p), r->d };

    return run_param(r, "p", p->p, DT_F32, 3, shape,
                     (Init){ INIT_NORMAL, 1 / sqrt((double)r->d) });
}

static Tensor pack_keys(Run *r, const Params *p)
{
    int64_t shape[3] = { r->h, r->m, r->d };
    Tensor  given = run_param_given(r, "k_pack", p->k_pack, DT_F32, 3, shape);

    return given.data ? given : r->k;
}

/* ---- causal ------------------------------------------------------------------- */

typedef struct Causal {
    Run          *run;
    const Params *p;
    Tensor        q, k, v, keys, queries; /* keys: of the pack */
    double        scale;
    int64_t       l, chunks;
    double       *sums; /* [h][chunks + 1][l][d + e] of the tokens before each chunk */
    double       *state, *work; /* [workers][l][d + e], [workers][2 l] */
    Tensor        g, a;         /* f32 [h,n,l] for views; data NULL: not wanted */
} Causal;

static double activated(const Params *p, double x)
{
    double beta = p->softplus_beta;

    if (p->activation == ACTIVATION_ELU)
        return x > 0 ? x + 1 : exp(x);
    return fmax(x, 0) + log1p(exp(-fabs(beta * x))) / beta;
}

static const float *row_of(const Causal *c, const Tensor *t, int64_t head, int64_t i)
{
    return (const float *)tensor_head(t, head, c->run->h) + i * t->stride[1];
}

/* g_j of one token. */
static void pack_row(const Causal *c, int64_t head, int64_t j, double *g)
{
    const float *key = row_of(c, &c->keys, head, j);
    int64_t      d = c->run->d;

    for (int64_t s = 0; s < c->l; s++) {
        const float *p = row_of(c, &c->queries, head, s);
        double       sum = 0;

        for (int64_t t = 0; t < d; t++)
            sum += (double)p[t] * (double)key[t];
        g[s] = activated(c->p, c->scale * sum);
    }
}

/* state += g_j^T [k_j | v_j] */
static void take(const Causal *c, int64_t head, int64_t j, const double *g, double *state)
{
    int64_t      d = c->run->d, e = c->run->e;
    const float *key = c->p->unpack_keys == UNPACK_K ? row_of(c, &c->k, head, j)
                                                     : row_of(c, &c->v, head, j);
    const float *value = row_of(c, &c->v, head, j);

    for (int64_t s = 0; s < c->l; s++) {
        double *row = state + s * (d + e);

        for (int64_t t = 0; t < d; t++)
            row[t] += g[s] * (double)key[t];
        for (int64_t t = 0; t < e; t++)
            row[d + t] += g[s] * (double)value[t];
    }
}

static void sum_item(void *context, int64_t item, int worker)
{
    Causal *c = context;
    int64_t head = item / c->chunks, chunk = item % c->chunks, n = c->run->n;
    int64_t size = c->l * (c->run->d + c->run->e);
    double *sum = c->sums + (head * (c->chunks + 1) + chunk + 1) * size;
    double *g = c->work + worker * 2 * c->l;

    memset(sum, 0, (size_t)size * sizeof(*sum));
    for (int64_t j = chunk * CHUNK; j < n && j < (chunk + 1) * CHUNK; j++) {
        pack_row(c, head, j, g);
        take(c, head, j, g, sum);
    }
}

/* Sums of the chunks before each. */
static void add_up(Causal *c)
{
    int64_t size = c->l * (c->run->d + c->run->e);

    for (int64_t head = 0; head < c->run->h; head++) {
        double *sums = c->sums + head * (c->chunks + 1) * size;

        memset(sums, 0, (size_t)size * sizeof(*sums));
        for (int64_t x = size; x < (c->chunks + 1) * size; x++)
            sums[x] += sums[x - size];
    }
}

/* a_i, and the output. */
static void unpack_row(const Causal *c, int64_t head, int64_t i, const double *state, double *a)
{
    int64_t      d = c->run->d, e = c->run->e;
    const float *q = row_of(c, &c->q, head, i);
    float       *out = tensor_f32(&c->run->out) + (head * c->run->n + i) * e;
    double       top = -(double)INFINITY, sum = 0, age = (double)(i + 1);

    for (int64_t s = 0; s < c->l; s++) {
        double logit = 0;

        for (int64_t t = 0; t < d; t++)
            logit += (double)q[t] * state[s * (d + e) + t];
        a[s] = c->scale * logit / age;
        top = a[s] > top ? a[s] : top;
    }
    for (int64_t s = 0; s < c->l; s++)
        sum += a[s] = exp(a[s] - top);
    for (int64_t s = 0; s < c->l; s++)
        a[s] /= sum;
    for (int64_t t = 0; t < e; t++) {
        double value = 0;

        for (int64_t s = 0; s < c->l; s++)
            value += a[s] * state[s * (d + e) + d + t];
        out[t] = (float)(value / age);
    }
}

static void keep(Tensor *to, int64_t at, int64_t count, const double *from)
{
    for (int64_t s = 0; to->data && s < count; s++)
        tensor_f32(to)[at * count + s] = (float)from[s];
}

static void token_item(void *context, int64_t item, int worker)
{
    Causal *c = context;
    int64_t head = item / c->chunks, chunk = item % c->chunks, n = c->run->n;
    int64_t size = c->l * (c->run->d + c->run->e);
    double *state = c->state + worker * size, *g = c->work + worker * 2 * c->l, *a = g + c->l;

    memcpy(state, c->sums + (head * (c->chunks + 1) + chunk) * size, (size_t)size * sizeof(*state));
    for (int64_t i = chunk * CHUNK; i < n && i < (chunk + 1) * CHUNK; i++) {
        pack_row(c, head, i, g);
        take(c, head, i, g, state);
        unpack_row(c, head, i, state, a);
        keep(&c->g, head * n + i, c->l, g);
        keep(&c->a, head * n + i, c->l, a);
    }
}

/* CV_(n-1) / n */
static Tensor last_memory(Run *r, const Causal *c)
{
    Tensor  memory = run_tensor3(r, DT_F32, r->h, c->l, r->e);
    int64_t width = r->d + r->e;

    for (int64_t x = 0; x < tensor_count(&memory) && !run_failed(r); x++) {
        int64_t head = x / (c->l * r->e), s = x / r->e % c->l;
        double *sums = c->sums + (head * (c->chunks + 1) + c->chunks) * c->l * width;

        tensor_f32(&memory)[x] = (float)(sums[s * width + r->d + x % r->e] / (double)r->n);
    }
    return memory;
}

static void show_causal(Run *r, const Causal *c)
{
    Pattern *cells;
    Tensor   age;

    if (!run_wants_views(r))
        return;
    cells = implicit_cells(r);
    age = run_tensor2(r, DT_F64, r->h, r->n);
    for (int64_t i = 0; i < r->h * r->n && !run_failed(r); i++)
        ((double *)age.data)[i] = (double)(i % r->n + 1);
    implicit_factor(r, "factor_left", VIEW_WEIGHTS, c->a, "query", "slot");
    implicit_factor(r, "factor_right", VIEW_WEIGHTS, latents_turned(r, c->g), "slot", "key");
    view_tensor(r, "memory", VIEW_VECTORS, last_memory(r, c), "slot", "component");
    implicit_connectivity(r, cells);
    implicit_weights(r, (Implicit){ .left = c->a, .right = c->g, .divisor = age }, VIEW_WEIGHTS,
                     cells);
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

static void one_way(Run *r, const Params *p, Tensor queries, Tensor keys)
{
    Causal  c = { .run = r, .p = p, .q = r->q, .k = r->k, .v = r->v, .keys = keys,
                  .queries = queries, .scale = run_scale(r, p->scale), .l = packed_count(p),
                  .chunks = (r->n + CHUNK - 1) / CHUNK };
    int64_t size = c.l * (r->d + r->e), workers = threads_count(r->threads);

    run_stage(r, "pack");
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    c.sums = run_alloc(r, r->h * (c.chunks + 1), size * (int64_t)sizeof(double));
    c.state = run_alloc(r, workers, size * (int64_t)sizeof(double));
    c.work = run_alloc(r, workers, 2 * c.l * (int64_t)sizeof(double));
    if (run_wants_views(r)) {
        c.g = run_tensor3(r, DT_F32, r->h, r->n, c.l);
        c.a = run_tensor3(r, DT_F32, r->h, r->n, c.l);
    }
    if (run_failed(r))
        return;
    threads_run(r->threads, r->h * c.chunks, sum_item, &c);
    add_up(&c);
    charge_causal(r, c.l, true);
    run_stage(r, "unpack");
    threads_run(r->threads, r->h * c.chunks, token_item, &c);
    charge_causal(r, c.l, false);
    show_causal(r, &c);
}

/* ---- the mechanism ------------------------------------------------------------ */

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

static const StageNote notes[] = {
    { "pack queries", "P: a few extra queries, learned, as many however long the sequence is." },
    { "pack", "Every packed token attends to all tokens: keys and values become l of each. Causal: "
              "running sums of unnormalised activations take the place of this softmax." },
    { "unpack", "Every query attends to the l packed tokens. The product of both maps is the "
                "attention matrix, of rank l." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "all cells; causal: j <= i" },
    { .name = "weights", .kind = VIEW_WEIGHTS,
      .help = "A_out A_in; causal: a_i . g_j / (i + 1), whose rows do not sum to 1" },
    { .name = "factor_left", .kind = VIEW_WEIGHTS, .help = "A_out: each query over the slots" },
    { .name = "factor_right", .kind = VIEW_WEIGHTS,
      .help = "A_in: each slot over the keys; causal: the activations g" },
    { .name = "memory", .kind = VIEW_VECTORS, .help = "the packed values" },
    { .name = "p", .kind = VIEW_TENSOR, .maybe = true, .help = "the pack queries, when drawn" },
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
    .teaches = "A wide strip packs the sequence into a few slots, a tall strip unpacks them: the "
               "whole map has the rank of the slots.  Causal, the rows' sums drift away from 1.",
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
    .params = params,
    .params_size = sizeof(Params),
    .check = luna_check,
    .run = luna_run,
    .flops = luna_flops,
};
