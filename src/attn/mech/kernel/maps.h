/* attn/mech/kernel/maps.h -- feature maps that are made of several operations.
 *
 *     taylor2    x' = sqrt(scale) x;  (1, x'_a, x'_a^2 / sqrt 2, x'_a x'_b with a < b):
 *                phi(q) . phi(k) = 1 + s + s^2 / 2 with s = scale q . k
 *     hedgehog   y = W x + b;  softmax of (2y, -2y), or of y and of -y, or (exp y, exp -y)
 *     t2r        max(W x + b, 0)
 *     dpfp       r = (max(x, 0), max(-x, 0));  blocks t = 1 .. nu of r_i r_(i-t), i - t mod 2d
 *     identity   x
 *
 * (Zhang et al. 2024, arXiv 2402.04347; Arora et al. 2024, arXiv 2402.18668; Kasai et al. 2021,
 * arXiv 2103.13076; Schlag et al. 2021, arXiv 2102.11174.)
 */
#ifndef ATTN_MECH_KERNEL_MAPS_H
#define ATTN_MECH_KERNEL_MAPS_H

#include <stdint.h>

#include "attn/ops/ops.h"

typedef struct Run Run;

typedef enum MapKind { MAP_TAYLOR2, MAP_HEDGEHOG, MAP_T2R, MAP_DPFP, MAP_IDENTITY } MapKind;
typedef enum HedgehogNorm { HEDGEHOG_JOINT, HEDGEHOG_SPLIT, HEDGEHOG_EXP } HedgehogNorm;

typedef struct Map {
    MapKind      kind;
    double       scale;  /* of x itself: taylor2, identity */
    Tensor       weight; /* f32 [h',f0,d]: hedgehog, t2r */
    Tensor       bias;   /* f32 [h',f0] of these; data NULL: 0 */
    HedgehogNorm norm;
    int64_t      nu;     /* dpfp */
} Map;

/* f64 [h,n,f] of x f32 [h',n,d].  Charges map_flops of each row to overhead. */
Tensor  map_features(Run *r, const Map *map, Tensor x);
/* f of vectors of d channels; f0: rows of the weight. */
int64_t map_count(MapKind kind, int64_t d, int64_t f0, int64_t nu);
double  map_flops(MapKind kind, int64_t d, int64_t f0, int64_t nu);

#endif
