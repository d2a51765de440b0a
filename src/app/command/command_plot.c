/* command_plot.c -- see command_plot.h. */
#include "app/command/command_plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool plot_choice_parse(const char *text, PlotChoice *out, Error *err)
{
    *out = (PlotChoice){ .count = 0 };
    while (*text) {
        size_t   length = strcspn(text, ",");
        char     name[48];
        PlotKind kind;

        snprintf(name, sizeof(name), "%.*s", (int)length, text);
        if (!strcmp(name, SCALING_WORD))
            return error_set(err, ERR_USAGE, "--plot " SCALING_WORD " stands alone: it measures "
                                             "at lengths of its own");
        if (!plot_parse(name, &kind, err))
            return error_prefix(err, "--plot");
        for (int i = 0; i < out->count; i++)
            if (out->kinds[i] == kind)
                return error_set(err, ERR_USAGE, "--plot: %s stands there twice", name);
        out->kinds[out->count++] = kind;
        out->ceilings = out->ceilings || plot_needs(kind) & NEEDS_CEILINGS;
        text += length + (text[length] == ',');
    }
    return out->count || error_set(err, ERR_USAGE, "--plot needs a name, as in --plot time");
}

bool plot_choice_ask(const PlotChoice *choice, Request *request, Error *err)
{
    Error own = ERROR_INIT;

    for (int k = 0; k < choice->count; k++) {
        char word[64];

        snprintf(word, sizeof(word), "plot(%s)", plot_name(choice->kinds[k]));
        request_for_plot(request, word, &own);
    }
    if (own.code != ERR_NONE)
        *err = own;
    return own.code == ERR_NONE;
}

bool plot_refuse_formats(const Call *call, Error *err)
{
    if (call->values[OPT_JSON] || call->values[OPT_CSV] || call->values[OPT_MD])
        return error_set(err, ERR_USAGE, "a plot has no --json, --csv or --md: without --plot and "
                                         "-o its numbers come as these");
    return true;
}

bool plot_figure_write(Session *s, const Call *call, const Figure *figure,
                       Result *const *results, int count, Text *out, Error *err)
{
    TextOptions text;
    PngOptions  png;

    if (!call->file_count)
        return call_text_options(call, &text, err) && figure_text(figure, &text, out, err);
    return call_png_options(call, &png, err) &&
           call_save(s, call, figure, results, count, &png, err);
}

bool plot_choice_show(Session *s, const Call *call, const PlotChoice *choice,
                      Result *const *results, int count, Text *out, Error *err)
{
    PanelChoice   *panels = calloc((size_t)(choice->count * count), sizeof(*panels));
    char           words[PLOT_KINDS][64];
    PictureOptions options;
    Figure        *figure = NULL;
    bool           ok;

    if (!panels)
        return error_set(err, ERR_NOMEM, "not enough memory for plots");
    for (int k = 0; k < choice->count; k++) {
        snprintf(words[k], sizeof(words[k]), "plot(%s)", plot_name(choice->kinds[k]));
        for (int i = 0; i < count; i++)
            panels[k * count + i] = (PanelChoice){ .result = results[i], .view = words[k],
                                                   .head = -1, .joins = i > 0 };
    }
    ok = call_picture_options(s, call, choice->count, &options, err);
    if (ok && choice->ceilings) {
        options.ceilings = session_ceilings(s, results[0]->request.ops,
                                            results[0]->request.threads, err);
        ok = options.ceilings != NULL;
    }
    if (ok)
        figure = picture_of_panels(panels, choice->count * count, &options, err);
    ok = figure && plot_figure_write(s, call, figure, results, count, out, err);
    figure_free(figure);
    free(panels);
    return ok;
}
