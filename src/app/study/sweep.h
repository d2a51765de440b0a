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
#include "app/command/command.h"
#include "attn/run/mechanism.h"
#include "core/text.h"
#include "profile/results.h"
#include "profile/statistics.h"

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

/* Result rows as tables: the points, the fits, a difference. */

/* The systems of the surveys' tables in words, and what runs them here. */

typedef enum SystemClaimKind { CLAIM_COMPLEXITY, CLAIM_DECODE } SystemClaimKind;

/* "O(n log n) [a]; O(n sqrt(n)) [b]": each claim once, with the surveys that make it;
 * "-": none does. */
void system_claims(const System *system, SystemClaimKind what, Text *out);
/* As a survey prints it, else of the mechanism that runs; "-": nothing does. */
const char *system_class(const System *system, char *text, size_t size);

/* How a claim such as "O(n sqrt(n))" or "O(k n)" grows with n, all other letters fixed. */
typedef struct Growth {
    double power; /* of n; < 0: the text does not say (O(b^2), a claim of memory) */
    bool   log;   /* times log n */
} Growth;
Growth claim_growth(const char *complexity);

/* The next word of system->runs that this catalogue has; *at moves past it.  False: no more. */
bool system_next_word(const char **at, char *word, size_t size);
/* The mechanism of the first such word; NULL: nothing runs the system. */
const Mechanism *system_mechanism(const System *system);

/* One row a point; CSV has every number, text and Markdown the ones that are read. */
void points_table(const Results *rows, TableStyle style, int room, Text *out);

/* What a fit is asked for. */
typedef enum FitOf { FIT_TIME, FIT_FLOPS, FIT_MEMORY, FIT_OF } FitOf;

typedef struct SeriesFit {
    const ResultRow *row;      /* the first of the series that was measured */
    int    points;             /* measured n */
    int64_t from, to;          /* the smallest and the largest */
    Fit    plain[FIT_OF];      /* of y */
    Fit    logless[FIT_OF];    /* of y / log n: for claims that hold a log n */
    Growth claim[FIT_OF];      /* of the mechanism's own source; power < 0: not stated */
    Number crossover;         /* smallest n from which time stays below the baseline's */
    const char *crossover_note; /* static: why not */
} SeriesFit;

/* Every series of measured rows; rows sorted by results_sort.  *out is owned by
 * the caller.  False: no memory. */
bool fit_series(const Results *rows, int drop, SeriesFit **out, int *count, Error *err);
typedef enum Verdict { VERDICT_NONE, VERDICT_WITHIN, VERDICT_ABOVE, VERDICT_BELOW } Verdict;
/* How far the interval may be from the claim and still be within it. */
#define VERDICT_TOLERANCE 0.1
Verdict     fit_verdict(const SeriesFit *f, FitOf of, Growth claim);
const char *verdict_word(Verdict v); /* "within"; "-": nothing can be said */
/* "1.02 [0.98, 1.05]", "1.02" without an interval, "n/a". */
const char *exponent_text(const Fit *fit, char *text, size_t size);
/* "bigbird(window=5) alibi": what tells the series from the others of these rows. */
void series_name(const Results *rows, const ResultRow *row, Text *out);
/* Of the fits that were asked for by `word`, so many; *last: the last of them. */
int  fits_of_word(const SeriesFit *fits, int count, const char *word, const SeriesFit **last);
/* The word itself when only this series was asked for by it, else the series' name. */
void asked_name(const Results *rows, const SeriesFit *fits, int count, const SeriesFit *f,
                Text *out);
/* The smallest n from which it is faster than full attention, or why there is none. */
const char *crossover_text(const SeriesFit *f, char *text, size_t size);

/* The surveys' table, measured: a row for each system and each way to run it here. */
void systems_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style,
                   Text *out);
/* Runs a second and memory at each length, and how they stand to full attention: the shape
 * of Long Range Arena's table; its lengths (1k to 4k) when they are all there. */
void relative_table(const Results *rows, TableStyle style, Text *out);
/* Borrowed; NULL: the chart's own. */
typedef struct ChartWords {
    const char *title, *caption;
} ChartWords;
/* The exponents as a picture, of the systems or of the series themselves. */
bool exponents_file(const Results *rows, const SeriesFit *fits, int count, bool systems,
                    const ChartWords *words, FigureFormat format, const PngOptions *options,
                    Text *bytes, Error *err);
/* What `fit` and `sweep --fit` print: by the call's --relative, --json and --drop. */
bool fits_show(const Results *rows, const Call *call, bool systems, TableStyle style, Text *out,
               Error *err);
/* Whether a file of that name holds a chart: .png, .svg or .pdf. */
bool fits_chart_name(const char *path);
/* The chart as the bytes of a file of that name, with the call's line in it. */
bool fits_chart(const Results *rows, const Call *call, bool systems, const char *path, Text *bytes,
                Error *err);
/* room: of Table. */
void fits_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style, int room,
                Text *out);
void fits_json(const Results *rows, const SeriesFit *fits, int count, Text *out);

#endif
