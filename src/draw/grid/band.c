/* band.c -- one band of source rows counted and read into one row of cells; see job.h.
 *
 * Cell c of C covers the displayed columns [floor(c W / C), floor((c+1) W / C)) of a region W
 * wide, so column j lies in cell floor(((j+1) C - 1) / W). Runs are split at these edges: a run
 * costs O(cells it touches), never O(keys). With a column order the cells of a run are scattered,
 * and each key is looked up. The counts of a band stay in two arrays of the nearest cache and
 * reach its GridCells once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"
#include "draw/figure/figure.h"
#include "draw/grid/job.h"

/* ceil(a / b) for positive numbers; a 32-bit division is several times faster and nearly always
 * enough. */
static inline int64_t divide_up(int64_t a, int64_t b)
{
    int64_t sum = a + b - 1;

    return sum <= (int64_t)UINT32_MAX ? (int64_t)((uint32_t)sum / (uint32_t)b) : sum / b;
}

/* The part of a run from column lo to before hi; count 0: nothing. */
static inline PatternRun part_of_run(PatternRun run, int64_t lo, int64_t hi)
{
    int64_t skip, end;

    if (run.start >= lo && run.start + (run.count - 1) * run.step < hi)
        return run;
    skip = run.start >= lo ? 0 : divide_up(lo - run.start, run.step);
    end = run.start >= hi ? 0 : min_i64(run.count, divide_up(hi - run.start, run.step));
    run.count = end > skip ? end - skip : 0;
    run.start += skip * run.step;
    return run;
}

/* The part inside the region, in region columns; count 0: nothing. */
static inline PatternRun clip(const GridJob *job, PatternRun run)
{
    run = part_of_run(run, job->grid->region.col0, job->grid->region.col1);
    run.start -= job->grid->region.col0;
    return run;
}

const uint8_t grid_causes_by_rarity[GRID_CAUSES] = {
    COMPONENT_GLOBAL, COMPONENT_RANDOM, COMPONENT_STRIDED, COMPONENT_BLOCK,
    COMPONENT_WINDOW, COMPONENT_BUCKET, COMPONENT_CLUSTER, COMPONENT_OTHER,
};

/* The band's counts for entries with these bits: those of the rarest. */
static inline int64_t *counts_of(const GridJob *job, GridWorker *w, uint8_t bits)
{
    int at = 0;

    while (at < GRID_CAUSES - 1 && !(bits & grid_causes_by_rarity[at]))
        at++;
    w->causes |= 1u << at;
    return w->counts + at * job->grid->cols;
}

/* Place of the excluded column in a run; -1: it is not there. */
static inline int64_t excluded_at(const GridJob *job, PatternRun run)
{
    int64_t from = job->excluded - run.start;

    return job->excluded < 0 || from < 0 || from % run.step || from / run.step >= run.count
               ? -1
               : from / run.step;
}

static void count_ordered(const GridJob *job, GridWorker *w, PatternRun run)
{
    int64_t *counts = counts_of(job, w, run.bits);

    for (int64_t k = 0; k < run.count; k++) {
        int64_t j = run.start + k * run.step;
        int32_t cell = j < job->view_cols ? job->col_cell[j] : -1;

        if (cell >= 0) {
            counts[cell]++;
            w->bits[cell] |= run.bits;
        }
    }
}

static void leave_out(const GridJob *job, GridWorker *w, GridCell *cells, double entries)
{
    cells[job->excluded_cell].count -= entries;
    w->left_out += entries;
}

/* Neighbouring keys: a part of a cell, whole cells, a part of a cell. */
static void count_stretch(const GridJob *job, GridWorker *w, PatternRun run)
{
    const int64_t *edges = job->edges;
    int64_t        end = run.start + run.count, *counts = counts_of(job, w, run.bits);
    int32_t        first = job->cell_at[run.start], last = job->cell_at[end - 1];

    for (int32_t c = first; c <= last; c++) {
        counts[c] += edges[c + 1] - edges[c];
        w->bits[c] |= run.bits;
    }
    counts[first] -= run.start - edges[first];
    counts[last] -= edges[last + 1] - end;
}

static void count_run(const GridJob *job, GridWorker *w, PatternRun run)
{
    int64_t *counts;

    if (job->col_cell) {
        count_ordered(job, w, run);
        return;
    }
    run = clip(job, run);
    if (run.count > 0 && run.step == 1) {
        count_stretch(job, w, run);
        return;
    }
    counts = counts_of(job, w, run.bits);
    for (int64_t k = 0, at = run.start, same; k < run.count; k += same, at += same * run.step) {
        int32_t cell = job->cell_at[at];

        /* Most steps are wider than a cell. */
        same = at + run.step >= job->edges[cell + 1]
                   ? 1
                   : min_i64(divide_up(job->edges[cell + 1] - at, run.step), run.count - k);
        counts[cell] += same;
        w->bits[cell] |= run.bits;
    }
}

/* Source row of a displayed row; -1: the view has none. */
static int64_t grid_source_row(const GridJob *job, int64_t displayed)
{
    const GridRequest *q = job->request;
    int64_t            row = q->row_order ? q->row_order[displayed] : displayed;

    return row >= 0 && row < view_rows(q->view) ? row : -1;
}

/* Planes of a view are heads, or heads x rounds; a pattern has one per head. */
static int64_t head_of(const GridJob *job, const Pattern *p)
{
    int64_t plane = job->plane, heads = pattern_heads(p);
    int64_t planes = view_planes(job->request->view);

    if (planes > heads)
        return plane * heads / planes;
    return min_i64(plane, heads - 1);
}

/* The runs of source row i; none outside the pattern. False: out of memory, and the job failed. */
static bool grid_pattern_runs(GridJob *job, const Pattern *p, int64_t i, PatternRow *row)
{
    row->count = 0;
    if (i < 0 || i >= pattern_queries(p))
        return true;
    pattern_row(p, head_of(job, p), i, row);
    if (row->failed)
        atomic_store(&job->failed, true);
    return !row->failed;
}

static void count_dense(const GridJob *job, int64_t row, GridWorker *w)
{
    int64_t *counts = counts_of(job, w, 0);

    for (int64_t c = 0; c < job->grid->cols; c++)
        counts[c] += (int64_t)grid_cell_area(job->grid, row, c);
}

/* The cause of most of a cell's entries, and the rarest other one. */
static void settle_causes(const GridJob *job, const GridWorker *w, int64_t c, int64_t count,
                          GridCell *cell)
{
    int64_t most = 0;
    int     best = 0;

    for (int k = 0; k < GRID_CAUSES; k++)
        if (w->causes & 1u << k && w->counts[k * job->grid->cols + c] > most) {
            most = w->counts[k * job->grid->cols + c];
            best = k;
        }
    cell->components |= w->bits[c];
    cell->cause = cell->components & grid_causes_by_rarity[best];
    cell->purity = (float)((double)most / (double)count);
    cell->rare = 0;
    for (int k = 0; k < GRID_CAUSES && most < count && !cell->rare; k++)
        if (k != best && w->causes & 1u << k && w->counts[k * job->grid->cols + c])
            cell->rare = grid_causes_by_rarity[k];
}

/* Moves the counts of a band into its cells and zeroes them. Those of a second pattern give the
 * cells causes only. */
static void settle_counts(const GridJob *job, GridWorker *w, GridCell *cells, bool causes_only)
{
    for (int64_t c = 0; c < job->grid->cols; c++) {
        int64_t count = 0;

        for (int k = 0; k < GRID_CAUSES; k++)
            if (w->causes & 1u << k)
                count += w->counts[k * job->grid->cols + c];
        if (!count)
            continue;
        settle_causes(job, w, c, count, &cells[c]);
        w->bits[c] = 0;
        if (causes_only)
            continue;
        cells[c].count += (double)count;
        cells[c].any = true;
    }
    for (int k = 0; k < GRID_CAUSES; k++)
        if (w->causes & 1u << k)
            memset(w->counts + k * job->grid->cols, 0,
                   (size_t)job->grid->cols * sizeof(*w->counts));
    w->causes = 0;
}

/* Counts the entries of a pattern in a band, without the excluded column's where `cells` are given;
 * false: stopped. */
static bool count_rows(GridJob *job, const Pattern *pattern, Region band, GridWorker *w,
                       GridCell *cells)
{
    for (int64_t r = band.row0; r < band.row1; r++) {
        if (grid_job_stopped(job) ||
            !grid_pattern_runs(job, pattern, grid_source_row(job, r), &w->row))
            return false;
        for (int64_t k = 0; k < w->row.count; k++) {
            count_run(job, w, w->row.runs[k]);
            if (cells && excluded_at(job, w->row.runs[k]) >= 0)
                leave_out(job, w, cells, 1);
        }
    }
    return true;
}

void grid_count_band(GridJob *job, int64_t row, GridWorker *w)
{
    GridCell *cells = job->grid->cells + row * job->grid->cols;
    Region    band = grid_cell_region(job->grid, row, 0);

    if (!job->support)
        count_dense(job, row, w);
    if (!job->support && job->excluded >= 0)
        leave_out(job, w, cells, (double)(band.row1 - band.row0));
    if (job->support && !count_rows(job, job->support, band, w, cells))
        return;
    settle_counts(job, w, cells, false);
    if (job->causes && count_rows(job, job->causes, band, w, NULL))
        settle_counts(job, w, cells, true);
}

/* The majority category of each cell.
 *
 * A hash table counts (cell, category) and grows with the pairs seen, so neither the number of
 * categories nor their size matters. Ties go to the smaller category, whatever the order of
 * reading.
 */

static GridTally *find_tally(GridTally *tallies, int64_t capacity, int32_t cell, int32_t category)
{
    uint64_t hash = ((uint64_t)(uint32_t)cell << 32 | (uint32_t)category) * 0x9E3779B97F4A7C15u;
    int64_t  at = (int64_t)(hash >> 20) & (capacity - 1);

    while (tallies[at].cell >= 0 &&
           (tallies[at].cell != cell || tallies[at].category != category))
        at = (at + 1) & (capacity - 1);
    return &tallies[at];
}

static bool grow_tallies(GridWorker *w)
{
    int64_t    capacity = w->tally_capacity ? 2 * w->tally_capacity : 1024;
    GridTally *tallies = malloc((size_t)capacity * sizeof(*tallies));

    if (!tallies)
        return false;
    for (int64_t k = 0; k < capacity; k++)
        tallies[k] = (GridTally){ .cell = -1 };
    for (int64_t k = 0; k < w->tally_capacity; k++) {
        GridTally *old = &w->tallies[k];

        if (old->cell >= 0)
            *find_tally(tallies, capacity, old->cell, old->category) = *old;
    }
    free(w->tallies);
    w->tallies = tallies;
    w->tally_capacity = capacity;
    return true;
}

static void grid_tally(GridJob *job, GridWorker *w, int64_t cell, int32_t category, int64_t count)
{
    GridTally *tally;

    if (2 * w->tally_used >= w->tally_capacity && !grow_tallies(w)) {
        atomic_store(&job->failed, true);
        return;
    }
    tally = find_tally(w->tallies, w->tally_capacity, (int32_t)cell, category);
    if (tally->cell < 0) {
        *tally = (GridTally){ .cell = (int32_t)cell, .category = category };
        w->tally_used++;
    }
    tally->count += count;
}

/* Gives the cells of the band their majority categories and empties the table. */
static void grid_tally_settle(GridWorker *w, GridCell *cells)
{
    for (int64_t k = 0; k < w->tally_capacity; k++) {
        GridTally *tally = &w->tallies[k];
        GridCell  *cell;
        double     best, count = (double)tally->count;

        if (tally->cell < 0)
            continue;
        cell = &cells[tally->cell];
        best = (double)cell->purity; /* holds the best count until the end */
        cell->count += count;
        cell->sum += count * tally->category;
        if (!cell->any || count > best || (count >= best && tally->category < cell->category)) {
            cell->purity = (float)tally->count;
            cell->category = tally->category;
        }
        cell->min = !cell->any || (float)tally->category < cell->min ? (float)tally->category
                                                                     : cell->min;
        cell->max = !cell->any || (float)tally->category > cell->max ? (float)tally->category
                                                                     : cell->max;
        cell->any = true;
        tally->cell = -1;
    }
    w->tally_used = 0;
}

/* ---- values, one row at a time --------------------------------------------------- */

static void take_value(GridWorker *w, GridCell *cell, float value)
{
    if (!isfinite(value)) {
        cell->odd = true;
        w->odd++;
        return;
    }
    cell->sum += (double)value;
    if (value > cell->max)
        cell->max = value;
    if (value < cell->min)
        cell->min = value;
}

/* Whole numbers >= 0; a negative one is no entry. */
static void take_hops(GridWorker *w, GridCell *cell, const float *values, int64_t count)
{
    float least = cell->min, most = cell->max, sum = 0; /* exact: hops and chunks are small */
    float found = 0;

    for (int64_t k = 0; k < count; k++) {
        bool  there = values[k] >= 0;
        float value = there ? values[k] : 0;

        found += there ? 1 : 0;
        sum += value;
        most = value > most ? value : most;
        least = there && value < least ? value : least;
    }
    cell->min = least;
    cell->max = most;
    cell->sum += (double)sum;
    cell->count += (double)found;
    cell->any |= found > 0;
    for (int64_t k = 0; found < (float)count && k < count; k++)
        if (isnan(values[k])) {
            cell->odd = true;
            w->odd++;
        }
}

/* An entry of a mask; a view of causes holds their bits. */
static void count_value(const GridJob *job, GridWorker *w, int64_t cell, float value)
{
    uint8_t bits = job->request->view->kind == VIEW_COMPONENTS ? (uint8_t)value : 0;

    counts_of(job, w, bits)[cell]++;
    w->bits[cell] |= bits;
}

static void take_values(GridJob *job, GridWorker *w, GridCell *cells, int64_t cell,
                        const float *values, int64_t count)
{
    bool    schedule = job->request->view->kind == VIEW_SCHEDULE;
    int32_t category;

    w->read[cell] += (double)count;
    for (int64_t k = 0; k < count && job->mode == GRID_VALUES; k++)
        take_value(w, &cells[cell], values[k]);
    if (job->mode == GRID_HOPS)
        take_hops(w, &cells[cell], values, count);
    for (int64_t k = 0; k < count && job->mode == GRID_MASK; k++)
        if (values[k] != 0)
            count_value(job, w, cell, values[k]);
    for (int64_t k = 0, same; k < count && job->mode == GRID_CATEGORY; k += same) {
        for (same = 1; k + same < count && values[k + same] == values[k]; same++)
            ;
        category = schedule ? schedule_category(values[k]) : (int32_t)values[k];
        if (category >= 0)
            grid_tally(job, w, cell, category, same);
    }
}

/* Distributes the values of source columns start, start + step, ... over their cells. */
static void deal(GridJob *job, GridWorker *w, GridCell *cells, PatternRun run)
{
    int64_t column = run.start - job->grid->region.col0, cell, same;

    for (int64_t k = 0; job->col_cell && k < run.count; k++) {
        int64_t j = run.start + k * run.step;

        if (job->col_cell[j] >= 0)
            take_values(job, w, cells, job->col_cell[j], &w->values[k], 1);
    }
    if (job->col_cell)
        return;
    cell = job->cell_at[column];
    for (int64_t k = 0; k < run.count; k += same, cell++) {
        int64_t end = divide_up(job->edges[cell + 1] - column, run.step);

        same = min_i64(end, run.count) - k;
        if (same > 0)
            take_values(job, w, cells, cell, &w->values[k], same);
    }
}

static void read_chunk(const GridJob *job, GridWorker *w, int64_t i, PatternRun run)
{
    const GridRequest *q = job->request;
    const View        *v = q->view;

    if (v->read && !v->tensor.data && v->support && job->support == v->support)
        v->read(v, job->plane, i, run.start, run.count, run.step, w->values);
    else /* view_read would find the support again */
        view_read(v, job->plane, i, run.start, run.count, run.step, w->values);
    if (!q->minus)
        return;
    view_read(q->minus, job->minus_plane, i, run.start, run.count, run.step, w->minus);
    for (int64_t k = 0; k < run.count; k++)
        w->values[k] -= w->minus[k];
}

static void read_run(GridJob *job, GridWorker *w, GridCell *cells, int64_t i, PatternRun run)
{
    if (!job->col_cell) {
        run = clip(job, run);
        run.start += job->grid->region.col0;
    }
    if (run.start + (run.count - 1) * run.step >= job->view_cols)
        run.count = run.start < job->view_cols ? divide_up(job->view_cols - run.start, run.step)
                                               : 0;
    while (run.count > 0 && !grid_job_stopped(job)) {
        PatternRun part = run;
        int64_t    skip = excluded_at(job, run);

        part.count = min_i64(run.count, GRID_CHUNK);
        if (skip == 0)
            part.count = 1;
        else if (skip > 0)
            part.count = min_i64(part.count, skip);
        if (skip != 0) {
            read_chunk(job, w, i, part);
            deal(job, w, cells, part);
        }
        run.start += part.count * run.step;
        run.count -= part.count;
    }
}

/* The support's runs of source row i; without a support, one run over all columns. */
static bool support_runs(GridJob *job, int64_t i, PatternRow *row, PatternRun *whole,
                         const PatternRun **runs, int64_t *count)
{
    *whole = (PatternRun){ .start = 0, .count = job->view_cols, .step = 1 };
    *runs = whole;
    *count = i >= 0;
    if (!job->support)
        return true;
    if (!grid_pattern_runs(job, job->support, i, row))
        return false;
    *runs = row->runs;
    *count = row->count;
    return true;
}

static void read_row(GridJob *job, GridWorker *w, GridCell *cells, int64_t displayed)
{
    int64_t           i = grid_source_row(job, displayed), count;
    PatternRun        whole;
    const PatternRun *runs;

    if (!support_runs(job, i, &w->row, &whole, &runs, &count))
        return;
    for (int64_t k = 0; k < count; k++)
        read_run(job, w, cells, i, runs[k]);
}

/* Sampled rows may miss a whole cell (a global row, a random key). It gets the value of its first
 * allowed entry, so its colour is a real one. */
static void read_missing(GridJob *job, GridWorker *w, GridCell *cells, int64_t displayed)
{
    int64_t           i = grid_source_row(job, displayed), count, cell = 0;
    PatternRun        whole;
    const PatternRun *runs;

    if (!support_runs(job, i, &w->row, &whole, &runs, &count))
        return;
    for (int64_t k = 0; k < count; k++) {
        PatternRun run = job->col_cell ? runs[k] : clip(job, runs[k]);

        for (int64_t at = 0; at < run.count; at++) {
            PatternRun one = { .start = run.start + at * run.step, .count = 1, .step = 1 };

            if (job->col_cell && one.start >= job->view_cols)
                break;
            cell = job->col_cell ? job->col_cell[one.start] : job->cell_at[one.start];
            if (!job->col_cell) {
                at = divide_up(job->edges[cell + 1] - run.start, run.step) - 1;
                one.start += job->grid->region.col0;
            }
            if (cell >= 0 && w->read[cell] == 0)
                read_run(job, w, cells, i, one);
        }
    }
}

static bool band_misses(const GridJob *job, const GridWorker *w, const GridCell *cells)
{
    for (int64_t c = 0; c < job->grid->cols; c++)
        if (cells[c].any && w->read[c] == 0)
            return true;
    return false;
}

/* The values have extremes: cells keep the least and the largest. */
static bool has_range(const GridJob *job)
{
    return job->mode == GRID_VALUES || job->mode == GRID_HOPS;
}

/* Sums become estimates of the whole cell, empty extremes 0. */
static void settle_cells(const GridJob *job, const GridWorker *w, GridCell *cells, int64_t rows,
                         int64_t height)
{
    for (int64_t c = 0; c < job->grid->cols; c++) {
        GridCell *cell = &cells[c];

        if (w->read[c] > 0 && job->share < 1 && job->mode == GRID_VALUES)
            cell->sum *= cell->count / w->read[c];
        if (rows < height && job->mode == GRID_HOPS) {
            cell->sum *= (double)height / (double)rows;
            cell->count *= (double)height / (double)rows;
        }
        if (!(cell->max >= cell->min))
            cell->max = cell->min = 0;
        cell->extreme = fabsf(cell->min) > fabsf(cell->max) ? cell->min : cell->max;
    }
}

/* Number of a band's rows that are read. */
static int64_t rows_read(const GridJob *job, int64_t height)
{
    int64_t rows = (int64_t)ceil((double)height * job->share);

    return rows < 1 ? 1 : min_i64(rows, height);
}

static void begin_band(const GridJob *job, int64_t band)
{
    GridCell *cells = job->grid->cells + band * job->grid->cols;

    for (int64_t c = 0; c < job->grid->cols; c++) {
        cells[c].max = -INFINITY;
        cells[c].min = INFINITY;
    }
}

void grid_read_band(GridJob *job, int64_t row, GridWorker *w)
{
    GridCell *cells = job->grid->cells + row * job->grid->cols;
    Region    band = grid_cell_region(job->grid, row, 0);
    int64_t   height = band.row1 - band.row0, rows = rows_read(job, height);

    memset(w->read, 0, (size_t)job->grid->cols * sizeof(*w->read));
    if (has_range(job))
        begin_band(job, row);
    for (int64_t k = 0; k < rows && !grid_job_stopped(job); k++)
        read_row(job, w, cells, band.row0 + (2 * k + 1) * height / (2 * rows));
    for (int64_t r = band.row0; job->mode != GRID_HOPS && rows < height && r < band.row1 &&
                                band_misses(job, w, cells) && !grid_job_stopped(job);
         r++)
        read_missing(job, w, cells, r);
    if (has_range(job))
        settle_cells(job, w, cells, rows, height);
    if (job->mode == GRID_CATEGORY)
        grid_tally_settle(w, cells);
    if (job->mode == GRID_MASK)
        settle_counts(job, w, cells, false);
}

/* ---- values of a view that reads several rows at once ----------------------------- */

/* Rows of several bands to be read together. */
typedef struct Batch {
    int64_t rows[VIEW_ROWS_MOST], bands[VIEW_ROWS_MOST], count;
    float   values[VIEW_ROWS_MOST * VIEW_KEYS_MOST];
} Batch;

bool grid_reads_groups(const GridJob *job)
{
    const GridRequest *q = job->request;

    return q->view->read_rows && job->mode == GRID_VALUES && !q->view->tensor.data &&
           job->support == q->view->support && (!job->support || job->share == 1) && !q->minus &&
           !job->col_cell && job->excluded < 0;
}

/* Distributes the keys of row r that the support allows. */
static void deal_row(GridJob *job, GridWorker *w, const Batch *b, int64_t r, PatternRun keys)
{
    GridCell         *cells = job->grid->cells + b->bands[r] * job->grid->cols;
    const float      *values = b->values + r * keys.count;
    PatternRun        whole;
    const PatternRun *runs;
    int64_t           count;

    if (!support_runs(job, b->rows[r], &w->row, &whole, &runs, &count))
        return;
    for (int64_t x = 0; x < count; x++) {
        PatternRun common = part_of_run(runs[x], keys.start, keys.start + keys.count);

        for (int64_t k = 0; k < common.count; k++)
            w->values[k] = values[common.start + k * common.step - keys.start];
        if (common.count)
            deal(job, w, cells, common);
    }
}

/* One past the last key of any row in the batch. */
static int64_t batch_end(GridJob *job, GridWorker *w, const Batch *b)
{
    int64_t end = job->support ? 0 : job->grid->region.col1;

    for (int64_t r = 0; job->support && r < b->count; r++) {
        PatternRun        whole;
        const PatternRun *runs;
        int64_t           count;

        if (!support_runs(job, b->rows[r], &w->row, &whole, &runs, &count))
            return job->grid->region.col1;
        for (int64_t x = 0; x < count; x++)
            end = max_i64(end, runs[x].start + (runs[x].count - 1) * runs[x].step + 1);
    }
    return min_i64(end, job->grid->region.col1);
}

static void read_batch(GridJob *job, GridWorker *w, Batch *b)
{
    const View *v = job->request->view;
    int64_t     end = batch_end(job, w, b);

    for (int64_t c = job->grid->region.col0; b->count && c < end && !grid_job_stopped(job);
         c += VIEW_KEYS_MOST) {
        PatternRun keys = { .start = c, .count = min_i64(VIEW_KEYS_MOST, end - c), .step = 1 };

        v->read_rows(v, job->plane, b->rows, b->count, c, keys.count, b->values);
        for (int64_t r = 0; r < b->count; r++)
            deal_row(job, w, b, r, keys);
    }
    b->count = 0;
}

/* Rows were read through all cells; with a support, all rows were. */
static void end_band(const GridJob *job, int64_t band, GridWorker *w)
{
    Region  r = grid_cell_region(job->grid, band, 0);
    int64_t height = r.row1 - r.row0, rows = rows_read(job, height);

    for (int64_t c = 0; c < job->grid->cols; c++)
        w->read[c] = (double)(rows * (job->edges[c + 1] - job->edges[c]));
    settle_cells(job, w, job->grid->cells + band * job->grid->cols, rows, height);
}

void grid_read_group(GridJob *job, int64_t group, GridWorker *w)
{
    Batch   batch = { .count = 0 };
    int64_t first = group * GRID_GROUP, end = min_i64(first + GRID_GROUP, job->grid->rows);

    for (int64_t band = first; band < end; band++) {
        Region  r = grid_cell_region(job->grid, band, 0);
        int64_t height = r.row1 - r.row0, rows = rows_read(job, height);

        begin_band(job, band);
        for (int64_t k = 0; k < rows; k++) {
            int64_t row = grid_source_row(job, r.row0 + (2 * k + 1) * height / (2 * rows));

            batch.bands[batch.count] = band;
            batch.rows[batch.count] = row;
            batch.count += row >= 0;
            if (batch.count == VIEW_ROWS_MOST)
                read_batch(job, w, &batch);
        }
    }
    read_batch(job, w, &batch);
    for (int64_t band = first; band < end; band++)
        end_band(job, band, w);
}
