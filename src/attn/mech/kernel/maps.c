/* maps.c -- see maps.h.
 *
 * Features are in double: products of taylor2 and identity cancel, exponentials span many
 * magnitudes, and a rectified sum near 0 is divided by a denominator that is near 0 too.
 */
#include "attn/mech/kernel/maps.h"

#include "attn/run.h"

#include <math.h>

int64_t map_count(MapKind kind, int64_t d, int64_t f0, int64_t nu)
{
    switch (kind) {
    case MAP_TAYLOR2: return 1 + d + d * (d + 1) / 2;
    case MAP_HEDGEHOG: return 2 * f0;
    case MAP_T2R: return f0;
    case MAP_DPFP: return 2 * d * nu;
    case MAP_IDENTITY: break;
    }
    return d;
}

double map_flops(MapKind kind, int64_t d, int64_t f0, int64_t nu)
{
    double c = (double)d, y = (double)f0, f = (double)map_count(kind, d, f0, nu);

    switch (kind) {
    case MAP_TAYLOR2: return 4 * c + c * (c - 1) / 2;
    case MAP_HEDGEHOG: return 2 * y * c + y + 3 * f;
    case MAP_T2R: return 2 * y * c + 2 * y;
    case MAP_DPFP: return 2 * c + f;
    case MAP_IDENTITY: break;
    }
    return 0;
}

/* y f64 [h,n,f0] = W x + b. */
static void project(Run *r, const Map *map, Tensor x, Tensor y)
{
    Tensor bias = map->bias;

    op_gemm(r, x, false, map->weight, true, 1, 0, y, FLOP_APART);
    if (!bias.data)
        return;
    bias.rank = 3; /* one row for all tokens */
    bias.shape[2] = bias.shape[1];
    bias.stride[2] = bias.stride[1];
    bias.shape[1] = 1;
    op_entries_of(r, y, bias, ENTRY_SUM, 1, y);
}

static void taylor2(Run *r, const Map *map, Tensor x, Tensor y)
{
    int64_t d = x.shape[2], at = 1 + 2 * d;
    Tensor  line = tensor_columns(y, 1, d);

    op_entries(r, (Tensor){ 0 }, ENTRY_FILL, 1, tensor_columns(y, 0, 1));
    op_entries(r, x, ENTRY_SCALE, sqrt(map->scale), line);
    op_entries_of(r, line, line, ENTRY_PRODUCT, M_SQRT1_2, tensor_columns(y, 1 + d, d));
    for (int64_t a = 0; a + 1 < d; at += d - 1 - a++)
        op_entries_of(r, tensor_columns(line, a + 1, d - 1 - a), tensor_columns(line, a, 1),
                      ENTRY_PRODUCT, 1, tensor_columns(y, at, d - 1 - a));
}

static void hedgehog(Run *r, const Map *map, Tensor x, Tensor y)
{
    int64_t f0 = map->weight.shape[1];
    Tensor  up = run_tensor3(r, DT_F64, r->h, x.shape[1], f0), parts = y;
    double  steep = map->norm == HEDGEHOG_JOINT ? 2 : 1;

    project(r, map, x, up);
    op_entries(r, up, ENTRY_SCALE, steep, tensor_columns(y, 0, f0));
    op_entries(r, up, ENTRY_SCALE, -steep, tensor_columns(y, f0, f0));
    if (map->norm == HEDGEHOG_EXP) {
        op_entries(r, y, ENTRY_EXP, 0, y);
        return;
    }
    if (map->norm == HEDGEHOG_SPLIT && !run_failed(r)) /* either half is a row of its own */
        parts = tensor_of(DT_F64, 3, (int64_t[]){ r->h, 2 * x.shape[1], f0 }, y.data);
    op_softmax_rows(r, &(SoftmaxRows){ .x = parts });
}

static void dpfp(Run *r, const Map *map, Tensor x, Tensor y)
{
    int64_t d = x.shape[2], f = 2 * d;
    Tensor  both = run_tensor3(r, DT_F64, r->h, x.shape[1], f);

    op_entries(r, x, ENTRY_RELU, 0, tensor_columns(both, 0, d));
    op_entries(r, x, ENTRY_SCALE, -1, tensor_columns(both, d, d));
    op_entries(r, tensor_columns(both, d, d), ENTRY_RELU, 0, tensor_columns(both, d, d));
    for (int64_t t = 1; t <= map->nu; t++) {
        Tensor to = tensor_columns(y, (t - 1) * f, f);

        op_entries_of(r, tensor_columns(both, t, f - t), tensor_columns(both, 0, f - t),
                      ENTRY_PRODUCT, 1, tensor_columns(to, t, f - t));
        op_entries_of(r, tensor_columns(both, 0, t), tensor_columns(both, f - t, t),
                      ENTRY_PRODUCT, 1, tensor_columns(to, 0, t));
    }
}

Tensor map_features(Run *r, const Map *map, Tensor x)
{
    int64_t d = x.shape[2], f0 = map->weight.data ? map->weight.shape[1] : 0;
    Tensor  y = run_tensor3(r, DT_F64, r->h, x.shape[1], map_count(map->kind, d, f0, map->nu));

    if (run_failed(r))
        return y;
    switch (map->kind) {
    case MAP_TAYLOR2: taylor2(r, map, x, y); break;
    case MAP_HEDGEHOG: hedgehog(r, map, x, y); break;
    case MAP_T2R:
        project(r, map, x, y);
        op_entries(r, y, ENTRY_RELU, 0, y);
        break;
    case MAP_DPFP: dpfp(r, map, x, y); break;
    case MAP_IDENTITY: op_entries(r, x, ENTRY_SCALE, map->scale, y); break;
    }
    op_charge(r, FLOP_OVERHEAD,
              (double)(r->h * x.shape[1]) * map_flops(map->kind, d, f0, map->nu));
    return y;
}
