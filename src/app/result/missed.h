/* app/result/missed.h -- who was missed: the strongest keys of exact attention, and what of a
 * result found them.
 *
 * A key counts as found where the mechanism's cells hold it: those of `connectivity`, or
 * of the pattern that is the mechanism's picture.  Where all cells are allowed a key is
 * found when it is among the query's own strongest by the mechanism's weights.
 */
#ifndef APP_RESULT_MISSED_H
#define APP_RESULT_MISSED_H

#include "app/session/session.h"

#define MISSED_VIEW  "missed"
#define MISSED_HELP  "the strongest keys of exact attention: found, by what, or missed"
#define MISSED_USUAL 8   /* keys looked for when nobody says */
#define MISSED_MOST  1024

typedef struct Missed {
    int64_t  h, n, m;
    int64_t  keys;    /* looked for in each row: at most m */
    bool     ranked;  /* found means: among the strongest by the mechanism's own weights */
    int      rounds;  /* 0: none, cells are found at once */
    double  *alone;   /* [h + 1][rounds] share found by the round itself; last row: all heads */
    double  *together; /* the same by it and the rounds before it */
    double  *found;   /* [h + 1] share found; NaN: no query sees a key */
    double  *mass;    /* [h + 1] share of their exact weight that was found */
    double  *query;   /* [h][n] share found of a query's; NaN: it has no key */
    int     *round_step; /* [rounds] index of the stage that is the round */
    struct MissedParts *parts; /* private */
    struct Missed *next;       /* of the same result, with another number of keys */
} Missed;

/* The view can be there: the run has cells or weights of queries and keys. */
bool missed_is_offered(const Run *run);
/* By what the mechanism promises, before it runs. */
bool missed_is_promised(const Mechanism *m);

/* Computed when first asked for, or for another number of keys (0: MISSED_USUAL), which
 * takes a while; lives as long as the result.  NULL with an error.  threads and cancel may
 * be NULL. */
const Missed *result_missed(Result *result, int64_t keys, Threads *threads,
                            const atomic_bool *cancel, Error *err);
/* What is known already; NULL: not for so many keys. */
const Missed *result_missed_known(const Result *result, int64_t keys);
/* Known, or so cheap that it is made at once; NULL: neither. */
const Missed *result_missed_soon(Result *result, int64_t keys);
/* VIEW_COMPONENTS: what found each of the keys, COMPONENT_OTHER: nothing (View.found). */
const View *missed_view(const Missed *missed);
/* "round 2 finds 41 % of the 8 strongest keys, rounds 1 to 2 63 %" of the stage `step`;
 * nothing where it is no round.  Head -1: all. */
void missed_describe_round(const Missed *missed, int step, int64_t head, Text *out);
/* The same for the run: "71 % of the 8 strongest keys of exact attention found (83 % of
 * their weight)". */
void missed_describe(const Missed *missed, int64_t head, Text *out);

void missed_free(Missed *missed);

#endif
