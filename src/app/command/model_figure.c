/* model_figure.c -- model -o and --plot: what swaps do to a model, as curves.
 *
 * A curve is one --swap: over the values of --vary, over the layers of --each, or its loss over its
 * cost.  What the name of --vary does not change is a dashed line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/model.h"
#include "app/figure/picture.h"
#include "app/study/swap_axis.h"
#include "draw/plot/plot.h"

#define COST       MODEL_MEASURES /* the plot of loss over cost */
#define PLOTS_MOST (MODEL_MEASURES + 1)
#define LOG_FROM   4 /* ratio of the values of a logarithmic axis */
#define TICKS_MOST 11
#define EXACT      "exact attention"

static const char *const axis_names[] = { "loss (nats a token)", "change of loss (nats a token)",
                                          "KL (nats)", "share of equal predictions",
                                          "cosine of final states", "change of the residual" };

typedef struct Choice {
    int kinds[PLOTS_MOST], count;
} Choice;

/* ---- options --------------------------------------------------------------------------- */

static const char *kind_name(int kind)
{
    return kind == COST ? "cost" : model_measure_name((ModelMeasure)kind);
}

static bool add_kind(Choice *c, const char *name, size_t length, Error *err)
{
    for (int k = 0; k < PLOTS_MOST; k++) {
        if (strlen(kind_name(k)) != length || strncmp(kind_name(k), name, length) != 0)
            continue;
        for (int i = 0; i < c->count; i++)
            if (c->kinds[i] == k)
                return error_set(err, ERR_USAGE, "--plot: %s stands there twice", kind_name(k));
        c->kinds[c->count++] = k;
        return true;
    }
    return error_set(err, ERR_USAGE, "--plot: expected loss, delta, kl, agreement, cosine, "
                     "residual or cost, got '%.*s'", (int)length, name);
}

/* An encoder predicts no next token, so it has no loss: the default is the change of its states. */
static bool parse_choice(const Call *call, bool causal, Choice *out, Error *err)
{
    bool        over = call->values[OPT_SWAPVARY] || call->values[OPT_EACH], ok = true;
    const char *list = call->values[OPT_SWAPPLOT];

    *out = (Choice){ .count = 0 };
    list = list ? list : !over ? "cost" : causal ? "loss" : "cosine";
    for (bool more = true; ok && more; list++) {
        size_t length = strcspn(list, ",");

        ok = add_kind(out, list, length, err);
        list += length;
        more = *list != '\0';
    }
    for (int i = 0; ok && i < out->count; i++) {
        if (out->kinds[i] != COST && !over)
            ok = error_set(err, ERR_USAGE, "--plot %s is over something: the values of --vary "
                           "NAME=VALUES, or the layers of --each; --plot cost needs neither",
                           kind_name(out->kinds[i]));
        if (out->kinds[i] == COST && call->values[OPT_EACH])
            ok = error_set(err, ERR_USAGE, "--plot cost with --each: every layer costs the same; "
                           "--plot loss shows which bears the swap");
    }
    return ok;
}

/* The call asks for curves, below the table or in its files. */
static bool model_draws(const Call *call)
{
    return call->file_count || call->values[OPT_SWAPPLOT];
}

bool model_figure_check(const Call *call, Error *err)
{
    PngOptions png;
    Choice     choice;

    if (!call->file_count && call->values[OPT_FORMAT])
        return error_set(err, ERR_USAGE, "--format is of a figure: add -o FILE.png");
    if (model_draws(call) && (call->values[OPT_JSON] || call->values[OPT_CSV] ||
                              call->values[OPT_MD] || call->values[OPT_GENERATE]))
        return error_set(err, ERR_USAGE, "a figure or a table: leave out --json, --csv, --md and "
                         "--generate, or -o and --plot");
    return (!model_draws(call) || parse_choice(call, true, &choice, err)) &&
           call_png_options(call, &png, err);
}

/* ---- curves ------------------------------------------------------------------------------ */

/* The k-th of the names between bars in --titles; false: there is none. */
static bool given_name(const Call *call, int k, Text *out)
{
    const char *names = call->values[OPT_TITLES];

    for (; names && k > 0; k--)
        names = strchr(names, '|') ? strchr(names, '|') + 1 : NULL;
    if (!names)
        return false;
    names += strspn(names, " ");
    text_add_bytes(out, names, strcspn(names, "|"));
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    return true;
}

static const Mechanism *mechanism_of(const char *swap)
{
    char            *id = strndup(swap, strcspn(swap, "("));
    const Mechanism *m = id ? mechanism_find(id) : NULL;

    free(id);
    return m;
}

typedef struct UsualSize {
    const char *name; /* of the mechanism's size; NULL: it has none */
    Text       *out;
} UsualSize;

/* ", k 8" of "0 (8, or with mass as many as it takes)". */
static void add_usual_size(void *context, const char *name, const char *value)
{
    const UsualSize *size = context;
    const char      *number = strncmp(value, "0 (", 3) ? value : value + 3;
    size_t           digits = strspn(number, "0123456789");

    if (size->name && !strcmp(size->name, name) && digits && strtoll(number, NULL, 10) > 0)
        text_addf(size->out, ", %s %.*s", name, (int)digits, number);
}

/* "Sliding window, window 7" of "window"; "window(w) + cols(2)" of a pattern over w. */
static void swap_words(const ModelRun *r, int64_t swap, Text *out)
{
    const SwapOrigin *origin = &r->origins[swap];
    const Mechanism  *m;
    UsualSize         size;
    Text              text = { 0 };

    if (r->axis.count && origin->at >= 0)
        swap_at(r->call->swaps[origin->given], r->axis.name, NULL, &text);
    else
        text_add(&text, origin->text);
    m = mechanism_of(text_str(&text));
    mechanism_words(m, text_str(&text), out);
    size = (UsualSize){ m ? m->size : NULL, out };
    if (origin->at < 0)
        model_defaults(&r->swaps[swap], add_usual_size, &size);
    text_free(&text);
}

/* The first variant of a --swap. */
static int64_t first_of(const ModelRun *r, int given)
{
    int64_t v = 0;

    while (v + 1 < r->swap_count && r->origins[v].given != given)
        v++;
    return v;
}

static void curve_name(const ModelRun *r, int given, Text *out)
{
    int64_t first = first_of(r, given);

    if (given_name(r->call, given, out))
        return;
    swap_words(r, first, out);
    if (r->call->values[OPT_EACH] || !model_swaps_differ(r) ||
        swap_is_file(r->origins[first].text))
        return;
    text_add(out, " in layers ");
    model_set_text(r->layer_sets[first], r->m->config.layers, out);
}

/* Place of a variant on the x axis. */
static double place_of(const ModelRun *r, int64_t variant, int kind)
{
    int at = r->origins[variant - 1].at;

    if (kind == COST)
        return 100 * model_share(r, variant);
    if (!r->axis.count) /* --each */
        for (int64_t l = 0; l < r->m->config.layers; l++)
            if (r->layer_sets[variant - 1][l])
                return (double)l;
    return at < 0 ? (double)NAN : isnan(axis_number(&r->axis, at)) ? at : axis_number(&r->axis, at);
}

typedef struct Variants {
    int64_t *list; /* from left to right; owned */
    int64_t  count;
} Variants;

static bool take_variants(const ModelRun *r, int given, int kind, Variants *out)
{
    *out = (Variants){ .list = malloc((size_t)r->swap_count * sizeof(*out->list)) };
    for (int64_t v = 1; out->list && v <= r->swap_count; v++) {
        int64_t at = out->count;

        if (r->origins[v - 1].given != given)
            continue;
        for (; at > 0 && place_of(r, out->list[at - 1], kind) > place_of(r, v, kind); at--)
            out->list[at] = out->list[at - 1];
        out->list[at] = v;
        out->count++;
    }
    return out->list != NULL;
}

static bool add_points(const ModelRun *r, int kind, const Variants *variants, const char *name,
                       Plot *plot)
{
    ModelMeasure measure = kind == COST ? MODEL_LOSS : (ModelMeasure)kind;
    bool         whiskers = r->text_count > 1;
    PlotSeries  *s = plot_add(plot, name, variants->count > 1 ? CURVE_LINE : CURVE_POINTS,
                              variants->count, whiskers);

    for (int64_t i = 0; s && i < variants->count; i++) {
        ModelSpread y = model_spread(r, variants->list[i], measure);
        int         at = r->origins[variants->list[i] - 1].at;

        s->x[i] = place_of(r, variants->list[i], kind);
        s->y[i] = y.mean;
        if (whiskers) {
            s->low[i] = y.mean - y.half;
            s->high[i] = y.mean + y.half;
        }
        if (kind != COST || at < 0)
            continue;
        if (!s->labels && !plot_label(s))
            return false;
        snprintf(s->labels[i], sizeof(s->labels[i]), "%s", r->axis.values[at]);
    }
    if (s)
        s->whiskers = whiskers;
    return s != NULL;
}

/* Of one --swap: a curve, or a line where --vary changes nothing. */
static bool add_swap_curve(const ModelRun *r, int kind, int given, Plot *plot)
{
    Variants variants;
    Text     name = { 0 };
    bool     ok = take_variants(r, given, kind, &variants);

    curve_name(r, given, &name);
    ok = ok && text_ok(&name);
    if (ok && kind != COST && r->axis.count && r->origins[variants.list[0] - 1].at < 0)
        plot_guide(plot, text_str(&name), false,
                   model_spread(r, variants.list[0], (ModelMeasure)kind).mean);
    else
        ok = ok && add_points(r, kind, &variants, text_str(&name), plot);
    free(variants.list);
    text_free(&name);
    return ok;
}

/* The model as it is. */
static bool add_exact(const ModelRun *r, int kind, Plot *plot)
{
    ModelSpread loss = model_spread(r, 0, MODEL_LOSS);
    bool        whiskers = r->text_count > 1;
    PlotSeries *s;

    if (kind == MODEL_LOSS)
        plot_guide(plot, EXACT, false, loss.mean);
    if (kind != COST)
        return true;
    s = plot_add(plot, EXACT, CURVE_POINTS, 1, whiskers);
    if (!s)
        return false;
    s->x[0] = 100;
    s->y[0] = loss.mean;
    if (whiskers) {
        s->low[0] = loss.mean - loss.half;
        s->high[0] = loss.mean + loss.half;
    }
    return true;
}

static const char *x_name(const ModelRun *r, int kind)
{
    return kind == COST ? "FLOPs of scores and mixing (% of exact)"
           : r->axis.count ? r->axis.name : "layer";
}

/* The values of --vary as ticks, where they have room. */
static bool name_values(const ModelRun *r, Plot *plot)
{
    const PlotSeries *s = &plot->series[0];
    double            low = s->x[0], high = s->x[s->count - 1];
    Text              names = { 0 };
    bool              words = isnan(axis_number(&r->axis, 0)), ok = true;
    Variants          variants;

    plot->x.log = !words && low > 0 && high >= LOG_FROM * low;
    if (s->count > TICKS_MOST && !words)
        return true;
    for (int g = 0; g < r->call->swap_count && !names.length; g++) {
        if (!take_variants(r, g, MODEL_LOSS, &variants))
            return false;
        for (int64_t i = 0; i < variants.count && r->origins[variants.list[i] - 1].at >= 0; i++)
            text_addf(&names, "%s%s", i ? "|" : "",
                      r->axis.values[r->origins[variants.list[i] - 1].at]);
        free(variants.list);
    }
    ok = text_ok(&names) && plot_name_points(plot, text_str(&names));
    text_free(&names);
    return ok;
}

static bool has_numbers(const Plot *plot)
{
    for (int k = 0; k < plot->count; k++)
        for (int64_t i = 0; i < plot->series[k].count; i++)
            if (isfinite(plot->series[k].y[i]) && isfinite(plot->series[k].x[i]))
                return true;
    return false;
}

static Plot *make_plot(const ModelRun *r, int kind, Error *err)
{
    Plot *plot = plot_new(err);
    bool  ok = plot != NULL, numbers;

    for (int g = 0; ok && g < r->call->swap_count; g++)
        ok = add_swap_curve(r, kind, g, plot);
    numbers = ok && has_numbers(plot);
    ok = ok && add_exact(r, kind, plot) && (kind == COST || !r->axis.count || name_values(r, plot));
    if (ok && numbers) {
        snprintf(plot->x.name, sizeof(plot->x.name), "%s", x_name(r, kind));
        snprintf(plot->y.name, sizeof(plot->y.name), "%s",
                 axis_names[kind == COST ? MODEL_LOSS : kind]);
        plot->x.whole = kind != COST && !r->axis.count;
        snprintf(plot->note, sizeof(plot->note), " ");
        plot_settle(plot);
        if (kind == COST) { /* all of the axis, so that its ends are what they say */
            plot->x.lo = 0;
            plot->x.hi = fmax(105, plot->x.hi);
        }
        return plot;
    }
    if (ok)
        error_set(err, ERR_DATA, "--plot %s: this model has none on this text%s", kind_name(kind),
                  r->m->config.causal ? "" : "; of an encoder there are cosine and residual");
    else if (plot)
        error_set(err, ERR_NOMEM, "not enough memory for a plot, or more than %d --swap",
                  PLOT_SERIES_MOST - 1);
    plot_free(plot);
    return NULL;
}

/* ---- the figure ---------------------------------------------------------------------------- */

/* One curve alone has no key: the caption names its mechanism. */
static void caption_swap(const ModelRun *r, Text *out)
{
    text_add(out, "; ");
    if (r->call->swap_count == 1) {
        curve_name(r, 0, out);
        text_add(out, ", ");
    }
}

/* A file without its folder, a sample without the word before its name. */
static const char *file_words(const char *name)
{
    return path_name(strncmp(name, "sample:", 7) ? name : name + 7);
}

/* "tiny.gguf, text.txt, 33 tokens; Sliding window, window 7, swapped in layers 0-5" */
static void caption_model(const ModelRun *r, Text *out)
{
    int64_t swapped = 0;

    text_addf(out, "%s, ", file_words(r->m->name));
    if (r->text_count > 1) {
        text_addf(out, "mean and 95 %% interval of %d texts", r->text_count);
    } else {
        text_addf(out, "%s, ", file_words(r->texts[0].name));
        text_add_count(out, r->texts[0].reading.tokens.count, "token");
    }
    if (r->call->values[OPT_EACH] || !model_swaps_differ(r))
        caption_swap(r, out);
    if (r->call->values[OPT_EACH]) {
        text_add(out, "one layer at a time");
    } else if (!model_swaps_differ(r)) {
        for (int64_t l = 0; l < r->m->config.layers; l++)
            swapped += r->layer_sets[0][l];
        text_add(out, "swapped in ");
        if (swapped < r->m->config.layers)
            text_add(out, swapped == 1 ? "layer " : "layers ");
        else
            text_add(out, "all layers");
        if (swapped < r->m->config.layers)
            model_set_text(r->layer_sets[0], r->m->config.layers, out);
    }
    if (r->call->swap_heads_count == 1)
        text_addf(out, ", heads %s", r->call->values[OPT_SWAPHEADS]);
}

/* "loss over w": the axes without their units; one curve alone has no key and is named here. */
static void title_panel(const ModelRun *r, int kind, const Plot *plot, char *out, size_t size)
{
    const char *y = axis_names[kind == COST ? MODEL_LOSS : kind];
    Text        title = { 0 };

    if (plot_named(plot) == 1 && r->call->swap_count == 1)
        text_addf(&title, "%s \xc2\xb7 ", plot->series[0].name);
    text_add_bytes(&title, y, strcspn(y, "("));
    text_addf(&title, "%sover %s", strchr(y, '(') ? "" : " ", kind == COST ? "cost"
                                                                          : x_name(r, kind));
    snprintf(out, size, "%s", text_str(&title));
    title_capital(out);
    text_free(&title);
}

static Figure *make_figure(const ModelRun *r, const Choice *choice, Error *err)
{
    Figure *figure = figure_new(choice->count, err);
    Text    caption = { 0 };

    for (int k = 0; figure && k < choice->count; k++) {
        Plot *plot = make_plot(r, choice->kinds[k], err);
        char  title[160];

        if (!plot) {
            figure_free(figure);
            return NULL;
        }
        title_panel(r, choice->kinds[k], plot, title, sizeof(title));
        panel_init_plot(&figure->panels[k], plot, title);
        snprintf(figure->panels[k].caption, sizeof(figure->panels[k].caption), " ");
    }
    if (!figure)
        return NULL;
    caption_model(r, &caption);
    snprintf(figure->title, sizeof(figure->title), "%s",
             r->call->values[OPT_TITLE] ? r->call->values[OPT_TITLE] : "");
    snprintf(figure->caption, sizeof(figure->caption), "%s",
             r->call->values[OPT_CAPTION] ? r->call->values[OPT_CAPTION] : text_str(&caption));
    text_free(&caption);
    return figure;
}

bool model_figure(const ModelRun *r, Text *out, Error *err)
{
    PictureOptions options;
    Choice         choice;
    Figure        *figure;
    bool           ok;

    if (!parse_choice(r->call, r->m->config.causal, &choice, err) ||
        !call_picture_options(r->session, r->call, choice.count, &options, err))
        return false;
    figure = make_figure(r, &choice, err);
    if (!figure)
        return false;
    figure->rows = options.rows;
    figure->cols = options.cols;
    if (!r->call->file_count)
        text_add(out, "\n");
    ok = call_write_figure(r->call, figure, NULL, 0, out, err);
    figure_free(figure);
    return ok;
}
