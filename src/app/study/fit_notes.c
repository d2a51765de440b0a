/* fit_notes.c -- what a fit lacks or holds besides: lengths that --drop leaves, records of one
 * length; see sweep.h.
 */
#include <stdlib.h>
#include <string.h>

#include "app/study/sweep.h"

#define SLOPE_LENGTHS 2
#define REPEATS_NAMED 4
#define SERIES_NAMED  4

int fit_lengths(const SeriesFit *f)
{
    return f->lengths > f->drop ? f->lengths - f->drop : 0;
}

static void add_sentence(Text *out)
{
    if (out->length)
        text_add(out, "; ");
}

static void note_few(const SeriesFit *f, Text *out)
{
    int left = fit_lengths(f);

    if (!f->drop || left >= FIT_INTERVAL_LENGTHS)
        return;
    text_addf(out, "--drop leaves %d of %d lengths, ", left, f->lengths);
    if (left < SLOPE_LENGTHS)
        text_addf(out, "but a slope needs %d", SLOPE_LENGTHS);
    else
        text_addf(out, "but an interval needs %d", FIT_INTERVAL_LENGTHS);
}

static int by_number(const void *a, const void *b)
{
    long x = atol(a), y = atol(b);

    return (x > y) - (x < y);
}

/* Values of --repeat in the series, "2, 3"; returns their number. */
static int repeats_of(const Results *rows, const SeriesFit *f, Text *out)
{
    char seen[REPEATS_NAMED][32];
    int  count = 0;

    for (int i = 0; i < rows->count && count < REPEATS_NAMED; i++) {
        char value[32];
        int  at = 0;

        if (!rows->rows[i].ok || !row_same_series(f->row, &rows->rows[i]))
            continue;
        row_option(&rows->rows[i], "--repeat", value, sizeof(value));
        while (at < count && strcmp(seen[at], value) != 0)
            at++;
        if (at < count)
            continue;
        strcpy(seen[count++], value);
    }
    qsort(seen, (size_t)count, sizeof(*seen), by_number);
    for (int at = 0; at < count; at++)
        text_addf(out, "%s%s", at ? ", " : "", *seen[at] ? seen[at] : "none");
    return count;
}

static void note_pooled(const Results *rows, const SeriesFit *f, Text *out)
{
    Text repeats = { 0 };

    if (f->points <= f->lengths)
        return;
    add_sentence(out);
    text_addf(out, "%d records of %d length%s are in one fit", f->points, f->lengths,
              f->lengths == 1 ? "" : "s");
    if (repeats_of(rows, f, &repeats) > 1)
        text_addf(out, ", though timed with --repeat %s", text_str(&repeats));
    text_free(&repeats);
}

void fit_note(const Results *rows, const SeriesFit *f, Text *out)
{
    note_few(f, out);
    note_pooled(rows, f, out);
}

/* "full, window: ...": names of the series from `first` on with this sentence, which then is used
 * up. */
static void add_group(const Results *rows, const SeriesFit *fits, Text *notes, int count, int first,
                      Text *out)
{
    char *sentence = strdup(text_str(&notes[first]));
    int   named = 0, more = 0;

    if (!sentence)
        return;
    for (int i = first; i < count; i++) {
        if (strcmp(text_str(&notes[i]), sentence) != 0)
            continue;
        text_clear(&notes[i]);
        if (named == SERIES_NAMED) {
            more++;
            continue;
        }
        text_add(out, named++ ? ", " : "");
        series_name(rows, fits[i].row, out);
    }
    if (more)
        text_addf(out, " and %d more", more);
    text_addf(out, ": %s.\n", sentence);
    free(sentence);
}

void fits_note(const Results *rows, const SeriesFit *fits, int count, Text *out)
{
    Text *notes = calloc((size_t)count + 1, sizeof(*notes));

    for (int i = 0; notes && i < count; i++)
        fit_note(rows, &fits[i], &notes[i]);
    for (int i = 0; notes && i < count; i++)
        if (notes[i].length)
            add_group(rows, fits, notes, count, i, out);
    for (int i = 0; notes && i < count; i++)
        text_free(&notes[i]);
    free(notes);
}
