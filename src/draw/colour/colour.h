/* draw/colour/colour.h -- colours by meaning, safe for colour-blind readers and for print.
 *
 * Components have the colours of Okabe and Ito, or their hues in other lightness, values a
 * perceptual map, differences a diverging map symmetric around 0. Terminals of 256 colours get
 * fixed monotone ramps, because the nearest palette entries of a map are not in order.
 */
#ifndef DRAW_COLOUR_COLOUR_H
#define DRAW_COLOUR_COLOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/run/view.h"
#include "core/error.h"

typedef struct Rgb {
    uint8_t r, g, b;
} Rgb;

typedef enum ColourMap {
    MAP_VIRIDIS, MAP_CIVIDIS, MAP_MAGMA, MAP_GREY, MAP_DIVERGING, MAP_INK, MAP_COUNT
} ColourMap;

/* The readers that causes, categories and curves are coloured for: everybody on a screen, readers
 * without red or green cones, a printer without colours, a dark page, a white page that may be
 * printed with colours or without. */
typedef enum Hues { HUES_USUAL, HUES_SAFE, HUES_PRINT, HUES_DARK, HUES_PAGE } Hues;

const char *colour_map_name(ColourMap map);
bool        colour_map_parse(const char *name, ColourMap *out, Error *err);
/* t in [0,1]; NaN gives the colour of odd values. */
Rgb colour_of_value(ColourMap map, double t);
/* On a dark page without the part that is nearly as dark as the paper; in print differences whose
 * zero is no paper. */
Rgb colour_of_value_in(Hues hues, ColourMap map, double t);
Rgb colour_of_component(uint8_t bit);      /* one COMPONENT_* bit */
#define CATEGORY_HUES 12
Rgb colour_of_category(int64_t category);  /* CATEGORY_HUES of them, repeating */
Rgb colour_of_category_safe(int64_t category); /* for colour-blind readers */
Rgb colour_masked(bool dark_background);   /* pairs that are not allowed, beside values */
Rgb colour_load(void);                     /* bars beside a matrix */
Rgb colour_lost(void);                     /* what was missed or dropped */
Rgb colour_odd(void);                      /* NaN, infinity */
/* A hue, or a component's, at `strength` in (0,1]: light on white, dark on black. */
Rgb colour_shade(Rgb full, double strength, bool dark_background);

const char *component_name(uint8_t bit);   /* "window"; static */
/* ASCII: # window = global * random / strided % block @ bucket & cluster
                                            + other */
char        component_letter(uint8_t bit);

/* The monotone 256-colour ramp of a map; *length receives its length; static. */
const uint8_t *colour_ramp_256(ColourMap map, int *length);
uint8_t colour_component_256(uint8_t bit);
/* The meaning of a bit in a view: a cause, or what found a cell (View.found). */
const char *cause_name(const View *view, uint8_t bit); /* "window", "round 2", "missed"; static */
/* The meaning of each bit in several views together: where they differ, all of them ("selected
 * blocks / keys of own block"), or the common name of more than there is room for.
 * Zero-initialise; "": the bit is in no view. */
typedef struct BitNames {
    char name[8][64]; /* of bit 1 << index */
    bool many[8];     /* it is the common one */
} BitNames;
/* worn: as Panel.worn; NULL: each bit has its own colour. */
void        bit_names_add(BitNames *names, const View *view, uint8_t bits, const uint8_t *worn);
char        cause_letter(const View *view, uint8_t bit);
uint8_t     cause_256(const View *view, uint8_t bit);
Rgb         component_colour_in(Hues hues, uint8_t bit);
Rgb         cause_colour_in(Hues hues, const View *view, uint8_t bit);
Rgb         category_colour_in(Hues hues, int64_t category);
Rgb         lost_colour_in(Hues hues);
/* Rings around cells of any value: none of a map's colours hides them. */
Rgb         chosen_colour_in(Hues hues);
/* L* of CIELAB, 0 black to 100 white: the lightness that a grey print keeps. */
double      colour_lightness(Rgb rgb);
/* Contrast of WCAG 2, 1 to 21. */
double      colour_contrast(Rgb a, Rgb b);
/* Black or white, whichever is read better on this colour: contrast 4.5 or more. */
Rgb         colour_ink_on(Rgb paper);
/* The perceptually nearest entry of the 256-colour palette. */
uint8_t colour_nearest_256(Rgb rgb);

/* Helpers of the colour files; private to draw. */

/* a at share 0, b at share 1. */
Rgb colour_mix(Rgb a, Rgb b, double share);

/* The hue made lighter or darker until its L* is `lightness`. */
Rgb colour_at_lightness(Rgb hue, double lightness);
/* The hue, lightened if it is too dark for a dark page. */
Rgb colour_on_dark(Rgb rgb);

#endif
