/* core/tensor.h -- a typed, strided view of numbers; it never owns them.
 *
 * A Tensor is passed by value.  rank 0 is a scalar; unused extents are 1.
 * Strides count elements, not bytes.  A Tensor whose data is NULL is "not
 * given" or "failed"; every op accepts it and does nothing.
 */
#ifndef CORE_TENSOR_H
#define CORE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"

#define TENSOR_MAX_RANK 4

typedef enum DType { DT_F32, DT_F64, DT_I32, DT_I64, DT_U8 } DType;

typedef struct Tensor {
    DType   dtype;
    int     rank;
    int64_t shape[TENSOR_MAX_RANK];
    int64_t stride[TENSOR_MAX_RANK]; /* in elements */
    void   *data;                    /* borrowed */
} Tensor;

int64_t     dtype_size(DType dtype); /* bytes */
const char *dtype_name(DType dtype); /* "f32"; static */

/* A contiguous row-major view of `data`. */
Tensor tensor_of(DType dtype, int rank, const int64_t *shape, void *data);
/* Allocates the bytes, not zeroed; data is NULL when the arena refuses. */
Tensor tensor_new(Arena *arena, DType dtype, int rank, const int64_t *shape);

int64_t tensor_count(const Tensor *t); /* elements */
int64_t tensor_bytes(const Tensor *t);
bool    tensor_given(const Tensor *t); /* data is not NULL */
bool    tensor_contiguous(const Tensor *t);
bool    tensor_same_shape(const Tensor *a, const Tensor *b);

/* The contiguous t seen with leading extents of 1 added or removed. */
Tensor tensor_with_rank(Tensor t, int rank);

/* Slice `head` of a [h', ...] tensor used by `heads` heads.  A tensor with
 * fewer heads than `heads` is shared by groups (grouped-query attention, or
 * h' = 1: shared by all): head t reads slice floor(t * h' / heads). */
void *tensor_head(const Tensor *t, int64_t head, int64_t heads);

/* Plane `at` of t [n,a,b], as [1,a,b]; borrows. */
Tensor tensor_plane(Tensor t, int64_t at);

/* Rows [first, first+count) of the second axis of every slice of t [h,n,...]; borrows. */
Tensor tensor_rows(Tensor t, int64_t first, int64_t count);

/* Columns [first, first+count) of the last axis of t [h,n,w]; borrows. */
Tensor tensor_columns(Tensor t, int64_t first, int64_t count);

/* t [h,a,b] seen as [h,b,a]; borrows. */
Tensor tensor_turned(Tensor t);

/* t [1,n,heads*d] seen as its heads [heads,n,d], whose rows lie apart; borrows. */
Tensor tensor_split(Tensor t, int64_t heads);

/* Element at a multi-index as double, whatever the dtype. */
double tensor_get(const Tensor *t, const int64_t *index);

/* Copies src into a contiguous tensor of another dtype; data is NULL when the
 * arena refuses.  Returns src itself when nothing would change.  To integers only what
 * tensor_not_whole finds in their range. */
Tensor tensor_convert(Arena *arena, Tensor src, DType dtype);

/* The first entry, in row-major order, that is no whole number from lo to hi, and its
 * value; -1: none. */
int64_t tensor_not_whole(const Tensor *t, int64_t lo, int64_t hi, double *value);

/* The first entry of f32 or f64, in row-major order, outside [low, high] (NaN is); -1: none, or no
 * data. */
int64_t tensor_not_within(const Tensor *t, double low, double high);

/* The first entry, in row-major order, that is NaN or infinite; -1: none, or no data. */
int64_t tensor_not_finite(const Tensor *t);

/* u8 of the same shape: 1 where src is not zero (NaN is not zero either); data is NULL when the
 * arena refuses. */
Tensor tensor_nonzero(Arena *arena, Tensor src);

/* "[2,8,64]" into `text`; returns text. */
char *tensor_shape_text(const Tensor *t, char *text, size_t size);

static inline float *tensor_f32(const Tensor *t)
{
    return (float *)t->data;
}

static inline double *tensor_f64(const Tensor *t)
{
    return (double *)t->data;
}

static inline int32_t *tensor_i32(const Tensor *t)
{
    return (int32_t *)t->data;
}

static inline uint8_t *tensor_u8(const Tensor *t)
{
    return (uint8_t *)t->data;
}

/* Row `row` of the slice that `head` of `heads` reads: tensor_head. */
static inline float *tensor_row_f32(const Tensor *t, int64_t head, int64_t heads, int64_t row)
{
    return (float *)tensor_head(t, head, heads) + row * t->stride[1];
}

static inline double *tensor_row_f64(const Tensor *t, int64_t head, int64_t heads, int64_t row)
{
    return (double *)tensor_head(t, head, heads) + row * t->stride[1];
}

/* Entry `at` of the data, of any type. */
static inline double tensor_element(const Tensor *t, int64_t at)
{
    switch (t->dtype) {
    case DT_F32: return (double)((const float *)t->data)[at];
    case DT_F64: return ((const double *)t->data)[at];
    case DT_I32: return ((const int32_t *)t->data)[at];
    case DT_I64: return (double)((const int64_t *)t->data)[at];
    case DT_U8: return ((const uint8_t *)t->data)[at];
    }
    return 0;
}

/* Entry `at` of f32 or f64 data. */
static inline double float_at(DType dtype, const void *data, int64_t at)
{
    return dtype == DT_F64 ? ((const double *)data)[at] : (double)((const float *)data)[at];
}

/* Entries [at, at + count) of f32 or f64 data, in double. */
static inline void floats_widen(DType dtype, const void *data, int64_t at, int64_t count,
                                double *to)
{
    if (dtype == DT_F64)
        memcpy(to, (const double *)data + at, (size_t)count * sizeof(*to));
    else
        for (int64_t c = 0; c < count; c++)
            to[c] = (double)((const float *)data)[at + c];
}

/* Entry c of row i of the slice that `head` of `heads` reads, f32 or f64. */
static inline double tensor_float(const Tensor *t, int64_t head, int64_t heads, int64_t i,
                                  int64_t c)
{
    return float_at(t->dtype, tensor_head(t, head, heads), i * t->stride[1] + c);
}

/* ---- extents --------------------------------------------------------------------- */

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
