/* pane_draw.c -- a pane on the screen: frame, axes, matrix, caption. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/result/views.h"
#include "draw/page/layout.h"
#include "draw/text/plot_cells.h"
#include "draw/text/unicode.h"
#include "ui/pane/costs.h"
#include "ui/state/panes.h"

#define GUTTER        6 /* columns left of the matrix, with numbers */
#define GUTTER_LABELS 10

/* Also for the names of what columns hold ("dropped"), where they are not long. */
static int gutter_of(const Ui *ui, const Pane *pane, const View *view)
{
    int gutter = ui->compare.look.labels && pane->result && pane->result->input->q_tokens
                     ? GUTTER_LABELS
                     : GUTTER;
    const char *names[] = { view->load ? view->load->used_name : "",
                            view->load && view->load->over.data ? view->load->over_name : "" };

    for (int i = 0; i < 2; i++)
        if (term_width(names[i]) < GUTTER_LABELS && gutter < term_width(names[i]) + 1)
            gutter = term_width(names[i]) + 1;
    return gutter;
}

void pane_lay_out(Ui *ui, Pane *pane, Area area)
{
    const View *view;
    Panel       panel;
    Glyphs      glyphs;
    int         gutter;

    pane->area = area;
    pane->canvas = pane->beside = pane->loads = (Area){ 0 };
    if (!area.h || area.h < 6 + pane_cost_lines(ui, pane) || !pane_panel(ui, pane, &panel))
        return;
    view = panel.view;
    gutter = gutter_of(ui, pane, view);
    if (area.w < gutter + 6)
        return;
    pane->canvas = (Area){ area.y + 2, area.x + 1 + gutter, area.h - 4 - pane_cost_lines(ui, pane),
                           area.w - 2 - gutter };
    pane->beside = strips_room(ui, pane, pane->canvas);
    pane->canvas.y += pane->beside.h;
    pane->canvas.h -= pane->beside.h;
    pane->canvas.w -= pane->beside.w;
    pane->loads = loads_room(pane, &panel, pane->canvas);
    pane->canvas.h -= pane->loads.h;
    pane->canvas.w -= pane->loads.w;
    glyphs = glyphs_for(ui->term, ui->glyphs, &panel);
    pane->shape = (LensShape){ .rows = view_rows(view),
                               .cols = view_cols(view),
                               .tall = glyphs_size(glyphs).tall,
                               .near_height = pane->shape.near_height,
                               .near_width = pane->shape.near_width };
    matrix_pixels(pane->canvas, glyphs, &pane->shape.height, &pane->shape.width);
    pane->shape.even = pane->shape.rows > 8 && pane->shape.cols > 8 &&
                       pane->shape.rows <= 4 * pane->shape.cols &&
                       pane->shape.cols <= 4 * pane->shape.rows;
    if (pane->spec.region.row1 > 0 && pane->spec.region.row1 <= pane->shape.rows &&
        pane->spec.region.col1 <= pane->shape.cols)
        lens_show(&pane->lens, &pane->shape, pane->spec.region);
    pane->spec.region = (Region){ 0 };
    lens_move(&pane->lens, &pane->shape, 0, 0); /* the cursor stays in sight */
}

static void number_label(int64_t value, char *text, size_t size)
{
    if (value >= 10000 && value % 1024 == 0)
        snprintf(text, size, "%lldk", (long long)value / 1024);
    else if (value >= 100000)
        snprintf(text, size, "%.4gM", (double)value / 1e6);
    else
        snprintf(text, size, "%lld", (long long)value);
}

static void label_of(const Ui *ui, const Panel *panel, bool rows, int64_t entry, char *text,
                     size_t size)
{
    char *const   *tokens = rows ? panel->row_labels : panel->col_labels;
    const int32_t *order = rows ? panel->row_order : panel->col_order;

    if (ui->compare.look.labels && tokens)
        utf8_token(tokens[order ? order[entry] : entry], false, text, size);
    else
        number_label(entry + panel_first(panel, rows), text, size);
}

static int64_t first_multiple(int64_t from, int64_t step)
{
    return (from + step - 1) / step * step;
}

/* A dot before each marked query in sight. */
static void draw_marks(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                       GlyphSize glyph)
{
    int64_t queries[MARGIN_QUERIES_MOST];
    int     count = pane->pinned ? 0 : pane_marked(ui, pane, queries);

    for (int64_t e = v->row.first; count && e < v->row.last; e++) {
        int64_t query = panel->row_order ? panel->row_order[e] : e;
        int     y = lens_middle(&v->row, e) / glyph.down;

        if (marks_has(&ui->compare.marks, query))
            term_char(ui->term, pane->canvas.y + y, pane->canvas.x - 1, 0x2022,
                      ui_style(ui, ROLE_MARK));
    }
}

static void draw_row_axis(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                          GlyphSize glyph)
{
    Area    c = pane->canvas;
    int     gutter = c.x - pane->area.x - 1, cursor = lens_middle(&v->row, pane->lens.q);
    int64_t seen = v->row.last - v->row.first;
    bool    labels = ui->compare.look.labels && panel->row_labels;
    int64_t step = labels && v->row.size >= glyph.down
                       ? 1
                       : layout_tick_step(seen, c.h / 3 > 0 ? c.h / 3 : 1, false);

    for (int64_t e = first_multiple(v->row.first, step); e < v->row.last; e += step) {
        int  y = c.y + lens_pixel(&v->row, e) / glyph.down, width;
        char text[64];

        label_of(ui, panel, true, e, text, sizeof(text));
        width = term_width(text) < gutter - 1 ? term_width(text) : gutter - 1;
        term_text(ui->term, y, c.x - 1 - width, width, text, ui_style(ui, ROLE_DIM));
    }
    draw_marks(ui, pane, panel, v, glyph);
    if (cursor >= 0)
        term_char(ui->term, c.y + cursor / glyph.down, c.x - 1, 0x25B8,
                  ui_style(ui, ROLE_KEY));
}

/* A cross over the column that does not count, where it stands in sight. */
static void draw_excluded(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                          GlyphSize glyph)
{
    int64_t at = panel->excluded;
    int     pixel;

    for (int64_t e = v->col.first; panel->excludes && panel->col_order && e < v->col.last; e++)
        at = panel->col_order[e] == panel->excluded ? e : at;
    pixel = panel->excludes ? lens_middle(&v->col, at) : -1;
    if (pixel >= 0)
        term_char(ui->term, pane->canvas.y - 1,
                  pane->canvas.x + pixel / glyph.across * glyph.columns, 0xD7,
                  ui_style(ui, ROLE_WARN));
}

static void draw_col_axis(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                          GlyphSize glyph)
{
    Area    c = pane->canvas;
    int     cursor = lens_middle(&v->col, pane->lens.k), free_x = c.x;
    int64_t seen = v->col.last - v->col.first;
    int     used = v->col.span * glyph.columns / glyph.across;
    bool    labels = ui->compare.look.labels && panel->col_labels;
    int64_t step = layout_tick_step(seen, used / 8 > 0 ? used / 8 : 1, false);
    int mark = cursor < 0 ? -1 : c.x + cursor / glyph.across * glyph.columns;

    if (labels && v->col.size * glyph.columns / glyph.across >= 3)
        step = 1;
    for (int64_t e = first_multiple(v->col.first, step); e < v->col.last; e += step) {
        int  x = c.x + lens_pixel(&v->col, e) / glyph.across * glyph.columns, room;
        char text[64];

        label_of(ui, panel, false, e, text, sizeof(text));
        room = c.x + c.w - x;
        if (labels && step == 1)
            room = v->col.size * glyph.columns / glyph.across - 1;
        if (labels && term_width(text) > room) /* the first letter says more than a blank's mark */
            memmove(text, text + utf8_mark(text), strlen(text + utf8_mark(text)) + 1);
        if (x < free_x || (!labels && room < term_width(text)) ||
            (step > 1 && mark >= x && mark < x + term_width(text)))
            continue;
        free_x =
            x + term_text(ui->term, c.y - 1, x, room < 8 ? room : 8, text, ui_style(ui, ROLE_DIM)) +
            1;
    }
    draw_excluded(ui, pane, panel, v, glyph);
    if (cursor >= 0)
        term_char(ui->term, c.y - 1, mark, 0x25BE, ui_style(ui, ROLE_KEY));
}

/* "nnz 660 7.16%", "740 keys marked": marked keys are no share of what is read. */
static void count_words(const Panel *panel, const Grid *g, double whole, Text *out)
{
    char count[32];

    format_count(g->count, count, sizeof(count));
    if (panel->view->found)
        text_addf(out, "%s keys marked", count);
    else
        text_addf(out, "%s %s %.3g%%", panel->view->kind == VIEW_HOPS ? "reached" : "nnz", count,
                  whole > 0 ? 100 * g->count / whole : 0);
}

/* Digits that tell a fraction from a whole number: "1.7", "1.03", "10.2". */
static int cell_digits(double entries)
{
    double tenth = round(entries * 10) / 10;
    bool   whole = fabs(tenth - round(tenth)) < 0.05;

    return entries < 10 && (!whole || fabs(entries - round(entries)) < 1e-9) ? 2 : 3;
}

/* "1.7x3.2": the mean, as one cell may have an entry more than the next. */
static void cell_words(const Grid *g, Text *out)
{
    double sides[] = { (double)(g->region.col1 - g->region.col0) / (double)g->cols,
                       (double)(g->region.row1 - g->region.row0) / (double)g->rows };

    for (int i = 0; i < 2; i++)
        text_addf(out, sides[i] < 100 ? "%s%.*g" : "%s%.*f", i ? "x" : "",
                  sides[i] < 100 ? cell_digits(sides[i]) : 0, fmax(sides[i], 1));
}

/* The caption gives the count, the density, the pairs per cell and the pooling: without them a
 * picture with many pairs per cell means nothing. Each pane has its own range. */
static void caption_text(const Panel *panel, const Grid *g, int tight, Text *out)
{
    double height = (double)(g->region.row1 - g->region.row0);
    double width = (double)(g->region.col1 - g->region.col0);
    bool   schedule = panel_shows_schedule(panel);
    bool   majority = (panel->view->kind == VIEW_BUCKETS && !panel->minus) || schedule;
    bool   named = majority && panel->view->categories && g->count > 0 && tight < 3;
    bool   single = (double)g->rows >= height && (double)g->cols >= width;
    bool   causal;
    double whole = panel_whole(panel, g, &causal), lo, hi;

    if (schedule)
        text_addf(out, "%.3g%% idle", 100 * (1 - g->count / (height * width)));
    else if (majority && !panel->view->categories)
        text_addf(out, "%.0f to %.0f", g->value_min, g->value_max);
    else if (named)
        categories_text(panel, g, out);
    else
        count_words(panel, g, whole, out);
    if (causal && !tight && !panel->view->found)
        text_add(out, " of j<=i");
    if (tight < 2) { /* the line below the panes shows the zoom */
        text_add(out, tight ? " " : "  cell ");
        cell_words(g, out);
        text_add(out, tight ? "" : " ");
    }
    if (!(named && single && tight == 2)) /* the legend shows names then */
        text_addf(out, " %s", majority ? "majority" : pool_name(panel->pool));
    if (tight < 3 && pane_range(panel, g, &lo, &hi)) {
        int digits = range_digits(lo, hi) - (tight ? 1 : 0);

        text_addf(out, tight ? " %.*g..%.*g" : ", %.*g..%.*g", digits, lo, digits, hi);
    }
    if (panel->view->summary && !panel->minus && panel->plane < view_planes(panel->view))
        text_addf(out, "  %s", panel->view->summary[panel->plane]);
    if (panel->view->found && !isnan(panel->view->found->share[panel->plane]))
        text_addf(out, tight ? " %.4g%% found" : "  %.1f%% found",
                  100 * panel->view->found->share[panel->plane]);
    if (g->sampled)
        text_addf(out, "  sampled %.2g%%", 100 * g->sampled_share);
    if (g->odd_count > 0)
        text_addf(out, "  %lld NaN or infinite", (long long)g->odd_count);
}

/* The pane's own values, whatever scale it shares. */
static void draw_caption(Ui *ui, const Pane *pane, Panel panel)
{
    Area area = pane->area;
    Text caption = { 0 };
    int  y = area.y + area.h - 2 - pane_cost_lines(ui, pane), width = area.w - 4;

    if (pane->problem[0] || pane->drawing.problem[0]) {
        term_text(ui->term, y, area.x + 2, width,
                  pane->problem[0] ? pane->problem : pane->drawing.problem,
                  ui_style(ui, ROLE_ERROR));
        return;
    }
    if (!pane->drawing.grid.cells)
        return;
    if (pane_scale_stand(pane) == SCALE_SHARED)
        panel.lo = panel.hi = 0;
    caption_text(&panel, &pane->drawing.grid, 0, &caption);
    if (panel.slot_group_count > 1 && panel.row_order && panel.col_order &&
        ui->term->colours > TERM_MONO)
        text_addf(&caption, "  lighter: own %s",
                  run_view(pane->result->run, "chunks") ? "chunk" : "group");
    for (int tight = 1; tight < 4 && term_width(text_str(&caption)) > width; tight++) {
        text_clear(&caption);
        caption_text(&panel, &pane->drawing.grid, tight, &caption);
        width += tight == 1; /* up to the frame */
    }
    term_text(ui->term, y, area.x + 2, width, text_str(&caption), ui_style(ui, ROLE_DIM));
    text_free(&caption);
}

/* Names of the axes where they meet: as far as there is room by words, if letters are the same. */
static void draw_corner(Ui *ui, const Pane *pane, const View *view)
{
    int       room = pane->canvas.x - pane->area.x - 1;
    AxisNames names = axis_names(view);
    bool      fits = term_width(names.rows) + term_width(names.cols) + 3 <= room;

    term_textf(ui->term, pane->canvas.y - 1, pane->area.x + 1, room, ui_style(ui, ROLE_DIM),
               "%.*s\xe2\x86\x93 %.*s\xe2\x86\x92", fits ? 15 : 1, names.rows, fits ? 15 : 1,
               names.cols);
}

static void notes_draw(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                       GlyphSize glyph);

static void draw_matrix(Ui *ui, Pane *pane, const Panel *panel, bool focused)
{
    LensView   v = lens_view(&pane->lens, &pane->shape);
    Glyphs     glyphs = glyphs_for(ui->term, ui->glyphs, panel);
    GlyphSize  glyph = glyphs_size(glyphs);
    MatrixLook look = { .theme = ui->term->colours == TERM_MONO ? THEME_MONO : ui->theme,
                        .glyphs = glyphs,
                        .q = pane->lens.q,
                        .k = pane->lens.k,
                        .cross = focused };

    pane->dotted = matrix_draw(ui->term, pane->canvas, panel, &pane->drawing.grid, &v, &look);
    notes_draw(ui, pane, panel, &v, glyph);
    draw_row_axis(ui, pane, panel, &v, glyph);
    draw_col_axis(ui, pane, panel, &v, glyph);
    draw_corner(ui, pane, panel->view);
}

/* The plot of a pane that shows a curve, with a line at the cursor; NULL: it shows a matrix,
 * or the numbers are still being found. */
static Plot *pane_plot(const Panel *panel, const Lens *lens)
{
    ViewCurve curve;
    Plot     *plot;
    int64_t   at;

    if (!panel->plot || !derived_known(panel->view, panel->plane))
        return NULL;
    plot = panel_plot(panel, NULL);
    if (!plot || !plot->count || !view_curve(panel->view, &curve))
        return plot;
    at = curve.by_rows || panel->view->rank < 2 ? lens->k : lens->q;
    if (at < plot->series[0].count)
        plot_guide(plot, "", true, plot->series[0].x[at]);
    return plot;
}

static Style style_of_ink(Ui *ui, int ink)
{
    if (ink >= 0)
        return (Style){ .fg = ink_of(plot_colour(ink, theme_dark(ui->theme)),
                                     plot_colour_256(ink)) };
    return ui_style(ui, ink == PLOT_INK_TEXT ? ROLE_TEXT : ROLE_DIM);
}

void plot_draw(Ui *ui, const Plot *plot, Area area)
{
    PlotCells cells;
    Error     err = ERROR_INIT;

    if (!plot_cells(plot, area.w, area.h, ui->term->utf8, &cells, &err))
        return;
    for (int i = 0; i < cells.width * cells.height; i++) {
        int y = i / cells.width, x = i % cells.width;

        if (cells.cells[i].ch != ' ' && y < area.h && x < area.w)
            term_char(ui->term, area.y + y, area.x + x, cells.cells[i].ch,
                      style_of_ink(ui, cells.cells[i].ink));
    }
    plot_cells_free(&cells);
}

/* "at 5: singular value 0.04, share 0.93": the points under the cursor. */
static void points_text(const Plot *plot, const Panel *panel, const Lens *lens, Text *out)
{
    ViewCurve curve;
    int64_t   at = view_curve(panel->view, &curve) && !curve.by_rows && panel->view->rank >= 2
                       ? lens->q
                       : lens->k;
    char      number[32];

    for (int k = 0; k < plot->count && at < plot->series[k].count; k++) {
        const PlotSeries *s = &plot->series[k];

        plot_number(&plot->x, s->x[at], number, sizeof(number));
        if (k == 0)
            text_addf(out, "%s %s:", plot->x.name, number);
        plot_number(&plot->y, s->y[at], number, sizeof(number));
        text_addf(out, "%s %s %s", k ? "," : "", s->name, number);
    }
}

static void draw_plot(Ui *ui, const Pane *pane, const Panel *panel)
{
    Area  a = pane->area;
    int   cost = pane_cost_lines(ui, pane);
    Area  inside = { a.y + 1, a.x + 1, a.h - 3 - cost, a.w - 2 };
    Plot *plot = pane_plot(panel, &pane->lens);
    Text  words = { 0 };

    if (plot) {
        plot_draw(ui, plot, inside);
        if (plot->binned) {
            char caption[PLOT_CAPTION];

            plot_caption(plot, true, caption, sizeof(caption));
            text_add(&words, caption);
        } else {
            points_text(plot, panel, &pane->lens, &words);
        }
    } else if (pane->drawing.problem[0]) {
        text_add(&words, pane->drawing.problem);
    } else {
        text_add(&words, "finding the singular values\xe2\x80\xa6");
    }
    term_text(ui->term, a.y + a.h - 2 - cost, a.x + 2, a.w - 4, text_str(&words),
              ui_style(ui, ROLE_DIM));
    text_free(&words);
    plot_free(plot);
}

/* Shows what the running stage does while the user waits. */
static void running_text(const Pane *pane, Text *out)
{
    const char      *stage = job_stage(pane->job);
    const Mechanism *m = mechanism_find(pane->request.mechanism);

    text_addf(out, "running %s\xe2\x80\xa6", stage);
    for (const StageNote *note = m ? m->notes : NULL; note && note->stage; note++)
        if (!strcmp(note->stage, stage) && note->note)
            text_addf(out, "\n\n%s", note->note);
}

static void draw_waiting(Ui *ui, const Pane *pane)
{
    Area inside = { pane->area.y + 2, pane->area.x + 3, pane->area.h - 4, pane->area.w - 6 };
    Text out = { 0 };

    if (pane->problem[0])
        text_addf(&out, "%s\n\nr runs it again, p edits the parameters, x closes the pane.",
                  pane->problem);
    else if (pane->ask)
        text_addf(&out, "%s needs a parameter: p, then type its value and Enter.",
                  pane->request.mechanism);
    else if (pane->job)
        running_text(pane, &out);
    else if (pane->result && !pane_view(pane))
        text_add(&out, "This mechanism has no matrix to show; its numbers are on screen 4.");
    term_paragraph(ui->term, inside, text_str(&out),
                   ui_style(ui, pane->problem[0] ? ROLE_ERROR : ROLE_DIM));
    text_free(&out);
}

#define WARNING_LEAST 24 /* columns in which the beginning of a warning says something */

/* A sign in the frame's corner where the run warned, and the warning in the lower edge, as far as
 * there is room after `used` columns; the inspector and :warnings have all of it. */
static void draw_warning(Ui *ui, const Pane *pane, int used)
{
    const char *lines = text_str(&pane->result->run->warnings);
    Area        a = pane->area;
    int         room = a.w - 4 - used;
    Text        line = { 0 };

    if (result_head_warning(pane->result, pane->spec.head, &lines, &line)) {
        term_char(ui->term, a.y, a.x + a.w - 2, '!', ui_style(ui, ROLE_WARN));
        if (room >= WARNING_LEAST)
            term_textf(ui->term, a.y + a.h - 1, a.x + 2 + used, room, ui_style(ui, ROLE_WARN),
                       " ! %s ", text_str(&line));
    }
    text_free(&line);
}

/* Names of an origin that are tried for the room there is: all, some, one. */
static const int names_tried[] = { RUN_MAX_TENSORS, 4, 2, 1 };

/* In the lower edge of the frame, so that it takes no line: where the tensors are from that
 * the picture was made with; of a difference those of both. */
static void draw_origins(Ui *ui, const Pane *pane)
{
    const Run *runs[2] = { pane->result ? pane->result->run : NULL };
    Pane      *first = &ui->compare.panes[0];
    Area       a = pane->area;
    Text       words = { 0 };
    int        count = 1, used = 0;

    if (!runs[0] || a.w < 12)
        return;
    if (pane_differs(ui, pane) && first->result && first != pane)
        runs[count++] = first->result->run;
    for (size_t i = 0; i < sizeof(names_tried) / sizeof(*names_tried); i++) {
        text_clear(&words);
        origins_of_runs(runs, count, names_tried[i], &words);
        if (term_width(text_str(&words)) <= a.w - 6)
            break;
    }
    if (words.length)
        used = term_textf(ui->term, a.y + a.h - 1, a.x + 2, a.w - 4, ui_style(ui, ROLE_DIM),
                          " %s ", text_str(&words));
    text_free(&words);
    draw_warning(ui, pane, used);
}

void pane_want_drawing(Ui *ui, Pane *pane)
{
    Panel       panel;
    LensView    view;
    GridRequest request;
    Pane       *first = &ui->compare.panes[0];

    if (pane->canvas.h < 1 || pane->canvas.w < 1 || !pane_panel(ui, pane, &panel))
        return;
    view = lens_view(&pane->lens, &pane->shape);
    request = (GridRequest){
        .view = panel.view,
        .minus = panel.minus,
        .components = panel.components,
        .plane = panel.plane,
        .region = lens_region(&view),
        .rows = view.row.cells,
        .cols = view.col.cells,
        .row_order = panel.row_order,
        .col_order = panel.col_order,
        .excludes = panel.excludes,
        .excluded = panel.excluded,
        .keeps_entries = true,
    };
    drawing_want(&ui->draughtsman, &pane->drawing, &request, pane->result,
                 panel.minus ? first->result : NULL);
}

void pane_draw(Ui *ui, Pane *pane, int number, bool focused)
{
    char  title[160];
    Panel panel;

    pane_title(ui, pane, number, title, sizeof(title));
    term_frame(ui->term, pane->area, title, focused,
               ui_style(ui, focused ? ROLE_FOCUS : ROLE_FRAME),
               ui_style(ui, focused ? ROLE_TITLE : ROLE_TEXT));
    draw_origins(ui, pane);
    if (pane_cost_lines(ui, pane))
        cost_line(ui, pane, (Area){ pane->area.y + pane->area.h - 2, pane->area.x + 2, 1,
                                    pane->area.w - 4 });
    if (!pane->canvas.h || !pane_panel(ui, pane, &panel)) {
        draw_waiting(ui, pane);
        return;
    }
    if (panel.plot) {
        draw_plot(ui, pane, &panel);
        return;
    }
    draw_matrix(ui, pane, &panel, focused);
    strips_draw(ui, pane);
    loads_draw(ui, pane, &panel);
    draw_caption(ui, pane, panel);
}

/* Marked cells of a pane and their words, over its matrix. */

/* Character at a pixel of the canvas. */
typedef struct Spot {
    int y, x, h, w;
} Spot;

static Spot spot_of(const Pane *pane, const LensView *v, GlyphSize glyph, Region r)
{
    int top = lens_pixel(&v->row, r.row0), left = lens_pixel(&v->col, r.col0);
    int low = lens_end(&v->row, r.row1 - 1), right = lens_end(&v->col, r.col1 - 1);
    Spot s = { .y = pane->canvas.y + top / glyph.down,
               .x = pane->canvas.x + left / glyph.across * glyph.columns };

    s.h = pane->canvas.y + (low - 1) / glyph.down + 1 - s.y;
    s.w = pane->canvas.x + ((right - 1) / glyph.across + 1) * glyph.columns - s.x;
    s.h = s.y + s.h > pane->canvas.y + pane->canvas.h ? pane->canvas.y + pane->canvas.h - s.y : s.h;
    s.w = s.x + s.w > pane->canvas.x + pane->canvas.w ? pane->canvas.x + pane->canvas.w - s.x : s.w;
    return top >= 0 && left >= 0 && low >= 0 && right >= 0 ? s : (Spot){ .h = 0 };
}

/* Brackets at both ends of each line of it; one character becomes a diamond. */
static void draw_spot(Ui *ui, Spot s)
{
    Style    style = ui_style(ui, ROLE_WARN);
    uint32_t one = ui->term->utf8 ? 0x25C6 : '*';

    style.attr |= ATTR_REVERSE | ATTR_BOLD;
    for (int y = s.y; y < s.y + s.h; y++) {
        bool edge = y == s.y || y == s.y + s.h - 1;

        if (s.w == 1 && edge)
            term_char(ui->term, y, s.x, s.h > 1 ? (ui->term->utf8 ? 0x2502 : '|') : one, style);
        if (s.w > 1) {
            term_char(ui->term, y, s.x, '[', style);
            term_char(ui->term, y, s.x + s.w - 1, ']', style);
        }
    }
}

/* Beside the spot on the side that has room; a row's at its beginning, a column's at its top. */
static void draw_plot_words(Ui *ui, const Pane *pane, Spot s, const char *text)
{
    Area  c = pane->canvas;
    int   wide = utf8_columns(text) + 2, y = s.y + s.h / 2, x = s.x + s.w + 1;
    Style style = ui_style(ui, ROLE_WARN);

    style.attr |= ATTR_REVERSE;
    if (s.h >= c.h - 1)
        y = c.y;
    if (x + wide > c.x + c.w)
        x = s.x - 1 - wide;
    if (x < c.x)
        x = s.w >= c.w - 2 ? c.x + 1 : c.x;
    if (wide > c.w)
        wide = c.w;
    term_textf(ui->term, y, x, wide, style, " %s ", text);
}

/* Marked cells over its matrix. */
static void notes_draw(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                       GlyphSize glyph)
{
    Region sight = lens_region(v);

    for (int i = 0; i < panel->note_count; i++) {
        Region r;
        Spot   s;

        if (!note_region(&panel->notes[i], panel->row_order, panel->col_order, sight, &r))
            continue;
        s = spot_of(pane, v, glyph, r);
        if (s.h <= 0 || s.w <= 0)
            continue;
        draw_spot(ui, s);
        if (*panel->notes[i].text)
            draw_plot_words(ui, pane, s, panel->notes[i].text);
    }
}
