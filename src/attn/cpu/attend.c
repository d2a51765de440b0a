/* attend.c -- fused attention over a pattern with an online softmax.
 *
 * Heads go in batches: the keys of a batch are packed into panels, then every
 * (block of queries, head) is one item of work.  An item takes the tiles its
 * plan names, STEP_PANELS panels at a time: scores, softmax, mixing.  Cells of
 * tiles that are nearly empty are computed one by one at the end of the item.
 * An item's result depends on nothing but the item, so neither the number of
 * threads nor their order changes a bit.
 */
#include "attn/cpu/cpu.h"

#include "attn/cpu/block.h"
#include "attn/cpu/pack.h"
#include "attn/cpu/plan.h"
#include "attn/cpu/terms.h"

#include <math.h>

/* Rows of a block: many when rows are long, so that a panel of keys is used
 * often from the first-level cache; few when they are short, so that the rows
 * of a block need the same panels. */
#define LONG_BLOCK 384
#define SHORT_BLOCK 96
#define LONG_ROW 1024
/* Packed keys of one batch, per thread: small enough to stay in the caches until
 * they are used, enough heads for every thread to have work.  Beyond
 * BATCH_FREE at most an eighth of the tensors. */
#define BATCH_BYTES (2 << 20)
#define BATCH_FREE (4 << 20)
#define LIST_KEYS 512 /* a multiple of TILE_KEYS, at most TERMS_LIST */

typedef struct Worker {
    Plan     plan;
    Block    block;
    Terms    terms;
    int32_t *list;  /* [LIST_KEYS] keys of a row that are computed one by one */
    int32_t *sparse; /* [panels] of a group's tiles that are computed so */
    float   *s;     /* [LIST_KEYS] */
    double   cells;
    bool     failed;
} Worker;

typedef struct Job {
    Run               *run;
    const AttendInput *in;
    const Pattern     *pattern;
    const Kernel      *kernel;
    AttendResult      *out;
    int64_t            h, n, m, d, e, panels;
    int64_t            block_rows, blocks;
    bool               per_head, has_terms;
    float             *packed;           /* [slices of the batch][panels][d][TILE_KEYS] */
    int64_t            slice, slices;    /* of k: the batch */
    int64_t            head, heads;      /* the batch's queries */
    Worker            *workers;
} Job;

/* ---- one item --------------------------------------------------------------- */

static const float *packed_panel(const Job *job, int64_t head, int64_t panel)
{
    int64_t slice = head * job->in->k.shape[0] / job->h - job->slice;

    return job->packed + (slice * job->panels + panel) * job->d * TILE_KEYS;
}

static const float *values_of(const Job *job, int64_t head)
{
    return tensor_head(&job->in->v, head, job->h);
}

static void score_panel(const Job *job, Worker *w, int64_t head, int64_t place)
{
    Plan        *plan = &w->plan;
    Block       *block = &w->block;
    int64_t      panel = plan->touched[place];
    const float *keys = packed_panel(job, head, panel);

    if (job->has_terms)
        terms_panel(&w->terms, head, plan->first, plan->rows, panel);
    for (int64_t g = 0; g < block->groups; g++) {
        TileKind kind = plan_kind(plan, place, g);
        float   *tile;

        if (kind != TILE_FULL && kind != TILE_MASKED)
            continue;
        tile = block_score(block, g, panel, keys,
                           kind == TILE_FULL ? NULL : plan_keep(plan, panel, g));
        if (job->has_terms)
            terms_add_tile(&w->terms, plan->first + g * TILE_ROWS, panel, tile, block->lds);
    }
}

static void mix_group(const Job *job, Worker *w, int64_t head, int64_t g)
{
    Block  *block = &w->block;
    int32_t slots = block->slots[g];

    if (slots == 0)
        return;
    block_soften(block, g, job->has_terms);
    block_mix(block, g, values_of(job, head), job->in->v.stride[1], job->m);
    if (w->terms.value)
        for (int x = 0; x < slots; x++)
            terms_mix_tile(&w->terms, head, w->plan.first + g * TILE_ROWS,
                           block->panel[g * STEP_PANELS + x], block_tile(block, g, x),
                           block->lds, block->acc + g * TILE_ROWS * block->lda, block->lda);
}

/* One step of row's softmax over the listed keys. */
static void take_list(const Job *job, Worker *w, int64_t head, int64_t row, int64_t count)
{
    Block       *b = &w->block;
    const float *k = tensor_head(&job->in->k, head, job->h);
    int64_t      i = w->plan.first + row, padded = round_up_to(count, TILE_KEYS);
    float       *acc = b->acc + row * b->lda;

    if (count == 0)
        return;
    job->kernel->dots(b->q + row * b->d, k, job->in->k.stride[1], w->list, count, job->d, w->s);
    if (job->has_terms)
        terms_add_list(&w->terms, head, i, w->list, count, w->s);
    for (int64_t x = count; x < padded; x++)
        w->s[x] = -INFINITY;
    job->kernel->softmax(w->s, padded, 1, padded, NULL, b->max + row, b->sum + row,
                         b->factor + row);
    job->kernel->mix_row(w->s, values_of(job, head), job->in->v.stride[1], w->list, count, job->e,
                         b->factor[row], acc);
    if (w->terms.value)
        terms_mix_list(&w->terms, head, i, w->list, count, w->s, acc);
}

/* The cells of row in the group's `panels` tiles that were left to single cells. */
static void take_sparse_cells(const Job *job, Worker *w, int64_t head, int64_t row,
                              int64_t panels)
{
    int64_t count = 0, group = row / TILE_ROWS;

    for (int64_t x = 0; x < panels; x++) {
        uint64_t bits = plan_keep(&w->plan, w->sparse[x], group)[row % TILE_ROWS];

        for (; bits; bits &= bits - 1) {
            if (count == LIST_KEYS) {
                take_list(job, w, head, row, count);
                count = 0;
            }
            w->list[count++] = w->sparse[x] * TILE_KEYS + __builtin_ctzll(bits);
        }
    }
    take_list(job, w, head, row, count);
}

static void take_sparse_tiles(const Job *job, Worker *w, int64_t head)
{
    const Plan *plan = &w->plan;

    for (int64_t group = 0; group < plan->groups; group++) {
        int64_t panels = 0, end = min_i64(plan->rows, (group + 1) * TILE_ROWS);

        for (int64_t place = 0; place < plan->count; place++)
            if (plan_kind(plan, place, group) == TILE_SPARSE)
                w->sparse[panels++] = plan->touched[place];
        for (int64_t row = group * TILE_ROWS; row < end && panels; row++)
            take_sparse_cells(job, w, head, row, panels);
    }
}

static bool plan_for(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    int64_t asked = job->per_head ? head : 0;

    if (w->plan.head == asked && w->plan.first == first)
        return true;
    return plan_make(&w->plan, job->pattern, asked, first, rows);
}

static void attend_block(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    const AttendInput *in = job->in;
    Block             *block = &w->block;
    const float       *q = tensor_head(&in->q, head, job->h);
    float             *out = (float *)job->out->out.data + (head * job->n + first) * job->e;
    float             *lse = (float *)job->out->lse.data + head * job->n + first;

    block_begin(block, rows);
    for (int64_t i = 0; i < rows; i++)
        block_query(block, i, q + (first + i) * in->q.stride[1], in->scale);
    for (int64_t place = 0; place < w->plan.count; place += STEP_PANELS) {
        int64_t end = min_i64(place + STEP_PANELS, w->plan.count);

        for (int64_t x = place; x < end; x++)
            score_panel(job, w, head, x);
        for (int64_t g = 0; g < block->groups; g++)
            mix_group(job, w, head, g);
    }
    if (w->plan.sparse)
        take_sparse_tiles(job, w, head);
    for (int64_t i = 0; i < rows; i++)
        block_row(block, i, out + i * job->e, lse + i);
    w->cells += w->plan.cells;
}

/* Blocks go last to first: under a causal pattern the long ones come first. */
static void attend_item(void *context, int64_t item, int worker)
{
    Job    *job = context;
    Worker *w = &job->workers[worker];
    int64_t head = job->head + item % job->heads;
    int64_t first = (job->blocks - 1 - item / job->heads) * job->block_rows;
    int64_t rows = min_i64(job->block_rows, job->n - first);

    if (w->failed || cpu_cancelled(job->run))
        return;
    if (plan_for(job, w, head, first, rows))
        attend_block(job, w, head, first, rows);
    else
        w->failed = true;
}

/* ---- the whole -------------------------------------------------------------- */

static void pack_item(void *context, int64_t item, int worker)
{
    Job          *job = context;
    const Tensor *k = &job->in->k;
    int64_t       slice = item / job->panels, panel = item % job->panels;
    const float  *keys = (const float *)k->data + (job->slice + slice) * k->stride[0];

    (void)worker;
    pack_panel(keys + panel * TILE_KEYS * k->stride[1], k->stride[1],
               min_i64(TILE_KEYS, job->m - panel * TILE_KEYS), job->d,
               job->packed + item * job->d * TILE_KEYS);
}

/* Mean cells of some rows spread over the sequence; -1: no memory. */
static double typical_row(const Job *job)
{
    enum { SAMPLES = 9 };
    PatternRow row = { 0 };
    double     cells = 0;
    bool       failed = false;

    for (int64_t x = 0; x < SAMPLES && !failed; x++) {
        pattern_row(job->pattern, 0, x * (job->n - 1) / (SAMPLES - 1), &row);
        failed = row.failed;
        for (int64_t y = 0; y < row.count && !failed; y++)
            cells += (double)row.runs[y].count;
    }
    pattern_row_free(&row);
    return failed ? -1 : cells / SAMPLES;
}

static bool choose_blocks(Job *job)
{
    double  cells = typical_row(job);
    int64_t rows = cells >= LONG_ROW ? LONG_BLOCK : SHORT_BLOCK;

    if (cells < 0) {
        run_fail(job->run, ERR_NOMEM, "attend: no memory for the pattern's rows");
        return false;
    }
    job->blocks = ceil_div(job->n, rows);
    job->block_rows = round_up_to(ceil_div(job->n, job->blocks), TILE_ROWS);
    job->blocks = ceil_div(job->n, job->block_rows);
    return true;
}

/* How many slices of k are packed at once. */
static int64_t batch_slices(const Job *job, int threads)
{
    double  size = (double)sizeof(float), rows = (double)job->n + (double)job->m;
    double  tensors = size * (double)job->h * rows * (double)(job->d + job->e);
    double  one = size * (double)(job->panels * TILE_KEYS) * (double)job->d;
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

static void run_batches(Job *job, int64_t slices)
{
    int64_t h_kv = job->in->k.shape[0];

    for (job->slice = 0; job->slice < h_kv; job->slice += slices) {
        int64_t end = min_i64(job->slice + slices, h_kv);

        job->slices = end - job->slice;
        /* Heads t with floor(t * h_kv / h) in the batch. */
        job->head = ceil_div(job->slice * job->h, h_kv);
        job->heads = ceil_div(end * job->h, h_kv) - job->head;
        threads_run(job->run->threads, job->slices * job->panels, pack_item, job);
        threads_run(job->run->threads, job->heads * job->blocks, attend_item, job);
        if (cpu_cancelled(job->run))
            return;
    }
}

/* Adds up what the workers did and frees what the arena does not hold. */
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
    int       threads = threads_count(r->threads);
    Job       job = {
        .run = r, .in = in, .pattern = pattern, .kernel = kernel, .out = out,
        .h = out->out.shape[0], .n = in->q.shape[1], .m = in->k.shape[1], .d = in->q.shape[2],
        .e = in->v.shape[2], .per_head = pattern_per_head(pattern),
        .has_terms = in->cell_term || tensor_given(&in->distance) ||
                     tensor_given(&in->row.table) ||
                     tensor_given(&in->col.table),
    };
    int64_t slices;

    *cells = 0;
    if (!choose_blocks(&job))
        return;
    job.panels = ceil_div(job.m, TILE_KEYS);
    slices = batch_slices(&job, threads);
    job.packed = arena_alloc(r->arena, slices * job.panels,
                             job.d * TILE_KEYS * (int64_t)sizeof(float));
    if (job.packed && workers_init(&job, threads))
        run_batches(&job, slices);
    else
        run_fail(r, ERR_NOMEM, "attend: no memory for packed keys and tiles (%lld heads at once, "
                 "%lld keys of size %lld); use fewer threads or a higher limit",
                 (long long)slices, (long long)job.m, (long long)job.d);
    gather_workers(&job, threads, cells);
    arena_release(r->arena, mark);
}

void cpu_attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                double *cells)
{
    cpu_attend_on(kernel_at(0), r, in, pattern, out, cells);
}
