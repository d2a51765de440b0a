/* exponents.c -- the chart of measured and claimed exponents; see sweep.h.
 *
 * A claimed n log n stands at its slope at the middle length, 1 + 1 / log n.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/study/sweep.h"
#include "draw/plot/exponents.h"

/* ---- rows ------------------------------------------------------------------- */

typedef struct Rows {
    const Results   *results;
    const SeriesFit *fits;
    int              count;
    FitsOf           of;
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
    char        *raised;

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
    raised = strdup(claim);
    if (raised)
        plot_raise(raised);
    row = &r->rows[r->used++];
    *row = (ExponentRow){ .name = strdup(name), .claim = raised };
    r->failed |= !row->name || !row->claim;
    return r->failed ? NULL : row;
}

static void add_claimed_slope(ExponentRow *row, const SeriesFit *f, Growth claim)
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

static void set_exponents(ExponentRow *row, const SeriesFit *f, FitsOf of)
{
    static const FitOf run[EXPONENTS] = { FIT_FLOPS, FIT_TIME, FIT_MEMORY };
    static const FitOf step[EXPONENTS] = { FIT_STEP_FLOPS, FIT_STEP_TIME, FIT_STEP_BYTES };
    bool               none = true;

    for (int i = 0; i < EXPONENTS; i++) {
        const Fit *fit = &f->plain[of == FITS_DECODE ? step[i] : run[i]];

        row->measured[i] = (Exponent){ .value = fit->alpha.value,
                                       .lo = fit->lo.value,
                                       .hi = fit->hi.value,
                                       .valid = fit->alpha.valid,
                                       .bounded = fit->lo.valid && fit->hi.valid };
        none = none && (!fit->alpha.valid || i == EXPONENT_MEMORY);
    }
    if (none)
        row->note = of == FITS_DECODE && f->points > 1 ? "cost of a step not known"
                                                       : "one length only: no slope";
}

/* ---- series ----------------------------------------------------------------- */

/* In words: "Sliding window, window 65". */
static void chart_name(const Results *rows, const ResultRow *row, Text *out)
{
    Text name = { 0 };

    row_name(rows, row, &name);
    mechanism_words(mechanism_find(row->mechanism), text_str(&name), out);
    text_free(&name);
    series_setting(rows, row, out);
}

static void add_series_rows(Rows *r)
{
    for (int i = 0; i < r->count && !r->failed; i++) {
        const SeriesFit *f = &r->fits[i];
        const Mechanism *m = mechanism_find(f->row->mechanism);
        Text             name = { 0 }, claim = { 0 };
        ExponentRow     *row;

        chart_name(r->results, f->row, &name);
        if (r->of == FITS_SERIES)
            claim_words(m ? m->claim_time : "-", &claim);
        row = new_row(r, text_str(&name), text_str(&claim));
        text_free(&name);
        text_free(&claim);
        if (!row)
            return;
        set_exponents(row, f, r->of);
        if (r->of == FITS_SERIES)
            add_claimed_slope(row, f, f->claim[FIT_TIME]);
    }
}

/* ---- systems ---------------------------------------------------------------- */

static ExponentRow *system_exponents(Rows *r, const System *system, const char *runs)
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

static void measured_exponents(Rows *r, const System *system, const SeriesFit *f, bool alone)
{
    Text         name = { 0 };
    ExponentRow *row;

    asked_name(r->results, r->fits, r->count, f, &name);
    row = system_exponents(r, system, alone ? NULL : text_str(&name));
    text_free(&name);
    if (!row)
        return;
    set_exponents(row, f, r->of);
    for (int s = 0; s < SURVEYS; s++)
        add_claimed_slope(row, f, claim_growth(system->claims[s].complexity));
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
        measured_exponents(r, system, only, true);
        return;
    }
    while (count && system_next_word(&at, word, sizeof(word)))
        for (int i = 0; i < r->count; i++)
            if (!strcmp(r->fits[i].row->asked, word))
                measured_exponents(r, system, &r->fits[i], false);
    row = count ? NULL : system_exponents(r, system, NULL);
    if (row)
        row->note = system_mechanism(system) ? "not measured" : "nothing runs it here";
}

static void add_system_rows(Rows *r)
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

/* Names the first machine of each kind; with threads: "NVIDIA H200 and AMD EPYC, 2 threads". */
static void add_machine_words(const Rows *r, bool threads, Text *out)
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

static void caption_busy(const Rows *r, Text *out)
{
    int busy = 0, all = 0;

    for (int i = 0; i < r->results->count; i++) {
        all += r->results->rows[i].ok;
        busy += r->results->rows[i].ok && r->results->rows[i].oversubscribed;
    }
    if (busy)
        text_addf(out, "; %d of %d times are too long: more threads than processors were free",
                  busy, all);
}

static void caption(const Rows *r, Text *out)
{
    const ResultRow *row = r->count ? r->fits[0].row : NULL;
    int64_t          from = INT64_MAX, to = 0;

    for (int i = 0; i < r->count; i++) {
        from = r->fits[i].from < from ? r->fits[i].from : from;
        to = r->fits[i].to > to ? r->fits[i].to : to;
    }
    text_addf(out, "Slope of log cost%s on log n",
              r->of == FITS_DECODE ? " of one token more" : "");
    if (row) {
        text_addf(out,
                  ", n = %lld to %lld; d = %lld, heads = %lld, threads = %lld; %s; attnscope "
                  "%s on ",
                  (long long)from, (long long)to, (long long)row->d, (long long)row->heads,
                  (long long)row->threads, row->source, row->version);
        add_machine_words(r, false, out);
    }
    caption_busy(r, out);
    if (r->count && r->fits[0].drop)
        text_addf(out, ", without the %d smallest n of each row", r->fits[0].drop);
    text_add(out, ".");
    for (int i = 0; i < r->count && r->of != FITS_DECODE; i++)
        if (r->fits[i].claim[FIT_TIME].log) {
            text_add(out, " A claimed log n is shown as its slope at the middle length.");
            break;
        }
    if (r->of != FITS_DECODE)
        text_addf(out, " Grey band: within %.1f of the claim, as the verdicts count it.",
                  VERDICT_TOLERANCE);
    for (int s = 0; r->of == FITS_SYSTEMS && s < SURVEYS; s++)
        text_addf(out, " [%c] %s.", 'a' + s, survey_title(s));
}

/* Writes the chart with its numbers and the options' metadata. */
static bool draw_chart(const ExponentChart *chart, FigureFormat format, const PngOptions *options,
                       Text *bytes, Error *err)
{
    PngOptions own = options ? *options : (PngOptions){ 0 };
    Metadata   metadata = { .count = 0 };
    Text       numbers = { 0 };
    bool       ok;

    for (const char *const *pair = own.metadata; pair && *pair; pair += 2)
        metadata_add(&metadata, pair[0], pair[1]);
    metadata_add_font(&metadata, options);
    stored_chart_text(chart, options, &numbers);
    metadata_add(&metadata, NUMBERS_KEY, text_str(&numbers));
    own.metadata = metadata_list(&metadata);
    ok = text_ok(&numbers) ? exponent_chart_file(chart, format, &own, bytes, err)
                           : error_set(err, ERR_NOMEM, "not enough memory for the chart");
    metadata_free(&metadata);
    text_free(&numbers);
    return ok;
}

bool exponents_file(const Results *results, const SeriesFit *fits, int count, FitsOf of,
                    const ChartWords *words, FigureFormat format, const PngOptions *options,
                    Text *bytes, Error *err)
{
    static const char *const titles[] = {
        [FITS_SERIES] = "Claimed and measured growth",
        [FITS_SYSTEMS] = "Claimed and measured growth of the surveys' systems",
        [FITS_DECODE] = "Growth of one token more",
    };
    Rows          rows = { .results = results, .fits = fits, .count = count, .of = of };
    Text          text = { 0 }, measured = { 0 };
    ExponentChart chart = { .title = titles[of], .step = of == FITS_DECODE };
    bool          ok;

    of == FITS_SYSTEMS ? add_system_rows(&rows) : add_series_rows(&rows);
    if (words->title)
        chart.title = words->title;
    caption(&rows, &text);
    add_machine_words(&rows, true, &measured);
    chart.caption = words->caption ? words->caption : text_str(&text);
    chart.measured = text_str(&measured);
    chart.rows = rows.rows;
    chart.count = rows.used;
    ok = rows.failed || !text_ok(&text)
             ? error_set(err, ERR_NOMEM, "not enough memory for the chart")
             : draw_chart(&chart, format, options, bytes, err);
    text_free(&text);
    text_free(&measured);
    rows_free(&rows);
    return ok;
}
