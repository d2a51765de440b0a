/* entries.c -- entry by entry: other types, exponentials, quotients; rows normalised in double. */
#include "attn/cpu/cpu.h"

#include <math.h>

#define PIECE 32768 /* entries of one item of work */

typedef struct Entries {
    const Tensor *x;
    Tensor       *y;
    EntryKind     kind;
    double        by;
    int64_t       per_head; /* entries of a head of y */
} Entries;

static void widen(const float *x, double *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = (double)x[i];
}

static void narrow(const double *x, float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)x[i];
}

static double entry(const Entries *job, double x)
{
    return job->kind == ENTRY_EXP ? exp(x) : job->kind == ENTRY_DIVIDE ? x / job->by : x;
}

static void any(const Entries *job, const void *x, void *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value = job->x->dtype == DT_F64 ? ((const double *)x)[i]
                                               : (double)((const float *)x)[i];

        value = entry(job, value);
        if (job->y->dtype == DT_F64)
            ((double *)y)[i] = value;
        else
            ((float *)y)[i] = (float)value;
    }
}

static void piece(const Entries *job, int64_t head, int64_t at, int64_t count)
{
    int64_t     h = job->y->shape[0];
    const char *x = tensor_head(job->x, head, h);
    char       *y = tensor_head(job->y, head, h);
    bool        cast = job->kind == ENTRY_CAST;

    x += at * dtype_size(job->x->dtype);
    y += at * dtype_size(job->y->dtype);
    if (cast && job->x->dtype == DT_F32 && job->y->dtype == DT_F64)
        widen((const float *)x, (double *)y, count);
    else if (cast && job->x->dtype == DT_F64 && job->y->dtype == DT_F32)
        narrow((const double *)x, (float *)y, count);
    else
        any(job, x, y, count);
}

static void entries_item(void *context, int64_t item, int worker)
{
    const Entries *job = context;
    int64_t        total = job->y->shape[0] * job->per_head;
    int64_t        end = min_i64(total, (item + 1) * PIECE);

    (void)worker;
    for (int64_t i = item * PIECE, next; i < end; i = next) {
        int64_t head = i / job->per_head;

        next = min_i64(end, (head + 1) * job->per_head);
        piece(job, head, i - head * job->per_head, next - i);
    }
}

void cpu_entries(Run *r, const Tensor *x, EntryKind kind, double by, Tensor *y)
{
    Entries job = { .x = x, .y = y, .kind = kind, .by = by,
                    .per_head = y->shape[1] * y->shape[2] };

    threads_run(r->threads, ceil_div(y->shape[0] * job.per_head, PIECE), entries_item, &job);
}

/* ---- rows ---------------------------------------------------------------------- */

typedef struct Rows {
    const Tensor *x;
    Tensor       *y;
    NormaliseKind kind;
    double        eps;
    int64_t       some; /* rows of an item */
} Rows;

static void rows_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;
    int64_t     h = job->y->shape[0], rows = job->y->shape[1], d = job->y->shape[2];
    int64_t     end = min_i64(h * rows, (item + 1) * job->some);

    (void)worker;
    for (int64_t i = item * job->some; i < end; i++) {
        const float *x = tensor_head(job->x, i / rows, h);

        exact_normalised_row(x + i % rows * job->x->stride[1], d, job->kind, job->eps,
                             (double *)job->y->data + i * d);
    }
}

void cpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y)
{
    Rows job = { .x = x, .y = y, .kind = kind, .eps = eps, .some = PIECE / y->shape[2] + 1 };

    threads_run(r->threads, ceil_div(y->shape[0] * y->shape[1], job.some), rows_item, &job);
}
