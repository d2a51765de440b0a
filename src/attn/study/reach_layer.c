/* reach_layer.c -- one layer's cells, heads united, as lists of runs; see reach_layer.h.
 *
 * Lists and runs are interned through two hash tables that are dropped once the
 * layer is complete.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/study/reach_layer.h"

/* A hash table of numbers with open addressing; slot 0: free, else number + 1. */
typedef struct Index {
    int32_t *slot;
    int64_t  capacity, used; /* capacity: a power of two */
} Index;

typedef struct Builder {
    ReachLayer *layer;
    int64_t     list_room, edge_room, run_room;
    Index       lists, runs;
    int32_t    *rows; /* [list_room] how many rows a list has */
    int32_t    *uses; /* [run_room] how many lists a run has */
    PatternRow  row, all;
} Builder;

static uint64_t reach_layer_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* Room for one more of `size` bytes. */
static bool reach_layer_grow(void **data, int64_t *room, int64_t wanted, size_t size)
{
    int64_t more = *room ? *room : 64;
    void   *grown;

    while (more < wanted)
        more *= 2;
    if (more == *room)
        return true;
    grown = realloc(*data, (size_t)more * size);
    if (!grown)
        return false;
    *data = grown;
    *room = more;
    return true;
}

static uint64_t run_hash(const ReachRun *run)
{
    return reach_layer_mix(reach_layer_mix(reach_layer_mix(1, (uint64_t)run->start),
                                           (uint64_t)run->count), (uint64_t)run->step);
}

static uint64_t list_hash(const int32_t *edge, int64_t count)
{
    uint64_t hash = (uint64_t)count;

    for (int64_t e = 0; e < count; e++)
        hash = reach_layer_mix(hash, (uint32_t)edge[e]);
    return hash;
}

static uint64_t hash_of(const Builder *b, bool runs, int32_t number)
{
    const ReachLayer *l = b->layer;

    return runs ? run_hash(&l->run[number])
                : list_hash(l->edge + l->first[number], l->first[number + 1] - l->first[number]);
}

static bool index_grow(Builder *b, bool runs)
{
    Index   *index = runs ? &b->runs : &b->lists;
    int64_t  capacity = index->capacity ? 2 * index->capacity : 1024;
    int32_t *slot = calloc((size_t)capacity, sizeof(*slot));

    if (!slot)
        return false;
    for (int64_t s = 0; s < index->capacity; s++) {
        uint64_t at;

        if (!index->slot[s])
            continue;
        at = hash_of(b, runs, index->slot[s] - 1) & (uint64_t)(capacity - 1);
        while (slot[at])
            at = (at + 1) & (uint64_t)(capacity - 1);
        slot[at] = index->slot[s];
    }
    free(index->slot);
    index->slot = slot;
    index->capacity = capacity;
    return true;
}

/* ---- runs and lists ----------------------------------------------------------- */

static bool same_run(const ReachRun *a, const ReachRun *b)
{
    return a->start == b->start && a->count == b->count && a->step == b->step;
}

/* The number of this run, or -1: out of memory. */
static int32_t run_number(Builder *b, ReachRun run)
{
    ReachLayer *l = b->layer;
    uint64_t    at;

    if (2 * b->runs.used >= b->runs.capacity && !index_grow(b, true))
        return -1;
    at = run_hash(&run) & (uint64_t)(b->runs.capacity - 1);
    for (; b->runs.slot[at]; at = (at + 1) & (uint64_t)(b->runs.capacity - 1))
        if (same_run(&l->run[b->runs.slot[at] - 1], &run))
            return b->runs.slot[at] - 1;
    if (l->runs == b->run_room) {
        int64_t room = b->run_room;

        if (!reach_layer_grow((void **)&b->uses, &room, l->runs + 1, sizeof(*b->uses)) ||
            !reach_layer_grow((void **)&l->run, &b->run_room, l->runs + 1, sizeof(*l->run)))
            return -1;
    }
    l->run[l->runs] = run;
    b->uses[l->runs] = 0;
    b->runs.slot[at] = (int32_t)++l->runs;
    b->runs.used++;
    return (int32_t)l->runs - 1;
}

static bool add_edge(Builder *b, int32_t edge)
{
    ReachLayer *l = b->layer;

    if (!reach_layer_grow((void **)&l->edge, &b->edge_room, l->edges + 1, sizeof(*l->edge)))
        return false;
    l->edge[l->edges++] = edge;
    return true;
}

static bool reach_layer_add_run(Builder *b, PatternRun run)
{
    int32_t number;

    if (run.count == 1)
        return add_edge(b, (int32_t)run.start);
    if (run.count == 2 && run.step > 1)
        return add_edge(b, (int32_t)run.start) && add_edge(b, (int32_t)(run.start + run.step));
    number =
        run_number(b, (ReachRun){ (int32_t)run.start, (int32_t)run.count, (int32_t)run.step, -1 });
    return number >= 0 && add_edge(b, ~number);
}

static bool same_list(const ReachLayer *l, int32_t number, int64_t from)
{
    int64_t count = l->edges - from;

    return l->first[number + 1] - l->first[number] == count &&
           (!count ||
            !memcmp(l->edge + l->first[number], l->edge + from, (size_t)count * sizeof(*l->edge)));
}

/* Makes the edges from `from` on a list, or drops them where the list exists; returns the number of
 * the list, or -1: out of memory. */
static int32_t list_number(Builder *b, int64_t from)
{
    ReachLayer *l = b->layer;
    uint64_t    at;
    int32_t     number;

    if (2 * b->lists.used >= b->lists.capacity && !index_grow(b, false))
        return -1;
    at = list_hash(l->edge + from, l->edges - from) & (uint64_t)(b->lists.capacity - 1);
    for (; b->lists.slot[at]; at = (at + 1) & (uint64_t)(b->lists.capacity - 1)) {
        number = b->lists.slot[at] - 1;
        if (same_list(l, number, from)) {
            l->edges = from;
            b->rows[number]++;
            return number;
        }
    }
    number = (int32_t)l->lists++;
    b->lists.slot[at] = number + 1;
    b->lists.used++;
    b->rows[number] = 1;
    l->first[number + 1] = l->edges;
    for (int64_t e = from; e < l->edges; e++)
        if (l->edge[e] < 0)
            b->uses[~l->edge[e]]++;
    return number;
}

/* ---- rows ---------------------------------------------------------------------- */

/* Intervals first, by start; then progressions, those of one step and remainder
 * together. */
static int by_place(const void *a, const void *b)
{
    const PatternRun *x = a, *y = b;
    int64_t           left = x->start % x->step, right = y->start % y->step;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (left != right)
        return left < right ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->count < y->count) - (x->count > y->count);
}

static bool keep_run(PatternRow *all, PatternRun run)
{
    if (!reach_layer_grow((void **)&all->runs, &all->capacity, all->count + 1, sizeof(*all->runs)))
        return false;
    all->runs[all->count++] = run;
    return true;
}

static int64_t end_of(PatternRun run)
{
    return run.start + run.count * run.step;
}

/* Extends a progression through keys that an interval holds anyway: one that a window cut becomes
 * whole again, and the same in many rows. */
static void extend(PatternRun *run, const PatternRun *interval, int64_t intervals)
{
    int64_t more;

    for (int64_t v = intervals - 1; v >= 0; v--) {
        int64_t before = run->start - run->step;

        if (before < interval[v].start || before >= end_of(interval[v]))
            continue;
        more = (before - interval[v].start) / run->step + 1;
        run->start -= more * run->step;
        run->count += more;
    }
    for (int64_t v = 0; v < intervals; v++) {
        int64_t next = end_of(*run), end = end_of(interval[v]);

        if (next >= interval[v].start && next < end)
            run->count += (end - 1 - next) / run->step + 1;
    }
}

/* Sorted runs that touch or overlap become one. */
static void reach_layer_join(PatternRow *all, int64_t from)
{
    int64_t kept = from;

    for (int64_t r = from + 1; r < all->count; r++) {
        PatternRun *a = &all->runs[kept], *b = &all->runs[r];

        if (a->step == b->step && (b->start - a->start) % a->step == 0 && b->start <= end_of(*a)) {
            if (end_of(*b) > end_of(*a))
                a->count = (end_of(*b) - a->start) / a->step;
        } else {
            all->runs[++kept] = *b;
        }
    }
    all->count = all->count > from ? kept + 1 : from;
}

static void sort_from(PatternRow *all, int64_t from)
{
    if (all->count - from > 1)
        qsort(all->runs + from, (size_t)(all->count - from), sizeof(*all->runs), by_place);
}

#define EXTEND_MOST 16 /* intervals of a row; with more the search does not pay */

/* The union of all runs, as few runs as are found easily. */
static void unite(PatternRow *all, bool sorted)
{
    int64_t intervals = 0;

    for (int64_t r = 0; r < all->count; r++)
        intervals += all->runs[r].step == 1;
    if (!sorted || intervals < all->count)
        sort_from(all, 0);
    if (intervals == all->count) {
        reach_layer_join(all, 0);
        return;
    }
    for (int64_t r = intervals; intervals <= EXTEND_MOST && r < all->count; r++)
        extend(&all->runs[r], all->runs, intervals);
    sort_from(all, intervals);
    reach_layer_join(all, intervals);
}

static bool reach_layer_add_row(Builder *b, const Pattern *p, int64_t i)
{
    int64_t heads = pattern_per_head(p) ? pattern_heads(p) : 1, from = b->layer->edges;
    bool    ok = true;

    b->all.count = 0;
    for (int64_t h = 0; ok && h < heads; h++) {
        pattern_row(p, h, i, &b->row);
        ok = !b->row.failed;
        for (int64_t r = 0; ok && r < b->row.count; r++)
            ok = keep_run(&b->all, b->row.runs[r]);
    }
    if (ok)
        unite(&b->all, heads == 1); /* those of one head are in order */
    for (int64_t r = 0; ok && r < b->all.count; r++)
        ok = reach_layer_add_run(b, b->all.runs[r]);
    return ok && (b->layer->list[i] = list_number(b, from)) >= 0;
}

/* ---- the layer ------------------------------------------------------------------ */

/* Counts the items that occur more than once, and lists them in *back. */
static bool number_shared(const int32_t *times, int64_t count, int64_t *shared, int32_t **back)
{
    *shared = 0;
    for (int64_t c = 0; c < count; c++)
        *shared += times[c] > 1;
    *back = malloc((size_t)(*shared + 1) * sizeof(**back));
    *shared = 0;
    for (int64_t c = 0; *back && c < count; c++)
        if (times[c] > 1)
            (*back)[(*shared)++] = (int32_t)c;
    return *back != NULL;
}

static bool reach_layer_share(Builder *b)
{
    ReachLayer *l = b->layer;

    l->shared = malloc((size_t)(l->lists + 1) * sizeof(*l->shared));
    if (!l->shared || !number_shared(b->rows, l->lists, &l->shared_lists, &l->shared_list) ||
        !number_shared(b->uses, l->runs, &l->shared_runs, &l->shared_run))
        return false;
    for (int64_t c = 0; c < l->lists; c++)
        l->shared[c] = -1;
    for (int64_t c = 0; c < l->shared_lists; c++)
        l->shared[l->shared_list[c]] = (int32_t)c;
    for (int64_t c = 0; c < l->shared_runs; c++)
        l->run[l->shared_run[c]].shared = (int32_t)c;
    return true;
}

/* ---- transposed lists -------------------------------------------------------------- */

#define INTO_LEAST 16  /* least cells of a row on average */
#define INTO_EACH  256 /* most rows stored for a key: more are rarely read */

/* Keys of an edge: `count` of them from `start` on. */
static ReachRun edge_run(const ReachLayer *l, int32_t edge)
{
    return edge >= 0 ? (ReachRun){ edge, 1, 1, -1 } : l->run[~edge];
}

/* Visits the lists until every key has one row more than are stored for it, or, with `into`, until
 * its places are full: those of key j are at[j] .. into_first[j + 1]. */
static void each_into(const ReachLayer *l, const int32_t *row_of, int64_t *at, int32_t *into)
{
    int64_t open = l->tokens;

    for (int64_t c = 0; open && c < l->lists; c++)
        for (int64_t e = l->first[c]; e < l->first[c + 1]; e++) {
            ReachRun run = edge_run(l, l->edge[e]);
            int64_t  last = run.start + (int64_t)(run.count - 1) * run.step;

            for (int64_t j = run.start; j <= last; j += run.step) {
                if (at[j] == (into ? l->into_first[j + 1] : INTO_EACH + 1))
                    continue;
                if (into)
                    into[at[j]] = l->shared[c] >= 0 ? ~l->shared[c] : row_of[c];
                open -= ++at[j] == (into ? l->into_first[j + 1] : INTO_EACH + 1);
            }
        }
}

/* Turns the number of rows of each key, at[], into the places where they begin. */
static void place_into(ReachLayer *l, int64_t *at)
{
    int64_t sum = 0;

    for (int64_t j = 0; j < l->tokens; j++) {
        l->into_first[j] = sum;
        l->into_cut[j] = at[j] > INTO_EACH;
        sum += at[j] > INTO_EACH ? INTO_EACH : at[j];
        at[j] = l->into_first[j];
    }
    l->into_first[l->tokens] = sum;
}

/* Makes the transposed lists where runs are few and short. */
static bool index_into(ReachLayer *l)
{
    int64_t  n = l->tokens, *at;
    int32_t *row_of;
    bool     ok;

    for (int64_t e = 0; e < l->edges; e++)
        l->cells += edge_run(l, l->edge[e]).count;
    if (l->cells < INTO_LEAST * n || l->cells > 2 * l->edges)
        return true;
    row_of = calloc((size_t)l->lists + 1, sizeof(*row_of));
    at = calloc((size_t)n, sizeof(*at));
    l->into_first = malloc((size_t)(n + 1) * sizeof(*l->into_first));
    l->into_cut = malloc((size_t)n * sizeof(*l->into_cut));
    ok = row_of && at && l->into_first && l->into_cut;
    for (int64_t i = 0; ok && i < n; i++)
        row_of[l->list[i]] = (int32_t)i;
    if (ok) {
        each_into(l, row_of, at, NULL);
        place_into(l, at);
        l->into = malloc((size_t)l->into_first[n] * sizeof(*l->into));
        if (l->into)
            each_into(l, row_of, at, l->into);
    }
    free(row_of);
    free(at);
    return ok && l->into;
}

static void builder_free(Builder *b)
{
    free(b->lists.slot);
    free(b->runs.slot);
    free(b->rows);
    free(b->uses);
    pattern_row_free(&b->row);
    pattern_row_free(&b->all);
}

static bool build(Builder *b, const Pattern *p, const atomic_bool *cancel, Error *err)
{
    ReachLayer *l = b->layer;
    bool        ok;

    l->tokens = pattern_queries(p);
    l->list = malloc((size_t)l->tokens * sizeof(*l->list));
    l->first = calloc((size_t)l->tokens + 1, sizeof(*l->first));
    b->rows = malloc((size_t)l->tokens * sizeof(*b->rows));
    ok = l->list && l->first && b->rows;
    for (int64_t i = 0; ok && i < l->tokens; i++) {
        if (cancel && i % 64 == 0 && atomic_load(cancel))
            return error_set(err, ERR_CANCELLED, "the reach of a pattern: cancelled");
        ok = reach_layer_add_row(b, p, i);
    }
    if (ok && reach_layer_share(b) && index_into(l))
        return true;
    return error_set(err, ERR_NOMEM, "the reach of a pattern of %lld tokens: not enough memory",
                     (long long)l->tokens);
}

ReachLayer *reach_layer_new(const Pattern *p, const atomic_bool *cancel, Error *err)
{
    Builder b = { .layer = calloc(1, sizeof(*b.layer)) };

    if (!b.layer) {
        error_set(err, ERR_NOMEM, "the reach of a pattern: not enough memory");
        return NULL;
    }
    if (!build(&b, p, cancel, err)) {
        reach_layer_free(b.layer);
        b.layer = NULL;
    }
    builder_free(&b);
    return b.layer;
}

void reach_layer_free(ReachLayer *l)
{
    if (!l)
        return;
    free(l->list);
    free(l->shared);
    free(l->first);
    free(l->edge);
    free(l->run);
    free(l->shared_list);
    free(l->shared_run);
    free(l->into_first);
    free(l->into_cut);
    free(l->into);
    free(l);
}

int64_t reach_layer_tokens(const ReachLayer *l)
{
    return l->tokens;
}

int64_t reach_layer_bytes(const ReachLayer *l)
{
    return (int64_t)sizeof(*l) + l->tokens * (int64_t)sizeof(*l->list) +
           l->lists * (int64_t)(sizeof(*l->shared) + sizeof(*l->first)) +
           l->edges * (int64_t)sizeof(*l->edge) + l->runs * (int64_t)sizeof(*l->run) +
           (l->shared_lists + l->shared_runs) * (int64_t)sizeof(*l->shared_list) +
           (l->into ? (l->tokens + 1) * (int64_t)(sizeof(*l->into_first) + sizeof(*l->into_cut)) +
                          l->into_first[l->tokens] * (int64_t)sizeof(*l->into)
                    : 0);
}
