// tests/gpu/profile.cu -- the profiler of attnscope-cuda.so on kernels whose work is known.
//
//   profile LIBRARY      prints a line a check; exit status 1 on a failure, 77 without a GPU
//
// In regions 0, 1, 2, 3, 4: fused multiply-adds, additions, multiplications, matrix products in
// bf16, a copy by a kernel of half a GiB, which is several times the second-level cache.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/device.h"

#define GRID 264
#define BLOCK 256
#define TIMES 512
#define BYTES ((size_t)512 << 20)
#define REGIONS 5

static int failures;

static void check(bool good, const char *fmt, ...)
{
    va_list args;

    printf("%s ", good ? "ok" : "FAILED");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    failures += !good;
}

/* ---- kernels: named roundings are never joined or reordered ---------------------------- */

template <int Kind>
static __device__ __forceinline__ float once(float x, float a, float b)
{
    return Kind == 0 ? __fmaf_rn(x, a, b) : Kind == 1 ? __fadd_rn(x, a) : __fmul_rn(x, a);
}

template <int Kind> __global__ void repeated(float *out, float a, float b)
{
    float x = a;

#pragma unroll
    for (int i = 0; i < TIMES; i++)
        x = once<Kind>(x, a, b);
    out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = x;
}

/* m16n8k16: 16 * 8 * 16 multiply-adds of a warp. */
__global__ void products(float *out)
{
    float    c[4] = { 0, 0, 0, 0 };
    unsigned ones = 0x3f803f80u;

#pragma unroll 8
    for (int i = 0; i < TIMES; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(ones));
    out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}

__global__ void copied(const float4 *from, float4 *to, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

static float  *out;
static float4 *from, *to;

static void launch(int region)
{
    if (region == 0)
        repeated<0><<<GRID, BLOCK>>>(out, 0.5f, 1.0f);
    else if (region == 1)
        repeated<1><<<GRID, BLOCK>>>(out, 0.5f, 1.0f);
    else if (region == 2)
        repeated<2><<<GRID, BLOCK>>>(out, 0.999f, 1.0f);
    else if (region == 3)
        products<<<GRID, BLOCK>>>(out);
    else
        copied<<<GRID, BLOCK>>>(from, to, BYTES / sizeof(*from));
}

/* ---- tiers ------------------------------------------------------------------------------ */

static void try_events(const DeviceProfiler *p)
{
    double ms = -1;

    check(!p->mark(0) && !p->mark(1) && !p->between(0, 1, &ms) && ms >= 0 && ms < 1000,
          "two marks are %.4f ms apart", ms);
}

static void try_trace(const DeviceProfiler *p)
{
    DeviceTrace trace = {};
    void       *taken = NULL;
    int         found[REGIONS] = { 0 };
    int64_t     bytes = 0;

    if (p->trace_begin()) {
        printf("skipped activity: %s\n", p->why());
        return;
    }
    for (int r = 0; r < REGIONS; r++) {
        p->trace_enter(r);
        if (r == 4)
            check(!cudaMalloc(&taken, 1 << 20), "one allocation in region 4");
        launch(r);
        cudaDeviceSynchronize();
        p->trace_leave();
    }
    check(!p->trace_end(&trace), "the trace ends: %s", p->why());
    for (int64_t i = 0; i < trace.kernel_count; i++) {
        const DeviceKernel *k = &trace.kernels[i];

        if (k->region >= 0 && k->region < REGIONS)
            found[k->region]++;
        check(k->end > k->start && k->grid[0] == GRID && k->block[0] == BLOCK && k->registers > 0,
              "%.40s in region %d: %.1f us, %d registers", k->name, k->region,
              1e-3 * (double)(k->end - k->start), k->registers);
    }
    for (int r = 0; r < REGIONS; r++)
        check(found[r] == 1, "region %d has %d kernel(s)", r, found[r]);
    for (int64_t i = 0; i < trace.allocation_count; i++)
        bytes += trace.allocations[i].region == 4 ? trace.allocations[i].bytes : 0;
    check(bytes >= 1 << 20, "region 4 took %lld bytes", (long long)bytes);
    check(!trace.dropped, "no record is lost");
    p->trace_free(&trace);
    cudaFree(taken);
}

static void near(const char *what, double got, double wanted, double share)
{
    check(fabs(got - wanted) <= share * wanted, "%s: %.0f, by its source %.0f (%.6f)", what, got,
          wanted, got / wanted);
}

static void judge(const DeviceRange *r)
{
    double threads = (double)GRID * BLOCK, warps = threads / 32;

    near("fused multiply-adds", r[0].value[DEVICE_COUNT_FP32_FUSED], TIMES * threads, 0);
    near("additions", r[1].value[DEVICE_COUNT_FP32_ADD], TIMES * threads, 0);
    near("multiplications", r[2].value[DEVICE_COUNT_FP32_MUL], TIMES * threads, 0);
    near("matrix operations in bf16", r[3].value[DEVICE_COUNT_TENSOR_BF16],
         2.0 * 16 * 8 * 16 * TIMES * warps, 0.005);
    near("DRAM read by the copy", r[4].value[DEVICE_COUNT_DRAM_READ], (double)BYTES, 0.3);
    near("DRAM written by the copy", r[4].value[DEVICE_COUNT_DRAM_WRITTEN], (double)BYTES, 0.3);
    for (int i = 0; i < REGIONS; i++) {
        double held = r[i].value[DEVICE_COUNT_WARPS] /
                      (r[i].value[DEVICE_COUNT_CYCLES] * r[i].value[DEVICE_COUNT_WARPS_MOST]);

        check(held > 0 && held <= 1.01, "occupancy of region %d: %.3f", i, held);
    }
}

static void try_counters(const DeviceProfiler *p)
{
    DeviceRange ranges[REGIONS];
    bool        more = true;
    int         passes = 0;

    if (p->count_begin(REGIONS)) {
        printf("skipped counters: %s\n", p->why());
        return;
    }
    while (more && passes < 64) {
        check(!p->pass_begin(), "pass %d begins", ++passes);
        for (int r = 0; r < REGIONS; r++) {
            if (p->range_begin(r)) {
                check(false, "range %d: %s", r, p->why());
                return;
            }
            launch(r);
            if (p->range_end()) {
                check(false, "range %d: %s", r, p->why());
                return;
            }
        }
        if (p->pass_end(&more)) {
            check(false, "pass %d: %s", passes, p->why());
            return;
        }
    }
    if (p->count_end(ranges))
        check(false, "counters: %s", p->why());
    else
        judge(ranges);
}

int main(int count, char **words)
{
    void                 *library = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    DeviceEntry          *entry = library ? (DeviceEntry *)dlsym(library, DEVICE_ENTRY) : NULL;
    const DeviceApi      *api = entry ? entry(DEVICE_ABI) : NULL;
    const DeviceProfiler *p = api && api->profiler ? api->profiler() : NULL;
    DeviceInfo            info;

    if (!p) {
        printf("skipped: %s has no profiler\n", count > 1 ? words[1] : "no library");
        return 77;
    }
    int code = api->open(0, &info);

    if (code) {
        printf("skipped: no GPU: %s\n", api->text(code));
        return 77;
    }
    printf("%s, %s\n", info.name, p->source());
    check(!cudaMalloc(&out, GRID * BLOCK * sizeof(*out)) && !cudaMalloc(&from, BYTES) &&
              !cudaMalloc(&to, BYTES) && !cudaMemset(from, 1, BYTES), "memory");
    for (int r = 0; r < REGIONS; r++)
        launch(r);
    check(!cudaDeviceSynchronize(), "kernels run");
    try_events(p);
    try_trace(p);
    try_counters(p);
    return failures > 0;
}
