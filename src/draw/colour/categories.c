/* categories.c -- what categories are called and how they are told apart; see figure.h.
 *
 * A bucket, a cluster or an expert has a colour and a letter by its number.  There are fewer
 * of both than there may be categories, so they come again; named ones never do.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "draw/figure/scene.h"

#define ANY_WORD "category"

/* "buckets" of position_buckets: the last word, where it is a plural. */
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

/* Some cell shows it, or holds it and nothing less or more. */
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

Rgb panel_category_colour(const Panel *panel, int32_t category)
{
    if (panel_shows_schedule(panel))
        return schedule_colour(category, panel->hues);
    return category_colour_in(panel->hues, category);
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
