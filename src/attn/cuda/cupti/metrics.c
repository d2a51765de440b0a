/* cupti/metrics.c -- see metrics.h. */
#include "attn/cuda/cupti/metrics.h"

#include <stdlib.h>
#include <string.h>

#define SASS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"
#define TENSOR(types) "sm__ops_path_tensor_src_" types ".sum"

/* Chips differ in names: of groups for the same count the first that a chip has is used. */
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

/* A host object that refused a name takes no other, so each group has one of its own. */
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
    const CuptiLibrary *c = cupti_library();
    CUptiResult         code;
    CUPTI_BLOCK(CUpti_Profiler_Host_GetConfigImageSize, size);
    CUPTI_BLOCK(CUpti_Profiler_Host_GetConfigImage, image);
    CUPTI_BLOCK(CUpti_Profiler_Host_GetNumOfPasses, passes);

    size.pHostObject = plan->host;
    code = c->cuptiProfilerHostGetConfigImageSize(&size);
    if (code != CUPTI_SUCCESS)
        return cupti_refused("cuptiProfilerHostGetConfigImageSize", code);
    plan->config_size = size.configImageSize;
    plan->config = calloc(1, plan->config_size);
    if (!plan->config)
        return cupti_refuse("not enough memory for the counters' configuration");
    image.pHostObject = plan->host;
    image.configImageSize = plan->config_size;
    image.pConfigImage = plan->config;
    code = c->cuptiProfilerHostGetConfigImage(&image);
    if (code != CUPTI_SUCCESS)
        return cupti_refused("cuptiProfilerHostGetConfigImage", code);
    passes.configImageSize = plan->config_size;
    passes.pConfigImage = plan->config;
    code = c->cuptiProfilerHostGetNumOfPasses(&passes);
    plan->passes = passes.numOfPasses;
    return code == CUPTI_SUCCESS ? 0 : cupti_refused("cuptiProfilerHostGetNumOfPasses", code);
}

int metrics_plan(const char *chip, const uint8_t *availability, MetricPlan *out)
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

void metrics_free(MetricPlan *plan)
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
