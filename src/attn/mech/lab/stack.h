/* attn/mech/lab/stack.h -- a small Transformer stack around any mechanism of the catalogue.
 *
 *     att_l(x) = concat over heads of attention(y wq, y wk, y wv) wo,   y = LN1_l(x)
 *     ffn_l(x) = act(LN2_l(x) w1 + b1) w2 + b2
 *     plain layer:  x += att_l(x);  x += ffn_l(x)
 *
 * Weights are stored [in, out].  All of it is in double but the attention itself, which is
 * the catalogue's, in single precision and with scale 1/sqrt(dm/heads).
 *
 * Bytes are accounted from shapes, for one sequence, e bytes a number: a token matrix
 * I = e n dm; W_A = e (N + 4 n dm + cells), the normed input, q, k, v, context and weights;
 * W_F = e (N + c n f), c = 1 for relu and 2 for gelu; N = n dm with norm, else 0.  A layer
 * keeps its input, its middle, W_A and W_F: A = I + W, W = W_A + I + W_F.
 */
#ifndef ATTN_MECH_LAB_STACK_H
#define ATTN_MECH_LAB_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/run/mechanism.h"
#include "attn/run/param.h"
#include "core/tensor.h"

typedef struct Mechanism Mechanism;
typedef struct Run Run;

/* First member of a mechanism's Params; the rows below go into its table. */
typedef struct StackParams {
    int64_t     layers, heads, d_ff, element_bytes;
    const char *attention;
    int         norm, activation;
    double      ln_eps;
    Tensor      wq, wk, wv, wo, w1, b1, w2, b2, ln1_gamma, ln1_beta, ln2_gamma, ln2_beta;
} StackParams;

extern const char *const stack_norms[], *const stack_activations[];
enum { STACK_PRE, STACK_NO_NORM };
enum { STACK_RELU, STACK_GELU };

#define STACK_SIZES                                                                                \
    PARAM_INT(StackParams, layers, 6, 1, 4096, "layers L; taken from the tensors when given"),     \
        PARAM_INT(StackParams, heads, 1, 1, INT32_MAX, "heads of a layer; divide dm"),             \
        PARAM_INT(StackParams, d_ff, PARAM_AUTO, 1, INT32_MAX, "hidden units f; auto: 4 dm")
#define STACK_FORM                                                                                 \
    PARAM_WORD(StackParams, attention, "full",                                                     \
               "mechanism that attends in every layer; its parameters beside it, as "              \
               "attention.NAME where both have one"),                                              \
        PARAM_ENUM(StackParams, norm, STACK_PRE, stack_norms, "layer norm before each branch"),    \
        PARAM_POSITIVE(StackParams, ln_eps, 1e-5, "added to the variance"),                        \
        PARAM_ENUM(StackParams, activation, STACK_RELU, stack_activations,                         \
                   "of the feed-forward branch; gelu by the error function"),                      \
        PARAM_INT(StackParams, element_bytes, 4, 1, 64, "bytes of a number, in the accounts")
#define STACK_TENSORS                                                                              \
    PARAM_TENSOR(StackParams, wq, "[L,dm,dm]", "N(0, 1/dm)", "queries' projections"),              \
        PARAM_TENSOR(StackParams, wk, "[L,dm,dm]", "N(0, 1/dm)", "keys' projections"),             \
        PARAM_TENSOR(StackParams, wv, "[L,dm,dm]", "N(0, 1/dm)", "values' projections"),           \
        PARAM_TENSOR(StackParams, wo, "[L,dm,dm]", "N(0, 1/dm)", "output projections"),            \
        PARAM_TENSOR(StackParams, w1, "[L,dm,f]", "N(0, 1/dm)", "feed-forward, first layer"),      \
        PARAM_TENSOR(StackParams, b1, "[L,f]", "0", "its bias"),                                   \
        PARAM_TENSOR(StackParams, w2, "[L,f,dm]", "N(0, 1/f)", "feed-forward, second layer"),      \
        PARAM_TENSOR(StackParams, b2, "[L,dm]", "0", "its bias"),                                  \
        PARAM_TENSOR(StackParams, ln1_gamma, "[L,dm]", "1", "gain of the norm before attention"),  \
        PARAM_TENSOR(StackParams, ln1_beta, "[L,dm]", "0", "its bias"),                            \
        PARAM_TENSOR(StackParams, ln2_gamma, "[L,dm]", "1",                                        \
                     "gain of the norm before the feed-forward branch"),                           \
        PARAM_TENSOR(StackParams, ln2_beta, "[L,dm]", "0", "its bias")
#define STACK_PARAMS STACK_SIZES, STACK_FORM, STACK_TENSORS

/* What is drawn when no file gives it is shown. */
#define STACK_DRAWN(tensor)                                                                    \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "drawn weights" }
#define STACK_VIEWS                                                                            \
    STACK_DRAWN("wq"), STACK_DRAWN("wk"), STACK_DRAWN("wv"), STACK_DRAWN("wo"),                \
        STACK_DRAWN("w1"), STACK_DRAWN("w2")

typedef struct StackShape {
    int64_t layers, heads, n, dm, d_ff;
    bool    norm, gelu;
} StackShape;

typedef struct Stack {
    StackShape         shape;
    const StackParams *p;
    const Mechanism   *attention;
    Tensor  wq, wk, wv, wo, w1, b1, w2, b2, ln1_gamma, ln1_beta, ln2_gamma, ln2_beta;
    bool    silent; /* counted nowhere: what only a view needs */
    bool    keep;   /* what a backward pass would need stays in the arena */
    int64_t used;   /* largest use of the arena seen at the end of a branch, bytes; set to 0
                       to begin anew */
    bool    measured; /* the two below are of the first attention that ran */
    int64_t cells, written;
} Stack;

typedef struct StackBytes {
    int64_t token, attention, ffn; /* I, W_A, W_F */
    int64_t work, layer;           /* W, A */
} StackBytes;

/* Sizes by parameters and tensors, without the weights; dm is the width of the layers. */
StackShape stack_shape(Run *r, const StackParams *p, int64_t dm);
/* Checks and draws the weights. */
Stack stack_open(Run *r, const StackParams *p, int64_t dm);

/* f64 [1,n,dm] tensors.  A branch overwrites y; with s->keep what it computed on the way is
 * not released. */
Tensor stack_tokens(Run *r, const Stack *s);
Tensor stack_input(Run *r, const Stack *s); /* a copy of r->x */
void   stack_copy(Run *r, Tensor from, Tensor to);
void   stack_attend(Run *r, Stack *s, int64_t layer, Tensor x, Tensor y);
void   stack_ffn(Run *r, Stack *s, int64_t layer, Tensor x, Tensor y);
/* att_l in two steps: the heads' contexts side by side, and what wo makes of them. */
void   stack_context(Run *r, Stack *s, int64_t layer, Tensor x, Tensor context);
void   stack_project(Run *r, Stack *s, int64_t layer, Tensor context, Tensor y);
void   stack_add(Run *r, const Stack *s, Tensor x, Tensor y); /* x += y */
void   stack_layer(Run *r, Stack *s, int64_t layer, Tensor x); /* in place */
/* r->out [1,n,dm] from x; makes it unless it is there. */
void   stack_out(Run *r, Tensor x);

/* Charged to overhead, the additions to x included; what attention charges apart. */
double stack_attend_flops(const StackShape *s);
double stack_ffn_flops(const StackShape *s);

/* After the first attention of a run that makes views; warns when the attention holds
 * something else than its cells. */
StackBytes stack_bytes(Run *r, const Stack *s);

/* The mechanism called `id`, the value of parameter `name`; fails the run when there is none
 * or it does not take q, k and v. */
const Mechanism *inner_find(Run *r, const char *name, const char *id);

#endif
