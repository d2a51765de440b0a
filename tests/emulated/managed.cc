// managed.cc -- managed memory of a GPU that does not share it (concurrentManagedAccess is 0): WSL,
// Windows, Jetson.
//
// EMULATED_EXCLUSIVE=1 in the environment: from a stream's first launch, fill, mark or attachment
// on until somebody waits for the stream, the host may touch no managed memory, whether a kernel
// uses it or not, but what is attached to the host, or to another stream that is idle.  The pages
// of all else are closed, so that whatever thread touches them ends the program.  What was begun
// happens at the wait, as with EMULATED_DEFER; while that is so pages are open, because the host
// is what the kernels run on.  A kernel that is given memory of the host or of another stream ends
// the program too; CUDA leaves it undefined.
#include "emulated.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <mutex>
#include <set>

struct Owner {
    unsigned     flags; // cudaMemAttach...
    cudaStream_t stream;
};

struct Pages {
    size_t bytes;     // of the mapping; the last page stays closed, apart from the next one's
    Owner  first;     // as it was taken
    Owner  given;     // as it is, once what was begun has happened
    Owner  now;
    bool   open;      // to the host
};

static std::mutex                 lock;
static std::map<uintptr_t, Pages> all;
static std::set<cudaStream_t>     active;
static struct sigaction           before;

bool emulated_exclusive(void)
{
    const char *text = getenv("EMULATED_EXCLUSIVE");

    return text && !strcmp(text, "1");
}

/* ---- what the host touches --------------------------------------------------------------- */

static bool is_open(const Pages &pages)
{
    switch (pages.now.flags) {
    case cudaMemAttachHost: return true;
    case cudaMemAttachSingle: return !active.count(pages.now.stream);
    default: return active.empty();
    }
}

// Under the lock, as all below.
static void close_and_open(void)
{
    for (auto &one : all) {
        bool open = is_open(one.second);

        if (open != one.second.open)
            mprotect((void *)one.first, one.second.bytes - (size_t)getpagesize(),
                     open ? PROT_READ | PROT_WRITE : PROT_NONE);
        one.second.open = open;
    }
}

static const Pages *pages_at(uintptr_t at)
{
    auto next = all.upper_bound(at);

    return next != all.begin() && (--next, at - next->first < next->second.bytes) ? &next->second
                                                                                : NULL;
}

// Ends the program where the host touched what was closed to it.  Takes no lock: that would wait
// for ever where the thread has it.
void emulated_faulted(const void *at)
{
    const Pages *pages = pages_at((uintptr_t)at);

    if (!pages || pages->open)
        return;
    fprintf(stderr, "emulated: the host touches managed memory at %p, %s, and nobody has waited "
            "for what was begun there\n", at,
            pages->now.flags == cudaMemAttachSingle ? "of a stream that works"
                                                    : "of all streams, and one works");
    abort();
}

static void on_fault(int, siginfo_t *info, void *)
{
    emulated_faulted(info->si_addr);
    sigaction(SIGSEGV, &before, NULL); // and again
}

// Tests put a handler of their own in its place each time.
static void watch(void)
{
    struct sigaction ours = {}, old;

    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO;
    if (!sigaction(SIGSEGV, &ours, &old) && old.sa_sigaction != on_fault)
        before = old;
}

/* ---- memory ------------------------------------------------------------------------------ */

void *emulated_map(size_t bytes, unsigned flags)
{
    size_t page = (size_t)getpagesize(), size = (bytes + 2 * page - 1) / page * page;
    void  *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::lock_guard<std::mutex> hold(lock);

    if (data == MAP_FAILED)
        return NULL;
    watch();
    memset(data, 0xff, bytes); // NaN patterns
    mprotect((char *)data + size - page, page, PROT_NONE);
    all[(uintptr_t)data] = { size, { flags, NULL }, { flags, NULL }, { flags, NULL }, true };
    close_and_open();
    return data;
}

bool emulated_unmap(void *data)
{
    std::lock_guard<std::mutex> hold(lock);
    auto                        found = all.find((uintptr_t)data);

    if (found == all.end())
        return false;
    munmap(data, found->second.bytes);
    all.erase(found);
    return true;
}

const char *emulated_foreign(uintptr_t at, cudaStream_t stream)
{
    std::lock_guard<std::mutex> hold(lock);
    const Pages                *pages = pages_at(at);

    if (!pages || pages->given.flags == cudaMemAttachGlobal)
        return NULL;
    if (pages->given.flags == cudaMemAttachHost)
        return "attached to the host";
    return pages->given.stream == stream ? NULL : "attached to another stream";
}

/* ---- streams ----------------------------------------------------------------------------- */

void emulated_works(cudaStream_t stream, bool works)
{
    std::lock_guard<std::mutex> hold(lock);

    if (works)
        active.insert(stream);
    else
        active.erase(stream);
    close_and_open();
}

void emulated_ended(cudaStream_t stream)
{
    std::lock_guard<std::mutex> hold(lock);

    active.erase(stream);
    for (auto &one : all)
        if (one.second.given.flags == cudaMemAttachSingle && one.second.given.stream == stream)
            one.second.given = one.second.now = one.second.first;
    close_and_open();
}

static void take_effect(uintptr_t data, Owner owner)
{
    std::lock_guard<std::mutex> hold(lock);
    auto                        found = all.find(data);

    if (found != all.end())
        found->second.now = owner;
    close_and_open();
}

// All of it or nothing; a single stream is no stream of all.
static bool is_attachable(uintptr_t data, size_t bytes, unsigned flags, cudaStream_t stream)
{
    auto found = all.find(data);

    return found != all.end() && !bytes &&
           (flags == cudaMemAttachHost || flags == cudaMemAttachGlobal ||
            (flags == cudaMemAttachSingle && stream));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *data, size_t bytes,
                                     unsigned flags)
{
    Owner owner = { flags, stream };

    if (emulated_refuses_attachment())
        return emulated_code(cudaErrorInvalidValue);
    {
        std::lock_guard<std::mutex> hold(lock);

        if (!is_attachable((uintptr_t)data, bytes, flags, stream))
            return emulated_code(cudaErrorInvalidValue);
        all[(uintptr_t)data].given = owner;
    }
    return emulated_code(emulated_begin([=] { take_effect((uintptr_t)data, owner); }));
}
