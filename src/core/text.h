/* core/text.h -- growing text, JSON and CSV writers, name distance.
 *
 * A Text grows on the heap and remembers a failed allocation instead of
 * reporting each one: check text_ok() once at the end.
 */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef struct Text {
    char  *data; /* NUL-terminated, or NULL while empty; owned */
    size_t length, capacity;
    bool   failed;
} Text;

void text_free(Text *text);
bool text_ok(const Text *text);
void text_clear(Text *text);
void text_add(Text *text, const char *s);
void text_add_bytes(Text *text, const void *bytes, size_t length);
void text_addf(Text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "1 point", "3 points". */
void text_add_count(Text *text, int64_t count, const char *what);
const char *text_str(const Text *text); /* never NULL */
/* Whether these lines stand in it as whole lines: "window=3" does not in "window=33".  An end of
 * line behind them is of no matter; no lines stand in every text. */
bool text_has_line(const Text *text, const char *lines);
bool lines_hold(const char *all, const char *lines); /* the same of a string */
/* Bytes of the character at text that a terminal only shows; 0: it may obey it. */
size_t text_harmless(const char *text, size_t left);
/* Adds what a terminal shows and never obeys, for words that came from a file: control characters
 * other than newline and tab, those that reorder others, and malformed bytes, become '?'.  colours:
 * sequences that only set colours stay. */
void text_add_shown(Text *text, const char *bytes, size_t length, bool colours);

/* JSON.  Commas are put in by the writer; a NaN or infinity is null, because
 * JSON has no other word for "no number"; malformed UTF-8 becomes U+FFFD. */
typedef struct Json {
    Text *out;
    int   depth;
    bool  comma[16]; /* the level already holds an item */
} Json;

Json jsonw_to(Text *out);
void jsonw_open(Json *j, char bracket);  /* '{' or '[' */
void jsonw_close(Json *j, char bracket); /* '}' or ']' */
void jsonw_key(Json *j, const char *key);
void jsonw_string(Json *j, const char *value); /* NULL is null */
void jsonw_number(Json *j, double value);      /* shortest that reads back; NaN is null */
void jsonw_int(Json *j, int64_t value);
void jsonw_bool(Json *j, bool value);
void jsonw_null(Json *j);
void jsonw_raw(Json *j, const char *json); /* already JSON */
/* A key with its value, or with the bracket that opens its value. */
void jsonw_key_open(Json *j, const char *key, char bracket);
void jsonw_key_string(Json *j, const char *key, const char *value);
void jsonw_key_int(Json *j, const char *key, int64_t value);
void jsonw_key_number(Json *j, const char *key, double value);
void jsonw_key_bool(Json *j, const char *key, bool value);
void jsonw_key_raw(Json *j, const char *key, const char *json);
/* As above; nothing is written for NULL, "" and 0. */
void jsonw_some_string(Json *j, const char *key, const char *value);
void jsonw_some_int(Json *j, const char *key, int64_t value);

/* Words of a man page: what roff would obey is escaped. */
void text_add_roff(Text *out, const char *words);
/* One CSV cell; quotes it only if it must (RFC 4180). */
void csv_cell(Text *out, const char *value, bool first);

/* Numbers in words.  A unit may follow: k, M, G (32k is 32000) or Ki, Mi, Gi (32Ki is 32768). */
#define WHOLE_FORMS " (write 32768, 32k for 32000 or 32Ki for 32768)"
/* A whole number; *end is behind it.  False: there is none, or it is too large. */
bool text_whole_at(const char *text, const char **end, int64_t *out);
bool text_whole(const char *text, int64_t *out); /* nothing stands behind it */
/* Any number; *end is text where there is none. */
double text_number_at(const char *text, const char **end);

/* "12.3 M" style: bytes with binary units, counts with decimal ones. */
char *format_bytes(double bytes, char *text, size_t size);
char *format_count(double count, char *text, size_t size);
/* The same in three digits, "1.38 GiB": of numbers that are exact, as closed forms are. */
char *format_exact_bytes(double bytes, char *text, size_t size);
char *format_exact_count(double count, char *text, size_t size);
/* "12.3 %" of 0.123, "0 %", "100 %": three digits, or as many as nearly all needs to be less than
 * all; none from 1000 % on. */
char *format_percent(double share, char *text, size_t size);
/* "12 s", "3 min", "1.5 h" */
char *format_seconds(double seconds, char *text, size_t size);
/* "12 s, about 3 min left"; left below 0: not known. */
char *format_progress(double elapsed, double left, char *text, size_t size);

/* Whether a text, like the name of a file, ends so. */
bool text_ends_in(const char *text, const char *ending);

/* Edits (insert, delete, replace, swap neighbours) from a to b, of their first 63 bytes. */
int text_distance(const char *a, const char *b);

#define TEXT_ANY_NUMBER 'N' /* in place of a number, in the first of two texts */
/* Moves both past the numbers that begin there; false: one of them has none. */
bool text_pass_numbers(const char **a, const char **b);
/* The lines, each up to its end, differ in numbers alone. */
bool text_same_words(const char *a, const char *b);

#define ANY_SLIPS INT_MAX

/* The name that is probably meant, of those offered: the first of the nearest; a name that holds
 * what is wanted is one slip away.  Begins with
 * { wanted, NULL, slips }; names as many slips away, or more, are not taken. */
typedef struct Meant {
    const char *wanted, *name;
    int         slips;
} Meant;

/* Whether it is nearer than those before. */
bool meant_offer(Meant *nearest, const char *name);

/* Adds the file's bytes to out, `most` of them and a few more where it holds more: whoever has
 * a limit looks at out->length. */
bool file_read(const char *path, size_t most, Text *out, Error *err);
/* The same of a file that is open, which it closes; path: for messages. */
bool file_read_open(int file, const char *path, size_t most, Text *out, Error *err);
/* The last part of a path, within it; the whole path where it ends in a slash. */
const char *path_name(const char *path);
/* What a link leads to, in `real`, so that the link stays when that is replaced; else the path. */
const char *file_target(const char *path, char real[PATH_MAX]);
/* A device or a pipe: written into, never replaced. */
bool file_is_special(const char *path);
/* What can be known before there are bytes: the folder takes a new file, which replaces one of
 * that name but no folder. */
bool file_place(const char *path, Error *err);
/* A new empty file beside path with the same ending and a name that nobody can foresee. */
bool file_new_beside(const char *path, char *name, size_t size, Error *err);
/* Writes to path.PID.tmp and renames it, so a reader never sees half a file; a link to a file stays
 * one; into a device or a pipe at once; "-" is standard output. */
bool file_write(const char *path, const void *bytes, size_t length, Error *err);

#endif
