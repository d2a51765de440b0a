/* profile/device_profile.h -- what a GPU reports of a run, every number with its tier.
 *
 *   events    spans on the device's own clock, in the timed runs themselves
 *   activity  one more run, traced: kernels, copies, allocations
 *   counters  as many runs as there are passes: what the hardware counted
 *
 * A missing tier leaves its numbers not valid and the reason in `lacks`; the rest of the record is
 * valid.  Units: milliseconds, bytes, operations.
 */
#ifndef PROFILE_DEVICE_PROFILE_H
#define PROFILE_DEVICE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/cuda/profiling.h"
#include "core/text.h"

/* A measured number, or none: "not measured" is never 0. */

typedef struct Number {
    double value;
    bool   valid;
} Number;

static inline Number number_of(double value)
{
    return (Number){ .value = value, .valid = true };
}

static inline double number_or_nan(Number n)
{
    return n.valid ? n.value : (double)__builtin_nan("");
}

#define NUMBER_NONE ((Number){ .valid = false })

typedef enum DeviceTier { TIER_EVENTS, TIER_ACTIVITY, TIER_COUNTERS, DEVICE_TIERS } DeviceTier;

/* By the counters. */
typedef struct DeviceCounted {
    Number flops;          /* fp32, fp64 and tensor together */
    Number fp32, fp64;     /* a fused multiply-add is 2 */
    Number tensor;         /* of matrix instructions, masked and padded parts included */
    Number fused;          /* of fused multiply-adds and matrix instructions alone */
    Number dram_read, dram_written;
    Number occupancy;      /* warps on a busy multiprocessor, as a share of what it holds */
} DeviceCounted;

typedef struct DeviceStage {
    Number span_ms;   /* events: from its beginning to its end */
    Number busy_ms;   /* activity: its kernels, summed */
    Number copy_ms;   /* activity */
    Number launches;  /* activity */
    DeviceCounted counted;
} DeviceStage;

/* Launches of one kernel with one shape in stages of one name; by activity. */
typedef struct DeviceKernelRow {
    char    name[96];   /* as its source has it: "attend_f32<false>" */
    char    mangled[160];
    int     stage;      /* the first of that name; -1: before the first */
    int64_t launches;
    double  total_ms, least_ms, most_ms;
    int32_t grid[3], block[3];
    int32_t registers;  /* -1: unknown */
    int64_t shared, local; /* local -1: unknown */
} DeviceKernelRow;

typedef struct DeviceCopies {
    int64_t count, bytes;
    double  ms;
} DeviceCopies;

/* Whether the timed runs were replays of a CUDA graph (attn/cuda/host/graph.h); stages and all
 * tiers are then of runs without the graph. */
typedef struct DeviceGraph {
    bool   asked;           /* ATTNSCOPE_GRAPHS */
    bool   replayed;
    char   why[192];        /* there was no replay; "": there was */
    Number plain_ms;        /* a run without it, median */
} DeviceGraph;

#define DEVICE_SPANS 4096 /* launches, and copies, whose place in time is kept */

typedef struct DeviceSpan {
    int    row, stage;          /* of kernels, or a DeviceCopyKind; of the record's stages, -1:
                                   before the first */
    double start_ms, end_ms;    /* since the traced run began */
} DeviceSpan;

typedef struct DeviceProfile {
    char   name[96];            /* of the GPU */
    char   source[64];          /* of the numbers: "CUPTI 13.0" */
    char   lacks[DEVICE_TIERS][256]; /* why a tier was not reached; "": it was */
    DeviceGraph graph;
    Number span_ms;             /* events: of a run, median */
    Number busy_ms, copy_ms;    /* activity */
    Number allocated;           /* activity: most bytes taken at once since the run began */
    DeviceCopies  copies[DEVICE_COPY_KINDS];
    DeviceCounted counted;      /* of the whole run */
    int           passes;       /* runs it took; 0: none */
    DeviceStage     *stages;    /* owned; as many as the record has */
    DeviceKernelRow *kernels;   /* owned; most time first */
    DeviceSpan      *spans;     /* owned; in order of their start */
    DeviceSpan      *copy_spans; /* owned; copies, in order of their records */
    int           stage_count, kernel_count, span_count, copy_span_count;
    int64_t       launches;     /* in all, of which span_count have a place in time */
    int64_t       dropped;      /* records the tracer lost: the numbers are then too small */
} DeviceProfile;

const char *device_tier_name(DeviceTier tier); /* "events" */
const char *device_copy_name(DeviceCopyKind kind); /* "host to device" */
/* Nothing of the tier is missing. */
bool        device_reached(const DeviceProfile *profile, DeviceTier tier);
/* The part of the span of a stage, or of the run (-1), in which neither kernel nor copy ran: the
 * host's loops, launches and waits.  Not valid without both tiers; profile may be NULL. */
Number      device_idle_ms(const DeviceProfile *profile, int stage);
Number      device_idle_share(const DeviceProfile *profile, int stage);

DeviceProfile *device_profile_new(int stages); /* NULL: no memory; all of it not measured */
void           device_profile_free(DeviceProfile *profile);
/* "264", "32x8", "16x16x2": of blocks or threads. */
const char *device_size_text(const int32_t size[3], char *text, size_t room);

/* A trace's records and ranges' counters, summed up by stage. */

/* Kernels, copies, allocations of the whole run and of each stage; false: no memory.
 * first[i]: the first stage of the name of stage i, whose rows of kernels it shares. */
bool device_sum_trace(const DeviceTrace *trace, const int *first, DeviceProfile *out);
/* stage_of[i]: the stage range i lies in, -1 before the first. */
void device_sum_counts(const DeviceRange *ranges, const int *stage_of, int count, int passes,
                       DeviceProfile *out);

/* A kernel's name as its source has it. */

/* "_Z10attend_f32ILb0EEvPKf" -> "attend_f32<false>": the name with its template arguments, as
 * far as they are numbers, truths and plain types; what is no mangled name stays. */
void kernel_name_text(const char *mangled, char *text, size_t size);

/* Its kernels as a table of so many columns, `most` at most; name_of(context, i) names a stage. */
void device_kernels_text(const DeviceProfile *profile, int width, int most,
                         const char *(*name_of)(const void *context, int stage),
                         const void *context, Text *out);

#endif
