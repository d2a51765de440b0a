/* legend.c -- what the colours and signs of a figure's panels mean; see scene.h.
 *
 * A legend lists what is in the picture: the panels are looked at cell by cell first. Its entries
 * are causes, notes on what covers what, categories, counts of layers, bars, marks, and what is not
 * a value.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/colour/colour.h"
#include "draw/figure/scene.h"
#include "draw/grid/job.h"

#define MOST_CATEGORIES CATEGORY_HUES

#define NAMED_MOST 4

/* Categories without names. */
typedef struct Numbers {
    int      count;     /* the largest and 1 */
    uint64_t shown;     /* those of the first 64 that a cell shows */
    char     words[40]; /* what they are: "buckets" */
} Numbers;

typedef struct Present {
    uint8_t bits;
    Numbers numbers[2]; /* of the first kind, and of others, which are paler */
    struct {
        const char *const *names; /* NULL: end of the list */
        uint64_t           shown; /* categories that a cell shows */
    } named[NAMED_MOST];          /* of views whose categories have names */
    bool    hops, unreached; /* hop counts; pairs without one */
    double  hops_least, hops_most;
    ColourMap hops_map; /* of the first panel that shows some */
    bool    odd, mark, schedule, dots;
    bool    behind; /* a picture shows through where values are small */
    uint8_t over[8]; /* causes hidden under the one that an entry is painted as */
    BitNames overlap_names; /* as the panels with these entries call them */
    bool    masked[2]; /* masked cells are grey: on white, on black */
    bool    pairs;     /* some of them are pairs of a query and a key */
    bool    blanks;    /* some are of other axes, as a block that has no gate */
    Hues    hues; /* all panels of a page have the same */
    const ViewMarks *marks; /* of the first panel that shows some */
    const View      *loads; /* of the first panel with bars of rows or columns */
    const Margin    *margin; /* drawn in their place */
    BitNames names;
    struct {
        const View *view; /* NULL: none with this meaning */
        uint8_t     bits;
    } found[3];           /* of views of found cells: by cause, found at all, by round */
} Present;

static void present_hops(Present *present, const Panel *panel, const Grid *grid, double area)
{
    if (!present->hops) {
        present->hops = true;
        present->hops_map = panel->map;
        present->hops_least = grid->value_min;
        present->hops_most = grid->value_max;
    }
    present->hops_least = fmin(present->hops_least, grid->value_min);
    present->hops_most = fmax(present->hops_most, grid->value_max);
    present->unreached |= grid->count < area;
}

/* Adds the pairs of causes of single entries that have several: one colour hides the others.
 * Returns the bits of all of them. */
static uint8_t add_overlaps(const Grid *grid, uint8_t over[8])
{
    uint8_t bits = 0;

    if (grid->rows < grid->region.row1 - grid->region.row0 ||
        grid->cols < grid->region.col1 - grid->region.col0)
        return 0;
    for (int64_t at = 0; at < grid->rows * grid->cols; at++) {
        uint8_t own = grid->cells[at].components, painted = grid->cells[at].cause;

        if (!(own & (own - 1)) || !painted)
            continue;
        over[__builtin_ctz(painted)] |= own & (uint8_t)~painted;
        bits |= own;
    }
    return bits;
}

/* A colour has one entry: where panels differ in its meaning, it names each. */
static void present_bits(Present *present, const Panel *panel, const Grid *grid, double area)
{
    uint8_t bits = grid_causes(grid);
    int     rounds = panel->view->found ? panel->view->found->rounds : 0;

    if (panel->view->found) {
        present->found[rounds < 2 ? rounds : 2].view = panel->view;
        present->found[rounds < 2 ? rounds : 2].bits |= bits;
        return;
    }
    if (bits == COMPONENT_OTHER && !panel->view->other && grid->count >= area) {
        View every = *panel->view; /* "other" needs something to differ from */

        every.other = "every pair";
        bit_names_add(&present->names, &every, bits, panel->worn);
    } else {
        bit_names_add(&present->names, panel->view, bits, panel->worn);
    }
    for (int b = 0; b < 8; b++)
        present->bits |= bits & 1 << b ? panel_worn(panel, (uint8_t)(1 << b)) : 0;
    bit_names_add(&present->overlap_names, panel->view, add_overlaps(grid, present->over), NULL);
}

/* The first 64 categories that cells show as their majority. */
static uint64_t categories_shown(const Grid *grid)
{
    uint64_t shown = 0;

    for (int64_t at = 0; at < grid->rows * grid->cols; at++)
        if (grid->cells[at].any && grid->cells[at].category >= 0 && grid->cells[at].category < 64)
            shown |= (uint64_t)1 << grid->cells[at].category;
    return shown;
}

static void present_numbers(Present *present, const Panel *panel, const Grid *grid)
{
    Numbers *numbers = &present->numbers[panel->pale];
    int      end = (int)fmin(grid->value_max + 1, 1e6);
    size_t   used = strlen(numbers->words);
    char     word[64];

    categories_word(panel->view, word, sizeof(word));
    if (!strstr(numbers->words, word) && used + strlen(word) + 4 < sizeof(numbers->words))
        snprintf(numbers->words + used, sizeof(numbers->words) - used, "%s%s", used ? ", " : "",
                 word);
    numbers->count = end > numbers->count ? end : numbers->count;
    numbers->shown |= categories_shown(grid);
}

/* Named and numbered categories are listed separately: a colour may be both. */
static void present_categories(Present *present, const Panel *panel, const Grid *grid)
{
    const char *const *names = panel->view->categories;
    int                at = 0;

    if (!names) {
        present_numbers(present, panel, grid);
        return;
    }
    while (at < NAMED_MOST - 1 && present->named[at].names && present->named[at].names != names)
        at++;
    if (present->named[at].names != names)
        present->named[at].shown = 0;
    present->named[at].names = names;
    present->named[at].shown |= categories_shown(grid);
}

static void present_masked(Present *present, const Panel *panel)
{
    bool pairs = !strcmp(panel->view->rows, "query") && !strcmp(panel->view->cols, "key");

    for (int dark = 0; dark < 2; dark++)
        if (panel_greys_masked(panel, dark)) {
            present->masked[dark] = true;
            present->pairs |= pairs;
            present->blanks |= !pairs;
        }
}

static void present_add(Present *present, const Panel *panel, const Grid *grid)
{
    PanelStyle style = panel_style(panel);
    double     area = (double)(grid->region.row1 - grid->region.row0) *
                      (double)(grid->region.col1 - grid->region.col0);

    if (style == STYLE_PLOT)
        return;
    present->hues = panel->hues;
    present->mark |= panel->picture;
    present->behind |= panel_lets_through(panel, panel->minus ? 0.5 : 0);
    for (int64_t c = 0; panel->view->marks && !present->marks && c < grid->rows * grid->cols; c++)
        if (grid->cells[c].marked)
            present->marks = panel->view->marks;
    if (!present->loads && !panel->minus && !panel->picture && !panel->margin &&
        (panel->view->load || panel->view->row_load))
        present->loads = panel->view;
    if (panel->margin && (!present->margin || margin_has_negative(panel->margin)))
        present->margin = panel->margin;
    present->odd |= grid->odd_count > 0;
    if (style == STYLE_CATEGORY && panel->view->kind == VIEW_BUCKETS && grid->count > 0)
        present_categories(present, panel, grid);
    present->schedule |= panel_shows_schedule(panel);
    if (style == STYLE_HOPS)
        present_hops(present, panel, grid, area);
    if (style == STYLE_VALUE && grid->count < area)
        present_masked(present, panel);
    if (style == STYLE_CAUSE)
        present_bits(present, panel, grid, area);
    present->dots |= panel_shows_dots(panel, grid);
}

static LegendItem item_of(const char *text, Rgb rgb, uint8_t index256, char ascii)
{
    LegendItem item = { .rgb = rgb, .index256 = index256, .ascii = ascii };

    snprintf(item.text, sizeof(item.text), "%s", text);
    return item;
}

/* Legend of the marks and of the bars beside a matrix; characters write the bars as numbers. */
static int load_items(const Present *present, LegendItem *items, int most)
{
    const ViewLoad *cols = present->loads ? present->loads->load : NULL;
    const ViewLoad *rows = present->loads ? present->loads->row_load : NULL;
    bool            lost = present->marks && !present->marks->chosen;
    Rgb             bar = colour_load(), red = lost_colour_in(present->hues);
    int             count = 0;
    char            text[48];

    if (lost && count < most) {
        items[count] = item_of(present->marks->name, red, colour_nearest_256(red), 'x');
        items[count++].mark = MARK_CROSS;
    }
    if (present->marks && !lost && count < most) {
        Rgb ring = chosen_colour_in(present->hues);

        items[count] = item_of(present->marks->name, ring, colour_nearest_256(ring), 'o');
        items[count++].mark = MARK_RING;
    }
    if (cols && cols->over.data && !lost && count < most)
        items[count++] = item_of(cols->over_name, red, colour_nearest_256(red), 'x');
    if (present->loads && count < most) {
        snprintf(text, sizeof(text), "%s%s%s", rows ? rows->used_name : "",
                 rows && cols ? ", " : "", cols ? cols->used_name : "");
        items[count] = item_of(text, bar, colour_nearest_256(bar), ' ');
        items[count++].page = true;
    }
    return count;
}

/* Legend of the bars beside a matrix; characters write it in words. */
static int margin_items(const Margin *margin, Hues hues, LegendItem *items, int most)
{
    Rgb  bar = colour_load(), red = lost_colour_in(hues);
    char text[48];

    if (!margin || most < 2)
        return 0;
    margin_title(margin, text, sizeof(text));
    items[0] = item_of(text, bar, colour_nearest_256(bar), ' ');
    items[1] = item_of("below 0", red, colour_nearest_256(red), ' ');
    items[0].page = items[1].page = true;
    return margin_has_negative(margin) ? 2 : 1;
}

static LegendItem item_of_cause(Hues hues, const View *view, uint8_t bit)
{
    return item_of(cause_name(view, bit), cause_colour_in(hues, view, bit), cause_256(view, bit),
                   cause_letter(view, bit));
}

#define FIRST_ROUND "first found by:" /* else a round's colour might mean all that it found */

/* Each way that found a cell once, then "missed". */
static int found_items(const Present *present, LegendItem *items, int most)
{
    const View *missed = NULL;
    int         count = 0;

    if (present->found[2].view && most > 0) {
        items[count] = (LegendItem){ .words = true };
        snprintf(items[count++].text, sizeof(items->text), FIRST_ROUND);
    }
    for (int k = 0; k < 3; k++) {
        const View *view = present->found[k].view;

        for (int bit = COMPONENT_WINDOW; bit <= COMPONENT_LAST && view; bit <<= 1) {
            if (!(present->found[k].bits & bit) || (k == 0 && present->bits & bit))
                continue;
            if (bit == COMPONENT_OTHER)
                missed = view;
            else if (count < most)
                items[count++] = item_of_cause(present->hues, view, (uint8_t)bit);
        }
    }
    if (missed && count < most)
        items[count++] = item_of_cause(present->hues, missed, COMPONENT_OTHER);
    return count;
}

static bool lists_numbers(const Numbers *numbers)
{
    return numbers->count && numbers->count <= MOST_CATEGORIES;
}

/* "buckets:" and their numbers. */
static int number_items(const Present *present, bool pale, LegendItem *items, int most)
{
    const Numbers *numbers = &present->numbers[pale];
    int            count = 0;
    char           text[16];

    if (!lists_numbers(numbers))
        return 0;
    if (count < most) {
        items[count] = (LegendItem){ .words = true, .page = true };
        snprintf(items[count++].text, sizeof(items->text), "%s:", numbers->words);
    }
    for (int c = 0; c < numbers->count && count < most; c++) {
        Rgb rgb = kind_colour(present->hues, pale, c);

        if (!(numbers->shown >> c & 1))
            continue;
        snprintf(text, sizeof(text), "%d", c);
        items[count++] = item_of(text, rgb, colour_nearest_256(rgb), (char)('A' + c));
    }
    return count;
}

/* Names first, then numbers, unless there are too many; only those that a cell shows. */
static int category_items(const Present *present, LegendItem *items, int most)
{
    int count = 0;

    for (int k = 0; k < NAMED_MOST; k++)
        for (int c = 0; present->named[k].shown >> c && c < 64 && count < most; c++) {
            Rgb rgb = category_colour_in(present->hues, c);

            if (present->named[k].shown >> c & 1)
                items[count++] = item_of(present->named[k].names[c], rgb, colour_nearest_256(rgb),
                                         (char)toupper((unsigned char)*present->named[k].names[c]));
        }
    count += number_items(present, false, items + count, most - count);
    return count + number_items(present, true, items + count, most - count);
}

/* The first of the hidden causes in the order of painting; -1: there is none. */
static int next_below(uint8_t hidden)
{
    for (int k = 0; k < GRID_CAUSES; k++)
        if (hidden & grid_causes_by_rarity[k])
            return __builtin_ctz(grid_causes_by_rarity[k]);
    return -1;
}

/* Takes one chain of pairs, each of which occurs: " over random over window". */
static void take_chain(uint8_t left[8], int top, const BitNames *names, Text *out)
{
    uint8_t chain = (uint8_t)(1 << top);
    int     below;

    for (; (below = next_below(left[top])) >= 0; top = below) {
        for (int b = 0; b < 8; b++) /* also said: the first over the last */
            if (chain & 1 << b)
                left[b] &= (uint8_t)~(1 << below);
        chain |= (uint8_t)(1 << below);
        text_addf(out, " over %s", names->name[below]);
    }
}

static bool has_overlaps(const Present *present)
{
    for (int b = 0; b < 8; b++)
        if (present->over[b])
            return true;
    return false;
}

/* "overlaps: global over random over window": which cause an entry of several is painted as. */
static void note_overlaps(const Present *present, LegendItem *item)
{
    uint8_t left[8];
    Text    pairs = { 0 };

    memcpy(left, present->over, sizeof(left));
    for (int k = 0; k < GRID_CAUSES; k++) {
        int top = __builtin_ctz(grid_causes_by_rarity[k]);

        if (left[top])
            text_addf(&pairs, "%s%s", pairs.length ? ", " : "", present->overlap_names.name[top]);
        for (const char *and = ""; left[top]; and = " and") {
            text_add(&pairs, and);
            take_chain(left, top, &present->overlap_names, &pairs);
        }
    }
    *item = (LegendItem){ .words = true, .page = true };
    snprintf(item->text, sizeof(item->text), "overlaps: %s", text_str(&pairs));
    text_free(&pairs);
}

static const char *masked_words(const Present *present)
{
    if (!present->blanks)
        return "not allowed";
    return present->pairs ? "not allowed, or no value" : "no value";
}

static int legend_items(const Present *present, bool dark, LegendItem *items, int most)
{
    int count = 0, numbers;

    for (int b = 0; b < 8 && count < most; b++) {
        uint8_t bit = (uint8_t)(1 << b);
        bool    grey = present->mark && bit == COMPONENT_OTHER;

        if (*present->names.name[b])
            items[count++] = item_of(present->names.name[b],
                                     grey ? PICTURE_OTHER
                                          : component_colour_in(present->hues, bit),
                                     grey ? PICTURE_OTHER_256 : colour_component_256(bit),
                                     component_letter(bit));
    }
    count += found_items(present, items + count, most - count);
    if (has_overlaps(present) && count < most) /* words after all signs of causes */
        note_overlaps(present, &items[count++]);
    if (present->dots && count < most)
        items[count++] = (LegendItem){ .text = DOT_WORDS, .dot = true, .ascii = '.',
                                       .rgb = { 128, 128, 128 }, .index256 = 244 };
    numbers = count;
    count += category_items(present, items + count, most - count);
    numbers = numbers || lists_numbers(&present->numbers[1]) ? 0 : count; /* only these */
    if (present->hops)
        count += hops_legend(present->hops_map, present->hops_least, present->hops_most,
                             present->unreached, dark, items + count, most - count);
    count += load_items(present, items + count, most - count);
    count += margin_items(present->margin, present->hues, items + count, most - count);
    if (present->schedule)
        count += schedule_legend(present->hues, items + count, most - count);
    if (present->masked[dark] && count < most)
        items[count++] = item_of(masked_words(present), colour_masked(dark), dark ? 238 : 251, ' ');
    if (present->mark && count < most)
        items[count++] = item_of("the query", PICTURE_MARK, PICTURE_MARK_256, 'Q');
    if (present->behind && count < most) {
        items[count] = item_of("the image, where values are below 5 %", picture_grey(present->hues),
                               PICTURE_GREY_256, ' ');
        items[count++].page = true;
    }
    if (present->odd && count < most)
        items[count++] = item_of("NaN or infinite", colour_odd(), 200, '!');
    if (count && count == numbers && items->words) /* alone they need no word */
        memmove(items, items + 1, (size_t)--count * sizeof(*items));
    return count;
}

int scene_legend(const Scene *scene, bool dark, LegendItem *items, int most)
{
    Present present = { 0 };

    for (int k = 0; k < scene->count; k++)
        present_add(&present, &scene->panels[k], &scene->grids[k]);
    return legend_items(&present, dark, items, most);
}

/* Makes its own grids: entry by entry while that is cheap. */
int figure_legend(const Figure *figure, LegendItem *items, int most)
{
    Present present = { 0 };

    for (int k = 0; k < (figure->reduce ? 1 : figure->count); k++) {
        Grid  grid;
        Panel own = figure->panels[k];

        if (panel_style(&own) == STYLE_VALUE || panel_style(&own) == STYLE_PLOT ||
            !panel_reduce(figure, &own, (CellCount){ 256, 256 }, &grid, NULL))
            continue;
        panel_wear_causes(figure, k, &own);
        present_add(&present, &own, &grid);
        grid_free(&grid);
    }
    return legend_items(&present, true, items, most);
}
