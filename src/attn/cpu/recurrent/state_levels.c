/* state_levels.c -- attention by one state for each run of a Fenwick tree (log-linear), chunk by
 * chunk, in float; see attn/ops/state.h.
 *
 * Token i reads itself and the states of the set bits of i; a new token is joined with the runs
 * that a carry to i + 1 passes.  A chunk of 2^b tokens does the same with its own index: levels
 * up to b lie inside it, as a triangle of weights.  Products of gates are in double, and each is
 * rounded once.
 */
#include "attn/cpu/cpu.h"

#include "attn/ops/state.h"
#include "core/threads.h"

typedef struct Job {
    Run               *run;
    const StateAttend *in;
    Tensor            *out;
    int64_t            h, n, d, e, chunk, states;
    char              *work; /* [workers][work_size] */
    int64_t            work_size;
} Job;

/* One chunk of a head. */
typedef struct Chunk {
    int64_t head, first, rows, index;
    int64_t ld;       /* of inner */
    double *fade;     /* [rows] gates after each token */
    double *product;  /* [rows] gates from the first token up to each */
    bool    fades;    /* a gate is not 1 */
    float  *state;    /* [states][d][e] */
    float  *panel;    /* [d][TILE_KEYS] of keys */
    float  *inner;    /* [rows][ld] weights inside */
    float  *key;      /* [rows][d] keys times the gates after them */
    float  *read;     /* [rows][d] queries of a level */
} Chunk;

static int64_t levels_ld(const Job *job)
{
    return job->chunk + LANES; /* no power of two: rows would share a set of the cache */
}

static Chunk levels_chunk(const Job *job, int64_t head, int worker)
{
    int64_t c = job->chunk, d = job->d;
    Chunk   k = { .head = head, .ld = levels_ld(job),
                  .fade = (double *)(job->work + worker * job->work_size) };

    k.product = k.fade + c;
    k.state = (float *)(k.product + c);
    k.panel = k.state + job->states * d * job->e;
    k.inner = k.panel + d * TILE_KEYS;
    k.key = k.inner + c * k.ld;
    k.read = k.key + c * d;
    return k;
}

static int64_t work_bytes(const Job *job)
{
    int64_t c = job->chunk, d = job->d;
    int64_t floats = job->states * d * job->e + d * TILE_KEYS + c * (levels_ld(job) + 2 * d);

    return 2 * c * (int64_t)sizeof(double) + floats * (int64_t)sizeof(float);
}

static const float *row_of(const Job *job, const Tensor *t, const Chunk *k, int64_t r)
{
    return tensor_row_f32(t, k->head, job->h, k->first + r);
}

/* Weights of the levels of a token. */
static const double *levels_of(const Job *job, const Chunk *k, int64_t r)
{
    return tensor_row_f64(&job->in->levels, k->head, job->h, k->first + r);
}

static double level_gate(const Job *job, const Chunk *k, int64_t r)
{
    const Tensor *gates = &job->in->gates;

    return *((const double *)tensor_head(gates, k->head, job->h) +
             (k->first + r) * gates->stride[1]);
}

static void take_gates(const Job *job, Chunk *k)
{
    double product = 1;

    k->fades = false;
    for (int64_t r = 0; r < k->rows; r++) {
        double gate = level_gate(job, k, r);

        k->fades |= gate != 1;
        k->product[r] = product *= gate;
    }
}

/* inner[r][s] = q_r . k_s for s up to r, and some after it. */
static void multiply_inside(const Job *job, const Chunk *k)
{
    const Tensor *q = &job->in->q, *keys = &job->in->k;

    for (int64_t s = 0; s < k->rows; s += TILE_KEYS) {
        int64_t count = min_i64(TILE_KEYS, k->rows - s);

        pack_panel(row_of(job, keys, k, s), keys->stride[1], count, job->d, k->panel);
        cpu_product(&(SmallProduct){ .a = row_of(job, q, k, s), .lda = q->stride[1], .step = 1,
                                     .b = k->panel, .ldb = TILE_KEYS, .rows = k->rows - s,
                                     .cols = count, .inner = job->d, .alpha = 1,
                                     .c = k->inner + s * k->ld + s, .ldc = k->ld,
                                     .rows_each = 1, .cols_each = 1 });
    }
}

/* Row r of the weights inside the chunk, times the levels.  Keys of one level are those that differ
 * from r in the same highest bit: neighbours. */
static void weigh_row(float *row, int64_t r, const double *levels)
{
    const Kernel *kernel = kernel_at(0);

    row[r] *= (float)levels[0];
    for (int bit = 0; r >> bit; bit++)
        if (r >> bit & 1) {
            float *first = row + (r >> bit >> 1 << bit << 1);

            kernel->scale(first, INT64_C(1) << bit, (float)levels[bit + 1], first);
        }
}

/* Weights inside the chunk, and the gates after each token. */
static void weigh_inside(const Job *job, const Chunk *k)
{
    const Kernel *kernel = kernel_at(0);

    multiply_inside(job, k);
    for (int64_t r = 0; r < k->rows; r++) {
        float *row = k->inner + r * k->ld;

        if (k->fades) {
            kernel->scale64(k->fade, r, level_gate(job, k, r));
            kernel->fade(row, k->fade, r);
        }
        k->fade[r] = 1;
        weigh_row(row, r, levels_of(job, k, r));
        memset(row + r + 1, 0, (size_t)(k->rows - r - 1) * sizeof(*row));
    }
}

/* The output becomes, or grows by, rows a [rows][inner] times b. */
static void add_product(const Job *job, const Chunk *k, const float *a, int64_t lda, const float *b,
                        int64_t ldb, int64_t inner, bool add)
{
    float *out = tensor_f32(job->out) + (k->head * job->n + k->first) * job->e;

    cpu_product(&(SmallProduct){ .a = a, .lda = lda, .step = 1, .b = b, .ldb = ldb,
                                 .rows = k->rows, .cols = job->e, .inner = inner,
                                 .alpha = (float)job->in->scale, .add = add, .c = out,
                                 .ldc = job->e, .rows_each = !add, .inner_each = !add });
}

static void read_inside(const Job *job, const Chunk *k)
{
    const Tensor *v = &job->in->v;

    add_product(job, k, k->inner, k->ld, row_of(job, v, k, 0), v->stride[1], k->rows, false);
}

static void read_level(const Job *job, const Chunk *k, int64_t bit, int64_t level)
{
    int64_t d = job->d;

    for (int64_t r = 0; r < k->rows; r++)
        kernel_at(0)->scale(row_of(job, &job->in->q, k, r), d,
                            (float)(k->product[r] * levels_of(job, k, r)[level]), k->read + r * d);
    add_product(job, k, k->read, d, k->state + bit * d * job->e, job->e, d, true);
}

/* Frees the state that the chunk becomes: those that the carry passes are joined in it. */
static float *join_states(const Job *job, const Chunk *k)
{
    int64_t size = job->d * job->e, level = 0;

    while (k->index >> level & 1)
        level++;
    for (int64_t l = 0; l < level; l++) {
        float *one = k->state + l * size, *two = one + size;

        if (l + 1 < level)
            for (int64_t c = 0; c < size; c++)
                two[c] += one[c];
        else
            memcpy(two, one, (size_t)size * sizeof(*two));
        memset(one, 0, (size_t)size * sizeof(*one));
    }
    return k->state + level * size;
}

static void carry_chunk(const Job *job, const Chunk *k)
{
    const Tensor *keys = &job->in->k, *v = &job->in->v;
    SmallProduct  p = { .a = row_of(job, keys, k, 0), .lda = 1, .step = keys->stride[1],
                        .b = row_of(job, v, k, 0), .ldb = v->stride[1], .rows = job->d,
                        .cols = job->e, .inner = k->rows, .alpha = 1, .add = true,
                        .c = join_states(job, k), .ldc = job->e };

    for (int64_t r = 0; r < k->rows && k->fades; r++)
        kernel_at(0)->scale(row_of(job, keys, k, r), job->d, (float)k->fade[r],
                            k->key + r * job->d);
    if (k->fades) {
        p.a = k->key;
        p.step = job->d;
    }
    cpu_product(&p);
}

static void fade_states(const Job *job, const Chunk *k)
{
    int64_t size = job->d * job->e;

    for (int64_t bit = 0; k->index >> bit; bit++)
        if (k->index >> bit & 1)
            kernel_at(0)->scale(k->state + bit * size, size, (float)k->product[k->rows - 1],
                                k->state + bit * size);
}

static void take_chunk(const Job *job, Chunk *k, int bits)
{
    take_gates(job, k);
    weigh_inside(job, k);
    read_inside(job, k);
    for (int64_t bit = 0; k->index >> bit; bit++)
        if (k->index >> bit & 1)
            read_level(job, k, bit, bits + bit + 1);
    if (k->fades)
        fade_states(job, k);
    carry_chunk(job, k);
}

static void level_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    Chunk      k = levels_chunk(job, head, worker);

    memset(k.state, 0, (size_t)(job->states * job->d * job->e) * sizeof(float));
    for (; k.first < job->n && !cpu_cancelled(job->run); k.first += job->chunk, k.index++) {
        k.rows = min_i64(job->chunk, job->n - k.first);
        take_chunk(job, &k, state_bits(job->chunk) - 1);
    }
}

void cpu_state_levels(Run *r, const StateAttend *in, Tensor *out)
{
    Job job = { .run = r, .in = in, .out = out, .h = out->shape[0], .n = in->q.shape[1],
                .d = in->q.shape[2], .e = in->v.shape[2],
                .chunk = 1 };

    while (job.chunk < min_i64(in->form.chunk, job.n))
        job.chunk *= 2; /* one chunk is as long as the sequence at most */
    job.states = state_bits((job.n + job.chunk - 1) / job.chunk);
    job.work_size = round_up_to(work_bytes(&job), 64);
    job.work = cpu_scratch(r, threads_count(r->threads), job.work_size);
    if (job.work)
        threads_run(r->threads, job.h, level_item, &job);
}
