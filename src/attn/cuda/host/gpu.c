/* gpu.c -- see gpu.h: memory, tensors, and the table of operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/host/gpu.h"

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

/* What is under way on the device, and who waits for it; see gpu.h.
 *
 * Launches are counted, and so are those that a wait has seen the end of: work is under way while
 * the two differ.  So no wait of one thread hides what another has begun meanwhile.
 */

#define AHEAD "ahead"

GpuAhead gpu_ahead_of(const Device *d)
{
    const char *given = getenv(way_variable(WAY_GRAPHS));

    if (!d->info.managed || !device_way_taken(d, WAY_GRAPHS))
        return AHEAD_NOT;
    return given && !strcmp(given, AHEAD) ? AHEAD_WORK : AHEAD_GRAPHS;
}

static GraphMode mode_of(const Device *d)
{
    return (GraphMode)atomic_load(&d->graph_mode);
}

bool gpu_is_busy(const Device *d)
{
    return mode_of(d) != GRAPH_NONE || atomic_load(&d->launched) != atomic_load(&d->finished);
}

void gpu_graph_begin(Device *d, GraphMode mode)
{
    if (mode != GRAPH_NONE) {
        d->graph_first = atomic_load(&d->launched);
        d->graph_lost = NULL;
    } else if (mode_of(d) == GRAPH_CAPTURE) {
        atomic_store(&d->finished, atomic_load(&d->launched)); /* it never ran */
    }
    atomic_store(&d->graph_mode, (int)mode);
}

void gpu_graph_lose(Device *d, const char *why)
{
    if (!d->graph_lost)
        d->graph_lost = why;
}

/* The device's code; also one that a wait without a run had. */
static int wait_for(Device *d)
{
    int64_t launched = atomic_load(&d->launched), finished = atomic_load(&d->finished);
    int     code = d->api->finish(), late = atomic_exchange(&d->late, 0);

    while (finished < launched && !atomic_compare_exchange_weak(&d->finished, &finished, launched))
        ;
    return late ? late : code;
}

void gpu_settle(Device *d)
{
    int code = 0;

    if (mode_of(d) != GRAPH_NONE)
        gpu_graph_lose(d, "its operations' scratch memory is too large to keep");
    if (mode_of(d) != GRAPH_CAPTURE)
        code = wait_for(d);
    if (code)
        atomic_store(&d->late, code);
}

bool gpu_ready(Run *r)
{
    if (!run_failed(r) && r->spec.cancel && atomic_load(r->spec.cancel))
        run_fail(r, ERR_CANCELLED, "%s: interrupted", r->mechanism->id);
    return !run_failed(r);
}

/* CUDA's errors after which it says that a process must be begun anew (driver_types.h): kernels
 * that ran wild or too long, and a GPU or server that went away.  Others between them, such as a
 * launch with too few resources (701), are of one call. */
static bool is_lasting(int code)
{
    static const int codes[] = { 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911 };

    for (size_t x = 0; x < sizeof(codes) / sizeof(*codes); x++)
        if (code == codes[x])
            return true;
    return false;
}

int gpu_note(Device *d, int code)
{
    if (is_lasting(code))
        atomic_store(&d->lost, code);
    return code;
}

#define LOST "this process has lost the GPU: start anew, or go on by --device cpu"

const char *gpu_broken(void *device)
{
    return atomic_load(&((Device *)device)->lost) ? "an error before this run; " LOST : NULL;
}

static void report_failure(Run *r, const char *what, int code)
{
    if (gpu_note(gpu_kind(r)->device, code) && !run_failed(r))
        run_fail(r, ERR_UNSUPPORTED, "%s on the GPU: %s: %s%s", r->mechanism->id, what,
                 gpu_api(r)->text(code), is_lasting(code) ? "; " LOST : "");
}

bool gpu_began(Run *r, const char *what, int code)
{
    Device *d = gpu_kind(r)->device;

    report_failure(r, what, code);
    atomic_fetch_add(&d->launched, 1);
    atomic_store(&d->begun, what);
    /* Else the host, which goes on with the op's lists, would touch memory of a GPU at work: there
     * that ends the program. */
    if (!d->info.managed)
        report_failure(r, what, wait_for(d));
    return !run_failed(r);
}

/* What a wait says that failed: the newest of several launches is only known to be there. */
static void tell_late(Run *r, int code, int64_t launches)
{
    const char *what = atomic_load(&gpu_kind(r)->device->begun);
    char        text[128];

    snprintf(text, sizeof(text), launches > 1 ? "%s, or what was begun before it" : "%s",
             what ? what : "waiting");
    report_failure(r, text, code);
}

void gpu_wait(Run *r, const char *reads)
{
    Device *d = gpu_kind(r)->device;
    int64_t launches = atomic_load(&d->launched) - atomic_load(&d->finished);

    if (reads && mode_of(d) != GRAPH_NONE && atomic_load(&d->launched) > d->graph_first)
        gpu_graph_lose(d, reads);
    if (mode_of(d) == GRAPH_CAPTURE) {
        if (d->graph_lost && !run_failed(r))
            run_fail(r, ERR_CANCELLED, "%s: the host reads in a capture: %s", r->mechanism->id,
                     d->graph_lost);
        return;
    }
    if (launches || atomic_load(&d->late))
        tell_late(r, wait_for(d), launches);
}

void gpu_toward(Run *r, const void *data, int64_t bytes)
{
    if (!run_failed(r) && data && bytes > 0 && mode_of(gpu_kind(r)->device) != GRAPH_CAPTURE)
        report_failure(r, "moving memory", gpu_api(r)->toward(data, bytes, true));
}

void gpu_brought(Run *r, const void *data, int64_t bytes)
{
    if (!data || !arena_holds(r->arena, data))
        return;
    gpu_toward(r, data, bytes);
    gpu_finish(r, "moving memory");
}

/* Views read what operations made as soon as it is made, so a run with views waits. */
static bool goes_ahead(const Run *r)
{
    return gpu_kind(r)->device->ahead != AHEAD_NOT && !r->spec.views && !run_failed(r);
}

void gpu_finish(Run *r, const char *what)
{
    Device *d = gpu_kind(r)->device;

    if (goes_ahead(r) || mode_of(d) == GRAPH_CAPTURE)
        return;
    atomic_store(&d->begun, what);
    report_failure(r, what, wait_for(d));
}

void gpu_done(Run *r, const char *what, int code)
{
    gpu_began(r, what, code);
    if (!code)
        gpu_finish(r, what);
}
