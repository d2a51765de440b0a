/* quantise.c -- see quantise.h. */
#include "attn/mech/lab/quantise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run.h"

/* ---- one group ------------------------------------------------------------------ */

typedef struct Group {
    double step, zero;
} Group;

static double highest(const Quantiser *q)
{
    return ldexp(1, (int)q->bits) - 1;
}

static double half_range(const Quantiser *q)
{
    return ldexp(1, (int)q->bits - 1) - 1;
}

static double clamp(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

static Group group_of(const Quantiser *q, double lo, double hi)
{
    Group g = { .zero = 0 };

    if (q->scheme == QUANTISE_AFFINE && q->include_zero) {
        lo = fmin(lo, 0);
        hi = fmax(hi, 0);
    }
    if (!(lo < hi))
        return (Group){ .step = fabs(lo) > 0 ? fabs(lo) : 1,
                        .zero = q->scheme == QUANTISE_AFFINE && lo < 0 ? 1 : 0 };
    if (q->scheme == QUANTISE_SYMMETRIC) {
        g.step = fmax(fabs(lo), fabs(hi)) / half_range(q);
        return g;
    }
    g.step = (hi - lo) / highest(q);
    g.zero = q->scheme == QUANTISE_SURVEY ? rint(lo / g.step)
                                          : clamp(rint(-lo / g.step), 0, highest(q));
    return g;
}

static double code_of(const Quantiser *q, Group g, double x)
{
    switch (q->scheme) {
    case QUANTISE_SURVEY: return rint(x / g.step + g.zero);
    case QUANTISE_SYMMETRIC: return clamp(rint(x / g.step), -half_range(q), half_range(q));
    default: return clamp(rint(x / g.step) + g.zero, 0, highest(q));
    }
}

/* ---- a tensor --------------------------------------------------------------------- */

int64_t quantise_group(const Codes *c, QuantiseGrain grain, int64_t at)
{
    int64_t rows = c->from.shape[1], cols = c->from.shape[2];
    int64_t head = at / (rows * cols);

    switch (grain) {
    case QUANTISE_HEAD: return head;
    case QUANTISE_ROW: return at / cols;
    case QUANTISE_COLUMN: return head * cols + at % cols;
    default: return 0;
    }
}

static void refuse(Run *r, const char *name, double x)
{
    if (!isfinite(x))
        run_fail(r, ERR_DATA, "%s: %s holds NaN or infinity, which has no code; give finite "
                 "numbers", r->mechanism->id, name);
    else if (!(fabs(x) < (double)INT32_MAX / 2))
        run_fail(r, ERR_DATA, "%s: %s lies so far from 0, for its range, that its codes do not fit "
                 "32 bits; use scheme=affine", r->mechanism->id, name);
}

/* f64 [h,1,cols]: the largest entry of each column, or of each row; sign -1: the least. */
static Tensor largest(Run *r, Tensor x, bool rows, double sign)
{
    Tensor   turned = rows ? tensor_turned(x) : x;
    Tensor   copy = run_tensor3(r, DT_F64, x.shape[0], turned.shape[1], turned.shape[2]);
    Tensor   most = run_tensor3(r, DT_F64, x.shape[0], 1, turned.shape[2]);
    int32_t *ends = run_alloc(r, 2, sizeof(*ends));

    if (run_failed(r))
        return most;
    ends[0] = 0;
    ends[1] = (int32_t)turned.shape[1];
    op_entries(r, turned, ENTRY_SCALE, sign, copy);
    op_pool_windows(r, &(PoolWindows){ .x = copy, .first = ends, .end = ends + 1,
                                       .kind = WINDOW_MAX }, most);
    return most;
}

static double larger(double a, double b)
{
    return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
}

/* Least and largest number of every group, in turn. */
static double *ranges(Run *r, const Quantiser *q, const char *name, const Codes *c)
{
    int64_t groups = tensor_count(&c->step);
    bool    rows = q->grain == QUANTISE_ROW;
    double *range = run_alloc(r, 2 * groups, sizeof(*range));
    Tensor  most = largest(r, c->from, rows, 1), least = largest(r, c->from, rows, -1);
    int64_t lines = tensor_count(&most), each = groups ? lines / groups : 1;

    op_wait(r, "the host makes the codes' steps");
    for (int64_t x = 0; x < lines && !run_failed(r); x++) {
        double *of = range + 2 * (x / each);
        double  hi = ((double *)most.data)[x], lo = -((double *)least.data)[x];

        if (!isfinite(hi) || !isfinite(lo))
            refuse(r, name, (double)NAN);
        of[0] = x % each ? -larger(-of[0], -lo) : lo;
        of[1] = x % each ? larger(of[1], hi) : hi;
    }
    return range;
}

static void make_groups(Run *r, const Quantiser *q, const char *name, Codes *c)
{
    QuantiseGrain grain = q->grain;
    int64_t       heads = grain == QUANTISE_TENSOR ? 1 : c->from.shape[0];
    int64_t       rows = grain == QUANTISE_ROW ? c->from.shape[1] : 1;
    int64_t       cols = grain == QUANTISE_COLUMN ? c->from.shape[2] : 1;
    double       *range;

    c->step = run_tensor3(r, DT_F64, heads, rows, cols);
    c->zero = run_tensor3(r, DT_I32, heads, rows, cols);
    range = ranges(r, q, name, c);
    for (int64_t g = 0; g < heads * rows * cols && !run_failed(r); g++) {
        Group group = group_of(q, range[2 * g], range[2 * g + 1]);

        refuse(r, name, group.zero);
        refuse(r, name, code_of(q, group, range[2 * g])); /* codes grow with their numbers */
        refuse(r, name, code_of(q, group, range[2 * g + 1]));
        ((double *)c->step.data)[g] = group.step;
        tensor_i32(&c->zero)[g] = run_failed(r) ? 0 : (int32_t)group.zero;
    }
}

/* Codes of all numbers, in double, as code_of() has one. */
static void encode(Run *r, const Quantiser *q, const Codes *c, Tensor code)
{
    bool symmetric = q->scheme == QUANTISE_SYMMETRIC;

    op_entries_of(r, c->from, c->step, ENTRY_QUOTIENT, 0, code);
    if (q->scheme == QUANTISE_SURVEY)
        op_entries_of(r, code, c->zero, ENTRY_SUM, 1, code);
    op_entries(r, code, ENTRY_RINT, 0, code);
    if (q->scheme == QUANTISE_SURVEY)
        return;
    if (!symmetric)
        op_entries_of(r, code, c->zero, ENTRY_SUM, 1, code);
    op_entries(r, code, ENTRY_MOST, symmetric ? -half_range(q) : 0, code);
    op_entries(r, code, ENTRY_LEAST, symmetric ? half_range(q) : highest(q), code);
}

Codes quantise(Run *r, const Quantiser *q, const char *name, Tensor from)
{
    const int64_t *shape = from.shape;
    Codes          c = { .from = from };

    make_groups(r, q, name, &c);
    c.code = run_tensor3(r, DT_I32, shape[0], shape[1], shape[2]);
    c.back = run_tensor3(r, DT_F64, shape[0], shape[1], shape[2]);
    encode(r, q, &c, c.back);
    op_entries(r, c.back, ENTRY_CAST, 0, c.code);
    op_entries_of(r, c.back, c.zero, ENTRY_SUM, -1, c.back);
    op_entries_of(r, c.back, c.step, ENTRY_PRODUCT, 1, c.back);
    op_charge(r, FLOP_OVERHEAD, QUANTISE_FLOPS * (double)tensor_count(&from));
    return c;
}

double quantise_again(const Quantiser *q, const Codes *c, int64_t group, double x)
{
    Group g = { ((double *)c->step.data)[group], tensor_i32(&c->zero)[group] };

    return (code_of(q, g, x) - g.zero) * g.step;
}

/* ---- what was lost ------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void count_codes(Run *r, const Codes *c, CodesSummary *s)
{
    int64_t   count = tensor_count(&c->code);
    ArenaMark mark = arena_mark(r->arena);
    int32_t  *sorted = run_alloc(r, count, sizeof(*sorted));

    if (!sorted || !count)
        return;
    memcpy(sorted, c->code.data, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), by_value);
    s->least = sorted[0];
    s->most = sorted[count - 1];
    s->distinct = 1;
    for (int64_t x = 1; x < count; x++)
        s->distinct += sorted[x] != sorted[x - 1];
    arena_release(r->arena, mark);
}

CodesSummary codes_summary(Run *r, const Codes *c)
{
    CodesSummary s = { .max_error = 0 };
    double       whole = 0, lost = 0;

    op_wait(r, "the host sums up what rounding lost");
    for (int64_t at = 0; at < tensor_count(&c->from) && !run_failed(r); at++) {
        double x = (double)tensor_f32(&c->from)[at], error = ((double *)c->back.data)[at] - x;

        whole += x * x;
        lost += error * error;
        s.max_error = fmax(s.max_error, fabs(error));
    }
    for (int64_t g = 0; g < tensor_count(&c->step) && !run_failed(r); g++)
        s.step = fmax(s.step, ((double *)c->step.data)[g]);
    s.sqnr_db = lost > 0 ? 10 * log10(whole / lost) : (double)INFINITY;
    count_codes(r, c, &s);
    return s;
}
