/* model/token/normalise.h -- what a tokenizer does to a text before it is cut: a list of steps. */
#ifndef MODEL_TOKEN_NORMALISE_H
#define MODEL_TOKEN_NORMALISE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/text.h"
#include "model/token/regex.h"

typedef enum NormalKind {
    NORMAL_NFC, NORMAL_NFD, NORMAL_NFKC, NORMAL_NFKD,
    NORMAL_LOWER,    /* each character alone, as Unicode's SpecialCasing without context */
    NORMAL_ACCENTS,  /* marks of category Mn go */
    NORMAL_MARKS,    /* all marks go */
    NORMAL_CLEAN,    /* BERT: control characters go, white space becomes a blank */
    NORMAL_CHINESE,  /* BERT: blanks around ideographs */
    NORMAL_STRIP_LEFT, NORMAL_STRIP_RIGHT,
    NORMAL_PREPEND,  /* `to` before a text that is not empty */
    NORMAL_REPLACE,  /* `from` by `to` */
    NORMAL_PATTERN,  /* matches of `regex` by `to` */
} NormalKind;

typedef struct Normal {
    NormalKind kind;
    char      *from, *to; /* owned */
    size_t     from_length, to_length;
    Regex     *regex;     /* owned */
} Normal;

#define NORMALS_MAX 32

typedef struct Normaliser {
    Normal steps[NORMALS_MAX];
    int    count;
} Normaliser;

bool normaliser_add(Normaliser *n, NormalKind kind, Error *err);
/* from: NULL for a step that has none. */
bool normaliser_add_text(Normaliser *n, NormalKind kind, const char *from, size_t from_length,
                         const char *to, size_t to_length, Error *err);
bool normaliser_add_pattern(Normaliser *n, const char *pattern, size_t length, const char *to,
                            size_t to_length, Error *err);
void normaliser_free(Normaliser *n);

/* Text in *out at the end; *in and *out are used in turn. */
bool normaliser_run(const Normaliser *n, const char *text, size_t length, RegexWork *work,
                    Text *in, Text *out, Error *err);

#endif
