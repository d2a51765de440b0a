/* cell_rows.c -- see cell_rows.h.
 *
 * The lists grow by doubling inside the arena, so each row is asked for once;
 * what a growth leaves behind ends with the run.
 */
#include "attn/cell_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run.h"

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static int32_t *grown(Run *r, const int32_t *old, int64_t used, int64_t capacity)
{
    int32_t *list = run_alloc(r, capacity, sizeof(*list));

    if (list && used)
        memcpy(list, old, (size_t)used * sizeof(*list));
    return list;
}

static void reserve(Run *r, CellRows *rows, int64_t *capacity, int64_t used, int64_t more)
{
    if (used + more <= *capacity)
        return;
    *capacity = 2 * (used + more);
    rows->key = grown(r, rows->key, used, *capacity);
    rows->count = grown(r, rows->count, used, *capacity);
}

/* Row `row`, of which `found` keys are in `key`, behind the rows before it. */
static void append(CellRows *rows, int64_t row, int64_t found, int32_t *key, int32_t *count)
{
    int64_t at = rows->start[row];

    qsort(key, (size_t)found, sizeof(*key), by_value);
    for (int64_t c = 0; c < found; c++) {
        rows->key[at + c] = key[c];
        rows->count[at + c] = count[key[c]];
        count[key[c]] = 0;
    }
    rows->start[row + 1] = at + found;
}

const CellRows *cell_rows_new(Run *r, CellRowFn list, const void *context)
{
    CellRows *rows = run_wants_views(r) ? run_alloc(r, 1, sizeof(*rows)) : NULL;
    int64_t   all = r->h * r->n, capacity = 0;
    int32_t  *count, *key;

    if (!rows)
        return NULL;
    *rows = (CellRows){ .n = r->n, .start = run_alloc(r, all + 1, sizeof(*rows->start)) };
    count = run_alloc(r, r->m, sizeof(*count));
    key = run_alloc(r, r->m, sizeof(*key));
    reserve(r, rows, &capacity, 0, all);
    if (run_failed(r))
        return NULL;
    memset(count, 0, (size_t)r->m * sizeof(*count));
    rows->start[0] = 0;
    for (int64_t row = 0; row < all; row++) {
        int64_t found = list(context, row / r->n, row % r->n, count, key);

        reserve(r, rows, &capacity, rows->start[row], found);
        if (run_failed(r))
            return NULL;
        append(rows, row, found, key, count);
    }
    return rows;
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

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
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
    for (int64_t row = 0; row < r->h * r->n && !run_failed(r); row++)
        w->z[row] = row_log_sum(w, rows, row, score);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, w, cells);
}
