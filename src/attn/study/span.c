/* span.c -- see span.h. */
#include "attn/study/span.h"

#include <string.h>

#include "attn/pattern/pattern_node.h"

typedef struct Span {
    const View       *base;
    int64_t           plane, query, width;
    const PatternRun *runs; /* of the query's row, disjoint */
    int64_t           count;
} Span;

/* The part of a run that lies in one line of the image. */
static void push_line(const PatternRun *run, int64_t from, int64_t width, int64_t m,
                      PatternRow *row)
{
    int64_t first = run->start, last = run->start + (run->count - 1) * run->step;
    int64_t to = from + width < m ? from + width : m;

    if (first < from)
        first += (from - first + run->step - 1) / run->step * run->step;
    if (last >= to)
        last -= (last - to) / run->step * run->step + run->step;
    if (first <= last)
        runs_push(row, first - from, (last - first) / run->step + 1, run->step, run->bits);
}

static void row_span(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Span *s = p->table;
    int64_t     begin = row->count;

    (void)head;
    for (int64_t c = 0; c < s->count; c++)
        push_line(&s->runs[c], i * s->width, s->width, p->a, row);
    runs_tidy(row, begin);
}

static void read_span(const View *view, int64_t plane, int64_t y, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Span *s = view->context;

    (void)plane;
    view_read(s->base, s->plane, s->query, y * s->width + start, count, step, out);
}

/* Runs of the query's row; a view without support has all keys. */
static bool take_runs(Arena *a, const View *base, Span *s)
{
    PatternRow  row = { .runs = NULL };
    PatternRun *runs;

    if (base->support)
        pattern_row(base->support, base->rank == 3 ? s->plane : 0, s->query, &row);
    else
        runs_push(&row, 0, view_cols(base), 1, COMPONENT_OTHER);
    s->count = row.count;
    runs = arena_alloc(a, row.count > 0 ? row.count : 1, sizeof(*runs));
    if (runs && row.count)
        memcpy(runs, row.runs, (size_t)row.count * sizeof(*runs));
    s->runs = runs;
    runs = row.failed ? NULL : runs;
    pattern_row_free(&row);
    return runs != NULL;
}

const View *span_view(Arena *a, const View *base, int64_t plane, int64_t query, int64_t width)
{
    int64_t      keys = view_cols(base), height = (keys - 1) / width + 1;
    PatternShape shape = { .heads = 1, .n = height, .m = width };
    Span        *s = arena_alloc(a, 1, sizeof(*s));
    View        *view = arena_alloc(a, 1, sizeof(*view));
    Pattern     *cells = pattern_node(a, shape, row_span, 0);

    if (!s || !view || !cells)
        return NULL;
    *s = (Span){ .base = base, .plane = plane, .query = query, .width = width };
    if (!take_runs(a, base, s))
        return NULL;
    cells->table = s;
    cells->a = keys;
    *view = *base;
    view->rank = 2;
    view->shape[0] = height;
    view->shape[1] = width;
    view->tensor = (Tensor){ 0 };
    view->read = base->read || base->tensor.data ? read_span : NULL;
    view->context = s;
    view->support = cells;
    view->rows = "image row";
    view->cols = "image column";
    return view;
}
