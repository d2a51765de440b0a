/* assignments.c -- what the user gave, as names and texts; see param.h. */
#include "attn/run/param.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void assignment_free(Assignment *item)
{
    free(item->text);
    free(item->items);
    *item = (Assignment){ 0 };
}

void assignments_free(Assignments *a)
{
    for (int i = 0; i < a->count; i++)
        assignment_free(&a->items[i]);
    free(a->items);
    *a = (Assignments){ 0 };
}

const Assignment *assignments_find(const Assignments *a, const char *name)
{
    for (int i = 0; a && i < a->count; i++)
        if (!strcmp(a->items[i].name, name))
            return &a->items[i];
    return NULL;
}

void assignments_remove(Assignments *a, const char *name)
{
    for (int i = 0; i < a->count; i++)
        if (!strcmp(a->items[i].name, name)) {
            assignment_free(&a->items[i]);
            memmove(&a->items[i], &a->items[i + 1],
                    (size_t)(a->count - i - 1) * sizeof(*a->items));
            a->count--;
            return;
        }
}

static Assignment *assignments_slot(Assignments *a, const char *name)
{
    Assignment *items;
    int         capacity = a->capacity ? 2 * a->capacity : 8;

    assignments_remove(a, name);
    if (a->count == a->capacity) {
        items = realloc(a->items, (size_t)capacity * sizeof(*items));
        if (!items)
            return NULL;
        a->items = items;
        a->capacity = capacity;
    }
    a->items[a->count] = (Assignment){ 0 };
    return &a->items[a->count];
}

bool assignments_set_tensor(Assignments *a, const char *name, Tensor tensor, const char *source,
                            Error *err)
{
    Assignment *slot;

    if (!*name || strlen(name) >= sizeof(slot->name))
        return error_set(err, ERR_PARAM, "parameter name '%.70s': expected 1 to %zu characters",
                         name, sizeof(slot->name) - 1);
    slot = assignments_slot(a, name);
    if (!slot || !(slot->text = strdup(source)))
        return error_set(err, ERR_NOMEM, "parameter '%s': not enough memory", name);
    strcpy(slot->name, name);
    slot->tensor = tensor;
    a->count++;
    return true;
}

bool assignments_set(Assignments *a, const char *name, const char *text, Error *err)
{
    return assignments_set_tensor(a, name, (Tensor){ 0 }, text, err);
}

bool assignments_copy(Assignments *to, const Assignments *from, Error *err)
{
    *to = (Assignments){ 0 };
    for (int i = 0; from && i < from->count; i++) {
        const Assignment *item = &from->items[i];

        if (!assignments_set_tensor(to, item->name, item->tensor, item->text, err)) {
            assignments_free(to);
            return false;
        }
    }
    return true;
}

/* Length of the value at `s`: up to a comma outside brackets and quotes. */
static size_t value_length(const char *s)
{
    int  depth = 0;
    char quote = 0;

    for (const char *c = s;; c++) {
        if (!*c || (*c == ',' && depth == 0 && !quote))
            return (size_t)(c - s);
        if (quote)
            quote = *c == quote ? 0 : quote;
        else if (*c == '\'' || *c == '"')
            quote = *c;
        else
            depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
    }
}

static char *trimmed(const char *s, size_t length)
{
    while (length && isspace((unsigned char)*s)) {
        s++;
        length--;
    }
    while (length && isspace((unsigned char)s[length - 1]))
        length--;
    if (length >= 2 && (*s == '\'' || *s == '"') && s[length - 1] == *s) {
        s++;
        length -= 2;
    }
    return strndup(s, length);
}

static bool parse_one(Assignments *a, const char *item, size_t length, Error *err)
{
    const char *equals = memchr(item, '=', length);
    char       *name, *value;
    bool        ok;

    if (!equals)
        return error_set(err, ERR_PARAM, "'%.*s': expected name=value", (int)length, item);
    name = trimmed(item, (size_t)(equals - item));
    value = trimmed(equals + 1, length - (size_t)(equals + 1 - item));
    ok = name && value ? assignments_set(a, name, value, err)
                       : error_set(err, ERR_NOMEM, "not enough memory for a parameter");
    free(name);
    free(value);
    return ok;
}

bool assignments_parse(Assignments *a, const char *list, Error *err)
{
    while (isspace((unsigned char)*list))
        list++;
    if (!*list)
        return true;
    for (;;) {
        size_t length = value_length(list);

        if (!parse_one(a, list, length, err))
            return false;
        if (!list[length])
            return true;
        list += length + 1;
    }
}
