/* reach_summary.c -- how much of the matrix is reached at each depth; see reach.h.
 *
 * Blocks of rows are items of the pool.  Each worker adds up what its blocks
 * reach; sums and extremes do not depend on who took which block.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/study/reach_layer.h"

#define DEPTHS (REACH_MOST + 1)

typedef struct Tally {
    ReachBlock *block;
    int32_t    *tokens; /* [rows of a block][DEPTHS] found at each depth */
    ReachDepth  at[DEPTHS];
    bool        changed[DEPTHS]; /* some row reaches other tokens than at the depth before */
} Tally;

typedef struct Job {
    const ReachStack  *stack;
    const atomic_bool *cancel;
    int64_t            n;
    Tally             *tallies; /* one a worker */
    atomic_bool        failed;
} Job;

static void count_tokens(void *context, int depth, int64_t row, int64_t group, uint64_t tokens)
{
    Tally *t = context;

    (void)group;
    t->tokens[row * DEPTHS + depth] += __builtin_popcountll(tokens);
}

static void add_row(Tally *t, const ReachStack *s, const int32_t *tokens)
{
    int64_t sum = 0;

    for (int depth = 0; depth <= s->depth; depth++) {
        ReachDepth *at = &t->at[depth];

        sum = (s->residual ? sum : 0) + tokens[depth];
        at->pairs += sum;
        at->least = sum < at->least ? sum : at->least;
        at->most = sum > at->most ? sum : at->most;
    }
}

static void tally_block(void *context, int64_t item, int worker)
{
    Job    *job = context;
    Tally  *t = &job->tallies[worker];
    int64_t rows = reach_block_rows(job->n), first = item * rows;

    if (atomic_load(&job->failed))
        return;
    memset(t->tokens, 0, (size_t)(rows * DEPTHS) * sizeof(*t->tokens));
    if (!reach_search(job->stack, t->block, first, count_tokens, t, t->changed, job->cancel)) {
        atomic_store(&job->failed, true);
        return;
    }
    for (int64_t r = 0; r < rows && first + r < job->n; r++)
        add_row(t, job->stack, t->tokens + r * DEPTHS);
}

static void merge(Job *job, int workers, ReachSummary *out, bool *changed)
{
    for (int depth = 0; depth <= job->stack->depth; depth++) {
        ReachDepth *at = &out->at[depth];

        *at = (ReachDepth){ .least = INT64_MAX };
        for (int w = 0; w < workers; w++) {
            const ReachDepth *part = &job->tallies[w].at[depth];

            at->pairs += part->pairs;
            at->least = part->least < at->least ? part->least : at->least;
            at->most = part->most > at->most ? part->most : at->most;
            changed[depth] = changed[depth] || job->tallies[w].changed[depth];
        }
    }
}

/* The depth from which on every layer in turn changed nothing. */
static int fixed_depth(const ReachStack *s, const bool *changed)
{
    int quiet = 0;

    for (int depth = 1; depth <= s->depth; depth++) {
        quiet = changed[depth] ? 0 : quiet + 1;
        if (quiet == s->count)
            return depth - quiet;
    }
    return -1;
}

static void conclude(const ReachStack *s, const bool *changed, ReachSummary *out)
{
    const ReachDepth *at = out->at;
    double            hops = 0;

    out->full = out->fixed = -1;
    for (int depth = s->depth; depth >= 0; depth--)
        if (at[depth].pairs == out->possible)
            out->full = depth;
    out->fixed = fixed_depth(s, changed);
    if (s->residual && out->full >= 0) /* there is nothing more to reach */
        out->fixed = out->full;
    for (int depth = 1; depth <= s->depth && s->residual; depth++)
        hops += (double)depth * (double)(at[depth].pairs - at[depth - 1].pairs);
    if (s->residual && at[s->depth].pairs > out->tokens)
        out->mean = hops / (double)(at[s->depth].pairs - out->tokens);
}

static bool tallies_new(Job *job, int workers, Error *err)
{
    size_t size = (size_t)(reach_block_rows(job->n) * DEPTHS) * sizeof(int32_t);

    job->tallies = calloc((size_t)workers, sizeof(*job->tallies));
    for (int w = 0; job->tallies && w < workers; w++) {
        Tally *t = &job->tallies[w];

        t->tokens = malloc(size);
        t->block = reach_block_new(job->n, err);
        if (!t->tokens || !t->block)
            return error_set(err, ERR_NOMEM, "the reach of %lld tokens: not enough memory",
                             (long long)job->n);
        for (int depth = 0; depth < DEPTHS; depth++)
            t->at[depth].least = INT64_MAX;
    }
    return job->tallies || error_set(err, ERR_NOMEM, "the reach of %lld tokens: not enough memory",
                                     (long long)job->n);
}

bool reach_summary(const ReachStack *s, bool causal, Threads *threads, const atomic_bool *cancel,
                   ReachSummary *out, Error *err)
{
    int64_t n = reach_layer_tokens(s->layers[0]), rows = reach_block_rows(n);
    int     workers = threads_count(threads);
    bool    changed[DEPTHS] = { false }, ok;
    Job     job = { .stack = s, .cancel = cancel, .n = n };

    *out = (ReachSummary){ .tokens = n,
                           .depth = s->depth,
                           .possible = causal ? n * (n + 1) / 2 : n * n };
    ok = tallies_new(&job, workers, err);
    if (ok)
        threads_run(threads, (n + rows - 1) / rows, tally_block, &job);
    if (ok && atomic_load(&job.failed))
        ok =
            cancel && atomic_load(cancel)
                ? error_set(err, ERR_CANCELLED, "the reach of %lld tokens: cancelled", (long long)n)
                : error_set(err, ERR_NOMEM, "the reach of %lld tokens: not enough memory",
                            (long long)n);
    if (ok) {
        merge(&job, workers, out, changed);
        conclude(s, changed, out);
    }
    for (int w = 0; job.tallies && w < workers; w++) {
        reach_block_free(job.tallies[w].block);
        free(job.tallies[w].tokens);
    }
    free(job.tallies);
    return ok;
}
