/* diff.c -- compares two sweeps, or the two programs of one, point by point: what costs more.  What
 * a point is, and when it is dearer, is match.c's.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/match.h"
#include "app/study/sweep.h"

typedef struct Diff {
    Results     a, b;
    const char *a_name, *b_name;
    MatchPlan   plan;
    bool        gate; /* what is dearer fails */
    Matches     all;
    Text        broken; /* lines of the files that are no records, in words */
} Diff;

/* ---- what is compared --------------------------------------------------------- */

static bool parse_share(const char *text, double *out, Error *err)
{
    char *end;

    *out = -1;
    if (!text)
        return true;
    *out = strtod(text, &end);
    if (end == text || !(*out >= 0 && isfinite(*out)) || (*end && strcmp(end, "%") != 0))
        return error_set(err, ERR_USAGE, "--fail-over: expected a percentage like 5%%, got '%s'",
                         text);
    if (!*end && *out > 0 && *out < 1)
        return error_set(err, ERR_USAGE, "--fail-over: '%s' may mean %g%% or %s%%: write one of "
                         "them", text, 100 * *out, text);
    *out /= 100;
    return true;
}

static bool take_plan(const Call *call, Diff *d, Error *err)
{
    double over;

    if (!parse_share(call->values[OPT_FAILOVER], &over, err))
        return false;
    d->plan.counted = call->values[OPT_COUNTED] != NULL;
    d->gate = over >= 0 || d->plan.counted;
    d->plan.over = over >= 0 ? over : d->plan.counted ? 0 : MATCH_OVER;
    return true;
}

/* Of one file what the other program of `sweep --against` measured is A, of two all of a file. */
static bool split_programs(Diff *d, const Results *from, const char *path, Error *err)
{
    bool ok = true;

    for (int i = 0; ok && i < from->count; i++) {
        const ResultRow *row = &from->rows[i];
        bool             other = *row->against != '\0';

        ok = results_add(other ? &d->a : &d->b, row->line, strlen(row->line), 0, err);
    }
    if (ok && (!d->a.count || !d->b.count))
        return error_set(err, ERR_USAGE, "%s holds runs of one program: diff takes two files, or "
                         "one of sweep --against OTHER", path);
    d->a_name = ok ? d->a.rows[0].against : "";
    d->b_name = "this program";
    return ok;
}

static bool refuse_two_programs(const Results *rows, const char *path, Error *err)
{
    for (int i = 0; i < rows->count; i++)
        if (*rows->rows[i].against)
            return error_set(err, ERR_USAGE, "%s holds runs of two programs: give it alone", path);
    return true;
}

static bool read_one_file(Diff *d, const char *path, Error *err)
{
    Results rows = { 0 };
    bool    ok = results_read(path, 0, &rows, err);

    results_note_broken(&rows, path, 0, &d->broken);
    ok = ok && results_latest(&rows, err) && split_programs(d, &rows, path, err);
    results_free(&rows);
    return ok;
}

static bool read_file(Diff *d, const char *path, Results *out, Error *err)
{
    bool ok = results_read(path, 0, out, err) && refuse_two_programs(out, path, err);

    results_note_broken(out, path, 0, &d->broken);
    return ok && results_latest(out, err);
}

static bool read_files(Diff *d, const Call *call, Error *err)
{
    bool ok;

    if (call->word_count == 1) {
        ok = read_one_file(d, call->words[0], err);
    } else {
        d->a_name = call->words[0];
        d->b_name = call->words[1];
        ok = read_file(d, d->a_name, &d->a, err) && read_file(d, d->b_name, &d->b, err);
    }
    results_sort(&d->a);
    results_sort(&d->b);
    return ok;
}

/* ---- the table ---------------------------------------------------------------- */

static void ratio_cell(Table *t, const Ratio *r)
{
    if (r->lo.valid)
        table_cell(t, "%.3f [%.3f, %.3f]", r->value.value, r->lo.value, r->hi.value);
    else if (r->value.valid)
        table_cell(t, r->value.value < 1e6 ? "%.3f" : "%.3g", r->value.value);
    else
        table_cell(t, "n/a");
}

static void verdict_cell(Table *t, const Match *match)
{
    Text verdict = { 0 };

    for (int cost = 0; cost < MATCH_COSTS; cost++)
        if (match->dearer[cost])
            text_addf(&verdict, "%s%s", verdict.length ? ", " : "dearer: ",
                      match_cost_name((MatchCost)cost));
    table_cell(t, "%s", verdict.length ? text_str(&verdict) : "-");
    text_free(&verdict);
}

static void head_row(const Diff *d, Table *t)
{
    table_cell(t, "mechanism");
    table_cell(t, "n");
    table_cell(t, "seeds");
    if (!d->plan.counted) {
        table_cell(t, "pairs");
        table_cell(t, "time b/a");
        table_cell(t, "p");
    }
    for (int cost = MATCH_FLOPS; cost < MATCH_COSTS; cost++)
        table_cell(t, "%s b/a", match_cost_name((MatchCost)cost));
    table_cell(t, "verdict");
    t->cols = t->count;
    t->keys = 2;
}

static void match_row(const Diff *d, const Match *match, Table *t)
{
    Text name = { 0 };

    series_name(&d->a, match->row, &name);
    table_cell(t, "%s", text_str(&name));
    table_cell(t, "%lld", (long long)match->row->n);
    table_cell(t, "%d", match->seeds);
    if (!d->plan.counted) {
        table_cell(t, "%d", match->pairs - match->busy);
        ratio_cell(t, &match->ratio[MATCH_TIME]);
        table_number(t, match->p, 2);
    }
    for (int cost = MATCH_FLOPS; cost < MATCH_COSTS; cost++)
        ratio_cell(t, &match->ratio[cost]);
    verdict_cell(t, match);
    text_free(&name);
}

static void show_table(const Diff *d, const Call *call, Text *out)
{
    Table table = { .room = call_room(call) };

    head_row(d, &table);
    for (int i = 0; i < d->all.count; i++)
        match_row(d, &d->all.items[i], &table);
    table_write(&table, call_style(call), out);
    table_free(&table);
}

/* ---- the summary -------------------------------------------------------------- */

static int count_dearer(const Diff *d)
{
    int count = 0;

    for (int i = 0; i < d->all.count; i++)
        count += match_is_dearer(&d->all.items[i]);
    return count;
}

static int count_unjudged(const Diff *d, const char **why, int *busy)
{
    int count = 0;

    *busy = 0;
    for (int i = 0; i < d->all.count; i++) {
        const Match *match = &d->all.items[i];

        *why = !count && match->unjudged ? match->unjudged : *why;
        count += match->unjudged != NULL;
        *busy += match->busy;
    }
    return count;
}

/* Above the table: why cells of time are empty, before a reader meets them. */
static void explain_gaps(const Diff *d, Text *out)
{
    const char *why = "";
    int         busy, unjudged = count_unjudged(d, &why, &busy);

    if (unjudged) {
        text_add(out, "time of ");
        text_add_count(out, unjudged, "point");
        text_addf(out, " was not judged: %s%s\n", why,
                  strcmp(why, MATCH_NO_TURNS) ? "" : " (sweep --against OTHER runs two so)");
    }
    if (busy) {
        text_add_count(out, busy, "pair");
        text_add(out, " left out: the machine did other work while they were timed\n");
    }
    if (unjudged || busy)
        text_add(out, "\n");
}

static void summarise_time(const Diff *d, Text *out)
{
    text_addf(out, "time: trimmed mean of the pairs' ratios [95 %% interval].  p: of at most %g %% "
              "dearer, corrected by Holm over all points; dearer at %g or less.\n",
              100 * d->plan.over, MATCH_LEVEL);
}

static void apart_line(const Diff *d, const MatchApart *apart, Text *out)
{
    const ResultRow *row = apart->row;

    text_add(out, "  ");
    series_name(apart->kind == APART_NEW ? &d->b : &d->a, row, out);
    text_addf(out, " n=%lld seed=%lld", (long long)row->n, (long long)row->seed);
    if (row->process > 1)
        text_addf(out, " process=%lld", (long long)row->process);
    text_addf(out, ": %s\n", apart->why);
}

/* "2 points cheaper; the most: FLOPs of full n=64, 0.001 of a's": what no gate fails by, and may be
 * less work than was asked for.  Nothing where none is. */
static int note_cheaper(const Diff *d, Text *out)
{
    const Match *most = NULL;
    MatchCost    cost = MATCH_FLOPS, of = MATCH_FLOPS;
    int          count = 0;

    for (int i = 0; i < d->all.count; i++) {
        const Match *match = &d->all.items[i];

        if (!match_is_cheaper(match, &d->plan, &of))
            continue;
        if (!count++ || match->ratio[of].value.value < most->ratio[cost].value.value) {
            most = match;
            cost = of;
        }
    }
    if (!count)
        return 0;
    text_add_count(out, count, "point");
    text_addf(out, " cheaper; the most: %s of ", match_cost_name(cost));
    series_name(&d->a, most->row, out);
    text_addf(out, " n=%lld, %.3g of a's", (long long)most->row->n, most->ratio[cost].value.value);
    return count;
}

static void summarise_cheaper(const Diff *d, Text *out)
{
    if (note_cheaper(d, out))
        text_add(out, "\n");
}

static void summarise(const Diff *d, Text *out)
{
    const int *apart = d->all.count_of;

    text_add(out, "\n");
    text_add_count(out, d->all.count, "point");
    text_addf(out, " in both, %d dearer by more than %g %%; missing %d, no longer measured %d, new "
              "%d\n", count_dearer(d), 100 * d->plan.over, apart[APART_MISSING],
              apart[APART_UNMEASURED], apart[APART_NEW]);
    for (int i = 0; i < d->all.apart_count; i++)
        apart_line(d, &d->all.apart[i], out);
    summarise_cheaper(d, out);
    text_addf(out, "b/a: above 1 is dearer.  a: %s.  b: %s.\n", d->a_name, d->b_name);
    text_add(out, text_str(&d->broken));
    results_note_versions(&d->a, &d->b, out);
    if (d->plan.counted)
        return;
    results_note_oversubscribed(&d->a, &d->b, out);
    summarise_time(d, out);
}

/* ---- JSON --------------------------------------------------------------------- */

static void json_time(Json *j, const Match *match)
{
    const Ratio *time = &match->ratio[MATCH_TIME];

    jsonw_key_open(j, "time", '{');
    jsonw_key_number(j, "ratio", number_or_nan(time->value));
    jsonw_key_number(j, "low", number_or_nan(time->lo));
    jsonw_key_number(j, "high", number_or_nan(time->hi));
    jsonw_key_number(j, "p", number_or_nan(time->p));
    jsonw_key_number(j, "p_holm", number_or_nan(match->p));
    jsonw_key_int(j, "pairs", match->pairs - match->busy);
    jsonw_key_int(j, "busy_pairs", match->busy);
    jsonw_key_string(j, "unjudged", match->unjudged);
    jsonw_close(j, '}');
}

static void json_point(Json *j, const ResultRow *row)
{
    jsonw_key_string(j, "mechanism", row->mechanism);
    jsonw_key_raw(j, "params", row->params);
    jsonw_key_string(j, "source", row->source);
    jsonw_key_int(j, "d", row->d);
    jsonw_key_int(j, "heads", row->heads);
    jsonw_key_bool(j, "causal", row->causal);
    jsonw_key_string(j, "position", row->position);
    jsonw_key_string(j, "device", row->device);
    jsonw_key_string(j, "precision", row->precision);
    jsonw_key_int(j, "threads", row->threads);
    jsonw_key_int(j, "n", row->n);
}

static void json_apart(Json *j, const MatchApart *apart)
{
    jsonw_open(j, '{');
    jsonw_key_string(j, "what", apart_name(apart->kind));
    json_point(j, apart->row);
    jsonw_key_int(j, "seed", apart->row->seed);
    jsonw_key_int(j, "process", apart->row->process);
    jsonw_key_string(j, "message", apart->why);
    jsonw_close(j, '}');
}

static void json_match(const Diff *d, Json *j, const Match *match)
{
    jsonw_open(j, '{');
    json_point(j, match->row);
    jsonw_key_int(j, "seeds", match->seeds);
    if (!d->plan.counted)
        json_time(j, match);
    jsonw_key_number(j, "flops", number_or_nan(match->ratio[MATCH_FLOPS].value));
    jsonw_key_number(j, "bytes", number_or_nan(match->ratio[MATCH_BYTES].value));
    jsonw_key_number(j, "memory", number_or_nan(match->ratio[MATCH_MEMORY].value));
    jsonw_key_open(j, "dearer", '[');
    for (int cost = 0; cost < MATCH_COSTS; cost++)
        if (match->dearer[cost])
            jsonw_string(j, match_cost_name((MatchCost)cost));
    jsonw_close(j, ']');
    jsonw_close(j, '}');
}

static void json_cheaper(const Diff *d, Json *j)
{
    Text note = { 0 };

    jsonw_key_int(j, "cheaper", note_cheaper(d, &note));
    jsonw_key_string(j, "note", note.length ? text_str(&note) : NULL);
    text_free(&note);
}

static void show_json(const Diff *d, Text *out)
{
    Json j = jsonw_to(out);

    jsonw_open(&j, '{');
    jsonw_key_string(&j, "a", d->a_name);
    jsonw_key_string(&j, "b", d->b_name);
    jsonw_key_bool(&j, "counted", d->plan.counted);
    jsonw_key_number(&j, "over", d->plan.over);
    jsonw_key_number(&j, "level", d->plan.counted ? (double)NAN : MATCH_LEVEL);
    jsonw_key_int(&j, "dearer", count_dearer(d));
    for (int kind = 0; kind < APART_KINDS; kind++)
        jsonw_key_int(&j, apart_name((ApartKind)kind), d->all.count_of[kind]);
    json_cheaper(d, &j);
    jsonw_key_open(&j, "apart", '[');
    for (int i = 0; i < d->all.apart_count; i++)
        json_apart(&j, &d->all.apart[i]);
    jsonw_close(&j, ']');
    jsonw_key_open(&j, "points", '[');
    for (int i = 0; i < d->all.count; i++)
        json_match(d, &j, &d->all.items[i]);
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    text_add(out, "\n");
}

/* ---- the command ------------------------------------------------------------ */

/* A gate of time that saw no time passes nothing. */
static bool judge_time(const Diff *d, Error *err)
{
    const char *why = "";
    int         busy;

    if (d->plan.counted || count_unjudged(d, &why, &busy) < d->all.count)
        return true;
    return error_set(err, ERR_UNJUDGED, "no verdict: the time of no point was judged: %s; "
                     "--counted judges FLOPs, bytes and memory alone", why);
}

/* The row of b that differs from the first of a in the fewest things, and in what. */
static void nearest_difference(const Diff *d, Text *out)
{
    const ResultRow *a = d->a.rows;
    int              fewest = INT_MAX;

    for (int i = 0; d->a.count && i < d->b.count; i++) {
        Text said = { 0 };
        int  count = row_differences(a, &d->b.rows[i], &said);

        if (count < fewest) {
            fewest = count;
            text_clear(out);
            text_add(out, count ? text_str(&said)
                                : "an option or the input, which no record names");
        }
        text_free(&said);
    }
}

static bool holds_measured(const Results *rows)
{
    for (int i = 0; i < rows->count; i++)
        if (!strcmp(rows->rows[i].status, record_status_name(RECORD_OK)))
            return true;
    return !rows->count; /* an empty file has a message of its own */
}

static bool refuse_apart(const Diff *d, Error *err)
{
    const ResultRow *a = d->a.rows;
    Text             what = { 0 };

    nearest_difference(d, &what);
    if (!holds_measured(&d->a) || !holds_measured(&d->b))
        error_set(err, ERR_DATA, "%s has no measured point, so nothing can be compared; the "
                  "records' messages say why", holds_measured(&d->a) ? d->b_name : d->a_name);
    else if (what.length)
        error_set(err, ERR_DATA, "%s and %s have no measured point in common; %s n=%lld of the "
                  "first and the nearest of the second differ in %.300s. Sweep both with the same "
                  "options", d->a_name, d->b_name, a->mechanism, (long long)a->n, text_str(&what));
    else
        error_set(err, ERR_DATA, "%s and %s have no measured point in common: one holds none",
                  d->a_name, d->b_name);
    text_free(&what);
    return false;
}

static bool judge_diff(const Diff *d, Error *err)
{
    const int *apart = d->all.count_of;
    int        dearer = count_dearer(d);

    if (!d->all.count)
        return refuse_apart(d, err);
    if (!d->gate)
        return true;
    if (!(dearer + apart[APART_MISSING] + apart[APART_UNMEASURED]))
        return judge_time(d, err);
    return error_set(err, ERR_DIFFERENCE, "%s against %s: %d dearer, %d missing, %d no longer "
                     "measured", d->b_name, d->a_name, dearer, apart[APART_MISSING],
                     apart[APART_UNMEASURED]);
}

bool command_diff(Session *s, const Call *call, Text *out, Error *err)
{
    Diff d = { .plan.over = 0 };
    bool ok;

    (void)s;
    if (!call->word_count)
        return error_set(err, ERR_USAGE, "diff needs two result files, or one of sweep --against: "
                         "attnscope diff old.jsonl new.jsonl --counted");
    ok = take_plan(call, &d, err) && read_files(&d, call, err) &&
         matches_find(&d.a, &d.b, &d.plan, &d.all, err);
    if (ok) {
        bool words = !call->values[OPT_JSON] && !call->values[OPT_CSV];

        if (words && !d.plan.counted)
            explain_gaps(&d, out);
        if (call->values[OPT_JSON])
            show_json(&d, out);
        else
            show_table(&d, call, out);
        if (words)
            summarise(&d, out);
        ok = judge_diff(&d, err);
    }
    text_free(&d.broken);
    matches_free(&d.all);
    results_free(&d.a);
    results_free(&d.b);
    return ok;
}
