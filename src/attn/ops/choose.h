/* attn/ops/choose.h -- every query chooses keys, or pages of keys, by a number for each.
 *
 *     CHOOSE_SCORES   its score S[i,j]
 *     CHOOSE_INDEX    sum over t of w[i,t] max(0, q[i,t] . k[j]) / sqrt(H d), for all heads
 *     CHOOSE_PAGES    scale * sum over c of max(q[i,c] lo[u,c], q[i,c] hi[u,c]) of page u
 *     CHOOSE_MEANS    q[i] . mean[u] of page u; the page of the query itself is always chosen
 *
 * lo and hi are the least and the largest number of each channel over the page's keys that query i
 * may see, so no score of the page exceeds the number by more than rounding.  The choice is decided
 * in double, sums in index order; of equal numbers the lower key comes first.
 */
#ifndef ATTN_OPS_CHOOSE_H
#define ATTN_OPS_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef enum ChooseKind { CHOOSE_SCORES, CHOOSE_INDEX, CHOOSE_PAGES, CHOOSE_MEANS } ChooseKind;

typedef struct ChooseKeys {
    ChooseKind  kind;
    AttendInput in;       /* all but CHOOSE_INDEX: q and k */
    Tensor      q, k, w;  /* CHOOSE_INDEX: f32 or f64 [1,n,H d], [1,m,d], [1,n,H] */
    int64_t     heads;    /* H */
    Tensor      lo, hi;   /* CHOOSE_PAGES: f32 [h',P,d] of whole pages */
    Tensor      mean;     /* CHOOSE_MEANS: f64 [h',P,d] */
    Tensor      near;     /* the same in f32: few queries read it, and `mean` where it does not
                             decide; or no data */
    int64_t     page;     /* CHOOSE_PAGES, CHOOSE_MEANS: keys of a page */
    int64_t     most;     /* chosen by a row at most; 0: all that it may see */
    double      mass;     /* CHOOSE_SCORES: the fewest that hold this share; 0: off */
    bool        sums;     /* CHOOSE_SCORES: lse is wanted also without mass */
    bool        ranked;   /* the chosen keys are wanted in order of their numbers, too */
    bool        causal;   /* the last query stands at the last key */
    bool        newest;   /* CHOOSE_PAGES: the last page that is seen is among the chosen */
} ChooseKeys;

/* Lists of keys, or of pages, in order of sets and queries; a set is a query head, or all. */
typedef struct ChosenKeys {
    int64_t  sets, n;
    int64_t *start;     /* [sets n + 1] where a row begins in `key` */
    int32_t *key;       /* increasing in each row */
    Tensor   least;     /* f32 [sets,n] CHOOSE_SCORES: the score of the last one chosen; 0 in an
                           empty row */
    Tensor   lse;       /* f64 [sets,n] log of the sum of exp of all that the row sees; data NULL:
                           not asked for */
    Tensor   share;     /* f64 [sets,n] as lse: how much of that sum the chosen keys are */
    int32_t *best;      /* as key, the largest number first; NULL: not asked for */
    double   seen, taken; /* candidates of all rows, and how many were chosen */
} ChosenKeys;

/* On the host, whatever the device: its result is lists.  Charges nothing: callers do. */
ChosenKeys op_choose(Run *r, const ChooseKeys *in);

/* What op_choose calls; `out` has room for all but the lists. */
void cpu_choose(Run *r, const ChooseKeys *in, ChosenKeys *out);

/* Whether rows choose pages, not keys. */
bool choose_pages(const ChooseKeys *in);
/* How many keys, or pages, row i chooses among. */
int64_t choose_candidates(const ChooseKeys *in, int64_t i);
/* The candidate that row i takes whatever its number; -1: none. */
int64_t choose_fixed(const ChooseKeys *in, int64_t i);
/* 1 if the bounds of the last page that row i sees are not those of the whole page, because it sees
 * a part of its keys; else 0. */
int64_t choose_bounds_differ(const ChooseKeys *in, int64_t i);
/* Whether the factors of its products are floats, so that these are exact in double. */
bool choose_exact(const ChooseKeys *in);
/* CHOOSE_PAGES as products: the larger of q lo and q hi is max(q, 0) hi + min(q, 0) lo, one of
 * which is 0.  `to` gets the two factors of each channel; an infinite bound becomes the largest
 * number, which times 0 is 0. */
void choose_split(const float *q, int64_t count, double *to);
/* Factors [from, from + count) of candidate j, the queries' other side, `step` apart; even numbers
 * with CHOOSE_PAGES. */
void choose_factors(const ChooseKeys *in, int64_t heads, int64_t head, int64_t j, int64_t from,
                    int64_t count, int64_t step, double *to);
/* The number that row i has for candidate j: for readers of views. */
double choose_number(const ChooseKeys *in, int64_t heads, int64_t head, int64_t i, int64_t j);
/* As choose_number, of `row_count` rows at candidates [start, start + count), into out
 * [row_count,count]: for readers of several rows (ViewReadRows), with their limits.  Sums may be in
 * another order; pages that a row does not see are 0.  Not of CHOOSE_SCORES. */
void choose_numbers(const ChooseKeys *in, int64_t heads, int64_t head, const int64_t *rows,
                    int64_t row_count, int64_t start, int64_t count, float *out);

#endif
