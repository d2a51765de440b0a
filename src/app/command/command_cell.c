/* command_cell.c -- run --cell: why a query gives a key its weight, as text or JSON. */
#include "app/command/command_parts.h"

#include <stdio.h>

#include "app/result/cell.h"
#include "draw/colour/colour.h"

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
    jsonw_key(json, name);
    if (known)
        jsonw_number(json, value);
    else
        jsonw_null(json);
}

static void add_place_json(Json *json, const Result *result)
{
    const Record *r = &result->record;

    jsonw_key(json, "device"), jsonw_string(json, r->device);
    jsonw_key(json, "precision"), jsonw_string(json, r->precision);
    jsonw_key(json, "computed"), jsonw_string(json, *r->computed ? r->computed : r->precision);
}

static void write_json(const Result *result, const CellWhy *why, int64_t q, int64_t k,
                       int64_t head, bool allowed, const char *components, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    number(&json, "query", (double)q, true);
    number(&json, "key", (double)k, true);
    number(&json, "head", (double)head, true);
    jsonw_key(&json, "allowed");
    jsonw_bool(&json, allowed);
    jsonw_key(&json, "components");
    jsonw_string(&json, components);
    number(&json, "weight", why->weight, why->weighs);
    number(&json, "log_below_top", why->below, why->softmax);
    number(&json, "score", why->score, why->scored);
    jsonw_key(&json, "own_score");
    jsonw_bool(&json, why->own_score);
    number(&json, "exact_weight", why->exact, why->scored);
    number(&json, "exact_rank", (double)why->exact_rank, why->scored);
    number(&json, "exact_keys", (double)why->exact_of, why->scored);
    number(&json, "share_of_output", why->share, why->adds);
    number(&json, "length", why->length, why->adds);
    number(&json, "output_length", why->output, why->adds);
    add_place_json(&json, result);
    jsonw_close(&json, '}');
    text_add(out, "\n");
}

bool cell_write(Result *result, const char *place, bool as_json, Text *out, Error *err)
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
        write_json(result, &why, q, k, head, allowed, text_str(&components), out);
    } else if (ok) {
        text_addf(out, "%s  query %lld, key %lld, head %lld\n", result->run->mechanism->id,
                  (long long)q, (long long)k, (long long)head);
        if (!allowed)
            text_add(out, "masked     this pair is not computed\n");
        else if (why.weighs)
            text_addf(out, "weight     %.6g\n", why.weight);
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
