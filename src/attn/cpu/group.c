/* group.c -- attention inside groups: chunks, clusters, blocks.
 *
 * A group's keys and values are gathered into packed panels a step at a time
 * and go through the same tiles as pattern attention.  Rules become bit masks
 * before the softmax, so a removed cell is exactly absent; the self penalty
 * and multiplicities change scores after it.  An item of work is a block of
 * one group's queries.
 */
#include "attn/cpu/cpu.h"

#include "attn/cpu/block.h"
#include "attn/cpu/pack.h"

#include <math.h>
#include <string.h>

#define GROUP_BLOCK 96
#define STEP_KEYS (STEP_PANELS * TILE_KEYS)

typedef struct Worker {
    Block    block;
    float   *panels;   /* [STEP_PANELS][d][TILE_KEYS] */
    float   *values;   /* [STEP_KEYS][e] */
    int32_t *key_tag, *key_at;     /* [STEP_KEYS] of this step's keys */
    int32_t *query_tag, *query_at; /* [GROUP_BLOCK] of this block's rows */
    bool    *others;   /* [GROUP_BLOCK] something but the row itself stays */
    uint64_t *keep;    /* [STEP_PANELS][GROUP_BLOCK] */
} Worker;

typedef struct Job {
    Run               *run;
    const GroupAttend *g;
    GroupResult       *out;
    int64_t            h, d, e;
    int64_t            blocks;   /* most blocks of a group */
    bool               rules;    /* cells can be removed */
    bool               changed;  /* scores can be altered */
    Worker            *workers;
} Job;

/* One block of one group: what every step needs to know. */
typedef struct Part {
    int64_t        head, first, rows; /* entries of the query list */
    const int32_t *queries;           /* rows of q, [rows] */
    const int32_t *keys;              /* rows of k and v, [count] */
    int64_t        count;
} Part;

static int32_t entry_of(const Tensor *t, int64_t head, int64_t heads, int64_t row)
{
    return t->data ? ((const int32_t *)tensor_head(t, head, heads))[row] : 0;
}

/* Tags and positions of keys [from, from + count) of the group. */
static void load_keys(const Job *job, Worker *w, const Part *p, int64_t from, int64_t count)
{
    for (int64_t x = 0; x < count; x++) {
        w->key_tag[x] = entry_of(&job->g->key_tag, p->head, job->h, p->keys[from + x]);
        w->key_at[x] = entry_of(&job->g->key_at, p->head, job->h, p->keys[from + x]);
    }
}

static void load_queries(const Job *job, Worker *w, const Part *p)
{
    const float *q = tensor_head(&job->g->q, p->head, job->h);

    block_begin(&w->block, p->rows);
    for (int64_t i = 0; i < p->rows; i++) {
        block_query(&w->block, i, q + p->queries[i] * job->g->q.stride[1], job->g->scale);
        w->query_tag[i] = entry_of(&job->g->query_tag, p->head, job->h, p->queries[i]);
        w->query_at[i] = entry_of(&job->g->query_at, p->head, job->h, p->queries[i]);
    }
}

/* Bits of up to TILE_KEYS keys that stay for row i, the row's own included. */
static uint64_t stay_bits(const Job *job, const Worker *w, int64_t i, int64_t from, int64_t count)
{
    const int32_t *tag = w->key_tag + from, *at = w->key_at + from;
    int32_t        own_tag = w->query_tag[i], own_at = w->query_at[i];
    uint64_t       bits = 0;

    if (job->g->causal)
        for (int64_t x = 0; x < count; x++)
            bits |= (uint64_t)((tag[x] == own_tag) & ((at[x] <= own_at) | (at[x] < 0))) << x;
    else
        for (int64_t x = 0; x < count; x++)
            bits |= (uint64_t)(tag[x] == own_tag) << x;
    return bits;
}

static uint64_t self_bits(const Worker *w, int64_t i, int64_t from, int64_t count)
{
    uint64_t bits = 0;

    for (int64_t x = 0; x < count; x++)
        bits |= (uint64_t)(w->key_at[from + x] == w->query_at[i]) << x;
    return bits;
}

/* Which rows keep a key that is not themselves, over the whole group. */
static void find_others(const Job *job, Worker *w, const Part *p)
{
    for (int64_t i = 0; i < p->rows; i++)
        w->others[i] = false;
    for (int64_t from = 0; from < p->count; from += TILE_KEYS) {
        int64_t count = min_i64(TILE_KEYS, p->count - from);

        load_keys(job, w, p, from, count);
        for (int64_t i = 0; i < p->rows; i++)
            w->others[i] |= (stay_bits(job, w, i, 0, count) & ~self_bits(w, i, 0, count)) != 0;
    }
}

/* Masks of panel x of the step; false: every cell of every row stays. */
static bool make_masks(const Job *job, Worker *w, const Part *p, int64_t x, int64_t count)
{
    uint64_t *keep = w->keep + x * GROUP_BLOCK;
    uint64_t  real = ~UINT64_C(0) >> (TILE_KEYS - count);

    if (!job->rules && count == TILE_KEYS)
        return false;
    for (int64_t i = 0; i < w->block.groups * TILE_ROWS; i++) {
        if (i >= p->rows) {
            keep[i] = 0;
            continue;
        }
        keep[i] = job->rules ? stay_bits(job, w, i, x * TILE_KEYS, count) : real;
        if (job->g->self_last && w->others[i])
            keep[i] &= ~self_bits(w, i, x * TILE_KEYS, count);
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

/* Self penalty and multiplicities of one tile; keys [at, at + count) of the group. */
static void change_tile(const Job *job, const Worker *w, const Part *p, int64_t row, int64_t x,
                        int64_t at, int64_t count, float *s)
{
    const GroupAttend *g = job->g;
    float              penalty = (float)(g->self_penalty * LOG2_E);

    for (int64_t r = 0; r < min_i64(TILE_ROWS, p->rows - row); r++) {
        float         *cell = s + r * w->block.lds;
        const int32_t *key_at = w->key_at + x * TILE_KEYS;

        if (g->self_penalty != 0)
            for (int64_t j = 0; j < count; j++)
                cell[j] -= key_at[j] == w->query_at[row + r] ? penalty : 0.0f;
        for (int64_t j = 0; g->count && j < count; j++) {
            int32_t times = cell[j] > -INFINITY
                                ? g->count(g->count_context, p->head, p->queries[row + r],
                                           p->keys[at + j]) : 1;

            if (times > 1)
                cell[j] -= log2f((float)times);
        }
    }
}

static void gather_panel(const Job *job, Worker *w, const Part *p, int64_t x, int64_t at,
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
static void take_step(const Job *job, Worker *w, const Part *p, int64_t from, int64_t count)
{
    Block *block = &w->block;

    load_keys(job, w, p, from, count);
    for (int64_t x = 0; x * TILE_KEYS < count; x++) {
        int64_t at = from + x * TILE_KEYS, keys = min_i64(TILE_KEYS, count - x * TILE_KEYS);
        bool    masked = make_masks(job, w, p, x, keys);

        gather_panel(job, w, p, x, at, keys);
        for (int64_t g = 0; g < block->groups; g++) {
            const uint64_t *keep = masked ? w->keep + x * GROUP_BLOCK + g * TILE_ROWS : NULL;
            float          *tile;

            if (keep && !any_kept(keep))
                continue;
            tile = block_score(block, g, x, w->panels + x * job->d * TILE_KEYS, keep);
            if (job->changed)
                change_tile(job, w, p, g * TILE_ROWS, x, at, keys, tile);
        }
    }
    for (int64_t g = 0; g < block->groups; g++)
        if (block->slots[g] > 0) {
            block_soften(block, g, job->changed);
            block_mix(block, g, w->values, job->e, count);
        }
}

static void attend_part(const Job *job, Worker *w, const Part *p)
{
    int64_t total = job->out->out.shape[1];
    float  *out = (float *)job->out->out.data + (p->head * total + p->first) * job->e;
    float  *lse = (float *)job->out->lse.data + p->head * total + p->first;

    load_queries(job, w, p);
    if (job->g->self_last)
        find_others(job, w, p);
    for (int64_t from = 0; from < p->count; from += STEP_KEYS)
        take_step(job, w, p, from, min_i64(STEP_KEYS, p->count - from));
    for (int64_t i = 0; i < p->rows; i++)
        block_row(&w->block, i, out + i * job->e, lse + i);
}

static void group_item(void *context, int64_t item, int worker)
{
    Job               *job = context;
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
}

static bool workers_init(Job *job, const Kernel *kernel, int count)
{
    Arena  *arena = job->run->arena;
    int64_t size = (int64_t)sizeof(int32_t);

    job->workers = arena_zalloc(arena, count, sizeof(Worker));
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->panels = arena_alloc(arena, STEP_KEYS, job->d * (int64_t)sizeof(float));
        w->values = arena_alloc(arena, STEP_KEYS, job->e * (int64_t)sizeof(float));
        w->key_tag = arena_alloc(arena, STEP_KEYS, size);
        w->key_at = arena_alloc(arena, STEP_KEYS, size);
        w->query_tag = arena_alloc(arena, GROUP_BLOCK, size);
        w->query_at = arena_alloc(arena, GROUP_BLOCK, size);
        w->others = arena_alloc(arena, GROUP_BLOCK, sizeof(*w->others));
        w->keep = arena_alloc(arena, STEP_PANELS * GROUP_BLOCK, sizeof(*w->keep));
        if (!block_init(&w->block, arena, kernel, GROUP_BLOCK, job->d, job->e) || !w->panels ||
            !w->values || !w->key_tag || !w->key_at || !w->query_tag || !w->query_at ||
            !w->others || !w->keep)
            return false;
    }
    return job->workers != NULL;
}

/* Most blocks of queries in one group. */
static int64_t most_blocks(const Job *job)
{
    int64_t most = 0;

    for (int64_t head = 0; head < job->h; head++) {
        const int32_t *starts = tensor_head(&job->g->query_start, head, job->h);

        for (int64_t x = 0; x < job->g->groups; x++)
            most = max_i64(most, starts[x + 1] - starts[x]);
    }
    return ceil_div(most, GROUP_BLOCK);
}

void cpu_group_attend_on(const Kernel *kernel, Run *r, const GroupAttend *g, GroupResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = {
        .run = r, .g = g, .out = out, .h = out->out.shape[0], .d = g->q.shape[2],
        .e = out->out.shape[2],
        .rules = tensor_given(&g->key_tag) || g->causal || g->self_last,
        .changed = g->self_penalty != 0 || g->count != NULL,
    };

    job.blocks = most_blocks(&job);
    if (workers_init(&job, kernel, threads_count(r->threads)))
        threads_run(r->threads, job.h * g->groups * job.blocks, group_item, &job);
    else
        run_fail(r, ERR_NOMEM, "not enough memory for tiles of grouped attention (keys of size "
                 "%lld, values of size %lld); use fewer threads or a higher limit",
                 (long long)job.d, (long long)job.e);
    arena_release(r->arena, mark);
}

void cpu_group_attend(Run *r, const GroupAttend *g, GroupResult *out)
{
    cpu_group_attend_on(kernel_at(0), r, g, out);
}
