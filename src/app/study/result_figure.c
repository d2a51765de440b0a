/* result_figure.c -- fits as rows of a chart of exponents; see result_table.h.
 *
 * A claimed n log n stands on the axis where such a curve has its slope at the middle of
 * the measured lengths: 1 + 1 / log n.
 */
#include "app/study/result_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/stored_figure.h"
#include "draw/plot/exponents.h"

typedef struct Rows {
    const Results   *results;
    const SeriesFit *fits;
    int              count;
    ExponentRow     *rows; /* owned, with name and claim of each */
    int              used, room;
    bool             failed;
} Rows;

static void rows_free(Rows *r)
{
    for (int i = 0; i < r->used; i++) {
        free((char *)(uintptr_t)r->rows[i].name);
        free((char *)(uintptr_t)r->rows[i].claim);
    }
    free(r->rows);
}

static ExponentRow *new_row(Rows *r, const char *name, const char *claim)
{
    ExponentRow *row;

    if (r->used == r->room) {
        int          room = r->room ? 2 * r->room : 64;
        ExponentRow *rows = realloc(r->rows, (size_t)room * sizeof(*rows));

        if (!rows) {
            r->failed = true;
            return NULL;
        }
        r->rows = rows;
        r->room = room;
    }
    row = &r->rows[r->used++];
    *row = (ExponentRow){ .name = strdup(name), .claim = strdup(claim) };
    r->failed |= !row->name || !row->claim;
    return r->failed ? NULL : row;
}

static void add_claim(ExponentRow *row, const SeriesFit *f, Growth claim)
{
    double at = claim.power;

    if (!(claim.power >= 0) || row->claim_count == EXPONENT_CLAIMS)
        return;
    if (claim.log && f->from > 0 && f->to > 1)
        at += 1 / log(sqrt((double)f->from * (double)f->to));
    for (int i = 0; i < row->claim_count; i++)
        if (row->claims[i] == at)
            return;
    row->claims[row->claim_count++] = at;
}

static void take_fits(ExponentRow *row, const SeriesFit *f)
{
    static const FitOf of[EXPONENTS] = { FIT_FLOPS, FIT_TIME, FIT_MEMORY };

    for (int i = 0; i < EXPONENTS; i++) {
        const Fit *fit = &f->plain[of[i]];

        row->measured[i] = (Exponent){ .value = fit->alpha.value,
                                       .lo = fit->lo.value,
                                       .hi = fit->hi.value,
                                       .valid = fit->alpha.valid,
                                       .bounded = fit->lo.valid && fit->hi.valid };
    }
    if (!f->plain[FIT_FLOPS].alpha.valid && !f->plain[FIT_TIME].alpha.valid)
        row->note = "one length only: no slope";
}

/* ---- series ----------------------------------------------------------------- */

static void add_series(Rows *r)
{
    for (int i = 0; i < r->count && !r->failed; i++) {
        const SeriesFit *f = &r->fits[i];
        const Mechanism *m = mechanism_find(f->row->mechanism);
        Text             name = { 0 };
        ExponentRow     *row;

        series_name(r->results, f->row, &name);
        row = new_row(r, text_str(&name), m ? m->claim_time : "-");
        text_free(&name);
        if (!row)
            return;
        take_fits(row, f);
        add_claim(row, f, f->claim[FIT_TIME]);
    }
}

/* ---- systems ---------------------------------------------------------------- */

static ExponentRow *system_row(Rows *r, const System *system, const char *runs)
{
    Text         claims = { 0 }, name = { 0 };
    ExponentRow *row;

    system_claims(system, CLAIM_COMPLEXITY, &claims);
    text_addf(&name, "%s%s%s", system->name, runs ? ": " : "", runs ? runs : "");
    row = new_row(r, text_str(&name), text_str(&claims));
    text_free(&claims);
    text_free(&name);
    return row;
}

static void measured_row(Rows *r, const System *system, const SeriesFit *f, bool alone)
{
    Text         name = { 0 };
    ExponentRow *row;

    asked_name(r->results, r->fits, r->count, f, &name);
    row = system_row(r, system, alone ? NULL : text_str(&name));
    text_free(&name);
    if (!row)
        return;
    take_fits(row, f);
    for (int s = 0; s < SURVEYS; s++)
        add_claim(row, f, claim_growth(system->claims[s].complexity));
}

static int fits_of(const Rows *r, const System *system, const SeriesFit **last)
{
    const char *at = system->runs;
    char        word[96];
    int         count = 0;

    while (system_next_word(&at, word, sizeof(word)))
        count += fits_of_word(r->fits, r->count, word, last);
    return count;
}

static void one_system(Rows *r, const System *system)
{
    const SeriesFit *only = NULL;
    const char      *at = system->runs;
    char             word[96];
    int              count = fits_of(r, system, &only);
    ExponentRow     *row;

    if (count == 1) {
        measured_row(r, system, only, true);
        return;
    }
    while (count && system_next_word(&at, word, sizeof(word)))
        for (int i = 0; i < r->count; i++)
            if (!strcmp(r->fits[i].row->asked, word))
                measured_row(r, system, &r->fits[i], false);
    row = count ? NULL : system_row(r, system, NULL);
    if (row)
        row->note = system_mechanism(system) ? "not measured" : "nothing runs it here";
}

static void add_systems(Rows *r)
{
    SystemPart part = SYSTEM_PARTS;

    for (size_t i = 0; system_at(i) && !r->failed; i++) {
        const System *system = system_at(i);
        int           before = r->used;

        one_system(r, system);
        if (system->part != part && r->used > before)
            r->rows[before].group = system_part_title(system->part);
        part = system->part;
    }
}

/* ---- the chart -------------------------------------------------------------- */

/* The first machine of each kind; with the CPU's threads: "NVIDIA H200 and AMD EPYC, 2 threads". */
static void add_machines(const Rows *r, bool threads, Text *out)
{
    const ResultRow *cpu = NULL, *gpu = NULL;

    for (int i = r->count - 1; i >= 0; i--) {
        gpu = *r->fits[i].row->gpu ? r->fits[i].row : gpu;
        cpu = *r->fits[i].row->gpu ? cpu : r->fits[i].row;
    }
    text_addf(out, "%s%s", gpu ? gpu->gpu : "", gpu && cpu ? " and " : "");
    if (cpu || !gpu)
        text_add(out, cpu && *cpu->cpu ? cpu->cpu : "a machine without a name");
    if (threads && cpu)
        text_addf(out, ", %lld thread%s", (long long)cpu->threads, cpu->threads == 1 ? "" : "s");
}

static void caption(const Rows *r, bool systems, Text *out)
{
    const ResultRow *row = r->count ? r->fits[0].row : NULL;
    int64_t          from = INT64_MAX, to = 0;

    for (int i = 0; i < r->count; i++) {
        from = r->fits[i].from < from ? r->fits[i].from : from;
        to = r->fits[i].to > to ? r->fits[i].to : to;
    }
    text_add(out, "Slope of log cost on log n");
    if (row) {
        text_addf(out,
                  ", n = %lld to %lld; d = %lld, heads = %lld, threads = %lld; %s; attnscope "
                  "%s on ",
                  (long long)from, (long long)to, (long long)row->d, (long long)row->heads,
                  (long long)row->threads, row->source, row->version);
        add_machines(r, false, out);
    }
    text_add(out, ". A claimed log n is shown as its slope at the middle length.");
    for (int s = 0; systems && s < SURVEYS; s++)
        text_addf(out, " [%c] %s.", 'a' + s, survey_title(s));
}

#define METADATA_MOST 16

/* With the chart's numbers in the file, beside the metadata of the options. */
static bool draw(const ExponentChart *chart, FigureFormat format, const PngOptions *options,
                 Text *bytes, Error *err)
{
    const char *metadata[METADATA_MOST] = { NULL };
    PngOptions  own = options ? *options : (PngOptions){ 0 };
    Text        numbers = { 0 };
    int         count = 0;
    bool        ok;

    while (own.metadata && own.metadata[count] && count + 3 < METADATA_MOST) {
        metadata[count] = own.metadata[count];
        count++;
    }
    stored_chart_text(chart, options, &numbers);
    metadata[count] = NUMBERS_KEY;
    metadata[count + 1] = text_str(&numbers);
    own.metadata = metadata;
    ok = text_ok(&numbers) ? exponent_chart_file(chart, format, &own, bytes, err)
                           : error_set(err, ERR_NOMEM, "not enough memory for the chart");
    text_free(&numbers);
    return ok;
}

bool exponents_file(const Results *results, const SeriesFit *fits, int count, bool systems,
                    const ChartWords *words, FigureFormat format, const PngOptions *options,
                    Text *bytes, Error *err)
{
    Rows          rows = { .results = results, .fits = fits, .count = count };
    Text          said = { 0 }, measured = { 0 };
    ExponentChart chart = { .title = systems ? "Claimed and measured growth of the surveys' systems"
                                             : "Claimed and measured growth" };
    bool          ok;

    systems ? add_systems(&rows) : add_series(&rows);
    if (words->title)
        chart.title = words->title;
    caption(&rows, systems, &said);
    add_machines(&rows, true, &measured);
    chart.caption = words->caption ? words->caption : text_str(&said);
    chart.measured = text_str(&measured);
    chart.rows = rows.rows;
    chart.count = rows.used;
    ok = rows.failed || !text_ok(&said)
             ? error_set(err, ERR_NOMEM, "not enough memory for the chart")
             : draw(&chart, format, options, bytes, err);
    text_free(&said);
    text_free(&measured);
    rows_free(&rows);
    return ok;
}
