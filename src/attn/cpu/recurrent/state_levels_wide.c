/* state_levels_wide.c -- as state_levels.c, in double: token by token, which is chunks of one, and
 * where the output is normalised afterwards.
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
    double *state;          /* [states][d][e] */
    double *query, *key, *value; /* [rows][d], [rows][d], [rows][e] */
    double *inner;          /* [rows][rows] */
    double *fade;           /* [rows] gates after each token */
    double *sums;           /* [rows][e] */
    double *read;           /* [rows][d] queries of a level */
} Chunk;

static Chunk chunk_of(const Job *job, int64_t head, int worker)
{
    int64_t c = job->chunk, d = job->d, e = job->e;
    Chunk   k = { .head = head, .state = (double *)(job->work + worker * job->work_size) };

    k.query = k.state + job->states * d * e;
    k.key = k.query + c * d;
    k.value = k.key + c * d;
    k.inner = k.value + c * e;
    k.fade = k.inner + c * c;
    k.sums = k.fade + c;
    k.read = k.sums + c * e;
    return k;
}

static int64_t chunk_doubles(const Job *job)
{
    int64_t c = job->chunk;

    return job->states * job->d * job->e + c * (3 * job->d + 2 * job->e + c + 1);
}

static void load_rows(const Tensor *t, const Job *job, const Chunk *k, double factor, double *to)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       width = t->shape[2];

    memset(to, 0, (size_t)(k->rows * width) * sizeof(*to));
    for (int64_t r = 0; r < k->rows; r++)
        kernel->fold_scaled(tensor_row_f32(t, k->head, job->h, k->first + r), width, factor,
                            to + r * width);
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

/* Row r of the weights inside a chunk, times the gates between and the levels.  Keys of one level
 * are those that differ from r in the same highest bit: neighbours. */
static void weigh_row(double *row, int64_t r, const double *fade, const double *levels)
{
    const Kernel *kernel = kernel_at(0);

    kernel->times64(row, fade, r + 1);
    row[r] *= levels[0];
    for (int bit = 0; r >> bit; bit++)
        if (r >> bit & 1)
            kernel->scale64(row + (r >> bit >> 1 << bit << 1), INT64_C(1) << bit, levels[bit + 1]);
}

/* Weights inside the chunk; queries times the gates since its start, fade those after a token. */
static void weigh_chunk(const Job *job, const Chunk *k)
{
    int64_t d = job->d, c = k->rows;
    double  product = 1;

    cpu_dgemm((WideMatrix){ k->query, d, false }, (WideMatrix){ k->key, d, true }, c, c, d, 1, 0,
              k->inner, c);
    for (int64_t r = 0; r < c; r++) {
        double gate = level_gate(job, k, r), *row = k->inner + r * c;

        product *= gate;
        k->fade[r] = 1;
        kernel_at(0)->scale64(k->fade, r, gate);
        weigh_row(row, r, k->fade, levels_of(job, k, r));
        memset(row + r + 1, 0, (size_t)(c - r - 1) * sizeof(*row));
        kernel_at(0)->scale64(k->query + r * d, d, product);
    }
}

static void read_level(const Job *job, const Chunk *k, int64_t bit, int64_t level)
{
    int64_t d = job->d;

    memcpy(k->read, k->query, (size_t)(k->rows * d) * sizeof(*k->read));
    for (int64_t r = 0; r < k->rows; r++)
        kernel_at(0)->scale64(k->read + r * d, d, levels_of(job, k, r)[level]);
    cpu_dgemm((WideMatrix){ k->read, d, false },
              (WideMatrix){ k->state + bit * d * job->e, job->e, false }, k->rows, job->e, d, 1, 1,
              k->sums, job->e);
}

/* The chunk becomes a state, joined with those that the carry passes. */
static void carry_chunk(const Job *job, const Chunk *k)
{
    int64_t d = job->d, e = job->e, size = d * e, level = 0;
    double *joined = k->state;

    while (k->index >> level & 1)
        level++;
    for (int64_t l = 0; l < level; l++) {
        double *one = k->state + l * size, *two = k->state + (l + 1) * size;

        if (l + 1 < level)
            for (int64_t c = 0; c < size; c++)
                two[c] += one[c];
        else
            memcpy(two, one, (size_t)size * sizeof(*two));
        memset(one, 0, (size_t)size * sizeof(*one));
    }
    for (int64_t r = 0; r < k->rows; r++)
        kernel_at(0)->scale64(k->key + r * d, d, k->fade[r]);
    joined += level * size;
    cpu_dgemm((WideMatrix){ k->key, d, true }, (WideMatrix){ k->value, e, false }, d, e, k->rows,
              1, 1, joined, e);
}

/* Eight at a time, which compilers make vectors. */
static void round_to(float *restrict to, const double *restrict from, int64_t count)
{
    int64_t x = 0;

    for (; x + 8 <= count; x += 8)
        for (int64_t c = 0; c < 8; c++)
            to[x + c] = (float)from[x + c];
    for (; x < count; x++)
        to[x] = (float)from[x];
}

static void store_sums(const Job *job, const Chunk *k)
{
    int64_t at = (k->head * job->n + k->first) * job->e, count = k->rows * job->e;

    if (job->in->wide)
        memcpy(tensor_f64(job->out) + at, k->sums, (size_t)count * sizeof(double));
    else
        round_to(tensor_f32(job->out) + at, k->sums, count);
}

static void take_chunk(const Job *job, const Chunk *k, int bits)
{
    int64_t e = job->e;
    double  all = 1;

    load_rows(&job->in->q, job, k, job->in->scale, k->query);
    load_rows(&job->in->k, job, k, 1, k->key);
    load_rows(&job->in->v, job, k, 1, k->value);
    weigh_chunk(job, k);
    cpu_dgemm((WideMatrix){ k->inner, k->rows, false }, (WideMatrix){ k->value, e, false }, k->rows,
              e, k->rows, 1, 0, k->sums, e);
    for (int64_t bit = 0; k->index >> bit; bit++)
        if (k->index >> bit & 1)
            read_level(job, k, bit, bits + bit + 1);
    store_sums(job, k);
    for (int64_t r = 0; r < k->rows; r++)
        all *= level_gate(job, k, r);
    for (int64_t bit = 0; k->index >> bit; bit++)
        if (k->index >> bit & 1)
            kernel_at(0)->scale64(k->state + bit * job->d * e, job->d * e, all);
    carry_chunk(job, k);
}

static void level_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    Chunk      k = chunk_of(job, head, worker);

    memset(k.state, 0, (size_t)(job->states * job->d * job->e) * sizeof(double));
    for (; k.first < job->n && !cpu_cancelled(job->run); k.first += job->chunk, k.index++) {
        k.rows = min_i64(job->chunk, job->n - k.first);
        take_chunk(job, &k, state_bits(job->chunk) - 1);
    }
}

void cpu_state_levels_wide(Run *r, const StateAttend *in, Tensor *out)
{
    Job job = { .run = r, .in = in, .out = out, .h = out->shape[0], .n = in->q.shape[1],
                .d = in->q.shape[2], .e = in->v.shape[2],
                .chunk = 1 };

    while (in->form.chunked && job.chunk < min_i64(in->form.chunk, job.n))
        job.chunk *= 2; /* one chunk is as long as the sequence at most */
    job.states = state_bits((job.n + job.chunk - 1) / job.chunk);
    job.work_size = round_up_to(chunk_doubles(&job) * (int64_t)sizeof(double), 64);
    job.work = cpu_scratch(r, threads_count(r->threads), job.work_size);
    if (job.work)
        threads_run(r->threads, job.h, level_item, &job);
}
