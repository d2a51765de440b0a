/* app/command_plot.h -- plots of what a command measured, as text or as a file. */
#ifndef APP_COMMAND_PLOT_H
#define APP_COMMAND_PLOT_H

#include "app/command_parts.h"
#include "app/picture_plot.h"

typedef struct PlotChoice {
    PlotKind kinds[PLOT_KINDS];
    int      count;
    bool     ceilings; /* one of them is a roofline */
} PlotChoice;

/* "time,memory": each once. */
bool plot_choice_parse(const char *text, PlotChoice *out, Error *err);
/* What they need that the request does not measure yet. */
bool plot_choice_ask(const PlotChoice *choice, Request *request, Error *err);
/* A panel for each, all results in it; into the call's file, or as text. */
bool plot_choice_show(Session *s, const Call *call, const PlotChoice *choice,
                      Result *const *results, int count, Text *out, Error *err);

#endif
