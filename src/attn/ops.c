/* ops.c -- the front of the operations: allocate, charge, dispatch; see ops.h. */
#include "attn/ops.h"

#include "attn/run.h"

static double bytes_of(Tensor t)
{
    return t.data ? (double)tensor_bytes(&t) : 0;
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
    r->ops->attend(r, in, pattern, &out, &cells);
    op_charge(r, FLOP_SCORE, 2 * cells * (double)r->d);
    op_charge(r, FLOP_MIX, 2 * cells * (double)r->e);
    op_charge(r, FLOP_OVERHEAD, FLOPS_SOFTMAX * cells);
    op_charge(r, FLOP_POSITION, in->cell_flops * cells);
    op_traffic(r, bytes_of(in->q) + bytes_of(in->k) + bytes_of(in->v),
               bytes_of(out.out) + bytes_of(out.lse));
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
    r->ops->group_attend(r, g, &out);
    pairs = group_pairs(g, r->h);
    op_charge(r, FLOP_SCORE, 2 * pairs * (double)g->q.shape[2]);
    op_charge(r, FLOP_MIX, 2 * (pairs - skipped_pairs(g, r->h)) * (double)e);
    op_charge(r, FLOP_OVERHEAD, FLOPS_SOFTMAX * pairs);
    op_traffic(r, bytes_of(g->q) + bytes_of(g->k) + bytes_of(g->v), bytes_of(out.out));
    return out;
}

int64_t row_attend_keys(const Run *r, const RowAttend *in, int64_t i)
{
    int64_t m = in->k.shape[1], seen = i + r->q_offset + 1;

    return !in->causal || seen > m ? m : seen < 0 ? 0 : seen;
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
    r->ops->row_attend(r, in, &out);
    if (run_failed(r))
        return out;
    charge_rows(r, in, &out);
    op_traffic(r, bytes_of(in->q) + bytes_of(in->k) + bytes_of(in->v), bytes_of(out.out));
    return out;
}

void op_gemm(Run *r, Tensor a, bool ta, Tensor b, bool tb, double alpha, double beta, Tensor c,
             FlopClass charge)
{
    if (run_failed(r))
        return;
    r->ops->gemm(r, &a, ta, &b, tb, alpha, beta, &c);
    op_charge(r, charge, 2 * (double)tensor_count(&c) * (double)a.shape[ta ? 1 : 2]);
    op_traffic(r, bytes_of(a) + bytes_of(b), bytes_of(c));
}

Tensor op_dots64(Run *r, Tensor x, Tensor w)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, x.shape[1], w.shape[2]);

    if (run_failed(r))
        return y;
    r->ops->dots64(r, &x, &w, &y);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)tensor_count(&y) * (double)x.shape[2]);
    op_traffic(r, bytes_of(x) + bytes_of(w), bytes_of(y));
    return y;
}

Tensor op_argmax(Run *r, Tensor x, bool with_negative)
{
    Tensor index = run_tensor2(r, DT_I32, x.shape[0], x.shape[1]);

    if (run_failed(r))
        return index;
    r->ops->argmax(r, &x, with_negative, &index);
    op_traffic(r, bytes_of(x), bytes_of(index));
    return index;
}

Tensor op_top_k(Run *r, Tensor x, int64_t k)
{
    Tensor index = run_tensor3(r, DT_I32, x.shape[0], x.shape[2], k);

    if (run_failed(r))
        return index;
    r->ops->top_k(r, &x, k, &index);
    op_traffic(r, bytes_of(x), bytes_of(index));
    return index;
}

Tensor op_sort(Run *r, Tensor key)
{
    int64_t n = key.shape[key.rank - 1];
    Tensor  order = key.rank == 3 ? run_tensor3(r, DT_I32, key.shape[0], key.shape[1], n)
                                  : run_tensor2(r, DT_I32, key.shape[0], n);

    if (run_failed(r))
        return order;
    r->ops->sort(r, &key, &order);
    op_traffic(r, bytes_of(key), bytes_of(order));
    return order;
}

Tensor op_normalise(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    Tensor y;

    if (kind == NORMALISE_NONE)
        return x;
    y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);
    if (run_failed(r))
        return y;
    r->ops->normalise(r, &x, (int)kind, eps, &y);
    op_charge(r, FLOP_OVERHEAD, 5 * (double)tensor_count(&y));
    op_traffic(r, bytes_of(x), bytes_of(y));
    return y;
}

static int64_t feature_count(const Tensor *x, const Tensor *w, FeatureMap map)
{
    if (!map.project)
        return x->shape[2];
    return map.kind == FEATURE_POSITIVE || map.kind == FEATURE_RELU ? w->shape[1]
                                                                   : 2 * w->shape[1];
}

Tensor op_features(Run *r, Tensor x, Tensor w, FeatureMap map, bool keys)
{
    int64_t f = feature_count(&x, &w, map);
    Tensor  y = run_tensor3(r, DT_F32, r->h, x.shape[1], f);
    double  rows = (double)r->h * (double)x.shape[1];

    if (run_failed(r))
        return y;
    r->ops->features(r, &x, &w, &map, keys, &y);
    if (map.project)
        op_charge(r, FLOP_OVERHEAD, 2 * rows * (double)w.shape[1] * (double)x.shape[2]);
    op_charge(r, FLOP_OVERHEAD, 5 * rows * (double)f);
    op_traffic(r, bytes_of(x) + bytes_of(w), bytes_of(y));
    return y;
}

/* Charges of the spec (`linear`): the state and its read, or the dense form. */
static void charge_linear(Run *r, const LinearAttend *in)
{
    double h = (double)r->h, n = (double)in->fq.shape[1], m = (double)in->fk.shape[1];
    double f = (double)in->fq.shape[2], e = (double)in->v.shape[2];

    if (in->form == LINEAR_MATRIX) {
        double cells = in->causal ? n * (n + 1) / 2 : n * m;

        op_charge(r, FLOP_SCORE, 2 * h * cells * f);
        op_charge(r, FLOP_MIX, 2 * h * cells * e);
        op_charge(r, FLOP_OVERHEAD, 2 * h * cells);
        return;
    }
    op_charge(r, FLOP_MIX, h * (2 * m * f * e + 2 * n * f * e));
    op_charge(r, FLOP_OVERHEAD, h * (m * f + 2 * n * f + n * e));
    if (in->causal && in->form == LINEAR_CHUNKED) {
        op_charge(r, FLOP_SCORE, h * n * (double)in->chunk * 2 * f);
        op_charge(r, FLOP_MIX, h * n * (double)in->chunk * 2 * e);
    }
}

LinearResult op_linear_attend(Run *r, const LinearAttend *in)
{
    int64_t      n = in->fq.shape[1], f = in->fq.shape[2], e = in->v.shape[2];
    LinearResult out = { .out = run_tensor3(r, DT_F32, r->h, n, e),
                         .memory = run_tensor3(r, DT_F32, r->h, f, e),
                         .denominator = run_tensor2(r, DT_F32, r->h, n),
                         .divisor = run_tensor2(r, DT_F32, r->h, n) };

    if (run_failed(r))
        return out;
    r->ops->linear_attend(r, in, &out);
    charge_linear(r, in);
    op_traffic(r, bytes_of(in->fq) + bytes_of(in->fk) + bytes_of(in->v), bytes_of(out.out));
    return out;
}

void op_sinkhorn(Run *r, Tensor log_p, Tensor allowed, bool columns)
{
    if (run_failed(r))
        return;
    r->ops->sinkhorn(r, &log_p, &allowed, columns);
    op_charge(r, FLOP_OVERHEAD, 4 * (double)tensor_count(&log_p));
    op_traffic(r, bytes_of(log_p), bytes_of(log_p));
}
