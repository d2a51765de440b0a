/* annotation.c -- margins and notes; see annotation.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/grid/annotation.h"

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

/* ---- notes ------------------------------------------------------------------ */

/* Reads "12:" or "*:"; returns what follows, NULL: neither. */
static const char *parse_place(const char *at, int64_t *out)
{
    char *end;

    if (at[0] == '*' && at[1] == ':') {
        *out = -1;
        return at + 2;
    }
    *out = strtoll(at, &end, 10);
    return end != at && *end == ':' && *out >= 0 && *at != '+' && *at != ' ' ? end + 1 : NULL;
}

static bool parse_one(const char *at, size_t length, PanelNote *out, Error *err)
{
    char        one[128];
    const char *next;

    snprintf(one, sizeof(one), "%.*s", (int)length, at);
    next = length < sizeof(one) ? parse_place(one, &out->row) : NULL;
    next = next ? parse_place(next, &out->col) : NULL;
    if (!next || (out->row < 0 && out->col < 0))
        return error_set(err, ERR_PARAM, "note '%.60s': expected QUERY:KEY:TEXT, as in 5:3:near "
                         "itself; one of the numbers may be * for all", one);
    if (strlen(next) >= sizeof(out->text) || strpbrk(next, "{}=\n"))
        return error_set(err, ERR_PARAM, "note '%.60s': its text has %d bytes at most, and none "
                         "of { } =", one, (int)sizeof(out->text) - 1);
    snprintf(out->text, sizeof(out->text), "%s", next);
    return true;
}

bool notes_parse(const char *text, PanelNote *out, int *count, Error *err)
{
    *count = 0;
    while (*text) {
        size_t length = strcspn(text, "|");

        if (*count == PANEL_NOTES)
            return error_set(err, ERR_PARAM, "a panel has %d notes at most", PANEL_NOTES);
        if (!parse_one(text, length, &out[*count], err))
            return false;
        ++*count;
        text += length + (text[length] == '|');
    }
    return true;
}

/* Displayed place of the entry among [from, to); -1: not there. */
static int64_t shown_at(const int32_t *order, int64_t entry, int64_t from, int64_t to)
{
    for (int64_t at = from; order && at < to; at++)
        if (order[at] == entry)
            return at;
    return !order && entry >= from && entry < to ? entry : -1;
}

bool note_region(const PanelNote *note, const int32_t *row_order, const int32_t *col_order,
                 Region sight, Region *out)
{
    *out = sight;
    if (note->row >= 0) {
        out->row0 = shown_at(row_order, note->row, sight.row0, sight.row1);
        out->row1 = out->row0 + 1;
    }
    if (note->col >= 0) {
        out->col0 = shown_at(col_order, note->col, sight.col0, sight.col1);
        out->col1 = out->col0 + 1;
    }
    return out->row0 >= 0 && out->col0 >= 0;
}

void note_words(const PanelNote *note, const char *rows, const char *cols, char *text, size_t size)
{
    char row[48] = "", col[48] = "";

    if (note->row >= 0)
        snprintf(row, sizeof(row), "%.16s %lld", rows, (long long)note->row);
    if (note->col >= 0)
        snprintf(col, sizeof(col), "%.16s %lld", cols, (long long)note->col);
    snprintf(text, size, "%s%s%s%s%s", row, *row && *col ? ", " : "", col, *note->text ? ": " : "",
             note->text);
}
