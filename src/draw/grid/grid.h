/* draw/grid/grid.h -- a view reduced to the cells that a screen or an image has.
 *
 * Reduction never loses a line: a cell that covers an allowed pair is never drawn as background. A
 * cell keeps count, sum, extremes and components, so another value can be shown without reading
 * the view again. `sampled` says that rows were sampled.
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

/* The number of a cell that is shown. */
typedef enum Pool {
    POOL_MAX, POOL_MEAN, POOL_MASS, POOL_COVER, POOL_PAIRS, POOL_MIN, POOL_COUNT
} Pool;

typedef struct GridCell {
    double  count;  /* supported (allowed) entries in the cell */
    double  sum;    /* of their values */
    float   max, min;     /* over supported entries; 0 when there is none */
    float   extreme;      /* the value with the largest magnitude, with its sign */
    uint8_t components;   /* OR over the entries */
    uint8_t cause;        /* the component bit of most entries; 0: no bits. An entry with several
                             has the first of: global > random > strided > block > window > bucket >
                             cluster > other. Equal counts: the first of these */
    uint8_t rare;         /* the first of these bits in the other entries; 0: none */
    int32_t category;     /* majority, for bucket-like kinds; -1: none */
    float   purity;       /* share of the majority, of categories or of causes */
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
    int64_t   excluded;       /* the column of cells that is only the excluded one; -1: none */
    bool      sampled;        /* not every entry was read */
    double    sampled_share;  /* share of rows read, 1 when not sampled */
    struct Grid *entries;     /* owned; the region with an entry a cell, if that was asked for and
                                 this grid has fewer cells; NULL: not */
} Grid;

typedef struct GridRequest {
    const View *view;
    const View *minus;         /* values are view - minus, support is the union of both; may be
                                  NULL */
    const Pattern *components; /* colours by cause when given; the support of a view that has
                                  none; may be NULL */
    int64_t     plane;
    Region      region;        /* in displayed order; all zero: the whole view */
    int64_t     rows, cols;    /* at most this many cells; fewer when the region is smaller */
    const int32_t *row_order, *col_order; /* NULL, or a permutation to show rows/cols in */
    /* A column whose values do not count: neither in cells of several columns nor in ranges. A
     * cell of that column alone keeps its value, even outside the range. */
    bool        excludes;
    int64_t     excluded;
    /* Values also entry by entry, unless they are many: what follows from them (scales of colours)
     * is then the same whatever cells there are. */
    bool        keeps_entries;
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
/* Component bits that a legend must explain: the colours where each cell is one entry, else all
 * bits of the cells. Entries without a bit count as COMPONENT_OTHER. */
uint8_t grid_causes(const Grid *grid);

const char *pool_name(Pool pool);
bool        pool_parse(const char *name, Pool *out, Error *err);
/* max for weights, cover for patterns, min for hops */
Pool        pool_default(ViewKind kind);
/* max (the largest magnitude, signed, where the region has negative values), mean over allowed
 * entries, mass per row, share of allowed entries, number of allowed entries ("count"), min. */
double      grid_value(const Grid *grid, int64_t row, int64_t col, Pool pool);

typedef enum Scale { SCALE_LINEAR, SCALE_LOG, SCALE_ROW, SCALE_COUNT } Scale;
#define SCALE_DECADES 4 /* of a logarithmic scale, below the largest size */
const char *scale_name(Scale scale);
bool        scale_parse(const char *name, Scale *out, Error *err);

/* Scaled place of a cell's value in [lo, hi], 0..1; NaN for an odd cell. lo == hi: the range of
 * the grid. Cover has a fixed scale: 1e-4 is 0. */
double grid_unit(const Grid *grid, int64_t row, int64_t col, Pool pool, Scale scale, double lo,
                 double hi);
/* The level of such a place, 1..levels-1; 0 is left for cells where nothing is allowed. */
int    grid_unit_level(double unit, int levels);

#endif
