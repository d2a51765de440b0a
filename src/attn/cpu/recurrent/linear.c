/* linear.c -- attention through features.
 *
 *     S = sum_j fk_j^T v_j,  z = sum_j fk_j,  out_i = fq_i S / divisor(fq_i . z)
 *
 * with the sums over all keys, or over j <= i when causal.  Factorised: products
 * of FEATURE_ROWS keys in f32, added in double, then queries times the state.
 * Recurrent: token by token.  Chunked: chunk by chunk.  Matrix: all weights.
 * z is always in double.  Slices and blocks have fixed sizes: threads change no
 * bit.
 */
#include "attn/cpu/cpu.h"

#include "attn/cpu/simd/kernel.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define READ_ROWS (2 * FEATURE_ROWS)
#define SLICE_KEYS 1024 /* least keys of a slice */
#define SLICES 8        /* most slices of a head */
#define TOKENS_AHEAD 8  /* whose values are prefetched, and rows that are written */
#define MATRIX_ROWS 96
#define MATRIX_KEYS 512

typedef struct Job {
    Run                *run;
    const Kernel       *kernel;
    const LinearAttend *in;
    LinearResult       *out;
    int64_t             h, n, m, f, e;
    int64_t             slices, slice_keys;
    int64_t             chunk;
    int64_t             blocks;  /* of rows, per head */
    FeatureRows         queries, keys; /* of features that are made here */
    double             *state;   /* [h][slices][f][e] */
    double             *z;       /* [h][slices][f]; slice 0 becomes the head's sum */
    bool                under_top; /* the keys' maximum c is found here */
    double             *top;     /* [h][slices] c of the keys so far; causal: [h][steps], of the
                                    keys up to each step's end */
    int64_t             steps, step_rows; /* of a head; rows of a step */
    double             *value;   /* [h][slices][e] sum of values, of keys under_top; causal:
                                    [workers][e] */
    float              *work;    /* [workers][work_size] */
    int64_t             work_size;
} Job;

/* Features of some rows, where they lie or made. */
typedef struct Rows {
    const float *row;
    int64_t      ld;
} Rows;

/* made [rows][f]: where they are put that lie nowhere */
static Rows features_of(const Job *job, const Tensor *f, const FeatureRows *source, int64_t head,
                        int64_t first, int64_t rows, float *made)
{
    if (f->data)
        return (Rows){ tensor_row_f32(f, head, job->h, first), f->stride[1] };
    cpu_features_make(source, head, first, rows, made);
    return (Rows){ made, job->f };
}

static Rows fq_of(const Job *job, int64_t head, int64_t first, int64_t rows, float *made)
{
    return features_of(job, &job->in->fq, &job->queries, head, first, rows, made);
}

static Rows fk_of(const Job *job, int64_t head, int64_t first, int64_t rows, float *made)
{
    return features_of(job, &job->in->fk, &job->keys, head, first, rows, made);
}

/* Floats that so many rows of f take where they are made; 0: they lie in memory. */
static int64_t room_for(const Job *job, const Tensor *f, int64_t rows)
{
    return f->data ? 0 : round_up_to(rows * job->f, LANES);
}

static int64_t room_for_keys(const Job *job, int64_t rows)
{
    return job->under_top ? round_up_to(rows * job->f, LANES) : room_for(job, &job->in->fk, rows);
}

static const float *v_of(const Job *job, int64_t head, int64_t j)
{
    return tensor_row_f32(&job->in->v, head, job->h, j);
}

/* Prefetches the value of key j, if there is one. */
static PREFETCHES void fetch_value(const Job *job, int64_t head, int64_t j)
{
    if (j < job->m)
        cpu_fetch(v_of(job, head, j), job->e);
}

static float *out_of(const Job *job, int64_t head, int64_t i)
{
    return tensor_f32(&job->out->out) + (head * job->n + i) * job->e;
}

static PREFETCHES void fetch_out(const Job *job, int64_t head, int64_t i)
{
    if (i < job->n)
        cpu_fetch(out_of(job, head, i), job->e);
}

static double guarded(const LinearAttend *in, double z, double features_sum)
{
    switch (in->denominator) {
    case DENOMINATOR_GUARD: return fabs(z) <= in->eps ? z + 2 * in->eps : z;
    case DENOMINATOR_ADD: return z + in->eps;
    case DENOMINATOR_ADD_FEATURES: return z + in->eps * features_sum;
    case DENOMINATOR_FLOOR: return fmax(z, in->eps);
    case DENOMINATOR_NONE: break;
    }
    return 1;
}

/* A divisor of 0 (no feature of the query occurs in a key, and there is no guard) becomes 1: the
 * row is 0, as one without keys. */
double cpu_divisor(const LinearAttend *in, double z, double features_sum)
{
    double divisor = guarded(in, z, features_sum);

    return divisor != 0 ? divisor : 1;
}

static double divisor_of(const Job *job, double z, const float *fq)
{
    double sum = 0;

    for (int64_t t = 0; t < job->f && job->in->denominator == DENOMINATOR_ADD_FEATURES; t++)
        sum += (double)fq[t];
    return cpu_divisor(job->in, z, sum);
}

/* Row i of the output from its sums (which may be the row itself); records z and the divisor. */
static void finish_row(const Job *job, int64_t head, int64_t i, const float *fq, double z,
                       const float *sums)
{
    double divisor = divisor_of(job, z, fq);

    tensor_f32(&job->out->denominator)[head * job->n + i] = (float)z;
    tensor_f64(&job->out->divisor)[head * job->n + i] = divisor;
    job->kernel->scale(sums, job->e, (float)(1 / divisor), out_of(job, head, i));
}

/* ---- the state over all keys ------------------------------------------------ */

/* Adds keys [j, j + keys), keys <= FEATURE_ROWS, to the state and to z; part [f][lda]: room for
 * what they add to the state. */
static void add_keys(const Job *job, int64_t head, int64_t j, int64_t keys, Rows fk, float *part,
                     double *state, double *z)
{
    int64_t lda = round_up_to(job->e, LANES);

    cpu_product(&(SmallProduct){ .a = fk.row, .lda = 1, .step = fk.ld, .b = v_of(job, head, j),
                                 .ldb = job->in->v.stride[1], .rows = job->f, .cols = job->e,
                                 .inner = keys, .alpha = 1, .c = part, .ldc = lda });
    for (int64_t t = 0; t < job->f; t++)
        job->kernel->fold(part + t * lda, job->e, state + t * job->e);
    for (int64_t x = 0; x < keys; x++) {
        fetch_value(job, head, j + keys + x);
        job->kernel->fold(fk.row + x * fk.ld, job->f, z);
    }
}

/* Keys whose maximum c is known only at the end: a slice sums exp(u - s - c') under its own maximum
 * c' so far, and its values, for what eps adds to every feature. */
static Rows keys_under_top(const Job *job, int64_t item, int64_t j, int64_t keys, float *made,
                           double *state, double *z)
{
    int64_t head = item / job->slices;
    double  top = cpu_features_project(&job->keys, head, j, keys, made), *c = &job->top[item];

    if (top > *c) {
        job->kernel->scale64(state, job->f * job->e, exp(*c - top));
        job->kernel->scale64(z, job->f, exp(*c - top));
        *c = top;
    }
    cpu_features_under(&job->keys, head, j, keys, *c, made);
    for (int64_t x = 0; x < keys; x++)
        job->kernel->fold(v_of(job, head, j + x), job->e, job->value + item * job->e);
    return (Rows){ made, job->f };
}

static void state_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->slices, first = item % job->slices * job->slice_keys;
    int64_t    end = min_i64(job->m, first + job->slice_keys), size = job->f * job->e;
    double    *state = job->state + item * size, *z = job->z + item * job->f;
    float     *part = job->work + worker * job->work_size;
    float     *made = part + job->f * round_up_to(job->e, LANES);

    if (cpu_cancelled(job->run))
        return;
    memset(state, 0, (size_t)size * sizeof(*state));
    memset(z, 0, (size_t)job->f * sizeof(*z));
    for (int64_t j = first; j < end && !cpu_cancelled(job->run); j += FEATURE_ROWS) {
        int64_t keys = min_i64(FEATURE_ROWS, end - j);
        Rows    fk = job->under_top ? keys_under_top(job, item, j, keys, made, state, z)
                                    : fk_of(job, head, j, keys, made);

        add_keys(job, head, j, keys, fk, part, state, z);
    }
}

/* What the sums of a head's slices are multiplied by: exp(c' - c). */
static void slice_factors(const Job *job, int64_t head, double factor[SLICES])
{
    const double *top = job->under_top ? job->top + head * job->slices : NULL;
    double        c = -(double)INFINITY;

    for (int64_t s = 0; top && s < job->slices; s++)
        c = fmax(c, top[s]);
    for (int64_t s = 0; s < job->slices; s++)
        factor[s] = !top || top[s] == c ? 1 : exp(top[s] - c);
}

/* What eps adds to every feature: this constant, for each key. */
static double constant_of(const Job *job)
{
    return job->under_top ? cpu_features_constant(&job->keys) : 0;
}

/* The sum of a head's values times the constant, over its first slice's. */
static void sum_values(const Job *job, int64_t head)
{
    double *value = job->value + head * job->slices * job->e;

    for (int64_t s = 1; s < job->slices; s++)
        for (int64_t c = 0; c < job->e; c++)
            value[c] += value[s * job->e + c];
    job->kernel->scale64(value, job->e, constant_of(job));
}

static void sum_states(const Job *job, int64_t head, const double factor[SLICES])
{
    int64_t       size = job->f * job->e;
    const double *state = job->state + head * job->slices * size;
    const double *value = job->under_top ? job->value + head * job->slices * job->e : NULL;
    float        *memory = tensor_f32(&job->out->memory) + head * size;

    for (int64_t c = 0; c < size; c++) {
        double sum = value ? value[c % job->e] : 0;

        for (int64_t s = 0; s < job->slices; s++)
            sum += factor[s] * state[s * size + c];
        memory[c] = (float)sum;
    }
}

/* The state of a head from its slices. */
static void sum_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    double    *z = job->z + head * job->slices * job->f, factor[SLICES];

    (void)worker;
    slice_factors(job, head, factor);
    if (job->under_top)
        sum_values(job, head);
    sum_states(job, head, factor);
    for (int64_t t = 0; t < job->f; t++) {
        z[t] = factor[0] * z[t] + constant_of(job) * (double)job->m;
        for (int64_t s = 1; s < job->slices; s++)
            z[t] += factor[s] * z[s * job->f + t];
    }
}

/* Queries [i, i + rows), rows <= FEATURE_ROWS. */
static void read_rows(const Job *job, int64_t head, int64_t i, int64_t rows, Rows fq, float *sums)
{
    int64_t       lda = round_up_to(job->e, LANES);
    const float  *state = tensor_f32(&job->out->memory) + head * job->f * job->e;
    const double *z = job->z + head * job->slices * job->f;

    cpu_product(&(SmallProduct){ .a = fq.row, .lda = fq.ld, .step = 1, .b = state, .ldb = job->e,
                                 .rows = rows, .cols = job->e, .inner = job->f, .alpha = 1,
                                 .c = sums, .ldc = lda });
    for (int64_t x = 0; x < rows; x++) {
        fetch_out(job, head, i + x + TOKENS_AHEAD);
        finish_row(job, head, i + x, fq.row + x * fq.ld,
                   job->kernel->dot_wide(fq.row + x * fq.ld, z, job->f), sums + x * lda);
    }
}

static void read_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * READ_ROWS;
    int64_t    end = min_i64(job->n, first + READ_ROWS);
    float     *sums = job->work + worker * job->work_size;
    float     *made = sums + FEATURE_ROWS * round_up_to(job->e, LANES);

    for (int64_t i = first; i < end && !cpu_cancelled(job->run); i += FEATURE_ROWS) {
        int64_t rows = min_i64(FEATURE_ROWS, end - i);

        read_rows(job, head, i, rows, fq_of(job, head, i, rows, made), sums);
    }
}

static bool worker_memory(Job *job, int64_t floats)
{
    job->work_size = round_up_to(floats, LANES);
    job->work = cpu_scratch(job->run, threads_count(job->run->threads),
                            job->work_size * (int64_t)sizeof(float));
    return job->work != NULL;
}

/* False: no memory. */
static bool slice_tops(Job *job)
{
    int64_t count = job->h * job->slices;

    if (!job->under_top)
        return true;
    job->top = cpu_scratch(job->run, count, sizeof(*job->top));
    job->value = arena_zalloc(job->run->arena, count, job->e * (int64_t)sizeof(*job->value));
    for (int64_t x = 0; job->top && x < count; x++)
        job->top[x] = -(double)INFINITY;
    return job->top && job->value;
}

static bool sum_state(Job *job)
{
    Run    *r = job->run;
    int64_t lda = round_up_to(job->e, LANES), f = job->f;
    int64_t work = max_i64(f * lda + room_for_keys(job, FEATURE_ROWS),
                           FEATURE_ROWS * lda + room_for(job, &job->in->fq, FEATURE_ROWS));

    job->slice_keys = max_i64(SLICE_KEYS, round_up_to(ceil_div(job->m, SLICES), READ_ROWS));
    job->slices = max_i64(1, ceil_div(job->m, job->slice_keys));
    job->state = cpu_scratch(r, job->h * job->slices, job->f * job->e * (int64_t)sizeof(double));
    job->z = cpu_scratch(r, job->h * job->slices, job->f * (int64_t)sizeof(double));
    if (!job->state || !job->z || !worker_memory(job, work) || !slice_tops(job))
        return false;
    threads_run(r->threads, job->h * job->slices, state_item, job);
    threads_run(r->threads, job->h, sum_item, job);
    return true;
}

static void factorised(Job *job)
{
    job->blocks = ceil_div(job->n, READ_ROWS);
    if (sum_state(job))
        threads_run(job->run->threads, job->h * job->blocks, read_item, job);
}

/* ---- causal: keys under a maximum that rises ---------------------------------- */

/* What a head knows of the keys up to now. */
typedef struct Past {
    int64_t head;
    float  *state; /* [f][ld] sum of fk^T v */
    int64_t ld;
    double *z;     /* [f] */
    double *top;   /* c of each step; NULL: features are made or given as they are */
} Past;

static Past past_new(const Job *job, int64_t head, float *state, int64_t ld, double *z)
{
    Past p = { .head = head, .state = state, .ld = ld, .z = z,
               .top = job->under_top ? job->top + head * job->steps : NULL };

    memset(state, 0, (size_t)(job->f * ld) * sizeof(*state));
    memset(z, 0, (size_t)job->f * sizeof(*z));
    return p;
}

/* c of the rows before `step`. */
static double top_before(const Past *p, int64_t step)
{
    return step > 0 ? p->top[step - 1] : -(double)INFINITY;
}

/* Features of a step's keys, made in `made` [rows][f] unless they lie in memory.  Where c is known
 * only at the end they are exp(u - s - c'), as in keys_under_top. */
static Rows past_keys(const Job *job, Past *p, int64_t first, int64_t rows, float *made)
{
    int64_t step = first / job->step_rows;
    double  top, before;

    if (!p->top)
        return fk_of(job, p->head, first, rows, made);
    top = cpu_features_project(&job->keys, p->head, first, rows, made);
    before = top_before(p, step);
    p->top[step] = fmax(before, top);
    if (top > before) {
        job->kernel->scale(p->state, job->f * p->ld, (float)exp(before - top), p->state);
        job->kernel->scale64(p->z, job->f, exp(before - top));
    }
    cpu_features_under(&job->keys, p->head, first, rows, p->top[step], made);
    return (Rows){ made, job->f };
}

/* Row i from its sums (which may be the row itself) and its product z with the sum of keys.  Where
 * c is not known yet all is kept as it is, z and the sum of the query's features in the places of
 * the divisor and the denominator. */
static void past_row(const Job *job, const Past *p, int64_t i, const float *fq, double z,
                     const float *sums)
{
    int64_t at = p->head * job->n + i;
    double  features, squares;

    if (!p->top) {
        finish_row(job, p->head, i, fq, z, sums);
        return;
    }
    job->kernel->moments(fq, job->f, 0, &features, &squares);
    tensor_f32(&job->out->denominator)[at] = (float)features;
    tensor_f64(&job->out->divisor)[at] = z;
    job->kernel->scale(sums, job->e, 1, out_of(job, p->head, i));
}

/* The row under c: its sums times exp(c' - c), and what eps adds to every feature of its keys,
 * whose values have the sum `value`. */
static void late_row(const Job *job, int64_t head, int64_t i, double factor, const double *value)
{
    float  *z = tensor_f32(&job->out->denominator) + head * job->n + i, *out = out_of(job, head, i);
    double *divisor = tensor_f64(&job->out->divisor) + head * job->n + i;
    double  features = (double)*z, added = constant_of(job) * features;
    double  sum = factor * *divisor + added * (double)(i + 1);

    *z = (float)sum;
    *divisor = cpu_divisor(job->in, sum, features);
    for (int64_t c = 0; c < job->e; c++)
        out[c] = (float)(factor / *divisor * (double)out[c] + added / *divisor * value[c]);
}

/* All rows of the head under c, which is known now, and then the state. */
static void past_end(const Job *job, const Past *p, double *value)
{
    double c = p->top ? top_before(p, job->steps) : 0;

    memset(value, 0, (size_t)job->e * sizeof(*value));
    for (int64_t i = 0; p->top && i < job->n && !cpu_cancelled(job->run); i++) {
        double top = p->top[i / job->step_rows];

        if (constant_of(job) > 0) /* nothing times an infinite value is not 0 */
            job->kernel->fold(v_of(job, p->head, i), job->e, value);
        late_row(job, p->head, i, top == c ? 1 : exp(top - c), value);
    }
    for (int64_t t = 0; t < job->f; t++)
        for (int64_t x = 0; x < job->e; x++)
            tensor_f32(&job->out->memory)[(p->head * job->f + t) * job->e + x] =
                p->state[t * p->ld + x] + (float)(constant_of(job) * value[x]);
}

/* Room for it; false: no memory. */
static bool past_room(Job *job, int64_t rows)
{
    int64_t size = (int64_t)sizeof(double);

    job->step_rows = rows;
    job->steps = ceil_div(job->n, rows);
    job->value = cpu_scratch(job->run, threads_count(job->run->threads), job->e * size);
    if (job->under_top)
        job->top = cpu_scratch(job->run, job->h, job->steps * size);
    return job->value && (job->top || !job->under_top);
}

/* ---- causal, token by token ------------------------------------------------- */

/* Tokens [first, first + count); behind the state values and sums of RECUR_TOKENS tokens. */
static void take_tokens(const Job *job, Past *p, int64_t first, int64_t count, Rows q, Rows k)
{
    int64_t      f = job->f, e = job->e, padded = p->ld;
    float       *value = p->state + f * padded, *sums = value + RECUR_TOKENS * padded;
    const float *fq[RECUR_TOKENS], *fk[RECUR_TOKENS];

    for (int64_t x = 0; x < count; x++) {
        fq[x] = q.row + x * q.ld;
        fk[x] = k.row + x * k.ld;
        memcpy(value + x * padded, v_of(job, p->head, first + x), (size_t)e * sizeof(*value));
        fetch_value(job, p->head, first + x + TOKENS_AHEAD);
        fetch_out(job, p->head, first + x + TOKENS_AHEAD);
    }
    job->kernel->recur(fq, fk, value, count, f, padded, p->state, sums);
    for (int64_t x = 0; x < count; x++) {
        job->kernel->fold(fk[x], f, p->z);
        past_row(job, p, first + x, fq[x], job->kernel->dot_wide(fq[x], p->z, f),
                 sums + x * padded);
    }
}

/* At most FEATURE_ROWS tokens from `first` on. */
static void take_block(const Job *job, Past *p, int64_t first, float *made)
{
    int64_t rows = min_i64(FEATURE_ROWS, job->n - first);
    Rows    q = fq_of(job, p->head, first, rows, made);
    Rows    k = past_keys(job, p, first, rows, made + room_for(job, &job->in->fq, FEATURE_ROWS));

    for (int64_t x = 0; x < rows; x += RECUR_TOKENS)
        take_tokens(job, p, first + x, min_i64(RECUR_TOKENS, rows - x),
                    (Rows){ q.row + x * q.ld, q.ld }, (Rows){ k.row + x * k.ld, k.ld });
}

static void recurrent_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    int64_t    f = job->f, padded = round_up_to(job->e, LANES);
    float     *state = job->work + worker * job->work_size, *tokens = state + f * padded;
    Past       p = past_new(job, head, state, padded, job->z + worker * f);

    memset(tokens, 0, (size_t)(2 * RECUR_TOKENS * padded) * sizeof(*tokens));
    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i += FEATURE_ROWS)
        take_block(job, &p, i, tokens + 2 * RECUR_TOKENS * padded);
    past_end(job, &p, job->value + worker * job->e);
}

static void recurrent(Job *job)
{
    job->z = cpu_scratch(job->run, threads_count(job->run->threads),
                         job->f * (int64_t)sizeof(double));
    if (job->z && past_room(job, FEATURE_ROWS) &&
        worker_memory(job, (job->f + 2 * RECUR_TOKENS) * round_up_to(job->e, LANES) +
                               room_for(job, &job->in->fq, FEATURE_ROWS) +
                               room_for_keys(job, FEATURE_ROWS)))
        threads_run(job->run->threads, job->h, recurrent_item, job);
}

/* ---- causal, chunk by chunk ------------------------------------------------- */

/* Zeroes a[x][y] for y > x + shift; sums[x] += what remains of row x. */
static void lower_triangle(float *a, int64_t rows, int64_t cols, int64_t lda, int64_t shift,
                           double *sums)
{
    for (int64_t x = 0; x < rows; x++)
        for (int64_t y = 0; y < cols; y++) {
            if (y > x + shift)
                a[x * lda + y] = 0;
            sums[x] += (double)a[x * lda + y];
        }
}

static void take_chunk(const Job *job, Past *p, int64_t first, int64_t rows, float *inner,
                       double *sums)
{
    float *made = inner + round_up_to(job->chunk * job->chunk, LANES);
    float *out = out_of(job, p->head, first);
    Rows   q = fq_of(job, p->head, first, rows, made);
    Rows   k = past_keys(job, p, first, rows, made + room_for(job, &job->in->fq, job->chunk));
    Matrix fq = { q.row, q.ld, false }, fk = { k.row, k.ld, true };
    Matrix v = { v_of(job, p->head, first), job->in->v.stride[1], false };
    Matrix before = { p->state, p->ld, false }, inside = { inner, rows, false };

    for (int64_t i = 0; i < rows; i++)
        sums[i] = job->kernel->dot_wide(q.row + i * q.ld, p->z, job->f);
    cpu_sgemm(fq, fk, rows, rows, job->f, 1, 0, inner, rows);
    lower_triangle(inner, rows, rows, rows, 0, sums);
    cpu_sgemm(fq, before, rows, job->e, job->f, 1, 0, out, job->e);
    cpu_sgemm(inside, v, rows, job->e, rows, 1, 1, out, job->e);
    for (int64_t i = 0; i < rows; i++)
        past_row(job, p, first + i, q.row + i * q.ld, sums[i], out + i * job->e);
    cpu_sgemm(fk, v, job->f, job->e, rows, 1, 1, p->state, p->ld);
    for (int64_t i = 0; i < rows; i++)
        job->kernel->fold(k.row + i * k.ld, job->f, p->z);
}

static void chunked_item(void *context, int64_t head, int worker)
{
    const Job *job = context;
    float     *inner = job->work + worker * job->work_size;
    double    *z = job->z + worker * (job->f + job->chunk);
    float     *state = tensor_f32(&job->out->memory) + head * job->f * job->e;
    Past       p = past_new(job, head, state, job->e, z);

    for (int64_t first = 0; first < job->n && !cpu_cancelled(job->run); first += job->chunk)
        take_chunk(job, &p, first, min_i64(job->chunk, job->n - first), inner, z + job->f);
    past_end(job, &p, job->value + worker * job->e);
}

static void chunked(Job *job)
{
    int64_t workers = threads_count(job->run->threads);

    job->chunk = max_i64(1, min_i64(job->in->chunk, job->n));
    job->z = cpu_scratch(job->run, workers, (job->f + job->chunk) * (int64_t)sizeof(double));
    if (job->z && past_room(job, job->chunk) &&
        worker_memory(job, round_up_to(job->chunk * job->chunk, LANES) +
                               room_for(job, &job->in->fq, job->chunk) +
                               room_for_keys(job, job->chunk)))
        threads_run(job->run->threads, job->h, chunked_item, job);
}

/* ---- the matrix itself ------------------------------------------------------ */

static void matrix_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * MATRIX_ROWS;
    int64_t    rows = min_i64(MATRIX_ROWS, job->n - first);
    int64_t    end = job->in->causal ? min_i64(job->m, first + rows) : job->m;
    float     *a = job->work + worker * job->work_size, *out = out_of(job, head, first);
    Rows       q = fq_of(job, head, first, rows, NULL);
    Matrix     fq = { q.row, q.ld, false };
    double     sums[MATRIX_ROWS] = { 0 };

    memset(out, 0, (size_t)(rows * job->e) * sizeof(*out));
    for (int64_t j = 0; j < end && !cpu_cancelled(job->run); j += MATRIX_KEYS) {
        int64_t keys = min_i64(MATRIX_KEYS, end - j);
        Rows    k = fk_of(job, head, j, keys, NULL);
        Matrix  fk = { k.row, k.ld, true };
        Matrix  v = { v_of(job, head, j), job->in->v.stride[1], false };
        Matrix  weights = { a, keys, false };

        cpu_sgemm(fq, fk, rows, keys, job->f, 1, 0, a, keys);
        lower_triangle(a, rows, keys, keys, job->in->causal ? first - j : keys, sums);
        cpu_sgemm(weights, v, rows, job->e, keys, 1, 1, out, job->e);
    }
    for (int64_t i = 0; i < rows; i++)
        finish_row(job, head, first + i, q.row + i * q.ld, sums[i], out + i * job->e);
}

/* Features lie in memory: each is read many times.  The state is computed only for the view
 * `memory`. */
static void matrix(Job *job)
{
    job->blocks = ceil_div(job->n, MATRIX_ROWS);
    if (sum_state(job) && worker_memory(job, MATRIX_ROWS * MATRIX_KEYS))
        threads_run(job->run->threads, job->h * job->blocks, matrix_item, job);
}

/* made: here, and not where f lies */
static bool begin_rows(Run *r, const FeatureSource *from, const Tensor *f, bool made,
                       FeatureRows *rows)
{
    bool ok = !made || cpu_features_begin(r, &from->x, &from->w, &from->map, f->shape[0],
                                            f->shape[2], rows);

    rows->top = from->top.data ? tensor_f64(&from->top) : NULL;
    rows->top_step = 1;
    return ok;
}

void cpu_linear_attend(Run *r, const LinearAttend *in, LinearResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .kernel = kernel_at(0), .in = in, .out = out,
                      .h = out->out.shape[0], .n = in->fq.shape[1], .m = in->fk.shape[1],
                      .f = in->fq.shape[2], .e = in->v.shape[2],
                      .under_top = linear_finds_top(in) };

    if (!cpu_blas(r) || !begin_rows(r, &in->from_q, &in->fq, !in->fq.data, &job.queries) ||
        !begin_rows(r, &in->from_k, &in->fk, job.under_top || !in->fk.data, &job.keys))
        return;
    if (in->fq.dtype == DT_F64)
        cpu_linear_attend_wide(r, in, out);
    else if (in->form == LINEAR_MATRIX)
        matrix(&job);
    else if (!in->causal)
        factorised(&job);
    else if (in->form == LINEAR_CHUNKED)
        chunked(&job);
    else
        recurrent(&job);
    arena_release(r->arena, mark);
}
