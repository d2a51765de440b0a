/* group.c -- attention inside groups: chunks, clusters, blocks.
 *
 * A group's keys and values are gathered into packed panels a step at a time
 * and go through the same tiles as pattern attention.  Rules become bit masks
 * before the softmax, so a removed cell is exactly absent; the self penalty
 * and visits change scores after it.  An item of work is a block of
 * one group's queries.  Groups without rules whose keys lie together go another way
 * (group_turned.c).
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

typedef struct GroupWorker {
    Block    block;
    float   *panels;   /* [STEP_PANELS][d][TILE_KEYS] */
    float   *values;   /* [STEP_KEYS][e] */
    int32_t *key_tag, *key_at;     /* [STEP_KEYS] of this step's keys */
    int32_t *query_tag, *query_at; /* [GROUP_BLOCK] of this block's rows */
    bool    *others;   /* [GROUP_BLOCK] the row keeps a key other than itself */
    int32_t *met_tag, *met_chunk; /* [lists][STEP_KEYS] of this step's keys, for visits */
    uint64_t *met;     /* [pairs of lists] */
    uint64_t *keep;    /* [STEP_PANELS][GROUP_BLOCK] */
} GroupWorker;

typedef struct GroupJob {
    Run               *run;
    const GroupAttend *g;
    GroupResult       *out;
    int64_t            h, d, e;
    int64_t            blocks;   /* most blocks of a group */
    bool               tags, skips, rules; /* tags, skips or any rule can remove cells */
    bool               changed;  /* scores can be altered */
    int64_t            lists, pairs; /* of the visits */
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

/* Tags and positions of keys [from, from + count) of the group. */
static void load_keys(const GroupJob *job, GroupWorker *w, const Part *p, int64_t from,
                      int64_t count)
{
    load_list(job, &job->g->key_tag, p->head, p->keys + from, count, w->key_tag);
    load_list(job, &job->g->key_at, p->head, p->keys + from, count, w->key_at);
}

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
    fetch_keys(job, p, 0);
    for (int64_t i = 0; i < p->rows; i++)
        block_query(&w->block, i, q + p->queries[i] * job->g->q.stride[1], job->g->scale);
    load_list(job, &job->g->query_tag, p->head, p->queries, p->rows, w->query_tag);
    load_list(job, &job->g->query_at, p->head, p->queries, p->rows, w->query_at);
}

static uint64_t real_bits(int64_t count)
{
    return ~UINT64_C(0) >> (TILE_KEYS - count);
}

/* The keys of a panel (from `at` in the lists of the step) that tags and causality allow row i,
 * itself included. */
static uint64_t stay_bits(const GroupJob *job, const GroupWorker *w, int64_t i, int64_t at)
{
    const Kernel *kernel = w->block.kernel;
    int32_t       own = w->query_at[i];
    uint64_t      bits = ~UINT64_C(0);

    if (job->tags)
        bits &= kernel->equal(w->key_tag + at, w->query_tag[i]);
    if (job->g->causal) /* a key at -1 always stays */
        bits &= kernel->at_most(w->key_at + at, own > -1 ? own : -1);
    return bits;
}

static uint64_t self_bits(const GroupWorker *w, int64_t i, int64_t at)
{
    return w->block.kernel->equal(w->key_at + at, w->query_at[i]);
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

/* Which rows keep a key other than themselves, over the whole group. */
static void find_others(const GroupJob *job, GroupWorker *w, const Part *p)
{
    for (int64_t i = 0; i < p->rows; i++)
        w->others[i] = false;
    for (int64_t from = 0; from < p->count; from += TILE_KEYS) {
        int64_t count = min_i64(TILE_KEYS, p->count - from);

        load_keys(job, w, p, from, count);
        for (int64_t i = 0; i < p->rows; i++)
            w->others[i] |= (stay_bits(job, w, i, 0) & ~self_bits(w, i, 0) & real_bits(count) &
                             ~skip_bits(job, p, i, from, count)) != 0;
    }
}

/* Masks of panel x of the step; false: every cell of every row stays. */
static bool make_masks(const GroupJob *job, GroupWorker *w, const Part *p, int64_t x, int64_t from,
                       int64_t count)
{
    uint64_t *keep = w->keep + x * GROUP_BLOCK;
    int64_t   at = x * TILE_KEYS;

    if (!job->rules && count == TILE_KEYS)
        return false;
    for (int64_t i = 0; i < w->block.groups * TILE_ROWS; i++) {
        if (i >= p->rows) {
            keep[i] = 0;
            continue;
        }
        keep[i] = stay_bits(job, w, i, at) & real_bits(count) &
                  ~skip_bits(job, p, i, from, count);
        if (job->g->self_last && w->others[i])
            keep[i] &= ~self_bits(w, i, at);
    }
    return true;
}

static bool any_kept(const uint64_t *keep)
{
    uint64_t any = 0;

    for (int r = 0; r < TILE_ROWS; r++)
        any |= keep[r];
    return any != 0;
}

/* ---- visits ----------------------------------------------------------------- */

static const int32_t *visit_list(const GroupJob *job, const Tensor *t, int64_t head, int64_t list)
{
    return (const int32_t *)tensor_head(t, head, job->h) + list * t->stride[1];
}

/* Tags and chunks, in all lists, of the keys of the step, whose positions load_keys has set. */
static void load_visits(const GroupJob *job, GroupWorker *w, const Part *p, int64_t count)
{
    const Visits *v = job->g->visits;

    for (int64_t x = 0; x < job->lists; x++) {
        const int32_t *chunk = visit_list(job, &v->chunk, p->head, x);
        const int32_t *tag = tensor_given(&v->tag) ? visit_list(job, &v->tag, p->head, x) : NULL;

        for (int64_t j = 0; j < count; j++) {
            w->met_chunk[x * STEP_KEYS + j] = chunk[w->key_at[j]];
            w->met_tag[x * STEP_KEYS + j] = tag ? tag[w->key_at[j]] : 0;
        }
    }
}

/* The keys of a panel whose chunk is in [first, last]. */
static uint64_t window_bits(const Kernel *kernel, const int32_t *chunk, int64_t first,
                            int64_t last)
{
    int32_t high = (int32_t)max_i64(INT32_MIN, min_i64(last, INT32_MAX));
    int32_t low = (int32_t)max_i64(INT32_MIN, min_i64(first - 1, INT32_MAX));

    return kernel->at_most(chunk, high) & ~kernel->at_most(chunk, low);
}

/* The keys from `at` in the step that row i, in list x, meets in list y. */
static uint64_t met_bits(const GroupJob *job, const GroupWorker *w, const Part *p, int64_t i,
                         int64_t x, int64_t y, int64_t at)
{
    const Visits  *v = job->g->visits;
    const Kernel  *kernel = w->block.kernel;
    const int32_t *chunk = w->met_chunk + y * STEP_KEYS + at;
    int32_t        own = w->query_at[i];
    int64_t        mine = visit_list(job, &v->chunk, p->head, x)[own];
    int64_t        first = mine - v->before, last = mine + v->after;
    uint64_t       bits = ~UINT64_C(0), seen;

    if (tensor_given(&v->tag) && !v->cross)
        bits = kernel->equal(w->met_tag + y * STEP_KEYS + at,
                             visit_list(job, &v->tag, p->head, x)[own]);
    if (!bits)
        return 0;
    seen = window_bits(kernel, chunk, first, last);
    if (v->ring)
        seen |= window_bits(kernel, chunk, first - v->ring, last - v->ring) |
                window_bits(kernel, chunk, first + v->ring, last + v->ring);
    return bits & seen;
}

/* Subtracts log2 N from those of `count` scores whose number of visits N is above 1. */
static void divide_by_visits(const GroupJob *job, GroupWorker *w, const Part *p, int64_t i,
                             int64_t at, int64_t count, float *score)
{
    uint64_t once = 0, again = 0;
    int64_t  pairs = 0;

    for (int64_t x = 0; x < job->lists && !cpu_cancelled(job->run); x++)
        for (int64_t y = 0; y < job->lists; y++)
            if (x == y || job->g->visits->cross) {
                uint64_t met = met_bits(job, w, p, i, x, y, at);

                again |= once & met;
                once |= met;
                w->met[pairs++] = met;
            }
    for (again &= real_bits(count); again; again &= again - 1) {
        int     j = __builtin_ctzll(again);
        int64_t times = 0;

        for (int64_t x = 0; x < pairs; x++)
            times += (int64_t)(w->met[x] >> j & 1);
        score[j] -= log2f((float)times);
    }
}

/* Self penalty and visits of one tile; `count` keys from `at` in the step. */
static void change_tile(const GroupJob *job, GroupWorker *w, const Part *p, int64_t row, int64_t at,
                        int64_t count, float *s)
{
    float penalty = (float)(job->g->self_penalty * LOG2_E);

    for (int64_t r = 0; r < min_i64(TILE_ROWS, p->rows - row); r++) {
        float   *cell = s + r * w->block.lds;
        uint64_t self = job->g->self_penalty != 0 ? self_bits(w, row + r, at) & real_bits(count)
                                                  : 0;

        for (; self; self &= self - 1)
            cell[__builtin_ctzll(self)] -= penalty;
        if (job->lists)
            divide_by_visits(job, w, p, row + r, at, count, cell);
    }
}

/* ---- steps ------------------------------------------------------------------ */

static void gather_panel(const GroupJob *job, GroupWorker *w, const Part *p, int64_t x, int64_t at,
                         int64_t count)
{
    const Tensor *k = &job->g->k, *v = &job->g->v;
    const float  *values = tensor_head(v, p->head, job->h);

    pack_rows(tensor_head(k, p->head, job->h), k->stride[1], p->keys + at, count, job->d,
              w->panels + x * job->d * TILE_KEYS);
    for (int64_t j = 0; j < count; j++)
        memcpy(w->values + (x * TILE_KEYS + j) * job->e, values + p->keys[at + j] * v->stride[1],
               (size_t)job->e * sizeof(float));
}

/* Keys [from, from + count) of the group, at most STEP_KEYS. */
static void take_step(const GroupJob *job, GroupWorker *w, const Part *p, int64_t from,
                      int64_t count)
{
    Block *block = &w->block;

    load_keys(job, w, p, from, count);
    load_visits(job, w, p, count);
    for (int64_t x = 0; x * TILE_KEYS < count; x++) {
        int64_t at = from + x * TILE_KEYS, keys = min_i64(TILE_KEYS, count - x * TILE_KEYS);
        bool    masked = make_masks(job, w, p, x, at, keys);

        gather_panel(job, w, p, x, at, keys);
        fetch_keys(job, p, at + keys);
        for (int64_t g = 0; g < block->groups; g++) {
            const uint64_t *keep = masked ? w->keep + x * GROUP_BLOCK + g * TILE_ROWS : NULL;
            float          *tile;

            if (keep && !any_kept(keep))
                continue;
            tile = block_score(block, g, x, w->panels + x * job->d * TILE_KEYS, keys, keep);
            if (job->changed)
                change_tile(job, w, p, g * TILE_ROWS, x * TILE_KEYS, keys, tile);
        }
    }
    for (int64_t g = 0; g < block->groups; g++)
        if (block->slots[g] > 0) {
            block_soften(block, g, job->changed);
            block_mix(block, g, w->values, job->e);
        }
}

static void attend_part(const GroupJob *job, GroupWorker *w, const Part *p)
{
    int64_t total = job->out->out.shape[1];
    float  *out = tensor_f32(&job->out->out) + (p->head * total + p->first) * job->e;
    float  *lse = tensor_f32(&job->out->lse) + p->head * total + p->first;

    load_queries(job, w, p);
    if (job->g->self_last)
        find_others(job, w, p);
    for (int64_t from = 0; from < p->count; from += STEP_KEYS)
        take_step(job, w, p, from, min_i64(STEP_KEYS, p->count - from));
    block_end(&w->block, p->rows);
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t at = job->g->placed ? p->queries[i] - p->first : i;

        block_row(&w->block, i, out + at * job->e, lse + at);
    }
}

static void group_item(void *context, int64_t item, int worker)
{
    GroupJob               *job = context;
    const GroupAttend *g = job->g;
    int64_t            head = item / (g->groups * job->blocks);
    int64_t            group = item / job->blocks % g->groups;
    const int32_t     *starts = tensor_head(&g->query_start, head, job->h);
    const int32_t     *key_starts = tensor_head(&g->key_start, head, job->h);
    int64_t            first = starts[group] + item % job->blocks * GROUP_BLOCK;
    Part               part = { .head = head, .first = first };

    part.rows = min_i64(GROUP_BLOCK, starts[group + 1] - first);
    if (part.rows <= 0 || cpu_cancelled(job->run))
        return;
    part.queries = (const int32_t *)tensor_head(&g->query_index, head, job->h) + first;
    part.keys = (const int32_t *)tensor_head(&g->key_index, head, job->h) + key_starts[group];
    part.count = key_starts[group + 1] - key_starts[group];
    attend_part(job, &job->workers[worker], &part);
    run_ahead(job->run, (double)(part.rows * part.count) *
                            (double)(2 * (job->d + job->e) + FLOPS_SOFTMAX));
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
        w->query_tag = arena_alloc(arena, GROUP_BLOCK, size);
        w->query_at = arena_alloc(arena, GROUP_BLOCK, size);
        w->others = arena_alloc(arena, GROUP_BLOCK, sizeof(*w->others));
        w->keep = arena_alloc(arena, STEP_PANELS * GROUP_BLOCK, sizeof(*w->keep));
        w->met_tag = arena_zalloc(arena, job->lists * STEP_KEYS, size);
        w->met_chunk = arena_zalloc(arena, job->lists * STEP_KEYS, size);
        w->met = arena_alloc(arena, job->pairs, sizeof(*w->met));
        if (!block_init(&w->block, arena, kernel, GROUP_BLOCK, job->d, job->e) || !w->panels ||
            !w->values || !w->key_tag || !w->key_at || !w->query_tag || !w->query_at ||
            !w->others || !w->keep || !w->met_tag || !w->met_chunk || !w->met)
            return false;
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
    if (!group_workers_init(job, kernel, threads_count(r->threads)))
        return false;
    threads_run(r->threads, job->h * job->g->groups * job->blocks, group_item, job);
    return true;
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
        .lists = g->visits ? g->visits->chunk.shape[1] : 0,
    };

    job.pairs = g->visits && g->visits->cross ? job.lists * job.lists : job.lists;
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
