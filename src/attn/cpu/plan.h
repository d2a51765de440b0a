/* attn/cpu/plan.h -- which tiles a block of queries needs, from the pattern's rows.
 *
 * Rows become bit masks of 64-key panels; only panels that a row touches are
 * stored or looked at, so a window costs the same at every n.  Each tile
 * (TILE_ROWS rows of one panel) is classed by what it is worth computing as.
 */
#ifndef ATTN_CPU_PLAN_H
#define ATTN_CPU_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cpu/kernel.h"
#include "attn/cpu/phases.h"
#include "attn/pattern/pattern.h"

/* A tile with fewer cells than this is cheaper cell by cell: a cell costs four
 * to five times more alone than inside a tile of 384. */
#define SPARSE_CELLS 72

typedef enum TileKind {
    TILE_NONE,
    TILE_FULL,   /* every cell of every real row */
    TILE_MASKED, /* some */
    TILE_SPARSE, /* so few that they are computed one by one */
} TileKind;

/* Which runs of a row are planned; the rest is left to another pass. */
typedef enum RunPart {
    RUNS_ALL,
    RUNS_OF_STEP, /* those of the keys' step */
    RUNS_BUT_STEP, /* all but those of step `other` */
} RunPart;

typedef struct Plan {
    Phases    row_order, key_order;       /* rows and keys below are places in these */
    RunPart   part;
    int64_t   other;
    int64_t   keys, panels, capacity;     /* capacity: rows, a multiple of TILE_ROWS */
    int64_t   first, rows, groups;        /* of the block planned last */
    int64_t   head;                       /* it was planned for; -1: nothing planned */
    int64_t   low, high;                  /* panels touched lie in [low, high) */
    uint8_t  *seen;                       /* [panels] */
    int32_t  *touched;                    /* [panels] the panels in use, increasing */
    int64_t   count;
    bool      sparse;                     /* some tile is TILE_SPARSE */
    double    cells;                      /* allowed cells of the block */
    uint64_t *keep;                       /* [panels][capacity] */
    uint8_t  *kind;                       /* [panels][capacity / TILE_ROWS] by place in touched */
    PatternRow row;                       /* heap; plan_free */
} Plan;

/* What some rows spread over the sequence, and over the heads, hold; means over them without
 * the fullest. */
typedef struct Typical {
    double  cells;
    double  stepped; /* those in runs of `step`, less those of other steps */
    double  single;  /* those in runs of one key */
    double  runs;
    int64_t step;    /* the first that is not 1; 1: none is */
    bool    failed;  /* no memory for a row's runs */
} Typical;

Typical plan_typical(const Pattern *pattern, int64_t heads, int64_t rows);

/* False when the arena is out of memory. */
bool plan_init(Plan *plan, Arena *arena, int64_t keys, int64_t capacity);
void plan_free(Plan *plan);
/* The order and the part of what is planned from here on; after plan_init it is all runs in
 * the order of the sequence. */
void plan_order(Plan *plan, int64_t rows, int64_t step, RunPart part, int64_t other);
/* Plans `rows` rows from `first` of `head`.  False: no memory for a row's runs. */
bool plan_make(Plan *plan, const Pattern *pattern, int64_t head, int64_t first, int64_t rows);

static inline const uint64_t *plan_keep(const Plan *plan, int64_t panel, int64_t group)
{
    return plan->keep + panel * plan->capacity + group * TILE_ROWS;
}

/* `place` counts in touched. */
static inline TileKind plan_kind(const Plan *plan, int64_t place, int64_t group)
{
    return (TileKind)plan->kind[place * (plan->capacity / TILE_ROWS) + group];
}

#endif
