/* group_turned.c -- attention inside groups without rules: scores lie turned, a row for each key.
 *
 * A group's queries are packed into a panel, up to TILE_KEYS of them, and rows of keys are scored
 * against it where they lie.  So keys and values of neighbouring rows are neither turned nor
 * copied, which takes as long as a third of the products where as many queries as keys are in a
 * group.  Other rows are gathered beside each other first.  An item of work is a panel of one
 * group's queries.
 */
#include "attn/cpu/cpu.h"

#include "attn/cpu/simd/kernel.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define QUERIES TILE_KEYS                     /* of a panel */
#define ROOM ((QUERIES / TILE_ROWS + 1) * TILE_ROWS) /* they are mixed in whole tiles */
#define KEYS 256                              /* of a step: their scores stay in the caches */
#define NEIGHBOURS 16 /* that are read where they lie */
#define GATHER_AHEAD 4 /* rows ahead that are prefetched where they are gathered */

/* Keys of a step that lie one below the other. */
typedef struct Stretch {
    const float *k, *v;
    int64_t      ldk, ldv, first, count; /* first: among those of the step */
    bool         gathered;
} Stretch;

typedef struct TurnedWorker {
    float  *panel;                              /* [d][QUERIES] */
    float  *s;                                  /* [KEYS + TILE_ROWS][QUERIES] scores, weights */
    float  *acc;                                /* [ROOM][lda] */
    float  *keys, *values;                      /* [KEYS + TILE_ROWS][d], [KEYS][e] gathered */
    float  *rest;                               /* [TILE_ROWS][d] */
    float   max[ROOM], sum[ROOM], factor[ROOM], part[ROOM]; /* part: sums of a step */
    float   top[TILE_ROWS * LANES];             /* raised by scores, never read */
    Stretch stretch[KEYS];
    int64_t stretches;
} TurnedWorker;

typedef struct TurnedJob {
    Run               *run;
    const Kernel      *kernel;
    const GroupAttend *g;
    GroupResult       *out;
    int64_t            h, d, e, lda;
    int64_t            panels; /* most panels of a group */
    TurnedWorker      *workers;
} TurnedJob;

/* One panel of one group's queries. */
typedef struct TurnedPart {
    int64_t        head, first, rows; /* entries of the query list */
    const int32_t *queries, *keys;    /* rows of q, [rows]; of k and v, [count] */
    int64_t        count;
} TurnedPart;

/* ---- keys of a step ---------------------------------------------------------------- */

/* How many keys lie one below the other. */
static int64_t neighbours(const TurnedJob *job, const int32_t *keys, int64_t count)
{
    int64_t x = 1, own = job->g->k.shape[1];

    while (x < count && keys[x] == keys[x - 1] + 1 && keys[x] != own)
        x++;
    return x;
}

/* How many keys come before the next neighbours that are read where they lie. */
static int64_t scattered(const TurnedJob *job, const int32_t *keys, int64_t count)
{
    int64_t x = 0;

    while (x < count) {
        int64_t more = neighbours(job, keys + x, count - x);

        if (more >= NEIGHBOURS)
            break;
        x += more;
    }
    return x;
}

/* `count` neighbours from this key on. */
static Stretch stretch_of(const TurnedJob *job, int64_t head, int64_t key, int64_t first,
                          int64_t count)
{
    const GroupAttend *g = job->g;
    bool               more = key >= g->k.shape[1];
    const Tensor      *k = more ? &g->more_k : &g->k, *v = more ? &g->more_v : &g->v;
    int64_t            row = more ? key - g->k.shape[1] : key;

    return (Stretch){ (const float *)tensor_head(k, head, job->h) + row * k->stride[1],
                      (const float *)tensor_head(v, head, job->h) + row * v->stride[1],
                      k->stride[1], v->stride[1], first, count, false };
}

static Stretch gathered(const TurnedJob *job, TurnedWorker *w, const TurnedPart *p,
                        const int32_t *keys, int64_t first, int64_t count)
{
    int64_t last = first + count - 1;

    for (int64_t x = first; x < first + count; x++) {
        Stretch one = stretch_of(job, p->head, keys[x], x, 1);
        Stretch next = stretch_of(job, p->head, keys[min_i64(x + GATHER_AHEAD, last)], x, 1);

        cpu_fetch(next.k, job->d);
        cpu_fetch(next.v, job->e);
        memcpy(w->keys + x * job->d, one.k, (size_t)job->d * sizeof(float));
        memcpy(w->values + x * job->e, one.v, (size_t)job->e * sizeof(float));
    }
    return (Stretch){ w->keys + first * job->d, w->values + first * job->e, job->d, job->e, first,
                      count, true };
}

static void find_stretches(const TurnedJob *job, TurnedWorker *w, const TurnedPart *p,
                           const int32_t *keys, int64_t count)
{
    w->stretches = 0;
    for (int64_t at = 0, taken; at < count; at += taken) {
        Stretch *s = &w->stretch[w->stretches++];

        taken = scattered(job, keys + at, count - at);
        if (taken > 0) {
            *s = gathered(job, w, p, keys, at, taken);
        } else {
            taken = neighbours(job, keys + at, count - at);
            *s = stretch_of(job, p->head, keys[at], at, taken);
        }
    }
}

/* ---- a step ------------------------------------------------------------------------ */

/* TILE_ROWS rows from x on.  Values come while keys are scored, and the keys that follow, which
 * the next group often takes, while values are mixed. */
static PREFETCHES void fetch_rows(const float *x, int64_t ld, int64_t count)
{
    for (int64_t r = 0; r < TILE_ROWS; r++)
        cpu_fetch(x + r * ld, count);
}

/* Rows behind the stretch are scored too where its last tile is not full: rows of `rest`. */
static void score_stretch(const TurnedJob *job, TurnedWorker *w, const Stretch *s, int64_t rows)
{
    for (int64_t x = 0; x < s->count; x += TILE_ROWS) {
        const float *k = s->k + x * s->ldk;
        int64_t      ldk = s->ldk;

        if (!s->gathered)
            fetch_rows(s->v + x * s->ldv, s->ldv, job->e);
        if (x + TILE_ROWS > s->count) {
            for (int64_t r = 0; x + r < s->count; r++)
                memcpy(w->rest + r * job->d, k + r * ldk, (size_t)job->d * sizeof(float));
            k = w->rest;
            ldk = job->d;
        }
        job->kernel->score(k, ldk, w->panel, job->d, NULL, 0, (int)rows,
                           w->s + (s->first + x) * QUERIES, QUERIES, w->top);
    }
}

static void mix_stretch(const TurnedJob *job, TurnedWorker *w, const Stretch *s, int64_t rows)
{
    static const float ones[TILE_ROWS] = { 1, 1, 1, 1, 1, 1 };

    for (int64_t i = 0; i < rows; i += TILE_ROWS) {
        if (!s->gathered)
            fetch_rows(s->k + (s->count + i) * s->ldk, s->ldk, job->d);
        job->kernel->mix_turned(w->s + s->first * QUERIES + i, s->v, s->ldv, s->count, job->e,
                                s->first ? ones : w->factor + i, w->acc + i * job->lda, job->lda);
    }
}

/* Keys [from, from + count) of the group, at most KEYS. */
static void take_keys(const TurnedJob *job, TurnedWorker *w, const TurnedPart *p, int64_t from,
                      int64_t count)
{
    find_stretches(job, w, p, p->keys + from, count);
    for (int64_t x = 0; x < w->stretches; x++)
        score_stretch(job, w, &w->stretch[x], p->rows);
    job->kernel->columns(w->s, count, (int)round_up_to(p->rows, LANES), w->max, w->part,
                         w->factor);
    for (int64_t i = 0; i < p->rows; i++)
        w->sum[i] = w->sum[i] * w->factor[i] + w->part[i];
    for (int64_t x = 0; x < w->stretches; x++)
        mix_stretch(job, w, &w->stretch[x], p->rows);
}

/* ---- a panel of queries ------------------------------------------------------------- */

static void begin_queries(const TurnedJob *job, TurnedWorker *w, const TurnedPart *p)
{
    const Tensor *q = &job->g->q;

    pack_rows(tensor_head(q, p->head, job->h), q->stride[1], p->queries, p->rows, job->d, w->panel);
    job->kernel->scale(w->panel, job->d * QUERIES, (float)(job->g->scale * LOG2_E), w->panel);
    memset(w->acc, 0, (size_t)(ROOM * job->lda) * sizeof(*w->acc));
    for (int64_t i = 0; i < ROOM; i++) {
        w->max[i] = -INFINITY;
        w->sum[i] = 0.0f;
    }
}

static void finish_queries(const TurnedJob *job, const TurnedWorker *w, const TurnedPart *p)
{
    int64_t total = job->out->out.shape[1], first = p->head * total + p->first;
    float   lse[QUERIES];

    job->kernel->log_sums(w->max, w->sum, p->rows, lse);
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t at = first + (job->g->placed ? p->queries[i] - p->first : i);
        bool    any = lse[i] != -INFINITY;

        job->kernel->scale(w->acc + i * job->lda, job->e, any ? 1.0f / w->sum[i] : 0.0f,
                           tensor_f32(&job->out->out) + at * job->e);
        tensor_f32(&job->out->lse)[at] = lse[i];
    }
}

static void turned_item(void *context, int64_t item, int worker)
{
    TurnedJob         *job = context;
    const GroupAttend *g = job->g;
    TurnedWorker      *w = &job->workers[worker];
    int64_t            head = item / (g->groups * job->panels);
    int64_t            group = item / job->panels % g->groups;
    const int32_t     *starts = tensor_head(&g->query_start, head, job->h);
    const int32_t     *key_starts = tensor_head(&g->key_start, head, job->h);
    int64_t            first = starts[group] + item % job->panels * QUERIES;
    TurnedPart         part = { .head = head, .first = first };

    part.rows = min_i64(QUERIES, starts[group + 1] - first);
    if (part.rows <= 0 || cpu_cancelled(job->run))
        return;
    part.queries = (const int32_t *)tensor_head(&g->query_index, head, job->h) + first;
    part.keys = (const int32_t *)tensor_head(&g->key_index, head, job->h) + key_starts[group];
    part.count = key_starts[group + 1] - key_starts[group];
    begin_queries(job, w, &part);
    for (int64_t from = 0; from < part.count; from += KEYS)
        take_keys(job, w, &part, from, min_i64(KEYS, part.count - from));
    finish_queries(job, w, &part);
    run_ahead(job->run, (double)(part.rows * part.count) *
                            (double)(2 * (job->d + job->e) + FLOPS_SOFTMAX));
}

/* ---- a job -------------------------------------------------------------------------- */

static bool turned_workers_init(TurnedJob *job, int count)
{
    Arena  *arena = job->run->arena;
    int64_t size = (int64_t)sizeof(float);

    job->workers = arena_zalloc(arena, count, sizeof(*job->workers));
    for (int x = 0; job->workers && x < count; x++) {
        TurnedWorker *w = &job->workers[x];

        w->panel = arena_alloc(arena, QUERIES, job->d * size);
        w->s = arena_zalloc(arena, KEYS + TILE_ROWS, QUERIES * size);
        w->acc = arena_alloc(arena, ROOM, job->lda * size);
        w->keys = arena_zalloc(arena, KEYS + TILE_ROWS, job->d * size);
        w->values = arena_alloc(arena, KEYS, job->e * size);
        w->rest = arena_zalloc(arena, TILE_ROWS, job->d * size);
        if (!w->panel || !w->s || !w->acc || !w->keys || !w->values || !w->rest)
            return false;
    }
    return job->workers != NULL;
}

bool cpu_group_turned(const Kernel *kernel, Run *r, const GroupAttend *g, GroupResult *out,
                      int64_t most)
{
    TurnedJob job = { .run = r, .kernel = kernel, .g = g, .out = out, .h = out->out.shape[0],
                      .d = g->q.shape[2], .e = out->out.shape[2],
                      .panels = ceil_div(most, QUERIES) };

    job.lda = round_up_to(job.e, LANES);
    if (!turned_workers_init(&job, threads_count(r->threads)))
        return false;
    threads_run(r->threads, job.h * g->groups * job.panels, turned_item, &job);
    return true;
}
