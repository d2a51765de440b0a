/* draw/page/pens.h -- what the files that draw plots on a page share; private to them. */
#ifndef DRAW_PAGE_PENS_H
#define DRAW_PAGE_PENS_H

#include "draw/page/sheet.h"
#include "draw/plot/label.h"

typedef struct Pens {
    Sheet            *sheet;
    const Plot       *plot;
    const SheetStyle *s;
    LabelBox          box;
    Box               column; /* x and w: what belongs to the panel */
    PlotAxis          axis;   /* the lower one: the plot's, or longer for words */
    LabelPlaces       places; /* of the words among the curves */
} Pens;

double pens_x(const Pens *p, double x);
double pens_y(const Pens *p, double y);
/* Nothing where an end has no place. */
void   pens_line(const Pens *p, double x0, double y0, double x1, double y1, double width, Rgb rgb,
                 double alpha);
void   pens_dashes(const Pens *p, double x0, double y0, double x1, double y1, Rgb rgb);
/* Square, diamond and triangle of the first three hues, filled. */
void   pens_solid(const Pens *p, int hue, double x, double y, double size, Rgb rgb);
Rgb    pens_colour(const Pens *p, int hue); /* -1: muted */
double pens_width(const Pens *p, const char *text);
void   pens_text(const Pens *p, double x, double y, const char *text, Rgb rgb);
/* Words avoid guide lines, and are never on points that have some. */
void   pens_take_points(Pens *p);
/* The lines the others are held against, with their names; guides.c. */
void   pens_guides(Pens *p);
/* Words beside the points; what finds no room is left out. */
void   pens_labels(Pens *p);

/* Height of the field of a plot with rows. */
int    sheet_rows_height(const Sheet *sheet, const Plot *plot);

#endif
