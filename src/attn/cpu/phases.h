/* attn/cpu/phases.h -- positions in the order of their phase, place mod step.
 *
 * Keys a step apart, and the queries that see them, lie side by side in this order, so
 * what is a comb in the sequence is a solid block in it.  Step 1: the sequence itself.
 */
#ifndef ATTN_CPU_PHASES_H
#define ATTN_CPU_PHASES_H

#include <stdint.h>

typedef struct Phases {
    int64_t step, count; /* count: positions in all */
} Phases;

/* Where position j stands. */
static inline int64_t phases_place(Phases p, int64_t j)
{
    int64_t phase = j % p.step, longer = p.count % p.step;

    if (p.step == 1)
        return j;
    return phase * (p.count / p.step) + (phase < longer ? phase : longer) + j / p.step;
}

/* Which position stands there. */
static inline int64_t phases_position(Phases p, int64_t place)
{
    int64_t size = p.count / p.step, longer = p.count % p.step, phase;

    if (p.step == 1)
        return place;
    if (place < longer * (size + 1))
        phase = place / (size + 1);
    else
        phase = (place - longer) / size;
    return phase + p.step * (place - phase * size - (phase < longer ? phase : longer));
}

#endif
