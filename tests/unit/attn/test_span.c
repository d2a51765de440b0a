/* test_span.c -- a query's row laid out on the image: every pixel, every kind of view. */

#include "app/figure/picture.h"
#include "attn/study/row.h"
#include "check.h"

static Session *session;

static int open_session(void **state)
{
    Error err = ERROR_INIT;

    (void)state;
    session = session_new(&err);
    return session && session_load(session, "synthetic:normal(n=23,d=4,heads=2)", NULL, &err) ? 0
                                                                                              : -1;
}

static int close_session(void **state)
{
    (void)state;
    session_free(session);
    return 0;
}

static Result *run_of(const char *text)
{
    Request request = REQUEST_INIT;
    Error   err = ERROR_INIT;
    Result *result;

    CHECK(request_parse(session, &request, text, &err), "%s: %s", text, err.text);
    result = session_run(session, &request, &err);
    CHECK(result && result->run->err.code == ERR_NONE, "%s: %s", text, err.text);
    request_free(&request);
    return result;
}

static void check_query(Arena *arena, const View *base, int64_t plane, int64_t q, int64_t width)
{
    const View *span = span_view(arena, base, plane, q, width);
    float       row[23], line[23];

    assert_non_null(span);
    assert_int_equal(view_rows(span), (23 + width - 1) / width);
    assert_int_equal(view_cols(span), width);
    view_read(base, plane, q, 0, 23, 1, row);
    for (int64_t y = 0; y < view_rows(span); y++) {
        memset(line, 0, sizeof(line));
        view_read(span, 0, y, 0, width < 23 ? width : 23, 1, line);
        for (int64_t x = 0; x < width && y * width + x < 23; x++) {
            bool allowed = true, seen = true;

            CHECK(line[x] <= row[y * width + x] && line[x] >= row[y * width + x],
                  "%s q=%d width=%d pixel %d,%d: %g, not %g", base->name, (int)q, (int)width,
                  (int)y, (int)x, (double)line[x], (double)row[y * width + x]);
            if (!base->support)
                continue;
            CHECK(pattern_cell(span->support, 0, y, x, &seen) ==
                      pattern_cell(base->support, plane, q, y * width + x, &allowed) &&
                  seen == allowed, "%s q=%d: components of %d,%d", base->name, (int)q, (int)y,
                  (int)x);
        }
    }
}

TEST(every_pixel_is_the_cell_of_its_key)
{
    static const char *const mechanisms[] = { "image-local-2d(width=5)", "axial(width=4)",
                                              "sparse-strided(stride=3)", "bigbird",
                                              "logsparse(causal=true)", "full" };
    static const int64_t     widths[] = { 1, 4, 5, 7, 23, 40 };

    for (size_t m = 0; m < sizeof(mechanisms) / sizeof(*mechanisms); m++) {
        Result *result = run_of(mechanisms[m]);
        Arena  *arena = arena_new();

        for (int v = 0; v < result->run->view_count; v++) {
            const View *view = &result->run->views[v];

            if (strcmp(view->rows, "query") != 0 || strcmp(view->cols, "key") != 0)
                continue;
            for (size_t w = 0; w < sizeof(widths) / sizeof(*widths); w++)
                for (int64_t q = 0; q < 23; q++)
                    check_query(arena, view, view_planes(view) - 1, q, widths[w]);
        }
        arena_free(arena);
        result_release(result);
    }
}

TEST(a_picture_names_its_query)
{
    Result *result = run_of("axial(width=5)");
    Panel   panel;
    Error   err = ERROR_INIT;

    assert_true(picture_panel(result, "connectivity", -1, &panel, &err));
    assert_true(picture_span(result, "3,2", NULL, &panel, &err));
    assert_true(panel.picture);
    assert_int_equal(panel.mark_row, 3);
    assert_int_equal(panel.mark_col, 2);
    assert_int_equal(panel.pixel_count, 23);
    assert_null(panel.pixels); /* the input is no image: an even grey */
    assert_true(picture_panel(result, "connectivity", -1, &panel, &err));
    assert_false(picture_span(result, "4,3", NULL, &panel, &err)); /* past the short last row */
    assert_false(picture_span(result, "x", NULL, &panel, &err));
    assert_true(picture_panel(result, "output", -1, &panel, &err));
    assert_false(picture_span(result, "1", NULL, &panel, &err));
    result_release(result);
}

TEST(pixels_lie_behind_the_cells)
{
    static const float pixels[] = { 0, 1, 0.5f, 0.25f };
    Result *result = run_of("window(window=1)");
    Panel   panel;
    Grid    grid;
    Error   err = ERROR_INIT;
    Paint   paint;

    result->run->width = 2;
    assert_true(picture_panel(result, "connectivity", -1, &panel, &err));
    assert_true(picture_span(result, "0", NULL, &panel, &err));
    panel.pixels = pixels;
    panel.pixel_count = 4;
    assert_true(grid_reduce(&(GridRequest){ .view = panel.view, .components = panel.components,
                                            .rows = 12, .cols = 2 }, &grid, &err));
    paint = panel_paint(&panel, &grid, 0, 0, 256, false);
    assert_int_equal(paint.ascii, 'Q');
    paint = panel_paint(&panel, &grid, 0, 1, 256, false);
    assert_int_equal(paint.rgb.r, 255); /* not seen: the picture itself */
    paint = panel_paint(&panel, &grid, 1, 1, 256, false);
    assert_int_equal(paint.rgb.g, 64);
    paint = panel_paint(&panel, &grid, 2, 0, 256, false);
    assert_true(paint.background); /* the image ends before */
    grid_free(&grid);
    result_release(result);
}

SUITE(open_session, close_session)
