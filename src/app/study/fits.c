/* fits.c -- measured exponents beside the claimed ones, as table and JSON; see sweep.h.
 *
 * A mechanism claims a time; counted FLOPs and measured time are compared with it.  Memory is
 * compared only where the paper claims the same for memory.  A claimed log n is divided out before
 * the slope is compared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/study/sweep.h"

static const char *const paths[FIT_OF] = {
    "time_ms.median",         "flops.counted",       "memory.arena_peak",
    "decode.step_ms.median",  "decode.decode_flops", "decode.step_bytes",
    "decode.state_bytes",
};

/* ---- one series ------------------------------------------------------------- */

static void take_claims(SeriesFit *f)
{
    const Mechanism *m = mechanism_find(f->row->mechanism);

    for (int of = 0; of < FIT_OF; of++) {
        f->claim[of] = (Growth){ .power = -1 };
        if (of < FIT_RUN && m && m->claim_exponent > 0 &&
            (of != FIT_MEMORY || !strcmp(m->claim_memory, m->claim_time)))
            f->claim[of] = (Growth){ m->claim_exponent, strstr(m->claim_time, "log") != NULL };
    }
}

static bool fit_one(const Results *rows, int from, int to, FitOf of, int drop, SeriesFit *f,
                    Error *err)
{
    double  x[FIT_MOST], y[FIT_MOST];
    FitPlan plan = FIT_PLAN;
    int     count = 0;

    for (int i = from; i < to; i++) {
        Number value = row_number(&rows->rows[i], paths[of]);

        if (!rows->rows[i].ok || !value.valid)
            continue;
        if (count == FIT_MOST)
            return error_set(err, ERR_DATA, "%s: a fit takes at most %d points",
                             f->row->mechanism, FIT_MOST);
        x[count] = (double)rows->rows[i].n;
        y[count++] = value.value;
    }
    plan.drop = drop;
    if (!fit_power(x, y, count, &plan, &f->plain[of], err))
        return false;
    plan.over_log = true;
    return fit_power(x, y, count, &plan, &f->logless[of], err);
}

Verdict fit_verdict(const SeriesFit *f, FitOf of, Growth claim)
{
    const Fit *fit = claim.log ? &f->logless[of] : &f->plain[of];

    if (!(claim.power >= 0) || !fit->lo.valid || !fit->hi.valid)
        return VERDICT_NONE;
    if (fit->lo.value > claim.power + VERDICT_TOLERANCE)
        return VERDICT_ABOVE;
    if (fit->hi.value < claim.power - VERDICT_TOLERANCE)
        return VERDICT_BELOW;
    return fit->hi.value - fit->lo.value <= VERDICT_WIDEST ? VERDICT_WITHIN : VERDICT_UNDECIDED;
}

/* ---- crossover -------------------------------------------------------------- */

static bool is_baseline_row(const ResultRow *row)
{
    const Mechanism *m = mechanism_find(row->mechanism);

    return m && (m->classes & CLASS_BASELINE);
}

/* Time of the baseline at the same settings, n and seed. */
static Number baseline_time(const Results *rows, const ResultRow *row)
{
    for (int i = 0; i < rows->count; i++) {
        const ResultRow *b = &rows->rows[i];

        if (b->ok && b->n == row->n && b->seed == row->seed && is_baseline_row(b) &&
            row_same_setting(b, row))
            return row_number(b, paths[FIT_TIME]);
    }
    return NUMBER_NONE;
}

/* The smallest n from which it stays faster; a series is sorted by n. */
static void series_crossover(const Results *rows, int from, int to, SeriesFit *f)
{
    bool compared = false;

    f->crossover_note = is_baseline_row(f->row) ? "-" : "n/a";
    for (int i = from; i < to && !is_baseline_row(f->row); i++) {
        const ResultRow *row = &rows->rows[i];
        Number own = row_number(row, paths[FIT_TIME]), base = baseline_time(rows, row);

        if (!row->ok || !own.valid || !base.valid)
            continue;
        compared = true;
        if (!(own.value < base.value))
            f->crossover = NUMBER_NONE;
        else if (!f->crossover.valid)
            f->crossover = number_of((double)row->n);
    }
    if (compared)
        f->crossover_note = "not here";
}

/* No measured record before it in the series has its n. */
static bool first_of_length(const Results *rows, int from, int at)
{
    for (int i = from; i < at; i++)
        if (rows->rows[i].ok && rows->rows[i].n == rows->rows[at].n)
            return false;
    return true;
}

static void count_points(const Results *rows, int from, int to, SeriesFit *f)
{
    for (int i = from; i < to; i++) {
        const ResultRow *row = &rows->rows[i];

        if (!row->ok)
            continue;
        f->row = f->row ? f->row : row;
        f->from = f->points++ ? f->from : row->n;
        f->to = row->n > f->to ? row->n : f->to;
        f->lengths += first_of_length(rows, from, i);
    }
}

bool fit_series(const Results *rows, int drop, SeriesFit **out, int *count, Error *err)
{
    SeriesFit *fits = calloc((size_t)rows->count + 1, sizeof(*fits));
    bool       ok = fits || error_set(err, ERR_NOMEM, "not enough memory for the fits");

    *count = 0;
    for (int i = 0, end; ok && i < rows->count; i = end) {
        SeriesFit *f = &fits[*count];

        for (end = i + 1; end < rows->count && row_same_series(&rows->rows[i], &rows->rows[end]);)
            end++;
        count_points(rows, i, end, f);
        if (!f->points)
            continue;
        take_claims(f);
        f->drop = drop;
        for (int of = 0; ok && of < FIT_OF; of++)
            ok = fit_one(rows, i, end, (FitOf)of, drop, f, err);
        series_crossover(rows, i, end, f);
        (*count)++;
    }
    *out = ok ? fits : NULL;
    if (!ok)
        free(fits);
    return ok;
}

/* ---- shown ------------------------------------------------------------------ */

const char *verdict_word(Verdict v)
{
    switch (v) {
    case VERDICT_WITHIN: return "within";
    case VERDICT_ABOVE: return "above";
    case VERDICT_BELOW: return "below";
    case VERDICT_UNDECIDED: return "undecided";
    case VERDICT_NONE: break;
    }
    return "-";
}

static Number last_local(const Fit *fit)
{
    return fit->locals ? number_of(fit->local[fit->locals - 1]) : NUMBER_NONE;
}

/* Rounded to 0 it has no sign. */
static double unsigned_zero(double exponent)
{
    return fabs(exponent) < 0.005 ? 0 : exponent;
}

const char *exponent_text(const Fit *fit, char *text, size_t size)
{
    if (fit->lo.valid)
        snprintf(text, size, "%.2f [%.2f, %.2f]", unsigned_zero(fit->alpha.value),
                 unsigned_zero(fit->lo.value), unsigned_zero(fit->hi.value));
    else if (fit->alpha.valid)
        snprintf(text, size, "%.2f", unsigned_zero(fit->alpha.value));
    else
        snprintf(text, size, "n/a");
    return text;
}

const char *crossover_text(const SeriesFit *f, char *text, size_t size)
{
    if (f->crossover.valid)
        snprintf(text, size, "%.0f", f->crossover.value);
    else
        snprintf(text, size, "%s", f->crossover_note);
    return text;
}

/* What is not known is empty for programs; for people "-", which the notes explain. */
static void verdict_cell(Verdict verdict, TableStyle style, Table *t)
{
    bool empty = verdict == VERDICT_NONE && style == TABLE_CSV;

    table_cell(t, "%s", empty ? "n/a" : verdict_word(verdict));
}

static void crossover_cell(const SeriesFit *f, TableStyle style, Table *t)
{
    char text[48];

    if (style == TABLE_CSV)
        table_number(t, f->crossover, 6);
    else
        table_cell(t, "%s", crossover_text(f, text, sizeof(text)));
}

static void exponent_cells(const SeriesFit *f, FitOf of, TableStyle style, Table *t)
{
    const Fit *fit = &f->plain[of];
    char       text[64];

    if (style == TABLE_CSV) {
        const Number all[] = { fit->alpha, fit->lo, fit->hi, fit->r2 };

        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
            table_number(t, all[i], 6);
        table_number(t, f->claim[of].power >= 0 ? number_of(f->claim[of].power) : NUMBER_NONE, 6);
        table_cell(t, "%s", f->claim[of].log ? "true" : "false");
        table_number(t, last_local(fit), 6);
    } else {
        table_cell(t, "%s", exponent_text(fit, text, sizeof(text)));
    }
    table_cell(t, "%s", fit->alpha.valid ? fit_model_name(fit->best) : "n/a");
    if (of < FIT_RUN || style == TABLE_CSV) /* a step has no claim */
        verdict_cell(fit_verdict(f, of, f->claim[of]), style, t);
}

static const char *const of_names[FIT_OF] = { "time", "FLOPs", "memory", "step ms", "step FLOPs",
                                              "step reads", "cache" };
static const char *const of_keys[FIT_OF] = { "time", "flops", "memory", "step_ms", "decode_flops",
                                             "step_bytes", "state_bytes" };

static void fit_head_csv(FitOf of, Table *t)
{
    static const char *const of_fit[] = { "alpha",       "lo",         "hi",   "r2",     "claimed",
                                          "claimed_log", "last_local", "best", "verdict" };

    for (size_t i = 0; i < sizeof(of_fit) / sizeof(*of_fit); i++)
        table_cell(t, "%s%s.%s", of < FIT_RUN ? "" : "decode.", of_keys[of], of_fit[i]);
}

/* The names are the keys of --json. */
static void fits_head_csv(bool decode, Table *t)
{
    static const char *const of_series[] = { "mechanism", "asked",     "params", "position",
                                             "causal",    "device",    "precision", "threads",
                                             "source",    "d",         "heads",
                                             "version",   "points",    "drop", "claimed_time",
                                             "claimed_memory" };

    for (size_t i = 0; i < sizeof(of_series) / sizeof(*of_series); i++)
        table_cell(t, "%s", of_series[i]);
    for (int of = 0; of < FIT_RUN; of++)
        fit_head_csv((FitOf)of, t);
    table_cell(t, "faster_from_n");
    for (int of = FIT_RUN; decode && of < FIT_OF; of++)
        fit_head_csv((FitOf)of, t);
    t->cols = t->count;
}

static void fits_head(Table *t)
{
    table_cell(t, "mechanism");
    table_cell(t, "points");
    table_cell(t, "claimed time");
    table_cell(t, "claimed n^");
    for (int of = 0; of < FIT_RUN; of++) {
        table_cell(t, "%s n^", of_names[of]);
        table_cell(t, "best");
        table_cell(t, "claim");
    }
    table_cell(t, "faster from n");
    t->cols = t->count;
}

/* Of a mechanism that has one form only, the name says enough. */
static bool has_one_form(const ResultRow *row)
{
    const Mechanism *m = mechanism_find(row->mechanism);

    return m && m->always_causal;
}

/* Sizes, inputs and programs that the rows do not share; of inputs of one name the contents.  A
 * generated input has one name and one content at all sizes. */
static void series_input(const Results *rows, const ResultRow *row, Text *out)
{
    const char *slash = strrchr(row->source, '/');
    bool        d = false, heads = false, source = false, content = false, against = false;

    for (int i = 0; i < rows->count; i++) {
        const ResultRow *other = &rows->rows[i];
        bool             named = strcmp(other->source, row->source) != 0;

        if (!other->ok)
            continue;
        d |= other->d != row->d;
        heads |= other->heads != row->heads;
        source |= named;
        content |= !named && strcmp(other->input_sha256, row->input_sha256) != 0;
        against |= strcmp(other->against, row->against) != 0;
    }
    if (d)
        text_addf(out, " d=%lld", (long long)row->d);
    if (heads)
        text_addf(out, " h=%lld", (long long)row->heads);
    if (source && *row->source)
        text_addf(out, " %.60s", slash ? slash + 1 : row->source);
    if (content && *row->input_sha256)
        text_addf(out, " input %.6s", row->input_sha256);
    if (against && *row->against)
        text_add(out, " against");
}

void series_setting(const Results *rows, const ResultRow *row, Text *out)
{
    bool position = false, threads = false, causal = false, version = false, device = false;
    bool precision = false, script = false;

    for (int i = 0; i < rows->count; i++) {
        const ResultRow *other = &rows->rows[i];

        if (!other->ok)
            continue;
        position |= strcmp(other->position, row->position) != 0;
        threads |= other->threads != row->threads;
        causal |= other->causal != row->causal && !has_one_form(other);
        version |= strcmp(other->version, row->version) != 0;
        device |= strcmp(other->device, row->device) != 0;
        precision |= strcmp(other->precision, row->precision) != 0;
        script |= !strcmp(other->mechanism, row->mechanism) &&
                  strcmp(other->script_sha256, row->script_sha256) != 0;
    }
    if (position && strcmp(row->position, "none") != 0)
        text_addf(out, " %s", row->position);
    if (causal && !has_one_form(row))
        text_add(out, row->causal ? " causal" : " not causal");
    if (device || strcmp(row->device, "cpu") != 0)
        text_addf(out, " %s", row->device);
    if (precision || strcmp(row->precision, "f32") != 0)
        text_addf(out, " %s", row->precision);
    if (threads)
        text_addf(out, " t=%lld", (long long)row->threads);
    if (version)
        text_addf(out, " %s", row->version);
    series_input(rows, row, out);
    if (script && *row->script_sha256)
        text_addf(out, " script %.6s", row->script_sha256);
}

void series_name(const Results *rows, const ResultRow *row, Text *out)
{
    row_name(rows, row, out);
    series_setting(rows, row, out);
}

void claim_words(const char *claim, Text *out)
{
    size_t length = 0;

    for (int depth = 0; claim[length] && (depth || !strchr(",;", claim[length])); length++)
        depth += (claim[length] == '(') - (claim[length] == ')');
    text_add_bytes(out, claim, length);
    text_add(out, claim[length] ? ", ..." : "");
}

static void claim_cell(const char *claim, Table *t)
{
    Text cell = { 0 };

    claim_words(claim, &cell);
    table_cell(t, "%s", text_str(&cell));
    text_free(&cell);
}

/* "2", "1, log n": the growth that the slopes are compared with. */
static void claimed_cell(Growth claim, Table *t)
{
    if (claim.power >= 0)
        table_cell(t, "%g%s", claim.power, claim.log ? ", log n" : "");
    else
        table_cell(t, "-");
}

static void series_cells_csv(const SeriesFit *f, Table *t)
{
    const Mechanism *m = mechanism_find(f->row->mechanism);

    table_cell(t, "%s", f->row->mechanism);
    table_cell(t, "%s", f->row->asked);
    table_cell(t, "%s", f->row->params);
    table_cell(t, "%s", f->row->position);
    table_cell(t, "%s", f->row->causal ? "true" : "false");
    table_cell(t, "%s", f->row->device);
    table_cell(t, "%s", f->row->precision);
    table_cell(t, "%lld", (long long)f->row->threads);
    table_cell(t, "%s", f->row->source);
    table_cell(t, "%lld", (long long)f->row->d);
    table_cell(t, "%lld", (long long)f->row->heads);
    table_cell(t, "%s", f->row->version);
    table_cell(t, "%d", f->points);
    table_cell(t, "%d", f->drop);
    table_cell(t, "%s", m ? m->claim_time : "n/a");
    table_cell(t, "%s", m ? m->claim_memory : "n/a");
}

static void name_cells(const Results *rows, const SeriesFit *f, Table *t)
{
    Text name = { 0 };

    series_name(rows, f->row, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    table_cell(t, "%d", f->points);
}

static void series_cells(const Results *rows, const SeriesFit *f, TableStyle style, Table *t)
{
    const Mechanism *m = mechanism_find(f->row->mechanism);

    name_cells(rows, f, t);
    if (style == TABLE_TEXT)
        claim_cell(m ? m->claim_time : "-", t);
    else
        table_cell(t, "%s", m ? m->claim_time : "-");
    claimed_cell(f->claim[FIT_TIME], t);
}

static void fits_row(const Results *rows, const SeriesFit *f, TableStyle style, Table *t)
{
    if (style == TABLE_CSV)
        series_cells_csv(f, t);
    else
        series_cells(rows, f, style, t);
    for (int of = 0; of < FIT_RUN; of++)
        exponent_cells(f, (FitOf)of, style, t);
    crossover_cell(f, style, t);
}

static void step_fits_row(const Results *rows, const SeriesFit *f, TableStyle style, Table *t)
{
    if (style == TABLE_CSV)
        fits_row(rows, f, style, t);
    else
        name_cells(rows, f, t);
    for (int of = FIT_RUN; of < FIT_OF; of++)
        exponent_cells(f, (FitOf)of, style, t);
}

static void step_fits_head(Table *t)
{
    table_cell(t, "mechanism");
    table_cell(t, "points");
    for (int of = FIT_RUN; of < FIT_OF; of++) {
        table_cell(t, "%s n^", of_names[of]);
        table_cell(t, "best");
    }
    t->cols = t->count;
}

static void note_dropped(int drop, Text *out)
{
    if (drop == 1)
        text_add(out, "--drop: the smallest length of each row is left out.\n");
    else if (drop)
        text_addf(out, "--drop: the %d smallest lengths of each row are left out.\n", drop);
}

bool rows_decode(const Results *rows)
{
    for (int i = 0; i < rows->count; i++)
        for (int of = FIT_RUN; rows->rows[i].ok && of < FIT_OF; of++)
            if (row_number(&rows->rows[i], paths[of]).valid)
                return true;
    return false;
}

void fits_decode_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style,
                       int room, Text *out)
{
    Table t = { .cols = 1, .room = room };

    if (style == TABLE_CSV)
        fits_head_csv(true, &t);
    else
        step_fits_head(&t);
    for (int i = 0; i < count; i++)
        step_fits_row(rows, &fits[i], style, &t);
    table_write(&t, style, out);
    table_free(&t);
    if (style == TABLE_CSV)
        return;
    text_add(out, "\nstep: of one token more, n^: slope of log cost on log n [Student's 95 % "
                  "interval; it\nneeds 4 lengths].  best: nearest of 1, log n, n, n log n, n^1.5, "
                  "n^2.  step reads:\nbytes of the cache that a step reads; cache: all its bytes "
                  "after n tokens.\n");
    note_dropped(count ? fits[0].drop : 0, out);
    fits_note(rows, fits, count, out);
}

static void fits_notes(int drop, Text *out)
{
    text_addf(out,
              "\ntime, FLOPs, memory n^: slope of log cost on log n, [Student's 95 %% interval;\n"
              "it needs 4 lengths].  best: nearest of 1, log n, n, n log n, n^1.5, n^2.\n"
              "claim: the interval holds the claimed exponent (claimed n^), or lies above or\n"
              "below it by more than %.1f; a claimed log n is divided out first; undecided: the\n"
              "interval is wider than %g; -: nothing is claimed (of memory: nothing like the\n"
              "time), or too few points.  faster from n: than full attention, among the lengths\n"
              "of this file.  memory is the mechanism's own (arena peak).  A part that does not\n"
              "grow, such as parameters and tables, makes slopes small: \"below\" at small n says\n"
              "little of memory.  Slopes bend at small n: --drop K leaves out the K smallest.\n",
              VERDICT_TOLERANCE, VERDICT_WIDEST);
    note_dropped(drop, out);
}

void fits_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style, int room,
                Text *out)
{
    Table t = { .cols = 1, .room = room };

    if (style == TABLE_CSV)
        fits_head_csv(false, &t);
    else
        fits_head(&t);
    for (int i = 0; i < count; i++)
        fits_row(rows, &fits[i], style, &t);
    table_write(&t, style, out);
    table_free(&t);
    if (style == TABLE_CSV)
        return;
    fits_notes(count ? fits[0].drop : 0, out);
    fits_note(rows, fits, count, out);
}

/* ---- JSON ------------------------------------------------------------------- */

static void json_fit(Json *j, const SeriesFit *f, FitOf of)
{
    const Fit *fit = &f->plain[of];
    Verdict    verdict = fit_verdict(f, of, f->claim[of]);

    jsonw_open(j, '{');
    jsonw_key_number(j, "alpha", number_or_nan(fit->alpha));
    jsonw_key_number(j, "lo", number_or_nan(fit->lo));
    jsonw_key_number(j, "hi", number_or_nan(fit->hi));
    jsonw_key_number(j, "r2", number_or_nan(fit->r2));
    jsonw_key_number(j, "claimed", f->claim[of].power >= 0 ? f->claim[of].power : (double)NAN);
    jsonw_key_bool(j, "claimed_log", f->claim[of].log);
    jsonw_key_string(j, "verdict", verdict == VERDICT_NONE ? NULL : verdict_word(verdict));
    jsonw_key_string(j, "best", fit->alpha.valid ? fit_model_name(fit->best) : NULL);
    jsonw_key_open(j, "models", '{');
    for (FitModel m = FIT_CONSTANT; m < FIT_MODELS; m++)
        jsonw_key_number(j, fit_model_name(m), number_or_nan(fit->rms[m]));
    jsonw_close(j, '}');
    jsonw_key_open(j, "local", '[');
    for (int i = 0; i < fit->locals; i++)
        jsonw_number(j, fit->local[i]);
    jsonw_close(j, ']');
    jsonw_key_number(j, "last_local", number_or_nan(last_local(fit)));
    jsonw_close(j, '}');
}

/* Of one token more, in files that know it. */
static void json_decode(Json *j, const SeriesFit *f)
{
    jsonw_key_open(j, "decode", '{');
    for (int of = FIT_RUN; of < FIT_OF; of++) {
        jsonw_key(j, of_keys[of]);
        json_fit(j, f, (FitOf)of);
    }
    jsonw_close(j, '}');
}

/* The fit of the row's series; NULL: none of it was measured. */
static const SeriesFit *fit_of_row(const SeriesFit *fits, int count, const ResultRow *row)
{
    for (int i = 0; i < count; i++)
        if (row_same_series(fits[i].row, row))
            return &fits[i];
    return NULL;
}

/* Points of the series that were not measured: its own, or of no fit at all (of: NULL). */
static void json_left_out(Json *j, const Results *rows, const SeriesFit *fits, int count,
                          const SeriesFit *of)
{
    jsonw_key_open(j, "left_out", '[');
    for (int i = 0; i < rows->count; i++) {
        const ResultRow *row = &rows->rows[i];

        if (row->ok || fit_of_row(fits, count, row) != of)
            continue;
        jsonw_open(j, '{');
        jsonw_key_string(j, "mechanism", row->mechanism);
        jsonw_key_int(j, "n", row->n);
        jsonw_key_string(j, "status", row->status);
        jsonw_key_string(j, "message", row->message);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

/* What was never measured has no fit: an object of no points holds it. */
static void json_never_measured(Json *j, const Results *rows, const SeriesFit *fits, int count)
{
    int never = 0;

    for (int i = 0; i < rows->count; i++)
        never += !rows->rows[i].ok && !fit_of_row(fits, count, &rows->rows[i]);
    if (!never)
        return;
    jsonw_open(j, '{');
    jsonw_key_string(j, "mechanism", NULL);
    jsonw_key_int(j, "points", 0);
    json_left_out(j, rows, fits, count, NULL);
    jsonw_close(j, '}');
}

/* Lengths that the fits are made of, and what is to be said of them. */
static void json_points(Json *j, const Results *rows, const SeriesFit *f)
{
    Text note = { 0 };

    fit_note(rows, f, &note);
    jsonw_key_int(j, "lengths", fit_lengths(f));
    jsonw_key_string(j, "note", note.length ? text_str(&note) : NULL);
    text_free(&note);
}

void fits_json(const Results *rows, const SeriesFit *fits, int count, Text *out)
{
    Json j = jsonw_to(out);
    bool decode = rows_decode(rows);

    jsonw_open(&j, '[');
    for (int i = 0; i < count; i++) {
        const SeriesFit *f = &fits[i];
        const Mechanism *m = mechanism_find(f->row->mechanism);

        jsonw_open(&j, '{');
        jsonw_key_string(&j, "mechanism", f->row->mechanism);
        jsonw_key_string(&j, "asked", f->row->asked);
        jsonw_key_raw(&j, "params", f->row->params);
        jsonw_key_string(&j, "position", f->row->position);
        jsonw_key_bool(&j, "causal", f->row->causal);
        jsonw_key_string(&j, "device", f->row->device);
        jsonw_key_string(&j, "precision", f->row->precision);
        jsonw_key_int(&j, "threads", f->row->threads);
        jsonw_key_string(&j, "source", f->row->source);
        jsonw_key_int(&j, "d", f->row->d);
        jsonw_key_int(&j, "heads", f->row->heads);
        jsonw_key_string(&j, "version", f->row->version);
        jsonw_key_int(&j, "points", f->points);
        jsonw_key_int(&j, "drop", f->drop);
        json_points(&j, rows, f);
        jsonw_key_string(&j, "claimed_time", m ? m->claim_time : NULL);
        jsonw_key_string(&j, "claimed_memory", m ? m->claim_memory : NULL);
        for (int of = 0; of < FIT_RUN; of++) {
            jsonw_key(&j, of_keys[of]);
            json_fit(&j, f, (FitOf)of);
        }
        if (decode)
            json_decode(&j, f);
        jsonw_key_number(&j, "faster_from_n", number_or_nan(f->crossover));
        json_left_out(&j, rows, fits, count, f);
        jsonw_close(&j, '}');
    }
    json_never_measured(&j, rows, fits, count);
    jsonw_close(&j, ']');
    text_add(out, "\n");
}
