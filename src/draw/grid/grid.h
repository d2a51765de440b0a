/* draw/grid/grid.h -- a view reduced to the cells a screen or an image has.
 *
 * Reduction never loses a line: a cell that covers any allowed pair is never
 * drawn as background.  Per cell all of any / count / area / max / sum /
 * components are kept, so the shown value can be changed without reading the
 * view again.  When rows were sampled instead of read all, `sampled` says so.
 */
#ifndef DRAW_GRID_GRID_H
#define DRAW_GRID_GRID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attn/run/view.h"
#include "core/threads.h"

typedef struct Region { /* half-open: rows [row0,row1), cols [col0,col1) */
    int64_t row0, row1, col0, col1;
} Region;

/* Which number of a cell is shown. */
typedef enum Pool {
    POOL_MAX, POOL_MEAN, POOL_MASS, POOL_COVER, POOL_PAIRS, POOL_MIN, POOL_COUNT
} Pool;

typedef struct GridCell {
    double  count;  /* supported (allowed) entries in the cell */
    double  sum;    /* of their values */
    float   max, min;     /* over supported entries; 0 when there is none */
    float   extreme;      /* the value with the largest magnitude, with its sign */
    uint8_t components;   /* OR over the entries */
    uint8_t rarest;       /* the one component bit to colour by: random > global > strided >
                             block > window > other */
    int32_t category;     /* majority, for bucket-like kinds; -1: none */
    float   purity;       /* share of the majority */
    bool    any;          /* some entry is supported */
    bool    marked;       /* some entry is one of the view's marks */
    bool    odd;          /* some entry is NaN or infinite */
} GridCell;

typedef struct Grid {
    Region    region;
    int64_t   rows, cols;     /* cells */
    GridCell *cells;          /* owned; row-major */
    double    count;          /* supported entries in the region (exact) */
    double    value_min, value_max; /* over the supported entries; 0, 0 when nothing was read */
    double   *row_peak;       /* owned; [rows][POOL_COUNT], largest magnitude in a row of cells */
    double    pool_lo[POOL_COUNT], pool_hi[POOL_COUNT]; /* over the cells */
    int64_t   odd_count;
    int64_t   excluded;       /* column of cells that is the excluded one alone; -1: none */
    bool      sampled;        /* not every entry was read */
    double    sampled_share;  /* share of rows read, 1 when not sampled */
} Grid;

typedef struct GridRequest {
    const View *view;
    const View *minus;         /* values are view - minus, support is either's; may be NULL */
    const Pattern *components; /* colours by cause when given; also the support of a view
                                  without its own; may be NULL */
    int64_t     plane;
    Region      region;        /* in displayed order; all zero: the whole view */
    int64_t     rows, cols;    /* at most this many cells; fewer when the region is smaller */
    const int32_t *row_order, *col_order; /* NULL, or a permutation to show rows/cols in */
    /* A column whose values do not count: not in cells of several columns, not in ranges.  A
     * cell of that column alone has its value, whatever the range is. */
    bool        excludes;
    int64_t     excluded;
    double      budget_entries;  /* 0: exact.  Else sample rows when more entries would be read;
                                    fewer of a view whose entries cost much (View.cost) */
    Threads    *threads;
    const atomic_bool *cancel;
} GridRequest;

/* False: out of memory, or cancelled (ERR_CANCELLED). */
bool   grid_reduce(const GridRequest *request, Grid *out, Error *err);
void   grid_free(Grid *grid);
Region grid_cell_region(const Grid *grid, int64_t row, int64_t col); /* entries it covers */
double grid_cell_area(const Grid *grid, int64_t row, int64_t col);
/* Component bits a legend must explain: the colours, where each cell is one entry, else
 * all that the cells hold.  Entries without a bit count as COMPONENT_OTHER. */
uint8_t grid_causes(const Grid *grid);

const char *pool_name(Pool pool);
bool        pool_parse(const char *name, Pool *out, Error *err);
/* max for weights, cover for patterns, min for hops */
Pool        pool_default(ViewKind kind);
/* max (the largest magnitude with its sign where the region has negative
 * values), mean over allowed entries, mass per row, share of allowed entries,
 * number of allowed entries (named "count"), min. */
double      grid_value(const Grid *grid, int64_t row, int64_t col, Pool pool);

typedef enum Scale { SCALE_LINEAR, SCALE_LOG, SCALE_ROW, SCALE_COUNT } Scale;
const char *scale_name(Scale scale);
bool        scale_parse(const char *name, Scale *out, Error *err);

/* Place of a cell's value in [lo, hi] after scaling, 0..1; NaN for an odd cell.
 * lo == hi: the range of the grid.  Cover has its own fixed scale: 1e-4 is 0. */
double grid_unit(const Grid *grid, int64_t row, int64_t col, Pool pool, Scale scale, double lo,
                 double hi);
/* The level of such a place: 1..levels-1. */
int    grid_unit_level(double unit, int levels);

/* Level of a cell in 0..levels-1.  0 only for "nothing allowed"; any allowed
 * cell is at least 1 however small its value. */
int grid_level(const Grid *grid, int64_t row, int64_t col, Pool pool, Scale scale, int levels);

#endif
