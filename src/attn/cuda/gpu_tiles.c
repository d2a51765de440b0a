/* gpu_tiles.c -- the tiles of a pattern that the device computes; see gpu.h.
 *
 * A row of tiles is ATTEND_TILE queries: their runs become bits of the panels of keys they
 * touch, and only touched panels are looked at, so a window costs the same at every n.
 */
#include "attn/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

#define T ATTEND_TILE

/* What a growing list holds; freed by the maker. */
typedef struct Grown {
    void   *data;
    int64_t count, room, size;
} Grown;

typedef struct Tiling {
    Run           *run;
    const Pattern *pattern;
    int64_t        n, m, panels;
    uint64_t      *keep;    /* [panels][T] of the row of tiles in hand */
    uint8_t       *touched; /* [panels] */
    Grown          start, key, mask, masks;
    PatternRow     row;
    double         cells;
    bool           failed;
} Tiling;

static void *grow(Tiling *t, Grown *list)
{
    int64_t more = list->room ? 2 * list->room : 64;
    void   *data;

    if (list->count == list->room) {
        data = realloc(list->data, (size_t)(more * list->size));
        if (!data) {
            t->failed = true;
            return NULL;
        }
        list->data = data;
        list->room = more;
    }
    return (char *)list->data + list->size * list->count++;
}

static void set_bits(Tiling *t, int64_t row, const PatternRun *run)
{
    int64_t last = run->start + (run->count - 1) * run->step;

    if (run->step > 1) {
        for (int64_t j = run->start; j <= last; j += run->step) {
            t->keep[j / T * T + row] |= (uint64_t)1 << j % T;
            t->touched[j / T] = 1;
        }
        return;
    }
    for (int64_t panel = run->start / T; panel <= last / T; panel++) {
        int64_t  low = run->start > panel * T ? run->start - panel * T : 0;
        int64_t  high = last < panel * T + T - 1 ? last - panel * T : T - 1;
        uint64_t bits = ~(uint64_t)0 >> (T - 1 - (high - low)) << low;

        t->keep[panel * T + row] |= bits;
        t->touched[panel] = 1;
    }
}

/* Every cell of the tile that exists. */
static bool is_whole(const Tiling *t, int64_t panel, int64_t rows)
{
    int64_t  keys = t->m - panel * T < T ? t->m - panel * T : T;
    uint64_t all = ~(uint64_t)0 >> (T - keys);

    for (int64_t r = 0; r < rows; r++)
        if (t->keep[panel * T + r] != all)
            return false;
    return true;
}

static void add_tile(Tiling *t, int64_t panel, int64_t rows)
{
    uint64_t *keep = t->keep + panel * T;
    int32_t  *key = grow(t, &t->key), *mask = grow(t, &t->mask);
    uint64_t *kept = NULL;

    for (int64_t r = 0; r < rows; r++)
        t->cells += __builtin_popcountll(keep[r]);
    if (key)
        *key = (int32_t)panel;
    if (mask)
        *mask = -1;
    if (mask && !is_whole(t, panel, rows)) {
        *mask = (int32_t)t->masks.count;
        kept = grow(t, &t->masks);
    }
    if (kept)
        memcpy(kept, keep, T * sizeof(*keep));
    memset(keep, 0, T * sizeof(*keep));
    t->touched[panel] = 0;
}

static void add_row(Tiling *t, int64_t head, int64_t first)
{
    int64_t  rows = t->n - first < T ? t->n - first : T;
    int64_t *start = grow(t, &t->start);

    for (int64_t r = 0; r < rows; r++) {
        pattern_row(t->pattern, head, first + r, &t->row);
        t->failed |= t->row.failed;
        for (int64_t x = 0; x < t->row.count && !t->failed; x++)
            set_bits(t, r, &t->row.runs[x]);
    }
    for (int64_t panel = 0; panel < t->panels && !t->failed; panel++)
        if (t->touched[panel])
            add_tile(t, panel, rows);
    if (start)
        *start = t->key.count;
}

static void *kept(Tiling *t, const Grown *list)
{
    void *data = gpu_scratch(t->run, list->count + 1, list->size);

    if (data && list->count)
        memcpy(data, list->data, (size_t)(list->count * list->size));
    return data;
}

static void make(Tiling *t, int64_t heads)
{
    int64_t *start = grow(t, &t->start);

    if (start)
        *start = 0;
    for (int64_t head = 0; head < heads; head++)
        for (int64_t first = 0; first < t->n && !t->failed && gpu_ready(t->run); first += T)
            add_row(t, head, first);
    if (t->failed)
        run_fail(t->run, ERR_NOMEM, "%s: not enough memory for the tiles of the pattern",
                 t->run->mechanism->id);
}

static void tiling_free(Tiling *t)
{
    free(t->keep);
    free(t->touched);
    free(t->start.data);
    free(t->key.data);
    free(t->mask.data);
    free(t->masks.data);
    pattern_row_free(&t->row);
}

TileList gpu_tiles(Run *r, const Pattern *pattern, double *cells)
{
    int64_t  m = pattern_keys(pattern), panels = (m + T - 1) / T;
    bool     per_head = pattern_per_head(pattern);
    TileList out = { .rows = (pattern_queries(pattern) + T - 1) / T, .per_head = per_head };
    Tiling   t = { .run = r, .pattern = pattern, .n = pattern_queries(pattern), .m = m,
                   .panels = panels, .keep = calloc((size_t)panels * T, sizeof(uint64_t)),
                   .touched = calloc((size_t)panels, 1), .start = { .size = sizeof(int64_t) },
                   .key = { .size = sizeof(int32_t) }, .mask = { .size = sizeof(int32_t) },
                   .masks = { .size = T * sizeof(uint64_t) } };

    run_prepare(r, true);
    t.failed = !t.keep || !t.touched;
    make(&t, per_head ? r->h : 1);
    if (!run_failed(r)) {
        out.start = kept(&t, &t.start);
        out.key = kept(&t, &t.key);
        out.mask = kept(&t, &t.mask);
        out.keep = kept(&t, &t.masks);
    }
    *cells = per_head ? t.cells : t.cells * (double)r->h;
    tiling_free(&t);
    run_prepare(r, false);
    return out;
}
