/* draw/grid/job.h -- the work of one reduction; private to this folder.
 *
 * A job passes twice over the bands of source rows behind each row of cells. The first pass counts
 * allowed entries from the pattern's runs (O(runs), exact). The second reads values, of all rows
 * or of an even sample. A band is one work item, so the result does not depend on the number of
 * threads.
 */
#ifndef DRAW_GRID_JOB_H
#define DRAW_GRID_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"
#include "draw/grid/grid.h"

#define GRID_CHUNK 4096 /* values read at once */

/* What a value means for a cell. */
typedef enum GridMode {
    GRID_PATTERN,  /* allowed cells come from runs; no value is read */
    GRID_MASK,     /* a value other than 0 is an allowed cell */
    GRID_CATEGORY, /* a value is a category; negative is none */
    GRID_HOPS,     /* a value is a hop count; negative is none, and not allowed */
    GRID_VALUES,
} GridMode;

#define GRID_CAUSES 8
extern const uint8_t grid_causes_by_rarity[GRID_CAUSES]; /* component bits, rarest first */

typedef struct GridTally { /* how often a category occurs in a cell */
    int32_t cell, category; /* cell -1: free slot */
    int64_t count;
} GridTally;

typedef struct GridWorker {
    PatternRow row;
    float      values[GRID_CHUNK], minus[GRID_CHUNK];
    double    *read;    /* owned; per cell of the band, values read */
    int64_t   *counts;  /* owned; [GRID_CAUSES][cells of the band], allowed entries by cause, rarest
                           first; zero between bands */
    uint8_t   *bits;    /* owned; their component bits */
    unsigned   causes;  /* bit k: counts[k] is in use */
    GridTally *tallies; /* owned; open addressing */
    int64_t    tally_capacity, tally_used;
    int64_t    odd;
    double     left_out; /* entries of the excluded column in cells of several */
} GridWorker;

typedef struct GridJob {
    const GridRequest *request;
    Grid              *grid;
    GridMode           mode;
    const Pattern     *support; /* NULL: every entry */
    const Pattern     *causes;  /* the pattern of the bits if not the support; or NULL */
    int64_t            view_cols;
    int64_t            plane, minus_plane; /* below the number of planes */
    int64_t           *edges;    /* owned; cols + 1 displayed columns relative to the region */
    int32_t           *cell_at;  /* owned; cell of each of these columns */
    int32_t           *col_cell; /* owned; cell of a source column or -1; with col_order only */
    GridWorker        *workers;  /* owned */
    int64_t            excluded; /* source column that its cell leaves out; -1: none */
    int64_t            excluded_cell;
    double             share;    /* of the rows to read */
    atomic_bool        cancelled, failed;
} GridJob;

bool grid_job_stopped(GridJob *job); /* also polls the caller's flag */
/* Pass 1 and pass 2 on the cells of grid row `row`. */
void grid_count_band(GridJob *job, int64_t row, GridWorker *w);
void grid_read_band(GridJob *job, int64_t row, GridWorker *w);
/* Pass 2 of a view that reads several rows at once: the bands [GRID_GROUP group, ..). */
#define GRID_GROUP 8
bool grid_reads_groups(const GridJob *job);
void grid_read_group(GridJob *job, int64_t group, GridWorker *w);

/* ---- of both passes ------------------------------------------------------------ */

/* The row of the view that is displayed there; -1: none. */
int64_t grid_source_row(const GridJob *job, int64_t displayed);
/* The runs of source row i; none outside the pattern. False: out of memory, and the job failed. */
bool    grid_pattern_runs(GridJob *job, const Pattern *p, int64_t i, PatternRow *row);
/* Moves the counts of a band into its cells and zeroes them. Those of a second pattern give the
 * cells causes only. */
void    grid_settle_counts(const GridJob *job, GridWorker *w, GridCell *cells, bool causes_only);
/* Counts a category of a cell; the cells get their majorities, and the counts are zeroed. */
void    grid_tally(GridJob *job, GridWorker *w, int64_t cell, int32_t category, int64_t count);
void    grid_tally_settle(GridWorker *w, GridCell *cells);

/* ceil(a / b) for positive numbers; a 32-bit division is several times faster and nearly always
 * enough. */
static inline int64_t grid_divide_up(int64_t a, int64_t b)
{
    int64_t sum = a + b - 1;

    return sum <= (int64_t)UINT32_MAX ? (int64_t)((uint32_t)sum / (uint32_t)b) : sum / b;
}

/* The part of a run from column lo to before hi; count 0: nothing. */
static inline PatternRun grid_part_of_run(PatternRun run, int64_t lo, int64_t hi)
{
    int64_t skip, end;

    if (run.start >= lo && run.start + (run.count - 1) * run.step < hi)
        return run;
    skip = run.start >= lo ? 0 : grid_divide_up(lo - run.start, run.step);
    end = run.start >= hi ? 0 : min_i64(run.count, grid_divide_up(hi - run.start, run.step));
    run.count = end > skip ? end - skip : 0;
    run.start += skip * run.step;
    return run;
}

/* The part inside the region, in region columns; count 0: nothing. */
static inline PatternRun grid_run_inside(const GridJob *job, PatternRun run)
{
    run = grid_part_of_run(run, job->grid->region.col0, job->grid->region.col1);
    run.start -= job->grid->region.col0;
    return run;
}

/* The band's counts for entries with these bits: those of the rarest. */
static inline int64_t *grid_counts_of(const GridJob *job, GridWorker *w, uint8_t bits)
{
    int at = 0;

    while (at < GRID_CAUSES - 1 && !(bits & grid_causes_by_rarity[at]))
        at++;
    w->causes |= 1u << at;
    return w->counts + at * job->grid->cols;
}

/* Place of the excluded column in a run; -1: it is not there. */
static inline int64_t grid_excluded_at(const GridJob *job, PatternRun run)
{
    int64_t from = job->excluded - run.start;

    return job->excluded < 0 || from < 0 || from % run.step || from / run.step >= run.count
               ? -1
               : from / run.step;
}

#endif
