/* panel_word.c -- see panel_word.h. */
#include "app/figure/panel_word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Quotes and brackets belong to the parameters; what follows them is ours. */
typedef struct Scan {
    int  depth;
    char quote; /* that is open; 0: none */
} Scan;

static bool outside(Scan *scan, char c)
{
    if (scan->quote) {
        scan->quote = c == scan->quote ? 0 : scan->quote;
        return false;
    }
    if (c == '"' || c == '\'')
        scan->quote = c;
    scan->depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    return !scan->depth && !scan->quote && c != ')' && c != ']' && c != '}';
}

/* The first of these characters outside brackets, or the end. */
static const char *find_outside(const char *text, const char *end, const char *any)
{
    Scan scan = { 0 };

    for (; text < end; text++)
        if (outside(&scan, *text) && strchr(any, *text))
            break;
    return text;
}

static const char *find_sign(const char *text, const char *sign)
{
    Scan scan = { 0 };

    for (; *text; text++)
        if (outside(&scan, *text) && !strncmp(text, sign, 3))
            return text;
    return NULL;
}

/* Blanks around a part mean nothing. */
static void trim(const char **text, const char **end)
{
    while (*text < *end && **text == ' ')
        ++*text;
    while (*end > *text && (*end)[-1] == ' ')
        --*end;
}

static const char *find_minus(const char *text)
{
    return find_sign(text, " - ");
}

const char *panel_word_end(const char *words)
{
    const char *plus = find_sign(words, " + ");

    return plus ? plus : words + strlen(words);
}

static bool parse_head(const char *text, const char *end, int64_t *head, Error *err)
{
    char *stop;
    long  value = strtol(text, &stop, 10);

    *head = HEADS_ALL;
    if (end - text == 1 && *text == '*')
        return true;
    if (stop != end || stop == text || value < 0)
        return error_set(err, ERR_USAGE,
                         "'@%.*s': expected a head's number, counted from 0, or * for all",
                         (int)(end - text), text);
    *head = value;
    return true;
}

#define SORTED "/sorted"

static bool parse_view(const char *text, const char *end, PanelSide *side, Error *err)
{
    const char *slash = memchr(text, '/', (size_t)(end - text));

    if (slash) {
        side->sorted =
            end - slash == (int)strlen(SORTED) && !strncmp(slash, SORTED, strlen(SORTED));
        if (!side->sorted)
            return error_set(err, ERR_USAGE, "'%.*s': after a view only /sorted can stand",
                             (int)(end - slash), slash);
        end = slash;
    }
    if (end == text || end - text >= (int)sizeof(side->view))
        return error_set(err, ERR_USAGE, "':%.*s': expected the name of a view", (int)(end - text),
                         text);
    snprintf(side->view, sizeof(side->view), "%.*s", (int)(end - text), text);
    return true;
}

/* A view and a head, each once: what came first would go unseen. */
static bool said_once(const char *text, const char *end, char sign, const PanelSide *side,
                      Error *err)
{
    bool again = sign == '@' ? side->head != -1 : side->view[0] != 0;

    return !again || error_set(err, ERR_USAGE,
                               "'%.*s': a panel has one %s; a difference has blanks around its "
                               "minus, as in 'full:weights - bigbird:weights'",
                               (int)(end - text), text, sign == '@' ? "head" : "view");
}

static bool parse_side(const char *text, const char *end, PanelSide *side, Error *err)
{
    const char *stop;

    *side = (PanelSide){ .head = -1 };
    trim(&text, &end);
    stop = find_outside(text, end, ":@");
    for (const char *at = stop, *next; at < end; at = next) {
        next = at + 1 + strcspn(at + 1, ":@");
        next = next < end ? next : end;
        if (!said_once(text, end, *at, side, err))
            return false;
        if (*at == '@' ? !parse_head(at + 1, next, &side->head, err)
                       : !parse_view(at + 1, next, side, err))
            return false;
    }
    if (stop == text)
        return error_set(err, ERR_USAGE, "a panel needs a mechanism, as in full:weights");
    side->mechanism = strndup(text, (size_t)(stop - text));
    return side->mechanism || error_set(err, ERR_NOMEM, "not enough memory");
}

void panel_word_free(PanelWord *word)
{
    free(word->shown.mechanism);
    free(word->minus.mechanism);
    *word = (PanelWord){ 0 };
}

/* The braces that end a word: *end becomes where they begin. */
static bool parse_looks(const char *text, const char **end, PanelLooks *out, Error *err)
{
    Scan        scan = { 0 };
    const char *open = NULL;

    for (const char *at = text; at < *end && !open; at++) {
        if (*at == '{' && !scan.depth && !scan.quote)
            open = at;
        outside(&scan, *at);
    }
    if (!open)
        return true;
    if ((*end)[-1] != '}')
        return error_set(err, ERR_USAGE, "'%s': the braces of a panel's looks end its word", text);
    if (!panel_looks_parse(open + 1, (size_t)(*end - open - 2), out, err))
        return false;
    *end = open;
    return true;
}

bool panel_word_parse(const char *text, PanelWord *out, Error *err)
{
    const char *minus = find_minus(text), *end = text + strlen(text);

    *out = (PanelWord){ 0 };
    trim(&text, &end);
    if (!parse_looks(text, &end, &out->looks, err))
        return false;
    if (!parse_side(text, minus ? minus : end, &out->shown, err))
        return false;
    if (!minus)
        return true;
    if (find_minus(minus + 3))
        error_set(err, ERR_USAGE, "'%s': one difference a panel", text);
    else if (parse_side(minus + 3, end, &out->minus, err) && out->minus.head == -1)
        return true;
    else if (out->minus.mechanism)
        error_set(err, ERR_USAGE, "'%s': the head is said once, before the minus", text);
    panel_word_free(out);
    return false;
}
