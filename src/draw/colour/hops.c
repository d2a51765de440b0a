/* hops.c -- the colours of hop counts: how many layers until a key reaches a query.
 *
 * A count has the same colour in every figure of one theme, however many layers it
 * shows, so pictures of different depths can be compared.  The place on the map is
 *
 *     t(h) = 0.9 (h - 1) / (h - 1 + 3)
 *
 * which keeps the first layers far apart and never ends.  The map is gone through
 * away from the background: what is near stands out, what is far fades towards
 * what is not reached.  A token itself, at no layer, is grey.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/figure/scene.h"

#define SPREAD 3.0 /* hops from 1 to the middle of the map */
#define LISTED 7   /* counts that are listed one by one */

#define FAINTEST 0.9 /* of the map; beyond, it could pass for background */

void hops_paint(Paint *paint, ColourMap map, double hops, bool dark)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    int               length, at = (int)lround(hops);
    const uint8_t    *ramp = colour_ramp_256(map, &length);
    double            far = hops > 1 ? FAINTEST * (hops - 1) / (hops - 1 + SPREAD) : 0;
    double            t = dark ? 1 - far : far;

    t = map == MAP_INK ? 1 - t : t; /* the map that begins light */
    paint->rgb = hops < 0.5 ? (Rgb){ 0x80, 0x80, 0x80 } : colour_of_value(map, t);
    paint->index256 = hops < 0.5 ? 244 : ramp[lround(t * (length - 1))];
    paint->ascii = at >= 0 && at < (int)sizeof(letters) - 1 ? letters[at] : '+';
}

Rgb hops_background(bool dark)
{
    return dark ? (Rgb){ 44, 44, 44 } : (Rgb){ 236, 236, 236 };
}

/* The counts worth an entry: the first few, doublings and halves between, the last. */
static bool is_worth(int hops, int most)
{
    int power = 1;

    while (2 * power <= hops)
        power *= 2;
    return hops <= LISTED || hops == most || hops == power ||
           (2 * hops == 3 * power && hops != most - 1);
}

/* Nor is one alone left out between two of them. */
static bool is_listed(int hops, int most)
{
    return is_worth(hops, most) || (is_worth(hops - 1, most) && is_worth(hops + 1, most));
}

/* after: counts before this one have no entry, which its text says. */
static LegendItem item_of(ColourMap map, int hops, bool after, bool dark)
{
    Paint      paint = { 0 };
    LegendItem item = { 0 };

    hops_paint(&paint, map, hops, dark);
    item = (LegendItem){ .rgb = paint.rgb, .index256 = paint.index256, .ascii = paint.ascii };
    if (hops == 0)
        snprintf(item.text, sizeof(item.text), "itself");
    else
        snprintf(item.text, sizeof(item.text), "%s%d layer%s", after ? "\xe2\x80\xa6 " : "", hops,
                 hops == 1 ? "" : "s");
    return item;
}

int hops_legend(ColourMap map, double least, double most, bool unreached, bool dark,
                LegendItem *items, int room)
{
    int count = 0, last = (int)least - 1;

    for (int hops = (int)least; hops <= (int)most && count < room; hops++)
        if (is_listed(hops, (int)most)) {
            items[count++] = item_of(map, hops, hops > last + 1, dark);
            last = hops;
        }
    if (unreached && count < room) {
        Rgb rgb = hops_background(dark);

        items[count] = (LegendItem){
            .rgb = rgb, .index256 = dark ? 236 : 255, .ascii = '.', .background = true
        };
        snprintf(items[count++].text, sizeof(items->text), "not reached");
    }
    return count;
}
