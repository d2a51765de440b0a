/* lua_tensor_product.c -- products of tensors in Lua.
 *
 * Pieces of both sides are widened to double, whatever they hold and however they lie, and OpenBLAS
 * multiplies them; sums are kept in double and rounded at the end.  Between two pieces one looks
 * whether anybody still waits.
 */
#include "script/tensor/lua_tensor_work.h"

#include <stdlib.h>
#include <string.h>

#include "attn/dense.h"

#define ROWS 256 /* of a piece of the left side, and of the result */
#define COLS 512
#define INNER 256
#define SPEED 8 /* steps of the product in the time of one of other loops */

typedef struct Product {
    TensorWork *w;
    int64_t     heads, n, m, inner;
    double     *left, *right, *sums; /* pieces */
} Product;

/* Axes of one head: rows and columns are the last two. */
static int64_t stride_of(const Tensor *t, int axis)
{
    return t->stride[t->rank - 2 + axis];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows [i, i + rows), columns [j, j + cols) of the head. */
static void widen(const Tensor *t, int64_t head, int64_t i, int64_t rows, int64_t j, int64_t cols,
                  double *to)
{
    int64_t from = (t->rank > 2 ? head * t->stride[0] : 0) + i * stride_of(t, 0);

    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < cols; x++)
            *to++ = element_number(t, from + y * stride_of(t, 0) + (j + x) * stride_of(t, 1));
}

static void put(const Product *p, int64_t head, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < cols; x++)
            element_set(&p->w->out, (head * p->n + i + y) * p->m + j + x, p->sums[y * cols + x]);
}

/* Rows and columns of the result from (i, j) on. */
static void multiply_piece(const Product *p, int64_t head, int64_t i, int64_t j)
{
    int64_t rows = least(ROWS, p->n - i), cols = least(COLS, p->m - j);

    for (int64_t x = 0; x < rows * cols; x++)
        p->sums[x] = 0;
    for (int64_t k = 0; k < p->inner && !tensor_work_over(p->w, 0); k += INNER) {
        int64_t depth = least(INNER, p->inner - k);

        widen(&p->w->a, head, i, rows, k, depth, p->left);
        widen(&p->w->b, head, k, depth, j, cols, p->right);
        dense_add_product(rows, cols, depth, p->left, p->right, p->sums);
    }
    put(p, head, i, rows, j, cols);
}

static void run_matmul(TensorWork *w)
{
    int     row = w->a.rank - 2;
    Product p = { .w = w, .heads = row ? w->a.shape[0] : 1, .n = w->a.shape[row],
                  .m = w->b.shape[row + 1], .inner = w->a.shape[row + 1] };

    p.left = malloc((ROWS * INNER + INNER * COLS + ROWS * COLS) * sizeof(double));
    if (!p.left) {
        error_set(&w->err, ERR_NOMEM, "matmul: not enough memory");
        return;
    }
    p.right = p.left + ROWS * INNER;
    p.sums = p.right + INNER * COLS;
    for (int64_t head = 0; head < p.heads; head++)
        for (int64_t i = 0; i < p.n; i += ROWS)
            for (int64_t j = 0; j < p.m && !tensor_work_over(w, 0); j += COLS)
                multiply_piece(&p, head, i, j);
    free(p.left);
}

/* [-0, +1, v] */
int tensor_matmul(lua_State *L)
{
    const Tensor *a = tensor_check(L, 1), *b = tensor_check(L, 2), *out;
    int           rank = a->rank;
    char          text[2][80];
    int64_t       shape[3];
    TensorWork   *w;
    double        steps;

    if ((rank != 2 && rank != 3) || b->rank != rank || a->shape[rank - 1] != b->shape[rank - 2] ||
        (rank == 3 && a->shape[0] != b->shape[0]))
        luaL_error(L, "matmul: expected [n,k] and [k,m] or [h,n,k] and [h,k,m], got %s and %s",
                   tensor_shape_text(a, text[0], sizeof(text[0])),
                   tensor_shape_text(b, text[1], sizeof(text[1])));
    memcpy(shape, a->shape, sizeof(shape[0]) * (size_t)rank);
    shape[rank - 1] = b->shape[rank - 1];
    lua_settop(L, 2);
    out = tensor_push(L, tensor_result_dtype(a, b), rank, shape);
    steps = (double)tensor_count(out) * (double)a->shape[rank - 1];
    script_charge(L, 2 * steps);
    w = tensor_work_push(L);
    *w = (TensorWork){ .run = run_matmul, .a = *a, .b = *b, .out = *out, .first = 3, .count = 1,
                       .err = ERROR_INIT };
    return tensor_work_run(L, steps / SPEED, "a product of tensors");
}
