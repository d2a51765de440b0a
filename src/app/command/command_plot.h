/* app/command/command_plot.h -- plots of what a command measured, as text or as a file. */
#ifndef APP_COMMAND_COMMAND_PLOT_H
#define APP_COMMAND_COMMAND_PLOT_H

#include "app/command/command_parts.h"
#include "app/figure/picture_plot.h"

typedef struct PlotChoice {
    PlotKind kinds[PLOT_KINDS];
    int      count;
    bool     ceilings; /* one of them is a roofline */
} PlotChoice;

/* "time,memory": each once. */
bool plot_choice_parse(const char *text, PlotChoice *out, Error *err);
/* --plot is given alone: no other format with it. */
bool plot_refuse_formats(const Call *call, Error *err);
/* What they need that the request does not measure yet. */
bool plot_choice_ask(const PlotChoice *choice, Request *request, Error *err);
/* A panel for each, all results in it; into the call's file, or as text. */
bool plot_choice_show(Session *s, const Call *call, const PlotChoice *choice,
                      Result *const *results, int count, Text *out, Error *err);

/* Time over n on N(0,1) inputs with this input's heads and head size, for the mechanisms of
 * the results, against the slopes they claim. */
#define SCALING_WORD "scaling"
bool scaling_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
                  Error *err);
/* The figure as text, or into the call's file. */
bool plot_figure_write(Session *s, const Call *call, const Figure *figure,
                       Result *const *results, int count, Text *out, Error *err);

#endif
