/* app/study/match.h -- the comparisons between two sweeps, or between the two programs of one
 * (sweep --against), and a verdict on each.
 *
 * A comparison is one mechanism with its parameters at one n.  Its seeds and its processes are
 * repetitions: pairs of a record of A and one of B.
 *
 * What is counted (FLOPs, bytes, memory) has no noise, so the largest ratio of a pair is judged as
 * it is.  Time is judged by pairs whose processes ran in turn, one of A beside one of B: of two
 * sweeps one after the other, nothing tells what the machine changed from what the program did.
 * Pairs that a busy machine spoiled are left out; what is left must be enough.  A gate fails by any
 * of its comparisons, so the chance of one false alarm among all is held: Holm's correction.  (The
 * false discovery rate of Benjamini and Hochberg lets some through, in proportion.)
 */
#ifndef APP_STUDY_MATCH_H
#define APP_STUDY_MATCH_H

#include "profile/results.h"
#include "profile/statistics.h"

#define MATCH_OVER 0.02  /* a share within which the layout of a program in memory moves times */
#define MATCH_LEVEL 0.01 /* chance of a false alarm, of all comparisons together */

#define MATCH_NO_TURNS "the two sides did not run in turn"

typedef enum MatchCost {
    MATCH_TIME,
    MATCH_FLOPS,
    MATCH_BYTES,
    MATCH_MEMORY,
    MATCH_COSTS,
} MatchCost;

typedef struct Match {
    const ResultRow *row;    /* A's first; borrowed */
    int    seeds, pairs;     /* measured in both */
    int    busy;             /* pairs that are left out of the time */
    Ratio  ratio[MATCH_COSTS]; /* of counted costs only the value, perhaps infinite */
    Number p;                /* of the time, corrected by Holm */
    const char *unjudged;    /* why there is no verdict on time, static; NULL: there is one */
    bool   dearer[MATCH_COSTS];
} Match;

typedef enum ApartKind {
    APART_MISSING,
    APART_UNMEASURED, /* or one of its counted numbers */
    APART_NEW,
    APART_KINDS,
} ApartKind;

/* A record that is not compared, or not in all. */
typedef struct MatchApart {
    const ResultRow *row; /* of A, but of B where it is new; borrowed */
    ApartKind        kind;
    char             why[600];
} MatchApart;

typedef struct Matches {
    Match      *items; /* owned */
    MatchApart *apart; /* owned */
    int         count, apart_count;
    int         count_of[APART_KINDS];
} Matches;

typedef struct MatchPlan {
    double over;    /* dearer is above 1 + over */
    bool   counted; /* time is not looked at */
} MatchPlan;

/* Both sorted by results_sort; their rows are borrowed.  False: no memory. */
bool matches_find(const Results *a, const Results *b, const MatchPlan *plan, Matches *out,
                  Error *err);
void matches_free(Matches *matches);

/* The record says that the machine did other work while its samples were taken, so much that their
 * median may have moved. */
bool row_is_spoiled(const ResultRow *row);
bool match_is_dearer(const Match *match);
/* Less of a counted cost in every pair, by more than the share of the plan; *cost: it fell most. */
bool match_is_cheaper(const Match *match, const MatchPlan *plan, MatchCost *cost);
const char *match_cost_name(MatchCost cost); /* "FLOPs" */
const char *apart_name(ApartKind kind);      /* "no_longer_measured" */

#endif
