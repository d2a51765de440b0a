/* attn/run/param.h -- typed parameters, described once.
 *
 * A table of Param rows gives command-line parsing, the parameter editor, Lua,
 * range errors, sweep axes and the documents.  Values are bound into a plain C
 * struct through the offsets of the rows.
 */
#ifndef ATTN_RUN_PARAM_H
#define ATTN_RUN_PARAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/tensor.h"
#include "core/text.h"

typedef enum ParamType {
    PARAM_TYPE_INT,    /* int64_t */
    PARAM_TYPE_FLOAT,  /* double */
    PARAM_TYPE_BOOL,   /* bool */
    PARAM_TYPE_ENUM,   /* int: index into choices */
    PARAM_TYPE_FLAGS,  /* unsigned: bit per choice, written [a,b], a+b or, of one letter each, ab */
    PARAM_TYPE_LIST,   /* IndexList: a count "5" or a list "[1,2,5]" */
    PARAM_TYPE_TEXT,   /* const char *: borrowed from the Assignments */
    PARAM_TYPE_TENSOR, /* Tensor: data NULL when not given */
    PARAM_TYPE_PER_HEAD, /* PerHead: a number "1.5" or a tensor [h] */
} ParamType;

typedef struct PerHead {
    double value;  /* for every head, when there is no tensor */
    Tensor tensor; /* [h]; data NULL: not given; see run_per_head */
} PerHead;

typedef struct IndexList {
    bool           is_list; /* "[5]" is a list, "5" is a count */
    int64_t        count;   /* the plain number, or the list's length */
    const int64_t *items;   /* NULL for a count; negative counts from the end; borrowed
                               from the Assignments */
} IndexList;

typedef struct Param {
    const char        *name;
    ParamType          type;
    size_t             offset;
    double             fallback, lo, hi; /* number, bool, enum index, flag bits, count */
    bool               above_lo;         /* lo itself is not allowed */
    bool               below_hi;         /* nor hi */
    bool               even;             /* INT: must be even */
    bool               optional;         /* TEXT: may be absent; TENSOR always may */
    bool               number;           /* TENSOR: one number stands for shape [1] */
    const char *const *choices;          /* NULL-terminated; ENUM and FLAGS */
    const char        *word;             /* TEXT: the default; NULL: none */
    const char        *shape;            /* TENSOR: "[h,d,rounds,R] or [d,rounds,R]" */
    const char        *drawn;            /* TENSOR: how it is drawn without a file */
    const char        *help;             /* one line */
} Param;

#define PARAM_INT(S, field, def, low, high, text)                                              \
    { .name = #field, .type = PARAM_TYPE_INT, .offset = offsetof(S, field),                    \
      .fallback = (def), .lo = (low), .hi = (high), .help = (text) }
#define PARAM_EVEN(S, field, def, low, high, text)                                             \
    { .name = #field, .type = PARAM_TYPE_INT, .offset = offsetof(S, field),                    \
      .fallback = (def), .lo = (low), .hi = (high), .even = true, .help = (text) }
#define PARAM_FLOAT(S, field, def, low, high, text)                                            \
    { .name = #field, .type = PARAM_TYPE_FLOAT, .offset = offsetof(S, field),                  \
      .fallback = (def), .lo = (low), .hi = (high), .help = (text) }
#define PARAM_POSITIVE(S, field, def, text)                                                    \
    { .name = #field, .type = PARAM_TYPE_FLOAT, .offset = offsetof(S, field),                  \
      .fallback = (def), .lo = 0, .hi = 1e30, .above_lo = true, .help = (text) }
/* A cap of scores: every AttendInput of the run gets it (run_attend_input). */
#define PARAM_SOFTCAP(S)                                                                       \
    PARAM_FLOAT(S, softcap, 0, 0, 1e30,                                                        \
                "cap of the scores, softcap tanh(score / softcap); 0: none")
#define PARAM_BOOL(S, field, def, text)                                                        \
    { .name = #field, .type = PARAM_TYPE_BOOL, .offset = offsetof(S, field),                   \
      .fallback = (def), .hi = 1, .help = (text) }
#define PARAM_ENUM(S, field, def, names, text)                                                 \
    { .name = #field, .type = PARAM_TYPE_ENUM, .offset = offsetof(S, field),                   \
      .fallback = (def), .choices = (names), .help = (text) }
#define PARAM_FLAGS(S, field, def, names, text)                                                \
    { .name = #field, .type = PARAM_TYPE_FLAGS, .offset = offsetof(S, field),                  \
      .fallback = (def), .choices = (names), .help = (text) }
#define PARAM_LIST(S, field, def, low, high, text)                                             \
    { .name = #field, .type = PARAM_TYPE_LIST, .offset = offsetof(S, field),                   \
      .fallback = (def), .lo = (low), .hi = (high), .help = (text) }
#define PARAM_TEXT(S, field, text)                                                             \
    { .name = #field, .type = PARAM_TYPE_TEXT, .offset = offsetof(S, field), .help = (text) }
#define PARAM_WORD(S, field, def, text)                                                        \
    { .name = #field, .type = PARAM_TYPE_TEXT, .offset = offsetof(S, field), .optional = true, \
      .word = (def), .help = (text) }
#define PARAM_TENSOR(S, field, dims, init, text)                                               \
    { .name = #field, .type = PARAM_TYPE_TENSOR, .offset = offsetof(S, field),                 \
      .shape = (dims), .drawn = (init), .help = (text) }
#define PARAM_PER_HEAD(S, field, def, low, high, text)                                         \
    { .name = #field, .type = PARAM_TYPE_PER_HEAD, .offset = offsetof(S, field),               \
      .fallback = (def), .lo = (low), .hi = (high), .shape = "[h]", .help = (text) }
/* A number whose default the mechanism works out: written "auto". */
#define PARAM_AUTO (-PARAM_COUNT_MAX)
#define PARAM_END { .name = NULL }

#define PARAM_COUNT_MAX 9007199254740991.0 /* largest integer a double holds exactly */

/* What the user gave: name = text, or name = tensor. */
typedef struct Assignment {
    char    name[64];
    char   *text;    /* owned; as written; for a tensor its source ("@file.npy") */
    Tensor  tensor;  /* data NULL: a plain value.  Borrowed; outlives the run */
    int64_t *items;  /* owned; filled while binding a list, or a number as a tensor */
} Assignment;

typedef struct Assignments {
    Assignment *items; /* owned */
    int         count, capacity;
} Assignments;

/* Last assignment of a name wins.  A name is of letters, digits, '_', '-' and '.'; a text holds at
 * most one kind of quotes.  So what assignment_print prints, assignments_parse reads again. */
bool assignments_set(Assignments *a, const char *name, const char *text, Error *err);
bool assignments_set_tensor(Assignments *a, const char *name, Tensor tensor, const char *source,
                            Error *err);
void assignments_remove(Assignments *a, const char *name);
const Assignment *assignments_find(const Assignments *a, const char *name);
bool assignments_copy(Assignments *to, const Assignments *from, Error *err);
void assignments_free(Assignments *a);
/* Splits "name=value,name=value" at commas outside brackets, quotes and
 * parentheses, and sets each. */
bool assignments_parse(Assignments *a, const char *list, Error *err);
/* "name=value", the value in quotes where it would be read otherwise without. */
void assignment_print(const char *name, const char *value, Text *out);

/* Defaults, then every assignment whose name is in the table.  `out` points at
 * the struct of the table. */
bool params_bind(const Param *table, void *out, const Assignments *given, Error *err);

const Param *params_find(const Param *table, const char *name);
/* The bound value (or the default, with `values` NULL) as it would be written. */
void         params_print(const Param *param, const void *values, Text *out);
const char  *param_type_name(ParamType type);
/* One allowed step up or down from `text`, for editors; false: no number. */
bool         params_step(const Param *param, const char *text, int direction, Text *out);

#endif
