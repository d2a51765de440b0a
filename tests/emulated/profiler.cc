// profiler.cc -- the emulated device's profiler: marks, records and counters of its own.
//
// Times are the host's, which did the work.  What its kernels compute is not counted, so its
// counters hold numbers that a test can work out: see emulated_count().
//
//   ATTNSCOPE_EMULATED_TRACE=refused    no activity records
//   ATTNSCOPE_EMULATED_COUNTERS=count   counters in two passes; without it they are refused
//   ATTNSCOPE_EMULATED_COUNTERS=slow    as count; opening them takes three seconds
//   ATTNSCOPE_EMULATED_COUNTERS=lost    refused while the first pass runs
#include "emulated.h"

#include <unistd.h>
#include <chrono>
#include <string>
#include <vector>

#include "attn/cuda/device.h"

#define PASSES 2

static struct {
    bool                          tracing, counting;
    std::vector<int>              regions;
    std::vector<DeviceKernel>     kernels;
    std::vector<DeviceCopy>       copies;
    std::vector<DeviceAllocation> allocations;
    int64_t                       began;
    int64_t                       marks[DEVICE_MARKS];
    int                           pass, range;
    std::vector<DeviceRange>      ranges;
    std::string                   why;
} profile;

static int64_t nanoseconds(void)
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static int refuse(const char *why)
{
    profile.why = why;
    return -1;
}

static bool asked(const char *variable, const char *value)
{
    const char *given = getenv(variable);

    return given && !strcmp(given, value);
}

int emulated_region(void)
{
    return profile.regions.empty() ? -1 : profile.regions.back();
}

/* ---- what the runtime reports ------------------------------------------------- */

int64_t emulated_clock(void) { return nanoseconds(); }

static int32_t smaller(unsigned x) { return x > INT32_MAX ? INT32_MAX : (int32_t)x; }

// Each thread of a launch counts as one fused multiply-add and one addition in float, reads
// 8 bytes and writes 4; half of the places for warps are taken.
static void emulated_count(double threads)
{
    double *value = profile.ranges[(size_t)profile.range].value;

    if (profile.pass == 0) {
        value[DEVICE_COUNT_FP32_ADD] += threads;
        value[DEVICE_COUNT_FP32_FUSED] += threads;
        return;
    }
    value[DEVICE_COUNT_DRAM_READ] += 8 * threads;
    value[DEVICE_COUNT_DRAM_WRITTEN] += 4 * threads;
    value[DEVICE_COUNT_WARPS] += 32 * threads;
    value[DEVICE_COUNT_CYCLES] += threads;
}

void emulated_launched(const char *name, dim3 grid, dim3 block, size_t shared, int region,
                       int64_t began)
{
    DeviceKernel k = {};

    if (profile.tracing) {
        snprintf(k.name, sizeof(k.name), "%.*s",
                 (int)(strlen(name) - (name[0] == '(' ? 2 : 0)), name + (name[0] == '('));
        k.region = region;
        k.start = began - profile.began;
        k.end = nanoseconds() - profile.began;
        k.grid[0] = smaller(grid.x), k.grid[1] = smaller(grid.y), k.grid[2] = smaller(grid.z);
        k.block[0] = smaller(block.x), k.block[1] = smaller(block.y);
        k.block[2] = smaller(block.z);
        k.registers = k.local = -1;
        k.shared = (int64_t)shared;
        profile.kernels.push_back(k);
    }
    if (profile.counting && profile.range >= 0)
        emulated_count((double)grid.x * grid.y * grid.z * block.x * block.y * block.z);
}

void emulated_copied(int kind, size_t bytes, int region, int64_t began)
{
    if (profile.tracing)
        profile.copies.push_back({ (DeviceCopyKind)kind, region, began - profile.began,
                                   nanoseconds() - profile.began, (int64_t)bytes });
}

void emulated_allocated(int64_t bytes)
{
    if (profile.tracing)
        profile.allocations.push_back({ emulated_region(), nanoseconds() - profile.began, bytes });
}

/* ---- the table -------------------------------------------------------------------- */

static const char *why(void) { return profile.why.c_str(); }
static const char *source(void) { return "emulated"; }

static int can_trace(void)
{
    return asked("ATTNSCOPE_EMULATED_TRACE", "refused") ? refuse("traces refused: emulated") : 0;
}

static int can_count(void)
{
    return getenv("ATTNSCOPE_EMULATED_COUNTERS") ? 0 : refuse("counters refused: emulated");
}

static int plan(const char *, DevicePlan *out)
{
    *out = DevicePlan();
    return refuse("an emulated device is no chip");
}

static int mark(int index)
{
    if (index < 0 || index >= DEVICE_MARKS)
        return refuse("more marks than there are");
    if (emulated_begin([=] { profile.marks[index] = nanoseconds(); }))
        return refuse("no mark while the stream captures");
    return device_settle(); // as cupti/library.c
}

static int between(int from, int to, double *ms)
{
    emulated_settle(device_stream());
    *ms = 1e-6 * (double)(profile.marks[to] - profile.marks[from]);
    return 0;
}

static int trace_begin(void)
{
    if (can_trace())
        return -1;
    profile.kernels.clear();
    profile.copies.clear();
    profile.allocations.clear();
    profile.regions.clear();
    profile.began = nanoseconds();
    profile.tracing = true;
    return 0;
}

static int trace_enter(int region)
{
    profile.regions.push_back(region);
    return 0;
}

static int trace_leave(void)
{
    if (profile.regions.empty())
        return refuse("no region is open");
    profile.regions.pop_back();
    return 0;
}

template <typename T>
static T *copy_of(const std::vector<T> &from)
{
    T *to = (T *)malloc((from.size() + 1) * sizeof(T));

    for (size_t i = 0; i < from.size(); i++)
        to[i] = from[i];
    return to;
}

static int trace_end(DeviceTrace *out)
{
    emulated_settle();
    profile.tracing = false;
    *out = DeviceTrace();
    out->kernels = copy_of(profile.kernels);
    out->kernel_count = (int64_t)profile.kernels.size();
    out->copies = copy_of(profile.copies);
    out->copy_count = (int64_t)profile.copies.size();
    out->allocations = copy_of(profile.allocations);
    out->allocation_count = (int64_t)profile.allocations.size();
    return 0;
}

static void trace_free(DeviceTrace *trace)
{
    free(trace->kernels);
    free(trace->copies);
    free(trace->allocations);
    *trace = DeviceTrace();
}

static int count_begin(int ranges)
{
    DeviceRange none = {};

    if (can_count())
        return -1;
    if (asked("ATTNSCOPE_EMULATED_COUNTERS", "slow"))
        usleep(3000000);
    for (int c = DEVICE_COUNT_TENSOR_BF16; c <= DEVICE_COUNT_TENSOR_F64; c++)
        none.value[c] = NAN;
    none.value[DEVICE_COUNT_WARPS_MOST] = 64;
    profile.ranges.assign((size_t)ranges, none);
    profile.pass = 0;
    profile.range = -1;
    profile.counting = true;
    return 0;
}

static int pass_begin(void) { return 0; }

static int range_begin(int range)
{
    if (range < 0 || (size_t)range >= profile.ranges.size())
        return refuse("no such range");
    profile.range = range;
    return 0;
}

static int range_end(void)
{
    emulated_settle();
    profile.range = -1;
    if (!asked("ATTNSCOPE_EMULATED_COUNTERS", "lost"))
        return 0;
    profile.counting = false;
    return refuse("counters lost: emulated");
}

static int pass_end(bool *more)
{
    *more = ++profile.pass < PASSES;
    return 0;
}

static int count_end(DeviceRange *out)
{
    for (size_t i = 0; i < profile.ranges.size(); i++)
        out[i] = profile.ranges[i];
    profile.counting = false;
    return 0;
}

const DeviceProfiler *device_profiler(void)
{
    static const DeviceProfiler profiler = {
        why,         source,      can_trace,   can_count,  plan,        mark,
        between,     trace_begin, trace_enter, trace_leave, trace_end,  trace_free,
        count_begin, pass_begin,  range_begin, range_end,  pass_end,    count_end,
    };

    return &profiler;
}
