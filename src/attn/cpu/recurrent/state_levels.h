/* state_levels.h -- chunks of attention by one state for each run of a Fenwick tree (log-linear);
 * see attn/ops/state.h.
 *
 * Token i reads itself and the states of the set bits of i; a new token is joined with the runs
 * that a carry to i + 1 passes.  A chunk of 2^b tokens does the same with its own index: levels
 * up to b lie inside it, as a triangle of weights.
 *
 * Included by state_levels.c and state_levels_wide.c, which compute in Real, float or double.
 */
#ifndef ATTN_CPU_STATE_LEVELS_H
#define ATTN_CPU_STATE_LEVELS_H

#include <string.h>

#include "attn/cpu/cpu.h"
#include "attn/ops/state.h"
#include "core/threads.h"

typedef struct LevelsJob LevelsJob;
typedef struct LevelsChunk LevelsChunk;

/* Bytes of a worker's memory. */
typedef int64_t LevelsBytes(const LevelsJob *job);
/* Takes one chunk; `work`, that memory, keeps the states from chunk to chunk of a head. */
typedef void LevelsTake(const LevelsJob *job, const LevelsChunk *at, void *work);

struct LevelsJob {
    Run               *run;
    const StateAttend *in;
    Tensor            *out;
    int64_t            h, n, d, e, chunk, states;
    LevelsTake        *take;
    char              *work; /* [workers][work_size] */
    int64_t            work_size;
};

/* Rows [first, first + rows) of a head; levels from `level` on are of states. */
struct LevelsChunk {
    int64_t head, first, rows, index, level;
};

/* Weights of the levels of token r of the chunk. */
static const double *levels_of(const LevelsJob *job, const LevelsChunk *at, int64_t r)
{
    return tensor_row_f64(&job->in->levels, at->head, job->h, at->first + r);
}

static double level_gate(const LevelsJob *job, const LevelsChunk *at, int64_t r)
{
    const Tensor *gates = &job->in->gates;

    return *((const double *)tensor_head(gates, at->head, job->h) +
             (at->first + r) * gates->stride[1]);
}

/* Whether state `bit` is in use before the chunk. */
static bool state_in_use(const LevelsChunk *at, int64_t bit)
{
    return at->index >> bit & 1;
}

/* The state, of those from `state` on, that the chunk becomes part of: the states that the carry
 * passes are joined in it. */
static Real *join_states(const LevelsChunk *at, Real *state, int64_t size)
{
    int64_t level = 0;

    for (; state_in_use(at, level); level++) {
        Real *one = state + level * size, *two = one + size;

        if (state_in_use(at, level + 1))
            for (int64_t c = 0; c < size; c++)
                two[c] += one[c];
        else
            memcpy(two, one, (size_t)size * sizeof(*two));
        memset(one, 0, (size_t)size * sizeof(*one));
    }
    return state + level * size;
}

static void levels_item(void *context, int64_t head, int worker)
{
    const LevelsJob *job = context;
    LevelsChunk      at = { .head = head, .level = state_bits(job->chunk) };

    for (; at.first < job->n && !cpu_cancelled(job->run); at.first += job->chunk, at.index++) {
        at.rows = min_i64(job->chunk, job->n - at.first);
        job->take(job, &at, job->work + worker * job->work_size);
    }
}

/* All chunks of all heads. */
static void levels_run(Run *r, const StateAttend *in, Tensor *out, LevelsBytes *bytes,
                       LevelsTake *take)
{
    LevelsJob job = { .run = r, .in = in, .out = out, .h = out->shape[0], .n = in->q.shape[1],
                      .d = in->q.shape[2], .e = in->v.shape[2], .chunk = 1, .take = take };

    while (in->form.chunked && job.chunk < min_i64(in->form.chunk, job.n))
        job.chunk *= 2; /* one chunk is as long as the sequence at most */
    job.states = state_bits((job.n + job.chunk - 1) / job.chunk);
    job.work_size = round_up_to(bytes(&job), 64);
    job.work = cpu_scratch(r, threads_count(r->threads), job.work_size);
    if (job.work)
        threads_run(r->threads, job.h, levels_item, &job);
}

#endif
