/* app/figure/plan.h -- how one panel of a figure looks where the figure's options say otherwise.
 *
 *     {pool=mean,scale=log,cmap=magma,region=0:64,0:64}
 *
 * Behind a panel's word.  The command line reads it; the explorer and Lua write it, so that panels
 * that differ are one command all the same.
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
    char    view[48];       /* "": the most telling one; "permutation#3": the third; in a plan
                               "name*": each that begins so and is not in the figure yet */
    char    minus_view[48]; /* of what is subtracted; "": of the same name */
    int64_t head;           /* -1: not chosen; HEADS_ALL: a panel of each */
    int64_t round;          /* from 1, of a view that has several planes a head; 0: not chosen */
    bool    sorted;         /* tokens in the mechanism's own order */
    int     pool, scale, map; /* a Pool, Scale, ColourMap; -1: not chosen */
    Region  region;         /* all zero: not chosen */
    bool    ranged;         /* lo..hi holds */
    double  lo, hi;         /* values the colours span */
    bool    excludes;       /* this key counts in no range of colours */
    int64_t excluded;
    ReachOptions reach;     /* 0 layers: not chosen */
    char    notes[NOTES_BYTES]; /* marked cells: draw/grid/annotation.h */
} PanelSpec;

#define PANEL_SPEC_INIT ((PanelSpec){ .head = -1, .pool = -1, .scale = -1, .map = -1 })

/* Nothing but the view is chosen. */
PanelSpec panel_spec(const char *view);
/* Its looks, text: what stands between the braces of a panel's word. */
bool panel_spec_parse(const char *text, size_t length, PanelSpec *out, Error *err);
/* Appends its looks as "{...}", or nothing. */
void panel_spec_text(const PanelSpec *spec, Text *out);
bool panel_spec_looks_same(const PanelSpec *a, const PanelSpec *b);
/* The result's panel, made with the options of its figure, is given these looks. */
bool panel_spec_apply(const PanelSpec *spec, const Result *result, Panel *panel, Error *err);

/* One panel of a figure in words.
 *
 *     words = word { " + " word }         curves that share one plot
 *     word = side [ " - " side ] [looks]  the second is subtracted from the first
 *     side = MECH[(name=value,..)] [":" VIEW ["/sorted"]] ["@" HEAD]
 *     looks = "{" name=value,.. "}"       see plan.h
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

/* The end of the first of these words; after it " + " or nothing. */
const char *panel_word_end(const char *words);
/* On failure nothing is to be freed. */
bool panel_word_parse(const char *text, PanelWord *out, Error *err);
void panel_word_free(PanelWord *word);

/* What the words and options of a figure ask for, before anything runs.
 *
 * The command line runs a plan and draws it; the explorer opens it in panes.
 */

#define FIGURE_PLAN_MOST 64

/* A panel before its runs. */
typedef struct PlannedPanel {
    Request   request;    /* owned */
    Request   minus;      /* owned; what is subtracted, where it differs */
    PanelSpec spec;
    bool      differs;
    bool      joins;      /* its curve goes into the plot of the panel before it */
    bool      plot;       /* its numbers are measured: app/figure/plots.h */
    bool      maybe;      /* left out where the run has no such view */
    char      title[128]; /* "": made of the request */
} PlannedPanel;

typedef struct FigurePlan {
    PlannedPanel *panels; /* owned */
    int        count, capacity;
    bool       effect; /* rows of panels, one row a mechanism; weights on one scale */
} FigurePlan;

/* From the words of a call whose input is loaded, options included.  Free with
 * figure_plan_free also on failure. */
bool figure_plan_make(Session *s, const Call *call, FigurePlan *out, Error *err);
void figure_plan_free(FigurePlan *plan);

/* What the position of `with` does: the view (NULL: weights) without it and with
 * it, their difference, and what it adds to the scores. */
bool figure_plan_effect(FigurePlan *plan, const Request *with, const char *view, int64_t head,
                        const char *prefix, Error *err);

/* Names of views before anything has run.
 *
 * Which views a run has is known when it is done.  What its mechanism promises is known before,
 * and so is a slip of the hand: a name that is none of them, but nearly one.
 */

/* False, with the name that is meant: surely a slip.  Names that are near none are left to the
 * run: traces, terms of a position and views of a mechanism inside are its own. */
bool view_name_check(const Mechanism *m, const char *name, Error *err);

#endif
