/* study_figure.c -- the figures of a study; see study.h.
 *
 * Over a parameter, plots stand side by side: a view for each quantity, whose rows are the points
 * and whose columns are the mechanisms.  Over n, one plot has a curve for each line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/figure/plots.h"
#include "app/study/study.h"

typedef struct StudyNumbers {
    int       order[AXIS_MOST];
    double    x[AXIS_MOST];
    Text      points;                            /* names of the points */
    Text      series[STUDY_QUANTITIES];
    double   *values[STUDY_QUANTITIES];          /* owned: [3][points][columns] */
    View      along, view[STUDY_QUANTITIES][3];  /* value, low, high */
    ViewCurve curve[STUDY_QUANTITIES];
    int       numbers[STUDY_QUANTITIES][STUDY_LINES]; /* of the columns: those of their lines */
    char      goal[48], exact[64]; /* names of guides */
    Reasons   reasons;             /* what runs warned of */
    Text      signs[STUDY_LINES];  /* of each line's warnings */
} StudyNumbers;

static const char *const axes[STUDY_QUANTITIES] = {
    "output error", "mass kept", "total variation", "time (ms)", "FLOPs", "own memory (bytes)",
};

#define SPREAD 4 /* ratio of numbers with a logarithmic axis */

/* ---- quantities ------------------------------------------------------------- */

static const struct {
    const char *name;
    bool        measured;
} quantities[STUDY_QUANTITIES] = {
    [STUDY_ERROR] = { "error", false },   [STUDY_MASS] = { "mass", false },
    [STUDY_VARIATION] = { "tv", false },  [STUDY_TIME] = { "time", true },
    [STUDY_FLOPS] = { "flops", false },   [STUDY_MEMORY] = { "memory", true },
};

const char *quantity_name(StudyQuantity quantity)
{
    return quantities[quantity].name;
}

bool quantity_is_measured(StudyQuantity quantity)
{
    return quantities[quantity].measured;
}

static bool add_quantity(const char *name, size_t length, StudyQuantity *out, int *count,
                         Error *err)
{
    for (int k = 0; k < STUDY_QUANTITIES; k++) {
        if (strlen(quantities[k].name) != length || strncmp(quantities[k].name, name, length) != 0)
            continue;
        for (int i = 0; i < *count; i++)
            if ((int)out[i] == k)
                return error_set(err, ERR_USAGE, "%s is there twice", quantities[k].name);
        out[(*count)++] = (StudyQuantity)k;
        return true;
    }
    return error_set(err, ERR_USAGE, "'%.*s': expected error, mass, tv, time, flops or memory",
                     (int)length, name);
}

bool quantities_parse(const char *text, StudyQuantity *out, int *count, Error *err)
{
    *count = 0;
    for (;; text++) {
        size_t length = strcspn(text, ",");

        if (!add_quantity(text, length, out, count, err))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

const char *quantity_text(StudyQuantity quantity, Number number, char *text, size_t size)
{
    if (!number.valid)
        snprintf(text, size, "n/a");
    else if (quantity == STUDY_FLOPS)
        format_count(number.value, text, size);
    else if (quantity == STUDY_MEMORY)
        format_bytes((int64_t)number.value, text, size);
    else if (quantity == STUDY_MASS)
        snprintf(text, size, "%.1f %%", 100 * number.value);
    else
        snprintf(text, size, quantity == STUDY_TIME ? "%.3g ms" : "%.3g", number.value);
    return text;
}

/* ---- columns ---------------------------------------------------------------- */

static bool has_numbers(const Study *study, int line, StudyQuantity q)
{
    for (int p = 0; p < study_points(study, line); p++)
        if (study->lines[line].points[p].value[q].valid)
            return true;
    return false;
}

/* Exact attention is a guide line, no curve. */
static bool is_column(const Study *study, int line, StudyQuantity q)
{
    return !study->lines[line].baseline && has_numbers(study, line, q);
}

/* The number of a line among those with curves: its colour in every plot. */
static int number_of_line(const Study *study, int line)
{
    int number = 0;

    for (int i = 0; i < line; i++)
        number += !study->lines[i].baseline;
    return number;
}

static int count_columns(const Study *study, StudyQuantity q)
{
    int count = 0;

    for (int i = 0; i < study->count; i++)
        count += is_column(study, i, q);
    return count;
}

static void fill_column(const Study *study, StudyNumbers *n, StudyQuantity q, int line, int column,
                        int columns)
{
    int     points = study->axis.count;
    double *out = n->values[q];

    for (int i = 0; i < points; i++) {
        const StudyPoint *p = study_at(study, line, n->order[i]);
        int               at = i * columns + column;

        out[at] = number_or_nan(p->value[q]);
        out[points * columns + at] = number_or_nan(p->low[q]);
        out[2 * points * columns + at] = number_or_nan(p->high[q]);
    }
}

/* For readers: "BigBird, window 5" of "bigbird(window=5)". */
static void line_words(const StudyLine *line, Text *out)
{
    text_clear(out);
    mechanism_words(mechanism_find(line->request.mechanism), line->name, out);
}

/* Names are separated by bars. */
static void add_series_name(Text *names, const char *signs, const char *name, const char *more)
{
    if (names->length)
        text_add(names, "|");
    text_addf(names, "%s%s", signs, *signs ? " " : "");
    for (; *name; name++)
        text_addf(names, "%c", *name == '|' ? '/' : *name);
    text_add(names, more);
}

/* ---- views ------------------------------------------------------------------ */

/* Logarithmic where all numbers are above 0 and far apart; an error near 0 is linear. */
static bool is_log(const Study *study, const StudyNumbers *n, StudyQuantity q, int64_t count)
{
    double lo = HUGE_VAL, hi = 0;

    if (q == STUDY_MASS || q == STUDY_VARIATION)
        return false;
    for (int64_t i = 0; i < count; i++) {
        lo = isnan(n->values[q][i]) ? lo : fmin(lo, n->values[q][i]);
        hi = isnan(n->values[q][i]) ? hi : fmax(hi, n->values[q][i]);
    }
    return (q == STUDY_ERROR ? lo > 1e-4 : lo > 0 && study->log) && hi > SPREAD * lo;
}

static View table_view(const double *data, int64_t rows, int64_t cols, const char *name)
{
    View view = { .kind = VIEW_TENSOR, .dtype = DT_F64, .rank = 2, .shape = { rows, cols },
                  .rows = "point", .cols = "mechanism", .stage = "", .iteration = -1, .step = -1 };

    snprintf(view.name, sizeof(view.name), "%s", name);
    view.tensor = tensor_of(DT_F64, 2, view.shape, (void *)(uintptr_t)data);
    return view;
}

static void add_guide(View *view, const char *name, double at, bool vertical)
{
    if (view->guide_count < VIEW_GUIDES_MOST && isfinite(at))
        view->guides[view->guide_count++] =
            (ViewGuide){ .name = name, .at = at, .vertical = vertical };
}

static void add_guides(const Study *study, const StudyLook *look, StudyNumbers *n, StudyQuantity q)
{
    View            *view = &n->view[q][0];
    const StudyLine *exact = &study->lines[0];

    if (study->count && exact->baseline && exact->points[0].value[q].valid)
        add_guide(view, n->exact, exact->points[0].value[q].value, false);
    if (look->goal && look->goal->quantity == q)
        add_guide(view, n->goal, look->goal->bound, false);
    add_guide(view, "now", look->now, true);
    if (look->cursor >= 0)
        add_guide(view, "", study_x(study, look->cursor), true);
}

static bool no_numbers(const Study *study, StudyQuantity q, Error *err)
{
    for (int i = 0; i < study->count; i++)
        for (int p = 0; p < study_points(study, i) && !study->lines[i].baseline; p++)
            if (study->lines[i].points[p].problem[0])
                return error_set(err, ERR_DATA, "no %s to plot: %.300s", axes[q],
                                 study->lines[i].points[p].problem);
    return error_set(err, ERR_DATA, "no %s to plot: these mechanisms have none%s", axes[q],
                     quantity_is_measured(q) && !study->measure ? " that was measured" : "");
}

static bool make_study_view(const Study *study, const StudyLook *look, StudyNumbers *n,
                            StudyQuantity q, Error *err)
{
    int     columns = count_columns(study, q), points = study->axis.count, at = 0;
    int64_t size = (int64_t)points * columns;

    n->values[q] = malloc((size_t)(3 * size) * sizeof(double));
    if (!n->values[q])
        return error_set(err, ERR_NOMEM, "a plot: out of memory");
    for (int i = 0; i < study->count; i++) {
        Text name = { 0 };

        if (!is_column(study, i, q))
            continue;
        line_words(&study->lines[i], &name);
        add_series_name(&n->series[q], text_str(&n->signs[i]), text_str(&name),
                        study->lines[i].fixed ? " (fixed)" : "");
        text_free(&name);
        n->numbers[q][at] = number_of_line(study, i);
        fill_column(study, n, q, i, at++, columns);
    }
    for (int k = 0; k < 3; k++)
        n->view[q][k] = table_view(n->values[q] + k * size, points, columns, axes[q]);
    n->curve[q] = (ViewCurve){ .x = study->axis.name, .y = axes[q],
                               .series = text_str(&n->series[q]),
                               .numbers = n->numbers[q],
                               .points = text_str(&n->points),
                               .mark = study->words ? CURVE_POINTS : CURVE_LINE,
                               .log_x = study->log, .log_y = is_log(study, n, q, size) };
    n->view[q][0].curve = &n->curve[q];
    n->view[q][0].along = &n->along;
    n->view[q][0].low = &n->view[q][1];
    n->view[q][0].high = &n->view[q][2];
    add_guides(study, look, n, q);
    return text_ok(&n->series[q]) || error_set(err, ERR_NOMEM, "a plot: out of memory");
}

static void place_points(const Study *study, StudyNumbers *n)
{
    int64_t count = study->axis.count;

    study_order(study, n->order);
    for (int i = 0; i < count; i++) {
        n->x[i] = study_x(study, n->order[i]);
        add_series_name(&n->points, "", study->axis.values[n->order[i]], "");
    }
    n->along = (View){ .name = "x", .kind = VIEW_TENSOR, .dtype = DT_F64, .rank = 1,
                       .shape = { count }, .rows = "", .cols = "" };
    n->along.tensor = tensor_of(DT_F64, 1, n->along.shape, n->x);
}

/* ---- words ------------------------------------------------------------------ */

static const Result *any_sample(const Study *study)
{
    const Result *sample = NULL;

    for (int i = 0; i < study->count; i++)
        sample = study->lines[i].sample ? study->lines[i].sample : sample;
    return sample;
}

/* Some mechanisms have no causal form. */
static const char *causal_words(const Study *study)
{
    int causal = 0, all = 0;

    for (int i = 0; i < study->count; i++)
        if (study->lines[i].sample && !study->lines[i].baseline) {
            causal += study->lines[i].sample->run->causal;
            all++;
        }
    return !causal ? "" : causal == all ? ", causal" : ", causal where there is such a form";
}

static void caption_input(const Study *study, Text *out)
{
    const Result *r = any_sample(study);
    bool          generated;
    Text          name = { 0 };

    for (int i = 0, shown = 0; i < study->count; i++)
        if (!study->lines[i].baseline) {
            line_words(&study->lines[i], &name);
            text_addf(out, "%s%s", shown++ ? ", " : "", text_str(&name));
        }
    text_free(&name);
    text_addf(out, " against full attention, over %s", study->axis.name);
    if (!r)
        return;
    generated = !strncmp(r->input->name, "synthetic:", strlen("synthetic:"));
    text_add(out, "; ");
    if (generated) {
        generated_words(r->input->name, false, out);
    } else {
        input_reader_words(r->input, out);
        text_addf(out, ", n = %lld", (long long)r->run->n);
    }
    if (r->run->h > 1)
        text_addf(out, ", all %lld heads", (long long)r->run->h);
    text_add(out, causal_words(study));
    if (!generated)
        text_addf(out, ", seed %llu", (unsigned long long)r->request.seed);
}

static Machines machines_of(const Study *study)
{
    Machines machines = { .when = 0 };

    for (int i = 0; i < study->count; i++)
        if (study->lines[i].sample)
            machines_add_record(&machines, &study->lines[i].sample->record);
    return machines;
}

static void caption_measured(const Study *study, const StudyLook *look, Text *out)
{
    const Result *r = any_sample(study);
    Machines      machines = machines_of(study);
    char          names[224];
    bool          time = false;

    for (int k = 0; k < look->count; k++)
        time = time || look->quantities[k] == STUDY_TIME;
    if (!time || !r)
        return;
    machines_names(&machines, names, sizeof(names));
    text_addf(out, "; time: median and quartiles, measured on %s", names);
}

static bool has_band(const Study *study, StudyQuantity q)
{
    for (int i = 0; i < study->count; i++)
        for (int p = 0; p < study_points(study, i); p++)
            if (study->lines[i].points[p].low[q].valid)
                return true;
    return false;
}

static void caption_seeds(const Study *study, Text *out)
{
    int seeds = 0;

    for (int i = 0; i < study->count; i++)
        seeds = !study->lines[i].fixed ? study->lines[i].request.seeds : seeds;
    if (has_band(study, STUDY_ERROR) || has_band(study, STUDY_MASS))
        text_addf(out, "; band: least and most of %d seeds", seeds);
}

/* The reason begins with the mechanism, so the name before it would be said twice. */
static bool names_line(const StudyLine *line, const char *why)
{
    return !strncmp(why, line->request.mechanism, strlen(line->request.mechanism));
}

/* A point without numbers is a gap; the caption gives the reason. */
static void caption_problems(const Study *study, Text *out)
{
    for (int i = 0; i < study->count; i++) {
        const StudyLine *line = &study->lines[i];
        const char      *why = NULL;
        Text             name = { 0 };

        line_words(line, &name);
        for (int p = 0; p < study_points(study, i); p++) {
            if (!line->points[p].problem[0])
                continue;
            if (!why && (!line->fixed || !names_line(line, line->points[p].problem)))
                text_addf(out, "; left out: %s", text_str(&name));
            if (!line->fixed)
                text_addf(out, "%s %s", why ? "," : " at", study->axis.values[p]);
            why = why ? why : line->points[p].problem;
        }
        if (why && line->fixed && names_line(line, why)) {
            text_add(out, "; left out: ");
            add_reason_words(why, out);
        } else if (why) {
            text_add(out, " (");
            add_reason_words(why, out);
            text_add(out, ")");
        }
        text_free(&name);
    }
}

/* Why a mechanism has no number of this quantity. */
static const char *why_none(const Study *study, StudyQuantity q)
{
    if (q == STUDY_MASS)
        return "nothing is left out by choice";
    if (quantity_is_measured(q))
        return study->measure ? "nothing was measured" : "not measured";
    return "there is nothing to compare with";
}

/* A quantity without numbers has no plot; the caption says so. */
static void caption_quantities(const Study *study, const StudyLook *look, Text *out)
{
    for (int k = 0; k < look->count; k++)
        if (!count_columns(study, look->quantities[k]))
            text_addf(out, "; no plot of %s: %s",
                      axes[look->quantities[k]], why_none(study, look->quantities[k]));
}

/* All points failed: the caption has the reason. */
static bool has_failed(const Study *study, int line)
{
    for (int p = 0; p < study_points(study, line); p++)
        if (!study->lines[line].points[p].problem[0])
            return false;
    return true;
}

/* "no curve: Linformer, Performer (nothing is left out by choice)" below a plot without them. */
static void note_missing(const Study *study, StudyQuantity q, Panel *panel)
{
    Text note = { 0 }, name = { 0 };

    for (int i = 0; i < study->count; i++)
        if (!study->lines[i].baseline && !has_numbers(study, i, q) && !has_failed(study, i)) {
            line_words(&study->lines[i], &name);
            text_addf(&note, "%s%s", note.length ? ", " : "no curve: ", text_str(&name));
        }
    if (note.length)
        snprintf(panel->caption, sizeof(panel->caption), "%s (%s)", text_str(&note),
                 why_none(study, q));
    text_free(&note);
    text_free(&name);
}

/* What a reader must know of the curves, also below a given caption. */
static void caption_gaps(const Study *study, const StudyLook *look, const StudyNumbers *n,
                         Text *out)
{
    caption_quantities(study, look, out);
    caption_problems(study, out);
    reasons_text(&n->reasons, out);
}

static void caption_study(const Study *study, const StudyLook *look, const StudyNumbers *n,
                          Figure *figure)
{
    Text caption = { 0 };

    if (look->caption) {
        text_add(&caption, look->caption);
    } else {
        caption_input(study, &caption);
        caption_seeds(study, &caption);
        caption_measured(study, look, &caption);
    }
    if (!look->caption || *look->caption) /* an empty caption is empty */
        caption_gaps(study, look, n, &caption);
    snprintf(figure->caption, sizeof(figure->caption), "%s", text_str(&caption));
    if (look->title)
        snprintf(figure->title, sizeof(figure->title), "%s", look->title);
    text_free(&caption);
}

/* ---- the figure ------------------------------------------------------------- */

/* An axis without its unit, which the axis itself names. One curve alone has no key: its signs
 * stand here. */
static void title_of(const Study *study, const StudyNumbers *n, const char *axis, char *title,
                     size_t size)
{
    const char *unit = strstr(axis, " ("), *signs = "";

    for (int i = 0; i < study->count && number_of_line(study, study->count) == 1; i++)
        signs = n->signs[i].length ? text_str(&n->signs[i]) : signs;
    snprintf(title, size, "%s%s%.*s", signs, *signs ? " " : "",
             unit ? (int)(unit - axis) : (int)strlen(axis), axis);
    title_capital(title);
}

/* Signs of warnings, in the order of the lines. Exact attention is no curve. */
static void sign_lines(const Study *study, const StudyLook *look, StudyNumbers *n)
{
    for (int i = 0; i < study->count && !look->unsigned_names; i++)
        if (!study->lines[i].baseline)
            reasons_sign(&n->reasons, text_str(&study->lines[i].warnings), &n->signs[i]);
}

/* Makes a panel for each quantity with numbers; an error where there are none at all. */
static bool make_study_panels(const Study *study, const StudyLook *look, StudyNumbers *n,
                              Figure *figure, Error *err)
{
    char title[64];

    figure->count = 0;
    for (int k = 0; k < look->count; k++) {
        StudyQuantity q = look->quantities[k];

        if (!count_columns(study, q))
            continue;
        if (!make_study_view(study, look, n, q, err))
            return false;
        title_of(study, n, axes[q], title, sizeof(title));
        panel_init(&figure->panels[figure->count], &n->view[q][0], NULL, 0, title);
        note_missing(study, q, &figure->panels[figure->count++]);
    }
    return figure->count || no_numbers(study, look->quantities[0], err);
}

/* Keeps measured numbers as plots, which the file holds and rerender draws. */
static bool keep_measured(const Study *study, const StudyLook *look, Figure *figure, Error *err)
{
    const Result *r = any_sample(study);
    Machines      machines = machines_of(study);
    bool          measured = false;

    for (int k = 0; k < look->count; k++)
        measured = measured || quantity_is_measured(look->quantities[k]);
    for (int k = 0; measured && r && k < figure->count; k++) {
        Plot *plot = panel_plot(&figure->panels[k], err);

        if (!plot)
            return false;
        machines_text(&machines, plot->measured, sizeof(plot->measured));
        figure->panels[k].made = plot;
    }
    return true;
}

/* Exact attention, in words. */
static void name_exact(const Study *study, StudyNumbers *n)
{
    Text words = { 0 };

    if (study->count)
        mechanism_words(mechanism_find(study->lines[0].request.mechanism), study->lines[0].name,
                        &words);
    snprintf(n->exact, sizeof(n->exact), "%s", text_str(&words));
    text_free(&words);
}

bool study_picture(const Study *study, const StudyLook *look, StudyPicture *out, Error *err)
{
    StudyNumbers *n = calloc(1, sizeof(*n));
    bool          ok;

    *out = (StudyPicture){ .numbers = n, .figure = figure_new(look->count, err) };
    if (!n || !out->figure) {
        study_picture_free(out);
        return error_set(err, ERR_NOMEM, "a plot: out of memory");
    }
    place_points(study, n);
    name_exact(study, n);
    sign_lines(study, look, n);
    if (look->goal)
        snprintf(n->goal, sizeof(n->goal), "%.4g%s", look->goal->bound *
                 (look->goal->quantity == STUDY_MASS ? 100 : 1),
                 look->goal->quantity == STUDY_MASS ? " %" : "");
    ok = make_study_panels(study, look, n, out->figure, err);
    caption_study(study, look, n, out->figure);
    ok = ok && keep_measured(study, look, out->figure, err);
    if (!ok)
        study_picture_free(out);
    return ok;
}

void study_picture_free(StudyPicture *picture)
{
    figure_free(picture->figure);
    for (int q = 0; picture->numbers && q < STUDY_QUANTITIES; q++) {
        free(picture->numbers->values[q]);
        text_free(&picture->numbers->series[q]);
    }
    for (int i = 0; picture->numbers && i < STUDY_LINES; i++)
        text_free(&picture->numbers->signs[i]);
    if (picture->numbers) {
        text_free(&picture->numbers->points);
        reasons_free(&picture->numbers->reasons);
    }
    free(picture->numbers);
    *picture = (StudyPicture){ .figure = NULL };
}

/* ---- the command ------------------------------------------------------------ */

static void add_mechanisms(const Study *study, Text *out)
{
    for (int i = 0; i < study->count; i++)
        if (!study->lines[i].baseline) {
            Text word = { 0 };

            request_text(&study->lines[i].request, &word);
            text_add(out, " ");
            word_quote(out, text_str(&word));
            text_free(&word);
        }
}

void study_command(const Study *study, const Session *s, const StudyLook *look, Text *out)
{
    const Request *first = &study->lines[study->count > 1 ? 1 : 0].request;

    text_add(out, "compare");
    add_mechanisms(study, out);
    text_add(out, " --vary ");
    word_quote(out, study->range);
    text_add(out, " --plot ");
    for (int k = 0; k < look->count; k++)
        text_addf(out, "%s%s", k ? "," : "", quantity_name(look->quantities[k]));
    if (first->seeds > 1)
        text_addf(out, " --seeds %d", first->seeds);
    request_options(s, first, out);
}

/* ---- time over n ------------------------------------------------------------ */

/* n, cost, low and high of a line. */
typedef struct LineNumbers {
    char   name[128];
    double n[AXIS_MOST], cost[AXIS_MOST], low[AXIS_MOST], high[AXIS_MOST];
    bool   busy[AXIS_MOST];
} LineNumbers;

static ScalingCurve curve_of(const Study *study, int line, LineNumbers *to)
{
    const StudyLine *l = &study->lines[line];
    const Mechanism *m = mechanism_find(l->request.mechanism);
    bool             claims = m && m->claim_exponent > 0;
    int              count = 0;
    Text             name = { 0 };

    for (; count < study->axis.count && l->points[count].done; count++) {
        const StudyPoint *p = &l->points[count];

        to->n[count] = axis_number(&study->axis, count);
        to->cost[count] = number_or_nan(p->value[STUDY_TIME]);
        to->low[count] = number_or_nan(p->low[STUDY_TIME]);
        to->high[count] = number_or_nan(p->high[STUDY_TIME]);
        to->busy[count] = p->busy;
    }
    line_words(l, &name);
    snprintf(to->name, sizeof(to->name), "%s", text_str(&name));
    text_free(&name);
    return (ScalingCurve){ .name = to->name, .n = to->n, .cost = to->cost, .low = to->low,
                           .high = to->high, .busy = to->busy, .count = count,
                           .claim = claims ? m->claim_exponent : (double)NAN,
                           .claimed = claims ? m->claim_time : NULL };
}

Plot *study_scaling_plot(const Study *study, Error *err)
{
    LineNumbers *numbers = calloc((size_t)study->count + 1, sizeof(*numbers));
    ScalingCurve curves[STUDY_LINES];
    Machines     machines = { .when = 0 };
    char         measured[256];
    Plot        *plot;

    if (!numbers) {
        error_set(err, ERR_NOMEM, "not enough memory for a scaling plot");
        return NULL;
    }
    for (int i = 0; i < study->count; i++) {
        curves[i] = curve_of(study, i, &numbers[i]);
        machines_add(&machines, study->lines[i].request.ops, study->threads, study->when);
    }
    machines_text(&machines, measured, sizeof(measured));
    plot = plot_of_scaling(curves, study->count, "time (ms)", measured, err);
    free(numbers);
    return plot;
}

Figure *study_scaling_figure(const Study *study, Error *err)
{
    Plot   *plot = study_scaling_plot(study, err);
    Figure *figure = plot ? figure_new(1, err) : NULL;

    if (!figure) {
        plot_free(plot);
        return NULL;
    }
    panel_init_plot(&figure->panels[0], plot, "Time over n");
    snprintf(figure->caption, sizeof(figure->caption),
             "random normal inputs, %lld head%s of %lld; measured on %s", (long long)study->heads,
             study->heads == 1 ? "" : "s", (long long)study->d, plot->measured);
    return figure;
}
