/* decode.c -- see decode.h. */
#include <math.h>
#include <string.h>

#include "attn/run.h"
#include "attn/run/decode.h"

/* ---- the last row ------------------------------------------------------------ */

/* Room for the keys of one row, [m] each. */
typedef struct LastList {
    int32_t *count, *key;
    uint8_t *met;
} LastList;

/* Marks the row's keys; returns how many were not marked before. */
static int64_t mark_keys(const PatternRow *row, uint8_t *met)
{
    int64_t fresh = 0;

    for (int64_t x = 0; x < row->count; x++)
        for (int64_t c = 0; c < row->runs[x].count; c++) {
            uint8_t *key = met + row->runs[x].start + c * row->runs[x].step;

            fresh += !*key;
            *key = 1;
        }
    return fresh;
}

/* Distinct keys that the query heads of each of `groups` heads read, summed; where there was no
 * memory for a row, `row` says so. */
static int64_t distinct_keys(Run *r, const Pattern *cells, int64_t groups, PatternRow *row,
                             uint8_t *met)
{
    int64_t each = r->h / groups, last = pattern_queries(cells) - 1, keys = 0;

    for (int64_t head = 0; head < r->h; head++) {
        if (head % each == 0)
            memset(met, 0, (size_t)r->m);
        pattern_row(cells, head, last, row);
        keys += mark_keys(row, met);
    }
    return keys;
}

/* Every head reads the row's keys. */
static LastRow row_of_all(const Run *r, double keys)
{
    return (LastRow){ .cells = (double)r->h * keys, .keys = (double)r->k.shape[0] * keys,
                      .values = (double)r->v.shape[0] * keys };
}

static LastRow row_of_each(Run *r, const Pattern *cells, PatternRow *row)
{
    uint8_t *met = run_alloc(r, r->m, 1);
    LastRow  last = { 0 };

    for (int64_t head = 0; met && head < r->h; head++) {
        pattern_row(cells, head, pattern_queries(cells) - 1, row);
        last.cells += (double)pattern_row_cells(row);
    }
    if (met) {
        last.keys = (double)distinct_keys(r, cells, r->k.shape[0], row, met);
        last.values = (double)distinct_keys(r, cells, r->v.shape[0], row, met);
    }
    return last;
}

void run_last_row(Run *r, const Pattern *cells)
{
    ArenaMark  mark = arena_mark(r->arena);
    PatternRow row = { 0 };

    if (!cells || !r->causal || run_failed(r))
        return;
    if (pattern_per_head(cells)) {
        r->last = row_of_each(r, cells, &row);
    } else {
        pattern_row(cells, 0, pattern_queries(cells) - 1, &row);
        r->last = row_of_all(r, (double)pattern_row_cells(&row));
    }
    r->last.known = !row.failed && !run_failed(r);
    r->last.rule = cells;
    pattern_row_free(&row);
    arena_release(r->arena, mark);
}

/* Keys of the last row of query head `head`, marked in `met`; returns how many were not yet. */
static int64_t mark_listed(Run *r, CellRowFn list, const void *context, int64_t head,
                           LastList *room)
{
    int64_t found = list(context, head, r->n - 1, room->count, room->key), fresh = 0;

    for (int64_t x = 0; x < found; x++) {
        fresh += !room->met[room->key[x]];
        room->met[room->key[x]] = 1;
        room->count[room->key[x]] = 0;
    }
    r->last.cells += (double)found;
    return fresh;
}

/* Distinct keys in each of `groups` heads, summed. */
static double distinct_listed(Run *r, CellRowFn list, const void *context, int64_t groups,
                              LastList *room)
{
    int64_t each = r->h / groups, keys = 0;

    r->last.cells = 0;
    for (int64_t head = 0; head < r->h; head++) {
        if (head % each == 0)
            memset(room->met, 0, (size_t)r->m);
        keys += mark_listed(r, list, context, head, room);
    }
    return (double)keys;
}

void run_last_listed(Run *r, CellRowFn list, const void *context, int64_t groups)
{
    ArenaMark mark = arena_mark(r->arena);
    LastList  room = { 0 };

    if (!r->causal || run_failed(r))
        return;
    op_wait(r, "the host lists the keys of the last query");
    room.count = run_alloc(r, r->m, sizeof(*room.count));
    room.key = run_alloc(r, r->m, sizeof(*room.key));
    room.met = run_alloc(r, r->m, 1);
    if (!run_failed(r)) {
        memset(room.count, 0, (size_t)r->m * sizeof(*room.count));
        r->last.keys = distinct_listed(r, list, context, groups, &room);
        r->last.values = distinct_listed(r, list, context, r->v.shape[0], &room);
        r->last.known = true;
    }
    arena_release(r->arena, mark);
}

void run_last_keys(Run *r, int64_t keys, int64_t span)
{
    if (!r->causal || run_failed(r))
        return;
    r->last = row_of_all(r, (double)keys);
    r->last.known = true;
    r->last.span = (double)span;
}

/* ---- closed forms -------------------------------------------------------------- */

double decode_token(const Run *r)
{
    return (double)(r->k.shape[0] * r->d + r->v.shape[0] * r->e);
}

double decode_cell(const Run *r)
{
    return FLOPS_SOFTMAX + (r->softcap > 0 ? FLOPS_SOFTCAP : 0);
}

double decode_read(const Run *r)
{
    double numbers = (double)r->d * r->last.keys + (double)r->e * r->last.values;

    return r->last.known ? (double)r->cache_bytes * numbers : (double)NAN;
}

double decode_row(const Run *r)
{
    double cell = 2 * (double)(r->d + r->e) + decode_cell(r);

    return r->last.known ? cell * r->last.cells : (double)NAN;
}

DecodeCost decode_unknown(const char *why)
{
    double none = (double)NAN;

    return (DecodeCost){ none, none, none, none, why };
}

DecodeCost decode_dense(const Run *r)
{
    double token = (double)r->cache_bytes * decode_token(r), keys = (double)r->m;

    return (DecodeCost){ .state_bytes = token * keys, .kv_bytes_per_token = token,
                         .step_bytes = token * keys,
                         .decode_flops = (2 * (double)(r->d + r->e) + decode_cell(r)) *
                                         (double)r->h * keys };
}

DecodeCost decode_span(const Run *r, double span, double apart)
{
    double token = (double)r->cache_bytes * decode_token(r), all = (double)r->m;
    double held = span > 0 && span + apart < all ? span + apart : all;

    return (DecodeCost){ .state_bytes = token * held,
                         .kv_bytes_per_token = span > 0 ? 0 : token,
                         .step_bytes = decode_read(r), .decode_flops = decode_row(r) };
}

DecodeCost decode_cells(const Run *r, const void *params)
{
    double     token = (double)r->cache_bytes * decode_token(r);
    DecodeCost cost = decode_span(r, r->last.span, 0);

    (void)params;
    if (r->last.rule) {
        cost.state_bytes = token * (double)pattern_kept(r->last.rule, r->m);
        cost.kv_bytes_per_token = token * pattern_kept_share(r->last.rule);
    }
    return cost;
}

DecodeCost decode_state(const Run *r, int64_t f, double made)
{
    double h = (double)r->h, features = (double)f, e = (double)r->e;
    double bytes = 4 * h * features * (e + 1);

    return (DecodeCost){ .state_bytes = bytes, .step_bytes = bytes,
                         .decode_flops = h * (4 * features * e + 3 * features + e) + made };
}

/* For closed forms, which read sizes of the run and of its inputs, and parameters. */
static Run run_of_tokens(const Run *r, int64_t n)
{
    Run other = *r;

    other.n = other.m = n;
    other.q.shape[1] = other.k.shape[1] = other.v.shape[1] = n;
    other.x.shape[0] = n;
    other.q_offset = other.at_end = 0;
    other.spec.views = false;
    return other;
}

static double flops_of_tokens(const Run *r, const void *params, int64_t n)
{
    Run       part = run_of_tokens(r, n);
    ArenaMark mark = arena_mark(r->arena);
    double    flops;

    flops = flops_total(r->mechanism->flops(&part, params));
    arena_release(r->arena, mark);
    return flops;
}

double decode_gain(const Run *r, const void *params)
{
    double now;

    if (r->mechanism->flops_bound)
        return (double)NAN;
    now = flops_of_tokens(r, params, r->n);
    return r->n > 1 ? now - flops_of_tokens(r, params, r->n - 1) : now;
}

DecodeCost decode_tokenless(const Run *r, const void *params)
{
    return decode_kept(r, params, 0);
}

DecodeCost decode_kept(const Run *r, const void *params, double numbers)
{
    double token = (double)r->cache_bytes * numbers, all = token * (double)r->m;

    return (DecodeCost){ .state_bytes = all, .kv_bytes_per_token = token, .step_bytes = all,
                         .decode_flops = decode_gain(r, params),
                         .why = "the data decide how much a token computes" };
}

DecodeCost decode_around(const Run *r, const void *params)
{
    (void)r;
    (void)params;
    return decode_unknown("it stacks layers around another mechanism; run that one alone");
}

double decode_held(const Run *r, int64_t n)
{
    Run  other = run_of_tokens(r, n);
    bool cut = !r->last.rule && r->last.span >= (double)r->m;
    bool grid = r->mechanism->on_grid ||
                (r->spec.given && assignments_find(r->spec.given, "grid"));

    if (!r->causal || !r->mechanism->decode || (n > r->m && cut) || (n != r->m && grid))
        return (double)NAN;
    other.whole_m = r->m;
    return r->mechanism->decode(&other, r->params).state_bytes;
}

static void figure_if_known(Run *r, const char *name, double value)
{
    if (!isnan(value))
        run_figure(r, name, value);
}

void decode_figures(Run *r)
{
    const Mechanism *m = r->mechanism;
    DecodeCost       cost;

    if (!r->causal || !m->decode || run_failed(r))
        return;
    cost = m->decode(r, r->params);
    figure_if_known(r, "state_bytes", cost.state_bytes);
    figure_if_known(r, "kv_bytes_per_token", cost.kv_bytes_per_token);
    figure_if_known(r, "step_bytes", cost.step_bytes);
    figure_if_known(r, "decode_flops", cost.decode_flops);
}
