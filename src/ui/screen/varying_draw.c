/* varying_draw.c -- the layer of a varied parameter: loss and cost beside each other, and
 * the numbers of the value under the cursor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/screen/compare.h"

#define STACKED_BELOW 72 /* columns; a narrower screen shows the plots above each other */

/* The parameter's value in the pane, as it is written. */
static void write_now(const Pane *pane, const char *name, Text *out)
{
    const Mechanism  *m = mechanism_find(pane->request.mechanism);
    const Assignment *given = assignments_find(&pane->request.given, name);
    const Param      *param = m ? mechanism_param(m, &pane->request.given, name) : NULL;

    if (given)
        text_add(out, given->text);
    else if (!strcmp(name, "position"))
        text_add(out, pane->request.position);
    else if (param)
        params_print(param, NULL, out);
}

double vary_now(Ui *ui)
{
    const Varying *v = &ui->varying;
    const Vary    *vary = &v->sweep.vary;
    const Pane    *pane = vary_pane(ui);
    Text           now = { 0 };
    double         place = (double)NAN;
    char          *end;

    if (!pane)
        return place;
    write_now(pane, vary->name, &now);
    if (!v->sweep.words && now.length) {
        place = strtod(text_str(&now), &end);
        place = *end ? (double)NAN : place;
    }
    for (int i = 0; i < vary->count; i++)
        if (!strcmp(vary->values[i], text_str(&now)))
            place = sweep_x(&v->sweep, i);
    text_free(&now);
    return place;
}

static void draw_one(Ui *ui, SweepQuantity quantity, double now, int cursor, Area area)
{
    Varying     *v = &ui->varying;
    SweepLook    look = { .quantities = { quantity }, .count = 1, .now = now, .cursor = cursor };
    SweepPicture picture;
    Error        err = ERROR_INIT;
    Plot        *plot;
    int          line, point;

    if (v->goal.quantity == quantity && (v->seeks || quantity == SWEEP_MASS))
        look.goal = &v->goal;
    if (!sweep_picture(&v->sweep, &look, &picture, &err)) {
        bool        rest = sweep_next(&v->sweep, &line, &point);
        const char *text = !rest        ? err.text
                           : v->stopped ? "stopped: nothing to plot yet"
                                        : "running\xe2\x80\xa6";

        term_paragraph(ui->term, (Area){ area.y + 1, area.x, area.h - 1, area.w }, text,
                       ui_style(ui, rest && !v->stopped ? ROLE_DIM : ROLE_WARN));
        return;
    }
    plot = panel_plot(&picture.figure->panels[0], &err);
    if (plot)
        plot_draw(ui, plot, area);
    plot_free(plot);
    sweep_picture_free(&picture);
}

/* "features=64: error 0.92, mass n/a, FLOPs 6.6 M" */
static void draw_numbers(Ui *ui, int point, Area area)
{
    static const struct {
        const char   *name;
        SweepQuantity quantity;
    } shown[] = { { "error", SWEEP_ERROR }, { "mass", SWEEP_MASS },     { "TV", SWEEP_VARIATION },
                  { "FLOPs", SWEEP_FLOPS }, { "time", SWEEP_TIME }, { "memory", SWEEP_MEMORY } };
    Varying          *v = &ui->varying;
    const SweepPoint *p = sweep_at(&v->sweep, v->main, point);
    int               x = area.x;
    char              text[32];

    x += term_textf(ui->term, area.y, x, area.w, ui_style(ui, ROLE_KEY), "%s=%s",
                    v->sweep.vary.name, v->sweep.vary.values[point]) + 2;
    if (p->problem[0]) {
        term_text(ui->term, area.y, x, area.x + area.w - x, p->problem, ui_style(ui, ROLE_ERROR));
        return;
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown) && x < area.x + area.w - 8; i++) {
        if (!p->value[shown[i].quantity].valid)
            continue;
        x += term_textf(ui->term, area.y, x, area.x + area.w - x, ui_style(ui, ROLE_TEXT), "%s %s",
                        shown[i].name, quantity_text(shown[i].quantity,
                                                     p->value[shown[i].quantity], text,
                                                     sizeof(text))) + 2;
    }
    if (!p->done)
        term_text(ui->term, area.y, x, area.x + area.w - x, "not run yet", ui_style(ui, ROLE_DIM));
}

static void draw_plots(Ui *ui, Area inside)
{
    Varying *v = &ui->varying;
    int      order[VARY_MOST];
    double   now = vary_now(ui);
    Area     left = { inside.y, inside.x, inside.h - 2, (inside.w - 2) / 2 }, right = left;

    sweep_order(&v->sweep, order);
    if (inside.w < STACKED_BELOW) {
        left = (Area){ inside.y, inside.x, (inside.h - 2) / 2, inside.w };
        right = (Area){ left.y + left.h, left.x, left.h, left.w };
    } else {
        right.x += left.w + 2;
    }
    draw_one(ui, v->loss, now, order[v->cursor], left);
    draw_one(ui, v->cost, now, order[v->cursor], right);
    draw_numbers(ui, order[v->cursor], (Area){ inside.y + inside.h - 1, inside.x, 1, inside.w });
}

void vary_layer_draw(Ui *ui)
{
    Varying *v = &ui->varying;
    Area     area = { 1, 0, ui->term->rows - 3, ui->term->cols };
    char     title[200];

    if (!v->sweep.count)
        return;
    snprintf(title, sizeof(title), "approximation beside cost: %s over %s",
             v->sweep.lines[v->main].name, v->sweep.vary.name);
    term_fill(ui->term, area, ' ', (Style){ 0 });
    term_frame(ui->term, area, title, true, ui_style(ui, ROLE_FOCUS), ui_style(ui, ROLE_TITLE));
    draw_plots(ui, (Area){ area.y + 1, area.x + 2, area.h - 2, area.w - 4 });
}
