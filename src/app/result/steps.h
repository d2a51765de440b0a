/* app/result/steps.h -- a run as steps one can go through: what each stage did and made.
 *
 * A step is a stage of the run, in the order they ran; behind them come those of its replay
 * (attn/study/replay.h), which is made when steps are first asked for.  The command `step`, the
 * explorer's step screen and Lua read the same steps.
 */
#ifndef APP_RESULT_STEPS_H
#define APP_RESULT_STEPS_H

#include "app/session/session.h"
#include "draw/plot/plot.h"

typedef struct Step {
    Result       *result;
    const Run    *run;          /* the result's, or its replay */
    const Stage  *stage;
    int           at;           /* its number in that run */
    int           index, count; /* from 0; of all steps */
    int64_t       row, head;    /* whose running numbers are told: the last query of head 0; may
                                   be changed */
    int64_t       total;        /* iterations of this stage in the run; 0: not iterated */
    const char   *note;         /* what the stage does; static; NULL: none */
    /* The matrix to look at: the most telling one made here, else the last one made
     * before; NULL: none yet. */
    const View   *shown;
    bool          fresh;        /* it was made here */
} Step;

int  result_steps(Result *result);
/* The run that goes on where the result's own stages end; NULL: there is none. */
const Run *result_replay(Result *result);
bool result_step(Result *result, int index, Step *out); /* false: no such step */

/* Steps [*from, *to) that a word asks for: a number from 1, or all of a stage; NULL: all. */
bool result_steps_at(Result *result, const char *at, int *from, int *to, Error *err);

/* "attend, 2 of 4" */
void step_name(const Step *step, char *text, size_t size);
/* The views made at the step, in order; *count of them in all, `most` are written. */
int  step_views(const Step *step, const View **out, int most);
/* Order of the tokens that is known by then (slot -> token), and the categories they
 * are sorted by; NULL: not yet, or never.  The order lives in the run's arena. */
const int32_t *step_order(const Step *step, int64_t head);
/* Of which round the step is, for those that sort anew in each; 0: the first, or of none. */
int64_t        step_round(const Step *step);
const View    *step_categories(const Step *step);
/* View x of those whose rows are followed through this step's stage, and the number its row has
 * now; NULL: no more. */
const View *step_watched(const Step *step, int x, double *value);
/* The numbers this step is watched by, from the first iteration to this one; NULL: there
 * are fewer than two points.  The caller frees it. */
Plot *step_plot(const Step *step);
/* Text of the step without its picture: name, note, cost, views, traces. */
void step_describe(const Step *step, Text *out);

/* The tokens of a step in their own order and sorted.
 *
 * Both lines hold the same tokens: the categories of the step's round (the first
 * where it is of none) by position, and in the mechanism's order once that is known,
 * with the borders of its chunks.
 */

typedef struct Strip {
    int64_t  n;
    int32_t *original; /* [n] category of each position; owned */
    int32_t *sorted;   /* [n] category of each slot; NULL: no order yet */
    int32_t *chunk;    /* [n] chunk of each slot; NULL: not cut */
} Strip;

/* False: no categories are known at this step (or no memory). */
bool strip_read(const Step *step, int64_t head, Strip *out);
void strip_free(Strip *strip);
/* A-Z, a-z, 0-9, then '+'; '.' below 0. */
char strip_letter(int32_t category);
/* Character of the line of chunks at a slot: '[', '-', ']' or '|' (a chunk of one). */
char strip_border(const Strip *strip, int64_t slot);

#endif
