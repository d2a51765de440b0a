/* command_vary.c -- compare --vary as plots and as an answer: error beside cost over one
 * parameter, the smallest value that keeps so much. */
#include "app/command/command_vary.h"

#include <math.h>
#include <string.h>

#include "app/command/command_plot.h"

#define USUAL_PLOT "error,flops"

static bool make_look(const Call *call, SweepLook *look, SweepGoal *goal, Error *err)
{
    const char *keep = call->values[OPT_KEEP], *plot = call->values[OPT_PLOT];

    *look = (SweepLook){ .now = (double)NAN, .cursor = -1, .title = call->values[OPT_TITLE],
                         .caption = call->values[OPT_CAPTION] };
    if (keep && !goal_parse(keep, goal, err))
        return error_prefix(err, "--keep");
    look->goal = keep ? goal : NULL;
    if (!plot && keep) /* what was asked for must be seen */
        plot = goal->quantity == SWEEP_MASS ? "mass,flops" : USUAL_PLOT;
    return quantities_parse(plot ? plot : USUAL_PLOT, look->quantities, &look->count, err) ||
           error_prefix(err, "--plot with --vary");
}

bool vary_check_options(const Call *call, Error *err)
{
    SweepLook look;
    SweepGoal goal;
    bool      file = call->values[OPT_OUTPUT] != NULL, plot = file || call->values[OPT_PLOT];

    if (plot && !(file && call->values[OPT_KEEP]) && !plot_refuse_formats(call, err))
        return false;
    return make_look(call, &look, &goal, err);
}

static bool add_words(Session *s, const Call *call, Sweep *sweep, Error *err)
{
    for (int i = 0; i < call->word_count; i++) {
        Request request;
        bool    ok;

        if (!call_request(s, call, call->words[i], &request, err))
            return false;
        if (!call_refuse_stack(call, &request, err))
            return false;
        ok = sweep_add(sweep, &request, err);
        request_free(&request);
        if (!ok)
            return false;
    }
    return true;
}

/* The lines of the call's words; the baseline that nobody named takes no -p. */
static bool open_sweep(Session *s, const Call *call, const SweepLook *look, Sweep *sweep,
                       Error *err)
{
    Call    plain = *call;
    Request exact;
    bool    ok;

    *sweep = (Sweep){ .count = 0 };
    plain.param_count = 0;
    if (!call_request(s, &plain, mechanism_at(0)->id, &exact, err))
        return false;
    ok = sweep_open(sweep, call->values[OPT_VARY], &exact, err) &&
         add_words(s, call, sweep, err) && sweep_check(sweep, err);
    request_free(&exact);
    for (int k = 0; k < look->count; k++)
        sweep->measure = sweep->measure || quantity_is_measured(look->quantities[k]);
    return ok;
}

/* ---- showing ---------------------------------------------------------------- */

static bool draw(Session *s, const Call *call, const Sweep *sweep, const SweepLook *look,
                 Text *out, Error *err)
{
    Result        *samples[SWEEP_LINES];
    SweepPicture   picture;
    PictureOptions options;
    int            count = 0;
    bool           ok;

    for (int i = 0; i < sweep->count; i++)
        if (sweep->lines[i].sample && !sweep->lines[i].baseline)
            samples[count++] = sweep->lines[i].sample;
    if (!sweep_picture(sweep, look, &picture, err))
        return false;
    ok = call_picture_options(s, call, picture.figure->count, &options, err);
    picture.figure->rows = options.rows;
    picture.figure->cols = options.cols;
    ok = ok && plot_figure_write(s, call, picture.figure, samples, count, out, err);
    sweep_picture_free(&picture);
    return ok;
}

static void answer_row(const Sweep *sweep, int line, const SweepGoal *goal, Table *t)
{
    int    at = sweep_smallest(sweep, line, goal);
    Number kept = at < 0 ? NUMBER_NONE : sweep_at(sweep, line, at)->value[goal->quantity];

    table_cell(t, "%s", sweep->lines[line].name);
    table_cell(t, "%s", sweep->vary.name);
    table_cell(t, "%s", at < 0 ? "none" : sweep->vary.values[at]);
    if (kept.valid)
        table_cell(t, "%.6g", kept.value);
    else
        table_cell(t, "n/a");
}

static void answer_table(const Sweep *sweep, const SweepGoal *goal, TableStyle style, Text *out)
{
    Table t = { .cols = 4 };

    table_cell(&t, "mechanism");
    table_cell(&t, "parameter");
    table_cell(&t, "smallest");
    table_cell(&t, "%s", quantity_name(goal->quantity));
    for (int i = 0; i < sweep->count; i++)
        if (!sweep->lines[i].fixed)
            answer_row(sweep, i, goal, &t);
    table_write(&t, style, out);
    table_free(&t);
}

static void answer_json(const Sweep *sweep, const SweepGoal *goal, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (int i = 0; i < sweep->count; i++) {
        int at = sweep->lines[i].fixed ? -1 : sweep_smallest(sweep, i, goal);

        if (sweep->lines[i].fixed)
            continue;
        jsonw_open(&json, '{');
        jsonw_key(&json, "mechanism"), jsonw_string(&json, sweep->lines[i].name);
        jsonw_key(&json, "parameter"), jsonw_string(&json, sweep->vary.name);
        jsonw_key(&json, "smallest");
        jsonw_raw(&json, at < 0 ? "null" : sweep->vary.values[at]);
        jsonw_key(&json, quantity_name(goal->quantity));
        if (at < 0)
            jsonw_null(&json);
        else
            jsonw_number(&json, sweep_at(sweep, i, at)->value[goal->quantity].value);
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

static void answer(const Call *call, const Sweep *sweep, const SweepGoal *goal, Text *out)
{
    if (call->values[OPT_JSON]) {
        answer_json(sweep, goal, out);
    } else if (call->values[OPT_CSV] || call->values[OPT_MD]) {
        answer_table(sweep, goal, call->values[OPT_CSV] ? TABLE_CSV : TABLE_MARKDOWN, out);
    } else {
        for (int i = 0; i < sweep->count; i++) {
            if (sweep->lines[i].fixed)
                continue;
            text_addf(out, "%s: ", sweep->lines[i].name);
            sweep_answer(sweep, i, goal, out);
            text_add(out, "\n");
        }
    }
}

bool vary_draws(const Call *call)
{
    return call->values[OPT_VARY] && (call->values[OPT_OUTPUT] || call->values[OPT_KEEP]);
}

bool vary_draw(Session *s, const Call *call, Text *out, Error *err)
{
    Sweep     sweep = { .count = 0 };
    SweepLook look;
    SweepGoal goal;
    bool      ok;

    ok = make_look(call, &look, &goal, err) && call_load_input(s, call, err) &&
         call_check_params(call, err) && open_sweep(s, call, &look, &sweep, err) &&
         sweep_run(&sweep, s, err);
    if (ok && look.goal && !(call->values[OPT_OUTPUT] && !strcmp(call->values[OPT_OUTPUT], "-")))
        answer(call, &sweep, &goal, out);
    if (ok && (call->values[OPT_OUTPUT] || call->values[OPT_PLOT]))
        ok = draw(s, call, &sweep, &look, out, err);
    sweep_free(&sweep);
    return ok;
}

/* Results stand in the order of the sweep's points. */
bool vary_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
               Error *err)
{
    Sweep     sweep = { .count = 0 };
    SweepLook look;
    SweepGoal goal;
    int       line, point;
    bool      ok = make_look(call, &look, &goal, err) &&
              open_sweep(s, call, &look, &sweep, err);

    for (int i = 0; ok && i < count && sweep_next(&sweep, &line, &point); i++)
        sweep_take(&sweep, line, point, results[i]);
    if (ok) {
        text_add(out, "\n");
        ok = draw(s, call, &sweep, &look, out, err);
    }
    sweep_free(&sweep);
    return ok;
}
