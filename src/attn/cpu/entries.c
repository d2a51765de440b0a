/* entries.c -- entry by entry, tensors of any strides: op_entries; op_rounded_attend at the end.
 *
 * SOME entries of a row at a time are widened into arrays that stay in the first-level cache,
 * computed there and narrowed again, so each kind is written once for all types.  Axes that are
 * contiguous in all tensors become one long row.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"
#include "attn/ops/dense.h"
#include "core/threads.h"

#define SOME 256    /* entries at a time */
#define SIDE 8      /* of them side by side */
#define PIECE 32768 /* entries of one item of work */

/* A tensor as y sees it: the entry at [t,i,c] is data[t' stride[0] + i stride[1] + c stride[2]]. */
typedef struct Operand {
    const char *data;
    DType       dtype;
    int64_t     heads, stride[3];
} Operand;

typedef struct Job {
    const Entries   *in;
    const Precision *format;
    Operand          x, z, y;
    Operand          more[ENTRY_STEPS]; /* z of the steps after the first */
    int64_t          shape[3];
    int64_t          rows, pieces; /* rows of an item; pieces of a row, where rows is 1 */
} Job;

static Operand operand_of(const Tensor *t)
{
    Operand o = { .data = t->data, .dtype = t->dtype, .heads = t->shape[0] };

    for (int a = 0; a < 3; a++)
        o.stride[a] = t->shape[a] > 1 ? t->stride[a] : 0;
    return o;
}

static const char *entries_row(const Job *job, const Operand *o, int64_t t, int64_t i, int64_t c)
{
    int64_t at = t * o->heads / job->shape[0] * o->stride[0] + i * o->stride[1] +
                 c * o->stride[2];

    return o->data + at * dtype_size(o->dtype);
}

/* ---- loading and storing ------------------------------------------------------------ */

/* to = from in the other type, SIDE at a time, which the compiler turns into vectors. */
#define CONVERT_ROW(name, type, other)                                                         \
    static void name(const type *restrict from, int64_t count, other *restrict to)             \
    {                                                                                          \
        int64_t c = 0;                                                                         \
                                                                                               \
        for (; c + SIDE <= count; c += SIDE)                                                   \
            for (int64_t s = c; s < c + SIDE; s++)                                             \
                to[s] = (other)from[s];                                                        \
        for (; c < count; c++)                                                                 \
            to[c] = (other)from[c];                                                            \
    }
CONVERT_ROW(widen, float, double)
CONVERT_ROW(narrow, double, float)

static void load(DType dtype, const void *from, int64_t step, int64_t count, double *to)
{
    const float   *f = from;
    const double  *d = from;
    const int32_t *n = from;

    if (step == 0 && dtype != DT_I32) {
        double one = float_at(dtype, from, 0);

        for (int64_t c = 0; c < count; c++)
            to[c] = one;
    } else if (dtype == DT_F32 && step == 1)
        widen(f, count, to);
    else if (dtype == DT_F32)
        for (int64_t c = 0; c < count; c++)
            to[c] = (double)f[c * step];
    else if (dtype == DT_F64 && step == 1)
        memcpy(to, d, (size_t)count * sizeof(*to));
    else if (dtype == DT_F64)
        for (int64_t c = 0; c < count; c++)
            to[c] = d[c * step];
    else
        for (int64_t c = 0; c < count; c++)
            to[c] = (double)n[c * step];
}

static void store(DType dtype, void *to, int64_t step, int64_t count, const double *from)
{
    float   *f = to;
    double  *d = to;
    int32_t *n = to;

    if (dtype == DT_F32 && step == 1)
        narrow(from, count, f);
    else if (dtype == DT_F32)
        for (int64_t c = 0; c < count; c++)
            f[c * step] = (float)from[c];
    else if (dtype == DT_F64 && step == 1)
        memcpy(d, from, (size_t)count * sizeof(*d));
    else if (dtype == DT_F64)
        for (int64_t c = 0; c < count; c++)
            d[c * step] = from[c];
    else
        for (int64_t c = 0; c < count; c++)
            n[c * step] = (int32_t)from[c];
}

/* ---- values ------------------------------------------------------------------------------ */

static double of_one(const Job *job, EntryKind kind, double by, double x)
{
    switch (kind) {
    case ENTRY_LEAST: return x > by ? by : x;
    case ENTRY_MOST: return x < by ? by : x;
    case ENTRY_RINT: return rint(x);
    case ENTRY_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case ENTRY_GELU_ERF: return x * gelu_gate(x, GELU_ERF);
    case ENTRY_ELU: return x > 0 ? x + 1 : exp(x);
    case ENTRY_ROUND: return precision_round(job->format, x);
    default: return x;
    }
}

/* Loops of a few operations, which the compiler turns into vectors. */
#define EACH(value)                                                                            \
    for (int64_t first = 0; first < count; first += SIDE)                                      \
        for (int64_t c = first; c < first + SIDE; c++)                                         \
            x[c] = value;                                                                      \
    return

/* Entries up to the next multiple of SIDE are computed too, and not used. */
static void compute(const Job *job, EntryKind kind, double by, int64_t count, double *restrict x,
                    double *restrict z)
{
    const Kernel *kernel = kernel_at(0);

    switch (kind) {
    case ENTRY_CAST: return;
    case ENTRY_DIVIDE: EACH(x[c] / by);
    case ENTRY_SCALE: EACH(x[c] * by);
    case ENTRY_SHIFT: EACH(x[c] + by);
    case ENTRY_FILL: EACH(by);
    case ENTRY_SUM: EACH(x[c] + by * z[c]);
    case ENTRY_PRODUCT: EACH(by * x[c] * z[c]);
    case ENTRY_QUOTIENT: EACH(x[c] / z[c]);
    case ENTRY_EXP: kernel->exp64(x, count); return;
    case ENTRY_SIGMOID: kernel->sigmoid64(x, count); return;
    case ENTRY_GELU_TANH:
        for (int64_t c = 0; c < count; c++)
            z[c] = gelu_argument(x[c]);
        kernel->sigmoid64(z, count);
        EACH(x[c] * z[c]);
    case ENTRY_SOFTPLUS: kernel->softplus64(x, count, by); return;
    case ENTRY_GATE:
        kernel->sigmoid64(z, count);
        EACH(x[c] * z[c]);
    default:
        for (int64_t c = 0; c < count; c++)
            x[c] = of_one(job, kind, by, x[c]);
        return;
    }
}

static bool has_two(EntryKind kind)
{
    return kind == ENTRY_SUM || kind == ENTRY_PRODUCT || kind == ENTRY_QUOTIENT ||
           kind == ENTRY_GATE || kind == ENTRY_WHERE;
}

/* `count` entries of y from [t,i,c] on. */
static void some(const Job *job, int64_t t, int64_t i, int64_t c, int64_t count)
{
    double      x[SOME], z[SOME], y[SOME];
    const char *to = entries_row(job, &job->y, t, i, c);
    EntryKind   kind = job->in->kind;

    for (int64_t at = count - count % SIDE; at < count + SIDE && at < SOME; at++)
        x[at] = z[at] = 0;
    if (kind != ENTRY_FILL)
        load(job->x.dtype, entries_row(job, &job->x, t, i, c), job->x.stride[2], count, x);
    if (has_two(kind))
        load(job->z.dtype, entries_row(job, &job->z, t, i, c), job->z.stride[2], count, z);
    if (kind == ENTRY_WHERE) {
        load(job->y.dtype, to, job->y.stride[2], count, y);
        for (int64_t at = 0; at < count; at++)
            x[at] = z[at] < 0 || z[at] > 0 ? x[at] : y[at];
    } else {
        compute(job, kind, job->in->by, count, x, z);
    }
    for (int s = 0; s < job->in->more_count; s++) {
        const EntryStep *step = &job->in->more[s];

        if (has_two(step->kind))
            load(step->z.dtype, entries_row(job, &job->more[s], t, i, c), job->more[s].stride[2],
                 count, z);
        compute(job, step->kind, step->by, count, x, z);
    }
    store(job->y.dtype, (char *)(uintptr_t)to, job->y.stride[2], count, x);
}

/* ---- rows ------------------------------------------------------------------------------ */

/* A cast that changes nothing, or a plain change of type, of contiguous entries. */
static bool copied(const Job *job, int64_t t, int64_t i, int64_t c, int64_t count)
{
    const char *from = entries_row(job, &job->x, t, i, c), *to = entries_row(job, &job->y, t, i, c);

    if (job->in->kind != ENTRY_CAST || job->x.dtype != job->y.dtype ||
        (count > 1 && (job->x.stride[2] != 1 || job->y.stride[2] != 1)))
        return false;
    memmove((char *)(uintptr_t)to, from, (size_t)(count * dtype_size(job->x.dtype)));
    return true;
}

/* z may be x, and y may be either, so SIDE results are computed before any is stored. */
#define SIDES(type, value)                                                                     \
    for (; c + SIDE <= count; c += SIDE) {                                                     \
        type some[SIDE];                                                                       \
                                                                                               \
        for (int64_t s = 0, i = c; s < SIDE; s++, i++)                                         \
            some[s] = value;                                                                   \
        for (int64_t s = 0; s < SIDE; s++)                                                     \
            y[c + s] = some[s];                                                                \
    }                                                                                          \
    for (int64_t i = c; i < count; i++)                                                        \
        y[i] = value

#define IN_TYPE(name, type)                                                                    \
    static void name(EntryKind kind, const type *x, const type *z, type *y, int64_t count)     \
    {                                                                                          \
        int64_t c = 0;                                                                         \
                                                                                               \
        if (kind == ENTRY_SUM) {                                                               \
            SIDES(type, x[i] + z[i]);                                                          \
        } else if (kind == ENTRY_PRODUCT) {                                                    \
            SIDES(type, x[i] * z[i]);                                                          \
        } else {                                                                               \
            SIDES(type, x[i] < 0 ? 0 : x[i]);                                                  \
        }                                                                                      \
    }
IN_TYPE(in_float, float)
IN_TYPE(in_double, double)

/* Contiguous sums, products and rectified numbers of one type.  Each is rounded once, so double
 * would give the same. */
static bool plain(const Job *job, int64_t t, int64_t i, int64_t first, int64_t count)
{
    EntryKind   kind = job->in->kind;
    bool        one = kind == ENTRY_RELU, two = kind == ENTRY_SUM || kind == ENTRY_PRODUCT;
    const char *x = entries_row(job, &job->x, t, i, first);
    const char *y = entries_row(job, &job->y, t, i, first);
    const char *z = one ? x : entries_row(job, &job->z, t, i, first);
    DType       type = job->y.dtype;

    if (!one && !(two && job->z.dtype == type && job->z.stride[2] == 1 && job->in->by >= 1 &&
                  job->in->by <= 1))
        return false;
    if (job->x.dtype != type || job->x.stride[2] != 1 || job->y.stride[2] != 1)
        return false;
    if (type == DT_F32)
        in_float(kind, (const float *)(const void *)x, (const float *)(const void *)z,
                 (float *)(uintptr_t)y, count);
    else if (type == DT_F64)
        in_double(kind, (const double *)(const void *)x, (const double *)(const void *)z,
                  (double *)(uintptr_t)y, count);
    return type == DT_F32 || type == DT_F64;
}

/* Rounded once, as a product in double would be. */
static void scale_floats(const float *x, float by, float *y, int64_t count)
{
    int64_t c = 0;

    SIDES(float, x[i] * by);
}

/* Rows in float times a number of the row in float or double: vectors. */
static bool row_scaled(const Job *job, int64_t t, int64_t i, int64_t first, int64_t count)
{
    bool         one = job->in->by >= 1 && job->in->by <= 1;
    const float *x;
    const void  *z;
    float       *y;

    if (job->in->kind != ENTRY_PRODUCT || !one || job->x.dtype != DT_F32 ||
        job->y.dtype != DT_F32 || job->z.stride[2] != 0 || job->x.stride[2] != 1 ||
        job->y.stride[2] != 1)
        return false;
    x = (const float *)(const void *)entries_row(job, &job->x, t, i, first);
    z = entries_row(job, &job->z, t, i, first);
    y = (float *)(uintptr_t)entries_row(job, &job->y, t, i, first);
    if (job->z.dtype == DT_F32)
        scale_floats(x, *(const float *)z, y, count);
    else if (job->z.dtype == DT_F64)
        kernel_at(0)->centre(x, count, 0, *(const double *)z, y);
    return job->z.dtype == DT_F32 || job->z.dtype == DT_F64;
}

static void row(const Job *job, int64_t line, int64_t first, int64_t count)
{
    int64_t t = line / job->shape[1], i = line % job->shape[1];

    if (!job->in->more_count &&
        (copied(job, t, i, first, count) || plain(job, t, i, first, count) ||
         row_scaled(job, t, i, first, count)))
        return;
    for (int64_t c = first; c < first + count; c += SOME)
        some(job, t, i, c, min_i64(SOME, first + count - c));
}

static void entries_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    lines = job->shape[0] * job->shape[1], first = item % job->pieces * PIECE;

    (void)worker;
    if (job->pieces > 1)
        row(job, item / job->pieces, first, min_i64(PIECE, job->shape[2] - first));
    for (int64_t line = item * job->rows;
         job->pieces == 1 && line < min_i64(lines, (item + 1) * job->rows); line++)
        row(job, line, 0, job->shape[2]);
}

/* Whether the next entry of axis `a` follows the last one of the axes behind it, `count` of
 * them, or all are one number. */
static bool follows(const Job *job, const Operand *o, int a, int64_t count)
{
    bool one = o->stride[a] == 0 && o->stride[2] == 0;

    return !o->data || one || job->shape[a] == 1 ||
           (o->stride[a] == count * o->stride[2] && o->stride[2] > 0);
}

/* Columns are rows. */
static void lay_columns(Job *job, Operand *const all[], int count)
{
    for (int o = 0; o < count; o++) {
        all[o]->stride[2] = all[o]->stride[1];
        all[o]->stride[1] = 0;
    }
    job->shape[2] = job->shape[1];
    job->shape[1] = 1;
}

/* Axes that follow one another in all tensors are one. */
static void flatten(Job *job)
{
    Operand *all[3 + ENTRY_STEPS] = { &job->x, &job->z, &job->y };
    int64_t  head = job->shape[2] * job->shape[1];
    int      count = 3 + job->in->more_count;

    for (int o = 3; o < count; o++)
        all[o] = &job->more[o - 3];
    if (job->shape[2] == 1)
        lay_columns(job, all, count);
    for (int o = 0; o < count; o++)
        if (!follows(job, all[o], 1, job->shape[2]))
            return;
    job->shape[2] = head;
    job->shape[1] = 1;
    for (int o = 0; o < count; o++)
        if (!follows(job, all[o], 0, head) || (all[o]->data && all[o]->heads != job->shape[0] &&
                                               all[o]->stride[0] != 0))
            return;
    job->shape[2] = head * job->shape[0];
    job->shape[0] = 1;
    for (int o = 0; o < count; o++)
        all[o]->heads = 1;
}

/* ---- turned ----------------------------------------------------------------------------- */

/* Floats whose rows are columns: blocks of TILE_KEYS by as many are turned in the cache, where
 * entry by entry each would read a line of its own. */
static bool is_turned(const Job *job)
{
    return job->in->kind == ENTRY_CAST && !job->in->more_count && job->x.dtype == DT_F32 &&
           job->y.dtype == DT_F32 && job->x.stride[1] == 1 && job->x.stride[2] > 1 &&
           job->y.stride[2] == 1 && job->shape[1] > 1;
}

/* An item is TILE_KEYS columns. */
static void turn_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    pieces = ceil_div(job->shape[2], TILE_KEYS), t = item / pieces;
    int64_t    c = item % pieces * TILE_KEYS, count = min_i64(TILE_KEYS, job->shape[2] - c);
    float      panel[TILE_KEYS * TILE_KEYS];

    (void)worker;
    for (int64_t first = 0; first < job->shape[1]; first += TILE_KEYS) {
        int64_t rows = min_i64(TILE_KEYS, job->shape[1] - first);

        pack_panel((const void *)entries_row(job, &job->x, t, first, c), job->x.stride[2], count,
                   rows, panel);
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)(uintptr_t)entries_row(job, &job->y, t, first + i, c),
                   panel + i * TILE_KEYS, (size_t)count * sizeof(*panel));
    }
}

void cpu_entries(Run *r, const Entries *in)
{
    Job job = { .in = in, .x = operand_of(&in->x), .z = operand_of(&in->z),
                .y = operand_of(&in->y),
                .shape = { in->y.shape[0], in->y.shape[1], in->y.shape[2] } };

    for (int s = 0; s < in->more_count; s++)
        job.more[s] = operand_of(&in->more[s].z);
    if (in->kind == ENTRY_ROUND)
        job.format = precision_of((PrecisionFormat)in->by);
    flatten(&job);
    if (is_turned(&job)) {
        threads_run(r->threads, job.shape[0] * ceil_div(job.shape[2], TILE_KEYS), turn_item, &job);
        return;
    }
    job.rows = max_i64(1, PIECE / job.shape[2]);
    job.pieces = ceil_div(job.shape[2], PIECE);
    threads_run(r->threads,
                job.pieces > 1 ? job.shape[0] * job.shape[1] * job.pieces
                               : ceil_div(job.shape[0] * job.shape[1], job.rows),
                entries_item, &job);
}

/* Attention as a narrow format would compute it; see op_rounded_attend. */

typedef struct RoundedJob {
    Run                 *run;
    const RoundedAttend *in;
    const Precision     *format;
    int64_t              heads, n, m;
    double              *work; /* [workers][m] */
} RoundedJob;

/* NaN stays: a softmax of infinite scores is NaN. */
static double largest(const double *x, int64_t count)
{
    double top = -(double)INFINITY;

    for (int64_t j = 0; j < count; j++)
        top = isnan(top) || isnan(x[j]) ? (double)NAN : fmax(top, x[j]);
    return top;
}

/* Scores x become weights. */
static void soften_rounded(const RoundedJob *job, int64_t row, double *x, int64_t keys)
{
    const RoundedAttend *in = job->in;
    double               top = largest(x, keys), sum = 0, all = 0;

    for (int64_t j = 0; j < keys; j++) {
        x[j] = rounded_exponential(in, x[j], top);
        sum += x[j];
    }
    if (in->half_softmax)
        sum = precision_sum(job->format, keys, x);
    for (int64_t j = 0; j < keys; j++) {
        x[j] = precision_round(job->format, x[j] / sum);
        all += x[j];
    }
    tensor_f64(&in->top)[row] = top;
    tensor_f64(&in->total)[row] = sum;
    tensor_f64(&in->weights)[row] = all;
}

static void row_item(void *context, int64_t row, int worker)
{
    const RoundedJob           *job = context;
    const RoundedAttend *in = job->in;
    int64_t              head = row / job->n, i = row % job->n, e = in->v.shape[2];
    int64_t              keys = in->causal ? min_i64(job->m, i + in->offset + 1) : job->m;
    double              *x = job->work + worker * job->m, *out = tensor_f64(&in->out) + row * e;
    const double        *v = tensor_head(&in->v, head, job->heads);
    int32_t              infinite = 0;

    if (cpu_cancelled(job->run))
        return;
    keys = max_i64(0, keys);
    for (int64_t j = 0; j < keys; j++) {
        x[j] = rounded_raw_score(in, job->heads, head, i, j);
        infinite += isinf(x[j]) != 0;
        x[j] = rounded_scaled(in, x[j]);
    }
    tensor_i32(&in->overflows)[row] = infinite;
    soften_rounded(job, row, x, keys);
    for (int64_t c = 0; c < e; c++)
        out[c] = rounded_dot(in, keys, x, v + c, in->v.stride[1]);
}

void cpu_rounded_attend(Run *r, const RoundedAttend *in)
{
    ArenaMark mark = arena_mark(r->arena);
    RoundedJob       job = { .run = r, .in = in, .format = precision_of(in->format),
                             .heads = in->out.shape[0], .n = in->q.shape[1], .m = in->k.shape[1] };

    job.work = cpu_scratch(r, threads_count(r->threads) * job.m, (int64_t)sizeof(*job.work));
    if (job.work)
        threads_run(r->threads, job.heads * job.n, row_item, &job);
    arena_release(r->arena, mark);
}
