/* app/study/study.h -- a study: requests at the values of one axis, and the numbers of their
 * runs.
 *
 * A line is a mechanism.  Over the values of a parameter, a mechanism that has it has a point
 * for each value, another one has one point; the first line is exact attention, which costs
 * are held against.  Over n, each point has a N(0,1) input of that length, and its number is a
 * time.  There is one runner: point after point on this thread (study_run), or as jobs of the
 * session's worker (study_begin, study_end).  Of a run only its numbers are kept, and one
 * sample of each line.
 */
#ifndef APP_STUDY_STUDY_H
#define APP_STUDY_STUDY_H

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

#define AXIS_MOST 256

typedef struct Axis {
    char   name[64];
    char **values; /* owned; as a parameter is assigned: "16", "0.25", "positive" */
    int    count;
    bool   times;  /* a range by a factor: its axis is logarithmic */
} Axis;

/* On failure nothing is to be freed. */
bool axis_parse(const char *text, Axis *out, Error *err);
void axis_free(Axis *axis);
struct Param;
/* "features=32,64,128,256,512": a range around the value one has ("" the default), as far as
 * the parameter and a sequence of n tokens allow; dense: all over it, in small steps
 * up to 2n, the width of a window that misses nothing.  False:
 * the parameter has no such range. */
bool axis_usual(const struct Param *param, const char *now, int64_t n, bool dense, Text *out);
/* The value as a number, for an axis; NaN when it is none. */
double axis_number(const Axis *axis, int index);

#define STUDY_LINES 64
#define VARY_LINES  16 /* over a parameter */

typedef enum StudyQuantity {
    STUDY_ERROR,
    STUDY_MASS,
    STUDY_VARIATION,
    STUDY_TIME,
    STUDY_FLOPS,
    STUDY_MEMORY,
    STUDY_QUANTITIES,
} StudyQuantity;

typedef struct StudyPoint {
    bool   done;
    int    runs;         /* timed ones, of a study that takes the fastest */
    char   problem[256]; /* why there are no numbers; "": there are */
    Number value[STUDY_QUANTITIES];
    Number low[STUDY_QUANTITIES],
        high[STUDY_QUANTITIES]; /* seeds: least and most; time: quartiles, over n the
                                   interval of the median */
} StudyPoint;

typedef struct StudyLine {
    Request     request; /* owned; without the parameter */
    char        name[256];
    bool        fixed;    /* it has not the parameter, so there is one point only */
    bool        baseline; /* exact attention: it loses nothing */
    StudyPoint *points;   /* owned */
    Result     *sample;   /* retained; a run of it; NULL: none succeeded yet */
} StudyLine;

typedef struct Study {
    Axis      axis;
    bool      measure; /* take time and memory, in runs of their own */
    char     *range;   /* owned; as it was given */
    bool      words;   /* the values are no numbers */
    bool      log;     /* a range by a factor, or numbers far apart */
    bool      lengths; /* the axis is n */
    int64_t   heads, d; /* of the inputs over n */
    int       least;   /* over n: the fastest of at least so many runs; 0: the median */
    char      title[64]; /* of its progress, over n */
    StudyLine lines[STUDY_LINES];
    int       count;
    int       line, point; /* found by study_next */
    Job      *job;         /* of that point; owned; NULL: none is under way */
    int       threads;     /* of the last run */
    int64_t   when;        /* it ended, seconds since 1970 */
} Study;

/* "features=16:512:x2", and exact attention as the first line, run like `as` (position,
 * causal, seed, threads).  Free with study_free, also on failure. */
bool study_open(Study *study, const char *range, const Request *as, Error *err);
/* Over n = first, 2 first, ... up to last, with as many heads of the size as `like` has; without
 * lines. */
bool study_open_lengths(Study *study, const Input *like, int64_t first, int64_t last, Error *err);
void study_free(Study *study);
/* A copy of the request; exact attention is there already and is passed over. */
bool study_add(Study *study, const Request *request, Error *err);
/* Some line has the parameter; else an error. */
bool study_check(const Study *study, Error *err);
/* The request's own parameter, its position's, or what every run has: position, seed, fit,
 * causal. */
bool study_varies(const Request *request, const char *name);
const char *quantity_name(StudyQuantity quantity); /* "error"; static */
/* "error,time"; at most STUDY_QUANTITIES into out. */
bool quantities_parse(const char *text, StudyQuantity *out, int *count, Error *err);
/* Time and memory need runs of their own. */
bool quantity_is_measured(StudyQuantity quantity);

/* ---- running ---------------------------------------------------------------- */

int  study_points(const Study *study, int line);
/* The first point not done becomes line and point; false: all are done.  Over n, the shortest
 * lengths of all lines come first. */
bool study_next(Study *study);
int  study_done(const Study *study, int *all); /* how many */
/* What is to be run for a point; the caller frees it. */
bool study_request(const Study *study, Session *s, int line, int point, Request *out, Error *err);
/* The numbers of the point that study_next found; a run that failed leaves why. */
void study_take(Study *study, Result *result);
void study_refuse(Study *study, const Error *err);

/* Runs the point that study_next found, on this thread.  False: there is no result, and the
 * point says why. */
bool study_step(Study *study, Session *s, Error *err);
/* All points; those that cannot be run are left out with their reason. */
bool study_run(Study *study, Session *s, Error *err);

/* The next point becomes a job; those that cannot be run are left out.  False: none is left. */
bool study_begin(Study *study, Session *s);
/* Takes what came of a job that has ended; false: it was cancelled, and the point is not done. */
bool study_end(Study *study);

/* ---- reading ---------------------------------------------------------------- */

/* Place of a point on the axis: its number, or its index. */
double study_x(const Study *study, int point);
/* Indices of the points from left to right; AXIS_MOST at most. */
void study_order(const Study *study, int *order);
const StudyPoint *study_at(const Study *study, int line, int point); /* of a fixed line: its one */
double number_or_nan(Number number);
/* "0.41", "95.2 %", "1.3 ms", "130 k", "1.1 MiB" or "n/a". */
const char *quantity_text(StudyQuantity quantity, Number number, char *text, size_t size);

/* What is to be reached: mass kept at least, or output error at most. */
typedef struct StudyGoal {
    StudyQuantity quantity;
    double        bound;
} StudyGoal;

/* "95%", "0.95" or "error=5%" */
bool goal_parse(const char *text, StudyGoal *out, Error *err);
/* The point with the smallest value that reaches it (with every seed); -1: none does. */
int  study_smallest(const Study *study, int line, const StudyGoal *goal);
/* Adds a value between the smallest that reaches it and the one before, where a whole number
 * stands between them and the values are a list; false: there is none (or no memory: *err). */
bool study_refine(Study *study, int line, const StudyGoal *goal, Error *err);
/* "window=33 is the smallest of 6 that keeps 95 % of the mass (96.1 %)" */
void study_answer(const Study *study, int line, const StudyGoal *goal, Text *out);

/* ---- drawing ---------------------------------------------------------------- */

typedef struct StudyLook {
    StudyQuantity    quantities[STUDY_QUANTITIES]; /* a plot each, side by side */
    int              count;
    const StudyGoal *goal;  /* a line at its bound; NULL: none */
    double           now;   /* place of the value one has; NaN: none */
    int              cursor; /* point to be marked; -1: none */
    const char      *title, *caption; /* NULL: none, and what it was measured on */
} StudyLook;

/* Its figure borrows from it; a quantity without any number has no panel. */
typedef struct StudyPicture {
    Figure *figure;
    struct StudyNumbers *numbers; /* private */
} StudyPicture;

bool study_picture(const Study *study, const StudyLook *look, StudyPicture *out, Error *err);
void study_picture_free(StudyPicture *picture);
/* "compare 'performer' full --vary features=16:64:x2 --plot error,flops ...": the command
 * that draws it, without the program's name. */
void study_command(const Study *study, const Session *s, const StudyLook *look, Text *out);

/* ---- over n ----------------------------------------------------------------- */

#define SCALING_FIRST 64   /* tokens */
#define SCALING_LAST  4096 /* when nobody says */
#define SCALING_WIDTH 0.05 /* medians are known to so much */

/* What is given to it fits one length only: tensors from files or scripts. */
bool request_has_tensors(const Request *request);
/* Each line's curve so far, against the slope that it claims, log-log. */
Plot *study_scaling_plot(const Study *study, Error *err);
Figure *study_scaling_figure(const Study *study, Error *err);

/* From which n `other` is faster than `base` and stays so, in words: both run on inputs of
 * doubling n until that is known or time is up.  "n/a" where a run fails. */
#define CROSSOVER_LAST    4096
#define CROSSOVER_SECONDS 10 /* of a search; what would go beyond is not searched */
void study_crossover(Session *s, const Request *base, const Request *other, char *text,
                     size_t size);

#endif
