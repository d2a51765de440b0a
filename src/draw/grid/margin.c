/* margin.c -- see margin.h. */
#include "draw/grid/margin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[MARGIN_KINDS] = {
    [MARGIN_NONE] = "none", [MARGIN_SUMS] = "sums", [MARGIN_ENTROPY] = "entropy",
    [MARGIN_KEPT] = "kept",
};

void margin_free(Margin *margin)
{
    free(margin->row);
    free(margin->col);
    *margin = (Margin){ 0 };
}

const char *margin_name(MarginKind kind)
{
    return kind >= 0 && kind < MARGIN_KINDS ? names[kind] : "?";
}

bool margin_parse(const char *name, MarginKind *out, Error *err)
{
    for (int kind = 0; kind < MARGIN_KINDS; kind++)
        if (!strcmp(name, names[kind])) {
            *out = (MarginKind)kind;
            return true;
        }
    return error_set(err, ERR_USAGE, "there are no strips '%.40s'; choose sums, entropy, kept or "
                     "none", name);
}

const char *margin_unit(const Margin *margin)
{
    switch (margin->kind) {
    case MARGIN_SUMS: return margin->counts ? "pairs" : "sum";
    case MARGIN_ENTROPY: return "nats";
    case MARGIN_KEPT: return "kept";
    default: return "";
    }
}

void margin_title(const Margin *margin, char *text, size_t size)
{
    const char *what = margin->counts ? "pairs" : "sum";

    switch (margin->kind) {
    case MARGIN_SUMS:
        if (margin->queries)
            snprintf(text, size, "%s of each row, of %d rows in each column", what,
                     margin->queries);
        else
            snprintf(text, size, "%s of each row, column", what);
        return;
    case MARGIN_ENTROPY: snprintf(text, size, "entropy of each row (nats)"); return;
    case MARGIN_KEPT: snprintf(text, size, "exact attention kept"); return;
    default: *text = '\0';
    }
}

bool margin_has_negative(const Margin *margin)
{
    for (int64_t i = 0; i < margin->rows; i++)
        if (margin->row[i] < 0)
            return true;
    for (int64_t j = 0; margin->col && j < margin->cols; j++)
        if (margin->col[j] < 0)
            return true;
    return false;
}

double margin_mean(const double *values, const int32_t *order, int64_t first, int64_t last)
{
    double  sum = 0;
    int64_t known = 0;

    for (int64_t at = first; at < last; at++) {
        double value = values[order ? order[at] : at];

        if (isnan(value))
            continue;
        sum += value;
        known++;
    }
    return known ? sum / (double)known : (double)NAN;
}

double margin_most(const Margin *margin, bool rows, const int32_t *order, int64_t first,
                  int64_t last, int64_t each)
{
    double most = 0;

    if (margin->kind == MARGIN_KEPT)
        return 1;
    for (int64_t at = first; at < last; at += each) {
        int64_t end = at + each < last ? at + each : last;
        double  value = margin_mean(rows ? margin->row : margin->col, order, at, end);

        most = isnan(value) ? most : fmax(most, fabs(value));
    }
    return most > 0 ? most : 1;
}
