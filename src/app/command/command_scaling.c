/* command_scaling.c -- compare --plot scaling: time over n against the claimed slopes.
 *
 * Lengths double from SCALING_FIRST up to the n of the call, or SCALING_LAST.  Each is
 * an input of its own, in a session of its own, so what the command compares on stays.
 */
#include "app/command/command_plot.h"
#include "app/figure/machines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCALING_FIRST   64
#define SCALING_LAST    4096
#define SCALING_MOST    24   /* lengths */
#define SCALING_REPEATS 7
#define SCALING_WIDTH   0.05 /* medians known to so much */

/* The times of one mechanism; NaN where there is none. */
typedef struct Series {
    Text   name;
    double time[SCALING_MOST], low[SCALING_MOST], high[SCALING_MOST];
} Series;

typedef struct Scaling {
    double        n[SCALING_MOST];
    int           lengths;
    Series       *series; /* owned */
    ScalingCurve *curves; /* owned */
    int           count, threads;
    Machines      machines;
} Scaling;

static double value_of(Number number)
{
    return number.valid ? number.value : (double)NAN;
}

/* Tensors from files fit one length only. */
static bool check_tensors(Result *const *results, int count, Error *err)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < results[i]->request.given.count; k++)
            if (results[i]->request.given.items[k].tensor.data)
                return error_set(err, ERR_USAGE, "--plot scaling: the tensor %s of %s fits one "
                                 "length only", results[i]->request.given.items[k].name,
                                 results[i]->request.mechanism);
    return true;
}

/* A length that a mechanism refuses, or that fails, is a gap. */
static bool time_one(Session *on, const Request *request, int at, Scaling *s, Series *out,
                     Error *err)
{
    Request timed;
    Result *result;

    if (!request_copy(&timed, request, err))
        return false;
    timed.measure = true;
    timed.quality = false;
    timed.seeds = 0;
    timed.repeat = timed.repeat ? timed.repeat : SCALING_REPEATS;
    timed.width = timed.width > 0 ? timed.width : SCALING_WIDTH;
    result = session_run(on, &timed, err);
    request_free(&timed);
    if (!result)
        return false;
    out->time[at] = out->low[at] = out->high[at] = (double)NAN;
    if (result->record.status == RECORD_OK) {
        out->time[at] = value_of(result->record.time.median);
        out->low[at] = value_of(result->record.time.low);
        out->high[at] = value_of(result->record.time.high);
    }
    s->threads = result->record.threads;
    result_release(result);
    return true;
}

static bool time_all(Session *told, const Input *like, Result *const *results, Scaling *s,
                     Error *err)
{
    Session *on = session_new(err);
    bool     ok = on != NULL;

    for (int at = 0; ok && at < s->lengths; at++) {
        InputChoice choice = { .n = (int64_t)s->n[at], .d = like->d, .heads = like->heads,
                               .seed = 1 };

        session_progress(told, "scaling: n = %lld", (long long)choice.n);
        ok = session_load(on, "synthetic:normal", &choice, err);
        for (int i = 0; ok && i < s->count; i++)
            ok = time_one(on, &results[i]->request, at, s, &s->series[i], err);
    }
    session_free(on);
    return ok;
}

static void set_curves(Result *const *results, Scaling *s)
{
    for (int i = 0; i < s->count; i++) {
        const Mechanism *m = mechanism_find(results[i]->request.mechanism);
        bool             claims = m && m->claim_exponent > 0;

        machines_add(&s->machines, results[i]->request.ops, s->threads, (int64_t)time(NULL));
        request_text(&results[i]->request, &s->series[i].name);
        s->curves[i] = (ScalingCurve){ .name = text_str(&s->series[i].name), .n = s->n,
                                       .cost = s->series[i].time, .low = s->series[i].low,
                                       .high = s->series[i].high, .count = s->lengths,
                                       .claim = claims ? m->claim_exponent : (double)NAN,
                                       .claimed = claims ? m->claim_time : NULL };
    }
}

static Figure *figure_of(const Scaling *s, const Input *like, const Call *call, Error *err)
{
    Figure *figure;
    char    measured[256];
    Plot   *plot;

    machines_text(&s->machines, measured, sizeof(measured));
    plot = plot_of_scaling(s->curves, s->count, "time (ms)", measured, err);
    figure = plot ? picture_scaling(plot, like->heads, like->d, err) : NULL;
    if (figure && call->values[OPT_TITLE])
        snprintf(figure->title, sizeof(figure->title), "%s", call->values[OPT_TITLE]);
    if (figure && call->values[OPT_CAPTION])
        snprintf(figure->caption, sizeof(figure->caption), "%s", call->values[OPT_CAPTION]);
    return figure;
}

static void set_lengths(const Call *call, const Input *like, Scaling *s)
{
    int64_t last = call->values[OPT_N] ? like->n : SCALING_LAST;

    for (int64_t n = SCALING_FIRST; n <= last && s->lengths < SCALING_MOST; n *= 2)
        s->n[s->lengths++] = (double)n;
}

bool scaling_show(Session *session, const Call *call, Result *const *results, int count, Text *out,
                  Error *err)
{
    const Input *like = session_input(session);
    Scaling      s = { .count = count, .series = calloc((size_t)count, sizeof(*s.series)),
                       .curves = calloc((size_t)count, sizeof(*s.curves)) };
    Figure      *figure = NULL;
    bool         ok = s.series && s.curves;

    if (!ok)
        error_set(err, ERR_NOMEM, "not enough memory for a scaling plot");
    set_lengths(call, like, &s);
    if (ok && s.lengths < 2)
        ok = error_set(err, ERR_USAGE, "--plot scaling needs lengths: -n %d at least",
                       2 * SCALING_FIRST);
    ok = ok && check_tensors(results, count, err) && time_all(session, like, results, &s, err);
    if (ok) {
        set_curves(results, &s);
        figure = figure_of(&s, like, call, err);
        ok = figure && plot_figure_write(session, call, figure, results, count, out, err);
    }
    figure_free(figure);
    for (int i = 0; s.series && i < count; i++)
        text_free(&s.series[i].name);
    free(s.series);
    free(s.curves);
    return ok;
}
