/* run_view.c -- how a run offers its views; see the last part of run.h. */
#include "attn/run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool run_wants_views(const Run *r)
{
    return r->spec.views && !run_failed(r);
}

/* What a tensor of this name that was fitted says of itself; NULL: none was. */
static const char *fitted_origin(const Run *r, const char *name)
{
    for (int i = 0; i < r->tensor_count; i++)
        if (r->tensors[i].origin == ORIGIN_FITTED && !strcmp(r->tensors[i].name, name))
            return "fitted";
    return NULL;
}

/* What the mechanism promises of all views of that name: a curve, names of its numbers. */
static void keep_promise(const Run *r, View *view)
{
    for (const ViewPromise *p = r->mechanism->views; p && p->name; p++)
        if (!strcmp(p->name, view->name)) {
            view->curve = p->curve.y ? &p->curve : NULL;
            view->quantity = p->quantity;
            view->categories = p->categories;
            return;
        }
}

View *view_add(Run *r, const char *name, ViewKind kind, DType dtype, int rank,
               const int64_t *shape)
{
    View *v;

    if (!run_wants_views(r))
        return NULL;
    if (r->view_count == RUN_MAX_VIEWS) {
        run_fail(r, ERR_INTERNAL, "%s offers more than %d views", r->mechanism->id,
                 RUN_MAX_VIEWS);
        return NULL;
    }
    v = &r->views[r->view_count++];
    *v = (View){ .kind = kind, .dtype = dtype, .rank = rank, .iteration = -1,
                 .rows = "query", .cols = "key" };
    snprintf(v->name, sizeof(v->name), "%s", name);
    v->origin = fitted_origin(r, name);
    keep_promise(r, v);
    for (int i = 0; i < rank; i++)
        v->shape[i] = shape[i];
    v->step = r->view_step >= 0 ? r->view_step : r->stage_count - 1;
    if (v->step >= 0) {
        v->stage = r->stages[v->step].name;
        v->iteration = r->stages[v->step].iteration;
    }
    return v;
}

void view_stage(Run *r, const char *name, int64_t iteration)
{
    r->view_step = -1;
    for (int i = 0; name && i < r->stage_count; i++)
        if (!strcmp(r->stages[i].name, name) && r->stages[i].iteration == iteration)
            r->view_step = i;
}

void view_guide(Run *r, const char *view, bool vertical, double at, const char *name)
{
    for (int i = 0; i < r->view_count; i++) {
        View *v = &r->views[i];

        if (!strcmp(v->name, view) && v->guide_count < VIEW_GUIDES_MOST)
            v->guides[v->guide_count++] = (ViewGuide){ name, at, vertical };
    }
}

static const View *joined(const Run *r, const char *name)
{
    return name ? run_view(r, name) : NULL;
}

void view_join_curves(Run *r)
{
    for (int i = 0; i < r->view_count; i++) {
        View *v = &r->views[i];

        if (!v->curve)
            continue;
        v->along = joined(r, v->curve->along);
        v->low = joined(r, v->curve->low);
        v->high = joined(r, v->curve->high);
    }
}

void run_rank(Run *r, int64_t rank, const char *name)
{
    r->rank = rank;
    r->rank_name = name;
}

void run_trace(Run *r, const char *name, double value)
{
    if (run_wants_views(r) && r->stage_count && r->trace_count < RUN_MAX_TRACES)
        r->traces[r->trace_count++] = (Trace){ name, r->stage_count - 1, value };
}

void run_say(Run *r, const char *fmt, ...)
{
    char    line[600];
    va_list args;

    if (!run_wants_views(r) || !r->stage_count)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    r->stages[r->stage_count - 1].said = arena_printf(r->arena, "%s", line);
}

void run_mark(Run *r, const char *name, double at)
{
    if (r->stage_count) {
        r->stages[r->stage_count - 1].at_name = name;
        r->stages[r->stage_count - 1].at = at;
    }
}

void run_about(Run *r, int64_t query)
{
    if (r->stage_count) {
        r->stages[r->stage_count - 1].about = true;
        r->stages[r->stage_count - 1].query = query;
    }
}

void view_tensor(Run *r, const char *name, ViewKind kind, Tensor t, const char *rows,
                 const char *cols)
{
    View *v = t.data ? view_add(r, name, kind, t.dtype, t.rank, t.shape) : NULL;

    if (!v)
        return;
    v->tensor = t;
    v->rows = rows;
    v->cols = cols;
}

static void view_made(Run *r, const char *name, Tensor t, Origin from)
{
    int         before = r->view_count;
    char        text[48];
    const char *origin;

    run_origin(r, name, from);
    view_tensor(r, name, VIEW_TENSOR, t, "row", "column");
    if (r->view_count == before)
        return;
    origin = arena_printf(r->arena, "%s", run_origin_text(r, from, text, sizeof(text)));
    if (!origin)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
    r->views[before].origin = origin;
}

void view_drawn(Run *r, const char *name, Tensor t)
{
    view_made(r, name, t, ORIGIN_DRAWN);
}

void view_fitted(Run *r, const char *name, Tensor t)
{
    view_made(r, name, t, ORIGIN_FITTED);
}

static View *add_matrix(Run *r, const char *name, ViewKind kind, DType dtype,
                        const Pattern *pattern)
{
    int64_t shape[3] = { r->h, pattern_queries(pattern), pattern_keys(pattern) };
    bool    shared = !pattern_per_head(pattern);
    View   *v = view_add(r, name, kind, dtype, shared ? 2 : 3, shared ? shape + 1 : shape);

    if (v)
        v->support = pattern;
    return v;
}

View *view_cells(Run *r, const char *name, const Pattern *pattern)
{
    return pattern && run_wants_views(r) ? add_matrix(r, name, VIEW_PATTERN, DT_U8, pattern) : NULL;
}

void view_meaning(Run *r, const Pattern *pattern, const char *window, const char *other)
{
    for (int i = 0; i < r->view_count; i++)
        if (r->views[i].support == pattern) {
            r->views[i].window = window;
            r->views[i].other = other;
        }
}

void view_pattern(Run *r, const Pattern *pattern, bool with_components)
{
    if (!pattern || !run_wants_views(r))
        return;
    add_matrix(r, "connectivity", VIEW_PATTERN, DT_U8, pattern);
    if (with_components)
        add_matrix(r, "components", VIEW_COMPONENTS, DT_U8, pattern);
}

void view_meanings(Run *r, const Pattern *pattern, const char *const *components)
{
    for (int i = 0; i < r->view_count; i++)
        if (r->views[i].support == pattern)
            r->views[i].components = components;
}

View *view_reader(Run *r, const char *name, ViewKind kind, DType dtype, ViewReadRun read,
                  const void *context, const Pattern *support)
{
    int64_t shape[3] = { r->h, support ? pattern_queries(support) : r->n,
                         support ? pattern_keys(support) : r->m };
    View   *v = view_add(r, name, kind, dtype, 3, shape);

    if (!v)
        return NULL;
    v->read = read;
    v->context = context;
    v->support = support;
    return v;
}

/* ---- pattern attention ------------------------------------------------------ */

typedef struct AttentionViews {
    const AttentionPart *parts;
    const uint8_t       *part; /* of each row; NULL: the first */
    int64_t              heads;
    RowSums              sums;  /* over the view's rows */
} AttentionViews;

static int part_number(const AttentionViews *a, int64_t i)
{
    return a->part ? a->part[i] : 0;
}

static const AttentionPart *part_of(const AttentionViews *a, int64_t i)
{
    return &a->parts[part_number(a, i)];
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const AttentionViews *a = view->context;
    const AttentionPart  *p = part_of(a, i);
    const WeightRow       row = { &p->in, &p->lse, &a->sums, a->heads, head, i - p->first, i,
                                  part_number(a, i) };

    attend_weights_run(&row, start, count, step, out);
}

static void read_bias(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const AttentionViews *a = view->context;
    const AttentionPart  *p = part_of(a, i);
    AttendInput           in = p->in;
    AttendInput           raw = { .q = in.raw_q, .k = in.raw_k, .v = in.v, .scale = in.scale };

    in.cell_term = NULL; /* no position, and not finite everywhere */
    for (int64_t c = 0; c < count; c++) {
        int64_t j = start + c * step, row = i - p->first;

        out[c] = (float)(attend_score(&in, a->heads, head, row, j) -
                         attend_score(&raw, a->heads, head, row, j));
    }
}

/* A causal run has no scores ahead, whatever a bias would be there; what some other
 * order of tokens allows is shown with the triangle. */
static void show_past(Run *r, View *bias, const Pattern *allowed)
{
    PatternShape shape = { .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };

    if (bias && r->causal)
        bias->shown = pattern_union(r->arena, pattern_causal(r->arena, shape),
                                    pattern_operand(allowed));
}

void view_attention_parts(Run *r, const Pattern *pattern, const AttentionPart *parts, int count,
                          const uint8_t *part)
{
    AttentionViews *a;
    AttentionPart  *kept;
    View           *bias;

    if (!run_wants_views(r))
        return;
    a = run_alloc(r, 1, sizeof(*a));
    kept = run_alloc(r, count, sizeof(*kept));
    if (!a || !kept)
        return;
    memcpy(kept, parts, (size_t)count * sizeof(*kept));
    *a = (AttentionViews){ .parts = kept, .part = part, .heads = r->h,
                           .sums = row_sums_of(r, r->h, count, pattern) };
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, a, pattern);
    if (!r->spec.position)
        return;
    bias = view_reader(r, "position_bias", VIEW_SIGNED, DT_F32, read_bias, a, NULL);
    if (bias) { /* every cell, allowed or not, of what may be longer than the input */
        bias->shape[1] = pattern_queries(pattern);
        bias->shape[2] = pattern_keys(pattern);
    }
    show_past(r, bias, pattern);
}

void view_attention(Run *r, const Pattern *pattern, const AttendInput *in, Tensor lse)
{
    view_attention_parts(r, pattern, &(AttentionPart){ .in = *in, .lse = lse }, 1, NULL);
}
