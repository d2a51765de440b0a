/* state_levels_wide.c -- state_levels.h in double: token by token, which is chunks of one, and
 * where the output is normalised afterwards.
 */
typedef double Real;

#include "attn/cpu/recurrent/state_levels.h"

/* One chunk and the memory of its worker. */
typedef struct Chunk {
    LevelsChunk at;
    double *state;          /* [states][d][e] */
    double *query, *key, *value; /* [rows][d], [rows][d], [rows][e] */
    double *inner;          /* [rows][rows] */
    double *fade;           /* [rows] gates after each token */
    double *sums;           /* [rows][e] */
    double *read;           /* [rows][d] queries of a level */
} Chunk;

static Chunk chunk_of(const LevelsJob *job, const LevelsChunk *at, void *work)
{
    int64_t c = job->chunk, d = job->d, e = job->e;
    Chunk   k = { .at = *at, .state = work };

    k.query = k.state + job->states * d * e;
    k.key = k.query + c * d;
    k.value = k.key + c * d;
    k.inner = k.value + c * e;
    k.fade = k.inner + c * c;
    k.sums = k.fade + c;
    k.read = k.sums + c * e;
    return k;
}

static int64_t work_bytes(const LevelsJob *job)
{
    int64_t c = job->chunk;
    int64_t doubles = job->states * job->d * job->e + c * (3 * job->d + 2 * job->e + c + 1);

    return doubles * (int64_t)sizeof(double);
}

static void load_rows(const Tensor *t, const LevelsJob *job, const Chunk *k, double factor,
                      double *to)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       width = t->shape[2];

    memset(to, 0, (size_t)(k->at.rows * width) * sizeof(*to));
    for (int64_t r = 0; r < k->at.rows; r++)
        kernel->fold_scaled(tensor_row_f32(t, k->at.head, job->h, k->at.first + r), width, factor,
                            to + r * width);
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

/* Weights inside the chunk; queries times the gates since its start, fade those after a token.
 * Returns the product of all gates. */
static double weigh_chunk(const LevelsJob *job, const Chunk *k)
{
    int64_t d = job->d, c = k->at.rows;
    double  product = 1;

    cpu_dgemm((WideMatrix){ k->query, d, false }, (WideMatrix){ k->key, d, true }, c, c, d, 1, 0,
              k->inner, c);
    for (int64_t r = 0; r < c; r++) {
        double gate = level_gate(job, &k->at, r), *row = k->inner + r * c;

        product *= gate;
        k->fade[r] = 1;
        kernel_at(0)->scale64(k->fade, r, gate);
        weigh_row(row, r, k->fade, levels_of(job, &k->at, r));
        memset(row + r + 1, 0, (size_t)(c - r - 1) * sizeof(*row));
        kernel_at(0)->scale64(k->query + r * d, d, product);
    }
    return product;
}

static void read_state(const LevelsJob *job, const Chunk *k, int64_t bit)
{
    int64_t d = job->d;

    memcpy(k->read, k->query, (size_t)(k->at.rows * d) * sizeof(*k->read));
    for (int64_t r = 0; r < k->at.rows; r++)
        kernel_at(0)->scale64(k->read + r * d, d, levels_of(job, &k->at, r)[k->at.level + bit]);
    cpu_dgemm((WideMatrix){ k->read, d, false },
              (WideMatrix){ k->state + bit * d * job->e, job->e, false }, k->at.rows, job->e, d, 1,
              1, k->sums, job->e);
}

/* The chunk becomes a state. */
static void carry_chunk(const LevelsJob *job, const Chunk *k)
{
    int64_t d = job->d, e = job->e;

    for (int64_t r = 0; r < k->at.rows; r++)
        kernel_at(0)->scale64(k->key + r * d, d, k->fade[r]);
    cpu_dgemm((WideMatrix){ k->key, d, true }, (WideMatrix){ k->value, e, false }, d, e,
              k->at.rows, 1, 1, join_states(&k->at, k->state, d * e), e);
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

static void store_sums(const LevelsJob *job, const Chunk *k)
{
    int64_t at = (k->at.head * job->n + k->at.first) * job->e, count = k->at.rows * job->e;

    if (job->in->wide)
        memcpy(tensor_f64(job->out) + at, k->sums, (size_t)count * sizeof(double));
    else
        round_to(tensor_f32(job->out) + at, k->sums, count);
}

static void take_chunk(const LevelsJob *job, const LevelsChunk *at, void *work)
{
    Chunk   k = chunk_of(job, at, work);
    int64_t e = job->e, size = job->d * e;
    double  all;

    if (at->index == 0)
        memset(k.state, 0, (size_t)(job->states * size) * sizeof(*k.state));
    load_rows(&job->in->q, job, &k, job->in->scale, k.query);
    load_rows(&job->in->k, job, &k, 1, k.key);
    load_rows(&job->in->v, job, &k, 1, k.value);
    all = weigh_chunk(job, &k);
    cpu_dgemm((WideMatrix){ k.inner, at->rows, false }, (WideMatrix){ k.value, e, false }, at->rows,
              e, at->rows, 1, 0, k.sums, e);
    for (int64_t bit = 0; at->index >> bit; bit++)
        if (state_in_use(at, bit)) {
            read_state(job, &k, bit);
            kernel_at(0)->scale64(k.state + bit * size, size, all);
        }
    store_sums(job, &k);
    carry_chunk(job, &k);
}

void cpu_state_levels_wide(Run *r, const StateAttend *in, Tensor *out)
{
    levels_run(r, in, out, work_bytes, take_chunk);
}
