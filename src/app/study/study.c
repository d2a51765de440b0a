/* study.c -- lines and points of a study, its runner, goals and crossover; see study.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/study/study.h"

/* ---- lines ------------------------------------------------------------------ */

bool request_has_tensors(const Request *request)
{
    for (int i = 0; i < request->given.count; i++)
        if (request->given.items[i].tensor.data)
            return true;
    return false;
}

bool study_varies(const Request *request, const char *name)
{
    static const char *const common[] = { "position", "seed", "causal", "fit" };
    const Mechanism         *m = mechanism_find(request->mechanism);

    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
        if (!strcmp(name, common[i]))
            return true;
    return !strncmp(name, "pos_", 4) || (m && mechanism_param(m, &request->given, name));
}

static void name_line(StudyLine *line)
{
    Text text = { 0 };

    request_text(&line->request, &text);
    snprintf(line->name, sizeof(line->name), "%s", text_str(&text));
    text_free(&text);
}

/* A study over n takes times only. */
static void time_only(Request *request)
{
    request->measure = true;
    request->quality = request->missed = false;
    request->seeds = request->keys = 0;
}

static bool add_line(Study *study, const Request *request, bool baseline, Error *err)
{
    StudyLine *line = &study->lines[study->count];
    int        most = study->lengths ? STUDY_LINES : VARY_LINES;

    if (study->count == most)
        return error_set(err, ERR_USAGE, "more than %d mechanisms", most);
    *line = (StudyLine){ .baseline = baseline };
    line->fixed = !study->lengths && (baseline || !study_varies(request, study->axis.name));
    line->points = calloc((size_t)study->axis.count, sizeof(*line->points));
    if (!line->points || !request_copy(&line->request, request, err)) {
        free(line->points);
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s",
                         study->axis.name);
    }
    if (study->lengths)
        time_only(&line->request);
    else if (!line->fixed)
        assignments_remove(&line->request.given, study->axis.name);
    name_line(line);
    study->count++;
    return true;
}

static bool is_baseline(const Request *request)
{
    return (mechanism_find(request->mechanism)->classes & CLASS_BASELINE) && !request->above &&
           !request->given.count;
}

static bool add_baseline(Study *study, const Request *as, Error *err)
{
    const Mechanism *m = mechanism_baseline();
    Request          exact = *as;

    if (!m)
        return true;
    exact.given = (Assignments){ 0 };
    exact.above = NULL;
    snprintf(exact.mechanism, sizeof(exact.mechanism), "%s", m->id);
    return add_line(study, &exact, true, err);
}

#define APART 8 /* a list with this ratio has a logarithmic axis */

static void judge_values(Study *study)
{
    double lo = HUGE_VAL, hi = -HUGE_VAL;

    for (int i = 0; i < study->axis.count; i++) {
        double value = axis_number(&study->axis, i);

        study->words = study->words || !isfinite(value);
        lo = fmin(lo, value);
        hi = fmax(hi, value);
    }
    study->log = !study->words && lo > 0 &&
                 (study->axis.times || (!strchr(study->range, ':') && hi >= APART * lo));
}

bool study_open(Study *study, const char *range, const Request *as, Error *err)
{
    *study = (Study){ .count = 0 };
    if (!axis_parse(range, &study->axis, err))
        return false;
    study->range = strdup(range);
    if (!study->range)
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s",
                         study->axis.name);
    judge_values(study);
    return add_baseline(study, as, err);
}

bool study_open_lengths(Study *study, const Input *like, int64_t first, int64_t last, Error *err)
{
    char range[64];

    *study = (Study){ .measure = true, .lengths = true, .heads = like->heads, .d = like->d };
    snprintf(range, sizeof(range), "n=%lld:%lld:x2", (long long)first, (long long)last);
    return axis_parse(range, &study->axis, err);
}

bool study_add(Study *study, const Request *request, Error *err)
{
    return !study->lengths && is_baseline(request) ? true : add_line(study, request, false, err);
}

bool study_check(const Study *study, Error *err)
{
    for (int i = 0; i < study->count; i++)
        if (!study->lines[i].fixed)
            return true;
    return error_set(err, ERR_PARAM, "%s: none of these mechanisms has the parameter %s",
                     study->range, study->axis.name);
}

void study_free(Study *study)
{
    job_free(study->job);
    for (int i = 0; i < study->count; i++) {
        result_release(study->lines[i].sample);
        text_free(&study->lines[i].warnings);
        request_free(&study->lines[i].request);
        free(study->lines[i].points);
    }
    axis_free(&study->axis);
    free(study->range);
    *study = (Study){ .count = 0 };
}

/* ---- running ---------------------------------------------------------------- */

int study_points(const Study *study, int line)
{
    return study->lines[line].fixed ? 1 : study->axis.count;
}

static bool is_due(const Study *study, int line, int point)
{
    return point < study_points(study, line) && !study->lines[line].points[point].done;
}

bool study_next(Study *study)
{
    int lines = study->count, values = study->axis.count;

    for (int i = 0; i < lines * values; i++) {
        study->line = study->lengths ? i % lines : i / values;
        study->point = study->lengths ? i / lines : i % values;
        if (is_due(study, study->line, study->point))
            return true;
    }
    return false;
}

int study_done(const Study *study, int *all)
{
    int done = 0;

    *all = 0;
    for (int i = 0; i < study->count; i++)
        for (int p = 0; p < study_points(study, i); p++, (*all)++)
            done += study->lines[i].points[p].done;
    return done;
}

bool study_request(const Study *study, Session *s, int line, int point, Request *out, Error *err)
{
    const StudyLine *l = &study->lines[line];
    char             assignment[320];

    if (!request_copy(out, &l->request, err))
        return false;
    if (study->lengths) {
        out->normal = (NormalInput){ .n = strtoll(study->axis.values[point], NULL, 10),
                                     .heads = study->heads,
                                     .d = study->d };
        return true;
    }
    out->measure = study->measure;
    out->quality = !l->baseline;
    if (l->fixed)
        return true;
    snprintf(assignment, sizeof(assignment), "%s=%s", study->axis.name, study->axis.values[point]);
    if (request_set(s, out, assignment, err))
        return true;
    request_free(out);
    return false;
}

static void take_band(StudyPoint *p, StudyQuantity quantity, const SeedSpread *seeds,
                      const SeedBand *band)
{
    if (seeds->count < 2 || !band->mean.valid)
        return;
    p->value[quantity] = band->mean;
    p->low[quantity] = band->min;
    p->high[quantity] = band->max;
}

static void take_quality(StudyPoint *p, const Record *r)
{
    p->value[STUDY_ERROR] = r->quality.output_error;
    p->value[STUDY_MASS] = r->quality.mass_mean;
    p->value[STUDY_VARIATION] = r->quality.total_variation;
    take_band(p, STUDY_ERROR, &r->seeds, &r->seeds.output_error);
    take_band(p, STUDY_MASS, &r->seeds, &r->seeds.mass);
}

static void take_cost(StudyPoint *p, const Record *r, bool measured)
{
    p->value[STUDY_FLOPS] = number_of(flops_total(r->counted));
    if (!measured)
        return;
    p->value[STUDY_MEMORY] = r->arena_peak;
    p->value[STUDY_TIME] = r->time.median;
    if (r->time.count > 1) {
        p->low[STUDY_TIME] = r->time.q1;
        p->high[STUDY_TIME] = r->time.q3;
    }
}

/* Keeps the fastest run; the point is done after enough runs. */
static void take_fastest(StudyPoint *p, const Record *r, int least)
{
    Number *best = &p->value[STUDY_TIME];

    if (r->status == RECORD_OK && r->time.min.valid &&
        (!best->valid || r->time.min.value < best->value)) {
        *best = r->time.min;
        p->busy = record_is_oversubscribed(r);
    }
    p->runs += r->time.count > 0 ? r->time.count : 1;
    p->done = p->runs >= least;
}

static void take_time(StudyPoint *p, const Record *r)
{
    p->value[STUDY_TIME] = r->time.median;
    p->low[STUDY_TIME] = r->time.low;
    p->high[STUDY_TIME] = r->time.high;
}

static void refuse(StudyPoint *p, const char *why)
{
    *p = (StudyPoint){ .done = true };
    snprintf(p->problem, sizeof(p->problem), "%.250s", why);
}

void study_take(Study *study, Result *result)
{
    StudyLine    *l = &study->lines[study->line];
    StudyPoint   *p = &l->points[study->point];
    const Record *r = &result->record;

    study->threads = r->threads;
    study->when = (int64_t)time(NULL);
    if (study->least) {
        take_fastest(p, r, study->least);
        return;
    }
    if (r->status != RECORD_OK) {
        refuse(p, r->message);
        return;
    }
    *p = (StudyPoint){ .done = true, .busy = record_is_oversubscribed(r) };
    if (study->lengths) {
        take_time(p, r);
        return;
    }
    if (!l->baseline)
        take_quality(p, r);
    take_cost(p, r, result->request.measure);
    result_warning_lines(result, &l->warnings);
    if (!l->sample)
        l->sample = result_retain(result);
}

static void study_refuse(Study *study, const Error *err)
{
    refuse(&study->lines[study->line].points[study->point], err->text);
}

static void report_progress(const Study *study, Session *s)
{
    const StudyLine *l = &study->lines[study->line];
    const char      *value = study->axis.values[study->point];
    int              all, done = study_done(study, &all);

    if (study->lengths)
        session_progress(s, "%s: n = %s", study->title, value);
    else if (l->fixed)
        session_progress(s, "%d of %d: %s", done + 1, all, l->name);
    else
        session_progress(s, "%d of %d: %s, %s=%s", done + 1, all, l->name, study->axis.name, value);
}

/* Runs the point that study_next found, on this thread.  False: no result; the point holds the
 * message. */
static bool study_step(Study *study, Session *s, Error *err)
{
    Request request;
    Result *result = NULL;
    bool    ok;

    report_progress(study, s);
    if (study_request(study, s, study->line, study->point, &request, err)) {
        result = session_run(s, &request, err);
        request_free(&request);
    }
    ok = result != NULL;
    if (ok)
        study_take(study, result);
    else
        study_refuse(study, err);
    result_release(result);
    return ok;
}

bool study_run(Study *study, Session *s, Error *err)
{
    if (!study->lengths && !study_check(study, err))
        return false;
    while (study_next(study)) {
        Error why = ERROR_INIT;

        if (!study_step(study, s, &why) && (study->lengths || session_stopped(s))) {
            *err = why;
            return false;
        }
    }
    return true;
}

bool study_begin(Study *study, Session *s)
{
    while (study_next(study)) {
        Error   why = ERROR_INIT;
        Request request;

        if (study_request(study, s, study->line, study->point, &request, &why)) {
            study->job = session_submit(s, &request, &why);
            request_free(&request);
        }
        if (study->job)
            return true;
        study_refuse(study, &why);
    }
    return false;
}

bool study_end(Study *study)
{
    Result *result = job_result(study->job);
    bool    cancelled = !result && job_state(study->job) != JOB_FAILED;

    if (result)
        study_take(study, result);
    else if (!cancelled)
        study_refuse(study, job_error(study->job));
    result_release(result);
    job_free(study->job);
    study->job = NULL;
    return !cancelled;
}

/* ---- reading ---------------------------------------------------------------- */

double study_x(const Study *study, int point)
{
    return study->words ? point : axis_number(&study->axis, point);
}

void study_order(const Study *study, int *order)
{
    for (int i = 0; i < study->axis.count; i++) {
        int at = i;

        for (; at > 0 && study_x(study, order[at - 1]) > study_x(study, i); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

const StudyPoint *study_at(const Study *study, int line, int point)
{
    return &study->lines[line].points[study->lines[line].fixed ? 0 : point];
}

/* ---- goals: the smallest value that is enough, and values in between ----- */

bool goal_parse(const char *text, StudyGoal *out, Error *err)
{
    const char *number = text;
    char       *end;

    *out = (StudyGoal){ .quantity = STUDY_MASS };
    if (!strncmp(text, "error=", 6))
        *out = (StudyGoal){ .quantity = STUDY_ERROR };
    number = text + (out->quantity == STUDY_ERROR ? 6 : !strncmp(text, "mass=", 5) ? 5 : 0);
    out->bound = strtod(number, &end);
    if (*end == '%') {
        out->bound /= 100;
        end++;
    }
    return (end > number && !*end && out->bound > 0 &&
            (out->quantity == STUDY_ERROR ? out->bound < 100 : out->bound <= 1)) ||
           error_set(err, ERR_USAGE,
                     "'%s': expected a share of the mass such as 95%%, or error=5%%", text);
}

/* The worst seed counts. */
static Number worst(const StudyPoint *p, StudyQuantity quantity)
{
    const Number *band = quantity == STUDY_MASS ? p->low : p->high;

    return band[quantity].valid ? band[quantity] : p->value[quantity];
}

/* a is better than b; anything is better than no number. */
static bool is_better(const StudyGoal *goal, Number a, Number b)
{
    if (!a.valid || !b.valid)
        return a.valid;
    return goal->quantity == STUDY_MASS ? a.value > b.value : a.value < b.value;
}

static bool reaches(const StudyGoal *goal, Number n)
{
    double slack = 1e-9; /* 0.95 as a decimal is not a double */

    return n.valid && (goal->quantity == STUDY_MASS ? n.value >= goal->bound - slack
                                                    : n.value <= goal->bound + slack);
}

int study_smallest(const Study *study, int line, const StudyGoal *goal)
{
    int order[AXIS_MOST];

    study_order(study, order);
    for (int i = 0; i < study->axis.count && !study->words && !study->lines[line].fixed; i++)
        if (reaches(goal, worst(study_at(study, line, order[i]), goal->quantity)))
            return order[i];
    return -1;
}

static int best_point(const Study *study, int line, const StudyGoal *goal)
{
    int best = -1;

    for (int i = 0; i < study->axis.count; i++) {
        Number n = worst(study_at(study, line, i), goal->quantity);

        if (n.valid &&
            (best < 0 || is_better(goal, n, worst(study_at(study, line, best), goal->quantity))))
            best = i;
    }
    return best;
}

void study_answer(const Study *study, int line, const StudyGoal *goal, Text *out)
{
    const StudyLine *l = &study->lines[line];
    const Axis      *v = &study->axis;
    bool             mass = goal->quantity == STUDY_MASS;
    int              at = study_smallest(study, line, goal), best = best_point(study, line, goal);
    char             text[32], words[80];

    if (mass)
        snprintf(words, sizeof(words), "keeps %.4g %% of the mass", 100 * goal->bound);
    else
        snprintf(words, sizeof(words), "has an error of at most %.4g", goal->bound);
    if (study->words)
        text_addf(out, "the values of %s are no numbers, so none is the smallest", v->name);
    else if (at >= 0)
        text_addf(out, "%s=%s is the smallest of %d that %s (%s)", v->name, v->values[at], v->count,
                  words,
                  quantity_text(goal->quantity, worst(study_at(study, line, at), goal->quantity),
                                text, sizeof(text)));
    else if (best >= 0)
        text_addf(out, "none of %d values of %s %s; the best is %s at %s", v->count, v->name, words,
                  quantity_text(goal->quantity, worst(study_at(study, line, best), goal->quantity),
                                text, sizeof(text)),
                  v->values[best]);
    else if (l->points[0].problem[0])
        text_addf(out, "%s", l->points[0].problem);
    else
        text_addf(out, "there is no %s here%s", mass ? "kept mass" : "output error",
                  mass ? ": it leaves out no key by choice (error=5% asks for the output error)"
                       : " to compare");
}

/* ---- closing in ------------------------------------------------------------- */

/* Appends a value; the axis orders values by their numbers. */
static bool append_value(Study *study, const char *text, Error *err)
{
    Axis  *v = &study->axis;
    size_t more = (size_t)v->count + 1, length = strlen(study->range) + strlen(text) + 2;
    char **values = realloc(v->values, more * sizeof(*values));
    char  *range = realloc(study->range, length), *copy = strdup(text);

    v->values = values ? values : v->values;
    study->range = range ? range : study->range;
    for (int i = 0; i < study->count && values && range && copy; i++) {
        StudyPoint *points = realloc(study->lines[i].points, more * sizeof(*points));

        if (!points)
            values = NULL;
        else
            study->lines[i].points = points;
    }
    if (!values || !range || !copy) {
        free(copy);
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s", v->name);
    }
    for (int i = 0; i < study->count; i++)
        if (!study->lines[i].fixed)
            study->lines[i].points[v->count] = (StudyPoint){ .done = false };
    v->values[v->count++] = copy;
    strcat(strcat(study->range, ","), text);
    return true;
}

/* The next smaller value on the axis; NaN: none. */
static double number_before(const Study *study, int point)
{
    int order[AXIS_MOST], at = 0;

    study_order(study, order);
    while (order[at] != point)
        at++;
    return at ? study_x(study, order[at - 1]) : (double)NAN;
}

bool study_refine(Study *study, int line, const StudyGoal *goal, Error *err)
{
    const StudyLine *l = &study->lines[line];
    const Mechanism *m = mechanism_find(l->request.mechanism);
    const Param     *p = m ? mechanism_param(m, &l->request.given, study->axis.name) : NULL;
    int              at = study_smallest(study, line, goal);
    double           step = p && p->even ? 2 : 1, low, middle;
    char             text[32];

    if (at < 0 || !p || p->type != PARAM_TYPE_INT || study->axis.count == AXIS_MOST ||
        strchr(study->range, ':'))
        return false;
    low = number_before(study, at);
    middle = low + step * floor((study_x(study, at) - low) / step / 2);
    if (!(middle > low))
        return false;
    snprintf(text, sizeof(text), "%.0f", middle);
    return append_value(study, text, err);
}

/* ---- crossover: where one line becomes faster than the other ------------------ */

#define CROSSOVER_RUNS   3 /* least number of timed runs */
#define CROSSOVER_GROWTH 4 /* usual factor of time from one n to the next */

/* Runs both lines at the next length; false: one of them has no time there. */
static bool compare_at(Study *study, Session *s, bool *faster)
{
    int    at = study->point;
    Number time[2];

    while (study_next(study) && study->point == at) {
        Error ignored = ERROR_INIT;

        study_step(study, s, &ignored);
    }
    for (int i = 0; i < 2; i++)
        time[i] = study->lines[i].points[at].value[STUDY_TIME];
    *faster = time[0].valid && time[1].valid && time[1].value < time[0].value;
    return time[0].valid && time[1].valid;
}

/* from 0: not faster up to `last`. */
static Crossover crossover_at(int64_t from, int64_t last, bool whole)
{
    Crossover c = { .from = { (double)from, from > 0 } };

    format_crossover(from, last, whole, c.text, sizeof(c.text));
    return c;
}

static Crossover search(Study *study, Session *s)
{
    double  spent = 0, last = 0;
    int64_t from = 0;

    while (study_next(study)) {
        int64_t n = strtoll(study->axis.values[study->point], NULL, 10);
        double  began = clock_wall();
        bool    faster;

        if (spent + CROSSOVER_GROWTH * last > CROSSOVER_SECONDS)
            return crossover_at(from, n / 2, false);
        if (!compare_at(study, s, &faster))
            return (Crossover){ .text = "n/a" };
        last = clock_wall() - began;
        spent += last;
        from = !faster ? 0 : from ? from : n;
    }
    return crossover_at(from, CROSSOVER_LAST, true);
}

/* A quick run is timed several times at once; of slow ones a few runs are made. */
static bool add_timed(Study *study, const Request *request)
{
    Request timed = *request; /* borrows */
    Error   ignored = ERROR_INIT;

    timed.repeat = 0;
    return study_add(study, &timed, &ignored);
}

Crossover study_crossover(Session *s, const Request *base, const Request *other)
{
    Crossover found = { .text = "n/a" };
    Study     study;
    Error     ignored = ERROR_INIT;

    if (study_open_lengths(&study, session_input(s), SCALING_FIRST, CROSSOVER_LAST, &ignored) &&
        add_timed(&study, base) && add_timed(&study, other)) {
        study.least = CROSSOVER_RUNS;
        snprintf(study.title, sizeof(study.title), "crossover of %s", other->mechanism);
        found = search(&study, s);
    }
    study_free(&study);
    return found;
}
