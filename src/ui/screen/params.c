/* params.c -- the parameter editor: a form over the pane's request, run as it changes.
 *
 * The request is changed in place; Esc puts back what it was.  A value that is
 * refused leaves the last good result on the screen.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/lesson/page.h"
#include "ui/screen/compare.h"
#include "ui/screen/params.h"
#include "ui/shell/actions.h"
#include "ui/shell/explorer.h"
#include "ui/term/term.h"

#define IDLE      0.15 /* seconds without a key before a live run */
#define LIVE_MOST 300  /* milliseconds the last run may have taken */
#define NAME_COLUMNS 16

static Pane *edited(Ui *ui)
{
    return ui->params.pane < ui->compare.count ? &ui->compare.panes[ui->params.pane] : NULL;
}

/* ---- changing --------------------------------------------------------------- */

static void changed(Ui *ui, bool at_once)
{
    ui->params.changed = true;
    ui->params.changed_at = at_once ? 0 : ui_now();
    ui->params.problem[0] = '\0';
    if (edited(ui))
        meter_change(ui, &ui->params.meter, edited(ui));
}

static void apply(Ui *ui, const FormRow *row, const char *text, bool at_once)
{
    Error err = ERROR_INIT;
    Pane *pane = edited(ui);

    if (form_set(ui->session, pane, row, text, &err))
        changed(ui, at_once);
    else
        snprintf(ui->params.problem, sizeof(ui->params.problem), "%s", err.text);
}

static void step(Ui *ui, int direction)
{
    Pane *pane = edited(ui);
    Form  form;
    Text  text = { 0 };

    if (!pane || ui->params.typing)
        return;
    form_make(pane, &form);
    if (form_step(pane, &form.rows[ui->params.line], direction, &text))
        apply(ui, &form.rows[ui->params.line], text_str(&text), false);
    else
        snprintf(ui->params.problem, sizeof(ui->params.problem),
                 "%s: no further step; type a value", form_name(&form.rows[ui->params.line]));
    text_free(&text);
}

void action_param_less(Ui *ui)
{
    step(ui, -1);
}
void action_param_more(Ui *ui)
{
    step(ui, 1);
}

static void select_row(Ui *ui, int by)
{
    Pane *pane = edited(ui);
    Form  form;

    if (!pane)
        return;
    form_make(pane, &form);
    if (ui->params.typing)
        apply(ui, &form.rows[ui->params.line], ui->params.field.text, false);
    ui->params.typing = false;
    form_make(pane, &form); /* another position has other rows */
    ui->params.line = (ui->params.line + by + form.count) % form.count;
}

void action_param_up(Ui *ui)
{
    select_row(ui, -1);
}
void action_param_down(Ui *ui)
{
    select_row(ui, 1);
}

void action_param_default(Ui *ui)
{
    Pane *pane = edited(ui);
    Form  form;
    Text  text = { 0 };

    if (!pane)
        return;
    form_make(pane, &form);
    ui->params.typing = false;
    if (form.rows[ui->params.line].kind != ROW_PARAM &&
        form.rows[ui->params.line].kind != ROW_TENSOR)
        form_default(&form.rows[ui->params.line], &text);
    apply(ui, &form.rows[ui->params.line], text_str(&text), false);
    text_free(&text);
}

void action_param_apply(Ui *ui)
{
    Params *p = &ui->params;
    Pane   *pane = edited(ui);
    Form    form;

    if (!pane)
        return;
    form_make(pane, &form);
    p->problem[0] = '\0';
    if (p->typing)
        apply(ui, &form.rows[p->line], p->field.text, true);
    p->typing = false;
    if (p->problem[0]) /* what cannot be taken is to be seen and typed again */
        return;
    p->changed_at = 0;
    params_tick(ui);
    if (request_same(&pane->request, &p->before))
        history_drop(ui);
    request_free(&p->before);
    p->before = (Request){ 0 };
    meter_close(&p->meter);
    ui_pop(ui);
}

/* The editor closes as by Enter; what was not taken keeps it open. */
static void vary_row(Ui *ui, bool seek)
{
    Pane   *pane = edited(ui);
    Form    form;
    FormRow row;

    if (!pane)
        return;
    form_make(pane, &form);
    row = form.rows[ui->params.line];
    if (row.kind != ROW_PARAM) {
        snprintf(ui->params.problem, sizeof(ui->params.problem),
                 "%s: :vary %s=VALUES names a range", form_name(&row), form_name(&row));
        return;
    }
    action_param_apply(ui);
    if (!ui_has(ui, &params_layer))
        vary_param(ui, ui->params.pane, row.param, seek);
}

void action_param_vary(Ui *ui)
{
    vary_row(ui, false);
}
void action_param_smallest(Ui *ui)
{
    vary_row(ui, true);
}

static bool params_key(Ui *ui, uint32_t key)
{
    Params *p = &ui->params;

    if (p->typing && key != K_CONTROL('U') && (key == K_ARROW_LEFT || key == K_ARROW_RIGHT))
        return field_key(&p->field, key);
    if (key < 32 || key == K_LINE_HOME || key == K_LINE_END || key >= K_FIRST)
        return false;
    if (!p->typing && key != K_BACK)
        field_set(&p->field, "");
    if (!p->typing && key == K_BACK) {
        Form form;
        Text text = { 0 };

        form_make(edited(ui), &form);
        form_value(edited(ui), &form.rows[p->line], &text);
        field_set(&p->field, text_str(&text));
        text_free(&text);
    }
    p->typing = true;
    p->problem[0] = '\0';
    return field_key(&p->field, key);
}

static void params_leave(Ui *ui)
{
    Params *p = &ui->params;
    Pane   *pane = edited(ui);
    bool    same;

    meter_close(&p->meter);
    if (!pane)
        return;
    same = request_same(&pane->request, &p->before);
    history_drop(ui);
    request_free(&pane->request);
    pane->request = p->before;
    p->before = (Request){ 0 };
    p->changed = false;
    if (!same)
        compare_run(ui, pane);
}

/* Where a lesson's task names a parameter, the form opens on it; else on the first. */
static int first_row(const Ui *ui, const Pane *pane)
{
    const Lessons *l = &ui->lessons;
    Form           form;

    if (!lessons_docked(ui))
        return 0;
    form_make(pane, &form);
    for (int i = 0; i < form.count; i++)
        if (lesson_task_names(&l->running->steps[l->step], form_name(&form.rows[i])))
            return i;
    return 0;
}

void params_open(Ui *ui)
{
    Params *p = &ui->params;
    Pane   *pane;
    Request before;

    if (ui->compare.effect && ui->compare.focus == 0)
        ui->compare.focus = 1; /* what the panes have in common is the one with the position */
    pane = compare_focus(ui);
    if (!pane || !request_copy(&before, &pane->request, NULL))
        return;
    history_note(ui);
    meter_close(&p->meter);
    *p = (Params){ .pane = ui->compare.focus, .before = before, .line = first_row(ui, pane) };
    meter_open(ui, &p->meter, pane);
    ui_push(ui, &params_layer);
}

static bool runs_live(Ui *ui)
{
    const Pane *pane = edited(ui);

    return pane && (!pane->result || pane->result->run_ms < LIVE_MOST);
}

void params_tick(Ui *ui)
{
    Params *p = &ui->params;
    Pane   *pane = edited(ui);

    if (pane && ui_has(ui, &params_layer))
        ui->dirty |= meter_poll(ui, &p->meter, pane);
    if (!p->changed || !pane)
        return;
    if (p->changed_at > 0 && (!runs_live(ui) || ui_now() - p->changed_at < IDLE))
        return;
    p->changed = false;
    compare_run(ui, pane);
}

double params_deadline(Ui *ui)
{
    double left = ui->params.changed_at + IDLE - ui_now();

    if (!ui->params.changed || (ui->params.changed_at > 0 && !runs_live(ui)))
        return -1; /* nothing, or Enter, is waited for */
    return left > 0 ? left : 0.001;
}

/* ---- drawing ---------------------------------------------------------------- */

/* Beside the pane that is edited, or in the right column. */
Area params_area(Ui *ui)
{
    Area         all = ui_area(ui);
    Pane        *pane = edited(ui);
    CompareRooms rooms = compare_rooms(ui, all);

    if (rooms.dock.h)
        return rooms.dock;
    all.h -= 2;
    if (lessons_docked(ui)) /* over the words: the picture is what changes */
        return (Area){ all.y, 0, all.h, lesson_width(ui) ? lesson_width(ui) : all.w };
    all.w = all.w / 2 > 60 ? 60 : all.w / 2;
    if (!pane || pane->area.x < ui->term->cols / 3)
        all.x = ui->term->cols - all.w;
    return all;
}

static void draw_row(Ui *ui, const Pane *pane, const FormRow *row, Area line, bool here)
{
    Term *term = ui->term;
    Text  value = { 0 }, range = { 0 }, usual = { 0 };
    int   x = line.x + 2 + NAME_COLUMNS + 1, left = line.w - NAME_COLUMNS - 4;
    int   width = left - 12 > 10 ? left - 12 : 10;
    bool  given;

    form_value(pane, row, &value);
    form_range(row, &range);
    form_default(row, &usual);
    given = strcmp(text_str(&value), text_str(&usual)) != 0;
    if (!range.length)
        width = left;
    else if (width > 22)
        width = 22;
    if (here)
        term_char(term, line.y, line.x, 0x25B8, ui_style(ui, ROLE_KEY));
    term_text(term, line.y, line.x + 2, NAME_COLUMNS, form_name(row),
              ui_style(ui, here ? ROLE_TITLE : ROLE_TEXT));
    if (here && ui->params.typing)
        field_draw(&ui->params.field, term, line.y, x, width, ui_style(ui, ROLE_FIELD));
    else
        term_text(term, line.y, x, width, text_str(&value),
                  ui_style(ui, here    ? ROLE_SELECT
                               : given ? ROLE_MARK
                                       : ROLE_TEXT));
    term_text(term, line.y, x + width + 1, line.x + line.w - x - width - 1, text_str(&range),
              ui_style(ui, ROLE_DIM));
    text_free(&value);
    text_free(&range);
    text_free(&usual);
}

static void last_run(const Pane *pane, Text *out)
{
    char peak[32], flops[32];

    if (!pane->result)
        return;
    text_addf(out, "last run %.3g ms", pane->result->run_ms);
    if (pane->result->record.arena_peak.valid)
        text_addf(out, ", %s",
                  format_bytes((int64_t)pane->result->record.arena_peak.value, peak, sizeof(peak)));
    text_addf(out, ", %s",
              flops_text(flops_total(pane->result->record.counted), flops, sizeof(flops)));
}

/* What the parameter is, and what it can be where its line has no room for that. */
static int draw_help(Ui *ui, const Pane *pane, const FormRow *row, Area foot)
{
    Text range = { 0 }, out = { 0 };
    int  left = foot.w + 2 - NAME_COLUMNS - 4, width = left - 12 > 10 ? left - 12 : 10, used;
    bool cut;

    form_range(row, &range);
    cut = strchr(text_str(&range), ' ') && /* choices */
          term_width(text_str(&range)) > left - (width > 22 ? 22 : width);
    text_add(&out, form_help(pane, row));
    if (cut)
        text_addf(&out, " (%s)", text_str(&range));
    used = term_paragraph(ui->term, (Area){ foot.y, foot.x, cut && foot.h > 3 ? 3 : 2, foot.w },
                          text_str(&out), ui_style(ui, ROLE_DIM));
    text_free(&range);
    text_free(&out);
    return used;
}

static void draw_foot(Ui *ui, const Pane *pane, const FormRow *row, Area foot)
{
    Text        out = { 0 };
    Params     *p = &ui->params;
    const char *problem = p->problem[0] ? p->problem : pane->problem;
    int         used = draw_help(ui, pane, row, foot);

    if (problem[0]) {
        term_paragraph(ui->term, (Area){ foot.y + used, foot.x, foot.h - used, foot.w }, problem,
                       ui_style(ui, ROLE_ERROR));
        return;
    }
    if (pane->job)
        text_add(&out, "running\xe2\x80\xa6");
    else if (p->changed && !runs_live(ui))
        text_add(&out, "the last run was long: Enter runs");
    else if (meter_height(params_area(ui).h))
        last_run(pane, &out);
    else
        meter_words(&p->meter, &out);
    term_text(ui->term, foot.y + used, foot.x, foot.w, text_str(&out), ui_style(ui, ROLE_GOOD));
    text_free(&out);
}

static void params_draw(Ui *ui)
{
    Params *p = &ui->params;
    Pane   *pane = edited(ui);
    Area    area = params_area(ui);
    int     meter = meter_height(area.h), room = area.h - 7 - meter;
    Form    form;
    char    title[96];

    if (!pane)
        return;
    form_make(pane, &form);
    p->line = p->line < form.count ? p->line : form.count - 1;
    p->top = p->line < p->top ? p->line : p->line >= p->top + room ? p->line - room + 1 : p->top;
    snprintf(title, sizeof(title), "Parameters  %d %s", p->pane + 1, pane->request.mechanism);
    term_fill(ui->term, area, ' ', (Style){ 0 });
    term_frame(ui->term, area, title, true, ui_style(ui, ROLE_FOCUS), ui_style(ui, ROLE_TITLE));
    for (int i = 0; i < room && p->top + i < form.count; i++)
        draw_row(ui, pane, &form.rows[p->top + i],
                 (Area){ area.y + 1 + i, area.x + 1, 1, area.w - 2 }, p->top + i == p->line);
    if (meter)
        meter_draw(ui, &p->meter,
                   (Area){ area.y + area.h - 5 - meter, area.x + 2, meter, area.w - 4 });
    draw_foot(ui, pane, &form.rows[p->line],
              (Area){ area.y + area.h - 5, area.x + 2, 4, area.w - 4 });
}

const Layer params_layer = {
    .mode = "PARAM",
    .scope = IN_PARAMS,
    .draw = params_draw,
    .key = params_key,
    .leave = params_leave,
    .escape = "undo",
};

/* See params.h. */

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
