/* app/study/sweep.h -- many points, one record each: mechanisms x n x parameters x
 * positions x seeds x threads x devices x precisions.
 *
 * Every point is a process of its own, `attnscope run ... --json`: a crash or the
 * out-of-memory killer costs one point, memory is not what the points before left
 * behind, and each record holds the command that repeats it.  The record is one
 * line, appended to the result file as the point ends, so a sweep that was killed
 * goes on with what is missing.
 *
 * A point's key is "POINT@VERSION": POINT is a fingerprint of the mechanism, its
 * bound parameters, position, causal, fit, seed, threads, device, precision, repeats, and of the
 * input's content and size.  So what another sweep, or another version, left in the
 * file is never taken for a point of this one.
 */
#ifndef APP_STUDY_SWEEP_H
#define APP_STUDY_SWEEP_H

#include "app/call.h"
#include "profile/results.h"

typedef struct WordList {
    char **items; /* owned */
    int    count, capacity;
} WordList;

bool words_add(WordList *list, const char *word, size_t length, Error *err);
void words_free(WordList *list);
/* "256,512", the ranges of study.h and mixtures; a comma in brackets or parentheses
 * does not part.  `what` names the option in messages. */
bool words_expand(const char *what, const char *text, WordList *out, Error *err);
/* Whole numbers in order, each once. */
void words_sort_numbers(WordList *list);

typedef struct SweepAxis {
    char     name[64];
    WordList values;
} SweepAxis;

#define SWEEP_AXES 16

typedef struct SweepSpec {
    WordList     mechanisms;                     /* "bigbird(window=5)" */
    /* One empty word: not given; n rises.  Precisions are of points on a GPU. */
    WordList     n, positions, threads, devices, precisions;
    SweepAxis axes[SWEEP_AXES];
    int          axis_count;
    int          seeds;
    uint64_t     seed;
    char        *input; /* owned; spec of it */
    char         input_sha256[65];
    int64_t      layer, d, heads;
    int          causal; /* 1, 0, -1 */
    bool         fit;    /* tensors fitted on the input */
    int          repeat; /* 0: as `run` does */
    double       within; /* repeat until the median is known to +- this share; 0: as usual */
    bool         quality;
    bool         table;         /* the systems of the surveys' table were asked for */
    int64_t      memory;        /* bytes of a point's working memory */
    double       budget;        /* seconds; 0: none */
    int          shard, shards; /* 1..shards */
    bool         resume;
    char        *path; /* owned; of the JSON Lines; NULL: none is written */
} SweepSpec;

void sweep_spec_free(SweepSpec *spec);
/* From a call of `sweep`, and the Slurm array task it runs in. */
bool sweep_spec_parse(Session *s, const Call *call, SweepSpec *out, Error *err);

typedef struct SweepPoint {
    char       *mechanism;    /* owned: with all parameters, as `run` takes it */
    char       *params;       /* owned: JSON of those given, for records of points not run */
    const char *asked;        /* the word it comes from, without axes; borrowed from the spec */
    const char *device, *precision; /* borrowed from the spec; "": not given */
    char        position[24]; /* "none" */
    int         causal;       /* 1, 0, -1 */
    bool        fit;
    int64_t     n;       /* 0: the input's own */
    int         threads; /* 0: not given */
    uint64_t    seed;
    int64_t     index;   /* over all shards */
    int         series;  /* points that differ in n only share it */
    int         shorter; /* the point of its series with the next smaller n; -1: none */
    char        key[96];
    char        refused[256]; /* its parameters are not valid: why; "" */
} SweepPoint;

typedef struct SweepPlan {
    SweepPoint *points; /* owned */
    int            count, capacity, series;
} SweepPlan;

/* All points, each once, shortest n first; a shard keeps every shards-th. */
bool sweep_plan(Session *s, const SweepSpec *spec, SweepPlan *out, Error *err);
void sweep_plan_free(SweepPlan *plan);

/* Who looks on.  All may be NULL. */
typedef struct SweepWatch {
    void *context;
    /* After each point; line: its record. `left`: seconds, or < 0 when unknown. */
    void (*progress)(void *context, int done, int total, const char *line, double left);
    bool (*stopped)(void *context);
    /* Before a record is written; may change the line, but not its key.  False ends the sweep. */
    bool (*record)(void *context, Text *line, Error *err);
} SweepWatch;

/* One point's record as a line without newline.  False: no process could be
 * made, or it was stopped; a point that fails is a record.  deadline: clock_wall. */
bool sweep_point(const SweepSpec *spec, const SweepPoint *point, double deadline,
                    const SweepWatch *watch, Text *line, Error *err);
/* The record of a point that was not run. */
void sweep_refuse(const SweepSpec *spec, const SweepPoint *point, RecordStatus status,
                     const char *why, Text *line);

typedef struct SweepOutcome {
    int  points, before, now; /* in the plan; there already; run this time */
    int  ok, failed;          /* of the plan's points, those before included */
    int  torn, damaged;       /* lines of the file found broken */
    bool budget_ended;
} SweepOutcome;

/* Runs what is missing and leaves the plan's records in *rows.  False with
 * ERR_CANCELLED when it was stopped: *rows then holds what there is. */
bool sweep_run(Session *s, const SweepSpec *spec, const SweepWatch *watch, Results *rows,
                  SweepOutcome *out, Error *err);

/* What a point not yet run may need, from shorter ones of its series. */
typedef struct Forecast {
    Number  value;
    int64_t from;  /* the n it grows from */
    double  slope; /* as n^slope */
} Forecast;
Forecast forecast_growth(const int64_t *n, const double *y, int count, int64_t at);

#endif
