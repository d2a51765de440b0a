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
#define CHUNK         32        /* directions a thread takes */
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
    int64_t            plane, rows, cols, directions, block;
    float             *line;   /* [workers][cols] */
    double            *part;   /* [block][cols], rows one after the other */
    double            *v, *w;  /* [directions][cols] */
    double            *t;      /* [directions][block] */
    double            *y;      /* [directions][rows]: A V */
    int64_t            first, count; /* rows in `part` */
    bool               last;   /* the pass that keeps A V */
    /* The plane of a support with few cells, held; offset NULL: it is read in blocks of rows. */
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

static void spectrum_read_row(void *context, int64_t item, int worker)
{
    Finder *f = context;
    float  *line = f->line + worker * f->cols;

    view_read(f->view, f->plane, f->first + item, 0, f->cols, 1, line);
    for (int64_t j = 0; j < f->cols; j++)
        f->part[item * f->cols + j] = (double)line[j];
}

static bool read_rows(Finder *f, int64_t first, double *energy, Error *err)
{
    if (!spectrum_goes_on(f, err))
        return false;
    f->first = first;
    f->count = min_i64(f->block, f->rows - first);
    threads_run(f->way->threads, f->count, spectrum_read_row, f);
    for (int64_t i = 0; energy && i < f->count * f->cols; i++)
        *energy += f->part[i] * f->part[i];
    return true;
}

/* ---- few cells ---------------------------------------------------------------- */

/* Cells of each row into f->offset[1..]; false: there are more than `most`, a row could not be
 * had, or the way is cancelled. */
static bool count_rows(Finder *f, int64_t most)
{
    PatternRow row = { 0 };
    bool       few = true;

    f->offset[0] = 0;
    for (int64_t i = 0; i < f->rows && few; i++) {
        pattern_row(f->view->support, f->plane, i, &row);
        f->offset[i + 1] = f->offset[i] + pattern_row_cells(&row);
        few = !row.failed && f->offset[i + 1] <= most && !spectrum_cancelled(f);
    }
    pattern_row_free(&row);
    return few;
}

static void spectrum_take_row(void *context, int64_t i, int worker)
{
    Finder    *f = context;
    float     *line = f->line + worker * f->cols;
    PatternRow row = { 0 };
    int64_t    at = f->offset[i];

    if (spectrum_cancelled(f))
        return;
    view_read(f->view, f->plane, i, 0, f->cols, 1, line);
    pattern_row(f->view->support, f->plane, i, &row);
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

/* Holds the plane if few of its cells are allowed; else it is read in blocks. */
static void sparse_open(Finder *f)
{
    int64_t most = min_i64(SPARSE_CELLS, f->rows * f->cols / SPARSE);

    if (!f->view->support || f->view->tensor.data)
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

/* One direction: T = A V; W += A^T T, or T into Y. */
static void apply_sparse(void *context, int64_t item, int worker)
{
    const Finder *f = context;
    const double *v = f->v + item * f->cols;
    double       *w = f->w + item * f->cols, *y = f->y + item * f->rows;

    (void)worker;
    if (spectrum_cancelled(f))
        return;
    for (int64_t i = 0; i < f->rows; i++) {
        double t = 0;

        for (int64_t x = f->offset[i]; x < f->offset[i + 1]; x++)
            t += (double)f->value[x] * v[f->key[x]];
        y[i] = t;
        for (int64_t x = f->offset[i]; x < f->offset[i + 1] && !f->last; x++)
            w[f->key[x]] += (double)f->value[x] * t;
    }
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

/* Some directions: T = A_block V; W += A_block^T T, or T into Y. */
static void apply_chunk(void *context, int64_t item, int worker)
{
    Finder *f = context;
    int64_t at = item * CHUNK, some = min_i64(CHUNK, f->directions - at);
    double *t = f->last ? f->y + at * f->rows + f->first : f->t + at * f->block;
    int64_t ld = f->last ? f->rows : f->block;

    (void)worker;
    /* by rows: T^T = V^T A_block^T, W^T += T^T A_block */
    cpu_dgemm((WideMatrix){ f->v + at * f->cols, f->cols, false },
              (WideMatrix){ f->part, f->cols, true }, some, f->count, f->cols, 1, 0, t, ld);
    if (!f->last)
        cpu_dgemm((WideMatrix){ t, ld, false }, (WideMatrix){ f->part, f->cols, false }, some,
                  f->cols, f->count, 1, 1, f->w + at * f->cols, f->cols);
}

static bool spectrum_pass(Finder *f, double *energy, Error *err)
{
    if (energy)
        *energy = 0;
    if (f->offset)
        return sparse_pass(f, energy, err);
    if (!blas_ready(threads_count(f->way->threads), err))
        return false;
    for (int64_t first = 0; first < f->rows; first += f->block) {
        if (!read_rows(f, first, energy, err))
            return false;
        threads_run(f->way->threads, (f->directions + CHUNK - 1) / CHUNK, apply_chunk, f);
    }
    return true;
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

static bool finder_open(Finder *f, bool whole, Error *err)
{
    f->block = whole ? f->rows : min_i64(BLOCK_ROWS, BLOCK_NUMBERS / f->cols + 1);
    f->part = numbers(f->block, f->cols);
    f->line = malloc((size_t)threads_count(f->way->threads) * (size_t)f->cols * sizeof(float));
    if (!whole) {
        f->v = numbers(f->directions, f->cols);
        f->w = numbers(f->directions, f->cols);
        f->t = numbers(f->directions, f->block);
        f->y = numbers(f->directions, f->rows);
    }
    return (f->part && f->line && (whole || (f->v && f->w && f->t && f->y))) ||
           error_set(err, ERR_NOMEM, "singular values of %lld x %lld: out of memory",
                     (long long)f->rows, (long long)f->cols);
}

static void finder_close(Finder *f)
{
    free(f->part);
    free(f->line);
    free(f->v);
    free(f->w);
    free(f->t);
    free(f->y);
    sparse_close(f);
}

bool spectrum_make(const View *view, int64_t plane, const SpectrumWay *way, double *values,
                   double *energy, Error *err)
{
    Finder  f = { .view = view, .way = way, .plane = plane, .rows = view_rows(view),
                  .cols = view_cols(view) };
    bool    whole = spectrum_is_exact(view, way), ok;
    int64_t count = spectrum_count(view, way);

    *energy = 0;
    if (count < 1)
        return true;
    f.directions = min_i64(count + OVERSAMPLE, min_i64(f.rows, f.cols));
    ok = finder_open(&f, whole, err);
    if (ok && !whole)
        sparse_open(&f);
    if (ok && whole) /* by rows is the transpose by columns: of the same values */
        ok = read_rows(&f, 0, energy, err) && svd_values(f.part, f.cols, f.rows, values, err);
    else if (ok)
        ok = find(&f, values, count, energy, err);
    finder_close(&f);
    return ok;
}
