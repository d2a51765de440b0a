/* attn/study/heads.h -- what a head does, in a few numbers, from its weights row by row.
 *
 * Nothing n x n is kept: rows are added to sums, and the sums become scores and a label.
 */
#ifndef ATTN_STUDY_HEADS_H
#define ATTN_STUDY_HEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* NaN: does not apply. */
typedef struct HeadScores {
    double  previous;  /* mean of W[i,i-1], i >= 1 */
    double  self;      /* mean of W[i,i], i >= 1 */
    double  first;     /* mean of W[i,0], i >= 1: a sink */
    double  next;      /* mean of W[i,i+1]; inputs that are not causal */
    double  offset;    /* the largest mean of W[i,i-t], i >= t, over t from 2 to the smaller of
                          HEAD_OFFSET_MOST and half the rows */
    int64_t offset_tokens; /* that t */
    double  entropy;   /* mean over all rows, nats */
    double  distance;  /* mean of sum_j W[i,j] |i - j| */
    double  near;      /* weight on keys up to HeadRows.near away; mean over rows that see others */
    double  induction; /* weight on what followed earlier occurrences of the token; mean over
                          the rows whose token occurred before */
    int64_t induction_rows; /* how many these are */
    const char *label; /* "induction", "previous", "self", "sink", "broad" or "mixed"; static */
    const char *shown; /* the same, but "offset" for a mixed head that looks a fixed number back */
} HeadScores;

#define HEAD_OFFSET_MOST     16  /* tokens back */
#define HEAD_LEAST_INDUCTION 0.3 /* of the label, on repeated tokens only */

/* The scores by name. */
typedef enum HeadScore {
    HEAD_PREVIOUS, HEAD_SELF, HEAD_FIRST, HEAD_NEXT, HEAD_ENTROPY, HEAD_DISTANCE, HEAD_NEAR,
    HEAD_INDUCTION, HEAD_OFFSET, HEAD_SCORE_COUNT
} HeadScore;
const char *head_score_name(HeadScore which);
bool        head_score_parse(const char *name, HeadScore *out, Error *err);
/* An order by a score: "distance", the largest first, or "-distance", the smallest first. */
typedef struct HeadOrder {
    HeadScore by;
    bool      rising;
} HeadOrder;
bool        head_order_parse(const char *text, HeadOrder *out, Error *err);
double      head_score(const HeadScores *scores, HeadScore which);
#define HEAD_WORDS 32 /* bytes that hold any head_label_words */
/* "previous", "offset 3": the label as people read it; returns room. */
const char *head_label_words(const HeadScores *scores, char *room, size_t size);
/* Names of all labels, ending in NULL; the index is `head_label_index`. */
extern const char *const head_labels[];
int         head_label_index(const char *label);
/* Orders places of `scores` [count]; equal ones stay as they were, and last come heads to which the
 * score does not apply or that have no scores (label NULL). */
void        head_scores_order(const HeadScores *scores, HeadOrder by, int64_t *order,
                              int64_t count);

/* Sums over rows, which become means. */
typedef struct HeadSums {
    double  previous, self, first, next, entropy, distance, near, induction;
    double  back[HEAD_OFFSET_MOST + 1]; /* by t from 2: W[i,i-t] */
    int64_t wide; /* rows that see keys beyond `near` */
} HeadSums;

#define HEAD_NEAR_KEYS 8 /* usual HeadRows.near */

/* The tokens of all heads' rows. */
typedef struct HeadRows {
    int64_t        n;
    bool           causal;
    bool           repeated;   /* random tokens twice: a head may be called induction */
    const int64_t *earlier;    /* [n] the last earlier position of the same token; -1: none */
    int64_t        seen;       /* rows with an earlier one */
    int64_t        near;       /* keys on each side that are near */
    double         log_length; /* mean of ln(keys of a row) */
} HeadRows;

/* Fills earlier [n] from the tokens' ids; returns how many rows have an earlier occurrence. */
int64_t head_earlier(const int32_t *ids, int64_t n, int64_t *earlier);
/* Adds row i, of weights w[0 .. high-low) of the keys from `low` to before `high`. */
void head_sums_row(HeadSums *sums, const HeadRows *rows, int64_t i, const float *w, int64_t low,
                   int64_t high);
void head_sums_add(HeadSums *to, const HeadSums *more);
void head_scores_of(const HeadSums *sums, const HeadRows *rows, HeadScores *out);

#endif
