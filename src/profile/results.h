/* profile/results.h -- files of results: one JSON record a line (JSON Lines).
 *
 * A sweep appends one line a point, so a file may end in a torn line when the
 * writer was killed; and a point that was run again stands there twice, the later
 * line being the one that counts.  Both are ordinary here.
 */
#ifndef PROFILE_RESULTS_H
#define PROFILE_RESULTS_H

#include "profile/record.h"

struct json_t;

typedef struct ResultRow {
    struct json_t *json; /* owned */
    char       *line;    /* as in the file; owned */
    char       *params;  /* compact JSON with sorted keys; owned */
    const char *key;     /* "9f3c...@0.1.0"; "": none.  Borrowed from json, as all below */
    const char *point;   /* fingerprint of what is measured; "": an older record, or none */
    const char *input_sha256, *script_sha256; /* contents; "": not known, or no script */
    const char *asked;   /* "sinkhorn(sortcut=2)": the word it was asked by; "": unknown */
    const char *mechanism, *position, *device, *precision, *source, *status, *message, *version;
    const char *cpu, *gpu; /* "": no name; gpu: it ran on none */
    const char *host, *time, *commit; /* "": not known */
    const char *against; /* the other program of sweep --against, which measured it; "": this one */
    int64_t     n, seed, threads, d, heads;
    int64_t     record_version; /* 0: from before records had one */
    int64_t     process; /* of those that measured this point: 1, 2 .. */
    bool        causal, ok;
    bool        oversubscribed; /* more threads than processors were free */
    int         file;    /* which of several files; the reader's number */
} ResultRow;

typedef struct Results {
    ResultRow *rows; /* owned */
    int        count, capacity;
    int        damaged;    /* lines in the middle that are no records */
    int        replaced;   /* rows left out by results_latest */
    bool       torn;       /* the last line is not whole; it is not among the rows */
    int64_t    whole_bytes; /* the file's length without a torn line */
} Results;

/* One line, without its newline; a line that is no record counts as damaged. */
bool results_add(Results *results, const char *line, size_t length, int file, Error *err);
/* Appends the rows of a file to *out.  An empty file is fine; a file without any
 * record is an error. */
bool results_read(const char *path, int file, Results *out, Error *err);
void results_free(Results *results);
/* Of rows with the same key in the same file the last stays.  False: no memory, all rows stay. */
bool results_latest(Results *results, Error *err);
const ResultRow *results_find(const Results *results, const char *key); /* the last one */
/* By mechanism as first met, parameters, position, threads, seed, n. */
void results_sort(Results *results);

/* Appends a line where the records are of several versions, or of one that this program does not
 * know; of the rows of b (NULL: none) too. */
void results_note_versions(const Results *a, const Results *b, Text *out);

/* Appends a line where lines of the file that was read last are no records, or its last is torn.
 * damaged_before: as Results.damaged was before. */
void results_note_broken(const Results *results, const char *path, int damaged_before, Text *out);

/* Appends a line where points were not measured: how many of each status, and why the first. */
void results_note_failed(const Results *results, Text *out);

/* Appends the records' notes and warnings, a line for each kind: those that differ in numbers alone
 * are one kind. */
void results_note_warnings(const Results *results, Text *out);

/* Appends a line where more threads than processors were free, of the rows of b (NULL: none) too:
 * how many records, the first of them, and what to do. */
void results_note_oversubscribed(const Results *a, const Results *b, Text *out);

/* "time_ms.median"; not valid when absent or null. */
Number row_number(const ResultRow *row, const char *path);
/* "true" or "false"; NULL when absent or null. */
const char *row_flag(const ResultRow *row, const char *path);
/* A text, such as decode.way; NULL when absent or null. */
const char *row_text(const ResultRow *row, const char *path);
char  *row_list(const ResultRow *row, const char *path); /* JSON, the caller's; NULL: no list */
int    row_sample_count(const ResultRow *row); /* of time_ms.samples */
/* The command that measured it, options as "--repeat=2"; NULL: the record has none. */
const char *row_command(const ResultRow *row);
/* What the command gives for "--repeat"; "": nothing. */
void row_option(const ResultRow *row, const char *flag, char *value, size_t size);
/* The part of a key that names neither process nor version, as its length. */
int key_point_length(const char *key);
/* Same curve over n: all but n and seed are equal, the version too. */
bool row_same_series(const ResultRow *a, const ResultRow *b);
/* Same but for the mechanism and its parameters: what may be compared. */
bool row_same_setting(const ResultRow *a, const ResultRow *b);
/* The same point but for seed and process: their repetitions. */
bool row_same_comparison(const ResultRow *a, const ResultRow *b);
/* The same point, perhaps of another version of the program or of a script: the one place that says
 * which fields identify it (docs/records.md).  counted: repeated more or less often, too, which
 * changes no counted number. */
bool row_same_point(const ResultRow *a, const ResultRow *b, bool counted);
/* Appends what differs between two points, "d (64 and 32)", and returns how many things, of which
 * the mechanism counts three; 0: the records do not say. */
int row_differences(const ResultRow *a, const ResultRow *b, Text *out);
/* "bigbird(window=5)": parameters only where they differ within the results. */
void row_name(const Results *results, const ResultRow *row, Text *out);

#endif
