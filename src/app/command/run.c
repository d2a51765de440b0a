/* run.c -- run: one mechanism, its numbers, JSON and dumps. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/command/command.h"
#include "app/result/views.h"
#include "draw/colour/colour.h"
#include "profile/machine.h"

/* ---- run --dump DIR: output.npy, a .npy for each view, figures.json, flops.json ---- */

/* Makes the folder and those above it. */
static bool dump_folder(const char *folder, Error *err)
{
    char path[4096];

    if (!*folder || strlen(folder) >= sizeof(path))
        return error_set(err, ERR_USAGE, "--dump: expected a folder's name of 1 to %zu bytes",
                         sizeof(path) - 1);
    strcpy(path, folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* the last check reports a failure */
        *slash = '/';
    }
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return true;
    return error_set(err, ERR_FILE, "%s: the folder cannot be made: %s", folder, strerror(errno));
}

static bool write_npy(const Call *call, const char *name, const Tensor *t, Error *err)
{
    const char *folder = call->values[OPT_DUMP];
    char        path[4096];

    if (snprintf(path, sizeof(path), "%s/%s.npy", folder, name) >= (int)sizeof(path))
        return error_set(err, ERR_FILE, "%.200s: the path is too long", folder);
    return call_spares(call, path, err) && input_write_npy(path, t, err);
}

static bool dump_json(const Call *call, const char *name, const Text *json, Error *err)
{
    const char *folder = call->values[OPT_DUMP];
    char        path[4096];

    if (snprintf(path, sizeof(path), "%s/%s.json", folder, name) >= (int)sizeof(path))
        return error_set(err, ERR_FILE, "%.200s: the path is too long", folder);
    return call_spares(call, path, err) && file_write(path, text_str(json), json->length, err);
}

/* The last view of a name is the final one; earlier ones are its iterations. */
static bool is_last(const Run *run, int index)
{
    return run_view(run, run->views[index].name) == &run->views[index];
}

static bool dump_view(const View *view, const Call *call, int64_t limit, Error *err)
{
    Arena *arena = arena_new();
    Tensor tensor;
    bool   ok;

    if (!arena)
        return error_set(err, ERR_NOMEM, "view %s: not enough memory", view->name);
    ok = view_materialise(view, arena, limit, &tensor, err) &&
         write_npy(call, view->name, &tensor, err);
    arena_free(arena);
    return ok;
}

static bool dump_figures(const Run *run, const Call *call, Error *err)
{
    Text text = { 0 };
    Json json = jsonw_to(&text);
    bool ok;

    record_figures_json(run, &json);
    ok = dump_json(call, "figures", &text, err);
    text_free(&text);
    return ok;
}

static bool dump_flops(const Run *run, const Call *call, Error *err)
{
    Flops flops = run_flops(run);
    Text  text = { 0 };
    bool  ok;

    text_addf(&text, "{\"score\": %.17g, \"mixing\": %.17g, \"overhead\": %.17g, "
              "\"position\": %.17g}", flops.score, flops.mix, flops.overhead, flops.position);
    ok = dump_json(call, "flops", &text, err);
    text_free(&text);
    return ok;
}

/* Writes output.npy, the views, figures.json and flops.json of a run. */
static bool dump_result(const Result *result, const Call *call, int64_t limit, Text *messages,
                        Error *err)
{
    const Run *run = result->run;

    if (!dump_folder(call->values[OPT_DUMP], err) || !write_npy(call, "output", &run->out, err) ||
        !dump_flops(run, call, err) || !dump_figures(run, call, err))
        return false;
    for (int i = 0; i < run->view_count; i++) {
        Error refused = ERROR_INIT;

        if (!is_last(run, i) || dump_view(&run->views[i], call, limit, &refused))
            continue;
        if (refused.code != ERR_NOMEM) {
            *err = refused;
            return false;
        }
        text_addf(messages, "%s\n", refused.text);
    }
    return true;
}

/* ---- run --cell: why a query gives a key its weight ---------------------- */

static bool parse_place(const Run *run, const char *text, int64_t *q, int64_t *k, int64_t *head,
                        Error *err)
{
    long long at[3] = { 0 };
    int       used = 0;

    if (sscanf(text, "%lld,%lld%n", &at[0], &at[1], &used) != 2 ||
        (text[used] &&
         (sscanf(text, "%lld,%lld,%lld%n", &at[0], &at[1], &at[2], &used) != 3 || text[used])))
        return error_set(err, ERR_USAGE,
                         "--cell %.40s: expected a query and a key, and a head, "
                         "like 12,3 or 12,3,1",
                         text);
    if (at[0] < 0 || at[0] >= run->n || at[1] < 0 || at[1] >= run->m || at[2] < 0 ||
        at[2] >= run->h)
        return error_set(err, ERR_USAGE,
                         "--cell %.40s: there are queries 0 to %lld, keys 0 to "
                         "%lld and heads 0 to %lld",
                         text, (long long)run->n - 1, (long long)run->m - 1, (long long)run->h - 1);
    *q = at[0];
    *k = at[1];
    *head = at[2];
    return true;
}

/* "window+global" of an allowed cell; false: masked. */
static bool components_of(const Run *run, int64_t head, int64_t q, int64_t k, Text *out)
{
    const View *view = run_view(run, "connectivity");
    bool        allowed = true;
    uint8_t     bits;

    if (!view || !view->support || view_rows(view) != run->n || view_cols(view) != run->m)
        return true;
    bits = pattern_cell(view->support, pattern_per_head(view->support) ? head : 0, q, k, &allowed);
    for (int bit = COMPONENT_WINDOW; allowed && bit <= COMPONENT_LAST; bit <<= 1)
        if (bits & bit)
            text_addf(out, "%s%s", out->length ? "+" : "", cause_name(view, (uint8_t)bit));
    return allowed;
}

static void number(Json *json, const char *name, double value, bool known)
{
    jsonw_key_number(json, name, known ? value : (double)NAN);
}

static void add_place_json(Json *json, const Result *result)
{
    const Record *r = &result->record;

    jsonw_key_string(json, "device", r->device);
    jsonw_key_string(json, "precision", r->precision);
    jsonw_key_string(json, "computed", *r->computed ? r->computed : r->precision);
}

static void cell_write_json(const Result *result, const CellWhy *why, int64_t q, int64_t k,
                       int64_t head, bool allowed, const char *components, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    number(&json, "query", (double)q, true);
    number(&json, "key", (double)k, true);
    number(&json, "head", (double)head, true);
    jsonw_key_bool(&json, "allowed", allowed);
    jsonw_key_string(&json, "components", components);
    number(&json, "weight", why->weight, why->weighs);
    number(&json, "log_below_top", why->below, why->softmax);
    number(&json, "score", why->score, why->scored);
    jsonw_key_bool(&json, "own_score", why->own_score);
    number(&json, "exact_weight", why->exact, why->scored);
    number(&json, "exact_rank", (double)why->exact_rank, why->scored);
    number(&json, "exact_keys", (double)why->exact_of, why->scored);
    number(&json, "share_of_output", why->share, why->adds);
    number(&json, "length", why->length, why->adds);
    number(&json, "output_length", why->output, why->adds);
    number(&json, "evicted_after", (double)why->evicted_after, why->evicted_after >= 0);
    add_place_json(&json, result);
    jsonw_close(&json, '}');
    text_add(out, "\n");
}

/* Why a pair is not computed: its key left the cache before, or the pattern has no such cell. */
static void masked_line(const CellWhy *why, Text *out)
{
    if (why->evicted_after >= 0)
        text_addf(out, "masked     evicted: the key left the cache after query %lld\n",
                  (long long)why->evicted_after);
    else
        text_add(out, "masked     this pair is not computed\n");
}

/* Explains why query Q gives key K its weight; place: "Q,K" or "Q,K,HEAD". */
static bool cell_write(Result *result, const char *place, bool as_json, Text *out, Error *err)
{
    int64_t     q = 0, k = 0, head = 0;
    Text        components = { 0 };
    CellReader *reader = NULL;
    CellWhy     why;
    bool        allowed, ok;

    if (!parse_place(result->run, place, &q, &k, &head, err))
        return false;
    allowed = components_of(result->run, head, q, k, &components);
    reader = cell_reader_new(result, err);
    ok = reader && cell_read(reader, head, q, k, &why, err);
    if (ok && as_json) {
        cell_write_json(result, &why, q, k, head, allowed, text_str(&components), out);
    } else if (ok) {
        text_addf(out, "%s  query %lld, key %lld, head %lld\n", result->run->mechanism->id,
                  (long long)q, (long long)k, (long long)head);
        if (!allowed)
            masked_line(&why, out);
        else if (why.weighs)
            text_addf(out, "weight     %.5g\n", why.weight);
        if (components.length)
            text_addf(out, "component  %s\n", text_str(&components));
        cell_describe(&why, out);
        if (request_gpu(&result->request)) {
            text_add(out, "computed   ");
            cell_place(result, out);
            text_add(out, "\n");
        }
    }
    cell_reader_free(reader);
    text_free(&components);
    return ok;
}

/* ---- the command ------------------------------------------------------------ */

static bool check_run(const Result *result, Error *err)
{
    if (result->run->err.code == ERR_NONE)
        return true;
    *err = result->run->err;
    return false;
}

static void write_result(const Result *result, const Call *call, Text *out)
{
    Json json = jsonw_to(out);

    if (!call->values[OPT_JSON]) {
        record_text(&result->record, out);
        return;
    }
    record_json(&result->record, &json);
    text_add(out, "\n");
}

static void tell_run(Session *s, const Result *result)
{
    Text text = { 0 };
    Json json = jsonw_to(&text);

    if (!session_listens(s))
        return;
    jsonw_open(&json, '{');
    jsonw_key_string(&json, "mechanism", result->record.mechanism);
    jsonw_key(&json, "record");
    record_json(&result->record, &json);
    jsonw_close(&json, '}');
    session_tell(s, "run", &text);
    text_free(&text);
}

static bool dump(const Result *result, const Call *call, int64_t limit, Error *err)
{
    Text refused = { 0 };
    bool ok = dump_result(result, call, limit, &refused, err);

    if (ok && refused.length)
        ok = error_set(err, ERR_NOMEM, "%s: written, but without: %.400s",
                       call->values[OPT_DUMP], text_str(&refused));
    text_free(&refused);
    return ok;
}

bool command_run_mechanism(Session *s, const Call *call, Text *out, Error *err)
{
    const char *cell = call->values[OPT_CELL];
    Request     request;
    Result     *result;
    bool        ok;

    if (call->word_count != 1)
        return error_set(err, ERR_USAGE, "run needs a mechanism (attnscope list shows them)");
    if (!call_load_input(s, call, err) ||
        !call_request(s, call, call->words[0], &request, err) ||
        !call_refuse_stack(call, &request, err))
        return false;
    /* A dump needs values only, so there is no timed run. */
    request.measure = (!call->values[OPT_DUMP] && !cell) || request.repeat > 0;
    request.quality = call->values[OPT_QUALITY] || request.seeds > 1 || request.quality_rows;
    /* Fails before the run, which may take long. */
    result = call->values[OPT_DUMP] && !dump_folder(call->values[OPT_DUMP], err)
                 ? NULL
                 : session_run(s, &request, err);
    ok = result != NULL;
    if (ok && !cell && (call->values[OPT_JSON] || result->run->err.code == ERR_NONE))
        write_result(result, call, out);
    ok = ok && check_run(result, err);
    if (ok && request.measure && result->record.status == RECORD_OOM) /* a timed run, later */
        ok = error_set(err, ERR_NOMEM, "%s", result->record.message);
    ok = ok && (!cell || cell_write(result, cell, call->values[OPT_JSON] != NULL, out, err));
    if (ok && call->values[OPT_DUMP])
        ok = dump(result, call, request.memory_limit ? request.memory_limit : machine_share(), err);
    if (ok)
        tell_run(s, result);
    result_release(result);
    request_free(&request);
    return ok;
}
