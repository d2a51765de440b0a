/* attn/mech/routing/factored.h -- dense layers made of few parameters (Scaling Transformers).
 *
 * S modules of M = dm / S columns; column s * M + m of the result is
 *
 *     Mult(x; D,E,b)[s M + m] = sum_d x_d D[s,d] E[d,m] + b[s M + m]
 *
 * and a convolution runs over the length (causal) and over the modules
 * (centred); what lies outside is 0:
 *
 *     conv(z)[i,s] = b + sum_(a<L, c<W) z[i + a - (L-1), s + c - (W-1)/2] K[a,c]
 */
#ifndef ATTN_MECH_ROUTING_FACTORED_H
#define ATTN_MECH_ROUTING_FACTORED_H

#include "core/tensor.h"

typedef struct Run Run;

/* [1,n,S*M] of x [1,n,dm]; D [S,dm], E [dm,M], b [S*M] or absent.  Charges n S dm (2 M + 1)
 * to overhead: parameters are saved, not multiplications. */
Tensor factored_dense(Run *r, Tensor x, Tensor d, Tensor e, Tensor b);

/* [1,n,S*M] of z [1,n,S*M]; K [L,W,M,M], b [M] or absent.  Charges 2 n S M^2 L W to overhead. */
Tensor factored_conv(Run *r, Tensor z, Tensor kernel, Tensor b);

#endif
