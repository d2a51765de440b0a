/* scaling.c -- see scaling.h. */
#include "ui/screen/scaling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/figure/picture.h"
#include "app/figure/plots.h"

#define FIRST   64
#define LAST    4096
#define LENGTHS 7    /* FIRST, doubled up to LAST */
#define REPEATS 5
#define WIDTH   0.05 /* medians known to so much */

/* A point being measured. */
typedef struct Point {
    Job        *job;
    Request     request; /* owned */
    InputChoice choice;
    double      time, low, high; /* ms; NaN: refused at this length */
    int         threads;
} Point;

typedef struct Line {
    Request request; /* owned */
    Text    name;
    double  time[LENGTHS], low[LENGTHS], high[LENGTHS];
} Line;

struct Scaling {
    Line    lines[PANES_MOST];
    int     count, done, threads; /* done: points, by length and then by line */
    double  n[LENGTHS];
    int64_t d, heads, when;
    Point  *point; /* NULL: none is measured now */
    bool    over;
};

static void point_free(Point *p)
{
    if (!p)
        return;
    job_free(p->job);
    request_free(&p->request);
    free(p);
}

void scaling_close(Ui *ui)
{
    struct Scaling *s = ui->profiling.scaling;

    if (!s)
        return;
    if (s->point && s->point->job) {
        job_cancel(s->point->job);
        job_wait(s->point->job);
    }
    point_free(s->point);
    for (int i = 0; i < s->count; i++) {
        request_free(&s->lines[i].request);
        text_free(&s->lines[i].name);
    }
    free(s);
    ui->profiling.scaling = NULL;
}

/* ---- one point, on the worker ------------------------------------------------ */

static void take(Point *p, const Result *result)
{
    const Timing *t = &result->record.time;

    if (result->record.status != RECORD_OK)
        return;
    p->time = t->median.valid ? t->median.value : (double)NAN;
    p->low = t->low.valid ? t->low.value : (double)NAN;
    p->high = t->high.valid ? t->high.value : (double)NAN;
    p->threads = result->record.threads;
}

/* In a session of its own, so that what is on the screen keeps its input.  A length that the
 * mechanism refuses is a gap. */
static bool time_point(void *context, const atomic_bool *cancel, Error *err)
{
    Point  *p = context;
    Session *s = session_new(err);
    Job    *job = NULL;
    Result *result = NULL;

    if (s && session_load(s, "synthetic:normal", &p->choice, err))
        job = session_submit(s, &p->request, err);
    while (job && (job_state(job) == JOB_WAITING || job_state(job) == JOB_RUNNING)) {
        struct timespec pause = { .tv_nsec = 1000000 };

        if (atomic_load(cancel))
            job_cancel(job);
        nanosleep(&pause, NULL);
    }
    if (job && job_state(job) == JOB_DONE)
        result = job_result(job);
    if (result)
        take(p, result);
    result_release(result);
    if (job)
        job_free(job);
    session_free(s);
    return !atomic_load(cancel) || error_set(err, ERR_CANCELLED, "cancelled");
}

/* ---- all of them -------------------------------------------------------------- */

static bool add_line(struct Scaling *s, const Request *request, Error *err)
{
    Line *line = &s->lines[s->count];

    if (!request_copy(&line->request, request, err))
        return false;
    request_text(request, &line->name);
    for (int i = 0; i < LENGTHS; i++)
        line->time[i] = line->low[i] = line->high[i] = (double)NAN;
    line->request.measure = true;
    line->request.quality = line->request.missed = false;
    line->request.seeds = line->request.keys = 0;
    line->request.repeat = REPEATS;
    line->request.width = WIDTH;
    s->count++;
    return true;
}

/* Tensors from files fit one length only. */
static bool has_tensors(const Request *request)
{
    for (int i = 0; i < request->given.count; i++)
        if (request->given.items[i].tensor.data)
            return true;
    return false;
}

void scaling_start(Ui *ui)
{
    const Input    *like = session_input(ui->session);
    struct Scaling *s;
    Error           err = ERROR_INIT;

    scaling_close(ui);
    s = calloc(1, sizeof(*s));
    if (!s || !like) {
        free(s);
        return;
    }
    ui->profiling.scaling = s;
    s->d = like->d;
    s->heads = like->heads;
    for (int i = 0; i < LENGTHS; i++)
        s->n[i] = (double)((int64_t)FIRST << i);
    for (int i = 0; i < ui->compare.count; i++) {
        const Request *request = &ui->compare.panes[i].request;

        if (has_tensors(request) || request->above)
            ui_say(ui, ROLE_WARN, "%s is left out: what it is given fits one length only",
                   request->mechanism);
        else if (!add_line(s, request, &err))
            ui_say(ui, ROLE_ERROR, "%s", err.text);
    }
    s->over = !s->count;
}

static void begin_point(Ui *ui, struct Scaling *s)
{
    Point *p = calloc(1, sizeof(*p));
    Error  err = ERROR_INIT;

    if (!p)
        return;
    p->time = p->low = p->high = (double)NAN;
    p->choice = (InputChoice){ .n = (int64_t)s->n[s->done / s->count], .d = s->d,
                               .heads = s->heads, .seed = 1 };
    if (request_copy(&p->request, &s->lines[s->done % s->count].request, &err))
        p->job = session_submit_work(ui->session, time_point, p, &err);
    if (p->job) {
        s->point = p;
        return;
    }
    s->over = true;
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    point_free(p);
}

static void end_point(Ui *ui, struct Scaling *s)
{
    Point *p = s->point;
    Line  *line = &s->lines[s->done % s->count];
    int    at = s->done / s->count;

    s->point = NULL;
    if (job_state(p->job) == JOB_FAILED)
        ui_say(ui, ROLE_ERROR, "%s", job_error(p->job)->text);
    s->over = s->over || job_state(p->job) != JOB_DONE || s->done + 1 == s->count * LENGTHS;
    if (job_state(p->job) == JOB_DONE) {
        line->time[at] = p->time;
        line->low[at] = p->low;
        line->high[at] = p->high;
        s->threads = p->threads ? p->threads : s->threads;
        s->when = (int64_t)time(NULL);
        s->done++;
    }
    point_free(p);
}

bool scaling_poll(Ui *ui)
{
    struct Scaling *s = ui->profiling.scaling;
    JobState        state = s && s->point ? job_state(s->point->job) : JOB_WAITING;
    bool            ended = state != JOB_WAITING && state != JOB_RUNNING;

    if (!s)
        return false;
    if (ended)
        end_point(ui, s);
    if (!s->over && !s->point && !session_busy(ui->session))
        begin_point(ui, s);
    return ended;
}

bool scaling_runs(const Ui *ui)
{
    return ui->profiling.scaling && !ui->profiling.scaling->over;
}

bool scaling_cancel(Ui *ui)
{
    struct Scaling *s = ui->profiling.scaling;

    if (!scaling_runs(ui))
        return false;
    s->over = true;
    if (s->point)
        job_cancel(s->point->job);
    return true;
}

/* ---- the plot ------------------------------------------------------------------ */

void scaling_title(const Ui *ui, char *text, size_t size)
{
    const struct Scaling *s = ui->profiling.scaling;

    if (!s)
        snprintf(text, size, "time over n");
    else
        snprintf(text, size, "time over n, N(0,1) inputs, %lld head%s of %lld: %d of %d points%s",
                 (long long)s->heads, s->heads == 1 ? "" : "s", (long long)s->d, s->done,
                 s->count * LENGTHS, s->over && s->done < s->count * LENGTHS ? ", stopped" : "");
}

bool scaling_known(const Ui *ui)
{
    const struct Scaling *s = ui->profiling.scaling;

    return s && s->count && s->done >= s->count;
}

Plot *scaling_plot(const Ui *ui, Error *err)
{
    const struct Scaling *s = ui->profiling.scaling;
    ScalingCurve          curves[PANES_MOST];
    Machines              machines = { .when = 0 };
    char                  measured[256];

    if (!scaling_known(ui))
        return NULL;
    for (int i = 0; i < s->count; i++) {
        const Line      *line = &s->lines[i];
        const Mechanism *m = mechanism_find(line->request.mechanism);
        bool             claims = m && m->claim_exponent > 0;

        curves[i] = (ScalingCurve){ .name = text_str(&line->name), .n = s->n, .cost = line->time,
                                    .low = line->low, .high = line->high,
                                    .count = (s->done + s->count - 1 - i) / s->count,
                                    .claim = claims ? m->claim_exponent : (double)NAN,
                                    .claimed = claims ? m->claim_time : NULL };
    }
    for (int i = 0; i < s->count; i++)
        machines_add(&machines, s->lines[i].request.ops, s->threads, s->when);
    machines_text(&machines, measured, sizeof(measured));
    return plot_of_scaling(curves, s->count, "time (ms)", measured, err);
}

Figure *scaling_figure(const Ui *ui, Text *command, Error *err)
{
    const struct Scaling *s = ui->profiling.scaling;
    const Request        *requests[PANES_MOST];
    Plot                 *plot = scaling_plot(ui, err);

    if (!plot) {
        if (err->code == ERR_NONE)
            error_set(err, ERR_DATA, "nothing is measured yet: r measures");
        return NULL;
    }
    for (int i = 0; i < s->count; i++)
        requests[i] = &s->lines[i].request;
    picture_scaling_command(requests, s->count, LAST, s->heads, s->d, command);
    return picture_scaling(plot, s->heads, s->d, err);
}
