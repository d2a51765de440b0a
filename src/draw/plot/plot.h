/* draw/plot/plot.h -- series over a common pair of axes, free of any device.
 *
 * A Plot owns its numbers and texts.  It is filled by plot_add and plot_guide, or from
 * views, then settled: the ranges follow from the data.  The page and the terminal ask
 * it for places (0..1), ticks and colours, so both show the same plot.
 *
 * A plot with rows holds named things against each other: x is the value, y the number
 * of the row it stands in, counted from the top, and low and high lie along x.  There may be
 * spans in them (CURVE_SPANS), from low to high.
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
#define PLOT_ROW         96
#define PLOT_POINTS_MOST 4096 /* of a series as read from a view; more are summed up */

/* A place of an axis that has a name. */
typedef struct PlotName {
    double at;
    char   text[24];
} PlotName;

typedef struct PlotAxis {
    char   name[64]; /* with its unit: "memory (bytes)" */
    PlotName *names; /* owned by the plot; its only ticks; NULL: ticks are round numbers */
    int    name_count;
    bool   words;    /* the names are no numbers: the place of a point says nothing more */
    bool   log;
    bool   whole;    /* only whole numbers mean something */
    bool   cut;      /* there are values below lo, drawn there */
    double lo, hi;   /* lo < hi once settled */
} PlotAxis;

typedef struct PlotSeries {
    char      name[64];
    CurveMark mark;
    int64_t   count;
    double   *x, *y;    /* count each; a NaN y is a gap */
    double   *low, *high; /* band, count each; NULL: none */
    bool      whiskers;   /* low and high belong to each point alone, not to a band */
    char    (*labels)[PLOT_LABEL]; /* words beside the points, "" none; NULL: none at all */
    int       hue;        /* whose colour and mark it has: usually its own number */
    bool      guide;      /* a dashed line to hold the others against, named beside it; hue
                             -1: of no series */
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
    char       note[256];     /* what a reader must know of it; takes the caption's place */
    char       measured[256]; /* machines and date of measured numbers; "" they are not */
    int64_t    left_out; /* series there is no room for */
    int64_t    binned;   /* points that stand in one column, by their least and largest; 0: one */
} Plot;

Plot *plot_new(Error *err);
void  plot_free(Plot *plot); /* NULL is nothing */
Plot *plot_copy(const Plot *plot, Error *err);

/* A series of `count` points, not filled in; NULL: no memory, or PLOT_SERIES_MOST are there. */
PlotSeries *plot_add(Plot *plot, const char *name, CurveMark mark, int64_t count, bool band);
/* Room for words beside its points; false: no memory. */
bool        plot_label(PlotSeries *series);
/* A line from point to point that the others are held against. */
PlotSeries *plot_line(Plot *plot, const char *name, int hue, const double *x, const double *y,
                      int count);
/* It has so many rows, named by the caller; false: no memory, or there are too many. */
bool        plot_rows(Plot *plot, int count, Error *err);
void        plot_guide(Plot *plot, const char *name, bool vertical, double at);
/* The series of one plane of a view that is a curve (minus: those of another of the same
 * shape subtracted; NULL: none).  prefix: put before their names, "" for none.  The first
 * view names the axes. */
bool plot_add_view(Plot *plot, const View *view, const View *minus, int64_t plane,
                   const char *prefix, Error *err);
/* The x axis is named at the points of its first series: "16|32|64".  False: no memory. */
bool plot_name_points(Plot *plot, const char *names);
/* Ranges from data and guides; call it once all is there. */
void plot_settle(Plot *plot);

/* 0 at lo, 1 at hi; beyond it stays there.  NaN: it has no place. */
double plot_place(const PlotAxis *axis, double value);

/* Of a plot with rows: longer to the right, as far as the words need that stand beside
 * its points; widths and gap in units of the room. */
PlotAxis plot_rows_axis(const Plot *plot, double room, double gap,
                        double (*width)(const void *context, const char *text),
                        const void *context);

typedef struct PlotTick {
    double place; /* 0..1 */
    char   text[24];
} PlotTick;
/* At most `most` round numbers, or decades, with SI prefixes (binary ones of bytes); or the
 * axis's own names. */
int plot_ticks(const PlotAxis *axis, int most, PlotTick *out);
/* The number as ticks and captions write it. */
void plot_number(const PlotAxis *axis, double value, char *text, size_t size);

/* Colours of Okabe and Ito, in an order in which neighbours differ in lightness too. */
Rgb     plot_colour(int series, bool dark);
Rgb     plot_colour_printed(int series); /* apart in lightness */
uint8_t plot_colour_256(int series);
int     plot_mark(int series); /* shape, so that where colours come again shapes do not */
char    plot_letter(int series);  /* ASCII mark: o x + * ... */
/* Series that share a legend: those that are no guides. */
int     plot_named(const Plot *plot);
/* ... and those that are bars. */
int     plot_bars(const Plot *plot);
/* What a reader wants in words: the note, or extremes of each series. */
void plot_caption(const Plot *plot, char *text, size_t size);
/* All of it, for an object that is open: names and units, numbers, and how they are drawn
 * where that is not the usual way: "x":..,"y":..,"rows":[..],"series":[..],... */
void plot_json(const Plot *plot, Json *out);
/* The settled plot that such an object holds, and it alone; NULL with an error that says
 * what is wrong with it. */
struct json_t;
Plot *plot_of_json(const struct json_t *json, Error *err);

#endif
