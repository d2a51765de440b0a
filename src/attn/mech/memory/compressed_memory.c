/* compressed_memory.c -- when slots come and go, and what is in them; see the header. */
#include "attn/mech/memory/compressed_memory.h"

#include "attn/pattern/pattern_node.h"
#include "attn/run.h"

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the plan ------------------------------------------------------------------- */

/* Memory of a segment begins where the memory of the one before ended its batch. */
static int64_t batch_end(const Recurrence *c, int64_t t)
{
    int64_t end = recurrence_end(c, t);

    return end > c->mem_len ? end - c->mem_len : 0;
}

bool compressed_memory_batch(const CompressedMemory *c, int64_t t, int64_t *first, int64_t *end)
{
    *first = recurrence_memory(&c->recurrence, t);
    *end = batch_end(&c->recurrence, t);
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
                             .ratio = min64(ratio, recurrence.n) };
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
    int64_t end = batch_end(&c->recurrence, c->batch[s]) - 1;

    runs_push(row, first, (min64(top, end) - first) / 2 + 1, 2, COMPONENT_STRIDED);
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
            last = min64(c->made[batch + 1], end) - 1;
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

static Pattern *pattern_of(Run *r, const CompressedMemory *c, int64_t rows, PatternRowFn fn)
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
    return pattern_of(r, c, c->recurrence.n, cells_row);
}

Pattern *compressed_memory_bands(Run *r, const CompressedMemory *c)
{
    return pattern_of(r, c, c->recurrence.count, bands_row);
}

Pattern *compressed_memory_members(Run *r, const CompressedMemory *c, int64_t slots)
{
    return pattern_of(r, c, slots, members_row);
}

Pattern *compressed_memory_places(Run *r, const CompressedMemory *c, int64_t cmem_len,
                                  int64_t mem_len, int64_t segment)
{
    Pattern *p = pattern_of(r, c, c->recurrence.n, places_row);

    if (!p)
        return NULL;
    p->shape.m = cmem_len + mem_len + segment;
    p->a = cmem_len;
    p->b = mem_len;
    return p;
}

Pattern *compressed_memory_tokens(Run *r, const CompressedMemory *c)
{
    return pattern_of(r, c, c->recurrence.n, tokens_row);
}

Pattern *compressed_memory_slots(Run *r, const CompressedMemory *c)
{
    Pattern *p = pattern_of(r, c, c->recurrence.n, slots_row);

    if (p)
        p->shape.m = c->slots;
    return p;
}
