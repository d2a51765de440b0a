/* state.c -- the cost of attention by a state, one token of it, and its hidden matrix; see
 * state.h.
 *
 * Row i of the matrix is read from its end: a row vector y [d] begins as q_i and goes back
 * through the tokens,
 *
 *     A_ij = scale beta_j y . k_j,    y <- y T_j
 *     T_j = diag(g)                        add
 *         = (I - beta k^T k) diag(g)       delta
 *         = diag(g) - erase^T removal      replace
 *
 * so no gate is ever divided by, and a cell needs no other row.  Where T is diagonal, products of
 * gates over blocks of SKIP tokens bring a far cell near.
 */
#include "attn/ops/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/ops/state_parts.h"
#include "attn/run.h"

/* ---- cost ------------------------------------------------------------------------- */

/* Levels in use at token or chunk x, and how many the carry joins. */
static double levels_used(int64_t x)
{
    return (double)__builtin_popcountll((unsigned long long)x);
}

static double levels_joined(int64_t x)
{
    return (double)__builtin_ctzll(~(unsigned long long)x);
}

/* Token i, one head. */
static double step_mix(const StateForm *f, double d, double e, int64_t i)
{
    if (f->levels)
        return levels_used(i) * (3 * d * e + 2 * e) + 2 * d + 1 + 2 * e +
               d * e * (1 + levels_joined(i));
    if (f->rule == STATE_REPLACE)
        return 9 * d * e;
    if (f->rule == STATE_DELTA)
        return (f->gates ? 7 : 6) * d * e + 2 * e;
    return (f->gates ? 5 : 4) * d * e;
}

/* Chunk x of c tokens, one head, with one state. */
static Flops chunk_cost(const StateForm *f, double d, double e, double c)
{
    double channels = f->gates > 1 ? 1 : 0, gated = f->gates ? 1 : 0;

    if (f->rule == STATE_REPLACE)
        return (Flops){ .score = 8 * c * c * d,
                        .mix = 6 * c * c * e + c * (c - 1) * e + 8 * c * d * e + c * e + d * e,
                        .overhead = 6 * c * d };
    if (f->rule == STATE_DELTA)
        return (Flops){ .score = 4 * c * c * d,
                        .mix = 2 * c * c * e + c * (c - 1) * e + 6 * c * d * e + 2 * c * e +
                               gated * d * e,
                        .overhead = channels > 0 ? 4 * c * d : gated * (2 * c * c + 3 * c * d) };
    return (Flops){ .score = 2 * c * c * d,
                    .mix = 2 * c * c * e + 4 * c * d * e + gated * d * e,
                    .overhead = channels > 0 ? 3 * c * d : gated * (c * c + 2 * c * d) };
}

static Flops level_chunk_cost(double d, double e, double c, int64_t x)
{
    return (Flops){ .score = 2 * c * c * d,
                    .mix = 2 * c * c * e + levels_used(x) * (2 * c * d * e + 2 * c * e + d * e) +
                           2 * c * d * e + levels_joined(x) * d * e,
                    .overhead = 2 * c * c + 2 * c * d };
}

Flops state_flops(const Run *r, const StateForm *f)
{
    double  d = (double)r->d, e = (double)r->e, h = (double)r->h;
    Flops   sum = { 0 };
    int64_t step = f->chunked ? f->chunk : 1;

    for (int64_t first = 0, x = 0; first < r->n; first += step, x++) {
        double c = (double)min_i64(step, r->n - first);
        Flops  cost = !f->chunked ? (Flops){ .mix = step_mix(f, d, e, x) }
                      : f->levels ? level_chunk_cost(d, e, c, x)
                                  : chunk_cost(f, d, e, c);

        sum = flops_sum(sum, cost);
    }
    return (Flops){ .score = h * sum.score, .mix = h * sum.mix, .overhead = h * sum.overhead };
}

double state_token_flops(const Run *r, const StateForm *f)
{
    int64_t all = f->levels ? (INT64_C(1) << (f->levels - 1)) - 1 : 0;
    double  d = (double)r->d, e = (double)r->e;
    double  carry = f->levels ? levels_joined(all) * d * e : 0;

    return (double)r->h * (step_mix(f, d, e, all) - carry);
}

/* ---- one token -------------------------------------------------------------------- */

static const double *gates_at(const StateAttend *in, int64_t heads, int64_t head, int64_t i)
{
    return (const double *)tensor_head(&in->gates, head, heads) + i * in->gates.stride[1];
}

static double beta_at(const StateAttend *in, int64_t heads, int64_t head, int64_t i)
{
    return *((const double *)tensor_head(&in->beta, head, heads) + i * in->beta.stride[1]);
}

static void widen_row(const Tensor *t, int64_t head, int64_t heads, int64_t i, double *to)
{
    floats_widen(t->dtype, tensor_head(t, head, heads), i * t->stride[1], t->shape[2], to);
}

/* Scales the rows of the state by the gates of its channels. */
static void fade_channels(const double *gate, int64_t d, int64_t e, double *state)
{
    for (int64_t t = 0; t < d; t++)
        for (int64_t c = 0; c < e; c++)
            state[t * e + c] *= gate[t];
}

/* What was written less what the state returned, times beta. */
static void correct_value(double beta, const double *returned, int64_t e, double *value,
                          double *error)
{
    double squares = 0;

    for (int64_t c = 0; c < e; c++) {
        double miss = value[c] - returned[c];

        squares += miss * miss;
        value[c] = beta * miss;
    }
    if (error)
        *error = sqrt(squares);
}

void state_step(const StateAttend *in, int64_t heads, int64_t head, int64_t i, const double *read,
                double *state, double *work, double *out, double *error)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       d = in->k.shape[2], e = in->v.shape[2];
    double       *key = work, *other = key + d, *value = other + d, *returned = value + e;
    double        keep = in->form.gates == STATE_TOKEN_GATES ? *gates_at(in, heads, head, i) : 1;

    widen_row(&in->k, head, heads, i, key);
    widen_row(&in->v, head, heads, i, value);
    if (in->form.rule == STATE_REPLACE) {
        widen_row(&in->removal, head, heads, i, other);
        kernel->recur64(other, key, value, 1, 0, d, e, state, returned);
    }
    if (in->form.gates == STATE_CHANNEL_GATES)
        fade_channels(gates_at(in, heads, head, i), d, e, state);
    if (in->form.rule == STATE_DELTA) {
        kernel->recur64(key, key, value, keep, 0, d, e, state, returned);
        correct_value(beta_at(in, heads, head, i), returned, e, value, error);
        keep = 1;
    }
    if (in->form.rule == STATE_REPLACE) {
        widen_row(&in->erase, head, heads, i, other);
        kernel->recur64(read, other, returned, keep, -1, d, e, state, out);
        keep = 1;
    }
    kernel->recur64(read, key, value, keep, 1, d, e, state, out);
}

/* ---- the hidden matrix --------------------------------------------------------------- */

void state_fade(const double *gate, int64_t width, int64_t d, double *y)
{
    for (int64_t t = 0; t < d; t++)
        y[t] *= gate[width > 1 ? t : 0];
}

static double dot_row(const Tensor *t, const StateMatrix *m, int64_t head, int64_t j,
                      const double *y)
{
    if (t->dtype == DT_F64)
        return kernel_at(0)->dot_double(tensor_row_f64(t, head, m->heads, j), y, t->shape[2]);
    return kernel_at(0)->dot_wide(tensor_row_f32(t, head, m->heads, j), y, t->shape[2]);
}

static void add_row(const Tensor *t, const StateMatrix *m, int64_t head, int64_t j, double factor,
                    double *y)
{
    for (int64_t c = 0; c < t->shape[2]; c++)
        y[c] += factor * tensor_float(t, head, m->heads, j, c);
}

void state_back(const StateMatrix *m, int64_t head, int64_t j, double *y)
{
    const StateAttend *in = &m->in;
    double             erased = 0;

    if (in->form.rule == STATE_DELTA)
        add_row(&in->k, m, head, j,
                -beta_at(in, m->heads, head, j) * dot_row(&in->k, m, head, j, y), y);
    if (in->form.rule == STATE_REPLACE)
        erased = dot_row(&in->erase, m, head, j, y);
    if (in->form.gates)
        state_fade(gates_at(in, m->heads, head, j), in->gates.shape[2], in->k.shape[2], y);
    if (in->form.rule == STATE_REPLACE)
        add_row(&in->removal, m, head, j, -erased, y);
}

/* Of a tensor f64 [h',n,1]; absent: `other`. */
static double entry_of(const Tensor *t, const StateMatrix *m, int64_t head, int64_t i,
                       double other)
{
    return t->data ? *((const double *)tensor_head(t, head, m->heads) + i * t->stride[1]) : other;
}

double state_cell(const StateMatrix *m, int64_t head, int64_t i, int64_t j, const double *y)
{
    const StateAttend *in = &m->in;
    double             cell = in->scale * dot_row(&in->k, m, head, j, y);

    if (in->form.rule == STATE_DELTA)
        cell *= beta_at(in, m->heads, head, j);
    if (in->form.levels)
        cell *= tensor_row_f64(&in->levels, head, m->heads, i)[state_bits(i ^ j)];
    cell *= entry_of(&m->write, m, head, j, 1);
    if (i == j)
        cell += entry_of(&m->before, m, head, i, 0);
    cell /= entry_of(&m->divisor, m, head, i, 1);
    return i == j ? cell + entry_of(&m->after, m, head, i, 0) : cell;
}

void state_query(const StateMatrix *m, int64_t head, int64_t i, double *y)
{
    widen_row(&m->in.q, head, m->heads, i, y);
}

/* Takes y from token `at` to token j. */
static void go_back(const StateMatrix *m, int64_t head, int64_t at, int64_t j, double *y)
{
    int64_t width = m->in.gates.shape[2], d = m->in.k.shape[2];
    int64_t blocks = m->in.k.shape[1] / STATE_SKIP;

    while (at > j) {
        if (m->skip && (at + 1) % STATE_SKIP == 0 && at - STATE_SKIP >= j) {
            state_fade(m->skip + (head * blocks + at / STATE_SKIP) * width, width, d, y);
            at -= STATE_SKIP;
        } else
            state_back(m, head, at--, y);
    }
}

void state_read(const StateMatrix *m, int64_t head, int64_t i, PatternRun keys, float *out)
{
    int64_t d = m->in.k.shape[2], at = i;
    double  near[256], *y = d <= 256 ? near : malloc((size_t)d * sizeof(*y));

    for (int64_t c = 0; c < keys.count; c++) /* without memory nothing is known */
        out[c] = y ? 0 : (float)NAN;
    if (y)
        state_query(m, head, i, y);
    for (int64_t c = keys.count - 1; y && c >= 0; c--) {
        int64_t j = keys.start + c * keys.step;

        if (j > i)
            continue;
        go_back(m, head, at, j, y);
        at = j;
        out[c] = (float)state_cell(m, head, i, j, y);
    }
    if (y != near)
        free(y);
}

void state_skips(Run *r, StateMatrix *m)
{
    const StateAttend *in = &m->in;
    int64_t            width = in->gates.shape[2], blocks = r->n / STATE_SKIP;

    if (in->form.rule != STATE_ADD || !in->gates.data || !blocks)
        return;
    m->skip = run_alloc(r, r->h * blocks * width, sizeof(*m->skip));
    for (int64_t x = 0; x < r->h * blocks && !run_failed(r); x++) {
        double *product = m->skip + x * width;

        for (int64_t t = 0; t < width; t++)
            product[t] = 1;
        for (int64_t i = 0; i < STATE_SKIP; i++)
            state_fade(gates_at(in, r->h, x / blocks, x % blocks * STATE_SKIP + i), width, width,
                       product);
    }
}
