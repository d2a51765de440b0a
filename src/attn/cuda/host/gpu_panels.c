/* gpu_panels.c -- see gpu_panels.h.
 *
 * All panels together have so many tiles of PANEL_ROWS keys; a panel that has more than its share
 * of them is cut into pieces of that share, so that neither one large group nor a few rows with
 * very many keys leave most of the device idle.
 */
#include "attn/cuda/host/gpu_panels.h"

#include <stdlib.h>

#define SHARES 8      /* of a multiprocessor */
#define LEAST_TILES 8 /* of a piece */

static int64_t tiles_of(int64_t count)
{
    return (count + PANEL_ROWS - 1) / PANEL_ROWS;
}

/* Keys of a piece. */
static int64_t share_of(const Run *r, const PanelSpan *spans, int64_t count)
{
    int64_t all = 0, shares = SHARES * gpu_kind(r)->device->info.processors;

    for (int64_t x = 0; x < count; x++)
        all += tiles_of(spans[x].rows) * tiles_of(spans[x].keys);
    all = (all + shares - 1) / (shares > 0 ? shares : 1);
    return PANEL_ROWS * (all > LEAST_TILES ? all : LEAST_TILES);
}

static int64_t pieces_of(const PanelSpan *span, int64_t share)
{
    return span->keys > share ? (span->keys + share - 1) / share : 1;
}

typedef struct Plan {
    PanelWork  work;
    RowPanel     *panel;
    PanelJoin *join;
    int64_t    share, slots;
} Plan;

static void count_span(Plan *plan, const PanelSpan *span)
{
    int64_t panels = tiles_of(span->rows), pieces = pieces_of(span, plan->share);

    plan->work.count += panels * pieces;
    plan->work.joins += pieces > 1 ? panels : 0;
    plan->slots += pieces > 1 ? panels * pieces : 0;
}

/* The pieces of PANEL_ROWS rows of a span. */
static void add_rows(Plan *plan, const PanelSpan *span, int64_t first, int64_t rows)
{
    int64_t pieces = pieces_of(span, plan->share);

    if (pieces > 1)
        plan->join[plan->work.joins++] = (PanelJoin){
            .first = first, .slot = plan->slots, .count = pieces, .head = (int32_t)span->head,
            .rows = (int32_t)rows };
    for (int64_t from = 0; from < pieces; from++) {
        int64_t start = from * plan->share, left = span->keys - start;

        plan->panel[plan->work.count++] = (RowPanel){
            .first = first, .first_key = span->first_key + start,
            .keys = left < plan->share ? left : plan->share,
            .slot = pieces > 1 ? plan->slots++ : -1, .head = (int32_t)span->head,
            .rows = (int32_t)rows, .group = (int32_t)span->group };
    }
}

static int longest_first(const void *a, const void *b)
{
    const RowPanel *x = a, *y = b;

    if (x->keys != y->keys)
        return x->keys < y->keys ? 1 : -1;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->first_key > y->first_key) - (x->first_key < y->first_key);
}

static void fill(Plan *plan, const PanelSpan *spans, int64_t count)
{
    plan->work.count = plan->work.joins = plan->slots = 0;
    for (int64_t x = 0; x < count; x++)
        for (int64_t from = 0; from < spans[x].rows; from += PANEL_ROWS)
            add_rows(plan, &spans[x], spans[x].first + from,
                     spans[x].rows - from < PANEL_ROWS ? spans[x].rows - from : PANEL_ROWS);
    qsort(plan->panel, (size_t)plan->work.count, sizeof(*plan->panel), longest_first);
}

PanelWork gpu_panels(Run *r, const PanelSpan *spans, int64_t count, int64_t width)
{
    Plan plan = { .work = { .width = width } };

    if (run_failed(r))
        return plan.work;
    plan.share = share_of(r, spans, count);
    for (int64_t x = 0; x < count; x++)
        count_span(&plan, &spans[x]);
    plan.panel = gpu_list(r, plan.work.count, sizeof(RowPanel));
    plan.join = gpu_list(r, plan.work.joins, sizeof(PanelJoin));
    plan.work.top = gpu_scratch(r, plan.slots * PANEL_ROWS, sizeof(double));
    plan.work.sum = gpu_scratch(r, plan.slots * PANEL_ROWS, sizeof(double));
    plan.work.part = gpu_scratch(r, plan.slots * PANEL_ROWS * width, sizeof(float));
    plan.work.panels = plan.panel;
    plan.work.join = plan.join;
    if (!run_failed(r))
        fill(&plan, spans, count);
    gpu_toward(r, plan.panel, plan.work.count * (int64_t)sizeof(RowPanel));
    gpu_toward(r, plan.join, plan.work.joins * (int64_t)sizeof(PanelJoin));
    return plan.work;
}

bool gpu_join(Run *r, const PanelWork *work, const PanelOut *to)
{
    JoinCall call = { .work = *work, .to = *to };

    if (run_failed(r) || work->joins == 0)
        return !run_failed(r);
    return gpu_began(r, "join", gpu_api(r)->join(&call));
}
