/* test_app_plots_gpu.c -- plots of what a GPU did, from records: kernels, roofline, memory. */

#include "app/figure/plots.h"
#include "check.h"
#include "draw/text/plot_cells.h"

/* Everything a record of a run on a GPU holds, on the stack. */
typedef struct Sample {
    StageRecord     stages[3];
    DeviceStage     device_stages[3];
    DeviceKernelRow kernels[2];
    DeviceSpan      spans[3];
    MemoryTimeline  line;
    DeviceProfile   gpu;
    Record          record;
} Sample;

static void fill(Sample *s)
{
    StageRecord stage = { .name = "attend", .iteration = -1, .time_ms = number_of(9),
                          .flops = { .mix = 4e6 }, .bytes = { .read = 1e6 } };

    *s = (Sample){ .stages = { stage, stage, stage } };
    snprintf(s->stages[0].name, sizeof(s->stages[0].name), "hash");
    s->kernels[0] = (DeviceKernelRow){ .name = "tiles<64>", .stage = 1, .launches = 2,
                                       .total_ms = 3, .grid = { 4, 2, 1 }, .block = { 32, 8, 1 },
                                       .registers = 40, .shared = 2048, .local = 0 };
    s->kernels[1] = (DeviceKernelRow){ .name = "hash", .stage = 0, .launches = 1, .total_ms = 1,
                                       .grid = { 1, 1, 1 }, .block = { 64, 1, 1 },
                                       .registers = -1, .local = -1 };
    s->spans[0] = (DeviceSpan){ 1, 0, 10, 11 };
    s->spans[1] = (DeviceSpan){ 0, 1, 12, 13 };
    s->spans[2] = (DeviceSpan){ 0, 2, 14, 16 };
    s->gpu = (DeviceProfile){ .name = "GPU", .source = "CUPTI 13.0", .span_ms = number_of(6),
                              .busy_ms = number_of(4), .copy_ms = number_of(0),
                              .stages = s->device_stages, .stage_count = 3,
                              .kernels = s->kernels, .kernel_count = 2, .spans = s->spans,
                              .span_count = 3, .launches = 3 };
    for (int i = 0; i < 3; i++)
        s->device_stages[i] = (DeviceStage){ .span_ms = number_of(2), .busy_ms = number_of(1) };
    s->line = (MemoryTimeline){ .step = 1e-3, .count = 3, .arena = { 0, 1024, 4096 },
                                .device = { 0, 65536, 65536 }, .on_device = true };
    s->record = (Record){ .stages = s->stages, .stage_count = 3, .gpu = &s->gpu,
                          .timeline = &s->line, .when = 1, .device = "cuda" };
}

/* The same run on the CPU. */
static void fill_host(Sample *s)
{
    fill(s);
    s->record.gpu = NULL;
    snprintf(s->record.device, sizeof(s->record.device), "cpu");
}

static Plot *made(PlotKind kind, const Record *record, const Ceilings *c)
{
    const PlotSubject subject = { "a", record };
    Error             err = ERROR_INIT;
    Plot             *plot = plot_of(kind, &subject, 1, c, &err);

    CHECK(plot, "%s: %s", plot_name(kind), err.text);
    return plot;
}

static void expect_text(const Plot *plot, int height, const char *text)
{
    PlotCells cells;
    Error     err = ERROR_INIT;
    Text      out = { 0 };

    CHECK(plot_cells(plot, 80, height, false, &cells, &err), "%s", err.text);
    for (int y = 0; y < cells.height; y++) {
        for (int x = 0; x < cells.width; x++) {
            char ch = (char)cells.cells[y * cells.width + x].ch;

            text_add_bytes(&out, &ch, 1);
        }
        text_add(&out, "\n");
    }
    plot_cells_free(&cells);
    CHECK(strstr(text_str(&out), text), "no '%s' in\n%s", text, text_str(&out));
    text_free(&out);
}

TEST(kernels_stand_in_their_stage_at_their_time)
{
    Sample s;
    Plot  *plot;

    fill(&s);
    plot = made(PLOT_DEVICE, &s.record, NULL);
    assert_int_equal(plot->row_count, 2); /* both iterations share one */
    assert_string_equal(plot->rows[0], "hash");
    assert_string_equal(plot->rows[1], "attend");
    assert_int_equal(plot->count, 2);
    assert_string_equal(plot->series[0].name, "tiles<64>");
    assert_int_equal(plot->series[0].count, 2);
    CHECK_NEAR(plot->series[0].low[1], 4, 1e-12);
    CHECK_NEAR(plot->series[0].high[1], 6, 1e-12);
    CHECK_NEAR(plot->series[0].y[1], 1, 0);
    CHECK_NEAR(plot->series[1].low[0], 0, 1e-12);
    assert_non_null(strstr(plot->note, "busy 67 %"));
    assert_non_null(strstr(plot->measured, "GPU, "));
    expect_text(plot, 12, "hash");
    expect_text(plot, 12, "oooo");
    expect_text(plot, 12, "xxxx");
    plot_free(plot);
}

TEST(kernels_are_bars_with_shape_and_memory)
{
    Sample s;
    Plot  *plot;

    fill(&s);
    plot = made(PLOT_KERNELS, &s.record, NULL);
    assert_int_equal(plot->row_count, 2);
    assert_string_equal(plot->rows[0], "attend: tiles<64>");
    CHECK_NEAR(plot->series[0].x[0], 3, 0);
    assert_string_equal(plot->series[0].labels[0], "3 ms, 2x 4x2 of 256, 2.0 KiB");
    expect_text(plot, 12, "attend: tiles<64>");
    plot_free(plot);
}

/* Each under its own name, the one without kernels too. */
TEST(a_run_without_kernels_keeps_its_place)
{
    Error       err = ERROR_INIT;
    Sample      s, host;
    PlotSubject subjects[] = { { "on the host", &host.record }, { "a", &s.record } };
    Plot       *plot;

    fill(&s);
    fill_host(&host);
    plot = plot_of(PLOT_KERNELS, subjects, 2, NULL, &err);
    CHECK(plot, "%s", err.text);
    assert_int_equal(plot->row_count, 4);
    assert_string_equal(plot->rows[0], "on the host");
    assert_string_equal(plot->series[0].labels[0], "run on the CPU");
    assert_string_equal(plot->rows[1], "a");
    assert_string_equal(plot->series[0].labels[1], "3 launches, 4 ms");
    assert_string_equal(plot->rows[2], "attend: tiles<64>");
    plot_free(plot);
    plot = plot_of(PLOT_DEVICE, subjects, 2, NULL, &err);
    CHECK(plot, "%s", err.text);
    assert_string_equal(plot->rows[0], "on the host: run on the CPU");
    assert_string_equal(plot->rows[1], "a: hash");
    plot_free(plot);
}

TEST(copies_stand_among_the_kernels)
{
    DeviceSpan copies[] = { { DEVICE_COPY_TO_DEVICE, -1, 1, 2 },   /* before the run's own */
                            { DEVICE_PAGES_TO_DEVICE, 0, 8, 10 },  /* the stage waits for it */
                            { DEVICE_PAGES_TO_HOST, 2, 13, 14 } };
    Sample     s;
    Plot      *plot;

    fill(&s);
    s.gpu.copy_spans = copies;
    s.gpu.copy_span_count = 3;
    plot = made(PLOT_DEVICE, &s.record, NULL);
    assert_int_equal(plot->count, 3);
    assert_string_equal(plot->series[2].name, "copies");
    assert_int_equal(plot->series[2].count, 2);
    CHECK_NEAR(plot->series[2].low[0], 0, 1e-12);
    CHECK_NEAR(plot->series[2].y[1], 1, 0);
    CHECK_NEAR(plot->series[1].low[0], 2, 1e-12); /* the first kernel */
    assert_string_equal(plot->x.name, "time since the first launch or copy (ms)");
    plot_free(plot);
}

TEST(every_series_is_named_above_the_rows)
{
    static const char *const names[] = { "first_pass_of_rows", "gemm_tiles<float, float>",
                                         "second_pass_of_rows" };
    DeviceKernelRow kernels[3];
    Sample          s;
    Plot           *plot;

    fill(&s);
    for (int k = 0; k < 3; k++) {
        kernels[k] = s.kernels[0];
        snprintf(kernels[k].name, sizeof(kernels[k].name), "%s_with_a_long_name", names[k]);
        s.spans[k].row = k;
    }
    s.gpu.kernels = kernels;
    s.gpu.kernel_count = 3;
    plot = made(PLOT_DEVICE, &s.record, NULL);
    for (int k = 0; k < 3; k++)
        expect_text(plot, plot_cells_lines(plot, 80), names[k]);
    plot_free(plot);
}

TEST(peaks_of_host_and_device_are_bars)
{
    Sample s;
    Plot  *plot;

    fill(&s);
    s.record.arena_peak = number_of(4096);
    s.record.device_peak = number_of(65536);
    plot = made(PLOT_MEMORY, &s.record, NULL);
    assert_int_equal(plot->count, 3);
    assert_string_equal(plot->series[2].name, "GPU memory");
    CHECK_NEAR(plot->series[2].x[0], 65536, 0);
    assert_true(isnan(plot->series[1].x[0])); /* not measured is no bar of 0 */
    assert_string_equal(plot->series[1].labels[0], "n/a");
    plot_free(plot);
}

TEST(what_was_not_recorded_is_said)
{
    Sample      s;
    Error       err = ERROR_INIT;
    PlotSubject subject = { "a", &s.record };

    fill(&s);
    s.gpu.kernel_count = s.gpu.span_count = 0;
    s.gpu.busy_ms = NUMBER_NONE;
    snprintf(s.gpu.lacks[TIER_ACTIVITY], sizeof(s.gpu.lacks[0]), "no permission");
    assert_null(plot_of(PLOT_DEVICE, &subject, 1, NULL, &err));
    assert_non_null(strstr(err.text, "no activity records: no permission"));
    s.gpu.busy_ms = number_of(0);
    err = (Error)ERROR_INIT;
    assert_null(plot_of(PLOT_KERNELS, &subject, 1, NULL, &err));
    assert_non_null(strstr(err.text, "nothing was launched"));
    s.record.gpu = NULL;
    err = (Error)ERROR_INIT;
    assert_null(plot_of(PLOT_DEVICE, &subject, 1, NULL, &err));
    assert_non_null(strstr(err.text, "--device cuda"));
}

TEST(the_best_tier_places_a_stage_under_the_roof)
{
    const Ceilings c = { .peak = 6e13, .tensor = 9e14, .gemm = 5e13, .stream = 4e12 };
    Sample         s;
    RoofPoint      p;
    Plot          *plot;

    fill(&s);
    p = roof_point(&s.record, 0, &c); /* counted, by the time of its kernels */
    CHECK_NEAR(p.intensity.value, 4, 1e-12);
    CHECK_NEAR(p.rate.value, 4e9, 1e-12);
    CHECK_NEAR(p.roof.value, 1.6e13, 1e-12);
    s.device_stages[0].busy_ms = NUMBER_NONE;
    CHECK_NEAR(roof_point(&s.record, 0, &c).rate.value, 2e9, 1e-12);
    s.device_stages[0].busy_ms = number_of(0); /* too short for the clock */
    CHECK_NEAR(roof_point(&s.record, 0, &c).rate.value, 2e9, 1e-12);
    s.device_stages[0].counted = (DeviceCounted){ .flops = number_of(8e6),
                                                  .dram_read = number_of(3e6),
                                                  .dram_written = number_of(1e6) };
    s.gpu.counted = s.device_stages[0].counted;
    p = roof_point(&s.record, 0, &c);
    CHECK_NEAR(p.intensity.value, 2, 1e-12);
    CHECK_NEAR(p.rate.value, 4e9, 1e-12);
    assert_non_null(strstr(roof_point_source(&s.record), "[counters]"));
    snprintf(s.record.computed, sizeof(s.record.computed), "bf16"); /* who counts its products? */
    CHECK_NEAR(roof_point(&s.record, 0, &c).intensity.value, 4, 1e-12);
    assert_non_null(strstr(roof_point_source(&s.record), "counted FLOPs"));
    s.gpu.counted.tensor = number_of(4e6);
    CHECK_NEAR(roof_point(&s.record, 0, &c).intensity.value, 2, 1e-12);
    plot = made(PLOT_ROOFLINE, &s.record, &c);
    assert_non_null(strstr(plot->note, "of GPU, measured; FLOPs and DRAM bytes [counters]"));
    expect_text(plot, 20, "matrix products");
    expect_text(plot, 20, "tensor cores");
    plot_free(plot);
}

/* The whole adds FLOPs, bytes and times; a stage without FLOPs adds its bytes. */
TEST(a_bound_is_the_larger_of_arithmetic_and_traffic)
{
    Ceilings  c = { .peak = 1e9, .tensor = 1e9, .gemm = 1e9, .stream = 1e9 };
    Sample    s;
    RoofPoint p;

    fill_host(&s);
    p = roof_point(&s.record, 0, &c); /* 4e6 FLOPs, 1e6 bytes, 9 ms */
    CHECK_NEAR(p.bound_ms.value, 4, 1e-12);
    CHECK_NEAR(p.of_bound.value, 4.0 / 9, 1e-12);
    c.stream = 1e8;
    CHECK_NEAR(roof_point(&s.record, 0, &c).bound_ms.value, 10, 1e-12);
    s.stages[1].flops = (Flops){ 0 };
    p = roof_point(&s.record, 1, &c);
    assert_false(p.roof.valid);
    CHECK_NEAR(p.bound_ms.value, 10, 1e-12);
    s.stages[1].bytes = (Bytes){ 0 };
    assert_false(roof_point(&s.record, 1, &c).bound_ms.valid);
    s.stages[2].time_ms = NUMBER_NONE;
    p = roof_whole(&s.record, &c);
    CHECK_NEAR(p.time_ms.value, 18, 1e-12);
    CHECK_NEAR(p.bound_ms.value, 20, 1e-12);
    CHECK_NEAR(p.of_bound.value, 20.0 / 18, 1e-12);
    snprintf(c.device, sizeof(c.device), "cuda");
    assert_false(roof_whole(&s.record, &c).of_bound.valid);
}

/* A run of the CPU is not held against a GPU's ceilings, and machines are named. */
TEST(a_roofline_is_of_one_device)
{
    Ceilings    c = { .peak = 6e13, .tensor = 9e14, .gemm = 5e13, .stream = 4e12,
                      .device = "cuda" };
    Error       err = ERROR_INIT;
    Sample      s, host;
    PlotSubject subjects[] = { { "on the host", &host.record }, { "a", &s.record } };
    Plot       *plot;

    fill(&s);
    fill_host(&host);
    plot = plot_of(PLOT_ROOFLINE, subjects, 2, &c, &err);
    CHECK(plot, "%s", err.text);
    assert_string_equal(plot->series[0].name, "a");
    assert_non_null(strstr(plot->note, "of GPU, measured; counted FLOPs"));
    assert_non_null(strstr(plot->note, "of another device, not shown: on the host"));
    assert_null(strstr(plot->measured, " and "));
    assert_false(roof_point(&host.record, 0, &c).roof.valid);
    plot_free(plot);
    assert_null(plot_of(PLOT_ROOFLINE, subjects, 1, &c, &err));
    assert_non_null(strstr(err.text, "of another device"));
    plot = plot_of(PLOT_TIME, subjects, 2, NULL, &err);
    CHECK(plot, "%s", err.text);
    assert_non_null(strstr(plot->measured, "GPU and "));
    plot_free(plot);
}

/* However far right the points are, a level roof leaves the slanted one where both are drawn. */
TEST(the_slanted_roof_reaches_every_level_one)
{
    Ceilings          c = { .peak = 6e13, .tensor = 9e14, .gemm = 5e11, .stream = 4e12 };
    Sample            s;
    Plot             *plot;
    const PlotSeries *slanted = NULL;

    fill(&s);
    plot = made(PLOT_ROOFLINE, &s.record, &c);
    for (int k = 0; k < plot->count; k++)
        slanted = strncmp(plot->series[k].name, "memory", 6) ? slanted : &plot->series[k];
    assert_non_null(slanted);
    for (int k = 0; k < plot->count; k++)
        if (strstr(plot->series[k].name, "FLOP/s"))
            CHECK(slanted->x[0] < plot->series[k].x[0], "%s begins at %g, the slanted roof at %g",
                  plot->series[k].name, plot->series[k].x[0], slanted->x[0]);
    plot_free(plot);
}

TEST(ceilings_are_named_by_what_they_are_of)
{
    Ceilings c = { .peak = 9e14, .tensor = 9e14, .gemm = 7e14, .stream = 4e12 };
    Sample   s;
    Plot    *plot;

    fill(&s);
    plot = made(PLOT_ROOFLINE, &s.record, &c); /* as products in bf16 have it */
    expect_text(plot, 20, "tensor cores 900 TFLOP/s");
    expect_text(plot, 20, "memory 4 TB/s");
    for (int k = 0; k < plot->count; k++)
        assert_null(strstr(plot->series[k].name, "multiply-add"));
    plot_free(plot);
}

TEST(memory_of_host_and_device_share_a_plot)
{
    Sample s;
    Plot  *plot;

    fill(&s);
    plot = made(PLOT_TIMELINE, &s.record, NULL);
    assert_int_equal(plot->count, 2);
    assert_string_equal(plot->series[1].name, "GPU memory");
    CHECK_NEAR(plot->series[1].y[1], 65536, 0);
    plot_free(plot);
}

SUITE(NULL, NULL)
