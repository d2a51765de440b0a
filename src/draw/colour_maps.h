/* draw/colour_maps.h -- helpers shared by the colour files; private to draw. */
#ifndef DRAW_COLOUR_MAPS_H
#define DRAW_COLOUR_MAPS_H

#include "draw/colour.h"

/* a at share 0, b at share 1. */
Rgb colour_mix(Rgb a, Rgb b, double share);

#endif
