/* profile/measure_parts.h -- a measurement under way; for the measure files. */
#ifndef PROFILE_MEASURE_PARTS_H
#define PROFILE_MEASURE_PARTS_H

#include "attn/cuda/graph.h"
#include "profile/device_watch.h"
#include "profile/measure.h"
#include "profile/watch.h"

typedef struct Measurement {
    RunSpec     spec;     /* with our observer, without views */
    Assignments given;    /* owned copy */
    MeasurePlan plan;
    Watch       watch;
    Record     *out;
    double      began;    /* clock_wall */
    double      timed;    /* seconds in timed runs so far */
    double     *cpu_ms;   /* one per sample; owned */
    int64_t     switches; /* of all samples */
    double     *stage_ms; /* [sample][stage]; owned */
    DeviceWatch *gpu;     /* NULL: on the CPU */
    MemoryTrace trace;    /* of the last run that looked at memory */
    int         capacity; /* samples there is room for */
    int         staged;   /* samples whose stages were timed: replays have none */
    DeviceGraph graph;
} Measurement;

/* The budget has room for one more run as long as the last. */
bool measure_time_left(const Measurement *m);
/* Nothing more is learned by repeating, or the budget ends. */
bool measure_enough(const Measurement *m);
/* What the watch has seen of a run, stages apart. */
bool measure_add_times(Measurement *m, Error *err);

/* The GPU's own numbers: of the timed runs, and where there is `more`, of a traced one and of
 * counted ones.  The budget of these is max_seconds once more, because repeating for a width
 * uses up the first. */
void measure_device(Measurement *m, bool more);
/* Replays in place of the timed runs, where the device wants graphs; false: no memory. */
bool measure_graph(Measurement *m, Arena *arena, Error *err);

#endif
