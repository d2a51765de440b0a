/* lesson_number.c -- numbers as a learner types them: with units, spaces and either comma. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/lesson/lesson.h"

#define TYPED_MOST 64

static const struct {
    const char *name;
    double      factor;
} units[] = { { "%", 1 },         { "x", 1 },           { "k", 1e3 },
              { "K", 1e3 },       { "M", 1e6 },         { "G", 1e9 },
              { "T", 1e12 },      { "KiB", 0x1p10 },    { "MiB", 0x1p20 },
              { "GiB", 0x1p30 } };
#define UNITS (sizeof(units) / sizeof(*units))

/* 0: none of these. */
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

/* What a number with this unit behind it counts, where `asked` is the unit that is asked for:
 * nothing and "%" the same; of KiB, "M" is MiB.  0: it is no such unit. */
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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "4,096" is four thousand and "4,5" four and a half: three digits behind a comma are thousands,
 * unless a 0 stands before it. */
static void read_commas(char *text)
{
    for (char *comma = strchr(text, ','); comma; comma = strchr(text, ',')) {
        char  *whole = text + (*text == '-');
        size_t digits = strspn(comma + 1, "0123456789");

        if (digits == 3 && comma > whole && *whole != '0')
            memmove(comma, comma + 1, strlen(comma)); /* its end with it */
        else
            *comma = '.';
    }
}

/* Without blanks. */
static void squeeze(const char *typed, char text[TYPED_MOST])
{
    size_t length = 0;

    for (; *typed && length + 1 < TYPED_MOST; typed++)
        if (*typed != ' ')
            text[length++] = *typed;
    text[length] = '\0';
}

bool lesson_number(const char *typed, const char *unit, double *out, Error *err)
{
    char   text[TYPED_MOST], *end;
    double scale;

    squeeze(typed, text);
    read_commas(text);
    *out = strtod(text, &end);
    scale = scale_of(end, unit);
    if (end == text || !(scale > 0) || !isfinite(*out))
        return error_set(err, ERR_USAGE, "'%.20s' is no number; write it like 12, 0.5 or 1.5k",
                         typed);
    *out *= scale;
    return true;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

bool lesson_number_begins(const char *typed, const char *unit)
{
    char   text[TYPED_MOST], *rest = text;
    size_t points = 0;

    squeeze(typed, text);
    rest += *rest == '-';
    if (*rest && !is_digit(*rest))
        return false;
    for (; is_digit(*rest) || *rest == '.' || *rest == ','; rest++)
        points += *rest == '.';
    if (points > 1)
        return false;
    if (!*rest || (unit && begins(unit, rest)))
        return true;
    for (size_t i = 0; i < UNITS; i++)
        if (begins(units[i].name, rest) && *rest != 'x' && *rest != 'T')
            return true;
    return false;
}
