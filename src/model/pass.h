/* model/pass.h -- the inside of a forward pass; private to src/model.
 *
 * Rows of all variants lie below each other, so that one product serves them all: variant v has
 * slot[v], and rows slot n .. slot n + n - 1 of every [rows, width] buffer.  A variant is computed
 * from the first layer on that its swap changes; until then variant 0 stands for it, so slots are
 * given in the order of these layers and those in use are the first ones.
 */
#ifndef MODEL_PASS_H
#define MODEL_PASS_H

#include "attn/cpu/simd/kernel.h"
#include "attn/run.h"
#include "core/threads.h"
#include "model/forward.h"
#include "model/swap.h"

/* What a product may take from a file at once, in floats: a layer of a small model.  One row of a
 * matrix may be longer. */
#define PASS_WEIGHTS ((int64_t)4 << 20)
#define PASS_PARTS 3

typedef struct Pass {
    const Model       *m;
    const ModelConfig *c;
    Threads           *threads;
    const Kernel      *kernel;
    const atomic_bool *cancel;
    Arena             *arena;
    Error             *err;
    float             *weights;      /* [PASS_WEIGHTS or more] matrices of the product under way */
    const float       *cosine, *sine; /* [positions][rotary / 2] */
} Pass;

/* Matrices below each other, y = x (W_1; W_2; ..)^T + (b_1; b_2; ..). */
typedef struct Linear {
    const Weight *part[PASS_PARTS];
    const float  *bias[PASS_PARTS];
    int           count;
} Linear;

/* Scratch and the table of RoPE for so many positions; false with *err set.  pass_close frees. */
bool pass_open(Pass *p, const Model *m, int threads, int64_t positions, const atomic_bool *cancel,
               Error *err);
void pass_close(Pass *p);
float *pass_floats(Pass *p, int64_t rows, int64_t cols); /* arena's; NULL with *err set */
bool pass_cancelled(const Pass *p);
double pass_seconds(void); /* of a clock that only moves on */

/* Y [rows, ldy] = X [rows, ldx] W^T + b, or Y += when `add`. */
void pass_linear(Pass *p, const Linear *l, const float *x, int64_t ldx, int64_t rows, float *y,
                 int64_t ldy, bool add);
/* The same for rows first .. first + count - 1 of one matrix without a bias. */
void pass_linear_rows(Pass *p, const Weight *w, int64_t first, int64_t count, const float *x,
                      int64_t ldx, int64_t rows, float *y, int64_t ldy);
/* y = norm(x), rows apart by `width`; y may be x. */
void pass_norm(Pass *p, const ModelNormWeights *w, const float *x, int64_t rows, int64_t width,
               float *y);
/* The same of one row, on this thread. */
void row_norm(const Pass *p, const ModelNormWeights *w, const float *x, int64_t width, float *y);
/* h [n, D]: embedding with positions, types, norm and map, whatever the family has. */
bool pass_embed(Pass *p, const int32_t *ids, int64_t n, int64_t position, float *h);
/* q [H,n,d], k, v [K,n,d] of rows [n, (H + 2K) d], after norms and RoPE. */
void pass_heads(Pass *p, const ModelLayer *layer, const float *rows, int64_t n, int64_t position,
                float *q, float *k, float *v);
/* One head's vector of one token, in place: its norm (NULL: none), then RoPE. */
void turn_head(const Pass *p, const float *norm, int64_t position, float *x);
/* activation(gate) * up in place, or of `gate` alone; rows of `stride` floats, gate before up. */
void pass_activate(Pass *p, ModelActivation activation, bool gated, float *rows, int64_t count,
                   int64_t inner, int64_t stride);
/* The same of one stretch on this thread; up NULL: none. */
void activate(const Kernel *kernel, ModelActivation activation, float *x, const float *up,
              int64_t count);
/* h += mlp(z), both [rows, D]; inner [pass_mlp_rows(rows), F, or 2 F where gated]: scratch. */
int64_t pass_mlp_rows(int64_t rows);
void    pass_mlp(Pass *p, const ModelLayer *layer, const float *z, int64_t rows, float *inner,
                 float *h);
/* sum of squares of each row of x [rows, width] (less those of y unless NULL), in double. */
void pass_squares(Pass *p, const float *x, const float *y, int64_t rows, int64_t width,
                  double *out);

/* Logits, row by row reduced. */
bool measure_logits(Pass *p, const ForwardOptions *o, const int32_t *ids, int64_t n,
                    const float *final, const int64_t *slot, ForwardResult *out);
/* [rows, D] before the head's matrix: final states, or the transform of an MLM head. */
bool measure_transform(Pass *p, float *states, int64_t rows);

#endif
