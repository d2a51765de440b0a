/* shot.c -- see journal.h. */
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

/* Linked panes are cut as the focused one: tiles differ by a column now and then. */
static Region region_of(Ui *ui, Pane *pane, const View *view)
{
    Pane       *focus = panes_focus(ui);
    const View *shown = pane_view(focus);
    bool        follows = ui->compare.linked && shown && views_share_rows(shown, view) &&
                   views_share_cols(shown, view) && focus->canvas.h;
    Pane       *from = follows ? focus : pane;
    LensView    v = lens_view(&from->lens, &from->shape);

    return from->canvas.h ? lens_region(&v) : whole(view);
}

static void add_pane(Ui *ui, Shot *shot, Pane *pane)
{
    Panel *panel = &shot->panels[shot->count];

    if (!pane_panel(ui, pane, panel))
        return;
    if (!panel->plot)
        panel->region = region_of(ui, pane, panel->view);
    pane_title(ui, pane, (int)(pane - ui->compare.panes) + 1, panel->title, sizeof(panel->title));
    shot->panes[shot->count] = pane;
    shot->results[shot->count] = pane->result;
    shot->choices[shot->count] = (PanelChoice){ .result = pane->result,
                                                .view = panel->view->name,
                                                .head = pane_heads(pane) > 1 ? pane->head : -1 };
    if (panel->minus) {
        shot->base = ui->compare.panes[0].result;
        shot->choices[shot->count].minus = shot->base;
        shot->choices[shot->count].minus_view = panel->minus->name;
    }
    shot->count++;
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
            shot->looks[i].region = shot->panels[i].region;
}

/* One head of all that have heads is an option; else each panel names its own. */
static void share_head(Shot *shot)
{
    int64_t head = -1;
    bool    differ = false;

    for (int i = 0; i < shot->count; i++) {
        int64_t own = shot->choices[i].head;

        differ = differ || (own >= 0 && head >= 0 && own != head);
        head = own >= 0 ? own : head;
    }
    for (int i = 0; !differ && i < shot->count; i++)
        shot->choices[i].head = -1;
    shot->options.head = differ || head < 0 ? 0 : head;
}

/* What a pane looks like because somebody chose it. */
static PanelLooks chosen_looks(const Shot *shot, int i)
{
    const Pane  *pane = shot->panes[i];
    const Panel *p = &shot->panels[i];
    PanelLooks   l = { .pooled = pane->pool >= 0, .pool = p->pool,
                       .scaled = pane->scale >= 0, .scale = p->scale,
                       .mapped = pane->map >= 0 && p->map != MAP_DIVERGING, .map = p->map,
                       .excludes = p->excludes, .excluded = p->excluded };

    if (p->view->kind == VIEW_HOPS) {
        l.layers = reach_view_depth(p->view);
        l.strict = reach_view_strict(p->view);
    }
    return l;
}

/* Looks that all have are options: pooling, scale, colours, what is excluded, depth of reach. */
static void share_looks(Shot *shot)
{
    PictureOptions *o = &shot->options;
    PanelLooks      first = chosen_looks(shot, 0);
    bool            same = true;

    for (int i = 1; i < shot->count; i++) {
        PanelLooks l = chosen_looks(shot, i);

        same &= panel_looks_same(&first, &l);
    }
    for (int i = 0; !same && i < shot->count; i++)
        shot->looks[i] = chosen_looks(shot, i);
    if (!same)
        return;
    o->excludes = first.excludes;
    o->excluded = first.excluded;
    o->pool = first.pooled ? pool_name(first.pool) : NULL;
    o->scale = first.scaled ? scale_name(first.scale) : NULL;
    o->map = first.mapped ? colour_map_name(first.map) : NULL;
    o->reach = (ReachOptions){ first.layers, first.strict };
}

/* One order of all that have one is an option; else each panel says its own. */
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
        shot->choices[i].sorted = shot->panels[i].row_order || shot->panels[i].col_order;
    shot->options.sorted = shot->options.sorted && !mixed;
}

static void name_rounds(Shot *shot)
{
    for (int i = 0; i < shot->count; i++)
        if (shot->panes[i]->round > 0 && pane_rounds(shot->panes[i]) > 1 &&
            !shot->panels[i].view->headless)
            shot->looks[i].round = shot->panes[i]->round + 1;
}

/* Notes are of one panel, whatever is shared. */
static void take_notes(Shot *shot)
{
    for (int i = 0; i < shot->count; i++)
        if (!shot->panels[i].plot)
            snprintf(shot->looks[i].notes, sizeof(shot->looks[i].notes), "%s",
                     shot->panes[i]->notes);
}

/* Some pane has the strips that were asked for. */
static bool shows_strips(const Shot *shot)
{
    for (int i = 0; i < shot->count; i++)
        if (shot->panes[i]->beside.w)
            return true;
    return false;
}

void shot_take(Ui *ui, Pane *only, Shot *shot)
{
    Compare *c = &ui->compare;
    bool     first = only && pane_differs(ui, only);

    *shot = (Shot){ .options = { .shared_scale = c->effect, .strips.kind = c->strips } };
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
    share_head(shot);
    share_order(shot);
    share_looks(shot);
    share_sight(shot);
    name_rounds(shot);
    take_notes(shot);
    if (c->layout[0] && !only && shot->count > 1)
        sscanf(c->layout, "%dx%d", &shot->options.rows, &shot->options.cols);
    for (int i = 0; i < shot->count; i++)
        shot->choices[i].looks = &shot->looks[i];
}
