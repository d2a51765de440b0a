/* vary.c -- see vary.h: lines, points and the numbers of their runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/study/vary.h"

static const struct {
    const char *name;
    bool        measured;
} quantities[SWEEP_QUANTITIES] = {
    [SWEEP_ERROR] = { "error", false },   [SWEEP_MASS] = { "mass", false },
    [SWEEP_VARIATION] = { "tv", false },  [SWEEP_TIME] = { "time", true },
    [SWEEP_FLOPS] = { "flops", false },   [SWEEP_MEMORY] = { "memory", true },
};

const char *quantity_name(SweepQuantity quantity)
{
    return quantities[quantity].name;
}

bool quantity_is_measured(SweepQuantity quantity)
{
    return quantities[quantity].measured;
}

static bool add_quantity(const char *name, size_t length, SweepQuantity *out, int *count,
                         Error *err)
{
    for (int k = 0; k < SWEEP_QUANTITIES; k++) {
        if (strlen(quantities[k].name) != length || strncmp(quantities[k].name, name, length) != 0)
            continue;
        for (int i = 0; i < *count; i++)
            if ((int)out[i] == k)
                return error_set(err, ERR_USAGE, "%s is there twice", quantities[k].name);
        out[(*count)++] = (SweepQuantity)k;
        return true;
    }
    return error_set(err, ERR_USAGE, "'%.*s': expected error, mass, tv, time, flops or memory",
                     (int)length, name);
}

bool quantities_parse(const char *text, SweepQuantity *out, int *count, Error *err)
{
    *count = 0;
    for (;; text++) {
        size_t length = strcspn(text, ",");

        if (!add_quantity(text, length, out, count, err))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

/* ---- lines ------------------------------------------------------------------ */

bool sweep_varies(const Request *request, const char *name)
{
    static const char *const common[] = { "position", "seed", "causal", "fit" };
    const Mechanism         *m = mechanism_find(request->mechanism);

    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
        if (!strcmp(name, common[i]))
            return true;
    return !strncmp(name, "pos_", 4) || (m && mechanism_param(m, &request->given, name));
}

static void name_line(SweepLine *line)
{
    Text text = { 0 };

    request_text(&line->request, &text);
    snprintf(line->name, sizeof(line->name), "%s", text_str(&text));
    text_free(&text);
}

static bool add_line(Sweep *sweep, const Request *request, bool baseline, Error *err)
{
    SweepLine *line = &sweep->lines[sweep->count];

    if (sweep->count == SWEEP_LINES)
        return error_set(err, ERR_USAGE, "more than %d mechanisms", SWEEP_LINES);
    *line = (SweepLine){ .baseline = baseline };
    line->fixed = baseline || !sweep_varies(request, sweep->vary.name);
    line->points = calloc((size_t)sweep->vary.count, sizeof(*line->points));
    if (!line->points || !request_copy(&line->request, request, err)) {
        free(line->points);
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s",
                         sweep->vary.name);
    }
    if (!line->fixed)
        assignments_remove(&line->request.given, sweep->vary.name);
    name_line(line);
    sweep->count++;
    return true;
}

static bool is_baseline(const Request *request)
{
    return (mechanism_find(request->mechanism)->classes & CLASS_BASELINE) && !request->above &&
           !request->given.count;
}

static bool add_baseline(Sweep *sweep, const Request *as, Error *err)
{
    const Mechanism *m = mechanism_baseline();
    Request          exact = *as;

    if (!m)
        return true;
    exact.given = (Assignments){ 0 };
    exact.above = NULL;
    snprintf(exact.mechanism, sizeof(exact.mechanism), "%s", m->id);
    return add_line(sweep, &exact, true, err);
}

#define APART 8 /* from this factor on a list of numbers is shown on a logarithmic axis */

static void judge_values(Sweep *sweep)
{
    double lo = HUGE_VAL, hi = -HUGE_VAL;

    for (int i = 0; i < sweep->vary.count; i++) {
        double value = vary_number(&sweep->vary, i);

        sweep->words = sweep->words || !isfinite(value);
        lo = fmin(lo, value);
        hi = fmax(hi, value);
    }
    sweep->log = !sweep->words && lo > 0 &&
                 (sweep->vary.times || (!strchr(sweep->range, ':') && hi >= APART * lo));
}

bool sweep_open(Sweep *sweep, const char *range, const Request *as, Error *err)
{
    *sweep = (Sweep){ .count = 0 };
    if (!vary_parse(range, &sweep->vary, err))
        return false;
    sweep->range = strdup(range);
    if (!sweep->range)
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s",
                         sweep->vary.name);
    judge_values(sweep);
    return add_baseline(sweep, as, err);
}

bool sweep_add(Sweep *sweep, const Request *request, Error *err)
{
    return is_baseline(request) ? true : add_line(sweep, request, false, err);
}

bool sweep_check(const Sweep *sweep, Error *err)
{
    for (int i = 0; i < sweep->count; i++)
        if (!sweep->lines[i].fixed)
            return true;
    return error_set(err, ERR_PARAM, "%s: none of these mechanisms has the parameter %s",
                     sweep->range, sweep->vary.name);
}

void sweep_free(Sweep *sweep)
{
    for (int i = 0; i < sweep->count; i++) {
        result_release(sweep->lines[i].sample);
        request_free(&sweep->lines[i].request);
        free(sweep->lines[i].points);
    }
    vary_free(&sweep->vary);
    free(sweep->range);
    *sweep = (Sweep){ .count = 0 };
}

/* ---- running ---------------------------------------------------------------- */

int sweep_points(const Sweep *sweep, int line)
{
    return sweep->lines[line].fixed ? 1 : sweep->vary.count;
}

bool sweep_next(const Sweep *sweep, int *line, int *point)
{
    for (*line = 0; *line < sweep->count; (*line)++)
        for (*point = 0; *point < sweep_points(sweep, *line); (*point)++)
            if (!sweep->lines[*line].points[*point].done)
                return true;
    return false;
}

int sweep_done(const Sweep *sweep, int *all)
{
    int done = 0;

    *all = 0;
    for (int i = 0; i < sweep->count; i++)
        for (int p = 0; p < sweep_points(sweep, i); p++, (*all)++)
            done += sweep->lines[i].points[p].done;
    return done;
}

bool sweep_request(const Sweep *sweep, Session *s, int line, int point, Request *out, Error *err)
{
    const SweepLine *l = &sweep->lines[line];
    char             assignment[320];

    if (!request_copy(out, &l->request, err))
        return false;
    out->measure = sweep->measure;
    out->quality = !l->baseline;
    if (l->fixed)
        return true;
    snprintf(assignment, sizeof(assignment), "%s=%s", sweep->vary.name,
             sweep->vary.values[point]);
    if (request_set(s, out, assignment, err))
        return true;
    request_free(out);
    return false;
}

static void take_band(SweepPoint *p, SweepQuantity quantity, const SeedSpread *seeds,
                      const SeedBand *band)
{
    if (seeds->count < 2 || !band->mean.valid)
        return;
    p->value[quantity] = band->mean;
    p->low[quantity] = band->min;
    p->high[quantity] = band->max;
}

static void take_quality(SweepPoint *p, const Record *r)
{
    p->value[SWEEP_ERROR] = r->quality.output_error;
    p->value[SWEEP_MASS] = r->quality.mass_mean;
    p->value[SWEEP_VARIATION] = r->quality.total_variation;
    take_band(p, SWEEP_ERROR, &r->seeds, &r->seeds.output_error);
    take_band(p, SWEEP_MASS, &r->seeds, &r->seeds.mass);
}

static void take_cost(SweepPoint *p, const Record *r, bool measured)
{
    p->value[SWEEP_FLOPS] = number_of(flops_total(r->counted));
    if (!measured)
        return;
    p->value[SWEEP_MEMORY] = r->arena_peak;
    p->value[SWEEP_TIME] = r->time.median;
    if (r->time.count > 1) {
        p->low[SWEEP_TIME] = r->time.q1;
        p->high[SWEEP_TIME] = r->time.q3;
    }
}

void sweep_take(Sweep *sweep, int line, int point, Result *result)
{
    SweepLine    *l = &sweep->lines[line];
    SweepPoint   *p = &l->points[point];
    const Record *r = &result->record;

    *p = (SweepPoint){ .done = true };
    if (r->status != RECORD_OK) {
        snprintf(p->problem, sizeof(p->problem), "%.250s", r->message);
        return;
    }
    if (!l->baseline)
        take_quality(p, r);
    take_cost(p, r, result->request.measure);
    if (!l->sample)
        l->sample = result_retain(result);
}

void sweep_refuse(Sweep *sweep, int line, int point, const Error *err)
{
    SweepPoint *p = &sweep->lines[line].points[point];

    *p = (SweepPoint){ .done = true };
    snprintf(p->problem, sizeof(p->problem), "%.250s", err->text);
}

static void tell_progress(const Sweep *sweep, Session *s, int line, int point)
{
    const SweepLine *l = &sweep->lines[line];
    int              all, done = sweep_done(sweep, &all);

    if (l->fixed)
        session_progress(s, "%d of %d: %s", done + 1, all, l->name);
    else
        session_progress(s, "%d of %d: %s, %s=%s", done + 1, all, l->name, sweep->vary.name,
                         sweep->vary.values[point]);
}

bool sweep_run(Sweep *sweep, Session *s, Error *err)
{
    int line, point;

    if (!sweep_check(sweep, err))
        return false;
    while (sweep_next(sweep, &line, &point)) {
        Error   own = ERROR_INIT;
        Request request;
        Result *result = NULL;

        tell_progress(sweep, s, line, point);
        if (sweep_request(sweep, s, line, point, &request, &own)) {
            result = session_run(s, &request, &own);
            request_free(&request);
        }
        if (result)
            sweep_take(sweep, line, point, result);
        else
            sweep_refuse(sweep, line, point, &own);
        result_release(result);
    }
    return true;
}

/* ---- reading ---------------------------------------------------------------- */

double sweep_x(const Sweep *sweep, int point)
{
    return sweep->words ? point : vary_number(&sweep->vary, point);
}

void sweep_order(const Sweep *sweep, int *order)
{
    for (int i = 0; i < sweep->vary.count; i++) {
        int at = i;

        for (; at > 0 && sweep_x(sweep, order[at - 1]) > sweep_x(sweep, i); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

const SweepPoint *sweep_at(const Sweep *sweep, int line, int point)
{
    return &sweep->lines[line].points[sweep->lines[line].fixed ? 0 : point];
}

const char *quantity_text(SweepQuantity quantity, Number number, char *text, size_t size)
{
    if (!number.valid)
        snprintf(text, size, "n/a");
    else if (quantity == SWEEP_FLOPS)
        format_count(number.value, text, size);
    else if (quantity == SWEEP_MEMORY)
        format_bytes((int64_t)number.value, text, size);
    else if (quantity == SWEEP_MASS)
        snprintf(text, size, "%.1f %%", 100 * number.value);
    else
        snprintf(text, size, quantity == SWEEP_TIME ? "%.3g ms" : "%.3g", number.value);
    return text;
}

/* The smallest value that reaches a goal, and the values between two that
 * close in on it; see vary.h. */

bool goal_parse(const char *text, SweepGoal *out, Error *err)
{
    const char *number = text;
    char       *end;

    *out = (SweepGoal){ .quantity = SWEEP_MASS };
    if (!strncmp(text, "error=", 6))
        *out = (SweepGoal){ .quantity = SWEEP_ERROR };
    number = text + (out->quantity == SWEEP_ERROR ? 6 : !strncmp(text, "mass=", 5) ? 5 : 0);
    out->bound = strtod(number, &end);
    if (*end == '%') {
        out->bound /= 100;
        end++;
    }
    return (end > number && !*end && out->bound > 0 &&
            (out->quantity == SWEEP_ERROR ? out->bound < 100 : out->bound <= 1)) ||
           error_set(err, ERR_USAGE,
                     "'%s': expected a share of the mass such as 95%%, or error=5%%", text);
}

/* With every seed: the worst of them counts. */
static Number worst(const SweepPoint *p, SweepQuantity quantity)
{
    const Number *band = quantity == SWEEP_MASS ? p->low : p->high;

    return band[quantity].valid ? band[quantity] : p->value[quantity];
}

/* a is better than b; anything is better than no number. */
static bool is_better(const SweepGoal *goal, Number a, Number b)
{
    if (!a.valid || !b.valid)
        return a.valid;
    return goal->quantity == SWEEP_MASS ? a.value > b.value : a.value < b.value;
}

static bool reaches(const SweepGoal *goal, Number n)
{
    double slack = 1e-9; /* 0.95 as a decimal is not a double */

    return n.valid && (goal->quantity == SWEEP_MASS ? n.value >= goal->bound - slack
                                                    : n.value <= goal->bound + slack);
}

int sweep_smallest(const Sweep *sweep, int line, const SweepGoal *goal)
{
    int order[VARY_MOST];

    sweep_order(sweep, order);
    for (int i = 0; i < sweep->vary.count && !sweep->words && !sweep->lines[line].fixed; i++)
        if (reaches(goal, worst(sweep_at(sweep, line, order[i]), goal->quantity)))
            return order[i];
    return -1;
}

static int best_point(const Sweep *sweep, int line, const SweepGoal *goal)
{
    int best = -1;

    for (int i = 0; i < sweep->vary.count; i++) {
        Number n = worst(sweep_at(sweep, line, i), goal->quantity);

        if (n.valid && (best < 0 || is_better(goal, n, worst(sweep_at(sweep, line, best),
                                                             goal->quantity))))
            best = i;
    }
    return best;
}

void sweep_answer(const Sweep *sweep, int line, const SweepGoal *goal, Text *out)
{
    const SweepLine *l = &sweep->lines[line];
    const Vary      *v = &sweep->vary;
    bool             mass = goal->quantity == SWEEP_MASS;
    int              at = sweep_smallest(sweep, line, goal), best = best_point(sweep, line, goal);
    char             text[32], words[80];

    if (mass)
        snprintf(words, sizeof(words), "keeps %.4g %% of the mass", 100 * goal->bound);
    else
        snprintf(words, sizeof(words), "has an error of at most %.4g", goal->bound);
    if (sweep->words)
        text_addf(out, "the values of %s are no numbers, so none is the smallest", v->name);
    else if (at >= 0)
        text_addf(out, "%s=%s is the smallest of %d that %s (%s)", v->name, v->values[at],
                  v->count, words,
                  quantity_text(goal->quantity, worst(sweep_at(sweep, line, at), goal->quantity),
                                text, sizeof(text)));
    else if (best >= 0)
        text_addf(out, "none of %d values of %s %s; the best is %s at %s", v->count, v->name,
                  words,
                  quantity_text(goal->quantity, worst(sweep_at(sweep, line, best), goal->quantity),
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

/* One more value, at the end: the order on the axis is by their numbers. */
static bool add_value(Sweep *sweep, const char *text, Error *err)
{
    Vary  *v = &sweep->vary;
    size_t more = (size_t)v->count + 1, length = strlen(sweep->range) + strlen(text) + 2;
    char **values = realloc(v->values, more * sizeof(*values));
    char  *range = realloc(sweep->range, length), *copy = strdup(text);

    v->values = values ? values : v->values;
    sweep->range = range ? range : sweep->range;
    for (int i = 0; i < sweep->count && values && range && copy; i++) {
        SweepPoint *points = realloc(sweep->lines[i].points, more * sizeof(*points));

        if (!points)
            values = NULL;
        else
            sweep->lines[i].points = points;
    }
    if (!values || !range || !copy) {
        free(copy);
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s", v->name);
    }
    for (int i = 0; i < sweep->count; i++)
        if (!sweep->lines[i].fixed)
            sweep->lines[i].points[v->count] = (SweepPoint){ .done = false };
    v->values[v->count++] = copy;
    strcat(strcat(sweep->range, ","), text);
    return true;
}

/* The number before a point on the axis; NaN: it is the first. */
static double number_before(const Sweep *sweep, int point)
{
    int order[VARY_MOST], at = 0;

    sweep_order(sweep, order);
    while (order[at] != point)
        at++;
    return at ? sweep_x(sweep, order[at - 1]) : (double)NAN;
}

bool sweep_refine(Sweep *sweep, int line, const SweepGoal *goal, Error *err)
{
    const SweepLine *l = &sweep->lines[line];
    const Mechanism *m = mechanism_find(l->request.mechanism);
    const Param     *p = m ? mechanism_param(m, &l->request.given, sweep->vary.name) : NULL;
    int              at = sweep_smallest(sweep, line, goal);
    double           step = p && p->even ? 2 : 1, low, middle;
    char             text[32];

    if (at < 0 || !p || p->type != PARAM_TYPE_INT || sweep->vary.count == VARY_MOST ||
        strchr(sweep->range, ':'))
        return false;
    low = number_before(sweep, at);
    middle = low + step * floor((sweep_x(sweep, at) - low) / step / 2);
    if (!(middle > low))
        return false;
    snprintf(text, sizeof(text), "%.0f", middle);
    return add_value(sweep, text, err);
}
