/* profile.c -- the profile screen: what the panes cost as bars and by stage, and over n. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/study/study.h"
#include "app/figure/plots.h"
#include "profile/step.h"
#include "ui/screen/profile.h"
#include "ui/shell/actions.h"

#define PLOT_LINES 16 /* a plot is worth drawing */

static void draw_metric(Ui *ui, Area area, Metric metric)
{
    Compare *c = &ui->compare;
    double   most = cost_largest(ui, metric);
    int      value_width = metric == METRIC_TIME ? 28 : 15;
    int      bar = area.w - 4 - 16 - value_width;

    ui_frame(ui, area, cost_names[metric], false);
    for (int i = 0; i < c->count && i < area.h - 2; i++) {
        Pane  *pane = &c->panes[i];
        Number number = cost_number(pane, metric);
        int    y = area.y + 1 + i;
        char   label[64], name[48];

        cost_label(pane, metric, number, label, sizeof(label));
        pane_placed_name(ui, i, 15, name, sizeof(name));
        term_text(ui->term, y, area.x + 2, 15, name,
                  ui_style(ui, i == c->now.focus ? ROLE_TITLE : ROLE_TEXT));
        if (number.valid && most > 0 && bar > 4)
            cost_bar(ui, y, area.x + 18, bar, number.value / most, ROLE_METER);
        term_text(ui->term, y, area.x + area.w - 2 - term_width(label), area.w - 20, label,
                  ui_style(ui, number.valid ? ROLE_TEXT : ROLE_DIM));
    }
}

/* ---- stages and quality ----------------------------------------------------- */

#define STAGE_BAR 50       /* where its bar begins */
#define STAGE_GPU 78       /* ... behind a GPU's numbers */
#define STAGE_COUNTED 120  /* ... and its counters' */

/* GPU numbers of a stage: kernel time, host share, and hardware counters where they fit. */
static void stage_gpu(Ui *ui, Area line, const DeviceProfile *gpu, int stage)
{
    Number busy = gpu->stages[stage].busy_ms, share = device_idle_share(gpu, stage);
    const DeviceCounted *c = &gpu->stages[stage].counted;
    char   part[32], flops[32] = "-", bytes[32] = "-";

    if (busy.valid) {
        snprintf(part, sizeof(part), "%.3g", busy.value);
        term_textf(ui->term, line.y, line.x + 48, line.w - 48, ui_style(ui, ROLE_DIM),
                   "kernels %7s ms", part);
    }
    if (busy.valid && share.valid)
        term_textf(ui->term, line.y, line.x + 67, line.w - 67, ui_style(ui, ROLE_DIM),
                   "host %3.0f%%", 100 * share.value);
    if (line.w < STAGE_COUNTED || !gpu->passes)
        return;
    if (c->flops.valid)
        format_count(c->flops.value, flops, sizeof(flops));
    if (c->dram_read.valid && c->dram_written.valid)
        format_bytes((int64_t)(c->dram_read.value + c->dram_written.value), bytes, sizeof(bytes));
    term_textf(ui->term, line.y, line.x + 79, 40, ui_style(ui, ROLE_DIM), "hw %8s FLOP DRAM %9s",
               flops, bytes);
}

#define STAGE_NAME 20 /* columns of a name, where none is longer */

static void stage_name(const StageRecord *stage, char *text, size_t size)
{
    if (stage->iteration >= 0)
        snprintf(text, size, "%s %lld", stage->name, (long long)stage->iteration);
    else
        snprintf(text, size, "%s", stage->name);
}

/* Columns of the longest name: none is cut. */
static int stage_names(const Record *r)
{
    int longest = STAGE_NAME;

    for (int i = 0; i < r->stage_count; i++) {
        char name[96];

        stage_name(&r->stages[i], name, sizeof(name));
        longest = term_width(name) > longest ? term_width(name) : longest;
    }
    return longest;
}

static void stage_line(Ui *ui, Area line, const Record *r, int index, double most)
{
    const StageRecord   *stage = &r->stages[index];
    const DeviceProfile *gpu = r->gpu && index < r->gpu->stage_count ? r->gpu : NULL;
    char   name[96], flops[32], time[32] = "not measured";
    double share = stage->time_ms.valid && most > 0 ? stage->time_ms.value / most : 0;
    int    names = stage_names(r), bar = STAGE_BAR;

    stage_name(stage, name, sizeof(name));
    if (stage->time_ms.valid)
        snprintf(time, sizeof(time), "%.3g ms", stage->time_ms.value);
    term_text(ui->term, line.y, line.x, names, name, ui_style(ui, ROLE_TEXT));
    line.x += names - STAGE_NAME;
    line.w -= names - STAGE_NAME;
    if (gpu)
        bar = gpu->passes && line.w >= STAGE_COUNTED ? STAGE_COUNTED - 8 : STAGE_GPU;
    term_textf(ui->term, line.y, line.x + 21, 26, ui_style(ui, ROLE_DIM), "%12s %13s", time,
               flops_text(flops_total(stage->flops), flops, sizeof(flops)));
    if (gpu)
        stage_gpu(ui, line, gpu, index);
    if (line.w > bar + 4)
        cost_bar(ui, line.y, line.x + bar, line.w - bar - 2, share, ROLE_GOOD);
}

static void draw_stages(Ui *ui, Area area, const Pane *pane)
{
    const Record *r = pane_record(pane);
    double        most = 0;
    char          title[96];

    if (!r)
        r = pane->result ? &pane->result->record : NULL;
    snprintf(title, sizeof(title), "stages of %.32s%s%s", pane->request.mechanism,
             r && r->gpu ? ": kernels [activity]" : "",
             r && r->gpu && r->gpu->passes && area.w - 4 >= STAGE_COUNTED ? ", hw, DRAM [counters]"
                                                                          : "");
    ui_frame(ui, area, title, false);
    for (int i = 0; r && i < r->stage_count; i++)
        if (r->stages[i].time_ms.valid)
            most = fmax(most, r->stages[i].time_ms.value);
    for (int i = 0; r && i < r->stage_count && i < area.h - 2; i++)
        stage_line(ui, (Area){ area.y + 1 + i, area.x + 2, 1, area.w - 4 }, r, i, most);
}

enum { HEAD_MASS, HEAD_ERROR };

/* " (head 2: 63.2 %)": of the head that is shown alone; "" where there is one head. */
static const char *head_share(const Pane *pane, int which, char *text, size_t size)
{
    const Record  *r = pane_record(pane);
    int64_t        head = pane->spec.head;
    const Quality *q = r->head_count > 1 && head < r->head_count ? &r->by_head[head] : NULL;

    text[0] = '\0';
    if (q && which == HEAD_MASS && q->mass_mean.valid)
        snprintf(text, size, " (head %lld: %.1f %%)", (long long)head, 100 * q->mass_mean.value);
    else if (q && which == HEAD_ERROR && q->output_error.valid)
        snprintf(text, size, " (head %lld: %.3g)", (long long)head, q->output_error.value);
    return text;
}

/* "projection: random seed 0, b: file", where there is room. */
static void add_origins(const Run *run, int room, Text *out)
{
    Text words = { 0 };
    char origin[48];

    for (int t = 0; t < run->tensor_count; t++)
        text_addf(&words, "%s%s: %s", t ? ", " : "", run->tensors[t].name,
                  run_origin_text(run, run->tensors[t].origin, origin, sizeof(origin)));
    if (words.length && term_width(text_str(&words)) <= room)
        text_addf(out, "%s  ", text_str(&words));
    text_free(&words);
}

/* One line; the tensors come last, where there is room for them. */
static void quality_text(const Pane *pane, int room, Text *out)
{
    const Record *r = pane_record(pane);
    bool          mass;
    char          head[48];

    if (!r) {
        text_addf(out, "%s: %s", pane->request.mechanism,
                  pane->measuring ? "being measured\xe2\x80\xa6" : "not measured; r measures");
        return;
    }
    if (r->status != RECORD_OK) {
        text_addf(out, "%s: %s %s", pane->request.mechanism, record_status_name(r->status),
                  r->message);
        return;
    }
    text_addf(out, "%s against full attention", pane->request.mechanism);
    if (r->quality.rows)
        text_addf(out, " (%lld drawn rows a head)", (long long)r->quality.rows);
    text_add(out, ": ");
    if (r->quality.mass_mean.valid)
        text_addf(out, "softmax mass kept %.1f %%%s  ", 100 * r->quality.mass_mean.value,
                  head_share(pane, HEAD_MASS, head, sizeof(head)));
    if (r->quality.output_error.valid)
        text_addf(out, "output error %.3g%s  ", r->quality.output_error.value,
                  head_share(pane, HEAD_ERROR, head, sizeof(head)));
    if (r->quality.kl.valid)
        text_addf(out, "KL %.3g nats  ", r->quality.kl.value);
    if (!r->quality.mass_mean.valid && !r->quality.output_error.valid)
        text_add(out, "not measured  ");
    mass = r->seeds.count && r->seeds.mass.mean.valid;
    if (mass)
        text_addf(out, "over %d seeds: mass %.1f-%.1f %%  ", r->seeds.count,
                  100 * r->seeds.mass.min.value, 100 * r->seeds.mass.max.value);
    if (r->seeds.count && r->seeds.output_error.mean.valid && !mass)
        text_addf(out, "over %d seeds: ", r->seeds.count);
    if (r->seeds.count && r->seeds.output_error.mean.valid)
        text_addf(out, "error %.3g-%.3g  ", r->seeds.output_error.min.value,
                  r->seeds.output_error.max.value);
    add_origins(pane->measured->run, room - term_width(text_str(out)), out);
    if (!r->heap_peak.valid && r->heap_note[0])
        text_addf(out, "(heap: %s)", r->heap_note);
}

static const char *bytes_of(Number bytes, char *text, size_t size)
{
    return bytes.valid ? format_bytes((int64_t)bytes.value, text, size) : "n/a";
}

/* What a decoder pays for the next token, by the closed form of the run. */
static void token_text(const Pane *pane, Text *out)
{
    const Mechanism *m = mechanism_find(pane->request.mechanism);
    const Run       *run = pane->result ? pane->result->run : NULL;
    StepRecord       step;
    char             adds[32], held[32], reads[32], flops[32];

    text_add(out, "a token more: ");
    if (m && !m->causal) { /* a causal run of it fails */
        text_add(out, "n/a: it has no causal form, so it cannot generate token by token");
        return;
    }
    if (!run || run_failed(run)) {
        text_add(out, "n/a: there is no run yet");
        return;
    }
    step_costs(run, &step);
    if (run->mechanism->causal && !run->causal)
        text_add(out, "n/a: the run is not causal; :causal on makes it so");
    else if (*step.lacks)
        text_addf(out, "n/a: %s", step.lacks);
    else
        text_addf(out, "adds %s to the %s held, reads %s, %s",
                  bytes_of(step.kv_bytes_per_token, adds, sizeof(adds)),
                  bytes_of(step.state_bytes, held, sizeof(held)),
                  bytes_of(step.step_bytes, reads, sizeof(reads)),
                  flops_text(step.decode_flops.value, flops, sizeof(flops)));
}

static void draw_line(Ui *ui, Area area, const Text *line, int *y)
{
    term_text(ui->term, (*y)++, area.x + 1, area.w - 2, text_str(line), ui_style(ui, ROLE_TEXT));
}

/* The line of the quality, and under it, where there is room, that of a token more; *y: the line
 * below. */
static void draw_lines(Ui *ui, Area area, const Pane *pane, int *y)
{
    Text quality = { 0 }, token = { 0 };

    quality_text(pane, area.w - 2, &quality);
    draw_line(ui, area, &quality, y);
    if (*y < area.y + area.h) {
        token_text(pane, &token);
        draw_line(ui, area, &token, y);
    }
    text_free(&quality);
    text_free(&token);
}

/* Stages, and under them plots where there is room. */
static void draw_rest(Ui *ui, Area area, const Pane *pane)
{
    const Record *r = pane_record(pane);
    int           lines = r && r->stage_count > 4 ? r->stage_count + 2 : 6;
    bool          more = r && area.h >= lines + PLOT_LINES;
    Area          below = { area.y + lines, area.x, area.h - lines, area.w };

    if (more && profile_has_gpu(pane))
        profile_gpu_draw(ui, below, pane);
    else if (more)
        profile_more_draw(ui, below);
    area.h = more ? lines : area.h;
    if (area.h >= 3)
        draw_stages(ui, area, pane);
}

/* Wide screens show two metrics a row, others only heap and GPU memory.  *y: the line below. */
static void draw_metrics(Ui *ui, Area area, bool wide, int *y)
{
    int height = ui->compare.count + 2, count = cost_count(ui), x = 0;

    for (int m = 0; m < count && *y + height <= area.y + area.h - 1; m++) {
        bool first = wide ? m % 2 == 0 && m + 1 < count : m == METRIC_HEAP && m + 1 < count;
        int  width = first ? area.w / 2 : area.w - x;

        draw_metric(ui, (Area){ *y, area.x + x, height, width }, (Metric)m);
        x = first ? width : 0;
        *y += first ? 0 : height;
    }
}

static void profile_draw(Ui *ui, Area area)
{
    Pane *pane = panes_focus(ui);
    bool  wide = area.w >= 110;
    int   y = area.y;

    if (!pane) {
        term_paragraph(ui->term, (Area){ area.y + area.h / 3, area.x + 4, 4, area.w - 8 },
                       "No pane is open, so there is nothing to measure.\n\n"
                       "1 goes to the list: Space marks, c compares.",
                       ui_style(ui, ROLE_TEXT));
        return;
    }
    if (ui->profiling.view != PROFILE_COSTS) {
        profile_plot_draw(ui, area);
        return;
    }
    draw_metrics(ui, area, wide, &y);
    draw_lines(ui, area, pane, &y);
    draw_rest(ui, (Area){ y, area.x, area.y + area.h - y, area.w }, pane);
}

static void scaling_start(Ui *ui);

void action_measure(Ui *ui)
{
    if (!ui->compare.count)
        ui_say(ui, ROLE_WARN, "no pane is open");
    if (ui->profiling.view == PROFILE_SCALING) {
        scaling_start(ui);
        return;
    }
    for (int i = 0; i < ui->compare.count; i++)
        pane_measure(ui, &ui->compare.panes[i]);
}

/* ---- time over n ----------------------------------------------------------- */

#define REPEATS 5

struct Scaling {
    Study study;
    bool  over;
};

void scaling_close(Ui *ui)
{
    struct Scaling *s = ui->profiling.scaling;

    if (!s)
        return;
    study_free(&s->study);
    free(s);
    ui->profiling.scaling = NULL;
}

static bool add_scaling_line(struct Scaling *s, const Request *request, Error *err)
{
    Request timed = *request; /* borrows */

    timed.repeat = REPEATS;
    timed.width = SCALING_WIDTH;
    return study_add(&s->study, &timed, err);
}

static void scaling_start(Ui *ui)
{
    const Input    *like = session_input(ui->session);
    struct Scaling *s;
    Error           err = ERROR_INIT;

    scaling_close(ui);
    s = calloc(1, sizeof(*s));
    if (!s || !like ||
        !study_open_lengths(&s->study, like, SCALING_FIRST, SCALING_LAST, &err)) {
        free(s);
        return;
    }
    ui->profiling.scaling = s;
    for (int i = 0; i < ui->compare.count; i++) {
        const Request *request = &ui->compare.panes[i].request;

        if (request_has_tensors(request) || request->above)
            ui_say(ui, ROLE_WARN, "%s is left out: what it is given fits one length only",
                   request->mechanism);
        else if (!add_scaling_line(s, request, &err))
            ui_say(ui, ROLE_ERROR, "%s", err.text);
    }
    s->over = !s->study.count;
}

bool scaling_poll(Ui *ui)
{
    struct Scaling *s = ui->profiling.scaling;
    JobState        state = s && s->study.job ? job_state(s->study.job) : JOB_WAITING;
    bool            ended = state != JOB_WAITING && state != JOB_RUNNING;

    if (!s)
        return false;
    if (ended)
        s->over = !study_end(&s->study) || s->over || !study_next(&s->study);
    if (!s->over && !s->study.job && !session_busy(ui->session))
        s->over = !study_begin(&s->study, ui->session);
    return ended;
}

bool scaling_runs(const Ui *ui)
{
    return ui->profiling.scaling && !ui->profiling.scaling->over;
}

/* Measured points stay; false: nothing ran. */
static bool scaling_cancel(Ui *ui)
{
    struct Scaling *s = ui->profiling.scaling;

    if (!scaling_runs(ui))
        return false;
    s->over = true;
    if (s->study.job)
        job_cancel(s->study.job);
    return true;
}

/* ---- the plot ------------------------------------------------------------------ */

void scaling_title(const Ui *ui, char *text, size_t size)
{
    const struct Scaling *s = ui->profiling.scaling;
    int                   all, done = s ? study_done(&s->study, &all) : 0;

    if (!s)
        snprintf(text, size, "time over n");
    else
        snprintf(text, size, "time over n, N(0,1) inputs, %lld head%s of %lld: %d of %d points%s",
                 (long long)s->study.heads, s->study.heads == 1 ? "" : "s",
                 (long long)s->study.d, done, all, s->over && done < all ? ", stopped" : "");
}

/* The first length of all panes is measured. */
static bool scaling_known(const Ui *ui)
{
    const struct Scaling *s = ui->profiling.scaling;
    int                   all;

    return s && s->study.count && study_done(&s->study, &all) >= s->study.count;
}

Plot *scaling_plot(const Ui *ui, Error *err)
{
    return scaling_known(ui) ? study_scaling_plot(&ui->profiling.scaling->study, err) : NULL;
}

Figure *scaling_figure(const Ui *ui, Text *command, Error *err)
{
    const struct Scaling *s = ui->profiling.scaling;
    const Request        *requests[STUDY_LINES];
    Figure               *figure;

    if (!scaling_known(ui)) {
        if (err->code == ERR_NONE)
            error_set(err, ERR_DATA, "nothing is measured yet: r measures");
        return NULL;
    }
    figure = study_scaling_figure(&s->study, err);
    for (int i = 0; figure && i < s->study.count; i++)
        requests[i] = &s->study.lines[i].request;
    if (figure)
        picture_scaling_command(requests, s->study.count, SCALING_LAST, s->study.heads,
                                s->study.d, command);
    return figure;
}

static bool profile_runs(const Ui *ui)
{
    return ui->profiling.work || scaling_runs(ui);
}

const Screen screen_profile = {
    .tab = "4 Profile",
    .mode = "PROFILE",
    .scope = IN_PROFILE,
    .hint = pane_hint,
    .draw = profile_draw,
    .turn = profile_turn,
    .poll = profile_poll,
    .runs = profile_runs,
    .cancel = scaling_cancel,
    .figure = profile_figure,
    .take = profile_take,
    .end = profile_end,
};
