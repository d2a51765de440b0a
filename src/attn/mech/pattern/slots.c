/* slots.c -- ranges of tokens, what they hold, and who sees them; see slots.h. */
#include "attn/mech/pattern/slots.h"

#include "attn/pattern/pattern_node.h"
#include "attn/run.h"

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t floor_div(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

int64_t slots_count(const Slots *s)
{
    return s->lead + s->ranges * s->per;
}

int64_t slots_range(const Slots *s, int64_t slot)
{
    return (slot - s->lead) / s->per;
}

int64_t slots_start(const Slots *s, int64_t slot)
{
    return slot < s->lead ? slot : slots_range(s, slot) * s->stride;
}

int64_t slots_end(const Slots *s, int64_t slot)
{
    return slot < s->lead ? slot + 1 : min64(slots_start(s, slot) + s->size, s->n);
}

int64_t slots_tokens(const Slots *s)
{
    int64_t sum = 0;

    for (int64_t c = 0; c < s->ranges; c++)
        sum += min64(s->size, s->n - c * s->stride);
    return sum;
}

/* ---- pooling ----------------------------------------------------------------- */

/* The largest token of each range. */
static void take_largest(Run *r, const Slots *s, Tensor x, Tensor y)
{
    ArenaMark mark = arena_mark(r->arena);
    int32_t  *first = run_alloc(r, 2 * s->ranges, sizeof(*first));

    for (int64_t c = 0; c < s->ranges && !run_failed(r); c++) {
        first[c] = (int32_t)(c * s->stride);
        first[s->ranges + c] = (int32_t)min64(c * s->stride + s->size, s->n);
    }
    op_pool_windows(r, &(PoolWindows){ .x = x, .first = first, .kind = WINDOW_MAX,
                                       .end = run_failed(r) ? NULL : first + s->ranges }, y);
    arena_release(r->arena, mark);
}

Tensor slots_pool(Run *r, const Slots *s, Tensor x, Tensor share)
{
    Tensor y = run_tensor3(r, DT_F32, r->h, s->ranges, x.shape[2]);

    if (share.data)
        op_tap_sums(r, &(TapSums){ .x = x, .taps = share, .groups = 1, .step = s->stride }, y);
    else
        take_largest(r, s, x, y);
    return y;
}

/* ---- patterns ---------------------------------------------------------------- */

static const Slots *slots_of(const Pattern *p)
{
    return p->table;
}

static Pattern *slots_node(Arena *a, PatternShape shape, PatternRowFn row, const Slots *s,
                           uint8_t bits)
{
    Pattern *p = pattern_node(a, shape, row, bits);
    Slots   *kept = arena_alloc(a, 1, sizeof(*kept));

    if (!p || !kept)
        return NULL;
    *kept = *s;
    p->table = kept;
    return p;
}

/* Range c ends at min(c stride + size, n) - 1, which is >= i - reach for the last token
 * in any case, and <= i for the last row in any case. */
static void row_near(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Slots *s = slots_of(p);
    int64_t      first = floor_div(i - p->a - s->size + s->stride, s->stride);
    int64_t      end = floor_div(i + p->a, s->stride) + 1;

    (void)head;
    if (p->b && i < s->n - 1)
        end = min64(end, floor_div(i + 1 - s->size, s->stride) + 1);
    runs_push_range(row, first, end, s->ranges, p->bits);
}

Pattern *slots_near(Arena *a, PatternShape shape, const Slots *s, int64_t reach, bool causal)
{
    Pattern *p = slots_node(a, shape, row_near, s, COMPONENT_OTHER);

    if (p) {
        p->a = min64(reach, s->n);
        p->b = causal;
    }
    return p;
}

static void row_before(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Slots *s = slots_of(p);

    (void)head;
    runs_push_range(row, 0, s->lead + min64(i / s->stride, s->ranges) * s->per, p->shape.m,
                    p->bits);
}

Pattern *slots_before(Arena *a, PatternShape shape, const Slots *s)
{
    return slots_node(a, shape, row_before, s, COMPONENT_OTHER);
}

/* Ranges first..end-1: one interval where they touch, else whichever of intervals
 * and strided runs are fewer. */
static void push_ranges(const Slots *s, PatternRow *row, int64_t first, int64_t end, uint8_t bits)
{
    if (end > first && s->size >= s->stride) {
        runs_push_range(row, first * s->stride, (end - 1) * s->stride + s->size, s->n, bits);
        return;
    }
    if (end - first <= s->size) {
        for (int64_t c = first; c < end; c++)
            runs_push_range(row, c * s->stride, c * s->stride + s->size, s->n, bits);
        return;
    }
    for (int64_t at = 0; at < s->size; at++) {
        int64_t start = first * s->stride + at;
        int64_t fit = start < s->n ? (s->n - 1 - start) / s->stride + 1 : 0;

        runs_push(row, start, min64(end - first, fit), s->stride, bits);
    }
}

/* Tokens of the slots first..end-1, added to the disjoint runs from x on. */
static void add_tokens(const Slots *s, PatternRow *row, int64_t x, int64_t first, int64_t end,
                       uint8_t bits)
{
    int64_t y = row->count;

    runs_push_range(row, first, end, s->lead, bits);
    runs_union(row, x, y);
    if (end <= s->lead)
        return;
    y = row->count;
    push_ranges(s, row, slots_range(s, max64(first, s->lead)), slots_range(s, end - 1) + 1, bits);
    runs_union(row, x, y);
}

static void row_behind(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t    x = row->count;
    PatternRow seen = { 0 };

    p->x->row(p->x, head, i, &seen);
    for (int64_t r = 0; r < seen.count; r++) {
        const PatternRun *run = &seen.runs[r];
        int64_t           step = run->step, count = run->count;

        if (step == 1)
            add_tokens(slots_of(p), row, x, run->start, run->start + count, p->bits);
        for (int64_t t = 0; step > 1 && t < count; t++)
            add_tokens(slots_of(p), row, x, run->start + t * step, run->start + t * step + 1,
                       p->bits);
    }
    row->failed |= seen.failed;
    pattern_row_free(&seen);
}

Pattern *slots_behind(Arena *a, PatternShape shape, const Slots *s, Pattern *seen, uint8_t bits)
{
    Pattern *p = seen ? slots_node(a, shape, row_behind, s, bits) : NULL;

    if (p) {
        p->x = seen;
        p->per_head = seen->per_head;
    }
    return p;
}

static void row_members(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Slots *s = slots_of(p);

    (void)head;
    runs_push_range(row, slots_start(s, i), slots_end(s, i), s->n, p->bits);
}

Pattern *slots_members(Arena *a, PatternShape shape, const Slots *s)
{
    return slots_node(a, shape, row_members, s, COMPONENT_OTHER);
}
