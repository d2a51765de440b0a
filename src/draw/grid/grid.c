/* grid.c -- a view reduced to cells, and the values and levels of cells; see grid.h.
 *
 * Memory is O(cells + columns); nothing of rows x cols of the view is stored. Cover is always
 * logarithmic, from 1e-4 of a cell to a full one: linear steps hide a thin line in a large cell.
 * The logarithmic scale of values spans four decades too.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "draw/grid/grid.h"
#include "draw/grid/job.h"

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
                         "there is no pooling '%.40s'; choose max, mean, mass, cover, count or min",
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

/* grid_value of a cell of so many rows and columns. */
static double grid_value_of(const GridCell *cell, double height, double width, Pool pool,
                            bool negative)
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

/* Sign and logarithmic size, -1..1; 0 at peak / 10^SCALE_DECADES and below. */
static double log_place(double value, double peak)
{
    double size = fabs(value) > 0 && peak > 0 ? 1 + log10(fabs(value) / peak) / SCALE_DECADES : 0;

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

Region grid_cell_region(const Grid *grid, int64_t row, int64_t col)
{
    int64_t height = grid->region.row1 - grid->region.row0;
    int64_t width = grid->region.col1 - grid->region.col0;

    return (Region){ .row0 = grid->region.row0 + row * height / grid->rows,
                     .row1 = grid->region.row0 + (row + 1) * height / grid->rows,
                     .col0 = grid->region.col0 + col * width / grid->cols,
                     .col1 = grid->region.col0 + (col + 1) * width / grid->cols };
}

double grid_cell_area(const Grid *grid, int64_t row, int64_t col)
{
    Region cell = grid_cell_region(grid, row, col);

    return (double)(cell.row1 - cell.row0) * (double)(cell.col1 - cell.col0);
}

uint8_t grid_causes(const Grid *grid)
{
    bool    single = grid->rows == grid->region.row1 - grid->region.row0 &&
                  grid->cols == grid->region.col1 - grid->region.col0;
    uint8_t bits = 0;

    for (int64_t c = 0; grid->cells && c < grid->rows * grid->cols; c++) {
        const GridCell *cell = &grid->cells[c];
        uint8_t         own = single ? cell->cause : cell->components;

        if (cell->any)
            bits |= own ? own : COMPONENT_OTHER;
    }
    return bits;
}

void grid_free(Grid *grid)
{
    free(grid->cells);
    free(grid->row_peak);
    if (grid->entries)
        grid_free(grid->entries);
    free(grid->entries);
    *grid = (Grid){ 0 };
}

bool grid_job_stopped(GridJob *job)
{
    const atomic_bool *cancel = job->request->cancel;

    if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
        atomic_store(&job->cancelled, true);
    return atomic_load_explicit(&job->cancelled, memory_order_relaxed) ||
           atomic_load_explicit(&job->failed, memory_order_relaxed);
}

/* ---- the request ------------------------------------------------------------- */

static int64_t clip_region(int64_t value, int64_t lo, int64_t hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

static Region region_of(const GridRequest *q)
{
    int64_t rows = view_rows(q->view), cols = view_cols(q->view);
    Region  r = q->region;

    if (r.row1 == 0 && r.col1 == 0)
        return (Region){ 0, rows, 0, cols };
    r.row0 = clip_region(r.row0, 0, rows);
    r.row1 = clip_region(r.row1, r.row0, rows);
    r.col0 = clip_region(r.col0, 0, cols);
    r.col1 = clip_region(r.col1, r.col0, cols);
    return r;
}

static GridMode grid_mode(const GridRequest *q, const Pattern *support)
{
    ViewKind kind = q->view->kind;

    if (q->minus)
        return GRID_VALUES;
    if (kind == VIEW_HOPS)
        return GRID_HOPS;
    if (kind == VIEW_BUCKETS || kind == VIEW_SCHEDULE)
        return GRID_CATEGORY;
    if (kind == VIEW_PATTERN || kind == VIEW_COMPONENTS || kind == VIEW_MEMBERSHIP)
        return support ? GRID_PATTERN : GRID_MASK;
    return GRID_VALUES;
}

static const Pattern *support_of(const View *view)
{
    return view->support ? view->support : view->shown;
}

/* The support of a request: the union of both sides of a difference. */
static bool find_support(GridJob *job, Arena *arena, Error *err)
{
    const GridRequest *q = job->request;
    const Pattern     *own = support_of(q->view) ? support_of(q->view) : q->components;

    job->support = own;
    if (!q->minus || !own)
        return true;
    job->support = support_of(q->minus);
    if (!job->support || job->support == own)
        return true;
    job->support = pattern_union(arena, pattern_operand(own), pattern_operand(job->support));
    return job->support || error_set(err, ERR_NOMEM, "drawing a difference: out of memory");
}

static bool check_request(const GridRequest *q, const Grid *g, Error *err)
{
    if (g->region.row1 <= g->region.row0 || g->region.col1 <= g->region.col0)
        return error_set(err, ERR_DATA, "view %s: the region to draw is empty", q->view->name);
    if (q->rows < 1 || q->cols < 1 || g->cols > INT32_MAX || g->rows > INT64_MAX / 64 / g->cols)
        return error_set(err, ERR_USAGE, "view %s: %lld x %lld cells cannot be drawn",
                         q->view->name, (long long)q->rows, (long long)q->cols);
    if (q->plane < 0 || (q->plane >= view_planes(q->view) && !view_shared(q->view)))
        return error_set(err, ERR_USAGE, "view %s has %lld planes (heads); %lld is not one",
                         q->view->name, (long long)view_planes(q->view), (long long)q->plane);
    if (q->minus && (view_rows(q->minus) != view_rows(q->view) ||
                     view_cols(q->minus) != view_cols(q->view)))
        return error_set(err, ERR_DATA, "views %s and %s differ in shape: no difference to draw",
                         q->view->name, q->minus->name);
    return true;
}

static bool job_columns(GridJob *job)
{
    const GridRequest *q = job->request;
    Grid              *g = job->grid;
    int64_t            width = g->region.col1 - g->region.col0;

    job->edges = calloc((size_t)g->cols + 1, sizeof(*job->edges));
    for (int64_t c = 0; job->edges && c <= g->cols; c++)
        job->edges[c] = c * width / g->cols;
    job->cell_at = malloc((size_t)width * sizeof(*job->cell_at));
    for (int64_t c = 0; job->edges && job->cell_at && c < g->cols; c++)
        for (int64_t k = job->edges[c]; k < job->edges[c + 1]; k++)
            job->cell_at[k] = (int32_t)c;
    if (!job->edges || !job->cell_at || !q->col_order)
        return job->edges && job->cell_at;
    job->col_cell = malloc((size_t)job->view_cols * sizeof(*job->col_cell));
    for (int64_t j = 0; job->col_cell && j < job->view_cols; j++)
        job->col_cell[j] = -1;
    for (int64_t c = 0; job->col_cell && c < g->cols; c++)
        for (int64_t k = job->edges[c]; k < job->edges[c + 1]; k++) {
            int64_t j = q->col_order[g->region.col0 + k];

            if (j >= 0 && j < job->view_cols)
                job->col_cell[j] = (int32_t)c;
        }
    return job->col_cell != NULL;
}

/* Finds the excluded column: alone in its cells, or to be left out of them. */
static void job_excluded(GridJob *job)
{
    const GridRequest *q = job->request;
    Grid              *g = job->grid;
    int64_t            at = q->excluded - g->region.col0, width = g->region.col1 - g->region.col0;
    int64_t            cell = -1;

    job->excluded = g->excluded = -1;
    if (!q->excludes || job->mode != GRID_VALUES || q->excluded < 0 ||
        q->excluded >= job->view_cols)
        return;
    if (job->col_cell)
        cell = job->col_cell[q->excluded];
    else if (at >= 0 && at < width)
        cell = ((at + 1) * g->cols - 1) / width;
    if (cell < 0)
        return;
    if (job->edges[cell + 1] - job->edges[cell] == 1) {
        g->excluded = cell;
        return;
    }
    job->excluded = q->excluded;
    job->excluded_cell = cell;
}

static bool job_memory(GridJob *job)
{
    Grid *g = job->grid;
    int   workers = threads_count(job->request->threads);

    g->cells = calloc((size_t)(g->rows * g->cols), sizeof(*g->cells));
    g->row_peak = calloc((size_t)g->rows * POOL_COUNT, sizeof(*g->row_peak));
    job->workers = calloc((size_t)workers, sizeof(*job->workers));
    for (int k = 0; job->workers && k < workers; k++) {
        GridWorker *w = &job->workers[k];

        w->read = calloc((size_t)g->cols, sizeof(*w->read));
        w->counts = calloc((size_t)g->cols * GRID_CAUSES, sizeof(*w->counts));
        w->bits = calloc((size_t)g->cols, sizeof(*w->bits));
        if (!w->read || !w->counts || !w->bits)
            return false;
    }
    for (int64_t c = 0; g->cells && c < g->rows * g->cols; c++)
        g->cells[c].category = -1;
    if (!g->cells || !g->row_peak || !job->workers || !job_columns(job))
        return false;
    job_excluded(job);
    return true;
}

static void job_free(GridJob *job)
{
    int workers = threads_count(job->request->threads);

    for (int k = 0; job->workers && k < workers; k++) {
        pattern_row_free(&job->workers[k].row);
        free(job->workers[k].read);
        free(job->workers[k].counts);
        free(job->workers[k].bits);
        free(job->workers[k].tallies);
    }
    free(job->workers);
    free(job->edges);
    free(job->cell_at);
    free(job->col_cell);
}

/* ---- the passes -------------------------------------------------------------- */

static void count_item(void *context, int64_t row, int worker)
{
    GridJob *job = context;

    if (!grid_job_stopped(job))
        grid_count_band(job, row, &job->workers[worker]);
}

static void read_item(void *context, int64_t row, int worker)
{
    GridJob *job = context;

    if (!grid_job_stopped(job))
        grid_read_band(job, row, &job->workers[worker]);
}

static void group_item(void *context, int64_t group, int worker)
{
    GridJob *job = context;

    if (!grid_job_stopped(job))
        grid_read_group(job, group, &job->workers[worker]);
}

static double count_cells(const GridJob *job)
{
    const Grid *g = job->grid;
    double      count = 0;

    for (int64_t c = 0; c < g->rows * g->cols; c++)
        count += g->cells[c].count;
    for (int k = 0; k < threads_count(job->request->threads); k++)
        count += job->workers[k].left_out;
    return count;
}

static double area_of(const Grid *g)
{
    return (double)(g->region.row1 - g->region.row0) * (double)(g->region.col1 - g->region.col0);
}

#define USUAL_COST 128 /* multiply-adds per entry that the budget assumes */

/* The budget stands for a time: fewer entries of a view that is slow to read. */
static double budget_of(const GridRequest *q)
{
    double cost = q->view->cost + (q->minus ? q->minus->cost : 0);

    return q->budget_entries / fmax(1, cost / USUAL_COST);
}

static void run_passes(GridJob *job)
{
    const GridRequest *q = job->request;
    Grid              *g = job->grid;

    job->share = 1;
    if (job->mode == GRID_PATTERN || job->mode == GRID_VALUES)
        threads_run(q->threads, g->rows, count_item, job);
    g->count = count_cells(job);
    if (job->mode == GRID_VALUES && q->budget_entries > 0 && g->count > budget_of(q)) {
        job->share = budget_of(q) / g->count;
        g->sampled = g->rows < g->region.row1 - g->region.row0;
    }
    if (job->mode == GRID_HOPS && q->budget_entries > 0 && area_of(g) > q->budget_entries) {
        job->share = q->budget_entries / area_of(g);
        g->sampled = g->rows < g->region.row1 - g->region.row0;
    }
    if (grid_reads_groups(job))
        threads_run(q->threads, (g->rows + GRID_GROUP - 1) / GRID_GROUP, group_item, job);
    else if (job->mode != GRID_PATTERN)
        threads_run(q->threads, g->rows, read_item, job);
    g->count = count_cells(job);
    g->sampled_share = g->sampled ? job->share : 1;
}

/* ---- the result -------------------------------------------------------------- */

static void finish_cell(const GridJob *job, GridCell *cell)
{
    if (job->mode == GRID_CATEGORY && cell->count > 0)
        cell->purity /= (float)cell->count;
    if ((job->mode == GRID_PATTERN || job->mode == GRID_MASK) && cell->any) {
        cell->sum = cell->count;
        cell->max = cell->min = 1;
    }
    if (job->mode != GRID_VALUES && job->mode != GRID_HOPS)
        cell->extreme = cell->max;
}

/* Cells without an entry have no value. */
static void pool_cell(Grid *g, int64_t row, int pool, double value, bool first)
{
    double *peak = &g->row_peak[row * POOL_COUNT + pool];

    g->pool_lo[pool] = first || value < g->pool_lo[pool] ? value : g->pool_lo[pool];
    g->pool_hi[pool] = first || value > g->pool_hi[pool] ? value : g->pool_hi[pool];
    *peak = fmax(*peak, fabs(value));
}

static void finish_pools(const GridJob *job)
{
    Grid *g = job->grid;
    bool  first = true;

    for (int64_t r = 0; r < g->rows; r++) {
        Region band = grid_cell_region(g, r, 0);
        double height = (double)(band.row1 - band.row0);

        for (int64_t c = 0; c < g->cols; c++) {
            const GridCell *cell = &g->cells[r * g->cols + c];
            double          width = (double)(job->edges[c + 1] - job->edges[c]);

            if (!cell->any || c == g->excluded)
                continue;
            for (int pool = 0; pool < POOL_COUNT; pool++)
                pool_cell(g, r, pool,
                          grid_value_of(cell, height, width, (Pool)pool, g->value_min < 0), first);
            first = false;
        }
    }
}

/* Marks the cells that hold one of the view's marks in a displayed row; columns in their own
 * order. */
static void mark_cells(GridJob *job, PatternRow *row)
{
    const GridRequest *q = job->request;
    const Pattern     *marks = q->view->marks->cells;
    Grid              *g = job->grid;
    Region             r = g->region;
    int64_t            plane = job->plane * pattern_heads(marks) / view_planes(q->view);

    for (int64_t i = r.row0; i < r.row1 && !row->failed; i++) {
        int64_t cell = ((i - r.row0 + 1) * g->rows - 1) / (r.row1 - r.row0);

        pattern_row(marks, plane, q->row_order ? q->row_order[i] : i, row);
        for (int64_t x = 0; x < row->count; x++)
            for (int64_t c = 0; c < row->runs[x].count; c++) {
                int64_t j = row->runs[x].start + c * row->runs[x].step - r.col0;

                if (j >= 0 && j < r.col1 - r.col0)
                    g->cells[cell * g->cols + ((j + 1) * g->cols - 1) / (r.col1 - r.col0)].marked =
                        true;
            }
    }
    if (row->failed)
        atomic_store(&job->failed, true);
}

static void finish_grid(GridJob *job)
{
    Grid *g = job->grid;
    bool  first = true;
    int   workers = threads_count(job->request->threads);

    for (int64_t c = 0; c < g->rows * g->cols; c++) {
        GridCell *cell = &g->cells[c];

        finish_cell(job, cell);
        if (!cell->any || c % g->cols == g->excluded)
            continue;
        g->value_min = first || (double)cell->min < g->value_min ? (double)cell->min : g->value_min;
        g->value_max = first || (double)cell->max > g->value_max ? (double)cell->max : g->value_max;
        first = false;
    }
    for (int k = 0; k < workers; k++)
        g->odd_count += job->workers[k].odd;
    finish_pools(job);
}

/* A page, too, shows larger ones reduced. */
#define ENTRIES_MOST 65536

static bool wants_entries(const GridJob *job)
{
    const Grid *g = job->grid;

    return job->request->keeps_entries && job->mode == GRID_VALUES &&
           area_of(g) <= ENTRIES_MOST &&
           (g->rows < g->region.row1 - g->region.row0 || g->cols < g->region.col1 - g->region.col0);
}

static bool keep_entries(const GridJob *job, Error *err)
{
    Grid       *g = job->grid;
    GridRequest each = *job->request;

    each.keeps_entries = false;
    each.budget_entries = 0;
    each.rows = g->region.row1 - g->region.row0;
    each.cols = g->region.col1 - g->region.col0;
    g->entries = calloc(1, sizeof(*g->entries));
    if (!g->entries)
        return error_set(err, ERR_NOMEM, "drawing %s: out of memory", each.view->name);
    return grid_reduce(&each, g->entries, err);
}

bool grid_reduce(const GridRequest *q, Grid *out, Error *err)
{
    GridJob job = { .request = q, .grid = out, .view_cols = view_cols(q->view) };
    Arena  *arena = arena_new();
    bool    ok;

    *out = (Grid){ .region = region_of(q), .excluded = -1 };
    out->rows = clip_region(q->rows, 1, out->region.row1 - out->region.row0);
    out->cols = clip_region(q->cols, 1, out->region.col1 - out->region.col0);
    ok = arena ? check_request(q, out, err) && find_support(&job, arena, err)
               : error_set(err, ERR_NOMEM, "drawing %s: out of memory", q->view->name);
    if (!ok)
        goto out;
    job.mode = grid_mode(q, job.support);
    job.causes = q->components && q->components != job.support ? q->components : NULL;
    job.plane = clip_region(q->plane, 0, view_planes(q->view) - 1);
    job.minus_plane = q->minus ? clip_region(q->plane, 0, view_planes(q->minus) - 1) : 0;
    ok = job_memory(&job);
    if (ok)
        run_passes(&job);
    if (ok && q->view->marks && q->view->marks->cells && !q->col_order) {
        PatternRow row = { 0 };

        mark_cells(&job, &row);
        pattern_row_free(&row);
    }
    if (!ok || atomic_load(&job.failed))
        ok = error_set(err, ERR_NOMEM, "drawing %s in %lld x %lld cells: out of memory",
                       q->view->name, (long long)out->rows, (long long)out->cols);
    else if (atomic_load(&job.cancelled))
        ok = error_set(err, ERR_CANCELLED, "drawing %s was interrupted", q->view->name);
    else
        finish_grid(&job);
    ok = ok && (!wants_entries(&job) || keep_entries(&job, err));
out:
    job_free(&job);
    arena_free(arena);
    if (!ok)
        grid_free(out);
    return ok;
}
