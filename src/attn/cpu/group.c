/* group.c -- attention inside groups: chunks, clusters, blocks.
 *
 * A group's keys and values are gathered into packed panels a step at a time
 * and go through the same tiles as pattern attention.  Rules become bit masks
 * before the softmax, so a removed cell is exactly absent; the self penalty
 * and visits change scores after it.  A part is a block of one group's queries;
 * an item of work is a run of parts, since neighbours share keys: blocks of a group
 * all, chunks those of a chunk that both see.  Groups without rules whose keys lie
 * together go another way (group_turned.c).
 */
#include "attn/cpu/cpu.h"

#include "attn/cpu/attend.h"
#include "attn/cpu/simd/kernel.h"
#include "attn/ops/weights.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define GROUP_BLOCK 96
#define STEP_KEYS (STEP_PANELS * TILE_KEYS)
#define RUN_PARTS 16 /* most neighbouring blocks of an item: they share keys */
#define ITEMS 16     /* at least so many for each thread */
#define FEW_TIMES 64 /* visits whose logarithms are kept */

/* The keys whose panel and values are in a slot. */
typedef struct Held {
    const int32_t *keys;
    int64_t        count, head; /* count 0: none */
} Held;

typedef struct GroupWorker {
    Block    block;
    /* A ring of slots: panel x of a step is in slot base + x. */
    Held     held[STEP_PANELS];
    int64_t  base;
    float   *panels;   /* [STEP_PANELS][d][TILE_KEYS] */
    float   *values;   /* [STEP_KEYS][e] */
    int32_t *key_tag, *key_at;     /* [STEP_KEYS] of the keys in the slots */
    int32_t *query_tag, *query_at; /* [GROUP_BLOCK] of this block's rows */
    int32_t *query_last; /* [GROUP_BLOCK] the last position that causality allows */
    bool    *others;   /* [GROUP_BLOCK] the row keeps a key other than itself */
    int32_t *met_tag, *met_chunk; /* [lists][STEP_KEYS] of the keys in the slots */
    int32_t *own_tag, *own_chunk; /* [lists][GROUP_BLOCK] of this block's rows */
    uint64_t *keep, *self; /* [STEP_PANELS][GROUP_BLOCK] cells that stay; keys that are the row */
    uint64_t *bits;    /* [GROUP_BLOCK] */
} GroupWorker;

typedef struct GroupJob {
    Run               *run;
    const GroupAttend *g;
    GroupResult       *out;
    int64_t            h, d, e;
    int64_t            blocks;   /* most blocks of a group */
    int64_t            parts, run_parts; /* in all, and of an item */
    bool               tags, skips, rules; /* tags, skips or any rule can remove cells */
    bool               changed;  /* scores can be altered */
    bool               self;     /* keys that are the row are not as others */
    int64_t            lists, digits; /* of the visits; binary digits of their largest number */
    float              log_times[FEW_TIMES]; /* log2 */
    GroupWorker       *workers;
} GroupJob;

/* One block of one group. */
typedef struct Part {
    int64_t        head, first, rows; /* entries of the query list */
    const int32_t *queries;           /* rows of q, [rows] */
    const int32_t *keys;              /* rows of k and v, [count] */
    int64_t        count;
} Part;

/* to[x] = list[rows[x]] of the head; an absent list is all zeros. */
static void load_list(const GroupJob *job, const Tensor *list, int64_t head, const int32_t *rows,
                      int64_t count, int32_t *to)
{
    const int32_t *from = tensor_given(list) ? tensor_head(list, head, job->h) : NULL;

    for (int64_t x = 0; x < count; x++)
        to[x] = from ? from[rows[x]] : 0;
}

/* The slot of panel x of the step. */
static int64_t slot_of(const GroupWorker *w, int64_t x)
{
    return (w->base + x) & (STEP_PANELS - 1);
}

static const int32_t *visit_list(const GroupJob *job, const Tensor *t, int64_t head, int64_t list)
{
    return (const int32_t *)tensor_head(t, head, job->h) + list * t->stride[1];
}

/* Tags and chunks, in all lists, of `count` positions; a list has `room` for them. */
static void load_visits(const GroupJob *job, const Part *p, const int32_t *at, int64_t count,
                        int64_t room, int32_t *to_tag, int32_t *to_chunk)
{
    const Visits *v = job->g->visits;

    for (int64_t x = 0; x < job->lists; x++, to_tag += room, to_chunk += room) {
        const int32_t *chunk = visit_list(job, &v->chunk, p->head, x);
        const int32_t *tag = tensor_given(&v->tag) ? visit_list(job, &v->tag, p->head, x) : NULL;

        for (int64_t j = 0; j < count; j++) {
            to_chunk[j] = chunk[at[j]];
            to_tag[j] = tag ? tag[at[j]] : 0;
        }
    }
}

/* Tags, positions and visits of keys [from, from + count) of the group, panel x of the step. */
static void load_keys(const GroupJob *job, GroupWorker *w, const Part *p, int64_t x, int64_t from,
                      int64_t count)
{
    int64_t at = slot_of(w, x) * TILE_KEYS;

    load_list(job, &job->g->key_tag, p->head, p->keys + from, count, w->key_tag + at);
    load_list(job, &job->g->key_at, p->head, p->keys + from, count, w->key_at + at);
    if (job->lists)
        load_visits(job, p, w->key_at + at, count, STEP_KEYS, w->met_tag + at, w->met_chunk + at);
}

/* Prefetches the rows that are listed. */
static PREFETCHES void fetch_rows(const Tensor *t, int64_t head, int64_t heads,
                                  const int32_t *rows, int64_t count)
{
    const float *x = tensor_head(t, head, heads);

    for (int64_t i = 0; i < count; i++)
        cpu_fetch(x + rows[i] * t->stride[1], t->shape[2]);
}

/* Prefetches the keys and values of the panel that begins at key `from`, if there is one. */
static PREFETCHES void fetch_keys(const GroupJob *job, const Part *p, int64_t from)
{
    int64_t count = min_i64(TILE_KEYS, p->count - from);

    fetch_rows(&job->g->k, p->head, job->h, p->keys + from, count);
    fetch_rows(&job->g->v, p->head, job->h, p->keys + from, count);
}

static void load_queries(const GroupJob *job, GroupWorker *w, const Part *p)
{
    const float *q = tensor_head(&job->g->q, p->head, job->h);

    block_begin(&w->block, p->rows);
    fetch_rows(&job->g->q, p->head, job->h, p->queries, p->rows);
    for (int64_t i = 0; i < p->rows; i++)
        block_query(&w->block, i, q + p->queries[i] * job->g->q.stride[1], job->g->scale);
    load_list(job, &job->g->query_tag, p->head, p->queries, p->rows, w->query_tag);
    load_list(job, &job->g->query_at, p->head, p->queries, p->rows, w->query_at);
    for (int64_t i = 0; i < p->rows; i++) /* a key at -1 always stays */
        w->query_last[i] = w->query_at[i] > -1 ? w->query_at[i] : -1;
    if (job->lists)
        load_visits(job, p, w->query_at, p->rows, GROUP_BLOCK, w->own_tag, w->own_chunk);
}

static uint64_t real_bits(int64_t count)
{
    return ~UINT64_C(0) >> (TILE_KEYS - count);
}

/* The keys among [from, from + count) of the group that row i leaves out; both lists increase. */
static uint64_t skip_bits(const GroupJob *job, const Part *p, int64_t i, int64_t from,
                          int64_t count)
{
    const Tensor  *t = &job->g->query_skip;
    int64_t        size = job->skips ? t->shape[2] : 0;
    const int32_t *keys = p->keys + from, *skip;
    uint64_t       bits = 0;

    if (!size)
        return 0;
    skip = (const int32_t *)tensor_head(t, p->head, job->h) + p->queries[i] * size;
    for (int64_t x = key_lower_bound(skip, 0, size, keys[0]);
         x < size && skip[x] <= keys[count - 1]; x++) {
        int64_t at = key_lower_bound(keys, 0, count, skip[x]);

        if (keys[at] == skip[x])
            bits |= UINT64_C(1) << at;
    }
    return bits;
}

/* Masks of panel x of the step, whose `count` keys begin at `from` in the group: what tags,
 * causality and skips allow, and which keys are the row itself. */
static void mask_panel(const GroupJob *job, GroupWorker *w, const Part *p, int64_t x, int64_t from,
                       int64_t count)
{
    const Kernel *kernel = w->block.kernel;
    uint64_t     *keep = w->keep + x * GROUP_BLOCK, real = real_bits(count);
    int64_t       at = slot_of(w, x) * TILE_KEYS;

    for (int64_t i = 0; i < GROUP_BLOCK; i++)
        keep[i] = i < p->rows ? real : 0;
    if (job->tags) {
        kernel->equal(w->key_tag + at, w->query_tag, p->rows, w->bits);
        for (int64_t i = 0; i < p->rows; i++)
            keep[i] &= w->bits[i];
    }
    if (job->g->causal) {
        kernel->at_most(w->key_at + at, w->query_last, p->rows, w->bits);
        for (int64_t i = 0; i < p->rows; i++)
            keep[i] &= w->bits[i];
    }
    for (int64_t i = 0; job->skips && i < p->rows; i++)
        keep[i] &= ~skip_bits(job, p, i, from, count);
    if (job->self)
        kernel->equal(w->key_at + at, w->query_at, p->rows, w->self + x * GROUP_BLOCK);
}

/* Which rows keep a key of panel x of the step other than themselves. */
static void note_others(GroupWorker *w, const Part *p, int64_t x)
{
    const uint64_t *keep = w->keep + x * GROUP_BLOCK, *self = w->self + x * GROUP_BLOCK;

    for (int64_t i = 0; i < p->rows; i++)
        w->others[i] |= (keep[i] & ~self[i]) != 0;
}

/* The same of a whole group of several steps, before the first. */
static void find_others(const GroupJob *job, GroupWorker *w, const Part *p)
{
    for (int64_t from = 0; from < p->count && p->count > STEP_KEYS; from += TILE_KEYS) {
        int64_t count = min_i64(TILE_KEYS, p->count - from);

        w->held[slot_of(w, 0)].count = 0;
        load_keys(job, w, p, 0, from, count);
        mask_panel(job, w, p, 0, from, count);
        note_others(w, p, 0);
    }
}

/* Masks of the `count` keys of a step. */
static void make_masks(const GroupJob *job, GroupWorker *w, const Part *p, int64_t from,
                       int64_t count)
{
    int64_t panels = ceil_div(count, TILE_KEYS);

    for (int64_t x = 0; x < panels; x++)
        mask_panel(job, w, p, x, from + x * TILE_KEYS, min_i64(TILE_KEYS, count - x * TILE_KEYS));
    if (!job->g->self_last)
        return;
    for (int64_t x = 0; x < panels && p->count <= STEP_KEYS; x++)
        note_others(w, p, x);
    for (int64_t x = 0; x < panels; x++)
        for (int64_t i = 0; i < p->rows; i++)
            w->keep[x * GROUP_BLOCK + i] &= w->others[i] ? ~w->self[x * GROUP_BLOCK + i]
                                                         : ~UINT64_C(0);
}

static bool any_kept(const uint64_t *keep)
{
    uint64_t any = 0;

    for (int r = 0; r < TILE_ROWS; r++)
        any |= keep[r];
    return any != 0;
}

/* ---- visits ----------------------------------------------------------------- */

/* How often the rows of a tile meet its keys, the panel x of the step. */
static void count_visits(const GroupJob *job, const GroupWorker *w, int64_t row, int64_t x,
                         uint64_t times[TILE_ROWS][TIMES_DIGITS])
{
    const Visits *v = job->g->visits;
    int64_t       lists = job->lists, at = slot_of(w, x) * TILE_KEYS;
    Meeting       m = { .lists = v->cross ? 1 : lists, .rows = TILE_ROWS, .ldk = STEP_KEYS,
                        .ldr = GROUP_BLOCK, .before = v->before, .after = v->after,
                        .ring = v->ring, .keep = w->keep + x * GROUP_BLOCK + row };

    for (int64_t r = 0; r < TILE_ROWS; r++)
        memset(times[r], 0, (size_t)job->digits * sizeof(times[r][0]));
    for (int64_t own = 0; own < (v->cross ? lists : 1) && !cpu_cancelled(job->run); own++)
        for (int64_t list = 0; list < (v->cross ? lists : 1); list++) {
            m.tag = tensor_given(&v->tag) && !v->cross ? w->met_tag + at : NULL;
            m.place = w->met_chunk + list * STEP_KEYS + at;
            m.own_tag = w->own_tag + row;
            m.own_place = w->own_chunk + own * GROUP_BLOCK + row;
            w->block.kernel->meet(&m, times);
        }
}

/* Subtracts log2 N from those of the scores `keep` whose number of visits N is above 1. */
static void divide_by_visits(const GroupJob *job, const uint64_t *digit, uint64_t keep,
                             float *score)
{
    uint64_t again = 0;

    for (int64_t x = 1; x < job->digits; x++)
        again |= digit[x];
    for (again &= keep; again; again &= again - 1) {
        int     j = __builtin_ctzll(again);
        int64_t times = 0;

        for (int64_t x = 0; x < job->digits; x++)
            times |= (int64_t)(digit[x] >> j & 1) << x;
        score[j] -= times < FEW_TIMES ? job->log_times[times] : log2f((float)times);
    }
}

/* Self penalty and visits of one tile of panel x of the step, in the cells that stay. */
static void change_tile(const GroupJob *job, const GroupWorker *w, const Part *p, int64_t row,
                        int64_t x, float *s)
{
    float           penalty = (float)(job->g->self_penalty * LOG2_E);
    const uint64_t *keep = w->keep + x * GROUP_BLOCK + row, *self = w->self + x * GROUP_BLOCK + row;
    uint64_t        times[TILE_ROWS][TIMES_DIGITS];

    if (job->lists)
        count_visits(job, w, row, x, times);
    for (int64_t r = 0; r < min_i64(TILE_ROWS, p->rows - row); r++) {
        float   *cell = s + r * w->block.lds;
        uint64_t own = job->g->self_penalty != 0 ? self[r] & keep[r] : 0;

        for (; own; own &= own - 1)
            cell[__builtin_ctzll(own)] -= penalty;
        if (job->lists)
            divide_by_visits(job, times[r], keep[r], cell);
    }
}

/* ---- steps ------------------------------------------------------------------ */

static bool holds(const GroupWorker *w, int64_t slot, const Part *p, int64_t from, int64_t count)
{
    const Held *held = &w->held[slot];

    return held->count == count && held->head == p->head &&
           !memcmp(held->keys, p->keys + from, (size_t)count * sizeof(*held->keys));
}

/* Chooses the slots of the step: neighbouring groups often share panels, the last of one being the
 * first of the next, and blocks of a group share all. */
static void choose_slots(GroupWorker *w, const Part *p, int64_t from, int64_t count)
{
    int64_t first = min_i64(TILE_KEYS, count);

    w->base = 0;
    while (w->base < STEP_PANELS && !holds(w, w->base, p, from, first))
        w->base++;
    w->base &= STEP_PANELS - 1;
}

/* Takes panel x of the step, but for keys and values; whether it was not held. */
static bool take_panel(const GroupJob *job, GroupWorker *w, const Part *p, int64_t x, int64_t from,
                       int64_t count)
{
    int64_t slot = slot_of(w, x);

    if (holds(w, slot, p, from, count))
        return false;
    w->held[slot] = (Held){ p->keys + from, count, p->head };
    load_keys(job, w, p, x, from, count);
    return true;
}

static void gather_panel(const GroupJob *job, GroupWorker *w, const Part *p, int64_t x, int64_t at,
                         int64_t count)
{
    const Tensor *k = &job->g->k, *v = &job->g->v;
    const float  *values = tensor_head(v, p->head, job->h);
    int64_t       slot = slot_of(w, x);

    pack_rows(tensor_head(k, p->head, job->h), k->stride[1], p->keys + at, count, job->d,
              w->panels + slot * job->d * TILE_KEYS);
    for (int64_t j = 0; j < count; j++)
        memcpy(w->values + (slot * TILE_KEYS + j) * job->e, values + p->keys[at + j] * v->stride[1],
               (size_t)job->e * sizeof(float));
}

/* Scores of all rows and panel x of the step. */
static void score_panel(const GroupJob *job, GroupWorker *w, const Part *p, int64_t x,
                        int64_t count)
{
    const float *panel = w->panels + slot_of(w, x) * job->d * TILE_KEYS;
    bool         masked = job->rules || count < TILE_KEYS;

    for (int64_t g = 0; g < w->block.groups; g++) {
        const uint64_t *keep = masked ? w->keep + x * GROUP_BLOCK + g * TILE_ROWS : NULL;
        float          *tile;

        if (keep && !any_kept(keep))
            continue;
        tile = block_score(&w->block, g, w->base + x, panel, count, keep);
        if (job->changed)
            change_tile(job, w, p, g * TILE_ROWS, x, tile);
    }
}

/* Where the first panel of the part's first step begins that no slot holds, or its end. */
static int64_t first_missing(const GroupWorker *w, const Part *p)
{
    int64_t from = 0;

    for (int64_t slot = 0; slot < STEP_PANELS && from < p->count; slot++)
        if (holds(w, slot, p, from, min_i64(TILE_KEYS, p->count - from))) {
            from += TILE_KEYS;
            slot = -1;
        }
    return from;
}

/* Prefetches piece x of `pieces` of what the part, which comes next, begins with. */
static PREFETCHES void fetch_piece(const GroupJob *job, const Part *p, int64_t missing, int64_t x,
                                   int64_t pieces)
{
    int64_t rows = ceil_div(p->rows, pieces), keys = ceil_div(TILE_KEYS, pieces);
    int64_t first = min_i64(p->rows, x * rows), at = min_i64(p->count, missing + x * keys);

    fetch_rows(&job->g->q, p->head, job->h, p->queries + first, min_i64(rows, p->rows - first));
    fetch_rows(&job->g->k, p->head, job->h, p->keys + at, min_i64(keys, p->count - at));
    fetch_rows(&job->g->v, p->head, job->h, p->keys + at, min_i64(keys, p->count - at));
}

/* Keys [from, from + count) of the group, at most STEP_KEYS.  The last step prefetches `next`. */
static void take_step(const GroupJob *job, GroupWorker *w, const Part *p, int64_t from,
                      int64_t count, const Part *next)
{
    Block  *block = &w->block;
    int64_t missing;
    bool   fresh[STEP_PANELS + 1] = { false };

    choose_slots(w, p, from, count);
    for (int64_t x = 0; x * TILE_KEYS < count; x++)
        fresh[x] = take_panel(job, w, p, x, from + x * TILE_KEYS,
                              min_i64(TILE_KEYS, count - x * TILE_KEYS));
    make_masks(job, w, p, from, count);
    for (int64_t x = 0; x * TILE_KEYS < count; x++) {
        int64_t at = from + x * TILE_KEYS, keys = min_i64(TILE_KEYS, count - x * TILE_KEYS);

        if (fresh[x])
            gather_panel(job, w, p, x, at, keys);
        if (fresh[x + 1])
            fetch_keys(job, p, at + keys);
        score_panel(job, w, p, x, keys);
    }
    missing = next ? first_missing(w, next) : 0;
    for (int64_t g = 0; g < block->groups; g++) {
        if (next)
            fetch_piece(job, next, missing, g, block->groups);
        if (block->slots[g] > 0) {
            block_soften(block, g, job->changed);
            block_mix(block, g, w->values, job->e);
        }
    }
}

static void attend_part(const GroupJob *job, GroupWorker *w, const Part *p, const Part *next)
{
    int64_t total = job->out->out.shape[1];
    float  *out = tensor_f32(&job->out->out) + (p->head * total + p->first) * job->e;
    float  *lse = tensor_f32(&job->out->lse) + p->head * total + p->first;

    load_queries(job, w, p);
    memset(w->others, 0, GROUP_BLOCK * sizeof(*w->others));
    if (job->g->self_last)
        find_others(job, w, p);
    for (int64_t from = 0; from < p->count; from += STEP_KEYS)
        take_step(job, w, p, from, min_i64(STEP_KEYS, p->count - from),
                  from + STEP_KEYS < p->count ? NULL : next);
    block_end(&w->block, p->rows);
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t at = job->g->placed ? p->queries[i] - p->first : i;

        block_row(&w->block, i, out + at * job->e, lse + at);
    }
}

/* The part `index` of the job; false: it has no rows. */
static bool part_of(const GroupJob *job, int64_t index, Part *p)
{
    const GroupAttend *g = job->g;
    int64_t            head = index / (g->groups * job->blocks);
    int64_t            group = index / job->blocks % g->groups;
    const int32_t     *starts = tensor_head(&g->query_start, head, job->h);
    const int32_t     *key_starts = tensor_head(&g->key_start, head, job->h);

    p->head = head;
    p->first = starts[group] + index % job->blocks * GROUP_BLOCK;
    p->rows = min_i64(GROUP_BLOCK, starts[group + 1] - p->first);
    p->queries = (const int32_t *)tensor_head(&g->query_index, head, job->h) + p->first;
    p->keys = (const int32_t *)tensor_head(&g->key_index, head, job->h) + key_starts[group];
    p->count = key_starts[group + 1] - key_starts[group];
    return p->rows > 0;
}

/* The first part from *index on, which becomes the next index; false: none before `end`. */
static bool next_part(const GroupJob *job, int64_t *index, int64_t end, Part *p)
{
    while (*index < end)
        if (part_of(job, (*index)++, p))
            return true;
    return false;
}

static void group_item(void *context, int64_t item, int worker)
{
    GroupJob *job = context;
    int64_t   index = item * job->run_parts, end = min_i64(index + job->run_parts, job->parts);
    Part      part, next;

    for (bool more = next_part(job, &index, end, &next); more && !cpu_cancelled(job->run);) {
        part = next;
        more = next_part(job, &index, end, &next);
        attend_part(job, &job->workers[worker], &part, more ? &next : NULL);
        run_ahead(job->run, (double)(part.rows * part.count) *
                                (double)(2 * (job->d + job->e) + FLOPS_SOFTMAX));
    }
}

static bool group_workers_init(GroupJob *job, const Kernel *kernel, int count)
{
    Arena  *arena = job->run->arena;
    int64_t size = (int64_t)sizeof(int32_t);

    job->workers = arena_zalloc(arena, count, sizeof(GroupWorker));
    for (int x = 0; job->workers && x < count; x++) {
        GroupWorker *w = &job->workers[x];

        w->panels = arena_alloc(arena, STEP_KEYS, job->d * (int64_t)sizeof(float));
        w->values = arena_alloc(arena, STEP_KEYS, job->e * (int64_t)sizeof(float));
        w->key_tag = arena_zalloc(arena, STEP_KEYS, size);
        w->key_at = arena_zalloc(arena, STEP_KEYS, size);
        w->query_tag = arena_zalloc(arena, 3 * GROUP_BLOCK, size);
        w->others = arena_alloc(arena, GROUP_BLOCK, sizeof(*w->others));
        w->keep = arena_zalloc(arena, (2 * STEP_PANELS + 1) * GROUP_BLOCK, sizeof(*w->keep));
        w->met_tag = arena_zalloc(arena, 2 * job->lists * (STEP_KEYS + GROUP_BLOCK), size);
        if (!block_init(&w->block, arena, kernel, GROUP_BLOCK, job->d, job->e) || !w->panels ||
            !w->values || !w->key_tag || !w->key_at || !w->query_tag || !w->others || !w->keep ||
            !w->met_tag)
            return false;
        w->block.ring = STEP_PANELS - 1;
        w->query_at = w->query_tag + GROUP_BLOCK;
        w->query_last = w->query_at + GROUP_BLOCK;
        w->self = w->keep + STEP_PANELS * GROUP_BLOCK;
        w->bits = w->self + STEP_PANELS * GROUP_BLOCK;
        w->met_chunk = w->met_tag + job->lists * STEP_KEYS;
        w->own_tag = w->met_chunk + job->lists * STEP_KEYS;
        w->own_chunk = w->own_tag + job->lists * GROUP_BLOCK;
    }
    return job->workers != NULL;
}

/* Most queries in one group. */
static int64_t most_queries(const GroupJob *job)
{
    int64_t most = 0;

    for (int64_t head = 0; head < job->h; head++) {
        const int32_t *starts = tensor_head(&job->g->query_start, head, job->h);

        for (int64_t x = 0; x < job->g->groups; x++)
            most = max_i64(most, starts[x + 1] - starts[x]);
    }
    return most;
}

/* Whether most keys of the first head follow the one before them in their list: others are
 * gathered in either way, and fewer times for blocks of this file.  More keys are known to that
 * way alone. */
static bool keys_follow(const GroupJob *job)
{
    const GroupAttend *g = job->g;
    const int32_t     *keys = tensor_head(&g->key_index, 0, job->h);
    int64_t            count = ((const int32_t *)tensor_head(&g->key_start, 0, job->h))[g->groups];
    int64_t            follow = 0;

    for (int64_t x = 1; x < count; x++)
        follow += keys[x] == keys[x - 1] + 1;
    return 2 * follow >= count || tensor_given(&g->more_k);
}

static bool attend_groups(GroupJob *job, const Kernel *kernel)
{
    Run    *r = job->run;
    int64_t most = most_queries(job);

    if (!job->rules && !job->changed && keys_follow(job))
        return cpu_group_turned(kernel, r, job->g, job->out, most);
    job->blocks = ceil_div(most, GROUP_BLOCK);
    job->parts = job->h * job->g->groups * job->blocks;
    job->run_parts = job->parts / (ITEMS * threads_count(r->threads));
    job->run_parts = max_i64(1, min_i64(RUN_PARTS, job->run_parts));
    if (!group_workers_init(job, kernel, threads_count(r->threads)))
        return false;
    threads_run(r->threads, ceil_div(job->parts, job->run_parts), group_item, job);
    return true;
}

static void count_digits(GroupJob *job)
{
    const Visits *v = job->g->visits;

    for (int64_t most = v && v->cross ? job->lists * job->lists : job->lists; most; most /= 2)
        job->digits++;
    for (int64_t x = 0; x < FEW_TIMES; x++)
        job->log_times[x] = log2f((float)x);
}

void cpu_group_attend_on(const Kernel *kernel, Run *r, const GroupAttend *g, GroupResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    GroupJob       job = {
        .run = r, .g = g, .out = out, .h = out->out.shape[0], .d = g->q.shape[2],
        .e = out->out.shape[2],
        .tags = tensor_given(&g->key_tag),
        .skips = tensor_given(&g->query_skip),
        .rules = tensor_given(&g->key_tag) || g->causal || g->self_last ||
                 tensor_given(&g->query_skip),
        .changed = g->self_penalty != 0 || g->visits,
        .self = g->self_last || g->self_penalty != 0,
        .lists = g->visits ? g->visits->chunk.shape[1] : 0,
    };

    count_digits(&job);
    if (!attend_groups(&job, kernel))
        run_fail(r, ERR_NOMEM, "not enough memory for tiles of grouped attention (keys of size "
                 "%lld, values of size %lld); use fewer threads or a higher limit",
                 (long long)job.d, (long long)job.e);
    arena_release(r->arena, mark);
}

void cpu_group_attend(Run *r, const GroupAttend *g, GroupResult *out)
{
    cpu_group_attend_on(kernel_at(0), r, g, out);
}
