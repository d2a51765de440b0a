/* plan.c -- from words to a plan, and the runs of a plan; see plan.h and picture.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/figure/plan.h"
#include "app/session/internal.h"
#include "attn/run/position.h"
#include "core/text.h"

/* A new panel at the end, not counted yet; NULL: no room. */
static PlannedPanel *next_panel(FigurePlan *plan, Error *err)
{
    PlannedPanel *panels = plan->panels;
    int           capacity = plan->capacity ? 2 * plan->capacity : 8;

    if (plan->count == FIGURE_PLAN_MOST) {
        error_set(err, ERR_USAGE, "more than %d panels in one figure", FIGURE_PLAN_MOST);
        return NULL;
    }
    if (plan->count == plan->capacity) {
        panels = realloc(panels, (size_t)capacity * sizeof(*panels));
        if (!panels) {
            error_set(err, ERR_NOMEM, "not enough memory");
            return NULL;
        }
        plan->panels = panels;
        plan->capacity = capacity;
    }
    panels[plan->count] =
        (PlannedPanel){ .request = REQUEST_INIT, .minus = REQUEST_INIT, .spec = PANEL_SPEC_INIT };
    return &panels[plan->count];
}

void figure_plan_free(FigurePlan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        request_free(&plan->panels[i].request);
        request_free(&plan->panels[i].minus);
    }
    free(plan->panels);
    *plan = (FigurePlan){ 0 };
}

/* ---- the effect of a position ------------------------------------------------- */

/* Adds a panel of the request; minus NULL: no difference. */
static PlannedPanel *add_view(FigurePlan *plan, const Request *request, const Request *minus,
                              const char *view, int64_t head, Error *err)
{
    PlannedPanel *panel = next_panel(plan, err);

    if (!panel || !request_copy(&panel->request, request, err))
        return NULL;
    if (minus && !request_copy(&panel->minus, minus, err)) {
        request_free(&panel->request);
        return NULL;
    }
    plan->count++;
    panel->differs = minus != NULL;
    panel->spec = panel_spec(view);
    panel->spec.head = head;
    return panel;
}

static const struct EffectPanel {
    bool        with, differs, maybe;
    const char *view;  /* NULL: the view asked for */
    const char *words; /* title before the position's name; NULL: the view's name */
    bool        named; /* the view's name stands before the words */
} effect_panels[] = {
    { .words = " without ", .named = true },
    { .with = true, .words = " with ", .named = true },
    { .with = true, .differs = true, .words = "with \xe2\x88\x92 without " },
    { .with = true, .maybe = true, .view = "position_bias", .words = "bias added by " },
    { .with = true, .maybe = true, .view = "position_*" },
};

static bool add_effect_panel(FigurePlan *plan, const struct EffectPanel *part, const Request *with,
                             const Request *without, const PanelSpec *side, const char *prefix,
                             Error *err)
{
    const char   *view = part->view ? part->view : side->view;
    PlannedPanel *panel = add_view(plan, part->with ? with : without,
                                   part->differs ? without : NULL, view, side->head, err);

    if (!panel)
        return false;
    panel->maybe = part->maybe;
    if (part->words)
        snprintf(panel->title, sizeof(panel->title), "%s%s%s%s", prefix, part->named ? view : "",
                 part->words, position_name(with->position));
    return true;
}

bool figure_plan_effect(FigurePlan *plan, const Request *with, const char *view, int64_t head,
                        const char *prefix, Error *err)
{
    PanelSpec side = panel_spec(view && *view ? view : "weights");
    Request   without;
    bool      ok = true;

    if (!strcmp(with->position, "none"))
        return error_set(err, ERR_USAGE,
                         "there is no position to show the effect of: give one, as in "
                         "--position alibi");
    if (!request_without_position(with, &without, err))
        return false;
    side.head = head;
    plan->effect = true;
    for (size_t i = 0; ok && i < sizeof(effect_panels) / sizeof(*effect_panels); i++)
        ok = add_effect_panel(plan, &effect_panels[i], with, &without, &side, prefix, err);
    request_free(&without);
    return ok;
}

/* ---- words ---------------------------------------------------------------------- */

/* Sets what a plot measures, unless its numbers come from a file. */
static bool ask_for_plot(const Call *call, PlannedPanel *panel, Error *err)
{
    Request unmeasured = panel->request; /* borrows */
    Error   own = ERROR_INIT;

    panel->plot = request_for_plot(call->stored ? &unmeasured : &panel->request, panel->spec.view,
                                   &own);
    if (own.code != ERR_NONE) {
        *err = own;
        return false;
    }
    if (panel->plot && panel->differs)
        return error_set(err, ERR_USAGE, "there is no difference of plots: join them with ' + '");
    return !panel->plot || call_refuse_stack(call, &panel->request, err);
}

/* Checks names of views before anything runs. */
static bool has_views(const PlannedPanel *panel, Error *err)
{
    return panel->plot ||
           (view_name_check(mechanism_find(panel->request.mechanism), panel->spec.view, err) &&
            (!panel->differs ||
             view_name_check(mechanism_find(panel->minus.mechanism), panel->spec.minus_view, err)));
}

static bool plan_word(Session *s, const Call *call, const PanelWord *word, FigurePlan *plan,
                      Error *err)
{
    PlannedPanel *panel = next_panel(plan, err);
    const char   *view = call->values[OPT_VIEW] ? call->values[OPT_VIEW] : "";

    if (!panel || !call_request(s, call, word->mechanism, &panel->request, err))
        return false;
    if (word->minus) {
        if (!call_request(s, call, word->minus, &panel->minus, err)) {
            request_free(&panel->request);
            return false;
        }
        panel->differs = true;
        view = *view ? view : "weights";
    }
    plan->count++;
    panel->spec = word->spec;
    if (!*panel->spec.view)
        snprintf(panel->spec.view, sizeof(panel->spec.view), "%s", view);
    return ask_for_plot(call, panel, err) && has_views(panel, err);
}

static bool add_effect(Session *s, const Call *call, const PanelWord *word, FigurePlan *plan,
                       Error *err)
{
    const char *view = *word->spec.view ? word->spec.view : call->values[OPT_VIEW];
    Request     with;
    Text        prefix = { 0 };
    bool        ok;

    if (word->minus)
        return error_set(err, ERR_USAGE,
                         "--position-effect makes the differences itself: one mechanism a word");
    if (!call_request(s, call, word->mechanism, &with, err))
        return false;
    if (call->word_count > 1)
        text_addf(&prefix, "%s: ", word->mechanism);
    ok = figure_plan_effect(plan, &with, view, word->spec.head, text_str(&prefix), err);
    request_free(&with);
    text_free(&prefix);
    return ok;
}

/* --diff: every panel minus the first. */
static bool subtract_first(FigurePlan *plan, Error *err)
{
    if (plan->count < 2)
        return error_set(err, ERR_USAGE,
                         "--diff needs at least two mechanisms: each is shown minus the first");
    for (int i = 0; i < plan->count; i++) {
        PlannedPanel *panel = &plan->panels[i];

        if (panel->differs)
            return error_set(err, ERR_USAGE, "--diff or a difference in a panel's word, not both");
        if (!*panel->spec.view)
            snprintf(panel->spec.view, sizeof(panel->spec.view), "weights");
        if (i > 0 && !request_copy(&panel->minus, &plan->panels[0].request, err))
            return false;
        panel->differs = i > 0;
    }
    return true;
}

/* Adds one word between plus signs; the curves of later ones join the first. */
static bool add_part(Session *s, const Call *call, const char *text, bool joins, FigurePlan *out,
                     Error *err)
{
    bool      effect = call->values[OPT_EFFECT] != NULL, ok;
    PanelWord word;

    if (joins && effect)
        return error_set(err, ERR_USAGE, "--position-effect shows matrices: no '+' with it");
    if (!panel_word_parse(text, &word, err))
        return false;
    ok = effect ? add_effect(s, call, &word, out, err) : plan_word(s, call, &word, out, err);
    panel_word_free(&word);
    if (ok && joins)
        out->panels[out->count - 1].joins = true;
    return ok;
}

static bool plan_words(Session *s, const Call *call, const char *words, FigurePlan *out, Error *err)
{
    bool ok = true, joins = false;

    while (ok) {
        const char *end = panel_word_end(words);
        char       *text = strndup(words, (size_t)(end - words));

        ok = text ? add_part(s, call, text, joins, out, err)
                  : error_set(err, ERR_NOMEM, "not enough memory");
        free(text);
        if (!*end)
            return ok;
        words = end + 3;
        joins = true;
    }
    return false;
}

/* Pictures measure nothing, so options of measurements are refused. */
static bool refuse_measuring(const Call *call, const FigurePlan *plan, Error *err)
{
    static const OptionId options[] = { OPT_REPEAT, OPT_WITHIN, OPT_SEEDS };

    for (int i = 0; i < plan->count; i++)
        if (plan->panels[i].plot)
            return true;
    for (size_t k = 0; k < sizeof(options) / sizeof(*options); k++)
        if (call->values[options[k]])
            return error_set(err, ERR_USAGE, "--%s is for plots of measured numbers, as in "
                             "figure 'full:plot(time)'", option_at(options[k])->flag);
    return true;
}

bool figure_plan_make(Session *s, const Call *call, FigurePlan *out, Error *err)
{
    bool effect = call->values[OPT_EFFECT] != NULL, ok = call_check_params(call, err);

    *out = (FigurePlan){ 0 };
    if (effect && call->values[OPT_DIFF])
        return error_set(err, ERR_USAGE, "choose one of --position-effect and --diff");
    for (int i = 0; ok && i < call->word_count; i++)
        ok = plan_words(s, call, call->words[i], out, err);
    return ok && refuse_measuring(call, out, err) &&
           (!call->values[OPT_DIFF] || subtract_first(out, err));
}

/* ---- running a plan ------------------------------------------------------ */

void figure_run_free(FigureRun *d)
{
    for (int i = 0; i < FIGURE_PLAN_MOST; i++) {
        result_release(d->results[i]);
        result_release(d->bases[i]);
    }
    figure_plan_free(&d->plan);
    *d = (FigureRun){ 0 };
}

/* An earlier result of the same request; NULL: none. */
static Result *find_result(const FigureRun *d, const Request *request)
{
    if (d->known && request_covers(&d->known->request, request))
        return d->known;
    for (int i = 0; i < d->count; i++) {
        if (request_covers(&d->results[i]->request, request))
            return d->results[i];
        if (d->bases[i] && request_covers(&d->bases[i]->request, request))
            return d->bases[i];
    }
    return NULL;
}

/* Retained; NULL: it could not run, or failed.  A plot shows itself which run failed. */
static Result *run_once(Session *s, const FigureRun *d, const Request *request, bool plot,
                        Error *err)
{
    Result *result = find_result(d, request);

    if (result)
        return result_retain(result);
    if (plot)
        session_progress(s, "measuring %s", request->mechanism);
    return plot ? session_run(s, request, err) : session_run_ok(s, request, err);
}

/* ---- panels ----------------------------------------------------------------- */

/* Adds one panel; retains both results. */
static bool add_panel_of(FigureRun *d, const PlannedPanel *planned, const char *view, int64_t head,
                         Result *result, Result *base, Error *err)
{
    int k = d->count;

    if (k == FIGURE_PLAN_MOST)
        return error_set(err, ERR_USAGE, "more than %d panels in one figure", FIGURE_PLAN_MOST);
    d->results[k] = result_retain(result);
    d->bases[k] = base ? result_retain(base) : NULL;
    snprintf(d->titles[k], sizeof(d->titles[k]), "%s", planned->title);
    title_capital(d->titles[k]);
    d->panels[k] = (PanelChoice){ .result = result, .minus = base, .spec = planned->spec,
                                  .joins = planned->joins };
    snprintf(d->panels[k].spec.view, sizeof(d->panels[k].spec.view), "%s", view);
    d->panels[k].spec.head = head;
    d->panels[k].title = *planned->title ? d->titles[k] : NULL;
    d->count++;
    return true;
}

/* Adds a panel for each head where the word asks for all; one where all heads share the view. */
static bool add_panel(FigureRun *d, const PlannedPanel *planned, const char *view, Result *result,
                      Result *base, Error *err)
{
    const View *shown;
    bool        ok = true;

    if (planned->spec.head != HEADS_ALL)
        return add_panel_of(d, planned, view, planned->spec.head, result, base, err);
    if (planned->joins)
        return error_set(err, ERR_USAGE, "@* makes a panel of each head: no '+' with it");
    shown = result_view(result, *view ? view : base ? "weights" : NULL, err);
    if (!shown)
        return false;
    for (int64_t head = 0; ok && head < (view_shared(shown) ? 1 : result->run->h); head++)
        ok = add_panel_of(d, planned, view, head, result, base, err);
    return ok;
}

static bool is_drawn(const FigureRun *d, const Result *result, const View *view)
{
    for (int i = 0; i < d->count; i++)
        if (d->results[i] == result && !d->panels[i].minus && *d->panels[i].spec.view &&
            run_view(result->run, d->panels[i].spec.view) == view)
            return true;
    return false;
}

static void title_by_view(FigureRun *d, int panel, const View *view)
{
    Text words = { 0 };

    picture_words(view->name, &words);
    snprintf(d->titles[panel], sizeof(d->titles[panel]), "%s", text_str(&words));
    title_capital(d->titles[panel]);
    d->panels[panel].title = d->titles[panel];
    text_free(&words);
}

/* "position_*": a panel for each matrix whose name begins so. */
static bool add_matching(FigureRun *d, const PlannedPanel *planned, Result *result, Result *base,
                         Error *err)
{
    const Run *run = result->run;
    size_t     length = strlen(planned->spec.view) - 1;
    int        before = d->count;

    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];

        if (strncmp(view->name, planned->spec.view, length) != 0 || view->rank < 1 ||
            view_rows(view) * view_cols(view) < 1 || run_view(run, view->name) != view ||
            is_drawn(d, result, view))
            continue;
        if (!add_panel(d, planned, view->name, result, base, err))
            return false;
        if (planned->maybe)
            title_by_view(d, d->count - 1, view);
    }
    return d->count > before || planned->maybe ||
           error_set(err, ERR_USAGE, "%s has no view whose name matches '%s'",
                     result->request.mechanism, planned->spec.view);
}

/* ---- runs of which only allowed pairs are shown --------------------------------- */

static bool is_pairs(ViewKind kind)
{
    return kind == VIEW_PATTERN || kind == VIEW_COMPONENTS;
}

/* The panel may show allowed pairs alone, so attention may be left out.  A script's mechanism may
 * choose pairs by an earlier output of attention. */
static bool may_show_pairs(const Call *call, const PlannedPanel *planned)
{
    const Mechanism *m = mechanism_find(planned->request.mechanism);

    if (!m || mechanism_is_added(m->id) || planned->plot || planned->differs ||
        planned->spec.sorted || planned->request.above || call->values[OPT_STRIPS] ||
        call->values[OPT_SORTED] || call->values[OPT_SPAN])
        return false;
    for (const ViewPromise *p = m->views; *planned->spec.view && p && p->name; p++)
        if (!strcmp(p->name, planned->spec.view))
            return is_pairs(p->kind);
    return !*planned->spec.view;
}

/* All panels of this run show allowed pairs alone. */
static bool pairs_will_do(const Call *call, const FigurePlan *plan, const PlannedPanel *planned)
{
    const Request *r = &planned->request;

    for (int i = 0; i < plan->count; i++) {
        const PlannedPanel *other = &plan->panels[i];

        if ((request_same(r, &other->request) && !may_show_pairs(call, other)) ||
            (other->differs && request_same(r, &other->minus)))
            return false;
    }
    return true;
}

/* As run_once, without attention; runs again with it where the panel shows more than pairs. */
static Result *run_for_pairs(Session *s, FigureRun *d, PlannedPanel *planned, Error *err)
{
    Result     *result;
    const View *shown;

    planned->request.pairs_only = true;
    result = run_once(s, d, &planned->request, false, err);
    shown = result ? result_view(result, *planned->spec.view ? planned->spec.view : NULL, err)
                   : NULL;
    if (!result || !result->request.pairs_only || (shown && is_pairs(shown->kind)))
        return result;
    result_release(result);
    *err = ERROR_INIT;
    planned->request.pairs_only = false;
    return run_once(s, d, &planned->request, false, err);
}

static bool draw_planned(Session *s, FigureRun *d, PlannedPanel *planned, bool pairs, Error *err)
{
    size_t  length = strlen(planned->spec.view);
    Result *base = NULL, *result = pairs ? run_for_pairs(s, d, planned, err)
                                         : run_once(s, d, &planned->request, planned->plot, err);
    bool    ok = result != NULL;

    if (ok && planned->differs) {
        base = run_once(s, d, &planned->minus, false, err);
        ok = base != NULL;
    }
    if (ok && length && planned->spec.view[length - 1] == '*' && !planned->plot)
        ok = add_matching(d, planned, result, base, err);
    else if (ok && (!planned->maybe || run_view(result->run, planned->spec.view)))
        ok = add_panel(d, planned, planned->spec.view, result, base, err);
    result_release(base);
    result_release(result);
    return ok;
}

/* Number of plots and matrices; a curve that joins a plot takes no place. */
static int places(const FigureRun *d)
{
    int count = d->count;

    for (int k = 0; k < d->count; k++)
        count -= d->panels[k].joins;
    return count;
}

/* Drops the blanks around the bars of "first | second". */
static bool set_titles(FigureRun *d, const char *text, Error *err)
{
    for (int k = 0; text; k++) {
        size_t length = strcspn(text, "|"), skip = strspn(text, " ");
        int    shown = (int)(length > skip ? length - skip : 0);

        while (k < d->count && d->panels[k].joins)
            k++;
        if (k == d->count)
            return error_set(err, ERR_USAGE, "--titles: more titles than the %d panel%s", places(d),
                             places(d) == 1 ? "" : "s");
        while (shown > 0 && isspace((unsigned char)text[skip + (size_t)shown - 1]))
            shown--;
        if (shown) {
            snprintf(d->titles[k], sizeof(d->titles[k]), "%.*s", shown, text + skip);
            d->panels[k].title = d->titles[k];
        }
        text = text[length] ? text + length + 1 : NULL;
    }
    return true;
}

bool figure_run_make(Session *s, const Call *call, bool pictures_only, FigureRun *out, Error *err)
{
    bool ok;

    *out = (FigureRun){ .count = 0 };
    ok = call_load_input(s, call, err) && figure_plan_make(s, call, &out->plan, err);
    for (int i = 0; ok && i < out->plan.count; i++) {
        PlannedPanel *planned = &out->plan.panels[i];

        planned->request.views_only = planned->minus.views_only = pictures_only && !planned->plot;
        ok = draw_planned(s, out, planned,
                          pictures_only && pairs_will_do(call, &out->plan, planned), err);
    }
    return ok && (!call->values[OPT_TITLES] || set_titles(out, call->values[OPT_TITLES], err));
}

bool figure_run_effect(Session *s, Result *with, int64_t head, FigureRun *out, Error *err)
{
    bool ok;

    *out = (FigureRun){ .known = with };
    ok = figure_plan_effect(&out->plan, &with->request, NULL, head, "", err);
    for (int i = 0; ok && i < out->plan.count; i++)
        ok = draw_planned(s, out, &out->plan.panels[i], false, err);
    return ok;
}

/* ---- options ---------------------------------------------------------------- */

static bool region_option(const char *text, Region *out, Error *err)
{
    long long q0, q1, k0, k1;
    int       end = 0;

    if (!text)
        return true;
    if (sscanf(text, "%lld:%lld,%lld:%lld%n", &q0, &q1, &k0, &k1, &end) != 4 || text[end])
        return error_set(err, ERR_USAGE, "--region: expected Q0:Q1,K0:K1 like 0:64,0:64, got '%s'",
                         text);
    *out = (Region){ q0, q1, k0, k1 };
    return true;
}

static bool parse_grid(const char *text, int count, PictureOptions *options, Error *err)
{
    if (!text)
        return true;
    if (!picture_grid(text, &options->rows, &options->cols, &options->loose))
        return error_set(err, ERR_USAGE, "--grid: expected ROWSxCOLS like 2x4, or 2x4~ for fewer "
                         "columns where they get narrow, got '%s'", text);
    return options->rows >= count || options->cols >= count ||
           options->rows * options->cols >= count ||
           error_set(err, ERR_USAGE, "--grid %s has no room for %d panels", text, count);
}

static bool head_option(const char *text, int64_t *head, Error *err)
{
    char *end;
    long  value = text ? strtol(text, &end, 10) : -1;

    if (text && (end == text || *end || value < 0 || value > 1000000))
        return error_set(err, ERR_USAGE, "--head: expected a number from 0 to 1e+06, got '%s'",
                         text);
    *head = value;
    return true;
}

static bool parse_key(const char *text, PictureOptions *o, Error *err)
{
    o->excludes = text != NULL;
    o->excluded = 0;
    return !text || (text_whole(text, &o->excluded) && o->excluded >= 0) ||
           error_set(err, ERR_USAGE, "--exclude: expected a key's number from 0, got '%s'", text);
}

static bool parse_layers(const char *text, int *layers, Error *err)
{
    char *end;
    long  value = text ? strtol(text, &end, 10) : 0;

    if (text && (end == text || *end || value < 1 || value > REACH_MOST))
        return error_set(err, ERR_USAGE, "--layers: expected a number from 1 to %d, got '%s'",
                         REACH_MOST, text);
    *layers = (int)value;
    return true;
}

bool call_picture_options(Session *s, const Call *call, int panels, PictureOptions *o, Error *err)
{
    *o = (PictureOptions){
        .pool = call->values[OPT_POOL],
        .scale = call->values[OPT_SCALE],
        .map = call->values[OPT_CMAP],
        .title = call->values[OPT_TITLE],
        .caption = call->values[OPT_CAPTION],
        .sorted = call->values[OPT_SORTED] != NULL,
        .span = call->values[OPT_SPAN],
        .reach.strict = call->values[OPT_NORESIDUAL] != NULL,
        .sharing = call->values[OPT_SHARED] ? SHARE_ALL
                   : call->values[OPT_OWN]  ? SHARE_NONE
                   : call->values[OPT_GRID] ? SHARE_QUANTITIES
                                            : SHARE_DIFFERENCES,
        .threads = session_threads(s, 0),
    };
    if (call->values[OPT_SHARED] && call->values[OPT_OWN])
        return error_set(err, ERR_USAGE, "choose one of --shared-scale and --own-scales");
    return head_option(call->values[OPT_HEAD], &o->head, err) &&
           parse_layers(call->values[OPT_LAYERS], &o->reach.layers, err) &&
           parse_key(call->values[OPT_EXCLUDE], o, err) &&
           (!call->values[OPT_STRIPS] ||
            margin_parse(call->values[OPT_STRIPS], &o->strips.kind, err)) &&
           margin_parse_queries(call->values[OPT_QUERIES], &o->strips, err) &&
           region_option(call->values[OPT_REGION], &o->region, err) &&
           parse_grid(call->values[OPT_GRID], panels, o, err);
}

Figure *figure_run_draw(Session *s, const Call *call, FigureRun *d, Error *err)
{
    PictureOptions options;
    PlotKind       kind;

    if (!call_picture_options(s, call, places(d), &options, err))
        return NULL;
    options.stored = call->stored;
    for (int i = 0; i < d->count && !options.stored; i++)
        if (!d->panels[i].joins && plot_word(panel_choice_view(&d->panels[i]), &kind, NULL) &&
            kind == PLOT_ROOFLINE) {
            d->panels[i].ceilings = session_ceilings(s, d->results[i]->request.ops,
                                                     d->results[i]->request.threads, err);
            if (!d->panels[i].ceilings)
                return NULL;
        }
    if (d->plan.effect && options.sharing != SHARE_NONE)
        options.sharing = SHARE_ALL;
    if (d->plan.effect && !options.cols && call->word_count > 1 && d->count % call->word_count == 0)
        options.cols = d->count / call->word_count;
    return picture_of_panels(d->panels, d->count, &options, err);
}
