/* csv.c -- one matrix as text: a row a line, cells parted by ',', ';', tab or spaces.
 *
 * The separator is the first of those that the first line of numbers holds.
 * Lines that begin with '#' and empty lines are skipped, and so is one heading
 * line without any number.  All rows must be equally long.
 */
#include "input/store.h"

#include <stdlib.h>
#include <string.h>

#include "input/labels.h"

typedef struct Reader {
    const char *at, *end;
    int64_t     line;      /* 1-based, of the line being read */
    char        separator; /* 0: not known yet; ' ' takes runs of blanks */
    double     *values;    /* owned by the entry */
    int64_t     count, room, columns, rows;
} Reader;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char find_separator(const char *line, size_t length)
{
    static const char choices[] = { ',', ';', '\t' };

    for (size_t i = 0; i < sizeof(choices); i++)
        if (memchr(line, choices[i], length))
            return choices[i];
    return ' ';
}

/* The next cell of [*at, end); false at the end of the line. */
static bool next_cell(const char **at, const char *end, char separator, const char **cell,
                      size_t *length)
{
    const char *stop;

    if (separator == ' ')
        while (*at < end && is_blank(**at))
            (*at)++;
    if (*at >= end)
        return false;
    for (stop = *at; stop < end && *stop != separator && !(separator == ' ' && is_blank(*stop));)
        stop++;
    *cell = *at;
    *length = (size_t)(stop - *at);
    *at = stop < end ? stop + 1 : end;
    return true;
}

static bool add_value(Reader *r, double value, int64_t column, const char *cell, size_t length,
                      bool valid, Error *err)
{
    if (!valid)
        return error_set(err, ERR_FORMAT, "line %lld, column %lld: expected a number, found "
                         "\"%.*s\"", (long long)r->line, (long long)column + 1,
                         (int)(length < 40 ? length : 40), cell);
    if (r->count == r->room)
        return error_set(err, ERR_INTERNAL, "line %lld: more numbers than bytes allow",
                         (long long)r->line);
    r->values[r->count++] = value;
    return true;
}

/* Cells of a line that are numbers; *all when none is not. */
static int64_t count_numbers(const char *line, const char *end, char separator, bool *all)
{
    const char *cell;
    size_t      length;
    int64_t     numbers = 0;
    double      value;

    *all = true;
    while (next_cell(&line, end, separator, &cell, &length)) {
        bool valid = labels_parse(cell, length, &value);

        numbers += valid;
        *all = *all && valid;
    }
    return numbers;
}

static bool read_line(Reader *r, const char *line, const char *end, Error *err)
{
    const char *cell;
    size_t      length;
    int64_t     columns = 0;
    double      value = 0;
    bool        all;

    if (!r->separator) {
        char separator = find_separator(line, (size_t)(end - line));

        if (count_numbers(line, end, separator, &all) == 0 && r->line == 1 && !all)
            return true; /* a heading */
        r->separator = separator;
    }
    while (next_cell(&line, end, r->separator, &cell, &length)) {
        bool valid = labels_parse(cell, length, &value);

        if (!add_value(r, value, columns++, cell, length, valid, err))
            return false;
    }
    if (r->rows && columns != r->columns)
        return error_set(err, ERR_FORMAT, "line %lld has %lld numbers, the lines before it %lld",
                         (long long)r->line, (long long)columns, (long long)r->columns);
    r->columns = columns;
    r->rows++;
    return true;
}

static bool read_lines(Reader *r, Error *err)
{
    for (r->line = 1; r->at < r->end; r->line++) {
        const char *line = r->at, *stop = memchr(line, '\n', (size_t)(r->end - line));
        const char *end = stop ? stop : r->end;

        r->at = stop ? stop + 1 : r->end;
        while (end > line && is_blank(end[-1]))
            end--;
        if (line < end && *line != '#' && !read_line(r, line, end, err))
            return false;
    }
    return r->rows || error_set(err, ERR_FORMAT, "holds no line of numbers");
}

bool store_open_csv(Store *store, Mapped bytes, const char *stem, Error *err)
{
    StoreEntry *entry = store_add(store, stem, strlen(stem), err);
    Reader      r = { .at = (const char *)bytes.data,
                      .end = (const char *)bytes.data + bytes.size,
                      .room = bytes.size / 2 + 1 }; /* a digit and a separator each */

    store->kind = "csv";
    if (!entry)
        return false;
    if (r.room > store->max_bytes / 8)
        return error_set(err, ERR_NOMEM, "%lld bytes of text are above the limit",
                         (long long)bytes.size);
    entry->owned = malloc((size_t)r.room * sizeof(double));
    r.values = (double *)(void *)entry->owned;
    if (!r.values)
        return error_set(err, ERR_NOMEM, "no memory for %lld numbers", (long long)r.room);
    if (!read_lines(&r, err))
        return false;
    entry->type = (ElementType){ .kind = ELEMENT_FLOAT, .size = 8 };
    strcpy(entry->info.dtype, "text");
    entry->info.rank = 2;
    entry->info.shape[0] = r.rows;
    entry->info.shape[1] = r.columns;
    entry->data = entry->owned;
    return store_entry_size(entry, err);
}
