/* draw/figure/figure.h -- the content of a figure, independent of any device.
 *
 * A Figure is a grid of Panels made from views. The pane on the screen, the PNG and the test
 * fixture are the same Figure drawn on different surfaces. A Figure borrows its views (the runs
 * must outlive it) and owns its texts.
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
    int64_t     head;     /* as in Panel */
    char        name[96]; /* prefix of its series' names */
} Overlay;

typedef struct Panel {
    const View    *view;
    bool           plot;        /* drawn as curves: ranges and colours of cells are unused */
    Plot          *made;        /* the plot itself where no view holds its numbers; settled;
                                   owned by the figure; NULL: made of the view */
    char           name[96];    /* prefix of its own series where others are in the plot; "" none */
    Overlay        overlays[PANEL_OVERLAYS]; /* of a plot */
    int            overlay_count;
    const Pattern *components;  /* colour by cause; NULL: by value */
    int64_t        plane;       /* head */
    int64_t        head;        /* of a plot with a curve for each head (plot_has_heads): 1 + the
                                   one that is drawn; 0: all */
    Region         region;      /* all zero: the whole view */
    Pool           pool;
    Scale          scale;
    bool           scale_given; /* chosen by the user: it stays */
    ColourMap      map;
    bool           map_given;   /* chosen by the user: no theme changes it */
    Hues           hues;        /* of causes and categories */
    uint8_t        worn[8];     /* settled: the bit whose colour cause 1 << k has, as what another
                                   panel calls the same has it; 0: its own */
    bool           pale;        /* its numbered categories are of another kind than the page's first
                                   ("chunk", not "bucket"): the same hues, lighter */
    double         lo, hi;      /* value range; lo == hi: from the data */
    bool           apart;       /* settled: its values would not be seen in the range of the panels
                                   it is compared with, so it has its own */
    const View    *minus;       /* show view - minus on a diverging map; NULL: off */
    const int32_t *row_order, *col_order; /* sorted display; borrowed; NULL: token order */
    const int32_t *row_buckets; /* of tokens: cells get their queries' bucket's colour in
                                   place of the cause's; borrowed; NULL: off */
    /* The first slot of each chunk or cluster in that order, separated by lines; borrowed. */
    const int64_t *slot_groups;
    int64_t        slot_group_count;
    char           sorted[112]; /* words on that order for the caption; "" none */
    bool           excludes;    /* the column `excluded` does not count: see GridRequest */
    int64_t        excluded;
    Margin        *margin; /* bars beside it in place of the view's own; owned by the figure;
                              NULL: none */
    char *const   *row_labels, *const *col_labels; /* token labels or NULL; borrowed */
    /* The view is a picture (attn/study/row.h): its pixels, 0 black to 1 white, row by row, lie
     * behind the cells; NULL: none known.  The query's pixel is marked. */
    bool           picture;
    const float   *pixels;      /* borrowed */
    int64_t        pixel_count; /* pixels beyond do not exist */
    int64_t        mark_row, mark_col;
    PanelNote      notes[PANEL_NOTES]; /* marked cells, in token order */
    int            note_count;
    bool           causal;     /* of a causal run on n = m: shares are of the pairs j <= i */
    bool           greyed[2];  /* on light, on dark paper: pairs that are not allowed are grey, as
                                  those of another panel of the page */
    bool           bare;       /* one of many: cells and title, no axes, letter or caption */
    char           side[16];   /* of a bare panel: words left of it, "L3" */
    char           title[128];
    char           sizes[256];   /* of its mechanism, "window 3, 2 global tokens", or what a step
                                    does: begins the caption that panel_caption writes */
    char           caption[256]; /* empty: panel_caption writes it */
} Panel;

/* Long enough to name the tensors of all panels and the machine they were measured on. */
#define FIGURE_CAPTION 4096

/* Which panels of one quantity have one range of values. A panel whose values would not be seen in
 * it has a range of its own, except with SHARE_ALL. */
typedef enum ScaleSharing {
    SHARE_DIFFERENCES, /* only differences: they are compared with each other */
    SHARE_QUANTITIES,
    SHARE_ALL,         /* all of a quantity, also a panel that then looks empty: its caption says
                          which values it has */
    SHARE_NONE,
} ScaleSharing;

typedef struct Figure {
    char   title[256];
    char   caption[FIGURE_CAPTION];
    Panel *panels;   /* owned */
    int    count;
    int    rows, cols; /* arrangement; 0: chosen */
    bool   loose;      /* on a page too narrow for it, fewer columns */
    ScaleSharing sharing;
    bool   legend;
    Threads *threads;    /* borrowed; may be NULL */
    double   budget_entries; /* as in GridRequest; 0: exact */
    const atomic_bool *cancel; /* borrowed; may be NULL */
    /* Reduces all panels to rows x cols cells at once, where views are gone once they are read; a
     * panel's view then says its kind and its shape.  NULL: each panel by its view. */
    bool (*reduce)(void *context, int64_t rows, int64_t cols, Grid *grids, Error *err);
    void  *reducer;  /* context; borrowed */
    char  *numbers;  /* its plots' numbers as read from a file; owned; NULL: written from the
                        plots */
} Figure;

Figure *figure_new(int panels, Error *err);
void    figure_free(Figure *figure);
/* Sets a panel to the defaults of the view's kind. */
void    panel_init(Panel *panel, const View *view, const Pattern *components, int64_t plane,
                   const char *title);
/* A panel that is this plot; the figure takes the plot over. */
void    panel_init_plot(Panel *panel, Plot *plot, const char *title);
/* Rows and columns of panels: as given, else the usual ones. */
void    figure_arrange(const Figure *figure, int *rows, int *cols);
/* The two panels have one colour scale in this figure, unless one is set apart. */
bool    figure_shares(const Figure *figure, int a, int b);
/* Writes to `panels` those of the figure, matrices all, with the map, scale and range that they
 * have beside each other; one grid a panel. */
bool    figure_colours(const Figure *figure, Grid *grids, Panel *panels, Error *err);
/* A title that the program makes begins with a capital letter where it begins with a word, also
 * behind the sign of a warning; letters of a formula ("q") stay. */
void    title_capital(char *title);
/* Entries that a share of the grid's region is of: all, or, *causal, the pairs j <= i. */
double  panel_whole(const Panel *panel, const Grid *grid, bool *causal);
/* Number of the first row or column: rounds count from 1, as in "round 1" of a key. */
int64_t panel_first(const Panel *panel, bool rows);
/* One line of what colours do not show: "462 of 2304 pairs (20.1 %)", "2.6 M pairs (15.3 %), max
 * of 103 x 103" (rows x columns). Empty when there is nothing to add, as for all weights one by
 * one. */
void    panel_caption(const Panel *panel, const Grid *grid, char *text, size_t size);
/* The same of a panel whose categories are letters. */
void    panel_caption_letters(const Panel *panel, const Grid *grid, char *text, size_t size);
/* The settled plot of a plot panel; NULL: out of memory, or the curves do not fit together. */
Plot *panel_plot(const Panel *panel, Error *err);
/* Widens the values lo..hi to the range that the panel's colours span. */
void    panel_spread(const Panel *panel, double *lo, double *hi);
/* Values lo..hi lie on one side of the centre: a map with two ends would leave one half of its
 * colours unused. */
bool    panel_has_one_side(const Panel *panel, double lo, double hi);
/* A linear picture of weights, most of them dark, says which share is below what. */
bool    panel_is_mostly_dark(const Panel *panel, const Grid *grid, double *share, double *below);
/* Hardly any of its values is told from no value by the colours of lo..hi, because these are of
 * far larger ones. */
bool    panel_is_faint(const Panel *panel, const Grid *grid);
/* A few large weights would leave the rest of the picture in the darkest colours of a linear scale,
 * and nobody chose a scale: it is logarithmic. */
bool    panel_spans_decades(const Panel *panel, const Grid *grid);
/* Whether its values are logarithmic; cover has a fixed scale of its own. */
bool    panel_is_log(const Panel *panel);
/* The least size that a logarithmic scale over lo..hi tells from 0. */
double  panel_least(double lo, double hi);
/* The value at the lower end of the colours of lo..hi: a logarithmic scale of values on one side
 * begins at 1e-4 of its top. */
double  panel_bottom(const Panel *panel, double lo, double hi);
/* Significant digits that distinguish the ends of a range; at least 3. */
int     range_digits(double lo, double hi);
/* The quantity that colours show: "weight", "bias", "difference". */
const char *panel_quantity(const Panel *panel);

/* The picture behind the cells is seen where a value's place t on its bar is below this share; the
 * bar is grey there. */
#define PICTURE_SHARE    0.05
#define PICTURE_GREY     ((Rgb){ 150, 150, 150 })
#define PICTURE_GREY_256 246
bool panel_lets_through(const Panel *panel, double t);
/* The grey of a bar and of the key that stands for the picture; in print that of a black pixel. */
Rgb  picture_grey(Hues hues);

/* Colour and character of one drawn cell. */
typedef struct Paint {
    Rgb     rgb;
    uint8_t index256;
    char    ascii;
    bool    background; /* nothing allowed here */
    bool    marked;     /* marked by the view: the character shows it */
    int     level;      /* 0..levels-1; 0: nothing allowed */
    bool    dotted;     /* by a dot, for entries of a rarer cause than the cell's colour */
    Rgb     dot;
    uint8_t dot256;
} Paint;
#define PAGE_LEVELS 256
/* levels: steps of the device; with PAGE_LEVELS, for a page, causes and categories get no
 * index256. */
Paint panel_paint(const Panel *panel, const Grid *grid, int64_t row, int64_t col, int levels,
                  bool dark_background);

/* What stands in marked cells, and in the swatch of their entry. */
typedef enum LegendMark {
    MARK_NONE,
    MARK_RING,  /* around the cell: chosen */
    MARK_CROSS, /* in it: lost */
} LegendMark;

/* One entry of a legend. */
typedef struct LegendItem {
    char    text[96];
    Rgb     rgb;
    uint8_t index256;
    char    ascii;
    bool    background; /* stands for cells without a colour */
    bool    page;       /* for pages only */
    bool    dot;        /* not a colour: the dot of panel_shows_dots */
    bool    words;      /* no colour either: a note on the others */
    bool    depth;      /* a count of layers */
    LegendMark mark;    /* of the cells it stands for */
} LegendItem;
int figure_legend(const Figure *figure, LegendItem *items, int most);
/* The legend of hop counts least..most. */
int hops_legend(ColourMap map, double least, double most, bool unreached, bool dark_background,
                LegendItem *items, int room);
/* The legend of a schedule: forward and backward. */
int schedule_legend(Hues hues, LegendItem *items, int room);
/* The panel shows a schedule, not a difference of two. */
bool panel_shows_schedule(const Panel *panel);
/* The panel colours by category; a cell of several entries shows its commonest. */
bool panel_shows_categories(const Panel *panel);
/* A category of the view, singular and plural: "bucket", "buckets". */
void    category_word(const View *view, char *text, size_t size);
void    categories_word(const View *view, char *text, size_t size);
/* The categories of a grid: "buckets 0 to 5"; named ones that occur, "forward, backward". */
void    categories_text(const Panel *panel, const Grid *grid, Text *out);
/* Two categories that cells show have one colour, or one letter. */
bool    categories_repeat(const Panel *panel, const Grid *grid, bool letters);
/* Number of distinct colours (or letters); beyond it they repeat. */
int     category_kinds(bool letters);
/* Legend entry of a category: colour, letter, and name or number. */
LegendItem category_item(const Panel *panel, int64_t category);
/* Category of a schedule's value; -1: idle. And its colour. */
int32_t schedule_category(float value);
Rgb     schedule_colour(int32_t category, Hues hues);
/* Some cell of the panel is dotted; the words of its legend. */
#define DOT_WORDS "dot: a rarer cause too"
bool panel_shows_dots(const Panel *panel, const Grid *grid);
/* The panel shows hop counts, not how many pairs have one. */
bool panel_shows_hops(const Panel *panel);

/* ---- surfaces --------------------------------------------------------------- */

typedef enum FigureFormat {
    FORMAT_PNG_FILE, FORMAT_SVG_FILE, FORMAT_PDF_FILE, FORMAT_APNG_FILE, FORMAT_TEXT_FILE,
    FORMAT_ANSI_FILE, FIGURE_FORMATS
} FigureFormat;

/* Words that a figure leaves out: bits. Letters are the (a) of panels, axes their names, ticks
 * their numbers and tokens, counts the words below each panel. */
enum { HIDE_TITLES = 1, HIDE_CAPTION = 2, HIDE_COUNTS = 4, HIDE_LETTERS = 8, HIDE_AXES = 16,
       HIDE_TICKS = 32 };
#define HIDE_LABELS (HIDE_LETTERS | HIDE_AXES | HIDE_TICKS)
/* The labels to draw, "letters,axes,ticks"; "" or "none": no labels. Sets the others in *hides. */
bool figure_labels_parse(const char *text, unsigned *hides, Error *err);
/* "outlines", "text" or "font" as SvgLetters. */
bool figure_letters_parse(const char *text, int *out, Error *err);
/* "8", "8pt" (TeX's points) or "3mm" as inches; NaN: no size of letters from 2 to 72 points. */
double figure_size(const char *text);
/* The built-in "sans" or "mono", or a font file that can be read. */
bool figure_font_check(const char *font, Error *err);

/* Options of all figure files. */
typedef struct PngOptions {
    const char *format;      /* "png", "svg", ...; NULL: by the ending of the file */
    double      width_inch;  /* 0: from the number of panels (at most 6.75, slides 12.5) */
    double      page_width, page_height; /* inches of the paper around the figure, which stands in
                                its middle; 0: as large as the figure */
    int         dpi;         /* 0: 300 */
    bool        transparent;
    const char *theme;       /* "light" (default), "dark", "print", "slide", "colour-blind" */
    const char *font;        /* "sans" (default), "mono", or a font file */
    double      size_inch;   /* of all letters; 0: by their role */
    int         letters;     /* of an SVG, as SvgLetters */
    unsigned    hides;       /* HIDE_TITLES, ... */
    int         colours;     /* of coloured text: 256, or 24 (true colour); 0: 24 */
    double      delay;       /* seconds per frame of an animation; 0: 1 */
    /* key, value, ..., NULL: written into the file; see format.h. A picture's own metadata
     * (picture_metadata) stand before these. */
    const char *const *metadata;
    double     *high;        /* receives the height of the page in inches; NULL: nobody asks */
    /* Receives the least width in inches in which matrices are large enough to be seen and no word
     * need be cut; 0: the page has it; infinite: far more. NULL: nobody asks. */
    double     *least_width;
} PngOptions;

/* The format that the options or the path's ending name; "-" alone is a PNG. */
bool figure_format(const char *path, const PngOptions *options, FigureFormat *out, Error *err);
/* "6.75", "6.75in", "8.5cm", "85mm" or "246pt" (TeX's, 72.27 an inch) as inches; NaN: none. */
double figure_width(const char *text);
/* "16:9", "4:3" (7.5 inches high), "A4", or two widths as "13.333x7.5" or "24cmx13.5cm". */
bool figure_page_parse(const char *text, double *width, double *height, Error *err);
#define FIGURE_PAGE_HIGH 9.5 /* inches of a page of print; plots get lower to fit it */
/* Inches that its page is wide: as requested, else the theme's for one column or several. */
double figure_inches(const Figure *figure, const PngOptions *options);
/* Inches that its page is high, as it would be drawn; false with an error. */
bool figure_height(const Figure *figure, const PngOptions *options, double *inches, Error *err);
/* False: no such theme; err lists all. NULL is the default theme. */
bool figure_theme_check(const char *name, Error *err);
const char *figure_theme_name(int index); /* NULL past the last */
/* The complete file. Byte-identical for the same figure, options and build. */
bool figure_file(const Figure *figure, FigureFormat format, const PngOptions *options, Text *bytes,
                 Error *err);
/* Frame `only` of several figures that replace one another: all of one size and, for values of one
 * quantity, one range of colours; only < 0: all of them as an animation (APNG). */
bool figure_frames(const Figure *all, int only, FigureFormat format, const PngOptions *options,
                   Text *bytes, Error *err);
/* Text of at most `width` columns; colours: 0 none (ASCII, or half blocks with utf8), 256, or 24
 * (true colour escapes). */
typedef struct TextOptions {
    int  width, height; /* columns, lines; 0: 80 x as needed */
    bool utf8;
    int  colours;       /* 0, 256, 24 */
    unsigned hides;     /* as in PngOptions */
} TextOptions;
bool figure_text(const Figure *figure, const TextOptions *options, Text *out, Error *err);

/* The value of a metadata key in a figure file of any kind, freed by the caller; NULL: not
 * there. */
char *figure_metadata(const char *path, const char *key, Error *err);
/* The format of a file by its content, named as PngOptions.format ("png" also for an animation);
 * NULL: none of ours. */
const char *figure_kind(const char *path);
char *figure_png_metadata(const char *path, const char *key, Error *err);

#endif
