/* attn/pattern/node.h -- the inside of a Pattern; private to the pattern files. */
#ifndef ATTN_PATTERN_NODE_H
#define ATTN_PATTERN_NODE_H

#include <stddef.h>

#include "attn/pattern/pattern.h"

/* Set algebra on arithmetic runs.
 *
 * A PatternRow is used as a stack: an operand is a slice of it, and an operation
 * replaces the topmost slices by its result.  All runs of a slice are pairwise
 * disjoint as sets.
 */

void runs_push(PatternRow *row, int64_t start, int64_t count, int64_t step, uint8_t bits);
/* Keys lo <= j < hi clipped to [0, m). */
void runs_push_range(PatternRow *row, int64_t lo, int64_t hi, int64_t m, uint8_t bits);

/* The common keys of a and b: one run, count 0 when there are none. */
PatternRun runs_common(PatternRun a, PatternRun b);

/* Slices [x, y) and [y, end) become one slice at x. */
void runs_union(PatternRow *row, int64_t x, int64_t y);
void runs_intersect(PatternRow *row, int64_t x, int64_t y);
void runs_difference(PatternRow *row, int64_t x, int64_t y);

/* Moves the slice [from, end) down to `to`. */
void runs_drop(PatternRow *row, int64_t to, int64_t from);

/* Sorts the slice [x, end) by start and joins neighbours with equal bits. */
void runs_tidy(PatternRow *row, int64_t x);

/* Pushes row i of head on the stack: disjoint runs inside [0, m). */
typedef void (*PatternRowFn)(const Pattern *p, int64_t head, int64_t i, PatternRow *row);

/* What a node lets a decoder forget (kept.c); RULE_UNKNOWN: nothing. */
enum {
    RULE_UNKNOWN,
    RULE_ALL, RULE_NONE,
    RULE_BAND,    /* as pattern_band */
    RULE_SPAN,    /* a row sees `span` keys, its own the last */
    RULE_STRIDE,  /* multiples of a */
    RULE_LOG,     /* as pattern_log without a restart */
    RULE_COLUMNS, /* the a intervals of `table`, by every row */
    RULE_PERIOD,  /* as pattern_summary */
    RULE_ROWS,    /* some rows before b */
    RULE_RING,
    RULE_UNION, RULE_INTERSECT, RULE_DIFFERENCE, RULE_COMPLEMENT, RULE_SAME, RULE_TILE,
    RULE_BY_HEAD,
};

/* Which rows of a node are alike; REPEATS_NOT: perhaps none. */
enum {
    REPEATS_NOT,
    REPEATS_ALL,
    REPEATS_BLOCK,    /* those of the same floor(i / a) */
    REPEATS_FLAGS,    /* those of equal flags, one after the other, in `table` */
    REPEATS_OPERANDS, /* those that are alike in x, and in y if there is one */
    REPEATS_TILE,     /* those whose block of a rows is alike in x */
    REPEATS_BY_HEAD,
};

struct Pattern {
    PatternRowFn   row;
    uint8_t        rule, repeats;
    PatternShape   shape;
    bool           per_head;
    uint8_t        bits;
    int64_t        span; /* of RULE_SPAN; this and the next two whatever the shape is */
    int64_t        far, apart; /* of RULE_BAND, RULE_STRIDE, RULE_LOG: farthest key behind, step */
    int64_t        a, b, c, d, e, f; /* parameters of the row function */
    const Pattern *x, *y;            /* operands */
    Pattern *const *parts;           /* by_head */
    int64_t        part_count;
    const void    *table;            /* tables, flags, lists */
    Tensor         tensor;
};

Pattern *pattern_node(Arena *a, PatternShape s, PatternRowFn row, uint8_t bits);
/* p, with this RULE_; NULL where p is. */
Pattern *pattern_ruled(Pattern *p, uint8_t rule);
/* p, with this REPEATS_; NULL where p is. */
Pattern *pattern_repeats(Pattern *p, uint8_t repeats);

/* The parser (parse.c) and its primitives (primitives.c: what each name builds). */

#define PATTERN_MAX_ARGUMENTS 6

typedef struct PatternValue {
    enum { VALUE_ABSENT, VALUE_INT, VALUE_LIST, VALUE_TENSOR } kind;
    int64_t number;
    Tensor  tensor;  /* TENSOR as given; LIST: u8 [n] flags, arena */
    char    name[64]; /* TENSOR */
    bool    moves;    /* LIST, TENSOR: of another length, it is of other positions */
    size_t  offset;   /* in the text, bytes */
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

/* Sets the error "pattern, at offset N: ..." and returns NULL. */
void *pattern_fail(PatternParser *p, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As pattern_fail; false. */
#define pattern_refuse(...) (pattern_fail(__VA_ARGS__) != NULL)
void *pattern_no_memory(PatternParser *p);
/* NULL, with the error set, when the arena had no room for the node. */
Pattern *pattern_built(PatternParser *p, Pattern *pattern);

/* NULL when no primitive has this name; the error names the nearest. */
const PatternPrimitive *pattern_primitive(PatternParser *p, const char *name, size_t offset);

#endif
