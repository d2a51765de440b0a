/* test_plots_shared.c -- plots of one page: a name has one colour, one key names all, all fit. */

#include <math.h>
#include <stdio.h>

#include "check.h"
#include "draw/figure/scene.h"
#include "draw/plot/plot.h"

/* A plot with a curve for each letter. */
static Plot *plot_of_letters(const char *letters)
{
    Error err = ERROR_INIT;
    Plot *plot = plot_new(&err);

    assert_non_null(plot);
    for (; *letters; letters++) {
        PlotSeries *s = plot_add(plot, (char[]){ *letters, 0 }, CURVE_LINE, 2, false);

        assert_non_null(s);
        s->x[1] = s->y[1] = 1;
    }
    return plot;
}

static void free_all(Plot **plots, int count)
{
    for (int k = 0; k < count; k++)
        plot_free(plots[k]);
}

static const PlotSeries *named(const Plot *plot, const char *name)
{
    for (int k = 0; k < plot->count; k++)
        if (!plot->series[k].guide && !strcmp(plot->series[k].name, name))
            return &plot->series[k];
    return NULL;
}

TEST(a_name_has_one_colour_on_a_page)
{
    Plot *plots[] = { plot_of_letters("abcd"), plot_of_letters("ad"), NULL, plot_of_letters("eb"),
                      plot_of_letters("xyz") };

    plots_share_hues(plots, 5);
    for (int k = 0; k < 4; k++)
        assert_int_equal(plots[0]->series[k].hue, k);
    assert_int_equal(named(plots[1], "a")->hue, 0);
    assert_int_equal(named(plots[1], "d")->hue, 3);
    assert_int_equal(named(plots[3], "b")->hue, 1);
    assert_int_equal(named(plots[3], "e")->hue, 4); /* 0 is a's */
    for (int k = 0; k < 3; k++)                      /* shares no name */
        assert_int_equal(plots[4]->series[k].hue, k);
    free_all(plots, 5);
}

TEST(a_line_keeps_the_colour_of_its_curve)
{
    Plot  *plots[] = { plot_of_letters("abc"), plot_of_letters("c") };
    double xy[] = { 0, 1 };

    assert_non_null(plot_line(plots[1], "claimed", 0, xy, xy, 2));
    assert_non_null(plot_line(plots[1], "grey", -1, xy, xy, 2));
    plots_share_hues(plots, 2);
    assert_int_equal(plots[1]->series[0].hue, 2);
    assert_int_equal(plots[1]->series[1].hue, 2);
    assert_int_equal(plots[1]->series[2].hue, -1);
    free_all(plots, 2);
}

static int keys(Plot **plots, int count, PlotKeyEntry *out)
{
    plots_share_hues(plots, count);
    return plots_shared_key((const Plot *const *)plots, count, out);
}

TEST(one_key_names_each_curve_once)
{
    Plot        *plots[] = { plot_of_letters("ac"), plot_of_letters("a"), plot_of_letters("abc") };
    PlotKeyEntry entries[PLOT_SERIES_MOST];

    assert_int_equal(keys(plots, 3, entries), 3);
    assert_string_equal(entries[0].series->name, "a"); /* in the order of colours */
    assert_string_equal(entries[1].series->name, "c");
    assert_string_equal(entries[2].series->name, "b");
    free_all(plots, 3);
}

TEST(a_key_of_its_own_where_names_are_others)
{
    static const char *const pages[][2] = { { "ab", "cd" }, { "abc", "" }, { "a", "a" } };
    PlotKeyEntry             entries[PLOT_SERIES_MOST];

    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        Plot *plots[] = { plot_of_letters(pages[i][0]), plot_of_letters(pages[i][1]) };

        assert_int_equal(keys(plots, 2, entries), 0);
        free_all(plots, 2);
    }
}

TEST(two_signs_of_a_name_need_two_keys)
{
    Plot        *plots[] = { plot_of_letters("ab"), plot_of_letters("ab") };
    PlotKeyEntry entries[PLOT_SERIES_MOST];

    plots[1]->series[1].mark = CURVE_POINTS;
    assert_int_equal(keys(plots, 2, entries), 0);
    free_all(plots, 2);
}

/* ---- on a page -------------------------------------------------------------- */

TEST(a_page_settles_the_colours_of_its_plots)
{
    static const char *const letters[] = { "abc", "cb" };
    Error   err = ERROR_INIT;
    Figure *figure = figure_new(2, &err);
    Scene   scene;

    for (int k = 0; k < 2; k++) {
        Plot *plot = plot_of_letters(letters[k]);

        plot_settle(plot);
        panel_init_plot(&figure->panels[k], plot, "");
    }
    CHECK(scene_make(&scene, figure, (CellCount[2]){ { 4, 4 }, { 4, 4 } }, &err), "%s", err.text);
    assert_int_equal(named(scene.plots[1], "c")->hue, 2);
    assert_int_equal(named(scene.plots[1], "b")->hue, 1);
    scene_free(&scene);
    figure_free(figure);
}

/* One curve of two points over `x`; `y` is the larger value. */
static Plot *plot_over(const char *x, double y)
{
    Plot *plot = plot_of_letters("a");

    snprintf(plot->x.name, sizeof(plot->x.name), "%s", x);
    snprintf(plot->y.name, sizeof(plot->y.name), "sum of weights");
    plot->series[0].y[1] = y;
    plot_settle(plot);
    return plot;
}

/* Draws both side by side; the scene is the caller's. */
static Scene scene_of_two(Figure *figure, Plot *a, Plot *b)
{
    Error err = ERROR_INIT;
    Scene scene;

    panel_init_plot(&figure->panels[0], a, "");
    panel_init_plot(&figure->panels[1], b, "");
    CHECK(scene_make(&scene, figure, (CellCount[2]){ { 4, 4 }, { 4, 4 } }, &err), "%s", err.text);
    return scene;
}

TEST(plots_of_one_quantity_have_one_axis)
{
    static const struct {
        const char *x; /* of the second plot; the first is over columns */
        double      y;
        bool        equal;
    } cases[] = { { "column", 0.8, true },    { "column", 0.01, true }, { "distance", 0.8, true },
                  { "distance", 0.1, false }, { "column", 0, true },    { "distance", 0, false } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Error       err = ERROR_INIT;
        Figure     *figure = figure_new(2, &err);
        Scene       scene = scene_of_two(figure, plot_over("column", 1),
                                         plot_over(cases[i].x, cases[i].y));
        const Plot *a = scene.plots[0], *b = scene.plots[1];
        bool        equal = fabs(a->y.lo - b->y.lo) < 1e-9 && fabs(a->y.hi - b->y.hi) < 1e-9;

        CHECK(equal == cases[i].equal, "%zu: %g %g, %g %g", i, a->y.lo, a->y.hi, b->y.lo, b->y.hi);
        CHECK(fabs(a->y.lo) < 1e-9 && a->y.hi > 1, "%zu: %g to %g", i, a->y.lo, a->y.hi);
        scene_free(&scene);
        figure_free(figure);
    }
}

TEST(plots_get_lower_to_fit_a_page)
{
    static const struct {
        int         plots;
        const char *theme;
        double      least, most; /* inches */
    } cases[] = { { 3, NULL, 6, 8 }, { 4, NULL, 8, FIGURE_PAGE_HIGH }, { 8, NULL, 15, 40 },
                  { 4, "slide", FIGURE_PAGE_HIGH, 40 } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Error      err = ERROR_INIT;
        Figure    *figure = figure_new(cases[i].plots, &err);
        PngOptions options = { .width_inch = 3.25, .dpi = 60, .theme = cases[i].theme };
        double     high;

        figure->cols = 1;
        figure->rows = cases[i].plots;
        for (int k = 0; k < figure->count; k++) {
            Plot *plot = plot_new(&err);

            plot_add(plot, "a", CURVE_LINE, 2, false);
            plot_settle(plot);
            panel_init_plot(&figure->panels[k], plot, "time over n");
        }
        CHECK(figure_height(figure, &options, &high, &err), "%s", err.text);
        CHECK(high > cases[i].least && high <= cases[i].most, "%zu: %.2f", i, high);
        figure_free(figure);
    }
}

/* ---- curves on one line ------------------------------------------------------- */

static void expect_twins(const Plot *plot, int series, int count, int place)
{
    int at, twins = plot_twins(plot, series, &at);

    CHECK(twins == count && at == place, "series %d: %d, at %d", series, twins, at);
}

TEST(curves_on_one_line_take_turns_and_are_named)
{
    Plot   *plot = plot_of_letters("abcd");
    char    caption[PLOT_CAPTION];
    int64_t first;

    plot->series[1].y[1] = 0.5;   /* b is elsewhere */
    plot->series[3].y[1] = 1.001; /* d differs by less than a line's width */
    plot_settle(plot);
    expect_twins(plot, 0, 3, 0);
    expect_twins(plot, 1, 1, 0);
    expect_twins(plot, 2, 3, 1);
    expect_twins(plot, 3, 3, 2);
    assert_int_equal(plot_marks(plot, 2, &first), 3);
    assert_int_equal(first, 1);
    assert_int_equal(plot_marks(plot, 1, &first), 1);
    plot_caption(plot, false, caption, sizeof(caption));
    assert_string_equal(caption, "a, c and d lie on one line");
    snprintf(plot->note, sizeof(plot->note), "by closed form");
    plot_caption(plot, false, caption, sizeof(caption));
    assert_string_equal(caption, "by closed form; a, c and d lie on one line");
    plot_free(plot);
}

TEST(reference_lines_gaps_and_bars_are_no_twins)
{
    Plot *plot = plot_of_letters("abc");

    plot->series[0].guide = true;
    plot->series[2].y[1] = (double)NAN;
    plot_settle(plot);
    for (int k = 0; k < 3; k++)
        expect_twins(plot, k, 1, 0);
    plot_free(plot);
    plot = plot_of_letters("ab");
    plot->series[0].mark = plot->series[1].mark = CURVE_BARS;
    plot_settle(plot);
    expect_twins(plot, 1, 1, 0);
    plot_free(plot);
}

/* Points have no line whose dashes take turns: each series shows all of its marks. */
TEST(the_same_points_all_have_marks)
{
    Plot   *plot = plot_of_letters("ab");
    char    caption[PLOT_CAPTION];
    int64_t first;

    plot->series[0].mark = plot->series[1].mark = CURVE_POINTS;
    plot_settle(plot);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(plot_marks(plot, k, &first), 1);
        assert_int_equal(first, 0);
    }
    plot_caption(plot, false, caption, sizeof(caption));
    assert_string_equal(caption, "a and b have the same points");
    plot_free(plot);
}

SUITE(NULL, NULL)
