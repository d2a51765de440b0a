/* grid_value.c -- from a cell to a number, from a number to a level.
 *
 * Cover is always logarithmic: 1e-4 of a cell is the lowest step and a full
 * cell the highest, because linear steps show nothing of a thin line in a
 * large cell.  The logarithmic scale of values spans four decades too.
 */
#include "draw/grid/grid.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "draw/grid/job.h"

#define DECADES 4.0

static const char *const pool_names[POOL_COUNT] = {
    [POOL_MAX] = "max", [POOL_MEAN] = "mean", [POOL_MASS] = "mass", [POOL_COVER] = "cover",
    [POOL_PAIRS] = "count", [POOL_MIN] = "min",
};
static const char *const scale_names[SCALE_COUNT] = {
    [SCALE_LINEAR] = "linear", [SCALE_LOG] = "log", [SCALE_ROW] = "row",
};

const char *pool_name(Pool pool)
{
    return pool >= 0 && pool < POOL_COUNT ? pool_names[pool] : "?";
}

const char *scale_name(Scale scale)
{
    return scale >= 0 && scale < SCALE_COUNT ? scale_names[scale] : "?";
}

static int name_find(const char *const *names, int count, const char *name)
{
    for (int k = 0; k < count; k++)
        if (strcmp(names[k], name) == 0)
            return k;
    return -1;
}

bool pool_parse(const char *name, Pool *out, Error *err)
{
    int at = name_find(pool_names, POOL_COUNT, name);

    if (at < 0)
        return error_set(err, ERR_USAGE,
                         "there is no pooling '%.40s'; choose max, mean, mass, cover, count or "
                         "min",
                         name);
    *out = (Pool)at;
    return true;
}

bool scale_parse(const char *name, Scale *out, Error *err)
{
    int at = name_find(scale_names, SCALE_COUNT, name);

    if (at < 0)
        return error_set(err, ERR_USAGE, "there is no scale '%.40s'; choose linear, log or row",
                         name);
    *out = (Scale)at;
    return true;
}

Pool pool_default(ViewKind kind)
{
    if (kind == VIEW_HOPS)
        return POOL_MIN;
    return kind == VIEW_PATTERN || kind == VIEW_COMPONENTS || kind == VIEW_MEMBERSHIP
               ? POOL_COVER
               : POOL_MAX;
}

double grid_value_of(const GridCell *cell, double height, double width, Pool pool, bool negative)
{
    switch (pool) {
    case POOL_MEAN:
        return cell->count > 0 ? cell->sum / cell->count : 0;
    case POOL_MASS:
        return cell->sum / height;
    case POOL_COVER:
        return cell->count / (height * width);
    case POOL_PAIRS:
        return cell->count;
    case POOL_MIN:
        return (double)cell->min;
    default:
        return (double)(negative ? cell->extreme : cell->max);
    }
}

double grid_value(const Grid *grid, int64_t row, int64_t col, Pool pool)
{
    const GridCell *cell = &grid->cells[row * grid->cols + col];
    Region          area = { 0 };

    if (pool == POOL_MASS || pool == POOL_COVER)
        area = grid_cell_region(grid, row, col);
    return grid_value_of(cell, (double)(area.row1 - area.row0), (double)(area.col1 - area.col0),
                         pool, grid->value_min < 0);
}

/* -1..1: sign and logarithmic size, 0 at peak / 10^DECADES and below. */
static double log_place(double value, double peak)
{
    double size = fabs(value) > 0 && peak > 0 ? 1 + log10(fabs(value) / peak) / DECADES : 0;

    size = size > 0 ? fmin(size, 1) : 0;
    return value < 0 ? -size : size;
}

static double scaled(double value, double lo, double hi, Scale scale)
{
    double peak = fmax(fabs(lo), fabs(hi));

    if (scale == SCALE_LOG && lo >= 0)
        return log_place(value, hi);
    if (scale == SCALE_LOG)
        return 0.5 + 0.5 * log_place(value, peak);
    return hi > lo ? (value - lo) / (hi - lo) : 1;
}

double grid_unit(const Grid *grid, int64_t row, int64_t col, Pool pool, Scale scale, double lo,
                 double hi)
{
    const GridCell *cell = &grid->cells[row * grid->cols + col];
    double          value = grid_value(grid, row, col, pool);
    double          peak = grid->row_peak[row * POOL_COUNT + pool];

    if (cell->odd)
        return (double)NAN;
    if (pool == POOL_COVER)
        return log_place(value, 1);
    if (!(hi > lo)) {
        lo = fmin(grid->pool_lo[pool], 0);
        hi = grid->pool_hi[pool];
    }
    if (scale == SCALE_ROW) {
        hi = peak;
        lo = lo < 0 ? -peak : 0;
        scale = SCALE_LINEAR;
    }
    return fmin(fmax(scaled(value, lo, hi, scale), 0), 1);
}

int grid_unit_level(double unit, int levels)
{
    if (isnan(unit))
        return levels > 1 ? levels - 1 : 0;
    return levels > 2 ? 1 + (int)lround(unit * (levels - 2)) : 1;
}

int grid_level(const Grid *grid, int64_t row, int64_t col, Pool pool, Scale scale, int levels)
{
    if (!grid->cells[row * grid->cols + col].any)
        return 0;
    return grid_unit_level(grid_unit(grid, row, col, pool, scale, 0, 0), levels);
}
