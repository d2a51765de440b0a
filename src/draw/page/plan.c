/* plan.c -- a sheet measured, laid out and reduced; see sheet.h.
 *
 * The number of cells depends on the room, words depend on the cells and on the width of the
 * panels, and the height depends on the words. So the layout is made once without words to find
 * the cells, again with the numbers of the colour bars, and last with the words, which change
 * heights only.
 *
 * Titles of panels have one size for all: the largest in which each is one line, down to four
 * fifths of the default, else the largest in which each has two. A title that is longer still takes
 * more lines; only a word wider than its panel is cut.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/page/sheet.h"
#include "draw/text/unicode.h"

#define HEAD_LINES 12 /* of a figure's title, which is cut nowhere */
#define STEPS 4 /* sizes tried for titles */

typedef struct Ruler {
    Canvas *canvas;
    double  font;
} Ruler;

static double ruler_width(void *context, const char *text)
{
    const Ruler *ruler = context;

    return canvas_text_width(ruler->canvas, text, FONT_SANS, ruler->font);
}

static WrapRule rule_of(Ruler *ruler, double room)
{
    return (WrapRule){ .width = ruler_width, .context = ruler, .room = room };
}

void sheet_fit(Canvas *canvas, const char *text, double font, double room, char *out, size_t size)
{
    Ruler    ruler = { canvas, font };
    WrapRule rule = rule_of(&ruler, room);

    wrap_cut(text, &rule, out, size);
}

void sheet_wrap(Canvas *canvas, const char *text, double font, double room, int most, Lines *out)
{
    Ruler    ruler = { canvas, font };
    WrapRule rule = rule_of(&ruler, room);

    wrap_text(text, &rule, most, out);
}

int sheet_lines_height(const Lines *lines, double font, int space)
{
    return lines->count ? (int)ceil(lines->count * font * SHEET_LINE) + space : 0;
}

/* A panel's title with its letter. */
static void sheet_title(const Sheet *sheet, int panel, char *text, size_t size)
{
    unsigned    hides = sheet->style.hides;
    const char *title = hides & HIDE_TITLES ? "" : sheet->figure->panels[panel].title;
    char        letter[4];

    panel_letter(panel, letter, sizeof(letter));
    if (sheet->figure->count > 1 && !sheet->figure->panels[panel].bare &&
        !(hides & HIDE_LETTERS) && (*title || hides & HIDE_TITLES))
        snprintf(text, size, "(%s)%s%s", letter, *title ? " " : "", title);
    else
        snprintf(text, size, "%s", title);
}

static bool panel_titles(Sheet *sheet, bool cut)
{
    Ruler ruler = { sheet->canvas, sheet->title_font };
    char  title[160];
    bool  all = true;

    for (int k = 0; k < sheet->figure->count; k++) {
        WrapRule rule = rule_of(&ruler, sheet->layout.panels[k].title.w);
        Lines   *lines = &sheet->panels[k].title;

        lines->count = 0;
        sheet_title(sheet, k, title, sizeof(title));
        if (!*title || wrap_title(title, &rule, lines))
            continue;
        all = false;
        if (cut && !wrap_title_whole(title, &rule, lines))
            wrap_title_cut(title, &rule, lines);
    }
    return all;
}

#define NARROWEST  0.7 /* of the room there is */
#define STEP_ROOM  0.05

static bool is_cut(const Lines *lines)
{
    const char *last = lines->count ? lines->text[lines->count - 1] : "";
    size_t      length = strlen(last);

    return length >= 3 && !strcmp(last + length - 3, "\xE2\x80\xA6");
}

static bool ends_short(const Lines *lines, const WrapRule *rule, double room)
{
    return lines->count > 1 &&
           rule->width(rule->context, lines->text[lines->count - 1]) < WRAP_LAST_LEAST * room;
}

/* Breaks into the fewest lines; if a word or two would stand alone in the last, into lines of more
 * even length. */
static void wrap_evenly(const char *text, WrapRule rule, Lines *out)
{
    double room = rule.room;
    Lines  tried;

    wrap_text(text, &rule, WRAP_LINES, out);
    for (double share = 1 - STEP_ROOM; ends_short(out, &rule, room) && share > NARROWEST;
         share -= STEP_ROOM) {
        rule.room = share * room;
        wrap_text(text, &rule, WRAP_LINES, &tried);
        if (tried.count > out->count || is_cut(&tried))
            return;
        *out = tried;
    }
}

/* A caption of two lines or more begins a new one after the sizes. */
static void wrap_caption(const Panel *panel, const char *text, WrapRule rule, Lines *out)
{
    size_t sizes = strlen(panel->sizes);
    Lines  rest;

    wrap_evenly(text, rule, out);
    if (out->count < 2 || !sizes || strncmp(text, panel->sizes, sizes) != 0 || !text[sizes])
        return;
    wrap_evenly(panel->sizes, rule, out);
    wrap_evenly(text + sizes + strlen("; "), rule, &rest);
    for (int k = 0; k < rest.count && out->count < WRAP_LINES; k++)
        memcpy(out->text[out->count++], rest.text[k], sizeof(rest.text[k]));
}

static void panel_captions(Sheet *sheet)
{
    Ruler ruler = { sheet->canvas, sheet->style.small };
    char  text[PLOT_CAPTION], words[PLOT_CAPTION + 64];

    for (int k = 0; k < sheet->figure->count; k++) {
        double   gap = sheet->cols > 1 ? 2 * sheet->style.space : 0; /* to the next one's words */
        WrapRule rule = rule_of(&ruler, sheet->layout.panels[k].column_w - gap);

        if (sheet->figure->panels[k].bare || sheet->style.hides & HIDE_COUNTS)
            continue;
        snprintf(text, sizeof(text), "%s", sheet->figure->panels[k].caption);
        if (!*text && sheet->scene.plots[k])
            plot_caption(sheet->scene.plots[k], false, text, sizeof(text));
        else if (!*text)
            panel_caption(&sheet->scene.panels[k], &sheet->scene.grids[k], text, sizeof(text));
        sheet_write_powers(text, words, sizeof(words));
        wrap_caption(&sheet->figure->panels[k], words, rule, &sheet->panels[k].caption);
    }
}

static double title_size(const Sheet *sheet, double whole, int step)
{
    return sheet->style.one_size ? whole : whole * (1 - (1 - TITLE_LEAST) * step / (STEPS - 1));
}

/* The largest size in which every panel's title is one line; without one the largest of all. */
static double size_of_lines(const Sheet *sheet, double whole)
{
    for (int step = 0; step < STEPS; step++) {
        double size = title_size(sheet, whole, step);
        bool   all = true;

        for (int k = 0; all && k < sheet->figure->count; k++) {
            char title[160];

            sheet_title(sheet, k, title, sizeof(title));
            all = canvas_text_width(sheet->canvas, title, FONT_SANS, size) <=
                  sheet->layout.panels[k].title.w;
        }
        if (all)
            return size;
    }
    return whole;
}

/* Breaks titles and captions into lines that fit the layout. */
static void sheet_words(Sheet *sheet)
{
    const SheetStyle *s = &sheet->style;
    Ruler             head = { sheet->canvas, s->head }, legend = { sheet->canvas, s->legend };
    WrapRule          title = rule_of(&head, sheet->layout.title.w);
    WrapRule          caption = rule_of(&legend, sheet->layout.caption.w);
    double            whole = sheet->figure->panels[0].bare ? s->tick : s->title;
    double            first = size_of_lines(sheet, whole);
    bool              fits = false;
    char              words[FIGURE_CAPTION + 64];

    for (int k = 0; k < STEPS && !fits; k++) {
        sheet->title_font = fmin(first, title_size(sheet, whole, k));
        fits = panel_titles(sheet, k + 1 == STEPS);
    }
    panel_captions(sheet);
    if (!(s->hides & HIDE_TITLES))
        wrap_text(sheet->figure->title, &title, HEAD_LINES, &sheet->title);
    sheet_write_powers(sheet->figure->caption, words, sizeof(words));
    if (!(s->hides & HIDE_CAPTION))
        wrap_evenly(words, caption, &sheet->caption);
}

/* ---- the layout -------------------------------------------------------------- */

bool sheet_layout(Sheet *sheet, Error *err)
{
    const SheetStyle *s = &sheet->style;
    bool              bare = sheet->figure->panels[0].bare;
    LayoutNeed        need = {
        .width = sheet->width,
        .margin = (int)ceil(sheet_points(s, 3)),
        .gap = (int)ceil(sheet_points(s, bare ? 2 : 9)),
        .flat = sheet->flat,
        .fill = sheet->fill || !sheet->free_width,
        .fine = bare ? (int)ceil(sheet_points(s, 0.9)) : s->dpi >= 150 ? (s->dpi + 75) / 150 : 1,
        .strip = (int)ceil(sheet_points(s, 10)),
        .rows = sheet->rows,
        .cols = sheet->cols,
        .count = sheet->figure->count,
        .panels = sheet->needs,
        .places = sheet->places,
        .title_h = sheet_lines_height(&sheet->title, s->head, s->space),
        .caption_h = sheet_lines_height(&sheet->caption, s->legend, s->space),
    };

    for (int k = 0; k < sheet->figure->count; k++)
        sheet_measure(sheet, k);
    need.footer_h = sheet_legend(sheet, 0, 0, need.width - 2 * need.margin, false);
    if (need.caption_h && !need.footer_h) /* keeps the caption off the panels */
        need.footer_h = 2 * s->space;
    layout_free(&sheet->layout);
    return layout_make(&need, &sheet->layout, err);
}

/* Drops token labels where cells are too small for type. */
static bool drop_small_tokens(Sheet *sheet)
{
    double least = sheet->style.one_size ? sheet->style.tick / TOKEN_SHARE
                                         : sheet_points(&sheet->style, 4.4); /* or unreadable */
    bool   dropped = false;

    for (int k = 0; k < sheet->figure->count; k++) {
        SheetPanel       *panel = &sheet->panels[k];
        const PanelBoxes *boxes = &sheet->layout.panels[k];

        if (panel->row_tokens && boxes->cell_h < least)
            dropped = !(panel->row_tokens = false);
        if (panel->col_tokens && boxes->cell_w < least)
            dropped = !(panel->col_tokens = false);
    }
    return dropped;
}

#define USED_LEAST   0.8 /* of the room that frames use */
#define SHRUNK_LEAST 0.8 /* of its width that a sheet keeps, unless */
#define FRAME_LEAST  1.5 /* inches wide its frames are */

static int widest_frame(const Sheet *sheet)
{
    int widest = 0;

    for (int k = 0; k < sheet->figure->count; k++)
        if (sheet->layout.panels[k].matrix.w > sheet->layout.panels[widest].matrix.w)
            widest = k;
    return widest;
}

/* Whole pixels may leave much of the room empty (512 entries in 900 pixels). Without a requested
 * width, the sheet grows to the next whole pixel if it stays near a column's width, else shrinks
 * to what is used, else its cells differ by a pixel. */
static bool adjust_width(Sheet *sheet)
{
    const PanelBoxes *widest = &sheet->layout.panels[widest_frame(sheet)];
    int used = widest->matrix.w, limit = (int)sheet_points(&sheet->style, 72 * 4.6);
    int grown = (int)widest->cols * (widest->cell_w + 1) - sheet->layout.room;
    int less = (sheet->layout.room - used) * sheet->cols;

    if (!sheet->free_width || used >= USED_LEAST * sheet->layout.room)
        return false;
    if (sheet->cols == 1 && sheet->width + grown <= limit)
        sheet->width += grown;
    else if (sheet->width - less >= SHRUNK_LEAST * sheet->width ||
             used >= sheet_points(&sheet->style, 72 * FRAME_LEAST))
        sheet->width -= less;
    else
        sheet->fill = true;
    return true;
}

/* Of all panels: their cells, and the pixels across a cell of those that show each entry. */
typedef struct Shown {
    int64_t cells, pixels;
} Shown;

static Shown shown_by(const Sheet *sheet)
{
    Shown sum = { 0 };

    for (int k = 0; k < sheet->figure->count; k++) {
        const PanelBoxes *b = &sheet->layout.panels[k];

        sum.cells += b->cols;
        sum.pixels += b->cols == sheet->needs[k].cols ? b->cell_w : 0;
    }
    return sum;
}

static bool shows_less(const Sheet *sheet, Shown before)
{
    Shown now = shown_by(sheet);

    return now.cells < before.cells || now.pixels < before.pixels;
}

/* A layout of a free width that shows as much, up to `most` pixels wide: bars and even distances
 * take from the room, not from the cells. */
static bool layout_with_cells(Sheet *sheet, Shown before, int most, Error *err)
{
    bool ok = sheet_layout(sheet, err);

    while (ok && sheet->free_width && shows_less(sheet, before) &&
           sheet->width + sheet->cols <= most) {
        sheet->width += sheet->cols;
        ok = sheet_layout(sheet, err);
    }
    if (!ok || sheet->layout.panels[widest_frame(sheet)].matrix.w >=
                   USED_LEAST * sheet->layout.room)
        return ok;
    sheet->fill = true; /* as wide as it was, then */
    sheet->width = sheet->width > sheet->whole ? sheet->width : sheet->whole;
    return sheet_layout(sheet, err);
}

static bool settle_width(Sheet *sheet, Error *err)
{
    Shown before = shown_by(sheet);
    int   most = sheet->width;

    sheet->whole = most;
    return !adjust_width(sheet) ||
           layout_with_cells(sheet, before, sheet->width > most ? sheet->width : most, err);
}

/* Applies the theme's map unless the user chose one; no map begins with the paper's colour then. */
static void apply_theme(Scene *scene, const PageTheme *theme)
{
    for (int k = 0; k < scene->count; k++) {
        Panel *panel = &scene->panels[k];

        if (!panel->map_given && panel->map == MAP_VIRIDIS)
            panel->map = theme->values;
        panel->hues = theme->hues;
    }
    scene_share_greys(scene);
}

/* Names of the program are words on a page: "memory_plain" as "memory plain". */
static void plain_names(Plot *plot)
{
    for (int k = 0; k < plot->count; k++) {
        for (char *at = plot->series[k].name; (at = strchr(at, '_')); at++)
            *at = ' ';
        plot_raise(plot->series[k].name);
    }
}

static bool reduce(Sheet *sheet, Error *err)
{
    int        count = sheet->figure->count;
    CellCount *cells = calloc((size_t)(count > 0 ? count : 1), sizeof(*cells));
    bool       ok;

    for (int k = 0; cells && k < count; k++)
        cells[k] = (CellCount){ sheet->layout.panels[k].rows, sheet->layout.panels[k].cols };
    ok = cells ? scene_make(&sheet->scene, sheet->figure, cells, err)
               : error_set(err, ERR_NOMEM, "drawing a figure: out of memory");
    for (int k = 0; ok && k < sheet->scene.count; k++)
        if (sheet->scene.plots[k])
            plain_names(sheet->scene.plots[k]);
    if (ok) {
        apply_theme(&sheet->scene, sheet->style.theme);
        scene_tell_kinds(&sheet->scene);
    }
    free(cells);
    return ok;
}

/* Bars of panels that the values set apart; true: there are others than the layout has room for. */
static bool add_own_bars(Sheet *sheet)
{
    bool more = false;

    for (int k = 0; k < sheet->scene.count; k++) {
        bool apart = sheet->scene.panels[k].apart;

        more = more || apart != sheet->panels[k].apart;
        sheet->panels[k].apart = apart;
    }
    return more;
}

/* Cells, and which panels have bars, depend on each other. */
static bool reduce_with_bars(Sheet *sheet, Error *err)
{
    Shown before = shown_by(sheet);
    int   page = (int)lround(sheet->style.theme->page * sheet->style.dpi);

    if (!reduce(sheet, err))
        return false;
    if (!add_own_bars(sheet))
        return true;
    scene_free(&sheet->scene);
    if (!layout_with_cells(sheet, before, page > sheet->width ? page : sheet->width, err) ||
        !reduce(sheet, err))
        return false;
    add_own_bars(sheet);
    return true;
}

/* Twice: the lines of a plot's key depend on the width that its numbers leave. */
static bool settle_layout(Sheet *sheet, Error *err)
{
    return sheet_layout(sheet, err) && sheet_layout(sheet, err);
}

#define FLAT_LEAST 0.6 /* of their default height that plots keep */
#define FLAT_STEP  0.1

/* Plots get lower where the figure would be higher than a page, and that makes it fit; a slide has
 * larger letters and no page. */
static bool fit_page(Sheet *sheet, Error *err)
{
    double page = FIGURE_PAGE_HIGH * sheet->style.dpi;
    bool   ok = true, plots = false;

    for (int k = 0; k < sheet->figure->count; k++)
        plots = plots || sheet->figure->panels[k].plot;
    if (!plots || sheet->style.theme->type > 1)
        return true;
    while (ok && sheet->layout.height > page && sheet->flat > FLAT_LEAST + 1e-6) {
        sheet->flat -= FLAT_STEP;
        ok = settle_layout(sheet, err);
    }
    if (ok && sheet->layout.height > page) {
        sheet->flat = 1;
        ok = settle_layout(sheet, err);
    }
    return ok;
}

/* Counts of layers that a bar shows are left out. */
static void make_legend(Sheet *sheet)
{
    int all = scene_legend(&sheet->scene, sheet->style.dark, sheet->items, SHEET_ITEMS);

    for (int k = 0; k < all; k++)
        if (!sheet->items[k].depth || !sheet_depths(sheet)) {
            LegendItem item = sheet->items[k];

            sheet_write_powers(sheet->items[k].text, item.text, sizeof(item.text));
            sheet->items[sheet->item_count++] = item;
        }
}

/* Everything before the values are looked at; like: a sheet of these panels with other sizes, or
 * NULL. */
static bool begin(Sheet *sheet, const Sheet *like, Error *err)
{
    const Figure *f = sheet->figure;
    size_t        count = (size_t)(f->count > 0 ? f->count : 1);

    sheet->cols = 1; /* until the panels are known */
    sheet->flat = 1;
    sheet->needs = calloc(count, sizeof(*sheet->needs));
    sheet->panels = calloc(count, sizeof(*sheet->panels));
    sheet->places = calloc(count, sizeof(*sheet->places));
    sheet->canvas = canvas_new(CANVAS_PIXELS, 1, 1, 72, &sheet->style.letters, NULL, err);
    if (!sheet->canvas)
        return false;
    if (!sheet->needs || !sheet->panels || !sheet->places)
        return error_set(err, ERR_NOMEM, "drawing a figure: out of memory");
    for (int k = 0; k < f->count; k++) {
        Region region = panel_region(&f->panels[k]);

        sheet->panels[k].row_tokens =
            f->panels[k].row_labels && region.row1 - region.row0 <= SHEET_TOKENS_MOST;
        sheet->panels[k].col_tokens =
            f->panels[k].col_labels && region.col1 - region.col0 <= SHEET_TOKENS_MOST;
        sheet->panels[k].apart = like && like->panels[k].apart;
    }
    return sheet_arrange(sheet, err);
}

#define WIDER  0.25 /* inches of a step */
#define WIDEST 20   /* inches that may be of use */

double sheet_least_width(const Sheet *planned)
{
    double inches = (double)planned->width / planned->style.dpi;

    if (sheet_is_readable(planned))
        return 0;
    for (inches = (floor(inches / WIDER) + 1) * WIDER; inches <= WIDEST; inches += WIDER) {
        Sheet wider = { .figure = planned->figure, .style = planned->style,
                        .width = (int)lround(inches * planned->style.dpi) };
        bool  ok = begin(&wider, planned, NULL) && sheet_is_readable(&wider);

        sheet_free(&wider);
        if (ok)
            return inches;
    }
    return HUGE_VAL;
}

bool sheet_plan(Sheet *sheet, Error *err)
{
    if (!begin(sheet, NULL, err) || (drop_small_tokens(sheet) && !sheet_layout(sheet, err)))
        return false;
    if (!settle_width(sheet, err) || !reduce_with_bars(sheet, err))
        return false;
    if (sheet->figure->legend)
        make_legend(sheet);
    if (!sheet_layout(sheet, err))
        return false;
    sheet_words(sheet);
    return settle_layout(sheet, err) && fit_page(sheet, err);
}

void sheet_free(Sheet *sheet)
{
    canvas_free(sheet->canvas);
    layout_free(&sheet->layout);
    scene_free(&sheet->scene);
    free(sheet->needs);
    free(sheet->panels);
    free(sheet->places);
}
