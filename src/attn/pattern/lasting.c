/* lasting.c -- keys that stay for a while and never come back; see pattern.h.
 *
 * Which keys are there is stored for every EVERY-th query only, as runs that all stay, or all do
 * not, until the next of these queries: a row reads the runs before it and filters what is left.
 */
#include "attn/pattern/node.h"

#define EVERY 64 /* queries */

typedef struct Stay {
    int32_t start, count;
    bool    whole; /* its keys are there for all EVERY queries */
} Stay;

typedef struct Lasting {
    int64_t  blocks;
    int64_t *offset; /* [h' * blocks + 1] into runs */
    Stay    *runs;
} Lasting;

/* The run that the next key may join. */
typedef struct Open {
    int64_t start, end;
    uint8_t bits;
} Open;

static void add_keys(PatternRow *row, Open *open, int64_t start, int64_t end, uint8_t bits)
{
    if (open->end > open->start && (open->bits != bits || open->end != start)) {
        runs_push(row, open->start, open->end - open->start, 1, open->bits);
        open->end = open->start;
    }
    if (open->end == open->start)
        *open = (Open){ .start = start, .end = start, .bits = bits };
    open->end = end;
}

/* Keys [start, end), those before `near` with one set of bits, the others with another. */
static void add_split(const Pattern *p, PatternRow *row, Open *open, int64_t start, int64_t end,
                      int64_t near)
{
    int64_t middle = near < start ? start : near < end ? near : end;

    if (start < middle)
        add_keys(row, open, start, middle, p->bits);
    if (middle < end)
        add_keys(row, open, middle, end, COMPONENT_WINDOW);
}

static void row_lasting(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Lasting *l = p->table;
    const int32_t *last = tensor_head(&p->tensor, head, p->shape.heads);
    int64_t        first = i / EVERY * EVERY, near = i - p->a + 1, at;
    Open           open = { 0 };

    at = (p->per_head ? head * p->tensor.shape[0] / p->shape.heads : 0) * l->blocks + i / EVERY;
    for (const Stay *s = l->runs + l->offset[at]; s < l->runs + l->offset[at + 1]; s++)
        if (s->whole)
            add_split(p, row, &open, s->start, s->start + s->count, near);
        else
            for (int64_t j = s->start; j < s->start + s->count; j++)
                if (last[j] >= i)
                    add_split(p, row, &open, j, j + 1, near);
    for (int64_t j = first + 1; j <= i; j++)
        if (last[j] >= i)
            add_split(p, row, &open, j, j + 1, near);
    if (open.end > open.start)
        runs_push(row, open.start, open.end - open.start, 1, open.bits);
}

/* The keys of query `first` among those of an earlier one and the later ones, in `keys`; returns
 * how many. */
static int64_t still_there(const int32_t *last, int64_t first, int32_t *keys, int64_t count)
{
    int64_t kept = 0;

    for (int64_t x = 0; x < count; x++)
        if (last[keys[x]] >= first)
            keys[kept++] = keys[x];
    for (int64_t j = first - EVERY + 1; j <= first; j++)
        if (j >= 0 && last[j] >= first)
            keys[kept++] = (int32_t)j;
    return kept;
}

/* Their runs; to NULL: counted only. */
static int64_t runs_of(const int32_t *last, int64_t end, const int32_t *keys, int64_t count,
                       Stay *to)
{
    int64_t runs = 0, from = 0;

    for (int64_t x = 1; x <= count; x++) {
        bool whole = last[keys[from]] >= end;

        if (x < count && keys[x] == keys[x - 1] + 1 && (last[keys[x]] >= end) == whole)
            continue;
        if (to)
            to[runs] = (Stay){ .start = keys[from], .count = (int32_t)(x - from),
                               .whole = whole };
        runs++;
        from = x;
    }
    return runs;
}

/* Counts the runs of each block, or stores them. */
static void fill(const Pattern *p, Lasting *l, int32_t *keys)
{
    for (int64_t head = 0; head < p->tensor.shape[0]; head++) {
        const int32_t *last = tensor_head(&p->tensor, head, p->tensor.shape[0]);
        int64_t        count = 0;

        for (int64_t b = 0; b < l->blocks; b++) {
            int64_t at = head * l->blocks + b;

            count = still_there(last, b * EVERY, keys, count);
            if (l->runs)
                runs_of(last, (b + 1) * EVERY - 1, keys, count, l->runs + l->offset[at]);
            else
                l->offset[at + 1] = l->offset[at] +
                                    runs_of(last, (b + 1) * EVERY - 1, keys, count, NULL);
        }
    }
}

Pattern *pattern_lasting(Arena *a, PatternShape s, const Tensor *last, int64_t near, uint8_t bits)
{
    Lasting *l = tensor_given(last) ? arena_zalloc(a, 1, sizeof(*l)) : NULL;
    Pattern *p = l ? pattern_node(a, s, row_lasting, bits) : NULL;
    int32_t *keys = p ? arena_alloc(a, s.n, sizeof(*keys)) : NULL;
    int64_t  blocks = (s.n + EVERY - 1) / EVERY, heads;

    if (!keys)
        return NULL;
    heads = last->shape[0];
    p->tensor = *last;
    p->table = l;
    p->a = near;
    p->per_head = heads > 1;
    l->blocks = blocks;
    l->offset = arena_zalloc(a, heads * blocks + 1, sizeof(*l->offset));
    if (!l->offset)
        return NULL;
    fill(p, l, keys);
    l->runs = arena_alloc(a, l->offset[heads * blocks] + 1, sizeof(*l->runs));
    if (!l->runs)
        return NULL;
    fill(p, l, keys);
    return p;
}

/* ---- a cache over time -------------------------------------------------------------- */

/* Keys [start, end) of a row, which stay or leave together; the query's own is new. */
static void add_cached(PatternRow *row, Open *open, int64_t start, int64_t end, int64_t own,
                       uint8_t bits)
{
    if (own < start || own >= end) {
        add_keys(row, open, start, end, bits);
        return;
    }
    if (start < own)
        add_keys(row, open, start, own, bits);
    add_keys(row, open, own, own + 1, CACHE_NEW);
    if (own + 1 < end)
        add_keys(row, open, own + 1, end, bits);
}

static int64_t run_end(const PatternRun *run)
{
    return run->start + run->count;
}

/* Both rows are sorted; y walks along the next one. */
static void merge_cached(const Pattern *p, const PatternRow *now, const PatternRow *next,
                         int64_t i, PatternRow *row)
{
    int64_t own = i + p->shape.q_offset, y = 0;
    bool    last = i + 1 == p->shape.n;
    Open    open = { 0 };

    for (const PatternRun *run = now->runs; run < now->runs + now->count; run++) {
        uint8_t held = run->bits & p->bits ? CACHE_SLOT : CACHE_HELD;

        for (int64_t j = run->start, until; j < run_end(run); j = until) {
            bool stays = last;

            while (y < next->count && run_end(&next->runs[y]) <= j)
                y++;
            until = run_end(run);
            if (y < next->count) {
                int64_t end = next->runs[y].start;

                stays = end <= j;
                end = stays ? run_end(&next->runs[y]) : end;
                until = until < end ? until : end;
            }
            add_cached(row, &open, j, until, own, stays ? held : CACHE_LEAVES);
        }
    }
    if (open.end > open.start)
        runs_push(row, open.start, open.end - open.start, 1, open.bits);
}

static void row_cached(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    PatternRow now = { 0 }, next = { 0 };

    pattern_row(p->x, head, i, &now);
    if (i + 1 < p->shape.n)
        pattern_row(p->x, head, i + 1, &next);
    row->failed |= now.failed || next.failed;
    merge_cached(p, &now, &next, i, row);
    pattern_row_free(&now);
    pattern_row_free(&next);
}

Pattern *pattern_cached(Arena *a, PatternShape s, const Pattern *held, uint8_t slots)
{
    Pattern *p = held ? pattern_node(a, s, row_cached, slots) : NULL;

    if (p) {
        p->x = held;
        p->per_head = pattern_per_head(held);
    }
    return p;
}
