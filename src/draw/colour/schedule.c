/* schedule.c -- the colours of a schedule: who works on which micro-batch when.
 *
 * A cell of the view is 0 (idle), j + 1 (forward of micro-batch j) or -(j + 1)
 * (backward).  As categories they are 2 j and 2 j + 1.  Forward is cool and
 * backward is warm; six shades of each tell neighbours apart, and the same
 * micro-batch has the same colour in every figure.
 */
#include <stdio.h>

#include "draw/colour/colour_maps.h"
#include "draw/figure/scene.h"

#define SHADES 6

int32_t schedule_category(float value)
{
    return value > 0 ? 2 * ((int32_t)value - 1) : value < 0 ? 2 * ((int32_t)-value - 1) + 1 : -1;
}

/* All cool ones blue, all warm ones from orange to brown: no green beside red. */
static Rgb safe_colour(int32_t category)
{
    static const Rgb blue[SHADES] = {
        { 0x1F, 0x4E, 0x9E }, { 0x7F, 0xB5, 0xE6 }, { 0x17, 0x31, 0x66 },
        { 0x4A, 0x90, 0xD9 }, { 0xBF, 0xDB, 0xF5 }, { 0x2F, 0x6F, 0xC4 },
    };
    static const Rgb orange[SHADES] = {
        { 0x8A, 0x45, 0x00 }, { 0xF2, 0xB1, 0x5C }, { 0x5C, 0x2E, 0x00 },
        { 0xD9, 0x7F, 0x0E }, { 0xF9, 0xDD, 0xAE }, { 0xB3, 0x60, 0x00 },
    };

    return (category % 2 ? orange : blue)[category / 2 % SHADES];
}

/* Without colours forward is dark and backward light; neighbours are apart. */
static Rgb printed_colour(int32_t category, Rgb hue)
{
    int at = category / 2 % SHADES;

    return colour_at_lightness(hue, (category % 2 ? 58 : 14) + 5.4 * (at / 2 + at % 2 * 3));
}

Rgb schedule_colour(int32_t category, Hues hues)
{
    static const Rgb cool[SHADES] = {
        { 0x1F, 0x4E, 0x9E }, { 0x5B, 0x9B, 0xD5 }, { 0x1B, 0x76, 0x85 },
        { 0x8E, 0xC6, 0xE6 }, { 0x36, 0x6A, 0xC0 }, { 0x4F, 0xB0, 0xA5 },
    };
    static const Rgb warm[SHADES] = {
        { 0xA6, 0x3A, 0x1E }, { 0xEE, 0x9A, 0x4D }, { 0xB8, 0x45, 0x6B },
        { 0xF3, 0xC7, 0x7A }, { 0xD5, 0x65, 0x2B }, { 0xD9, 0x7A, 0x8F },
    };
    const Rgb *shades = category % 2 ? warm : cool;

    if (hues == HUES_SAFE)
        return safe_colour(category);
    if (hues == HUES_PRINT)
        return printed_colour(category, shades[category / 2 % SHADES]);
    if (hues == HUES_DARK)
        return colour_on_dark(shades[category / 2 % SHADES]);
    return shades[category / 2 % SHADES];
}

void schedule_paint(Paint *paint, const GridCell *cell, Hues hues, bool dark)
{
    Rgb paper = dark ? (Rgb){ 0, 0, 0 } : (Rgb){ 255, 255, 255 };

    paint->rgb = schedule_colour(cell->category, hues);
    if (cell->purity < 0.5f)
        paint->rgb = colour_mix(paint->rgb, paper, 0.5);
    paint->index256 = colour_nearest_256(paint->rgb);
    paint->ascii = (char)((cell->category % 2 ? 'a' : 'A') + cell->category / 2 % 26);
}

int schedule_legend(Hues hues, LegendItem *items, int room)
{
    static const char *const texts[] = { "forward", "backward" };
    int count = 0;

    for (int way = 0; way < 2 && count < room; way++) {
        Rgb rgb = schedule_colour(way, hues);

        items[count] = (LegendItem){ .rgb = rgb, .index256 = colour_nearest_256(rgb),
                                     .ascii = way ? 'a' : 'A' };
        snprintf(items[count++].text, sizeof(items->text), "%s", texts[way]);
    }
    return count;
}

bool panel_shows_schedule(const Panel *panel)
{
    return panel->view->kind == VIEW_SCHEDULE && !panel->minus;
}
