/* colour_maps.c -- the value maps: anchor colours and interpolation.
 *
 * Viridis, magma (van der Walt, Smith 2015) and cividis (Nunez, Anderton,
 * Renslow 2018) are sampled at 52 points of their published 256; linear steps
 * between them stay within 4/255 of the originals.  The diverging map runs
 * from purple over a neutral grey to orange; its lightness falls linearly and
 * equally on both sides, so +x and -x look equally strong.
 */
#include "draw/colour/colour_maps.h"

#include <math.h>
#include <stddef.h>

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

/* Neither end is a paper's colour, dark or white: what is there is seen to be there. */
static const Rgb grey[] = { { 52, 52, 52 }, { 222, 222, 222 } };

/* For print: the paper stays white where nothing is allowed, ink is where weight is. */
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
