/* category.c -- names, colours and letters of categories, hop counts and schedules; see figure.h.
 *
 * The number of a bucket, cluster or expert selects its colour and its letter. There are fewer of
 * both than categories may exist, so they repeat; named categories never repeat.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/colour/colour.h"
#include "draw/figure/scene.h"

#define ANY_WORD "category"

/* The last word of a view's name where it is a plural: "buckets" of position_buckets. */
static void singular_of(const char *name, char *text, size_t size)
{
    const char *last = strrchr(name, '_') ? strrchr(name, '_') + 1 : name;
    size_t      length = strlen(last);

    if (length > 1 && last[length - 1] == 's')
        snprintf(text, size, "%.*s", (int)length - 1, last);
    else
        snprintf(text, size, ANY_WORD);
}

void category_word(const View *view, char *text, size_t size)
{
    if (view->kind == VIEW_MEMBERSHIP)
        snprintf(text, size, "%s", view->rows && *view->rows ? view->rows : ANY_WORD);
    else if (view->quantity)
        snprintf(text, size, "%s", view->quantity);
    else
        singular_of(view->name, text, size);
}

void categories_word(const View *view, char *text, size_t size)
{
    char   word[64];
    size_t length;

    category_word(view, word, sizeof(word));
    length = strlen(word);
    if (word[length - 1] == 'y')
        snprintf(text, size, "%.*sies", (int)length - 1, word);
    else
        snprintf(text, size, word[length - 1] == 's' ? "%s" : "%ss", word);
}

/* Some cell shows the category, or it is at an end of the values. */
static bool is_there(const Grid *grid, int32_t category)
{
    for (int64_t c = 0; c < grid->rows * grid->cols; c++)
        if (grid->cells[c].category == category)
            return true;
    return grid->count > 0 && ((double)category <= grid->value_min ||
                               (double)category >= grid->value_max);
}

void categories_text(const Panel *panel, const Grid *grid, Text *out)
{
    const char *const *names = panel->view->categories, *comma = "";
    char               word[64];

    if (!names && grid->value_min >= grid->value_max) {
        category_word(panel->view, word, sizeof(word));
        text_addf(out, "only %s %.0f", word, grid->value_max);
        return;
    }
    if (!names) {
        categories_word(panel->view, word, sizeof(word));
        text_addf(out, "%s %.0f to %.0f", word, grid->value_min, grid->value_max);
        return;
    }
    for (int32_t c = 0; names[c] && c <= (int32_t)grid->value_max; c++)
        if (c >= (int32_t)grid->value_min && is_there(grid, c)) {
            text_addf(out, "%s%s", comma, names[c]);
            comma = ", ";
        }
}

bool categories_repeat(const Panel *panel, const Grid *grid, bool letters)
{
    int     kinds = category_kinds(letters);
    int32_t first[CATEGORY_LETTERS] = { 0 }; /* 1 + the first category of that colour or letter */

    if (panel->view->categories)
        return false;
    for (int64_t at = 0; at < grid->rows * grid->cols; at++) {
        int32_t category = grid->cells[at].any ? grid->cells[at].category : -1;

        if (category >= 0 && first[category % kinds] && first[category % kinds] != category + 1)
            return true;
        if (category >= 0)
            first[category % kinds] = category + 1;
    }
    return false;
}

int category_kinds(bool letters)
{
    return letters ? CATEGORY_LETTERS : CATEGORY_HUES;
}

char category_letter(const View *view, int64_t category)
{
    if (view->kind == VIEW_BUCKETS && view->categories)
        return (char)toupper((unsigned char)*view->categories[category]);
    return (char)('A' + category % CATEGORY_LETTERS);
}

#define PALER 0.55

Rgb kind_colour(Hues hues, bool pale, int64_t category)
{
    Rgb full = category_colour_in(hues, category);

    return pale ? colour_mix(full, (Rgb){ 255, 255, 255 }, PALER) : full;
}

Rgb panel_category_colour(const Panel *panel, int32_t category)
{
    if (panel_shows_schedule(panel))
        return schedule_colour(category, panel->hues);
    return kind_colour(panel->hues, panel->pale, category);
}

LegendItem category_item(const Panel *panel, int64_t category)
{
    LegendItem item = { .rgb = panel_category_colour(panel, (int32_t)category),
                        .ascii = category_letter(panel->view, category) };

    item.index256 = colour_nearest_256(item.rgb);
    if (panel->view->kind == VIEW_BUCKETS && panel->view->categories)
        snprintf(item.text, sizeof(item.text), "%s", panel->view->categories[category]);
    else
        snprintf(item.text, sizeof(item.text), "%lld", (long long)category);
    return item;
}

/* Hop counts: how many layers until a key reaches a query.
 *
 * A count has the same colour in every figure of one theme, so pictures of different depths can be
 * compared. Its place on the map is
 *
 *     t(h) = 0.9 (1 - exp(-(h - 1) / 7))
 *
 * which separates also the tenth layer from the eleventh and never reaches the end. The map runs
 * away from the background: near keys stand out, far keys fade towards unreached ones. A token
 * itself (layer 0) is grey.
 */

#define SPREAD 5.5 /* hops from 1 on, after which 63 % of the way is gone */
#define LISTED 7   /* counts that are listed one by one */

#define FAINTEST 0.9 /* of the map; beyond, a colour looks like background */

void hops_paint(Paint *paint, ColourMap map, double hops, bool dark)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    int               length, at = (int)lround(hops);
    const uint8_t    *ramp = colour_ramp_256(map, &length);
    double            far = hops > 1 ? FAINTEST * (1 - exp((1 - hops) / SPREAD)) : 0;
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

/* Counts that get an entry: the first few, doublings and the middles between them, the last. */
static bool is_worth(int hops, int most)
{
    int power = 1;

    while (2 * power <= hops)
        power *= 2;
    return hops <= LISTED || hops == most || hops == power ||
           (2 * hops == 3 * power && hops != most - 1);
}

/* Also a count that would be the only one left out between two entries. */
static bool is_listed(int hops, int most)
{
    return is_worth(hops, most) || (is_worth(hops - 1, most) && is_worth(hops + 1, most));
}

/* after: counts before this one have no entry of their own; the text says so. */
static LegendItem hops_item(ColourMap map, int hops, bool after, bool dark)
{
    Paint      paint = { 0 };
    LegendItem item = { 0 };

    hops_paint(&paint, map, hops, dark);
    item = (LegendItem){ .rgb = paint.rgb, .index256 = paint.index256, .ascii = paint.ascii,
                         .depth = hops > 0 };
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
            items[count++] = hops_item(map, hops, hops > last + 1, dark);
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

/* Schedules: who works on which micro-batch when.
 *
 * A cell is 0 (idle), j + 1 (forward of micro-batch j) or -(j + 1) (backward). Their categories
 * are 2j forward, 2j + 1 backward. Forward is cool, backward warm; six shades of each separate
 * neighbours, and a micro-batch has the same colour in every figure.
 */

#define SHADES 6

int32_t schedule_category(float value)
{
    return value > 0 ? 2 * ((int32_t)value - 1) : value < 0 ? 2 * ((int32_t)-value - 1) + 1 : -1;
}

/* Forward in blues, backward from orange to brown: no green beside red. */
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

/* In grey: forward dark, backward light, neighbours apart. */
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
