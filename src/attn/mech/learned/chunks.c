/* chunks.c -- see chunks.h. */
#include "attn/mech/learned/chunks.h"

#include "attn/run.h"

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

Chunks chunks_of(int64_t slots, int64_t block, int64_t before, int64_t after, bool ring)
{
    Chunks c = { .slots = slots, .block = min64(block, slots), .ring = ring };

    c.count = (slots + c.block - 1) / c.block;
    c.before = min64(before, c.count);
    c.after = min64(after, c.count);
    return c;
}

int64_t chunks_end(const Chunks *c, int64_t chunk)
{
    return min64((chunk + 1) * c->block, c->slots);
}

int64_t chunks_window(const Chunks *c, int64_t chunk, int64_t *first)
{
    if (c->ring) {
        *first = (chunk - c->before + c->count) % c->count;
        return min64(c->count, c->before + c->after + 1);
    }
    *first = chunk > c->before ? chunk - c->before : 0;
    return min64(c->count, chunk + c->after + 1) - *first;
}

static int64_t window_slots(const Chunks *c, int64_t chunk)
{
    int64_t first, seen = chunks_window(c, chunk, &first);
    bool    has_last = (c->count - 1 - first + c->count) % c->count < seen;

    return seen * c->block - (has_last ? c->count * c->block - c->slots : 0);
}

double chunks_pairs(const Chunks *c)
{
    double pairs = 0;

    for (int64_t chunk = 0; chunk < c->count; chunk++)
        pairs += (double)(chunks_end(c, chunk) - chunk * c->block) *
                 (double)window_slots(c, chunk);
    return pairs;
}

static void list_window(const Chunks *c, int64_t chunk, int32_t *key)
{
    int64_t first, seen = chunks_window(c, chunk, &first);

    for (int64_t w = 0; w < seen; w++) {
        int64_t at = (first + w) % c->count;

        for (int64_t s = at * c->block; s < chunks_end(c, at); s++)
            *key++ = (int32_t)s;
    }
}

void chunks_groups(Run *r, const Chunks *c, GroupAttend *g)
{
    int64_t total = 0;

    for (int64_t chunk = 0; chunk < c->count; chunk++)
        total += window_slots(c, chunk);
    if (total > INT32_MAX)
        run_fail(r, ERR_PARAM, "%s: windows of %lld chunks before and %lld after hold %lld keys, "
                 "too many to list; see fewer chunks", r->mechanism->id, (long long)c->before,
                 (long long)c->after, (long long)total);
    g->groups = c->count;
    g->query_start = run_tensor2(r, DT_I32, 1, c->count + 1);
    g->key_start = run_tensor2(r, DT_I32, 1, c->count + 1);
    g->query_index = run_tensor2(r, DT_I32, 1, c->slots);
    g->key_index = run_tensor2(r, DT_I32, 1, total);
    if (run_failed(r))
        return;
    for (int64_t s = 0; s < c->slots; s++)
        tensor_i32(&g->query_index)[s] = (int32_t)s;
    for (int64_t chunk = 0, at = 0; chunk <= c->count; chunk++) {
        tensor_i32(&g->query_start)[chunk] = (int32_t)min64(chunk * c->block, c->slots);
        tensor_i32(&g->key_start)[chunk] = (int32_t)at;
        if (chunk == c->count)
            break;
        list_window(c, chunk, tensor_i32(&g->key_index) + at);
        at += window_slots(c, chunk);
    }
}
