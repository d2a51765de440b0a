/* draw/page/sheet.h -- a figure on its way to a page; private to draw.
 *
 * sheet_plan measures texts, lays out and reduces; sheet_draw puts it on the
 * canvas.  All lengths are pixels; the sizes come from points and the
 * resolution, so a figure looks the same at any dpi.
 */
#ifndef DRAW_PAGE_SHEET_H
#define DRAW_PAGE_SHEET_H

#include "draw/colour/colour.h"
#include "draw/figure/scene.h"
#include "draw/page/canvas.h"
#include "draw/page/layout.h"
#include "draw/text/wrap.h"

#define SHEET_LINE 1.3 /* distance of lines, in font sizes */
#define SHEET_ITEMS 32
#define SHEET_TICKS 16
#define SHEET_GRID_MOST 64   /* entries a side that still get a cell grid */
#define SHEET_TOKENS_MOST 32 /* entries a side that still get token labels */

typedef struct SheetStyle {
    int    dpi;
    const struct PageTheme *theme;
    Hues   hues;
    bool   dark;
    Rgb    paper, ink, muted, rule; /* background, text, secondary text, cell grid */
    double head, title, axis, tick, small, legend; /* font sizes */
    double hair, frame;             /* line widths */
    int    tick_length, space;      /* space: the usual small distance */
} SheetStyle;

typedef struct SheetPanel {
    bool  row_tokens, col_tokens; /* labels of the tokens themselves */
    Lines title, caption;
} SheetPanel;

typedef struct Sheet {
    const Figure *figure;
    SheetStyle    style;
    int           width;
    bool          free_width; /* nobody asked for this width */
    int           rows, cols; /* arrangement */
    Canvas       *canvas; /* owned; a scrap one while measuring */
    Layout        layout;
    Scene         scene;
    PanelNeed    *needs;  /* owned */
    SheetPanel   *panels; /* owned */
    LegendItem    items[SHEET_ITEMS];
    int           item_count;
    Lines         title, caption;
    double        title_font; /* of the panels; all the same */
} Sheet;

SheetStyle sheet_style(const PngOptions *options);
/* What a file of that format is drawn on, and the bytes of the file once it is. */
CanvasKind sheet_canvas(FigureFormat format);
/* A page of that size in place of the canvas there was. */
bool       sheet_open(Sheet *sheet, CanvasKind kind, int width, int height,
                      const PngOptions *options, Error *err);
bool       sheet_finish(Sheet *sheet, CanvasKind kind, const char *title,
                        const PngOptions *options, Text *bytes, Error *err);
double     sheet_points(const SheetStyle *style, double points);

bool sheet_plan(Sheet *sheet, Error *err);
void sheet_draw(Sheet *sheet);
void sheet_free(Sheet *sheet);

/* One label of an axis: the token or the position shown at index `at`. */
void sheet_label(const Sheet *sheet, int panel, bool rows, int64_t at, char *text, size_t size);
/* Cuts the text so that it is at most `room` wide. */
void sheet_fit(Canvas *canvas, const char *text, double font, double room, char *out, size_t size);
/* The text in at most `most` lines, each at most `room` wide. */
void sheet_wrap(Canvas *canvas, const char *text, double font, double room, int most, Lines *out);
/* Height of lines with the small distance beside them; 0: there are none. */
int    sheet_lines_height(const Lines *lines, double font, int space);
/* Pixels that the bars of rows or columns need across; 0: there are none; matrix.c. */
int    sheet_load_extent(const Sheet *sheet, int panel, bool rows);
/* A plot: width of the numbers beside it, heights of what stands under and over it, and
 * all of it drawn; plot.c. */
int  sheet_plot_gutter(const Sheet *sheet, int panel);
int  sheet_plot_below(const Sheet *sheet);
int  sheet_plot_key(const Sheet *sheet, int panel);
void sheet_plot(Sheet *sheet, int panel);
/* The name of the axis beside a panel, in the middle of it and never cut: where the panel is too
 * low smaller, then reaching up to the title, then on two lines. */
void sheet_upright(Sheet *sheet, int panel, const char *name);
/* Height of the legend; draws it too when `draw`. */
int  sheet_legend(Sheet *sheet, int x, int y, int width, bool draw);
/* The labelled places of a value panel's colour bar, 0..1, and their texts. */
int  sheet_bar_ticks(const Panel *panel, int most, double *places, char (*texts)[16]);
void sheet_bar(Sheet *sheet, int panel);
/* What the bar's numbers are. */
const char *sheet_bar_name(const Sheet *sheet, int panel);

/* How a figure looks for where it is shown; private to draw. */

typedef struct PageTheme {
    const char *name;
    bool        dark;
    Rgb         paper, ink, muted, rule; /* background, text, secondary text, cell grid */
    double      type;      /* size of letters and lines, 1 as on paper */
    double      one, page; /* usual width in inches of one panel, of several */
    ColourMap   values;    /* in place of the usual map */
    Hues        hues;      /* of causes, categories and curves */
} PageTheme;

/* NULL: the first, light.  An unknown name is light too; see figure_theme_check. */
const PageTheme *page_theme(const char *name);

#endif
