/* compressed_view.c -- reading attention to slots as attention to tokens; see
 * compressed_memory.h.
 *
 *     weight of token j = sum over seen slots that hold it of p(slot) share(slot, j)
 *
 * At most two slots hold a token, so a cell costs at most two scores; nothing is kept.
 */
#include "attn/compressed_memory.h"

#include <math.h>

#include "attn/run.h"

static float weight(const CompressedViews *v, const AttendInput *in, int64_t head, int64_t i,
                    int64_t key)
{
    float score;

    attend_scores_run(in, v->heads, head, i, key, 1, 1, &score);
    return expf(score - tensor_f32(&v->lse)[head * v->lse.shape[1] + i]);
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
    const Recurrence      *c = &v->memory->recurrence;

    for (int64_t x = 0; x < count; x++) {
        int64_t   at;
        PlaceKind kind = place_at(v, i / c->segment, start + x * step, &at);

        if (kind == PLACE_EMPTY || (kind == PLACE_TOKEN && c->causal && at > i))
            out[x] = 0;
        else
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

static View *add_reader(Run *r, const char *name, ViewKind kind, DType dtype,
                        const int64_t shape[3], ViewReadRun read, const CompressedViews *v)
{
    View *view = view_add(r, name, kind, dtype, 3, shape);

    if (!view)
        return NULL;
    view->read = read;
    view->context = v;
    return view;
}

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
    view->rows = "segment";
    view->cols = "token";
}

void compressed_memory_show(Run *r, const CompressedViews *v)
{
    const Recurrence *c = &v->memory->recurrence;
    int64_t           columns = v->cmem_len + v->mem_len + v->segment, *group;
    View             *view;

    show_bands(r, v);
    view = add_reader(r, "memory", VIEW_TENSOR, DT_I32,
                      (int64_t[]){ c->count, v->cmem_len + v->mem_len, 2 }, read_memory, v);
    if (view) {
        view->rows = "slot";
        view->cols = "first token, end";
        view->round = "segment";
    }
    view = add_reader(r, "slot_weights", VIEW_WEIGHTS, DT_F32,
                      (int64_t[]){ v->heads, c->n, columns }, read_slot_weights, v);
    group = view ? run_alloc(r, 3, sizeof(*group)) : NULL;
    if (!group)
        return;
    group[0] = 0;
    group[1] = v->cmem_len;
    group[2] = v->cmem_len + v->mem_len;
    view->cols = "slot";
    if (v->cmem_len > 0 && v->mem_len > 0) {
        view->col_groups = group;
        view->col_group_count = 3;
    }
}

static void show_squeezed(Run *r, const CompressedViews *v, bool linear)
{
    const CompressedMemory *c = v->memory;
    Pattern                *members = c->slots ? compressed_memory_members(r, c) : NULL;
    ViewKind                kind = !linear ? VIEW_MEMBERSHIP : v->taps ? VIEW_SIGNED : VIEW_WEIGHTS;
    View                   *view = members ? view_add(r, "squeezed", kind, linear ? DT_F32 : DT_U8, 2,
                                                      (int64_t[]){ c->slots, c->recurrence.n })
                                           : NULL;

    if (!view)
        return;
    view->support = members;
    view->read = linear ? read_squeezed : NULL;
    view->context = v;
    view->rows = "slot";
    view->cols = "token";
}

void compressed_memory_show_weights(Run *r, const CompressedViews *v, bool linear,
                                    const Pattern *cells)
{
    bool negative = false;

    for (int64_t x = 0; v->taps && x < v->memory->ratio; x++)
        negative = negative || v->taps[x] < 0;
    show_squeezed(r, v, linear);
    if (linear)
        view_reader(r, "weights", negative ? VIEW_SIGNED : VIEW_WEIGHTS, DT_F32, read_weights, v,
                    cells);
}
