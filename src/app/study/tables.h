/* app/study/tables.h -- result rows as tables: the points, the fits, a difference. */
#ifndef APP_STUDY_TABLES_H
#define APP_STUDY_TABLES_H

#include "app/command/command.h"
#include "attn/run/mechanism.h"
#include "core/text.h"
#include "profile/results.h"
#include "profile/statistics.h"

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
