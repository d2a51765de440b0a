/* ui/screen/form.h -- a request as rows of names and values: what the parameter editor edits.
 *
 * The rows come from the mechanism's Param table and the position's; the tensors that
 * a text names as $name have a row each.  Position, causal, seed and fit stand below them.
 */
#ifndef UI_SCREEN_FORM_H
#define UI_SCREEN_FORM_H

#include "ui/pane/pane.h"

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

void        form_make(const Pane *pane, Form *form);
const char *form_name(const FormRow *row);
const char *form_help(const Pane *pane, const FormRow *row);
void        form_value(const Pane *pane, const FormRow *row, Text *out);
void        form_default(const FormRow *row, Text *out);
void        form_range(const FormRow *row, Text *out); /* "0..64", "yes no" */
/* Changes the pane's request; an empty text gives the default. */
bool form_set(Session *session, Pane *pane, const FormRow *row, const char *text, Error *err);
/* The next value up or down; false: there is none. */
bool form_step(const Pane *pane, const FormRow *row, int direction, Text *out);

#endif
