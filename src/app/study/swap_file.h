/* app/study/swap_file.h -- a mixture of swaps that a CSV file says, as advise_model.lua writes it.
 *
 * The first line names the columns: `layer`, `mechanism`, and `head`, which may be missing or hold
 * "all".  Other columns are not read.  Layers and heads without a row, and those whose mechanism
 * is `full`, stay as the model has them.
 */
#ifndef APP_STUDY_SWAP_FILE_H
#define APP_STUDY_SWAP_FILE_H

#include "core/arena.h"
#include "model/forward.h"

typedef struct SwapMixture {
    Arena  *arena;  /* of all of it, itself as well */
    Swap   *parts;  /* [count], each the `also` of the one before */
    int64_t count;
    bool   *layers; /* [layers] that a part has */
    bool   *heads;  /* [heads] that a part has in some layer */
    struct SwapMixture *next; /* the owner's */
} SwapMixture;

/* "@adv.csv" */
bool swap_is_file(const char *swap);
SwapMixture *swap_mixture_read(const char *swap, const ModelConfig *c, uint64_t seed, Error *err);
void         swap_mixture_free(SwapMixture *mixture); /* NULL is fine */

#endif
