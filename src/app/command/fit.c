/* fit.c -- fit: exponents of growth from the records of a sweep, as table or chart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/sweep.h"

static bool fits_of_call(const Results *rows, const Call *call, SeriesFit **fits, int *count,
                         Error *err)
{
    int64_t drop = 0;

    return call_int(call, OPT_DROP, 0, FIT_MOST, &drop, err) &&
           fit_series(rows, (int)drop, fits, count, err);
}

/* fit --decode without such numbers would print an empty table. */
static bool check_decode(const Results *rows, const Call *call, Error *err)
{
    return !call->values[OPT_DECODE] || rows_decode(rows) ||
           error_set(err, ERR_DATA, "no record knows what one token more costs: sweep --decode "
                     "measures it");
}

/* Of a sweep the growth of the run stands first. */
static void show_decode(const Results *rows, const Call *call, const SeriesFit *fits, int count,
                        TableStyle style, Text *out)
{
    if (call->values[OPT_EXPONENTS] && style != TABLE_CSV) {
        fits_table(rows, fits, count, style, call_room(call), out);
        text_add(out, "\n");
    }
    fits_decode_table(rows, fits, count, style, call_room(call), out);
}

bool fits_show(const Results *rows, const Call *call, bool systems, TableStyle style, Text *out,
               Error *err)
{
    SeriesFit *fits;
    int        count;

    if (call->values[OPT_RELATIVE]) {
        relative_table(rows, style, out);
        return true;
    }
    if (!fits_of_call(rows, call, &fits, &count, err))
        return false;
    if (call->values[OPT_JSON])
        fits_json(rows, fits, count, out);
    else if (systems)
        systems_table(rows, fits, count, style, out);
    else if (call->values[OPT_DECODE] && rows_decode(rows))
        show_decode(rows, call, fits, count, style, out);
    else
        fits_table(rows, fits, count, style, call_room(call), out);
    free(fits);
    return true;
}

bool fits_chart_name(const char *path)
{
    return text_ends_in(path, ".png") || text_ends_in(path, ".svg") || text_ends_in(path, ".pdf");
}

bool fits_chart(const Results *rows, const Call *call, bool systems, const char *path, Text *bytes,
                Error *err)
{
    const char *metadata[] = { "Software",
                               "attnscope " ATTNSCOPE_VERSION,
                               "attnscope:version",
                               ATTNSCOPE_VERSION,
                               "attnscope:command",
                               call->line ? call->line : "",
                               NULL };
    ChartWords   words = { call->values[OPT_NOTITLE] ? "" : call->values[OPT_TITLE],
                           call->values[OPT_CAPTION] };
    PngOptions   options = { 0 };
    FigureFormat format;
    FitsOf       of = systems ? FITS_SYSTEMS : FITS_SERIES;
    SeriesFit   *fits;
    int          count;
    bool         ok;

    if (of == FITS_SERIES && call->values[OPT_DECODE] && rows_decode(rows))
        of = FITS_DECODE;
    if (!call_png_options(call, &options, err) || !figure_format(path, &options, &format, err) ||
        !fits_of_call(rows, call, &fits, &count, err))
        return false;
    options.metadata = metadata;
    ok = count || systems
             ? exponents_file(rows, fits, count, of, &words, format, &options, bytes, err)
             : error_set(err, ERR_DATA, "no point was measured: there is nothing to draw");
    free(fits);
    return ok;
}

/* ---- the command ------------------------------------------------------------ */

static bool write_file(const Results *rows, const Call *call, const char *path, Text *out,
                       Error *err)
{
    bool systems = call->values[OPT_TABLE] != NULL, ok;
    Text bytes = { 0 };

    if (text_ends_in(path, ".md") || text_ends_in(path, ".csv"))
        ok = fits_show(rows, call, systems, text_ends_in(path, ".md") ? TABLE_MARKDOWN : TABLE_CSV,
                       &bytes, err);
    else if (fits_chart_name(path))
        ok = fits_chart(rows, call, systems, path, &bytes, err);
    else
        ok = error_set(err, ERR_USAGE, "-o %s: expected a name ending in .png, .svg, .pdf, .md or "
                       ".csv", path);
    ok = ok && (text_ok(&bytes) || error_set(err, ERR_NOMEM, "not enough memory")) &&
         file_write(path, bytes.data, bytes.length, err);
    if (ok)
        text_addf(out, "%s\n", path);
    text_free(&bytes);
    return ok;
}

/* Reports records without a measurement: an empty table would look like no growth. */
static bool check_measured(const Results *rows, const Call *call, Error *err)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->rows[i].ok)
            return true;
    if (!rows->count)
        return error_set(err, ERR_DATA, "%s holds no record yet%s", call->words[0],
                         rows->torn ? ": its only line is not whole" : "");
    return error_set(err, ERR_DATA, "%s: none of its %d point%s was measured; the first, %s at n = "
                     "%lld: %s %s", call->words[0], rows->count, rows->count == 1 ? "" : "s",
                     rows->rows[0].mechanism, (long long)rows->rows[0].n, rows->rows[0].status,
                     rows->rows[0].message);
}

/* Claims stand in the scripts of mechanisms that are not in the catalogue: names the first. */
static void note_claims(const Results *rows, Text *out)
{
    for (int i = 0; i < rows->count; i++) {
        const ResultRow *row = &rows->rows[i];
        char             script[512];

        if (mechanism_find(row->mechanism))
            continue;
        row_option(row, "--lua", script, sizeof(script));
        if (*row->script_sha256 || *script)
            text_addf(out, "%s is of a script, which has its claims: --lua %s compares them\n",
                      row->mechanism, *script ? script : "FILE");
        else
            text_addf(out, "this program has no mechanism %s, so its claims are not known\n",
                      row->mechanism);
        return;
    }
}

/* Tensors of a script are the interpreter's: names the first mechanism that holds more of them than
 * its arena. */
static void note_heap(const Results *rows, Text *out)
{
    for (int i = 0; i < rows->count; i++) {
        const ResultRow *row = &rows->rows[i];
        Number           arena = row_number(row, "memory.arena_peak"),
               heap = row_number(row, "memory.heap_peak");

        if (!*row->script_sha256 || !arena.valid || !heap.valid || heap.value <= arena.value)
            continue;
        text_addf(out, "memory of %s leaves out the tensors of its script, which lie on the heap: "
                  "memory.heap_peak has them\n", row->mechanism);
        return;
    }
}

/* Tables for people have the notes that a reader needs. */
static bool show_fits(const Results *rows, const Call *call, const Text *broken, Text *out,
                      Error *err)
{
    if (!fits_show(rows, call, call->values[OPT_TABLE], call_style(call), out, err))
        return false;
    if (!call->values[OPT_JSON] && call_style(call) != TABLE_CSV) {
        text_add(out, text_str(broken));
        note_claims(rows, out);
        note_heap(rows, out);
        results_note_failed(rows, out);
        results_note_versions(rows, NULL, out);
        results_note_oversubscribed(rows, NULL, out);
    }
    return true;
}

bool command_fit(Session *s, const Call *call, Text *out, Error *err)
{
    Results rows = { 0 };
    Text    broken = { 0 };
    bool    ok = true;

    (void)s;
    if (!call->word_count)
        return error_set(err, ERR_USAGE, "fit needs the .jsonl file of a sweep");
    for (int i = 0; ok && i < call->word_count; i++) {
        int before = rows.damaged;

        ok = results_read(call->words[i], i, &rows, err);
        results_note_broken(&rows, call->words[i], before, &broken);
    }
    ok = ok && results_latest(&rows, err);
    if (ok) {
        results_sort(&rows);
        ok = check_measured(&rows, call, err) && check_decode(&rows, call, err);
        for (int i = 0; ok && i < call->file_count; i++)
            ok = write_file(&rows, call, call->files[i], out, err);
        if (ok && call->file_count) {
            text_add(out, text_str(&broken));
            results_note_failed(&rows, out);
        } else if (ok) {
            ok = show_fits(&rows, call, &broken, out, err);
        }
    }
    text_free(&broken);
    results_free(&rows);
    return ok;
}
