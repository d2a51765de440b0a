/* attn/cpu/attend_job.h -- what attend.c and its ways (attend_near.c, attend_gather.c) share: an
 * attention over a pattern that is being computed, and its workers' memory.
 */
#ifndef ATTN_CPU_ATTEND_JOB_H
#define ATTN_CPU_ATTEND_JOB_H

#include "attn/cpu/block.h"
#include "attn/cpu/cpu.h"
#include "attn/cpu/plan.h"
#include "attn/cpu/terms.h"

#define LIST_KEYS 512 /* a multiple of TILE_KEYS, at most TERMS_LIST */

typedef struct Worker {
    Plan     plan;
    Block    block;
    Terms    terms;
    int32_t *list;  /* [LIST_KEYS] keys of a row that are computed one by one */
    int32_t *sparse; /* [panels] of a group's tiles that are computed so */
    float   *s;     /* [LIST_KEYS] */
    float   *near;   /* [slices of the batch][near_slots][d][TILE_KEYS] panels packed last */
    int32_t *near_panel; /* [slices of the batch][near_slots] which; -1: none */
    double   cells;
    bool     failed;
} Worker;

typedef struct Job {
    Run               *run;
    const AttendInput *in;
    const Pattern     *pattern;
    const Kernel      *kernel;
    AttendResult      *out;
    int64_t            h, n, m, d, e, panels;
    double             cell_flops;       /* of one cell, for the progress */
    int64_t            block_rows, blocks;
    bool               per_head, has_terms, scattered;
    Phases             row_order, key_order;
    bool               join;             /* out and lse hold another pass already */
    float             *values;           /* [slices][m][e] in the keys' order; NULL: v itself */
    float             *packed;           /* [slices of the batch][panels][d][TILE_KEYS] */
    int64_t            near_slots;       /* a power of two; 0: all panels are in packed */
    int64_t            near_blocks;      /* of one item */
    double             near_most;        /* cells of a block; others go to far */
    uint8_t           *far;              /* [blocks] wait for the others to end */
    int32_t           *far_block;        /* [blocks] those */
    int64_t            list_first, list_rows; /* scattered: the rows whose keys are listed, */
    int64_t           *list_offset;      /* [list_rows + 1] where, and */
    int32_t           *listed;           /* [.] what, increasing in a row */
    float             *list_s;           /* [.] scores, then weights of those */
    bool               list_apart;       /* all of a head are scored before any is mixed; */
    bool               list_mix;         /* whether this pass mixes, */
    int64_t            key_low, key_high; /* and the keys it takes */
    int64_t            step, most_slices; /* of the pass, and of a batch */
    int64_t            slice, slices;    /* of k: the batch */
    int64_t            head, heads;      /* the batch's queries */
    Worker            *workers;
} Job;

/* Makes the worker's plan that of the block, if it is not; false: no memory. */
bool attend_plan(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows);
/* Queries [first, first + rows) of a head, which are planned. */
void attend_block(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows);
/* Both, of job->blocks' `block`; a worker that failed, or a cancelled run, does nothing. */
void attend_planned(const Job *job, Worker *w, int64_t head, int64_t block);

/* Whether workers should pack panels themselves; then some of job->near_* are set. */
bool attend_near_pays(Job *job, const Typical *typical);
/* Chooses job->most_slices and takes the workers' memory; false: there is none. */
bool attend_near_init(Job *job);
/* All queries of the job's batch. */
void attend_near_batch(Job *job);

/* All of a scattered job.  A worker is failed, or the run, where memory is short. */
void attend_gather(Job *job, const Typical *typical);

#endif
