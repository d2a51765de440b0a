/* tensor.c -- see tensor.h. */
#include "core/tensor.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t     size;
} dtypes[] = {
    [DT_F32] = { "f32", 4 }, [DT_F64] = { "f64", 8 }, [DT_I32] = { "i32", 4 },
    [DT_I64] = { "i64", 8 }, [DT_U8] = { "u8", 1 },
};

int64_t dtype_size(DType dtype)
{
    return dtypes[dtype].size;
}

const char *dtype_name(DType dtype)
{
    return dtypes[dtype].name;
}

Tensor tensor_of(DType dtype, int rank, const int64_t *shape, void *data)
{
    Tensor  t = { .dtype = dtype, .rank = rank, .data = data };
    int64_t stride = 1;

    for (int i = TENSOR_MAX_RANK - 1; i >= 0; i--) {
        t.shape[i] = i < rank ? shape[i] : 1;
        t.stride[i] = stride;
        stride *= t.shape[i];
    }
    return t;
}

Tensor tensor_new(Arena *arena, DType dtype, int rank, const int64_t *shape)
{
    Tensor  t = tensor_of(dtype, rank, shape, NULL);
    int64_t count = 1;

    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
            count = -1;
    t.data = arena_alloc_data(arena, count, dtype_size(dtype));
    return t;
}

int64_t tensor_count(const Tensor *t)
{
    int64_t count = 1;

    for (int i = 0; i < t->rank; i++)
        count *= t->shape[i];
    return count;
}

int64_t tensor_bytes(const Tensor *t)
{
    return tensor_count(t) * dtype_size(t->dtype);
}

bool tensor_given(const Tensor *t)
{
    return t->data != NULL;
}

bool tensor_contiguous(const Tensor *t)
{
    int64_t stride = 1;

    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->stride[i] != stride)
            return false;
        stride *= t->shape[i];
    }
    return true;
}

bool tensor_same_shape(const Tensor *a, const Tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

Tensor tensor_with_rank(Tensor t, int rank)
{
    int64_t shape[TENSOR_MAX_RANK];

    for (int i = 0; i < rank; i++) {
        int from = i + t.rank - rank;
        shape[i] = from >= 0 ? t.shape[from] : 1;
    }
    return tensor_of(t.dtype, rank, shape, t.data);
}

void *tensor_head(const Tensor *t, int64_t head, int64_t heads)
{
    int64_t slice = head * t->shape[0] / heads;

    return (char *)t->data + slice * t->stride[0] * dtype_size(t->dtype);
}

Tensor tensor_plane(Tensor t, int64_t at)
{
    if (t.data)
        t.data = (char *)t.data + at * t.stride[0] * dtype_size(t.dtype);
    t.shape[0] = 1;
    return t;
}

Tensor tensor_rows(Tensor t, int64_t first, int64_t count)
{
    if (t.data)
        t.data = (char *)t.data + first * t.stride[1] * dtype_size(t.dtype);
    t.shape[1] = count;
    return t;
}

Tensor tensor_columns(Tensor t, int64_t first, int64_t count)
{
    if (t.data)
        t.data = (char *)t.data + first * t.stride[2] * dtype_size(t.dtype);
    t.shape[2] = count;
    return t;
}

Tensor tensor_turned(Tensor t)
{
    Tensor y = t;

    y.shape[1] = t.shape[2];
    y.shape[2] = t.shape[1];
    y.stride[1] = t.stride[2];
    y.stride[2] = t.stride[1];
    return y;
}

Tensor tensor_split(Tensor t, int64_t heads)
{
    t.shape[0] = heads;
    t.shape[2] /= heads;
    t.stride[0] = t.shape[2] * t.stride[2];
    return t;
}

static int64_t offset_of(const Tensor *t, const int64_t *index)
{
    int64_t at = 0;

    for (int i = 0; i < t->rank; i++)
        at += index[i] * t->stride[i];
    return at;
}

double tensor_get(const Tensor *t, const int64_t *index)
{
    return tensor_element(t, offset_of(t, index));
}

static int64_t exact_element(const Tensor *t, int64_t at)
{
    return t->dtype == DT_I64 ? ((const int64_t *)t->data)[at] : (int64_t)tensor_element(t, at);
}

/* Entry `from` of src, whole and in range where `to` holds whole numbers. */
static void store(Tensor *to, int64_t at, const Tensor *src, int64_t from)
{
    switch (to->dtype) {
    case DT_F32: ((float *)to->data)[at] = (float)tensor_element(src, from); break;
    case DT_F64: ((double *)to->data)[at] = tensor_element(src, from); break;
    case DT_I32: ((int32_t *)to->data)[at] = (int32_t)exact_element(src, from); break;
    case DT_I64: ((int64_t *)to->data)[at] = exact_element(src, from); break;
    case DT_U8: ((uint8_t *)to->data)[at] = (uint8_t)exact_element(src, from); break;
    }
}

static bool whole(const Tensor *t, int64_t at, int64_t lo, int64_t hi)
{
    double value = tensor_element(t, at);

    if (t->dtype == DT_I64)
        return ((const int64_t *)t->data)[at] >= lo && ((const int64_t *)t->data)[at] <= hi;
    return value >= (double)lo && value <= (double)hi && floor(value) >= value;
}

/* From the index to the next in row-major order. */
static void next_index(const Tensor *t, int64_t *index)
{
    for (int i = t->rank - 1; i >= 0 && ++index[i] == t->shape[i]; i--)
        index[i] = 0;
}

int64_t tensor_not_whole(const Tensor *t, int64_t lo, int64_t hi, double *value)
{
    int64_t count = tensor_count(t), index[TENSOR_MAX_RANK] = { 0 };

    for (int64_t n = 0; n < count; n++, next_index(t, index))
        if (!whole(t, offset_of(t, index), lo, hi)) {
            *value = tensor_element(t, offset_of(t, index));
            return n;
        }
    return -1;
}

/* Runs read whole inputs through this: loops of vectors, and a branch only after STRETCH bytes. */
#define STRETCH 256

typedef float   Floats __attribute__((vector_size(16)));
typedef int32_t FloatsFound __attribute__((vector_size(16)));
typedef double  Doubles __attribute__((vector_size(16)));
typedef int64_t DoublesFound __attribute__((vector_size(16)));

static bool floats_within(const float *x, float low, float high)
{
    Floats      least = { low, low, low, low }, most = { high, high, high, high }, now;
    FloatsFound within = { -1, -1, -1, -1 };

    for (size_t c = 0; c < STRETCH / sizeof(*x); c += 4) {
        memcpy(&now, x + c, sizeof(now));
        within &= (now >= least) & (now <= most);
    }
    return within[0] & within[1] & within[2] & within[3];
}

static bool doubles_within(const double *x, double low, double high)
{
    Doubles      least = { low, low }, most = { high, high }, now;
    DoublesFound within = { -1, -1 };

    for (size_t c = 0; c < STRETCH / sizeof(*x); c += 2) {
        memcpy(&now, x + c, sizeof(now));
        within &= (now >= least) & (now <= most);
    }
    return within[0] & within[1];
}

/* The largest float that is not above x. */
static float float_at_most(double x)
{
    float y = (float)x;

    return (double)y > x ? nextafterf(y, -INFINITY) : y;
}

static int64_t outside_in_line(const Tensor *t, double low, double high)
{
    const float  *x = t->data;
    const double *wide = t->data;
    int64_t       count = tensor_count(t), at = 0, step = STRETCH / dtype_size(t->dtype);
    float         least = -float_at_most(-low), most = float_at_most(high);

    if (t->dtype == DT_F32) {
        while (at + step <= count && floats_within(x + at, least, most))
            at += step;
        while (at < count && (double)x[at] >= low && (double)x[at] <= high)
            at++;
    } else {
        while (at + step <= count && doubles_within(wide + at, low, high))
            at += step;
        while (at < count && wide[at] >= low && wide[at] <= high)
            at++;
    }
    return at < count ? at : -1;
}

int64_t tensor_not_within(const Tensor *t, double low, double high)
{
    int64_t index[TENSOR_MAX_RANK] = { 0 };

    if (!t->data || (t->dtype != DT_F32 && t->dtype != DT_F64))
        return -1;
    if (tensor_contiguous(t))
        return outside_in_line(t, low, high);
    for (int64_t n = 0, count = tensor_count(t); n < count; n++, next_index(t, index)) {
        double x = tensor_element(t, offset_of(t, index));

        if (!(x >= low && x <= high))
            return n;
    }
    return -1;
}

int64_t tensor_not_finite(const Tensor *t)
{
    return tensor_not_within(t, -DBL_MAX, DBL_MAX);
}

Tensor tensor_convert(Arena *arena, Tensor src, DType dtype)
{
    Tensor  out;
    int64_t count = tensor_count(&src), index[TENSOR_MAX_RANK] = { 0 };

    if (!src.data || (src.dtype == dtype && tensor_contiguous(&src)))
        return src;
    out = tensor_new(arena, dtype, src.rank, src.shape);
    if (!out.data)
        return out;
    for (int64_t n = 0; n < count; n++, next_index(&src, index))
        store(&out, n, &src, offset_of(&src, index));
    return out;
}

Tensor tensor_nonzero(Arena *arena, Tensor src)
{
    Tensor  out = tensor_new(arena, DT_U8, src.rank, src.shape);
    int64_t count = tensor_count(&src), index[TENSOR_MAX_RANK] = { 0 };

    if (!out.data || !src.data)
        return (Tensor){ 0 };
    for (int64_t c = 0; c < count; c++, next_index(&src, index)) {
        double value = tensor_get(&src, index);

        tensor_u8(&out)[c] = !(value >= 0 && value <= 0);
    }
    return out;
}

char *tensor_shape_text(const Tensor *t, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "[");

    for (int i = 0; i < t->rank && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? "," : "",
                               (long long)t->shape[i]);
    if (at < size)
        snprintf(text + at, size - at, "]");
    return text;
}
