/* scene.c -- the panels of a figure reduced, with ranges and legend; see scene.h.
 *
 * The legend lists what occurs: components of some cell, categories while there are hues to
 * distinguish them, and the colours of odd or masked cells.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure/scene.h"
#include "draw/grid/job.h"

#define MOST_CATEGORIES CATEGORY_HUES

static bool panel_reduce(const Figure *figure, const Panel *panel, CellCount cells, Grid *grid,
                         Error *err)
{
    GridRequest request = {
        .view = panel->view,
        .minus = panel->minus,
        .components = panel->components,
        .plane = panel->plane,
        .region = panel->region,
        .rows = cells.rows,
        .cols = cells.cols,
        .row_order = panel->row_order,
        .col_order = panel->col_order,
        .excludes = panel->excludes,
        .excluded = panel->excluded,
        .threads = figure->threads,
        .budget_entries = figure->budget_entries,
        .cancel = figure->cancel,
    };

    return grid_reduce(&request, grid, err);
}

bool panel_has_own_range(const Panel *panel)
{
    return panel->hi > panel->lo;
}

/* As chosen: neither map, scale nor ends differ. */
static bool have_same_colours(const Panel *a, const Panel *b)
{
    bool apart = a->lo < b->lo || a->lo > b->lo || a->hi < b->hi || a->hi > b->hi;

    return a->map == b->map && a->scale == b->scale &&
           panel_has_own_range(a) == panel_has_own_range(b) && !(panel_has_own_range(a) && apart);
}

bool panels_share_range(const Panel *a, const Panel *b)
{
    const char *quantity = panel_quantity(a);

    if (panel_style(a) != STYLE_VALUE || panel_style(b) != STYLE_VALUE ||
        strcmp(quantity, panel_quantity(b)) != 0 || !have_same_colours(a, b))
        return false;
    /* unnamed numbers are comparable only between views of one name */
    return strcmp(quantity, QUANTITY_ANY) != 0 || !strcmp(a->view->name, b->view->name);
}

bool figure_shares(const Figure *figure, int a, int b)
{
    const Panel *one = &figure->panels[a], *other = &figure->panels[b];
    bool         differences = one->minus && other->minus;

    return figure->sharing != SHARE_NONE &&
           (figure->sharing != SHARE_DIFFERENCES || differences) &&
           panels_share_range(one, other);
}

/* The range over all panels of the quantity of panel `first`. */
static void range_of(const Scene *scene, const Figure *figure, int first, double *lo, double *hi)
{
    for (int k = first; k < scene->count; k++) {
        Panel own = scene->panels[k];

        if (k != first && !figure_shares(figure, first, k))
            continue;
        panel_settle(&own, &scene->grids[k]);
        *lo = k == first ? own.lo : fmin(*lo, own.lo);
        *hi = k == first ? own.hi : fmax(*hi, own.hi);
    }
}

/* Value panels of the same quantity get one range. */
static void share_ranges(Scene *scene, const Figure *figure)
{
    for (int first = 0; first < scene->count; first++) {
        double lo = 0, hi = 0;
        bool   later = false;

        for (int k = 0; k < first; k++)
            later = later || figure_shares(figure, k, first);
        if (later || !figure_shares(figure, first, first))
            continue;
        range_of(scene, figure, first, &lo, &hi);
        for (int k = first; k < scene->count; k++)
            if (figure_shares(figure, first, k)) {
                scene->panels[k].lo = lo;
                scene->panels[k].hi = hi;
            }
    }
}

/* Plots of one figure that show the same quantity over the same axis are compared: one y axis, or
 * one axis of the values of rows. */
static void share_axes(Scene *scene)
{
    for (int a = 0; a < scene->count; a++)
        for (int b = 0; b < scene->count; b++) {
            Plot *one = scene->plots[a], *other = scene->plots[b];

            if (!one || !other || !one->row_count != !other->row_count ||
                one->y.log != other->y.log || strcmp(one->y.name, other->y.name) != 0 ||
                one->x.log != other->x.log || strcmp(one->x.name, other->x.name) != 0)
                continue;
            if (one->row_count) { /* the value of a row lies along x */
                one->x.lo = other->x.lo = fmin(one->x.lo, other->x.lo);
                one->x.hi = other->x.hi = fmax(one->x.hi, other->x.hi);
                continue;
            }
            one->y.lo = other->y.lo = fmin(one->y.lo, other->y.lo);
            one->y.hi = other->y.hi = fmax(one->y.hi, other->y.hi);
        }
}

/* The grids are there even on failure, to be freed. */
static bool reduce_all(Scene *scene, const Figure *figure, CellCount cells, Error *err)
{
    bool ok = figure->reduce(figure->reducer, cells.rows, cells.cols, scene->grids, err);

    for (int k = 0; !ok && k < figure->count; k++)
        grid_free(&scene->grids[k]);
    return ok;
}

static bool has_masked(const Grid *grid)
{
    return grid->count < (double)(grid->region.row1 - grid->region.row0) *
                             (double)(grid->region.col1 - grid->region.col0);
}

/* Pairs that are not allowed have one colour on a page: where one panel's are grey, all are. */
void scene_share_greys(Scene *scene)
{
    for (int dark = 0; dark < 2; dark++) {
        bool any = false;

        for (int k = 0; k < scene->count; k++)
            scene->panels[k].greyed[dark] = false;
        for (int k = 0; k < scene->count; k++)
            any |= !scene->plots[k] && panel_greys_masked(&scene->panels[k], dark) &&
                   has_masked(&scene->grids[k]);
        for (int k = 0; k < scene->count; k++)
            scene->panels[k].greyed[dark] = any;
    }
}

/* The bit with this name in the first panel that has one; 0: there is none. */
static uint8_t first_bit_of(const Figure *figure, const char *name)
{
    for (int k = 0; k < figure->count; k++) {
        const View *view = figure->panels[k].view;

        for (int b = 0; b < 8 && view && view->components && !view->found; b++)
            if (view->components[b] && !strcmp(view->components[b], name))
                return (uint8_t)(1 << b);
    }
    return 0;
}

void panel_wear_causes(const Figure *figure, int k, Panel *panel)
{
    const View *view = figure->panels[k].view;

    for (int b = 0; b < 8 && view && view->components && !view->found; b++) {
        uint8_t bit = view->components[b] ? first_bit_of(figure, view->components[b]) : 0;

        if (bit && !view->components[__builtin_ctz(bit)]) /* nothing else has that colour */
            panel->worn[b] = bit;
    }
}

uint8_t panel_worn(const Panel *panel, uint8_t bit)
{
    uint8_t worn = bit ? panel->worn[__builtin_ctz(bit)] : 0;

    return worn ? worn : bit;
}

bool scene_make(Scene *scene, const Figure *figure, const CellCount *cells, Error *err)
{
    size_t count = (size_t)(figure->count > 0 ? figure->count : 1);

    *scene = (Scene){ .panels = calloc(count, sizeof(*scene->panels)),
                      .grids = calloc(count, sizeof(*scene->grids)),
                      .plots = calloc(count, sizeof(*scene->plots)) };
    if (!scene->panels || !scene->grids || !scene->plots) {
        scene_free(scene);
        return error_set(err, ERR_NOMEM, "drawing a figure: out of memory");
    }
    if (figure->reduce && !reduce_all(scene, figure, cells[0], err)) {
        scene_free(scene);
        return false;
    }
    for (; scene->count < figure->count; scene->count++) {
        int k = scene->count;

        scene->panels[k] = figure->panels[k];
        panel_wear_causes(figure, k, &scene->panels[k]);
        if (figure->reduce)
            continue;
        if (figure->panels[k].plot ? !(scene->plots[k] = panel_plot(&figure->panels[k], err))
                                   : !panel_reduce(figure, &figure->panels[k], cells[k],
                                                   &scene->grids[k], err)) {
            scene_free(scene);
            return false;
        }
    }
    scene_choose_maps(scene, figure);
    share_ranges(scene, figure);
    for (int k = 0; k < scene->count; k++)
        if (!scene->plots[k])
            panel_settle(&scene->panels[k], &scene->grids[k]);
    scene_choose_scales(scene, figure);
    scene_part_faint(scene, figure);
    share_axes(scene);
    plots_share_hues(scene->plots, scene->count);
    scene_share_greys(scene);
    return true;
}

void scene_free(Scene *scene)
{
    for (int k = 0; k < scene->count; k++) {
        grid_free(&scene->grids[k]);
        plot_free(scene->plots[k]);
    }
    free(scene->plots);
    free(scene->panels);
    free(scene->grids);
    *scene = (Scene){ 0 };
}

bool scene_shows_cover(const Scene *scene)
{
    for (int k = 0; k < scene->count; k++) {
        const Grid *g = &scene->grids[k];

        if (panel_style(&scene->panels[k]) == STYLE_CAUSE &&
            scene->panels[k].pool == POOL_COVER &&
            (g->rows < g->region.row1 - g->region.row0 ||
             g->cols < g->region.col1 - g->region.col0))
            return true;
    }
    return false;
}

static bool shows_numbers(const Scene *scene, int k)
{
    const Panel *panel = &scene->panels[k];

    return !scene->plots[k] && panel_style(panel) == STYLE_CATEGORY &&
           panel->view->kind == VIEW_BUCKETS && !panel->view->categories;
}

void scene_tell_kinds(Scene *scene)
{
    char first[64] = "", word[64];

    for (int k = 0; k < scene->count; k++) {
        if (!shows_numbers(scene, k))
            continue;
        categories_word(scene->panels[k].view, word, sizeof(word));
        if (!*first)
            memcpy(first, word, sizeof(first));
        scene->panels[k].pale = strcmp(first, word) != 0;
    }
}

/* ---- the legend ------------------------------------------------------------- */

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

    if (lost && count < most)
        items[count++] = item_of(present->marks->name, red, colour_nearest_256(red), 'x');
    if (present->marks && !lost && count < most) {
        Rgb ring = chosen_colour_in(present->hues);

        items[count++] = item_of(present->marks->name, ring, colour_nearest_256(ring), 'o');
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

/* Each way that found a cell once, then "missed". */
static int found_items(const Present *present, LegendItem *items, int most)
{
    const View *missed = NULL;
    int         count = 0;

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

/* "buckets:" and their numbers; apart: something else stands before them. */
static int number_items(const Present *present, bool pale, bool apart, LegendItem *items, int most)
{
    const Numbers *numbers = &present->numbers[pale];
    int            count = 0;
    char           text[16];

    if (!lists_numbers(numbers))
        return 0;
    if (apart && count < most) {
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
static int category_items(const Present *present, bool apart, LegendItem *items, int most)
{
    bool both = lists_numbers(&present->numbers[0]) && lists_numbers(&present->numbers[1]);
    int  count = 0;

    for (int k = 0; k < NAMED_MOST; k++)
        for (int c = 0; present->named[k].shown >> c && c < 64 && count < most; c++) {
            Rgb rgb = category_colour_in(present->hues, c);

            if (present->named[k].shown >> c & 1)
                items[count++] = item_of(present->named[k].names[c], rgb, colour_nearest_256(rgb),
                                         (char)toupper((unsigned char)*present->named[k].names[c]));
        }
    apart = apart || count || both;
    count += number_items(present, false, apart, items + count, most - count);
    return count + number_items(present, true, apart, items + count, most - count);
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
    int count = 0;

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
    count += category_items(present, count > 0, items + count, most - count);
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
