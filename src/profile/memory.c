/* memory.c -- the interposed malloc family, so that library workspaces count; resident memory, and
 * the trace of a run's memory (memory.h).
 *
 * The program defines malloc and its kin itself; the dynamic linker then sends
 * every caller in the process here, OpenBLAS and libc included.  Each call is
 * passed on to glibc and accounted by malloc_usable_size: what the block really
 * occupies, the same number at allocation and at release.
 *
 * The three counters and the one listener are mutable state outside of a session, as are the note
 * of a shortage (core/shortage.h) and OpenBLAS's list: malloc has no context argument.  They are
 * relaxed atomics, because no other memory is published through them.
 *
 * Not compiled under sanitizers, which have a malloc of their own, where the C
 * library is not glibc, and in a module of another program; heap_hooks_active() then says why.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attn/cuda/host/library.h"
#include "core/shortage.h"
#include "core/tensor.h"
#include "profile/measure.h"
#include "profile/memory.h"

#if defined(ATTNSCOPE_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_WHY "built with a sanitizer, which brings its own malloc"
#elif defined(ATTNSCOPE_MODULE)
#define HEAP_WHY "a module of another program, which has its own malloc"
#elif !defined(__GLIBC__)
#define HEAP_WHY "the C library is not glibc"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
    __has_feature(memory_sanitizer)
#define HEAP_WHY "built with a sanitizer, which brings its own malloc"
#endif
#endif

/* ---- the listener ----------------------------------------------------------- */

static atomic_flag turn = ATOMIC_FLAG_INIT;
static void (*_Atomic listener)(void *context, int64_t bytes, int64_t now);
static void *listener_context; /* guarded by turn */

static void wait_for_turn(void)
{
    while (atomic_flag_test_and_set_explicit(&turn, memory_order_acquire))
        continue;
}

static void end_turn(void)
{
    atomic_flag_clear_explicit(&turn, memory_order_release);
}

/* Calls `heard` for every change with the bytes taken (negative: freed) and the new level,
 * from any thread, one call at a time.  `heard` must not allocate.  No call is running after
 * heap_listen(NULL, NULL) returns. */
static void heap_listen(void (*heard)(void *context, int64_t bytes, int64_t now), void *context)
{
    wait_for_turn();
    listener_context = context;
    atomic_store(&listener, heard);
    end_turn();
}

/* Calls what(context, data) in the same turn as the listener, for data they share. */
static void heap_in_turn(void (*what)(void *context, void *data), void *context, void *data)
{
    wait_for_turn();
    what(context, data);
    end_turn();
}

#ifdef HEAP_WHY

bool heap_hooks_active(const char **why)
{
    if (why)
        *why = HEAP_WHY;
    return false;
}

int64_t heap_current(void)
{
    return 0;
}

int64_t heap_peak(void)
{
    return 0;
}

void heap_peak_reset(void)
{
}

int64_t heap_allocations(void)
{
    return 0;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void  __libc_free(void *block);

static atomic_llong current, peak, calls;

/* There is a listener only while a run's memory is traced. */
static void notify_listener(long long bytes, long long now)
{
    void (*heard)(void *context, int64_t bytes, int64_t now);

    if (!atomic_load_explicit(&listener, memory_order_relaxed))
        return;
    wait_for_turn();
    heard = atomic_load(&listener);
    if (heard)
        heard(listener_context, bytes, now);
    end_turn();
}

static void count_bytes(long long bytes)
{
    long long now = atomic_fetch_add_explicit(&current, bytes, memory_order_relaxed) + bytes;
    long long top = atomic_load_explicit(&peak, memory_order_relaxed);

    while (now > top && !atomic_compare_exchange_weak_explicit(
                            &peak, &top, now, memory_order_relaxed, memory_order_relaxed))
        continue;
    notify_listener(bytes, now);
}

static void *taken(void *block, size_t asked)
{
    if (!block) {
        shortage_note(asked);
        return NULL;
    }
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    count_bytes((long long)malloc_usable_size(block));
    return block;
}

static void given_back(size_t bytes)
{
    long long taken = (long long)bytes;

    notify_listener(-taken,
                    atomic_fetch_sub_explicit(&current, taken, memory_order_relaxed) - taken);
}

/* ---- the family ------------------------------------------------------------- */

void *malloc(size_t size)
{
    return taken(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;
    return taken(__libc_calloc(count, size), bytes);
}

void free(void *block)
{
    if (!block)
        return;
    given_back(malloc_usable_size(block));
    __libc_free(block);
}

/* The old block is gone when this succeeds, and also when size is 0. */
void *realloc(void *block, size_t size)
{
    size_t before = block ? malloc_usable_size(block) : 0;
    void  *moved = __libc_realloc(block, size);

    if (!moved) {
        if (block && size == 0)
            given_back(before);
        else
            shortage_note(size);
        return NULL;
    }
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    count_bytes((long long)malloc_usable_size(moved) - (long long)before);
    return moved;
}

static bool power_of_two(size_t x)
{
    return x && !(x & (x - 1));
}

void *memalign(size_t alignment, size_t size)
{
    return taken(__libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (!power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return taken(__libc_memalign(alignment, size), size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    int   saved = errno;
    void *block;

    if (!power_of_two(alignment) || alignment % sizeof(void *))
        return EINVAL;
    block = taken(__libc_memalign(alignment, size), size);
    errno = saved;
    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

void *valloc(size_t size)
{
    return taken(__libc_memalign((size_t)sysconf(_SC_PAGESIZE), size), size);
}

void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (size > SIZE_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return taken(__libc_memalign(page, (size + page - 1) / page * page), size);
}

/* ---- reading ---------------------------------------------------------------- */

/* Libraries find this malloc, unless the program was linked without exporting it. */
bool heap_hooks_active(const char **why)
{
    void *(*ours)(size_t) = malloc;
    void *found = dlsym(RTLD_DEFAULT, "malloc");

    if (memcmp(&found, &ours, sizeof(found)) == 0)
        return true;
    if (why)
        *why = "libraries of this program do not use its malloc (linked static or not exported)";
    return false;
}

int64_t heap_current(void)
{
    return atomic_load_explicit(&current, memory_order_relaxed);
}

int64_t heap_peak(void)
{
    return atomic_load_explicit(&peak, memory_order_relaxed);
}

void heap_peak_reset(void)
{
    atomic_store_explicit(&peak, atomic_load_explicit(&current, memory_order_relaxed),
                          memory_order_relaxed);
}

int64_t heap_allocations(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

#endif

/* ---- resident memory: proc(5), clear_refs and status ---------------------------------------- */

bool rss_reset(void)
{
    int  fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool ok;

    if (fd < 0)
        return false;
    ok = write(fd, "5", 1) == 1;
    close(fd);
    return ok;
}

/* The line of the status that begins so, in bytes; -1: it is not there. */
static int64_t status_bytes(const char *begins)
{
    size_t    length = strlen(begins);
    FILE     *file = fopen("/proc/self/status", "re");
    char      line[256];
    long long kib = -1;

    if (!file)
        return -1;
    while (kib < 0 && fgets(line, sizeof(line), file))
        if (strncmp(line, begins, length) != 0 || sscanf(line + length, "%lld kB", &kib) != 1)
            kib = -1;
    fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

int64_t rss_peak(void)
{
    return status_bytes("VmHWM:");
}

int64_t rss_anonymous(void)
{
    return status_bytes("RssAnon:");
}

/* ---- the time axis of a trace ----------------------------------------------------- */

#define FIRST_STEP 1e-6 /* seconds */

static void merge_neighbours(MemoryTimeline *line)
{
    for (int i = 0; i < MEMORY_STEPS / 2; i++) {
        line->arena[i] = max_i64(line->arena[2 * i], line->arena[2 * i + 1]);
        line->heap[i] = max_i64(line->heap[2 * i], line->heap[2 * i + 1]);
        line->device[i] = max_i64(line->device[2 * i], line->device[2 * i + 1]);
        line->stage[i] = line->stage[2 * i + 1];
    }
    line->count = (line->count + 1) / 2;
    line->step *= 2;
}

static void fill(const MemoryTrace *t, MemoryTimeline *line)
{
    line->arena[line->count] = t->arena;
    line->heap[line->count] = t->heap;
    line->device[line->count] = t->device;
    line->stage[line->count++] = t->stage;
}

/* Fills the steps up to now with the levels as they were. */
static void advance(MemoryTrace *t, double now)
{
    MemoryTimeline *line = &t->line;
    double          passed = now - t->began;

    while (passed >= line->step * MEMORY_STEPS) {
        while (line->count < MEMORY_STEPS)
            fill(t, line);
        merge_neighbours(line);
    }
    for (int at = (int)(passed / line->step); line->count <= at;)
        fill(t, line);
}

static void levels(MemoryTrace *t, int64_t arena, int64_t heap)
{
    int last;

    advance(t, clock_wall());
    last = t->line.count - 1;
    t->arena = arena;
    t->heap = heap;
    t->device = t->gpu ? device_in_use(t->gpu) - t->device_base : 0;
    t->line.device[last] = max_i64(t->line.device[last], t->device);
    t->line.arena[last] = max_i64(t->line.arena[last], arena);
    t->line.heap[last] = max_i64(t->line.heap[last], heap);
    t->line.stage[last] = t->stage;
}

/* ---- the largest ---------------------------------------------------------------- */

static void remember(MemoryTrace *t, int64_t bytes, bool heap)
{
    MemoryTimeline *line = &t->line;
    int             at = line->largest_count;

    if (at == MEMORY_LARGEST && bytes <= line->largest[at - 1].bytes)
        return;
    if (at < MEMORY_LARGEST)
        line->largest_count++;
    else
        at--;
    for (; at > 0 && line->largest[at - 1].bytes < bytes; at--)
        line->largest[at] = line->largest[at - 1];
    line->largest[at] = (LargeAllocation){ .bytes = bytes, .stage = t->stage, .heap = heap,
                                          .at = clock_wall() - t->began };
}

/* ---- listeners -------------------------------------------------------------------- */

/* The heap reports from any thread, one at a time; the arena only from the run's own thread,
 * which takes the same turn. */
static void hear_heap(void *context, int64_t bytes, int64_t now)
{
    MemoryTrace *t = context;

    levels(t, t->arena, now - t->base);
    if (bytes > 0)
        remember(t, bytes, true);
}

typedef struct ArenaNews {
    int64_t bytes, used;
} ArenaNews;

static void take_arena_news(void *context, void *news)
{
    MemoryTrace     *t = context;
    const ArenaNews *a = news;

    levels(t, a->used, t->heap);
    if (a->bytes > 0) {
        remember(t, a->bytes, false);
        t->arena_calls++;
    }
}

static void hear_arena(void *context, int64_t bytes, int64_t used)
{
    ArenaNews news = { .bytes = bytes, .used = used };

    heap_in_turn(take_arena_news, context, &news);
}

static void take_stage(void *context, void *stage)
{
    MemoryTrace *t = context;

    levels(t, t->arena, t->heap);
    t->stage = *(int *)stage;
}

void memory_trace_stage(MemoryTrace *t, int stage)
{
    heap_in_turn(take_stage, t, &stage);
}

void memory_trace_start(MemoryTrace *t, Arena *arena, const Device *device)
{
    memset(t, 0, sizeof(*t));
    t->line.step = FIRST_STEP;
    t->stage = -1;
    t->base = heap_current();
    t->gpu = device;
    t->device_base = device ? device_in_use(device) : 0;
    t->line.on_device = device != NULL;
    t->arena = arena_used(arena);
    t->began = clock_wall();
    t->watched = arena;
    levels(t, t->arena, 0);
    arena_watch(arena, hear_arena, t);
    heap_listen(hear_heap, t);
}

static void set_aside(MemoryTimeline *line, int64_t bytes)
{
    int kept = 0;

    for (int i = 0; i < line->count; i++)
        line->heap[i] = max_i64(0, line->heap[i] - bytes);
    for (int i = 0; i < line->largest_count; i++)
        if (line->largest[i].stage >= 0 || !line->largest[i].heap ||
            line->largest[i].bytes != bytes)
            line->largest[kept++] = line->largest[i];
    line->largest_count = kept;
}

void memory_trace_stop(MemoryTrace *t, int64_t aside)
{
    heap_listen(NULL, NULL);
    arena_watch(t->watched, NULL, NULL);
    levels(t, t->arena, t->heap);
    set_aside(&t->line, aside);
    t->watched = NULL;
}
