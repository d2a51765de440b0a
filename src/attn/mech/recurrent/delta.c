/* delta.c -- see delta.h. */
#include "attn/mech/recurrent/delta.h"

#include "attn/run.h"

#define UNIT_EPS 1e-6 /* under the root of a length */

enum { KEYS_UNIT, KEYS_AS_GIVEN };
const char *const delta_key_norms[] = { "l2", "none", NULL };

/* f64 [h',n,1] */
static Tensor delta_beta(Run *r, const DeltaParams *p, const RecurrentInput *in)
{
    const EntryStep steps[] = { { .kind = ENTRY_SIGMOID },
                                { .kind = ENTRY_SCALE, .by = p->negative_eigenvalues ? 2 : 1 } };
    Tensor          beta = recurrent_given(r, "beta", p->beta, 0, GATE_TWO);

    if (beta.data || run_failed(r))
        return beta;
    beta = recurrent_logits(r, in, "beta_weight", p->beta_weight, 0);
    recurrent_steps(r, beta, recurrent_bias(r, "beta_bias", p->beta_bias, 0), steps, 2);
    return beta;
}

/* Warns of the first token whose write makes the state grow: the factor along its key, which is
 * 1 - beta |k|^2, is below -1. */
static void warn_of_growth(Run *r, const StateAttend *s)
{
    int64_t rows = r->n, d = r->d;

    op_wait(r, "whether the state grows");
    for (int64_t i = 0; i < rows && !run_failed(r); i++)
        for (int64_t t = 0; t < r->h; t++) {
            const float *key = tensor_row_f32(&s->k, t, r->h, i);
            double       beta = tensor_row_f64(&s->beta, t, r->h, i)[0], squares = 0;

            for (int64_t c = 0; c < d; c++)
                squares += (double)key[c] * (double)key[c];
            if (beta * squares <= 2)
                continue;
            run_warn(r, "%s: the state grows: beta |k|^2 is above 2, first at token %lld of head "
                     "%lld, where it is %.4g; qk_norm=l2 keeps it below", r->mechanism->id,
                     (long long)i, (long long)t, beta * squares);
            return;
        }
}

void delta_inputs(Run *r, const DeltaParams *p, const RecurrentInput *in, bool norm,
                  StateAttend *s)
{
    s->v = in->v;
    s->scale = in->scale;
    s->wide = norm || p->qk_norm == KEYS_AS_GIVEN;
    s->beta = delta_beta(r, p, in);
    s->q = p->qk_norm == KEYS_UNIT ? op_unit_rows(r, in->q, UNIT_EPS) : in->q;
    s->k = p->qk_norm == KEYS_UNIT ? op_unit_rows(r, in->k, UNIT_EPS) : in->k;
    op_charge(r, FLOP_OVERHEAD,
              p->qk_norm == KEYS_UNIT ? (double)(r->h * r->n) * (6 * (double)r->d + 6) : 0);
    if (p->qk_norm == KEYS_AS_GIVEN && !run_failed(r))
        warn_of_growth(r, s);
}

double delta_flops(const Run *r, const DeltaParams *p)
{
    double keys = p->qk_norm == KEYS_UNIT ? 6 * (double)r->d + 6 : 0;

    return (double)(r->h * r->n) * keys + (p->beta.data ? 0 : recurrent_logit_flops(r, 0));
}

void delta_show(Run *r, const StateAttend *s)
{
    Tensor keys = s->k, beta;

    if (!run_wants_views(r))
        return;
    beta = run_tensor3(r, DT_F32, r->h, r->n, 1);
    op_entries(r, s->beta, ENTRY_CAST, 0, beta);
    view_tensor(r, "beta", VIEW_TENSOR, tensor_of(DT_F32, 2, beta.shape, beta.data), "head",
                "token");
    if (keys.shape[0] != r->h) { /* shared by groups of heads */
        keys = run_tensor3(r, DT_F32, r->h, r->n, r->d);
        op_entries(r, s->k, ENTRY_CAST, 0, keys);
    }
    view_tensor(r, "keys", VIEW_FEATURES, keys, "token", "channel");
}
