/* step.c -- step: the algorithm of a mechanism, stage by stage: as text, as one figure of all
 * stages, or as JSON.  On a terminal the explorer shows it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/result/steps.h"
#include "app/result/views.h"

#define TEXT_WIDTH 78
#define STRIP_WIDTH 64 /* tokens of a line */
#define STRIP_MOST (8 * STRIP_WIDTH)
#define TEXT_LINES 24 /* of one picture among several */

/* ---- text ------------------------------------------------------------------- */

/* Words of text in lines of TEXT_WIDTH, each after the indent. */
static void add_paragraph(Text *out, const char *text, const char *indent)
{
    size_t column = 0;

    while (*text) {
        size_t length = strcspn(text, " \n");

        if (column && column + 1 + length > TEXT_WIDTH) {
            text_add(out, "\n");
            column = 0;
        }
        text_add(out, column ? " " : indent);
        text_add_bytes(out, text, length);
        column += length + 1;
        text += length;
        if (*text == '\n') {
            text_add(out, "\n");
            column = 0;
        }
        text += *text != '\0';
        text += strspn(text, " ");
    }
    if (column)
        text_add(out, "\n");
}

static bool add_picture(Result *result, int index, const Call *call, const PictureOptions *o,
                        bool alone, Text *out, Error *err)
{
    TextOptions text;
    Figure     *figure;
    bool        ok;

    if (!call_text_options(call, &text, err))
        return false;
    text.height = alone ? 0 : TEXT_LINES;
    figure = steps_figure(result, &index, 1, NULL, o, err);
    ok = figure && figure_text(figure, &text, out, err);
    figure_free(figure);
    return ok;
}

/* "sorted AAABBC...": tokens [from, to) of a line. */
static void add_strip_line(Text *out, const char *name, const Strip *strip, const int32_t *values,
                           int64_t from, int64_t to)
{
    text_addf(out, "  %-9s", name);
    for (int64_t i = from; i < to; i++)
        text_addf(out, "%c", values ? strip_letter(values[i]) : strip_border(strip, i));
    text_add(out, "\n");
}

/* Prints lines below each other, as many as the tokens need. */
static void add_strip_lines(const Strip *strip, Text *out)
{
    int64_t last = strip->n < STRIP_MOST ? strip->n : STRIP_MOST;

    for (int64_t from = 0, to; from < last; from = to) {
        to = from + STRIP_WIDTH < last ? from + STRIP_WIDTH : last;
        if (last > STRIP_WIDTH)
            text_addf(out, "%s  tokens %lld to %lld\n", from ? "\n" : "", (long long)from,
                      (long long)to - 1);
        add_strip_line(out, "position", strip, strip->original, from, to);
        if (strip->sorted)
            add_strip_line(out, "sorted", strip, strip->sorted, from, to);
        if (strip->chunk)
            add_strip_line(out, "chunks", strip, NULL, from, to);
    }
    if (last < strip->n)
        text_addf(out, "  the first %lld of %lld tokens\n", (long long)last,
                  (long long)strip->n);
}

/* Prints the tokens by position and sorted, where the step made, sorted or cut categories, or uses
 * another round's order. */
static void add_strip(const Step *step, int64_t head, Text *out)
{
    const View *categories = step_categories(step);
    const View *order = result_order_source(step->result), *chunks = step_chunks(step);
    Strip       strip;

    if (!categories || (categories->step != step->index && order->step != step->index &&
                        !(chunks && chunks->step == step->index) &&
                        !(step_round(step) && step->fresh)) ||
        !strip_read(step, head, &strip))
        return;
    text_add(out, "\n");
    add_strip_lines(&strip, out);
    strip_free(&strip);
}

/* Prints the whole curve under the last step that it belongs to. */
static bool add_curves(const Step *step, const Call *call, const PictureOptions *o, Text *out,
                       Error *err)
{
    StepCurves  curves = { 0 };
    Plot       *plot = step_last_plot(step);
    Figure     *figure;
    TextOptions text;
    bool        ok;

    if (steps_watched(step->result, step->index, step->index + 1) &&
        !steps_watched(step->result, step->index + 1, step->count))
        curves.trace = steps_watched(step->result, step->index, step->index + 1);
    if (plot)
        curves.last[curves.count++] = step->index;
    plot_free(plot);
    if (!curves.trace && !curves.count)
        return true;
    figure = steps_figure(step->result, NULL, 0, &curves, o, err);
    ok = figure && call_text_options(call, &text, err);
    if (ok) {
        text.height = TEXT_LINES;
        text_add(out, "\n");
        ok = figure_text(figure, &text, out, err);
    }
    figure_free(figure);
    return ok;
}

static bool add_step(Result *result, int index, const Call *call, const PictureOptions *o,
                     bool alone, Text *out, Error *err)
{
    Step step;
    Text words = { 0 };
    char name[64];
    bool ok = true;

    result_step(result, index, &step);
    step_name(&step, name, sizeof(name));
    text_addf(out, "step %d of %d: %s\n", index + 1, step.count, name);
    step_describe(&step, &words);
    add_paragraph(out, text_str(&words), "  ");
    text_free(&words);
    add_strip(&step, o->head < 0 ? 0 : o->head, out);
    if (step.shown && (step.fresh || alone)) {
        text_add(out, "\n");
        ok = add_picture(result, index, call, o, alone, out, err);
    }
    ok = ok && add_curves(&step, call, o, out, err);
    text_add(out, "\n");
    return ok;
}

/* ---- JSON ------------------------------------------------------------------- */

static void json_views(const Step *step, Json *json)
{
    const View *views[RUN_MAX_VIEWS];
    int         count = step_views(step, views, RUN_MAX_VIEWS);

    jsonw_open(json, '[');
    for (int i = 0; i < count; i++)
        jsonw_string(json, views[i]->name);
    jsonw_close(json, ']');
}

static void json_traces(const Step *step, Json *json)
{
    const Run *run = step->run;

    jsonw_open(json, '{');
    for (int i = 0; i < run->trace_count; i++)
        if (run->traces[i].step == step->at)
            jsonw_key_number(json, run->traces[i].name, run->traces[i].value);
    jsonw_close(json, '}');
}

/* Fields of replay steps only. */
static void json_replay(const Step *step, Json *json)
{
    const View *view;
    double      value;

    if (step->run == step->result->run)
        return;
    jsonw_key_string(json, "said", step->stage->said ? step->stage->said : "");
    jsonw_key_number(json, step->stage->at_name ? step->stage->at_name : "at", step->stage->at);
    for (int x = 0; (view = step_watched(step, x, &value)); x++) {
        if (!x) {
            jsonw_key_int(json, "query", step->row);
        }
        jsonw_key_number(json, view->name, value);
    }
}

/* The share of the strongest keys that a round found, where it is known. */
static void json_round(const Step *step, Json *json)
{
    Result       *result = step->result;
    const Missed *missed = result_missed_soon(result, result->request.keys);

    for (int r = 0; missed && step->run == result->run && r < missed->rounds; r++) {
        int64_t at = missed->h * missed->rounds + r;

        if (missed->round_step[r] != step->at)
            continue;
        jsonw_key_number(json, "found_alone", missed->alone[at]);
        jsonw_key_number(json, "found_together", missed->together[at]);
    }
}

static void json_step(const Step *step, Json *json)
{
    jsonw_open(json, '{');
    jsonw_key_int(json, "step", step->index + 1);
    jsonw_key_string(json, "stage", step->stage->name);
    jsonw_key(json, "iteration");
    if (step->stage->iteration >= 0)
        jsonw_int(json, step->stage->iteration);
    else
        jsonw_raw(json, "null");
    jsonw_key_string(json, "note", step->note);
    jsonw_key_number(json, "flops", flops_total(step->stage->flops));
    jsonw_key(json, "views");
    json_views(step, json);
    jsonw_key(json, "traces");
    json_traces(step, json);
    json_replay(step, json);
    json_round(step, json);
    jsonw_close(json, '}');
}

static void json_steps(Result *result, int from, int to, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    jsonw_key_string(&json, "mechanism", result->request.mechanism);
    jsonw_key_open(&json, "steps", '[');
    for (int i = from; i < to; i++) {
        Step step;

        result_step(result, i, &step);
        json_step(&step, &json);
    }
    jsonw_close(&json, ']');
    jsonw_close(&json, '}');
    text_add(out, "\n");
}

/* ---- the command ------------------------------------------------------------ */

static bool show_steps(Session *s, const Call *call, Result *result, Text *out, Error *err)
{
    PictureOptions o;
    PngOptions     png;
    int            from, to;
    bool           ok;

    if (!call_picture_options(s, call, 0, &o, err) ||
        !result_steps_at(result, call->values[OPT_AT], &from, &to, err))
        return false;
    if (o.head >= result->run->h)
        return error_set(err, ERR_USAGE, "head %lld: there are %lld (0..%lld)", (long long)o.head,
                         (long long)result->run->h, (long long)result->run->h - 1);
    ok = !call->file_count || call_png_options(call, &png, err);
    for (int i = 0; ok && i < call->file_count; i++)
        ok = steps_save(result, from, to, &o, call->values[OPT_FRAME], call->line, &png,
                        call->files[i], err);
    if (call->file_count)
        return ok;
    if (call->values[OPT_JSON]) {
        json_steps(result, from, to, out);
        return true;
    }
    for (int i = from; ok && i < to; i++)
        ok = add_step(result, i, call, &o, to - from == 1, out, err);
    return ok;
}

bool command_step(Session *s, const Call *call, Text *out, Error *err)
{
    Request request;
    Result *result;
    bool    ok;

    if (call->word_count != 1)
        return error_set(err, ERR_USAGE, "step needs a mechanism, for example "
                                         "attnscope step reformer -n 64 -p block=8");
    if (!call_check_params(call, err) || !call_load_input(s, call, err) ||
        !call_request(s, call, call->words[0], &request, err))
        return false;
    result = session_run_ok(s, &request, err);
    request_free(&request);
    ok = result != NULL;
    if (ok && call->values[OPT_KEYS])
        ok = missed_is_offered(result->run)
                 ? result_missed(result, result->request.keys, result->run->threads, NULL, err) !=
                       NULL
                 : error_set(err, ERR_UNSUPPORTED, "--keys: %s has no pairs of queries and keys",
                             result->run->mechanism->id);
    ok = ok && show_steps(s, call, result, out, err);
    result_release(result);
    return ok;
}
