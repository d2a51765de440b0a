/* picture_plot.c -- see picture_plot.h. */
#include "app/figure/picture_plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_SEEDS   8
#define USUAL_REPEATS 7 /* from six on the median has an interval */

bool request_for_plot(Request *request, const char *view, Error *err)
{
    PlotKind kind;
    unsigned needs;

    if (!plot_word(view, &kind, err))
        return false;
    if (kind == PLOT_KINDS)
        return true; /* *err says why */
    needs = plot_needs(kind);
    request->measure = request->measure || needs & NEEDS_TIME;
    request->quality = request->quality || needs & NEEDS_QUALITY;
    if (request->measure && !request->repeat)
        request->repeat = USUAL_REPEATS;
    if (needs & NEEDS_SEEDS && request->seeds < 2)
        request->seeds = USUAL_SEEDS;
    return true;
}

bool request_covers(const Request *have, const Request *want)
{
    return request_same(have, want) && have->pairs_only <= want->pairs_only &&
           have->measure >= want->measure &&
           have->quality >= want->quality && have->repeat >= want->repeat &&
           (!want->quality || have->seeds == want->seeds ||
            (have->seeds < 2 && want->seeds < 2));
}

/* A run that was only made has the numbers of a run; times need a measurement. */
static const Record *record_for(PlotKind kind, const Result *result)
{
    const Request *r = &result->request;
    unsigned       needs = plot_needs(kind);

    if ((needs & NEEDS_TIME && !r->measure) || (needs & NEEDS_QUALITY && !r->quality))
        return result->record.status == RECORD_OK ? NULL : &result->record;
    return &result->record;
}

bool picture_plot(PlotKind kind, Result *const *results, const char *const *names, int count,
                  const Ceilings *ceilings, Panel *out, Error *err)
{
    PlotSubject *subjects = calloc((size_t)count, sizeof(*subjects));
    Text        *texts = calloc((size_t)count, sizeof(*texts));
    Plot        *plot = NULL;

    if (!subjects || !texts)
        error_set(err, ERR_NOMEM, "a plot: out of memory");
    for (int i = 0; subjects && texts && i < count; i++) {
        request_text(&results[i]->request, &texts[i]);
        subjects[i].name = names ? names[i] : text_str(&texts[i]);
        subjects[i].record = record_for(kind, results[i]);
    }
    if (subjects && texts)
        plot = plot_of(kind, subjects, count, ceilings, err);
    if (plot)
        panel_init_plot(out, plot, plot_title(kind));
    for (int i = 0; texts && i < count; i++)
        text_free(&texts[i]);
    free(subjects);
    free(texts);
    return plot != NULL;
}

#define AND " and "

/* Machines of "A and B", those that are not there yet. */
static void add_machines(const char *text, size_t length, Text *out)
{
    while (length) {
        const char *and = strstr(text, AND);
        size_t      one = and && and < text + length ? (size_t)(and - text) : length;
        char        name[160];

        snprintf(name, sizeof(name), "%.*s", (int)one, text);
        if (!strstr(text_str(out), name))
            text_addf(out, "%s%s", out->length ? AND : "", name);
        one += one < length ? strlen(AND) : 0;
        text += one;
        length -= one;
    }
}

void picture_say_measured(Figure *figure)
{
    size_t      used = strlen(figure->caption);
    Text        names = { 0 };
    const char *last = "";

    for (int k = 0; k < figure->count; k++) {
        const char *measured = figure->panels[k].made ? figure->panels[k].made->measured : "";
        const char *date = strrchr(measured, ',');

        if (!date)
            continue;
        add_machines(measured, (size_t)(date - measured), &names);
        last = strcmp(date, last) > 0 ? date : last;
    }
    if (names.length)
        snprintf(figure->caption + used, sizeof(figure->caption) - used, "%smeasured on %s%s",
                 used ? "; " : "", text_str(&names), last);
    text_free(&names);
}

Figure *picture_scaling(Plot *plot, int64_t heads, int64_t d, Error *err)
{
    Figure *figure = figure_new(1, err);

    if (!figure) {
        plot_free(plot);
        return NULL;
    }
    panel_init_plot(&figure->panels[0], plot, "time over n");
    snprintf(figure->caption, sizeof(figure->caption),
             "N(0,1) inputs, %lld head%s of %lld; measured on %s", (long long)heads,
             heads == 1 ? "" : "s", (long long)d, plot->measured);
    return figure;
}

bool picture_stored(PlotKind kind, const StoredFigure *stored, int number, Panel *out, Error *err)
{
    const Panel *panel = stored_figure_panel(stored, number);
    Plot        *plot = panel ? plot_copy(panel->made, err) : NULL;

    if (!panel)
        return error_set(err, ERR_FORMAT, "the file holds no numbers for panel %d: rerender "
                         "--measure measures them", number + 1);
    if (plot) /* its words are made as for one that was measured */
        panel_init_plot(out, plot, plot_title(kind));
    return plot != NULL;
}
