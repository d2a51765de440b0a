/* grid_tally.c -- the majority category of each cell of a band.
 *
 * Counts stand in a hash table keyed by (cell, category) that grows with the
 * number of pairs seen, so neither the number of categories nor their size
 * matters.  Ties go to the smaller category, whatever the order of reading.
 */
#include "draw/grid/job.h"

#include <stdlib.h>

static GridTally *find(GridTally *tallies, int64_t capacity, int32_t cell, int32_t category)
{
    uint64_t hash = ((uint64_t)(uint32_t)cell << 32 | (uint32_t)category) * 0x9E3779B97F4A7C15u;
    int64_t  at = (int64_t)(hash >> 20) & (capacity - 1);

    while (tallies[at].cell >= 0 &&
           (tallies[at].cell != cell || tallies[at].category != category))
        at = (at + 1) & (capacity - 1);
    return &tallies[at];
}

static bool grow(GridWorker *w)
{
    int64_t    capacity = w->tally_capacity ? 2 * w->tally_capacity : 1024;
    GridTally *tallies = malloc((size_t)capacity * sizeof(*tallies));

    if (!tallies)
        return false;
    for (int64_t k = 0; k < capacity; k++)
        tallies[k] = (GridTally){ .cell = -1 };
    for (int64_t k = 0; k < w->tally_capacity; k++) {
        GridTally *old = &w->tallies[k];

        if (old->cell >= 0)
            *find(tallies, capacity, old->cell, old->category) = *old;
    }
    free(w->tallies);
    w->tallies = tallies;
    w->tally_capacity = capacity;
    return true;
}

void grid_tally(GridJob *job, GridWorker *w, int64_t cell, int32_t category, int64_t count)
{
    GridTally *tally;

    if (2 * w->tally_used >= w->tally_capacity && !grow(w)) {
        atomic_store(&job->failed, true);
        return;
    }
    tally = find(w->tallies, w->tally_capacity, (int32_t)cell, category);
    if (tally->cell < 0) {
        *tally = (GridTally){ .cell = (int32_t)cell, .category = category };
        w->tally_used++;
    }
    tally->count += count;
}

void grid_tally_settle(GridWorker *w, GridCell *cells)
{
    for (int64_t k = 0; k < w->tally_capacity; k++) {
        GridTally *tally = &w->tallies[k];
        GridCell  *cell;
        double     best, count = (double)tally->count;

        if (tally->cell < 0)
            continue;
        cell = &cells[tally->cell];
        best = (double)cell->purity; /* the count of the best so far, until the end */
        cell->count += count;
        cell->sum += count * tally->category;
        if (!cell->any || count > best || (count >= best && tally->category < cell->category)) {
            cell->purity = (float)tally->count;
            cell->category = tally->category;
        }
        cell->min = !cell->any || (float)tally->category < cell->min ? (float)tally->category
                                                                     : cell->min;
        cell->max = !cell->any || (float)tally->category > cell->max ? (float)tally->category
                                                                     : cell->max;
        cell->any = true;
        tally->cell = -1;
    }
    w->tally_used = 0;
}
