/* state.c -- attention by a state that forgets; see attn/ops/state.h.
 *
 * Recurrent: token by token, in double.  Chunked, c tokens at once, in float:
 *
 *     P_r = g_0 .. g_r,   G_rs = g_s+1 .. g_r        of the tokens of the chunk
 *     o_r = scale ((q_r P_r) S + sum over s <= r of (q_r G_rs . k_s) v_s)
 *     S  <- P_last S + sum over s of (k_s G_last,s)^T v_s
 *
 * Chunks are products of small matrices, which read keys that were turned into a panel.
 *
 * Where no product of the chunk's gates is below LEAST, G_rs is P_r / P_s: queries times P, keys
 * divided by it, and no weight is faded by itself.  Each factor is rounded once from double, and
 * each term of a sum keeps its own relative error.  Smaller products, and gates of 0, are never
 * divided by.  Then with one gate a token, row r of G is row r - 1 times g_r.  With gates of
 * channels the chunk is halved until a part has no such product: G between the halves is the gates
 * after s in the earlier one, times those up to r in the later, and both factors are products.
 */
#include "attn/cpu/cpu.h"

#include "attn/ops/state.h"
#include "core/threads.h"

#define BLOCK 4       /* tokens that are not halved further */
#define LEAST 0x1p-32 /* keys grow by its inverse at most */

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
    int64_t ld;     /* of inner */
    float  *inner;  /* [rows][rows] weights inside */
    float  *query;  /* [rows][d] q times P */
    float  *state;  /* [d][e] before the chunk */
    float  *key;    /* [rows][d] keys times the gates of the tokens after them, or over P */
    float  *near;   /* [rows][d] of a part of the chunk: q times its gates */
    float  *panel;  /* [d][TILE_KEYS] of keys */
    double *fade;   /* [max(d, rows)] running products */
    double *all;    /* [d] P */
} Chunk;

static int64_t inner_ld(const Job *job)
{
    return job->chunk + LANES; /* no power of two: rows would share a set of the cache */
}

static int64_t chunk_floats(const Job *job)
{
    int64_t c = job->chunk, d = job->d;

    return c * inner_ld(job) + d * job->e + 3 * c * d + d * TILE_KEYS;
}

static Chunk chunk_of(const Job *job, int64_t head, int64_t first, int worker)
{
    char   *work = job->work + worker * job->work_size;
    int64_t c = job->chunk, d = job->d;
    Chunk   k = { .head = head, .first = first, .rows = min_i64(c, job->n - first),
                  .ld = inner_ld(job), .fade = (double *)work };

    k.all = k.fade + max_i64(c, d);
    k.panel = (float *)(k.all + d);
    k.state = k.panel + d * TILE_KEYS;
    k.query = k.state + d * job->e;
    k.key = k.query + c * d;
    k.near = k.key + c * d;
    k.inner = k.near + c * d;
    return k;
}

static const float *query_of(const Job *job, const Chunk *k, int64_t r)
{
    return tensor_row_f32(&job->in->q, k->head, job->h, k->first + r);
}

static const float *key_of(const Job *job, const Chunk *k, int64_t r)
{
    return tensor_row_f32(&job->in->k, k->head, job->h, k->first + r);
}

static void scale_row(const float *x, int64_t count, double factor, float *y)
{
    kernel_at(0)->scale(x, count, (float)factor, y);
}

static void fill_ones(double *x, int64_t count)
{
    for (int64_t t = 0; t < count; t++)
        x[t] = 1;
}

static double token_gate(const Job *job, const Chunk *k, int64_t r)
{
    return job->in->form.gates ? *gate_of(job, k->head, k->first + r) : 1;
}

/* Columns of weights: rows [from, end) of near, from the one that belongs to token `from`, with
 * keys [first, first + count), at most TILE_KEYS.  same: the tokens are the keys', so those later
 * than a row are not needed. */
static void multiply_panel(const Job *job, const Chunk *k, const float *near, int64_t from,
                           int64_t end, int64_t first, int64_t count, bool same)
{
    pack_panel(k->key + first * job->d, job->d, count, job->d, k->panel);
    cpu_product(&(SmallProduct){ .a = near, .lda = job->d, .step = 1, .b = k->panel,
                                 .ldb = TILE_KEYS, .rows = end - from, .cols = count,
                                 .inner = job->d, .alpha = 1, .c = k->inner + from * k->ld + first,
                                 .ldc = k->ld, .rows_each = 1, .cols_each = same });
}

/* Weights of queries near with keys, of the tokens from `first` on. */
static void multiply(const Job *job, const Chunk *k, const float *near, int64_t first,
                     int64_t rows)
{
    for (int64_t at = 0; at < rows; at += TILE_KEYS)
        multiply_panel(job, k, near + at * job->d, first + at, first + rows, first + at,
                       min_i64(TILE_KEYS, rows - at), true);
}

/* ---- one gate a token -------------------------------------------------------------------- */

/* inner[r][s] = q_r . k_s G_rs */
static void weigh_faded(const Job *job, const Chunk *k)
{
    int64_t d = job->d;

    for (int64_t r = 0; r < k->rows; r++)
        memcpy(k->key + r * d, key_of(job, k, r), (size_t)d * sizeof(*k->key));
    for (int64_t r = 0; r < k->rows; r++)
        memcpy(k->near + r * d, query_of(job, k, r), (size_t)d * sizeof(*k->near));
    multiply(job, k, k->near, 0, k->rows);
    for (int64_t r = 0; r < k->rows; r++) {
        kernel_at(0)->scale64(k->fade, r, token_gate(job, k, r));
        kernel_at(0)->fade(k->inner + r * k->ld, k->fade, r);
        k->fade[r] = 1;
    }
    for (int64_t r = 0; r < k->rows; r++)
        scale_row(k->key + r * d, d, k->fade[r], k->key + r * d);
}

/* Weights, queries times P, and P.  Whether keys are over P; else they are times G_last. */
static bool weigh_by_token(const Job *job, const Chunk *k)
{
    int64_t d = job->d;
    double  product = 1;
    bool    over;

    for (int64_t r = 0; r < k->rows; r++) {
        product *= token_gate(job, k, r);
        scale_row(query_of(job, k, r), d, product, k->query + r * d);
        if (product >= LEAST)
            scale_row(key_of(job, k, r), d, 1 / product, k->key + r * d);
    }
    for (int64_t t = 0; t < d; t++)
        k->all[t] = product;
    over = product >= LEAST;
    if (over)
        multiply(job, k, k->query, 0, k->rows);
    else
        weigh_faded(job, k);
    return over;
}

/* ---- gates of channels ---------------------------------------------------------------------- */

/* x <- x times gates, both [d]. */
static void fade_row(const double *gate, int64_t d, float *x)
{
    kernel_at(0)->fade(x, gate, d);
}

static void fade_product(const double *gate, int64_t d, double *product)
{
    kernel_at(0)->times64(product, gate, d);
}

/* Tokens [first, end) at once: product, queries times the products of gates up to them, keys over
 * these, and weights.  False: a product is too small to divide by. */
static bool weigh_at_once(const Job *job, const Chunk *k, int64_t first, int64_t end,
                          double *product, float *near)
{
    int64_t d = job->d;

    fill_ones(product, d);
    for (int64_t r = first; r < end; r++)
        kernel_at(0)->gate_rows(gate_of(job, k->head, k->first + r), d, product,
                                query_of(job, k, r), near + (r - first) * d, key_of(job, k, r),
                                k->key + r * d);
    for (int64_t t = 0; t < d; t++)
        if (!(product[t] >= LEAST))
            return false;
    multiply(job, k, near, first, end - first);
    return true;
}

/* Weights of tokens first .. first + rows - 1 among themselves: each key goes through the tokens
 * after it. */
static void weigh_block(const Job *job, const Chunk *k, int64_t first, int64_t rows)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       d = job->d;

    for (int64_t s = first; s < first + rows; s++) {
        float *key = k->key + s * d;

        memcpy(key, key_of(job, k, s), (size_t)d * sizeof(*key));
        for (int64_t r = s; r < first + rows; r++) {
            if (r > s)
                fade_row(gate_of(job, k->head, k->first + r), d, key);
            kernel->dots(query_of(job, k, r), key, d, (const int32_t[]){ 0 }, 1, d,
                         k->inner + r * k->ld + s);
        }
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
        memcpy(near, query_of(job, k, r), (size_t)d * sizeof(float));
        fade_row(k->fade, d, near);
    }
    for (int64_t s = first; s < middle; s += TILE_KEYS)
        multiply_panel(job, k, k->near, middle, end, s, min_i64(TILE_KEYS, middle - s), false);
    for (int64_t s = first; s < middle; s++)
        fade_row(k->fade, d, k->key + s * d);
}

/* Halves and then halves of them; afterwards key s is times G of the last token and s. */
static void weigh_range(const Job *job, const Chunk *k, int64_t first, int64_t end)
{
    int64_t middle = (first + end) / 2;

    if (end - first <= BLOCK) {
        weigh_block(job, k, first, end - first);
    } else if (end - first < k->rows &&
               weigh_at_once(job, k, first, end, k->fade, k->near)) {
        for (int64_t s = first; s < end; s++)
            fade_row(k->fade, job->d, k->key + s * job->d);
    } else {
        weigh_range(job, k, first, middle);
        weigh_range(job, k, middle, end);
        weigh_across(job, k, first, middle, end);
    }
}

/* As weigh_by_token. */
static bool weigh_by_channel(const Job *job, const Chunk *k)
{
    int64_t d = job->d;

    if (weigh_at_once(job, k, 0, k->rows, k->all, k->query))
        return true;
    weigh_range(job, k, 0, k->rows);
    fill_ones(k->all, d);
    for (int64_t r = 0; r < k->rows; r++) {
        float *query = k->query + r * d;

        fade_product(gate_of(job, k->head, k->first + r), d, k->all);
        memcpy(query, query_of(job, k, r), (size_t)d * sizeof(*query));
        fade_row(k->all, d, query);
    }
    return false;
}

/* ---- the chunk ---------------------------------------------------------------------------- */

static void clear_later(const Chunk *k)
{
    for (int64_t r = 0; r < k->rows; r++)
        memset(k->inner + r * k->ld + r + 1, 0, (size_t)(k->rows - r - 1) * sizeof(float));
}

/* A product with the state, and one with weights or keys and the values. */
static SmallProduct product_of(const Job *job, const float *a, const float *b, int64_t inner,
                               float *c)
{
    return (SmallProduct){ .a = a, .lda = job->d, .step = 1, .b = b, .ldb = job->e,
                           .cols = job->e, .inner = inner, .alpha = 1, .c = c, .ldc = job->e };
}

static void read_chunk(const Job *job, const Chunk *k, const float *values)
{
    SmallProduct p = product_of(job, k->query, k->state, job->d, out_of(job, k->head, k->first));

    p.rows = k->rows;
    p.alpha = (float)job->in->scale;
    cpu_product(&p);
    p.a = k->inner;
    p.lda = k->ld;
    p.b = values;
    p.ldb = job->in->v.stride[1];
    p.inner = k->rows;
    p.add = true;
    p.rows_each = p.inner_each = 1;
    cpu_product(&p);
}

static void write_chunk(const Job *job, const Chunk *k, const float *values)
{
    SmallProduct p = product_of(job, k->key, values, k->rows, k->state);

    p.lda = 1;
    p.step = job->d;
    p.ldb = job->in->v.stride[1];
    p.rows = job->d;
    p.add = true;
    cpu_product(&p);
}

static void fade_state(const Job *job, const Chunk *k)
{
    for (int64_t t = 0; t < job->d; t++)
        scale_row(k->state + t * job->e, job->e, k->all[t], k->state + t * job->e);
}

static void take_chunk(const Job *job, const Chunk *k)
{
    const float *values = tensor_row_f32(&job->in->v, k->head, job->h, k->first);
    bool         over = job->in->form.gates == STATE_CHANNEL_GATES ? weigh_by_channel(job, k)
                                                                   : weigh_by_token(job, k);

    clear_later(k);
    read_chunk(job, k, values);
    if (!over)
        fade_state(job, k);
    write_chunk(job, k, values);
    if (over)
        fade_state(job, k);
}

static void chunked_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    Chunk      k = chunk_of(job, head, 0, worker);

    memset(k.state, 0, (size_t)(job->d * job->e) * sizeof(float));
    for (; k.first < job->n && !cpu_cancelled(job->run);
         k = chunk_of(job, head, k.first + job->chunk, worker))
        take_chunk(job, &k);
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
    if (in->form.levels && in->form.chunked && !in->wide)
        cpu_state_levels(r, in, out);
    else if (in->form.levels)
        cpu_state_levels_wide(r, in, out);
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
