/* draw/page/pens.h -- strokes, marks and words of a plot on a page; private to plot.c, guides.c
 * and exponents.c. */
#ifndef DRAW_PAGE_PENS_H
#define DRAW_PAGE_PENS_H

#include "draw/page/sheet.h"
#include "draw/plot/label.h"

typedef struct Pens {
    Sheet            *sheet;
    const Plot       *plot;
    const SheetStyle *s;
    LabelBox          box;
    Box               column; /* x and w of the panel */
    PlotAxis          axis;   /* the x axis: the plot's, or extended for words */
    LabelPlaces       places; /* of the words in the field */
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
/* Draws guides and reference lines with their names. */
void   pens_guides(Pens *p);
/* Writes words beside the points; those without room are left out. */
void   pens_labels(Pens *p);

/* Height of the field of a plot with rows. */
int    sheet_rows_height(const Sheet *sheet, const Plot *plot);

#endif
