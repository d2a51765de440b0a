/* test_draw_grid.c -- grid_reduce against a plain loop over all entries.
 *
 * Shapes, cell counts, regions, orders and patterns are drawn at random; every
 * cell must agree with what visiting each entry gives.  Separate tests hold
 * the promises that a picture rests on: no line vanishes at 65 536, level 0 is
 * only "nothing allowed", threads change nothing, sampling is reported.
 */

#include "check.h"
#include "core/rng.h"
#include "core/threads.h"
#include "draw/grid/grid.h"

static float value_at(int64_t i, int64_t j)
{
    return (float)((double)(rng_at(11, (uint64_t)i, (uint64_t)j) >> 40) / 8388608.0 - 0.7);
}

static void read_values(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    (void)view;
    (void)head;
    for (int64_t k = 0; k < count; k++)
        out[k] = value_at(i, start + k * step);
}

static View view_of(ViewKind kind, int64_t rows, int64_t cols, const Pattern *support)
{
    View view = { .name = "test", .kind = kind, .dtype = DT_F32, .rank = 2,
                  .shape = { rows, cols }, .support = support, .rows = "query", .cols = "key",
                  .iteration = -1 };

    if (kind == VIEW_WEIGHTS)
        view.read = read_values;
    return view;
}

static Pattern *random_pattern(Arena *a, int64_t n, Rng *rng)
{
    PatternShape s = { .heads = 1, .n = n, .m = n };
    Pattern     *p = pattern_band(a, s, -(int64_t)rng_below(rng, 9), (int64_t)rng_below(rng, 9),
                                  1 + (int64_t)rng_below(rng, 3), COMPONENT_WINDOW);
    Tensor       t = pattern_draw_random(a, s, 2, rng_next(rng), "random", NULL, NULL);
    uint8_t     *flags = arena_zalloc(a, n, 1);

    flags[rng_below(rng, (uint64_t)n)] = 1;
    p = pattern_union(a, p, pattern_cols(a, s, flags));
    p = pattern_union(a, p, pattern_stride(a, s, 2 + (int64_t)rng_below(rng, 20)));
    p = pattern_union(a, p, pattern_table(a, s, &t, COMPONENT_RANDOM));
    return pattern_finish(a, s, p, rng_below(rng, 2));
}

static int32_t *random_order(Arena *a, int64_t n, Rng *rng)
{
    int32_t *order = arena_alloc(a, n, sizeof(*order));

    for (int64_t k = 0; k < n; k++)
        order[k] = (int32_t)k;
    for (int64_t k = n - 1; k > 0; k--) {
        int64_t at = (int64_t)rng_below(rng, (uint64_t)k + 1);
        int32_t keep = order[k];

        order[k] = order[at];
        order[at] = keep;
    }
    return order;
}

static const uint8_t by_rarity[] = { COMPONENT_GLOBAL, COMPONENT_RANDOM, COMPONENT_STRIDED,
                                     COMPONENT_BLOCK,  COMPONENT_WINDOW, COMPONENT_BUCKET,
                                     COMPONENT_CLUSTER, COMPONENT_OTHER };

/* The cause of an entry: its first bit in the stated order. */
static int cause_at(uint8_t bits)
{
    int k = 0;

    while (k < 7 && !(bits & by_rarity[k]))
        k++;
    return k;
}

/* counts: entries of each cause of by_rarity in the cell. */
static void check_causes(const GridCell *cell, const double *counts)
{
    uint8_t cause = 0, rare = 0;
    double  most = 0, all = 0;

    for (int k = 0; k < 8; k++) {
        all += counts[k];
        if (counts[k] > most) {
            most = counts[k];
            cause = by_rarity[k];
        }
    }
    for (int k = 7; k >= 0; k--)
        if (counts[k] > 0 && by_rarity[k] != cause)
            rare = by_rarity[k];
    assert_int_equal(cell->cause, cause & cell->components);
    assert_int_equal(cell->rare, rare);
    assert_true(all == 0 || fabs((double)cell->purity - most / all) <= 1e-6);
}

static void check_cell(const GridRequest *q, const Grid *g, int64_t r, int64_t c)
{
    Region          area = grid_cell_region(g, r, c);
    const GridCell *cell = &g->cells[r * g->cols + c];
    double          count = 0, sum = 0, max = -HUGE_VAL, min = HUGE_VAL, causes[8] = { 0 };
    uint8_t         bits = 0;
    bool            values = q->view->kind == VIEW_WEIGHTS, any = false;
    bool            alone = area.col1 - area.col0 == 1; /* its own value is kept */

    for (int64_t i = area.row0; i < area.row1; i++)
        for (int64_t j = area.col0; j < area.col1; j++) {
            int64_t row = q->row_order ? q->row_order[i] : i;
            int64_t col = q->col_order ? q->col_order[j] : j;
            bool    allowed;
            uint8_t own = pattern_cell(q->view->support, 0, row, col, &allowed);
            double  value = values ? (double)value_at(row, col) : 1;

            if (!allowed)
                continue;
            bits |= own;
            causes[cause_at(own)]++;
            any = true;
            if (q->excludes && values && !alone && col == q->excluded)
                continue;
            count++;
            sum += value;
            max = fmax(max, value);
            min = fmin(min, value);
        }
    assert_true(cell->count == count);
    assert_int_equal(cell->any, any);
    assert_int_equal(cell->components, bits);
    check_causes(cell, causes);
    assert_true(fabs(cell->sum - sum) <= 1e-9 * (1 + fabs(sum)));
    assert_true((double)cell->max == (count > 0 ? max : 0));
    assert_true((double)cell->min == (count > 0 ? min : 0));
}

/* Ranges are those of all cells but the one of the excluded column alone. */
static void check_ranges(const GridRequest *q, const Grid *g)
{
    double lo = HUGE_VAL, hi = -HUGE_VAL;

    for (int64_t r = 0; r < g->rows; r++) {
        double peak = 0;

        for (int64_t c = 0; c < g->cols; c++) {
            Region  area = grid_cell_region(g, r, c);
            int64_t col = q->col_order ? q->col_order[area.col0] : area.col0;
            double  value = grid_value(g, r, c, POOL_MEAN);

            if (!g->cells[r * g->cols + c].any ||
                (q->excludes && q->view->kind == VIEW_WEIGHTS && area.col1 - area.col0 == 1 &&
                 col == q->excluded))
                continue;
            lo = fmin(lo, value);
            hi = fmax(hi, value);
            peak = fmax(peak, fabs(value));
        }
        assert_true(g->row_peak[r * POOL_COUNT + POOL_MEAN] == peak);
    }
    assert_true(lo > hi || (g->pool_lo[POOL_MEAN] == lo && g->pool_hi[POOL_MEAN] == hi));
}

TEST(every_cell_agrees_with_a_plain_loop)
{
    Rng rng = rng_named(1, "grid");

    for (int trial = 0; trial < 120; trial++) {
        Arena      *a = arena_new();
        double      all = 0;
        int64_t     n = 2 + (int64_t)rng_below(&rng, 40);
        View        view = view_of(trial % 2 ? VIEW_WEIGHTS : VIEW_PATTERN, n, n,
                                   random_pattern(a, n, &rng));
        GridRequest q = { .view = &view, .rows = 1 + (int64_t)rng_below(&rng, 50),
                          .cols = 1 + (int64_t)rng_below(&rng, 50) };
        Grid        g;

        q.row_order = rng_below(&rng, 3) ? NULL : random_order(a, n, &rng);
        q.col_order = rng_below(&rng, 3) ? NULL : random_order(a, n, &rng);
        if (rng_below(&rng, 2))
            q.region = (Region){ n / 4, n - n / 5, n / 3, n };
        q.excludes = trial % 3 == 0;
        q.excluded = (int64_t)rng_below(&rng, (uint64_t)n);
        assert_true(grid_reduce(&q, &g, NULL));
        assert_true(g.rows <= q.rows && g.cols <= q.cols);
        for (int64_t c = 0; c < g.rows * g.cols; c++)
            check_cell(&q, &g, c / g.cols, c % g.cols);
        check_ranges(&q, &g);
        for (int64_t i = g.region.row0; i < g.region.row1; i++) /* what is excluded still counts */
            for (int64_t j = g.region.col0; j < g.region.col1; j++) {
                bool allowed;

                pattern_cell(view.support, 0, q.row_order ? q.row_order[i] : i,
                             q.col_order ? q.col_order[j] : j, &allowed);
                all += allowed;
            }
        assert_true(g.count == all);
        grid_free(&g);
        arena_free(a);
    }
}

TEST(cells_tile_the_region)
{
    View        view = view_of(VIEW_SIGNED, 101, 57, NULL);
    GridRequest q = { .view = &view, .rows = 13, .cols = 200 };
    Grid        g;
    double      area = 0;

    view.read = read_values;
    assert_true(grid_reduce(&q, &g, NULL));
    assert_int_equal(g.rows, 13);
    assert_int_equal(g.cols, 57);
    for (int64_t c = 0; c < g.rows * g.cols; c++)
        area += grid_cell_area(&g, c / g.cols, c % g.cols);
    assert_true(area == 101.0 * 57.0);
    assert_true(g.count == area);
    grid_free(&g);
}

/* 0..levels-1; 0: nothing is allowed in the cell. */
static int level_of(const Grid *grid, int64_t row, int64_t col, Pool pool, Scale scale, int levels)
{
    if (!grid->cells[row * grid->cols + col].any)
        return 0;
    return grid_unit_level(grid_unit(grid, row, col, pool, scale, 0, 0), levels);
}

TEST(no_line_vanishes_at_65536)
{
    Arena       *a = arena_new();
    int64_t      n = 65536;
    PatternShape s = { .heads = 1, .n = n, .m = n };
    uint8_t     *flags = arena_zalloc(a, n, 1);
    Pattern     *p;
    View         view;
    Grid         g;
    GridRequest  q = { .view = &view, .rows = 120, .cols = 200 };

    flags[40000] = 1;
    p = pattern_union(a, pattern_band(a, s, 0, 0, 1, COMPONENT_WINDOW),
                      pattern_union(a, pattern_rows(a, s, flags), pattern_cols(a, s, flags)));
    view = view_of(VIEW_PATTERN, n, n, pattern_finish(a, s, p, false));
    assert_true(grid_reduce(&q, &g, NULL));
    for (int64_t i = 0; i < n; i += 97) {
        int64_t row = ((i + 1) * 120 - 1) / n, col = ((i + 1) * 200 - 1) / n;
        int64_t cross_row = (40001 * 120 - 1) / n, cross_col = (40001 * 200 - 1) / n;

        assert_true(level_of(&g, row, col, POOL_COVER, SCALE_LINEAR, 12) >= 1);
        assert_true(level_of(&g, row, cross_col, POOL_MEAN, SCALE_LINEAR, 12) >= 1);
        assert_true(level_of(&g, cross_row, col, POOL_MAX, SCALE_LOG, 12) >= 1);
    }
    assert_int_equal(level_of(&g, 0, 100, POOL_COVER, SCALE_LINEAR, 12), 0);
    assert_true(g.count == 3.0 * 65536 - 2);
    grid_free(&g);
    arena_free(a);
}

TEST(cover_levels_are_logarithmic)
{
    GridCell cell = { .any = true };
    double   peaks[POOL_COUNT] = { 0 };
    Grid     g = { .region = { 0, 1000, 0, 1000 }, .rows = 1, .cols = 1, .cells = &cell,
                   .row_peak = peaks };
    static const struct {
        double count;
        int    level;
    } cases[] = { { 1, 1 }, { 100, 1 }, { 1e3, 4 }, { 1e4, 6 }, { 1e5, 9 }, { 1e6, 11 } };

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        cell.count = cases[k].count;
        assert_int_equal(level_of(&g, 0, 0, POOL_COVER, SCALE_LINEAR, 12), cases[k].level);
    }
}

TEST(threads_change_nothing)
{
    Arena      *a = arena_new();
    Rng         rng = rng_named(3, "threads");
    View        view = view_of(VIEW_WEIGHTS, 211, 211, random_pattern(a, 211, &rng));
    Threads    *threads = threads_new(3);
    GridRequest q = { .view = &view, .rows = 50, .cols = 31, .budget_entries = 900 };
    Grid        one, many;

    assert_true(grid_reduce(&q, &one, NULL));
    q.threads = threads;
    assert_true(grid_reduce(&q, &many, NULL));
    for (int64_t c = 0; c < one.rows * one.cols; c++) {
        assert_true(one.cells[c].sum == many.cells[c].sum);
        assert_true(one.cells[c].max == many.cells[c].max);
        assert_true(one.cells[c].count == many.cells[c].count);
    }
    grid_free(&one);
    grid_free(&many);
    threads_free(threads);
    arena_free(a);
}

TEST(sampling_is_told_and_keeps_the_support)
{
    Arena      *a = arena_new();
    Rng         rng = rng_named(5, "sampling");
    View        view = view_of(VIEW_WEIGHTS, 400, 400, random_pattern(a, 400, &rng));
    GridRequest q = { .view = &view, .rows = 20, .cols = 20 };
    Grid        exact, some;

    assert_true(grid_reduce(&q, &exact, NULL));
    q.budget_entries = exact.count / 10;
    assert_true(grid_reduce(&q, &some, NULL));
    assert_false(exact.sampled);
    assert_true(some.sampled);
    assert_true(some.sampled_share <= 0.11);
    view.cost = 1280; /* entries that cost ten times the usual: as long a time, fewer of them */
    q.budget_entries = exact.count;
    grid_free(&some);
    assert_true(grid_reduce(&q, &some, NULL));
    assert_true(some.sampled && some.sampled_share <= 0.11);
    assert_true(some.count == exact.count);
    for (int64_t c = 0; c < 400; c++) {
        assert_true(some.cells[c].count == exact.cells[c].count);
        assert_int_equal(some.cells[c].components, exact.cells[c].components);
        assert_true(some.cells[c].max <= exact.cells[c].max);
        if (exact.cells[c].any) /* a value was read, not made up: zeros do not occur */
            assert_true(some.cells[c].sum != 0);
    }
    grid_free(&exact);
    grid_free(&some);
    arena_free(a);
}

/* A cell of one row that was not drawn gets that row's value all the same; the row is one run. */
TEST(what_sampling_misses_is_read)
{
    Arena       *a = arena_new();
    PatternShape s = { .heads = 1, .n = 400, .m = 400 };
    uint8_t     *flags = arena_zalloc(a, 400, 1);
    View         view;
    GridRequest  q = { .view = &view, .rows = 4, .cols = 4, .budget_entries = 40 };

    for (int64_t row = 0; row < 100; row += 11) {
        Grid g;

        memset(flags, 0, 400);
        flags[row] = 1;
        view = view_of(VIEW_WEIGHTS, 400, 400, pattern_rows(a, s, flags));
        assert_true(grid_reduce(&q, &g, NULL));
        assert_true(g.sampled);
        for (int64_t c = 0; c < 4; c++) {
            assert_true(g.cells[c].any && !g.cells[4 + c].any);
            assert_true(g.cells[c].sum != 0);
        }
        grid_free(&g);
    }
    arena_free(a);
}

static void read_rows_at(const View *view, int64_t head, const int64_t *rows, int64_t row_count,
                         int64_t start, int64_t count, float *out)
{
    (void)head;
    assert_true(row_count <= VIEW_ROWS_MOST && count <= VIEW_KEYS_MOST);
    for (int64_t r = 0; r < row_count; r++)
        for (int64_t x = 0; x < count; x++)
            out[r * count + x] = view->support && start + x > rows[r]
                                     ? (float)NAN /* may be anything */
                                     : value_at(rows[r], start + x);
}

/* 0: the same cells, sums apart (they are added in another order: 1e-9 of them). */
TEST(rows_read_together_are_the_same_rows)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 7, 300 }, { 300, 7 }, { 301, 299 } };
    Threads             *threads = threads_new(3);
    Arena               *arena = arena_new();

    for (int x = 0; x < 4 * 2 * 2 * 2; x++) {
        const int64_t *size = sizes[x / 4 % 4];
        PatternShape s = { .heads = 1, .n = size[0], .m = size[1] };
        View        view = view_of(VIEW_WEIGHTS, size[0], size[1],
                                   x < 16 ? NULL : pattern_causal(arena, s));
        GridRequest q = { .view = &view, .rows = x % 2 ? 40 : 500, .cols = 33, .threads = threads };
        Grid        alone, together;

        q.budget_entries = x / 2 % 2 ? 4000 : 0;
        if (x % 2 && size[0] > 100)
            q.region = (Region){ 5, 201, 2, 7 };
        assert_true(grid_reduce(&q, &alone, NULL));
        view.read_rows = read_rows_at;
        assert_true(grid_reduce(&q, &together, NULL));
        assert_true(alone.sampled == together.sampled);
        for (int64_t c = 0; c < alone.rows * alone.cols; c++) {
            const GridCell *a = &alone.cells[c], *b = &together.cells[c];

            assert_true(a->count == b->count && a->max == b->max && a->min == b->min);
            assert_true(fabs(a->sum - b->sum) <= 1e-9 * (1 + fabs(a->sum)));
        }
        grid_free(&alone);
        grid_free(&together);
    }
    arena_free(arena);
    threads_free(threads);
}

TEST(a_difference_covers_both_supports)
{
    Arena       *a = arena_new();
    PatternShape s = { .heads = 1, .n = 8, .m = 8 };
    View left = view_of(VIEW_WEIGHTS, 8, 8,
                        pattern_finish(a, s, pattern_band(a, s, 0, 1, 1, 1), false));
    View right = view_of(VIEW_WEIGHTS, 8, 8,
                         pattern_finish(a, s, pattern_band(a, s, -1, 0, 1, 1), false));
    GridRequest q = { .view = &left, .minus = &right, .rows = 8, .cols = 8 };
    Grid        g;

    assert_true(grid_reduce(&q, &g, NULL));
    for (int64_t i = 0; i < 8; i++)
        for (int64_t j = 0; j < 8; j++) {
            const GridCell *cell = &g.cells[i * 8 + j];
            double expected = j == i + 1 ? (double)value_at(i, j)
                                         : j == i - 1 ? -(double)value_at(i, j) : 0;

            assert_int_equal(cell->any, llabs(i - j) <= 1);
            assert_true((double)cell->extreme == expected);
        }
    grid_free(&g);
    right.shape[1] = 9;
    assert_false(grid_reduce(&q, &g, NULL));
    arena_free(a);
}

TEST(values_are_shown_where_they_mean_something)
{
    Arena       *a = arena_new();
    PatternShape s = { .heads = 1, .n = 8, .m = 8 };
    View         view = view_of(VIEW_WEIGHTS, 8, 8, NULL);
    GridRequest  q = { .view = &view, .rows = 8, .cols = 8 };
    Grid         g;

    view.shown = pattern_causal(a, s);
    assert_true(grid_reduce(&q, &g, NULL));
    for (int64_t i = 0; i < 8; i++)
        for (int64_t j = 0; j < 8; j++)
            assert_int_equal(g.cells[i * 8 + j].any, j <= i);
    grid_free(&g);
    arena_free(a);
}

TEST(buckets_go_by_majority)
{
    int32_t     buckets[12] = { 0, 0, 1, 5, 5, 5, -1, -1, -1, 2, 1, 0 };
    View        view = view_of(VIEW_BUCKETS, 1, 12, NULL);
    GridRequest q = { .view = &view, .rows = 5, .cols = 4 };
    Grid        g;

    view.tensor = tensor_of(DT_I32, 2, (int64_t[]){ 1, 12 }, buckets);
    assert_true(grid_reduce(&q, &g, NULL));
    assert_int_equal(g.rows, 1);
    assert_int_equal(g.cells[0].category, 0);
    assert_true(fabs((double)g.cells[0].purity - 2.0 / 3) < 1e-6);
    assert_int_equal(g.cells[1].category, 5);
    assert_true(g.cells[1].purity == 1.0f);
    assert_false(g.cells[2].any);
    assert_int_equal(g.cells[2].category, -1);
    assert_int_equal(g.cells[3].category, 0); /* a tie: the smaller one */
    assert_true(g.value_max == 5);
    grid_free(&g);
}

TEST(a_cell_of_a_mask_has_its_commonest_cause)
{
    uint8_t     mask[8] = { COMPONENT_WINDOW, COMPONENT_WINDOW, COMPONENT_GLOBAL, COMPONENT_RANDOM,
                            COMPONENT_WINDOW, COMPONENT_RANDOM, COMPONENT_GLOBAL, 0 };
    View        view = view_of(VIEW_COMPONENTS, 2, 4, NULL);
    GridRequest q = { .view = &view, .rows = 1, .cols = 2 };
    Grid        g;

    view.tensor = tensor_of(DT_U8, 2, (int64_t[]){ 2, 4 }, mask);
    assert_true(grid_reduce(&q, &g, NULL));
    assert_int_equal(g.cells[0].cause, COMPONENT_WINDOW);
    assert_int_equal(g.cells[0].rare, COMPONENT_RANDOM);
    assert_int_equal(g.cells[1].cause, COMPONENT_GLOBAL);
    assert_int_equal(g.cells[1].rare, COMPONENT_RANDOM);
    assert_true(g.cells[1].count == 3);
    assert_int_equal(grid_causes(&g), COMPONENT_WINDOW | COMPONENT_GLOBAL | COMPONENT_RANDOM);
    grid_free(&g);
}

/* Weights whose causes come from another pattern than their support. */
TEST(causes_of_a_second_pattern_are_counted_too)
{
    Arena       *a = arena_new();
    PatternShape s = { .heads = 1, .n = 12, .m = 12 };
    Pattern     *band = pattern_band(a, s, -1, 1, 1, COMPONENT_WINDOW);
    uint8_t      flags[12] = { [1] = 1 };
    Pattern     *causes = pattern_finish(a, s, pattern_union(a, band, pattern_cols(a, s, flags)),
                                         false);
    View         view = view_of(VIEW_WEIGHTS, 12, 12, NULL);
    GridRequest  q = { .view = &view, .components = causes, .rows = 3, .cols = 3 };
    Grid         g;

    view.support = pattern_finish(a, s, band, false);
    assert_true(grid_reduce(&q, &g, NULL));
    assert_int_equal(g.cells[0].cause, COMPONENT_WINDOW); /* 7 of the window, 4 of the column */
    assert_int_equal(g.cells[0].rare, COMPONENT_GLOBAL);
    assert_int_equal(g.cells[4].cause, COMPONENT_WINDOW);
    assert_int_equal(g.cells[4].rare, 0);
    grid_free(&g);
    arena_free(a);
}

TEST(masks_and_odd_values_are_seen)
{
    uint8_t     mask[6] = { 0, 1, 0, 1, 1, 0 };
    float       odd[4] = { NAN, 1, -3, INFINITY };
    View        view = view_of(VIEW_MEMBERSHIP, 2, 3, NULL);
    GridRequest q = { .view = &view, .rows = 2, .cols = 3 };
    Grid        g;

    view.tensor = tensor_of(DT_U8, 2, (int64_t[]){ 2, 3 }, mask);
    assert_true(grid_reduce(&q, &g, NULL));
    for (int k = 0; k < 6; k++)
        assert_int_equal(g.cells[k].any, mask[k]);
    grid_free(&g);
    view = view_of(VIEW_SIGNED, 2, 2, NULL);
    view.tensor = tensor_of(DT_F32, 2, (int64_t[]){ 2, 2 }, odd);
    assert_true(grid_reduce(&q, &g, NULL));
    assert_int_equal(g.odd_count, 2);
    assert_true(g.cells[0].odd && g.cells[0].any);
    assert_true(isnan(grid_unit(&g, 0, 0, POOL_MAX, SCALE_LINEAR, 0, 0)));
    assert_true(g.value_min == -3 && g.value_max == 1);
    assert_true(grid_value(&g, 1, 0, POOL_MAX) == -3);
    grid_free(&g);
}

TEST(refusals_say_why)
{
    atomic_bool cancel = true;
    View        view = view_of(VIEW_WEIGHTS, 4, 4, NULL);
    GridRequest q = { .view = &view, .rows = 2, .cols = 2, .cancel = &cancel };
    Error       err = ERROR_INIT;
    Grid        g;

    assert_false(grid_reduce(&q, &g, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    q.cancel = NULL;
    q.region = (Region){ 3, 3, 0, 2 };
    assert_false(grid_reduce(&q, &g, &err));
    assert_int_equal(err.code, ERR_DATA);
    q.region = (Region){ 0 };
    q.rows = 0;
    assert_false(grid_reduce(&q, &g, &err));
    view.rank = 3;
    view.shape[0] = 2;
    view.shape[1] = view.shape[2] = 4;
    q.rows = 2;
    q.plane = 2;
    assert_false(grid_reduce(&q, &g, &err));
    assert_non_null(strstr(err.text, "2 planes"));
}

TEST(names_are_read_back)
{
    Pool  pool;
    Scale scale;
    Error err = ERROR_INIT;

    for (int k = 0; k < POOL_COUNT; k++)
        assert_true(pool_parse(pool_name((Pool)k), &pool, NULL) && (int)pool == k);
    for (int k = 0; k < SCALE_COUNT; k++)
        assert_true(scale_parse(scale_name((Scale)k), &scale, NULL) && (int)scale == k);
    assert_false(pool_parse("median", &pool, &err));
    for (int k = 0; k < POOL_COUNT; k++)
        assert_non_null(strstr(err.text, pool_name((Pool)k)));
    assert_non_null(strstr(err.text, "cover"));
    assert_int_equal(pool_default(VIEW_PATTERN), POOL_COVER);
    assert_int_equal(pool_default(VIEW_WEIGHTS), POOL_MAX);
}

SUITE(NULL, NULL)
