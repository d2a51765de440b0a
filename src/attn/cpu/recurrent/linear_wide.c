/* linear_wide.c -- attention through features in double.
 *
 *     S = sum_j fk_j^T v_j,  z = sum_j fk_j,  out_i = fq_i S / divisor(fq_i . z)
 *
 * as linear.c, for features whose sums cancel: a denominator near 0 magnifies the
 * rounding of floats.  With gates the state is a moving average:
 *
 *     S <- g_i S + (1 - g_i) fk_i^T v_i,  z <- g_i z + (1 - g_i) fk_i
 *
 * Slices and blocks have fixed sizes: threads change no bit.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define BLOCK 128       /* rows read, keys added at once */
#define SLICE_KEYS 1024 /* least keys of a slice */
#define SLICES 8        /* most slices of a head */
#define MATRIX_KEYS 256

typedef struct Job {
    Run                *run;
    const LinearAttend *in;
    LinearResult       *out;
    int64_t             h, n, m, f, e;
    int64_t             slices, slice_keys, blocks, chunk;
    double             *state; /* [h][slices][f][e]; slice 0 becomes the head's */
    double             *z;     /* [h][slices][f]; the same */
    double             *work;  /* [workers][work_size] */
    int64_t             work_size;
} Job;

static const double *wide_fq_of(const Job *job, int64_t head, int64_t i)
{
    return tensor_row_f64(&job->in->fq, head, job->h, i);
}

static const double *wide_fk_of(const Job *job, int64_t head, int64_t j)
{
    return tensor_row_f64(&job->in->fk, head, job->h, j);
}

static double *state_of(const Job *job, int64_t head)
{
    return job->state + head * job->slices * job->f * job->e;
}

static double *z_of(const Job *job, int64_t head)
{
    return job->z + head * job->slices * job->f;
}

/* Values of keys [j, j + keys), widened. */
static void take_values(const Job *job, int64_t head, int64_t j, int64_t keys, double *to)
{
    const Tensor *v = &job->in->v;

    for (int64_t x = 0; x < keys; x++)
        floats_widen(v->dtype, tensor_head(v, head, job->h), (j + x) * v->stride[1], job->e,
                     to + x * job->e);
}

/* Row i of the output from its sums; records z and the divisor. */
static void wide_finish_row(const Job *job, int64_t head, int64_t i, double z, const double *sums)
{
    const double *fq = wide_fq_of(job, head, i);
    int64_t       at = (head * job->n + i) * job->e;
    bool          wide = job->out->out.dtype == DT_F64;
    double        total = 0, divisor;

    for (int64_t t = 0; t < job->f && job->in->denominator == DENOMINATOR_ADD_FEATURES; t++)
        total += fq[t];
    divisor = cpu_divisor(job->in, z, total);
    tensor_f32(&job->out->denominator)[head * job->n + i] = (float)z;
    tensor_f64(&job->out->divisor)[head * job->n + i] = divisor;
    for (int64_t c = 0; c < job->e && wide; c++)
        tensor_f64(&job->out->out)[at + c] = sums[c] / divisor;
    for (int64_t c = 0; c < job->e && !wide; c++)
        tensor_f32(&job->out->out)[at + c] = (float)(sums[c] / divisor);
}

/* S and z take the keys [j, j + keys); `values` holds BLOCK rows. */
static void add_keys(const Job *job, int64_t head, int64_t j, int64_t keys, double *values,
                     double *state, double *z)
{
    const double *fk = wide_fk_of(job, head, j);
    int64_t       ld = job->in->fk.stride[1];

    take_values(job, head, j, keys, values);
    cpu_dgemm((WideMatrix){ fk, ld, true }, (WideMatrix){ values, job->e, false }, job->f, job->e,
              keys, 1, 1, state, job->e);
    for (int64_t x = 0; x < keys; x++)
        for (int64_t t = 0; t < job->f; t++)
            z[t] += fk[x * ld + t];
}

static void store_memory(const Job *job, int64_t head, const double *state)
{
    int64_t size = job->f * job->e;

    for (int64_t c = 0; c < size; c++)
        tensor_f32(&job->out->memory)[head * size + c] = (float)state[c];
}

/* ---- over all keys ---------------------------------------------------------- */

static void wide_state_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->slices, first = item % job->slices * job->slice_keys;
    int64_t    end = min_i64(job->m, first + job->slice_keys);

    for (int64_t j = first; j < end && !cpu_cancelled(job->run); j += BLOCK)
        add_keys(job, head, j, min_i64(BLOCK, end - j), job->work + worker * job->work_size,
                 job->state + item * job->f * job->e, job->z + item * job->f);
}

static void wide_sum_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    int64_t    size = job->f * job->e;
    double    *state = state_of(job, head), *z = z_of(job, head);

    (void)worker;
    for (int64_t s = 1; s < job->slices; s++) {
        for (int64_t c = 0; c < size; c++)
            state[c] += state[s * size + c];
        for (int64_t t = 0; t < job->f; t++)
            z[t] += z[s * job->f + t];
    }
    store_memory(job, head, state);
}

static void wide_read_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * BLOCK;
    int64_t    rows = min_i64(BLOCK, job->n - first);
    double    *sums = job->work + worker * job->work_size;

    if (cpu_cancelled(job->run))
        return;
    cpu_dgemm((WideMatrix){ wide_fq_of(job, head, first), job->in->fq.stride[1], false },
              (WideMatrix){ state_of(job, head), job->e, false }, rows, job->e, job->f, 1, 0, sums,
              job->e);
    for (int64_t i = 0; i < rows; i++)
        wide_finish_row(job, head, first + i,
                        kernel_at(0)->dot_double(wide_fq_of(job, head, first + i), z_of(job, head),
                                                 job->f),
                        sums + i * job->e);
}

/* Memory of the states, zeroed, and `doubles` for each worker. */
static bool wide_take_memory(Job *job, int64_t doubles)
{
    Run    *r = job->run;
    int64_t states = job->h * job->slices;

    job->work_size = round_up_to(doubles, LANES);
    job->state = cpu_scratch(r, states * job->f, job->e * (int64_t)sizeof(double));
    job->z = cpu_scratch(r, states, job->f * (int64_t)sizeof(double));
    job->work = cpu_scratch(r, threads_count(r->threads), job->work_size * (int64_t)sizeof(double));
    if (!job->state || !job->z || !job->work)
        return false;
    memset(job->state, 0, (size_t)(states * job->f * job->e) * sizeof(double));
    memset(job->z, 0, (size_t)(states * job->f) * sizeof(double));
    return true;
}

static bool wide_sum_state(Job *job, int64_t doubles)
{
    job->slice_keys = max_i64(SLICE_KEYS, round_up_to(ceil_div(job->m, SLICES), BLOCK));
    job->slices = max_i64(1, ceil_div(job->m, job->slice_keys));
    if (!wide_take_memory(job, max_i64(doubles, BLOCK * job->e)))
        return false;
    threads_run(job->run->threads, job->h * job->slices, wide_state_item, job);
    threads_run(job->run->threads, job->h, wide_sum_item, job);
    return true;
}

static void wide_factorised(Job *job)
{
    job->blocks = ceil_div(job->n, BLOCK);
    if (wide_sum_state(job, 0))
        threads_run(job->run->threads, job->h * job->blocks, wide_read_item, job);
}

/* ---- causal ----------------------------------------------------------------- */

static void wide_recurrent_item(void *context, int64_t head, int worker)
{
    const Job    *job = context;
    const double *gates = job->in->gates.data ? tensor_head(&job->in->gates, head, job->h) : NULL;
    int64_t       f = job->f, e = job->e;
    double       *state = state_of(job, head), *z = z_of(job, head);
    double       *value = job->work + worker * job->work_size, *sums = value + e;

    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i++) {
        const double *fq = wide_fq_of(job, head, i), *fk = wide_fk_of(job, head, i);
        double        keep = gates ? gates[i] : 1, take = gates ? 1 - gates[i] : 1;

        take_values(job, head, i, 1, value);
        for (int64_t t = 0; t < f; t++)
            z[t] = keep * z[t] + take * fk[t];
        kernel_at(0)->recur64(fq, fk, value, keep, take, f, e, state, sums);
        wide_finish_row(job, head, i, kernel_at(0)->dot_double(fq, z, f), sums);
    }
    store_memory(job, head, state);
}

static void wide_recurrent(Job *job)
{
    job->slices = 1;
    if (wide_take_memory(job, 2 * job->e))
        threads_run(job->run->threads, job->h, wide_recurrent_item, job);
}

/* Zeroes a[x][y] for y > x + shift; sums[x] += what remains of row x. */
static void wide_lower_triangle(double *a, int64_t rows, int64_t cols, int64_t shift, double *sums)
{
    for (int64_t x = 0; x < rows; x++)
        for (int64_t y = 0; y < cols; y++) {
            if (y > x + shift)
                a[x * cols + y] = 0;
            sums[x] += a[x * cols + y];
        }
}

/* work: inner [chunk][chunk], values [chunk][e], rows [chunk][e], sums [chunk]. */
static void wide_take_chunk(const Job *job, int64_t head, int64_t first, int64_t rows,
                            double *state, double *z, double *work)
{
    double    *inner = work, *values = inner + job->chunk * job->chunk;
    double    *out = values + job->chunk * job->e, *sums = out + job->chunk * job->e;
    WideMatrix fq = { wide_fq_of(job, head, first), job->in->fq.stride[1], false };
    WideMatrix fk = { wide_fk_of(job, head, first), job->in->fk.stride[1], true };

    for (int64_t i = 0; i < rows; i++)
        sums[i] = kernel_at(0)->dot_double(wide_fq_of(job, head, first + i), z, job->f);
    cpu_dgemm(fq, fk, rows, rows, job->f, 1, 0, inner, rows);
    wide_lower_triangle(inner, rows, rows, 0, sums);
    cpu_dgemm(fq, (WideMatrix){ state, job->e, false }, rows, job->e, job->f, 1, 0, out, job->e);
    add_keys(job, head, first, rows, values, state, z);
    cpu_dgemm((WideMatrix){ inner, rows, false }, (WideMatrix){ values, job->e, false }, rows,
              job->e, rows, 1, 1, out, job->e);
    for (int64_t i = 0; i < rows; i++)
        wide_finish_row(job, head, first + i, sums[i], out + i * job->e);
}

/* The chunks of one slice, whose state holds the keys before it. */
static void wide_chunked_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->slices, begin = item % job->slices * job->slice_keys;
    int64_t    end = min_i64(job->n, begin + job->slice_keys);
    double    *state = job->state + item * job->f * job->e, *z = job->z + item * job->f;

    for (int64_t first = begin; first < end && !cpu_cancelled(job->run); first += job->chunk)
        wide_take_chunk(job, head, first, min_i64(job->chunk, end - first), state, z,
                        job->work + worker * job->work_size);
    if (end == job->n)
        store_memory(job, head, state);
}

/* Replaces each slice by the sum of the slices before it. */
static void before_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    int64_t    size = job->f * job->e;

    (void)worker;
    for (int64_t c = 0; c < size + job->f; c++) {
        double *at = c < size ? state_of(job, head) + c : z_of(job, head) + c - size, sum = 0;

        for (int64_t s = 0; s < job->slices; s++, at += c < size ? size : job->f) {
            double own = *at;

            *at = sum;
            sum += own;
        }
    }
}

/* Where in->wide, heads are too few for all threads: slices of the tokens run in parallel, for one
 * more pass over the keys. */
static void wide_chunked(Job *job)
{
    Run    *r = job->run;
    int64_t doubles;

    job->chunk = max_i64(1, min_i64(job->in->chunk, job->n));
    job->slice_keys = job->in->wide ? round_up_to(SLICE_KEYS, job->chunk) : max_i64(1, job->n);
    job->slices = max_i64(1, ceil_div(job->n, job->slice_keys));
    doubles = job->chunk * (job->chunk + 2 * job->e + 1);
    if (!wide_take_memory(job, max_i64(doubles, BLOCK * job->e)))
        return;
    if (job->slices > 1) {
        threads_run(r->threads, job->h * job->slices, wide_state_item, job);
        threads_run(r->threads, job->h, before_item, job);
    }
    threads_run(r->threads, job->h * job->slices, wide_chunked_item, job);
}

/* ---- the matrix itself ------------------------------------------------------ */

static void wide_matrix_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * BLOCK;
    int64_t    rows = min_i64(BLOCK, job->n - first);
    int64_t    end = job->in->causal ? min_i64(job->m, first + rows) : job->m;
    double    *a = job->work + worker * job->work_size, *values = a + BLOCK * MATRIX_KEYS;
    double    *out = values + MATRIX_KEYS * job->e, sums[BLOCK] = { 0 };
    WideMatrix fq = { wide_fq_of(job, head, first), job->in->fq.stride[1], false };

    memset(out, 0, (size_t)(rows * job->e) * sizeof(*out));
    for (int64_t j = 0; j < end && !cpu_cancelled(job->run); j += MATRIX_KEYS) {
        int64_t keys = min_i64(MATRIX_KEYS, end - j);

        take_values(job, head, j, keys, values);
        cpu_dgemm(fq, (WideMatrix){ wide_fk_of(job, head, j), job->in->fk.stride[1], true }, rows,
                  keys, job->f, 1, 0, a, keys);
        wide_lower_triangle(a, rows, keys, job->in->causal ? first - j : keys, sums);
        cpu_dgemm((WideMatrix){ a, keys, false }, (WideMatrix){ values, job->e, false }, rows,
                  job->e, keys, 1, 1, out, job->e);
    }
    for (int64_t i = 0; i < rows; i++)
        wide_finish_row(job, head, first + i, sums[i], out + i * job->e);
}

/* The state is computed only for the view `memory`. */
static void wide_matrix(Job *job)
{
    job->blocks = ceil_div(job->n, BLOCK);
    if (wide_sum_state(job, BLOCK * MATRIX_KEYS + (MATRIX_KEYS + BLOCK) * job->e))
        threads_run(job->run->threads, job->h * job->blocks, wide_matrix_item, job);
}

void cpu_linear_attend_wide(Run *r, const LinearAttend *in, LinearResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .in = in, .out = out, .h = out->out.shape[0],
                      .n = in->fq.shape[1], .m = in->fk.shape[1], .f = in->fq.shape[2],
                      .e = in->v.shape[2] };

    if (in->form == LINEAR_MATRIX && !in->gates.data)
        wide_matrix(&job);
    else if (!in->causal)
        wide_factorised(&job);
    else if (in->form == LINEAR_CHUNKED && !in->gates.data)
        wide_chunked(&job);
    else
        wide_recurrent(&job);
    arena_release(r->arena, mark);
}
