/* app/result/views.h -- what a result reaches over depth: as a view, in numbers, way by way.
 *
 * The layers are the result's mechanism repeated, or a stack "A > B > C" (bottom
 * first).  The cells of a layer are those of its run's connectivity, so a
 * mechanism that chooses cells by content is looked at as it ran on this input.
 * See attn/study/reach.h for the meaning of a hop count.
 */
#ifndef APP_RESULT_VIEWS_H
#define APP_RESULT_VIEWS_H

#include "app/session/session.h"
#include "attn/study/reach.h"
#include "draw/figure/figure.h"
#include "draw/grid/annotation.h"

#define REACH_USUAL 12 /* layers when nobody says: as BERT base and GPT-2 have */
#define REACH_VIEW  "reach"

#define REACH_HELP  "layers until a key's token reaches a query's output"

/* The view is there beside those the mechanism promises. */
bool reach_is_offered(const Mechanism *m);

typedef struct ReachOptions {
    int  layers; /* 0: as many as the stack has, REACH_USUAL for one mechanism */
    bool strict; /* no residual connections: walks of exactly so many layers */
} ReachOptions;

typedef struct Reach Reach; /* of one result; private */

Reach *reach_new(const Result *result); /* NULL: no memory */
void   reach_free(Reach *reach);

/* The view of hop counts (VIEW_HOPS; -1: not reached); made at once, read slowly the
 * first time.  It lives as long as the result.  options may be NULL.  NULL with an
 * error when there is no pattern to follow. */
const View *result_reach(const Result *result, const ReachOptions *options, Error *err);
/* Of such a view: */
int  reach_view_depth(const View *view);
bool reach_view_strict(const View *view);
bool reach_view_ready(const View *view); /* its layers are known: reading does not take long */
/* As reach_path; -2 also when the layers are not known yet. */
int  reach_view_path(const View *view, int64_t q, int64_t k, int64_t *path);
/* "2 layers via k=0", "itself", "not within 12 layers"; returns the hops too. */
int  reach_view_way(const View *view, int64_t q, int64_t k, char *text, size_t size);

/* All of it; takes a while. */
bool result_reach_summary(const Result *result, const ReachOptions *options, Threads *threads,
                          const atomic_bool *cancel, ReachSummary *out, Error *err);
/* The cells depend on what the input holds. */
bool result_reach_by_content(const Result *result);

/* Who was missed: the strongest keys of exact attention, and what of a
 * result found them.
 *
 * A key counts as found where the mechanism's cells hold it: those of `connectivity`, or
 * of the pattern that is the mechanism's picture.  Where all cells are allowed a key is
 * found when it is among the query's own strongest by the mechanism's weights.
 */

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

/* Curves of a result that no run emits: spectra and traces.
 *
 *     spectrum            singular values of the weights of each head
 *     spectrum(VIEW)      of any other matrix
 *     trace               all numbers the stages are watched by (run_trace)
 *     row_error           one of them, by its name with _ for blanks
 *     running_max         a view of the run's replay (attn/study/replay.h)
 *
 * They stand beside the run's own views wherever a view is named; a view of the run
 * with such a name comes first.
 */

#define SPECTRUM_VIEW "spectrum"
#define SPECTRUM_HELP "singular values of the weights, beside the rank the mechanism allows"
#define TRACE_VIEW    "trace"
#define TRACE_HELP    "what the stages are watched by, over their iterations"

bool spectrum_is_offered(const Mechanism *m);

/* The view, made at once (a spectrum is read slowly the first time, on the reader's
 * thread).  It lives as long as the result; the owner's thread asks.  NULL without a word
 * in *err: there is none of this name. */
const View *result_derived(Result *result, const char *name, Error *err);
/* The view is one of these. */
bool view_is_derived(const Result *result, const View *view);
/* Those without parameters, for lists: 0, 1, ...; NULL: no more. */
#define DERIVED_LISTED 2 /* at most */
const View *result_derived_at(Result *result, int at);
/* Makes what reading it needs; false: it cannot be made. */
bool derived_ready(const View *view, int64_t plane, Error *err);
/* That is done already: reading does not take long. */
bool derived_known(const View *view, int64_t plane);
/* "randomised, rank 128, seed 7"; "" where all is exact. */
void derived_words(const View *view, char *text, size_t size);

void derived_free(struct Derived *list); /* NULL is nothing */

/* The tokens of a result in the order its mechanism sorted them in.
 *
 * A mechanism of several rounds (reformer) sorts anew in each: what one round made is shown
 * in that round's order, what all rounds made together in the first's.
 */

/* The view that orders are read from: an order, else categories; NULL: none. */
const View *result_order_source(const Result *result);
/* How many orders a head has; 1 at least. */
int64_t result_order_rounds(const Result *result);
/* Of which round a view is: 0 where it is of all. */
int64_t result_order_round(const Result *result, const View *view);
/* Rows and columns in the order the mechanism sorted them (buckets, clusters), when it has
 * one (slot -> token); owned by the run's arena; NULL: token order is all there is. */
const int32_t *result_sorted_order(Result *result, int64_t head, int64_t round);

/* Whether rows or columns of a view are the `n` tokens of such an order. */
bool view_sorts_rows(const View *view, int64_t n);
bool view_sorts_cols(const View *view, int64_t n);
/* Each row of the view is a round over the tokens, and has its own order. */
bool result_sorts_by_row(const Result *result, const View *view);

/* Rows and columns of the panel in that order, as far as they are the n tokens; where each row
 * has its own, the panel's view is replaced by one that is sorted. */
void picture_order_panel(Result *result, int64_t head, int64_t round, Panel *panel);
/* The same with the borders of the chunks, else of the clusters. */
void picture_sort_panel(Result *result, int64_t head, int64_t round, Panel *panel);

/* Line of a view over the tokens that belongs to a round of a head: categories, chunks. */
const int32_t *round_line(const Run *run, const View *view, int64_t head, int64_t round);

/* The numbers of the bars beside a matrix: sums, entropies, what is kept.
 *
 * Rows are read one at a time and nothing n x n is held.  With a budget a long matrix is
 * sampled: rows evenly over all of it, for the columns, and those in sight.
 */

#define MARGIN_QUERIES_MOST 64

typedef struct MarginRequest {
    MarginKind      kind;
    const Run     *run;
    const View    *view;   /* of the run: see margin_view */
    const View    *minus;  /* numbers are those of view - minus; NULL: off */
    int64_t        plane, minus_plane;
    int64_t        head;   /* of exact attention */
    int64_t        excluded; /* column that does not count; -1: none */
    /* Rows that the sums of columns are of, in increasing order; none: all. */
    int64_t        queries[MARGIN_QUERIES_MOST];
    int            query_count;
    int64_t        row0, row1; /* displayed rows in sight; both 0: all */
    const int32_t *row_order;
    double         budget_entries; /* 0: exact */
    Threads       *threads;
    const atomic_bool *cancel;
} MarginRequest;

/* The view whose rows are read where `shown` is on the screen; NULL with the reason. */
const View *margin_view(const Run *run, const View *shown, MarginKind kind, Error *err);
/* False: no memory, cancelled, or exact attention cannot be found. */
bool margin_make(const MarginRequest *request, Margin *out, Error *err);

/* What a figure asks for. */
typedef struct MarginChoice {
    MarginKind kind;
    int64_t    queries[MARGIN_QUERIES_MOST]; /* as above */
    int        query_count;
} MarginChoice;

/* "3,17,20" */
bool margin_parse_queries(const char *text, MarginChoice *out, Error *err);
/* The bars of one panel of the result, for a figure; its numbers are exact up to a budget.
 * minus: the result whose view the panel subtracts; NULL: none. */
bool margin_of_panel(const Result *result, const Result *minus, const MarginChoice *choice,
                     int64_t head, Threads *threads, const atomic_bool *cancel, Panel *panel,
                     Error *err);

/* One cell of a result explained: the score behind it, its share of
 * the output, and what exact attention makes of the same pair.
 *
 * Nothing is known of the mechanism: that its weights are the softmax of exact attention's
 * scores, and that its output is their sum over V, is found by doing it.
 */

typedef struct CellReader CellReader;

typedef struct CellWhy {
    bool    weighs;     /* the run has weights */
    double  weight;     /* 0: masked */
    bool    softmax;    /* they are of a softmax, and the pair has one */
    double  below;      /* log of the row's largest weight over this one: of any softmax, how
                           far its score lies below the largest */
    bool    scored;     /* exact attention sees the pair */
    double  score;      /* its score before the softmax, position included */
    bool    own_score;  /* the row's weights are the softmax of these very scores */
    double  exact;      /* weight there */
    int64_t exact_rank, exact_of;
    bool    adds;       /* the query's output is the sum of weights times V */
    double  length;     /* of weight times v, beside that of the output: */
    double  output;
    double  share;      /* of the output, along it: those of a row add up to 1 */
} CellWhy;

/* NULL: no memory. */
CellReader *cell_reader_new(Result *result, Error *err);
void        cell_reader_free(CellReader *reader);
/* False: no memory.  Another cell of the same row costs nothing. */
bool        cell_read(CellReader *reader, int64_t head, int64_t q, int64_t k, CellWhy *out,
                      Error *err);
/* A line each: "score      2.318, 0.39 below the row's top". */
void        cell_describe(const CellWhy *why, Text *out);

/* What it was computed in, and where: "f32 (bf16 asked) on NVIDIA H200", "f32 on the CPU". */
void        cell_place(const Result *result, Text *out);

#endif
