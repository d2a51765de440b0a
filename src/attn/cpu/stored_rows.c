/* stored_rows.c -- see stored_rows.h. */
#include "attn/cpu/stored_rows.h"

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <string.h>

#define ITEM_ROWS 256

typedef struct Rows {
    const Pattern *pattern;
    int64_t        n;
    int64_t       *offset; /* [n+1]; while rows are counted, of row i at i + 1 */
    PatternRun    *runs;   /* NULL while rows are counted */
    PatternRow    *row;    /* [workers] */
} Rows;

static void rows_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;
    PatternRow *row = &job->row[worker];

    for (int64_t i = item * ITEM_ROWS; i < min_i64(job->n, (item + 1) * ITEM_ROWS); i++) {
        if (row->failed)
            return;
        pattern_row(job->pattern, 0, i, row);
        if (!job->runs)
            job->offset[i + 1] = row->count;
        else if (row->count > 0 && !row->failed)
            memcpy(job->runs + job->offset[i], row->runs, (size_t)row->count * sizeof(*row->runs));
    }
}

static bool find_rows(Rows *job, Run *r)
{
    bool failed = false;

    threads_run(r->threads, ceil_div(job->n, ITEM_ROWS), rows_item, job);
    for (int x = 0; x < threads_count(r->threads); x++)
        failed |= job->row[x].failed;
    return !failed;
}

/* How many runs lie before each row, and behind the last: all of them. */
static int64_t add_up(Rows *job)
{
    job->offset[0] = 0;
    for (int64_t i = 0; i < job->n; i++)
        job->offset[i + 1] += job->offset[i];
    return job->offset[job->n];
}

static Pattern *fill(Rows *job, Run *r, double most)
{
    PatternShape shape = { .heads = pattern_heads(job->pattern), .n = job->n,
                           .m = pattern_keys(job->pattern) };
    int64_t      count;

    if (!find_rows(job, r))
        return NULL;
    count = add_up(job);
    if ((double)count * (double)sizeof(PatternRun) > most)
        return NULL;
    job->runs = arena_alloc(r->arena, max_i64(1, count), sizeof(PatternRun));
    if (!job->runs || !find_rows(job, r))
        return NULL;
    return pattern_stored(r->arena, shape, job->offset, job->runs, false);
}

const Pattern *stored_rows(Run *r, const Pattern *pattern, double most)
{
    int      workers = threads_count(r->threads);
    Rows     job = { .pattern = pattern, .n = pattern_queries(pattern) };
    Pattern *stored = NULL;

    if (pattern_per_head(pattern))
        return pattern;
    job.offset = arena_alloc(r->arena, job.n + 1, sizeof(*job.offset));
    job.row = arena_zalloc(r->arena, workers, sizeof(*job.row));
    if (job.offset && job.row)
        stored = fill(&job, r, most);
    for (int x = 0; job.row && x < workers; x++)
        pattern_row_free(&job.row[x]);
    return stored ? stored : pattern;
}
