/* attn/pattern/pattern_node.h -- the inside of a Pattern; private to the pattern files. */
#ifndef ATTN_PATTERN_PATTERN_NODE_H
#define ATTN_PATTERN_PATTERN_NODE_H

#include "attn/pattern/pattern.h"
#include "attn/pattern/runs.h"

/* Pushes row i of head on the stack: disjoint runs inside [0, m). */
typedef void (*PatternRowFn)(const Pattern *p, int64_t head, int64_t i, PatternRow *row);

struct Pattern {
    PatternRowFn   row;
    PatternShape   shape;
    bool           per_head;
    uint8_t        bits;
    int64_t        a, b, c, d, e, f; /* meaning belongs to the row function */
    const Pattern *x, *y;            /* operands */
    Pattern *const *parts;           /* by_head */
    int64_t        part_count;
    const void    *table;            /* tables, flags, lists */
    Tensor         tensor;
};

Pattern *pattern_node(Arena *a, PatternShape s, PatternRowFn row, uint8_t bits);

#endif
