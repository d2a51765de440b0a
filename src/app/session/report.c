/* report.c -- session_run, and what a long run says: how long it will take, and how far it is.
 *
 * A run that tells of itself runs on the worker, while the owner of the session looks on.
 */
#include "app/session/internal.h"
#include "attn/cuda/host/library.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- before a run: what it will take --------------------------------------------- */

#define LONG_SECONDS 60 /* runs that take less are not told of before */

/* A run on so many tokens shows how fast this machine is; one of less than the FLOPs takes no
 * LONG_SECONDS anywhere, and is not asked about. */
static const struct {
    int64_t tokens;
    double  flops_a_second;
} few_cpu = { 2048, 5e9 }, few_gpu = { 16384, 1e12 };

static double flops_of(const Flops *f)
{
    return f->score + f->mix + f->overhead + f->position;
}

/* FLOPs a second of a request; 0: it cannot run. */
static double speed_of(Session *s, const Request *request)
{
    Error   ignored = ERROR_INIT;
    Result *result = execute_request(s->loaded, request, session_threads(s, request->threads),
                                     s->stop, NULL, &ignored);
    double  speed = 0;

    if (result && result->run->err.code == ERR_NONE && result->run_ms > 0) {
        Flops flops = run_flops(result->run);

        speed = flops_of(&flops) / (result->run_ms / 1e3);
    }
    result_release(result);
    return speed;
}

/* The same run on few N(0,1) tokens. */
static bool few_tokens(const Session *s, const Request *request, int64_t tokens, Request *out)
{
    const Input *input = s->loaded->input;
    Error        ignored = ERROR_INIT;

    if (!request_copy(out, request, &ignored))
        return false;
    if (out->above)
        request_free(out->above);
    free(out->above);
    out->above = NULL;
    out->measure = out->quality = out->per_head = out->decode = out->missed = false;
    out->normal = (NormalInput){ .n = tokens, .d = input->d,
                                 .heads = input->heads > 1 ? 2 : 1 };
    return true;
}

/* The speed of the mechanism itself or, where it does not run on such an input, of exact
 * attention; 0: not known. */
static double speed_here(Session *s, const Request *request, int64_t tokens)
{
    Request few, exact = REQUEST_INIT;
    Error   ignored = ERROR_INIT;
    double  speed = 0;

    if (few_tokens(s, request, tokens, &few)) {
        speed = speed_of(s, &few);
        exact.normal = few.normal;
        request_free(&few);
    }
    exact.threads = request->threads;
    exact.ops = request->ops;
    if (!(speed > 0) && exact.normal.n && request_parse(s, &exact, "full", &ignored)) {
        speed = speed_of(s, &exact);
        request_free(&exact);
    }
    return speed;
}

/* One with views, and one that is timed; more only where they are quick. */
static int runs_of(const Request *request)
{
    return request->measure ? 2 : 1;
}

/* What makes it shorter. */
static const char *shorter(const Input *input)
{
    return input->pixels.data ? "every pixel is a token: a smaller picture takes less, or its "
                                "first N pixels, -n N"
                              : "fewer tokens, -n N, take less";
}

/* A closed form that works as hard as the run, or calls a script, is not asked for twice. */
static bool is_quickly_planned(const Request *request)
{
    const Mechanism *m = mechanism_find(request->mechanism);

    return m && !m->flops_works && !m->script;
}

/* What a request will compute, as far as that is said before. */
typedef struct Plan {
    bool   known;
    double flops; /* of all its runs */
    bool   bound; /* at most so many */
} Plan;

static Plan plan_of(Session *s, const Request *request)
{
    Plan  plan = { 0 };
    Flops flops = { 0 };

    if (!is_quickly_planned(request) || !request_planned_flops(s, request, &flops, &plan.bound))
        return plan;
    plan.known = true;
    plan.flops = runs_of(request) * flops_of(&flops);
    return plan;
}

/* Whether it may take so many seconds. */
static bool may_take(const Request *request, const Plan *plan, double seconds)
{
    bool gpu = request->ops && request->ops->memory;

    return plan->known &&
           plan->flops >= seconds * (gpu ? few_gpu.flops_a_second : few_cpu.flops_a_second);
}

static void tell_before(Session *s, const Request *request, const Plan *plan)
{
    bool    gpu = request->ops && request->ops->memory;
    double  least = clock_setting("ATTNSCOPE_SILENT_SECONDS", LONG_SECONDS), speed, seconds;
    int64_t tokens = gpu ? few_gpu.tokens : few_cpu.tokens;
    char    text[32], time[32];

    if (tokens > s->loaded->input->n)
        tokens = s->loaded->input->n;
    if (!s->notice || !may_take(request, plan, least))
        return;
    speed = speed_here(s, request, tokens);
    seconds = plan->flops / speed;
    if (!(speed > 0) || !(seconds >= least) || session_stopped(s))
        return;
    session_notice(s, "%s on %lld tokens takes %sabout %s (%sFLOPs at the speed of a run on %lld "
                   "tokens); Ctrl-C ends it; %s", request->mechanism,
                   (long long)s->loaded->input->n, plan->bound ? "up to " : "",
                   format_seconds(seconds, time, sizeof(time)),
                   format_count(plan->flops, text, sizeof(text)), (long long)tokens,
                   shorter(s->loaded->input));
}

/* ---- meanwhile: how far it is ------------------------------------------------------ */

#define QUIET_SECONDS 0.5 /* a shorter run has no progress line */
#define LINE_SECONDS  10  /* where lines stay: the first, and each until they are a fifth apart */

/* "bigbird: attend  42 %" on one line again and again; as a line that stays now and then. */
static void report_run(Session *s, const Job *job, const Request *request, double *next)
{
    Number      share = job_share(job);
    const char *stage = job_stage(job);
    double      seconds = job_seconds(job);
    char        since[32], done[32] = "";

    format_seconds(seconds, since, sizeof(since));
    if (share.valid)
        snprintf(done, sizeof(done), "%.0f %%", 100 * share.value);
    if (seconds >= QUIET_SECONDS)
        session_progress(s, "%s: %s  %s", request->mechanism, stage, share.valid ? done : since);
    if (seconds < *next)
        return;
    session_line(s, "%s: %s%s%s; %s", request->mechanism, stage, *done ? " " : "", done, since);
    *next = seconds + (seconds > 5 * LINE_SECONDS ? seconds / 5 : LINE_SECONDS);
}

/* Runs on the worker and reports progress. */
static Result *run_reported(Session *s, const Request *request, Error *err)
{
    struct pollfd wake = { .fd = s->wake[0], .events = POLLIN };
    Job          *job = session_submit(s, request, err);
    double        next = clock_setting("ATTNSCOPE_SILENT_SECONDS", LINE_SECONDS);
    Result       *result;
    char          bytes[64];

    while (job && job_state(job) <= JOB_RUNNING) {
        poll(&wake, 1, 200);
        while (read(wake.fd, bytes, sizeof(bytes)) > 0)
            continue;
        if (session_stopped(s))
            job_cancel(job);
        if (job_state(job) == JOB_RUNNING)
            report_run(s, job, request, &next);
    }
    result = job ? job_result(job) : NULL;
    if (result) /* the worker's pool is not the caller's */
        result->run->threads = session_threads(s, request->threads);
    else if (job)
        *err = *job_error(job);
    job_free(job);
    return result;
}

/* ---- a run ------------------------------------------------------------------------- */

/* On the calling thread.  The flag may end before the result does. */
static Result *run_here(Session *s, const Request *request, Error *err)
{
    Result *result = execute_request(s->loaded, request, session_threads(s, request->threads),
                                     s->stop, NULL, err);

    if (result)
        result->run->spec.cancel = NULL;
    return result;
}

bool session_refuse_stopped(const Session *s, Error *err)
{
    return !session_stopped(s) || error_set(err, ERR_CANCELLED, "cancelled");
}

/* The line that changes is there for every run; lines that stay, for one that may last until the
 * first of them.  Another run needs no worker, whose stack and buffers take address space. */
static bool reports(const Session *s, const Request *request, const Plan *plan)
{
    double seconds = clock_setting("ATTNSCOPE_SILENT_SECONDS", LINE_SECONDS);

    return s->progress || !is_quickly_planned(request) || may_take(request, plan, seconds);
}

/* On the worker if it tells of itself. */
static Result *run_told(Session *s, const Request *request, Error *err)
{
    Plan plan = plan_of(s, request);

    if (!reports(s, request, &plan))
        return run_here(s, request, err);
    tell_before(s, request, &plan);
    return run_reported(s, request, err);
}

Result *session_run(Session *s, const Request *request, Error *err)
{
    Result *result;

    if (!s->loaded) {
        error_set(err, ERR_USAGE, "no input: give --input FILE or --input synthetic:NAME");
        return NULL;
    }
    if (!session_refuse_stopped(s, err))
        return NULL;
    result = s->reports_runs && !request->normal.n ? run_told(s, request, err)
                                                   : run_here(s, request, err);
    if (session_stopped(s)) { /* a run that was cut short is no result */
        *err = ERROR_INIT;
        session_refuse_stopped(s, err);
        result_release(result);
        return NULL;
    }
    return result;
}
