/* attend_gather.c -- attention over rows whose keys lie here and there, cell by cell.
 *
 * The keys of some rows are listed once for all heads that share them.  Where a head's keys
 * and values do not fit a cache, their cells are taken stretch of keys by stretch of keys,
 * each for all rows, whose softmaxes wait in the output: a key that comes from memory by itself
 * costs several times what it costs from the third-level cache.
 */
#include "attn/cpu/attend_job.h"

#define GATHER_BYTES (16 << 20) /* keys and values of a stretch */
#define LIST_BYTES (32 << 20)   /* about: listed keys at once */
#define ITEM_ROWS 256

/* Lists the keys of some rows, or counts them while job->listed is NULL. */
static void list_item(void *context, int64_t item, int worker)
{
    Job        *job = context;
    Worker     *w = &job->workers[worker];
    PatternRow *row = &w->plan.row;
    int64_t     end = min_i64(job->list_rows, (item + 1) * ITEM_ROWS);

    for (int64_t i = item * ITEM_ROWS; i < end && !w->failed; i++) {
        int64_t count = 0;

        pattern_row(job->pattern, job->per_head ? job->head : 0, job->list_first + i, row);
        w->failed = row->failed;
        for (int64_t x = 0; x < row->count; x++)
            for (int64_t y = 0; y < row->runs[x].count; y++, count++)
                if (job->listed)
                    job->listed[job->list_offset[i] + count] =
                        (int32_t)(row->runs[x].start + y * row->runs[x].step);
        if (!job->listed)
            job->list_offset[i + 1] = count;
    }
}

static bool any_failed(const Job *job)
{
    bool failed = cpu_cancelled(job->run);

    for (int x = 0; x < threads_count(job->run->threads); x++)
        failed |= job->workers[x].failed;
    return failed;
}

static bool list_rows(Job *job)
{
    int64_t items = ceil_div(job->list_rows, ITEM_ROWS);

    job->listed = NULL;
    job->list_offset[0] = 0;
    threads_run(job->run->threads, items, list_item, job);
    if (any_failed(job))
        return false;
    for (int64_t i = 0; i < job->list_rows; i++)
        job->list_offset[i + 1] += job->list_offset[i];
    job->listed = cpu_scratch(job->run, max_i64(1, job->list_offset[job->list_rows]),
                              sizeof(*job->listed));
    if (job->listed)
        threads_run(job->run->threads, items, list_item, job);
    return job->listed && !any_failed(job);
}

static void gather_item(void *context, int64_t item, int worker)
{
    Job    *job = context;
    int64_t first = item * job->block_rows;

    if (!cpu_cancelled(job->run))
        attend_block(job, &job->workers[worker], job->head, job->list_first + first,
                     min_i64(job->block_rows, job->list_rows - first));
}

/* The listed rows of one head. */
static void gather_head(Job *job)
{
    int64_t row = (job->d + job->e) * (int64_t)sizeof(float);
    int64_t passes = ceil_div(job->m * row, GATHER_BYTES), keys = ceil_div(job->m, passes);

    for (int64_t x = 0; x < passes; x++) {
        job->key_low = x * keys;
        job->key_high = min_i64(job->m, (x + 1) * keys);
        threads_run(job->run->threads, ceil_div(job->list_rows, job->block_rows), gather_item,
                    job);
    }
}

static bool gather_rows(Job *job)
{
    for (job->head = 0; job->head < job->h; job->head++) {
        ArenaMark mark = arena_mark(job->run->arena);

        if ((job->per_head || job->head == 0) && !list_rows(job))
            return false;
        gather_head(job);
        if (job->per_head)
            arena_release(job->run->arena, mark);
    }
    return true;
}

void attend_gather(Job *job, const Typical *typical)
{
    int64_t row = (int64_t)sizeof(int32_t) * (1 + (int64_t)typical->cells);
    int64_t rows = round_up_to(LIST_BYTES / row + 1, job->block_rows);
    bool    done;

    rows = min_i64(rows, job->n);
    job->row_order = (Phases){ 1, job->n };
    job->list_offset = cpu_scratch(job->run, rows + 1, sizeof(*job->list_offset));
    job->list_max = cpu_scratch(job->run, rows, sizeof(*job->list_max));
    job->list_sum = cpu_scratch(job->run, rows, sizeof(*job->list_sum));
    done = !run_failed(job->run);
    for (job->list_first = 0; done && job->list_first < job->n; job->list_first += rows) {
        ArenaMark mark = arena_mark(job->run->arena);

        job->list_rows = min_i64(rows, job->n - job->list_first);
        done = gather_rows(job);
        arena_release(job->run->arena, mark);
    }
}
