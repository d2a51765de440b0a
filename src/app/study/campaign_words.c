/* campaign_words.c -- lists and ranges of values: "256:4096:x2", "3,5,9". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/campaign.h"
#include "app/study/vary.h"

bool words_add(WordList *list, const char *word, size_t length, Error *err)
{
    char *copy = strndup(word, length);

    if (list->count == list->capacity) {
        int    capacity = list->capacity ? 2 * list->capacity : 16;
        char **items = realloc(list->items, (size_t)capacity * sizeof(*items));

        if (items) {
            list->items = items;
            list->capacity = capacity;
        }
    }
    if (!copy || list->count == list->capacity) {
        free(copy);
        return error_set(err, ERR_NOMEM, "not enough memory for a list");
    }
    list->items[list->count++] = copy;
    return true;
}

void words_free(WordList *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (WordList){ 0 };
}

/* "256:4096": a number comes before the colon. */
static bool is_range(const char *item)
{
    char *end;

    strtod(item, &end);
    return end != item && *end == ':';
}

static bool add_range(const char *what, const char *item, WordList *out, Error *err)
{
    char text[200];
    Vary vary;
    bool ok;

    if (snprintf(text, sizeof(text), "%s=%s", what, item) >= (int)sizeof(text))
        return error_set(err, ERR_USAGE, "%s: '%.60s...' is too long for a range", what, item);
    ok = vary_parse(text, &vary, err);
    for (int i = 0; ok && i < vary.count; i++)
        ok = words_add(out, vary.values[i], strlen(vary.values[i]), err);
    if (ok)
        vary_free(&vary);
    return ok;
}

static bool add_item(const char *what, const char *start, size_t length, WordList *out, Error *err)
{
    char *item = strndup(start, length);
    bool  ok;

    if (!item)
        return error_set(err, ERR_NOMEM, "not enough memory for a list");
    if (!length)
        ok = error_set(err, ERR_USAGE, "%s: a value is empty (a comma too many?)", what);
    else if (is_range(item))
        ok = add_range(what, item, out, err);
    else
        ok = words_add(out, item, length, err);
    free(item);
    return ok;
}

bool words_expand(const char *what, const char *text, WordList *out, Error *err)
{
    const char *start = text;
    int         depth = 0;
    char        quote = 0;

    for (;; text++) {
        if (!*text || (*text == ',' && depth <= 0 && !quote)) {
            if (!add_item(what, start, (size_t)(text - start), out, err))
                return false;
            if (!*text)
                return true;
            start = text + 1;
        } else if (quote || *text == '\'' || *text == '"') {
            quote = !quote ? *text : quote == *text ? 0 : quote;
        } else {
            depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
        }
    }
}

static int by_number(const void *a, const void *b)
{
    long long x = strtoll(*(char *const *)a, NULL, 10), y = strtoll(*(char *const *)b, NULL, 10);

    return (x > y) - (x < y);
}

void words_sort_numbers(WordList *list)
{
    int kept = 0;

    if (list->count)
        qsort(list->items, (size_t)list->count, sizeof(*list->items), by_number);
    for (int i = 0; i < list->count; i++) {
        if (kept && by_number(&list->items[kept - 1], &list->items[i]) == 0)
            free(list->items[i]);
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}
