/* fake_counters.c -- CUPTI's range profiler and its host as their headers describe them; see
 * fake.c.
 *
 * It is stricter than CUPTI where its documents say nothing and a real one might mind: a session is
 * closed in the order it was opened in, no activity is recorded while counters are on, and a host
 * object that refused a name is not used again.
 */
#include "fake_parts.h"

#include "attn/cuda/cupti/library.h"

#include <stdlib.h>
#include <string.h>

#define PASSES 3
#define RANGES_MOST 2000
#define METRICS 64

static struct {
    bool     initialised, enabled, configured, started, decoded;
    int      pass, inside, ranges, most;
    char     names[RANGES_MOST + 1][16];
    const char *metrics[METRICS];
    size_t   metric_count;
} now;

bool fake_counters_on(void)
{
    return now.enabled;
}

void fake_counters_reset(void)
{
    memset(&now, 0, sizeof(now));
}

/* ---- the profiler's host ----------------------------------------------------------------- */

typedef struct CUpti_Profiler_Host_Object {
    bool   refused;
    size_t count;
} Host;

/* As 13.0 has it: what is longer is unknown to it. */
#define CHECK_BLOCK(type, last)                                                                \
    if (!must(p && p->structSize == CUPTI_PROFILER_STRUCT_SIZE(type, last) && !p->pPriv,       \
              #type " has the size of 13.0 and no private part"))                              \
        return CUPTI_ERROR_INVALID_PARAMETER

CUptiResult cuptiProfilerHostGetSupportedChips(CUpti_Profiler_Host_GetSupportedChips_Params *p)
{
    (void)p;
    return CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_Host_Initialize_Params, pHostObject);
    must(p->profilerType == CUPTI_PROFILER_TYPE_RANGE_PROFILER, "the host is of ranges");
    if (!p->pChipName || strcmp(p->pChipName, "GH100"))
        return CUPTI_ERROR_INVALID_PARAMETER;
    p->pHostObject = calloc(1, sizeof(Host));
    fake.hosts++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
    free(p->pHostObject);
    fake.hosts--;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);
    must(!p->pHostObject->refused, "a host object that refused a name is not used again");
    for (size_t i = 0; i < p->numMetrics; i++) {
        p->pHostObject->refused |= strstr(p->ppMetricNames[i], "_op_write") ||
                                   strstr(p->ppMetricNames[i], "fp16_dst");
        now.metrics[i % METRICS] = p->ppMetricNames[i];
    }
    now.metric_count = p->pHostObject->count = p->numMetrics;
    return p->pHostObject->refused ? CUPTI_ERROR_INVALID_METRIC_NAME : CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);
    p->configImageSize = 100;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
    must(p->configImageSize == 100 && p->pConfigImage, "an image has its size");
    memset(p->pConfigImage, 'c', 100);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
    p->numOfPasses = PASSES;
    return CUPTI_SUCCESS;
}

/* A metric's place among those that were configured, and 100 times the range's number. */
CUptiResult
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    const char *name;

    CHECK_BLOCK(CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);
    name = now.names[now.ranges - 1 - (int)p->rangeIndex];
    must(now.decoded && p->pHostObject && p->numMetrics == p->pHostObject->count,
         "values are of decoded data, and of what was configured");
    for (size_t i = 0; i < p->numMetrics; i++) {
        must(!strcmp(p->ppMetricNames[i], now.metrics[i]), "metrics stay as they were configured");
        p->pMetricValues[i] = (double)i + 100 * atof(name);
    }
    return CUPTI_SUCCESS;
}

/* ---- the profiler ------------------------------------------------------------------------- */

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_Initialize_Params, pPriv);
    must(!fake_activity_on(), "activity is off while counters are on");
    must(!now.initialised, "the profiler is initialised once");
    now.initialised = true;
    fake.open++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_DeInitialize_Params, pPriv);
    must(now.initialised && !now.enabled, "ranges are disabled before the profiler ends");
    now.initialised = false;
    fake.open--;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_DeviceSupported_Params, api);
    must(p->api == CUPTI_PROFILER_RANGE_PROFILING, "asked for ranges");
    p->isSupported = p->architecture = p->sli = p->vGpu = p->confidentialCompute =
        CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    CHECK_BLOCK(CUpti_Device_GetChipName_Params, pChipName);
    p->pChipName = "GH100";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    CHECK_BLOCK(CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage);
    must(p->ctx && now.initialised && !now.enabled, "asked before ranges are enabled");
    if (p->pCounterAvailabilityImage)
        must(p->counterAvailabilityImageSize == 50, "the image has the size that was told");
    p->counterAvailabilityImageSize = 50;
    return CUPTI_SUCCESS;
}

static struct CUpti_RangeProfiler_Object *const object =
    (struct CUpti_RangeProfiler_Object *)(uintptr_t)0x100;

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
    must(p->ctx && now.initialised && !now.enabled, "enabled once, for a context");
    if (fake.enable)
        return (CUptiResult)fake.enable;
    now.enabled = true;
    p->pRangeProfilerObject = object;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject);
    must(now.enabled && p->pRangeProfilerObject == object, "what is disabled was enabled");
    must(!now.started && !now.inside, "a pass is stopped before ranges are disabled");
    now.enabled = now.configured = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
    must(now.enabled && p->pRangeProfilerObject == object && p->numMetrics == now.metric_count &&
             p->maxNumRangeTreeNodes >= p->maxNumOfRanges && p->maxNumOfRanges,
         "room is asked for as many metrics and ranges as there are");
    p->counterDataSize = 1000 + 8 * p->maxNumOfRanges;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);
    must(p->pCounterData && p->counterDataSize > 1000, "the image has room");
    memset(p->pCounterData, 'd', p->counterDataSize);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);
    must(now.enabled && p->pRangeProfilerObject == object && p->configSize == 100 &&
             p->pConfig[99] == 'c' && p->pCounterDataImage[p->counterDataImageSize - 1] == 'd',
         "images are made before they are used");
    must(p->range == CUPTI_UserRange && p->replayMode == CUPTI_UserReplay && !p->passIndex &&
             p->minNestingLevel == 1 && p->numNestingLevels == 1, "one level of ranges of ours");
    if (fake.config || p->maxRangesPerPass > RANGES_MOST)
        return fake.config ? (CUptiResult)fake.config : CUPTI_ERROR_INVALID_OPERATION;
    now.most = (int)p->maxRangesPerPass;
    now.configured = true;
    now.decoded = false;
    now.pass = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
    must(now.configured && !now.started && now.pass < PASSES, "a pass starts while some are left");
    now.started = true;
    now.ranges = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_PushRange_Params, pRangeName);
    must(now.started && !now.inside && p->pRangeName && now.ranges < now.most,
         "ranges are in a pass, in no other range, and as many as were told");
    for (int i = 0; i < now.ranges; i++)
        must(strcmp(now.names[i], p->pRangeName), "ranges have names of their own");
    strncpy(now.names[now.ranges++], p->pRangeName, sizeof(now.names[0]) - 1);
    now.inside++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_PopRange_Params, pRangeProfilerObject);
    must(now.inside == 1, "what is popped was pushed");
    now.inside = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
    must(now.started && !now.inside, "a pass is stopped once, with no range open");
    now.started = false;
    p->isAllPassSubmitted = ++now.pass >= PASSES;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);
    must(!now.started && now.pass == PASSES, "data are decoded after the last pass");
    now.decoded = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);
    p->numTotalRanges = (size_t)now.ranges;
    return CUPTI_SUCCESS;
}

/* The last range first: nothing says in which order they come. */
CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *p)
{
    CHECK_BLOCK(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeName);
    must(p->rangeDelimiter && p->rangeIndex < (size_t)now.ranges, "a range that there is");
    p->rangeName = now.names[now.ranges - 1 - (int)p->rangeIndex];
    return CUPTI_SUCCESS;
}
