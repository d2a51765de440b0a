/* plan.c -- the tiles that a block of queries needs; shared and stored rows; see attend.h. */
#include <string.h>

#include "attn/cpu/attend.h"
#include "attn/cpu/cpu.h"
#include "core/threads.h"

enum { SAMPLES = 9 };

/* Costs in cycles, about, of d = e = 64: a column of a tile is mixed; LANES columns are scored and
 * softened; a cell is taken alone; a row whose cells are taken alone has a softmax more. */
#define COLUMN_COST 24
#define VECTOR_COST 440
#define CELL_COST 25
#define ROW_COST 120

static void count_row(const PatternRow *row, Typical *t)
{
    t->runs += (double)row->count / (SAMPLES - 1);
    for (int64_t x = 0; x < row->count; x++) {
        const PatternRun *run = &row->runs[x];
        double            share = (double)run->count / (SAMPLES - 1);

        t->cells += share;
        t->single += run->count == 1 ? share : 0;
        if (run->step == 1 || run->count == 1)
            continue;
        if (t->step == 1)
            t->step = run->step;
        t->stepped += run->step == t->step ? share : -share;
    }
}

/* Row x of SAMPLES evenly spaced rows. */
static void sample_row(const Pattern *pattern, int64_t heads, int64_t rows, int64_t x,
                       PatternRow *row)
{
    int64_t head = pattern_per_head(pattern) ? x * (heads - 1) / (SAMPLES - 1) : 0;

    pattern_row(pattern, head, x * (rows - 1) / (SAMPLES - 1), row);
}

/* Leaves out the fullest row: one that sees all keys is not typical. */
Typical plan_typical(const Pattern *pattern, int64_t heads, int64_t rows)
{
    PatternRow row = { 0 };
    Typical    t = { .step = 1 };
    double     most = -1;
    int64_t    fullest = 0;

    for (int64_t x = 0; x < SAMPLES && !row.failed; x++) {
        sample_row(pattern, heads, rows, x, &row);
        fullest = pattern_row_cells(&row) > most ? x : fullest;
        most = pattern_row_cells(&row) > most ? pattern_row_cells(&row) : most;
    }
    for (int64_t x = 0; x < SAMPLES && !row.failed; x++) {
        sample_row(pattern, heads, rows, x, &row);
        if (x != fullest && !row.failed)
            count_row(&row, &t);
    }
    t.failed = row.failed;
    pattern_row_free(&row);
    return t;
}

bool plan_init(Plan *plan, Arena *arena, int64_t keys, int64_t capacity)
{
    int64_t panels = (keys + TILE_KEYS - 1) / TILE_KEYS;

    *plan = (Plan){ .keys = keys, .panels = panels, .capacity = capacity, .head = -1 };
    plan_order(plan, 0, 1, RUNS_ALL, 0);
    plan->seen = arena_zalloc(arena, panels, 1);
    plan->touched = arena_alloc(arena, panels, sizeof(*plan->touched));
    plan->keep = arena_alloc(arena, panels, capacity * (int64_t)sizeof(*plan->keep));
    plan->kind = arena_alloc(arena, panels, capacity / TILE_ROWS);
    return plan->seen && plan->touched && plan->keep && plan->kind;
}

void plan_free(Plan *plan)
{
    pattern_row_free(&plan->row);
}

void plan_order(Plan *plan, int64_t rows, int64_t step, RunPart part, int64_t other)
{
    plan->head = -1;
    plan->row_order = (Phases){ step, rows };
    plan->key_order = (Phases){ step, plan->keys };
    plan->part = part;
    plan->other = other;
}

static uint64_t *touch(Plan *plan, int64_t panel, int64_t row)
{
    uint64_t *keep = plan->keep + panel * plan->capacity;

    if (!plan->seen[panel]) {
        plan->seen[panel] = 1;
        plan->low = panel < plan->low ? panel : plan->low;
        plan->high = panel >= plan->high ? panel + 1 : plan->high;
        memset(keep, 0, (size_t)(plan->groups * TILE_ROWS) * sizeof(*keep));
    }
    return keep + row;
}

/* Some rows that see the same keys. */
typedef struct Alike {
    int64_t row, count;
} Alike;

/* Keys `bits` of a panel. */
static void mark_bits(Plan *plan, Alike rows, int64_t panel, uint64_t bits)
{
    uint64_t *keep = touch(plan, panel, rows.row);

    for (int64_t x = 0; x < rows.count; x++)
        keep[x] |= bits;
}

/* Keys [from, to). */
static void mark_range(Plan *plan, Alike rows, int64_t from, int64_t to)
{
    while (from < to) {
        int64_t  panel = from / TILE_KEYS, base = panel * TILE_KEYS;
        int64_t  end = to < base + TILE_KEYS ? to : base + TILE_KEYS;
        uint64_t bits = ~UINT64_C(0) >> (TILE_KEYS - (end - from)) << (from - base);

        mark_bits(plan, rows, panel, bits);
        from = end;
    }
}

static bool is_planned(const Plan *plan, const PatternRun *run)
{
    return plan->part == RUNS_ALL ||
           (plan->part == RUNS_OF_STEP ? run->step == plan->key_order.step
                                       : run->step != plan->other);
}

static void mark_run(Plan *plan, Alike rows, const PatternRun *run)
{
    int64_t place = phases_place(plan->key_order, run->start);

    if (run->step == plan->key_order.step || run->count == 1) {
        mark_range(plan, rows, place, place + run->count);
        return;
    }
    for (int64_t x = 0; x < run->count; x++) {
        int64_t key = phases_place(plan->key_order, run->start + x * run->step);

        mark_bits(plan, rows, key / TILE_KEYS, UINT64_C(1) << (key % TILE_KEYS));
    }
}

/* Of a tile with cells in the columns `any`. */
static int64_t cost_in_tile(uint64_t any)
{
    int64_t from = __builtin_ctzll(any), to = 64 - __builtin_clzll(any);

    return COLUMN_COST * (to - from) + VECTOR_COST * (ceil_div(to, LANES) - from / LANES);
}

/* A tile of which all, or no rows have cells, or some; *saved: what it saves to take them one by
 * one. */
static TileKind tile_kind(const uint64_t *keep, int64_t rows, int64_t *cells, int64_t *saved)
{
    uint64_t all = ~UINT64_C(0), any = 0;
    int64_t  count = 0;

    for (int64_t r = 0; r < rows; r++) {
        all &= keep[r];
        any |= keep[r];
    }
    if (!any)
        return TILE_NONE;
    if (all == ~UINT64_C(0)) {
        *cells += rows * TILE_KEYS;
        return TILE_FULL;
    }
    for (int64_t r = 0; r < rows; r++)
        count += __builtin_popcountll(keep[r]);
    *cells += count;
    *saved = cost_in_tile(any) - CELL_COST * count;
    return count < SPARSE_CELLS ? TILE_SPARSE : TILE_MASKED;
}

/* Classes the tiles of a group.  Beside other tiles, cells one by one must also save a softmax. */
static void class_group(Plan *plan, int64_t g, int64_t *cells)
{
    int64_t  left = plan->rows - g * TILE_ROWS, rows = left < TILE_ROWS ? left : TILE_ROWS;
    int64_t  kinds = plan->capacity / TILE_ROWS, all = 0;
    uint8_t *kind = plan->kind + g;
    bool     tiles = false;

    for (int64_t x = 0; x < plan->count; x++) {
        int64_t saved = 0;

        kind[x * kinds] =
            (uint8_t)tile_kind(plan_keep(plan, plan->touched[x], g), rows, cells, &saved);
        all += kind[x * kinds] == TILE_SPARSE ? saved : 0;
        tiles |= kind[x * kinds] == TILE_FULL || kind[x * kinds] == TILE_MASKED;
    }
    if (!tiles || all > rows * ROW_COST) {
        for (int64_t x = 0; x < plan->count; x++)
            plan->sparse |= kind[x * kinds] == TILE_SPARSE;
        return;
    }
    for (int64_t x = 0; x < plan->count; x++)
        if (kind[x * kinds] == TILE_SPARSE)
            kind[x * kinds] = TILE_MASKED;
}

/* Lists the touched panels, classes their tiles and clears the marks. */
static void sum_up(Plan *plan)
{
    int64_t cells = 0;

    plan->count = 0;
    plan->sparse = false;
    for (int64_t p = plan->low; p < plan->high; p++)
        if (plan->seen[p]) {
            plan->seen[p] = 0;
            plan->touched[plan->count++] = (int32_t)p;
        }
    for (int64_t g = 0; g < plan->groups; g++)
        class_group(plan, g, &cells);
    plan->cells = (double)cells;
}

bool plan_make(Plan *plan, const Pattern *pattern, int64_t head, int64_t first, int64_t rows)
{
    Alike alike;

    plan->head = head;
    plan->first = first;
    plan->rows = rows;
    plan->groups = (rows + TILE_ROWS - 1) / TILE_ROWS;
    plan->low = plan->panels;
    plan->high = 0;
    for (int64_t i = 0; i < rows; i += alike.count) {
        int64_t at = phases_position(plan->row_order, first + i);

        alike.row = i;
        alike.count = plan->row_order.step > 1 ? 1 : pattern_same_until(pattern, head, at) - at;
        alike.count = min_i64(alike.count, rows - i);
        pattern_row(pattern, head, at, &plan->row);
        if (plan->row.failed) {
            plan->head = -1;
            return false;
        }
        for (int64_t x = 0; x < plan->row.count; x++)
            if (is_planned(plan, &plan->row.runs[x]))
                mark_run(plan, alike, &plan->row.runs[x]);
    }
    sum_up(plan);
    return true;
}

/* ---- shared rows ------------------------------------------------------------- */

#define SHARED_BY 32 /* gathering pays from so many queries of a group on average */
#define ITEM_ROWS 256
#define PAIRS 9

typedef struct SharedRows {
    Run           *run;
    const Pattern *pattern;
    int64_t        n;
    uint64_t      *hash;  /* [n] of a row's keys */
    int64_t       *count; /* [n] */
    int32_t       *group; /* [n] */
    int32_t       *first; /* [groups] the first row of each */
    int64_t        groups;
    PatternRow    *row, *other; /* [workers] */
    bool          *wrong; /* [workers] a row differs from that of its group, or no memory */
} SharedRows;

static uint64_t mixed(uint64_t hash, int64_t value)
{
    hash = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static void hash_item(void *context, int64_t item, int worker)
{
    SharedRows       *job = context;
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

/* Whether most of PAIRS pairs of neighbours have the same row: a cheap test that most patterns
 * fail. */
static bool looks_shared(const SharedRows *job)
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

/* Compares the rows themselves: different rows may have equal hashes. */
static void prove_item(void *context, int64_t item, int worker)
{
    SharedRows   *job = context;
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
static bool number_groups(SharedRows *job, int32_t *table, int64_t size)
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

static bool any_wrong(const SharedRows *job)
{
    bool wrong = false;

    for (int x = 0; x < threads_count(job->run->threads); x++)
        wrong |= job->wrong[x];
    return wrong;
}

static bool find_groups(SharedRows *job)
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

static void list_queries(const SharedRows *job, GroupAttend *g)
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

static void list_keys(const SharedRows *job, GroupAttend *g)
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

static bool make_lists(const SharedRows *job, GroupAttend *g, double *cells)
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
    SharedRows    job = { .run = r, .pattern = pattern, .n = n };
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

/* ---- stored rows ------------------------------------------------------------- */

typedef struct StoredRows {
    const Pattern *pattern;
    int64_t        n;
    int64_t       *offset; /* [n+1]; while rows are counted, of row i at i + 1 */
    PatternRun    *runs;   /* NULL while rows are counted */
    PatternRow    *row;    /* [workers] */
} StoredRows;

static void rows_item(void *context, int64_t item, int worker)
{
    const StoredRows *job = context;
    PatternRow *row = &job->row[worker];

    for (int64_t i = item * ITEM_ROWS; i < min_i64(job->n, (item + 1) * ITEM_ROWS); i++) {
        if (row->failed)
            return;
        pattern_row(job->pattern, 0, i, row);
        if (!job->runs)
            job->offset[i + 1] = row->count;
        else if (row->count > 0 && !row->failed)
            memcpy(job->runs + job->offset[i], row->runs, (size_t)row->count * sizeof(*row->runs));
    }
}

static bool find_rows(StoredRows *job, Run *r)
{
    bool failed = false;

    threads_run(r->threads, ceil_div(job->n, ITEM_ROWS), rows_item, job);
    for (int x = 0; x < threads_count(r->threads); x++)
        failed |= job->row[x].failed;
    return !failed;
}

/* offset[i] becomes the number of runs before row i; returns the number of all runs. */
static int64_t add_up(StoredRows *job)
{
    job->offset[0] = 0;
    for (int64_t i = 0; i < job->n; i++)
        job->offset[i + 1] += job->offset[i];
    return job->offset[job->n];
}

static Pattern *fill_rows(StoredRows *job, Run *r, double most)
{
    PatternShape shape = { .heads = pattern_heads(job->pattern), .n = job->n,
                           .m = pattern_keys(job->pattern) };
    int64_t      count;

    if (!find_rows(job, r))
        return NULL;
    count = add_up(job);
    if ((double)count * (double)sizeof(PatternRun) > most)
        return NULL;
    job->runs = arena_alloc(r->arena, max_i64(1, count), sizeof(PatternRun));
    if (!job->runs || !find_rows(job, r))
        return NULL;
    return pattern_stored(r->arena, shape, job->offset, job->runs, false);
}

const Pattern *stored_rows(Run *r, const Pattern *pattern, double most)
{
    int      workers = threads_count(r->threads);
    StoredRows     job = { .pattern = pattern, .n = pattern_queries(pattern) };
    Pattern *stored = NULL;

    if (pattern_per_head(pattern))
        return pattern;
    job.offset = arena_alloc(r->arena, job.n + 1, sizeof(*job.offset));
    job.row = arena_zalloc(r->arena, workers, sizeof(*job.row));
    if (job.offset && job.row)
        stored = fill_rows(&job, r, most);
    for (int x = 0; job.row && x < workers; x++)
        pattern_row_free(&job.row[x]);
    return stored ? stored : pattern;
}
