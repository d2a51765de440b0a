/* app/figure/panel_looks.h -- how one panel of a figure looks where the figure's options say otherwise.
 *
 *     {pool=mean,scale=log,cmap=magma,region=0:64,0:64}
 *
 * Behind a panel's word.  The command line reads it; the explorer and Lua write it, so that panels
 * that differ are one command all the same.
 */
#ifndef APP_FIGURE_PANEL_LOOKS_H
#define APP_FIGURE_PANEL_LOOKS_H

#include "app/session/session.h"
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

#endif
