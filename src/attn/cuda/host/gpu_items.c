/* gpu_items.c -- a list of tiles cut into blocks of about the same work; see gpu_matrix.h.
 *
 * A row of tiles is one block's work, unless it is so long that the others would wait for it
 * (a global token among windows), or there are too few rows for all multiprocessors: then
 * several blocks have a part of its keys each, and their results are joined.  Long ones first.
 */
#include "attn/cuda/host/gpu_matrix.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_EACH 2  /* that a multiprocessor has at once */
#define ROUNDS 4       /* a part is a fourth of a multiprocessor's share at most */
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
    Line *lines = malloc((size_t)(lists * t->rows + 1) * sizeof(*lines));

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

/* The panel before which `tiles` of the row's tiles stand. */
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
