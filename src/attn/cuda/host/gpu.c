/* gpu.c -- see gpu.h: memory, tensors, and the table of operations. */
#include "attn/cuda/host/gpu.h"

#include <string.h>

void *gpu_scratch(Run *r, int64_t count, int64_t size)
{
    void *data = run_failed(r) ? NULL : arena_alloc_data(r->arena, count, size);

    if (!data && !run_failed(r))
        run_out_of_memory(r);
    return data;
}

void *gpu_list(Run *r, int64_t count, int64_t size)
{
    return run_alloc(r, count, size);
}

static DeviceTensor shape_of(const Tensor *t, void *data)
{
    int last = t->rank - 1;

    return (DeviceTensor){
        .data = data,
        .dtype = (DeviceDType)t->dtype,
        .heads = t->rank > 2 ? t->shape[last - 2] : 1,
        .rows = t->rank > 1 ? t->shape[last - 1] : 1,
        .cols = t->rank > 0 ? t->shape[last] : 1,
        .head_stride = t->rank > 2 ? t->stride[last - 2] : 0,
        .row_stride = t->rank > 1 ? t->stride[last - 1] : 0,
    };
}

static void copy_rows(const DeviceTensor *from, const DeviceTensor *to, int64_t step, int64_t size)
{
    for (int64_t h = 0; h < from->heads; h++)
        for (int64_t i = 0; i < from->rows; i++) {
            const char *a = (const char *)from->data +
                            (h * from->head_stride + i * from->row_stride) * size;
            char       *b = (char *)to->data + (h * to->head_stride + i * to->row_stride) * size;

            if (step == 1)
                memcpy(b, a, (size_t)(from->cols * size));
            for (int64_t c = 0; step != 1 && c < from->cols; c++)
                memcpy(b + c * size, a + c * step * size, (size_t)size);
        }
}

DeviceTensor gpu_tensor(Run *r, const Tensor *t)
{
    int64_t      size = t->data ? dtype_size(t->dtype) : 0, step;
    DeviceTensor from, to;

    if (!t->data || run_failed(r))
        return (DeviceTensor){ 0 };
    step = t->rank > 0 ? t->stride[t->rank - 1] : 1;
    from = shape_of(t, t->data);
    if (arena_holds(r->arena, t->data) && (step == 1 || from.cols <= 1))
        return from;
    if (arena_holds(r->arena, t->data))
        gpu_wait(r, "a tensor whose entries lie apart is copied by the host");
    to = from;
    to.row_stride = from.cols;
    to.head_stride = from.rows * from.cols;
    to.data = gpu_scratch(r, from.heads * from.rows * from.cols, size);
    if (to.data) {
        copy_rows(&from, &to, step, size);
        gpu_toward(r, to.data, from.heads * from.rows * from.cols * size);
    }
    return to;
}

DeviceTensor gpu_lines(DeviceTensor t)
{
    t.heads = t.rows;
    t.rows = 1;
    t.head_stride = t.row_stride;
    return t;
}

void gpu_computed(Run *r, Arithmetic arithmetic)
{
    r->computed |= 1u << arithmetic;
}

DeviceTensor gpu_result(Run *r, const Tensor *t)
{
    if (!run_failed(r) && !(arena_holds(r->arena, t->data) && t->stride[t->rank - 1] == 1) &&
        tensor_count(t) > 0)
        run_fail(r, ERR_INTERNAL, "%s: an operation's result is not in the run's arena",
                 r->mechanism->id);
    return run_failed(r) ? (DeviceTensor){ 0 } : shape_of(t, t->data);
}

const float *gpu_floats(Run *r, const float *data, int64_t count)
{
    Tensor t = tensor_of(DT_F32, 1, &count, (void *)(uintptr_t)data);

    return gpu_tensor(r, &t).data;
}

/* ---- memory --------------------------------------------------------------------- */

#define SPARED 64 /* of the GPU's memory, a part so small */


/* Managed memory beyond the GPU's own is not refused by CUDA but moved to and fro, which takes
 * forever.  What we hold may lie with the host and count as free still, so it is added up here
 * against what was free while we held nothing.  Some is left for kernels and libraries. */
static int64_t left_of(void *context)
{
    Device *d = context;
    int64_t left = 0, all = 0, held = atomic_load(&d->in_use), more;

    if (d->api->room(&left, &all))
        return -1;
    if (!held)
        atomic_store(&d->free_at_first, left - all / SPARED);
    more = atomic_load(&d->free_at_first) - held;
    left = left < more ? left : more;
    return left > 0 ? left : 0;
}

static bool has_room(Device *d, int64_t bytes)
{
    int64_t left = left_of(d);

    return left < 0 || bytes <= left; /* where it does not say, taking will */
}

static void *take(void *context, int64_t bytes)
{
    Device *d = context;
    void   *data = NULL;
    int64_t now, peak;

    if (atomic_load(&d->graph_mode) == GRAPH_CAPTURE)
        gpu_graph_lose(d, "it took memory that its rehearsal did not need");
    else if (!has_room(d, bytes))
        return NULL;
    if (gpu_note(d, d->api->take(bytes, &data)))
        return NULL;
    now = atomic_fetch_add(&d->in_use, bytes) + bytes;
    peak = atomic_load(&d->peak);
    while (peak < now && !atomic_compare_exchange_weak(&d->peak, &peak, now))
        ;
    return data;
}

static void give(void *context, void *data, int64_t bytes)
{
    Device *d = context;

    d->api->give(data);
    atomic_fetch_sub(&d->in_use, bytes);
}

static bool attach(void *context, void *data, bool device)
{
    Device *d = context;

    return !gpu_note(d, d->api->attach(data, device));
}

static bool busy(void *context)
{
    return gpu_is_busy(context);
}

static void settle(void *context)
{
    gpu_settle(context);
}

/* ---- the table -------------------------------------------------------------------- */

static void fill_attention(Ops *ops)
{
    ops->attend = gpu_attend;
    ops->pattern_means = gpu_pattern_means;
    ops->few_attend = gpu_few_attend;
    ops->group_attend = gpu_group_attend;
    ops->key_usage = gpu_key_usage;
    ops->row_attend = gpu_row_attend;
    ops->rounded_attend = gpu_rounded_attend;
    ops->logit_attend = gpu_logit_attend;
    ops->features = gpu_features;
    ops->linear_attend = gpu_linear_attend;
    ops->lambda_content = gpu_lambda_content;
    ops->lambda_apply = gpu_lambda_apply;
}

static void fill_rows(Ops *ops)
{
    ops->entries = gpu_entries;
    ops->normalise64 = gpu_normalise64;
    ops->standardise64 = gpu_standardise64;
    ops->softmax = gpu_softmax;
    ops->standardise = gpu_standardise;
    ops->largest_norm = gpu_largest_norm;
    ops->gelu = gpu_gelu;
    ops->normalise = gpu_normalise;
    ops->sinkhorn = gpu_sinkhorn;
    ops->tap_sums = gpu_tap_sums;
    ops->turn_pairs = gpu_turn_pairs;
    ops->best_columns = gpu_best_columns;
    ops->pair_dots = gpu_pair_dots;
    ops->gather = gpu_gather;
    ops->scatter = gpu_scatter;
    ops->merge_rows = gpu_merge_rows;
    ops->sum_lists = gpu_sum_lists;
    ops->pool_windows = gpu_pool_windows;
}

static void fill_choices(Ops *ops)
{
    ops->argmax = gpu_argmax;
    ops->best_rows = gpu_best_rows;
    ops->bit_sums = gpu_bit_sums;
    ops->codes = gpu_codes;
    ops->member_sums = gpu_member_sums;
    ops->nearest = gpu_nearest;
    ops->nearest_codes = gpu_nearest_codes;
    ops->sort = gpu_sort;
    ops->tally = gpu_tally;
    ops->top_k = gpu_top_k;
}

static void fill_products(Ops *ops)
{
    ops->gemm = gpu_gemm;
    ops->gemm_long = gpu_gemm_long;
    ops->pinv = gpu_pinv;
    ops->dots64 = gpu_dots64;
    ops->product64 = gpu_product64;
    ops->mix_blocks = gpu_mix_blocks;
    ops->ceilings = gpu_ceilings;
}

void gpu_fill_ops(Device *d)
{
    d->memory = (ArenaSource){ .take = take, .give = give, .busy = busy, .settle = settle,
                               .left = left_of, .broken = gpu_broken,
                               .attach = d->info.managed ? NULL : attach, .context = d };
    for (int kind = 0; kind <= ARITHMETIC_F16; kind++) {
        DeviceKind *k = &d->kinds[kind];

        *k = (DeviceKind){ .device = d, .arithmetic = (Arithmetic)kind,
                           .ops = { .abi_version = OPS_ABI_VERSION, .name = d->api->name,
                                    .memory = &d->memory, .prepare = gpu_prepare,
                                    .wait = gpu_wait, .toward = gpu_brought } };
        fill_attention(&k->ops);
        fill_rows(&k->ops);
        fill_choices(&k->ops);
        fill_products(&k->ops);
    }
}
