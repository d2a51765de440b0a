/* model/token/regex.h -- the regular expressions of tokenizers; the home of PCRE2.
 *
 * Unicode's categories hold in \s, \p{..} and without case.  A pattern from a file may be hostile:
 * steps and memory of a match are limited, and it cannot cut inside a character.
 */
#ifndef MODEL_TOKEN_REGEX_H
#define MODEL_TOKEN_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

typedef struct Regex     Regex;
typedef struct RegexWork RegexWork; /* of one thread at a time */

Regex *regex_new(const char *pattern, size_t length, Error *err); /* NULL with *err set */
void   regex_free(Regex *r);

RegexWork *regex_work_new(void); /* NULL: no memory */
void       regex_work_free(RegexWork *w);

typedef struct RegexSpan {
    size_t start, end;
} RegexSpan;

/* First match at `from` or behind, empty ones left out; text is valid UTF-8.  *found: there is
 * one.  False with *err set: a limit is reached. */
bool regex_next(const Regex *r, RegexWork *w, const char *text, size_t length, size_t from,
                RegexSpan *span, bool *found, Error *err);

#endif
