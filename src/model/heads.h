/* model/heads.h -- what each head of a model does on a text, in a few numbers.
 *
 * From the exact weights W [n,n] of a head, row by row; nothing n x n of all heads is kept.  Scores
 * and labels: see HeadScores.
 */
#ifndef MODEL_HEADS_H
#define MODEL_HEADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attn/study/heads.h"
#include "core/error.h"
#include "model/model.h"

typedef struct HeadsOptions {
    bool    repeated;  /* the ids are heads_repeat's: a head may be called induction */
    int64_t near;      /* of the score near, in keys; 0: HEAD_NEAR_KEYS */
    int64_t layer;     /* only this one; -1: all */
    int     threads;   /* 0: all */
    const atomic_bool *cancel;
    /* A layer's heads are known; false: stop.  NULL. */
    bool  (*on_layer)(void *context, int64_t layer, const HeadScores *scores);
    void   *context;
} HeadsOptions;

typedef struct HeadsResult {
    int64_t     layers, heads; /* of the model */
    HeadScores *score;         /* [layers, heads]; label NULL: a layer that was not asked for */
    double      seconds;
} HeadsResult;

bool heads_run(const Model *m, const int32_t *ids, int64_t n, const HeadsOptions *options,
               HeadsResult *out, Error *err);
void heads_result_free(HeadsResult *r);

/* `count` random tokens that stand for text, twice, after the token that begins a text if the
 * model has one; ids owned by the caller (token_list_free). */
bool heads_repeat(const Model *m, int64_t count, uint64_t seed, TokenList *out, Error *err);

#endif
