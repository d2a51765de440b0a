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
#include "app/session/session.h"
#include "attn/run/mechanism.h"
#include "core/error.h"
#include "draw/figure/figure.h"

/* All zero: as the options say. */
typedef struct PanelLooks {
    bool      pooled, scaled, mapped; /* the next three hold */
    Pool      pool;
    Scale     scale;
    ColourMap map;
    Region    region;   /* all zero: not said */
    bool      ranged;   /* lo..hi holds */
    double    lo, hi;   /* values the colours span */
    bool      excludes; /* this key counts in no range of colours */
    int64_t   excluded;
    int64_t   round;    /* from 1, of a view that has several planes a head; 0: not said */
    int       layers;   /* of reach; 0: not said */
    bool      strict;   /* reach without residual connections */
    char      notes[NOTES_BYTES]; /* marked cells: draw/grid/annotation.h */
} PanelLooks;

/* text: what stands between the braces. */
bool panel_looks_parse(const char *text, size_t length, PanelLooks *out, Error *err);
/* Appends "{...}", or nothing. */
void panel_looks_text(const PanelLooks *looks, Text *out);
bool panel_looks_same(const PanelLooks *a, const PanelLooks *b);
/* The result's panel, made with the options of its figure, is given these. */
bool panel_looks_apply(const PanelLooks *looks, const Result *result, Panel *panel, Error *err);

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

typedef struct PanelSide {
    char   *mechanism; /* "bigbird(window=5)"; owned; NULL: this side is not there */
    char    view[48];  /* "": the most telling one; "permutation#3": the third */
    bool    sorted;    /* tokens in the mechanism's own order */
    int64_t head;      /* -1: not said; HEADS_ALL: a panel each */
} PanelSide;

typedef struct PanelWord {
    PanelSide  shown, minus;
    PanelLooks looks;
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

typedef struct PlannedPanel {
    Request request;        /* owned */
    char    view[48];       /* "": the most telling one; "name*": each that begins so and is
                               not in the figure yet */
    int64_t head;           /* -1: not said; HEADS_ALL: a panel of each */
    bool    sorted;         /* tokens in the mechanism's own order */
    bool    differs;        /* the two below are subtracted */
    Request minus;          /* owned */
    char    minus_view[48]; /* "": of the same name */
    bool    joins;          /* its curve goes into the plot of the panel before it */
    bool    plot;           /* its numbers are measured: app/figure/plots.h */
    bool    maybe;          /* left out where the run has no such view */
    char    title[128];     /* "": made of the request */
    PanelLooks looks;
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
