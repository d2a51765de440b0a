/* params.c -- the parameter editor: a form over the pane's request, run as it changes.
 *
 * The rows come from the Param tables of mechanism and position; tensors that a text names as $name
 * have a row each; position, causal, seed and fit follow.  The request is changed in place; Esc
 * puts back what it was.  A refused value leaves the last good result on the screen.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/lesson/lesson.h"
#include "attn/run/position.h"
#include "ui/shell/actions.h"
#include "ui/state/panes.h"

#define ROWS_MOST 64

typedef enum RowKind { ROW_PARAM, ROW_TENSOR, ROW_SEED, ROW_CAUSAL, ROW_POSITION,
                       ROW_FIT } RowKind;

typedef struct FormRow {
    RowKind      kind;
    const Param *param;    /* of ROW_PARAM */
    char         name[64]; /* of ROW_TENSOR */
} FormRow;

typedef struct Form {
    FormRow rows[ROWS_MOST];
    int     count;
} Form;

/* ---- the form --------------------------------------------------------------- */

static void add_table(Form *form, const Param *table)
{
    for (const Param *p = table; p && p->name && form->count < ROWS_MOST - 4; p++)
        form->rows[form->count++] = (FormRow){ .kind = ROW_PARAM, .param = p };
}

static void add_tensor(Form *form, const char *name, size_t length)
{
    FormRow row = { .kind = ROW_TENSOR };

    if (length == 0 || length >= sizeof(row.name) || form->count >= ROWS_MOST - 4)
        return;
    memcpy(row.name, name, length);
    for (int i = 0; i < form->count; i++)
        if (!strcmp(form->rows[i].name, row.name))
            return;
    form->rows[form->count++] = row;
}

/* Tensors with user-defined names: those that a text mentions, and those given. */
static void add_tensors(Form *form, const Mechanism *m, const Assignments *given)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

    for (int i = 0; i < given->count; i++) {
        const Param *p = params_find(m->params, given->items[i].name);
        const char  *at = p && p->type == PARAM_TYPE_TEXT ? given->items[i].text : "";

        while ((at = strchr(at, '$'))) {
            at++;
            add_tensor(form, at, strspn(at, letters));
        }
    }
    for (int i = 0; i < given->count; i++)
        if (!params_find(m->params, given->items[i].name) &&
            strncmp(given->items[i].name, "pos_", 4) != 0)
            add_tensor(form, given->items[i].name, strlen(given->items[i].name));
}

static void form_make(const Pane *pane, Form *form)
{
    const Mechanism *m = mechanism_find(pane->request.mechanism);
    const Position  *position = position_find(pane->request.position);

    form->count = 0;
    add_table(form, m->params);
    if (m->free_tensors)
        add_tensors(form, m, &pane->request.given);
    if (m->positions != POSITIONS_NONE)
        form->rows[form->count++] = (FormRow){ .kind = ROW_POSITION };
    if (position)
        add_table(form, position->params);
    form->rows[form->count++] = (FormRow){ .kind = ROW_CAUSAL };
    form->rows[form->count++] = (FormRow){ .kind = ROW_SEED };
    if (m->fit)
        form->rows[form->count++] = (FormRow){ .kind = ROW_FIT };
}

static const char *form_name(const FormRow *row)
{
    static const char *const names[] = { "", "", "seed", "causal", "position", "fit" };

    return row->kind == ROW_PARAM    ? row->param->name
           : row->kind == ROW_TENSOR ? row->name
                                     : names[row->kind];
}

static void form_default(const FormRow *row, Text *out)
{
    switch (row->kind) {
    case ROW_PARAM:
        if (row->param->type == PARAM_TYPE_TENSOR)
            text_add(out, row->param->drawn && strcmp(row->param->drawn, "absent") ? "drawn"
                                                                                   : "none");
        else
            params_print(row->param, NULL, out);
        break;
    case ROW_TENSOR: text_add(out, strcmp(row->name, "segments") ? "none" : "input"); break;
    case ROW_SEED: text_add(out, "0"); break;
    case ROW_CAUSAL: text_add(out, "input"); break;
    case ROW_POSITION: text_add(out, "none"); break;
    case ROW_FIT: text_add(out, "no"); break;
    }
}

static void form_value(const Pane *pane, const FormRow *row, Text *out)
{
    const Assignment *given;

    switch (row->kind) {
    case ROW_PARAM:
    case ROW_TENSOR:
        given = assignments_find(&pane->request.given, form_name(row));
        if (given)
            text_add(out, given->text);
        else
            form_default(row, out);
        break;
    case ROW_SEED: text_addf(out, "%llu", (unsigned long long)pane->request.seed); break;
    case ROW_CAUSAL:
        text_add(out, pane->request.causal < 0 ? "input" : pane->request.causal ? "yes" : "no");
        break;
    case ROW_POSITION: text_add(out, pane->request.position); break;
    case ROW_FIT: text_add(out, pane->request.fit ? "yes" : "no"); break;
    }
}

/* A bound too large to matter is none. */
static bool is_bound(double bound)
{
    return fabs(bound) < 1e9;
}

static void bound_text(double bound, char *text, size_t size)
{
    *text = '\0';
    if (is_bound(bound))
        snprintf(text, size, "%.10g", bound);
}

/* "0..64", "0..", "any", "yes no" */
static void form_range(const FormRow *row, Text *out)
{
    const Param *p = row->param;
    char         lo[32], hi[32];

    if (row->kind != ROW_PARAM) {
        text_add(out, row->kind == ROW_SEED     ? "0.."
                      : row->kind == ROW_CAUSAL ? "input yes no"
                      : row->kind == ROW_FIT    ? "yes no"
                      : row->kind == ROW_TENSOR ? "@file.npy"
                                                : "");
        return;
    }
    for (int i = 0; p->choices && p->choices[i]; i++)
        text_addf(out, "%s%s", i ? " " : "", p->choices[i]);
    if (p->type == PARAM_TYPE_TENSOR || p->type == PARAM_TYPE_PER_HEAD)
        text_addf(out, "@file.npy%s", p->type == PARAM_TYPE_PER_HEAD ? " or " : "");
    if (p->type == PARAM_TYPE_BOOL)
        text_add(out, "true false");
    if (p->type != PARAM_TYPE_INT && p->type != PARAM_TYPE_FLOAT &&
        p->type != PARAM_TYPE_LIST && p->type != PARAM_TYPE_PER_HEAD)
        return;
    bound_text(p->lo, lo, sizeof(lo));
    bound_text(p->hi, hi, sizeof(hi));
    if (!is_bound(p->lo) && !is_bound(p->hi))
        text_addf(out, "any%s", p->even ? " even" : "");
    else
        text_addf(out, "%s%s..%s%s", p->above_lo ? ">" : "", lo, hi, p->even ? " even" : "");
}

static const char *form_help(const Pane *pane, const FormRow *row)
{
    const Position  *position = position_find(pane->request.position);
    const Mechanism *m = mechanism_find(pane->request.mechanism);

    switch (row->kind) {
    case ROW_PARAM: return row->param->help;
    case ROW_FIT: return m->fit;
    case ROW_TENSOR: return "the tensor that the expression names $...";
    case ROW_SEED: return "seed of every random draw";
    case ROW_CAUSAL: return "queries see no later key; input: as the input says";
    default: return position ? position->help : "how positions enter the scores";
    }
}

/* Rejects an invalid value here, where it can be corrected, instead of in the run. */
static bool can_be(const Pane *pane, const Param *param, const char *text, Error *err)
{
    const Mechanism *m = mechanism_find(pane->request.mechanism);
    const Position  *position = position_find(pane->request.position);
    const Param      table[] = { *param, { .name = NULL } };
    size_t           size = m ? m->params_size : 0;
    Assignments      given = { 0 };
    void            *values;
    bool             ok;

    size = position && position->params_size > size ? position->params_size : size;
    values = calloc(1, size + 1);
    ok = (values && assignments_set(&given, param->name, text, err)) ||
         error_set(err, ERR_NOMEM, "%s: not enough memory", param->name);
    ok = ok && params_bind(table, values, &given, err);
    assignments_free(&given);
    free(values);
    return ok;
}

/* Changes the pane's request; an empty text gives the default. */
static bool form_set(Session *session, Pane *pane, const FormRow *row, const char *text, Error *err)
{
    char  assignment[640];
    char *end;

    if (row->kind == ROW_PARAM && *text && *text != '@' && !can_be(pane, row->param, text, err))
        return false;
    switch (row->kind) {
    case ROW_TENSOR:
        if (*text && *text != '@')
            return error_set(err, ERR_PARAM, "%s: expected @FILE.npy, got '%.40s'", row->name,
                             text);
        /* fall through */
    case ROW_PARAM:
        assignments_remove(&pane->request.given, form_name(row));
        if (!*text)
            return true;
        snprintf(assignment, sizeof(assignment), "%s=%s", form_name(row), text);
        return request_set(session, &pane->request, assignment, err);
    case ROW_SEED:
        errno = 0;
        pane->request.seed = strtoull(text, &end, 10);
        return (!*end && !errno && *text && *text != '-') ||
               error_set(err, ERR_PARAM, "seed: '%.40s' is not a whole number from 0", text);
    case ROW_CAUSAL:
        if (strcmp(text, "yes") && strcmp(text, "no") && strcmp(text, "input"))
            return error_set(err, ERR_PARAM, "causal: '%.40s' is not input, yes or no", text);
        pane->request.causal = !strcmp(text, "input") ? -1 : !strcmp(text, "yes");
        return true;
    case ROW_FIT:
        if (strcmp(text, "yes") && strcmp(text, "no"))
            return error_set(err, ERR_PARAM, "fit: '%.40s' is not yes or no", text);
        pane->request.fit = !strcmp(text, "yes");
        return true;
    default:
        snprintf(pane->request.position, sizeof(pane->request.position), "%s", text);
        return true;
    }
}

/* The next position the mechanism takes, "none" among them. */
static void step_position(const Pane *pane, int direction, Text *out)
{
    const Mechanism *m = mechanism_find(pane->request.mechanism);
    const Position  *list[32], *p, *now = position_find(pane->request.position);
    int              count = 0, at = 0;

    list[count++] = NULL;
    for (size_t i = 0; (p = position_at(i)) && count < 32; i++)
        if (position_fits(p, m->positions)) {
            at = p == now ? count : at;
            list[count++] = p;
        }
    p = list[(at + direction + count) % count];
    text_add(out, p ? p->id : "none");
}

/* The next value up or down; false: there is none. */
static bool form_step(const Pane *pane, const FormRow *row, int direction, Text *out)
{
    static const char *const causal[] = { "input", "yes", "no" };
    int                      at = pane->request.causal < 0 ? 0 : pane->request.causal ? 1 : 2;
    Text                     value = { 0 };
    bool                     ok = true;

    switch (row->kind) {
    case ROW_PARAM:
        form_value(pane, row, &value);
        ok = params_step(row->param, text_str(&value), direction, out);
        break;
    case ROW_TENSOR: ok = false; break;
    case ROW_SEED:
        ok = direction > 0 || pane->request.seed > 0;
        text_addf(out, "%llu",
                  (unsigned long long)pane->request.seed + (unsigned long long)direction);
        break;
    case ROW_CAUSAL: text_add(out, causal[(at + direction + 3) % 3]); break;
    case ROW_FIT: text_add(out, pane->request.fit ? "no" : "yes"); break;
    default: step_position(pane, direction, out);
    }
    text_free(&value);
    return ok;
}

#define IDLE      0.15 /* seconds without a key before a live run */
#define LIVE_MOST 300  /* milliseconds the last run may have taken */
#define NAME_COLUMNS 16

static Pane *edited(Ui *ui)
{
    return ui->params.pane < ui->compare.count ? &ui->compare.panes[ui->params.pane] : NULL;
}

/* ---- changing --------------------------------------------------------------- */

static bool runs_live(Ui *ui)
{
    const Pane *pane = edited(ui);

    return pane && (!pane->result || pane->result->run_ms < LIVE_MOST);
}

static void run_changes(Ui *ui)
{
    Params *p = &ui->params;
    Pane   *pane = edited(ui);

    if (!p->changed || !pane)
        return;
    if (p->changed_at > 0 && (!runs_live(ui) || ui_now() - p->changed_at < IDLE))
        return;
    p->changed = false;
    panes_run(ui, pane);
}

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

    if (form_set(ui->session, edited(ui), row, text, &err))
        changed(ui, at_once);
    else
        snprintf(ui->params.problem, sizeof(ui->params.problem), "%s", err.text);
}

/* The row at the cursor, in a form made now; NULL: no pane is edited. */
static const FormRow *row_here(Ui *ui, Form *form)
{
    if (!edited(ui))
        return NULL;
    form_make(edited(ui), form);
    return &form->rows[ui->params.line];
}

static void step_value(Ui *ui, int direction)
{
    Form           form;
    const FormRow *row = row_here(ui, &form);
    Text           text = { 0 };

    if (!row || ui->params.typing)
        return;
    if (form_step(edited(ui), row, direction, &text))
        apply(ui, row, text_str(&text), false);
    else
        snprintf(ui->params.problem, sizeof(ui->params.problem),
                 "%s: no further step; type a value", form_name(row));
    text_free(&text);
}

static void select_row(Ui *ui, int by)
{
    Form           form;
    const FormRow *row = row_here(ui, &form);

    if (!row)
        return;
    if (ui->params.typing)
        apply(ui, row, ui->params.field.text, false);
    ui->params.typing = false;
    form_make(edited(ui), &form); /* another position has other rows */
    ui->params.line = (ui->params.line + by + form.count) % form.count;
}

static void param_default(Ui *ui)
{
    Form           form;
    const FormRow *row = row_here(ui, &form);
    Text           text = { 0 };

    if (!row)
        return;
    ui->params.typing = false;
    if (row->kind != ROW_PARAM && row->kind != ROW_TENSOR)
        form_default(row, &text);
    apply(ui, row, text_str(&text), false);
    text_free(&text);
}

static void param_apply(Ui *ui)
{
    Params        *p = &ui->params;
    Form           form;
    const FormRow *row = row_here(ui, &form);

    if (!row)
        return;
    p->problem[0] = '\0';
    if (p->typing)
        apply(ui, row, p->field.text, true);
    p->typing = false;
    if (p->problem[0]) /* an invalid value stays visible for correction */
        return;
    p->changed_at = 0;
    run_changes(ui);
    if (request_same(&edited(ui)->request, &p->before))
        history_drop(ui);
    request_free(&p->before);
    p->before = (Request){ 0 };
    meter_close(&p->meter);
    ui_pop(ui);
}

/* Applies the values and closes, as Enter does; a refused value keeps the editor open. */
static void vary_row(Ui *ui, int seek)
{
    Form           form;
    const FormRow *row = row_here(ui, &form);

    if (!row)
        return;
    if (row->kind != ROW_PARAM) {
        snprintf(ui->params.problem, sizeof(ui->params.problem),
                 "%s: :vary %s=VALUES names a range", form_name(row), form_name(row));
        return;
    }
    param_apply(ui);
    if (ui_has(ui, SCREEN_PARAMS))
        return;
    ui->varying.wanted = row->param;
    ui->varying.wanted_of = ui->params.pane;
    ui->varying.wanted_seeks = seek;
    ui_open(ui, SCREEN_VARY);
}

/* The cost of what is typed so far, where it is a value; it counts once the field is left. */
static void preview(Ui *ui)
{
    Form           form;
    const FormRow *row = row_here(ui, &form);
    Pane          *pane = edited(ui);
    Request        before;
    Error          ignored = ERROR_INIT;

    if (!row || *ui->params.field.text == '@' ||
        !request_copy(&before, &pane->request, &ignored))
        return;
    if (form_set(ui->session, pane, row, ui->params.field.text, &ignored))
        meter_change(ui, &ui->params.meter, pane);
    request_free(&pane->request);
    pane->request = before;
}

static bool type_key(Ui *ui, uint32_t key)
{
    bool taken = field_key(&ui->params.field, key);

    if (taken)
        preview(ui);
    return taken;
}

static bool params_key(Ui *ui, uint32_t key)
{
    Params *p = &ui->params;

    if (p->typing && key != K_CONTROL('U') && (key == K_ARROW_LEFT || key == K_ARROW_RIGHT))
        return type_key(ui, key);
    if (key < 32 || key == K_LINE_HOME || key == K_LINE_END || key >= K_FIRST)
        return false;
    if (!p->typing) { /* Backspace edits the value, other keys replace it */
        Form form;
        Text text = { 0 };

        if (key == K_BACK)
            form_value(edited(ui), row_here(ui, &form), &text);
        field_set(&p->field, text_str(&text));
        text_free(&text);
    }
    p->typing = true;
    p->problem[0] = '\0';
    return type_key(ui, key);
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
        panes_run(ui, pane);
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

static bool params_open(Ui *ui)
{
    Params *p = &ui->params;
    Pane   *pane;
    Request before;

    if (ui->compare.now.effect && ui->compare.now.focus == 0)
        ui->compare.now.focus = 1; /* the pane with the position defines the others */
    pane = panes_focus(ui);
    if (!pane || !request_copy(&before, &pane->request, NULL))
        return false;
    history_note(ui);
    meter_close(&p->meter);
    *p = (Params){ .pane = ui->compare.now.focus, .before = before, .line = first_row(ui, pane) };
    meter_open(ui, &p->meter, pane);
    return true;
}

static bool params_poll(Ui *ui)
{
    Pane *pane = edited(ui);
    bool  shown = pane && ui_has(ui, SCREEN_PARAMS) && !ui->params.typing; /* else a preview */
    bool  changed = shown && meter_poll(ui, &ui->params.meter, pane);

    run_changes(ui);
    return changed;
}

static double params_deadline(Ui *ui)
{
    double left = ui->params.changed_at + IDLE - ui_now();

    if (!ui->params.changed || (ui->params.changed_at > 0 && !runs_live(ui)))
        return -1; /* nothing to run, or Enter starts it */
    return left > 0 ? left : 0.001;
}

/* ---- drawing ---------------------------------------------------------------- */

static void draw_row(Ui *ui, const Pane *pane, const FormRow *row, Area line, bool here)
{
    Term *term = ui->term;
    Text  value = { 0 }, range = { 0 }, usual = { 0 };
    int   x = line.x + 2 + NAME_COLUMNS + 1, left = line.w - NAME_COLUMNS - 4;
    int   width = left - 12 > 10 ? left - 12 : 10, room;
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
    room = line.x + line.w - x - width - 1;
    term_text(term, line.y, x + width + 1, room, /* whole or not at all: draw_help has it */
              term_width(text_str(&range)) <= room ? text_str(&range) : "\xe2\x80\xa6",
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

/* Help of the parameter, with its values where its line has no room for them. */
static int draw_help(Ui *ui, const Pane *pane, const FormRow *row, Area foot)
{
    Text range = { 0 }, out = { 0 };
    int  left = foot.w + 2 - NAME_COLUMNS - 4, width = left - 12 > 10 ? left - 12 : 10, used;
    bool cut;

    form_range(row, &range);
    cut = term_width(text_str(&range)) > left - (width > 22 ? 22 : width);
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
    term_paragraph(ui->term, (Area){ foot.y + used, foot.x, foot.h - used, foot.w },
                   text_str(&out), ui_style(ui, ROLE_GOOD));
    text_free(&out);
}

static void params_draw(Ui *ui, Area screen)
{
    Params *p = &ui->params;
    Pane   *pane = edited(ui);
    Area    area = params_area(ui);
    int     meter = meter_height(area.h), room = area.h - 7 - meter;
    Form    form;
    char    title[96];

    (void)screen;
    if (!pane)
        return;
    form_make(pane, &form);
    p->line = p->line < form.count ? p->line : form.count - 1;
    p->top = ui_scroll(p->top, p->line, room);
    snprintf(title, sizeof(title), "Parameters  %d %s", p->pane + 1, pane->request.mechanism);
    ui_window(ui, area, title);
    for (int i = 0; i < room && p->top + i < form.count; i++)
        draw_row(ui, pane, &form.rows[p->top + i],
                 (Area){ area.y + 1 + i, area.x + 1, 1, area.w - 2 }, p->top + i == p->line);
    ui_more(ui, area.y + 1 + room, area.x + 2, p->top, form.count - p->top - room);
    if (meter)
        meter_draw(ui, &p->meter,
                   (Area){ area.y + area.h - 5 - meter, area.x + 2, meter, area.w - 4 });
    draw_foot(ui, pane, &form.rows[p->line],
              (Area){ area.y + area.h - 5, area.x + 2, 4, area.w - 4 });
}

static void params_end(Ui *ui)
{
    meter_close(&ui->params.meter);
    request_free(&ui->params.before);
}

static const Action own[] = {
    { "param_up", "Up", IN_PARAMS, "=arrows change",
      "field above; what was typed counts", .run_with = select_row, .value = -1 },
    { "param_down", "Down Tab", IN_PARAMS, "", "field below; what was typed counts",
      .run_with = select_row, .value = 1 },
    { "param_less", "Left", IN_PARAMS, "", "one step down", .run_with = step_value, .value = -1 },
    { "param_more", "Right", IN_PARAMS, "", "one step up", .run_with = step_value, .value = 1 },
    { "param_apply", "Enter", IN_PARAMS, "keep and close",
      "keep the values and close; u undoes them", .run = param_apply },
    { "param_default", "C-r", IN_PARAMS, "default", "the default value", .run = param_default },
    { "param_vary", "C-v", IN_PARAMS, "vary",
      "keep the values, and run the mechanism over this parameter: error beside cost",
      .run_with = vary_row, .value = false },
    { "param_smallest", "C-k", IN_PARAMS, "",
      "the smallest value of this parameter that keeps 95 % of the mass",
      .run_with = vary_row, .value = true },
};

const Screen screen_params = {
    .mode = "PARAM",
    .scope = IN_PARAMS,
    .draw = params_draw,
    .key = params_key,
    .open = params_open,
    .close = params_leave,
    .escape = "undo",
    .keep = param_apply,
    .poll = params_poll,
    .deadline = params_deadline,
    .end = params_end,
    SCREEN_ACTIONS(own),
};
