/* gpu_entries.c -- entries and rows in double on the device; see attn/ops_rows.h. */
#include "attn/cuda/host/gpu.h"

#define LONG_ROW 65536 /* entries from which a row is cut in pieces */
#define MOST_SPLITS 256

/* t with its strides, [.,.,.]; what lies elsewhere is copied into the arena. */
static EntryTensor operand(Run *r, const Tensor *t)
{
    EntryTensor  o = { .dtype = (int32_t)t->dtype, .heads = t->shape[0] };
    DeviceTensor copy;

    if (!t->data || run_failed(r))
        return (EntryTensor){ .heads = 1 };
    for (int a = 0; a < 3; a++)
        o.stride[a] = t->shape[a] > 1 ? t->stride[a] : 0;
    o.data = t->data;
    if (arena_holds(r->arena, t->data))
        return o;
    copy = gpu_tensor(r, t);
    o.data = copy.data;
    o.stride[0] = t->shape[0] > 1 ? copy.head_stride : 0;
    o.stride[1] = t->shape[1] > 1 ? copy.row_stride : 0;
    o.stride[2] = t->shape[2] > 1 ? 1 : 0;
    return o;
}

/* Of rank 3, in the arena. */
static EntryTensor result(Run *r, const Tensor *t)
{
    if (!run_failed(r) && !arena_holds(r->arena, t->data))
        run_fail(r, ERR_INTERNAL, "%s: an operation's result is not in the run's arena",
                 r->mechanism->id);
    return operand(r, t);
}

static bool has_two(EntryKind kind)
{
    return kind == ENTRY_SUM || kind == ENTRY_PRODUCT || kind == ENTRY_QUOTIENT ||
           kind == ENTRY_GATE || kind == ENTRY_WHERE;
}

static bool is_one(const EntryTensor *t)
{
    return !t->data || (!t->stride[0] && !t->stride[1] && !t->stride[2]);
}

/* What is contiguous everywhere is rows of a length that suits the device. */
static void fold(EntriesCall *call, const Entries *in)
{
    EntryTensor  *all[] = { &call->x, &call->z, &call->y };
    const Tensor *of[] = { &in->x, &in->z, &in->y };
    int64_t       count = tensor_count(&in->y), width = 1024;

    for (int o = 0; o < 3; o++)
        if (!is_one(all[o]) && !(tensor_contiguous(of[o]) && tensor_count(of[o]) == count))
            return;
    if (count % width)
        width = count % 32 ? count : 32;
    for (int o = 0; o < 3; o++)
        if (!is_one(all[o])) {
            all[o]->heads = 1;
            all[o]->stride[0] = 0;
            all[o]->stride[1] = width;
            all[o]->stride[2] = 1;
        }
    call->shape[0] = 1;
    call->shape[1] = count / width;
    call->shape[2] = width;
}

void gpu_zero(Run *r, double *data, int64_t count)
{
    int64_t     width = count % 32 ? count : 32;
    EntriesCall call = { .x = { .heads = 1 }, .z = { .heads = 1 }, .kind = ENTRY_FILL,
                         .y = { .data = data, .dtype = DEVICE_F64, .heads = 1,
                                .stride = { 0, width, 1 } },
                         .shape = { 1, count ? count / width : 0, width } };

    if (count > 0 && gpu_ready(r))
        gpu_began(r, "entries", gpu_api(r)->entries(&call));
}

void gpu_entries(Run *r, const Entries *in)
{
    ArenaMark   mark = arena_mark(r->arena);
    EntriesCall call = { .x = operand(r, &in->x), .kind = (int32_t)in->kind, .by = in->by,
                         .y = result(r, &in->y),
                         .shape = { in->y.shape[0], in->y.shape[1], in->y.shape[2] } };

    call.z = has_two(in->kind) ? operand(r, &in->z) : (EntryTensor){ .heads = 1 };
    if (in->kind == ENTRY_ROUND) {
        const Precision *to = precision_of((PrecisionFormat)in->by);

        call.bits = to->bits;
        call.least = to->least;
        call.limit = to->limit;
    }
    fold(&call, in);
    if (gpu_ready(r))
        gpu_done(r, "entries", gpu_api(r)->entries(&call));
    arena_release(r->arena, mark);
}

void gpu_turn_pairs(Run *r, const TurnPairs *in, Tensor *y)
{
    ArenaMark     mark = arena_mark(r->arena);
    TurnPairsCall call = { .x = gpu_tensor(r, &in->x), .y = gpu_result(r, y),
                           .turns = gpu_tensor(r, &in->turns).data,
                           .pairs = in->turns.shape[2] / 2, .step = in->step, .gap = in->gap };

    if (gpu_ready(r))
        gpu_done(r, "turned pairs", gpu_api(r)->turn_pairs(&call));
    arena_release(r->arena, mark);
}

void gpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y)
{
    ArenaMark       mark = arena_mark(r->arena);
    Normalise64Call call = { .x = gpu_tensor(r, x), .y = gpu_tensor(r, y), .kind = (int32_t)kind,
                             .eps = eps };

    if (gpu_ready(r))
        gpu_done(r, "normalise", gpu_api(r)->normalise64(&call));
    arena_release(r->arena, mark);
}

/* Entries of gain or bias, and how far those of the next line are. */
static const float *of_lines(Run *r, const Tensor *t, int64_t *step)
{
    *step = t->rank > 1 && t->shape[t->rank - 2] > 1 ? t->shape[t->rank - 1] : 0;
    return gpu_floats(r, t->data, tensor_count(t));
}

void gpu_standardise64(Run *r, const Tensor *x, double eps, const Tensor *gain,
                       const Tensor *bias, Tensor *y)
{
    ArenaMark         mark = arena_mark(r->arena);
    int64_t           lines = x->shape[1], size = lines * x->shape[2];
    Standardise64Call call = { .x = operand(r, x), .y = result(r, y), .eps = eps,
                               .shape = { x->shape[0], lines, x->shape[2] }, .splits = 1 };

    if (size >= LONG_ROW && lines > 1)
        call.splits = lines < MOST_SPLITS ? lines : MOST_SPLITS;
    if (call.splits > 1)
        call.sums = gpu_scratch(r, 2 * call.splits * x->shape[0], (int64_t)sizeof(double));
    call.gain = of_lines(r, gain, &call.gain_step);
    call.bias = of_lines(r, bias, &call.bias_step);
    if (gpu_ready(r))
        gpu_done(r, "standardise", gpu_api(r)->standardise64(&call));
    arena_release(r->arena, mark);
}
