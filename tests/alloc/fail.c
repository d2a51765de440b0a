/* fail.c -- an allocation that fails: a library for LD_PRELOAD.
 *
 * The program has a malloc of its own (src/profile/memory.c), which calls __libc_malloc and its
 * kin.  These are interposed here, and mmap, from which arenas take their chunks.  Allocations are
 * counted from main on, in the first process only:
 *
 *   ALLOC_FAIL=K      allocation K fails, once; ALLOC_FAIL=K+: K and all that follow it fail
 *   ALLOC_REPORT=FD   at exit: "TAKEN HELD", allocations and blocks that were not freed
 *   ALLOC_TRACE=FD    the calls that led to the failure, the first time
 *   ALLOC_ONLY=mmap   those of arenas alone are counted, and fail
 *   ALLOC_ONLY=grow   blocks alone that grow to 4 KiB or more, as long texts do
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* OpenBLAS tries for it again and again; src/attn/cpu/blas.c sees to it that it gets it. */
#define BLAS_BUFFER ((size_t)128 << 20)

#define LARGE ((size_t)4096)

typedef enum { ANY, MAPPED, GROWN } Kind;

static atomic_llong taken, held;
static Kind         only; /* these are counted; ANY: all */
static long long    fails; /* 0: none */
static bool         after, counting;
static int          report_fd = -1, trace_fd = -1;
static atomic_bool  traced;
static __thread bool tracing;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_memalign)(size_t, size_t);
static void (*real_free)(void *);

/* What dlsym itself asks for, before anything is known. */
static char   early[8192];
static size_t early_used;

static bool is_early(const void *block)
{
    return (const char *)block >= early && (const char *)block < early + sizeof(early);
}

static void *early_take(size_t size)
{
    size_t at = early_used;

    early_used += (size + 15) / 16 * 16;
    return early_used <= sizeof(early) ? early + at : NULL;
}

static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(function, &found, sizeof(found));
}

static void find_all(void)
{
    static bool begun;

    if (begun)
        return;
    begun = true;
    find(&real_calloc, "__libc_calloc");
    find(&real_malloc, "__libc_malloc");
    find(&real_realloc, "__libc_realloc");
    find(&real_memalign, "__libc_memalign");
    find(&real_free, "__libc_free");
}

static void trace(void)
{
    void *calls[40];

    if (trace_fd >= 0 && !atomic_exchange(&traced, true)) {
        tracing = true; /* of this thread: the others go on and are counted */
        backtrace_symbols_fd(calls, backtrace(calls, 40), trace_fd);
        tracing = false;
    }
}

static bool fails_now(Kind kind)
{
    long long number;

    if (!counting || tracing || (only != ANY && kind != only))
        return false;
    number = atomic_fetch_add(&taken, 1) + 1;
    if (!fails || (after ? number < fails : number != fails))
        return false;
    trace();
    errno = ENOMEM;
    return true;
}

static void *kept(void *block)
{
    if (block && counting && !tracing)
        atomic_fetch_add(&held, 1);
    return block;
}

void *__libc_malloc(size_t size)
{
    find_all();
    if (!real_malloc)
        return early_take(size);
    return size < BLAS_BUFFER && fails_now(ANY) ? NULL : kept(real_malloc(size));
}

void *__libc_calloc(size_t count, size_t size)
{
    find_all();
    if (!real_calloc)
        return early_take(count * size);
    return fails_now(ANY) ? NULL : kept(real_calloc(count, size));
}

void *__libc_memalign(size_t alignment, size_t size)
{
    find_all();
    return fails_now(ANY) ? NULL : kept(real_memalign(alignment, size));
}

void *__libc_realloc(void *block, size_t size)
{
    void *moved;

    find_all();
    if (is_early(block)) {
        moved = real_malloc(size);
        return moved ? memcpy(moved, block, size) : NULL;
    }
    if (size && fails_now(block && size >= LARGE ? GROWN : ANY))
        return NULL;
    moved = real_realloc(block, size);
    if (!block && moved)
        kept(moved);
    else if (block && !size && counting && !tracing)
        atomic_fetch_sub(&held, 1);
    return moved;
}

void __libc_free(void *block)
{
    if (!block || is_early(block))
        return;
    if (counting && !tracing)
        atomic_fetch_sub(&held, 1);
    real_free(block);
}

void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
    bool counted = flags & MAP_ANONYMOUS && size < BLAS_BUFFER;

    if (counted && fails_now(MAPPED))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, access, flags, fd, offset);
}

/* ---- from main to exit ------------------------------------------------------- */

static int (*real_main)(int, char **, char **);

static int number_of(const char *name, int absent)
{
    const char *text = getenv(name);

    return text ? atoi(text) : absent;
}

static int counted_main(int argc, char **argv, char **environment)
{
    const char *text = getenv("ALLOC_FAIL"), *kind = getenv("ALLOC_ONLY");
    void       *call[1];

    fails = text ? atoll(text) : 0;
    after = text && strchr(text, '+');
    only = !kind ? ANY : !strcmp(kind, "grow") ? GROWN : MAPPED;
    report_fd = number_of("ALLOC_REPORT", -1);
    trace_fd = number_of("ALLOC_TRACE", -1);
    unsetenv("LD_PRELOAD"); /* its children are other processes */
    backtrace(call, 1);
    counting = true;
    return real_main(argc, argv, environment);
}

__attribute__((destructor)) static void report(void)
{
    counting = false;
    if (report_fd >= 0)
        dprintf(report_fd, "%lld %lld\n", (long long)taken, (long long)held);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                      int (*begin)(int, char **, char **), void (*end)(void),
                      void (*linker_end)(void), void *stack)
{
    int (*next)(int (*)(int, char **, char **), int, char **, int (*)(int, char **, char **),
                void (*)(void), void (*)(void), void *);

    find(&next, "__libc_start_main");
    real_main = main;
    return next(counted_main, argc, argv, begin, end, linker_end, stack);
}
