/* attn/mech/chosen/nsa.h -- which blocks native sparse attention selects; see nsa.c. */
#ifndef ATTN_MECH_CHOSEN_NSA_H
#define ATTN_MECH_CHOSEN_NSA_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/mech/pattern/keys.h"
#include "attn/ops/soft_rows.h"

typedef struct Run Run;

/* A run, for the readers of views, too. */
typedef struct Nsa {
    AttendInput   in;
    SoftRows      keys; /* compressed */
    int64_t       h, g, n, m, nb;
    int64_t       at;      /* position of query 0 among the keys */
    int64_t       page, topk, first, last;
    bool          causal;
    Slots         slots;   /* the compressed blocks */
    Tensor        gates;   /* f32 [h,n,3] */
    int64_t      *start;   /* [g n + 1] where a row begins in `block` */
    PatternRun   *block;   /* selected ones; COMPONENT_WINDOW: by importance, _GLOBAL: fixed */
    KeyPart       part[3]; /* compressed, selected, sliding */
} Nsa;

/* Compressed blocks that row i sees. */
int64_t nsa_seen(const Nsa *a, int64_t i);
/* Selection blocks that row i chooses among, those that it always has, and how many it selects by
 * their importance. */
int64_t nsa_candidates(const Nsa *a, int64_t i);
int64_t nsa_fixed_count(const Nsa *a, int64_t i);
int64_t nsa_more(const Nsa *a, int64_t i);
/* Whether block b, which is a candidate, is one that row i always has. */
bool nsa_fixed(const Nsa *a, int64_t i, int64_t b);
/* Numbers that nsa_importance needs room for, with so many rows. */
int64_t nsa_room(const Nsa *a, int64_t rows);
/* sum[x][b]: the importance of block b in row i + x of a group, in double; sum [rows][nb]. */
void nsa_importance(const Nsa *a, int64_t group, int64_t i, int64_t rows, double *room,
                    double *sum);
/* Fills a->start and a->block; on the host. */
void nsa_select(Run *r, Nsa *a);

#endif
