/* attn/cuda/cupti/counters.c -- the counter tier: CUPTI's range profiler with user ranges and
 * user replay, and the metrics of a chip.
 *
 * One session at a time, from counters_begin to counters_end.  Each pass is one run of the
 * caller's with the same ranges.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/cupti/library.h"

#define NAME 12   /* of a range: its number */
#define MANY 1000 /* ranges: CUPTI takes two or three thousand, and does not say how many */
#define METRICS_MOST 32

typedef struct MetricPlan {
    CUpti_Profiler_Host_Object *host;
    uint8_t    *config; /* owned */
    size_t      config_size, passes;
    const char *names[METRICS_MOST];
    DeviceCount counts[METRICS_MOST]; /* the count that each metric adds to */
    size_t      count;
} MetricPlan;

static int  metrics_plan(const char *chip, const uint8_t *availability, MetricPlan *out);
static void metrics_free(MetricPlan *plan);

static struct Session {
    bool                       open;     /* cuptiProfilerInitialize was called */
    bool                       passing;  /* between start and stop */
    bool                       inside;   /* a range is open */
    bool                       complete; /* all passes were made */
    CUpti_RangeProfiler_Object *ranges;
    uint8_t                   *available; /* the plan was made with it; owned */
    MetricPlan                 plan;
    uint8_t                   *data;     /* the counter data image; owned */
    size_t                     data_size;
    char                     (*names)[NAME]; /* owned */
    int                        count;    /* ranges */
    double                     most_warps;
} session;

/* Closes what a refusal left open; errors are ignored. */
static void end_pass(const CuptiLibrary *c)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_PopRange, pop);
    CUPTI_BLOCK(CUpti_RangeProfiler_Stop, stop);

    pop.pRangeProfilerObject = stop.pRangeProfilerObject = session.ranges;
    if (session.inside)
        c->cuptiRangeProfilerPopRange(&pop);
    if (session.passing)
        c->cuptiRangeProfilerStop(&stop);
}

static void close_session(void)
{
    const CuptiLibrary *c = cupti_library();
    CUPTI_BLOCK(CUpti_RangeProfiler_Disable, disable);
    CUPTI_BLOCK(CUpti_Profiler_DeInitialize, end);

    end_pass(c);
    disable.pRangeProfilerObject = session.ranges;
    if (session.ranges)
        c->cuptiRangeProfilerDisable(&disable);
    metrics_free(&session.plan);
    free(session.available);
    if (session.open)
        c->cuptiProfilerDeInitialize(&end);
    free(session.data);
    free(session.names);
    session = (struct Session){ 0 };
}

/* After a refusal: closes the session and keeps the reason. */
static int give_up(void)
{
    close_session();
    return -1;
}

/* libcuda is not linked: the runtime knows where the function is. */
static int current_context(CUcontext *out)
{
    enum cudaDriverEntryPointQueryResult found;
    CUresult  (*get)(CUcontext *) = NULL;
    void       *address = NULL;
    cudaError_t code = cudaFree(NULL); /* makes the context where there is none yet */

    if (code == cudaSuccess)
        code = cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &address, 12000,
                                                cudaEnableDefault, &found);
    if (code != cudaSuccess || !address)
        return cupti_refuse("no context of the GPU: %s", cudaGetErrorString(code));
    memcpy(&get, &address, sizeof(get));
    return get(out) == CUDA_SUCCESS && *out ? 0 : cupti_refuse("no context of the GPU");
}

static const char *what_hinders(const CUpti_Profiler_DeviceSupported_Params *s)
{
    const CUpti_Profiler_Support_Level yes = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;

    return s->architecture != yes          ? "this GPU is too old for them"
           : s->vGpu != yes                ? "a virtual GPU has no counters"
           : s->confidentialCompute != yes ? "confidential computing hides them"
           : s->sli != yes                 ? "not with SLI"
                                           : "this configuration has none";
}

static int check_support(int device)
{
    CUPTI_BLOCK_TO(CUpti_Profiler_DeviceSupported, support, api);

    support.cuDevice = device;
    support.api = CUPTI_PROFILER_RANGE_PROFILING;
    if (CUPTI_CALL(cuptiProfilerDeviceSupported, support))
        return -1;
    return support.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED
               ? 0
               : cupti_refuse("%s", what_hinders(&support));
}

/* The counters that others do not hold.  The session keeps the image, because CUPTI may not copy
 * it. */
static int ask_available(CUcontext context)
{
    CUPTI_BLOCK_TO(CUpti_Profiler_GetCounterAvailability, ask, pCounterAvailabilityImage);

    ask.ctx = context;
    if (CUPTI_CALL(cuptiProfilerGetCounterAvailability, ask))
        return -1;
    session.available = calloc(1, ask.counterAvailabilityImageSize);
    ask.pCounterAvailabilityImage = session.available;
    if (!session.available)
        return cupti_refuse("not enough memory to ask for counters");
    return CUPTI_CALL(cuptiProfilerGetCounterAvailability, ask);
}

static int plan_metrics(CUcontext context, int device)
{
    CUPTI_BLOCK(CUpti_Device_GetChipName, chip);

    chip.deviceIndex = (size_t)device;
    if (CUPTI_CALL(cuptiDeviceGetChipName, chip))
        return -1;
    return ask_available(context) ||
           metrics_plan(chip.pChipName, session.available, &session.plan);
}

/* Every step that needs no range, up to enabling the range profiler. */
static int open_session(CUcontext *context)
{
    CUPTI_BLOCK(CUpti_Profiler_Initialize, begin);
    CUPTI_BLOCK(CUpti_RangeProfiler_Enable, enable);
    cudaError_t found;
    int         count = 0, device = 0, refused;

    found = cudaGetDeviceCount(&count);
    if (found != cudaSuccess || !count)
        return cupti_refuse("no GPU: %s", cudaGetErrorString(found));
    if (!cupti_library() || cudaGetDevice(&device) != cudaSuccess || current_context(context))
        return -1;
    if (CUPTI_CALL(cuptiProfilerInitialize, begin))
        return -1;
    session.open = true;
    if (check_support(device) || plan_metrics(*context, device))
        return -1;
    enable.ctx = *context;
    refused = CUPTI_CALL(cuptiRangeProfilerEnable, enable);
    session.ranges = enable.pRangeProfilerObject;
    if (!refused)
        cudaDeviceGetAttribute(&count, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    session.most_warps = count / 32.0;
    return refused;
}

int counters_can(void)
{
    CUcontext context;
    int       refused = open_session(&context);

    if (session.open)
        close_session();
    return refused;
}

static int make_room(int ranges)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_GetCounterDataSize, size);
    CUPTI_BLOCK(CUpti_RangeProfiler_CounterDataImage_Initialize, fill);

    size.pRangeProfilerObject = session.ranges;
    size.pMetricNames = session.plan.names;
    size.numMetrics = session.plan.count;
    size.maxNumOfRanges = (size_t)ranges;
    size.maxNumRangeTreeNodes = (uint32_t)ranges;
    if (CUPTI_CALL(cuptiRangeProfilerGetCounterDataSize, size))
        return -1;
    session.data_size = size.counterDataSize;
    session.data = calloc(1, session.data_size);
    session.names = calloc((size_t)ranges, sizeof(*session.names));
    if (!session.data || !session.names)
        return cupti_refuse("not enough memory for the counters of %d ranges", ranges);
    session.count = ranges;
    for (int i = 0; i < ranges; i++)
        snprintf(session.names[i], NAME, "%d", i);
    fill.pRangeProfilerObject = session.ranges;
    fill.counterDataSize = session.data_size;
    fill.pCounterData = session.data;
    return CUPTI_CALL(cuptiRangeProfilerCounterDataImageInitialize, fill);
}

static int configure(void)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_SetConfig, set);
    CUptiResult code;

    set.pRangeProfilerObject = session.ranges;
    set.configSize = session.plan.config_size;
    set.pConfig = session.plan.config;
    set.counterDataImageSize = session.data_size;
    set.pCounterDataImage = session.data;
    set.range = CUPTI_UserRange;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = (size_t)session.count;
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    set.passIndex = 0;
    set.targetNestingLevel = 1;
    code = cupti_library()->cuptiRangeProfilerSetConfig(&set);
    if (code == CUPTI_ERROR_INVALID_OPERATION && session.count > MANY)
        return cupti_refuse("%d stages are more ranges than CUPTI takes", session.count);
    return code == CUPTI_SUCCESS ? 0 : cupti_refused("cuptiRangeProfilerSetConfig", code);
}

int counters_begin(int ranges)
{
    CUcontext context;

    if (session.open)
        return cupti_refuse("counters are open already");
    if (!open_session(&context) && !make_room(ranges) && !configure())
        return 0;
    if (session.open)
        close_session();
    return -1;
}

int counters_pass_begin(void)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_Start, start);

    start.pRangeProfilerObject = session.ranges;
    session.passing = !CUPTI_CALL(cuptiRangeProfilerStart, start);
    return session.passing ? 0 : give_up();
}

int counters_range_begin(int range)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_PushRange, push);

    if (range < 0 || range >= session.count) {
        cupti_refuse("range %d of %d", range, session.count);
        return give_up();
    }
    push.pRangeProfilerObject = session.ranges;
    push.pRangeName = session.names[range];
    session.inside = !CUPTI_CALL(cuptiRangeProfilerPushRange, push);
    return session.inside ? 0 : give_up();
}

int counters_range_end(void)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_PopRange, pop);
    cudaError_t waited = cudaDeviceSynchronize();
    int         refused;

    if (waited != cudaSuccess) {
        cupti_refuse("the counted run: %s", cudaGetErrorString(waited));
        return give_up();
    }
    pop.pRangeProfilerObject = session.ranges;
    refused = CUPTI_CALL(cuptiRangeProfilerPopRange, pop);
    session.inside = false;
    return refused ? give_up() : 0;
}

int counters_pass_end(bool *more)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_Stop, stop);
    int refused;

    stop.pRangeProfilerObject = session.ranges;
    refused = CUPTI_CALL(cuptiRangeProfilerStop, stop);
    session.passing = false;
    session.complete = !refused && stop.isAllPassSubmitted;
    *more = !refused && !session.complete;
    return refused ? give_up() : 0;
}

/* ---- values ------------------------------------------------------------------- */

static int evaluate(size_t index, DeviceRange *out)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_CounterData_GetRangeInfo, info);
    CUPTI_BLOCK(CUpti_Profiler_Host_EvaluateToGpuValues, ask);
    double values[METRICS_MOST] = { 0 };
    int    range;

    info.pCounterDataImage = session.data;
    info.counterDataImageSize = session.data_size;
    info.rangeIndex = index;
    info.rangeDelimiter = "/";
    if (CUPTI_CALL(cuptiRangeProfilerCounterDataGetRangeInfo, info))
        return -1;
    range = info.rangeName ? atoi(info.rangeName) : -1;
    if (range < 0 || range >= session.count)
        return cupti_refuse("CUPTI counted a range '%s' that nobody began",
                            info.rangeName ? info.rangeName : "");
    ask.pHostObject = session.plan.host;
    ask.pCounterDataImage = session.data;
    ask.counterDataImageSize = session.data_size;
    ask.rangeIndex = index;
    ask.ppMetricNames = session.plan.names;
    ask.numMetrics = session.plan.count;
    ask.pMetricValues = values;
    if (CUPTI_CALL(cuptiProfilerHostEvaluateToGpuValues, ask))
        return -1;
    for (size_t i = 0; i < session.plan.count; i++) {
        double *sum = &out[range].value[session.plan.counts[i]];

        *sum = isnan(*sum) ? values[i] : *sum + values[i];
    }
    out[range].value[DEVICE_COUNT_WARPS_MOST] = session.most_warps;
    return 0;
}

/* Only after all passes; *ranges: the number of ranges. */
static int decode(size_t *ranges)
{
    CUPTI_BLOCK(CUpti_RangeProfiler_DecodeData, decoded);
    CUPTI_BLOCK(CUpti_RangeProfiler_GetCounterDataInfo, info);
    int refused;

    if (!session.complete)
        return cupti_refuse("not all passes were made");
    decoded.pRangeProfilerObject = session.ranges;
    if (CUPTI_CALL(cuptiRangeProfilerDecodeData, decoded))
        return -1;
    if (decoded.numOfRangeDropped)
        return cupti_refuse("%zu of %d ranges were dropped", (size_t)decoded.numOfRangeDropped,
                            session.count);
    info.pCounterDataImage = session.data;
    info.counterDataImageSize = session.data_size;
    refused = CUPTI_CALL(cuptiRangeProfilerGetCounterDataInfo, info);
    *ranges = info.numTotalRanges;
    return refused;
}

int counters_end(DeviceRange *out)
{
    size_t ranges = 0;
    int    refused = session.open ? decode(&ranges) : -1;

    for (int r = 0; r < session.count; r++)
        for (int c = 0; c < DEVICE_COUNTS; c++)
            out[r].value[c] = (double)NAN;
    for (size_t i = 0; !refused && i < ranges; i++)
        refused = evaluate(i, out);
    if (session.open)
        close_session();
    return refused;
}

/* ---- metrics: those of each DeviceCount, and which of them a chip has ------------------
 *
 * One unknown name makes CUPTI refuse a whole list, so each group is tried alone.  libcupti and
 * libnvperf_host know names and passes without a GPU.
 */

#define SASS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"
#define TENSOR(types) "sm__ops_path_tensor_src_" types ".sum"

/* Metric names differ between chips: of the groups for one count the first that exists is used. */
typedef struct Group {
    const char *names[3];
    DeviceCount counts[3];
} Group;

static const Group groups[] = {
    { { SASS("fadd"), SASS("fmul"), SASS("ffma") },
      { DEVICE_COUNT_FP32_ADD, DEVICE_COUNT_FP32_MUL, DEVICE_COUNT_FP32_FUSED } },
    { { SASS("dadd"), SASS("dmul"), SASS("dfma") },
      { DEVICE_COUNT_FP64_ADD, DEVICE_COUNT_FP64_MUL, DEVICE_COUNT_FP64_FUSED } },
    { { TENSOR("bf16_dst_fp32") }, { DEVICE_COUNT_TENSOR_BF16 } },
    { { TENSOR("tf32_dst_fp32") }, { DEVICE_COUNT_TENSOR_TF32 } },
    { { TENSOR("fp16") }, { DEVICE_COUNT_TENSOR_F16 } },
    { { TENSOR("fp16_dst_fp16"), TENSOR("fp16_dst_fp32") },
      { DEVICE_COUNT_TENSOR_F16, DEVICE_COUNT_TENSOR_F16 } },
    { { TENSOR("fp64") }, { DEVICE_COUNT_TENSOR_F64 } },
    { { "dram__bytes_read.sum", "dram__bytes_write.sum" },
      { DEVICE_COUNT_DRAM_READ, DEVICE_COUNT_DRAM_WRITTEN } },
    { { "dram__bytes_op_read.sum", "dram__bytes_op_write.sum" },
      { DEVICE_COUNT_DRAM_READ, DEVICE_COUNT_DRAM_WRITTEN } },
    { { "sm__warps_active.sum", "sm__cycles_active.sum" },
      { DEVICE_COUNT_WARPS, DEVICE_COUNT_CYCLES } },
};
#define GROUPS (sizeof(groups) / sizeof(*groups))

static size_t group_size(const Group *g)
{
    size_t count = 0;

    while (count < 3 && g->names[count])
        count++;
    return count;
}

static int host_open(const char *chip, const uint8_t *availability,
                     CUpti_Profiler_Host_Object **out)
{
    CUPTI_BLOCK_TO(CUpti_Profiler_Host_Initialize, init, pHostObject);
    CUptiResult code;

    init.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    init.pChipName = chip;
    init.pCounterAvailabilityImage = availability;
    code = cupti_library()->cuptiProfilerHostInitialize(&init);
    *out = code == CUPTI_SUCCESS ? init.pHostObject : NULL;
    return *out ? 0 : cupti_refused("cuptiProfilerHostInitialize", code);
}

static void host_close(CUpti_Profiler_Host_Object *host)
{
    CUPTI_BLOCK(CUpti_Profiler_Host_Deinitialize, close);

    close.pHostObject = host;
    if (host)
        cupti_library()->cuptiProfilerHostDeinitialize(&close);
}

static CUptiResult host_add(CUpti_Profiler_Host_Object *host, const char *const *names,
                            size_t count)
{
    CUPTI_BLOCK(CUpti_Profiler_Host_ConfigAddMetrics, add);
    const char *wanted[METRICS_MOST];

    memcpy(wanted, names, count * sizeof(*wanted));
    add.pHostObject = host;
    add.ppMetricNames = wanted;
    add.numMetrics = count;
    return cupti_library()->cuptiProfilerHostConfigAddMetrics(&add);
}

/* A host object that refused a name accepts no other, so each group is tried with a new one. */
static bool chip_has(const char *chip, const uint8_t *availability, const Group *g)
{
    CUpti_Profiler_Host_Object *host;
    bool                        has = !host_open(chip, availability, &host) &&
               host_add(host, g->names, group_size(g)) == CUPTI_SUCCESS;

    host_close(host);
    return has;
}

static bool is_planned(const MetricPlan *plan, DeviceCount count)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->counts[i] == count)
            return true;
    return false;
}

static void choose(const char *chip, const uint8_t *availability, MetricPlan *plan)
{
    for (size_t g = 0; g < GROUPS; g++) {
        if (is_planned(plan, groups[g].counts[0]) || !chip_has(chip, availability, &groups[g]))
            continue;
        for (size_t i = 0; i < group_size(&groups[g]); i++) {
            plan->names[plan->count] = groups[g].names[i];
            plan->counts[plan->count++] = groups[g].counts[i];
        }
    }
}

static int make_config(MetricPlan *plan)
{
    CUPTI_BLOCK(CUpti_Profiler_Host_GetConfigImageSize, size);
    CUPTI_BLOCK(CUpti_Profiler_Host_GetConfigImage, image);
    CUPTI_BLOCK(CUpti_Profiler_Host_GetNumOfPasses, passes);
    int refused;

    size.pHostObject = plan->host;
    if (CUPTI_CALL(cuptiProfilerHostGetConfigImageSize, size))
        return -1;
    plan->config_size = size.configImageSize;
    plan->config = calloc(1, plan->config_size);
    if (!plan->config)
        return cupti_refuse("not enough memory for the counters' configuration");
    image.pHostObject = plan->host;
    image.configImageSize = plan->config_size;
    image.pConfigImage = plan->config;
    if (CUPTI_CALL(cuptiProfilerHostGetConfigImage, image))
        return -1;
    passes.configImageSize = plan->config_size;
    passes.pConfigImage = plan->config;
    refused = CUPTI_CALL(cuptiProfilerHostGetNumOfPasses, passes);
    plan->passes = passes.numOfPasses;
    return refused;
}

/* availability NULL: assumes that all counters are free.  Free the plan also after a refusal. */
static int metrics_plan(const char *chip, const uint8_t *availability, MetricPlan *out)
{
    CUptiResult code;

    *out = (MetricPlan){ 0 };
    if (!cupti_library() || host_open(chip, availability, &out->host))
        return -1;
    choose(chip, availability, out);
    if (!out->count)
        return cupti_refuse("%s has none of the metrics asked for", chip);
    code = host_add(out->host, out->names, out->count);
    return code == CUPTI_SUCCESS ? make_config(out)
                                 : cupti_refused("cuptiProfilerHostConfigAddMetrics", code);
}

static void metrics_free(MetricPlan *plan)
{
    host_close(plan->host);
    free(plan->config);
    *plan = (MetricPlan){ 0 };
}

int metrics_of_chip(const char *chip, DevicePlan *out)
{
    MetricPlan plan;
    int        refused = metrics_plan(chip, NULL, &plan);

    *out = (DevicePlan){ .passes = refused ? 0 : (int)plan.passes };
    for (size_t i = 0; !refused && i < plan.count; i++)
        out->has[plan.counts[i]] = true;
    metrics_free(&plan);
    return refused;
}
