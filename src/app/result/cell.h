/* app/result/cell.h -- one cell of a result explained: the score behind it, its share of
 * the output, and what exact attention makes of the same pair.
 *
 * Nothing is known of the mechanism: that its weights are the softmax of exact attention's
 * scores, and that its output is their sum over V, is found by doing it.
 */
#ifndef APP_RESULT_CELL_H
#define APP_RESULT_CELL_H

#include "app/session/session.h"

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
