/* measure.c -- the sizes of what stands around a panel: its needs for the layout; see sheet.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/page/sheet.h"
#include "draw/text/unicode.h"

#define LABEL_SHARE 0.22 /* share of a panel's width for token labels */

double sheet_points(const SheetStyle *style, double points)
{
    return points * style->dpi / 72.0 * style->theme->type;
}

SheetStyle sheet_style(const PngOptions *options)
{
    const PageTheme *theme = page_theme(options->theme);
    SheetStyle       s = { .dpi = options->dpi > 0 ? options->dpi : 300, .theme = theme };

    s.dark = theme->dark;
    s.hues = theme->hues;
    s.paper = theme->paper;
    s.ink = theme->ink;
    s.muted = theme->muted;
    s.rule = theme->rule;
    s.head = sheet_points(&s, 9);
    s.title = sheet_points(&s, 8);
    s.axis = sheet_points(&s, 7);
    s.tick = sheet_points(&s, 6);
    s.small = sheet_points(&s, 5.5);
    s.legend = sheet_points(&s, 6.5);
    s.letters = (CanvasLetters){ options->font, (SvgLetters)options->letters };
    s.hides = options->hides;
    s.one_size = options->size_inch > 0;
    if (s.one_size)
        s.head = s.title = s.axis = s.tick = s.small = s.legend = options->size_inch * s.dpi;
    s.hair = fmax(1, floor(sheet_points(&s, 0.25)));
    s.frame = fmax(1, round(sheet_points(&s, 0.5)));
    s.tick_length = (int)ceil(sheet_points(&s, 1.8));
    s.space = (int)ceil(sheet_points(&s, 2.2));
    return s;
}

void sheet_label(const Sheet *sheet, int panel, bool rows, int64_t at, char *text, size_t size)
{
    const Panel   *p = &sheet->figure->panels[panel];
    Region         region = panel_region(p);
    bool           tokens = rows ? sheet->panels[panel].row_tokens
                                 : sheet->panels[panel].col_tokens;
    const int32_t *order = rows ? p->row_order : p->col_order;

    at += rows ? region.row0 : region.col0;
    if (tokens)
        utf8_token((rows ? p->row_labels : p->col_labels)[order ? order[at] : at], false, text,
                   size);
    else
        snprintf(text, size, "%lld", (long long)(at + panel_first(p, rows)));
}

/* Room of an upright axis name, in font sizes: descenders end before the numbers. */
#define AXIS_NAME 1.5

/* Of a bare panel. */
static int side_extent(const Sheet *sheet, int panel)
{
    const char *side = sheet->figure->panels[panel].side;
    double      wide = canvas_text_width(sheet->canvas, side, FONT_SANS, sheet->style.tick);

    return *side ? (int)ceil(wide) + sheet->style.space : 0;
}

/* Pixels across the labels of one axis. */
static int labels_extent(const Sheet *sheet, int panel, bool rows)
{
    const SheetStyle *s = &sheet->style;
    const PanelNeed  *need = &sheet->needs[panel];
    int64_t           count = rows ? need->rows : need->cols;
    double            widest = 0, most = LABEL_SHARE * sheet->width / sheet->cols;
    bool tokens = rows ? sheet->panels[panel].row_tokens : sheet->panels[panel].col_tokens;
    char text[256];

    if (sheet->figure->panels[panel].bare)
        return rows ? side_extent(sheet, panel) : 0;
    if (s->hides & HIDE_TICKS)
        return 0;
    if (!tokens && !rows)
        return (int)ceil(s->tick) + s->tick_length;
    if (rows && sheet_load_extent(sheet, panel, false)) /* the bars' largest number stands there */
        widest = canvas_text_width(sheet->canvas, "0.00", FONT_SANS, s->small) + s->space;
    for (int64_t at = tokens ? 0 : count - 1; at < count; at++) {
        sheet_label(sheet, panel, rows, at, text, sizeof(text));
        widest = fmax(widest, canvas_text_width(sheet->canvas, text, FONT_SANS, s->tick));
    }
    return (int)ceil(fmin(widest, most)) + s->tick_length + s->space / 2;
}

const char *sheet_axis_name(const Panel *panel, bool rows)
{
    const char *name = rows ? panel->view->rows : panel->view->cols;

    return name ? name : "";
}

static bool is_reordered(const Panel *panel, bool rows)
{
    return (rows ? panel->row_order : panel->col_order) != NULL;
}

/* The panel to the left of this one, or above it; -1: there is none. */
static int neighbour(const Sheet *sheet, int panel, bool left)
{
    PanelPlace at = sheet->places[panel];

    for (int k = panel - 1; k >= 0; k--) {
        PanelPlace own = sheet->places[k];

        if (left ? own.row == at.row && own.col == at.col - 1 && own.level == at.level
                 : own.col == at.col)
            return k;
    }
    return -1;
}

static bool needs_name(const Sheet *sheet, int panel, bool rows)
{
    const Figure *f = sheet->figure;
    int           before = neighbour(sheet, panel, rows);
    const char   *name = sheet_axis_name(&f->panels[panel], rows);

    if (!*name || f->panels[panel].bare || f->panels[panel].plot)
        return false;
    if (before < 0 || f->panels[before].plot)
        return true;
    return strcmp(sheet_axis_name(&f->panels[before], rows), name) != 0 ||
           is_reordered(&f->panels[before], rows) != is_reordered(&f->panels[panel], rows);
}

bool sheet_names_axis(const Sheet *sheet, int panel, bool rows)
{
    PanelPlace at = sheet->places[panel];
    bool       named = needs_name(sheet, panel, rows);

    if (sheet->style.hides & HIDE_AXES || sheet->figure->panels[panel].bare ||
        !*sheet_axis_name(&sheet->figure->panels[panel], rows))
        return false;
    for (int k = 0; !rows && !named && k < sheet->figure->count; k++)
        named = sheet->places[k].row == at.row && sheet->places[k].level == at.level &&
                needs_name(sheet, k, false);
    return named;
}

/* Width of a bar's numbers: seven characters before the values are known, then no more than
 * needed. */
static double bar_numbers(const Sheet *sheet, int panel)
{
    double font = sheet->style.tick, widest = 0, places[SHEET_TICKS];
    double most = canvas_text_width(sheet->canvas, "0.00000", FONT_SANS, font);
    char   texts[SHEET_TICKS][24];
    int    count;

    if (!sheet->scene.count)
        return most;
    count = sheet_bar_ticks(sheet, panel, 6, places, texts);
    for (int k = 0; k < count; k++)
        widest = fmax(widest, canvas_text_width(sheet->canvas, texts[k], FONT_SANS, font));
    return fmin(widest, most);
}

static int bar_extent(const Sheet *sheet, int panel)
{
    const SheetStyle *s = &sheet->style;
    double            name, numbers;
    char              text[80];

    if (!sheet_has_bar(sheet, panel))
        return 0;
    sheet_bar_name(sheet, panel, text, sizeof(text));
    name = canvas_text_width(sheet->canvas, text, FONT_SANS, s->tick);
    name = fmax(name, canvas_text_width(sheet->canvas, sheet_bar_note(sheet, panel), FONT_SANS,
                                        s->tick));
    numbers = sheet_points(s, 5) + s->tick_length + s->space + bar_numbers(sheet, panel);
    return 2 * s->space + (int)ceil(fmax(name, numbers));
}

static int plot_gutter(Sheet *sheet, int k)
{
    int own = sheet_plot_gutter(sheet, k), *most = &sheet->panels[k].gutter;

    if (!sheet->scene.count)
        return own;
    *most = own > *most ? own : *most;
    return *most;
}

static void measure_plot(Sheet *sheet, int k)
{
    const SheetStyle *s = &sheet->style;
    PanelNeed        *need = &sheet->needs[k];
    const Plot       *made = sheet->figure->panels[k].made;

    *need = (PanelNeed){ .plot = true, .rows = 1, .cols = 1 };
    if (made && made->rows)
        need->plot_h = sheet_rows_height(sheet, made);
    need->title_h = sheet_lines_height(&sheet->panels[k].title, sheet->title_font, s->space);
    if (!(made && made->rows) && !(s->hides & HIDE_AXES))
        need->row_axis_w = (int)ceil(s->axis * AXIS_NAME);
    need->row_labels_w = plot_gutter(sheet, k);
    need->col_labels_h = sheet_plot_key(sheet, k);
    need->bar_w = s->space; /* half of the last tick's number */
    if (made)
        need->bar_w += sheet_roofs_extent(sheet, made);
    need->caption_h = sheet_plot_below(sheet) +
                      sheet_lines_height(&sheet->panels[k].caption, s->small, s->space);
}

/* What the name of a bar needs above the matrix. */
static int bar_name_height(const Sheet *sheet, int panel)
{
    const SheetStyle *s = &sheet->style;
    bool              two = *sheet_bar_note(sheet, panel) && !sheet_names_axis(sheet, panel, false);

    return (int)ceil((two ? 2.5 : 1.3) * s->tick) + s->tick_length;
}

static void measure_panel(Sheet *sheet, int k)
{
    const SheetStyle *s = &sheet->style;
    PanelNeed        *need = &sheet->needs[k];
    const Panel      *panel = &sheet->figure->panels[k];
    Region            region = panel_region(panel);

    *need = (PanelNeed){ .rows = region.row1 - region.row0, .cols = region.col1 - region.col0 };
    need->rows = need->rows > 0 ? need->rows : 1;
    need->cols = need->cols > 0 ? need->cols : 1;
    if (sheet->scene.count) {
        need->row_cells = sheet->scene.grids[k].rows;
        need->col_cells = sheet->scene.grids[k].cols;
    }
    need->title_h = sheet_lines_height(&sheet->panels[k].title, sheet->title_font, s->space);
    need->row_axis_w = sheet_names_axis(sheet, k, true) ? (int)ceil(s->axis * AXIS_NAME) : 0;
    need->col_axis_h = sheet_names_axis(sheet, k, false) ? (int)ceil(s->axis * 1.35) : 0;
    need->row_labels_w = labels_extent(sheet, k, true);
    need->col_labels_h = labels_extent(sheet, k, false);
    need->bar_w = bar_extent(sheet, k);
    need->title_clear = panel->bare;
    need->load_h = sheet_load_extent(sheet, k, false);
    need->load_w = sheet_load_extent(sheet, k, true);
    if (need->bar_w && !panel->bare) /* its name stands above */
        need->col_labels_h = need->col_labels_h > bar_name_height(sheet, k)
                                 ? need->col_labels_h
                                 : bar_name_height(sheet, k);
    need->caption_h = sheet_lines_height(&sheet->panels[k].caption, s->small, s->space);
}

void sheet_measure(Sheet *sheet, int panel)
{
    if (sheet->figure->panels[panel].plot)
        measure_plot(sheet, panel);
    else
        measure_panel(sheet, panel);
}
