/* app/result/views.h -- what is computed from a result when asked for: reach, missed keys, spectra,
 * orders, margins, cells.
 *
 * Reach over depth: the layers are the result's mechanism repeated, or a stack "A > B > C" (bottom
 * first).  Allowed pairs of a layer are those of its run's connectivity, so a mechanism that
 * chooses pairs by content is shown as it ran on this input.  attn/study/reach.h defines the hop
 * count.
 */
#ifndef APP_RESULT_VIEWS_H
#define APP_RESULT_VIEWS_H

#include "app/session/session.h"
#include "attn/study/heads.h"
#include "attn/study/reach.h"
#include "draw/figure/figure.h"
#include "draw/grid/annotation.h"

/* All pairs, or the whole causal triangle, are allowed: the pattern shows nothing. */
bool pattern_is_trivial(const Run *run, const Pattern *cells);

#define REACH_USUAL 12 /* usual layers, as in BERT base and GPT-2 */
#define REACH_VIEW  "reach"

#define REACH_HELP  "layers until a key's token reaches a query's output"

/* Runs of this mechanism have the view. */
bool reach_is_offered(const Mechanism *m);

typedef struct ReachOptions {
    int  layers; /* 0: as many as the stack has, REACH_USUAL for one mechanism */
    bool strict; /* no residual connections: walks of exactly so many layers */
} ReachOptions;

typedef struct Reach Reach; /* of one result; private */

Reach *reach_new(const Result *result); /* NULL: no memory */
void   reach_free(Reach *reach);

/* The view of hop counts (VIEW_HOPS; -1: not reached), computed when first read; lives as long as
 * the result.  options may be NULL.  NULL with an error where the run has no pairs. */
const View *result_reach(const Result *result, const ReachOptions *options, Error *err);
/* Of such a view: */
int  reach_view_depth(const View *view);
bool reach_view_strict(const View *view);
bool reach_view_ready(const View *view); /* its layers are compiled, so reading is quick */
/* As reach_path; -2 also where the layers are not compiled yet. */
int  reach_view_path(const View *view, int64_t q, int64_t k, int64_t *path);
/* "2 layers via k=0", "itself", "not within 12 layers"; returns the hops too. */
int  reach_view_way(const View *view, int64_t q, int64_t k, char *text, size_t size);

/* Numbers of all pairs; takes a while. */
bool result_reach_summary(const Result *result, const ReachOptions *options, Threads *threads,
                          const atomic_bool *cancel, ReachSummary *out, Error *err);
/* Allowed pairs depend on the content of the input. */
bool result_reach_by_content(const Result *result);

/* Missed keys: the strongest keys of exact attention, and what of a result found them.
 *
 * A key is found where it is an allowed pair: in `connectivity`, or in the pattern that is the
 * mechanism's picture.  Where all pairs are allowed, it is found where it is among the query's
 * strongest keys by the mechanism's weights.
 */

#define MISSED_VIEW  "missed"
#define MISSED_HELP  "the strongest keys of exact attention: found, by what, or missed"
#define MISSED_USUAL 8   /* usual number of keys */
#define MISSED_MOST  1024

typedef struct Missed {
    int64_t  h, n, m;
    int64_t  keys;    /* for each query: at most m */
    bool     ranked;  /* found: among the strongest by the mechanism's own weights */
    int      rounds;  /* 0: no rounds */
    double  *alone;   /* [h + 1][rounds] share found by the round alone; last row: all heads */
    double  *together; /* [h + 1][rounds] by it and earlier rounds */
    double  *found;   /* [h + 1] share found; NaN: no query sees a key */
    double  *mass;    /* [h + 1] share of their exact weight in found keys */
    double  *query;   /* [h][n] share found of a query's keys; NaN: it has none */
    int     *round_step; /* [rounds] index of the round's stage */
    struct MissedParts *parts; /* private */
    struct Missed *next;       /* with another number of keys */
} Missed;

/* The run has pairs or weights of queries and keys. */
bool missed_is_offered(const Run *run);
/* The mechanism promises such views. */
bool missed_is_promised(const Mechanism *m);

/* Computed for so many keys (0: MISSED_USUAL) when first asked for, which takes a while; lives as
 * long as the result.  NULL with an error.  threads and cancel may be NULL. */
const Missed *result_missed(Result *result, int64_t keys, Threads *threads,
                            const atomic_bool *cancel, Error *err);
/* The same where it is computed already; NULL: not yet. */
const Missed *result_missed_known(const Result *result, int64_t keys);
/* The same where it is computed already or quickly; NULL: neither. */
const Missed *result_missed_soon(Result *result, int64_t keys);
/* VIEW_COMPONENTS: what found each key; COMPONENT_OTHER: missed (View.found). */
const View *missed_view(const Missed *missed);
/* Appends "round 2 finds 41 % of the 8 strongest keys, rounds 1 to 2 63 %" for the stage `step`;
 * nothing where it is no round.  Head -1: all. */
void missed_describe_round(const Missed *missed, int step, int64_t head, Text *out);
/* Appends "71 % of the 8 strongest keys of exact attention found (83 % of their weight)". */
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

/* The view; a spectrum is computed when it is first read, on the reader's thread.  Lives as long as
 * the result; for the owner's thread.  NULL without an error: no view of this name. */
const View *result_derived(Result *result, const char *name, Error *err);
/* The view is derived. */
bool view_is_derived(const Result *result, const View *view);
/* Views without parameters, for lists: 0, 1, ...; NULL: no more. */
#define DERIVED_LISTED 2 /* at most */
const View *result_derived_at(Result *result, int at);
/* Computes what reading needs; false: impossible. */
bool derived_ready(const View *view, int64_t plane, Error *err);
/* It is computed already, so reading is quick. */
bool derived_known(const View *view, int64_t plane);
/* "randomised, rank 128, seed 7"; "" where the numbers are exact. */
void derived_words(const View *view, char *text, size_t size);

void derived_free(struct Derived *list); /* may be NULL */

/* Orders: the tokens of a result as its mechanism sorted them.
 *
 * A mechanism of several rounds (reformer) sorts in each: a view of one round is shown in that
 * round's order, a view of all rounds in the first's.
 */

/* The view that gives the order: an order, else categories; NULL: none. */
const View *result_order_source(const Result *result);
/* Number of orders of a head; at least 1. */
int64_t result_order_rounds(const Result *result);
/* Round of a view; 0 where it belongs to all. */
int64_t result_order_round(const Result *result, const View *view);
/* The mechanism's order of the tokens (slot -> token), owned by the run's arena; NULL: it does not
 * sort. */
const int32_t *result_sorted_order(Result *result, int64_t head, int64_t round);
/* The bucket of each token in that round; NULL: there are none. */
const int32_t *result_categories(const Result *result, int64_t head, int64_t round);

/* Rows or columns of the view are tokens that the order sorts: sinkhorn sorts keys only. */
bool result_sorts_rows(const Result *result, const View *view);
bool result_sorts_cols(const Result *result, const View *view);
/* Each row of the view is a round with an order of its own. */
bool result_sorts_by_row(const Result *result, const View *view);

/* Sorts rows and columns of the panel that are tokens; where each row has its own order, a sorted
 * copy replaces the panel's view. */
void picture_order_panel(Result *result, int64_t head, int64_t round, Panel *panel);
/* The first slot of each chunk or cluster in that order, into first [n]; returns how many. */
int64_t picture_borders(const Result *result, int64_t head, int64_t round, const int32_t *order,
                        int64_t *first);
/* As picture_order_panel, with borders of chunks or clusters. */
void picture_sort_panel(Result *result, int64_t head, int64_t round, Panel *panel);

/* The line of a view (categories, chunks) for a round of a head. */
const int32_t *round_line(const Run *run, const View *view, int64_t head, int64_t round);

/* Margins: the numbers of the bars beside a matrix: sums, entropies, kept mass.
 *
 * Rows are read one at a time, so nothing n x n is held.  With a budget a long matrix is sampled:
 * evenly spaced rows for the columns, and the rows in sight.
 */

#define MARGIN_QUERIES_MOST 64

typedef struct MarginRequest {
    MarginKind      kind;
    const Run     *run;
    const View    *view;   /* of the run: see margin_view */
    const View    *minus;  /* subtracted view; NULL: none */
    int64_t        plane, minus_plane;
    int64_t        head;   /* of exact attention */
    int64_t        excluded; /* column left out; -1: none */
    /* Rows in the columns' sums, in increasing order; none: all. */
    int64_t        queries[MARGIN_QUERIES_MOST];
    int            query_count;
    int64_t        row0, row1; /* displayed rows in sight; both 0: all */
    const int32_t *row_order;
    double         budget_entries; /* 0: exact */
    Threads       *threads;
    const atomic_bool *cancel;
} MarginRequest;

/* The view to read where `shown` is on the screen; NULL with the reason. */
const View *margin_view(const Run *run, const View *shown, MarginKind kind, Error *err);
/* False: no memory, cancelled, or exact attention is not possible. */
bool margin_make(const MarginRequest *request, Margin *out, Error *err);

/* What a figure asks for. */
typedef struct MarginChoice {
    MarginKind kind;
    int64_t    queries[MARGIN_QUERIES_MOST]; /* rows in the columns' sums */
    int        query_count;
} MarginChoice;

/* "3,17,20" */
bool margin_parse_queries(const char *text, MarginChoice *out, Error *err);
/* Sets the bars of a figure's panel; exact up to a budget.  minus: result of the subtracted view;
 * NULL: none. */
bool margin_of_panel(const Result *result, const Result *minus, const MarginChoice *choice,
                     int64_t head, Threads *threads, const atomic_bool *cancel, Panel *panel,
                     Error *err);

/* Scores of each head [h], from the weights of a run over one sequence; label NULL where there are
 * none, or too many to read. */
void result_head_scores(const Result *result, HeadScores *out, Threads *threads,
                        const atomic_bool *cancel);

typedef struct HeadPlace {
    int64_t layer, head;
    double  score;
} HeadPlace;

/* The head with the largest score among all layers of a small input, in exact attention.  False: it
 * cannot be run, or no head has that score. */
bool input_leading_head(const char *spec, HeadScore by, HeadPlace *out, Error *err);

/* Cells: the score behind one cell of a result, its share of the output, and the same pair in exact
 * attention.
 *
 * Nothing is assumed of the mechanism: whether its weights are the softmax of exact scores, and
 * whether its output is their sum over V, is computed.
 */

typedef struct CellReader CellReader;

typedef struct CellWhy {
    bool    weighs;     /* the run has weights */
    double  weight;     /* 0: masked */
    bool    softmax;    /* the weights are of a softmax that has this pair */
    double  below;      /* log of the row's largest weight over this one: of any softmax, how
                           far its score lies below the largest */
    bool    scored;     /* exact attention has the pair */
    double  score;      /* its score before the softmax, position included */
    bool    own_score;  /* the row's weights are the softmax of these very scores */
    double  exact;      /* weight in exact attention */
    int64_t exact_rank, exact_of;
    int64_t exact_equal; /* other keys of the row that are as strong, but for rounding */
    bool    adds;       /* the query's output is the sum of weights times V */
    double  length;     /* length of weight times v, and of the output */
    double  output;
    double  share;      /* projection on the output; a row's shares add up to 1 */
    int64_t evicted_after; /* the earlier query after which the key left the cache; -1: none */
} CellWhy;

/* NULL: no memory. */
CellReader *cell_reader_new(Result *result, Error *err);
void        cell_reader_free(CellReader *reader);
/* False: no memory, or the run has no such head, query or key.  Another cell of the same row is
 * free. */
bool        cell_read(CellReader *reader, int64_t head, int64_t q, int64_t k, CellWhy *out,
                      Error *err);
/* Prints one fact a line: "score      2.318, 0.39 below the row's top". */
void        cell_describe(const CellWhy *why, Text *out);

/* Appends precision and device: "f32 (bf16 asked) on NVIDIA H200", "f32 on the CPU". */
void        cell_place(const Result *result, Text *out);

#endif
