/* attn/position/terms.h -- what several positional modifiers share.
 *
 * Sinusoids, rotations and lists of distances depend on positions alone; a model computes them
 * once. So they are computed in preparation (run_prepare), which is not part of the timed run.
 *
 * A bias that depends on the distance alone is one number per entry x of a list
 * of n + m - 1 entries, x = i - j + m - 1 (attn/ops/ops.h).  The distance of an
 * entry is p_i - j, where p_i = i + q_offset is the position of query i.
 */
#ifndef ATTN_POSITION_TERMS_H
#define ATTN_POSITION_TERMS_H

#include "attn/run.h"

static inline int64_t position_entries(const AttendInput *in)
{
    return in->q.shape[1] + in->k.shape[1] - 1;
}

/* p_i - j of entry x. */
static inline int64_t position_distance(const Run *r, const AttendInput *in, int64_t x)
{
    return x - (in->k.shape[1] - 1) + r->q_offset;
}

/* base^(2t/width) for t < count; angle = position / period. */
double *position_periods(Run *r, double base, int64_t width, int64_t count);

/* Calls fn for each row, in blocks, on the run's threads. */
typedef void (*PositionRowFn)(const void *context, int64_t i);
void position_rows(Run *r, int64_t rows, PositionRowFn fn, const void *context);

/* f32 [1,rows,width]: amplitude * PE(first + i), computed in double and rounded at the end.
 * PE: Vaswani et al. 2017, section 3.5; concat: all sines before the cosines. */
typedef struct Sinusoids {
    int64_t rows, width, first;
    const int32_t *at; /* row i is of position first + at[i]; NULL: first + i */
    double  base, amplitude;
    bool    concat;
} Sinusoids;
Tensor position_sinusoids(Run *r, const Sinusoids *in);

/* f32 [h,n,d]: x [h,n,d] + by, whose axes of extent 1 are repeated; charges one FLOP per entry. */
Tensor position_added(Run *r, Tensor x, Tensor by);

/* [entries]: fn(distance) of each entry. */
typedef int64_t (*PositionIndexFn)(const void *context, int64_t distance);
int32_t *position_index(Run *r, const AttendInput *in, PositionIndexFn fn, const void *context);

/* The distances that the run's position_cells need, or all. */
typedef struct Distances {
    int32_t *row;   /* [entries]: place of each entry in the list; 0 where it is not needed */
    int32_t *entry; /* [count]: the list, rising */
    int64_t  count; /* 1 at least, so that a table has a row */
    bool     none;  /* no cell needs a distance */
} Distances;
Distances position_distances(Run *r, const AttendInput *in);

/* A view [h,n,m] of one term of the scores: the scores of `with` minus those of `without` (NULL:
 * 0). Does nothing when a view of this name exists: a mechanism may apply its position twice. */
void position_show_term(Run *r, const char *name, const AttendInput *with,
                        const AttendInput *without);
/* A view [n,m] of the category (bucket) of each entry's distance. */
void position_show_buckets(Run *r, const char *name, const AttendInput *in, const int32_t *at);

#endif
