/* test_draw_plot.c -- a plot's axes and curves: ticks, ranges, the series of views. */

#include "unit/plot_fixture.h"

TEST(points_have_names)
{
    static const char *const names[] = { "16|32|64", "relu|trig|positive" };

    for (int k = 0; k < 2; k++) {
        Plot    *plot = new_plot();
        PlotTick ticks[PLOT_TICKS_MOST];

        add(plot, CURVE_LINE, 3, (double[]){ 1, 2, 3 });
        assert_true(plot_name_points(plot, names[k]));
        plot_settle(plot);
        assert_int_equal(plot->x.words, k == 1);
        assert_int_equal(plot_ticks(&plot->x, 2, ticks), 3);
        assert_string_equal(ticks[1].text, k ? "trig" : "32");
        assert_true(ticks[0].place > 0 && ticks[2].place < 1); /* whole at the ends */
        plot_free(plot);
    }
}

/* ---- ticks ------------------------------------------------------------------ */

static const struct {
    double      lo, hi;
    bool        log, whole;
    const char *name, *ticks;
} axes[] = {
    { 0, 10, false, true, "", "0 2 4 6 8 10" },
    { 1, 8, false, true, "", "2 4 6 8" },
    { 0, 3, false, true, "", "0 1 2 3" },
    { -1, 1, false, false, "", "-1 -0.5 0 0.5 1" },
    { 0, 50000, false, false, "", "0 10k 20k 30k 40k 50k" },
    { -20000, 0, false, false, "", "-20k -15k -10k -5k 0" },
    { 0, 4194304, false, false, "memory (bytes)", "0 1Mi 2Mi 3Mi 4Mi" },
    { 1e-6, 1, true, false, "", "1e-06 0.0001 0.01 1" },
    { 1, 1000, true, false, "", "1 10 100 1000" },
    { 1, 10, true, false, "", "1 2 5 10" },
    { 0.31, 0.32, false, false, "", "0.31 0.312 0.314 0.316 0.318 0.32" },
};

TEST(ticks_are_round_numbers)
{
    for (size_t i = 0; i < sizeof(axes) / sizeof(*axes); i++) {
        PlotAxis axis = { .lo = axes[i].lo, .hi = axes[i].hi, .log = axes[i].log,
                          .whole = axes[i].whole };
        PlotTick ticks[PLOT_TICKS_MOST];
        Text     text = { 0 };
        int      count;

        snprintf(axis.name, sizeof(axis.name), "%s", axes[i].name);
        count = plot_ticks(&axis, 6, ticks);
        for (int k = 0; k < count; k++) {
            text_addf(&text, "%s%s", k ? " " : "", ticks[k].text);
            CHECK(ticks[k].place >= 0 && ticks[k].place <= 1, "axis %zu: place", i);
        }
        CHECK(!strcmp(text_str(&text), axes[i].ticks), "axis %zu: '%s'", i, text_str(&text));
        text_free(&text);
    }
}

/* Points at powers of two have ticks there, however many powers; others have round numbers. */
TEST(powers_of_two_have_their_own_ticks)
{
    static const struct {
        double      first, factor;
        int         count;
        const char *ticks;
        const char *name; /* of the axis */
    } cases[] = {
        { 64, 2, 5, "64 128 256 512 1024", "" },
        { 1024, 2, 8, "1024 4096 16384 65536", "" },
        { 64, 2, 15, "2^6 2^9 2^12 2^15 2^18", "" },
        { 100, 2, 5, "100 200 500 1000", "" },
        { 1, 10, 5, "1 10 100 1k 10k", "" },
        { 1024, 2, 5, "1Ki 2Ki 4Ki 8Ki 16Ki", "cache (bytes)" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Plot    *plot = new_plot();
        PlotTick ticks[PLOT_TICKS_MOST];
        Text     text = { 0 };
        double   y[16];
        int      count;

        for (int k = 0; k < cases[i].count; k++)
            y[k] = 1 + k;
        add(plot, CURVE_LINE, cases[i].count, y);
        for (int k = 0; k < cases[i].count; k++)
            plot->series[0].x[k] = cases[i].first * pow(cases[i].factor, k);
        plot->x.log = true;
        snprintf(plot->x.name, sizeof(plot->x.name), "%s", cases[i].name);
        plot_settle(plot);
        count = plot_ticks(&plot->x, 5, ticks);
        for (int k = 0; k < count; k++)
            text_addf(&text, "%s%s", k ? " " : "", ticks[k].text);
        CHECK(!strcmp(text_str(&text), cases[i].ticks), "axis %zu: '%s'", i, text_str(&text));
        CHECK(plot_place(&plot->x, cases[i].first) > 0.01, "axis %zu: the first mark is cut", i);
        text_free(&text);
        plot_free(plot);
    }
}

/* No curve lies on the frame of a logarithmic axis; a short one has a tick below its curves. */
TEST(the_lowest_curve_keeps_off_the_frame)
{
    Plot    *plot = new_plot();
    PlotTick ticks[PLOT_TICKS_MOST];

    add(plot, CURVE_LINE, 3, (double[]){ 0.68, 0.68, 3.8 });
    plot->y.log = true;
    plot_settle(plot);
    assert_true(plot_place(&plot->y, 0.68) > 0.03);
    assert_true(plot_ticks(&plot->y, 5, ticks) >= 3);
    assert_string_equal(ticks[0].text, "0.5");
    plot_free(plot);
}

/* 300 KiB to 2 MiB begins at 256 KiB, 300 thousand to 2 million at 200 thousand. */
TEST(an_axis_of_bytes_begins_at_a_power_of_two)
{
    static const double lows[] = { 262144, 200000 };

    for (int k = 0; k < 2; k++) {
        Plot *plot = new_plot();

        add(plot, CURVE_LINE, 2, (double[]){ 300000, 2000000 });
        plot->y.log = true;
        snprintf(plot->y.name, sizeof(plot->y.name), "%s", k ? "FLOPs" : "memory (bytes)");
        plot_settle(plot);
        CHECK_NEAR(plot->y.lo, lows[k], 1e-9);
        plot_free(plot);
    }
}

TEST(any_range_has_ticks)
{
    static const double lows[] = { -1e300, -3, 0, 1e-12, 7, 1e9 };
    static const double widths[] = { 1e-9, 0.3, 1, 17, 1e6, 1e300 };

    for (int l = 0; l < 6; l++)
        for (int w = 0; w < 6; w++)
            for (int most = 0; most < 20; most++) {
                PlotAxis axis = { .lo = lows[l], .hi = lows[l] + widths[w] };
                PlotTick ticks[PLOT_TICKS_MOST];
                int      count;

                if (!(axis.hi > axis.lo))
                    continue;
                count = plot_ticks(&axis, most, ticks);
                CHECK(count >= 2 && count <= PLOT_TICKS_MOST, "%g + %g: %d ticks", lows[l],
                      widths[w], count);
            }
}

/* However narrow the field: three labels show that the axis is logarithmic. */
TEST(logarithmic_axes_have_three_ticks)
{
    static const double ratios[] = { 1.3, 2, 3, 8, 90, 1e4, 1e9 };
    static const double lows[] = { 3e-7, 0.012, 1, 7.3, 4096 };

    for (int most = 2; most < 10; most++)
        for (int r = 0; r < 7; r++)
            for (int l = 0; l < 5; l++) {
                PlotAxis axis = { .lo = lows[l], .hi = lows[l] * ratios[r], .log = true };
                PlotTick ticks[PLOT_TICKS_MOST];
                int      count = plot_ticks(&axis, most, ticks);

                CHECK(count >= 3, "%g x %g, %d: %d ticks", lows[l], ratios[r], most, count);
                for (int k = 1; k < count; k++)
                    CHECK(ticks[k].place > ticks[k - 1].place, "%g x %g: order", lows[l],
                          ratios[r]);
            }
}

/* ---- ranges ----------------------------------------------------------------- */

/* Ticks without numbers stand at 1 to 9 of each decade, of logarithmic axes of few decades. */
TEST(decades_have_ticks_without_numbers)
{
    PlotAxis axis = { .lo = 0.5, .hi = 30, .log = true };
    double   places[PLOT_MINOR_MOST];

    assert_int_equal(plot_minor_ticks(&axis, places), 17); /* 0.5..0.9, 1..9, 10, 20, 30 */
    CHECK_NEAR(places[0], 0, 1e-12);
    CHECK_NEAR(places[5], plot_place(&axis, 1), 1e-12);
    CHECK_NEAR(places[16], 1, 1e-12);
    axis.hi = 1e7;
    assert_int_equal(plot_minor_ticks(&axis, places), 0);
    axis = (PlotAxis){ .lo = 0.5, .hi = 30 };
    assert_int_equal(plot_minor_ticks(&axis, places), 0);
    axis = (PlotAxis){ .lo = 64, .hi = 4096, .log = true, .twos = true };
    assert_int_equal(plot_minor_ticks(&axis, places), 0);
}

TEST(ranges_follow_the_data)
{
    Plot *plot = new_plot();

    add(plot, CURVE_LINE, 3, (double[]){ 1, 4, NAN });
    plot_guide(plot, "rank", true, 7);
    plot_guide(plot, "limit", false, 9);
    plot_settle(plot);
    CHECK(plot->x.lo <= 0 && plot->x.hi >= 7 && plot->x.whole, "x");
    CHECK(plot->y.lo <= 0 && plot->y.hi > 9, "y from zero to the guide: %g %g", plot->y.lo,
          plot->y.hi);
    assert_true(isnan(plot_place(&plot->y, NAN)));
    plot_free(plot);
}

TEST(logarithms_need_numbers_above_zero)
{
    Plot *plot = new_plot();

    plot->y.log = true;
    add(plot, CURVE_LINE, 3, (double[]){ 0, -1, 0 });
    plot_settle(plot);
    assert_false(plot->y.log);
    plot_free(plot);
    plot = new_plot();
    plot->y.log = true;
    add(plot, CURVE_LINE, 4, (double[]){ 1, 0, 1e-30, 0.1 });
    plot_settle(plot);
    assert_true(plot->y.log && plot->y.cut);
    CHECK(plot->y.lo > 1e-11 && plot->y.lo < 1e-7, "%g", plot->y.lo);
    assert_true(isnan(plot_place(&plot->y, 0)));
    plot_free(plot);
}

TEST(constant_and_empty_series_have_a_range)
{
    static const double values[] = { 0, 3, -2 };

    for (int k = 0; k < 4; k++) {
        Plot *plot = new_plot();

        add(plot, k % 2 ? CURVE_BARS : CURVE_LINE, k == 3 ? 0 : 1, &values[k % 3]);
        plot_settle(plot);
        CHECK(plot->x.hi > plot->x.lo && plot->y.hi > plot->y.lo, "%d", k);
        plot_free(plot);
    }
}

TEST(zeros_have_no_made_up_axis)
{
    static const double zeros[] = { 0, 0, 0 };
    Plot               *plot = new_plot();
    PlotTick            ticks[PLOT_TICKS_MOST];
    char                text[PLOT_CAPTION];

    add(plot, CURVE_LINE, 3, zeros);
    add(plot, CURVE_LINE, 3, zeros);
    plot_settle(plot);
    assert_int_equal(plot_ticks(&plot->y, 5, ticks), 1);
    assert_string_equal(ticks[0].text, "0");
    CHECK(fabs(ticks[0].place - 0.5) < 1e-9, "off the frame: %g", ticks[0].place);
    plot_caption(plot, false, text, sizeof(text));
    assert_string_equal(text, "all values are 0");
    plot_free(plot);
}

/* ---- views ------------------------------------------------------------------ */

static Plot *plot_of(const View *view)
{
    Plot *plot = new_plot();
    Error err = ERROR_INIT;

    CHECK(plot_add_view(plot, view, NULL, 0, 0, "", &err), "%s", err.text);
    plot_settle(plot);
    return plot;
}

TEST(rows_are_points_and_columns_series)
{
    double    numbers[] = { 1, 10, 2, 20, 3, 1e-300 };
    ViewCurve curve = { .x = "layer", .y = "memory (bytes)", .series = "plain|reversible",
                        .first = 1 };
    View      view = curve_view(numbers, DT_F64, 2, 3, 2, &curve);
    Plot     *plot = plot_of(&view);

    assert_int_equal(plot->count, 2);
    assert_string_equal(plot->series[1].name, "reversible");
    assert_string_equal(plot->x.name, "layer");
    CHECK(plot->series[0].x[2] == 3 && plot->series[1].y[1] == 20, "points");
    CHECK(plot->series[1].y[2] == 1e-300, "doubles stay doubles: %g", plot->series[1].y[2]);
    plot_free(plot);
    curve.by_rows = true;
    plot = plot_of(&view);
    assert_int_equal(plot->count, 3);
    CHECK(plot->series[2].count == 2 && plot->series[2].y[0] == 3, "by rows");
    assert_string_equal(plot->series[2].name, "row 2");
    plot_free(plot);
}

TEST(one_axis_is_a_curve_undeclared)
{
    float     values[] = { 3, 1, 2 };
    View      view = curve_view(values, DT_F32, 1, 3, 0, NULL);
    ViewCurve curve;
    Plot     *plot = plot_of(&view);

    assert_int_equal(plot->series[0].count, 3);
    assert_string_equal(plot->y.name, "numbers");
    plot_free(plot);
    view.kind = VIEW_COUNT;
    assert_true(view_curve(&view, &curve));
    assert_int_equal(curve.mark, CURVE_BARS);
    view = curve_view(values, DT_F32, 2, 3, 1, NULL);
    assert_false(view_curve(&view, &curve));
}

TEST(the_last_step_is_as_wide_as_the_others)
{
    float     values[] = { 3, 1, 2 };
    ViewCurve curve = { .x = "query", .y = "keys", .mark = CURVE_STEPS, .first = 1,
                        .spacing = 0.5 };
    View      view = curve_view(values, DT_F32, 1, 3, 0, &curve);
    Plot     *plot = plot_of(&view);

    assert_int_equal(plot->series[0].count, 4);
    CHECK(plot->series[0].x[3] == 2.5 && plot->series[0].y[3] == 2, "%g, %g",
          plot->series[0].x[3], plot->series[0].y[3]);
    plot_free(plot);
}

TEST(other_views_say_where_points_and_bands_are)
{
    float     mean[] = { 2, 3 }, low[] = { 1, 2 }, high[] = { 4, 5 };
    int32_t   k[] = { 8, 64 };
    ViewCurve curve = { .x = "k", .y = "error", .log_x = true };
    View      view = curve_view(mean, DT_F32, 1, 2, 0, &curve);
    View      lo = curve_view(low, DT_F32, 1, 2, 0, NULL), hi = curve_view(high, DT_F32, 1, 2, 0,
                                                                           NULL);
    View      at = curve_view(k, DT_I32, 1, 2, 0, NULL);
    Plot     *plot;

    view.along = &at;
    view.low = &lo;
    view.high = &hi;
    plot = plot_of(&view);
    CHECK(plot->series[0].x[1] == 64 && plot->x.log, "x from the other view");
    CHECK(plot->series[0].low && plot->series[0].high[1] == 5 && plot->y.hi >= 5, "band");
    plot_free(plot);
}

TEST(bins_keep_the_peaks)
{
    int64_t count = 100000;
    float  *values = calloc((size_t)count, sizeof(*values));
    View    view = curve_view(values, DT_F32, 1, count, 0, NULL);
    Plot   *plot;
    double  most = 0, least = 0;

    assert_non_null(values);
    values[77777] = 5;
    values[12345] = -3;
    plot = plot_of(&view);
    CHECK(plot->series[0].count <= PLOT_POINTS_MOST && plot->binned > 1, "binned");
    for (int64_t i = 0; i < plot->series[0].count; i++) {
        most = fmax(most, plot->series[0].y[i]);
        least = fmin(least, plot->series[0].y[i]);
        CHECK(i == 0 || plot->series[0].x[i] >= plot->series[0].x[i - 1], "in order");
    }
    CHECK(most == 5 && least == -3, "%g %g", least, most);
    plot_free(plot);
    free(values);
}

TEST(too_many_series_are_counted)
{
    float     values[2 * 50] = { 0 };
    ViewCurve curve = { .x = "x", .y = "y" };
    View      view = curve_view(values, DT_F32, 2, 2, 50, &curve);
    Plot     *plot = plot_of(&view);
    char      caption[256];

    assert_int_equal(plot->count, PLOT_SERIES_MOST);
    plot_caption(plot, true, caption, sizeof(caption));
    CHECK(strstr(caption, "18 series more"), "%s", caption);
    plot_free(plot);
}

SUITE(NULL, NULL)
