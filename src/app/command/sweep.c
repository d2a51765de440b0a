/* sweep.c -- sweep: runs points, writes their records, prints tables of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/sweep.h"

/* ---- progress --------------------------------------------------------------- */

typedef struct SweepContext {
    Session *session;
} SweepContext;

static void tell_point(Session *s, const SweepStand *at)
{
    Text text = { 0 };
    Json json = jsonw_to(&text);

    if (!session_listens(s))
        return;
    jsonw_open(&json, '{');
    jsonw_key_int(&json, "done", at->done);
    jsonw_key_int(&json, "total", at->total);
    jsonw_key_number(&json, "left", at->left >= 0 ? at->left : (double)NAN);
    jsonw_key_raw(&json, "record", at->record);
    jsonw_close(&json, '}');
    session_tell(s, "point", &text);
    text_free(&text);
}

#define BAR 16 /* cells */

/* Full by time, because points of a sweep differ much. */
static void format_bar(const SweepStand *at, char text[2 * BAR + 3])
{
    double whole = at->elapsed + at->left;
    int    full = at->left >= 0 && whole > 0 ? (int)(BAR * at->elapsed / whole) : 0;

    snprintf(text, 2 * BAR + 3, "[%.*s%.*s]", full, "################", BAR - full,
             "----------------");
}

/* A point that ended is a line of its own, where no line is written again and again. */
static void write_line(Session *s, const SweepStand *at, const char *times)
{
    const ResultRow *row = at->row;
    Number           median = row_number(row, "time_ms.median");
    char             time[32];

    session_line(s, "sweep: %d of %d: %.60s n=%lld: %s%s; %s", at->done, at->total,
                 at->now->mechanism, (long long)row->n,
                 row->ok ? format_ms(median, time, sizeof(time)) : row->status,
                 row->ok && median.valid ? " ms" : "", times);
}

static void report(void *context, const SweepStand *at)
{
    Session *s = ((SweepContext *)context)->session;
    char     bar[2 * BAR + 3], times[80];

    format_bar(at, bar);
    format_progress(at->elapsed, at->left, times, sizeof(times));
    session_progress(s, "sweep %s %d of %d points, %s: %.60s n=%lld", bar, at->done, at->total,
                     times, at->now->mechanism, (long long)at->now->n);
    if (!at->record)
        return;
    tell_point(s, at);
    write_line(s, at, times);
}

static void report_to_script(void *context, const SweepStand *at)
{
    const SessionSweep *sweep = session_sweep(((SweepContext *)context)->session);

    report(context, at);
    if (at->record)
        sweep->progress(sweep->context, at->done, at->total, at->record, at->left);
}

static bool show_script(void *context, Text *line, Error *err)
{
    const SessionSweep *sweep = session_sweep(((SweepContext *)context)->session);

    return sweep->record(sweep->context, line, err);
}

static bool asked_to_stop(void *context)
{
    return session_stopped(((SweepContext *)context)->session);
}

/* ---- the result ------------------------------------------------------------- */

static void summarise_sweep(const SweepSpec *spec, const SweepOutcome *o, Text *out)
{
    text_add_count(out, o->points, "point");
    text_addf(out, ": %d measured", o->ok);
    if (o->failed)
        text_addf(out, ", %d not (their records say why)", o->failed);
    if (o->points > o->ok + o->failed)
        text_addf(out, ", %d missing", o->points - o->ok - o->failed);
    if (o->before)
        text_addf(out, "; %d were there before", o->before);
    if (spec->shards > 1)
        text_addf(out, "; shard %d of %d", spec->shard, spec->shards);
    text_add(out, "\n");
    if (spec->acausal.count) {
        text_add_count(out, spec->acausal.count, "mechanism");
        text_add(out, " without a causal form left out:");
        for (int i = 0; i < spec->acausal.count; i++)
            text_addf(out, "%s %s", i ? "," : "", spec->acausal.items[i]);
        text_add(out, "\n");
    }
    if (o->torn)
        text_add(out, "a torn last line was cut off and its point run again\n");
    if (o->damaged) {
        text_add_count(out, o->damaged, "damaged line");
        text_add(out, " passed over\n");
    }
    if (o->budget_ended)
        text_add(out, "the budget ended: --resume goes on\n");
}

/* Seeds and lengths fail alike: their messages differ in numbers alone. */
static bool same_failure(const ResultRow *a, const ResultRow *b)
{
    return !b->ok && !strcmp(a->mechanism, b->mechanism) && !strcmp(a->params, b->params) &&
           !strcmp(a->status, b->status) && text_same_words(a->message, b->message);
}

/* How many rows fail like this one; 0: an earlier one does. */
static int count_alike(const Results *rows, int at)
{
    int count = 0;

    for (int i = 0; i < rows->count; i++) {
        bool same = same_failure(&rows->rows[at], &rows->rows[i]);

        if (same && i < at)
            return 0;
        count += same;
    }
    return count;
}

static void failures(const Results *rows, Text *out)
{
    for (int i = 0; i < rows->count; i++) {
        const ResultRow *row = &rows->rows[i];
        int              alike = row->ok ? 0 : count_alike(rows, i);

        if (!alike)
            continue;
        text_add(out, "  ");
        row_name(rows, row, out);
        text_addf(out, " n=%lld", (long long)row->n);
        if (alike > 1) {
            text_add(out, " and ");
            text_add_count(out, alike - 1, "other point");
        }
        text_addf(out, ": %s: %s\n", row->status, row->message);
    }
}

/* cost.2of8.csv beside cost.2of8.jsonl. */
static bool file_beside(const SweepSpec *spec, const char *ending, const Text *content, Text *out,
                        Error *err)
{
    Text path = { 0 };
    bool ok;

    text_addf(&path, "%.*s%s", (int)(strrchr(spec->path, '.') - spec->path), spec->path, ending);
    ok = text_ok(&path) && text_ok(content)
             ? file_write(text_str(&path), content->data, content->length, err)
             : error_set(err, ERR_NOMEM, "not enough memory for the table");
    if (ok && out)
        text_addf(out, "%s\n", text_str(&path));
    text_free(&path);
    return ok;
}

/* Prints the tables of fits before the points, with the notes that a reader needs. */
static bool markdown(const SweepSpec *spec, const Call *call, const Results *rows, Text *out,
                     Error *err)
{
    Call plain = *call;

    plain.values[OPT_JSON] = plain.values[OPT_RELATIVE] = NULL;
    if (call->values[OPT_EXPONENTS] &&
        !fits_show(rows, &plain, spec->table, TABLE_MARKDOWN, out, err))
        return false;
    if (call->values[OPT_EXPONENTS] || call->values[OPT_RELATIVE]) {
        text_add(out, call->values[OPT_EXPONENTS] ? "\n" : "");
        relative_table(rows, TABLE_MARKDOWN, out);
        text_add(out, "\n");
    }
    points_table(rows, TABLE_MARKDOWN, 0, out);
    return true;
}

/* The chart is drawn from the records, so the command in it reads the records. */
static bool chart(const SweepSpec *spec, const Call *call, const Results *rows, const char *ending,
                  Text *out, Error *err)
{
    const char *words[8] = { "attnscope", "fit", spec->path };
    int         count = 3;
    Text        line = { 0 }, bytes = { 0 };
    Call        plain = *call;
    bool        ok;

    if (spec->table)
        words[count++] = "--table";
    if (spec->decode)
        words[count++] = "--decode";
    if (call->values[OPT_DROP]) {
        words[count++] = "--drop";
        words[count++] = call->values[OPT_DROP];
    }
    words_join(words, count, &line);
    plain.line = text_str(&line);
    ok = fits_chart(rows, &plain, spec->table, ending, &bytes, err) &&
         file_beside(spec, ending, &bytes, out, err);
    text_free(&line);
    text_free(&bytes);
    return ok;
}

/* Writes what -o asks for besides the records; for the surveys' table, two files. */
static bool write_files(const SweepSpec *spec, const Call *call, const Results *rows, Text *out,
                        Error *err)
{
    const char *path = call->values[OPT_OUTPUT];
    bool        table = spec->table && call->values[OPT_EXPONENTS], ok = true;
    Text        text = { 0 };

    if (!path)
        return true;
    if (text_ends_in(path, ".csv")) {
        points_table(rows, TABLE_CSV, 0, &text);
        ok = file_beside(spec, ".csv", &text, out, err);
    }
    text_clear(&text);
    if (ok && (table || text_ends_in(path, ".md")))
        ok = markdown(spec, call, rows, &text, err) && file_beside(spec, ".md", &text, out, err);
    text_free(&text);
    if (ok && rows->count && (table || fits_chart_name(path)))
        ok = chart(spec, call, rows, fits_chart_name(path) ? strrchr(path, '.') : ".png", out, err);
    return ok;
}

static void records(const Results *rows, Text *out)
{
    for (int i = 0; i < rows->count; i++)
        text_addf(out, "%s\n", rows->rows[i].line);
}

static bool show_sweep(const SweepSpec *spec, const Call *call, const Results *rows,
                       const SweepOutcome *outcome, Text *out, Error *err)
{
    bool data = call->values[OPT_JSON] || call->values[OPT_CSV];
    bool fits = call->values[OPT_EXPONENTS] || call->values[OPT_RELATIVE];
    Text files = { 0 };
    bool ok = write_files(spec, call, rows, &files, err);

    if (ok && fits)
        ok = fits_show(rows, call, spec->table, call_style(call), out, err);
    else if (ok && call->values[OPT_JSON])
        records(rows, out);
    else if (ok && (!spec->path || data || call->values[OPT_MD]))
        points_table(rows, call_style(call), call_room(call), out);
    if (ok && !data) {
        text_add(out, fits ? "\n" : "");
        summarise_sweep(spec, outcome, out);
        results_note_warnings(rows, out);
        results_note_oversubscribed(rows, NULL, out);
        if (spec->path || fits) {
            failures(rows, out);
            text_addf(out, "%s%s%s", spec->path ? spec->path : "", spec->path ? "\n" : "",
                      text_str(&files));
        }
    }
    text_free(&files);
    return ok;
}

/* A script reads the records itself, a shard may hold nothing that can be measured, and a budget
 * may end early. */
static bool check_measured(Session *s, const SweepSpec *spec, const SweepOutcome *o,
                           const Results *rows, Error *err)
{
    if (o->ok || !o->failed || o->budget_ended || spec->shards > 1 || session_sweep(s))
        return true;
    return error_set(err, ERR_UNSUPPORTED, "sweep: none of %d point%s was measured; the first, %s "
                     "at n = %lld: %s: %s", o->points, o->points == 1 ? "" : "s",
                     rows->rows[0].mechanism, (long long)rows->rows[0].n, rows->rows[0].status,
                     rows->rows[0].message);
}

static bool run_call(Session *s, const Call *call, const SweepWatch *watch, Results *rows,
                     SweepOutcome *outcome, Text *out, Error *err)
{
    SweepSpec spec;
    Error     ignored = ERROR_INIT;
    bool      ok;

    if (!sweep_spec_parse(s, call, &spec, err))
        return false;
    ok = sweep_run(s, &spec, watch, rows, outcome, err);
    results_sort(rows);
    if (ok)
        ok = show_sweep(&spec, call, rows, outcome, out, err) &&
             check_measured(s, &spec, outcome, rows, err);
    else if (err->code == ERR_CANCELLED) {
        write_files(&spec, call, rows, NULL, &ignored);
        error_set(err, ERR_CANCELLED, "stopped after %d of %d points%s%s%s",
                  outcome->before + outcome->now, outcome->points,
                  spec.path ? "; the same command with --resume goes on (" : "",
                  spec.path ? spec.path : "", spec.path ? ")" : "");
    }
    sweep_spec_free(&spec);
    return ok;
}

bool command_sweep(Session *s, const Call *call, Text *out, Error *err)
{
    SweepContext own = { .session = s };
    SweepWatch   watch = { .context = &own, .progress = report, .stopped = asked_to_stop };
    SweepOutcome outcome;
    Results      rows = { 0 };
    bool         ok;

    if (session_sweep(s)) {
        watch.progress = report_to_script;
        watch.record = show_script;
    }
    session_heeds_stop(s, true);
    ok = run_call(s, call, &watch, &rows, &outcome, out, err);
    session_heeds_stop(s, false);
    results_free(&rows);
    return ok;
}
