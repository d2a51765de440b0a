/* draw/colour/colour_maps.h -- helpers shared by the colour files; private to draw. */
#ifndef DRAW_COLOUR_COLOUR_MAPS_H
#define DRAW_COLOUR_COLOUR_MAPS_H

#include "draw/colour/colour.h"

/* a at share 0, b at share 1. */
Rgb colour_mix(Rgb a, Rgb b, double share);

/* The hue with light added or taken away until its L* is this. */
Rgb colour_at_lightness(Rgb hue, double lightness);
/* The hue itself where dark paper lets it be seen, else lighter. */
Rgb colour_on_dark(Rgb rgb);
/* 0..6 of a bit that stands for a round; -1: it does not. */
int cause_round(const View *view, uint8_t bit);

#endif
