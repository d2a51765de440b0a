/* note.c -- see note.h. */
#include "draw/grid/note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "12" or "*", up to the colon; NULL: neither. */
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

/* Where the entry stands among those of [from, to); -1: nowhere. */
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
