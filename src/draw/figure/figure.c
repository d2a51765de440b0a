/* figure.c -- figures and panels: defaults and arrangement. */
#include "draw/figure/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure/scene.h"

Figure *figure_new(int panels, Error *err)
{
    Figure *figure = calloc(1, sizeof(*figure));

    if (figure)
        figure->panels = calloc((size_t)(panels > 0 ? panels : 1), sizeof(*figure->panels));
    if (!figure || !figure->panels) {
        free(figure);
        error_set(err, ERR_NOMEM, "a figure of %d panels: out of memory", panels);
        return NULL;
    }
    figure->count = panels;
    figure->legend = true;
    return figure;
}

void figure_free(Figure *figure)
{
    if (!figure)
        return;
    for (int k = 0; figure->panels && k < figure->count; k++) {
        plot_free(figure->panels[k].made);
        if (figure->panels[k].margin)
            margin_free(figure->panels[k].margin);
        free(figure->panels[k].margin);
    }
    free(figure->panels);
    free(figure->numbers);
    free(figure);
}

#define SIGNS_LOOKED_AT 1000000 /* entries at most: every drawing looks again */

/* Indices, codes, norms: a small tensor without a value below 0 has no two sides.  A whole
 * number of -1 says that there is none. */
static bool is_one_sided(const View *view)
{
    Tensor  flat;
    int64_t count = tensor_count(&view->tensor);
    double  least = view->dtype == DT_I32 || view->dtype == DT_I64 ? -1 : 0;

    if (!view->tensor.data || !tensor_contiguous(&view->tensor) || count > SIGNS_LOOKED_AT)
        return false;
    flat = tensor_of(view->tensor.dtype, 1, (int64_t[]){ count }, view->tensor.data);
    for (int64_t i = 0; i < count; i++)
        if (!(tensor_get(&flat, &i) >= least))
            return false;
    return true;
}

static ColourMap map_default(const View *view)
{
    switch (view->kind) {
    case VIEW_VECTORS:
    case VIEW_TENSOR:
        return is_one_sided(view) ? MAP_VIRIDIS : MAP_DIVERGING;
    case VIEW_SIGNED:
        return MAP_DIVERGING;
    default:
        return MAP_VIRIDIS;
    }
}

void panel_init(Panel *panel, const View *view, const Pattern *components, int64_t plane,
                const char *title)
{
    ViewCurve curve;
    bool causes = view->kind == VIEW_PATTERN || view->kind == VIEW_COMPONENTS;

    *panel = (Panel){
        .view = view,
        .components = causes ? components : NULL,
        .plane = plane,
        .plot = view_curve(view, &curve),
        .pool = pool_default(view->kind),
        .map = map_default(view),
        .hi = view->kind == VIEW_PERMUTATION || view->kind == VIEW_MASK ? 1 : 0,
    };
    snprintf(panel->title, sizeof(panel->title), "%s", title ? title : view->name);
}

/* Stands for the view of a panel whose numbers no view holds. */
static const View no_view = { .name = "plot", .kind = VIEW_TENSOR, .iteration = -1, .step = -1,
                              .dtype = DT_F64, .rank = 1, .shape = { 1 }, .stage = "",
                              .rows = "", .cols = "" };

void panel_init_plot(Panel *panel, Plot *plot, const char *title)
{
    *panel = (Panel){ .view = &no_view, .plot = true, .made = plot };
    snprintf(panel->title, sizeof(panel->title), "%s", title);
}

/* "linformer " before a name. */
static void prefix_of(const char *name, char *text, size_t size)
{
    snprintf(text, size, "%s%s", name, *name ? " \xc2\xb7 " : "");
}

/* What ends the name of every series after a middle dot says nothing of any: the axis
 * has it. */
static void drop_common_end(Plot *plot)
{
    const char *dot = NULL, *next = plot->count ? plot->series[0].name : NULL;
    char        end[sizeof(plot->series->name)] = "";

    while (next && (next = strstr(next, " \xc2\xb7 ")))
        dot = next++;
    if (dot)
        snprintf(end, sizeof(end), "%s", dot);
    for (int k = 0; k < plot->count; k++) {
        size_t whole = strlen(plot->series[k].name), length = strlen(end);

        if (!length || whole <= length || strcmp(plot->series[k].name + whole - length, end) != 0)
            return;
    }
    for (int k = 0; k < plot->count; k++)
        plot->series[k].name[strlen(plot->series[k].name) - strlen(end)] = '\0';
}

Plot *panel_plot(const Panel *panel, Error *err)
{
    Plot *plot = panel->made ? plot_copy(panel->made, err) : plot_new(err);
    char  prefix[112];
    bool  ok;

    if (!plot || panel->made)
        return plot;
    prefix_of(panel->overlay_count ? panel->name : "", prefix, sizeof(prefix));
    ok = plot_add_view(plot, panel->view, panel->minus, panel->plane, prefix, err);
    for (int k = 0; ok && k < panel->overlay_count; k++) {
        const Overlay *o = &panel->overlays[k];

        prefix_of(o->name, prefix, sizeof(prefix));
        ok = plot_add_view(plot, o->view, NULL, o->plane, prefix, err);
    }
    if (!ok) {
        plot_free(plot);
        return NULL;
    }
    if (panel->overlay_count)
        drop_common_end(plot);
    plot_settle(plot);
    return plot;
}

void panel_letter(int k, char *text, size_t size)
{
    if (k < 26)
        snprintf(text, size, "%c", 'a' + k);
    else
        snprintf(text, size, "%c%c", 'a' + (k / 26 - 1) % 26, 'a' + k % 26);
}

Region panel_region(const Panel *panel)
{
    Region region = panel->region;

    if (region.row1 == 0 && region.col1 == 0)
        region = (Region){ 0, view_rows(panel->view), 0, view_cols(panel->view) };
    return region;
}

void figure_arrange(const Figure *figure, int *rows, int *cols)
{
    static const int usual[] = { 1, 1, 2, 3, 2, 3, 3, 4, 4, 3, 4, 4, 4 };
    int              count = figure->count > 0 ? figure->count : 1;

    *cols = figure->cols;
    *rows = figure->rows;
    if (*cols <= 0 && *rows > 0)
        *cols = (count + *rows - 1) / *rows;
    if (*cols <= 0)
        *cols = count < (int)(sizeof(usual) / sizeof(*usual)) ? usual[count] : 4;
    if (*rows * *cols < count)
        *rows = (count + *cols - 1) / *cols;
}
