/* blas.c -- OpenBLAS where memory is limited.
 *
 * A call of OpenBLAS takes a buffer of 128 MiB of address space from a list, or maps a new one.  A
 * map that the system refuses is tried again for ever.  So under a limit no call starts without a
 * buffer in the list: buffers are taken at the beginning of an operation, after a trial, and calls
 * that are more than the buffers wait for each other.
 */
#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "attn/cpu/blas.h"
#include "core/shortage.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define BUFFER ((size_t)128 << 20)
#else
#define BUFFER ((size_t)256 << 20)
#endif
#define MARGIN ((size_t)8 << 20) /* what other threads may take between the trial and the call */
#define ROOM 4                   /* buffers' room that further buffers leave to the data */
#define MOST_BUFFERS 64          /* OpenBLAS has a list of at least twice this length */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  given;
    int             buffers, used;
} list = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

static bool has_limit(int resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* The system promises no more than it has. */
static bool is_strict(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
    int   mode = file ? fgetc(file) : 0;

    if (file)
        fclose(file);
    return mode == '2';
}

static bool limited;

static void read_limits(void)
{
    limited = has_limit(RLIMIT_AS) || has_limit(RLIMIT_DATA) || is_strict();
}

bool blas_limited(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_limits);
    return limited;
}

static bool fits(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (data == MAP_FAILED)
        return false;
    munmap(data, bytes);
    return true;
}

/* ---- buffers ---------------------------------------------------------------- */

typedef void *(*TakeFn)(int);
typedef void (*GiveFn)(void *);

static void *symbol(const char *name, void *function, size_t size)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    memcpy(function, &found, size);
    return found;
}

/* A product of its own takes one buffer and puts it back into the list. */
static void take_first(void)
{
    float one[4] = { 1, 0, 0, 1 }, out[4] = { 0 };

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, one, 2, one, 2, 0, out, 2);
}

/* Buffers that are held at the same time are different ones.  `list` is locked, nothing is used. */
static void take_more(int count)
{
    TakeFn take;
    GiveFn give;
    void  *held[MOST_BUFFERS];
    int    taken = 0;

    if (!symbol("blas_memory_alloc", &take, sizeof(take)) ||
        !symbol("blas_memory_free", &give, sizeof(give)))
        return;
    while (taken < count && (taken < list.buffers || fits(ROOM * BUFFER)))
        held[taken++] = take(0);
    list.buffers = taken > list.buffers ? taken : list.buffers;
    while (taken > 0)
        give(held[--taken]);
}

bool blas_ready(int callers, Error *err)
{
    bool ok;

    if (openblas_get_num_threads() != 1)
        openblas_set_num_threads(1);
    if (!blas_limited())
        return true;
    callers = callers < MOST_BUFFERS ? callers : MOST_BUFFERS;
    pthread_mutex_lock(&list.lock);
    if (list.buffers == 0 && fits(BUFFER + MARGIN)) {
        take_first();
        list.buffers = 1;
    }
    if (list.buffers > 0 && list.buffers < callers && list.used == 0)
        take_more(callers);
    ok = list.buffers > 0;
    pthread_mutex_unlock(&list.lock);
    return ok || error_set(err, ERR_NOMEM, "not enough memory: a product of matrices takes %zu MiB "
                           "of address space, and less is free; raise the limit (ulimit -v)",
                           BUFFER >> 20);
}

/* ---- calls ------------------------------------------------------------------ */

/* Some of OpenBLAS's kernels write to what malloc returned without a look at it. */
void blas_enter(void)
{
    shortage_in_library(true);
    if (!blas_limited())
        return;
    pthread_mutex_lock(&list.lock);
    while (list.used > 0 && list.used >= list.buffers)
        pthread_cond_wait(&list.given, &list.lock);
    list.used++;
    pthread_mutex_unlock(&list.lock);
}

void blas_leave(void)
{
    shortage_in_library(false);
    if (!blas_limited())
        return;
    pthread_mutex_lock(&list.lock);
    list.used--;
    pthread_cond_signal(&list.given);
    pthread_mutex_unlock(&list.lock);
}
