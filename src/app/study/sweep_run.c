/* sweep_run.c -- runs the points that the result file lacks, each as a process.
 *
 * A line is one write() to a file opened for appending, so a kill leaves whole lines and at most
 * one torn line, which the next run cuts off.  The disk is synchronised once a second at most: that
 * protects against a machine's failure; a process's failure loses nothing written.
 *
 * --resume runs again what was stopped, failed or ran out of memory, and what a device did not
 * support (another machine may).  Measured points and impossible ones stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/program.h"
#include "app/scripts.h"
#include "app/study/sweep.h"
#include "core/shortage.h"

#define SYNC_SECONDS 1.0
#define TELL_SECONDS 0.5

typedef struct Journal {
    const char *path;
    int         file; /* -1: none */
    double      synced;
} Journal;

typedef struct SweepRun {
    const SweepSpec  *spec;
    const SweepPlan  *plan;
    const SweepWatch *watch;
    SweepOutcome     *outcome;
    Results          *rows; /* of the file, then the new ones */
    Journal           journal;
    int              *row_of; /* row of each point; -1: none yet */
    double            began;
    int               at;    /* the point that runs */
    double            started, told; /* clock_wall: of this point, of the last progress */
    double            left;  /* seconds, as the point began; < 0: not known */
} SweepRun;

static bool stopped(const SweepRun *s);
static void tell(SweepRun *s, const char *record);

/* ---- one point: its command, `attnscope run ... --json` ---------------------- */

__attribute__((format(printf, 3, 4)))
static bool add_argument(WordList *out, Error *err, const char *fmt, ...)
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

/* The words of the point's command. */
static bool sweep_words(const SweepSpec *spec, const SweepPoint *p, WordList *out, Error *err)
{
    bool ok = add_argument(out, err, "%s", p->against ? spec->against : "attnscope");

    for (int i = 0; ok && i < p->scripts.count; i++)
        ok = add_argument(out, err, "--lua=%s", p->scripts.items[i]);
    ok = ok && add_argument(out, err, "run") && add_argument(out, err, "%s", p->mechanism) &&
         add_argument(out, err, "--input=%s", spec->input);

    if (spec->layer)
        ok = ok && add_argument(out, err, "--layer=%lld", (long long)spec->layer);
    if (p->n)
        ok = ok && add_argument(out, err, "--n=%lld", (long long)p->n);
    if (spec->d)
        ok = ok && add_argument(out, err, "--d=%lld", (long long)spec->d);
    if (spec->heads)
        ok = ok && add_argument(out, err, "--heads=%lld", (long long)spec->heads);
    if (p->causal >= 0)
        ok = ok && add_argument(out, err, p->causal ? "--causal" : "--no-causal");
    if (p->fit)
        ok = ok && add_argument(out, err, "--fit");
    if (strcmp(p->position, "none") != 0)
        ok = ok && add_argument(out, err, "--position=%s", p->position);
    if (*p->device)
        ok = ok && add_argument(out, err, "--device=%s", p->device);
    if (*p->precision)
        ok = ok && add_argument(out, err, "--precision=%s", p->precision);
    if (p->threads)
        ok = ok && add_argument(out, err, "--threads=%d", p->threads);
    if (spec->repeat)
        ok = ok && add_argument(out, err, "--repeat=%d", spec->repeat);
    if (spec->within > 0)
        ok = ok && add_argument(out, err, "--within=%.17g", spec->within);
    if (spec->quality)
        ok = ok && add_argument(out, err, "--quality");
    if (spec->decode)
        ok = ok && add_argument(out, err, "--decode");
    if (spec->quality_rows)
        ok = ok && add_argument(out, err, "--quality-rows=%lld", (long long)spec->quality_rows);
    if (spec->memory_given) /* otherwise what the input leaves of it */
        ok = ok && add_argument(out, err, "--mem=%lld", (long long)spec->memory);
    return ok && add_argument(out, err, "--seed=%llu", (unsigned long long)p->seed) &&
           add_argument(out, err, "--json");
}

/* ---- the record ------------------------------------------------------------- */

/* Writes the sweep's keys before those of the record, whose '{' is at json[0]. */
static void compose(const SweepSpec *spec, const SweepPoint *point, const Child *child,
                    const char *json, size_t length, Text *line)
{
    WordList words = { 0 };
    Text     command = { 0 };
    Json     j = jsonw_to(line);

    if (sweep_words(spec, point, &words, NULL))
        words_join((const char *const *)words.items, words.count, &command);
    words_free(&words);
    jsonw_open(&j, '{');
    jsonw_key_string(&j, "key", point->key);
    jsonw_key_string(&j, "point", point->identity);
    jsonw_key_string(&j, "asked", point->asked);
    jsonw_key_string(&j, "command", text_str(&command));
    jsonw_key_string(&j, "source", spec->input);
    jsonw_key_string(&j, "input_sha256", spec->input_sha256);
    jsonw_key_open(&j, "process", '{');
    jsonw_key_int(&j, "number", point->process);
    jsonw_key_string(&j, "against", point->against ? spec->against : NULL);
    jsonw_key_number(&j, "seconds", child ? child->seconds : (double)NAN);
    jsonw_key_number(&j, "cpu_seconds", child ? child->cpu : (double)NAN);
    jsonw_close(&j, '}');
    text_add(line, ",");
    text_add_bytes(line, json + 1, length - 1);
    text_free(&command);
}

/* Writes the record of a point without numbers; child NULL: it was not run. */
static void refuse_point(const SweepSpec *spec, const SweepPoint *point, const Child *child,
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
                      .status = status,
                      .ended = (int64_t)time(NULL) };
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
    record_take_script(&record, mechanism_find(record.mechanism), NULL);
    record.quality.worst_query = record.quality.worst_head = -1;
    record_json(&record, &j);
    compose(spec, point, child, text_str(&json), json.length, line);
    text_free(&json);
}

/* Older programs, of --against, give their errors no code. */
static RecordStatus status_of(const Child *child)
{
    const ErrorCode code = child_error(child);

    if (WIFSIGNALED(child->status))
        return RECORD_FAILED;
    if (code == ERR_NOMEM)
        return RECORD_OOM;
    return code == ERR_UNSUPPORTED || WEXITSTATUS(child->status) == error_exit_status(ERR_USAGE)
               ? RECORD_UNSUPPORTED : RECORD_FAILED;
}

/* Of a point that left no record, as where its input is refused. */
static RecordStatus reason(const Child *child, char *text, size_t size)
{
    if (child->late) {
        snprintf(text, size, "the budget ended after %.1f s of this point", child->seconds);
        return RECORD_CANCELLED;
    }
    child_reason(child, text, size);
    return status_of(child);
}

/* exec needs NULL after the last word. */
static bool words_end(WordList *words, Error *err)
{
    if (!words_add(words, "", 0, err))
        return false;
    free(words->items[--words->count]);
    words->items[words->count] = NULL;
    return true;
}

/* One whole JSON object on one line that a file of records may hold: of --against, any program may
 * have written it. */
static bool is_record(const Text *text)
{
    const char *end = text->length ? memchr(text->data, '\n', text->length) : NULL;
    Results     rows = { 0 };
    Error       ignored = ERROR_INIT;
    bool        is = end && end == text->data + text->length - 1 && text->data[0] == '{' &&
              end[-1] == '}' && results_add(&rows, text->data, text->length - 1, 0, &ignored) &&
              rows.count > 0;

    results_free(&rows);
    return is;
}

/* Polled while a process runs. */
static bool look(void *context)
{
    SweepRun *s = context;

    if (clock_wall() - s->told >= TELL_SECONDS)
        tell(s, NULL);
    return stopped(s);
}

/* Runs one point in a process; its record is a line without newline, also where the point fails.
 * False: no process could start, or it was stopped.  deadline: clock_wall. */
static bool sweep_point(SweepRun *s, const SweepPoint *point, double deadline, Text *line,
                        Error *err)
{
    const SweepSpec *spec = s->spec;
    ChildWatch       looks = { .deadline = deadline, .stopped = look, .context = s,
                               .program = point->against ? spec->against : NULL };
    WordList         words = { 0 };
    Child            child = { .err = -1 };
    Text             output = { 0 };
    int64_t          refused = shortage_count();
    char             why[500];
    bool             ok = sweep_words(spec, point, &words, err) && words_end(&words, err);

    for (int i = 0; ok && i < point->scripts.count; i++)
        ok = script_file_unchanged(point->scripts.items[i], err);
    ok = ok && child_run(&child, words.items, &looks, &output, err);
    words_free(&words);
    if (ok && child.stopped)
        ok = error_set(err, ERR_CANCELLED, "stopped");
    else if (ok && !child.late && !WIFSIGNALED(child.status) && is_record(&output))
        compose(spec, point, &child, output.data, output.length - 1, line);
    else if (ok && shortage_count() > refused) /* not the child's fault */
        ok = error_set(err, ERR_NOMEM, "not enough memory for a record");
    else if (ok)
        refuse_point(spec, point, &child, reason(&child, why, sizeof(why)), why, line);
    child_end(&child);
    text_free(&output);
    return ok;
}

/* ---- the file --------------------------------------------------------------- */

static bool file_error(const Journal *j, const char *what, Error *err)
{
    return error_set(err, ERR_FILE, "%s: cannot be %s: %s", j->path, what, strerror(errno));
}

/* A torn line is cut off only where it begins like a record. */
static bool cut_torn(SweepRun *s, Error *err)
{
    static const char begin[] = "{\"key\":\"";
    Journal          *j = &s->journal;
    char              found[sizeof(begin)] = "";
    ssize_t           got = pread(j->file, found, sizeof(begin) - 1, (off_t)s->rows->whole_bytes);

    if (got <= 0)
        return file_error(j, "read", err);
    if (memcmp(found, begin, (size_t)got) != 0)
        return error_set(err, ERR_FORMAT,
                         "%s ends in a line that is no record of a sweep; give another -o FILE",
                         j->path);
    return ftruncate(j->file, (off_t)s->rows->whole_bytes) == 0 || file_error(j, "cut", err);
}

/* A table or a chart was asked for: the file of its records was never named. */
static bool there_already(const SweepRun *s, Error *err)
{
    const char *path = s->journal.path, *asked = s->spec->asked;

    if (!asked || s->spec->shards > 1 || !strcmp(asked, path))
        return error_set(err, ERR_USAGE,
                         "%s is there already: --resume goes on with it, or remove it", path);
    return error_set(err, ERR_USAGE, "%s is there already, where the records of %s are kept: "
                     "--resume goes on with them; or give another -o, or remove both", path, asked);
}

/* Reads the file's records and cuts off a torn line. */
static bool read_before(SweepRun *s, Error *err)
{
    Journal    *j = &s->journal;
    const off_t size = lseek(j->file, 0, SEEK_END);

    if (size <= 0)
        return size == 0 || file_error(j, "read", err);
    if (!s->spec->resume)
        return there_already(s, err);
    if (!results_read(j->path, 0, s->rows, err))
        return false;
    s->outcome->torn = s->rows->torn;
    s->outcome->damaged = s->rows->damaged;
    return !s->rows->torn || cut_torn(s, err);
}

static bool journal_open(SweepRun *s, Error *err)
{
    Journal *j = &s->journal;

    *j = (Journal){ .path = s->spec->path, .file = -1, .synced = clock_wall() };
    if (!j->path)
        return true;
    j->file = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (j->file < 0)
        return file_error(j, "written", err);
    if (flock(j->file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return error_set(err, ERR_FILE, "%s: another sweep is writing it", j->path);
    return read_before(s, err);
}

static bool journal_add(Journal *j, Text *line, Error *err)
{
    double now = clock_wall();

    text_add(line, "\n");
    if (!text_ok(line))
        return error_set(err, ERR_NOMEM, "not enough memory for a record");
    if (j->file < 0)
        return true;
    for (size_t at = 0; at < line->length;) {
        ssize_t wrote = write(j->file, line->data + at, line->length - at);

        if (wrote < 0 && errno != EINTR)
            return file_error(j, "written", err);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    if (now - j->synced < SYNC_SECONDS)
        return true;
    j->synced = now;
    return fdatasync(j->file) == 0 || errno == EINVAL || file_error(j, "written to disk", err);
}

static void journal_close(Journal *j)
{
    if (j->file < 0)
        return;
    fdatasync(j->file);
    close(j->file);
}

/* ---- forecasts -------------------------------------------------------------- */

/* Grows as between the last two points, or in proportion to one. */
Forecast forecast_growth(const int64_t *n, const double *y, int count, int64_t at)
{
    Forecast f = { .slope = 1, .loose = count < 2 };

    if (count < 1 || n[count - 1] >= at || n[count - 1] < 1)
        return f;
    f.from = n[count - 1];
    if (count > 1 && n[count - 2] > 0 && n[count - 2] < f.from && y[count - 2] > 0 &&
        y[count - 1] > 0)
        f.slope = log(y[count - 1] / y[count - 2]) / log((double)f.from / (double)n[count - 2]);
    f.slope = fmin(fmax(f.slope, 0), 3);
    f.value = number_of(y[count - 1] * pow((double)at / (double)f.from, f.slope));
    return f;
}

/* Forecast of a number of the record, from the two longest points of the series. */
static Forecast forecast(const SweepRun *s, int at, const char *path)
{
    const SweepPoint *point = &s->plan->points[at];
    int64_t           n[2];
    double            y[2];
    int               count = 0;

    for (int i = point->shorter; i >= 0 && count < 2; i = s->plan->points[i].shorter) {
        const SweepPoint *other = &s->plan->points[i];
        Number            value;

        if (s->row_of[i] < 0)
            continue;
        value = row_number(&s->rows->rows[s->row_of[i]], path);
        if (!value.valid)
            continue;
        if (count++) { /* from the longest down */
            n[1] = n[0];
            y[1] = y[0];
        }
        n[0] = other->n;
        y[0] = value.value;
    }
    return forecast_growth(n, y, count, point->n);
}

/* A shorter point of the series that ran out of memory. */
static const ResultRow *ran_out_before(const SweepRun *s, int at)
{
    for (int i = s->plan->points[at].shorter; i >= 0; i = s->plan->points[i].shorter)
        if (s->row_of[i] >= 0 &&
            !strcmp(s->rows->rows[s->row_of[i]].status, record_status_name(RECORD_OOM)))
            return &s->rows->rows[s->row_of[i]];
    return NULL;
}

/* ---- refusals --------------------------------------------------------------- */

/* A loose forecast refuses a run from so many times the limit on.  From n to 8 n, a usual step of
 * sweeps, all of the memory may be a part that does not grow, and the forecast 8 times too high. */
#define LOOSE 8

static bool refuse_memory(const SweepRun *s, int at, char *why, size_t size)
{
    const SweepPoint *point = &s->plan->points[at];
    const ResultRow  *before = ran_out_before(s, at);
    Forecast          f = forecast(s, at, "memory.arena_peak");
    char              need[32], limit[32];
    const char       *whose = s->spec->memory_given
                                  ? "--mem is" : "half of what this process may have is";

    format_bytes(s->spec->memory, limit, sizeof(limit));
    if (before) {
        snprintf(why, size, "not run: n=%lld needed more memory than it may have: %s %s",
                 (long long)before->n, whose, limit);
        return true;
    }
    if (!f.value.valid || !(f.value.value > (f.loose ? LOOSE : 1) * (double)s->spec->memory))
        return false;
    format_bytes((int64_t)f.value.value, need, sizeof(need));
    snprintf(why, size,
             "not run: it would need about %s of working memory (grown from n=%lld as "
             "n^%.2f to n=%lld), %s %s%s",
             need, (long long)f.from, f.slope, (long long)point->n, whose, limit,
             s->spec->memory_given ? "" : " (--mem SIZE is another limit)");
    return true;
}

static double deadline(const SweepRun *s)
{
    return s->spec->budget > 0 ? s->began + s->spec->budget : 0;
}

/* Makes the record of a point: run, or refused with the reason. */
static bool point_line(SweepRun *s, int at, Text *line, Error *err)
{
    const SweepPoint *point = &s->plan->points[at];
    char              why[320];

    if (*point->refused) {
        refuse_point(s->spec, point, NULL, RECORD_UNSUPPORTED, point->refused, line);
    } else if (deadline(s) > 0 && clock_wall() >= deadline(s)) {
        snprintf(why, sizeof(why), "not run: the budget of %.0f s ended before it",
                 s->spec->budget);
        s->outcome->budget_ended = true;
        refuse_point(s->spec, point, NULL, RECORD_CANCELLED, why, line);
    } else if (refuse_memory(s, at, why, sizeof(why))) {
        refuse_point(s->spec, point, NULL, RECORD_OOM, why, line);
    } else {
        return sweep_point(s, point, deadline(s), line, err);
    }
    return true;
}

/* ---- all of them ------------------------------------------------------------ */

static bool is_final(const ResultRow *row)
{
    return row->ok || (!strcmp(row->status, record_status_name(RECORD_UNSUPPORTED)) &&
                       !strcmp(row->device, "cpu"));
}

static bool find_before(SweepRun *s, Error *err)
{
    if (!results_latest(s->rows, err))
        return false;
    for (int i = 0; i < s->plan->count; i++) {
        const ResultRow *row = results_find(s->rows, s->plan->points[i].key);

        s->row_of[i] = row && is_final(row) ? (int)(row - s->rows->rows) : -1;
        s->outcome->before += s->row_of[i] >= 0;
    }
    return true;
}

static bool stopped(const SweepRun *s)
{
    return s->watch && s->watch->stopped && s->watch->stopped(s->watch->context);
}

/* The time left counts down while a point runs, but not below what the later ones need. */
static double left_now(const SweepRun *s, bool ended)
{
    double later = sweep_left(s->spec, s->plan, s->rows, s->row_of, s->at + 1);
    double rest = s->left - (clock_wall() - s->started);

    return ended || later < 0 || rest < later ? later : rest;
}

static void tell(SweepRun *s, const char *record)
{
    SweepStand stand = { .done = s->outcome->before + s->outcome->now,
                         .total = s->plan->count,
                         .now = &s->plan->points[s->at],
                         .elapsed = clock_wall() - s->began,
                         .record = record,
                         .row = record ? &s->rows->rows[s->rows->count - 1] : NULL };

    s->told = clock_wall();
    if (!s->watch || !s->watch->progress)
        return;
    stand.left = left_now(s, record != NULL);
    s->watch->progress(s->watch->context, &stand);
}

static void begin_point(SweepRun *s, int at)
{
    s->at = at;
    s->started = clock_wall();
    s->left = sweep_left(s->spec, s->plan, s->rows, s->row_of, at);
    tell(s, NULL);
}

/* A line that cannot be read is skipped by results_add; one of our own lacked memory. */
static bool add_row(SweepRun *s, const Text *line, Error *err)
{
    int before = s->rows->count;

    return results_add(s->rows, line->data, line->length - 1, 0, err) &&
           (s->rows->count > before ||
            error_set(err, ERR_NOMEM, "not enough memory to read the record of a point"));
}

static bool run_point(SweepRun *s, int at, Error *err)
{
    Text line = { 0 };
    bool ok;

    begin_point(s, at);
    ok = point_line(s, at, &line, err);

    if (ok && s->watch && s->watch->record)
        ok = s->watch->record(s->watch->context, &line, err);
    ok = ok && journal_add(&s->journal, &line, err) && add_row(s, &line, err);
    if (ok) {
        s->row_of[at] = s->rows->count - 1;
        s->outcome->now++;
        line.data[--line.length] = '\0';
        tell(s, line.data);
    }
    text_free(&line);
    return ok;
}

static bool run_missing(SweepRun *s, Error *err)
{
    bool ok = true;

    for (int i = 0; ok && i < s->plan->count; i++)
        if (s->row_of[i] < 0)
            ok = stopped(s) ? error_set(err, ERR_CANCELLED, "stopped") : run_point(s, i, err);
    return ok;
}

/* Keeps the rows of the plan in its order; the file may hold others. */
static bool keep_plan(SweepRun *s, Error *err)
{
    Results kept = { 0 };
    bool    ok = true;

    for (int i = 0; ok && i < s->plan->count; i++) {
        const ResultRow *row = s->row_of[i] >= 0 ? &s->rows->rows[s->row_of[i]] : NULL;

        if (!row)
            continue;
        ok = results_add(&kept, row->line, strlen(row->line), 0, err);
        s->outcome->ok += row->ok;
        s->outcome->failed += !row->ok;
    }
    results_free(s->rows);
    *s->rows = kept;
    return ok;
}

bool sweep_run(Session *session, const SweepSpec *spec, const SweepWatch *watch, Results *rows,
               SweepOutcome *out, Error *err)
{
    SweepPlan plan = { 0 };
    SweepRun  s = { .spec = spec,
                    .plan = &plan,
                    .watch = watch,
                    .outcome = out,
                    .rows = rows,
                    .journal.file = -1,
                    .began = clock_wall() };
    bool      ok;

    *out = (SweepOutcome){ 0 };
    if (!sweep_plan(session, spec, &plan, err))
        return false;
    out->points = plan.count;
    s.row_of = calloc((size_t)plan.count + 1, sizeof(*s.row_of));
    ok = s.row_of || error_set(err, ERR_NOMEM, "not enough memory for the sweep");
    ok = ok && journal_open(&s, err);
    if (ok) {
        ok = find_before(&s, err) && run_missing(&s, err);
        ok = keep_plan(&s, ok ? err : NULL) && ok;
    }
    journal_close(&s.journal);
    free(s.row_of);
    sweep_plan_free(&plan);
    return ok;
}
