/* page_theme.c -- the themes: paper, print in black, a dark screen or slide, colour-blind readers.
 *
 * Components have the colours of Okabe and Ito in all of them, and differences run from
 * purple to orange, which colour-blind readers tell apart; so what the theme for them
 * changes is the map of values (cividis looks the same to them) and the categories.  In print
 * the same hues are lighter and darker than each other, for a printer that has no colours; on
 * dark paper none is too dark to be seen.
 */
#include "draw/page/page_theme.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure/figure.h"

#define COLUMN_INCH 3.25 /* one column of a two-column paper */
#define PAGE_INCH 6.75   /* its text width */
#define HALF_SLIDE 6.5   /* of a slide of 13.33 inches */
#define WHOLE_SLIDE 12.5

#define WHITE { 255, 255, 255 }
#define ON_PAPER .type = 1, .one = COLUMN_INCH, .page = PAGE_INCH
#define DARK                                                                                       \
    .dark = true, .paper = { 18, 18, 18 }, .ink = { 235, 235, 235 }, .muted = { 165, 165, 165 },   \
    .rule = { 60, 60, 60 }, .hues = HUES_DARK
#define LIGHT                                                                                      \
    .paper = WHITE, .ink = { 20, 20, 20 }, .muted = { 90, 90, 90 }, .rule = { 216, 216, 216 }

static const PageTheme themes[] = {
    { .name = "light", LIGHT, ON_PAPER, .values = MAP_VIRIDIS },
    { .name = "dark", DARK, ON_PAPER, .values = MAP_VIRIDIS },
    { .name = "print", .paper = WHITE, .ink = { 0, 0, 0 }, .muted = { 50, 50, 50 },
      .rule = { 200, 200, 200 }, ON_PAPER, .values = MAP_INK,
      .hues = HUES_PRINT },
    { .name = "slide", DARK, .type = 1.9, .one = HALF_SLIDE, .page = WHOLE_SLIDE,
      .values = MAP_VIRIDIS },
    { .name = "colour-blind", LIGHT, ON_PAPER, .values = MAP_CIVIDIS, .hues = HUES_SAFE },
};

static const PageTheme *find(const char *name)
{
    for (size_t k = 0; k < sizeof(themes) / sizeof(*themes); k++)
        if (!strcmp(name, themes[k].name))
            return &themes[k];
    return NULL;
}

const PageTheme *page_theme(const char *name)
{
    const PageTheme *theme = name ? find(name) : NULL;

    return theme ? theme : &themes[0];
}

double figure_width(const char *text)
{
    static const struct {
        const char *name;
        double      inches;
    } units[] = { { "", 1 }, { "in", 1 }, { "cm", 1 / 2.54 }, { "mm", 1 / 25.4 },
                  { "pt", 1 / 72.27 } };
    char  *end;
    double value = strtod(text, &end);

    for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++)
        if (!strcmp(end, units[i].name))
            return value * units[i].inches;
    return (double)NAN;
}

bool figure_theme_check(const char *name, Error *err)
{
    return !name || find(name) ||
           error_set(err, ERR_USAGE, "there is no theme '%.40s'; choose light, dark, print, slide "
                     "or colour-blind", name);
}
