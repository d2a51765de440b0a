/* compare.c -- mechanisms side by side: cost, quality, crossover.
 *
 * Exact tiled attention always stands first: a saving is a saving only against
 * that.  --crossover measures where it begins: both run on N(0,1) inputs of growing n with
 * this input's heads and head size, until the mechanism is faster and stays so.
 */
#include "app/command/command.h"
#include "app/session/internal.h"
#include "app/study/budget.h"
#include "app/study/sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST            64
#define DEFAULT_REPEATS 5

typedef struct Comparison {
    Result    *results[MOST];
    Crossover  crossovers[MOST]; /* if `crossover` */
    int        count;
    Axis       axis;    /* owned; count 0: nothing varies */
    PlotChoice plots;   /* count 0: the table */
    bool       scaling; /* time over n instead of it */
    bool       crossover; /* the column "faster from n" */
    bool       per_head;  /* a table of heads */
    bool       decode;    /* a table of steps */
    int64_t    head;      /* quality of this head alone; -1: of all */
    Budget     budget;    /* share 0: sizes follow n */
    Text       sizes;     /* lines of what was chosen */
    double     began;     /* clock_wall */
    int        planned;   /* rows */
} Comparison;

/* ---- running ---------------------------------------------------------------- */

/* --fit changes the mechanisms that have something to fit; the others, such as the baseline, run
 * plain beside them. */
static void fit_where_possible(const Call *call, Request *request)
{
    const Mechanism *m = mechanism_find(request->mechanism);

    if (call->values[OPT_FIT] && m && !m->fit)
        request->fit = false;
}

static bool fits_something(const Call *call, Error *err)
{
    Text names = { 0 };
    bool any = !call->values[OPT_FIT];

    for (int i = 0; i < call->word_count && !any; i++) {
        char             name[64];
        const Mechanism *m;

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(call->words[i], "("), call->words[i]);
        m = mechanism_find(name);
        any = !m || m->fit; /* an unknown name is refused with its own line */
    }
    for (size_t i = 0; !any && mechanism_at(i); i++)
        if (mechanism_at(i)->fit)
            text_addf(&names, "%s%s", names.length ? ", " : "", mechanism_at(i)->id);
    if (!any)
        error_set(err, ERR_PARAM, "--fit: none of these mechanisms fits anything on its input; "
                  "leave it out, or take one that does: %s", text_str(&names));
    text_free(&names);
    return any;
}

/* Only a baseline that the call names takes its -p. */
static bool request_for(Session *s, const Call *call, const char *mechanism, Request *out,
                        Error *err)
{
    Call plain = *call;

    for (int i = 0; i < call->word_count; i++)
        if (call->words[i] == mechanism)
            return call_request(s, call, mechanism, out, err);
    plain.param_count = 0;
    return call_request(s, &plain, mechanism, out, err);
}

/* All rows are shown; the exit status reports that one failed. */
static bool first_failure(const Comparison *c, Error *err)
{
    for (int i = 0; i < c->count; i++)
        if (c->results[i]->run->err.code != ERR_NONE) {
            *err = c->results[i]->run->err;
            return false;
        }
    return true;
}

/* Sets what to measure: everything for the table, for plots what they show. */
static bool ask(const Comparison *c, Request *request, Error *err)
{
    if (c->scaling)
        return true;
    request->per_head = c->per_head || c->head >= 0;
    if (c->plots.count)
        return plot_choice_ask(&c->plots, request, err);
    request->measure = true;
    request->quality = true;
    if (!request->repeat)
        request->repeat = DEFAULT_REPEATS;
    return true;
}

/* Chooses the size of a mechanism for the budget, or by the input's length.  The first row is exact
 * attention. */
static bool choose_size(Session *s, Comparison *c, Request *request, Text *note, Error *err)
{
    bool ok = true;

    if (c->budget.share > 0)
        ok = !c->count || budget_choose(s, &c->budget, c->results[0], request, note, err);
    else if (!c->axis.count && !c->scaling)
        ok = size_follow(s, request, note, err);
    if (!text_has_line(&c->sizes, text_str(note)))
        text_addf(&c->sizes, "%s\n", text_str(note));
    return ok;
}

/* Records alone, as in JSON and CSV, have no lines below them. */
static Result *run_noted(Session *s, const Request *request, const Text *note, bool alone,
                         Error *err)
{
    Result *result = session_run(s, request, err);

    if (result && alone && note->length)
        record_warn(&result->record, "%s", note->data);
    return result;
}

/* From here on the record's quality is that of one head; false: the input has no such head. */
static bool take_head(const Comparison *c, Record *record, Error *err)
{
    if (c->head < 0)
        return true;
    if (c->head >= record->heads)
        return error_set(err, ERR_USAGE, "--head %lld: %s has %lld head%s, from 0 to %lld",
                         (long long)c->head, record->input, (long long)record->heads,
                         record->heads == 1 ? "" : "s", (long long)record->heads - 1);
    if (record->by_head && !c->per_head)
        record_take_head(record, (int)c->head);
    return true;
}

#define SILENT_SECONDS 1 /* a shorter command says nothing on the way */

/* A row that is there is a line of its own where no line is written again and again. */
static void say_row(Session *s, const Comparison *c, const char *mechanism, const char *value)
{
    const Record *r = &c->results[c->count - 1]->record;
    double        passed = clock_wall() - c->began;
    char          ms[32], times[40];

    if (passed < clock_setting("ATTNSCOPE_SILENT_SECONDS", SILENT_SECONDS))
        return;
    session_line(s, "compare: %d of %d: %.60s%s%.60s: %s%s; %s", c->count, c->planned, mechanism,
                 value ? ", " : "", value ? value : "",
                 r->status == RECORD_OK ? format_ms(r->time.median, ms, sizeof(ms))
                                        : record_status_name(r->status),
                 r->status == RECORD_OK && r->time.median.valid ? " ms" : "",
                 format_seconds(passed, times, sizeof(times)));
}

/* value: NAME=VALUE added to the call's options; NULL: none. */
static bool add_request(Session *s, const Call *call, const char *mechanism, const char *value,
                        Comparison *c, Error *err)
{
    Request request;
    Result *result = NULL;
    Text    note = { 0 };

    if (c->count == MOST)
        return error_set(err, ERR_USAGE, "more than %d rows", MOST);
    if (!request_for(s, call, mechanism, &request, err) || !call_refuse_stack(call, &request, err))
        return false;
    fit_where_possible(call, &request);
    if (value && !request_set(s, &request, value, err)) {
        request_free(&request);
        return false;
    }
    if (choose_size(s, c, &request, &note, err) && ask(c, &request, err)) {
        session_progress(s, "measuring %s%s%s", mechanism, value ? ", " : "", value ? value : "");
        result = run_noted(s, &request, &note, call->values[OPT_JSON] || call->values[OPT_CSV],
                           err);
    }
    request_free(&request);
    text_free(&note);
    if (!result)
        return false;
    c->results[c->count++] = result;
    if (!take_head(c, &result->record, err))
        return false;
    say_row(s, c, mechanism, value);
    return true;
}

/* False also for a word that is no request; add_request reports why. */
static bool takes(Session *s, const Call *call, const char *word, const char *param)
{
    Request request;
    Error   ignored = ERROR_INIT;
    bool    ok = request_for(s, call, word, &request, &ignored);

    if (!ok)
        return false;
    ok = study_varies(&request, param);
    request_free(&request);
    return ok;
}

/* Values that the word is run at; 0: as it is. */
static int values_of(Session *s, const Call *call, const char *word, const Axis *axis)
{
    return axis->count && takes(s, call, word, axis->name) ? axis->count : 0;
}

/* Adds one row, or one for each value of the parameter. */
static bool add_rows_of(Session *s, const Call *call, const char *word, const Axis *axis,
                        Comparison *c, Error *err)
{
    int  count = values_of(s, call, word, axis);
    char value[256];

    if (!count)
        return add_request(s, call, word, NULL, c, err);
    for (int i = 0; i < count; i++) {
        snprintf(value, sizeof(value), "%s=%s", axis->name, axis->values[i]);
        if (!add_request(s, call, word, value, c, err))
            return false;
    }
    return true;
}

static bool parse_vary(Session *s, const Call *call, Axis *axis, Error *err)
{
    if (!call->values[OPT_VARY])
        return true;
    if (!axis_parse(call->values[OPT_VARY], axis, err))
        return false;
    for (int i = 0; i < call->word_count; i++)
        if (takes(s, call, call->words[i], axis->name))
            return true;
    error_set(err, ERR_PARAM, "--vary %s: none of these mechanisms has the parameter %s",
              call->values[OPT_VARY], axis->name);
    return false;
}

/* The first row is exact attention, the baseline of the search. */
static void search_crossover(Session *s, Comparison *c, int index)
{
    const Result *result = c->results[index];

    if (index == 0 || c->axis.count || request_has_tensors(&result->request) ||
        result->record.status != RECORD_OK)
        c->crossovers[index] = (Crossover){ .text = "n/a" };
    else
        c->crossovers[index] = study_crossover(s, &c->results[0]->request, &result->request);
}

/* The search takes seconds for each mechanism, so --crossover asks for it; no plot shows it. */
static bool searches_crossover(const Call *call)
{
    return call->values[OPT_CROSSOVER] && !call->values[OPT_PLOT];
}

/* The word names the baseline, which is the first row anyway. */
static bool is_first_row(const char *word)
{
    return mechanism_baseline() && mechanism_find(word) == mechanism_baseline();
}

static int planned_rows(Session *s, const Call *call, const Comparison *c)
{
    int rows = mechanism_baseline() != NULL;

    for (int i = 0; i < call->word_count; i++) {
        int count = values_of(s, call, call->words[i], &c->axis);

        if (!is_first_row(call->words[i]))
            rows += count ? count : 1;
    }
    return rows;
}

static bool add_all(Session *s, const Call *call, Comparison *c, Error *err)
{
    const Mechanism *exact = mechanism_baseline();

    c->began = clock_wall();
    if (!call_check_params(call, err) || !fits_something(call, err) ||
        !parse_vary(s, call, &c->axis, err))
        return false;
    c->planned = planned_rows(s, call, c);
    if (exact && !add_request(s, call, exact->id, NULL, c, err))
        return false;
    c->crossover = searches_crossover(call);
    for (int i = 0; i < call->word_count; i++)
        if (!is_first_row(call->words[i]) &&
            !add_rows_of(s, call, call->words[i], &c->axis, c, err))
            return false;
    for (int i = 0; i < c->count && c->crossover && !session_stopped(s); i++)
        search_crossover(s, c, i);
    return session_refuse_stopped(s, err);
}

/* ---- showing ---------------------------------------------------------------- */

static const char *const heads[] = { "mechanism", "time ms",      "+-",         "vs full",
                                     "FLOP",      "arena",        "heap",       "mass mean",
                                     "mass p5",   "mass min",     "output err", "TV",
                                     "KL" };
#define COLUMNS ((int)(sizeof(heads) / sizeof(*heads)))
#define CROSSOVER_HEAD "faster from n" /* shown with --crossover */

/* Columns of a GPU's profiler tiers, shown where some row ran on a device. */
static const char *const device_heads[] = { "device",  "gpu ms", "kernels ms", "host",
                                            "hw FLOP", "DRAM",   "GPU mem" };
#define DEVICE_COLUMNS ((int)(sizeof(device_heads) / sizeof(*device_heads)))

/* A mean, and of a sample of rows its 95 % interval. */
static void mean_cell(Table *t, Number mean, Number margin)
{
    char        text[48], width[32];
    const char *shown = format_share(mean, text, sizeof(text));

    if (margin.valid)
        table_cell(t, "%s +- %s", shown, format_share(margin, width, sizeof(width)));
    else
        table_cell(t, "%s", shown);
}

static void quality_cells(Table *t, const Quality *q)
{
    char text[32];

    mean_cell(t, q->mass_mean, q->mass_margin);
    table_cell(t, "%s", format_share(q->mass_p5, text, sizeof(text)));
    table_cell(t, "%s", format_share(q->mass_min, text, sizeof(text)));
    mean_cell(t, q->output_error, q->output_error_margin);
    mean_cell(t, q->total_variation, q->variation_margin);
    if (q->kl_margin.valid)
        mean_cell(t, q->kl, q->kl_margin);
    else
        table_number(t, q->kl, 4);
}

/* Shown with --seeds only. */
static const char *const seed_heads[] = { "mass [seeds]", "error [seeds]" };
#define SEED_COLUMNS ((int)(sizeof(seed_heads) / sizeof(*seed_heads)))

static bool over_seeds(const Comparison *c)
{
    return c->count > 0 && c->results[c->count - 1]->request.seeds > 1;
}

static bool on_device(const Comparison *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->results[i]->record.gpu)
            return true;
    return false;
}

static void ms_cell(Table *t, Number ms)
{
    char text[32];

    table_cell(t, "%s", format_ms(ms, text, sizeof(text)));
}

/* "cuda bf16": the device, and the precision of its products. */
static void device_cells(const Record *r, Table *t)
{
    static const DeviceCounted none = { .flops = { 0 } };
    const DeviceProfile       *gpu = r->gpu;
    const DeviceCounted       *counted = gpu ? &gpu->counted : &none;
    Number                     share = device_idle_share(gpu, -1), bytes = NUMBER_NONE;
    char                       text[48];

    table_cell(t, "%s%s%s", r->device, *r->computed ? " " : "", r->computed);
    ms_cell(t, gpu ? gpu->span_ms : NUMBER_NONE);
    ms_cell(t, gpu ? gpu->busy_ms : NUMBER_NONE);
    if (share.valid)
        table_cell(t, "%.0f %%", 100 * share.value);
    else
        table_cell(t, "n/a");
    if (counted->dram_read.valid && counted->dram_written.valid)
        bytes = number_of(counted->dram_read.value + counted->dram_written.value);
    table_cell(t, "%s",
               counted->flops.valid ? format_count(counted->flops.value, text, sizeof(text))
                                    : "n/a");
    table_cell(t, "%s", format_size(bytes, text, sizeof(text)));
    table_cell(t, "%s", format_size(r->device_peak, text, sizeof(text)));
}

static void band_cell(Table *t, const SeedSpread *seeds, const SeedBand *band)
{
    if (seeds->count && band->mean.valid)
        table_cell(t, "%.4g [%.4g, %.4g]", band->mean.value, band->min.value, band->max.value);
    else
        table_cell(t, seeds->count ? "n/a" : "not drawn");
}

static void spread_cell(Table *t, const Timing *time)
{
    char text[32];

    if (time->q1.valid && time->q3.valid)
        table_cell(t, "%s",
                   format_ms(number_of(time->q3.value - time->q1.value), text, sizeof(text)));
    else
        table_cell(t, "n/a");
}

static void result_row(const Comparison *c, int index, Table *t)
{
    const Record *r = &c->results[index]->record, *base = &c->results[0]->record;
    Text          name = { 0 };
    char          text[48];

    request_text(&c->results[index]->request, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    table_cell(t, "%s", format_ms(r->time.median, text, sizeof(text)));
    spread_cell(t, &r->time);
    if (r->time.median.valid && base->time.median.valid)
        table_times(t, base->time.median.value / r->time.median.value);
    else
        table_cell(t, "n/a");
    table_cell(t, "%s",
               r->status == RECORD_OK ? format_count(flops_total(r->counted), text, sizeof(text))
                                      : "n/a");
    table_cell(t, "%s", format_size(r->arena_peak, text, sizeof(text)));
    table_cell(t, "%s", format_size(r->heap_peak, text, sizeof(text)));
    quality_cells(t, &r->quality);
    if (c->crossover)
        table_cell(t, "%s", c->crossovers[index].text);
    if (on_device(c))
        device_cells(r, t);
    if (over_seeds(c)) {
        band_cell(t, &r->seeds, &r->seeds.mass);
        band_cell(t, &r->seeds, &r->seeds.output_error);
    }
}

/* Notes and warnings, "linformer: no causal form: ...", each once. */
static void show_warnings(const Comparison *c, int room, Text *out)
{
    Likes all = { 0 };

    for (int i = 0; i < c->count; i++) {
        likes_add(c->results[i], c->results[i]->record.notes, "note", &all);
        likes_add(c->results[i], c->results[i]->record.warnings, "note", &all);
    }
    likes_write(&all, room, out);
}

/* Prints "size     window: window=27 takes 5.04 % of full attention's pairs", a line each. */
static void show_sizes(const Comparison *c, int room, Text *out)
{
    Text line = { 0 };

    for (const char *at = text_str(&c->sizes); *at;) {
        size_t length = strcspn(at, "\n");

        text_clear(&line);
        text_addf(&line, "size     %.*s", (int)length, at);
        text_add_folded(out, text_str(&line), room, 9);
        at += length + (at[length] == '\n');
    }
    text_free(&line);
}

/* What the columns of the table of all results are. */
static void show_columns(Session *s, const Comparison *c, Text *out)
{
    const Input *input = session_input(s);

    if (c->crossover)
        text_addf(out,
                  "faster from n: measured on N(0,1) inputs up to n=%d, in at most %d s for each;\n"
                  "\"64, to 2048\": from 64 on, and time was up after 2048; \"not to 2048\": not\n"
                  "faster, and time was up.\n", CROSSOVER_LAST, CROSSOVER_SECONDS);
    if (on_device(c))
        text_add(out, "device: where, and what products were computed in. gpu ms: a run on the\n"
                      "device's clock [events]. kernels ms [activity]. host: share of gpu ms in\n"
                      "which neither kernel nor copy ran: loops, launches, waits. hw FLOP, DRAM:\n"
                      "[counters]. GPU mem: most that was taken from the device at once.\n");
    if (over_seeds(c))
        text_addf(out, "[seeds]: mean and [least, most] over %d seeds from %llu on.\n",
                  c->results[c->count - 1]->request.seeds,
                  (unsigned long long)c->results[c->count - 1]->request.seed);
    if (c->head >= 0)
        text_addf(out,
                  "mass, output err, TV, KL: of head %lld alone (--head); time, FLOP, arena,\n"
                  "heap: of all heads.\n", (long long)c->head);
    else if (input->heads > 1)
        text_addf(out,
                  "mass, output err, TV, KL: over all %lld heads; --head H: of one; --per-head:\n"
                  "of each.\n", (long long)input->heads);
}

/* Of the table of all results, unless that is left out for the others. */
static void show_notes(Session *s, const Comparison *c, bool all, int room, Text *out)
{
    compare_input(session_input(s), room, out);
    if (all)
        text_add(out, "time: median, and distance of the quartiles. ");
    if (all || c->decode)
        text_addf(out, "vs %s: above 1 is faster.\n", all ? "full" : "first");
    if (all || c->per_head)
        text_add(out, "mass: softmax mass of full attention that the allowed cells keep. TV: mean\n"
                      "total variation of the rows. KL: of them from full attention's, nats.\n");
    text_add(out, "n/a: not measured, or without meaning here.\n");
    if (all)
        show_columns(s, c, out);
    if ((all || c->per_head) && c->results[0]->request.quality_rows)
        text_addf(out,
                  "quality: of %lld rows of each head, drawn from seed %llu; +-: 95 %% interval.\n",
                  (long long)c->results[0]->request.quality_rows,
                  (unsigned long long)c->results[0]->request.seed);
    for (int i = 0; i < c->count; i++)
        if (c->results[i]->record.status != RECORD_OK)
            text_addf(out, "%s: %s: %s\n", c->results[i]->request.mechanism,
                      record_status_name(c->results[i]->record.status),
                      c->results[i]->record.message);
    compare_values(c->results, c->count, room, out);
    show_sizes(c, room, out);
    show_warnings(c, room, out);
}

/* Every number as in the records: the columns of a sweep's CSV. */
static bool compare_csv(const Comparison *c, Text *out, Error *err)
{
    Results rows = { 0 };
    Number  from[MOST];
    bool    ok = true;

    for (int i = 0; ok && i < c->count; i++) {
        Text line = { 0 };
        Json json = jsonw_to(&line);

        record_json(&c->results[i]->record, &json);
        from[i] = c->crossovers[i].from;
        ok = text_ok(&line) ? results_add(&rows, line.data, line.length, 0, err)
                            : error_set(err, ERR_NOMEM, "not enough memory for the table");
        text_free(&line);
    }
    if (ok)
        points_csv(&rows, c->crossover ? "faster_from_n" : NULL, from, out);
    results_free(&rows);
    return ok;
}

static void compare_table(Session *s, const Call *call, const Comparison *c, Text *out)
{
    TableStyle style = call_style(call);
    bool       all = style == TABLE_TEXT || !(c->per_head || c->decode);
    Table      t = { .room = call_room(call),
                     .cols = COLUMNS + c->crossover + (on_device(c) ? DEVICE_COLUMNS : 0) +
                             (over_seeds(c) ? SEED_COLUMNS : 0) };

    for (int i = 0; i < COLUMNS; i++)
        table_cell(&t, "%s", heads[i]);
    if (c->crossover)
        table_cell(&t, CROSSOVER_HEAD);
    for (int i = 0; i < DEVICE_COLUMNS && on_device(c); i++)
        table_cell(&t, "%s", device_heads[i]);
    for (int i = 0; i < SEED_COLUMNS && over_seeds(c); i++)
        table_cell(&t, "%s", seed_heads[i]);
    for (int i = 0; i < c->count; i++)
        result_row(c, i, &t);
    if (all)
        table_write(&t, style, out);
    table_free(&t);
    if (style == TABLE_TEXT && (c->per_head || c->decode))
        text_add(out, "\n");
    if (c->decode)
        compare_decode(c->results, c->count, style, call_room(call), out);
    if (c->per_head)
        compare_heads(c->results, c->count, style, call_room(call), out);
    if (style != TABLE_CSV)
        show_notes(s, c, all, style == TABLE_TEXT ? call_room(call) : 0, out);
}

static void crossover_json(const Crossover *c, Json *json)
{
    jsonw_key_open(json, "crossover", '{');
    jsonw_key_number(json, "faster_from_n", c->from.valid ? c->from.value : (double)NAN);
    jsonw_key_string(json, "note", c->text);
    jsonw_close(json, '}');
}

static void compare_json(const Comparison *c, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (int i = 0; i < c->count; i++) {
        jsonw_open(&json, '{');
        record_json_keys(&c->results[i]->record, &json);
        if (c->crossover)
            crossover_json(&c->crossovers[i], &json);
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

/* --plot and -o ask for curves over --vary, else for plots of one run of each mechanism. */
static bool check_options(const Call *call, Comparison *c, Error *err)
{
    const char *plot = call->values[OPT_PLOT];

    c->per_head = call->values[OPT_PERHEAD] != NULL;
    if (call->values[OPT_HEAD] && !call_int(call, OPT_HEAD, 0, 1000000, &c->head, err))
        return false;
    if (call->values[OPT_HEAD] && (c->per_head || call->values[OPT_SEEDS]))
        return error_set(err, ERR_USAGE, "choose one of --head, which is one head's quality, and "
                         "--%s", c->per_head ? "per-head" : "seeds, which is over all heads");
    if (call->values[OPT_HEAD] && vary_draws(call))
        return error_set(err, ERR_USAGE, "--head with --vary is a table; leave %s out",
                         call->values[OPT_KEEP] ? "--keep" : "-o");
    c->decode = call->values[OPT_DECODE] != NULL;
    if (c->decode && (plot || c->per_head))
        return error_set(err, ERR_USAGE, "--decode is a table; leave --%s out",
                         plot ? "plot" : "per-head");
    if (c->per_head && plot)
        return error_set(err, ERR_USAGE, "--per-head is a table; leave --plot out");
    if (call->values[OPT_MATCH] && !budget_parse(call->values[OPT_MATCH], &c->budget, err))
        return false;
    if (call->values[OPT_MATCH] && call->values[OPT_VARY])
        return error_set(err, ERR_USAGE, "choose one of --budget, which chooses sizes, and --vary, "
                         "which tries them");
    if (call->values[OPT_VARY])
        return vary_check_options(call, err);
    if (call->values[OPT_KEEP])
        return error_set(err, ERR_USAGE, "compare --keep needs --vary NAME=RANGE");
    if (call->values[OPT_OUTPUT] && !plot)
        return error_set(err, ERR_USAGE,
                         "-o writes plots: say which, as in --plot time,memory, "
                         "or over which parameter, as in --vary NAME=RANGE");
    c->scaling = plot && !strcmp(plot, SCALING_WORD);
    return !plot || (plot_refuse_formats(call, err) &&
                     (c->scaling || plot_choice_parse(plot, &c->plots, err)));
}

static void tell_comparison(Session *s, const Comparison *c)
{
    Text text = { 0 };

    if (!session_listens(s))
        return;
    text_add(&text, "{\"records\":");
    compare_json(c, &text);
    text_add(&text, "}");
    session_tell(s, "compare", &text);
    text_free(&text);
}

bool command_compare(Session *s, const Call *call, Text *out, Error *err)
{
    Comparison c = { .head = -1 };
    bool       ok, curves = call->values[OPT_JSON] && call->values[OPT_VARY] &&
                      call->values[OPT_PLOT]; /* numbers of curves alone */

    if (!call->word_count)
        return error_set(err, ERR_USAGE,
                         "compare needs mechanisms, for example attnscope compare "
                         "bigbird reformer performer");
    if (!check_options(call, &c, err))
        return false;
    if (vary_draws(call))
        return vary_draw(s, call, out, err);
    ok = call_load_input(s, call, err) && add_all(s, call, &c, err);
    if (ok && c.scaling)
        ok = scaling_show(s, call, c.results, c.count, out, err);
    else if (ok && c.plots.count)
        ok = plot_choice_show(s, call, &c.plots, c.results, c.count, out, err);
    else if (ok && call->values[OPT_JSON] && !curves)
        compare_json(&c, out);
    else if (ok && call->values[OPT_CSV] && !c.per_head && !c.decode)
        ok = compare_csv(&c, out, err);
    else if (ok && !curves)
        compare_table(s, call, &c, out);
    if (ok && c.axis.count && (curves || !call->values[OPT_JSON]) && !call->values[OPT_CSV] &&
        !call->values[OPT_MD])
        ok = vary_show(s, call, c.results, c.count, out, err);
    ok = ok && first_failure(&c, err);
    if (ok)
        tell_comparison(s, &c);
    for (int i = 0; i < c.count; i++)
        result_release(c.results[i]);
    axis_free(&c.axis);
    text_free(&c.sizes);
    return ok;
}
