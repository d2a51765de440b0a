/* compare_plots.c -- compare --plot and --vary: what was measured as plots; see command.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/command/command.h"
#include "app/figure/plots.h"
#include "app/study/budget.h"

bool plot_choice_parse(const char *text, PlotChoice *out, Error *err)
{
    *out = (PlotChoice){ .count = 0 };
    while (*text) {
        size_t   length = strcspn(text, ",");
        char     name[48];
        PlotKind kind;

        snprintf(name, sizeof(name), "%.*s", (int)length, text);
        if (!strcmp(name, SCALING_WORD))
            return error_set(err, ERR_USAGE,
                             "--plot " SCALING_WORD " stands alone: it measures "
                             "at lengths of its own");
        if (!plot_parse(name, &kind, err))
            return error_prefix(err, "--plot");
        for (int i = 0; i < out->count; i++)
            if (out->kinds[i] == kind)
                return error_set(err, ERR_USAGE, "--plot: %s stands there twice", name);
        out->kinds[out->count++] = kind;
        out->ceilings = out->ceilings || plot_needs(kind) & NEEDS_CEILINGS;
        text += length + (text[length] == ',');
    }
    return out->count || error_set(err, ERR_USAGE, "--plot needs a name, as in --plot time");
}

bool plot_choice_ask(const PlotChoice *choice, Request *request, Error *err)
{
    Error own = ERROR_INIT;

    for (int k = 0; k < choice->count; k++) {
        char word[64];

        snprintf(word, sizeof(word), "plot(%s)", plot_name(choice->kinds[k]));
        request_for_plot(request, word, &own);
    }
    if (own.code != ERR_NONE)
        *err = own;
    return own.code == ERR_NONE;
}

bool plot_refuse_formats(const Call *call, Error *err)
{
    if (call->values[OPT_CSV] || call->values[OPT_MD])
        return error_set(err, ERR_USAGE,
                         "a plot has no --csv or --md: --json prints its numbers, and without "
                         "--plot and -o they come as these");
    return !(call->values[OPT_JSON] && call_to_stdout(call)) ||
           error_set(err, ERR_USAGE, "standard output has either the figure or --json: "
                     "name a file with -o");
}

/* Draws the figure; with --json its numbers are printed, unless that is --keep's answer, and it is
 * drawn into files only. */
static bool write_plots(const Call *call, Figure *figure, Result *const *results, int count,
                        Text *out, Error *err)
{
    if (!call->values[OPT_JSON])
        return call_write_figure(call, figure, results, count, out, err);
    if (call->file_count && !call_write_figure(call, figure, results, count, out, err))
        return false;
    return call->values[OPT_KEEP] || figure_numbers_json(figure, out, err);
}

bool plot_choice_show(Session *s, const Call *call, const PlotChoice *choice,
                      Result *const *results, int count, Text *out, Error *err)
{
    PanelChoice   *panels = calloc((size_t)(choice->count * count), sizeof(*panels));
    char           words[PLOT_KINDS][64];
    PictureOptions options;
    Figure        *figure = NULL;
    bool           ok;

    if (!panels)
        return error_set(err, ERR_NOMEM, "not enough memory for plots");
    for (int k = 0; k < choice->count; k++) {
        snprintf(words[k], sizeof(words[k]), "plot(%s)", plot_name(choice->kinds[k]));
        for (int i = 0; i < count; i++)
            panels[k * count + i] =
                (PanelChoice){ .result = results[i], .spec = panel_spec(words[k]), .joins = i > 0 };
    }
    ok = call_picture_options(s, call, choice->count, &options, err);
    if (ok && choice->ceilings) {
        options.ceilings =
            session_ceilings(s, results[0]->request.ops, results[0]->request.threads, err);
        ok = options.ceilings != NULL;
    }
    if (ok)
        figure = picture_of_panels(panels, choice->count * count, &options, err);
    ok = figure && write_plots(call, figure, results, count, out, err);
    figure_free(figure);
    free(panels);
    return ok;
}

/* ---- compare --plot scaling: time over n against the claimed slopes ---------- */

#define SCALING_MOST    24 /* lengths */
#define SCALING_REPEATS 7

/* A tensor from a file fits one length only. */
static bool check_tensors(Result *const *results, int count, Error *err)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < results[i]->request.given.count; k++)
            if (results[i]->request.given.items[k].tensor.data)
                return error_set(err, ERR_USAGE,
                                 "--plot scaling: the tensor %s of %s fits one "
                                 "length only",
                                 results[i]->request.given.items[k].name,
                                 results[i]->request.mechanism);
    return true;
}

/* Lengths double up to the call's n, or SCALING_LAST. */
static bool open_scaling(const Call *call, const Input *like, Study *study, Error *err)
{
    int64_t last = call->values[OPT_N] ? like->n : SCALING_LAST;
    int64_t most = (int64_t)SCALING_FIRST << (SCALING_MOST - 1);

    if (last < 2 * SCALING_FIRST)
        return error_set(err, ERR_USAGE, "--plot scaling needs lengths: -n %d at least",
                         2 * SCALING_FIRST);
    if (!study_open_lengths(study, like, SCALING_FIRST, last < most ? last : most, err))
        return false;
    snprintf(study->title, sizeof(study->title), "scaling");
    return true;
}

static bool add_scaling_lines(Study *study, Result *const *results, int count, Error *err)
{
    bool ok = check_tensors(results, count, err);

    for (int i = 0; ok && i < count; i++) {
        Request timed = results[i]->request; /* borrows */

        timed.repeat = timed.repeat ? timed.repeat : SCALING_REPEATS;
        timed.width = timed.width > 0 ? timed.width : SCALING_WIDTH;
        ok = study_add(study, &timed, err);
    }
    return ok;
}

/* The table of compare sets these sizes by n; here one size stands at every length. */
static void caption_sizes(Result *const *results, int count, char *caption, size_t size)
{
    for (int i = 0; i < count; i++) {
        const Request *request = &results[i]->request;
        int64_t        usual = 0;
        const Param   *param = size_left_out(request, &usual);
        size_t         length = strlen(caption);
        Text           name = { 0 };

        mechanism_words(results[i]->run->mechanism, request->mechanism, &name);
        if (param)
            snprintf(caption + length, size - length, "%s%s: %s %lld at every n",
                     length ? "; " : "", text_str(&name), param->name, (long long)usual);
        text_free(&name);
    }
}

bool scaling_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
                  Error *err)
{
    Study   study = { .count = 0 };
    Figure *figure = NULL;
    bool    ok = open_scaling(call, session_input(s), &study, err) &&
              add_scaling_lines(&study, results, count, err) && study_run(&study, s, err);

    if (ok)
        figure = study_scaling_figure(&study, err);
    if (figure)
        caption_sizes(results, count, figure->caption, sizeof(figure->caption));
    if (figure && call->values[OPT_TITLE])
        snprintf(figure->title, sizeof(figure->title), "%s", call->values[OPT_TITLE]);
    if (figure && call->values[OPT_CAPTION])
        snprintf(figure->caption, sizeof(figure->caption), "%s", call->values[OPT_CAPTION]);
    ok = figure && write_plots(call, figure, results, count, out, err);
    figure_free(figure);
    study_free(&study);
    return ok;
}

/* ---- compare --vary: error beside cost, and the smallest value that is enough ---- */

#define USUAL_PLOT "error,flops"

static bool make_look(const Call *call, StudyLook *look, StudyGoal *goal, Error *err)
{
    const char *keep = call->values[OPT_KEEP], *plot = call->values[OPT_PLOT];

    *look = (StudyLook){ .now = (double)NAN,
                         .cursor = -1,
                         .title = call->values[OPT_TITLE],
                         .caption = call->values[OPT_CAPTION],
                         .unsigned_names = call->values[OPT_JSON] && !call->file_count };
    if (keep && !goal_parse(keep, goal, err))
        return error_prefix(err, "--keep");
    look->goal = keep ? goal : NULL;
    if (!plot && keep) /* the plot shows the quantity of --keep */
        plot = goal->quantity == STUDY_MASS ? "mass,flops" : USUAL_PLOT;
    return quantities_parse(plot ? plot : USUAL_PLOT, look->quantities, &look->count, err) ||
           error_prefix(err, "--plot with --vary");
}

bool vary_check_options(const Call *call, Error *err)
{
    StudyLook look;
    StudyGoal goal;
    bool      file = call->values[OPT_OUTPUT] != NULL, plot = file || call->values[OPT_PLOT];

    if (plot && !(file && call->values[OPT_KEEP]) && !plot_refuse_formats(call, err))
        return false;
    if (!file && call->values[OPT_PLOT] && call->values[OPT_KEEP] && call->values[OPT_JSON])
        return error_set(err, ERR_USAGE, "--keep with --json prints its answer: -o FILE draws the "
                         "plot");
    return make_look(call, &look, &goal, err);
}

static bool add_call_words(Session *s, const Call *call, Study *study, Error *err)
{
    for (int i = 0; i < call->word_count; i++) {
        Request request;
        bool    ok;

        if (!call_request(s, call, call->words[i], &request, err))
            return false;
        if (!call_refuse_stack(call, &request, err))
            return false;
        ok = study_add(study, &request, err);
        request_free(&request);
        if (!ok)
            return false;
    }
    return true;
}

/* A line for each word of the call; a baseline that the call does not name takes no -p. */
static bool open_study(Session *s, const Call *call, const StudyLook *look, Study *study,
                       Error *err)
{
    Call    plain = *call;
    Request exact;
    bool    ok;

    *study = (Study){ .count = 0 };
    plain.param_count = 0;
    if (!call_request(s, &plain, mechanism_at(0)->id, &exact, err))
        return false;
    ok = study_open(study, call->values[OPT_VARY], &exact, err) &&
         add_call_words(s, call, study, err) && study_check(study, err);
    request_free(&exact);
    for (int k = 0; k < look->count; k++)
        study->measure = study->measure || quantity_is_measured(look->quantities[k]);
    return ok;
}

/* ---- showing ---------------------------------------------------------------- */

static bool draw_study(Session *s, const Call *call, const Study *study, const StudyLook *look,
                       Text *out, Error *err)
{
    Result        *samples[VARY_LINES];
    StudyPicture   picture;
    PictureOptions options;
    int            count = 0;
    bool           ok;

    for (int i = 0; i < study->count; i++)
        if (study->lines[i].sample && !study->lines[i].baseline)
            samples[count++] = study->lines[i].sample;
    if (!study_picture(study, look, &picture, err))
        return false;
    ok = call_picture_options(s, call, picture.figure->count, &options, err);
    picture.figure->rows = options.rows;
    picture.figure->cols = options.cols;
    ok = ok && write_plots(call, picture.figure, samples, count, out, err);
    study_picture_free(&picture);
    return ok;
}

static void answer_row(const Study *study, int line, const StudyGoal *goal, Table *t)
{
    int    at = study_smallest(study, line, goal);
    Number kept = at < 0 ? NUMBER_NONE : study_at(study, line, at)->value[goal->quantity];

    table_cell(t, "%s", study->lines[line].name);
    table_cell(t, "%s", study->axis.name);
    table_cell(t, "%s", at < 0 ? "none" : study->axis.values[at]);
    table_number(t, kept, 6);
}

static void answer_table(const Study *study, const StudyGoal *goal, TableStyle style, Text *out)
{
    Table t = { .cols = 4 };

    table_cell(&t, "mechanism");
    table_cell(&t, "parameter");
    table_cell(&t, "smallest");
    table_cell(&t, "%s", quantity_name(goal->quantity));
    for (int i = 0; i < study->count; i++)
        if (!study->lines[i].fixed)
            answer_row(study, i, goal, &t);
    table_write(&t, style, out);
    table_free(&t);
}

static void answer_json(const Study *study, const StudyGoal *goal, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (int i = 0; i < study->count; i++) {
        int at = study->lines[i].fixed ? -1 : study_smallest(study, i, goal);

        if (study->lines[i].fixed)
            continue;
        jsonw_open(&json, '{');
        jsonw_key_string(&json, "mechanism", study->lines[i].name);
        jsonw_key_string(&json, "parameter", study->axis.name);
        jsonw_key(&json, "smallest");
        axis_json(&study->axis, at, &json);
        jsonw_key(&json, quantity_name(goal->quantity));
        if (at < 0)
            jsonw_null(&json);
        else
            jsonw_number(&json, study_at(study, i, at)->value[goal->quantity].value);
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

/* Every point that the answer was chosen from. */
static void points_table(const Study *study, int room, Text *out)
{
    static const StudyQuantity shown[] = { STUDY_MASS, STUDY_ERROR, STUDY_VARIATION, STUDY_FLOPS };
    Table                      t = { .cols = 6, .keys = 2, .room = room };
    char                       text[48];

    table_cell(&t, "mechanism");
    table_cell(&t, "%s", study->axis.name);
    for (int k = 0; k < 4; k++)
        table_cell(&t, "%s", quantity_name(shown[k]));
    for (int i = 0; i < study->count; i++)
        for (int p = 0; p < study_points(study, i); p++) {
            table_cell(&t, "%s", study->lines[i].name);
            table_cell(&t, "%s", study->lines[i].fixed ? "-" : study->axis.values[p]);
            for (int k = 0; k < 4; k++)
                table_cell(&t, "%s", quantity_text(shown[k], study_at(study, i, p)->value[shown[k]],
                                                   text, sizeof(text)));
        }
    table_write(&t, TABLE_TEXT, out);
    table_free(&t);
}

static void answer(const Call *call, const Study *study, const StudyGoal *goal, Text *out)
{
    if (call->values[OPT_JSON]) {
        answer_json(study, goal, out);
    } else if (call->values[OPT_CSV] || call->values[OPT_MD]) {
        answer_table(study, goal, call_style(call), out);
    } else {
        for (int i = 0; i < study->count; i++) {
            if (study->lines[i].fixed)
                continue;
            text_addf(out, "%s: ", study->lines[i].name);
            study_answer(study, i, goal, out);
            text_add(out, "\n");
        }
        if (!call->values[OPT_PLOT] && !call->values[OPT_OUTPUT]) {
            text_add(out, "\n");
            points_table(study, call_room(call), out);
        }
    }
}

bool vary_draws(const Call *call)
{
    return call->values[OPT_VARY] && (call->values[OPT_OUTPUT] || call->values[OPT_KEEP]);
}

bool vary_draw(Session *s, const Call *call, Text *out, Error *err)
{
    Study     study = { .count = 0 };
    StudyLook look;
    StudyGoal goal;
    bool      ok;

    ok = make_look(call, &look, &goal, err) && call_load_input(s, call, err) &&
         call_check_params(call, err) && open_study(s, call, &look, &study, err) &&
         study_run(&study, s, err);
    if (ok && look.goal && !(call->values[OPT_OUTPUT] && !strcmp(call->values[OPT_OUTPUT], "-")))
        answer(call, &study, &goal, out);
    if (ok && (call->values[OPT_OUTPUT] || call->values[OPT_PLOT]))
        ok = draw_study(s, call, &study, &look, out, err);
    study_free(&study);
    return ok;
}

/* Results are in the order of the study's points. */
bool vary_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
               Error *err)
{
    Study     study = { .count = 0 };
    StudyLook look;
    StudyGoal goal;
    bool      ok = make_look(call, &look, &goal, err) && open_study(s, call, &look, &study, err);

    for (int i = 0; ok && i < count && study_next(&study); i++)
        study_take(&study, results[i]);
    if (ok) {
        text_add(out, call->values[OPT_JSON] ? "" : "\n");
        ok = draw_study(s, call, &study, &look, out, err);
    }
    study_free(&study);
    return ok;
}
