/* wrap.c -- where a line may break, and what is cut where none fits; see wrap.h. */
#include "draw/text/wrap.h"

#include <stdio.h>
#include <string.h>

#include "draw/text/unicode.h"

#define DOT " \xC2\xB7 " /* between a mechanism and its view */

static double columns_width(void *context, const char *text)
{
    (void)context;
    return utf8_columns(text);
}

WrapRule wrap_columns(int columns, bool ascii)
{
    return (WrapRule){ .width = columns_width, .room = columns, .ascii = ascii };
}

static bool fits_room(const char *text, size_t length, const WrapRule *rule)
{
    char part[1024];

    if (length >= sizeof(part))
        return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return rule->width(rule->context, part) <= rule->room;
}

static bool joins(char c)
{
    return c == ',' || c == '+';
}

/* The sign of a footnote stays with the words that it stands before. */
static bool ends_in_sign(const char *text, size_t length)
{
    for (int k = 0; k < FOOTNOTE_SIGNS; k++) {
        size_t own = strlen(footnote_signs[k]);

        if (length >= own && !memcmp(text + length - own, footnote_signs[k], own))
            return true;
    }
    return false;
}

/* The blank at `at` is within a number and its unit, a name and its value, or "3 x 4". */
static bool binds(const char *text, size_t at)
{
    const char *next = text + at + 1;
    bool        digit = *next >= '0' && *next <= '9';

    return *next == '%' || *next == '=' || text[at - 1] == '=' ||
           (next[0] == 'x' && next[1] == ' ') ||
           (digit && at >= 2 && text[at - 1] == 'x' && text[at - 2] == ' ');
}

size_t wrap_break(const char *text, const WrapRule *rule)
{
    size_t length = strlen(text), blank = 0, clause = 0, joint = 0, any = 0;

    if (fits_room(text, length, rule))
        return length;
    for (size_t at = 1; at < length; at++) {
        if (utf8_continues(text[at]))
            continue;
        if (any && !fits_room(text, at, rule))
            break;
        any = at;
        if (text[at] == ' ' && text[at - 1] != ' ' && !ends_in_sign(text, at) && !binds(text, at))
            blank = at;
        if (blank == at && text[at - 1] == ',')
            clause = at;
        if (joins(text[at - 1]))
            joint = at;
    }
    if (5 * clause >= 3 * any && clause > 0)
        return clause;
    if (blank > 0 && 5 * blank >= 2 * any) /* no line of one short word */
        return blank;
    return joint > 0 ? joint : blank > 0 ? blank : any > 0 ? any : length;
}

void wrap_cut(const char *text, const WrapRule *rule, char *out, size_t size)
{
    int columns = utf8_columns(text);

    utf8_fit(text, columns + 1, rule->ascii, out, size);
    while (columns > 1 && rule->width(rule->context, out) > rule->room)
        utf8_fit(text, --columns, rule->ascii, out, size);
}

static void line_cut(Lines *out, const char *text, size_t length, const WrapRule *rule)
{
    char raw[1024];

    snprintf(raw, sizeof(raw), "%.*s", (int)(length < sizeof(raw) ? length : sizeof(raw) - 1),
             text);
    wrap_cut(raw, rule, out->text[out->count++], WRAP_BYTES);
}

void wrap_text(const char *text, const WrapRule *rule, int most, Lines *out)
{
    out->count = 0;
    most = most < WRAP_LINES ? most : WRAP_LINES;
    for (text += strspn(text, " "); *text && out->count < most; text += strspn(text, " ")) {
        size_t length = out->count + 1 < most ? wrap_break(text, rule) : strlen(text);

        line_cut(out, text, length, rule);
        text += length;
    }
}

static bool two_lines(const char *title, size_t end, size_t next, const WrapRule *rule, Lines *out)
{
    size_t rest = strlen(title + next);

    if (!fits_room(title, end, rule) || !fits_room(title + next, rest, rule))
        return false;
    line_cut(out, title, end, rule);
    line_cut(out, title + next, rest, rule);
    return true;
}

/* Breaks at the last middle dot at which both parts fit. */
static bool break_at_dot(const char *title, const WrapRule *rule, Lines *out)
{
    for (size_t at = strlen(title); at-- > 0;)
        if (strncmp(title + at, DOT, strlen(DOT)) == 0 &&
            two_lines(title, at, at + strlen(DOT), rule, out))
            return true;
    return false;
}

/* The blank is inside "r = 2" or "m = 1/4", which stay whole where another break exists. */
static bool beside_equals(const char *title, size_t blank)
{
    return title[blank + 1] == '=' || title[blank - 1] == '=';
}

/* At the last blank that leaves `least` of the room to the second line; whole: no break beside a
 * sign of equality. */
static bool break_at_blank(const char *title, const WrapRule *rule, bool whole, double least,
                           Lines *out)
{
    for (size_t at = strlen(title); at-- > 1;) {
        bool blank = title[at] == ' ' && (at < 2 || strncmp(title + at - 2, &DOT[1], 2) != 0);

        if ((blank && whole && beside_equals(title, at)) ||
            rule->width(rule->context, title + at + blank) < least * rule->room)
            continue;
        if ((blank || joins(title[at - 1])) && two_lines(title, at, at + blank, rule, out))
            return true;
    }
    return false;
}

bool wrap_title(const char *title, const WrapRule *rule, Lines *out)
{
    size_t length = strlen(title);

    out->count = 0;
    if (!length)
        return true;
    if (fits_room(title, length, rule)) {
        line_cut(out, title, length, rule);
        return true;
    }
    return break_at_dot(title, rule, out) ||
           break_at_blank(title, rule, true, WRAP_LAST_LEAST, out) ||
           break_at_blank(title, rule, true, 0, out) ||
           break_at_blank(title, rule, false, 0, out);
}

static const char *last_dot(const char *title)
{
    const char *last = NULL;

    for (const char *at = strstr(title, DOT); at; at = strstr(at + 1, DOT))
        last = at;
    return last ? last : title + strlen(title);
}

/* Adds the lines of a part; false: there are too many, or a word is too wide. */
static bool add_whole(const char *part, const WrapRule *rule, Lines *out)
{
    for (part += strspn(part, " "); *part; part += strspn(part, " ")) {
        size_t length = wrap_break(part, rule);
        bool   inside = part[length] && part[length] != ' ' && !joins(part[length - 1]);

        if (inside || out->count == TITLE_LINES || !fits_room(part, length, rule))
            return false;
        line_cut(out, part, length, rule);
        part += length;
    }
    return true;
}

bool wrap_title_whole(const char *title, const WrapRule *rule, Lines *out)
{
    const char *tail = last_dot(title);
    char        head[512];

    out->count = 0;
    snprintf(head, sizeof(head), "%.*s", (int)(tail - title), title);
    return add_whole(head, rule, out) &&
           (!*tail || add_whole(tail + strlen(DOT), rule, out));
}

void wrap_title_cut(const char *title, const WrapRule *rule, Lines *out)
{
    const char *tail = last_dot(title);
    char        head[512], shorter[1024], cut[512];

    snprintf(head, sizeof(head), "%.*s", (int)(tail - title), title);
    for (int columns = utf8_columns(head) - 1; columns > 1; columns--) {
        utf8_fit(head, columns, rule->ascii, cut, sizeof(cut));
        snprintf(shorter, sizeof(shorter), "%s%s", cut, tail);
        if (wrap_title(shorter, rule, out))
            return;
    }
    out->count = 0;
    line_cut(out, title, strlen(title), rule);
}
