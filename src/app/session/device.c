/* device.c -- the session's GPU, and trials of its faster ways; see session.h. */
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/program.h"
#include "app/session/internal.h"
#include "app/session/session.h"
#include "attn/cuda/host/library.h"
#include "profile/measure.h"

static bool precision_parse(const char *text, Arithmetic *out, Error *err)
{
    for (int x = 0; x <= ARITHMETIC_F16; x++)
        if (!strcmp(text, arithmetic_name((Arithmetic)x))) {
            *out = (Arithmetic)x;
            return true;
        }
    return error_set(err, ERR_USAGE, "--precision: expected f32, tf32, bf16 or f16, got '%s'",
                     text);
}

static void report_trial(void *session, const char *text)
{
    session_progress(session, "%s", text);
}

Device *session_device(Session *s, Error *err)
{
    if (!s->device) {
        s->device = device_open(err);
        if (s->device)
            trials_apply(s->device, report_trial, s);
    }
    return s->device;
}

bool device_word(const char *device, Error *err)
{
    return !*device || !strcmp(device, "cpu") || !strcmp(device, "cuda") ||
           !strcmp(device, "auto") ||
           error_set(err, ERR_USAGE, "--device: expected cpu, cuda or auto, got '%s'", device);
}

bool precision_word(const char *precision, Error *err)
{
    Arithmetic arithmetic;

    return !*precision || precision_parse(precision, &arithmetic, err);
}

/* Parses both words; *gpu: not the CPU. */
static bool wanted(const char *device, const char *precision, bool *gpu, Arithmetic *arithmetic,
                   Error *err)
{
    *arithmetic = ARITHMETIC_F32;
    *gpu = strcmp(device, "cpu") != 0;
    if (!device_word(device, err) || !precision_parse(precision, arithmetic, err))
        return false;
    return *gpu || *arithmetic == ARITHMETIC_F32 ||
           error_set(err, ERR_USAGE, "--precision %s: the CPU computes in f32; say --device cuda",
                     precision);
}

bool request_device(Session *s, Request *request, const char *device, const char *precision,
                    Error *err)
{
    Arithmetic arithmetic;
    Device    *gpu = NULL;
    bool       asked, automatic;

    device = device && *device ? device : "cpu";
    precision = precision && *precision ? precision : "f32";
    if (!wanted(device, precision, &asked, &arithmetic, err))
        return false;
    automatic = !strcmp(device, "auto");
    if (asked)
        gpu = session_device(s, automatic ? NULL : err);
    request->ops = gpu ? device_ops(gpu, arithmetic) : NULL;
    snprintf(request->device, sizeof(request->device), "%s", gpu ? "cuda" : "cpu");
    snprintf(request->precision, sizeof(request->precision), "%s",
             arithmetic_name(gpu ? arithmetic : ARITHMETIC_F32));
    return gpu || !asked || automatic;
}

bool request_next_place(Session *s, Request *request, Error *err)
{
    int next = request->ops ? (int)arithmetic_of(request->ops) + 1 : 0;

    if (next > ARITHMETIC_F16)
        return request_device(s, request, "cpu", NULL, err);
    return request_device(s, request, "cuda", arithmetic_name((Arithmetic)next), err);
}

void request_place(const Request *request, Text *out)
{
    if (!request->ops)
        text_add(out, "cpu");
    else
        text_addf(out, "%s%s%s", request->device, arithmetic_of(request->ops) ? " " : "",
                  arithmetic_of(request->ops) ? request->precision : "");
}

const char *request_gpu(const Request *request)
{
    const Device *device = device_of(request->ops);

    return device ? device_info(device)->name : NULL;
}

/* ---- trials: a line of the file is "WAY<tab>GPU, driver, library<tab>used/not<tab>words" ---- */

#define NAME "trials"
#define LARGEST (1 << 18)
#define PATIENCE 120 /* seconds; a kernel that waits for nothing ends after 20 */
#define USED "used"
#define NOT "not"

static struct {
    pthread_mutex_t lock; /* of trials: one at a time */
    atomic_bool     allowed;
} policy = { .lock = PTHREAD_MUTEX_INITIALIZER };

void trials_allow(void)
{
    atomic_store(&policy.allowed, true);
}

void trials_forbid(void)
{
    atomic_store(&policy.allowed, false);
}

bool trials_allowed(void)
{
    return atomic_load(&policy.allowed);
}

/* ---- what is known -------------------------------------------------------------------- */

bool trials_path(Text *out, Error *err)
{
    return place_state(NAME, out, err);
}

/* Identifies the trial: another driver or build of the kernels needs a new one. */
static void about(const Device *d, DeviceWay way, Text *out)
{
    const DeviceInfo *info = device_info(d);
    struct stat       file = { 0 };

    stat(device_path(d), &file);
    text_addf(out, "%s\t%s, %d.%d, driver for %d, library of %lld bytes from %lld\t", way_name(way),
              info->name, info->major, info->minor, info->driver, (long long)file.st_size,
              (long long)file.st_mtime);
}

/* Reads the file without the lines of this way on this machine; *out gets the last of these. */
static bool read_rest(const Device *d, DeviceWay way, TrialVerdict *out, Text *rest)
{
    Text path = { 0 }, text = { 0 }, key = { 0 };
    bool found = false;

    about(d, way, &key);
    if (trials_path(&path, NULL) && text_ok(&key))
        place_read(text_str(&path), LARGEST, &text, NULL);
    for (const char *at = text_str(&text), *end; (end = strchr(at, '\n')); at = end + 1) {
        char word[8];

        if (strncmp(at, key.data, key.length) != 0)
            text_add_bytes(rest, at, (size_t)(end + 1 - at));
        else if (sscanf(at + key.length, "%7[a-z]\t%255[^\n]", word, out->what) == 2) {
            out->good = !strcmp(word, USED);
            found = true;
        }
    }
    text_free(&path);
    text_free(&text);
    text_free(&key);
    return found;
}

bool trial_recall(const Device *d, DeviceWay way, TrialVerdict *out)
{
    Text rest = { 0 };
    bool found = read_rest(d, way, out, &rest);

    text_free(&rest);
    return found;
}

bool trial_keep(const Device *d, DeviceWay way, const TrialVerdict *verdict, Error *err)
{
    Text    path = { 0 }, text = { 0 };
    TrialVerdict before;
    bool    ok = trials_path(&path, err) && place_make_folders(text_str(&path), err);

    if (ok) {
        read_rest(d, way, &before, &text);
        about(d, way, &text);
        text_addf(&text, "%s\t%s\n", verdict->good ? USED : NOT, verdict->what);
        ok = text_ok(&text) ? place_write(text_str(&path), text.data, text.length, err)
                            : error_set(err, ERR_NOMEM, "not enough memory to keep a trial");
    }
    text_free(&path);
    text_free(&text);
    return ok;
}

/* ---- trials ----------------------------------------------------------------------------- */

/* Copies one line without tabs, as the file and doctor print it. */
static void take_words(TrialVerdict *out, const char *words)
{
    snprintf(out->what, sizeof(out->what), "%.*s", (int)strcspn(words, "\n"), words);
    for (char *at = out->what; (at = strchr(at, '\t')); )
        *at = ' ';
}

/* Exit statuses of a trial with an outcome.  Another status, or a signal from outside, says nothing
 * about the way (no GPU, no memory left on it). */
static bool answers(const Child *child)
{
    int status = WEXITSTATUS(child->status);

    return !WIFSIGNALED(child->status) &&
           (!status || status == error_exit_status(ERR_DIFFERENCE));
}

static bool is_crash(const Child *child)
{
    return WIFSIGNALED(child->status) && WTERMSIG(child->status) != SIGKILL;
}

static bool judge(const Child *child, const char *output, TrialVerdict *out, Error *err)
{
    char why[256];

    out->good = answers(child) && WEXITSTATUS(child->status) == 0 && *output;
    if (child->late)
        snprintf(why, sizeof(why), "its trial had not ended after %d s", PATIENCE);
    else
        child_reason(child, why, sizeof(why));
    if (!child->late && !is_crash(child) && !(answers(child) && *output))
        return error_set(err, ERR_UNSUPPORTED, "not tried: %s", why);
    take_words(out, answers(child) ? output : why);
    return true;
}

bool trial_make(DeviceWay way, bool (*stopped)(void *context), void *context, TrialVerdict *out,
                Error *err)
{
    const ChildWatch watch = { .deadline = clock_wall() + PATIENCE,
                               .stopped = stopped,
                               .context = context };
    char  program[] = "attnscope", command[] = "trial", here[] = "--here", name[16];
    char *words[] = { program, command, here, name, NULL };
    Child child;
    Text  output = { 0 };
    bool  ok;

    *out = (TrialVerdict){ .good = false };
    snprintf(name, sizeof(name), "%s", way_name(way));
    ok = child_run(&child, words, &watch, &output, err);
    if (ok && child.stopped)
        ok = error_set(err, ERR_CANCELLED, "stopped");
    else if (ok)
        ok = judge(&child, text_str(&output), out, err);
    child_end(&child);
    text_free(&output);
    return ok;
}

/* Without a state folder every start would try again. */
static bool can_keep(void)
{
    char folder[PATH_MAX];
    Text path = { 0 };
    bool ok = trials_path(&path, NULL) && place_make_folders(text_str(&path), NULL);

    snprintf(folder, sizeof(folder), "%s", ok ? text_str(&path) : "");
    text_free(&path);
    return ok && access(dirname(folder), W_OK) == 0;
}

static bool try_first(Device *d, DeviceWay way, TrialReport report, void *context,
                      TrialVerdict *out)
{
    char text[160];

    if (!trials_allowed() || !can_keep())
        return false;
    snprintf(text, sizeof(text), "trying %s, once (%d s at most; %s=0 goes without)", way_name(way),
             PATIENCE, way_variable(way));
    report(context, text);
    return trial_make(way, NULL, NULL, out, NULL) && trial_keep(d, way, out, NULL);
}

void trials_apply(Device *d, TrialReport report, void *context)
{
    TrialVerdict verdict;

    pthread_mutex_lock(&policy.lock);
    for (int x = 0; x < DEVICE_WAYS; x++) {
        DeviceWay way = (DeviceWay)x;

        if (device_way(d, way) == WAY_UNTRIED &&
            (trial_recall(d, way, &verdict) || try_first(d, way, report, context, &verdict)))
            device_way_settle(d, way, verdict.good, verdict.what);
    }
    pthread_mutex_unlock(&policy.lock);
}
