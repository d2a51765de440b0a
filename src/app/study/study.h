/* app/study/study.h -- a study: requests at the values of one axis, and the numbers of their runs.
 *
 * A line is a mechanism.  Over a parameter, a mechanism that has it has a point for each value,
 * another one has a single point; the first line is exact attention, the baseline of costs.  Over
 * n, each point has a N(0,1) input of that length, and its number is a time.
 *
 * One runner serves compare --vary, --plot scaling, crossover, the explorer and Lua: point after
 * point on this thread (study_run), or as jobs of the session's worker (study_begin, study_end).
 * Numbers are kept, and one sample run of each line.
 *
 * One function measures a point, here and in a sweep (sweep.h): execute_request
 * (app/session/internal.h) takes a request and fills a record.  A sweep only decides in which
 * process that happens: each point is a process `attnscope run`, so that a crash loses one point,
 * and its record is a line of a file, so that a stopped sweep can go on.
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
    char **values; /* owned; as assigned: "16", "0.25", "positive" */
    int    count;
    bool   times;  /* a range by a factor, so the axis is logarithmic */
} Axis;

/* On failure there is nothing to free. */
bool axis_parse(const char *text, Axis *out, Error *err);
void axis_free(Axis *axis);
struct Param;
/* Writes "features=32,64,128,256,512": a range around the present value ("": the default), within
 * the limits of the parameter and of n tokens; dense: small steps up to 2n, the width of a window
 * that misses nothing.  False: the parameter has no such range. */
bool axis_usual(const struct Param *param, const char *now, int64_t n, bool dense, Text *out);
/* The value as a number; NaN where it is none. */
double axis_number(const Axis *axis, int index);
/* Writes the value: a number, or the text that it is; null: index -1. */
void axis_json(const Axis *axis, int index, Json *out);

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
    bool   busy;         /* timed with more threads than processors were free */
    int    runs;         /* timed runs so far, where the fastest counts */
    char   problem[256]; /* why there are no numbers; "": there are */
    Number value[STUDY_QUANTITIES];
    Number low[STUDY_QUANTITIES],
        high[STUDY_QUANTITIES]; /* seeds: least and most; time: quartiles, over n the
                                   interval of the median */
} StudyPoint;

typedef struct StudyLine {
    Request     request; /* owned; without the parameter */
    char        name[256];
    bool        fixed;    /* without the parameter: one point */
    bool        baseline; /* exact attention, without error */
    StudyPoint *points;   /* owned */
    Result     *sample;   /* retained; one of its runs; NULL: none succeeded yet */
    Text        warnings; /* of its runs, a line each (result_warning_lines) */
} StudyLine;

typedef struct Study {
    Axis      axis;
    bool      measure; /* time and memory in runs of their own */
    char     *range;   /* owned; the text of the axis */
    bool      words;   /* values that are no numbers */
    bool      log;     /* logarithmic axis */
    bool      lengths; /* the axis is n */
    int64_t   heads, d; /* shape of the inputs over n */
    int       least;   /* over n: the fastest of so many runs; 0: the median */
    char      title[64]; /* of the progress line, over n */
    StudyLine lines[STUDY_LINES];
    int       count;
    int       line, point; /* found by study_next */
    Job      *job;         /* at that point; owned; NULL: none */
    int       threads;     /* of the last run */
    int64_t   when;        /* its end, seconds since 1970 */
} Study;

/* Opens "features=16:512:x2" with exact attention as the first line, run with the settings of `as`.
 * Free with study_free, also on failure. */
bool study_open(Study *study, const char *range, const Request *as, Error *err);
/* Opens n = first, 2 first, ... up to last, with heads and head size of `like`; no lines yet. */
bool study_open_lengths(Study *study, const Input *like, int64_t first, int64_t last, Error *err);
void study_free(Study *study);
/* Adds a line; over a parameter exact attention is there already and is skipped. */
bool study_add(Study *study, const Request *request, Error *err);
/* False with an error: no line has the parameter. */
bool study_check(const Study *study, Error *err);
/* The name is a parameter of the request or its position, or one of every run: position, seed, fit,
 * causal. */
bool study_varies(const Request *request, const char *name);
const char *quantity_name(StudyQuantity quantity); /* "error"; static */
/* "error,time"; at most STUDY_QUANTITIES into out. */
bool quantities_parse(const char *text, StudyQuantity *out, int *count, Error *err);
/* Quantities that need runs of their own: time and memory. */
bool quantity_is_measured(StudyQuantity quantity);

/* ---- running ---------------------------------------------------------------- */

int  study_points(const Study *study, int line);
/* Sets line and point to the first point that is not done; false: all are.  Over n, short lengths
 * come first. */
bool study_next(Study *study);
int  study_done(const Study *study, int *all); /* how many */
/* What is to be run for a point; the caller frees it. */
bool study_request(const Study *study, Session *s, int line, int point, Request *out, Error *err);
/* Takes the numbers of the point that study_next found; a failed run leaves its message. */
void study_take(Study *study, Result *result);

/* Runs all points; one that cannot run holds its message. */
bool study_run(Study *study, Session *s, Error *err);

/* Starts the next point as a job; one that cannot run holds its message.  False: none left. */
bool study_begin(Study *study, Session *s);
/* Takes the result of the finished job; false: it was cancelled, and the point is not done. */
bool study_end(Study *study);

/* ---- reading ---------------------------------------------------------------- */

/* Place of the point on the axis: its number, or its index. */
double study_x(const Study *study, int point);
/* Indices of the points from left to right; AXIS_MOST at most. */
void study_order(const Study *study, int *order);
const StudyPoint *study_at(const Study *study, int line, int point); /* a fixed line has one */
/* "0.41", "95.2 %", "1.3 ms", "130 k", "1.1 MiB" or "n/a". */
const char *quantity_text(StudyQuantity quantity, Number number, char *text, size_t size);

/* A goal: least kept mass, or largest output error. */
typedef struct StudyGoal {
    StudyQuantity quantity;
    double        bound;
} StudyGoal;

/* "95%", "0.95" or "error=5%" */
bool goal_parse(const char *text, StudyGoal *out, Error *err);
/* The point with the smallest value that reaches the goal with every seed; -1: none. */
int  study_smallest(const Study *study, int line, const StudyGoal *goal);
/* Adds a value between the smallest that reaches the goal and the one before, where a whole number
 * lies between them and the values are a list; false: none (or no memory: *err). */
bool study_refine(Study *study, int line, const StudyGoal *goal, Error *err);
/* "window=33 is the smallest of 6 that keeps 95 % of the mass (96.1 %)" */
void study_answer(const Study *study, int line, const StudyGoal *goal, Text *out);

/* ---- drawing ---------------------------------------------------------------- */

typedef struct StudyLook {
    StudyQuantity    quantities[STUDY_QUANTITIES]; /* a plot each, side by side */
    int              count;
    const StudyGoal *goal;  /* a line at its bound; NULL: none */
    double           now;   /* the present value's place; NaN: none */
    int              cursor; /* marked point; -1: none */
    const char      *title, *caption; /* NULL: none; NULL: describes the study */
    bool             unsigned_names;  /* no signs of warnings, where no caption has the reasons */
} StudyLook;

/* The figure borrows from it; a quantity without numbers has no panel. */
typedef struct StudyPicture {
    Figure *figure;
    struct StudyNumbers *numbers; /* private */
} StudyPicture;

bool study_picture(const Study *study, const StudyLook *look, StudyPicture *out, Error *err);
void study_picture_free(StudyPicture *picture);
/* The command that draws it, without the program's name: "compare 'performer' full --vary
 * features=16:64:x2 --plot error,flops ...". */
void study_command(const Study *study, const Session *s, const StudyLook *look, Text *out);

/* ---- over n ----------------------------------------------------------------- */

#define SCALING_FIRST 64   /* tokens */
#define SCALING_LAST  4096 /* usual last length */
#define SCALING_WIDTH 0.05 /* medians are within this share */

/* Some tensor is given (file or script), which fits one length only. */
bool request_has_tensors(const Request *request);
/* The curve of each line so far, beside its claimed slope, log-log. */
Plot *study_scaling_plot(const Study *study, Error *err);
Figure *study_scaling_figure(const Study *study, Error *err);

/* From which n one mechanism stays faster than another. */
typedef struct Crossover {
    Number from;     /* not valid: at no length that was tried, or a run failed */
    char   text[48]; /* the same in words; "n/a" where a run failed */
} Crossover;

/* Both run on inputs of doubling n until that is known or time is up. */
#define CROSSOVER_LAST    4096
#define CROSSOVER_SECONDS 10 /* time limit of a search */
Crossover study_crossover(Session *s, const Request *base, const Request *other);

#endif
