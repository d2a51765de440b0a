/* ui/pane/costs.h -- what the runs of panes cost, and what a change of parameters does to that.
 */
#ifndef UI_PANE_COSTS_H
#define UI_PANE_COSTS_H

#include "ui/pane/pane.h"

typedef enum Metric {
    METRIC_TIME, METRIC_FLOPS, METRIC_ARENA, METRIC_HEAP,
    METRIC_DEVICE, /* the last: there only where a pane was measured on a GPU */
    METRIC_COUNT
} Metric;

extern const char *const cost_names[METRIC_COUNT];
/* Record of the measurement; NULL: not measured. */
const Record *pane_record(const Pane *pane);
/* FLOPs are counted by every run; the rest is measured when asked for. */
Number cost_number(const Pane *pane, Metric metric);
int    cost_count(const Ui *ui); /* number of metrics with values */
double cost_largest(const Ui *ui, Metric metric);
void   cost_label(const Pane *pane, Metric metric, Number number, char *text, size_t size);
void   cost_bar(Ui *ui, int y, int x, int width, double share, Role role);
/* Lines that a pane's cost takes: 1 on a tall compare screen, else 0. */
int    pane_cost_lines(const Ui *ui, const Pane *pane);
/* A pane's cost in a line: a bar of its time, to the slowest pane's, and the numbers that fit. */
void   cost_line(Ui *ui, const Pane *pane, Area line);
/* "130 kFLOP" */
char *flops_text(double flops, char *text, size_t size);

/* What a change of parameters costs and keeps, before it and now.
 *
 * FLOPs follow the key at once: the closed form needs no run.  It is trusted once it gave
 * the last run's own count exactly (some mechanisms know their cost only after a run).
 * Bytes moved are the last run's; kept mass is measured behind the screen, on the worker,
 * whenever it has nothing else to do.  Numbers of an older value are marked.
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
    bool          moved;   /* the request has changed since the form was opened */
    bool          slow;    /* it takes too long to follow a key */
    Job          *job;     /* of the kept mass; NULL: none */
    bool          first;   /* the job measures the value before the change */
    const Result *of;      /* the last result taken; to compare with only */
    bool          masses;  /* the kept mass of `of` was asked for */
    int64_t       heads;   /* that it and the error are over */
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
