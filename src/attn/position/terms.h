/* attn/position/terms.h -- what several positional modifiers share.
 *
 * What depends on positions alone (sinusoids, turns, lists of distances) a model makes once and
 * keeps: it is made in preparation (run_prepare), apart from what runs are timed for.
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

/* base^(2t/width) for t < count: what a position is divided by to give an angle. */
double *position_periods(Run *r, double base, int64_t width, int64_t count);

/* fn of each row, in blocks, shared out to the run's threads. */
typedef void (*PositionRowFn)(const void *context, int64_t i);
void position_rows(Run *r, int64_t rows, PositionRowFn fn, const void *context);

/* f32 [1,rows,width]: amplitude * PE(first + i), computed in double and rounded at the end.
 * PE: Vaswani et al. 2017, section 3.5; concat: all sines before the cosines. */
typedef struct Sinusoids {
    int64_t rows, width, first;
    double  base, amplitude;
    bool    concat;
} Sinusoids;
Tensor position_sinusoids(Run *r, const Sinusoids *in);

/* f32 [h,n,d]: x [h,n,d] + by, of which an axis of extent 1 repeats; one operation an entry. */
Tensor position_added(Run *r, Tensor x, Tensor by);

/* [entries]: fn of the distance of each. */
typedef int64_t (*PositionIndexFn)(const void *context, int64_t distance);
int32_t *position_index(Run *r, const AttendInput *in, PositionIndexFn fn, const void *context);

/* A view [h,n,m] of one term of the scores: those of `with`, less those of `without`
 * (NULL: all of them).  Only the first of a name, where a mechanism asks for its
 * position more than once. */
void position_show_term(Run *r, const char *name, const AttendInput *with,
                        const AttendInput *without);
/* A view [n,m] of the category (bucket) of each entry's distance. */
void position_show_buckets(Run *r, const char *name, const AttendInput *in, const int32_t *at);

#endif
