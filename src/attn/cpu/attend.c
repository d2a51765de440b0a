/* attend.c -- fused attention over a pattern with an online softmax.
 *
 * Long rows: heads go in batches; the keys of a batch are packed into panels, then every
 * (block of queries, head) is one item of work, done by block.c.  Short rows that need
 * few panels: see the end of this file.  Neighbours with different runs: attend_bins.c.  Scattered
 * keys: attend_gather.c.  One query a head: one_row.c.  One panel of keys a head: one_panel.c.
 * Few queries that see all keys: few.c.
 *
 * Strided cells would leave all tiles nearly empty.  Where rows hold many cells of one
 * step, rows and keys are taken in the order of their phases (attend.h), in which these
 * cells are neighbours.  The other cells have a pass of their own in the order of the
 * sequence, and the two softmaxes are joined.  Rows of many short runs that many queries
 * share become groups (attend.h).
 * The result of an item depends on the item alone, so neither the number of threads nor
 * their order changes a bit.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/attend.h"
#include "attn/cpu/simd/kernel.h"
#include "core/threads.h"

/* Rows of a block.  Many for long rows: a panel of keys is read often from the first-level
 * cache.  Few for short rows: the rows of a block need the same panels. */
#define LONG_BLOCK 384
#define SHORT_BLOCK 96
#define LONG_ROW 1024
/* Packed keys of one batch, per thread: small enough to stay in the caches until they are
 * used, with enough heads for every thread.  Above BATCH_FREE in all, at most an eighth of
 * the tensors. */
#define BATCH_BYTES (2 << 20)
#define BATCH_FREE (4 << 20)
/* A step has a pass of its own from this many cells in a row, and keys in a phase. */
#define STEP_CELLS 16
#define BROKEN_RUNS 4
/* Few queries: at most one of so many keys; and so many keys in all, for every thread. */
#define FEW_SHARE 16
#define FEW_KEYS 8192
/* Rows are stored when they are evaluated this often and have this many runs. */
#define STORE_TIMES 4
#define STORE_RUNS 2
/* A row is scattered from so many single cells, when its runs have at most SHORT_RUN cells. */
#define SINGLE_CELLS 4
#define SHORT_RUN 24
#define MOSTLY 0.98 /* a share of cells that counts as all of them */

/* Blocks go last to first: the rows of the last causal blocks are the longest. */
static void attend_item(void *context, int64_t item, int worker)
{
    Job *job = context;

    attend_planned(job, &job->workers[worker], job->head + item % job->heads,
                   job->blocks - 1 - item / job->heads);
}

/* ---- packing and choices ----------------------------------------------------- */

void attend_pack_phased(const Job *job, const float *k, const float *v, int64_t panel,
                        float *packed, float *values)
{
    int64_t first = panel * TILE_KEYS, count = min_i64(TILE_KEYS, job->m - first);
    int32_t index[TILE_KEYS];

    for (int64_t x = 0; x < count; x++) {
        index[x] = (int32_t)phases_position(job->key_order, first + x);
        memcpy(values + x * job->e, v + index[x] * job->in->v.stride[1],
               (size_t)job->e * sizeof(*values));
    }
    pack_rows(k, job->in->k.stride[1], index, count, job->d, packed);
}

static void pack_item(void *context, int64_t item, int worker)
{
    Job          *job = context;
    const Tensor *k = &job->in->k, *v = &job->in->v;
    int64_t       slice = item / job->panels, panel = item % job->panels;
    const float  *keys = tensor_f32(k) + (job->slice + slice) * k->stride[0];
    float        *packed = job->packed + item * job->d * TILE_KEYS;

    (void)worker;
    if (job->key_order.step > 1)
        attend_pack_phased(job, keys, tensor_f32(v) + (job->slice + slice) * v->stride[0], panel,
                           packed, job->values + (slice * job->m + panel * TILE_KEYS) * job->e);
    else
        pack_panel(keys + panel * TILE_KEYS * k->stride[1], k->stride[1],
                   min_i64(TILE_KEYS, job->m - panel * TILE_KEYS), job->d, packed);
}

static bool choose_blocks(Job *job, const Typical *typical)
{
    int64_t rows = typical->cells >= LONG_ROW ? LONG_BLOCK : SHORT_BLOCK;

    if (typical->failed) {
        run_fail(job->run, ERR_NOMEM, "attend: no memory for the pattern's rows");
        return false;
    }
    job->blocks = ceil_div(job->n, rows);
    job->block_rows = round_up_to(ceil_div(job->n, job->blocks), TILE_ROWS);
    job->blocks = ceil_div(job->n, job->block_rows);
    return true;
}

/* The step for which a pass in the order of its phases pays; 1: none. */
static int64_t choose_step(const Job *job, const Typical *typical)
{
    bool pays = typical->stepped >= STEP_CELLS && typical->stepped * 8 >= typical->cells &&
                job->m >= typical->step * STEP_CELLS;

    return pays && !job->has_terms && !tensor_given(&job->in->value.table) ? typical->step : 1;
}

/* Whether finding tiles costs more than the cells: nearly all cells are single, or many are and
 * the runs are too short to fill tiles. */
static bool is_scattered(const Job *job, const Typical *typical)
{
    double in_tile = TILE_ROWS * typical->cells * TILE_KEYS / (double)job->m;
    double in_runs = typical->cells - typical->single, runs = typical->runs - typical->single;
    bool   apart = typical->single > MOSTLY * typical->cells ||
                 (typical->single >= SINGLE_CELLS && in_runs <= SHORT_RUN * runs);

    return apart && 2 * in_tile < SPARSE_CELLS;
}

/* Whether rows have many runs shorter than a tile, where shared rows may pay. */
static bool is_broken(const Job *job, const Typical *typical)
{
    return !job->has_terms && !job->per_head && !tensor_given(&job->in->value.table) &&
           typical->runs >= BROKEN_RUNS && typical->cells < typical->runs * TILE_KEYS &&
           typical->cells >= 2 * TILE_KEYS;
}

/* Attention inside groups of queries that share their rows; false: they do not share them. */
static bool attend_shared(const Job *job, double *cells)
{
    const AttendInput *in = job->in;
    Run        *r = job->run;
    ArenaMark   mark = arena_mark(r->arena);
    GroupAttend g = { .q = in->q, .k = in->k, .v = in->v, .scale = in->scale, .placed = true };
    GroupResult out = { .out = job->out->out, .lse = job->out->lse };
    bool        shared = shared_rows(r, job->pattern, &g, cells);

    if (shared)
        cpu_group_attend_on(job->kernel, r, &g, &out);
    *cells *= (double)job->h;
    arena_release(r->arena, mark);
    return shared;
}

/* Whether few queries read all of many keys, which then are not worth packing. */
static bool are_few(const Job *job)
{
    PatternRow row = { 0 };
    bool       few = job->n > 1 && job->n <= TILE_KEYS && job->n * FEW_SHARE <= job->m &&
               job->h * job->m >= FEW_KEYS && !job->has_terms && !job->per_head &&
               !tensor_given(&job->in->value.table) && job->kernel == kernel_at(0);

    for (int64_t i = 0; few && i < job->n; i++) {
        pattern_row(job->pattern, 0, i, &row);
        few = !row.failed && pattern_row_cells(&row) == job->m;
    }
    pattern_row_free(&row);
    return few;
}

static void attend_few(const Job *job, double *cells)
{
    const AttendInput *in = job->in;
    Run      *r = job->run;
    ArenaMark mark = arena_mark(r->arena);
    int64_t   rows = job->h * job->n;
    double   *lse = cpu_scratch(r, rows, sizeof(*lse));
    FewAttend few = { .q = in->q, .k = in->k, .v = in->v, .scale = in->scale };
    FewResult out = { .out = job->out->out,
                      .lse = tensor_of(DT_F64, 2, (int64_t[]){ job->h, job->n }, lse) };

    if (lse)
        cpu_few_attend(r, &few, &out);
    for (int64_t i = 0; i < rows && !run_failed(r); i++)
        tensor_f32(&job->out->lse)[i] = (float)lse[i];
    *cells = (double)(rows * job->m);
    run_ahead(r, *cells * job->cell_flops);
    arena_release(r->arena, mark);
}

/* Bytes of the tensors. */
static double tensors_of(const Job *job)
{
    double rows = (double)job->n + (double)job->m;

    return (double)sizeof(float) * (double)job->h * rows * (double)(job->d + job->e);
}

/* How many slices of k are packed at once. */
static int64_t batch_slices(const Job *job, int threads)
{
    double  size = (double)sizeof(float), tensors = tensors_of(job);
    double  wide = (double)(job->d + (job->step > 1 ? job->e : 0));
    double  one = size * (double)(job->panels * TILE_KEYS) * wide;
    double  limit = fmax(BATCH_FREE, fmin(tensors / 8, (double)BATCH_BYTES * threads));
    int64_t fit = (int64_t)(limit / one);

    return fit < 1 ? 1 : min_i64(fit, job->in->k.shape[0]);
}

static bool workers_init(Job *job, int count)
{
    Arena  *arena = job->run->arena;
    int64_t span = job->has_terms || tensor_given(&job->in->value.table)
                       ? terms_span(job->in, job->n, job->m, job->block_rows) : 0;

    job->workers = arena_zalloc(arena, count, sizeof(Worker));
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->list = arena_alloc(arena, LIST_KEYS, sizeof(*w->list));
        w->s = arena_alloc(arena, LIST_KEYS, sizeof(*w->s));
        w->sparse = arena_alloc(arena, job->panels, sizeof(*w->sparse));
        if (!w->list || !w->s || !w->sparse ||
            !plan_init(&w->plan, arena, job->m, job->block_rows) ||
            !block_init(&w->block, arena, job->kernel, job->block_rows, job->d, job->e))
            return false;
        if (span && !terms_init(&w->terms, arena, job->kernel, job->in, job->h, span))
            return false;
    }
    return job->workers != NULL;
}

/* The end of the file. */
static bool near_pays(Job *job, const Typical *typical);
static bool near_init(Job *job);
static void near_batch(Job *job);

static void packed_batch(Job *job)
{
    threads_run(job->run->threads, job->slices * job->panels, pack_item, job);
    if (job->binned)
        threads_run(job->run->threads, attend_bins_items(job), attend_bins_item, job);
    else
        threads_run(job->run->threads, job->heads * job->blocks, attend_item, job);
}

static void run_batches(Job *job)
{
    int64_t h_kv = job->in->k.shape[0];

    for (job->slice = 0; job->slice < h_kv; job->slice += job->most_slices) {
        int64_t end = min_i64(job->slice + job->most_slices, h_kv);

        job->slices = end - job->slice;
        /* Heads t with floor(t * h_kv / h) in the batch. */
        job->head = ceil_div(job->slice * job->h, h_kv);
        job->heads = ceil_div(end * job->h, h_kv) - job->head;
        if (job->near_slots)
            near_batch(job);
        else
            packed_batch(job);
        if (cpu_cancelled(job->run))
            return;
    }
}

/* One pass over the runs of `part`, rows and keys in the order of the phases of `step`. */
static void run_pass(Job *job, int64_t step, RunPart part, int64_t other)
{
    job->row_order = (Phases){ step, job->n };
    job->key_order = (Phases){ step, job->m };
    for (int x = 0; x < threads_count(job->run->threads); x++)
        plan_order(&job->workers[x].plan, job->n, step, part, other);
    run_batches(job);
}

/* Whether cells of other steps need a pass of their own. */
static bool is_mixed(const Job *job, const Typical *typical)
{
    return job->step > 1 && typical->stepped < MOSTLY * typical->cells;
}

/* Stores rows that are evaluated often, where they take at most an eighth of the memory of the
 * tensors. */
static void store_rows(Job *job, const Typical *typical)
{
    int64_t passes = is_mixed(job, typical) ? 2 : 1;
    int64_t times = passes * ceil_div(job->in->k.shape[0], job->most_slices);
    double  expected = (double)job->n * typical->runs * (double)sizeof(PatternRun);

    if (times >= STORE_TIMES && typical->runs >= STORE_RUNS && expected <= tensors_of(job) / 8)
        job->pattern = stored_rows(job->run, job->pattern, tensors_of(job) / 8);
}

static void run_passes(Job *job, const Typical *typical)
{
    if (job->n == 1) {
        attend_one_row(job);
        return;
    }
    if (job->one_panel) {
        attend_one_panel(job);
        return;
    }
    if (job->scattered) {
        attend_gather(job, typical);
        return;
    }
    store_rows(job, typical);
    if (!is_mixed(job, typical)) {
        run_pass(job, job->step, RUNS_ALL, 0);
        return;
    }
    run_pass(job, 1, RUNS_BUT_STEP, job->step);
    job->join = true;
    run_pass(job, job->step, RUNS_OF_STEP, 0);
}

/* Memory for packed keys, and for values in the order of the keys. */
static bool batch_init(Job *job)
{
    int64_t size = (int64_t)sizeof(float);
    Arena  *arena = job->run->arena;

    job->most_slices = batch_slices(job, threads_count(job->run->threads));
    job->packed = arena_alloc(arena, job->most_slices * job->panels, job->d * TILE_KEYS * size);
    if (job->step > 1)
        job->values = arena_alloc(arena, job->most_slices * job->m, job->e * size);
    return job->packed && (job->step == 1 || job->values);
}

/* Chooses how cells are visited, and takes the memory for it. */
static bool choose_way(Job *job, const Typical *typical)
{
    job->panels = ceil_div(job->m, TILE_KEYS);
    job->one_panel = job->panels == 1 && job->n > 1 && !job->has_terms &&
                     !tensor_given(&job->in->value.table);
    job->scattered = !job->one_panel && is_scattered(job, typical);
    job->step = job->scattered || job->one_panel ? 1 : choose_step(job, typical);
    if (!workers_init(job, threads_count(job->run->threads)))
        return false;
    if (job->scattered || job->one_panel || job->n == 1)
        return true;
    job->binned = job->step == 1 && attend_bins_pay(job, typical);
    if (job->binned)
        return attend_bins_init(job) && batch_init(job);
    if (near_pays(job, typical))
        return near_init(job);
    return batch_init(job);
}

/* Sums the cells of the workers and frees their memory outside the arena. */
static void gather_workers(Job *job, int count, double *cells)
{
    bool failed = false;

    *cells = 0;
    for (int x = 0; job->workers && x < count; x++) {
        *cells += job->workers[x].cells;
        failed |= job->workers[x].failed;
        plan_free(&job->workers[x].plan);
    }
    if (failed)
        run_fail(job->run, ERR_NOMEM, "attend: no memory for the pattern's rows");
}

void cpu_attend_on(const Kernel *kernel, Run *r, const AttendInput *in, const Pattern *pattern,
                   AttendResult *out, double *cells)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = {
        .run = r, .in = in, .pattern = pattern, .kernel = kernel, .out = out,
        .h = out->out.shape[0], .n = in->q.shape[1], .m = in->k.shape[1], .d = in->q.shape[2],
        .e = in->v.shape[2], .per_head = pattern_per_head(pattern),
        .has_terms = attend_has_terms(in),
        .cell_flops = (double)(2 * (in->q.shape[2] + in->v.shape[2])) + attend_cell_overhead(in),
    };
    Typical typical = plan_typical(pattern, job.h, job.n);

    *cells = 0;
    if (!choose_blocks(&job, &typical))
        return;
    if (are_few(&job)) {
        attend_few(&job, cells);
        return;
    }
    if (is_broken(&job, &typical) && attend_shared(&job, cells))
        return;
    if (choose_way(&job, &typical))
        run_passes(&job, &typical);
    else
        run_fail(r, ERR_NOMEM, "attend: no memory for packed keys and tiles (%lld keys of size "
                 "%lld); use fewer threads or a higher limit",
                 (long long)job.m, (long long)job.d);
    gather_workers(&job, threads_count(r->threads), cells);
    arena_release(r->arena, mark);
}

void cpu_attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                double *cells)
{
    cpu_attend_on(kernel_at(0), r, in, pattern, out, cells);
}

/* Attention over a pattern whose blocks need few panels of keys.
 *
 * Packing all keys first sends them through memory once more than needed, and at a large n the
 * bandwidth of memory limits short rows.  Here a worker takes a few consecutive blocks and packs
 * a panel when a tile first needs it.  A few panels of each head stay, in slots by their number,
 * and the next block finds most of its panels there.  A block is planned once for all heads of
 * the batch.
 *
 * A block that needs far more panels than the others (rows that see every key) would keep one
 * worker busy at the end.  Such blocks come last, each head an item of its own.
 */

/* Packed panels of a worker, bytes, without values; more heads wait for the next batch.  Twice as
 * many in phases, where a block takes longer to plan. */
#define NEAR_BYTES (1 << 19)
#define LEAST_SLOTS 8
#define MOST_SLOTS 32
#define NEAR_SHARE 4      /* rows see at most one of so many keys, */
#define NEAR_ROW 1024     /* and at most so many keys */
#define MOST_BLOCKS 8     /* of an item */
#define ITEMS_PER_WORKER 8
#define FAR_TIMES 8       /* a block with so many times the typical cells is far */

/* Whether workers should pack panels themselves; sets near_slots, near_blocks and near_most. */
static bool near_pays(Job *job, const Typical *typical)
{
    double  apart = job->step > 1 ? fmax(typical->stepped, typical->cells - typical->stepped)
                                  : typical->cells; /* cells of a pass */
    int64_t span = (int64_t)(apart + (double)job->block_rows) / TILE_KEYS + 2;
    int64_t slots = LEAST_SLOTS;
    int64_t items = threads_count(job->run->threads) * ITEMS_PER_WORKER;

    if (typical->cells * NEAR_SHARE > (double)job->m || typical->cells > NEAR_ROW)
        return false;
    while (slots < min_i64(span, MOST_SLOTS))
        slots *= 2;
    job->near_slots = slots;
    job->near_blocks = max_i64(1, min_i64(MOST_BLOCKS, job->blocks / items));
    job->near_most = FAR_TIMES * typical->cells * (double)job->block_rows;
    return true;
}

/* Chooses job->most_slices and takes the workers' memory; false: there is none. */
static bool near_init(Job *job)
{
    Arena  *arena = job->run->arena;
    int64_t panel = job->d * TILE_KEYS * (int64_t)sizeof(float), panels;
    int64_t values = job->step > 1 ? job->e * TILE_KEYS * (int64_t)sizeof(float) : 0;
    bool    taken = true;

    job->most_slices = (job->step > 1 ? 2 : 1) * NEAR_BYTES / (panel * job->near_slots);
    job->most_slices = max_i64(1, min_i64(job->most_slices, job->in->k.shape[0]));
    panels = job->most_slices * job->near_slots;
    job->far = arena_alloc(arena, job->blocks, sizeof(*job->far));
    job->far_block = arena_alloc(arena, job->blocks, sizeof(*job->far_block));
    for (int x = 0; x < threads_count(job->run->threads); x++) {
        Worker *w = &job->workers[x];

        w->near = arena_alloc(arena, panels, panel);
        w->near_panel = arena_alloc(arena, panels, sizeof(*w->near_panel));
        w->near_values = values ? arena_alloc(arena, panels, values) : NULL;
        taken &= w->near && w->near_panel && (w->near_values || !values);
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

/* All queries of the job's batch. */
static void near_batch(Job *job)
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
