/* attn/cpu/attend.h -- attention over a pattern: a plan of its tiles, blocks of queries
 * with their online softmax, the terms of a position, the job and its workers' memory.
 */
#ifndef ATTN_CPU_ATTEND_H
#define ATTN_CPU_ATTEND_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"
#include "attn/ops/ops.h"
#include "attn/pattern/pattern.h"
#include "core/arena.h"

/* The state of an online softmax over a block of queries.
 *
 * Life of a block: block_begin, block_query for each row, then for each step
 * block_score for the tiles of every group (TILE_ROWS rows), block_soften and
 * block_mix; block_end, and then block_row gives a row's output and log-sum-exp.  A
 * group fills its own slots of the step, so unneeded tiles are neither computed
 * nor stored.
 */

#define STEP_PANELS 4 /* panels scored before their weights are used */

/* Columns [from, to) of a tile. */
typedef struct Span {
    int32_t from, to;
} Span;

typedef struct Block {
    const Kernel *kernel;
    int64_t       d, e;
    int64_t       groups;           /* TILE_ROWS rows each; all hold `capacity` rows */
    int64_t       lds, lda;
    float        *q;                /* [capacity][d] scaled into base 2 */
    float        *s;                /* [capacity][lds] scores, then weights */
    float        *acc;              /* [capacity][lda] */
    float        *max, *sum, *factor; /* [capacity] */
    float        *lse;                /* [capacity] set by block_end */
    float        *top;              /* [capacity][LANES] */
    int32_t      *slots;            /* [groups] tiles of this step */
    int32_t      *panel;            /* [groups][STEP_PANELS] their panels */
    int64_t       ring;             /* values lie in ring + 1 slots by panel; -1: in order */
    Span         *span;             /* [groups][STEP_PANELS] columns that any row needs */
} Block;

/* capacity: rows, a multiple of TILE_ROWS.  False when the arena is out of memory. */
bool block_init(Block *b, Arena *arena, const Kernel *kernel, int64_t capacity, int64_t d,
                int64_t e);
void block_begin(Block *b, int64_t rows);
void block_query(Block *b, int64_t row, const float *q, double scale);
/* Scores of group g against the first `keys` of a packed panel, `keep` where it holds fewer
 * than TILE_KEYS; returns the tile (row stride lds). */
float *block_score(Block *b, int64_t g, int64_t panel_index, const float *panel, int64_t keys,
                   const uint64_t *keep);
/* Weights of the group's tiles; `changed`: scores were altered after block_score. */
void block_soften(Block *b, int64_t g, bool changed);
/* Adds the weighted rows of v and ends the group's step. */
void block_mix(Block *b, int64_t g, const float *v, int64_t ldv);
/* After the last step of the first `rows` rows: logarithms of many rows at once. */
void block_end(Block *b, int64_t rows);
/* out [e] and the natural log-sum-exp; no key: zeros and -inf. */
void block_row(const Block *b, int64_t row, float *out, float *lse);

static inline float *block_tile(const Block *b, int64_t g, int slot)
{
    return b->s + g * TILE_ROWS * b->lds + slot * TILE_KEYS;
}

/* Positions in the order of their phase, place mod step.
 *
 * Keys a step apart, and the queries that see them, are neighbours in this order: strided
 * cells of the sequence become a solid block.  Step 1: the sequence itself.
 */

typedef struct Phases {
    int64_t step, count; /* count: positions in all */
} Phases;

/* The place of position j. */
static inline int64_t phases_place(Phases p, int64_t j)
{
    int64_t phase = j % p.step, longer = p.count % p.step;

    if (p.step == 1)
        return j;
    return phase * (p.count / p.step) + (phase < longer ? phase : longer) + j / p.step;
}

/* The position at a place. */
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

/* Which tiles a block of queries needs, from the pattern's rows.
 *
 * Rows become bit masks of 64-key panels; only panels that a row touches are stored or
 * visited, so a window costs the same at every n.  The kind of a tile (TILE_ROWS rows of
 * one panel) says how it is computed.
 */

/* A tile with fewer cells, beside no others, is cheaper cell by cell: a single cell costs four to
 * five times its share of a tile of 384 cells. */
#define SPARSE_CELLS 72

typedef enum TileKind {
    TILE_NONE,
    TILE_FULL,   /* every cell of every real row */
    TILE_MASKED, /* some cells */
    TILE_SPARSE, /* few cells, computed one by one */
} TileKind;

/* Which runs of a row are planned; another pass takes the others. */
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
    int64_t   head;                       /* of that block; -1: nothing planned */
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

/* Means over sampled rows, spread over the sequence and the heads, without the fullest one. */
typedef struct Typical {
    double  cells;
    double  stepped; /* cells in runs of `step`, less those of other steps above 1 */
    double  single;  /* cells in runs of one key */
    double  runs;
    int64_t step;    /* the first step above 1; 1: there is none */
    bool    failed;  /* no memory for a row's runs */
} Typical;

Typical plan_typical(const Pattern *pattern, int64_t heads, int64_t rows);

/* False when the arena is out of memory. */
bool plan_init(Plan *plan, Arena *arena, int64_t keys, int64_t capacity);
void plan_free(Plan *plan);
/* Sets the order and the part of the runs planned from here on; after plan_init: all runs, in
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

/* What a position adds to scores and outputs, and the cap of scores, tile by tile.
 *
 * Terms depend on the distance i - j only through a row index of the table, so a tile needs
 * the products side . table for a short range of table rows.  The score kernel computes that
 * range, which is then spread over the tile.
 */

typedef struct Terms {
    const AttendInput *in;
    const Kernel      *kernel;
    int64_t            heads, n, m, d, e;
    int64_t            span;     /* most table rows one tile of a block can need, padded */
    bool               value;
    float             *row_panels, *col_panels; /* [span/64][d][64] packed table rows */
    float             *row_dots; /* [TILE_ROWS][span] */
    float             *col_dots; /* [72][span] products of a panel's keys */
    float             *bucket;   /* [TILE_ROWS][span] weights summed by table row */
    float             *top;      /* [TILE_ROWS][LANES] not used */
    int64_t            row_low, col_low; /* first table row packed */
    int64_t            head;
    int32_t           *at;       /* [TERMS_LIST] table rows of listed keys */
    float             *dots;     /* [TERMS_LIST] */
} Terms;

#define TERMS_LIST 1024 /* most keys of one terms_add_list */

/* Most table rows a block of `rows` queries needs for one panel. */
int64_t terms_span(const AttendInput *in, int64_t n, int64_t m, int64_t rows);
bool terms_init(Terms *t, Arena *arena, const Kernel *kernel, const AttendInput *in,
                int64_t heads, int64_t span);
/* Prepares the products shared by the rows [first, first + rows) for a panel. */
void terms_panel(Terms *t, int64_t head, int64_t first, int64_t rows, int64_t panel);
/* Adds to the tile of rows [i, i + TILE_ROWS) and the prepared panel. */
void terms_add_tile(Terms *t, int64_t i, int64_t panel, float *s, int64_t lds);
/* Adds to the scores of listed keys of row i. */
void terms_add_list(Terms *t, int64_t head, int64_t i, const int32_t *keys, int64_t count,
                    float *s);
/* The value term of the weights of a tile, into the group's accumulators. */
void terms_mix_tile(Terms *t, int64_t head, int64_t i, int64_t panel, const float *w,
                    int64_t ldw, float *acc, int64_t lda);
void terms_mix_list(Terms *t, int64_t head, int64_t i, const int32_t *keys, int64_t count,
                    const float *w, float *acc);

#define LIST_KEYS 512 /* a multiple of TILE_KEYS, at most TERMS_LIST */

typedef struct Bins Bins; /* attend_bins.c */

typedef struct Worker {
    Plan     plan;
    Block    block;
    Terms    terms;
    int32_t *list;   /* [LIST_KEYS] keys of a row that are computed one by one */
    int32_t *sparse; /* [panels] of the TILE_SPARSE tiles of a group */
    float   *s;     /* [LIST_KEYS] */
    float   *near;   /* [slices of the batch][near_slots][d][TILE_KEYS] panels packed last */
    float   *near_values; /* [slices of the batch][near_slots][TILE_KEYS][e], in phases only */
    Bins    *bins;   /* NULL: not used */
    int32_t *near_panel; /* [slices of the batch][near_slots] their numbers; -1: none */
    double   cells;
    bool     failed, full; /* full: rows do not fit in list_room */
} Worker;

typedef struct Job {
    Run               *run;
    const AttendInput *in;
    const Pattern     *pattern;
    const Kernel      *kernel;
    AttendResult      *out;
    int64_t            h, n, m, d, e, panels;
    double             cell_flops;       /* of one cell, for the progress of the run */
    int64_t            block_rows, blocks;
    bool               per_head, has_terms, scattered;
    bool               one_panel;        /* all keys are in one, and no terms */
    bool               binned;           /* tiles of rows of the same bin, not of neighbours */
    Phases             row_order, key_order;
    bool               join;             /* out and lse hold the result of another pass */
    float             *values;           /* [slices][m][e] in the order of phases, with packed */
    float             *packed;           /* [slices of the batch][panels][d][TILE_KEYS] */
    int64_t            near_slots;       /* a power of two; 0: all panels are in packed */
    int64_t            near_blocks;      /* of one item */
    double             near_most;        /* a block with more cells is far */
    uint8_t           *far;              /* [blocks] the block comes last */
    int32_t           *far_block;        /* [blocks] numbers of the far blocks */
    /* Scattered: rows [list_first, list_first + list_rows), whose keys are listed. */
    int64_t            list_first, list_rows;
    int64_t           *list_offset;      /* [list_rows + 1] into listed and list_s */
    int32_t           *listed;           /* [.] keys, increasing in a row */
    int64_t            list_room;        /* while rows are listed: keys of an item; 0: as offset */
    float             *list_s;           /* [.] their scores, then weights */
    bool               list_apart;       /* all rows of a head are scored before any is mixed */
    bool               list_mix;         /* this pass mixes */
    int64_t            key_low, key_high; /* keys of this pass */
    int64_t            step, most_slices; /* of the pass, and of a batch */
    int64_t            slice, slices;    /* of k: the batch */
    int64_t            head, heads;      /* the batch's queries */
    Worker            *workers;
} Job;

/* Plans the block, unless it is planned already; false: no memory. */
bool attend_plan(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows);
/* Attention of the planned queries [first, first + rows) of a head. */
void attend_block(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows);
/* Plans and computes `block`; does nothing after a failure of the worker, or a cancelled run. */
void attend_planned(const Job *job, Worker *w, int64_t head, int64_t block);

/* A panel of keys in the order of the job's phases, and their values [TILE_KEYS][e]. */
void attend_pack_phased(const Job *job, const float *k, const float *v, int64_t panel,
                        float *packed, float *values);

/* Whether rows should be sorted into bins, as neighbours hardly share panels. */
bool attend_bins_pay(const Job *job, const Typical *typical);
/* Takes the workers' memory; false: there is none. */
bool attend_bins_init(Job *job);
/* Items of the job's batch, after its panels are packed. */
int64_t attend_bins_items(const Job *job);
void attend_bins_item(void *context, int64_t item, int worker);

/* All of a job whose keys are one panel, without terms; without memory as below. */
void attend_one_panel(Job *job);

/* All of a job of one query.  Without memory a worker, or the run, is failed. */
void attend_one_row(Job *job);

/* All of a scattered job.  Without memory a worker, or the run, is failed. */
void attend_gather(Job *job, const Typical *typical);

/* Rows of a pattern that see the same keys, as groups.
 *
 * A rectangle of an image is a series of short runs in the sequence, so its tiles would be
 * half empty.  But all pixels of a block see the same rectangle: its keys are gathered once
 * for all of them, and every tile is full.
 */

/* Fills the lists of g (i32 [1,.], in the run's arena) when enough queries share a row to pay
 * for gathering; *cells: cells of one head.  False: too few share, or no memory. */
bool shared_rows(Run *r, const Pattern *pattern, GroupAttend *g, double *cells);

/* The same cells, with rows that are evaluated once and stored in the run's arena: each batch
 * of heads asks for all rows, and evaluating a row (unions, differences) may cost as much as its
 * cells.  `pattern` itself where its heads differ, where the rows take more than `most` bytes, or
 * without memory. */
const Pattern *stored_rows(Run *r, const Pattern *pattern, double most);

#endif
