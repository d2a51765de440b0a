/* attn/pattern/pattern_language.h -- the parser and its primitives; private to
 * parse.c (the grammar) and primitives.c (what each name builds).
 */
#ifndef ATTN_PATTERN_PATTERN_LANGUAGE_H
#define ATTN_PATTERN_PATTERN_LANGUAGE_H

#include <stddef.h>

#include "attn/pattern/pattern.h"

#define PATTERN_MAX_ARGUMENTS 6

typedef struct PatternValue {
    enum { VALUE_ABSENT, VALUE_INT, VALUE_LIST, VALUE_TENSOR } kind;
    int64_t number;
    Tensor  tensor;  /* TENSOR as given; LIST: u8 [n] flags, arena */
    char    name[64]; /* TENSOR */
    size_t  offset;   /* where it stands in the text */
} PatternValue;

typedef struct PatternParser {
    Arena               *arena;
    PatternShape         shape;  /* of the level being parsed; tile() changes it */
    const char          *text, *at;
    const PatternSource *source;
    Error               *err;
    int                  depth;
    bool                 tiled; /* inside a tile */
    int                  draws; /* random tables drawn so far */
} PatternParser;

typedef struct PatternArg {
    const char *name;
    const char *takes;    /* of "i": integer, "l": list, "t": tensor */
    bool        required;
    int64_t     fallback, lo;
} PatternArg;

typedef struct PatternPrimitive {
    const char *name;
    Pattern *(*build)(PatternParser *p, const PatternValue *v);
    PatternArg  args[PATTERN_MAX_ARGUMENTS + 1];
} PatternPrimitive;

/* Sets the error "pattern, at offset N: ..."; returns NULL, so that builders can
 * end with it. */
void *pattern_fail(PatternParser *p, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void *pattern_no_memory(PatternParser *p);
/* NULL, with the error set, when the arena had no room for the node. */
Pattern *pattern_built(PatternParser *p, Pattern *pattern);

/* NULL, with an error that names the nearest, when there is none of this name. */
const PatternPrimitive *pattern_primitive(PatternParser *p, const char *name, size_t offset);

#endif
