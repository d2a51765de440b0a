/* tiles.c -- the tiles of a pattern that the device computes; see gpu.h.
 *
 * A row of tiles is `height` queries: their runs become bits of the panels of keys that they
 * touch, and only touched panels are visited.  If every query has one run, the panels that all
 * queries cover are a single entry, so a full or causal pattern costs O(n), not O(n^2).  The
 * run's threads share the rows of tiles; each thread makes a list, and the lists are joined in
 * order.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/host/gpu.h"
#include "core/threads.h"

#define T ATTEND_TILE
#define WORD 64 /* panels of a word of `touched` */

/* A growing list; freed by its owner. */
typedef struct Grown {
    void   *data;
    int64_t count, room, size;
} Grown;

typedef struct Tiler {
    uint64_t  *keep;    /* [panels][height] of the current row of tiles */
    uint64_t  *touched; /* one bit for each panel */
    float     *term;    /* [height][T] of the current tile */
    Grown      runs, masks, terms;
    PatternRow row;
    double     cells;
    bool       full, causal; /* so far */
    bool       failed;
} Tiler;

/* The runs of a row of tiles in its worker's list. */
typedef struct Found {
    int64_t first, count;
    int     worker;
} Found;

typedef struct Tiling {
    Run               *run;
    const AttendInput *in;
    const Pattern     *pattern;
    int64_t            n, m, panels, rows, height;
    bool               per_head;
    Tiler             *tilers;
    Found             *found;
} Tiling;

/* A worker's current row of tiles. */
typedef struct Place {
    int64_t head, first, rows; /* of queries */
} Place;

static void *grow(Tiler *t, Grown *list)
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

static void set_bits(const Tiling *g, Tiler *t, int64_t row, const PatternRun *run)
{
    int64_t last = run->start + (run->count - 1) * run->step;

    if (run->step > 1) {
        for (int64_t j = run->start; j <= last; j += run->step) {
            t->keep[j / T * g->height + row] |= (uint64_t)1 << j % T;
            t->touched[j / T / WORD] |= (uint64_t)1 << j / T % WORD;
        }
        return;
    }
    for (int64_t panel = run->start / T; panel <= last / T; panel++) {
        int64_t  low = run->start > panel * T ? run->start - panel * T : 0;
        int64_t  high = last < panel * T + T - 1 ? last - panel * T : T - 1;
        uint64_t bits = ~(uint64_t)0 >> (T - 1 - (high - low)) << low;

        t->keep[panel * g->height + row] |= bits;
        t->touched[panel / WORD] |= (uint64_t)1 << panel % WORD;
    }
}

/* Every existing cell of the tile is allowed. */
static bool is_whole(const Tiling *g, const uint64_t *keep, int64_t panel, int64_t rows)
{
    uint64_t all = ~(uint64_t)0 >> (T - min_i64(g->m - panel * T, T));

    for (int64_t r = 0; r < rows; r++)
        if (keep[r] != all)
            return false;
    return true;
}

/* The index of mask `keep`; it often equals the last mask (strides, blocks). */
static int32_t mask_of(const Tiling *g, Tiler *t, const uint64_t *keep)
{
    size_t    bytes = (size_t)g->height * sizeof(*keep);
    uint64_t *last = t->masks.count ? (uint64_t *)t->masks.data + (t->masks.count - 1) * g->height
                                    : NULL;

    if (!last || memcmp(last, keep, bytes) != 0) {
        last = grow(t, &t->masks);
        if (last)
            memcpy(last, keep, bytes);
    }
    return (int32_t)(t->masks.count - 1);
}

/* The index of the tile's terms of cell_term; -1: all are 0. */
static int32_t terms_of(const Tiling *g, Tiler *t, const Place *at, int64_t panel)
{
    const uint64_t *keep = t->keep + panel * g->height;
    size_t          bytes = (size_t)(g->height * T) * sizeof(float);
    bool            any = false;
    float          *kept;

    if (!g->in->cell_term)
        return -1;
    memset(t->term, 0, bytes);
    for (int64_t r = 0; r < at->rows; r++)
        for (uint64_t left = keep[r]; left; left &= left - 1) {
            int64_t c = __builtin_ctzll(left);

            t->term[r * T + c] = (float)g->in->cell_term(g->in->cell_context, at->head,
                                                         at->first + r, panel * T + c);
            any |= t->term[r * T + c] != 0;
        }
    kept = any ? grow(t, &t->terms) : NULL;
    if (kept)
        memcpy(kept, t->term, bytes);
    return kept ? (int32_t)(t->terms.count - 1) : -1;
}

static void add_run(Tiler *t, int64_t first, TileRun next)
{
    TileRun *last = t->runs.count > first ? (TileRun *)t->runs.data + t->runs.count - 1 : NULL;

    if (last && last->mask == next.mask && last->term < 0 && next.term < 0 &&
        last->key + last->count == next.key) {
        last->count += next.count;
        return;
    }
    last = grow(t, &t->runs);
    if (last)
        *last = next;
}

static void add_tile(const Tiling *g, Tiler *t, const Place *at, int64_t first, int64_t panel)
{
    uint64_t *keep = t->keep + panel * g->height;
    TileRun   next = { .key = (int32_t)panel, .count = 1, .mask = -1 };

    for (int64_t r = 0; r < at->rows; r++)
        t->cells += __builtin_popcountll(keep[r]);
    next.term = terms_of(g, t, at, panel);
    if (!is_whole(g, keep, panel, at->rows))
        next.mask = mask_of(g, t, keep);
    add_run(t, first, next);
    memset(keep, 0, (size_t)g->height * sizeof(*keep));
}

/* Panels [low, high) that every row covers with one run; false: there are none. */
static bool common_panels(const Tiling *g, Tiler *t, const Place *at, int64_t *low, int64_t *high)
{
    int64_t most = 0, least = g->m;
    bool    full = t->full, causal = t->causal;

    t->full = t->causal = false;
    for (int64_t r = 0; r < at->rows; r++) {
        const PatternRun *run;

        pattern_row(g->pattern, at->head, at->first + r, &t->row);
        if (t->row.failed || t->row.count != 1 || t->row.runs[0].step != 1)
            return false;
        run = &t->row.runs[0];
        full &= run->start == 0 && run->count == g->m;
        causal &= run->start == 0 && run->count == min_i64(g->m, at->first + r + 1);
        most = max_i64(most, run->start);
        least = min_i64(least, run->start + run->count);
    }
    t->full = full;
    t->causal = causal;
    *low = (most + T - 1) / T;
    *high = least == g->m ? g->panels : least / T;
    return *high > *low && !g->in->cell_term;
}

/* The bits of a row outside the panels [low, high). */
static void set_row(const Tiling *g, Tiler *t, const Place *at, int64_t r, int64_t low,
                    int64_t high)
{
    pattern_row(g->pattern, at->head, at->first + r, &t->row);
    t->failed |= t->row.failed;
    for (int64_t x = 0; x < t->row.count && !t->failed; x++) {
        PatternRun run = t->row.runs[x], before = run, after = run;

        if (low >= high) {
            set_bits(g, t, r, &run);
            continue;
        }
        before.count = low * T - run.start;
        after.start = high * T;
        after.count = run.start + run.count - after.start;
        if (before.count > 0)
            set_bits(g, t, r, &before);
        if (after.count > 0)
            set_bits(g, t, r, &after);
    }
}

static void add_touched(const Tiling *g, Tiler *t, const Place *at, int64_t first, int64_t from,
                        int64_t to)
{
    for (int64_t word = from / WORD; word * WORD < to && !t->failed; word++) {
        uint64_t low = word * WORD < from ? ~(uint64_t)0 << from % WORD : ~(uint64_t)0;

        for (uint64_t left = t->touched[word] & low; left; left &= left - 1) {
            int64_t panel = word * WORD + __builtin_ctzll(left);

            if (panel >= to)
                return;
            t->touched[word] &= ~((uint64_t)1 << panel % WORD);
            add_tile(g, t, at, first, panel);
        }
    }
}

static void tile_row(void *context, int64_t item, int worker)
{
    Tiling *g = context;
    Tiler  *t = &g->tilers[worker];
    Place   at = { .head = item / g->rows, .first = item % g->rows * g->height };
    int64_t first = t->runs.count, low = 0, high = 0;

    if (t->failed || (g->run->spec.cancel && atomic_load(g->run->spec.cancel)))
        return;
    at.rows = min_i64(g->n - at.first, g->height);
    if (!common_panels(g, t, &at, &low, &high))
        low = high = 0;
    for (int64_t r = 0; r < at.rows && !t->failed; r++)
        set_row(g, t, &at, r, low, high);
    add_touched(g, t, &at, first, 0, low);
    if (high > low) {
        add_run(t, first, (TileRun){ (int32_t)low, (int32_t)(high - low), -1, -1 });
        t->cells += (double)at.rows * (double)(min_i64(high * T, g->m) - low * T);
    }
    add_touched(g, t, &at, first, high, g->panels);
    g->found[item] = (Found){ first, t->runs.count - first, worker };
}

/* ---- the whole ------------------------------------------------------------------- */

static bool tilers_init(Tiling *g, int count)
{
    int64_t panels = g->panels + WORD;

    for (int x = 0; x < count; x++) {
        Tiler *t = &g->tilers[x];

        t->keep = calloc((size_t)(panels * g->height), sizeof(*t->keep));
        t->touched = calloc((size_t)(panels / WORD + 1), sizeof(*t->touched));
        t->term = malloc((size_t)(g->height * T) * sizeof(*t->term));
        t->runs.size = sizeof(TileRun);
        t->masks.size = g->height * (int64_t)sizeof(uint64_t);
        t->terms.size = g->height * T * (int64_t)sizeof(float);
        t->full = t->causal = true;
        if (!t->keep || !t->touched || !t->term)
            return false;
    }
    return true;
}

static void tilers_free(Tiling *g, int count)
{
    for (int x = 0; g->tilers && x < count; x++) {
        Tiler *t = &g->tilers[x];

        free(t->keep);
        free(t->touched);
        free(t->term);
        free(t->runs.data);
        free(t->masks.data);
        free(t->terms.data);
        pattern_row_free(&t->row);
    }
    free(g->tilers);
    free(g->found);
}

static int64_t counted(const Tiling *g, int workers, size_t list)
{
    int64_t count = 0;

    for (int x = 0; x < workers; x++)
        count += ((const Grown *)((const char *)&g->tilers[x] + list))->count;
    return count;
}

/* Concatenates the workers' lists. */
static void *joined(const Tiling *g, int workers, size_t list)
{
    int64_t size = ((const Grown *)((const char *)&g->tilers[0] + list))->size;
    char   *data = gpu_list(g->run, counted(g, workers, list) + 1, size), *to = data;

    for (int x = 0; data && x < workers; x++) {
        const Grown *from = (const Grown *)((const char *)&g->tilers[x] + list);

        if (from->count)
            memcpy(to, from->data, (size_t)(from->count * size));
        to += from->count * size;
    }
    return data;
}

/* The runs in order of their rows, with indices into the joined masks and terms. */
static void join_runs(const Tiling *g, int64_t items, TileRun *to, int64_t *start)
{
    int64_t at = 0;

    for (int64_t item = 0; item < items; item++) {
        const Found *found = &g->found[item];
        int64_t      masks = counted(g, found->worker, offsetof(Tiler, masks));
        int64_t      terms = counted(g, found->worker, offsetof(Tiler, terms));
        const TileRun *from = (const TileRun *)g->tilers[found->worker].runs.data + found->first;

        start[item] = at;
        for (int64_t x = 0; x < found->count; x++, at++) {
            to[at] = from[x];
            to[at].mask += from[x].mask < 0 ? 0 : (int32_t)masks;
            to[at].term += from[x].term < 0 ? 0 : (int32_t)terms;
        }
    }
    start[items] = at;
}

static void join(const Tiling *g, int workers, int64_t items, TileList *out, double *cells)
{
    int64_t  runs = counted(g, workers, offsetof(Tiler, runs));
    TileRun *to = gpu_list(g->run, runs + 1, sizeof(*to));
    int64_t *start = gpu_list(g->run, items + 1, sizeof(*start));

    out->keep = joined(g, workers, offsetof(Tiler, masks));
    out->extra = g->in->cell_term ? joined(g, workers, offsetof(Tiler, terms)) : NULL;
    out->shape = TILES_FULL;
    for (int x = 0; x < workers; x++) {
        *cells += g->tilers[x].cells;
        if (!g->tilers[x].full && out->shape == TILES_FULL)
            out->shape = TILES_CAUSAL;
        if (!g->tilers[x].full && !g->tilers[x].causal)
            out->shape = TILES_ANY;
    }
    if (run_failed(g->run))
        return;
    join_runs(g, items, to, start);
    out->runs = to;
    out->start = start;
    gpu_toward(g->run, out->extra, out->extra ? counted(g, workers, offsetof(Tiler, terms)) *
                                                g->height * T * (int64_t)sizeof(float) : 0);
    gpu_toward(g->run, to, (runs + 1) * (int64_t)sizeof(*to));
    gpu_toward(g->run, start, (items + 1) * (int64_t)sizeof(*start));
    gpu_toward(g->run, out->keep, (counted(g, workers, offsetof(Tiler, masks)) + 1) * g->height *
                                      (int64_t)sizeof(*out->keep));
}

static void make_tiles(Tiling *g, TileList *out, double *cells)
{
    int     workers = threads_count(g->run->threads);
    int64_t items = g->rows * (g->per_head ? g->run->h : 1);
    bool    failed;

    g->tilers = calloc((size_t)workers, sizeof(*g->tilers));
    g->found = calloc((size_t)items, sizeof(*g->found));
    failed = !g->tilers || !g->found || !tilers_init(g, workers);
    if (!failed)
        threads_run(g->run->threads, items, tile_row, g);
    for (int x = 0; !failed && x < workers; x++)
        failed = g->tilers[x].failed;
    if (failed)
        run_fail(g->run, ERR_NOMEM, "%s: not enough memory for the tiles of the pattern",
                 g->run->mechanism->id);
    if (gpu_ready(g->run))
        join(g, workers, items, out, cells);
    tilers_free(g, workers);
}

TileList gpu_tiles(Run *r, const AttendInput *in, const Pattern *pattern, int64_t height,
                   double *cells)
{
    int64_t n = pattern_queries(pattern), m = pattern_keys(pattern);
    Tiling  g = { .run = r, .in = in, .pattern = pattern, .n = n, .m = m,
                  .panels = (m + T - 1) / T, .rows = (n + height - 1) / height, .height = height,
                  .per_head = pattern_per_head(pattern) || in->cell_term };
    TileList out = { .rows = g.rows, .height = height, .per_head = g.per_head };

    *cells = 0;
    run_prepare(r, true);
    make_tiles(&g, &out, cells);
    run_prepare(r, false);
    if (!g.per_head)
        *cells *= (double)r->h;
    return out;
}

/* ---- blocks of about the same work ------------------------------------------------------
 *
 * One block computes a row of tiles.  A row much longer than others (a global token among
 * windows) is cut by keys into parts for several blocks, as are all rows if they are too few for
 * all multiprocessors; the results of parts are joined.  Long rows come first.
 */

#define BLOCKS_EACH 2  /* blocks that a multiprocessor runs at once */
#define ROUNDS 4       /* a part is at most a fourth of a multiprocessor's share */
#define PART_LEAST 8   /* tiles that are worth a block */

typedef struct Line {
    int64_t tiles;
    int32_t head, row;
} Line;

static int64_t tiles_of(const TileList *t, int64_t list)
{
    int64_t count = 0;

    for (int64_t x = t->start[list]; x < t->start[list + 1]; x++)
        count += t->runs[x].count;
    return count;
}

static int longer_first(const void *a, const void *b)
{
    const Line *x = a, *y = b;

    if (x->tiles != y->tiles)
        return x->tiles > y->tiles ? -1 : 1;
    return x->head != y->head ? (x->head > y->head) - (x->head < y->head)
                              : (x->row > y->row) - (x->row < y->row);
}

static Line *lines_of(const TileList *t, int64_t lists, double *tiles)
{
    Line *lines = malloc((size_t)max_i64(lists * t->rows, 1) * sizeof(*lines));

    *tiles = 0;
    for (int64_t x = 0; lines && x < lists * t->rows; x++) {
        lines[x] = (Line){ tiles_of(t, x), t->per_head ? (int32_t)(x / t->rows) : -1,
                           (int32_t)(x % t->rows) };
        *tiles += (double)lines[x].tiles;
    }
    if (lines)
        qsort(lines, (size_t)(lists * t->rows), sizeof(*lines), longer_first);
    return lines;
}

static int64_t parts_of(const Line *line, int64_t most)
{
    return line->tiles <= most + most / 2 ? 1 : (line->tiles + most - 1) / most;
}

/* The panel that follows the row's first `tiles` tiles. */
static int32_t panel_after(const TileList *t, int64_t list, int64_t tiles)
{
    for (int64_t x = t->start[list]; x < t->start[list + 1]; x++) {
        if (tiles < t->runs[x].count)
            return (int32_t)(t->runs[x].key + tiles);
        tiles -= t->runs[x].count;
    }
    return INT32_MAX;
}

static void cut(const TileList *t, const Line *line, int64_t parts, int64_t slot, AttendItem *to)
{
    int64_t list = line->row + (line->head < 0 ? 0 : line->head * t->rows);

    for (int64_t x = 0; x < parts; x++)
        to[x] = (AttendItem){
            .head = line->head,
            .row = line->row,
            .first = x ? panel_after(t, list, line->tiles * x / parts) : 0,
            .end = panel_after(t, list, line->tiles * (x + 1) / parts),
            .slot = parts > 1 ? slot + x : -1,
        };
}

static int64_t part_most(const Run *r, double tiles)
{
    double share = tiles / (device_info(gpu_kind(r)->device)->processors * BLOCKS_EACH * ROUNDS);

    return share > PART_LEAST ? (int64_t)share : PART_LEAST;
}

static void fill(Run *r, const TileList *t, const Line *lines, int64_t count, int64_t most,
                 MatrixAttendCall *call)
{
    AttendItem *items = gpu_list(r, call->item_count + 1, sizeof(*items));
    AttendJoin *joins = gpu_list(r, call->join_count + 1, sizeof(*joins));
    int64_t     item = 0, join = 0, slot = 0;

    if (run_failed(r))
        return;
    for (int64_t x = 0; x < count; x++) {
        int64_t parts = parts_of(&lines[x], most);

        cut(t, &lines[x], parts, slot, items + item);
        item += parts;
        if (parts == 1)
            continue;
        joins[join++] = (AttendJoin){ lines[x].head, lines[x].row, slot, parts };
        slot += parts;
    }
    gpu_toward(r, items, item * (int64_t)sizeof(*items));
    gpu_toward(r, joins, join * (int64_t)sizeof(*joins));
    call->items = items;
    call->joins = joins;
}

static void parts_take(Run *r, MatrixAttendCall *call)
{
    int64_t slots = call->parts.slots * (call->tiles.per_head ? 1 : call->heads);
    int64_t rows = slots * call->tiles.height;

    if (!slots)
        return;
    call->parts.out = gpu_scratch(r, rows * call->size, sizeof(float));
    call->parts.largest = gpu_scratch(r, rows, sizeof(float));
    call->parts.sum = gpu_scratch(r, rows, sizeof(float));
}

void gpu_items(Run *r, MatrixAttendCall *call)
{
    const TileList *t = &call->tiles;
    int64_t         lists = t->per_head ? call->heads : 1, most;
    double          tiles;
    Line           *lines = run_failed(r) ? NULL : lines_of(t, lists, &tiles);

    if (run_failed(r))
        return;
    if (!lines) {
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the tiles of the pattern",
                 r->mechanism->id);
        return;
    }
    most = part_most(r, tiles * (t->per_head ? 1 : (double)call->heads));
    for (int64_t x = 0; x < lists * t->rows; x++) {
        int64_t parts = parts_of(&lines[x], most);

        call->item_count += parts;
        call->join_count += parts > 1;
        call->parts.slots += parts > 1 ? parts : 0;
    }
    fill(r, t, lines, lists * t->rows, most, call);
    parts_take(r, call);
    free(lines);
}
