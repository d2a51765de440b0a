/* attend_bins.c -- attention where neighbouring rows read different runs of keys.
 *
 * Rows that choose blocks of keys by themselves leave the tiles of neighbours nearly empty.  Here
 * the cells of many rows are sorted by their panel of keys, and within it by the vectors of keys
 * that they touch.  Rows of one bin are gathered into tiles, which are then nearly full; each row
 * keeps the state of its own softmax meanwhile.
 *
 * An item of work is a stretch of rows of one head.  A row meets its panels in increasing order,
 * and what it gets depends on its item alone, so the number of threads changes no bit.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/attend.h"
#include "core/threads.h"

#define BIN_ROWS 2048    /* of an item: their queries and outputs stay in the second-level cache */
#define ENTRIES (1 << 16) /* panels of rows that a worker holds, unless one row has more */
#define SPANS 16         /* bins of a panel, by the first and the last vector of keys touched */
#define SAMPLES 9        /* tiles that tell how full those of neighbours are */
#define SAMPLED 512      /* panels of a sampled tile; more are not few */
#define MOST_FILLED .5   /* share of the rows that touch a panel of such a tile */
#define LEAST_CELLS 6    /* of a row in a panel that it touches */

/* A row's cells in a panel. */
typedef struct Entry {
    uint64_t keep;
    int32_t  row, bin;
} Entry;

struct Bins {
    int64_t  rows;         /* held; the first is row `first` */
    int64_t  first, count; /* count: entries */
    int64_t  capacity, lda;
    Entry   *entry, *sorted; /* [capacity] */
    int32_t *start;        /* [panels SPANS + 1] */
    float   *q, *acc;      /* [BIN_ROWS][d], [BIN_ROWS][lda] */
    float   *max, *sum;    /* [BIN_ROWS] */
    float   *tile_q, *tile_acc; /* [TILE_ROWS] of these */
    float    s[TILE_ROWS * TILE_KEYS], top[TILE_ROWS * LANES];
};

/* ---- whether it pays ------------------------------------------------------------- */

typedef struct Filled {
    int32_t panel[SAMPLED];
    int64_t panels, touched; /* different ones; sum over the rows */
    double  cells;
} Filled;

static void note_panel(Filled *f, int64_t panel)
{
    int64_t x = 0;

    while (x < f->panels && f->panel[x] != panel)
        x++;
    if (x == f->panels && f->panels < SAMPLED)
        f->panel[f->panels++] = (int32_t)panel;
    f->touched++;
}

static void note_row(Filled *f, const PatternRow *row)
{
    int64_t last = -1;

    f->cells += pattern_row_cells(row);
    for (int64_t x = 0; x < row->count; x++) {
        int64_t panel = row->runs[x].start / TILE_KEYS;
        int64_t end = (row->runs[x].start + row->runs[x].count - 1) / TILE_KEYS;

        for (panel = max_i64(panel, last + 1); panel <= end; panel++)
            note_panel(f, panel);
        last = end;
    }
}

bool attend_bins_pay(const Job *job, const Typical *typical)
{
    PatternRow row = { 0 };
    int64_t    panels = 0, touched = 0, tiles = job->n / TILE_ROWS;
    double     cells = 0;

    if (!job->per_head || job->has_terms || tensor_given(&job->in->value.table) ||
        typical->step > 1 || job->n <= TILE_ROWS * SAMPLES)
        return false;
    for (int64_t x = 0; x < SAMPLES && !row.failed; x++) {
        Filled f = { .panels = 0 };

        for (int64_t r = 0; r < TILE_ROWS; r++) {
            pattern_row(job->pattern, x * (job->h - 1) / (SAMPLES - 1),
                        x * (tiles - 1) / (SAMPLES - 1) * TILE_ROWS + r, &row);
            note_row(&f, &row);
        }
        panels += f.panels;
        touched += f.touched;
        cells += f.cells;
    }
    pattern_row_free(&row);
    return (double)touched <= MOST_FILLED * TILE_ROWS * (double)panels &&
           cells >= LEAST_CELLS * (double)touched;
}

/* ---- a stretch of rows ------------------------------------------------------------ */

static Bins *bins_new(const Job *job)
{
    Arena  *arena = job->run->arena;
    int64_t size = (int64_t)sizeof(float), rows = min_i64(BIN_ROWS, job->n);
    Bins   *b = arena_zalloc(arena, 1, sizeof(*b));

    if (!b)
        return NULL;
    b->capacity = max_i64(min_i64(ENTRIES, rows * job->panels), job->panels);
    b->lda = round_up_to(job->e, LANES);
    b->entry = arena_alloc(arena, b->capacity, sizeof(*b->entry));
    b->sorted = arena_alloc(arena, b->capacity, sizeof(*b->sorted));
    b->start = arena_alloc(arena, job->panels * SPANS + 1, sizeof(*b->start));
    b->q = arena_alloc(arena, rows, job->d * size);
    b->acc = arena_alloc(arena, rows, b->lda * size);
    b->max = arena_alloc(arena, rows, size);
    b->sum = arena_alloc(arena, rows, size);
    b->tile_q = arena_zalloc(arena, TILE_ROWS, job->d * size);
    b->tile_acc = arena_zalloc(arena, TILE_ROWS, b->lda * size);
    return b->entry && b->sorted && b->start && b->q && b->acc && b->max && b->sum && b->tile_q &&
                   b->tile_acc
               ? b : NULL;
}

bool attend_bins_init(Job *job)
{
    bool taken = true;

    for (int x = 0; x < threads_count(job->run->threads); x++) {
        job->workers[x].bins = bins_new(job);
        taken &= job->workers[x].bins != NULL;
    }
    return taken;
}

static int32_t bin_of(int64_t panel, uint64_t keep)
{
    return (int32_t)(panel * SPANS + __builtin_ctzll(keep) / LANES * (TILE_KEYS / LANES) +
                     (63 - __builtin_clzll(keep)) / LANES);
}

/* Adds keys [from, to) of a row, which come in increasing order; false: no room. */
static bool add_range(Bins *b, int64_t row, int64_t from, int64_t to)
{
    for (int64_t end; from < to; from = end) {
        int64_t  panel = from / TILE_KEYS, base = panel * TILE_KEYS;
        Entry   *last = b->count ? b->entry + b->count - 1 : NULL;
        uint64_t bits;

        end = min_i64(to, base + TILE_KEYS);
        bits = ~UINT64_C(0) >> (TILE_KEYS - (end - from)) << (from - base);
        if (last && last->row == row && last->bin / SPANS == panel) {
            last->keep |= bits;
            last->bin = bin_of(panel, last->keep);
        } else if (b->count < b->capacity) {
            b->entry[b->count++] = (Entry){ bits, (int32_t)row, bin_of(panel, bits) };
        } else {
            return false;
        }
    }
    return true;
}

/* Adds the cells of the row that follows; false: no room, or the worker failed. */
static bool add_row(const Job *job, Worker *w, Bins *b, int64_t head)
{
    PatternRow *row = &w->plan.row;
    int64_t     before = b->count;
    bool        fits = true;

    pattern_row(job->pattern, head, b->first + b->rows, row);
    w->failed |= row->failed;
    for (int64_t x = 0; x < row->count && fits && !w->failed; x++) {
        const PatternRun *run = &row->runs[x];

        if (run->step == 1)
            fits = add_range(b, b->rows, run->start, run->start + run->count);
        for (int64_t y = 0; run->step != 1 && y < run->count && fits; y++) {
            int64_t key = run->start + y * run->step;

            fits = add_range(b, b->rows, key, key + 1);
        }
    }
    if (!fits || w->failed) {
        b->count = before;
        return false;
    }
    w->cells += pattern_row_cells(row);
    b->rows++;
    return true;
}

/* Counts the entries of each bin, and puts them in order of bins and rows. */
static void sort_entries(const Job *job, Bins *b)
{
    int64_t bins = job->panels * SPANS;

    memset(b->start, 0, (size_t)(bins + 1) * sizeof(*b->start));
    for (int64_t x = 0; x < b->count; x++)
        b->start[b->entry[x].bin + 1]++;
    for (int64_t x = 0; x < bins; x++)
        b->start[x + 1] += b->start[x];
    for (int64_t x = 0; x < b->count; x++)
        b->sorted[b->start[b->entry[x].bin]++] = b->entry[x];
}

static void begin_rows(const Job *job, Bins *b, int64_t head)
{
    const AttendInput *in = job->in;

    for (int64_t i = 0; i < b->rows; i++) {
        job->kernel->scale(tensor_row_f32(&in->q, head, job->h, b->first + i), job->d,
                           (float)(in->scale * LOG2_E), b->q + i * job->d);
        b->max[i] = -INFINITY;
        b->sum[i] = 0;
    }
    memset(b->acc, 0, (size_t)(b->rows * b->lda) * sizeof(*b->acc));
}

/* One tile: `rows` entries of the same bin. */
static void take_tile(const Job *job, Bins *b, int64_t head, const Entry *entry, int64_t rows,
                      const float *panel)
{
    const float  *v = tensor_head(&job->in->v, head, job->h);
    int64_t       ldv = job->in->v.stride[1];
    int64_t       first = entry->bin / SPANS * TILE_KEYS, d = job->d;
    int64_t       from = entry->bin % SPANS / (TILE_KEYS / LANES) * LANES;
    int64_t       to = (entry->bin % (TILE_KEYS / LANES) + 1) * LANES;
    uint64_t      keep[TILE_ROWS] = { 0 }, all = ~UINT64_C(0);
    float         max[TILE_ROWS], sum[TILE_ROWS], factor[TILE_ROWS];

    for (int64_t r = 0; r < TILE_ROWS; r++) {
        const Entry *e = entry + min_i64(r, rows - 1);

        keep[r] = e->keep;
        all &= e->keep;
        max[r] = b->max[e->row];
        sum[r] = b->sum[e->row];
        memcpy(b->tile_q + r * d, b->q + e->row * d, (size_t)d * sizeof(float));
        memcpy(b->tile_acc + r * b->lda, b->acc + e->row * b->lda,
               (size_t)b->lda * sizeof(float));
    }
    for (int x = 0; x < TILE_ROWS * LANES; x++)
        b->top[x] = -INFINITY;
    job->kernel->score(b->tile_q, d, panel, d, ~all ? keep : NULL, (int)from, (int)to, b->s,
                       TILE_KEYS, b->top);
    job->kernel->softmax(b->s + from, TILE_KEYS, TILE_ROWS, to - from, b->top, max, sum, factor);
    job->kernel->mix(b->s + from, TILE_KEYS, v + (first + from) * ldv, ldv,
                     min_i64(job->m - first, to) - from, job->e, factor, b->tile_acc, b->lda);
    for (int64_t r = 0; r < rows; r++) {
        int64_t row = entry[r].row;

        b->max[row] = max[r];
        b->sum[row] = sum[r];
        memcpy(b->acc + row * b->lda, b->tile_acc + r * b->lda, (size_t)b->lda * sizeof(float));
    }
}

static void finish_rows(const Job *job, const Bins *b, int64_t head)
{
    int64_t at = head * job->n + b->first;
    float  *out = tensor_f32(&job->out->out) + at * job->e;
    float  *lse = tensor_f32(&job->out->lse) + at;

    job->kernel->log_sums(b->max, b->sum, b->rows, lse);
    for (int64_t i = 0; i < b->rows; i++) {
        float share = lse[i] != -INFINITY ? 1.0f / b->sum[i] : 0.0f;

        job->kernel->scale(b->acc + i * b->lda, job->e, share, out + i * job->e);
    }
}

/* All rows that are held. */
static void take_rows(const Job *job, Bins *b, int64_t head)
{
    int64_t      slice = head * job->in->k.shape[0] / job->h - job->slice;
    const float *packed = job->packed + slice * job->panels * job->d * TILE_KEYS;

    sort_entries(job, b);
    begin_rows(job, b, head);
    for (int64_t at = 0, rows; at < b->count; at += rows) {
        const Entry *entry = b->sorted + at;

        rows = 1;
        while (rows < TILE_ROWS && at + rows < b->count && entry[rows].bin == entry->bin)
            rows++;
        take_tile(job, b, head, entry, rows,
                  packed + entry->bin / SPANS * job->d * TILE_KEYS);
    }
    finish_rows(job, b, head);
}

int64_t attend_bins_items(const Job *job)
{
    return job->heads * ceil_div(job->n, BIN_ROWS);
}

/* Items go last to first, as blocks do. */
void attend_bins_item(void *context, int64_t item, int worker)
{
    Job    *job = context;
    Worker *w = &job->workers[worker];
    Bins   *b = w->bins;
    int64_t head = job->head + item % job->heads;
    int64_t first = (ceil_div(job->n, BIN_ROWS) - 1 - item / job->heads) * BIN_ROWS;
    int64_t end = min_i64(job->n, first + BIN_ROWS);
    double  before = w->cells;

    while (first < end && !w->failed && !cpu_cancelled(job->run)) {
        b->first = first;
        b->rows = b->count = 0;
        while (first + b->rows < end && add_row(job, w, b, head))
            continue;
        if (!w->failed)
            take_rows(job, b, head);
        first += b->rows;
    }
    run_ahead(job->run, (w->cells - before) * job->cell_flops);
}
