/* sweep_goal.c -- the smallest value that reaches a goal, and the values between two that
 * close in on it; see sweep.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/sweep.h"

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
