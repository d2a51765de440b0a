/* spectrum.c -- see spectrum.h. */
#include "attn/study/spectrum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
#include "core/rng.h"

#define OVERSAMPLE    16
#define BLOCK_NUMBERS (1 << 21) /* entries of a block of rows */
#define BLOCK_ROWS    256
#define CHUNK         36        /* directions a thread takes */
#define COLUMNS       512       /* columns a thread takes */
#define SPARSE        32        /* cells of the plane for each that a support allows, at least */
#define SPARSE_CELLS  (1 << 24) /* that are held */

bool spectrum_is_exact(const View *view, const SpectrumWay *way)
{
    int64_t most = way->exact ? way->exact : SPECTRUM_EXACT;

    return view_rows(view) <= most && view_cols(view) <= most;
}

int64_t spectrum_count(const View *view, const SpectrumWay *way)
{
    int64_t all = min_i64(view_rows(view), view_cols(view));

    return spectrum_is_exact(view, way) ? all : min_i64(all, way->rank ? way->rank : SPECTRUM_RANK);
}

/* The factorisation of one plane; matrices of directions are column major. */
typedef struct Finder {
    const View        *view;
    const SpectrumWay *way;
    const ViewSpread  *spread; /* the plane is multiplied as this; NULL: as it is */
    const View        *dense;  /* read in blocks: the view, or what is spread */
    int64_t            plane, rows, cols, directions, block;
    int64_t            width;  /* columns of `dense` */
    float             *line;   /* [workers][cols] */
    double            *part;   /* [block][width], rows one after the other */
    int64_t           *end;    /* [block]: behind the last column that is not 0 */
    int64_t            reach;  /* the largest of them */
    double            *square; /* [block]: sum of the squares of a row */
    double            *v, *w;  /* [directions][cols] */
    double            *left, *right; /* [directions][width]: v and w of what is spread */
    double            *t;      /* [directions][block] */
    double            *y;      /* [directions][rows]: A V */
    int64_t            first, count; /* rows in `part` */
    bool               last;   /* the pass that keeps A V */
    bool               squares; /* are asked for */
    /* The plane, or the rest of what is spread, held if few cells; offset NULL: not held. */
    int64_t           *offset; /* [rows + 1] */
    int32_t           *key;    /* [offset[rows]] */
    float             *value;
    atomic_bool        lacks;  /* a row of the support could not be had */
} Finder;

static bool spectrum_cancelled(const Finder *f)
{
    return f->way->cancel && atomic_load(f->way->cancel);
}

static bool spectrum_goes_on(const Finder *f, Error *err)
{
    return !spectrum_cancelled(f) ||
           error_set(err, ERR_CANCELLED, "singular values: interrupted");
}

/* Of a row as it is after spreading, in `line`. */
static double spread_squares(const Finder *f, int64_t item, float *line)
{
    const double *part = f->part + item * f->width;
    int64_t       i = f->first + item;
    double        sum = 0;

    memset(line, 0, (size_t)f->cols * sizeof(*line));
    for (int64_t c = 0; c < f->end[item]; c++)
        for (int64_t x = 0; x < f->spread->size; x++)
            line[c * f->spread->stride + x] += (float)part[c];
    for (int64_t x = f->offset[i]; x < f->offset[i + 1]; x++)
        line[f->key[x]] += f->value[x];
    for (int64_t j = 0; j < f->cols; j++)
        sum += (double)line[j] * (double)line[j];
    return sum;
}

static void spectrum_read_row(void *context, int64_t item, int worker)
{
    Finder *f = context;
    float  *line = f->line + worker * f->cols;
    double *part = f->part + item * f->width, sum = 0;
    int64_t end = f->width;

    view_read(f->dense, f->plane, f->first + item, 0, f->width, 1, line);
    while (end > 0 && line[end - 1] == 0)
        end--;
    for (int64_t j = 0; j < f->width; j++)
        part[j] = (double)line[j];
    for (int64_t j = 0; j < end && f->squares; j++)
        sum += part[j] * part[j];
    f->end[item] = end;
    f->square[item] = f->spread && f->squares ? spread_squares(f, item, line) : sum;
}

static bool read_rows(Finder *f, int64_t first, double *energy, Error *err)
{
    if (!spectrum_goes_on(f, err))
        return false;
    f->first = first;
    f->count = min_i64(f->block, f->rows - first);
    f->reach = 1;
    f->squares = energy != NULL;
    threads_run(f->way->threads, f->count, spectrum_read_row, f);
    for (int64_t i = 0; i < f->count; i++) {
        f->reach = max_i64(f->reach, f->end[i]);
        if (energy)
            *energy += f->square[i];
    }
    return true;
}

/* ---- few cells ---------------------------------------------------------------- */

static const View *few_cells(const Finder *f)
{
    return f->spread ? f->spread->rest : f->view;
}

/* Cells of each row into f->offset[1..]; false: there are more than `most`, a row could not be
 * had, or the way is cancelled. */
static bool count_rows(Finder *f, int64_t most)
{
    PatternRow row = { 0 };
    bool       fits = true;

    f->offset[0] = 0;
    for (int64_t i = 0; i < f->rows && fits; i++) {
        pattern_row(few_cells(f)->support, f->plane, i, &row);
        f->offset[i + 1] = f->offset[i] + pattern_row_cells(&row);
        fits = !row.failed && f->offset[i + 1] <= most && !spectrum_cancelled(f);
    }
    pattern_row_free(&row);
    return fits;
}

static void spectrum_take_row(void *context, int64_t i, int worker)
{
    Finder    *f = context;
    float     *line = f->line + worker * f->cols;
    PatternRow row = { 0 };
    int64_t    at = f->offset[i];

    if (spectrum_cancelled(f))
        return;
    view_read(few_cells(f), f->plane, i, 0, f->cols, 1, line);
    pattern_row(few_cells(f)->support, f->plane, i, &row);
    if (row.failed)
        atomic_store(&f->lacks, true);
    for (int64_t x = 0; x < row.count; x++)
        for (int64_t c = 0; c < row.runs[x].count && at < f->offset[i + 1]; c++, at++) {
            f->key[at] = (int32_t)(row.runs[x].start + c * row.runs[x].step);
            f->value[at] = line[f->key[at]];
        }
    pattern_row_free(&row);
}

static void sparse_close(Finder *f)
{
    free(f->offset);
    free(f->key);
    free(f->value);
    f->offset = NULL;
    f->key = NULL;
    f->value = NULL;
}

/* Holds the plane, or the rest of what is spread, if few of its cells are allowed. */
static void sparse_open(Finder *f)
{
    int64_t     most = min_i64(SPARSE_CELLS, f->rows * f->cols / SPARSE);
    const View *few = few_cells(f);

    if (!few->support || few->tensor.data)
        return;
    f->offset = malloc(((size_t)f->rows + 1) * sizeof(*f->offset));
    if (f->offset && count_rows(f, most)) {
        f->key = malloc((size_t)(f->offset[f->rows] + 1) * sizeof(*f->key));
        f->value = malloc((size_t)(f->offset[f->rows] + 1) * sizeof(*f->value));
    }
    if (f->key && f->value)
        threads_run(f->way->threads, f->rows, spectrum_take_row, f);
    if (!f->key || !f->value || atomic_load(&f->lacks))
        sparse_close(f);
}

/* t[i] += A v, of rows [first, first + count) */
static void sparse_ahead(const Finder *f, int64_t first, int64_t count, const double *v, double *t)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;

        for (int64_t x = f->offset[first + i]; x < f->offset[first + i + 1]; x++)
            sum += (double)f->value[x] * v[f->key[x]];
        t[i] += sum;
    }
}

/* w += A^T t */
static void sparse_back(const Finder *f, int64_t first, int64_t count, const double *t, double *w)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t x = f->offset[first + i]; x < f->offset[first + i + 1]; x++)
            w[f->key[x]] += (double)f->value[x] * t[i];
}

/* One direction: T = A V into Y; W += A^T T. */
static void apply_sparse(void *context, int64_t item, int worker)
{
    const Finder *f = context;
    double       *y = f->y + item * f->rows;

    (void)worker;
    if (spectrum_cancelled(f))
        return;
    memset(y, 0, (size_t)f->rows * sizeof(*y));
    sparse_ahead(f, 0, f->rows, f->v + item * f->cols, y);
    if (!f->last)
        sparse_back(f, 0, f->rows, y, f->w + item * f->cols);
}

static bool sparse_pass(Finder *f, double *energy, Error *err)
{
    threads_run(f->way->threads, f->directions, apply_sparse, f);
    if (!spectrum_goes_on(f, err)) /* what was read or multiplied is not all */
        return false;
    for (int64_t x = 0; energy && x < f->offset[f->rows]; x++)
        *energy += (double)f->value[x] * (double)f->value[x];
    return true;
}

/* ---- blocks of rows -------------------------------------------------------------- */

/* T = A_block V of some directions, into Y in the last pass; W += A_block^T T of held cells. */
static void apply_chunk(void *context, int64_t item, int worker)
{
    Finder *f = context;
    int64_t at = item * CHUNK, some = min_i64(CHUNK, f->directions - at);
    double *t = f->last ? f->y + at * f->rows + f->first : f->t + at * f->block;
    double *v = (f->spread ? f->left : f->v) + at * f->width;
    int64_t ld = f->last ? f->rows : f->block;

    (void)worker;
    /* by rows: T^T = V^T A_block^T */
    cpu_dgemm((WideMatrix){ v, f->width, false }, (WideMatrix){ f->part, f->width, true }, some,
              f->count, f->reach, 1, 0, t, ld);
    for (int64_t x = 0; f->spread && x < some; x++) {
        sparse_ahead(f, f->first, f->count, f->v + (at + x) * f->cols, t + x * ld);
        if (!f->last)
            sparse_back(f, f->first, f->count, t + x * ld, f->w + (at + x) * f->cols);
    }
}

/* W += A_block^T T of some columns. */
static void apply_columns(void *context, int64_t item, int worker)
{
    Finder *f = context;
    int64_t at = item * COLUMNS, some = min_i64(COLUMNS, f->reach - at);
    double *w = f->spread ? f->right : f->w;

    (void)worker;
    /* by rows: W^T += T^T A_block */
    cpu_dgemm((WideMatrix){ f->t, f->block, false }, (WideMatrix){ f->part + at, f->width, false },
              f->directions, some, f->count, 1, 1, w + at, f->width);
}

/* What a column that is spread multiplies: the sum of its directions. */
static void gather_direction(void *context, int64_t item, int worker)
{
    Finder       *f = context;
    const double *v = f->v + item * f->cols;

    (void)worker;
    for (int64_t c = 0; c < f->width; c++) {
        double sum = 0;

        for (int64_t x = 0; x < f->spread->size; x++)
            sum += v[c * f->spread->stride + x];
        f->left[item * f->width + c] = sum;
        f->right[item * f->width + c] = 0;
    }
}

static void spread_direction(void *context, int64_t item, int worker)
{
    Finder *f = context;
    double *w = f->w + item * f->cols;

    (void)worker;
    for (int64_t c = 0; c < f->width; c++)
        for (int64_t x = 0; x < f->spread->size; x++)
            w[c * f->spread->stride + x] += f->right[item * f->width + c];
}

static bool block_passes(Finder *f, double *energy, Error *err)
{
    if (!blas_ready(threads_count(f->way->threads), err))
        return false;
    for (int64_t first = 0; first < f->rows; first += f->block) {
        if (!read_rows(f, first, energy, err))
            return false;
        threads_run(f->way->threads, (f->directions + CHUNK - 1) / CHUNK, apply_chunk, f);
        if (!f->last)
            threads_run(f->way->threads, (f->reach + COLUMNS - 1) / COLUMNS, apply_columns, f);
    }
    return true;
}

static bool spectrum_pass(Finder *f, double *energy, Error *err)
{
    bool ok;

    if (energy)
        *energy = 0;
    if (f->offset && !f->spread)
        return sparse_pass(f, energy, err);
    if (f->spread)
        threads_run(f->way->threads, f->directions, gather_direction, f);
    ok = block_passes(f, energy, err);
    if (ok && f->spread && !f->last)
        threads_run(f->way->threads, f->directions, spread_direction, f);
    return ok;
}

/* V = orth(A^T A V) */
static bool spectrum_turn(Finder *f, Error *err)
{
    double *old = f->v;

    memset(f->w, 0, (size_t)(f->directions * f->cols) * sizeof(double));
    if (!spectrum_pass(f, NULL, err))
        return false;
    f->v = f->w;
    f->w = old;
    return svd_orthonormal(f->v, f->cols, f->directions, err);
}

static bool find(Finder *f, double *values, int64_t count, double *energy, Error *err)
{
    Rng     rng = rng_named(f->way->seed, "spectrum");
    double *all = malloc((size_t)f->directions * sizeof(*all));
    bool    ok = all || error_set(err, ERR_NOMEM, "singular values: out of memory");

    for (int64_t i = 0; i < f->directions * f->cols; i++)
        f->v[i] = rng_normal(&rng);
    ok = ok && svd_orthonormal(f->v, f->cols, f->directions, err) && spectrum_turn(f, err) &&
         spectrum_turn(f, err);
    f->last = true;
    ok = ok && spectrum_pass(f, energy, err) && svd_values(f->y, f->rows, f->directions, all, err);
    if (ok)
        memcpy(values, all, (size_t)count * sizeof(*values));
    free(all);
    return ok;
}

static double *numbers(int64_t a, int64_t b)
{
    return malloc((size_t)a * (size_t)b * sizeof(double));
}

/* What is read in blocks: the view, or what is spread if few cells are the rest. */
static void choose_dense(Finder *f)
{
    f->spread = f->view->spread;
    sparse_open(f);
    if (f->spread && !f->offset)
        f->spread = NULL;
    if (!f->spread)
        return;
    f->dense = f->spread->narrow;
    f->width = view_cols(f->dense);
}

static bool finder_open(Finder *f, bool whole, Error *err)
{
    int64_t workers = threads_count(f->way->threads);

    f->block = whole ? f->rows : min_i64(BLOCK_ROWS, BLOCK_NUMBERS / f->cols + 1);
    f->line = malloc((size_t)workers * (size_t)f->cols * sizeof(float));
    if (f->line && !whole)
        choose_dense(f);
    f->part = numbers(f->block, f->width);
    f->square = numbers(f->block, 1);
    f->end = malloc((size_t)f->block * sizeof(*f->end));
    if (!whole) {
        f->v = numbers(f->directions, f->cols);
        f->w = numbers(f->directions, f->cols);
        f->t = numbers(f->directions, f->block);
        f->y = numbers(f->directions, f->rows);
        f->left = f->spread ? numbers(f->directions, f->width) : NULL;
        f->right = f->spread ? numbers(f->directions, f->width) : NULL;
    }
    return (f->line && f->part && f->square && f->end &&
            (whole || (f->v && f->w && f->t && f->y)) && (!f->spread || (f->left && f->right))) ||
           error_set(err, ERR_NOMEM, "singular values of %lld x %lld: out of memory",
                     (long long)f->rows, (long long)f->cols);
}

static void finder_close(Finder *f)
{
    free(f->line);
    free(f->part);
    free(f->square);
    free(f->end);
    free(f->v);
    free(f->w);
    free(f->t);
    free(f->y);
    free(f->left);
    free(f->right);
    sparse_close(f);
}

bool spectrum_make(const View *view, int64_t plane, const SpectrumWay *way, double *values,
                   double *energy, Error *err)
{
    Finder  f = { .view = view, .way = way, .plane = plane, .rows = view_rows(view),
                  .cols = view_cols(view), .dense = view, .width = view_cols(view) };
    bool    whole = spectrum_is_exact(view, way), ok;
    int64_t count = spectrum_count(view, way);

    *energy = 0;
    if (count < 1)
        return true;
    f.directions = min_i64(count + OVERSAMPLE, min_i64(f.rows, f.cols));
    ok = finder_open(&f, whole, err);
    if (ok && whole) /* by rows is the transpose by columns: of the same values */
        ok = read_rows(&f, 0, energy, err) && svd_values(f.part, f.cols, f.rows, values, err);
    else if (ok)
        ok = find(&f, values, count, energy, err);
    finder_close(&f);
    return ok;
}
