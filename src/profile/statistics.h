/* profile/statistics.h -- how a cost grows: the slope of log y on log x, with its interval; and
 * whether one program is dearer than another.
 *
 * The free exponent comes from least squares of the logarithms,
 *
 *     log y = log c + alpha log x,
 *
 * its 95 % interval is Student's, and beside it stand the usual shapes 1, log n, n,
 * n log n, n^1.5 and n^2, each with one free factor and the deviation it leaves.
 * Points of one n (seeds, processes) are no further lengths: the interval comes from their means.
 * Slopes bend at small n, so the local slope between neighbours is kept, and the
 * smallest lengths can be dropped.
 */
#ifndef PROFILE_STATISTICS_H
#define PROFILE_STATISTICS_H

#include "profile/record.h"

typedef enum FitModel {
    FIT_CONSTANT,
    FIT_LOG,
    FIT_LINEAR,
    FIT_NLOGN,
    FIT_N15,
    FIT_SQUARE,
    FIT_MODELS,
} FitModel;

#define FIT_MOST 256 /* points a fit takes */

typedef struct FitPlan {
    int  drop;     /* so many of the smallest distinct x are left out */
    bool over_log; /* fit y / log x: a log that was claimed does not count */
} FitPlan;

#define FIT_PLAN ((FitPlan){ .drop = 0 })
#define FIT_INTERVAL_LENGTHS 4 /* distinct x that an interval needs */

/* t with P(|T| <= t) = .95 of Student's distribution; freedom: from 1. */
double stats_student_95(int freedom);

typedef struct Fit {
    int    count;              /* points used */
    Number alpha;              /* the exponent; valid from two distinct x on */
    Number lo, hi;             /* Student's 95 % interval; valid from four distinct x on */
    Number deviation;          /* standard error of alpha; valid from three distinct x on */
    Number c, r2;              /* factor; share of the variance of log y explained */
    Number rms[FIT_MODELS];    /* of log y, of each one-factor model */
    Number factor[FIT_MODELS];
    Number explained[FIT_MODELS]; /* share of the variance of log y, as r2 is of the free line */
    FitModel best;             /* of smallest rms; when alpha is valid */
    int    locals;             /* slopes between neighbouring distinct x */
    double local_x[FIT_MOST], local[FIT_MOST]; /* at the larger x of the two */
} Fit;

/* Points with x <= 0, y <= 0 or no number are left out (there is no logarithm of
 * them); equal x are averaged for the local slopes.  False: more than FIT_MOST. */
bool fit_power(const double *x, const double *y, int count, const FitPlan *plan, Fit *out,
               Error *err);

const char *fit_model_name(FitModel model); /* "n log n" */

/* ---- is B dearer than A? ----------------------------------------------------
 *
 * Repeats within one process agree with each other more than with those of another process:
 * addresses, the clock of the processor and the neighbours differ.  So one number a process is
 * taken, its median; a pair is a process of A and one of B that ran one after the other; and the
 * spread of the logarithms of b / a over the pairs is the error.  From ten pairs on a quarter at
 * either end is trimmed (Yuen 1974), because a neighbour's burst spoils a whole process. */

#define RATIO_PAIRS_LEAST 5 /* that an interval needs */

typedef struct Ratio {
    Number value, lo, hi; /* b / a, the trimmed mean of the logarithms; its 95 % interval */
    Number p;             /* of the hypothesis that b / a is at most 1 + over */
} Ratio;

/* Pairs without two numbers above 0 are left out.  False: no memory. */
bool ratio_of_pairs(const double *a, const double *b, int pairs, double over, Ratio *out,
                    Error *err);
/* Holm's step-down correction, in place: p[i] <= level rejects hypothesis i, and any false
 * rejection among all of them has at most the probability `level`.  NaN is no hypothesis.
 * False: no memory. */
bool stats_holm(double *p, int count, Error *err);

#endif
