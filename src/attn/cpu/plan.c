/* plan.c -- see plan.h. */
#include "attn/cpu/plan.h"

#include <string.h>

enum { SAMPLES = 9 };

static double cells_of(const PatternRow *row)
{
    double cells = 0;

    for (int64_t x = 0; x < row->count; x++)
        cells += (double)row->runs[x].count;
    return cells;
}

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

/* One of SAMPLES rows that lie evenly. */
static void sample_row(const Pattern *pattern, int64_t heads, int64_t rows, int64_t x,
                       PatternRow *row)
{
    int64_t head = pattern_per_head(pattern) ? x * (heads - 1) / (SAMPLES - 1) : 0;

    pattern_row(pattern, head, x * (rows - 1) / (SAMPLES - 1), row);
}

/* Without the fullest: a first row that sees everything is not typical. */
Typical plan_typical(const Pattern *pattern, int64_t heads, int64_t rows)
{
    PatternRow row = { 0 };
    Typical    t = { .step = 1 };
    double     most = -1;
    int64_t    fullest = 0;

    for (int64_t x = 0; x < SAMPLES && !row.failed; x++) {
        sample_row(pattern, heads, rows, x, &row);
        fullest = cells_of(&row) > most ? x : fullest;
        most = cells_of(&row) > most ? cells_of(&row) : most;
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

/* Keys [from, to) of one row. */
static void mark_range(Plan *plan, int64_t row, int64_t from, int64_t to)
{
    while (from < to) {
        int64_t  panel = from / TILE_KEYS, base = panel * TILE_KEYS;
        int64_t  end = to < base + TILE_KEYS ? to : base + TILE_KEYS;
        uint64_t bits = ~UINT64_C(0) >> (TILE_KEYS - (end - from)) << (from - base);

        *touch(plan, panel, row) |= bits;
        from = end;
    }
}

static bool is_planned(const Plan *plan, const PatternRun *run)
{
    return plan->part == RUNS_ALL ||
           (plan->part == RUNS_OF_STEP ? run->step == plan->key_order.step
                                       : run->step != plan->other);
}

static void mark_run(Plan *plan, int64_t row, const PatternRun *run)
{
    int64_t place = phases_place(plan->key_order, run->start);

    if (run->step == plan->key_order.step || run->count == 1) {
        mark_range(plan, row, place, place + run->count);
        return;
    }
    for (int64_t x = 0; x < run->count; x++) {
        int64_t key = phases_place(plan->key_order, run->start + x * run->step);

        *touch(plan, key / TILE_KEYS, row) |= UINT64_C(1) << (key % TILE_KEYS);
    }
}

static TileKind tile_kind(const uint64_t *keep, int64_t rows, int64_t *cells)
{
    uint64_t all = ~UINT64_C(0), any = 0;
    int      count = 0;

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
    return count < SPARSE_CELLS ? TILE_SPARSE : TILE_MASKED;
}

/* Lists the touched panels, classes their tiles and clears the marks. */
static void sum_up(Plan *plan)
{
    int64_t cells = 0, kinds = plan->capacity / TILE_ROWS;

    plan->count = 0;
    plan->sparse = false;
    for (int64_t p = plan->low; p < plan->high; p++) {
        if (!plan->seen[p])
            continue;
        plan->seen[p] = 0;
        for (int64_t g = 0; g < plan->groups; g++) {
            int64_t  left = plan->rows - g * TILE_ROWS;
            TileKind kind = tile_kind(plan_keep(plan, p, g), left < TILE_ROWS ? left : TILE_ROWS,
                                      &cells);

            plan->kind[plan->count * kinds + g] = (uint8_t)kind;
            plan->sparse |= kind == TILE_SPARSE;
        }
        plan->touched[plan->count++] = (int32_t)p;
    }
    plan->cells = (double)cells;
}

bool plan_make(Plan *plan, const Pattern *pattern, int64_t head, int64_t first, int64_t rows)
{
    plan->head = head;
    plan->first = first;
    plan->rows = rows;
    plan->groups = (rows + TILE_ROWS - 1) / TILE_ROWS;
    plan->low = plan->panels;
    plan->high = 0;
    for (int64_t i = 0; i < rows; i++) {
        pattern_row(pattern, head, phases_position(plan->row_order, first + i), &plan->row);
        if (plan->row.failed) {
            plan->head = -1;
            return false;
        }
        for (int64_t x = 0; x < plan->row.count; x++)
            if (is_planned(plan, &plan->row.runs[x]))
                mark_run(plan, i, &plan->row.runs[x]);
    }
    sum_up(plan);
    return true;
}
