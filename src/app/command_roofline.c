/* command_roofline.c -- every stage against what this machine can do at most.
 *
 * The ceilings are measured in the same command (attn/ceilings.h).  A stage is a
 * point: FLOPs to a byte of traffic, and FLOPs a second.  Traffic is what must
 * move at least, so a stage whose data stays in a cache may stand above the
 * slanted roof; nothing stands above the flat one.
 */
#include "app/command_plot.h"
#include "app/roof_point.h"
#include "app/session_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
#define REPEATS 5

typedef struct Roofline {
    Ceilings ceilings;
    Result  *results[MOST];
    int      count;
} Roofline;

static bool measure_one(Session *s, const Call *call, const char *mechanism, Roofline *r,
                        Error *err)
{
    Request request;

    if (r->count == MOST)
        return error_set(err, ERR_USAGE, "more than %d mechanisms", MOST);
    if (!call_request(s, call, mechanism, &request, err) ||
        !call_refuse_stack(call, &request, err))
        return false;
    session_progress(s, "measuring %s", mechanism);
    request.measure = true;
    if (!request.repeat)
        request.repeat = REPEATS;
    r->results[r->count] = session_run(s, &request, err);
    request_free(&request);
    if (!r->results[r->count])
        return false;
    r->count++;
    return r->results[r->count - 1]->run->err.code == ERR_NONE ||
           error_set(err, r->results[r->count - 1]->run->err.code, "%s",
                     r->results[r->count - 1]->run->err.text);
}

static bool measure_all(Session *s, const Call *call, Roofline *r, Error *err)
{
    const Ceilings *known;
    int64_t         threads = 0;
    Request         first;

    if (!call_int(call, OPT_THREADS, 1, 4096, &threads, err) || !call_check_params(call, err))
        return false;
    if (!call_request(s, call, call->words[0], &first, err))
        return false;
    known = session_ceilings(s, first.ops, (int)threads, err);
    request_free(&first);
    if (!known)
        return false;
    r->ceilings = *known;
    for (int i = 0; i < call->word_count; i++)
        if (!measure_one(s, call, call->words[i], r, err))
            return false;
    return true;
}

/* ---- one stage ---------------------------------------------------------------- */

static const char *bound_of(const Ceilings *c, const RoofPoint *p)
{
    if (!p->roof.valid)
        return "n/a";
    return p->roof.value < c->peak ? "memory" : "arithmetic";
}

static void stage_name(const StageRecord *s, char *name, size_t size)
{
    if (s->iteration >= 0)
        snprintf(name, size, "%s %lld", s->name, (long long)s->iteration);
    else
        snprintf(name, size, "%s", s->name);
}

static void number_cell(Table *t, Number number, int digits)
{
    if (number.valid)
        table_cell(t, "%.*g", digits, number.value);
    else
        table_cell(t, "n/a");
}

/* "391.5": giga, one decimal. */
static void rate_cell(Table *t, Number rate)
{
    if (rate.valid)
        table_cell(t, "%.1f", 1e-9 * rate.value);
    else
        table_cell(t, "n/a");
}

static void share_cell(Table *t, const RoofPoint *p)
{
    if (p->roof.valid && p->rate.valid)
        table_cell(t, "%.0f", 100 * p->rate.value / p->roof.value);
    else
        table_cell(t, "n/a");
}

static void stage_row(const Ceilings *c, const Result *result, int stage, Table *t)
{
    const StageRecord *s = &result->record.stages[stage];
    RoofPoint          p = roof_point(&result->record, stage, c);
    Text               name = { 0 };
    char               text[80];

    request_text(&result->request, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    stage_name(s, text, sizeof(text));
    table_cell(t, "%s", text);
    number_cell(t, p.time_ms, 3);
    table_cell(t, "%s", p.flops.valid ? format_count(p.flops.value, text, sizeof(text)) : "0");
    number_cell(t, p.intensity, 3);
    rate_cell(t, p.rate);
    rate_cell(t, p.roof);
    share_cell(t, &p);
    table_cell(t, "%s", bound_of(c, &p));
}

/* ---- the whole ------------------------------------------------------------------ */

static void show_ceilings(const Ceilings *c, const Record *r, Text *out)
{
    if (r->gpu)
        text_addf(out, "ceilings of %s, measured now\n", r->gpu->name);
    else
        text_addf(out, "ceilings of this machine, %d thread%s, measured now\n", r->threads,
                  r->threads == 1 ? "" : "s");
    if (!isnan(c->peak) && c->tensor != c->peak)
        text_addf(out, "  multiply-add peak  %8.1f GF/s\n", 1e-9 * c->peak);
    if (!isnan(c->tensor))
        text_addf(out, "  tensor cores, %-4s %8.1f GF/s\n",
                  c->tensor == c->peak ? r->precision : "bf16", 1e-9 * c->tensor);
    text_addf(out, "  %-18s %8.1f GF/s\n  memory (triad)     %8.1f GB/s\n",
              r->gpu ? "matrix products" : "OpenBLAS sgemm", 1e-9 * c->gemm, 1e-9 * c->stream);
    if (!isnan(c->peak))
        text_addf(out, "  the roof is flat from %.1f FLOPs to a byte on\n\n",
                  c->peak / c->stream);
}

static void show_table(const Roofline *r, TableStyle style, Text *out)
{
    static const char *const heads[] = { "mechanism", "stage",     "time ms", "FLOP", "F/B",
                                         "GF/s",      "roof GF/s", "% roof",  "bound by" };
    Table t = { .cols = 9 };

    if (style != TABLE_CSV)
        show_ceilings(&r->ceilings, &r->results[0]->record, out);
    for (int i = 0; i < t.cols; i++)
        table_cell(&t, "%s", heads[i]);
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < r->results[i]->record.stage_count; k++)
            stage_row(&r->ceilings, r->results[i], k, &t);
    table_write(&t, style, out);
    table_free(&t);
    if (style != TABLE_CSV && r->results[0]->record.gpu)
        text_addf(out, "\nPoints: %s.\n", roof_point_source(&r->results[0]->record));
    if (style != TABLE_CSV)
        text_add(out, "\nTraffic is what must move at least: a stage above its roof found its data "
                      "in a cache.\nn/a: the stage counts no traffic or no FLOPs.\n");
}

static void key_valid(Json *json, const char *key, Number number)
{
    jsonw_key(json, key);
    if (number.valid)
        jsonw_number(json, number.value);
    else
        jsonw_null(json);
}

static void stage_json(const Ceilings *c, const Result *result, int stage, Json *json)
{
    const StageRecord *s = &result->record.stages[stage];
    RoofPoint          p = roof_point(&result->record, stage, c);
    Text               name = { 0 };
    char               word[80];

    request_text(&result->request, &name);
    stage_name(s, word, sizeof(word));
    jsonw_open(json, '{');
    jsonw_key(json, "mechanism"), jsonw_string(json, text_str(&name));
    jsonw_key(json, "stage"), jsonw_string(json, word);
    key_valid(json, "time_ms", p.time_ms);
    key_valid(json, "flops", number_of(p.flops.valid ? p.flops.value : 0));
    key_valid(json, "intensity", p.intensity);
    key_valid(json, "flops_per_second", p.rate);
    key_valid(json, "roof", p.roof);
    jsonw_close(json, '}');
    text_free(&name);
}

static void show_json(const Roofline *r, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    jsonw_key(&json, "ceilings"), jsonw_open(&json, '{');
    key_valid(&json, "peak",
              (Number){ .value = r->ceilings.peak, .valid = !isnan(r->ceilings.peak) });
    key_valid(&json, "tensor",
              (Number){ .value = r->ceilings.tensor, .valid = !isnan(r->ceilings.tensor) });
    key_valid(&json, "gemm", number_of(r->ceilings.gemm));
    key_valid(&json, "stream", number_of(r->ceilings.stream));
    jsonw_close(&json, '}');
    jsonw_key(&json, "threads"), jsonw_int(&json, r->results[0]->record.threads);
    jsonw_key(&json, "points"), jsonw_open(&json, '[');
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < r->results[i]->record.stage_count; k++)
            stage_json(&r->ceilings, r->results[i], k, &json);
    jsonw_close(&json, ']');
    jsonw_key(&json, "environment");
    environment_json(&json);
    jsonw_close(&json, '}');
    text_add(out, "\n");
}

bool command_roofline(Session *s, const Call *call, Text *out, Error *err)
{
    const PlotChoice roof = { .kinds = { PLOT_ROOFLINE }, .count = 1, .ceilings = true };
    Roofline         r = { .count = 0 };
    bool             ok;

    if (!call->word_count)
        return error_set(err, ERR_USAGE, "roofline needs mechanisms, for example attnscope "
                                         "roofline full 'window(window=257)' linear -n 4096");
    if ((call->values[OPT_ROOF] || call->values[OPT_OUTPUT]) && !plot_refuse_formats(call, err))
        return false;
    ok = call_load_input(s, call, err) && measure_all(s, call, &r, err);
    if (ok && (call->values[OPT_ROOF] || call->values[OPT_OUTPUT]))
        ok = plot_choice_show(s, call, &roof, r.results, r.count, out, err);
    else if (ok && call->values[OPT_JSON])
        show_json(&r, out);
    else if (ok)
        show_table(&r, call_style(call), out);
    for (int i = 0; i < r.count; i++)
        result_release(r.results[i]);
    return ok;
}
