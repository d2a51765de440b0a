/* scaling.c -- time over n: the plot of a study over lengths, and where one mechanism becomes
 * faster than another; see study.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/command/command.h"
#include "app/figure/plots.h"
#include "app/study/study.h"

bool request_has_tensors(const Request *request)
{
    for (int i = 0; i < request->given.count; i++)
        if (request->given.items[i].tensor.data)
            return true;
    return false;
}

/* ---- the plot --------------------------------------------------------------- */

/* n, cost, low and high of a line, as the plot wants them. */
typedef struct LineNumbers {
    double n[AXIS_MOST], cost[AXIS_MOST], low[AXIS_MOST], high[AXIS_MOST];
} LineNumbers;

static ScalingCurve curve_of(const Study *study, int line, LineNumbers *to)
{
    const StudyLine *l = &study->lines[line];
    const Mechanism *m = mechanism_find(l->request.mechanism);
    bool             claims = m && m->claim_exponent > 0;
    int              count = 0;

    for (; count < study->axis.count && l->points[count].done; count++) {
        const StudyPoint *p = &l->points[count];

        to->n[count] = axis_number(&study->axis, count);
        to->cost[count] = number_or_nan(p->value[STUDY_TIME]);
        to->low[count] = number_or_nan(p->low[STUDY_TIME]);
        to->high[count] = number_or_nan(p->high[STUDY_TIME]);
    }
    return (ScalingCurve){ .name = l->name, .n = to->n, .cost = to->cost, .low = to->low,
                           .high = to->high, .count = count,
                           .claim = claims ? m->claim_exponent : (double)NAN,
                           .claimed = claims ? m->claim_time : NULL };
}

Plot *study_scaling_plot(const Study *study, Error *err)
{
    LineNumbers *numbers = calloc((size_t)study->count + 1, sizeof(*numbers));
    ScalingCurve curves[STUDY_LINES];
    Machines     machines = { .when = 0 };
    char         measured[256];
    Plot        *plot;

    if (!numbers) {
        error_set(err, ERR_NOMEM, "not enough memory for a scaling plot");
        return NULL;
    }
    for (int i = 0; i < study->count; i++) {
        curves[i] = curve_of(study, i, &numbers[i]);
        machines_add(&machines, study->lines[i].request.ops, study->threads, study->when);
    }
    machines_text(&machines, measured, sizeof(measured));
    plot = plot_of_scaling(curves, study->count, "time (ms)", measured, err);
    free(numbers);
    return plot;
}

Figure *study_scaling_figure(const Study *study, Error *err)
{
    Plot   *plot = study_scaling_plot(study, err);
    Figure *figure = plot ? figure_new(1, err) : NULL;

    if (!figure) {
        plot_free(plot);
        return NULL;
    }
    panel_init_plot(&figure->panels[0], plot, "time over n");
    snprintf(figure->caption, sizeof(figure->caption),
             "N(0,1) inputs, %lld head%s of %lld; measured on %s", (long long)study->heads,
             study->heads == 1 ? "" : "s", (long long)study->d, plot->measured);
    return figure;
}

/* ---- crossover -------------------------------------------------------------- */

#define CROSSOVER_RUNS   3 /* at least, of a time */
#define CROSSOVER_GROWTH 4 /* of the time from one n to the next, at the most that is usual */

/* Both lines at the next length; false: one of them has no time there. */
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

static void search(Study *study, Session *s, char *text, size_t size)
{
    double  spent = 0, last = 0;
    int64_t from = 0;

    while (study_next(study)) {
        int64_t n = strtoll(study->axis.values[study->point], NULL, 10);
        double  began = clock_wall();
        bool    faster;

        if (spent + CROSSOVER_GROWTH * last > CROSSOVER_SECONDS) {
            format_crossover(from, n / 2, false, text, size);
            return;
        }
        if (!compare_at(study, s, &faster))
            return;
        last = clock_wall() - began;
        spent += last;
        from = !faster ? 0 : from ? from : n;
    }
    format_crossover(from, CROSSOVER_LAST, true, text, size);
}

/* Each time is the fastest of a few runs; a quick run is repeated by itself, so that one
 * measurement of it is enough. */
static bool add_timed(Study *study, const Request *request)
{
    Request timed = *request; /* borrows */
    Error   ignored = ERROR_INIT;

    timed.repeat = 0;
    return study_add(study, &timed, &ignored);
}

void study_crossover(Session *s, const Request *base, const Request *other, char *text,
                     size_t size)
{
    Study study;
    Error ignored = ERROR_INIT;

    snprintf(text, size, "n/a");
    if (study_open_lengths(&study, session_input(s), SCALING_FIRST, CROSSOVER_LAST, &ignored) &&
        add_timed(&study, base) && add_timed(&study, other)) {
        study.least = CROSSOVER_RUNS;
        snprintf(study.title, sizeof(study.title), "crossover of %s", other->mechanism);
        search(&study, s, text, size);
    }
    study_free(&study);
}
