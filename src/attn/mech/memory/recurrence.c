/* recurrence.c -- see recurrence.h. */
#include <math.h>

#include "attn/mech/memory/recurrence.h"
#include "attn/pattern/node.h"
#include "attn/run.h"

const char *const recurrence_components[8] = { [0] = "memory", [3] = "compressed",
                                               [4] = "own segment" };

Recurrence recurrence_of(const Run *r, int64_t segment, int64_t mem_len)
{
    Recurrence c = { .n = r->n, .segment = min_i64(segment, r->n),
                     .mem_len = min_i64(mem_len, r->n),
                     .causal = r->causal };

    c.count = (c.n + c.segment - 1) / c.segment;
    return c;
}

int64_t recurrence_start(const Recurrence *c, int64_t t)
{
    return t * c->segment;
}

int64_t recurrence_end(const Recurrence *c, int64_t t)
{
    return min_i64(c->n, (t + 1) * c->segment);
}

int64_t recurrence_memory(const Recurrence *c, int64_t t)
{
    int64_t start = recurrence_start(c, t);

    return start > c->mem_len ? start - c->mem_len : 0;
}

void recurrence_attend(Run *r, const AttendInput *segment, const Pattern *cells, int64_t first,
                       Tensor out, Tensor lse)
{
    ArenaMark    mark = arena_mark(r->arena);
    AttendResult result = op_attend(r, segment, cells);
    int64_t      rows = segment->q.shape[1], n = out.shape[1];
    Tensor       own, all; /* log-sum-exps */

    if (!run_failed(r)) {
        op_entries(r, result.out, ENTRY_CAST, 0, tensor_rows(out, first, rows));
        own = tensor_of(DT_F32, 3, (int64_t[]){ r->h, rows, 1 }, result.lse.data);
        all = tensor_of(DT_F32, 3, (int64_t[]){ r->h, n, 1 }, lse.data);
        op_entries(r, own, ENTRY_CAST, 0, tensor_rows(all, first, rows));
    }
    arena_release(r->arena, mark);
}

/* ---- one segment to look at ---------------------------------------------------- */

typedef struct SegmentView {
    AttendInput in;
    Tensor      lse; /* of the segment's rows */
    int64_t     heads;
    RowSums     sums;
} SegmentView;

bool recurrence_shows(const Run *r, int64_t t)
{
    return t < RECURRENCE_SNAPSHOTS && run_wants_views(r);
}

static void read_segment(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const SegmentView *s = view->context;
    const WeightRow    row = { &s->in, &s->lse, &s->sums, s->heads, head, i, i, 0 };

    attend_weights_run(&row, start, count, step, out);
}

void recurrence_show_segment(Run *r, const AttendInput *segment, Tensor lse, int64_t first,
                             int64_t own, const Pattern *cells)
{
    SegmentView *kept = run_wants_views(r) ? run_alloc(r, 1, sizeof(*kept)) : NULL;
    int64_t     *group = kept ? run_alloc(r, 2, sizeof(*group)) : NULL;
    View        *view;

    if (!cells)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
    if (!group || run_failed(r))
        return;
    *kept = (SegmentView){ .in = *segment, .heads = r->h,
                           .sums = row_sums_of(r, r->h, 1, cells),
                           .lse = tensor_rows(lse, first, segment->q.shape[1]) };
    view = view_reader(r, "segment_weights", VIEW_WEIGHTS, DT_F32, read_segment, kept, cells);
    group[0] = 0;
    group[1] = own;
    if (!view)
        return;
    view->cols = "remembered, then own key";
    view->col_groups = group;
    view->col_group_count = own > 0 ? 2 : 1;
}

/* ---- reach over depth ---------------------------------------------------------- */

#define DEPTH 12 /* default depth, as in the command reach */

/* The first key of every row; false: no memory. */
static bool first_keys(const Pattern *cells, int64_t n, int64_t *first)
{
    PatternRow row = { 0 };
    bool       ok = true;

    for (int64_t i = 0; i < n && ok; i++) {
        pattern_row(cells, 0, i, &row);
        ok = !row.failed;
        first[i] = ok && row.count && row.runs[0].start < i ? row.runs[0].start : i;
    }
    pattern_row_free(&row);
    return ok;
}

/* One layer more: windows only move on, so the token furthest back is that of the first key.
 * False: no query reaches further than before. */
static bool deepen(const int64_t *first, int64_t n, int64_t *oldest)
{
    bool changed = false;

    for (int64_t i = n - 1; i >= 0; i--) { /* first[i] <= i: those needed are still as they were */
        int64_t now = oldest[first[i]];

        changed = changed || now < oldest[i];
        oldest[i] = now;
    }
    return changed;
}

/* Tokens, or segments, from each query back to its oldest token. */
static void write_depth(const Recurrence *c, const int64_t *oldest, bool segments, int32_t *row)
{
    for (int64_t i = 0; i < c->n; i++)
        row[i] = (int32_t)(segments ? i / c->segment - oldest[i] / c->segment : i - oldest[i]);
}

static void show_depths(Run *r, const char *name, Tensor reach, int64_t depth)
{
    reach.shape[0] = depth;
    view_tensor(r, name, VIEW_COUNT, reach, "layers", "query");
}

void recurrence_show_reach(Run *r, const Recurrence *c, const Pattern *cells)
{
    int64_t *first = run_wants_views(r) ? run_alloc(r, c->n, sizeof(*first)) : NULL;
    int64_t *oldest = first ? run_alloc(r, c->n, sizeof(*oldest)) : NULL, depth = 0;
    Tensor   reach[2];

    if (!oldest)
        return;
    for (int x = 0; x < 2; x++)
        reach[x] = run_tensor2(r, DT_I32, DEPTH + 1, c->n);
    if (!cells || run_failed(r) || !first_keys(cells, c->n, first)) {
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
        return;
    }
    for (int64_t i = 0; i < c->n; i++)
        oldest[i] = i;
    do {
        for (int x = 0; x < 2; x++)
            write_depth(c, oldest, x == 1, tensor_i32(&reach[x]) + depth * c->n);
        depth++;
    } while (depth <= DEPTH && deepen(first, c->n, oldest));
    show_depths(r, "reach_tokens", reach[0], depth);
    show_depths(r, "reach_segments", reach[1], depth);
}

/* When slots come and go, and what is in them; see the header. */

/* ---- the plan ------------------------------------------------------------------- */

/* Memory of a segment begins where the memory of the one before ended its batch. */
static int64_t recurrence_batch_end(const Recurrence *c, int64_t t)
{
    int64_t end = recurrence_end(c, t);

    return end > c->mem_len ? end - c->mem_len : 0;
}

bool compressed_memory_batch(const CompressedMemory *c, int64_t t, int64_t *first, int64_t *end)
{
    *first = recurrence_memory(&c->recurrence, t);
    *end = recurrence_batch_end(&c->recurrence, t);
    return *end > *first && c->cmem_len > 0;
}

static int64_t count_slots(CompressedMemory *c)
{
    int64_t slots = 0, first, end;

    for (int64_t t = 0; t < c->recurrence.count; t++) {
        c->made[t] = slots;
        if (compressed_memory_batch(c, t, &first, &end))
            slots += (end - first - 1) / c->ratio + 1;
    }
    c->made[c->recurrence.count] = slots;
    return slots;
}

static void place_slots(CompressedMemory *c)
{
    int64_t first, end;

    for (int64_t i = 0; i < c->recurrence.n; i++)
        c->slot_of[i] = -1;
    for (int64_t t = 0; t < c->recurrence.count; t++) {
        if (!compressed_memory_batch(c, t, &first, &end))
            continue;
        for (int64_t s = c->made[t]; s < c->made[t + 1]; s++) {
            c->batch[s] = t;
            c->first[s] = first + (s - c->made[t]) * c->ratio;
            c->end[s] = end - c->first[s] < c->ratio ? end : c->first[s] + c->ratio;
            for (int64_t i = c->first[s]; i < c->end[s] && c->cover != COVER_ONE; i++)
                c->slot_of[i] = s;
        }
    }
}

CompressedMemory *compressed_memory_new(Run *r, Recurrence recurrence, SlotCover cover,
                                        int64_t cmem_len, int64_t ratio)
{
    CompressedMemory *c = run_alloc(r, 1, sizeof(*c));

    if (!c)
        return NULL;
    *c = (CompressedMemory){ .recurrence = recurrence, .cover = cover, .cmem_len = cmem_len,
                             .ratio = min_i64(ratio, recurrence.n) };
    c->made = run_alloc(r, recurrence.count + 1, sizeof(*c->made));
    c->slot_of = run_alloc(r, recurrence.n, sizeof(*c->slot_of));
    if (run_failed(r))
        return NULL;
    c->slots = count_slots(c);
    c->batch = run_alloc(r, c->slots, sizeof(*c->batch));
    c->first = run_alloc(r, c->slots, sizeof(*c->first));
    c->end = run_alloc(r, c->slots, sizeof(*c->end));
    if (run_failed(r))
        return NULL;
    place_slots(c);
    return c;
}

void compressed_memory_choose(CompressedMemory *c, int64_t slot, int64_t token)
{
    c->first[slot] = token;
    c->end[slot] = token + 1;
    c->slot_of[token] = slot;
}

int64_t compressed_memory_seen(const CompressedMemory *c, int64_t t, int64_t *first)
{
    *first = c->made[t] > c->cmem_len ? c->made[t] - c->cmem_len : 0;
    return c->made[t] - *first;
}

/* ---- patterns ------------------------------------------------------------------- */

/* Tokens first, first + 2, ... of slots s, s + by, ... up to `last`, without gaps. */
static void push_spread(const CompressedMemory *c, int64_t s, int64_t last, int64_t by,
                        PatternRow *row)
{
    int64_t first = c->first[s], top = c->first[last - (last - s) % by] + 2 * (c->ratio - 1);
    int64_t end = recurrence_batch_end(&c->recurrence, c->batch[s]) - 1;

    runs_push(row, first, (min_i64(top, end) - first) / 2 + 1, 2, COMPONENT_STRIDED);
}

/* Slots of one batch: those of even distance go on where the one before ended; with an even
 * ratio all do. */
static void push_spread_slots(const CompressedMemory *c, int64_t s, int64_t last, PatternRow *row)
{
    int64_t by = c->ratio % 2 ? 2 : 1;

    for (int64_t x = s; x < s + by && x <= last; x++)
        push_spread(c, x, last, by, row);
}

/* The tokens of slots [s, end). */
static void push_slots(const CompressedMemory *c, int64_t s, int64_t end, PatternRow *row)
{
    while (s < end) {
        int64_t last = s, batch = c->batch[s];

        if (c->cover == COVER_SPREAD)
            last = min_i64(c->made[batch + 1], end) - 1;
        else
            while (last + 1 < end && c->first[last + 1] == c->end[last])
                last++;
        if (c->cover == COVER_SPREAD)
            push_spread_slots(c, s, last, row);
        else
            runs_push(row, c->first[s], c->end[last] - c->first[s], 1, COMPONENT_STRIDED);
        s = last + 1;
    }
}

static void push_segment(const CompressedMemory *c, int64_t t, int64_t end, PatternRow *row)
{
    int64_t b = recurrence_start(&c->recurrence, t), a = recurrence_memory(&c->recurrence, t);
    int64_t first, seen = compressed_memory_seen(c, t, &first);

    push_slots(c, first, first + seen, row);
    if (b > a)
        runs_push(row, a, b - a, 1, COMPONENT_WINDOW);
    runs_push(row, b, end - b, 1, COMPONENT_BLOCK);
}

static void cells_row(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const CompressedMemory *c = p->table;
    int64_t                 t = i / c->recurrence.segment;

    (void)head;
    push_segment(c, t, c->recurrence.causal ? i + 1 : recurrence_end(&c->recurrence, t), row);
}

static void bands_row(const Pattern *p, int64_t head, int64_t t, PatternRow *row)
{
    const CompressedMemory *c = p->table;

    (void)head;
    push_segment(c, t, recurrence_end(&c->recurrence, t), row);
}

static void members_row(const Pattern *p, int64_t head, int64_t s, PatternRow *row)
{
    (void)head;
    push_slots(p->table, s, s + 1, row);
}

/* Columns: cmem_len (p->a) slots and mem_len (p->b) tokens, right-aligned, then the segment. */
static void places_row(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const CompressedMemory *c = p->table;
    int64_t                 t = i / c->recurrence.segment, b = recurrence_start(&c->recurrence, t);
    int64_t                 first, seen = compressed_memory_seen(c, t, &first), own = p->a + p->b;
    int64_t kept = b - recurrence_memory(&c->recurrence, t);

    (void)head;
    if (seen)
        runs_push(row, p->a - seen, seen, 1, COMPONENT_STRIDED);
    if (kept)
        runs_push(row, own - kept, kept, 1, COMPONENT_WINDOW);
    runs_push(row, own, (c->recurrence.causal ? i + 1 : recurrence_end(&c->recurrence, t)) - b, 1,
              COMPONENT_BLOCK);
}

static void tokens_row(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Recurrence *c = &((const CompressedMemory *)p->table)->recurrence;
    int64_t           t = i / c->segment, a = recurrence_memory(c, t);

    (void)head;
    runs_push(row, a, (c->causal ? i + 1 : recurrence_end(c, t)) - a, 1, COMPONENT_BLOCK);
}

static void slots_row(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const CompressedMemory *c = p->table;
    int64_t first, seen = compressed_memory_seen(c, i / c->recurrence.segment, &first);

    (void)head;
    if (seen)
        runs_push(row, first, seen, 1, COMPONENT_STRIDED);
}

static Pattern *recurrence_pattern_of(Run *r, const CompressedMemory *c, int64_t rows,
                                      PatternRowFn fn)
{
    PatternShape s = { .heads = r->h, .n = rows, .m = c ? c->recurrence.n : 0 };
    Pattern     *p = c && !run_failed(r) ? pattern_node(r->arena, s, fn, COMPONENT_STRIDED) : NULL;

    if (p)
        p->table = c;
    else
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a pattern", r->mechanism->id);
    return p;
}

Pattern *compressed_memory_cells(Run *r, const CompressedMemory *c)
{
    return recurrence_pattern_of(r, c, c->recurrence.n, cells_row);
}

/* The same, segments x n: what each segment can read. */
static Pattern *memory_bands(Run *r, const CompressedMemory *c)
{
    return recurrence_pattern_of(r, c, c->recurrence.count, bands_row);
}

/* slots x n: the tokens of each of the first `slots`. */
static Pattern *memory_members(Run *r, const CompressedMemory *c, int64_t slots)
{
    return recurrence_pattern_of(r, c, slots, members_row);
}

/* n x (cmem_len + mem_len + segment): the slots a query sees, the tokens in memory (both
 * right-aligned), and those of its segment. */
static Pattern *memory_places(Run *r, const CompressedMemory *c, int64_t cmem_len, int64_t mem_len,
                              int64_t segment)
{
    Pattern *p = recurrence_pattern_of(r, c, c->recurrence.n, places_row);

    if (!p)
        return NULL;
    p->shape.m = cmem_len + mem_len + segment;
    p->a = cmem_len;
    p->b = mem_len;
    return p;
}

Pattern *compressed_memory_tokens(Run *r, const CompressedMemory *c)
{
    return recurrence_pattern_of(r, c, c->recurrence.n, tokens_row);
}

Pattern *compressed_memory_slots(Run *r, const CompressedMemory *c)
{
    Pattern *p = recurrence_pattern_of(r, c, c->recurrence.n, slots_row);

    if (p)
        p->shape.m = c->slots;
    return p;
}

/* Reading attention to slots as attention to tokens; see
 * recurrence.h.
 *
 *     weight of token j = sum over seen slots that hold it of p(slot) share(slot, j)
 *
 * At most two slots hold a token, so a cell costs at most two scores; nothing is kept.
 */

static float recurrence_weight(const CompressedViews *v, const AttendInput *in, int64_t head,
                               int64_t i, int64_t key)
{
    const WeightRow row = { in, &v->lse, &v->sums, v->heads, head, i, i, 0 };
    float           w;

    attend_weights_run(&row, key, 1, 1, &w);
    return w;
}

/* ---- shares ---------------------------------------------------------------------- */

/* Share of token j in slot s; 0: not in the slot. */
static double recurrence_share(const CompressedViews *v, int64_t s, int64_t j)
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
        if (s >= first && s < first + seen && recurrence_share(v, s, j) != 0)
            sum += recurrence_share(v, s, j) * (double)recurrence_weight(v, &v->slots, head, i, s);
    return (float)sum;
}

static void recurrence_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                    int64_t count, int64_t step, float *out)
{
    const CompressedViews *v = view->context;
    const Recurrence      *c = &v->memory->recurrence;
    int64_t                kept = recurrence_memory(c, i / c->segment);

    for (int64_t x = 0; x < count; x++) {
        int64_t j = start + x * step;

        out[x] = j < kept ? token_weight(v, head, i, j)
                          : recurrence_weight(v, &v->tokens, head, i, j);
    }
}

static void read_squeezed(const View *view, int64_t head, int64_t s, int64_t start, int64_t count,
                          int64_t step, float *out)
{
    const CompressedViews *v = view->context;

    (void)head;
    for (int64_t x = 0; x < count; x++)
        out[x] = (float)recurrence_share(v, s, start + x * step);
}

/* ---- slots ------------------------------------------------------------------------ */

typedef enum PlaceKind { PLACE_EMPTY, PLACE_SLOT, PLACE_TOKEN } PlaceKind;

/* Component of segment t at a column: slots and memory are right-aligned, then its own tokens. */
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

        out[x] = recurrence_weight(v, kind == PLACE_SLOT ? &v->slots : &v->tokens, head, i, at);
    }
}

/* The token after the last that the slot reads.  Dilated taps that do not meet the end of the batch
 * reach beyond their group. */
static int64_t slot_end(const CompressedMemory *c, int64_t slot)
{
    int64_t first, end;

    if (c->cover != COVER_SPREAD)
        return c->end[slot];
    compressed_memory_batch(c, c->batch[slot], &first, &end);
    return c->first[slot] + 2 * min_i64(c->ratio - 1, (end - 1 - c->first[slot]) / 2) + 1;
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
            out[x] = (float)(is_end ? slot_end(c, at) : c->first[at]);
        else
            out[x] = kind == PLACE_EMPTY ? -1.0f : (float)(at + is_end);
    }
}

/* ---- views ------------------------------------------------------------------------ */

static void show_bands(Run *r, const CompressedViews *v)
{
    const Recurrence *c = &v->memory->recurrence;
    Pattern          *bands = memory_bands(r, v->memory);
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

static void recurrence_show_memory(Run *r, const CompressedViews *v)
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
    Pattern *places = memory_places(r, v->memory, v->cmem_len, v->mem_len, v->segment);
    View    *view;
    int64_t *group, groups = 0;

    show_bands(r, v);
    recurrence_show_memory(r, v);
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
    Pattern *members = slots && run_wants_views(r) ? memory_members(r, c, slots) : NULL;
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
    view_reader(r, "weights", negative ? VIEW_SIGNED : VIEW_WEIGHTS, DT_F32,
                recurrence_read_weights, v,
                cells);
}
