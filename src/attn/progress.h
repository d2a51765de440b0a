/* attn/progress.h -- how much of a run is done, for whoever waits for it.
 *
 * The share is counted: FLOPs done over the FLOPs of the closed form, which was asked for before
 * the run (the position's own are in neither).  Operations that take long tell as they go what
 * they have done, others when they end.  A mechanism that knows better says its share itself.
 *
 * The run's threads write and another one reads; the numbers only ever grow.
 */
#ifndef ATTN_PROGRESS_H
#define ATTN_PROGRESS_H

#include <stdatomic.h>

typedef struct RunProgress {
    _Atomic(const char *) stage; /* static, or as long as the script; "" between stages */
    atomic_llong planned; /* FLOPs; 0: not known beforehand */
    atomic_llong done;
    atomic_llong ahead;   /* of these, told by an operation that has not ended */
    _Atomic double told;  /* by the mechanism, 0..1; < 0: it says nothing */
} RunProgress;

static inline void progress_begin(RunProgress *p, double planned)
{
    atomic_store(&p->done, 0);
    atomic_store(&p->ahead, 0);
    atomic_store(&p->told, -1.0);
    atomic_store(&p->planned, planned < 1e18 ? (long long)planned : 0);
}

/* Some work of an operation that goes on; any thread. */
static inline void progress_ahead(RunProgress *p, double flops)
{
    atomic_fetch_add_explicit(&p->ahead, (long long)flops, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->done, (long long)flops, memory_order_relaxed);
}

/* Work that has ended, what was told ahead of it included; the run's thread. */
static inline void progress_charge(RunProgress *p, double flops)
{
    long long all = (long long)flops, ahead = atomic_load(&p->ahead);
    long long told = ahead < all ? ahead : all;

    atomic_store(&p->ahead, ahead - told);
    atomic_fetch_add(&p->done, all - told);
}

/* From 0 to 1; < 0: not known. */
static inline double progress_share(const RunProgress *p)
{
    double told = atomic_load(&p->told);
    double planned = (double)atomic_load(&p->planned), done = (double)atomic_load(&p->done);

    if (told >= 0)
        return told;
    return planned > 0 && done <= 1.001 * planned ? (done < planned ? done / planned : 1) : -1;
}

#endif
