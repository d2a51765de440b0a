/* attend_near.c -- attention over a pattern whose blocks need few panels of keys.
 *
 * To pack all keys before any is used sends them through memory once more than needed, and at
 * a large n memory is what a short row waits for.  Here a worker takes a stretch of blocks and
 * packs a panel when a tile first wants it; a few panels of each head stay, in slots by their
 * number, and the next block finds most of its own there.  A block is planned once for all
 * heads of the batch.
 *
 * A block that needs far more than the others (rows that see everything) would keep one
 * worker busy at the end: such blocks come last, each head an item of its own.
 */
#include "attn/cpu/attend_job.h"
#include "core/threads.h"

#include <string.h>

/* Packed panels of a worker; more heads wait for the next batch. */
#define NEAR_BYTES (1 << 20)
#define LEAST_SLOTS 8
#define MOST_SLOTS 32
#define NEAR_SHARE 4      /* rows see at most one key of so many */
#define NEAR_ROW 1024     /* and at most so many */
#define MOST_BLOCKS 8     /* of an item */
#define ITEMS_PER_WORKER 8
#define FAR_TIMES 8       /* what a block holds beyond a usual one's cells to be far */

bool attend_near_pays(Job *job, const Typical *typical)
{
    int64_t span = 4 * (int64_t)(typical->cells / TILE_KEYS) + LEAST_SLOTS - 1, slots = 1;
    int64_t items = threads_count(job->run->threads) * ITEMS_PER_WORKER;

    if (typical->cells * NEAR_SHARE > (double)job->m || typical->cells > NEAR_ROW)
        return false;
    while (2 * slots <= min_i64(span, MOST_SLOTS))
        slots *= 2;
    job->near_slots = slots;
    job->near_blocks = max_i64(1, min_i64(MOST_BLOCKS, job->blocks / items));
    job->near_most = FAR_TIMES * typical->cells * (double)job->block_rows;
    return true;
}

bool attend_near_init(Job *job)
{
    Arena  *arena = job->run->arena;
    int64_t panel = job->d * TILE_KEYS * (int64_t)sizeof(float), panels;
    bool    taken = true;

    job->most_slices = max_i64(1, min_i64(NEAR_BYTES / (panel * job->near_slots),
                                          job->in->k.shape[0]));
    panels = job->most_slices * job->near_slots;
    job->far = arena_alloc(arena, job->blocks, sizeof(*job->far));
    job->far_block = arena_alloc(arena, job->blocks, sizeof(*job->far_block));
    for (int x = 0; x < threads_count(job->run->threads); x++) {
        Worker *w = &job->workers[x];

        w->near = arena_alloc(arena, panels, panel);
        w->near_panel = arena_alloc(arena, panels, sizeof(*w->near_panel));
        taken &= w->near && w->near_panel;
    }
    return taken && job->far && job->far_block;
}

static bool is_far(const Job *job, const Worker *w)
{
    return !job->per_head && w->plan.cells > job->near_most;
}

static void take_heads(const Job *job, Worker *w, int64_t block)
{
    int64_t first = block * job->block_rows, rows = min_i64(job->block_rows, job->n - first);

    for (int64_t x = 0; x < job->heads && !w->failed && !cpu_cancelled(job->run); x++) {
        w->failed = !attend_plan(job, w, job->head + x, first, rows);
        job->far[block] = !w->failed && is_far(job, w);
        if (job->far[block])
            return;
        if (!w->failed)
            attend_block(job, w, job->head + x, first, rows);
    }
}

static void near_item(void *context, int64_t item, int worker)
{
    Job    *job = context;
    int64_t first = item * job->near_blocks, end = min_i64(job->blocks, first + job->near_blocks);

    for (int64_t block = first; block < end; block++)
        take_heads(job, &job->workers[worker], block);
}

static void far_item(void *context, int64_t item, int worker)
{
    Job *job = context;

    attend_planned(job, &job->workers[worker], job->head + item % job->heads,
                   job->far_block[item / job->heads]);
}

static void forget_panels(Job *job)
{
    for (int x = 0; x < threads_count(job->run->threads); x++)
        memset(job->workers[x].near_panel, 0xff,
               (size_t)(job->slices * job->near_slots) * sizeof(int32_t));
}

void attend_near_batch(Job *job)
{
    int64_t far = 0;

    forget_panels(job);
    memset(job->far, 0, (size_t)job->blocks);
    threads_run(job->run->threads, ceil_div(job->blocks, job->near_blocks), near_item, job);
    for (int64_t block = 0; block < job->blocks; block++)
        if (job->far[block])
            job->far_block[far++] = (int32_t)block;
    threads_run(job->run->threads, far * job->heads, far_item, job);
}
