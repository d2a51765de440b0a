/* campaign_point.c -- one point: a process `attnscope run ... --json`, and its record.
 *
 * The child is in a process group of its own, so that Ctrl-C reaches the sweep
 * alone, and dies with its parent, so that a sweep killed outright leaves nothing
 * running.  Between fork and exec only async-signal-safe calls are made: the
 * explorer and Lua sweep from a process with threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/command_parts.h"
#include "app/campaign.h"
#include "app/place.h"
#include "attn/cuda/library.h"

/* ---- the command ------------------------------------------------------------ */

static bool add_word(WordList *out, Error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool add_word(WordList *out, Error *err, const char *fmt, ...)
{
    char   *text = NULL;
    va_list args;
    bool    ok;

    va_start(args, fmt);
    ok = vasprintf(&text, fmt, args) >= 0;
    va_end(args);
    ok = ok ? words_add(out, text, strlen(text), err)
            : error_set(err, ERR_NOMEM, "not enough memory");
    free(text);
    return ok;
}

/* The words of the command that runs it. */
static bool campaign_words(const CampaignSpec *spec, const CampaignPoint *p, WordList *out,
                           Error *err)
{
    bool ok = add_word(out, err, "attnscope") && add_word(out, err, "run") &&
              add_word(out, err, "%s", p->mechanism) &&
              add_word(out, err, "--input=%s", spec->input);

    if (spec->layer)
        ok = ok && add_word(out, err, "--layer=%lld", (long long)spec->layer);
    if (p->n)
        ok = ok && add_word(out, err, "--n=%lld", (long long)p->n);
    if (spec->d)
        ok = ok && add_word(out, err, "--d=%lld", (long long)spec->d);
    if (spec->heads)
        ok = ok && add_word(out, err, "--heads=%lld", (long long)spec->heads);
    if (p->causal >= 0)
        ok = ok && add_word(out, err, p->causal ? "--causal" : "--no-causal");
    if (p->fit)
        ok = ok && add_word(out, err, "--fit");
    if (strcmp(p->position, "none") != 0)
        ok = ok && add_word(out, err, "--position=%s", p->position);
    if (*p->device)
        ok = ok && add_word(out, err, "--device=%s", p->device);
    if (*p->precision)
        ok = ok && add_word(out, err, "--precision=%s", p->precision);
    if (p->threads)
        ok = ok && add_word(out, err, "--threads=%d", p->threads);
    if (spec->repeat)
        ok = ok && add_word(out, err, "--repeat=%d", spec->repeat);
    if (spec->within > 0)
        ok = ok && add_word(out, err, "--within=%.17g", spec->within);
    if (spec->quality)
        ok = ok && add_word(out, err, "--quality");
    return ok && add_word(out, err, "--seed=%llu", (unsigned long long)p->seed) &&
           add_word(out, err, "--mem=%lld", (long long)spec->memory) &&
           add_word(out, err, "--json");
}

/* ---- the process ------------------------------------------------------------ */

typedef struct Child {
    pid_t  pid;
    int    out, err; /* read ends: a pipe, a memory file */
    int    status;   /* of waitpid */
    double seconds, cpu;
    bool   stopped, late;
} Child;

static void become(const char *program, char *const *words, int out, int errors, pid_t parent)
{
    sigset_t none;
    int      null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
        _exit(127);
    execv(program, words);
    _exit(127);
}

static bool start(const char *program, char *const *words, Child *child, Error *err)
{
    pid_t parent = getpid();
    int   ends[2] = { -1, -1 };

    child->err = memfd_create("attnscope-messages", MFD_CLOEXEC);
    if (child->err < 0 || pipe2(ends, O_CLOEXEC) != 0 || (child->pid = fork()) < 0) {
        int why = errno;

        if (child->err >= 0)
            close(child->err);
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        return error_set(err, ERR_NOMEM, "a point's process cannot be started: %s", strerror(why));
    }
    if (child->pid == 0)
        become(program, words, ends[1], child->err, parent);
    close(ends[1]);
    child->out = ends[0];
    return true;
}

static void look(Child *child, double deadline, const CampaignWatch *watch)
{
    child->stopped = watch && watch->stopped && watch->stopped(watch->context);
    child->late = deadline > 0 && clock_wall() > deadline;
    if (child->stopped || child->late)
        kill(child->pid, SIGKILL);
}

/* Until its output ends; what it said goes to *text. */
static void follow(Child *child, double deadline, const CampaignWatch *watch, Text *text)
{
    struct rusage usage;
    char          bytes[8192];
    double        began = clock_wall();
    bool          open = true;

    while (open) {
        struct pollfd ready = { .fd = child->out, .events = POLLIN };

        if (!child->stopped && !child->late)
            look(child, deadline, watch);
        if (poll(&ready, 1, 50) > 0) {
            ssize_t got = read(child->out, bytes, sizeof(bytes));

            open = got > 0 || (got < 0 && errno == EINTR);
            if (got > 0)
                text_add_bytes(text, bytes, (size_t)got);
        }
    }
    close(child->out);
    while (wait4(child->pid, &child->status, 0, &usage) < 0 && errno == EINTR)
        continue;
    child->seconds = clock_wall() - began;
    child->cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The last line of what it said on stderr, without the program's name. */
static void last_message(int file, char *text, size_t size)
{
    char        bytes[4096];
    off_t       end = lseek(file, 0, SEEK_END), most = sizeof(bytes) - 1;
    ssize_t     got = pread(file, bytes, (size_t)most, end > most ? end - most : 0);
    const char *line;

    *text = '\0';
    while (got > 0 && bytes[got - 1] == '\n')
        got--;
    if (got <= 0)
        return;
    bytes[got] = '\0';
    line = strrchr(bytes, '\n');
    line = line ? line + 1 : bytes;
    if (!strncmp(line, "attnscope: ", 11))
        line += 11;
    snprintf(text, size, "%.*s", (int)size - 1, line);
}

/* ---- the record ------------------------------------------------------------- */

/* Keys of the sweep before those of the record, whose '{' is at json[0]. */
static void compose(const CampaignSpec *spec, const CampaignPoint *point, const Child *child,
                    const char *json, size_t length, Text *line)
{
    WordList words = { 0 };
    Text     command = { 0 };
    Json     j = jsonw_to(line);

    if (campaign_words(spec, point, &words, NULL))
        words_join((const char *const *)words.items, words.count, &command);
    words_free(&words);
    jsonw_open(&j, '{');
    jsonw_key(&j, "key");
    jsonw_string(&j, point->key);
    jsonw_key(&j, "asked");
    jsonw_string(&j, point->asked);
    jsonw_key(&j, "command");
    jsonw_string(&j, text_str(&command));
    jsonw_key(&j, "source");
    jsonw_string(&j, spec->input);
    jsonw_key(&j, "input_sha256");
    jsonw_string(&j, spec->input_sha256);
    jsonw_key(&j, "process");
    jsonw_open(&j, '{');
    jsonw_key(&j, "seconds");
    child ? jsonw_number(&j, child->seconds) : jsonw_null(&j);
    jsonw_key(&j, "cpu_seconds");
    child ? jsonw_number(&j, child->cpu) : jsonw_null(&j);
    jsonw_close(&j, '}');
    text_add(line, ",");
    text_add_bytes(line, json + 1, length - 1);
    text_free(&command);
}

static void refusal(const CampaignSpec *spec, const CampaignPoint *point, const Child *child,
                    RecordStatus status, const char *why, Text *line)
{
    Record record = { .n = point->n,
                      .m = point->n,
                      .d = spec->d,
                      .e = spec->d,
                      .params = point->params,
                      .heads = spec->heads,
                      .causal = point->causal > 0,
                      .seed = point->seed,
                      .threads = point->threads,
                      .status = status };
    Text   json = { 0 };
    Json   j = jsonw_to(&json);

    snprintf(record.mechanism, sizeof(record.mechanism), "%.*s",
             (int)strcspn(point->mechanism, "("), point->mechanism);
    snprintf(record.position, sizeof(record.position), "%s", point->position);
    snprintf(record.device, sizeof(record.device), "%s", *point->device ? point->device : "cpu");
    snprintf(record.precision, sizeof(record.precision), "%s",
             *point->precision ? point->precision : "f32");
    snprintf(record.input, sizeof(record.input), "%.120s", spec->input);
    snprintf(record.message, sizeof(record.message), "%s", why);
    record.quality.worst_query = record.quality.worst_head = -1;
    record_json(&record, &j);
    compose(spec, point, child, text_str(&json), json.length, line);
    text_free(&json);
}

void campaign_refuse(const CampaignSpec *spec, const CampaignPoint *point, RecordStatus status,
                     const char *why, Text *line)
{
    refusal(spec, point, NULL, status, why, line);
}

static RecordStatus reason(const Child *child, char *text, size_t size)
{
    if (child->late) {
        snprintf(text, size, "the budget ended after %.1f s of this point", child->seconds);
        return RECORD_CANCELLED;
    }
    if (WIFSIGNALED(child->status)) {
        int number = WTERMSIG(child->status);

        snprintf(text, size, "its process was ended by signal %d (%s)%s", number, strsignal(number),
                 number == SIGKILL ? "; when nobody sent it, the system was out of memory" : "");
        return RECORD_FAILED;
    }
    last_message(child->err, text, size);
    if (!*text)
        snprintf(text, size, "its process said nothing and left with status %d",
                 WEXITSTATUS(child->status));
    return WEXITSTATUS(child->status) == error_exit_status(ERR_USAGE) ||
                   !strncmp(text, NO_GPU, strlen(NO_GPU))
               ? RECORD_UNSUPPORTED
               : RECORD_FAILED;
}

/* One whole JSON object on one line. */
static bool is_record(const Text *text)
{
    const char *end = text->length ? memchr(text->data, '\n', text->length) : NULL;

    return end && end == text->data + text->length - 1 && text->data[0] == '{' && end[-1] == '}';
}

bool campaign_point(const CampaignSpec *spec, const CampaignPoint *point, double deadline,
                    const CampaignWatch *watch, Text *line, Error *err)
{
    WordList words = { 0 };
    Child    child = { 0 };
    Text     said = { 0 }, program = { 0 };
    char     why[500];
    bool     ok = campaign_words(spec, point, &words, err) && words_add(&words, "", 0, err);

    ok = ok && place_program(&program, err);
    if (ok) { /* execv wants NULL after the last word */
        free(words.items[--words.count]);
        words.items[words.count] = NULL;
        ok = start(text_str(&program), words.items, &child, err);
    }
    words_free(&words);
    text_free(&program);
    if (!ok)
        return false;
    follow(&child, deadline, watch, &said);
    if (child.stopped)
        ok = error_set(err, ERR_CANCELLED, "stopped");
    else if (!child.late && !WIFSIGNALED(child.status) && is_record(&said))
        compose(spec, point, &child, said.data, said.length - 1, line);
    else
        refusal(spec, point, &child, reason(&child, why, sizeof(why)), why, line);
    close(child.err);
    text_free(&said);
    return ok;
}
