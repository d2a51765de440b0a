/* compare_state.c -- the line below the panes: what of the matrices is seen, and how. */
#include <math.h>
#include <stdio.h>

#include "ui/screen/compare.h"

static void zoom_text(const LensView *v, char *text, size_t size)
{
    if (v->row.per > 1 || v->col.per > 1)
        snprintf(text, size, "1:%.4g", fmax(v->row.per, v->col.per));
    else
        snprintf(text, size, "%d:1", v->row.size);
}

/* Layer and head, and how many there are where the line is long enough. */
static void describe_place(const Ui *ui, const Pane *pane, Text *out)
{
    const Input *input = pane->result->input;
    int64_t      heads = pane_heads(pane);

    if ((input->layers > 1 || input->layer) && ui->term->cols < 100) {
        text_addf(out, " \xe2\x94\x82 L%lld", (long long)input->layer);
        if (heads > 1)
            text_addf(out, " h%lld", (long long)pane->head);
        return;
    }
    if (input->layers > 1)
        text_addf(out, " \xe2\x94\x82 layer %lld (of %lld%s%lld)", (long long)input->layer,
                  (long long)input_layer_number(input, 0), input->held ? ".." : "-",
                  (long long)input_layer_number(input, input->layers - 1));
    if (heads > 1)
        text_addf(out, " \xe2\x94\x82 head %lld (of 0-%lld)", (long long)pane->head,
                  (long long)heads - 1);
}

/* Which of the panes this is where not all are seen; whether they move together. */
static void describe_panes(const Ui *ui, Text *out)
{
    const Compare *c = &ui->compare;
    bool           some = c->first > 0 ||
                (!c->solo && c->count > 2 && c->panes[c->count - 1].area.h == 0);

    if (some)
        text_addf(out, "pane %d of %d (Tab) \xe2\x94\x82 ", c->focus + 1, c->count);
    if (c->count > 1 && !c->linked)
        text_add(out, "each its own \xe2\x94\x82 ");
    else if (c->count > 1 && (!some || ui->term->cols >= 100))
        text_add(out, "linked \xe2\x94\x82 ");
}

/* What stands for the entries of a cell: of categories the one that most of them have. */
static const char *pool_words(const Panel *panel)
{
    return panel_shows_categories(panel) ? "majority" : pool_name(panel->pool);
}

/* tight: without what the axes say. */
static void describe(Ui *ui, Pane *pane, const Panel *panel, bool tight, Text *out)
{
    const Compare *c = &ui->compare;
    LensView       v = lens_view(&pane->lens, &pane->shape);
    char           zoom[32];

    zoom_text(&v, zoom, sizeof(zoom));
    describe_panes(ui, out);
    if (panel->plot)
        text_add(out, tight ? "a curve" : "a curve: left and right move along it");
    else
        text_addf(out, "zoom %s", zoom);
    if (!panel->plot && !tight)
        text_addf(out, " \xe2\x94\x82 %c %lld-%lld  %c %lld-%lld", panel->view->rows[0],
                  (long long)v.row.first, (long long)v.row.last - 1, panel->view->cols[0],
                  (long long)v.col.first, (long long)v.col.last - 1);
    if (c->marks.count)
        text_addf(out, " \xe2\x94\x82 %d marked", c->marks.count);
    if (pane_excludes(pane))
        text_addf(out, " \xe2\x94\x82 key %lld excluded", (long long)pane->excluded);
    describe_place(ui, pane, out);
    if (!panel->plot)
        text_addf(out, " \xe2\x94\x82 %s", pool_words(panel));
    if (!panel->plot && !panel_shows_categories(panel) && !panel_shows_hops(panel) &&
        panel->scale != SCALE_LINEAR)
        text_addf(out, " \xe2\x94\x82 %s", scale_name(panel->scale));
    if (pane->sorted)
        text_add(out, " \xe2\x94\x82 sorted");
    strips_describe(ui, pane, out);
    if (c->count > 1 && c->solo)
        text_add(out, " \xe2\x94\x82 alone (o)");
}

void compare_state(Ui *ui, Area line)
{
    Compare *c = &ui->compare;
    Pane    *pane = compare_focus(ui);
    Panel    panel;
    Text     out = { 0 };

    if (!pane)
        return;
    if (!pane_panel(ui, pane, &panel)) {
        term_textf(ui->term, line.y, line.x + 1, line.w - 2, ui_style(ui, ROLE_DIM),
                   "pane %d of %d", c->focus + 1, c->count);
        return;
    }
    describe(ui, pane, &panel, false, &out);
    if (term_width(text_str(&out)) > line.w - 2) {
        text_clear(&out);
        describe(ui, pane, &panel, true, &out);
    }
    term_text(ui->term, line.y, line.x + 1, line.w - 2, text_str(&out), ui_style(ui, ROLE_DIM));
    text_free(&out);
}
