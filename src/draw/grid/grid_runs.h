/* draw/grid/grid_runs.h -- runs of a source row and the cells they lie in; private to the grid files.
 *
 * Cell c of C covers the displayed columns [floor(c W / C), floor((c+1) W / C))
 * of a region W wide, so column j lies in cell floor(((j+1) C - 1) / W).  Runs
 * are split at these edges; a run costs O(cells it touches), never O(keys).
 * With a column order the cells of a run are scattered, and each key is
 * looked up.
 */
#ifndef DRAW_GRID_GRID_RUNS_H
#define DRAW_GRID_GRID_RUNS_H

#include "draw/grid/job.h"

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ceil(a / b); 32-bit division is several times faster and nearly always enough. */
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
    end = run.start >= hi ? 0 : smaller(run.count, divide_up(hi - run.start, run.step));
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

static inline void count_cell(GridCell *cell, int64_t count, uint8_t bits)
{
    cell->count += (double)count;
    cell->components |= bits;
    cell->any = true;
}

/* Place of the excluded column in a run; -1: it is not there. */
static inline int64_t excluded_at(const GridJob *job, PatternRun run)
{
    int64_t from = job->excluded - run.start;

    return job->excluded < 0 || from < 0 || from % run.step || from / run.step >= run.count
               ? -1
               : from / run.step;
}

/* Source row of a displayed one; -1: the view has none there. */
int64_t grid_source_row(const GridJob *job, int64_t displayed);
/* The runs of source row i; none outside of the pattern.  False: no memory, the job failed. */
bool grid_pattern_runs(GridJob *job, const Pattern *p, int64_t i, PatternRow *row);

#endif
