/* app/session/session.h -- a session: an input, requests, results, jobs.
 *
 * Front ends (cli, ui, script) do the same work on a Session; none has a feature that the others
 * lack.  Nothing here calls up: a front end polls jobs and may wait for a wake-up descriptor.
 *
 * There is no cache of runs: a run can be repeated from its request and seed, and what shows a
 * result retains it.
 *
 * Threads: a Session belongs to the thread that made it, and all functions below are for this
 * owner.  Jobs run one after the other on the session's worker thread.
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

/* What to run, in all front ends. */
typedef struct Request {
    char        mechanism[48];
    Assignments given;       /* owned; the session owns its tensors */
    char        position[24]; /* "none" */
    int         causal;      /* 1, 0, or -1: as the input says */
    uint64_t    seed;
    bool        fit;         /* tensors fitted on the input, where the mechanism has a fit */
    int         threads;     /* 0: all CPUs */
    char        device[8];   /* "cpu", "cuda"; "": "cpu" */
    char        precision[8]; /* "f32", "tf32", "bf16", "f16": of GPU products */
    const Ops  *ops;         /* of the session's device, by request_device; NULL: the CPU's */
    int64_t     memory_limit; /* bytes; 0: none */
    int         repeat;      /* timed runs at least; 0, 1: as many as are usual */
    double      width;       /* repeat until the median is within this share; 0: no */
    bool        measure;     /* time and memory, in runs of their own */
    bool        quality;     /* compare with full attention */
    bool        per_head;    /* the same for each head alone: Record.by_head */
    bool        decode;      /* cost and time of one token more: Record.step.  With causal -1 the
                                run is causal where the mechanism has a causal form */
    int64_t     quality_rows; /* of each head, drawn, to compare; 0: all */
    int         keys;        /* strongest keys of the view `missed`; 0: MISSED_USUAL */
    bool        pairs_only;  /* only allowed pairs are shown: RunSpec.pairs_only */
    bool        views_only;  /* only views are shown: RunSpec.views_only */
    bool        missed;      /* computes the view `missed` with the run */
    int         seeds;       /* quality over seeds from `seed` on; 0, 1: one */
    NormalInput normal;      /* this input instead of the session's */
    struct Request *above;   /* next layer of a stack; owned; NULL: none */
} Request;

#define REQUEST_INIT ((Request){ .position = "none", .causal = -1 })

/* A finished run with its measurements, counted: keep it with result_retain, release it with
 * result_release (owner's thread only). */
typedef struct Result {
    Request      request;  /* owned copy; texts valid as long as the result */
    const Input *input;    /* borrowed; `loaded` keeps it alive */
    Run         *run;      /* with views; never NULL, but may have failed: run->err */
    Record       record;
    Run        **upper;    /* owned; runs of the layers above */
    int          upper_count;
    struct Reach *reach;   /* private: see app/result/views.h */
    struct Missed *missed; /* private: see app/result/views.h */
    struct Derived *derived; /* private: see app/result/views.h */
    Run         *replay;   /* private: see app/result/steps.h; owned */
    bool         replayed; /* a replay was tried */
    double       run_ms;   /* wall time of the run with views, for live re-runs */
    int          references;
    struct Loaded *loaded; /* private: keeps the input */
    struct Device *device; /* private: keeps the memory of runs on it; NULL: the CPU */
    struct OwnOrders *orders; /* private: see app/result/views.h; in the run's arena */
} Result;

typedef struct Session Session;

Session *session_new(Error *err);
void     session_free(Session *s); /* cancels and joins the worker first */

/* Ceilings of the CPU with so many threads (0: all CPUs), or of the GPU of these ops (NULL: the
 * CPU).  Measured the first time, which takes seconds.  NULL: not possible. */
const Ceilings *session_ceilings(Session *s, const Ops *ops, int threads, Error *err);
/* For a caller that measures on another thread: known ceilings (NULL: none), the measurement, and
 * the call that keeps its result. */
const Ceilings *session_known_ceilings(const Session *s, const Ops *ops, int threads);
bool            ceilings_measure(const Ops *ops, Threads *threads, Ceilings *out, Error *err);
const Ceilings *session_keep_ceilings(Session *s, const Ops *ops, int threads,
                                      const Ceilings *measured);

/* The name of a shipped sample; NULL past the end. */
const char  *session_sample(size_t index);
/* Replaces the input.  Earlier results keep theirs. */
bool         session_load(Session *s, const char *spec, const InputChoice *choice, Error *err);
/* Checks the content of the loaded input and gives it this name. */
bool         session_input_as(Session *s, const char *name, const char *sha256, Error *err);
/* Takes over an input made in memory, even on failure. */
bool         session_set_input(Session *s, Input *input, const char *name, Error *err);
/* As session_load, with what session_read_input gave for the spec; takes it over. */
bool         session_take_input(Session *s, Input *input, const char *spec,
                                const InputChoice *choice, Error *err);
const Input *session_input(const Session *s);        /* NULL: none yet */
const char  *session_input_spec(const Session *s);
const InputChoice *session_choice(const Session *s);
/* The shipped sample: next to the binary, in the source tree or installed. */
const char  *session_default_sample(Session *s, Error *err); /* "sample:NAME" */
/* Path of a shipped sample or script by its file name; NULL: not found. */
const char  *session_find_shipped(Session *s, const char *folder, const char *name);

/* Sets the request's device: "cpu", "cuda", or "auto" (a GPU where there is one), and the precision
 * of matrix products there ("" or NULL: f32).  Opens the GPU the first time; false: no GPU can be
 * used, and err says why. */
bool request_device(Session *s, Request *request, const char *device, const char *precision,
                    Error *err);
/* The word is valid; "" is, too. */
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
/* A parameter that has no default is not given: the mechanism cannot run. */
bool request_lacks_parameter(const Request *request);
/* A mechanism with its example, or with its defaults where it has none. */
bool request_example(Session *s, Request *request, const Mechanism *m, Error *err);
/* The same for a mechanism picked from a list: its sketch, where it has one, on an input of at most
 * SKETCH_TOKENS tokens. */
bool request_first_look(Session *s, Request *request, const Mechanism *m, Error *err);
#define SKETCH_TOKENS 256
/* "name=value" or "name=@file.npy" */
bool request_set(Session *s, Request *request, const char *assignment, Error *err);
/* A tensor made in memory (Lua); its bytes are copied into the session. */
bool request_set_tensor(Session *s, Request *request, const char *name, const Tensor *t,
                        Error *err);
bool request_copy(Request *to, const Request *from, Error *err);
/* Copies the request without position and its parameters. */
bool request_without_position(const Request *with, Request *out, Error *err);
/* They run the same: mechanism, parameters, position, causal, seed, fit, device. */
bool request_same(const Request *a, const Request *b);
void request_free(Request *request);
/* FLOPs on the session's input by the closed form, without a run; *bound: an upper bound.  False:
 * no closed form, or an invalid request.  Work that a run decides on (a position, an inner
 * mechanism) is missing. */
bool request_planned_flops(Session *s, const Request *request, Flops *flops, bool *bound);
/* The command line that repeats it on the session's input: "attnscope run ...". */
void request_command(const Session *s, const Request *request, const char *verb, Text *out);
/* " --input F --layer 1 --causal --position rope --seed 3": all but the mechanism. */
void request_options(const Session *s, const Request *request, Text *out);
/* Options that do not concern the input. */
void request_settings(const Request *request, Text *out);
/* "bigbird(window=5)" */
void request_text(const Request *request, Text *out);
/* As request_text, with the seed, causal, fit, position and device that differ from `first`. */
void request_text_beside(const Request *request, const Request *first, Text *out);

/* Runs on the calling thread.  A failed run is a Result, too (run->err); NULL for an invalid
 * request, no memory, or once stop is set (ERR_CANCELLED), which ends the run early. */
Result *session_run(Session *s, const Request *request, Error *err);
/* As session_run; NULL for a failed run, too, with its error. */
Result *session_run_ok(Session *s, const Request *request, Error *err);
Result *result_retain(Result *result);
void    result_release(Result *result);

/* ---- jobs ------------------------------------------------------------------- */

typedef struct Job Job;
typedef enum JobState { JOB_WAITING, JOB_RUNNING, JOB_DONE, JOB_CANCELLED, JOB_FAILED } JobState;

/* Queues a run; NULL with *err for an invalid request.  job_free cancels a job that is not done. */
Job     *session_submit(Session *s, const Request *request, Error *err);
/* Queues other work: `work` polls *cancel, does not touch the session, and reports failure by false
 * and *err. */
typedef bool (*JobWork)(void *context, const atomic_bool *cancel, Error *err);
Job     *session_submit_work(Session *s, JobWork work, void *context, Error *err);
JobState job_state(const Job *job);
const char *job_stage(const Job *job);   /* the stage it is in, or "" */
/* Share of the run that is done, 0..1: counted FLOPs over those of the closed form, or the
 * mechanism's own number; in the phase "seeds", seeds.  Not valid where it is unknown: work decided
 * by content, an inner mechanism, a waiting job, measurement, quality.  It grows within a phase. */
Number   job_share(const Job *job);
double   job_seconds(const Job *job);    /* since it began to run; 0: not running */
Result  *job_result(Job *job);           /* retained for the caller; NULL unless JOB_DONE */
const Error *job_error(const Job *job);  /* of JOB_FAILED */
void     job_cancel(Job *job);
void     job_wait(Job *job);
void     job_free(Job *job);
/* Readable after a job changed its state; the reader empties it.  -1: none. */
int      session_wake_fd(const Session *s);
bool     session_busy(Session *s); /* a job waits or runs */

/* ---- progress of long commands, reported on the owner's thread -------------- */
typedef void (*SessionProgress)(void *context, const char *text);
void session_on_progress(Session *s, SessionProgress progress, void *context);
/* From here on session_run reports progress of long runs, as lines too: it runs them on the
 * worker. */
void session_report_runs(Session *s);
void session_progress(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same as lines that stay, for a log or a pipe; one for each part of the work. */
void session_on_line(Session *s, SessionProgress line, void *context);
void session_line(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What a long run will take, said once before it; with session_report_runs.  Nobody: it is not
 * estimated. */
void session_on_notice(Session *s, SessionProgress notice, void *context);
void session_notice(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The terminal obeys escape sequences; "dumb" ones (in editors) print them, so they get no colours
 * and no rewritten lines. */
bool terminal_obeys(void);

/* ---- events of commands (attn.on), on the owner's thread; content: a JSON object ----- */
typedef void (*SessionEvent)(void *context, const char *event, const char *content);
void session_on_event(Session *s, SessionEvent listener, void *context);
bool session_listens(const Session *s);
void session_tell(Session *s, const char *event, const Text *content);

/* ---- sweeps: who sees each record before it is written ---------------------- */
typedef struct SessionSweep {
    void *context;
    /* May change the line, but not its key; false ends the sweep. */
    bool (*record)(void *context, Text *line, Error *err);
    /* Called after it was written; left: seconds, or < 0 where unknown. */
    void (*progress)(void *context, int done, int total, const char *line, double left);
} SessionSweep;
void session_on_sweep(Session *s, const SessionSweep *sweep); /* borrowed */
const SessionSweep *session_sweep(const Session *s);          /* NULL: nobody looks on */

/* ---- ending a long command early -------------------------------------------- */
/* stop: set by the front end to end the command.  heeded (may be NULL): set while a command runs
 * that polls stop. */
void session_on_stop(Session *s, const atomic_bool *stop, atomic_bool *heeded);
void session_heeds_stop(Session *s, bool heeds);
bool session_stopped(const Session *s);

/* ---- warnings of the environment, once per session -------------------------- */
const char *session_warning(const Session *s); /* NULL: none */

/* ---- inputs without files: samples and generators ------------------------ */

/* Appends the path of the sample for a spec "sample:NAME"; any other spec unchanged.  False: no
 * such sample. */
bool session_input_path(Session *s, const char *spec, Text *out, Error *err);

/* As input_load, but a sample keeps its name: "sample:NAME" is valid on every machine, so commands
 * with it can be repeated. */
Input *session_read_input(Session *s, const char *spec, const InputChoice *choice, Error *err);

/* Describes generators and samples, and how to write them. */
void inputs_describe(Text *out);

/* Trials of a GPU's faster ways (attn/cuda/host/library.h), and their outcomes.
 *
 * A trial is a process of its own, `attnscope trial --here WAY`, because a wrong way may break its
 * process's GPU, or hang.  The state folder keeps the outcome, one line for each way, GPU, driver
 * and back end, so that each is tried once.
 */

typedef struct TrialVerdict {
    bool good;
    char what[256]; /* "agrees with ..., 1.6 times as fast", or what was wrong */
} TrialVerdict;

typedef void (*TrialReport)(void *context, const char *text);

/* Allows trials when a GPU is opened whose outcomes are unknown and can be kept.  Forbidden at
 * first, and where nobody can see a message or wants to wait. */
void trials_allow(void);
void trials_forbid(void);
bool trials_allowed(void);
/* Settles the ways of an opened device by known outcomes or trials; `report` is called before
 * each trial.  Any thread. */
void trials_apply(Device *device, TrialReport report, void *context);

/* Tries the way even where its outcome is known; polls stopped (or NULL).  False: it could not be
 * tried for another reason (no memory left on the GPU). */
bool trial_make(DeviceWay way, bool (*stopped)(void *context), void *context, TrialVerdict *out,
                Error *err);
bool trial_keep(const Device *device, DeviceWay way, const TrialVerdict *verdict, Error *err);
/* The known outcome; false: none. */
bool trial_recall(const Device *device, DeviceWay way, TrialVerdict *out);
/* Path of the file of outcomes; false: there is no place for it. */
bool trials_path(Text *out, Error *err);

#endif
