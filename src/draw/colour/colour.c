/* colour.c -- components, categories, the 256-colour palette, value maps and hues for print; see
 * colour.h.
 *
 * The component colours are those of Okabe and Ito. The lightness of a 256-colour ramp never
 * falls, which the nearest palette entries of a map do not guarantee.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "draw/colour/colour.h"
#include "draw/plot/plot.h"

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
    { COMPONENT_CLUSTER, 125, '&', "cluster", { 0x33, 0x22, 0x88 } },
    { COMPONENT_OTHER, 109, '+', "other", { 0x46, 0x70, 0x70 } }, /* no grey: colour_masked */
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

/* The faintest shade keeps 30 % of the hue: less looks like background. */
Rgb colour_shade(Rgb full, double strength, bool dark_background)
{
    Rgb    from = dark_background ? (Rgb){ 0, 0, 0 } : (Rgb){ 255, 255, 255 };
    double share = strength > 0 ? fmin(strength, 1) : 0;

    return colour_mix(from, full, 0.3 + 0.7 * share);
}

/* ---- what found a cell ------------------------------------------------------ */

/* Between cluster and window in lightness, so that a grey print keeps the three apart. */
static const Rgb missed_rgb = { 0x9E, 0x0F, 0x28 }, missed_on_dark = { 0xFF, 0x68, 0x70 };
static const Rgb missed_on_page = { 0x57, 0x00, 0x0E };

#define MISSED_256 160

/* Of its own, because rounds and causes may share a key: each is 34 or more (CIELAB) from the
 * others and from every cause, on light and on dark paper, and 15 for readers without red or
 * without green cones. */
static Rgb round_colour(const View *view, int round)
{
    static const Rgb found = { 0x30, 0x90, 0x18 }; /* by any round */
    static const Rgb rounds[VIEW_FOUND_ROUNDS] = {
        { 0xB4, 0x00, 0xF0 }, { 0xFC, 0xB4, 0x78 }, { 0xF0, 0x24, 0x90 }, { 0x48, 0xF0, 0xFC },
        { 0xCC, 0xE4, 0x00 }, { 0xD8, 0x90, 0xFC }, { 0x24, 0xFC, 0xB4 },
    };

    return view->found->rounds == 1 ? found : rounds[round];
}

/* 0..6 of a bit that stands for a round; -1: it does not. */
static int cause_round(const View *view, uint8_t bit)
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

#define NAME_SEPARATOR " / "

/* The name is one of those between the separators. */
static bool is_among(const char *names, const char *name)
{
    size_t length = strlen(name);

    while (names) {
        const char *next = strstr(names, NAME_SEPARATOR);

        if ((next ? (size_t)(next - names) : strlen(names)) == length &&
            !strncmp(names, name, length))
            return true;
        names = next ? next + strlen(NAME_SEPARATOR) : NULL;
    }
    return false;
}

static void add_name(const char *name, BitNames *names, int b)
{
    char  *own = names->name[b];
    size_t used = strlen(own), size = sizeof(names->name[b]);

    if (is_among(own, name) || names->many[b])
        return;
    names->many[b] = used + strlen(NAME_SEPARATOR) + strlen(name) >= size;
    if (names->many[b])
        snprintf(own, size, "%s", component_name((uint8_t)(1 << b)));
    else
        snprintf(own + used, size - used, "%s%s", used ? NAME_SEPARATOR : "", name);
}

void bit_names_add(BitNames *names, const View *view, uint8_t bits, const uint8_t *worn)
{
    for (int b = 0; b < 8; b++)
        if (bits & 1 << b)
            add_name(cause_name(view, (uint8_t)(1 << b)), names,
                     worn && worn[b] ? __builtin_ctz(worn[b]) : b);
}

char cause_letter(const View *view, uint8_t bit)
{
    int round = cause_round(view, bit);

    if (round >= 0)
        return view->found->rounds == 1 ? 'o' : (char)('1' + round);
    return view->found && bit == COMPONENT_OTHER ? 'x' : component_letter(bit);
}

static Rgb cause_colour(const View *view, uint8_t bit)
{
    int round = cause_round(view, bit);

    if (round >= 0)
        return round_colour(view, round);
    return view->found && bit == COMPONENT_OTHER ? missed_rgb : colour_of_component(bit);
}

uint8_t cause_256(const View *view, uint8_t bit)
{
    int round = cause_round(view, bit);

    if (round >= 0)
        return colour_nearest_256(round_colour(view, round));
    return view->found && bit == COMPONENT_OTHER ? MISSED_256 : colour_component_256(bit);
}

Rgb colour_masked(bool dark)
{
    return dark ? (Rgb){ 64, 64, 64 } : (Rgb){ 200, 200, 200 };
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
        { 0x33, 0x60, 0xA9 }, { 0xE0, 0x7B, 0x39 }, { 0x2A, 0x92, 0x5C }, { 0xC8, 0x5A, 0x82 },
        { 0x8C, 0xE0, 0xD8 }, { 0x74, 0x30, 0x8E }, { 0xD8, 0xC2, 0x4C }, { 0x14, 0x1A, 0x4A },
        { 0x9A, 0xCB, 0x7A }, { 0x6B, 0x4A, 0x12 }, { 0xD9, 0xA3, 0xD0 }, { 0x6B, 0x74, 0x7D },
    };

    return category < 0 ? (Rgb){ 0xC8, 0xC8, 0xC8 } : hues[category % CATEGORY_HUES];
}

/* The Okabe-Ito colours and some more; every pair differs by 15 or more (CIELAB), also for readers
 * without red or without green cones.  The sky blue of Okabe and Ito is the component "bucket". */
Rgb colour_of_category_safe(int64_t category)
{
    static const Rgb hues[CATEGORY_HUES] = {
        { 0x00, 0x72, 0xB2 }, { 0xE6, 0x9F, 0x00 }, { 0x3C, 0xE1, 0xFF }, { 0x4B, 0x78, 0xFF },
        { 0xD5, 0x5E, 0x00 }, { 0xF0, 0xE4, 0x42 }, { 0x1F, 0x2A, 0x63 }, { 0x00, 0x9E, 0x73 },
        { 0xCC, 0x79, 0xA7 }, { 0x5A, 0x1E, 0x00 }, { 0xE1, 0xE1, 0xA0 }, { 0x1E, 0x1E, 0xE1 },
    };

    return category < 0 ? (Rgb){ 0xC8, 0xC8, 0xC8 } : hues[category % CATEGORY_HUES];
}

const uint8_t *colour_ramp_256(ColourMap map, int *length)
{
    static const uint8_t viridis[] = { 53, 54, 55, 24, 30, 36, 72, 77, 113, 149, 184, 226 };
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

/* Squared RGB distance weighted by the mean red: near a perceptual distance at a fraction of the
 * cost of CIELAB. */
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

/* The nearest entry, or one as near, is among the eight corners of the surrounding cube cell and
 * the two nearest greys. */
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

/* The value maps: anchor colours and interpolation.
 *
 * Viridis, magma (van der Walt, Smith 2015) and cividis (Nunez, Anderton,
 * Renslow 2018) are sampled at 52 points of their published 256; linear steps
 * between them stay within 4/255 of the originals.  The diverging map runs
 * from purple over a neutral grey to orange; its lightness falls linearly and
 * equally on both sides, so +x and -x look equally strong.
 */

static const Rgb viridis[] = {
    { 68, 1, 84 }, { 70, 8, 92 }, { 71, 16, 99 }, { 72, 23, 105 }, { 72, 29, 111 },
    { 72, 36, 117 }, { 71, 42, 122 }, { 70, 48, 126 }, { 69, 55, 129 }, { 67, 61, 132 },
    { 65, 66, 135 }, { 63, 72, 137 }, { 61, 78, 138 }, { 58, 83, 139 }, { 56, 89, 140 },
    { 53, 94, 141 }, { 51, 99, 141 }, { 49, 104, 142 }, { 46, 109, 142 }, { 44, 113, 142 },
    { 42, 118, 142 }, { 41, 123, 142 }, { 39, 128, 142 }, { 37, 132, 142 }, { 35, 137, 142 },
    { 33, 142, 141 }, { 32, 146, 140 }, { 31, 151, 139 }, { 30, 156, 137 }, { 31, 161, 136 },
    { 33, 165, 133 }, { 36, 170, 131 }, { 40, 174, 128 }, { 46, 179, 124 }, { 53, 183, 121 },
    { 61, 188, 116 }, { 70, 192, 111 }, { 80, 196, 106 }, { 90, 200, 100 }, { 101, 203, 94 },
    { 112, 207, 87 }, { 124, 210, 80 }, { 137, 213, 72 }, { 149, 216, 64 }, { 162, 218, 55 },
    { 176, 221, 47 }, { 189, 223, 38 }, { 202, 225, 31 }, { 216, 226, 25 }, { 229, 228, 25 },
    { 241, 229, 29 }, { 253, 231, 37 },
};

static const Rgb cividis[] = {
    { 0, 34, 78 }, { 0, 38, 86 }, { 0, 42, 95 }, { 0, 45, 104 }, { 0, 48, 112 },
    { 8, 51, 112 }, { 22, 55, 112 }, { 32, 58, 111 }, { 39, 62, 110 }, { 46, 65, 109 },
    { 52, 69, 108 }, { 58, 72, 108 }, { 63, 76, 108 }, { 68, 79, 108 }, { 73, 83, 108 },
    { 78, 86, 108 }, { 83, 90, 109 }, { 87, 93, 109 }, { 92, 97, 110 }, { 96, 100, 111 },
    { 101, 104, 112 }, { 105, 107, 113 }, { 109, 111, 114 }, { 114, 114, 116 }, { 118, 118, 118 },
    { 122, 122, 120 }, { 126, 125, 120 }, { 131, 129, 121 }, { 136, 133, 120 }, { 141, 136, 120 },
    { 146, 140, 120 }, { 150, 144, 119 }, { 155, 148, 118 }, { 160, 152, 117 }, { 165, 156, 116 },
    { 170, 160, 115 }, { 175, 164, 113 }, { 181, 168, 111 }, { 186, 172, 109 }, { 191, 176, 107 },
    { 196, 180, 104 }, { 201, 185, 101 }, { 207, 189, 98 }, { 212, 193, 95 }, { 218, 198, 91 },
    { 223, 202, 87 }, { 229, 207, 82 }, { 234, 211, 76 }, { 240, 216, 70 }, { 246, 221, 63 },
    { 252, 226, 54 }, { 254, 232, 56 },
};

static const Rgb magma[] = {
    { 0, 0, 4 }, { 2, 2, 11 }, { 5, 4, 22 }, { 9, 7, 32 }, { 14, 11, 43 },
    { 20, 14, 54 }, { 26, 16, 66 }, { 33, 17, 78 }, { 41, 17, 90 }, { 49, 17, 101 },
    { 57, 15, 110 }, { 66, 15, 117 }, { 74, 16, 121 }, { 82, 19, 124 }, { 90, 22, 126 },
    { 98, 25, 128 }, { 106, 28, 129 }, { 114, 31, 129 }, { 121, 34, 130 }, { 129, 37, 129 },
    { 137, 40, 129 }, { 145, 43, 129 }, { 153, 45, 128 }, { 161, 48, 126 }, { 170, 51, 125 },
    { 178, 53, 123 }, { 186, 56, 120 }, { 194, 59, 117 }, { 202, 62, 114 }, { 210, 66, 111 },
    { 217, 70, 107 }, { 224, 76, 103 }, { 231, 82, 99 }, { 236, 88, 96 }, { 241, 96, 93 },
    { 244, 105, 92 }, { 247, 114, 92 }, { 249, 123, 93 }, { 251, 133, 96 }, { 252, 142, 100 },
    { 253, 152, 105 }, { 254, 161, 110 }, { 254, 170, 116 }, { 254, 180, 123 }, { 254, 189, 130 },
    { 254, 198, 138 }, { 254, 207, 146 }, { 254, 216, 154 }, { 253, 226, 163 }, { 253, 235, 172 },
    { 252, 244, 182 }, { 252, 253, 191 },
};

static const Rgb diverging[] = {
    { 83, 57, 126 }, { 93, 66, 141 }, { 103, 75, 155 }, { 113, 85, 169 }, { 123, 95, 181 },
    { 133, 106, 193 }, { 144, 117, 203 }, { 154, 129, 213 }, { 164, 141, 221 }, { 174, 153, 228 },
    { 185, 166, 234 }, { 195, 179, 239 }, { 205, 192, 242 }, { 216, 205, 245 }, { 226, 219, 246 },
    { 236, 233, 247 }, { 246, 246, 246 }, { 249, 232, 215 }, { 249, 217, 186 }, { 248, 202, 159 },
    { 245, 188, 133 }, { 241, 174, 110 }, { 236, 159, 88 }, { 229, 146, 69 }, { 222, 132, 51 },
    { 213, 119, 35 }, { 203, 106, 19 }, { 193, 93, 3 }, { 182, 81, 0 }, { 169, 70, 0 },
    { 157, 60, 0 }, { 143, 50, 0 }, { 129, 41, 0 },
};

/* Neither end has the colour of a page, dark or white, so every cell shows. */
static const Rgb grey[] = { { 52, 52, 52 }, { 222, 222, 222 } };

/* For print: white paper where nothing is allowed, ink in proportion to weight. */
static const Rgb ink[] = { { 222, 222, 222 }, { 0, 0, 0 } };

static const struct {
    const Rgb *anchors;
    int        count;
} maps[MAP_COUNT] = {
    [MAP_VIRIDIS] = { viridis, sizeof(viridis) / sizeof(*viridis) },
    [MAP_CIVIDIS] = { cividis, sizeof(cividis) / sizeof(*cividis) },
    [MAP_MAGMA] = { magma, sizeof(magma) / sizeof(*magma) },
    [MAP_GREY] = { grey, sizeof(grey) / sizeof(*grey) },
    [MAP_DIVERGING] = { diverging, sizeof(diverging) / sizeof(*diverging) },
    [MAP_INK] = { ink, sizeof(ink) / sizeof(*ink) },
};

Rgb colour_mix(Rgb a, Rgb b, double share)
{
    return (Rgb){ (uint8_t)lround(a.r + share * (b.r - a.r)),
                  (uint8_t)lround(a.g + share * (b.g - a.g)),
                  (uint8_t)lround(a.b + share * (b.b - a.b)) };
}

Rgb colour_of_value(ColourMap map, double t)
{
    int    last = maps[map].count - 1, index;
    double place;

    if (isnan(t))
        return colour_odd();
    place = fmin(fmax(t, 0), 1) * last;
    index = (int)place < last ? (int)place : last - 1;
    return colour_mix(maps[map].anchors[index], maps[map].anchors[index + 1], place - index);
}

/* On near-black paper: the part of each map whose L* is that of the diverging map's ends or more.
 * The darkest value stands out, too. */
static Rgb value_on_dark(ColourMap map, double t)
{
    static const struct {
        double from, to;
    } parts[MAP_COUNT] = {
        [MAP_VIRIDIS] = { 0.18, 1 }, [MAP_CIVIDIS] = { 0.2, 1 },   [MAP_MAGMA] = { 0.34, 1 },
        [MAP_GREY] = { 0.11, 1 },    [MAP_DIVERGING] = { 0, 1 },   [MAP_INK] = { 0, 0.68 },
    };

    t = fmin(fmax(t, 0), 1);
    return colour_of_value(map, parts[map].from + t * (parts[map].to - parts[map].from));
}

/* In print zero is as grey as the least ink: white is what is not allowed, there as elsewhere. */
static Rgb difference_in_print(double t)
{
    Rgb    rgb = colour_of_value(MAP_DIVERGING, t);
    double share = (double)ink[0].r / diverging[sizeof(diverging) / sizeof(*diverging) / 2].r;

    return colour_mix((Rgb){ 0, 0, 0 }, rgb, share);
}

Rgb colour_of_value_in(Hues hues, ColourMap map, double t)
{
    if (hues == HUES_DARK && !isnan(t))
        return value_on_dark(map, t);
    if (hues == HUES_PRINT && map == MAP_DIVERGING && !isnan(t))
        return difference_in_print(t);
    return colour_of_value(map, t);
}

/* Hues for a printer without colours, told apart by lightness, for a dark page, and for a white
 * page of both uses.
 *
 * In print each hue is darkened or lightened to the luminance that its place in a table asks for:
 * causes differ by at least nine L* from each other and from the paper, those that occur together
 * most (window, global, random) by about twenty.
 */

#define MISSED_LIGHTNESS 4
#define FOUND_LIGHTNESS  50 /* of a cell found by any round */

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

static double luminance_of(Rgb rgb)
{
    return luminance((double[]){ to_linear(rgb.r), to_linear(rgb.g), to_linear(rgb.b) });
}

double colour_contrast(Rgb a, Rgb b)
{
    double x = luminance_of(a) + 0.05, y = luminance_of(b) + 0.05;

    return x > y ? x / y : y / x;
}

Rgb colour_ink_on(Rgb paper)
{
    Rgb black = { 0, 0, 0 }, white = { 255, 255, 255 };

    return colour_contrast(black, paper) >= colour_contrast(white, paper) ? black : white;
}

double colour_lightness(Rgb rgb)
{
    double y = luminance_of(rgb);

    return y > 216.0 / 24389 ? 116 * cbrt(y) - 16 : y * 24389 / 27;
}

/* Ink and paper add or remove light evenly. */
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
    case COMPONENT_WINDOW: return 24;
    case COMPONENT_CLUSTER: return 35;
    case COMPONENT_GLOBAL: return 45;
    case COMPONENT_STRIDED: return 55;
    case COMPONENT_RANDOM: return 65;
    case COMPONENT_BUCKET: return 75;
    case COMPONENT_BLOCK: return 86;
    default: return 14;
    }
}

/* The hues of Okabe and Ito, each as vivid as its lightness allows. */
static Rgb component_on_page(uint8_t bit)
{
    switch (bit) {
    case COMPONENT_CLUSTER: return (Rgb){ 0x70, 0x4F, 0xB2 };
    case COMPONENT_WINDOW: return (Rgb){ 0x00, 0x4A, 0x7D };
    case COMPONENT_STRIDED: return (Rgb){ 0xA1, 0x5B, 0x8E };
    case COMPONENT_GLOBAL: return (Rgb){ 0xDB, 0x63, 0x08 };
    case COMPONENT_RANDOM: return (Rgb){ 0x39, 0xBB, 0x8E };
    case COMPONENT_BLOCK: return (Rgb){ 0xF8, 0xAE, 0x1F };
    case COMPONENT_BUCKET: return (Rgb){ 0x9F, 0xD7, 0xFF };
    default: return (Rgb){ 0x6C, 0xA3, 0x9D };
    }
}

#define LEAST_ON_DARK 44 /* L*: contrast 3 with a dark page, the minimum for lines and areas */

Rgb colour_on_dark(Rgb rgb)
{
    return colour_lightness(rgb) < LEAST_ON_DARK ? colour_at_lightness(rgb, LEAST_ON_DARK) : rgb;
}

Rgb component_colour_in(Hues hues, uint8_t bit)
{
    static const Rgb bright_cluster = { 0xE8, 0xC8, 0xF8 }; /* lighter than all others */
    static const Rgb bright_other = { 0xA4, 0xB8, 0xA8 };
    Rgb              rgb = colour_of_component(bit);

    if (hues == HUES_DARK)
        return bit == COMPONENT_CLUSTER ? bright_cluster
               : bit == COMPONENT_OTHER ? bright_other
                                        : colour_on_dark(rgb);
    if (hues == HUES_PAGE)
        return component_on_page(bit);
    return hues == HUES_PRINT ? colour_at_lightness(rgb, component_lightness(bit)) : rgb;
}

/* For views of found cells: rounds from dark to light, each midway between two causes; missed
 * cells darkest. */
static double found_lightness(const View *view, uint8_t bit)
{
    static const double rounds[VIEW_FOUND_ROUNDS] = { 29.5, 40, 50, 60, 70, 80.5, 91 };
    int                 round = cause_round(view, bit);

    if (round >= 0)
        return view->found->rounds == 1 ? FOUND_LIGHTNESS : rounds[round];
    return bit == COMPONENT_OTHER ? MISSED_LIGHTNESS : component_lightness(bit);
}

Rgb cause_colour_in(Hues hues, const View *view, uint8_t bit)
{
    int  round = cause_round(view, bit);
    bool missed = view->found && bit == COMPONENT_OTHER;
    Rgb  rgb = cause_colour(view, bit);

    if (hues == HUES_PRINT && view->found)
        return colour_at_lightness(rgb, found_lightness(view, bit));
    if (round >= 0)
        return rgb;
    return missed ? lost_colour_in(hues) : component_colour_in(hues, bit);
}

/* Categories with neighbouring numbers are often neighbours in the picture, so they differ most. */
static double category_lightness(int64_t category)
{
    int at = (int)(category % CATEGORY_HUES);

    return 21 + 6.3 * (at / 2 + at % 2 * 6); /* missed ones are darker */
}

/* On dark paper: a hue that must be lighter may not come near another. */
static Rgb category_on_dark(int64_t category)
{
    static const Rgb violet = { 0xA8, 0x68, 0xC8 }, indigo = { 0x4F, 0x5B, 0xD5 };
    static const Rgb brown = { 0x8A, 0x6A, 0x40 };

    switch (category % CATEGORY_HUES) {
    case 5: return violet;
    case 7: return indigo;
    case 9: return brown;
    default: return colour_on_dark(colour_of_category(category));
    }
}

/* Three hues of equal lightness with their neighbours are made darker or lighter. */
static Rgb category_on_page(int64_t category)
{
    static const Rgb green = { 0x0F, 0x7C, 0x49 }, pink = { 0xE2, 0x6C, 0x96 };
    static const Rgb slate = { 0x80, 0x8B, 0x95 };

    switch (category % CATEGORY_HUES) {
    case 2: return green;
    case 3: return pink;
    case 11: return slate;
    default: return colour_of_category(category);
    }
}

Rgb category_colour_in(Hues hues, int64_t category)
{
    if (hues == HUES_SAFE)
        return colour_of_category_safe(category);
    if (hues == HUES_USUAL || category < 0)
        return colour_of_category(category);
    if (hues == HUES_DARK)
        return category_on_dark(category);
    if (hues == HUES_PAGE)
        return category_on_page(category);
    return colour_at_lightness(colour_of_category(category), category_lightness(category));
}

Rgb lost_colour_in(Hues hues)
{
    if (hues == HUES_DARK)
        return missed_on_dark;
    if (hues == HUES_PAGE)
        return missed_on_page;
    return hues == HUES_PRINT ? colour_at_lightness(missed_rgb, MISSED_LIGHTNESS) : missed_rgb;
}

Rgb chosen_colour_in(Hues hues)
{
    return hues == HUES_PRINT ? lost_colour_in(hues) : missed_on_dark;
}

/* Lines are thin, so none is light; marks tell series apart too. */
Rgb plot_colour_printed(int series)
{
    static const double lightness[] = { 16, 49, 27, 60, 38, 71 };

    return colour_at_lightness(plot_colour(series, false), lightness[series % 6]);
}
