/* threads.c -- see threads.h. */
#include "core/threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BEHIND 5 /* nice value: a third of the time of a thread that wants all of it */
/* Looks for work, or for its end, before a thread sleeps: about 20 microseconds, half of what it
 * takes to be woken. */
#define LOOKS 1000

typedef struct Worker {
    Threads  *pool;
    int       index;
    pthread_t thread;
} Worker;

struct Threads {
    int             count, started;
    Worker         *workers; /* count entries; entry 0 is the caller */
    pthread_mutex_t lock;
    pthread_cond_t  work, done;
    atomic_ullong   generation;
    atomic_int      busy;
    int             looks; /* 0 where threads are more than processors */
    bool            quit, behind;
    atomic_llong    next;
    int64_t         items;
    ThreadsFn       fn;
    void           *context;
};

static void take_items(Threads *pool, int worker)
{
    long long item;

    while ((item = atomic_fetch_add(&pool->next, 1)) < pool->items)
        pool->fn(pool->context, item, worker);
}

/* A short rest for the processor, which is no rest for the thread. */
static void look_again(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Until there is work, or a while has passed. */
static void look_for_work(Threads *pool, unsigned long long seen)
{
    for (int x = 0; x < pool->looks && atomic_load(&pool->generation) == seen; x++)
        look_again();
}

static void look_for_end(Threads *pool)
{
    for (int x = 0; x < pool->looks && atomic_load(&pool->busy) > 0; x++)
        look_again();
}

static void *worker_main(void *opaque)
{
    Worker            *self = opaque;
    Threads           *pool = self->pool;
    unsigned long long seen = 0;

    if (pool->behind)
        threads_stay_behind();
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && atomic_load(&pool->generation) == seen)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->quit)
            break;
        seen = atomic_load(&pool->generation);
        pthread_mutex_unlock(&pool->lock);
        take_items(pool, self->index);
        pthread_mutex_lock(&pool->lock);
        if (atomic_fetch_sub(&pool->busy, 1) == 1)
            pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
        look_for_work(pool, seen);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void threads_blocked_signals(sigset_t *set)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

    sigfillset(set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigdelset(set, faults[i]);
}

bool threads_pass_signal(int number)
{
    int   kept = errno;
    pid_t self = (pid_t)syscall(SYS_gettid), first = getpid();

    if (self == first)
        return false;
    syscall(SYS_tgkill, first, first, number);
    errno = kept;
    return true;
}

static bool start_workers(Threads *pool)
{
    sigset_t all, old;
    bool     ok = true;

    threads_blocked_signals(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (pool->started = 1; pool->started < pool->count && ok; pool->started += ok) {
        Worker *w = &pool->workers[pool->started];

        *w = (Worker){ .pool = pool, .index = pool->started };
        ok = pthread_create(&w->thread, NULL, worker_main, w) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

/* On Linux a thread has a nice value of its own; refused, it goes on as before. */
void threads_stay_behind(void)
{
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), BEHIND);
}

static Threads *pool_new(int count, bool behind)
{
    Threads *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return NULL;
    pool->behind = behind;
    pool->count = count < 1 ? 1 : count;
    pool->looks = pool->count <= threads_hardware() ? LOOKS : 0;
    pool->workers = calloc((size_t)pool->count, sizeof(*pool->workers));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    if (pool->workers && start_workers(pool))
        return pool;
    threads_free(pool);
    return NULL;
}

Threads *threads_new(int count)
{
    return pool_new(count, false);
}

Threads *threads_new_behind(int count)
{
    return pool_new(count, true);
}

void threads_free(Threads *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int threads_count(const Threads *pool)
{
    return pool ? pool->count : 1;
}

int threads_hardware(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

void threads_run(Threads *pool, int64_t count, ThreadsFn fn, void *context)
{
    if (!pool || pool->count == 1 || count <= 1) {
        for (int64_t i = 0; i < count; i++)
            fn(context, i, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->context = context;
    pool->items = count;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->busy, pool->count - 1);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    take_items(pool, 0);
    look_for_end(pool);
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->busy) > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}
