/* draw/plot/exponents.h -- how costs grow: a row for each mechanism, with the measured exponents
 * of n, their intervals and the claimed ones on one axis.
 */
#ifndef DRAW_PLOT_EXPONENTS_H
#define DRAW_PLOT_EXPONENTS_H

#include "draw/figure/figure.h"

typedef enum ExponentOf { EXPONENT_FLOPS, EXPONENT_TIME, EXPONENT_MEMORY, EXPONENTS } ExponentOf;

typedef struct Exponent {
    double value, lo, hi;
    bool   valid, bounded; /* bounded: lo and hi are known */
} Exponent;

#define EXPONENT_CLAIMS 3
#define EXPONENT_TOLERANCE 0.1 /* a slope this near to a claimed one is not above or below it */

typedef struct ExponentRow {
    const char *group;    /* title of a new group above this row; NULL: none */
    const char *name;     /* "Reformer" */
    const char *claim;    /* "O(n log n)" */
    const char *note;     /* instead of exponents; NULL: measured */
    double      claims[EXPONENT_CLAIMS]; /* on the axis */
    int         claim_count;
    Exponent    measured[EXPONENTS];
} ExponentRow;

typedef struct ExponentChart {
    const char        *title, *caption;
    const char        *measured; /* on what: "AMD EPYC, 2 threads" */
    const ExponentRow *rows; /* texts borrowed */
    int                count;
    bool               step; /* of one token more, and memory is what it reads; no claims */
} ExponentChart;

/* The chart's numbers as a plot: for each of EXPONENTS a series with one point a row, then the
 * claims, EXPONENT_CLAIMS points a row; NaN: no number. The axis is settled. */
Plot *exponents_plot(const ExponentChart *chart, Error *err);
int   exponent_tick(double at); /* number of a tick of this axis, 0 at 0 */

/* A PNG, an SVG or a PDF; as text a chart is the table of its fits. Byte-identical for the same
 * chart, format, options and build. */
bool exponent_chart_file(const ExponentChart *chart, FigureFormat format,
                         const PngOptions *options, Text *bytes, Error *err);

/* Everything in the chart, into an open JSON object: "title":..,"rows":[..] */
void exponents_json(const ExponentChart *chart, Json *out);
/* The chart of such an object; NULL with an error that names the fault. */
struct json_t;
ExponentChart *exponents_of_json(const struct json_t *json, Error *err);
void           exponents_free(ExponentChart *chart); /* made by exponents_of_json */

#endif
