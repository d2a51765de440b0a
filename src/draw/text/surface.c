/* surface.c -- a figure as text, plain or with colour sequences; see figure.h and panel.h.
 *
 * Panels stand side by side; no line exceeds the requested width. In a given height the matrices
 * shrink, the words do not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/text/panel.h"
#include "draw/text/plot_cells.h"
#include "draw/text/unicode.h"
#include "draw/text/wrap.h"

static void block_free(Block *block)
{
    for (int k = 0; k < block->capacity; k++)
        text_free(&block->lines[k].text);
    free(block->lines);
    *block = (Block){ 0 };
}

static bool block_grow(Block *block)
{
    int   capacity = block->capacity ? 2 * block->capacity : 32;
    Line *lines = realloc(block->lines, (size_t)capacity * sizeof(*lines));

    if (!lines)
        return false;
    memset(lines + block->capacity, 0, (size_t)(capacity - block->capacity) * sizeof(*lines));
    block->lines = lines;
    block->capacity = capacity;
    return true;
}

Line *block_line(Block *block)
{
    if (block->count == block->capacity && !block_grow(block)) {
        block->failed = true;
        return NULL;
    }
    return &block->lines[block->count++];
}

void line_add(Line *line, const char *text)
{
    if (!line)
        return;
    text_add(&line->text, text);
    line->columns += utf8_columns(text);
}

void line_pad(Line *line, int columns)
{
    while (line && line->columns < columns && text_ok(&line->text))
        line_add(line, " ");
}

void block_wrap(Block *block, const char *text, int columns, bool ascii)
{
    WrapRule rule = wrap_columns(columns, ascii);

    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t length = wrap_break(text, &rule);
        char   raw[512], line[512];

        snprintf(raw, sizeof(raw), "%.*s", (int)length, text);
        utf8_fit(raw, columns, ascii, line, sizeof(line));
        line_add(block_line(block), line);
        text += length;
    }
}

static bool same(Rgb a, Rgb b)
{
    return a.r == b.r && a.g == b.g && a.b == b.b;
}

static void pen_colour(Pen *pen, int base, PenColour colour)
{
    if (pen->colours == 24)
        text_addf(&pen->line->text, "\033[%d;2;%d;%d;%dm", base + 8, colour.rgb.r, colour.rgb.g,
                  colour.rgb.b);
    else
        text_addf(&pen->line->text, "\033[%d;5;%dm", base + 8, colour.index256);
}

void pen_put(Pen *pen, const char *glyph, PenColour ink, PenColour paper)
{
    if (!pen->line)
        return;
    if (pen->colours && !paper.set && pen->paper_set) {
        text_add(&pen->line->text, "\033[49m");
        pen->paper_set = false;
    }
    if (pen->colours && paper.set && !(pen->paper_set && same(pen->paper, paper.rgb))) {
        pen_colour(pen, 40, paper);
        pen->paper_set = true;
        pen->paper = paper.rgb;
    }
    if (pen->colours && ink.set && !(pen->ink_set && same(pen->ink, ink.rgb))) {
        pen_colour(pen, 30, ink);
        pen->ink_set = true;
        pen->ink = ink.rgb;
    }
    line_add(pen->line, glyph);
}

void pen_end(Pen *pen)
{
    if (pen->line && (pen->ink_set || pen->paper_set))
        text_add(&pen->line->text, "\033[0m");
    pen->ink_set = pen->paper_set = false;
}

/* ---- a panel that is a plot --------------------------------------------------- */


static void draw_plot_cells(const PlotCells *cells, int colours, Block *out)
{
    Pen pen = { .colours = colours };

    for (int y = 0; y < cells->height; y++) {
        pen.line = block_line(out);
        for (int x = 0; x < cells->width; x++) {
            const PlotCell *cell = &cells->cells[y * cells->width + x];
            PenColour       ink = { .set = cell->ink >= 0 };
            char            glyph[8];

            if (ink.set) {
                ink.rgb = plot_colour(cell->ink, true);
                ink.index256 = plot_colour_256(cell->ink);
            }
            glyph[utf8_encode(cell->ch, glyph)] = '\0';
            pen_put(&pen, glyph, ink, (PenColour){ 0 });
        }
        pen_end(&pen);
    }
}

/* A panel that is a plot; lines: of the plot, 0: a usual height. */
static void text_plot(const Panel *panel, const Plot *plot, int width, int lines,
                      const TextOptions *options, const Lines *title, int title_lines, Block *out)
{
    PlotCells cells;
    Error     err = ERROR_INIT;
    char      caption[PLOT_CAPTION];
    int       height;

    for (int k = 0; k < title->count || (k < 1 && !(options->hides & HIDE_TITLES)); k++)
        line_add(block_line(out), title->count ? title->text[k] : "");
    while (out->count < title_lines && !out->failed)
        block_line(out);
    height = lines ? lines + 1 : plot_cells_lines(plot, width);
    if (!plot_cells(plot, width, height, options->utf8, &cells, &err)) {
        out->failed = true;
        return;
    }
    draw_plot_cells(&cells, options->colours, out);
    plot_cells_free(&cells);
    plot_caption(plot, true, caption, sizeof(caption));
    if (!(options->hides & HIDE_COUNTS))
        block_wrap(out, *panel->caption ? panel->caption : caption, width, !options->utf8);
}

/* ---- the figure ------------------------------------------------------------- */

#define GAP 2          /* columns between panels */
#define NARROWEST 20   /* columns; narrower panels stand below each other */
#define ITEMS 32

typedef struct TextFigure {
    const Figure      *figure;
    const TextOptions *options;
    int                width, rows, cols, panel_width;
    int                margin, gap; /* columns left of all panels, and between them */
    LegendItem         items[ITEMS];
    int                item_count;
    TextPlan          *plans;  /* owned */
    Lines             *titles; /* owned; of the panels */
    Scene              scene;
    Block              body;
} TextFigure;

static int columns_each(const TextFigure *t)
{
    return (t->width - t->margin + t->gap) / t->cols - t->gap;
}

static void arrange_columns(TextFigure *t)
{
    const Figure *f = t->figure;

    t->width = t->options->width > 0 ? t->options->width : 80;
    t->gap = f->panels[0].bare ? 1 : GAP;
    for (int k = 0; k < f->count; k++)
        if (*f->panels[k].side && utf8_columns(f->panels[k].side) >= t->margin)
            t->margin = utf8_columns(f->panels[k].side) + 1;
    figure_arrange(f, &t->rows, &t->cols);
    if (f->cols <= 0 && f->rows <= 0)
        while (t->cols > 1 && columns_each(t) < NARROWEST)
            t->cols--;
    while (t->cols > 1 && columns_each(t) < 1)
        t->cols--;
    t->rows = (f->count + t->cols - 1) / t->cols;
    t->panel_width = columns_each(t);
}

static bool make_titles(TextFigure *t, Error *err)
{
    WrapRule rule = wrap_columns(t->panel_width, !t->options->utf8);

    t->titles = calloc((size_t)t->figure->count, sizeof(*t->titles));
    for (int k = 0; t->titles && k < t->figure->count; k++) {
        unsigned    hides = t->options->hides;
        const char *name = hides & HIDE_TITLES ? "" : t->figure->panels[k].title;
        char        title[192], letter[4];

        snprintf(title, sizeof(title), "%s", name);
        if (t->figure->count > 1 && !t->figure->panels[k].bare && !(hides & HIDE_LETTERS)) {
            panel_letter(k, letter, sizeof(letter));
            snprintf(title, sizeof(title), "(%s)%s%s", letter, *name ? " " : "", name);
        }
        if (!*title && (t->figure->panels[k].bare || hides & HIDE_TITLES))
            continue;
        if (!wrap_title(title, &rule, &t->titles[k]))
            wrap_title_cut(title, &rule, &t->titles[k]);
    }
    return t->titles || error_set(err, ERR_NOMEM, "a figure as text: out of memory");
}

/* Lines of the longest title among panels first to last - 1. */
static int title_lines(const TextFigure *t, int first, int last)
{
    int most = 1;

    for (int k = first; k < last && k < t->figure->count; k++)
        most = t->titles[k].count > most ? t->titles[k].count : most;
    return most;
}

static int wrapped_lines(const TextFigure *t, const char *text)
{
    Block block = { 0 };
    int   count;

    block_wrap(&block, text, t->width, !t->options->utf8);
    count = block.count;
    block_free(&block);
    return count;
}

/* Lines for each matrix; 0: as many as it takes. */
static int matrix_lines(const TextFigure *t)
{
    int left = t->options->height, overhead = 0;

    if (left <= 0)
        return 0;
    left -= wrapped_lines(t, t->figure->title) + wrapped_lines(t, t->figure->caption) +
            t->figure->legend + (t->rows - 1);
    for (int k = 0; k < t->figure->count; k++) {
        int own = text_overhead(&t->figure->panels[k]);

        overhead = own > overhead ? own : overhead;
    }
    left = left / t->rows - overhead - title_lines(t, 0, t->figure->count);
    return left > 1 ? left : 1;
}

static int causes(const TextFigure *t)
{
    int count = 0;

    for (int k = 0; k < t->item_count; k++)
        count += strchr("#=*/%+", t->items[k].ascii) != NULL && t->items[k].ascii;
    return count;
}

static bool make_scene(TextFigure *t, Error *err)
{
    int        count = t->figure->count, lines = matrix_lines(t);
    CellCount *cells = calloc((size_t)count, sizeof(*cells));
    bool       ok;

    t->plans = calloc((size_t)count, sizeof(*t->plans));
    for (int k = 0; cells && t->plans && k < count; k++) {
        t->plans[k] = text_plan(&t->figure->panels[k], t->options, t->panel_width, lines,
                                causes(t) > 1);
        cells[k] = t->plans[k].cells;
    }
    ok = cells && t->plans ? scene_make(&t->scene, t->figure, cells, err)
                           : error_set(err, ERR_NOMEM, "a figure as text: out of memory");
    free(cells);
    return ok;
}

/* Draws one row of panels: their blocks side by side. */
static void draw_panel_row(TextFigure *t, int row)
{
    Block *blocks = calloc((size_t)t->cols, sizeof(*blocks));
    int    tallest = 0, first = row * t->cols;

    for (int c = 0; blocks && c < t->cols && first + c < t->figure->count; c++) {
        int k = first + c;

        if (t->scene.plots[k])
            text_plot(&t->scene.panels[k], t->scene.plots[k], t->panel_width, matrix_lines(t),
                      t->options, &t->titles[k], title_lines(t, first, first + t->cols),
                      &blocks[c]);
        else
            text_panel(&t->scene.panels[k], &t->scene.grids[k], &t->plans[k], t->options,
                       &t->titles[k], title_lines(t, first, first + t->cols), &blocks[c]);
        tallest = blocks[c].count > tallest ? blocks[c].count : tallest;
        t->body.failed |= blocks[c].failed;
    }
    for (int at = 0; at < tallest; at++) {
        Line *line = block_line(&t->body);

        if (at == t->titles[first].count)
            line_add(line, t->figure->panels[first].side);
        for (int c = 0; line && c < t->cols; c++) {
            if (at >= blocks[c].count)
                continue;
            line_pad(line, t->margin + c * (t->panel_width + t->gap));
            text_add(&line->text, text_str(&blocks[c].lines[at].text));
            line->columns += blocks[c].lines[at].columns;
        }
    }
    for (int c = 0; blocks && c < t->cols; c++)
        block_free(&blocks[c]);
    t->body.failed |= !blocks;
    free(blocks);
}

static int item_columns(const LegendItem *item)
{
    return 2 + utf8_columns(item->text);
}

static void draw_legend(TextFigure *t)
{
    Pen pen = { .colours = t->options->colours };

    for (int k = 0; k < t->item_count; k++) {
        const LegendItem *item = &t->items[k];
        PenColour         ink = { .set = true, .rgb = item->rgb, .index256 = item->index256 };
        char              letter[2] = { item->ascii, '\0' };

        if (item->page || (item->dot && !t->options->colours))
            continue;
        if (!pen.line || pen.line->columns + 2 + item_columns(item) > t->width)
            pen.line = block_line(&t->body);
        else
            line_add(pen.line, "  ");
        if (!t->options->colours)
            line_add(pen.line, letter);
        else if (item->dot)
            line_add(pen.line, t->options->utf8 ? "\xE2\x80\xA2" : ".");
        else if (item->background)
            line_add(pen.line, t->options->utf8 ? "\xE2\x96\xA1" : ".");
        else if (t->options->utf8)
            pen_put(&pen, "\xE2\x96\xA0", ink, (PenColour){ 0 });
        else
            pen_put(&pen, " ", (PenColour){ 0 }, ink);
        pen_end(&pen);
        line_add(pen.line, " ");
        line_add(pen.line, item->text);
    }
}

static bool finish_text(TextFigure *t, Text *out, Error *err)
{
    bool ok = !t->body.failed;

    for (int k = 0; k < t->body.count; k++) {
        const Text *line = &t->body.lines[k].text;
        size_t      length = line->length;

        ok = ok && text_ok(line);
        while (length > 0 && line->data[length - 1] == ' ')
            length--;
        if (length)
            text_add_bytes(out, line->data, length);
        text_add(out, "\n");
    }
    return (ok && text_ok(out)) || error_set(err, ERR_NOMEM, "a figure as text: out of memory");
}

bool figure_text(const Figure *figure, const TextOptions *options, Text *out, Error *err)
{
    static const TextOptions defaults = { 0 };
    TextFigure               t = { .figure = figure, .options = options ? options : &defaults };
    bool                     ok;

    if (figure->count < 1)
        return error_set(err, ERR_USAGE, "the figure has no panel");
    arrange_columns(&t);
    t.item_count = figure_legend(figure, t.items, ITEMS);
    ok = make_titles(&t, err) && make_scene(&t, err);
    if (ok) {
        t.item_count = scene_legend(&t.scene, true, t.items, ITEMS); /* now of values */
        if (!(t.options->hides & HIDE_TITLES))
            block_wrap(&t.body, figure->title, t.width, !t.options->utf8);
        for (int row = 0; row < t.rows; row++) {
            if (row > 0 && !figure->panels[0].bare)
                block_line(&t.body);
            draw_panel_row(&t, row);
        }
        if (figure->legend)
            draw_legend(&t);
        if (!(t.options->hides & HIDE_CAPTION))
            block_wrap(&t.body, figure->caption, t.width, !t.options->utf8);
        ok = finish_text(&t, out, err);
    }
    block_free(&t.body);
    scene_free(&t.scene);
    free(t.titles);
    free(t.plans);
    return ok;
}
