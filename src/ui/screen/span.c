/* span.c -- the picture of a query: what it sees, laid out on the image.
 *
 * An overlay of the compare screen. Its query is the focused pane's cursor: moving one moves the
 * other.
 */
#include <stdio.h>
#include <string.h>

#include "app/command/command.h"
#include "ui/shell/actions.h"
#include "ui/state/panes.h"

#define NARROW 64 /* columns below which the caption takes two lines */

/* ---- the picture ------------------------------------------------------------ */

static int64_t query_of(const Pane *pane)
{
    int64_t q, k;

    pane_cursor(pane, &q, &k);
    return q;
}

static bool is_current(const Spanning *s, const Pane *pane, const Panel *panel, int height,
                       int width)
{
    return s->grid.cells && s->of == pane->result && s->view == panel->view &&
           s->plane == panel->plane && s->query == query_of(pane) && s->height == height &&
           s->width == width;
}

static void drop_picture(Spanning *s)
{
    grid_free(&s->grid);
    s->grid = (Grid){ 0 };
    result_release(s->of);
    s->of = NULL;
}

/* The panel and its cells for what the pane looks at now; false: see s->problem. */
static bool make_picture(Ui *ui, Pane *pane, Lens *lens, LensShape *shape)
{
    Spanning   *s = &ui->spanning;
    Error       err = ERROR_INIT;
    Panel       panel;
    LensView    view;
    GridRequest request;
    char        query[32];

    if (!pane_panel(ui, pane, &panel))
        return false;
    if (is_current(s, pane, &panel, shape->height, shape->width))
        goto seen;
    drop_picture(s);
    s->arena = s->arena ? s->arena : arena_new();
    if (!s->arena)
        return false;
    arena_reset(s->arena);
    s->view = panel.view;
    s->plane = panel.plane;
    s->query = query_of(pane);
    s->height = shape->height;
    s->width = shape->width;
    snprintf(query, sizeof(query), "%lld", (long long)s->query);
    panel.minus = NULL;
    if (!picture_span(pane->result, query, s->arena, &panel, &err))
        goto failed;
    s->panel = panel;
    *shape = (LensShape){ .rows = view_rows(panel.view), .cols = view_cols(panel.view),
                          .height = shape->height, .width = shape->width, .tall = shape->tall,
                          .even = true };
    view = lens_view(lens, shape);
    request = (GridRequest){ .view = panel.view, .components = panel.components,
                             .region = lens_region(&view), .rows = view.row.cells,
                             .cols = view.col.cells };
    if (!grid_reduce(&request, &s->grid, &err))
        goto failed;
    s->of = result_retain(pane->result); /* a new one would get the address of a freed one */
seen:
    *shape = (LensShape){ .rows = view_rows(s->panel.view), .cols = view_cols(s->panel.view),
                          .height = shape->height, .width = shape->width, .tall = shape->tall,
                          .even = true };
    return true;
failed:
    snprintf(s->problem, sizeof(s->problem), "%.250s", err.text);
    return false;
}

/* ---- drawing ---------------------------------------------------------------- */

static void draw_legend(Ui *ui, const Spanning *s, int y, int x, int limit)
{
    LegendItem items[12];
    Figure     figure = { .panels = (Panel *)(uintptr_t)&s->panel, .count = 1 };
    int        count = figure_legend(&figure, items, 12);

    for (int i = 0; i < count && x < limit - 16; i++) {
        bool letters = !ui->term->utf8 || ui->term->colours < TERM_256;

        term_char(ui->term, y, x, letters ? (uint32_t)items[i].ascii : 0x25A0,
                  (Style){ .fg = letters ? INK_NONE : ink_of(items[i].rgb, items[i].index256) });
        x += 2 + term_text(ui->term, y, x + 2, 20, items[i].text, ui_style(ui, ROLE_TEXT)) + 2;
    }
}

static void draw_picture(Ui *ui, Pane *pane, Area area)
{
    Spanning  *s = &ui->spanning;
    Panel      panel;
    Lens       lens = { 0 };
    int        lines = area.w < NARROW ? 2 : 1;
    Area       canvas = { area.y + 1, area.x + 2, area.h - 3 - lines, area.w - 4 };
    Area       words = { area.y + area.h - 2 - lines, area.x + 2, lines, area.w - 4 };
    Glyphs     glyphs;
    LensShape  shape = { 0 };
    LensView   view;
    MatrixLook look;
    char       caption[256];

    if (!pane_panel(ui, pane, &panel))
        return;
    glyphs = ui->term->colours < TERM_256 ? GLYPHS_ASCII
                                          : glyphs_for(ui->term, ui->glyphs, &panel);
    shape.tall = glyphs_size(glyphs).tall;
    matrix_pixels(canvas, glyphs, &shape.height, &shape.width);
    if (!make_picture(ui, pane, &lens, &shape)) {
        term_paragraph(ui->term, canvas, s->problem, ui_style(ui, ROLE_WARN));
        return;
    }
    view = lens_view(&lens, &shape);
    look = (MatrixLook){ .theme = ui->term->colours == TERM_MONO ? THEME_MONO : ui->theme,
                         .glyphs = glyphs, .q = -1, .k = -1 };
    matrix_draw(ui->term, canvas, &s->panel, &s->grid, &view, &look);
    panel_caption(&s->panel, &s->grid, caption, sizeof(caption));
    while (term_width(caption) > words.w * lines && strrchr(caption, ',')) /* whole statements */
        *strrchr(caption, ',') = '\0';
    term_paragraph(ui->term, words, caption, ui_style(ui, ROLE_TEXT));
    draw_legend(ui, s, area.y + area.h - 2, area.x + 2, area.x + area.w);
}

/* All of the screen, which is cleared, or beside the parameters that are edited. */
static Area picture_area(Ui *ui)
{
    Area all = ui_whole(ui), editor;

    term_fill(ui->term, all, ' ', (Style){ 0 });
    if (!ui_has(ui, SCREEN_PARAMS))
        return all;
    editor = params_area(ui);
    all.x = editor.x ? 0 : editor.w;
    all.w -= editor.w;
    return all;
}

static void span_draw(Ui *ui, Area screen)
{
    Pane *pane = panes_focus(ui);
    char  title[160], name[128] = "";
    Area  area;

    (void)screen;
    if (!pane)
        return;
    area = picture_area(ui);
    if (pane_view(pane))
        pane_title(ui, pane, ui->compare.now.focus + 1, name, sizeof(name));
    snprintf(title, sizeof(title), "what a query sees, on the image: %s", name);
    ui_frame(ui, area, title, true);
    draw_picture(ui, pane, area);
}

static void span_close(Ui *ui)
{
    drop_picture(&ui->spanning);
}

static void span_end(Ui *ui)
{
    drop_picture(&ui->spanning);
    arena_free(ui->spanning.arena);
    ui->spanning.arena = NULL;
}

/* ---- actions ---------------------------------------------------------------- */

/* Why there is no picture; NULL: there is one. */
static const char *obstacle(const Pane *pane, const View *view)
{
    if (strcmp(view->rows, "query") != 0 || strcmp(view->cols, "key") != 0)
        return "this view is not of queries and keys; v takes the next view";
    if (!picture_width(pane->result))
        return "the input is no image, and this mechanism reads it as none";
    return NULL;
}

void action_span(Ui *ui)
{
    Pane       *pane = seen_pane(ui);
    const char *why = pane ? obstacle(pane, pane_view(pane)) : "no matrix is shown";

    if (why) {
        ui_say(ui, ROLE_DIM, "%s", why);
        return;
    }
    drop_picture(&ui->spanning);
    ui->spanning.problem[0] = '\0';
    ui_push(ui, SCREEN_SPAN);
}

static void move_query(Ui *ui, int64_t rows, int64_t cols)
{
    Pane   *pane = panes_focus(ui);
    int64_t width = pane && pane->result ? picture_width(pane->result) : 0, q, k, to;

    if (!width || !pane_view(pane))
        return;
    pane_cursor(pane, &q, &k);
    to = q + rows * width + cols;
    if (to >= 0 && to < view_rows(pane_view(pane)) &&
        (rows || to / width == q / width)) /* does not wrap at the edge of the image */
        go_to_cell(ui, pane, to, k);
}

static void move_row(Ui *ui, int by)
{
    move_query(ui, by, 0);
}

static void move_column(Ui *ui, int by)
{
    move_query(ui, 0, by);
}

static void span_command(Ui *ui)
{
    Pane          *pane = panes_focus(ui);
    PictureOptions o = { .head = pane ? pane->spec.head : 0 };
    PanelChoice    choice;
    Text           line = { 0 };
    char           query[32];

    if (!pane || !pane->result || !pane_view(pane))
        return;
    snprintf(query, sizeof(query), "%lld", (long long)query_of(pane));
    choice = (PanelChoice){ .result = pane->result, .spec = panel_spec(pane_view(pane)->name) };
    o.span = query;
    text_add(&line, "attnscope ");
    picture_command(ui->session, &choice, 1, &o, &line);
    term_copy(ui->term, text_str(&line));
    ui_say(ui, ROLE_GOOD, "copied: %s", text_str(&line));
    text_free(&line);
}

static const Action own[] = {
    { "span_up", "k Up", IN_SPAN, "=arrows move the query", "query one image row up",
      .run_with = move_row, .value = -1 },
    { "span_down", "j Down", IN_SPAN, "", "query one image row down",
      .run_with = move_row, .value = 1 },
    { "span_left", "h Left", IN_SPAN, "", "query one pixel to the left",
      .run_with = move_column, .value = -1 },
    { "span_right", "l Right", IN_SPAN, "", "query one pixel to the right",
      .run_with = move_column, .value = 1 },
    { "span_command", "Y", IN_SPAN, "copy command",
      "send the command line that draws this picture to the clipboard", .run = span_command },
};

const Screen screen_span = { .mode = "IMAGE", .scope = IN_SPAN, .draw = span_draw,
                             .close = span_close, .end = span_end,
                             SCREEN_ACTIONS(own) };
