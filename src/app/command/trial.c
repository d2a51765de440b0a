/* trial.c -- trial: tries the GPU's faster ways and keeps the outcome. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/session/session.h"

/* Sets environment variables before the device is opened.  n: length of the runs; 0: the usual one.
 * False: no run could be made, which says nothing about the way (err). */
static bool trial_here(Session *s, DeviceWay way, int64_t n, TrialVerdict *out, Error *err);

static bool way_of(const char *word, DeviceWay *out, Error *err)
{
    return way_named(word, out) ||
           error_set(err, ERR_USAGE, "trial: expected wgmma or graphs, got '%s'", word);
}

static bool here(Session *s, const Call *call, Text *out, Error *err)
{
    TrialVerdict   verdict;
    DeviceWay way;
    int64_t   n = 0;

    if (!trials_allowed()) /* the variables it sets, and a broken GPU, would stay */
        return error_set(err, ERR_USAGE, "trial --here is for a process of its own: say 'trial'");
    trials_forbid(); /* the run would begin other trials */
    if (call->word_count != 1)
        return error_set(err, ERR_USAGE, "trial --here needs one word: wgmma or graphs");
    if (!way_of(call->words[0], &way, err) ||
        !call_int(call, OPT_N, 1, INT64_C(1) << 20, &n, err) ||
        !trial_here(s, way, n, &verdict, err))
        return false;
    text_addf(out, "%s\n", verdict.what);
    return verdict.good || error_set(err, ERR_DIFFERENCE, "%s is not to be used", way_name(way));
}

/* This process uses the outcome, too, from here on. */
static void settle_way(Device *device, DeviceWay way, const TrialVerdict *verdict)
{
    device_hold(device, NULL);
    device_way_settle(device, way, verdict->good, verdict->what);
    device_leave(device);
}

static bool is_stopped(void *context)
{
    return session_stopped(context);
}

/* Tries one way and prints the outcome; a way that could not be tried is no failure. */
static void try_one(Session *s, Device *device, DeviceWay way, Text *out)
{
    Error   err = ERROR_INIT;
    TrialVerdict verdict;

    if (device_way(device, way) == WAY_ABSENT) {
        text_addf(out, "  %-10s %s\n", way_name(way), device_way_text(device, way));
        return;
    }
    session_progress(s, "trying %s", way_name(way));
    if (!trial_make(way, is_stopped, s, &verdict, &err)) {
        text_addf(out, "  %-10s %s\n", way_name(way), err.text);
        return;
    }
    settle_way(device, way, &verdict);
    text_addf(out, "  %-10s %s: %s\n", way_name(way), verdict.good ? "used" : "not used",
              verdict.what);
    if (!trial_keep(device, way, &verdict, &err))
        text_addf(out, "  %-10s not kept: %s\n", "", err.text);
}

bool command_trial(Session *s, const Call *call, Text *out, Error *err)
{
    DeviceWay ways[DEVICE_WAYS] = { WAY_WARPGROUP, WAY_GRAPHS };
    int       count = call->word_count ? call->word_count : DEVICE_WAYS;
    Device   *device;
    Text      path = { 0 };

    if (call->values[OPT_HERE])
        return here(s, call, out, err);
    if (call->values[OPT_N])
        return error_set(err, ERR_USAGE, "trial: -n goes with --here");
    for (int i = 0; i < call->word_count; i++)
        if (!way_of(call->words[i], &ways[i], err))
            return false;
    trials_forbid(); /* no trials on opening the device */
    device = session_device(s, err);
    if (!device)
        return false;
    text_addf(out, "%s\n", device_info(device)->name);
    session_heeds_stop(s, true);
    for (int i = 0; i < count && !session_stopped(s); i++)
        try_one(s, device, ways[i], out);
    session_heeds_stop(s, false);
    if (session_stopped(s))
        return error_set(err, ERR_CANCELLED, "trial: stopped; nothing is kept of the one that ran");
    if (trials_path(&path, NULL))
        text_addf(out, "  kept in    %s\n", text_str(&path));
    text_free(&path);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory");
}

/* ---- the runs of a trial ------------------------------------------------- */

#define HEADS 4
#define LONGER 4   /* times n, where times are compared */

/* Both kernels round weights to 8 bits (bf16) or 11 (f16), each relative to its own largest
 * score. */
#define NEAR 1e-2

/* Sizes of the runs: an emulated GPU runs its threads one after another on the CPU. */
typedef struct Size {
    int64_t n;
    int     repeats; /* timed runs at least */
} Size;

typedef struct Trial {
    Session *session;
    bool     emulated; /* the times are those of a CPU, and decide nothing */
    int64_t  n;
    int      repeats;
    TrialVerdict *out;
    Error   *err;
} Trial;

/* Sets the outcome: the way itself is at fault. */
__attribute__((format(printf, 2, 3))) static bool bad(const Trial *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(t->out->what, sizeof(t->out->what), fmt, args);
    va_end(args);
    t->out->good = false;
    return false;
}

/* Runs the mechanism; NULL: *t holds the outcome or, without memory, an error. */
static Result *run_trial(const Trial *t, const char *mechanism, int causal, const char *precision,
                         int repeats)
{
    Request request = REQUEST_INIT;
    Result *result = NULL;

    request.causal = causal;
    request.repeat = repeats;
    request.measure = repeats > 0;
    if (request_device(t->session, &request, "cuda", precision, t->err) &&
        request_parse(t->session, &request, mechanism, t->err))
        result = session_run(t->session, &request, t->err);
    request_free(&request);
    if (result && result->run->err.code) {
        if (result->run->err.code == ERR_NOMEM)
            *t->err = result->run->err;
        else
            bad(t, "%s in %s: %s", mechanism, precision, result->run->err.text);
        result_release(result);
        return NULL;
    }
    return result;
}

static bool load(const Trial *t, int64_t n, int64_t d, int64_t heads)
{
    return session_load(t->session, "synthetic:normal",
                        &(InputChoice){ .n = n, .d = d, .heads = heads }, t->err);
}

/* ---- wgmma ------------------------------------------------------------------------------ */

static void use_way(bool yes)
{
    setenv(way_variable(WAY_WARPGROUP), yes ? "1" : "0", 1);
    setenv("ATTNSCOPE_CUDNN", "0", 1);
}

/* Largest difference of two outputs, as a share of the largest number; NaN: an output is not
 * finite. */
static double largest_difference(const Tensor *a, const Tensor *b)
{
    double  most = 0, most_apart = 0;
    int64_t count = tensor_count(a);

    for (int64_t i = 0; i < count; i++) {
        double x = (double)tensor_f32(a)[i], y = (double)tensor_f32(b)[i];

        if (!isfinite(x) || !isfinite(y))
            return (double)NAN;
        most = fmax(most, fabs(y));
        most_apart = fmax(most_apart, fabs(x - y));
    }
    return most_apart / fmax(most, 1e-30);
}

static bool agrees(const Trial *t, const char *mechanism, int causal, const char *precision)
{
    Result *own, *other = NULL;
    double  far = (double)NAN;
    bool    ok;

    use_way(true);
    own = run_trial(t, mechanism, causal, precision, 0);
    use_way(false);
    if (own)
        other = run_trial(t, mechanism, causal, precision, 0);
    ok = other != NULL;
    if (ok && !strstr(own->record.computed, "wgmma"))
        ok = bad(t, "%s in %s did not take it: %s", mechanism, precision,
                 own->record.warnings ? own->record.warnings : "nothing was said");
    if (ok)
        far = largest_difference(&own->run->out, &other->run->out);
    if (ok && !(far <= NEAR))
        ok = bad(t, "%s in %s is apart by %.2g of the largest number from our kernel for all GPUs",
                 mechanism, precision, far);
    result_release(own);
    result_release(other);
    return ok;
}

static double trial_time(const Trial *t, bool taken, const char *precision)
{
    Result *result;
    double  ms = (double)NAN;

    use_way(taken);
    result = run_trial(t, "full", 0, precision, t->repeats);
    if (result && result->record.time.median.valid)
        ms = result->record.time.median.value;
    result_release(result);
    return ms;
}

/* Sets whether the way is to be used; returns the end of the outcome's text. */
static const char *judge(const Trial *t, double own, double other)
{
    t->out->good = t->emulated || own < other;
    return t->out->good ? "" : ": not faster";
}

static void compare_times(const Trial *t, const char *precision)
{
    double      other = trial_time(t, false, precision), own = trial_time(t, true, precision);
    const char *end;

    if (!isfinite(own) || !isfinite(other)) {
        if (!*t->out->what && !t->err->code)
            bad(t, "its time is not known");
        return;
    }
    end = judge(t, own, other);
    snprintf(t->out->what, sizeof(t->out->what),
             "right; exact attention in %s, n = %lld, takes %.3g ms and by our kernel for all GPUs "
             "%.3g ms%s", precision, (long long)(LONGER * t->n), own, other, end);
}

static void try_warpgroup(const Trial *t)
{
    static const char *const precisions[] = { "bf16", "f16" };
    static const char *const mechanisms[] = { "full", "window", "bigbird" };
    static const int64_t     sizes[] = { 64, 128 };

    for (int size = 0; size < 2; size++) {
        if (!load(t, t->n, sizes[size], HEADS))
            return;
        for (int x = 0; x < 2; x++)
            for (int m = 0; m < 3; m++)
                for (int causal = 0; causal < 2; causal++)
                    if (!agrees(t, mechanisms[m], causal, precisions[x]))
                        return;
    }
    if (load(t, LONGER * t->n, 128, 4 * HEADS))
        compare_times(t, "bf16");
}

/* ---- graphs ----------------------------------------------------------------------------- */

typedef struct Replays {
    int    count;
    double ms, plain_ms; /* sums */
} Replays;

static bool replay(const Trial *t, const char *mechanism, const char *precision, Replays *sum)
{
    Result              *result = run_trial(t, mechanism, 0, precision, t->repeats);
    const DeviceProfile *gpu = result ? result->record.gpu : NULL;
    bool                 ok = result != NULL;

    if (ok && (!gpu || !gpu->graph.replayed))
        ok = bad(t, "%s in %s: %s", mechanism, precision,
                 gpu && *gpu->graph.why ? gpu->graph.why : "it was not measured");
    if (ok) {
        sum->count++;
        sum->ms += result->record.time.median.value;
        sum->plain_ms += gpu->graph.plain_ms.value;
    }
    result_release(result);
    return ok;
}

static void try_graphs(const Trial *t)
{
    static const char *const mechanisms[] = { "full", "window", "linear", "gmlp" };
    Replays                  sum = { 0 };
    const char              *end;

    setenv(way_variable(WAY_GRAPHS), "1", 1);
    if (!load(t, t->n, 64, HEADS))
        return;
    for (int m = 0; m < 4; m++)
        if (!replay(t, mechanisms[m], "f32", &sum) || !replay(t, mechanisms[m], "bf16", &sum))
            return;
    end = judge(t, sum.ms, sum.plain_ms);
    snprintf(t->out->what, sizeof(t->out->what),
             "right; %d runs of n = %lld take %.3g ms as graphs and %.3g ms without%s", sum.count,
             (long long)t->n, sum.ms, sum.plain_ms, end);
}

/* ---- both ------------------------------------------------------------------------------- */

static bool is_emulated(const Device *d)
{
    return strcmp(device_api(d)->name, DEVICE_REAL) != 0;
}

static Size usual(const Device *d, DeviceWay way)
{
    if (is_emulated(d))
        return (Size){ 40, 1 };
    return way == WAY_WARPGROUP ? (Size){ 1000, 20 } : (Size){ 256, 20 };
}

static bool trial_here(Session *s, DeviceWay way, int64_t n, TrialVerdict *out, Error *err)
{
    Trial   t = { .session = s, .n = n, .out = out, .err = err };
    Device *device;

    *out = (TrialVerdict){ .good = false };
    setenv(way_variable(way), "1", 1);
    setenv("ATTNSCOPE_CUPTI", "0", 1); /* kernels are not traced: whole runs are timed */
    device = session_device(s, err);
    if (!device)
        return false;
    t.emulated = is_emulated(device);
    t.n = n ? n : usual(device, way).n;
    t.repeats = usual(device, way).repeats;
    if (device_way(device, way) == WAY_ABSENT) {
        bad(&t, "%s", device_way_text(device, way));
        return true;
    }
    (way == WAY_WARPGROUP ? try_warpgroup : try_graphs)(&t);
    return *out->what != '\0';
}
