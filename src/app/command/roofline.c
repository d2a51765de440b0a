/* roofline.c -- every stage against what this machine can do at most.
 *
 * The ceilings are measured in the same command (attn/ops/ops.h).  A stage is a
 * point: FLOPs to a byte of traffic, and FLOPs a second.  Traffic is what must
 * move at least, so a stage whose data stays in a cache may stand above the
 * slanted roof; nothing stands above the flat one.  Below the stages stands the run as a
 * whole, with the share of its least time: a stage without traffic counts there, too.
 */
#include "app/command/command.h"
#include "app/figure/plots.h"
#include "app/session/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
#define REPEATS 5

typedef struct Roofline {
    Result  *results[MOST];
    Ceilings ceilings[MOST]; /* of each result's device, in its precision */
    int      count;
} Roofline;

/* Measured before the runs: caches and clocks are as a run leaves them. */
static bool measure_one(Session *s, const Call *call, const char *mechanism, int threads,
                        Roofline *r, Error *err)
{
    Request         request;
    const Ceilings *known;

    if (r->count == MOST)
        return error_set(err, ERR_USAGE, "more than %d mechanisms", MOST);
    if (!call_request(s, call, mechanism, &request, err) ||
        !call_refuse_stack(call, &request, err))
        return false;
    known = session_ceilings(s, request.ops, threads, err);
    if (known) {
        r->ceilings[r->count] = *known;
        session_progress(s, "measuring %s", mechanism);
        request.measure = true;
        if (!request.repeat)
            request.repeat = REPEATS;
        r->results[r->count] = session_run_ok(s, &request, err);
    }
    request_free(&request);
    if (!known || !r->results[r->count])
        return false;
    r->count++;
    return true;
}

static bool measure_all(Session *s, const Call *call, Roofline *r, Error *err)
{
    int64_t threads = 0;

    if (!call_int(call, OPT_THREADS, 1, 4096, &threads, err) || !call_check_params(call, err))
        return false;
    for (int i = 0; i < call->word_count; i++)
        if (!measure_one(s, call, call->words[i], (int)threads, r, err))
            return false;
    return true;
}

static bool same_place(const Record *a, const Record *b)
{
    return !strcmp(a->device, b->device) && !strcmp(a->precision, b->precision);
}

/* No earlier result ran on the same device and in the same precision. */
static bool is_first(const Roofline *r, int i)
{
    for (int k = 0; k < i; k++)
        if (same_place(&r->results[k]->record, &r->results[i]->record))
            return false;
    return true;
}

static bool has_places(const Roofline *r)
{
    for (int i = 1; i < r->count; i++)
        if (is_first(r, i))
            return true;
    return false;
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

static void bound_cell(Table *t, const RoofPoint *p)
{
    if (p->of_bound.valid)
        table_cell(t, "%.2f", p->of_bound.value);
    else
        table_cell(t, "n/a");
}

/* The stages of a run are followed by the run as a whole, unless it is its one stage. */
static int row_count(const Record *r)
{
    return r->stage_count > 1 ? r->stage_count + 1 : r->stage_count;
}

static RoofPoint row_point(const Record *r, int stage, const Ceilings *c)
{
    return stage < r->stage_count ? roof_point(r, stage, c) : roof_whole(r, c);
}

static void stage_row(const Ceilings *c, const Result *result, int stage, bool places, Table *t)
{
    const Record *r = &result->record;
    RoofPoint     p = row_point(r, stage, c);
    Text          name = { 0 };
    char          text[80] = "all stages";

    request_text(&result->request, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    if (places)
        table_cell(t, "%s %s", r->device, r->computed);
    if (stage < r->stage_count)
        stage_name(&r->stages[stage], text, sizeof(text));
    table_cell(t, "%s", text);
    table_number(t, p.time_ms, 3);
    table_cell(t, "%s", p.flops.valid ? format_count(p.flops.value, text, sizeof(text)) : "0");
    table_number(t, p.intensity, 3);
    rate_cell(t, p.rate);
    rate_cell(t, p.roof);
    share_cell(t, &p);
    bound_cell(t, &p);
    table_cell(t, "%s", bound_of(c, &p));
}

/* ---- for programs ---------------------------------------------------------------- */

static const char *const keys[] = { "mechanism", "device", "computed", "source", "stage", "time_ms",
                                    "flops", "bytes", "intensity", "flops_per_second", "roof",
                                    "bound_ms", "of_bound", "bound_by" };

/* The run as a whole has no stage. */
static void csv_row(const Ceilings *c, const Result *result, int stage, Table *t)
{
    const Record *r = &result->record;
    RoofPoint     p = row_point(r, stage, c);
    const Number  all[] = { p.time_ms,   p.flops.valid ? p.flops : number_of(0),
                            p.bytes,     p.intensity,
                            p.rate,      p.roof,
                            p.bound_ms,  p.of_bound };
    Text          name = { 0 };
    char          text[80] = "";

    request_text(&result->request, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    if (stage < r->stage_count)
        stage_name(&r->stages[stage], text, sizeof(text));
    table_cell(t, "%s", r->device);
    table_cell(t, "%s", r->computed);
    table_cell(t, "%s", roof_point_source(r));
    table_cell(t, "%s", text);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        table_number(t, all[i], 15);
    table_cell(t, "%s", bound_of(c, &p));
}

static void roofs_csv(const Roofline *r, Text *out)
{
    Table t = { .cols = (int)(sizeof(keys) / sizeof(*keys)) };

    for (int i = 0; i < t.cols; i++)
        table_cell(&t, "%s", keys[i]);
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < row_count(&r->results[i]->record); k++)
            csv_row(&r->ceilings[i], r->results[i], k, &t);
    table_write(&t, TABLE_CSV, out);
    table_free(&t);
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

/* A point above what the machine can do says that the machine could do more than was measured. */
static void ceilings_warning(const Roofline *r, Text *out)
{
    int    count = 0;
    double most = 0;

    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < row_count(&r->results[i]->record); k++) {
            RoofPoint p = row_point(&r->results[i]->record, k, &r->ceilings[i]);

            if (!roof_is_exceeded(&p))
                continue;
            count++;
            most = fmax(most, p.rate.value / p.roof.value);
        }
    if (!count)
        return;
    text_add_count(out, count, "row");
    text_addf(out, " above the roof, by a factor of up to %.1f: the machine was busy while its "
              "ceilings were measured, or data stayed in a cache; measure again on an idle machine",
              most);
}

/* NULL: OpenBLAS's kernels fit, or no mechanism ran on the CPU. */
static const char *blas_warning(const Roofline *r)
{
    for (int i = 0; i < r->count; i++)
        if (!r->results[i]->record.gpu)
            return environment_blas_warning();
    return NULL;
}

/* Where the points' numbers come from, and what they mean. */
static void show_sources(const Roofline *r, Text *out)
{
    bool places = has_places(r), counted = false, hardware = false;
    Text warning = { 0 };

    text_add(out, "\n");
    for (int i = 0; i < r->count; i++) {
        const Record *record = &r->results[i]->record;

        hardware |= roof_by_counters(record);
        counted |= !roof_by_counters(record);
        if (!is_first(r, i) || (!record->gpu && !places))
            continue;
        text_addf(out, "Points%s%s%s%s: %s.\n", places ? " of " : "",
                  places ? record->device : "", places ? " " : "", places ? record->precision : "",
                  roof_point_source(record));
    }
    if (hardware)
        text_add(out, "The hardware's operations include tiles computed beyond the allowed cells: "
                      "attnscope run\nhas the counted FLOPs beside them.\n");
    ceilings_warning(r, &warning);
    if (counted && !warning.length)
        text_add(out, "Traffic is what must move at least: a stage above its roof found its data "
                      "in a cache.\n");
    if (warning.length)
        text_add_folded(out, text_str(&warning), 80, 0);
    text_free(&warning);
    if (blas_warning(r))
        text_add_folded(out, blas_warning(r), 80, 0);
    text_add(out, "of its bound: the least time, which is the larger of FLOPs / peak and bytes / "
                  "bandwidth,\ndivided by the time; 1 is the limit.\n");
    text_add(out, "n/a: the stage counts no traffic or no FLOPs; comparisons that select or sort "
                  "are none.\n");
}

static void show_roofs(const Roofline *r, TableStyle style, Text *out)
{
    static const char *const heads[] = { "mechanism", "device",    "stage",
                                         "time ms",   "FLOP",      "F/B",
                                         "GF/s",      "roof GF/s", "% roof",
                                         "of its bound", "bound by" };
    bool  places = has_places(r);
    Table t = { .cols = places ? 11 : 10 };

    for (int i = 0; i < r->count; i++)
        if (is_first(r, i))
            show_ceilings(&r->ceilings[i], &r->results[i]->record, out);
    for (int i = 0; i < 11; i++)
        if (places || i != 1)
            table_cell(&t, "%s", heads[i]);
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < row_count(&r->results[i]->record); k++)
            stage_row(&r->ceilings[i], r->results[i], k, places, &t);
    table_write(&t, style, out);
    table_free(&t);
    show_sources(r, out);
}

static void point_json(const Result *result, const RoofPoint *p, const char *stage, Json *json)
{
    Text name = { 0 };

    request_text(&result->request, &name);
    jsonw_open(json, '{');
    jsonw_key_string(json, "mechanism", text_str(&name));
    if (stage)
        jsonw_key_string(json, "stage", stage);
    jsonw_key_string(json, "device", result->record.device);
    jsonw_key_string(json, "computed", result->record.computed);
    jsonw_key_string(json, "source", roof_point_source(&result->record));
    jsonw_key_number(json, "time_ms", number_or_nan(p->time_ms));
    jsonw_key_number(json, "flops", p->flops.valid ? p->flops.value : 0);
    jsonw_key_number(json, "bytes", number_or_nan(p->bytes));
    jsonw_key_number(json, "intensity", number_or_nan(p->intensity));
    jsonw_key_number(json, "flops_per_second", number_or_nan(p->rate));
    jsonw_key_number(json, "roof", number_or_nan(p->roof));
    jsonw_key_number(json, "bound_ms", number_or_nan(p->bound_ms));
    jsonw_key_number(json, "of_bound", number_or_nan(p->of_bound));
    jsonw_close(json, '}');
    text_free(&name);
}

/* `points` are stages, `runs` their sums. */
static void points_json(const Roofline *r, Json *json)
{
    jsonw_key_open(json, "points", '[');
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < r->results[i]->record.stage_count; k++) {
            RoofPoint p = roof_point(&r->results[i]->record, k, &r->ceilings[i]);
            char      name[80];

            stage_name(&r->results[i]->record.stages[k], name, sizeof(name));
            point_json(r->results[i], &p, name, json);
        }
    jsonw_close(json, ']');
    jsonw_key_open(json, "runs", '[');
    for (int i = 0; i < r->count; i++) {
        RoofPoint p = roof_whole(&r->results[i]->record, &r->ceilings[i]);

        point_json(r->results[i], &p, NULL, json);
    }
    jsonw_close(json, ']');
}

static void ceilings_json(const Ceilings *c, const Record *r, Json *json)
{
    jsonw_open(json, '{');
    jsonw_key_string(json, "device", r->device);
    jsonw_key_string(json, "precision", r->precision);
    jsonw_key_string(json, "name", r->gpu ? r->gpu->name : NULL); /* the environment names a CPU */
    jsonw_key_number(json, "peak", c->peak);
    jsonw_key_number(json, "tensor", c->tensor);
    jsonw_key_number(json, "gemm", c->gemm);
    jsonw_key_number(json, "stream", c->stream);
    jsonw_close(json, '}');
}

/* `ceilings` are those of the first mechanism, `devices` all of them. */
static void roofs_json(const Roofline *r, Text *out)
{
    Json json = jsonw_to(out);
    Text warning = { 0 };

    jsonw_open(&json, '{');
    jsonw_key(&json, "ceilings");
    ceilings_json(&r->ceilings[0], &r->results[0]->record, &json);
    jsonw_key_open(&json, "devices", '[');
    for (int i = 0; i < r->count; i++)
        if (is_first(r, i))
            ceilings_json(&r->ceilings[i], &r->results[i]->record, &json);
    jsonw_close(&json, ']');
    jsonw_key_int(&json, "threads", r->results[0]->record.threads);
    points_json(r, &json);
    ceilings_warning(r, &warning);
    if (blas_warning(r))
        text_addf(&warning, "%s%s", warning.length ? ". " : "", blas_warning(r));
    jsonw_key_string(&json, "warning", warning.length ? text_str(&warning) : NULL);
    text_free(&warning);
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
        roofs_json(&r, out);
    else if (ok && call->values[OPT_CSV])
        roofs_csv(&r, out);
    else if (ok)
        show_roofs(&r, call_style(call), out);
    for (int i = 0; i < r.count; i++)
        result_release(r.results[i]);
    return ok;
}
