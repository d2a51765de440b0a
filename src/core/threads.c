/* threads.c -- see threads.h. */
#include "core/threads.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/groups.h"

#define BEHIND 5 /* nice value: a third of the time of a thread that wants all of it */

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
    uint64_t        generation;
    int             busy;
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

static void *worker_main(void *opaque)
{
    Worker  *self = opaque;
    Threads *pool = self->pool;
    uint64_t seen = 0;

    if (pool->behind)
        threads_stay_behind();
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && pool->generation == seen)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->quit)
            break;
        seen = pool->generation;
        pthread_mutex_unlock(&pool->lock);
        take_items(pool, self->index);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->done);
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

int threads_allowed(const char *groups, const char *root)
{
    double quota = ceil(groups_processors(groups, root));
    int    all = threads_hardware();

    return !(quota < all) ? all : quota > 1 ? (int)quota : 1;
}

int threads_default(void)
{
    return threads_allowed(GROUPS_OF_PROCESS, GROUPS_MOUNTED);
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
    pool->busy = pool->count - 1;
    pool->generation++;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    take_items(pool, 0);
    pthread_mutex_lock(&pool->lock);
    while (pool->busy > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}
