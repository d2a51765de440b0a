/* test_app_plots.c -- plots of measured numbers: their points, unknown values, figures. */
#include <unistd.h>

#include "app/figure/picture.h"
#include "check.h"
#include "draw/plot/label.h"
#include "draw/text/plot_cells.h"

static Plot *plot_made(PlotKind kind, const PlotSubject *subjects, int count, const Ceilings *c)
{
    Error err = ERROR_INIT;
    Plot *plot = plot_of(kind, subjects, count, c, &err);

    CHECK(plot, "%s: %s", plot_name(kind), err.text);
    return plot;
}

static const PlotSeries *series(const Plot *plot, const char *name)
{
    for (int k = 0; k < plot->count; k++)
        if (!strcmp(plot->series[k].name, name))
            return &plot->series[k];
    fail_msg("no series %s", name);
    return NULL;
}

/* Lines of 80 characters, in ASCII. */
static void draw(const Plot *plot, int height, Text *out)
{
    PlotCells cells;
    Error     err = ERROR_INIT;

    CHECK(plot_cells(plot, 80, height, false, &cells, &err), "%s", err.text);
    for (int y = 0; y < cells.height; y++) {
        for (int x = 0; x < cells.width; x++) {
            char ch = (char)cells.cells[y * cells.width + x].ch;

            text_add_bytes(out, &ch, 1);
        }
        text_add(out, "\n");
    }
    plot_cells_free(&cells);
}

static void expect_text(const Plot *plot, int height, const char *text)
{
    Text out = { 0 };

    draw(plot, height, &out);
    CHECK(strstr(text_str(&out), text), "no '%s' in\n%s", text, text_str(&out));
    text_free(&out);
}

/* ---- bars ------------------------------------------------------------------- */

static Record timed(double median, double low, double high)
{
    return (Record){ .time = { .median = number_of(median), .low = number_of(low),
                               .high = number_of(high), .count = 20 },
                     .arena_peak = number_of(2048), .threads = 2, .when = 1000 };
}

TEST(bars_are_medians_with_their_interval)
{
    Record            a = timed(2, 1.5, 2.25), b = timed(4, 3, 5);
    const PlotSubject subjects[] = { { "a", &a }, { "b", &b } };
    Plot             *plot = plot_made(PLOT_TIME, subjects, 2, NULL);
    const PlotSeries *s = &plot->series[0];

    assert_int_equal(plot->row_count, 2);
    assert_string_equal(plot->rows[1], "b");
    CHECK_NEAR(s->x[0], 2, 0);
    CHECK_NEAR(s->x[1], 4, 0);
    CHECK_NEAR(s->low[0], 1.5, 0);
    CHECK_NEAR(s->high[1], 5, 0);
    assert_true(s->whiskers && plot->x.lo <= 0 && plot->x.hi >= 5);
    assert_non_null(strstr(plot->note, "95 %"));
    assert_non_null(strstr(plot->measured, "2 threads, 1970-01-01 00:16 UTC"));
    expect_text(plot, 10, "2 ms");
    expect_text(plot, 10, "time (ms)");
    plot_free(plot);
}

/* Two threads where 0.9 processors were free: the bar says so, and the caption what it means. */
TEST(bars_of_a_busy_machine_are_told)
{
    Record            a = timed(2, 1.5, 2.25), b = timed(4, 3, 5);
    const PlotSubject subjects[] = { { "a", &a }, { "b", &b } };
    char              caption[PLOT_CAPTION];
    Plot             *plot;

    a.free_processors = number_of(2);
    b.free_processors = number_of(0.9);
    plot = plot_made(PLOT_TIME, subjects, 2, NULL);
    assert_string_equal(plot->series[0].labels[0], "2 ms");
    assert_string_equal(plot->series[0].labels[1], "4 ms, busy");
    plot_caption(plot, false, caption, sizeof(caption));
    assert_non_null(strstr(caption, "busy: more threads than processors were free"));
    plot_free(plot);
    plot = plot_made(PLOT_MEMORY, subjects, 2, NULL); /* which needs no processor */
    assert_false(plot_any_busy(plot));
    plot_free(plot);
}

/* The plot of caches says which sizes its curves have. */
TEST(caches_have_the_sizes_of_the_run)
{
    Record a = { .mechanism = "window", .params = (char *)(uintptr_t)"{\"window\":28}", .n = 512 };
    Record b = { .mechanism = "mla", .notes = (char *)(uintptr_t)"rank=32, a quarter", .n = 512 };
    const PlotSubject subjects[] = { { "Sliding window", &a }, { "Latent", &b },
                                     { "window(window=28)", &a } };
    Plot             *plot;

    for (int x = 0; x < STEP_LENGTHS; x++)
        a.step.held[x] = b.step.held[x] = number_of(1024);
    plot = plot_made(PLOT_CACHE, subjects, 3, NULL);
    assert_string_equal(plot->note, "by closed form; sizes of the run, n = 512, at every length; "
                                    "Sliding window: window 28; Latent: rank 32, a quarter");
    plot_free(plot);
}

TEST(the_unknown_is_no_bar)
{
    Record            a = timed(2, 1.5, 2.5), refused = { .status = RECORD_UNSUPPORTED };
    const PlotSubject subjects[] = { { "a", &a }, { "b", NULL }, { "c", &refused } };
    Plot             *time = plot_made(PLOT_TIME, subjects, 3, NULL);
    Plot             *memory = plot_made(PLOT_MEMORY, subjects, 3, NULL);

    for (int i = 1; i < 3; i++)
        assert_true(isnan(time->series[0].x[i]) && isnan(memory->series[0].x[i]));
    assert_string_equal(time->series[0].labels[1], "not measured");
    assert_string_equal(time->series[0].labels[2], "UNSUPPORTED");
    CHECK_NEAR(memory->series[0].x[0], 2048, 0);
    assert_string_equal(memory->series[0].labels[0], "2.0 KiB");
    assert_true(isnan(series(memory, "heap")->x[0])); /* not known, so not 0 */
    assert_string_equal(series(memory, "heap")->labels[0], "n/a");
    expect_text(time, 10, "UNSUPPORTED");
    plot_free(time);
    plot_free(memory);
}

TEST(reproducible_numbers_carry_no_machine)
{
    Record            a = timed(2, 1, 3);
    const PlotSubject subject = { "a", &a };
    Plot             *plot = plot_made(PLOT_FLOPS, &subject, 1, NULL);

    assert_string_equal(plot->measured, "");
    plot_free(plot);
}

/* ---- seeds ------------------------------------------------------------------ */

TEST(seeds_show_every_draw)
{
    static const double draws[] = { 0.2, 0.5, 0.35 };
    Record              a = { .seeds = { .count = 0 } }, still = { .seeds = { .count = 0 } };
    const PlotSubject   subjects[] = { { "drawn", &a }, { "still", &still }, { "none", NULL } };
    const PlotSeries   *mean, *one;
    Plot               *plot;

    for (int i = 0; i < 3; i++)
        seeds_add(&a.seeds, &(Quality){ .mass_mean = number_of(draws[i]) });
    still.quality.mass_mean = number_of(0.75);
    plot = plot_made(PLOT_MASS_SEEDS, subjects, 3, NULL);
    mean = &plot->series[0];
    one = series(plot, "one draw");
    CHECK_NEAR(mean->x[0], 0.35, 1e-15);
    CHECK_NEAR(mean->low[0], 0.2, 0);
    CHECK_NEAR(mean->high[0], 0.5, 0);
    CHECK_NEAR(mean->x[1], 0.75, 0);
    assert_true(isnan(mean->low[1]) && isnan(mean->x[2]));
    assert_int_equal(one->count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(one->x[i], draws[i], 0);
        CHECK_NEAR(one->y[i], 0, 0);
    }
    expect_text(plot, 12, "0.75, nothing drawn");
    expect_text(plot, 12, "0.350 [0.200, 0.500]");
    plot_free(plot);
    plot = plot_made(PLOT_ERROR_SEEDS, subjects, 3, NULL); /* known of none of them */
    assert_true(isnan(plot->series[0].x[0]) && isnan(plot->series[0].x[1]));
    plot_free(plot);
}

/* ---- memory over time ------------------------------------------------------- */

TEST(memory_has_stages_and_largest)
{
    StageRecord    stages[] = { { .name = "hash" }, { .name = "attend" } };
    MemoryTimeline line = { .step = 1e-3, .count = 4, .arena = { 0, 1024, 4096, 512 },
                            .stage = { -1, 0, 1, 1 }, .largest_count = 1,
                            .largest = { { .bytes = 3072, .stage = 1, .at = 2.5e-3 } } };
    Record         a = { .stages = stages, .stage_count = 2, .timeline = &line, .when = 5 };
    const PlotSubject subject = { "a", &a };
    Plot             *plot = plot_made(PLOT_TIMELINE, &subject, 1, NULL);
    const PlotSeries *own = series(plot, "own memory");

    assert_int_equal(own->count, 5);
    CHECK_NEAR(own->x[4], 4, 1e-12);
    CHECK_NEAR(own->y[2], 4096, 0);
    assert_int_equal(plot->guide_count, 2);
    assert_string_equal(plot->guides[1].name, "attend");
    CHECK_NEAR(plot->guides[1].at, 2, 1e-12);
    CHECK_NEAR(series(plot, "largest allocations")->y[0], 4096, 0);
    assert_string_equal(series(plot, "largest allocations")->labels[0], "3.0 KiB");
    for (int k = 0; k < plot->count; k++) /* the heap is not known */
        assert_string_not_equal(plot->series[k].name, "heap");
    expect_text(plot, 18, "attend");
    plot_free(plot);
}

/* A stage that runs again is named again, after itself too: no line is left for a guess. */
TEST(every_start_of_a_stage_is_named)
{
    StageRecord    stages[] = { { .name = "hash" }, { .name = "attend" }, { .name = "attend" } };
    MemoryTimeline line = { .step = 1e-3, .count = 4, .arena = { 0, 1024, 4096, 512 },
                            .stage = { 0, 1, 1, 2 } };
    Record         a = { .stages = stages, .stage_count = 3, .timeline = &line, .when = 5 };
    const PlotSubject subject = { "a", &a };
    Plot             *plot = plot_made(PLOT_TIMELINE, &subject, 1, NULL);

    assert_int_equal(plot->guide_count, 3);
    assert_string_equal(plot->guides[1].name, "attend");
    assert_string_equal(plot->guides[2].name, "attend");
    plot_free(plot);
}

TEST(several_memories_share_a_plot)
{
    MemoryTimeline quick = { .step = 1e-5, .count = 10 }, slow = { .step = 1e-3, .count = 10 };
    Record         a = { .timeline = &quick }, b = { .timeline = &slow };
    const PlotSubject subjects[] = { { "a", &a }, { "b", &b }, { "c", NULL } };
    Error             err = ERROR_INIT;
    Plot             *plot = plot_made(PLOT_TIMELINE, subjects, 3, NULL);

    assert_int_equal(plot->count, 2); /* 100 times apart: shares of each run */
    CHECK_NEAR(plot->series[0].x[10], 100, 1e-9);
    CHECK_NEAR(plot->series[1].x[10], 100, 1e-9);
    assert_non_null(strstr(plot->x.name, "share"));
    assert_non_null(strstr(plot->note, "c: not measured"));
    plot_free(plot);
    assert_null(plot_of(PLOT_TIMELINE, &subjects[2], 1, NULL, &err));
    assert_non_null(strstr(err.text, "not measured"));
}

/* ---- roofline --------------------------------------------------------------- */

TEST(stages_stand_under_the_roofs)
{
    const Ceilings c = { .peak = 1e11, .gemm = 5e10, .stream = 1e10 };
    StageRecord    stages[] = {
        { .name = "hash", .time_ms = number_of(1), .flops = { .mix = 2e6 },
          .bytes = { .read = 5e5, .written = 5e5 } },
        { .name = "sort", .time_ms = number_of(1) },
        { .name = "attend", .iteration = 0, .time_ms = number_of(2), .flops = { .mix = 4e7 },
          .bytes = { .read = 1e6 } },
        { .name = "attend", .iteration = 1, .time_ms = number_of(2), .flops = { .mix = 4e7 },
          .bytes = { .read = 1e6 } },
    };
    Record            a = { .stages = stages, .stage_count = 4 };
    const PlotSubject subject = { "a", &a };
    Plot             *plot = plot_made(PLOT_ROOFLINE, &subject, 1, &c);
    const PlotSeries *s = series(plot, "a"), *roof = series(plot, "memory 10 GB/s");
    Error             err = ERROR_INIT;

    assert_int_equal(s->count, 3);
    CHECK_NEAR(s->x[0], 2, 1e-12);
    CHECK_NEAR(s->y[0], 2e9, 1e-12);
    CHECK_NEAR(s->x[1], 40, 1e-12);
    CHECK_NEAR(s->y[1], 2e10, 1e-12);
    assert_string_equal(s->labels[1], "attend, 2 times");
    assert_string_equal(s->labels[2], ""); /* of the same name */
    assert_non_null(strstr(plot->note, "1 stage without"));
    CHECK_NEAR(roof->y[0] / roof->x[0], 1e10, 1e-9);
    CHECK_NEAR(roof->x[1], 10, 1e-12);
    CHECK_NEAR(series(plot, "sgemm 50 GFLOP/s")->y[1], 5e10, 0);
    CHECK_NEAR(series(plot, "multiply-add 100 GFLOP/s")->y[0], 1e11, 0);
    assert_true(plot->x.log && plot->y.log && plot_named(plot) == 1);
    expect_text(plot, 20, "hash");
    expect_text(plot, 20, "memory 10 GB/s");
    plot_free(plot);
    assert_null(plot_of(PLOT_ROOFLINE, &subject, 1, NULL, &err));
    assert_non_null(strstr(err.text, "ceilings"));
}

/* A stage cannot be faster than the processor, so its speed was measured too low. */
TEST(a_roof_that_is_too_low_is_told)
{
    Ceilings          c = { .peak = 1e11, .gemm = 5e10, .stream = 1e10 };
    StageRecord       stage = { .name = "attend", .time_ms = number_of(1), .flops = { .mix = 9e7 },
                                .bytes = { .read = 1e6 } };
    Record            a = { .stages = &stage, .stage_count = 1 };
    const PlotSubject subject = { "a", &a };
    Plot             *plot = plot_made(PLOT_ROOFLINE, &subject, 1, &c);

    assert_false(roof_any_exceeded(&a, &c));
    assert_null(strstr(plot->note, "busy"));
    plot_free(plot);
    c.peak = 8e10;
    assert_true(roof_any_exceeded(&a, &c));
    plot = plot_made(PLOT_ROOFLINE, &subject, 1, &c);
    assert_non_null(strstr(plot->note, "measured on a busy machine"));
    plot_free(plot);
    c.peak = NAN;
    assert_false(roof_any_exceeded(&a, &c));
}

/* ---- scaling ---------------------------------------------------------------- */

TEST(claims_are_slopes_through_the_last_point)
{
    static const double n[] = { 100, 200, 400 }, cost[] = { 1, 3.9, 16 }, flat[] = { 1, NAN, NAN };
    const ScalingCurve curves[] = {
        { .name = "square", .n = n, .cost = cost, .count = 3, .claim = 2 },
        { .name = "one", .n = n, .cost = flat, .count = 3, .claim = 1 },
        { .name = "free", .n = n, .cost = cost, .count = 3, .claim = NAN },
    };
    Error             err = ERROR_INIT;
    Plot             *plot = plot_of_scaling(curves, 3, "time (ms)", "here", &err);
    const PlotSeries *guide;

    CHECK(plot, "%s", err.text);
    assert_int_equal(plot->count, 4); /* one point has no slope, nor has what claims none */
    assert_string_equal(plot->series[0].name, "square, n^2"); /* the key says the claim */
    guide = series(plot, "");
    assert_true(guide->guide && guide->hue == 0);
    CHECK_NEAR(guide->x[0], 100, 0);
    CHECK_NEAR(guide->y[0], 1, 1e-12);
    CHECK_NEAR(guide->y[1], 16, 0);
    assert_true(isnan(series(plot, "one")->y[1]));
    expect_text(plot, 20, "n^2");
    plot_free(plot);
}

/* ---- any size ---------------------------------------------------------------- */

static void draw_at_all_sizes(const Plot *plot)
{
    PlotCells cells;
    Error     err = ERROR_INIT;

    for (int width = 0; width < 70; width += 3)
        for (int height = 0; height < 24; height++)
            for (int utf8 = 0; utf8 < 2; utf8++) {
                CHECK(plot_cells(plot, width, height, utf8, &cells, &err), "%s", err.text);
                plot_cells_free(&cells);
            }
}

/* The figure owns the plot. */
static void draw_on_pages(Plot *plot)
{
    Error   err = ERROR_INIT;
    Figure *figure = figure_new(1, &err);

    assert_non_null(figure);
    panel_init_plot(&figure->panels[0], plot, "a plot");
    for (int k = 0; k < 4; k++) {
        const PngOptions png = { .dpi = 60 + 40 * k, .width_inch = 1.5 + k,
                                 .theme = k % 2 ? "dark" : "light" };
        Text             bytes = { 0 };

        CHECK(figure_file(figure, FORMAT_PNG_FILE, &png, &bytes, &err), "%s", err.text);
        text_free(&bytes);
    }
    figure_free(figure);
}

TEST(any_size_can_be_drawn)
{
    const Ceilings c = { .peak = NAN, .gemm = 5e10, .stream = 1e10 };
    StageRecord    stages[] = { { .name = "a stage with quite a long name", .iteration = -1,
                                  .time_ms = number_of(1), .flops = { .mix = 2e6 },
                                  .bytes = { .read = 1e6 } } };
    MemoryTimeline line = { .step = 1e-3, .count = 3, .arena = { 0, 1024, 4096 },
                            .largest_count = 1, .largest = { { .bytes = 3072, .at = 9 } } };
    DeviceKernelRow kernel = { .name = "a_kernel_with_quite_a_long_name<64,128,false>",
                               .launches = 3, .total_ms = 2 };
    DeviceSpan      spans[] = { { 0, 0, 1, 2 }, { 0, -1, 3, 9 } };
    DeviceProfile   gpu = { .name = "a GPU", .kernels = &kernel, .kernel_count = 1, .spans = spans,
                            .span_count = 2, .launches = 3, .busy_ms = number_of(2) };
    Record a = { .stages = stages, .stage_count = 1, .timeline = &line, .gpu = &gpu,
                 .step = { .asked = true, .held = { number_of(1024), number_of(2048) } },
                 .time = { .median = number_of(2), .low = number_of(1), .high = number_of(3) } };
    const PlotSubject subjects[] = { { "a mechanism(of=a,very=long,name=indeed)", &a },
                                     { "b", &a }, { "c", NULL } };

    for (int k = 0; k < PLOT_KINDS; k++) {
        Plot *plot = plot_made((PlotKind)k, subjects, 3, &c);

        draw_at_all_sizes(plot);
        draw_on_pages(plot);
    }
}

/* ---- words ------------------------------------------------------------------ */

TEST(names_of_plots_are_read)
{
    Error    err = ERROR_INIT;
    PlotKind kind;
    Request  request = REQUEST_INIT;

    for (int k = 0; k < PLOT_KINDS; k++) {
        char word[64];

        snprintf(word, sizeof(word), "plot(%s)", plot_name((PlotKind)k));
        assert_true(plot_word(word, &kind, &err));
        assert_int_equal(kind, k);
    }
    assert_false(plot_word("weights", &kind, &err));
    assert_false(plot_word(NULL, &kind, &err));
    assert_int_equal(err.code, ERR_NONE);
    assert_true(plot_word("plot(tine)", &kind, &err)); /* has the form, names none */
    assert_int_equal(kind, PLOT_KINDS);
    assert_non_null(strstr(err.text, "timeline"));
    assert_true(request_for_plot(&request, "plot(mass-seeds)", &err));
    assert_true(request.quality && request.seeds >= 2 && !request.measure);
    assert_false(request_for_plot(&request, "weights", &err));
}

TEST(words_do_not_cover_each_other)
{
    LabelPlaces places = { .frame = { 0, 0, 40, 10 } };
    LabelBox    boxes[8];

    label_take_line(&places, 0, 5.5, 40, 5.5);
    for (int i = 0; i < 6; i++)
        assert_true(label_place(&places, 20.5, 5.5, 1, 0.5, 6, 1, &boxes[i]));
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < i; k++)
            assert_true(boxes[i].x >= boxes[k].x + 6 || boxes[k].x >= boxes[i].x + 6 ||
                        boxes[i].y >= boxes[k].y + 1 || boxes[k].y >= boxes[i].y + 1);
    assert_true(boxes[0].y + 1 <= 5.5 || boxes[0].y >= 5.5); /* not across the line */
    assert_false(label_place(&places, 20, 5, 1, 0.5, 41, 1, &boxes[6]));
}

/* A word moves further out before it crosses a curve, and crosses a guide before a curve. */
TEST(words_cross_guides_before_curves)
{
    LabelPlaces clear = { .frame = { 0, 0, 40, 20 } }, full;
    LabelBox    box;

    label_take_guide(&clear, 24, 0, 24, 20);
    full = clear;
    label_take_line(&clear, 0, 20, 40, 20);
    assert_true(label_place(&clear, 20, 10, 1, 0.5, 6, 1, &box));
    assert_true(box.x + box.w <= 24); /* the usual place, at the right, is across the guide */
    for (int k = 0; k < 8; k++) /* curves, too close for words between them */
        label_take_line(&full, 0, 8.5 + 0.8 * k, 40, 8.5 + 0.8 * k);
    label_take(&full, (LabelBox){ 0, 0, 40, 8.5 });
    assert_true(label_place(&full, 20, 10, 1, 0.5, 6, 1, &box));
    assert_true(box.y >= 8.5 + 0.8 * 7);
}

static bool in_place(const void *context, double x, double y, double *at_x, double *at_y)
{
    (void)context;
    *at_x = x;
    *at_y = y;
    return true;
}

/* A curve of many points is kept as clear of words as one of few, also at its steepest part. */
TEST(words_avoid_long_curves)
{
    LabelPlaces places = { .frame = { 0, 0, 40, 10 } };
    Plot       *plot = plot_new(NULL);
    PlotSeries *s = plot_add(plot, "a slope", CURVE_LINE, 64, false);

    for (int i = 0; i < 64; i++) {
        s->x[i] = i * 40.0 / 63;
        s->y[i] = i < 32 ? 1 : 9;
    }
    label_take_plot(&(LabelDevice){ .plot = plot, .places = &places, .point = in_place });
    assert_false(label_fits(&places, (LabelBox){ 5, 0.5, 6, 1 }, true));
    assert_false(label_fits(&places, (LabelBox){ 17, 4.5, 6, 1 }, true));
    assert_false(label_fits(&places, (LabelBox){ 30, 8.5, 6, 1 }, true));
    assert_true(label_fits(&places, (LabelBox){ 21, 4.5, 6, 1 }, true));
    assert_true(label_fits(&places, (LabelBox){ 5, 0.5, 6, 1 }, false)); /* if need be */
    plot_free(plot);
}

/* The marks on a curve are wider than its line: words keep off them as well. */
TEST(words_avoid_marks)
{
    LabelPlaces places = { .frame = { 0, 0, 40, 20 } };
    Plot       *plot = plot_new(NULL);
    PlotSeries *s = plot_add(plot, "level", CURVE_LINE, 3, false);

    for (int i = 0; i < 3; i++) {
        s->x[i] = 20.0 * i;
        s->y[i] = 10;
    }
    label_take_plot(&(LabelDevice){ .plot = plot, .places = &places, .mark = 4,
                                    .point = in_place });
    assert_false(label_fits(&places, (LabelBox){ 17, 7, 6, 2 }, true)); /* on the second mark */
    assert_true(label_fits(&places, (LabelBox){ 17, 7, 6, 2 }, false)); /* if need be */
    assert_true(label_fits(&places, (LabelBox){ 7, 7, 6, 2 }, true)); /* between two */
    plot_free(plot);
}

/* ---- figures ---------------------------------------------------------------- */

static char *numbers_of(const char *path, const char *key)
{
    Error err = ERROR_INIT;

    return figure_png_metadata(path, key, &err);
}

TEST(figures_carry_their_numbers)
{
    char        path[] = "/tmp/plotsXXXXXX.png", *numbers;
    const char *words[] = { "figure", "full:plot(time) + window:plot(time)", "window",
                            "full:plot(error-seeds) + bigbird:plot(error-seeds)", "-n", "32", "-d",
                            "8", "--seeds", "3", "-o", path };
    Error       err = ERROR_INIT;
    Session    *s = session_new(&err);
    Text        out = { 0 };

    close(mkstemps(path, 4));
    CHECK(command_run(s, words, 12, READER_FILE, 80, &out, &err), "%s", err.text);
    numbers = numbers_of(path, NUMBERS_KEY);
    assert_non_null(numbers);
    assert_non_null(strstr(numbers, "\"rows\":[\"Full attention\",\"Sliding window\"]"));
    assert_non_null(strstr(numbers, "\"environment\":{\"cpu\":"));
    assert_non_null(strstr(numbers, " UTC\""));
    assert_non_null(strstr(numbers, "one draw"));
    free(numbers);
    text_free(&out);
    session_free(s);
    remove(path);
}

static void refused(const char *word, const char *why)
{
    const char *words[] = { "figure", word, "-n", "16", "-d", "4" };
    Error       err = ERROR_INIT;
    Session    *s = session_new(&err);
    Text        out = { 0 };

    CHECK(!command_run(s, words, 6, READER_FILE, 80, &out, &err), "%s", word);
    CHECK(strstr(err.text, why), "%s: %s", word, err.text);
    text_free(&out);
    session_free(s);
}

TEST(what_makes_no_plot_is_refused)
{
    refused("full:plot(tim)", "there are: time");
    refused("full:plot(time) - window:plot(time)", "no difference");
    refused("full:plot(time) + full:weights", "do not share a plot");
    refused("full:spectrum + full:plot(flops)", "no curve");
    refused("full > window:plot(time)", "single mechanisms");
}

/* A point above what the machine can do says that its ceilings were measured badly. */
TEST(a_point_above_its_roof_is_noticed)
{
    RoofPoint p = { .rate = number_of(120), .roof = number_of(100) };

    assert_true(roof_is_exceeded(&p));
    p.rate = number_of(105);
    assert_false(roof_is_exceeded(&p));
    p.roof = NUMBER_NONE;
    assert_false(roof_is_exceeded(&p));
}

SUITE(NULL, NULL)
