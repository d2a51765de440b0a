/* test_gpu_cupti.c -- how attnscope-cuda.so uses CUPTI, against one of the tests' own that keeps to
 * what CUPTI's headers say (tests/cupti/fake.c).  Skipped where those are not there.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <unistd.h>

#include "cupti/fake.h"
#include "check.h"

static FakeCupti            *fake;
static const DeviceProfiler *profiler;

static int open_fake(void **state)
{
    char       program[2048], path[2200];
    ssize_t    length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    void      *library;
    FakeCupti *(*entry)(void) = NULL;

    (void)state;
    assert_true(length > 0);
    program[length] = '\0';
    snprintf(path, sizeof(path), "%s/attnscope-cupti.so", dirname(program));
    setenv("ATTNSCOPE_CUPTI", path, 1);
    library = access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (access(path, R_OK) == 0 && !library)
        fprintf(stderr, "%s\n", dlerror());
    if (library)
        *(void **)&entry = dlsym(library, FAKE_ENTRY);
    fake = entry ? entry() : NULL;
    profiler = fake ? fake->profiler() : NULL;
    return 0;
}

static bool begin(void)
{
    if (!fake) {
        printf("skipped: built without CUPTI's headers\n");
        skip();
        return false;
    }
    fake->reset();
    alarm(20); /* who waits for itself */
    return true;
}

/* Nothing that CUPTI's documents ask for was left out, and all is given back. */
static void is_well(void)
{
    alarm(0);
    CHECK(!fake->broken, "not so: %s", fake->broken);
    assert_int_equal(fake->buffers, 0);
    assert_int_equal(fake->hosts, 0);
    assert_int_equal(fake->open, 0);
}

/* ---- traces -------------------------------------------------------------------------------- */

static void work(void)
{
    fake->take(1 << 20);
    assert_int_equal(profiler->trace_enter(3), 0);
    fake->launch("first", 100);
    assert_int_equal(profiler->trace_enter(4), 0);
    fake->launch("second", 50);
    fake->move_pages(4096);
    assert_int_equal(profiler->trace_leave(), 0);
    fake->launch("third", 25);
    assert_int_equal(profiler->trace_leave(), 0);
    fake->launch("last", 10);
    fake->take(-(1 << 20));
}

static void is_work(const DeviceTrace *t)
{
    static const char *const names[] = { "first", "second", "third", "last" };
    static const int         regions[] = { 3, 4, 3, -1 }, times[] = { 100, 50, 25, 10 };

    assert_int_equal(t->kernel_count, 4);
    for (int i = 0; i < 4; i++) {
        const DeviceKernel *k = &t->kernels[i];

        assert_string_equal(k->name, names[i]);
        assert_int_equal(k->region, regions[i]);
        assert_int_equal(k->end - k->start, times[i]);
        assert_true(k->start >= 0);
        assert_true(k->grid[0] == 7 && k->grid[1] == 2 && k->block[0] == 128);
        assert_true(k->registers == 40 && k->shared == 1040);
    }
    assert_int_equal(t->allocation_count, 2);
    assert_int_equal(t->allocations[0].bytes, 1 << 20);
    assert_int_equal(t->allocations[1].bytes, -(1 << 20));
    assert_int_equal(t->dropped, 0);
}

/* The caller frees it. */
static void trace_work(DeviceTrace *t)
{
    assert_int_equal(profiler->trace_begin(), 0);
    work();
    assert_int_equal(profiler->trace_end(t), 0);
    is_work(t);
}

TEST(a_trace_has_each_record_in_its_region)
{
    DeviceTrace t;

    if (!begin())
        return;
    assert_int_equal(profiler->can_trace(), 0);
    for (int round = 0; round < 2; round++) {
        trace_work(&t);
        assert_int_equal(t.copy_count, 1);
        assert_int_equal(t.copies[0].kind, DEVICE_PAGES_TO_DEVICE);
        assert_int_equal(t.copies[0].region, 4);
        profiler->trace_free(&t);
    }
    is_well();
}

/* A buffer comes back on CUPTI's thread whenever it likes. */
TEST(buffers_come_back_while_cupti_is_asked)
{
    DeviceTrace t;

    if (!begin())
        return;
    fake->busy = true;
    trace_work(&t);
    profiler->trace_free(&t);
    is_well();
}

/* Its times are 0 where there was no memory for them: no kernel that ended before the trace. */
TEST(a_record_without_times_is_dropped)
{
    DeviceTrace t;

    if (!begin())
        return;
    assert_int_equal(profiler->trace_begin(), 0);
    fake->launch("timed", 5);
    fake->untimed = true;
    fake->launch("untimed", 5);
    assert_int_equal(profiler->trace_end(&t), 0);
    assert_int_equal(t.kernel_count, 1);
    assert_string_equal(t.kernels[0].name, "timed");
    assert_int_equal(t.dropped, 1);
    profiler->trace_free(&t);
    is_well();
}

/* It is not of this trace, and nothing is lost. */
TEST(work_that_began_before_is_left_out)
{
    DeviceTrace t;

    if (!begin())
        return;
    assert_int_equal(profiler->trace_begin(), 0);
    fake->launch("within", 5);
    fake->early = true;
    fake->launch("before", 5);
    assert_int_equal(profiler->trace_end(&t), 0);
    assert_int_equal(t.kernel_count, 1);
    assert_string_equal(t.kernels[0].name, "within");
    assert_int_equal(t.dropped, 0);
    profiler->trace_free(&t);
    is_well();
}

TEST(a_trace_without_pages_is_one)
{
    DeviceTrace t;

    if (!begin())
        return;
    fake->pages = 28; /* UM_PROFILING_NOT_SUPPORTED */
    trace_work(&t);
    assert_int_equal(t.copy_count, 0);
    profiler->trace_free(&t);
    is_well();
}

TEST(a_trace_that_is_refused_says_why)
{
    if (!begin())
        return;
    fake->activity = 35; /* INSUFFICIENT_PRIVILEGES */
    assert_int_not_equal(profiler->can_trace(), 0);
    assert_non_null(strstr(profiler->why(), "no permission"));
    assert_int_not_equal(profiler->trace_begin(), 0);
    fake->activity = 39; /* MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    assert_int_not_equal(profiler->trace_begin(), 0);
    assert_non_null(strstr(profiler->why(), "another profiler"));
    fake->activity = 0;
    fake->devices = 0;
    assert_int_not_equal(profiler->trace_begin(), 0);
    assert_non_null(strstr(profiler->why(), "no GPU"));
    is_well();
}

TEST(a_trace_of_a_run_that_failed_ends)
{
    DeviceTrace t;

    if (!begin())
        return;
    assert_int_equal(profiler->trace_begin(), 0);
    assert_int_equal(profiler->trace_enter(1), 0);
    fake->launch("wild", 5);
    fake->wait = 719;
    assert_int_not_equal(profiler->trace_end(&t), 0);
    assert_non_null(strstr(profiler->why(), "the traced run"));
    profiler->trace_free(&t);
    assert_int_not_equal(profiler->trace_leave(), 0); /* the region was left for it */
    is_well();
}

/* ---- counters ------------------------------------------------------------------------------ */

static int count_passes(int ranges)
{
    bool more = true;
    int  passes = 0;

    for (; more; passes++) {
        assert_int_equal(profiler->pass_begin(), 0);
        for (int r = 0; r < ranges; r++) {
            assert_int_equal(profiler->range_begin(r), 0);
            fake->launch("kernel", 10);
            assert_int_equal(profiler->range_end(), 0);
        }
        assert_int_equal(profiler->pass_end(&more), 0);
    }
    return passes;
}

/* Whatever order they come in; sums are of places among the metrics, plus 100 a range. */
TEST(counters_are_each_ranges_own)
{
    DeviceRange out[12];

    if (!begin())
        return;
    assert_int_equal(profiler->can_count(), 0);
    assert_int_equal(profiler->count_begin(12), 0);
    assert_int_equal(count_passes(12), 3);
    assert_int_equal(profiler->count_end(out), 0);
    for (int r = 0; r < 12; r++) {
        CHECK_NEAR(out[r].value[DEVICE_COUNT_FP32_ADD], 100 * r, 0);
        CHECK_NEAR(out[r].value[DEVICE_COUNT_FP32_FUSED], 100 * r + 2, 0);
        CHECK_NEAR(out[r].value[DEVICE_COUNT_WARPS_MOST], 64, 0);
        for (int c = 0; c < DEVICE_COUNTS; c++)
            assert_false(isnan(out[r].value[c]));
    }
    is_well();
}

TEST(a_trace_and_counters_follow_each_other)
{
    DeviceRange out[2];
    DeviceTrace t;

    if (!begin())
        return;
    for (int round = 0; round < 2; round++) {
        trace_work(&t);
        profiler->trace_free(&t);
        assert_int_equal(profiler->count_begin(2), 0);
        assert_int_equal(count_passes(2), 3);
        assert_int_equal(profiler->count_end(out), 0);
    }
    is_well();
}

TEST(counters_that_are_refused_say_why)
{
    if (!begin())
        return;
    fake->enable = 35;
    assert_int_not_equal(profiler->can_count(), 0);
    assert_non_null(strstr(profiler->why(), "no permission"));
    assert_int_not_equal(profiler->count_begin(2), 0);
    fake->enable = 0;
    fake->config = 26; /* HARDWARE_BUSY */
    assert_int_not_equal(profiler->count_begin(2), 0);
    assert_non_null(strstr(profiler->why(), "dcgmi profile --pause"));
    fake->config = 0;
    assert_int_not_equal(profiler->count_begin(3000), 0);
    assert_non_null(strstr(profiler->why(), "3000 stages are more ranges than CUPTI takes"));
    setenv("ATTNSCOPE_CUPTI_KEPT", getenv("ATTNSCOPE_CUPTI"), 1);
    setenv("ATTNSCOPE_CUPTI", "0", 1);
    assert_int_not_equal(profiler->can_count(), 0);
    assert_non_null(strstr(profiler->why(), "switched off"));
    setenv("ATTNSCOPE_CUPTI", getenv("ATTNSCOPE_CUPTI_KEPT"), 1);
    is_well();
}

/* A run that fails in the midst of a range: what is open is closed in its order. */
TEST(counters_that_are_lost_close_what_is_open)
{
    DeviceRange out[2];

    if (!begin())
        return;
    assert_int_equal(profiler->count_begin(2), 0);
    assert_int_equal(profiler->pass_begin(), 0);
    assert_int_equal(profiler->range_begin(0), 0);
    fake->wait = 719;
    assert_int_not_equal(profiler->range_end(), 0);
    assert_non_null(strstr(profiler->why(), "the counted run"));
    fake->wait = 0;
    assert_int_not_equal(profiler->count_end(out), 0);
    is_well();
    /* ... or is given up there by the caller */
    assert_int_equal(profiler->count_begin(2), 0);
    assert_int_equal(profiler->pass_begin(), 0);
    assert_int_equal(profiler->range_begin(0), 0);
    assert_int_not_equal(profiler->count_end(out), 0);
    is_well();
    assert_int_equal(profiler->count_begin(2), 0);
    assert_int_equal(count_passes(2), 3);
    assert_int_equal(profiler->count_end(out), 0);
    is_well();
}

SUITE(open_fake, NULL)
