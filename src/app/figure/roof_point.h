/* app/figure/roof_point.h -- a stage's place in a roofline. */
#ifndef APP_FIGURE_ROOF_POINT_H
#define APP_FIGURE_ROOF_POINT_H

#include "attn/ceilings.h"
#include "profile/record.h"

typedef struct RoofPoint {
    Number flops, bytes, time_ms;
    Number intensity; /* FLOPs to a byte */
    Number rate;      /* FLOPs a second */
    Number roof;      /* the most there can be at that intensity */
} RoofPoint;

/* The record is of the device whose ceilings they are. */
bool roof_is_of(const Ceilings *ceilings, const Record *record);
/* On a GPU by the best tier there is: the time of its kernels, or of the stage on its clock;
 * FLOPs and bytes of DRAM by its counters, else as they were counted.  No roof where
 * ceilings are NULL or another device's. */
RoofPoint roof_point(const Record *record, int stage, const Ceilings *ceilings);
/* FLOPs and bytes of its points are the hardware's: its counters know all that was done, those of
 * the tensor cores too where these took part. */
bool roof_by_counters(const Record *record);
/* Where the numbers of a record's points are from, in words, static. */
const char *roof_point_source(const Record *record);

#endif
