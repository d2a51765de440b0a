/* gpu.c -- tensors, memory, launches and waits, and the table of operations; see gpu.h. */
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

#define SPARED 64 /* a 64th of the GPU's memory stays free for kernels and libraries */

/* CUDA does not refuse managed memory beyond the GPU's own: it moves pages to and fro, endlessly.
 * Memory taken here may still lie with the host and count as free, so its sum is compared with
 * the memory that was free before the first allocation. */
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

    return left < 0 || bytes <= left; /* unknown: take() will refuse */
}

static void lose_graph(Device *d, const char *why)
{
    if (!d->graph_lost)
        d->graph_lost = why;
}

static void *take(void *context, int64_t bytes)
{
    Device *d = context;
    void   *data = NULL;
    int64_t now, peak;

    if (atomic_load(&d->graph_mode) == GRAPH_CAPTURE)
        lose_graph(d, "it took memory that its rehearsal did not need");
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

/* ---- launches and waits -----------------------------------------------------------
 *
 * `launched` counts launches, `finished` those whose end a wait has seen.  So a wait of one thread
 * does not hide a launch that another thread makes meanwhile.
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
        atomic_store(&d->finished, atomic_load(&d->launched)); /* a captured launch does not run */
    }
    atomic_store(&d->graph_mode, (int)mode);
}

/* The device's code, or that of an earlier wait outside of a run. */
static int wait_for(Device *d)
{
    int64_t launched = atomic_load(&d->launched), finished = atomic_load(&d->finished);
    int     code = d->api->finish(), late = atomic_exchange(&d->late, 0);

    while (finished < launched && !atomic_compare_exchange_weak(&d->finished, &finished, launched))
        ;
    return late ? late : code;
}

/* ArenaSource.settle: the next wait of a run reports a failure. */
static void settle(void *context)
{
    Device *d = context;
    int     code = 0;

    if (mode_of(d) != GRAPH_NONE)
        lose_graph(d, "its operations' scratch memory is too large to keep");
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

/* CUDA's errors after which the process must be restarted (driver_types.h): faults and timeouts of
 * kernels, and a GPU or server that went away.  Others between them, such as a launch with too few
 * resources (701), concern one call only. */
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
    /* The host goes on with the op's lists.  Without managed memory, touching them while the GPU
     * works would end the program. */
    if (!d->info.managed)
        report_failure(r, what, wait_for(d));
    return !run_failed(r);
}

/* Of several launches only the newest is known by name. */
static void report_late(Run *r, int code, int64_t launches)
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
        lose_graph(d, reads);
    if (mode_of(d) == GRAPH_CAPTURE) {
        if (d->graph_lost && !run_failed(r))
            run_fail(r, ERR_CANCELLED, "%s: the host reads in a capture: %s", r->mechanism->id,
                     d->graph_lost);
        return;
    }
    if (launches || atomic_load(&d->late))
        report_late(r, wait_for(d), launches);
}

void gpu_toward(Run *r, const void *data, int64_t bytes)
{
    if (!run_failed(r) && data && bytes > 0 && mode_of(gpu_kind(r)->device) != GRAPH_CAPTURE)
        report_failure(r, "moving memory", gpu_api(r)->toward(data, bytes, true));
}

/* Ops.toward: also waits for the move, unless the run is ahead of the device. */
static void gpu_brought(Run *r, const void *data, int64_t bytes)
{
    if (!data || !arena_holds(r->arena, data))
        return;
    gpu_toward(r, data, bytes);
    gpu_finish(r, "moving memory");
}

/* Views read results at once, so a run with views waits. */
static bool runs_ahead(const Run *r)
{
    return gpu_kind(r)->device->ahead != AHEAD_NOT && !r->spec.views && !run_failed(r);
}

void gpu_finish(Run *r, const char *what)
{
    Device *d = gpu_kind(r)->device;

    if (runs_ahead(r) || mode_of(d) == GRAPH_CAPTURE)
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

/* ---- the table -------------------------------------------------------------------- */

void gpu_fill_ops(Device *d)
{
    d->memory = (ArenaSource){ .take = take, .give = give, .busy = busy, .settle = settle,
                               .left = left_of, .broken = gpu_broken,
                               .attach = d->info.managed ? NULL : attach, .context = d };
    for (int kind = 0; kind <= ARITHMETIC_F16; kind++) {
        DeviceKind *k = &d->kinds[kind];

        *k = (DeviceKind){ .device = d, .arithmetic = (Arithmetic)kind,
                           .ops = { .name = d->api->name, .memory = &d->memory, .wait = gpu_wait,
                                    .toward = gpu_brought } };
#define OP(name) k->ops.name = gpu_##name;
        GPU_OPS(OP)
#undef OP
    }
}
