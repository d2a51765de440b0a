/* colour_print.c -- hues for a printer without colours, apart in lightness, and for dark paper.
 *
 * A hue keeps its meaning and is darkened or lightened until its luminance is the one its place
 * in a table asks for: causes stand at least nine L* apart from each other and from the paper,
 * those that meet most often (window, global, random) about twenty.
 */
#include <math.h>

#include "draw/colour/colour_maps.h"
#include "draw/plot/plot.h"

#define MISSED_LIGHTNESS 13
#define FOUND_LIGHTNESS  50 /* found, by whatever */

static double to_linear(uint8_t channel)
{
    double x = channel / 255.0;

    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

static uint8_t from_linear(double x)
{
    double v = x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055;

    return (uint8_t)lround(255 * fmax(0, fmin(1, v)));
}

static double luminance(const double channels[3])
{
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2];
}

double colour_lightness(Rgb rgb)
{
    double y = luminance((double[]){ to_linear(rgb.r), to_linear(rgb.g), to_linear(rgb.b) });

    return y > 216.0 / 24389 ? 116 * cbrt(y) - 16 : y * 24389 / 27;
}

/* Light is added or taken away, as ink and paper do. */
Rgb colour_at_lightness(Rgb hue, double lightness)
{
    double in[3] = { to_linear(hue.r), to_linear(hue.g), to_linear(hue.b) };
    double wanted = pow((lightness + 16) / 116, 3), own = luminance(in);
    double white = wanted > own ? (wanted - own) / (1 - own) : 0;
    double share = wanted > own ? 1 - white : wanted / own;

    return (Rgb){ from_linear(white + share * in[0]), from_linear(white + share * in[1]),
                  from_linear(white + share * in[2]) };
}

static double component_lightness(uint8_t bit)
{
    switch (bit) {
    case COMPONENT_CLUSTER: return 13;
    case COMPONENT_WINDOW: return 24;
    case COMPONENT_GLOBAL: return 45;
    case COMPONENT_STRIDED: return 55;
    case COMPONENT_RANDOM: return 65;
    case COMPONENT_BUCKET: return 75;
    case COMPONENT_BLOCK: return 86;
    default: return 35;
    }
}

#define LEAST_ON_DARK 44 /* L*: a contrast of 3 with the dark paper, as lines and areas need */

Rgb colour_on_dark(Rgb rgb)
{
    return colour_lightness(rgb) < LEAST_ON_DARK ? colour_at_lightness(rgb, LEAST_ON_DARK) : rgb;
}

Rgb component_colour_in(Hues hues, uint8_t bit)
{
    static const Rgb bright_cluster = { 0xB8, 0x3A, 0x78 }; /* lighter and no greyer */
    Rgb              rgb = colour_of_component(bit);

    if (hues == HUES_DARK)
        return bit == COMPONENT_CLUSTER ? bright_cluster : colour_on_dark(rgb);
    return hues == HUES_PRINT ? colour_at_lightness(rgb, component_lightness(bit)) : rgb;
}

/* Of views that tell what found a cell: rounds from dark to light, what was missed darkest. */
static double found_lightness(const View *view, uint8_t bit)
{
    int round = cause_round(view, bit);

    if (round >= 0)
        return view->found->rounds == 1 ? FOUND_LIGHTNESS : 29 + 9.2 * round;
    if (bit == COMPONENT_CLUSTER)
        return component_lightness(0); /* that of "other", which is missed here */
    return bit == COMPONENT_OTHER ? MISSED_LIGHTNESS : component_lightness(bit);
}

Rgb cause_colour_in(Hues hues, const View *view, uint8_t bit)
{
    Rgb rgb = cause_colour(view, bit);

    if (hues == HUES_DARK && view->found)
        return colour_on_dark(rgb);
    if (hues != HUES_PRINT && hues != HUES_DARK)
        return rgb;
    return view->found ? colour_at_lightness(rgb, found_lightness(view, bit))
                       : component_colour_in(hues, bit);
}

/* Neighbours in number are neighbours in the picture: they are far apart. */
static double category_lightness(int64_t category)
{
    int at = (int)(category % CATEGORY_HUES);

    return 14 + 6.4 * (at / 2 + at % 2 * 6);
}

Rgb category_colour_in(Hues hues, int64_t category)
{
    static const Rgb indigo = { 0x4F, 0x5B, 0xD5 }; /* for the one nearest to black */

    if (hues == HUES_SAFE)
        return colour_of_category_safe(category);
    if (hues == HUES_DARK && category >= 0)
        return category % CATEGORY_HUES == 7 ? indigo
                                             : colour_on_dark(colour_of_category(category));
    if (hues == HUES_DARK || hues == HUES_USUAL || category < 0)
        return colour_of_category(category);
    return colour_at_lightness(colour_of_category(category), category_lightness(category));
}

Rgb lost_colour_in(Hues hues)
{
    Rgb rgb = hues == HUES_DARK ? colour_on_dark(colour_lost()) : colour_lost();

    return hues == HUES_PRINT ? colour_at_lightness(rgb, MISSED_LIGHTNESS) : rgb;
}

/* Lines are thin: none is light, and marks tell them apart as well. */
Rgb plot_colour_printed(int series)
{
    static const double lightness[] = { 16, 49, 27, 60, 38, 71 };

    return colour_at_lightness(plot_colour(series, false), lightness[series % 6]);
}
