/* shot.c -- the panes on the screen as the figure that one command draws; see journal.h. */
#include "ui/state/journal.h"

#include <stdio.h>
#include <string.h>

#include "ui/state/panes.h"

static Region whole(const View *view)
{
    return (Region){ 0, view_rows(view), 0, view_cols(view) };
}

static bool same_region(Region a, Region b)
{
    return a.row0 == b.row0 && a.row1 == b.row1 && a.col0 == b.col0 && a.col1 == b.col1;
}

/* Linked panes use the focused pane's region, also one that is not on the screen. */
static Region region_of(Ui *ui, Pane *pane, const View *view)
{
    Pane       *focus = panes_focus(ui);
    const View *shown = pane_view(focus);
    bool        follows = ui->compare.now.linked && shown && views_share_rows(shown, view) &&
                   views_share_cols(shown, view) && focus->canvas.h;
    Pane       *from = follows ? focus : pane;
    LensView    v = lens_view(&from->lens, &from->shape);

    return from->canvas.h ? lens_region(&v) : whole(view);
}

/* The view, the head, and the looks that the user chose. */
static PanelSpec chosen_spec(const Pane *pane, const Panel *panel)
{
    PanelSpec spec = panel_spec(panel->view->name);

    spec.head = pane_heads(pane) > 1 ? pane->spec.head : -1;
    spec.pool = pane->spec.pool >= 0 ? (int)panel->pool : -1;
    spec.scale = pane->spec.scale >= 0 ? (int)panel->scale : -1;
    spec.map = pane->spec.map >= 0 && panel->map != MAP_DIVERGING ? (int)panel->map : -1;
    spec.excludes = panel->excludes;
    spec.excluded = panel->excluded;
    if (panel->view->kind == VIEW_HOPS)
        spec.reach =
            (ReachOptions){ reach_view_depth(panel->view), reach_view_strict(panel->view) };
    return spec;
}

static void add_pane(Ui *ui, Shot *shot, Pane *pane)
{
    Panel       *panel = &shot->panels[shot->count];
    PanelChoice *choice;

    if (!pane_panel(ui, pane, panel))
        return;
    if (!panel->plot)
        panel->region = region_of(ui, pane, panel->view);
    pane_title(ui, pane, (int)(pane - ui->compare.panes) + 1, panel->title, sizeof(panel->title));
    shot->panes[shot->count] = pane;
    choice = &shot->choices[shot->count++];
    *choice = (PanelChoice){ .result = pane->result, .spec = chosen_spec(pane, panel) };
    if (panel->minus) {
        choice->minus = shot->base = ui->compare.panes[0].result;
        snprintf(choice->spec.minus_view, sizeof(choice->spec.minus_view), "%s",
                 panel->minus->name);
    }
}

/* The first panel of cells: a curve has no region. */
static const Panel *first_matrix(const Shot *shot)
{
    int k = 0;

    while (k + 1 < shot->count && shot->panels[k].plot)
        k++;
    return &shot->panels[k];
}

/* A region that all show is an option; else each panel names its own. */
static void share_sight(Shot *shot)
{
    const Panel *first = first_matrix(shot);
    bool         all = same_region(first->region, whole(first->view)), same = true;

    for (int i = 0; i < shot->count; i++) {
        const Panel *p = &shot->panels[i];

        same &= p->plot || same_region(p->region, all ? whole(p->view) : first->region);
    }
    if (same && !all && !first->plot)
        shot->options.region = first->region;
    for (int i = 0; !same && i < shot->count; i++)
        if (!shot->panels[i].plot && !same_region(shot->panels[i].region,
                                                  whole(shot->panels[i].view)))
            shot->choices[i].spec.region = shot->panels[i].region;
}

/* A pane with a curve for each head shows all of them: it names none. */
static bool free_heads(Shot *shot)
{
    bool any = false;

    for (int i = 0; i < shot->count; i++)
        if (plot_has_heads(shot->panels[i].view)) {
            shot->choices[i].spec.head = -1;
            any = true;
        }
    return any;
}

/* One head of all that have heads is an option; else each panel names its own. */
static void share_head(Shot *shot)
{
    int64_t head = -1;
    bool    differ = false;

    if (free_heads(shot)) {
        shot->options.head = -1;
        return;
    }

    for (int i = 0; i < shot->count; i++) {
        int64_t own = shot->choices[i].spec.head;

        differ = differ || (own >= 0 && head >= 0 && own != head);
        head = own >= 0 ? own : head;
    }
    for (int i = 0; !differ && i < shot->count; i++)
        shot->choices[i].spec.head = -1;
    shot->options.head = differ || head < 0 ? 0 : head;
}

/* Looks that all have are options: pooling, scale, colours, what is excluded, depth of reach. */
static void share_looks(Shot *shot)
{
    PictureOptions *o = &shot->options;
    PanelSpec       first = shot->choices[0].spec;

    for (int i = 1; i < shot->count; i++)
        if (!panel_spec_looks_same(&first, &shot->choices[i].spec))
            return;
    o->excludes = first.excludes;
    o->excluded = first.excluded;
    o->pool = first.pool >= 0 ? pool_name((Pool)first.pool) : NULL;
    o->scale = first.scale >= 0 ? scale_name((Scale)first.scale) : NULL;
    o->map = first.map >= 0 ? colour_map_name((ColourMap)first.map) : NULL;
    o->reach = first.reach;
    for (int i = 0; i < shot->count; i++) {
        PanelSpec *spec = &shot->choices[i].spec;

        spec->pool = spec->scale = spec->map = -1;
        spec->excludes = false;
        spec->reach = (ReachOptions){ 0 };
    }
}

/* One order of all that have one is an option; else each panel has its own. */
static void share_order(Shot *shot)
{
    bool mixed = false;

    for (int i = 0; i < shot->count; i++)
        shot->options.sorted = shot->options.sorted || shot->panels[i].row_order ||
                               shot->panels[i].col_order;
    for (int i = 0; i < shot->count; i++) {
        const Panel *p = &shot->panels[i];
        bool         sorted = p->row_order || p->col_order;

        mixed |= shot->options.sorted && !sorted && pane_has_order(shot->panes[i]);
    }
    for (int i = 0; mixed && i < shot->count; i++)
        shot->choices[i].spec.sorted = shot->panels[i].row_order || shot->panels[i].col_order;
    shot->options.sorted = shot->options.sorted && !mixed;
}

static void name_rounds(Shot *shot)
{
    for (int i = 0; i < shot->count; i++)
        if (pane_round(shot->panes[i]) > 0 && pane_rounds(shot->panes[i]) > 1 &&
            !shot->panels[i].view->headless)
            shot->choices[i].spec.round = shot->panes[i]->spec.round;
}

/* Notes are of one panel, whatever is shared. */
static void take_notes(Shot *shot)
{
    for (int i = 0; i < shot->count; i++)
        if (!shot->panels[i].plot)
            memcpy(shot->choices[i].spec.notes, shot->panes[i]->spec.notes,
                   sizeof(shot->choices[i].spec.notes));
}

/* Some pane has the strips that were asked for. */
static bool shows_strips(const Shot *shot)
{
    for (int i = 0; i < shot->count; i++)
        if (shot->panes[i]->beside.w)
            return true;
    return false;
}

/* A file chooses from the same numbers as the screen: from all entries. */
static bool is_sure(const Pane *pane, const Panel *panel)
{
    const Grid *g = pane_whole_grid(pane, panel);

    return g && ((g->rows == view_rows(panel->view) && g->cols == view_cols(panel->view)) ||
                 (g->entries && panel->pool == POOL_MAX));
}

static bool shows_values(const Pane *pane, const Panel *panel)
{
    double lo, hi;

    return !panel->plot && pane->drawing.grid.cells && pane->drawing.shown == panel->view &&
           pane_range(panel, &pane->drawing.grid, &lo, &hi);
}

/* What the region's values alone would call for. */
static ColourMap map_of_region(const Pane *pane, const Panel *panel)
{
    const Grid *g = &pane->drawing.grid;
    Panel       asked;

    panel_init(&asked, panel->view, panel->components, panel->plane, "");
    pane_set_looks(pane, &asked);
    return panel_has_one_side(&asked, g->pool_lo[asked.pool], g->pool_hi[asked.pool])
               ? MAP_VIRIDIS
               : asked.map;
}

/* Names the colours that the screen chose, where a file might choose others: it sees the region
 * alone, in other cells. */
static void name_colours(const Ui *ui, Shot *shot)
{
    bool sure = true;

    for (int i = 0; i < shot->count; i++)
        sure &= !shows_values(shot->panes[i], &shot->panels[i]) ||
                is_sure(shot->panes[i], &shot->panels[i]);
    for (int i = 0; i < shot->count && !sure; i++) {
        const Pane  *pane = shot->panes[i];
        const Panel *panel = &shot->panels[i];
        PanelSpec   *spec = &shot->choices[i].spec;

        if (!shows_values(pane, panel))
            continue;
        if (panel->view->kind == VIEW_WEIGHTS && !panel->minus && panel->pool == POOL_MAX)
            spec->scale = (int)panel->scale;
        if (!panel->minus && spec->map < 0 && panel->map != map_of_region(pane, panel))
            spec->map = (int)panel->map;
        spec->ranged = pane->colours.apart && !ui->compare.look.own_scales;
        spec->lo = spec->ranged ? pane->colours.lo : 0;
        spec->hi = spec->ranged ? pane->colours.hi : 0;
    }
    shot->named = !sure;
}

typedef struct Scales {
    int  shared, own, differences; /* panels on the screen */
    bool only_differences;         /* all that share one are differences */
} Scales;

static Scales count_scales(const Shot *shot)
{
    Scales n = { .only_differences = true };

    for (int i = 0; i < shot->count; i++) {
        ScaleStand stand = shot->panes[i]->area.h ? pane_scale_stand(shot->panes[i]) : SCALE_ALONE;

        n.shared += stand == SCALE_SHARED;
        n.own += stand == SCALE_OWN;
        n.differences += shot->choices[i].minus != NULL;
        n.only_differences &= stand != SCALE_SHARED || shot->choices[i].minus;
    }
    return n;
}

/* As on the screen, by options, and by none where it is usual.  A pane apart from others that share
 * has its own scale in a figure with --grid only, so the usual arrangement is named. */
static void share_scales(const Compare *c, Shot *shot)
{
    PictureOptions *o = &shot->options;
    Scales          n = count_scales(shot);
    Figure          usual = { .count = shot->count };

    if (c->now.effect) {
        o->sharing = SHARE_ALL;
    } else if (c->look.own_scales) {
        o->sharing = o->rows || n.differences > 1 ? SHARE_NONE : SHARE_DIFFERENCES;
    } else if (shot->named && n.shared && !n.only_differences) {
        o->sharing = SHARE_ALL; /* one that stands apart has its ends */
    } else if (o->rows || (n.shared && n.own && !n.only_differences)) {
        o->sharing = SHARE_QUANTITIES;
        if (!o->rows)
            figure_arrange(&usual, &o->rows, &o->cols);
    } else {
        o->sharing = n.shared && !n.only_differences ? SHARE_ALL : SHARE_DIFFERENCES;
    }
}

void shot_take(Ui *ui, Pane *only, Shot *shot)
{
    Compare *c = &ui->compare;
    bool     first = only && pane_differs(ui, only);

    *shot = (Shot){ .options.strips.kind = c->look.strips };
    for (int i = 0; i < c->count && !only; i++)
        first = first || (c->panes[i].area.h && pane_differs(ui, &c->panes[i]));
    for (int i = 0; i < c->count; i++)
        if ((i == 0 && first) || (only ? only == &c->panes[i] : c->panes[i].area.h > 0))
            add_pane(ui, shot, &c->panes[i]);
    if (!shot->count)
        return;
    if (!shows_strips(shot))
        shot->options.strips.kind = MARGIN_NONE;
    if (shot->options.strips.kind == MARGIN_SUMS)
        shot->options.strips.query_count =
            pane_marked(ui, shot->panes[0], shot->options.strips.queries);
    name_colours(ui, shot);
    share_head(shot);
    share_order(shot);
    share_looks(shot);
    share_sight(shot);
    name_rounds(shot);
    take_notes(shot);
    if (c->look.layout[0] && !only && shot->count > 1)
        sscanf(c->look.layout, "%dx%d", &shot->options.rows, &shot->options.cols);
    share_scales(c, shot);
}
