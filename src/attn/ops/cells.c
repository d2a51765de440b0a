/* cells.c -- see weights.h.
 *
 * The lists grow on the heap, so that each row is listed once, and move to the arena when their
 * length is known: the arena then holds no unused pages.
 */
#include "attn/ops/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run.h"

static int cells_by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* Lists as they grow. */
typedef struct Growing {
    int32_t  *key, *count; /* owned; count only when `counted` */
    int64_t   capacity, most;
    uint64_t *met; /* owned; a bit for each key, all zero between rows */
    int64_t   words;
    bool      counted;
} Growing;

static bool cells_reserve(Growing *g, int64_t used, int64_t more)
{
    int64_t  capacity = 2 * (used + more);
    int32_t *key, *count = NULL;

    if (used + more <= g->capacity)
        return true;
    if (used + more > g->most)
        return false;
    key = realloc(g->key, (size_t)capacity * sizeof(*key));
    g->key = key ? key : g->key;
    if (g->counted)
        count = realloc(g->count, (size_t)capacity * sizeof(*count));
    g->count = count ? count : g->count;
    if (key && (count || !g->counted))
        g->capacity = capacity;
    return key && (count || !g->counted);
}

static bool increases(const int32_t *key, int64_t found)
{
    for (int64_t c = 1; c < found; c++)
        if (key[c] < key[c - 1])
            return false;
    return true;
}

#define KEYS_OF_WORDS 16 /* a row of more keys than a 16th of the words is sorted by its bits */

/* Sorts distinct keys: sets a bit for each and reads the bits in order. */
static void sort_by_bits(Growing *g, int32_t *key, int64_t found)
{
    int64_t at = 0;

    for (int64_t c = 0; c < found; c++)
        g->met[key[c] / 64] |= (uint64_t)1 << key[c] % 64;
    for (int64_t w = 0; w < g->words && at < found; w++) {
        for (uint64_t left = g->met[w]; left; left &= left - 1)
            key[at++] = (int32_t)(64 * w + __builtin_ctzll(left));
        g->met[w] = 0;
    }
}

/* Appends a row of `found` keys behind the `used` entries. */
static void cells_append(Growing *g, int64_t used, int64_t found, int32_t *key, int32_t *count)
{
    if (!increases(key, found)) {
        if (found > g->words / KEYS_OF_WORDS)
            sort_by_bits(g, key, found);
        else
            qsort(key, (size_t)found, sizeof(*key), cells_by_value);
    }
    for (int64_t c = 0; c < found; c++) {
        g->key[used + c] = key[c];
        if (g->counted)
            g->count[used + c] = count[key[c]];
        count[key[c]] = 0;
    }
}

static int32_t *cells_moved(Run *r, const int32_t *from, int64_t count)
{
    int32_t *list = run_alloc(r, count, sizeof(*list));

    if (list && count)
        memcpy(list, from, (size_t)count * sizeof(*list));
    return list;
}

/* All rows, one after the other; false: no memory. */
static bool cells_list_rows(Run *r, CellRowFn list, const void *context, Growing *g, int64_t *start)
{
    int64_t  all = r->h * r->n;
    int32_t *count = calloc((size_t)r->m + 1, sizeof(*count));
    int32_t *key = malloc(((size_t)r->m + 1) * sizeof(*key));
    bool     ok;

    g->words = r->m / 64 + 1;
    g->met = calloc((size_t)g->words, sizeof(*g->met));
    ok = count && key && g->met && cells_reserve(g, 0, all);
    start[0] = 0;
    for (int64_t row = 0; row < all && ok; row++) {
        int64_t found = list(context, row / r->n, row % r->n, count, key);

        ok = cells_reserve(g, start[row], found);
        if (ok)
            cells_append(g, start[row], found, key, count);
        start[row + 1] = start[row] + found;
    }
    free(count);
    free(key);
    return ok;
}

static void fail_of_memory(Run *r)
{
    char limit[48] = "", size[32];

    if (r->spec.memory_limit)
        snprintf(limit, sizeof(limit), "; the limit is %s (--mem)",
                 format_bytes(r->spec.memory_limit, size, sizeof(size)));
    run_fail(r, ERR_NOMEM, "%s: not enough memory for the cells it visits%s", r->mechanism->id,
             limit);
}

/* Entries that the limit leaves room for: while they move to the arena there are two of each. */
static int64_t most_entries(const Run *r, bool counted)
{
    int64_t each = 2 * (int64_t)sizeof(int32_t) * (counted ? 2 : 1);

    return r->spec.memory_limit ? (r->spec.memory_limit - arena_used(r->arena)) / each : INT64_MAX;
}

static const CellRows *rows_new(Run *r, CellRowFn list, const void *context, bool counted)
{
    CellRows *rows = run_wants_views(r) ? run_alloc(r, 1, sizeof(*rows)) : NULL;
    int64_t   all = r->h * r->n;
    Growing   grown = { .counted = counted, .most = most_entries(r, counted) };

    if (!rows)
        return NULL;
    *rows = (CellRows){ .n = r->n, .start = run_alloc(r, all + 1, sizeof(*rows->start)) };
    if (rows->start && !run_failed(r) && !cells_list_rows(r, list, context, &grown, rows->start))
        fail_of_memory(r);
    if (!run_failed(r)) {
        rows->key = cells_moved(r, grown.key, rows->start[all]);
        rows->count = counted ? cells_moved(r, grown.count, rows->start[all]) : NULL;
    }
    free(grown.key);
    free(grown.count);
    free(grown.met);
    return run_failed(r) ? NULL : rows;
}

const CellRows *cell_rows_new(Run *r, CellRowFn list, const void *context)
{
    return rows_new(r, list, context, false);
}

const CellRows *cell_rows_counted(Run *r, CellRowFn list, const void *context)
{
    return rows_new(r, list, context, true);
}

const CellRows *cell_rows_others(Run *r, const CellRows *rows)
{
    CellRows *others = rows ? run_alloc(r, 1, sizeof(*others)) : NULL;
    int64_t   all = r->h * r->n, used = 0;

    if (!others)
        return NULL;
    *others = (CellRows){ .n = r->n, .start = run_alloc(r, all + 1, sizeof(*others->start)),
                          .key = run_alloc(r, rows->start[all], sizeof(*others->key)) };
    if (!run_failed(r))
        others->start[0] = 0;
    for (int64_t row = 0; row < all && !run_failed(r); row++) {
        int64_t from = rows->start[row], count = rows->start[row + 1] - from;

        for (int64_t c = from; c < from + count; c++)
            if (rows->key[c] != row % r->n || count == 1)
                others->key[used++] = rows->key[c];
        others->start[row + 1] = used;
    }
    return run_failed(r) ? NULL : others;
}

Pattern *cell_rows_pattern(Run *r, const CellRows *rows, uint8_t bits)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m };
    Pattern     *p;

    if (!rows)
        return NULL;
    p = pattern_lists(r->arena, s, rows->start, rows->key, bits);
    if (!p)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the pattern", r->mechanism->id);
    return p;
}

int64_t key_lower_bound(const int32_t *keys, int64_t lo, int64_t hi, int64_t wanted)
{
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;

        if (keys[middle] < wanted)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

int32_t cell_rows_count(const CellRows *rows, int64_t head, int64_t i, int64_t j)
{
    int64_t row = head * rows->n + i, end = rows->start[row + 1];
    int64_t at = key_lower_bound(rows->key, rows->start[row], end, j);

    return at < end && rows->key[at] == j ? rows->count[at] : 0;
}

void cell_rows_read(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                    int64_t step, float *out)
{
    const CellRows *rows = view->context;
    int64_t         row = head * rows->n + i, end = rows->start[row + 1];

    memset(out, 0, (size_t)count * sizeof(*out));
    for (int64_t c = key_lower_bound(rows->key, rows->start[row], end, start); c < end; c++) {
        int64_t offset = rows->key[c] - start;

        if (offset / step >= count)
            return;
        if (offset % step == 0)
            out[offset / step] = (float)rows->count[c];
    }
}

/* ---- weights ---------------------------------------------------------------- */

typedef struct CellWeights {
    AttendInput in;
    int64_t     heads, n;
    double     *z; /* [h*n] log-sum-exp of each row */
} CellWeights;

static void cells_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                               int64_t count, int64_t step, float *out)
{
    const CellWeights *w = view->context;
    double             z = w->z[head * w->n + i];

    for (int64_t c = 0; c < count; c++)
        out[c] = (float)exp(attend_score(&w->in, w->heads, head, i, start + c * step) - z);
}

static double row_log_sum(const CellWeights *w, const CellRows *rows, int64_t row, double *score)
{
    int64_t from = rows->start[row], count = rows->start[row + 1] - from;
    double  top = -HUGE_VAL, sum = 0;

    for (int64_t c = 0; c < count; c++) {
        score[c] = attend_score(&w->in, w->heads, row / w->n, row % w->n, rows->key[from + c]);
        top = fmax(top, score[c]);
    }
    for (int64_t c = 0; c < count; c++)
        sum += exp(score[c] - top);
    return top + log(sum);
}

void cell_rows_weights(Run *r, const CellRows *rows, AttendInput in, const Pattern *cells)
{
    CellWeights *w = run_wants_views(r) ? run_alloc(r, 1, sizeof(*w)) : NULL;
    double      *score = run_alloc(r, r->m, sizeof(*score));

    if (!w || !rows)
        return;
    *w = (CellWeights){ .in = in, .heads = r->h, .n = r->n,
                        .z = run_alloc(r, r->h * r->n, sizeof(*w->z)) };
    for (int64_t row = 0; row < r->h * r->n && !run_failed(r) && !r->spec.pairs_only; row++)
        w->z[row] = row_log_sum(w, rows, row, score);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, cells_read_weights, w, cells);
}
