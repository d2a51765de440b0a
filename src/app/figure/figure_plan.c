/* figure_plan.c -- see figure_plan.h. */
#include "app/figure/figure_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/panel_word.h"
#include "app/figure/picture_plot.h"
#include "app/figure/view_names.h"

/* Room for one more panel at the end, not counted yet; NULL: none. */
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
        (PlannedPanel){ .request = REQUEST_INIT, .minus = REQUEST_INIT, .head = -1 };
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

/* A panel of the request; minus NULL: as it is. */
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
    panel->head = head;
    snprintf(panel->view, sizeof(panel->view), "%s", view);
    return panel;
}

static const struct EffectPanel {
    bool        with, differs, maybe;
    const char *view;  /* NULL: the one asked for */
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
                             const Request *without, const PanelSide *side, const char *prefix,
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
                 part->words, with->position);
    return true;
}

bool figure_plan_effect(FigurePlan *plan, const Request *with, const char *view, int64_t head,
                        const char *prefix, Error *err)
{
    PanelSide side = { .head = head };
    Request   without;
    bool      ok = true;

    if (!strcmp(with->position, "none"))
        return error_set(err, ERR_USAGE,
                         "there is no position to show the effect of: give one, as in "
                         "--position alibi");
    if (!request_without_position(with, &without, err))
        return false;
    snprintf(side.view, sizeof(side.view), "%s", view && *view ? view : "weights");
    plan->effect = true;
    for (size_t i = 0; ok && i < sizeof(effect_panels) / sizeof(*effect_panels); i++)
        ok = add_effect_panel(plan, &effect_panels[i], with, &without, &side, prefix, err);
    request_free(&without);
    return ok;
}

/* ---- words ---------------------------------------------------------------------- */

/* A plot of measured numbers: the run has to measure them, unless a file holds them. */
static bool ask_for_plot(const Call *call, PlannedPanel *panel, Error *err)
{
    Request unmeasured = panel->request; /* borrows */
    Error   own = ERROR_INIT;

    panel->plot = request_for_plot(call->stored ? &unmeasured : &panel->request, panel->view,
                                   &own);
    if (own.code != ERR_NONE) {
        *err = own;
        return false;
    }
    if (panel->plot && panel->differs)
        return error_set(err, ERR_USAGE, "there is no difference of plots: join them with ' + '");
    return !panel->plot || call_refuse_stack(call, &panel->request, err);
}

/* A slip is found before anything runs. */
static bool has_views(const PlannedPanel *panel, Error *err)
{
    return panel->plot ||
           (view_name_check(mechanism_find(panel->request.mechanism), panel->view, err) &&
            (!panel->differs ||
             view_name_check(mechanism_find(panel->minus.mechanism), panel->minus_view, err)));
}

static bool add_word(Session *s, const Call *call, const PanelWord *word, FigurePlan *plan,
                     Error *err)
{
    PlannedPanel *panel = next_panel(plan, err);
    const char   *view = call->values[OPT_VIEW] ? call->values[OPT_VIEW] : "";

    if (!panel || !call_request(s, call, word->shown.mechanism, &panel->request, err))
        return false;
    if (word->minus.mechanism) {
        if (!call_request(s, call, word->minus.mechanism, &panel->minus, err)) {
            request_free(&panel->request);
            return false;
        }
        panel->differs = true;
        snprintf(panel->minus_view, sizeof(panel->minus_view), "%s", word->minus.view);
        view = *view ? view : "weights";
    }
    plan->count++;
    snprintf(panel->view, sizeof(panel->view), "%s", *word->shown.view ? word->shown.view : view);
    panel->head = word->shown.head;
    panel->sorted = word->shown.sorted;
    panel->looks = word->looks;
    return ask_for_plot(call, panel, err) && has_views(panel, err);
}

static bool add_effect(Session *s, const Call *call, const PanelWord *word, FigurePlan *plan,
                       Error *err)
{
    const char *view = *word->shown.view ? word->shown.view : call->values[OPT_VIEW];
    Request     with;
    Text        prefix = { 0 };
    bool        ok;

    if (word->minus.mechanism)
        return error_set(err, ERR_USAGE,
                         "--position-effect makes the differences itself: one mechanism a word");
    if (!call_request(s, call, word->shown.mechanism, &with, err))
        return false;
    if (call->word_count > 1)
        text_addf(&prefix, "%s: ", word->shown.mechanism);
    ok = figure_plan_effect(plan, &with, view, word->shown.head, text_str(&prefix), err);
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
        if (!*panel->view)
            snprintf(panel->view, sizeof(panel->view), "weights");
        if (i > 0 && !request_copy(&panel->minus, &plan->panels[0].request, err))
            return false;
        panel->differs = i > 0;
    }
    return true;
}

/* One of the words between the pluses; the curves of all but the first join it. */
static bool add_part(Session *s, const Call *call, const char *text, bool joins, FigurePlan *out,
                     Error *err)
{
    bool      effect = call->values[OPT_EFFECT] != NULL, ok;
    PanelWord word;

    if (joins && effect)
        return error_set(err, ERR_USAGE, "--position-effect shows matrices: no '+' with it");
    if (!panel_word_parse(text, &word, err))
        return false;
    ok = effect ? add_effect(s, call, &word, out, err) : add_word(s, call, &word, out, err);
    panel_word_free(&word);
    if (ok && joins)
        out->panels[out->count - 1].joins = true;
    return ok;
}

static bool add_words(Session *s, const Call *call, const char *words, FigurePlan *out, Error *err)
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

/* Nothing is measured for pictures, so what says how would be ignored. */
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
        ok = add_words(s, call, call->words[i], out, err);
    return ok && refuse_measuring(call, out, err) &&
           (!call->values[OPT_DIFF] || subtract_first(out, err));
}
