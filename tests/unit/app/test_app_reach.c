/* test_app_reach.c -- reach as a view of a result: stacks, rows, pictures, ways. */
#include <pthread.h>

#include "app/call.h"
#include "app/figure/picture.h"
#include "core/threads.h"
#include "draw/figure/figure.h"
#include "session_fixture.h"

/* ---- stacks ------------------------------------------------------------------------- */

static const struct {
    const char *text, *written;
    int         layers;
} stacks[] = {
    { "full", "full", 1 },
    { "full>full", "full > full", 2 },
    { " bigbird( window=5 , seed=2 )  >window(window=3)", "bigbird(window=5) > window(window=3)",
      2 },
    { "bigbird > bigbird(seed=2) > bigbird > bigbird(seed=5,causal=true)",
      "bigbird > bigbird(seed=2) > bigbird > bigbird(seed=5,causal=true)", 4 },
    { "pattern(window(3)) > pattern(stride(4)&!self)",
      "pattern(expr=window(3)) > pattern(expr=stride(4)&!self)", 2 },
    { "full > full(position=rope)", "full > full(position=rope)", 2 },
};

TEST(stacks_are_read_and_written_back)
{
    Session *s = session_on("synthetic:normal(n=12,d=4)");

    for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
        Request request = REQUEST_INIT, copy, again = REQUEST_INIT;
        Error   err = ERROR_INIT;
        Text    text = { 0 }, other = { 0 };
        int     layers = 0;

        CHECK(request_parse(s, &request, stacks[i].text, &err), "%s: %s", stacks[i].text,
              err.text);
        assert_true(request_copy(&copy, &request, &err));
        for (const Request *r = &request; r; r = r->above)
            layers++;
        assert_int_equal(layers, stacks[i].layers);
        request_free(&request);
        request_text(&copy, &text);
        assert_string_equal(text_str(&text), stacks[i].written);
        again.seed = copy.seed; /* that of the lowest layer is an option */
        assert_true(request_parse(s, &again, text_str(&text), &err));
        request_text(&again, &other);
        assert_string_equal(text_str(&text), text_str(&other));
        request_free(&copy);
        request_free(&again);
        text_free(&text);
        text_free(&other);
    }
    session_free(s);
}

TEST(a_slip_in_a_stack_is_told)
{
    static const char *const slips[][2] = {
        { "full > ful", "nearest is 'full'" },
        { "full >", "unknown mechanism ''" },
        { "> full", "unknown mechanism ''" },
        { "full > window(window=x", "not closed" },
    };
    Session *s = session_on("synthetic:normal(n=12,d=4)");

    for (size_t i = 0; i < sizeof(slips) / sizeof(*slips); i++) {
        Request request = REQUEST_INIT;
        Error   err = ERROR_INIT;

        assert_false(request_parse(s, &request, slips[i][0], &err));
        CHECK(strstr(err.text, slips[i][1]), "'%s' says: %s", slips[i][0], err.text);
        request_free(&request);
    }
    session_free(s);
}

TEST(a_layer_that_fails_fails_the_stack)
{
    Session *s = session_on("synthetic:normal(n=12,d=4)");
    Result  *result = result_tried(s, "full > window(window=-3)");
    Error    err = ERROR_INIT;

    assert_null(result_reach(result, NULL, &err));
    CHECK(strstr(err.text, "layer 2") && strstr(err.text, "window"), "%s", err.text);
    result_release(result);
    session_free(s);
}

/* ---- the view ------------------------------------------------------------------------ */

static int hops_at(const View *view, int64_t i, int64_t j)
{
    float value;

    view_read(view, 0, i, j, 1, 1, &value);
    return (int)value;
}

TEST(views_of_several_depths_stand_side_by_side)
{
    Session *s = session_on("synthetic:normal(n=600,d=4)");
    Result  *result = result_of(s, "window(window=5)");
    Error    err = ERROR_INIT;

    for (int layers = 1; layers < 40; layers += 6)
        for (int strict = 0; strict < 2; strict++) {
            ReachOptions options = { layers, strict };
            const View  *view = result_reach(result, &options, &err);

            assert_non_null(view);
            assert_ptr_equal(view, result_reach(result, &options, &err));
            assert_int_equal(reach_view_depth(view), layers);
            for (int64_t i = 0; i < 600; i += 7)
                for (int64_t j = 0; j < 600; j += 3) {
                    int64_t hops = (llabs(i - j) + 1) / 2;
                    int     wanted = hops > layers ? -1 : strict ? layers : (int)hops;

                    CHECK(hops_at(view, i, j) == wanted, "(%d,%d) of %d: %d", (int)i, (int)j,
                          layers, hops_at(view, i, j));
                }
        }
    assert_int_equal(reach_view_depth(result_reach(result, NULL, &err)), REACH_USUAL);
    assert_null(result_reach(result, &(ReachOptions){ 255, false }, &err));
    assert_non_null(strstr(err.text, "1 to 254"));
    result_release(result);
    session_free(s);
}

TEST(a_stack_goes_through_its_layers_in_turn)
{
    Session    *s = session_on("synthetic:normal(n=40,d=4)");
    Result     *result = result_of(s, "pattern(band(-1,-1)) > pattern(band(-10,-10))");
    Error       err = ERROR_INIT;
    const View *view = result_reach(result, NULL, &err);
    char        way[160];

    assert_int_equal(reach_view_depth(view), 2);
    assert_int_equal(hops_at(view, 30, 29), 1);
    assert_int_equal(hops_at(view, 30, 20), 2); /* the second layer */
    assert_int_equal(hops_at(view, 30, 19), 2);
    assert_int_equal(hops_at(view, 30, 28), -1); /* the first one comes once */
    assert_int_equal(reach_view_way(view, 30, 19, way, sizeof(way)), 2);
    assert_string_equal(way, "2 layers via k=20");
    view = result_reach(result, &(ReachOptions){ 3, false }, &err);
    assert_int_equal(hops_at(view, 30, 28), 3);
    result_release(result);
    session_free(s);
}

TEST(ways_are_told_in_words)
{
    Session     *s = session_on("synthetic:normal(n=64,d=4)");
    Result      *result = result_of(s, "window(window=3)");
    Error        err = ERROR_INIT;
    const View  *view = result_reach(result, &(ReachOptions){ 20, false }, &err);
    char         way[160];
    const struct {
        int64_t     q, k;
        const char *says;
    } ways[] = {
        { 9, 9, "itself" },
        { 9, 8, "1 layer" },
        { 9, 12, "3 layers via k=10, 11" },
        { 9, 29, "20 layers via k=10, 11, 12, 13, 14 \xe2\x80\xa6 28" },
        { 9, 30, "not within 20 layers" },
    };

    assert_false(reach_view_ready(view));
    assert_int_equal(reach_view_way(view, 0, 0, way, sizeof(way)), -2);
    hops_at(view, 0, 0);
    assert_true(reach_view_ready(view));
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        reach_view_way(view, ways[i].q, ways[i].k, way, sizeof(way));
        assert_string_equal(way, ways[i].says);
    }
    result_release(result);
    session_free(s);
}

TEST(other_keys_than_queries_are_refused)
{
    Session *s = session_on("synthetic:normal(n=12,d=4)");
    Result  *result;
    Error    err = ERROR_INIT;
    int64_t  shape[3] = { 1, 4, 3 }, keys[3] = { 1, 6, 3 };
    float    zeros[18] = { 0 };
    Tensor   q = tensor_of(DT_F32, 3, shape, zeros), k = tensor_of(DT_F32, 3, keys, zeros);
    Input   *cross = input_from_tensors(&q, &k, &k, NULL, NULL, &err);

    assert_true(session_set_input(s, cross, "cross", &err));
    result = result_of(s, "full");
    assert_null(result_reach(result, NULL, &err));
    CHECK(strstr(err.text, "4 queries and 6 keys"), "%s", err.text);
    result_release(result);
    session_free(s);
}

/* Many threads read rows at once that none has read before. */
typedef struct Reader {
    const View *view;
    int64_t     from;
    bool        ok;
    pthread_t   thread;
} Reader;

static void *read_rows(void *context)
{
    Reader *r = context;
    float   row[1500];

    r->ok = true;
    for (int64_t t = 0; t < 1500; t++) {
        int64_t i = (r->from + t * 7) % 1500;

        view_read(r->view, 0, i, 0, 1500, 1, row);
        for (int64_t j = 0; j < 1500; j++) {
            int64_t hops = (llabs(i - j) + 19) / 20;

            r->ok &= row[j] == (float)(hops > 12 ? -1 : hops);
        }
    }
    return NULL;
}

TEST(threads_may_read_at_once)
{
    Session *s = session_on("synthetic:normal(n=1500,d=4)");
    Result  *result = result_of(s, "window(window=41)");
    Error    err = ERROR_INIT;
    Reader   readers[6];

    for (int i = 0; i < 6; i++) {
        readers[i] = (Reader){ result_reach(result, NULL, &err), i * 251, false, 0 };
        pthread_create(&readers[i].thread, NULL, read_rows, &readers[i]);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_true(readers[i].ok);
    }
    result_release(result);
    session_free(s);
}

/* ---- pictures ------------------------------------------------------------------------- */

typedef struct Cell {
    double  count, sum;
    int     least, most;
} Cell;

static Cell cell_by_loop(const View *view, Region r)
{
    Cell c = { .least = 999 };

    for (int64_t i = r.row0; i < r.row1; i++)
        for (int64_t j = r.col0; j < r.col1; j++) {
            int hops = hops_at(view, i, j);

            if (hops < 0)
                continue;
            c.count++;
            c.sum += hops;
            c.least = hops < c.least ? hops : c.least;
            c.most = hops > c.most ? hops : c.most;
        }
    return c;
}

TEST(a_grid_holds_what_every_entry_gives)
{
    Session    *s = session_on("synthetic:normal(n=131,d=4)");
    Result     *result = result_of(s, "pattern(window(3)+rows([40])+random(1))");
    Error       err = ERROR_INIT;
    const View *view = result_reach(result, &(ReachOptions){ 5, false }, &err);
    GridRequest request = { .view = view, .rows = 17, .cols = 23 };
    Grid        grid;
    double      all = 0;

    CHECK(grid_reduce(&request, &grid, &err), "%s", err.text);
    for (int64_t r = 0; r < grid.rows; r++)
        for (int64_t c = 0; c < grid.cols; c++) {
            const GridCell *cell = &grid.cells[r * grid.cols + c];
            Cell            want = cell_by_loop(view, grid_cell_region(&grid, r, c));

            all += want.count;
            assert_int_equal(cell->any, want.count > 0);
            assert_true(cell->count == want.count && cell->sum == want.sum);
            if (!cell->any)
                continue;
            assert_true(grid_value(&grid, r, c, POOL_MIN) == want.least);
            assert_true(grid_value(&grid, r, c, POOL_MAX) == want.most);
            CHECK_NEAR(grid_value(&grid, r, c, POOL_MEAN), want.sum / want.count, 1e-12);
            CHECK_NEAR(grid_value(&grid, r, c, POOL_COVER),
                       want.count / grid_cell_area(&grid, r, c), 1e-12);
        }
    assert_true(grid.count == all);
    assert_false(grid.sampled);
    grid_free(&grid);
    request.budget_entries = 1000; /* a sample says so, and stays near */
    CHECK(grid_reduce(&request, &grid, &err), "%s", err.text);
    assert_true(grid.sampled);
    assert_true(fabs(grid.count - all) < 0.2 * all);
    grid_free(&grid);
    result_release(result);
    session_free(s);
}

TEST(a_drawing_can_be_cancelled)
{
    Session    *s = session_on("synthetic:normal(n=2048,d=4)");
    Result     *result = result_of(s, "window(window=3)");
    Error       err = ERROR_INIT;
    atomic_bool cancel = true;
    GridRequest request = { .view = result_reach(result, &(ReachOptions){ 254, false }, &err),
                            .rows = 64, .cols = 64, .cancel = &cancel };
    Grid        grid;

    assert_false(grid_reduce(&request, &grid, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    result_release(result);
    session_free(s);
}

TEST(a_figure_says_what_its_colours_are)
{
    Session       *s = session_on("synthetic:normal(n=24,d=4)");
    Result        *result = result_of(s, "window(window=3)");
    Error          err = ERROR_INIT;
    PictureOptions options = { .head = -1, .reach = { 3, false } };
    PanelChoice    panel = { .result = result, .spec = panel_spec("reach") };
    TextOptions    plain = { .width = 80, .utf8 = true };
    Figure        *figure = picture_of_panels(&panel, 1, &options, &err);
    Text           out = { 0 }, command = { 0 };

    CHECK(figure, "%s", err.text);
    assert_true(figure_text(figure, &plain, &out, &err));
    assert_non_null(strstr(text_str(&out), "reach, 3 layers"));
    assert_non_null(strstr(text_str(&out), "0 itself  1 1 layer  2 2 layers  3 3 layers"));
    assert_non_null(strstr(text_str(&out), ". not reached"));
    assert_non_null(strstr(text_str(&out), "156 of 576 pairs reached (27.1 %)"));
    assert_non_null(strstr(text_str(&out), "00112233...."));
    picture_command(s, &panel, 1, &options, &command);
    assert_non_null(strstr(text_str(&command), "'window(window=3):reach'"));
    assert_non_null(strstr(text_str(&command), "--layers 3"));
    figure_free(figure);
    panel.minus = result;
    assert_null(picture_of_panels(&panel, 1, &options, &err));
    text_free(&out);
    text_free(&command);
    result_release(result);
    session_free(s);
}

/* One item for each of the first counts, then fewer. */
TEST(a_long_legend_is_thinned_out)
{
    LegendItem items[40];
    int        count = hops_legend(MAP_VIRIDIS, 0, 100, true, false, items, 40);

    assert_true(count > 10 && count < 20);
    assert_string_equal(items[0].text, "itself");
    assert_string_equal(items[1].text, "1 layer");
    assert_string_equal(items[8].text, "8 layers");
    assert_string_equal(items[9].text, "\xe2\x80\xa6 12 layers"); /* 9 to 11 have no entry */
    assert_string_equal(items[count - 2].text, "\xe2\x80\xa6 100 layers");
    assert_string_equal(items[count - 1].text, "not reached");
    count = hops_legend(MAP_VIRIDIS, 0, 10, false, false, items, 40); /* 9 is not left out alone */
    assert_int_equal(count, 11);
    assert_string_equal(items[10].text, "10 layers");
    assert_int_equal(hops_legend(MAP_VIRIDIS, 1, 2, false, true, items, 40), 2);
    assert_int_equal(hops_legend(MAP_VIRIDIS, 0, 254, true, true, items, 4), 4);
}

/* ---- the sizes of the papers ------------------------------------------------------------ */

TEST(long_sequences_are_drawn_exactly)
{
    Session    *s = session_on("synthetic:normal(n=16384,d=4)");
    Result     *result = result_of(s, "pattern(window(513)+global(4))");
    Error       err = ERROR_INIT;
    Threads    *threads = threads_new(2);
    GridRequest request = { .view = result_reach(result, NULL, &err), .rows = 100, .cols = 100,
                            .threads = threads };
    Grid        grid;

    CHECK(grid_reduce(&request, &grid, &err), "%s", err.text);
    assert_true(grid.count == 16384.0 * 16384.0 && !grid.sampled);
    assert_true(grid_value(&grid, 0, 50, POOL_MIN) == 1);   /* a global row is not lost */
    assert_true(grid_value(&grid, 50, 0, POOL_MIN) == 1);
    assert_true(grid_value(&grid, 10, 90, POOL_MIN) == 2);
    assert_true(grid_value(&grid, 50, 50, POOL_MIN) == 0);
    grid_free(&grid);
    threads_free(threads);
    result_release(result);
    session_free(s);
}

SUITE(NULL, NULL)
