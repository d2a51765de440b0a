/* number.c -- numbers as a learner types them: units, blanks, either comma, and sums of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/lesson/lesson.h"

#define TYPED_MOST 64

/* ---- units ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    double      factor;
} units[] = { { "%", 1 },         { "x", 1 },           { "k", 1e3 },
              { "K", 1e3 },       { "M", 1e6 },         { "G", 1e9 },
              { "KiB", 0x1p10 },  { "MiB", 0x1p20 },    { "GiB", 0x1p30 } };
#define UNITS (sizeof(units) / sizeof(*units))

/* 0: no such prefix. */
static double factor_of(const char *name)
{
    for (size_t i = 0; i < UNITS; i++)
        if (!strcmp(name, units[i].name))
            return units[i].factor;
    return 0;
}

static bool binary(const char *name)
{
    return *name && !strcmp(name + 1, "iB");
}

/* Factor of a unit, where `asked` is the one asked for: nothing and "%" are the same; with KiB
 * asked for, "M" is MiB.  0: no such unit. */
static double scale_of(const char *name, const char *asked)
{
    char whole[] = { *name == 'k' ? 'K' : *name, 'i', 'B', '\0' };

    if (!*name || (asked && !strcmp(name, asked)))
        return 1;
    if (!asked || !binary(asked))
        return factor_of(name);
    if (!name[1] && factor_of(whole) > 0)
        name = whole;
    return binary(name) ? factor_of(name) / factor_of(asked) : 0;
}

/* ---- one number ------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "4,096" is 4096 and "4,5" is 4.5: a comma before three digits marks thousands, unless the number
 * is 0. */
static void read_commas(char *text)
{
    for (char *comma = strchr(text, ','); comma; comma = strchr(text, ',')) {
        size_t digits = strspn(comma + 1, "0123456789");

        if (digits == 3 && comma > text && *text != '0')
            memmove(comma, comma + 1, strlen(comma)); /* its end with it */
        else
            *comma = '.';
    }
}

/* Copies without blanks; false: it is too long. */
static bool squeeze(const char *typed, char text[TYPED_MOST])
{
    size_t length = 0;

    for (; *typed && length + 1 < TYPED_MOST; typed++)
        if (*typed != ' ')
            text[length++] = *typed;
    text[length] = '\0';
    return !*typed;
}

/* An x between two numbers multiplies; elsewhere it is a unit. */
static bool is_times(const char *at)
{
    return *at == '*' || (*at == 'x' && (is_digit(at[1]) || at[1] == '('));
}

/* Letters of a unit that begin here. */
static size_t unit_length(const char *at)
{
    size_t length = 0;

    if (*at == '%' || *at == 'x')
        return !is_times(at);
    while ((at[length] >= 'a' && at[length] <= 'z' && at[length] != 'x') ||
           (at[length] >= 'A' && at[length] <= 'Z'))
        length++;
    return length;
}

typedef struct Reading {
    const char *at;   /* NULL: it is no number */
    const char *unit; /* asked for */
} Reading;

static double failed(Reading *r)
{
    r->at = NULL;
    return 0;
}

/* "1,234.5", "1e-3", "12 KiB". */
static double read_figure(Reading *r)
{
    char   figure[TYPED_MOST], unit[TYPED_MOST], *end;
    size_t length = strspn(r->at, "0123456789.,"), letters;
    double value, scale;

    if (!is_digit(r->at[*r->at == '.']))
        return failed(r);
    if (r->at[length] == 'e' && strchr("+-0123456789", r->at[length + 1]) &&
        r->at[length + 1])
        length += 2 + strspn(r->at + length + 2, "0123456789");
    memcpy(figure, r->at, length);
    figure[length] = '\0';
    read_commas(figure);
    value = strtod(figure, &end);
    letters = unit_length(r->at + length);
    memcpy(unit, r->at + length, letters);
    unit[letters] = '\0';
    scale = scale_of(unit, r->unit);
    if (end == figure || *end || !(scale > 0) || !isfinite(value))
        return failed(r);
    r->at += length + letters;
    return value * scale;
}

/* ---- sums of them ----------------------------------------------------------------- */

static double read_sum(Reading *r, int depth);

static double read_part(Reading *r, int depth)
{
    double value;

    if (*r->at != '(')
        return read_figure(r);
    r->at++;
    value = depth < 16 ? read_sum(r, depth + 1) : failed(r);
    if (!r->at || *r->at != ')')
        return failed(r);
    r->at++;
    return value;
}

static double read_power(Reading *r, int depth)
{
    bool   negative = *r->at == '-'; /* -2^2 is -4 */
    double value;

    r->at += negative;
    value = read_part(r, depth);
    if (r->at && *r->at == '^') {
        bool   below = *++r->at == '-';
        double power;

        r->at += below;
        power = read_part(r, depth);
        value = pow(value, below ? -power : power);
    }
    return negative ? -value : value;
}

static double read_product(Reading *r, int depth)
{
    double value = read_power(r, depth);

    while (r->at && (is_times(r->at) || *r->at == '/')) {
        bool   times = *r->at++ != '/';
        double by = read_power(r, depth);

        value = times ? value * by : value / by;
    }
    return value;
}

static double read_sum(Reading *r, int depth)
{
    double value = read_product(r, depth);

    while (r->at && (*r->at == '+' || *r->at == '-')) {
        bool   plus = *r->at++ == '+';
        double by = read_product(r, depth);

        value = plus ? value + by : value - by;
    }
    return value;
}

bool lesson_number(const char *typed, const char *unit, double *out, Error *err)
{
    char    text[TYPED_MOST];
    Reading reading = { text, unit };

    *out = squeeze(typed, text) ? read_sum(&reading, 0) : failed(&reading);
    if (!reading.at || *reading.at || !isfinite(*out))
        return error_set(err, ERR_USAGE, "'%.20s' is no number; write it like 12, 0.5, 1.5k or "
                         "64*64", typed);
    return true;
}

/* ---- as it is typed --------------------------------------------------------------- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* The letters at the end of the text may become a unit. */
static bool begins_unit(const char *letters, const char *unit)
{
    if (unit && begins(unit, letters))
        return true;
    for (size_t i = 0; i < UNITS; i++)
        if (begins(units[i].name, letters))
            return true;
    return false;
}

/* Behind a number: goes over its unit and closing brackets, to the operator. */
static const char *over_unit(const char *at, const char *unit, int *open)
{
    char   name[TYPED_MOST];
    size_t length = unit_length(at);

    memcpy(name, at, length);
    name[length] = '\0';
    if (length && !at[length])
        return begins_unit(name, unit) ? at + length : NULL;
    if (!(scale_of(name, unit) > 0))
        return NULL;
    for (at += length; *at == ')' && *open > 0; at++)
        --*open;
    return at;
}

/* "e-3", or its beginning. */
static const char *over_exponent(const char *at)
{
    if (*at != 'e' || (at[1] && !strchr("+-0123456789", at[1])))
        return at;
    at++;
    at += *at == '+' || *at == '-';
    while (is_digit(*at))
        at++;
    return at;
}

bool lesson_number_begins(const char *typed, const char *unit)
{
    char        text[TYPED_MOST];
    const char *at = text;
    int         open = 0;

    if (!squeeze(typed, text))
        return false;
    for (;;) {
        size_t points = 0;

        for (at += *at == '-'; *at == '('; at += *at == '-') {
            open++;
            at++;
        }
        if (!*at)
            return true;
        if (!is_digit(*at) && (*at != '.' || (at[1] && !is_digit(at[1]))))
            return false;
        for (; is_digit(*at) || *at == '.' || *at == ','; at++)
            points += *at == '.';
        at = over_exponent(at);
        at = points > 1 ? NULL : over_unit(at, unit, &open);
        if (!at || !*at)
            return at != NULL;
        if (!is_times(at) && !strchr("+-/^", *at))
            return false;
        at++;
    }
}
