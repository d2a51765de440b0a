/* costs.c -- see costs.h.
 *
 * A number that was not measured has words, never an empty bar.
 */
#include "ui/pane/costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/state/explorer.h"

const char *const cost_names[METRIC_COUNT] = {
    "time, median",
    "FLOPs counted",
    "memory of the mechanism, peak",
    "heap, peak above its level before",
    "GPU memory, peak",
};

const Record *pane_record(const Pane *pane)
{
    return pane->measured ? &pane->measured->record : NULL;
}

Number cost_number(const Pane *pane, Metric metric)
{
    const Record *r = pane_record(pane), *any = r ? r : pane->result ? &pane->result->record : NULL;

    switch (metric) {
    case METRIC_TIME: return r ? r->time.median : NUMBER_NONE;
    case METRIC_FLOPS:
        return any && any->status == RECORD_OK ? number_of(flops_total(any->counted)) : NUMBER_NONE;
    case METRIC_ARENA: return r ? r->arena_peak : NUMBER_NONE;
    case METRIC_HEAP: return r ? r->heap_peak : NUMBER_NONE;
    default: return r ? r->device_peak : NUMBER_NONE;
    }
}

int cost_count(const Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++)
        if (cost_number(&ui->compare.panes[i], METRIC_DEVICE).valid)
            return METRIC_COUNT;
    return METRIC_DEVICE;
}

char *flops_text(double flops, char *text, size_t size)
{
    char   count[32];
    size_t length = strlen(format_count(flops, count, sizeof(count)));
    bool   bare = length > 0 && count[length - 1] >= '0' && count[length - 1] <= '9';

    snprintf(text, size, "%s%sFLOP", count, bare ? " " : "");
    return text;
}

void cost_label(const Pane *pane, Metric metric, Number number, char *text, size_t size)
{
    const Record *r = pane_record(pane);
    char          part[48];

    if (pane->measuring && (!number.valid || metric != METRIC_FLOPS)) /* those are counted */
        snprintf(text, size, "measuring\xe2\x80\xa6");
    else if (!number.valid)
        snprintf(text, size, metric == METRIC_DEVICE && r && !r->gpu ? "on the CPU"
                                                                     : "not measured");
    else if (metric == METRIC_TIME && r->time.q1.valid && r->time.q3.valid)
        snprintf(text, size, "%.3g ms  [%.3g, %.3g]", number.value, r->time.q1.value,
                 r->time.q3.value);
    else if (metric == METRIC_TIME)
        snprintf(text, size, "%.3g ms", number.value);
    else if (metric == METRIC_FLOPS)
        flops_text(number.value, text, size);
    else
        snprintf(text, size, "%s", format_bytes((int64_t)number.value, part, sizeof(part)));
}

void cost_bar(Ui *ui, int y, int x, int width, double share, Role role)
{
    static const uint32_t eighths[] = {
        ' ', 0x258F, 0x258E, 0x258D, 0x258C, 0x258B, 0x258A, 0x2589
    };
    int full = (int)(share * width * 8 + 0.5);

    for (int i = 0; i < width && full > 0; i++, full -= 8)
        term_char(ui->term, y, x + i, full >= 8 || !ui->term->utf8 ? 0x2588 : eighths[full],
                  ui_style(ui, role));
}

double cost_largest(const Ui *ui, Metric metric)
{
    double most = 0;

    for (int i = 0; i < ui->compare.count; i++) {
        Number number = cost_number(&ui->compare.panes[i], metric);

        if (number.valid)
            most = fmax(most, number.value);
    }
    return most;
}

#define TALL_FROM 50 /* lines from which each pane has a line for its cost */

int pane_cost_lines(const Ui *ui, const Pane *pane)
{
    const Pane *panes = ui->compare.panes;

    return ui->term->rows >= TALL_FROM && pane >= panes && pane < panes + PANES_MOST;
}

#define TIME_BAR      10 /* columns, in all panes the same, so that bars can be compared */
#define TIME_BAR_FROM 48

static const char *const cost_words[METRIC_COUNT] = { "", "", "own peak ", "heap peak ",
                                                      "GPU peak " };

/* "3.2 ms [3.1, 3.4] · 2.5 MFLOP · own peak 33 KiB": so many of them; what was not measured is
 * said once. */
static void cost_text(const Pane *pane, int count, Text *out)
{
    bool unmeasured = false;

    for (int m = 0; m < count; m++) {
        Number number = cost_number(pane, (Metric)m);
        char   label[64];

        if (!number.valid && (m != METRIC_DEVICE || !pane_record(pane))) {
            unmeasured |= m < METRIC_DEVICE;
            continue;
        }
        cost_label(pane, (Metric)m, number, label, sizeof(label));
        text_addf(out, "%s%s%s", out->length ? "  " : "", cost_words[m], label);
    }
    if (unmeasured)
        text_addf(out, "%s%s", out->length ? "  " : "",
                  pane->measuring           ? "measuring\xe2\x80\xa6"
                  : count < METRIC_TIME + 2 ? "4, then r measures"
                                            : "time and memory: 4, then r");
}

void cost_line(Ui *ui, const Pane *pane, Area line)
{
    Text   words = { 0 };
    double most = cost_largest(ui, METRIC_TIME);
    Number time = cost_number(pane, METRIC_TIME);
    bool   bar = line.w >= TIME_BAR_FROM && time.valid && most > 0;

    if (!pane->result)
        return;
    if (bar)
        cost_bar(ui, line.y, line.x, TIME_BAR, time.value / most, ROLE_METER);
    line.x += bar ? TIME_BAR + 1 : 0;
    line.w -= bar ? TIME_BAR + 1 : 0;
    for (int count = cost_count(ui); count > 0; count--) {
        text_clear(&words);
        cost_text(pane, count, &words);
        if (term_width(text_str(&words)) <= line.w)
            break;
    }
    term_text(ui->term, line.y, line.x, line.w, text_str(&words), ui_style(ui, ROLE_TEXT));
    text_free(&words);
}

/* ---- the meter of a change ---------------------------------------------------- */

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

/* Whether the closed form equals the FLOPs counted in the run. */
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
    Number traffic = record_traffic(result->record.bytes);

    meter->of = result;
    meter->masses = false;
    set_now(meter, &meter->flops, flops_total(result->record.counted));
    if (traffic.valid)
        set_now(meter, &meter->bytes, traffic.value);
    else
        meter->bytes.known = false;
    meter->trusted = plan_holds(ui, meter, result);
}

/* ---- the kept mass ---------------------------------------------------------- */

static void drop_job(Meter *meter)
{
    job_free(meter->job);
    meter->job = NULL;
}

/* No mass is measured by itself here. */
static bool is_long(const Ui *ui)
{
    return session_input(ui->session)->n > MASS_UP_TO;
}

static void ask_mass(Ui *ui, Meter *meter, const Pane *pane)
{
    Request request = pane->request;
    Error   err = ERROR_INIT;

    meter->masses = true;
    meter->first = !meter->moved;
    if (is_long(ui))
        return;
    request.above = NULL; /* this layer's cost only */
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
    if (result && result->run->err.code == ERR_NONE) {
        meter->heads = result->run->h;
        take_quality(meter, &result->record.quality);
    }
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

    /* On short inputs the worker still finishes the value before the change. */
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

static char *fraction_text(double value, char *text, size_t size)
{
    snprintf(text, size, "%.4f", value);
    return text;
}

/* The change in percent; that of a share as a difference. */
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

/* A bar of the present value, with a mark at the one before. */
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

/* What a kept share is of, as far as there is room. */
static const char *kept_of(int room)
{
    static const char *const words[] = { " of exact attention's mass", " of the mass", "" };
    int                      k = 0;

    while (term_width(words[k]) > room && *words[k])
        k++;
    return words[k];
}

#define BAR_FROM 52 /* columns from which there is a bar */
#define BAR      12

static void draw_meter_line(Ui *ui, const char *name, const MeterNumber *number, bool share,
                            bool bound, const char *of, NumberText *words, Area line)
{
    char  before[32], now[32], change[32];
    bool  kept = !strcmp(name, "kept");
    Text  out = { 0 }, end = { 0 };
    Style style = ui_style(ui, number->stale ? ROLE_DIM : ROLE_TEXT);
    int   bar = line.w >= BAR_FROM && number->known ? BAR + 1 : 0;

    term_text(ui->term, line.y, line.x, 7, name, ui_style(ui, ROLE_KEY));
    if (!number->known) {
        if (share && is_long(ui))
            term_textf(ui->term, line.y, line.x + 7, line.w - 7, ui_style(ui, ROLE_DIM),
                       "not measured above %d tokens; :quality", MASS_UP_TO);
        else
            term_text(ui->term, line.y, line.x + 7, line.w - 7, "not known yet",
                      ui_style(ui, ROLE_DIM));
        return;
    }
    change_text(number, share, change, sizeof(change));
    words(number->now, now, sizeof(now));
    if (number->before_known && number->now != number->before)
        text_addf(&out, "%s \xe2\x86\x92 ", words(number->before, before, sizeof(before)));
    text_addf(&end, "  %s%s", number->stale ? "(of an older value)" : change, of);
    text_addf(&out, "%s%s", bound ? "\xe2\x89\xa4 " : "", now);
    if (kept)
        text_add(&out, kept_of(line.w - 7 - bar - term_width(text_str(&out)) -
                               term_width(text_str(&end))));
    text_add(&out, text_str(&end));
    text_free(&end);
    if (bar)
        draw_bar(ui, number, share, (Area){ line.y, line.x + line.w - BAR, 1, BAR });
    term_text(ui->term, line.y, line.x + 7, line.w - 7 - bar, text_str(&out), style);
    text_free(&out);
}

/* The pane beside it may show one head of several. */
static const char *heads_words(const Meter *meter, char *text, size_t size)
{
    *text = '\0';
    if (meter->heads > 1)
        snprintf(text, size, " of all %lld heads", (long long)meter->heads);
    return text;
}

void meter_words(const Meter *meter, Text *out)
{
    char number[32], change[32], heads[40];

    if (!meter->flops.known)
        return;
    text_add(out, flops_text(meter->flops.now, number, sizeof(number)));
    change_text(&meter->flops, false, change, sizeof(change));
    text_addf(out, " (%s)", meter->flops.stale ? "older" : change);
    if (meter->mass.known)
        text_addf(out, ", kept %s%s%s", fraction_text(meter->mass.now, number, sizeof(number)),
                  heads_words(meter, heads, sizeof(heads)), meter->mass.stale ? " (older)" : "");
}

void meter_draw(Ui *ui, const Meter *meter, Area area)
{
    bool errors = !meter->mass.known && meter->error.known;
    char heads[40];
    bool planned = meter->bound && !meter->flops.stale && !meter->of; /* not measured yet */

    draw_meter_line(ui, "FLOPs", &meter->flops, false, planned, "", count_text,
                    (Area){ area.y, area.x, 1, area.w });
    if (meter->bytes.known || !meter->of) /* else the run counted none */
        draw_meter_line(ui, "moved", &meter->bytes, false, false, "", bytes_text,
                        (Area){ area.y + 1, area.x, 1, area.w });
    draw_meter_line(ui, errors ? "error" : "kept", errors ? &meter->error : &meter->mass, true,
                    false, heads_words(meter, heads, sizeof(heads)), fraction_text,
                    (Area){ area.y + 2, area.x, 1, area.w });
}
