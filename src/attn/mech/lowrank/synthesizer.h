/* attn/mech/lowrank/synthesizer.h -- what the synthesizers share: attention without dot
 * products of tokens (Tay et al. 2020, arXiv 2005.00743).
 *
 * The logits come from one token at a time through a small network, or from no
 * token at all:
 *
 *     H = relu(U w1 + b1), or relu(U);   F(U) = H w2 + b2
 *
 * with U the layer input x, or q where the network's first layer is the
 * projection that made q.  Column j of w2 belongs to position j, so a network
 * has a greatest length.  Networks are in double: logits can be large, and their
 * errors are errors of the weights.
 */
#ifndef ATTN_MECH_LOWRANK_SYNTHESIZER_H
#define ATTN_MECH_LOWRANK_SYNTHESIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"

typedef enum FirstLayer { FIRST_LAYER_AUTO, FIRST_LAYER_TRUE, FIRST_LAYER_FALSE } FirstLayer;
extern const char *const first_layer_names[];

typedef struct SynthesizerNet {
    const char *w1_name, *b1_name, *w2_name, *b2_name;
    Tensor      w1, b1, w2, b2; /* as given */
    /* Filled in by synthesizer_net. */
    Tensor      u;              /* [1 or h,n,width] */
    bool        first;          /* w1 and b1 are used */
    int64_t     width, hidden, out;
} SynthesizerNet;

/* The run has x or q for such a network; otherwise it fails. */
void synthesizer_check(Run *r);
/* Sizes of the network; `out` columns of the second layer are used. */
void synthesizer_net(const Run *r, SynthesizerNet *net, FirstLayer first, int64_t out);
/* H f64 [1 or h,n,hidden].  Charges 2 n width hidden per head, nothing without a first layer. */
Tensor synthesizer_hidden(Run *r, const SynthesizerNet *net);
/* w2 [h',hidden,out] and b2 [h',out] (data NULL: none), cut to `out`. */
void synthesizer_second(Run *r, const SynthesizerNet *net, Tensor *w2, Tensor *b2);
/* F(U) f64 [h,n,out].  Charges 2 n hidden out more. */
Tensor synthesizer_apply(Run *r, const SynthesizerNet *net);
bool synthesizer_net_drawn(const SynthesizerNet *net);
double synthesizer_net_flops(const Run *r, const SynthesizerNet *net, bool second);

/* Softmax over the logits and the values: r->out, views connectivity, weights,
 * logits.  drawn: some of what makes the logits was, which their views say. */
void synthesizer_attend(Run *r, const LogitAttend *in, bool drawn);
/* Closed form of that; cost: FLOPs of one logit. */
Flops synthesizer_flops(const Run *r, double cost);

#endif
