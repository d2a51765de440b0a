// emulated.cc -- see emulated.h.  Fibers are Boost.Context's.
#include "emulated_matrix.h"
#include "emulated_races.h"

#include "attn/cuda/profiling.h"

#include <boost/context/fiber.hpp>
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace context = boost::context;

#define WARP 32
#define WORD 32                // bytes a lane may leave
#define SHARED_MOST ((size_t)227 << 10)   // of a Hopper's block, unless EMULATED_SHARED says it
#define SHARED_UNASKED ((size_t)48 << 10) // without cudaFuncSetAttribute; of known size at all
#define GUARD 256      // bytes behind shared memory
#define GUARD_BYTE 0xfd
#ifdef EMULATED_SANITIZED
#define STACK ((size_t)256 << 10) // of a thread
#else
#define STACK ((size_t)64 << 10)
#endif
#define BLOCK_MOST 1024 // threads
#define MEMORY ((size_t)8 << 30) // the device "has" so much

struct Copy {
    void       *to;
    const void *from;
    int         group;
};

enum class At : uint8_t { running, barrier, gather, wait, end }; // running: it can go on

struct Fiber {
    Lane            lane;
    bool          (*ready)(const void *); // At::wait: until then
    const void     *what;
    context::fiber  self;     // where it goes on
    std::vector<Copy> copies; // begun and not waited for
    int             group;    // of the next copy
    void           *race;     // ThreadSanitizer's fiber
    unsigned        blocks, warps; // barriers of these kinds that it has come to
    unsigned        words;    // that it has left
};

// What the lanes of a warp left last and before last: whoever leaves the next word has read the
// last one, so that nobody need wait until all have read.
struct Words {
    alignas(16) unsigned char word[2][WARP][WORD];
    unsigned round[2][WARP]; // which of its words that is, from 1 on
};

typedef std::vector<std::unique_ptr<Fiber>> Fibers;

Emulation emulation;

static Fibers                       sets[SETS]; // they and their stacks go with the library
static unsigned                     set_now;
static At                           state[BLOCK_MOST]; // of the block's threads
static Words                        words_now[BLOCK_MOST / WARP];
static std::mutex                   one_at_a_time;
static const std::function<void()> *body_now;
static unsigned char               *shared_now;
static size_t                       shared_size, shared_allowed; // the latter with `fixed`
static std::vector<const EmulatedShared *> fixed; // that the block has come to
static const char                  *kernel_now;
static Fiber                        host;     // from which a block is run
static Fiber                       *running = &host, *gone; // gone: whose turn was before
static thread_local cudaError_t     last_error; // of this host thread: stays until it is asked for
static std::atomic<size_t>          in_use;

int emulated_code(int code)
{
    last_error = code ? code : last_error;
    return code;
}

// What is in order for ThreadSanitizer: a barrier and the next one are different things, because
// threads leave one after the other.
static char launched_order, ended_order, block_order[SETS][2], warp_order[SETS][32][2];
void *emulated_host;

void *emulated_race(void) { return running->race; }

static Fiber *fiber_at(size_t x) { return sets[set_now][x].get(); }

static size_t threads_now(void)
{
    return (size_t)emulation.block.x * emulation.block.y * emulation.block.z;
}

// The next lane of the warp that can go on, without a way back to the host between.
static Fiber *next_lane(int number)
{
    int end = std::min((number / WARP + 1) * WARP, (int)threads_now());

    while (++number < end)
        if (state[number] == At::running)
            return fiber_at((size_t)number);
    return &host;
}

static void go_to(Fiber *fiber)
{
    context::fiber back;

    gone = running;
    running = fiber;
    emulation.lane = &fiber->lane;
    race_go(fiber == &host ? emulated_host : fiber->race);
    back = std::move(fiber->self).resume();
    gone->self = std::move(back); // its turn ended in this one's
}

static void wait_at(At at)
{
    int number = running->lane.number;

    state[number] = at;
    go_to(next_lane(number));
}

static void meet(At at, char *order)
{
    race_gives(order);
    wait_at(at);
    race_takes(order);
}

void emulated_barrier(void)
{
    meet(At::barrier, &block_order[set_now][running->blocks++ % 2]);
}

void emulated_warp(void)
{
    meet(At::gather, &warp_order[set_now][running->lane.number / WARP][running->warps++ % 2]);
}

void emulated_gather(void) { wait_at(At::gather); }
void *emulated_shared(void) { return shared_now; }
size_t emulated_shared_size(void) { return shared_size; }

void emulated_wait(bool (*ready)(const void *), const void *what)
{
    if (ready(what))
        return;
    running->ready = ready;
    running->what = what;
    wait_at(At::wait);
}

typedef uint32_t __attribute__((may_alias)) Piece;

// Not by memcpy, which ThreadSanitizer would see: a shuffle's words are no memory.
void emulated_leave(const void *data, size_t size)
{
    Words   &warp = words_now[running->lane.number / WARP];
    int      lane = running->lane.number % WARP;
    unsigned round = ++running->words;
    auto    *word = warp.word[round % 2][lane];

    if (size % sizeof(Piece) == 0 && (uintptr_t)data % sizeof(Piece) == 0)
        for (size_t x = 0; x < std::min(size, (size_t)WORD); x += sizeof(Piece))
            *(volatile Piece *)(word + x) = *(const Piece *)((const unsigned char *)data + x);
    else
        for (size_t x = 0; x < std::min(size, (size_t)WORD); x++)
            ((volatile unsigned char *)word)[x] = ((const unsigned char *)data)[x];
    warp.round[round % 2][lane] = round;
    emulated_gather();
}

void emulated_broken(const char *how)
{
    fprintf(stderr, "emulated: %s in block (%u,%u,%u): %s\n", kernel_now, emulation.at.x,
            emulation.at.y, emulation.at.z, how);
    abort();
}

/* ---- copies that run on ---------------------------------------------------------------- */

#define COPY 16 // bytes

// What stands there is spoiled at once, and comes when it is waited for.

void emulated_copy(void *to, const void *from)
{
    if ((uintptr_t)to % COPY || (uintptr_t)from % COPY)
        emulated_broken("a copy's address is not a multiple of 16");
    race_writes(to, COPY);
    memset(to, 0xff, COPY);
    running->copies.push_back({ to, from, running->group });
}

void emulated_copies_end(void)
{
    running->group++;
}

void emulated_copies_wait(int left)
{
    std::vector<Copy> &copies = running->copies;
    size_t             done = 0;

    for (; done < copies.size() && copies[done].group < running->group - left; done++) {
        race_reads(copies[done].from, COPY);
        race_writes(copies[done].to, COPY);
        memcpy(copies[done].to, copies[done].from, COPY);
    }
    copies.erase(copies.begin(), copies.begin() + (long)done);
}

int emulated_lanes(void)
{
    size_t first = (size_t)running->lane.number / WARP * WARP;

    return (int)std::min<size_t>(WARP, threads_now() - first);
}

const void *emulated_word(int lane)
{
    const Words &warp = words_now[running->lane.number / WARP];
    unsigned     round = running->words;

    return warp.round[round % 2][lane] == round ? warp.word[round % 2][lane] : NULL;
}

// Stacks beside each other, a little more than a power of two apart: their ends, which every thread
// uses, would otherwise share a few lines of the caches.
struct Stacks {
    static constexpr size_t stride = STACK + 832, count = 128;

    context::stack_context allocate()
    {
        static unsigned char  *next, *end;
        context::stack_context stack;

        if (next == end) {
            void *data = mmap(NULL, stride * count, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

            if (data == MAP_FAILED)
                throw std::bad_alloc();
            madvise(data, stride * count, MADV_HUGEPAGE);
            next = (unsigned char *)data;
            end = next + stride * count;
        }
        next += stride;
        stack.size = STACK;
        stack.sp = next;
        return stack;
    }
    void deallocate(context::stack_context &) {} // they go with the process
};

// A fiber runs the body once for every block, and waits at the end of each.
static Fiber *fiber_new(void)
{
    Fiber *fiber;

    race_quiet(true); // what is made here is no thread's
    fiber = new Fiber();
    fiber->race = race_fiber();
    fiber->self = context::fiber(std::allocator_arg, Stacks(), [](context::fiber &&back) {
        gone->self = std::move(back);
        for (;;) {
            (*body_now)();
            wait_at(At::end);
        }
        return std::move(host.self);
    });
    race_quiet(false);
    return fiber;
}

// Runs the lanes of a warp as far as they come without other warps; whether any did.
static bool run_warp(size_t first, size_t count)
{
    for (bool ran = false;; ran = true) {
        size_t moved = 0, gathered = 0, stopped = 0, waiting = 0;

        for (size_t x = first; x < first + count; x++) {
            if (state[x] == At::running ||
                (state[x] == At::wait && fiber_at(x)->ready(fiber_at(x)->what))) {
                state[x] = At::running;
                go_to(fiber_at(x));
                moved++;
            }
            gathered += state[x] == At::gather;
            stopped += state[x] == At::barrier;
            waiting += state[x] == At::wait;
        }
        if (!moved && (!gathered || waiting))
            return ran;
        if (gathered && stopped)
            emulated_broken("some threads of a warp shuffle while others wait elsewhere");
        for (size_t x = first; x < first + count && !waiting; x++)
            if (state[x] == At::gather)
                state[x] = At::running;
    }
}

static void begin_block(size_t threads)
{
    race_quiet(true);
    emulated_block_begins();
    race_quiet(false);
    set_now = (set_now + 1) % SETS;
    while (sets[set_now].size() < threads)
        sets[set_now].emplace_back(fiber_new());
    for (size_t x = 0; x < threads; x += WARP)
        memset(words_now[x / WARP].round, 0, sizeof(words_now[x / WARP].round));
    for (size_t x = 0; x < threads; x++) {
        Fiber *f = fiber_at(x);

        state[x] = At::running;
        f->words = 0;
        f->copies.clear();
        f->group = 0;
        f->blocks = f->warps = 0;
        race_as(f->race, [] { race_takes(&launched_order); });
        f->lane.number = (int)x;
        f->lane.thread = dim3((unsigned)(x % emulation.block.x),
                              (unsigned)(x / emulation.block.x % emulation.block.y),
                              (unsigned)(x / emulation.block.x / emulation.block.y));
    }
}

static void run_block(size_t threads)
{
    begin_block(threads);
    for (;;) {
        size_t ended = 0, stopped = 0;
        bool   ran = false;

        for (size_t x = 0; x < threads; x += WARP)
            ran |= run_warp(x, std::min<size_t>(WARP, threads - x));
        for (size_t x = 0; x < threads; x++) {
            ended += state[x] == At::end;
            stopped += state[x] == At::barrier;
        }
        if (ended == threads)
            break;
        if (ended + stopped < threads) { // some wait for others, or for copies
            if (!ran && !emulated_deliver())
                emulated_broken("its threads wait for each other without end");
            continue;
        }
        for (size_t x = 0; x < threads; x++)
            if (state[x] == At::barrier)
                state[x] = At::running;
    }
    if (emulated_block_ends())
        emulated_broken(emulated_block_ends());
    for (size_t x = 0; x < threads; x++)
        race_as(fiber_at(x)->race, [] { race_gives(&ended_order); });
}

/* ---- pointers ---------------------------------------------------------------------------- */

static std::map<uintptr_t, size_t> taken; // what the device has: bytes by address
static std::mutex                  taken_lock;

static bool is_device(uintptr_t at)
{
    std::lock_guard<std::mutex> lock(taken_lock);
    auto                        next = taken.upper_bound(at);

    return next != taken.begin() && (--next, at - next->first <= next->second);
}

// Whether the process has something there: mincore fails for a page that is not mapped.
static bool is_mapped(uintptr_t at)
{
    static const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char          resident;

    return mincore((void *)(at / page * page), 1, &resident) == 0;
}

// A sanitizer, built in or loaded first (tools/mutants/run), keeps its shadow below SHADOW_END: two
// small numbers look like an address there.  What it gives the program lies above.
extern "C" void __asan_init(void) __attribute__((weak));
extern "C" void __tsan_init(void) __attribute__((weak));
#define SHADOW_END ((uintptr_t)1 << 45)

static uintptr_t least_address(void)
{
    return __asan_init || __tsan_init ? SHADOW_END : (uintptr_t)1 << 32;
}

void emulated_argument(const char *kernel, const void *data, size_t size)
{
    for (size_t x = 0; x + sizeof(uintptr_t) <= size; x += sizeof(uintptr_t)) {
        uintptr_t   word;
        const char *why;

        memcpy(&word, (const char *)data + x, sizeof(word));
        if (word < least_address() || word >> 47) // no process has anything there
            continue;
        why = is_device(word) ? emulated_foreign(word, device_stream())
                              : is_mapped(word) ? "the host's" : NULL;
        if (!why)
            continue;
        fprintf(stderr, "emulated: %s is given %p, which is %s (byte %zu of an argument of "
                "%zu)\n", kernel, (void *)word, why, x, size);
        abort();
    }
}

static std::map<const void *, size_t> allowed; // shared memory, of kernels that asked for more

static size_t shared_of_block(void)
{
    const char *text = getenv("EMULATED_SHARED");

    return text ? (size_t)atol(text) : SHARED_MOST;
}

int emulated_allow(const void *entry, size_t shared)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);

    if (shared > shared_of_block())
        return emulated_code(cudaErrorInvalidValue);
    allowed[entry] = shared;
    return cudaSuccess;
}

// What a launch of a kernel may have in all; 0: it may not have so much of unknown size.
static size_t shared_most(const void *entry, size_t shared)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);
    auto                        found = allowed.find(entry);

    if (found == allowed.end() || found->second <= SHARED_UNASKED)
        return SHARED_UNASKED;
    return shared <= found->second ? shared_of_block() : 0;
}

static bool possible(dim3 grid, dim3 block, size_t shared, size_t most)
{
    size_t threads = (size_t)block.x * block.y * block.z;

    return threads >= 1 && threads <= 1024 && block.z <= 64 && shared <= most && grid.x >= 1 &&
           grid.y >= 1 && grid.z >= 1 && grid.x <= INT32_MAX && grid.y < 65536 && grid.z < 65536;
}

/* ---- failures that a test asks for ------------------------------------------------------ */

enum Act { take, launch, finish, attach, acts };

static long done[acts]; // so many since the device was opened

static const char *asked(void)
{
    const char *text = getenv("EMULATED_FAIL");

    return text ? text : "";
}

static bool is_lost(void)
{
    return !strncmp(asked(), "lost:", 5) && done[launch] > atol(asked() + 5);
}

// Whether this one is to fail.
static bool fails(Act act)
{
    static const char *const names[] = { "take:", "launch:", "finish:", "attach:" };
    size_t                   length = strlen(names[act]);
    long                     number = done[act]++;

    return is_lost() ||
           (!strncmp(asked(), names[act], length) && atol(asked() + length) == number);
}

bool emulated_refuses_attachment(void) { return fails(attach); }

/* ---- shared memory ---------------------------------------------------------------------- */

static uint64_t blocks; // so many have begun

// New for each block where ThreadSanitizer looks, because it knows places and not whose they are.
static void *fill_shared(void *old, size_t bytes)
{
    void *data = old;

    race_quiet(true);
    if (SETS > 1 || !data) {
        free(data);
        data = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    }
    memset(data, 0xff, bytes);
    memset((char *)data + bytes, GUARD_BYTE, GUARD);
    race_quiet(false);
    return data;
}

static void check_guard(const void *data, size_t bytes)
{
    for (size_t at = bytes; data && at < bytes + GUARD; at++)
        if (((const unsigned char *)data)[at] != GUARD_BYTE)
            emulated_broken("wrote behind its shared memory");
}

// As ptxas and a launch judge it: what has a known size is at most 48 KiB, and all together no more
// than was asked for.
static void check_size(void)
{
    size_t sum = 0;

    for (const EmulatedShared *memory : fixed)
        sum += (memory->bytes + 15) / 16 * 16;
    if (sum > SHARED_UNASKED)
        emulated_broken("its shared memory of known size is more than 48 KiB");
    if (sum + shared_size > shared_allowed)
        emulated_broken("its shared memory, of known size and asked for, is more than a block has");
}

void *emulated_fixed(EmulatedShared *memory)
{
    if (memory->block != blocks) {
        memory->block = blocks;
        memory->data = fill_shared(memory->data, memory->bytes);
        fixed.push_back(memory);
        check_size();
    }
    return memory->data;
}

static void check_shared(void)
{
    check_guard(shared_now, shared_size);
    for (const EmulatedShared *memory : fixed)
        check_guard(memory->data, memory->bytes);
    fixed.clear();
}

/* ---- a launch --------------------------------------------------------------------------- */

// Whoever waits for a signal of the test's own would wait for ever: the device is not free again.
static void faulted(int, siginfo_t *info, void *)
{
    signal(SIGSEGV, SIG_DFL);
    emulated_faulted(info->si_addr); // another thread, meanwhile
    emulated_broken("it reads or writes where there is nothing, or a vector that is not aligned");
}

static void run_at(unsigned x, unsigned y, unsigned z)
{
    emulation.at = dim3(x, y, z);
    blocks++;
    shared_now = (unsigned char *)fill_shared(shared_now, shared_size);
    run_block(threads_now());
    check_shared();
}

static void run_kernel(const char *kernel, dim3 grid, dim3 block, size_t shared, size_t allowed,
                       int region, const std::function<void()> &body)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);
    int64_t                     began = emulated_clock();
    struct sigaction            fault = {}, before;

    fault.sa_sigaction = faulted;
    fault.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &fault, &before);
    kernel_now = kernel;
    shared_size = shared;
    shared_allowed = allowed;
    body_now = &body;
    emulation.grid = grid;
    emulation.block = block;
    emulated_host = race_self();
    race_gives(&launched_order);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++)
                run_at(x, y, z);
    race_takes(&ended_order);
    free(shared_now);
    shared_now = NULL;
    sigaction(SIGSEGV, &before, NULL);
    emulated_launched(kernel, grid, block, shared, region, began);
}

int emulate(const char *kernel, const void *entry, dim3 grid, dim3 block, size_t shared,
            const std::function<void()> &body)
{
    int    region = emulated_region();
    size_t allowed = shared_most(entry, shared);

    if (!possible(grid, block, shared, allowed))
        return emulated_code(cudaErrorInvalidConfiguration);
    if (fails(launch))
        return emulated_code(cudaErrorLaunchFailure);
    return emulated_code(emulated_begin([=] {
        run_kernel(kernel, grid, block, shared, allowed, region, body);
    }));
}

/* ---- the runtime --------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
    std::fill(done, done + acts, 0);
    *count = strcmp(asked(), "device") ? 1 : 0;
    return emulated_code(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *index) { *index = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { *version = 0; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { *version = 0; return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, void (*)(void))
{
    return emulated_code(strcmp(asked(), "image") ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (emulated_uncapturable())
        return emulated_code(cudaErrorStreamCaptureUnsupported);
    emulated_settle(stream);
    return emulated_code(fails(finish) ? cudaErrorLaunchFailure : cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *about, int)
{
    snprintf(about->name, sizeof(about->name), "emulated on the CPU");
    about->major = 9;
    about->minor = 0;
    about->multiProcessorCount = 1;
    about->totalGlobalMem = MEMORY;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int)
{
    if (which == cudaDevAttrConcurrentManagedAccess && !strcmp(asked(), "attribute"))
        return emulated_code(cudaErrorInvalidValue);
    *value = which == cudaDevAttrMaxSharedMemoryPerBlockOptin ? (int)shared_of_block()
             : which == cudaDevAttrComputeCapabilityMajor     ? strcmp(asked(), "hopper") ? 9 : 8
             : which == cudaDevAttrComputeCapabilityMinor     ? 0
                                                              : !emulated_exclusive();
    return cudaSuccess;
}

// What other programs do not hold.
static size_t others_leave(void)
{
    const char *given = strncmp(asked(), "memory:", 7) ? "0" : asked() + 7;

    return MEMORY - std::min(MEMORY, (size_t)atoll(given));
}

// It begins with NaN patterns.
static void *fill_new(size_t bytes)
{
    void *data = aligned_alloc(256, (bytes + 255) / 256 * 256);

    return data ? memset(data, 0xff, bytes) : NULL;
}

cudaError_t cudaMallocManaged(void **data, size_t bytes, unsigned flags)
{
    if (emulated_uncapturable())
        return emulated_code(cudaErrorStreamCaptureUnsupported);
    if (bytes > others_leave() - in_use) {
        fprintf(stderr, "emulated: more managed memory than there is: %zu bytes\n", bytes);
        abort();
    }
    if (is_lost())
        return emulated_code(cudaErrorLaunchFailure);
    if (!bytes)
        return emulated_code(cudaErrorInvalidValue);
    *data = fails(take)          ? NULL
            : emulated_exclusive() ? emulated_map(bytes, flags)
                                   : fill_new(bytes);
    if (!*data)
        return emulated_code(cudaErrorMemoryAllocation);
    in_use += bytes;
    emulated_allocated((int64_t)bytes);
    std::lock_guard<std::mutex> lock(taken_lock);
    taken[(uintptr_t)*data] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *data)
{
    if (!data)
        return cudaSuccess;
    if (emulated_uncapturable())
        return emulated_code(cudaErrorStreamCaptureUnsupported);
    emulated_settle(); // the device may still use it
    std::lock_guard<std::mutex> lock(taken_lock);
    size_t                      bytes = taken[(uintptr_t)data];

    in_use -= bytes;
    emulated_allocated(-(int64_t)bytes);
    taken.erase((uintptr_t)data);
    if (!emulated_unmap(data))
        free(data);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    if (is_lost())
        return emulated_code(cudaErrorLaunchFailure);
    *all = MEMORY;
    *left = others_leave(); // managed memory counts as free until the device has touched it
    return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void *data, size_t bytes, cudaMemLocation where, unsigned,
                                 cudaStream_t)
{
    int kind = where.type == cudaMemLocationTypeDevice ? DEVICE_COPY_TO_DEVICE
                                                       : DEVICE_COPY_TO_HOST;
    int region = emulated_region();

    if (emulated_uncapturable())
        return emulated_code(cudaErrorStreamCaptureUnsupported);
    if (!bytes || !is_device((uintptr_t)data) || !is_device((uintptr_t)data + bytes))
        return emulated_code(cudaErrorInvalidValue);
    return emulated_code(
        emulated_begin([=] { emulated_copied(kind, bytes, region, emulated_clock()); }));
}

cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t)
{
    int region = emulated_region();

    emulated_argument("a fill", &data, sizeof(data));
    return emulated_code(emulated_begin([=] {
        int64_t began = emulated_clock();

        memset(data, value, bytes);
        emulated_copied(DEVICE_COPY_SET, bytes, region, began);
    }));
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = last_error;

    last_error = cudaSuccess;
    return code;
}

struct Word {
    cudaError_t code;
    const char *name, *text;
};

static const Word *word_of(cudaError_t code)
{
    static const Word words[] = {
        { cudaSuccess, "cudaSuccess", "no error" },
        { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
        { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
        { cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
          "invalid configuration argument" },
        { cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
        { cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
          "no kernel image is available for execution on the device" },
        { cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure" },
        { cudaErrorIllegalState, "cudaErrorIllegalState",
          "the operation cannot be performed in the present state" },
        { cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
          "operation not permitted when stream is capturing" },
        { cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
          "operation failed due to a previous error during capture" },
    };

    for (const Word &word : words)
        if (word.code == code)
            return &word;
    return words;
}

const char *cudaGetErrorString(cudaError_t code) { return word_of(code)->text; }
const char *cudaGetErrorName(cudaError_t code) { return word_of(code)->name; }
