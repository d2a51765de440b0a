/* test_draw_sheet.c -- a figure on its sheet: columns, bars, small plots, what is drawn. */

#include "check.h"
#include "draw/page/sheet.h"
#include "unit/page_fixture.h"

static int columns_of(const Figure *figure, double inches)
{
    Sheet sheet;
    int   cols;

    plan_of(&sheet, figure, inches);
    cols = sheet.cols;
    assert_true(sheet.rows * cols >= figure->count);
    sheet_free(&sheet);
    return cols;
}

/* Numbers of a second kind have paler colours; named categories are of no kind. */
TEST(only_numbers_of_another_kind_are_pale)
{
    static const char *const names[] = { "out", "in", NULL };
    static const int32_t     numbers[64] = { 0, 1 };
    static const char *const kinds[] = { "choices", "buckets", "chunks", "buckets" };
    static const bool        pale[] = { false, false, true, false };
    View    views[4];
    Figure *figure = matrices(&views[0], 4, "m");
    Sheet   sheet;

    for (int k = 0; k < 4; k++) {
        views[k] = views[0];
        snprintf(views[k].name, sizeof(views[k].name), "%s", kinds[k]);
        views[k].kind = VIEW_BUCKETS;
        views[k].categories = k ? NULL : names;
        views[k].tensor = tensor_of(DT_I32, 2, views[0].shape, (void *)(uintptr_t)numbers);
        panel_init(&figure->panels[k], &views[k], NULL, 0, "m");
    }
    plan_of(&sheet, figure, 6);
    for (int k = 0; k < 4; k++)
        assert_int_equal(sheet.scene.panels[k].pale, pale[k]);
    sheet_free(&sheet);
    figure_free(figure);
}

/* Titles are smaller, down to four fifths, before they take a second line. */
TEST(titles_get_smaller_before_they_break)
{
    View    view;
    Figure *figure = matrices(&view, 2, "Longformer \xC2\xB7 connectivity");
    bool    smaller = false;

    for (double inches = 2; inches < 6; inches += 0.05) {
        Sheet sheet;

        plan_of(&sheet, figure, inches);
        smaller = smaller || (sheet.title_font < sheet.style.title &&
                              sheet.panels[0].title.count == 1);
        CHECK(sheet.title_font >= 0.79 * sheet.style.title, "%g inches", inches);
        sheet_free(&sheet);
    }
    assert_true(smaller);
    figure_free(figure);
}

/* Many counts of layers have a bar of steps, each with its number in the middle; few have none. */
TEST(a_bar_of_layers_has_a_step_each)
{
    uint8_t hops[64];
    View    view;
    Figure *figure = matrices(&view, 2, "reach");
    Sheet   sheet;
    double  places[SHEET_TICKS];
    char    texts[SHEET_TICKS][24];

    view.kind = VIEW_HOPS;
    view.dtype = DT_U8;
    view.tensor = tensor_of(DT_U8, 2, view.shape, hops);
    figure->legend = true;
    for (int k = 0; k < 2; k++)
        panel_init(&figure->panels[k], &view, NULL, 0, "reach");
    for (int most = 2; most <= 6; most += 4) {
        for (int i = 0; i < 64; i++)
            hops[i] = (uint8_t)(1 + i % most);
        plan_of(&sheet, figure, 6);
        assert_int_equal(sheet_depths(&sheet), most > 2 ? most : 0);
        assert_false(sheet_has_bar(&sheet, 0)); /* one for both, beside the last */
        assert_int_equal(sheet_has_bar(&sheet, 1), most > 2);
        CHECK((sheet.item_count == 0) == (most > 2), "%d swatches", sheet.item_count);
        if (most > 2) {
            assert_int_equal(sheet_bar_ticks(&sheet, 1, 6, places, texts), most);
            for (int i = 0; i < most; i++) {
                CHECK_NEAR(places[i], (i + 0.5) / most, 1e-12);
                assert_int_equal(atoi(texts[i]), i + 1);
            }
        }
        sheet_free(&sheet);
    }
    figure_free(figure);
}

static Figure *bars_of(int count)
{
    Figure     *figure = figure_new(1, NULL);
    Plot       *plot = plot_new(NULL);
    PlotSeries *s = plot_add(plot, "time", CURVE_BARS, count, false);

    assert_true(plot_rows(plot, count, NULL) && plot_label(s));
    for (int i = 0; i < count; i++) {
        snprintf(plot->rows[i], sizeof(plot->rows[i]), "Full attention");
        snprintf(s->labels[i], sizeof(s->labels[i]), "0.42 ms");
        s->x[i] = 0.42;
        s->y[i] = i;
    }
    snprintf(plot->x.name, sizeof(plot->x.name), "time (ms)");
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "time of one run");
    return figure;
}

/* A plot of one bar is as high as one bar needs, not as wide plots are, and keeps its words. */
TEST(one_bar_is_a_low_plot)
{
    int high[2];

    for (int bars = 1; bars <= 2; bars++) {
        Figure *figure = bars_of(bars);
        Sheet   sheet;

        plan_of(&sheet, figure, 3.25);
        high[bars - 1] = sheet.layout.panels[0].matrix.h;
        assert_true(figure->panels[0].made->x.lo <= 0); /* a bar begins at zero */
        CHECK(high[bars - 1] >= bars * sheet.style.tick, "%d pixels", high[bars - 1]);
        CHECK(high[bars - 1] < 0.3 * sheet.layout.panels[0].matrix.w, "%d pixels", high[bars - 1]);
        sheet_free(&sheet);
        figure_free(figure);
    }
    CHECK(abs(high[1] - 2 * high[0]) <= 1, "%d, %d", high[0], high[1]);
}

TEST(a_loose_grid_has_fewer_columns_where_it_is_narrow)
{
    View    view;
    Figure *figure = matrices(&view, 4, "temperature 0.5");

    assert_int_equal(layout_fewer_columns(4), 2);
    assert_int_equal(layout_fewer_columns(3), 2);
    assert_int_equal(layout_fewer_columns(1), 1);
    assert_int_equal(columns_of(figure, 3.25), 4); /* somebody wants it so */
    figure->loose = true;
    assert_int_equal(columns_of(figure, 3.25), 2);
    assert_int_equal(columns_of(figure, 1.2), 1);
    assert_int_equal(columns_of(figure, 6.75), 4);
    figure_free(figure);
}

/* Fourteen panels of which four are too wide for a row stand in rows of three. */
TEST(a_usual_arrangement_keeps_what_columns_it_can)
{
    View    view;
    Figure *figure = matrices(&view, 14, "a permutation_of_blocks");

    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 8), 4);
    assert_int_equal(columns_of(figure, 4.5), 3);
    figure_free(figure);
    figure = matrices(&view, 8, "a permutation_of_blocks"); /* full rows stay full */
    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 4.5), 2);
    figure_free(figure);
    figure = matrices(&view, 12, "a permutation_of_blocks"); /* two columns exceed a page */
    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 4.5), 3);
    figure_free(figure);
}

TEST(no_word_of_a_usual_arrangement_is_cut)
{
    View    view;
    Figure *figure = matrices(&view, 3, "short words");
    char   *title = figure->panels[1].title;
    size_t  size = sizeof(figure->panels[1].title);

    view.cols = "key";
    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 3.25), 3);
    snprintf(title, size, "a permutation_of_blocks");
    assert_int_equal(columns_of(figure, 3.25), 2);
    assert_int_equal(columns_of(figure, 6.75), 3);
    snprintf(title, size, "a permutation_of_blocks_of_keys_by_queries"); /* cut beside any other */
    assert_int_equal(columns_of(figure, 3.25), 3);
    snprintf(title, size, "short words");
    view.cols = "position of every key";
    assert_int_equal(columns_of(figure, 3.25), 2);
    figure_free(figure);
}

/* Pixels of the outermost columns on the right that are not paper. */
static int ink_at_the_edge(const Figure *figure, double inches)
{
    Sheet    sheet;
    int      width, height, ink = 0;
    uint8_t *pixels;

    plan_of(&sheet, figure, inches);
    canvas_free(sheet.canvas);
    sheet.canvas = canvas_new(CANVAS_PIXELS, sheet.layout.width, sheet.layout.height, 72, NULL,
                              &sheet.style.paper, NULL);
    sheet_draw(&sheet);
    pixels = canvas_pixels(sheet.canvas, &width, &height);
    assert_non_null(pixels);
    for (int y = 0; y < height; y++)
        for (int x = width - 4; x < width; x++)
            ink += pixels[4 * ((size_t)y * (size_t)width + (size_t)x)] < 255;
    free(pixels);
    sheet_free(&sheet);
    return ink;
}

TEST(names_of_curves_stay_on_the_sheet)
{
    View    view;
    Figure *figure = matrices(&view, 4, "m");
    Plot   *plot = plot_new(NULL);

    assert_non_null(plot);
    for (int k = 0; k < 3; k++) {
        PlotSeries *series = plot_add(plot, k ? "temperature=0.5 of the second kind" : "one",
                                      CURVE_LINE, 3, false);

        assert_non_null(series);
        for (int i = 0; i < 3; i++)
            series->x[i] = series->y[i] = i + k;
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[3], plot, "p");
    assert_int_equal(ink_at_the_edge(figure, 3.25), 0);
    assert_int_equal(ink_at_the_edge(figure, 6.75), 0);
    figure_free(figure);
}

/* Half-transparent strokes: nothing else is half-transparent in a figure of matrices. */
static int strokes_of(const Figure *figure, const char *theme)
{
    PngOptions options = { .theme = theme };
    Text       svg = { 0 };
    int        count = 0;

    assert_true(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, NULL));
    for (const char *at = text_str(&svg); (at = strstr(at, "stroke-opacity=\"0.5\"")); at++)
        count++;
    text_free(&svg);
    return count;
}

/* A printer without colours shows -x and x as one grey: what is below zero has strokes. */
TEST(negative_differences_are_hatched_in_print)
{
    static const float zeros[64] = { 0 }, ones[64] = { [0 ... 63] = 1 };
    View               view, none, one;
    Figure            *figure = matrices(&view, 1, "m");

    none = one = view;
    none.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)zeros);
    one.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)ones);
    assert_int_equal(strokes_of(figure, "print"), 0); /* weights */
    figure->panels[0].minus = &one;
    assert_true(strokes_of(figure, "print") > 64); /* all but the cells of 1 are below zero */
    assert_int_equal(strokes_of(figure, "light"), 0);
    view.tensor = one.tensor;
    figure->panels[0].minus = &none;
    assert_true(strokes_of(figure, "print") < 64); /* only the lower half of the bar */
    figure_free(figure);
}

/* 1e-06 beside 0.0001 would be two ways to write one kind of number. */
TEST(small_numbers_of_a_logarithmic_axis_are_powers)
{
    View        view;
    Figure     *figure = matrices(&view, 1, "m");
    Plot       *plot = plot_new(NULL);
    PlotSeries *line = plot_add(plot, "line", CURVE_LINE, 2, false);
    char        text[24];

    assert_non_null(line);
    plot->y.log = true;
    for (int i = 0; i < 2; i++) {
        line->x[i] = i;
        line->y[i] = i ? 1 : 1e-8;
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "p");
    expect_words(figure, 3.25, "10\u207B\u2076");
    expect_words(figure, 3.25, "10\u2070");
    snprintf(text, sizeof(text), "2e-07");
    sheet_powers(text, sizeof(text));
    assert_string_equal(text, "2\u00B7" "10\u207B\u2077");
    figure_free(figure);
}

TEST(an_axis_that_is_reordered_is_named_apart)
{
    static const int32_t order[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
    View                 view;
    Figure              *figure = matrices(&view, 2, "m");

    figure->rows = 2;
    figure->cols = 1;
    figure->panels[0].col_order = order;
    expect_words(figure, 3.25, "source block (reordered)");
    expect_words(figure, 3.25, "source block");
    figure_free(figure);
}

SUITE(NULL, NULL)
