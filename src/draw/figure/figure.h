/* draw/figure/figure.h -- what is to be shown, free of any device.
 *
 * A Figure is a grid of Panels made from views.  The pane on the screen, the
 * PNG and the test fixture are the same Figure drawn by another surface.  A
 * Figure borrows its views (the runs must outlive it) and owns its texts.
 */
#ifndef DRAW_FIGURE_FIGURE_H
#define DRAW_FIGURE_FIGURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text.h"
#include "draw/colour/colour.h"
#include "draw/grid/annotation.h"
#include "draw/grid/grid.h"
#include "draw/plot/plot.h"

#define PANEL_OVERLAYS 7

/* A curve of another view, in the same plot. */
typedef struct Overlay {
    const View *view;  /* borrowed */
    int64_t     plane;
    char        name[96]; /* before the names of its series */
} Overlay;

typedef struct Panel {
    const View    *view;
    bool           plot;        /* drawn as a curve: ranges and colours of cells mean nothing */
    Plot          *made;        /* the plot itself where no view holds its numbers; settled; the
                                   figure's; NULL: made of the view */
    char           name[96];    /* of its own series where others stand in the plot; "" none */
    Overlay        overlays[PANEL_OVERLAYS]; /* of a plot */
    int            overlay_count;
    const Pattern *components;  /* colour by cause; NULL: by value */
    int64_t        plane;       /* head */
    Region         region;      /* all zero: the whole view */
    Pool           pool;
    Scale          scale;
    ColourMap      map;
    bool           map_given;   /* somebody chose it: no theme changes it */
    Hues           hues;        /* of causes and categories */
    double         lo, hi;      /* value range; lo == hi: from the data */
    const View    *minus;       /* show view - minus on a diverging map; NULL: off */
    const int32_t *row_order, *col_order; /* sorted display; borrowed; NULL: token order */
    /* Of that order: the first slot of each chunk or cluster, set apart by lines; borrowed. */
    const int64_t *slot_groups;
    int64_t        slot_group_count;
    bool           excludes;    /* the column below does not count: see GridRequest */
    int64_t        excluded;
    Margin        *margin; /* bars beside it, instead of the view's own; the figure's; NULL: none */
    char *const   *row_labels, *const *col_labels; /* token labels or NULL; borrowed */
    /* The view is a picture (attn/study/row.h): its pixels, 0 black to 1 white, row by row, lie
     * behind the cells; NULL: none known.  The query's pixel is marked. */
    bool           picture;
    const float   *pixels;      /* borrowed */
    int64_t        pixel_count; /* those past it do not exist */
    int64_t        mark_row, mark_col;
    PanelNote      notes[PANEL_NOTES]; /* marked cells, in token order */
    int            note_count;
    char           title[128];
    char           caption[256]; /* of panel_caption if empty */
} Panel;

/* Room to name the tensors of all panels and the machine they were measured on. */
#define FIGURE_CAPTION 4096

typedef struct Figure {
    char   title[256];
    char   caption[FIGURE_CAPTION];
    Panel *panels;   /* owned */
    int    count;
    int    rows, cols; /* arrangement; 0: chosen */
    bool   loose;      /* a page too narrow for that arrangement has fewer columns */
    bool   shared_scale; /* one value range for the panels that show the same quantity */
    bool   legend;
    Threads *threads;    /* borrowed; may be NULL */
    double   budget_entries; /* as in GridRequest; 0: exact */
    const atomic_bool *cancel; /* borrowed; may be NULL */
    char  *numbers;  /* of its plots, the text that a file held; owned; NULL: made of them */
} Figure;

Figure *figure_new(int panels, Error *err);
void    figure_free(Figure *figure);
/* Fills a panel with the defaults of the view's kind. */
void    panel_init(Panel *panel, const View *view, const Pattern *components, int64_t plane,
                   const char *title);
/* A panel of a figure that is this plot, which the figure owns from now on. */
void    panel_init_plot(Panel *panel, Plot *plot, const char *title);
/* What the colours alone do not tell, on one line: "462 of 2304 pairs (20.1 %)",
 * "2.6 M pairs (15.3 %), max of 103 x 103".  Rows x columns; empty when there is
 * nothing to tell, as for all weights one by one. */
void    panel_caption(const Panel *panel, const Grid *grid, char *text, size_t size);
/* The plot of a panel that is one, settled; NULL: no memory, or the curves do not fit. */
Plot *panel_plot(const Panel *panel, Error *err);
/* Widens the values lo..hi to the range that the panel's colours span. */
void    panel_spread(const Panel *panel, double *lo, double *hi);
/* Significant digits that tell the ends of a range apart; at least 3. */
int     range_digits(double lo, double hi);
/* What the number behind the colours is: "weight", "bias", "difference". */
const char *panel_quantity(const Panel *panel);

/* Everything a cell of a drawn panel needs: colour and character. */
typedef struct Paint {
    Rgb     rgb;
    uint8_t index256;
    char    ascii;
    bool    background; /* nothing allowed here */
    bool    marked;     /* one of the view's marks: the character says it */
    int     level;      /* 0..levels-1 as grid_level */
} Paint;
#define PAGE_LEVELS 256
/* levels: how many steps the device has; PAGE_LEVELS: a page, for which causes and categories
 * have no index256 looked up. */
Paint panel_paint(const Panel *panel, const Grid *grid, int64_t row, int64_t col, int levels,
                  bool dark_background);

/* What the legend of these panels must explain. */
typedef struct LegendItem {
    char    text[48];
    Rgb     rgb;
    uint8_t index256;
    char    ascii;
    bool    background; /* it stands for cells without a colour */
    bool    page;       /* of what only a page shows */
} LegendItem;
int figure_legend(const Figure *figure, LegendItem *items, int most);
/* That of hop counts least..most alone. */
int hops_legend(ColourMap map, double least, double most, bool unreached, bool dark_background,
                LegendItem *items, int room);
/* Forward and backward of a schedule. */
int schedule_legend(Hues hues, LegendItem *items, int room);
/* The panel shows who works on what, not a difference. */
bool panel_shows_schedule(const Panel *panel);
/* The panel's colours stand for categories, of which a cell of many has the commonest. */
bool panel_shows_categories(const Panel *panel);
/* What one of the view's categories is called, and several: "bucket", "buckets". */
void    category_word(const View *view, char *text, size_t size);
void    categories_word(const View *view, char *text, size_t size);
/* Those of a panel's grid: "buckets 0 to 5"; named ones that are there, "forward, backward". */
void    categories_text(const Panel *panel, const Grid *grid, Text *out);
/* How many of them colours (or letters) tell apart: beyond, they come again. */
int     category_kinds(bool letters);
/* Its colour and letter, and its name or number. */
LegendItem category_item(const Panel *panel, int64_t category);
/* Category of a schedule's value, and its colour; -1: idle. */
int32_t schedule_category(float value);
Rgb     schedule_colour(int32_t category, Hues hues);
/* The panel shows hop counts as such, not how many pairs have one. */
bool panel_shows_hops(const Panel *panel);

/* ---- surfaces --------------------------------------------------------------- */

typedef enum FigureFormat {
    FORMAT_PNG_FILE, FORMAT_SVG_FILE, FORMAT_PDF_FILE, FORMAT_APNG_FILE, FORMAT_TEXT_FILE,
    FORMAT_ANSI_FILE, FIGURE_FORMATS
} FigureFormat;

/* Of every kind of file. */
typedef struct PngOptions {
    const char *format;      /* "png", "svg", ...; NULL: the ending of the file says it */
    double      width_inch;  /* 0: chosen from the panels (at most 6.75, slides 12.5) */
    int         dpi;         /* 0: 300 */
    bool        transparent;
    const char *theme;       /* "light" (default), "dark", "print", "slide", "colour-blind" */
    int         colours;     /* of text with colours: 256, or 24; 0: 24 */
    double      delay;       /* seconds that each frame of an animation stands; 0: 1 */
    /* key, value, ..., NULL: put into the file; see metadata.h.  Whoever writes a picture's own
     * (picture_metadata) puts these behind them. */
    const char *const *metadata;
} PngOptions;

/* The kind of file that the options or the path's ending name; "-" alone is a PNG. */
bool figure_format(const char *path, const PngOptions *options, FigureFormat *out, Error *err);
/* "6.75", "6.75in", "8.5cm", "85mm" or "246pt" (TeX's, 72.27 an inch) as inches; NaN: none. */
double figure_width(const char *text);
/* False: there is no such theme, and err lists them.  NULL is the usual one. */
bool figure_theme_check(const char *name, Error *err);
/* The whole file.  Byte-identical for the same figure, options and build. */
bool figure_file(const Figure *figure, FigureFormat format, const PngOptions *options, Text *bytes,
                 Error *err);
bool figure_png(const Figure *figure, const PngOptions *options, Text *bytes, Error *err);
/* Frame `only` of several figures that replace one another, all of one size and, for values
 * of one quantity, one range of colours; only < 0: all of them as an animation (format
 * APNG). */
bool figure_frames(const Figure *all, int only, FigureFormat format, const PngOptions *options,
                   Text *bytes, Error *err);
/* Text of at most width columns; colour: 0 none (ASCII or half blocks by utf8),
 * 256, or 24 (true colour escapes). */
typedef struct TextOptions {
    int  width, height; /* columns, lines; 0: 80 x as needed */
    bool utf8;
    int  colours;       /* 0, 256, 24 */
} TextOptions;
bool figure_text(const Figure *figure, const TextOptions *options, Text *out, Error *err);

/* Metadata of a file of any kind written by these: value of key, or NULL.  The caller
 * frees the returned string. */
char *figure_metadata(const char *path, const char *key, Error *err);
/* The kind of a file by what is in it, as PngOptions.format names it ("png" also of an
 * animation); NULL: of no kind. */
const char *figure_kind(const char *path);
char *figure_png_metadata(const char *path, const char *key, Error *err);

#endif
