/* ops.c -- the front of the operations: allocate, charge, dispatch; see ops.h. */
#include <math.h>
#include <string.h>

#include "attn/ops/ops.h"
#include "attn/ops/difference.h"
#include "attn/ops/dispatch.h"
#include "attn/ops/lambdas.h"
#include "attn/ops/state.h"
#include "attn/run.h"

void ops_lack(Run *r, const char *entry)
{
    run_fail(r, ERR_UNSUPPORTED, "%s: the back end '%s' has no operation '%s'; use --device cpu",
             r->mechanism->id, r->ops->name, entry);
}

void op_wait(Run *r, const char *reads)
{
    if (r->ops->wait)
        r->ops->wait(r, reads);
}

void op_toward(Run *r, const void *data, int64_t bytes)
{
    if (r->ops->toward && !run_failed(r))
        r->ops->toward(r, data, bytes);
}

double attend_cell_overhead(const AttendInput *in)
{
    return (in->softmax_flops > 0 ? in->softmax_flops : FLOPS_SOFTMAX) +
           (in->softcap > 0 ? FLOPS_SOFTCAP : 0);
}

bool attend_has_terms(const AttendInput *in)
{
    return in->softcap > 0 || in->cell_term || tensor_given(&in->distance) ||
           tensor_given(&in->row.table) || tensor_given(&in->col.table);
}

/* Bytes of k or v that `cells` cells read: few queries leave most keys alone.  A key that two rows
 * read counts once only where every key is read. */
static double read_of(Tensor t, const Pattern *pattern, double cells)
{
    double heads = (double)(pattern_per_head(pattern) ? t.shape[0] : pattern_heads(pattern));
    double keys = cells / fmax(heads, 1), all = (double)t.shape[1];

    return keys < all ? bytes_of(t) * keys / all : bytes_of(t);
}

AttendResult op_attend(Run *r, const AttendInput *in, const Pattern *pattern)
{
    int64_t      n = in->q.shape[1]; /* not r->n: a mechanism may add tokens of its own */
    AttendResult out = { .out = run_tensor3(r, DT_F32, r->h, n, in->v.shape[2]),
                         .lse = run_tensor2(r, DT_F32, r->h, n) };
    double       cells = 0;

    if (!pattern)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the pattern", r->mechanism->id);
    if (run_failed(r))
        return out;
    if (r->spec.pairs_only) {
        memset(out.out.data, 0, (size_t)tensor_bytes(&out.out));
        memset(out.lse.data, 0, (size_t)tensor_bytes(&out.lse));
        return out;
    }
    DISPATCH(r, attend, in, pattern, &out, &cells);
    op_charge(r, FLOP_SCORE, 2 * cells * (double)in->q.shape[2]);
    op_charge(r, FLOP_MIX, 2 * cells * (double)in->v.shape[2]);
    op_charge(r, FLOP_OVERHEAD, attend_cell_overhead(in) * cells);
    op_charge(r, FLOP_POSITION, in->cell_flops * cells);
    op_traffic(r, bytes_of(in->q) + read_of(in->k, pattern, cells) +
                      read_of(in->v, pattern, cells), bytes_of(out.out) + bytes_of(out.lse));
    return out;
}

Tensor op_pattern_means(Run *r, const PatternMeans *in, const Pattern *pattern)
{
    int64_t n = pattern ? pattern_queries(pattern) : 0;
    Tensor  y = run_tensor3(r, in->x.dtype, r->h, n, in->x.shape[2]);
    double  cells = 0, rows = (double)(r->h * n);

    if (!pattern)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the pattern", r->mechanism->id);
    DISPATCH(r, pattern_means, in, pattern, &y, &cells);
    op_charge(r, FLOP_MIX, (double)in->x.shape[2] * (cells + rows * (in->less_own ? 2 : 1)));
    op_traffic(r, bytes_of(in->x), bytes_of(y));
    return y;
}

FewResult op_few_attend(Run *r, const FewAttend *in)
{
    int64_t   l = in->q.shape[1], e = in->v.shape[2], f = in->more.data ? in->more.shape[2] : 0;
    double    cells = (double)r->h * (double)l * (double)in->k.shape[1];
    FewResult out = { .out = run_tensor3(r, DT_F32, r->h, l, e),
                      .lse = run_tensor2(r, DT_F64, r->h, l) };

    if (f > 0)
        out.more = run_tensor3(r, DT_F32, r->h, l, f);
    DISPATCH(r, few_attend, in, &out);
    op_charge(r, FLOP_SCORE, 2 * cells * (double)in->q.shape[2]);
    op_charge(r, FLOP_MIX, 2 * cells * (double)(e + f));
    op_charge(r, FLOP_OVERHEAD, FLOPS_ROW_SOFTMAX * cells);
    op_traffic(r, bytes_of(in->q) + bytes_of(in->k) + bytes_of(in->v) + bytes_of(in->more),
               bytes_of(out.out) + bytes_of(out.more));
    return out;
}

/* (query entry, key entry) pairs over all heads and groups. */
static double group_pairs(const GroupAttend *g, int64_t heads)
{
    double pairs = 0;

    for (int64_t h = 0; h < heads; h++) {
        const int32_t *q = tensor_head(&g->query_start, h, heads);
        const int32_t *k = tensor_head(&g->key_start, h, heads);

        for (int64_t c = 0; c < g->groups; c++)
            pairs += (double)(q[c + 1] - q[c]) * (double)(k[c + 1] - k[c]);
    }
    return pairs;
}

static double skipped_pairs(const GroupAttend *g, int64_t heads)
{
    double queries = 0;

    for (int64_t h = 0; h < heads && g->query_skip.data; h++)
        queries += ((int32_t *)tensor_head(&g->query_start, h, heads))[g->groups];
    return queries * (double)(g->query_skip.data ? g->query_skip.shape[2] : 0);
}

GroupResult op_group_attend(Run *r, const GroupAttend *g)
{
    int64_t     queries = g->query_index.shape[1], e = g->v.shape[2];
    GroupResult out = { .out = run_tensor3(r, DT_F32, r->h, queries, e),
                        .lse = run_tensor2(r, DT_F32, r->h, queries) };
    double      pairs;

    if (run_failed(r))
        return out;
    DISPATCH(r, group_attend, g, &out);
    pairs = group_pairs(g, r->h);
    op_charge(r, FLOP_SCORE, 2 * pairs * (double)g->q.shape[2]);
    op_charge(r, FLOP_MIX, 2 * (pairs - skipped_pairs(g, r->h)) * (double)e);
    op_charge(r, FLOP_OVERHEAD, FLOPS_SOFTMAX * pairs);
    op_traffic(r, bytes_of(g->q) + bytes_of(g->k) + bytes_of(g->v) + bytes_of(g->more_k) +
                      bytes_of(g->more_v),
               bytes_of(out.out));
    return out;
}

bool op_group_takes_more(const Run *r)
{
    return r->ops->joins_keys;
}

/* Of m keys those up to row i. */
static int64_t keys_seen(const Run *r, bool causal, int64_t m, int64_t i)
{
    int64_t seen = i + r->q_offset + 1;

    return !causal || seen > m ? m : seen < 0 ? 0 : seen;
}

int64_t row_attend_keys(const Run *r, const RowAttend *in, int64_t i)
{
    return keys_seen(r, in->causal, in->k.shape[1], i);
}

static void charge_rows(Run *r, const RowAttend *in, const RowResult *out)
{
    int64_t n = in->q.shape[1];
    double  cells = 0, weights = 0, overhead = 0;

    for (int64_t x = 0; x < r->h * n; x++) {
        int64_t count = row_attend_keys(r, in, x % n);

        cells += (double)count;
        weights += (double)tensor_i32(&out->support)[x];
        overhead += entmax_flops(&in->form[x / n], count);
    }
    op_charge(r, FLOP_SCORE, 2 * cells * (double)in->q.shape[2]);
    op_charge(r, FLOP_MIX, 2 * weights * (double)in->v.shape[2]);
    op_charge(r, FLOP_OVERHEAD, overhead);
}

RowResult op_row_attend(Run *r, const RowAttend *in)
{
    int64_t   n = in->q.shape[1];
    RowResult out = { .out = run_tensor3(r, DT_F32, r->h, n, in->v.shape[2]),
                      .tau = run_tensor2(r, DT_F64, r->h, n),
                      .total = run_tensor2(r, DT_F64, r->h, n),
                      .support = run_tensor2(r, DT_I32, r->h, n) };

    if (run_failed(r))
        return out;
    DISPATCH(r, row_attend, in, &out);
    op_wait(r, "the host counts the weights that are not zero");
    if (run_failed(r))
        return out;
    charge_rows(r, in, &out);
    op_traffic(r, bytes_of(in->q) + bytes_of(in->k) + bytes_of(in->v), bytes_of(out.out));
    return out;
}

int64_t sigmoid_keys(const Run *r, const SigmoidAttend *at, int64_t i)
{
    return keys_seen(r, at->causal, at->in.k.shape[1], i);
}

double sigmoid_weight(double x)
{
    double faded = exp(-fabs(x));

    return (x < 0 ? faded : 1) / (1 + faded);
}

SigmoidResult op_sigmoid_attend(Run *r, const SigmoidAttend *at)
{
    const AttendInput *in = &at->in;
    int64_t            n = in->q.shape[1];
    double             cells = 0;
    SigmoidResult      out = { .out = run_tensor3(r, DT_F32, r->h, n, in->v.shape[2]),
                               .sum = run_tensor2(r, DT_F32, r->h, n) };

    if (run_failed(r))
        return out;
    if (r->spec.pairs_only) {
        memset(out.out.data, 0, (size_t)tensor_bytes(&out.out));
        memset(out.sum.data, 0, (size_t)tensor_bytes(&out.sum));
        return out;
    }
    if (r->ops != ops_cpu())
        run_warn(r, "%s: computed by the CPU: the back end '%s' has no operation for it",
                 r->mechanism->id, r->ops->name);
    op_wait(r, "the host computes the weights and the sums of values");
    if (!run_failed(r))
        cpu_sigmoid_attend(r, at, &out);
    for (int64_t i = 0; i < n; i++)
        cells += (double)(r->h * sigmoid_keys(r, at, i));
    op_charge(r, FLOP_SCORE, 2 * cells * (double)in->q.shape[2]);
    op_charge(r, FLOP_MIX, 2 * cells * (double)in->v.shape[2]);
    op_charge(r, FLOP_OVERHEAD, attend_cell_overhead(in) * cells);
    op_charge(r, FLOP_POSITION, in->cell_flops * cells);
    op_traffic(r, bytes_of(in->q) + bytes_of(in->k) + bytes_of(in->v),
               bytes_of(out.out) + bytes_of(out.sum));
    return out;
}

static void clear(Tensor t)
{
    if (t.data)
        memset(t.data, 0, (size_t)tensor_bytes(&t));
}

DifferenceResult op_difference_attend(Run *r, const DifferenceAttend *in, bool raw)
{
    int64_t          n = in->in.q.shape[1], e = in->in.v.shape[2];
    DifferenceResult out = { .out = run_tensor3(r, DT_F32, r->h, n, e),
                             .top = run_tensor2(r, DT_F64, r->h, n),
                             .sum = run_tensor2(r, DT_F64, r->h, n),
                             .negative = run_tensor2(r, DT_I64, r->h / 2, n) };
    double           cells = 0;

    if (raw)
        out.raw = run_tensor3(r, DT_F32, r->h, n, e);
    if (run_failed(r))
        return out;
    if (r->spec.pairs_only) {
        clear(out.out);
        clear(out.raw);
        clear(out.top);
        clear(out.sum);
        clear(out.negative);
        return out;
    }
    if (r->ops != ops_cpu())
        run_warn(r, "%s: computed by the CPU: the back end '%s' has no operation for it",
                 r->mechanism->id, r->ops->name);
    op_wait(r, "the host computes the differences and the sums of values");
    if (!run_failed(r))
        cpu_difference_attend(r, in, &out);
    for (int64_t i = 0; i < n; i++)
        cells += (double)r->h * (double)difference_keys(in, i);
    op_charge(r, FLOP_SCORE, 2 * cells * (double)in->in.q.shape[2]);
    op_charge(r, FLOP_MIX, 2 * cells * (double)e);
    op_charge(r, FLOP_OVERHEAD, (attend_cell_overhead(&in->in) + 1) * cells);
    op_charge(r, FLOP_POSITION, in->in.cell_flops * cells);
    op_traffic(r, bytes_of(in->in.q) + bytes_of(in->in.k) + bytes_of(in->in.v),
               bytes_of(out.out) + bytes_of(out.raw) + bytes_of(out.top) + bytes_of(out.sum));
    return out;
}

void op_gemm(Run *r, Tensor a, bool ta, Tensor b, bool tb, double alpha, double beta, Tensor c,
             FlopClass charge)
{
    DISPATCH(r, gemm, &a, ta, &b, tb, alpha, beta, &c);
    op_charge(r, charge, 2 * (double)tensor_count(&c) * (double)a.shape[ta ? 1 : 2]);
    if (charge != FLOP_NONE)
        op_traffic(r, bytes_of(a) + bytes_of(b), bytes_of(c));
}

void op_gemm_long(Run *r, Tensor a, Tensor b, double alpha, Tensor c, FlopClass charge)
{
    DISPATCH(r, gemm_long, &a, &b, alpha, &c);
    op_charge(r, charge, 2 * (double)tensor_count(&c) * (double)a.shape[2]);
    if (charge != FLOP_NONE)
        op_traffic(r, bytes_of(a) + bytes_of(b), bytes_of(c));
}

Tensor op_pinv(Run *r, Tensor a, double rcond)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[2], a.shape[1]);

    DISPATCH(r, pinv, &a, rcond, &y);
    op_charge(r, FLOP_OVERHEAD, 24 * (double)tensor_count(&a) * (double)a.shape[1]);
    op_traffic(r, bytes_of(a), bytes_of(y));
    return y;
}

static double logit_cost(const LogitAttend *in)
{
    switch (in->kind) {
    case LOGITS_PRODUCT: return 2 * (double)in->left.shape[2];
    case LOGITS_FOLDED: return 1;
    case LOGITS_TILED: return 2 * (double)in->left.shape[2] * (double)in->right.shape[2];
    case LOGITS_GIVEN:
    case LOGITS_UNIFORM: break;
    }
    return 0;
}

LogitResult op_logit_attend(Run *r, const LogitAttend *in)
{
    int64_t     n = in->n, m = in->v.shape[1], e = in->v.shape[2];
    double      seen = in->causal ? (double)in->offset + (double)(n + 1) / 2 : (double)m;
    double      cells = (double)r->h * (double)n * seen;
    LogitResult out = { .out = run_tensor3(r, DT_F32, r->h, n, e),
                        .lse = run_tensor2(r, DT_F64, r->h, n) };

    DISPATCH(r, logit_attend, in, &out);
    op_charge(r, FLOP_SCORE, cells * logit_cost(in));
    op_charge(r, FLOP_MIX, 2 * cells * (double)e);
    op_charge(r, FLOP_OVERHEAD, FLOPS_ROW_SOFTMAX * cells);
    op_traffic(r, bytes_of(in->left) + bytes_of(in->right) + bytes_of(in->v), bytes_of(out.out));
    return out;
}

Tensor op_dots64(Run *r, Tensor x, Tensor w)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, x.shape[1], w.shape[2]);

    DISPATCH(r, dots64, &x, &w, &y);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)tensor_count(&y) * (double)x.shape[2]);
    op_traffic(r, bytes_of(x) + bytes_of(w), bytes_of(y));
    return y;
}

void op_product64(Run *r, Tensor x, Tensor w, const float *bias, Tensor y)
{
    DISPATCH(r, product64, &x, &w, bias, &y);
    op_traffic(r, bytes_of(x) + bytes_of(w), bytes_of(y));
}

Tensor op_standardised_product(Run *r, const Standardised *in, Tensor w, FlopClass charge)
{
    Tensor y = run_tensor3(r, DT_F32, in->x.shape[0], in->x.shape[1], w.shape[2]);

    DISPATCH(r, standardised_product, in, &w, &y);
    op_charge(r, charge, 2 * (double)tensor_count(&y) * (double)w.shape[1]);
    op_traffic(r, bytes_of(in->x) + bytes_of(w), bytes_of(y));
    return y;
}

double op_largest_norm(Run *r, Tensor x)
{
    if (!run_failed(r) && !r->ops->largest_norm)
        ops_lack(r, "largest_norm");
    op_traffic(r, bytes_of(x), 0);
    return run_failed(r) ? 0 : r->ops->largest_norm(r, &x);
}

void op_gelu(Run *r, Tensor x, const float *bias)
{
    DISPATCH(r, gelu, &x, bias);
    op_traffic(r, bytes_of(x), bytes_of(x));
}

/* Per feature, besides the projection: as the mechanisms' entries count. */
static double feature_cost(FeatureKind kind)
{
    return kind <= FEATURE_RELU ? 5 : kind <= FEATURE_COLUMN_SOFTMAX ? 3 : 4;
}

static int64_t feature_count(const Tensor *x, const Tensor *w, FeatureMap map)
{
    if (!map.project)
        return x->shape[2];
    return map.kind == FEATURE_POSITIVE || map.kind == FEATURE_RELU ||
                   map.kind == FEATURE_ARC_COS
               ? w->shape[1]
               : 2 * w->shape[1];
}

static void charge_projection(Run *r, double rows, const Tensor *x, const Tensor *w,
                              FeatureMap map)
{
    if (map.project)
        op_charge(r, FLOP_OVERHEAD, 2 * rows * (double)w->shape[1] * (double)x->shape[2]);
}

static Tensor features_of(Run *r, Tensor x, Tensor w, FeatureMap map, bool keys)
{
    int64_t f = feature_count(&x, &w, map);
    Tensor  y = run_tensor3(r, map.wide ? DT_F64 : DT_F32, r->h, x.shape[1], f);
    double  rows = (double)r->h * (double)x.shape[1];

    DISPATCH(r, features, &x, &w, &map, keys, &y);
    charge_projection(r, rows, &x, &w, map);
    op_charge(r, FLOP_OVERHEAD, feature_cost(map.kind) * rows * (double)f);
    op_traffic(r, bytes_of(x) + bytes_of(w), bytes_of(y));
    return y;
}

static bool subtracts_top(FeatureMap map)
{
    return map.stabilise && map.project && map.kind <= FEATURE_HYPERBOLIC;
}

bool linear_finds_top(const LinearAttend *in)
{
    return in->form != LINEAR_MATRIX && !in->from_k.map.wide && subtracts_top(in->from_k.map);
}

/* Each row can be made from its vector alone, and is read once. */
static bool makes_features(const Run *r, const LinearAttend *in, FeatureMap map)
{
    return r->ops->features_top && !run_wants_views(r) && !map.wide &&
           in->form != LINEAR_MATRIX && map.kind != FEATURE_TRIG &&
           map.kind != FEATURE_COLUMN_SOFTMAX;
}

void op_linear_features(Run *r, LinearAttend *in, Tensor x, Tensor w, FeatureMap map, bool keys)
{
    FeatureSource *from = keys ? &in->from_k : &in->from_q;
    Tensor        *f = keys ? &in->fk : &in->fq;

    *from = (FeatureSource){ .x = x, .w = w, .map = map };
    if (run_failed(r) || !makes_features(r, in, map)) {
        *f = features_of(r, x, w, map, keys);
        return;
    }
    *f = tensor_of(DT_F32, 3, (int64_t[]){ r->h, x.shape[1], feature_count(&x, &w, map) }, NULL);
    run_note(r, "features are made where they are read: the stage that reads them has their time");
    if (!keys || !subtracts_top(map) || linear_finds_top(in))
        return;
    from->top = run_tensor1(r, DT_F64, r->h);
    DISPATCH(r, features_top, &x, &w, &map, &from->top);
    charge_projection(r, (double)r->h * (double)x.shape[1], &x, &w, map);
    op_traffic(r, bytes_of(x) + bytes_of(w), 0);
}

/* Of a head: the state and its read, or the dense form. */
static Flops linear_cost(double n, double m, double f, double e, bool causal, LinearForm form,
                         double chunk)
{
    double cells = causal ? n * (n + 1) / 2 : n * m;
    Flops  cost = { .mix = 2 * (n + m) * f * e, .overhead = m * f + 2 * n * f + n * e };

    if (form == LINEAR_MATRIX)
        return (Flops){ .score = 2 * cells * f, .mix = 2 * cells * e, .overhead = 2 * cells };
    if (causal && form == LINEAR_CHUNKED) {
        cost.score = 2 * n * chunk * f;
        cost.mix += 2 * n * chunk * e;
    }
    return cost;
}

Flops linear_attend_flops(const Run *r, int64_t f, bool causal, LinearForm form, int64_t chunk,
                          Flops sum)
{
    double h = (double)r->h;
    Flops  cost = linear_cost((double)r->n, (double)r->m, (double)f, (double)r->e, causal, form,
                              (double)chunk);

    sum.score += h * cost.score;
    sum.mix += h * cost.mix;
    sum.overhead += h * cost.overhead;
    return sum;
}

static void charge_linear(Run *r, const LinearAttend *in)
{
    double h = (double)r->h, n = (double)in->fq.shape[1], f = (double)in->fq.shape[2];
    double e = (double)in->v.shape[2];
    Flops  cost = linear_cost(n, (double)in->fk.shape[1], f, e, in->causal, in->form,
                              (double)in->chunk);

    op_charge(r, FLOP_SCORE, h * cost.score);
    op_charge(r, FLOP_MIX, h * cost.mix);
    op_charge(r, FLOP_OVERHEAD, h * cost.overhead);
    if (in->gates.data)
        op_charge(r, FLOP_OVERHEAD, 3 * h * n * f * (e + 1));
}

/* What features take that are made here; returns the bytes that are read for them. */
static double charge_made(Run *r, const FeatureSource *from, const Tensor *f)
{
    double rows = (double)r->h * (double)f->shape[1];

    if (f->data)
        return bytes_of(*f);
    if (!from->top.data)
        charge_projection(r, rows, &from->x, &from->w, from->map);
    op_charge(r, FLOP_OVERHEAD, feature_cost(from->map.kind) * rows * (double)f->shape[2]);
    return bytes_of(from->x) + bytes_of(from->w);
}

LinearResult op_linear_attend(Run *r, const LinearAttend *in)
{
    int64_t      n = in->fq.shape[1], f = in->fq.shape[2], e = in->v.shape[2];
    LinearResult out = { .out = run_tensor3(r, in->wide ? DT_F64 : DT_F32, r->h, n, e),
                         .memory = run_tensor3(r, DT_F32, r->h, f, e),
                         .denominator = run_tensor2(r, DT_F32, r->h, n),
                         .divisor = run_tensor2(r, DT_F64, r->h, n) };

    DISPATCH(r, linear_attend, in, &out);
    charge_linear(r, in);
    op_traffic(r, charge_made(r, &in->from_q, &in->fq) + charge_made(r, &in->from_k, &in->fk) +
                      bytes_of(in->v), bytes_of(out.out));
    return out;
}

void op_lambda_content(Run *r, const Lambdas *l)
{
    DISPATCH(r, lambda_content, l);
}

void op_lambda_apply(Run *r, const Lambdas *l, Tensor out)
{
    DISPATCH(r, lambda_apply, l, &out);
}

Tensor op_state_attend(Run *r, const StateAttend *in)
{
    Tensor out = run_tensor3(r, in->wide ? DT_F64 : DT_F32, r->h, r->n, r->e);
    Flops  cost = state_flops(r, &in->form);

    DISPATCH(r, state_attend, in, &out);
    op_charge(r, FLOP_SCORE, cost.score);
    op_charge(r, FLOP_MIX, cost.mix);
    op_charge(r, FLOP_OVERHEAD, cost.overhead);
    op_traffic(r, bytes_of(in->q) + bytes_of(in->k) + bytes_of(in->v) + bytes_of(in->gates),
               bytes_of(out));
    return out;
}

void op_mix_blocks(Run *r, Tensor perm, Tensor x, int64_t b, Tensor y)
{
    DISPATCH(r, mix_blocks, &perm, &x, b, &y);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)tensor_count(&y) * (double)perm.shape[2]);
    op_traffic(r, bytes_of(perm) + bytes_of(x), bytes_of(y));
}

void op_sinkhorn(Run *r, Tensor log_p, Tensor allowed, bool columns)
{
    DISPATCH(r, sinkhorn, &log_p, &allowed, columns);
    op_charge(r, FLOP_OVERHEAD, 4 * (double)tensor_count(&log_p));
    op_traffic(r, bytes_of(log_p), bytes_of(log_p));
}

Balancing op_balance_begin(Run *r, Tensor log_p, Tensor allowed)
{
    Balancing b = { .log_p = log_p, .allowed = allowed };

    b.row = run_tensor2(r, DT_F64, log_p.shape[0], log_p.shape[1]);
    b.column = run_tensor2(r, DT_F64, log_p.shape[0], log_p.shape[1]);
    return b;
}

void op_balance(Run *r, Balancing *b)
{
    if (!b->begun && r->ops->balance_powers && !tensor_given(&b->allowed) && !run_failed(r)) {
        b->powers = r->ops->balance_powers(r, b);
        op_traffic(r, bytes_of(b->log_p), b->powers ? bytes_of(b->log_p) : 0);
    }
    b->begun = true;
    if (!b->powers) {
        op_sinkhorn(r, b->log_p, b->allowed, false);
        op_sinkhorn(r, b->log_p, b->allowed, true);
        return;
    }
    DISPATCH(r, balance, b);
    op_charge(r, FLOP_OVERHEAD, 8 * (double)tensor_count(&b->log_p));
    op_traffic(r, bytes_of(b->log_p), bytes_of(b->row) + bytes_of(b->column));
}

void op_balance_shares(Run *r, const Balancing *b, Tensor p)
{
    if (!b->powers) {
        op_entries(r, b->log_p, ENTRY_EXP, 0, p);
        return;
    }
    DISPATCH(r, balance_shares, b, &p);
    op_traffic(r, bytes_of(b->log_p), bytes_of(p));
}
