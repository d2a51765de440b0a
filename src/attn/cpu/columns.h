/* attn/cpu/columns.h -- vectors that many rows are compared with, and the error bound of a
 * comparison in float.
 *
 * Products x . y are computed in float first, a tile at a time.  With u = 2^-24 the error of
 * a product of d terms, of vectors that may themselves be rounded, is less than
 *
 *     b = (d + 8) u |x| |y|        (and d 2^-148 where it underflows),
 *
 * whatever the order of the sum.  So the order of two products in float is right when they
 * are more than 2b apart; closer products are computed again in double, in index order.
 * Decisions are therefore those of double.
 */
#ifndef ATTN_CPU_COLUMNS_H
#define ATTN_CPU_COLUMNS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "attn/cpu/cpu.h"

#define LENGTH_LEAST 1e-12   /* least divisor of a cosine */
#define COLUMNS_LARGEST 1e30 /* with larger margins, or NaN, everything is decided in double */

typedef struct Columns {
    int64_t slices, parts, d;
    int64_t count, padded; /* of a part; padded: a multiple of TILE_KEYS */
    float  *panel;   /* [slices * parts][padded / TILE_KEYS][d][TILE_KEYS] */
    double *strip;   /* [slices * parts][padded / LANES][d][LANES], for Kernel.product64 */
    double *length;  /* [slices * parts][padded] */
    double *longest; /* [slices * parts] */
} Columns;

/* Scores s [TILE_ROWS][TILE_KEYS] of `rows` rows of x with a panel; keep as in Kernel.score;
 * padding [TILE_ROWS][d]: scratch for a tile of fewer rows; top [TILE_ROWS][LANES]. */
void columns_score(const float *x, int64_t ld, int64_t rows, int64_t d, const float *panel,
                   const uint64_t *keep, float *padding, float *s, int64_t lds, float *top);

/* Rows of y [h',parts*count,d], f32 or f64, as columns.  unit: panels hold y / |y|, and
 * `longest` is the length of these.  False (and the run failed) without memory. */
bool columns_new(Run *r, const Tensor *y, int64_t parts, bool unit, Columns *out);

/* The place of a head's part in the lists above. */
static inline int64_t columns_place(const Columns *c, int64_t head, int64_t heads, int64_t part)
{
    return head * c->slices / heads * c->parts + part;
}

static inline const float *columns_panel(const Columns *c, int64_t place, int64_t panel)
{
    return c->panel + (place * c->padded + panel * TILE_KEYS) * c->d;
}

static inline const double *columns_strip(const Columns *c, int64_t place, int64_t first)
{
    return c->strip + (place * c->padded + first) * c->d;
}

/* The bound b; infinite or NaN where float cannot decide. */
static inline double columns_margin(const Columns *c, double x, double y)
{
    return 1.01 * (double)(c->d + 8) * 0x1p-24 * x * y + (double)c->d * 0x1p-148;
}

/* An upper bound of |x|, close to it, from the sum of its squares in float. */
static inline double length_bound(double squares, int64_t d)
{
    return sqrt(squares * (1 + (double)d * 0x1p-22) + (double)d * 0x1p-148);
}

/* The same of x itself. */
double row_length_bound(const Kernel *kernel, const float *x, int64_t d);

#endif
