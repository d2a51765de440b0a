// emulated.h -- what the kernels use of CUDA, on the host: every thread of a block is a fiber,
// run in turn from one barrier to the next; blocks run one after the other.
//
// It checks more than it computes: a thread that misses a barrier which others of its block
// (or, for shuffles, of its warp) wait at, is a failure with the kernel's name.  Shared memory
// is filled with NaN patterns before each block, and what is written behind its end is found.
// Compiled for ThreadSanitizer it finds accesses that nothing puts in order (emulated_races.h).
// A kernel that is given a pointer to the host's memory ends the program.  A call that fails leaves
// its code for cudaGetLastError(), as the runtime does, until somebody asks.
//
// EMULATED_FAIL=KIND:K in the environment makes the K-th (0-based, from the device's opening on)
// allocation (`take`), attachment (`attach`), kernel launch (`launch`) or wait (`finish`) fail;
// `device`: there is none; `image`: no kernel was compiled for it; `hopper`: it is of capability
// 8.0; `wgmma`: products of warpgroups leave their sums as they are; `lost:K`: from the K-th launch
// on everything fails, as after a kernel that ran wild; `attribute`: a driver does not know whether
// the host may touch memory while the device works;
// `memory:B`: other programs hold B bytes of its memory.  Managed memory is never refused, as on
// a GPU: whoever takes more than the device has is found, because there it may hang.
// EMULATED_SHARED=B: a block has B bytes of shared memory, as on GPUs that are no Hopper.
// EMULATED_DEFER=1: nothing happens before it is waited for (stream.cc).  EMULATED_EXCLUSIVE=1: so
// too, and until then the host may not touch memory (managed.cc).
#ifndef TESTS_EMULATED_H
#define TESTS_EMULATED_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <functional>

#define DEVICE_NAME "emulated"
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ static const
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
// Aligned as CUDA's are: a GPU reads and writes them whole, and faults where they are not; so does
// this processor with those of 16 bytes.
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline float2 make_float2(float x, float y) { return { x, y }; }
static inline float4 make_float4(float x, float y, float z, float w) { return { x, y, z, w }; }

/* ---- the threads ------------------------------------------------------------- */

struct Lane {
    dim3  thread;
    int   number;           // in its block
};
struct Emulation {
    dim3  grid, block, at;  // at: the block that runs
    Lane *lane;             // the thread that runs
};
extern Emulation emulation;

#define threadIdx (emulation.lane->thread)
#define blockIdx (emulation.at)
#define blockDim (emulation.block)
#define gridDim (emulation.grid)
#define warpSize 32

int   emulate(const char *kernel, const void *entry, dim3 grid, dim3 block, size_t shared,
              const std::function<void()> &body);
int   emulated_allow(const void *entry, size_t shared);
void *emulated_shared(void);
void  emulated_barrier(void);  // of the block
void  emulated_warp(void);     // of the warp, with what it has written
void  emulated_gather(void);   // of the warp, only in time
// This lane's word is left for the others of its warp; after it all have left theirs.  They can be
// read until this lane leaves the next but one.
void  emulated_leave(const void *data, size_t size);
const void *emulated_word(int lane); // what lane of this warp left; NULL: it is not there
int   emulated_lanes(void);          // of this warp that there are
// This thread goes on when ready(what).
void  emulated_wait(bool (*ready)(const void *what), const void *what);
size_t emulated_shared_size(void);
void  emulated_broken(const char *how); // says where, and ends the program
// What warpgroups do (emulated_warpgroup.cc): around each block, and when no thread can go on;
// false: that changes nothing.
void  emulated_block_begins(void);
const char *emulated_block_ends(void); // NULL: well
bool  emulated_deliver(void);

// What a kernel is given points to memory that the device has; else ends the program.
void emulated_argument(const char *kernel, const void *data, size_t size);

// Arguments are copied at the launch, not when the kernel runs.
template <typename Kernel, typename... Args>
static inline int emulate_with(const char *name, const void *entry, dim3 grid, dim3 block,
                               size_t shared, Kernel kernel, Args... args)
{
    static_assert((sizeof(Args) + ... + 0) <= 4096, "a kernel's arguments are no more, by sm_80");
    // Bytes between fields may hold anything.
    ((__builtin_clear_padding(&args), emulated_argument(name, &args, sizeof(args))), ...);
    return emulate(name, entry, grid, block, shared, [=] { kernel(args...); });
}

#define BEGIN_KERNEL(kernel, grid, block, shared, ...)                                         \
    emulate_with(#kernel, (const void *)(kernel), dim3(grid), dim3(block), (shared),           \
                 [=](auto... args) { kernel(args...); }, __VA_ARGS__)
#define SHARED(type, name) type *name = (type *)emulated_shared()
// Memory of a known size, each block's own: no numbers when it begins.
struct EmulatedShared {
    void    *data;
    size_t   bytes;
    uint64_t block; // whose it is
};
void *emulated_fixed(EmulatedShared *memory);
#define SHARED_ARRAY(type, name, sizes)                                                        \
    static EmulatedShared name##_memory = { NULL, sizeof(type sizes), 0 };                     \
    type (&name) sizes = *(type (*) sizes)emulated_fixed(&name##_memory)
#define SHARED_VALUE(type, name)                                                               \
    static EmulatedShared name##_memory = { NULL, sizeof(type), 0 };                           \
    type &name = *(type *)emulated_fixed(&name##_memory)
#define ALLOW_SHARED(kernel, bytes) emulated_allow((const void *)(kernel), (size_t)(bytes))

static inline void __syncthreads(void) { emulated_barrier(); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { (void)mask; emulated_warp(); }
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}

template <typename T>
static inline T emulated_shuffle(T x, int from)
{
    T out;
    const void *word;

    emulated_leave(&x, sizeof(x));
    word = emulated_word(from);
    if (word)
        memcpy(&out, word, sizeof(out));
    else // from a lane that there is not, or that has ended: anything
        memset((void *)&out, 0xff, sizeof(out));
    return out;
}
template <typename T>
static inline T __shfl_sync(unsigned, T x, int lane, int width = 32)
{
    int own = emulation.lane->number & 31;

    return emulated_shuffle(x, (own & ~(width - 1)) + (lane & (width - 1)));
}
template <typename T>
static inline T __shfl_xor_sync(unsigned, T x, int lanes, int width = 32)
{
    int own = emulation.lane->number & 31, to = own ^ lanes;

    return emulated_shuffle(x, to / width == own / width ? to : own);
}
template <typename T>
static inline T __shfl_down_sync(unsigned, T x, unsigned lanes, int width = 32)
{
    int own = emulation.lane->number & 31, to = own + (int)lanes;

    return emulated_shuffle(x, to / width == own / width ? to : own);
}
template <typename T>
static inline T __shfl_up_sync(unsigned, T x, unsigned lanes, int width = 32)
{
    int own = emulation.lane->number & 31, to = own - (int)lanes;

    return emulated_shuffle(x, to >= 0 && to / width == own / width ? to : own);
}
static inline unsigned __ballot_sync(unsigned, int yes)
{
    unsigned all = 0;

    emulated_leave(&yes, sizeof(yes));
    for (int lane = 0; lane < 32; lane++) {
        const int *word = (const int *)emulated_word(lane);

        all |= (unsigned)(word && *word) << lane;
    }
    return all;
}
static inline int __any_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) != 0; }
static inline int __all_sync(unsigned mask, int yes) { return __ballot_sync(mask, !yes) == 0; }

// The lanes that have the same value.
template <typename T>
static inline unsigned __match_any_sync(unsigned, T x)
{
    unsigned all = 0;

    emulated_leave(&x, sizeof(x));
    for (int lane = 0; lane < 32; lane++) {
        const void *word = emulated_word(lane);

        all |= (unsigned)(word && !memcmp(word, &x, sizeof(x))) << lane;
    }
    return all;
}
/* ---- streams (stream.cc) ------------------------------------------------------------ */

typedef int   cudaError_t;
typedef void *cudaStream_t;
extern "C" cudaStream_t device_stream(void);
extern "C" int device_settle(void);

int  emulated_code(int code);                           // kept for cudaGetLastError()
int  emulated_begin(const std::function<void()> &work); // in its turn, on device_stream()
void emulated_settle(cudaStream_t stream);              // all that was begun there is done
void emulated_settle(void);                             // and on all
int  emulated_uncapturable(void); // an error while the stream captures, and the capture's end

/* ---- memory that host and device do not share (managed.cc) -------------------------- */

bool  emulated_exclusive(void); // it is so
void *emulated_map(size_t bytes, unsigned flags);
bool  emulated_unmap(void *data); // false: it is no such memory
// Why no kernel of the stream may use what lies there; NULL: it may.
const char *emulated_foreign(uintptr_t at, cudaStream_t stream);
void  emulated_works(cudaStream_t stream, bool works);
void  emulated_ended(cudaStream_t stream);  // for good
void  emulated_faulted(const void *at);     // ends the program where it was the host
bool  emulated_refuses_attachment(void);    // by EMULATED_FAIL

/* ---- what its profiler records (profiler.cc) -------------------------------------- */

int64_t emulated_clock(void);  // nanoseconds
int     emulated_region(void); // that calls belong to now
void    emulated_launched(const char *kernel, dim3 grid, dim3 block, size_t shared,
                          int region, int64_t began);
void    emulated_copied(int kind, size_t bytes, int region, int64_t began); // DeviceCopyKind
void    emulated_allocated(int64_t bytes);                      // negative: given back

/* ---- atomics: they put nothing in order ------------------------------------------ */

template <typename T, typename Change>
static inline T emulated_atomic(T *at, Change change)
{
    T old, next;

    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do
        next = change(old);
    while (!__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
template <typename T>
static inline T atomicAdd(T *at, T x)
{
    return emulated_atomic(at, [=](T old) { return old + x; });
}
template <typename T>
static inline T atomicOr(T *at, T x)
{
    return emulated_atomic(at, [=](T old) { return old | x; });
}

/* ---- arithmetic ---------------------------------------------------------------------- */

#define __expf expf // glibc has names of its own like these
#define __logf logf
static inline float __fdividef(float x, float y) { return x / y; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
// Rounded here and now: the compiler may not make one operation of this and the next, as it may of
// a product and a sum (nvcc does so, and so does a C++ compiler where the CPU has FMA).
template <typename T>
static inline T emulated_rounded(T x)
{
    volatile T kept = x;

    return kept;
}
static inline float __fmul_rn(float x, float y) { return emulated_rounded(x * y); }
static inline float __fadd_rn(float x, float y) { return emulated_rounded(x + y); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __dmul_rn(double x, double y) { return emulated_rounded(x * y); }
static inline double __dadd_rn(double x, double y) { return emulated_rounded(x + y); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
static inline int __float_as_int(float x) { int y; memcpy(&y, &x, 4); return y; }
static inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static inline long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
static inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
template <typename T>
static inline T __ldg(const T *at) { return *at; }
template <typename T>
static inline T max(T a, T b) { return a > b ? a : b; }
template <typename T>
static inline T min(T a, T b) { return a < b ? a : b; }

/* ---- the runtime: memory is the host's ------------------------------------------------ */

typedef void *cudaGraph_t;
typedef void *cudaGraphExec_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2,
       cudaErrorInvalidConfiguration = 9, cudaErrorNoKernelImageForDevice = 209,
       cudaErrorIllegalState = 401, cudaErrorLaunchFailure = 719,
       cudaErrorStreamCaptureUnsupported = 900, cudaErrorStreamCaptureInvalidated = 901,
       cudaErrorNoDevice = 100 };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin, cudaDevAttrConcurrentManagedAccess,
                      cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum { cudaEnableDefault };
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4 };
enum { cudaStreamNonBlocking = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal };
enum { cudaMemLocationTypeDevice, cudaMemLocationTypeHost };
struct cudaMemLocation { int type, id; };
struct cudaDeviceProp {
    char   name[256];
    int    major, minor, multiProcessorCount;
    size_t totalGlobalMem;
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *index);
cudaError_t cudaSetDevice(int index);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *about, int index);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int index);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaMallocManaged(void **data, size_t bytes, unsigned flags);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *data, size_t bytes,
                                     unsigned flags);
cudaError_t cudaFree(void *data);
cudaError_t cudaMemGetInfo(size_t *left, size_t *all);
cudaError_t cudaMemPrefetchAsync(const void *data, size_t bytes, cudaMemLocation where,
                                 unsigned flags, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *found);
cudaError_t cudaGetLastError(void);
struct cudaFuncAttributes {
    int nothing; // of it is asked for
};
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *about, void (*kernel)(void));
const char *cudaGetErrorString(cudaError_t code);
const char *cudaGetErrorName(cudaError_t code);

#endif
