/* steps.c -- a run's stages as steps, their traces, and their tokens as strips; see steps.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/result/steps.h"
#include "app/result/views.h"
#include "attn/study/replay.h"

const Run *result_replay(Result *result)
{
    if (!result->replayed) {
        result->replayed = true;
        result->replay = replay_new(result->run);
    }
    return result->replay;
}

int result_steps(Result *result)
{
    const Run *replay = result_replay(result);

    return result->run->err.code != ERR_NONE
               ? 0
               : result->run->stage_count + (replay ? replay->stage_count : 0);
}

static bool is_picture(const View *view)
{
    return view->rank >= 2 && view_rows(view) * view_cols(view) > 1 && view->kind != VIEW_TENSOR &&
           strcmp(view->name, "output") != 0;
}

bool pattern_is_trivial(const Run *run, const Pattern *cells)
{
    double n = (double)pattern_queries(cells), m = (double)pattern_keys(cells);
    double count = (double)pattern_count(cells) / (double)pattern_heads(cells);

    return count >= (run->causal && m >= n ? n * m - n * (n - 1) / 2 : n * m);
}

/* Rank of a view: the mechanism's own picture, then what decides, then what results. */
static int informative(const Run *run, const View *view)
{
    const char *picture = run->mechanism->picture;

    if (!is_picture(view))
        return 0;
    if (picture && !strcmp(view->name, picture))
        return 5;
    switch (view->kind) {
    case VIEW_BUCKETS: return 4;
    case VIEW_PERMUTATION: return 4;
    case VIEW_PATTERN:
        return view->support && pattern_is_trivial(run, view->support) ? 1 : 3;
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

        if (view->step == index && informative(run, view) > (best ? informative(run, best) : 0))
            best = view;
    }
    return best;
}

/* Of stages that many mechanisms have; true of all that say nothing of their own. */
static const StageNote usual_notes[] = {
    { "draw",
      "What is random is drawn from the seed, before any query or key is read. Another seed draws "
      "something else." },
    { "attend",
      "A query is compared with the keys that it may see. The scores become weights. The output is "
      "the sum of the values, each times its weight." },
    { 0 }
};

static const char *note_among(const StageNote *notes, const char *stage)
{
    for (const StageNote *n = notes; n && n->stage; n++)
        if (!strcmp(n->stage, stage))
            return n->note;
    return NULL;
}

static const char *note_of(const Mechanism *m, const char *stage)
{
    const char *own = note_among(m->notes, stage);

    return own ? own : note_among(usual_notes, stage);
}

bool result_step(Result *result, int index, Step *out)
{
    int count = result_steps(result), own = result->run->stage_count;

    if (index < 0 || index >= count)
        return false;
    *out = (Step){ .result = result, .run = index < own ? result->run : result->replay,
                   .at = index < own ? index : index - own, .index = index, .count = count,
                   .row = result->run->n - 1 };
    out->stage = &out->run->stages[out->at];
    if (out->stage->about)
        out->row = out->stage->query;
    out->note = note_of(out->run->mechanism, out->stage->name);
    for (int i = 0; out->stage->iteration >= 0 && i < out->run->stage_count; i++)
        out->total += !strcmp(out->run->stages[i].name, out->stage->name);
    for (int i = out->at; i >= 0 && !out->shown; i--)
        out->shown = shown_at(out->run, i);
    out->fresh = out->shown && out->shown->step == out->at;
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
    const Run *run = step->run;
    int        count = 0;

    for (int i = 0; i < run->view_count; i++)
        if (run->views[i].step == step->at) {
            if (count < most)
                out[count] = &run->views[i];
            count++;
        }
    return count;
}

const int32_t *step_order(const Step *step, int64_t head)
{
    const View *source = result_order_source(step->result);

    return source && step->run == step->result->run && source->step <= step->at
               ? result_sorted_order(step->result, head, step_round(step))
               : NULL;
}

int64_t step_round(const Step *step)
{
    int64_t round = step->stage->iteration;

    return step->run == step->result->run && round > 0 &&
                   round < result_order_rounds(step->result)
               ? round
               : 0;
}

const View *step_categories(const Step *step)
{
    const Run *run = step->run;

    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];

        if (view->kind == VIEW_BUCKETS && view->step <= step->at && view->tensor.data &&
            view->tensor.dtype == DT_I32 && view_cols(view) == run->n)
            return view;
    }
    return NULL;
}

const View *step_watched(const Step *step, int x, double *value)
{
    const Run *run = step->run;
    float      number;

    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];

        if (!view->watched || strcmp(view->watched, step->stage->name) || x-- > 0)
            continue;
        view_read(view, step->head, step->row, step->stage->iteration, 1, 1, &number);
        *value = (double)number;
        return view;
    }
    return NULL;
}

/* "running_max" in words. */
static void add_trace_name(const View *view, Text *out)
{
    for (const char *c = view->name; *c; c++)
        text_addf(out, "%c", *c == '_' ? ' ' : *c);
}

/* Prints the stage's traces, "row error 0.0123", and the numbers of the step's row. */
static void step_traces(const Step *step, Text *out)
{
    const Run  *run = step->run;
    const View *view;
    double      value;

    for (int i = 0; i < run->trace_count; i++)
        if (run->traces[i].step == step->at)
            text_addf(out, "%s %.3g\n", run->traces[i].name, run->traces[i].value);
    for (int x = 0; (view = step_watched(step, x, &value)); x++) {
        text_addf(out, x ? ", " : "query %lld: ", (long long)step->row);
        add_trace_name(view, out);
        text_addf(out, isnan(value) ? " none" : " %.3g", value);
    }
    text_add(out, view || !step_watched(step, 0, &value) ? "" : "\n");
}

static double place_of(const Stage *stage, int step)
{
    int64_t count = stage->iteration >= 0 ? stage->iteration : step;

    return stage->at_name ? stage->at : (double)count + 1;
}

/* Adds one series: the trace's values up to this step. */
static bool add_trace(const Step *step, const char *name, Plot *plot)
{
    const Run  *run = step->run;
    PlotSeries *series = plot_add(plot, name, CURVE_LINE, run->trace_count, false);

    if (!series)
        return false;
    series->count = 0;
    for (int i = 0; i < run->trace_count; i++) {
        const Trace *t = &run->traces[i];

        if (t->step > step->at || strcmp(t->name, name))
            continue;
        series->x[series->count] = place_of(&run->stages[t->step], t->step);
        series->y[series->count++] = t->value;
    }
    return true;
}

/* Adds the same for the step's row. */
static bool add_watched(const Step *step, const View *view, Plot *plot)
{
    Text        name = { 0 };
    PlotSeries *series;

    add_trace_name(view, &name);
    series = plot_add(plot, text_str(&name), CURVE_LINE, step->stage->iteration + 1, false);
    text_free(&name);
    for (int64_t t = 0; series && t <= step->stage->iteration; t++) {
        const Stage *stage = step->stage - step->stage->iteration + t;
        float        value;

        view_read(view, step->head, step->row, t, 1, 1, &value);
        series->x[t] = place_of(stage, (int)t);
        series->y[t] = (double)value;
    }
    return series != NULL;
}

/* Largest number of the trace in the stage's iterations so far. */
static double most_of(const Step *step, const char *name)
{
    const Run *run = step->run;
    double     most = 0;

    for (int i = 0; i < run->trace_count; i++)
        if (run->traces[i].step <= step->at && !strcmp(run->traces[i].name, name))
            most = fmax(most, fabs(run->traces[i].value));
    return most;
}

/* Two traces share an axis unless one is ten times the other. */
static bool shares_axis(const Step *step, const char *first, const char *other)
{
    return !strcmp(first, other) || most_of(step, other) <= 10 * most_of(step, first);
}

#define DRAWN 2 /* numbers of a row in one plot */

static bool add_trace_series(const Step *step, Plot *plot)
{
    const Run  *run = step->run;
    const View *view;
    double      value;
    bool        ok = true;

    for (int x = 0; ok && x < DRAWN && (view = step_watched(step, x, &value)); x++)
        ok = add_watched(step, view, plot);
    for (int i = 0, first = -1; ok && !step_watched(step, 0, &value) && i < run->trace_count; i++) {
        if (run->traces[i].step != step->at)
            continue;
        first = first < 0 ? i : first;
        if (shares_axis(step, run->traces[first].name, run->traces[i].name))
            ok = add_trace(step, run->traces[i].name, plot);
    }
    return ok;
}

Plot *step_plot(const Step *step)
{
    Plot   *plot = plot_new(NULL);
    bool    ok = plot && add_trace_series(step, plot);
    int64_t points = 0;

    for (int k = 0; ok && k < plot->count; k++)
        points = plot->series[k].count > points ? plot->series[k].count : points;
    if (!ok || points < 2) {
        plot_free(plot);
        return NULL;
    }
    snprintf(plot->x.name, sizeof(plot->x.name), "%s",
             step->stage->at_name          ? step->stage->at_name
             : step->stage->iteration >= 0 ? "iteration"
                                           : "step");
    plot->x.log = step->stage->at_name && step->stage->iteration > 3 &&
                  plot->series[0].x[points - 1] >= 30 * plot->series[0].x[0] &&
                  plot->series[0].x[1] >= 2 * plot->series[0].x[0] &&
                  plot->series[0].x[2] >= 2 * plot->series[0].x[1];
    if (plot->count == 1)
        snprintf(plot->y.name, sizeof(plot->y.name), "%.63s", plot->series[0].name);
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

/* Prints what the stage found of the strongest keys. */
static void describe_missed(const Step *step, Text *out)
{
    Result       *result = step->result;
    const Missed *missed = result_missed_soon(result, result->request.keys);

    if (!missed || step->run != result->run)
        return;
    missed_describe_round(missed, step->at, -1, out);
    if (step->at == step->run->stage_count - 1)
        missed_describe(missed, -1, out);
}

void step_describe(const Step *step, Text *out)
{
    char   count[32];
    double flops = flops_total(step->stage->flops);

    if (step->note)
        text_addf(out, "%s\n", step->note);
    if (step->stage->said)
        text_addf(out, "%s\n", step->stage->said);
    if (flops > 0)
        text_addf(out, "FLOPs counted: %s (%.3g %% of the run)\n",
                  format_count(flops, count, sizeof(count)),
                  100 * flops / flops_total(run_flops(step->run)));
    step_traces(step, out);
    describe_missed(step, out);
    if (step->run == step->result->run)
        describe_views(step, out);
    if (step->index == step->count - 1 && replay_wants_causal(step->result->run))
        text_add(out, "A causal run shows its decoding too, token by token.\n");
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

static bool is_of_step(Result *result, int index, const char *stage)
{
    Step step;

    return result_step(result, index, &step) && !strcmp(step.stage->name, stage);
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
    for (*from = 0; *from < count && !is_of_step(result, *from, at); ++*from)
        ;
    for (*to = *from; *to < count && is_of_step(result, *to, at); ++*to)
        ;
    if (*from < count)
        return true;
    list_stages(result, &stages);
    error_set(err, ERR_USAGE, "--at: %s has no step '%.40s'; it has %s", result->request.mechanism,
              at, text_str(&stages));
    text_free(&stages);
    return false;
}

/* ---- strips of tokens ---------------------------------------------------- */

static int32_t *gathered(const int32_t *values, const int32_t *order, int64_t n)
{
    int32_t *out = malloc((size_t)n * sizeof(*out));

    for (int64_t i = 0; out && i < n; i++)
        out[i] = values[order ? order[i] : i];
    return out;
}

const View *step_chunks(const Step *step)
{
    const View *chunks = run_view(step->result->run, "chunks");

    return chunks && chunks->step <= step->index && chunks->kind == VIEW_BUCKETS &&
                   chunks->tensor.data && chunks->tensor.dtype == DT_I32 &&
                   view_cols(chunks) == step->result->run->n
               ? chunks
               : NULL;
}

const int32_t *step_line(const Step *step, int64_t head)
{
    const View *categories = step_categories(step);

    return categories ? round_line(step->run, categories, head, step_round(step)) : NULL;
}

bool strip_read(const Step *step, int64_t head, Strip *out)
{
    const Run     *run = step->result->run;
    const View    *categories = step_categories(step), *chunks = step_chunks(step);
    const int32_t *order = step_order(step, head);
    int64_t        round = step_round(step);

    *out = (Strip){ .n = run->n };
    if (!categories)
        return false;
    out->original = gathered(round_line(run, categories, head, round), NULL, run->n);
    if (order)
        out->sorted = gathered(round_line(run, categories, head, round), order, run->n);
    if (order && chunks)
        out->chunk = gathered(round_line(run, chunks, head, round), order, run->n);
    return out->original != NULL;
}

void strip_free(Strip *strip)
{
    free(strip->original);
    free(strip->sorted);
    free(strip->chunk);
    *strip = (Strip){ 0 };
}

char strip_letter(int32_t category)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    return category < 0                              ? '.'
           : category < (int32_t)sizeof(letters) - 1 ? letters[category]
                                                     : '+';
}

char strip_border(const Strip *strip, int64_t slot)
{
    bool first = slot == 0 || strip->chunk[slot - 1] != strip->chunk[slot];
    bool last = slot + 1 == strip->n || strip->chunk[slot + 1] != strip->chunk[slot];

    return first && last ? '|' : first ? '[' : last ? ']' : '-';
}
