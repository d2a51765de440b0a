/* swap_axis.c -- a swap at the values of one name; see swap_axis.h. */
#include "app/study/swap_axis.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run/mechanism.h"

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The next place where the name stands as a value; NULL: none.  "window(" and "window=" are no
 * values. */
static const char *find_value(const char *from, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = strstr(from, name); at; at = strstr(at + length, name))
        if (at > from && !is_letter(at[-1]) && !is_letter(at[length]) && at[length] != '(' &&
            at[length] != '=')
            return at;
    return NULL;
}

static const char *find_in_parenthesis(const char *swap, const char *name)
{
    const char *open = strchr(swap, '(');

    return open ? find_value(open, name) : NULL;
}

static bool has_parameter(const char *swap, const char *name)
{
    char            *id = strndup(swap, strcspn(swap, "("));
    const Mechanism *m = id ? mechanism_find(id) : NULL;

    free(id);
    return m && m->params && params_find(m->params, name);
}

bool swap_varies(const char *swap, const char *name)
{
    return find_in_parenthesis(swap, name) || has_parameter(swap, name);
}

static void replace_values(const char *swap, const char *name, const char *value, Text *out)
{
    const char *at = find_in_parenthesis(swap, name);

    for (; at; at = find_value(swap, name)) {
        text_add_bytes(out, swap, (size_t)(at - swap));
        text_add(out, value);
        swap = at + strlen(name);
    }
    text_add(out, swap);
}

/* One item of the list, up to a comma outside brackets or the closing parenthesis. */
static size_t item_length(const char *item)
{
    size_t length = 0;

    for (int depth = 0; item[length]; length++) {
        if (depth == 0 && (item[length] == ',' || (item[length] == ')' && !item[length + 1])))
            break;
        depth += (item[length] == '(' || item[length] == '[') -
                 (item[length] == ')' || item[length] == ']');
    }
    return length;
}

/* The items of the parenthesis but the one that assigns the name, which comes last. */
static void assign(const char *swap, const char *name, const char *value, Text *out)
{
    const char *between = "(", *open = strchr(swap, '(');
    size_t      length = strlen(name);

    text_add_bytes(out, swap, strcspn(swap, "("));
    for (const char *item = open ? open + 1 : ""; *item && *item != ')';) {
        size_t size = item_length(item);

        if (strncmp(item, name, length) != 0 || item[length] != '=') {
            text_add(out, between);
            text_add_bytes(out, item, size);
            between = ",";
        }
        item += size + (item[size] == ',');
    }
    if (value)
        text_addf(out, "%s%s=%s", between, name, value);
    if (value || *between == ',')
        text_add(out, ")");
}

void swap_at(const char *swap, const char *name, const char *value, Text *out)
{
    if (find_in_parenthesis(swap, name))
        replace_values(swap, name, value ? value : name, out);
    else if (has_parameter(swap, name))
        assign(swap, name, value, out);
    else
        text_add(out, swap);
}
