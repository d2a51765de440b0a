// planted.cu -- kernels with races that are known, and the same without: what the detector has to
// find, and what it must not (tests/emulated/races).
//
//     planted                 the names
//     planted NAME [clean]    runs that one; ThreadSanitizer ends it with a status of its own, 66
#include "attn/cuda/kernels/matrix.cuh"

#define THREADS 64
#define BLOCKS 3

cudaStream_t device_stream(void)
{
    static cudaStream_t one;

    if (!one)
        cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    return one;
}

int device_settle(void)
{
    return 0;
}

// Each thread reads its neighbour's; without a barrier that may not be there yet.
template <bool CLEAN>
static __global__ void neighbours(float *out)
{
    SHARED_ARRAY(float, all, [THREADS]);

    all[threadIdx.x] = (float)threadIdx.x;
    if (CLEAN)
        __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = all[(threadIdx.x + 1) % THREADS];
}

// The same in a warp: a shuffle brings lanes together and orders nothing.
template <bool CLEAN>
static __global__ void lanes(float *out)
{
    SHARED(float, all);
    float x = (float)threadIdx.x;

    all[threadIdx.x] = x;
    x = warp_sum(x);
    if (CLEAN)
        __syncwarp();
    out[blockIdx.x * THREADS + threadIdx.x] = x + all[threadIdx.x ^ 1];
}

// One place for all blocks.
template <bool CLEAN>
static __global__ void blocks(int *out)
{
    if (threadIdx.x)
        return;
    if (CLEAN)
        atomicAdd(out, 1);
    else
        *out += 1;
}

// A barrier that comes once too seldom: what is read of one round is written over by the next.
template <bool CLEAN>
static __global__ void rounds(float *out)
{
    SHARED_ARRAY(float, all, [THREADS]);
    float sum = 0;

    for (int round = 0; round < 3; round++) {
        all[threadIdx.x] = (float)(threadIdx.x + round);
        __syncthreads();
        sum += all[THREADS - 1 - threadIdx.x];
        if (CLEAN)
            __syncthreads();
    }
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// A thread waits for its own copies, and not for those of others.
template <bool CLEAN>
static __global__ void copies(float *out, const float *in)
{
    SHARED(float, all);

    copy_ahead(all + 4 * threadIdx.x, in + 4 * threadIdx.x);
    copies_end();
    copies_wait<0>();
    if (CLEAN)
        __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = all[4 * ((threadIdx.x + 1) % THREADS)];
}

// A copy begins where others still read, although a barrier comes before it is waited for.
template <bool CLEAN>
static __global__ void ahead(float *out, const float *in)
{
    SHARED(float, all);
    float x;

    all[4 * threadIdx.x] = 1;
    __syncthreads();
    x = all[4 * ((threadIdx.x + 1) % THREADS)];
    if (CLEAN)
        __syncthreads();
    copy_ahead(all + 4 * threadIdx.x, in + 4 * threadIdx.x);
    copies_end();
    __syncthreads();
    copies_wait<0>();
    out[blockIdx.x * THREADS + threadIdx.x] = x + all[4 * threadIdx.x];
}

template <bool CLEAN>
static int run(const char *name, float *out, float *in)
{
    size_t bytes = 4 * THREADS * sizeof(float);

    if (!strcmp(name, "neighbours"))
        return LAUNCH((neighbours<CLEAN>), BLOCKS, THREADS, 0, out);
    if (!strcmp(name, "lanes"))
        return LAUNCH((lanes<CLEAN>), BLOCKS, THREADS, bytes, out);
    if (!strcmp(name, "blocks"))
        return LAUNCH((blocks<CLEAN>), BLOCKS, THREADS, 0, (int *)out);
    if (!strcmp(name, "rounds"))
        return LAUNCH((rounds<CLEAN>), BLOCKS, THREADS, 0, out);
    if (!strcmp(name, "copies"))
        return LAUNCH((copies<CLEAN>), BLOCKS, THREADS, bytes, out, in);
    if (!strcmp(name, "ahead"))
        return LAUNCH((ahead<CLEAN>), BLOCKS, THREADS, bytes, out, in);
    return 2;
}

int main(int argc, char **argv)
{
    float *out = NULL, *in = NULL;
    bool   clean = argc > 2 && !strcmp(argv[2], "clean");

    if (argc < 2)
        return puts("neighbours lanes blocks rounds copies ahead") < 0;
    cudaMallocManaged((void **)&out, BLOCKS * THREADS * sizeof(*out), cudaMemAttachGlobal);
    cudaMallocManaged((void **)&in, 4 * THREADS * sizeof(*in), cudaMemAttachGlobal);
    return clean ? run<true>(argv[1], out, in) : run<false>(argv[1], out, in);
}
