/* worker.c -- the session's one worker thread, and its queue of jobs.
 *
 * A lock guards the queue and the state of every job.  The owner polls; a byte in the wake pipe
 * ends its wait.
 */
#include "app/session/internal.h"
#include "core/threads.h"
#include "profile/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wake_owner(Session *s)
{
    char byte = 1;

    /* A full pipe wakes the owner, too. */
    if (write(s->wake[1], &byte, 1) < 0)
        return;
}

static void job_destroy(Job *job)
{
    result_release(job->result);
    request_free(&job->request);
    loaded_release(job->loaded);
    free(job);
}

static JobState run_job(Job *job, Threads *threads)
{
    if (job->work)
        return job->work(job->context, &job->cancel, &job->err) ? JOB_DONE
               : atomic_load(&job->cancel)                      ? JOB_CANCELLED
                                                                : JOB_FAILED;
    job->result =
        execute_request(job->loaded, &job->request, threads, &job->cancel, &job->progress,
                        &job->err);
    if (job->result)
        job->result->run->spec.cancel = NULL; /* the flag is freed with the job */
    if (atomic_load(&job->cancel))
        return JOB_CANCELLED;
    return job->result ? JOB_DONE : JOB_FAILED;
}

/* The pool has the number of threads that the job asks for. */
static Threads *pool_for(Threads *pool, const Job *job)
{
    int count = job->request.threads > 0 ? job->request.threads : threads_default();

    if (pool && threads_count(pool) == count)
        return pool;
    threads_free(pool);
    return threads_new(count);
}

static Job *next_job(Session *s)
{
    Job *job;

    while (!s->quit && !s->queue)
        pthread_cond_wait(&s->changed, &s->lock);
    if (s->quit)
        return NULL;
    job = s->queue;
    s->queue = job->next;
    s->running = job;
    job->state = JOB_RUNNING;
    job->began = clock_wall();
    return job;
}

static void *worker_main(void *opaque)
{
    Session *s = opaque;
    Threads *pool = NULL;
    Job     *job;

    pthread_mutex_lock(&s->lock);
    while ((job = next_job(s))) {
        JobState state;

        pthread_mutex_unlock(&s->lock);
        if (!job->work)
            pool = pool_for(pool, job);
        state = run_job(job, pool);
        if (job->result)
            job->result->run->threads = NULL; /* belongs to this thread alone */
        pthread_mutex_lock(&s->lock);
        s->running = NULL;
        job->state = state;
        pthread_cond_broadcast(&s->changed);
        if (job->detached)
            job_destroy(job);
        wake_owner(s);
    }
    pthread_mutex_unlock(&s->lock);
    threads_free(pool);
    return NULL;
}

bool worker_start(Session *s, Error *err)
{
    sigset_t all, old;

    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->wake[0] = s->wake[1] = -1;
    if (pipe2(s->wake, O_NONBLOCK | O_CLOEXEC) < 0)
        return error_set(err, ERR_FILE, "no pipe for the worker could be made: %s",
                         strerror(errno));
    threads_blocked_signals(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->started = pthread_create(&s->worker, NULL, worker_main, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return s->started || error_set(err, ERR_NOMEM, "no worker thread could be started: not "
                                    "enough memory, or too many processes (ulimit -u)");
}

void worker_stop(Session *s)
{
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    if (s->running)
        atomic_store(&s->running->cancel, true);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->worker, NULL);
    for (Job *job = s->queue, *next; job; job = next) {
        next = job->next;
        if (job->detached)
            job_destroy(job);
        else
            job->state = JOB_CANCELLED;
    }
    for (int i = 0; i < 2; i++)
        if (s->wake[i] >= 0)
            close(s->wake[i]);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

int session_wake_fd(const Session *s)
{
    return s->wake[0];
}

bool session_busy(Session *s)
{
    bool busy;

    pthread_mutex_lock(&s->lock);
    busy = s->running || s->queue;
    pthread_mutex_unlock(&s->lock);
    return busy;
}

/* ---- jobs, seen by the owner ------------------------------------------------ */

static Job *enqueue(Session *s, Job *job)
{
    Job **tail;

    pthread_mutex_lock(&s->lock);
    for (tail = &s->queue; *tail; tail = &(*tail)->next)
        ;
    *tail = job;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return job;
}

static Job *job_new(Session *s, Error *err)
{
    Job *job = calloc(1, sizeof(*job));

    if (!job) {
        error_set(err, ERR_NOMEM, "not enough memory for a job");
        return NULL;
    }
    job->session = s;
    progress_begin(&job->progress, 0);
    atomic_store(&job->progress.stage, "");
    return job;
}

Job *session_submit(Session *s, const Request *request, Error *err)
{
    Job *job;

    if (!s->loaded) {
        error_set(err, ERR_USAGE, "no input is loaded");
        return NULL;
    }
    job = job_new(s, err);
    if (!job)
        return NULL;
    if (!request_copy(&job->request, request, err)) {
        free(job);
        return NULL;
    }
    job->loaded = loaded_retain(s->loaded);
    return enqueue(s, job);
}

Job *session_submit_work(Session *s, JobWork work, void *context, Error *err)
{
    Job *job = job_new(s, err);

    if (!job)
        return NULL;
    job->work = work;
    job->context = context;
    return enqueue(s, job);
}

JobState job_state(const Job *job)
{
    JobState state;

    pthread_mutex_lock(&job->session->lock);
    state = job->state;
    pthread_mutex_unlock(&job->session->lock);
    return state;
}

const char *job_stage(const Job *job)
{
    return atomic_load(&job->progress.stage);
}

Number job_share(const Job *job)
{
    JobState state = job_state(job);
    double   share = progress_share(&job->progress);

    if (state == JOB_DONE)
        return number_of(1);
    return state == JOB_RUNNING && share >= 0 ? number_of(share) : NUMBER_NONE;
}

double job_seconds(const Job *job)
{
    double seconds;

    pthread_mutex_lock(&job->session->lock);
    seconds = job->state == JOB_RUNNING ? clock_wall() - job->began : 0;
    pthread_mutex_unlock(&job->session->lock);
    return seconds;
}

Result *job_result(Job *job)
{
    return job_state(job) == JOB_DONE && job->result ? result_retain(job->result) : NULL;
}

const Error *job_error(const Job *job)
{
    return &job->err;
}

void job_cancel(Job *job)
{
    atomic_store(&job->cancel, true);
}

static bool finished(const Job *job)
{
    return job->state != JOB_WAITING && job->state != JOB_RUNNING;
}

void job_wait(Job *job)
{
    Session *s = job->session;

    pthread_mutex_lock(&s->lock);
    while (!finished(job))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static bool unqueue(Session *s, Job *job)
{
    for (Job **at = &s->queue; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            return true;
        }
    return false;
}

void job_free(Job *job)
{
    Session *s;

    if (!job)
        return;
    s = job->session;
    job_cancel(job);
    pthread_mutex_lock(&s->lock);
    /* The caller owns the context of other work: wait until it is no longer used. */
    while (job->work && job->state == JOB_RUNNING)
        pthread_cond_wait(&s->changed, &s->lock);
    if (job->state == JOB_RUNNING) {
        job->detached = true;
        job = NULL;
    } else if (job->state == JOB_WAITING) {
        unqueue(s, job);
    }
    pthread_mutex_unlock(&s->lock);
    if (job)
        job_destroy(job);
}
