/* wide.c -- see wide.h. */
#include "attn/mech/lab/wide.h"

#include <math.h>

#include "attn/run.h"

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

Pattern *wide_pattern(Run *r)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m, .causal = r->causal,
                       .q_offset = r->q_offset };
    Pattern     *all = run_failed(r) ? NULL : pattern_full(r->arena, s, COMPONENT_OTHER);

    all = all ? pattern_finish(r->arena, s, all, r->causal) : NULL;
    if (!all)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the pattern", r->mechanism->id);
    return all;
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

static void read_exact(const void *context, int64_t head, int64_t i, int64_t start,
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
    return (WideSource){ read_exact, a, DOUBLE_COST * (double)a->q.shape[2] };
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
static void difference(const Comparison *c, int64_t head, int64_t i, PatternRun keys, double *out)
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

        difference(view->context, head, i, (PatternRun){ start + at * step, some, step, 0 }, x);
        for (int64_t c = 0; c < some; c++)
            out[at + c] = (float)x[c];
    }
}

static double larger(double worst, double x)
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

        difference(c, item / n, i, (PatternRun){ j, some, 1, 0 }, x);
        for (int64_t t = 0; t < some; t++)
            worst = larger(worst, x[t]);
    }
    c->worst[item] = worst;
}

static void show(Run *r, const Comparison *c, const char *name, ViewKind kind, ViewReadRun read)
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
        worst = larger(worst, c->worst[row]);
    show(r, c, "weights", VIEW_WEIGHTS, read_got);
    show(r, c, "weights_reference", VIEW_WEIGHTS, read_reference);
    show(r, c, "weights_error", VIEW_SIGNED, read_error);
    run_figure(r, "weights_max_error", worst);
}

double wide_max_error(Run *r, Tensor got, Tensor reference)
{
    const double *a = got.data, *b = reference.data;
    double        worst = 0;

    for (int64_t x = 0; x < tensor_count(&got) && !run_failed(r); x++)
        worst = larger(worst, a[x] - b[x]);
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
