/* decode.c -- see decode.h. */
#include <math.h>
#include <string.h>

#include "attn/run.h"
#include "attn/run/decode.h"

/* ---- the last row ------------------------------------------------------------ */

static int64_t row_keys(const PatternRow *row)
{
    int64_t keys = 0;

    for (int64_t x = 0; x < row->count; x++)
        keys += row->runs[x].count;
    return keys;
}

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

/* Distinct keys that the query heads of each of `groups` heads read, summed. */
static int64_t distinct_keys(Run *r, const Pattern *cells, int64_t groups, uint8_t *met)
{
    int64_t    each = r->h / groups, last = pattern_queries(cells) - 1, keys = 0;
    PatternRow row = { 0 };

    for (int64_t head = 0; head < r->h; head++) {
        if (head % each == 0)
            memset(met, 0, (size_t)r->m);
        pattern_row(cells, head, last, &row);
        keys += mark_keys(&row, met);
    }
    pattern_row_free(&row);
    return keys;
}

void run_last_row(Run *r, const Pattern *cells)
{
    ArenaMark  mark = arena_mark(r->arena);
    uint8_t   *met = cells && r->causal ? run_alloc(r, r->m, 1) : NULL;
    PatternRow row = { 0 };
    int64_t    count = 0;

    for (int64_t head = 0; met && head < r->h; head++) {
        pattern_row(cells, head, pattern_queries(cells) - 1, &row);
        count += row_keys(&row);
    }
    if (met)
        r->last = (LastRow){ .known = !row.failed, .cells = (double)count,
                             .keys = (double)distinct_keys(r, cells, r->k.shape[0], met),
                             .values = (double)distinct_keys(r, cells, r->v.shape[0], met) };
    pattern_row_free(&row);
    arena_release(r->arena, mark);
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

DecodeCost decode_dense(const Run *r)
{
    double token = (double)r->cache_bytes * decode_token(r), keys = (double)r->m;

    return (DecodeCost){ .state_bytes = token * keys, .kv_bytes_per_token = token,
                         .step_bytes = token * keys,
                         .decode_flops = (2 * (double)(r->d + r->e) + decode_cell(r)) *
                                         (double)r->h * keys };
}

void decode_figures(Run *r)
{
    const Mechanism *m = r->mechanism;
    DecodeCost       cost;

    if (!r->causal || !m->decode || run_failed(r))
        return;
    cost = m->decode(r, r->params);
    run_figure(r, "state_bytes", cost.state_bytes);
    run_figure(r, "kv_bytes_per_token", cost.kv_bytes_per_token);
    run_figure(r, "step_bytes", cost.step_bytes);
    run_figure(r, "decode_flops", cost.decode_flops);
}
