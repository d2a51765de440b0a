/* scene.c -- the panels of a figure reduced, with ranges and legend; see scene.h.
 *
 * The legend lists what occurs: components of some cell, categories while there are hues to
 * distinguish them, and the colours of odd or masked cells.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure/scene.h"
#include "draw/grid/job.h"

bool panel_reduce(const Figure *figure, const Panel *panel, CellCount cells, Grid *grid,
                  Error *err)
{
    GridRequest request = {
        .view = panel->view,
        .minus = panel->minus,
        .components = panel->components,
        .plane = panel->plane,
        .region = panel->region,
        .rows = cells.rows,
        .cols = cells.cols,
        .row_order = panel->row_order,
        .col_order = panel->col_order,
        .excludes = panel->excludes,
        .excluded = panel->excluded,
        .keeps_entries = true,
        .threads = figure->threads,
        .budget_entries = figure->budget_entries,
        .cancel = figure->cancel,
    };

    return grid_reduce(&request, grid, err);
}

bool panel_has_own_range(const Panel *panel)
{
    return panel->hi > panel->lo;
}

/* As chosen: neither map, scale nor ends differ. */
static bool have_same_colours(const Panel *a, const Panel *b)
{
    bool apart = a->lo < b->lo || a->lo > b->lo || a->hi < b->hi || a->hi > b->hi;

    return a->map == b->map && a->scale == b->scale &&
           panel_has_own_range(a) == panel_has_own_range(b) && !(panel_has_own_range(a) && apart);
}

/* Both show values of the same quantity, so a shared scale gives them one range. */
static bool panels_share_range(const Panel *a, const Panel *b)
{
    const char *quantity = panel_quantity(a);

    if (panel_style(a) != STYLE_VALUE || panel_style(b) != STYLE_VALUE ||
        strcmp(quantity, panel_quantity(b)) != 0 || !have_same_colours(a, b))
        return false;
    /* unnamed numbers are comparable only between views of one name */
    return strcmp(quantity, QUANTITY_ANY) != 0 || !strcmp(a->view->name, b->view->name);
}

bool figure_shares(const Figure *figure, int a, int b)
{
    const Panel *one = &figure->panels[a], *other = &figure->panels[b];
    bool         differences = one->minus && other->minus;

    return figure->sharing != SHARE_NONE &&
           (figure->sharing != SHARE_DIFFERENCES || differences) &&
           panels_share_range(one, other);
}

/* The range over all panels of the quantity of panel `first`. */
static void range_of(const Scene *scene, const Figure *figure, int first, double *lo, double *hi)
{
    for (int k = first; k < scene->count; k++) {
        Panel own = scene->panels[k];

        if (k != first && !figure_shares(figure, first, k))
            continue;
        panel_settle(&own, &scene->grids[k]);
        *lo = k == first ? own.lo : fmin(*lo, own.lo);
        *hi = k == first ? own.hi : fmax(*hi, own.hi);
    }
}

/* Value panels of the same quantity get one range. */
static void share_ranges(Scene *scene, const Figure *figure)
{
    for (int first = 0; first < scene->count; first++) {
        double lo = 0, hi = 0;
        bool   later = false;

        for (int k = 0; k < first; k++)
            later = later || figure_shares(figure, k, first);
        if (later || !figure_shares(figure, first, first))
            continue;
        range_of(scene, figure, first, &lo, &hi);
        for (int k = first; k < scene->count; k++)
            if (figure_shares(figure, first, k)) {
                scene->panels[k].lo = lo;
                scene->panels[k].hi = hi;
            }
    }
}

#define SEEN_LEAST 0.25 /* of a shared axis: a plot that fills less of it would look empty */

static bool is_one_axis(const PlotAxis *a, const PlotAxis *b)
{
    return a->log == b->log && !strcmp(a->name, b->name);
}

/* Each fills enough of the axis that both would have. */
static bool both_fill(const PlotAxis *a, const PlotAxis *b)
{
    double lo = fmin(a->lo, b->lo), hi = fmax(a->hi, b->hi), whole = hi - lo;
    double least = fmin(a->hi - a->lo, b->hi - b->lo);

    if (a->log) {
        whole = log(hi / lo);
        least = fmin(log(a->hi / a->lo), log(b->hi / b->lo));
    }
    return least >= SEEN_LEAST * whole;
}

/* The same quantity over the same axis is always compared, over another one if both are seen. */
static bool are_compared(const Plot *one, const Plot *other)
{
    return !one->row_count == !other->row_count && is_one_axis(&one->y, &other->y) &&
           (is_one_axis(&one->x, &other->x) ||
            (!one->row_count && !one->y.zero && !other->y.zero && both_fill(&one->y, &other->y)));
}

static void share_axis(PlotAxis *a, PlotAxis *b)
{
    if (a->zero != b->zero) { /* the other one has the numbers */
        PlotAxis *empty = a->zero ? a : b, *full = a->zero ? b : a;

        full->lo = fmin(full->lo, 0);
        full->hi = fmax(full->hi, 0);
        empty->zero = false;
        empty->lo = full->lo;
        empty->hi = full->hi;
        return;
    }
    a->lo = b->lo = fmin(a->lo, b->lo);
    a->hi = b->hi = fmax(a->hi, b->hi);
}

/* Plots of one figure that are compared have one y axis, or one axis of the values of rows. */
static void share_axes(Scene *scene)
{
    for (int a = 0; a < scene->count; a++)
        for (int b = 0; b < scene->count; b++) {
            Plot *one = scene->plots[a], *other = scene->plots[b];
            bool  rows = one && one->row_count; /* the value of a row lies along x */

            if (!one || !other || !are_compared(one, other))
                continue;
            share_axis(rows ? &one->x : &one->y, rows ? &other->x : &other->y);
        }
}

/* The grids are there even on failure, to be freed. */
static bool reduce_all(Scene *scene, const Figure *figure, CellCount cells, Error *err)
{
    bool ok = figure->reduce(figure->reducer, cells.rows, cells.cols, scene->grids, err);

    for (int k = 0; !ok && k < figure->count; k++)
        grid_free(&scene->grids[k]);
    return ok;
}

static bool has_masked(const Grid *grid)
{
    return grid->count < (double)(grid->region.row1 - grid->region.row0) *
                             (double)(grid->region.col1 - grid->region.col0);
}

/* Pairs that are not allowed have one colour on a page: where one panel's are grey, all are. */
void scene_share_greys(Scene *scene)
{
    for (int dark = 0; dark < 2; dark++) {
        bool any = false;

        for (int k = 0; k < scene->count; k++)
            scene->panels[k].greyed[dark] = false;
        for (int k = 0; k < scene->count; k++)
            any |= !scene->plots[k] && panel_greys_masked(&scene->panels[k], dark) &&
                   has_masked(&scene->grids[k]);
        for (int k = 0; k < scene->count; k++)
            scene->panels[k].greyed[dark] = any;
    }
}

/* The bit with this name in the first panel that has one; 0: there is none. */
static uint8_t first_bit_of(const Figure *figure, const char *name)
{
    for (int k = 0; k < figure->count; k++) {
        const View *view = figure->panels[k].view;

        for (int b = 0; b < 8 && view && view->components && !view->found; b++)
            if (view->components[b] && !strcmp(view->components[b], name))
                return (uint8_t)(1 << b);
    }
    return 0;
}

void panel_wear_causes(const Figure *figure, int k, Panel *panel)
{
    const View *view = figure->panels[k].view;

    for (int b = 0; b < 8 && view && view->components && !view->found; b++) {
        uint8_t bit = view->components[b] ? first_bit_of(figure, view->components[b]) : 0;

        if (bit && !view->components[__builtin_ctz(bit)]) /* nothing else has that colour */
            panel->worn[b] = bit;
    }
}

uint8_t panel_worn(const Panel *panel, uint8_t bit)
{
    uint8_t worn = bit ? panel->worn[__builtin_ctz(bit)] : 0;

    return worn ? worn : bit;
}

/* Map, range and scale of each panel, beside the others. */
static void choose_colours(Scene *scene, const Figure *figure)
{
    scene_choose_maps(scene, figure);
    share_ranges(scene, figure);
    for (int k = 0; k < scene->count; k++)
        if (!scene->plots[k])
            panel_settle(&scene->panels[k], &scene->grids[k]);
    do /* those that are left may need no logarithmic scale */
        scene_choose_scales(scene, figure);
    while (scene_part_faint(scene, figure));
}

bool figure_colours(const Figure *figure, Grid *grids, Panel *panels, Error *err)
{
    Scene scene = { .panels = panels, .grids = grids, .count = figure->count,
                    .plots = calloc((size_t)figure->count + 1, sizeof(*scene.plots)) };

    if (!scene.plots)
        return error_set(err, ERR_NOMEM, "colours of panels: out of memory");
    for (int k = 0; k < figure->count; k++)
        panels[k] = figure->panels[k];
    choose_colours(&scene, figure);
    free(scene.plots);
    return true;
}

bool scene_make(Scene *scene, const Figure *figure, const CellCount *cells, Error *err)
{
    size_t count = (size_t)(figure->count > 0 ? figure->count : 1);

    *scene = (Scene){ .panels = calloc(count, sizeof(*scene->panels)),
                      .grids = calloc(count, sizeof(*scene->grids)),
                      .plots = calloc(count, sizeof(*scene->plots)) };
    if (!scene->panels || !scene->grids || !scene->plots) {
        scene_free(scene);
        return error_set(err, ERR_NOMEM, "drawing a figure: out of memory");
    }
    if (figure->reduce && !reduce_all(scene, figure, cells[0], err)) {
        scene_free(scene);
        return false;
    }
    for (; scene->count < figure->count; scene->count++) {
        int k = scene->count;

        scene->panels[k] = figure->panels[k];
        panel_wear_causes(figure, k, &scene->panels[k]);
        if (figure->reduce)
            continue;
        if (figure->panels[k].plot ? !(scene->plots[k] = panel_plot(&figure->panels[k], err))
                                   : !panel_reduce(figure, &figure->panels[k], cells[k],
                                                   &scene->grids[k], err)) {
            scene_free(scene);
            return false;
        }
    }
    choose_colours(scene, figure);
    share_axes(scene);
    plots_share_hues(scene->plots, scene->count);
    scene_share_greys(scene);
    return true;
}

void scene_free(Scene *scene)
{
    for (int k = 0; k < scene->count; k++) {
        grid_free(&scene->grids[k]);
        plot_free(scene->plots[k]);
    }
    free(scene->plots);
    free(scene->panels);
    free(scene->grids);
    *scene = (Scene){ 0 };
}

bool scene_shows_cover(const Scene *scene)
{
    for (int k = 0; k < scene->count; k++) {
        const Grid *g = &scene->grids[k];

        if (panel_style(&scene->panels[k]) == STYLE_CAUSE &&
            scene->panels[k].pool == POOL_COVER &&
            (g->rows < g->region.row1 - g->region.row0 ||
             g->cols < g->region.col1 - g->region.col0))
            return true;
    }
    return false;
}

static bool shows_numbers(const Scene *scene, int k)
{
    const Panel *panel = &scene->panels[k];

    return !scene->plots[k] && panel_style(panel) == STYLE_CATEGORY &&
           panel->view->kind == VIEW_BUCKETS && !panel->view->categories;
}

void scene_tell_kinds(Scene *scene)
{
    char first[64] = "", word[64];

    for (int k = 0; k < scene->count; k++) {
        if (!shows_numbers(scene, k))
            continue;
        categories_word(scene->panels[k].view, word, sizeof(word));
        if (!*first)
            memcpy(first, word, sizeof(first));
        scene->panels[k].pale = strcmp(first, word) != 0;
    }
}
