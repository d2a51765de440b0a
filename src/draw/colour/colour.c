/* colour.c -- names, components, categories and the 256-colour terminal.
 *
 * The component colours are those of Okabe and Ito; the 256-colour ramps were
 * chosen so that lightness never falls along them, which nearest-colour
 * quantisation of a map does not guarantee.
 */
#include "draw/colour/colour.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "draw/colour/colour_maps.h"

static const char *const map_names[MAP_COUNT] = {
    [MAP_VIRIDIS] = "viridis", [MAP_CIVIDIS] = "cividis",     [MAP_MAGMA] = "magma",
    [MAP_GREY] = "grey",       [MAP_DIVERGING] = "diverging", [MAP_INK] = "ink",
};

const char *colour_map_name(ColourMap map)
{
    return map >= 0 && map < MAP_COUNT ? map_names[map] : "?";
}

bool colour_map_parse(const char *name, ColourMap *out, Error *err)
{
    for (int map = 0; map < MAP_COUNT; map++)
        if (strcmp(name, map_names[map]) == 0) {
            *out = (ColourMap)map;
            return true;
        }
    return error_set(err, ERR_USAGE,
                     "there is no colour map '%.40s'; choose viridis, cividis, magma, grey, "
                     "diverging or ink", name);
}

static const struct Component {
    uint8_t     bit, index256;
    char        letter;
    const char *name;
    Rgb         rgb;
} components[] = {
    { COMPONENT_WINDOW, 25, '#', "window", { 0x00, 0x72, 0xB2 } },
    { COMPONENT_GLOBAL, 166, '=', "global", { 0xD5, 0x5E, 0x00 } },
    { COMPONENT_RANDOM, 36, '*', "random", { 0x00, 0x9E, 0x73 } },
    { COMPONENT_STRIDED, 175, '/', "strided", { 0xCC, 0x79, 0xA7 } },
    { COMPONENT_BLOCK, 214, '%', "block", { 0xE6, 0x9F, 0x00 } },
    { COMPONENT_BUCKET, 74, '@', "bucket", { 0x56, 0xB4, 0xE9 } },
    { COMPONENT_CLUSTER, 125, '&', "cluster", { 0x88, 0x22, 0x55 } },
    { COMPONENT_OTHER, 247, '+', "other", { 0x99, 0x99, 0x99 } },
};

static const struct Component *component_of(uint8_t bit)
{
    size_t last = sizeof(components) / sizeof(*components) - 1, i = 0;

    while (i < last && components[i].bit != bit)
        i++;
    return &components[i];
}

Rgb colour_of_component(uint8_t bit)
{
    return component_of(bit)->rgb;
}

const char *component_name(uint8_t bit)
{
    return component_of(bit)->name;
}

char component_letter(uint8_t bit)
{
    return component_of(bit)->letter;
}

uint8_t colour_component_256(uint8_t bit)
{
    return component_of(bit)->index256;
}

/* The faintest shade keeps 30 % of the hue: less could pass for background. */
Rgb colour_shade(Rgb full, double strength, bool dark_background)
{
    Rgb    from = dark_background ? (Rgb){ 0, 0, 0 } : (Rgb){ 255, 255, 255 };
    double share = strength > 0 ? fmin(strength, 1) : 0;

    return colour_mix(from, full, 0.3 + 0.7 * share);
}

/* ---- what found a cell ------------------------------------------------------ */

static const Rgb missed_rgb = { 0xD0, 0x1C, 0x2E };

#define MISSED_256 160
#define JUST_FOUND 7 /* category whose colour is that of what was found, by whatever */

static Rgb round_colour(const View *view, int round)
{
    return colour_of_category(view->found->rounds == 1 ? JUST_FOUND : round);
}

int cause_round(const View *view, uint8_t bit)
{
    int round = 0;

    if (!view->found || !view->found->rounds || bit == COMPONENT_OTHER)
        return -1;
    for (int b = 1; b < bit; b <<= 1)
        round += b != COMPONENT_OTHER;
    return round;
}

const char *cause_name(const View *view, uint8_t bit)
{
    static const char *const rounds[VIEW_FOUND_ROUNDS] = { "round 1", "round 2", "round 3",
                                                           "round 4", "round 5", "round 6",
                                                           "round 7 or later" };
    int round = cause_round(view, bit);

    if (round >= 0)
        return view->found->rounds == 1 ? "found" : rounds[round];
    if (view->components && view->components[__builtin_ctz(bit)])
        return view->components[__builtin_ctz(bit)];
    if (bit == COMPONENT_OTHER && view->other)
        return view->other;
    return bit == COMPONENT_WINDOW && view->window ? view->window : component_name(bit);
}

void bit_names_add(BitNames *names, const View *view, uint8_t bits)
{
    for (int b = 0; b < 8; b++) {
        uint8_t     bit = (uint8_t)(1 << b);
        const char *name = cause_name(view, bit);

        if (!(bits & bit))
            continue;
        if (names->name[b] && strcmp(names->name[b], name) != 0)
            name = component_name(bit);
        names->name[b] = name;
    }
}

char cause_letter(const View *view, uint8_t bit)
{
    int round = cause_round(view, bit);

    if (round >= 0)
        return view->found->rounds == 1 ? 'o' : (char)('1' + round);
    return view->found && bit == COMPONENT_OTHER ? 'x' : component_letter(bit);
}

Rgb cause_colour(const View *view, uint8_t bit)
{
    int round = cause_round(view, bit);

    if (round >= 0)
        return round_colour(view, round);
    if (view->found && bit == COMPONENT_CLUSTER) /* its own is too near what was missed */
        return colour_of_category(0);
    return view->found && bit == COMPONENT_OTHER ? missed_rgb : colour_of_component(bit);
}

uint8_t cause_256(const View *view, uint8_t bit)
{
    int round = cause_round(view, bit);

    if (round >= 0)
        return colour_nearest_256(round_colour(view, round));
    if (view->found && bit == COMPONENT_CLUSTER)
        return colour_nearest_256(cause_colour(view, bit));
    return view->found && bit == COMPONENT_OTHER ? MISSED_256 : colour_component_256(bit);
}

Rgb colour_load(void)
{
    return (Rgb){ 0x5A, 0x7F, 0xA8 };
}

Rgb colour_lost(void)
{
    return missed_rgb;
}

Rgb colour_odd(void)
{
    return (Rgb){ 0xE8, 0x00, 0xC8 };
}

Rgb colour_of_category(int64_t category)
{
    static const Rgb hues[CATEGORY_HUES] = {
        { 0x33, 0x60, 0xA9 }, { 0xE0, 0x7B, 0x39 }, { 0x2A, 0x92, 0x5C }, { 0xC0, 0x4E, 0x6E },
        { 0x7C, 0xC4, 0xE4 }, { 0x7A, 0x4B, 0x94 }, { 0xD8, 0xC2, 0x4C }, { 0x1F, 0x2A, 0x63 },
        { 0x9A, 0xCB, 0x7A }, { 0x8C, 0x3A, 0x2B }, { 0xD9, 0xA3, 0xD0 }, { 0x6B, 0x74, 0x7D },
    };

    return category < 0 ? (Rgb){ 0xC8, 0xC8, 0xC8 } : hues[category % CATEGORY_HUES];
}

/* Those of Okabe and Ito and some more; all pairs differ by 15 or more (CIELAB) also for
 * readers without red or without green cones. */
Rgb colour_of_category_safe(int64_t category)
{
    static const Rgb hues[CATEGORY_HUES] = {
        { 0x00, 0x72, 0xB2 }, { 0xE6, 0x9F, 0x00 }, { 0x88, 0x22, 0x55 }, { 0x56, 0xB4, 0xE9 },
        { 0xD5, 0x5E, 0x00 }, { 0xF0, 0xE4, 0x42 }, { 0x1F, 0x2A, 0x63 }, { 0x00, 0x9E, 0x73 },
        { 0xCC, 0x79, 0xA7 }, { 0x5A, 0x1E, 0x00 }, { 0xE1, 0xE1, 0xA0 }, { 0x1E, 0x1E, 0xE1 },
    };

    return category < 0 ? (Rgb){ 0xC8, 0xC8, 0xC8 } : hues[category % CATEGORY_HUES];
}

const uint8_t *colour_ramp_256(ColourMap map, int *length)
{
    static const uint8_t viridis[] = { 53, 24, 60, 30, 67, 35, 72, 77, 148, 184, 220, 191 };
    static const uint8_t magma[] = { 16,  233, 234, 53,  54,  89, 125,
                                     167, 203, 209, 216, 222, 229 };
    static const uint8_t cividis[] = { 239, 240, 241, 242, 243, 244, 102,
                                       246, 247, 144, 179, 185, 221 };
    static const uint8_t grey[] = { 16,  232, 233, 234, 235, 236, 237, 238, 239,
                                    240, 241, 242, 243, 244, 245, 246, 247, 248,
                                    249, 250, 251, 252, 253, 254, 255, 231 };
    static const uint8_t ink[] = { 253, 252, 251, 250, 248, 246, 244, 242, 240, 238, 236, 234, 16 };
    static const uint8_t diverging[] = { 60,  97,  98,  140, 146, 189, 255,
                                         223, 215, 172, 166, 130, 94 };
    static const struct {
        const uint8_t *entries;
        int            length;
    } ramps[MAP_COUNT] = {
        [MAP_VIRIDIS] = { viridis, sizeof(viridis) }, [MAP_CIVIDIS] = { cividis, sizeof(cividis) },
        [MAP_MAGMA] = { magma, sizeof(magma) },       [MAP_GREY] = { grey, sizeof(grey) },
        [MAP_DIVERGING] = { diverging, sizeof(diverging) }, [MAP_INK] = { ink, sizeof(ink) },
    };

    *length = ramps[map].length;
    return ramps[map].entries;
}

static const int cube[6] = { 0, 95, 135, 175, 215, 255 };

static Rgb palette_256(int index)
{
    int level;

    if (index >= 232) {
        level = 8 + 10 * (index - 232);
        return (Rgb){ (uint8_t)level, (uint8_t)level, (uint8_t)level };
    }
    index -= 16;
    return (Rgb){ (uint8_t)cube[index / 36], (uint8_t)cube[index / 6 % 6],
                  (uint8_t)cube[index % 6] };
}

/* Squared RGB distance weighted by the mean red: close to a perceptual
 * distance at a fraction of the cost of CIELAB. */
static int colour_distance(Rgb a, Rgb b)
{
    int red = (a.r + b.r) / 2, dr = a.r - b.r, dg = a.g - b.g, db = a.b - b.b;

    return (((512 + red) * dr * dr) >> 8) + 4 * dg * dg + (((767 - red) * db * db) >> 8);
}

static int cube_below(int value)
{
    int level = 4;

    while (level > 0 && cube[level] > value)
        level--;
    return level;
}

/* The eight corners of the surrounding cube cell and the two nearest greys
 * hold the nearest entry or one as good. */
uint8_t colour_nearest_256(Rgb rgb)
{
    int r = cube_below(rgb.r), g = cube_below(rgb.g), b = cube_below(rgb.b);
    int mean = (rgb.r + 2 * rgb.g + rgb.b) / 4;
    int step = mean < 8 ? 0 : mean > 238 ? 22 : (mean - 8) / 10;
    int grey = 232 + step, best = grey;

    for (int candidate = 0; candidate < 9; candidate++) {
        int index = candidate == 8 ? grey + 1
                                   : 16 + 36 * (r + (candidate >> 2)) +
                                         6 * (g + (candidate >> 1 & 1)) + b + (candidate & 1);

        if (index <= 255 &&
            colour_distance(palette_256(index), rgb) < colour_distance(palette_256(best), rgb))
            best = index;
    }
    return (uint8_t)best;
}
