/* tables.c -- the points of a sweep as a table; see sweep.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/sweep.h"
#include "profile/measure.h"

/* ---- for programs: every number, as it is in the record --------------------- */

static const char *const numbers[] = {
    "free_processors",
    "time_ms.median", "time_ms.median_low", "time_ms.median_high", "time_ms.q1", "time_ms.q3",
    "time_ms.min", "time_ms.first", "time_ms.outliers", "time_ms.drift",
    "time_ms.involuntary_switches", "cpu_ms",
    "flops.counted", "flops.closed_form", "flops.hardware", "bytes", "memory.arena_peak",
    "memory.heap_peak", "memory.device_peak", "memory.rss_peak", "quality.mass_mean",
    "quality.mass_p5", "quality.mass_min", "quality.output_error", "quality.total_variation",
    "quality.kl", "seeds.count", "seeds.mass.mean", "seeds.mass.min", "seeds.mass.max",
    "seeds.output_error.mean", "seeds.output_error.min", "seeds.output_error.max",
    "decode.state_bytes", "decode.kv_bytes_per_token", "decode.step_bytes",
    "decode.decode_flops", "decode.counted_flops", "decode.step_ms.median",
    "decode.step_ms.median_low", "decode.step_ms.median_high", "decode.kept_ms",
    "kv_heads", "process.number",
    "gpu.events.span_ms", "gpu.activity.busy_ms", "gpu.activity.copy_ms", "gpu.activity.launches",
    "gpu.activity.idle_ms", "gpu.activity.allocated", "gpu.counters.flops", "gpu.counters.fp32",
    "gpu.counters.fp64", "gpu.counters.tensor",
    "gpu.counters.fused", "gpu.counters.dram_read", "gpu.counters.dram_written",
    "gpu.counters.occupancy",
};
#define NUMBERS ((int)(sizeof(numbers) / sizeof(*numbers)))

static const char *const texts[] = {
    "mechanism", "asked", "params", "source", "n", "d", "heads", "causal", "position", "seed",
    "device", "precision", "threads", "status", "message", "key", "host", "time", "commit",
    "record_version", "environment.version", "process.against", "decode.way",
    "flops.closed_form_is_bound", "warnings", "time_ms.samples", "oversubscribed",
};
#define TEXTS ((int)(sizeof(texts) / sizeof(*texts)))

static void word_cell(Table *t, const char *text)
{
    table_cell(t, "%s", text ? text : "n/a");
}

/* A refused point knows only the size it was asked for. */
static void size_cell(Table *t, int64_t size)
{
    if (size > 0)
        table_cell(t, "%lld", (long long)size);
    else
        table_cell(t, "n/a");
}

/* A list of the record as its JSON: [0.12,0.11]. */
static void list_cell(const ResultRow *row, const char *path, Table *t)
{
    char *list = row_list(row, path);

    table_cell(t, "%s", list ? list : "n/a");
    free(list);
}

static void csv_row(const ResultRow *row, Table *t)
{
    table_cell(t, "%s", row->mechanism);
    table_cell(t, "%s", row->asked);
    table_cell(t, "%s", row->params);
    table_cell(t, "%s", row->source);
    size_cell(t, row->n);
    size_cell(t, row->d);
    size_cell(t, row->heads);
    table_cell(t, "%s", row->causal ? "true" : "false");
    table_cell(t, "%s", row->position);
    table_cell(t, "%lld", (long long)row->seed);
    table_cell(t, "%s", row->device);
    table_cell(t, "%s", row->precision);
    size_cell(t, row->threads);
    table_cell(t, "%s", row->status);
    table_cell(t, "%s", row->message);
    table_cell(t, "%s", row->key);
    table_cell(t, "%s", row->host);
    table_cell(t, "%s", row->time);
    table_cell(t, "%s", row->commit);
    size_cell(t, row->record_version);
    table_cell(t, "%s", row->version);
    word_cell(t, row_text(row, "process.against"));
    word_cell(t, row_text(row, "decode.way"));
    word_cell(t, row_flag(row, "flops.closed_form_is_bound"));
    list_cell(row, "warnings", t);
    list_cell(row, "time_ms.samples", t);
    word_cell(t, row_flag(row, "oversubscribed"));
    for (int i = 0; i < NUMBERS; i++)
        table_number(t, row_number(row, numbers[i]), 15);
}

void points_csv(const Results *rows, const char *head, const Number *beside, Text *out)
{
    Table t = { .cols = TEXTS + NUMBERS + (head != NULL) };

    for (int i = 0; i < TEXTS; i++)
        table_cell(&t, "%s", texts[i]);
    for (int i = 0; i < NUMBERS; i++)
        table_cell(&t, "%s", numbers[i]);
    if (head)
        table_cell(&t, "%s", head);
    for (int i = 0; i < rows->count; i++) {
        csv_row(&rows->rows[i], &t);
        if (head)
            table_number(&t, beside[i], 15);
    }
    table_write(&t, TABLE_CSV, out);
    table_free(&t);
}

/* ---- for people ------------------------------------------------------------- */

/* A column with the same text in every row is left out. */
typedef struct Shown {
    bool position, seed, threads, device, precision, gpu, quality, decode, notes;
} Shown;

static Shown columns_that_differ(const Results *rows)
{
    Shown            shown = { false };
    const ResultRow *first = rows->rows;

    for (int i = 0; i < rows->count; i++) {
        const ResultRow *row = &rows->rows[i];

        shown.position |= strcmp(row->position, first->position) != 0;
        shown.seed |= row->seed != first->seed;
        shown.threads |= row->ok && first->ok && row->threads != first->threads;
        shown.device |= strcmp(row->device, first->device) != 0;
        shown.precision |= strcmp(row->precision, first->precision) != 0;
        shown.gpu |= row_number(row, "memory.device_peak").valid;
        shown.quality |= row_number(row, "quality.output_error").valid;
        shown.decode |= row_number(row, "decode.state_bytes").valid ||
                        row_number(row, "decode.step_ms.median").valid;
        shown.notes |= !row->ok;
    }
    return shown;
}

static void points_head(const Shown *shown, Table *t)
{
    table_cell(t, "mechanism");
    table_cell(t, "n");
    if (shown->position)
        table_cell(t, "position");
    if (shown->seed)
        table_cell(t, "seed");
    if (shown->threads)
        table_cell(t, "threads");
    if (shown->device)
        table_cell(t, "device");
    if (shown->precision)
        table_cell(t, "precision");
    t->keys = t->count;
    table_cell(t, "time ms");
    table_cell(t, "q1..q3");
    if (shown->gpu)
        table_cell(t, "kernels ms");
    table_cell(t, "FLOP");
    table_cell(t, "arena");
    table_cell(t, "heap");
    if (shown->gpu)
        table_cell(t, "GPU mem");
    if (shown->quality) {
        table_cell(t, "mass mean");
        table_cell(t, "output err");
    }
    if (shown->decode) {
        table_cell(t, "cache");
        table_cell(t, "step reads");
        table_cell(t, "step FLOP");
        table_cell(t, "step ms");
    }
    if (shown->notes)
        table_cell(t, "status");
    t->cols = t->count;
}

static void quartiles(const ResultRow *row, Table *t)
{
    Number q1 = row_number(row, "time_ms.q1"), q3 = row_number(row, "time_ms.q3");
    char   a[32], b[32];

    if (q1.valid && q3.valid)
        table_cell(t, "%s..%s", format_ms(q1, a, sizeof(a)), format_ms(q3, b, sizeof(b)));
    else
        table_cell(t, "n/a");
}

/* One token more; *: the last query alone makes again what a decoder keeps. */
static void step_cells(const ResultRow *row, Table *t)
{
    Number flops = row_number(row, "decode.decode_flops"), kept = row_number(row, "decode.kept_ms");
    char   text[48];

    table_cell(t, "%s", format_size(row_number(row, "decode.state_bytes"), text, sizeof(text)));
    table_cell(t, "%s", format_size(row_number(row, "decode.step_bytes"), text, sizeof(text)));
    table_cell(t, "%s", flops.valid ? format_count(flops.value, text, sizeof(text)) : "n/a");
    table_cell(t, "%s%s",
               format_ms(row_number(row, "decode.step_ms.median"), text, sizeof(text)),
               kept.valid ? "*" : "");
}

static void points_row(const Results *rows, const ResultRow *row, const Shown *shown, Table *t)
{
    Text   name = { 0 };
    Number flops = row_number(row, "flops.counted");
    char   text[48];

    row_name(rows, row, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    size_cell(t, row->n);
    if (shown->position)
        table_cell(t, "%s", row->position);
    if (shown->seed)
        table_cell(t, "%lld", (long long)row->seed);
    if (shown->threads)
        size_cell(t, row->threads);
    if (shown->device)
        table_cell(t, "%s", row->device);
    if (shown->precision)
        table_cell(t, "%s", row->precision);
    table_cell(t, "%s", format_ms(row_number(row, "time_ms.median"), text, sizeof(text)));
    quartiles(row, t);
    if (shown->gpu)
        table_cell(t, "%s",
                   format_ms(row_number(row, "gpu.activity.busy_ms"), text, sizeof(text)));
    table_cell(t, "%s", flops.valid ? format_count(flops.value, text, sizeof(text)) : "n/a");
    table_cell(t, "%s", format_size(row_number(row, "memory.arena_peak"), text, sizeof(text)));
    table_cell(t, "%s", format_size(row_number(row, "memory.heap_peak"), text, sizeof(text)));
    if (shown->gpu)
        table_cell(t, "%s",
                   format_size(row_number(row, "memory.device_peak"), text, sizeof(text)));
    if (shown->quality) {
        table_cell(t, "%s", format_share(row_number(row, "quality.mass_mean"), text, sizeof(text)));
        table_cell(t, "%s",
                   format_share(row_number(row, "quality.output_error"), text, sizeof(text)));
    }
    if (shown->decode)
        step_cells(row, t);
    if (shown->notes)
        table_cell(t, row->ok ? "%s" : "%s: %s", row->status, row->message);
}

void points_table(const Results *rows, TableStyle style, int room, Text *out)
{
    Shown shown = columns_that_differ(rows);
    Table t = { .cols = 1, .room = room };

    if (style == TABLE_CSV) {
        points_csv(rows, NULL, NULL, out);
        return;
    }
    points_head(&shown, &t);
    for (int i = 0; i < rows->count; i++)
        points_row(rows, &rows->rows[i], &shown, &t);
    table_write(&t, style, out);
    table_free(&t);
    if (shown.decode)
        text_add(out, "\ncache: bytes after the tokens of the run; step: what one token more "
                      "reads and computes;\nstep ms: without what a decoder keeps (*: made "
                      "again).\n");
}

/* ---- speed and memory relative to full attention ------------------------- */

/* The form of Tay et al. 2020, arXiv 2011.04006, Table 2. */

#define LENGTHS 6 /* of the longest ones, in files with other lengths */

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

/* Full attention at the same settings; empty: none. */
static Series baseline_of(const Results *rows, const ResultRow *row)
{
    for (int i = 0; i < rows->count; i++) {
        const Mechanism *m = mechanism_find(rows->rows[i].mechanism);

        if (m && (m->classes & CLASS_BASELINE) && row_same_setting(&rows->rows[i], row))
            return series_from(rows, i);
    }
    return (Series){ 0, 0 };
}

/* Runs a second, or bytes, and the ratio to full attention. */
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
        table_number(&r->table, own, 6);
        table_number(&r->table, ratio, 6);
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
    if (style == TABLE_TEXT) { /* tables below each other: they are wide */
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
