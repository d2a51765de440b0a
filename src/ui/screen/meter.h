/* ui/screen/meter.h -- what a change of parameters costs and keeps, before it and now.
 *
 * FLOPs follow the key at once: the closed form needs no run.  It is trusted once it gave
 * the last run's own count exactly (some mechanisms can tell their cost only after a run).
 * Bytes moved are the last run's; kept mass is measured behind the screen, on the worker,
 * whenever it has nothing else to do.  What is of an older value is marked so.
 */
#ifndef UI_SCREEN_METER_H
#define UI_SCREEN_METER_H

#include "ui/pane/pane.h"

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
