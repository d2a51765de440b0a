/* band.c -- the values of one band of source rows, read into one row of cells; see job.h.
 *
 * Values are read in runs of neighbouring keys, of several rows at once where the view can, and
 * dealt to the cells whose columns they lie in (count.c).
 */
#include <math.h>

#include "core/tensor.h"
#include "draw/figure/figure.h"
#include "draw/grid/job.h"

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

    grid_counts_of(job, w, bits)[cell]++;
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
        int64_t end = grid_divide_up(job->edges[cell + 1] - column, run.step);

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
        run = grid_run_inside(job, run);
        run.start += job->grid->region.col0;
    }
    if (run.start >= job->view_cols)
        run.count = 0;
    else if (run.start + (run.count - 1) * run.step >= job->view_cols)
        run.count = grid_divide_up(job->view_cols - run.start, run.step);
    while (run.count > 0 && !grid_job_stopped(job)) {
        PatternRun part = run;
        int64_t    skip = grid_excluded_at(job, run);

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
        PatternRun run = job->col_cell ? runs[k] : grid_run_inside(job, runs[k]);

        for (int64_t at = 0; at < run.count; at++) {
            PatternRun one = { .start = run.start + at * run.step, .count = 1, .step = 1 };

            if (job->col_cell && one.start >= job->view_cols)
                break;
            cell = job->col_cell ? job->col_cell[one.start] : job->cell_at[one.start];
            if (!job->col_cell) {
                at = grid_divide_up(job->edges[cell + 1] - run.start, run.step) - 1;
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
        grid_settle_counts(job, w, cells, false);
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
        PatternRun common = grid_part_of_run(runs[x], keys.start, keys.start + keys.count);

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
