/* app/session/internal.h -- the inside of a Session; private to app/. */
#ifndef APP_SESSION_INTERNAL_H
#define APP_SESSION_INTERNAL_H

#include <pthread.h>

#include "app/session/session.h"
#include "profile/measure.h"

/* A loaded input, kept alive by the session and by every result on it. */
typedef struct Loaded {
    Input      *input;
    atomic_int  references;
    char       *warning; /* about its values; owned; NULL: none */
} Loaded;

struct Job {
    Session    *session;
    Job        *next;     /* in the queue */
    JobState    state;    /* guarded by the session's lock, as is: */
    double      began;    /* clock_wall when it left the queue */
    bool        detached; /* released by its owner: the worker frees it */
    atomic_bool cancel;
    RunProgress progress;
    Request     request;  /* for a run */
    Loaded     *loaded;
    JobWork     work;     /* for other work; NULL: a run */
    void       *context;
    Result     *result;
    Error       err;
};

#define CEILINGS_KEPT 8 /* one for a CPU and each precision of a GPU */

struct Session {
    Loaded     *loaded;
    char       *spec;      /* of the input */
    InputChoice choice;
    Arena      *tensors;   /* tensor parameters; until the session ends */
    Threads    *threads;   /* of the owner */
    int         thread_count;
    struct Device *device; /* NULL: not opened */
    struct {
        Ceilings   measured;
        int        threads; /* 0: none yet */
        const Ops *ops;
    } ceilings[CEILINGS_KEPT];
    int         ceilings_next;
    Text        path;      /* last answer of session_find_shipped */
    char       *warning;
    SessionProgress progress;
    void       *progress_context;
    SessionProgress line;
    void       *line_context;
    SessionProgress notice;
    void       *notice_context;
    SessionEvent listener; /* NULL: none */
    void       *listener_context;
    bool        reports_runs; /* runs report progress */
    const SessionSweep *sweep; /* borrowed; NULL: none */
    const atomic_bool *stop; /* borrowed; NULL: no stop flag */
    atomic_bool *heeded;     /* borrowed or NULL */
    const struct LessonReader *lessons; /* borrowed; NULL: none */
    char        lesson_device[8], lesson_precision[8]; /* as session_lessons_on; "": the CPU */
    /* worker */
    pthread_t       worker;
    bool            started, quit;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    Job            *queue, *running;
    int             wake[2];
};

Loaded *loaded_retain(Loaded *loaded);
void    loaded_release(Loaded *loaded);

/* Runs the request on the input, or on the request's own; any thread.  progress may be NULL. */
Result *execute_request(Loaded *loaded, const Request *request, Threads *threads,
                        const atomic_bool *cancel, RunProgress *progress, Error *err);
/* The owner's pool with `count` threads (0: all CPUs); NULL: one thread. */
Threads *session_threads(Session *s, int count);

/* False with ERR_CANCELLED once the session's stop flag is set. */
bool session_refuse_stopped(const Session *s, Error *err);

bool worker_start(Session *s, Error *err);
void worker_stop(Session *s);

/* How often a request's run is timed, where one run with views took run_ms.  A repeat of 1 is the
 * same as none, unless a width is asked for. */
MeasurePlan request_plan(const Request *request, double run_ms);

#endif
