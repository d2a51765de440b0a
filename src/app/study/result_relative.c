/* result_relative.c -- speed and memory beside full attention's, length by length; see
 * result_table.h.  The shape is that of Tay et al. 2020, Long Range Arena, arXiv 2011.04006,
 * Table 2: a row for each mechanism, speed and peak memory at 1k to 4k.
 */
#include "app/study/result_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/measure.h"

#define LENGTHS 6 /* the longest ones of a file with other lengths */

typedef struct Relative {
    const Results *rows;
    int64_t        n[LENGTHS];
    int            lengths;
    TableStyle     style;
    Table          table;
} Relative;

typedef struct Series {
    int from, to; /* rows */
} Series;

typedef enum Measure { SPEED, MEMORY } Measure;

static bool has_length(const Results *rows, int64_t n)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->rows[i].ok && rows->rows[i].n == n)
            return true;
    return false;
}

/* The next longer one below `below`; 0: none. */
static int64_t longest_below(const Results *rows, int64_t below)
{
    int64_t n = 0;

    for (int i = 0; i < rows->count; i++)
        if (rows->rows[i].ok && rows->rows[i].n < below && rows->rows[i].n > n)
            n = rows->rows[i].n;
    return n;
}

static void choose_lengths(Relative *r)
{
    int64_t longest[LENGTHS], below = INT64_MAX;
    bool    arena = true;

    for (int k = 1; k <= 4; k++)
        arena &= has_length(r->rows, 1024 * k);
    for (int k = 1; arena && k <= 4; k++)
        r->n[r->lengths++] = 1024 * k;
    if (arena)
        return;
    while (r->lengths < LENGTHS && (below = longest_below(r->rows, below)) > 0)
        longest[r->lengths++] = below;
    for (int k = 0; k < r->lengths; k++)
        r->n[k] = longest[r->lengths - 1 - k];
}

/* Median over the seeds. */
static Number value_at(const Results *rows, Series s, int64_t n, const char *path)
{
    double *values = calloc((size_t)(s.to - s.from) + 1, sizeof(*values));
    int     count = 0;
    Number  median = NUMBER_NONE;

    for (int i = s.from; values && i < s.to; i++) {
        Number value = row_number(&rows->rows[i], path);

        if (rows->rows[i].ok && rows->rows[i].n == n && value.valid)
            values[count++] = value.value;
    }
    if (count)
        median = number_of(stats_quantile(values, count, 0.5));
    free(values);
    return median;
}

static Series series_from(const Results *rows, int from)
{
    Series s = { from, from + 1 };

    while (s.to < rows->count && row_same_series(&rows->rows[from], &rows->rows[s.to]))
        s.to++;
    return s;
}

/* Full attention in the same setting; empty: there is none. */
static Series baseline_of(const Results *rows, const ResultRow *row)
{
    for (int i = 0; i < rows->count; i++) {
        const Mechanism *m = mechanism_find(rows->rows[i].mechanism);

        if (m && (m->classes & CLASS_BASELINE) && row_same_setting(&rows->rows[i], row))
            return series_from(rows, i);
    }
    return (Series){ 0, 0 };
}

static void csv_cells(Relative *r, Number value, Number ratio)
{
    const Number both[] = { value, ratio };

    for (int i = 0; i < 2; i++)
        if (both[i].valid)
            table_cell(&r->table, "%.6g", both[i].value);
        else
            table_cell(&r->table, "n/a");
}

/* Runs a second, or bytes; and the share of full attention's. */
static void cells(Relative *r, Series s, Measure what, int64_t n)
{
    const char *path = what == SPEED ? "time_ms.median" : "memory.arena_peak";
    Series      base = baseline_of(r->rows, &r->rows->rows[s.from]);
    Number      own = value_at(r->rows, s, n, path), full = value_at(r->rows, base, n, path), ratio;
    char        text[48], factor[32] = "";

    if (what == SPEED) {
        own = own.value > 0 ? number_of(1000 / own.value) : NUMBER_NONE;
        full = full.value > 0 ? number_of(1000 / full.value) : NUMBER_NONE;
    }
    ratio =
        own.valid && full.valid && full.value > 0 ? number_of(own.value / full.value) : NUMBER_NONE;
    if (r->style == TABLE_CSV) {
        csv_cells(r, own, ratio);
        return;
    }
    if (ratio.valid)
        snprintf(factor, sizeof(factor), ratio.value < 10 ? " (%.2fx)" : " (%.0fx)", ratio.value);
    if (what == MEMORY)
        table_cell(&r->table, "%s%s", format_size(own, text, sizeof(text)), factor);
    else if (own.valid)
        table_cell(&r->table, own.value < 10 ? "%.2f%s" : "%.0f%s", own.value, factor);
    else
        table_cell(&r->table, "n/a");
}

static bool any_measured(const Relative *r, Series s)
{
    for (int k = 0; k < r->lengths; k++)
        if (value_at(r->rows, s, r->n[k], "time_ms.median").valid)
            return true;
    return false;
}

static void row(Relative *r, Series s, Measure from, Measure to)
{
    Text name = { 0 };

    series_name(r->rows, &r->rows->rows[s.from], &name);
    table_cell(&r->table, "%s", text_str(&name));
    text_free(&name);
    for (Measure what = from; what <= to; what++)
        for (int k = 0; k < r->lengths; k++)
            cells(r, s, what, r->n[k]);
}

static void head(Relative *r, Measure from, Measure to)
{
    static const char *const names[] = { "runs/s", "memory" };
    static const char *const ids[] = { "speed", "memory" };

    table_cell(&r->table, "mechanism");
    for (Measure what = from; what <= to; what++)
        for (int k = 0; k < r->lengths; k++) {
            if (r->style == TABLE_CSV) {
                table_cell(&r->table, "%s.%lld", ids[what], (long long)r->n[k]);
                table_cell(&r->table, "%s_ratio.%lld", ids[what], (long long)r->n[k]);
            } else {
                table_cell(&r->table, "%s n=%lld", names[what], (long long)r->n[k]);
            }
        }
    r->table.cols = r->table.count;
}

static void write_block(Relative *r, Measure from, Measure to, Text *out)
{
    r->table = (Table){ .cols = 1 };
    head(r, from, to);
    for (int i = 0; i < r->rows->count;) {
        Series s = series_from(r->rows, i);

        if (any_measured(r, s))
            row(r, s, from, to);
        i = s.to;
    }
    table_write(&r->table, r->style, out);
    table_free(&r->table);
}

void relative_table(const Results *rows, TableStyle style, Text *out)
{
    Relative r = { .rows = rows, .style = style };

    choose_lengths(&r);
    if (!r.lengths)
        return;
    if (style == TABLE_TEXT) { /* one below the other: they are wide */
        write_block(&r, SPEED, SPEED, out);
        text_add(out, "\n");
        write_block(&r, MEMORY, MEMORY, out);
    } else {
        write_block(&r, SPEED, MEMORY, out);
    }
    if (style != TABLE_CSV)
        text_add(out, "\nRuns a second and working memory (arena peak); in parentheses how many "
                      "times full attention's at the\nsame length: speed above 1x is faster, "
                      "memory below 1x is less.  One forward pass of the attention alone.\n");
}
