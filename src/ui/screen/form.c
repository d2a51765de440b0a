/* form.c -- see params.h. */
#include "ui/screen/params.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Tensors by names of the user's own: those that a text asks for, and those given. */
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

void form_make(const Pane *pane, Form *form)
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

const char *form_name(const FormRow *row)
{
    static const char *const names[] = { "", "", "seed", "causal", "position", "fit" };

    return row->kind == ROW_PARAM    ? row->param->name
           : row->kind == ROW_TENSOR ? row->name
                                     : names[row->kind];
}

void form_default(const FormRow *row, Text *out)
{
    switch (row->kind) {
    case ROW_PARAM:
        if (row->param->type == PARAM_TYPE_TENSOR)
            text_add(out, row->param->drawn ? "drawn" : "none");
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

void form_value(const Pane *pane, const FormRow *row, Text *out)
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

static void bound_text(double bound, char *text, size_t size)
{
    if (fabs(bound) >= 1e9) /* no bound that anybody meets */
        snprintf(text, size, "%s", bound > 0 ? "" : "-");
    else
        snprintf(text, size, "%.10g", bound);
}

void form_range(const FormRow *row, Text *out)
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
    text_addf(out, "%s%s..%s%s", p->above_lo ? ">" : "", lo, hi, p->even ? " even" : "");
}

const char *form_help(const Pane *pane, const FormRow *row)
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

/* What cannot be a value is refused here, where it can be typed again, not by a run. */
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

bool form_set(Session *session, Pane *pane, const FormRow *row, const char *text, Error *err)
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
        if (m->positions & p->class_) {
            at = p == now ? count : at;
            list[count++] = p;
        }
    p = list[(at + direction + count) % count];
    text_add(out, p ? p->id : "none");
}

bool form_step(const Pane *pane, const FormRow *row, int direction, Text *out)
{
    static const char *const causal[] = { "input", "yes", "no" };
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
    case ROW_CAUSAL:
        text_add(out, causal[((pane->request.causal < 0 ? 0
                               : pane->request.causal   ? 1
                                                        : 2) +
                              direction + 3) %
                             3]);
        break;
    case ROW_FIT: text_add(out, pane->request.fit ? "no" : "yes"); break;
    default: step_position(pane, direction, out);
    }
    text_free(&value);
    return ok;
}
