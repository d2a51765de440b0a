/* neighbours.c -- neighbourhoods on a grid of one to three axes; see pattern.h for the rule.
 *
 * The keys of a query are a product of arithmetic runs, one an axis.  Places of an axis are dealt
 * into `dilation` groups first, place x being member floor(x / dilation) of group x mod dilation;
 * the rule then acts on members of one group, or on whole tiles.
 */
#include "attn/pattern/node.h"

/* Members lo .. hi of a group. */
typedef struct Span {
    int64_t lo, hi;
} Span;

/* Of `members`, those that member y sees: the window of its leader, moved inwards at a border. */
static Span window_around(const GridAxis *a, int64_t y, int64_t members)
{
    int64_t leader = min_i64(y / a->stride * a->stride + a->stride / 2, members - 1);
    int64_t left = a->kernel / 2, right = a->kernel - left - 1;
    int64_t centre = min_i64(max_i64(leader, left), members - 1 - right);

    return (Span){ centre - left, centre + right };
}

/* The last `kernel` members up to the leader's, none after y: cut at the start. */
static Span window_before(const GridAxis *a, int64_t y, int64_t members)
{
    int64_t leader = min_i64(y / a->stride * a->stride + a->stride - 1, members - 1);

    return (Span){ max_i64(leader - a->kernel + 1, 0), y };
}

static Span window_of(const GridAxis *a, int64_t y, int64_t members)
{
    return a->causal ? window_before(a, y, members) : window_around(a, y, members);
}

PatternRun grid_axis_keys(const GridAxis *a, int64_t x)
{
    int64_t tiles = (a->length - 1) / a->tile + 1, group = x % a->dilation;
    Span    s;

    if (a->tile > 1) {
        s = window_of(a, x / a->tile, tiles);
        s = (Span){ s.lo * a->tile,
                    min_i64((s.hi + 1) * a->tile, a->causal ? x + 1 : a->length) - 1 };
        return (PatternRun){ .start = s.lo, .count = s.hi - s.lo + 1, .step = 1 };
    }
    s = window_of(a, x / a->dilation, (a->length - 1 - group) / a->dilation + 1);
    return (PatternRun){ .start = group + s.lo * a->dilation, .count = s.hi - s.lo + 1,
                         .step = s.hi > s.lo ? a->dilation : 1 };
}

static void row_neighbours(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const GridAxis *axes = p->table;
    int64_t         y = axes[1].length, x = axes[2].length;
    PatternRun      planes = grid_axis_keys(&axes[0], i / x / y);
    PatternRun      lines = grid_axis_keys(&axes[1], i / x % y);
    PatternRun      places = grid_axis_keys(&axes[2], i % x);

    (void)head;
    for (int64_t a = 0; a < planes.count; a++)
        for (int64_t b = 0; b < lines.count; b++) {
            int64_t plane = planes.start + a * planes.step, line = lines.start + b * lines.step;

            runs_push(row, (plane * y + line) * x + places.start, places.count, places.step,
                      p->bits);
        }
}

Pattern *pattern_neighbours(Arena *a, PatternShape s, const GridAxis *axes, int count,
                            uint8_t bits)
{
    Pattern  *p = pattern_node(a, s, row_neighbours, bits);
    GridAxis *all = arena_alloc(a, GRID_AXES_MOST, sizeof(*all));

    if (!p || !all)
        return NULL;
    for (int t = 0; t < GRID_AXES_MOST; t++)
        all[t] = (GridAxis){ .length = 1, .kernel = 1, .dilation = 1, .stride = 1, .tile = 1 };
    for (int t = 0; t < count; t++)
        all[GRID_AXES_MOST - count + t] = axes[t];
    p->table = all;
    return p;
}

static int64_t axis_cells_before(const GridAxis *axis, int64_t end)
{
    int64_t cells = 0;

    for (int64_t x = 0; x < end; x++)
        cells += grid_axis_keys(axis, x).count;
    return cells;
}

/* Of all queries. */
static int64_t grid_axes_cells(const GridAxis *axes, int count)
{
    int64_t cells = 1;

    for (int t = 0; t < count; t++)
        cells *= axis_cells_before(&axes[t], axes[t].length);
    return cells;
}

/* Whole planes before the row `end`, then the rest of its plane. */
int64_t grid_axes_cells_before(const GridAxis *axes, int count, int64_t end)
{
    int64_t rows = 1, plane;

    for (int t = 1; t < count; t++)
        rows *= axes[t].length;
    plane = end / rows;
    if (count == 1 || end % rows == 0)
        return axis_cells_before(axes, plane) * grid_axes_cells(axes + 1, count - 1);
    return axis_cells_before(axes, plane) * grid_axes_cells(axes + 1, count - 1) +
           grid_axis_keys(axes, plane).count *
               grid_axes_cells_before(axes + 1, count - 1, end % rows);
}
