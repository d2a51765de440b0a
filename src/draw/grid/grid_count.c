/* grid_count.c -- allowed entries of one band of source rows, counted into one row of cells.
 *
 * The counts of a band are kept in two small arrays that stay in the nearest cache, and are put
 * into its GridCells once.
 */
#include "draw/grid/grid_runs.h"

static void count_ordered(const GridJob *job, GridWorker *w, PatternRun run)
{
    for (int64_t k = 0; k < run.count; k++) {
        int64_t j = run.start + k * run.step;
        int32_t cell = j < job->view_cols ? job->col_cell[j] : -1;

        if (cell >= 0) {
            w->counts[cell]++;
            w->bits[cell] |= run.bits;
        }
    }
}

static void leave_out(const GridJob *job, GridWorker *w, GridCell *cells, double entries)
{
    cells[job->excluded_cell].count -= entries;
    w->left_out += entries;
}

/* Keys next to each other: a part of a cell, whole cells, a part of a cell. */
static void count_stretch(const GridJob *job, GridWorker *w, PatternRun run)
{
    const int64_t *edges = job->edges;
    int64_t        end = run.start + run.count;
    int32_t        first = job->cell_at[run.start], last = job->cell_at[end - 1];

    for (int32_t c = first; c <= last; c++) {
        w->counts[c] += edges[c + 1] - edges[c];
        w->bits[c] |= run.bits;
    }
    w->counts[first] -= run.start - edges[first];
    w->counts[last] -= edges[last + 1] - end;
}

static void count_run(const GridJob *job, GridWorker *w, PatternRun run)
{
    if (job->col_cell) {
        count_ordered(job, w, run);
        return;
    }
    run = clip(job, run);
    if (run.count > 0 && run.step == 1) {
        count_stretch(job, w, run);
        return;
    }
    for (int64_t k = 0, at = run.start, same; k < run.count; k += same, at += same * run.step) {
        int32_t cell = job->cell_at[at];

        /* Most steps are wider than a cell. */
        same = at + run.step >= job->edges[cell + 1]
                   ? 1
                   : smaller(divide_up(job->edges[cell + 1] - at, run.step), run.count - k);
        w->counts[cell] += same;
        w->bits[cell] |= run.bits;
    }
}

/* Bits of a second pattern, only where the support allows something. */
static void cause_run(const GridJob *job, GridCell *cells, PatternRun run)
{
    int64_t column = -1;

    if (!job->col_cell)
        run = clip(job, run);
    for (int64_t k = 0; k < run.count; k++) {
        int64_t j = run.start + k * run.step, cell;

        if (job->col_cell && j >= job->view_cols)
            break;
        cell = job->col_cell ? job->col_cell[j] : job->cell_at[j];
        if (cell < 0)
            continue;
        cells[cell].components |= run.bits;
        column = job->edges[cell + 1];
        if (!job->col_cell && run.start + (k + 1) * run.step < column) /* rest of the cell */
            k = divide_up(column - run.start, run.step) - 1;
    }
}

int64_t grid_source_row(const GridJob *job, int64_t displayed)
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
    return smaller(plane, heads - 1);
}

bool grid_pattern_runs(GridJob *job, const Pattern *p, int64_t i, PatternRow *row)
{
    row->count = 0;
    if (i < 0 || i >= pattern_queries(p))
        return true;
    pattern_row(p, head_of(job, p), i, row);
    if (row->failed)
        atomic_store(&job->failed, true);
    return !row->failed;
}

static void count_dense(const GridJob *job, int64_t row, GridCell *cells)
{
    for (int64_t c = 0; c < job->grid->cols; c++)
        count_cell(&cells[c], (int64_t)grid_cell_area(job->grid, row, c), 0);
}

/* What the rows of a band counted, into its cells; the counts are zero again. */
static void settle_counts(const GridJob *job, GridWorker *w, GridCell *cells)
{
    for (int64_t c = 0; c < job->grid->cols; c++)
        if (w->counts[c]) {
            count_cell(&cells[c], w->counts[c], w->bits[c]);
            w->counts[c] = 0;
            w->bits[c] = 0;
        }
}

void grid_count_band(GridJob *job, int64_t row, GridWorker *w)
{
    GridCell *cells = job->grid->cells + row * job->grid->cols;
    Region    band = grid_cell_region(job->grid, row, 0);

    if (!job->support)
        count_dense(job, row, cells);
    if (!job->support && job->excluded >= 0)
        leave_out(job, w, cells, (double)(band.row1 - band.row0));
    for (int64_t r = band.row0; job->support && r < band.row1 && !grid_job_stopped(job); r++) {
        if (!grid_pattern_runs(job, job->support, grid_source_row(job, r), &w->row))
            return;
        for (int64_t k = 0; k < w->row.count; k++) {
            count_run(job, w, w->row.runs[k]);
            if (excluded_at(job, w->row.runs[k]) >= 0)
                leave_out(job, w, cells, 1);
        }
    }
    settle_counts(job, w, cells);
    for (int64_t r = band.row0; job->causes && r < band.row1 && !grid_job_stopped(job); r++) {
        if (!grid_pattern_runs(job, job->causes, grid_source_row(job, r), &w->row))
            return;
        for (int64_t k = 0; k < w->row.count; k++)
            cause_run(job, cells, w->row.runs[k]);
    }
}
