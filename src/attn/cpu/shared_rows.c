/* shared_rows.c -- see shared_rows.h. */
#include "attn/cpu/shared_rows.h"

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <string.h>

#define SHARED_BY 32 /* queries of a group, on the average, that gathering pays for */
#define ITEM_ROWS 256
#define PAIRS 9

typedef struct Rows {
    Run           *run;
    const Pattern *pattern;
    int64_t        n;
    uint64_t      *hash;  /* [n] of a row's keys */
    int64_t       *count; /* [n] */
    int32_t       *group; /* [n] */
    int32_t       *first; /* [groups] the first row of each */
    int64_t        groups;
    PatternRow    *row, *other; /* [workers] */
    bool          *wrong; /* [workers] a row is not its group's, or there was no memory */
} Rows;

static uint64_t mixed(uint64_t hash, int64_t value)
{
    hash = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static void hash_item(void *context, int64_t item, int worker)
{
    Rows       *job = context;
    PatternRow *row = &job->row[worker];

    for (int64_t i = item * ITEM_ROWS; i < min_i64(job->n, (item + 1) * ITEM_ROWS); i++) {
        uint64_t hash = 0;

        pattern_row(job->pattern, 0, i, row);
        job->wrong[worker] |= row->failed;
        job->count[i] = 0;
        for (int64_t x = 0; x < row->count && !row->failed; x++) {
            const PatternRun *run = &row->runs[x];

            hash = mixed(mixed(mixed(hash, run->start), run->count), run->step);
            job->count[i] += run->count;
        }
        job->hash[i] = hash;
    }
}

static bool same_runs(const PatternRow *a, const PatternRow *b)
{
    bool same = !a->failed && !b->failed && a->count == b->count;

    for (int64_t x = 0; same && x < a->count; x++)
        same = a->runs[x].start == b->runs[x].start && a->runs[x].count == b->runs[x].count &&
               a->runs[x].step == b->runs[x].step;
    return same;
}

/* Whether neighbours mostly see the same, by some pairs: most patterns are known not to. */
static bool looks_shared(const Rows *job)
{
    int64_t same = 0, failed = 0;

    for (int64_t x = 0; x < PAIRS && job->n > 1; x++) {
        int64_t i = x * (job->n - 2) / (PAIRS - 1);

        pattern_row(job->pattern, 0, i, &job->row[0]);
        pattern_row(job->pattern, 0, i + 1, &job->other[0]);
        same += same_runs(&job->row[0], &job->other[0]);
        failed += job->row[0].failed || job->other[0].failed;
    }
    return 2 * same > PAIRS && !failed;
}

/* Equal hashes are no proof. */
static void prove_item(void *context, int64_t item, int worker)
{
    Rows   *job = context;
    int32_t known = -1;

    for (int64_t i = item * ITEM_ROWS; i < min_i64(job->n, (item + 1) * ITEM_ROWS); i++) {
        if (job->group[i] != known)
            pattern_row(job->pattern, 0, job->first[job->group[i]], &job->other[worker]);
        known = job->group[i];
        pattern_row(job->pattern, 0, i, &job->row[worker]);
        job->wrong[worker] |= !same_runs(&job->row[worker], &job->other[worker]);
    }
}

/* Numbers the rows' groups as they appear; false: there are too many. */
static bool number_groups(Rows *job, int32_t *table, int64_t size)
{
    int64_t most = job->n / SHARED_BY;

    memset(table, 0xff, (size_t)size * sizeof(*table));
    for (int64_t i = 0; i < job->n; i++) {
        int64_t at = (int64_t)(job->hash[i] & (uint64_t)(size - 1));

        while (table[at] >= 0 && job->hash[job->first[table[at]]] != job->hash[i])
            at = (at + 1) & (size - 1);
        if (table[at] < 0) {
            if (job->groups == most)
                return false;
            job->first[job->groups] = (int32_t)i;
            table[at] = (int32_t)job->groups++;
        }
        job->group[i] = table[at];
    }
    return true;
}

static bool any_wrong(const Rows *job)
{
    bool wrong = false;

    for (int x = 0; x < threads_count(job->run->threads); x++)
        wrong |= job->wrong[x];
    return wrong;
}

static bool find_groups(Rows *job)
{
    Run      *r = job->run;
    ArenaMark mark;
    int64_t   size = 64, items = ceil_div(job->n, ITEM_ROWS);
    int32_t  *table;
    bool      few;

    while (size < job->n / SHARED_BY * 4)
        size *= 2;
    threads_run(r->threads, items, hash_item, job);
    mark = arena_mark(r->arena);
    table = arena_alloc(r->arena, size, sizeof(*table));
    few = table && !any_wrong(job) && number_groups(job, table, size);
    arena_release(r->arena, mark);
    if (few)
        threads_run(r->threads, items, prove_item, job);
    return few && !any_wrong(job);
}

static Tensor list_of(Run *r, int64_t count)
{
    return tensor_new(r->arena, DT_I32, 2, (int64_t[]){ 1, count });
}

static void list_queries(const Rows *job, GroupAttend *g)
{
    int32_t *start = tensor_i32(&g->query_start), *index = tensor_i32(&g->query_index);

    memset(start, 0, (size_t)(job->groups + 1) * sizeof(*start));
    for (int64_t i = 0; i < job->n; i++)
        start[job->group[i] + 1]++;
    for (int64_t x = 0; x < job->groups; x++)
        start[x + 1] += start[x];
    for (int64_t i = 0; i < job->n; i++)
        index[start[job->group[i]]++] = (int32_t)i;
    for (int64_t x = job->groups; x > 0; x--)
        start[x] = start[x - 1];
    start[0] = 0;
}

static void list_keys(const Rows *job, GroupAttend *g)
{
    int32_t    *start = tensor_i32(&g->key_start), *index = tensor_i32(&g->key_index);
    PatternRow *row = &job->row[0];

    for (int64_t x = 0; x < job->groups && !row->failed; x++) {
        pattern_row(job->pattern, 0, job->first[x], row);
        start[x] = (int32_t)(x ? start[x - 1] + job->count[job->first[x - 1]] : 0);
        for (int64_t y = 0, at = start[x]; y < row->count && !row->failed; y++)
            for (int64_t c = 0; c < row->runs[y].count; c++)
                index[at++] = (int32_t)(row->runs[y].start + c * row->runs[y].step);
    }
    start[job->groups] =
        (int32_t)(start[job->groups - 1] + job->count[job->first[job->groups - 1]]);
    job->wrong[0] |= row->failed;
}

static bool make_lists(const Rows *job, GroupAttend *g, double *cells)
{
    int64_t keys = 0;

    *cells = 0;
    for (int64_t x = 0; x < job->groups; x++)
        keys += job->count[job->first[x]];
    for (int64_t i = 0; i < job->n; i++)
        *cells += (double)job->count[i];
    if (keys > INT32_MAX)
        return false;
    g->groups = job->groups;
    g->query_start = list_of(job->run, job->groups + 1);
    g->key_start = list_of(job->run, job->groups + 1);
    g->query_index = list_of(job->run, job->n);
    g->key_index = list_of(job->run, max_i64(1, keys));
    if (!g->query_start.data || !g->key_start.data || !g->query_index.data || !g->key_index.data)
        return false;
    list_queries(job, g);
    list_keys(job, g);
    return !any_wrong(job);
}

bool shared_rows(Run *r, const Pattern *pattern, GroupAttend *g, double *cells)
{
    int64_t workers = threads_count(r->threads), n = pattern_queries(pattern);
    Rows    job = { .run = r, .pattern = pattern, .n = n };
    bool    found;

    job.hash = arena_alloc(r->arena, n, sizeof(*job.hash));
    job.count = arena_alloc(r->arena, n, sizeof(*job.count));
    job.group = arena_alloc(r->arena, n, sizeof(*job.group));
    job.first = arena_alloc(r->arena, n / SHARED_BY + 1, sizeof(*job.first));
    job.row = arena_zalloc(r->arena, workers, sizeof(*job.row));
    job.other = arena_zalloc(r->arena, workers, sizeof(*job.other));
    job.wrong = arena_zalloc(r->arena, workers, sizeof(*job.wrong));
    if (!job.hash || !job.count || !job.group || !job.first || !job.row || !job.other ||
        !job.wrong)
        return false;
    found = looks_shared(&job) && find_groups(&job) && job.groups > 0 && make_lists(&job, g, cells);
    for (int64_t x = 0; x < workers; x++) {
        pattern_row_free(&job.row[x]);
        pattern_row_free(&job.other[x]);
    }
    return found;
}
