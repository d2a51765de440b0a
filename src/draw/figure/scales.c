/* scales.c -- maps and scales of colours that follow the data; see scene.h.
 *
 * A map with two ends suits values on both sides of a centre. A linear scale suits values of one
 * size: a few large weights would make the rest one dark sheet. A shared scale suits panels of one
 * size: one of far smaller values would look empty.
 */
#include <float.h>
#include <math.h>

#include "draw/figure/scene.h"

bool panel_has_one_side(const Panel *panel, double lo, double hi)
{
    double centre = panel->view->centre;

    return panel_style(panel) == STYLE_VALUE && panel->map == MAP_DIVERGING && !panel->minus &&
           !panel->map_given && !panel_has_own_range(panel) && hi > lo &&
           (lo >= centre || hi <= centre);
}

/* Values of the panel, and of those it shares a range with, lie on one side of its centre. */
static bool lies_on_one_side(const Scene *scene, const Figure *figure, int panel)
{
    double lo = HUGE_VAL, hi = -HUGE_VAL;

    for (int k = 0; k < scene->count; k++) {
        const Panel *own = &figure->panels[k];

        if (k != panel && !figure_shares(figure, panel, k))
            continue;
        lo = fmin(lo, scene->grids[k].pool_lo[own->pool]);
        hi = fmax(hi, scene->grids[k].pool_hi[own->pool]);
    }
    return panel_has_one_side(&figure->panels[panel], lo, hi);
}

void scene_choose_maps(Scene *scene, const Figure *figure)
{
    for (int k = 0; k < scene->count; k++)
        if (lies_on_one_side(scene, figure, k))
            scene->panels[k].map = MAP_VIRIDIS;
}

/* ---- logarithmic scales ------------------------------------------------------- */

#define DARK_SHARE 0.02 /* of the largest value: the darkest colours of a linear scale */
#define DARK_CELLS 0.75 /* share of cells below it that makes a linear picture one dark sheet */
#define BRIGHT_CELLS 0.05 /* share of cells that makes areas: a diagonal of blocks has more */
#define DARK_TOLD  0.9  /* share of cells below it that the caption tells */
#define FAINT_SHARE 0.1 /* of the largest value: a single entry is not seen among dark ones */
#define FAINT_ROWS 0.5  /* share of rows without a larger entry that makes it a dark sheet */

/* What a panel's values are like is asked of the entries where they are known, so that the answer
 * does not depend on the cells that a page or a screen has. Other pools make other values. */
static const Grid *judged_grid(const Panel *panel, const Grid *grid)
{
    return grid->entries && panel->pool == POOL_MAX ? grid->entries : grid;
}

/* Share of the cells with a value whose value lies in [from, to). */
static double share_between(const Panel *panel, const Grid *grid, double from, double to)
{
    int64_t all = 0, inside = 0;

    for (int64_t at = 0; at < grid->rows * grid->cols; at++) {
        double value = grid_value(grid, at / grid->cols, at % grid->cols, panel->pool);

        if (!grid->cells[at].any || grid->cells[at].odd)
            continue;
        all++;
        inside += value >= from && value < to;
    }
    return all ? (double)inside / (double)all : 0;
}

/* Most cells of a reduced picture would have the darkest colours, though their values differ, and
 * hardly any is bright: there are no bright areas to see. */
static bool has_dark_cells(const Panel *panel, const Grid *grid, double hi)
{
    return share_between(panel, grid, DBL_TRUE_MIN, DARK_SHARE * hi) > DARK_CELLS &&
           share_between(panel, grid, FAINT_SHARE * hi, HUGE_VAL) < BRIGHT_CELLS;
}

bool panel_is_mostly_dark(const Panel *panel, const Grid *grid, double *share, double *below)
{
    *below = DARK_SHARE * panel->hi;
    *share = 0;
    if (panel_style(panel) == STYLE_VALUE && panel->view->kind == VIEW_WEIGHTS && !panel->minus &&
        !panel->picture && panel->scale == SCALE_LINEAR && panel->pool == POOL_MAX &&
        panel->lo >= 0 && *below > 0)
        *share = share_between(panel, grid, 0, *below);
    return *share > DARK_TOLD;
}

/* Weights are read by rows: a row of one bright weight among dark ones shows where its query looks,
 * a row of dark ones alone shows nothing. */
static bool has_faint_rows(const Panel *panel, const Grid *grid, double hi)
{
    int64_t all = 0, faint = 0;

    for (int64_t row = 0; row < grid->rows; row++) {
        double peak = grid->row_peak[row * POOL_COUNT + panel->pool];

        all += peak > 0;
        faint += peak > 0 && peak < FAINT_SHARE * hi;
    }
    return (double)faint > FAINT_ROWS * (double)all;
}

static bool is_dark_sheet(const Panel *panel, const Grid *grid, double hi)
{
    double top = grid->pool_hi[panel->pool];
    bool   reduced = grid->rows < grid->region.row1 - grid->region.row0;

    return (top > 0 && top < DARK_SHARE * hi) || /* beside a panel that it shares its range with */
           (reduced ? has_dark_cells(panel, grid, hi) : has_faint_rows(panel, grid, hi));
}

/* The scale is still to be chosen, and the values may have a logarithmic one. */
static bool may_be_log(const Panel *panel, const Grid *grid)
{
    return panel_style(panel) == STYLE_VALUE && panel->view->kind == VIEW_WEIGHTS &&
           panel->scale == SCALE_LINEAR && !panel->scale_given && !panel->minus &&
           panel->map != MAP_DIVERGING && panel->pool == POOL_MAX && !panel->picture &&
           !panel_has_own_range(panel) && grid->value_min >= 0;
}

bool panel_spans_decades(const Panel *panel, const Grid *grid)
{
    grid = judged_grid(panel, grid);
    return may_be_log(panel, grid) && is_dark_sheet(panel, grid, grid->pool_hi[panel->pool]);
}

bool panel_is_log(const Panel *panel)
{
    return panel->scale == SCALE_LOG && panel->pool != POOL_COVER;
}

double panel_least(double lo, double hi)
{
    return fmax(fabs(lo), fabs(hi)) * pow(10, -SCALE_DECADES);
}

double panel_bottom(const Panel *panel, double lo, double hi)
{
    return panel_is_log(panel) && lo >= 0 ? panel_least(lo, hi) : lo;
}

/* Panels with one range have one scale. */
static bool suits_log(const Scene *scene, const Figure *figure, int panel)
{
    bool log = true, dark = false;

    for (int k = 0; log && k < scene->count; k++)
        if (!scene->panels[k].apart && (k == panel || figure_shares(figure, panel, k))) {
            const Grid *grid = judged_grid(&figure->panels[k], &scene->grids[k]);

            log = may_be_log(&figure->panels[k], grid);
            dark = dark || (log && is_dark_sheet(&figure->panels[k], grid, scene->panels[k].hi));
        }
    return log && dark;
}

void scene_choose_scales(Scene *scene, const Figure *figure)
{
    for (int k = 0; k < scene->count; k++)
        if (!scene->plots[k] && !scene->panels[k].apart)
            scene->panels[k].scale =
                suits_log(scene, figure, k) ? SCALE_LOG : figure->panels[k].scale;
}

/* ---- panels of small values beside panels of large ones ------------------------ */

/* Its colour is 6.5 to 9 units of CIELAB from that of the map's end (viridis) or middle
 * (diverging): a smaller difference is hardly seen. */
#define FAINT_PLACE 0.05
#define FAINT_CELLS 0.05 /* share of cells beyond that place which makes a picture */
#define FAINT_PEAK  0.25 /* of the range: the largest value of a panel that is seen has more */

/* Distance of a value from the place of no colour, 0 to 1. */
static double place_of(const Panel *panel, double value)
{
    double half = (panel->hi - panel->lo) / 2;

    if (panel_is_log(panel)) {
        double least = panel_least(panel->lo, panel->hi);

        return fmax(0, log10(fabs(value) / least) / SCALE_DECADES);
    }
    if (panel->minus || panel->map == MAP_DIVERGING)
        return fabs(value - (panel->lo + half)) / half;
    return (value - panel->lo) / (2 * half);
}

/* Share of the cells with a value that stand out, and the place of the largest. */
static double share_seen(const Panel *panel, const Grid *grid, double *peak)
{
    int64_t all = 0, seen = 0;

    *peak = 0;
    for (int64_t at = 0; at < grid->rows * grid->cols; at++) {
        double value = grid_value(grid, at / grid->cols, at % grid->cols, panel->pool);
        double place = place_of(panel, value);

        if (!grid->cells[at].any || grid->cells[at].odd || !isfinite(place))
            continue;
        all++;
        seen += place > FAINT_PLACE;
        *peak = fmax(*peak, place);
    }
    return all ? (double)seen / (double)all : 1;
}

bool panel_is_faint(const Panel *panel, const Grid *grid)
{
    Panel  own = *panel;
    double peak;

    grid = judged_grid(panel, grid);
    if (panel_style(panel) != STYLE_VALUE || panel->scale == SCALE_ROW || panel->picture ||
        panel->pool == POOL_COVER || !(panel->hi > panel->lo) ||
        share_seen(panel, grid, &peak) >= FAINT_CELLS || peak >= FAINT_PEAK)
        return false;
    own.lo = own.hi = 0;
    own.scale = SCALE_LINEAR;
    panel_settle(&own, grid);
    share_seen(&own, grid, &peak);
    return peak > FAINT_PLACE && own.hi - own.lo < FAINT_PEAK * (panel->hi - panel->lo);
}

static bool shares_with_another(const Scene *scene, const Figure *figure, int panel)
{
    for (int k = 0; k < scene->count; k++)
        if (k != panel && figure_shares(figure, panel, k))
            return true;
    return false;
}

/* As if the panel stood alone. */
static void set_apart(Panel *panel, const Panel *asked, const Grid *grid)
{
    panel->apart = true;
    panel->lo = panel->hi = 0;
    panel->map = panel_has_one_side(asked, grid->pool_lo[panel->pool], grid->pool_hi[panel->pool])
                     ? MAP_VIRIDIS
                     : asked->map;
    panel_settle(panel, grid);
    panel->scale = panel_spans_decades(asked, grid) ? SCALE_LOG : asked->scale;
}

bool scene_part_faint(Scene *scene, const Figure *figure)
{
    bool parted = false;

    for (int k = 0; k < scene->count; k++)
        if (figure->sharing != SHARE_ALL && !scene->plots[k] && !scene->panels[k].apart &&
            !panel_has_own_range(&figure->panels[k]) && shares_with_another(scene, figure, k) &&
            panel_is_faint(&scene->panels[k], &scene->grids[k])) {
            set_apart(&scene->panels[k], &figure->panels[k], &scene->grids[k]);
            parted = true;
        }
    return parted;
}
