/* table.c -- text tables, numbers as text, quoted words; see app/command/command.h. */
#include "app/command/command.h"
#include "core/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void table_cell(Table *t, const char *fmt, ...)
{
    va_list args;
    char   *cell = NULL;

    if (t->count == t->capacity) {
        int    capacity = t->capacity ? 2 * t->capacity : 64;
        char **cells = realloc(t->cells, (size_t)capacity * sizeof(*cells));

        if (!cells) {
            t->failed = true;
            return;
        }
        t->cells = cells;
        t->capacity = capacity;
    }
    va_start(args, fmt);
    t->failed |= vasprintf(&cell, fmt, args) < 0;
    va_end(args);
    if (!t->failed)
        t->cells[t->count++] = cell;
    else
        free(cell);
}

void table_number(Table *t, Number number, int digits)
{
    if (number.valid)
        table_cell(t, "%.*g", digits, number.value);
    else
        table_cell(t, "n/a");
}

void table_times(Table *t, double ratio)
{
    if (ratio > 0 && ratio < 1e-4)
        table_cell(t, "<0.0001x");
    else
        table_cell(t, ratio < 0.1 ? "%.4fx" : "%.2fx", ratio);
}

TableStyle call_style(const Call *call)
{
    return call->values[OPT_CSV] ? TABLE_CSV : call->values[OPT_MD] ? TABLE_MARKDOWN : TABLE_TEXT;
}

int call_room(const Call *call)
{
    return call->tty || call->paged ? call->columns : 0;
}

void table_free(Table *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (Table){ 0 };
}

/* Columns of a text: one for each character. */
static int display_width(const char *s)
{
    return utf8_count(s, strlen(s));
}

static bool is_numeric(const char *cell)
{
    return (*cell >= '0' && *cell <= '9') || (*cell == '-' && cell[1]) || !strcmp(cell, "n/a") ||
           *cell == '>' || *cell == '<';
}

static void write_padded(const char *cell, int width, bool right, bool last, Text *out)
{
    int pad = width - display_width(cell);

    if (right)
        text_addf(out, "%*s%s", pad > 0 ? pad : 0, "", cell);
    else
        text_addf(out, "%s%*s", cell, last || pad < 0 ? 0 : pad, "");
}

/* Width of the column's widest cell, and whether it is aligned to the right. */
static int column_width(const Table *t, int col, bool *right)
{
    int width = 0;

    *right = t->count > t->cols;
    for (int j = col; j < t->count; j += t->cols) {
        int w = display_width(t->cells[j]);

        width = w > width ? w : width;
        *right = *right && (j < t->cols || is_numeric(t->cells[j]));
    }
    return width;
}

/* Measured once: a width for each cell would cost the square of the rows. */
typedef struct Column {
    int  width;
    bool right;
} Column;

static Column *columns_of(const Table *t)
{
    Column *columns = calloc((size_t)t->cols + 1, sizeof(*columns));

    for (int col = 0; columns && col < t->cols; col++)
        columns[col].width = column_width(t, col, &columns[col].right);
    return columns;
}

static void write_cell(const char *cell, Column column, bool markdown, bool first, bool last,
                       Text *out)
{
    text_add(out, markdown ? "| " : first ? "" : "  ");
    write_padded(cell, column.width, column.right, last && !markdown, out);
    text_add(out, markdown ? (last ? " |" : " ") : "");
}

/* Writes the key columns, and those from `from` to before `to`. */
static void write_columns(const Table *t, const Column *columns, int keys, int from, int to,
                          bool markdown, Text *out)
{
    for (int row = 0; row + t->cols <= t->count; row += t->cols) {
        for (int col = 0; col < to; col = col + 1 == keys ? from : col + 1)
            write_cell(t->cells[row + col], columns[col], markdown, col == 0, col == to - 1, out);
        text_add(out, "\n");
        for (int c = 0; markdown && !row && c < t->cols; c++)
            text_add(out, c < t->cols - 1 ? "| --- " : "| --- |\n");
    }
}

/* Number of columns that fit beside the keys, at least one. */
static int columns_that_fit(const Table *t, const Column *columns, int keys, int from)
{
    int used = -2, to = from;

    for (int col = 0; col < keys; col++)
        used += 2 + columns[col].width;
    while (to < t->cols && (to == from || used + 2 + columns[to].width <= t->room))
        used += 2 + columns[to++].width;
    return to;
}

static void write_text(const Table *t, bool markdown, Text *out)
{
    Column *columns = columns_of(t);
    int     keys = t->keys ? t->keys : 1;
    bool    whole = markdown || !t->room || t->cols <= keys;

    out->failed |= !columns;
    if (columns && whole)
        write_columns(t, columns, t->cols, t->cols, t->cols, markdown, out);
    for (int from = keys, to; columns && !whole && from < t->cols; from = to) {
        to = columns_that_fit(t, columns, keys, from);
        text_add(out, from > keys ? "\n" : "");
        write_columns(t, columns, keys, from, to, false, out);
    }
    free(columns);
}

void text_add_folded(Text *out, const char *line, int room, int indent)
{
    int column = 0, least = 0; /* columns before the line's first word */

    while (room && *line) {
        size_t blanks = strspn(line, " "), word = strcspn(line + blanks, " ");
        int    width = (int)blanks + utf8_count(line + blanks, word);

        if (column > least && column + width > room) {
            text_addf(out, "\n%*s", indent, "");
            line += blanks;
            width -= (int)blanks;
            blanks = 0;
            column = least = indent;
        }
        text_add_bytes(out, line, blanks + word);
        column += width;
        line += blanks + word;
    }
    text_add(out, line);
    text_add(out, "\n");
}

void table_write(const Table *t, TableStyle style, Text *out)
{
    out->failed |= t->failed; /* a table cut short is no table */
    if (style != TABLE_CSV) {
        write_text(t, style == TABLE_MARKDOWN, out);
        return;
    }
    for (int i = 0; i < t->count; i++) {
        const char *cell = t->cells[i];

        csv_cell(out, strcmp(cell, "n/a") ? cell : "", i % t->cols == 0);
        if (i % t->cols == t->cols - 1)
            text_add(out, "\n");
    }
}

const char *format_ms(Number ms, char *text, size_t size)
{
    if (!ms.valid)
        return "n/a";
    snprintf(text, size, ms.value < 1 ? "%.3f" : ms.value < 100 ? "%.2f" : "%.0f", ms.value);
    return text;
}

const char *format_size(Number bytes, char *text, size_t size)
{
    return bytes.valid ? format_bytes((int64_t)bytes.value, text, size) : "n/a";
}

const char *format_share(Number share, char *text, size_t size)
{
    if (!share.valid)
        return "n/a";
    snprintf(text, size, "%.4g", share.value);
    return text;
}

const char *format_crossover(int64_t from, int64_t last, bool whole, char *text, size_t size)
{
    if (from && whole)
        snprintf(text, size, "%lld", (long long)from);
    else if (from)
        snprintf(text, size, "%lld, to %lld", (long long)from, (long long)last);
    else
        snprintf(text, size, whole ? "> %lld" : "not to %lld", (long long)last);
    return text;
}

void word_quote(Text *out, const char *word)
{
    if (*word && !strpbrk(word, " \t\n'\"\\$&|;<>()*?[]#~`!{}")) {
        text_add(out, word);
        return;
    }
    text_add(out, "'");
    for (; *word; word++) {
        if (*word == '\'')
            text_add(out, "'\\''");
        else
            text_add_bytes(out, word, 1);
    }
    text_add(out, "'");
}

void words_join(const char *const *words, int count, Text *out)
{
    for (int i = 0; i < count; i++) {
        if (i)
            text_add(out, " ");
        word_quote(out, words[i]);
    }
}
