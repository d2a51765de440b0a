/* attn/ops/ceilings.h -- what a back end can do at most on this machine, measured.
 *
 * The roofline of a stage with F FLOPs and B bytes of traffic is
 * min(peak, stream * F / B): no kernel passes it, wherever its data lies past
 * the caches (Williams, Waterman, Patterson 2009).
 */
#ifndef ATTN_OPS_CEILINGS_H
#define ATTN_OPS_CEILINGS_H

typedef struct Ceilings {
    double peak;   /* flop/s, multiply-adds in registers, as matrix products are computed:
                      fused ones, or the tensor cores'; NaN: unknown */
    double tensor; /* flop/s, the tensor cores' in BF16, or as products are computed; NaN: none */
    double gemm;   /* flop/s, products of matrices; CPU: by the library, one a thread */
    double stream; /* bytes/s, triad past the caches */
    char   device[32]; /* whose they are, as records name it; "": not said */
} Ceilings;

/* FLOPs a second at most, at so many FLOPs to a byte. */
static inline double ceilings_roof(const Ceilings *c, double intensity)
{
    double memory = c->stream * intensity;

    return memory < c->peak ? memory : c->peak;
}

#endif
