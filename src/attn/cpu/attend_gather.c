/* attend_gather.c -- attention over rows with scattered keys, cell by cell.
 *
 * The keys of some rows are listed once for all heads that share them.  Where the keys and values
 * of a head fit a cache together, attend_block takes the listed rows.  Where they do not, all rows
 * are scored, and their softmax taken, before any is mixed, so that keys and values do not evict
 * each other.  Where even the keys alone, or the values, do not fit, they are taken in ranges, each
 * for all rows: a random read from memory costs several times one from the third-level cache.
 */
#include "attn/cpu/attend.h"

#include "attn/ops/weights.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define APART_BYTES  (4 << 20)  /* keys and values of a head that are taken together */
#define GATHER_BYTES (16 << 20) /* keys, or values, of a range */
#define JUMP_BYTES   (8 << 20)  /* of a range where keys_jump */
#define LIST_BYTES   (64 << 20) /* cells listed at once with their scores, roughly */
#define ITEM_ROWS 256
#define ROOM 1.25 /* for lists of an item: so many times the typical keys */
#define ROWS_AHEAD 2 /* distance at which lists of rows are prefetched */

static int32_t *list_row(const PatternRow *row, int32_t *to)
{
    for (int64_t x = 0; x < row->count; x++)
        for (int64_t y = 0; y < row->runs[x].count; y++)
            *to++ = (int32_t)(row->runs[x].start + y * row->runs[x].step);
    return to;
}

/* Lists the keys of some rows: at their offsets, or, while these are not known, in the room of the
 * item as far as it goes, and counts them. */
static void list_item(void *context, int64_t item, int worker)
{
    Job        *job = context;
    Worker     *w = &job->workers[worker];
    PatternRow *row = &w->plan.row;
    int64_t     first = item * ITEM_ROWS, end = min_i64(job->list_rows, first + ITEM_ROWS);
    int32_t    *to = job->listed + (job->list_room ? item * job->list_room
                                                   : job->list_offset[first]);
    int32_t    *room = to + job->list_room;

    for (int64_t i = first; i < end && !w->failed; i++) {
        int64_t count;

        pattern_row(job->pattern, job->per_head ? job->head : 0, job->list_first + i, row);
        w->failed = row->failed;
        count = w->failed ? 0 : pattern_row_cells(row);
        if (job->list_room) {
            job->list_offset[i + 1] = count;
            w->full |= count > room - to;
        }
        if (!w->failed && !w->full)
            to = list_row(row, to);
    }
}

static bool any_failed(const Job *job)
{
    bool failed = cpu_cancelled(job->run);

    for (int x = 0; x < threads_count(job->run->threads); x++)
        failed |= job->workers[x].failed;
    return failed;
}

/* Whether all rows were listed in the rooms of their items; then they are moved together. */
static bool lists_fit(Job *job)
{
    bool full = false;

    for (int x = 0; x < threads_count(job->run->threads); x++)
        full |= job->workers[x].full;
    for (int64_t first = 0; first < job->list_rows && !full; first += ITEM_ROWS) {
        int64_t end = min_i64(job->list_rows, first + ITEM_ROWS), at = job->list_offset[first];

        memmove(job->listed + at, job->listed + first / ITEM_ROWS * job->list_room,
                (size_t)(job->list_offset[end] - at) * sizeof(*job->listed));
    }
    return !full;
}

/* Lists all rows once more, as they did not fit. */
static bool list_again(Job *job, int64_t items)
{
    job->list_room = 0;
    job->listed = cpu_scratch(job->run, max_i64(1, job->list_offset[job->list_rows]),
                              sizeof(*job->listed));
    for (int x = 0; x < threads_count(job->run->threads); x++)
        job->workers[x].full = false;
    if (!run_failed(job->run))
        threads_run(job->run->threads, items, list_item, job);
    return !run_failed(job->run) && !any_failed(job);
}

/* Lists the rows, of `typical` keys. */
static bool list_rows(Job *job, double typical)
{
    int64_t items = ceil_div(job->list_rows, ITEM_ROWS), cells;

    job->list_room = (int64_t)((ROOM * typical + 1) * ITEM_ROWS);
    job->listed = cpu_scratch(job->run, items * job->list_room, sizeof(*job->listed));
    if (run_failed(job->run))
        return false;
    job->list_offset[0] = 0;
    threads_run(job->run->threads, items, list_item, job);
    if (any_failed(job))
        return false;
    for (int64_t i = 0; i < job->list_rows; i++)
        job->list_offset[i + 1] += job->list_offset[i];
    if (!lists_fit(job) && !list_again(job, items))
        return false;
    cells = job->list_apart ? max_i64(1, job->list_offset[job->list_rows]) : 1;
    job->list_s = cpu_scratch(job->run, cells, sizeof(*job->list_s));
    return !run_failed(job->run);
}

/* Some listed cells of a row. */
typedef struct Cells {
    const int32_t *keys;
    float         *s; /* scores in base 2, then weights */
    int64_t        count;
} Cells;

static Cells listed_cells(const Job *job, int64_t row)
{
    const int64_t *offset = job->list_offset + row - job->list_first;

    return (Cells){ job->listed + offset[0], job->list_s + offset[0], offset[1] - offset[0] };
}

/* The listed cells of a row with keys in [key_low, key_high). */
static Cells range_cells(const Job *job, int64_t row)
{
    Cells   c = listed_cells(job, row);
    int64_t skip = job->key_low > 0 ? key_lower_bound(c.keys, 0, c.count, job->key_low) : 0;

    if (job->key_high < job->m)
        c.count = key_lower_bound(c.keys, 0, c.count, job->key_high);
    return (Cells){ c.keys + skip, c.s + skip, c.count - skip };
}

/* Prefetches what row + ROWS_AHEAD reads beside its keys: its list, and its query or weights. */
static PREFETCHES void fetch_listed(const Job *job, int64_t row)
{
    const Tensor *q = &job->in->q;
    int64_t       below = min_i64(row + ROWS_AHEAD, job->list_first + job->list_rows - 1);
    Cells         c = listed_cells(job, below);
    const float  *queries = tensor_head(q, job->head, job->h);

    cpu_fetch_once(c.keys, c.count * (int64_t)sizeof(*c.keys));
    if (job->list_mix)
        cpu_fetch_once(c.s, c.count * (int64_t)sizeof(*c.s));
    else
        cpu_fetch_once(queries + below * q->stride[1], job->d * (int64_t)sizeof(*queries));
}

/* The softmax of a row whose scores are complete; its sum is row i of the block. */
static void soften_row(const Job *job, Worker *w, int64_t row, int64_t i)
{
    Cells c = listed_cells(job, row);
    float max = -INFINITY, sum = 0, factor;

    for (int64_t x = 0; x < c.count; x += LIST_KEYS) {
        int64_t count = min_i64(LIST_KEYS, c.count - x), padded = round_up_to(count, TILE_KEYS);

        memcpy(w->s, c.s + x, (size_t)count * sizeof(*w->s));
        for (int64_t y = count; y < padded; y++)
            w->s[y] = -INFINITY;
        job->kernel->softmax(w->s, padded, 1, padded, NULL, &max, &sum, &factor);
    }
    w->block.max[i] = max;
    w->block.sum[i] = sum;
    if (max == -INFINITY && sum == 0.0f)
        return;
    if (c.count > LIST_KEYS)
        job->kernel->exp2(c.s, c.count, 1.0f, max);
    job->kernel->scale(c.count > LIST_KEYS ? c.s : w->s, c.count, 1.0f / sum, c.s);
}

/* Row i of the block. */
static void score_row(const Job *job, Worker *w, int64_t row, int64_t i)
{
    const AttendInput *in = job->in;
    const float       *k = tensor_head(&in->k, job->head, job->h);
    const float       *q = tensor_head(&in->q, job->head, job->h);
    Cells              c = range_cells(job, row);

    fetch_listed(job, row);
    block_query(&w->block, 0, q + row * in->q.stride[1], in->scale);
    for (int64_t x = 0; x < c.count; x += LIST_KEYS) {
        int64_t count = min_i64(LIST_KEYS, c.count - x);

        job->kernel->dots(w->block.q, k, in->k.stride[1], c.keys + x, count, job->d, c.s + x);
        if (job->has_terms)
            terms_add_list(&w->terms, job->head, row, c.keys + x, count, c.s + x);
    }
    if (job->key_high == job->m)
        soften_row(job, w, row, i);
}

/* acc += the cells' values, weighted. */
static void mix_cells(const Job *job, Worker *w, int64_t row, Cells c, float *acc)
{
    const Tensor *v = &job->in->v;

    job->kernel->mix_row(c.s, tensor_head(v, job->head, job->h), v->stride[1], c.keys, c.count,
                         job->e, 1.0f, acc);
    for (int64_t x = 0; w->terms.value && x < c.count; x += LIST_KEYS)
        terms_mix_list(&w->terms, job->head, row, c.keys + x, min_i64(LIST_KEYS, c.count - x),
                       c.s + x, acc);
}

static void mix_row(const Job *job, Worker *w, int64_t row)
{
    int64_t at = job->head * job->n + row;
    float  *out = tensor_f32(&job->out->out) + at * job->e, *acc = w->block.acc;
    size_t  bytes = (size_t)job->e * sizeof(*out);
    Cells   c = range_cells(job, row);

    w->cells += (double)c.count;
    fetch_listed(job, row);
    if (job->key_low == 0)
        memset(acc, 0, bytes);
    else
        memcpy(acc, out, bytes);
    if (tensor_f32(&job->out->lse)[at] != -INFINITY)
        mix_cells(job, w, row, c, acc);
    cpu_store_once(acc, job->e, out);
}

static void gather_item(void *context, int64_t item, int worker)
{
    Job    *job = context;
    Worker *w = &job->workers[worker];
    int64_t first = job->list_first + item * job->block_rows;
    int64_t end = min_i64(first + job->block_rows, job->list_first + job->list_rows);
    double  before = w->cells;

    if (cpu_cancelled(job->run))
        return;
    for (int64_t row = first; row < end; row++)
        if (job->list_mix)
            mix_row(job, w, row);
        else
            score_row(job, w, row, row - first);
    if (!job->list_mix && job->key_high == job->m)
        job->kernel->log_sums(w->block.max, w->block.sum, end - first,
                              tensor_f32(&job->out->lse) + job->head * job->n + first);
    cpu_stores_done();
    run_ahead(job->run, (w->cells - before) * job->cell_flops);
}

static void block_item(void *context, int64_t item, int worker)
{
    Job    *job = context;
    int64_t first = item * job->block_rows;

    if (!cpu_cancelled(job->run))
        attend_block(job, &job->workers[worker], job->head, job->list_first + first,
                     min_i64(job->block_rows, job->list_rows - first));
}

/* Whether most keys of a row are no neighbours of keys of the row above: then only a cache holds
 * them. */
static bool keys_jump(const Job *job)
{
    int64_t row = job->list_first + job->list_rows / 2, beside = 0;
    Cells   c = listed_cells(job, row);
    Cells   above = listed_cells(job, max_i64(job->list_first, row - 1));

    for (int64_t x = 0; x < c.count; x++) {
        int64_t at = key_lower_bound(above.keys, 0, above.count, c.keys[x] - 1);

        beside += at < above.count && above.keys[at] <= c.keys[x] + 1;
    }
    return 2 * beside < c.count;
}

/* All listed rows of a head, a range of keys at a time; `size`: floats that are read of a
 * key. */
static void gather_sweep(Job *job, bool mix, int64_t size)
{
    int64_t bytes = job->m * size * (int64_t)sizeof(float);
    int64_t passes = max_i64(1, ceil_div(bytes, keys_jump(job) ? JUMP_BYTES : GATHER_BYTES));
    int64_t keys = ceil_div(job->m, passes);

    job->list_mix = mix;
    for (int64_t x = 0; x < passes; x++) {
        job->key_low = x * keys;
        job->key_high = min_i64(job->m, (x + 1) * keys);
        threads_run(job->run->threads, ceil_div(job->list_rows, job->block_rows), gather_item,
                    job);
    }
}

static bool gather_rows(Job *job, double typical)
{
    for (job->head = 0; job->head < job->h; job->head++) {
        ArenaMark mark = arena_mark(job->run->arena);

        if ((job->per_head || job->head == 0) && !list_rows(job, typical))
            return false;
        if (job->list_apart) {
            gather_sweep(job, false, job->d);
            gather_sweep(job, true, job->e);
        } else {
            threads_run(job->run->threads, ceil_div(job->list_rows, job->block_rows),
                        block_item, job);
        }
        if (job->per_head)
            arena_release(job->run->arena, mark);
    }
    return true;
}

void attend_gather(Job *job, const Typical *typical)
{
    int64_t row = (int64_t)(sizeof(int32_t) + sizeof(float)) * (1 + (int64_t)typical->cells);
    int64_t rows = round_up_to(LIST_BYTES / row + 1, job->block_rows);
    bool    done;

    rows = min_i64(rows, job->n);
    job->row_order = (Phases){ 1, job->n };
    job->list_apart = job->m * (job->d + job->e) * (int64_t)sizeof(float) > APART_BYTES;
    job->list_offset = cpu_scratch(job->run, rows + 1, sizeof(*job->list_offset));
    done = !run_failed(job->run);
    for (job->list_first = 0; done && job->list_first < job->n; job->list_first += rows) {
        ArenaMark mark = arena_mark(job->run->arena);

        job->list_rows = min_i64(rows, job->n - job->list_first);
        done = gather_rows(job, typical->cells);
        arena_release(job->run->arena, mark);
    }
}
