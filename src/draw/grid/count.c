/* count.c -- the entries of one band of source rows, counted by cause and by category; see job.h.
 *
 * Cell c of C covers the displayed columns [floor(c W / C), floor((c+1) W / C)) of a region W
 * wide, so column j lies in cell floor(((j+1) C - 1) / W). Runs are split at these edges: a run
 * costs O(cells it touches), never O(keys). With a column order the cells of a run are scattered,
 * and each key is looked up. The counts of a band stay in two arrays of the nearest cache and
 * reach its GridCells once.
 */
#include <stdlib.h>
#include <string.h>

#include "draw/figure/figure.h"
#include "draw/grid/job.h"

const uint8_t grid_causes_by_rarity[GRID_CAUSES] = {
    COMPONENT_GLOBAL, COMPONENT_RANDOM, COMPONENT_STRIDED, COMPONENT_BLOCK,
    COMPONENT_WINDOW, COMPONENT_BUCKET, COMPONENT_CLUSTER, COMPONENT_OTHER,
};

static void count_ordered(const GridJob *job, GridWorker *w, PatternRun run)
{
    int64_t *counts = grid_counts_of(job, w, run.bits);

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
    int64_t        end = run.start + run.count, *counts = grid_counts_of(job, w, run.bits);
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
    run = grid_run_inside(job, run);
    if (run.count > 0 && run.step == 1) {
        count_stretch(job, w, run);
        return;
    }
    counts = grid_counts_of(job, w, run.bits);
    for (int64_t k = 0, at = run.start, same; k < run.count; k += same, at += same * run.step) {
        int32_t cell = job->cell_at[at];

        /* Most steps are wider than a cell. */
        same = at + run.step >= job->edges[cell + 1]
                   ? 1
                   : min_i64(grid_divide_up(job->edges[cell + 1] - at, run.step), run.count - k);
        counts[cell] += same;
        w->bits[cell] |= run.bits;
    }
}

/* Source row of a displayed row; -1: the view has none. */
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
    return min_i64(plane, heads - 1);
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

static void count_dense(const GridJob *job, int64_t row, GridWorker *w)
{
    int64_t *counts = grid_counts_of(job, w, 0);

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

void grid_settle_counts(const GridJob *job, GridWorker *w, GridCell *cells, bool causes_only)
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
            if (cells && grid_excluded_at(job, w->row.runs[k]) >= 0)
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
    grid_settle_counts(job, w, cells, false);
    if (job->causes && count_rows(job, job->causes, band, w, NULL))
        grid_settle_counts(job, w, cells, true);
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

void grid_tally(GridJob *job, GridWorker *w, int64_t cell, int32_t category, int64_t count)
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
void grid_tally_settle(GridWorker *w, GridCell *cells)
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
