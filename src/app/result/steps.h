/* app/result/steps.h -- a run as steps: what each stage did and made.
 *
 * A step is a stage of the run, in order; those of its replay follow (attn/study/replay.h), which
 * is made when steps are first asked for.  The command `step`, the explorer's step screen and Lua
 * show the same steps.
 */
#ifndef APP_RESULT_STEPS_H
#define APP_RESULT_STEPS_H

#include "app/session/session.h"
#include "draw/plot/plot.h"

typedef struct Step {
    Result       *result;
    const Run    *run;          /* the result's run, or its replay */
    const Stage  *stage;
    int           at;           /* index in that run */
    int           index, count; /* of all steps */
    int64_t       row, head;    /* row of the running numbers: the last query of head 0; may
                                   be changed */
    int64_t       total;        /* iterations of this stage in the run; 0: not iterated */
    const char   *note;         /* what the stage does; static; NULL: none */
    /* The matrix to look at: the most informative one made here, else the last one made
     * before; NULL: none yet. */
    const View   *shown;
    bool          fresh;        /* shown was made at this step */
} Step;

int  result_steps(Result *result);
/* The replay that continues the result's run; NULL: there is none. */
const Run *result_replay(Result *result);
bool result_step(Result *result, int index, Step *out); /* false: no such step */

/* Steps [*from, *to) of a number from 1, or of a stage's name; NULL: all. */
bool result_steps_at(Result *result, const char *at, int *from, int *to, Error *err);

/* "attend, 2 of 4" */
void step_name(const Step *step, char *text, size_t size);
/* Views made at the step, in order; at most `most` are written, and the number of all is
 * returned. */
int  step_views(const Step *step, const View **out, int most);
/* Order of the tokens by then (slot -> token), and the categories it sorts; NULL: not yet, or
 * never.  The run's arena owns the order. */
const int32_t *step_order(const Step *step, int64_t head);
/* Round of the step, for mechanisms that sort anew in each; 0: the first, or no round. */
int64_t        step_round(const Step *step);
const View    *step_categories(const Step *step);
/* The chunks that the sorted order was cut into by then; NULL: none. */
const View    *step_chunks(const Step *step);
/* Categories of the tokens in the step's round, [n] by position; NULL: none are known yet. */
const int32_t *step_line(const Step *step, int64_t head);
/* Watched view number x of the step's stage, and the value of its row now; NULL: no more. */
const View *step_watched(const Step *step, int x, double *value);
/* The step's traces from the first iteration to this one; NULL: fewer than two points.  The caller
 * frees it. */
Plot *step_plot(const Step *step);
/* Text of the step without its picture: name, note, cost, views, traces. */
void step_describe(const Step *step, Text *out);

/* The tokens of a step in their own order and sorted.
 *
 * Both lines hold the same tokens: their categories in the step's round (without one, the first) by
 * position, and in the mechanism's order once it is known, with the borders of its chunks.
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
