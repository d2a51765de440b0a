/* vary.c -- see vary.h. */
#include "app/study/vary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

void vary_free(Vary *vary)
{
    for (int i = 0; i < vary->count; i++)
        free(vary->values[i]);
    free(vary->values);
    *vary = (Vary){ 0 };
}

double vary_number(const Vary *vary, int index)
{
    char  *end;
    double value = strtod(vary->values[index], &end);

    return *end || end == vary->values[index] ? (double)NAN : value;
}

static bool add_value(Vary *out, const char *text, size_t length, Error *err)
{
    char **grown;

    if (out->count == VARY_MOST)
        return error_set(err, ERR_USAGE, "%s: more than %d values", out->name, VARY_MOST);
    if (!length)
        return error_set(err, ERR_USAGE, "%s: an empty value in the list", out->name);
    grown = realloc(out->values, (size_t)(out->count + 1) * sizeof(*grown));
    if (grown) {
        out->values = grown;
        grown[out->count] = strndup(text, length);
    }
    if (!grown || !grown[out->count])
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s", out->name);
    out->count++;
    return true;
}

static bool add_number(Vary *out, double value, Error *err)
{
    char text[32];

    snprintf(text, sizeof(text), value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.9g",
             value);
    return add_value(out, text, strlen(text), err);
}

static bool add_list(Vary *out, const char *text, Error *err)
{
    for (;; text++) {
        size_t length = strcspn(text, ",");

        if (!add_value(out, text, length, err))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

#define FORM "expected FIRST:LAST:xFACTOR, FIRST:LAST:+STEP or values with commas"

static bool add_range(Vary *out, const char *text, Error *err)
{
    char  *end;
    double first = strtod(text, &end), last, by = 2, slack;
    bool   times = true;

    if (end == text || *end != ':')
        return error_set(err, ERR_USAGE, "%s=%s: " FORM, out->name, text);
    last = strtod(end + 1, &end);
    if (*end == ':' && (end[1] == 'x' || end[1] == '+')) {
        times = end[1] == 'x';
        by = strtod(end + 2, &end);
    }
    if (*end || !(last >= first) || !(times ? by > 1 && first > 0 : by > 0))
        return error_set(err, ERR_USAGE, "%s=%s: " FORM, out->name, text);
    out->times = times;
    slack = 1 + 1e-9; /* 0.1 + 0.1 + 0.1 is a little more than 0.3 */
    for (double value = first, k = 0; value <= last * slack || value <= last + 1e-9 * by; k++) {
        if (!add_number(out, value, err))
            return false;
        value = times ? value * by : first + (k + 1) * by;
    }
    return true;
}

bool vary_parse(const char *text, Vary *out, Error *err)
{
    const char *equals = strchr(text, '=');
    bool        ok;

    *out = (Vary){ 0 };
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof(out->name))
        return error_set(err, ERR_USAGE, "'%s': expected NAME=VALUES, as features=16:512:x2", text);
    memcpy(out->name, text, (size_t)(equals - text));
    ok = strchr(equals, ':') ? add_range(out, equals + 1, err) : add_list(out, equals + 1, err);
    if (!ok)
        vary_free(out);
    return ok;
}
