/* legend.c -- the line below the panes: what their colours and letters mean.
 *
 * Causes, counts of layers, schedules and loads are told for all panes in sight, each meaning
 * once; values and categories have ranges of their own, so those of the focused pane.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/compare.h"

/* What a bit of a pane's picture means, unless an earlier one meant the same. */
static bool is_new_cause(const Ui *ui, int pane, const View *view, uint8_t bit)
{
    for (int i = 0; i < pane; i++) {
        const Pane *before = &ui->compare.panes[i];
        const View *other = before->area.h && before->drawing.causes ? pane_view(before) : NULL;

        for (int b = COMPONENT_WINDOW; other && b <= COMPONENT_LAST; b <<= 1)
            if (grid_causes(&before->drawing.grid) & b &&
                !strcmp(cause_name(other, (uint8_t)b), cause_name(view, bit)))
                return false;
    }
    return true;
}

static int legend_bit(Ui *ui, int y, int x, const View *view, uint8_t bit)
{
    Term *term = ui->term;
    Ink   ink = ink_of(cause_colour(view, bit), cause_256(view, bit));
    bool  letters = !term->utf8 || term->colours == TERM_MONO;

    term_char(term, y, x, letters ? (uint32_t)cause_letter(view, bit) : 0x25A0,
              (Style){ .fg = ink });
    return x + 4 + term_text(term, y, x + 2, 12, cause_name(view, bit), ui_style(ui, ROLE_TEXT));
}

static int legend_bits(Ui *ui, int y, int x)
{
    for (int i = 0; i < ui->compare.count; i++) {
        const Pane *pane = &ui->compare.panes[i];
        const View *view = pane->area.h && pane->drawing.causes ? pane_view(pane) : NULL;

        for (int bit = COMPONENT_WINDOW; view && bit <= COMPONENT_LAST; bit <<= 1)
            if (grid_causes(&pane->drawing.grid) & bit &&
                is_new_cause(ui, i, view, (uint8_t)bit))
                x = legend_bit(ui, y, x, view, (uint8_t)bit);
    }
    return x;
}

static int legend_list(Ui *ui, const LegendItem *items, int count, int y, int x)
{
    bool letters = !ui->term->utf8 || ui->term->colours == TERM_MONO;

    for (int k = 0; k < count; k++) {
        Ink ink = items[k].background ? INK_NONE : ink_of(items[k].rgb, items[k].index256);
        int width = term_width(items[k].text) < 12 ? term_width(items[k].text) : 12;

        if (x + 2 + width + (k + 1 < count ? 3 : 0) > ui->term->cols) { /* there are more */
            term_char(ui->term, y, x, 0x2026, ui_style(ui, ROLE_DIM));
            return x + 2;
        }

        term_char(ui->term, y, x,
                  letters               ? (uint32_t)items[k].ascii
                  : items[k].background ? 0x25A1
                                        : 0x25A0,
                  (Style){ .fg = ink });
        x += 2 + term_text(ui->term, y, x + 2, 12, items[k].text, ui_style(ui, ROLE_TEXT)) + 2;
    }
    return x;
}

/* Of all panes that show reach: a count has the same colour in all of them. */
static int legend_hops(Ui *ui, int y, int x)
{
    double     least = REACH_MOST, most = 0;
    bool       any = false, unreached = false;
    ColourMap  map = MAP_VIRIDIS;
    LegendItem items[32];
    int        count;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane       *pane = &ui->compare.panes[i];
        const Grid *g = &pane->drawing.grid;
        Panel       panel;

        if (!pane->area.h || !g->cells || pane->drawing.kind != VIEW_HOPS ||
            !pane_panel(ui, pane, &panel) || !panel_shows_hops(&panel))
            continue;
        any = true;
        map = panel.map;
        least = fmin(least, g->value_min);
        most = fmax(most, g->value_max);
        unreached |= g->count < (double)(g->region.row1 - g->region.row0) *
                                    (double)(g->region.col1 - g->region.col0);
    }
    count = any ? hops_legend(map, least, most, unreached, theme_dark(ui->theme), items, 32) : 0;
    return legend_list(ui, items, count, y, x);
}

/* Of a pane that shows who works on what. */
static int legend_schedule(Ui *ui, int y, int x)
{
    LegendItem items[4];
    bool       any = false;
    Panel      panel;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        any |= pane->area.h && pane->drawing.grid.cells && pane_panel(ui, pane, &panel) &&
               panel_shows_schedule(&panel);
    }
    return any ? legend_list(ui, items, schedule_legend(HUES_USUAL, items, 4), y, x) : x;
}

static bool colours_values(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    return panel->minus ||
           !(panel_shows_hops(panel) || panel->components || kind == VIEW_PATTERN ||
             kind == VIEW_COMPONENTS || kind == VIEW_BUCKETS || kind == VIEW_MEMBERSHIP ||
             kind == VIEW_SCHEDULE);
}

bool pane_range(const Panel *panel, const Grid *grid, double *lo, double *hi)
{
    if (!colours_values(panel))
        return false;
    *lo = grid->pool_lo[panel->pool];
    *hi = grid->pool_hi[panel->pool];
    panel_spread(panel, lo, hi);
    if (panel->hi > panel->lo) { /* fixed by the kind */
        *lo = panel->lo;
        *hi = panel->hi;
    }
    return true;
}

static int legend_values(Ui *ui, const Pane *pane, int y, int x)
{
    Panel          panel;
    double         lo, hi;
    int            length, digits;
    const uint8_t *ramp;
    ColourMap      map;

    if (!pane_panel(ui, compare_focus(ui), &panel) || !pane->drawing.grid.cells || panel.plot)
        return x;
    if (!pane_range(&panel, &pane->drawing.grid, &lo, &hi)) {
        if (panel.view->kind != VIEW_HOPS && panel.view->kind != VIEW_BUCKETS &&
            panel.view->kind != VIEW_MEMBERSHIP && panel.view->kind != VIEW_SCHEDULE &&
            pane->drawing.grid.rows <
            pane->drawing.grid.region.row1 - pane->drawing.grid.region.row0)
            x += term_text(ui->term, y, x, 40,
                           x + 38 < ui->term->cols ? "brighter: more of the cell is allowed"
                                                   : "brighter: more",
                           ui_style(ui, ROLE_DIM)) +
                 2;
        return x;
    }
    map = panel.minus ? MAP_DIVERGING : panel.map;
    ramp = colour_ramp_256(map, &length);
    digits = range_digits(lo, hi);
    x += term_textf(ui->term, y, x, 12, ui_style(ui, ROLE_DIM), "%.*g ", digits, lo);
    for (int i = 0; i < 12; i++) {
        double t = i / 11.0;
        Ink    ink = ink_of(colour_of_value(map, t), ramp[lround(t * (length - 1))]);

        if (ui->term->utf8 && ui->term->colours >= TERM_256)
            term_char(ui->term, y, x++, ' ', (Style){ .bg = ink });
        else if (i % 3 == 0)
            term_char(
                ui->term, y, x++,
                ui->term->utf8 ? (uint32_t[]){ 0x2591, 0x2592, 0x2593, 0x2588 }[i / 3]
                               : (uint32_t) ".-*@" [i / 3],
                (Style) { 0 });
    }
    x += term_textf(ui->term, y, x, 30, ui_style(ui, ROLE_DIM), " %.*g %s", digits, hi,
                    panel.scale == SCALE_LINEAR ? "" : scale_name(panel.scale));
    return x + 2;
}

void legend_draw(Ui *ui, int y, int x)
{
    x = legend_bits(ui, y, x);
    x = legend_hops(ui, y, x);
    x = legend_schedule(ui, y, x);
    x = legend_loads(ui, y, x);
    legend_values(ui, compare_focus(ui), y, x);
}
