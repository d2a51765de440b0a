/* implicit.c -- see weights.h. */
#include "attn/ops/weights.h"

#include <math.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/ops/dense.h"
#include "attn/run.h"

#define PIECE 512 /* entries of a factor's row, widened at once */
#define CELLS 256 /* cells of a row summed at once */

/* Entries [from, from + count) of row i of the left factor. */
static void widen_left(const Implicit *w, int64_t head, int64_t i, int64_t from, int64_t count,
                       double *out)
{
    floats_widen(w->left.dtype, tensor_head(&w->left, head, w->heads),
                 i * w->left.stride[1] + from, count, out);
}

/* sums[c] += left_i . right_j over the entries [from, from + count), j = start + c step */
static void add_products(const Implicit *w, int64_t head, int64_t i, int64_t from, int64_t count,
                         PatternRun keys, double *sums)
{
    const Kernel *kernel = kernel_at(0);
    const void   *right = tensor_head(&w->right, head, w->heads);
    double        left[PIECE];

    widen_left(w, head, i, from, count, left);
    for (int64_t c = 0; c < keys.count; c++) {
        int64_t at = (keys.start + c * keys.step) * w->right.stride[1] + from;

        sums[c] += w->right.dtype == DT_F64
                       ? kernel->dot_double((const double *)right + at, left, count)
                       : kernel->dot_wide((const float *)right + at, left, count);
    }
}

double implicit_dot(const float *x, const double *z, int64_t count)
{
    return kernel_at(0)->dot_wide(x, z, count);
}

static double faded(const Implicit *w, int64_t head, int64_t i, int64_t j)
{
    int64_t n = w->gates.shape[1], a = head * n + i, b = head * n + j;

    if (w->closed[a] != w->closed[b])
        return 0;
    return (1 - tensor_f64(&w->gates)[b]) * exp(w->fade[a] - w->fade[b]);
}

static double banded(const Implicit *w, int64_t head, int64_t i, int64_t j)
{
    int64_t      size = w->band.shape[1], at = j - i + size / 2;
    const float *band = tensor_head(&w->band, head, w->heads);

    return at >= 0 && at < size ? (double)band[at] : 0;
}

/* Turns the products of row i with keys into weights. */
static void finish_cells(const Implicit *w, int64_t head, int64_t i, PatternRun keys, double *out)
{
    int64_t n = w->left.shape[1];
    double  divisor = w->divisor.data ? tensor_f64(&w->divisor)[head * n + i] : 1;

    for (int64_t c = 0; c < keys.count; c++) {
        int64_t j = keys.start + c * keys.step;

        out[c] /= divisor;
        if (w->gates.data)
            out[c] *= faded(w, head, i, j);
        if (w->band.data)
            out[c] += banded(w, head, i, j);
    }
}

static void implicit_read_cells(const Implicit *w, int64_t head, int64_t i, PatternRun keys,
                                double *out)
{
    int64_t r = w->left.shape[2];

    memset(out, 0, (size_t)keys.count * sizeof(*out));
    for (int64_t from = 0; from < r; from += PIECE)
        add_products(w, head, i, from, r - from < PIECE ? r - from : PIECE, keys, out);
    finish_cells(w, head, i, keys, out);
}

double implicit_cell(const Implicit *w, int64_t head, int64_t i, int64_t j)
{
    double value;

    implicit_read_cells(w, head, i, (PatternRun){ .start = j, .count = 1, .step = 1 }, &value);
    return value;
}

static void implicit_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                  int64_t count, int64_t step, float *out)
{
    double cells[CELLS];

    for (int64_t done = 0; done < count; done += CELLS) {
        PatternRun keys = { .start = start + done * step, .step = step,
                            .count = count - done < CELLS ? count - done : CELLS };

        implicit_read_cells(view->context, head, i, keys, cells);
        for (int64_t c = 0; c < keys.count; c++)
            out[done + c] = (float)cells[c];
    }
}

/* ---- several rows at once ---------------------------------------------------- */

#define DEPTH 64 /* entries of the factors at once */

/* The factors of some rows and keys, in the order of Kernel.product64. */
typedef struct Tile {
    double left[VIEW_ROWS_MOST][DEPTH];
    double right[VIEW_KEYS_MOST * DEPTH];              /* strips [keys / LANES][depth][LANES] */
    double part[VIEW_ROWS_MOST][VIEW_KEYS_MOST];       /* products of these entries */
    double sum[VIEW_ROWS_MOST][VIEW_KEYS_MOST];
} Tile;

/* One strip: LANES rows of the right factor, or fewer and zeros, as columns. */
#define TURN_STRIP(name, type)                                                                 \
    static void name(const type *from, int64_t apart, int64_t there, int64_t depth, double *to) \
    {                                                                                          \
        for (int64_t t = 0; there == LANES && t < depth; t++)                                  \
            for (int c = 0; c < LANES; c++)                                                    \
                to[t * LANES + c] = (double)from[c * apart + t];                               \
        for (int64_t t = 0; there < LANES && t < depth; t++)                                   \
            for (int c = 0; c < LANES; c++)                                                    \
                to[t * LANES + c] = c < there ? (double)from[c * apart + t] : 0;               \
    }
TURN_STRIP(turn_floats, float)
TURN_STRIP(turn_doubles, double)

static void turn_keys(const Implicit *w, int64_t head, int64_t start, int64_t count, int64_t from,
                      int64_t depth, double *to)
{
    const void *right = tensor_head(&w->right, head, w->heads);
    int64_t     apart = w->right.stride[1];

    for (int64_t c = 0; c < count; c += LANES, to += depth * LANES) {
        int64_t there = count - c < LANES ? count - c : LANES, at = (start + c) * apart + from;

        if (w->right.dtype == DT_F64)
            turn_doubles((const double *)right + at, apart, there, depth, to);
        else
            turn_floats((const float *)right + at, apart, there, depth, to);
    }
}

static void implicit_add_tile(const Implicit *w, int64_t head, const int64_t *rows,
                              int64_t row_count,
                              int64_t start, int64_t count, int64_t from, Tile *tile)
{
    int64_t r = w->left.shape[2], depth = r - from < DEPTH ? r - from : DEPTH;

    for (int64_t x = 0; x < row_count; x++)
        widen_left(w, head, rows[x], from, depth, tile->left[x]);
    turn_keys(w, head, start, count, from, depth, tile->right);
    kernel_at(0)->product64(tile->left[0], DEPTH, row_count, depth, NULL, tile->right,
                            (count + LANES - 1) / LANES * LANES, tile->part[0], VIEW_KEYS_MOST);
    for (int64_t x = 0; x < row_count; x++)
        for (int64_t c = 0; c < count; c++)
            tile->sum[x][c] += tile->part[x][c];
}

static void read_weight_rows(const View *view, int64_t head, const int64_t *rows,
                             int64_t row_count, int64_t start, int64_t count, float *out)
{
    const Implicit *w = view->context;
    Tile            tile;

    memset(tile.sum, 0, sizeof(tile.sum));
    for (int64_t from = 0; from < w->left.shape[2]; from += DEPTH)
        implicit_add_tile(w, head, rows, row_count, start, count, from, &tile);
    for (int64_t x = 0; x < row_count; x++) {
        finish_cells(w, head, rows[x], (PatternRun){ .start = start, .count = count, .step = 1 },
                     tile.sum[x]);
        for (int64_t c = 0; c < count; c++)
            out[x * count + c] = (float)tile.sum[x][c];
    }
}

void implicit_connectivity(Run *r, const Pattern *cells)
{
    if (cells)
        view_reader(r, "connectivity", VIEW_PATTERN, DT_U8, NULL, NULL, cells);
}

static void sum_gates(Run *r, Implicit *w)
{
    int64_t n = w->gates.shape[1];

    w->fade = run_alloc(r, w->heads * n, sizeof(*w->fade));
    w->closed = run_alloc(r, w->heads * n, sizeof(*w->closed));
    for (int64_t x = 0; x < w->heads * n && !run_failed(r); x++) {
        double g = tensor_f64(&w->gates)[x];

        w->fade[x] = (x % n ? w->fade[x - 1] : 0) + (g > 0 ? log(g) : 0);
        w->closed[x] = (x % n ? w->closed[x - 1] : 0) + !(g > 0);
    }
}

View *implicit_product(Run *r, const char *name, Implicit w, ViewKind kind, const Pattern *cells)
{
    Implicit *kept = run_wants_views(r) ? run_alloc(r, 1, sizeof(*kept)) : NULL;
    View     *view;

    if (!kept || !cells)
        return NULL;
    *kept = w;
    kept->heads = r->h;
    if (w.gates.data)
        sum_gates(r, kept);
    view = view_reader(r, name, kind, DT_F32, implicit_read_weights, kept, cells);
    if (!view)
        return NULL;
    view->read_rows = read_weight_rows;
    view->cost = (w.right.dtype == DT_F64 ? IMPLICIT_WIDE_COST : 1) * (double)w.left.shape[2];
    return view;
}

View *implicit_weights(Run *r, Implicit w, ViewKind kind, const Pattern *cells)
{
    return implicit_product(r, "weights", w, kind, cells);
}

/* ---- parameters and factors ------------------------------------------------- */

void implicit_parameter(Run *r, const char *name, Tensor t, bool drawn, const char *rows,
                        const char *cols)
{
    int64_t size = t.shape[1] * t.shape[2];
    Tensor  all = t;

    if (drawn && t.data)
        run_origin(r, name, ORIGIN_DRAWN);
    if (!run_wants_views(r) || !t.data)
        return;
    if (t.shape[0] != r->h || t.stride[1] != t.shape[2]) {
        all = run_tensor3(r, DT_F32, r->h, t.shape[1], t.shape[2]);
        for (int64_t x = 0; x < r->h * t.shape[1] && !run_failed(r); x++)
            memcpy(tensor_f32(&all) + x * t.shape[2],
                   (float *)tensor_head(&t, x / t.shape[1], r->h) + x % t.shape[1] * t.stride[1],
                   (size_t)(size / t.shape[1]) * sizeof(float));
    }
    if (drawn)
        view_drawn(r, name, all);
    else
        view_tensor(r, name, VIEW_TENSOR, all, rows, cols);
}

View *implicit_factor(Run *r, const char *name, ViewKind kind, Tensor t, const char *rows,
                      const char *cols)
{
    int before = r->view_count;

    if (!run_wants_views(r) || !t.data)
        return NULL;
    view_tensor(r, name, kind, t.dtype == DT_F64 ? dense_rounded(r, t) : t, rows, cols);
    return r->view_count > before ? &r->views[before] : NULL;
}

const char *implicit_origin(Run *r)
{
    const char *text = run_failed(r) ? NULL
                                     : arena_printf(r->arena, "random seed %llu",
                                                    (unsigned long long)r->seed);

    if (!text)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
    return text;
}
