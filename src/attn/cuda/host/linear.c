/* linear.c -- features, linear attention and lambdas on the device; as attn/cpu/recurrent/linear.c.
 *
 *     S = sum_j fk_j^T v_j,  z = sum_j fk_j,  out_i = fq_i S / divisor(fq_i . z)
 *
 * Factorised: S and z over all keys, then a product.  Matrix: strips of rows of fq fk^T.
 * Chunked: the states of all chunks at once, their prefix sums, then each chunk's own triangle.
 * Recurrent: token by token.  Denominators are in double; features in double make everything
 * double.
 */
#include "attn/cuda/host/gpu.h"
#include "attn/ops/lambdas.h"

#define SUM_ROWS 1024                   /* rows of a piece of z's sum */
#define STRIP_BYTES (INT64_C(64) << 20) /* of the matrix, at a time */
#define STRIP_LEAST 128
#define GROUP_BYTES (INT64_C(256) << 20) /* of chunks' states and triangles at a time */

_Static_assert((int)DIVISOR_ADD_FEATURES == (int)DENOMINATOR_ADD_FEATURES &&
                   (int)DIVISOR_NONE == (int)DENOMINATOR_NONE &&
                   (int)DIVISOR_FLOOR == (int)DENOMINATOR_FLOOR,
               "DivisorOf numbers the forms as DenominatorForm does");

typedef struct Job {
    Run          *run;
    bool          wide, causal;
    int32_t       arithmetic; /* Arithmetic of products whose result is in float */
    int64_t       h, n, m, f, e, size; /* size: bytes of a feature */
    int64_t       chunk;
    DeviceTensor  fq, fk, v, gates;
    void         *sums;  /* [h][n][e] fq S: out itself, or in double */
    double       *z;     /* [h][n] */
    double       *state; /* [h][f][e] */
    double       *total; /* [h][f] sum of fk over all keys */
    float        *memory;
} Job;

static DeviceDType type_of(const Job *job)
{
    return job->wide ? DEVICE_F64 : DEVICE_F32;
}

static DeviceTensor rows_from(DeviceTensor t, int64_t first, int64_t count)
{
    t.data = (char *)t.data + first * t.row_stride * (t.dtype == DEVICE_F64 ? 8 : 4);
    t.rows = count;
    return t;
}

static DeviceTensor sums_from(const Job *job, int64_t first, int64_t count)
{
    return rows_from(gpu_block(job->sums, type_of(job), job->h, job->n, job->e), first, count);
}

static bool began(const Job *job, int code)
{
    return gpu_began(job->run, "linear_attend", code);
}

/* Rounds the state to float into memory. */
static void store_memory(const Job *job)
{
    GemmSumCall call = { .heads = job->h, .pieces = 1, .parts = job->state, .wide = true,
                         .c = gpu_block(job->memory, DEVICE_F32, job->h, job->f, job->e),
                         .alpha = 1 };

    if (!run_failed(job->run))
        began(job, gpu_api(job->run)->gemm_sum(&call));
}

/* ---- over all keys ----------------------------------------------------------- */

static bool sum_features(const Job *job)
{
    Run        *r = job->run;
    int64_t     pieces = max_i64(1, (job->m + SUM_ROWS - 1) / SUM_ROWS);
    RowSumsCall sums = { .heads = job->h, .pieces = pieces, .rows = SUM_ROWS, .x = job->fk,
                         .sums = gpu_scratch(r, job->h * pieces, job->f * 8) };
    GemmSumCall whole = { .heads = job->h, .pieces = pieces, .parts = sums.sums, .wide = true,
                          .c = gpu_block(job->total, DEVICE_F64, job->h, 1, job->f), .alpha = 1 };

    return sums.sums && began(job, gpu_api(r)->row_sums(&sums)) &&
           began(job, gpu_api(r)->gemm_sum(&whole));
}

static void sum_state(const Job *job)
{
    GemmCall call = { .heads = job->h, .rows = job->f, .cols = job->e, .inner = job->m,
                      .a = job->fk, .ta = true, .b = job->v, .alpha = 1, .folded = !job->wide,
                      .c = gpu_block(job->state, DEVICE_F64, job->h, job->f, job->e) };

    if (sum_features(job) && gpu_product(job->run, call))
        store_memory(job);
}

static void factorised(const Job *job)
{
    GemmCall read = { .heads = job->h, .rows = job->n, .cols = job->e, .inner = job->f,
                      .a = job->fq, .alpha = 1, .arithmetic = job->arithmetic,
                      .c = sums_from(job, 0, job->n) };
    ReadCall z = { .heads = job->h, .pieces = 1, .rows = job->n, .fq = job->fq,
                   .z = job->total, .sums = job->z, .pitch = job->n };

    sum_state(job);
    read.b = job->wide ? gpu_block(job->state, DEVICE_F64, job->h, job->f, job->e)
                       : gpu_block(job->memory, DEVICE_F32, job->h, job->f, job->e);
    if (gpu_product(job->run, read))
        began(job, gpu_api(job->run)->read_sums(&z));
}

/* ---- the matrix itself --------------------------------------------------------- */

/* Mixes rows [first, first + rows); `a` is scratch for these rows of fq fk^T. */
static bool take_strip(const Job *job, int64_t first, int64_t rows, void *a)
{
    int64_t  cols = job->causal ? min_i64(job->m, first + rows) : job->m;
    GemmCall weights = { .heads = job->h, .rows = rows, .cols = cols, .inner = job->f,
                         .a = rows_from(job->fq, first, rows), .b = job->fk, .tb = true,
                         .alpha = 1, .arithmetic = job->arithmetic,
                         .c = gpu_block(a, type_of(job), job->h, rows, cols) };
    MaskCall mask = { .heads = job->h, .pieces = 1, .rows = rows, .cols = cols,
                      .all_rows = rows, .a = a, .wide = job->wide, .causal = job->causal,
                      .shift = first, .sums = job->z + first, .pitch = job->n };
    GemmCall mix = { .heads = job->h, .rows = rows, .cols = job->e, .inner = cols,
                     .a = weights.c, .b = job->v, .alpha = 1, .arithmetic = job->arithmetic,
                     .c = sums_from(job, first, rows) };

    return gpu_product(job->run, weights) && began(job, gpu_api(job->run)->mask(&mask)) &&
           gpu_product(job->run, mix);
}

/* Only `memory` shows the state here. */
static void matrix(const Job *job)
{
    int64_t each = job->h * max_i64(1, job->m) * job->size;
    int64_t rows = max_i64(STRIP_LEAST, STRIP_BYTES / each / STRIP_LEAST * STRIP_LEAST);
    bool    going = true;
    void   *a;

    rows = min_i64(rows, job->n);
    a = gpu_scratch(job->run, rows, each);
    sum_state(job);
    for (int64_t first = 0; first < job->n && going && gpu_ready(job->run); first += rows)
        going = a && take_strip(job, first, min_i64(rows, job->n - first), a);
}

/* ---- causal, chunk by chunk ------------------------------------------------------ */

typedef struct ChunkGroup {
    int64_t      first, rows, count; /* of tokens; of chunks */
    DeviceTensor fq, fk, v;          /* from the first token on */
    void        *states;    /* [h][count][f][e] of each chunk, then of those before it */
    void        *triangles; /* [h][count][chunk][chunk] */
    double      *z;         /* [h][count][f] */
} ChunkGroup;

static DeviceTensor sum_pieces(const Job *job, void *data, int64_t count, int64_t rows,
                               int64_t cols)
{
    DeviceTensor t = gpu_block(data, type_of(job), job->h, rows, cols);

    t.head_stride = count * rows * cols;
    return t;
}

static bool sum_chunks(const Job *job, const ChunkGroup *c)
{
    const DeviceApi *api = gpu_api(job->run);
    GemmCall    states = { .heads = job->h, .pieces = c->count, .rows = job->f, .cols = job->e,
                           .inner = job->chunk, .all_inner = c->rows, .a = c->fk, .ta = true,
                           .b = c->v, .step_a = job->chunk * c->fk.row_stride,
                           .step_b = job->chunk * c->v.row_stride, .step_c = job->f * job->e,
                           .alpha = 1, .arithmetic = job->arithmetic,
                           .c = sum_pieces(job, c->states, c->count, job->f, job->e) };
    RowSumsCall z = { .heads = job->h, .pieces = c->count, .rows = job->chunk, .x = c->fk,
                      .sums = c->z };
    ScanCall    state = { .heads = job->h, .pieces = c->count, .size = job->f * job->e,
                          .parts = c->states, .wide = job->wide, .carry = job->state };
    ScanCall    total = { .heads = job->h, .pieces = c->count, .size = job->f, .parts = c->z,
                          .wide = true, .carry = job->total };

    return gpu_product(job->run, states) && began(job, api->row_sums(&z)) &&
           began(job, api->scan(&state)) && began(job, api->scan(&total));
}

/* The weights inside chunks; adds z of earlier chunks and of the chunk itself. */
static bool weigh_chunks(const Job *job, const ChunkGroup *c)
{
    const DeviceApi *api = gpu_api(job->run);
    int64_t  step = job->chunk * job->chunk;
    GemmCall inside = { .heads = job->h, .pieces = c->count, .rows = job->chunk,
                        .cols = job->chunk, .inner = job->f, .all_rows = c->rows,
                        .all_cols = c->rows, .a = c->fq, .b = c->fk, .tb = true,
                        .step_a = job->chunk * c->fq.row_stride,
                        .step_b = job->chunk * c->fk.row_stride, .step_c = step, .alpha = 1,
                        .arithmetic = job->arithmetic,
                        .c = sum_pieces(job, c->triangles, c->count, job->chunk, job->chunk) };
    ReadCall before = { .heads = job->h, .pieces = c->count, .rows = job->chunk, .fq = c->fq,
                        .z = c->z, .sums = job->z + c->first, .pitch = job->n };
    MaskCall mask = { .heads = job->h, .pieces = c->count, .rows = job->chunk,
                      .cols = job->chunk, .all_rows = c->rows, .a = c->triangles,
                      .wide = job->wide, .causal = true, .add = true,
                      .sums = job->z + c->first, .pitch = job->n };

    return gpu_product(job->run, inside) && began(job, api->read_sums(&before)) &&
           began(job, api->mask(&mask));
}

static bool read_chunks(const Job *job, const ChunkGroup *c)
{
    GemmCall before = { .heads = job->h, .pieces = c->count, .rows = job->chunk,
                        .cols = job->e, .inner = job->f, .all_rows = c->rows, .a = c->fq,
                        .b = sum_pieces(job, c->states, c->count, job->f, job->e),
                        .step_a = job->chunk * c->fq.row_stride, .step_b = job->f * job->e,
                        .step_c = job->chunk * job->e, .alpha = 1,
                        .arithmetic = job->arithmetic,
                        .c = sums_from(job, c->first, c->rows) };
    GemmCall inside = before;

    inside.inner = job->chunk;
    inside.all_inner = c->rows;
    inside.a = sum_pieces(job, c->triangles, c->count, job->chunk, job->chunk);
    inside.step_a = job->chunk * job->chunk;
    inside.b = c->v;
    inside.step_b = job->chunk * c->v.row_stride;
    inside.beta = 1;
    return gpu_product(job->run, before) && gpu_product(job->run, inside);
}

static void chunked(Job *job, int64_t wanted)
{
    Run    *r = job->run;
    int64_t each, count, all;
    ChunkGroup  c = { 0 };

    job->chunk = max_i64(1, min_i64(wanted, job->n));
    each = job->h * (job->f * job->e + job->chunk * job->chunk) * job->size;
    all = (job->n + job->chunk - 1) / job->chunk;
    count = min_i64(max_i64(1, GROUP_BYTES / max_i64(each, 1)), all);
    c.states = gpu_scratch(r, job->h * count * job->f, job->e * job->size);
    c.triangles = gpu_scratch(r, job->h * count * job->chunk, job->chunk * job->size);
    c.z = gpu_scratch(r, job->h * count, job->f * (int64_t)sizeof(double));
    if (run_failed(r))
        return;
    gpu_zero(r, job->state, job->h * job->f * job->e);
    gpu_zero(r, job->total, job->h * job->f);
    for (int64_t first = 0; first < job->n && gpu_ready(r); first += c.rows) {
        c.first = first;
        c.rows = min_i64(count * job->chunk, job->n - first);
        c.count = (c.rows + job->chunk - 1) / job->chunk;
        c.fq = rows_from(job->fq, first, c.rows);
        c.fk = rows_from(job->fk, first, c.rows);
        c.v = rows_from(job->v, first, c.rows);
        if (!sum_chunks(job, &c) || !weigh_chunks(job, &c) || !read_chunks(job, &c))
            return;
    }
    store_memory(job);
}

/* ---- causal, token by token -------------------------------------------------------- */

/* Features [first, first + count) of all rows. */
static DeviceTensor features_from(DeviceTensor t, int64_t first, int64_t count)
{
    t.data = (char *)t.data + first * (t.dtype == DEVICE_F64 ? 8 : 4);
    t.cols = count;
    return t;
}

static void recurrent(const Job *job)
{
    RecurCall call = { .heads = job->h, .v = job->v, .gates = gpu_lines(job->gates),
                       .sums = job->sums, .z = job->z, .memory = job->memory,
                       .features = job->f };
    bool      going = true;

    for (; call.first < job->f && going; call.first += RECUR_ROWS) {
        int64_t count = min_i64(RECUR_ROWS, job->f - call.first);

        call.fq = features_from(job->fq, call.first, count);
        call.fk = features_from(job->fk, call.first, count);
        going = began(job, gpu_api(job->run)->recur(&call));
    }
}

static void finish_linear(const Job *job, const LinearAttend *in, LinearResult *out)
{
    FinishCall call = { .fq = job->fq, .heads = job->h, .n = job->n, .e = job->e,
                        .sums = job->sums, .z = job->z, .form = (int32_t)in->denominator,
                        .eps = in->eps, .out = out->out.data,
                        .wide_out = out->out.dtype == DT_F64,
                        .denominator = out->denominator.data, .divisor = out->divisor.data };

    if (!run_failed(job->run))
        began(job, gpu_api(job->run)->linear_finish(&call));
}

static void compute(Job *job, const LinearAttend *in)
{
    bool gated = in->gates.data != NULL;
    bool steps = in->causal && (in->form != LINEAR_MATRIX || gated) &&
                 (in->form != LINEAR_CHUNKED || gated);

    if (steps)
        recurrent(job);
    else if (in->form == LINEAR_MATRIX)
        matrix(job);
    else if (in->causal)
        chunked(job, in->chunk);
    else
        factorised(job);
    gpu_computed(job->run, steps ? ARITHMETIC_F32 : (Arithmetic)job->arithmetic);
}

static Job job_of(Run *r, const LinearAttend *in, const LinearResult *out)
{
    int64_t size = (int64_t)sizeof(double);
    Job     job = { .run = r, .wide = in->fq.dtype == DT_F64, .causal = in->causal,
                    .h = out->out.shape[0], .n = in->fq.shape[1], .m = in->fk.shape[1],
                    .f = in->fq.shape[2], .e = in->v.shape[2], .fq = gpu_tensor(r, &in->fq),
                    .fk = gpu_tensor(r, &in->fk), .v = gpu_tensor(r, &in->v),
                    .gates = gpu_tensor(r, &in->gates), .sums = gpu_result(r, &out->out).data,
                    .memory = gpu_result(r, &out->memory).data };

    job.arithmetic = job.wide ? ARITHMETIC_F32 : gpu_kind(r)->arithmetic;
    job.size = job.wide ? size : (int64_t)sizeof(float);
    if (job.wide)
        job.sums = gpu_scratch(r, job.h * job.n, job.e * size);
    job.z = gpu_scratch(r, job.h, job.n * size);
    job.state = gpu_scratch(r, job.h * job.f, job.e * size);
    job.total = gpu_scratch(r, job.h, job.f * size);
    return job;
}

void gpu_linear_attend(Run *r, const LinearAttend *in, LinearResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = job_of(r, in, out);

    if (gpu_ready(r))
        compute(&job, in);
    finish_linear(&job, in, out);
    gpu_finish(r, "linear_attend");
    arena_release(r->arena, mark);
}

/* ---- feature maps ----------------------------------------------------------------- */

_Static_assert((int)FEATURES_RELU == (int)FEATURE_RELU && (int)FEATURES_ELU == (int)FEATURE_ELU &&
                   (int)FEATURES_COLUMN_SOFTMAX == (int)FEATURE_COLUMN_SOFTMAX &&
                   (int)FEATURES_ARC_COS == (int)FEATURE_ARC_COS,
               "FeaturesOf numbers the kinds as FeatureKind does");

static void column_softmax(Run *r, const Tensor *x, Tensor *y)
{
    int64_t           slices = (x->shape[1] + COLUMN_ROWS - 1) / COLUMN_ROWS;
    int64_t           size = max_i64(slices, 1) * x->shape[2] * (int64_t)sizeof(double);
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

/* W x into the first m columns of y.  The scale is left out where rows become unit vectors. */
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

/* ---- lambdas (attn/ops/lambdas.h) -------------------------------------------------- */

#define BLOCK_GROUPS 64 /* heads that share a key head, at most: a block holds state for each */
#define BLOCK_HEADS 65535

void gpu_lambda_content(Run *r, const Lambdas *l)
{
    ArenaMark         mark = arena_mark(r->arena);
    LambdaContentCall call = {
        .heads = l->s.hk, .m = l->s.m, .k = l->s.k, .u = l->s.u, .e = l->s.e,
        .contexts = l->contexts, .key = gpu_tensor(r, &l->key), .v = gpu_tensor(r, &l->v),
        .lse = l->lse, .content = l->content,
    };

    GPU_OP(r, mark, "content lambdas", lambda_content, &call);
}

/* Entries of the table of E. */
static int64_t entries(const Lambdas *l)
{
    if (l->position == LAMBDA_NONE)
        return 0;
    if (l->position == LAMBDA_ABSOLUTE)
        return l->s.n * l->s.m;
    return (l->width > 0 ? 2 * l->up + 1 : 1) * (2 * l->side + 1);
}

static const float *table_of(Run *r, const Lambdas *l)
{
    Tensor t = tensor_of(DT_F32, 2, (int64_t[]){ entries(l), l->s.k * l->s.u },
                         (void *)(uintptr_t)l->pos);

    return entries(l) ? gpu_tensor(r, &t).data : NULL;
}

static void check_limits(Run *r, const Lambdas *l)
{
    int64_t room = gpu_kind(r)->device->info.shared / LAMBDA_GROUP_BYTES;
    int64_t most = room < BLOCK_GROUPS ? room : BLOCK_GROUPS;

    if (l->s.h / l->s.hk > most || l->s.hk > BLOCK_HEADS)
        run_fail(r, ERR_UNSUPPORTED, "lambda: %lld heads over %lld key heads; on this GPU at most "
                 "%lld may share one, and there may be %d key heads; use --device cpu",
                 (long long)l->s.h, (long long)l->s.hk, (long long)most, BLOCK_HEADS);
}

void gpu_lambda_apply(Run *r, const Lambdas *l, Tensor *out)
{
    ArenaMark       mark = arena_mark(r->arena);
    double          cells;
    LambdaApplyCall call = {
        .heads = l->s.hk, .group = l->s.h / l->s.hk, .n = l->s.n, .m = l->s.m, .k = l->s.k,
        .u = l->s.u, .e = l->s.e, .contexts = l->contexts, .joined = l->s.joined,
        .v = gpu_tensor(r, &l->v), .q = gpu_tensor(r, &l->q).data, .content = l->content,
        .table = table_of(r, l), .out = out->data,
        .entry = { .width = l->width, .up = l->up, .side = l->side,
                   .absolute = l->position == LAMBDA_ABSOLUTE },
    };

    check_limits(r, l);
    call.reach = gpu_row_runs(r, l->reach, &cells);
    GPU_OP(r, mark, "lambdas", lambda_apply, &call);
}
