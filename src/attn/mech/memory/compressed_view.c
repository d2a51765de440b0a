/* compressed_view.c -- reading attention to slots as attention to tokens; see
 * compressed_memory.h.
 *
 *     weight of token j = sum over seen slots that hold it of p(slot) share(slot, j)
 *
 * At most two slots hold a token, so a cell costs at most two scores; nothing is kept.
 */
#include "attn/mech/memory/compressed_memory.h"

#include "attn/run.h"

static float weight(const CompressedViews *v, const AttendInput *in, int64_t head, int64_t i,
                    int64_t key)
{
    const WeightRow row = { in, &v->lse, &v->sums, v->heads, head, i, i, 0 };
    float           w;

    attend_weights_run(&row, key, 1, 1, &w);
    return w;
}

/* ---- shares ---------------------------------------------------------------------- */

/* Of token j in slot s; 0: it is not in. */
static double share(const CompressedViews *v, int64_t s, int64_t j)
{
    const CompressedMemory *c = v->memory;
    int64_t                 at = j - c->first[s];

    if (c->cover != COVER_SPREAD) {
        if (at < 0 || j >= c->end[s])
            return 0;
        return v->taps ? v->taps[at] : 1 / (double)(c->end[s] - c->first[s]);
    }
    return at < 0 || at % 2 || at / 2 >= c->ratio ? 0 : v->taps[at / 2];
}

static float token_weight(const CompressedViews *v, int64_t head, int64_t i, int64_t j)
{
    const CompressedMemory *c = v->memory;
    int64_t                 t = i / c->recurrence.segment, first, sum_to = c->slot_of[j];
    int64_t                 seen = compressed_memory_seen(c, t, &first), s = sum_to;
    double                  sum = 0;

    /* Dilated taps reach into the next group of the same batch, and no further. */
    if (c->cover == COVER_SPREAD && s > c->made[c->batch[s]])
        s--;
    for (; s <= sum_to; s++)
        if (s >= first && s < first + seen && share(v, s, j) != 0)
            sum += share(v, s, j) * (double)weight(v, &v->slots, head, i, s);
    return (float)sum;
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const CompressedViews *v = view->context;
    const Recurrence      *c = &v->memory->recurrence;
    int64_t                kept = recurrence_memory(c, i / c->segment);

    for (int64_t x = 0; x < count; x++) {
        int64_t j = start + x * step;

        out[x] = j < kept ? token_weight(v, head, i, j) : weight(v, &v->tokens, head, i, j);
    }
}

static void read_squeezed(const View *view, int64_t head, int64_t s, int64_t start, int64_t count,
                          int64_t step, float *out)
{
    const CompressedViews *v = view->context;

    (void)head;
    for (int64_t x = 0; x < count; x++)
        out[x] = (float)share(v, s, start + x * step);
}

/* ---- slots ------------------------------------------------------------------------ */

typedef enum PlaceKind { PLACE_EMPTY, PLACE_SLOT, PLACE_TOKEN } PlaceKind;

/* What segment t has at a column: slots and memory lie right-aligned, then itself. */
static PlaceKind place_at(const CompressedViews *v, int64_t t, int64_t column, int64_t *at)
{
    const CompressedMemory *c = v->memory;
    const Recurrence       *rec = &c->recurrence;
    int64_t                 b = recurrence_start(rec, t);

    if (column < v->cmem_len) {
        *at = c->made[t] - v->cmem_len + column;
        return *at < 0 ? PLACE_EMPTY : PLACE_SLOT;
    }
    *at = b + column - v->cmem_len - v->mem_len;
    return *at < recurrence_memory(rec, t) || *at >= recurrence_end(rec, t) ? PLACE_EMPTY
                                                                          : PLACE_TOKEN;
}

static void read_slot_weights(const View *view, int64_t head, int64_t i, int64_t start,
                              int64_t count, int64_t step, float *out)
{
    const CompressedViews *v = view->context;
    int64_t                t = i / v->memory->recurrence.segment, at;

    for (int64_t x = 0; x < count; x++) {
        PlaceKind kind = place_at(v, t, start + x * step, &at);

        out[x] = weight(v, kind == PLACE_SLOT ? &v->slots : &v->tokens, head, i, at);
    }
}

/* [segments, slots, 2]: the plane is a segment. */
static void read_memory(const View *view, int64_t t, int64_t slot, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const CompressedViews  *v = view->context;
    const CompressedMemory *c = v->memory;
    int64_t                 at;
    PlaceKind               kind = place_at(v, t, slot, &at);

    for (int64_t x = 0; x < count; x++) {
        bool is_end = start + x * step == 1;

        if (kind == PLACE_SLOT)
            out[x] = (float)(is_end ? c->end[at] : c->first[at]);
        else
            out[x] = kind == PLACE_EMPTY ? -1.0f : (float)(at + is_end);
    }
}

/* ---- views ------------------------------------------------------------------------ */

static void show_bands(Run *r, const CompressedViews *v)
{
    const Recurrence *c = &v->memory->recurrence;
    Pattern          *bands = compressed_memory_bands(r, v->memory);
    View             *view = bands ? view_add(r, "bands", VIEW_COMPONENTS, DT_U8, 2,
                                              (int64_t[]){ c->count, c->n })
                                   : NULL;

    if (!view)
        return;
    view->support = bands;
    view->components = recurrence_components;
    view->rows = "segment";
    view->cols = "token";
}

static void show_memory(Run *r, const CompressedViews *v)
{
    int64_t slots = v->cmem_len + v->mem_len;
    View   *view = view_add(r, "memory", VIEW_TENSOR, DT_I32, 3,
                            (int64_t[]){ v->memory->recurrence.count, slots, 2 });

    if (!view)
        return;
    view->read = read_memory;
    view->context = v;
    view->rows = "slot";
    view->cols = "first token, end";
    view->round = "segment";
    view->headless = true;
}

void compressed_memory_show(Run *r, const CompressedViews *v)
{
    Pattern *places = compressed_memory_places(r, v->memory, v->cmem_len, v->mem_len, v->segment);
    View    *view;
    int64_t *group, groups = 0;

    show_bands(r, v);
    show_memory(r, v);
    view = view_reader(r, "slot_weights", VIEW_WEIGHTS, DT_F32, read_slot_weights, v, places);
    group = view ? run_alloc(r, 3, sizeof(*group)) : NULL;
    if (!group)
        return;
    group[groups++] = 0;
    if (v->cmem_len > 0 && v->mem_len > 0)
        group[groups++] = v->cmem_len;
    if (v->cmem_len + v->mem_len > 0)
        group[groups++] = v->cmem_len + v->mem_len;
    view->cols = "slot";
    view->col_groups = group;
    view->col_group_count = groups;
}

void compressed_memory_show_squeezed(Run *r, const CompressedViews *v, bool linear, int64_t slots)
{
    const CompressedMemory *c = v->memory;
    Pattern *members = slots && run_wants_views(r) ? compressed_memory_members(r, c, slots) : NULL;
    ViewKind kind = !linear ? VIEW_MEMBERSHIP : v->taps ? VIEW_SIGNED : VIEW_WEIGHTS;
    View    *view = members ? view_add(r, "squeezed", kind, linear ? DT_F32 : DT_U8, 2,
                                       (int64_t[]){ slots, c->recurrence.n })
                            : NULL;

    if (!view)
        return;
    view->support = members;
    view->read = linear ? read_squeezed : NULL;
    view->context = v;
    view->rows = "slot";
    view->cols = "token";
}

void compressed_memory_show_weights(Run *r, const CompressedViews *v, const Pattern *cells)
{
    bool negative = false;

    for (int64_t x = 0; v->taps && x < v->memory->ratio; x++)
        negative = negative || v->taps[x] < 0;
    view_reader(r, "weights", negative ? VIEW_SIGNED : VIEW_WEIGHTS, DT_F32, read_weights, v,
                cells);
}
