/* app/session/session.h -- what the user has before them: an input, requests, results.
 *
 * Front ends (cli, ui, script) start the same work on the same Session; none
 * has a feature the others lack.  Nothing here calls up: a front end polls
 * jobs and may give a wake-up descriptor.
 *
 * Threads: a Session belongs to the thread that made it.  Jobs run one after
 * the other on the session's worker thread; all functions below are called by
 * the owner only.
 */
#ifndef APP_SESSION_SESSION_H
#define APP_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cuda/host/library.h"
#include "attn/run.h"
#include "core/error.h"
#include "core/text.h"
#include "input/input.h"
#include "profile/measure.h"
#include "profile/record.h"

/* The shape of a N(0,1) input, on which times over n are measured. */
typedef struct NormalInput {
    int64_t n, d, heads; /* n 0: none */
} NormalInput;

/* What to run, independent of how it was asked for. */
typedef struct Request {
    char        mechanism[48];
    Assignments given;       /* owned; tensors in it are owned by the session */
    char        position[24]; /* "none" */
    int         causal;      /* 1, 0, or -1: as the input says */
    uint64_t    seed;
    bool        fit;         /* tensors fitted on the input, where the mechanism has a fit */
    int         threads;     /* 0: all CPUs */
    char        device[8];   /* "cpu", "cuda"; "" as "cpu" */
    char        precision[8]; /* "f32", "tf32", "bf16", "f16": of matrix products on a GPU */
    const Ops  *ops;         /* of the session's device, by request_device; NULL: the CPU's */
    int64_t     memory_limit; /* bytes; 0: none */
    int         repeat;      /* timed runs at least; 0: time one run only */
    double      width;       /* repeat until the median is known to +- this share; 0: as usual */
    bool        measure;     /* take time and memory in runs of their own */
    bool        quality;     /* compare with full attention */
    int         keys;        /* strongest ones the view `missed` looks for; 0: as usual */
    bool        pairs_only;  /* for a picture of allowed pairs: RunSpec.pairs_only */
    bool        missed;      /* that view is made with the run, which may take a while */
    int         seeds;       /* quality over so many seeds from `seed` on; 0, 1: one */
    NormalInput normal;      /* the input, instead of the session's */
    struct Request *above;   /* the layer upon this one, for reach; owned; NULL: none */
} Request;

#define REQUEST_INIT ((Request){ .position = "none", .causal = -1 })

/* A finished run with what was measured.  Shared and counted: keep it with
 * result_retain, give it up with result_release (owner thread only). */
typedef struct Result {
    Request      request;  /* owned copy; texts valid as long as the result */
    const Input *input;    /* borrowed from the session, kept alive by it */
    Run         *run;      /* with views; never NULL, but may have failed: run->err */
    Record       record;
    Run        **upper;    /* owned; of the layers above the request's, if it has some */
    int          upper_count;
    struct Reach *reach;   /* private: see app/result/views.h */
    struct Missed *missed; /* private: see app/result/views.h */
    struct Derived *derived; /* private: see app/result/views.h */
    Run         *replay;   /* private: see app/result/steps.h; owned */
    bool         replayed; /* it was tried */
    double       run_ms;   /* wall time of the run with views, for live re-runs */
    int          references;
    struct Loaded *loaded; /* private: keeps the input */
    struct Device *device; /* private: keeps the memory of runs on it; NULL: the CPU */
    struct OwnOrders *orders; /* private: see app/result/views.h; in the run's arena */
} Result;

typedef struct Session Session;

Session *session_new(Error *err);
void     session_free(Session *s); /* cancels and joins the worker first */

/* What this machine can do at most with so many threads (0: all CPUs), or the
 * GPU whose ops they are (NULL: the CPU); measured the
 * first time, which takes seconds.  NULL: it cannot be. */
const Ceilings *session_ceilings(Session *s, const Ops *ops, int threads, Error *err);
/* For whoever has them measured on another thread: those known (NULL: none), the measurement
 * itself, and what came of it for the next time. */
const Ceilings *session_known_ceilings(const Session *s, const Ops *ops, int threads);
bool            ceilings_measure(const Ops *ops, Threads *threads, Ceilings *out, Error *err);
const Ceilings *session_keep_ceilings(Session *s, const Ops *ops, int threads,
                                      const Ceilings *measured);

/* Replaces the input.  Results made before keep theirs. */
bool         session_load(Session *s, const char *spec, const InputChoice *choice, Error *err);
/* Of an input just loaded: it must have this content, and goes by this name from now on. */
bool         session_input_as(Session *s, const char *name, const char *sha256, Error *err);
/* Takes over an input made in memory, even on failure. */
bool         session_set_input(Session *s, Input *input, const char *name, Error *err);
const Input *session_input(const Session *s);        /* NULL: none yet */
const char  *session_input_spec(const Session *s);
const InputChoice *session_choice(const Session *s);
/* The shipped sample: next to the binary, in the source tree or installed. */
const char  *session_default_sample(Session *s, Error *err); /* "sample:NAME" */
/* Path of a shipped sample or script by its file name; NULL: not found. */
const char  *session_find_shipped(Session *s, const char *folder, const char *name);

/* Where the request runs: "cpu", "cuda", or "auto" (a GPU where one can be used), and how exact
 * matrix products are there ("" or NULL: f32).  Opens the GPU the first time; false: there is
 * none that can be used, and err says why. */
bool request_device(Session *s, Request *request, const char *device, const char *precision,
                    Error *err);
/* Whether it is such a word, or "". */
bool device_word(const char *device, Error *err);
bool precision_word(const char *precision, Error *err);
/* The next of cpu, cuda, and cuda in tf32, bf16 and f16. */
bool request_next_place(Session *s, Request *request, Error *err);
/* "cpu", "cuda", "cuda bf16" */
void request_place(const Request *request, Text *out);
/* The GPU's own name, "NVIDIA H200"; NULL: the CPU. */
const char *request_gpu(const Request *request);
/* The GPU, opened the first time; NULL: err says what is missing. */
struct Device *session_device(Session *s, Error *err);

/* "bigbird(window=5,random=@table.npy)": id and parameters in parentheses.
 * Tensor files are loaded; the request's other fields stay as they are.
 * "A > B > C" is a stack of layers, bottom first: A with the others above. */
bool request_parse(Session *s, Request *request, const char *text, Error *err);
/* A mechanism as one first meets it: its defaults, or its example where it
 * cannot run without parameters. */
bool request_example(Session *s, Request *request, const Mechanism *m, Error *err);
/* The same for whoever picks it from a list: on an input of at most SKETCH_TOKENS tokens with
 * its sketch, where it has one. */
bool request_first_look(Session *s, Request *request, const Mechanism *m, Error *err);
#define SKETCH_TOKENS 256
/* "name=value" or "name=@file.npy" */
bool request_set(Session *s, Request *request, const char *assignment, Error *err);
/* A tensor made in memory (Lua); its bytes are copied into the session. */
bool request_set_tensor(Session *s, Request *request, const char *name, const Tensor *t,
                        Error *err);
bool request_copy(Request *to, const Request *from, Error *err);
/* The same, with no position and none of its parameters. */
bool request_without_position(const Request *with, Request *out, Error *err);
/* They run the same: mechanism, parameters, position, causal, seed, fit. */
bool request_same(const Request *a, const Request *b);
void request_free(Request *request);
/* The closed form of its FLOPs on the session's input without a run; *bound: an upper bound
 * only.  False: there is none, or the request is refused.  Where a run decides what there is
 * to do (a position, a mechanism inside another) it says less than was done. */
bool request_planned_flops(Session *s, const Request *request, Flops *flops, bool *bound);
/* The command line that repeats it on the session's input: "attnscope run ...". */
void request_command(const Session *s, const Request *request, const char *verb, Text *out);
/* " --input F --layer 1 --causal --position rope --seed 3": all but the mechanism. */
void request_options(const Session *s, const Request *request, Text *out);
/* Those of them that say nothing of the input. */
void request_settings(const Request *request, Text *out);
/* "bigbird(window=5)" */
void request_text(const Request *request, Text *out);

/* Runs now, on the calling thread.  A run that failed is still a Result (see
 * run->err); NULL only for a request that is not valid or no memory. */
Result *session_run(Session *s, const Request *request, Error *err);
Result *result_retain(Result *result);
void    result_release(Result *result);

/* ---- jobs ------------------------------------------------------------------- */

typedef struct Job Job;
typedef enum JobState { JOB_WAITING, JOB_RUNNING, JOB_DONE, JOB_CANCELLED, JOB_FAILED } JobState;

/* Queued on the worker; NULL with *err when the request is not valid.  Free
 * with job_free, which cancels a job that is not done. */
Job     *session_submit(Session *s, const Request *request, Error *err);
/* Any other work on the worker: `work` must look at *cancel now and then, must
 * not touch the session, and reports failure by false and *err. */
typedef bool (*JobWork)(void *context, const atomic_bool *cancel, Error *err);
Job     *session_submit_work(Session *s, JobWork work, void *context, Error *err);
JobState job_state(const Job *job);
const char *job_stage(const Job *job);   /* the stage it is in, or "" */
/* How much of the run is done, 0..1: FLOPs counted so far over those of its closed form, or what
 * the mechanism says itself; in the phase "seeds", seeds done over seeds.  Not valid where nobody
 * knows: content decides the work, another mechanism runs inside, it waits, it is being measured
 * or compared.  It grows within one phase. */
Number   job_share(const Job *job);
double   job_seconds(const Job *job);    /* since it began to run; 0: it does not */
Result  *job_result(Job *job);           /* retained for the caller; NULL unless JOB_DONE */
const Error *job_error(const Job *job);  /* of JOB_FAILED */
void     job_cancel(Job *job);
void     job_wait(Job *job);
void     job_free(Job *job);
/* Readable when some job changed its state; read it empty.  -1: none. */
int      session_wake_fd(const Session *s);
bool     session_busy(Session *s); /* a job waits or runs */

/* ---- progress of long commands, told on the owner's thread ------------------ */
typedef void (*SessionProgress)(void *context, const char *text);
void session_on_progress(Session *s, SessionProgress progress, void *context);
/* From here on session_run tells of a run that takes long, too: it then runs on the worker. */
void session_tell_runs(Session *s);
void session_progress(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether a terminal does what sequences tell it; "dumb" ones, as editors have, print them: no
 * colours there, and no line that is written over. */
bool terminal_obeys(void);

/* ---- sweeps: who sees each record before it is written ---------------------- */
typedef struct SessionSweep {
    void *context;
    /* May change the line, of which the key must stay; false ends the sweep. */
    bool (*record)(void *context, Text *line, Error *err);
    /* After it was written; left: seconds, or < 0 when unknown. */
    void (*progress)(void *context, int done, int total, const char *line, double left);
} SessionSweep;
void session_on_sweep(Session *s, const SessionSweep *sweep); /* borrowed */
const SessionSweep *session_sweep(const Session *s);          /* NULL: nobody looks on */

/* ---- ending a long command early -------------------------------------------- */
/* stop: set by the front end when the user wants an end.  heeded (may be NULL) is
 * set while a command runs that looks at it and ends in order. */
void session_on_stop(Session *s, const atomic_bool *stop, atomic_bool *heeded);
void session_heeds_stop(Session *s, bool heeds);
bool session_stopped(const Session *s);

/* ---- warnings of the environment, once per session -------------------------- */
const char *session_warning(const Session *s); /* NULL: none */

/* The inputs that need no file of one's own: the samples and the generators. */

/* Adds the path of the shipped sample to a spec "sample:NAME"; any other spec as it is.  False:
 * there is no such sample. */
bool session_input_path(Session *s, const char *spec, Text *out, Error *err);

/* input_load, where a sample keeps its name: "sample:NAME" is the same on every machine, so that
 * what is made from it can be made again anywhere. */
Input *session_read_input(Session *s, const char *spec, const InputChoice *choice, Error *err);

/* What generators and samples there are, and how one writes them. */
void inputs_describe(Text *out);

/* Trials of a GPU's faster ways (attn/cuda/host/library.h), and what came of them.
 *
 * A trial is a process of its own, `attnscope trial --here WAY`, because a way that is wrong may
 * take its process's GPU away, or not end.  What came of it is kept in the state folder, one line
 * for each way, GPU, driver and back end, so that it is tried once.
 */

typedef struct TrialVerdict {
    bool good;
    char what[256]; /* "agrees with ..., 1.6 times as fast", or what was wrong */
} TrialVerdict;

typedef void (*TrialTell)(void *context, const char *text);

/* From here on a GPU that is opened is tried first where nothing is known of it and the outcome
 * can be kept.  It is forbidden at first, and again where nobody could be told or nobody wants to
 * wait. */
void trials_allow(void);
void trials_forbid(void);
bool trials_allowed(void);
/* Settles the ways of a device just opened by what is known, or tried; tell hears of each trial
 * before it begins.  Any thread. */
void trials_apply(Device *device, TrialTell tell, void *context);

/* Tries it, whatever is known; stopped (or NULL) is asked now and then.  False: it could not be
 * tried now, for a reason that is not the way's (no memory left on the GPU, say). */
bool trial_make(DeviceWay way, bool (*stopped)(void *context), void *context, TrialVerdict *out,
                Error *err);
bool trial_keep(const Device *device, DeviceWay way, const TrialVerdict *verdict, Error *err);
/* What is known of it; false: nothing. */
bool trial_recall(const Device *device, DeviceWay way, TrialVerdict *out);
/* The file that keeps them; false: there is no place for it. */
bool trials_path(Text *out, Error *err);

#endif
