/* result_table.c -- the points of a sweep as a table; see result_table.h. */
#include "app/study/result_table.h"

#include <stdio.h>
#include <string.h>

/* ---- for programs: every number, as it is in the record --------------------- */

static const char *const numbers[] = {
    "time_ms.median", "time_ms.q1", "time_ms.q3", "time_ms.min", "time_ms.first", "cpu_ms",
    "flops.counted", "flops.closed_form", "flops.hardware", "bytes", "memory.arena_peak",
    "memory.heap_peak", "memory.device_peak", "memory.rss_peak", "quality.mass_mean",
    "quality.mass_p5", "quality.mass_min", "quality.output_error", "quality.total_variation",
    "quality.kl",
    "gpu.events.span_ms", "gpu.activity.busy_ms", "gpu.activity.copy_ms", "gpu.activity.launches",
    "gpu.activity.idle_ms", "gpu.activity.allocated", "gpu.counters.flops", "gpu.counters.fp32",
    "gpu.counters.fp64", "gpu.counters.tensor",
    "gpu.counters.fused", "gpu.counters.dram_read", "gpu.counters.dram_written",
    "gpu.counters.occupancy",
};
#define NUMBERS ((int)(sizeof(numbers) / sizeof(*numbers)))

static const char *const texts[] = { "mechanism", "params", "source", "n", "d", "heads", "causal",
                                     "position", "seed", "device", "precision", "threads", "status",
                                     "message", "key", "version" };
#define TEXTS ((int)(sizeof(texts) / sizeof(*texts)))

/* A refused point knows only what was asked of it. */
static void size_cell(Table *t, int64_t size)
{
    if (size > 0)
        table_cell(t, "%lld", (long long)size);
    else
        table_cell(t, "n/a");
}

static void csv_row(const ResultRow *row, Table *t)
{
    table_cell(t, "%s", row->mechanism);
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
    table_cell(t, "%s", row->version);
    for (int i = 0; i < NUMBERS; i++) {
        Number value = row_number(row, numbers[i]);

        if (value.valid)
            table_cell(t, "%.15g", value.value);
        else
            table_cell(t, "n/a");
    }
}

static void points_csv(const Results *rows, Text *out)
{
    Table t = { .cols = TEXTS + NUMBERS };

    for (int i = 0; i < TEXTS; i++)
        table_cell(&t, "%s", texts[i]);
    for (int i = 0; i < NUMBERS; i++)
        table_cell(&t, "%s", numbers[i]);
    for (int i = 0; i < rows->count; i++)
        csv_row(&rows->rows[i], &t);
    table_write(&t, TABLE_CSV, out);
    table_free(&t);
}

/* ---- for people ------------------------------------------------------------- */

/* A column that says the same in every row is left out. */
typedef struct Shown {
    bool position, seed, threads, device, precision, gpu, quality, notes;
} Shown;

static Shown what_differs(const Results *rows)
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
    if (shown->notes)
        table_cell(t, row->ok ? "%s" : "%s: %s", row->status, row->message);
}

void points_table(const Results *rows, TableStyle style, int room, Text *out)
{
    Shown shown = what_differs(rows);
    Table t = { .cols = 1, .room = room };

    if (style == TABLE_CSV) {
        points_csv(rows, out);
        return;
    }
    points_head(&shown, &t);
    for (int i = 0; i < rows->count; i++)
        points_row(rows, &rows->rows[i], &shown, &t);
    table_write(&t, style, out);
    table_free(&t);
}
