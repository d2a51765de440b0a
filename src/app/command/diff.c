/* diff.c -- compares two result files point by point: what costs more.
 *
 * Points are paired by the part of their key that does not name the version.  Time is judged by the
 * interval of the ratio of the medians, so noise alone does not fail; FLOPs and memory have no
 * noise and are judged by the ratio itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/sweep.h"

typedef struct Diff {
    const Results *a, *b;
    double         over;    /* a ratio above 1 + over fails; < 0: nothing fails */
    Table          table;
    int            pairs, dearer, missing, added, unmeasured, unjudged;
    Text           names;   /* of points in one file only */
} Diff;

/* ---- pairs ------------------------------------------------------------------ */

static bool same_point(const ResultRow *a, const ResultRow *b)
{
    int length = key_point_length(a->key);

    if (!*a->key || !*b->key) /* lines of `run --json` have no key */
        return row_same_point(a, b);
    return length == key_point_length(b->key) && !strncmp(a->key, b->key, (size_t)length);
}

static const ResultRow *partner(const Results *rows, const ResultRow *row)
{
    for (int i = rows->count - 1; i >= 0; i--)
        if (same_point(&rows->rows[i], row))
            return &rows->rows[i];
    return NULL;
}

static void add_point_name(Diff *d, const Results *rows, const ResultRow *row, const char *why)
{
    text_add(&d->names, "  ");
    row_name(rows, row, &d->names);
    text_addf(&d->names, " n=%lld seed=%lld: %s\n", (long long)row->n, (long long)row->seed, why);
}

/* ---- one pair --------------------------------------------------------------- */

static Ratio time_ratio(const ResultRow *a, const ResultRow *b)
{
    int     a_count, b_count;
    double *a_ms = row_samples(a, &a_count), *b_ms = row_samples(b, &b_count);
    Ratio   r = ratio_of_medians(a_ms, a_count, b_ms, b_count);

    free(a_ms);
    free(b_ms);
    return r;
}

/* Not valid where either was not measured; 1 where both are 0. */
static Ratio plain_ratio(const ResultRow *a, const ResultRow *b, const char *path)
{
    Number x = row_number(a, path), y = row_number(b, path);
    Ratio  r = { .value = NUMBER_NONE };

    if (x.valid && y.valid && (x.value > 0 || y.value == x.value))
        r.value = number_of(x.value > 0 ? y.value / x.value : 1);
    return r;
}

/* Time without an interval is not judged: the difference may be noise. */
static bool is_dearer(const Diff *d, Ratio r, bool needs_interval)
{
    double least = r.lo.valid ? r.lo.value : r.value.value;

    return d->over >= 0 && r.value.valid && (r.lo.valid || !needs_interval) &&
           !(least <= 1 + d->over);
}

static void ratio_cell(Table *t, Ratio r)
{
    if (r.lo.valid)
        table_cell(t, "%.3f [%.3f, %.3f]", r.value.value, r.lo.value, r.hi.value);
    else if (r.value.valid)
        table_cell(t, "%.3f", r.value.value);
    else
        table_cell(t, "n/a");
}

static void compare_pair(Diff *d, const ResultRow *a, const ResultRow *b)
{
    const Ratio ratios[] = { time_ratio(a, b), plain_ratio(a, b, "flops.counted"),
                             plain_ratio(a, b, "memory.arena_peak") };
    static const char *const what[] = { "time", "FLOPs", "memory" };
    Text  name = { 0 }, verdict = { 0 };

    d->pairs++;
    for (int i = 0; i < 3; i++)
        if (is_dearer(d, ratios[i], i == 0))
            text_addf(&verdict, "%s%s", verdict.length ? ", " : "dearer: ", what[i]);
    d->dearer += verdict.length > 0;
    d->unjudged += !ratios[0].lo.valid;
    row_name(d->a, a, &name);
    table_cell(&d->table, "%s", text_str(&name));
    table_cell(&d->table, "%lld", (long long)a->n);
    table_cell(&d->table, "%lld", (long long)a->seed);
    for (int i = 0; i < 3; i++)
        ratio_cell(&d->table, ratios[i]);
    table_cell(&d->table, "%s", verdict.length ? text_str(&verdict) : "-");
    text_free(&name);
    text_free(&verdict);
}

static void take_point(Diff *d, const ResultRow *a)
{
    const ResultRow *b = partner(d->b, a);
    char             why[600];

    if (!b) {
        d->missing++;
        add_point_name(d, d->a, a, "missing in the second file");
    } else if (a->ok && b->ok) {
        compare_pair(d, a, b);
    } else if (a->ok) {
        d->unmeasured++;
        snprintf(why, sizeof(why), "%s in the second file: %.500s", b->status, b->message);
        add_point_name(d, d->a, a, why);
    }
}

static void take_all(Diff *d)
{
    static const char *const heads[] = { "mechanism", "n", "seed", "time b/a", "FLOPs b/a",
                                         "memory b/a", "verdict" };

    for (int i = 0; i < 7; i++)
        table_cell(&d->table, "%s", heads[i]);
    for (int i = 0; i < d->a->count; i++)
        take_point(d, &d->a->rows[i]);
    for (int i = 0; i < d->b->count; i++)
        if (!partner(d->a, &d->b->rows[i])) {
            d->added++;
            add_point_name(d, d->b, &d->b->rows[i], "new in the second file");
        }
}

/* ---- the command ------------------------------------------------------------ */

static bool parse_share(const char *text, double *out, Error *err)
{
    char *end;

    *out = -1;
    if (!text)
        return true;
    *out = strtod(text, &end);
    if (end == text || !(*out >= 0) || (*end && strcmp(end, "%") != 0))
        return error_set(err, ERR_USAGE, "--fail-over: expected a percentage like 5%%, got '%s'",
                         text);
    if (!*end && *out > 0 && *out < 1)
        return error_set(err, ERR_USAGE, "--fail-over: '%s' may mean %g%% or %s%%: write one of "
                         "them", text, 100 * *out, text);
    *out /= 100;
    return true;
}

static void summarise_diff(const Diff *d, Text *out)
{
    text_add(out, "\n");
    text_add_count(out, d->pairs, "point");
    text_add(out, " in both");
    if (d->over >= 0)
        text_addf(out, ", %d dearer by more than %g%%", d->dearer, 100 * d->over);
    text_addf(out, "; missing %d, no longer measured %d, new %d\n%s", d->missing, d->unmeasured,
              d->added, text_str(&d->names));
    if (d->unjudged) {
        text_add(out, "time of ");
        text_add_count(out, d->unjudged, "point");
        text_add(out, " was not judged: fewer than three samples (sweep --repeat 5)\n");
    }
    text_add(out, "b/a: above 1 is dearer.  time: ratio of the medians [95 % interval]; it is "
                  "dearer when the whole interval is.\n");
}

static bool judge_diff(const Diff *d, const char *a, const char *b, Error *err)
{
    if (!d->pairs)
        return error_set(err, ERR_DATA, "%s and %s have no measured point in common (other input, "
                         "parameters or lengths?)", a, b);
    if (d->over < 0 || !(d->dearer + d->missing + d->unmeasured))
        return true;
    return error_set(err, ERR_DIFFERENCE, "%s against %s: %d dearer, %d missing, %d no longer "
                     "measured", b, a, d->dearer, d->missing, d->unmeasured);
}

bool command_diff(Session *s, const Call *call, Text *out, Error *err)
{
    Results a = { 0 }, b = { 0 };
    Diff    d = { .a = &a, .b = &b, .table.cols = 7 };
    bool    ok;

    (void)s;
    if (call->word_count != 2)
        return error_set(err, ERR_USAGE, "diff needs two result files: attnscope diff old.jsonl "
                         "new.jsonl --fail-over 5%%");
    ok = parse_share(call->values[OPT_FAILOVER], &d.over, err) &&
         results_read(call->words[0], 0, &a, err) && results_read(call->words[1], 0, &b, err);
    if (ok) {
        results_latest(&a);
        results_latest(&b);
        results_sort(&a);
        results_sort(&b);
        take_all(&d);
        table_write(&d.table, call_style(call), out);
        if (!call->values[OPT_CSV])
            summarise_diff(&d, out);
        ok = judge_diff(&d, call->words[0], call->words[1], err);
    }
    table_free(&d.table);
    text_free(&d.names);
    results_free(&a);
    results_free(&b);
    return ok;
}
