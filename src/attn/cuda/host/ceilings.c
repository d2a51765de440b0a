/* ceilings.c -- the device's measured peak rates; see attn/ops/ops.h.
 *
 * The repetitions of each kind of work are doubled until a round takes LEAST seconds, so that the
 * cost of a launch is negligible; the best of ROUNDS counts.  Times are the host's, around the
 * work and the wait for it.
 */
#include "attn/cuda/host/gpu.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define ROUNDS 4           /* the first moves memory to the device */
#define LEAST 0.03         /* seconds */
#define BLOCKS 8           /* for each multiprocessor: enough warps to keep it busy */
#define MEMORY_PART 512    /* an array of the triad is this part of the memory ... */
#define MOST_FLOATS (INT64_C(1) << 26) /* ... at most this many floats, far past the caches */
#define MOST_SIZE 8192     /* rows of the matrices */

typedef struct Work {
    const DeviceApi *api;
    DeviceInfo       info;
    float           *arrays[3];
    int64_t          count; /* floats of each array */
    int              code;  /* of the first failure */
} Work;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits for the call that returned `code`; seconds since `start`. */
static double wait_for_work(Work *w, int code, double start)
{
    code = code ? code : w->api->finish();
    w->code = w->code ? w->code : code;
    return now() - start;
}

static double run_once(Work *w, const CeilingCall *call)
{
    double start = now();

    return wait_for_work(w, w->api->ceiling(call), start);
}

/* FLOP/s of work with `flops` in each round of a block. */
static double flops_of(Work *w, CeilingCall call, double flops)
{
    double best = 0, seconds = 0;

    call.blocks = (int64_t)w->info.processors * BLOCKS;
    call.rounds = 1;
    call.a = w->arrays[0];
    while (!w->code && (seconds = run_once(w, &call)) < LEAST && call.rounds < 1 << 30)
        call.rounds *= 2;
    for (int round = 0; round < ROUNDS && !w->code; round++) {
        seconds = round ? run_once(w, &call) : seconds;
        best = fmax(best, flops * (double)(call.blocks * call.rounds) / seconds);
    }
    return best;
}

static double words_of(Work *w, Arithmetic arithmetic)
{
    CeilingCall call = { .kind = CEILING_WORDS, .arithmetic = (int32_t)arithmetic };
    double      inner = arithmetic == ARITHMETIC_TF32 ? 8 : 16;
    double      warps = CEILING_THREADS / 32;

    return flops_of(w, call, 2 * 16 * 8 * inner * CEILING_WORDS_STEPS * warps);
}

/* FLOP/s by warpgroups, which alone reach a Hopper's peak.  0: no trial has shown that they work
 * on this machine. */
static double groups_of(Work *w, const Device *d, Arithmetic arithmetic)
{
    CeilingCall call = { .kind = CEILING_GROUPS, .arithmetic = (int32_t)arithmetic, .blocks = 1,
                         .rounds = 1, .a = w->arrays[0] };
    int         code;

    if (w->code || arithmetic == ARITHMETIC_TF32 || w->info.major != 9 || w->info.minor != 0 ||
        !device_way_taken(d, WAY_WARPGROUP))
        return 0;
    code = w->api->ceiling(&call);
    if (code == WARPGROUP_DECLINED)
        return 0;
    wait_for_work(w, code, 0);
    return flops_of(w, call, CEILING_GROUPS_FLOPS);
}

static double product_seconds(Work *w, int64_t size, Arithmetic arithmetic)
{
    GemmCall call = { .heads = 1, .pieces = 1, .rows = size, .cols = size, .inner = size,
                      .alpha = 1, .arithmetic = (int32_t)arithmetic };
    double   start = now();

    call.a = gpu_block(w->arrays[0], DEVICE_F32, 1, size, size);
    call.b = gpu_block(w->arrays[1], DEVICE_F32, 1, size, size);
    call.c = gpu_block(w->arrays[2], DEVICE_F32, 1, size, size);
    return wait_for_work(w, w->api->gemm(&call), start);
}

static double products(Work *w, Arithmetic arithmetic)
{
    int64_t size = 64;
    double  best = 0;

    while (!w->code && size < MOST_SIZE && 4 * size * size <= w->count &&
           product_seconds(w, size, arithmetic) < LEAST)
        size *= 2;
    for (int round = 0; round < ROUNDS && !w->code; round++) {
        double n = (double)size;

        best = fmax(best, 2 * n * n * n / product_seconds(w, size, arithmetic));
    }
    return best;
}

static double stream(Work *w)
{
    CeilingCall call = { .kind = CEILING_TRIAD, .rounds = 1, .count = w->count,
                         .a = w->arrays[0], .b = w->arrays[1], .c = w->arrays[2] };
    double      best = 0;

    for (int round = 0; round < ROUNDS && !w->code; round++) {
        double seconds = run_once(w, &call);

        best = fmax(best, 3 * (double)w->count * sizeof(float) / seconds);
    }
    return best;
}

static void take_arrays(Work *w)
{
    w->count = min_i64(MOST_FLOATS, w->info.memory / MEMORY_PART / 16 * 4);
    for (int x = 0; x < 3 && !w->code; x++) {
        int64_t bytes = w->count * (int64_t)sizeof(float);
        void   *data = NULL;

        w->code = w->api->take(bytes, &data);
        w->arrays[x] = data;
        w->code = w->code ? w->code : w->api->attach(data, true);
        if (!w->code) {
            memset(data, 0, (size_t)bytes);
            w->api->toward(data, bytes, true);
        }
    }
}

bool gpu_ceilings(const Ops *ops, Threads *threads, Ceilings *out, Error *err)
{
    const DeviceKind *kind = (const DeviceKind *)ops;
    CeilingCall       fma = { .kind = CEILING_FMA };
    Work              w = { .api = kind->device->api, .info = kind->device->info };
    bool              rounded = kind->arithmetic != ARITHMETIC_F32;
    Arithmetic        how;

    (void)threads;
    take_arrays(&w);
    how = rounded ? kind->arithmetic : ARITHMETIC_BF16;
    out->tensor = fmax(words_of(&w, how), groups_of(&w, kind->device, how));
    out->peak = rounded ? out->tensor : flops_of(&w, fma, CEILING_FMA_FLOPS);
    out->gemm = products(&w, kind->arithmetic);
    out->stream = stream(&w);
    for (int x = 0; x < 3; x++)
        if (w.arrays[x])
            w.api->give(w.arrays[x]);
    return !w.code || error_set(err, ERR_UNSUPPORTED, "measuring the GPU's ceilings: %s",
                                w.api->text(w.code));
}
