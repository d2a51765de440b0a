/* arena.c -- see arena.h. */
#include "core/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 64
#define SMALL_CHUNK (256 * 1024)
#define HUGE_PAGE (2 * 1024 * 1024)
#define POISON 0xdb

#ifdef ATTNSCOPE_DEBUG
#define GUARD 64
#else
#define GUARD 0
#endif
#define GUARD_BYTE 0xfd

/* The address checker reports each access to a band, and to what was released. */
#if defined(ATTNSCOPE_DEBUG) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKED
#endif
#elif defined(ATTNSCOPE_DEBUG) && defined(__SANITIZE_ADDRESS__)
#define CHECKED
#endif
#ifdef CHECKED
#include <sanitizer/asan_interface.h>
#define UNCHECKED __attribute__((no_sanitize("address")))
#else
#define UNCHECKED
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

typedef struct Chunk Chunk;
struct Chunk {
    Chunk   *next;
    int64_t  size; /* usable bytes */
    int64_t  offset;
    int64_t  last; /* debug: offset of the newest allocation's header, -1 */
    uint8_t *data;
};

/* Debug only: stands before each allocation so that bands can be found. */
typedef struct Header {
    int64_t previous; /* header offset of the allocation before, -1: none */
    int64_t size;
} Header;

/* Without a source all is in the first lane. */
typedef struct Lane {
    Chunk *first, *current;
} Lane;

struct Arena {
    Lane    lanes[ARENA_LANES];
    int64_t used, peak, reserved, limit, refused;
    int64_t kept; /* released and not free: the source was busy */
    int64_t fail_in; /* allocations left before a forced failure; -1: off */
    void (*heard)(void *context, int64_t bytes, int64_t used); /* NULL: nobody listens */
    void *context;
    void (*fresh)(void *context, void *data, int64_t bytes); /* NULL: nobody asks */
    void *fresh_context;
    const ArenaSource *source; /* NULL: the system */
    bool attached; /* to the source's device */
};

static int64_t round_up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

Arena *arena_new(void)
{
    return arena_new_from(NULL);
}

Arena *arena_new_from(const ArenaSource *source)
{
    Arena *arena = calloc(1, sizeof(*arena));

    if (!arena)
        return NULL;
    arena->fail_in = -1;
    arena->source = source;
    return arena;
}

static void chunk_free(const Arena *arena, Chunk *chunk)
{
    ASAN_UNPOISON_MEMORY_REGION(chunk->data, (size_t)chunk->size);
    if (arena->source)
        arena->source->give(arena->source->context, chunk->data, chunk->size);
    else
        munmap(chunk->data, (size_t)chunk->size);
    free(chunk);
}

void arena_free(Arena *arena)
{
    Chunk *next;

    if (!arena)
        return;
    for (int x = 0; x < ARENA_LANES; x++)
        for (Chunk *chunk = arena->lanes[x].first; chunk; chunk = next) {
            next = chunk->next;
            chunk_free(arena, chunk);
        }
    free(arena);
}

static bool chunk_attach(const Arena *arena, const Chunk *chunk, bool device)
{
    const ArenaSource *source = arena->source;

    return !source || !source->attach || source->attach(source->context, chunk->data, device);
}

static bool chunk_take(const Arena *arena, Chunk *chunk)
{
    const ArenaSource *source = arena->source;

    chunk->data = source->take(source->context, chunk->size);
    if (!chunk->data || !arena->attached || chunk_attach(arena, chunk, true))
        return chunk->data != NULL;
    source->give(source->context, chunk->data, chunk->size);
    return false;
}

static bool chunk_map(const Arena *arena, Chunk *chunk, int64_t size)
{
    void *data;

    size += !size; /* no bytes at all are asked for first: the chunk is there all the same */
    chunk->size = round_up(size, size >= HUGE_PAGE ? HUGE_PAGE : SMALL_CHUNK);
    if (arena->source)
        return chunk_take(arena, chunk);
    data = mmap(NULL, (size_t)chunk->size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return false;
    chunk->data = data;
    if (size < HUGE_PAGE)
        return true;
    madvise(data, (size_t)chunk->size, MADV_HUGEPAGE);
    if (arena->fresh)
        arena->fresh(arena->fresh_context, data, chunk->size);
    return true;
}

static Chunk *chunk_new(const Arena *arena, int64_t size)
{
    Chunk *chunk = calloc(1, sizeof(*chunk));

    if (!chunk)
        return NULL;
    chunk->last = -1;
    if (chunk_map(arena, chunk, size)) {
        ASAN_POISON_MEMORY_REGION(chunk->data, (size_t)chunk->size);
        return chunk;
    }
    free(chunk);
    return NULL;
}

/* The first chunk after the current one that can hold `size`, else a new one
 * put right behind the current one. */
static Chunk *chunk_for(Arena *arena, Lane *lane, int64_t size)
{
    Chunk *chunk = lane->current ? lane->current->next : lane->first;

    for (; chunk; chunk = chunk->next) {
        chunk->offset = 0;
        chunk->last = -1;
        if (chunk->size >= size)
            return chunk;
    }
    chunk = chunk_new(arena, size);
    if (!chunk)
        return NULL;
    arena->reserved += chunk->size;
    if (lane->current) {
        chunk->next = lane->current->next;
        lane->current->next = chunk;
    } else {
        chunk->next = lane->first;
        lane->first = chunk;
    }
    return chunk;
}

static bool refuse_bytes(Arena *arena, int64_t bytes)
{
    if (bytes > arena->refused)
        arena->refused = bytes;
    return false;
}

static bool admitted(Arena *arena, int64_t count, int64_t size, int64_t *bytes)
{
    if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, bytes))
        return refuse_bytes(arena, INT64_MAX);
    if (*bytes > INT64_MAX / 2)
        return refuse_bytes(arena, *bytes);
    if (arena->fail_in >= 0 && arena->fail_in-- == 0)
        return refuse_bytes(arena, *bytes);
    if (arena->limit > 0 && *bytes > arena->limit - arena->used)
        return refuse_bytes(arena, *bytes);
    return true;
}

static void guard_set(Chunk *chunk, int64_t at, int64_t bytes)
{
#ifdef ATTNSCOPE_DEBUG
    Header header = { .previous = chunk->last, .size = bytes };

    ASAN_UNPOISON_MEMORY_REGION(chunk->data + at - GUARD, (size_t)(chunk->offset - at + GUARD));
    memcpy(chunk->data + at - GUARD, &header, sizeof(header));
    memset(chunk->data + at + bytes, GUARD_BYTE, GUARD);
    ASAN_POISON_MEMORY_REGION(chunk->data + at - GUARD, GUARD);
    ASAN_POISON_MEMORY_REGION(chunk->data + at + bytes, (size_t)(chunk->offset - at - bytes));
    chunk->last = at - GUARD;
#else
    (void)chunk, (void)at, (void)bytes;
#endif
}

static void *alloc_in(Arena *arena, Lane *lane, int64_t count, int64_t size)
{
    int64_t bytes, need, at;
    Chunk  *chunk = lane->current;

    if (!admitted(arena, count, size, &bytes))
        return NULL;
    need = round_up(bytes + 2 * GUARD, ALIGNMENT);
    if (!chunk || chunk->size - chunk->offset < need) {
        chunk = chunk_for(arena, lane, need);
        if (!chunk) {
            refuse_bytes(arena, bytes);
            return NULL;
        }
        lane->current = chunk;
    }
    at = chunk->offset + GUARD;
    chunk->offset += need;
    arena->used += round_up(bytes, ALIGNMENT);
    if (arena->used > arena->peak)
        arena->peak = arena->used;
    guard_set(chunk, at, bytes);
    if (arena->heard)
        arena->heard(arena->context, bytes, arena->used);
    return chunk->data + at;
}

void *arena_alloc(Arena *arena, int64_t count, int64_t size)
{
    return alloc_in(arena, &arena->lanes[arena->source ? ARENA_REST : ARENA_DATA], count, size);
}

void *arena_alloc_data(Arena *arena, int64_t count, int64_t size)
{
    return alloc_in(arena, &arena->lanes[ARENA_DATA], count, size);
}

void *arena_zalloc(Arena *arena, int64_t count, int64_t size)
{
    void *data = arena_alloc(arena, count, size);

    return data ? memset(data, 0, (size_t)(count * size)) : NULL;
}

char *arena_strdup(Arena *arena, const char *text)
{
    int64_t size = (int64_t)strlen(text) + 1;
    char   *copy = arena_alloc(arena, size, 1);

    return copy ? memcpy(copy, text, (size_t)size) : NULL;
}

char *arena_printf(Arena *arena, const char *fmt, ...)
{
    va_list args;
    int     length;
    char   *text;

    va_start(args, fmt);
    length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = length < 0 ? NULL : arena_alloc(arena, length + 1, 1);
    if (!text)
        return NULL;
    va_start(args, fmt);
    vsnprintf(text, (size_t)length + 1, fmt, args);
    va_end(args);
    return text;
}

ArenaMark arena_mark(Arena *arena)
{
    ArenaMark mark = { .used = arena->used, .kept = arena->kept };

    for (int x = 0; x < ARENA_LANES; x++) {
        const Chunk *current = arena->lanes[x].current;

        mark.chunk[x] = arena->lanes[x].current;
        mark.offset[x] = current ? current->offset : 0;
    }
    return mark;
}

#ifdef ATTNSCOPE_DEBUG
/* Forgets the headers past `offset` and poisons what they stood for. */
static void chunk_rewind(Chunk *chunk, int64_t offset)
{
    Header header;

    if (chunk->offset > offset)
        ASAN_UNPOISON_MEMORY_REGION(chunk->data + offset, (size_t)(chunk->offset - offset));
    while (chunk->last >= offset) {
        memcpy(&header, chunk->data + chunk->last, sizeof(header));
        chunk->last = header.previous;
    }
    if (chunk->offset > offset) {
#ifndef CHECKED /* the checker reports an access before its value matters */
        memset(chunk->data + offset, POISON, (size_t)(chunk->offset - offset));
#endif
        ASAN_POISON_MEMORY_REGION(chunk->data + offset, (size_t)(chunk->offset - offset));
    }
    chunk->offset = offset;
}
#else
static void chunk_rewind(Chunk *chunk, int64_t offset)
{
    chunk->offset = offset;
}
#endif

static void lane_rewind(Lane *lane, Chunk *chunk, int64_t offset)
{
    if (chunk)
        chunk_rewind(chunk, offset);
    for (Chunk *after = chunk ? chunk->next : lane->first; after; after = after->next)
        chunk_rewind(after, 0);
    lane->current = chunk;
}

static void rewind_to(Arena *arena, ArenaMark mark)
{
    for (int x = 0; x < ARENA_LANES; x++)
        lane_rewind(&arena->lanes[x], mark.chunk[x], mark.offset[x]);
    arena->kept = mark.kept;
}

static bool is_busy(const Arena *arena)
{
    return arena->source && arena->source->busy && arena->source->busy(arena->source->context);
}

/* Whether what stands after the mark has to stay for now. */
static bool keeps(Arena *arena, ArenaMark mark)
{
    int64_t kept = arena->kept + arena->used - mark.used;

    if (!is_busy(arena))
        return false;
    if (kept <= ARENA_KEPT)
        arena->kept = kept;
    else
        arena->source->settle(arena->source->context);
    return kept <= ARENA_KEPT;
}

void arena_release(Arena *arena, ArenaMark mark)
{
    if (!keeps(arena, mark))
        rewind_to(arena, mark);
    arena->used = mark.used;
    if (arena->heard)
        arena->heard(arena->context, 0, arena->used);
}

void arena_reset(Arena *arena)
{
    if (is_busy(arena))
        arena->source->settle(arena->source->context);
    arena_release(arena, (ArenaMark){ 0 });
}

bool arena_attach(Arena *arena, bool device)
{
    bool ok = true;

    for (int x = 0; x < ARENA_LANES && arena->attached != device; x++)
        for (Chunk *chunk = arena->lanes[x].first; chunk; chunk = chunk->next)
            ok = chunk_attach(arena, chunk, device) && ok;
    arena->attached = device;
    return ok;
}

bool arena_holds(const Arena *arena, const void *data)
{
    const uint8_t *at = data;

    for (int x = 0; x < ARENA_LANES; x++)
        for (const Chunk *chunk = arena->lanes[x].first; chunk; chunk = chunk->next)
            if (at >= chunk->data && at < chunk->data + chunk->size)
                return true;
    return false;
}

int64_t arena_used(const Arena *arena)
{
    return arena->used;
}

int64_t arena_peak(const Arena *arena)
{
    return arena->peak;
}

void arena_peak_reset(Arena *arena)
{
    arena->peak = arena->used;
}

int64_t arena_reserved(const Arena *arena)
{
    return arena->reserved;
}

void arena_limit(Arena *arena, int64_t bytes)
{
    arena->limit = bytes;
}

const char *arena_broken(const Arena *arena)
{
    return arena->source && arena->source->broken ? arena->source->broken(arena->source->context)
                                                  : NULL;
}

int64_t arena_left(const Arena *arena)
{
    return arena->source && arena->source->left ? arena->source->left(arena->source->context) : -1;
}

int64_t arena_largest_refused(const Arena *arena)
{
    return arena->refused;
}

void arena_watch(Arena *arena, void (*heard)(void *context, int64_t bytes, int64_t used),
                 void *context)
{
    arena->heard = heard;
    arena->context = context;
}

void arena_on_fresh(Arena *arena, void (*fresh)(void *context, void *data, int64_t bytes),
                    void *context)
{
    arena->fresh = fresh;
    arena->fresh_context = context;
}

void arena_fail_at(Arena *arena, int64_t k)
{
    arena->fail_in = k;
}

#ifdef ATTNSCOPE_DEBUG
UNCHECKED static bool chunk_check(const Chunk *chunk)
{
    Header header;

    for (int64_t at = chunk->last; at >= 0; at = header.previous) {
        memcpy(&header, chunk->data + at, sizeof(header));
        for (int64_t i = 0; i < GUARD; i++)
            if (chunk->data[at + GUARD + header.size + i] != GUARD_BYTE)
                return false;
    }
    return true;
}
#endif

bool arena_check(const Arena *arena)
{
#ifdef ATTNSCOPE_DEBUG
    for (int x = 0; x < ARENA_LANES; x++)
        for (const Chunk *chunk = arena->lanes[x].first; chunk; chunk = chunk->next)
            if (!chunk_check(chunk))
                return false;
#else
    (void)arena;
#endif
    return true;
}
