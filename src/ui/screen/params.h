/* ui/screen/params.h -- a request as rows of names and values: what the parameter editor edits.
 *
 * The rows come from the mechanism's Param table and the position's; the tensors that
 * a text names as $name have a row each.  Position, causal, seed and fit stand below them.
 */
#ifndef UI_SCREEN_PARAMS_H
#define UI_SCREEN_PARAMS_H

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

/* What a change of parameters costs and keeps, before it and now.
 *
 * FLOPs follow the key at once: the closed form needs no run.  It is trusted once it gave
 * the last run's own count exactly (some mechanisms can tell their cost only after a run).
 * Bytes moved are the last run's; kept mass is measured behind the screen, on the worker,
 * whenever it has nothing else to do.  What is of an older value is marked so.
 */

typedef struct MeterNumber {
    double before, now;
    bool   before_known, known;
    bool   stale; /* `now` is of an older value */
} MeterNumber;

typedef struct Meter {
    MeterNumber   flops, bytes, mass, error;
    bool          bound;   /* the closed form is an upper bound */
    bool          trusted; /* the closed form gave the count of a run */
    bool          moved;   /* the request is not what it was when the form was opened */
    bool          slow;    /* it takes too long to follow a key */
    Job          *job;     /* of the kept mass; NULL: none */
    bool          first;   /* it is of what was before */
    const Result *of;      /* the last result taken; to compare with only */
    bool          masses;  /* the kept mass of `of` was asked for */
} Meter;

void meter_open(Ui *ui, Meter *meter, const Pane *pane);
void meter_change(Ui *ui, Meter *meter, const Pane *pane); /* the request is another one */
bool meter_poll(Ui *ui, Meter *meter, const Pane *pane);   /* true: something is to be drawn */
void meter_close(Meter *meter);

/* Lines it needs beside a form in a box of this height; 0: there is no room. */
int  meter_height(int height);
/* The same in one line: "1.2 MFLOP (+247 %), kept 0.8478". */
void meter_words(const Meter *meter, Text *out);
void meter_draw(Ui *ui, const Meter *meter, Area area);

#endif
