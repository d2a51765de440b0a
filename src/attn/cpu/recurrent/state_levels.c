/* state_levels.c -- state_levels.h in float.  Products of gates are in double, and each is rounded
 * once.
 */
typedef float Real;

#include "attn/cpu/recurrent/state_levels.h"

/* One chunk and the memory of its worker. */
typedef struct Chunk {
    LevelsChunk at;
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

static int64_t levels_ld(const LevelsJob *job)
{
    return job->chunk + LANES; /* no power of two: rows would share a set of the cache */
}

static Chunk chunk_of(const LevelsJob *job, const LevelsChunk *at, void *work)
{
    int64_t c = job->chunk, d = job->d;
    Chunk   k = { .at = *at, .ld = levels_ld(job), .fade = work };

    k.product = k.fade + c;
    k.state = (float *)(k.product + c);
    k.panel = k.state + job->states * d * job->e;
    k.inner = k.panel + d * TILE_KEYS;
    k.key = k.inner + c * k.ld;
    k.read = k.key + c * d;
    return k;
}

static int64_t work_bytes(const LevelsJob *job)
{
    int64_t c = job->chunk, d = job->d;
    int64_t floats = job->states * d * job->e + d * TILE_KEYS + c * (levels_ld(job) + 2 * d);

    return 2 * c * (int64_t)sizeof(double) + floats * (int64_t)sizeof(float);
}

static const float *row_of(const LevelsJob *job, const Tensor *t, const Chunk *k, int64_t r)
{
    return tensor_row_f32(t, k->at.head, job->h, k->at.first + r);
}

static void take_gates(const LevelsJob *job, Chunk *k)
{
    double product = 1;

    k->fades = false;
    for (int64_t r = 0; r < k->at.rows; r++) {
        double gate = level_gate(job, &k->at, r);

        k->fades |= gate != 1;
        k->product[r] = product *= gate;
    }
}

/* inner[r][s] = q_r . k_s for s up to r, and some after it. */
static void multiply_inside(const LevelsJob *job, const Chunk *k)
{
    const Tensor *q = &job->in->q, *keys = &job->in->k;

    for (int64_t s = 0; s < k->at.rows; s += TILE_KEYS) {
        int64_t count = min_i64(TILE_KEYS, k->at.rows - s);

        pack_panel(row_of(job, keys, k, s), keys->stride[1], count, job->d, k->panel);
        cpu_product(&(SmallProduct){ .a = row_of(job, q, k, s), .lda = q->stride[1], .step = 1,
                                     .b = k->panel, .ldb = TILE_KEYS, .rows = k->at.rows - s,
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
static void weigh_inside(const LevelsJob *job, const Chunk *k)
{
    const Kernel *kernel = kernel_at(0);

    multiply_inside(job, k);
    for (int64_t r = 0; r < k->at.rows; r++) {
        float *row = k->inner + r * k->ld;

        if (k->fades) {
            kernel->scale64(k->fade, r, level_gate(job, &k->at, r));
            kernel->fade(row, k->fade, r);
        }
        k->fade[r] = 1;
        weigh_row(row, r, levels_of(job, &k->at, r));
        memset(row + r + 1, 0, (size_t)(k->at.rows - r - 1) * sizeof(*row));
    }
}

/* The output becomes, or grows by, rows a [rows][inner] times b. */
static void add_product(const LevelsJob *job, const Chunk *k, const float *a, int64_t lda,
                        const float *b, int64_t ldb, int64_t inner, bool add)
{
    float *out = tensor_f32(job->out) + (k->at.head * job->n + k->at.first) * job->e;

    cpu_product(&(SmallProduct){ .a = a, .lda = lda, .step = 1, .b = b, .ldb = ldb,
                                 .rows = k->at.rows, .cols = job->e, .inner = inner,
                                 .alpha = (float)job->in->scale, .add = add, .c = out,
                                 .ldc = job->e, .rows_each = !add, .inner_each = !add });
}

static void read_inside(const LevelsJob *job, const Chunk *k)
{
    const Tensor *v = &job->in->v;

    add_product(job, k, k->inner, k->ld, row_of(job, v, k, 0), v->stride[1], k->at.rows, false);
}

static void read_state(const LevelsJob *job, const Chunk *k, int64_t bit)
{
    int64_t d = job->d;

    for (int64_t r = 0; r < k->at.rows; r++)
        kernel_at(0)->scale(row_of(job, &job->in->q, k, r), d,
                            (float)(k->product[r] * levels_of(job, &k->at, r)[k->at.level + bit]),
                            k->read + r * d);
    add_product(job, k, k->read, d, k->state + bit * d * job->e, job->e, d, true);
}

/* The chunk becomes a state. */
static void carry_chunk(const LevelsJob *job, const Chunk *k)
{
    const Tensor *keys = &job->in->k, *v = &job->in->v;
    SmallProduct  p = { .a = row_of(job, keys, k, 0), .lda = 1, .step = keys->stride[1],
                        .b = row_of(job, v, k, 0), .ldb = v->stride[1], .rows = job->d,
                        .cols = job->e, .inner = k->at.rows, .alpha = 1, .add = true,
                        .c = join_states(&k->at, k->state, job->d * job->e), .ldc = job->e };

    for (int64_t r = 0; r < k->at.rows && k->fades; r++)
        kernel_at(0)->scale(row_of(job, keys, k, r), job->d, (float)k->fade[r],
                            k->key + r * job->d);
    if (k->fades) {
        p.a = k->key;
        p.step = job->d;
    }
    cpu_product(&p);
}

static void fade_state(const LevelsJob *job, const Chunk *k, int64_t bit)
{
    int64_t size = job->d * job->e;

    kernel_at(0)->scale(k->state + bit * size, size, (float)k->product[k->at.rows - 1],
                        k->state + bit * size);
}

static void take_chunk(const LevelsJob *job, const LevelsChunk *at, void *work)
{
    Chunk k = chunk_of(job, at, work);

    if (at->index == 0)
        memset(k.state, 0, (size_t)(job->states * job->d * job->e) * sizeof(*k.state));
    take_gates(job, &k);
    weigh_inside(job, &k);
    read_inside(job, &k);
    for (int64_t bit = 0; at->index >> bit; bit++)
        if (state_in_use(at, bit)) {
            read_state(job, &k, bit);
            if (k.fades)
                fade_state(job, &k, bit);
        }
    carry_chunk(job, &k);
}

void cpu_state_levels(Run *r, const StateAttend *in, Tensor *out)
{
    levels_run(r, in, out, work_bytes, take_chunk);
}
