/* core/arena.h -- memory that ends together.
 *
 * Everything a Run allocates comes from one arena and is freed at once.  The
 * arena's peak is a measurement: it is the mechanism's own working memory.
 *
 * Allocations are 64-byte aligned and not zeroed.  Chunks come from mmap, never
 * from malloc, so that the heap and the arena are counted apart; those of 2 MiB
 * and more ask for huge pages, because first touch of 4 KiB pages costs more
 * than the arithmetic done on them.  A reset keeps the chunks.
 *
 * Built with ATTNSCOPE_DEBUG, every allocation is followed by a guard band and released memory is
 * poisoned; arena_check() says whether a band was touched, the address checker reports an access.
 *
 * Not thread-safe: an op takes the scratch of all its workers before it
 * starts them.
 */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Arena Arena;

/* Numbers, and all else: lists, names, structures.  Where an arena has its chunks from a source
 * these two share none, so that the host, which reads and writes the latter as it goes, touches no
 * page of what a device computes with. */
enum { ARENA_DATA, ARENA_REST, ARENA_LANES };

typedef struct ArenaMark {
    void   *chunk[ARENA_LANES];  /* private */
    int64_t offset[ARENA_LANES]; /* private */
    int64_t used;                /* private */
    int64_t kept;                /* private */
} ArenaMark;

/* Where an arena's chunks are from, when not from the system: memory of another device. */
typedef struct ArenaSource {
    void *(*take)(void *context, int64_t bytes); /* aligned to 64; NULL: there is no more */
    void  (*give)(void *context, void *data, int64_t bytes);
    bool  (*busy)(void *context);   /* memory may still be read or written; NULL: never */
    void  (*settle)(void *context); /* until it is not */
    int64_t (*left)(void *context); /* bytes it would still give; below 0 or NULL: unknown */
    const char *(*broken)(void *context); /* why it gives nothing any more; NULL: it is not */
    /* Of what take() gave, all of it: who uses it from now on (arena_attach); NULL: all may. */
    bool  (*attach)(void *context, void *data, bool device);
    void   *context;
} ArenaSource;

Arena *arena_new(void); /* NULL when memory is out; free with arena_free */
/* source is borrowed and outlives the arena; NULL: as arena_new. */
Arena *arena_new_from(const ArenaSource *source);
void   arena_free(Arena *arena);

/* count * size bytes, or NULL when the product overflows, the limit or the
 * machine's memory is reached, or arena_fail_at says so.  Zero bytes give a
 * valid pointer. */
void *arena_alloc(Arena *arena, int64_t count, int64_t size);
void *arena_alloc_data(Arena *arena, int64_t count, int64_t size); /* of ARENA_DATA */
void *arena_zalloc(Arena *arena, int64_t count, int64_t size); /* zeroed */
char *arena_strdup(Arena *arena, const char *text);
char *arena_printf(Arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Frees what was allocated after the mark; marks nest.  While the arena's source is busy, up
 * to ARENA_KEPT bytes are only counted as free, and come back with a mark further out; beyond
 * that the release waits. */
#define ARENA_KEPT ((int64_t)256 << 20)
ArenaMark arena_mark(Arena *arena);
void      arena_release(Arena *arena, ArenaMark mark);
void      arena_reset(Arena *arena); /* all of it; the peak stays */

/* Where a device and the host cannot touch memory at once (ArenaSource.attach), who uses it from
 * now on, chunks that come later too: the device, and the host while nothing is under way there,
 * which only who runs there knows; or the host at all times and no device, as in the beginning.
 * False: refused. */
bool arena_attach(Arena *arena, bool device);

/* Whether `data` points into one of its chunks. */
bool arena_holds(const Arena *arena, const void *data);

int64_t arena_used(const Arena *arena); /* bytes in use now */
int64_t arena_peak(const Arena *arena); /* the most in use since arena_peak_reset */
void    arena_peak_reset(Arena *arena);
int64_t arena_reserved(const Arena *arena); /* bytes held from the system */
void    arena_limit(Arena *arena, int64_t bytes); /* 0: no limit */
const char *arena_broken(const Arena *arena); /* its source is, and why; NULL: it is not */
int64_t arena_left(const Arena *arena); /* bytes its source would still give; below 0: unknown */
int64_t arena_largest_refused(const Arena *arena); /* bytes; 0: none yet */

/* Called after each allocation (its bytes) and release (0), with what is in use now;
 * NULL: nobody.  It must not allocate from the arena. */
void arena_watch(Arena *arena, void (*heard)(void *context, int64_t bytes, int64_t used),
                 void *context);

/* Called with each chunk of huge pages that the system gives, before anything is stored in it: who
 * clocks a run touches its pages there, so that no clock of a stage runs while the system clears
 * them.  NULL: nobody. */
void arena_on_fresh(Arena *arena, void (*fresh)(void *context, void *data, int64_t bytes),
                    void *context);

/* For tests: the k-th allocation from now on (0-based) of this arena fails;
 * -1 switches it off. */
void arena_fail_at(Arena *arena, int64_t k);
/* Debug builds: false when a guard band was overwritten.  Else true. */
bool arena_check(const Arena *arena);

#endif
