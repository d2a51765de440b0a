/* gpu_features.c -- feature maps of kernel attention on the device; see attn/ops.h. */
#include "attn/cuda/host/gpu_dense.h"

_Static_assert((int)FEATURES_RELU == (int)FEATURE_RELU && (int)FEATURES_ELU == (int)FEATURE_ELU &&
                   (int)FEATURES_COLUMN_SOFTMAX == (int)FEATURE_COLUMN_SOFTMAX &&
                   (int)FEATURES_ARC_COS == (int)FEATURE_ARC_COS,
               "FeaturesOf numbers the kinds as FeatureKind does");

static void column_softmax(Run *r, const Tensor *x, Tensor *y)
{
    int64_t           slices = (x->shape[1] + COLUMN_ROWS - 1) / COLUMN_ROWS;
    int64_t           size = gpu_most(slices, 1) * x->shape[2] * (int64_t)sizeof(double);
    ColumnSoftmaxCall call = { .x = gpu_tensor(r, x), .y = gpu_result(r, y),
                               .top = gpu_scratch(r, y->shape[0], size),
                               .sum = gpu_scratch(r, y->shape[0], size) };

    if (gpu_ready(r))
        gpu_began(r, "features", gpu_api(r)->column_softmax(&call));
}

static bool is_plain(const FeatureMap *map)
{
    return map->kind >= FEATURE_ELU && map->kind < FEATURE_SIN_COS;
}

/* W x into the first m columns of y; with a unit length only the direction counts. */
static void project(Run *r, const FeaturesCall *f, const Tensor *w, const FeatureMap *map)
{
    GemmCall call = { .heads = f->heads, .rows = f->n, .cols = f->m, .inner = f->x.cols,
                      .a = f->x, .b = gpu_tensor(r, w), .tb = true,
                      .alpha = map->unit && f->wide ? 1 : map->input_scale };

    call.c = gpu_block(f->y, f->wide ? DEVICE_F64 : DEVICE_F32, f->heads, f->n, f->f);
    gpu_product(r, call);
    gpu_computed(r, ARITHMETIC_F32);
}

static FeaturesCall call_of(Run *r, const Tensor *x, const FeatureMap *map, bool keys, Tensor *y)
{
    int64_t      rows = y->shape[0] * y->shape[1], size = (int64_t)sizeof(double);
    bool         plain = is_plain(map) && !map->wide, trig = map->kind == FEATURE_TRIG;
    FeaturesCall call = { .heads = y->shape[0], .n = y->shape[1], .f = y->shape[2],
                          .x = gpu_tensor(r, x), .y = gpu_result(r, y).data,
                          .wide = y->dtype == DT_F64, .kind = (int32_t)map->kind,
                          .projected = map->project, .unit = map->unit,
                          .stabilise = map->stabilise, .scale = plain ? 1 : map->input_scale,
                          .eps = map->eps, .norm_eps = map->norm_eps, .alpha = map->alpha,
                          .amplitude = map->amplitude, .half = gpu_scratch(r, rows, size),
                          .top = gpu_scratch(r, rows, size),
                          .head = gpu_scratch(r, y->shape[0], size) };

    if (!map->project && !call.wide && map->kind < FEATURE_ELU)
        call.kind = FEATURES_RELU;
    call.head_top = map->stabilise && map->project && map->kind != FEATURE_RELU && (keys || trig);
    return call;
}

void gpu_features(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                  Tensor *y)
{
    ArenaMark    mark = arena_mark(r->arena);
    FeaturesCall call;

    if (map->kind == FEATURE_COLUMN_SOFTMAX && y->dtype == DT_F32) {
        column_softmax(r, x, y);
    } else {
        call = call_of(r, x, map, keys, y);
        call.m = map->project ? w->shape[1] : 0;
        if (gpu_ready(r) && map->project)
            project(r, &call, w, map);
        if (!run_failed(r))
            gpu_began(r, "features", gpu_api(r)->features(&call));
    }
    gpu_finish(r, "features");
    arena_release(r->arena, mark);
}
