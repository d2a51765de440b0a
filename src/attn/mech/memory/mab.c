/* mab.c -- see mab.h. */
#include "attn/mech/memory/mab.h"

#include <math.h>
#include <stdio.h>

#include "attn/run.h"

#define LAYER_EPS 1e-5

static Tensor matrix(Run *r, const Mab *m, const char *name, Tensor given, int64_t rows)
{
    char full[32];

    snprintf(full, sizeof(full), "%s%s", name, m->suffix);
    return dense_matrix(r, full, given, rows, m->dim, 1 / sqrt((double)rows));
}

static Tensor vector(Run *r, const Mab *m, const char *name, Tensor given)
{
    char full[32];

    snprintf(full, sizeof(full), "%s%s", name, m->suffix);
    return dense_vector(r, full, given, m->dim);
}

static Tensor layer(Run *r, const Mab *m, const char *w_name, Tensor w, const char *b_name,
                    Tensor b, Tensor x)
{
    return dense_layer(r, x, matrix(r, m, w_name, w, x.shape[2]), vector(r, m, b_name, b),
                       (Tensor){ .rank = 0 }, FLOP_OVERHEAD);
}

static Tensor norm(Run *r, const Mab *m, const char *g_name, Tensor g, const char *b_name,
                   Tensor b, Tensor x)
{
    return m->norm ? dense_norm(r, x, vector(r, m, g_name, g), vector(r, m, b_name, b), LAYER_EPS,
                                FLOP_APART)
                   : x;
}

/* [1,rows,dim] seen as [heads,rows,dim/heads]; borrows. */
static Tensor by_head(const Mab *m, Tensor x)
{
    x.shape[0] = m->heads;
    x.shape[2] = x.stride[0] = m->dim / m->heads;
    return x;
}

static MabResult attend(Run *r, const Mab *m, Tensor q, Tensor k, Tensor v)
{
    MabResult out = { .out = run_tensor3(r, DT_F64, 1, q.shape[1], m->dim),
                      .weights = run_tensor3(r, DT_F64, m->heads, q.shape[1], k.shape[1]) };

    op_gemm(r, by_head(m, q), false, by_head(m, k), true, m->scale, 0, out.weights, FLOP_SCORE);
    op_softmax(r, out.weights);
    op_gemm(r, out.weights, false, by_head(m, v), false, 1, 0, by_head(m, out.out), FLOP_MIX);
    return out;
}

MabResult mab_apply(Run *r, const Mab *m, Tensor xq, Tensor xkv)
{
    const MabTensors *t = &m->given;
    Tensor    q = layer(r, m, "wq", t->wq, "bq", t->bq, xq);
    Tensor    k = layer(r, m, "wk", t->wk, "bk", t->bk, xkv);
    Tensor    v = layer(r, m, "wv", t->wv, "bv", t->bv, xkv), inner;
    MabResult result = attend(r, m, q, k, v);
    Tensor    o = result.out;

    if (m->paper)
        o = dense_add(r, layer(r, m, "wo", t->wo, "bo", t->bo, o), xq);
    else
        o = dense_add(r, o, q);
    o = norm(r, m, "ln0_g", t->ln0_g, "ln0_b", t->ln0_b, o);
    if (m->ff) {
        inner = m->paper ? layer(r, m, "wf", t->wf, "bf", t->bf, o)
                         : layer(r, m, "wo", t->wo, "bo", t->bo, o);
        o = dense_add(r, dense_activate(r, inner, ACTIVATE_RELU), o);
    }
    result.out = norm(r, m, "ln1_g", t->ln1_g, "ln1_b", t->ln1_b, o);
    return result;
}

Flops mab_flops(const Mab *m, int64_t rows, int64_t width, int64_t keys, int64_t key_width,
                Flops sum)
{
    double dim = (double)m->dim, cells = (double)rows * (double)keys;
    double after = (m->paper ? 1 : 0) + (m->ff ? 1 : 0);

    sum.score += 2 * cells * dim;
    sum.mix += 2 * cells * dim;
    sum.overhead += FLOPS_ROW_SOFTMAX * (double)m->heads * cells +
                    2 * dim * ((double)rows * (double)width + 2 * (double)keys * (double)key_width +
                               after * (double)rows * dim);
    return sum;
}
