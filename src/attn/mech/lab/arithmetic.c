/* arithmetic.c -- see arithmetic.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mech/lab/arithmetic.h"
#include "attn/run.h"
#include "core/threads.h"

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

static double arithmetic_clamp(double x, double least, double most)
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
                                          : arithmetic_clamp(rint(-lo / g.step), 0, highest(q));
    return g;
}

static double arithmetic_code_of(const Quantiser *q, Group g, double x)
{
    switch (q->scheme) {
    case QUANTISE_SURVEY: return rint(x / g.step + g.zero);
    case QUANTISE_SYMMETRIC: return arithmetic_clamp(rint(x / g.step), -half_range(q),
                                                     half_range(q));
    default: return arithmetic_clamp(rint(x / g.step) + g.zero, 0, highest(q));
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

static void arithmetic_refuse(Run *r, const char *name, double x)
{
    if (!isfinite(x))
        run_fail(r, ERR_DATA, "%s: %s holds NaN or infinity, which has no code; give finite "
                 "numbers", r->mechanism->id, name);
    else if (!(fabs(x) < (double)INT32_MAX / 2))
        run_fail(r, ERR_DATA, "%s: %s lies so far from 0, for its range, that its codes do not fit "
                 "32 bits; use scheme=affine", r->mechanism->id, name);
}

/* f64 [h,1,cols]: the largest entry of each column, or of each row; sign -1: the least. */
static Tensor arithmetic_largest(Run *r, Tensor x, bool rows, double sign)
{
    Tensor turned = rows ? tensor_turned(x) : x;
    Tensor copy = run_tensor3(r, DT_F64, x.shape[0], turned.shape[1], turned.shape[2]);
    Tensor most = run_tensor3(r, DT_F64, x.shape[0], 1, turned.shape[2]);

    op_entries(r, turned, ENTRY_SCALE, sign, copy);
    op_pool_rows(r, copy, 0, turned.shape[1], WINDOW_MAX, most);
    return most;
}

static double arithmetic_larger(double a, double b)
{
    return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
}

/* Least and largest number of every group, in turn. */
static double *ranges(Run *r, const Quantiser *q, const char *name, const Codes *c)
{
    int64_t groups = tensor_count(&c->step);
    bool    rows = q->grain == QUANTISE_ROW;
    double *range = run_alloc(r, 2 * groups, sizeof(*range));
    Tensor  most = arithmetic_largest(r, c->from, rows, 1);
    Tensor  least = arithmetic_largest(r, c->from, rows, -1);
    int64_t lines = tensor_count(&most), each = groups ? lines / groups : 1;

    op_wait(r, "the host makes the codes' steps");
    for (int64_t x = 0; x < lines && !run_failed(r); x++) {
        double *of = range + 2 * (x / each);
        double  hi = ((double *)most.data)[x], lo = -((double *)least.data)[x];

        if (!isfinite(hi) || !isfinite(lo))
            arithmetic_refuse(r, name, (double)NAN);
        of[0] = x % each ? -arithmetic_larger(-of[0], -lo) : lo;
        of[1] = x % each ? arithmetic_larger(of[1], hi) : hi;
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

        arithmetic_refuse(r, name, group.zero);
        /* codes grow with their numbers */
        arithmetic_refuse(r, name, arithmetic_code_of(q, group, range[2 * g]));
        arithmetic_refuse(r, name, arithmetic_code_of(q, group, range[2 * g + 1]));
        ((double *)c->step.data)[g] = group.step;
        tensor_i32(&c->zero)[g] = run_failed(r) ? 0 : (int32_t)group.zero;
    }
}

/* Codes of all numbers, in double, by the formula of code_of(). */
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

    return (arithmetic_code_of(q, g, x) - g.zero) * g.step;
}

/* ---- what was lost ------------------------------------------------------------------ */

static int arithmetic_by_value(const void *a, const void *b)
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
    qsort(sorted, (size_t)count, sizeof(*sorted), arithmetic_by_value);
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

#define ROWS 32   /* of a tile */
#define PIECE 256 /* weights compared at once */
#define DOUBLE_COST 4 /* a multiply-add in double, in single ones */

/* ---- attention in double ------------------------------------------------------ */

int64_t wide_keys(const Run *r, int64_t i)
{
    int64_t keys = r->causal ? i + r->q_offset + 1 : r->m;

    return keys < 0 ? 0 : keys < r->m ? keys : r->m;
}

double wide_cells(const Run *r)
{
    double cells = 0;

    for (int64_t i = 0; i < r->n; i++)
        cells += (double)r->h * (double)wide_keys(r, i);
    return cells;
}

void wide_attend(Run *r, WideAttend *a, bool counted)
{
    int64_t   n = a->q.shape[1], m = a->k.shape[1], d = a->q.shape[2], e = a->v.shape[2];
    double    cells = counted ? wide_cells(r) : 0;
    Tensor    tile;
    ArenaMark mark;

    a->heads = r->h;
    a->out = run_tensor3(r, DT_F64, r->h, n, e);
    a->lse = run_tensor2(r, DT_F64, r->h, n);
    mark = arena_mark(r->arena);
    tile = run_tensor3(r, DT_F64, r->h, n < ROWS ? n : ROWS, m);
    for (int64_t first = 0; first < n && !run_failed(r); first += ROWS) {
        int64_t     rows = n - first < ROWS ? n - first : ROWS;
        SoftmaxRows soft = { .x = tensor_rows(tile, 0, rows), .causal = r->causal,
                             .offset = first + r->q_offset,
                             .lse = tensor_rows(a->lse, first, rows) };

        op_gemm(r, tensor_rows(a->q, first, rows), false, a->k, true, a->scale, 0, soft.x,
                FLOP_APART);
        op_softmax_rows(r, &soft);
        op_gemm(r, soft.x, false, a->v, false, 1, 0, tensor_rows(a->out, first, rows), FLOP_APART);
    }
    arena_release(r->arena, mark);
    op_charge(r, FLOP_SCORE, 2 * cells * (double)d);
    op_charge(r, FLOP_MIX, 2 * cells * (double)e);
    op_charge(r, FLOP_OVERHEAD, FLOPS_SOFTMAX * cells);
}

static void arithmetic_read_exact(const void *context, int64_t head, int64_t i, int64_t start,
                                  int64_t count, int64_t step, double *out)
{
    const WideAttend *a = context;
    const double      lse = ((const double *)a->lse.data)[head * a->q.shape[1] + i];
    LogitAttend       in = { .kind = LOGITS_PRODUCT, .turned = true, .left = a->q,
                             .right = a->k };

    logit_run(&in, a->heads, head, i, start, count, step, out);
    for (int64_t c = 0; c < count; c++)
        out[c] = exp(a->scale * out[c] - lse);
}

WideSource wide_weights(const WideAttend *a)
{
    return (WideSource){ arithmetic_read_exact, a, DOUBLE_COST * (double)a->q.shape[2] };
}

/* ---- two of them side by side --------------------------------------------------- */

typedef struct Comparison {
    Run           *run;
    WideSource      got, reference;
    const Pattern *cells;
    double        *worst; /* [h*n] */
} Comparison;

static void narrow(WideSource source, int64_t head, int64_t i, PatternRun keys, float *out)
{
    double x[PIECE];

    for (int64_t at = 0; at < keys.count; at += PIECE) {
        int64_t count = keys.count - at < PIECE ? keys.count - at : PIECE;

        source.read(source.context, head, i, keys.start + at * keys.step, count, keys.step, x);
        for (int64_t c = 0; c < count; c++)
            out[at + c] = (float)x[c];
    }
}

static void read_got(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                     int64_t step, float *out)
{
    const Comparison *c = view->context;

    narrow(c->got, head, i, (PatternRun){ start, count, step, 0 }, out);
}

static void read_reference(const View *view, int64_t head, int64_t i, int64_t start,
                           int64_t count, int64_t step, float *out)
{
    const Comparison *c = view->context;

    narrow(c->reference, head, i, (PatternRun){ start, count, step, 0 }, out);
}

/* The difference of row i in double, a piece at a time. */
static void arithmetic_difference(const Comparison *c, int64_t head, int64_t i, PatternRun keys,
                                  double *out)
{
    double exact[PIECE];

    c->got.read(c->got.context, head, i, keys.start, keys.count, keys.step, out);
    c->reference.read(c->reference.context, head, i, keys.start, keys.count, keys.step, exact);
    for (int64_t t = 0; t < keys.count; t++)
        out[t] -= exact[t];
}

static void read_error(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    double x[PIECE];

    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t some = count - at < PIECE ? count - at : PIECE;

        arithmetic_difference(view->context, head, i, (PatternRun){ start + at * step, some, step,
                              0 }, x);
        for (int64_t c = 0; c < some; c++)
            out[at + c] = (float)x[c];
    }
}

static double larger_of(double worst, double x)
{
    return isnan(worst) || isnan(x) ? (double)NAN : fmax(worst, fabs(x));
}

static void worst_row(void *context, int64_t item, int worker)
{
    const Comparison *c = context;
    int64_t           n = c->run->n, i = item % n, keys = wide_keys(c->run, i);
    double            x[PIECE], worst = 0;

    (void)worker;
    for (int64_t j = 0; j < keys && !run_failed(c->run); j += PIECE) {
        int64_t some = keys - j < PIECE ? keys - j : PIECE;

        arithmetic_difference(c, item / n, i, (PatternRun){ j, some, 1, 0 }, x);
        for (int64_t t = 0; t < some; t++)
            worst = larger_of(worst, x[t]);
    }
    c->worst[item] = worst;
}

static void arithmetic_show(Run *r, const Comparison *c, const char *name, ViewKind kind,
                            ViewReadRun read)
{
    View *view = view_reader(r, name, kind, DT_F32, read, c, c->cells);

    if (view)
        view->cost = c->got.cost + c->reference.cost;
}

void wide_compare(Run *r, const Pattern *cells, WideSource got, WideSource reference)
{
    Comparison *c = run_wants_views(r) ? run_alloc(r, 1, sizeof(*c)) : NULL;
    double      worst = 0;

    if (!c)
        return;
    *c = (Comparison){ .run = r, .got = got, .reference = reference, .cells = cells,
                       .worst = run_alloc(r, r->h * r->n, sizeof(double)) };
    if (!c->worst)
        return;
    threads_run(r->threads, r->h * r->n, worst_row, c);
    for (int64_t row = 0; row < r->h * r->n; row++)
        worst = larger_of(worst, c->worst[row]);
    arithmetic_show(r, c, "weights", VIEW_WEIGHTS, read_got);
    arithmetic_show(r, c, "weights_reference", VIEW_WEIGHTS, read_reference);
    arithmetic_show(r, c, "weights_error", VIEW_SIGNED, read_error);
    run_figure(r, "weights_max_error", worst);
}

double wide_max_error(Run *r, Tensor got, Tensor reference)
{
    const double *a = got.data, *b = reference.data;
    double        worst = 0;

    for (int64_t x = 0; x < tensor_count(&got) && !run_failed(r); x++)
        worst = larger_of(worst, a[x] - b[x]);
    return worst;
}

double wide_relative_error(Run *r, Tensor got, Tensor reference)
{
    const double *a = got.data, *b = reference.data;
    double        lost = 0, whole = 0;

    for (int64_t x = 0; x < tensor_count(&got) && !run_failed(r); x++) {
        lost += (a[x] - b[x]) * (a[x] - b[x]);
        whole += b[x] * b[x];
    }
    if (isnan(lost) || isnan(whole))
        return (double)NAN;
    return whole > 0 ? sqrt(lost / whole) : lost > 0 ? (double)INFINITY : 0;
}
