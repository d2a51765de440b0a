/* test_draw_plot.c -- plots: ranges, ticks, series of views, characters, pages. */

#include <jansson.h>

#include "check.h"
#include "draw/figure/figure.h"
#include "draw/file/format.h"
#include "draw/page/sheet.h"
#include "draw/text/plot_cells.h"

static Plot *new_plot(void)
{
    Error err = ERROR_INIT;
    Plot *plot = plot_new(&err);

    assert_non_null(plot);
    return plot;
}

static PlotSeries *add(Plot *plot, CurveMark mark, int count, const double *y)
{
    PlotSeries *s = plot_add(plot, "s", mark, count, false);

    assert_non_null(s);
    for (int i = 0; i < count; i++) {
        s->x[i] = i;
        s->y[i] = y[i];
    }
    return s;
}

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

static View curve_view(void *data, DType dtype, int rank, int64_t a, int64_t b,
                       const ViewCurve *curve)
{
    View view = { .name = "numbers", .kind = VIEW_TENSOR, .dtype = dtype, .rank = rank,
                  .shape = { a, b }, .rows = "row", .cols = "column", .curve = curve };

    view.tensor = tensor_of(dtype, rank, view.shape, data);
    return view;
}

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

/* ---- characters ------------------------------------------------------------- */

static void text_of(const Plot *plot, int width, int height, bool utf8, char *out)
{
    PlotCells cells;
    Error     err = ERROR_INIT;

    CHECK(plot_cells(plot, width, height, utf8, &cells, &err), "%s", err.text);
    for (int i = 0; i < cells.width * cells.height; i++) {
        CHECK(utf8 || cells.cells[i].ch < 128, "not ASCII");
        *out++ = cells.cells[i].ch < 128 ? (char)cells.cells[i].ch : '~';
        if ((i + 1) % cells.width == 0)
            *out++ = '\n';
    }
    *out = '\0';
    plot_cells_free(&cells);
}

TEST(ascii_has_letters_ticks_and_names)
{
    Plot *plot = new_plot();
    char  text[4096];

    snprintf(plot->x.name, sizeof(plot->x.name), "layer");
    snprintf(plot->y.name, sizeof(plot->y.name), "error");
    add(plot, CURVE_LINE, 5, (double[]){ 0, 1, 2, 3, 4 });
    add(plot, CURVE_POINTS, 5, (double[]){ 4, 3, NAN, 1, 0 });
    plot_guide(plot, "rank 2", true, 2);
    plot_settle(plot);
    text_of(plot, 40, 16, false, text);
    CHECK(strstr(text, "o s  x s") && strstr(text, "error") && strstr(text, "layer"), "%s", text);
    CHECK(strstr(text, ": rank 2") && strstr(text, "ooo") && strstr(text, "4+"), "%s", text);
    text_of(plot, 40, 16, true, text);
    CHECK(strchr(text, '~'), "%s", text);
    plot_free(plot);
}

TEST(any_size_can_be_drawn)
{
    Plot *plot = new_plot();
    char  text[20000];

    add(plot, CURVE_BARS, 3, (double[]){ 1, 5, 2 });
    add(plot, CURVE_STEPS, 3, (double[]){ 1, 5, 2 });
    plot_settle(plot);
    for (int width = 0; width < 100; width += 7)
        for (int height = 0; height < 40; height += 3) {
            text_of(plot, width, height, true, text);
            text_of(plot, width, height, false, text);
        }
    plot_free(plot);
}

/* Names, values and axis names keep apart, and a number is there whole or not at all. */
TEST(rows_keep_numbers_whole)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_BARS, 2, (double[]){ 0, 1 });
    Error       err = ERROR_INIT;
    char        text[8000];

    assert_true(plot_rows(plot, 2, &err) && plot_label(s));
    snprintf(plot->rows[0], sizeof(plot->rows[0]), "full");
    snprintf(plot->rows[1], sizeof(plot->rows[1]), "performer");
    snprintf(s->labels[0], sizeof(s->labels[0]), "0.0421 ms");
    snprintf(s->labels[1], sizeof(s->labels[1]), "0.1234 ms");
    snprintf(plot->x.name, sizeof(plot->x.name), "a long name (milliseconds)");
    s->x[0] = 0.0421;
    s->x[1] = 0.1234;
    plot_settle(plot);
    for (int width = 12; width < 90; width++) {
        bool there;

        text_of(plot, width, 12, false, text);
        there = strstr(text, "0.0421 ms") != NULL;
        CHECK(there || !strstr(text, "0.04"), "a number is cut:\n%s", text);
        CHECK(!strstr(text, "full0"), "no gap:\n%s", text);
        CHECK(strstr(text, "(milliseconds)") || strstr(text, "~\n") || strstr(text, "~ \n"),
              "the name of the axis ends without a sign:\n%s", text);
        CHECK(there || width < 30, "there is room for the number:\n%s", text);
    }
    plot_free(plot);
}

/* As many letters as curves, though names are cut for it. */
TEST(every_curve_is_in_the_legend)
{
    static const char letters[] = "ox+*#@";
    Plot             *plot = new_plot();
    char              text[8000], name[40];

    for (int k = 0; k < 6; k++) {
        PlotSeries *s = add(plot, CURVE_LINE, 2, (double[]){ 1, 2 });

        snprintf(s->name, sizeof(s->name), "A long name of mechanism %c", 'a' + k);
        s->x[0] = 1;
        s->x[1] = 2;
    }
    plot_settle(plot);
    text_of(plot, 38, 14, true, text);
    for (int k = 0; k < 6; k++) {
        snprintf(name, sizeof(name), "%c A long", letters[k]);
        CHECK(strstr(text, name), "no '%s' in\n%s", name, text);
    }
    plot_free(plot);
}

/* Rows that have no line are counted and named. */
TEST(rows_without_room_are_named)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_BARS, 4, (double[]){ 0, 1, 2, 3 });
    Error       err = ERROR_INIT;
    char        text[8000];

    assert_true(plot_rows(plot, 4, &err));
    for (int r = 0; r < 4; r++) {
        snprintf(plot->rows[r], sizeof(plot->rows[r]), "mechanism%d", r);
        s->x[r] = r + 1;
    }
    snprintf(plot->x.name, sizeof(plot->x.name), "mass");
    plot_settle(plot);
    text_of(plot, 60, 5, false, text);
    CHECK(strstr(text, "2 more: mechanism2, mecha"), "rows are dropped in silence:\n%s", text);
    text_of(plot, 60, 6, false, text);
    CHECK(strstr(text, "1 more: mechanism3"), "%s", text);
    text_of(plot, 60, 12, false, text);
    CHECK(strstr(text, "mechanism3") && !strstr(text, "more"), "%s", text);
    plot_free(plot);
}

/* Words beside points keep a blank from the name of a line. */
TEST(names_of_lines_keep_apart)
{
    char text[8000];

    for (int shift = 0; shift < 40; shift++) {
        Plot       *plot = new_plot();
        PlotSeries *line = add(plot, CURVE_LINE, 2, (double[]){ 10, 10 }), *points;

        line->guide = true;
        snprintf(line->name, sizeof(line->name), "ceiling");
        points = add(plot, CURVE_POINTS, 2, (double[]){ 9, 0 });
        points->x[0] = shift / 40.0;
        assert_true(plot_label(points));
        snprintf(points->labels[0], sizeof(points->labels[0]), "stage");
        plot_settle(plot);
        text_of(plot, 60, 12, false, text);
        CHECK(!strstr(text, "stageceiling") && !strstr(text, "ceilingstage"), "no gap:\n%s", text);
        CHECK(!strstr(text, "stagex") && !strstr(text, "xstage"), "no gap:\n%s", text);
        plot_free(plot);
    }
}

/* The key's entry, and the same number among the points. */
static bool is_numbered(const char *text, int point)
{
    char        entry[40], after[24], before[24];
    const char *key;

    for (int k = 1; k <= 12; k++) {
        snprintf(entry, sizeof(entry), "o%d the name of %c", k, 'a' + point);
        snprintf(after, sizeof(after), "o%d", k);
        snprintf(before, sizeof(before), "%do", k);
        key = strstr(text, entry);
        if (key)
            return strstr(text, after) < key || strstr(text, before);
    }
    return false;
}

/* Names in little room: beside their points, or numbered in a key below. */
TEST(names_without_room_are_numbered)
{
    char text[8000], name[24];
    bool numbered = false;

    for (int width = 48; width < 120; width += 6) {
        Plot       *plot = new_plot();
        PlotSeries *points = add(plot, CURVE_POINTS, 10,
                                 (double[]){ 1, 1, 2, 1, 1, 1, 2, 1, 1, 1 });

        assert_true(plot_label(points));
        for (int i = 0; i < 10; i++)
            snprintf(points->labels[i], sizeof(points->labels[i]), "the name of %c", 'a' + i);
        plot_settle(plot);
        text_of(plot, width, 20, false, text);
        for (int i = 0; i < 10; i++) {
            snprintf(name, sizeof(name), "the name of %c", 'a' + i);
            CHECK(strstr(text, name), "%s is nowhere:\n%s", name, text);
            numbered |= is_numbered(text, i);
        }
        for (int k = 1; k < 10; k++) {
            char number[16];

            snprintf(number, sizeof(number), "o%d the", k);
            if (strstr(text, number))
                CHECK(is_numbered(text, strstr(text, number)[strlen("o1 the name of ")] - 'a'),
                      "%d is on no point:\n%s", k, text);
        }
        plot_free(plot);
    }
    assert_true(numbered);
}

/* Without room for a key either, the field keeps its lines. */
TEST(a_key_leaves_the_points_their_room)
{
    Plot       *plot = new_plot();
    PlotSeries *points = add(plot, CURVE_POINTS, 9, (double[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 });
    char        text[4096];

    assert_true(plot_label(points));
    for (int i = 0; i < 9; i++)
        snprintf(points->labels[i], sizeof(points->labels[i]), "a name that is long %d", i);
    plot_settle(plot);
    text_of(plot, 30, 10, false, text);
    CHECK(strstr(text, "o") && !strstr(text, "o4 a name"), "%s", text);
    plot_free(plot);
}

/* An upright guide does not cut the name of a level one. */
TEST(names_of_guides_stay_whole)
{
    char text[8000];

    for (int at = 0; at <= 40; at++) {
        Plot *plot = new_plot();

        add(plot, CURVE_LINE, 2, (double[]){ 0, 1 })->x[1] = 40;
        plot_guide(plot, "level", false, 6);
        plot_guide(plot, "", true, at);
        plot_guide(plot, "", true, at > 5 ? at - 5 : at);
        plot_settle(plot);
        text_of(plot, 50, 12, false, text);
        CHECK(strstr(text, "level"), "guide at %d:\n%s", at, text);
        plot_free(plot);
    }
}

/* The name of a level guide keeps off a curve that ends on it. */
TEST(names_of_guides_keep_off_curves)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_LINE, 3, (double[]){ 0, 6, 12 });
    char        text[8000];
    const char *name, *line;

    s->x[1] = 37;
    s->x[2] = 40;
    plot_guide(plot, "a level name", false, 6);
    plot_settle(plot);
    text_of(plot, 60, 14, false, text);
    name = strstr(text, " a level name ");
    if (!name)
        name = strstr(text, "-a level name-");
    CHECK(name, "%s", text);
    for (line = name; line > text && line[-1] != '\n';)
        line--;
    CHECK(name - line < 38, "%s", text); /* left of the curve, not over it */
    plot_free(plot);
}

/* Busy points have a sign and a caption, and a stored plot keeps them. */
TEST(busy_points_are_told)
{
    Plot       *plot = new_plot(), *copy;
    PlotSeries *s = add(plot, CURVE_LINE, 3, (double[]){ 1, 5, 9 });
    char        text[8000], caption[PLOT_CAPTION];
    Error       err = ERROR_INIT;
    Text        json = { 0 };
    Json        out = jsonw_to(&json);
    json_t     *stored;

    assert_false(plot_any_busy(plot));
    assert_true(plot_busy(s, 1));
    plot_settle(plot);
    text_of(plot, 50, 12, false, text);
    assert_non_null(strchr(text, '!'));
    plot_caption(plot, false, caption, sizeof(caption));
    CHECK(strstr(caption, "ringed: more threads"), "%s", caption);
    plot_caption(plot, true, caption, sizeof(caption));
    CHECK(strstr(caption, "!: more threads"), "%s", caption);
    copy = plot_copy(plot, &err);
    assert_true(copy && copy->series[0].busy[1] && !copy->series[0].busy[0]);
    plot_free(copy);
    jsonw_open(&out, '{');
    plot_json(plot, &out);
    jsonw_close(&out, '}');
    stored = json_loads(text_str(&json), 0, NULL);
    copy = plot_of_json(stored, &err);
    CHECK(copy && copy->series[0].busy[1] && !copy->series[0].busy[2], "%s", err.text);
    plot_free(copy);
    assert_true(plot_busy(s, 0) && plot_busy(s, 2)); /* all: a sign would tell nothing apart */
    text_of(plot, 50, 12, false, text);
    assert_null(strchr(text, '!'));
    plot_caption(plot, false, caption, sizeof(caption));
    CHECK(strstr(caption, "all points: more threads"), "%s", caption);
    json_decref(stored);
    text_free(&json);
    plot_free(plot);
}

/* ---- figures ---------------------------------------------------------------- */

/* A matrix and a plot beside each other, as text and as a page. */
TEST(matrices_and_plots_stand_in_one_figure)
{
    float       values[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    ViewCurve   curve = { .x = "step", .y = "loss", .series = "a|b|c" };
    View        matrix = curve_view(values, DT_F32, 2, 4, 3, NULL), plot = matrix;
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(3, &err);
    Text        text = { 0 }, bytes = { 0 }, again = { 0 };
    TextOptions options = { .width = 100, .utf8 = true, .colours = 256 };

    assert_non_null(figure);
    plot.curve = &curve;
    panel_init(&figure->panels[0], &matrix, NULL, 0, "matrix");
    panel_init(&figure->panels[1], &plot, NULL, 0, "plot");
    panel_init(&figure->panels[2], &plot, NULL, 0, "both");
    figure->panels[2].overlays[0] = (Overlay){ .view = &plot, .name = "other" };
    figure->panels[2].overlay_count = 1;
    snprintf(figure->panels[2].name, sizeof(figure->panels[2].name), "one");
    CHECK(figure_text(figure, &options, &text, &err), "%s", err.text);
    CHECK(strstr(text_str(&text), "loss") && strstr(text_str(&text), "a 1 to 10"), "%s",
          text_str(&text));
    CHECK(figure_file(figure, FORMAT_PNG_FILE, NULL, &bytes, &err) &&
              figure_file(figure, FORMAT_PNG_FILE, NULL, &again, &err),
          "%s", err.text);
    CHECK(bytes.length == again.length && !memcmp(bytes.data, again.data, bytes.length),
          "the same figure twice");
    figure->panels[1].minus = &plot;
    CHECK(figure_file(figure, FORMAT_PNG_FILE, &(PngOptions){ .dpi = 72, .theme = "dark" }, &again,
                      &err), "%s", err.text);
    text_free(&text);
    text_free(&bytes);
    text_free(&again);
    figure_free(figure);
}

/* The next area of the SVG at `at` as the corners x, y; what is behind it. */
static const char *next_area(const char *at, double corners[4][2])
{
    while ((at = strstr(at, "<path d=\"M")) != NULL) {
        at += strlen("<path d=\"");
        if (sscanf(at, "M%lf %lfL%lf %lfL%lf %lfL%lf %lfZ", &corners[0][0], &corners[0][1],
                   &corners[1][0], &corners[1][1], &corners[2][0], &corners[2][1],
                   &corners[3][0], &corners[3][1]) == 8)
            return at;
    }
    return NULL;
}

/* Between two points it is an area that reaches from one to the other above and below. */
TEST(a_band_is_an_area_between_two_points)
{
    Plot       *plot = new_plot();
    PlotSeries *s = plot_add(plot, "s", CURVE_LINE, 3, true);
    PngOptions  options = { .dpi = 72 };
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(1, &err);
    Text        svg = { 0 };
    double      first[4][2], second[4][2];
    const char *at;

    assert_true(s && figure);
    for (int i = 0; i < 3; i++) {
        s->x[i] = i;
        s->y[i] = 2 + i;
        s->low[i] = s->y[i] - 1;
        s->high[i] = s->y[i] + 1;
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "band");
    CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
    at = next_area(text_str(&svg), first);
    assert_true(at && next_area(at, second));
    assert_true(first[0][0] < first[1][0]);
    assert_true(first[2][0] == first[1][0] && first[3][0] == first[0][0]);
    assert_true(first[0][1] < first[3][1] && first[1][1] < first[2][1]); /* down the page */
    assert_true(second[0][0] == first[1][0] && second[3][1] == first[2][1]);
    assert_true(second[2][0] == second[1][0] && second[1][0] > second[0][0]);
    text_free(&svg);
    figure_free(figure);
}

/* A dashed guide through a point with a word: it is drawn first, and the word frees its paper. */
TEST(words_of_points_stand_on_guides)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_POINTS, 1, (double[]){ 5 });
    PngOptions  options = { .dpi = 72 };
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(1, &err);
    Text        svg = { 0 };
    const char *word, *dash = NULL;

    assert_true(plot_label(s));
    snprintf(s->labels[0], sizeof(s->labels[0]), "word");
    plot_guide(plot, "", true, 0);
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "guides");
    CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
    word = strstr(text_str(&svg), "aria-label=\"word\"");
    for (const char *at = text_str(&svg); (at = strstr(at, "stroke=\"#5a5a5a\"")) != NULL; at++)
        dash = at;
    CHECK(word && dash && dash < word, "%s", text_str(&svg));
    text_free(&svg);
    figure_free(figure);
}

/* Thin lines in ink of the SVG, `along` the x axis or the y axis. */
static int short_ticks(const char *svg, bool along)
{
    double x1, y1, x2, y2;
    int    wide, end = 0, count = 0;

    for (const char *at = svg; (at = strstr(at, "<line ")) != NULL; at++, end = 0)
        if (sscanf(at, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\" stroke-width=\"%d\" "
                       "stroke=\"#141414\"%n", &x1, &y1, &x2, &y2, &wide, &end) == 5 &&
            end && wide == 1)
            count += along ? x1 == x2 && fabs(y2 - y1) < 8 : y1 == y2 && fabs(x2 - x1) < 8;
    return count;
}

TEST(both_axes_have_short_ticks)
{
    for (int log = 0; log < 2; log++) {
        Plot       *plot = new_plot();
        PlotSeries *s = add(plot, CURVE_LINE, 3, (double[]){ 1, 10, 100 });
        PngOptions  options = { .dpi = 300 };
        Error       err = ERROR_INIT;
        Figure     *figure = figure_new(1, &err);
        Text        svg = { 0 };

        memcpy(s->x, (double[]){ 1, 30, 1000 }, 3 * sizeof(double));
        plot->x.log = plot->y.log = log;
        plot_settle(plot);
        panel_init_plot(&figure->panels[0], plot, "decades");
        CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
        for (int along = 0; along < 2; along++) {
            int count = short_ticks(text_str(&svg), along);

            CHECK(log ? count >= (along ? 28 : 19) : !count, "%s axis: %d", along ? "x" : "y",
                  count);
        }
        text_free(&svg);
        figure_free(figure);
    }
}

/* The longest line of this colour in an SVG. */
static double longest_line(const char *svg, Rgb rgb)
{
    char   stroke[32];
    double longest = 0;

    snprintf(stroke, sizeof(stroke), "stroke=\"#%02x%02x%02x\"", rgb.r, rgb.g, rgb.b);
    for (const char *at = svg; (at = strstr(at, "<line ")); at++) {
        double x0, y0, x1, y1;
        size_t length = strcspn(at, ">");

        if (sscanf(at, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\"", &x0, &y0, &x1,
                   &y1) == 4 && memmem(at, length, stroke, strlen(stroke)))
            longest = fmax(longest, hypot(x1 - x0, y1 - y0));
    }
    return longest;
}

/* How far the names of `count` scattered points are led, in lines of words. */
static double farthest_lead(uint32_t state, int count)
{
    Plot       *plot = new_plot();
    PngOptions  options = { .dpi = 72 };
    SheetStyle  style = sheet_style(&options);
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(1, &err);
    Text        svg = { 0 };
    PlotSeries *s = plot_add(plot, "s", CURVE_POINTS, count, false);
    double      most;

    assert_true(figure && s && plot_label(s));
    for (int i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        s->x[i] = state >> 24;
        state = state * 1664525u + 1013904223u;
        s->y[i] = state >> 24;
        snprintf(s->labels[i], sizeof(s->labels[0]), "state %d", i);
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "crowded");
    CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
    most = longest_line(text_str(&svg), plot_colour(0, false)) / style.tick;
    text_free(&svg);
    figure_free(figure);
    return most;
}

/* Among many points the last names would stand far away: they are left out. */
TEST(names_of_points_are_led_over_ten_lines_at_most)
{
    double most = 0;

    for (uint32_t seed = 0; seed < 20; seed++)
        most = fmax(most, farthest_lead(seed, 30 + 2 * (int)seed));
    CHECK(most > 5 && most < 10.01, "%g lines of words", most);
}

/* ---- whole marks -------------------------------------------------------------- */

static bool is_rgb(const uint8_t *at, Rgb rgb)
{
    return at[0] == rgb.r && at[1] == rgb.g && at[2] == rgb.b;
}

/* At least half of the pixel is of this colour, as the edges of a mark are. */
static bool is_mostly(const uint8_t *at, Rgb rgb)
{
    return abs(at[0] - rgb.r) + abs(at[1] - rgb.g) + abs(at[2] - rgb.b) <
           (3 * 255 - rgb.r - rgb.g - rgb.b) / 2;
}

typedef struct Drawn {
    uint8_t *pixels;
    int      width, height;
} Drawn;

/* The box of all pixels of this colour up to `far` pixels away from a place, and their number. */
static Box box_around(const Drawn *d, int x, int y, int far, Rgb rgb, int *count)
{
    int x0 = x + far, x1 = x - far, y0 = y + far, y1 = y - far;

    for (int j = y - far > 0 ? y - far : 0; j < y + far && j < d->height; j++)
        for (int i = x - far > 0 ? x - far : 0; i < x + far && i < d->width; i++) {
            const uint8_t *at = d->pixels + 4 * ((int64_t)j * d->width + i);

            *count += is_mostly(at, rgb);
            if (is_rgb(at, rgb)) {
                x0 = i < x0 ? i : x0;
                x1 = i > x1 ? i : x1;
                y0 = j < y0 ? j : y0;
                y1 = j > y1 ? j : y1;
            }
        }
    return (Box){ x0, y0, x1 - x0 + 1, y1 - y0 + 1 };
}

#define MARK_SHARE 0.85 /* of the pixels of another mark: they begin within pixels */

/* Each mark is as large as the first one, which is in the middle, and no line covers it. */
static void check_marks(const Sheet *sheet, const Drawn *drawn, const PlotSeries *s)
{
    const Plot *plot = sheet->scene.plots[0];
    Box         frame = sheet->layout.panels[0].matrix, middle = { 0 };
    int         far = (int)sheet_points(&sheet->style, 4), all = 0;

    for (int64_t i = 0; i < s->count; i++) {
        int    count = 0;
        double across = plot_place(&plot->x, s->x[i]), up = plot_place(&plot->y, s->y[i]);
        Box    own = box_around(drawn, frame.x + (int)(across * frame.w),
                                frame.y + (int)((1 - up) * frame.h), far,
                                plot_colour(s->hue, false), &count);

        middle = i ? middle : own;
        all = i ? all : count;
        CHECK(count >= MARK_SHARE * all, "point %d: %d of %d pixels", (int)i, count, all);
        CHECK(abs(own.w - middle.w) <= 1 && abs(own.h - middle.h) <= 1 && own.w > far / 2,
              "point %d: %d x %d, not %d x %d", (int)i, own.w, own.h, middle.w, middle.h);
    }
}

/* Marks at the ends of both axes, linear and logarithmic, are whole: 0, 1 or 2 is the mark. */
static void check_corners(int hue, bool log_x, bool log_y)
{
    static const double xs[] = { 10, 1, 100, 1, 100 }, ys[] = { 10, 1, 100, 100, 1 };
    PngOptions          options = { .dpi = 300 };
    Figure             *figure = figure_new(1, NULL);
    Plot               *plot = new_plot();
    PlotSeries         *s = add(plot, CURVE_POINTS, 5, ys);
    Sheet               sheet = { .figure = figure, .style = sheet_style(&options), .width = 1000 };
    Drawn               drawn;

    s->hue = hue;
    memcpy(s->x, xs, sizeof(xs));
    plot->x.log = log_x;
    plot->y.log = log_y;
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "p");
    assert_true(sheet_plan(&sheet, NULL));
    assert_true(sheet_open(&sheet, CANVAS_PIXELS, sheet.layout.width, sheet.layout.height, &options,
                           NULL));
    sheet_draw(&sheet);
    drawn.pixels = canvas_pixels(sheet.canvas, &drawn.width, &drawn.height);
    check_marks(&sheet, &drawn, &sheet.scene.plots[0]->series[0]);
    free(drawn.pixels);
    sheet_free(&sheet);
    figure_free(figure);
}

TEST(marks_at_the_ends_of_axes_are_whole)
{
    for (int k = 0; k < 12; k++)
        check_corners(k / 4, k & 1, k & 2);
}

SUITE(NULL, NULL)
