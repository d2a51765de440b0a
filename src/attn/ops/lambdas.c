/* lambdas.c -- see lambdas.h. */
#include <math.h>
#include <string.h>

#include "attn/ops/lambdas.h"
#include "attn/run.h"

void lambdas_reach(Lambdas *l)
{
    Run         *r = l->r;
    PatternShape shape = { .heads = 1, .n = l->s.n, .m = l->s.m };
    Pattern     *cells;

    if (run_failed(r))
        return;
    if (l->position == LAMBDA_NONE)
        cells = pattern_none(r->arena, shape);
    else if (l->position == LAMBDA_ABSOLUTE)
        cells = pattern_full(r->arena, shape, COMPONENT_WINDOW);
    else if (l->width > 0)
        cells = pattern_grid(r->arena, shape, l->width, l->up, l->side, COMPONENT_WINDOW);
    else
        cells = pattern_band(r->arena, shape, -l->side, l->side, 1, COMPONENT_WINDOW);
    cells = pattern_finish(r->arena, shape, cells, l->causal);
    if (!cells)
        run_fail(r, ERR_NOMEM, "lambda: not enough memory for the pattern");
    l->contexts = l->causal ? l->s.n : 1;
    l->reach = cells;
}

/* E[i,j], [k,u], of a cell within reach. */
const float *lambdas_entry(const Lambdas *l, int64_t i, int64_t j)
{
    int64_t at = j - i + l->side;

    if (l->position == LAMBDA_ABSOLUTE)
        at = i * l->s.m + j;
    else if (l->width > 0)
        at = (j / l->width - i / l->width + l->up) * (2 * l->side + 1) + j % l->width -
             i % l->width + l->side;
    return l->pos + at * l->s.k * l->s.u;
}

/* ---- costs ------------------------------------------------------------------ */

static Flops content_flops(const Lambdas *l)
{
    const LambdaSizes *s = &l->s;
    double             ku = (double)s->hk * (double)s->k * (double)s->u;

    return (Flops){ .mix = 2 * (double)s->m * ku * (double)s->e,
                    .overhead = FLOPS_ROW_SOFTMAX * (double)s->m * ku +
                                (l->causal ? 2 * (double)s->n * ku * (double)s->e : 0) };
}

static double apply_flops(const Lambdas *l)
{
    const LambdaSizes *s = &l->s;
    double             cells = l->reach ? (double)pattern_count(l->reach) : 0;

    return 2 * (double)s->k * (double)s->e *
           ((double)s->u * (double)s->hk * cells + (double)s->h * (double)s->n);
}

/* ---- content, positions, and the queries through both ------------------------- */

void lambdas_content(Lambdas *l)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    int64_t            planes = s->hk * l->contexts;
    Tensor             content = run_tensor4(r, DT_F32, s->hk, l->contexts, s->k, s->e);
    Flops              cost = content_flops(l);

    l->content = content.data;
    l->lse = run_alloc(r, planes * s->k * s->u, sizeof(*l->lse));
    op_lambda_content(r, l);
    op_charge(r, FLOP_MIX, cost.mix);
    op_charge(r, FLOP_OVERHEAD, cost.overhead);
    op_traffic(r, (double)tensor_bytes(&l->key) + (double)tensor_bytes(&l->v),
               (double)tensor_bytes(&content));
}

Tensor lambdas_apply(Lambdas *l)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    Tensor             out;

    out = s->joined ? run_tensor3(r, DT_F32, 1, s->n, s->h * s->e)
                    : run_tensor3(r, DT_F32, s->h, s->n, s->e);
    op_lambda_apply(r, l, out);
    op_charge(r, FLOP_MIX, apply_flops(l));
    op_traffic(r, (double)tensor_bytes(&l->q) + (double)tensor_bytes(&l->v),
               (double)tensor_bytes(&out));
    return out;
}

Flops lambdas_flops(const Lambdas *l)
{
    Flops sum = content_flops(l);

    sum.mix += apply_flops(l);
    return sum;
}

/* ---- views, read cell by cell ------------------------------------------------ */

enum { SHOW_CONTENT = 1, SHOW_POSITION = 2 };

typedef struct Shown {
    const Lambdas *l;
    int            what; /* SHOW_* bits */
} Shown;

/* Kbar of query i, key channel c. */
static double key_share(const Lambdas *l, int64_t key_head, int64_t i, int64_t j, int64_t c)
{
    int64_t      ku = l->s.k * l->s.u, plane = key_head * l->contexts + (l->causal ? i : 0);
    const float *key;

    if (l->shares)
        return l->shares[(key_head * l->s.m + j) * ku + c];
    key = tensor_head(&l->key, key_head, l->s.hk);
    return exp((double)key[j * ku + c] - l->lse[plane * ku + c]);
}

/* Kbar once for all queries: its exp costs more than the rest of a cell. */
static void make_shares(Lambdas *l)
{
    int64_t ku = l->s.k * l->s.u;
    double *shares = l->causal ? NULL : run_alloc(l->r, l->s.hk * l->s.m * ku, sizeof(*shares));

    for (int64_t row = 0; shares && row < l->s.hk * l->s.m; row++)
        for (int64_t c = 0; c < ku; c++)
            shares[row * ku + c] = key_share(l, row / l->s.m, 0, row % l->s.m, c);
    l->shares = shares;
}

/* q_i . (Kbar_j + E_ij), of one u; e NULL: without E. */
static double cell(const Shown *shown, const float *e, const int64_t at[3], int64_t uu)
{
    const Lambdas     *l = shown->l;
    const LambdaSizes *s = &l->s;
    const float       *q = tensor_f32(&l->q) + (at[0] * s->n + at[1]) * s->k;
    double             sum = 0;

    for (int64_t kk = 0; kk < s->k; kk++) {
        double factor = 0;

        if (shown->what & SHOW_CONTENT)
            factor += key_share(l, at[0] * s->hk / s->h, at[1], at[2], kk * s->u + uu);
        if (e && shown->what & SHOW_POSITION)
            factor += (double)e[kk * s->u + uu];
        sum += (double)q[kk] * factor;
    }
    return sum;
}

static const float *entry_if_any(const Lambdas *l, int64_t i, int64_t j)
{
    bool allowed;

    pattern_cell(l->reach, 0, i, j, &allowed);
    return allowed ? lambdas_entry(l, i, j) : NULL;
}

static void read_cells(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    const Shown *shown = view->context;

    for (int64_t x = 0; x < count; x++) {
        int64_t      j = start + x * step;
        const float *e = shown->what & SHOW_POSITION ? entry_if_any(shown->l, i, j) : NULL;

        out[x] = (float)cell(shown, e, (int64_t[]){ head, i, j }, 0);
    }
}

/* Plane (head, i), row j, columns u. */
static void read_depths(const View *view, int64_t plane, int64_t j, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Shown *shown = view->context;
    int64_t      n = shown->l->s.n, i = plane % n;
    const float *e = entry_if_any(shown->l, i, j);

    for (int64_t x = 0; x < count; x++)
        out[x] = shown->l->causal && j > i
                     ? 0
                     : (float)cell(shown, e, (int64_t[]){ plane / n, i, j }, start + x * step);
}

/* Plane (key head, i), row k, columns e. */
static void read_position(const View *view, int64_t plane, int64_t kk, int64_t start,
                          int64_t count, int64_t step, float *out)
{
    const Lambdas     *l = view->context;
    const LambdaSizes *s = &l->s;
    int64_t            i = plane % s->n;
    const float       *v = tensor_head(&l->v, plane / s->n, s->hk);
    PatternRow         row = { 0 };

    pattern_row(l->reach, 0, i, &row);
    for (int64_t x = 0; x < count; x++) {
        double sum = 0;

        for (int64_t t = 0; t < row.count && !row.failed; t++)
            for (int64_t c = 0; c < row.runs[t].count * s->u; c++) {
                int64_t j = row.runs[t].start + c / s->u * row.runs[t].step, uu = c % s->u;

                sum += (double)lambdas_entry(l, i, j)[kk * s->u + uu] *
                       (double)v[(j * s->e + start + x * step) * s->u + uu];
            }
        out[x] = (float)sum;
    }
    pattern_row_free(&row);
}

/* Plane (key head, context), row j, columns k u. */
static void read_keys(const View *view, int64_t plane, int64_t j, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Lambdas *l = view->context;
    int64_t        i = plane % l->contexts;

    for (int64_t x = 0; x < count; x++)
        out[x] = l->causal && j > i
                     ? 0
                     : (float)key_share(l, plane / l->contexts, i, j, start + x * step);
}

static View *show_parts(const Lambdas *l, const char *name, ViewKind kind, const int64_t shape[4],
                        ViewReadRun read)
{
    View *view = view_add(l->r, name, kind, DT_F32, 4, shape);

    if (view) {
        view->read = read;
        view->context = l;
        view->rows = "query channel";
        view->cols = "value channel";
        view->round = "token";
    }
    return view;
}

static void lambdas_show_weights(const Lambdas *l, const char *name, int what, const Pattern *cells)
{
    Shown *shown = run_alloc(l->r, 1, sizeof(*shown));
    View  *view;

    if (!shown)
        return;
    *shown = (Shown){ .l = l, .what = what };
    if (l->s.u > 1) {
        view = show_parts(l, "weights_u", VIEW_SIGNED,
                          (int64_t[]){ l->s.h, l->s.n, l->s.m, l->s.u }, read_depths);
        if (!view)
            return;
        view->context = shown;
        view->rows = "key";
        view->cols = "depth";
    } else {
        view = view_reader(l->r, name, VIEW_SIGNED, DT_F32, read_cells, shown, cells);
        if (!view)
            return;
    }
    view->cost = (what & SHOW_CONTENT && !l->shares ? 20 : 1) * (double)l->s.k; /* exps: 20 */
}

/* All cells (content), with those in reach of a position marked. */
static const Pattern *lambdas_cells_of(const Lambdas *l)
{
    Run         *r = l->r;
    PatternShape s = { .heads = 1, .n = l->s.n, .m = l->s.m };
    Pattern     *all = pattern_full(r->arena, s, COMPONENT_OTHER);

    all = pattern_union(r->arena, all, pattern_operand(l->reach));
    all = pattern_finish(r->arena, s, all, l->causal);
    if (!all)
        run_fail(r, ERR_NOMEM, "lambda: not enough memory for the pattern");
    return all;
}

/* Views that do not depend on the queries. */
static void show_content(const Lambdas *l, const Pattern *cells)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    View              *view;

    view_stage(r, "content lambda", -1);
    view = view_add(r, "content_lambda", VIEW_SIGNED, DT_F32, 4,
                    (int64_t[]){ s->hk, l->contexts, s->k, s->e });
    if (view) {
        view->tensor = tensor_of(DT_F32, 4, view->shape, l->content);
        view->rows = "query channel";
        view->cols = "value channel";
        view->round = "token";
    }
    view = show_parts(l, "key_softmax", VIEW_WEIGHTS,
                      (int64_t[]){ s->hk, l->contexts, s->m, s->k * s->u }, read_keys);
    if (view) {
        view->rows = "position";
        view->cols = "key channel";
    }
    if (s->u == 1)
        lambdas_show_weights(l, "weights_content", SHOW_CONTENT, cells);
    view_stage(r, NULL, -1);
}

void lambdas_show(Lambdas *l)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    const Pattern     *cells;
    View              *view;

    if (!run_wants_views(r))
        return;
    make_shares(l);
    cells = lambdas_cells_of(l);
    show_content(l, cells);
    view_pattern(r, cells, true);
    if (s->u > 1) {
        lambdas_show_weights(l, "weights_u", SHOW_CONTENT | SHOW_POSITION, cells);
    } else {
        lambdas_show_weights(l, "weights", SHOW_CONTENT | SHOW_POSITION, cells);
        lambdas_show_weights(l, "weights_position", SHOW_POSITION, l->reach);
    }
    if (cells)
        view_meaning(r, cells, "position", "content");
    view = show_parts(l, "position_lambda", VIEW_SIGNED, (int64_t[]){ s->hk, s->n, s->k, s->e },
                      read_position);
    if (view)
        view->cost = (double)s->u * (double)s->m;
}
