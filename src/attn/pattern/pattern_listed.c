/* pattern_listed.c -- see pattern_listed.h. */
#include "attn/pattern/pattern_listed.h"

#include <stdlib.h>
#include <string.h>

#include "attn/pattern/runs.h"

typedef enum Field { HEAD, QUERY, START, COUNT, STEP, BITS } Field;

/* ---- to a list ---------------------------------------------------------------- */

/* Runs of all rows, written where there is room; -1: no memory. */
static int64_t write_rows(const Pattern *p, int64_t *out)
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
    int64_t count = write_rows(p, NULL);
    Tensor  out = { .data = NULL };

    if (count < 0)
        return out;
    out = tensor_new(a, DT_I64, 2, (int64_t[]){ count, LISTED_FIELDS });
    if (out.data && write_rows(p, out.data) < 0)
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

static int64_t row_of(const Reading *r, int64_t at)
{
    const int64_t *l = r->lines + at * LISTED_FIELDS;

    return (r->each ? l[HEAD] * r->s.n : 0) + l[QUERY];
}

/* The lines of each row, in their order. */
static void sort_lines(Reading *r, int64_t rows)
{
    for (int64_t at = 0; at < r->count; at++)
        r->first[row_of(r, at) + 1]++;
    for (int64_t x = 0; x < rows; x++)
        r->first[x + 1] += r->first[x];
    for (int64_t at = 0; at < r->count; at++)
        r->order[r->first[row_of(r, at)]++] = at;
    for (int64_t x = rows; x > 0; x--)
        r->first[x] = r->first[x - 1];
    r->first[0] = 0;
}

/* Row x behind those before it, its runs disjoint and sorted. */
static void add_row(const Reading *r, int64_t x, PatternRow *one, PatternRow *all)
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

static Pattern *build(Arena *a, Reading *r, int64_t rows)
{
    int64_t    *offset = arena_zalloc(a, rows + 1, sizeof(*offset));
    PatternRun *runs = NULL;
    PatternRow  one = { 0 }, all = { 0 };

    for (int64_t x = 0; offset && x < rows && !all.failed; x++) {
        add_row(r, x, &one, &all);
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
        out = build(a, &r, rows);
    }
    free(r.first);
    free(r.order);
    if (!out)
        error_set(err, ERR_NOMEM, "not enough memory for a pattern of %lld runs",
                  (long long)r.count);
    return out;
}
