/* app/figure/plan.h -- words of a figure: panels, their looks, and the plan to run.
 *
 * {pool=mean,scale=log,cmap=magma,region=0:64,0:64} behind a panel's word sets the looks of this
 * panel.  The command line reads it; the explorer and Lua write it, so that one command draws
 * panels of different looks.
 */
#ifndef APP_FIGURE_PLAN_H
#define APP_FIGURE_PLAN_H

#include <stdint.h>

#include "app/call.h"
#include "app/result/views.h"
#include "app/session/session.h"
#include "attn/run/mechanism.h"
#include "core/error.h"
#include "draw/figure/figure.h"

/* What a panel shows of a result, and how: a value, copied as one.  What is not chosen is as the
 * options of the figure say, or the view's own. */
typedef struct PanelSpec {
    char    view[48];       /* "": the most informative one; "permutation#3": the third; in a plan
                               "name*": each that begins so and is not in the figure yet */
    char    minus_view[48]; /* of what is subtracted; "": of the same name */
    int64_t head;           /* -1: not chosen; HEADS_ALL: a panel of each */
    int64_t round;          /* from 1, of a view that has several planes a head; 0: not chosen */
    bool    sorted;         /* tokens in the mechanism's own order */
    int     pool, scale, map; /* a Pool, Scale, ColourMap; -1: not chosen */
    Region  region;         /* all zero: not chosen */
    bool    ranged;         /* lo..hi holds */
    double  lo, hi;         /* values the colours span */
    bool    excludes;       /* this key is left out of colour ranges */
    int64_t excluded;
    ReachOptions reach;     /* 0 layers: not chosen */
    char    notes[NOTES_BYTES]; /* marked cells: draw/grid/annotation.h */
} PanelSpec;

#define PANEL_SPEC_INIT ((PanelSpec){ .head = -1, .pool = -1, .scale = -1, .map = -1 })

/* Nothing but the view is chosen. */
PanelSpec panel_spec(const char *view);
/* Appends its looks as "{...}", or nothing. */
void panel_spec_text(const PanelSpec *spec, Text *out);
bool panel_spec_looks_same(const PanelSpec *a, const PanelSpec *b);
/* Applies the looks to a panel that was made with its figure's options. */
bool panel_spec_apply(const PanelSpec *spec, const Result *result, Panel *panel, Error *err);

/* One panel of a figure in words.
 *
 *     words = word { " + " word }         curves that share one plot
 *     word = side [ " - " side ] [looks]  the second is subtracted from the first
 *     side = MECH[(name=value,..)] [":" VIEW ["/sorted"]] ["@" HEAD]
 *     looks = "{" name=value,.. "}"       see above
 *
 * HEAD is a number, or * for a panel of every head.  The command line, presets and the
 * explorer's command line read the same words.
 */

#define HEADS_ALL (-2)

typedef struct PanelWord {
    char     *mechanism; /* "bigbird(window=5)"; owned */
    char     *minus;     /* likewise, of what is subtracted; owned; NULL: no difference */
    PanelSpec spec;
} PanelWord;

/* End of the first word; " + " or nothing follows. */
const char *panel_word_end(const char *words);
/* On failure nothing is to be freed. */
bool panel_word_parse(const char *text, PanelWord *out, Error *err);
void panel_word_free(PanelWord *word);

/* What the words and options of a figure ask for, before anything runs.
 *
 * The command line runs and draws a plan; the explorer opens it in panes.
 */

#define FIGURE_PLAN_MOST 64

/* A panel before its runs. */
typedef struct PlannedPanel {
    Request   request;    /* owned */
    Request   minus;      /* owned; subtracted, where `differs` */
    PanelSpec spec;
    bool      differs;
    bool      joins;      /* joins the plot of the panel before it, as a curve */
    bool      plot;       /* its numbers are measured: app/figure/plots.h */
    bool      maybe;      /* left out where the run has no such view */
    char      title[128]; /* "": made of the request */
} PlannedPanel;

typedef struct FigurePlan {
    PlannedPanel *panels; /* owned */
    int        count, capacity;
    bool       effect; /* one row of panels a mechanism; weights on one scale */
} FigurePlan;

/* Plans the words and options of a call whose input is loaded.  Free with figure_plan_free also on
 * failure. */
bool figure_plan_make(Session *s, const Call *call, FigurePlan *out, Error *err);
void figure_plan_free(FigurePlan *plan);

/* Plans panels for the effect of a position: the view (NULL: weights) without it and with it, their
 * difference, and the term it adds to the scores. */
bool figure_plan_effect(FigurePlan *plan, const Request *with, const char *view, int64_t head,
                        const char *prefix, Error *err);

/* ---- names of views ------------------------------------------------------ */

/* Checks a name of a view before the run: false, with the nearest name, where it is surely a typo.
 * Traces, terms of a position and views of an inner mechanism are known after the run only, so a
 * name that is near none passes. */
bool view_name_check(const Mechanism *m, const char *name, Error *err);
const char *view_of_any(int index); /* a view that runs of any mechanism may have; NULL past it */

#endif
