/* meter.c -- see meter.h. */
#include "ui/screen/meter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/shell/explorer.h"

#define LINES         3
#define ROOMY         16   /* lines of a box that has room for all of them */
#define PLANNED_UP_TO 16384
#define MASS_UP_TO    8192 /* exact attention is n x n */
#define FIRST_UP_TO   2048
#define QUICK         0.03 /* seconds a closed form may take to follow a key */

/* ---- numbers ---------------------------------------------------------------- */

static void set_before(MeterNumber *number, double value)
{
    number->before = value;
    number->before_known = true;
}

static void set_now(const Meter *meter, MeterNumber *number, double value)
{
    number->now = value;
    number->known = true;
    number->stale = false;
    if (!meter->moved)
        set_before(number, value);
}

static bool plan(Ui *ui, Meter *meter, const Request *request, double *flops, bool *bound)
{
    double start = ui_now();
    Flops  planned;
    bool   ok = !meter->slow && session_input(ui->session)->n <= PLANNED_UP_TO &&
              request_planned_flops(ui->session, request, &planned, bound);

    meter->slow |= ui_now() - start > QUICK;
    *flops = ok ? flops_total(planned) : 0;
    return ok;
}

/* Whether the closed form says of a run what was counted in it. */
static bool plan_holds(Ui *ui, Meter *meter, const Result *result)
{
    double flops;
    bool   bound = false;

    if (!plan(ui, meter, &result->request, &flops, &bound) || !result->record.has_closed_form)
        return false;
    meter->bound = bound;
    return fabs(flops - flops_total(result->record.closed_form)) <= 1e-9 * flops;
}

static void take_result(Ui *ui, Meter *meter, const Result *result)
{
    meter->of = result;
    meter->masses = false;
    set_now(meter, &meter->flops, flops_total(result->record.counted));
    set_now(meter, &meter->bytes, result->record.bytes.read + result->record.bytes.written);
    meter->trusted = plan_holds(ui, meter, result);
}

/* ---- the kept mass ---------------------------------------------------------- */

static void drop_job(Meter *meter)
{
    job_free(meter->job);
    meter->job = NULL;
}

static void ask_mass(Ui *ui, Meter *meter, const Pane *pane)
{
    Request request = pane->request;
    Error   err = ERROR_INIT;

    meter->masses = true;
    meter->first = !meter->moved;
    if (session_input(ui->session)->n > MASS_UP_TO)
        return;
    request.above = NULL; /* it is the layer's own */
    request.measure = request.missed = false;
    request.repeat = request.seeds = 0;
    request.quality = true;
    meter->job = session_submit(ui->session, &request, &err);
}

static void take_quality(Meter *meter, const Quality *quality)
{
    const Number numbers[2] = { quality->mass_mean, quality->output_error };
    MeterNumber *const shown[2] = { &meter->mass, &meter->error };

    for (int i = 0; i < 2; i++)
        if (numbers[i].valid && meter->first && meter->moved)
            set_before(shown[i], numbers[i].value);
        else if (numbers[i].valid)
            set_now(meter, shown[i], numbers[i].value);
}

static bool poll_mass(Meter *meter)
{
    JobState state = meter->job ? job_state(meter->job) : JOB_WAITING;
    Result  *result;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    result = state == JOB_DONE ? job_result(meter->job) : NULL;
    if (result && result->run->err.code == ERR_NONE)
        take_quality(meter, &result->record.quality);
    result_release(result);
    drop_job(meter);
    return true;
}

/* ---- following the form ----------------------------------------------------- */

void meter_open(Ui *ui, Meter *meter, const Pane *pane)
{
    *meter = (Meter){ 0 };
    meter_poll(ui, meter, pane);
}

void meter_change(Ui *ui, Meter *meter, const Pane *pane)
{
    double flops;
    bool   bound = false;

    /* What was before is worth a moment of the worker, if it is one. */
    if (!meter->first || session_input(ui->session)->n > FIRST_UP_TO)
        drop_job(meter);
    meter->moved = true;
    meter->of = NULL;
    meter->flops.stale = meter->bytes.stale = meter->mass.stale = meter->error.stale = true;
    if (!meter->trusted || !plan(ui, meter, &pane->request, &flops, &bound))
        return;
    meter->bound = bound;
    set_now(meter, &meter->flops, flops);
}

bool meter_poll(Ui *ui, Meter *meter, const Pane *pane)
{
    bool idle = !pane->job && pane->result && !pane->problem[0] &&
                request_same(&pane->result->request, &pane->request);
    bool changed = poll_mass(meter);

    if (idle && meter->of != pane->result) {
        take_result(ui, meter, pane->result);
        changed = true;
    }
    if (idle && !meter->masses && !meter->job)
        ask_mass(ui, meter, pane);
    return changed;
}

void meter_close(Meter *meter)
{
    drop_job(meter);
    meter->of = NULL;
}

/* ---- drawing ---------------------------------------------------------------- */

int meter_height(int height)
{
    return height >= ROOMY ? LINES : 0;
}

typedef char *NumberText(double value, char *text, size_t size);

static char *bytes_text(double value, char *text, size_t size)
{
    return format_bytes((int64_t)value, text, size);
}

static char *count_text(double value, char *text, size_t size)
{
    return format_count(value, text, size);
}

static char *share_text(double value, char *text, size_t size)
{
    snprintf(text, size, "%.4f", value);
    return text;
}

/* How it changed: in percent, shares in their own unit. */
static void change_text(const MeterNumber *number, bool share, char *text, size_t size)
{
    double change = number->now - number->before;

    text[0] = '\0';
    if (!number->before_known)
        return;
    if (share)
        snprintf(text, size, "%+.4f", change);
    else if (number->before > 0)
        snprintf(text, size, "%+.3g %%", 100 * change / number->before);
    if (change == 0)
        snprintf(text, size, "as before");
}

/* A bar of what it is now, with a mark at what it was. */
static void draw_bar(Ui *ui, const MeterNumber *number, bool share, Area line)
{
    double most = share ? 1 : fmax(number->before, number->now);
    int    now = most > 0 ? (int)lround(number->now / most * line.w) : 0;
    int    before = most > 0 ? (int)lround(number->before / most * line.w) : 0;
    bool   utf8 = ui->term->utf8;

    for (int i = 0; i < line.w && i < now; i++)
        term_char(ui->term, line.y, line.x + i, utf8 ? 0x2588 : '#',
                  ui_style(ui, number->stale ? ROLE_DIM : ROLE_METER));
    if (number->before_known && before != now && before > 0)
        term_char(ui->term, line.y, line.x + before - 1, utf8 ? 0x2502 : '|',
                  ui_style(ui, ROLE_KEY));
}

#define BAR_FROM 52 /* columns from which there is a bar */
#define BAR      12

static void draw_number(Ui *ui, const char *name, const MeterNumber *number, bool share,
                        bool bound, NumberText *words, Area line)
{
    char  before[32], now[32], change[32];
    Text  out = { 0 };
    Style style = ui_style(ui, number->stale ? ROLE_DIM : ROLE_TEXT);
    int   bar = line.w >= BAR_FROM && number->known ? BAR + 1 : 0;

    term_text(ui->term, line.y, line.x, 7, name, ui_style(ui, ROLE_KEY));
    if (!number->known) {
        term_text(ui->term, line.y, line.x + 7, line.w - 7, "not known yet",
                  ui_style(ui, ROLE_DIM));
        return;
    }
    change_text(number, share, change, sizeof(change));
    words(number->now, now, sizeof(now));
    if (number->before_known && number->now != number->before)
        text_addf(&out, "%s \xe2\x86\x92 ", words(number->before, before, sizeof(before)));
    text_addf(&out, "%s%s  %s", bound ? "\xe2\x89\xa4 " : "", now,
              number->stale ? "(of an older value)" : change);
    if (bar)
        draw_bar(ui, number, share, (Area){ line.y, line.x + line.w - BAR, 1, BAR });
    term_text(ui->term, line.y, line.x + 7, line.w - 7 - bar, text_str(&out), style);
    text_free(&out);
}

void meter_words(const Meter *meter, Text *out)
{
    char number[32], change[32];

    if (!meter->flops.known)
        return;
    text_add(out, flops_text(meter->flops.now, number, sizeof(number)));
    change_text(&meter->flops, false, change, sizeof(change));
    text_addf(out, " (%s)", meter->flops.stale ? "older" : change);
    if (meter->mass.known)
        text_addf(out, ", kept %s%s", share_text(meter->mass.now, number, sizeof(number)),
                  meter->mass.stale ? " (older)" : "");
}

void meter_draw(Ui *ui, const Meter *meter, Area area)
{
    bool errors = !meter->mass.known && meter->error.known;
    bool planned = meter->bound && !meter->flops.stale && !meter->of; /* of no run yet */

    draw_number(ui, "FLOPs", &meter->flops, false, planned, count_text,
                (Area){ area.y, area.x, 1, area.w });
    draw_number(ui, "moved", &meter->bytes, false, false, bytes_text,
                (Area){ area.y + 1, area.x, 1, area.w });
    draw_number(ui, errors ? "error" : "kept", errors ? &meter->error : &meter->mass, true, false,
                share_text, (Area){ area.y + 2, area.x, 1, area.w });
}
