/* test_gpu_profile.c -- the three tiers of a GPU's profile, on the emulated device. */
#include <libgen.h>
#include <unistd.h>

#include "attn/cuda/host/gpu.h"
#include "profile/device_profile.h"
#include "profile/watch.h"
#include "profile_fixture.h"

#define PLAN ((MeasurePlan){ .repeats = 3, .most = 3, .max_seconds = 30, .width = 1 })

static Device *emulated(void)
{
    char    program[2048], path[2200];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    Error   err = ERROR_INIT;
    Device *device;

    assert_true(length > 0);
    program[length] = '\0';
    snprintf(path, sizeof(path), "%s/attnscope-emulated.so", dirname(program));
    setenv("ATTNSCOPE_DEVICE_LIBRARY", path, 1);
    device = device_open(&err);
    if (!device)
        fprintf(stderr, "%s\n", err.text);
    assert_non_null(device);
    return device;
}

/* Measures window(window=5), 2 heads of 48 tokens, with what the environment says. */
static Record measured(const MeasurePlan *plan)
{
    Device *device = emulated();
    Fixture f = fixture_new(2, 48, 16, 1);
    Record  record;
    Error   err = ERROR_INIT;

    fixture_choose(&f, "window", "window=5");
    f.spec.ops = device_ops(device, ARITHMETIC_F32);
    assert_true(measure(&f.spec, plan, &record, &err));
    assert_int_equal(record.status, RECORD_OK);
    assert_non_null(record.gpu);
    assert_int_equal(device_in_use(device), 0);
    fixture_free(&f);
    device_release(device);
    return record;
}

static double threads_of(const DeviceProfile *p)
{
    double threads = 0;

    for (int i = 0; i < p->kernel_count; i++) {
        const DeviceKernelRow *k = &p->kernels[i];

        threads += (double)k->launches * k->grid[0] * k->grid[1] * k->grid[2] * k->block[0] *
                   k->block[1] * k->block[2];
    }
    return threads;
}

/* The budget is that of the runs.  The timed ones have enough of it too, beside other work. */
TEST(opening_the_counters_takes_nothing_from_the_budget)
{
    MeasurePlan plan = PLAN;
    Record      r;

    plan.max_seconds = 2.5; /* opening takes three */
    setenv("ATTNSCOPE_EMULATED_COUNTERS", "slow", 1);
    r = measured(&plan);
    unsetenv("ATTNSCOPE_EMULATED_COUNTERS");
    assert_string_equal(r.gpu->lacks[TIER_COUNTERS], "");
    assert_true(device_reached(r.gpu, TIER_COUNTERS));
    record_free(&r);
}

TEST(events_and_activity_without_counters)
{
    MeasurePlan          plan = PLAN;
    Record               r = measured(&plan);
    const DeviceProfile *p = r.gpu;
    double               sum = 0;

    assert_true(device_reached(p, TIER_EVENTS) && device_reached(p, TIER_ACTIVITY));
    assert_false(device_reached(p, TIER_COUNTERS));
    assert_string_equal(p->lacks[TIER_COUNTERS], "counters refused: emulated");
    assert_string_equal(r.hardware_note, "counters refused: emulated");
    assert_false(r.hardware.flops.valid || p->counted.flops.valid);
    assert_int_equal(p->stage_count, r.stage_count);
    for (int i = 0; i < p->stage_count; i++) {
        assert_true(p->stages[i].span_ms.valid && p->stages[i].busy_ms.valid);
        sum += p->stages[i].busy_ms.value;
    }
    CHECK_WITHIN(sum, p->busy_ms.value, 1e-9);
    assert_true(p->kernel_count > 0 && p->launches == p->span_count);
    assert_true(p->span_ms.value > 0);
    assert_string_equal(r.stages[p->kernels[0].stage].name, "attend");
    assert_non_null(strstr(p->kernels[0].name, "attend_f32"));
    assert_int_equal(p->kernels[0].block[0], 256);
    assert_int_equal(p->kernels[0].registers, -1);
    assert_true(p->allocated.valid && p->allocated.value > 0);
    record_free(&r);
}

/* The emulated device's, and what it is asked for while a trace or a pass of counters goes on. */
static const DeviceApi      *told_api;
static const DeviceProfiler *told_profiler;
static int                   watched, taken; /* begun and not ended; so often meanwhile */

static int watch_trace(void) { return watched++, told_profiler->trace_begin(); }
static int watch_pass(void) { return watched++, told_profiler->pass_begin(); }
static int end_trace(DeviceTrace *out) { return watched--, told_profiler->trace_end(out); }
static int end_pass(bool *more) { return watched--, told_profiler->pass_end(more); }
static int watch_take(int64_t bytes, void **data)
{
    return taken += watched > 0, told_api->take(bytes, data);
}

static const DeviceProfiler *watching_profiler(void)
{
    static DeviceProfiler own;

    own = *told_profiler;
    own.trace_begin = watch_trace;
    own.trace_end = end_trace;
    own.pass_begin = watch_pass;
    own.pass_end = end_pass;
    return &own;
}

/* Pages of memory that is new move to a GPU when a kernel touches them, and its time would be
 * theirs. */
TEST(what_is_traced_and_counted_is_in_memory_that_was_used)
{
    MeasurePlan plan = PLAN;
    Device     *device = emulated();
    DeviceApi   own = *device->api;
    Record      r;

    told_api = device->api;
    told_profiler = told_api->profiler();
    own.take = watch_take;
    own.profiler = watching_profiler;
    device->api = &own;
    setenv("ATTNSCOPE_EMULATED_COUNTERS", "count", 1);
    r = measured(&plan);
    unsetenv("ATTNSCOPE_EMULATED_COUNTERS");
    device->api = told_api;
    assert_true(device_reached(r.gpu, TIER_ACTIVITY) && device_reached(r.gpu, TIER_COUNTERS));
    assert_int_equal(watched, 0);
    assert_int_equal(taken, 0);
    assert_true(r.gpu->allocated.value >= r.arena_peak.value);
    record_free(&r);
    device_release(device);
}

TEST(counters_are_summed_over_passes_and_stages)
{
    MeasurePlan          plan = PLAN;
    Record               r;
    const DeviceProfile *p;
    double               flops = 0, threads;

    setenv("ATTNSCOPE_EMULATED_COUNTERS", "count", 1);
    r = measured(&plan);
    unsetenv("ATTNSCOPE_EMULATED_COUNTERS");
    p = r.gpu;
    threads = threads_of(p);
    assert_int_equal(p->passes, 2);
    CHECK_WITHIN(p->counted.fp32.value, 3 * threads, 0);
    CHECK_WITHIN(p->counted.fused.value, 2 * threads, 0);
    CHECK_WITHIN(p->counted.flops.value, 3 * threads, 0);
    CHECK_WITHIN(r.hardware.flops.value, 3 * threads, 0);
    CHECK_WITHIN(p->counted.dram_read.value, 8 * threads, 0);
    CHECK_WITHIN(p->counted.dram_written.value, 4 * threads, 0);
    CHECK_WITHIN(p->counted.occupancy.value, 0.5, 1e-12);
    assert_false(p->counted.tensor.valid);
    for (int i = 0; i < p->stage_count; i++)
        flops += p->stages[i].counted.fp32.valid ? p->stages[i].counted.fp32.value : 0;
    CHECK_WITHIN(flops, 3 * threads, 0);
    record_free(&r);
}

TEST(a_refused_counter_never_ends_a_run)
{
    MeasurePlan plan = PLAN;
    Record      r;

    setenv("ATTNSCOPE_EMULATED_COUNTERS", "lost", 1);
    setenv("ATTNSCOPE_EMULATED_TRACE", "refused", 1);
    r = measured(&plan);
    unsetenv("ATTNSCOPE_EMULATED_COUNTERS");
    unsetenv("ATTNSCOPE_EMULATED_TRACE");
    assert_true(device_reached(r.gpu, TIER_EVENTS));
    assert_string_equal(r.gpu->lacks[TIER_ACTIVITY], "traces refused: emulated");
    assert_string_equal(r.gpu->lacks[TIER_COUNTERS], "counters lost: emulated");
    assert_false(r.gpu->busy_ms.valid || r.gpu->allocated.valid);
    assert_int_equal(r.time.count, 3);
    record_free(&r);
}

/* With ATTNSCOPE_GRAPHS timed runs are replays, or the record says why not. */
TEST(timed_runs_are_replays_where_nothing_is_read)
{
    MeasurePlan plan = PLAN;
    Record      r;
    Json        json;
    Text        text = { 0 };

    setenv("ATTNSCOPE_GRAPHS", "1", 1);
    r = measured(&plan);
    unsetenv("ATTNSCOPE_GRAPHS");
    assert_true(r.gpu->graph.asked && r.gpu->graph.replayed);
    assert_string_equal(r.gpu->graph.why, "");
    assert_true(r.gpu->graph.plain_ms.valid && r.gpu->span_ms.valid);
    assert_int_equal(r.time.count, 3);
    assert_true(r.stages[0].time_ms.valid);
    json = jsonw_to(&text);
    record_json(&r, &json);
    assert_non_null(strstr(text_str(&text), "\"graph\":{\"replayed\":true,\"why\":null"));
    text_free(&text);
    record_free(&r);
}

TEST(what_reads_is_timed_as_it_is)
{
    MeasurePlan plan = PLAN;
    Device     *device;
    Fixture     f = fixture_new(2, 48, 16, 1);
    Record      r;
    Error       err = ERROR_INIT;
    Text        text = { 0 };

    setenv("ATTNSCOPE_GRAPHS", "1", 1);
    device = emulated();
    unsetenv("ATTNSCOPE_GRAPHS");
    fixture_choose(&f, "entmax", "alpha=1.5");
    f.spec.ops = device_ops(device, ARITHMETIC_F32);
    assert_true(measure(&f.spec, &plan, &r, &err));
    assert_int_equal(r.status, RECORD_OK);
    assert_true(r.gpu->graph.asked && !r.gpu->graph.replayed);
    assert_string_equal(r.gpu->graph.why, "the host counts the weights that are not zero");
    assert_int_equal(r.time.count, 3);
    record_text(&r, &text);
    assert_non_null(strstr(text_str(&text), "graph    no: the host counts"));
    text_free(&text);
    record_free(&r);
    fixture_free(&f);
    device_release(device);
}

TEST(one_run_has_events_only)
{
    MeasurePlan plan = MEASURE_ONCE;
    Record      r = measured(&plan);

    assert_true(device_reached(r.gpu, TIER_EVENTS));
    assert_non_null(strstr(r.gpu->lacks[TIER_ACTIVITY], "--repeat"));
    assert_non_null(strstr(r.gpu->lacks[TIER_COUNTERS], "--repeat"));
    record_free(&r);
}

TEST(json_and_text_hold_all_of_it)
{
    MeasurePlan plan = PLAN;
    Record      r;
    Text        text = { 0 };
    json_t     *root;

    setenv("ATTNSCOPE_EMULATED_COUNTERS", "count", 1);
    r = measured(&plan);
    unsetenv("ATTNSCOPE_EMULATED_COUNTERS");
    root = record_parsed(&r);
    assert_true(json_is_null(json_at(root, "gpu.events.lacks")));
    assert_true(json_number_value(json_at(root, "gpu.events.span_ms")) > 0);
    assert_true(json_number_value(json_at(root, "gpu.activity.busy_ms")) > 0);
    assert_int_equal(json_array_size(json_at(root, "gpu.activity.kernels")),
                     r.gpu->kernel_count);
    assert_int_equal(json_array_size(json_at(root, "gpu.activity.spans")), r.gpu->span_count);
    assert_int_equal(json_array_size(json_at(root, "gpu.activity.copy_spans")),
                     r.gpu->copy_span_count);
    assert_true(r.gpu->copy_span_count > 0);
    CHECK_WITHIN(json_number_value(json_at(root, "gpu.counters.fp32")),
               json_number_value(json_at(root, "flops.hardware")), 0);
    assert_true(json_is_null(json_at(root, "gpu.counters.tensor")));
    assert_true(json_is_array(json_at(root, "memory.timeline.device")));
    assert_true(json_is_object(json_at(json_array_get(json_at(root, "stages"), 0), "gpu")));
    json_decref(root);
    record_text(&r, &text);
    assert_non_null(strstr(text_str(&text), "events, activity, counters"));
    assert_non_null(strstr(text_str(&text), "kernel [activity]"));
    assert_non_null(strstr(text_str(&text), "occupancy 50.0 % [counters]"));
    text_free(&text);
    record_free(&r);
}

TEST(a_run_on_the_cpu_has_none)
{
    MeasurePlan plan = PLAN;
    Fixture     f = fixture_new(1, 16, 8, 1);
    Record      r;
    Error       err = ERROR_INIT;
    json_t     *root;

    fixture_choose(&f, "full", "");
    assert_true(measure(&f.spec, &plan, &r, &err));
    assert_null(r.gpu);
    assert_false(r.device_peak.valid);
    root = record_parsed(&r);
    assert_true(json_is_null(json_at(root, "gpu")));
    assert_true(json_is_null(json_at(root, "memory.timeline.device")));
    json_decref(root);
    record_free(&r);
    fixture_free(&f);
}

/* ---- sums of given records ------------------------------------------------------- */

TEST(records_are_summed_by_kernel_and_stage)
{
    DeviceKernel kernels[] = {
        { .name = "a", .region = 0, .start = 1000000, .end = 3000000, .grid = { 2, 1, 1 } },
        { .name = "b", .region = 1, .start = 4000000, .end = 9000000, .grid = { 1, 1, 1 } },
        { .name = "a", .region = 0, .start = 10000000, .end = 11000000, .grid = { 2, 1, 1 } },
        { .name = "a", .region = -1, .start = 12000000, .end = 12500000, .grid = { 2, 1, 1 } },
    };
    DeviceCopy copies[] = { { DEVICE_COPY_SET, 1, 0, 500000, 64 },
                            { DEVICE_PAGES_TO_HOST, -1, 0, 250000, 4096 } };
    DeviceAllocation allocations[] = { { 0, 5, -100 }, { 0, 2, 100 }, { 1, 6, 30 }, { 1, 3, 50 } };
    DeviceTrace trace = { .kernels = kernels, .copies = copies, .allocations = allocations,
                          .kernel_count = 4, .copy_count = 2, .allocation_count = 4 };
    DeviceProfile *p = device_profile_new(2);
    const int      first[] = { 0, 1 };

    assert_true(device_sum_trace(&trace, first, p));
    assert_int_equal(p->kernel_count, 3);
    assert_string_equal(p->kernels[0].name, "b");
    assert_int_equal(p->kernels[1].launches, 2);
    CHECK_WITHIN(p->kernels[1].total_ms, 3, 1e-12);
    CHECK_WITHIN(p->kernels[1].least_ms, 1, 1e-12);
    CHECK_WITHIN(p->kernels[1].most_ms, 2, 1e-12);
    assert_int_equal(p->spans[0].row, 1);
    assert_int_equal(p->spans[1].row, 0);
    assert_int_equal(p->spans[3].stage, -1);
    CHECK_WITHIN(p->busy_ms.value, 8.5, 1e-12);
    CHECK_WITHIN(p->stages[1].copy_ms.value, 0.5, 1e-12);
    CHECK_WITHIN(p->copy_ms.value, 0.75, 1e-12);
    assert_int_equal(p->copies[DEVICE_PAGES_TO_HOST].bytes, 4096);
    CHECK_WITHIN(p->allocated.value, 150, 0);
    device_profile_free(p);
}

TEST(names_are_as_in_the_source)
{
    static const char *const names[][2] = {
        { "attend", "attend" },
        { "_Z10attend_f32ILb0EEv12DeviceTensorPKf", "attend_f32<false>" },
        { "_Z4tileILi64ELi32EfEvPT1_", "tile<64,32,float>" },
        { "_ZN12_GLOBAL__N_14rowsIdEEvPT_", "rows<double>" },
        { "_ZN4gemm5tilesIfLin1EEEvv", "tiles<float,-1>" },
        { "_ZL6staticv", "static" },
        { "_Z4wordI13__nv_bfloat16L10Arithmetic2EEvv", "word<__nv_bfloat16,2>" },
        { "_Z4pairISt4pairIiiEEvv", "pair<...>" },
        { "_Z", "_Z" },
        { "_Z99short", "_Z99short" },
    };
    char text[96];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        kernel_name_text(names[i][0], text, sizeof(text));
        assert_string_equal(text, names[i][1]);
    }
    memset(text, '.', sizeof(text));
    kernel_name_text(names[1][0], text, 8);
    assert_string_equal(text, "attend_"); /* what there is room for, and no byte behind it */
    assert_int_equal(text[8], '.');
}

static const char *long_stage(const void *context, int stage)
{
    (void)context;
    (void)stage;
    return "a stage with a long name";
}

/* However wide the table is, its lines are not wider; the name is never squeezed out. */
TEST(a_table_of_kernels_keeps_its_width)
{
    static const int widths[] = { 60, 73, 74, 80, 119, 120, 200 };
    DeviceKernelRow  row = { .name = "attend_tiles_with_a_long_name<64, 128, false>",
                             .launches = 1234, .total_ms = 1234.5, .least_ms = 0.01,
                             .most_ms = 123, .grid = { 65535, 16, 1 }, .block = { 32, 8, 1 },
                             .registers = 255, .shared = 228 << 10, .local = 1024 };
    DeviceProfile    p = { .kernels = &row, .kernel_count = 1 };

    for (size_t k = 0; k < sizeof(widths) / sizeof(*widths); k++) {
        Text text = { 0 };

        device_kernels_text(&p, widths[k], 9, long_stage, NULL, &text);
        for (const char *line = text_str(&text); *line; line += strcspn(line, "\n") + 1)
            assert_in_range(strcspn(line, "\n"), 1, widths[k]);
        assert_non_null(strstr(text_str(&text), "attend_tiles"));
        assert_true((widths[k] >= 74) == (strstr(text_str(&text), "65535x16") != NULL));
        assert_true((widths[k] >= 120) == (strstr(text_str(&text), "longest") != NULL));
        text_free(&text);
    }
}

/* A traced run that was slower than the timed ones tells nothing of the host's part. */
TEST(what_is_left_of_a_span_is_the_hosts)
{
    DeviceProfile *p = device_profile_new(1);

    assert_non_null(p);
    p->span_ms = p->stages[0].span_ms = number_of(5);
    p->busy_ms = p->stages[0].busy_ms = number_of(3);
    p->copy_ms = number_of(1);
    assert_true(device_idle_ms(p, -1).valid && device_idle_ms(p, -1).value <= 1);
    assert_true(device_idle_share(p, 0).value > 0.39 && device_idle_share(p, 0).value < 0.41);
    p->busy_ms = number_of(6);
    assert_false(device_idle_ms(p, -1).valid);
    assert_false(device_idle_share(p, -1).valid);
    device_profile_free(p);
}

/* As after a run that ended before it was a sample. */
TEST(without_a_timed_run_there_is_a_reason)
{
    Device        *device = emulated();
    DeviceWatch   *watch = device_watch_new(device_ops(device, ARITHMETIC_F32), NULL, NULL);
    DeviceProfile *p = device_profile_new(1);

    assert_true(watch && p);
    device_watch_summarise(watch, p);
    assert_true(p->name[0] && p->source[0]);
    assert_false(p->span_ms.valid);
    assert_string_equal(p->lacks[TIER_EVENTS], "no run was timed");
    device_profile_free(p);
    device_watch_free(watch);
    device_release(device);
}

SUITE(NULL, NULL)
