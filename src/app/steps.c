/* steps.c -- see steps.h. */
#include "app/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/missed.h"
#include "app/picture.h"

int result_steps(const Result *result)
{
    return result->run->err.code == ERR_NONE ? result->run->stage_count : 0;
}

static bool is_picture(const View *view)
{
    return view->rank >= 2 && view_rows(view) * view_cols(view) > 1 && view->kind != VIEW_TENSOR &&
           strcmp(view->name, "output") != 0;
}

/* Every pair, or all of the causal triangle: the set says nothing. */
static bool says_nothing(const Run *run, const View *view)
{
    double n = (double)view_rows(view), m = (double)view_cols(view), cells;

    if (!view->support)
        return false;
    cells = (double)pattern_count(view->support) / (double)pattern_heads(view->support);
    return cells >= (run->causal && m >= n ? n * m - n * (n - 1) / 2 : n * m);
}

/* The mechanism's own picture first, then what decides, then what results. */
static int telling(const Run *run, const View *view)
{
    const char *picture = run->mechanism->picture;

    if (!is_picture(view))
        return 0;
    if (picture && !strcmp(view->name, picture))
        return 5;
    switch (view->kind) {
    case VIEW_BUCKETS: return 4;
    case VIEW_PERMUTATION: return 4;
    case VIEW_PATTERN: return says_nothing(run, view) ? 1 : 3;
    case VIEW_WEIGHTS:
    case VIEW_FLOW: return 2;
    default: return 1;
    }
}

static const View *shown_at(const Run *run, int index)
{
    const View *best = NULL;

    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];

        if (view->step == index && telling(run, view) > (best ? telling(run, best) : 0))
            best = view;
    }
    return best;
}

static const char *note_of(const Mechanism *m, const char *stage)
{
    for (const StageNote *n = m->notes; n && n->stage; n++)
        if (!strcmp(n->stage, stage))
            return n->note;
    return NULL;
}

bool result_step(Result *result, int index, Step *out)
{
    const Run *run = result->run;

    if (index < 0 || index >= result_steps(result))
        return false;
    *out = (Step){ .result = result, .stage = &run->stages[index], .index = index,
                   .count = result_steps(result) };
    out->note = note_of(run->mechanism, out->stage->name);
    for (int i = 0; out->stage->iteration >= 0 && i < run->stage_count; i++)
        out->total += !strcmp(run->stages[i].name, out->stage->name);
    for (int i = index; i >= 0 && !out->shown; i--)
        out->shown = shown_at(run, i);
    out->fresh = out->shown && out->shown->step == index;
    return true;
}

void step_name(const Step *step, char *text, size_t size)
{
    if (step->total > 0)
        snprintf(text, size, "%s, %lld of %lld", step->stage->name,
                 (long long)step->stage->iteration + 1, (long long)step->total);
    else
        snprintf(text, size, "%s", step->stage->name);
}

int step_views(const Step *step, const View **out, int most)
{
    const Run *run = step->result->run;
    int        count = 0;

    for (int i = 0; i < run->view_count; i++)
        if (run->views[i].step == step->index) {
            if (count < most)
                out[count] = &run->views[i];
            count++;
        }
    return count;
}

const int32_t *step_order(const Step *step, int64_t head)
{
    const View *source = result_order_source(step->result);

    return source && source->step <= step->index
               ? result_sorted_order(step->result, head, step_round(step))
               : NULL;
}

int64_t step_round(const Step *step)
{
    int64_t round = step->stage->iteration;

    return round > 0 && round < result_order_rounds(step->result) ? round : 0;
}

const View *step_categories(const Step *step)
{
    const Run *run = step->result->run;

    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];

        if (view->kind == VIEW_BUCKETS && view->step <= step->index && view->tensor.data &&
            view->tensor.dtype == DT_I32 && view_cols(view) == run->n)
            return view;
    }
    return NULL;
}

void step_traces(const Step *step, Text *out)
{
    const Run *run = step->result->run;

    for (int i = 0; i < run->trace_count; i++)
        if (run->traces[i].step == step->index)
            text_addf(out, "%s %.3g\n", run->traces[i].name, run->traces[i].value);
}

/* One series: the trace's values up to this step. */
static bool add_trace(const Step *step, const char *name, Plot *plot)
{
    const Run  *run = step->result->run;
    PlotSeries *series = plot_add(plot, name, CURVE_LINE, run->trace_count, false);

    if (!series)
        return false;
    series->count = 0;
    for (int i = 0; i < run->trace_count; i++) {
        const Trace *t = &run->traces[i];
        int64_t      iteration = run->stages[t->step].iteration;

        if (t->step > step->index || strcmp(t->name, name))
            continue;
        series->x[series->count] = (double)(iteration >= 0 ? iteration : t->step) + 1;
        series->y[series->count++] = t->value;
    }
    return true;
}

Plot *step_plot(const Step *step)
{
    const Run *run = step->result->run;
    Plot      *plot = plot_new(NULL);
    bool       ok = plot != NULL;
    int64_t    points = 0;

    for (int i = 0; ok && i < run->trace_count; i++)
        if (run->traces[i].step == step->index)
            ok = add_trace(step, run->traces[i].name, plot);
    for (int k = 0; ok && k < plot->count; k++)
        points = plot->series[k].count > points ? plot->series[k].count : points;
    if (!ok || points < 2) {
        plot_free(plot);
        return NULL;
    }
    snprintf(plot->x.name, sizeof(plot->x.name), "%s",
             step->stage->iteration >= 0 ? "iteration" : "step");
    if (plot->count == 1)
        snprintf(plot->y.name, sizeof(plot->y.name), "%s", plot->series[0].name);
    plot_settle(plot);
    return plot;
}

static void describe_views(const Step *step, Text *out)
{
    const View *views[16];
    int         count = step_views(step, views, 16);

    for (int i = 0; i < count && i < 16; i++)
        text_addf(out, views[i]->origin ? "%s%s (%s)" : "%s%s", i ? ", " : "made: ",
                  views[i]->name, views[i]->origin);
    text_add(out, count ? "\n" : "");
}

/* What the stage found of the keys that exact attention weighs most. */
static void describe_missed(const Step *step, Text *out)
{
    Result       *result = step->result;
    const Missed *missed = missed_is_offered(result->run)
                               ? result_missed_soon(result, result->request.keys) : NULL;

    if (!missed)
        return;
    missed_describe_round(missed, step->index, -1, out);
    if (step->index == step->count - 1)
        missed_describe(missed, -1, out);
}

void step_describe(const Step *step, Text *out)
{
    char   count[32];
    double flops = flops_total(step->stage->flops);

    if (step->note)
        text_addf(out, "%s\n", step->note);
    if (flops > 0)
        text_addf(out, "FLOPs counted: %s (%.3g %% of the run)\n",
                  format_count(flops, count, sizeof(count)),
                  100 * flops / flops_total(run_flops(step->result->run)));
    step_traces(step, out);
    describe_missed(step, out);
    describe_views(step, out);
}

/* ---- by name ----------------------------------------------------------------- */

static void list_stages(Result *result, Text *out)
{
    for (int i = 0; i < result_steps(result); i++) {
        Step step;

        result_step(result, i, &step);
        if (step.stage->iteration <= 0)
            text_addf(out, "%s%d %s", out->length ? ", " : "", i + 1, step.stage->name);
    }
}

bool result_steps_at(Result *result, const char *at, int *from, int *to, Error *err)
{
    int   count = result_steps(result);
    char *end;
    long  number = at ? strtol(at, &end, 10) : 0;
    Text  stages = { 0 };

    *from = 0;
    *to = count;
    if (!at)
        return true;
    if (end != at && !*end && number >= 1 && number <= count) {
        *from = (int)number - 1;
        *to = (int)number;
        return true;
    }
    for (*from = 0; *from < count && strcmp(result->run->stages[*from].name, at); ++*from)
        ;
    for (*to = *from; *to < count && !strcmp(result->run->stages[*to].name, at); ++*to)
        ;
    if (*from < count)
        return true;
    list_stages(result, &stages);
    error_set(err, ERR_USAGE, "--at: %s has no step '%.40s'; it has %s", result->request.mechanism,
              at, text_str(&stages));
    text_free(&stages);
    return false;
}
