/* figure.c -- figures and panels: defaults, captions, arrangement. */
#include "draw/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure_parts.h"

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
    free(figure->panels);
    free(figure);
}

static ColourMap map_default(ViewKind kind)
{
    switch (kind) {
    case VIEW_SIGNED:
    case VIEW_VECTORS:
    case VIEW_TENSOR:
        return MAP_DIVERGING;
    default:
        return MAP_VIRIDIS;
    }
}

void panel_init(Panel *panel, const View *view, const Pattern *components, int64_t plane,
                const char *title)
{
    bool causes = view->kind == VIEW_PATTERN || view->kind == VIEW_COMPONENTS;

    *panel = (Panel){
        .view = view,
        .components = causes ? components : NULL,
        .plane = plane,
        .pool = pool_default(view->kind),
        .map = map_default(view->kind),
        .hi = view->kind == VIEW_PERMUTATION ? 1 : 0,
    };
    snprintf(panel->title, sizeof(panel->title), "%s", title ? title : view->name);
}

Region panel_region(const Panel *panel)
{
    Region region = panel->region;

    if (region.row1 == 0 && region.col1 == 0)
        region = (Region){ 0, view_rows(panel->view), 0, view_cols(panel->view) };
    return region;
}

/* Cells differ by at most one entry each way; the larger size is named. */
static void caption_cell(const Grid *grid, Text *out)
{
    int64_t height = grid->region.row1 - grid->region.row0;
    int64_t width = grid->region.col1 - grid->region.col0;

    text_addf(out, "cell %lldx%lld", (long long)((width + grid->cols - 1) / grid->cols),
              (long long)((height + grid->rows - 1) / grid->rows));
}

static void caption_entries(const Panel *panel, const Grid *grid, Text *out)
{
    char   count[32];
    double area = (double)(grid->region.row1 - grid->region.row0) *
                  (double)(grid->region.col1 - grid->region.col0);

    if (panel->view->kind == VIEW_BUCKETS && !panel->minus) {
        text_addf(out, "categories %.0f to %.0f  ", grid->value_min, grid->value_max);
        return;
    }
    text_addf(out, "nnz %s  %.3g %%  ", format_count(grid->count, count, sizeof(count)),
              area > 0 ? 100 * grid->count / area : 0);
}

void panel_caption(const Panel *panel, const Grid *grid, char *text, size_t size)
{
    Text out = { 0 };
    bool majority = panel->view->kind == VIEW_BUCKETS && !panel->minus;

    caption_entries(panel, grid, &out);
    caption_cell(grid, &out);
    text_addf(&out, "  %s", majority ? "majority" : pool_name(panel->pool));
    if (panel_style(panel) == STYLE_VALUE && panel->scale != SCALE_LINEAR)
        text_addf(&out, "  %s scale", scale_name(panel->scale));
    if (grid->sampled)
        text_addf(&out, "  sampled %.2g %%", 100 * grid->sampled_share);
    if (grid->odd_count > 0)
        text_addf(&out, "  %lld NaN or infinite", (long long)grid->odd_count);
    snprintf(text, size, "%s", text_str(&out));
    text_free(&out);
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
