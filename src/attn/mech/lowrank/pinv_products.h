/* attn/mech/lowrank/pinv_products.h -- a pseudo-inverse by matrix products alone.
 *
 * Z starts as A^T / c, c the largest column sum of A, and is improved by
 *
 *     Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4
 *
 * (Razavi et al. 2014; as Nystromformer uses it).  Everything is f64 [h,L,L].
 * With views the run shows Z after each round as `factor_core`, and keeps the
 * residuals max |A Z A - A|, which tell whether the rounds were enough.
 */
#ifndef ATTN_MECH_LOWRANK_PINV_PRODUCTS_H
#define ATTN_MECH_LOWRANK_PINV_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"

typedef struct Run Run;

typedef struct PinvProducts {
    Tensor  a;            /* its rows sum to 1 */
    int64_t rounds;
    bool    common_start; /* c is the largest of all heads */
    Tensor  z;            /* the result */
    Tensor  residual;     /* f32 [h,rounds + 1]; without views data NULL */
} PinvProducts;

/* Sets z, a stage for each round.  Charges 8 L^2, and 8 L^3 a round, per head. */
void pinv_products(Run *r, PinvProducts *p);
/* Residual and view of the final z, also of one that came by other ways (rounds 0). */
void pinv_products_finish(Run *r, PinvProducts *p);
/* The largest final residual of all heads. */
double pinv_products_residual(const PinvProducts *p);

#endif
