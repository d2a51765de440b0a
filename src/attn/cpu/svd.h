/* attn/cpu/svd.h -- singular values and orthonormal bases by LAPACK, in double.
 *
 * Matrices lie by columns, one after the other, and are overwritten.  A failure is
 * out of memory, a value that is not finite, or an iteration that does not converge.
 */
#ifndef ATTN_CPU_SVD_H
#define ATTN_CPU_SVD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* The min(rows, cols) singular values of a, largest first (divide and conquer, each right
 * to about 1e-15 of the largest). */
bool svd_values(double *a, int64_t rows, int64_t cols, double *values, Error *err);
/* The columns of a (rows >= cols) become an orthonormal basis of what they span. */
bool svd_orthonormal(double *a, int64_t rows, int64_t cols, Error *err);

#endif
