/* profile/measure.h -- times and counts any Run.
 *
 * measure() runs a spec once apart (first call), warms up, repeats until the
 * spread is known or the budget ends, and fills a Record.  Timed runs want no
 * views.  Memory is isolated: each measurement uses an arena of its own, so
 * A,B and B,A give the same numbers.  No sample is a run in an untouched arena, except
 * that a first call which leaves no time for another run within max_seconds is itself
 * the one sample; huge pages are touched outside of all clocks but the first call's.  On a
 * GPU a traced run and counted ones follow (device_profile.h), with a budget of their own
 * as large.
 */
#ifndef PROFILE_MEASURE_H
#define PROFILE_MEASURE_H

#include "attn/run.h"
#include "profile/device_profile.h"
#include "profile/record.h"

typedef struct MeasurePlan {
    int    repeats;     /* timed runs at least; 0: one, without a warm-up */
    int    most;        /* timed runs at most */
    double min_seconds; /* keep repeating until this much was timed ... */
    double max_seconds; /* ... but never longer than this */
    double width;       /* stop once the median is known to +- this share, 95 % sure; 0.01 */
    bool   step;        /* a decoder's step: times are without Mechanism.kept_stage */
} MeasurePlan;

#define MEASURE_DEFAULT                                                                        \
    ((MeasurePlan){ .repeats = 7, .most = 200, .min_seconds = 0.2, .max_seconds = 10,          \
                    .width = 0.01 })

/* Fills *out (zeroed first; free with record_free, also after false).  A failed
 * or refused run is a record with its status, not a failure of this call; false
 * only when bookkeeping memory is out.  spec->given is copied, so a live run
 * made with the same assignments is not disturbed; spec->observer still
 * sees the stages of every run. */
bool measure(const RunSpec *spec, const MeasurePlan *plan, Record *out, Error *err);

/* Record of a run that already happened (views and all), without timing.  Its
 * arena_peak then holds what the views needed besides. */
bool record_of_run(Run *run, Record *out, Error *err);

/* Against exact attention on the same q, k, v, position and scale: streams over
 * rows, O(n) memory, O(h n m d) time.  `run` must have been made with views; its
 * threads and cancel flag are used.  What makes no sense stays not valid:
 *   mass             needs a view `connectivity` of n x m cells, and either a
 *                    mechanism that chooses cells (baseline, FP, LP) or a set
 *                    that leaves out a cell full attention weighs: where all is
 *                    connected by design, 1.000 would say nothing;
 *   output_error     needs an output of the shape of full attention's;
 *   total_variation  needs a view `weights` of n x m cells;
 *   kl               needs the same, and rows that are distributions (attn/study/row.h).
 * A mechanism that reads the layer input instead of q, k, v is not compared.
 * by_head [h] gets the same of each head alone (NULL: not wanted).  rows: so many of each head
 * stand for all, one drawn with the run's seed in each of so many equal ranges; the means then have
 * a margin, and exact attention is computed for these rows alone.  0, or n and more: all rows.
 * False: the reference failed, no memory, or cancelled. */
bool quality_measure(const Run *run, int64_t rows, Quality *out, Quality *by_head, Error *err);
/* The run's view of this name if it is one of n queries by m keys, else NULL. */
const View *run_matrix(const Run *run, const char *name);
/* Why there is nothing to compare the run with, static; NULL: there is. */
const char *quality_lacks(const Run *run);
/* True when the run drew a tensor, so that another seed gives another result. */
bool run_is_drawn(const Run *run);
/* Adds the quality of one more seed. */
void seeds_add(SeedSpread *spread, const Quality *quality);

/* ---- heap: the interposed malloc family ------------------------------------- */

/* False under sanitizers and in static programs; *why says so. */
bool    heap_hooks_active(const char **why);
int64_t heap_current(void);    /* usable bytes allocated and not freed, whole process */
int64_t heap_peak(void);       /* since the last heap_peak_reset */
void    heap_peak_reset(void);
int64_t heap_allocations(void); /* calls since start */

/* ---- clocks ----------------------------------------------------------------- */
double clock_wall(void); /* seconds, monotonic */
/* The seconds of an environment variable; `usual` where it is unset or no number >= 0. */
double clock_setting(const char *name, double usual);
double clock_cpu(void);  /* seconds of this process, all threads */
int64_t clock_switches(void); /* times this process was taken off a CPU against its will */

/* ---- statistics ------------------------------------------------------------- */
/* Sorts a copy; q in [0,1], linear between neighbours. NaN when count is 0. */
double stats_quantile(const double *values, int count, double q);
/* Ranks (1-based) of the order statistics between which the median lies with 95 %
 * confidence, whatever the distribution: binomial(count, 1/2).  False below six samples,
 * where no two of them are that far apart. */
bool   stats_median_ranks(int count, int *low, int *high);
void   timing_summarise(Timing *timing); /* from samples */

/* The processor's own counters, through perf events.
 *
 * What the hardware retired, against what the ops counted: floating point
 * operations where the processor counts them (Intel: FP_ARITH_INST_RETIRED by
 * width; AMD Zen: retired SSE/AVX FLOPs), cycles, instructions, last level misses.
 * User code only, every thread the process has when they are opened.  Many virtual
 * machines and containers show no counters: then the reason is text.
 */

typedef struct Counters Counters;

/* Stopped, at zero.  NULL: none can be had; `why` (not NULL) says why, in words. */
Counters *counters_open(char *why, size_t size);
void      counters_start(Counters *counters);
/* Counts since counters_start; what was not counted stays not valid.  Events that had
 * to share a counter are scaled by the time they had it. */
void counters_stop(Counters *counters, HardwareCounts *out);
void counters_close(Counters *counters);

/* What there is a counter of: not every processor has one of each. */
typedef enum Counted { COUNT_CYCLES, COUNT_INSTRUCTIONS, COUNT_MISSES, COUNT_FLOPS } Counted;

unsigned counters_counted(const Counters *counters); /* bit c: Counted c */
/* Such bits in words: what is read, and what is not. */
void     counters_words(unsigned counted, char *text, size_t size);

/* For tests: one raw reading (value, enabled, running: perf_event_open(2)) scaled; not
 * valid when the event never ran. */
Number counter_scaled(const uint64_t reading[3]);

/* How far two runs are from each other. */

typedef struct Difference {
    double max_abs, mean_abs; /* of the outputs */
    double rel_l2;            /* norm of the difference, relative to b's */
    Number total_variation;   /* of the weights, mean over rows */
    Number kl;                /* mean over rows of KL(a's weights || b's), in nats */
    const char *kl_lacks;     /* why there is none, static; NULL: there is */
} Difference;

/* False: outputs of different shapes (ERR_USAGE), no memory, or cancelled.  Against exact
 * attention total_variation and kl are those of quality_measure. */
bool runs_differ(const Run *a, const Run *b, const atomic_bool *cancel, Difference *out,
                 Error *err);

#endif
