/* reach.c -- reach: the receptive field over depth, in numbers. */
#include "app/command/command.h"
#include "app/session/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the stack ----------------------------------------------------------------- */

/* Every word is a layer, bottom first; a word may be a stack itself. */
static bool stack_request(Session *s, const Call *call, Request *out, Error *err)
{
    Request *top;

    if (!call_request(s, call, call->words[0], out, err))
        return false;
    for (int i = 1; i < call->word_count; i++) {
        for (top = out; top->above; top = top->above)
            ;
        top->above = calloc(1, sizeof(*top->above));
        if (!top->above || !call_request(s, call, call->words[i], top->above, err)) {
            if (!top->above)
                error_set(err, ERR_NOMEM, "not enough memory for a layer");
            request_free(out);
            return false;
        }
    }
    return true;
}

static bool reach_options(const Call *call, ReachOptions *out, Error *err)
{
    int64_t layers = 0;
    bool    ok = call_int(call, OPT_LAYERS, 1, REACH_MOST, &layers, err);

    *out = (ReachOptions){ .strict = call->values[OPT_NORESIDUAL] != NULL, .layers = (int)layers };
    return ok;
}

/* ---- in words -------------------------------------------------------------------- */

/* The depth from which nothing changes any more. */
static int last_depth(const ReachSummary *r)
{
    return r->fixed >= 0 ? r->fixed : r->depth;
}

static double share(const ReachSummary *r, int64_t pairs)
{
    return (double)pairs / (double)r->possible;
}

static double mean_tokens(const ReachSummary *r, int depth)
{
    return (double)r->at[depth].pairs / (double)r->tokens;
}

/* "99.6 %"; digits enough to tell a share below 1 from all. */
static const char *percent_of(double part, char text[32])
{
    int digits = 4;

    do
        snprintf(text, 32, "%.*g %%", digits, 100 * part);
    while (part < 1 && !strcmp(text, "100 %") && ++digits < 16);
    return text;
}

static void depth_table(const ReachSummary *r, bool strict, bool exact, TableStyle style, Text *out)
{
    static const char *const heads[] = { "layers",       "new pairs",   "pairs",      "share",
                                         "least tokens", "mean tokens", "most tokens" };
    Table                    t = { .cols = strict ? 6 : 7 };
    char                     percent[32];

    for (int c = 0; c < 7; c++)
        if (c != 1 || !strict)
            table_cell(&t, "%s", heads[c]);
    for (int depth = 0; depth <= last_depth(r); depth++) {
        const ReachDepth *at = &r->at[depth];

        table_cell(&t, "%d", depth);
        if (!strict)
            table_cell(&t, "%lld", (long long)(at->pairs - (depth ? at[-1].pairs : 0)));
        table_cell(&t, "%lld", (long long)at->pairs);
        if (exact)
            table_cell(&t, "%.9g", share(r, at->pairs));
        else
            table_cell(&t, "%s", percent_of(share(r, at->pairs), percent));
        table_cell(&t, "%lld", (long long)at->least);
        table_cell(&t, exact ? "%.9g" : "%.6g", mean_tokens(r, depth));
        table_cell(&t, "%lld", (long long)at->most);
    }
    table_write(&t, style, out);
    table_free(&t);
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static void reach_verdict(const ReachSummary *r, bool strict, bool causal, Text *out)
{
    const char *pairs = causal ? "every query is reached by every token up to itself"
                               : "every pair of tokens is connected";
    char        reached[32];

    percent_of(share(r, r->at[r->depth].pairs), reached);
    if (r->full >= 0)
        text_addf(out, "%s after %d layer%s%s\n", pairs, r->full, plural(r->full),
                  strict ? ", by walks of exactly so many" : "");
    else if (r->fixed >= 0)
        text_addf(out,
                  "never: after %d layer%s nothing changes any more, and %s of the pairs are "
                  "reached\n",
                  r->fixed, plural(r->fixed), reached);
    else
        text_addf(out,
                  "not within %d layer%s: %s of the pairs are reached (--layers looks "
                  "further)\n",
                  r->depth, plural(r->depth), reached);
    if (!strict && r->full < 0 && r->fixed < 0)
        text_addf(out, "mean distance of the pairs reached within %d layer%s: %.4g layer%s\n",
                  r->depth, plural(r->depth), r->mean, r->mean == 1 ? "" : "s");
    else if (!strict)
        text_addf(out, "mean distance between two tokens, where there is a path: %.4g layer%s\n",
                  r->mean, r->mean == 1 ? "" : "s");
}

static void reach_text(const Result *result, const ReachSummary *r, bool strict, Text *out)
{
    const Run *run = result->run;

    request_text(&result->request, out);
    text_addf(out, "  n=%lld heads=%lld%s%s seed %llu, %s\n\n", (long long)run->n,
              (long long)run->h, run->h > 1 ? " (united)" : "", run->causal ? " causal" : "",
              (unsigned long long)run->seed,
              strict ? "no residual connections" : "with residual connections");
    depth_table(r, strict, false, TABLE_TEXT, out);
    text_add(out, "\n");
    reach_verdict(r, strict, run->causal, out);
    if (result_reach_by_content(result))
        text_add(out, "the content chooses the pairs: this is of this input and this seed\n");
}

/* ---- for programs ------------------------------------------------------------------ */

static void json_int_or_null(Json *j, const char *key, int value)
{
    jsonw_key(j, key);
    if (value < 0)
        jsonw_null(j);
    else
        jsonw_int(j, value);
}

static void json_depth(Json *j, const ReachSummary *r, int depth)
{
    const ReachDepth *at = &r->at[depth];

    jsonw_open(j, '{');
    jsonw_key_int(j, "layers", depth);
    jsonw_key_int(j, "pairs", at->pairs);
    jsonw_key_number(j, "share", share(r, at->pairs));
    jsonw_key_int(j, "least", at->least);
    jsonw_key_number(j, "mean", mean_tokens(r, depth));
    jsonw_key_int(j, "most", at->most);
    jsonw_close(j, '}');
}

static void write_json(const Result *result, const ReachSummary *r, bool strict, Text *out)
{
    Json j = jsonw_to(out);
    Text stack = { 0 };

    request_text(&result->request, &stack);
    jsonw_open(&j, '{');
    jsonw_key_string(&j, "stack", text_str(&stack));
    text_free(&stack);
    jsonw_key_int(&j, "n", r->tokens);
    jsonw_key_int(&j, "heads", result->run->h);
    jsonw_key_bool(&j, "causal", result->run->causal);
    jsonw_key_bool(&j, "residual", !strict);
    jsonw_key_bool(&j, "by_content", result_reach_by_content(result));
    jsonw_key_int(&j, "layers", r->depth);
    jsonw_key_int(&j, "possible", r->possible);
    json_int_or_null(&j, "full", r->full);
    json_int_or_null(&j, "fixed", r->fixed);
    jsonw_key(&j, "mean_hops");
    if (strict)
        jsonw_null(&j);
    else
        jsonw_number(&j, r->mean);
    jsonw_key_open(&j, "depths", '[');
    for (int depth = 0; depth <= last_depth(r); depth++)
        json_depth(&j, r, depth);
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    text_add(out, "\n");
}

static void write_any(const Call *call, const Result *result, const ReachSummary *r, bool strict,
                      Text *out)
{
    if (call->values[OPT_JSON])
        write_json(result, r, strict, out);
    else if (call->values[OPT_CSV] || call->values[OPT_MD])
        depth_table(r, strict, call->values[OPT_CSV] != NULL, call_style(call), out);
    else
        reach_text(result, r, strict, out);
}

/* ---- the command -------------------------------------------------------------------- */

/* Checked before a run that may take long. */
static bool can_be_followed(const Request *request, Error *err)
{
    for (; request; request = request->above) {
        const Mechanism *m = mechanism_find(request->mechanism);

        if (m && !reach_is_offered(m))
            return error_set(err, ERR_UNSUPPORTED, "%s has no set of allowed pairs, so nothing to "
                             "follow from layer to layer", m->id);
    }
    return true;
}

bool command_reach(Session *s, const Call *call, Text *out, Error *err)
{
    Request       request;
    ReachOptions  options;
    ReachSummary *summary = calloc(1, sizeof(*summary));
    Result       *result = NULL;
    bool          ok;

    ok = summary ? reach_options(call, &options, err)
                 : error_set(err, ERR_NOMEM, "not enough memory");
    if (ok && !call->word_count)
        ok = error_set(err, ERR_USAGE,
                       "reach needs at least one mechanism, for example "
                       "attnscope reach bigbird -n 1024 --layers 6");
    ok = ok && call_check_params(call, err) && call_load_input(s, call, err) &&
         stack_request(s, call, &request, err);
    if (ok) {
        result = can_be_followed(&request, err) ? session_run(s, &request, err) : NULL;
        request_free(&request);
        ok = result &&
             result_reach_summary(result, &options, session_threads(s, 0), NULL, summary, err);
    }
    if (ok)
        write_any(call, result, summary, options.strict, out);
    result_release(result);
    free(summary);
    return ok;
}
