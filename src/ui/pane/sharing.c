/* sharing.c -- one colour scale for the panes on the screen that show one quantity.
 *
 * Panes stand beside each other to be compared, and a reader takes equal colours for equal values.
 * So they share a scale unless the user wants their own (:scale own, F). Nobody could read a pane
 * whose values are far below the others': as in a figure with --grid it keeps its own scale, and
 * its bar says so. What shares, and with which map, scale and ends, is decided by the code that
 * colours figures, so that `attnscope figure` draws what is seen.
 *
 * A figure without --grid has own scales by default: its panels may end up on different slides, and
 * each has its bar beside it. The command of the panes says --shared-scale.
 */
#include <stdio.h>
#include <string.h>

#include "draw/figure/figure.h"
#include "ui/shell/actions.h"
#include "ui/state/panes.h"

/* The panes on the screen whose colours stand for values. */
typedef struct Group {
    Pane *panes[PANES_MOST];
    Panel asked[PANES_MOST], out[PANES_MOST];
    Grid  grids[PANES_MOST]; /* borrowed */
    bool  apart[PANES_MOST]; /* its values would not be seen beside the others */
    int   count;
    bool  whole;      /* all are seen whole */
    bool  remembered; /* all were, with the views they show */
} Group;

/* As panel_init has it and the user chose; nothing that follows from values. */
static bool asked_panel(Ui *ui, Pane *pane, Panel *panel)
{
    bool        differs = pane_differs(ui, pane);
    const View *view = differs ? pane_numbers(pane) : pane_view(pane);
    double      lo, hi;

    if (!pane->area.h || !view || !pane->drawing.grid.cells || pane->drawing.shown != view)
        return false;
    panel_init(panel, view, view_components(view), pane_plane(pane, view), "");
    if (differs) {
        panel->minus = pane_numbers(&ui->compare.panes[0]);
        panel->components = NULL;
        panel->map = MAP_DIVERGING;
        panel->pool = POOL_MAX;
    }
    pane_set_looks(pane, panel);
    return !panel->plot && pane_range(panel, &pane->drawing.grid, &lo, &hi);
}

static void gather(Ui *ui, Group *g)
{
    *g = (Group){ .whole = true, .remembered = true };
    for (int i = 0; i < ui->compare.count; i++) {
        Pane  *pane = &ui->compare.panes[i];
        Panel *panel = &g->asked[g->count];

        pane->colours.stand = SCALE_ALONE;
        pane->colours.apart = false;
        if (!asked_panel(ui, pane, panel))
            continue;
        g->whole &= pane_whole_grid(pane, panel) != NULL;
        g->remembered &= pane->colours.whole == panel->view;
        g->grids[g->count] = pane->drawing.grid;
        pane->colours.asked = *panel;
        g->panes[g->count++] = pane;
    }
}

/* What the whole views called for stays while a part of them is seen. */
static void recall(Group *g)
{
    for (int k = 0; !g->whole && g->remembered && k < g->count; k++) {
        const PaneColours *c = &g->panes[k]->colours;
        Panel             *panel = &g->asked[k];

        panel->scale = panel->scale_given ? panel->scale : c->whole_scale;
        panel->map = c->whole_map;
        panel->scale_given = panel->map_given = true;
    }
}

static bool share(const Group *g, const Figure *figure, int a, int b)
{
    return !g->apart[a] && !g->apart[b] && figure_shares(figure, a, b);
}

/* The first pane that shares the colours of pane k; k itself where none before it does. */
static int first_of(const Group *g, const Figure *figure, int k)
{
    int first = 0;

    while (first < k && !share(g, figure, first, k))
        first++;
    return first;
}

static ScaleStand stand_of(const Group *g, const Figure *figure, int panel)
{
    const char *quantity = panel_quantity(&g->asked[panel]);
    ScaleStand  stand = SCALE_ALONE;

    for (int k = 0; k < g->count; k++) {
        if (k != panel && share(g, figure, k, panel))
            return SCALE_SHARED;
        if (k != panel && !strcmp(quantity, panel_quantity(&g->asked[k])))
            stand = SCALE_OWN;
    }
    return stand;
}

static void keep_whole(Group *g)
{
    for (int k = 0; k < g->count; k++) {
        PaneColours *c = &g->panes[k]->colours;

        g->apart[k] = g->out[k].apart || (!g->whole && g->remembered && c->whole_apart);
        if (!g->whole && g->remembered)
            continue;
        c->whole = g->whole ? g->asked[k].view : NULL;
        c->whole_map = g->out[k].map;
        c->whole_scale = g->out[k].scale;
        c->whole_apart = g->apart[k];
    }
}

static void settle(const Ui *ui, Group *g, const Figure *figure)
{
    keep_whole(g);
    for (int k = 0; k < g->count; k++) {
        PaneColours *c = &g->panes[k]->colours;

        c->stand = stand_of(g, figure, k);
        c->apart = g->apart[k];
        c->first = (int)(g->panes[first_of(g, figure, k)] - ui->compare.panes);
        c->map = g->out[k].map;
        c->scale = g->out[k].scale;
        c->lo = g->out[k].lo;
        c->hi = g->out[k].hi;
    }
}

void panes_share_colours(Ui *ui)
{
    Group  g;
    Figure figure = { .sharing = ui->compare.now.effect       ? SHARE_ALL
                                 : ui->compare.look.own_scales ? SHARE_NONE
                                                               : SHARE_QUANTITIES };

    gather(ui, &g);
    recall(&g);
    figure.panels = g.asked;
    figure.count = g.count;
    if (figure_colours(&figure, g.grids, g.out, NULL))
        settle(ui, &g, &figure);
}

/* The panel looks as it did when the colours were shared. */
static bool is_as_asked(const Panel *panel, const Panel *asked)
{
    return panel->view == asked->view && panel->minus == asked->minus &&
           panel->plane == asked->plane && panel->pool == asked->pool &&
           panel->scale_given == asked->scale_given &&
           (!asked->scale_given || panel->scale == asked->scale);
}

void pane_wear_colours(const Pane *pane, Panel *panel)
{
    const PaneColours *c = &pane->colours;

    if (c->stand != SCALE_SHARED || !is_as_asked(panel, &c->asked))
        return;
    if (c->asked.map == MAP_DIVERGING)
        panel->map = c->map == MAP_DIVERGING || pane->spec.map < 0 ? c->map
                                                                   : (ColourMap)pane->spec.map;
    panel->scale = c->scale;
    panel->lo = c->lo;
    panel->hi = c->hi;
}

ScaleStand pane_scale_stand(const Pane *pane)
{
    return pane->colours.stand;
}

bool panes_share_one_scale(const Pane *a, const Pane *b)
{
    return a->colours.stand == SCALE_SHARED && b->colours.stand == SCALE_SHARED &&
           a->colours.first == b->colours.first;
}

/* ---- what keys and words do ---------------------------------------------------- */

static void say_sharing(Ui *ui)
{
    if (ui->compare.look.own_scales)
        ui_say(ui, ROLE_DIM, "colours: each pane its own scale");
    else
        ui_say(ui, ROLE_DIM, "colours: one scale for panes of the same quantity");
}

void action_scale_shared(Ui *ui)
{
    ui->compare.look.own_scales = !ui->compare.look.own_scales;
    say_sharing(ui);
}

bool pane_has_scale(Ui *ui, Pane *pane)
{
    Panel panel;

    if (!pane || !pane_panel(ui, pane, &panel))
        return false;
    if (!panel.plot && !panel_shows_categories(&panel) && !panel_shows_hops(&panel))
        return true;
    ui_hint(ui, panel.plot ? "the axes of a curve are as its numbers need them"
                           : "these colours stand for %s: they have no scale",
            panel_shows_hops(&panel) ? "layers" : "categories");
    return false;
}

/* Of the pane and of those that share its colours: one scale cannot be of two kinds. */
void pane_set_scale(Ui *ui, Pane *pane, Scale scale)
{
    for (int i = 0; i < ui->compare.count; i++)
        if (panes_share_one_scale(pane, &ui->compare.panes[i]))
            ui->compare.panes[i].spec.scale = (int)scale;
    pane->spec.scale = (int)scale;
    ui_say(ui, ROLE_DIM, "colour scale: %s", scale_name(scale));
}

void scale_typed(Ui *ui, const char *word)
{
    Pane *pane = panes_focus(ui);
    Scale scale;
    Error err = ERROR_INIT;

    if (!strcmp(word, "own") || !strcmp(word, "shared")) {
        ui->compare.look.own_scales = *word == 'o';
        say_sharing(ui);
    } else if (!scale_parse(word, &scale, &err)) {
        ui_say(ui, ROLE_ERROR, "scale: shared or own, of the panes; linear, log or row, of what "
                               "one shows; not '%.40s'", word);
    } else if (pane_has_scale(ui, pane)) {
        pane_set_scale(ui, pane, scale);
    }
}
