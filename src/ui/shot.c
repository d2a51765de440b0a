/* shot.c -- see shot.h. */
#include "ui/shot.h"

#include <string.h>

#include "ui/compare.h"

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
    Pane       *focus = compare_focus(ui);
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

static bool same_sight(const Shot *shot)
{
    const Panel *first = first_matrix(shot);
    bool         all = same_region(first->region, whole(first->view));

    for (int i = 0; i < shot->count; i++) {
        const Panel *p = &shot->panels[i];

        if (p->plot)
            continue;
        if (all ? !same_region(p->region, whole(p->view)) : !same_region(p->region, first->region))
            return false;
    }
    return true;
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

/* A look that was chosen must hold for all; one that was not is the kind's own. */
static bool shared_looks(Shot *shot)
{
    PictureOptions *o = &shot->options;
    const Panel    *first = &shot->panels[0];
    bool            pool = false, scale = false, map = false;

    for (int i = 0; i < shot->count; i++) {
        pool = pool || shot->panes[i]->pool >= 0;
        scale = scale || shot->panes[i]->scale >= 0;
        map = map || (shot->panes[i]->map >= 0 && !shot->panels[i].minus);
    }
    for (int i = 1; i < shot->count; i++) {
        const Panel *p = &shot->panels[i];

        if ((pool && p->pool != first->pool) || (scale && p->scale != first->scale) ||
            (map && !p->minus && p->map != first->map))
            return false;
    }
    o->excludes = first->excludes;
    o->excluded = first->excluded;
    for (int i = 1; i < shot->count; i++)
        if (shot->panels[i].excludes != first->excludes ||
            (first->excludes && shot->panels[i].excluded != first->excluded))
            return false;
    o->pool = pool ? pool_name(first->pool) : NULL;
    o->scale = scale ? scale_name(first->scale) : NULL;
    o->map = map ? colour_map_name(first->map) : NULL;
    return true;
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

/* Depth and residual connections of the panes that show reach. */
static bool shared_reach(Shot *shot)
{
    const View *first = NULL;

    for (int i = 0; i < shot->count; i++) {
        const View *view = shot->panels[i].view;

        if (view->kind != VIEW_HOPS)
            continue;
        first = first ? first : view;
        if (reach_view_depth(view) != reach_view_depth(first) ||
            reach_view_strict(view) != reach_view_strict(first))
            return false;
    }
    if (first)
        shot->options.reach =
            (ReachOptions){ reach_view_depth(first), reach_view_strict(first) };
    return true;
}

static bool shows_round(const Shot *shot)
{
    for (int i = 0; i < shot->count; i++)
        if (shot->panes[i]->round > 0 && pane_rounds(shot->panes[i]) > 1)
            return true;
    return false;
}

/* All options are set as far as they are shared, whatever stands in the way. */
static const char *find_obstacle(Shot *shot)
{
    bool sight = same_sight(shot), looks = shared_looks(shot), reach = shared_reach(shot);

    share_head(shot);
    share_order(shot);
    if (sight && !first_matrix(shot)->plot &&
        !same_region(first_matrix(shot)->region, whole(first_matrix(shot)->view)))
        shot->options.region = first_matrix(shot)->region;
    return shows_round(shot) ? "a round of a view has no option"
           : !sight          ? "the panes show different regions"
           : !looks          ? "the panes differ in pooling, scale, colours or what is excluded"
           : !reach          ? "the panes show reach over different depths"
                             : NULL;
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
    shot->obstacle = find_obstacle(shot);
}
