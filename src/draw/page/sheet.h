/* draw/page/sheet.h -- a figure laid out on a page; private to draw.
 *
 * sheet_plan measures texts, lays out and reduces; sheet_draw draws on the canvas. All lengths are
 * pixels, from points and the resolution, so a figure looks the same at any dpi.
 */
#ifndef DRAW_PAGE_SHEET_H
#define DRAW_PAGE_SHEET_H

#include "draw/colour/colour.h"
#include "draw/figure/scene.h"
#include "draw/page/canvas.h"
#include "draw/page/layout.h"
#include "draw/plot/label.h"
#include "draw/text/wrap.h"

#define SHEET_LINE 1.3 /* distance of lines, in font sizes */
#define SHEET_ITEMS 32
#define SHEET_TICKS 16
#define TOKEN_SHARE 0.92 /* size of a token, in cells, at most */
#define SHEET_GRID_MOST 64   /* entries per side up to which a cell grid is drawn */
#define SHEET_TOKENS_MOST 32 /* entries per side up to which tokens are labels */

/* The look of a figure for a medium. */
typedef struct PageTheme {
    const char *name;
    bool        dark;
    Rgb         paper, ink, muted, rule; /* background, text, secondary text, cell grid */
    double      type;      /* scale of letters and lines, 1 on paper */
    double      one, page; /* default width in inches: one panel, several */
    ColourMap   values;    /* replaces the default map */
    Hues        hues;      /* of causes, categories and curves */
} PageTheme;

/* NULL or an unknown name: the first theme, light; see figure_theme_check. */
const PageTheme *page_theme(const char *name);

typedef struct SheetStyle {
    int    dpi;
    const PageTheme *theme;
    Hues   hues;
    bool   dark;
    Rgb    paper, ink, muted, rule; /* background, text, secondary text, cell grid */
    CanvasLetters letters;
    unsigned hides;                 /* HIDE_TITLES, ... */
    bool   one_size;                /* of all letters, as the user chose */
    double head, title, axis, tick, small, legend; /* font sizes */
    double hair, frame;             /* line widths */
    int    tick_length, space;      /* space: the default small distance */
} SheetStyle;

typedef struct SheetPanel {
    bool  row_tokens, col_tokens; /* labels are the tokens */
    bool  apart;                  /* has a bar of its own, as Panel.apart */
    Lines title, caption;
    int   gutter; /* of a plot: the most that its numbers took in a layout; they depend on the
                     height, and the height on them */
} SheetPanel;

typedef struct Sheet {
    const Figure *figure;
    SheetStyle    style;
    int           width;
    bool          free_width; /* no width was requested */
    int           whole;      /* a free width before it follows the cells */
    bool          fill;       /* cells may differ by a pixel, although the width is free */
    int           rows, cols; /* arrangement */
    PanelPlace   *places;     /* owned */
    double        flat;       /* height of plots, of the default */
    Canvas       *canvas; /* owned; a dummy while measuring */
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
/* The canvas of a file format, and the file's bytes once it is drawn. */
CanvasKind sheet_canvas(FigureFormat format);
/* Replaces the canvas by a page of this size. */
bool       sheet_open(Sheet *sheet, CanvasKind kind, int width, int height,
                      const PngOptions *options, Error *err);
/* Makes these pixels those of the page around, if there is one; false: the page is smaller, which
 * the error of sheet_refuse_page says with the advice. */
bool       sheet_on_page(const PngOptions *options, int dpi, int *width, int *height);
bool       sheet_refuse_page(const PngOptions *options, int dpi, int width, int height,
                             const char *advice, Error *err);
bool       sheet_finish(Sheet *sheet, CanvasKind kind, const char *title,
                        const PngOptions *options, Text *bytes, Error *err);
double     sheet_points(const SheetStyle *style, double points);

#define TITLE_LEAST 0.8 /* of its size that a panel's title keeps on one line */

bool sheet_plan(Sheet *sheet, Error *err);
/* Makes the layout of the panels where they are placed, with the words that are known. */
bool sheet_layout(Sheet *sheet, Error *err);
/* Places the panels and makes the layout. */
bool sheet_arrange(Sheet *sheet, Error *err);
/* No frame is too narrow for its numbers, and no word too long. */
bool sheet_is_readable(const Sheet *sheet);
/* Inches that a sheet of this arrangement must be wide so that its matrices are large enough to be
 * seen and no word need be cut; 0: this one is; infinite: far more. */
double sheet_least_width(const Sheet *planned);
void sheet_draw(Sheet *sheet);
void sheet_free(Sheet *sheet);

/* Sets the panel's needs from its words, its labels and, once they are known, its cells and
 * numbers. */
void        sheet_measure(Sheet *sheet, int panel);
const char *sheet_axis_name(const Panel *panel, bool rows);
/* An axis is named once per row and column of panels while the names agree; above a row of panels
 * all columns have names, or none has. */
bool        sheet_names_axis(const Sheet *sheet, int panel, bool rows);

/* One label of an axis: the token or the position shown at index `at`. */
void sheet_label(const Sheet *sheet, int panel, bool rows, int64_t at, char *text, size_t size);
/* Cuts the text to `room`. */
void sheet_fit(Canvas *canvas, const char *text, double font, double room, char *out, size_t size);
/* Breaks the text into at most `most` lines of width `room`. */
void sheet_wrap(Canvas *canvas, const char *text, double font, double room, int most, Lines *out);
/* Height of lines and the small distance beside them; 0: no lines. */
int    sheet_lines_height(const Lines *lines, double font, int space);
/* Pixels across the bars of rows or columns; 0: no bars. */
int    sheet_load_extent(const Sheet *sheet, int panel, bool rows);
/* A plot: width of the numbers beside it, heights of the parts under and over it, and the
 * drawing. */
int  sheet_plot_gutter(const Sheet *sheet, int panel);
int  sheet_plot_below(const Sheet *sheet);
int  sheet_plot_key(const Sheet *sheet, int panel);
/* The key that all plots share, which the legend has once; 0: each plot has its own. */
int    sheet_shared_key(const Sheet *sheet, PlotKeyEntry *out);
/* The sign of a series of that key, and the room it takes. */
double sheet_sign_width(const Sheet *sheet);
void   sheet_sign(Sheet *sheet, const PlotKeyEntry *entry, double x, double middle);
void sheet_plot(Sheet *sheet, int panel);
/* Every entry is a cell of the grid. */
bool   sheet_shows_each(const Grid *grid);
/* The lines between a panel's cells, where they are wide enough; panels of cells about as wide
 * have them together. */
void   sheet_rules(Sheet *sheet, int panel);
/* A frame around the box, outside it. */
void sheet_frame(Sheet *sheet, Box box, Rgb rgb);
/* Writes an axis' name beside a panel, centred and never cut. Where the panel is too low, the name
 * is smaller, then reaches up to the title, then takes two lines. */
void sheet_upright(Sheet *sheet, int panel, const char *name);
/* The marks of cells: a ring inside the edges of a box, a cross in it; some panel has crosses. */
void sheet_ring(Sheet *sheet, double x, double y, double w, double h, double width);
void sheet_cross(Sheet *sheet, double x, double y, double w, double h, double width);
bool sheet_has_crosses(const Sheet *sheet);
/* Height of the legend; `draw` also draws it. */
int  sheet_legend(Sheet *sheet, int x, int y, int width, bool draw);
/* Labelled places of a panel's colour bar, 0..1, and their texts. */
int  sheet_bar_ticks(const Sheet *sheet, int panel, int most, double *places, char (*texts)[24]);
/* The panel's bar stands beside it. Panels with one scale have one bar, beside the last of them in
 * their first row; bare panels have the same one. */
bool sheet_has_bar(const Sheet *sheet, int panel);
/* Steps of the bar for counts of layers; 0: there is none, swatches name them. */
int  sheet_depths(const Sheet *sheet);
void sheet_bar(Sheet *sheet, int panel);
/* Strokes over negative differences in theme print. */
void sheet_hatch(Sheet *sheet, int panel);
/* A hyphen before a number or its exponent becomes a minus sign. */
void sheet_minus(char *text, size_t size);
/* A number becomes a power of ten: 1e-06 as 10⁻⁶, 2e-07 as 2·10⁻⁷; size at least 24. */
void sheet_powers(char *text, size_t size);
/* Numbers within words: "a denominator within 1e-06 of 0" with 10⁻⁶; cut where there is no room. */
void sheet_write_powers(const char *text, char *out, size_t size);
/* "2^20" as "2²⁰"; a text without a power stays. */
void sheet_raise(char *text, size_t size);
/* The bar is of other panels, too. */
bool sheet_bar_shared(const Sheet *sheet, int panel);
/* Second line of a bar's name: "log", "shared", "log, shared", "own scale" beside shared ones; "":
 * there is none. */
const char *sheet_bar_note(const Sheet *sheet, int panel);
/* First line of the name of the bar's numbers. */
void sheet_bar_name(const Sheet *sheet, int panel, char *text, size_t size);

/* ---- strokes, marks and words of a plot ---------------------------------------- */

typedef struct Pens {
    Sheet            *sheet;
    const Plot       *plot;
    const SheetStyle *s;
    LabelBox          box;
    Box               column; /* x and w of the panel */
    PlotAxis          axis;   /* the x axis: the plot's, or extended for words */
    LabelPlaces       places; /* of the words in the field */
    bool              ends;   /* level ceilings have their names behind the field */
} Pens;

double pens_x(const Pens *p, double x);
double pens_y(const Pens *p, double y);
/* Draws nothing if an end has no place. */
void   pens_line(const Pens *p, double x0, double y0, double x1, double y1, double width, Rgb rgb,
                 double alpha);
void   pens_dashes(const Pens *p, double x0, double y0, double x1, double y1, Rgb rgb);
/* Square, diamond and triangle of the first three hues, filled. */
void   pens_solid(const Pens *p, int hue, double x, double y, double size, Rgb rgb);
Rgb    pens_colour(const Pens *p, int hue); /* -1: muted */
double pens_width(const Pens *p, const char *text);
void   pens_text(const Pens *p, double x, double y, const char *text, Rgb rgb);
/* Takes the places of lines and points, which words avoid. */
void   pens_take_points(Pens *p);
/* Draws the mark of a hue with radius r. */
void   pens_mark(const Pens *p, int hue, double x, double y, double r, Rgb rgb);
/* Draws guides and reference lines; later their names, in places that are left. */
void   pens_guides(const Pens *p);
void   pens_name_guides(Pens *p);
/* Names of a roofline's ceilings, before those of points; the room that they take behind the
 * field; 0: none, they stand inside. */
void   pens_name_roofs(Pens *p);
int    sheet_roofs_extent(const Sheet *sheet, const Plot *plot);
/* Names a slanted guide line under or above a place of it that no curve crosses; without such a
 * place it stays without a name. */
void   pens_name_slanted(Pens *p, const PlotSeries *s);
/* Two or more upright guides have names: they stand above the frame, not beside the lines. */
bool   plot_has_flags(const Plot *plot);
/* Draws the key and the row of names above the frame; see sheet_plot_key. */
void   plot_key(const Pens *p, int panel);
/* Writes words beside the points; words without room there stand further off, with a thin line. */
void   pens_labels(Pens *p);

/* Height of the field of a plot with rows. */
int    sheet_rows_height(const Sheet *sheet, const Plot *plot);

#endif
