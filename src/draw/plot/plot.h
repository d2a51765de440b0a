/* draw/plot/plot.h -- series over a pair of axes, independent of any device.
 *
 * A Plot owns its numbers and texts. plot_add and plot_guide fill it, or views; plot_settle then
 * takes the ranges from the data. Page and terminal ask it for places (0..1), ticks and colours,
 * so both show the same plot.
 *
 * A plot with rows compares named things: x is the value, y the number of the row counted from the
 * top, and low and high lie along x. Spans (CURVE_SPANS) reach from low to high.
 */
#ifndef DRAW_PLOT_PLOT_H
#define DRAW_PLOT_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/run/view.h"
#include "core/error.h"
#include "core/text.h"
#include "draw/colour/colour.h"

#define PLOT_SERIES_MOST 32
#define PLOT_GUIDES_MOST 24
#define PLOT_ROWS_MOST   64
#define PLOT_TICKS_MOST  12
#define PLOT_LABEL       48
#define PLOT_ROW         160
#define PLOT_NAME        128 /* of a series: a mechanism with parameters, and its claim */
#define PLOT_NOTE        640
#define PLOT_CAPTION     800
#define PLOT_POINTS_MOST 4096 /* points of a series read from a view; more are binned */

/* A named place of an axis. */
typedef struct PlotName {
    double at;
    char   text[24];
} PlotName;

typedef struct PlotAxis {
    char   name[64]; /* with its unit: "memory (bytes)" */
    PlotName *names; /* owned by the plot; its only ticks; NULL: ticks are round numbers */
    int    name_count;
    bool   words;    /* the names are words: the place of a point has no meaning of its own */
    bool   log;
    bool   twos;     /* its points are at powers of two, its ticks too */
    bool   whole;    /* only whole numbers are meaningful */
    bool   cut;      /* values below lo exist and are drawn at lo */
    bool   zero;     /* all values are 0, its only tick, in the middle */
    double lo, hi;   /* lo < hi once settled */
} PlotAxis;

typedef struct PlotSeries {
    char      name[PLOT_NAME];
    CurveMark mark;
    int64_t   count;
    double   *x, *y;    /* count each; a NaN y is a gap */
    double   *low, *high; /* band, count each; NULL: none */
    bool      whiskers;   /* low and high are of each point alone, not of a band */
    bool     *busy;       /* measured with more threads than processors were free; NULL: none */
    char    (*labels)[PLOT_LABEL]; /* words beside the points, "" none; NULL: none at all */
    int       hue;        /* series whose colour and mark it has: usually itself */
    bool      guide;      /* a dashed reference line with its name beside it; hue -1: grey */
    bool      roof;       /* a guide of a roofline: on a page its name stands behind its right end,
                             or along it where it slants */
} PlotSeries;

typedef struct PlotGuide {
    char   name[64];
    bool   vertical;
    double at;
} PlotGuide;

typedef struct Plot {
    PlotAxis   x, y;
    PlotSeries series[PLOT_SERIES_MOST];
    int        count;
    PlotGuide  guides[PLOT_GUIDES_MOST];
    int        guide_count;
    char     (*rows)[PLOT_ROW]; /* names of the rows; NULL: there are none */
    int        row_count;
    char       note[PLOT_NOTE]; /* what a reader must know of it; replaces the caption */
    char       measured[256]; /* machines and date of measured numbers; "" otherwise */
    int64_t    left_out; /* series beyond PLOT_SERIES_MOST */
    int64_t    binned;   /* points that one bin summarises by least and largest; 0: no bins */
} Plot;

Plot *plot_new(Error *err);
void  plot_free(Plot *plot); /* NULL does nothing */
Plot *plot_copy(const Plot *plot, Error *err);

/* A series of `count` points, to be filled in; NULL: out of memory, or PLOT_SERIES_MOST series. */
PlotSeries *plot_add(Plot *plot, const char *name, CurveMark mark, int64_t count, bool band);
/* Allocates words beside its points; false: out of memory. */
bool        plot_label(PlotSeries *series);
/* Marks a point as measured on a busy machine; false: out of memory. */
bool        plot_busy(PlotSeries *series, int64_t point);
bool        plot_any_busy(const Plot *plot);
/* A sign at a busy point tells it from others: where all are, the caption alone says so. */
bool        plot_has_busy_signs(const Plot *plot);
/* A reference line from point to point. */
PlotSeries *plot_line(Plot *plot, const char *name, int hue, const double *x, const double *y,
                      int count);
/* Gives the plot rows, named by the caller; false: out of memory, or too many. */
bool        plot_rows(Plot *plot, int count, Error *err);
void        plot_guide(Plot *plot, const char *name, bool vertical, double at);
/* Adds the series of one plane of a curve view (minus: of another of the same shape, subtracted;
 * NULL: none). prefix: before their names, "" for none. The first view names the axes. head: 1 +
 * the one to add of a curve for each head; 0: all. */
bool plot_add_view(Plot *plot, const View *view, const View *minus, int64_t plane, int64_t head,
                   const char *prefix, Error *err);
/* The series of the view are its heads. */
bool plot_has_heads(const View *view);
/* Names the x axis at the points of its first series: "16|32|64". False: out of memory. */
bool plot_name_points(Plot *plot, const char *names);
/* Sets the ranges from data and guides; called once, after everything is added. */
void plot_settle(Plot *plot);

/* Place on the axis: 0 at lo, 1 at hi, clamped. NaN: the value has none. */
double plot_place(const PlotAxis *axis, double value);

/* The x axis of a plot with rows, extended to the right for the words beside its points; widths
 * and gap in units of the room. */
PlotAxis plot_rows_axis(const Plot *plot, double room, double gap,
                        double (*width)(const void *context, const char *text),
                        const void *context);

typedef struct PlotTick {
    double place; /* 0..1 */
    char   text[24];
} PlotTick;
/* 1, 2 or 5 times a power of ten: the least with at most `most` steps in the range. */
double plot_round_step(double range, int most);
/* Its name ends in "(bytes)". */
bool plot_in_bytes(const PlotAxis *axis);
/* About `most` ticks, PLOT_TICKS_MOST at the most: powers of two (twos), round numbers, or decades,
 * with SI prefixes (binary ones for bytes); or the axis's own names. */
int plot_ticks(const PlotAxis *axis, int most, PlotTick *out);
/* Places of the numbers 1, 2, 3, ... 9 of each decade of a logarithmic axis, which show that it is
 * one; 0: another axis, or more than PLOT_DECADES_MOST. */
#define PLOT_DECADES_MOST 6
#define PLOT_MINOR_MOST   (9 * (PLOT_DECADES_MOST + 2))
int plot_minor_ticks(const PlotAxis *axis, double *places);
/* A number as in ticks and captions. */
void plot_number(const PlotAxis *axis, double value, char *text, size_t size);

/* "O(n^2)" as "O(n²)", in place; "n^1.5" and "n^25" stay. */
void plot_raise(char *text);

/* The ends of a range in three significant digits; ends within a decade have as many digits after
 * the point. */
void plot_range_numbers(const PlotAxis *axis, double lo, double hi, char *least, char *most,
                        size_t size);

/* Appends the unit that the axis' name has in brackets: "512Ki" becomes "512 KiB". */
void plot_unit(const PlotAxis *axis, char *text, size_t size);

/* Okabe-Ito colours, ordered so that neighbours differ in lightness too. */
Rgb     plot_colour(int series, bool dark);
Rgb     plot_colour_printed(int series); /* apart in lightness */
uint8_t plot_colour_256(int series);
int     plot_mark(int series); /* shape; where colours repeat, shapes do not */
char    plot_letter(int series);  /* ASCII mark: o x + * ... */
/* Number of series in the legend: all but guides. */
int     plot_named(const Plot *plot);
/* It names its series: there are several. */
bool    plot_has_key(const Plot *plot);

/* Plots of one page: a series has the colour and mark of the series of its name in the plots
 * before, so a name looks the same everywhere. Plots without such names keep their own. */
void plots_share_hues(Plot *const *plots, int count);
typedef struct PlotKeyEntry {
    const Plot       *plot;
    const PlotSeries *series;
} PlotKeyEntry;
/* One key for all plots, each name once; PLOT_SERIES_MOST at most. 0: each has its own, since some
 * plot shares no name with the others, or a name has two signs. NULL plots are skipped. */
int plots_shared_key(const Plot *const *plots, int count, PlotKeyEntry *out);

/* Number of curves that lie on one line, this one included, so that they would hide each other; *at
 * is its place among them. The words name them: "Linear and RetNet lie on one line". */
int  plot_twins(const Plot *plot, int series, int *at);
void plot_twins_words(const Plot *plot, Text *out);

/* The points of a series that carry its mark: *first, and each so many further on as is returned;
 * 0: none does.  Of many points each eighth, at other points than the other series'; of curves on
 * one line in turns. */
int64_t plot_marks(const Plot *plot, int series, int64_t *first);
/* Number of series drawn as bars. */
int     plot_bars(const Plot *plot);
/* The caption: the note, or the extremes of a series that stands alone; all: of each series, where
 * characters are too coarse to read them. It explains the sign of busy points: a ring on a page, !
 * in characters, a word beside bars. */
void plot_caption(const Plot *plot, bool all, char *text, size_t size);
/* Of it the note, and what the sign of busy points means. */
void plot_about(const Plot *plot, bool characters, char *text, size_t size);
/* Everything in the plot, into an open JSON object: names and units, numbers, and looks other than
 * the default: "x":..,"y":..,"rows":[..],"series":[..],... */
void plot_json(const Plot *plot, Json *out);
/* The settled plot of such an object; NULL with an error that names the fault. */
struct json_t;
Plot *plot_of_json(const struct json_t *json, Error *err);

#endif
