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
 * input's content and size.  Of several processes ".2" follows, of those beside another program
 * ".2+ID", and of those of that program ".2-ID": ID is a fingerprint of it.  So what another
 * sweep, or another version, left in the file is never taken for a point of this one.  A line
 * also has the point's identity, by which `diff` pairs records: row_same_point.
 */
#ifndef APP_STUDY_SWEEP_H
#define APP_STUDY_SWEEP_H

#include "app/call.h"
#include "app/command/command.h"
#include "attn/run/mechanism.h"
#include "core/text.h"
#include "draw/plot/exponents.h"
#include "profile/results.h"
#include "profile/statistics.h"

typedef struct WordList {
    char **items; /* owned */
    int    count, capacity;
} WordList;

bool words_add(WordList *list, const char *word, size_t length, Error *err);
void words_free(WordList *list);
/* Expands "256,512" and ranges (study.h); commas inside brackets or parentheses do not separate.
 * `what` names the option in messages. */
bool words_expand(const char *what, const char *text, WordList *out, Error *err);
/* Sorts whole numbers and drops repeated ones. */
void words_sort_numbers(WordList *list);

typedef struct SweepAxis {
    char     name[64];
    WordList values;
} SweepAxis;

#define SWEEP_AXES 16

typedef struct SweepSpec {
    WordList     mechanisms;                     /* "bigbird(window=5)" */
    /* One empty word: not given; n is sorted.  Precisions are for GPUs. */
    WordList     n, positions, threads, devices, precisions;
    SweepAxis axes[SWEEP_AXES];
    int          axis_count;
    int          seeds;
    uint64_t     seed;
    char        *input; /* owned; its spec */
    char         input_sha256[65];
    int64_t      layer, d, heads;
    int          causal; /* 1, 0, -1 */
    bool         fit;    /* tensors fitted on the input */
    int          repeat; /* 0: as `run` does */
    double       within; /* repeat until the median is known to +- this share; 0: as usual */
    bool         quality;
    int64_t      quality_rows; /* of each head, drawn, to compare; 0: all */
    bool         decode;        /* the cost of one token more */
    bool         table;         /* the surveys' table was asked for */
    WordList     acausal;       /* left out of a group, for want of a causal form */
    int64_t      memory;        /* bytes of a point's working memory */
    bool         memory_given;  /* else it is half of what this process may have */
    double       budget;        /* seconds; 0: none */
    int          shard, shards; /* 1..shards */
    bool         resume;
    int          processes;     /* of each point; 1 or more */
    char        *against;       /* owned; path of another program that runs each point too; NULL */
    char         against_id[9]; /* of its content */
    char        *path; /* owned; of the JSON Lines; NULL: none is written */
    const char  *asked; /* the file of -o, which path stands beside; NULL: none */
} SweepSpec;

void sweep_spec_free(SweepSpec *spec);
/* Parses a call of `sweep` and the environment of its Slurm array task. */
bool sweep_spec_parse(Session *s, const Call *call, SweepSpec *out, Error *err);

typedef struct SweepPoint {
    char       *mechanism;    /* owned: with all parameters, as `run` takes it */
    WordList    scripts;      /* files that its process runs first, which define the mechanism */
    char       *params;       /* owned: JSON of those given, for records of points not run */
    const char *asked;        /* its word, without axes; borrowed from the spec */
    const char *device, *precision; /* borrowed from the spec; "": not given */
    char        position[24]; /* "none" */
    int         causal;       /* 1, 0, -1 */
    bool        fit;
    int64_t     n;       /* 0: the input's own */
    int         threads; /* 0: not given */
    uint64_t    seed;
    int         process; /* 1, 2 .. */
    bool        against; /* the other program runs it */
    int64_t     index;   /* over all shards; then the order of running */
    int         series;  /* shared by points that differ in n only */
    int         shorter; /* point of its series with the next smaller n; -1: none */
    char        key[96];
    char        identity[17]; /* fingerprint of the point whatever its repeats and scripts */
    char        refused[256]; /* why its parameters are invalid; "" */
} SweepPoint;

typedef struct SweepPlan {
    SweepPoint *points; /* owned */
    int            count, capacity, series;
} SweepPlan;

/* Plans all points once, shortest n first; a shard keeps every shards-th. */
bool sweep_plan(Session *s, const SweepSpec *spec, SweepPlan *out, Error *err);
void sweep_plan_free(SweepPlan *plan);

/* Where a sweep stands. */
typedef struct SweepStand {
    int               done, total; /* points, those of the file included */
    const SweepPoint *now;         /* the one that runs, or just ended */
    double            elapsed;     /* seconds of this sweep */
    double            left;        /* seconds; < 0: not known yet */
    const char       *record;      /* of the point that just ended, a line; NULL: one runs */
    const ResultRow  *row;         /* the same, read */
} SweepStand;

/* Callbacks; all may be NULL. */
typedef struct SweepWatch {
    void *context;
    /* When a point begins, about twice a second while it runs, and when it has ended. */
    void (*progress)(void *context, const SweepStand *stand);
    bool (*stopped)(void *context);
    /* Before a record is written; may change the line, but not its key.  False ends the sweep. */
    bool (*record)(void *context, Text *line, Error *err);
} SweepWatch;

typedef struct SweepOutcome {
    int  points, before, now; /* in the plan; in the file before; run now */
    int  ok, failed;          /* of the plan's points, earlier ones included */
    int  torn, damaged;       /* broken lines of the file */
    bool budget_ended;
} SweepOutcome;

/* Runs what is missing; *rows gets the records of the plan, also after a stop (false with
 * ERR_CANCELLED). */
bool sweep_run(Session *s, const SweepSpec *spec, const SweepWatch *watch, Results *rows,
                  SweepOutcome *out, Error *err);

/* Work of a point, in units of their own. */
double sweep_work(const SweepSpec *spec, const SweepPoint *point);
/* Seconds for the points from `next` on that have no row; -1: nothing was measured yet. */
double sweep_left(const SweepSpec *spec, const SweepPlan *plan, const Results *rows,
                  const int *row_of, int next);

/* Estimate for a point, from shorter ones of its series. */
typedef struct Forecast {
    Number  value;
    int64_t from;  /* the n it grows from */
    double  slope; /* as n^slope */
    bool    loose; /* from one point: what does not grow counts as growing, so it is too high */
} Forecast;
Forecast forecast_growth(const int64_t *n, const double *y, int count, int64_t at);

/* ---- records as tables: points, fits, systems ---------------------------- */

/* The systems of the surveys' tables, and what runs them here. */

typedef enum SystemClaimKind { CLAIM_COMPLEXITY, CLAIM_DECODE } SystemClaimKind;

/* "O(n log n) [a]; O(n sqrt(n)) [b]": each claim once, with the surveys that make it;
 * "-": none does. */
void system_claims(const System *system, SystemClaimKind what, Text *out);
/* The class as a survey prints it, else that of the mechanism; "-": nothing runs it. */
const char *system_class(const System *system, char *text, size_t size);

/* Growth with n of a claim such as "O(n sqrt(n))" or "O(k n)"; other letters are constants. */
typedef struct Growth {
    double power; /* of n; < 0: not stated (O(b^2), a claim of memory) */
    bool   log;   /* times log n */
} Growth;
Growth claim_growth(const char *complexity);

/* The next word of system->runs in this catalogue; *at moves past it.  False: no more. */
bool system_next_word(const char **at, char *word, size_t size);
/* The mechanism of the first such word; NULL: none. */
const Mechanism *system_mechanism(const System *system);

/* As CSV for programs, every number as in its record; head: a column more with the numbers of
 * `beside`, or NULL. */
void points_csv(const Results *rows, const char *head, const Number *beside, Text *out);
/* One row a point; CSV has all numbers, text and Markdown the usual ones. */
void points_table(const Results *rows, TableStyle style, int room, Text *out);

/* Quantities of a fit: of the run, then of one token more (--decode). */
typedef enum FitOf {
    FIT_TIME, FIT_FLOPS, FIT_MEMORY,
    FIT_STEP_TIME, FIT_STEP_FLOPS, FIT_STEP_BYTES, FIT_CACHE,
    FIT_OF
} FitOf;
#define FIT_RUN FIT_STEP_TIME /* number of those of the run */

typedef struct SeriesFit {
    const ResultRow *row;      /* first measured row of the series */
    int    points;             /* measured records */
    int    lengths;            /* their distinct n */
    int    drop;               /* so many of the smallest n are left out of the fits */
    int64_t from, to;          /* the smallest and the largest */
    Fit    plain[FIT_OF];      /* of y */
    Fit    logless[FIT_OF];    /* of y / log n: for claims that hold a log n */
    Growth claim[FIT_OF];      /* of the mechanism's source; power < 0: not stated */
    Number crossover;         /* smallest n from which time stays below the baseline's */
    const char *crossover_note; /* static: why not */
} SeriesFit;

/* Fits every measured series; rows sorted by results_sort.  The caller frees *out.  False: no
 * memory. */
bool fit_series(const Results *rows, int drop, SeriesFit **out, int *count, Error *err);
/* Lengths that --drop leaves. */
int  fit_lengths(const SeriesFit *f);
/* Appends what a reader must know of the points of one fit; nothing where all is as usual. */
void fit_note(const Results *rows, const SeriesFit *f, Text *out);
/* The same of all, a line for each that is said of some. */
void fits_note(const Results *rows, const SeriesFit *fits, int count, Text *out);
typedef enum Verdict {
    VERDICT_NONE, VERDICT_WITHIN, VERDICT_ABOVE, VERDICT_BELOW, VERDICT_UNDECIDED
} Verdict;
/* A wider interval holds O(n) and O(n^2) alike: it decides nothing that it holds. */
#define VERDICT_WIDEST 1.0
/* An interval so far from the claim is still within it. */
#define VERDICT_TOLERANCE EXPONENT_TOLERANCE
Verdict     fit_verdict(const SeriesFit *f, FitOf of, Growth claim);
const char *verdict_word(Verdict v); /* "within"; "-": not known */
/* "1.02 [0.98, 1.05]"; "1.02" without an interval; "n/a". */
const char *exponent_text(const Fit *fit, char *text, size_t size);
/* Appends "bigbird(window=5) alibi": what distinguishes the series from others of these rows. */
void series_name(const Results *rows, const ResultRow *row, Text *out);
/* Appends " alibi causal": its settings that differ between these rows. */
void series_setting(const Results *rows, const ResultRow *row, Text *out);
/* Appends the claim without its explanation, which `list` prints. */
void claim_words(const char *claim, Text *out);
/* Number of fits that `word` asked for; *last: the last of them. */
int  fits_of_word(const SeriesFit *fits, int count, const char *word, const SeriesFit **last);
/* Appends the word where it asked for this series only, else the series' name. */
void asked_name(const Results *rows, const SeriesFit *fits, int count, const SeriesFit *f,
                Text *out);
/* The smallest n from which it is faster than full attention, or the reason for none. */
const char *crossover_text(const SeriesFit *f, char *text, size_t size);

/* Prints the surveys' table: a row for each system and each way to run it here. */
void systems_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style,
                   Text *out);
/* Prints runs a second and memory at each length, relative to full attention: the form of Long
 * Range Arena's table, and its lengths (1k to 4k) where the records have them. */
void relative_table(const Results *rows, TableStyle style, Text *out);
/* Borrowed; NULL: the chart's own. */
typedef struct ChartWords {
    const char *title, *caption;
} ChartWords;
/* Draws the exponents of the series, of the systems, or of the series' decoding. */
typedef enum FitsOf { FITS_SERIES, FITS_SYSTEMS, FITS_DECODE } FitsOf;
bool exponents_file(const Results *rows, const SeriesFit *fits, int count, FitsOf of,
                    const ChartWords *words, FigureFormat format, const PngOptions *options,
                    Text *bytes, Error *err);
/* Some record knows what one token more costs. */
bool rows_decode(const Results *rows);
/* Prints for `fit` and `sweep --fit`, by --relative, --json, --drop and --decode. */
bool fits_show(const Results *rows, const Call *call, bool systems, TableStyle style, Text *out,
               Error *err);
/* The file name is of a chart: .png, .svg or .pdf. */
bool fits_chart_name(const char *path);
/* Makes the chart as the bytes of such a file, with the call's line in it. */
bool fits_chart(const Results *rows, const Call *call, bool systems, const char *path, Text *bytes,
                Error *err);
/* The fits of one token more; CSV has the columns of the run's before. */
void fits_decode_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style,
                       int room, Text *out);
/* room: of Table. */
void fits_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style, int room,
                Text *out);
void fits_json(const Results *rows, const SeriesFit *fits, int count, Text *out);

#endif
