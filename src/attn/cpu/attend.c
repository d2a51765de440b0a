/* attend.c -- fused attention over a pattern with an online softmax.
 *
 * Heads go in batches: the keys of a batch are packed into panels, then every
 * (block of queries, head) is one item of work.  An item takes the tiles its
 * plan names, STEP_PANELS panels at a time: scores, softmax, mixing.  Cells of
 * tiles that are nearly empty are computed one by one at the end of the item.
 *
 * Cells a step apart would leave all tiles nearly empty.  Where rows hold many of
 * one step, rows and keys are taken in the order of their phases (phases.h), in
 * which these cells lie side by side; what else there is has a pass of its own in
 * the order of the sequence, and the two softmaxes are joined.  Rows in many short pieces
 * that many queries share become groups (shared_rows.h).
 * An item's result depends on nothing but the item, so neither the number of
 * threads nor their order changes a bit.
 */
#include "attn/cpu/cpu.h"

#include "attn/cpu/block.h"
#include "attn/cpu/pack.h"
#include "attn/cpu/plan.h"
#include "attn/cpu/shared_rows.h"
#include "attn/cpu/stored_rows.h"
#include "attn/cpu/terms.h"

#include <math.h>
#include <string.h>

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
/* Least cells of one step in a row, and keys in a phase, that a pass of their own pays for. */
#define STEP_CELLS 16
#define BROKEN_RUNS 4
#define ROWS_AHEAD 8 /* queries that are fetched while others are copied */
/* How often rows must be asked for, and how many runs they must have, to be worth storing. */
#define STORE_TIMES 4
#define STORE_RUNS 2
#define MOSTLY 0.98 /* a share of cells that is as good as all of them */
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
    double             cell_flops;
    int64_t            block_rows, blocks;
    bool               per_head, has_terms, scattered;
    Phases             row_order, key_order;
    bool               join;             /* out and lse hold another pass already */
    float             *values;           /* [slices][m][e] in the keys' order; NULL: v itself */
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

static const float *values_of(const Job *job, int64_t head, int64_t *stride)
{
    int64_t slice = head * job->in->k.shape[0] / job->h - job->slice;

    *stride = job->values ? job->e : job->in->v.stride[1];
    return job->values ? job->values + slice * job->m * job->e
                       : tensor_head(&job->in->v, head, job->h);
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
        tile = block_score(block, g, panel, keys, job->m - panel * TILE_KEYS,
                           kind == TILE_FULL ? NULL : plan_keep(plan, panel, g));
        if (job->has_terms)
            terms_add_tile(&w->terms, plan->first + g * TILE_ROWS, panel, tile, block->lds);
    }
}

static void mix_group(const Job *job, Worker *w, int64_t head, int64_t g)
{
    Block       *block = &w->block;
    int32_t      slots = block->slots[g];
    int64_t      stride;
    const float *v = values_of(job, head, &stride);

    if (slots == 0)
        return;
    block_soften(block, g, job->has_terms);
    block_mix(block, g, v, stride, job->m);
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
    job->kernel->mix_row(w->s, tensor_head(&job->in->v, head, job->h), job->in->v.stride[1],
                         w->list, count, job->e, b->factor[row], acc);
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
            w->list[count++] = (int32_t)phases_position(
                job->key_order, w->sparse[x] * TILE_KEYS + __builtin_ctzll(bits));
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

/* All cells of a row one by one, straight from its runs. */
static bool take_row(const Job *job, Worker *w, int64_t head, int64_t row)
{
    PatternRow *runs = &w->plan.row;
    int64_t     count = 0;

    pattern_row(job->pattern, job->per_head ? head : 0, w->plan.first + row, runs);
    for (int64_t x = 0; x < runs->count && !runs->failed; x++)
        for (int64_t y = 0; y < runs->runs[x].count; y++) {
            if (count == LIST_KEYS) {
                take_list(job, w, head, row, count);
                w->cells += (double)count;
                count = 0;
            }
            w->list[count++] = (int32_t)(runs->runs[x].start + y * runs->runs[x].step);
        }
    take_list(job, w, head, row, count);
    w->cells += (double)count;
    return !runs->failed;
}

static bool plan_for(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    int64_t asked = job->per_head ? head : 0;

    if (w->plan.head == asked && w->plan.first == first)
        return true;
    return plan_make(&w->plan, job->pattern, asked, first, rows);
}

/* The softmax of row i over this pass's keys becomes that over those of out, lse as well. */
static void join_row(const Job *job, Worker *w, int64_t i, float *out, float *lse)
{
    static const int32_t only[1] = { 0 };
    Block *b = &w->block;
    float *acc = b->acc + i * b->lda, kept, added;
    double more = ((double)b->max[i] + log2((double)b->sum[i])) * LN_2, high, sum;

    if (b->max[i] == -INFINITY && b->sum[i] == 0.0f)
        return;
    high = fmax((double)*lse, more);
    sum = high + log(exp((double)*lse - high) + exp(more - high));
    kept = (float)exp((double)*lse - sum);
    added = (float)(exp(more - sum) / (double)b->sum[i]);
    job->kernel->mix_row(&kept, out, job->e, only, 1, job->e, added, acc);
    memcpy(out, acc, (size_t)job->e * sizeof(*out));
    *lse = (float)sum;
}

static void finish_row(const Job *job, Worker *w, int64_t head, int64_t place, int64_t i)
{
    int64_t at = head * job->n + phases_position(job->row_order, place);
    float  *out = (float *)job->out->out.data + at * job->e;
    float  *lse = (float *)job->out->lse.data + at;

    if (job->join)
        join_row(job, w, i, out, lse);
    else
        block_row(&w->block, i, out, lse);
}

static void take_tiles(const Job *job, Worker *w, int64_t head)
{
    Block *block = &w->block;

    for (int64_t place = 0; place < w->plan.count; place += STEP_PANELS) {
        int64_t end = min_i64(place + STEP_PANELS, w->plan.count);

        for (int64_t x = place; x < end; x++)
            score_panel(job, w, head, x);
        for (int64_t g = 0; g < block->groups; g++)
            mix_group(job, w, head, g);
    }
    if (w->plan.sparse)
        take_sparse_tiles(job, w, head);
    w->cells += w->plan.cells;
}

static bool attend_block(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    const AttendInput *in = job->in;
    const float       *q = tensor_head(&in->q, head, job->h);
    bool               done = true;

    block_begin(&w->block, rows);
    for (int64_t i = 0; i < rows; i++) {
        int64_t ahead = phases_position(job->row_order,
                                        min_i64(first + i + ROWS_AHEAD, job->n - 1));

        cpu_fetch(q + ahead * in->q.stride[1], job->d);
        block_query(&w->block, i,
                    q + phases_position(job->row_order, first + i) * in->q.stride[1], in->scale);
    }
    w->plan.first = first;
    if (!job->scattered)
        take_tiles(job, w, head);
    else
        for (int64_t i = 0; i < rows && done; i++)
            done = take_row(job, w, head, i);
    for (int64_t i = 0; i < rows && done; i++)
        finish_row(job, w, head, first + i, i);
    return done;
}

/* Blocks go last to first: under a causal pattern the long ones come first. */
static void attend_item(void *context, int64_t item, int worker)
{
    Job    *job = context;
    Worker *w = &job->workers[worker];
    int64_t head = job->head + item % job->heads;
    int64_t first = (job->blocks - 1 - item / job->heads) * job->block_rows;
    int64_t rows = min_i64(job->block_rows, job->n - first);

    double  before = w->cells;

    if (w->failed || cpu_cancelled(job->run))
        return;
    w->failed = !(job->scattered || plan_for(job, w, head, first, rows)) ||
                !attend_block(job, w, head, first, rows);
    run_ahead(job->run, (w->cells - before) * job->cell_flops);
}

/* ---- the whole -------------------------------------------------------------- */

/* A panel of keys in their order, and their values beside it. */
static void pack_phased(const Job *job, int64_t slice, int64_t panel, float *packed)
{
    const Tensor *k = &job->in->k, *v = &job->in->v;
    int64_t       first = panel * TILE_KEYS, count = min_i64(TILE_KEYS, job->m - first);
    const float  *from = (const float *)v->data + (job->slice + slice) * v->stride[0];
    int32_t       index[TILE_KEYS];

    for (int64_t x = 0; x < count; x++) {
        index[x] = (int32_t)phases_position(job->key_order, first + x);
        memcpy(job->values + (slice * job->m + first + x) * job->e, from + index[x] * v->stride[1],
               (size_t)job->e * sizeof(float));
    }
    pack_rows((const float *)k->data + (job->slice + slice) * k->stride[0], k->stride[1], index,
              count, job->d, packed);
}

static void pack_item(void *context, int64_t item, int worker)
{
    Job          *job = context;
    const Tensor *k = &job->in->k;
    int64_t       slice = item / job->panels, panel = item % job->panels;
    const float  *keys = (const float *)k->data + (job->slice + slice) * k->stride[0];
    float        *packed = job->packed + item * job->d * TILE_KEYS;

    (void)worker;
    if (job->values)
        pack_phased(job, slice, panel, packed);
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

/* The step that deserves a pass in the order of its phases; 1: none. */
static int64_t choose_step(const Job *job, const Typical *typical)
{
    bool pays = typical->stepped >= STEP_CELLS && typical->stepped * 8 >= typical->cells &&
                job->m >= typical->step * STEP_CELLS;

    return pays && !job->has_terms && !tensor_given(&job->in->value.table) ? typical->step : 1;
}

/* Whether cells lie so far apart that looking for tiles costs more than they do. */
static bool is_scattered(const Job *job, const Typical *typical)
{
    double in_tile = TILE_ROWS * typical->cells * TILE_KEYS / (double)job->m;

    return typical->single > MOSTLY * typical->cells && 2 * in_tile < SPARSE_CELLS;
}

/* Whether rows come in many pieces shorter than a tile, where shared rows may pay. */
static bool is_broken(const Job *job, const Typical *typical)
{
    return !job->has_terms && !job->per_head && !tensor_given(&job->in->value.table) &&
           typical->runs >= BROKEN_RUNS && typical->cells < typical->runs * TILE_KEYS &&
           typical->cells >= 2 * TILE_KEYS;
}

/* The whole as attention inside groups, where queries share their rows; false: they do not. */
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

/* Bytes of the tensors. */
static double tensors_of(const Job *job)
{
    double rows = (double)job->n + (double)job->m;

    return (double)sizeof(float) * (double)job->h * rows * (double)(job->d + job->e);
}

/* How many slices of k are packed at once. */
static int64_t batch_slices(const Job *job, int threads, int64_t step)
{
    double  size = (double)sizeof(float), tensors = tensors_of(job);
    double  wide = (double)(job->d + (step > 1 ? job->e : 0));
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

static void run_batches(Job *job, int64_t slices)
{
    int64_t h_kv = job->in->k.shape[0];

    for (job->slice = 0; job->slice < h_kv; job->slice += slices) {
        int64_t end = min_i64(job->slice + slices, h_kv);

        job->slices = end - job->slice;
        /* Heads t with floor(t * h_kv / h) in the batch. */
        job->head = ceil_div(job->slice * job->h, h_kv);
        job->heads = ceil_div(end * job->h, h_kv) - job->head;
        if (!job->scattered)
            threads_run(job->run->threads, job->slices * job->panels, pack_item, job);
        threads_run(job->run->threads, job->heads * job->blocks, attend_item, job);
        if (cpu_cancelled(job->run))
            return;
    }
}

/* Some runs of all rows, with rows and keys in the order of a step's phases. */
static void run_pass(Job *job, int64_t slices, int64_t step, RunPart part, int64_t other)
{
    float *values = job->values;

    job->row_order = (Phases){ step, job->n };
    job->key_order = (Phases){ step, job->m };
    job->values = step > 1 ? values : NULL;
    for (int x = 0; x < threads_count(job->run->threads); x++)
        plan_order(&job->workers[x].plan, job->n, step, part, other);
    run_batches(job, slices);
    job->values = values;
}

/* Rows that are asked for often are found once, where they take at most an eighth of the
 * tensors. */
static void store_rows(Job *job, int64_t slices, const Typical *typical, int64_t passes)
{
    int64_t times = passes * (job->scattered ? job->h : ceil_div(job->in->k.shape[0], slices));
    double  expected = (double)job->n * typical->runs * (double)sizeof(PatternRun);

    if (times >= STORE_TIMES && typical->runs >= STORE_RUNS && expected <= tensors_of(job) / 8)
        job->pattern = stored_rows(job->run, job->pattern, tensors_of(job) / 8);
}

static void run_passes(Job *job, int64_t slices, int64_t step, bool mixed)
{
    if (!mixed) {
        run_pass(job, slices, step, RUNS_ALL, 0);
        return;
    }
    run_pass(job, slices, 1, RUNS_BUT_STEP, step);
    job->join = true;
    run_pass(job, slices, step, RUNS_OF_STEP, 0);
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
        .cell_flops = (double)(2 * (in->q.shape[2] + in->v.shape[2])) +
                      (in->softmax_flops > 0 ? in->softmax_flops : FLOPS_SOFTMAX),
    };
    Typical typical = plan_typical(pattern, job.h, job.n);
    int64_t slices, step;
    bool    mixed;

    *cells = 0;
    if (!choose_blocks(&job, &typical))
        return;
    if (is_broken(&job, &typical) && attend_shared(&job, cells))
        return;
    job.scattered = is_scattered(&job, &typical);
    step = job.scattered ? 1 : choose_step(&job, &typical);
    job.panels = ceil_div(job.m, TILE_KEYS);
    slices = batch_slices(&job, threads, step);
    job.packed = arena_alloc(r->arena, slices * job.panels,
                             job.d * TILE_KEYS * (int64_t)sizeof(float));
    if (step > 1)
        job.values = arena_alloc(r->arena, slices * job.m, job.e * (int64_t)sizeof(float));
    mixed = step > 1 && typical.stepped < MOSTLY * typical.cells;
    store_rows(&job, slices, &typical, mixed ? 2 : 1);
    if (job.packed && (step == 1 || job.values) && workers_init(&job, threads))
        run_passes(&job, slices, step, mixed);
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
