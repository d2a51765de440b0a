/* state_delta.h -- chunks of a state that is corrected; see attn/ops/state.h.
 *
 * Token r of a chunk asks the state with a row a_r and reads it with q_r; it writes the row u_r,
 * which is solved for, along c_r, and replace writes v_r along k_r besides:
 *
 *     delta      a_r = beta_r k_r,   c_r = k_r,       u_r = beta_r v_r - what it asked for
 *     replace    a_r = removal_r,    c_r = erase_r,   u_r = - what it asked for
 *     add        a_r = 0,            c_r = k_r,       u_r = v_r
 *
 *     asked_r = (a_r P_r) S + sum over s < r of (a_r G_rs . c_s) u_s + (a_r G_rs . k_s) v_s
 *     o_r = scale ((q_r P_r) S + sum over s <= r of (q_r G_rs . c_s) u_s + (q_r G_rs . k_s) v_s)
 *     S  <- P_last S + sum over s of (c_s G_last,s)^T u_s + (k_s G_last,s)^T v_s
 *
 * with P and G as in state.c, but replace asks before its own gate: there a_r has G_r-1,s.  Rows
 * of a token lie together, a_r and q_r in `left`, c_s and k_s in `right`, u_s and v_s in `values`,
 * so all sums over tokens are products of matrices; u is solved for SOLVE tokens at a time.
 *
 * Included by state_delta.c and state_delta_wide.c, which compute in Real, float or double:
 *
 *     REAL_MATRIX                        the matrix of a product
 *     real_product(a, b, rows, cols, inner, alpha, beta, c, ldc, writes, panel)
 *         c = alpha a b + beta c, beta 0 or 1; writes above 0: only pairs of tokens with earlier
 *         ones are needed, of so many writes of a token; panel: room for a turned part of b
 *     real_scale(x, count, factor, y)    y = factor x
 *     real_dot(x, y, count)
 *     real_mix(w, x, count, width, y)    y += the sum of w[r] x[r], of rows x[r] of `width`
 *     real_fade(x, gate, count)          x <- x times gates in double
 *     real_gates(gate, count, product, x, near, y, far)
 *         product <- product gate in double, near = x product, far = y / product
 *     STATE_DELTA_NAME                   the function that this file defines
 */
#ifndef ATTN_CPU_STATE_DELTA_H
#define ATTN_CPU_STATE_DELTA_H

#include <string.h>

#include "attn/cpu/cpu.h"
#include "attn/ops/state.h"
#include "core/threads.h"

#define BLOCK 4  /* tokens that are not halved further */
#define LEAST 0x1p-32 /* products of gates that rows are divided by */
#define SOLVE 16 /* tokens whose writes are solved one by one */

typedef struct Job {
    Run               *run;
    const StateAttend *in;
    Tensor            *out;
    int64_t            h, n, d, e, chunk;
    int64_t            writes; /* of a token: 1, or with replace 2 */
    char              *work;   /* [workers][work_size] */
    int64_t            work_size;
} Job;

/* One chunk of a head. */
typedef struct Chunk {
    int64_t head, first, rows;
    Real   *state;  /* [d][e] before the chunk */
    Real   *left;   /* [rows][2][d] a and scale q */
    Real   *right;  /* [rows][writes][d] times the gates of the tokens after them */
    Real   *near;   /* [rows][2][d] */
    Real   *pairs;  /* [rows][2][rows][writes] left . right */
    Real   *values; /* [rows][writes][e] */
    Real   *panel;  /* [d][TILE_KEYS] */
    double *fade;   /* [max(d, rows)] running products */
    double *again;  /* [d] the same */
    double *all;    /* [d] P */
} Chunk;

/* Row r of a tensor f32. */
static void load_row(const Job *job, const Tensor *t, const Chunk *k, int64_t r, Real *to)
{
    const float *x = tensor_row_f32(t, k->head, job->h, k->first + r);

    for (int64_t c = 0; c < t->shape[2]; c++)
        to[c] = (Real)x[c];
}

static const double *delta_gate(const Job *job, const Chunk *k, int64_t r)
{
    const Tensor *gates = &job->in->gates;

    return tensor_row_f64(gates, k->head, job->h, k->first + r);
}

static Real *left_of(const Job *job, const Chunk *k, int64_t r)
{
    return k->left + 2 * r * job->d;
}

static Real *right_of(const Job *job, const Chunk *k, int64_t s)
{
    return k->right + s * job->writes * job->d;
}

/* Products of row 2 r, or 2 r + 1 of the reading one, with those of token s. */
static Real *pair_of(const Job *job, const Chunk *k, int64_t row, int64_t s)
{
    return k->pairs + (row * k->rows + s) * job->writes;
}

static Real *value_of(const Job *job, const Chunk *k, int64_t s)
{
    return k->values + s * job->writes * job->e;
}

static bool replaces(const Job *job)
{
    return job->in->form.rule == STATE_REPLACE;
}

/* ---- a chunk's rows --------------------------------------------------------------- */

static Real beta_of(const Job *job, const Chunk *k, int64_t r)
{
    return (Real)*tensor_row_f64(&job->in->beta, k->head, job->h, k->first + r);
}

/* Bare rows, and the part of u that needs no other token. */
static void load_token(const Job *job, const Chunk *k, int64_t r)
{
    const StateAttend *in = job->in;
    int64_t            d = job->d, e = job->e;
    Real              *left = left_of(job, k, r), *right = right_of(job, k, r);
    Real              *value = value_of(job, k, r);

    load_row(job, &in->q, k, r, left + d);
    real_scale(left + d, d, (Real)in->scale, left + d);
    if (replaces(job)) {
        load_row(job, &in->removal, k, r, left);
        load_row(job, &in->erase, k, r, right);
        load_row(job, &in->k, k, r, right + d);
        memset(value, 0, (size_t)e * sizeof(*value));
        load_row(job, &in->v, k, r, value + e);
    } else if (in->form.rule == STATE_ADD) { /* asks for nothing */
        memset(left, 0, (size_t)d * sizeof(*left));
        load_row(job, &in->k, k, r, right);
        load_row(job, &in->v, k, r, value);
    } else {
        load_row(job, &in->k, k, r, right);
        real_scale(right, d, beta_of(job, k, r), left);
        load_row(job, &in->v, k, r, value);
        real_scale(value, e, beta_of(job, k, r), value);
    }
}

/* ---- products faded by one gate a token --------------------------------------------- */

static void scale_rows(Real *x, int64_t count, double factor)
{
    real_scale(x, count, (Real)factor, x);
}

/* Rows 2 r and 2 r + 1 of the products times G_r; fade holds those of r - 1. */
static void fade_pairs(const Job *job, const Chunk *k, int64_t r)
{
    double gate = job->in->form.gates ? *delta_gate(job, k, r) : 1;
    Real  *asking = pair_of(job, k, 2 * r, 0), *reading = pair_of(job, k, 2 * r + 1, 0);

    if (job->in->form.gates) {
        kernel_at(0)->scale64(k->fade, r, gate);
        real_fade(asking, k->fade, r);
        real_fade(reading, k->fade, r);
    }
    k->fade[r] = 1;
    memset(reading + r + 1, 0, (size_t)(k->rows - r - 1) * sizeof(*reading));
}

/* Delta alone has one gate a token, or none. */
static void pair_by_token(const Job *job, const Chunk *k)
{
    int64_t d = job->d;
    double  product = 1;

    real_product((REAL_MATRIX){ k->left, d, false }, (REAL_MATRIX){ k->right, d, true },
                 2 * k->rows, k->rows, d, 1, 0, k->pairs, k->rows, 1, k->panel);
    for (int64_t r = 0; r < k->rows; r++)
        fade_pairs(job, k, r);
    for (int64_t r = 0; r < k->rows && job->in->form.gates; r++) {
        product *= *delta_gate(job, k, r);
        scale_rows(left_of(job, k, r), 2 * d, product);
        scale_rows(right_of(job, k, r), d, k->fade[r]);
    }
    for (int64_t t = 0; t < d; t++)
        k->all[t] = product;
}

/* ---- products faded by gates of channels --------------------------------------------- */

/* The token's right rows. */
static void fade_right(const Job *job, const Chunk *k, int64_t s, const double *gate)
{
    for (int64_t w = 0; w < job->writes; w++)
        real_fade(right_of(job, k, s) + w * job->d, gate, job->d);
}

static void ones(double *x, int64_t count)
{
    for (int64_t t = 0; t < count; t++)
        x[t] = 1;
}

/* a and q of token r times the products before (replace: before r) and up to r; `product` takes
 * r's gate. */
static void fade_left(const Job *job, const Chunk *k, int64_t r, double *product, Real *left)
{
    int64_t d = job->d;

    if (replaces(job))
        real_fade(left, product, d);
    kernel_at(0)->times64(product, delta_gate(job, k, r), d);
    if (!replaces(job))
        real_fade(left, product, d);
    real_fade(left + d, product, d);
}

/* Row `row` of left with the right rows of token s as they are faded by now. */
static void pair_dots(const Job *job, const Chunk *k, int64_t row, int64_t s)
{
    for (int64_t w = 0; w < job->writes; w++)
        pair_of(job, k, row, s)[w] = real_dot(k->left + row * job->d,
                                              right_of(job, k, s) + w * job->d, job->d);
}

/* Tokens among themselves: each right row goes through the tokens after it. */
static void pair_block(const Job *job, const Chunk *k, int64_t first, int64_t end)
{
    for (int64_t s = first; s < end; s++)
        for (int64_t r = s; r < end; r++) {
            if (r > s && replaces(job))
                pair_dots(job, k, 2 * r, s);
            if (r > s)
                fade_right(job, k, s, delta_gate(job, k, r));
            if (r > s && !replaces(job))
                pair_dots(job, k, 2 * r, s);
            pair_dots(job, k, 2 * r + 1, s);
        }
}

/* The later tokens with the earlier ones, whose right rows then go through the later. */
static void pair_across(const Job *job, const Chunk *k, int64_t first, int64_t middle, int64_t end)
{
    int64_t d = job->d, w = job->writes;

    ones(k->fade, d);
    for (int64_t r = middle; r < end; r++) {
        Real *near = k->near + 2 * (r - middle) * d;

        memcpy(near, left_of(job, k, r), (size_t)(2 * d) * sizeof(*near));
        fade_left(job, k, r, k->fade, near);
    }
    real_product((REAL_MATRIX){ k->near, d, false },
                 (REAL_MATRIX){ right_of(job, k, first), d, true },
                 2 * (end - middle), w * (middle - first), d, 1, 0,
                 pair_of(job, k, 2 * middle, first), w * k->rows, 0, k->panel);
    for (int64_t s = first; s < middle; s++)
        fade_right(job, k, s, k->fade);
}

/* Whether rows of tokens [first, end) may be divided by the products of gates; else gates fade
 * rows one by one. */
static bool may_divide(const Job *job, const Chunk *k, int64_t first, int64_t end)
{
    ones(k->fade, job->d);
    for (int64_t r = first; r < end; r++)
        kernel_at(0)->times64(k->fade, delta_gate(job, k, r), job->d);
    for (int64_t t = 0; t < job->d; t++)
        if (!(k->fade[t] >= LEAST))
            return false;
    return true;
}

/* Token r, the first of them `first`: left rows times products of gates, right rows over these. */
static void divide_token(const Job *job, const Chunk *k, int64_t first, int64_t r)
{
    int64_t d = job->d;
    Real   *near = k->near + 2 * (r - first) * d, *right = right_of(job, k, r);

    memcpy(near, left_of(job, k, r), (size_t)d * sizeof(*near));
    if (replaces(job))
        real_fade(near, k->fade, d);
    real_gates(delta_gate(job, k, r), d, k->fade, left_of(job, k, r) + d, near + d, right, right);
    if (job->writes > 1)
        real_gates(delta_gate(job, k, r), d, k->again, left_of(job, k, r) + d, near + d, right + d,
                   right + d);
    if (!replaces(job))
        real_fade(near, k->fade, d);
}

/* Tokens among themselves by one product; afterwards right rows are times G_last. */
static void pair_at_once(const Job *job, const Chunk *k, int64_t first, int64_t end)
{
    int64_t d = job->d, w = job->writes;

    ones(k->fade, d);
    ones(k->again, d);
    for (int64_t r = first; r < end; r++)
        divide_token(job, k, first, r);
    real_product((REAL_MATRIX){ k->near, d, false },
                 (REAL_MATRIX){ right_of(job, k, first), d, true }, 2 * (end - first),
                 w * (end - first), d, 1, 0, pair_of(job, k, 2 * first, first), w * k->rows, w,
                 k->panel);
    for (int64_t r = first; r < end; r++) {
        memset(pair_of(job, k, 2 * r + 1, r + 1), 0, (size_t)(w * (end - r - 1)) * sizeof(Real));
        fade_right(job, k, r, k->fade);
    }
}

/* Halves and then halves of them; afterwards right rows are times G_last. */
static void pair_range(const Job *job, const Chunk *k, int64_t first, int64_t end)
{
    int64_t middle = (first + end) / 2;

    if (end - first <= BLOCK) {
        pair_block(job, k, first, end);
        return;
    }
    if (may_divide(job, k, first, end)) {
        pair_at_once(job, k, first, end);
        return;
    }
    pair_range(job, k, first, middle);
    pair_across(job, k, first, middle, end);
    pair_range(job, k, middle, end);
}

static void pair_by_channel(const Job *job, const Chunk *k)
{
    int64_t width = job->writes * k->rows;

    memset(k->pairs, 0, (size_t)(2 * k->rows * width) * sizeof(*k->pairs));
    pair_range(job, k, 0, k->rows);
    ones(k->all, job->d);
    for (int64_t r = 0; r < k->rows; r++)
        fade_left(job, k, r, k->all, left_of(job, k, r));
}

/* ---- the chunk -------------------------------------------------------------------------- */

/* u of tokens [first, end), from tokens before `first` and then from each other. */
static void solve_block(const Job *job, const Chunk *k, int64_t first, int64_t end)
{
    int64_t e = job->e, w = job->writes, width = w * k->rows;

    if (first > 0)
        real_product((REAL_MATRIX){ pair_of(job, k, 2 * first, 0), 2 * width, false },
                     (REAL_MATRIX){ k->values, e, false }, end - first, e, w * first, -1, 1,
                     value_of(job, k, first), w * e, 0, k->panel);
    for (int64_t r = first + 1; r < end; r++) {
        Real less[2 * SOLVE];

        for (int64_t x = 0; x < w * (r - first); x++)
            less[x] = -pair_of(job, k, 2 * r, first)[x];
        real_mix(less, value_of(job, k, first), w * (r - first), e, value_of(job, k, r));
    }
}

static void delta_chunk(const Job *job, const Chunk *k)
{
    int64_t d = job->d, e = job->e, w = job->writes, width = w * k->rows;
    Real   *out = (Real *)job->out->data + (k->head * job->n + k->first) * e;
    REAL_MATRIX state = { k->state, e, false }, values = { k->values, e, false };

    for (int64_t r = 0; r < k->rows; r++)
        load_token(job, k, r);
    if (job->in->form.gates == STATE_CHANNEL_GATES)
        pair_by_channel(job, k);
    else
        pair_by_token(job, k);
    real_product((REAL_MATRIX){ k->left, 2 * d, false }, state, k->rows, e, d, -1, 1, k->values,
                 w * e, 0, k->panel);
    for (int64_t r = 0; r < k->rows; r += SOLVE)
        solve_block(job, k, r, min_i64(r + SOLVE, k->rows));
    real_product((REAL_MATRIX){ k->left + d, 2 * d, false }, state, k->rows, e, d, 1, 0, out, e,
                 0, k->panel);
    real_product((REAL_MATRIX){ k->pairs + width, 2 * width, false }, values, k->rows, e, width, 1,
                 1, out, e, w, k->panel);
    for (int64_t t = 0; t < d; t++)
        scale_rows(k->state + t * e, e, k->all[t]);
    real_product((REAL_MATRIX){ k->right, d, true }, values, d, e, width, 1, 1, k->state, e, 0,
                 k->panel);
}

/* ---- all chunks ------------------------------------------------------------------------- */

static Chunk delta_work(const Job *job, int64_t head, int worker)
{
    int64_t c = job->chunk, d = job->d, w = job->writes;
    Chunk   k = { .head = head, .fade = (double *)(job->work + worker * job->work_size) };

    k.all = k.fade + max_i64(c, d);
    k.again = k.all + d;
    k.panel = (Real *)(k.again + d);
    k.state = k.panel + d * TILE_KEYS;
    k.left = k.state + d * job->e;
    k.right = k.left + 2 * c * d;
    k.near = k.right + w * c * d;
    k.pairs = k.near + 2 * c * d;
    k.values = k.pairs + 2 * c * w * c;
    return k;
}

static int64_t delta_bytes(const Job *job)
{
    int64_t c = job->chunk, d = job->d, e = job->e, w = job->writes;
    int64_t reals = d * (e + TILE_KEYS) + (4 + w) * c * d + 2 * w * c * c + w * c * e + LANES;

    return (max_i64(c, d) + 2 * d) * (int64_t)sizeof(double) + reals * (int64_t)sizeof(Real);
}

static void delta_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    Chunk      k = delta_work(job, head, worker);

    memset(k.state, 0, (size_t)(job->d * job->e) * sizeof(*k.state));
    for (k.first = 0; k.first < job->n && !cpu_cancelled(job->run); k.first += job->chunk) {
        k.rows = min_i64(job->chunk, job->n - k.first);
        delta_chunk(job, &k);
    }
}

void STATE_DELTA_NAME(Run *r, const StateAttend *in, Tensor *out)
{
    Job job = { .run = r, .in = in, .out = out, .h = out->shape[0], .n = in->q.shape[1],
                .d = in->q.shape[2], .e = in->v.shape[2],
                .chunk = min_i64(in->form.chunk, in->q.shape[1]),
                .writes = in->form.rule == STATE_REPLACE ? 2 : 1 };

    job.work_size = round_up_to(delta_bytes(&job), 64);
    job.work = cpu_scratch(r, threads_count(r->threads), job.work_size);
    if (job.work)
        threads_run(r->threads, job.h, delta_item, &job);
}

#endif
