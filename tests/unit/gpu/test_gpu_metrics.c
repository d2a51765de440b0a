/* tests/unit/gpu/test_gpu_metrics.c -- the counters' names, against libcupti itself, without a GPU.
 *
 * One unknown name makes CUPTI refuse a whole list, and chips differ in them, so what
 * attnscope-cuda.so would ask of each chip is asked of libcupti here.  Skipped with a reason
 * where the shared object was not built or libcupti is not found.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <unistd.h>

#include "attn/cuda/device.h"
#include "check.h"

static const DeviceProfiler *profiler_of_library(void **library)
{
    char             program[2048], path[2200];
    ssize_t          length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    DeviceEntry     *entry;
    const DeviceApi *api;

    assert_true(length > 0);
    program[length] = '\0';
    snprintf(path, sizeof(path), "%s/../attnscope-cuda.so", dirname(program));
    if (access(path, R_OK) != 0) {
        printf("skipped: %s was not built (no nvcc)\n", path);
        return NULL;
    }
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library)
        fprintf(stderr, "%s\n", dlerror());
    assert_non_null(*library);
    *(void **)&entry = dlsym(*library, DEVICE_ENTRY);
    assert_non_null(entry);
    api = entry(DEVICE_ABI);
    assert_non_null(api);
    if (!api->profiler())
        printf("skipped: built without CUPTI's headers\n");
    return api->profiler();
}

static bool can_plan(const DeviceProfiler *profiler)
{
    DevicePlan plan;

    if (!profiler->plan("GH100", &plan))
        return true;
    printf("skipped: %s\n", profiler->why());
    return false;
}

/* How many passes depends on libcupti; eight runs are still worth making. */
static void has_all(const DeviceProfiler *profiler, const char *chip)
{
    DevicePlan plan;

    assert_int_equal(profiler->plan(chip, &plan), 0);
    for (int count = 0; count < DEVICE_COUNT_WARPS_MOST; count++)
        if (!plan.has[count])
            fail_msg("%s: nothing counts number %d of counts.def", chip, count);
    assert_in_range(plan.passes, 1, 8);
}

/* All of 8.0 (but Orin's) to 12.0 that have memory of their own. */
static const char *const chips[] = {
    "GA100", "GA102", "GA103", "GA104", "GA106", "GA107", "AD102", "AD103", "AD104", "AD106",
    "AD107", "GH100", "GB100", "GB102", "GB110", "GB202", "GB203", "GB205", "GB206", "GB207",
};

TEST(every_chip_has_what_is_asked_of_it)
{
    void                 *library = NULL;
    const DeviceProfiler *profiler = profiler_of_library(&library);
    DevicePlan            plan;

    if (!profiler || !can_plan(profiler)) {
        skip();
        return;
    }
    for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++)
        has_all(profiler, chips[i]);
    /* What shares its memory with the CPU has no DRAM of its own to count. */
    assert_int_equal(profiler->plan("GB20B", &plan), 0);
    assert_true(plan.has[DEVICE_COUNT_FP32_FUSED] && plan.has[DEVICE_COUNT_TENSOR_BF16]);
    assert_false(plan.has[DEVICE_COUNT_DRAM_READ]);
    /* Turing has no bf16, and its f16 to float is in one sum with others: no number, not 0. */
    assert_int_equal(profiler->plan("TU102", &plan), 0);
    assert_true(plan.has[DEVICE_COUNT_FP32_FUSED] && plan.has[DEVICE_COUNT_DRAM_READ]);
    assert_false(plan.has[DEVICE_COUNT_TENSOR_BF16] || plan.has[DEVICE_COUNT_TENSOR_F16]);
}

TEST(an_unknown_chip_is_refused_in_words)
{
    void                 *library = NULL;
    const DeviceProfiler *profiler = profiler_of_library(&library);
    DevicePlan            plan;

    if (!profiler || !can_plan(profiler)) {
        skip();
        return;
    }
    assert_int_not_equal(profiler->plan("ZZ999", &plan), 0);
    assert_non_null(strstr(profiler->why(), "older than the GPU"));
    assert_int_equal(plan.passes, 0);
}

/* Where there is no GPU every tier says so, and nothing crashes. */
TEST(tiers_refuse_without_a_gpu)
{
    void                 *library = NULL;
    const DeviceProfiler *profiler = profiler_of_library(&library);

    if (!profiler || access("/dev/nvidiactl", F_OK) == 0) {
        skip();
        return;
    }
    assert_int_not_equal(profiler->can_trace(), 0);
    assert_non_null(strstr(profiler->why(), "no GPU"));
    assert_int_not_equal(profiler->can_count(), 0);
    assert_non_null(strstr(profiler->why(), "no GPU"));
    assert_int_not_equal(profiler->trace_begin(), 0);
    assert_int_not_equal(profiler->count_begin(3), 0);
    assert_int_not_equal(profiler->mark(0), 0);
    assert_int_not_equal(profiler->mark(DEVICE_MARKS), 0);
}

SUITE(NULL, NULL)
