/* vary_usual.c -- a range for a parameter when nobody named one: by factors of two around
 * the value one has, or by small steps all over what is allowed; see vary.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/study/vary.h"
#include "attn/param.h"

static void add_words(const Param *param, Text *out)
{
    for (int i = 0; param->choices[i]; i++)
        text_addf(out, "%s%s", i ? "," : "", param->choices[i]);
}

/* As the parameter takes it: whole, even; *last is the value before, to say each once. */
static void add_value(const Param *param, double value, double *last, Text *out)
{
    if (param->type == PARAM_TYPE_INT)
        value = param->even ? 2 * round(value / 2) : round(value);
    if (!(value >= param->lo) || !(value <= param->hi) || !(value > *last))
        return;
    text_addf(out, isfinite(*last) ? ",%.6g" : "%.6g", value);
    *last = value;
}

/* The value one has, else the default; a start where that is worked out or nothing. */
static double value_of(const Param *param, const char *now)
{
    char  *end;
    double value = strtod(now, &end);

    if (end == now || *end)
        value = param->fallback;
    return value > 0 && value < PARAM_COUNT_MAX ? value : param->type == PARAM_TYPE_INT ? 8 : 1;
}

static bool add_numbers(const Param *param, const char *now, int64_t n, bool dense, Text *out)
{
    bool   whole = param->type == PARAM_TYPE_INT;
    double value = value_of(param, now), least = whole ? fmax(1, param->lo) : value / 16, last;
    double first = dense ? least : value / 8, by = dense ? M_SQRT2 : 2;
    double most = dense && whole ? 2 * (double)n : 4 * value;

    last = -HUGE_VAL;
    if (whole && !dense && most > (double)n && value <= (double)n)
        most = (double)n; /* few take more than there are tokens */
    for (double at = first; at <= most * (1 + 1e-9); at *= by)
        if (whole ? at >= 1 : at >= value / 4 * (1 - 1e-9))
            add_value(param, at, &last, out);
    return isfinite(last);
}

bool vary_usual(const struct Param *param, const char *now, int64_t n, bool dense, Text *out)
{
    text_addf(out, "%s=", param->name);
    switch (param->type) {
    case PARAM_TYPE_ENUM: add_words(param, out); return true;
    case PARAM_TYPE_BOOL: text_add(out, "false,true"); return true;
    case PARAM_TYPE_INT:
    case PARAM_TYPE_FLOAT: return add_numbers(param, now, n, dense, out);
    default: return false;
    }
}
