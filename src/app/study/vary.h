/* app/study/vary.h -- one parameter at several values: what is lost beside what it costs.
 *
 * A line is a mechanism: one that has the parameter has a point for each of its values,
 * another one is the same everywhere.  The first line is exact attention, which costs are
 * held against.  Whoever has a Sweep runs its requests (at once, or one job after the other)
 * and gives back the results; nothing of a run is kept but its numbers and one sample.
 */
#ifndef APP_STUDY_VARY_H
#define APP_STUDY_VARY_H

#include "app/session/session.h"
#include "core/error.h"
#include "core/text.h"
#include "draw/figure/figure.h"

/* The values of one parameter, in words.
 *
 *     NAME=16:512:x2      16, 32, 64 ... 512; a factor above 1
 *     NAME=1:9:+2         1, 3, 5, 7, 9; a step above 0
 *     NAME=16:512         as with x2
 *     NAME=3,5,17 or a,b  these, whatever they are
 */

#define VARY_MOST 256

typedef struct Vary {
    char   name[64];
    char **values; /* owned; as a parameter is assigned: "16", "0.25", "positive" */
    int    count;
    bool   times;  /* a range by a factor: its axis is logarithmic */
} Vary;

/* On failure nothing is to be freed. */
bool vary_parse(const char *text, Vary *out, Error *err);
void vary_free(Vary *vary);
struct Param;
/* "features=32,64,128,256,512": a range around the value one has ("" the default), as far as
 * the parameter and a sequence of n tokens allow; dense: all over it, in small steps
 * up to 2n, the width of a window that misses nothing.  False:
 * the parameter has no such range. */
bool vary_usual(const struct Param *param, const char *now, int64_t n, bool dense, Text *out);
/* The value as a number, for an axis; NaN when it is none. */
double vary_number(const Vary *vary, int index);

#define SWEEP_LINES 16

typedef enum SweepQuantity {
    SWEEP_ERROR,
    SWEEP_MASS,
    SWEEP_VARIATION,
    SWEEP_TIME,
    SWEEP_FLOPS,
    SWEEP_MEMORY,
    SWEEP_QUANTITIES,
} SweepQuantity;

typedef struct SweepPoint {
    bool   done;
    char   problem[256]; /* why there are no numbers; "": there are */
    Number value[SWEEP_QUANTITIES];
    Number low[SWEEP_QUANTITIES],
        high[SWEEP_QUANTITIES]; /* seeds: least and most; time: quartiles */
} SweepPoint;

typedef struct SweepLine {
    Request     request; /* owned; without the parameter */
    char        name[96];
    bool        fixed;    /* it has not the parameter, so there is one point only */
    bool        baseline; /* exact attention: it loses nothing */
    SweepPoint *points;   /* owned */
    Result     *sample;   /* retained; a run of it; NULL: none succeeded yet */
} SweepLine;

typedef struct Sweep {
    Vary      vary;
    bool      measure; /* take time and memory, in runs of their own */
    char     *range;   /* owned; as it was given */
    bool      words;   /* the values are no numbers */
    bool      log;     /* a range by a factor, or numbers far apart */
    SweepLine lines[SWEEP_LINES];
    int       count;
} Sweep;

/* "features=16:512:x2", and exact attention as the first line, run like `as` (position,
 * causal, seed, threads).  Free with sweep_free, also on failure. */
bool sweep_open(Sweep *sweep, const char *range, const Request *as, Error *err);
void sweep_free(Sweep *sweep);
/* A copy of the request; exact attention is there already and is passed over. */
bool sweep_add(Sweep *sweep, const Request *request, Error *err);
/* Some line has the parameter; else an error. */
bool sweep_check(const Sweep *sweep, Error *err);
/* The request's own parameter, its position's, or what every run has: position, seed, fit,
 * causal. */
bool sweep_varies(const Request *request, const char *name);
const char *quantity_name(SweepQuantity quantity); /* "error"; static */
/* "error,time"; at most SWEEP_QUANTITIES into out. */
bool quantities_parse(const char *text, SweepQuantity *out, int *count, Error *err);
/* Time and memory need runs of their own. */
bool quantity_is_measured(SweepQuantity quantity);

/* ---- running ---------------------------------------------------------------- */

int  sweep_points(const Sweep *sweep, int line);
/* The first point not done; false: all are. */
bool sweep_next(const Sweep *sweep, int *line, int *point);
int  sweep_done(const Sweep *sweep, int *all); /* how many */
/* What is to be run for a point; the caller frees it. */
bool sweep_request(const Sweep *sweep, Session *s, int line, int point, Request *out, Error *err);
/* Its numbers; a run that failed leaves why. */
void sweep_take(Sweep *sweep, int line, int point, Result *result);
void sweep_refuse(Sweep *sweep, int line, int point, const Error *err);
/* All points on this thread; points that cannot be run are left out with their reason. */
bool sweep_run(Sweep *sweep, Session *s, Error *err);

/* ---- reading ---------------------------------------------------------------- */

/* Place of a point on the axis: its number, or its index. */
double sweep_x(const Sweep *sweep, int point);
/* Indices of the points from left to right; VARY_MOST at most. */
void sweep_order(const Sweep *sweep, int *order);
const SweepPoint *sweep_at(const Sweep *sweep, int line, int point); /* of a fixed line: its one */
/* "0.41", "95.2 %", "1.3 ms", "130 k", "1.1 MiB" or "n/a". */
const char *quantity_text(SweepQuantity quantity, Number number, char *text, size_t size);

/* What is to be reached: mass kept at least, or output error at most. */
typedef struct SweepGoal {
    SweepQuantity quantity;
    double        bound;
} SweepGoal;

/* "95%", "0.95" or "error=5%" */
bool goal_parse(const char *text, SweepGoal *out, Error *err);
/* The point with the smallest value that reaches it (with every seed); -1: none does. */
int  sweep_smallest(const Sweep *sweep, int line, const SweepGoal *goal);
/* Adds a value between the smallest that reaches it and the one before, where a whole number
 * stands between them and the values are a list; false: there is none (or no memory: *err). */
bool sweep_refine(Sweep *sweep, int line, const SweepGoal *goal, Error *err);
/* "window=33 is the smallest of 6 that keeps 95 % of the mass (96.1 %)" */
void sweep_answer(const Sweep *sweep, int line, const SweepGoal *goal, Text *out);

/* ---- drawing ---------------------------------------------------------------- */

typedef struct SweepLook {
    SweepQuantity    quantities[SWEEP_QUANTITIES]; /* a plot each, side by side */
    int              count;
    const SweepGoal *goal;  /* a line at its bound; NULL: none */
    double           now;   /* place of the value one has; NaN: none */
    int              cursor; /* point to be marked; -1: none */
    const char      *title, *caption; /* NULL: none, and what it was measured on */
} SweepLook;

/* Its figure borrows from it; a quantity without any number has no panel. */
typedef struct SweepPicture {
    Figure *figure;
    struct SweepNumbers *numbers; /* private */
} SweepPicture;

bool sweep_picture(const Sweep *sweep, const SweepLook *look, SweepPicture *out, Error *err);
void sweep_picture_free(SweepPicture *picture);
/* "compare 'performer' full --vary features=16:64:x2 --plot error,flops ...": the command
 * that draws it, without the program's name. */
void sweep_command(const Sweep *sweep, const Session *s, const SweepLook *look, Text *out);

#endif
