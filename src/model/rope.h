/* model/rope.h -- inverse frequencies of rotary positions, with the scalings of long contexts.
 *
 * Su et al. (2021), RoFormer: inv[t] = base^(-2t/r) for r rotated channels.  Scalings: linear
 * (Chen et al. 2023, position interpolation), yarn (Peng et al. 2023), and Llama 3's.
 */
#ifndef MODEL_ROPE_H
#define MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "model/model.h"

typedef enum RopeKind { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN } RopeKind;

typedef struct Rope {
    int64_t  channels; /* rotated, even */
    double   base;
    RopeKind kind;
    double   factor, original;            /* original: trained context before scaling */
    double   low_factor, high_factor;     /* llama3 */
    double   beta_fast, beta_slow;        /* yarn */
    double   attention_factor;            /* yarn; 0: 0.1 ln factor + 1 */
} Rope;

/* Rope with nothing scaled. */
Rope rope_plain(int64_t channels, double base);
/* Numbers that give no finite frequency are refused; `where` begins the message. */
bool rope_check(const Rope *rope, const char *where, Error *err);
/* Sets rotary, inverse and rotary_scale.  False: no memory. */
bool rope_fill(const Rope *rope, Arena *arena, ModelConfig *config, Error *err);

#endif
