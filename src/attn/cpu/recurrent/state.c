/* state.c -- attention by a state that forgets; see attn/ops/state.h.
 *
 * Recurrent: token by token, in double.  Chunked, c tokens at once, in float:
 *
 *     P_r = g_0 .. g_r,   G_rs = g_s+1 .. g_r        of the tokens of the chunk
 *     o_r = scale ((q_r P_r) S + sum over s <= r of (q_r G_rs . k_s) v_s)
 *     S  <- P_last S + sum over s of (k_s G_last,s)^T v_s
 *
 * G is never a quotient, since gates may be 0 and products may underflow.  With one gate a token,
 * row r of G is row r - 1 times g_r.  With gates of channels the chunk is halved again and again:
 * G between the halves is the gates after s in the earlier one, times those up to r in the later,
 * and both factors are products.
 */
#include "attn/cpu/cpu.h"

#include "attn/ops/state.h"
#include "core/threads.h"

#define BLOCK 4 /* tokens that are not halved further */

typedef struct Job {
    Run               *run;
    const StateAttend *in;
    Tensor            *out;
    int64_t            h, n, d, e, chunk;
    char              *work; /* [workers][work_size] */
    int64_t            work_size;
} Job;

static float *out_of(const Job *job, int64_t head, int64_t i)
{
    return tensor_f32(job->out) + (head * job->n + i) * job->e;
}

static const double *gate_of(const Job *job, int64_t head, int64_t i)
{
    const Tensor *gates = &job->in->gates;

    return (const double *)tensor_head(gates, head, job->h) + i * gates->stride[1];
}

static bool take_work(Job *job, int64_t bytes)
{
    job->work_size = round_up_to(bytes, 64);
    job->work = cpu_scratch(job->run, threads_count(job->run->threads), job->work_size);
    return job->work != NULL;
}

static void store_row(const Job *job, int64_t head, int64_t i, const double *sums)
{
    int64_t at = (head * job->n + i) * job->e;

    for (int64_t c = 0; c < job->e; c++) {
        double x = job->in->scale * sums[c];

        if (job->in->wide)
            tensor_f64(job->out)[at + c] = x;
        else
            tensor_f32(job->out)[at + c] = (float)x;
    }
}

/* ---- token by token --------------------------------------------------------------- */

static void recurrent_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    int64_t    d = job->d, e = job->e;
    double    *state = (double *)(job->work + worker * job->work_size), *query = state + d * e;
    double    *sums = query + d, *work = sums + e;

    memset(state, 0, (size_t)(d * e) * sizeof(*state));
    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i++) {
        floats_widen(DT_F32, tensor_row_f32(&job->in->q, head, job->h, i), 0, d, query);
        state_step(job->in, job->h, head, i, query, state, work, sums, NULL);
        store_row(job, head, i, sums);
    }
}

static void recurrent(Job *job)
{
    int64_t doubles = job->d * job->e + 3 * (job->d + job->e);

    if (take_work(job, doubles * (int64_t)sizeof(double)))
        threads_run(job->run->threads, job->h, recurrent_item, job);
}

/* ---- chunk by chunk ---------------------------------------------------------------- */

/* One chunk of a head. */
typedef struct Chunk {
    int64_t head, first, rows;
    float  *state;         /* [d][e] before the chunk */
    float  *inner;         /* [rows][rows] weights inside */
    float  *query, *near;  /* [rows][d] scale q, and times P; of a block, times its gates */
    float  *key;           /* [rows][d] keys times the gates of the tokens after them */
    double *fade;          /* [max(d, rows)] running products */
    double *all;           /* [d] P */
} Chunk;

static int64_t chunk_floats(const Job *job)
{
    int64_t c = job->chunk, d = job->d;

    return d * job->e + c * c + 3 * c * d + LANES;
}

static Chunk chunk_of(const Job *job, int64_t head, int worker)
{
    char   *work = job->work + worker * job->work_size;
    int64_t c = job->chunk, d = job->d, widest = max_i64(c, d);
    Chunk   k = { .head = head, .fade = (double *)work };

    k.all = k.fade + widest;
    k.state = (float *)(k.all + d);
    k.inner = k.state + d * job->e;
    k.query = k.inner + c * c;
    k.near = k.query + c * d;
    k.key = k.near + c * d;
    return k;
}

static void scale_row(const float *x, int64_t count, float factor, float *y)
{
    kernel_at(0)->scale(x, count, factor, y);
}

/* Scaled queries and bare keys. */
static void load_chunk(const Job *job, const Chunk *k)
{
    for (int64_t r = 0; r < k->rows; r++) {
        const float *q = tensor_row_f32(&job->in->q, k->head, job->h, k->first + r);
        const float *key = tensor_row_f32(&job->in->k, k->head, job->h, k->first + r);

        scale_row(q, job->d, (float)job->in->scale, k->query + r * job->d);
        memcpy(k->key + r * job->d, key, (size_t)job->d * sizeof(float));
    }
}

/* inner[r][s] *= G_rs, and 0 above the diagonal. */
static void fade_inner(const Job *job, const Chunk *k)
{
    for (int64_t r = 0; r < k->rows; r++) {
        double gate = job->in->form.gates ? *gate_of(job, k->head, k->first + r) : 1;
        float *row = k->inner + r * k->rows;

        if (job->in->form.gates) {
            kernel_at(0)->scale64(k->fade, r, gate);
            kernel_at(0)->fade(row, k->fade, r);
        }
        k->fade[r] = 1;
        memset(row + r + 1, 0, (size_t)(k->rows - r - 1) * sizeof(*row));
    }
}

/* One gate a token: weights, queries times P, keys times G_last, and P. */
static void weigh_by_token(const Job *job, const Chunk *k)
{
    int64_t d = job->d;
    double  product = 1;

    cpu_sgemm((Matrix){ k->query, d, false }, (Matrix){ k->key, d, true }, k->rows, k->rows, d, 1,
              0, k->inner, k->rows);
    fade_inner(job, k);
    for (int64_t r = 0; r < k->rows && job->in->form.gates; r++) {
        product *= *gate_of(job, k->head, k->first + r);
        scale_row(k->query + r * d, d, (float)product, k->query + r * d);
        scale_row(k->key + r * d, d, (float)k->fade[r], k->key + r * d);
    }
    for (int64_t t = 0; t < d; t++)
        k->all[t] = product;
}

/* x <- x times gates, both [d]. */
static void fade_row(const double *gate, int64_t d, float *x)
{
    kernel_at(0)->fade(x, gate, d);
}

static void fade_product(const double *gate, int64_t d, double *product)
{
    kernel_at(0)->times64(product, gate, d);
}

static void fill_ones(double *x, int64_t count)
{
    for (int64_t t = 0; t < count; t++)
        x[t] = 1;
}

/* Weights of tokens first .. first + rows - 1 among themselves: each key goes through the tokens
 * after it. */
static void weigh_block(const Job *job, const Chunk *k, int64_t first, int64_t rows)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       d = job->d;

    for (int64_t s = first; s < first + rows; s++)
        for (int64_t r = s; r < first + rows; r++) {
            float *key = k->key + s * d;

            if (r > s)
                fade_row(gate_of(job, k->head, k->first + r), d, key);
            kernel->dots(k->query + r * d, key, d, (const int32_t[]){ 0 }, 1, d,
                         k->inner + r * k->rows + s);
        }
}

/* Weights that the later half has on the earlier one, whose keys then go through the later. */
static void weigh_across(const Job *job, const Chunk *k, int64_t first, int64_t middle,
                         int64_t end)
{
    int64_t d = job->d;

    fill_ones(k->fade, d);
    for (int64_t r = middle; r < end; r++) {
        float *near = k->near + (r - middle) * d;

        fade_product(gate_of(job, k->head, k->first + r), d, k->fade);
        memcpy(near, k->query + r * d, (size_t)d * sizeof(float));
        fade_row(k->fade, d, near);
    }
    cpu_sgemm((Matrix){ k->near, d, false }, (Matrix){ k->key + first * d, d, true },
              end - middle, middle - first, d, 1, 0, k->inner + middle * k->rows + first, k->rows);
    for (int64_t s = first; s < middle; s++)
        fade_row(k->fade, d, k->key + s * d);
}

/* Halves and then halves of them; afterwards key s is times G of the last token and s. */
static void weigh_range(const Job *job, const Chunk *k, int64_t first, int64_t end)
{
    int64_t middle = (first + end) / 2;

    if (end - first <= BLOCK) {
        weigh_block(job, k, first, end - first);
        return;
    }
    weigh_range(job, k, first, middle);
    weigh_across(job, k, first, middle, end);
    weigh_range(job, k, middle, end);
}

/* Gates of channels. */
static void weigh_by_channel(const Job *job, const Chunk *k)
{
    memset(k->inner, 0, (size_t)(k->rows * k->rows) * sizeof(float));
    weigh_range(job, k, 0, k->rows);
    fill_ones(k->all, job->d);
    for (int64_t r = 0; r < k->rows; r++) {
        fade_product(gate_of(job, k->head, k->first + r), job->d, k->all);
        fade_row(k->all, job->d, k->query + r * job->d);
    }
}

static void take_chunk(const Job *job, const Chunk *k)
{
    int64_t d = job->d, e = job->e;
    float  *out = out_of(job, k->head, k->first);
    Matrix  v = { tensor_row_f32(&job->in->v, k->head, job->h, k->first), job->in->v.stride[1],
                  false };

    load_chunk(job, k);
    if (job->in->form.gates == STATE_CHANNEL_GATES)
        weigh_by_channel(job, k);
    else
        weigh_by_token(job, k);
    cpu_sgemm((Matrix){ k->inner, k->rows, false }, v, k->rows, e, k->rows, 1, 0, out, e);
    cpu_sgemm((Matrix){ k->query, d, false }, (Matrix){ k->state, e, false }, k->rows, e, d, 1, 1,
              out, e);
    for (int64_t t = 0; t < d; t++)
        scale_row(k->state + t * e, e, (float)k->all[t], k->state + t * e);
    cpu_sgemm((Matrix){ k->key, d, true }, v, d, e, k->rows, 1, 1, k->state, e);
}

static void chunked_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    Chunk      k = chunk_of(job, head, worker);

    memset(k.state, 0, (size_t)(job->d * job->e) * sizeof(float));
    for (k.first = 0; k.first < job->n && !cpu_cancelled(job->run); k.first += job->chunk) {
        k.rows = min_i64(job->chunk, job->n - k.first);
        take_chunk(job, &k);
    }
}

static void chunked(Job *job)
{
    int64_t doubles = max_i64(job->chunk, job->d) + job->d;

    if (take_work(job, doubles * (int64_t)sizeof(double) +
                           chunk_floats(job) * (int64_t)sizeof(float)))
        threads_run(job->run->threads, job->h, chunked_item, job);
}

void cpu_state_attend(Run *r, const StateAttend *in, Tensor *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .in = in, .out = out, .h = out->shape[0], .n = in->q.shape[1],
                      .d = in->q.shape[2], .e = in->v.shape[2],
                      .chunk = min_i64(in->form.chunk, in->q.shape[1]) };

    if (!cpu_blas(r))
        return;
    if (in->form.levels)
        cpu_state_levels(r, in, out);
    else if (in->form.chunked && in->wide)
        cpu_state_delta_wide(r, in, out);
    else if (in->form.chunked && in->form.rule == STATE_ADD)
        chunked(&job);
    else if (in->form.chunked)
        cpu_state_delta(r, in, out);
    else
        recurrent(&job);
    arena_release(r->arena, mark);
}
