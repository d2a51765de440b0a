/* model/generate.h -- a model writes on, token by token, with a cache of keys and values.
 *
 * A token's products are taken straight from the file's blocks (model/dot.h), on all threads.  A
 * swap must be a pattern: one softmax over cells that positions alone decide, which here masks the
 * cached keys of a row.
 */
#ifndef MODEL_GENERATE_H
#define MODEL_GENERATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "model/forward.h"
#include "model/model.h"

typedef struct GenerateOptions {
    int64_t  count;       /* tokens to write, at most */
    double   temperature; /* 0: the most probable one always */
    int64_t  top_k;       /* only so many of the most probable; 0: all */
    uint64_t seed;        /* of the draws */
    bool     past_end;    /* goes on after the token that ends a text */
    const Swap *swap;     /* NULL: the model as it is */
    int      threads;     /* 0: all */
    const atomic_bool *cancel; /* ends the writing; what was written stays */
    bool   (*on_token)(void *context, int64_t at, int32_t id, double p); /* false: stop; NULL */
    void    *context;
} GenerateOptions;

typedef struct GenerateResult {
    int32_t *ids;         /* [count] written */
    double  *p;           /* [count] probability of each, before temperature and top_k */
    int64_t  count;
    int64_t  cache_bytes; /* keys and values of all positions */
    int64_t  read_keys;   /* keys that were read for the last token, over layers and heads */
    double   seconds_prompt, seconds; /* reading the text; writing */
    bool     ended;       /* by the token that ends a text */
} GenerateResult;

/* Whether generate_run can begin, without the weights being read: the model, the ids, the swap. */
bool generate_check(const Model *m, const int32_t *ids, int64_t n, const GenerateOptions *options,
                    Error *err);
bool generate_run(const Model *m, const int32_t *ids, int64_t n, const GenerateOptions *options,
                  GenerateResult *out, Error *err);
void generate_result_free(GenerateResult *r);

#endif
