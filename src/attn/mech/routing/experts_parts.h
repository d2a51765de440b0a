/* attn/mech/routing/experts_parts.h -- what routing tells the experts; private to experts*.c. */
#ifndef ATTN_MECH_ROUTING_EXPERTS_PARTS_H
#define ATTN_MECH_ROUTING_EXPERTS_PARTS_H

#include "attn/run.h"

/* One run.  An entry is a choice of a token: token * choices + which. */
typedef struct Experts {
    const ExpertParams *p;
    int64_t  n, dm, experts, ff, choices;
    int64_t  group, groups; /* tokens of a group, the last may be short */
    Tensor   router_w, router_b, w1, b1, w_gate, w2, b2; /* biases, w_gate: may be absent */
    double  *first;    /* [n] probability of the first choice */
    double  *gate;     /* [n*choices] */
    Tensor   expert;   /* i32 [n,choices]; -1: none */
    Tensor   slot;     /* i32 [n,choices]; -1: no place */
    Tensor   lost;     /* u8 [n,choices] asked for, but there was no room */
    Tensor   capacity; /* i32 [groups,experts,2] used, there */
    int64_t *start;    /* [experts+1] placed entries of each expert in `entry` */
    int64_t *entry;    /* [placed] */
    int64_t *row;      /* [n*choices] place of an entry in `entry`; -1: none */
    Tensor   y;        /* f32 [placed,dm] what the experts made of them */
} Experts;

static inline int64_t experts_placed(const Experts *s)
{
    return s->start[s->experts];
}

/* Stage route: first, gate and expert. */
void experts_route(Run *r, Experts *s);
/* Stages expert and combine: s->y, then the output. */
void experts_compute(Run *r, Experts *s);

#endif
