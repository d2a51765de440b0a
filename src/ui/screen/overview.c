/* overview.c -- the focused pane's view in every layer and head, as small matrices.
 *
 * A row of tiles is a layer; where there is one layer, or heads are ordered by a score, they go on
 * in the next line.  What does not fit scrolls with the choice.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/pane/head_label.h"
#include "ui/shell/actions.h"
#include "ui/state/journal.h"
#include "ui/state/panes.h"

#define TILE_LEAST 8  /* columns of a tile */
#define TILE_USUAL 16
#define TILE_MOST 40

/* Tiles on the screen, with one line above each for its name and one column between. */
typedef struct Wall {
    Area    area;         /* of all tiles */
    int     w, h;         /* of one, without the line above and the column beside it */
    int64_t across, down; /* that fit */
    int64_t rows, cols;   /* of tiles there are */
} Wall;

/* ---- where they stand ------------------------------------------------------------- */

static Wall wall_with(const Ui *ui, int width)
{
    const Overview *o = &ui->overview;
    int64_t         count = o->layers * o->heads;
    Wall            wall = { .area = { 2, 1, ui_whole(ui).h - 3, ui->term->cols - 2 },
                             .w = width, .h = width / 2 };

    wall.across = (wall.area.w + 1) / (wall.w + 1);
    wall.down = wall.area.h / (wall.h + 1);
    wall.down = wall.down > 0 ? wall.down : 1;
    wall.cols = o->layers > 1 ? o->heads : wall.across < count ? wall.across : count;
    wall.rows = (count + wall.cols - 1) / wall.cols;
    return wall;
}

/* The largest tiles of which all fit, else a line of them, else the least. */
static Wall wall_by_layer(const Ui *ui)
{
    for (int width = TILE_MOST; width >= TILE_LEAST; width -= 2) {
        Wall wall = wall_with(ui, width);

        if (wall.cols <= wall.across && wall.rows <= wall.down && wall.h < wall.area.h)
            return wall;
    }
    for (int width = TILE_USUAL; width >= TILE_LEAST; width -= 2) {
        Wall wall = wall_with(ui, width);

        if (wall.cols <= wall.across)
            return wall;
    }
    return wall_with(ui, TILE_LEAST);
}

/* An order by scores fills the lines with tiles of the same size: none is made again. */
static Wall wall_of(const Ui *ui)
{
    const Overview *o = &ui->overview;
    Wall            wall = wall_by_layer(ui);
    int64_t         count = o->layers * o->heads;

    if (o->sorted) {
        wall.cols = min_i64(wall.across, count);
        wall.rows = (count + wall.cols - 1) / wall.cols;
    }
    return wall;
}

/* The first of `count` places of which `fit` are in sight with the chosen one; no room is left
 * empty while places are out of sight. */
static int64_t scroll_to(int64_t first, int64_t chosen, int64_t fit, int64_t count)
{
    first = min_i64(first, chosen);
    first = max_i64(first, chosen - fit + 1);
    return max_i64(min_i64(first, count - fit), 0);
}

/* The place of the chosen tile. */
static int64_t place_of_choice(const Overview *o)
{
    int64_t tile = o->layer * o->heads + o->head, at = 0;

    while (o->order[at] != tile)
        at++;
    return at;
}

static void choose_place(Overview *o, int64_t at)
{
    o->layer = o->order[at] / o->heads;
    o->head = o->order[at] % o->heads;
}

/* The choice stays in sight. */
static void scroll_wall(Overview *o, const Wall *wall)
{
    int64_t at = place_of_choice(o);

    o->top = scroll_to(o->top, at / wall->cols, wall->down, wall->rows);
    o->left = scroll_to(o->left, at % wall->cols, wall->across, wall->cols);
}

/* ---- what they show ----------------------------------------------------------------- */

static LensShape shape_of(const Overview *o, const View *view, Glyphs glyphs)
{
    LensShape shape = { .rows = view_rows(view), .cols = view_cols(view), .height = o->height,
                        .width = o->width, .tall = glyphs_size(glyphs).tall };

    shape.even = shape.rows > 8 && shape.cols > 8 && shape.rows <= 4 * shape.cols &&
                 shape.cols <= 4 * shape.rows;
    return shape;
}

static void drop_tiles(Ui *ui)
{
    tiles_end(&ui->draughtsman, ui->overview.tiles);
    ui->overview.tiles = NULL;
}

static void end_overview(Ui *ui)
{
    drop_tiles(ui);
    free(ui->overview.order);
    ui->overview.order = NULL;
}

/* Of a sorted overview. */
static HeadScore score_of(const Overview *o)
{
    return (HeadScore)(o->sorted - 1);
}

/* Heads without a score yet come last. */
static void order_tiles(Overview *o)
{
    int64_t     count = o->layers * o->heads;
    HeadScores *scores = calloc((size_t)count, sizeof(*scores));

    for (int64_t k = 0; k < count; k++)
        o->order[k] = k;
    for (int64_t k = 0; scores && o->tiles && k < count; k++) {
        const Tile *tile = tiles_at(o->tiles, k / o->heads, k % o->heads);

        if (atomic_load(&tile->scored))
            scores[k] = tile->scores;
    }
    if (scores && o->sorted)
        head_scores_order(scores, (HeadOrder){ .by = score_of(o) }, o->order, count);
    free(scores);
    if (o->leads)
        choose_place(o, 0);
}

/* NaN: there is none, or not yet, or nothing is sorted. */
static double tile_score(const Overview *o, const Tile *tile)
{
    return o->sorted && atomic_load(&tile->scored) && tile->scores.label
               ? head_score(&tile->scores, score_of(o))
               : (double)NAN;
}

/* Starts over when the pane shows something else, or tiles have another size. */
static void want_tiles(Ui *ui, const Pane *pane, const Wall *wall)
{
    Overview    *o = &ui->overview;
    const View  *view = pane_view(pane);
    const Input *input = session_input(ui->session);
    Panel        panel;
    Error        err = ERROR_INIT;
    Lens         lens = { 0 };
    LensShape    shape;
    LensView     sight;
    Glyphs       glyphs;
    int          height, width;

    panel_init(&panel, view, view_components(view), 0, "");
    glyphs = glyphs_for(ui->term, ui->glyphs, &panel);
    matrix_pixels((Area){ .w = wall->w, .h = wall->h }, glyphs, &height, &width);
    if (o->tiles && o->of == pane->result && o->view == view && o->height == height &&
        o->width == width)
        return;
    drop_tiles(ui);
    o->height = height;
    o->width = width;
    o->of = pane->result;
    o->view = view;
    shape = shape_of(o, view, glyphs);
    sight = lens_view(&lens, &shape);
    o->tiles = tiles_start(&ui->draughtsman,
                           &(TilesRequest){ .request = &pane->request, .result = pane->result,
                                            .view = view, .shown = view->name,
                                            .reach = pane->spec.reach,
                                            .round = pane_round(pane),
                                            .spec = session_input_spec(ui->session),
                                            .choice = *session_choice(ui->session),
                                            .layers = o->layers, .heads = o->heads,
                                            .layer = input_layer_index(input),
                                            .rows = sight.row.cells,
                                            .cols = sight.col.cells }, &err);
    if (!o->tiles)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

static void draw_tile(Ui *ui, const Pane *pane, const Tile *tile, Area area)
{
    Lens       lens = { 0 };
    LensShape  shape;
    LensView   view;
    Panel      panel;
    MatrixLook look;

    panel_init(&panel, &tile->view, NULL, 0, "");
    pane_set_looks(pane, &panel);
    look = (MatrixLook){ .theme = ui->term->colours == TERM_MONO ? THEME_MONO : ui->theme,
                         .glyphs = glyphs_for(ui->term, ui->glyphs, &panel), .q = -1, .k = -1 };
    shape = shape_of(&ui->overview, &tile->view, look.glyphs);
    view = lens_view(&lens, &shape);
    matrix_draw(ui->term, area, &panel, &tile->grid, &view, &look);
}

/* Rows are the layers that the file holds, which have numbers of their own. */
static int64_t layer_number(const Ui *ui, int64_t layer)
{
    return input_layer_number(session_input(ui->session), layer);
}

/* What the head does, at the right end of its name's line, where there is room. */
static void draw_label(Ui *ui, Area area, int taken, const Tile *tile)
{
    char  letter[2];
    Style style;

    if (taken + 2 <= area.w && atomic_load(&tile->scored) &&
        head_label_mark(ui, tile->scores.shown, letter, &style))
        term_text(ui->term, area.y - 1, area.x + area.w - 1, 1, letter, style);
}

/* "L3 h5 0.81  P", the open one with a dot before it. */
static void draw_name(Ui *ui, Area area, int64_t layer, int64_t head, bool open,
                      const Tile *tile)
{
    const Overview *o = &ui->overview;
    bool            chosen = layer == o->layer && head == o->head;
    TileState       state = (TileState)atomic_load(&tile->state);
    double          score = tile_score(o, tile);
    char            text[48], value[16] = "";

    if (o->layers > 1)
        snprintf(text, sizeof(text), "%sL%lld h%lld%s", open ? "\xe2\x97\x8f" : "",
                 (long long)layer_number(ui, layer), (long long)head,
                 state == TILE_WAITS ? "\xe2\x80\xa6" : "");
    else
        snprintf(text, sizeof(text), "%shead %lld%s", open ? "\xe2\x97\x8f" : "", (long long)head,
                 state == TILE_WAITS ? "\xe2\x80\xa6" : "");
    if (!isnan(score))
        snprintf(value, sizeof(value), " %.3g", score);
    if (chosen)
        term_fill(ui->term, (Area){ area.y - 1, area.x, 1, area.w }, ' ',
                  ui_style(ui, ROLE_SELECT));
    if (term_width(text) + term_width(value) <= area.w)
        strncat(text, value, sizeof(text) - strlen(text) - 1);
    term_text(ui->term, area.y - 1, area.x, area.w, text,
              ui_style(ui, chosen ? ROLE_SELECT : open ? ROLE_TITLE : ROLE_DIM));
    draw_label(ui, area, term_width(text), tile);
}

static void draw_tile_at(Ui *ui, const Pane *pane, const Wall *wall, int64_t row, int64_t col)
{
    Overview   *o = &ui->overview;
    int64_t     at = (o->top + row) * wall->cols + o->left + col, layer, head;
    Area        area = { wall->area.y + 1 + (int)row * (wall->h + 1),
                         wall->area.x + (int)col * (wall->w + 1), wall->h, wall->w };
    const Tile *tile;
    TileState   state;

    if (o->left + col >= wall->cols || at >= o->layers * o->heads)
        return;
    layer = o->order[at] / o->heads;
    head = o->order[at] % o->heads;
    tile = tiles_at(o->tiles, layer, head);
    state = (TileState)atomic_load(&tile->state);
    draw_name(ui, area, layer, head,
              layer_number(ui, layer) == session_input(ui->session)->layer &&
                  head == pane->spec.head,
              tile);
    if (state == TILE_READY)
        draw_tile(ui, pane, tile, area);
    else if (state == TILE_NONE)
        term_paragraph(ui->term, area, tile->why, ui_style(ui, ROLE_DIM));
}

/* What the picture of the chosen tile shows: ": 0 to 1  max of 6 x 6". */
static void add_picture(const Pane *pane, const Tile *tile, Text *out)
{
    const Run *run = pane->result->run; /* of another layer's, too: shares are of the same */
    char       caption[256] = "";
    Panel      panel;

    panel_init(&panel, &tile->view, NULL, 0, "");
    pane_set_looks(pane, &panel);
    panel.causal = run->causal && run->n == run->m;
    if (!tile->view.found)
        panel_caption(&panel, &tile->grid, caption, sizeof(caption));
    else if (!isnan(tile->share))
        snprintf(caption, sizeof(caption), "%.4g %% of the %lld strongest keys found",
                 100 * tile->share, (long long)tile->found.keys);
    if (tile->grid.value_max > tile->grid.value_min)
        text_addf(out, ": %.3g to %.3g", tile->grid.value_min, tile->grid.value_max);
    text_addf(out, "%s%s", *caption ? "  " : "", caption);
}

/* The end is cut first: what the head does stands before what its picture shows. */
static void choice_text(Ui *ui, const Pane *pane, bool brief, Text *out)
{
    const Overview *o = &ui->overview;
    const Tile     *tile = tiles_at(o->tiles, o->layer, o->head);

    if (o->layers > 1)
        text_addf(out, "layer %lld, ", (long long)layer_number(ui, o->layer));
    text_addf(out, "head %lld", (long long)o->head);
    if (atomic_load(&tile->scored) && tile->scores.label) {
        text_add(out, " (");
        head_label_text(&tile->scores, pane->result->input->q_tokens != NULL, brief, out);
        text_add(out, ")");
    }
    if (!isnan(tile_score(o, tile)))
        text_addf(out, ", %s %.3g", head_score_name(score_of(o)), tile_score(o, tile));
    if (atomic_load(&tile->state) == TILE_READY)
        add_picture(pane, tile, out);
}

/* All about the chosen tile, left of `taken` columns. */
static void draw_choice(Ui *ui, const Pane *pane, int y, int taken)
{
    int  room = ui->term->cols - 4 - taken;
    Text out = { 0 };

    choice_text(ui, pane, false, &out);
    if (term_width(text_str(&out)) > room) {
        text_clear(&out);
        choice_text(ui, pane, true, &out);
    }
    term_text(ui->term, y, 2, room, text_str(&out), ui_style(ui, ROLE_TEXT));
    text_free(&out);
}

#define CHOICE 24 /* columns that are left for the choice's name */

static void add_words(const Ui *ui, Text *out, const char *words)
{
    int width = term_width(text_str(out)) + term_width(words) + 2;

    if (width <= ui->term->cols - CHOICE)
        text_addf(out, "%s%s", out->length ? "  " : "", words);
}

/* "90 of 270..." while tiles are made, "layers 0-5 of 30" where not all are in sight. */
static void add_sight(const Ui *ui, const Wall *wall, Text *out)
{
    const Overview *o = &ui->overview;
    int64_t         ready = tiles_ready(o->tiles), count = o->layers * o->heads;
    char            words[96];

    snprintf(words, sizeof(words), "%lld of %lld\xe2\x80\xa6", (long long)ready,
             (long long)count);
    if (ready < count)
        add_words(ui, out, words);
    snprintf(words, sizeof(words), "%s %lld-%lld of %lld",
             o->layers > 1 && !o->sorted ? "layers" : "lines",
             (long long)o->top, (long long)(o->top + wall->down - 1), (long long)wall->rows);
    if (wall->rows > wall->down)
        add_words(ui, out, words);
    snprintf(words, sizeof(words), "heads %lld-%lld of %lld", (long long)o->left,
             (long long)(o->left + wall->across - 1), (long long)wall->cols);
    if (wall->cols > wall->across)
        add_words(ui, out, words);
}

/* A bar in the frame: the part of `extent` characters that stands for what is in sight. */
static void draw_thumb(Ui *ui, Area frame, bool down, int64_t first, int64_t fit, int64_t count)
{
    int extent = (down ? frame.h : frame.w) - 2;
    int from = (int)(first * extent / count), to = (int)((first + fit) * extent / count);

    for (int at = from; at < to || at == from; at++)
        term_char(ui->term, down ? frame.y + 1 + at : frame.y + frame.h - 1,
                  down ? frame.x + frame.w - 1 : frame.x + 1 + at, 0x2588,
                  ui_style(ui, ROLE_TITLE));
}

/* The labels that heads have, in the frame: below, or above where the bar stands below. */
static void draw_labels(Ui *ui, const Wall *wall, Area frame, int title)
{
    const Overview *o = &ui->overview;
    bool            above = wall->cols > wall->across;
    HeadLabels      which = 0;
    Area            area = { above ? frame.y : frame.y + frame.h - 1, 0, 1,
                             frame.w - 6 - (above ? title : 0) };
    int             width;

    for (int64_t k = 0; k < o->layers * o->heads; k++) {
        const Tile *tile = tiles_at(o->tiles, k / o->heads, k % o->heads);

        if (atomic_load(&tile->scored) && tile->scores.label)
            which |= 1u << head_label_index(tile->scores.shown);
    }
    width = head_label_legend(ui, area, which, false);
    area.x = frame.x + frame.w - 3 - width;
    if (width > 0)
        term_fill(ui->term, (Area){ area.y, area.x - 1, 1, width + 2 }, ' ', (Style){ 0 });
    head_label_legend(ui, area, which, true);
}

static void draw_sight(Ui *ui, const Pane *pane, const Wall *wall, Area frame)
{
    const Overview *o = &ui->overview;
    Text            out = { 0 };

    add_sight(ui, wall, &out);
    if (wall->rows > wall->down)
        draw_thumb(ui, frame, true, o->top, wall->down, wall->rows);
    if (wall->cols > wall->across)
        draw_thumb(ui, frame, false, o->left, wall->across, wall->cols);
    draw_choice(ui, pane, frame.y + frame.h - 2, term_width(text_str(&out)) + 2);
    term_text(ui->term, frame.y + frame.h - 2, frame.w - 2 - term_width(text_str(&out)), frame.w,
              text_str(&out), ui_style(ui, ROLE_DIM));
    text_free(&out);
}

static void overview_draw(Ui *ui, Area screen)
{
    Overview *o = &ui->overview;
    Pane     *pane = panes_focus(ui);
    Area      all = ui_whole(ui);
    Wall      wall = wall_of(ui);
    Text      name = { 0 };
    char      title[200];

    (void)screen;
    term_fill(ui->term, all, ' ', (Style){ 0 });
    if (!pane || !pane->result || !pane_view(pane) || ui->term->rows < 16)
        return;
    if (o->layers > 1)
        text_addf(&name, "%lld layers, ", (long long)o->layers);
    text_addf(&name, "%lld head%s: ", (long long)o->heads, o->heads == 1 ? "" : "s");
    pane_name(pane, &name);
    text_addf(&name, " \xc2\xb7 %s", pane_view(pane)->name);
    if (o->sorted)
        text_addf(&name, " \xc2\xb7 by %s", head_score_name(score_of(o)));
    snprintf(title, sizeof(title), "%s", text_str(&name));
    text_free(&name);
    ui_frame(ui, all, title, true);
    order_tiles(o);
    scroll_wall(o, &wall);
    want_tiles(ui, pane, &wall);
    for (int64_t row = 0; o->tiles && row < wall.down; row++)
        for (int64_t col = 0; col < wall.across; col++)
            draw_tile_at(ui, pane, &wall, row, col);
    if (o->tiles) {
        draw_sight(ui, pane, &wall, all);
        draw_labels(ui, &wall, all, term_width(title));
    }
}

static bool overview_poll(Ui *ui)
{
    Overview *o = &ui->overview;
    int64_t   before = o->ready;

    o->ready = o->tiles ? tiles_ready(o->tiles) + tiles_scored(o->tiles) : 0;
    return o->ready != before;
}

static double overview_deadline(Ui *ui)
{
    const Tiles *tiles = ui->overview.tiles;

    return tiles && !tiles_done(tiles) ? 0.1 : -1;
}

/* ---- actions ------------------------------------------------------------------------- */

static bool is_matrix(const View *view)
{
    ViewCurve curve;

    return view && !view_curve(view, &curve);
}

void action_overview(Ui *ui)
{
    Pane        *pane = panes_focus(ui);
    const Input *input = session_input(ui->session);
    Overview    *o = &ui->overview;

    if (!pane || !is_matrix(pane_view(pane))) {
        ui_say(ui, ROLE_DIM, pane && pane->job ? "it still runs" : "no matrix is shown");
        return;
    }
    end_overview(ui);
    *o = (Overview){ .layers = session_input_spec(ui->session) ? input->layers : 1,
                     .heads = pane_heads(pane), .head = pane->spec.head, .sorted = o->sorted };
    o->layer = o->layers > 1 ? input_layer_index(input) : 0;
    o->head = o->head < o->heads ? o->head : 0;
    o->order = malloc((size_t)(o->layers * o->heads) * sizeof(*o->order));
    if (!o->order)
        return;
    order_tiles(o);
    if (o->layers * o->heads < 2)
        ui_say(ui, ROLE_DIM, "one layer, and this view is the same for every head");
    else
        ui_push(ui, SCREEN_OVERVIEW);
}

static int64_t clamp(int64_t at, int64_t count)
{
    return max_i64(min_i64(at, count - 1), 0);
}

/* Whole lines of tiles; the last one may be shorter. */
static void move_row(Ui *ui, int by)
{
    Overview *o = &ui->overview;
    Wall      wall = wall_of(ui);
    int64_t   at = place_of_choice(o), row = clamp(at / wall.cols + by, wall.rows);

    o->leads = false;
    choose_place(o, clamp(row * wall.cols + at % wall.cols, o->layers * o->heads));
}

static void move_page(Ui *ui, int by)
{
    move_row(ui, by * (int)wall_of(ui).down);
}

/* The next tile, round the end of a line; a larger step ends in its line. */
static void move_column(Ui *ui, int by)
{
    Overview *o = &ui->overview;
    Wall      wall = wall_of(ui);
    int64_t   at = place_of_choice(o), first = at - at % wall.cols;

    if (by == TO_FIRST || by == TO_LAST)
        at = first + clamp(at % wall.cols + by, wall.cols);
    else
        at += by;
    o->leads = false;
    choose_place(o, clamp(at, o->layers * o->heads));
}

/* By layer and head, then by each score, the largest first. */
static void turn_order(Ui *ui, int by)
{
    Overview *o = &ui->overview;

    o->sorted = (o->sorted + by + HEAD_SCORE_COUNT + 1) % (HEAD_SCORE_COUNT + 1);
    o->leads = o->sorted;
    order_tiles(o);
    if (!o->sorted) {
        ui_say(ui, ROLE_DIM, "by layer and head");
        return;
    }
    ui_say(ui, ROLE_DIM, "by %s, largest first", head_score_name(score_of(o)));
}

/* All panes are of one input, so all go to the layer. */
static bool open_layer(Ui *ui, int64_t layer)
{
    InputChoice choice = *session_choice(ui->session);
    Error       err = ERROR_INIT;
    char       *spec = strdup(session_input_spec(ui->session));
    bool        ok;

    choice.layer = layer;
    ok = spec && session_load(ui->session, spec, &choice, &err);
    free(spec);
    if (!ok)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    for (int i = 0; ok && i < ui->compare.count; i++)
        pane_run(ui, &ui->compare.panes[i]);
    return ok;
}

static void overview_go(Ui *ui)
{
    Overview *o = &ui->overview;
    Pane     *pane = panes_focus(ui);
    int64_t   heads = o->heads, before = session_input(ui->session)->layer;
    int64_t   layer = layer_number(ui, o->layer);

    ui_pop(ui);
    drop_tiles(ui);
    if (!pane)
        return;
    history_note(ui);
    if (o->layers > 1 && layer != before && !open_layer(ui, layer)) {
        history_drop(ui);
        return;
    }
    for (int i = 0; i < ui->compare.count; i++) {
        Pane *to = &ui->compare.panes[i];

        if (to == pane || (ui->compare.now.linked && pane_heads(to) == heads))
            to->spec.head = o->head;
    }
    if (o->layers > 1)
        ui_say(ui, ROLE_DIM, "layer %lld, head %lld; u goes back", (long long)layer,
               (long long)o->head);
    else
        ui_say(ui, ROLE_DIM, "head %lld; u goes back", (long long)o->head);
}

/* The command that draws it on a page, to be run. */
static void export_command(Ui *ui)
{
    const Overview *o = &ui->overview;
    Pane           *pane = panes_focus(ui);
    Text            line = { 0 };
    Shot            shot;

    if (!pane)
        return;
    shot_take(ui, pane, &shot);
    if (!shot.count || shot.choices[shot.count - 1].minus) {
        ui_say(ui, ROLE_WARN, "a difference has no overview as a figure");
        return;
    }
    shot.choices[0].spec.head = -1;
    shot.choices[0].spec.sorted = false;
    shot.choices[0].spec.notes[0] = '\0';
    shot.options = (PictureOptions){ .head = -1, .pool = shot.options.pool,
                                     .scale = shot.options.scale, .map = shot.options.map,
                                     .reach = shot.options.reach };
    picture_command(ui->session, shot.choices, 1, &shot.options, &line);
    text_add(&line, " --overview");
    if (o->sorted)
        text_addf(&line, " --sort %s", head_score_name(score_of(o)));
    text_addf(&line, " -o %s-heads.png", pane->request.mechanism);
    ui_prompt(ui, text_str(&line));
    text_free(&line);
}

static const Action own[] = {
    { "overview_go", "Enter", IN_OVERVIEW, "go there",
      "open the chosen layer and head", .run = overview_go },
    { "overview_left", "h Left", IN_OVERVIEW, "=arrows choose", "the head before",
      .run_with = move_column, .value = -1 },
    { "overview_down", "j Down", IN_OVERVIEW, "",
      "the layer below, or the next line of heads", .run_with = move_row, .value = 1 },
    { "overview_up", "k Up", IN_OVERVIEW, "",
      "the layer above, or the line of heads before", .run_with = move_row, .value = -1 },
    { "overview_right", "l Right", IN_OVERVIEW, "", "the next head",
      .run_with = move_column, .value = 1 },
    { "overview_page_up", "PgUp C-u", IN_OVERVIEW, "", "a page of layers up",
      .run_with = move_page, .value = -1 },
    { "overview_page_down", "PgDn C-d", IN_OVERVIEW, "", "a page of layers down",
      .run_with = move_page, .value = 1 },
    { "overview_row_start", "Home", IN_OVERVIEW, "", "first head of the line",
      .run_with = move_column, .value = TO_FIRST },
    { "overview_row_end", "End", IN_OVERVIEW, "", "last head of the line",
      .run_with = move_column, .value = TO_LAST },
    { "overview_first", "g", IN_OVERVIEW, "", "first layer, or first line of heads",
      .run_with = move_row, .value = TO_FIRST },
    { "overview_last", "G", IN_OVERVIEW, "", "last layer, or last line of heads",
      .run_with = move_row, .value = TO_LAST },
    { "overview_order", "o", IN_OVERVIEW, "order",
      "by layer and head, or by a score of heads: previous, self, first, next, entropy, distance, "
      "near (a local head), induction, offset (a fixed number of tokens back)",
      .run_with = turn_order, .value = 1 },
    { "overview_export", "e", IN_OVERVIEW, "export",
      "the command that writes all layers and heads as one figure, to be run",
      .run = export_command },
    { "overview_order_back", "O", IN_OVERVIEW, "", "the order before", .run_with = turn_order,
      .value = -1 },
};

const Screen screen_overview = {
    .mode = "HEADS",
    .scope = IN_OVERVIEW,
    .draw = overview_draw,
    .close = drop_tiles,
    .poll = overview_poll,
    .deadline = overview_deadline,
    .end = end_overview,
    SCREEN_ACTIONS(own),
};
