/* core/threads.h -- one pool of worker threads.
 *
 * threads_run() hands out items 0..count-1 one at a time; the caller works
 * too, as worker 0.  Results must not depend on which worker takes an item.
 * Workers block signals, so that they reach the main thread.
 */
#ifndef CORE_THREADS_H
#define CORE_THREADS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Threads Threads;
typedef void (*ThreadsFn)(void *context, int64_t item, int worker);

Threads *threads_new(int count); /* >= 1; NULL when the system refuses */
/* The same for work nobody waits for: its workers leave the CPUs to other threads. */
Threads *threads_new_behind(int count);
/* The calling thread does so from now on. */
void     threads_stay_behind(void);
void     threads_free(Threads *threads);
int      threads_count(const Threads *threads); /* NULL counts as 1 */
int      threads_hardware(void);                /* CPUs this process may use */
/* As many threads as can work at a time: threads_hardware(), or its control group's quota of
 * processors, rounded up, where that is less. */
int      threads_default(void);
int      threads_allowed(const char *groups, const char *root); /* as groups_processors() */

/* Returns when all items are done.  threads may be NULL: the caller does all.
 * Not reentrant: only one thread may call it on one pool at a time. */
void threads_run(Threads *threads, int64_t count, ThreadsFn fn, void *context);

/* What threads beside the main one block: all but the signals of a fault of their own.  A fault
 * whose signal is blocked ends the process before any handler. */
void threads_blocked_signals(sigset_t *set);

/* For a handler whose data only the main thread reads: a library's threads take signals, too.  On
 * another thread it sends the signal to the main one and is true: the handler returns. */
bool threads_pass_signal(int number);

#endif
