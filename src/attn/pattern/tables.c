/* tables.c -- patterns whose keys are listed: tables of keys by row, and lists.
 *
 * A kernel evaluates every row of a table once, so a row must not cost more than its cells:
 * the keys are sorted as integers before they become runs.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/pattern/node.h"
#include "attn/pattern/pattern.h"
#include "core/rng.h"

#define SHORT_ROW 1024 /* longer ones are sorted on the heap */
#define FEW_KEYS 24    /* as many or fewer are inserted sooner than digits are counted */
#define DIGIT 8
#define DIGITS (1 << DIGIT)

/* keys by one digit into out, equal digits in their order. */
static void sort_by_digit(const int32_t *keys, int64_t count, int shift, int32_t *out)
{
    int32_t place[DIGITS] = { 0 }, sum = 0;

    for (int64_t x = 0; x < count; x++)
        place[keys[x] >> shift & (DIGITS - 1)]++;
    for (int digit = 0; digit < DIGITS; digit++) {
        int32_t here = place[digit];

        place[digit] = sum;
        sum += here;
    }
    for (int64_t x = 0; x < count; x++)
        out[place[keys[x] >> shift & (DIGITS - 1)]++] = keys[x];
}

static void sort_few(int32_t *keys, int64_t count)
{
    for (int64_t x = 1; x < count; x++) {
        int32_t key = keys[x];
        int64_t to = x;

        for (; to > 0 && keys[to - 1] > key; to--)
            keys[to] = keys[to - 1];
        keys[to] = key;
    }
}

/* Sorts keys, none negative; work has room for as many. */
static void sort_keys(int32_t *keys, int64_t count, int32_t largest, int32_t *work)
{
    if (count <= FEW_KEYS) {
        sort_few(keys, count);
        return;
    }
    for (int shift = 0; shift < 31 && largest >> shift > 0; shift += DIGIT) {
        sort_by_digit(keys, count, shift, work);
        memcpy(keys, work, (size_t)count * sizeof(*keys));
    }
}

static void push_sorted(PatternRow *row, const int32_t *keys, int64_t count, uint8_t bits)
{
    for (int64_t x = 0, end; x < count; x = end) {
        int64_t length = 1;

        for (end = x + 1; end < count && keys[end] <= keys[end - 1] + 1; end++)
            length += keys[end] > keys[end - 1];
        runs_push(row, keys[x], length, 1, bits);
    }
}

static void row_table(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Tensor  *t = &p->tensor;
    int64_t        r = t->shape[t->rank - 1], count = 0;
    const int32_t *keys = (const int32_t *)t->data +
                          ((t->rank == 3 ? head * t->shape[0] / p->shape.heads : 0) * p->shape.n +
                           i) * r;
    int32_t few[2 * SHORT_ROW], *sorted = few, largest = 0;

    if (r > SHORT_ROW && !(sorted = malloc((size_t)r * 2 * sizeof(*sorted)))) {
        row->failed = true;
        return;
    }
    for (int64_t c = 0; c < r; c++)
        if (keys[c] >= 0) {
            sorted[count++] = keys[c];
            largest = keys[c] > largest ? keys[c] : largest;
        }
    sort_keys(sorted, count, largest, sorted + r);
    push_sorted(row, sorted, count, p->bits);
    if (sorted != few)
        free(sorted);
}

Pattern *pattern_table(Arena *a, PatternShape s, const Tensor *table, uint8_t bits)
{
    Pattern *p = table->data ? pattern_node(a, s, row_table, bits) : NULL;

    if (p) {
        p->tensor = *table;
        p->per_head = table->rank == 3 && table->shape[0] > 1 && table->shape[2] > 0;
    }
    return p;
}

static void row_lists(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const int64_t *offset = p->table;
    const int32_t *keys = p->tensor.data;
    int64_t        at = head * p->shape.n + i, c = offset[at];

    while (c < offset[at + 1]) {
        int64_t length = 1;

        while (c + length < offset[at + 1] && keys[c + length] == keys[c] + length)
            length++;
        runs_push(row, keys[c], length, 1, p->bits);
        c += length;
    }
}

Pattern *pattern_lists(Arena *a, PatternShape s, const int64_t *offset, const int32_t *keys,
                       uint8_t bits)
{
    Pattern *p = pattern_node(a, s, row_lists, bits);
    union {
        const int32_t *in;
        void          *out;
    } cast = { .in = keys }; /* a Tensor's data is not const, this one is only read */

    if (p) {
        p->table = offset;
        p->tensor.data = cast.out;
        p->per_head = s.heads > 1;
    }
    return p;
}

/* Tables of random keys: few distinct ones per row, uniformly.
 *
 * Rows are drawn in order, head after head, from a random stream of the given name, so a table
 * depends on the seed and not on other draws.
 */

typedef struct Draw {
    PatternShape shape;
    PatternSkip  skip;
    void        *context;
    Rng          rng;
    int32_t     *candidates; /* [m], scratch of one row */
} Draw;

static bool tables_taken(const int32_t *out, int64_t count, int64_t key)
{
    for (int64_t t = 0; t < count; t++)
        if (out[t] == key)
            return true;
    return false;
}

/* Robert Floyd's sampling needs no list when every position is a candidate. */
static void draw_from_range(Draw *d, int64_t range, int64_t take, int32_t *out)
{
    for (int64_t c = 0; c < take; c++) {
        int64_t top = range - take + c, key = (int64_t)rng_below(&d->rng, (uint64_t)top + 1);

        out[c] = (int32_t)(tables_taken(out, c, key) ? top : key);
    }
}

#define TRIES 32

/* One more key: by rejection, which is cheap when few positions are left out; after TRIES failures
 * from the list of remaining keys.  -1: none remains. */
static int32_t draw_allowed(Draw *d, int64_t i, int64_t range, const int32_t *out, int64_t c)
{
    int64_t count = 0;

    for (int t = 0; t < TRIES; t++) {
        int64_t key = (int64_t)rng_below(&d->rng, (uint64_t)range);

        if (!tables_taken(out, c, key) && !d->skip(d->context, i, key))
            return (int32_t)key;
    }
    for (int64_t j = 0; j < range; j++)
        if (!tables_taken(out, c, j) && !d->skip(d->context, i, j))
            d->candidates[count++] = (int32_t)j;
    return count ? d->candidates[rng_below(&d->rng, (uint64_t)count)] : -1;
}

static void tables_draw_row(Draw *d, int64_t i, int64_t r, int32_t *out)
{
    int64_t range = d->shape.causal ? min_i64(i + d->shape.q_offset + 1, d->shape.m) : d->shape.m;
    int64_t c = 0;

    if (range < 0)
        range = 0;
    if (!d->skip) {
        c = min_i64(r, range);
        draw_from_range(d, range, c, out);
    } else if (range > 0 && !d->skip(d->context, i, -1)) {
        for (; c < r; c++)
            if ((out[c] = draw_allowed(d, i, range, out, c)) < 0)
                break;
    }
    for (; c < r; c++)
        out[c] = -1;
}

Tensor pattern_draw_random(Arena *a, PatternShape s, int64_t r, uint64_t seed, const char *name,
                           PatternSkip skip, void *context)
{
    int64_t shape[3] = { s.heads, s.n, r };
    Tensor  table = tensor_new(a, DT_I32, 3, shape);
    Draw    d = { .shape = s, .skip = skip, .context = context, .rng = rng_named(seed, name) };
    ArenaMark mark = arena_mark(a);

    d.candidates = arena_alloc(a, skip ? s.m : 1, sizeof(*d.candidates));
    if (!table.data || !d.candidates)
        return (Tensor){ 0 };
    for (int64_t h = 0; h < s.heads; h++)
        for (int64_t i = 0; i < s.n; i++)
            tables_draw_row(&d, i, r, tensor_i32(&table) + (h * s.n + i) * r);
    arena_release(a, mark);
    return table;
}

/* ---- patterns as lists of runs -------------------------------------------------- */

typedef enum Field { HEAD, QUERY, START, COUNT, STEP, BITS } Field;

/* ---- to a list ---------------------------------------------------------------- */

/* The number of runs of all rows, written to `out` unless it is NULL; -1: no memory. */
static int64_t tables_write_rows(const Pattern *p, int64_t *out)
{
    bool       each = pattern_per_head(p);
    int64_t    total = 0;
    PatternRow row = { 0 };

    for (int64_t head = 0; head < (each ? pattern_heads(p) : 1) && !row.failed; head++)
        for (int64_t i = 0; i < pattern_queries(p) && !row.failed; i++) {
            pattern_row(p, head, i, &row);
            for (int64_t c = 0; c < row.count && !row.failed; c++, total++) {
                PatternRun run = row.runs[c];
                int64_t    line[LISTED_FIELDS] = { each ? head : -1, i, run.start,
                                                   run.count, run.step, run.bits };

                if (out)
                    memcpy(out + total * LISTED_FIELDS, line, sizeof(line));
            }
        }
    total = row.failed ? -1 : total;
    pattern_row_free(&row);
    return total;
}

Tensor pattern_list(Arena *a, const Pattern *p)
{
    int64_t count = tables_write_rows(p, NULL);
    Tensor  out = { .data = NULL };

    if (count < 0)
        return out;
    out = tensor_new(a, DT_I64, 2, (int64_t[]){ count, LISTED_FIELDS });
    if (out.data && tables_write_rows(p, out.data) < 0)
        out.data = NULL;
    return out;
}

/* ---- from a list ---------------------------------------------------------------- */

typedef struct Reading {
    PatternShape   s;
    const int64_t *lines;
    int64_t        count;
    bool           each;  /* rows of each head */
    int64_t       *first; /* [rows + 1] of the lines by row */
    int64_t       *order; /* [count] */
} Reading;

static bool line_refused(const Reading *r, int64_t at, const char *what, int64_t value, Error *err)
{
    return error_set(err, ERR_PARAM, "line %lld of the runs has %s %lld (heads %lld, queries %lld, "
                     "keys %lld; lines are head or -1, query, start, count, step, component)",
                     (long long)at, what, (long long)value, (long long)r->s.heads,
                     (long long)r->s.n, (long long)r->s.m);
}

static bool check_line(const Reading *r, int64_t at, Error *err)
{
    const int64_t *l = r->lines + at * LISTED_FIELDS;

    if (r->each != (l[HEAD] >= 0) || l[HEAD] < -1 || l[HEAD] >= r->s.heads)
        return line_refused(r, at, "head", l[HEAD], err);
    if (l[QUERY] < 0 || l[QUERY] >= r->s.n)
        return line_refused(r, at, "query", l[QUERY], err);
    if (l[START] < 0 || l[START] >= r->s.m)
        return line_refused(r, at, "start", l[START], err);
    if (l[STEP] < 1 || l[STEP] > INT64_MAX / 2)
        return line_refused(r, at, "step", l[STEP], err);
    if (l[COUNT] < 1 || l[COUNT] - 1 > (r->s.m - 1 - l[START]) / l[STEP])
        return line_refused(r, at, "count", l[COUNT], err);
    if (l[BITS] < 0 || l[BITS] >= 2 * COMPONENT_LAST)
        return line_refused(r, at, "component", l[BITS], err);
    return true;
}

static int64_t tables_row_of(const Reading *r, int64_t at)
{
    const int64_t *l = r->lines + at * LISTED_FIELDS;

    return (r->each ? l[HEAD] * r->s.n : 0) + l[QUERY];
}

/* The lines of each row, in their order. */
static void sort_lines(Reading *r, int64_t rows)
{
    for (int64_t at = 0; at < r->count; at++)
        r->first[tables_row_of(r, at) + 1]++;
    for (int64_t x = 0; x < rows; x++)
        r->first[x + 1] += r->first[x];
    for (int64_t at = 0; at < r->count; at++)
        r->order[r->first[tables_row_of(r, at)]++] = at;
    for (int64_t x = rows; x > 0; x--)
        r->first[x] = r->first[x - 1];
    r->first[0] = 0;
}

/* Appends row x to `all`, its runs disjoint and sorted. */
static void tables_add_row(const Reading *r, int64_t x, PatternRow *one, PatternRow *all)
{
    one->count = 0;
    for (int64_t c = r->first[x]; c < r->first[x + 1]; c++) {
        const int64_t *l = r->lines + r->order[c] * LISTED_FIELDS;
        int64_t        before = one->count;

        runs_push(one, l[START], l[COUNT], l[COUNT] == 1 ? 1 : l[STEP], (uint8_t)l[BITS]);
        runs_union(one, 0, before);
    }
    runs_tidy(one, 0);
    for (int64_t c = 0; c < one->count && !one->failed; c++)
        runs_push(all, one->runs[c].start, one->runs[c].count, one->runs[c].step,
                  one->runs[c].bits);
    all->failed |= one->failed;
}

static Pattern *tables_build(Arena *a, Reading *r, int64_t rows)
{
    int64_t    *offset = arena_zalloc(a, rows + 1, sizeof(*offset));
    PatternRun *runs = NULL;
    PatternRow  one = { 0 }, all = { 0 };

    for (int64_t x = 0; offset && x < rows && !all.failed; x++) {
        tables_add_row(r, x, &one, &all);
        offset[x + 1] = all.count;
    }
    if (offset && !all.failed)
        runs = arena_alloc(a, all.count + 1, sizeof(*runs));
    if (runs && all.count)
        memcpy(runs, all.runs, (size_t)all.count * sizeof(*runs));
    pattern_row_free(&one);
    pattern_row_free(&all);
    return runs ? pattern_stored(a, r->s, offset, runs, r->each) : NULL;
}

Pattern *pattern_of_list(Arena *a, PatternShape s, const Tensor *list, Error *err)
{
    Reading  r = { .s = s, .lines = list->data, .count = list->shape[0] };
    int64_t  rows;
    Pattern *out = NULL;

    r.each = r.count && r.lines[HEAD] >= 0;
    for (int64_t at = 0; at < r.count; at++)
        if (!check_line(&r, at, err))
            return NULL;
    rows = (r.each ? s.heads : 1) * s.n;
    r.first = calloc((size_t)rows + 1, sizeof(*r.first));
    r.order = malloc(((size_t)r.count + 1) * sizeof(*r.order));
    if (r.first && r.order) {
        sort_lines(&r, rows);
        out = tables_build(a, &r, rows);
    }
    free(r.first);
    free(r.order);
    if (!out)
        error_set(err, ERR_NOMEM, "not enough memory for a pattern of %lld runs",
                  (long long)r.count);
    return out;
}
