/* draw/colour/colour.h -- colours by meaning, safe for colour-blind readers and print.
 *
 * Components use the Okabe-Ito set; values use perceptual maps; differences a
 * diverging map symmetric around 0.  256-colour terminals get fixed monotone
 * ramps, because nearest-colour quantisation breaks their order.
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

/* Whom the colours of causes, categories and curves are for: everybody on a screen, readers
 * without red or green cones, a printer without colours, a page of dark paper. */
typedef enum Hues { HUES_USUAL, HUES_SAFE, HUES_PRINT, HUES_DARK } Hues;

const char *colour_map_name(ColourMap map);
bool        colour_map_parse(const char *name, ColourMap *out, Error *err);
/* t in [0,1]; NaN gives the colour of odd values. */
Rgb colour_of_value(ColourMap map, double t);
Rgb colour_of_component(uint8_t bit);      /* one COMPONENT_* bit */
#define CATEGORY_HUES 12
Rgb colour_of_category(int64_t category);  /* so many hues, repeating */
Rgb colour_of_category_safe(int64_t category); /* that colour-blind readers tell apart */
Rgb colour_load(void);                     /* bars beside a matrix */
Rgb colour_lost(void);                     /* what was missed or dropped */
Rgb colour_odd(void);                      /* NaN, infinity */
/* A hue, or a component's, at `strength` in (0,1]: light on white, dark on black. */
Rgb colour_shade(Rgb full, double strength, bool dark_background);

const char *component_name(uint8_t bit);   /* "window"; static */
/* ASCII: # window = global * random / strided % block @ bucket & cluster
                                            + other */
char        component_letter(uint8_t bit);

/* The monotone 256-colour ramp of a map; *length entries, static. */
const uint8_t *colour_ramp_256(ColourMap map, int *length);
uint8_t colour_component_256(uint8_t bit);
/* A bit as a view means it: a cause, or what found a cell (View.found). */
const char *cause_name(const View *view, uint8_t bit); /* "window", "round 2", "missed"; static */
/* One colour, one meaning: what each bit means in several views together; where they
 * mean different things by it, its common name.  Zero-initialise; NULL: in none. */
typedef struct BitNames {
    const char *name[8]; /* of bit 1 << index */
} BitNames;
void        bit_names_add(BitNames *names, const View *view, uint8_t bits);
char        cause_letter(const View *view, uint8_t bit);
Rgb         cause_colour(const View *view, uint8_t bit);
uint8_t     cause_256(const View *view, uint8_t bit);
Rgb         component_colour_in(Hues hues, uint8_t bit);
Rgb         cause_colour_in(Hues hues, const View *view, uint8_t bit);
Rgb         category_colour_in(Hues hues, int64_t category);
Rgb         lost_colour_in(Hues hues);
/* L* of CIELAB, 0 black to 100 white: what is left without colours. */
double      colour_lightness(Rgb rgb);
/* The palette entry nearest in a perceptual sense, for anything else. */
uint8_t colour_nearest_256(Rgb rgb);

/* Helpers shared by the colour files; private to draw. */

/* a at share 0, b at share 1. */
Rgb colour_mix(Rgb a, Rgb b, double share);

/* The hue with light added or taken away until its L* is this. */
Rgb colour_at_lightness(Rgb hue, double lightness);
/* The hue itself where dark paper lets it be seen, else lighter. */
Rgb colour_on_dark(Rgb rgb);

#endif
