/* generate.c -- see generate.h. */
#include "input/generate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "core/text.h"
#include "input/load.h"

#define CHUNK 65536 /* numbers of one stream; part of what a seed means */

int64_t load_limit(const InputChoice *choice)
{
    return choice->max_bytes > 0 ? choice->max_bytes : INPUT_MAX_BYTES_DEFAULT;
}

bool load_no_memory(Error *err, const char *what, int64_t bytes, const InputChoice *choice)
{
    char need[32], limit[32];

    return error_set(err, ERR_NOMEM, "%s would need %s; the limit is %s (take fewer positions, or "
                     "raise it with --mem)", what, format_bytes(bytes, need, sizeof(need)),
                     format_bytes(load_limit(choice), limit, sizeof(limit)));
}

bool generate_allocate(Input *in, int64_t heads, int64_t n, int64_t d, const InputChoice *choice,
                       Error *err)
{
    int64_t shape[3] = { heads, n, d }, bytes = 4 * (heads > 1 ? 4 : 3);

    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            bytes = INT64_MAX;
    if (bytes > load_limit(choice))
        return load_no_memory(err, "q, k, v and x", bytes, choice);
    in->heads = heads;
    in->n = in->m = n;
    in->d = in->e = d;
    in->q = tensor_new(in->arena, DT_F32, 3, shape);
    in->k = tensor_new(in->arena, DT_F32, 3, shape);
    in->v = tensor_new(in->arena, DT_F32, 3, shape);
    return (in->q.data && in->k.data && in->v.data) ||
           load_no_memory(err, "q, k, v and x", bytes, choice);
}

bool generate_x(Input *in, const InputChoice *choice, Error *err)
{
    int64_t shape[2] = { in->n, in->heads * in->d };
    size_t  row = (size_t)in->d * sizeof(float);

    if (in->heads == 1) { /* the same numbers */
        in->x = tensor_of(DT_F32, 2, shape, in->v.data);
        return true;
    }
    in->x = tensor_new(in->arena, DT_F32, 2, shape);
    if (!in->x.data)
        return load_no_memory(err, "x", shape[0] * shape[1] * 4, choice);
    for (int64_t h = 0; h < in->heads; h++)
        for (int64_t i = 0; i < in->n; i++)
            memcpy(tensor_f32(&in->x) + (i * in->heads + h) * in->d,
                   tensor_f32(&in->v) + (h * in->n + i) * in->d, row);
    return true;
}

void generate_parallel(int64_t items, ThreadsFn fn, void *context)
{
    Threads *pool = items > 1 ? threads_new(threads_hardware()) : NULL;

    threads_run(pool, items, fn, context);
    threads_free(pool);
}

typedef struct NormalTask {
    Rng     rng;
    float  *out;
    int64_t count;
    double  deviation;
} NormalTask;

static void normal_chunk(void *context, int64_t item, int worker)
{
    const NormalTask *task = context;
    int64_t           begin = item * CHUNK, left = task->count - begin;
    Rng               rng = task->rng;

    (void)worker;
    rng.stream += (uint64_t)item;
    rng_fill_normal(&rng, task->out + begin, left < CHUNK ? left : CHUNK, task->deviation);
}

void generate_normal(uint64_t seed, const char *name, float *out, int64_t count, double deviation)
{
    NormalTask task = { .rng = rng_named(seed, name), .out = out, .count = count,
                        .deviation = deviation };

    generate_parallel((count + CHUNK - 1) / CHUNK, normal_chunk, &task);
}

void generate_code(uint64_t seed, Symbol symbol, int64_t head, float *out, int64_t d)
{
    Rng    rng = rng_named(seed, symbol.kind);
    double squares = 0;
    float  factor;

    rng.stream ^= symbol.number * 0x9e3779b97f4a7c15u + (uint64_t)head * 0xc2b2ae3d27d4eb4fu;
    rng_fill_normal(&rng, out, d, 1);
    for (int64_t i = 0; i < d; i++)
        squares += (double)out[i] * (double)out[i];
    if (!(squares > 0))
        return;
    factor = (float)sqrt((double)d / squares);
    for (int64_t i = 0; i < d; i++)
        out[i] *= factor;
}

void generate_sum(uint64_t seed, const Symbol *symbols, int count, int64_t head,
                  double amplitude, float *scratch, float *out, int64_t d)
{
    memset(out, 0, (size_t)d * sizeof(*out));
    for (int t = 0; t < count; t++) {
        float factor = (float)(amplitude * symbols[t].weight);

        if (symbols[t].weight == 0)
            continue;
        generate_code(seed, symbols[t], head, scratch, d);
        for (int64_t i = 0; i < d; i++)
            out[i] += factor * scratch[i];
    }
}

double generate_amplitude(double match, int64_t d)
{
    return sqrt(match / sqrt((double)d));
}

void generate_frequencies(uint64_t seed, const char *name, int64_t head, int dims,
                          const double *bandwidth, int64_t d, float *frequencies)
{
    Rng rng = rng_named(seed, name);

    rng.stream += (uint64_t)head;
    for (int64_t f = 0; f < (d + 1) / 2; f++)
        for (int a = 0; a < dims; a++)
            frequencies[f * dims + a] = (float)(rng_normal(&rng) / bandwidth[a]);
}

void generate_features(const float *frequencies, int dims, const double *point,
                       double amplitude, float *out, int64_t d)
{
    double radius = amplitude * M_SQRT2; /* cos^2 + sin^2 = 1 for two numbers */

    for (int64_t f = 0; f < (d + 1) / 2; f++) {
        double angle = 0;

        for (int a = 0; a < dims; a++)
            angle += (double)frequencies[f * dims + a] * point[a];
        out[2 * f] = (float)(radius * cos(angle));
        if (2 * f + 1 < d)
            out[2 * f + 1] = (float)(radius * sin(angle));
    }
}
